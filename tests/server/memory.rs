//! Documents of the largest size, many of them, within the memory that was given.

use crate::program::Program;
use crate::support::dump::Dump;
use crate::support::{Server, runtime};
use mongodb::bson::{Document, doc};

/// What the program takes besides buffers: its code, the runtime, the driver.
const PROGRAM_KIB: u64 = 24 * 1024;

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
    let running = Program::restorm(&["restore", "--memory", &memory]).args(arguments).start();
    let pid = running.pid();
    let watch = std::thread::spawn(move || peak_kib(pid));
    let finished = running.finish();
    assert_eq!(finished.status, Some(0), "{}", finished.stderr);
    let peak = watch.join().expect("it watches to the end");
    let most = mebibytes * 1024 + PROGRAM_KIB;
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
    let archive = interleaved(&dump);
    let archived = format!("--archive={}", archive.1.display());
    restores_within(&server, 224, &[&archived]);
    for collection in ["a", "b", "c", "d"] {
        assert_eq!(count(&server, collection), 493);
    }
}

fn interleaved(dump: &Dump) -> (tempfile::TempDir, std::path::PathBuf) {
    use crate::support::dump::documents;
    use restorm::dump::writer::archive::{ArchiveWriter, ArchivedCollection};
    use restorm::dump::{CollectionMetadata, Compression};
    use restorm::namespace::Namespace;
    let names = ["a", "b", "c", "d"];
    let listed = names.map(|name| ArchivedCollection {
        namespace: Namespace::new("big", name),
        metadata: CollectionMetadata::default(),
    });
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("big.archive");
    let file = std::fs::File::create(&path).expect("a file");
    let mut archive =
        ArchiveWriter::begin(file, Compression::Gzip, 4, None, &listed).expect("begun");
    let all = names.map(|name| documents(&dump.file(&format!("big/{name}.bson"))));
    for place in 0..all[0].len() {
        for (number, documents) in all.iter().enumerate() {
            archive.append(number, &documents[place]).expect("written");
        }
    }
    for number in 0..all.len() {
        archive.end(number).expect("ended");
    }
    archive.finish().expect("finished");
    (folder, path)
}

/// What is known of each collection comes on top of the buffers: about 5 KB.
#[test]
fn very_many_collections_take_no_buffers_of_their_own() {
    let folder = tempfile::tempdir().expect("a folder");
    let archive = folder.path().join("many.archive");
    let archive = archive.to_str().expect("a plain path");
    let seeded = Program::restorm(&["seed", "--archive", archive, "--documents", "3"])
        .args(&["--collections", "20000"])
        .run();
    assert_eq!(seeded.status, Some(0), "{}", seeded.stderr);
    stays_within(210, &["--null", &format!("--archive={archive}")]);
}

#[test]
fn too_little_memory_is_refused_with_what_would_be_enough() {
    let refused = Program::restorm(&["restore", "--null", "--memory", "100M", "x"]).run();
    assert_eq!(refused.status, Some(2), "{}", refused.stderr);
    assert!(refused.stderr.contains("100 MiB of memory are too few"), "{}", refused.stderr);
    assert!(refused.stderr.contains("these settings need"), "{}", refused.stderr);
}
