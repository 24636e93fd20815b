//! What an archive holds besides collections: users, roles and the oplog, wherever they stand.

use crate::archive::gzip;
use crate::golden::{expected, found, only};
use crate::oplog::does_not_know_differences;
use crate::program::Program;
use crate::support::dump::{Dump, documents, genuine};
use crate::support::{Held, Restore, Restored, Server, differences, is_before, md5_sum};
use crate::users::{BOTH, is_clean, is_discreet, kept, names, sorted};
use mongodb::bson::{Document, Timestamp, doc};
use restorm::dump::writer::archive::{ArchiveWriter, ArchivedCollection};
use restorm::dump::{ArchivePlace, CollectionMetadata, Compression, IndexSpec, Location, Origin};
use restorm::namespace::Namespace;
use restorm::reader::demux::{Demux, Item};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The parts of an archive in the order in which they stand in it.
struct Parts(Vec<(ArchivedCollection, Vec<Vec<u8>>)>);

impl Parts {
    fn new() -> Self {
        Self(Vec::new())
    }

    fn with(self, database: &str, collection: &str, documents: Vec<Vec<u8>>) -> Self {
        let index = IndexSpec::from(doc! { "v": 2, "key": { "n": 1 }, "name": "n_1" });
        let indexes = if collection == "orders" { vec![index] } else { Vec::new() };
        let metadata = CollectionMetadata { indexes, ..CollectionMetadata::default() };
        self.described(Namespace::new(database, collection), metadata, documents)
    }

    fn described(
        mut self,
        namespace: Namespace,
        metadata: CollectionMetadata,
        documents: Vec<Vec<u8>>,
    ) -> Self {
        self.0.push((ArchivedCollection { namespace, metadata }, documents));
        self
    }

    /// The collections of a genuine database and what mongodump wrote beside them.
    fn with_all_of(mut self, folder: &Path, database: &str) -> Self {
        let mut files: Vec<_> =
            std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
        files.sort();
        for file in files {
            let name = file.file_name().unwrap().to_str().unwrap();
            if let Some(collection) = name.strip_suffix(".bson") {
                let metadata = folder.join(format!("{collection}.metadata.json"));
                let metadata = CollectionMetadata::parse(&std::fs::read(metadata).unwrap());
                let namespace = Namespace::new(database, collection);
                self = self.described(namespace, metadata.unwrap(), documents(&file));
            }
        }
        self
    }

    fn bytes(&self) -> Vec<u8> {
        let listed: Vec<_> = self.0.iter().map(|(collection, _)| collection.clone()).collect();
        let mut archive =
            ArchiveWriter::begin(Vec::new(), Compression::None, 1, Some("6.0.5"), &listed).unwrap();
        for (place, (_, documents)) in self.0.iter().enumerate() {
            archive.append(place, &documents.concat()).unwrap();
            archive.end(place).unwrap();
        }
        archive.finish().unwrap()
    }

    /// Writes it into a folder.
    fn write(&self, dump: &Dump) -> PathBuf {
        write(dump, &self.bytes())
    }
}

fn write(dump: &Dump, bytes: &[u8]) -> PathBuf {
    dump.write("made.archive", bytes);
    dump.file("made.archive")
}

fn stored_in(file: &str) -> Vec<Vec<u8>> {
    documents(&genuine(file))
}

fn orders() -> Vec<Vec<u8>> {
    [1, 2].map(|id| doc! { "_id": id, "n": id }.to_vec().unwrap()).to_vec()
}

fn users() -> Vec<Vec<u8>> {
    stored_in("full_6.0/admin/system.users.bson")
}

fn version(number: i32) -> Vec<Vec<u8>> {
    vec![doc! { "_id": "authSchema", "currentVersion": number }.to_vec().unwrap()]
}

fn entry(second: u32, operation: &str, namespace: &str, object: Document) -> Vec<u8> {
    let time = Timestamp { time: second, increment: 1 };
    let entry =
        doc! { "ts": time, "t": 1_i64, "v": 2, "op": operation, "ns": namespace, "o": object };
    entry.to_vec().unwrap()
}

fn insert(second: u32, id: i32) -> Vec<u8> {
    entry(second, "i", "shop.orders", doc! { "_id": id, "n": id })
}

fn restore(server: &Server, archive: &Path, arguments: &[&str]) -> Restored {
    Restore::new(server.uri(), archive).args(arguments).run()
}

/// Flips a bit of a text inside a document, so that only its checksum tells.
fn damaged(mut bytes: Vec<u8>, text: &str) -> Vec<u8> {
    let at = bytes.windows(text.len()).rposition(|window| window == text.as_bytes());
    bytes[at.expect("the text is there")] ^= 1;
    bytes
}

#[track_caller]
fn has_all_users(server: &Server) {
    for collection in BOTH {
        let file = genuine(&format!("full_6.0/admin/{collection}.bson"));
        assert_eq!(kept(server, collection), sorted(&documents(&file)), "{collection}");
    }
    is_clean(server);
}

#[track_caller]
fn count(server: &Server) -> i32 {
    server.run("shop", doc! { "count": "orders" }).get_i32("n").unwrap()
}

#[test]
fn a_whole_archive_brings_its_users_and_roles() {
    let server = Server::private(&[]);
    let restored = restore(&server, &genuine("full_6.0.archive"), &[]);
    let restored = Held::of(expected("full_6.0")).is_reached(restored, &found(&server));
    has_all_users(&server);
    let users = &restored.report["users"];
    assert_eq!(users["state"], "done");
    assert_eq!(users["users"], json!(["shop.ann", "shop.bob", "admin.root"]));
    assert!(!restored.report["skipped"].to_string().contains("system."));
    assert!(restored.stderr.contains("3 users and 2 roles restored"), "{}", restored.stderr);
    is_discreet(&restored);
}

#[test]
fn users_and_roles_come_through_a_pipe_however_it_is_compressed() {
    let plain = std::fs::read(genuine("full_6.0.archive")).unwrap();
    let zstd = zstd::encode_all(&plain[..], 1).unwrap();
    for input in [plain.clone(), gzip(&plain), zstd] {
        let server = Server::private(&[]);
        let arguments = ["restore", "--archive", "--uri", server.uri()];
        let finished = Program::restorm(&arguments).input(input).run();
        let held = Held::of(expected("full_6.0"));
        assert_eq!(finished.status, Some(held.status()), "{}", finished.stderr);
        has_all_users(&server);
        held.stands(&found(&server), &finished.stderr);
    }
}

#[test]
fn the_database_admin_of_an_archive_brings_all_users_and_nothing_else() {
    let server = Server::private(&[]);
    restore(&server, &genuine("full_6.0.archive"), &["--db", "admin"]).ended(0);
    has_all_users(&server);
    assert!(server.databases().is_empty());
}

#[test]
fn a_part_of_an_archive_comes_without_users() {
    let server = Server::private(&[]);
    let archive = genuine("full_6.0.archive");
    let all = Held::of(expected("full_6.0")).status();
    for (part, status) in
        [(["--db", "shop"], 0), (["--nsInclude", "shop.*"], 0), (["--nsExclude", "admin.*"], all)]
    {
        let restored = restore(&server, &archive, &[&part[..], &["--drop"]].concat()).ended(status);
        assert!(restored.report["users"].is_null(), "{part:?}");
        assert!(names(&server, "system.users").is_empty(), "{part:?}");
    }
}

/// An archive as `mongodump -d shop --dumpDbUsersAndRoles --archive` makes it.
fn of_shop() -> Parts {
    let special = |name: &str| stored_in(&format!("shop_users_6.0/shop/$admin.system.{name}.bson"));
    Parts::new()
        .with("shop", "$admin.system.users", special("users"))
        .with("shop", "$admin.system.roles", special("roles"))
        .with("shop", "$admin.system.version", special("version"))
        .with("shop", "orders", stored_in("shop_users_6.0/shop/orders.bson"))
}

#[test]
fn a_database_of_an_archive_is_restored_with_its_users_where_that_is_wanted() {
    let (dump, server) = (Dump::new(), Server::private(&[]));
    let archive = of_shop().write(&dump);
    for arguments in [&["--db", "shop"][..], &["--drop"]] {
        let without = restore(&server, &archive, arguments).ended(0);
        let skipped = without.report["skipped"].to_string();
        assert!(skipped.contains("shop.$admin.system.users"), "{skipped}");
        assert!(skipped.contains("--restore-db-users-and-roles"), "{skipped}");
        assert!(names(&server, "system.users").is_empty());
    }
    let arguments = ["--db", "shop", "--drop", "--restoreDbUsersAndRoles"];
    let restored = restore(&server, &archive, &arguments).ended(0);
    assert_eq!(names(&server, "system.users"), ["shop.ann", "shop.bob"]);
    assert_eq!(names(&server, "system.roles"), ["shop.clerk"]);
    assert_eq!(restored.report["users"]["roles"], json!(["shop.clerk"]));
    is_clean(&server);
    is_discreet(&restored);
}

#[test]
fn the_database_of_the_connection_string_is_one_as_well() {
    let (dump, server) = (Dump::new(), Server::private(&[]));
    let archive = of_shop().write(&dump);
    let uri = format!("{}/shop", server.uri().trim_end_matches('/'));
    Restore::new(&uri, &archive).args(&["--restoreDbUsersAndRoles"]).run().ended(0);
    assert_eq!(names(&server, "system.users"), ["shop.ann", "shop.bob"]);
}

#[test]
fn users_and_roles_may_stand_anywhere() {
    let orders = || ("shop", "orders", orders());
    let users = || ("admin", "system.users", users());
    let roles = || ("admin", "system.roles", stored_in("full_6.0/admin/system.roles.bson"));
    let version = || ("admin", "system.version", version(5));
    for order in [
        [version(), roles(), users(), orders()],
        [orders(), users(), roles(), version()],
        [users(), orders(), version(), roles()],
    ] {
        let (dump, server) = (Dump::new(), Server::private(&[]));
        let parts = order.into_iter().fold(Parts::new(), |parts, (database, name, documents)| {
            parts.with(database, name, documents)
        });
        restore(&server, &parts.write(&dump), &[]).ended(0);
        has_all_users(&server);
        assert_eq!(count(&server), 2);
    }
}

#[test]
fn users_that_do_not_fit_keep_the_run_from_beginning_where_they_come_first() {
    let (dump, server) = (Dump::new(), Server::private(&[]));
    server.run("shop", doc! { "insert": "orders", "documents": [{ "_id": 7 }] });
    let archive = Parts::new()
        .with("admin", "system.users", users())
        .with("admin", "system.version", version(1))
        .with("shop", "orders", orders())
        .write(&dump);
    let restored = restore(&server, &archive, &["--drop"]).ended(1);
    assert!(restored.stderr.contains("cannot take the dump's users"), "{}", restored.stderr);
    assert_eq!(restored.balance(), [0; 5]);
    assert_eq!(count(&server), 1, "what was there is there");
    assert!(names(&server, "system.users").is_empty());
}

#[test]
fn users_that_do_not_fit_and_come_last_are_left_out() {
    let (dump, server) = (Dump::new(), Server::private(&[]));
    let archive = Parts::new()
        .with("shop", "orders", orders())
        .with("admin", "system.users", users())
        .with("admin", "system.version", version(1))
        .write(&dump);
    let restored = restore(&server, &archive, &[]).ended(1);
    let told = restored.report["users"]["error"].as_str().unwrap();
    assert!(told.contains("(schema version 1)"), "{told}");
    assert_eq!(count(&server), 2);
    assert!(names(&server, "system.users").is_empty());
    is_clean(&server);
}

#[test]
fn users_whose_checksum_is_wrong_are_left_out_and_the_rest_is_restored() {
    let (dump, server) = (Dump::new(), Server::private(&[]));
    let parts = Parts::new()
        .with("admin", "system.users", users())
        .with("admin", "system.version", version(5))
        .with("shop", "orders", orders());
    let archive = write(&dump, &damaged(parts.bytes(), "till"));
    let restored = restore(&server, &archive, &[]).ended(1);
    let told = &restored.report["users"];
    assert_eq!(told["state"], "failed");
    assert!(told["error"].as_str().unwrap().contains("checksum"), "{told}");
    assert_eq!(count(&server), 2);
    assert_eq!(restored.collection("shop.orders")["indexes"][0]["is_built"], true);
    assert!(names(&server, "system.users").is_empty());
    is_discreet(&restored);
}

#[test]
fn users_that_an_archive_was_cut_before_are_said_to_be_missing() {
    let (dump, server) = (Dump::new(), Server::private(&[]));
    let parts = Parts::new()
        .with("shop", "orders", orders())
        .with("admin", "system.version", version(5))
        .with("admin", "system.users", users());
    let bytes = parts.bytes();
    let archive = write(&dump, &bytes[..bytes.len() - 200]);
    let restored = restore(&server, &archive, &[]).ended(1);
    assert!(restored.stderr.contains("NOT restored: the archive could"), "{}", restored.stderr);
    assert_eq!(count(&server), 2);
    assert!(names(&server, "system.users").is_empty());
}

#[test]
fn a_dry_run_of_an_archive_says_that_there_are_users() {
    let server = Server::private(&[]);
    let restored = restore(&server, &genuine("full_6.0.archive"), &["--dry-run"]);
    assert_eq!(restored.status, Some(0), "{}", restored.stderr);
    assert!(restored.stdout.contains("users and roles, after the documents"), "{restored:?}");
    assert!(names(&server, "system.users").is_empty() && server.databases().is_empty());
}

/// What an archive holds: for each collection the sum over its documents.
fn sums(archive: &Path) -> BTreeMap<String, String> {
    let place = ArchivePlace::File(archive.to_path_buf());
    let inventory = restorm::dump::Dump::at(&Location::Archive(place), None, None).unwrap();
    let inventory = inventory.scan().unwrap();
    let data = inventory.entries[0].data.as_ref().and_then(Origin::segments).unwrap();
    let mut documents = vec![Vec::new(); data.archive.collections().len()];
    let mut demux = Demux::open(&data.archive).unwrap();
    while let Some(item) = demux.next_item().unwrap() {
        if let Item::Document { place, frame, .. } = item {
            documents[place].push(frame.bytes().to_vec());
        }
    }
    let named = data.archive.collections().iter().zip(&documents);
    named.map(|(listed, documents)| (listed.namespace.to_string(), md5_sum(documents))).collect()
}

/// The genuine archive was taken a second after the folder; its oplog has one entry, an update that
/// changes nothing any more.
#[test]
fn a_genuine_archive_with_an_oplog_is_restored() {
    let server = Server::replica_set(&[]);
    let archive = genuine("oplog_6.0.archive");
    let restored = restore(&server, &archive, &["--oplogReplay"]);
    if is_before([5, 0]) {
        return does_not_know_differences(restored, 0);
    }
    let restored = restored.ended(0);
    let (state, sums) = (found(&server), sums(&archive));
    let live: Vec<_> = sums.iter().filter(|(name, _)| name.starts_with("live.")).collect();
    assert_eq!(state.as_object().unwrap().len(), live.len());
    for (name, sum) in live {
        assert_eq!(state[name]["md5_sum"], *sum, "{name}");
    }
    let mut expected = expected("oplog_6.0");
    expected["live.acct"]["md5_sum"] = sums["live.acct"].clone().into();
    assert_eq!(differences(&expected, &state), [""; 0]);
    let oplog = &restored.report["oplog"];
    assert_eq!((&oplog["state"], &oplog["entries"]), (&json!("done"), &json!(1)));
    assert_eq!(oplog["first"], json!({ "seconds": 1_796_042_391, "increment": 3 }));
    assert!(oplog["path"].as_str().unwrap().ends_with("oplog_6.0.archive"), "{oplog}");
}

/// The genuine folder with an oplog of 48 entries as an archive, through a pipe, plain and
/// compressed, with the oplog at its end and at its beginning.
#[test]
fn an_oplog_comes_through_a_pipe_however_it_is_compressed_and_wherever_it_stands() {
    let dump = genuine("oplog_6.0");
    let oplog = || documents(&dump.join("oplog.bson"));
    let version = || documents(&dump.join("admin/system.version.bson"));
    let last = Parts::new()
        .with("admin", "system.version", version())
        .with_all_of(&dump.join("live"), "live")
        .with("", "oplog", oplog())
        .bytes();
    let first = Parts::new()
        .with("", "oplog", oplog())
        .with_all_of(&dump.join("live"), "live")
        .with("admin", "system.version", version())
        .bytes();
    let expected = expected("oplog_6.0");
    let zstd = zstd::encode_all(&last[..], 1).unwrap();
    for input in [gzip(&last), last, zstd, first] {
        let server = Server::lease();
        let arguments = ["restore", "--archive", "--oplog-replay", "--uri", server.uri()];
        let finished = Program::restorm(&arguments).input(input).run();
        if is_before([5, 0]) {
            // The server does not know the form of its updates.
            assert_eq!(finished.status, Some(1), "{}", finished.stderr);
            assert!(finished.stderr.contains("'$v'"), "{}", finished.stderr);
            assert!(finished.stderr.contains("2 entries with 2 op"), "{}", finished.stderr);
            continue;
        }
        assert_eq!(finished.status, Some(0), "{}", finished.stderr);
        assert!(finished.stderr.contains("48 entries with 48 operations"), "{}", finished.stderr);
        assert_eq!(differences(&expected, &found(&server)), [""; 0]);
    }
}

fn with_oplog(entries: Vec<Vec<u8>>) -> Parts {
    Parts::new().with("shop", "orders", orders()).with("", "oplog", entries)
}

#[test]
fn an_oplog_may_stand_before_the_documents() {
    let (dump, server) = (Dump::new(), Server::replica_set(&[]));
    let delete = entry(3, "d", "shop.orders", doc! { "_id": 1 });
    let archive = Parts::new()
        .with("", "oplog", vec![insert(2, 3), delete, insert(4, 5)])
        .with("shop", "orders", orders())
        .write(&dump);
    let arguments = ["--oplog-replay", "--oplog-limit", "4:1"];
    let restored = restore(&server, &archive, &arguments).ended(0);
    assert_eq!(restored.report["oplog"]["entries"], 2);
    assert_eq!(restored.report["oplog"]["reached_limit"], true);
    assert_eq!(count(&server), 2, "3 was added, 1 deleted, 5 is beyond the limit");
    let state = found(&server);
    assert_eq!(state["shop.orders"]["indexes"].as_array().unwrap().len(), 2, "{state:#}");
}

#[test]
fn an_entry_of_an_archive_that_is_refused_is_named_by_its_byte_there() {
    let (dump, server) = (Dump::new(), Server::replica_set(&[]));
    let bad = entry(3, "i", "shop.missing", doc! { "_id": 1 });
    let bytes = with_oplog(vec![insert(2, 3), bad.clone(), insert(4, 4)]).bytes();
    let at = bytes.windows(bad.len()).position(|window| window == bad).unwrap();
    let archive = write(&dump, &bytes);
    let restored = restore(&server, &archive, &["--oplog-replay"]).ended(1);
    let told = restored.report["outcome"]["error"].as_str().unwrap();
    assert!(told.contains("made.archive") && told.contains(&format!("at byte {at}")), "{told}");
    assert_eq!(count(&server), 3);
}

#[test]
fn an_oplog_that_is_not_whole_is_not_replayed_and_the_rest_is_complete() {
    let dump = Dump::new();
    let text = doc! { "_id": 3, "text": "a long enough text" };
    let entries = vec![entry(2, "i", "shop.orders", text), insert(3, 4)];
    let bytes = with_oplog(entries).bytes();
    let wrong = damaged(bytes.clone(), "a long enough text");
    for (bytes, words) in [(&wrong[..], "checksum"), (&bytes[..bytes.len() - 90], "cut off")] {
        let server = Server::replica_set(&[]);
        let archive = write(&dump, bytes);
        let restored = restore(&server, &archive, &["--oplog-replay"]).ended(1);
        assert!(restored.stderr.contains(words), "{}", restored.stderr);
        assert!(restored.stderr.contains("NOT replayed"), "{}", restored.stderr);
        assert_eq!(count(&server), 2);
        assert_eq!(restored.collection("shop.orders")["state"], "done");
        assert_eq!(restored.report["totals"]["indexes_built"], 1);
    }
}

#[test]
fn an_oplog_that_cannot_be_kept_aside_ends_the_run_before_it_begins() {
    let (dump, server) = (Dump::new(), Server::replica_set(&[]));
    let archive = with_oplog(vec![insert(2, 3)]).write(&dump);
    let none = dump.file("none");
    let arguments = ["restore", "--oplog-replay", "--uri", server.uri()];
    let finished =
        Program::restorm(&arguments).arg(&archive).env("TMPDIR", none.to_str().unwrap()).run();
    assert_eq!(finished.status, Some(1), "{}", finished.stderr);
    assert!(finished.stderr.contains("TMPDIR names another folder"), "{}", finished.stderr);
    assert!(server.databases().is_empty());
}

#[test]
fn an_archive_replays_its_own_oplog_and_no_other() {
    let (dump, server) = (Dump::new(), Server::lease());
    dump.write("o.bson", &insert(2, 3));
    let file = dump.file("o.bson");
    let archive = with_oplog(vec![insert(2, 3)]).write(&dump);
    let arguments = ["--oplog-replay", "--oplog-file", file.to_str().unwrap()];
    let restored = restore(&server, &archive, &arguments);
    assert_eq!(restored.status, Some(2), "{}", restored.stderr);
    assert!(restored.stderr.contains("not for an archive"), "{}", restored.stderr);
    let without = genuine("kitchen_4.4.archive");
    let none = restore(&server, &without, &["--oplog-replay"]);
    assert_eq!(none.status, Some(1), "{}", none.stderr);
    assert!(none.stderr.contains("there is no oplog to replay"), "{}", none.stderr);
    assert!(server.databases().is_empty());
}

#[test]
fn a_part_of_an_archive_needs_no_room_for_its_oplog() {
    let server = Server::lease();
    let restored = restore(&server, &genuine("oplog_6.0.archive"), &["--db", "live"]).ended(0);
    assert!(restored.report["oplog"].is_null());
    let whole = only(found(&server), "live");
    assert!(!whole.as_object().unwrap().is_empty());
}
