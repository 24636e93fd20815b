//! What of a dump is lost where a restore reads around damage.

use serde::Serialize;

use crate::limits::LOST_STRETCHES_LISTED;

/// A stretch of bytes of a dump that is lost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LostStretch {
    /// The file.
    pub file: String,
    /// Its first byte, in the uncompressed content.
    pub from: u64,
    /// The byte behind its last one; nothing where the rest of the file cannot be read.
    pub to: Option<u64>,
    /// The bytes that were passed over, and kept aside where there was room.
    pub bytes: u64,
    /// What is wrong with it; a sentence without its final period.
    pub reason: String,
}

/// All that is lost of one collection, or outside any.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Lost {
    /// How many stretches.
    pub count: u64,
    /// Their bytes, uncompressed.
    pub bytes: u64,
    /// The first of them.
    pub stretches: Vec<LostStretch>,
}

impl Lost {
    /// Takes another stretch into account.
    pub fn add(&mut self, stretch: &LostStretch) {
        self.count += 1;
        self.bytes += stretch.bytes;
        if self.stretches.len() < LOST_STRETCHES_LISTED {
            self.stretches.push(stretch.clone());
        }
    }

    /// Stretches beyond those that are listed.
    pub fn unlisted(&self) -> u64 {
        self.count.saturating_sub(self.stretches.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_stretches_count_and_the_first_are_listed() {
        let mut lost = Lost::default();
        for from in 0..LOST_STRETCHES_LISTED as u64 + 7 {
            let to = Some(from + 3);
            let (file, reason) = ("a".to_owned(), "b".to_owned());
            lost.add(&LostStretch { file, from, to, bytes: 3, reason });
        }
        assert_eq!(lost.stretches.len(), LOST_STRETCHES_LISTED);
        assert_eq!((lost.unlisted(), lost.bytes), (7, 3 * lost.count));
    }
}
