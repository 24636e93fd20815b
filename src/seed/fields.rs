//! Writes the fields of a BSON document where it will lie.

use super::length;

/// A document that is being appended to a buffer.
///
/// A field is given by its head: the type byte of the specification (<https://bsonspec.org>), the
/// name and its terminator, all known when the program is compiled.
#[derive(Debug)]
pub(super) struct Fields<'a> {
    out: &'a mut Vec<u8>,
}

impl<'a> Fields<'a> {
    /// Appends a whole document whose fields the closure writes.
    pub(super) fn document(out: &'a mut Vec<u8>, write: impl FnOnce(&mut Fields<'_>)) {
        let start = out.len();
        out.extend_from_slice(&[0; 4]);
        write(&mut Fields { out: &mut *out });
        out.push(0);
        let length = length(out.len() - start);
        out[start..start + 4].copy_from_slice(&length);
    }

    /// A value of fixed size, as its little-endian bytes.
    pub(super) fn value<const N: usize>(&mut self, head: &'static [u8], value: [u8; N]) {
        self.out.extend_from_slice(head);
        self.out.extend_from_slice(&value);
    }

    /// A string, in parts that are joined.
    pub(super) fn string<const N: usize>(&mut self, head: &'static [u8], parts: [&str; N]) {
        self.out.extend_from_slice(head);
        let bytes: usize = parts.iter().map(|part| part.len()).sum();
        self.out.extend_from_slice(&length(bytes + 1));
        for part in parts {
            self.out.extend_from_slice(part.as_bytes());
        }
        self.out.push(0);
    }

    /// Binary data of the generic subtype, which the closure fills.
    pub(super) fn binary(
        &mut self,
        head: &'static [u8],
        bytes: usize,
        fill: impl FnOnce(&mut [u8]),
    ) {
        self.out.extend_from_slice(head);
        self.out.extend_from_slice(&length(bytes));
        self.out.push(0);
        let start = self.out.len();
        self.out.resize(start + bytes, 0);
        fill(&mut self.out[start..]);
    }

    /// A document or an array.
    pub(super) fn nested(&mut self, head: &'static [u8], write: impl FnOnce(&mut Fields<'_>)) {
        self.out.extend_from_slice(head);
        Fields::document(self.out, write);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::doc;

    #[test]
    fn the_bytes_are_those_of_the_bson_library() {
        let mut out = vec![0xAA];
        Fields::document(&mut out, |fields| {
            fields.value(b"\x10n\0", 7_i32.to_le_bytes());
            fields.string(b"\x02s\0", ["ab", "", "c"]);
            fields.nested(b"\x03d\0", |inner| inner.value(b"\x0Az\0", []));
            fields.nested(b"\x04a\0", |inner| inner.value(b"\x080\0", [1]));
            fields.binary(b"\x05b\0", 3, |bytes| bytes.copy_from_slice(b"xyz"));
        });
        let data =
            bson::Binary { subtype: bson::spec::BinarySubtype::Generic, bytes: b"xyz".into() };
        let expected = doc! { "n": 7, "s": "abc", "d": { "z": null }, "a": [true], "b": data };
        assert_eq!(out[1..], expected.to_vec().expect("encodes"));
    }
}
