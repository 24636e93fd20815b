//! Large documents, many collections, archives that take turns: within the memory that was given.
//!
//! The system sets the limit, so that the program ends where it asks for more.

use crate::program::Program;
use crate::support::dump::{Dump, documents};
use crate::support::{Server, runtime, verified};
use mongodb::bson::{Document, doc};
use restorm::dump::writer::archive::{ArchiveWriter, ArchivedCollection};
use restorm::dump::{CollectionMetadata, Compression};
use restorm::namespace::Namespace;
use std::path::{Path, PathBuf};

/// What the program takes besides buffers: its code, the runtime, the driver. The code of a build
/// that is not optimised is larger.
const PROGRAM_KIB: u64 = if cfg!(debug_assertions) { 40 * 1024 } else { 24 * 1024 };

/// What the system counts although it is never touched: the stacks of threads, and the room that
/// buffers of large documents get by doubling.
const UNTOUCHED_KIB: u64 = (32 + 96) * 1024;

/// What is known of a collection, by docs/operations.md.
const COLLECTION_BYTES: u64 = 2500;

fn large(id: i32) -> Vec<u8> {
    doc! { "_id": id, "text": "x".repeat(15 << 20) }.to_vec().expect("encodes")
}

/// Restores and checks that the memory in use never was more than was given.
fn restores_within(server: &Server, mebibytes: u64, arguments: &[&str]) {
    let to_server = ["--uri", server.uri(), "--ledger", "none", "--drop"];
    stays_within(mebibytes, &[&to_server, arguments].concat());
}

fn stays_within(mebibytes: u64, arguments: &[&str]) {
    let memory = format!("{mebibytes}M");
    let restore = ["restore", "--memory", &memory];
    stays_below(mebibytes * 1024 + PROGRAM_KIB, &[&restore, arguments].concat());
}

fn stays_below(most: u64, arguments: &[&str]) {
    let script = format!("ulimit -d {} && exec \"$0\" \"$@\"", most + UNTOUCHED_KIB);
    let limited = ["-c", &script, env!("CARGO_BIN_EXE_restorm")];
    let running = Program::of("sh", &[&limited, arguments].concat()).start();
    let pid = running.pid();
    let watch = std::thread::spawn(move || peak_kib(pid));
    let finished = running.finish();
    assert_eq!(finished.status, Some(0), "{}", finished.stderr);
    let peak = watch.join().expect("it watches to the end");
    assert!(peak > 0 && peak <= most, "{peak} KiB in use, {most} were given");
}

/// The most memory that a process had in use, as the system says until it ends.
fn peak_kib(pid: u32) -> u64 {
    let mut peak = 0;
    while let Ok(status) = std::fs::read_to_string(format!("/proc/{pid}/status")) {
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse().ok());
        peak = peak.max(kib.unwrap_or(0));
        // One that has ended has no memory any more.
        if line.is_none() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    peak
}

fn count(server: &Server, collection: &str) -> u64 {
    let collection = server.client().database("big").collection::<Document>(collection);
    runtime().block_on(async { collection.count_documents(doc! {}).await.expect("counted") })
}

#[test]
fn large_documents_stay_within_the_memory_that_was_given() {
    let server = Server::private(&[]);
    let mut dump = Dump::new();
    for collection in ["a", "b", "c", "d"] {
        let mut documents: Vec<_> = (0..3).map(large).collect();
        documents.extend(
            (10..500)
                .map(|id| doc! { "_id": id, "text": "y".repeat(2000) }.to_vec().expect("encodes")),
        );
        dump = dump.with("big", collection, &documents);
    }
    restores_within(&server, 224, &[dump.path().to_str().expect("a plain path")]);
    for collection in ["a", "b", "c", "d"] {
        assert_eq!(count(&server, collection), 493);
    }
    // The same from an archive, in which the collections take turns.
    let folder = tempfile::tempdir().expect("a folder");
    let archive = folder.path().join("big.archive");
    let names = ["a", "b", "c", "d"];
    let files = names.map(|name| documents(&dump.file(&format!("big/{name}.bson"))));
    interleave(&archive, &names.map(str::to_owned), files[0].len(), |collection, number| {
        files[collection][number].clone()
    });
    let archived = format!("--archive={}", archive.display());
    restores_within(&server, 224, &[&archived]);
    for collection in ["a", "b", "c", "d"] {
        assert_eq!(count(&server, collection), 493);
    }
}

/// Writes an archive in which collections take turns with each document.
fn interleave(
    archive: &Path,
    names: &[String],
    rounds: usize,
    document: impl Fn(usize, usize) -> Vec<u8>,
) {
    let listed: Vec<_> = names
        .iter()
        .map(|name| ArchivedCollection {
            namespace: Namespace::new("big", name),
            metadata: CollectionMetadata::default(),
        })
        .collect();
    let file = std::fs::File::create(archive).expect("a file");
    let mut archive =
        ArchiveWriter::begin(file, Compression::Zstd, 4, None, &listed).expect("begun");
    for number in 0..rounds {
        for collection in 0..names.len() {
            archive.append(collection, &document(collection, number)).expect("written");
        }
    }
    for collection in 0..names.len() {
        archive.end(collection).expect("ended");
    }
    archive.finish().expect("finished");
}

/// Open batches of all collections would take several times the memory that there is for them.
#[test]
fn collections_that_take_turns_share_the_memory_of_open_batches() {
    const ROUNDS: usize = 6;
    let server = Server::private(&[]);
    let folder = tempfile::tempdir().expect("a folder");
    let text = "z".repeat(100_000);
    let write = |file: &str, collections: usize| -> (PathBuf, Vec<String>) {
        let archive = folder.path().join(file);
        let names: Vec<_> = (0..collections).map(|number| format!("c{number:04}")).collect();
        interleave(&archive, &names, ROUNDS, |_, number| {
            let id = i64::try_from(number).expect("small");
            doc! { "_id": id, "text": &text }.to_vec().expect("encodes")
        });
        (archive, names)
    };
    let (archive, names) = write("some.archive", 120);
    restores_within(&server, 224, &[archive.to_str().expect("a plain path")]);
    for name in &names {
        assert_eq!(count(&server, name), ROUNDS as u64, "{name}");
    }
    verified(server.uri(), &archive);
    let (archive, _) = write("many.archive", 300);
    stays_within(224, &["--null", archive.to_str().expect("a plain path")]);
}

/// What is known of each collection comes on top of the buffers, of which these need hardly any.
#[test]
fn very_many_collections_take_little_memory_each() {
    const COLLECTIONS: u64 = 100_000;
    let folder = tempfile::tempdir().expect("a folder");
    let archive = folder.path().join("many.archive");
    let archive = archive.to_str().expect("a plain path");
    let seeded = Program::restorm(&["seed", "--archive", archive, "--documents", "1"])
        .args(&["--collections", &COLLECTIONS.to_string()])
        .run();
    assert_eq!(seeded.status, Some(0), "{}", seeded.stderr);
    let most = PROGRAM_KIB + COLLECTIONS * COLLECTION_BYTES / 1024;
    stays_below(most, &["restore", "--null", &format!("--archive={archive}")]);
}

#[test]
fn too_little_memory_is_refused_with_what_would_be_enough() {
    let refused = Program::restorm(&["restore", "--null", "--memory", "100M", "x"]).run();
    assert_eq!(refused.status, Some(2), "{}", refused.stderr);
    assert!(refused.stderr.contains("100 MiB of memory are too few"), "{}", refused.stderr);
    assert!(refused.stderr.contains("these settings need"), "{}", refused.stderr);
}
