//! Restores into collections that have documents with the same `_id`s, in every mode.

use crate::support::dump::Dump;
use crate::support::{Restore, Restored, Server, is_before, lacks, stored};
use bson::{Document, Timestamp, doc};

fn dump(documents: &[Document]) -> Dump {
    let encoded: Vec<_> = documents.iter().map(|one| one.to_vec().expect("encodes")).collect();
    Dump::new().with("shop", "items", &encoded)
}

fn of_dump() -> Vec<Document> {
    let zero = Timestamp { time: 0, increment: 0 };
    vec![
        doc! { "_id": 1, "a": "new" },
        doc! { "_id": 2, "a": "same" },
        doc! { "_id": 3, "a": "fresh" },
        doc! { "_id": 4, "t": zero },
        doc! { "_id": 5, "t": zero },
        sixth(),
    ]
}

/// A document whose names look like paths and operators, as far as the server stores such ones.
fn sixth() -> Document {
    let mut sixth = doc! { "_id": 6, "a.b": 1 };
    if !is_before([5, 0]) {
        sixth.insert("$c", 2);
    }
    sixth
}

/// A server where 1, 2 and 4 are there, with a field that the dump does not have in two of them.
fn server() -> Server {
    let server = Server::lease_databases(&["shop"]);
    let there = [
        doc! { "_id": 1, "a": "old", "b": 7 },
        doc! { "_id": 2, "a": "same" },
        doc! { "_id": 4, "b": 7 },
    ];
    server.run("shop", doc! { "insert": "items", "documents": there.to_vec() });
    server
}

fn restore(server: &Server, dump: &Dump, arguments: &[&str]) -> Restored {
    Restore::new(server.uri(), dump.path()).args(arguments).run()
}

fn held(server: &Server) -> Vec<Document> {
    let mut all: Vec<Document> = stored(&server.client(), "shop", "items")
        .iter()
        .map(|bytes| bson::deserialize_from_slice(bytes).expect("decodes"))
        .collect();
    all.sort_by_key(|one| one.get_i32("_id").expect("a number"));
    all
}

/// Read, inserted, replaced, merged, unchanged, already there, rejected.
fn counted(restored: &Restored) -> [u64; 7] {
    ["read", "inserted", "replaced", "merged", "unchanged", "already_there", "rejected"]
        .map(|name| restored.report["balance"][name].as_u64().expect("a number"))
}

#[test]
fn insert_refuses_what_is_there() {
    let (server, dump) = (server(), dump(&of_dump()));
    let restored = restore(&server, &dump, &[]);
    assert_eq!(restored.status, Some(3), "{}", restored.stderr);
    assert_eq!(counted(&restored), [6, 3, 0, 0, 0, 0, 3]);
}

#[test]
fn skip_leaves_what_is_there_alone() {
    for more in [&[][..], &["--maintain-insertion-order"]] {
        let (server, dump) = (server(), dump(&of_dump()));
        let rejects = tempfile::tempdir().expect("a folder");
        let folder = rejects.path().join("rejects");
        let arguments = [&["--mode", "skip", "--rejects", folder.to_str().expect("UTF-8")], more];
        let restored = restore(&server, &dump, &arguments.concat());
        assert_eq!(restored.status, Some(0), "{}", restored.stderr);
        assert_eq!(counted(&restored), [6, 3, 0, 0, 0, 3, 0]);
        assert_eq!(held(&server)[0], doc! { "_id": 1, "a": "old", "b": 7 });
        assert!(!folder.join("shop/items.bson").exists());
    }
}

#[test]
fn skip_still_rejects_for_another_unique_index() {
    let (server, dump) = (server(), dump(&[doc! { "_id": 9, "a": "old" }]));
    let index = doc! { "key": { "a": 1 }, "name": "a_1", "unique": true };
    server.run("shop", doc! { "createIndexes": "items", "indexes": [
        doc! { "partialFilterExpression": { "a": "old" } }.into_iter().chain(index).collect::<Document>(),
    ] });
    let restored = restore(&server, &dump, &["--mode", "skip"]);
    assert_eq!(restored.status, Some(3), "{}", restored.stderr);
    assert_eq!(counted(&restored), [1, 0, 0, 0, 0, 0, 1]);
}

#[test]
fn replace_puts_documents_in_the_place_of_stored_ones() {
    for more in [&[][..], &["--maintain-insertion-order"], &["--batch-documents", "1"]] {
        let (server, dump) = (server(), dump(&of_dump()));
        let restored =
            restore(&server, &dump, &[&["--mode", "replace", "--verify"], more].concat());
        assert_eq!(restored.status, Some(0), "{}", restored.stderr);
        assert_eq!(counted(&restored), [6, 3, 2, 0, 1, 0, 0]);
        assert_eq!(held(&server), of_dump());
        let again = restore(&server, &dump, &[&["--mode", "replace"], more].concat());
        assert_eq!(counted(&again), [6, 0, 0, 0, 6, 0, 0], "{}", again.stderr);
    }
}

#[test]
fn merge_keeps_the_other_fields_of_stored_documents() {
    let (server, dump) = (server(), dump(&of_dump()));
    let restored = restore(&server, &dump, &["--mode", "merge"]);
    assert_eq!(restored.status, Some(0), "{}", restored.stderr);
    assert_eq!(counted(&restored), [6, 3, 0, 2, 1, 0, 0]);
    let mut expected = of_dump();
    expected[0].insert("b", 7);
    let zero = expected[3].remove("t").expect("a timestamp");
    expected[3].extend(doc! { "b": 7, "t": zero });
    assert_eq!(held(&server), expected);
}

#[test]
fn duplicates_within_the_dump_and_documents_without_an_id_are_counted() {
    let twice = [doc! { "_id": 1, "a": 1 }, doc! { "_id": 1, "a": 2 }, doc! { "x": 1 }];
    for (mode, counts) in [("replace", [3, 2, 1, 0, 0, 0, 0]), ("merge", [3, 2, 0, 1, 0, 0, 0])] {
        let (server, dump) = (Server::lease_databases(&["shop"]), dump(&twice));
        let restored = restore(&server, &dump, &["--mode", mode, "--maintain-insertion-order"]);
        assert_eq!(restored.status, Some(0), "{}", restored.stderr);
        assert_eq!(counted(&restored), counts);
        let count = server.run("shop", doc! { "count": "items", "query": { "a": 2 } });
        assert_eq!(count.get_i32("n").expect("a count"), 1);
    }
}

#[test]
fn a_document_of_the_greatest_size_is_replaced_and_merged() {
    const MAX: usize = 16 * 1024 * 1024;
    let overhead = doc! { "_id": 1, "p": "" }.to_vec().expect("encodes").len();
    for (mode, counts) in [("replace", [1, 0, 1, 0, 0, 0, 0]), ("merge", [1, 0, 0, 1, 0, 0, 0])] {
        let large = doc! { "_id": 1, "p": "x".repeat(MAX - overhead) };
        let (server, dump) = (server(), dump(&[large]));
        server.run(
            "shop",
            doc! { "update": "items", "updates": [
                { "q": { "_id": 1 }, "u": { "_id": 1, "p": 0 } },
            ] },
        );
        let restored = restore(&server, &dump, &["--mode", mode]);
        assert_eq!(restored.status, Some(0), "{mode}: {}", restored.stderr);
        assert_eq!(counted(&restored), counts);
    }
}

#[test]
fn a_validator_may_refuse_a_replacement() {
    let (server, dump) = (server(), dump(&of_dump()));
    server.run("shop", doc! { "collMod": "items", "validator": { "a": { "$ne": "new" } } });
    let arguments = ["--mode", "replace", "--validate-documents"];
    let restored = restore(&server, &dump, &arguments);
    assert_eq!(restored.status, Some(3), "{}", restored.stderr);
    assert_eq!(counted(&restored), [6, 3, 1, 0, 1, 0, 1]);
    assert_eq!(restored.report["collections"][0]["failures"][0]["code"], 121);
    assert_eq!(held(&server)[0].get_str("a").expect("text"), "old");
}

#[test]
fn verification_of_what_rightly_differs_is_refused() {
    let (server, dump) = (server(), dump(&of_dump()));
    for mode in ["skip", "merge"] {
        let refused = restore(&server, &dump, &["--mode", mode, "--verify"]);
        assert_eq!(refused.status, Some(2), "{}", refused.stderr);
    }
    assert_eq!(held(&server).len(), 3);
}

/// A server of its own where this happens to `update` commands, and that stores the first half of
/// these documents with another content.
fn failing(data: Document, mode: impl Into<bson::Bson>, documents: i32) -> (Server, Dump) {
    let server = Server::private(&["--setParameter", "enableTestCommands=1"]);
    let there: Vec<_> = (0..documents / 2).map(|id| doc! { "_id": id, "a": "old" }).collect();
    server.run("shop", doc! { "insert": "items", "documents": there });
    let all = (0..documents).map(|id| doc! { "_id": id, "a": "new" });
    let point = doc! { "configureFailPoint": "failCommand", "mode": mode.into(), "data": data };
    server.run("admin", point);
    (server, dump(&all.collect::<Vec<_>>()))
}

#[test]
fn a_replacement_that_is_killed_goes_on_in_its_mode() {
    if lacks("fail point that blocks", [4, 4]) {
        return;
    }
    let data = doc! { "failCommands": ["update"], "blockConnection": true, "blockTimeMS": 50 };
    let (server, dump) = failing(data, "alwaysOn", 3000);
    let replacing = ["--mode", "replace", "--batch-documents", "100", "--workers", "1"];
    let running = Restore::new(server.uri(), dump.path()).args(&replacing).start();
    let replaced = doc! { "count": "items", "query": { "a": "new" } };
    while server.run("shop", replaced.clone()).get_i32("n").expect("a count") < 300 {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    std::thread::sleep(std::time::Duration::from_millis(300));
    running.signal("KILL");
    assert_eq!(running.finish().status, None, "it was done before");
    let refused = restore(&server, &dump, &["--resume"]);
    assert_eq!(refused.status, Some(1), "{}", refused.stderr);
    assert!(refused.stderr.contains("begun with --mode replace"), "{}", refused.stderr);
    let restored = restore(&server, &dump, &[&replacing[..], &["--resume"]].concat());
    assert_eq!(restored.status, Some(0), "{}", restored.stderr);
    let [read, inserted, replaced, merged, unchanged, already_there, rejected] = counted(&restored);
    assert_eq!((read, merged, already_there, rejected), (3000, 0, 0, 0));
    assert_eq!(inserted + replaced + unchanged, 3000);
    // One batch was on its way, and acknowledged ones may be sent again that were not noted yet.
    assert!(replaced >= 900 && unchanged <= 600, "{replaced} replaced, {unchanged} unchanged");
    assert!(restored.report["totals"]["documents_carried"].as_u64().expect("a number") > 0);
    assert!(held(&server).iter().all(|one| one.get_str("a").is_ok_and(|a| a == "new")));
    assert_eq!(held(&server).len(), 3000);
}

#[test]
fn documents_whose_answer_was_lost_are_written_again_in_every_mode() {
    if lacks("fail point that blocks", [4, 4]) {
        return;
    }
    for (mode, counted_as) in [("replace", 2), ("merge", 3)] {
        let data = doc! { "failCommands": ["update"], "closeConnection": true };
        let (server, dump) = failing(data, doc! { "times": 3 }, 400);
        let arguments = ["--mode", mode, "--batch-documents", "50"];
        let restored = restore(&server, &dump, &arguments);
        assert_eq!(restored.status, Some(0), "{mode}: {}", restored.stderr);
        let counts = counted(&restored);
        assert_eq!(counts[0], 400, "{mode}");
        assert_eq!(counts[1] + counts[counted_as] + counts[4], 400, "{mode}: {counts:?}");
        assert!(restored.report["totals"]["retries"].as_u64().expect("a number") > 0, "{mode}");
        assert!(
            held(&server).iter().all(|one| one.get_str("a").is_ok_and(|a| a == "new")),
            "{mode}"
        );
        assert_eq!(held(&server).len(), 400, "{mode}");
    }
}
