//! Documents of binary data, of any size that a server stores.

use super::{Fields, SplitMix64};
use crate::limits::DOCUMENT_BYTES_USER_MAX;

/// The bytes of a document beside its data: length, `_id`, `bytes`, the head of `data`, terminator.
const FRAME_BYTES: u32 = 4 + 17 + 11 + 11 + 1;

/// The smallest and the largest size of a document, in bytes; all between them are as likely.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BlobBytes {
    min: u32,
    max: u32,
}

impl Default for BlobBytes {
    /// 64 KiB each: between what is stored by the thousand and what travels alone.
    fn default() -> Self {
        Self { min: 64 << 10, max: 64 << 10 }
    }
}

impl BlobBytes {
    /// Sizes from `min` to `max`.
    ///
    /// Errors: in words, where the first is above the second, or a document could not be so small
    /// or a server would not store it.
    pub fn between(min: u64, max: u64) -> Result<Self, String> {
        let whole = |bytes: u64| {
            let possible = u64::from(FRAME_BYTES)..=DOCUMENT_BYTES_USER_MAX as u64;
            u32::try_from(bytes).ok().filter(|_| possible.contains(&bytes)).ok_or_else(|| {
                format!("a document has {FRAME_BYTES} to {DOCUMENT_BYTES_USER_MAX} bytes")
            })
        };
        let (min, max) = (whole(min)?, whole(max)?);
        if min > max {
            return Err("the smallest size comes first".to_owned());
        }
        Ok(Self { min, max })
    }

    /// Two documents of the average size together.
    pub(in crate::seed) fn of_two(self) -> u64 {
        u64::from(self.min) + u64::from(self.max)
    }
}

pub(super) fn append(fields: &mut Fields<'_>, sizes: BlobBytes, random: &mut SplitMix64) {
    let bytes = sizes.min + random.below(sizes.max - sizes.min + 1);
    fields.value(b"\x10bytes\0", bytes.to_le_bytes());
    let data = (bytes - FRAME_BYTES) as usize;
    fields.binary(b"\x05data\0", data, |data| random.fill(data));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seed::{Generator, Shape};
    use bson::Document;

    #[test]
    fn documents_have_the_sizes_that_are_asked_for() {
        let largest = DOCUMENT_BYTES_USER_MAX as u64;
        for (min, max) in [(44, 44), (44, 60), (1000, 2000), (largest, largest)] {
            let sizes = BlobBytes::between(min, max).expect("possible");
            let generator = Generator::new(Shape::Blob(sizes), 1, 1);
            let mut seen = std::collections::BTreeSet::new();
            for number in 0..if max > 1_000_000 { 1 } else { 200 } {
                let mut out = Vec::new();
                generator.append(number, &mut out);
                assert!((min..=max).contains(&(out.len() as u64)), "{} bytes", out.len());
                let tree = Document::from_reader(&out[..]).expect("decodes");
                assert_eq!(tree.get_i32("bytes").ok(), i32::try_from(out.len()).ok());
                seen.insert(out.len());
            }
            assert!(min == max || seen.len() > 10, "{seen:?}");
        }
    }

    #[test]
    fn sizes_that_no_document_has_are_refused() {
        for (min, max) in [(43, 100), (200, 100), (1, 16 * 1024 * 1024 + 1)] {
            assert!(BlobBytes::between(min, max).is_err(), "{min} to {max}");
        }
    }
}
