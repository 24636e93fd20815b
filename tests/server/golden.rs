//! Genuine dumps: each restores to the state that it was taken from, as far as the server can
//! hold it.

use crate::support::dump::{Dump, documents, genuine};
use crate::support::{
    Held, Restore, Restored, Server, differences, is_before, lacks, md5_sum, state_of, stored,
};
use mongodb::bson::doc;
use serde_json::{Map, Value};

/// The state that a dump restores to: the recorded one, without users and roles, which have tests
/// of their own, and with all documents of `kitchen.validated`, of which the recorded state lacks the
/// four that the validator refuses.
pub(crate) fn expected(name: &str) -> Value {
    let path = genuine(&format!("expected/{name}.json"));
    let text = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut state: Map<String, Value> = serde_json::from_slice(&text).expect("a state is JSON");
    state.retain(|namespace, _| !namespace.starts_with("admin."));
    if let Some(validated) = state.get_mut("kitchen.validated") {
        let documents = documents(&genuine(&format!("{name}/kitchen/validated.bson")));
        assert_eq!((documents.len(), &validated["count"]), (10, &Value::from(6)));
        validated["count"] = documents.len().into();
        validated["md5_sum"] = md5_sum(&documents).into();
    }
    Value::Object(state)
}

/// The part of a state that is of this database.
pub(crate) fn only(state: Value, database: &str) -> Value {
    let Value::Object(mut state) = state else {
        panic!("a state is an object");
    };
    let prefix = format!("{database}.");
    state.retain(|namespace, _| namespace.starts_with(&prefix));
    Value::Object(state)
}

/// The state of everything on the server.
pub(crate) fn found(server: &Server) -> Value {
    let databases = server.databases();
    let databases: Vec<&str> = databases.iter().map(String::as_str).collect();
    state_of(&server.client(), &databases)
}

#[track_caller]
fn restores_to(server: &Server, dump: &str, arguments: &[&str], expected: &Value) -> Restored {
    let restored = Restore::new(server.uri(), &genuine(dump)).args(arguments).run();
    Held::of(expected.clone()).is_reached(restored, &found(server))
}

/// Restores a whole dump of this series, all of which a server of the series or a newer one holds.
#[track_caller]
fn restores_whole(dump: &str, series: [u32; 2]) {
    let expected = expected(dump);
    assert!(is_before(series) || Held::of(expected.clone()).is_whole());
    restores_to(&Server::private(&[]), dump, &[], &expected);
}

#[test]
fn a_whole_dump_of_4_2_is_restored() {
    restores_whole("full_4.2", [4, 2]);
}

#[test]
fn a_whole_dump_of_4_4_is_restored() {
    restores_whole("full_4.4", [4, 4]);
}

#[test]
fn a_whole_dump_of_5_0_is_restored() {
    restores_whole("full_5.0", [5, 0]);
}

#[test]
fn a_whole_dump_of_6_0_is_restored() {
    restores_whole("full_6.0", [6, 0]);
}

#[test]
fn documents_that_their_validator_refuses_are_restored_too() {
    let server = Server::lease();
    let dump = genuine("full_6.0/kitchen/validated.bson");
    Restore::new(server.uri(), &dump).args(&["--db", "kitchen"]).run().ended(0);
    let there = stored(&server.client(), "kitchen", "validated");
    let dumped = documents(&dump);
    assert_eq!(there.len(), 10);
    assert_eq!(md5_sum(&there), md5_sum(&dumped));
    let refused =
        server.run("kitchen", doc! { "insert": "validated", "documents": [{ "_id": 99 }] });
    let code = refused.get_array("writeErrors").unwrap()[0].as_document().unwrap();
    assert_eq!(code.get_i32("code").unwrap(), 121, "the validator is back at work: {refused}");
}

#[test]
fn a_gzip_dump_restores_to_the_state_of_the_plain_one() {
    let expected = only(expected("full_6.0"), "kitchen");
    restores_to(&Server::lease(), "kitchen_6.0_gzip", &[], &expected);
}

#[test]
fn the_folder_of_one_database_takes_its_name() {
    let expected = only(expected("shop_users_6.0"), "shop");
    let server = Server::lease();
    restores_to(&server, "shop_users_6.0/shop", &[], &expected);
}

#[test]
fn a_dump_of_one_database_with_its_users_is_restored_without_them() {
    let server = Server::lease();
    let expected = only(expected("shop_users_6.0"), "shop");
    let restored = restores_to(&server, "shop_users_6.0", &[], &expected);
    let skipped = restored.report["skipped"].as_array().unwrap();
    let users = skipped.iter().filter(|one| one["reason"].as_str().unwrap().contains("users"));
    assert_eq!(users.count(), 2, "{skipped:?}");
    assert_eq!(skipped.len(), 3, "{skipped:?}");
    assert!(restored.report["users"].is_null());
}

#[test]
fn a_view_that_was_dumped_as_a_collection_becomes_one() {
    let server = Server::lease();
    let dump = genuine("view_as_collection_6.0");
    let dumped = documents(&dump.join("kitchen/v_small.bson"));
    Restore::new(server.uri(), &dump).run().ended(0);
    let state = found(&server);
    let small = &state["kitchen.v_small"];
    assert_eq!(small["type"], "collection");
    assert_eq!(small["count"], 86);
    assert_eq!(small["md5_sum"], md5_sum(&dumped));
    assert_eq!(small["indexes"].as_array().unwrap().len(), 1);
    assert_eq!(server.databases(), ["kitchen"]);
}

#[test]
fn a_dump_with_an_oplog_is_restored_as_it_was_read() {
    let server = Server::lease();
    let dump = genuine("oplog_6.0");
    let restored = Restore::new(server.uri(), &dump).run().ended(0);
    let state = found(&server);
    let mut dumped = 0;
    for file in std::fs::read_dir(dump.join("live")).unwrap() {
        let file = file.unwrap().path();
        let name = file.file_name().unwrap().to_str().unwrap();
        if let Some(collection) = name.strip_suffix(".bson") {
            let documents = documents(&file);
            let there = &state[format!("live.{collection}")];
            assert_eq!(there["count"], documents.len(), "{collection}");
            assert_eq!(there["md5_sum"], md5_sum(&documents), "{collection}");
            dumped += 1;
        }
    }
    assert_eq!(state.as_object().unwrap().len(), dumped);
    let accounts = state["live.acct"]["indexes"].as_array().unwrap();
    assert!(accounts.iter().any(|index| index["name"] == "bal_1"), "{accounts:?}");
    let skipped = restored.report["skipped"].as_array().unwrap();
    let oplog = skipped.iter().find(|one| one["what"].as_str().unwrap().ends_with("oplog.bson"));
    assert!(oplog.unwrap()["reason"].as_str().unwrap().contains("replayed with --oplog-replay"));
}

#[test]
fn a_dump_of_standard_output_is_restored_as_a_file() {
    let server = Server::lease();
    let arguments = ["--db", "shop", "--collection", "orders"];
    restores_to(&server, "orders_stdout.bson", &arguments, &expected("orders_stdout"));
}

#[test]
fn capped_collections_keep_the_order_of_the_file() {
    let server = Server::lease();
    let dump = genuine("full_6.0/kitchen");
    let arguments = ["--batch-documents", "7", "--collection", "capped", "--db", "kitchen"];
    Restore::new(server.uri(), &dump).args(&arguments).run().ended(0);
    let there = stored(&server.client(), "kitchen", "capped");
    assert_eq!(there, documents(&dump.join("capped.bson")));
}

#[test]
fn restoring_again_with_drop_reaches_the_same_state() {
    let server = Server::private(&[]);
    let dump = genuine("full_6.0");
    let held = Held::of(expected("full_6.0"));
    Restore::new(server.uri(), &dump).run().ended(held.status());
    server.run("shop", doc! { "insert": "orders", "documents": [{ "_id": "of later" }] });
    let again = Restore::new(server.uri(), &dump).args(&["--drop"]).run();
    let again = held.is_reached(again, &found(&server));
    // The server drops no system collection, so system.js is emptied.
    assert_eq!(again.balance_of("kitchen.system.js"), [1, 1, 0, 0, 0]);
}

#[test]
fn restoring_again_without_drop_counts_every_duplicate() {
    let server = Server::private(&[]);
    let dump = genuine("full_6.0");
    let held = Held::of(expected("full_6.0"));
    let first = Restore::new(server.uri(), &dump).run().ended(held.status());
    let [read, ..] = first.balance();
    let status = if held.is_whole() { 3 } else { 1 };
    let again = Restore::new(server.uri(), &dump).run().ended(status);
    assert_eq!(again.balance(), [read, 0, 0, read, 0]);
    let failures = again.collection("shop.orders")["failures"].as_array().unwrap();
    assert_eq!(failures.len(), 1);
    assert_eq!((&failures[0]["code"], &failures[0]["count"]), (&11000.into(), &3000.into()));
    let samples = failures[0]["samples"].as_array().unwrap();
    assert!(!samples.is_empty());
    for sample in samples {
        assert!(sample["id"].as_str().unwrap().starts_with("{\"$oid\":\""), "{sample}");
        assert!(sample["message"].as_str().unwrap().contains("E11000"), "{sample}");
    }
    assert!(again.stderr.contains("11000"), "{}", again.stderr);
    let (mut wanted, mut found) = (held.state, found(&server));
    if is_before([5, 0]) {
        // The server makes room in a full capped collection before it finds the duplicate.
        for state in [&mut wanted, &mut found] {
            state.as_object_mut().unwrap().remove("kitchen.capped");
        }
    }
    assert_eq!(differences(&wanted, &found), [""; 0]);
}

#[test]
fn buckets_of_a_time_series_are_the_ones_that_were_dumped() {
    if lacks("time-series collections", [5, 0]) {
        return;
    }
    let server = Server::lease();
    let dump = genuine("full_6.0/kitchen");
    let arguments = ["--db", "kitchen", "--collection", "weather"];
    Restore::new(server.uri(), &dump).args(&arguments).run().ended(0);
    let buckets = stored(&server.client(), "kitchen", "system.buckets.weather");
    assert_eq!(md5_sum(&buckets), md5_sum(&documents(&dump.join("system.buckets.weather.bson"))));
    let mut expected = expected("full_6.0");
    expected.as_object_mut().unwrap().retain(|namespace, _| namespace.contains("weather"));
    let found = found(&server);
    assert_eq!(differences(&expected, &found), [""; 0]);
    let kept = &found["kitchen.weather"]["options"]["expireAfterSeconds"]["$numberLong"];
    assert_eq!(kept, "315360000");
}

#[test]
fn indexes_that_delete_documents_are_built_last_and_views_follow_their_sources() {
    let server = Server::private(&[]);
    let dump = Dump::copy_of("full_6.0");
    // A view whose name sorts before that of its source, which is a view too.
    let view = serde_json::json!({
        "options": { "viewOn": "v_on_v", "pipeline": [] }, "indexes": [], "type": "view",
        "collectionName": "a_view",
    });
    let dump = dump.described("kitchen", "a_view", &view);
    server.run("kitchen", doc! { "profile": 2 });
    let status = Held::of(expected("full_6.0")).status();
    Restore::new(server.uri(), dump.path()).run().ended(status);
    let commands = server.profiled("kitchen");
    let commands: Vec<_> = commands.iter().map(ToString::to_string).collect();
    let place = |what: &str| {
        let found = commands.iter().position(|command| command.contains(what));
        found.unwrap_or_else(|| panic!("{what}: {commands:#?}"))
    };
    let last = |what: &str| commands.iter().rposition(|command| command.contains(what)).unwrap();
    assert!(place("\"at_1\"") > last("\"insert\""), "{commands:#?}");
    assert!(place("\"at_1\"") > place("\"wild\""), "{commands:#?}");
    let views = ["v_small", "v_on_v", "a_view"].map(|view| place(&format!("create\": \"{view}")));
    assert!(views.is_sorted(), "{commands:#?}");
    assert!(views[0] > place("create\": \"indexed"), "{commands:#?}");
}
