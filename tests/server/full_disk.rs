//! A server whose disk is full in the middle of a restore.

use crate::support::dump::Dump;
use crate::support::raw::{document, int, string};
use crate::support::{Restore, SmallDisk, verified};
use std::fmt::Write;

/// A journal in small files, and nothing else that takes room by itself.
const FRUGAL: [&str; 4] = [
    "--wiredTigerEngineConfigString",
    "log=(enabled=true,path=journal,compressor=snappy,file_max=4MB,prealloc=false)",
    "--setParameter",
    "diagnosticDataCollectionEnabled=false",
];

/// Documents of about 4 KB that no compression makes smaller.
fn incompressible(ids: std::ops::Range<i32>) -> Vec<Vec<u8>> {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut filler = || {
        let mut text = String::new();
        for _ in 0..256 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let _ = write!(text, "{state:016x}");
        }
        text
    };
    ids.map(|id| document(&[int("_id", id), string("text", &filler())])).collect()
}

#[test]
fn a_full_disk_ends_the_restore_and_it_goes_on_once_there_is_room() {
    let Some(mut disk) = SmallDisk::of(48, &FRUGAL) else {
        return;
    };
    let dump = Dump::new().with("shop", "orders", &incompressible(0..9000)).with(
        "shop",
        "items",
        &incompressible(0..3000),
    );
    let uri = disk.server.uri().to_owned();
    let restore = |arguments: &[&str]| {
        let few = ["--batch-documents", "50", "--retry-for", "2s"];
        // Some servers do not end and answer nothing any more.
        let few = [&few[..], &["--answer-within", "20s"]].concat();
        Restore::new(&uri, dump.path()).args(&few).args(arguments).run()
    };
    let ended = restore(&[]).ended(1);
    let [read, inserted, already_there, rejected, unsent] = ended.balance();
    assert!(inserted > 0 && inserted + already_there < 12_000, "{:?}", ended.balance());
    assert_eq!((read, rejected), (inserted + already_there + unsent, 0));
    let last = ended.stderr.lines().last().unwrap_or_default();
    assert!(last.ends_with("--resume"), "{}", ended.stderr);
    disk.grow_to(256);
    // Most servers end where the journal cannot be written; others hang.
    disk.server.kill();
    disk.server.restart();
    let restored = restore(&["--resume", "--verify"]).ended(0);
    let [read, inserted, already_there, rejected, unsent] = restored.balance();
    assert_eq!((read, inserted + already_there, rejected, unsent), (12_000, 12_000, 0, 0));
    assert!(restored.report["totals"]["documents_carried"].as_u64().is_some_and(|n| n > 0));
    assert_eq!(restored.report["verification"]["state"], "same");
    verified(&uri, dump.path());
}
