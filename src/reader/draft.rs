//! A document while it is made: BSON written field by field into one buffer that is used again.
//!
//! Before the document there is room for a new `_id`, so that one can be put in front without
//! moving what is there. Layout: <https://bsonspec.org/spec.html>.

use bson::Bson;

use crate::frame::{Frame, FrameError};

/// The field that a new `_id` takes: type, name, and 12 bytes.
const ID_FIELD: &[u8] = b"\x07_id\0";

/// The bytes of an object id.
const ID_BYTES: usize = 12;

/// The bytes before the document.
const ROOM: usize = ID_FIELD.len() + ID_BYTES;

/// The bytes of a document's length.
const LENGTH: usize = 4;

/// Types of BSON, as they are written.
pub(super) mod kind {
    pub(in crate::reader) const DOUBLE: u8 = 0x01;
    pub(in crate::reader) const STRING: u8 = 0x02;
    pub(in crate::reader) const DOCUMENT: u8 = 0x03;
    pub(in crate::reader) const ARRAY: u8 = 0x04;
    #[cfg(feature = "columnar")]
    pub(in crate::reader) const BINARY: u8 = 0x05;
    pub(in crate::reader) const OBJECT_ID: u8 = 0x07;
    pub(in crate::reader) const BOOLEAN: u8 = 0x08;
    pub(in crate::reader) const DATE: u8 = 0x09;
    pub(in crate::reader) const NULL: u8 = 0x0A;
    pub(in crate::reader) const INT32: u8 = 0x10;
    pub(in crate::reader) const INT64: u8 = 0x12;
    pub(in crate::reader) const DECIMAL: u8 = 0x13;
}

/// A document while it is made.
#[derive(Debug)]
pub struct Draft {
    bytes: Vec<u8>,
    has_id: bool,
}

/// Where the type byte of a field is, which is known once its value is.
#[derive(Clone, Copy, Debug)]
pub(super) struct TypeAt(usize);

/// Where a level of nesting begins.
#[derive(Clone, Copy, Debug)]
pub(super) struct LevelAt(usize);

impl Default for Draft {
    fn default() -> Self {
        Self { bytes: vec![0; ROOM], has_id: false }
    }
}

impl Draft {
    /// Begins a new document, whose fields come next.
    pub(super) fn begin(&mut self) -> LevelAt {
        self.bytes.truncate(ROOM);
        self.has_id = false;
        self.level()
    }

    /// Begins a document or array, whose fields come next.
    pub(super) fn level(&mut self) -> LevelAt {
        let at = self.bytes.len();
        self.bytes.extend_from_slice(&[0; LENGTH]);
        LevelAt(at)
    }

    /// Ends it.
    pub(super) fn end(&mut self, level: LevelAt) {
        self.bytes.push(0);
        let length = u32::try_from(self.bytes.len() - level.0).unwrap_or(u32::MAX);
        self.bytes[level.0..level.0 + LENGTH].copy_from_slice(&length.to_le_bytes());
    }

    /// Writes the name of a field, whose value comes next.
    #[inline]
    pub(super) fn name(&mut self, name: &[u8]) -> TypeAt {
        let at = self.bytes.len();
        self.bytes.push(0);
        self.bytes.extend_from_slice(name);
        self.bytes.push(0);
        if at == ROOM + LENGTH {
            self.has_id = name == b"_id";
        }
        TypeAt(at)
    }

    /// Notes that the document has an `_id`, though not in front.
    pub(super) fn note_id(&mut self) {
        self.has_id = true;
    }

    /// The name of the field that was begun last, if it is this one.
    pub(super) fn name_since(&self, at: TypeAt) -> &[u8] {
        &self.bytes[at.0 + 1..self.bytes.len() - 1]
    }

    /// Takes a field back whose name was written.
    pub(super) fn take_back(&mut self, at: TypeAt) {
        if at.0 == ROOM + LENGTH {
            self.has_id = false;
        }
        self.bytes.truncate(at.0);
    }

    /// Says of what type the value is that comes next.
    #[inline]
    pub(super) fn set(&mut self, at: TypeAt, kind: u8) {
        self.bytes[at.0] = kind;
    }

    /// Turns what was begun as the value of a field back into nothing, so that another value can
    /// take its place.
    pub(super) fn rewind(&mut self, level: LevelAt) {
        self.bytes.truncate(level.0);
    }

    /// Writes a value of a fixed size.
    #[inline]
    pub(super) fn value(&mut self, at: TypeAt, kind: u8, bytes: &[u8]) {
        self.set(at, kind);
        self.bytes.extend_from_slice(bytes);
    }

    /// Writes a text.
    #[inline]
    pub(super) fn text(&mut self, at: TypeAt, text: &[u8]) {
        self.set(at, kind::STRING);
        let length = u32::try_from(text.len() + 1).unwrap_or(u32::MAX);
        self.bytes.extend_from_slice(&length.to_le_bytes());
        self.bytes.extend_from_slice(text);
        self.bytes.push(0);
    }

    /// Writes binary data.
    #[cfg(feature = "columnar")]
    pub(super) fn binary(&mut self, at: TypeAt, subtype: u8, bytes: &[u8]) {
        self.set(at, kind::BINARY);
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        self.bytes.extend_from_slice(&length.to_le_bytes());
        self.bytes.push(subtype);
        self.bytes.extend_from_slice(bytes);
    }

    /// Writes a whole number in the smallest type that holds it.
    #[inline]
    pub(super) fn integer(&mut self, at: TypeAt, value: i64) {
        match i32::try_from(value) {
            Ok(value) => self.value(at, kind::INT32, &value.to_le_bytes()),
            Err(_) => self.value(at, kind::INT64, &value.to_le_bytes()),
        }
    }

    /// Writes any value.
    ///
    /// # Errors
    ///
    /// A sentence, where it cannot be encoded.
    pub(super) fn any(&mut self, at: TypeAt, value: Bson) -> Result<(), String> {
        match value {
            Bson::ObjectId(id) => self.value(at, kind::OBJECT_ID, &id.bytes()),
            Bson::DateTime(date) => {
                self.value(at, kind::DATE, &date.timestamp_millis().to_le_bytes());
            }
            Bson::Int32(value) => self.value(at, kind::INT32, &value.to_le_bytes()),
            Bson::Int64(value) => self.value(at, kind::INT64, &value.to_le_bytes()),
            Bson::Double(value) => self.value(at, kind::DOUBLE, &value.to_le_bytes()),
            Bson::Decimal128(value) => self.value(at, kind::DECIMAL, &value.bytes()),
            other => {
                let alone = bson::doc! { "": other }.to_vec().map_err(|error| error.to_string())?;
                // Between length, type and empty name on one side and the terminator on the other.
                self.value(at, alone[LENGTH], &alone[LENGTH + 2..alone.len() - 1]);
            }
        }
        Ok(())
    }

    /// Whether the document has an `_id`.
    pub fn has_id(&self) -> bool {
        self.has_id
    }

    /// Puts a new `_id` in front and returns the document.
    ///
    /// # Errors
    ///
    /// Where the document is larger than a server stores.
    pub fn with_id(&mut self, id: [u8; ID_BYTES]) -> Result<Frame<'_>, FrameError> {
        let length = u32::try_from(self.bytes.len()).unwrap_or(u32::MAX);
        self.bytes[..LENGTH].copy_from_slice(&length.to_le_bytes());
        self.bytes[LENGTH..LENGTH + ID_FIELD.len()].copy_from_slice(ID_FIELD);
        self.bytes[LENGTH + ID_FIELD.len()..LENGTH + ROOM].copy_from_slice(&id);
        Frame::new(&self.bytes)
    }

    /// The document.
    ///
    /// # Errors
    ///
    /// Where it is larger than a server stores.
    pub fn frame(&self) -> Result<Frame<'_>, FrameError> {
        Frame::new(&self.bytes[ROOM..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::doc;

    #[test]
    fn a_new_id_is_put_in_front() {
        let mut draft = Draft::default();
        for number in [5, 6] {
            let level = draft.begin();
            let at = draft.name(b"a");
            draft.integer(at, number);
            draft.end(level);
            assert!(!draft.has_id());
            let expected = doc! { "a": i32::try_from(number).expect("small") };
            let frame = draft.frame().expect("a frame");
            assert_eq!(frame.bytes(), expected.to_vec().expect("encodes"));
            let mut with = doc! { "_id": bson::oid::ObjectId::from_bytes([7; 12]) };
            with.extend(expected);
            let frame = draft.with_id([7; 12]).expect("a frame");
            assert_eq!(frame.bytes(), with.to_vec().expect("encodes"));
        }
    }

    #[test]
    fn an_id_in_front_is_seen() {
        let mut draft = Draft::default();
        let level = draft.begin();
        let at = draft.name(b"_id");
        draft.text(at, b"x");
        draft.end(level);
        assert!(draft.has_id());
        draft.begin();
        assert!(!draft.has_id());
    }
}
