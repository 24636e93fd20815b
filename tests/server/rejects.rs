//! Documents that are refused: kept aside, restored from there, and limited in number.

use crate::program::Program;
use crate::support::dump::{Dump, documents};
use crate::support::proxy::Proxy;
use crate::support::raw::{document, field, int, string};
use crate::support::{Restore, Restored, Server, stored};
use mongodb::bson::doc;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

/// Small batches, so that many moments lie between them.
const ARGUMENTS: [&str; 4] = ["--batch-documents", "50", "--workers", "4"];

fn numbered(ids: impl IntoIterator<Item = i32>) -> Vec<Vec<u8>> {
    ids.into_iter().map(|id| document(&[int("_id", id), string("text", "some text")])).collect()
}

/// The lines of a file.
fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Checks that the lines tell where in the dump and in the file beside them each document lies;
/// returns the documents.
#[track_caller]
fn told(rejects: &Path, collection: &str, data: &[u8]) -> Vec<Vec<u8>> {
    let kept = std::fs::read(rejects.join(format!("{collection}.bson"))).unwrap();
    let lines = lines(&rejects.join(format!("{collection}.rejects.jsonl")));
    let mut end = 0;
    let documents = lines.iter().map(|line| {
        let number = |name: &str| usize::try_from(line[name].as_u64().unwrap()).unwrap();
        let bytes = number("bytes");
        let document = &kept[number("kept_at")..][..bytes];
        assert_eq!(document, &data[number("offset")..][..bytes], "{line}");
        end += bytes;
        document.to_vec()
    });
    let documents = documents.collect();
    assert_eq!(end, kept.len());
    documents
}

/// A server that holds other documents with every tenth `_id` of a dump of so many.
fn taken(server: &Server, documents: i32) -> (Dump, Vec<Vec<u8>>) {
    let dumped = numbered(0..documents);
    let others: Vec<_> =
        (0..documents).step_by(10).map(|id| document(&[int("_id", id), int("of", 1)])).collect();
    let other = Dump::new().with("shop", "orders", &others);
    let arguments = ["--ledger", "none"];
    Restore::new(server.uri(), other.path()).args(&arguments).run().ended(0);
    (Dump::new().with("shop", "orders", &dumped), dumped)
}

/// A restore whose ledger and rejects are in a folder.
fn restore(uri: &str, dump: &Dump, folder: &Path, more: &[&str]) -> Restore {
    let (ledger, rejects) = (folder.join("ledger"), folder.join("rejects"));
    Restore::new(uri, dump.path())
        .args(&ARGUMENTS)
        .args(&["--ledger", ledger.to_str().unwrap(), "--rejects", rejects.to_str().unwrap()])
        .args(more)
}

fn conflicts(restored: &Restored) -> &Value {
    &restored.report["balance"]["conflicts"]
}

#[test]
fn what_is_refused_is_kept_with_its_reason_and_can_be_restored() {
    let server = Server::lease();
    let dumped: Vec<_> = (0..500)
        .map(|id| match id % 5 {
            // Documents without an `_id`, and such with it behind, change on their way.
            0 => document(&[int("a", id)]),
            1 => document(&[int("a", id), int("_id", id)]),
            _ => document(&[int("_id", id), int("a", id)]),
        })
        .collect();
    let validator = json!({ "a": { "$mod": [7, 1] } });
    let metadata = json!({
        "options": { "validator": validator },
        "indexes": [{ "v": 2, "key": { "a": 1 }, "name": "a_1" }],
    });
    let dump = Dump::new();
    dump.write("shop/or%2Fders.bson", &dumped.concat());
    dump.write("shop/or%2Fders.metadata.json", metadata.to_string().as_bytes());
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["--validate-documents", "--ns-from", "shop.*", "--ns-to", "copy.*"];
    let restored = restore(server.uri(), &dump, folder.path(), &arguments).run().ended(3);
    let [read, inserted, _, rejected, _] = restored.balance_of("copy.or/ders");
    assert_eq!((read, inserted + rejected), (500, 500));
    assert!(rejected > 400, "{rejected}");
    let rejects = folder.path().join("rejects");
    let lines = lines(&rejects.join("copy/or%2Fders.rejects.jsonl"));
    assert_eq!(lines.len() as u64, rejected);
    let file = dump.file("shop/or%2Fders.bson");
    for line in &lines {
        assert_eq!((&line["code"], &line["namespace"]), (&json!(121), &json!("copy.or/ders")));
        assert_eq!(line["file"], file.to_str().unwrap());
        let offset = usize::try_from(line["offset"].as_u64().unwrap()).unwrap();
        let starts = dumped.iter().scan(0, |at, one| {
            *at += one.len();
            Some(*at - one.len())
        });
        let place = starts.into_iter().position(|start| start == offset).unwrap();
        let id = &line["_id"];
        assert!(place % 5 == 0 || id["$numberInt"].as_str() == Some(&*place.to_string()), "{line}");
        assert!(place % 5 != 0 || id["$oid"].is_string(), "{line}");
    }
    // By default validators are bypassed, so that now all of them are taken.
    let again = Restore::new(server.uri(), &rejects).args(&["--ledger", "none"]).run().ended(0);
    assert_eq!(again.balance_of("copy.or/ders"), [rejected, rejected, 0, 0, 0]);
    let kept = documents(&rejects.join("copy/or%2Fders.bson"));
    let there = stored(&server.client(), "copy", "or/ders");
    assert_eq!(there.len(), 500);
    assert!(kept.iter().all(|kept| there.contains(kept)), "they arrive as they were kept");
    let metadata: Value = serde_json::from_slice(
        &std::fs::read(rejects.join("copy/or%2Fders.metadata.json")).unwrap(),
    )
    .unwrap();
    assert_eq!(metadata["indexes"][0]["name"], "a_1");
}

#[test]
fn nothing_is_left_where_nothing_is_refused() {
    let server = Server::lease();
    let dump = Dump::new().with("shop", "orders", &numbered(0..100));
    let folder = tempfile::tempdir().unwrap();
    restore(server.uri(), &dump, folder.path(), &[]).run().ended(0);
    assert!(!folder.path().join("rejects").exists());
}

#[test]
fn a_folder_that_holds_something_is_refused_before_anything_is_touched() {
    let server = Server::lease();
    let dump = Dump::new().with("shop", "orders", &numbered(0..100));
    let folder = tempfile::tempdir().unwrap();
    let ledger = folder.path().join("ledger");
    std::fs::write(&ledger, "of another run").unwrap();
    let rejects = folder.path().join("rejects");
    std::fs::create_dir(&rejects).unwrap();
    std::fs::write(rejects.join("thesis.txt"), "years").unwrap();
    let restored = restore(server.uri(), &dump, folder.path(), &["--drop"]).run().ended(1);
    assert!(restored.stderr.contains("is not empty"), "{}", restored.stderr);
    assert!(restored.stderr.contains("--rejects DIR"), "{}", restored.stderr);
    assert_eq!(server.databases(), [""; 0]);
    assert_eq!(std::fs::read_to_string(ledger).unwrap(), "of another run");
}

#[test]
fn damaged_documents_are_kept_aside() {
    let server = Server::lease();
    let mut dumped = numbered(0..100);
    // A boolean of value 2 is none.
    dumped[40] = document(&[int("_id", 40), field(0x08, "b", &[2])]);
    dumped[41] = document(&[int("_id", 41), field(0x55, "b", &[2])]);
    let dump = Dump::new().with("shop", "orders", &dumped);
    let folder = tempfile::tempdir().unwrap();
    let restored = restore(server.uri(), &dump, folder.path(), &["--objcheck"]).run().ended(3);
    let [_, _, _, rejected, _] = restored.balance();
    let shop = folder.path().join("rejects/shop");
    let lines = lines(&shop.join("orders.damaged.jsonl"));
    assert_eq!(lines.len() as u64, rejected);
    let kept = std::fs::read(shop.join("orders.damaged")).unwrap();
    assert!(kept.ends_with(&dumped[41]), "{kept:?}");
    let last = lines.last().unwrap();
    assert_eq!(last["offset"], dumped[..41].concat().len());
    // The folder is a dump all the same.
    let arguments = ["--ledger", "none"];
    let again = Restore::new(server.uri(), &folder.path().join("rejects")).args(&arguments);
    again.run().ended(0);
}

#[test]
fn more_failures_than_may_be_end_the_run_which_goes_on_with_a_larger_limit() {
    let server = Server::private(&[]);
    let (dump, dumped) = taken(&server, 5000);
    let folder = tempfile::tempdir().unwrap();
    let limited = ["--max-failures", "100"];
    let restored = restore(server.uri(), &dump, folder.path(), &limited).run().ended(1);
    let [_, _, _, rejected, _] = restored.balance();
    assert!((101..400).contains(&rejected), "{rejected}");
    let error = restored.report["outcome"]["error"].as_str().unwrap();
    assert!(error.contains("more than the 100 that may be"), "{error}");
    let shop = folder.path().join("rejects/shop");
    assert_eq!(told(&shop, "orders", &dumped.concat()).len() as u64, rejected);
    // The same limit is passed already.
    let resumed = ["--resume", "--max-failures", "100"];
    restore(server.uri(), &dump, folder.path(), &resumed).run().ended(1);
    let resumed = ["--resume", "--max-failures", "500"];
    let restored = restore(server.uri(), &dump, folder.path(), &resumed).run().ended(3);
    let [read, inserted, already_there, rejected, unsent] = restored.balance();
    assert_eq!((read, inserted + already_there, rejected, unsent), (5000, 4500, 500, 0));
    let kept = told(&shop, "orders", &dumped.concat());
    let all: BTreeSet<_> = kept.iter().collect();
    assert_eq!((kept.len(), all.len()), (500, 500), "each of them once");
}

#[test]
fn a_share_of_failures_is_judged_once_there_is_enough_to_judge() {
    let server = Server::private(&[]);
    let (dump, _) = taken(&server, 3000);
    let folder = tempfile::tempdir().unwrap();
    let limited = ["--max-failures", "9.99%"];
    let restored = restore(server.uri(), &dump, folder.path(), &limited).run().ended(1);
    assert!(restored.balance()[0] >= 1000, "{}", restored.stderr);
    let error = restored.report["outcome"]["error"].as_str().unwrap();
    assert!(error.contains("more than the 9.99% that may be"), "{error}");
    let restored = Restore::new(server.uri(), dump.path())
        .args(&["--ledger", "none", "--max-failures", "100%"])
        .run()
        .ended(3);
    assert_eq!(restored.balance()[0], 3000);
    // A small dump is judged at its end.
    let (dump, _) = taken(&server, 0);
    dump.write("shop/few.bson", &[numbered(0..9), numbered(0..1)].concat().concat());
    let arguments = ["--ledger", "none", "--max-failures", "5%"];
    Restore::new(server.uri(), dump.path()).args(&arguments).run().ended(1);
}

#[test]
fn rejects_of_a_restore_that_is_killed_again_and_again_are_each_kept_once() {
    let server = Server::private(&["--setParameter", "enableTestCommands=1"]);
    let (dump, dumped) = taken(&server, 6000);
    let data = doc! { "failCommands": ["insert"], "blockConnection": true, "blockTimeMS": 20 };
    let fail = doc! { "configureFailPoint": "failCommand", "mode": "alwaysOn", "data": data };
    server.run("admin", fail);
    let folder = tempfile::tempdir().unwrap();
    let shop = folder.path().join("rejects/shop");
    let mut more: &[&str] = &[];
    let mut before = 0;
    for _ in 0..4 {
        let running = restore(server.uri(), &dump, folder.path(), more).start();
        let deadline = Instant::now() + Duration::from_secs(30);
        let count = || lines_whole(&shop.join("orders.rejects.jsonl"));
        while count() < before + 40 {
            assert!(Instant::now() < deadline, "nothing is kept");
            std::thread::sleep(Duration::from_millis(3));
        }
        running.signal("KILL");
        assert_eq!(running.finish().status, None);
        before = count().min(500);
        more = &["--resume"];
    }
    let restored = restore(server.uri(), &dump, folder.path(), more).run().ended(3);
    let [read, inserted, already_there, rejected, unsent] = restored.balance();
    assert_eq!((read, inserted + already_there, rejected, unsent), (6000, 5400, 600, 0));
    assert_eq!(restored.report["totals"]["documents_carried"].as_u64().map(|n| n > 0), Some(true));
    let kept = told(&shop, "orders", &dumped.concat());
    let all: BTreeSet<_> = kept.iter().collect();
    assert_eq!((kept.len(), all.len()), (600, 600), "each of them once");
}

fn lines_whole(path: &Path) -> usize {
    std::fs::read_to_string(path).map_or(0, |text| text.matches('\n').count())
}

#[test]
fn a_disk_that_is_full_ends_the_run_and_nothing_is_lost() {
    let server = Server::private(&[]);
    let (dump, dumped) = taken(&server, 5000);
    let folder = tempfile::tempdir().unwrap();
    let (ledger, rejects) = (folder.path().join("ledger"), folder.path().join("rejects"));
    // A limit for the size of files stands for a disk that is full: 8 or 16 KiB, as shells count.
    let script = "trap '' XFSZ; ulimit -f 16; exec \"$@\"";
    let finished = Program::of("bash", &["-c", script, "-", env!("CARGO_BIN_EXE_restorm")])
        .args(&["restore", "--uri", server.uri()])
        .arg(dump.path())
        .args(&ARGUMENTS)
        .args(&["--ledger", ledger.to_str().unwrap(), "--rejects", rejects.to_str().unwrap()])
        .run();
    assert_eq!(finished.status, Some(1), "{}", finished.stderr);
    assert!(finished.stderr.contains("rejected documents cannot be kept"), "{}", finished.stderr);
    assert!(finished.stderr.contains("make room"), "{}", finished.stderr);
    let restored = restore(server.uri(), &dump, folder.path(), &["--resume"]).run().ended(3);
    let [read, inserted, already_there, rejected, _] = restored.balance();
    assert_eq!((read, inserted + already_there, rejected), (5000, 4500, 500));
    let kept = told(&rejects.join("shop"), "orders", &dumped.concat());
    let all: BTreeSet<_> = kept.iter().collect();
    assert_eq!((kept.len(), all.len()), (500, 500), "each of them once");
}

#[test]
fn rejects_of_an_archive_and_of_a_compressed_file_are_kept_alike() {
    let server = Server::private(&[]);
    let dump = Dump::seeded(3, 1000);
    let arguments = ["--ledger", "none"];
    Restore::new(server.uri(), dump.path()).args(&arguments).run().ended(0);
    let folder = tempfile::tempdir().unwrap();
    let archive = folder.path().join("seed.archive");
    let finished = Program::restorm(&["seed", "--collections", "3", "--documents", "1000"])
        .arg(format!("--archive={}", archive.display()))
        .run();
    assert_eq!(finished.status, Some(0), "{}", finished.stderr);
    let bytes = std::fs::read(&archive).unwrap();
    let rejects = folder.path().join("rejects");
    let restored = Restore::new(server.uri(), &archive)
        .args(&["--ledger", "none", "--rejects", rejects.to_str().unwrap()])
        .run()
        .ended(3);
    assert_eq!(restored.balance(), [3000, 0, 0, 3000, 0]);
    assert_eq!(conflicts(&restored), 0, "nobody asked what is stored");
    for number in 1..=3 {
        let name = format!("c{number:05}");
        let mut kept = told(&rejects.join("seed"), &name, &bytes);
        let mut dumped = documents(&dump.file(&format!("seed/{name}.bson")));
        kept.sort();
        dumped.sort();
        assert!(kept == dumped, "{} of {}", kept.len(), dumped.len());
    }
}

#[test]
fn rejects_of_writes_that_are_acknowledged_early_wait_with_them() {
    let server = Server::replica_set(&[]);
    let (dump, dumped) = taken(&server, 3000);
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["--write-concern", "1"];
    let restored = restore(server.uri(), &dump, folder.path(), &arguments).run().ended(3);
    assert_eq!(restored.balance(), [3000, 2700, 0, 300, 0]);
    let kept = told(&folder.path().join("rejects/shop"), "orders", &dumped.concat());
    assert_eq!(kept.len(), 300);
}

#[test]
fn a_document_whose_id_another_one_has_is_a_conflict_where_a_batch_is_sent_again() {
    let mut server = Server::private(&[]);
    server.run(
        "shop",
        doc! { "insert": "orders", "documents": [{ "_id": 7, "of": "another" }, { "_id": 8.0 }] },
    );
    let proxy = Proxy::losing(server.mongod().address(), 1);
    let dump = Dump::new().with("shop", "orders", &numbered(0..20));
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["--workers", "1"];
    let rejects = folder.path().join("rejects");
    let restored = Restore::new(&proxy.uri(), dump.path())
        .args(&arguments)
        .args(&["--ledger", "none", "--rejects", rejects.to_str().unwrap()])
        .run()
        .ended(3);
    assert_eq!(restored.balance(), [20, 0, 18, 2, 0]);
    assert_eq!(conflicts(&restored), 2);
    assert!(restored.stderr.contains("2 documents, 2 of them conflicts"), "{}", restored.stderr);
    let samples = &restored.collection("shop.orders")["failures"][0]["samples"];
    for sample in samples.as_array().unwrap() {
        let message = sample["message"].as_str().unwrap();
        assert!(message.ends_with("another document has this _id"), "{message}");
    }
    let lines = lines(&rejects.join("shop/orders.rejects.jsonl"));
    assert!(lines.iter().all(|line| line["conflict"] == true), "{lines:?}");
}
