//! The binary under the name `mongoimport` against a server. What is expected here is what
//! mongoimport 100.18 stored and said of the same texts, written down from it.

use std::os::unix::fs::symlink;

use mongodb::bson::{Bson, DateTime, Decimal128, Document, doc};

use crate::program::Program;
use crate::support::{Server, lacks, stored};

/// What an import came to.
#[derive(Debug, PartialEq)]
struct Outcome {
    status: Option<i32>,
    last_line: String,
    /// Without the `_id`s that were made for them.
    documents: Vec<Document>,
}

/// Imports a text into `shop.orders`, which holds these documents.
fn import_into(server: &Server, there: &[Document], words: &[&str], text: &str) -> Outcome {
    server.run("shop", doc! { "dropDatabase": 1 });
    if !there.is_empty() {
        server.run("shop", doc! { "insert": "orders", "documents": there.to_vec() });
    }
    import(server, words, text)
}

fn import(server: &Server, words: &[&str], text: &str) -> Outcome {
    let folder = tempfile::tempdir().expect("a folder");
    let link = folder.path().join("mongoimport");
    symlink(env!("CARGO_BIN_EXE_restorm"), &link).expect("a link");
    let finished = Program::of(link.to_str().expect("a plain path"), &["--uri", server.uri()])
        .args(&["-d", "shop", "-c", "orders"])
        .args(words)
        .input(text)
        .run();
    let last_line = finished.stderr.lines().last().unwrap_or_default();
    let last_line = last_line.split_once('\t').map_or(last_line, |(_, line)| line).to_owned();
    let stored = stored(&server.client(), "shop", "orders");
    let documents = stored.iter().map(|one| {
        let mut document = Document::from_reader(one.as_slice()).expect("BSON");
        if matches!(document.get("_id"), Some(Bson::ObjectId(_))) {
            document.remove("_id");
        }
        document
    });
    Outcome { status: finished.status, last_line, documents: documents.collect() }
}

fn counts(done: u64, failed: u64) -> String {
    format!("{done} document(s) imported successfully. {failed} document(s) failed to import.")
}

#[test]
fn a_merge_sets_paths_and_refuses_what_is_none() {
    let server = Server::lease_databases(&["shop"]);
    let there = [doc! { "_id": 1, "a": 1, "s": { "t": 1, "u": 2 }, "arr": [1, 2] }];
    for (text, expected) in [
        (r#"{"_id":1,"s.t":9}"#, doc! { "_id": 1, "a": 1, "s": { "t": 9, "u": 2 }, "arr": [1, 2] }),
        (r#"{"_id":1,"arr.0":9}"#, {
            doc! { "_id": 1, "a": 1, "s": { "t": 1, "u": 2 }, "arr": [9, 2] }
        }),
        (r#"{"_id":1,"s":{"w":5}}"#, doc! { "_id": 1, "a": 1, "s": { "w": 5 }, "arr": [1, 2] }),
    ] {
        let outcome = import_into(&server, &there, &["--mode", "merge"], text);
        let expected =
            Outcome { status: Some(0), last_line: counts(1, 0), documents: vec![expected] };
        assert_eq!(outcome, expected, "{text}");
    }
    let made = import_into(&server, &[], &["--mode", "merge"], r#"{"_id":9,"s.t":9,"b":1,"a":2}"#);
    assert_eq!(made.documents, [doc! { "_id": 9, "a": 2, "b": 1, "s": { "t": 9 } }]);
    // No key field is there: such a document is inserted as it is.
    let words = ["--mode", "merge", "--upsertFields", "k"];
    let made = import_into(&server, &[], &words, r#"{"_id":9,"s.t":9,"b":1}"#);
    assert_eq!(made.documents, [doc! { "_id": 9, "s.t": 9, "b": 1 }]);
    let made = import_into(&server, &[], &["--mode", "merge"], r#"{"s.t":9,"b":1}"#);
    assert_eq!(made.documents, [doc! { "s.t": 9, "b": 1 }]);
    let words = ["--mode", "merge", "--upsertFields", "_id,n"];
    let made = import_into(&server, &[], &words, r#"{"k":"x","b":9}"#);
    assert_eq!(made.documents, [doc! { "k": "x", "b": 9 }]);
    for text in [
        r#"{"_id":1,"a.t":9}"#,
        r#"{"_id":1,"$x":9}"#,
        r#"{"_id":1,"":9}"#,
        r#"{"_id":1,"b":1,"b":2}"#,
        r#"{"_id":{"$numberLong":"1"},"b":1}"#,
        r#"{"_id":1,"s":{"t":1},"s.u":7}"#,
    ] {
        let outcome = import_into(&server, &there, &["--mode", "merge"], text);
        let expected =
            Outcome { status: Some(1), last_line: counts(0, 1), documents: there.to_vec() };
        assert_eq!(outcome, expected, "{text}");
    }
}

#[test]
fn a_time_series_collection_takes_documents() {
    if lacks("time-series collections", [5, 0]) {
        return;
    }
    let server = Server::lease_databases(&["shop"]);
    let options = doc! { "timeField": "t", "metaField": "m" };
    server.run("shop", doc! { "create": "orders", "timeseries": options });
    let text = "{\"t\":{\"$date\":0},\"m\":1,\"v\":2}\n{\"t\":{\"$date\":5},\"m\":1,\"v\":3}\n";
    let outcome = import(&server, &[], text);
    assert_eq!((outcome.status, outcome.last_line), (Some(0), counts(2, 0)));
    let mut documents = outcome.documents;
    documents.sort_by_key(|one| one.get_i32("v").expect("a number"));
    let at = |millis| DateTime::from_millis(millis);
    let expected = [doc! { "t": at(0), "m": 1, "v": 2 }, doc! { "t": at(5), "m": 1, "v": 3 }];
    assert_eq!(documents, expected);
}

#[test]
fn deletes_are_counted_as_such() {
    let server = Server::lease_databases(&["shop"]);
    let there = [doc! { "_id": 1 }, doc! { "_id": 2 }];
    let text = "{\"_id\":1}\n{\"_id\":7}\n";
    let outcome = import_into(&server, &there, &["--mode", "delete"], text);
    let last_line = "1 document(s) deleted successfully. 0 document(s) failed to delete.";
    assert_eq!((outcome.status, outcome.last_line.as_str()), (Some(0), last_line));
    assert_eq!(outcome.documents, there[1..]);
}

#[test]
fn a_refusal_that_is_no_duplicate_and_no_validation_ends_with_one() {
    let server = Server::lease_databases(&["shop"]);
    for (text, status) in [
        ("{\"_id\":1}\n{\"_id\":1}\n", 0),
        ("{\"_id\":1}\n{\"_id\":[1]}\n", 1),
        ("{\"_id\":1}\n{\"_id\":{\"$undefined\":true}}\n", 1),
        ("{\"_id\":1}\n{\"_id\":{\"$a\":1}}\n", 1),
    ] {
        let outcome = import_into(&server, &[], &[], text);
        assert_eq!(outcome.status, Some(status), "{text}");
        assert_eq!(outcome.last_line, counts(1, 1), "{text}");
        assert_eq!(outcome.documents, [doc! { "_id": 1 }], "{text}");
    }
}

/// The words of a table with these columns.
fn table<'a>(columns: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["--type", "csv", "--columnsHaveTypes", "-f", columns][..], more].concat()
}

#[test]
fn a_cell_of_another_type_is_passed_over_or_ends_what_is_before_it() {
    let server = Server::lease_databases(&["shop"]);
    let text = "1,2\nx,3\n4,y\n,\n5,6,7\n8\n";
    let words = table("a.int32(),b.int32()", &["--parseGrace", "skipRow"]);
    let outcome = import_into(&server, &[], &words, text);
    let documents =
        vec![doc! { "a": 1, "b": 2 }, doc! { "a": 5, "b": 6, "field2": 7 }, doc! { "a": 8 }];
    assert_eq!(outcome, Outcome { status: Some(0), last_line: counts(3, 0), documents });
    let words = table("a.int32(),b.int32()", &[]);
    let outcome = import_into(&server, &[], &words, text);
    assert_eq!(outcome.status, Some(1));
    assert_eq!(outcome.documents, [doc! { "a": 1, "b": 2 }]);
    // The same holds for JSON, where the order is kept.
    let words = ["--maintainInsertionOrder"];
    let outcome = import_into(&server, &[], &words, "{\"_id\":1}\nnope\n{\"_id\":2}\n");
    assert_eq!((outcome.status, outcome.documents), (Some(1), vec![doc! { "_id": 1 }]));
}

#[test]
fn cells_are_what_they_look_like_to_go() {
    let server = Server::lease_databases(&["shop"]);
    let text = "1_000,0x1p4\n0x1.8p1,10_0.5\n0x10,1__0\n";
    let outcome = import_into(&server, &[], &["--type", "csv", "-f", "a,b"], text);
    let expected = [
        doc! { "a": 1000.0, "b": 16.0 },
        doc! { "a": 3.0, "b": 100.5 },
        doc! { "a": "0x10", "b": "1__0" },
    ];
    assert_eq!(outcome.documents, expected);
    for cell in ["", "e5", "sNaN"] {
        let outcome =
            import_into(&server, &[], &table("a.decimal()", &[]), &format!("\"{cell}\"\n"));
        assert_eq!((outcome.status, outcome.documents), (Some(1), vec![]), "{cell}");
    }
    let outcome = import_into(&server, &[], &table("a.decimal()", &[]), "1.50\n");
    let decimal: Decimal128 = "1.50".parse().expect("a decimal");
    assert_eq!(outcome.documents, [doc! { "a": decimal }]);
}

#[test]
fn dates_are_as_strict_as_those_of_go() {
    let server = Server::lease_databases(&["shop"]);
    for (columns, cell, millis) in [
        ("a.date(2006-01-02T15:04:05.000Z)", "2020-03-04T05:06:07.123Z", Some(1_583_298_367_123)),
        ("a.date(2006-01-02T15:04:05.000Z)", "2020-03-04T05:06:07.12Z", None),
        ("a.date(2006-01-02T15:04:05.999Z)", "2020-03-04T05:06:07Z", Some(1_583_298_367_000)),
        ("a.date_go(2006-002 -0700)", "2020-064 +0130", Some(1_583_274_600_000)),
        ("a.date_go(2006-002 -0700)", "2020-366 +0000", Some(1_609_372_800_000)),
        ("a.date_go(2006-002 -0700)", "2021-366 +0000", None),
        ("a.date_ms(M/d/yy h:mm tt)", "3/4/20 5:06 PM", Some(1_583_341_560_000)),
        ("a.date_ms(M/d/yy h:mm tt)", "3/4/68 5:06 pm", None),
    ] {
        let outcome = import_into(&server, &[], &table(columns, &[]), &format!("{cell}\n"));
        let expected: Vec<_> =
            millis.iter().map(|millis| doc! { "a": DateTime::from_millis(*millis) }).collect();
        assert_eq!(outcome.documents, expected, "{columns} {cell}");
        assert_eq!(outcome.status, Some(i32::from(millis.is_none())), "{columns} {cell}");
    }
}

#[test]
fn a_table_without_its_header_is_an_error() {
    let server = Server::lease_databases(&["shop"]);
    for text in ["", "\n"] {
        let outcome = import_into(&server, &[], &["--type", "csv", "--headerline"], text);
        assert_eq!((outcome.status, outcome.last_line), (Some(1), counts(0, 0)), "{text:?}");
    }
    let outcome = import_into(&server, &[], &["--type", "csv", "--headerline"], "a,b\n");
    assert_eq!((outcome.status, outcome.last_line), (Some(0), counts(0, 0)));
}

#[test]
fn operators_of_a_query_stay_documents_unless_the_text_is_legacy() {
    let server = Server::lease_databases(&["shop"]);
    let text = r#"{"_id":1,"v":{"$regex":"a","$options":"i"},
                   "w":[{"$match":{"x":{"$options":"i","$regex":"b"}}}]}"#;
    let outcome = import_into(&server, &[], &[], text);
    let pipeline = doc! { "$match": { "x": { "$options": "i", "$regex": "b" } } };
    let v = doc! { "$regex": "a", "$options": "i" };
    assert_eq!(outcome.documents, [doc! { "_id": 1, "v": v, "w": [pipeline] }]);
    let text = r#"{"_id":1,"v":{"$regex":"a","$options":"i"}}"#;
    let outcome = import_into(&server, &[], &["--legacy"], text);
    let v = outcome.documents[0].get("v");
    let Some(Bson::RegularExpression(regex)) = v else { panic!("{v:?}") };
    assert_eq!((regex.pattern.as_str(), regex.options.as_str()), ("a", "i"));
}

#[test]
fn a_typed_value_that_is_none_is_refused() {
    let server = Server::lease_databases(&["shop"]);
    for value in [
        r#"{"$oid":5}"#,
        r#"{"$date":null}"#,
        r#"{"$numberInt":5}"#,
        r#"{"$binary":{"base64":"YWI="}}"#,
        r#"{"$timestamp":{"t":1}}"#,
        r#"{"$numberLong":"5","x":1}"#,
        r#"{"$undefined":false}"#,
        r#"{"$numberDecimal":""}"#,
    ] {
        let text = format!("{{\"_id\":1,\"v\":{value}}}\n");
        let outcome = import_into(&server, &[], &[], &text);
        assert_eq!((outcome.status, outcome.documents), (Some(1), vec![]), "{value}");
    }
}
