//! What goes wrong is named, and the rest goes on.

use crate::golden::{expected, found};
use crate::support::dump::{Dump, documents, genuine};
use crate::support::raw::{document, int};
use crate::support::{
    PASSWORD, Restore, Restored, Server, connect, differences, lacks, md5_sum, state_of, stored,
};
use mongodb::bson::doc;
use serde_json::json;
use std::net::TcpListener;
use std::time::{Duration, Instant};

/// Checks that the password is in nothing that was shown or written.
#[track_caller]
fn keeps_the_password(restored: &Restored) {
    let told = format!("{}{}{}", restored.stdout, restored.stderr, restored.report);
    assert!(!told.contains(PASSWORD), "{told}");
}

#[track_caller]
fn says(restored: &Restored, words: &[&str]) {
    for word in words {
        assert!(restored.stderr.contains(word), "`{word}` is not said:\n{}", restored.stderr);
    }
}

/// A port at which nobody listens.
fn closed_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[test]
fn an_index_that_fails_is_named_and_the_others_are_built() {
    if lacks("what this dump holds", [6, 0]) {
        return;
    }
    let server = Server::private(&[]);
    let dump = Dump::copy_of("full_6.0");
    dump.edit("shop/orders.metadata.json", |metadata| {
        let unique = json!({ "v": 2, "key": { "customer": 1 }, "name": "twice", "unique": true });
        let after = json!({ "v": 2, "key": { "more": 1 }, "name": "more_1" });
        metadata["indexes"].as_array_mut().unwrap().insert(1, unique);
        metadata["indexes"].as_array_mut().unwrap().push(after);
    });
    let restored = Restore::new(server.uri(), dump.path()).run().ended(3);
    let indexes = restored.collection("shop.orders")["indexes"].as_array().unwrap();
    let failed: Vec<_> = indexes.iter().filter(|index| index["is_built"] == false).collect();
    assert_eq!((failed.len(), &failed[0]["name"]), (1, &json!("twice")));
    assert!(failed[0]["error"].as_str().unwrap().contains("E11000"), "{}", failed[0]);
    says(&restored, &["shop.orders", "twice", "E11000"]);
    assert_eq!(restored.report["totals"]["indexes_failed"], 1);
    let state = found(&server);
    let built = state["shop.orders"]["indexes"].as_array().unwrap();
    let built: Vec<_> = built.iter().map(|index| index["name"].as_str().unwrap()).collect();
    assert_eq!(built, ["_id_", "customer_1", "more_1"]);
    let mut rest = expected("full_6.0");
    rest["shop.orders"]["indexes"] = state["shop.orders"]["indexes"].clone();
    assert_eq!(differences(&rest, &state), [""; 0]);
}

#[test]
fn faults_of_old_index_definitions_are_repaired_and_listed() {
    let server = Server::lease();
    let metadata = json!({ "indexes": [
        { "v": 1, "key": { "_id": 1 }, "name": "_id_", "ns": "old.things" },
        { "v": 1, "key": { "a": true }, "name": "by truth", "ns": "old.things" },
        { "v": 1, "key": { "b": "" }, "name": "by nothing", "background": true },
        { "v": 1, "key": { "c": 1, "d": -1.0 }, "dropDups": true, "unique": true },
        { "v": 1, "key": { "e": 1 }, "name": "with more", "safe": true, "w": 1 },
        { "v": 1, "key": { "f": 0 }, "name": "by zero" },
    ]});
    let things = [document(&[int("_id", 1), int("a", 1)])];
    let dump = Dump::new().with("old", "things", &things).described("old", "things", &metadata);
    let restored = Restore::new(server.uri(), dump.path()).run().ended(0);
    let notes = restored.notes().join("\n");
    for word in ["by truth", "by nothing", "c_1_d_-1", "`safe`", "`w`", "by zero"] {
        assert!(notes.contains(word), "{word} is not told:\n{notes}");
    }
    let keys: Vec<_> = found(&server)["old.things"]["indexes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|index| (index["name"].as_str().unwrap().to_owned(), index["key"].clone()))
        .collect();
    let one = json!({ "$numberInt": "1" });
    let both = json!({ "c": one, "d": { "$numberDouble": "-1.0" } });
    assert_eq!(keys.len(), 6, "{keys:?}");
    for (name, key) in [
        ("by truth", json!({ "a": one })),
        ("by nothing", json!({ "b": one })),
        ("c_1_d_-1", both),
        ("with more", json!({ "e": one })),
        ("by zero", json!({ "f": one })),
    ] {
        assert!(keys.contains(&(name.to_owned(), key)), "{name}: {keys:?}");
    }
}

#[test]
fn a_collection_that_is_something_else_there_is_a_problem_and_the_others_go_on() {
    if lacks("what this dump holds", [6, 0]) {
        return;
    }
    let server = Server::private(&[]);
    server.run("shop", doc! { "create": "orders", "viewOn": "customers", "pipeline": [] });
    server.run("kitchen", doc! { "insert": "v_small", "documents": [{ "_id": "mine" }] });
    server.run("kitchen", doc! { "insert": "weather", "documents": [{ "_id": "mine" }] });
    let restored = Restore::new(server.uri(), &genuine("full_6.0")).run().ended(1);
    let skipped = restored.report["skipped"].as_array().unwrap();
    for namespace in ["shop.orders", "kitchen.v_small", "kitchen.weather"] {
        let told = skipped.iter().find(|one| one["what"] == namespace).unwrap();
        assert_eq!(told["is_problem"], true);
        says(&restored, &[namespace]);
    }
    let state = found(&server);
    assert_eq!(state["shop.orders"]["type"], "view");
    assert_eq!(state["kitchen.v_small"]["count"], 1);
    assert_eq!(state["kitchen.weather"]["count"], 1);
    for (namespace, wanted) in expected("full_6.0").as_object().unwrap() {
        let concerned = ["shop.orders", "kitchen.v_small", "kitchen.v_on_v"];
        if !concerned.contains(&namespace.as_str()) && !namespace.contains("weather") {
            assert_eq!(&state[namespace], wanted, "{namespace}");
        }
    }
}

#[test]
fn drop_makes_room_for_another_kind() {
    if lacks("what this dump holds", [6, 0]) {
        return;
    }
    let server = Server::private(&[]);
    server.run("shop", doc! { "create": "orders", "viewOn": "customers", "pipeline": [] });
    server.run("kitchen", doc! { "insert": "v_small", "documents": [{ "_id": "mine" }] });
    server.run("kitchen", doc! { "insert": "weather", "documents": [{ "_id": "mine" }] });
    Restore::new(server.uri(), &genuine("full_6.0")).args(&["--drop"]).run().ended(0);
    assert_eq!(differences(&expected("full_6.0"), &found(&server)), [""; 0]);
}

#[test]
fn what_stands_before_a_cut_arrives_and_the_error_names_the_byte() {
    if lacks("what this dump holds", [6, 0]) {
        return;
    }
    let server = Server::private(&[]);
    let dump = Dump::copy_of("full_6.0");
    let file = dump.file("shop/orders.bson");
    let whole = documents(&file);
    let kept = &whole[..2000];
    let offset = kept.iter().map(Vec::len).sum::<usize>();
    let mut bytes = kept.concat();
    bytes.extend_from_slice(&whole[2000][..50]);
    dump.write("shop/orders.bson", &bytes);
    let restored = Restore::new(server.uri(), dump.path()).run().ended(1);
    let at = format!("at byte {offset}");
    let error = restored.collection("shop.orders")["error"].as_str().unwrap();
    assert!(error.contains(&at) && error.contains(file.to_str().unwrap()), "{error}");
    says(&restored, &["shop/orders.bson", &at]);
    assert_eq!(restored.collection("shop.orders")["state"], "failed");
    assert_eq!(restored.balance_of("shop.orders"), [2000, 2000, 0, 0, 0]);
    let there = stored(&server.client(), "shop", "orders");
    assert_eq!(md5_sum(&there), md5_sum(kept));
    let mut rest = expected("full_6.0");
    let state = found(&server);
    rest["shop.orders"] = state["shop.orders"].clone();
    assert_eq!(differences(&rest, &state), [""; 0]);
    let indexes = state["shop.orders"]["indexes"].as_array().unwrap();
    assert_eq!(indexes.len(), 2, "indexes help those who use what there is: {indexes:?}");
}

#[test]
fn a_wrong_path_is_named_with_a_hint() {
    let server = Server::lease();
    let nowhere = Dump::new().file("nowhere");
    let restored = Restore::new(server.uri(), &nowhere).run().ended(1);
    says(&restored, &["error:", nowhere.to_str().unwrap(), "hint:"]);
    assert_eq!(server.databases(), [""; 0]);
}

#[test]
fn a_server_that_is_not_there_is_named_soon_and_without_the_password() {
    let address = format!("127.0.0.1:{}", closed_port());
    let uri = format!("mongodb://app:{PASSWORD}@{address}/?authSource=admin");
    let began = Instant::now();
    let restored = Restore::new(&uri, &genuine("full_6.0")).run().ended(1);
    assert!(began.elapsed() < Duration::from_secs(13), "{:?}", began.elapsed());
    says(&restored, &["error:", &address, "hint:"]);
    keeps_the_password(&restored);
}

#[test]
fn a_connection_string_that_is_wrong_is_wrong_usage() {
    for uri in [
        format!("mongo://app:{PASSWORD}@localhost"),
        format!("mongodb://app:{PASSWORD}@localhost:port"),
        format!("mongodb://app:{PASSWORD}@localhost/?w=0"),
        format!("mongodb://app:{PASSWORD}@@localhost"),
        format!("mongodb://app:{PASSWORD}@localhost/?readPreference=nonsense"),
    ] {
        let restored = Restore::new(&uri, &genuine("full_6.0")).run().ended(2);
        says(&restored, &["error:", "hint:"]);
        keeps_the_password(&restored);
    }
}

#[test]
fn a_user_without_rights_is_told_which_one_is_missing() {
    let server = Server::private(&["--auth"]);
    let reader = server.user("reader", &[doc! { "role": "read", "db": "shop" }]);
    let restored = Restore::new(&reader, &genuine("full_6.0/shop")).run().ended(1);
    says(&restored, &["lacks rights", "insert on `shop.", "readWrite"]);
    keeps_the_password(&restored);
    assert_eq!(state_of(&connect(&reader), &["shop"]), json!({}));

    let wrong = reader.replace(PASSWORD, "wrong-horse");
    let restored = Restore::new(&wrong, &genuine("full_6.0/shop")).run().ended(1);
    says(&restored, &["error:", "uthentication failed", "hint:", "password"]);
    assert!(!restored.stderr.contains("wrong-horse"), "{}", restored.stderr);

    let nobody = Restore::new(server.uri(), &genuine("full_6.0/shop")).run().ended(1);
    says(&nobody, &["error:", "hint:", "user and password"]);
}
