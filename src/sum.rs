//! A sum over documents that does not depend on their order.
//!
//! Two sides hold the same documents if their sums are the same: each document counts with the
//! XXH3-128 of its bytes, added modulo 2^128, so that documents may come in any order, from many
//! threads, and be taken out again. It finds accidents, not somebody who forges documents.

use twox_hash::XxHash3_128;

/// The number of documents, their bytes and the sum of their hashes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DocumentSum {
    /// How many documents there are.
    pub documents: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The sum of their hashes modulo 2^128.
    pub hash: u128,
}

/// The hash of one document, or of whatever else is told apart by its bytes.
#[inline]
pub fn hash(bytes: &[u8]) -> u128 {
    XxHash3_128::oneshot(bytes)
}

impl DocumentSum {
    /// Adds a document.
    #[inline]
    pub fn add(&mut self, document: &[u8]) {
        self.add_hashed(document.len() as u64, hash(document));
    }

    /// Adds a document of so many bytes by its hash.
    #[inline]
    pub fn add_hashed(&mut self, bytes: u64, hash: u128) {
        self.documents = self.documents.wrapping_add(1);
        self.bytes = self.bytes.wrapping_add(bytes);
        self.hash = self.hash.wrapping_add(hash);
    }

    /// Adds the documents of another sum.
    pub fn join(&mut self, other: &Self) {
        self.documents = self.documents.wrapping_add(other.documents);
        self.bytes = self.bytes.wrapping_add(other.bytes);
        self.hash = self.hash.wrapping_add(other.hash);
    }

    /// Takes documents out that were added, now or later.
    pub fn take_out(&mut self, other: &Self) {
        self.documents = self.documents.wrapping_sub(other.documents);
        self.bytes = self.bytes.wrapping_sub(other.bytes);
        self.hash = self.hash.wrapping_sub(other.hash);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sum<'a>(documents: impl IntoIterator<Item = &'a Vec<u8>>) -> DocumentSum {
        let mut sum = DocumentSum::default();
        documents.into_iter().for_each(|document| sum.add(document));
        sum
    }

    #[test]
    fn the_hash_is_that_of_the_specification() {
        // XXH3_128bits of no bytes and seed 0, from the reference implementation's test vectors.
        assert_eq!(hash(b""), 0x99aa_06d3_0147_98d8_6001_c324_468d_497f);
    }

    proptest! {
        #[test]
        fn the_order_does_not_matter_and_nothing_else_is_the_same(
            documents in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 1..20),
            cut in any::<prop::sample::Index>(),
            at in any::<prop::sample::Index>(),
        ) {
            let whole = sum(&documents);
            prop_assert_eq!(sum(documents.iter().rev()), whole);
            let (one, other) = documents.split_at(cut.index(documents.len()));
            let mut joined = sum(other);
            joined.join(&sum(one));
            prop_assert_eq!(joined, whole);
            let mut changed = documents.clone();
            changed[at.index(documents.len())].push(7);
            prop_assert_ne!(sum(&changed), whole);
            changed.remove(at.index(documents.len()));
            prop_assert_ne!(sum(&changed).hash, whole.hash);
        }

        #[test]
        fn what_is_taken_out_was_never_there(
            documents in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..20),
            cut in any::<prop::sample::Index>(),
        ) {
            let (kept, refused) = documents.split_at(cut.index(documents.len() + 1));
            let mut early = DocumentSum::default();
            early.take_out(&sum(refused));
            early.join(&sum(&documents));
            prop_assert_eq!(early, sum(kept));
        }
    }
}
