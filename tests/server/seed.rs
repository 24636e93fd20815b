//! Made-up documents that go straight into a server.

use std::path::Path;

use mongodb::bson::{Document, doc};
use serde_json::Value;

use crate::program::{Finished, Program};
use crate::support::{Server, lacks};

/// Runs `restorm seed` into a server; returns what it said and its report.
fn seed(server: &Server, line: &str, status: i32) -> (Finished, Value) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("report.json");
    let finished = Program::restorm(&["seed", "--uri", server.uri(), "--report"])
        .arg(&file)
        .args(&line.split_whitespace().collect::<Vec<_>>())
        .run();
    assert_eq!(finished.status, Some(status), "{line}\n{}", finished.stderr);
    let report: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    let schema: Value =
        serde_json::from_str(include_str!("../../docs/report.schema.json")).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<_> = validator.iter_errors(&report).map(|error| error.to_string()).collect();
    assert_eq!(errors, [""; 0]);
    (finished, report)
}

/// Whether a server holds what is made for files by the same arguments.
fn is_what_files_hold(server: &Server, line: &str, status: i32) {
    let folder = tempfile::tempdir().unwrap();
    let dump = folder.path().join("dump");
    let words: Vec<_> = line.split_whitespace().collect();
    let made = Program::restorm(&["seed", "--out"]).arg(&dump).args(&words).run();
    assert_eq!(made.status, Some(0), "{}", made.stderr);
    let verified = Program::restorm(&["verify", "--uri", server.uri()]).arg(&dump).run();
    assert_eq!(verified.status, Some(status), "{line}\n{}", verified.stderr);
}

#[test]
fn a_server_gets_the_documents_and_indexes_that_files_would_hold() {
    let server = Server::lease();
    let line = "--collections 3 --documents 5000 --indexes 2 --seed 7";
    let (_, report) = seed(&server, &format!("{line} --batch-documents 700 --verify"), 0);
    assert_eq!(report["balance"]["read"], 15_000);
    assert_eq!(report["balance"]["inserted"], 15_000);
    assert_eq!(report["verification"]["state"], "same");
    is_what_files_hold(&server, line, 0);
    is_what_files_hold(&server, &line.replace("--seed 7", "--seed 8"), 4);
}

#[test]
fn parts_that_are_made_by_several_runs_are_the_whole() {
    let server = Server::lease();
    for part in ["--from 0 --count 1500", "--from 1500 --count 1", "--from 1501"] {
        seed(&server, &format!("--documents 4000 {part}"), 0);
    }
    is_what_files_hold(&server, "--documents 4000", 0);
}

#[test]
fn what_is_there_already_is_refused_or_dropped() {
    let server = Server::lease();
    seed(&server, "--documents 100", 0);
    let (_, again) = seed(&server, "--documents 150", 3);
    assert_eq!(again["balance"]["rejected"], 100);
    assert_eq!(again["balance"]["inserted"], 50);
    let (_, anew) = seed(&server, "--documents 150 --drop", 0);
    assert_eq!(anew["balance"]["inserted"], 150);
    is_what_files_hold(&server, "--documents 150", 0);
}

#[test]
fn the_database_is_that_of_the_connection_string() {
    let server = Server::lease();
    let uri = format!("{}/till", server.uri().trim_end_matches('/'));
    let made = Program::restorm(&["seed", "--documents", "10", "--uri", &uri]).run();
    assert_eq!(made.status, Some(0), "{}", made.stderr);
    let till = server.client().database("till").collection::<Document>("c00001");
    let count = crate::support::runtime().block_on(till.count_documents(doc! {}).into_future());
    assert_eq!(count.unwrap(), 10);
}

#[test]
fn a_soak_ends_in_time_and_finds_what_was_lost() {
    let server = Server::lease();
    let line = "--duration 2s --collections 2 --shape sink";
    let (_, report) = seed(&server, line, 0);
    let read = report["balance"]["read"].as_u64().unwrap();
    assert!(read > 1000, "{read}");
    assert_eq!(report["balance"]["inserted"], read);
    let totals = &report["verification"]["totals"];
    assert_eq!(
        (&totals["documents_dump"], &totals["documents_target"]),
        (&read.into(), &read.into())
    );
    let held = |number: usize| report["collections"][number]["balance"]["inserted"].as_u64();
    assert!(held(0) > Some(0) && held(1) > Some(0), "{report}");
}

#[test]
fn nothing_is_left_behind_in_files() {
    let folder = tempfile::tempdir().unwrap();
    let made =
        Program::restorm(&["seed", "--null", "--documents", "1000"]).in_folder(folder.path()).run();
    assert_eq!(made.status, Some(0), "{}", made.stderr);
    assert!(made.stderr.contains("1,000 documents inserted"), "{}", made.stderr);
    assert_eq!(Path::read_dir(folder.path()).unwrap().count(), 0);
}

/// The example of the documentation.
fn shop() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/specs/shop.toml")
}

#[test]
fn a_spec_fills_a_server_with_its_collections_options_and_indexes() {
    let server = Server::lease();
    let spec = shop();
    let line = format!("--spec {} --scale 0.2", spec.display());
    let (_, report) = seed(&server, &format!("{line} --verify"), 0);
    assert_eq!(report["balance"]["inserted"], 1000 + 4000 + 600);
    assert_eq!(report["verification"]["state"], "same");
    assert_eq!(report["dump"]["path"], "made-up shop.toml documents");
    let runtime = crate::support::runtime();
    let orders = server.client().database("shop").collection::<Document>("orders");
    let indexes = runtime.block_on(orders.list_index_names().into_future()).unwrap();
    assert_eq!(indexes, ["_id_", "customer_1_at_-1", "old orders leave"]);
    // Every order is one of a customer who is there.
    let pipeline = [
        doc! { "$lookup": { "from": "customers", "localField": "customer", "foreignField": "_id", "as": "found" } },
        doc! { "$match": { "found": { "$size": 1 } } },
        doc! { "$count": "orders" },
    ];
    let counted = runtime.block_on(async {
        let mut cursor = orders.aggregate(pipeline).await.unwrap();
        assert!(cursor.advance().await.unwrap());
        cursor.deserialize_current().unwrap()
    });
    assert_eq!(counted, doc! { "orders": 4000 });
    is_what_files_hold(&server, &line, 0);
}

/// The fields of a collection with their types, and the mean size of its documents.
fn surveyed(server: &Server, collection: &str) -> (Vec<String>, f64) {
    let uri = server.uri();
    let told =
        Program::restorm(&["survey", collection, uri, "--json", "--documents", "20000"]).run();
    assert_eq!(told.status, Some(0), "{}", told.stderr);
    let told: Value = serde_json::from_str(&told.stdout).unwrap();
    let namespace = &told["survey"]["namespaces"][0];
    let fields = namespace["fields"]["fields"].as_array().unwrap().iter().map(|field| {
        let types = field["types"].as_array().unwrap().iter();
        let mut types: Vec<_> = types.map(|one| one["type"].as_str().unwrap()).collect();
        types.sort_unstable();
        format!("{} {}", field["name"].as_str().unwrap(), types.join(","))
    });
    let mut fields: Vec<_> = fields.collect();
    fields.sort();
    let number = |name: &str| namespace[name].as_f64().unwrap();
    (fields, number("data_bytes") / number("documents"))
}

#[test]
fn a_spec_that_is_like_a_collection_makes_a_similar_one() {
    let server = Server::lease();
    seed(&server, "--shape orders --documents 3000 --indexes 2 --db live", 0);
    seed(&server, &format!("--spec {} --scale 0.1 --db shop", shop().display()), 0);
    let folder = tempfile::tempdir().unwrap();
    for (database, collection) in [("live", "c00001"), ("shop", "customers"), ("shop", "orders")] {
        let uri = format!("{}/{database}.{collection}", server.uri().trim_end_matches('/'));
        let like = Program::restorm(&["seed", "--like", &uri]).run();
        assert_eq!(like.status, Some(0), "{}", like.stderr);
        let file = folder.path().join(format!("{collection}.toml"));
        let text =
            like.stdout.replace(&format!("database = \"{database}\""), "database = \"like\"");
        std::fs::write(&file, text).unwrap();
        seed(&server, &format!("--spec {}", file.display()), 0);
        let (before, mean_before) = surveyed(&server, &format!("{database}.{collection}"));
        let (after, mean_after) = surveyed(&server, &format!("like.{collection}"));
        assert_eq!(before, after, "{}", like.stdout);
        let ratio = mean_after / mean_before;
        assert!((0.88..1.12).contains(&ratio), "{ratio}\n{}", like.stdout);
        let indexes = |database: &str| {
            let of = server.client().database(database).collection::<Document>(collection);
            crate::support::runtime().block_on(of.list_index_names().into_future()).unwrap()
        };
        assert_eq!(indexes(database), indexes("like"));
    }
}

#[test]
fn a_collection_that_is_not_there_cannot_be_described() {
    let server = Server::lease();
    let uri = server.uri();
    let like = Program::restorm(&["seed", "--like", "shop.none", "--uri", uri]).run();
    assert_eq!(like.status, Some(2), "{}", like.stderr);
    assert!(like.stderr.contains("shop.none: there is no such collection"), "{}", like.stderr);
}

#[test]
fn what_was_killed_goes_on_with_its_numbers() {
    if lacks("fail point that blocks", [4, 4]) {
        return;
    }
    let server = crate::resume::slow(20);
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().display().to_string();
    let words = ["--documents", "4000", "--batch-documents", "50", "--workers", "2"];
    let command = |more: &[&str]| {
        Program::restorm(&["seed", "--uri", server.uri()])
            .args(&words)
            .args(more)
            .env("XDG_STATE_HOME", &state)
    };
    let running = command(&[]).start();
    let held = server.client().database("seed").collection::<Document>("c00001");
    let count = || {
        let counted = held.estimated_document_count().into_future();
        crate::support::runtime().block_on(counted).unwrap_or(0)
    };
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while count() < 400 {
        assert!(std::time::Instant::now() < deadline, "no documents came");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    std::thread::sleep(std::time::Duration::from_millis(300));
    running.signal("KILL");
    assert_eq!(running.finish().status, None);
    let other = command(&["--seed", "2", "--resume"]).run();
    assert_eq!(other.status, Some(1), "other documents: {}", other.stderr);
    let resumed = command(&["--resume", "--verify"]).run();
    assert_eq!(resumed.status, Some(0), "{}", resumed.stderr);
    assert!(resumed.stderr.contains("goes on with an earlier one"), "{}", resumed.stderr);
    is_what_files_hold(&server, "--documents 4000", 0);
}
