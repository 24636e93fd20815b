//! What is shown of a run: reports in their forms, and progress for people and for programs.

use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::Value;

use crate::program::{Finished, Program};

const DUMP: &str = "dumps/full_6.0";

fn of_clone(path: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn run<S: AsRef<std::ffi::OsStr>>(words: &[S]) -> Finished {
    Program::restorm(words).in_folder(of_clone("testdata")).run()
}

/// A restore into nothing that keeps no ledger beside the test data.
fn restore(dump: &str, more: &[&str]) -> Finished {
    run(&[&["restore", "--null", "--ledger", "none", dump], more].concat())
}

/// The lines of standard error, each of which must follow the schema.
fn events(finished: &Finished) -> Vec<Value> {
    let schema = std::fs::read_to_string(of_clone("docs/event.schema.json")).expect("a schema");
    let schema: Value = serde_json::from_str(&schema).expect("the schema is JSON");
    let validator = jsonschema::validator_for(&schema).expect("the schema compiles");
    let parsed = finished.stderr.lines().map(|line| {
        let value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        let errors: Vec<_> = validator.iter_errors(&value).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{errors:?}: {line}");
        value
    });
    parsed.collect()
}

fn kinds(events: &[Value]) -> Vec<&str> {
    events.iter().filter_map(|event| event["event"].as_str()).collect()
}

#[test]
fn one_run_writes_a_page_and_json() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str| folder.path().join(name).display().to_string();
    let (page, json, second) = (file("run.HTML"), file("run.json"), file("run"));
    let reports = ["--report", &page, "--report", &json, "--report", &second];
    let finished = restore(DUMP, &reports);
    assert_eq!(finished.status, Some(0), "{}", finished.stderr);
    let read = |file: &str| std::fs::read_to_string(file).expect("it is written");
    let report: Value = serde_json::from_str(&read(&json)).expect("JSON");
    assert_eq!(read(&json), read(&second), "every other ending is JSON");
    let page = read(&page);
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>"));
    assert_eq!(report["balance"]["inserted"], 4061);
    assert!(page.contains("<dd class=\"inserted\">4,061</dd>"));
    let collections = report["collections"].as_array().expect("collections");
    assert!(collections.len() > 5);
    for collection in collections {
        let name = collection["namespace"].as_str().expect("a name");
        let name = name.replace('\n', "\\n").replace('&', "&amp;").replace('"', "&quot;");
        assert!(page.contains(&format!("<code>{name}</code>")), "{name}");
    }
}

#[test]
fn a_report_that_cannot_be_written_is_found_out_before() {
    for name in ["no-such-folder/run.html", "no-such-folder/run.json"] {
        let finished = restore(DUMP, &["--report", name, "--report", "/dev/null"]);
        assert_eq!(finished.status, Some(2), "{}", finished.stderr);
        assert!(finished.stderr.contains("the report could not be written"), "{}", finished.stderr);
    }
}

#[test]
fn a_comparison_and_a_survey_have_no_page() {
    for line in [&["verify", DUMP][..], &["survey"]] {
        let more = ["--uri", "mongodb://127.0.0.1:1/", "--report", "run.html"];
        let finished = run(&[line, &more].concat());
        assert_eq!(finished.status, Some(2), "{}", finished.stderr);
        assert!(
            finished.stderr.contains("only the report of a restore or a probe"),
            "{}",
            finished.stderr
        );
    }
    assert!(!of_clone("testdata/run.html").exists());
}

#[test]
fn programs_are_told_what_happens_line_by_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("run.json");
    let report = file.to_str().expect("a plain path");
    let finished = restore(DUMP, &["--progress", "json", "-v", "--report", report]);
    assert_eq!(finished.status, Some(0), "{}", finished.stderr);
    assert_eq!(finished.stdout, "");
    let events = events(&finished);
    let kinds = kinds(&events);
    let report: Value =
        serde_json::from_slice(&std::fs::read(file).expect("it is written")).expect("JSON");
    let (collections, number) =
        (&report["collections"], |kind: &str| kinds.iter().filter(|one| **one == kind).count());
    let collections = collections.as_array().expect("a list");
    assert_eq!(number("planned"), 1);
    assert_eq!(number("collection_ended"), collections.len());
    assert_eq!(number("index_built") as u64, report["totals"]["indexes_built"]);
    assert!(number("collection_began") > 5 && number("progress") >= 1);
    assert_eq!(number("data_ended"), number("collection_began"));
    assert_eq!(kinds.last(), Some(&"ended"));
    let last = events.last().expect("a line");
    assert_eq!(last["balance"], report["balance"]);
    assert_eq!(last["exit_status"], 0);
    let progress = events.iter().rfind(|event| event["event"] == "progress").expect("progress");
    assert_eq!(progress["documents_inserted"], report["balance"]["inserted"]);
    assert_eq!(progress["fraction"], 1.0);
}

#[test]
fn what_fails_is_told_to_programs_as_well() {
    let finished = restore("broken/truncated_document", &["--progress=json"]);
    let events = events(&finished);
    assert_eq!(finished.status, Some(1));
    let failed = events.iter().find(|event| event["event"] == "collection_failed");
    let message = failed.expect("a failure")["message"].as_str().expect("a text");
    assert!(message.contains("at byte"), "{message}");
    let last = events.last().expect("a line");
    assert_eq!((&last["event"], &last["exit_status"]), (&"ended".into(), &1.into()));
}

#[test]
fn an_error_before_the_run_is_a_line_as_well() {
    for (words, status, message) in [
        (&["restore", "--null", "nowhere", "--progress", "json"][..], 1, "nowhere"),
        (&["restore", "--progress=json", "--no-such-option"], 2, "no-such-option"),
        (&["restore", "--progress", "json", "--workers", "x"], 2, "--workers"),
        (&["restore", "--progress", "json", "--batchSize=-1", "x"], 2, "negative"),
        (&["restore", "--progress", "json", "--quiet", "x"], 2, "--quiet"),
        (&["restore", "--null", DUMP, "--progress", "json", "--report", "no/x.html"], 2, "report"),
    ] {
        let finished = run(words);
        let events = events(&finished);
        assert_eq!(finished.status, Some(status), "{words:?}: {}", finished.stderr);
        let last = events.last().expect("a line");
        assert_eq!(last["event"], "error", "{words:?}");
        assert_eq!(last["exit_status"], status, "{words:?}");
        let said = format!("{} {}", last["message"], last["hint"]);
        assert!(said.contains(message), "{words:?}: {said}");
    }
}

#[test]
fn a_plan_alone_is_data_and_nothing_else() {
    let finished = restore(DUMP, &["--dry-run", "--progress", "json"]);
    assert_eq!(finished.status, Some(0), "{}", finished.stderr);
    assert!(finished.stdout.contains("orders"), "{}", finished.stdout);
    assert!(!kinds(&events(&finished)).contains(&"ended"));
}

#[test]
fn without_progress_there_is_the_summary_and_what_is_out_of_the_ordinary() {
    for form in ["none", "lines", "bars"] {
        let finished = restore("broken/truncated_document", &["--progress", form]);
        assert_eq!(finished.status, Some(1), "{form}: {}", finished.stderr);
        assert!(finished.stderr.contains("failed: "), "{form}: {}", finished.stderr);
        assert!(finished.stderr.contains("NOT COMPLETE"), "{form}: {}", finished.stderr);
        assert!(!finished.stderr.contains('\u{1b}'), "{form}: bars need a terminal");
    }
    let quiet = restore(DUMP, &["--quiet"]);
    assert_eq!(quiet.stderr, "");
}

#[test]
fn under_the_name_of_the_peer_progress_has_one_form() {
    let folder = tempfile::tempdir().expect("a folder");
    let link = folder.path().join("mongorestore");
    symlink(env!("CARGO_BIN_EXE_restorm"), &link).expect("a link");
    let link = link.to_str().expect("a plain path");
    for form in ["json", "none", "bars", "lines"] {
        let finished = Program::of(link, &["--progress", form, "nowhere"]).run();
        assert_eq!(finished.status, Some(1), "{}", finished.stderr);
        let said = "--progress is an option of `restorm restore`";
        assert!(finished.stderr.contains(said), "{}", finished.stderr);
    }
}
