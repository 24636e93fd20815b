//! Documents are found again behind damage, and nothing else is taken for one.

use std::io::Write;

use bson::{Document, doc};
use proptest::prelude::*;

use super::*;
use crate::dump::inventory::DataFile;
use crate::reader;

/// What was read of some bytes.
#[derive(Debug, Default)]
struct Read {
    documents: Vec<Vec<u8>>,
    lost: Vec<Vec<u8>>,
    stretches: Vec<Stretch>,
}

fn read_file(content: &[u8], compression: Compression) -> Read {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("c.bson");
    std::fs::write(&path, content).expect("written");
    let file = DataFile { path, compression, bytes: content.len() as u64 };
    let mut reader = reader::open(&file).expect("opened").salvaging();
    let mut read = Read::default();
    let mut lost = Vec::new();
    loop {
        match reader.read_next() {
            Salvaged::Document(frame, position) => {
                assert_eq!(position.end - position.offset, frame.bytes().len() as u64);
                frame.validate().expect("it was checked");
                read.documents.push(frame.bytes().to_vec());
            }
            Salvaged::Lost(bytes) => lost.extend_from_slice(bytes),
            Salvaged::Stretch(stretch) => {
                read.stretches.push(stretch);
                read.lost.push(std::mem::take(&mut lost));
            }
            Salvaged::End => {
                assert!(lost.is_empty());
                return read;
            }
        }
    }
}

fn read(content: &[u8]) -> Read {
    read_file(content, Compression::None)
}

fn document(number: i32) -> Vec<u8> {
    let items: Vec<Document> = (0..number % 4).map(|n| doc! { "sku": n, "name": "pen" }).collect();
    doc! { "_id": number, "items": items, "text": "x".repeat(40) }.to_vec().expect("encodes")
}

fn documents(count: i32) -> Vec<Vec<u8>> {
    (0..count).map(document).collect()
}

#[test]
fn sound_documents_are_all_read() {
    let documents = documents(200);
    let read = read(&documents.concat());
    assert_eq!(read.documents, documents);
    assert!(read.stretches.is_empty());
}

#[test]
fn a_wrong_length_costs_its_document() {
    for length in [-40_i32, 0, 3, 60, 1000, i32::MAX] {
        let documents = documents(50);
        let from = documents[..20].concat().len();
        let mut bytes = documents.concat();
        bytes[from..from + 4].copy_from_slice(&length.to_le_bytes());
        let read = read(&bytes);
        assert_eq!(read.documents, [&documents[..20], &documents[21..]].concat(), "{length}");
        let to = Some((from + documents[20].len()) as u64);
        assert_eq!((read.stretches[0].from, read.stretches[0].to), (from as u64, to));
        assert_eq!(read.lost, [&bytes[from..from + documents[20].len()]]);
    }
}

#[test]
fn a_damaged_inside_costs_its_document_and_none_of_those_inside_is_taken() {
    let documents = documents(50);
    let from = documents[..23].concat().len();
    let mut bytes = documents.concat();
    // The type of `items`, which holds documents.
    bytes[from + 13] = 0x55;
    let read = read(&bytes);
    assert_eq!(read.documents, [&documents[..23], &documents[24..]].concat());
    assert!(read.stretches[0].reason.contains("an unknown type"), "{:?}", read.stretches);
}

#[test]
fn documents_behind_a_stretch_of_zeros_or_noise_are_found() {
    for fill in [0_u8, 0xFF, 0x22] {
        let documents = documents(50);
        let mut bytes = documents[..20].concat();
        bytes.extend(std::iter::repeat_n(fill, 300_000));
        bytes.extend(documents[20..].concat());
        let read = read(&bytes);
        assert_eq!(read.documents, documents, "{fill}");
        assert_eq!(read.stretches.len(), 1);
        assert_eq!(read.lost[0].len(), 300_000);
    }
}

#[test]
fn a_cut_document_is_lost_to_the_end() {
    let documents = documents(20);
    let bytes = documents.concat();
    let read = read(&bytes[..bytes.len() - 7]);
    assert_eq!(read.documents, documents[..19]);
    assert_eq!(read.stretches[0].to, Some(bytes.len() as u64 - 7));
    assert!(read.stretches[0].reason.contains("ends inside a document"));
}

#[test]
fn everything_before_damage_to_a_gzip_file_is_read() {
    let documents = documents(3000);
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(&documents.concat()).expect("written");
    let packed = encoder.finish().expect("finished");
    let half = packed.len() / 2;
    let mut damaged = packed.clone();
    damaged[half..half + 64].fill(0xFF);
    for (content, least) in [(&packed[..half], 1400), (&packed[..packed.len() - 3], 3000)] {
        let read = read_file(content, Compression::Gzip);
        assert!(read.documents.len() >= least, "{}", read.documents.len());
        assert_eq!(read.documents, documents[..read.documents.len()]);
        let stretch = read.stretches.last().expect("a stretch");
        assert_eq!(stretch.to, None);
        assert!(stretch.reason.contains("gzip"), "{stretch:?}");
    }
    let read = read_file(&damaged, Compression::Gzip);
    assert!(read.documents.len() >= 1400, "{}", read.documents.len());
}

#[test]
fn documents_without_id_are_found_again() {
    let documents: Vec<_> =
        (0..50).map(|n| doc! { "n": n, "text": "abc" }.to_vec().expect("encodes")).collect();
    let mut bytes = documents.concat();
    let from = documents[..20].concat().len();
    bytes[from] = 0;
    assert_eq!(read(&bytes).documents, [&documents[..20], &documents[21..]].concat());
}

#[test]
fn the_same_place_is_found_from_the_damage_on() {
    let documents = documents(50);
    let mut bytes = documents.concat();
    let from = documents[..20].concat().len();
    bytes[from..from + 60].fill(7);
    let whole = read(&bytes);
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("c.bson");
    std::fs::write(&path, &bytes).expect("written");
    let file = DataFile { path, compression: Compression::None, bytes: bytes.len() as u64 };
    let mut reader = reader::open(&file).expect("opened").salvaging();
    reader.skip_to(from as u64);
    let stretch = loop {
        match reader.read_next() {
            Salvaged::Stretch(stretch) => break stretch,
            Salvaged::Lost(_) => {}
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(stretch, whole.stretches[0]);
}

proptest! {
    #[test]
    fn every_byte_is_read_or_lost_once(
        flips in prop::collection::vec((0_usize..8000, any::<u8>()), 1..12),
        cut in 0_usize..8000,
    ) {
        let mut bytes = documents(60).concat();
        for (at, byte) in flips {
            let at = at % bytes.len();
            bytes[at] = byte;
        }
        bytes.truncate(bytes.len() - cut % (bytes.len() / 4));
        let read = read(&bytes);
        let found: usize = read.documents.iter().map(Vec::len).sum();
        let lost: usize = read.lost.iter().map(Vec::len).sum();
        prop_assert_eq!(found + lost, bytes.len());
        for (stretch, lost) in read.stretches.iter().zip(&read.lost) {
            let to = stretch.to.expect("known");
            prop_assert_eq!(to - stretch.from, lost.len() as u64);
            let (from, to) = (usize::try_from(stretch.from)?, usize::try_from(to)?);
            prop_assert_eq!(&bytes[from..to], &lost[..]);
        }
        // A flip spoils at most its own document and, where that is in doubt, the one before.
        prop_assert!(read.documents.len() >= 60 * 3 / 4 - 24 - 2);
    }
}
