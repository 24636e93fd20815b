//! Batches that a server or something on the way does not take as a whole.

use crate::support::dump::Dump;
use crate::support::proxy::Proxy;
use crate::support::raw::{document, int, string, zero};
use crate::support::{
    Restore, Restored, Server, differing, keeps_zero_timestamps, stored, verified,
};
use mongodb::bson::{Document, doc};

/// A server that can be told to fail.
fn obedient() -> Server {
    Server::private(&["--setParameter", "enableTestCommands=1"])
}

fn filled(ids: impl IntoIterator<Item = i32>, bytes: usize) -> Vec<Vec<u8>> {
    let filler = "x".repeat(bytes);
    ids.into_iter().map(|id| document(&[int("_id", id), string("filler", &filler)])).collect()
}

fn restore(uri: &str, dump: &Dump, arguments: &[&str]) -> Restored {
    Restore::new(uri, dump.path()).args(&["--ledger", "none"]).args(arguments).run()
}

/// How often a command was sent, by the server's own count.
fn sent(server: &Server, command: &str) -> i64 {
    let status = server.run("admin", doc! { "serverStatus": 1 });
    let metrics = status.get_document("metrics").unwrap().get_document("commands").unwrap();
    metrics.get_document(command).unwrap().get_i64("total").unwrap()
}

/// Checks that a collection holds these documents, in their order.
#[track_caller]
fn holds(server: &Server, collection: &str, dumped: &[Vec<u8>]) {
    let there = stored(&server.client(), "shop", collection);
    assert!(there == dumped, "{} of {} documents", there.len(), dumped.len());
}

#[test]
fn a_batch_that_is_called_too_large_is_split() {
    let server = obedient();
    let dumped = filled(0..400, 100);
    let dump = Dump::new().with("shop", "orders", &dumped);
    for (code, times) in [(10334, 5), (17419, 3), (17420, 3), (16501, 3), (16, 2)] {
        let data = doc! { "failCommands": ["insert"], "errorCode": code };
        let mode = doc! { "times": times };
        server
            .run("admin", doc! { "configureFailPoint": "failCommand", "mode": mode, "data": data });
        let arguments = ["--drop", "--batch-documents", "100", "--maintain-insertion-order"];
        let restored = restore(server.uri(), &dump, &arguments).ended(0);
        assert_eq!(restored.balance(), [400, 400, 0, 0, 0], "{code}");
        assert_eq!(restored.retries(), 0, "{code}");
        holds(&server, "orders", &dumped);
        verified(server.uri(), dump.path());
    }
}

#[test]
fn batches_at_the_limits_of_a_message_arrive() {
    let server = Server::lease();
    let large = filled(0..5, 16 * 1024 * 1024 - 100);
    let small: Vec<_> = (0..150_000).map(|id| document(&[int("_id", id)])).collect();
    let middle = filled(0..40, 1_000_000);
    let dump = Dump::new()
        .with("shop", "large", &large)
        .with("shop", "small", &small)
        .with("shop", "middle", &middle);
    let arguments = ["--batch-documents", "100000", "--batch-bytes", "16000000", "--workers", "2"];
    let restored = restore(server.uri(), &dump, &arguments).ended(0);
    assert_eq!(restored.balance(), [150_045, 150_045, 0, 0, 0]);
    assert_eq!(restored.report["totals"]["retries"], 0);
    for (name, dumped) in [("large", &large), ("middle", &middle)] {
        let mut there = stored(&server.client(), "shop", name);
        there.sort();
        let mut dumped = dumped.clone();
        dumped.sort();
        assert!(there == dumped, "{name}");
    }
    verified(server.uri(), dump.path());
}

#[test]
fn a_batch_full_of_duplicates_is_answered_for() {
    let server = Server::private(&[]);
    // The answer repeats each `_id`, so that it is larger than the batch itself.
    let long = |id: i32| format!("{id:0>128}");
    let dumped: Vec<_> = (0..100_000).map(|id| document(&[string("_id", &long(id))])).collect();
    let dump = Dump::new().with("shop", "orders", &dumped);
    let arguments = ["--batch-documents", "100000", "--batch-bytes", "16000000", "--workers", "1"];
    restore(server.uri(), &dump, &arguments).ended(0);
    for id in [7, 50_000] {
        let delete = doc! { "q": { "_id": long(id) }, "limit": 1 };
        server.run("shop", doc! { "delete": "orders", "deletes": [delete] });
    }
    let restored = restore(server.uri(), &dump, &arguments);
    let [read, inserted, already_there, rejected, unsent] = restored.balance();
    assert_eq!((read, unsent), (100_000, 0), "{}", restored.stderr);
    // Where the answer did not fit, the batch was sent again, and its documents were looked up.
    assert_eq!(inserted + already_there + rejected, 100_000);
    assert!(rejected <= 99_998, "a document of this batch counts as refused");
    assert_eq!(stored(&server.client(), "shop", "orders").len(), 100_000);
    verified(server.uri(), dump.path());
}

#[test]
fn a_proxy_that_cuts_large_messages_gets_smaller_ones() {
    let mut server = Server::private(&[]);
    let proxy = Proxy::cutting(server.mongod().address(), 100_000);
    let dumped = filled(0..3000, 1000);
    let dump = Dump::new().with("shop", "orders", &dumped);
    let restored = restore(&proxy.uri(), &dump, &["--workers", "2"]).ended(0);
    let [read, inserted, already_there, ..] = restored.balance();
    assert_eq!((read, inserted + already_there), (3000, 3000));
    let notes = restored.notes().join("\n");
    assert!(notes.contains("again and again") && notes.contains("--batch-bytes"), "{notes}");
    // The first batches find out what passes; the others are sent in parts at once.
    assert!(restored.retries() <= 30, "{}", restored.retries());
    assert_eq!(stored(&server.client(), "shop", "orders").len(), 3000);
    verified(server.uri(), dump.path());
}

#[test]
fn a_proxy_that_cuts_large_messages_does_not_change_the_order() {
    let mut server = Server::private(&[]);
    let proxy = Proxy::cutting(server.mongod().address(), 40_000);
    let dumped = filled((0..500).rev(), 1000);
    let dump = Dump::new().with("shop", "orders", &dumped);
    let restored = restore(&proxy.uri(), &dump, &["--maintain-insertion-order"]).ended(0);
    assert_eq!(restored.balance()[3..], [0, 0]);
    holds(&server, "orders", &dumped);
    verified(server.uri(), dump.path());
}

#[test]
fn a_document_that_never_passes_ends_the_run_in_the_end() {
    let mut server = Server::private(&[]);
    let proxy = Proxy::cutting(server.mongod().address(), 40_000);
    let dumped = [filled(0..10, 1000), filled(10..11, 50_000)].concat();
    let dump = Dump::new().with("shop", "orders", &dumped);
    let folder = tempfile::tempdir().unwrap();
    let ledger = folder.path().join("ledger");
    let ledger = ledger.to_str().unwrap();
    let restore = |uri: &str, arguments: &[&str]| {
        Restore::new(uri, dump.path()).args(&["--ledger", ledger]).args(arguments).run()
    };
    let restored = restore(&proxy.uri(), &["--retry-for", "3s"]).ended(1);
    let [read, inserted, already_there, _, unsent] = restored.balance();
    assert_eq!((read, inserted + already_there, unsent), (11, 10, 1));
    assert_eq!(differing(server.uri(), dump.path()), [("missing".to_owned(), "10".to_owned())]);
    // Without what cuts the connections, and by the same address, it goes on.
    proxy.let_pass();
    let restored = restore(&proxy.uri(), &["--resume"]).ended(0);
    let [read, inserted, already_there, ..] = restored.balance();
    assert_eq!((read, inserted + already_there), (11, 11));
    verified(server.uri(), dump.path());
}

#[test]
fn an_ordered_batch_that_is_sent_again_asks_once() {
    let mut server = Server::private(&[]);
    let others = doc! { "insert": "orders", "documents": [{ "_id": 60, "of": 1 }, { "_id": 70 }] };
    server.run("shop", others);
    let proxy = Proxy::losing(server.mongod().address(), 1);
    let dumped = filled(0..100, 10);
    let dump = Dump::new().with("shop", "orders", &dumped);
    let (finds, inserts) = (sent(&server, "find"), sent(&server, "insert"));
    let arguments = ["--maintain-insertion-order", "--workers", "1"];
    let restored = restore(&proxy.uri(), &dump, &arguments).ended(3);
    assert_eq!(restored.balance()[3..], [2, 0]);
    assert_eq!(restored.report["balance"]["conflicts"], 2);
    assert_eq!(sent(&server, "find") - finds, 1);
    // The batch, the batch again, and what follows each of the two.
    let count = sent(&server, "insert") - inserts;
    assert!(count <= 5, "{count}");
    let there = stored(&server.client(), "shop", "orders");
    assert_eq!(there.len(), 100);
    assert!(there[2..].is_sorted_by_key(|one| documents_id(one)), "the order stays");
    let mut differing = differing(server.uri(), dump.path());
    differing.sort();
    let changed = |id: &str| ("changed".to_owned(), id.to_owned());
    assert_eq!(differing, [changed("60"), changed("70")]);
}

fn documents_id(bytes: &[u8]) -> i32 {
    mongodb::bson::Document::from_reader(bytes).unwrap().get_i32("_id").unwrap()
}

/// A user who may do this on the collections of `shop`.
fn user_with(server: &Server, name: &str, actions: &[&str]) -> String {
    let resource = doc! { "db": "shop", "collection": "" };
    let role = doc! {
        "createRole": name, "roles": Vec::<Document>::new(),
        "privileges": [{ "resource": resource, "actions": actions }],
    };
    let root = server.user("chief", &[doc! { "role": "root", "db": "admin" }]);
    let admin = crate::support::connect(&root).database("admin");
    crate::support::runtime().block_on(async { admin.run_command(role).await }).unwrap();
    let create = doc! {
        "createUser": name, "pwd": crate::support::PASSWORD,
        "roles": [{ "role": name, "db": "admin" }],
    };
    crate::support::runtime().block_on(async { admin.run_command(create).await }).unwrap();
    root.replace("chief", name)
}

#[test]
fn the_privilege_that_zero_timestamps_need_is_named() {
    if keeps_zero_timestamps() {
        return;
    }
    let server = Server::private(&["--auth"]);
    let actions = [
        "listCollections",
        "createCollection",
        "createIndex",
        "insert",
        "find",
        "bypassDocumentValidation",
    ];
    let uri = user_with(&server, "clerk", &actions);
    let dump = Dump::new().with("shop", "plain", &[document(&[int("_id", 1)])]).with(
        "shop",
        "stamped",
        &[document(&[int("_id", 1), zero("at")])],
    );
    let restored = Restore::new(&uri, &dump.file("shop")).args(&["--ledger", "none"]).run();
    let restored = restored.ended(1);
    let error = restored.collection("shop.stamped")["error"].as_str().unwrap();
    assert!(error.contains("the privilege update on `shop.stamped`"), "{error}");
    assert!(!restored.notes().join("\n").contains("bypass"), "{:?}", restored.notes());
    assert_eq!(restored.balance_of("shop.plain"), [1, 1, 0, 0, 0]);
}
