//! What is fuzzed: each function takes any bytes and panics where a promise is broken.

use std::path::PathBuf;

use restorm::command::inspect::{Depth, inspect};
use restorm::dump::archive::record::{BlockHeader, Header, Listed};
use restorm::dump::filename::{self, Role};
use restorm::dump::prelude::Prelude;
use restorm::dump::{
    ArchivePlace, CollectionMetadata, Compression, DataFile, Dump, Location, extended_json,
};
use restorm::frame::{self, Frame};
use restorm::load::ledger;
use restorm::namespace::pattern::{NamespacePattern, Rename};
use restorm::reader;
use restorm::reader::salvage::Salvaged;
use twox_hash::XxHash3_64;

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

/// A file of this thread with these bytes, for what is read from files alone.
fn written(bytes: &[u8]) -> PathBuf {
    let thread = format!("{:?}", std::thread::current().id());
    let name = format!("restorm-fuzz-{}-{thread}", std::process::id());
    let path = std::env::temp_dir().join(name);
    std::fs::write(&path, bytes).expect("the temporary folder can be written");
    path
}

/// Reads a data file around damage: what is handed on is sound, and of a plain file every byte is
/// a document's or lost, once.
pub(crate) fn salvage(bytes: &[u8]) {
    let path = written(bytes);
    let compression = Compression::of_first_bytes(bytes);
    let file = DataFile { path: path.clone(), compression, bytes: bytes.len() as u64 };
    let mut reader = reader::open(&file).expect("it is there").salvaging();
    let (mut seen, mut lost) = (0, 0);
    loop {
        match reader.read_next() {
            Salvaged::Document(frame, position) => {
                assert_eq!(position.offset, seen, "documents come in order, without a gap");
                assert!(frame.validate().is_ok(), "only sound documents are handed on");
                seen = position.end;
            }
            Salvaged::Lost(bytes) => {
                assert!(!bytes.is_empty());
                lost += bytes.len() as u64;
            }
            Salvaged::Stretch(stretch) => {
                assert_eq!(stretch.from, seen);
                seen += std::mem::take(&mut lost);
                assert!(stretch.to.is_none_or(|to| to == seen));
            }
            Salvaged::End => break,
        }
    }
    if compression == Compression::None {
        assert_eq!(seen, bytes.len() as u64, "every byte is accounted for");
    }
    std::fs::remove_file(path).expect("it is there");
}

/// Lists an archive and reads it, as it is and around damage: what is sound to the second is sound
/// to the first.
pub(crate) fn archive(bytes: &[u8]) {
    let path = written(bytes);
    let place = ArchivePlace::File(path.clone());
    let dump = Dump::at(&Location::Archive(place), None, None).expect("an archive is asked for");
    if let Ok(inventory) = dump.scan() {
        let plain = inspect(&inventory, Depth::Plain);
        let deep = inspect(&inventory, Depth::Deep);
        assert!(deep.has_problems() || !plain.has_problems());
    }
    std::fs::remove_file(path).expect("it is there");
}

/// Three lines: two patterns and a name. A name matches itself, and one that is renamed back and
/// forth without variables is the same.
pub(crate) fn pattern(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let mut lines = text.split('\n');
    let mut next = || lines.next().unwrap_or_default();
    let (from, to, name) = (next(), next(), next());
    assert!(NamespacePattern::exactly(name).matches(name));
    assert!(NamespacePattern::wildcards(&NamespacePattern::escape(name)).matches(name));
    let pattern = NamespacePattern::wildcards(from);
    assert_eq!(NamespacePattern::wildcards(pattern.text()), pattern);
    if let Ok(rename) = Rename::new(from, to) {
        let renamed = rename.apply(name);
        assert_eq!(renamed.is_some(), rename.from().matches(name));
    }
}

/// A ledger is read or refused; what is read of it does not overlap.
///
/// Lines that have no sum get theirs, so that altered ones come as far as those of a ledger.
pub(crate) fn ledger(bytes: &[u8]) {
    let mut summed = Vec::new();
    for line in bytes.split_inclusive(|&byte| byte == b'\n') {
        summed.extend_from_slice(line);
        if summed.pop_if(|byte| *byte == b'\n').is_some() {
            if !line.contains(&b'\t') {
                let sum = XxHash3_64::oneshot(&line[..line.len() - 1]);
                summed.extend_from_slice(format!("\t{sum:016x}").as_bytes());
            }
            summed.push(b'\n');
        }
    }
    let path = written(&summed);
    if let Ok(history) = ledger::history(&path) {
        for past in &history.collections {
            let ranges: Vec<_> = past.carried.ranges.iter().collect();
            assert!(ranges.windows(2).all(|two| two[0].end < two[1].start));
            assert!(ranges.iter().all(|range| range.start < range.end));
            let _ = past.carried.documents();
        }
        let _ = history.documents();
    }
    std::fs::remove_file(path).expect("it is there");
}
