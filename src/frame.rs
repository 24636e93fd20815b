//! One BSON document as checked bytes.
//!
//! A frame is a length prefix and that many bytes, as the BSON specification lays a document out
//! (<https://bsonspec.org/spec.html>). Nothing here builds a value: fields are walked over where
//! they lie. Lengths are little-endian and count themselves.

use crate::limits::{DOCUMENT_BYTES_MAX, DOCUMENT_BYTES_MIN, NESTING_MAX};

/// The BSON type of a timestamp, which servers treat specially when it is zero.
const TIMESTAMP: u8 = 0x11;

/// What is wrong with the bytes of a document.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The length prefix is below the five bytes of an empty document.
    #[error("a document claims {0} bytes, fewer than the 5 of an empty one")]
    TooShort(i32),
    /// The length prefix is above what a server stores.
    #[error("a document claims {0} bytes, more than the 16 MiB a server stores")]
    TooLong(i32),
    /// The last byte is not zero.
    #[error("a document does not end in a zero byte")]
    Unterminated,
    /// A field lies, by its own length or its type, outside its document.
    #[error("a document is damaged {at} bytes in: {what}")]
    Damaged {
        /// How far into the document.
        at: usize,
        /// What is wrong there.
        what: &'static str,
    },
}

/// Reads the length prefix of a document and judges it; needs its first four bytes.
pub fn length(prefix: [u8; 4]) -> Result<usize, FrameError> {
    let claimed = i32::from_le_bytes(prefix);
    match usize::try_from(claimed) {
        Ok(length) if length < DOCUMENT_BYTES_MIN => Err(FrameError::TooShort(claimed)),
        Ok(length) if length > DOCUMENT_BYTES_MAX => Err(FrameError::TooLong(claimed)),
        Ok(length) => Ok(length),
        Err(_) => Err(FrameError::TooShort(claimed)),
    }
}

/// One document's bytes, whose length prefix and terminator have been checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    bytes: &'a [u8],
}

impl<'a> Frame<'a> {
    /// The frame of exactly these bytes.
    pub fn new(bytes: &'a [u8]) -> Result<Self, FrameError> {
        let Some(prefix) = bytes.first_chunk::<4>() else {
            return Err(FrameError::Damaged { at: 0, what: "no length prefix" });
        };
        if length(*prefix)? != bytes.len() {
            return Err(FrameError::Damaged { at: 0, what: "the length prefix is wrong" });
        }
        if bytes.last() != Some(&0) {
            return Err(FrameError::Unterminated);
        }
        Ok(Self { bytes })
    }

    /// The document's bytes, length prefix and terminator included.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Whether the first field is `_id`, as in every document a server has stored.
    pub fn starts_with_id(&self) -> bool {
        self.bytes.get(5..9) == Some(b"_id\0")
    }

    /// The document's top-level fields in their order.
    pub fn fields(&self) -> Fields<'a> {
        Fields { bytes: self.bytes, at: 4, end: self.bytes.len() - 1 }
    }

    /// The `_id` field, wherever it stands.
    pub fn id(&self) -> Option<Field<'a>> {
        self.fields().map_while(Result::ok).find(|field| field.name == b"_id")
    }

    /// Whether a top-level field other than `_id` is the zero timestamp, which servers without
    /// `bypassEmptyTsReplacement` replace by the time of day on insert.
    ///
    /// A scan for the type's byte answers most documents without a walk.
    pub fn has_zero_timestamp(&self) -> bool {
        memchr::memchr(TIMESTAMP, self.bytes).is_some()
            && self.fields().map_while(Result::ok).any(|field| {
                field.kind == TIMESTAMP && field.value == [0; 8] && field.name != b"_id"
            })
    }

    /// Checks the structure of the whole document: every field's type, name and extent, down to
    /// the deepest level. Values are not interpreted beyond that.
    pub fn validate(&self) -> Result<(), FrameError> {
        validate_level(self.bytes, 0, self.bytes.len(), NESTING_MAX)
    }
}

/// One field of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field<'a> {
    /// The BSON type byte.
    pub kind: u8,
    /// The name, without its terminator; usually UTF-8.
    pub name: &'a [u8],
    /// The value's bytes, without type and name.
    pub value: &'a [u8],
}

/// Walks over the fields of one level of a document.
#[derive(Clone, Debug)]
pub struct Fields<'a> {
    bytes: &'a [u8],
    at: usize,
    end: usize,
}

impl<'a> Fields<'a> {
    fn read(&mut self) -> Result<Field<'a>, FrameError> {
        let start = self.at;
        let damaged = |at, what| FrameError::Damaged { at, what };
        let kind = self.bytes[start];
        let rest = &self.bytes[start + 1..self.end];
        let name_length =
            rest.iter().position(|&byte| byte == 0).ok_or(damaged(start, "a name without end"))?;
        let value_at = start + 1 + name_length + 1;
        let value_length = value_length(kind, &self.bytes[value_at..self.end])
            .map_err(|what| damaged(start, what))?;
        self.at = value_at + value_length;
        Ok(Field {
            kind,
            name: &rest[..name_length],
            value: &self.bytes[value_at..value_at + value_length],
        })
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<Field<'a>, FrameError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.at >= self.end {
            return None;
        }
        let field = self.read();
        if field.is_err() {
            self.at = self.end;
        }
        Some(field)
    }
}

/// Whether a byte is the type of a field.
pub fn is_kind(byte: u8) -> bool {
    matches!(byte, 0x01..=0x13 | 0x7F | 0xFF)
}

/// How many of the bytes belong to a value of this type; the types are those of the specification,
/// deprecated ones included.
fn value_length(kind: u8, bytes: &[u8]) -> Result<usize, &'static str> {
    let length = match kind {
        // undefined, null, min key, max key
        0x06 | 0x0A | 0xFF | 0x7F => 0,
        // boolean
        0x08 => 1,
        // 32-bit integer
        0x10 => 4,
        // double, date, timestamp, 64-bit integer
        0x01 | 0x09 | 0x11 | 0x12 => 8,
        // object id
        0x07 => 12,
        // decimal
        0x13 => 16,
        // string, code, symbol
        0x02 | 0x0D | 0x0E => counted(bytes, 1, 4)?,
        // document, array, code with scope: their length counts itself
        0x03 | 0x04 | 0x0F => counted(bytes, 5, 0)?,
        // binary: its length leaves out itself and the subtype
        0x05 => counted(bytes, 0, 5)?,
        // pointer: a string and an object id
        0x0C => counted(bytes, 1, 4 + 12)?,
        // regular expression: two names
        0x0B => regex_length(bytes).ok_or("a regular expression without end")?,
        _ => return Err("an unknown type"),
    };
    if length > bytes.len() {
        return Err("a value reaches beyond its document");
    }
    Ok(length)
}

/// The extent of a value that begins with its length, which is at least `least`, plus what its
/// length does not count.
fn counted(bytes: &[u8], least: usize, uncounted: usize) -> Result<usize, &'static str> {
    let prefix = bytes.first_chunk::<4>().ok_or("a value cut off in its length")?;
    let length = usize::try_from(i32::from_le_bytes(*prefix)).map_err(|_| "a negative length")?;
    if length < least {
        return Err("a length too small for its type");
    }
    Ok(length.saturating_add(uncounted))
}

fn regex_length(bytes: &[u8]) -> Option<usize> {
    let pattern = bytes.iter().position(|&byte| byte == 0)? + 1;
    let options = bytes[pattern..].iter().position(|&byte| byte == 0)? + 1;
    Some(pattern + options)
}

/// Checks the document that lies at `start..end` of `bytes`.
fn validate_level(
    bytes: &[u8],
    start: usize,
    end: usize,
    levels_left: usize,
) -> Result<(), FrameError> {
    let damaged = |what| FrameError::Damaged { at: start, what };
    if levels_left == 0 {
        return Err(damaged("nested deeper than a server accepts"));
    }
    let claimed = bytes[start..end].first_chunk::<4>().map(|prefix| i32::from_le_bytes(*prefix));
    if claimed.and_then(|length| usize::try_from(length).ok()) != Some(end - start)
        || end - start < DOCUMENT_BYTES_MIN
    {
        return Err(damaged("a length prefix that does not fit"));
    }
    if bytes[end - 1] != 0 {
        return Err(damaged("a nested document without end"));
    }
    let mut fields = Fields { bytes, at: start + 4, end: end - 1 };
    while let Some(field) = fields.next() {
        let field = field?;
        let value_at = fields.at - field.value.len();
        validate_value(bytes, &field, value_at, levels_left)?;
    }
    Ok(())
}

fn validate_value(
    bytes: &[u8],
    field: &Field<'_>,
    at: usize,
    levels_left: usize,
) -> Result<(), FrameError> {
    let damaged = |what| Err(FrameError::Damaged { at, what });
    let value = field.value;
    match field.kind {
        0x08 if value[0] > 1 => damaged("a boolean that is neither true nor false"),
        0x02 | 0x0D | 0x0E if value.last() != Some(&0) => damaged("a string without end"),
        0x03 | 0x04 => validate_level(bytes, at, at + value.len(), levels_left - 1),
        0x0C if value[value.len() - 13] != 0 => damaged("a string without end"),
        0x0F => validate_scope(bytes, value, at, levels_left),
        _ => Ok(()),
    }
}

/// Code with scope is its own length, a string and a document.
fn validate_scope(
    bytes: &[u8],
    value: &[u8],
    at: usize,
    levels_left: usize,
) -> Result<(), FrameError> {
    let damaged = |what| FrameError::Damaged { at, what };
    let inside = value.get(4..).ok_or(damaged("code with scope cut off"))?;
    let code = counted(inside, 1, 4).map_err(damaged)?;
    if code > inside.len() || inside[code - 1] != 0 {
        return Err(damaged("code without end"));
    }
    if inside.len() - code < DOCUMENT_BYTES_MIN {
        return Err(damaged("code without its scope"));
    }
    validate_level(bytes, at + 4 + code, at + value.len(), levels_left - 1)
}

/// The key of an array's element, its decimal index, counted up in place.
#[derive(Debug)]
pub struct ElementKey {
    digits: [u8; Self::DIGITS],
    start: usize,
}

impl Default for ElementKey {
    /// That of the first element.
    fn default() -> Self {
        Self { digits: [b'0'; Self::DIGITS], start: Self::DIGITS - 1 }
    }
}

impl ElementKey {
    /// As many as the count of elements has that the largest document holds.
    const DIGITS: usize = 10;

    /// Its digits.
    pub fn text(&self) -> &[u8] {
        &self.digits[self.start..]
    }

    /// Goes on to the next element.
    pub fn increment(&mut self) {
        for at in (0..Self::DIGITS).rev() {
            if self.digits[at] < b'9' {
                self.digits[at] += 1;
                self.start = self.start.min(at);
                return;
            }
            self.digits[at] = b'0';
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::{doc, raw::RawDocumentBuf, spec::BinarySubtype};
    use proptest::prelude::*;

    fn bytes(document: &bson::Document) -> Vec<u8> {
        document.to_vec().expect("encodes")
    }

    fn every_type() -> bson::Document {
        doc! {
            "_id": bson::oid::ObjectId::from_bytes([0x11; 12]),
            "double": 1.5, "string": "text", "document": { "a": [1, { "b": null }] },
            "binary": bson::Binary { subtype: BinarySubtype::Generic, bytes: vec![1, 2, 3] },
            "undefined": bson::Bson::Undefined, "boolean": true,
            "date": bson::DateTime::from_millis(0),
            "regex": bson::Regex {
                pattern: bson::raw::cstr!("a.*").to_owned(),
                options: bson::raw::cstr!("i").to_owned(),
            },
            "code": bson::Bson::JavaScriptCode("f()".into()),
            "symbol": bson::Bson::Symbol("s".into()),
            "scoped": bson::JavaScriptCodeWithScope { code: "g()".into(), scope: doc! { "x": 1 } },
            "int": 1, "timestamp": bson::Timestamp { time: 1, increment: 2 }, "long": 1_i64,
            "min": bson::Bson::MinKey, "max": bson::Bson::MaxKey,
        }
    }

    #[test]
    fn every_type_is_walked_and_valid() {
        let document = every_type();
        let bytes = bytes(&document);
        let frame = Frame::new(&bytes).expect("a frame");
        frame.validate().expect("valid");
        let names: Vec<_> = frame.fields().map(|field| field.expect("a field").name).collect();
        let expected: Vec<_> = document.keys().map(String::as_bytes).collect();
        assert_eq!(names, expected);
        assert!(frame.starts_with_id());
    }

    #[test]
    fn a_pointer_is_walked() {
        // A DBPointer has no constructor: name "p", string "c", twelve bytes, then an int "n".
        let mut bytes = vec![0, 0, 0, 0, 0x0C, b'p', 0, 2, 0, 0, 0, b'c', 0];
        bytes.extend([7; 12]);
        bytes.extend([0x10, b'n', 0, 1, 0, 0, 0, 0]);
        let length = u32::try_from(bytes.len()).expect("short");
        bytes[..4].copy_from_slice(&length.to_le_bytes());
        let frame = Frame::new(&bytes).expect("a frame");
        frame.validate().expect("valid");
        assert_eq!(frame.fields().count(), 2);
    }

    #[test]
    fn lengths_are_judged() {
        assert_eq!(length(4_i32.to_le_bytes()), Err(FrameError::TooShort(4)));
        assert_eq!(length((-1_i32).to_le_bytes()), Err(FrameError::TooShort(-1)));
        assert_eq!(length(i32::MAX.to_le_bytes()), Err(FrameError::TooLong(i32::MAX)));
        assert_eq!(length(5_i32.to_le_bytes()), Ok(5));
        assert_eq!(Frame::new(&[5, 0, 0, 0, 1]), Err(FrameError::Unterminated));
    }

    #[test]
    fn only_a_top_level_zero_timestamp_counts() {
        let zero = bson::Timestamp { time: 0, increment: 0 };
        for (document, expected) in [
            (doc! { "_id": 1, "t": zero }, true),
            (doc! { "_id": 1, "t": bson::Timestamp { time: 0, increment: 1 } }, false),
            (doc! { "_id": 1, "n": { "t": zero } }, false),
            (doc! { "_id": zero }, false),
            (doc! { "_id": 0x11 }, false),
        ] {
            let bytes = bytes(&document);
            let frame = Frame::new(&bytes).expect("a frame");
            assert_eq!(frame.has_zero_timestamp(), expected, "{document}");
        }
    }

    #[test]
    fn the_id_is_found_wherever_it_stands() {
        let bytes = bytes(&doc! { "a": 1, "_id": 2 });
        let frame = Frame::new(&bytes).expect("a frame");
        assert!(!frame.starts_with_id());
        assert_eq!(frame.id().expect("an id").value, 2_i32.to_le_bytes());
    }

    #[test]
    fn deep_nesting_is_refused() {
        let mut document = RawDocumentBuf::new();
        for _ in 0..300 {
            let mut outer = RawDocumentBuf::new();
            outer.append(bson::raw::cstr!("a"), document);
            document = outer;
        }
        let frame = Frame::new(document.as_bytes()).expect("a frame");
        assert!(matches!(frame.validate(), Err(FrameError::Damaged { .. })));
    }

    #[test]
    fn no_flipped_byte_makes_the_walk_leave_the_document() {
        let good = bytes(&every_type());
        for at in 0..good.len() {
            for flip in [0x01, 0x80, 0xFF] {
                let mut bad = good.clone();
                bad[at] ^= flip;
                if let Ok(frame) = Frame::new(&bad) {
                    let _ = frame.validate();
                    assert!(frame.fields().count() <= bad.len());
                    let _ = frame.has_zero_timestamp();
                }
            }
        }
    }

    fn any_document() -> impl Strategy<Value = bson::Document> {
        let leaf = prop_oneof![
            Just(bson::Bson::Null),
            any::<bool>().prop_map(bson::Bson::Boolean),
            any::<i32>().prop_map(bson::Bson::Int32),
            any::<f64>().prop_map(bson::Bson::Double),
            "\\PC{0,12}".prop_map(bson::Bson::String),
            any::<(u32, u32)>().prop_map(|(time, increment)| {
                bson::Bson::Timestamp(bson::Timestamp { time, increment })
            }),
            Just(bson::Bson::Timestamp(bson::Timestamp { time: 0, increment: 0 })),
        ];
        let value = leaf.prop_recursive(4, 30, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(bson::Bson::Array),
                prop::collection::vec(("[a-z_]{0,5}", inner), 0..4)
                    .prop_map(|fields| bson::Bson::Document(fields.into_iter().collect())),
            ]
        });
        prop::collection::vec(("(_id|[a-z]{0,4})", value), 0..6)
            .prop_map(|fields| fields.into_iter().collect())
    }

    proptest! {
        #[test]
        fn a_walk_sees_what_was_encoded(document in any_document()) {
            let bytes = bytes(&document);
            let frame = Frame::new(&bytes).expect("a frame");
            prop_assert_eq!(frame.validate(), Ok(()));
            let names: Vec<_> = frame.fields().map(|field| field.expect("a field").name).collect();
            let expected: Vec<_> = document.keys().map(String::as_bytes).collect();
            prop_assert_eq!(names, expected);
            prop_assert_eq!(frame.id().is_some(), document.contains_key("_id"));
            let zero = bson::Bson::Timestamp(bson::Timestamp { time: 0, increment: 0 });
            let has_zero = document.iter().any(|(name, value)| name != "_id" && *value == zero);
            prop_assert_eq!(frame.has_zero_timestamp(), has_zero);
        }

        #[test]
        fn no_bytes_make_it_leave_the_document(mut bytes in any::<Vec<u8>>()) {
            bytes.splice(0..0, [0; 4]);
            bytes.push(0);
            let length = u32::try_from(bytes.len()).expect("short");
            bytes[..4].copy_from_slice(&length.to_le_bytes());
            let frame = Frame::new(&bytes).expect("a frame");
            let _ = (frame.validate(), frame.id(), frame.has_zero_timestamp());
            let seen: usize = frame
                .fields()
                .map_while(Result::ok)
                .map(|field| 2 + field.name.len() + field.value.len())
                .sum();
            prop_assert!(seen + 5 <= bytes.len());
        }
    }
}
