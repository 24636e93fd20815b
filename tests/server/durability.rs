//! Restores that do not wait for a majority or the journal, and what happens when the server that
//! has acknowledged documents loses them.

use crate::support::dump::{Dump, documents};

use crate::support::{ReplicaSet, Restore, Server, lacks, stored, verified};
use mongodb::Client;
use std::time::{Duration, Instant};

const FAST: [&str; 8] =
    ["--write-concern", "1", "--journal", "off", "--batch-documents", "100", "--workers", "2"];

#[track_caller]
fn holds_the_dump(client: &Client, uri: &str, dump: &Dump) {
    let mut there = stored(client, "seed", "c00001");
    let mut dumped = documents(&dump.file("seed/c00001.bson"));
    there.sort();
    dumped.sort();
    assert!(there == dumped, "{} of {} documents", there.len(), dumped.len());
    verified(uri, dump.path());
}

/// Waits until so many documents are there.
fn wait_for(client: &Client, documents: usize) {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let there = crate::support::runtime().block_on(async {
            let collection =
                client.database("seed").collection::<mongodb::bson::Document>("c00001");
            collection.estimated_document_count().await
        });
        if there.is_ok_and(|there| there >= documents as u64) {
            return;
        }
        assert!(Instant::now() < deadline, "the documents did not come");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn what_a_killed_server_lost_is_sent_again() {
    // The journal reaches the disk so rarely that a kill loses what was acknowledged.
    let mut server = Server::private(&["--journalCommitInterval", "500"]);
    let dump = Dump::seeded(1, 60_000);
    let restore = Restore::new(server.uri(), dump.path()).args(&FAST).start();
    wait_for(&server.client(), 5000);
    server.kill();
    server.restart();
    let restored = restore.finish().ended(0);
    let [read, inserted, already_there, rejected, unsent] = restored.balance();
    assert_eq!((read, rejected, unsent), (60_000, 0, 0));
    assert_eq!(inserted + already_there, read);
    holds_the_dump(&server.client(), server.uri(), &dump);
    if !lacks("identity of a process", [4, 4]) {
        let notes = restored.notes();
        let told = notes.iter().any(|note| note.contains("another server took over"));
        assert!(told, "{notes:?}");
    }
}

#[test]
fn what_is_reported_survives_the_end_of_the_server() {
    let mut server = Server::private(&["--journalCommitInterval", "500"]);
    let dump = Dump::seeded(1, 20_000);
    Restore::new(server.uri(), dump.path()).args(&FAST).run().ended(0);
    server.kill();
    server.restart();
    holds_the_dump(&server.client(), server.uri(), &dump);
}

#[test]
fn what_a_killed_primary_acknowledged_is_not_lost() {
    let mut set = ReplicaSet::of(3);
    let dump = Dump::seeded(1, 60_000);
    let restore = Restore::new(&set.uri(), dump.path()).args(&FAST).start();
    wait_for(set.client(), 5000);
    let killed = set.kill_primary();
    std::thread::sleep(Duration::from_millis(500));
    set.restart(killed);
    let restored = restore.finish().ended(0);
    let [read, inserted, already_there, rejected, unsent] = restored.balance();
    assert_eq!((read, rejected, unsent), (60_000, 0, 0));
    assert_eq!(inserted + already_there, read);
    holds_the_dump(set.client(), &set.uri(), &dump);
}

/// A primary that is cut off from the others acknowledges documents that are rolled back when it
/// comes back.
#[test]
fn what_is_rolled_back_is_sent_again() {
    let mut set = ReplicaSet::of(3);
    let dump = Dump::seeded(1, 60_000);
    let restore = Restore::new(&set.uri(), dump.path()).args(&FAST).start();
    wait_for(set.client(), 3000);
    // The secondaries stand still, so that what comes now is on the primary alone.
    let former = set.freeze_secondaries();
    std::thread::sleep(Duration::from_millis(700));
    let killed = set.kill_and_thaw(&former);
    set.wait_for_another_primary(&former);
    set.restart(killed);
    let restored = restore.finish().ended(0);
    let [read, inserted, already_there, rejected, unsent] = restored.balance();
    assert_eq!((read, rejected, unsent), (60_000, 0, 0));
    assert_eq!(inserted + already_there, read);
    let notes = restored.notes();
    assert!(notes.iter().any(|note| note.contains("another server took over")), "{notes:?}");
    holds_the_dump(set.client(), &set.uri(), &dump);
}
