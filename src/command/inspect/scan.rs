//! Reads data files from their first to their last document.

use std::path::Path;

use rayon::prelude::*;

use super::deep::{self, Sort};
use super::ids::Ids;
use super::{Depth, InspectedCollection, InspectedData, Problem};
use crate::batch::Position;
use crate::dump::stream::INPUT_NAME;
use crate::dump::{Compression, DataFile, DumpEntry, Origin};
use crate::error::Error;
use crate::frame::Frame;
use crate::reader::salvage::{SalvageReader, Salvaged};
use crate::reader::{self, Reader};

/// Damaged documents listed for one file; more of them say nothing new.
pub(super) const LISTED_MAX: u64 = 5;

/// Inspects all entries and returns them in their order.
///
/// The largest files come first, so that none is begun when the others end. The parallel bridge
/// hands them out in this order, where a parallel slice would be cut in halves.
pub(super) fn scan_all(entries: &[DumpEntry], depth: Depth) -> Vec<InspectedCollection> {
    let mut order: Vec<(usize, &DumpEntry)> = entries.iter().enumerate().collect();
    order.sort_by_key(|(_, entry)| std::cmp::Reverse(entry.data.as_ref().and_then(Origin::bytes)));
    let mut scanned: Vec<_> =
        order.into_iter().par_bridge().map(|(place, entry)| (place, scan(entry, depth))).collect();
    scanned.sort_unstable_by_key(|(place, _)| *place);
    scanned.into_iter().map(|(_, collection)| collection).collect()
}

fn scan(entry: &DumpEntry, depth: Depth) -> InspectedCollection {
    if depth == Depth::Deep {
        return scan_deeply(entry);
    }
    let mut collection = unread(entry);
    match &entry.data {
        Some(Origin::File(file)) => {
            collection.data = Some(scan_file(file, &mut collection.problems));
        }
        Some(Origin::Input) => {
            collection.data = Some(scan_input(&mut collection.problems));
        }
        // Archives are read by one reader for all their collections.
        // What is made is in no dump that is inspected.
        Some(Origin::Segments(_) | Origin::Made(_) | Origin::Text(_)) | None => {}
    }
    collection
}

fn scan_deeply(entry: &DumpEntry) -> InspectedCollection {
    let mut collection = unread(entry);
    collection.problems.extend(deep::judge_indexes(entry));
    let (data, reader) = match &entry.data {
        Some(Origin::File(file)) => {
            (nothing_of(&file.path, file.compression, Some(file.bytes)), reader::open(file))
        }
        Some(Origin::Input) => {
            let data = nothing_of(Path::new(INPUT_NAME), Compression::None, None);
            (data, reader::open_input(None))
        }
        Some(Origin::Segments(_) | Origin::Made(_) | Origin::Text(_)) | None => return collection,
    };
    let path = data.path.clone();
    collection.data = Some(data);
    match reader {
        Ok(reader) => read_around(reader.salvaging(), &mut collection),
        Err(error) => collection.problems.push(problem(&path, &error)),
    }
    collection
}

/// Reads all that can be read.
fn read_around(mut reader: SalvageReader, collection: &mut InspectedCollection) {
    if let Some(data) = &mut collection.data {
        data.compression = reader.compression();
    }
    let (mut ids, mut lost) = (Ids::new(), 0);
    loop {
        match reader.read_next() {
            Salvaged::Document(frame, position) => {
                deep::look_at(frame, position, collection, 0, &mut ids);
            }
            Salvaged::Lost(bytes) => lost += bytes.len() as u64,
            Salvaged::Stretch(stretch) => {
                deep::lose(collection, &stretch, std::mem::take(&mut lost));
            }
            Salvaged::End => break,
        }
    }
    deep::find_duplicates(ids, |_, duplicate, what| {
        if let Some(duplicate) = duplicate {
            return deep::find(collection, Sort::Duplicate, Some(duplicate.offset), || what);
        }
        let file = collection.data.as_ref().map(|data| data.path.clone()).unwrap_or_default();
        collection.problems.push(Problem { file, offset: None, what });
    });
}

/// A collection of which nothing has been read yet.
pub(super) fn unread(entry: &DumpEntry) -> InspectedCollection {
    InspectedCollection {
        namespace: entry.namespace.clone(),
        kind: entry.kind,
        data: None,
        indexes: entry.metadata.as_ref().map_or(0, |metadata| metadata.indexes.len()),
        problems: known_problem(entry).into_iter().collect(),
    }
}

/// What listing the dump found wrong already, such as metadata that cannot be read.
fn known_problem(entry: &DumpEntry) -> Option<Problem> {
    let data_path = entry.data.as_ref().map(|data| data.path().to_path_buf());
    let file = entry.metadata_path.clone().or(data_path).unwrap_or_default();
    entry.problem.clone().map(|what| Problem { file, offset: None, what })
}

/// What is known of documents before any is read.
pub(super) fn nothing_of(
    path: &Path,
    compression: Compression,
    file_bytes: Option<u64>,
) -> InspectedData {
    InspectedData {
        path: path.to_path_buf(),
        compression,
        file_bytes,
        documents: 0,
        bytes: 0,
        largest: 0,
        without_id: 0,
        damaged: 0,
        deep: None,
    }
}

fn scan_file(file: &DataFile, problems: &mut Vec<Problem>) -> InspectedData {
    let mut data = nothing_of(&file.path, file.compression, Some(file.bytes));
    let read = reader::open(file).and_then(|reader| read_documents(reader, &mut data, problems));
    problems.extend(read.err().map(|error| problem(&file.path, &error)));
    data
}

fn scan_input(problems: &mut Vec<Problem>) -> InspectedData {
    let path = Path::new(INPUT_NAME);
    let mut data = nothing_of(path, Compression::None, None);
    let read = reader::open_input(None).and_then(|reader| {
        data.compression = reader.compression();
        read_documents(reader, &mut data, problems)
    });
    problems.extend(read.err().map(|error| problem(path, &error)));
    data
}

pub(super) fn problem(file: &Path, error: &Error) -> Problem {
    Problem { file: file.to_path_buf(), offset: error.offset(), what: error.message().to_owned() }
}

/// Reads up to the end or to what makes the rest unreadable.
fn read_documents(
    mut reader: Reader,
    data: &mut InspectedData,
    problems: &mut Vec<Problem>,
) -> Result<(), Error> {
    while let Some((frame, position)) = reader.next_frame()? {
        look_at(frame, position, data, problems);
    }
    Ok(())
}

/// Counts a document and checks its structure.
pub(super) fn look_at(
    frame: Frame<'_>,
    position: Position,
    data: &mut InspectedData,
    problems: &mut Vec<Problem>,
) {
    count(frame, data);
    if let Err(error) = frame.validate() {
        data.damaged += 1;
        if data.damaged <= LISTED_MAX {
            let (file, offset) = (data.path.clone(), Some(position.offset));
            problems.push(Problem { file, offset, what: error.to_string() });
        }
    }
}

pub(super) fn count(frame: Frame<'_>, data: &mut InspectedData) {
    let bytes = frame.bytes().len() as u64;
    data.documents += 1;
    data.bytes += bytes;
    data.largest = data.largest.max(bytes);
    if !frame.starts_with_id() && frame.id().is_none() {
        data.without_id += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::inspect::{Inspection, inspect};
    use crate::dump::{CollectionKind, Compression, Inventory};
    use crate::namespace::Namespace;
    use bson::{Document, doc};
    use std::path::Path;

    fn entry(folder: &Path, name: &str, bytes: &[u8]) -> DumpEntry {
        let path = folder.join(format!("{name}.bson"));
        std::fs::write(&path, bytes).expect("written");
        let compression = Compression::of_first_bytes(bytes);
        DumpEntry {
            namespace: Namespace::new("shop", name),
            kind: CollectionKind::Collection,
            data: Some(Origin::File(DataFile { path, compression, bytes: bytes.len() as u64 })),
            metadata: None,
            metadata_path: None,
            problem: None,
        }
    }

    fn bytes(documents: &[Document]) -> Vec<u8> {
        documents.iter().flat_map(|document| document.to_vec().expect("encodes")).collect()
    }

    /// The inspection of one file that holds these bytes.
    fn inspected(bytes: &[u8]) -> Inspection {
        let folder = tempfile::tempdir().expect("a folder");
        let entries = vec![entry(folder.path(), "orders", bytes)];
        inspect(&Inventory { entries, ..Inventory::default() }, Depth::Plain)
    }

    #[test]
    fn a_sound_file_is_counted() {
        let documents = bytes(&[doc! { "_id": 1 }, doc! { "a": 1, "_id": 2 }, doc! { "a": "xyz" }]);
        let inspection = inspected(&documents);
        assert!(!inspection.has_problems());
        let data = inspection.collections[0].data.as_ref().expect("data");
        assert_eq!((data.documents, data.bytes, data.largest), (3, 14 + 21 + 16, 21));
        assert_eq!((data.without_id, data.average()), (1, 17));
    }

    #[test]
    fn a_cut_file_is_a_problem_at_its_last_document() {
        let documents = bytes(&[doc! { "_id": 1 }, doc! { "_id": 2 }]);
        let inspection = inspected(&documents[..20]);
        assert!(inspection.has_problems());
        let problems = &inspection.collections[0].problems;
        assert_eq!(problems.len(), 1);
        assert_eq!(problems[0].offset, Some(14));
        assert_eq!(
            problems[0].what,
            "the file ends inside a document: 6 of its 14 bytes are there"
        );
        assert_eq!(inspection.collections[0].data.as_ref().map(|data| data.documents), Some(1));
    }

    #[test]
    fn a_damaged_document_is_a_problem_and_reading_goes_on() {
        let mut damaged = bytes(&[doc! { "_id": 1 }, doc! { "_id": 2 }, doc! { "_id": 3 }]);
        damaged[14 + 4] = 0x55;
        let inspection = inspected(&damaged);
        let collection = &inspection.collections[0];
        assert_eq!(collection.data.as_ref().map(|data| data.documents), Some(3));
        assert_eq!(collection.problem_count(), 1);
        assert_eq!(collection.problems[0].offset, Some(14));
        assert_eq!(
            collection.problems[0].what,
            "a document is damaged 4 bytes in: an unknown type"
        );
    }

    #[test]
    fn many_damaged_documents_are_counted_and_few_are_listed() {
        let mut damaged = bytes(&vec![doc! { "_id": 1 }; 100]);
        (0..100).for_each(|number| damaged[number * 14 + 4] = 0x55);
        damaged.push(1);
        let inspection = inspected(&damaged);
        let collection = &inspection.collections[0];
        assert_eq!(collection.problems.len(), 6);
        assert_eq!(collection.problems[5].offset, Some(1400));
        assert_eq!(collection.unlisted(), 95);
        assert_eq!(inspection.totals().problems, 101);
    }

    #[test]
    fn compressed_documents_are_counted_uncompressed() {
        let documents = bytes(&vec![doc! { "_id": 1 }; 1000]);
        let packed = zstd::encode_all(&documents[..], 3).expect("encoded");
        let inspection = inspected(&packed);
        let data = inspection.collections[0].data.as_ref().expect("data");
        assert_eq!(data.bytes, 14_000);
        assert_eq!(data.file_bytes, Some(packed.len() as u64));
    }

    #[test]
    fn a_missing_file_is_a_problem_of_its_collection_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let entries = ["a", "b", "c"]
            .map(|name| entry(folder.path(), name, &bytes(&[doc! { "_id": 1 }])))
            .to_vec();
        std::fs::remove_file(folder.path().join("b.bson")).expect("removed");
        let inspection = inspect(&Inventory { entries, ..Inventory::default() }, Depth::Plain);
        let names: Vec<_> =
            inspection.collections.iter().map(|each| each.namespace.to_string()).collect();
        assert_eq!(names, ["shop.a", "shop.b", "shop.c"]);
        let problems: Vec<_> =
            inspection.collections.iter().map(|each| each.problems.len()).collect();
        assert_eq!(problems, [0, 1, 0]);
    }
}
