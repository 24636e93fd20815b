//! Time-series collections: both layouts of a dump, buckets that are refused, and what is there.

use crate::golden::{expected, found};
use crate::support::dump::{Dump, documents, genuine};
use crate::support::raw::{document, field, int};
use crate::support::{Restore, Server, differences, lacks};
use mongodb::bson::doc;
use serde_json::{Value, json};
use std::fs;

/// A dump of `kitchen.weather` alone.
fn weather() -> Dump {
    let dump = Dump::new();
    for name in ["system.buckets.weather.bson", "weather.metadata.json"] {
        let file = genuine("full_6.0/kitchen").join(name);
        dump.write(&format!("kitchen/{name}"), &fs::read(file).unwrap());
    }
    dump
}

fn wanted() -> Value {
    let Value::Object(mut state) = expected("full_6.0") else { panic!("a state is an object") };
    state.retain(|name, _| name.ends_with("weather"));
    Value::Object(state)
}

#[test]
fn data_may_lie_under_either_name() {
    if lacks("time-series collections", [5, 0]) {
        return;
    }
    for name in ["weather", "system.buckets.system.buckets.weather"] {
        let server = Server::lease();
        let dump = weather();
        let from = dump.file("kitchen/system.buckets.weather.bson");
        fs::rename(from, dump.file(&format!("kitchen/{name}.bson"))).unwrap();
        Restore::new(server.uri(), dump.path()).run().ended(0);
        assert_eq!(differences(&wanted(), &found(&server)), [""; 0], "{name}");
    }
}

#[test]
fn a_bucket_that_the_server_refuses_is_counted_and_the_rest_goes_on() {
    if lacks("time-series collections", [5, 0]) {
        return;
    }
    let server = Server::lease();
    let dump = weather();
    let file = dump.file("kitchen/system.buckets.weather.bson");
    let good = documents(&file);
    let bad = document(&[field(0x07, "_id", &[9; 12]), int("control", 1)]);
    let content = [&bad, &good.concat()[..], &bad[..]].concat();
    fs::write(&file, content).unwrap();
    let restored = Restore::new(server.uri(), dump.path()).run().ended(3);
    let count = good.len() as u64;
    assert_eq!(restored.balance(), [count + 2, count, 0, 2, 0]);
    assert_eq!(differences(&wanted(), &found(&server)), [""; 0]);
}

/// The peer refuses the whole dump.
#[test]
fn better_than_the_peer_documents_are_added_to_a_time_series_collection_that_is_there() {
    if lacks("time-series collections", [5, 0]) {
        return;
    }
    let server = Server::lease();
    let options = doc! { "timeField": "ts", "metaField": "site", "granularity": "minutes" };
    server.run("kitchen", doc! { "create": "weather", "timeseries": options });
    let now = mongodb::bson::DateTime::now();
    server.run("kitchen", doc! { "insert": "weather", "documents": [{ "ts": now, "site": 1 }] });
    let dump = weather();
    let restored = Restore::new(server.uri(), dump.path()).run().ended(0);
    let notes = restored.report["notes"].to_string();
    assert!(notes.contains("1 collection is already there"), "{notes}");
    let measurements = |pipeline: Vec<mongodb::bson::Document>| {
        let command = doc! { "aggregate": "weather", "pipeline": pipeline, "cursor": {} };
        let reply = server.run("kitchen", command);
        let rows = reply.get_document("cursor").unwrap().get_array("firstBatch").unwrap().clone();
        rows[0].as_document().unwrap().get_i32("n").unwrap()
    };
    let all = measurements(vec![doc! { "$count": "n" }]);
    let own = measurements(vec![doc! { "$match": { "ts": now } }, doc! { "$count": "n" }]);
    let dumped = wanted()["kitchen.weather"]["count"].as_i64().unwrap();
    assert_eq!((i64::from(all), own), (dumped + 1, 1));
}

#[test]
fn a_permission_that_an_old_server_does_not_know_costs_only_the_buckets() {
    if lacks("time-series collections", [5, 0]) {
        return;
    }
    let server = Server::private(&["--setParameter", "enableTestCommands=1"]);
    let dump = weather();
    let fail = doc! {
        "configureFailPoint": "failCommand",
        "mode": { "times": 1 },
        "data": { "failCommands": ["insert"], "errorCode": 408, "appName": "restorm" },
    };
    server.run("admin", fail);
    let restored = Restore::new(server.uri(), dump.path()).run().ended(0);
    let notes = restored.report["notes"].to_string();
    assert!(notes.contains("several types under one name"), "{notes}");
    let mut found = found(&server);
    for there in found.as_object_mut().unwrap().values_mut() {
        // A newer one does know it, and shows it here.
        there["options"].as_object_mut().unwrap().remove("storageEngine");
    }
    assert_eq!(differences(&wanted(), &found), [""; 0]);
    assert_eq!(restored.report["balance"]["rejected"], json!(0));
}
