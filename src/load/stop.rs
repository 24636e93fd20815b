//! How a run is told to stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Asks a run to stop: nothing more is read, what is in flight is finished and reported.
///
/// Clones speak of the same run.
#[derive(Clone, Debug, Default)]
pub struct Stop {
    requested: Arc<AtomicBool>,
}

impl Stop {
    /// A stop that nobody has asked for.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks for it; may be called from any thread, and more than once.
    pub fn request(&self) {
        self.requested.store(true, Ordering::Relaxed);
    }

    /// Whether it was asked for.
    pub fn is_requested(&self) -> bool {
        self.requested.load(Ordering::Relaxed)
    }
}
