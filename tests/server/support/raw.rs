//! Documents put together byte by byte, for what no encoder writes any more.

/// A document of these fields.
pub(crate) fn document(fields: &[Vec<u8>]) -> Vec<u8> {
    let body = fields.concat();
    let length = u32::try_from(body.len() + 5).expect("documents are small");
    [&length.to_le_bytes()[..], &body, &[0]].concat()
}

/// A field of this BSON type with these bytes as its value.
pub(crate) fn field(kind: u8, name: &str, value: &[u8]) -> Vec<u8> {
    [&[kind], name.as_bytes(), &[0], value].concat()
}

/// A 32-bit integer.
pub(crate) fn int(name: &str, value: i32) -> Vec<u8> {
    field(0x10, name, &value.to_le_bytes())
}

/// A string.
pub(crate) fn string(name: &str, value: &str) -> Vec<u8> {
    field(0x02, name, &text(value))
}

/// A document inside a document.
pub(crate) fn nested(name: &str, document: &[u8]) -> Vec<u8> {
    field(0x03, name, document)
}

/// The timestamp that servers fill in.
pub(crate) fn zero(name: &str) -> Vec<u8> {
    field(0x11, name, &[0; 8])
}

/// A double of exactly these bits.
pub(crate) fn double(name: &str, bits: u64) -> Vec<u8> {
    field(0x01, name, &bits.to_le_bytes())
}

/// The value of a string, a symbol or code: its length with the terminator, the text, zero.
pub(crate) fn text(value: &str) -> Vec<u8> {
    let length = u32::try_from(value.len() + 1).expect("texts are small");
    [&length.to_le_bytes()[..], value.as_bytes(), &[0]].concat()
}
