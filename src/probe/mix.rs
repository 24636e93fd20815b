//! What is asked: reads, and inserts and updates among them.

use crate::error::{Error, ErrorKind};

/// One request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    /// A document is read by its `_id`.
    Read,
    /// A new document is inserted.
    Insert,
    /// A document is changed by its `_id`.
    Update,
}

/// The shares of inserts and updates among the requests; all others read.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Mix {
    inserts: f64,
    updates: f64,
}

impl Mix {
    /// These shares, each from 0 to 1.
    ///
    /// # Errors
    ///
    /// Where they are not, or are more than all.
    pub fn new(inserts: f64, updates: f64) -> Result<Self, Error> {
        let is_share = |share: &f64| (0.0..=1.0).contains(share);
        let all = [inserts, updates, inserts + updates];
        if !all.iter().all(is_share) {
            let message = "the shares of inserts and updates are each and together from 0 to 1";
            return Err(Error::new(ErrorKind::Usage, message)
                .hint("such as --insert 0.1 --update 0.2, which leaves 0.7 for reads"));
        }
        Ok(Self { inserts, updates })
    }

    /// The share of inserts.
    pub fn inserts(&self) -> f64 {
        self.inserts
    }

    /// The share of updates.
    pub fn updates(&self) -> f64 {
        self.updates
    }

    /// The share of reads.
    pub fn reads(&self) -> f64 {
        1.0 - self.inserts - self.updates
    }

    /// Whether anything is written.
    pub fn writes(&self) -> bool {
        self.inserts > 0.0 || self.updates > 0.0
    }

    /// The operation that a random share from 0 to 1 stands for.
    pub(super) fn at(&self, share: f64) -> Operation {
        if share < self.inserts {
            Operation::Insert
        } else if share < self.inserts + self.updates {
            Operation::Update
        } else {
            Operation::Read
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seed::random::SplitMix64;

    #[test]
    fn operations_come_in_their_shares() {
        let mix = Mix::new(0.1, 0.3).expect("shares");
        let mut random = SplitMix64::new(1);
        let drawn: Vec<_> = (0..10_000).map(|_| mix.at(random.unit())).collect();
        let count = |wanted| drawn.iter().filter(|one| **one == wanted).count();
        assert!((880..1120).contains(&count(Operation::Insert)));
        assert!((2800..3200).contains(&count(Operation::Update)));
        assert!((5800..6200).contains(&count(Operation::Read)));
    }

    #[test]
    fn reads_are_all_unless_said_otherwise() {
        let mix = Mix::default();
        assert!(!mix.writes() && mix.at(0.0) == Operation::Read);
        assert_eq!(Mix::new(1.0, 0.0).expect("shares").at(0.999), Operation::Insert);
    }

    #[test]
    fn more_than_all_is_refused() {
        for (inserts, updates) in [(0.6, 0.6), (-0.1, 0.0), (0.0, 1.1), (f64::NAN, 0.0)] {
            assert!(Mix::new(inserts, updates).is_err(), "{inserts} {updates}");
        }
    }
}
