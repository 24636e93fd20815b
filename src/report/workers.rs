//! How many batches were in flight, as the report tells it.

use serde::Serialize;

use crate::report::tally::{Tally, WorkersDecision};

/// How many batches were in flight, and why that changed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WorkersReport {
    /// The number, where it was fixed.
    pub fixed: Option<usize>,
    /// How many there might have been.
    pub max: usize,
    /// The fewest that there were.
    pub fewest: usize,
    /// The most that there were.
    pub most: usize,
    /// As many as there were at the end.
    pub last: usize,
    /// The first changes, in their order.
    pub decisions: Vec<WorkersDecision>,
    /// Further changes, which are not listed.
    pub decisions_left_out: u64,
}

impl WorkersReport {
    /// As the tally has it, which does not know how many there might have been.
    pub(super) fn new(tally: &Tally) -> Self {
        let workers = tally.workers();
        let most = workers.most.unwrap_or_default();
        Self {
            fixed: None,
            max: most,
            fewest: workers.fewest.unwrap_or_default(),
            most,
            last: workers.last.unwrap_or_default(),
            decisions: workers.decisions.clone(),
            decisions_left_out: workers.decisions_left_out,
        }
    }

    /// How many there were, in a few words.
    pub(super) fn words(&self) -> String {
        let Self { fewest, most, last, .. } = self;
        match self.fixed {
            Some(fixed) if fewest == most => format!("fixed at {fixed}"),
            Some(fixed) => format!("fixed at {fixed}, {fewest} to {most}, {last} at the end"),
            None if fewest == most => format!("adaptive, {last} all the time"),
            None => format!("adaptive, {fewest} to {most}, {last} at the end"),
        }
    }

    /// Notes how many there might have been, and the number where it was fixed.
    pub(super) fn limit(&mut self, fixed: Option<usize>, max: usize) {
        self.fixed = fixed;
        self.max = max;
        // A number that never changes is told by nobody.
        if let (Some(fixed), true) = (fixed, self.decisions.is_empty()) {
            (self.fewest, self.most, self.last) = (fixed, fixed, fixed);
        }
    }
}
