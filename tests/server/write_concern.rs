//! What the server is asked to confirm, and with how many commands.

use crate::support::dump::{Dump, genuine};
use crate::support::raw::{document, int, string};
use crate::support::{Restore, Restored, Server, is_before};
use mongodb::bson::{Document, doc};

/// Restores the orders, which is 3000 documents, and returns the insert commands that the server
/// got.
fn inserts(server: &Server, uri: &str, arguments: &[&str]) -> (Vec<Document>, Restored) {
    server.run("shop", doc! { "profile": 2 });
    let dump = genuine("orders_stdout.bson");
    let target = ["--db", "shop", "--collection", "orders"];
    let restored = Restore::new(uri, &dump).args(&target).args(arguments).run().ended(0);
    let mut commands = server.profiled("shop");
    commands.retain(is_insert);
    (commands, restored)
}

/// Whether it is an insert command; the profiler keeps only the beginning of a large one.
fn is_insert(command: &Document) -> bool {
    command.contains_key("insert")
        || command.get_str("$truncated").is_ok_and(|text| text.starts_with("{ insert: "))
}

#[track_caller]
fn is_asked_for(arguments: &[&str], query: &str, expected: &Document) {
    let server = Server::lease();
    let uri = format!("{}/{query}", server.uri());
    let arguments = [arguments, &["--batch-documents", "100"]].concat();
    let (inserts, _) = inserts(&server, &uri, &arguments);
    assert_eq!(inserts.len(), 30);
    for insert in inserts {
        assert_eq!(insert.get_document("writeConcern").unwrap(), expected, "{arguments:?}");
        assert!(insert.get_bool("bypassDocumentValidation").unwrap());
        assert!(!insert.get_bool("ordered").unwrap());
    }
}

/// A majority, with the journal where a standalone server would not wait for it by itself.
fn majority() -> Document {
    if is_before([5, 0]) {
        doc! { "w": "majority", "j": true }
    } else {
        doc! { "w": "majority" }
    }
}

/// What is asked for where acknowledged documents may be lost: a standalone server before 4.4 cannot
/// tell whether they were, and is asked for more.
fn volatile(asked: Document) -> Document {
    if is_before([4, 4]) {
        doc! { "w": "majority", "j": true }
    } else {
        asked
    }
}

#[test]
fn a_majority_unless_told_otherwise() {
    is_asked_for(&[], "", &majority());
}

#[test]
fn a_number() {
    is_asked_for(&["--write-concern", "1"], "", &volatile(doc! { "w": 1_i64 }));
}

#[test]
fn the_forms_of_mongorestore() {
    let concern = "{w: 1, j: true, wtimeout: 5000}";
    let expected = doc! { "w": 1_i64, "j": true, "wtimeout": 5000_i64 };
    is_asked_for(&["--writeConcern", concern], "", &expected);
}

#[test]
fn the_one_in_the_connection_string() {
    is_asked_for(&[], "?w=1&journal=true", &doc! { "w": 1_i64, "j": true });
}

#[test]
fn the_option_before_the_connection_string() {
    is_asked_for(&["--write-concern", "majority"], "?w=1", &majority());
}

#[test]
fn journal_on() {
    is_asked_for(&["--journal", "on"], "", &doc! { "w": "majority", "j": true });
}

#[test]
fn journal_off() {
    let arguments = ["--write-concern", "1", "--journal", "off"];
    is_asked_for(&arguments, "", &volatile(doc! { "w": 1_i64, "j": false }));
}

#[test]
fn each_batch_is_one_insert_command() {
    let server = Server::lease();
    for (arguments, expected) in [(&[][..], 2), (&["--batch-documents", "250"][..], 12)] {
        let (inserts, restored) = inserts(&server, server.uri(), arguments);
        assert_eq!(inserts.len(), expected, "{arguments:?}");
        assert_eq!(restored.report["totals"]["batches"], expected);
        server.run("shop", doc! { "dropDatabase": 1 });
    }
}

#[test]
fn a_batch_of_bytes_holds_no_more_than_that() {
    let server = Server::lease();
    // A batch of 4 KiB takes 18 of these documents with their keys, or the long one alone.
    let small = |id| document(&[int("_id", id), string("s", &"x".repeat(200))]);
    let long = document(&[int("_id", 100), string("s", &"x".repeat(10_000))]);
    let mut documents: Vec<_> = (0..50).map(small).collect();
    documents.insert(30, long);
    assert_eq!(documents[0].len(), 222);
    let dump = Dump::new().with("shop", "orders", &documents);
    server.run("shop", doc! { "profile": 2 });
    let restored =
        Restore::new(server.uri(), dump.path()).args(&["--batch-bytes", "4K"]).run().ended(0);
    let inserts = server.profiled("shop").iter().filter(|command| is_insert(command)).count();
    // 18 + 12 before the long one, itself, 18 + 2 after it.
    assert_eq!(inserts, 5);
    assert_eq!(restored.report["totals"]["batches"], 5);
    assert_eq!(restored.balance(), [51, 51, 0, 0, 0]);
}

#[test]
fn batches_of_one_document() {
    let server = Server::lease();
    server.run("shop", doc! { "profile": 2 });
    let arguments = ["--batch-documents", "1", "--db", "shop", "--collection", "customers"];
    let dump = genuine("full_6.0");
    let restored = Restore::new(server.uri(), &dump).args(&arguments).run().ended(0);
    let inserts = server.profiled("shop").iter().filter(|command| is_insert(command)).count();
    assert_eq!(inserts, 500);
    assert_eq!(restored.report["totals"]["batches"], 500);
}
