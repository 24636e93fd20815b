//! A server that fails for a while: nothing is lost and nothing is there twice.

use crate::golden::{expected, found};
use crate::support::dump::{Dump, documents, genuine};
use crate::support::proxy::Proxy;
use crate::support::raw::{document, int, string, zero};
use crate::support::{
    Restore, Restored, Server, differences, differing, lacks, md5_sum, state_of, stored, verified,
    verified_part,
};
use mongodb::bson::{Document, doc};
use std::time::{Duration, Instant};

/// A server that can be told to fail.
fn obedient() -> Server {
    Server::private(&["--setParameter", "enableTestCommands=1"])
}

/// Lets the next inserts fail in this way, so many of them.
fn fail_inserts(server: &Server, times: i32, how: Document) {
    let mut data = doc! { "failCommands": ["insert"] };
    data.extend(how);
    let mode = doc! { "times": times };
    server.run("admin", doc! { "configureFailPoint": "failCommand", "mode": mode, "data": data });
}

/// Restores the orders in batches of 100 documents, while the server fails as it was told, and
/// checks that all of them are there.
#[track_caller]
fn restores_all(server: &Server, uri: &str) -> Restored {
    let dump = genuine("orders_stdout.bson");
    let arguments =
        ["--db", "shop", "--collection", "orders", "--batch-documents", "100", "--workers", "4"];
    let restored = Restore::new(uri, &dump).args(&arguments).run().ended(0);
    assert_eq!(differences(&expected("orders_stdout"), &found(server)), [""; 0]);
    let [read, inserted, already_there, ..] = restored.balance();
    assert_eq!((read, inserted + already_there), (3000, 3000));
    orders_are_verified(server);
    restored
}

#[track_caller]
fn orders_are_verified(server: &Server) {
    let orders = ["--db", "shop", "--collection", "orders"];
    verified_part(server.uri(), &genuine("orders_stdout.bson"), &orders);
}

#[test]
fn connections_that_break_before_the_insert() {
    let server = obedient();
    fail_inserts(&server, 3, doc! { "closeConnection": true });
    let restored = restores_all(&server, server.uri());
    assert!(restored.retries() >= 1, "{}", restored.stderr);
    assert!(restored.stderr.contains("retr"), "{}", restored.stderr);
}

#[test]
fn answers_of_a_server_that_steps_down_or_shuts_down() {
    let server = obedient();
    for code in [10107, 189, 91, 11600] {
        fail_inserts(&server, 3, doc! { "errorCode": code });
        // A server that really changes tells monitors so; this one is asked again.
        let uri = format!("{}/?serverMonitoringMode=poll", server.uri());
        let restored = restores_all(&server, &uri);
        assert!(restored.retries() >= 3, "{code}: {}", restored.stderr);
        assert_eq!(restored.balance(), [3000, 3000, 0, 0, 0]);
        server.run("shop", doc! { "dropDatabase": 1 });
    }
}

#[test]
fn writes_that_are_done_but_not_confirmed() {
    let server = obedient();
    for code in [91, 64] {
        let concern = doc! { "code": code, "errmsg": "not confirmed" };
        fail_inserts(&server, 2, doc! { "writeConcernError": concern });
        let restored = restores_all(&server, server.uri());
        assert_eq!(restored.retries(), 2, "{code}: {}", restored.stderr);
        let [_, _, already_there, ..] = restored.balance();
        assert!([100, 200].contains(&already_there), "{code}: {already_there}");
        server.run("shop", doc! { "dropDatabase": 1 });
    }
}

#[test]
fn an_error_that_does_not_pass_fails_the_collection_and_the_others_go_on() {
    let server = obedient();
    let data = doc! { "failCommands": ["insert"], "errorCode": 8000, "namespace": "shop.orders" };
    let fail = doc! { "configureFailPoint": "failCommand", "mode": "alwaysOn", "data": data };
    server.run("admin", fail);
    let dump = Dump::copy_of("full_6.0");
    let shop = dump.file("shop");
    let restored = Restore::new(server.uri(), &shop).run().ended(1);
    assert_eq!(restored.collection("shop.orders")["state"], "failed");
    assert!(restored.stderr.contains("8000"), "{}", restored.stderr);
    let [read, inserted, _, _, unsent] = restored.balance_of("shop.orders");
    assert_eq!((inserted, read), (0, unsent));
    let state = found(&server);
    for namespace in ["shop.customers", "shop.docs.files", "shop.docs.chunks"] {
        assert_eq!(state[namespace], expected("full_6.0")[namespace]);
    }
    assert_eq!(state["shop.orders"]["count"], 0);
    server.run("admin", doc! { "configureFailPoint": "failCommand", "mode": "off" });
    Restore::new(server.uri(), &shop).args(&["--resume"]).run().ended(0);
    verified(server.uri(), &shop);
}

#[test]
fn answers_that_are_lost_after_the_insert() {
    let mut server = Server::private(&[]);
    let proxy = Proxy::losing(server.mongod().address(), 3);
    let restored = restores_all(&server, &proxy.uri());
    assert_eq!(proxy.left(), 0);
    let [_, _, already_there, ..] = restored.balance();
    assert!([100, 200, 300].contains(&already_there), "{already_there}");
}

/// The host of the server is gone without a word: its connections stay open and nothing comes.
#[test]
fn answers_that_never_come() {
    let mut server = Server::private(&[]);
    let proxy = Proxy::withholding(server.mongod().address(), 5);
    let dump = genuine("orders_stdout.bson");
    let arguments = [
        "--db",
        "shop",
        "--collection",
        "orders",
        "--batch-documents",
        "100",
        "--workers",
        "4",
        "--answer-within",
        "1s",
    ];
    let restored = Restore::new(&proxy.uri(), &dump).args(&arguments).run().ended(0);
    assert_eq!(proxy.left(), 0);
    assert!(restored.retries() >= 5, "{}", restored.stderr);
    assert!(restored.stderr.contains("did not answer within 1 s"), "{}", restored.stderr);
    assert_eq!(differences(&expected("orders_stdout"), &found(&server)), [""; 0]);
    orders_are_verified(&server);
}

#[test]
fn answers_that_come_late() {
    let mut server = Server::private(&[]);
    let delay = Duration::from_millis(700);
    let proxy = Proxy::delaying(server.mongod().address(), 5, delay);
    let restored = restores_all(&server, &proxy.uri());
    assert_eq!(proxy.left(), 0);
    assert_eq!((restored.retries(), restored.balance()), (0, [3000, 3000, 0, 0, 0]));
}

#[test]
fn answers_that_are_lost_while_the_order_matters() {
    let mut server = Server::private(&[]);
    let proxy = Proxy::losing(server.mongod().address(), 2);
    let dump = genuine("full_6.0/kitchen");
    let arguments = ["--db", "kitchen", "--collection", "capped", "--batch-documents", "7"];
    let restored = Restore::new(&proxy.uri(), &dump).args(&arguments).run().ended(0);
    // The second answer that is lost is the one to the repetition.
    assert_eq!(restored.balance(), [100, 93, 7, 0, 0]);
    let there = stored(&server.client(), "kitchen", "capped");
    assert_eq!(there, documents(&dump.join("capped.bson")));
    verified_part(server.uri(), &dump, &["--db", "kitchen", "--collection", "capped"]);
}

#[test]
fn lost_answers_and_documents_that_a_server_does_not_store_as_they_are() {
    let mut server = Server::private(&[]);
    let proxy = Proxy::losing(server.mongod().address(), 1);
    let dumped = [
        document(&[int("a", 1)]),
        document(&[string("a", "x"), int("_id", 1)]),
        document(&[int("_id", 2), zero("t")]),
        document(&[int("_id", 3), zero("t"), int("twice", 1), int("twice", 2)]),
        document(&[int("_id", 4)]),
    ];
    let dump = Dump::new().with("lost", "things", &dumped);
    // The restore alone knows the `_id` that it gave to the first one.
    let restored = Restore::new(&proxy.uri(), dump.path()).args(&["--verify"]).run().ended(0);
    assert_eq!(proxy.left(), 0);
    assert_eq!(restored.report["verification"]["state"], "same");
    let [read, inserted, already_there, ..] = restored.balance();
    assert_eq!((read, inserted + already_there), (5, 5));
    assert!(already_there > 0);
    assert_eq!(stored(&server.client(), "lost", "things").len(), 5);
}

#[test]
fn a_duplicate_that_was_there_before_is_none_of_a_lost_answer() {
    let mut server = Server::private(&[]);
    server.run("shop", doc! { "insert": "orders", "documents": [{ "_id": 7, "of": "another" }] });
    let proxy = Proxy::losing(server.mongod().address(), 2);
    let dumped: Vec<_> = (0..50).map(|id| document(&[int("_id", id)])).collect();
    let dump = Dump::new().with("shop", "orders", &dumped);
    let arguments = ["--batch-documents", "20"];
    let restored = Restore::new(&proxy.uri(), dump.path()).args(&arguments).run().ended(3);
    let [read, inserted, already_there, rejected, _] = restored.balance();
    assert_eq!((read, inserted + already_there, rejected), (50, 49, 1));
    let failures = &restored.collection("shop.orders")["failures"][0];
    assert_eq!(failures["samples"][0]["id"], "7");
    // The one that stands there is the only one that differs.
    assert_eq!(differing(server.uri(), dump.path()), [("changed".to_owned(), "7".to_owned())]);
}

/// Waits until about so many documents are there.
fn wait_for(server: &Server, documents: i64) {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let counts = ["c00001", "c00002"].map(|collection| {
            let reply = server.try_run("seed", doc! { "count": collection });
            reply.map_or(0, |reply| reply.get_i32("n").map_or(0, i64::from))
        });
        if counts.iter().sum::<i64>() >= documents {
            return;
        }
        assert!(Instant::now() < deadline, "{documents} documents did not come: {counts:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Kills the server in the middle of a restore, several times; each time it comes back.
#[track_caller]
fn survives_kills(mut server: Server, dump: &Dump, arguments: &[&str]) {
    let restore = Restore::new(server.uri(), dump.path())
        .args(&["--batch-documents", "100"])
        .args(arguments)
        .start();
    for round in 1..=3 {
        wait_for(&server, round * 10_000);
        server.kill();
        std::thread::sleep(Duration::from_millis(200));
        server.restart();
    }
    let restored = restore.finish().ended(0);
    assert!(restored.retries() > 0, "the kills came too late:\n{}", restored.stderr);
    let state = state_of(&server.client(), &["seed"]);
    for collection in ["c00001", "c00002"] {
        let dumped = documents(&dump.file(&format!("seed/{collection}.bson")));
        let there = &state[format!("seed.{collection}")];
        assert_eq!(there["count"], dumped.len(), "{collection}");
        assert_eq!(there["md5_sum"], md5_sum(&dumped), "{collection}");
        let planned = &restored.collection(&format!("seed.{collection}"))["indexes_planned"];
        let built = there["indexes"].as_array().unwrap().len() - 1;
        assert_eq!(planned, built, "{collection}");
    }
    verified(server.uri(), dump.path());
}

#[test]
fn a_standalone_server_that_is_killed_and_comes_back() {
    survives_kills(Server::private(&[]), &Dump::seeded(2, 40_000), &[]);
}

#[test]
fn a_replica_set_that_is_killed_and_comes_back() {
    survives_kills(Server::replica_set(&[]), &Dump::seeded(2, 40_000), &["--journal", "on"]);
}

/// Restores, cuts the server's power the moment the restore says that it is done, and looks.
#[track_caller]
fn is_durable(mut server: Server) {
    if lacks("what this dump holds", [6, 0]) {
        return;
    }
    for _ in 0..2 {
        Restore::new(server.uri(), &genuine("full_6.0")).run().ended(0);
        server.kill();
        server.restart();
        assert_eq!(differences(&expected("full_6.0"), &found(&server)), [""; 0]);
        verified(server.uri(), &genuine("full_6.0"));
        for database in server.databases() {
            server.run(&database, doc! { "dropDatabase": 1 });
        }
    }
}

#[test]
fn what_is_said_to_be_done_survives_a_power_cut_of_a_standalone_server() {
    is_durable(Server::private(&[]));
}

#[test]
fn what_is_said_to_be_done_survives_a_power_cut_of_a_replica_set() {
    is_durable(Server::replica_set(&[]));
}

#[test]
fn a_replica_set_of_one_reaches_the_same_state() {
    if lacks("what this dump holds", [6, 0]) {
        return;
    }
    let server = Server::replica_set(&[]);
    Restore::new(server.uri(), &genuine("full_6.0")).run().ended(0);
    assert_eq!(differences(&expected("full_6.0"), &found(&server)), [""; 0]);
    verified(server.uri(), &genuine("full_6.0"));
}

#[test]
fn many_tiny_collections_all_arrive() {
    let server = Server::lease();
    let dump = Dump::seeded(300, 20);
    let restored = Restore::new(server.uri(), dump.path()).run().ended(0);
    assert_eq!(restored.balance(), [6000, 6000, 0, 0, 0]);
    let state = found(&server);
    let state = state.as_object().unwrap();
    assert_eq!(state.len(), 300);
    for (namespace, there) in state {
        let name = namespace.strip_prefix("seed.").unwrap();
        let dumped = documents(&dump.file(&format!("seed/{name}.bson")));
        assert_eq!((&there["count"], dumped.len()), (&20.into(), 20), "{name}");
        assert_eq!(there["md5_sum"], md5_sum(&dumped), "{name}");
    }
    verified(server.uri(), dump.path());
}
