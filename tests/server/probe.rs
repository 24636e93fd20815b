//! Reads from many connections, of a server that runs.

use std::time::Duration;

use mongodb::bson::{Document, doc};
use serde_json::Value;

use crate::program::{Finished, Program};
use crate::support::{Server, runtime};

const SCHEMA: &str = include_str!("../../docs/probe.schema.json");

/// Runs `restorm probe` with these words; returns what it said and its report.
pub(crate) fn probe(uri: &str, line: &str, status: i32) -> (Finished, Value) {
    let program = Program::restorm(&["probe", "--json", "--uri", uri]);
    judged(program.args(&line.split_whitespace().collect::<Vec<_>>()).run(), status)
}

/// The report of a probe that ended, which follows its schema and whose counts are balanced.
pub(crate) fn judged(finished: Finished, status: i32) -> (Finished, Value) {
    assert_eq!(finished.status, Some(status), "{}", finished.stderr);
    let report: Value = serde_json::from_str(&finished.stdout).expect("a report");
    let schema: Value = serde_json::from_str(SCHEMA).expect("the schema is JSON");
    let validator = jsonschema::validator_for(&schema).expect("the schema compiles");
    let errors: Vec<_> = validator.iter_errors(&report).map(|error| error.to_string()).collect();
    assert_eq!(errors, [""; 0], "{report:#}");
    for step in report["steps"].as_array().expect("steps") {
        let count = |name: &str| step.pointer(name).and_then(Value::as_u64).expect("a count");
        let sum = |names: &[&str]| names.iter().map(|name| count(name)).sum::<u64>();
        let done = sum(&["/done/reads", "/done/inserts", "/done/updates", "/answered_after_end"]);
        let open = sum(&["/unanswered", "/unsent"]);
        assert_eq!(count("/asked"), done + count("/failed") + open, "{step:#}");
        assert_eq!(count("/latency/count"), done + open, "{step:#}");
        assert_eq!(count("/service/count"), done, "{step:#}");
    }
    (finished, report)
}

fn count(server: &Server, filter: Document) -> u64 {
    let points = server.client().database("seed").collection::<Document>("c00001");
    runtime().block_on(async { points.count_documents(filter).await }).expect("counted")
}

#[test]
fn each_connection_is_a_socket_and_every_answer_is_about_its_document() {
    let server = Server::lease();
    let line = "--seed-documents 20000 --connections 200 --duration 2s";
    let (_, report) = probe(server.uri(), line, 0);
    let step = &report["steps"][0];
    assert_eq!(step["connected"], 200);
    assert!(step["server_connections"].as_u64() >= Some(200), "{step:#}");
    assert!(step["done"]["reads"].as_u64() > Some(1000), "{step:#}");
    for name in ["misses", "unsent", "lost_connections"] {
        assert_eq!(step[name], 0, "{name}");
    }
    assert_eq!(report["load"]["ids_known"], 20_000);
    assert_eq!(count(&server, doc! {}), 20_000);
    let (finished, _) = probe(server.uri(), "--seed-documents 5 --connections 1 --duration 1s", 0);
    assert!(finished.stderr.contains("holds 20,000 documents and is not filled"));
}

#[test]
fn a_ramp_with_a_pace_asks_what_it_said_at_each_step() {
    let server = Server::lease();
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("probe.html");
    let line = "--seed-documents 5000 --ramp 20..80 --steps 3 --rate-per-connection 10 \
                --duration 6s --report";
    let line = format!("{line} {}", page.display());
    let (_, report) = probe(server.uri(), &line, 0);
    let steps = report["steps"].as_array().expect("steps");
    let connections: Vec<_> = steps.iter().map(|step| step["connections"].as_u64()).collect();
    assert_eq!(connections, [Some(20), Some(40), Some(80)]);
    for step in steps {
        let asked = step["asked_per_second"].as_f64().expect("a pace");
        let achieved = step["achieved_per_second"].as_f64().expect("a rate");
        let wanted = step["connections"].as_f64().expect("a number") * 10.0;
        assert!((asked / wanted - 1.0).abs() < 0.1, "{asked} of {wanted}");
        assert!(achieved > asked * 0.9, "{achieved} of {asked}");
        let quantile = |name: &str| step[name]["p99_seconds"].as_f64().expect("a time");
        assert!(quantile("latency") >= quantile("service"), "{step:#}");
    }
    assert_eq!(report["fit"]["model"], "line_and_ceiling");
    let page = std::fs::read_to_string(page).expect("a page");
    assert!(page.contains("<svg") && page.contains("seed.c00001"));
    assert!(!page.contains("http://") && !page.contains("src="), "it needs no network");
}

#[test]
fn inserts_and_updates_are_stored() {
    let server = Server::lease();
    let line = "--seed-documents 2000 --connections 20 --duration 2s --insert 0.2 --update 0.3";
    let (_, report) = probe(server.uri(), line, 0);
    let step = &report["steps"][0];
    let done = |name: &str| step["done"][name].as_u64().expect("a count");
    let all = done("reads") + done("inserts") + done("updates");
    for (name, share) in [("reads", 50), ("inserts", 20), ("updates", 30)] {
        let percent = done(name) * 100 / all;
        assert!((share - 5..share + 5).contains(&percent), "{name}: {percent} %");
    }
    let stored = count(&server, doc! {}) - 2000;
    let late = step["answered_after_end"].as_u64().expect("a count");
    assert!((done("inserts")..=done("inserts") + late).contains(&stored), "{stored} {step:#}");
    assert_eq!(step["misses"], 0);
}

#[test]
fn ids_of_any_type_are_read_from_the_collection() {
    let server = Server::lease();
    let texts = server.client().database("shop").collection::<Document>("texts");
    let documents = (0..500).map(|number| doc! { "_id": format!("id {number}"), "a": number });
    runtime().block_on(async { texts.insert_many(documents).await }).expect("inserted");
    let line = "--collection shop.texts --connections 5 --duration 1s";
    let (_, report) = probe(server.uri(), line, 0);
    assert_eq!(report["load"]["ids"], "sample");
    assert_eq!(report["steps"][0]["misses"], 0);
    let empty = Program::restorm(&["probe", "--uri", server.uri(), "--collection", "no.body"]);
    let finished = empty.run();
    assert_ne!(finished.status, Some(0));
    assert!(finished.stderr.contains("--seed-documents"), "{}", finished.stderr);
}

#[test]
fn a_login_is_made_on_each_connection() {
    let server = Server::lease();
    for mechanism in ["SCRAM-SHA-1", "SCRAM-SHA-256"] {
        let user = mechanism.replace('-', "");
        let command = doc! {
            "createUser": &user, "pwd": "p w:d", "roles": ["readWriteAnyDatabase"],
            "mechanisms": [mechanism],
        };
        let admin = server.client().database("admin");
        runtime().block_on(async { admin.run_command(command).await }).expect("a user");
        let address = server.uri().trim_start_matches("mongodb://");
        let uri = format!("mongodb://{user}:p%20w%3Ad@{address}");
        let uri = match uri.split_once("/?") {
            Some((host, options)) => format!("{host}/?authSource=admin&{options}"),
            None => format!("{}/?authSource=admin", uri.trim_end_matches('/')),
        };
        let line = "--seed-documents 100 --connections 10 --duration 1s";
        let (_, report) = probe(&uri, line, 0);
        assert_eq!(report["steps"][0]["connected"], 10, "{mechanism}");
        let wrong = uri.replace("p%20w", "p%20x");
        let finished = Program::restorm(&["probe", "--uri", &wrong, "--duration", "1s"]).run();
        assert_ne!(finished.status, Some(0));
        assert!(!finished.stderr.contains("p%20x"), "{}", finished.stderr);
    }
}

#[test]
fn connections_that_are_lost_are_opened_again() {
    let mut server = Server::private(&[]);
    probe(server.uri(), "--seed-documents 1000 --connections 1 --duration 1s", 0);
    let uri = server.uri().to_owned();
    let line = "--connections 20 --duration 12s --rate-per-connection 20";
    let words: Vec<_> = line.split_whitespace().collect();
    let running = Program::restorm(&["probe", "--json", "--uri", &uri]).args(&words).start();
    std::thread::sleep(Duration::from_secs(3));
    server.kill();
    std::thread::sleep(Duration::from_secs(1));
    server.restart();
    let (_, report) = judged(running.finish(), 3);
    let step = &report["steps"][0];
    assert_eq!(step["lost_connections"], 20, "{step:#}");
    assert_eq!(step["reopened_connections"], 20, "{step:#}");
    assert!(!step["errors"].as_array().expect("errors").is_empty());
    // What was due while nobody answered has waited as long as that.
    let longest = step["latency"]["max_seconds"].as_f64().expect("a time");
    assert!(longest > 0.9, "{step:#}");
}
