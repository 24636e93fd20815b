//! The harness itself: what it promises about servers and states.

use crate::support::{Mongod, Server, differences, state_of};
use mongodb::bson::doc;
use serde_json::json;

/// Whether the process is there and not only waited for.
fn lives(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
}

#[test]
fn a_lease_starts_empty_and_leaves_nothing() {
    for _ in 0..3 {
        let server = Server::lease();
        assert_eq!(server.databases(), [""; 0]);
        server.run("harness_one", doc! { "create": "things" });
        server.run("harness_two", doc! { "create": "things" });
        assert_eq!(server.databases(), ["harness_one", "harness_two"]);
    }
}

#[test]
fn named_databases_are_there_for_the_test_alone() {
    for _ in 0..2 {
        let server = Server::lease_databases(&["harness_named"]);
        assert!(!server.databases().contains(&"harness_named".to_string()));
        server.run("harness_named", doc! { "create": "things" });
    }
}

#[test]
fn a_failed_command_is_an_error() {
    let server = Server::lease_databases(&["harness_failed"]);
    let error = server.try_run("harness_failed", doc! { "noSuchCommand": 1 }).unwrap_err();
    assert!(error.to_string().contains("noSuchCommand"), "{error}");
    assert!(server.uri().starts_with("mongodb"));
}

#[test]
fn a_server_comes_back_with_its_data_after_a_kill() {
    let mut server = Server::private(&[]);
    let write = doc! {
        "insert": "things", "documents": [{ "_id": 1 }], "writeConcern": { "j": true },
    };
    server.run("harness", write);
    let first = server.mongod().pid();
    server.kill();
    assert!(!lives(first));
    server.restart();
    let second = server.mongod().pid();
    assert!(first != second && lives(second));
    assert_eq!(state_of(&server.client(), &["harness"])["harness.things"]["count"], 1);
    server.mongod().terminate();
    assert!(!lives(second));
    server.restart();
    assert_eq!(state_of(&server.client(), &["harness"])["harness.things"]["count"], 1);
}

#[test]
fn a_dropped_server_leaves_neither_process_nor_data() {
    let mongod = Mongod::start(&[]);
    let (pid, data) = (mongod.pid(), mongod.data().to_path_buf());
    assert!(lives(pid) && data.join("WiredTiger").exists());
    drop(mongod);
    assert!(!lives(pid));
    assert!(!data.exists());
}

#[test]
fn a_server_of_a_failed_test_is_not_used_again() {
    if std::env::var("MONGODB_URI").is_ok_and(|uri| !uri.is_empty()) {
        // A server that is not ours is cleaned instead; there is no other to take.
        return;
    }
    let mut server = Server::lease();
    let pid = server.mongod().pid();
    let failure = std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || {
        let _held = server;
        std::panic::resume_unwind(Box::new("the test failed"));
    }));
    assert!(failure.is_err());
    assert!(!lives(pid));
}

#[test]
fn a_set_of_one_has_a_primary() {
    let server = Server::replica_set(&[]);
    let hello = server.run("admin", doc! { "isMaster": 1 });
    assert_eq!(hello.get_str("setName").unwrap(), "rs0");
    server.run("harness", doc! { "insert": "things", "documents": [{ "_id": 1 }] });
}

#[test]
fn mongod_gets_the_arguments_of_a_private_server() {
    let server = Server::private(&["--setParameter", "enableTestCommands=1"]);
    server.run("admin", doc! { "configureFailPoint": "failCommand", "mode": "off" });
}

#[test]
fn a_state_tells_types_options_indexes_counts_and_sums() {
    let server = Server::lease();
    let things = doc! { "insert": "things", "documents": [{ "_id": 1 }, { "_id": 2 }] };
    server.run("harness", things);
    let flat = doc! { "key": { "at": "2d" }, "name": "at_2d", "max": 100.0 };
    server.run("harness", doc! { "createIndexes": "things", "indexes": [flat] });
    server.run("harness", doc! { "create": "ones", "viewOn": "things", "pipeline": [] });
    server.run("harness", doc! { "create": "ring", "capped": true, "size": 4096_i64 });

    let id_index = json!({ "v": { "$numberInt": "2" }, "key": { "_id": { "$numberInt": "1" } },
        "name": "_id_" });
    let expected = json!({
        "harness.ones": { "type": "view", "count": 2,
            "options": { "viewOn": "things", "pipeline": [] } },
        "harness.ring": { "type": "collection", "count": 0, "indexes": [id_index],
            "md5_sum": "00000000000000000000000000000000",
            "options": { "capped": true, "size": { "$numberInt": "4096" } } },
        "harness.things": { "type": "collection", "count": 2, "options": {},
            "indexes": [id_index, { "v": { "$numberInt": "2" }, "key": { "at": "2d" },
                "name": "at_2d", "max": { "$numberDouble": "100.0" } }],
            "md5_sum": "ad4d13b845b9a8ead8dfe3deaf789616" },
    });
    let found = state_of(&server.client(), &["harness"]);
    assert_eq!(differences(&expected, &found), [""; 0]);
    assert_eq!(expected, found);
}

#[test]
fn differences_name_the_namespace_and_the_field() {
    let expected = json!({ "a.b": { "count": 1 }, "a.c": { "count": 1 } });
    let found = json!({ "a.b": { "count": 2 }, "a.d": { "count": 1 } });
    assert_eq!(
        differences(&expected, &found),
        ["a.b: count: expected 1, found 2", "a.c: missing", "a.d: not expected"]
    );
    assert_eq!(differences(&expected, &expected), [""; 0]);
}
