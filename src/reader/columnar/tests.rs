//! Tests of files of columns, with files that pyarrow wrote.

use bson::oid::ObjectId;
use bson::spec::BinarySubtype;
use bson::{Binary, Bson, DateTime, Decimal128, Document, doc};

use super::*;

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/tables").join(name)
}

fn open_file(name: &str) -> ColumnFile {
    let path = file(name);
    let first = std::fs::read(&path).expect("is there");
    let format = ColumnarFormat::of_first_bytes(&first).expect("is a table");
    ColumnFile::open(&path, format).expect("opens")
}

/// The documents of a file, and what is said of rows that are none.
fn documents(table: &ColumnFile, blanks: Blanks) -> Vec<Result<Document, String>> {
    let mut draft = Draft::default();
    let mut made = Vec::new();
    for group in table.groups() {
        for rows in table.read(group).expect("opens again") {
            let rows = rows.expect("is whole");
            for row in 0..rows.count() {
                made.push(rows.write(row, blanks, &mut draft).map(|()| {
                    let frame = draft.frame().expect("small enough");
                    Document::from_reader(frame.bytes()).expect("is BSON")
                }));
            }
        }
    }
    made
}

fn decimal(text: &str) -> Decimal128 {
    text.parse().expect("a decimal")
}

fn first_row() -> Document {
    let binary = |subtype, bytes: &[u8]| Binary { subtype, bytes: bytes.to_vec() };
    let at = DateTime::from_millis(1_709_209_815_123);
    doc! {
        "_id": ObjectId::from_bytes([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]),
        "null": Bson::Null, "bool": true, "int8": -128, "uint16": 0, "int32": i32::MIN,
        "uint32": 0_i64, "int64": i64::MIN, "uint64": 1_i64, "float": 1.5, "double": 0.1,
        "decimal": decimal("-12.340"), "long": decimal("1.5"), "text": "Zürich", "word": "red",
        "bytes": binary(BinarySubtype::Generic, &[0, 255]),
        "uuid": binary(BinarySubtype::Uuid, &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]),
        "date": DateTime::from_millis(-86_400_000), "time": "01:02:03", "milli": at, "micro": at,
        "list": [1_i64, Bson::Null, 3_i64], "pair": [1.0, 2.0],
        "items": [{ "sku": "a", "count": 1 }, { "sku": "b", "count": Bson::Null }],
        "address": { "sku": "x", "count": 9 }, "labels": { "a": "1", "b": Bson::Null },
        "numbered": [{ "key": 1, "value": "one" }],
    }
}

#[test]
fn every_type_has_its_counterpart() {
    for name in ["kinds.parquet", "kinds.arrow"] {
        let table = open_file(name);
        let made = documents(&table, Blanks::Kept);
        assert_eq!(made.len(), 3, "{name}");
        let first = made[0].as_ref().expect("a document");
        assert_eq!(first.keys().collect::<Vec<_>>(), first_row().keys().collect::<Vec<_>>());
        assert_eq!(*first, first_row(), "{name}");
        let error = made[1].as_ref().expect_err("a number of forty digits");
        assert!(error.starts_with("column \"long\": the decimal 1"), "{error}");
        let last = made[2].as_ref().expect("a document");
        assert!(last.iter().skip(1).all(|(_, value)| *value == Bson::Null), "{last}");
        assert_eq!(table.finer_times(), ["micro"]);
    }
}

#[test]
fn blanks_can_be_left_out() {
    let made = documents(&open_file("kinds.parquet"), Blanks::Ignored);
    let last = made[2].as_ref().expect("a document");
    assert_eq!(last.keys().collect::<Vec<_>>(), ["_id"]);
    let first = made[0].as_ref().expect("a document");
    assert!(!first.contains_key("null"));
    assert_eq!(first.get_array("list").expect("a list")[1], Bson::Null, "places in lists stay");
}

#[test]
fn groups_are_read_apart_and_in_any_order() {
    for (name, knows_rows) in [("groups.parquet", true), ("groups.arrow", false)] {
        let table = open_file(name);
        assert_eq!(table.groups().len(), 4, "{name}");
        let mut draft = Draft::default();
        for group in table.groups().iter().rev() {
            let mut rows = table.read(group).expect("opens").map(|rows| rows.expect("is whole"));
            let rows = rows.next().expect("rows");
            let start = group.number * 300;
            assert_eq!(rows.first(), if knows_rows { start as u64 } else { 0 });
            assert_eq!(rows.count(), if group.number == 3 { 100 } else { 300 });
            rows.write(7, Blanks::Kept, &mut draft).expect("a document");
            let frame = draft.frame().expect("small");
            let made = Document::from_reader(frame.bytes()).expect("is BSON");
            let number = i32::try_from(start + 7).expect("small");
            assert_eq!(made, doc! { "_id": number, "text": format!("row {number}") });
        }
        let size = std::fs::metadata(file(name)).expect("is there").len();
        let told: u64 = table.groups().iter().map(|group| group.bytes).sum();
        assert!(told > 0 && told <= size, "{told} of {size}");
    }
}

#[test]
fn a_damaged_file_says_so() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, format) in
        [("groups.parquet", ColumnarFormat::Parquet), ("groups.arrow", ColumnarFormat::Arrow)]
    {
        let whole = std::fs::read(file(name)).expect("is there");
        let path = folder.path().join(name);
        std::fs::write(&path, &whole[..whole.len() / 2]).expect("written");
        let error = ColumnFile::open(&path, format).expect_err("half a file");
        assert!(error.to_string().contains("not a whole"), "{error}");
        assert!(error.to_string().contains(name), "{error}");
    }
}

#[test]
fn changed_bytes_are_an_error_or_other_documents_but_never_a_panic() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut faults = 0;
    for (name, format) in
        [("groups.parquet", ColumnarFormat::Parquet), ("kinds.arrow", ColumnarFormat::Arrow)]
    {
        let whole = std::fs::read(file(name)).expect("is there");
        let path = folder.path().join(name);
        for at in (0..whole.len()).step_by(61) {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x55;
            std::fs::write(&path, bytes).expect("written");
            let Ok(table) = ColumnFile::open(&path, format) else {
                faults += 1;
                continue;
            };
            let mut draft = Draft::default();
            for group in table.groups() {
                let Ok(read) = table.read(group) else {
                    faults += 1;
                    continue;
                };
                for rows in read {
                    let Ok(rows) = rows else {
                        faults += 1;
                        break;
                    };
                    for row in 0..rows.count() {
                        let _written = rows.write(row, Blanks::Kept, &mut draft);
                    }
                }
            }
        }
    }
    assert!(faults > 20, "only {faults} changes were noticed");
}
