//! The dump that a simulated restore reads, and what is known of its documents.

use std::collections::BTreeSet;
use std::path::Path;

use bson::{Bson, Document, doc};
use restorm::dump::writer::archive::{ArchiveWriter, ArchivedCollection};
use restorm::dump::{CollectionMetadata, Compression, IndexSpec};
use restorm::frame::Frame;
use restorm::namespace::Namespace;

use crate::chance::Chance;

/// The database of every simulated dump.
pub(super) const DATABASE: &str = "sim";

/// The archive of a simulated dump, where it is read as one.
pub(super) const ARCHIVE: &str = "sim.archive";

/// Begins the name of an index that the target refuses.
pub(super) const REFUSED_INDEX: &str = "refused";

/// A collection of the dump.
#[derive(Debug)]
pub(super) struct Collection {
    pub(super) name: String,
    pub(super) documents: Vec<Made>,
    /// What the target holds before the restore.
    pub(super) held: Vec<Vec<u8>>,
    pub(super) metadata: CollectionMetadata,
}

/// A document of the dump.
#[derive(Clone, Debug)]
pub(super) struct Made {
    pub(super) bytes: Vec<u8>,
}

/// What a document's `_id` is known by: the type and bytes of its value.
pub(super) fn id_of(bytes: &[u8]) -> Vec<u8> {
    let id = Frame::new(bytes).expect("a frame").id().expect("an id");
    [&[id.kind], id.value].concat()
}

/// The document as a server stores it, with its `_id` in front.
pub(super) fn stored_form(bytes: &[u8]) -> Vec<u8> {
    let document = bson::Document::from_reader(bytes).expect("made by this test");
    let mut stored = doc! { "_id": document.get("_id").expect("an id").clone() };
    stored.extend(document);
    encoded(&stored)
}

/// Whether a document has a field of this name, which says how the target takes it.
pub(super) fn has(bytes: &[u8], name: &str) -> bool {
    let frame = Frame::new(bytes).expect("a frame");
    frame.fields().any(|field| field.expect("a field").name == name.as_bytes())
}

/// The place of a document in its collection's file.
pub(super) fn place_of(bytes: &[u8]) -> i32 {
    let frame = Frame::new(bytes).expect("a frame");
    let mut fields = frame.fields().map(|field| field.expect("a field"));
    let place = fields.find(|field| field.name == b"place").expect("a place");
    i32::from_le_bytes(place.value.try_into().expect("an int"))
}

/// Draws the collections of a dump and writes them under `root`.
pub(super) fn make(root: &Path, chance: &mut Chance) -> Vec<Collection> {
    let folder = root.join(DATABASE);
    std::fs::create_dir_all(&folder).expect("a folder");
    let collections: Vec<_> =
        (0..chance.between(1, 4)).map(|number| collection(number, chance)).collect();
    for collection in &collections {
        let bytes: Vec<u8> =
            collection.documents.iter().flat_map(|made| made.bytes.clone()).collect();
        let name = &collection.name;
        std::fs::write(folder.join(format!("{name}.bson")), bytes).expect("written");
        let metadata = folder.join(format!("{name}.metadata.json"));
        std::fs::write(metadata, collection.metadata.to_json()).expect("written");
    }
    collections
}

/// Writes the collections into an archive as well, their documents in turns that are drawn.
pub(super) fn archive(root: &Path, collections: &[Collection], chance: &mut Chance) {
    let listed: Vec<_> = collections
        .iter()
        .map(|collection| ArchivedCollection {
            namespace: Namespace::new(DATABASE, &collection.name),
            metadata: collection.metadata.clone(),
        })
        .collect();
    let mut archive =
        ArchiveWriter::begin(Vec::new(), Compression::None, 1, None, &listed).expect("begun");
    let mut left: Vec<_> = collections.iter().map(|one| one.documents.iter()).collect();
    let mut open: Vec<usize> = (0..left.len()).collect();
    while !open.is_empty() {
        let turn = chance.below(open.len());
        let place = open[turn];
        let documents: Vec<_> = left[place].by_ref().take(chance.between(1, 20)).collect();
        for made in &documents {
            archive.append(place, &made.bytes).expect("written");
        }
        if documents.is_empty() {
            archive.end(place).expect("ended");
            open.remove(turn);
        }
    }
    std::fs::write(root.join(ARCHIVE), archive.finish().expect("finished")).expect("written");
}

fn collection(number: usize, chance: &mut Chance) -> Collection {
    let mut documents: Vec<Made> = Vec::new();
    let mut held = Vec::new();
    let is_tidy = chance.percent(40);
    for place in 0..chance.between(0, 150) {
        let place = i32::try_from(place).expect("few documents");
        if !is_tidy && !documents.is_empty() && chance.percent(2) {
            documents.push(chance.one_of(&documents).clone());
            continue;
        }
        let earlier = !is_tidy && chance.percent(3);
        let id = if earlier { place / 2 } else { place };
        let document = document(id, place, is_tidy, chance);
        if !is_tidy && chance.percent(3) {
            let other = doc! { "_id": id_value(id), "place": -1, "held": true };
            held.push(if chance.percent(30) { document.clone() } else { encoded(&other) });
        }
        documents.push(Made { bytes: document });
    }
    let mut known = BTreeSet::new();
    held.retain(|bytes| known.insert(id_of(bytes)));
    Collection { name: format!("c{number}"), documents, held, metadata: metadata(chance) }
}

/// Numbers and texts, so that more than one type of `_id` passes.
fn id_value(id: i32) -> Bson {
    if id % 3 == 0 { Bson::String(format!("id {id}")) } else { Bson::Int32(id) }
}

fn document(id: i32, place: i32, is_tidy: bool, chance: &mut Chance) -> Vec<u8> {
    let mut document = doc! { "_id": id_value(id), "place": place };
    if chance.percent(5) {
        document = doc! { "place": place, "_id": id_value(id) };
    }
    document.insert("text", "x".repeat(chance.below(60)));
    if !is_tidy && chance.percent(1) {
        document.insert("spoilt", true);
    }
    if !is_tidy && chance.percent(2) {
        document.insert("invalid", true);
    }
    encoded(&document)
}

fn encoded(document: &Document) -> Vec<u8> {
    document.to_vec().expect("encodes")
}

fn metadata(chance: &mut Chance) -> CollectionMetadata {
    let options = if chance.percent(30) {
        doc! { "capped": true, "size": 1 << 20 }
    } else {
        doc! {}
    };
    let mut indexes = vec![doc! { "v": 2, "key": { "_id": 1 }, "name": "_id_" }];
    for number in 0..chance.below(4) {
        let prefix = if chance.percent(10) { REFUSED_INDEX } else { "index" };
        let mut index = doc! { "v": 2, "key": { format!("k{number}"): 1 } };
        index.insert("name", format!("{prefix}_{number}"));
        if chance.percent(20) {
            index.insert("expireAfterSeconds", 3600);
        }
        indexes.push(index);
    }
    let indexes = indexes.into_iter().map(IndexSpec::from).collect();
    CollectionMetadata { options, indexes, ..CollectionMetadata::default() }
}
