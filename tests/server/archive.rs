//! Genuine archives, and our own: each restores to the state that it was taken from.

use crate::golden::{expected, found, only};
use crate::program::Program;
use crate::support::dump::{documents, genuine};
use crate::support::{Held, Restore, Server, differences, md5_sum, stored};
use mongodb::bson::{Document, doc};
use restorm::dump::writer::archive::{ArchiveWriter, ArchivedCollection};
use restorm::dump::{CollectionMetadata, Compression, IndexSpec};
use restorm::namespace::Namespace;
use serde_json::{Value, json};
use std::path::Path;
use tempfile::TempDir;

#[track_caller]
fn restores_to(archive: &Path, arguments: &[&str], expected: &Value) {
    // Those of a whole server bring users along, of which a server that is shared should be free.
    let server = Server::private(&[]);
    let restored = Restore::new(server.uri(), archive).args(arguments).run();
    Held::of(expected.clone()).is_reached(restored, &found(&server));
}

fn content(name: &str) -> Vec<u8> {
    std::fs::read(genuine(name)).expect("a genuine archive")
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut encoder, bytes).expect("compressed");
    encoder.finish().expect("compressed")
}

#[test]
fn a_whole_archive_of_6_0_is_restored() {
    restores_to(&genuine("full_6.0.archive"), &[], &expected("full_6.0"));
}

#[test]
fn a_gzip_archive_is_restored() {
    restores_to(&genuine("shop_6.0.archive.gz"), &[], &expected("shop_6.0.archive.gz"));
}

#[test]
fn archives_of_older_servers_are_restored() {
    for version in ["4.2", "4.4", "5.0"] {
        let expected = only(expected(&format!("full_{version}")), "kitchen");
        restores_to(&genuine(&format!("kitchen_{version}.archive")), &[], &expected);
    }
}

#[test]
fn a_part_of_an_archive_is_restored() {
    let expected = only(expected("full_6.0"), "shop");
    restores_to(&genuine("full_6.0.archive"), &["--db", "shop"], &expected);
}

#[test]
fn an_archive_with_an_oplog_is_restored_as_it_was_read() {
    let server = Server::lease();
    let restored = Restore::new(server.uri(), &genuine("oplog_6.0.archive")).run().ended(0);
    let [read, inserted, ..] = restored.balance();
    assert_eq!((read, inserted), (20_025, 20_025));
    let skipped = restored.report["skipped"].as_array().unwrap();
    assert!(skipped.iter().any(|one| one["what"] == "oplog"), "{skipped:?}");
}

#[test]
fn one_collection_is_restored_from_standard_input() {
    let server = Server::lease();
    let arguments = ["restore", "-", "-d", "shop", "-c", "orders", "--uri", server.uri()];
    let finished = Program::restorm(&arguments).input(content("orders_stdout.bson")).run();
    assert_eq!(finished.status, Some(0), "{}", finished.stderr);
    assert_eq!(differences(&expected("orders_stdout"), &found(&server)), [""; 0]);
}

#[test]
fn better_than_the_peer_b9_a_capped_collection_keeps_the_order_of_the_archive() {
    // The peer inserts a single file with four workers; the order of a capped collection is lost.
    let server = Server::lease();
    let arguments = ["--batch-documents", "7", "--db", "kitchen", "--collection", "capped"];
    Restore::new(server.uri(), &genuine("full_6.0.archive")).args(&arguments).run().ended(0);
    let there = stored(&server.client(), "kitchen", "capped");
    assert_eq!(there, documents(&genuine("full_6.0/kitchen/capped.bson")));
}

/// An archive of a few collections with an index each, whose documents take turns.
fn own(collections: usize, documents: usize) -> (TempDir, Vec<Vec<Vec<u8>>>) {
    let index = doc! { "v": 2, "key": { "n": 1 }, "name": "n_1" };
    let listed: Vec<_> = (0..collections)
        .map(|number| ArchivedCollection {
            namespace: Namespace::new("own", format!("c{number:03}")),
            metadata: CollectionMetadata {
                indexes: vec![IndexSpec::from(index.clone())],
                ..CollectionMetadata::default()
            },
        })
        .collect();
    let mut archive =
        ArchiveWriter::begin(Vec::new(), Compression::None, 1, None, &listed).expect("begun");
    let mut written = vec![Vec::new(); collections];
    for number in 0..documents {
        for (place, written) in written.iter_mut().enumerate() {
            let number = i64::try_from(number).expect("small");
            let made: Document = doc! { "_id": number, "n": number % 7, "p": "x".repeat(place) };
            let bytes = made.to_vec().expect("encodes");
            archive.append(place, &bytes).expect("written");
            written.push(bytes);
        }
    }
    (0..collections).for_each(|place| archive.end(place).expect("ended"));
    let folder = tempfile::tempdir().expect("a folder");
    let bytes = archive.finish().expect("finished");
    std::fs::write(folder.path().join("own.archive"), bytes).expect("written");
    (folder, written)
}

#[test]
fn better_than_the_peer_b20_understated_interleaving_is_restored() {
    // The peer hangs where more collections are interleaved than the archive says, and is deaf to
    // signals then. Some of these are not created yet when their last document has been read.
    let (folder, written) = own(40, 50);
    let server = Server::lease();
    let archive = folder.path().join("own.archive");
    let restored = Restore::new(server.uri(), &archive).run().ended(0);
    assert_eq!(restored.balance()[1], 2000);
    let state = found(&server);
    for (place, documents) in written.iter().enumerate() {
        let there = &state[format!("own.c{place:03}")];
        assert_eq!(there["md5_sum"], md5_sum(documents), "{place}");
        assert_eq!(there["indexes"].as_array().unwrap().len(), 2, "{place}");
    }
}

#[test]
fn what_is_complete_in_a_cut_archive_is_restored_with_its_indexes() {
    let whole = content("full_6.0.archive");
    let folder = tempfile::tempdir().expect("a folder");
    let archive = folder.path().join("cut.archive");
    std::fs::write(&archive, &whole[..whole.len() * 3 / 4]).expect("written");
    let server = Server::private(&[]);
    let restored = Restore::new(server.uri(), &archive).run().ended(1);
    assert!(restored.stderr.contains("at byte"), "{}", restored.stderr);
    let (expected, state) = (Held::of(expected("full_6.0")).state, found(&server));
    let collections = restored.report["collections"].as_array().unwrap();
    let mut complete = 0;
    for collection in collections {
        let namespace = collection["namespace"].as_str().unwrap();
        if collection["state"] == "done" && collection["kind"] == "collection" {
            let of_one = |state: &Value| json!({ namespace: state[namespace] });
            assert_eq!(differences(&of_one(&expected), &of_one(&state)), [""; 0]);
            complete += 1;
        }
    }
    assert!(complete > 0 && complete < collections.len(), "{complete} are complete");
    let [read, inserted, ..] = restored.balance();
    assert_eq!(read, inserted, "what was read before the cut is there");
}

#[test]
fn a_collection_that_cannot_be_created_stalls_no_other() {
    let (folder, _) = own(6, 300);
    let server = Server::lease();
    server.run("own", doc! { "create": "c001", "viewOn": "x", "pipeline": [] });
    let archive = folder.path().join("own.archive");
    let restored =
        Restore::new(server.uri(), &archive).args(&["--batch-documents", "20"]).run().ended(1);
    assert_eq!(restored.balance(), [1500, 1500, 0, 0, 0]);
}
