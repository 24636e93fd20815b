//! Places for batches in flight, of which there are more or fewer from one moment to the next.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::Instant;

/// Places for batches in flight.
#[derive(Debug)]
pub(super) struct Places {
    free: Semaphore,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// How many there are.
    all: usize,
    taken: usize,
    /// Places that are given up as soon as they become free.
    surplus: usize,
    /// The time in which places were taken, summed up, until `counted`.
    time_taken: Duration,
    counted: Instant,
}

/// A place, free again once this is dropped.
#[derive(Debug)]
pub(super) struct Place<'a>(&'a Places);

impl Places {
    pub(super) fn new(all: usize) -> Self {
        let counted = Instant::now();
        let state = State { all, taken: 0, surplus: 0, time_taken: Duration::ZERO, counted };
        Self { free: Semaphore::new(all), state: Mutex::new(state) }
    }

    /// Waits for a place.
    pub(super) async fn take(&self) -> Place<'_> {
        if let Ok(permit) = self.free.acquire().await {
            permit.forget();
        }
        self.state().count(1, 0);
        Place(self)
    }

    /// Makes them so many.
    pub(super) fn set(&self, all: usize) {
        let mut state = self.state();
        if let Some(fewer) = state.all.checked_sub(all) {
            let given_up = self.free.forget_permits(fewer);
            state.surplus += fewer - given_up;
        } else {
            let more = all - state.all;
            let kept = more.min(state.surplus);
            state.surplus -= kept;
            self.free.add_permits(more - kept);
        }
        state.all = all;
    }

    /// How many there are.
    pub(super) fn all(&self) -> usize {
        self.state().all
    }

    /// How many are taken.
    pub(super) fn taken(&self) -> usize {
        self.state().taken
    }

    /// The time in which places were taken so far, summed up over them.
    pub(super) fn time_taken(&self) -> Duration {
        let mut state = self.state();
        state.count(0, 0);
        state.time_taken
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Adds the time up to now, and changes how many are taken.
    fn count(&mut self, taken: usize, given_back: usize) {
        let now = Instant::now();
        let places = u32::try_from(self.taken).unwrap_or(u32::MAX);
        self.time_taken += now.saturating_duration_since(self.counted) * places;
        self.counted = now;
        self.taken = self.taken + taken - given_back;
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.count(0, 1);
        if state.surplus > 0 {
            state.surplus -= 1;
        } else {
            self.0.free.add_permits(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    #[tokio::test(start_paused = true)]
    async fn fewer_places_are_fewer_once_those_taken_are_given_back() {
        let places = Places::new(3);
        let mut taken = vec![places.take().await, places.take().await, places.take().await];
        assert!(places.take().now_or_never().is_none());
        places.set(1);
        assert_eq!((places.all(), places.taken()), (1, 3));
        taken.truncate(1);
        assert!(places.take().now_or_never().is_none());
        taken.clear();
        let one = places.take().now_or_never();
        assert!(one.is_some() && places.take().now_or_never().is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn more_places_are_there_at_once() {
        let places = Places::new(2);
        let _two = [places.take().await, places.take().await];
        places.set(1);
        places.set(4);
        let three = places.take().now_or_never();
        let four = places.take().now_or_never();
        assert!(three.is_some() && four.is_some());
        assert!(places.take().now_or_never().is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn the_time_of_all_places_adds_up() {
        let places = Places::new(2);
        let one = places.take().await;
        tokio::time::advance(Duration::from_secs(1)).await;
        let two = places.take().await;
        tokio::time::advance(Duration::from_secs(2)).await;
        drop(one);
        tokio::time::advance(Duration::from_secs(4)).await;
        assert_eq!(places.time_taken(), Duration::from_secs(1 + 4 + 4));
        drop(two);
        tokio::time::advance(Duration::from_secs(8)).await;
        assert_eq!(places.time_taken(), Duration::from_secs(9));
    }
}
