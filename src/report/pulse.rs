//! Does something at a steady pace, on a thread of its own, for as long as somebody wants it.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// A thread that does something again and again, and once more when this is dropped.
pub(super) struct Pulse {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Why something is done now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Beat {
    /// It is time.
    Due,
    /// It is the last time.
    Last,
}

impl Pulse {
    /// Does `work` after each `interval`.
    pub(super) fn start(interval: Duration, mut work: impl FnMut(Beat) + Send + 'static) -> Self {
        let (stop, stopped) = channel::<()>();
        let run = move || {
            while stopped.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
                work(Beat::Due);
            }
            work(Beat::Last);
        };
        // Without the thread nothing is shown, which must not keep anyone from restoring.
        let thread = std::thread::Builder::new().name("progress".to_owned()).spawn(run).ok();
        Self { stop: Some(stop), thread }
    }
}

impl Drop for Pulse {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // Work that panicked has nothing more to show.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_beats_until_it_is_dropped_and_once_more() {
        let (sender, beats) = channel();
        let pulse = Pulse::start(Duration::from_millis(1), move |beat| {
            // Nobody listens any more after the test.
            let _ = sender.send(beat);
        });
        assert_eq!(beats.recv(), Ok(Beat::Due));
        assert_eq!(beats.recv(), Ok(Beat::Due));
        drop(pulse);
        let rest: Vec<_> = beats.iter().collect();
        assert_eq!(rest.iter().filter(|beat| **beat == Beat::Last).count(), 1);
        assert_eq!(rest.last(), Some(&Beat::Last));
    }
}
