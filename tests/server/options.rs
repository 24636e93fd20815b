//! What is restored, and how, when options say so.

use crate::golden::{expected, found, only};
use crate::support::dump::{Dump, genuine};
use crate::support::raw::{document, int};
use crate::support::{
    Mongod, Restore, Server, connect, differences, lacks, state_of, stored, version_text,
};
use mongodb::bson::doc;
use serde_json::{Value, json};

/// A collection of documents with these numbers as `_id`s.
fn numbered(ids: impl IntoIterator<Item = i32>) -> Vec<Vec<u8>> {
    ids.into_iter().map(|id| document(&[int("_id", id), int("a", id)])).collect()
}

#[test]
fn drop_takes_only_what_the_dump_brings() {
    let server = Server::lease();
    for (database, collection) in [("shop", "orders"), ("shop", "mine"), ("other", "mine")] {
        server.run(database, doc! { "insert": collection, "documents": [{ "_id": "mine" }] });
    }
    let index = doc! { "key": { "mine": 1 }, "name": "mine" };
    server.run("shop", doc! { "createIndexes": "orders", "indexes": [index] });
    let dump = genuine("full_6.0/shop");
    Restore::new(server.uri(), &dump).args(&["--drop"]).run().ended(0);
    let mut state = found(&server);
    let kept = state.as_object_mut().unwrap();
    assert_eq!(kept.remove("shop.mine").unwrap()["count"], 1);
    assert_eq!(kept.remove("other.mine").unwrap()["count"], 1);
    assert_eq!(differences(&only(expected("full_6.0"), "shop"), &state), [""; 0]);
}

#[test]
fn documents_are_added_to_what_is_there() {
    let server = Server::lease();
    server.run("shop", doc! { "insert": "orders", "documents": [{ "_id": "mine" }] });
    let restored = Restore::new(server.uri(), &genuine("full_6.0/shop")).run().ended(0);
    assert_eq!(restored.balance_of("shop.orders"), [3000, 3000, 0, 0, 0]);
    let state = state_of(&server.client(), &["shop"]);
    assert_eq!(state["shop.orders"]["count"], 3001);
    assert_eq!(state["shop.orders"]["indexes"], expected("full_6.0")["shop.orders"]["indexes"]);
}

#[test]
fn validators_judge_when_they_are_asked_to() {
    if lacks("what this dump holds", [6, 0]) {
        return;
    }
    let server = Server::lease();
    let dump = genuine("full_6.0/kitchen");
    let restored = Restore::new(server.uri(), &dump).args(&["--validate-documents"]).run().ended(3);
    assert_eq!(restored.balance_of("kitchen.validated"), [10, 6, 0, 4, 0]);
    let failures = &restored.collection("kitchen.validated")["failures"];
    assert_eq!(failures.as_array().unwrap().len(), 1);
    assert_eq!((&failures[0]["code"], &failures[0]["count"]), (&json!(121), &json!(4)));
    assert!(restored.stderr.contains("121"), "{}", restored.stderr);
    // Now the recorded state holds for this collection as well, which lacks the four.
    let recorded = std::fs::read(genuine("expected/full_6.0.json")).unwrap();
    let recorded = only(serde_json::from_slice(&recorded).unwrap(), "kitchen");
    assert_eq!(differences(&recorded, &found(&server)), [""; 0]);
}

#[test]
fn a_user_who_may_not_bypass_validators_goes_on_without() {
    let server = Server::private(&["--auth"]);
    let app = server.user("app", &[doc! { "role": "readWrite", "db": "kitchen" }]);
    let arguments = ["--db", "kitchen", "--collection", "validated"];
    let restored = Restore::new(&app, &genuine("full_6.0")).args(&arguments).run().ended(3);
    assert_eq!(restored.balance(), [10, 6, 0, 4, 0]);
    let notes = restored.notes();
    assert_eq!(notes.iter().filter(|note| note.contains("bypassDocumentValidation")).count(), 1);
    assert!(restored.stderr.contains("may not bypass validators"), "{}", restored.stderr);
    assert_eq!(stored(&connect(&app), "kitchen", "validated").len(), 6);
}

#[test]
fn no_indexes_but_the_one_on_id() {
    if lacks("what this dump holds", [6, 0]) {
        return;
    }
    let server = Server::private(&[]);
    let dump = genuine("full_6.0");
    let restored = Restore::new(server.uri(), &dump).args(&["--no-indexes"]).run().ended(0);
    assert_eq!(restored.report["totals"]["indexes"], 0);
    let mut expected = expected("full_6.0");
    for (namespace, state) in expected.as_object_mut().unwrap() {
        if let Some(indexes) = state["indexes"].as_array_mut() {
            indexes.retain(|index| index["name"] == "_id_" || index["clustered"] == true);
        }
        // The server itself makes the index on its metadata and time.
        if namespace.contains("weather") {
            state["indexes"] = found(&server)[namespace]["indexes"].clone();
        }
    }
    assert_eq!(differences(&expected, &found(&server)), [""; 0]);
}

#[test]
fn a_dry_run_touches_nothing() {
    let server = Server::private(&[]);
    server.run("shop", doc! { "insert": "orders", "documents": [{ "_id": "mine" }] });
    let before = found(&server);
    let dump = genuine("full_6.0");
    for arguments in [&["--dry-run"][..], &["--dry-run", "--drop"]] {
        let planned = Restore::new(server.uri(), &dump).args(arguments).run().ended(0);
        for word in ["shop.orders", "kitchen.weather", "kitchen.v_on_v", "a_1_b_-1", "customer_1"] {
            assert!(planned.stdout.contains(word), "{word} is missing:\n{}", planned.stdout);
        }
        assert_eq!(planned.report, Value::Null);
        assert_eq!(found(&server), before);
        assert_eq!(server.databases(), ["shop"]);
    }
}

#[test]
fn one_database_of_a_whole_dump() {
    if lacks("what this dump holds", [6, 0]) {
        return;
    }
    let server = Server::lease();
    Restore::new(server.uri(), &genuine("full_6.0")).args(&["--db", "odd"]).run().ended(0);
    assert_eq!(differences(&only(expected("full_6.0"), "odd"), &found(&server)), [""; 0]);
    assert_eq!(server.databases(), ["odd"]);
}

#[test]
fn one_collection_of_a_whole_dump() {
    let server = Server::lease();
    let arguments = ["--db", "shop", "--collection", "docs.files"];
    Restore::new(server.uri(), &genuine("full_6.0")).args(&arguments).run().ended(0);
    let state = found(&server);
    assert_eq!(state.as_object().unwrap().len(), 1);
    assert_eq!(state["shop.docs.files"], expected("full_6.0")["shop.docs.files"]);
}

#[test]
fn a_folder_under_another_name() {
    let server = Server::lease();
    let dump = genuine("full_6.0/shop");
    Restore::new(server.uri(), &dump).args(&["--db", "copy"]).run().ended(0);
    let state = found(&server);
    let expected = only(expected("full_6.0"), "shop");
    assert_eq!(state.as_object().unwrap().len(), expected.as_object().unwrap().len());
    for (namespace, wanted) in expected.as_object().unwrap() {
        assert_eq!(&state[namespace.replacen("shop", "copy", 1)], wanted, "{namespace}");
    }
}

#[test]
fn a_file_under_another_name_with_the_metadata_beside_it() {
    let server = Server::lease();
    let dump = genuine("full_6.0/shop/orders.bson");
    let arguments = ["--db", "copy", "--collection", "renamed"];
    Restore::new(server.uri(), &dump).args(&arguments).run().ended(0);
    assert_eq!(found(&server), json!({ "copy.renamed": expected("full_6.0")["shop.orders"] }));
}

#[test]
fn what_the_dump_does_not_hold_is_an_error() {
    let server = Server::lease();
    let dump = genuine("full_6.0");
    for arguments in [&["--db", "nowhere"][..], &["--db", "shop", "--collection", "nothing"]] {
        let restored = Restore::new(server.uri(), &dump).args(arguments).run().ended(1);
        assert!(restored.stderr.contains("error:"), "{}", restored.stderr);
        assert!(restored.stderr.contains("hint:"), "{}", restored.stderr);
    }
    assert_eq!(server.databases(), [""; 0]);
}

#[test]
fn stop_on_error_stops_at_the_first_refused_document() {
    let server = Server::lease();
    let ids = (0..500).chain([7]).chain(501..20_000);
    let dump = Dump::new().with("stop", "things", &numbered(ids));
    let arguments = ["--stop-on-error", "--batch-documents", "100", "--workers", "1"];
    let restored = Restore::new(server.uri(), dump.path()).args(&arguments).run().ended(1);
    let [read, inserted, _, rejected, unsent] = restored.balance();
    // The batch with the refused document is finished; what was read ahead is not sent.
    assert_eq!((inserted, rejected), (599, 1));
    assert!(unsent > 0 && read < 20_000, "{read} read, {unsent} unsent");
    assert_eq!(stored(&server.client(), "stop", "things").len(), 599);
    assert_eq!(restored.report["outcome"]["kind"], "stopped");
    assert!(restored.stderr.contains("refused document"), "{}", restored.stderr);
}

#[test]
fn stop_on_error_in_order_leaves_exactly_what_came_before() {
    let server = Server::lease();
    let documents = numbered((0..550).chain([7]).chain(551..5000));
    let dump = Dump::new().with("stop", "things", &documents);
    let arguments = ["--stop-on-error", "--maintain-insertion-order", "--batch-documents", "100"];
    Restore::new(server.uri(), dump.path()).args(&arguments).run().ended(1);
    assert_eq!(stored(&server.client(), "stop", "things"), documents[..550]);
}

#[test]
fn documents_keep_the_order_of_the_file() {
    let server = Server::lease();
    let dumped = numbered((0..1000).chain([3]).chain(1001..3000));
    let dump = Dump::new().with("order", "things", &dumped);
    let arguments = ["--maintain-insertion-order", "--batch-documents", "7", "--workers", "8"];
    let restored = Restore::new(server.uri(), dump.path()).args(&arguments).run().ended(3);
    assert_eq!(restored.balance(), [3000, 2999, 0, 1, 0]);
    let mut expected = dumped;
    expected.remove(1000);
    assert_eq!(stored(&server.client(), "order", "things"), expected);
}

#[test]
fn the_report_follows_its_schema_and_its_numbers_are_those_of_the_server() {
    if lacks("what this dump holds", [6, 0]) {
        return;
    }
    let server = Server::private(&[]);
    let dump = genuine("full_6.0");
    let arguments = ["--validate-documents", "--workers", "3"];
    let restored = Restore::new(server.uri(), &dump).args(&arguments).run().ended(3);
    let report = &restored.report;
    let schema = include_str!("../../docs/report.schema.json");
    let schema: Value = serde_json::from_str(schema).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<_> = validator.iter_errors(report).map(|error| error.to_string()).collect();
    assert_eq!(errors, [""; 0]);

    let state = found(&server);
    let (mut documents, mut indexes) = (0, 0);
    for (namespace, there) in state.as_object().unwrap() {
        if there["type"] == "view" || there["type"] == "timeseries" {
            continue;
        }
        let logical = namespace.replace("system.buckets.", "");
        let [_, inserted, ..] = restored.balance_of(&logical);
        assert_eq!(inserted, there["count"], "{namespace}");
        documents += inserted;
        let own = |index: &&Value| index["name"] != "_id_" && index["clustered"] != true;
        let built = there["indexes"].as_array().unwrap().iter().filter(own).count();
        assert_eq!(restored.collection(&logical)["indexes_planned"], built, "{namespace}");
        indexes += built;
    }
    assert_eq!(report["balance"]["inserted"], documents);
    assert_eq!(report["totals"]["indexes_built"], indexes);
    let collections = report["collections"].as_array().unwrap();
    assert_eq!(report["totals"]["collections"], collections.len());
    // The buckets are no collection of their own.
    assert_eq!(collections.len(), state.as_object().unwrap().len() - 1);
    assert_eq!(report["target"]["server_version"], version_text());
    assert_eq!(report["dump"]["server_version"], "6.0.5");
    let options = report["options"].as_array().unwrap();
    assert!(options.contains(&json!({ "name": "workers", "value": "3" })), "{options:?}");
}

#[test]
fn host_and_port_lead_to_the_server_as_well() {
    let mongod = Mongod::start(&[]);
    let (host, port) = mongod.address().split_once(':').unwrap();
    let dump = genuine("orders_stdout.bson");
    let finished = crate::program::Program::restorm(&["restore", "--host", host, "--port", port])
        .args(&["--db", "shop", "--collection", "orders", "--quiet"])
        .arg(&dump)
        .run();
    assert_eq!((finished.status, finished.stderr.as_str()), (Some(0), ""));
    assert_eq!(finished.stdout, "");
    let state = state_of(&connect(mongod.uri()), &["shop"]);
    assert_eq!(differences(&expected("orders_stdout"), &state), [""; 0]);
}
