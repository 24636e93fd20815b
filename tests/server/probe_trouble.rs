//! Probes of servers that fail in the middle, and probes that are ended in the middle.

use std::time::{Duration, Instant};

use mongodb::bson::{Document, doc};
use serde_json::Value;

use crate::probe::{judged, probe};
use crate::program::{Finished, Program, Running};
use crate::support::{ReplicaSet, Server, runtime};

/// How soon a probe ends that is told to: the wait for answers, and what a machine with other work
/// takes.
const SOON: Duration = Duration::from_secs(5);

fn start(uri: &str, line: &str) -> Running {
    let program = Program::restorm(&["probe", "--json", "--uri", uri]);
    program.args(&line.split_whitespace().collect::<Vec<_>>()).start()
}

fn wait(seconds: u64) {
    std::thread::sleep(Duration::from_secs(seconds));
}

fn count(step: &Value, name: &str) -> u64 {
    step[name].as_u64().expect("a count")
}

fn kinds(step: &Value) -> Vec<&str> {
    let errors = step["errors"].as_array().expect("errors");
    errors.iter().filter_map(|error| error["kind"].as_str()).collect()
}

/// Ends a probe as Ctrl-C does, soon.
fn interrupted(running: Running) -> Finished {
    let asked = Instant::now();
    running.signal("INT");
    let finished = running.finish();
    assert!(asked.elapsed() < SOON, "{:?}\n{}", asked.elapsed(), finished.stderr);
    assert_eq!(finished.status, Some(130), "{}", finished.stderr);
    finished
}

/// Sends the server itself a signal.
fn signal(server: &mut Server, name: &str) {
    let kill = format!("kill -{name} {}", server.mongod().pid());
    let status = std::process::Command::new("sh").args(["-c", &kill]).status();
    assert!(status.expect("sh runs").success());
}

#[test]
fn a_primary_that_steps_down_is_followed_by_another() {
    let set = ReplicaSet::of(3);
    probe(&set.uri(), "--seed-documents 1000 --connections 1 --duration 1s", 0);
    let line = "--connections 20 --rate-per-connection 20 --update 0.5 --duration 15s";
    let running = start(&set.uri(), line);
    wait(4);
    let former = set.primary();
    set.step_down();
    set.wait_for_another_primary(&former);
    let (_, report) = judged(running.finish(), 3);
    let step = &report["steps"][0];
    assert_eq!(report["outcome"], "finished");
    assert!(count(step, "lost_connections") >= 20, "{step:#}");
    assert_eq!(step["lost_connections"], step["reopened_connections"], "{step:#}");
    // A write that the primary refused may not be sent twice.
    assert!(count(step, "failed") > 0 && !kinds(step).is_empty(), "{step:#}");
    assert_eq!((count(step, "unsent"), count(step, "unanswered")), (0, 0), "it caught up");
    let sum = vec![doc! { "$group": { "_id": null, "sum": { "$sum": "$probed" } } }];
    let points = set.client().database("seed").collection::<Document>("c00001");
    let stored = runtime().block_on(async {
        let mut cursor = points.aggregate(sum).await.expect("summed");
        assert!(cursor.advance().await.expect("an answer"));
        cursor.deserialize_current().expect("a document")
    });
    let stored = u64::try_from(stored.get_i32("sum").expect("a number")).expect("positive");
    let done = step["done"]["updates"].as_u64().expect("a count");
    let may_be = done + count(step, "answered_after_end") + count(step, "failed");
    assert!((done..=may_be).contains(&stored), "{stored} of {done} to {may_be}");
}

#[test]
fn a_read_is_sent_once_more_and_not_twice() {
    let server = Server::private(&["--setParameter", "enableTestCommands=1"]);
    probe(server.uri(), "--seed-documents 1000 --connections 1 --duration 1s", 0);
    let breaking = |times: i32| {
        let data = doc! {
            "failCommands": ["find"], "closeConnection": true, "namespace": "seed.c00001",
        };
        let mode = doc! { "times": times };
        server
            .run("admin", doc! { "configureFailPoint": "failCommand", "mode": mode, "data": data });
    };
    let during = |times: i32| {
        let running = start(server.uri(), "--connections 4 --rate-per-connection 50 --duration 5s");
        wait(2);
        breaking(times);
        judged(running.finish(), 3).1["steps"][0].clone()
    };
    let step = during(1);
    assert_eq!((count(&step, "lost_connections"), count(&step, "asked_again")), (1, 1));
    assert_eq!(count(&step, "failed"), 0, "{step:#}");
    let step = during(20);
    assert_eq!(kinds(&step), ["connection lost"]);
    assert_eq!(count(&step, "lost_connections"), 20, "{step:#}");
    // A request that breaks two connections has failed.
    assert_eq!(count(&step, "asked_again") + count(&step, "failed"), 20, "{step:#}");
    assert!(count(&step, "failed") > 0, "{step:#}");
}

#[test]
fn a_server_that_falls_silent_leaves_requests_without_an_answer() {
    let mut server = Server::private(&[]);
    probe(server.uri(), "--seed-documents 1000 --connections 1 --duration 1s", 0);
    let running = start(server.uri(), "--connections 10 --rate-per-connection 10 --duration 6s");
    wait(3);
    signal(&mut server, "STOP");
    let began = Instant::now();
    let finished = running.finish();
    signal(&mut server, "CONT");
    assert!(began.elapsed() < Duration::from_secs(6) + SOON, "it waited {:?}", began.elapsed());
    let (_, report) = judged(finished, 3);
    let step = &report["steps"][0];
    assert_eq!((count(step, "unanswered"), count(step, "failed")), (10, 0), "{step:#}");
    assert!(count(step, "unsent") > 0, "{step:#}");
    let waited = step["latency"]["max_seconds"].as_f64().expect("a time");
    assert!(waited > 2.0, "a request without an answer counts with its time: {step:#}");
}

#[test]
fn a_probe_that_is_interrupted_tells_what_it_has() {
    let mut server = Server::private(&[]);
    probe(server.uri(), "--seed-documents 1000 --connections 1 --duration 1s", 0);
    let running = start(server.uri(), "--ramp 5..20 --steps 3 --duration 9s");
    wait(5);
    let (_, report) = judged(interrupted(running), 130);
    assert_eq!(report["outcome"], "interrupted");
    let steps = report["steps"].as_array().expect("steps");
    assert_eq!(steps.len(), 2, "{report:#}");
    let held = |step: &Value| step["held_seconds"].as_f64().expect("a time");
    assert!(held(&steps[1]) < held(&steps[0]), "the second one was cut: {report:#}");
    // Not even a server that is silent keeps it.
    let running = start(server.uri(), "--connections 10 --duration 60s");
    wait(3);
    signal(&mut server, "STOP");
    wait(1);
    let finished = interrupted(running);
    let (_, report) = judged(finished, 130);
    assert_eq!(count(&report["steps"][0], "unanswered"), 10, "{report:#}");
    let running = start(server.uri(), "--connections 10 --duration 60s");
    wait(1);
    let finished = interrupted(running);
    signal(&mut server, "CONT");
    assert!(finished.stderr.contains("the end was asked for"), "{}", finished.stderr);
}

#[test]
fn connections_that_are_being_set_up_do_not_keep_a_probe() {
    let server = Server::lease();
    let line = "--seed-documents 100 --connections 3000 --connect-rate 50 --duration 5s";
    let running = start(server.uri(), line);
    wait(3);
    let (_, report) = judged(interrupted(running), 130);
    assert_eq!(report["steps"].as_array().map(Vec::len), Some(0), "{report:#}");
}

#[test]
fn options_that_a_probe_does_not_heed_are_told() {
    let server = Server::lease();
    let line = "--seed-documents 100 --connections 1 --duration 1s --compressors zstd";
    let (finished, _) = probe(server.uri(), line, 0);
    let says = "warning: `compressors` has no effect on a probe";
    assert!(finished.stderr.contains(says), "{}", finished.stderr);
    let (finished, _) = probe(server.uri(), "--connections 1 --duration 1s", 0);
    assert_eq!(finished.stderr, "");
}

#[test]
fn a_host_of_no_replica_set_is_not_taken_for_one() {
    let server = Server::private(&[]);
    let uri = format!("{}/?replicaSet=rs9", server.uri());
    let finished = Program::restorm(&["probe", "--duration", "1s", "--uri", &uri]).run();
    assert_eq!(finished.status, Some(1), "{}", finished.stderr);
    assert!(finished.stderr.contains("of the replica set `rs9`"), "{}", finished.stderr);
}
