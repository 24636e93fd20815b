//! Archives and standard input with the real binary; none of it needs a server.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use bson::{Document, doc};
use restorm::dump::writer::archive::{ArchiveWriter, ArchivedCollection};
use restorm::dump::{CollectionMetadata, Compression};
use restorm::namespace::Namespace;

use crate::program::{Finished, Program};

fn dumps() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/dumps")
}

fn content(name: &str) -> Vec<u8> {
    std::fs::read(dumps().join(name)).expect("a genuine dump")
}

/// An archive of collections whose documents take turns, one document a segment.
fn interleaved(collections: usize, documents: usize, bytes: usize, concurrent: i32) -> Vec<u8> {
    let listed: Vec<_> = (0..collections)
        .map(|number| ArchivedCollection {
            namespace: Namespace::new("many", format!("c{number:04}")),
            metadata: CollectionMetadata::default(),
        })
        .collect();
    let mut archive =
        ArchiveWriter::begin(Vec::new(), Compression::None, concurrent, Some("6.0.0"), &listed)
            .expect("begun");
    for number in 0..documents {
        for place in 0..collections {
            let number = i64::try_from(number).expect("small");
            let document: Document = doc! { "_id": number, "p": "x".repeat(bytes) };
            archive.append(place, &document.to_vec().expect("encodes")).expect("written");
        }
    }
    (0..collections).for_each(|place| archive.end(place).expect("ended"));
    archive.finish().expect("finished")
}

fn restore(arguments: &[&str], input: Vec<u8>) -> Finished {
    Program::restorm(&[&["restore", "--null"], arguments].concat())
        .in_folder(dumps())
        .input(input)
        .run()
}

#[track_caller]
fn restored(finished: &Finished, documents: u32) {
    assert_eq!(finished.status, Some(0), "{}", finished.stderr);
    let digits = documents.to_string();
    let shown = if documents < 1000 {
        digits
    } else {
        let (thousands, rest) = digits.split_at(digits.len() - 3);
        format!("{thousands},{rest}")
    };
    let balance = format!("{shown} read = {shown} inserted + 0 already there");
    assert!(finished.stderr.contains(&balance), "{balance}: {}", finished.stderr);
}

#[test]
fn an_archive_is_known_by_its_content_whatever_its_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("backup.bson");
    std::fs::write(&path, content("kitchen_4.4.archive")).expect("written");
    restored(&restore(&[path.to_str().expect("UTF-8")], Vec::new()), 450);
    restored(&restore(&["shop_6.0.archive.gz"], Vec::new()), 3504);
}

#[test]
fn an_archive_comes_from_files_and_pipes_compressed_or_not() {
    let plain = content("full_6.0.archive");
    let zstd = zstd::encode_all(&plain[..], 1).expect("compressed");
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&plain).expect("compressed");
    let gzip = gzip.finish().expect("compressed");
    restored(&restore(&["--archive=full_6.0.archive"], Vec::new()), 4061);
    for bytes in [plain, zstd, gzip] {
        restored(&restore(&["--archive"], bytes.clone()), 4061);
        restored(&restore(&["--archive=-", "--gzip"], bytes.clone()), 4061);
        let inspected = Program::restorm(&["inspect", "--archive"]).input(bytes).run();
        assert_eq!(inspected.status, Some(0), "{}", inspected.stderr);
        assert!(inspected.stdout.contains("total of 34"), "{}", inspected.stdout);
    }
}

#[test]
fn better_than_the_peer_b17_a_file_after_the_flag_is_read() {
    // With a space the peer ignores the file and waits for standard input.
    let finished = restore(&["--archive", "kitchen_4.2.archive"], Vec::new());
    restored(&finished, 450);
    assert!(finished.stderr.contains("note: the archive is read from"), "{}", finished.stderr);
    let finished = restore(&["--archive", "not_there.archive"], content("kitchen_4.2.archive"));
    assert_eq!(finished.status, Some(2), "{}", finished.stderr);
}

#[test]
fn better_than_the_peer_b10_compressed_documents_on_standard_input_are_unpacked() {
    // The peer ignores --gzip there, and takes compressed bytes for documents.
    let plain = content("orders_stdout.bson");
    let zstd = zstd::encode_all(&plain[..], 1).expect("compressed");
    for bytes in [plain, zstd] {
        restored(&restore(&["-", "--gzip", "-d", "shop", "-c", "orders"], bytes), 3000);
    }
}

#[test]
fn documents_on_standard_input_need_a_name_and_are_no_archive() {
    let finished = restore(&["-"], content("orders_stdout.bson"));
    assert_eq!(finished.status, Some(2), "{}", finished.stderr);
    assert!(finished.stderr.contains("--db and --collection"), "{}", finished.stderr);
    let archive = content("kitchen_4.2.archive");
    let finished = restore(&["-", "-d", "shop", "-c", "orders"], archive);
    assert_eq!(finished.status, Some(1), "{}", finished.stderr);
    assert!(finished.stderr.contains("this is an archive"), "{}", finished.stderr);
    assert!(finished.stderr.contains("--archive"), "{}", finished.stderr);
}

#[test]
fn a_part_of_an_archive_can_be_restored_and_an_empty_part_is_an_error() {
    let part = ["--archive=full_6.0.archive", "-d", "shop", "-c", "orders"];
    restored(&restore(&part, Vec::new()), 3000);
    let finished = restore(&["--archive=full_6.0.archive", "-d", "shopp"], Vec::new());
    assert_eq!(finished.status, Some(1), "{}", finished.stderr);
    assert!(finished.stderr.contains("holds no database `shopp`"), "{}", finished.stderr);
    assert!(finished.stderr.contains("kitchen.capped"), "{}", finished.stderr);
}

#[test]
fn better_than_the_peer_b20_any_number_of_collections_may_be_interleaved() {
    // The peer has as many workers as the archive says there are collections interleaved. One that
    // says too little made it hang.
    restored(&restore(&["--archive"], interleaved(500, 3, 10, 1)), 1500);
}

#[test]
fn many_open_batches_stay_within_their_bound() {
    let archive = interleaved(300, 4, 100_000, 4);
    let script = "ulimit -v 400000 && exec \"$0\" restore --null --archive --batch-bytes 8M";
    let finished =
        Program::of("sh", &["-c", script, env!("CARGO_BIN_EXE_restorm")]).input(archive).run();
    restored(&finished, 1200);
}

/// Waits for standard input that stays open, is told to end, and ends.
#[track_caller]
fn ends_while_waiting(arguments: &[&str], first: &[u8]) -> String {
    let mut child = Command::new(env!("CARGO_BIN_EXE_restorm"))
        .args(["restore", "--null"])
        .args(arguments)
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program exists");
    let mut input = child.stdin.take().expect("standard input is piped");
    input.write_all(first).expect("it is read");
    std::thread::sleep(Duration::from_secs(1));
    let began = Instant::now();
    let kill = format!("kill -INT {}", child.id());
    assert!(Command::new("sh").args(["-c", &kill]).status().expect("sh runs").success());
    let finished = child.wait_with_output().expect("it ends");
    assert!(began.elapsed() < Duration::from_secs(10), "it took {:?}", began.elapsed());
    drop(input);
    assert_eq!(finished.status.code(), Some(130));
    String::from_utf8_lossy(&finished.stderr).into_owned()
}

#[test]
fn better_than_the_peer_b22_a_signal_ends_the_wait_for_standard_input() {
    // The peer looks for signals when the next document comes, which here is never.
    let archive = content("full_6.0.archive");
    let said = ends_while_waiting(&["--archive"], b"");
    assert!(said.contains("stopped before anything was restored"), "{said}");
    let said = ends_while_waiting(&["--archive"], &archive[..2000]);
    assert!(said.contains("stopped before anything was restored"), "{said}");
    let said = ends_while_waiting(&["--archive"], &archive[..archive.len() / 2]);
    assert!(said.contains("balance"), "{said}");
    // What is compressed is waited for by the thread that unpacks it.
    let packed = content("shop_6.0.archive.gz");
    let said = ends_while_waiting(&["--archive"], &packed[..packed.len() / 2]);
    assert!(said.contains("balance"), "{said}");
    let orders = content("orders_stdout.bson");
    let said = ends_while_waiting(&["-", "-d", "shop", "-c", "orders"], &orders[..100_000]);
    assert!(said.contains("balance"), "{said}");
}

#[test]
fn what_seed_writes_is_read_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let arguments = ["seed", "--archive", "-", "--collections", "5", "--documents", "100"];
    for compress in ["none", "gzip", "zstd"] {
        let path = folder.path().join(compress);
        let seeded = Command::new(env!("CARGO_BIN_EXE_restorm"))
            .args(arguments)
            .args(["--compress", compress])
            .stdout(std::fs::File::create(&path).expect("a file"))
            .output()
            .expect("it runs");
        assert!(seeded.status.success());
        restored(&restore(&[path.to_str().expect("UTF-8")], Vec::new()), 500);
    }
}
