//! Collections that keep the UUIDs they had.

use crate::golden::{expected, found, only};
use crate::support::dump::{Dump, genuine};
use crate::support::raw::{document, int};
use crate::support::{Held, Restore, Server, stored};
use mongodb::bson::{Bson, doc};
use serde_json::json;

const UUID: &str = "00112233445546778899aabbccddeeff";

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
            assert!(notes.contains("a time-series collection cannot keep its UUID"), "{notes}");
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
