//! What a run waits for that is not the server's doing.

use crate::program::Program;
use serde_json::Value;
use std::io::Write;
use std::path::Path;

/// A dump of one collection of so many documents.
fn seeded(documents: u32) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let documents = documents.to_string();
    let seed = ["seed", "--collections", "1", "--documents", &documents, "--out"];
    let seeded = Program::restorm(&seed).arg(folder.path().join("dump")).run();
    assert_eq!(seeded.status, Some(0), "{}", seeded.stderr);
    folder
}

/// The verdict of reading a dump into nothing.
#[track_caller]
fn verdict(folder: &Path, arguments: &[&str]) -> String {
    let report = folder.join("report.json");
    let restored = Program::restorm(&["restore", "--null", "--ledger", "none", "--report"])
        .arg(&report)
        .arg(folder.join("dump"))
        .args(arguments)
        .run();
    assert_eq!(restored.status, Some(0), "{}", restored.stderr);
    let report: Value =
        serde_json::from_slice(&std::fs::read(report).expect("a report")).expect("JSON");
    let by = report["bound_by"]["by"].as_str();
    by.unwrap_or_else(|| panic!("too short to tell:\n{}", restored.stderr)).to_owned()
}

#[test]
fn checks_of_every_document_are_the_limit() {
    let folder = seeded(10_000);
    let first = folder.path().join("dump/seed/c00001.bson");
    let content = std::fs::read(&first).expect("read").repeat(10);
    std::fs::write(&first, &content).expect("write");
    // The same file under many names, so that there is much to check in little room.
    for number in 2..=40 {
        let link = first.with_file_name(format!("c{number:05}.bson"));
        std::fs::hard_link(&first, link).expect("link");
    }
    assert_eq!(verdict(folder.path(), &["--validate-documents"]), "client_cpu");
}

#[test]
fn a_file_that_has_to_be_unpacked_is_the_limit() {
    let folder = seeded(10_000);
    let plain = folder.path().join("dump/seed/c00001.bson");
    let content = std::fs::read(&plain).expect("read").repeat(12);
    let packed = std::fs::File::create(plain.with_extension("bson.gz")).expect("create");
    let mut encoder = flate2::write::GzEncoder::new(packed, flate2::Compression::best());
    encoder.write_all(&content).and_then(|()| encoder.finish().map(drop)).expect("write");
    std::fs::remove_file(plain).expect("remove");
    assert_eq!(verdict(folder.path(), &[]), "inflating");
}
