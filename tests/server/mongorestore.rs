//! The binary under the name `mongorestore` against a server: exit codes and the last line.

use std::os::unix::fs::symlink;
use std::path::Path;

use crate::golden::{expected, found, only};
use crate::program::{Finished, Program};
use crate::support::dump::{Dump, genuine};
use crate::support::{Server, differences};
use mongodb::bson::doc;
use serde_json::json;

fn mongorestore(server: &Server, dump: &Path, arguments: &[&str]) -> Finished {
    let folder = tempfile::tempdir().unwrap();
    let link = folder.path().join("mongorestore");
    symlink(env!("CARGO_BIN_EXE_restorm"), &link).unwrap();
    Program::of(link.to_str().unwrap(), arguments).arg(server.uri()).arg(dump).run()
}

fn last_line(finished: &Finished) -> &str {
    finished.stderr.lines().last().unwrap().split_once('\t').unwrap().1
}

#[test]
fn an_old_script_restores_a_database() {
    let server = Server::lease();
    let arguments = [
        "-v",
        "--drop",
        "--numParallelCollections=2",
        "--numInsertionWorkersPerCollection",
        "4",
        "--writeConcern={w: 1}",
        "--bypassDocumentValidation",
        "--stopOnError",
        "-d",
        "shop",
    ];
    let finished = mongorestore(&server, &genuine("full_6.0"), &arguments);
    assert_eq!((finished.status, finished.stdout.as_str()), (Some(0), ""), "{}", finished.stderr);
    assert!(last_line(&finished).ends_with("successfully. 0 document(s) failed to restore."));
    assert_eq!(differences(&only(expected("full_6.0"), "shop"), &found(&server)), [""; 0]);
}

#[test]
fn refused_documents_end_with_zero_as_there() {
    let server = Server::lease();
    let dump = genuine("full_6.0/shop/orders.bson");
    assert_eq!(mongorestore(&server, &dump, &[]).status, Some(0));
    let again = mongorestore(&server, &dump, &[]);
    assert_eq!(again.status, Some(0), "{}", again.stderr);
    assert_eq!(
        last_line(&again),
        "0 document(s) restored successfully. 3000 document(s) failed to restore."
    );
    assert!(again.stderr.contains("\tcontinuing through error: E11000"), "{}", again.stderr);
    let finished = "\tfinished restoring `shop.orders` (0 documents, 3000 failures)";
    assert!(again.stderr.contains(finished), "{}", again.stderr);
}

#[test]
fn an_index_that_fails_ends_with_one_as_there() {
    let server = Server::lease();
    let dump = Dump::copy_of("full_6.0/shop");
    dump.edit("orders.metadata.json", |metadata| {
        let unique = json!({ "v": 2, "key": { "customer": -1 }, "name": "twice", "unique": true });
        metadata["indexes"].as_array_mut().unwrap().push(unique);
    });
    let finished = mongorestore(&server, dump.path(), &["--db=shop"]);
    assert_eq!(finished.status, Some(1), "{}", finished.stderr);
    let failed = "\tFailed: shop.orders: error creating index `twice`: ";
    assert!(finished.stderr.contains(failed), "{}", finished.stderr);
    assert!(last_line(&finished).ends_with("successfully. 0 document(s) failed to restore."));
}

/// The peer with 0 workers creates the collections, inserts nothing and exits with 0.
#[test]
fn better_than_the_peer_b2_no_insertion_workers_restore_everything_all_the_same() {
    let server = Server::lease();
    let arguments = ["--numInsertionWorkersPerCollection=0", "--batchSize=0", "-j", "0"];
    let finished = mongorestore(&server, &genuine("full_6.0/shop"), &arguments);
    assert_eq!(finished.status, Some(0), "{}", finished.stderr);
    assert_eq!(server.run("shop", doc! { "count": "orders" }).get_i32("n").unwrap(), 3000);
}

#[test]
fn a_server_that_stands_still_is_seen_every_three_seconds() {
    if crate::support::is_before([4, 4]) {
        // Commands cannot be held up there.
        return;
    }
    let server = Server::private(&["--setParameter", "enableTestCommands=1"]);
    let data =
        doc! { "failCommands": ["insert"], "blockConnection": true, "blockTimeMS": 7000_i32 };
    let held = doc! { "configureFailPoint": "failCommand", "mode": "alwaysOn", "data": data };
    server.run("admin", held);
    let dump = genuine("full_6.0/shop/orders.bson");
    let finished = mongorestore(&server, &dump, &["--drop"]);
    assert_eq!(finished.status, Some(0), "{}", finished.stderr);
    let bar = "\t[........................]  shop.orders  0B/430KB  (0.0%)\n";
    assert_eq!(finished.stderr.matches(bar).count(), 2, "{}", finished.stderr);
    let last = "\t[########################]  shop.orders  430KB/430KB  (100.0%)\n";
    assert_eq!(finished.stderr.matches(last).count(), 1, "{}", finished.stderr);
}

#[test]
fn what_is_dropped_and_what_is_added_to_is_said() {
    let server = Server::lease();
    let dump = genuine("full_6.0/shop/orders.bson");
    assert_eq!(mongorestore(&server, &dump, &[]).status, Some(0));
    for (arguments, expected) in [
        (&[][..], "\trestoring to existing collection `shop.orders` without dropping\n"),
        (&["--drop"], "\tdropping collection `shop.orders` before restoring\n"),
    ] {
        let finished = mongorestore(&server, &dump, arguments);
        assert!(finished.stderr.contains(expected), "{}", finished.stderr);
    }
}

#[test]
fn a_refusal_that_is_no_duplicate_and_no_validation_ends_with_one() {
    let server = Server::lease_databases(&["shop"]);
    for (refused, status) in [(doc! { "_id": 1 }, 0), (doc! { "_id": [1] }, 1)] {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("shop");
        std::fs::create_dir(&database).unwrap();
        let documents = [doc! { "_id": 1 }, refused, doc! { "_id": 2 }];
        let bytes: Vec<u8> = documents.iter().flat_map(|one| one.to_vec().unwrap()).collect();
        std::fs::write(database.join("items.bson"), bytes).unwrap();
        let finished = mongorestore(&server, folder.path(), &["--drop"]);
        assert_eq!(finished.status, Some(status), "{}", finished.stderr);
        let expected = "2 document(s) restored successfully. 1 document(s) failed to restore.";
        assert_eq!(last_line(&finished), expected);
    }
}
