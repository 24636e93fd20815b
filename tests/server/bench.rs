//! `restorm bench` against real servers, its own and one that runs.
//!
//! The binary of the tests is a debug build: what is looked at here is what was measured, not how
//! fast anything is.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use mongodb::bson::doc;
use serde_json::Value;
use tempfile::TempDir;

use crate::program::{Finished, Program};
use crate::support::Server;
use crate::support::dump::Dump;

const SCHEMA: &str = include_str!("../../docs/bench.schema.json");

/// A dump, and a folder for what comes of it.
struct Bench {
    dump: Dump,
    folder: TempDir,
}

impl Bench {
    fn new(collections: u32, documents: u32) -> Self {
        Self {
            dump: Dump::seeded(collections, documents),
            folder: tempfile::tempdir().expect("a folder"),
        }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn program(&self, words: &[&str]) -> Program {
        Program::restorm(&["bench"])
            .arg(self.dump.path())
            .args(&["--warm-up", "0", "--work"])
            .arg(self.file("work"))
            .arg("--samples")
            .arg(self.file("samples.jsonl"))
            .arg("--json")
            .arg(self.file("bench.json"))
            .args(words)
            .env("RESTORM_BENCH_DEBUG", "1")
    }

    /// Runs it with servers of its own.
    fn private(&self, words: &[&str]) -> Finished {
        self.program(&["--mongod", mongod()]).args(words).run()
    }

    /// What was written as JSON, which follows the schema.
    #[track_caller]
    fn compared(&self) -> Value {
        let text = std::fs::read_to_string(self.file("bench.json")).expect("written");
        let value: Value = serde_json::from_str(&text).expect("JSON");
        let schema: Value = serde_json::from_str(SCHEMA).expect("JSON");
        let validator = jsonschema::validator_for(&schema).expect("a schema");
        let errors: Vec<_> = validator.iter_errors(&value).map(|e| e.to_string()).collect();
        assert_eq!(errors, [""; 0]);
        value
    }

    /// The lines of samples so far.
    fn samples(&self) -> usize {
        let text = std::fs::read_to_string(self.file("samples.jsonl")).unwrap_or_default();
        text.lines().filter(|line| line.starts_with("{\"sample\"") && line.ends_with('}')).count()
    }

    /// Waits for a number of samples.
    fn wait_for_samples(&self, samples: usize) {
        let deadline = Instant::now() + Duration::from_secs(60);
        while self.samples() < samples {
            assert!(Instant::now() < deadline, "{samples} samples did not come");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// The processes that have a file in the folder on their command line.
    fn processes(&self) -> Vec<String> {
        let folder = self.folder.path().display().to_string();
        let listed = std::fs::read_dir("/proc").expect("Linux").flatten();
        let lines = listed.filter_map(|entry| {
            let line = std::fs::read(entry.path().join("cmdline")).ok()?;
            Some(String::from_utf8_lossy(&line).replace('\0', " "))
        });
        lines.filter(|line| line.contains(&folder)).collect()
    }
}

/// A mongod as the tests have it.
fn mongod() -> &'static str {
    static PATH: std::sync::OnceLock<String> = std::sync::OnceLock::new();
    PATH.get_or_init(|| {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/mongod.py");
        let found = Command::new("python3").arg(script).arg("path").output().expect("python3");
        String::from_utf8(found.stdout).expect("a path").trim().to_owned()
    })
}

#[test]
fn settings_are_compared_on_fresh_servers() {
    let bench = Bench::new(2, 1500);
    let html = bench.file("bench.html").display().to_string();
    let csv = bench.file("bench.csv").display().to_string();
    let words = [
        "--fresh",
        "--rounds",
        "2",
        "--vary",
        "workers=1,default",
        "--vary-server",
        "wiredTigerCacheSizeGB=0.3,0.5",
        "--html",
        &html,
        "--csv",
        &csv,
        "--",
        "--no-indexes",
    ];
    let finished = bench.private(&words);
    assert_eq!(finished.status, Some(0), "{}", finished.stderr);
    let compared = bench.compared();
    assert_eq!(compared["setup"]["server"], "fresh");
    assert_eq!(compared["setup"]["dump"]["documents"], 3000);
    let cells = compared["cells"].as_array().expect("cells");
    let labels: Vec<_> = cells.iter().map(|cell| cell["label"].as_str().unwrap()).collect();
    let expected = [
        "restorm workers=1 wiredTigerCacheSizeGB=0.3",
        "restorm workers=default wiredTigerCacheSizeGB=0.3",
        "restorm workers=1 wiredTigerCacheSizeGB=0.5",
        "restorm workers=default wiredTigerCacheSizeGB=0.5",
    ];
    assert_eq!(labels, expected);
    for cell in cells {
        assert_eq!((&cell["runs"], &cell["failed_runs"]), (&Value::from(2), &Value::from(0)));
        let median = |figure: &str| cell["figures"][figure]["median"].as_f64().expect(figure);
        assert!(median("client_cpu_seconds") > 0.0 && median("server_cpu_seconds") > 0.0);
        assert!(median("client_peak_bytes") > 5e6 && median("server_peak_bytes") > 2e7);
        assert!(median("disk_bytes") > 0.0 && median("folder_bytes") > median("disk_bytes"));
        assert!(median("compression_ratio") > 0.5);
    }
    let mut ranks: Vec<_> = cells.iter().map(|cell| cell["rank"].as_u64().unwrap()).collect();
    ranks.sort_unstable();
    assert_eq!(ranks, [1, 2, 3, 4]);
    let samples = compared["samples"].as_array().expect("samples");
    let most = |place: u64| {
        let of = samples.iter().find(|sample| sample["cell"] == place).expect("a sample");
        of["workers"]["most"].as_u64().expect("a number")
    };
    assert_eq!(most(0), 1, "the option reached the restore");
    assert_eq!(bench.samples(), 8);
    assert!(finished.stdout.contains("wiredTigerCacheSizeGB=0.5"), "{}", finished.stdout);
    assert_eq!(std::fs::read_to_string(csv).unwrap().lines().count(), 9);
    assert!(std::fs::read_to_string(html).unwrap().contains("<circle"));
    assert_eq!(bench.processes(), [""; 0]);
    assert_eq!(std::fs::read_dir(bench.file("work")).unwrap().count(), 0, "nothing is left");
}

#[test]
fn a_tool_that_loses_documents_is_marked_and_has_no_rank() {
    let bench = Bench::new(2, 300);
    let binary = env!("CARGO_BIN_EXE_restorm");
    let half =
        format!("half={binary} restore {{dump}} --uri {{uri}} --ns-exclude *.c00002 --ledger none");
    let whole = format!(
        "whole={binary} restore {{dump}} --host {{host}} --port {{port}} --ledger none --quiet"
    );
    let failing = "failing=sh -c 'echo no luck; exit 5' {uri} {dump}";
    let words = ["--fresh", "--rounds", "1", "--tool", &half, "--tool", &whole, "--tool", failing];
    let finished = bench.private(&words);
    assert_eq!(finished.status, Some(3), "{}", finished.stderr);
    let compared = bench.compared();
    let cell = |place: usize| &compared["cells"][place];
    assert_eq!(cell(1)["label"], "half");
    assert_eq!(cell(1)["documents_missing"], 300);
    assert_eq!((&cell(1)["rank"], &cell(3)["rank"]), (&Value::Null, &Value::Null));
    assert_eq!(cell(2)["documents_missing"], 0);
    assert!(cell(0)["rank"].is_u64() && cell(2)["rank"].is_u64());
    assert_eq!(cell(3)["error"], "no luck");
    assert!(finished.stdout.contains("half: lost 300 documents"), "{}", finished.stdout);
}

#[test]
fn samples_survive_a_kill_and_no_server_does() {
    let bench = Bench::new(1, 200);
    let words = ["--mongod", mongod(), "--fresh", "--rounds", "500"];
    let running = bench.program(&words).start();
    bench.wait_for_samples(2);
    running.signal("KILL");
    assert_eq!(running.finish().status, None);
    let kept = bench.samples();
    let deadline = Instant::now() + Duration::from_secs(20);
    while !bench.processes().is_empty() {
        assert!(Instant::now() < deadline, "left: {:?}", bench.processes());
        std::thread::sleep(Duration::from_millis(20));
    }
    let samples = bench.file("samples.jsonl").display().to_string();
    let json = bench.file("bench.json").display().to_string();
    let told = Program::restorm(&["bench", "--from-samples", &samples, "--json", &json]).run();
    assert_eq!(told.status, Some(0), "{}", told.stderr);
    assert_eq!(bench.compared()["cells"][0]["runs"], kept);
}

#[test]
fn an_interrupt_ends_the_run_and_tells_what_is_there() {
    let bench = Bench::new(1, 200);
    let running = bench.program(&["--mongod", mongod(), "--fresh", "--rounds", "500"]).start();
    bench.wait_for_samples(3);
    running.signal("INT");
    let finished = running.finish();
    assert_eq!(finished.status, Some(130), "{}", finished.stderr);
    assert!(finished.stderr.contains("stopping"), "{}", finished.stderr);
    let runs = bench.compared()["cells"][0]["runs"].as_u64().expect("a number");
    assert!((3..500).contains(&runs), "{runs}");
    assert_eq!(bench.processes(), [""; 0]);
}

#[test]
fn a_ceiling_is_measured_beside_each_restore() {
    let bench = Bench::new(3, 2000);
    let words = ["--fresh", "--rounds", "2", "--ceiling", "--", "--workers", "2"];
    let finished = bench.private(&words);
    assert_eq!(finished.status, Some(0), "{}", finished.stderr);
    let compared = bench.compared();
    assert_eq!(compared["cells"].as_array().map(Vec::len), Some(1));
    let ceiling = &compared["ceilings"][0];
    assert!(ceiling["share"]["median"].as_f64().is_some_and(|share| share > 0.0), "{ceiling}");
    let samples = compared["samples"].as_array().expect("samples");
    let of_ceiling: Vec<_> = samples.iter().filter(|sample| sample["cell"] == 1).collect();
    assert_eq!(of_ceiling.len(), 2);
    for sample in of_ceiling {
        assert_eq!(
            (&sample["documents_found"], &sample["workers"]["most"]),
            (&6000.into(), &2.into())
        );
        let (data, wall) = (&sample["data_seconds"], &sample["wall_seconds"]);
        assert!(data.as_f64() < wall.as_f64(), "only the sending counts: {sample}");
    }
    assert!(finished.stdout.contains("of the ceiling"), "{}", finished.stdout);
}

#[test]
fn a_ceiling_that_memory_does_not_hold_is_refused_before_any_run() {
    let bench = Bench::new(1, 2000);
    let finished = bench.private(&["--fresh", "--ceiling", "--ceiling-bytes", "10K"]);
    assert_eq!(finished.status, Some(2), "{}", finished.stderr);
    assert!(finished.stderr.contains("holds all documents in memory"), "{}", finished.stderr);
    assert_eq!(bench.samples(), 0);
}

#[test]
fn the_best_number_of_workers_is_searched() {
    let bench = Bench::new(1, 500);
    let finished = bench.private(&["--fresh", "--rounds", "1", "--search"]);
    assert_eq!(finished.status, Some(0), "{}", finished.stderr);
    let search = &bench.compared()["search"];
    let curve = search["curve"].as_array().expect("a curve");
    let numbers: Vec<_> = curve.iter().map(|point| point["workers"].as_u64().unwrap()).collect();
    assert!(numbers.starts_with(&[1, 2]) && numbers.is_sorted(), "{numbers:?}");
    let best = search["best"].as_u64().expect("a number");
    let rate = |point: &Value| point["rate"]["median"].as_f64().unwrap();
    let highest = curve.iter().map(rate).fold(0.0, f64::max);
    let of_best = curve.iter().find(|point| point["workers"] == best).expect("on the curve");
    assert!((rate(of_best) - highest).abs() < 1e-6);
    assert!(search["adaptive"]["median"].as_f64().is_some_and(|ratio| ratio > 0.0));
    assert!(finished.stdout.contains("best: "), "{}", finished.stdout);
}

#[test]
fn one_private_server_serves_all_rounds_until_intervals_are_narrow() {
    let bench = Bench::new(1, 300);
    let words = [
        "--rounds",
        "2",
        "--until-interval",
        "90%",
        "--rounds-max",
        "4",
        "--vary",
        "journal=on,off",
    ];
    let finished = bench.private(&words);
    assert_eq!(finished.status, Some(0), "{}", finished.stderr);
    let compared = bench.compared();
    assert_eq!(compared["setup"]["server"], "private");
    let runs = compared["cells"][0]["runs"].as_u64().expect("a number");
    assert!((2..=4).contains(&runs), "{runs}");
    let sample = &compared["samples"][1];
    assert_eq!((&sample["documents_found"], &sample["folder_bytes"]), (&300.into(), &Value::Null));
    assert_eq!(bench.processes(), [""; 0]);
}

#[test]
fn a_server_that_runs_keeps_what_is_its_own() {
    let server = Server::lease();
    let bench = Bench::new(1, 300);
    server.run("other", doc! { "insert": "kept", "documents": [{ "_id": 1 }] });
    server.run("seed", doc! { "insert": "c00001", "documents": [{ "_id": "of before" }] });
    let refused = bench.program(&["--uri", server.uri(), "--rounds", "1"]).run();
    assert_eq!(refused.status, Some(1), "{}", refused.stderr);
    assert!(refused.stderr.contains("seed.c00001") && refused.stderr.contains("--drop"));
    let there = server.run("seed", doc! { "count": "c00001" });
    assert_eq!(there.get_i32("n").ok(), Some(1), "nothing was touched");
    assert_eq!(bench.samples(), 0);
    let measured = bench.program(&["--uri", server.uri(), "--rounds", "2", "--drop"]).run();
    assert_eq!(measured.status, Some(0), "{}", measured.stderr);
    let compared = bench.compared();
    assert_eq!(compared["setup"]["server"], "running");
    assert_eq!(compared["cells"][0]["runs"], 2);
    assert_eq!(compared["samples"][0]["server_cpu_seconds"], Value::Null);
    let left = server.run("seed", doc! { "count": "c00001" });
    assert_eq!(left.get_i32("n").ok(), Some(0), "the last run is dropped as well");
    let kept = server.run("other", doc! { "count": "kept" });
    assert_eq!(kept.get_i32("n").ok(), Some(1));
}

#[test]
fn a_server_has_only_the_options_that_it_has() {
    let bench = Bench::new(1, 10);
    let finished = bench.private(&["--fresh", "--vary-server", "wiredTigerCashSizeGB=1,2"]);
    assert_eq!(finished.status, Some(2), "{}", finished.stderr);
    assert!(finished.stderr.contains("no option --wiredTigerCashSizeGB"), "{}", finished.stderr);
    let not_one = bench.program(&["--mongod", "/bin/true"]).run();
    assert_eq!(not_one.status, Some(2), "{}", not_one.stderr);
    assert!(not_one.stderr.contains("this is no mongod"), "{}", not_one.stderr);
}
