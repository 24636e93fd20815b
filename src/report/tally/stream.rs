//! The one stream that all documents come from, as far as progress depends on it.

use crate::report::rate::{UNFINISHED_SHARE_MAX, share};
use crate::report::tally::counts::Counts;

/// The one stream that all documents come from: an archive, or standard input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OneStream {
    /// Its size in bytes, compressed or not, where it is known.
    pub bytes: Option<u64>,
    /// Whether it is compressed.
    pub compressed: bool,
}

impl OneStream {
    /// The share that is done while documents still come; nothing where there is no telling.
    pub(super) fn fraction(self, counts: Counts) -> Option<f64> {
        let whole = self.bytes?;
        Some(share(counts.origin_bytes_acknowledged, whole).min(UNFINISHED_SHARE_MAX))
    }

    /// How many bytes all documents will have been, where there is any telling: for a plain stream
    /// hardly more than it has itself, for a compressed one by the ratio so far.
    pub(super) fn bytes_expected(self, counts: Counts) -> Option<u64> {
        let whole = self.bytes?;
        if !self.compressed {
            return Some(whole.max(counts.bytes_acknowledged));
        }
        let scaled = u128::from(whole) * u128::from(counts.bytes_acknowledged);
        let scaled = scaled.checked_div(counts.origin_bytes_acknowledged.into())?;
        u64::try_from(scaled).ok()
    }

    /// The bytes that are still to come, where there is any telling.
    pub(super) fn bytes_left(self, counts: Counts) -> Option<u64> {
        Some(self.bytes?.saturating_sub(counts.origin_bytes_acknowledged))
    }
}
