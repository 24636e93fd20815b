//! Folds events into counts.

use std::time::Duration;

use crate::report::event::Event;

/// The counts of a run so far.
#[derive(Clone, Debug, Default)]
pub struct Tally {}

impl Tally {
    /// Takes an event into account; `at` is the time since the run began.
    pub fn apply(&mut self, _at: Duration, _event: &Event) {}
}
