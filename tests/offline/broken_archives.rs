//! Each archive in `testdata/broken_archives` gives its named error with the byte, and everything
//! that can be restored of it is.
//!
//! All of them hold `shop.items`, two documents, and then `shop.orders`, three documents, as far as
//! they hold anything.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::broken::names_in;
use crate::program::{Finished, Program};

/// The address space that the binary gets: far less than a document of the claimed lengths takes.
const MEMORY_KIBIBYTES: u32 = 768 * 1024;

/// What is known of a broken archive.
struct Broken {
    file: &'static str,
    /// What is said of it, by `inspect` and `restore` alike.
    said: &'static str,
    /// The byte that is named, where one is.
    byte: Option<u32>,
    /// Documents restored nevertheless; nothing where nothing is begun.
    inserted: Option<u32>,
    /// The exit status of both.
    status: i32,
}

const fn refused(file: &'static str, said: &'static str, byte: u32) -> Broken {
    Broken { file, said, byte: Some(byte), inserted: None, status: 1 }
}

const fn damaged(file: &'static str, said: &'static str, byte: u32, inserted: u32) -> Broken {
    Broken { file, said, byte: Some(byte), inserted: Some(inserted), status: 1 }
}

const BROKEN: [Broken; 30] = [
    Broken {
        file: "buckets_without_metadata",
        said: "shop.system.buckets.w: holds buckets, but the metadata of `shop.w` is not in the list",
        byte: None,
        inserted: Some(3),
        status: 1,
    },
    damaged(
        "checksum_wrong",
        "the checksum of its documents is a0f1bc5e2fa24d36, but the archive says 1122334455667788",
        780,
        5,
    ),
    damaged(
        "cut_before_last_terminator",
        "the terminator behind the end of `shop.orders` is missing",
        840,
        5,
    ),
    damaged("cut_between_blocks", "the archive ends before the end of `shop.orders`", 780, 5),
    damaged(
        "cut_between_documents",
        "the archive ends among the documents of `shop.orders`",
        721,
        3,
    ),
    damaged("cut_in_document", "ends inside a document: 7 of its 27 bytes are there", 721, 3),
    damaged(
        "document_changed",
        "the checksum of its documents is bd1f36000d8eecea, but the archive says a0f1bc5e2fa24d36",
        780,
        5,
    ),
    damaged("documents_after_end", "documents come directly behind the collection's end", 631, 2),
    refused("empty", "this is not an archive: it is empty", 0),
    damaged(
        "header_damaged",
        "documents without a header that names their collection: its field `EOF` is of the wrong \
         type",
        635,
        2,
    ),
    damaged("length_huge", "a document claims 2147483647 bytes, more than the 16 MiB", 721, 3),
    damaged("length_negative", "a document claims -40 bytes, fewer than the 5", 721, 3),
    refused("list_cut_in_document", "ends inside a document: 97 of its 171 bytes are there", 103),
    refused("list_damaged", "the list of collections is damaged: its field `collection` is", 103),
    refused("list_names_twice", "the list of collections names `shop.orders` twice", 275),
    refused("list_without_terminator", "the archive ends inside its list of collections", 446),
    refused("magic_alone", "the archive ends before its header", 4),
    Broken {
        file: "metadata_broken",
        said: "its metadata in the archive is not valid: EOF while parsing a value at line 1",
        byte: None,
        inserted: Some(3),
        status: 1,
    },
    damaged("never_ended", "the archive ends before the end of `shop.orders`", 635, 2),
    refused(
        "not_an_archive_bson",
        "this is not an archive: it looks like the documents of one collection",
        0,
    ),
    refused("not_an_archive_json", "this is not an archive: it looks like JSON", 0),
    refused("not_an_archive_text", "this is not an archive: it is of no kind that is known", 0),
    damaged("not_terminated", "a document does not end in a zero byte", 721, 3),
    damaged("reopened", "the collection begins again after its end", 635, 2),
    damaged("trailing_bytes", "2 bytes behind the last block belong to nothing", 844, 5),
    damaged(
        "trailing_document",
        "documents without a header that names their collection: it has a field `_id`",
        844,
        5,
    ),
    damaged("two_terminators", "two terminators in a row: a block without its header", 635, 2),
    damaged("unlisted", "documents of `shop.others`, which the archive does not list", 635, 2),
    Broken { file: "version_unknown", said: "", byte: None, inserted: Some(5), status: 0 },
    damaged("view_with_documents", "the archive holds documents of this view", 476, 3),
];

fn testdata() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata")
}

/// Runs the binary in `testdata`, with little memory.
fn run(arguments: &[&str], input: Vec<u8>) -> Finished {
    let script = format!("ulimit -v {MEMORY_KIBIBYTES} && exec \"$0\" \"$@\"");
    let binary = env!("CARGO_BIN_EXE_restorm");
    let words = [&["-c", &script, binary], arguments].concat();
    Program::of("sh", &words).in_folder(testdata()).input(input).run()
}

/// All that was said, with every line's end and indentation as one space.
fn said(finished: &Finished) -> String {
    let text = format!("{} {}", finished.stdout, finished.stderr);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[track_caller]
fn check(broken: &Broken, finished: &Finished, is_restored: bool) {
    let Broken { file, said: expected, byte, inserted, status } = broken;
    let said = said(finished);
    assert_eq!(finished.status, Some(*status), "{file}: {said}");
    assert!(said.contains(expected), "{file}: `{expected}` is not in: {said}");
    assert!(!said.contains("panicked"), "{file}: {said}");
    if let Some(byte) = byte {
        let at = format!("byte {byte}");
        assert!(said.contains(&at), "{file}: `{at}` is not in: {said}");
    }
    match inserted {
        Some(inserted) if is_restored => {
            let balance = format!("{inserted} read = {inserted} inserted + 0 already there");
            assert!(said.contains(&balance), "{file}: `{balance}` is not in: {said}");
            assert!(said.contains("+ 0 unsent"), "{file}: {said}");
        }
        Some(_) => {}
        None => assert!(said.contains("error: "), "{file}: {said}"),
    }
}

#[test]
fn every_broken_archive_is_in_the_table() {
    let listed: BTreeSet<_> = BROKEN.iter().map(|broken| broken.file.to_owned()).collect();
    assert_eq!(listed, names_in(&testdata().join("broken_archives")));
}

#[test]
fn inspect_names_what_is_wrong_and_where() {
    for broken in &BROKEN {
        let archive = format!("--archive=broken_archives/{}", broken.file);
        check(broken, &run(&["inspect", &archive], Vec::new()), false);
    }
}

#[test]
fn restore_names_what_is_wrong_and_restores_the_rest() {
    for broken in &BROKEN {
        let archive = format!("--archive=broken_archives/{}", broken.file);
        check(broken, &run(&["restore", "--null", &archive], Vec::new()), true);
    }
}

#[test]
fn it_is_the_same_through_a_pipe() {
    for broken in &BROKEN {
        let content = std::fs::read(testdata().join("broken_archives").join(broken.file));
        let finished = run(&["restore", "--null", "--archive"], content.expect("it is there"));
        check(broken, &finished, true);
    }
}

#[test]
fn regression_what_was_complete_before_the_damage_is_restored_every_time() {
    // The reader that met the damage kept collections from being created whose documents it had
    // read already, where it was faster than who creates them.
    for _ in 0..30 {
        let finished =
            run(&["restore", "--null", "--archive=broken_archives/two_terminators"], Vec::new());
        let said = said(&finished);
        assert!(said.contains("balance 2 read = 2 inserted"), "{said}");
    }
}

#[test]
fn better_than_the_peer_b19_an_archive_of_an_unknown_version_is_restored() {
    // The peer wants three numbers, and its own mongodump writes `unknown` where it was not told.
    let finished = run(&["restore", "--null", "broken_archives/version_unknown"], Vec::new());
    assert_eq!(finished.status, Some(0), "{}", finished.stderr);
    assert!(finished.stderr.contains("5 documents inserted"), "{}", finished.stderr);
}

/// The peer says `archive io error` of whatever is wrong inside of an archive.
#[test]
fn better_than_the_peer_a_truncated_archive_names_the_cause_and_the_byte() {
    let finished = run(&["restore", "--null", "broken_archives/cut_in_document"], Vec::new());
    assert_eq!(finished.status, Some(1), "{}", finished.stderr);
    let said = said(&finished);
    assert!(said.contains("ends inside a document: 7 of its 27 bytes are there"), "{said}");
    assert!(said.contains("at byte 721"), "{said}");
}
