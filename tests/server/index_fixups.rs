//! Index definitions that are made fit, and how indexes and collections are made otherwise.

use crate::golden::found;
use crate::support::dump::{Dump, genuine};
use crate::support::raw::{document, int};
use crate::support::{Restore, Restored, Server, is_before, stored};
use mongodb::bson::doc;
use serde_json::{Value, json};

/// A collection `d.things` with one document and these definitions.
fn dump(indexes: &Value) -> Dump {
    described(&json!({ "options": {}, "indexes": indexes }))
}

fn described(metadata: &Value) -> Dump {
    let things = [document(&[int("_id", 1), int("a", 1)])];
    Dump::new().with("d", "things", &things).described("d", "things", metadata)
}

/// The names and keys of the indexes that stand, the one on `_id` left out.
fn standing(server: &Server) -> Vec<(String, Value)> {
    let state = found(server);
    let indexes = state["d.things"]["indexes"].as_array().expect("indexes").clone();
    let named = |index: Value| (index["name"].as_str().unwrap().to_owned(), index["key"].clone());
    indexes.into_iter().map(named).filter(|(name, _)| name != "_id_").collect()
}

fn number(value: i32) -> Value {
    json!({ "$numberInt": value.to_string() })
}

fn notes(restored: &Restored) -> String {
    restored.report["notes"].to_string()
}

/// The peer chooses among equals by chance.
#[test]
fn better_than_the_peer_converted_definitions_stand_and_the_first_of_equals_counts() {
    let server = Server::lease();
    let dump = dump(&json!([
        { "v": 1, "key": { "a": true }, "name": "first" },
        { "v": 1, "key": { "a": 1 }, "name": "second" },
        { "v": 1, "key": { "b": { "$numberDouble": "-1E-13" } }, "name": "b" },
        { "v": 1, "key": { "c.d": "hashed" }, "name": "cd" },
    ]));
    for _ in 0..3 {
        let arguments = ["--convertLegacyIndexes", "--fixDottedHashIndex", "--drop"];
        let restored = Restore::new(server.uri(), dump.path()).args(&arguments).run().ended(0);
        let expected = [
            ("b".to_owned(), json!({ "b": number(-1) })),
            ("cd".to_owned(), json!({ "c.d": number(1) })),
            ("first".to_owned(), json!({ "a": number(1) })),
        ];
        assert_eq!(standing(&server), expected);
        assert!(notes(&restored).contains("index `second` is left out"), "{}", notes(&restored));
    }
}

/// The peer drops the one and lets the last of the others win.
#[test]
fn better_than_the_peer_nameless_and_namesake_indexes_are_all_built() {
    let server = Server::lease();
    let dump = dump(&json!([
        { "key": { "a": 1, "b": "hashed" } },
        { "key": { "c": 1 }, "name": "same" },
        { "key": { "d": -1 }, "name": "same" },
    ]));
    let restored = Restore::new(server.uri(), dump.path()).run();
    let names: Vec<_> = standing(&server).into_iter().map(|(name, _)| name).collect();
    let restored = if is_before([4, 4]) {
        // Nothing is hashed there beside another field.
        assert_eq!(names, ["same", "same_2"]);
        assert!(restored.stderr.contains("index `a_1_b_hashed` of"), "{}", restored.stderr);
        restored.ended(1)
    } else {
        assert_eq!(names, ["a_1_b_hashed", "same", "same_2"]);
        restored.ended(0)
    };
    assert!(notes(&restored).contains("another index is called `same`"), "{}", notes(&restored));
}

/// The peer refuses the whole dump.
#[test]
fn better_than_the_peer_a_haystack_costs_only_itself() {
    let server = Server::lease();
    let dump = dump(&json!([
        { "key": { "at": "geoHaystack", "a": 1 }, "name": "hay", "bucketSize": 1 },
        { "key": { "a": 1 }, "name": "a" },
    ]));
    if is_before([5, 0]) {
        // There it is an index like any other.
        Restore::new(server.uri(), dump.path()).run().ended(0);
        let hay = ("hay".to_owned(), json!({ "a": number(1), "at": "geoHaystack" }));
        assert_eq!(standing(&server), [("a".to_owned(), json!({ "a": number(1) })), hay]);
        return;
    }
    let restored = Restore::new(server.uri(), dump.path()).run().ended(1);
    assert_eq!(standing(&server), [("a".to_owned(), json!({ "a": number(1) }))]);
    assert_eq!(stored(&server.client(), "d", "things").len(), 1);
    let skipped = &restored.report["skipped"][0];
    assert_eq!(skipped["what"], "index `hay` of d.things");
    assert!(skipped["reason"].as_str().unwrap().contains("geoHaystack"), "{skipped}");
    let arguments = ["--noIndexRestore", "--drop"];
    Restore::new(server.uri(), dump.path()).args(&arguments).run().ended(0);
    let planned = Restore::new(server.uri(), dump.path()).args(&["--dryRun"]).run().ended(0);
    assert!(planned.stdout.contains("index `hay` of d.things"), "{}", planned.stdout);
}

#[test]
fn the_version_of_an_index_is_kept_on_demand() {
    let server = Server::lease();
    let dump = dump(&json!([
        { "v": 1, "key": { "a": 1 }, "name": "a", "collation": { "locale": "simple" } }
    ]));
    for (arguments, version) in [(&["--drop"][..], 2), (&["--drop", "--keepIndexVersion"], 1)] {
        Restore::new(server.uri(), dump.path()).args(arguments).run().ended(0);
        assert_eq!(found(&server)["d.things"]["indexes"][1]["v"], number(version));
    }
}

#[test]
fn collections_can_be_created_without_their_options() {
    let server = Server::lease();
    let dump = genuine("full_6.0/kitchen");
    let restored = Restore::new(server.uri(), &dump).args(&["--noOptionsRestore"]).run().ended(1);
    let state = found(&server);
    assert_eq!(state["kitchen.capped"]["options"], json!({}));
    assert_eq!(state["kitchen.collated"]["options"], json!({}));
    assert_eq!(state["kitchen.v_small"]["type"], "view");
    assert_eq!(state["kitchen.weather"], Value::Null);
    let skipped = restored.report["skipped"].as_array().unwrap();
    let weather = skipped.iter().find(|one| one["what"] == "kitchen.weather").unwrap();
    assert!(weather["reason"].as_str().unwrap().contains("without its options"), "{weather}");
    let arguments = ["--noOptionsRestore", "--drop", "--nsExclude", "*.weather"];
    // Before 5.0 two of the indexes have the key of another one.
    let status = i32::from(is_before([5, 0]));
    let restored = Restore::new(server.uri(), &dump).args(&arguments).run().ended(status);
    assert_eq!(restored.report["totals"]["indexes_failed"], 0);
    let skipped = restored.report["skipped"].as_array().unwrap();
    let problems = skipped.iter().filter(|one| one["is_problem"] == true);
    assert_eq!(problems.count(), if status == 0 { 0 } else { 2 });
}

#[test]
fn a_commit_quorum_is_sent_to_a_set_and_refused_elsewhere() {
    let dump = dump(&json!([{ "key": { "a": 1 }, "name": "a" }]));
    let alone = Server::lease();
    let arguments = ["--commit-quorum", "majority"];
    let restored = Restore::new(alone.uri(), dump.path()).args(&arguments).run().ended(1);
    assert!(restored.stderr.contains("has no commit quorum"), "{}", restored.stderr);
    assert_eq!(alone.databases(), [""; 0]);
    let set = Server::replica_set(&[]);
    if is_before([4, 4]) {
        let restored = Restore::new(set.uri(), dump.path()).args(&arguments).run().ended(1);
        assert!(restored.stderr.contains("version 4.4 or newer"), "{}", restored.stderr);
        assert_eq!(set.databases(), [""; 0]);
        return;
    }
    for quorum in ["majority", "votingMembers", "1"] {
        let arguments = ["--commitQuorum", quorum, "--drop"];
        Restore::new(set.uri(), dump.path()).args(&arguments).run().ended(0);
    }
    // More members than there are: only a server that was told can refuse it.
    let arguments = ["--commit-quorum", "5", "--drop"];
    let restored = Restore::new(set.uri(), dump.path()).args(&arguments).run().ended(3);
    assert_eq!(restored.report["totals"]["indexes_failed"], 1);
    assert_eq!(set.run("d", doc! { "count": "things" }).get_i32("n").unwrap(), 1);
}
