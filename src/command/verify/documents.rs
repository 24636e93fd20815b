//! Documents as they are compared: told apart by their `_id`, or by all else.

use bson::Bson;
use bson::raw::RawDocument;

use crate::frame::{Field, Frame};
use crate::sum;

/// The longest `_id`, with name and type, that is held to be shown; of longer ones the length is.
const ID_BYTES_MAX: usize = 128;

/// By what documents of two sides are known as the same one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Identity {
    /// By their `_id`.
    #[default]
    Id,
    /// By everything but their `_id`, because the dump lacks some.
    Content,
}

/// A document of either side, in the form in which it is stored.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen<'a> {
    /// Its bytes.
    pub(super) frame: Frame<'a>,
    /// Where it begins in the dump, if it is one of the dump.
    pub(super) offset: Option<u64>,
}

/// What is gathered from documents that pass.
pub(super) trait Gather: Send + 'static {
    /// Takes a document in.
    fn take(&mut self, seen: &Seen<'_>);
}

impl Seen<'_> {
    /// By what it is known, and the hash of what of it is compared.
    pub(super) fn key_and_hash(&self, identity: Identity) -> (u128, u128) {
        match (identity, id(self.frame)) {
            (Identity::Id, Some(id)) => (sum::hash(&minimal(&id)), sum::hash(self.frame.bytes())),
            (Identity::Id, None) => {
                let hash = sum::hash(self.frame.bytes());
                (hash, hash)
            }
            (Identity::Content, _) => {
                let hash = self.content_hash();
                (hash, hash)
            }
        }
    }

    /// The hash of all fields but `_id`.
    fn content_hash(&self) -> u128 {
        let mut content = Vec::with_capacity(self.frame.bytes().len());
        for field in self.frame.fields().map_while(Result::ok).filter(|field| field.name != b"_id")
        {
            content.push(field.kind);
            content.extend_from_slice(field.name);
            content.push(0);
            content.extend_from_slice(field.value);
        }
        sum::hash(&content)
    }

    /// What it is called.
    pub(super) fn label(&self) -> Label {
        match (id(self.frame), self.offset) {
            (Some(id), _) if id.value.len() <= ID_BYTES_MAX => {
                Label::Id(minimal(&id).into_boxed_slice())
            }
            (Some(id), _) => Label::LongId(id.value.len()),
            (None, offset) => Label::At(offset),
        }
    }
}

/// What a document is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Label {
    /// By its `_id`, a document of that field alone.
    Id(Box<[u8]>),
    /// By the length of an `_id` that is too long to be held.
    LongId(usize),
    /// By where it begins in the dump, because it has no `_id`.
    At(Option<u64>),
}

impl Label {
    /// The `_id` as Extended JSON, or what there is in its place.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Id(document) => {
                let value = RawDocument::from_bytes(document).ok().and_then(|document| {
                    let id = document.get("_id").ok()??;
                    Bson::try_from(id).ok()
                });
                match value {
                    Some(id) => id.into_relaxed_extjson().to_string(),
                    None => "(an _id that cannot be read)".to_owned(),
                }
            }
            Self::LongId(length) => format!("(an _id of {length} bytes)"),
            Self::At(Some(offset)) => format!("(no _id; at byte {offset} of the dump)"),
            Self::At(None) => "(no _id)".to_owned(),
        }
    }
}

/// The `_id` of a document, which stands in front wherever a server has stored it.
fn id(frame: Frame<'_>) -> Option<Field<'_>> {
    if frame.starts_with_id() { frame.fields().next()?.ok() } else { frame.id() }
}

/// A document of one field.
fn minimal(field: &Field<'_>) -> Vec<u8> {
    const LENGTH_AND_ENDS: usize = 4 + 1 + 1 + 1;
    let length = LENGTH_AND_ENDS + field.name.len() + field.value.len();
    let mut document = Vec::with_capacity(length);
    document.extend_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes());
    document.push(field.kind);
    document.extend_from_slice(field.name);
    document.push(0);
    document.extend_from_slice(field.value);
    document.push(0);
    document
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use bson::{Document, doc};

    pub(crate) fn with<R>(document: &Document, look: impl FnOnce(&Seen<'_>) -> R) -> R {
        let bytes = document.to_vec().expect("encodes");
        look(&Seen { frame: Frame::new(&bytes).expect("a frame"), offset: Some(9) })
    }

    fn key_and_hash(document: &Document, identity: Identity) -> (u128, u128) {
        with(document, |seen| seen.key_and_hash(identity))
    }

    #[test]
    fn documents_with_one_id_are_known_as_one() {
        let (key, hash) = key_and_hash(&doc! { "_id": 1, "a": 1 }, Identity::Id);
        let (other_key, other_hash) = key_and_hash(&doc! { "_id": 1, "a": 2 }, Identity::Id);
        assert_eq!(key, other_key);
        assert_ne!(hash, other_hash);
        assert_ne!(key, key_and_hash(&doc! { "_id": 1_i64, "a": 1 }, Identity::Id).0);
    }

    #[test]
    fn without_ids_all_else_counts() {
        let bare = key_and_hash(&doc! { "a": 1, "b": 2 }, Identity::Content);
        assert_eq!(bare, key_and_hash(&doc! { "_id": 7, "a": 1, "b": 2 }, Identity::Content));
        assert_ne!(bare, key_and_hash(&doc! { "_id": 7, "a": 1, "b": 3 }, Identity::Content));
        assert_ne!(bare, key_and_hash(&doc! { "b": 2, "a": 1 }, Identity::Content));
    }

    #[test]
    fn a_document_is_called_by_its_id_or_its_place() {
        for (document, text) in [
            (doc! { "_id": "x", "a": 1 }, "\"x\"".to_owned()),
            (doc! { "a": 1, "_id": { "k": 1 } }, "{\"k\":1}".to_owned()),
            (doc! { "_id": "y".repeat(500) }, "(an _id of 505 bytes)".to_owned()),
            (doc! { "a": 1 }, "(no _id; at byte 9 of the dump)".to_owned()),
        ] {
            assert_eq!(with(&document, |seen| seen.label().text()), text);
        }
    }
}
