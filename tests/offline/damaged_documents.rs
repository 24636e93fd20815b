//! Documents with a damaged inside, found by `--objcheck` before they are sent.

use std::fs;

use serde_json::Value;

use crate::program::Program;

/// `{ "_id": id, "a": "x" }`.
fn document(id: u8) -> Vec<u8> {
    let mut bytes = vec![24, 0, 0, 0, 0x10];
    bytes.extend_from_slice(b"_id\0");
    bytes.extend_from_slice(&[id, 0, 0, 0, 0x02]);
    bytes.extend_from_slice(b"a\0");
    bytes.extend_from_slice(&[2, 0, 0, 0, b'x', 0, 0]);
    bytes[0] = u8::try_from(bytes.len()).expect("it is short");
    bytes
}

/// The same, with a string that reaches beyond its document.
fn damaged(id: u8) -> Vec<u8> {
    let mut bytes = document(id);
    bytes[17] = 200;
    bytes
}

fn restore(documents: &[Vec<u8>], arguments: &[&str]) -> (Option<i32>, String, Value) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("d/things.bson");
    fs::create_dir(folder.path().join("d")).expect("a folder");
    fs::write(&file, documents.concat()).expect("written");
    let report = folder.path().join("report.json");
    let finished = Program::restorm(&["restore", "--null", "--report"])
        .arg(&report)
        .args(arguments)
        .arg(folder.path())
        .run();
    let report = fs::read(report).expect("a report");
    (finished.status, finished.stderr, serde_json::from_slice(&report).expect("JSON"))
}

/// The peer loses whatever is in the buffer of the worker that meets a damaged document.
#[test]
fn better_than_the_peer_a_damaged_document_is_counted_and_the_rest_goes_on() {
    let documents = [document(1), document(2), damaged(3), document(4), document(5)];
    let (status, stderr, report) = restore(&documents, &["--objcheck"]);
    assert_eq!(status, Some(3), "{stderr}");
    let balance = &report["balance"];
    assert_eq!((&balance["read"], &balance["inserted"]), (&5.into(), &4.into()));
    assert_eq!(balance["rejected"], 1);
    assert_eq!(report["is_balanced"], true);
    let failures = report["collections"][0]["failures"].to_string();
    let offset = 2 * document(1).len();
    assert!(failures.contains(&format!("at byte {offset} of the file")), "{failures}");
    assert!(failures.contains("not sent"), "{failures}");
    assert!(failures.contains("\"id\":\"3\""), "{failures}");
}

#[test]
fn without_the_check_the_server_is_left_to_judge() {
    let (status, _, report) = restore(&[document(1), damaged(2)], &[]);
    assert_eq!((status, &report["balance"]["inserted"]), (Some(0), &2.into()));
}

#[test]
fn stop_on_error_stops_at_a_damaged_document_as_well() {
    let documents = [document(1), damaged(2), document(3)];
    let (status, stderr, report) = restore(&documents, &["--objcheck", "--stopOnError"]);
    assert_eq!(status, Some(1), "{stderr}");
    assert_eq!(report["outcome"]["kind"], "stopped");
    assert_eq!(report["balance"]["read"], 2);
    assert!(stderr.contains("stopped at a refused document"), "{stderr}");
}
