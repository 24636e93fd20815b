//! What every kind of entry means.

use bson::{Bson, Document, RawDocumentBuf, Timestamp, doc};

use super::*;
use crate::dump::IndexSpec;
use crate::dump::inventory::{CollectionKind, Compression, DataFile};
use crate::plan::indexes::IndexPlan;
use crate::plan::tests::entry as dumped;
use crate::plan::{ExistingPolicy, Selection};

fn oplog() -> OplogPlan {
    OplogPlan {
        origin: Origin::File(DataFile {
            path: "oplog.bson".into(),
            compression: Compression::None,
            bytes: 0,
        }),
        limit: None,
        uuids: Uuids::Removed,
        indexes: IndexPolicy::Build,
        index_fixes: IndexFixes::default(),
        facts: ServerFacts::null(),
        validation: Validation::Bypassed,
    }
}

/// A plan of `shop.orders` with an index, which expires after an hour.
fn plan() -> RestorePlan {
    let mut orders = dumped("orders", CollectionKind::Collection, 7);
    let metadata = crate::dump::CollectionMetadata {
        options: doc! { "expireAfterSeconds": 3600 },
        indexes: vec![IndexSpec::from(doc! { "v": 2, "key": { "n": 1 }, "name": "n_1" })],
        ..Default::default()
    };
    orders.metadata = Some(metadata);
    let inventory =
        crate::dump::Inventory { entries: vec![orders], ..crate::dump::Inventory::default() };
    let selection = Selection { existing: ExistingPolicy::Add, ..Selection::default() };
    crate::plan::plan(&inventory, selection, &crate::facts::ServerFacts::null())
}

fn replay() -> Replay {
    Replay::new(&oplog(), &plan())
}

fn raw(document: &Document) -> RawDocumentBuf {
    RawDocumentBuf::try_from(document).expect("encodes")
}

fn at(second: u32) -> Timestamp {
    Timestamp { time: second, increment: 1 }
}

fn entry(operation: &str, namespace: &str, object: Document) -> Document {
    doc! { "ts": at(1), "op": operation, "ns": namespace, "o": object }
}

fn command(object: Document) -> Document {
    entry("c", "shop.$cmd", object)
}

impl Replay {
    /// What is applied for an entry.
    fn applied(&mut self, entry: &Document) -> Vec<Document> {
        let taken = self.take(&raw(entry)).unwrap_or_else(|error| panic!("{entry}: {error}"));
        let operations = taken.operations.into_iter();
        operations.map(|one| Document::try_from(one.document).expect("well formed")).collect()
    }

    fn refused(&mut self, entry: &Document) -> String {
        self.take(&raw(entry)).expect_err("it is refused").to_string()
    }

    fn indexes_of(self, collection: &str) -> Vec<IndexPlan> {
        let namespace = Namespace::new("shop", collection);
        let mut all = self.into_catalogue().into_collections();
        all.find(|(name, _)| *name == namespace).map(|(_, found)| found.indexes).unwrap_or_default()
    }

    fn names_of(self, collection: &str) -> Vec<String> {
        self.indexes_of(collection).into_iter().map(|index| index.name).collect()
    }
}

#[test]
fn what_the_source_does_for_itself_is_left_out() {
    for skipped in [
        entry("n", "", doc! { "msg": "noop" }),
        doc! { "ts": at(1), "op": "n", "ns": "" },
        entry("km", "shop.orders", doc! {}),
        entry("ci", "shop.orders", doc! {}),
        entry("i", "config.transactions", doc! { "_id": 1 }),
        entry("u", "config.shards", doc! { "_id": 1 }),
        entry("c", "config.$cmd", doc! { "create": "x" }),
        entry("i", "__mdb_internal_x.y", doc! {}),
        entry("u", "admin.system.version", doc! { "_id": "featureCompatibilityVersion" }),
        command(doc! { "startIndexBuild": "orders" }),
        command(doc! { "abortIndexBuild": "orders" }),
        command(doc! { "setMultikeyMetadata": "orders" }),
        command(doc! { "dropIdent": "x" }),
        command(doc! { "dbCheck": "orders" }),
    ] {
        let taken = replay().take(&raw(&skipped)).expect("taken");
        assert_eq!(taken, Taken::left_out(), "{skipped}");
    }
}

#[test]
fn writes_are_sent_with_the_fields_that_say_what_they_do() {
    let object = doc! { "_id": 1, "ui": "kept", "b": { "ts": 1 } };
    let entry = doc! {
        "lsid": { "id": 1 }, "txnNumber": 5_i64, "op": "i", "ns": "shop.orders", "ui": "uuid",
        "o": object.clone(), "o2": { "_id": 1 }, "stmtId": 0, "ts": at(1), "t": 1_i64,
        "v": 2_i64, "wall": 3, "prevOpTime": {}, "b": true, "h": 1_i64, "fromMigrate": true,
    };
    let expected = doc! {
        "lsid": { "id": 1 }, "txnNumber": 5_i64, "op": "i", "ns": "shop.orders",
        "o": object, "o2": { "_id": 1 }, "ts": at(1), "t": 1_i64, "v": 2_i64, "prevOpTime": {},
    };
    assert_eq!(replay().applied(&entry), [expected]);
    let kept = OplogPlan { uuids: Uuids::Kept, ..oplog() };
    let kept = Replay::new(&kept, &plan()).applied(&entry);
    assert_eq!(kept[0].get_str("ui").ok(), Some("uuid"));
}

/// A server of 4.2 changes its views only so.
#[test]
fn changes_of_views_travel_alone_and_bare() {
    let changes = [
        doc! { "op": "i", "ns": "shop.system.views", "o": { "_id": "shop.few" } },
        doc! { "op": "u", "ns": "shop.system.views", "o": { "$v": 1 }, "o2": { "_id": "shop.few" } },
        doc! { "op": "d", "ns": "shop.system.views", "o": { "_id": "shop.few" } },
    ];
    for change in changes {
        let mut entry = doc! { "ts": at(1), "t": 1_i64, "v": 2_i64, "ui": "uuid", "wall": 3 };
        entry.extend(change.clone());
        let taken = replay().take(&raw(&entry)).expect("taken");
        let expected = Operation { document: raw(&change), is_write: false };
        assert_eq!((taken.operations, taken.counted), (vec![expected], 1));
    }
}

/// A string that is not UTF-8, a deprecated type and odd lengths pass as they are.
#[test]
fn what_is_written_is_not_decoded() {
    fn document(fields: &[(u8, &str, &[u8])]) -> Vec<u8> {
        let field = |(kind, name, value): &(u8, &str, &[u8])| {
            [&[*kind], name.as_bytes(), &[0], *value].concat()
        };
        let body: Vec<u8> = fields.iter().flat_map(field).collect();
        let length = u32::try_from(body.len() + 5).expect("small").to_le_bytes();
        [&length[..], &body, &[0]].concat()
    }
    let object = document(&[
        (2, "s", b"\x03\0\0\0\xff\xfe\0"),
        (0x0E, "symbol", b"\x02\0\0\0y\0"),
        (6, "undefined", b""),
    ]);
    let whole =
        document(&[(2, "op", b"\x02\0\0\0i\0"), (2, "ns", b"\x04\0\0\0a.b\0"), (3, "o", &object)]);
    let entry = RawDocument::from_bytes(&whole).expect("a document");
    let taken = replay().take(entry).expect("taken");
    assert_eq!(taken.operations[0].document.as_bytes(), whole);
    assert!(taken.operations[0].is_write);
}

#[test]
fn the_limit_itself_is_not_replayed() {
    let limited = Replay::new(&OplogPlan { limit: Some(at(5)), ..oplog() }, &plan());
    let ends = |second| limited.ends_before(&raw(&doc! { "ts": at(second) }));
    assert_eq!([ends(4), ends(5), ends(6)], [false, true, true]);
    assert!(!limited.ends_before(&raw(&doc! {})));
    assert!(!replay().ends_before(&raw(&doc! { "ts": at(u32::MAX) })));
}

fn of_transaction(second: u32, number: i64, object: Document) -> Document {
    doc! {
        "ts": at(second), "t": 3_i64, "op": "c", "ns": "admin.$cmd", "o": object,
        "lsid": { "id": 1 }, "txnNumber": number,
    }
}

fn applies(id: i32, more: Document) -> Document {
    let inner = doc! { "op": "i", "ns": "shop.orders", "ui": "uuid", "o": { "_id": id } };
    let mut object = doc! { "applyOps": [inner] };
    object.extend(more);
    object
}

fn written(second: u32, id: i32) -> Document {
    doc! { "op": "i", "ns": "shop.orders", "o": { "_id": id }, "ts": at(second), "t": 3_i64 }
}

#[test]
fn transactions_wait_for_their_commit() {
    let mut replay = replay();
    assert_eq!(replay.applied(&of_transaction(1, 1, applies(1, doc! {}))), [written(1, 1)]);
    for (second, number, object) in [
        (2, 2, applies(2, doc! { "prepare": true })),
        (3, 3, applies(3, doc! { "partialTxn": true })),
        (4, 4, applies(4, doc! { "prepare": true })),
        (5, 4, doc! { "abortTransaction": 1 }),
        (6, 4, doc! { "commitTransaction": 1 }),
        (7, 5, applies(5, doc! { "partialTxn": true })),
        (8, 5, applies(6, doc! { "prepare": true })),
    ] {
        assert!(replay.applied(&of_transaction(second, number, object)).is_empty());
    }
    assert_eq!(replay.open_transactions(), 3);
    let last = replay.applied(&of_transaction(9, 3, applies(7, doc! { "count": 2 })));
    assert_eq!(last, [written(3, 3), written(9, 7)], "each with the time of its own entry");
    let commit = |number| of_transaction(10, number, doc! { "commitTransaction": 1 });
    assert_eq!(replay.applied(&commit(2)), [written(2, 2)]);
    assert_eq!(replay.applied(&commit(5)), [written(7, 5), written(8, 6)]);
    assert!(replay.applied(&commit(5)).is_empty(), "only once");
    assert_eq!(replay.open_transactions(), 0);
}

#[test]
fn transactions_of_different_sessions_are_kept_apart() {
    let mut replay = replay();
    let mut other = of_transaction(1, 1, applies(1, doc! { "prepare": true }));
    replay.applied(&other);
    other.insert("lsid", doc! { "id": 2 });
    replay.applied(&other);
    assert_eq!(replay.open_transactions(), 2);
    let commit = of_transaction(2, 1, doc! { "commitTransaction": 1 });
    assert_eq!(replay.applied(&commit).len(), 1);
    assert_eq!(replay.open_transactions(), 1);
}

/// What waits for a commit is bounded, and what waits no longer does not count.
#[test]
fn transactions_that_wait_take_a_bounded_amount_of_memory() {
    let mut replay = replay();
    replay.transactions = Transactions::within(2000);
    let large = |second, number| {
        let inner = doc! { "op": "i", "ns": "shop.orders", "o": { "p": "x".repeat(800) } };
        of_transaction(second, number, doc! { "applyOps": [inner], "partialTxn": true })
    };
    for number in 1..20 {
        replay.applied(&large(1, number));
        replay.applied(&large(2, number));
        let end = if number % 2 == 0 { "abortTransaction" } else { "commitTransaction" };
        replay.applied(&of_transaction(3, number, doc! { end: 1 }));
    }
    replay.applied(&large(4, 20));
    replay.applied(&large(5, 21));
    let error = replay.refused(&large(6, 22));
    assert!(error.contains("wait for their commit"), "{error}");
}

#[test]
fn inserts_of_many_documents_at_once_are_no_transaction() {
    let mut vectored = of_transaction(1, 1, applies(1, doc! { "partialTxn": true }));
    vectored.insert("multiOpType", 1);
    let applied = replay().applied(&vectored);
    assert_eq!(applied, [doc! { "op": "i", "ns": "shop.orders", "o": { "_id": 1 } }]);
}

#[test]
fn operations_done_together_are_taken_one_by_one() {
    let write = |id| entry("i", "shop.orders", doc! { "_id": id });
    let noop = entry("n", "", doc! {});
    let nested = command(doc! { "applyOps": [write(2)] });
    let entry = command(doc! { "applyOps": [write(1), noop, nested] });
    let taken = replay().take(&raw(&entry)).expect("taken");
    assert_eq!((taken.operations.len(), taken.counted, taken.left_out), (2, 4, 1));
    let deep = (0..20).fold(write(1), |inner, _| command(doc! { "applyOps": [inner] }));
    assert!(replay().refused(&deep).contains("nested"));
}

#[test]
fn index_commands_change_the_catalogue_and_nothing_else() {
    let mut replay = replay();
    for (object, expected) in [
        (doc! { "createIndexes": "orders", "v": 2, "key": { "a": 1 }, "name": "a_1" }, 2),
        (doc! { "createIndexes": "orders", "v": 2, "key": { "a": -1 }, "name": "a_1" }, 2),
        (doc! { "createIndexes": "orders", "v": 2, "key": { "_id": 1 }, "name": "_id_" }, 2),
        (
            doc! { "commitIndexBuild": "orders", "indexes": [
                { "key": { "b": 1 }, "name": "b_1" }, { "key": { "c": 1.0 }, "name": "c_1" },
            ] },
            4,
        ),
        (doc! { "dropIndexes": "orders", "index": "missing" }, 4),
        (doc! { "deleteIndexes": "orders", "index": "b_1" }, 3),
        (doc! { "dropIndexes": "orders", "index": { "c": 1 } }, 2),
        (doc! { "dropIndexes": "orders", "index": ["n_1", "x"] }, 1),
        (doc! { "createIndexes": "orders", "key": { "_id": "hashed" }, "name": "hash" }, 2),
        (doc! { "dropIndexes": "orders", "index": "*" }, 1),
        (doc! { "dropIndexes": "other", "index": "*" }, 1),
    ] {
        assert!(replay.applied(&command(object.clone())).is_empty(), "{object}");
        let found = replay.catalogue.clone().into_collections().next().expect("orders");
        assert_eq!(found.1.indexes.len(), expected, "{object}: {:?}", found.1.indexes);
    }
    assert_eq!(replay.names_of("orders"), ["hash"]);
}

#[test]
fn an_index_of_an_old_server_is_a_document() {
    let mut replay = replay();
    let spec = doc! { "ns": "shop.orders", "key": { "o": 1 }, "name": "o_1" };
    assert!(replay.applied(&entry("i", "shop.system.indexes", spec)).is_empty());
    assert_eq!(replay.names_of("orders"), ["n_1", "o_1"]);
}

#[test]
fn without_indexes_nothing_about_them_is_kept() {
    let mut none = Replay::new(&OplogPlan { indexes: IndexPolicy::Skip, ..oplog() }, &plan());
    let change = doc! { "collMod": "orders", "index": { "name": "missing", "hidden": true } };
    assert!(none.applied(&command(change)).is_empty());
    none.applied(&command(doc! { "createIndexes": "x", "key": { "a": 1 }, "name": "a_1" }));
    assert!(none.names_of("x").is_empty());
}

#[test]
fn a_created_collection_lends_its_collation_to_no_index() {
    let mut replay = replay();
    let object = doc! {
        "create": "made", "collation": { "locale": "fr" }, "recordIdsReplicated": true,
        "expireAfterSeconds": 60_i64,
    };
    let applied = replay.applied(&command(object));
    let sent = doc! { "create": "made", "collation": { "locale": "fr" } };
    assert_eq!(applied[0].get_document("o").ok(), Some(&sent));
    replay.applied(&command(doc! { "createIndexes": "made", "key": { "a": 1 }, "name": "a_1" }));
    let namespace = Namespace::new("shop", "made");
    let mut all = replay.into_catalogue().into_collections();
    let (_, made) = all.find(|(name, _)| *name == namespace).expect("made");
    let simple = doc! { "locale": "simple" };
    assert_eq!(made.indexes[0].spec.get_document("collation").ok(), Some(&simple));
    assert_eq!(made.expire_after_seconds, Some(Bson::Int64(60)), "set at the end");
}

#[test]
fn what_is_dropped_has_no_indexes() {
    for (object, left) in [
        (doc! { "drop": "orders" }, 0),
        (doc! { "drop": "other" }, 1),
        (doc! { "dropDatabase": 1 }, 0),
    ] {
        let mut replay = replay();
        assert_eq!(replay.applied(&command(object.clone())).len(), 1);
        assert_eq!(replay.into_catalogue().into_collections().count(), left, "{object}");
    }
}

/// The peer leaves the indexes with the old name.
#[test]
fn better_than_the_peer_b4_the_catalogue_follows_a_new_name() {
    let mut replay = replay();
    let rename = doc! { "renameCollection": "shop.orders", "to": "shop.sales" };
    assert_eq!(replay.applied(&command(rename)).len(), 1);
    let mut all = replay.into_catalogue().into_collections();
    let (name, sales) = all.next().expect("one");
    assert_eq!(name, Namespace::new("shop", "sales"));
    assert_eq!((sales.planned, sales.indexes.len()), (None, 1));
    assert_eq!(sales.expire_after_seconds, Some(Bson::Int32(3600)));
    assert!(all.next().is_none());
}

#[test]
fn what_a_renamed_collection_replaces_is_dropped_by_name() {
    let rename = |target: Bson| {
        command(doc! { "renameCollection": "shop.new", "to": "shop.orders", "dropTarget": target })
    };
    let uuid = bson::Binary { subtype: bson::spec::BinarySubtype::Uuid, bytes: vec![1; 16] };
    let applied = replay().applied(&rename(Bson::Binary(uuid.clone())));
    assert_eq!(applied[0].get_document("o").ok(), Some(&doc! { "drop": "orders" }));
    assert_eq!(applied.len(), 2);
    assert_eq!(replay().applied(&rename(Bson::Boolean(false))).len(), 1);
    let mut kept = Replay::new(&OplogPlan { uuids: Uuids::Kept, ..oplog() }, &plan());
    assert_eq!(kept.applied(&rename(Bson::Binary(uuid))).len(), 1);
}

#[test]
fn collection_changes_are_parted_from_those_of_indexes() {
    let mut replay = replay();
    let index = doc! { "name": "n_1", "expireAfterSeconds": 60_i64 };
    let object = doc! { "collMod": "orders", "index": index };
    assert!(replay.applied(&command(object)).is_empty());
    let index = doc! { "keyPattern": { "n": 1_i64 }, "prepareUnique": true, "hidden": true };
    let object = doc! {
        "collMod": "orders", "index": index, "validationLevel": "off", "noPadding": true,
        "usePowerOf2Sizes": true, "expireAfterSeconds": 9,
    };
    let applied = replay.applied(&command(object));
    let rest = doc! { "collMod": "orders", "validationLevel": "off" };
    assert_eq!(applied[0].get_document("o").ok(), Some(&rest));
    for (change, has) in [
        (doc! { "unique": true }, vec!["hidden", "unique"]),
        (doc! { "hidden": false }, vec!["unique"]),
        (doc! { "forceNonUnique": true }, vec![]),
    ] {
        let mut index = doc! { "name": "n_1" };
        index.extend(change);
        replay.applied(&command(doc! { "collMod": "orders", "index": index.clone() }));
        let indexed = replay.catalogue.clone().into_collections().next().expect("orders").1;
        let spec = &indexed.indexes[0].spec;
        let options = ["hidden", "unique", "prepareUnique"];
        let found: Vec<_> = options.into_iter().filter(|name| spec.contains_key(name)).collect();
        assert_eq!(found, has, "{index}");
        assert_eq!(indexed.expire_after_seconds, Some(Bson::Int32(9)));
    }
    let index = replay.indexes_of("orders").remove(0);
    assert!(index.expires);
    assert_eq!(index.spec.get_i64("expireAfterSeconds").ok(), Some(60));
}

#[test]
fn what_cannot_be_replayed_is_refused() {
    for (entry, words) in [
        (doc! { "op": "i", "ns": "a.b" }, "`o`"),
        (doc! { "ns": "a.b", "o": {} }, "`op`"),
        (entry("xi", "a.b", doc! {}), "`xi` is not known"),
        (command(doc! {}), "is empty"),
        (command(doc! { "brandNew": 1 }), "`brandNew` is not known"),
        (command(doc! { "importCollection": "a" }), "importCollection"),
        (command(doc! { "createIndexes": 1 }), "does not name"),
        (command(doc! { "commitIndexBuild": "a" }), "which indexes"),
        (command(doc! { "commitIndexBuild": "a", "indexes": [1] }), "no document"),
        (command(doc! { "dropIndexes": "orders" }), "which index"),
        (command(doc! { "renameCollection": "shop.a" }), "renamed"),
        (command(doc! { "applyOps": 1 }), "no array"),
        (command(doc! { "applyOps": [1] }), "no document"),
        (command(doc! { "collMod": "orders", "index": 1 }), "no document"),
        (command(doc! { "collMod": "orders", "index": { "name": "x" } }), "not known"),
        (command(doc! { "collMod": "orders", "index": { "name": "n_1", "sparse": 1 } }), "sparse"),
        (of_transaction(1, 1, doc! { "applyOps": [[]] }), "no document"),
    ] {
        let error = replay().refused(&entry);
        assert!(error.contains(words), "{entry}: {error}");
    }
}

/// The peer takes the first field of what has none, and ends with a panic.
#[test]
fn better_than_the_peer_an_empty_command_is_an_error_that_names_it() {
    assert!(replay().refused(&command(doc! {})).contains("the command of the entry is empty"));
}
