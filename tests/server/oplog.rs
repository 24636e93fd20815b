//! The oplog: replayed in order, with its transactions, commands and limits.

use crate::golden::{expected, found};
use crate::support::dump::{Dump, genuine};
use crate::support::{Restore, Restored, Server, connect, differences, is_before, runtime, stored};
use mongodb::bson::{Binary, Bson, Document, Timestamp, doc, spec::BinarySubtype};
use serde_json::{Value, json};

/// An entry that happened at this second, about this namespace.
fn entry(second: u32, operation: &str, namespace: &str, object: Document) -> Document {
    let time = Timestamp { time: second, increment: 1 };
    doc! { "ts": time, "t": 1_i64, "v": 2, "op": operation, "ns": namespace, "o": object,
    "wall": mongodb::bson::DateTime::now() }
}

fn insert(second: u32, object: Document) -> Document {
    let mut entry = entry(second, "i", "shop.orders", object);
    entry.insert("ui", uuid());
    entry
}

fn update(second: u32, id: i32, object: Document) -> Document {
    let mut entry = entry(second, "u", "shop.orders", object);
    entry.insert("o2", doc! { "_id": id });
    entry
}

/// A change as a source of the servers' own series logs it: as a difference from 5.0 on.
fn change(diff: Document, modifiers: Document) -> Document {
    if is_before([5, 0]) {
        doc! { "$v": 1 }.into_iter().chain(modifiers).collect()
    } else {
        doc! { "$v": 2, "diff": diff }
    }
}

fn command(second: u32, object: Document) -> Document {
    entry(second, "c", "shop.$cmd", object)
}

/// Something of a transaction.
fn of_transaction(second: u32, number: i64, object: Document) -> Document {
    let mut entry = entry(second, "c", "admin.$cmd", object);
    entry.extend(doc! { "lsid": { "id": uuid() }, "txnNumber": number });
    entry
}

fn inner(id: i32) -> Document {
    doc! { "op": "i", "ns": "shop.orders", "ui": uuid(), "o": { "_id": id } }
}

fn uuid() -> Bson {
    Bson::Binary(Binary { subtype: BinarySubtype::Uuid, bytes: vec![7; 16] })
}

/// A dump of `shop.orders` with an index and two documents, and this oplog.
fn dump(entries: &[Document]) -> Dump {
    let metadata = json!({ "options": {}, "indexes": [
        { "v": 2, "key": { "_id": 1 }, "name": "_id_" },
        { "v": 2, "key": { "n": 1 }, "name": "n_1" },
    ] });
    let documents = [1, 2].map(|id| doc! { "_id": id, "n": id }.to_vec().unwrap());
    let dump =
        Dump::new().with("shop", "orders", &documents).described("shop", "orders", &metadata);
    write(&dump, "oplog.bson", entries);
    dump
}

fn write(dump: &Dump, name: &str, entries: &[Document]) {
    let bytes: Vec<_> = entries.iter().flat_map(|entry| entry.to_vec().unwrap()).collect();
    dump.write(name, &bytes);
}

fn replay(server: &Server, dump: &Dump, arguments: &[&str]) -> Restored {
    Restore::new(server.uri(), dump.path()).args(&["--oplog-replay"]).args(arguments).run()
}

fn orders(server: &Server) -> Vec<Document> {
    of(server, "orders")
}

fn of(server: &Server, collection: &str) -> Vec<Document> {
    let mut documents: Vec<_> = stored(&server.client(), "shop", collection)
        .iter()
        .map(|bytes| Document::from_reader(&bytes[..]).unwrap())
        .collect();
    documents.sort_by_key(|document| document.get_i32("_id").unwrap_or_default());
    documents
}

fn ids(server: &Server) -> Vec<i32> {
    orders(server).iter().map(|document| document.get_i32("_id").unwrap()).collect()
}

fn indexes(state: &Value, namespace: &str) -> Vec<String> {
    let indexes = state[namespace]["indexes"].as_array().unwrap_or_else(|| panic!("{state:#}"));
    indexes.iter().map(|index| index["name"].as_str().unwrap().to_owned()).collect()
}

/// That a server which does not know the updates of this oplog ends it with the reason, after all
/// documents are there and so many entries are applied.
#[track_caller]
pub(crate) fn does_not_know_differences(restored: Restored, entries: u64) {
    let restored = restored.ended(1);
    let [read, inserted, ..] = restored.balance();
    assert_eq!((read, inserted), (20_025, 20_025));
    let error = restored.report["outcome"]["error"].as_str().unwrap();
    assert!(error.contains("an update in `live.acct`"), "{error}");
    assert!(error.contains("servers know from 5.0 on"), "{error}");
    assert_eq!(restored.report["oplog"]["entries"], entries);
}

#[test]
fn a_genuine_oplog_reaches_the_recorded_state() {
    let server = Server::replica_set(&[]);
    let restored = Restore::new(server.uri(), &genuine("oplog_6.0")).args(&["--oplogReplay"]).run();
    if is_before([5, 0]) {
        return does_not_know_differences(restored, 2);
    }
    let restored = restored.ended(0);
    assert_eq!(differences(&expected("oplog_6.0"), &found(&server)), [""; 0]);
    let oplog = &restored.report["oplog"];
    assert_eq!((&oplog["entries"], &oplog["operations"]), (&json!(48), &json!(48)));
    assert_eq!(oplog["state"], "done");
    assert_eq!(oplog["first"], json!({ "seconds": 1_796_042_390, "increment": 362 }));
    assert!(
        restored.stderr.contains("48 entries with 48 operations applied"),
        "{}",
        restored.stderr
    );
}

#[test]
fn a_genuine_oplog_is_replayed_by_a_standalone_server_too() {
    let server = Server::lease();
    let restored =
        Restore::new(server.uri(), &genuine("oplog_6.0")).args(&["--oplog-replay"]).run();
    if is_before([5, 0]) {
        return does_not_know_differences(restored, 2);
    }
    restored.ended(0);
    assert_eq!(differences(&expected("oplog_6.0"), &found(&server)), [""; 0]);
}

#[test]
fn writes_are_applied_in_their_order() {
    let server = Server::replica_set(&[]);
    let dump = dump(&[
        entry(1, "n", "", doc! { "msg": "periodic noop" }),
        insert(2, doc! { "_id": 3, "n": 3 }),
        insert(3, doc! { "_id": 2, "n": 20 }),
        update(
            4,
            3,
            change(
                doc! { "u": { "n": 30 }, "i": { "new": true } },
                doc! { "$set": { "n": 30, "new": true } },
            ),
        ),
        update(5, 1, doc! { "_id": 1, "replaced": 1 }),
        update(6, 2, doc! { "$v": 1, "$set": { "n": 21 } }),
        entry(7, "d", "shop.orders", doc! { "_id": 3 }),
        insert(8, doc! { "_id": 4, "n": 4 }),
        update(
            9,
            4,
            change(doc! { "sa": { "u": { "b": 1 } } }, doc! { "$unset": { "a.b": true } }),
        ),
        entry(10, "i", "config.transactions", doc! { "_id": 1 }),
        entry(11, "c", "shop.$cmd", doc! { "startIndexBuild": "orders", "indexes": [] }),
    ]);
    let restored = replay(&server, &dump, &[]).ended(0);
    let expected =
        [doc! { "_id": 1, "replaced": 1 }, doc! { "_id": 2, "n": 21 }, doc! { "_id": 4, "n": 4 }];
    assert_eq!(orders(&server), expected);
    let oplog = &restored.report["oplog"];
    assert_eq!((&oplog["entries"], &oplog["operations"]), (&json!(11), &json!(8)));
    assert_eq!(oplog["left_out"], 3);
    assert_eq!(indexes(&found(&server), "shop.orders"), ["_id_", "n_1"]);
}

#[test]
fn many_writes_take_few_commands() {
    let server = Server::replica_set(&[]);
    let entries: Vec<_> =
        (10..3010).map(|id| insert(10, doc! { "_id": id, "p": "x".repeat(100) })).collect();
    let dump = dump(&entries);
    server.run("admin", doc! { "profile": 2 });
    replay(&server, &dump, &[]).ended(0);
    assert_eq!(orders(&server).len(), 3002);
    let status = server.run("admin", doc! { "serverStatus": 1 });
    let commands = status.get_document("metrics").unwrap().get_document("commands").unwrap();
    let sent = commands.get_document("applyOps").unwrap();
    let total = sent.get_i64("total").unwrap();
    assert!((6..=9).contains(&total), "{sent}");
}

#[test]
fn an_entry_that_is_refused_is_named_and_what_came_before_it_stays() {
    let server = Server::replica_set(&[]);
    let bad = entry(4, "i", "shop.missing", doc! { "_id": 1 });
    let before = [insert(2, doc! { "_id": 3 }), insert(3, doc! { "_id": 4 })];
    let offset: usize = before.iter().map(|entry| entry.to_vec().unwrap().len()).sum();
    let dump = dump(&[&before[..], &[bad, insert(5, doc! { "_id": 5 })]].concat());
    let restored = replay(&server, &dump, &[]).ended(1);
    assert_eq!(ids(&server), [1, 2, 3, 4]);
    let error = restored.report["outcome"]["error"].as_str().unwrap();
    assert!(error.contains("an insert into `shop.missing`"), "{error}");
    assert!(error.contains(&format!("at byte {offset}")), "{error}");
    assert!(error.contains("--oplog-limit 4:1"), "{error}");
    let again = replay(&server, &dump, &["--drop", "--oplog-limit", "4:1"]).ended(0);
    assert_eq!(ids(&server), [1, 2, 3, 4]);
    assert_eq!(again.report["oplog"]["reached_limit"], true);
    assert_eq!(indexes(&found(&server), "shop.orders"), ["_id_", "n_1"]);
}

#[test]
fn transactions_are_applied_when_they_commit() {
    let server = Server::replica_set(&[]);
    let part = |id, more: Document| {
        let mut object = doc! { "applyOps": [inner(id)] };
        object.extend(more);
        object
    };
    let dump = dump(&[
        of_transaction(2, 1, doc! { "applyOps": [inner(10), inner(11)] }),
        of_transaction(3, 2, part(20, doc! { "prepare": true })),
        of_transaction(4, 3, part(30, doc! { "partialTxn": true })),
        of_transaction(5, 4, part(40, doc! { "prepare": true })),
        of_transaction(
            6,
            2,
            doc! { "commitTransaction": 1, "commitTimestamp": Timestamp { time: 5, increment: 1 } },
        ),
        of_transaction(7, 3, part(31, doc! { "partialTxn": true })),
        of_transaction(8, 4, doc! { "abortTransaction": 1 }),
        of_transaction(9, 3, part(32, doc! { "count": 3_i64 })),
        of_transaction(10, 5, part(50, doc! { "prepare": true })),
        of_transaction(11, 6, doc! { "commitTransaction": 1 }),
    ]);
    let restored = replay(&server, &dump, &[]).ended(0);
    assert_eq!(ids(&server), [1, 2, 10, 11, 20, 30, 31, 32]);
    let notes = restored.notes();
    assert!(notes.iter().any(|note| note.contains("1 transaction was open")), "{notes:?}");
}

#[test]
fn collections_and_indexes_come_and_go() {
    let server = Server::replica_set(&[]);
    let dump = dump(&[
        command(
            2,
            doc! { "create": "made", "collation": { "locale": "fr" }, "idIndex": { "v": 2, "key": { "_id": 1 }, "name": "_id_", "collation": { "locale": "fr" } } },
        ),
        command(3, doc! { "createIndexes": "made", "v": 2, "key": { "a": 1 }, "name": "a_1" }),
        command(
            4,
            doc! { "createIndexes": "orders", "v": 2, "key": { "old": 1 }, "name": "old_1" },
        ),
        command(5, doc! { "dropIndexes": "orders", "index": "n_1" }),
        command(
            6,
            doc! { "commitIndexBuild": "orders", "indexBuildUUID": uuid(), "indexes": [
                { "v": 2, "key": { "x": 1 }, "name": "x_1" },
                { "v": 2, "key": { "y": 1 }, "name": "y_1", "expireAfterSeconds": 3600 },
            ] },
        ),
        command(
            7,
            doc! { "collMod": "orders", "index": { "name": "y_1", "expireAfterSeconds": 7200_i64 } },
        ),
        command(
            8,
            doc! { "collMod": "orders", "index": { "name": "x_1", "hidden": true }, "validationLevel": "off" },
        ),
        command(9, doc! { "create": "gone" }),
        command(10, doc! { "createIndexes": "gone", "v": 2, "key": { "a": 1 }, "name": "a_1" }),
        command(11, doc! { "drop": "gone" }),
        insert(12, doc! { "_id": 3 }),
    ]);
    let restored = replay(&server, &dump, &[]).ended(0);
    let state = found(&server);
    assert_eq!(indexes(&state, "shop.orders"), ["_id_", "old_1", "x_1", "y_1"]);
    assert_eq!(indexes(&state, "shop.made"), ["_id_", "a_1"]);
    assert!(state["shop.gone"].is_null());
    let of = |name: &str| {
        let indexes = state["shop.orders"]["indexes"].as_array().unwrap();
        indexes.iter().find(|index| index["name"] == name).unwrap().clone()
    };
    let number = if is_before([5, 0]) { "$numberLong" } else { "$numberInt" };
    assert_eq!(of("y_1")["expireAfterSeconds"][number], "7200");
    assert_eq!(of("x_1")["hidden"] == true, !is_before([4, 4]));
    let made = restored.collection("shop.made");
    assert_eq!((&made["state"], &made["indexes_planned"]), (&json!("done"), &json!(1)));
    assert_eq!(restored.report["totals"]["indexes_built"], 4);
}

/// The peer builds the indexes under the old name, which makes an empty collection there, and
/// leaves the renamed one without.
#[test]
fn better_than_the_peer_b4_indexes_follow_a_renamed_collection() {
    let server = Server::replica_set(&[]);
    let dump = dump(&[
        command(
            2,
            doc! { "renameCollection": "shop.orders", "to": "shop.sales", "stayTemp": false },
        ),
        entry(3, "i", "shop.sales", doc! { "_id": 3, "n": 3 }),
        command(4, doc! { "createIndexes": "sales", "v": 2, "key": { "m": 1 }, "name": "m_1" }),
    ]);
    let restored = replay(&server, &dump, &[]).ended(0);
    let state = found(&server);
    assert_eq!(indexes(&state, "shop.sales"), ["_id_", "m_1", "n_1"]);
    assert!(state["shop.orders"].is_null(), "{state:#}");
    assert_eq!(of(&server, "sales").len(), 3);
    assert_eq!(restored.collection("shop.orders")["state"], "done");
    assert_eq!(restored.collection("shop.sales")["indexes_planned"], 2);
}

#[test]
fn a_collection_renamed_over_another_takes_its_place() {
    let server = Server::replica_set(&[]);
    let dump = dump(&[
        command(2, doc! { "create": "fresh" }),
        entry(3, "i", "shop.fresh", doc! { "_id": 9 }),
        command(4, doc! { "createIndexes": "fresh", "v": 2, "key": { "f": 1 }, "name": "f_1" }),
        command(
            5,
            doc! { "renameCollection": "shop.fresh", "to": "shop.orders", "stayTemp": false, "dropTarget": uuid() },
        ),
    ]);
    replay(&server, &dump, &[]).ended(0);
    let state = found(&server);
    assert_eq!(state.as_object().unwrap().keys().collect::<Vec<_>>(), ["shop.orders"], "{state:#}");
    assert_eq!(ids(&server), [9]);
    assert_eq!(indexes(&state, "shop.orders"), ["_id_", "f_1"]);
}

#[test]
fn what_cannot_be_replayed_ends_it_with_its_place() {
    let server = Server::replica_set(&[]);
    let first = insert(2, doc! { "_id": 3 });
    let offset = first.to_vec().unwrap().len();
    for (object, words) in [
        (doc! {}, "is empty"),
        (doc! { "importCollection": "a" }, "importCollection"),
        (doc! { "brandNew": 1 }, "`brandNew` is not known"),
        (doc! { "collMod": "orders", "index": { "name": "no" } }, "not known"),
        (doc! { "collMod": "orders", "index": { "name": "n_1", "sparse": true } }, "sparse"),
        (doc! { "applyOps": 7 }, "no array"),
        (doc! { "createIndexes": 7 }, "does not name its collection"),
    ] {
        let dump = dump(&[first.clone(), command(3, object)]);
        let restored = replay(&server, &dump, &["--drop"]).ended(1);
        let error = restored.report["outcome"]["error"].as_str().unwrap();
        assert!(error.contains(words), "{error}");
        assert!(error.contains(&format!("at byte {offset}")), "{error}");
        assert_eq!(ids(&server), [1, 2, 3]);
        assert_eq!(restored.report["oplog"]["entries"], 1);
    }
}

#[test]
fn the_oplog_may_be_dumped_from_local_or_lie_anywhere() {
    let server = Server::replica_set(&[]);
    let of_local = dump(&[]);
    std::fs::remove_file(of_local.file("oplog.bson")).unwrap();
    write(&of_local, "local/oplog.rs.bson", &[insert(2, doc! { "_id": 3 })]);
    replay(&server, &of_local, &[]).ended(0);
    assert_eq!(ids(&server), [1, 2, 3]);
    let elsewhere = Dump::new();
    write(&elsewhere, "mine.bson", &[insert(2, doc! { "_id": 4 })]);
    let mine = elsewhere.file("mine.bson");
    replay(&server, &of_local, &["--drop", "--oplogFile", mine.to_str().unwrap()]).ended(0);
    assert_eq!(ids(&server), [1, 2, 4]);
    let twice = replay(&server, &dump(&[]), &["--oplogFile", mine.to_str().unwrap()]).ended(1);
    assert!(twice.stderr.contains("two oplogs"), "{}", twice.stderr);
    std::fs::remove_dir_all(of_local.file("local")).unwrap();
    let none = replay(&server, &of_local, &[]).ended(1);
    assert!(none.stderr.contains("no oplog to replay"), "{}", none.stderr);
}

#[test]
fn an_oplog_nobody_asked_for_is_left_out() {
    let server = Server::lease();
    let dump = dump(&[insert(2, doc! { "_id": 3 })]);
    let restored = Restore::new(server.uri(), dump.path()).run().ended(0);
    assert_eq!(ids(&server), [1, 2]);
    assert!(restored.report["oplog"].is_null());
    let skipped = restored.report["skipped"].as_array().unwrap();
    assert!(skipped[0]["reason"].as_str().unwrap().contains("--oplog-replay"), "{skipped:?}");
}

#[test]
fn without_the_right_nothing_is_restored_and_the_role_is_named() {
    let server = Server::private(&["--auth"]);
    let roles = [doc! { "role": "restore", "db": "admin" }];
    let uri = server.user("restorer", &roles);
    let dump = dump(&[insert(2, doc! { "_id": 3 })]);
    let restored = Restore::new(&uri, dump.path()).args(&["--oplog-replay"]).run().ended(1);
    assert!(restored.stderr.contains("anyAction"), "{}", restored.stderr);
    assert!(restored.report.is_null(), "nothing was begun");
}

#[test]
fn the_role_that_the_error_names_is_enough() {
    let server = Server::private(&["--auth"]);
    let root = server.user("other", &[]).replacen("other", "root", 1);
    let admin = connect(&root).database("admin");
    let everything = doc! { "resource": { "anyResource": true }, "actions": ["anyAction"] };
    let role = doc! { "createRole": "replayOplog", "privileges": [everything], "roles": [] };
    runtime().block_on(async { admin.run_command(role).await }).unwrap();
    let roles =
        [doc! { "role": "restore", "db": "admin" }, doc! { "role": "replayOplog", "db": "admin" }];
    let uri = server.user("restorer", &roles);
    let dump = dump(&[insert(2, doc! { "_id": 3 }), command(3, doc! { "create": "made" })]);
    let restored = Restore::new(&uri, dump.path()).args(&["--oplog-replay"]).run().ended(0);
    assert_eq!(restored.report["oplog"]["operations"], 2);
}

#[test]
fn an_interrupt_stops_between_entries_and_says_how_far_it_got() {
    let server = Server::replica_set(&["--setParameter", "enableTestCommands=1"]);
    let entries: Vec<_> =
        (0..60_000).map(|id| insert(100, doc! { "_id": id + 10, "p": "x".repeat(100) })).collect();
    let dump = dump(&entries);
    let running = Restore::new(server.uri(), dump.path()).args(&["--oplog-replay"]).start();
    let orders = server.client().database("shop").collection::<Document>("orders");
    while runtime().block_on(async { orders.estimated_document_count().await }).unwrap() < 600 {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    running.signal("INT");
    let restored = running.finish().ended(130);
    let there = ids(&server).len() as u64 - 2;
    let oplog = &restored.report["oplog"];
    assert_eq!(oplog["entries"].as_u64(), Some(there), "{oplog}");
    assert!(there < 60_000);
    assert_eq!(oplog["state"], "waiting");
    assert_eq!(oplog["last"], json!({ "seconds": 100, "increment": 1 }));
}

#[test]
fn a_connection_that_breaks_is_survived() {
    let server = Server::replica_set(&["--setParameter", "enableTestCommands=1"]);
    let dump = dump(&[
        insert(2, doc! { "_id": 3, "n": 1 }),
        update(3, 3, change(doc! { "u": { "n": 2 } }, doc! { "$set": { "n": 2 } })),
        command(4, doc! { "create": "made" }),
        entry(5, "d", "shop.orders", doc! { "_id": 1 }),
    ]);
    // The first one only asks whether the server could.
    let data = doc! { "failCommands": ["applyOps"], "closeConnection": true, "appName": "restorm" };
    let point = doc! { "configureFailPoint": "failCommand", "mode": { "skip": 1 }, "data": data };
    server.run("admin", point);
    let running = Restore::new(server.uri(), dump.path()).args(&["--oplog-replay"]).start();
    std::thread::sleep(std::time::Duration::from_secs(1));
    server.run("admin", doc! { "configureFailPoint": "failCommand", "mode": "off" });
    let restored = running.finish().ended(0);
    assert_ne!(restored.retries(), 0);
    assert_eq!(orders(&server), [doc! { "_id": 2, "n": 2 }, doc! { "_id": 3, "n": 2 }]);
}

#[test]
fn a_stop_while_the_server_is_away_ends_the_replay() {
    let server = Server::replica_set(&["--setParameter", "enableTestCommands=1"]);
    let dump = dump(&[insert(2, doc! { "_id": 3 }), insert(3, doc! { "_id": 4 })]);
    let data = doc! { "failCommands": ["applyOps"], "closeConnection": true, "appName": "restorm" };
    let point = doc! { "configureFailPoint": "failCommand", "mode": { "skip": 1 }, "data": data };
    server.run("admin", point);
    let running = Restore::new(server.uri(), dump.path()).args(&["--oplog-replay"]).start();
    std::thread::sleep(std::time::Duration::from_secs(2));
    running.signal("INT");
    let restored = running.finish().ended(130);
    assert_eq!(restored.report["oplog"]["entries"], 0);
    assert_eq!(restored.report["oplog"]["state"], "waiting");
    assert_eq!(ids(&server), [1, 2]);
}

/// The entries of the server's own oplog from this second on, as they are stored.
fn oplog_of(server: &Server, from: Timestamp) -> Vec<Vec<u8>> {
    let entries = stored(&server.client(), "local", "oplog.rs").into_iter();
    let is_later = |bytes: &Vec<u8>| {
        Document::from_reader(&bytes[..]).unwrap().get_timestamp("ts").unwrap() > from
    };
    entries.filter(is_later).collect()
}

fn now(server: &Server) -> Timestamp {
    let reply = server.run("admin", doc! { "ping": 1 });
    reply.get_timestamp("operationTime").unwrap()
}

#[test]
fn the_oplog_of_a_busy_server_makes_another_one_like_it() {
    let source = Server::replica_set(&[]);
    let from = now(&source);
    let run = |command: Document| source.run("shop", command);
    let documents: Vec<_> = (0..300).map(|id| doc! { "_id": id, "n": id % 7, "a": [1] }).collect();
    run(doc! { "insert": "orders", "documents": documents });
    run(doc! { "createIndexes": "orders", "indexes": [
        { "key": { "n": 1 }, "name": "n_1" }, { "key": { "n": 1, "_id": -1 }, "name": "n_id" },
    ] });
    run(doc! { "update": "orders", "updates": [
        { "q": { "n": 3 }, "u": { "$inc": { "n": 10 }, "$push": { "a": 5 } }, "multi": true },
        { "q": { "_id": 1 }, "u": { "replaced": true } },
        { "q": { "_id": 1000 }, "u": { "$set": { "x": 1 } }, "upsert": true },
    ] });
    run(doc! { "delete": "orders", "deletes": [{ "q": { "n": 4 }, "limit": 0 }] });
    run(doc! { "create": "log", "capped": true, "size": 8192, "max": 5 });
    let lines: Vec<_> = (0..9).map(|id| doc! { "_id": id }).collect();
    run(doc! { "insert": "log", "documents": lines });
    run(doc! { "create": "few", "viewOn": "orders", "pipeline": [{ "$limit": 3 }] });
    run(doc! { "collMod": "few", "viewOn": "orders", "pipeline": [{ "$limit": 2 }] });
    run(doc! { "create": "none", "viewOn": "orders", "pipeline": [] });
    run(doc! { "drop": "none" });
    if !is_before([5, 0]) {
        run(doc! { "create": "weather", "timeseries": { "timeField": "t", "metaField": "m" } });
        let at = mongodb::bson::DateTime::from_millis(1_700_000_000_000);
        run(doc! { "insert": "weather", "documents": [{ "t": at, "m": 1, "v": 2 }] });
    }
    run(doc! { "create": "french", "collation": { "locale": "fr" } });
    run(doc! { "createIndexes": "french", "indexes": [{ "key": { "a": 1 }, "name": "a_1" }] });
    run(doc! { "createIndexes": "orders", "indexes": [
        { "key": { "at": 1 }, "name": "at_1", "expireAfterSeconds": 100_000 },
    ] });
    run(doc! { "collMod": "orders", "index": { "name": "at_1", "expireAfterSeconds": 200_000 } });
    if !is_before([4, 4]) {
        run(doc! { "collMod": "orders", "index": { "name": "n_id", "hidden": true } });
    }
    run(
        doc! { "collMod": "orders", "validator": { "n": { "$gte": 0 } }, "validationAction": "warn" },
    );
    run(doc! { "insert": "old", "documents": [{ "_id": 1 }] });
    run(doc! { "createIndexes": "old", "indexes": [{ "key": { "o": 1 }, "name": "o_1" }] });
    source.run("admin", doc! { "renameCollection": "shop.old", "to": "shop.new" });
    run(doc! { "insert": "other", "documents": [{ "_id": 2 }] });
    source.run(
        "admin",
        doc! {
            "renameCollection": "shop.other", "to": "shop.new", "dropTarget": true,
        },
    );
    run(doc! { "insert": "gone", "documents": [{ "_id": 1 }] });
    run(doc! { "drop": "gone" });
    run(doc! { "insert": "round", "documents": [{ "_id": 1 }, { "_id": 2 }] });
    run(doc! { "convertToCapped": "round", "size": 4096 });
    run(doc! { "dropIndexes": "orders", "index": "n_1" });
    transaction(&source);
    let state = found(&source);

    let dump = Dump::new();
    dump.write("oplog.bson", &oplog_of(&source, from).concat());
    let target = Server::replica_set(&[]);
    let restored = replay(&target, &dump, &[]).ended(0);
    assert_eq!(differences(&state, &found(&target)), [""; 0]);
    assert!(restored.report["oplog"]["operations"].as_u64().unwrap() > 400);
}

/// A transaction with two large documents, which take several entries, and one that is aborted.
fn transaction(server: &Server) {
    let client = server.client();
    let orders = client.database("shop").collection::<Document>("orders");
    runtime().block_on(async {
        let mut session = client.start_session().await.unwrap();
        for (base, commits) in [(2000, true), (3000, false)] {
            session.start_transaction().await.unwrap();
            for id in base..base + 2 {
                let large = doc! { "_id": id, "p": "x".repeat(10_000_000) };
                orders.insert_one(large).session(&mut session).await.unwrap();
            }
            if commits {
                session.commit_transaction().await.unwrap();
            } else {
                session.abort_transaction().await.unwrap();
            }
        }
    });
}
