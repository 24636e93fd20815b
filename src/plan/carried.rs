//! What an earlier run has brought to the target already, so that it is not sent again.

use std::ops::Range;

use crate::changes::Changes;

/// Stretches of bytes that neither overlap nor touch, in ascending order.
///
/// The bytes are those of one collection's documents in the order of the dump, uncompressed: for a
/// file of its own the file's content, for an archive the collection's documents alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RangeSet {
    ranges: Vec<Range<u64>>,
}

impl RangeSet {
    /// Adds a stretch, joined with those that it overlaps or touches.
    pub fn insert(&mut self, added: Range<u64>) {
        if added.is_empty() {
            return;
        }
        let first = self.ranges.partition_point(|range| range.end < added.start);
        let behind = self.ranges.partition_point(|range| range.start <= added.end);
        let joined = self.ranges[first..behind]
            .iter()
            .fold(added, |joined, range| joined.start.min(range.start)..joined.end.max(range.end));
        self.ranges.splice(first..behind, [joined]);
    }

    /// The stretch that this byte lies in.
    pub fn around(&self, byte: u64) -> Option<Range<u64>> {
        let place = self.ranges.partition_point(|range| range.end <= byte);
        self.ranges.get(place).filter(|range| range.start <= byte).cloned()
    }

    /// The stretch that this byte does not lie in: up to the next one that is held, or without an
    /// end.
    pub fn gap_around(&self, byte: u64) -> Option<Range<u64>> {
        let place = self.ranges.partition_point(|range| range.end <= byte);
        let start = place.checked_sub(1).map_or(0, |before| self.ranges[before].end);
        let end = self.ranges.get(place).map_or(u64::MAX, |range| range.start);
        (start..end).contains(&byte).then_some(start..end)
    }

    /// The bytes held.
    pub fn bytes(&self) -> u64 {
        self.ranges.iter().map(|range| range.end - range.start).sum()
    }

    /// Whether nothing is held.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The stretches in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = Range<u64>> {
        self.ranges.iter().cloned()
    }
}

/// How long the files are that keep the refused documents of a collection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RejectsLength {
    /// Bytes of the file of documents.
    pub documents: u64,
    /// Bytes of the file of reasons.
    pub lines: u64,
}

/// What an earlier run has brought of one collection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Carried {
    /// The stretches of its bytes that are durably on the target, or refused for good.
    pub ranges: RangeSet,
    /// Documents that the server took.
    pub inserted: u64,
    /// What became of those that found a stored one.
    pub changes: Changes,
    /// Documents that were there already, byte for byte the same.
    pub already_there: u64,
    /// Documents that were refused.
    pub rejected: u64,
    /// Documents of these whose `_id` another document was found to have.
    pub conflicts: u64,
    /// How long the files of refused documents were when the last of these was done.
    pub rejects: RejectsLength,
}

impl Carried {
    /// Documents that were read and answered for.
    pub fn documents(&self) -> u64 {
        self.inserted + self.changes.documents() + self.already_there + self.rejected
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn set(ranges: &[Range<u64>]) -> RangeSet {
        let mut set = RangeSet::default();
        ranges.iter().cloned().for_each(|range| set.insert(range));
        set
    }

    #[test]
    fn stretches_that_touch_are_one() {
        let joined = set(&[0..5, 10..15, 5..10, 7..7]);
        assert_eq!(
            joined.iter().map(|range| (range.start, range.end)).collect::<Vec<_>>(),
            [(0, 15)]
        );
        assert_eq!(set(&[10..20, 0..5]).iter().collect::<Vec<_>>(), [0..5, 10..20]);
    }

    #[test]
    fn a_byte_lies_in_a_stretch_or_in_a_gap() {
        let set = set(&[10..20, 30..40]);
        for (byte, around, gap) in [
            (0, None, Some(0..10)),
            (10, Some(10..20), None),
            (19, Some(10..20), None),
            (20, None, Some(20..30)),
            (40, None, Some(40..u64::MAX)),
        ] {
            assert_eq!(set.around(byte), around, "{byte}");
            assert_eq!(set.gap_around(byte), gap, "{byte}");
        }
    }

    proptest! {
        #[test]
        fn a_set_holds_the_bytes_that_were_added(
            added in prop::collection::vec((0_u64..60, 0_u64..12), 0..20),
        ) {
            let ranges: Vec<_> = added.iter().map(|&(start, length)| start..start + length).collect();
            let set = set(&ranges);
            for byte in 0..80 {
                let is_held = ranges.iter().any(|range| range.contains(&byte));
                prop_assert_eq!(set.around(byte).is_some(), is_held);
                prop_assert_eq!(set.gap_around(byte).is_none(), is_held);
            }
            let held: Vec<_> = set.iter().collect();
            prop_assert!(held.windows(2).all(|pair| pair[0].end < pair[1].start));
        }
    }
}
