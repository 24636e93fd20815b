//! What a run waits for is made true on purpose, and named.

use crate::support::dump::Dump;
use crate::support::proxy::Proxy;
use crate::support::raw;
use crate::support::{Restore, Restored, Server, lacks};
use mongodb::bson::doc;
use serde_json::Value;
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Small batches, so that answers say more than the processor of a busy machine.
const SMALL: [&str; 4] = ["--batch-documents", "100", "--workers", "4"];

/// The verdict of a restore that ended well, in the report and in the summary.
#[track_caller]
fn verdict(restored: Restored) -> (String, String) {
    let restored = restored.ended(0);
    let bound = &restored.report["bound_by"];
    let by = bound["by"].as_str().unwrap_or_else(|| panic!("no verdict:\n{}", restored.stderr));
    let evidence: Vec<_> =
        bound["evidence"].as_array().expect("evidence").iter().filter_map(Value::as_str).collect();
    let name = by.replace("client_cpu", "client CPU").replace("rate_limit", "rate limit");
    let line = format!("bound by   {name}: {}", evidence[0]);
    assert!(restored.stderr.contains(&line), "{line}\n{}", restored.stderr);
    (by.to_owned(), evidence.join(", "))
}

/// Slows a command of this server down.
fn slow(server: &Server, command: &str, milliseconds: i32) {
    let data = doc! {
        "failCommands": [command], "blockConnection": true, "blockTimeMS": milliseconds,
    };
    server.run(
        "admin",
        doc! { "configureFailPoint": "failCommand", "mode": "alwaysOn", "data": data },
    );
}

#[test]
fn a_server_that_has_much_to_do_is_the_limit() {
    /// As many as make the server work for a second or two.
    const INDEXES: i32 = 50;
    let server = Server::private(&[]);
    let specs = (0..INDEXES).map(|number| {
        let name = format!("x{number}");
        doc! { "key": { "_id": 1, &name: 1 }, "name": &name }
    });
    let specs: Vec<_> = specs.collect();
    for collection in ["c00001", "c00002"] {
        server.run("seed", doc! { "createIndexes": collection, "indexes": &specs });
    }
    let dump = Dump::seeded(2, 3000);
    let (by, evidence) = verdict(Restore::new(server.uri(), dump.path()).args(&SMALL).run());
    assert_eq!(by, "server", "{evidence}");
    assert!(evidence.contains("% of the cache dirty"), "{evidence}");
    assert!(evidence.contains("of it on the server, it used"), "{evidence}");
}

#[test]
fn a_long_way_to_the_server_is_the_limit() {
    let server = Server::private(&[]);
    let address = server.uri().trim_start_matches("mongodb://").to_owned();
    let proxy = Proxy::delaying(&address, u32::MAX, Duration::from_millis(200));
    let dump = Dump::seeded(2, 3000);
    let (by, evidence) = verdict(Restore::new(&proxy.uri(), dump.path()).args(&SMALL).run());
    assert_eq!(by, "network", "{evidence}");
    assert!(evidence.contains("of it on the server"), "{evidence}");
}

#[test]
fn a_disk_that_is_slow_to_flush_is_the_limit() {
    let Some(server) = Server::with_slow_disk() else { return };
    // Creating them flushes other files than the journal, which may take longer than all answers.
    for collection in ["c00001", "c00002"] {
        server.run("seed", doc! { "create": collection });
    }
    let dump = Dump::seeded(2, 3000);
    let (by, evidence) = verdict(Restore::new(server.uri(), dump.path()).args(&SMALL).run());
    assert_eq!(by, "journal", "{evidence}");
    assert!(evidence.contains("the journal was being written"), "{evidence}");
}

#[test]
fn indexes_that_take_longer_than_documents_are_the_limit() {
    if lacks("fail point that blocks", [4, 4]) {
        return;
    }
    let server = Server::private(&["--setParameter", "enableTestCommands=1"]);
    slow(&server, "createIndexes", 4000);
    let index = serde_json::json!({ "v": 2, "key": { "i": 1 }, "name": "i_1" });
    let metadata = serde_json::json!({ "options": {}, "indexes": [index] });
    let dump = Dump::seeded(1, 2000).described("seed", "c00001", &metadata);
    let (by, evidence) = verdict(Restore::new(server.uri(), dump.path()).run());
    assert_eq!(by, "indexes", "{evidence}");
}

#[test]
fn a_pipe_that_is_slow_is_the_limit() {
    let server = Server::private(&[]);
    let dump = Dump::seeded(1, 4000);
    let content = std::fs::read(dump.file("seed/c00001.bson")).expect("read");
    let folder = tempfile::tempdir().expect("a folder");
    let report = folder.path().join("report.json");
    let mut running = Command::new(env!("CARGO_BIN_EXE_restorm"))
        .args([
            "restore",
            "-",
            "--db",
            "seed",
            "--collection",
            "c",
            "--uri",
            server.uri(),
            "--report",
        ])
        .arg(&report)
        .stdin(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    let mut pipe = running.stdin.take().expect("a pipe");
    for part in content.chunks(content.len() / 20) {
        pipe.write_all(part).expect("it reads");
        std::thread::sleep(Duration::from_millis(100));
    }
    drop(pipe);
    assert!(running.wait().expect("it ends").success());
    let report: Value =
        serde_json::from_slice(&std::fs::read(report).expect("a report")).expect("JSON");
    assert_eq!(report["bound_by"]["by"], "reading", "{}", report["bound_by"]);
}

#[test]
fn a_user_who_may_not_ask_is_told_which_role_tells_more() {
    if lacks("fail point that blocks", [4, 4]) {
        return;
    }
    let server = Server::private(&["--auth", "--setParameter", "enableTestCommands=1"]);
    let uri = server.user("mover", &[doc! { "role": "readWriteAnyDatabase", "db": "admin" }]);
    let dump = Dump::seeded(1, 3000);
    slow(&server, "insert", 50);
    let (by, evidence) = verdict(Restore::new(&uri, dump.path()).args(&SMALL).run());
    assert_eq!(by, "server", "{evidence}");
    assert!(evidence.contains("role clusterMonitor"), "{evidence}");
}

#[test]
fn index_builds_tell_how_far_they_are() {
    if lacks("fail point in the middle of an index build", [4, 4]) {
        return;
    }
    let server = Server::private(&["--setParameter", "enableTestCommands=1"]);
    let point = |mode: &str| {
        let point = "hangAfterIndexBuildDumpsInsertsFromBulk";
        server.run("admin", doc! { "configureFailPoint": point, "mode": mode });
    };
    point("alwaysOn");
    let document = |number| raw::document(&[raw::int("_id", number), raw::int("n", number)]);
    let documents = (0..4000).map(document);
    let documents: Vec<_> = documents.collect();
    let index = serde_json::json!({ "v": 2, "key": { "n": 1 }, "name": "n_1" });
    let metadata = serde_json::json!({ "options": {}, "indexes": [index] });
    let dump = Dump::new().with("shop", "c", &documents).described("shop", "c", &metadata);
    let running = Restore::new(server.uri(), dump.path()).start();
    std::thread::sleep(Duration::from_secs(9));
    point("off");
    let restored = running.finish().ended(0);
    let told = |line: &&str| line.contains("shop.c builds n_1 (") && line.contains(" 75 %, ETA ");
    assert!(restored.stderr.lines().any(|line| told(&line)), "{}", restored.stderr);
}
