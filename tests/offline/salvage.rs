//! What is restored around damage, what is lost, and how it is told.

use std::path::{Path, PathBuf};

use restorm::dump::inventory::Origin;
use restorm::dump::writer::archive::{ArchiveWriter, ArchivedCollection};
use restorm::dump::{ArchivePlace, CollectionMetadata, Compression, Dump, Location};
use restorm::namespace::Namespace;
use restorm::reader::demux::{self, Demux, Item};
use serde_json::Value;

use crate::chance::{Chance, each_seed};
use crate::program::Program;

fn testdata(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata").join(path)
}

/// What a salvage came to.
struct Salvaged {
    status: Option<i32>,
    stderr: String,
    report: Value,
    folder: tempfile::TempDir,
}

impl Salvaged {
    /// Restores nowhere what can be read of this dump.
    fn of(dump: &Path, arguments: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let report = folder.path().join("report.json");
        let finished = Program::restorm(&["restore", "--null", "--salvage"])
            .arg("--report")
            .arg(&report)
            .arg("--salvage-dir")
            .arg(folder.path().join("kept"))
            .args(arguments)
            .arg(dump)
            .run();
        let report = std::fs::read(report).expect("a report");
        let report = serde_json::from_slice(&report).expect("JSON");
        Self { status: finished.status, stderr: finished.stderr, report, folder }
    }

    fn number(&self, pointer: &str) -> u64 {
        let value = self.report.pointer(pointer).and_then(Value::as_u64);
        value.unwrap_or_else(|| panic!("{pointer} is no number: {:#}", self.report))
    }

    /// A file of what is kept.
    fn kept(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.folder.path().join("kept").join(name)).expect("it is kept")
    }
}

/// Documents inserted, stretches and bytes lost of each broken dump with one damaged file.
const BROKEN: [(&str, u64, u64, u64); 11] = [
    ("length_huge", 4, 1, 42),
    ("length_negative", 4, 1, 42),
    ("length_too_small", 4, 1, 42),
    ("lying_length", 4, 1, 42),
    ("nested_too_deep", 2, 1, 2412),
    ("not_terminated", 4, 1, 42),
    ("truncated_document", 4, 1, 32),
    ("unknown_type", 2, 1, 42),
    ("gzip_corrupt", 5, 1, 0),
    ("gzip_truncated", 3, 1, 10),
    ("zstd_truncated", 0, 1, 0),
];

#[test]
fn all_that_can_be_read_is_restored_and_the_rest_is_told() {
    for (name, inserted, stretches, bytes) in BROKEN {
        let salvaged = Salvaged::of(&testdata("broken").join(name), &[]);
        let stderr = &salvaged.stderr;
        assert_eq!(salvaged.status, Some(1), "{name}: {stderr}");
        let found = [
            salvaged.number("/balance/inserted"),
            salvaged.number("/salvage/stretches"),
            salvaged.number("/salvage/bytes"),
        ];
        assert_eq!(found, [inserted, stretches, bytes], "{name}: {stderr}");
        assert_eq!(salvaged.report["is_balanced"], true, "{name}");
        let collection = &salvaged.report["collections"][0];
        assert_eq!(collection["state"], "failed", "{name}");
        assert_eq!(collection["lost"]["count"], stretches, "{name}");
        assert!(stderr.contains("NOT COMPLETE"), "{name}: {stderr}");
    }
}

/// Documents inserted of each broken archive, and stretches lost; all hold two of `shop.items` and
/// three of `shop.orders`.
const ARCHIVES: [(&str, u64, u64); 16] = [
    ("checksum_wrong", 5, 0),
    ("cut_before_last_terminator", 5, 0),
    ("cut_between_blocks", 5, 0),
    ("cut_between_documents", 3, 0),
    ("cut_in_document", 3, 1),
    ("document_changed", 5, 0),
    ("documents_after_end", 5, 1),
    ("header_damaged", 2, 1),
    ("length_huge", 3, 1),
    ("length_negative", 3, 1),
    ("not_terminated", 4, 1),
    ("reopened", 5, 1),
    ("trailing_bytes", 5, 1),
    ("trailing_document", 5, 1),
    ("two_terminators", 5, 1),
    ("unlisted", 5, 1),
];

#[test]
fn archives_go_on_behind_damage() {
    for (name, inserted, stretches) in ARCHIVES {
        let salvaged = Salvaged::of(&testdata("broken_archives").join(name), &[]);
        let stderr = &salvaged.stderr;
        assert_eq!(salvaged.status, Some(1), "{name}: {stderr}");
        let found = [salvaged.number("/balance/inserted"), salvaged.number("/salvage/stretches")];
        assert_eq!(found, [inserted, stretches], "{name}: {stderr}");
        assert_eq!(salvaged.report["is_balanced"], true, "{name}");
    }
}

/// `{ "_id": id, "a": "x" }`.
fn document(id: u16) -> Vec<u8> {
    let [low, high] = id.to_le_bytes();
    let mut bytes = vec![0, 0, 0, 0, 0x10];
    bytes.extend_from_slice(b"_id\0");
    bytes.extend_from_slice(&[low, high, 0, 0, 0x02]);
    bytes.extend_from_slice(b"a\0");
    bytes.extend_from_slice(&[2, 0, 0, 0, b'x', 0, 0]);
    bytes[0] = u8::try_from(bytes.len()).expect("it is short");
    bytes
}

/// A dump of `shop.things` with these bytes.
fn dump_of(bytes: &[u8]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(folder.path().join("shop")).expect("a folder");
    std::fs::write(folder.path().join("shop/things.bson"), bytes).expect("written");
    folder
}

#[test]
fn lost_bytes_are_kept_and_listed() {
    let documents: Vec<_> = (0..3000).map(document).collect();
    let length = documents[0].len();
    let mut bytes = documents.concat();
    bytes[700 * length] = 3;
    bytes[900 * length..902 * length].fill(0);
    let dump = dump_of(&bytes);
    let salvaged = Salvaged::of(dump.path(), &[]);
    assert_eq!(salvaged.number("/balance/inserted"), 2997, "{}", salvaged.stderr);
    let lost = [&bytes[700 * length..701 * length], &bytes[900 * length..902 * length]].concat();
    assert_eq!(salvaged.kept("shop.things.lost"), lost);
    let lines = String::from_utf8(salvaged.kept("lost.jsonl")).expect("text");
    let lines: Vec<Value> =
        lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    for (line, from, to) in [(&lines[0], 700, 701), (&lines[1], 900, 902)] {
        assert_eq!((&line["from"], &line["to"]), (&(from * length).into(), &(to * length).into()));
        assert_eq!(line["kept_in"], "shop.things.lost");
    }
    let stretches = &salvaged.report["collections"][0]["lost"]["stretches"];
    assert_eq!(stretches[1]["bytes"], 2 * length);
    assert!(salvaged.report["ledger"].is_null());
}

#[test]
fn a_sound_dump_is_restored_as_ever() {
    let documents: Vec<_> = (0..3000).map(document).collect();
    let dump = dump_of(&documents.concat());
    let salvaged = Salvaged::of(dump.path(), &[]);
    assert_eq!(salvaged.status, Some(0), "{}", salvaged.stderr);
    assert_eq!(salvaged.number("/balance/inserted"), 3000);
    assert!(salvaged.report["salvage"]["folder"].is_null());
    assert!(!salvaged.folder.path().join("kept").exists(), "nothing is lost");
    assert!(salvaged.stderr.contains("lost       nothing"), "{}", salvaged.stderr);
}

#[test]
fn without_salvage_the_others_are_finished() {
    let documents: Vec<_> = (0..300).map(document).collect();
    let length = documents[0].len();
    let mut bytes = documents.concat();
    bytes[100 * length] = 3;
    let dump = dump_of(&bytes);
    std::fs::write(dump.path().join("shop/others.bson"), documents.concat()).expect("written");
    let finished = Program::restorm(&["restore", "--null"]).arg(dump.path()).run();
    assert_eq!(finished.status, Some(1), "{}", finished.stderr);
    let offset = format!("at byte {}", 100 * length);
    assert!(finished.stderr.contains(&offset), "{}", finished.stderr);
    assert!(finished.stderr.contains("400 read = 400 inserted"), "{}", finished.stderr);
}

#[test]
fn lost_bytes_are_kept_beside_the_dump_unless_it_is_said_where() {
    let dump = dump_of(&[3; 40]);
    let path = dump.path().join("shop");
    let finished = Program::restorm(&["restore", "--null", "--salvage"]).arg(&path).run();
    assert_eq!(finished.status, Some(1), "{}", finished.stderr);
    let kept = std::fs::read(dump.path().join("shop.salvage/shop.things.lost")).expect("kept");
    assert_eq!(kept, [3; 40]);
}

#[test]
fn a_deep_inspection_looks_behind_damage_and_at_ids() {
    let mut documents: Vec<_> = (0..300).map(document).collect();
    documents.push(document(7));
    // The type of `a`, which then is a document.
    documents[20][13] = 0x03;
    documents[30][20] = 0xFF;
    let dump = dump_of(&documents.concat());
    let metadata = r#"{"indexes":[{"v":2,"key":{"a..b":1},"name":"x"}]}"#;
    std::fs::write(dump.path().join("shop/things.metadata.json"), metadata).expect("written");
    let inspect = |flags: &[&str]| {
        Program::restorm(&["inspect", "--json"]).args(flags).arg(dump.path()).run()
    };
    let plain: Value = serde_json::from_str(&inspect(&[]).stdout).expect("JSON");
    assert_eq!((&plain["depth"], &plain["totals"]["problems"]), (&"plain".into(), &1.into()));
    let finished = inspect(&["--deep"]);
    assert_eq!(finished.status, Some(1), "{}", finished.stderr);
    let deep: Value = serde_json::from_str(&finished.stdout).expect("JSON");
    let data = &deep["collections"][0]["data"];
    assert_eq!((&deep["depth"], &data["documents"]), (&"deep".into(), &300.into()));
    let found = &data["deep"];
    assert_eq!(found["documents_with_duplicate_id"], 1);
    assert_eq!(found["documents_not_utf8"], 1);
    assert_eq!((&found["stretches_lost"], &found["bytes_lost"]), (&1.into(), &23.into()));
    assert_eq!(found["deepest_level"], 1);
    let problems = deep["collections"][0]["problems"].to_string();
    for what in [
        "index `x`: its field `a..b` has an empty part",
        "a document has the _id of the one at byte 161",
        "text that is not UTF-8, in its field `a`",
        "23 bytes are lost, up to byte 483",
    ] {
        assert!(problems.contains(what), "{what}: {problems}");
    }
}

/// The address space that the binary gets for a bomb.
const MEMORY_KIBIBYTES: u32 = 512 * 1024;

fn with_little_memory(arguments: &[&str]) -> crate::program::Finished {
    let script = format!("ulimit -v {MEMORY_KIBIBYTES} && exec \"$0\" \"$@\"");
    let binary = env!("CARGO_BIN_EXE_restorm");
    Program::of("sh", &[&["-c", &script, binary], arguments].concat()).run()
}

fn gzip_of_zeros(mebibytes: usize) -> Vec<u8> {
    use std::io::Write;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let zeros = vec![0; 1 << 20];
    (0..mebibytes).for_each(|_| encoder.write_all(&zeros).expect("compressed"));
    encoder.finish().expect("compressed")
}

#[test]
fn bombs_and_tricks_are_refused_in_bounded_memory() {
    let dump = dump_of(&document(1));
    let shop = dump.path().join("shop");
    std::fs::write(shop.join("bomb.bson.gz"), gzip_of_zeros(24)).expect("written");
    std::fs::write(shop.join("things.metadata.json.gz"), gzip_of_zeros(65)).expect("written");
    // A name that leads out of the folder, once it is decoded.
    std::fs::write(shop.join("..%2F..%2Fescaped.bson"), document(1)).expect("written");
    let mut nested = vec![5, 0, 0, 0, 0];
    for _ in 0..10_000 {
        let length = u32::try_from(nested.len() + 8).expect("it is short");
        nested = [&length.to_le_bytes()[..], b"\x03a\0", &nested, b"\0"].concat();
    }
    std::fs::write(shop.join("nested.bson"), nested).expect("written");
    let path = dump.path().to_string_lossy().into_owned();
    let folder = tempfile::tempdir().expect("a folder");
    let kept = folder.path().join("kept").to_string_lossy().into_owned();
    let all = ["--null", "--salvage", "--salvage-dir", &kept, "-v", &path];
    for (arguments, expected) in [
        (&["inspect", &path][..], "nested deeper than a server accepts"),
        (&["inspect", "--deep", &path], "nested deeper than a server accepts"),
        (&["restore", "--null", "-v", &path], "a document claims 0 bytes"),
        (&[&["restore"], &all[..]].concat(), "nested deeper than a server accepts"),
    ] {
        let finished = with_little_memory(arguments);
        let said = format!("{}{}", finished.stdout, finished.stderr);
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(finished.status, Some(1), "{arguments:?}: {said}");
        assert!(said.contains(expected), "{arguments:?}: {said}");
        assert!(said.contains("more than 64 MiB of content"), "{arguments:?}: {said}");
    }
    for item in std::fs::read_dir(folder.path()).expect("the folder is there") {
        assert_eq!(item.expect("it can be listed").file_name(), "kept");
    }
}

/// An archive of two collections in blocks by turns; each document says where it belongs.
fn tagged_archive() -> Vec<u8> {
    let names = ["alpha", "omega"];
    let listed = names.map(|name| ArchivedCollection {
        namespace: Namespace::new("shop", name),
        metadata: CollectionMetadata::default(),
    });
    let mut bytes = Vec::new();
    let mut writer = ArchiveWriter::begin(&mut bytes, Compression::None, 2, None, &listed)
        .expect("it is written");
    for block in 0..12 {
        for (place, name) in names.iter().enumerate() {
            for number in 0..10 {
                let document = bson::doc! { "_id": block * 10 + number, "of": *name };
                let document = document.to_vec().expect("it encodes");
                writer.append(place, &document).expect("it is written");
            }
        }
    }
    (0..2).for_each(|place| writer.end(place).expect("it is written"));
    writer.finish().expect("it is written");
    bytes
}

#[test]
fn no_document_is_taken_for_one_of_another_collection() {
    let whole = tagged_archive();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("damaged.archive");
    each_seed(300, |seed| {
        let (mut bytes, mut chance) = (whole.clone(), Chance::new(seed));
        for _ in 0..chance.between(1, 5) {
            let from = chance.between(400, bytes.len() - 1);
            let to = bytes.len().min(from + chance.between(1, 200));
            // Bytes that are gone can join two documents without a trace but in the checksum.
            if chance.percent(40) {
                bytes[from] ^= 1 << chance.below(8);
            } else {
                bytes[from..to].fill(*chance.one_of(&[0, 0xFF, 0x5B]));
            }
        }
        std::fs::write(&path, &bytes).expect("written");
        let place = Location::Archive(ArchivePlace::File(path.clone()));
        let dump = Dump::at(&place, None, None).expect("an archive is asked for");
        let Ok(inventory) = dump.scan() else { return };
        let archive = inventory.entries.iter().find_map(|entry| match &entry.data {
            Some(Origin::Segments(segments)) => Some(segments.archive.clone()),
            _ => None,
        });
        let archive = archive.expect("an archive");
        let mut demux = Demux::open(&archive).expect("it is there");
        while let Ok(Some(salvaged)) = demux.next_salvaged() {
            if let demux::salvage::Salvaged::Item(Item::Document { place, frame, .. }) = salvaged {
                let other = &archive.collections()[1 - place].namespace;
                let other = other.collection().as_bytes();
                let is_of_other = frame.bytes().windows(other.len()).any(|window| window == other);
                assert!(!is_of_other, "{:?}", String::from_utf8_lossy(frame.bytes()));
            }
        }
    });
}
