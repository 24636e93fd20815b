//! What is found out before anything is touched: rights, names, indexes, journal, deletion.

use crate::golden::found;
use crate::support::dump::{Dump, genuine};
use crate::support::raw::{document, int};
use crate::support::{
    PASSWORD, Restore, Restored, Server, connect, is_before, lacks, runtime, verified,
};
use mongodb::Client;
use mongodb::bson::{Bson, Document, doc};
use serde_json::{Value, json};

fn numbered(count: i32) -> Vec<Vec<u8>> {
    (0..count).map(|id| document(&[int("_id", id), int("a", id)])).collect()
}

#[track_caller]
fn says(restored: &Restored, words: &[&str]) {
    let told = format!("{}{}", restored.stdout, restored.stderr);
    for word in words {
        // Long lines are broken.
        let flat = told.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains(word), "`{word}` is not said:\n{told}");
    }
}

/// A server that enforces rights, and a client that may do everything there.
fn guarded() -> (Server, Client) {
    let server = Server::private(&["--auth"]);
    let root = server.user("chief", &[doc! { "role": "root", "db": "admin" }]);
    (server, connect(&root))
}

fn run(client: &Client, database: &str, command: Document) -> Document {
    let database = client.database(database);
    runtime().block_on(async { database.run_command(command).await }).expect("it succeeds")
}

fn databases(client: &Client) -> Vec<String> {
    let mut names =
        runtime().block_on(async { client.list_database_names().await }).expect("databases");
    names.retain(|name| !["admin", "config", "local"].contains(&name.as_str()));
    names
}

fn role(name: &str, database: &str) -> Document {
    doc! { "role": name, "db": database }
}

#[test]
fn a_user_who_may_only_read_is_refused_before_anything_is_touched() {
    let (server, root) = guarded();
    let reader = server.user("reader", &[role("read", "shop")]);
    for arguments in [&[][..], &["--dry-run"], &["--drop"]] {
        let restored = Restore::new(&reader, &genuine("full_6.0/shop")).args(arguments).run();
        let restored = restored.ended(1);
        says(
            &restored,
            &[
                "the user `reader` of `admin` lacks rights that the plan takes",
                "createCollection, createIndex, insert on `shop.",
                "db.getSiblingDB(\"admin\").grantRolesToUser(\"reader\", [{role: \"readWrite\", \
                 db: \"shop\"}])",
                "nothing was touched",
            ],
        );
        assert_eq!(restored.report, Value::Null);
        assert_eq!(databases(&root), [""; 0]);
    }
}

#[test]
fn a_role_that_suffices_is_not_refused() {
    let (server, root) = guarded();
    let shop = server.user("writer", &[role("readWrite", "shop")]);
    let dump = genuine("full_6.0/shop");
    Restore::new(&shop, &dump).run().ended(0);
    Restore::new(&shop, &dump).args(&["--drop"]).run().ended(0);
    assert_eq!(databases(&root), ["shop"]);
    if lacks("what this dump holds", [6, 0]) {
        return;
    }
    // To empty `system.js` takes more than the role for restores has.
    let roles = [role("restore", "admin"), role("readWrite", "kitchen")];
    let restorer = server.user("restorer", &roles);
    for arguments in [
        &["--db", "kitchen"][..],
        &["--db", "kitchen", "--drop"],
        &["--db", "kitchen", "--drop", "--preserve-uuid"],
        &["--db", "odd"],
    ] {
        let ended = Restore::new(&restorer, &genuine("full_6.0")).args(arguments).run().ended(0);
        let notes = ended.notes().join("\n");
        assert!(!notes.contains("bypassDocumentValidation"), "{notes}");
    }
}

#[test]
fn a_run_that_removes_its_own_user_says_so_before() {
    let (server, _root) = guarded();
    let restorer = server.user("restorer", &[role("restore", "admin")]);
    let restore = |arguments: &[&str]| {
        Restore::new(&restorer, &genuine("full_6.0")).args(&["--dry-run"]).args(arguments).run()
    };
    let words = "--drop removes the user `restorer`, as whom this runs";
    says(&restore(&["--drop"]).ended(0), &[words]);
    assert!(!restore(&[]).ended(0).stdout.contains("as whom this runs"));
}

#[test]
fn the_data_of_time_series_takes_rights_of_its_own() {
    if is_before([5, 0]) {
        return;
    }
    let (server, root) = guarded();
    let roles = [role("readWrite", "kitchen"), role("dbAdmin", "kitchen")];
    let cook = server.user("cook", &roles);
    let arguments = ["--db", "kitchen", "--collection", "weather"];
    let restore = || Restore::new(&cook, &genuine("full_6.0")).args(&arguments).run();
    let refused = restore().ended(1);
    says(&refused, &["insert on `kitchen.system.buckets.weather`", "role: \"restore\""]);
    assert_eq!(databases(&root), [""; 0]);
    let grant = doc! { "grantRolesToUser": "cook", "roles": [role("restore", "admin")] };
    run(&root, "admin", grant);
    restore().ended(0);
}

#[test]
fn a_role_of_ones_own_is_judged_right_by_right() {
    let (server, root) = guarded();
    let privilege = doc! {
        "resource": { "db": "shop", "collection": "orders" },
        "actions": ["insert", "find", "listCollections"],
    };
    let list = doc! {
        "resource": { "db": "shop", "collection": "" }, "actions": ["listCollections"],
    };
    let made = doc! { "createRole": "narrow", "privileges": [privilege, list], "roles": [] };
    run(&root, "admin", made);
    let narrow = server.user("narrow", &[role("narrow", "admin")]);
    let orders = ["--db", "shop", "--collection", "orders"];
    let restore = |arguments: &[&str]| {
        Restore::new(&narrow, &genuine("full_6.0")).args(&orders).args(arguments).run()
    };
    says(&restore(&[]).ended(1), &["takes: createIndex on `shop.orders`"]);
    restore(&["--no-indexes"]).ended(0);
    let drops = restore(&["--drop", "--no-indexes"]).ended(1);
    says(&drops, &["takes: dropCollection on `shop.orders`"]);
    assert_eq!(restore(&["--no-indexes"]).balance(), [3000, 0, 0, 3000, 0], "it is still there");
}

#[test]
fn rights_that_are_not_enforced_are_not_asked_for() {
    let server = Server::private(&[]);
    let idle = doc! { "createUser": "idle", "pwd": PASSWORD, "roles": Vec::<Bson>::new() };
    server.run("admin", idle);
    let uri = server.uri().replacen("://", &format!("://idle:{PASSWORD}@"), 1);
    let uri = format!("{uri}/?authSource=admin");
    Restore::new(&uri, &genuine("full_6.0/shop")).run().ended(0);
}

/// What backups are looked at with: everything can be read and nothing written.
#[test]
fn a_server_that_takes_no_writes_is_refused_before_anything_is_touched() {
    let mut server = Server::private(&[]);
    let (shop, dump) = (genuine("full_6.0/shop"), Dump::new().with("more", "a", &numbered(5)));
    Restore::new(server.uri(), &shop).run().ended(0);
    let before = found(&server);
    server.mongod().terminate();
    server.restart_with(&["--queryableBackupMode"]);
    for (dump, arguments) in [
        (&*shop, &[][..]),
        (&*shop, &["--drop"]),
        (&*shop, &["--dry-run"]),
        (dump.path(), &["--write-concern", "1", "--journal", "off"]),
        (dump.path(), &["--journal", "on"]),
    ] {
        let refused = Restore::new(server.uri(), dump).args(arguments).run().ended(1);
        says(
            &refused,
            &["the server takes no writes: it is read-only", "without --queryableBackupMode"],
        );
        assert_eq!(refused.report, Value::Null);
    }
    assert_eq!(found(&server), before);
    assert_eq!(dump.files().len(), 1, "no ledger is left");
    verified(server.uri(), &shop);
}

#[test]
fn a_server_without_a_journal_is_told_and_served() {
    // Journals cannot be left out from 6.1 on.
    let server = Server::private(&["--nojournal"]);
    let dump = Dump::new().with("shop", "orders", &numbered(500));
    let restore = |arguments: &[&str]| {
        Restore::new(server.uri(), dump.path()).args(&["--drop"]).args(arguments).run()
    };
    let slow = restore(&[]).ended(0);
    says(&slow, &["runs without a journal (--nojournal)"]);
    for arguments in [&["--write-concern", "1", "--journal", "off"][..], &["--journal", "off"]] {
        let fast = restore(arguments).ended(0);
        assert_eq!(fast.balance(), [500, 500, 0, 0, 0]);
        assert!(is_before([5, 0]) || fast.notes().is_empty(), "{:?}", fast.notes());
    }
    restore(&["--write-concern", "1"]).ended(0);
    let refused = restore(&["--journal", "on"]).ended(1);
    says(&refused, &["refuses writes that wait for one", "give --journal off"]);
}

#[test]
fn a_user_who_may_not_see_the_command_line_hears_of_a_missing_journal_too() {
    let server = Server::private(&["--auth", "--nojournal"]);
    let writer = server.user("writer", &[role("readWrite", "shop")]);
    let dump = Dump::new().with("shop", "orders", &numbered(5));
    let restored = Restore::new(&writer, dump.path()).run().ended(0);
    says(&restored, &["runs without a journal (--nojournal)"]);
}

#[test]
fn databases_that_differ_in_case_alone_are_left_out_or_refused() {
    let server = Server::private(&[]);
    server.run("SHOP", doc! { "insert": "orders", "documents": [{ "_id": "mine" }] });
    let dump = Dump::new().with("shop", "orders", &numbered(3));
    let refused = Restore::new(server.uri(), dump.path()).run().ended(1);
    says(&refused, &["nothing in the dump can be restored", "the server has a database `SHOP`"]);
    assert_eq!(refused.report, Value::Null);
    let dump = dump.with("other", "things", &numbered(3));
    let planned = Restore::new(server.uri(), dump.path()).args(&["--dry-run"]).run().ended(0);
    says(&planned, &["1 collection to restore", "shop.orders: the server has a database `SHOP`"]);
    let restored = Restore::new(server.uri(), dump.path()).run().ended(1);
    assert_eq!(restored.balance(), [3, 3, 0, 0, 0]);
    assert_eq!(server.databases(), ["SHOP", "other"]);
}

#[test]
fn names_that_no_server_takes_are_told_before() {
    let server = Server::lease();
    let long = "x".repeat(250);
    let dump = Dump::new()
        .with("shop", "good", &numbered(3))
        .with("shop", "a%24b", &numbered(3))
        .with("longer", &long, &numbered(3));
    let restored = Restore::new(server.uri(), dump.path()).run().ended(1);
    assert_eq!(restored.balance(), [3, 3, 0, 0, 0]);
    says(&restored, &["it holds a dollar", "its name is too long"]);
    assert_eq!(server.databases(), ["shop"]);
}

/// Definitions, and whether a server of 6.0 takes them.
fn definitions() -> Vec<(Value, bool)> {
    vec![
        (json!({ "key": { "a": 1 }, "name": "a_1" }), true),
        (json!({ "key": { "b": 1, "c": 1 }, "name": "two", "expireAfterSeconds": 5 }), false),
        (json!({ "key": { "d": 1 }, "name": "minus", "expireAfterSeconds": -5 }), false),
        (json!({ "key": { "e": "nonsense" }, "name": "kind" }), false),
        (json!({ "key": { "f": "text" }, "name": "text" }), true),
        (json!({ "key": { "g": "text" }, "name": "other text" }), false),
        (json!({ "key": { "h": "hashed" }, "name": "hash", "unique": true }), false),
        (json!({ "key": { "$**": 1 }, "name": "wild", "unique": true }), false),
        (json!({ "key": { "i..j": 1 }, "name": "dots" }), false),
        (
            json!({ "key": { "k": 1 }, "name": "mixed", "sparse": true,
                 "partialFilterExpression": { "k": 1 } }),
            false,
        ),
        (json!({ "key": { "a": 1 }, "name": "hidden", "hidden": true }), false),
        (json!({ "key": { "l": 1 }, "name": "fine", "unique": true }), true),
    ]
}

#[test]
fn what_the_server_refuses_of_indexes_is_told_before_and_is_all_it_refuses() {
    let server = Server::private(&[]);
    let indexes: Vec<Value> = definitions().into_iter().map(|(index, _)| index).collect();
    let described = json!({ "indexes": indexes });
    let things: Vec<_> = [document(&[int("_id", 1), int("l", 1)])].into();
    let dump = Dump::new().with("shop", "things", &things).described("shop", "things", &described);
    let planned = Restore::new(server.uri(), dump.path()).args(&["--dry-run"]).run().ended(0);
    let restored = Restore::new(server.uri(), dump.path()).run().ended(1);
    assert_eq!(restored.report["totals"]["indexes_failed"], 0, "{}", restored.stderr);
    let state = found(&server);
    let built = state["shop.things"]["indexes"].as_array().unwrap();
    for (index, is_taken) in definitions() {
        let name = index["name"].as_str().unwrap();
        assert_eq!(built.iter().any(|one| one["name"] == name), is_taken, "{name}");
        let told = format!("index `{name}` of shop.things");
        for text in [&planned.stdout, &restored.stderr] {
            assert_eq!(text.contains(&told), !is_taken, "{name}: {text}");
        }
    }
}

#[test]
fn better_than_the_peer_a_collection_with_too_many_indexes_gets_those_that_fit() {
    let server = Server::private(&[]);
    server.run(
        "shop",
        doc! { "createIndexes": "things", "indexes": [{ "key": { "mine": 1 }, "name": "mine" }] },
    );
    let index = |number: i32| {
        let field = format!("f{number:02}");
        json!({ "key": { &field: 1 }, "name": field })
    };
    let described = json!({ "indexes": (0..63).map(index).collect::<Vec<_>>() });
    let dump =
        Dump::new().with("shop", "things", &numbered(3)).described("shop", "things", &described);
    let told = "index `f62` will fail beside those of the target: a collection has 64 indexes";
    let planned = Restore::new(server.uri(), dump.path()).args(&["--dry-run"]).run().ended(0);
    says(&planned, &[told]);
    let restored = Restore::new(server.uri(), dump.path()).run().ended(3);
    says(&restored, &[told]);
    assert_eq!(restored.report["totals"]["indexes_built"], 62);
    assert_eq!(restored.report["totals"]["indexes_failed"], 1);
}

#[test]
fn documents_that_the_server_will_delete_are_told() {
    let server = Server::private(&[]);
    let described = json!({ "indexes": [
        { "key": { "at": 1 }, "name": "at_1", "expireAfterSeconds": 3600 },
    ]});
    let dump = Dump::new().with("shop", "log", &numbered(3)).described("shop", "log", &described);
    let words = "the server deletes documents by their age, beginning within a minute after the \
                 restore, those of the dump as well: shop.log after 1 h (index `at_1`)";
    for arguments in [&["--dry-run"][..], &[]] {
        let restored = Restore::new(server.uri(), dump.path()).args(arguments).run().ended(0);
        says(&restored, &[words]);
    }
}
