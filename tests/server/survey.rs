//! Taking stock of a server: what is told is what the server itself says, also before and after a
//! restore, and to users who may see little.

use crate::program::Program;
use crate::support::dump::{Dump, genuine};
use crate::support::{Restore, Server, is_before, lacks, stored};
use mongodb::bson::{Bson, DateTime, Document, doc};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const SCHEMA: &str = include_str!("../../docs/survey.schema.json");
const REPORT_SCHEMA: &str = include_str!("../../docs/report.schema.json");

#[track_caller]
fn follows(schema: &str, value: &Value) {
    let schema: Value = serde_json::from_str(schema).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<_> = validator.iter_errors(value).map(|error| error.to_string()).collect();
    assert_eq!(errors, [""; 0]);
}

/// Surveys, and returns the report.
#[track_caller]
fn survey(uri: &str, arguments: &[&str]) -> Value {
    let finished = Program::restorm(&["survey", "--uri", uri, "--json"]).args(arguments).run();
    assert_eq!(finished.status, Some(0), "{}", finished.stderr);
    let report: Value = serde_json::from_str(&finished.stdout).unwrap();
    follows(SCHEMA, &report);
    report
}

#[track_caller]
fn of<'a>(survey: &'a Value, namespace: &str) -> &'a Value {
    let namespaces = survey["namespaces"].as_array().unwrap();
    let found = namespaces.iter().find(|one| one["namespace"] == namespace);
    found.unwrap_or_else(|| panic!("{namespace} is not in {survey:#}"))
}

fn names(survey: &Value) -> Vec<&str> {
    let namespaces = survey["namespaces"].as_array().unwrap();
    namespaces.iter().map(|one| one["namespace"].as_str().unwrap()).collect()
}

fn number(document: &Document, field: &str) -> u64 {
    let value = document.get(field).unwrap();
    let whole = value.as_i64().or_else(|| value.as_i32().map(i64::from));
    #[expect(clippy::cast_possible_truncation, reason = "a size")]
    let whole = whole.or_else(|| value.as_f64().map(|size| size as i64));
    whole.and_then(|size| u64::try_from(size).ok()).expect("a size")
}

fn insert(server: &Server, collection: &str, documents: impl IntoIterator<Item = Document>) {
    let documents: Vec<Bson> = documents.into_iter().map(Bson::Document).collect();
    server.run("shop", doc! { "insert": collection, "documents": documents });
}

/// Orders of which the last ten have one field more.
fn fill(server: &Server) {
    let order = |id: i32| {
        let mut order = doc! { "_id": id, "to": { "name": "x".repeat(20) }, "n": 1.5 };
        if id % 3 == 0 {
            order.insert("n", Bson::Null);
        }
        if id >= 2990 {
            order.insert("late", true);
        }
        order
    };
    insert(server, "orders", (0..3000).map(order));
    let index = doc! { "key": { "to.name": 1, "n": -1 }, "name": "by name" };
    server.run("shop", doc! { "createIndexes": "orders", "indexes": [index] });
    server.run("shop", doc! { "create": "few", "viewOn": "orders", "pipeline": [] });
    server.run("admin", doc! { "fsync": 1 });
}

#[test]
fn sizes_and_indexes_are_those_that_the_server_tells() {
    let server = Server::lease();
    fill(&server);
    let report = survey(server.uri(), &[]);
    let found = &report["survey"];
    let build = server.run("admin", doc! { "buildInfo": 1 });
    assert_eq!(found["server"]["version"], build.get_str("version").unwrap());
    let status = server.run("admin", doc! { "serverStatus": 1 });
    let engine = status.get_document("storageEngine").unwrap().get_str("name").unwrap();
    assert_eq!(found["server"]["storage_engine"], engine);
    assert_eq!(names(found), ["shop.few", "shop.orders"]);
    let told = server.run("shop", doc! { "collStats": "orders" });
    let orders = of(found, "shop.orders");
    for (field, of_server) in [
        ("documents", "count"),
        ("data_bytes", "size"),
        ("storage_bytes", "storageSize"),
        ("index_bytes", "totalIndexSize"),
    ] {
        assert_eq!(orders[field], number(&told, of_server), "{field}");
    }
    let sizes = told.get_document("indexSizes").unwrap();
    let expected = json!([
        { "name": "_id_", "key": r#"{"_id":1}"#, "bytes": number(sizes, "_id_") },
        { "name": "by name", "key": r#"{"to.name":1,"n":-1}"#, "bytes": number(sizes, "by name") },
    ]);
    assert_eq!(orders["indexes"], expected);
    let average = orders["average_document_bytes"].as_f64().unwrap();
    let of_server = told.get("avgObjSize").unwrap();
    let of_server = of_server.as_f64().or_else(|| of_server.as_i32().map(f64::from)).unwrap();
    assert!((average - of_server).abs() < 1.0, "{average}");
    let data = orders["data_bytes"].as_f64().unwrap();
    let ratio = data / orders["storage_bytes"].as_f64().unwrap();
    assert!((orders["compression_ratio"].as_f64().unwrap() - ratio).abs() < 1e-9);
    let view = of(found, "shop.few");
    assert_eq!((&view["kind"], &view["documents"]), (&json!("view"), &Value::Null));
    assert_eq!(found["totals"]["documents"], 3000);
    assert_eq!(found["notes"], json!([]));
}

#[test]
fn fields_are_those_of_the_first_and_the_last_documents() {
    let server = Server::lease();
    fill(&server);
    let found = survey(server.uri(), &["shop.orders"]);
    let orders = of(&found["survey"], "shop.orders");
    let fields = &orders["fields"];
    assert_eq!((&fields["documents"], &fields["is_complete"]), (&json!(1000), &json!(false)));
    let named: Vec<_> =
        fields["fields"].as_array().unwrap().iter().map(|one| &one["name"]).collect();
    assert_eq!(named, ["_id", "to", "to.name", "n", "late"]);
    let late = json!({
        "name": "late", "documents": 10, "share": 0.01, "types": [{ "type": "bool", "documents": 10 }],
    });
    assert_eq!(fields["fields"][4], late);
    // 167 of the first 500, and 166 of the last.
    let types =
        json!([{ "type": "double", "documents": 667 }, { "type": "null", "documents": 333 }]);
    assert_eq!(fields["fields"][3]["types"], types);
    let sample = |place: usize| -> Value {
        serde_json::from_str(orders["samples"][place]["json"].as_str().unwrap()).unwrap()
    };
    assert_eq!((&sample(0)["_id"], &sample(1)["_id"]), (&json!(0), &json!(2999)));
    let all = survey(server.uri(), &["shop.orders", "--documents", "3000", "--samples", "0"]);
    let orders = of(&all["survey"], "shop.orders");
    assert_eq!(orders["fields"]["is_complete"], true);
    assert_eq!(orders["fields"]["fields"][3]["types"][1]["documents"], 1000);
    assert_eq!(orders["samples"], json!([]));
    assert_eq!(all["options"].as_array().unwrap().len(), 3);
}

#[test]
fn documents_of_the_largest_size_are_looked_at_within_bounds() {
    let server = Server::lease();
    for id in 0..4 {
        insert(&server, "large", [doc! { "_id": id, "p": "x".repeat(15 << 20), "z": 1 }]);
    }
    let found = survey(server.uri(), &[]);
    let large = of(&found["survey"], "shop.large");
    assert_eq!(large["fields"]["documents"], 2, "16 MiB are enough");
    assert_eq!(large["fields"]["is_complete"], false);
    let expected =
        json!({ "bytes": (15 << 20) + 29, "json": r#"{"_id":0,"z":1}"#, "is_cut": true });
    assert_eq!(large["samples"][0], expected);
}

#[test]
fn time_series_are_counted_in_measurements() {
    if lacks("time-series collections", [5, 0]) {
        return;
    }
    let server = Server::lease();
    let series = doc! { "create": "weather", "timeseries": { "timeField": "at" } };
    server.run("shop", series);
    let at = |second: i64| doc! { "at": DateTime::from_millis(second * 1000), "t": 20 };
    insert(&server, "weather", (0..50).map(at));
    let found = survey(server.uri(), &["shop"]);
    assert_eq!(names(&found["survey"]), ["shop.weather"]);
    let weather = of(&found["survey"], "shop.weather");
    assert_eq!((&weather["kind"], &weather["documents"]), (&json!("timeseries"), &json!(50)));
    assert_eq!(weather["fields"]["documents"], 50);
    assert!(weather["data_bytes"].as_u64().unwrap() > 0);
    assert_eq!(weather["notes"], json!([]));
}

#[test]
fn the_text_is_on_standard_output_and_the_json_in_its_file() {
    let server = Server::lease();
    fill(&server);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("survey.json");
    let finished = Program::restorm(&["survey", server.uri(), "shop", "--report"]).arg(&file).run();
    assert_eq!((finished.status, finished.stderr.as_str()), (Some(0), ""));
    let report: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    follows(SCHEMA, &report);
    for words in
        ["shop.orders      3,000", "by name {\"to.name\":1,\"n\":-1}", "to.name  100 %  string"]
    {
        assert!(finished.stdout.contains(words), "`{words}` is not in\n{}", finished.stdout);
    }
}

#[test]
fn who_may_only_read_is_told_all_but_the_servers_own() {
    let server = Server::private(&["--auth"]);
    let root = server.user("chief", &[doc! { "role": "root", "db": "admin" }]);
    let dump = genuine("full_6.0/shop");
    Restore::new(&root, &dump).run().ended(0);
    let reader = server.user("reader", &[doc! { "role": "read", "db": "shop" }]);
    let found = survey(&reader, &[]);
    let orders = of(&found["survey"], "shop.orders");
    assert_eq!((&orders["documents"], &orders["notes"]), (&json!(3000), &json!([])));
    assert_eq!(found["survey"]["server"]["storage_engine"], "wiredTiger", "sizes show it");
    let role = doc! {
        "createRole": "finder", "roles": [],
        "privileges": [{
            "resource": { "db": "shop", "collection": "orders" },
            "actions": ["find", "listIndexes"],
        }],
    };
    let admin = crate::support::connect(&root).database("admin");
    crate::support::runtime().block_on(async { admin.run_command(role).await }).unwrap();
    let finder = server.user("finder", &[doc! { "role": "finder", "db": "admin" }]);
    let found = survey(&finder, &[]);
    assert_eq!(names(&found["survey"]), ["shop.orders"]);
    let orders = of(&found["survey"], "shop.orders");
    assert_eq!(orders["documents"], Value::Null);
    assert_eq!(orders["indexes"].as_array().unwrap().len(), 2);
    assert_eq!(orders["fields"]["documents"], 1000);
    let note = orders["notes"][0].as_str().unwrap();
    assert!(note.starts_with("its sizes are not told: not authorized"), "{note}");
    let notes = found["survey"]["notes"].to_string();
    assert!(notes.contains("the storage engine is not told to this user"), "{notes}");
}

#[test]
fn a_restore_tells_what_was_before_and_what_is_after() {
    let server = Server::lease();
    insert(&server, "orders", (0..5).map(|id| doc! { "_id": id, "mine": 1 }));
    insert(&server, "other", [doc! { "_id": 1 }]);
    let dump = genuine("full_6.0/shop");
    let restored = Restore::new(server.uri(), &dump).args(&["--survey"]).run().ended(0);
    follows(REPORT_SCHEMA, &restored.report);
    let found = &restored.report["survey"];
    assert_eq!(names(&found["before"]), ["shop.orders"], "what is not restored is not looked at");
    assert_eq!(of(&found["before"], "shop.orders")["documents"], 5);
    let orders = of(&found["after"], "shop.orders");
    let told = server.run("shop", doc! { "collStats": "orders" });
    assert_eq!(orders["documents"], 3005);
    assert_eq!(orders["data_bytes"], number(&told, "size"));
    assert_eq!(orders["storage_bytes"], number(&told, "storageSize"), "it was written before");
    let changed = found["difference"]["namespaces"].as_array().unwrap();
    let change = changed.iter().find(|one| one["namespace"] == "shop.orders").unwrap();
    assert_eq!(change["sums"]["documents"], 3000);
    assert_eq!(change["indexes_added"], json!(["customer_1"]));
    assert_eq!(change["fields_added"][0], "customer");
    let chunks = changed.iter().find(|one| one["namespace"] == "shop.docs.chunks").unwrap();
    assert_eq!((&chunks["was_there"], &chunks["sums"]["documents"]), (&json!(false), &json!(3)));
    assert_eq!(found["difference"]["totals"]["documents"], 3504);
    for words in ["  survey     MongoDB ", " 5 → 3,005 ", "shop.orders: new indexes: customer_1"]
    {
        assert!(restored.stderr.contains(words), "`{words}` is not in\n{}", restored.stderr);
    }
    let planned = Restore::new(server.uri(), &dump).args(&["--survey", "--dry-run"]).run().ended(0);
    assert_eq!(planned.report, Value::Null);
}

#[test]
fn a_restore_goes_well_where_its_user_may_not_look() {
    let server = Server::private(&["--auth"]);
    let user = server.user("restorer", &[doc! { "role": "restore", "db": "admin" }]);
    let dump = genuine("full_6.0/shop");
    let restored = Restore::new(&user, &dump).args(&["--survey"]).run().ended(0);
    follows(REPORT_SCHEMA, &restored.report);
    let after = &restored.report["survey"]["after"];
    let orders = of(after, "shop.orders");
    let notes = orders["notes"].to_string();
    assert!(notes.contains("its documents cannot be read: not authorized"), "{notes}");
    assert!(
        after["notes"].to_string().contains("wrote none after the restore (fsync)"),
        "{after:#}"
    );
}

#[test]
fn a_server_that_is_gone_holds_nothing_up() {
    let mut server = Server::private(&[]);
    let dump = Dump::seeded(1, 200_000);
    let arguments = [
        "--survey",
        "--ledger",
        "none",
        "--workers",
        "1",
        "--batch-documents",
        "100",
        "--retry-for",
        "1s",
        "--server-selection-timeout",
        "1",
    ];
    let running = Restore::new(server.uri(), dump.path()).args(&arguments).start();
    let deadline = Instant::now() + Duration::from_secs(30);
    while stored(&server.client(), "seed", "c00001").is_empty() {
        assert!(Instant::now() < deadline, "no documents came");
        std::thread::sleep(Duration::from_millis(5));
    }
    server.kill();
    let restored = running.finish().ended(1);
    follows(REPORT_SCHEMA, &restored.report);
    let found = &restored.report["survey"];
    assert_eq!((&found["after"], &found["difference"]), (&Value::Null, &Value::Null));
    assert_eq!(found["before"]["namespaces"], json!([]));
    let notes = restored.notes().join("\n");
    assert!(notes.contains("the target could not be surveyed after the restore: "), "{notes}");
}

#[test]
fn every_kind_of_collection_of_a_whole_dump_is_surveyed() {
    if is_before([6, 0]) {
        return;
    }
    let server = Server::private(&[]);
    let restored = Restore::new(server.uri(), &genuine("full_6.0"))
        .args(&["--survey", "--drop"])
        .run()
        .ended(0);
    follows(REPORT_SCHEMA, &restored.report);
    let after = &restored.report["survey"]["after"];
    assert_eq!(names(after).len(), restored.report["collections"].as_array().unwrap().len());
    let noted: Vec<_> =
        after["namespaces"].as_array().unwrap().iter().map(|one| &one["notes"]).collect();
    assert!(noted.iter().all(|notes| **notes == json!([])), "{noted:?}");
}
