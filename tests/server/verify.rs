//! Comparing a dump with a server: what is the same, and what differs, is found.

use crate::program::Program;
use crate::support::dump::{Dump, genuine};
use crate::support::{Restore, Server, lacks};
use mongodb::bson::{Bson, Document, doc};
use serde_json::{Value, json};
use std::path::Path;

/// A comparison that has ended.
struct Verified {
    report: Value,
    stderr: String,
}

fn verify(server: &Server, dump: &Path, arguments: &[&str], status: i32) -> Verified {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("verified.json");
    let finished = Program::restorm(&["verify", "--uri", server.uri(), "--report"])
        .arg(&file)
        .arg(dump)
        .args(arguments)
        .run();
    assert_eq!(finished.status, Some(status), "{arguments:?}\n{}", finished.stderr);
    let report: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    let schema: Value =
        serde_json::from_str(include_str!("../../docs/verify.schema.json")).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<_> = validator.iter_errors(&report).map(|error| error.to_string()).collect();
    assert_eq!(errors, [""; 0]);
    assert_eq!(report["exit_status"], status);
    Verified { report, stderr: finished.stderr }
}

impl Verified {
    fn of(&self, namespace: &str) -> &Value {
        of(&self.report["verification"], namespace)
    }

    /// How documents of a collection differ, each with its `_id`.
    fn documents(&self, namespace: &str) -> Vec<(String, String)> {
        documents(self.of(namespace))
    }
}

fn of<'a>(verification: &'a Value, namespace: &str) -> &'a Value {
    let collections = verification["collections"].as_array().unwrap();
    collections.iter().find(|one| one["namespace"] == namespace).expect(namespace)
}

fn documents(collection: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let samples = collection["documents"]["samples"].as_array();
    let samples = samples.map(Vec::as_slice).unwrap_or_default();
    samples.iter().map(|one| (text(&one["difference"]), text(&one["id"]))).collect()
}

fn pair(difference: &str, id: &str) -> (String, String) {
    (difference.to_owned(), id.to_owned())
}

fn document(document: &Document) -> Vec<u8> {
    document.to_vec().unwrap()
}

fn update(server: &Server, collection: &str, filter: Document, update: impl Into<Bson>) {
    let update = doc! { "q": filter, "u": update.into() };
    server.run("shop", doc! { "update": collection, "updates": [update] });
}

fn delete(server: &Server, collection: &str, filter: Document) {
    let delete = doc! { "q": filter, "limit": 0 };
    server.run("shop", doc! { "delete": collection, "deletes": [delete] });
}

/// A dump of one collection with an index, and the server it was restored to.
fn restored(documents: i32) -> (Dump, Server) {
    let all: Vec<_> =
        (0..documents).map(|id| document(&doc! { "_id": id, "n": id % 7, "s": "x" })).collect();
    let metadata = json!({
        "options": { "validator": { "n": { "$gte": 0 } } },
        "indexes": [
            { "v": 2, "key": { "_id": 1 }, "name": "_id_" },
            { "v": 2, "key": { "n": 1 }, "name": "n_1" },
        ],
    });
    let dump = Dump::new().with("shop", "orders", &all).described("shop", "orders", &metadata);
    let server = Server::lease();
    Restore::new(server.uri(), dump.path()).run().ended(0);
    (dump, server)
}

/// Restores a genuine dump and compares it, both at once and afterwards.
fn is_the_same(name: &str) {
    // Documents expire meanwhile on a server that looks for them.
    let server = Server::private(&["--setParameter", "ttlMonitorEnabled=false"]);
    let dump = genuine(name);
    let restored = Restore::new(server.uri(), &dump).args(&["--verify"]).run().ended(0);
    let verification = &restored.report["verification"];
    assert_eq!(verification["state"], "same", "{}", restored.stderr);
    let verified = verify(&server, &dump, &[], 0);
    let of_dump = verification["totals"]["documents_dump"].as_u64().unwrap();
    assert!(of_dump > 0);
    assert_eq!(verified.report["verification"]["totals"]["documents_target"], of_dump);
    for one in verification["collections"].as_array().unwrap() {
        let namespace = one["namespace"].as_str().unwrap();
        assert_eq!(one["dump"], verified.of(namespace)["dump"], "{namespace}");
        assert_eq!(one["target"], verified.of(namespace)["target"], "{namespace}");
    }
}

#[test]
fn every_genuine_dump_is_the_same_after_its_restore() {
    if lacks("what these dumps hold", [6, 0]) {
        return;
    }
    for name in [
        "full_4.2",
        "full_4.4",
        "full_5.0",
        "full_6.0",
        "kitchen_6.0_gzip",
        "oplog_6.0",
        "shop_users_6.0",
        "view_as_collection_6.0",
    ] {
        is_the_same(name);
    }
}

#[test]
fn every_genuine_archive_is_the_same_after_its_restore() {
    if lacks("what these archives hold", [6, 0]) {
        return;
    }
    for name in [
        "full_6.0.archive",
        "kitchen_4.2.archive",
        "kitchen_4.4.archive",
        "kitchen_5.0.archive",
        "oplog_6.0.archive",
        "shop_6.0.archive.gz",
    ] {
        is_the_same(name);
    }
}

#[test]
fn documents_that_differ_are_named() {
    let (dump, server) = restored(12_000);
    verify(&server, dump.path(), &[], 0);
    update(&server, "orders", doc! { "_id": 77 }, doc! { "$set": { "s": "y" } });
    delete(&server, "orders", doc! { "_id": 11_999 });
    server.run("shop", doc! { "insert": "orders", "documents": [{ "_id": "new", "n": 1 }] });
    let verified = verify(&server, dump.path(), &[], 4);
    let mut found = verified.documents("shop.orders");
    found.sort();
    let expected = [pair("changed", "77"), pair("extra", "\"new\""), pair("missing", "11999")];
    assert_eq!(found, expected);
    assert!(verified.stderr.contains("DIFFERENT: 1 of 1 collection"), "{}", verified.stderr);
    assert!(verified.stderr.contains("missing _id 11999"), "{}", verified.stderr);
    assert_eq!(verified.of("shop.orders")["documents"]["is_complete"], true);
    let none = verify(&server, dump.path(), &["--differences", "0"], 4);
    assert_eq!(none.documents("shop.orders"), []);
    assert_eq!(none.of("shop.orders")["documents"]["missing"], 1);
}

#[test]
fn a_collection_of_which_everything_changed_is_told_in_numbers() {
    let (dump, server) = restored(3000);
    let all = doc! { "q": {}, "u": { "$set": { "s": "y" } }, "multi": true };
    server.run("shop", doc! { "update": "orders", "updates": [all] });
    let verified = verify(&server, dump.path(), &["--differences", "3"], 4);
    let documents = &verified.of("shop.orders")["documents"];
    assert_eq!((&documents["changed"], &documents["missing"]), (&json!(3000), &json!(0)));
    assert_eq!(documents["samples"].as_array().unwrap().len(), 3);
}

#[test]
fn options_and_indexes_that_differ_are_named() {
    let (dump, server) = restored(10);
    let names = |verified: &Verified, field: &str| -> Vec<String> {
        let deviations = verified.of("shop.orders")[field].as_array().unwrap();
        deviations.iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect()
    };
    server.run("shop", doc! { "collMod": "orders", "validator": { "n": { "$gte": 1 } } });
    let option = verify(&server, dump.path(), &[], 4);
    assert_eq!(names(&option, "options"), ["validator"]);
    assert_eq!(option.documents("shop.orders"), []);
    verify(&server, dump.path(), &["--no-options"], 0);
    server.run("shop", doc! { "dropIndexes": "orders", "index": "n_1" });
    let missing = verify(&server, dump.path(), &["--no-options"], 4);
    assert_eq!(names(&missing, "indexes"), ["n_1"]);
    assert!(missing.of("shop.orders")["indexes"][0]["found"].is_null());
    let index = |key: Document, name: &str| {
        let index = doc! { "key": key, "name": name };
        server.run("shop", doc! { "createIndexes": "orders", "indexes": [index] });
    };
    index(doc! { "n": -1 }, "n_1");
    index(doc! { "s": 1 }, "s_1");
    let changed = verify(&server, dump.path(), &["--no-options"], 4);
    assert_eq!(names(&changed, "indexes"), ["n_1", "s_1"]);
    assert!(changed.stderr.contains("index s_1 is not in the dump"), "{}", changed.stderr);
    verify(&server, dump.path(), &["--no-options", "--no-indexes"], 0);
}

#[test]
fn a_collection_that_is_gone_differs_and_others_are_not_looked_at() {
    let (dump, server) = restored(5);
    server.run("shop", doc! { "insert": "other", "documents": [{ "_id": 1 }] });
    verify(&server, dump.path(), &[], 0);
    server.run("shop", doc! { "drop": "orders" });
    let verified = verify(&server, dump.path(), &[], 4);
    assert_eq!(verified.of("shop.orders")["options"][0]["name"], "type");
    assert_eq!(verified.of("shop.orders")["documents"]["missing"], 5);
}

#[test]
fn the_order_of_documents_does_not_matter() {
    let (_dump, server) = restored(2500);
    let backwards: Vec<_> = (0..2500)
        .rev()
        .map(|id: i32| document(&doc! { "_id": id, "n": id % 7, "s": "x" }))
        .collect();
    let other = Dump::new().with("shop", "orders", &backwards);
    verify(&server, other.path(), &["--no-options", "--no-indexes"], 0);
}

#[test]
fn documents_larger_than_a_batch_are_compared() {
    let large = |id: i32, size: usize| document(&doc! { "_id": id, "p": "x".repeat(size) });
    let all = [large(1, 9_000_000), large(2, 10), large(3, 15_000_000), large(4, 3_000_000)];
    let dump = Dump::new().with("shop", "orders", &all);
    let server = Server::lease();
    Restore::new(server.uri(), dump.path()).args(&["--verify"]).run().ended(0);
    update(&server, "orders", doc! { "_id": 3 }, doc! { "$set": { "p": "y" } });
    let verified = verify(&server, dump.path(), &[], 4);
    assert_eq!(verified.documents("shop.orders"), [pair("changed", "3")]);
}

#[test]
fn collections_are_compared_under_their_new_names() {
    let server = Server::lease();
    let dump = genuine("shop_6.0.archive.gz");
    let names = ["--ns-from", "shop.*", "--ns-to", "copy.*"];
    Restore::new(server.uri(), &dump).args(&names).args(&["--verify"]).run().ended(0);
    let verified = verify(&server, &dump, &names, 0);
    assert_eq!(verified.of("copy.orders")["source"], "shop.orders");
    let one = [&names[..], &["--ns-include", "shop.orders"]].concat();
    let verified = verify(&server, &dump, &one, 0);
    assert_eq!(verified.report["verification"]["totals"]["collections"], 1);
    verify(&server, &dump, &[], 4);
    let id = server.run("copy", doc! { "find": "orders", "limit": 1 });
    let id = id.get_document("cursor").unwrap().get_array("firstBatch").unwrap()[0].clone();
    let id = id.as_document().unwrap().get("_id").unwrap().clone();
    let gone = doc! { "q": { "_id": id }, "limit": 1 };
    server.run("copy", doc! { "delete": "orders", "deletes": [gone] });
    let verified = verify(&server, &dump, &names, 4);
    assert_eq!(verified.of("copy.orders")["documents"]["missing"], 1);
    assert_eq!(verified.of("copy.customers")["state"], "same");
}

#[test]
fn documents_without_an_id_are_compared_by_all_else() {
    let all = [doc! { "a": 1 }, doc! { "a": 2 }, doc! { "a": 2 }, doc! { "b": 1, "_id": 7 }];
    let all: Vec<_> = all.iter().map(document).collect();
    let dump = Dump::new().with("shop", "orders", &all);
    let server = Server::lease();
    let restored = Restore::new(server.uri(), dump.path()).args(&["--verify"]).run().ended(0);
    let verification = &restored.report["verification"];
    assert_eq!(of(verification, "shop.orders")["extent"], "all", "their ids are known");
    let verified = verify(&server, dump.path(), &[], 0);
    assert_eq!(verified.of("shop.orders")["extent"], "without_id");
    update(&server, "orders", doc! { "a": 1 }, doc! { "$set": { "a": 9 } });
    let verified = verify(&server, dump.path(), &[], 4);
    let documents = &verified.of("shop.orders")["documents"];
    assert_eq!((&documents["missing"], &documents["extra"]), (&json!(1), &json!(1)));
    let found = verified.documents("shop.orders");
    assert!(found.contains(&pair("missing", "(no _id; at byte 0 of the dump)")), "{found:?}");
}

#[test]
fn a_restore_is_verified_without_the_documents_that_were_rejected() {
    let all = [doc! { "_id": 1, "u": 1 }, doc! { "_id": 2, "u": 1 }, doc! { "_id": 3, "u": 2 }];
    let all: Vec<_> = all.iter().map(document).collect();
    let dump = Dump::new().with("shop", "orders", &all).with("shop", "more", &all);
    let server = Server::lease();
    let unique = doc! { "key": { "u": 1 }, "name": "u_1", "unique": true };
    server.run("shop", doc! { "createIndexes": "orders", "indexes": [unique] });
    let restored = Restore::new(server.uri(), dump.path()).args(&["--verify"]).run().ended(3);
    let orders = of(&restored.report["verification"], "shop.orders");
    assert_eq!((&orders["state"], &orders["extent"]), (&json!("same"), &json!("all")));
    assert_eq!(orders["dump"]["documents"], 2);
    verify(&server, dump.path(), &["--no-indexes"], 4);
}

#[test]
fn a_collection_that_held_documents_before_is_looked_up() {
    let (dump, server) = restored(2500);
    delete(&server, "orders", doc! { "_id": { "$gte": 1000 } });
    server.run("shop", doc! { "insert": "orders", "documents": [{ "_id": "mine", "n": 1 }] });
    let restored = Restore::new(server.uri(), dump.path()).args(&["--verify"]).run().ended(3);
    let orders = of(&restored.report["verification"], "shop.orders");
    assert_eq!((&orders["state"], &orders["extent"]), (&json!("same"), &json!("contained")));
    let notes = orders["notes"].to_string();
    assert!(notes.contains("each document of the dump was looked up"), "{notes}");
    update(&server, "orders", doc! { "_id": 5 }, doc! { "$set": { "s": "mine" } });
    delete(&server, "orders", doc! { "_id": 9 });
    let restored = Restore::new(server.uri(), dump.path()).args(&["--verify"]).run().ended(4);
    let orders = of(&restored.report["verification"], "shop.orders");
    assert_eq!(documents(orders), [pair("changed", "5")], "9 was brought back");
}

#[test]
fn a_restore_that_loses_documents_ends_with_4() {
    // A capped collection keeps the newest documents alone, whatever it has acknowledged.
    let all: Vec<_> = (0..100).map(|id| document(&doc! { "_id": id })).collect();
    let metadata = json!({ "options": { "capped": true, "size": 4096, "max": 60 }, "indexes": [] });
    let dump = Dump::new().with("shop", "log", &all).described("shop", "log", &metadata);
    let server = Server::lease();
    let arguments = ["--verify", "--differences", "2"];
    let restored = Restore::new(server.uri(), dump.path()).args(&arguments).run().ended(4);
    assert!(
        restored.stderr.starts_with("DIFFERENT: ") || restored.stderr.contains("\nDIFFERENT: ")
    );
    let log = of(&restored.report["verification"], "shop.log");
    assert_eq!(log["documents"]["missing"], 40);
    assert_eq!(documents(log), [pair("missing", "0"), pair("missing", "1")]);
}

#[test]
fn what_cannot_be_verified_is_refused_before_anything_is_done() {
    let server = Server::lease();
    let dump = genuine("oplog_6.0");
    let refused = Program::restorm(&["restore", "--uri", server.uri(), "--verify"])
        .args(&["--oplog-replay"])
        .arg(&dump)
        .run();
    assert_eq!(refused.status, Some(2), "{}", refused.stderr);
    assert!(refused.stderr.contains("--verify cannot be used with --oplog-replay"));
    assert!(server.databases().is_empty());
}

#[test]
fn who_may_not_read_is_told_that_nothing_was_compared() {
    let server = Server::private(&["--auth"]);
    let writer = server.user("writer", &[doc! { "role": "readWrite", "db": "other" }]);
    let dump = genuine("shop_6.0.archive.gz");
    let finished = Program::restorm(&["verify", "--uri", &writer]).arg(&dump).run();
    assert_eq!(finished.status, Some(1), "{}", finished.stderr);
    assert!(finished.stderr.contains("NOT COMPARED"), "{}", finished.stderr);
}
