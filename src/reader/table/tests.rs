//! What becomes of rows.

use std::sync::Arc;

use bson::{Bson, Document, doc};

use super::*;
use crate::dump::texts::table::{Names, NumbersInNames, Separator, Typing};

fn table(separator: Separator, typing: Typing) -> Table {
    Table {
        separator,
        names: Names::Header,
        typing,
        blanks: Blanks::Kept,
        grace: ParseGrace::SkipRow,
        numbers: NumbersInNames::Fields,
    }
}

fn guessed() -> Table {
    table(Separator::Comma, Typing::Guessed)
}

fn typed() -> Table {
    table(Separator::Comma, Typing::Named)
}

fn made(table: Table, header: &str, row: &[u8]) -> Result<Document, RowFault> {
    let columns = Columns::new(&Arc::new(table), header.as_bytes()).expect("columns");
    let (mut cells, mut draft) = (Cells::default(), Draft::default());
    convert(row, &columns, &mut cells, &mut draft)?;
    let frame = draft.frame().expect("a document");
    Ok(Document::from_reader(frame.bytes()).expect("BSON"))
}

fn refused(table: Table, header: &str) -> String {
    Columns::new(&Arc::new(table), header.as_bytes()).expect_err("refused")
}

#[test]
fn what_looks_like_a_number_is_one() {
    for (cell, expected) in [
        ("5", Bson::Int32(5)),
        ("-007", Bson::Int32(-7)),
        ("+5", Bson::Int32(5)),
        ("3000000000", Bson::Int64(3_000_000_000)),
        ("9223372036854775808", Bson::Double(9_223_372_036_854_775_808.0)),
        ("1e3", Bson::Double(1000.0)),
        (".5", Bson::Double(0.5)),
        ("inf", Bson::Double(f64::INFINITY)),
        ("1e400", Bson::String("1e400".into())),
        ("+nan", Bson::String("+nan".into())),
        ("-", Bson::String("-".into())),
        ("1 2", Bson::String("1 2".into())),
        ("", Bson::String(String::new())),
        ("true", Bson::String("true".into())),
    ] {
        let document = made(guessed(), "a,b", format!("{cell},x\n").as_bytes());
        assert_eq!(document, Ok(doc! { "a": expected, "b": "x" }), "{cell}");
    }
}

#[test]
fn quotes_hold_commas_quotes_and_ends_of_lines() {
    for (row, expected) in [
        ("\"a,b\",c\n", ["a,b", "c"]),
        ("\"say \"\"hi\"\"\",c", ["say \"hi\"", "c"]),
        ("\"two\r\nlines\",\"\"\r\n", ["two\nlines", ""]),
        ("  a b  ,  \" c \"  \n", ["a b", " c "]),
        ("\"\"\"\",\u{a0}é\u{a0}\n", ["\"", "é"]),
    ] {
        let [a, b] = expected;
        assert_eq!(made(guessed(), "a,b", row.as_bytes()), Ok(doc! { "a": a, "b": b }), "{row}");
        assert_eq!(row_end(format!("{row}\nx").as_bytes(), Separator::Comma), {
            let ended = row.ends_with('\n');
            RowEnd::At(row.len() + usize::from(!ended))
        });
    }
}

#[test]
fn quotes_elsewhere_are_faults_and_end_with_their_line() {
    for (row, at) in [("5\" disk,x\n", 1), ("\"a\" b,x\n", 4), ("x,\"a\n", 2), ("\"a\" \"b\"\n", 4)]
    {
        let fault = made(guessed(), "a,b", row.as_bytes()).expect_err(row);
        assert_eq!(fault.at, at, "{row}: {}", fault.message);
    }
    assert_eq!(row_end(b"5\" disk,x\ny\n", Separator::Comma), RowEnd::At(10));
    assert_eq!(row_end(b"\"a\" \"b\"\ny\n", Separator::Comma), RowEnd::At(8));
    assert_eq!(row_end(b"a,\"b\nc\n", Separator::Comma), RowEnd::InQuotes);
    assert_eq!(row_end(b"a,\"b\nc\"", Separator::Comma), RowEnd::Beyond);
    assert_eq!(row_end(b"a\t\"b\nc", Separator::Tab), RowEnd::At(5));
    let fault = made(guessed(), "a,b", b"a,\xFF\n").expect_err("no UTF-8");
    assert_eq!(fault.at, 2);
}

#[test]
fn cells_of_tabs_are_as_they_are() {
    let tabs = table(Separator::Tab, Typing::Guessed);
    let expected = doc! { "a": " \"x ", "b": 5, "field2": "" };
    assert_eq!(made(tabs, "a\tb", b" \"x \t5\t\r\n"), Ok(expected));
}

#[test]
fn rows_may_be_shorter_or_longer_than_the_header() {
    assert_eq!(made(guessed(), "a,b", b"1\n"), Ok(doc! { "a": 1 }));
    assert_eq!(made(guessed(), "a", b"1,2,x"), Ok(doc! { "a": 1, "field1": 2, "field2": "x" }));
    assert!(made(guessed(), "field1", b"1,2").is_err());
}

#[test]
fn names_with_dots_are_fields_of_fields() {
    let expected = doc! { "a": { "b": 1, "d": { "e": 3 } }, "c": 2 };
    assert_eq!(made(guessed(), "a.b,c,a.d.e", b"1,2,3"), Ok(expected));
    let expected = doc! { "a": { "0": 1, "1": 2 } };
    assert_eq!(made(guessed(), "a.0,a.1", b"1,2"), Ok(expected));
    let arrays = || Table { numbers: NumbersInNames::Indexes, ..guessed() };
    let expected = doc! { "a": [1, { "b": 2, "c": [3] }] };
    assert_eq!(made(arrays(), "a.0,a.1.b,a.1.c.0", b"1,2,3"), Ok(expected));
    for header in ["a.1", "a.0,a.2", "a.0,a.b", "a,a.0", "a.0,a.0"] {
        refused(arrays(), header);
    }
    for header in ["a,a", "a,a.b", "a.b,a", ".a", "a.", "a..b", "$a"] {
        refused(guessed(), header);
    }
    let gaps = Table { blanks: Blanks::Ignored, ..arrays() };
    assert!(made(gaps.clone(), "a.0,a.1", b",2").is_err());
    assert_eq!(made(gaps, "a.0,a.1", b"1,"), Ok(doc! { "a": [1] }));
}

#[test]
fn blanks_are_left_out_where_that_is_asked_for() {
    let blanks = || Table { blanks: Blanks::Ignored, ..guessed() };
    assert_eq!(made(blanks(), "_id,a.b,c", b",,5"), Ok(doc! { "c": 5 }));
    assert_eq!(made(blanks(), "_id,a.b", b",,"), Ok(doc! {}));
}

#[test]
fn an_id_is_noticed_wherever_it_stands_and_not_where_it_is_blank() {
    for (header, row, expected) in
        [("_id,a", "1,2", true), ("a,_id", "1,2", true), ("_id", "", false), ("a", "1", false)]
    {
        let table = Arc::new(Table { blanks: Blanks::Ignored, ..guessed() });
        let columns = Columns::new(&table, header.as_bytes()).expect("columns");
        let (mut cells, mut draft) = (Cells::default(), Draft::default());
        convert(row.as_bytes(), &columns, &mut cells, &mut draft).expect("a row");
        assert_eq!(draft.has_id(), expected, "{header}: {row}");
    }
}

#[test]
fn columns_have_the_types_of_their_names() {
    let bytes = |bytes: &[u8]| {
        Bson::Binary(bson::Binary {
            subtype: bson::spec::BinarySubtype::Generic,
            bytes: bytes.to_vec(),
        })
    };
    let date = |millis| Bson::DateTime(bson::DateTime::from_millis(millis));
    for (column, cell, expected) in [
        ("auto()", "5", Bson::Int32(5)),
        ("string()", "5", Bson::String("5".into())),
        ("int32()", "5", Bson::Int32(5)),
        ("int64()", "5", Bson::Int64(5)),
        ("double()", "5", Bson::Double(5.0)),
        ("decimal()", "5.10", Bson::Decimal128("5.10".parse().expect("decimal"))),
        ("boolean()", "TRUE", Bson::Boolean(true)),
        ("boolean()", "0", Bson::Boolean(false)),
        ("binary(base64)", "AP8=", bytes(&[0, 255])),
        ("binary(hex)", "00fF", bytes(&[0, 255])),
        ("binary(base32)", "MZXW6YQ=", bytes(b"foob")),
        ("date(2006-01-02T15:04:05Z07:00)", "2020-09-13T14:26:40.5+02:00", date(1_600_000_000_500)),
        ("date_go(Jan _2 06 3:04 PM)", "\"Sep 13 20 12:26 PM\"", date(1_600_000_000_000 - 40_000)),
        ("date_ms(dd.MM.yyyy HH:mm:ss)", "13.09.2020 12:26:40", date(1_600_000_000_000)),
        ("date_oracle(dd-mon-yyyy)", "13-SEP-2020", date(1_599_955_200_000)),
        ("date_oracle(yyyy-mm-dd hh24:mi:ss)", "2020-09-13 12:26:40", date(1_600_000_000_000)),
        ("date(\\(2006\\))", "(1970)", date(0)),
    ] {
        let document = made(typed(), &format!("a.b.{column}"), cell.as_bytes());
        assert_eq!(document, Ok(doc! { "a": { "b": expected } }), "{column}: {cell}");
    }
    for (column, cell) in [
        ("int32()", "3000000000"),
        ("int64()", "x"),
        ("double()", ""),
        ("boolean()", "yes"),
        ("decimal()", "x"),
        ("binary(hex)", "abc"),
        ("binary(base32)", "M"),
        ("binary(base64)", "A"),
        ("date(2006-01-02)", "2020-02-30"),
        ("date(2006-01-02)", "2020-02-03x"),
    ] {
        let fault = made(typed(), &format!("a.{column}"), cell.as_bytes()).expect_err(column);
        assert!(!fault.ends_run && fault.message.contains("the column \"a\""), "{column}");
    }
    for header in ["a", "a.text()", "a.int32(5)", "a.binary(x)", "int32()", "a.int32"] {
        refused(typed(), header);
    }
}

#[test]
fn grace_decides_what_becomes_of_a_cell_of_another_type() {
    let row = |grace| made(Table { grace, ..typed() }, "a.int32(),b.int32()", b"x,5");
    assert_eq!(row(ParseGrace::AutoCast), Ok(doc! { "a": "x", "b": 5 }));
    assert_eq!(row(ParseGrace::SkipField), Ok(doc! { "b": 5 }));
    assert_eq!(row(ParseGrace::SkipRow).map_err(|fault| fault.ends_run), Err(false));
    assert_eq!(row(ParseGrace::Stop).map_err(|fault| fault.ends_run), Err(true));
}

proptest::proptest! {
    #[test]
    fn no_row_is_too_mangled(text in "[a,\"\n\r \t1]{0,40}") {
        let bytes = text.as_bytes();
        if let RowEnd::At(end) = row_end(bytes, Separator::Comma) {
            proptest::prop_assert!(end <= bytes.len() && bytes[end - 1] == b'\n');
        }
        if let Err(fault) = made(guessed(), "a,b", bytes) {
            proptest::prop_assert!(fault.at <= bytes.len());
        }
    }

    #[test]
    fn what_is_quoted_is_read_back(cells in proptest::collection::vec("[a-c,\"\n é]{0,8}", 1..5)) {
        let quoted: Vec<_> =
            cells.iter().map(|cell| format!("\"{}\"", cell.replace('"', "\"\""))).collect();
        let row = quoted.join(",") + "\n";
        proptest::prop_assert_eq!(row_end(row.as_bytes(), Separator::Comma), RowEnd::At(row.len()));
        let document = made(guessed(), "field0", row.as_bytes()).expect("a row");
        let read: Vec<_> = document.values().filter_map(|value| value.as_str()).collect();
        proptest::prop_assert_eq!(read, cells);
    }
}
