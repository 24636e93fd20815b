//! `restorm bench` as far as no server is needed: what is refused, and samples told again.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::program::{Finished, Program};

/// Lets a debug build measure: these tests are about no figure.
const DEBUG_VARIABLE: &str = "RESTORM_BENCH_DEBUG";

fn of_clone(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn bench(words: &[&str]) -> Finished {
    Program::restorm(&["bench"]).args(words).env(DEBUG_VARIABLE, "1").run()
}

/// Samples of two settings, their ceilings, and a tool that loads nothing.
fn kept() -> String {
    of_clone("testdata/bench/samples.jsonl").display().to_string()
}

fn errors(value: &Value) -> Vec<String> {
    let text = std::fs::read_to_string(of_clone("docs/bench.schema.json")).expect("a schema");
    let schema: Value = serde_json::from_str(&text).expect("the schema is JSON");
    jsonschema::draft202012::meta::validate(&schema).expect("the schema is a schema");
    let validator = jsonschema::validator_for(&schema).expect("the schema compiles");
    validator.iter_errors(value).map(|error| error.to_string()).collect()
}

#[test]
fn a_debug_build_is_refused() {
    let finished = Program::restorm(&["bench", "dump"]).run();
    if cfg!(debug_assertions) {
        assert_eq!(finished.status, Some(2));
        assert!(finished.stderr.contains("debug build"), "{}", finished.stderr);
    } else {
        assert!(!finished.stderr.contains("debug build"), "{}", finished.stderr);
    }
}

#[test]
fn what_cannot_be_varied_is_named_with_what_may_be_meant() {
    for (words, expected) in [
        (&["d", "--vary", "wrokers=1,2"][..], "did you mean workers"),
        (&["d", "--vary", "workers=1,many"], "workers=many"),
        (&["d", "--vary", "workers"], "it has no values"),
        (&["d", "--tool", "load {uri}"], "where the dump goes"),
        (&["d", "--fresh"], "--mongod"),
        (&["d", "--", "--no-such-option"], "--no-such-option"),
        (&["--from-samples", "no/such/file"], "cannot be read"),
        (&["d", "--html", "no/such/folder/b.html"], "could not be written"),
        (&["d", "--search", "--mongod", "m", "--fresh", "--vary-server", "x=1"], "cannot be used"),
        (&["d", "--mongod", "m", "--tool", "no-such-program {uri} {dump}"], "no-such-program"),
    ] {
        let finished = bench(words);
        assert_eq!(finished.status, Some(2), "{words:?}: {}", finished.stderr);
        assert!(finished.stderr.contains(expected), "{words:?}: {}", finished.stderr);
    }
}

#[test]
fn a_dump_that_cannot_be_restored_is_refused_before_any_server_is_asked() {
    let folder = tempfile::tempdir().expect("a folder");
    let samples = folder.path().join("s.jsonl").display().to_string();
    let none = folder.path().join("none").display().to_string();
    let finished = bench(&[&none, "--mongod", "/no/such/mongod", "--samples", &samples]);
    assert_eq!(finished.status, Some(1), "{}", finished.stderr);
    assert!(finished.stderr.contains("not even into nothing"), "{}", finished.stderr);
    assert!(!Path::new(&samples).exists());
}

#[test]
fn samples_are_told_again_in_every_form() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str| folder.path().join(name).display().to_string();
    let (json, csv, html) = (file("a.json"), file("a.csv"), file("a.html"));
    let words = ["--from-samples", &kept(), "--json", &json, "--csv", &csv, "--html", &html];
    // Without the variable: nothing is measured, so that a debug build will do.
    let finished = Program::restorm(&["bench"]).args(&words).run();
    // A tool lost documents.
    assert_eq!(finished.status, Some(3), "{}", finished.stderr);
    let table = &finished.stdout;
    assert!(table.contains("restorm workers=default     2     1  "), "{table}");
    assert!(table.contains("nop: lost 15000 documents; it has no rank"), "{table}");
    assert!(table.contains("%] of the ceiling"), "{table}");
    let read = |path: &str| std::fs::read_to_string(path).expect("written");
    let value: Value = serde_json::from_str(&read(&json)).expect("JSON");
    assert_eq!(errors(&value), [""; 0]);
    assert_eq!(value["samples"].as_array().map(Vec::len), Some(15));
    assert_eq!(value["cells"][2]["rank"], Value::Null);
    assert_eq!(read(&csv).lines().count(), 16);
    assert!(read(&html).starts_with("<!DOCTYPE html>"));
    // The same samples say the same.
    assert_eq!(Program::restorm(&["bench"]).args(&words).run().stdout, *table);
}

#[test]
fn samples_of_a_run_that_was_cut_off_are_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("cut.jsonl");
    let whole = std::fs::read_to_string(kept()).expect("read");
    // The last line is of a run that had not been written whole.
    std::fs::write(&path, &whole[..whole.len() - 40]).expect("written");
    let path = path.display().to_string();
    let json = folder.path().join("cut.json").display().to_string();
    let finished = bench(&["--from-samples", &path, "--json", &json]);
    assert_eq!(finished.status, Some(3), "{}", finished.stderr);
    let text = std::fs::read_to_string(json).expect("written");
    let value: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(value["samples"].as_array().map(Vec::len), Some(14));
}

#[test]
fn what_is_held_becomes_the_program() {
    let parent = std::process::id().to_string();
    let words = ["hold", &parent, "--", "sh", "-c", "echo $0 $$; exit 7", "x"];
    let held = Program::restorm(&words).start();
    let pid = held.pid();
    let finished = held.finish();
    assert_eq!(finished.status, Some(7));
    assert_eq!(finished.stdout, format!("x {pid}\n"));
    // Its parent has gone in the meantime.
    let orphan = Program::restorm(&["hold", "1", "--", "echo", "x"]).run();
    assert_eq!((orphan.status, orphan.stdout.as_str()), (Some(1), ""));
}
