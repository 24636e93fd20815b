//! The program's own comparison of a dump with a server, with which tests of faults end.

use crate::program::Program;
use serde_json::Value;
use std::path::Path;

/// Checks that `restorm verify` finds no difference between this dump and the server at this
/// connection string.
#[track_caller]
pub(crate) fn verified(uri: &str, dump: &Path) {
    verified_part(uri, dump, &[]);
}

/// The same of what these arguments choose.
#[track_caller]
pub(crate) fn verified_part(uri: &str, dump: &Path, arguments: &[&str]) {
    let (status, verification, told) = verify(uri, dump, arguments);
    assert_eq!((status, &verification["state"]), (Some(0), &"same".into()), "{told}");
}

/// What `restorm verify` finds to differ, which must be something: how, and the `_id`.
#[track_caller]
pub(crate) fn differing(uri: &str, dump: &Path) -> Vec<(String, String)> {
    let (status, verification, told) = verify(uri, dump, &[]);
    assert_eq!(status, Some(4), "{told}");
    let collections = verification["collections"].as_array().expect("a list");
    let samples = collections.iter().filter_map(|one| one["documents"]["samples"].as_array());
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    samples.flatten().map(|one| (text(&one["difference"]), text(&one["id"]))).collect()
}

fn verify(uri: &str, dump: &Path, arguments: &[&str]) -> (Option<i32>, Value, String) {
    let folder = tempfile::tempdir().expect("a folder for the report");
    let file = folder.path().join("verified.json");
    let finished = Program::restorm(&["verify", "--uri", uri, "--report"])
        .arg(&file)
        .arg(dump)
        .args(arguments)
        .run();
    let report = std::fs::read(file)
        .map_or(Value::Null, |text| serde_json::from_slice(&text).expect("the report is JSON"));
    (finished.status, report["verification"].clone(), finished.stderr)
}
