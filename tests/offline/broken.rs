//! Each dump in `testdata/broken`, and some made here, gives its named error and nothing worse.

use std::collections::BTreeSet;
use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use crate::program::{Finished, Program};

/// The address space that the binary gets: far less than a document of the claimed lengths takes.
const MEMORY_KIBIBYTES: u32 = 768 * 1024;

/// What is known of a broken dump.
struct Broken {
    folder: &'static str,
    /// What `inspect` says, with the file and the byte.
    inspected: &'static str,
    /// What `restore` says where that differs.
    restored: Option<&'static str>,
    /// The status of `restore`; that of `inspect` is 1 wherever it says something.
    status: i32,
    /// The documents that are restored nevertheless.
    inserted: Option<u32>,
}

/// A dump of which the good documents are restored and the run counts as incomplete.
const fn incomplete(folder: &'static str, inspected: &'static str, inserted: u32) -> Broken {
    Broken { folder, inspected, restored: None, status: 1, inserted: Some(inserted) }
}

/// A dump with one damaged file; what lies before the damage is restored.
const fn damaged(
    folder: &'static str,
    inspected: &'static str,
    restored: &'static str,
    inserted: u32,
) -> Broken {
    Broken { folder, inspected, restored: Some(restored), status: 1, inserted: Some(inserted) }
}

/// A dump of which nothing can be restored.
const fn refused(folder: &'static str, inspected: &'static str) -> Broken {
    Broken { folder, inspected, restored: None, status: 1, inserted: None }
}

/// A dump whose fault only a server would mind: the null target takes everything.
const fn taken(folder: &'static str, inspected: &'static str, inserted: u32) -> Broken {
    Broken { folder, inspected, restored: Some(""), status: 0, inserted: Some(inserted) }
}

const BROKEN: [Broken; 26] = [
    refused(
        "bad_metadata",
        "shop/orders.metadata.json: the metadata is not valid: EOF while parsing a value at line 2",
    ),
    incomplete("bad_percent_name", "shop/a%zz.bson: the name holds a `%` that is not followed", 5),
    incomplete(
        "cut_name_without_metadata",
        ".bson: the name was cut and no metadata tells the whole",
        5,
    ),
    incomplete("folder_in_database", "shop/old: is a dump inside the folder of a database", 5),
    damaged(
        "gzip_corrupt",
        "shop/orders.bson.gz, byte 210: the gzip data is damaged: corrupt gzip stream",
        "the gzip data is damaged: corrupt gzip stream does not have a matching checksum, in \
         broken/gzip_corrupt/shop/orders.bson.gz, at byte 210",
        5,
    ),
    damaged(
        "gzip_truncated",
        "shop/orders.bson.gz, byte 126: the gzip data ends before its end mark",
        "the file was cut off, in broken/gzip_truncated/shop/orders.bson.gz, at byte 126",
        3,
    ),
    incomplete("illegal_database_name", "my shop: the folder's name is no name of a database", 5),
    damaged(
        "length_huge",
        "shop/orders.bson, byte 84: a document claims 2147483647 bytes, more than the 16 MiB",
        "in broken/length_huge/shop/orders.bson, at byte 84",
        2,
    ),
    damaged(
        "length_negative",
        "shop/orders.bson, byte 84: a document claims -40 bytes, fewer than the 5",
        "in broken/length_negative/shop/orders.bson, at byte 84",
        2,
    ),
    damaged(
        "length_too_small",
        "shop/orders.bson, byte 84: a document claims 3 bytes, fewer than the 5",
        "in broken/length_too_small/shop/orders.bson, at byte 84",
        2,
    ),
    damaged(
        "lying_length",
        "shop/orders.bson, byte 84: the file ends inside a document: 126 of its 1000 bytes",
        "in broken/lying_length/shop/orders.bson, at byte 84",
        2,
    ),
    refused(
        "metadata_gzip_truncated",
        "shop/orders.metadata.json.gz: the metadata file cannot be decompressed as gzip",
    ),
    incomplete(
        "metadata_missing_for_buckets",
        "shop/system.buckets.weather.bson: holds buckets, but the metadata file of \
         `shop.weather` is missing",
        5,
    ),
    refused(
        "metadata_nested_too_deep",
        "shop/orders.metadata.json: the metadata is not valid: nested deeper than a server accepts",
    ),
    refused(
        "metadata_options_not_an_object",
        "shop/orders.metadata.json: the metadata is not valid: `options` is a list",
    ),
    taken(
        "nested_too_deep",
        "shop/orders.bson, byte 42: a document is damaged 1400 bytes in: nested deeper than",
        3,
    ),
    damaged(
        "not_bson",
        "shop/orders.bson, byte 0: a document claims 1936287828 bytes, more than the 16 MiB",
        "in broken/not_bson/shop/orders.bson, at byte 0",
        0,
    ),
    damaged(
        "not_terminated",
        "shop/orders.bson, byte 42: a document does not end in a zero byte",
        "in broken/not_terminated/shop/orders.bson, at byte 42",
        1,
    ),
    taken("prelude_broken", "", 5),
    damaged(
        "truncated_document",
        "shop/orders.bson, byte 168: the file ends inside a document: 32 of its 42 bytes",
        "in broken/truncated_document/shop/orders.bson, at byte 168; the dump was cut off here",
        4,
    ),
    incomplete(
        "two_files_for_one_collection",
        "shop/orders.bson.gz: `orders.bson` of the same collection is taken instead",
        5,
    ),
    taken(
        "unknown_type",
        "shop/orders.bson, byte 42: a document is damaged 4 bytes in: an unknown type",
        3,
    ),
    incomplete(
        "view_with_documents",
        "shop/orders.bson: holds documents, but `shop.orders` is a view",
        0,
    ),
    refused(
        "wrong_level",
        "the folder holds nothing to restore: it holds `README.md`, `dump`, `shop`, but no .bson \
         files in their place, in broken/wrong_level hint: did you mean `broken/wrong_level/dump`?",
    ),
    damaged(
        "zstd_corrupt",
        "shop/orders.bson.zst, byte 0: the zstd data is damaged: Restored data doesn't match",
        "in broken/zstd_corrupt/shop/orders.bson.zst, at byte 0",
        0,
    ),
    damaged(
        "zstd_truncated",
        "shop/orders.bson.zst, byte 0: the zstd data ends before its end mark",
        "in broken/zstd_truncated/shop/orders.bson.zst, at byte 0",
        0,
    ),
];

fn testdata() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata")
}

/// Runs the binary in `testdata`, with little memory.
fn run(arguments: &[&str]) -> Finished {
    let script = format!("ulimit -v {MEMORY_KIBIBYTES} && exec \"$0\" \"$@\"");
    let binary = env!("CARGO_BIN_EXE_restorm");
    Program::of("sh", &[&["-c", &script, binary], arguments].concat()).in_folder(testdata()).run()
}

/// All that was said, with every line's end and indentation as one space.
fn said(finished: &Finished) -> String {
    let text = format!("{} {}", finished.stdout, finished.stderr);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The names of what is in a folder.
pub(crate) fn names_in(folder: &Path) -> BTreeSet<String> {
    std::fs::read_dir(folder)
        .expect("the folder is there")
        .map(|item| item.expect("it can be listed").file_name().to_string_lossy().into_owned())
        .collect()
}

#[test]
fn every_broken_dump_is_in_the_table() {
    let listed: BTreeSet<_> = BROKEN.iter().map(|broken| broken.folder.to_owned()).collect();
    assert_eq!(listed, names_in(&testdata().join("broken")));
}

#[test]
fn inspect_names_what_is_wrong_and_where() {
    for Broken { folder, inspected, .. } in &BROKEN {
        let finished = run(&["inspect", &format!("broken/{folder}")]);
        let expected = i32::from(!inspected.is_empty());
        let said = said(&finished);
        assert_eq!(finished.status, Some(expected), "{folder}: {said}");
        assert!(said.contains(inspected), "{folder}: `{inspected}` is not in: {said}");
        assert!(!said.contains("panicked"), "{folder}: {said}");
    }
}

#[test]
fn restore_names_what_is_wrong_and_restores_the_rest() {
    for Broken { folder, inspected, restored, status, inserted } in &BROKEN {
        let path = format!("broken/{folder}");
        let finished = run(&["restore", "--null", &path]);
        let said = said(&finished);
        assert_eq!(finished.status, Some(*status), "{folder}: {said}");
        let expected = restored.unwrap_or(inspected);
        assert!(said.contains(expected), "{folder}: `{expected}` is not in: {said}");
        if let Some(inserted) = inserted {
            let balance = format!("read = {inserted} inserted + 0 already there + 0 rejected");
            assert!(said.contains(&balance), "{folder}: `{balance}` is not in: {said}");
            assert!(said.contains("+ 0 unsent"), "{folder}: {said}");
        } else {
            assert!(said.contains("error: "), "{folder}: {said}");
        }
    }
}

#[test]
fn regression_what_lies_before_the_damage_is_restored_every_time() {
    // The reader that met the damage gave the collection up at once, and whether the workers had
    // sent what it had read was a matter of luck.
    for _ in 0..20 {
        let finished = run(&["restore", "--null", "broken/truncated_document"]);
        let said = said(&finished);
        assert!(said.contains("balance 4 read = 4 inserted"), "{said}");
    }
}

#[test]
fn damage_in_one_file_leaves_the_others_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let shop = folder.path().join("shop");
    std::fs::create_dir(&shop).expect("a folder");
    let mut all = 0;
    for broken in &BROKEN {
        let data = testdata().join("broken").join(broken.folder).join("shop/orders.bson");
        if let (Some(inserted), true) = (broken.inserted, data.is_file()) {
            let name = format!("{}.bson", broken.folder);
            std::fs::copy(data, shop.join(name)).expect("copied");
            all += if broken.folder == "view_with_documents" { 5 } else { inserted };
        }
    }
    let path = folder.path().to_string_lossy().into_owned();
    let finished = run(&["restore", "--null", &path]);
    let said = said(&finished);
    assert_eq!(finished.status, Some(1), "{said}");
    let balance = format!("balance {all} read = {all} inserted + 0 already there");
    assert!(said.contains(&balance), "`{balance}` is not in: {said}");
}

#[test]
fn a_document_that_claims_much_takes_no_memory_for_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let shop = folder.path().join("shop");
    std::fs::create_dir(&shop).expect("a folder");
    // As large as a server allows, and not there.
    let claimed = (16_u32 << 20).to_le_bytes();
    for number in 0..100 {
        std::fs::write(shop.join(format!("c{number}.bson")), claimed).expect("written");
    }
    let path = folder.path().to_string_lossy().into_owned();
    for (command, expected) in [
        (&["inspect", &path][..], "c99.bson, byte 0: the file ends inside a document"),
        (&["restore", "--null", &path], "100 of 100 collections not restored completely"),
    ] {
        let finished = run(command);
        let said = said(&finished);
        assert_eq!(finished.status, Some(1), "{said}");
        assert!(said.contains(expected), "{said}");
    }
}

/// A dump of one good collection, `shop.orders`, in which more can be made.
fn good_dump() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let shop = folder.path().join("shop");
    std::fs::create_dir(&shop).expect("a folder");
    let good = testdata().join("broken/prelude_broken/shop/orders.bson");
    std::fs::copy(good, shop.join("orders.bson")).expect("copied");
    folder
}

/// Makes a named pipe, of which reading waits until somebody writes.
fn make_pipe(path: &Path) {
    let made = Program::of("mkfifo", &[path]).run();
    assert_eq!(made.status, Some(0), "{}", made.stderr);
}

/// Makes a file that only the superuser reads.
fn lock(path: &Path) {
    std::fs::write(path, "").expect("written");
    std::fs::set_permissions(path, Permissions::from_mode(0o000)).expect("locked");
}

/// What is made wrong in a dump, what is said of it, and the exit status.
type Wrong = (fn(&Path), &'static str, i32);

#[test]
fn what_only_a_file_system_can_get_wrong_is_a_problem_of_its_own() {
    let wrongs: [Wrong; 6] = [
        (
            |shop| symlink("..", shop.join("loop")).expect("linked"),
            "shop/loop: is a link to a folder that it lies in",
            1,
        ),
        (
            |shop| symlink("nowhere", shop.join("gone.bson")).expect("linked"),
            "shop/gone.bson: is a link that leads nowhere",
            1,
        ),
        (
            // An empty folder holds no data, whatever its name.
            |shop| std::fs::create_dir(shop.join("items.bson")).expect("a folder"),
            "shop/items.bson: is a folder inside that of a database",
            0,
        ),
        (
            |shop| make_pipe(&shop.join("items.bson")),
            "shop/items.bson: the data file is not a regular file",
            1,
        ),
        (
            |shop| make_pipe(&shop.join("orders.metadata.json")),
            "shop/orders.metadata.json: the metadata file is not a regular file",
            1,
        ),
        (
            |shop| lock(&shop.join("locked.bson")),
            "shop/locked.bson: the data file cannot be read",
            1,
        ),
    ];
    for (make, expected, status) in wrongs {
        let dump = good_dump();
        let shop = dump.path().join("shop");
        make(&shop);
        if expected.contains("locked") && std::fs::File::open(shop.join("locked.bson")).is_ok() {
            // The superuser reads every file.
            continue;
        }
        let path = dump.path().to_string_lossy().into_owned();
        for command in [&["inspect", &path][..], &["restore", "--null", "-v", &path]] {
            let finished = run(command);
            let said = said(&finished);
            assert_eq!(finished.status, Some(status), "{expected}: {said}");
            assert!(said.contains(expected), "`{expected}` is not in: {said}");
            let spoils_orders = expected.contains("orders");
            if command[0] == "restore" && !spoils_orders {
                assert!(said.contains("5 read = 5 inserted"), "{expected}: {said}");
            }
        }
    }
}
