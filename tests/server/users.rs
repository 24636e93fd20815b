//! Users and roles: merged by the server, reported by name, never left behind in part.

use crate::golden::{expected, found, only};
use crate::support::dump::{Dump, documents, genuine};
use crate::support::{
    Held, PASSWORD, Restore, Restored, Server, connect, differences, runtime, stored,
};
use mongodb::bson::{Document, doc};
use serde_json::{Value, json};

pub(crate) const BOTH: [&str; 2] = ["system.users", "system.roles"];

/// The documents of a collection of `admin`, in the order of their `_id`s.
pub(crate) fn kept(server: &Server, collection: &str) -> Vec<Document> {
    sorted(&stored(&server.client(), "admin", collection))
}

pub(crate) fn sorted(documents: &[Vec<u8>]) -> Vec<Document> {
    let mut documents: Vec<_> =
        documents.iter().map(|bytes| Document::from_reader(&bytes[..]).unwrap()).collect();
    documents.sort_by_key(|document| document.get_str("_id").unwrap().to_owned());
    documents
}

pub(crate) fn names(server: &Server, collection: &str) -> Vec<String> {
    let documents = kept(server, collection);
    documents.iter().map(|one| one.get_str("_id").unwrap().to_owned()).collect()
}

/// That nothing is left of the temporary collections.
#[track_caller]
pub(crate) fn is_clean(server: &Server) {
    let reply = server.run("admin", doc! { "listCollections": 1, "nameOnly": true });
    let text = reply.to_string();
    assert!(!text.contains("temp"), "{text}");
}

/// That no secret of the dump was shown.
#[track_caller]
pub(crate) fn is_discreet(restored: &Restored) {
    let report = restored.report.to_string();
    for secret in ["SCRAM", "Weu7rMNULZJF", "P1h3VOIet0IW", "storedKey"] {
        for text in [&restored.stdout, &restored.stderr, &report] {
            assert!(!text.contains(secret), "{secret} in {text}");
        }
    }
}

fn shop(server: &Server) -> Restore {
    Restore::new(server.uri(), &genuine("shop_users_6.0")).args(&["--db", "shop"])
}

fn fail_merge(server: &Server, mode: Document, code: i32) {
    server.run(
        "admin",
        doc! {
            "configureFailPoint": "failCommand", "mode": mode,
            "data": { "failCommands": ["_mergeAuthzCollections"], "errorCode": code },
        },
    );
}

const TEST_COMMANDS: [&str; 2] = ["--setParameter", "enableTestCommands=1"];

#[test]
fn a_database_is_restored_with_its_users_and_roles() {
    let server = Server::private(&[]);
    let restored = shop(&server).args(&["--restoreDbUsersAndRoles"]).run().ended(0);
    for collection in BOTH {
        let file = genuine(&format!("shop_users_6.0/shop/$admin.{collection}.bson"));
        assert_eq!(kept(&server, collection), sorted(&documents(&file)), "{collection}");
    }
    let users = &restored.report["users"];
    assert_eq!(users["state"], "done");
    assert_eq!(users["users"], json!(["shop.ann", "shop.bob"]));
    assert_eq!(users["roles"], json!(["shop.clerk"]));
    assert_eq!(differences(&only(expected("shop_users_6.0"), "shop"), &found(&server)), [""; 0]);
    let [read, ..] = restored.balance();
    assert_eq!(read, restored.balance()[1], "users are no documents");
    assert!(restored.stderr.contains("2 users and 1 role restored"), "{}", restored.stderr);
    is_clean(&server);
    is_discreet(&restored);
}

#[test]
fn a_whole_dump_brings_its_users_and_roles() {
    let server = Server::private(&[]);
    let held = Held::of(expected("full_6.0"));
    let restored = Restore::new(server.uri(), &genuine("full_6.0")).run().ended(held.status());
    for collection in BOTH {
        let file = genuine(&format!("full_6.0/admin/{collection}.bson"));
        assert_eq!(kept(&server, collection), sorted(&documents(&file)), "{collection}");
    }
    assert_eq!(restored.report["users"]["users"], json!(["shop.ann", "shop.bob", "admin.root"]));
    assert!(!held.is_whole() || restored.report["skipped"] == json!([]), "{}", restored.stderr);
    assert!(!restored.report["skipped"].to_string().contains("system.users"));
    is_clean(&server);
    is_discreet(&restored);
}

/// With `--drop` the users that the dump lacks are removed, the one among them as whom the restore
/// runs. So that comes last.
#[test]
fn a_restore_that_removes_its_own_user_comes_to_its_end() {
    let server = Server::private(&["--auth"]);
    let roles =
        ["restore", "readWriteAnyDatabase"].map(|role| doc! { "role": role, "db": "admin" });
    let uri = server.user("passing", &roles);
    let restored = Restore::new(&uri, &genuine("full_6.0")).args(&["--drop"]).run().ended(1);
    let held = Held::of(expected("full_6.0"));
    let totals = &restored.report["totals"];
    assert_eq!(totals["indexes_failed"], 0);
    assert!(!held.is_whole() || totals["collections_done"] == totals["collections"], "{totals}");
    // What was left to do was to drop these, which only that user could have done.
    assert!(
        restored.stderr.contains("`admin.tempusers` and `admin.temproles` could not be dropped")
    );
    let again = Restore::new(&uri, &genuine("full_6.0")).run();
    assert_eq!(again.status, Some(1), "{}", again.stderr);
    assert!(again.stderr.contains("Authentication failed"), "{}", again.stderr);
}

#[test]
fn the_database_admin_brings_all_users_and_nothing_else() {
    let server = Server::private(&[]);
    let dump = genuine("full_6.0");
    Restore::new(server.uri(), &dump).args(&["--db", "admin"]).run().ended(0);
    assert_eq!(names(&server, "system.users"), ["admin.root", "shop.ann", "shop.bob"]);
    assert!(server.databases().is_empty());
}

#[test]
fn a_single_database_comes_without_users_unless_asked() {
    let server = Server::private(&[]);
    Restore::new(server.uri(), &genuine("full_6.0")).args(&["--db", "shop"]).run().ended(0);
    shop(&server).args(&["--drop"]).run().ended(0);
    assert!(names(&server, "system.users").is_empty());
}

#[test]
fn without_drop_other_users_stay_and_with_it_those_of_the_database_go() {
    let server = Server::private(&[]);
    for (database, name) in [("shop", "zoe"), ("other", "max"), ("shop", "ann")] {
        server.run(database, doc! { "createUser": name, "pwd": PASSWORD, "roles": [] });
    }
    let flag = ["--restore-db-users-and-roles"];
    let restored = shop(&server).args(&flag).run().ended(0);
    assert_eq!(names(&server, "system.users"), ["other.max", "shop.ann", "shop.bob", "shop.zoe"]);
    let notes = restored.notes();
    let kept_one = notes.iter().find(|note| note.starts_with("1 user is already there")).unwrap();
    assert!(kept_one.ends_with("shop.ann"), "{notes:?}");
    assert!(kept(&server, "system.users")[1].get("customData").is_none(), "the server keeps it");
    shop(&server).args(&flag).args(&["--drop"]).run().ended(0);
    assert_eq!(names(&server, "system.users"), ["other.max", "shop.ann", "shop.bob"]);
    let ann = &kept(&server, "system.users")[1];
    assert_eq!(ann.get_document("customData").unwrap(), &doc! { "team": "till" });
}

#[test]
fn a_restored_user_can_log_in() {
    let source = Server::private(&[]);
    source.run("shop", doc! { "createUser": "eve", "pwd": PASSWORD, "roles": ["readWrite"] });
    let users = stored(&source.client(), "admin", "system.users");
    let version = [doc! { "_id": "authSchema", "currentVersion": 5 }.to_vec().unwrap()];
    let dump = Dump::new()
        .with("shop", "orders", &[doc! { "_id": 1 }.to_vec().unwrap()])
        .with("shop", "$admin.system.users", &users)
        .with("shop", "$admin.system.version", &version);
    let target = Server::private(&["--auth"]);
    let root = target.user("restorer", &[doc! { "role": "restore", "db": "admin" }]);
    let arguments = ["--db", "shop", "--restore-db-users-and-roles"];
    Restore::new(&root, dump.path()).args(&arguments).run().ended(0);
    let uri = target.uri().replacen("://", &format!("://eve:{PASSWORD}@"), 1);
    let shop = connect(&format!("{uri}/?authSource=shop")).database("shop");
    let orders = shop.collection::<Document>("orders");
    let count = runtime().block_on(async { orders.count_documents(doc! {}).await });
    assert_eq!(count.expect("eve may log in and read"), 1);
}

/// The peer merges the users of the database that is restored into, finds none, and exits with 0.
#[test]
fn better_than_the_peer_b7_users_are_not_lost_with_the_name_of_their_database() {
    let server = Server::private(&[]);
    let dump = genuine("shop_users_6.0/shop");
    let arguments = ["--db", "other", "--restoreDbUsersAndRoles"];
    let restored = Restore::new(server.uri(), &dump).args(&arguments).run().ended(1);
    assert!(restored.stderr.contains("belong to the database `shop`"), "{}", restored.stderr);
    assert!(server.databases().is_empty(), "nothing was begun");
}

#[test]
fn a_dump_without_users_is_refused_where_they_are_wanted() {
    let server = Server::lease();
    let arguments = ["--db", "shop", "--restore-db-users-and-roles"];
    let restored = Restore::new(server.uri(), &genuine("full_6.0")).args(&arguments).run().ended(1);
    assert!(restored.stderr.contains("no users or roles"), "{}", restored.stderr);
    assert!(server.databases().is_empty(), "nothing was begun");
}

#[test]
fn users_of_a_schema_the_server_does_not_know_are_refused_before_anything_else() {
    let server = Server::lease();
    let dump = Dump::copy_of("full_6.0");
    let version = |version: i32| doc! { "_id": "authSchema", "currentVersion": version };
    dump.write("admin/system.version.bson", &version(1).to_vec().unwrap());
    let old = Restore::new(server.uri(), dump.path()).run().ended(1);
    assert!(old.stderr.contains("(schema version 1)"), "{}", old.stderr);
    dump.write("admin/system.version.bson", &doc! { "_id": "other" }.to_vec().unwrap());
    let untold = Restore::new(server.uri(), dump.path()).run().ended(1);
    assert!(untold.stderr.contains("does not tell the schema"), "{}", untold.stderr);
    std::fs::remove_file(dump.file("admin/system.version.bson")).unwrap();
    let missing = Restore::new(server.uri(), dump.path()).run().ended(1);
    assert!(missing.stderr.contains("the dump has no system.version"), "{}", missing.stderr);
    assert!(server.databases().is_empty(), "nothing was begun");
}

#[test]
fn a_server_without_the_command_gets_the_documents_and_a_note() {
    let server = Server::private(&TEST_COMMANDS);
    fail_merge(&server, doc! { "times": 1 }, 59);
    let whole = Restore::new(server.uri(), &genuine("full_6.0")).run();
    let whole = Held::of(expected("full_6.0")).is_reached(whole, &found(&server));
    let notes = whole.notes();
    assert!(
        notes.iter().any(|note| note.contains("users and roles are not restored")),
        "{notes:?}"
    );
    assert!(whole.report["users"].is_null());
    fail_merge(&server, doc! { "times": 1 }, 59);
    let explicit = shop(&server).args(&["--drop", "--restore-db-users-and-roles"]).run().ended(1);
    assert!(explicit.stderr.contains("system.users.bson"), "{}", explicit.stderr);
    assert!(names(&server, "system.users").is_empty());
}

#[test]
fn a_user_without_the_right_is_told_which_role_it_needs() {
    let server = Server::private(&["--auth"]);
    let uri = server.user("app", &[doc! { "role": "readWriteAnyDatabase", "db": "admin" }]);
    let dump = genuine("shop_users_6.0");
    let arguments = ["--db", "shop", "--restore-db-users-and-roles"];
    let restored = Restore::new(&uri, &dump).args(&arguments).run().ended(1);
    assert!(restored.stderr.contains("grant it the role restore"), "{}", restored.stderr);
    let [read, inserted, ..] = restored.balance();
    assert_eq!((read, inserted), (inserted, read));
    assert!(read > 0, "the documents are restored all the same");
}

#[test]
fn nothing_stays_behind_where_the_merge_fails() {
    let server = Server::private(&TEST_COMMANDS);
    // The first one only asks whether the server could.
    fail_merge(&server, doc! { "skip": 1 }, 96);
    let restored = shop(&server).args(&["--restore-db-users-and-roles"]).run().ended(1);
    let users = &restored.report["users"];
    assert_eq!(users["state"], "failed");
    assert!(users["error"].as_str().unwrap().contains("server code 96"), "{users}");
    assert!(restored.stderr.contains("NOT restored"), "{}", restored.stderr);
    assert_eq!(differences(&only(expected("shop_users_6.0"), "shop"), &found(&server)), [""; 0]);
    is_clean(&server);
    is_discreet(&restored);
}

#[test]
fn what_a_killed_run_left_is_removed_first() {
    let server = Server::private(&[]);
    let stale = doc! { "_id": "shop.mallory", "user": "mallory", "db": "shop", "roles": [] };
    for collection in ["tempusers", "temproles", "mine"] {
        server.run("admin", doc! { "insert": collection, "documents": [stale.clone()] });
    }
    let arguments = ["--restore-db-users-and-roles", "--tempUsersColl", "mine"];
    shop(&server).args(&arguments).run().ended(0);
    assert_eq!(names(&server, "system.users"), ["shop.ann", "shop.bob"]);
    let there = server.run("admin", doc! { "listCollections": 1, "nameOnly": true }).to_string();
    assert!(!there.contains("\"mine\"") && !there.contains("temproles"), "{there}");
    assert!(there.contains("tempusers"), "it was not this run's");
}

#[test]
fn a_broken_connection_is_survived() {
    let server = Server::private(&TEST_COMMANDS);
    server.run(
        "admin",
        doc! {
            "configureFailPoint": "failCommand", "mode": { "times": 3 },
            "data": {
                "failCommands": ["insert", "_mergeAuthzCollections"], "closeConnection": true,
                "appName": "restorm", "namespace": "admin.tempusers",
            },
        },
    );
    let restored = shop(&server).args(&["--restore-db-users-and-roles"]).run().ended(0);
    assert_eq!(names(&server, "system.users"), ["shop.ann", "shop.bob"]);
    assert_ne!(restored.retries(), 0);
    is_clean(&server);
}

#[test]
fn a_dry_run_names_them_and_touches_nothing() {
    let server = Server::private(&[]);
    let restored = Restore::new(server.uri(), &genuine("full_6.0")).args(&["--dry-run"]).run();
    assert_eq!(restored.status, Some(0), "{}", restored.stderr);
    assert!(
        restored.stdout.contains("users: shop.ann, shop.bob, admin.root"),
        "{}",
        restored.stdout
    );
    assert_eq!(restored.report, Value::Null);
    assert!(names(&server, "system.users").is_empty());
    is_discreet(&restored);
}
