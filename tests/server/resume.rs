//! Restores that are killed in the middle and go on.

use crate::program::Program;
use crate::support::dump::{Dump, documents};
use crate::support::{PASSWORD, Restore, Server, connect, lacks, runtime, stored, verified};
use mongodb::bson::{Bson, Document, doc};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Batches that are on their way at most: those in the workers' hands.
const WORKERS: u64 = 4;
const BATCH: u64 = 50;

/// Small batches, so that many moments lie between them.
const ARGUMENTS: [&str; 4] = ["--batch-documents", "50", "--workers", "4"];

/// The ledgers beside a dump.
fn ledgers(dump: &Path) -> Vec<PathBuf> {
    let folder = std::fs::read_dir(dump.parent().expect("a folder")).expect("read");
    let paths = folder.map(|entry| entry.expect("read").path());
    let name = dump.file_name().expect("a name").to_string_lossy().into_owned();
    let is_ledger = |path: &PathBuf| {
        let file = path.file_name().expect("a name").to_string_lossy().into_owned();
        file.starts_with(&format!(".{name}.")) && file.ends_with(".restorm-ledger")
    };
    paths.filter(is_ledger).collect()
}

/// A server on which every insert takes a moment.
pub(super) fn slow(milliseconds: i32) -> Server {
    let server = Server::private(&["--setParameter", "enableTestCommands=1"]);
    let data = doc! {
        "failCommands": ["insert"], "blockConnection": true, "blockTimeMS": milliseconds,
    };
    server.run(
        "admin",
        doc! { "configureFailPoint": "failCommand", "mode": "alwaysOn", "data": data },
    );
    server
}

/// Ends a restore without a word after this time; false where it was done before.
fn kill_after(restore: Restore, time: Duration) -> bool {
    let running = restore.start();
    std::thread::sleep(time);
    running.signal("KILL");
    running.finish().status.is_none()
}

/// Waits until a collection of the target holds some documents.
fn wait_for_documents(server: &Server, collection: &str) {
    let deadline = Instant::now() + Duration::from_secs(30);
    let collection = server.client().database("seed").collection::<Document>(collection);
    while runtime().block_on(async { collection.estimated_document_count().await }).unwrap_or(0)
        < 300
    {
        assert!(Instant::now() < deadline, "no documents came");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Ends a restore without a word when some documents have come, and the ledger has heard of them.
fn kill_in_the_middle(server: &Server, restore: Restore, collection: &str) {
    let running = restore.start();
    wait_for_documents(server, collection);
    std::thread::sleep(Duration::from_millis(300));
    running.signal("KILL");
    assert_eq!(running.finish().status, None);
}

/// Checks that exactly the dump's documents are in a collection.
#[track_caller]
fn holds_the_dump(server: &Server, dump: &Dump, collection: &str) {
    let mut there = stored(&server.client(), "seed", collection);
    let mut dumped = documents(&dump.file(&format!("seed/{collection}.bson")));
    there.sort();
    dumped.sort();
    assert!(there == dumped, "{} of {} documents", there.len(), dumped.len());
}

/// The moments at which restores are killed, in milliseconds; the same for the same seed.
fn moments(seed: u64, count: usize, most: u64) -> Vec<u64> {
    let mut state = seed | 1;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % most
    };
    (0..count).map(|_| next()).collect()
}

/// Kills a restore again and again until it comes to its end, and checks the balance of the last
/// run and what is stored.
fn is_killed_and_goes_on(
    server: &Server,
    dump: &Path,
    seeded: &Dump,
    moments: &[u64],
    more: &[&str],
) {
    let restore = |arguments: &[&str]| {
        Restore::new(server.uri(), dump).args(&ARGUMENTS).args(more).args(arguments)
    };
    let mut kills = 0;
    let mut arguments: &[&str] = &["--drop"];
    for &moment in moments {
        // Long enough that the ledger is begun.
        if !kill_after(restore(arguments), Duration::from_millis(250 + moment)) {
            arguments = &["--drop"];
            continue;
        }
        kills += 1;
        if !ledgers(dump).is_empty() {
            arguments = &["--drop", "--resume"];
        }
    }
    assert!(kills > moments.len() / 2, "{kills} kills");
    let restored = restore(arguments).run().ended(0);
    let [read, inserted, already_there, rejected, unsent] = restored.balance();
    assert_eq!((read, rejected, unsent), (2 * 3000, 0, 0));
    assert_eq!(inserted + already_there, read);
    assert!(already_there <= kills as u64 * WORKERS * BATCH, "{already_there} were sent again");
    for collection in ["c00001", "c00002"] {
        holds_the_dump(server, seeded, collection);
        assert_eq!(restored.collection(&format!("seed.{collection}"))["state"], "done");
    }
    verified(server.uri(), dump);
    assert!(ledgers(dump).is_empty());
}

/// How many kills: a few, or as many as `$RESTORM_KILLS` says.
fn kills() -> usize {
    std::env::var("RESTORM_KILLS").map_or(4, |kills| kills.parse().expect("a number"))
}

#[test]
fn a_restore_that_is_killed_at_any_moment_goes_on() {
    if lacks("fail point that blocks", [4, 4]) {
        return;
    }
    let server = slow(60);
    let dump = Dump::seeded(2, 3000);
    is_killed_and_goes_on(&server, dump.path(), &dump, &moments(17, kills(), 500), &[]);
}

#[test]
fn a_restore_that_does_not_wait_for_the_journal_goes_on_as_well() {
    if lacks("fail point that blocks", [4, 4]) {
        return;
    }
    let server = slow(60);
    let dump = Dump::seeded(2, 3000);
    let fast = ["--write-concern", "1", "--journal", "off"];
    // What was acknowledged and not yet known to be durable is sent again as well, so that only
    // what is stored is checked.
    let restore = |arguments: &[&str]| {
        Restore::new(server.uri(), dump.path()).args(&ARGUMENTS).args(&fast).args(arguments)
    };
    kill_in_the_middle(&server, restore(&["--drop"]), "c00001");
    let restored = restore(&["--resume"]).run().ended(0);
    let [read, inserted, already_there, rejected, unsent] = restored.balance();
    assert_eq!((read, inserted + already_there, rejected, unsent), (6000, 6000, 0, 0));
    assert!(restored.report["totals"]["documents_carried"].as_u64().unwrap() > 0);
    holds_the_dump(&server, &dump, "c00001");
    holds_the_dump(&server, &dump, "c00002");
    verified(server.uri(), dump.path());
}

#[test]
fn archives_and_compressed_dumps_go_on() {
    if lacks("fail point that blocks", [4, 4]) {
        return;
    }
    let server = slow(60);
    let dump = Dump::seeded(2, 3000);
    let folder = tempfile::tempdir().expect("a folder");
    for (name, compress) in [("plain.archive", "none"), ("packed.archive", "gzip")] {
        let archive = folder.path().join(name);
        seeded_archive(&archive, compress);
        let archived = format!("--archive={}", archive.display());
        let restore = |arguments: &[&str]| {
            Restore::without_dump(server.uri()).args(&[&archived]).args(&ARGUMENTS).args(arguments)
        };
        server.run("seed", doc! { "dropDatabase": 1 });
        kill_in_the_middle(&server, restore(&[]), "c00001");
        assert_eq!(ledgers(&archive).len(), 1);
        let restored = restore(&["--resume"]).run().ended(0);
        let [read, inserted, already_there, rejected, unsent] = restored.balance();
        assert_eq!((read, inserted + already_there, rejected, unsent), (6000, 6000, 0, 0));
        assert!(restored.report["totals"]["documents_carried"].as_u64().unwrap() > 0);
        assert!(already_there <= WORKERS * BATCH);
        holds_the_dump(&server, &dump, "c00001");
        holds_the_dump(&server, &dump, "c00002");
        verified(server.uri(), &archive);
    }
    let files = dump.files();
    let gzip = Command::new("gzip").args(files.iter().filter(|file| is_data(file))).status();
    assert!(gzip.expect("gzip runs").success());
    let restore = |arguments: &[&str]| {
        Restore::new(server.uri(), dump.path()).args(&ARGUMENTS).args(arguments)
    };
    server.run("seed", doc! { "dropDatabase": 1 });
    kill_in_the_middle(&server, restore(&[]), "c00001");
    let restored = restore(&["--resume"]).run().ended(0);
    assert!(restored.report["totals"]["documents_carried"].as_u64().unwrap() > 0);
    let count = |collection| stored(&server.client(), "seed", collection).len();
    assert_eq!((count("c00001"), count("c00002")), (3000, 3000));
    verified(server.uri(), dump.path());
}

fn is_data(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension == "bson")
}

fn seeded_archive(archive: &Path, compress: &str) {
    let archive = archive.to_str().expect("a plain path");
    let seeded = Program::restorm(&["seed", "--archive", archive, "--compress", compress])
        .args(&["--collections", "2", "--documents", "3000"])
        .run();
    assert_eq!(seeded.status, Some(0), "{}", seeded.stderr);
}

#[test]
fn documents_without_an_id_are_not_doubled() {
    if lacks("fail point that blocks", [4, 4]) {
        return;
    }
    let server = slow(100);
    let made = |number: i32| doc! { "number": number, "text": "x".repeat(50) };
    let bytes: Vec<_> = (0..2000).map(|number| made(number).to_vec().expect("encoded")).collect();
    let dump = Dump::new().with("seed", "nameless", &bytes);
    let restore = |arguments: &[&str]| {
        Restore::new(server.uri(), dump.path()).args(&ARGUMENTS).args(arguments)
    };
    kill_in_the_middle(&server, restore(&[]), "nameless");
    // The restore alone knows the `_id`s that it gave.
    let restored = restore(&["--resume", "--verify"]).run().ended(0);
    assert!(restored.report["totals"]["documents_carried"].as_u64().unwrap() > 0);
    assert_eq!(restored.report["verification"]["state"], "same");
    let pipeline = [doc! { "$group": { "_id": "$number", "n": { "$sum": 1 } } }];
    let collection = server.client().database("seed").collection::<Document>("nameless");
    let groups: Vec<Document> = runtime().block_on(async {
        let mut cursor = collection.aggregate(pipeline).await.expect("grouped");
        let mut groups = Vec::new();
        while cursor.advance().await.expect("read") {
            groups.push(cursor.deserialize_current().expect("a document"));
        }
        groups
    });
    assert_eq!(groups.len(), 2000);
    assert!(groups.iter().all(|group| group.get_i32("n").expect("a count") == 1));
}

#[test]
fn the_last_line_is_the_command_that_goes_on() {
    if lacks("fail point that blocks", [4, 4]) {
        return;
    }
    let server = slow(100);
    let dump = Dump::seeded(1, 3000);
    let restore = Restore::new(server.uri(), dump.path()).args(&ARGUMENTS).start();
    wait_for_documents(&server, "c00001");
    restore.signal("INT");
    let interrupted = restore.finish().ended(130);
    let ledger = interrupted.report["ledger"].as_str().expect("there is one").to_owned();
    assert_eq!(ledgers(dump.path()), [PathBuf::from(&ledger)]);
    let command = interrupted.stderr.lines().last().expect("a line").trim().to_owned();
    assert!(command.ends_with("--resume"), "{command}");
    // The folder of the report went with the restore.
    let report = command.split(' ').find(|word| word.ends_with("report.json")).expect("a report");
    std::fs::create_dir(Path::new(report).parent().expect("a folder")).expect("made again");
    let again = Program::of("sh", &["-c", &command]).run();
    assert_eq!(again.status, Some(0), "{command}\n{}", again.stderr);
    holds_the_dump(&server, &dump, "c00001");
    verified(server.uri(), dump.path());
    let nothing = Restore::new(server.uri(), dump.path()).args(&["--resume"]).run();
    assert_eq!(nothing.status, Some(1));
    assert!(nothing.stderr.contains("there is no ledger to go on with"), "{}", nothing.stderr);
}

#[test]
fn a_ledger_of_something_else_is_refused() {
    if lacks("fail point that blocks", [4, 4]) {
        return;
    }
    let server = slow(100);
    let dump = Dump::seeded(1, 3000);
    let folder = tempfile::tempdir().expect("a folder");
    let ledger = folder.path().join("ledger");
    let ledger = ledger.to_str().expect("a plain path");
    let restore = |server: &Server, dump: &Dump, arguments: &[&str]| {
        Restore::new(server.uri(), dump.path())
            .args(&ARGUMENTS)
            .args(&["--ledger", ledger])
            .args(arguments)
    };
    kill_in_the_middle(&server, restore(&server, &dump, &[]), "c00001");
    let refused = |server: &Server, dump: &Dump, why: &str| {
        let refused = restore(server, dump, &["--resume"]).run();
        assert_eq!(refused.status, Some(1), "{}", refused.stderr);
        assert!(refused.stderr.contains(why), "{why}: {}", refused.stderr);
        assert!(refused.stderr.contains(ledger), "{}", refused.stderr);
    };
    refused(&server, &Dump::seeded(1, 2999), "another dump");
    refused(&Server::private(&[]), &dump, "about the target");
    server.run("seed", doc! { "drop": "c00001" });
    refused(&server, &dump, "is gone from the target");
    server.run("seed", doc! { "create": "c00001" });
    refused(&server, &dump, "is another one now");
    let restored = restore(&server, &dump, &["--drop"]).run().ended(0);
    assert_eq!(restored.balance(), [3000, 3000, 0, 0, 0]);
    verified(server.uri(), dump.path());
}

#[test]
fn what_is_done_is_not_sent_again_and_indexes_are_finished() {
    let server = Server::private(&[]);
    let dump = Dump::seeded(1, 3000);
    let wrong = serde_json::json!({ "indexes": [
        { "v": 2, "key": { "_id": 1 }, "name": "_id_" },
        { "v": 2, "key": { "a": 1 }, "name": "a" },
    ]});
    let dump = dump.described("seed", "c00001", &wrong);
    // An index of that name with another key is in the way of the first run.
    server.run("seed", doc! { "create": "c00001" });
    let index = doc! { "key": { "b": 1 }, "name": "a" };
    server.run("seed", doc! { "createIndexes": "c00001", "indexes": [index] });
    let restored = Restore::new(server.uri(), dump.path()).run().ended(3);
    let told = "index `a` will fail beside those of the target";
    assert!(restored.notes().iter().any(|note| note.contains(told)), "{}", restored.stderr);
    assert!(restored.report["ledger"].is_string());
    server.run("seed", doc! { "dropIndexes": "c00001", "index": "a" });
    let again = Restore::new(server.uri(), dump.path()).args(&["--resume"]).run().ended(0);
    assert_eq!(again.balance(), [3000, 3000, 0, 0, 0]);
    assert_eq!(again.report["totals"]["documents_carried"], 3000);
    assert_eq!(again.report["totals"]["batches"], 0);
    assert_eq!(again.report["totals"]["indexes_built"], 1);
    assert_eq!(again.report["totals"]["fraction_done"], 1.0);
    verified(server.uri(), dump.path());
}

#[test]
fn what_comes_through_a_pipe_cannot_be_resumed() {
    let server = Server::private(&[]);
    let refused = Restore::without_dump(server.uri()).args(&["--archive", "--resume"]);
    let folder = tempfile::tempdir().expect("a folder");
    let archive = folder.path().join("a.archive");
    seeded_archive(&archive, "none");
    let refused = refused.input(std::fs::read(&archive).expect("read")).run();
    assert_eq!(refused.status, Some(2), "{}", refused.stderr);
    assert!(refused.stderr.contains("a pipe cannot be resumed"), "{}", refused.stderr);
}

/// A disk that is full, a password that has expired, a right that was taken away: the restore ends,
/// somebody mends it, and the restore goes on.
#[test]
fn what_was_refused_for_a_while_is_finished_afterwards() {
    let server = Server::private(&["--setParameter", "enableTestCommands=1"]);
    let dump = Dump::seeded(2, 3000);
    let fail = |mode: Bson, code: i32| {
        let data = doc! { "failCommands": ["insert"], "errorCode": code };
        let fail = doc! { "configureFailPoint": "failCommand", "mode": mode, "data": data };
        server.run("admin", fail);
    };
    for code in [14031, 18, 13] {
        fail(doc! { "skip": 20 }.into(), code);
        let restore = |arguments: &[&str]| {
            let validated = ["--validate-documents"];
            Restore::new(server.uri(), dump.path())
                .args(&ARGUMENTS)
                .args(&validated)
                .args(arguments)
        };
        let ended = restore(&["--drop"]).run().ended(1);
        let [read, inserted, _, rejected, unsent] = ended.balance();
        assert!(inserted > 0 && unsent > 0, "{code}: {:?}", ended.balance());
        assert_eq!((read, rejected), (inserted + unsent, 0));
        assert!(ended.stderr.lines().last().is_some_and(|line| line.ends_with("--resume")));
        fail("off".into(), code);
        let restored = restore(&["--drop", "--resume"]).run().ended(0);
        let [read, again, already_there, rejected, unsent] = restored.balance();
        assert_eq!((read, rejected, unsent), (6000, 0, 0));
        assert_eq!(again + already_there, 6000);
        holds_the_dump(&server, &dump, "c00001");
        holds_the_dump(&server, &dump, "c00002");
        verified(server.uri(), dump.path());
    }
}

/// The password changes while a restore goes on, and its connections break: it ends, and goes on
/// with the new password.
#[test]
fn a_restore_whose_password_has_expired_goes_on_with_the_new_one() {
    if lacks("fail point that blocks", [4, 4]) {
        return;
    }
    let server = Server::private(&["--auth", "--setParameter", "enableTestCommands=1"]);
    let roles =
        ["restore", "readWriteAnyDatabase"].map(|role| doc! { "role": role, "db": "admin" });
    let uri = server.user("mover", &roles);
    let root = connect(&uri.replace("mover:", "root:"));
    let (admin, seed) = (root.database("admin"), root.database("seed"));
    let run = |command: Document| {
        runtime().block_on(async { admin.run_command(command).await }).expect("it is done")
    };
    let fail = |mode: Bson, data: Document| {
        run(doc! { "configureFailPoint": "failCommand", "mode": mode, "data": data });
    };
    let slow = doc! {
        "failCommands": ["insert"], "blockConnection": true, "blockTimeMS": 250,
    };
    fail("alwaysOn".into(), slow);
    let dump = Dump::seeded(1, 6000);
    let restore = |uri: &str| Restore::new(uri, dump.path()).args(&ARGUMENTS);
    let running = restore(&uri).start();
    let began = Instant::now();
    let empty = || {
        let collection = seed.collection::<Document>("c00001");
        let found = async { collection.find_one(doc! {}).await };
        runtime().block_on(found).expect("an answer").is_none()
    };
    while empty() && began.elapsed() < Duration::from_secs(30) {
        std::thread::sleep(Duration::from_millis(20));
    }
    run(doc! { "updateUser": "mover", "pwd": "another-horse" });
    fail("alwaysOn".into(), doc! { "failCommands": ["insert"], "closeConnection": true });
    let ended = running.finish().ended(1);
    let [read, inserted, already_there, rejected, unsent] = ended.balance();
    assert!(inserted > 0 && unsent > 0, "{:?}", ended.balance());
    assert_eq!((read, rejected), (inserted + already_there + unsent, 0));
    assert!(ended.stderr.contains("Authentication failed"), "{}", ended.stderr);
    let last = ended.stderr.lines().last().expect("a line");
    assert!(last.ends_with("--resume") && !last.contains(PASSWORD), "{last}");
    fail("off".into(), doc! { "failCommands": ["insert"] });
    let renewed = uri.replace(PASSWORD, "another-horse");
    let restored = restore(&renewed).args(&["--resume", "--verify"]).run().ended(0);
    assert_eq!(restored.balance()[0], 6000);
    assert!(restored.report["totals"]["documents_carried"].as_u64().unwrap() > 0);
    assert_eq!(restored.report["verification"]["state"], "same");
}
