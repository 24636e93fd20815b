//! The checksum that ends a collection in an archive.

use std::fmt;

/// CRC-64 over the bytes of a collection's documents: polynomial 0x42F0E1EBA9EA3693, all bits set
/// at the start and inverted at the end, bits reflected; known as CRC-64/XZ.
#[derive(Clone)]
pub struct Checksum {
    digest: Option<crc64fast::Digest>,
}

impl Checksum {
    /// That of no document, which archives give as zero.
    pub fn new() -> Self {
        Self { digest: None }
    }

    /// Takes further bytes into account.
    pub fn update(&mut self, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.digest.get_or_insert_with(crc64fast::Digest::new).write(bytes);
        }
    }

    /// The sum so far.
    pub fn value(&self) -> u64 {
        self.digest.as_ref().map_or(0, crc64fast::Digest::sum64)
    }
}

impl fmt::Debug for Checksum {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Checksum({:016x})", self.value())
    }
}

impl Default for Checksum {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_crc_64_xz() {
        let mut checksum = Checksum::new();
        assert_eq!(checksum.value(), 0);
        checksum.update(b"12345");
        checksum.update(b"");
        checksum.update(b"6789");
        assert_eq!(checksum.value(), 0x995D_C9BB_DF19_39FA);
    }
}
