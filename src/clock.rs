//! Time that is spent on something, added up over all threads and tasks that spend it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A sum of time; clones add to the same one.
///
/// What goes on counts up to the moment at which the clock is read, so that something that hangs is
/// seen before it ends. To be used for pieces of work that take microseconds at least.
#[derive(Clone, Debug, Default)]
pub struct Clock(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    spent: Duration,
    running: u32,
    /// When the number of pieces that go on changed last.
    changed: Option<Instant>,
}

impl State {
    /// Adds what has gone on since the last change.
    fn settle(&mut self, now: Instant) {
        if let Some(changed) = self.changed.replace(now) {
            self.spent += now.saturating_duration_since(changed) * self.running;
        }
    }
}

/// A piece of work that goes on until it is dropped.
#[derive(Debug)]
#[must_use = "the time counts until this is dropped"]
pub struct Running<'a>(&'a Clock);

impl Clock {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a piece of work; several may go on at once.
    pub fn begin(&self) -> Running<'_> {
        let mut state = self.state();
        state.settle(Instant::now());
        state.running += 1;
        Running(self)
    }

    /// Does a piece of work.
    pub fn time<R>(&self, work: impl FnOnce() -> R) -> R {
        let running = self.begin();
        let done = work();
        drop(running);
        done
    }

    /// The sum until now.
    pub fn spent(&self) -> Duration {
        let mut state = self.state();
        state.settle(Instant::now());
        state.spent
    }

    /// How many pieces of work go on.
    pub fn running(&self) -> usize {
        self.state().running as usize
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.settle(Instant::now());
        state.running = state.running.saturating_sub(1);
    }
}

/// What is measured while a file or a pipe is read.
#[derive(Clone, Debug, Default)]
pub struct ReadClocks {
    /// Waiting for bytes of the file or pipe itself.
    pub input: Clock,
    /// Who reads documents waits for unpacked bytes, or unpacks them.
    pub unpacked: Clock,
    /// A thread of its own unpacks.
    pub unpacking: Clock,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread::sleep;

    #[test]
    fn pieces_that_go_on_at_once_add_up() {
        let clock = Clock::default();
        let (one, other) = (clock.begin(), clock.begin());
        sleep(Duration::from_millis(20));
        assert_eq!(clock.running(), 2);
        assert!(clock.spent() >= Duration::from_millis(40), "before they end");
        drop(one);
        sleep(Duration::from_millis(20));
        drop(other);
        let spent = clock.spent();
        assert!(spent >= Duration::from_millis(60), "{spent:?}");
        sleep(Duration::from_millis(5));
        assert_eq!((clock.spent(), clock.running()), (spent, 0), "nothing goes on");
    }

    #[test]
    fn work_is_timed_and_its_result_returned() {
        let clock = Clock::default();
        let twin = clock.clone();
        assert_eq!(
            clock.time(|| {
                sleep(Duration::from_millis(3));
                7
            }),
            7
        );
        assert!(twin.spent() >= Duration::from_millis(3));
    }
}
