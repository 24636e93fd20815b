//! Collections that keep the UUIDs they had.

use crate::golden::{expected, found, only};
use crate::oplog::does_not_know_differences;
use crate::support::dump::{Dump, genuine};
use crate::support::raw::{document, int};
use crate::support::{Held, Restore, Server, differences, is_before, stored};
use mongodb::bson::{Bson, Document, Timestamp, doc};
use serde_json::json;

const UUID: &str = "00112233445546778899aabbccddeeff";
const OTHER_UUID: &str = "ffeeddccbbaa49888766554433221100";

/// The UUID of a collection, as dumps write it.
fn uuid_of(server: &Server, database: &str, collection: &str) -> String {
    let command = doc! { "listCollections": 1, "filter": { "name": collection } };
    let reply = server.run(database, command);
    let listed = reply.get_document("cursor").unwrap().get_array("firstBatch").unwrap();
    let info = listed[0].as_document().unwrap().get_document("info").unwrap();
    let Some(Bson::Binary(uuid)) = info.get("uuid") else { panic!("{info}") };
    uuid.to_uuid().expect("a UUID").to_string().replace('-', "")
}

fn dump_of(collection: &str) -> Dump {
    let things = [document(&[int("_id", 1)])];
    let metadata = json!({ "indexes": [], "uuid": UUID, "collectionName": collection });
    Dump::new().with("d", collection, &things).described("d", collection, &metadata)
}

#[test]
fn a_whole_database_keeps_its_uuids_and_everything_else() {
    for server in [Server::lease(), Server::replica_set(&[])] {
        let dump = genuine("full_6.0/kitchen");
        // The second time the collections are there already.
        for _ in 0..2 {
            let arguments = ["--drop", "--preserveUUID"];
            let restored = Restore::new(server.uri(), &dump).args(&arguments).run();
            let held = Held::of(only(expected("full_6.0"), "kitchen"));
            let restored = held.is_reached(restored, &found(&server));
            for collection in ["collated", "capped", "clustered", "indexed", "empty"] {
                if held.state[format!("kitchen.{collection}")].is_null() {
                    continue;
                }
                let file = dump.join(format!("{collection}.metadata.json"));
                let text = std::fs::read_to_string(file).unwrap();
                let metadata: serde_json::Value = serde_json::from_str(&text).unwrap();
                let uuid = uuid_of(&server, "kitchen", collection);
                assert_eq!(metadata["uuid"], uuid, "{collection}");
            }
            let notes = restored.report["notes"].to_string();
            let told = notes.contains("a time-series collection cannot keep its UUID");
            assert_eq!(told, !is_before([5, 0]), "{notes}");
        }
    }
}

/// B21: told to create a collection with a UUID that another one has, a server renames that other
/// one; the peer tells it so.
#[test]
fn better_than_the_peer_b21_a_live_collection_is_not_moved() {
    let server = Server::lease();
    let dump = dump_of("things");
    let arguments = ["--drop", "--preserve-uuid"];
    Restore::new(server.uri(), dump.path()).args(&arguments).run().ended(0);
    server.run("d", doc! { "insert": "things", "documents": [{ "_id": 70 }] });
    let renamed = ["--drop", "--preserve-uuid", "--nsFrom", "d.things", "--nsTo", "d.copy"];
    let restored = Restore::new(server.uri(), dump.path()).args(&renamed).run().ended(1);
    assert!(restored.stderr.contains("belongs to `d.things`"), "{}", restored.stderr);
    assert_eq!(stored(&server.client(), "d", "things").len(), 2);
    assert_eq!(found(&server).as_object().unwrap().len(), 1);
    assert_eq!(uuid_of(&server, "d", "things"), UUID);
}

/// A dump of `d.things` with its UUID, and an oplog that makes `d.made` and goes on with both; an
/// entry at second 6 names `d.things`, but the UUID of a collection that nobody has.
fn dump_with_oplog() -> Dump {
    let uuid = |text: &str| mongodb::bson::Uuid::parse_str(text).expect("a UUID");
    let entry = |second: u32, operation: &str, of: &str, ui: &str, object: Document| {
        let time = Timestamp { time: second, increment: 1 };
        doc! {
            "ts": time, "t": 1_i64, "v": 2, "op": operation, "ns": of, "ui": uuid(ui), "o": object,
        }
    };
    let nobodys = UUID.replace("00", "77");
    let entries = [
        entry(2, "i", "d.things", UUID, doc! { "_id": 2 }),
        entry(3, "u", "d.things", UUID, doc! { "_id": 2, "n": 3 }),
        entry(4, "c", "d.$cmd", OTHER_UUID, doc! { "create": "made" }),
        entry(5, "i", "d.made", OTHER_UUID, doc! { "_id": 4 }),
        entry(6, "i", "d.things", &nobodys, doc! { "_id": 6 }),
    ];
    let dump = dump_of("things");
    let bytes: Vec<_> = entries
        .into_iter()
        .flat_map(|mut entry| {
            if entry.get_str("op").unwrap() == "u" {
                entry.insert("o2", doc! { "_id": 2 });
            }
            entry.to_vec().unwrap()
        })
        .collect();
    dump.write("oplog.bson", &bytes);
    dump
}

#[test]
fn entries_of_an_oplog_find_collections_by_the_uuids_that_were_kept() {
    let dump = dump_with_oplog();
    let arguments = ["--drop", "--preserveUUID", "--oplogReplay"];
    for server in [Server::lease(), Server::replica_set(&[])] {
        let restore = || Restore::new(server.uri(), dump.path()).args(&arguments);
        let refused = restore().run().ended(1);
        let error = refused.report["outcome"]["error"].as_str().unwrap();
        assert!(error.contains("--oplog-limit 6:1"), "the UUID is nobody's: {error}");
        server.run("d", doc! { "drop": "made" });
        let restored = restore().args(&["--oplogLimit", "6:1"]).run().ended(0);
        assert_eq!(restored.report["oplog"]["operations"], 4);
        assert_eq!(stored(&server.client(), "d", "things").len(), 2);
        assert_eq!(stored(&server.client(), "d", "made").len(), 1);
        assert_eq!(uuid_of(&server, "d", "things"), UUID);
        assert_eq!(uuid_of(&server, "d", "made"), OTHER_UUID);
    }
}

#[test]
fn without_the_option_an_oplog_goes_by_names_alone() {
    let server = Server::replica_set(&[]);
    let dump = dump_with_oplog();
    Restore::new(server.uri(), dump.path()).args(&["--oplogReplay"]).run().ended(0);
    assert_eq!(stored(&server.client(), "d", "things").len(), 3);
    assert_ne!(uuid_of(&server, "d", "things"), UUID);
    assert_ne!(uuid_of(&server, "d", "made"), OTHER_UUID);
}

#[test]
fn a_genuine_oplog_is_replayed_into_collections_with_their_uuids() {
    let server = Server::replica_set(&[]);
    let dump = genuine("oplog_6.0");
    let arguments = ["--drop", "--preserveUUID", "--oplogReplay"];
    let restored = Restore::new(server.uri(), &dump).args(&arguments).run();
    if is_before([5, 0]) {
        return does_not_know_differences(restored, 2);
    }
    restored.ended(0);
    assert_eq!(differences(&expected("oplog_6.0"), &found(&server)), [""; 0]);
    let text = std::fs::read_to_string(dump.join("live/acct.metadata.json")).unwrap();
    let metadata: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(metadata["uuid"], uuid_of(&server, "live", "acct"));
}

#[test]
fn without_a_uuid_in_the_dump_a_new_one_is_given() {
    let server = Server::lease();
    let things = [document(&[int("_id", 1)])];
    let dump = Dump::new().with("d", "things", &things);
    let arguments = ["--drop", "--preserveUUID"];
    let restored = Restore::new(server.uri(), dump.path()).args(&arguments).run().ended(0);
    let notes = restored.report["notes"].to_string();
    assert!(notes.contains("the dump does not tell its UUID"), "{notes}");
}

#[test]
fn uuids_are_kept_only_together_with_drop() {
    let server = Server::lease();
    let dump = dump_of("things");
    let restored = Restore::new(server.uri(), dump.path()).args(&["--preserveUUID"]).run().ended(2);
    assert!(restored.stderr.contains("--drop"), "{}", restored.stderr);
    assert_eq!(server.databases(), [""; 0]);
}
