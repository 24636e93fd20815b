//! The `_id` of documents that a server would change on its way in.

use bson::oid::ObjectId;
use twox_hash::XxHash3_64;

use crate::batch::Position;
use crate::frame::{Field, Frame};
use crate::namespace::Namespace;

/// What becomes of a document's `_id`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdChange {
    /// It was in front, or was moved there.
    Kept,
    /// There was none, and it gets a new one, where those are known.
    New,
}

/// The document as a server would store it, where that is not what it is already.
#[inline]
pub fn stored_form(
    frame: Frame<'_>,
    ids: Option<&NewIds>,
    position: Position,
) -> (Option<Vec<u8>>, IdChange) {
    if frame.starts_with_id() {
        (None, IdChange::Kept)
    } else if frame.id().is_some() {
        (with_id_in_front(frame), IdChange::Kept)
    } else {
        (ids.map(|ids| with_new_id(frame, ids.at(position))), IdChange::New)
    }
}

/// New `_id`s for the documents of one collection: the same for the same document however often a
/// run is resumed, so that a document that is sent twice is recognised, and others in any other
/// run.
#[derive(Clone, Copy, Debug)]
pub struct NewIds {
    seconds: [u8; 4],
    first: u64,
}

impl NewIds {
    /// Those of the documents that this collection of the dump has, in this run.
    pub fn of(run: ObjectId, source: &Namespace) -> Self {
        let run = run.bytes();
        let seconds = [run[0], run[1], run[2], run[3]];
        let name = [&run[..], source.full().as_bytes()].concat();
        Self { seconds, first: XxHash3_64::oneshot(&name) }
    }

    /// The `_id` of the document here. No two documents of a collection end at the same byte.
    pub(super) fn at(&self, position: Position) -> ObjectId {
        let mut bytes = [0; 12];
        bytes[..4].copy_from_slice(&self.seconds);
        bytes[4..].copy_from_slice(&self.first.wrapping_add(position.end).to_be_bytes());
        ObjectId::from_bytes(bytes)
    }
}

/// The document with its `_id` moved to the front, as a server stores it; moved here, so that what
/// is stored can be recognised as this document. Nothing where its fields cannot be told apart.
fn with_id_in_front(frame: Frame<'_>) -> Option<Vec<u8>> {
    let mut fields: Vec<Field<'_>> = frame.fields().collect::<Result<_, _>>().ok()?;
    let place = fields.iter().position(|field| field.name == b"_id")?;
    fields[..=place].rotate_right(1);
    let document = frame.bytes();
    let mut bytes = Vec::with_capacity(document.len());
    bytes.extend_from_slice(&document[..4]);
    for field in fields {
        bytes.push(field.kind);
        bytes.extend_from_slice(field.name);
        bytes.push(0);
        bytes.extend_from_slice(field.value);
    }
    bytes.push(0);
    Some(bytes)
}

/// The document with a new `_id` in front, as a server would add it; added here, so that a batch
/// sent twice cannot leave the document there twice.
fn with_new_id(frame: Frame<'_>, id: ObjectId) -> Vec<u8> {
    const FIELD: &[u8] = b"\x07_id\0";
    let id = id.bytes();
    let document = frame.bytes();
    let length = document.len() + FIELD.len() + id.len();
    let mut bytes = Vec::with_capacity(length);
    bytes.extend_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes());
    bytes.extend_from_slice(FIELD);
    bytes.extend_from_slice(&id);
    bytes.extend_from_slice(&document[4..]);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::doc;

    #[test]
    fn an_id_is_put_in_front() {
        let bytes = doc! { "a": 1, "b": "two" }.to_vec().expect("encodes");
        let with = with_new_id(Frame::new(&bytes).expect("a frame"), ObjectId::new());
        let frame = Frame::new(&with).expect("a frame");
        assert!(frame.starts_with_id());
        frame.validate().expect("valid");
        assert_eq!(frame.fields().count(), 3);
    }

    #[test]
    fn a_document_gets_the_same_id_again_in_the_same_run_alone() {
        let (run, shop) = (ObjectId::new(), Namespace::new("shop", "orders"));
        let at = |end| Position { end, ..Position::default() };
        let ids = NewIds::of(run, &shop);
        assert_eq!(ids.at(at(5)), NewIds::of(run, &shop).at(at(5)));
        assert_ne!(ids.at(at(5)), ids.at(at(6)));
        assert_ne!(ids.at(at(5)), NewIds::of(ObjectId::new(), &shop).at(at(5)));
        assert_ne!(ids.at(at(5)), NewIds::of(run, &Namespace::new("shop", "other")).at(at(5)));
    }

    #[test]
    fn an_id_further_back_is_moved_to_the_front() {
        let bytes = doc! { "a": 1, "b": [ { "_id": 9 } ], "_id": "x", "c": 2 }.to_vec();
        let moved = with_id_in_front(Frame::new(&bytes.expect("encodes")).expect("a frame"));
        let expected = doc! { "_id": "x", "a": 1, "b": [ { "_id": 9 } ], "c": 2 }.to_vec();
        assert_eq!(moved, Some(expected.expect("encodes")));
        let without = doc! { "a": 1 }.to_vec().expect("encodes");
        assert_eq!(with_id_in_front(Frame::new(&without).expect("a frame")), None);
    }
}
