//! Tests of what is kept of refused documents, and of going on with it.

use super::*;
use crate::dump::Dump;
use crate::namespace::Namespace;
use bson::doc;

fn place(database: &str) -> Place {
    let namespace = Namespace::new(database, "orders");
    Place {
        data_namespace: namespace.clone(),
        namespace,
        metadata: r#"{"indexes":[],"collectionName":"orders","type":"collection"}"#.to_owned(),
        origin: "dump/shop/orders.bson".to_owned(),
    }
}

fn open(root: &Path, run: ObjectId, earlier: Earlier, length: [u64; 2]) -> Result<Rejects, Error> {
    let length = RejectsLength { documents: length[0], lines: length[1] };
    Rejects::open(root, run, earlier, vec![(place("shop"), length)])
}

fn rejection(id: i32) -> Rejection {
    Rejection { code: 121, message: "no".to_owned(), id: id.to_string(), is_conflict: false }
}

fn kept(id: i32) -> Kept {
    let bytes = doc! { "_id": id }.to_vec().expect("encodes").into();
    Kept { offset: u64::try_from(id).expect("small") * 100, bytes }
}

fn done(rejected: u64) -> Done {
    Done { to: 10, rejected, ..Done::default() }
}

fn keep(rejects: &Rejects, id: i32, done: Option<Done>) -> Option<Done> {
    let (rejections, kept) = ([rejection(id)], [kept(id)]);
    let refused = Refused { collection: 0, rejections: &rejections, kept: &kept };
    rejects.keep(refused, done).expect("kept")
}

fn ids(root: &Path) -> Vec<i64> {
    let lines = fs::read_to_string(root.join("shop/orders.rejects.jsonl")).expect("lines");
    let documents = fs::read(root.join("shop/orders.bson")).expect("documents");
    let mut at = 0;
    let mut ids = Vec::new();
    for line in lines.lines() {
        let line: serde_json::Value = serde_json::from_str(line).expect("JSON");
        let id = line["_id"]["$numberInt"].as_str().expect("a number").parse().expect("a number");
        let expected = kept(i32::try_from(id).expect("small"));
        assert_eq!(line["kept_at"], at);
        assert_eq!(documents[at..at + expected.bytes.len()], *expected.bytes);
        at += expected.bytes.len();
        ids.push(id);
    }
    assert_eq!(at, documents.len());
    ids
}

#[test]
fn a_range_is_done_once_its_refused_documents_are_on_the_disk() {
    let root = tempfile::tempdir().expect("a folder");
    let rejects = open(root.path(), ObjectId::new(), Earlier::Refused, [0; 2]).expect("opened");
    let none = Refused { collection: 0, rejections: &[], kept: &[] };
    assert_eq!(rejects.keep(none, Some(done(0))).expect("kept"), Some(done(0)));
    assert_eq!(keep(&rejects, 1, Some(done(1))), None);
    let synced = rejects.sync().expect("synced");
    let lengths = ["bson", "rejects.jsonl"].map(|ending| {
        fs::metadata(root.path().join(format!("shop/orders.{ending}"))).expect("there").len()
    });
    let expected = Done { kept: lengths[0], lines: lengths[1], ..done(1) };
    assert_eq!(synced, [(0, expected)]);
    assert_eq!(rejects.sync().expect("synced"), []);
    let line = fs::read_to_string(root.path().join("shop/orders.rejects.jsonl")).expect("a line");
    let line: serde_json::Value = serde_json::from_str(&line).expect("JSON");
    assert_eq!(
        line,
        serde_json::json!({
            "namespace": "shop.orders", "_id": { "$numberInt": "1" }, "code": 121,
            "message": "no", "conflict": false, "file": "dump/shop/orders.bson", "offset": 100,
            "kept_at": 0, "bytes": 14,
        })
    );
}

#[test]
fn what_belongs_to_no_range_is_cut_off_and_kept_once() {
    let root = tempfile::tempdir().expect("a folder");
    let run = ObjectId::new();
    let rejects = open(root.path(), run, Earlier::Refused, [0; 2]).expect("opened");
    keep(&rejects, 1, Some(done(1)));
    let synced = rejects.sync().expect("synced")[0].1;
    keep(&rejects, 2, Some(done(1)));
    keep(&rejects, 3, None);
    assert_eq!(ids(root.path()), [1, 2], "batches without an answer come last");
    drop(rejects);
    let length = [synced.kept, synced.lines];
    let rejects = open(root.path(), run, Earlier::Resumed, length).expect("opened");
    keep(&rejects, 3, None);
    keep(&rejects, 2, Some(done(1)));
    rejects.close().expect("closed");
    assert_eq!(ids(root.path()), [1, 2, 3]);
    let dump = Dump::locate(root.path(), None, None).expect("a dump");
    let inventory = dump.scan().expect("listed");
    assert_eq!(inventory.entries.len(), 1);
    assert!(inventory.skipped.iter().all(|skipped| !skipped.is_problem), "{inventory:?}");
}

#[test]
fn damaged_documents_are_kept_beside_and_once() {
    let root = tempfile::tempdir().expect("a folder");
    let run = ObjectId::new();
    let rejects = open(root.path(), run, Earlier::Refused, [0; 2]).expect("opened");
    for id in [1, 3] {
        rejects.keep_damaged(0, &rejection(id), &kept(id)).expect("kept");
    }
    drop(rejects);
    let lines = root.path().join("shop/orders.damaged.jsonl");
    append(&lines, b"{\"offset\":99999,\"kept").expect("a line that is cut");
    append(&root.path().join("shop/orders.damaged"), b"cut").expect("a document that is cut");
    let rejects = open(root.path(), run, Earlier::Resumed, [0; 2]).expect("opened");
    for id in [3, 4] {
        rejects.keep_damaged(0, &rejection(id), &kept(id)).expect("kept");
    }
    let offsets: Vec<_> = fs::read_to_string(lines)
        .expect("lines")
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON"))
        .map(|line| line["offset"].as_u64().expect("a number"))
        .collect();
    assert_eq!(offsets, [100, 300, 400]);
    let expected = [1, 3, 4].map(|id| kept(id).bytes).concat();
    assert_eq!(fs::read(root.path().join("shop/orders.damaged")).expect("there"), expected);
}

#[test]
fn a_folder_with_something_else_is_left_alone() {
    let root = tempfile::tempdir().expect("a folder");
    let run = ObjectId::new();
    let other = root.path().join("shop/orders.bson");
    fs::create_dir(root.path().join("shop")).expect("made");
    fs::write(&other, "years of work").expect("written");
    for earlier in [Earlier::Refused, Earlier::Resumed] {
        let error = open(root.path(), run, earlier, [0; 2]).expect_err("refused");
        assert_eq!(error.kind(), ErrorKind::Plan, "{error}");
    }
    assert_eq!(fs::read_to_string(&other).expect("there"), "years of work");
    // Nor is the folder of another run gone on with, nor one that is shorter than it should be.
    let mine = tempfile::tempdir().expect("a folder");
    keep(&open(mine.path(), run, Earlier::Refused, [0; 2]).expect("opened"), 1, Some(done(1)));
    assert!(open(mine.path(), ObjectId::new(), Earlier::Resumed, [0; 2]).is_err());
    let error = open(mine.path(), run, Earlier::Resumed, [15, 0]).expect_err("refused");
    assert!(error.to_string().contains("fewer than the 15"), "{error}");
}

#[test]
fn a_folder_that_nothing_was_written_to_is_removed() {
    let root = tempfile::tempdir().expect("a folder");
    let folder = root.path().join("a/b");
    open(&folder, ObjectId::new(), Earlier::Refused, [0; 2])
        .expect("opened")
        .close()
        .expect("closed");
    assert!(!folder.exists());
}

#[test]
fn names_that_are_no_names_of_folders_are_refused() {
    let root = tempfile::tempdir().expect("a folder");
    let places = vec![(place("../up"), RejectsLength::default())];
    let folder = root.path().join("rejects");
    let rejects =
        Rejects::open(&folder, ObjectId::new(), Earlier::Refused, places).expect("opened");
    let (rejections, kept) = ([rejection(1)], [kept(1)]);
    let refused = Refused { collection: 0, rejections: &rejections, kept: &kept };
    assert!(rejects.keep(refused, Some(done(1))).is_err());
    assert!(!root.path().join("up").exists());
    // Nothing more is called done after that.
    assert_eq!(rejects.keep(refused, Some(done(1))).expect("no second error"), None);
    assert_eq!(rejects.sync().expect("synced"), []);
}
