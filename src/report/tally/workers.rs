//! How many batches were in flight, and why that changed.

use std::time::Duration;

use serde::Serialize;

use crate::limits::WORKERS_DECISIONS_KEPT;

/// How many batches were in flight, and why that changed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WorkersTally {
    /// The first changes, in their order.
    pub decisions: Vec<WorkersDecision>,
    /// Further changes, which are not kept.
    pub decisions_left_out: u64,
    /// The fewest that there were.
    pub fewest: Option<usize>,
    /// The most that there were.
    pub most: Option<usize>,
    /// As many as there were at the end.
    pub last: Option<usize>,
}

/// A change of the number of batches in flight.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WorkersDecision {
    /// When it was made, since the run began.
    #[serde(rename = "at_seconds", serialize_with = "seconds")]
    pub at: Duration,
    /// How many there may be from then on.
    pub workers: usize,
    /// Why.
    pub reason: String,
}

impl WorkersTally {
    /// Takes a change into account.
    pub(super) fn change(&mut self, at: Duration, workers: usize, reason: &str) {
        if self.decisions.len() < WORKERS_DECISIONS_KEPT {
            let reason = reason.to_owned();
            self.decisions.push(WorkersDecision { at, workers, reason });
        } else {
            self.decisions_left_out += 1;
        }
        self.fewest = Some(self.fewest.map_or(workers, |fewest| fewest.min(workers)));
        self.most = self.most.max(Some(workers));
        self.last = Some(workers);
    }
}

fn seconds<S: serde::Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_changes_are_kept_and_the_others_counted() {
        let mut tally = WorkersTally::default();
        for number in 0..WORKERS_DECISIONS_KEPT + 5 {
            tally.change(Duration::from_secs(1), 2 + number % 7, "to see");
        }
        tally.change(Duration::from_secs(2), 4, "to see");
        assert_eq!(tally.decisions.len(), WORKERS_DECISIONS_KEPT);
        assert_eq!(tally.decisions_left_out, 6);
        assert_eq!((tally.fewest, tally.most, tally.last), (Some(2), Some(8), Some(4)));
    }
}
