//! What is shown of a restore into a server: lines for programs, and the page.

use crate::support::dump::Dump;
use crate::support::raw::{document, int, string};
use crate::support::{Restore, Server};
use serde_json::{Value, json};

const DOCUMENTS: i32 = 3000;

/// Orders of which two have the same number, with an index that this keeps from being built.
fn dump() -> Dump {
    let orders: Vec<_> = (0..DOCUMENTS)
        .map(|id| {
            document(&[
                int("_id", id),
                int("number", if id == 1 { 2 } else { id }),
                string("text", "<b>"),
            ])
        })
        .collect();
    let metadata = json!({ "indexes": [
        { "v": 2, "key": { "number": 1 }, "name": "number_1", "unique": true },
        { "v": 2, "key": { "text": 1 }, "name": "text_<1>" },
    ]});
    let dump = Dump::new();
    dump.write("shop/orders.bson", &orders.concat());
    dump.write("shop/orders.metadata.json", metadata.to_string().as_bytes());
    dump
}

fn events(stderr: &str) -> Vec<Value> {
    let schema = include_str!("../../docs/event.schema.json");
    let schema: Value = serde_json::from_str(schema).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let parsed = stderr.lines().map(|line| {
        let value = serde_json::from_str(line).unwrap();
        let errors: Vec<_> = validator.iter_errors(&value).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{errors:?}: {line}");
        value
    });
    parsed.collect()
}

#[test]
fn a_restore_is_told_to_programs_and_shown_on_a_page() {
    let (server, dump) = (Server::lease(), dump());
    // Every third document is there already as another one.
    let others: Vec<_> = (0..DOCUMENTS)
        .step_by(3)
        .map(|id| document(&[int("_id", id), int("number", -id)]))
        .collect();
    let other = Dump::new().with("shop", "orders", &others);
    Restore::new(server.uri(), other.path()).args(&["--ledger", "none"]).run().ended(0);
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("run.html");
    let restored = Restore::new(server.uri(), dump.path())
        .args(&["--progress", "json", "--batch-documents", "100"])
        .args(&["--report", page.to_str().unwrap()])
        .run()
        .ended(3);
    let events = events(&restored.stderr);
    let of_kind = |kind: &str| -> Vec<&Value> {
        events.iter().filter(|event| event["event"] == kind).collect()
    };
    assert!(events.len() < 40, "no line for each of 30 batches: {}", events.len());
    let phases: Vec<_> = of_kind("phase_began").iter().map(|event| &event["phase"]).collect();
    assert_eq!(phases.first(), Some(&&json!("data")));
    assert_eq!(phases.last(), Some(&&json!("ended")));
    let [ended] = of_kind("data_ended")[..] else { panic!("one collection: {events:#?}") };
    assert_eq!(ended["collection"], "shop.orders");
    assert_eq!(ended["balance"]["rejected"], 1000);
    let [failed] = of_kind("index_failed")[..] else { panic!("one index fails: {events:#?}") };
    assert_eq!(failed["index"], "number_1");
    let [built] = of_kind("index_built")[..] else { panic!("one index stands: {events:#?}") };
    assert_eq!(built["index"], "text_<1>");
    let last = events.last().unwrap();
    assert_eq!((&last["event"], &last["exit_status"]), (&json!("ended"), &json!(3)));
    assert_eq!(last["balance"], restored.report["balance"]);
    assert_eq!(last["indexes_failed"], 1);
    assert!(last["resume_command"].as_str().is_none_or(|line| line.ends_with("--resume")));

    let page = std::fs::read_to_string(page).unwrap();
    for text in [
        "<strong>FINISHED WITH FAILURES</strong>",
        "<dd class=\"read\">3,000</dd>",
        "<dd class=\"rejected\">1,000</dd>",
        "Code 11000 DuplicateKey: 1,000 documents",
        "text_&lt;1&gt;",
        "shop.orders number_1",
    ] {
        assert!(page.contains(text), "{text} is not on the page");
    }
}
