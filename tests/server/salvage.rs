//! Damaged dumps: what lies around the damage arrives, and the balance is right.

use std::collections::HashSet;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use mongodb::bson::{Document, doc};
use restorm::dump::writer::archive::{ArchiveWriter, ArchivedCollection};
use restorm::dump::{CollectionMetadata, Compression, IndexSpec};
use restorm::namespace::Namespace;
use serde_json::json;
use tempfile::TempDir;

use crate::support::dump::Dump;
use crate::support::{Restore, Restored, Server, lacks, stored};

/// Documents of each collection.
const DOCUMENTS: i32 = 4000;

/// Documents with others inside, of different sizes.
fn documents() -> Vec<Vec<u8>> {
    let size = |number: i32| usize::try_from(number % 70).expect("it is small");
    (0..DOCUMENTS)
        .map(|number| {
            let items = vec![doc! { "_id": number, "sku": "a" }; size(number) % 3];
            doc! { "_id": number, "n": number, "items": items, "text": "x".repeat(size(number)) }
        })
        .map(|document| document.to_vec().expect("encodes"))
        .collect()
}

/// Where a document begins among others.
fn start_of(documents: &[Vec<u8>], number: usize) -> usize {
    documents[..number].iter().map(Vec::len).sum()
}

/// The documents with two of them damaged and a stretch of zeros over a few, and which those are.
fn damaged(documents: &[Vec<u8>]) -> (Vec<u8>, HashSet<usize>) {
    let mut bytes = documents.concat();
    bytes[start_of(documents, 700)] = 3;
    bytes[start_of(documents, 1500) + 4] = 0x55;
    let (from, to) = (start_of(documents, 3000) + 10, start_of(documents, 3050) + 20);
    bytes[from..to].fill(0);
    (bytes, [700, 1500].into_iter().chain(3000..=3050).collect())
}

fn without(documents: &[Vec<u8>], lost: &HashSet<usize>) -> HashSet<Vec<u8>> {
    let kept = documents.iter().enumerate().filter(|(number, _)| !lost.contains(number));
    kept.map(|(_, document)| document.clone()).collect()
}

/// Compares without printing thousands of documents.
#[track_caller]
fn same(found: &HashSet<Vec<u8>>, expected: &HashSet<Vec<u8>>) {
    let missing = expected.difference(found).count();
    let unexpected = found.difference(expected).count();
    assert_eq!((missing, unexpected), (0, 0), "documents are missing, or too many");
}

fn there(server: &Server) -> HashSet<Vec<u8>> {
    let stored = stored(&server.client(), "shop", "orders");
    let count = stored.len();
    let different: HashSet<_> = stored.into_iter().collect();
    assert_eq!(different.len(), count, "nothing is there twice");
    different
}

/// The dump of `shop.orders`, with an index, and of `shop.items`, which is sound.
fn dump(content: &[u8], name: &str) -> Dump {
    let metadata = json!({ "indexes": [
        { "v": 2, "key": { "_id": 1 }, "name": "_id_" }, { "v": 2, "key": { "n": 1 }, "name": "n_1" },
    ] });
    let dump = Dump::new()
        .with("shop", "items", &documents()[..500])
        .described("shop", "orders", &metadata);
    dump.write(name, content);
    dump
}

fn salvage(server: &Server, dump: &Path, kept: &TempDir) -> Restored {
    let kept = kept.path().to_string_lossy().into_owned();
    Restore::new(server.uri(), dump).args(&["--salvage", "--salvage-dir", &kept]).run()
}

#[test]
fn documents_around_damage_arrive_with_their_indexes() {
    let server = Server::lease();
    let documents = documents();
    let (bytes, lost) = damaged(&documents);
    let dump = dump(&bytes, "shop/orders.bson");
    let kept = tempfile::tempdir().expect("a folder");
    let restored = salvage(&server, dump.path(), &kept).ended(1);
    same(&there(&server), &without(&documents, &lost));
    let orders = restored.collection("shop.orders");
    assert_eq!(orders["lost"]["count"], 3, "{}", restored.stderr);
    assert_eq!(orders["indexes"][0]["is_built"], true, "{orders}");
    assert_eq!(restored.balance_of("shop.items"), [500, 500, 0, 0, 0]);
    let bytes: usize = lost.iter().map(|&number| documents[number].len()).sum();
    assert_eq!(orders["lost"]["bytes"], bytes);
    assert!(restored.report["ledger"].is_null(), "nothing is left to go on with");
}

#[test]
fn without_salvage_a_damaged_collection_ends_and_the_others_do_not() {
    let server = Server::lease();
    let documents = documents();
    let (bytes, _) = damaged(&documents);
    let dump = dump(&bytes, "shop/orders.bson");
    let restored = Restore::new(server.uri(), dump.path()).run().ended(1);
    let before = documents[..700].iter().cloned().collect::<HashSet<_>>();
    same(&there(&server), &before);
    let error = restored.collection("shop.orders")["error"].to_string();
    let offset = format!("at byte {}", start_of(&documents, 700));
    assert!(error.contains(&offset), "{error}");
    assert_eq!(restored.balance_of("shop.items"), [500, 500, 0, 0, 0]);
}

#[test]
fn documents_before_damage_to_a_gzip_file_arrive() {
    let server = Server::lease();
    let documents = documents();
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(&documents.concat()).expect("compressed");
    let packed = encoder.finish().expect("compressed");
    let dump = dump(&packed[..packed.len() / 2], "shop/orders.bson.gz");
    let kept = tempfile::tempdir().expect("a folder");
    let restored = salvage(&server, dump.path(), &kept).ended(1);
    let there = there(&server);
    assert!(there.len() > documents.len() / 3, "{}", there.len());
    same(&there, &documents[..there.len()].iter().cloned().collect());
    let stretch = &restored.collection("shop.orders")["lost"]["stretches"][0];
    assert!(stretch["to"].is_null(), "{stretch}");
    assert_eq!(restored.collection("shop.orders")["indexes"][0]["is_built"], true);
}

/// An archive of `shop.orders` and `shop.items`, in many blocks.
fn archive(documents: &[Vec<u8>]) -> Vec<u8> {
    let index =
        |key: Document, name: &str| IndexSpec::from(doc! { "v": 2, "key": key, "name": name });
    let metadata = CollectionMetadata {
        indexes: vec![index(doc! { "_id": 1 }, "_id_"), index(doc! { "n": 1 }, "n_1")],
        ..CollectionMetadata::default()
    };
    let listed = ["orders", "items"].map(|name| ArchivedCollection {
        namespace: Namespace::new("shop", name),
        metadata: metadata.clone(),
    });
    let mut bytes = Vec::new();
    let mut writer =
        ArchiveWriter::begin(&mut bytes, Compression::None, 2, None, &listed).expect("written");
    for block in documents.chunks(100) {
        for place in [0, 1] {
            writer.append(place, &block.concat()).expect("written");
        }
    }
    (0..2).for_each(|place| writer.end(place).expect("written"));
    writer.finish().expect("written");
    bytes
}

#[test]
fn an_archive_goes_on_behind_damage() {
    let server = Server::lease();
    let documents = documents();
    let folder = tempfile::tempdir().expect("a folder");
    let mut bytes = archive(&documents);
    // The inside of a document, and the header of a block together with what is around it.
    let find = |bytes: &[u8], document: &[u8]| {
        bytes.windows(document.len()).position(|window| window == document).expect("it is there")
    };
    let inside = find(&bytes, &documents[1234]);
    bytes[inside + 4] = 0x55;
    let last = find(&bytes, &documents[1999]);
    bytes[last + 10..last + documents[1999].len() + 20].fill(0xEE);
    let path = folder.path().join("damaged.archive");
    std::fs::write(&path, &bytes).expect("written");
    let kept = tempfile::tempdir().expect("a folder");
    let restored = salvage(&server, &path, &kept).ended(1);
    // The block behind the lost header is of `shop.items`.
    same(&there(&server), &without(&documents, &HashSet::from([1234, 1999])));
    let items: HashSet<_> = stored(&server.client(), "shop", "items").into_iter().collect();
    same(&items, &without(&documents, &(1900..2000).collect()));
    assert_eq!(restored.collection("shop.orders")["indexes"][0]["is_built"], true);
    let error = restored.collection("shop.items")["error"].to_string();
    assert!(error.contains("checksum"), "{error}");
}

#[test]
fn a_salvage_that_was_interrupted_is_resumed() {
    if lacks("fail point that blocks", [4, 4]) {
        return;
    }
    let server = Server::private(&["--setParameter", "enableTestCommands=1"]);
    let slow = doc! { "configureFailPoint": "failCommand", "mode": "alwaysOn", "data": {
        "failCommands": ["insert"], "blockConnection": true, "blockTimeMS": 60,
    } };
    server.run("admin", slow);
    let documents = documents();
    let (bytes, lost) = damaged(&documents);
    let dump = dump(&bytes, "shop/orders.bson");
    let folder = tempfile::tempdir().expect("a folder");
    let ledger = folder.path().join("ledger").to_string_lossy().into_owned();
    let kept = folder.path().join("kept").to_string_lossy().into_owned();
    let arguments = ["--salvage", "--salvage-dir", &kept, "--ledger", &ledger, "--workers", "2"];
    let few = ["--batch-documents", "100"];
    let restore = Restore::new(server.uri(), dump.path()).args(&arguments).args(&few).start();
    let deadline = Instant::now() + Duration::from_secs(20);
    while server.databases().is_empty() || stored(&server.client(), "shop", "orders").len() < 1600 {
        assert!(Instant::now() < deadline, "too few documents came");
        std::thread::sleep(Duration::from_millis(10));
    }
    restore.signal("INT");
    restore.finish().ended(130);
    server.run("admin", doc! { "configureFailPoint": "failCommand", "mode": "off" });
    let resumed = Restore::new(server.uri(), dump.path()).args(&arguments).args(&["--resume"]);
    let restored = resumed.run().ended(1);
    same(&there(&server), &without(&documents, &lost));
    let kept = u64::try_from(documents.len() - lost.len()).expect("it is small");
    let [read, inserted, already_there, ..] = restored.balance_of("shop.orders");
    assert_eq!((read, inserted + already_there), (kept, kept), "{}", restored.stderr);
    assert_eq!(restored.collection("shop.orders")["lost"]["count"], 3);
}
