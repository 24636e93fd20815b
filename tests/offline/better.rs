//! What mongorestore 100.18 does wrong before it reaches a server, and restorm does not.

use std::path::Path;

use restorm::LoadSettings;
use restorm::command::restore::memory_bytes_max;

use crate::program::{Finished, Program};

fn run(line: &str) -> Finished {
    let testdata = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata");
    let words: Vec<_> = line.split_whitespace().collect();
    Program::restorm(&words).in_folder(testdata).run()
}

/// The peer panics at a negative batch size, and takes a negative number of workers as far as to
/// the server.
#[test]
fn better_than_the_peer_numbers_that_cannot_be_are_refused() {
    for line in ["--batchSize=-1", "--numInsertionWorkersPerCollection=-1", "--workers 0"] {
        let finished = run(&format!("restore --null dumps/full_6.0 {line}"));
        assert_eq!(finished.status, Some(2), "{line}: {}", finished.stderr);
        assert!(!finished.stderr.contains("panicked"), "{line}: {}", finished.stderr);
    }
}

/// The peer with 0 workers creates the collections, inserts nothing and exits with 0.
#[test]
fn better_than_the_peer_b2_no_insertion_workers_are_one() {
    let line = "restore --null dumps/full_6.0 --numInsertionWorkersPerCollection 0 -j 0";
    let finished = run(line);
    assert_eq!(finished.status, Some(0), "{}", finished.stderr);
    let balance = "balance    4,061 read = 4,061 inserted";
    assert!(finished.stderr.contains(balance), "{}", finished.stderr);
}

/// The peer gives every open collection a read buffer of 16 MiB.
#[test]
fn better_than_the_peer_many_open_collections_take_little_memory() {
    let few = LoadSettings { readers: 1, ..LoadSettings::default() };
    let many = LoadSettings { readers: 256, ..LoadSettings::default() };
    let each = (memory_bytes_max(&many) - memory_bytes_max(&few)) / 255;
    assert!(each <= 2 * 1024 * 1024, "{each} bytes for each open collection");
}

/// The peer with `--quiet` says nothing at all, even if nothing was restored.
#[test]
fn better_than_the_peer_quiet_shows_errors() {
    for line in ["restore --null -q nowhere", "restore --null -q broken/truncated_document"] {
        let finished = run(line);
        assert_eq!(finished.status, Some(1), "{line}");
        assert_ne!(finished.stderr, "", "{line}");
    }
}

/// The peer's only output for programs is the exit status, which says little.
#[test]
fn better_than_the_peer_a_program_can_read_what_came_of_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let report = folder.path().join("report.json");
    let line = format!("restore --null dumps/full_6.0 -d shop --report {}", report.display());
    assert_eq!(run(&line).status, Some(0));
    let text = std::fs::read_to_string(&report).expect("it is written");
    let report: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
    assert_eq!(report["schema"], "restorm.report/1");
    let collections = report["collections"].as_array().expect("a list");
    let orders = collections.iter().find(|one| one["namespace"] == "shop.orders");
    assert_eq!(orders.expect("it is told")["balance"]["inserted"], 3000, "{orders:?}");
}
