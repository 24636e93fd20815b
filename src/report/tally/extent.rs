//! How much there is to do in a run, and how much of it is done.

use super::{CollectionTally, State, Tally};
use crate::limits::INDEX_WEIGHT;
use crate::report::rate::{UNFINISHED_SHARE_MAX, share};

impl Tally {
    /// The share of the run that is done, where there is any telling.
    pub fn fraction_known(&self) -> Option<f64> {
        let is_known = self.stream.is_none_or(|stream| stream.bytes.is_some());
        (is_known && !self.is_endless()).then(|| self.fraction())
    }

    /// The share of the run that is done: 0 to 1, and 1 only when everything is done.
    ///
    /// Documents count by the bytes of the files that the server has answered for. Each index
    /// counts as [`INDEX_WEIGHT`] of its collection's documents.
    pub fn fraction(&self) -> f64 {
        let is_done = |tally: &CollectionTally| tally.state == State::Done;
        if self.has_ended() && self.collections.iter().all(is_done) {
            return 1.0;
        }
        let data = match self.stream {
            Some(stream) => stream.fraction(self.counts).unwrap_or(0.0),
            None => share(self.origin_bytes_done, self.origin_bytes),
        };
        let (planned, done) = self.index_work();
        ((data + done) / (1.0 + planned)).min(UNFINISHED_SHARE_MAX)
    }

    /// The work of all indexes and what of it is done, both as shares of the work of all documents.
    #[expect(clippy::cast_precision_loss, reason = "shares are shown with a few digits")]
    fn index_work(&self) -> (f64, f64) {
        let (mut bytes, mut planned, mut done) = (0.0, 0.0, 0.0);
        for tally in &self.collections {
            // Of one stream it is known only in the end how large each collection is.
            let size = match self.stream {
                Some(_) => tally.counts.bytes_acknowledged as f64,
                None => tally.planned.origin_bytes as f64,
            };
            let indexes = tally.planned.indexes as f64;
            bytes += size;
            planned += size * indexes;
            done += size * tally.indexes_done().min(indexes);
        }
        if bytes == 0.0 {
            (0.0, 0.0)
        } else {
            (INDEX_WEIGHT * planned / bytes, INDEX_WEIGHT * done / bytes)
        }
    }

    /// Whether documents come of which nobody knows how many there will be, such as those that are
    /// made until a time is over.
    pub(super) fn is_endless(&self) -> bool {
        self.stream.is_none()
            && self.collections.iter().any(|tally| {
                let planned = tally.planned.origin_bytes;
                planned == 0
                    && tally.counts.origin_bytes_acknowledged > 0
                    && tally.data_ended.is_none()
            })
    }

    /// How many bytes all documents will have been, uncompressed, where there is any telling: exact
    /// for plain files, and for compressed ones by the ratio of what was read of them so far.
    pub fn bytes_expected(&self) -> Option<u64> {
        if let Some(stream) = self.stream {
            return stream.bytes_expected(self.counts);
        }
        if self.is_endless() {
            return None;
        }
        let compressed = self.collections.iter().filter(|tally| tally.planned.compressed);
        let (bytes, origin_bytes) = compressed.fold((0, 0), |(bytes, origin_bytes), tally| {
            let counts = tally.counts;
            let origin_bytes = origin_bytes + counts.origin_bytes_acknowledged;
            (bytes + counts.bytes_acknowledged, origin_bytes)
        });
        let expected = |tally: &CollectionTally| {
            let (planned, counts) = (&tally.planned, tally.counts);
            if tally.data_ended.is_some() {
                counts.bytes_acknowledged
            } else if !planned.compressed {
                planned.origin_bytes
            } else if counts.origin_bytes_acknowledged > 0 {
                let acknowledged = (counts.bytes_acknowledged, counts.origin_bytes_acknowledged);
                scale(planned.origin_bytes, acknowledged)
            } else {
                scale(planned.origin_bytes, (bytes, origin_bytes))
            }
        };
        Some(self.collections.iter().map(expected).sum())
    }
}

/// Bytes of a compressed file in documents' bytes, by what the acknowledged part came to.
fn scale(origin_bytes: u64, (acknowledged, origin_acknowledged): (u64, u64)) -> u64 {
    if origin_acknowledged == 0 {
        return origin_bytes;
    }
    let scaled =
        u128::from(origin_bytes) * u128::from(acknowledged) / u128::from(origin_acknowledged);
    u64::try_from(scaled).unwrap_or(u64::MAX)
}
