//! Dumps of every version into servers of every version: what a server can hold is there, and what
//! it cannot is a failure of that collection or index alone, with its reason.
//!
//! `make test-matrix` runs this on each version; the recorded states are those of 6.0.5.

use crate::golden::{expected, found};
use crate::support::dump::genuine;
use crate::support::{Restore, Restored, Server, is_before};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The longest name that a server before 4.4 takes, in bytes.
const NAME_BYTES_MAX_BEFORE_4_4: usize = 120;

/// Why the servers of this run cannot hold a collection, if they cannot.
fn obstacle(namespace: &str, state: &Value) -> Option<&'static str> {
    let has = |option: &str| state["options"].get(option).is_some();
    let is_buckets = namespace.contains("system.buckets.");
    if is_before([5, 0]) && (has("timeseries") || is_buckets) {
        Some("timeseries")
    } else if is_before([5, 3]) && has("clusteredIndex") && !is_buckets {
        Some("clusteredIndex")
    } else if is_before([4, 4]) && namespace.len() > NAME_BYTES_MAX_BEFORE_4_4 {
        Some("too long")
    } else {
        None
    }
}

/// The names and keys of indexes, without options that versions spell differently.
fn keys(state: &Value) -> BTreeSet<String> {
    let own = |index: &&Value| index["name"] != "_id_" && index["clustered"] != true;
    let indexes = state["indexes"].as_array().into_iter().flatten().filter(own);
    indexes.map(|index| format!("{} {}", index["name"], index["key"])).collect()
}

/// The names of indexes that the report says could not be built.
fn failed(restored: &Restored, namespace: &str) -> BTreeSet<String> {
    let indexes = restored.collection(namespace)["indexes"].as_array().unwrap();
    let failed = indexes.iter().filter(|index| index["is_built"] == false);
    failed
        .map(|index| {
            assert_ne!(index["error"].as_str().unwrap(), "", "{index}");
            index["name"].to_string()
        })
        .collect()
}

/// The names of indexes that the report says were left out, since the server refuses them.
fn left_out(restored: &Restored, namespace: &str) -> BTreeSet<String> {
    let skipped = restored.report["skipped"].as_array().unwrap();
    let names = skipped.iter().filter_map(|one| {
        let name = one["what"].as_str()?.strip_prefix("index `")?;
        name.strip_suffix(&format!("` of {namespace}")).map(|name| format!("\"{name}\""))
    });
    names.collect()
}

/// Restores a dump of a version and compares what came of it with what can come of it.
#[track_caller]
fn restores_what_can_be_held(dump: &str, series: [u32; 2]) {
    let server = Server::lease();
    let restored = Restore::new(server.uri(), &genuine(dump)).run();
    let found = found(&server);
    let (mut is_complete, mut all_indexes) = (true, true);
    for (namespace, wanted) in expected(dump).as_object().unwrap() {
        let logical = namespace.replace("system.buckets.", "");
        if let Some(why) = obstacle(namespace, wanted) {
            let skipped = restored.report["skipped"].as_array().unwrap();
            let told = skipped.iter().find(|one| one["what"] == logical).unwrap();
            assert_eq!(told["is_problem"], true, "{namespace}");
            let reason = told["reason"].as_str().unwrap();
            assert!(reason.contains(why), "{namespace}: {reason}");
            assert!(restored.stderr.contains(&logical), "{namespace}: {}", restored.stderr);
            assert_eq!(found.get(namespace), None, "{namespace}");
            is_complete = false;
            continue;
        }
        let there = &found[namespace];
        for field in ["type", "count", "md5_sum"] {
            assert_eq!(there[field], wanted[field], "{namespace}: {field}");
        }
        if namespace == &logical {
            let mut failed = failed(&restored, namespace);
            all_indexes &= failed.is_empty();
            let left_out = left_out(&restored, namespace);
            is_complete &= left_out.is_empty();
            failed.extend(left_out);
            let is_failed = |index: &&String| failed.iter().any(|name| index.starts_with(name));
            let wanted = keys(wanted);
            let missing: BTreeSet<_> = wanted.iter().filter(is_failed).cloned().collect();
            assert_eq!(missing.len(), failed.len(), "{namespace}: {failed:?}");
            let built: BTreeSet<_> = wanted.difference(&missing).cloned().collect();
            assert_eq!(keys(there), built, "{namespace}");
        }
    }
    assert!(is_before(series) || (is_complete && all_indexes), "{}", restored.stderr);
    let status = match (is_complete, all_indexes) {
        (false, _) => 1,
        (true, false) => 3,
        (true, true) => 0,
    };
    let restored = restored.ended(status);
    assert_eq!(restored.report["outcome"]["kind"], json!("finished"));
}

#[test]
fn a_dump_of_4_2() {
    restores_what_can_be_held("full_4.2", [4, 2]);
}

#[test]
fn a_dump_of_4_4() {
    restores_what_can_be_held("full_4.4", [4, 4]);
}

#[test]
fn a_dump_of_5_0() {
    restores_what_can_be_held("full_5.0", [5, 0]);
}

#[test]
fn a_dump_of_6_0() {
    restores_what_can_be_held("full_6.0", [6, 0]);
}
