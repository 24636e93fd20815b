//! What came of the requests of one step.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::probe::mix::Operation;
use crate::probe::wire::Failure;
use crate::report::latency::Latencies;
use crate::report::probe::{Operations, ProbeError};

/// How a request went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Moments {
    /// When it was to be sent, since the beginning of the step.
    pub(super) intended: Duration,
    /// When it was sent.
    pub(super) sent: Duration,
    /// When its answer was there.
    pub(super) answered: Duration,
}

/// Counts and latencies of one step.
#[derive(Debug, Default)]
pub(super) struct Account {
    /// Answered before the step's end.
    pub(super) done: Operations,
    /// Answered after the step's end; their latencies count, and their number does not.
    pub(super) after_end: u64,
    /// Reads and updates whose document was not there.
    pub(super) misses: u64,
    /// Due before the step's end: each of them is in one of `done`, `after_end`, `given_up`,
    /// `unanswered` and `unsent`.
    pub(super) due: u64,
    /// Due before the step's end and never sent.
    pub(super) unsent: u64,
    /// Sent, and without an answer when nobody waited for it any more.
    pub(super) unanswered: u64,
    /// Reads that were sent once more, because their connection broke.
    pub(super) asked_again: u64,
    /// Requests that failed for good. They have no latency.
    pub(super) given_up: u64,
    /// Requests and attempts to connect that failed, by their kind.
    errors: BTreeMap<String, ProbeError>,
    /// Connections that were lost.
    pub(super) lost: u64,
    /// Connections that were opened again.
    pub(super) reopened: u64,
    /// From the moment a request was due to its answer.
    pub(super) latency: Latencies,
    /// From sending to the answer.
    pub(super) service: Latencies,
}

impl Account {
    /// Takes an answer in.
    pub(super) fn answered(&mut self, operation: Operation, at: Moments, end: Duration) {
        self.latency.add(at.answered.saturating_sub(at.intended));
        self.service.add(at.answered.saturating_sub(at.sent));
        if at.answered > end {
            self.after_end += 1;
            return;
        }
        match operation {
            Operation::Read => self.done.reads += 1,
            Operation::Insert => self.done.inserts += 1,
            Operation::Update => self.done.updates += 1,
        }
    }

    /// Takes a request in that was due and never sent: it had waited until the end, and would have
    /// waited longer.
    pub(super) fn unsent(&mut self, intended: Duration, end: Duration) {
        self.due += 1;
        self.unsent += 1;
        self.latency.add(end.saturating_sub(intended));
    }

    /// Takes a request in that was sent and has no answer: it has waited until now, and would have
    /// waited longer.
    pub(super) fn unanswered(&mut self, intended: Duration, now: Duration) {
        self.unanswered += 1;
        self.latency.add(now.saturating_sub(intended));
    }

    /// Takes a failure in.
    pub(super) fn failed(&mut self, failure: &Failure) {
        let kind = failure.kind();
        let entry = self.errors.entry(kind.clone()).or_insert_with(|| ProbeError {
            kind,
            count: 0,
            sample: failure.to_string(),
        });
        entry.count += 1;
    }

    /// The failures, the most frequent first.
    pub(super) fn errors(&self) -> Vec<ProbeError> {
        let mut errors: Vec<_> = self.errors.values().cloned().collect();
        errors.sort_by_key(|error| std::cmp::Reverse(error.count));
        errors
    }

    /// How many failures there were.
    pub(super) fn failures(&self) -> u64 {
        self.errors.values().map(|error| error.count).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that answers in a millisecond stands still for a second: a connection that asks a
    /// hundred times a second sends one slow request, and 99 others wait with it.
    #[test]
    fn a_stall_counts_for_all_that_waited_in_it() {
        let mut account = Account::default();
        let (end, millisecond) = (Duration::from_secs(10), Duration::from_millis(1));
        let mut free_at = Duration::ZERO;
        for number in 0..1000 {
            let intended = Duration::from_millis(10) * number;
            let sent = free_at.max(intended);
            let stalls =
                sent < Duration::from_secs(5) && sent + millisecond * 10 >= Duration::from_secs(5);
            let answered = if stalls { sent + Duration::from_secs(1) } else { sent + millisecond };
            free_at = answered;
            account.answered(Operation::Read, Moments { intended, sent, answered }, end);
        }
        let late = account.latency.quantiles();
        let sent = account.service.quantiles();
        assert!(sent.p99_seconds < 0.0015, "one request in 1000 hides the stall: {sent:?}");
        assert!((0.8..=1.0).contains(&late.p99_seconds), "{late:?}");
        assert!((0.0..0.2).contains(&late.p90_seconds), "a tenth waited: {late:?}");
        assert!((late.max_seconds - 1.0).abs() < 0.02 && late.count == 1000);
    }

    #[test]
    fn what_was_never_sent_has_waited_until_the_end() {
        let mut account = Account::default();
        account.unsent(Duration::from_secs(2), Duration::from_secs(10));
        assert_eq!((account.due, account.unsent), (1, 1));
        assert!((account.latency.quantiles().max_seconds - 8.0).abs() < 1e-9);
        assert_eq!(account.service.count(), 0);
    }

    #[test]
    fn what_has_no_answer_has_waited_as_long_as_that() {
        let mut account = Account::default();
        account.unanswered(Duration::from_secs(2), Duration::from_secs(12));
        assert_eq!((account.unanswered, account.latency.count()), (1, 1));
        assert!((account.latency.quantiles().max_seconds - 10.0).abs() < 1e-9);
        assert_eq!(account.service.count(), 0);
    }

    #[test]
    fn an_answer_after_the_end_is_no_throughput() {
        let mut account = Account::default();
        let at = |answered| Moments {
            intended: Duration::from_secs(9),
            sent: Duration::from_secs(9),
            answered: Duration::from_secs(answered),
        };
        account.answered(Operation::Update, at(10), Duration::from_secs(10));
        account.answered(Operation::Update, at(11), Duration::from_secs(10));
        assert_eq!((account.done.updates, account.after_end), (1, 1));
        assert_eq!(account.latency.count(), 2);
    }
}
