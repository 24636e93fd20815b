//! Made-up documents that go straight into a server.

use std::path::Path;

use mongodb::bson::{Document, doc};
use serde_json::Value;

use crate::program::{Finished, Program};
use crate::support::Server;

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
