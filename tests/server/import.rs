//! Texts that are imported into a server: what is stored is what they say.

use crate::program::{Finished, Program};
use crate::support::{Server, stored};
use mongodb::bson::oid::ObjectId;
use mongodb::bson::spec::BinarySubtype;
use mongodb::bson::{Binary, Bson, DateTime, Decimal128, Document, Timestamp, doc};
use serde_json::Value;

fn import(server: &Server, arguments: &[&str], input: &str) -> (Finished, Value) {
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("report.json");
    let finished = Program::restorm(&["import", "--uri", server.uri(), "--report"])
        .arg(&report)
        .args(arguments)
        .input(input)
        .run();
    let report = std::fs::read(report)
        .map_or(Value::Null, |text| serde_json::from_slice(&text).expect("the report is JSON"));
    (finished, report)
}

/// Documents of every type that the server stores as it is.
fn documents() -> Vec<Document> {
    let code = mongodb::bson::JavaScriptCodeWithScope { code: "f".into(), scope: doc! { "a": 1 } };
    let values = [
        Bson::Null,
        Bson::Undefined,
        Bson::MinKey,
        Bson::MaxKey,
        Bson::Boolean(true),
        Bson::Int32(-5),
        Bson::Int64(i64::MAX),
        Bson::Int64(7),
        Bson::Double(0.1),
        Bson::Double(f64::NEG_INFINITY),
        Bson::Decimal128("1.50E+3".parse::<Decimal128>().unwrap()),
        Bson::String("é \u{1F980} \"quoted\"\n".into()),
        Bson::Symbol("s".into()),
        Bson::JavaScriptCode("f()".into()),
        Bson::JavaScriptCodeWithScope(code),
        Bson::DateTime(DateTime::from_millis(1_600_000_000_123)),
        Bson::DateTime(DateTime::from_millis(-62_135_596_800_001)),
        Bson::Timestamp(Timestamp { time: 5, increment: 6 }),
        Bson::ObjectId(ObjectId::from_bytes([9; 12])),
        Bson::Binary(Binary { subtype: BinarySubtype::Generic, bytes: vec![0, 255] }),
        Bson::Binary(Binary { subtype: BinarySubtype::Uuid, bytes: vec![7; 16] }),
        Bson::Document(doc! { "a": { "b": [1, [], {}] } }),
    ];
    let numbered = (0..).zip(values);
    numbered.map(|(id, value)| doc! { "_id": id, "value": value, "after": [id] }).collect()
}

fn bytes(documents: &[Document]) -> Vec<Vec<u8>> {
    documents.iter().map(|document| document.to_vec().unwrap()).collect()
}

#[test]
fn canonical_text_is_stored_byte_for_byte() {
    let server = Server::lease();
    let documents = documents();
    let texts: Vec<_> = documents
        .iter()
        .map(|one| Bson::Document(one.clone()).into_canonical_extjson().to_string())
        .collect();
    for text in [texts.join("\n"), format!("[{}]", texts.join(","))] {
        let arguments = ["-d", "shop", "-c", "orders", "--drop", "--maintainInsertionOrder"];
        let (finished, report) = import(&server, &arguments, &text);
        assert_eq!(finished.status, Some(0), "{}", finished.stderr);
        assert_eq!(report["balance"]["inserted"], documents.len());
        assert_eq!(stored(&server.client(), "shop", "orders"), bytes(&documents));
    }
}

#[test]
fn relaxed_text_is_stored_byte_for_byte_where_it_loses_nothing() {
    let server = Server::lease();
    // A relaxed text does not tell a small 64-bit integer from a 32-bit one.
    let mut documents = documents();
    documents.retain(|one| one.get("value") != Some(&Bson::Int64(7)));
    let texts = documents.iter().map(|one| Bson::Document(one.clone()).into_relaxed_extjson());
    let text = texts.map(|text| format!("{text}\n")).collect::<Vec<_>>().concat();
    let arguments = ["-d", "shop", "-c", "orders", "--maintainInsertionOrder"];
    let (finished, _) = import(&server, &arguments, &text);
    assert_eq!(finished.status, Some(0), "{}", finished.stderr);
    assert_eq!(stored(&server.client(), "shop", "orders"), bytes(&documents));
}

#[test]
fn documents_without_an_id_get_one_each_and_all_of_them_arrive() {
    let server = Server::lease();
    let text =
        (0..20_000).map(|number| format!("{{\"n\":{number}}}\n")).collect::<Vec<_>>().concat();
    let (finished, report) = import(&server, &["-d", "shop", "-c", "orders"], &text);
    assert_eq!(finished.status, Some(0), "{}", finished.stderr);
    assert_eq!(report["balance"]["inserted"], 20_000);
    let stored = stored(&server.client(), "shop", "orders");
    let numbers: std::collections::BTreeSet<_> = stored
        .iter()
        .map(|bytes| {
            let document = Document::from_reader(bytes.as_slice()).unwrap();
            assert!(matches!(document.get("_id"), Some(Bson::ObjectId(_))), "{document}");
            document.get_i32("n").unwrap()
        })
        .collect();
    assert_eq!((stored.len(), numbers.len()), (20_000, 20_000));
}

#[test]
fn what_the_server_refuses_is_counted_and_validators_judge() {
    let server = Server::lease();
    let validator = doc! { "create": "orders", "validator": { "a": { "$lt": 10 } } };
    server.run("shop", validator);
    let text = (0..20)
        .map(|number| format!("{{\"_id\":{number},\"a\":{number}}}\n"))
        .collect::<Vec<_>>()
        .concat();
    let arguments = ["-d", "shop", "-c", "orders"];
    let (finished, report) = import(&server, &arguments, &text);
    assert_eq!(finished.status, Some(3), "{}", finished.stderr);
    assert_eq!(report["balance"]["rejected"], 10);
    assert_eq!(stored(&server.client(), "shop", "orders").len(), 10);
    // The ten that are there are duplicates, the others are let in.
    let arguments = ["-d", "shop", "-c", "orders", "--bypassDocumentValidation"];
    let (finished, report) = import(&server, &arguments, &text);
    assert_eq!(finished.status, Some(3), "{}", finished.stderr);
    assert_eq!(report["balance"]["inserted"], 10);
    assert_eq!(stored(&server.client(), "shop", "orders").len(), 20);
}

#[test]
fn a_table_is_stored_with_the_types_of_its_columns() {
    let server = Server::lease();
    let text = "_id.int64(),at.date_oracle(yyyy-mm-dd),price.decimal(),tags.0.string(),\
                tags.1.auto(),data.binary(hex),is.boolean(),note.string()\n\
                1,2020-09-13,5.10,\"a,\"\"b\"\"\",7,00ff,true,\n";
    let table = ["--type", "csv", "--headerline", "--columnsHaveTypes", "--useArrayIndexFields"];
    let into = ["-d", "shop", "-c", "rows", "--ignoreBlanks"];
    let (finished, report) = import(&server, &[&table[..], &into].concat(), text);
    assert_eq!(finished.status, Some(0), "{}", finished.stderr);
    assert_eq!(report["balance"]["inserted"], 1);
    let data = Binary { subtype: BinarySubtype::Generic, bytes: vec![0, 255] };
    let expected = doc! {
        "_id": 1_i64,
        "at": DateTime::from_millis(1_599_955_200_000),
        "price": "5.10".parse::<Decimal128>().unwrap(),
        "tags": ["a,\"b\"", 7],
        "data": data,
        "is": true,
    };
    assert_eq!(stored(&server.client(), "shop", "rows"), bytes(&[expected]));
}

#[test]
fn documents_that_are_there_are_replaced_or_merged_and_the_last_one_counts() {
    let server = Server::lease();
    let text = "{\"_id\":1,\"a\":1}\n{\"_id\":1,\"b\":2}\n{\"_id\":2,\"a\":5}\n{\"c\":1}\n";
    for (mode, counted, expected) in [
        ("upsert", "replaced", doc! { "_id": 1, "b": 2 }),
        ("merge", "merged", doc! { "_id": 1, "kept": true, "a": 1, "b": 2 }),
    ] {
        server.run("shop", doc! { "dropDatabase": 1 });
        let there = vec![doc! { "_id": 1, "kept": true }];
        server.run("shop", doc! { "insert": "orders", "documents": there });
        let arguments = ["-d", "shop", "-c", "orders", "--mode", mode];
        let (finished, report) = import(&server, &arguments, text);
        assert_eq!(finished.status, Some(0), "{}", finished.stderr);
        assert_eq!(report["balance"]["read"], 4, "{mode}");
        assert_eq!(report["balance"][counted], 2, "{mode}");
        assert_eq!(report["balance"]["inserted"], 2, "{mode}");
        let stored = stored(&server.client(), "shop", "orders");
        assert_eq!(stored.len(), 3, "{mode}");
        assert!(stored.contains(&expected.to_vec().unwrap()), "{mode}");
    }
}

/// Imports into a collection that holds these documents; what the report counts and what is stored
/// afterwards, without the `_id`s of new documents.
fn into_stored(there: &[Document], arguments: &[&str], text: &str) -> (Value, Vec<Document>) {
    let server = Server::lease();
    server.run("shop", doc! { "create": "orders" });
    if !there.is_empty() {
        server.run("shop", doc! { "insert": "orders", "documents": there.to_vec() });
    }
    let (finished, report) =
        import(&server, &[&["-d", "shop", "-c", "orders"], arguments].concat(), text);
    let expected = if report["balance"]["rejected"] == 0 { 0 } else { 3 };
    assert_eq!(finished.status, Some(expected), "{}", finished.stderr);
    assert_eq!(report["is_balanced"], true, "{report}");
    let stored = stored(&server.client(), "shop", "orders");
    let documents = stored.iter().map(|one| {
        let mut document = Document::from_reader(one.as_slice()).unwrap();
        if matches!(document.get("_id"), Some(Bson::ObjectId(_))) {
            document.remove("_id");
        }
        document
    });
    let documents = documents.collect();
    (report["balance"].clone(), documents)
}

/// Inserted, replaced or merged, deleted, not found, rejected.
fn counts(balance: &Value) -> [u64; 5] {
    let number = |name: &str| balance[name].as_u64().expect("a number");
    let changed = number("replaced") + number("merged");
    let [inserted, deleted, not_found, rejected] =
        ["inserted", "deleted", "not_found", "rejected"].map(number);
    [inserted, changed, deleted, not_found, rejected]
}

#[test]
fn documents_are_replaced_by_other_fields_and_keep_their_id() {
    let there = [doc! { "_id": 1, "sku": { "n": "a" }, "kept": true }, doc! { "_id": 2, "x": 1 }];
    let text = "{\"sku\":{\"n\":\"a\"},\"v\":1}\n{\"sku\":{\"n\":\"b\"},\"v\":2}\n\
                {\"sku\":{\"n\":\"b\"},\"v\":3}\n{\"v\":4}\n{\"sku\":{\"n\":null},\"v\":5}\n";
    let fresh = |of: i32| doc! { "sku": { "n": "b" }, "v": of };
    let others = [doc! { "v": 4 }, doc! { "sku": { "n": Bson::Null }, "v": 5 }];
    for (mode, first) in [
        ("upsert", doc! { "_id": 1, "sku": { "n": "a" }, "v": 1 }),
        ("merge", doc! { "_id": 1, "sku": { "n": "a" }, "kept": true, "v": 1 }),
    ] {
        let arguments = ["--mode", mode, "--upsertFields", "sku.n"];
        let (balance, stored) = into_stored(&there, &arguments, text);
        assert_eq!(counts(&balance), [3, 2, 0, 0, 0], "{mode}");
        assert_eq!(stored.len(), 5, "{mode}: {stored:?}");
        for expected in [&first, &there[1], &fresh(3), &others[0], &others[1]] {
            assert!(stored.contains(expected), "{mode}: {expected} in {stored:?}");
        }
    }
}

#[test]
fn a_missing_key_is_null_beside_one_that_is_there() {
    let there = [doc! { "_id": 1, "a": 1 }, doc! { "_id": 2, "a": 1, "b": 7 }];
    let arguments = ["--upsertFields", "a,b"];
    let (balance, stored) = into_stored(&there, &arguments, "{\"a\":1,\"v\":1}\n");
    assert_eq!(counts(&balance), [0, 1, 0, 0, 0]);
    assert_eq!(stored, [doc! { "_id": 1, "a": 1, "v": 1 }, there[1].clone()]);
}

#[test]
fn a_document_without_keys_is_inserted_even_where_its_id_is_there() {
    let there = [doc! { "_id": 1, "a": 1 }];
    let text = "{\"_id\":1,\"v\":1}\n{\"_id\":2,\"a\":1}\n{\"_id\":3,\"v\":3}\n";
    let (balance, stored) = into_stored(&there, &["--upsertFields", "a"], text);
    // The first is a duplicate, and an `_id` of a stored document cannot be changed.
    assert_eq!(counts(&balance), [1, 0, 0, 0, 2]);
    assert_eq!(stored, [there[0].clone(), doc! { "_id": 3, "v": 3 }]);
}

#[test]
fn each_document_deletes_one_stored_at_most() {
    let there = || [1, 2, 3].map(|id| doc! { "_id": id, "a": { "b": id % 2 } });
    let by_id = "{\"_id\":1}\n{\"_id\":1}\n{\"_id\":9}\n{\"a\":1}\n{\"_id\":3,\"x\":1}\n";
    let (balance, stored) = into_stored(&there(), &["--mode", "delete"], by_id);
    assert_eq!(counts(&balance), [0, 0, 2, 3, 0]);
    assert_eq!(stored, [doc! { "_id": 2, "a": { "b": 0 } }]);
    let by_key = ["--mode", "delete", "--upsertFields", "a.b"];
    let line = "{\"a\":{\"b\":1}}\n";
    let (balance, stored) = into_stored(&there(), &by_key, line);
    assert_eq!((counts(&balance), stored.len()), ([0, 0, 1, 0, 0], 2));
    let text = [&line.repeat(3), "{\"_id\":2}\n{\"a\":1}\n"].concat();
    let (balance, stored) = into_stored(&there(), &by_key, &text);
    assert_eq!(counts(&balance), [0, 0, 2, 3, 0]);
    assert_eq!(stored, [doc! { "_id": 2, "a": { "b": 0 } }]);
    let (balance, stored) = into_stored(&[], &["--mode", "delete"], by_id);
    assert_eq!((counts(&balance), stored.len()), ([0, 0, 0, 5, 0], 0));
}

#[test]
fn deletes_by_other_fields_are_not_sent_again() {
    let server = Server::private(&["--setParameter", "enableTestCommands=1"]);
    let line = "{\"_id\":1,\"a\":1}\n";
    for (keys, status, left) in [("_id", 0, 1), ("a", 1, 2)] {
        server.run("shop", doc! { "dropDatabase": 1 });
        let there = vec![doc! { "_id": 1, "a": 1 }, doc! { "_id": 2, "a": 1 }];
        server.run("shop", doc! { "insert": "orders", "documents": there });
        let data = doc! { "failCommands": ["delete"], "closeConnection": true };
        let mode = doc! { "times": 1 };
        let fail = doc! { "configureFailPoint": "failCommand", "mode": mode, "data": data };
        server.run("admin", fail);
        let arguments = ["-d", "shop", "-c", "orders", "--mode", "delete", "--upsertFields", keys];
        let (finished, report) = import(&server, &arguments, line);
        assert_eq!(finished.status, Some(status), "{keys}: {}", finished.stderr);
        assert_eq!(report["balance"]["deleted"], u64::from(status == 0), "{keys}");
        assert_eq!(report["balance"]["unsent"], u64::from(status == 1), "{keys}");
        assert_eq!(report["is_balanced"], true, "{keys}");
        assert_eq!(stored(&server.client(), "shop", "orders").len(), left, "{keys}");
        let says = finished.stderr.contains("not known which documents were deleted");
        assert_eq!(says, status == 1, "{keys}: {}", finished.stderr);
    }
}

#[test]
fn a_key_that_looks_like_an_operator_is_a_value() {
    let there = [doc! { "_id": 1, "a": 5 }, doc! { "_id": 2, "a": { "$gt": 1 } }];
    let line = "{\"a\":{\"$gt\":1}}\n";
    let by_key = ["--mode", "delete", "--upsertFields", "a"];
    let (balance, stored) = into_stored(&there, &by_key, line);
    assert_eq!(counts(&balance), [0, 0, 1, 0, 0]);
    assert_eq!(stored, [there[0].clone()]);
}

#[cfg(feature = "columnar")]
#[test]
fn files_of_columns_are_stored_as_documents() {
    let server = Server::lease();
    let file = |name: &str| format!("{}/testdata/tables/{name}", env!("CARGO_MANIFEST_DIR"));
    for name in ["kinds.parquet", "kinds.arrow"] {
        let (finished, report) =
            import(&server, &[&file(name), "-d", "t", "-c", "kinds", "--drop"], "");
        assert_eq!(finished.status, Some(3), "{}", finished.stderr);
        assert_eq!(report["balance"]["inserted"], 2);
        assert_eq!(report["balance"]["rejected"], 1);
        let stored = stored(&server.client(), "t", "kinds");
        let documents: Vec<_> =
            stored.iter().map(|one| Document::from_reader(one.as_slice()).unwrap()).collect();
        let id = ObjectId::from_bytes([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
        let first = documents.iter().find(|one| one.get("_id") == Some(&Bson::ObjectId(id)));
        let first = first.expect("it has the id of its row");
        assert_eq!(first.get("text"), Some(&Bson::String("Z\u{fc}rich".into())));
        assert_eq!(first.get("decimal"), Some(&Bson::Decimal128("-12.340".parse().unwrap())));
        let items = doc! { "sku": "b", "count": Bson::Null };
        assert_eq!(first.get_array("items").unwrap()[1], Bson::Document(items));
    }
    let (finished, report) = import(&server, &[&file("groups.parquet"), "-d", "t"], "");
    assert_eq!(finished.status, Some(0), "{}", finished.stderr);
    assert_eq!(report["balance"]["inserted"], 1000);
    let ids = stored(&server.client(), "t", "groups");
    assert_eq!(ids.len(), 1000, "no row is there twice");
}

#[cfg(feature = "columnar")]
#[test]
fn rows_of_columns_find_stored_documents_by_other_fields() {
    let server = Server::lease();
    let file = format!("{}/testdata/tables/groups.parquet", env!("CARGO_MANIFEST_DIR"));
    let (finished, _) = import(&server, &[&file, "-d", "t"], "");
    assert_eq!(finished.status, Some(0), "{}", finished.stderr);
    let there = stored(&server.client(), "t", "groups");
    let field = Document::from_reader(there[0].as_slice()).unwrap();
    let field = field.keys().find(|name| *name != "_id").expect("a column").clone();
    let by_field = [&file, "-d", "t", "--mode", "merge", "--upsertFields", &field];
    let (finished, report) = import(&server, &by_field, "");
    assert_eq!(finished.status, Some(0), "{}", finished.stderr);
    assert_eq!(report["balance"]["read"], 1000);
    assert_eq!(report["balance"]["unchanged"], 1000, "{}", report["balance"]);
    let (finished, report) =
        import(&server, &[&file, "-d", "t", "--mode", "delete", "--upsertFields", &field], "");
    assert_eq!(finished.status, Some(0), "{}", finished.stderr);
    assert_eq!(report["balance"]["deleted"], 1000, "{}", report["balance"]);
    assert!(stored(&server.client(), "t", "groups").is_empty());
}
