//! Reads data files from their first to their last document.

use rayon::prelude::*;

use super::{InspectedCollection, InspectedData, Problem};
use crate::dump::{DataFile, DumpEntry};
use crate::error::Error;
use crate::frame::Frame;
use crate::reader;

/// Damaged documents listed for one file; more of them say nothing new.
pub(super) const LISTED_MAX: u64 = 5;

/// Inspects all entries and returns them in their order.
///
/// The largest files come first, so that none is begun when the others end. The parallel bridge
/// hands them out in this order, where a parallel slice would be cut in halves.
pub(super) fn scan_all(entries: &[DumpEntry]) -> Vec<InspectedCollection> {
    let mut order: Vec<(usize, &DumpEntry)> = entries.iter().enumerate().collect();
    order.sort_by_key(|(_, entry)| {
        std::cmp::Reverse(entry.data.as_ref().map_or(0, |data| data.bytes))
    });
    let mut scanned: Vec<_> =
        order.into_iter().par_bridge().map(|(place, entry)| (place, scan(entry))).collect();
    scanned.sort_unstable_by_key(|(place, _)| *place);
    scanned.into_iter().map(|(_, collection)| collection).collect()
}

fn scan(entry: &DumpEntry) -> InspectedCollection {
    let mut problems: Vec<Problem> = known_problem(entry).into_iter().collect();
    let data = entry.data.as_ref().map(|file| scan_file(file, &mut problems));
    InspectedCollection {
        namespace: entry.namespace.clone(),
        kind: entry.kind,
        data,
        indexes: entry.metadata.as_ref().map_or(0, |metadata| metadata.indexes.len()),
        problems,
    }
}

/// What listing the dump found wrong already, such as metadata that cannot be read.
fn known_problem(entry: &DumpEntry) -> Option<Problem> {
    let data_path = entry.data.as_ref().map(|data| data.path.clone());
    let file = entry.metadata_path.clone().or(data_path).unwrap_or_default();
    entry.problem.clone().map(|what| Problem { file, offset: None, what })
}

fn scan_file(file: &DataFile, problems: &mut Vec<Problem>) -> InspectedData {
    let mut data = InspectedData {
        path: file.path.clone(),
        compression: file.compression,
        file_bytes: file.bytes,
        documents: 0,
        bytes: 0,
        largest: 0,
        without_id: 0,
        damaged: 0,
    };
    if let Err(error) = read_documents(file, &mut data, problems) {
        problems.push(Problem {
            file: file.path.clone(),
            offset: error.offset(),
            what: error.message().to_owned(),
        });
    }
    data
}

/// Reads up to the end or to what makes the rest unreadable.
fn read_documents(
    file: &DataFile,
    data: &mut InspectedData,
    problems: &mut Vec<Problem>,
) -> Result<(), Error> {
    let mut reader = reader::open(file)?;
    while let Some((frame, position)) = reader.next_frame()? {
        count(frame, data);
        if let Err(error) = frame.validate() {
            data.damaged += 1;
            if data.damaged <= LISTED_MAX {
                let (file, offset) = (file.path.clone(), Some(position.offset));
                problems.push(Problem { file, offset, what: error.to_string() });
            }
        }
    }
    Ok(())
}

fn count(frame: Frame<'_>, data: &mut InspectedData) {
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
            data: Some(DataFile { path, compression, bytes: bytes.len() as u64 }),
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
        inspect(&Inventory { entries, ..Inventory::default() })
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
        assert_eq!(data.file_bytes, packed.len() as u64);
    }

    #[test]
    fn a_missing_file_is_a_problem_of_its_collection_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let entries = ["a", "b", "c"]
            .map(|name| entry(folder.path(), name, &bytes(&[doc! { "_id": 1 }])))
            .to_vec();
        std::fs::remove_file(folder.path().join("b.bson")).expect("removed");
        let inspection = inspect(&Inventory { entries, ..Inventory::default() });
        let names: Vec<_> =
            inspection.collections.iter().map(|each| each.namespace.to_string()).collect();
        assert_eq!(names, ["shop.a", "shop.b", "shop.c"]);
        let problems: Vec<_> =
            inspection.collections.iter().map(|each| each.problems.len()).collect();
        assert_eq!(problems, [0, 1, 0]);
    }
}
