//! How much is sent at once: found out, or limited.

use crate::program::Program;
use crate::support::dump::Dump;
use crate::support::{ReplicaSet, Restore, Restored, Server, connect, runtime};
use mongodb::bson::doc;
use serde_json::Value;
use std::time::Duration;

const DOCUMENTS: u32 = 30_000;

/// Restores documents with a limit that lets so many of them pass in a second; checks that all
/// arrive at that rate, over four seconds in the middle of the run.
fn arrives_at(per_second: f64, limit: impl Fn(u64) -> String) {
    let server = Server::lease();
    let dump = Dump::seeded(1, DOCUMENTS);
    let bytes = std::fs::metadata(dump.file("seed/c00001.bson")).unwrap().len();
    let limit = limit(bytes);
    let arguments = ["--rate-limit", &limit];
    let restored = Restore::new(server.uri(), dump.path()).args(&arguments).run().ended(0);
    let documents = u64::from(DOCUMENTS);
    assert_eq!(restored.balance(), [documents, documents, 0, 0, 0]);
    let points = restored.report["timeline"]["points"].as_array().unwrap();
    let documents = |point: &Value| point["documents"].as_f64().unwrap();
    let rate = points[1..5].iter().map(documents).sum::<f64>() / 4.0;
    let share = rate / per_second;
    assert!((0.9..1.1).contains(&share), "{rate} a second with a limit of {limit}");
    assert_eq!(restored.report["bound_by"]["by"], "rate_limit", "{}", restored.stderr);
    let options = restored.report["options"].as_array().unwrap();
    assert!(options.iter().any(|option| option["name"] == "rate-limit"), "{options:?}");
}

#[test]
fn a_limit_in_documents_a_second_is_kept() {
    arrives_at(5000.0, |_| "5000docs".to_owned());
}

#[test]
fn a_limit_in_bytes_a_second_is_kept() {
    arrives_at(5000.0, |bytes| format!("{}B/s", bytes / 6));
}

#[test]
fn an_import_keeps_a_limit_as_well() {
    let server = Server::lease();
    let lines: Vec<_> = (0..20_000).map(|id| format!("{{\"_id\":{id}}}\n")).collect();
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("report.json");
    let finished = Program::restorm(&["import", "--uri", server.uri(), "-d", "shop", "-c", "c"])
        .args(&["--rate-limit", "5000docs", "--report"])
        .arg(&report)
        .input(lines.concat())
        .run();
    assert_eq!(finished.status, Some(0), "{}", finished.stderr);
    let report: Value = serde_json::from_slice(&std::fs::read(report).unwrap()).unwrap();
    assert_eq!(report["balance"]["inserted"], 20_000);
    assert_eq!(report["bound_by"]["by"], "rate_limit", "{}", finished.stderr);
    let seconds = report["times"]["data_seconds"].as_f64().unwrap();
    assert!((3.0..10.0).contains(&seconds), "{seconds} s for 20 000 documents");
}

fn decisions(restored: &Restored) -> Vec<(u64, String)> {
    let of = |decision: &Value| {
        let reason = decision["reason"].as_str().unwrap().to_owned();
        (decision["workers"].as_u64().unwrap(), reason)
    };
    restored.report["workers"]["decisions"].as_array().unwrap().iter().map(of).collect()
}

#[test]
fn the_number_of_workers_is_found_out_and_reported() {
    let server = Server::lease();
    let dump = Dump::seeded(1, 200_000);
    let restored = Restore::new(server.uri(), dump.path()).run().ended(0);
    assert_eq!(restored.balance(), [200_000, 200_000, 0, 0, 0]);
    let workers = &restored.report["workers"];
    assert_eq!((&workers["fixed"], &workers["max"]), (&Value::Null, &32.into()));
    let decisions = decisions(&restored);
    assert_eq!(decisions[0], (2, "the beginning".to_owned()));
    assert_eq!(workers["last"], decisions.last().unwrap().0);
    assert!(restored.stderr.contains("workers    adaptive"), "{}", restored.stderr);
}

#[test]
fn a_number_of_workers_that_is_said_stays() {
    let server = Server::lease();
    let dump = Dump::seeded(1, 10_000);
    let arguments = ["--workers", "3"];
    let restored = Restore::new(server.uri(), dump.path()).args(&arguments).run().ended(0);
    let workers = &restored.report["workers"];
    for name in ["fixed", "max", "fewest", "most", "last"] {
        assert_eq!(workers[name], 3, "{name}");
    }
    assert_eq!(decisions(&restored), []);
}

#[test]
fn secondaries_that_lag_are_waited_for() {
    let set = ReplicaSet::with(3, &["--setParameter", "enableTestCommands=1"]);
    let primary = set.primary();
    let secondaries: Vec<_> =
        set.addresses().into_iter().filter(|address| *address != primary).collect();
    let apply = |mode: &str| {
        for address in &secondaries {
            let client = connect(&format!("mongodb://{address}/?directConnection=true"));
            let command = doc! { "configureFailPoint": "rsSyncApplyStop", "mode": mode };
            let ask = async { client.database("admin").run_command(command).await };
            runtime().block_on(ask).expect("test commands are on");
        }
    };
    // There is no majority from here on, and a primary tells of one only if it ever had it: a
    // server before 5.0 does not wait for it unless it is told to.
    let create = doc! { "create": "c00001", "writeConcern": { "w": "majority" } };
    let create = async { set.client().database("seed").run_command(create).await };
    runtime().block_on(create).expect("there is a majority");
    apply("alwaysOn");
    let dump = Dump::seeded(1, 60_000);
    let arguments = ["--write-concern", "1", "--max-lag", "1s", "--workers", "4"];
    let running = Restore::new(&set.uri(), dump.path())
        .args(&arguments)
        .args(&["--rate-limit", "5000docs"])
        .start();
    std::thread::sleep(Duration::from_secs(8));
    apply("off");
    let restored = running.finish().ended(0);
    assert_eq!(restored.balance(), [60_000, 60_000, 0, 0, 0]);
    let decisions = decisions(&restored);
    let (numbers, reasons): (Vec<_>, Vec<_>) = decisions.into_iter().unzip();
    assert!(numbers.starts_with(&[4, 2, 1]), "{numbers:?} {reasons:?}\n{}", restored.stderr);
    assert!(reasons[1].starts_with("secondaries were"), "{reasons:?}");
    assert_eq!(restored.report["workers"]["fixed"], 4);
}
