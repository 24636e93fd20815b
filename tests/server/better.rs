//! What mongorestore 100.18 does wrong, and restorm does not: one test for each defect, under the
//! number that `docs/compatibility.md` gives it. Those of archives, names, users and connections
//! stand in the files on these subjects.

use crate::support::dump::{Dump, genuine};
use crate::support::raw::{document, int, nested, string, zero};
use crate::support::{Restore, Server, state_of, stored};
use mongodb::bson::{Bson, Document, doc};
use serde_json::json;
use std::time::{Duration, Instant};

fn numbered(ids: impl IntoIterator<Item = i32>) -> Vec<Vec<u8>> {
    ids.into_iter().map(|id| document(&[int("_id", id), int("a", id)])).collect()
}

/// The indexes of a collection in the order in which they were built.
fn indexes(server: &Server, database: &str, collection: &str) -> Vec<Document> {
    let reply = server.run(database, doc! { "listIndexes": collection });
    let batch = reply.get_document("cursor").and_then(|cursor| cursor.get_array("firstBatch"));
    batch.unwrap().iter().map(|index| index.as_document().unwrap().clone()).collect()
}

fn names(server: &Server, database: &str, collection: &str) -> Vec<String> {
    let indexes = indexes(server, database, collection);
    indexes.iter().map(|index| index.get_str("name").unwrap().to_owned()).collect()
}

/// Cause there: a full buffer is flushed before the next document is put into it, and where that
/// flush has a tolerated error, the next document is forgotten: neither stored nor counted.
#[test]
fn better_than_the_peer_b1_a_full_batch_with_an_error_loses_no_document() {
    let filler = "x".repeat(10_000_000);
    let documents: Vec<_> = [1, 2, 3, 3, 5, 6, 7]
        .map(|id| document(&[int("_id", id), string("filler", &filler)]))
        .into();
    let dump = Dump::new().with("large", "things", &documents);
    let small: Vec<_> = [1, 2, 3, 3, 5, 6, 7, 7, 9]
        .map(|id| document(&[int("_id", id), string("filler", &filler[..4_000_000])]))
        .into();
    let dump = dump.with("large", "smaller", &small);
    let server = Server::lease();
    let arguments = ["--batch-bytes", "16000000"];
    let restored = Restore::new(server.uri(), dump.path()).args(&arguments).run().ended(3);
    assert_eq!(restored.balance_of("large.things"), [7, 6, 0, 1, 0]);
    assert_eq!(restored.balance_of("large.smaller"), [9, 7, 0, 2, 0]);
    let state = state_of(&server.client(), &["large"]);
    assert_eq!(
        (&state["large.things"]["count"], &state["large.smaller"]["count"]),
        (&json!(6), &json!(7))
    );
}

/// Cause there: the first duplicate key is looked at, and the other errors of the answer are not.
#[test]
fn better_than_the_peer_b5_a_duplicate_hides_no_other_error() {
    let server = Server::lease();
    let validator = doc! { "a": { "$lt": 1000 } };
    server.run("hidden", doc! { "create": "things", "validator": validator });
    let ids = (0..10).chain([3]).chain(1000..1005).chain([5]).chain(20..30);
    let dump = Dump::new().with("hidden", "things", &numbered(ids));
    let arguments = ["--validate-documents", "--workers", "1"];
    let restored = Restore::new(server.uri(), dump.path()).args(&arguments).run().ended(3);
    assert_eq!(restored.balance(), [27, 20, 0, 7, 0]);
    let failures = restored.collection("hidden.things")["failures"].as_array().unwrap();
    let counts: Vec<_> = failures
        .iter()
        .map(|failure| (failure["code"].clone(), failure["count"].clone()))
        .collect();
    assert_eq!(counts, [(json!(121), json!(5)), (json!(11000), json!(2))]);
}

/// Cause there: a single file gets as many insertion workers as there are parallel collections.
#[test]
fn better_than_the_peer_b9_a_single_capped_file_keeps_its_order() {
    let server = Server::lease();
    let documents = numbered((0..20_000).rev());
    let options = json!({ "options": { "capped": true, "size": 10_000_000 }, "indexes": [] });
    let dump = Dump::new().with("order", "log", &documents).described("order", "log", &options);
    Restore::new(server.uri(), &dump.file("order/log.bson")).run().ended(0);
    assert_eq!(stored(&server.client(), "order", "log"), documents);
}

/// Cause there: documents with a zero timestamp are inserted without it and updated afterwards,
/// outside the batch; one without an `_id` cannot be found again and keeps the time of the insert.
#[test]
fn better_than_the_peer_b18_zero_timestamps_keep_their_place_and_stay_zero() {
    let server = Server::lease();
    let dumped: Vec<_> = (0..600)
        .map(|id| match id % 3 {
            0 => document(&[int("_id", id), zero("at")]),
            1 => document(&[int("n", id), zero("at")]),
            _ => document(&[int("_id", id), int("n", id)]),
        })
        .collect();
    let dump = Dump::new().with("zero", "things", &dumped);
    let arguments = ["--maintain-insertion-order", "--batch-documents", "50"];
    Restore::new(server.uri(), dump.path()).args(&arguments).run().ended(0);
    let there = stored(&server.client(), "zero", "things");
    assert_eq!(there.len(), dumped.len());
    for (number, (stored, dumped)) in there.iter().zip(&dumped).enumerate() {
        if number % 3 == 1 {
            // The new `_id` stands in front: 17 bytes with its name and type.
            assert_eq!(stored[21..], dumped[4..], "document {number}");
        } else {
            assert_eq!(stored, dumped, "document {number}");
        }
    }
}

/// Cause there: the flag that a signal sets is looked at only when the next document is read.
#[test]
fn better_than_the_peer_b22_a_signal_during_index_builds_ends_the_run() {
    let server = Server::private(&["--setParameter", "enableTestCommands=1"]);
    let hang = |mode: &str| {
        let hang = doc! { "configureFailPoint": "hangAfterStartingIndexBuild", "mode": mode };
        server.run("admin", hang);
    };
    let dump = Dump::new();
    let described = json!({ "indexes": [{ "v": 2, "key": { "a": 1 }, "name": "a_1" }] });
    let collections = ["one", "other", "third"];
    let dump = collections.iter().fold(dump, |dump, name| {
        dump.with("stop", name, &numbered(0..100)).described("stop", name, &described)
    });
    hang("alwaysOn");
    let arguments = ["--parallel-index-builds", "1"];
    let restore = Restore::new(server.uri(), dump.path()).args(&arguments).start();
    let deadline = Instant::now() + Duration::from_secs(30);
    let builds = doc! { "currentOp": true, "command.createIndexes": { "$exists": true } };
    loop {
        let running = server.run("admin", builds.clone());
        let documents: usize =
            collections.iter().map(|name| stored(&server.client(), "stop", name).len()).sum();
        if documents == 300 && !running.get_array("inprog").unwrap().is_empty() {
            break;
        }
        assert!(Instant::now() < deadline, "no index build began");
        std::thread::sleep(Duration::from_millis(20));
    }
    restore.signal("INT");
    std::thread::sleep(Duration::from_millis(300));
    hang("off");
    let restored = restore.finish().ended(130);
    assert_eq!(restored.balance(), [300, 300, 0, 0, 0]);
    assert_eq!(restored.report["totals"]["indexes_built"], 1, "{}", restored.stderr);
    let built = collections.iter().filter(|name| names(&server, "stop", name).len() == 2);
    assert_eq!(built.count(), 1, "the one that was begun");
}

/// The peer ends with 0 whatever was refused.
#[test]
fn better_than_the_peer_refused_documents_are_seen_by_the_exit_status() {
    let server = Server::lease();
    let dump = Dump::new().with("twice", "things", &numbered([1, 1]));
    let restored = Restore::new(server.uri(), dump.path()).run().ended(3);
    assert_eq!(restored.balance(), [2, 1, 0, 1, 0]);
}

/// The peer keeps indexes by name: one without a name is dropped, of two with the same name the
/// last one is built, and the order is random.
#[test]
fn better_than_the_peer_indexes_are_all_built_in_the_order_of_the_file() {
    let server = Server::lease();
    let described = json!({ "indexes": [
        { "v": 2, "key": { "_id": 1 }, "name": "_id_" },
        { "v": 2, "key": { "z": 1 }, "name": "z" },
        { "v": 2, "key": { "a": 1 } },
        { "v": 2, "key": { "m": 1 }, "name": "m" },
        { "v": 2, "key": { "b": 1 }, "name": "b" },
    ]});
    let dump =
        Dump::new().with("many", "things", &numbered(0..3)).described("many", "things", &described);
    Restore::new(server.uri(), dump.path()).run().ended(0);
    assert_eq!(names(&server, "many", "things"), ["_id_", "z", "a_1", "m", "b"]);
}

#[test]
fn better_than_the_peer_two_indexes_of_one_name_are_both_built() {
    let server = Server::lease();
    let described = json!({ "indexes": [
        { "v": 2, "key": { "a": 1 }, "name": "same" },
        { "v": 2, "key": { "b": 1 }, "name": "same" },
        { "v": 2, "key": { "c": 1 }, "name": "c" },
    ]});
    let dump =
        Dump::new().with("same", "things", &numbered(0..3)).described("same", "things", &described);
    let restored = Restore::new(server.uri(), dump.path()).run().ended(0);
    assert_eq!(names(&server, "same", "things"), ["_id_", "same", "same_2", "c"]);
    let kept = indexes(&server, "same", "things").swap_remove(1);
    assert_eq!(kept.get_document("key").unwrap(), &doc! { "a": 1 });
    let told = "another index is called `same`; it becomes `same_2`";
    assert!(restored.stderr.contains(told), "{}", restored.stderr);
}

/// The peer's reader of metadata knows only one form of a date, which tools before 4.2 did not
/// write.
#[test]
fn better_than_the_peer_dates_of_old_metadata_are_read() {
    let server = Server::lease();
    let index = |name: &str, date: serde_json::Value| {
        let filter = json!({ "at": { "$gt": { "$date": date } } });
        json!({ "v": 2, "key": { name: 1 }, "name": name, "partialFilterExpression": filter })
    };
    let described = json!({ "indexes": [
        index("text", json!("2020-01-01T00:00:00.000Z")),
        index("number", json!(1_577_836_800_000_i64)),
        index("canonical", json!({ "$numberLong": "1577836800000" })),
    ]});
    let dump = Dump::new()
        .with("dates", "things", &numbered(0..3))
        .described("dates", "things", &described);
    Restore::new(server.uri(), dump.path()).run().ended(0);
    let built = indexes(&server, "dates", "things");
    assert_eq!(built.len(), 4);
    for index in &built[1..] {
        let filter = index.get_document("partialFilterExpression").unwrap();
        let date = filter.get_document("at").unwrap().get("$gt");
        let expected = mongodb::bson::DateTime::from_millis(1_577_836_800_000);
        assert_eq!(date, Some(&Bson::DateTime(expected)), "{index}");
    }
}

/// The peer takes the buffered batch down with a damaged document, and ends the run.
#[test]
fn better_than_the_peer_what_stands_before_damage_is_restored() {
    let server = Server::lease();
    let mut documents = numbered(0..1500);
    let mut broken = document(&[int("_id", 1500), nested("n", &document(&[int("x", 1)]))]);
    broken[0] = 3;
    documents.push(broken);
    let dump = Dump::new().with("cut", "broken", &documents).with("cut", "whole", &numbered(0..10));
    let restored = Restore::new(server.uri(), dump.path()).run().ended(1);
    assert_eq!(stored(&server.client(), "cut", "broken").len(), 1500);
    assert_eq!(stored(&server.client(), "cut", "whole").len(), 10);
    // The counts are those of the server, although the run failed.
    assert_eq!(restored.balance(), [1510, 1510, 0, 0, 0]);
}

/// The peer ends the run at a folder whose name no database can have.
#[test]
fn better_than_the_peer_a_folder_that_is_no_database_ends_nothing() {
    let server = Server::lease();
    let dump = Dump::new().with("shop", "things", &numbered(0..3));
    dump.write(".git/HEAD", b"ref: refs/heads/main\n");
    let restored = Restore::new(server.uri(), dump.path()).run();
    assert_eq!(stored(&server.client(), "shop", "things").len(), 3, "{}", restored.stderr);
    assert_eq!(restored.balance(), [3, 3, 0, 0, 0]);
}

/// The peer says of the file that its own mongodump writes that it does not know what to do.
#[test]
fn better_than_the_peer_the_prelude_is_read_and_not_complained_about() {
    let server = Server::lease();
    let restored = Restore::new(server.uri(), &genuine("full_6.0/shop")).run().ended(0);
    let whole = Restore::new(server.uri(), &genuine("full_6.0"));
    let whole = whole.args(&["--db", "shop", "--drop"]).run().ended(0);
    for restored in [&restored, &whole] {
        let skipped = restored.report["skipped"].to_string();
        assert!(!skipped.contains("prelude"), "{skipped}");
    }
    assert_eq!(whole.report["dump"]["server_version"], "6.0.5");
}

/// The peer builds indexes after all data, and the first one that fails takes the rest with it.
#[test]
fn better_than_the_peer_one_index_that_fails_takes_no_other_with_it() {
    let server = Server::lease();
    let unique = json!({ "indexes": [
        { "v": 2, "key": { "even": 1 }, "name": "even", "unique": true },
        { "v": 2, "key": { "a": 1 }, "name": "a_1" },
    ]});
    let good = json!({ "indexes": [{ "v": 2, "key": { "a": 1 }, "name": "a_1" }] });
    let documents = [1, 2].map(|id| document(&[int("_id", id), int("even", 0)]));
    let mut dump = Dump::new().with("rest", "bad", &documents).described("rest", "bad", &unique);
    for name in ["c1", "c2", "c3"] {
        dump = dump.with("rest", name, &numbered(0..3)).described("rest", name, &good);
    }
    let restored = Restore::new(server.uri(), dump.path()).args(&["-j", "1"]).run().ended(3);
    for name in ["bad", "c1", "c2", "c3"] {
        assert_eq!(names(&server, "rest", name), ["_id_", "a_1"], "{name}");
    }
    assert_eq!(restored.report["totals"]["indexes_failed"], 1);
}

/// The peer counts only what those of its workers tell that have ended before the failure.
#[test]
fn better_than_the_peer_the_totals_are_right_after_a_failure() {
    let server = Server::lease();
    let ids = (0..20_000).chain([7]).chain(20_000..40_000);
    let dump = Dump::new().with("totals", "things", &numbered(ids));
    let arguments = ["--stop-on-error", "--workers", "4", "--batch-documents", "500"];
    let restored = Restore::new(server.uri(), dump.path()).args(&arguments).run().ended(1);
    let [read, inserted, there, rejected, unsent] = restored.balance();
    assert_eq!(inserted, stored(&server.client(), "totals", "things").len() as u64);
    assert_eq!((there, rejected), (0, 1));
    assert_eq!(read, inserted + rejected + unsent);
}

/// The peer touches the target first and learns then what it cannot hold.
#[test]
fn better_than_the_peer_what_the_server_cannot_hold_is_told_without_touching_it() {
    let server = Server::lease();
    let described = json!({ "indexes": [
        { "v": 2, "key": { "at": "geoHaystack", "a": 1 }, "name": "hay", "bucketSize": 1 },
    ]});
    let dump =
        Dump::new().with("told", "things", &numbered(0..3)).described("told", "things", &described);
    let planned = Restore::new(server.uri(), dump.path()).args(&["--dry-run"]).run();
    let said = format!("{}{}", planned.stdout, planned.stderr);
    // A server before 5.0 can hold it, and is to build it.
    let is_told = said.contains("index `hay` of told.things");
    assert_eq!(is_told, !crate::support::is_before([5, 0]), "{said}");
    assert!(stored(&server.client(), "told", "things").is_empty());
}
