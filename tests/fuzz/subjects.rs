//! What is fuzzed: each function takes any bytes and panics where a promise is broken.

use restorm::dump::archive::record::{BlockHeader, Header, Listed};
use restorm::dump::filename::{self, Role};
use restorm::dump::prelude::Prelude;
use restorm::dump::{CollectionMetadata, extended_json};
use restorm::frame::{self, Frame};

/// Hops from document to document as a reader does, and walks through each.
pub(crate) fn frames(bytes: &[u8]) {
    let mut rest = bytes;
    while let Some(prefix) = rest.first_chunk::<4>() {
        let Ok(length) = frame::length(*prefix) else { return };
        let Some((document, after)) = rest.split_at_checked(length) else { return };
        if let Ok(frame) = Frame::new(document) {
            walk(frame);
        }
        rest = after;
    }
}

fn walk(frame: Frame<'_>) {
    let fields: Vec<_> = frame.fields().collect();
    let is_valid = frame.validate().is_ok();
    assert!(!is_valid || fields.iter().all(Result::is_ok), "valid, but cannot be walked");
    let has_id = fields.iter().map_while(|field| field.as_ref().ok()).any(|f| f.name == b"_id");
    assert_eq!(frame.id().is_some(), has_id, "the _id is found where there is one");
    assert!(!frame.has_zero_timestamp() || frame.bytes().contains(&0x11));
}

/// What is understood is written and understood again in the same way.
pub(crate) fn metadata(bytes: &[u8]) {
    if let Ok(metadata) = CollectionMetadata::parse(bytes) {
        let again = CollectionMetadata::parse(metadata.to_json().as_bytes());
        // A NaN differs from itself.
        let shown = format!("{metadata:?}");
        assert!(again.as_ref() == Ok(&metadata) || shown.contains("NaN"), "{shown}: {again:?}");
    }
}

/// Text that is no Extended JSON is an error with its place.
pub(crate) fn extended_json(bytes: &[u8]) {
    if let Err(error) = extended_json::parse(bytes) {
        assert!(!error.message.is_empty());
    }
}

/// A prelude is understood or not.
pub(crate) fn prelude(bytes: &[u8]) {
    if let Err(reason) = Prelude::parse(bytes) {
        assert!(!reason.is_empty());
    }
}

/// A name that was decoded is encoded into one that decodes to it.
pub(crate) fn filename(bytes: &[u8]) {
    let Ok(name) = std::str::from_utf8(bytes) else { return };
    let (Role::Data { stem, .. } | Role::Metadata { stem, .. }) = filename::role(name) else {
        return;
    };
    let Ok(collection) = filename::decode(stem) else { return };
    let encoded = filename::encode(&collection);
    if !filename::is_cut(&encoded) {
        assert_eq!(filename::decode(&encoded), Ok(collection));
    }
}

/// A document of an archive's own is understood or not; what is taken for one names a collection.
pub(crate) fn records(bytes: &[u8]) {
    let Ok(frame) = Frame::new(bytes) else { return };
    if let Err(reason) = Header::parse(frame) {
        assert!(!reason.is_empty());
    }
    if let Ok(listed) = Listed::parse(frame) {
        assert!(!listed.collection.is_empty());
    }
    if let Ok(header) = BlockHeader::parse(frame) {
        assert!(!header.collection.is_empty());
    }
}
