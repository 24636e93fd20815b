//! Ctrl-C in the middle of a restore.

use crate::support::dump::{Dump, documents};
use crate::support::{Restore, Restored, Server, lacks, stored};
use mongodb::bson::doc;
use std::collections::HashSet;
use std::time::{Duration, Instant};

/// A server on which every insert takes so long.
fn slow(milliseconds: i32) -> Server {
    let server = Server::private(&["--setParameter", "enableTestCommands=1"]);
    let data = doc! {
        "failCommands": ["insert"], "blockConnection": true, "blockTimeMS": milliseconds,
    };
    let slow = doc! { "configureFailPoint": "failCommand", "mode": "alwaysOn", "data": data };
    server.run("admin", slow);
    server
}

/// Waits until a document is there.
fn wait_for_documents(server: &Server) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while server.databases().is_empty() || stored(&server.client(), "seed", "c00001").is_empty() {
        assert!(Instant::now() < deadline, "no document came");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Checks that exactly what is reported as inserted is there, and only documents of the dump.
#[track_caller]
fn left_what_it_reports(server: &Server, dump: &Dump, restored: &Restored) {
    let [read, inserted, _, rejected, unsent] = restored.balance();
    assert!(inserted > 0 && inserted < 20_000, "{inserted} inserted");
    assert_eq!((read, rejected), (inserted + unsent, 0));
    let there = stored(&server.client(), "seed", "c00001");
    assert_eq!(u64::try_from(there.len()).unwrap(), inserted);
    let dumped: HashSet<_> = documents(&dump.file("seed/c00001.bson")).into_iter().collect();
    assert!(there.iter().all(|document| dumped.contains(document)));
    assert_eq!(restored.report["outcome"]["kind"], "interrupted");
    assert!(restored.stderr.contains("balance"), "{}", restored.stderr);
}

#[test]
fn one_signal_finishes_what_is_in_flight_and_reports() {
    if lacks("fail point that blocks", [4, 4]) {
        return;
    }
    let server = slow(100);
    let dump = Dump::seeded(1, 20_000);
    for signal in ["INT", "TERM"] {
        let arguments = ["--drop", "--batch-documents", "100", "--workers", "2"];
        let restore = Restore::new(server.uri(), dump.path()).args(&arguments).start();
        wait_for_documents(&server);
        restore.signal(signal);
        let restored = restore.finish().ended(130);
        left_what_it_reports(&server, &dump, &restored);
        assert!(restored.stderr.contains("stopping"), "{}", restored.stderr);
        let indexes = restored.collection("seed.c00001")["indexes"].as_array().unwrap();
        assert!(indexes.is_empty(), "no index is begun after the signal: {indexes:?}");
        server.run("seed", doc! { "dropDatabase": 1 });
    }
}

#[test]
fn a_second_signal_ends_at_once() {
    if lacks("fail point that blocks", [4, 4]) {
        return;
    }
    let server = slow(20_000);
    let dump = Dump::seeded(1, 1000);
    let restore = Restore::new(server.uri(), dump.path()).start();
    let deadline = Instant::now() + Duration::from_secs(20);
    while server.databases().is_empty() {
        assert!(Instant::now() < deadline, "nothing was created");
        std::thread::sleep(Duration::from_millis(10));
    }
    // The collection stands, so the insert that the server holds up follows at once.
    std::thread::sleep(Duration::from_millis(300));
    let began = Instant::now();
    restore.signal("INT");
    std::thread::sleep(Duration::from_millis(300));
    restore.signal("INT");
    let restored = restore.finish().ended(130);
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    assert!(restored.stderr.contains("aborted"), "{}", restored.stderr);
    assert!(restored.report.is_null());
}

#[test]
fn a_signal_while_the_server_is_away_does_not_wait_for_it() {
    if lacks("fail point that blocks", [4, 4]) {
        return;
    }
    let mut server = slow(50);
    let dump = Dump::seeded(1, 20_000);
    let arguments = ["--batch-documents", "100", "--workers", "2"];
    let restore = Restore::new(server.uri(), dump.path()).args(&arguments).start();
    wait_for_documents(&server);
    server.kill();
    std::thread::sleep(Duration::from_millis(300));
    let began = Instant::now();
    restore.signal("INT");
    let restored = restore.finish().ended(130);
    // A server has ten seconds to be found again.
    assert!(began.elapsed() < Duration::from_secs(25), "{:?}", began.elapsed());
    let [read, inserted, _, rejected, unsent] = restored.balance();
    assert_eq!((read, rejected), (inserted + unsent, 0));
    assert!(unsent > 0);
}
