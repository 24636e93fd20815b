//! How long attempts at the same thing have failed.

use std::time::Duration;

use tokio::time::Instant;

use crate::load::retry;

/// The failures since the last answer; a batch that is answered for bit by bit may take its time.
pub(super) struct Outage {
    /// When the first attempt that failed was begun.
    began: Instant,
    repetition: u32,
}

impl Outage {
    pub(super) fn new() -> Self {
        Self { began: Instant::now(), repetition: 0 }
    }

    /// Notes that an attempt begins; it begins an outage if it is the first to fail.
    pub(super) fn attempt(&mut self) {
        if self.repetition == 0 {
            self.began = Instant::now();
        }
    }

    /// Whether there have been attempts for this long.
    pub(super) fn lasts(&self, time: Duration) -> bool {
        self.began.elapsed() >= time
    }

    /// Begins the pauses anew, because the next attempt is another one.
    pub(super) fn begin_again(&mut self) {
        self.repetition = 1;
    }

    /// The pause before the next attempt.
    pub(super) fn next(&mut self, message: &str) -> Duration {
        self.repetition += 1;
        retry::delay_after(message, self.repetition)
    }
}
