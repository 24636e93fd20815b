//! What becomes of Extended JSON, checked against the parser of the bson crate.

use super::*;
use bson::oid::ObjectId;
use bson::spec::BinarySubtype;
use bson::{Binary, DateTime, DbPointer, Decimal128, JavaScriptCodeWithScope, Timestamp, doc};
use proptest::prelude::*;

fn converted(text: &str) -> Result<Vec<u8>, JsonFault> {
    converted_as(Regexes::Operators, text)
}

fn converted_as(regexes: Regexes, text: &str) -> Result<Vec<u8>, JsonFault> {
    let mut draft = Draft::default();
    convert(text.as_bytes(), regexes, &mut draft)?;
    Ok(draft.frame().expect("a frame").bytes().to_vec())
}

fn document(text: &str) -> Document {
    let bytes = converted(text).unwrap_or_else(|fault| panic!("{text}: {fault:?}"));
    Document::from_reader(bytes.as_slice()).expect("valid BSON")
}

/// What the bson crate makes of the same text.
fn by_bson(text: &str) -> Vec<u8> {
    let value: serde_json::Value = serde_json::from_str(text).expect("JSON");
    let Ok(Bson::Document(document)) = Bson::try_from(value) else { panic!("{text}") };
    document.to_vec().expect("encodes")
}

#[test]
fn every_typed_value_becomes_what_the_bson_crate_makes_of_it() {
    for value in [
        r#"{"$oid":"0102030405060708090a0b0c"}"#,
        r#"{"$date":{"$numberLong":"-1"}}"#,
        r#"{"$date":"2020-02-29T23:59:59.5Z"}"#,
        r#"{"$date":"2020-02-29T23:59:59+02:00"}"#,
        r#"{"$numberLong":"9223372036854775807"}"#,
        r#"{"$numberInt":"-5"}"#,
        r#"{"$numberDouble":"-Infinity"}"#,
        r#"{"$numberDouble":"1.5"}"#,
        r#"{"$numberDecimal":"1.50E+3"}"#,
        r#"{"$binary":{"base64":"AQID","subType":"80"}}"#,
        r#"{"$binary":{"base64":"AQID","subType":"02"}}"#,
        r#"{"$uuid":"73ffd264-44b3-4c69-90e8-e7d1dfc035d4"}"#,
        r#"{"$regularExpression":{"pattern":"^a","options":"im"}}"#,
        r#"{"$timestamp":{"t":4294967295,"i":2}}"#,
        r#"{"$symbol":"s"}"#,
        r#"{"$code":"f()"}"#,
        r#"{"$code":"f()","$scope":{"a":{"$numberInt":"1"}}}"#,
        r#"{"$dbPointer":{"$ref":"c","$id":{"$oid":"0102030405060708090a0b0c"}}}"#,
        r#"{"$ref":"c","$id":1,"$db":"d","more":[]}"#,
        r#"{"$undefined":true}"#,
        r#"{"$minKey":1}"#,
        r#"{"$maxKey":1}"#,
        r#"{"$gt":5,"$lt":[1,2.5,null,true,"x"]}"#,
        "[]",
        "{}",
        "[[],{},[1,{\"a\":[]}]]",
        "18446744073709551615",
        "-0.0",
        r#""a\u0000é\n""#,
    ] {
        for text in [format!("{{\"a\":{value}}}"), format!("{{\"a\": [1, {value}],\"b\":0}}")] {
            assert_eq!(converted(&text), Ok(by_bson(&text)), "{text}");
        }
    }
}

#[test]
fn the_forms_of_version_one_are_read() {
    for (text, expected) in [
        (r#"{"a":{"$date":0}}"#, doc! { "a": DateTime::from_millis(0) }),
        (r#"{"a":{"$date":"1970-01-01T01:00:00.000+0100"}}"#, {
            doc! { "a": DateTime::from_millis(0) }
        }),
        (r#"{"a":{"$binary":"AQID","$type":"00"}}"#, {
            doc! { "a": Binary { subtype: BinarySubtype::Generic, bytes: vec![1, 2, 3] } }
        }),
        (r#"{"a":{"$numberLong":7}}"#, doc! { "a": 7_i64 }),
        (r#"{"$oid":"zz","a":1}"#, doc! { "$oid": "zz", "a": 1 }),
    ] {
        assert_eq!(document(text), expected, "{text}");
    }
    let text = r#"{"a":{"$regex":"a","$options":"mi"}}"#;
    let regex = converted(r#"{"a":{"$regularExpression":{"pattern":"a","options":"im"}}}"#);
    assert_eq!(converted_as(Regexes::Values, text), regex);
    assert_eq!(document(text), doc! { "a": { "$regex": "a", "$options": "mi" } });
}

#[test]
fn what_begins_as_a_typed_value_and_is_none_is_a_fault() {
    for value in [r#"{"$oid":5}"#, r#"{"$date":null}"#, r#"{"$code":"a","x":1}"#] {
        let fault = converted(&format!(r#"{{"a":{value}}}"#)).expect_err(value);
        assert!(fault.message.starts_with("this is no value of `$"), "{fault:?}");
    }
    for value in [r#"{"$gt":5}"#, r#"{"$ref":"a","$id":1}"#, r#"{"$type":2}"#] {
        assert!(converted(&format!(r#"{{"a":{value}}}"#)).is_ok(), "{value}");
    }
}

#[test]
fn a_fault_has_its_place() {
    let fault = |text: &str| converted(text).expect_err(text);
    let one = fault("{\"a\": nope}");
    assert_eq!((one.lines_before, one.column, one.follows_document), (0, 8, false));
    let two = fault("{\"a\":\n {\"$oid\": \"zz\"}}");
    assert_eq!((two.lines_before, two.message.as_str()), (1, "`$oid` cannot hold \"zz\""));
    assert!(fault("{} {}").follows_document);
    for text in ["", "5", "[]", "\"a\"", "{\"a\":1", "{\"a\u{1}\":1}", "{\"a\\u0000\":1}"] {
        assert!(!fault(text).message.is_empty());
    }
    assert!(fault("5").message.contains("expected a document"), "{:?}", fault("5"));
    let deep = format!("{{\"a\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(fault(&deep).message.contains("nested deeper"));
}

#[test]
fn an_id_is_found_wherever_it_stands() {
    let has_id = |text: &str| {
        let mut draft = Draft::default();
        convert(text.as_bytes(), Regexes::Operators, &mut draft).expect("converted");
        draft.has_id()
    };
    assert!(has_id(r#"{"_id":1}"#));
    assert!(has_id(r#"{"a":1,"_id":1}"#));
    assert!(!has_id(r#"{"a":{"_id":1},"_i":1}"#));
}

#[test]
fn indexes_of_long_arrays_are_counted() {
    let numbers: Vec<i32> = (0..1234).collect();
    let text = serde_json::json!({ "a": numbers }).to_string();
    assert_eq!(converted(&text), Ok(doc! { "a": numbers }.to_vec().expect("encodes")));
}

fn any_value() -> impl Strategy<Value = Bson> {
    let oid = any::<[u8; 12]>().prop_map(ObjectId::from_bytes);
    let leaf = prop_oneof![
        Just(Bson::Null),
        Just(Bson::Undefined),
        Just(Bson::MinKey),
        Just(Bson::MaxKey),
        any::<bool>().prop_map(Bson::Boolean),
        any::<i32>().prop_map(Bson::Int32),
        any::<i64>().prop_map(Bson::Int64),
        any::<f64>().prop_filter("NaNs differ", |one| !one.is_nan()).prop_map(Bson::Double),
        any::<String>().prop_map(Bson::String),
        any::<String>().prop_map(Bson::JavaScriptCode),
        any::<String>().prop_map(Bson::Symbol),
        any::<i64>().prop_map(|millis| Bson::DateTime(DateTime::from_millis(millis))),
        oid.clone().prop_map(Bson::ObjectId),
        (0_u32..100_000).prop_map(|number| {
            Bson::Decimal128(number.to_string().parse::<Decimal128>().expect("a number"))
        }),
        any::<(u32, u32)>()
            .prop_map(|(time, increment)| Bson::Timestamp(Timestamp { time, increment })),
        any::<Vec<u8>>()
            .prop_map(|bytes| Bson::Binary(Binary { subtype: BinarySubtype::Generic, bytes })),
        any::<String>().prop_map(|code| {
            Bson::JavaScriptCodeWithScope(JavaScriptCodeWithScope { code, scope: doc! { "a": 1 } })
        }),
    ];
    leaf.prop_recursive(4, 40, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..12).prop_map(Bson::Array),
            prop::collection::vec(("[^$\\x00][^\\x00]{0,6}", inner), 0..5)
                .prop_map(|fields| Bson::Document(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn canonical_text_becomes_the_same_bytes(value in any_value()) {
        let expected = doc! { "_id": 1, "a": value };
        let text = Bson::Document(expected.clone()).into_canonical_extjson().to_string();
        prop_assert_eq!(converted(&text), Ok(expected.to_vec().expect("encodes")));
    }

    #[test]
    fn relaxed_text_becomes_what_the_bson_crate_makes_of_it(value in any_value()) {
        let text = Bson::Document(doc! { "a": value }).into_relaxed_extjson().to_string();
        prop_assert_eq!(converted(&text), Ok(by_bson(&text)));
    }

    #[test]
    fn no_text_makes_it_panic(text in "[\\[\\]{}\":,$a-z0-9.\\-]{0,60}") {
        let _ = converted(&text);
    }
}

#[test]
fn a_pointer_keeps_its_parts() {
    let text = r#"{"a":{"$dbPointer":{"$ref":"d.c","$id":{"$oid":"0102030405060708090a0b0c"}}}}"#;
    let pointer: Option<DbPointer> = match document(text).remove("a") {
        Some(Bson::DbPointer(pointer)) => Some(pointer),
        _ => None,
    };
    assert!(pointer.is_some());
}
