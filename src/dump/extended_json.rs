//! Reads Extended JSON of any age into BSON.
//!
//! Canonical and relaxed version 2
//! (<https://github.com/mongodb/specifications/blob/master/source/extended-json/extended-json.md>)
//! and the older strict mode are read alike, since metadata files of every tool's age are around.
//! An object is a typed value only where its keys and the types of its values both fit; anything
//! else that merely begins with `$`, such as a query operator, stays a document. Where they fit and
//! the content does not, that is an error.

use std::fmt;

use bson::oid::ObjectId;
use bson::spec::BinarySubtype;
use bson::{Binary, Bson, DateTime, Decimal128, Document, Timestamp};
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};

use crate::limits::NESTING_MAX;

/// Levels that a file may add around a document a server accepts: its own object and the list of
/// indexes on the outside, a typed value and its body on the inside.
const LEVELS_AROUND: usize = 5;

/// Why a text is not Extended JSON, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct JsonError {
    /// What is wrong; names line and column too.
    pub message: String,
    /// The line, from 1.
    pub line: usize,
    /// The column in bytes, from 1.
    pub column: usize,
}

impl From<serde_json::Error> for JsonError {
    fn from(error: serde_json::Error) -> Self {
        Self { message: error.to_string(), line: error.line(), column: error.column() }
    }
}

/// Reads the first value of a text; what comes after it is ignored.
///
/// Keys keep their order. A bare number becomes a 32-bit integer where it fits, else a 64-bit
/// integer, else a double. A key that appears twice in one object is an error: a BSON document
/// built from it would have lost one of the two.
pub fn parse(json: &[u8]) -> Result<Bson, JsonError> {
    let mut deserializer = serde_json::Deserializer::from_slice(json);
    // The seed below counts levels itself, to the bound of a server rather than of the library.
    deserializer.disable_recursion_limit();
    let seed = Value { levels_left: NESTING_MAX + LEVELS_AROUND, regexes: Regexes::Values };
    Ok(seed.deserialize(&mut deserializer)?)
}

/// Builds one value, typed values from the inside out.
#[derive(Clone, Copy, Debug)]
pub struct Value {
    levels_left: usize,
    regexes: Regexes,
}

/// What `{"$regex": "…", "$options": "…"}` is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Regexes {
    /// A regular expression, as in version 1.
    Values,
    /// A document with the operators of a query, as in version 2.
    Operators,
}

impl Value {
    /// Builds a value that has so many levels at most.
    pub fn of_levels(levels_left: usize, regexes: Regexes) -> Self {
        Self { levels_left, regexes }
    }

    fn inside<E: serde::de::Error>(self) -> Result<Self, E> {
        match self.levels_left {
            0 => Err(E::custom("nested deeper than a server accepts")),
            left => Ok(Self { levels_left: left - 1, ..self }),
        }
    }
}

impl<'de> DeserializeSeed<'de> for Value {
    type Value = Bson;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Bson, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Value {
    type Value = Bson;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Bson, E> {
        Ok(Bson::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Bson, E> {
        Ok(Bson::Boolean(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Bson, E> {
        Ok(i32::try_from(value).map_or(Bson::Int64(value), Bson::Int32))
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Bson, E> {
        #[expect(clippy::cast_precision_loss, reason = "only what no integer type holds")]
        i64::try_from(value).map_or(Ok(Bson::Double(value as f64)), |value| self.visit_i64(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Bson, E> {
        Ok(Bson::Double(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Bson, E> {
        Ok(Bson::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Bson, E> {
        Ok(Bson::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Bson, A::Error> {
        let inside = self.inside()?;
        let mut array = Vec::new();
        while let Some(item) = items.next_element_seed(inside)? {
            array.push(item);
        }
        Ok(Bson::Array(array))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Bson, A::Error> {
        let inside = self.inside()?;
        let mut document = Document::new();
        while let Some(key) = fields.next_key::<String>()? {
            if key.contains('\0') {
                return Err(A::Error::custom(format!("the key {key:?} holds a zero character")));
            }
            if document.contains_key(&key) {
                return Err(A::Error::custom(format!("the key {key:?} appears twice")));
            }
            let value = fields.next_value_seed(inside)?;
            document.insert(key, value);
        }
        typed(document, self.regexes).map_err(A::Error::custom)
    }
}

/// The typed value an object stands for, or the object itself.
///
/// # Errors
///
/// A sentence, where the fields fit a typed value and their content does not.
pub fn typed(document: Document, regexes: Regexes) -> Result<Bson, String> {
    let typed = match document.len() {
        1 => match document.iter().next() {
            Some((key, value)) => of_one_key(key, value)?,
            None => None,
        },
        2 => of_two_keys(&document, regexes)?,
        _ => None,
    };
    Ok(typed.unwrap_or(Bson::Document(document)))
}

/// The typed value that an object of this one field stands for, if it does.
///
/// # Errors
///
/// A sentence, where the field fits a typed value and its content does not.
pub fn of_one_key(key: &str, value: &Bson) -> Result<Option<Bson>, String> {
    let typed = match value {
        Bson::String(text) => return of_text(key, text),
        Bson::Document(body) => return of_body(key, body),
        Bson::Int32(number) => of_number(key, i64::from(*number)),
        Bson::Int64(number) => of_number(key, *number),
        Bson::Double(number) if key == "$date" => {
            return Err(format!("`$date` holds {number}, which is no number of milliseconds"));
        }
        Bson::Boolean(true) if key == "$undefined" => Some(Bson::Undefined),
        _ => None,
    };
    Ok(typed)
}

fn of_number(key: &str, number: i64) -> Option<Bson> {
    match (key, number) {
        ("$date", _) => Some(Bson::DateTime(DateTime::from_millis(number))),
        ("$numberLong", _) => Some(Bson::Int64(number)),
        ("$minKey", 1) => Some(Bson::MinKey),
        ("$maxKey", 1) => Some(Bson::MaxKey),
        _ => None,
    }
}

fn of_text(key: &str, text: &str) -> Result<Option<Bson>, String> {
    let typed = match key {
        "$oid" => ObjectId::parse_str(text).ok().map(Bson::ObjectId),
        "$symbol" => Some(Bson::Symbol(text.to_owned())),
        "$code" => Some(Bson::JavaScriptCode(text.to_owned())),
        "$numberInt" => text.parse().ok().map(Bson::Int32),
        "$numberLong" => text.parse().ok().map(Bson::Int64),
        // The standard library reads `Infinity`, `-Infinity` and `NaN` as the specification
        // spells them.
        "$numberDouble" => text.parse().ok().map(Bson::Double),
        "$numberDecimal" => decimal(text).map(Bson::Decimal128),
        "$date" => date(text).map(Bson::DateTime),
        "$uuid" => bson::Uuid::parse_str(text).ok().map(|uuid| Bson::Binary(uuid.into())),
        _ => return Ok(None),
    };
    typed.map(Some).ok_or_else(|| format!("`{key}` cannot hold {text:?}"))
}

fn of_body(key: &str, body: &Document) -> Result<Option<Bson>, String> {
    let (Some((first, a)), Some((second, b)), 2) =
        (body.iter().next(), body.iter().nth(1), body.len())
    else {
        return Ok(None);
    };
    // Keys may come in either order.
    let ((first, a), (second, b)) =
        if first <= second { ((first, a), (second, b)) } else { ((second, b), (first, a)) };
    match (key, first.as_str(), a, second.as_str(), b) {
        ("$binary", "base64", Bson::String(data), "subType", Bson::String(subtype)) => {
            binary(data, subtype).map(Some)
        }
        (
            "$regularExpression",
            "options",
            Bson::String(options),
            "pattern",
            Bson::String(pattern),
        ) => regex(pattern, options).map(Some),
        ("$timestamp", "i", increment, "t", time) => {
            timestamp(time, increment).map(Some).ok_or_else(|| format!("`{key}` holds {body}"))
        }
        ("$dbPointer", "$id", Bson::ObjectId(id), "$ref", Bson::String(collection)) => {
            pointer(collection, id).map(Some)
        }
        _ => Ok(None),
    }
}

/// The forms of the older strict mode, and code with scope.
fn of_two_keys(document: &Document, regexes: Regexes) -> Result<Option<Bson>, String> {
    let text = |key| document.get_str(key).ok();
    if let (Some(data), Some(subtype)) = (text("$binary"), text("$type")) {
        return binary(data, subtype).map(Some);
    }
    if let (Regexes::Values, Some(pattern), Some(options)) =
        (regexes, text("$regex"), text("$options"))
    {
        return regex(pattern, options).map(Some);
    }
    if let (Some(code), Ok(scope)) = (text("$code"), document.get_document("$scope")) {
        let (code, scope) = (code.to_owned(), scope.clone());
        return Ok(Some(bson::JavaScriptCodeWithScope { code, scope }.into()));
    }
    Ok(None)
}

fn binary(data: &str, subtype: &str) -> Result<Bson, String> {
    let number = u8::from_str_radix(subtype, 16)
        .map_err(|_| format!("a binary value has the subtype {subtype:?}"))?;
    let binary = Binary::from_base64(data, BinarySubtype::from(number))
        .map_err(|_| format!("a binary value holds {data:?}, which is not base64"))?;
    Ok(Bson::Binary(binary))
}

/// A regular expression; BSON keeps its options in alphabetical order.
fn regex(pattern: &str, options: &str) -> Result<Bson, String> {
    let zero = |_| format!("the regular expression {pattern:?} holds a zero character");
    let mut options: Vec<char> = options.chars().collect();
    options.sort_unstable();
    let options: String = options.into_iter().collect();
    Ok(Bson::RegularExpression(bson::Regex {
        pattern: pattern.to_owned().try_into().map_err(zero)?,
        options: options.try_into().map_err(zero)?,
    }))
}

fn timestamp(time: &Bson, increment: &Bson) -> Option<Bson> {
    let number = |value: &Bson| match value {
        Bson::Int32(number) => u32::try_from(*number).ok(),
        Bson::Int64(number) => u32::try_from(*number).ok(),
        _ => None,
    };
    let (time, increment) = (number(time)?, number(increment)?);
    Some(Bson::Timestamp(Timestamp { time, increment }))
}

/// A pointer, which has no constructor, by way of the bytes of a document that holds one.
fn pointer(collection: &str, id: &ObjectId) -> Result<Bson, String> {
    let too_long = |_| "a pointer's collection is too long".to_owned();
    let text_bytes = i32::try_from(collection.len() + 1).map_err(too_long)?;
    let mut bytes = vec![0, 0, 0, 0, 0x0C, b'p', 0];
    bytes.extend(text_bytes.to_le_bytes());
    bytes.extend(collection.as_bytes());
    bytes.push(0);
    bytes.extend(id.bytes());
    bytes.push(0);
    let length = i32::try_from(bytes.len()).map_err(too_long)?;
    bytes[..4].copy_from_slice(&length.to_le_bytes());
    let document = Document::from_reader(bytes.as_slice()).map_err(|error| error.to_string())?;
    document.get("p").cloned().ok_or_else(|| "a pointer is lost".to_owned())
}

/// A decimal number; the library takes one without a digit for zero.
pub fn decimal(text: &str) -> Option<Decimal128> {
    let mantissa = text.split(['e', 'E']).next().unwrap_or_default();
    let has_digits = mantissa.bytes().any(|byte| byte.is_ascii_digit());
    let word = text.strip_prefix(['+', '-']).unwrap_or(text);
    let is_word = ["inf", "infinity", "nan"].iter().any(|one| word.eq_ignore_ascii_case(one));
    if has_digits || is_word { text.parse().ok() } else { None }
}

/// A date as ISO 8601 spells it; older tools leave the colon out of the offset.
fn date(text: &str) -> Option<DateTime> {
    let colon_at = text.len().checked_sub(2)?;
    let has_bare_offset = text.is_ascii()
        && colon_at >= 3
        && matches!(text.as_bytes()[colon_at - 3], b'+' | b'-')
        && text.as_bytes()[colon_at - 2..].iter().all(u8::is_ascii_digit)
        && text.contains('T');
    if has_bare_offset {
        let (time, minutes) = text.split_at(colon_at);
        return DateTime::parse_rfc3339_str(format!("{time}:{minutes}")).ok();
    }
    DateTime::parse_rfc3339_str(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::{bson, doc};
    use proptest::prelude::*;

    fn read(json: &str) -> Bson {
        parse(json.as_bytes()).unwrap_or_else(|error| panic!("{json}: {error}"))
    }

    fn refused(json: &str) -> String {
        parse(json.as_bytes()).expect_err(json).to_string()
    }

    fn regex_of(pattern: &str, options: &str) -> Bson {
        regex(pattern, options).expect("a regular expression")
    }

    #[test]
    fn bare_numbers_take_the_smallest_type() {
        assert_eq!(read("2147483647"), Bson::Int32(i32::MAX));
        assert_eq!(read("2147483648"), Bson::Int64(2_147_483_648));
        assert_eq!(read("-9223372036854775808"), Bson::Int64(i64::MIN));
        assert_eq!(read("9223372036854775808"), Bson::Double(9_223_372_036_854_775_808.0));
        assert_eq!(read("1.0"), Bson::Double(1.0));
        assert_eq!(read("1e2"), Bson::Double(100.0));
    }

    #[test]
    fn canonical_values_are_typed() {
        for (json, expected) in [
            (r#"{"$numberInt":"-5"}"#, Bson::Int32(-5)),
            (r#"{"$numberLong":"5"}"#, Bson::Int64(5)),
            (r#"{"$numberDouble":"-Infinity"}"#, Bson::Double(f64::NEG_INFINITY)),
            (r#"{"$numberDouble":"1.5E+3"}"#, Bson::Double(1500.0)),
            (r#"{"$date":{"$numberLong":"-1"}}"#, Bson::DateTime(DateTime::from_millis(-1))),
            (r#"{"$timestamp":{"t":4294967295,"i":2}}"#, {
                Bson::Timestamp(Timestamp { time: u32::MAX, increment: 2 })
            }),
            (r#"{"$regularExpression":{"pattern":"^a","options":"mi"}}"#, regex_of("^a", "im")),
            (r#"{"$undefined":true}"#, Bson::Undefined),
            (r#"{"$minKey":1}"#, Bson::MinKey),
            (r#"{"$maxKey":1}"#, Bson::MaxKey),
            (r#"{"$symbol":"s"}"#, Bson::Symbol("s".into())),
        ] {
            assert_eq!(read(json), expected, "{json}");
        }
    }

    #[test]
    fn older_forms_are_typed() {
        let epoch = Bson::DateTime(DateTime::from_millis(0));
        for json in [
            r#"{"$date":0}"#,
            r#"{"$date":"1970-01-01T00:00:00Z"}"#,
            r#"{"$date":"1970-01-01T00:00:00.000Z"}"#,
            r#"{"$date":"1970-01-01T01:00:00.000+0100"}"#,
            r#"{"$date":"1969-12-31T19:00:00-05:00"}"#,
        ] {
            assert_eq!(read(json), epoch, "{json}");
        }
        let bytes = Bson::Binary(Binary { subtype: BinarySubtype::Uuid, bytes: vec![1, 2, 3] });
        assert_eq!(read(r#"{"$binary":"AQID","$type":"04"}"#), bytes);
        assert_eq!(read(r#"{"$type":"4","$binary":"AQID"}"#), bytes);
        assert_eq!(read(r#"{"$numberLong":7}"#), Bson::Int64(7));
        assert_eq!(read(r#"{"$regex":"a","$options":"i"}"#), regex_of("a", "i"));
    }

    #[test]
    fn a_pointer_is_read() {
        let json = r#"{"$dbPointer":{"$ref":"db.c","$id":{"$oid":"0102030405060708090a0b0c"}}}"#;
        let pointer = read(json);
        assert!(matches!(pointer, Bson::DbPointer(_)), "{pointer}");
        assert_eq!(pointer.into_canonical_extjson().to_string(), json);
    }

    #[test]
    fn what_only_looks_like_a_typed_value_stays_a_document() {
        for json in [
            r#"{"$type":"string"}"#,
            r#"{"$ref":"c","$id":1}"#,
            r#"{"$gt":5}"#,
            r#"{"$regex":"a"}"#,
            r#"{"$oid":{"bsonType":"string"}}"#,
            r#"{"$date":{"bsonType":"date"}}"#,
            r#"{"$timestamp":{"t":1}}"#,
            r#"{"$binary":true}"#,
            r#"{"$minKey":2}"#,
            r#"{"$numberInt":"1","more":1}"#,
            r#"{"$undefined":false}"#,
        ] {
            let Bson::Document(document) = read(json) else { panic!("{json} was typed") };
            let plain: serde_json::Value = serde_json::from_str(json).expect("plain JSON");
            assert_eq!(Bson::Document(document).into_relaxed_extjson(), plain, "{json}");
        }
        let regex =
            r#"{"$regex":{"$regularExpression":{"pattern":"a","options":""}},"$options":"i"}"#;
        assert_eq!(read(regex), bson!({ "$regex": regex_of("a", ""), "$options": "i" }));
    }

    #[test]
    fn a_typed_value_of_bad_content_is_refused_with_its_place() {
        assert_eq!(
            refused("{\n \"a\": {\"$oid\": \"zz\"}}"),
            "`$oid` cannot hold \"zz\" at line 2 column 20"
        );
        assert!(refused(r#"{"$numberInt":"3000000000"}"#).contains("$numberInt"));
        assert!(refused(r#"{"$date":"yesterday"}"#).contains("$date"));
        assert!(refused(r#"{"$date":1.5}"#).contains("milliseconds"));
        assert!(refused(r#"{"$binary":{"base64":"?","subType":"00"}}"#).contains("base64"));
        assert!(refused(r#"{"$timestamp":{"t":-1,"i":0}}"#).contains("$timestamp"));
        assert!(refused(r#"{"a":1,"a":2}"#).contains("appears twice"));
        assert!(refused(r#"{"a\u0000b":1}"#).contains("zero character"));
    }

    #[test]
    fn broken_json_is_refused_with_its_place() {
        let error = parse(b"{\"a\": 1,\n  nope}").expect_err("broken");
        assert_eq!((error.line, error.column), (2, 3));
        assert!(parse(b" ").is_err());
        assert!(parse(b"{\"a\": NumberLong(1)}").is_err());
        assert!(parse(b"{\"a\": \"\xFF\"}").is_err());
    }

    #[test]
    fn text_after_the_value_is_ignored() {
        assert_eq!(read("{\"a\":1} and so on }"), bson!({ "a": 1 }));
    }

    #[test]
    fn nesting_is_bounded_at_what_a_server_accepts() {
        let nested = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
        assert!(parse(nested(NESTING_MAX).as_bytes()).is_ok());
        assert!(refused(&nested(100_000)).contains("nested deeper"));
    }

    fn any_value() -> impl Strategy<Value = Bson> {
        let leaf = prop_oneof![
            Just(Bson::Null),
            Just(Bson::Undefined),
            Just(Bson::MinKey),
            Just(Bson::MaxKey),
            any::<bool>().prop_map(Bson::Boolean),
            any::<i32>().prop_map(Bson::Int32),
            any::<i64>().prop_map(Bson::Int64),
            (proptest::num::f64::NORMAL | proptest::num::f64::INFINITE).prop_map(Bson::Double),
            any::<String>().prop_map(Bson::String),
            any::<String>().prop_map(Bson::JavaScriptCode),
            any::<i64>().prop_map(|millis| Bson::DateTime(DateTime::from_millis(millis))),
            any::<[u8; 12]>().prop_map(|bytes| Bson::ObjectId(ObjectId::from_bytes(bytes))),
            any::<(u32, u32)>()
                .prop_map(|(time, increment)| Bson::Timestamp(Timestamp { time, increment })),
            any::<Vec<u8>>().prop_map(|bytes| {
                Bson::Binary(Binary { subtype: BinarySubtype::Generic, bytes })
            }),
            "[a-z^.]{0,5}".prop_map(|pattern| regex_of(&pattern, "im")),
        ];
        leaf.prop_recursive(4, 40, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Bson::Array),
                prop::collection::vec(("[^$\\x00][^\\x00]{0,6}", inner), 0..5)
                    .prop_map(|fields| Bson::Document(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn canonical_text_gives_the_value_back(value in any_value()) {
            let text = value.clone().into_canonical_extjson().to_string();
            prop_assert_eq!(parse(text.as_bytes()), Ok(value));
        }

        #[test]
        fn relaxed_dates_and_numbers_give_the_value_back(
            millis in -2_000_000_000_000_i64..200_000_000_000_000,
            double in proptest::num::f64::NORMAL,
            long in i64::from(i32::MAX) + 1..,
        ) {
            let value = Bson::Document(doc! {
                "date": DateTime::from_millis(millis), "double": double, "long": long,
            });
            let text = value.clone().into_relaxed_extjson().to_string();
            prop_assert_eq!(parse(text.as_bytes()), Ok(value));
        }

        #[test]
        fn no_text_makes_it_panic(json in "[\\[\\]{}\":,$a-z0-9.\\-]{0,60}") {
            let _ = parse(json.as_bytes());
        }
    }
}
