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
    /// Batches that wait for the limit of the rate.
    limited: usize,
    has_ended: bool,
    /// Until `counted`.
    spent: Spent,
    counted: Instant,
}

/// The time that places spent, summed up over them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Spent {
    /// Taken.
    pub(super) taken: Duration,
    /// Free, because there was no batch.
    pub(super) starved: Duration,
    /// Free, because the rate was limited.
    pub(super) limited: Duration,
}

/// A batch that waits for the limit of the rate, until this is dropped.
#[derive(Debug)]
pub(super) struct Limited<'a>(&'a Places);

/// A place, free again once this is dropped.
#[derive(Debug)]
pub(super) struct Place<'a>(&'a Places);

impl Places {
    pub(super) fn new(all: usize) -> Self {
        let counted = Instant::now();
        let state = State {
            all,
            taken: 0,
            surplus: 0,
            limited: 0,
            has_ended: false,
            spent: Spent::default(),
            counted,
        };
        Self { free: Semaphore::new(all), state: Mutex::new(state) }
    }

    /// Waits for a place.
    pub(super) async fn take(&self) -> Place<'_> {
        if let Ok(permit) = self.free.acquire().await {
            permit.forget();
        }
        let mut state = self.state();
        state.count();
        state.taken += 1;
        drop(state);
        Place(self)
    }

    /// Notes that a batch waits for the limit of the rate.
    pub(super) fn limit(&self) -> Limited<'_> {
        let mut state = self.state();
        state.count();
        state.limited += 1;
        drop(state);
        Limited(self)
    }

    /// Notes that no batch will come any more, so that nobody waits for one.
    pub(super) fn end(&self) {
        let mut state = self.state();
        state.count();
        state.has_ended = true;
    }

    /// Makes them so many.
    pub(super) fn set(&self, all: usize) {
        let mut state = self.state();
        state.count();
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

    /// The time that places have spent so far.
    pub(super) fn spent(&self) -> Spent {
        let mut state = self.state();
        state.count();
        state.spent
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Adds the time up to now.
    fn count(&mut self) {
        let now = Instant::now();
        let time = now.saturating_duration_since(self.counted);
        let sum = |places: usize| time * u32::try_from(places).unwrap_or(u32::MAX);
        let free = if self.has_ended { 0 } else { self.all.saturating_sub(self.taken) };
        self.spent.taken += sum(self.taken);
        if self.limited > 0 {
            self.spent.limited += sum(free);
        } else {
            self.spent.starved += sum(free);
        }
        self.counted = now;
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.count();
        state.taken -= 1;
        if state.surplus > 0 {
            state.surplus -= 1;
        } else {
            self.0.free.add_permits(1);
        }
    }
}

impl Drop for Limited<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.count();
        state.limited -= 1;
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
        assert_eq!(places.all(), 1);
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
        let seconds = Duration::from_secs;
        let (taken, starved) = (seconds(1 + 4 + 4), seconds(1 + 4));
        assert_eq!(places.spent(), Spent { taken, starved, limited: seconds(0) });
        let waiting = places.limit();
        tokio::time::advance(seconds(8)).await;
        drop((waiting, two));
        let (taken, limited) = (taken + seconds(8), seconds(8));
        assert_eq!(places.spent(), Spent { taken, starved, limited });
        places.end();
        tokio::time::advance(seconds(16)).await;
        assert_eq!(places.spent(), Spent { taken, starved, limited });
    }
}
