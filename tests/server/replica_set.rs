//! A replica set of three: how it is found, and a primary that steps down.

use crate::program::Program;
use crate::support::dump::{Dump, genuine};
use crate::support::raw::{document, int, string};
use crate::support::{ReplicaSet, Restore, runtime, verified};
use mongodb::bson::{Document, doc};
use std::time::{Duration, Instant};

fn count(set: &ReplicaSet, collection: &str) -> u64 {
    count_in(set, "shop", collection)
}

fn count_in(set: &ReplicaSet, database: &str, collection: &str) -> u64 {
    let collection = set.client().database(database).collection::<Document>(collection);
    runtime().block_on(async { collection.count_documents(doc! {}).await }).unwrap_or(0)
}

#[test]
fn a_set_is_found_by_any_of_its_members_and_a_secondary_alone_is_refused() {
    let set = ReplicaSet::of(3);
    let dump = genuine("full_6.0/shop/orders.bson");
    let (primary, secondary) = (set.primary(), set.secondary());
    let set_and_host = format!("rs0/{secondary}");
    let list = format!("rs0/{}", set.addresses().join(","));
    let uri = set.uri();
    for server in [
        &["--host", &set_and_host][..],
        &["-h", &list],
        &["--uri", &uri],
        &["--host", &primary],
        &["--host", &list, "--writeConcern", "3"],
    ] {
        let finished = Program::restorm(&["restore", "--drop"]).arg(&dump).args(server).run();
        assert_eq!(finished.status, Some(0), "{server:?}: {}", finished.stderr);
        assert_eq!(count(&set, "orders"), 3000);
    }
    let direct = format!("mongodb://{secondary}/?directConnection=true");
    for server in [&["--host", secondary][..], &["--uri", &direct]] {
        let finished = Program::restorm(&["restore", "--drop"]).arg(&dump).args(server).run();
        assert_eq!(finished.status, Some(1), "{server:?}: {}", finished.stderr);
        for word in ["no primary of the replica set rs0", &primary, "--host rs0/"] {
            assert!(finished.stderr.contains(word), "{word}: {}", finished.stderr);
        }
    }
    let wrong = format!("other/{primary}");
    let began = Instant::now();
    let finished = Program::restorm(&["restore"])
        .arg(&dump)
        .args(&["--host", &wrong, "--serverSelectionTimeout", "1"])
        .run();
    assert_eq!(finished.status, Some(1), "{}", finished.stderr);
    assert!(began.elapsed() < Duration::from_secs(10));
    assert_eq!(count(&set, "orders"), 3000);
}

#[test]
fn nothing_is_lost_or_doubled_when_the_primary_steps_down() {
    const DOCUMENTS: i32 = 60_000;
    let set = ReplicaSet::of(3);
    let text = "x".repeat(500);
    let documents: Vec<_> =
        (0..DOCUMENTS).map(|id| document(&[int("_id", id), string("s", &text)])).collect();
    let dump = Dump::new().with("shop", "steps", &documents);
    let before = set.primary();
    let arguments = ["--batch-documents", "20", "--workers", "8"];
    let running = Restore::new(&set.uri(), dump.path()).args(&arguments).start();
    let deadline = Instant::now() + Duration::from_secs(60);
    while count(&set, "steps") < 1000 {
        assert!(Instant::now() < deadline, "the restore does not begin");
        std::thread::sleep(Duration::from_millis(5));
    }
    set.step_down();
    let restored = running.finish().ended(0);
    let documents = u64::try_from(DOCUMENTS).unwrap();
    let [read, inserted, already_there, rejected, unsent] = restored.balance();
    assert_eq!((read, rejected, unsent), (documents, 0, 0));
    assert_eq!(inserted + already_there, documents);
    assert_eq!(count(&set, "steps"), documents);
    assert_ne!(set.primary(), before, "the step-down came too late to be tested");
    assert!(restored.retries() >= 1, "{}", restored.stderr);
    verified(&set.uri(), dump.path());
}

/// The primary steps down or is killed, again and again, while one restore goes on.
#[test]
fn one_restore_survives_several_failovers() {
    let mut set = ReplicaSet::of(3);
    let dump = Dump::seeded(2, 60_000);
    let arguments = ["--batch-documents", "200", "--workers", "4"];
    let restore = Restore::new(&set.uri(), dump.path()).args(&arguments).start();
    for round in 0..3 {
        let there = count_in(&set, "seed", "c00001");
        let deadline = Instant::now() + Duration::from_secs(60);
        while count_in(&set, "seed", "c00001") < there + 2000 && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(10));
        }
        let former = set.primary();
        if round == 1 {
            let killed = set.kill_primary();
            set.wait_for_another_primary(&former);
            set.restart(killed);
        } else {
            set.step_down();
            set.wait_for_another_primary(&former);
        }
    }
    let restored = restore.finish().ended(0);
    let [read, inserted, already_there, rejected, unsent] = restored.balance();
    assert_eq!((read, rejected, unsent), (120_000, 0, 0));
    assert_eq!(inserted + already_there, read);
    for collection in ["c00001", "c00002"] {
        assert_eq!(count_in(&set, "seed", collection), 60_000);
    }
    verified(&set.uri(), dump.path());
}
