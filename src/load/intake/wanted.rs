//! Which documents of a collection are read: all, or those that are not done yet.

use crate::plan::carried::RangeSet;

/// The documents that are wanted, asked for in their order.
#[derive(Debug)]
pub(super) struct Wanted {
    ranges: RangeSet,
    sense: Sense,
    /// The byte up to which the last answer holds.
    border: u64,
}

/// What the ranges mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sense {
    /// What lies in them is left out.
    AllBut,
    /// Only what lies in them is read.
    Only,
}

/// What is done at a byte where a document begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The document is read.
    Read,
    /// It goes on at this byte.
    Skip(u64),
    /// Nothing more is wanted.
    End,
}

impl Wanted {
    /// All documents but those that begin in these ranges.
    pub(super) fn all_but(ranges: RangeSet) -> Self {
        Self { ranges, sense: Sense::AllBut, border: 0 }
    }

    /// Only the documents that begin in these ranges.
    pub(super) fn only(ranges: RangeSet) -> Self {
        Self { ranges, sense: Sense::Only, border: 0 }
    }

    /// What is done with the document that begins at this byte.
    #[inline]
    pub(super) fn step(&mut self, byte: u64) -> Step {
        if byte < self.border { Step::Read } else { self.look(byte) }
    }

    fn look(&mut self, byte: u64) -> Step {
        let (wanted, left_out) = match self.sense {
            Sense::AllBut => (self.ranges.gap_around(byte), self.ranges.around(byte)),
            Sense::Only => (self.ranges.around(byte), self.ranges.gap_around(byte)),
        };
        match (wanted, left_out) {
            (Some(wanted), _) => {
                self.border = wanted.end;
                Step::Read
            }
            (None, Some(left_out)) if left_out.end < u64::MAX => Step::Skip(left_out.end),
            (None, _) => Step::End,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranges() -> RangeSet {
        let mut ranges = RangeSet::default();
        ranges.insert(10..20);
        ranges.insert(40..50);
        ranges
    }

    #[test]
    fn what_is_done_is_passed_over() {
        let mut wanted = Wanted::all_but(ranges());
        for (byte, step) in [
            (0, Step::Read),
            (9, Step::Read),
            (10, Step::Skip(20)),
            (20, Step::Read),
            (41, Step::Skip(50)),
            (50, Step::Read),
            (u64::MAX - 1, Step::Read),
        ] {
            assert_eq!(wanted.step(byte), step, "{byte}");
        }
        assert_eq!(Wanted::all_but(RangeSet::default()).step(7), Step::Read);
    }

    #[test]
    fn only_what_is_asked_for_is_read() {
        let mut wanted = Wanted::only(ranges());
        for (byte, step) in [
            (0, Step::Skip(10)),
            (10, Step::Read),
            (19, Step::Read),
            (20, Step::Skip(40)),
            (40, Step::Read),
            (50, Step::End),
        ] {
            assert_eq!(wanted.step(byte), step, "{byte}");
        }
    }
}
