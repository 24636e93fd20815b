//! Turns the tables of a spec into values that are drawn.

use std::str::FromStr;

use bson::oid::ObjectId;
use bson::{Binary, Bson, Decimal128, Regex};

use super::numbers::{self, Unit, length, ranks, real, scaled, whole};
use super::section::{Entry, Section, date, float, second};
use super::{Known, salt_of};
use crate::error::Error;
use crate::limits::{DOCUMENT_BYTES_USER_MAX, NESTING_MAX};
use crate::seed::distribution::{Chance, Permutation, Pick, Whole};
use crate::seed::shape::{EPOCH_SECONDS, PER_SECOND};
use crate::seed::text::{self, Text};
use crate::seed::value::{Field, Fixed, Ids, Value, kind};

/// The types that `type` names.
const TYPES: &str = "double, string, document, array, binary, uuid, objectId, bool, date, null, \
                     regex, javascript, symbol, int, timestamp, long, decimal, minKey, maxKey";

/// The longest text, array or binary value: what is longer fits into no document.
#[expect(clippy::cast_possible_wrap, reason = "it is far below the bound")]
const LENGTH_MAX: i64 = DOCUMENT_BYTES_USER_MAX as i64;

/// Milliseconds of a year, the range of dates where none is said.
const YEAR_MILLISECONDS: i64 = 365 * 24 * 3600 * 1000;

/// The largest counter of an object id.
const COUNTER_MAX: i64 = 1 << 24;

/// What is known of the other collections of a spec.
#[derive(Clone, Copy)]
pub(super) struct Around<'a> {
    pub(super) known: &'a [Known],
    /// The name of this one, as the file says it.
    pub(super) full: &'a str,
    pub(super) depth: usize,
}

/// The fields of a document, in the order of the spec.
pub(super) fn fields(section: &Section<'_>, around: Around<'_>) -> Result<Vec<Field>, Error> {
    if around.depth > NESTING_MAX {
        return Err(section.error("documents are nested deeper than a server accepts"));
    }
    let around = Around { depth: around.depth + 1, ..around };
    section.entries().map(|(name, entry)| field(name, &entry, around)).collect()
}

fn field(name: &str, entry: &Entry<'_>, around: Around<'_>) -> Result<Field, Error> {
    if name.contains('\0') {
        return Err(entry.error("a name cannot hold a zero"));
    }
    let section = entry.section()?;
    let optional = section.get("optional");
    let missing = optional.map_or(Ok(0.0), |entry| entry.probability())?;
    let value = value(&section, around)?;
    section.finish()?;
    let name = [name.as_bytes(), b"\0"].concat().into();
    Ok(Field { name, missing: Chance::of(missing), value })
}

/// What a table describes; who calls it finishes the table.
fn value(section: &Section<'_>, around: Around<'_>) -> Result<Value, Error> {
    let null = section.get("null").map_or(Ok(0.0), |entry| entry.probability())?;
    let value = not_null(section, around)?;
    if null == 0.0 {
        return Ok(value);
    }
    let among = [Value::Fixed(fixed(section, &Bson::Null)?), value];
    Ok(Value::OneOf { pick: Pick::weighted(&[null, 1.0 - null]), among: among.into() })
}

fn not_null(section: &Section<'_>, around: Around<'_>) -> Result<Value, Error> {
    let named = section.get("type");
    let named = named.as_ref().map(Entry::text).transpose()?;
    if let Some(entry) = section.get("value") {
        return Ok(Value::Fixed(constant(section, &entry, named)?));
    }
    if let Some(entry) = section.get("choose") {
        let values = entry.elements()?;
        let values: Result<Vec<_>, _> =
            values.iter().map(|entry| constant(section, entry, named)).collect();
        let among: Box<[_]> = values?.into();
        return Ok(Value::Chosen { pick: pick(section, &entry, among.len())?, among });
    }
    if let Some(entry) = section.get("one_of") {
        let ways = entry.elements()?;
        let ways: Result<Vec<_>, _> = ways.iter().map(|entry| whole_value(entry, around)).collect();
        let among: Box<[_]> = ways?.into();
        return Ok(Value::OneOf { pick: pick(section, &entry, among.len())?, among });
    }
    if let Some(entry) = section.get("ref") {
        return reference(section, &entry, around);
    }
    match named {
        Some(named) => typed(section, named, around),
        None if section.has("fields") => typed(section, "document", around),
        None if section.has("items") => typed(section, "array", around),
        None => Err(section.error(&format!(
            "`type` is missing, or one of `value`, `choose`, `one_of`, `ref`; types are {TYPES}"
        ))),
    }
}

/// A table that describes a value and is no field.
fn whole_value(entry: &Entry<'_>, around: Around<'_>) -> Result<Value, Error> {
    let section = entry.section()?;
    let value = value(&section, around)?;
    section.finish()?;
    Ok(value)
}

fn typed(section: &Section<'_>, named: &str, around: Around<'_>) -> Result<Value, Error> {
    let salt = salt_of(&section.path);
    Ok(match named {
        "double" => Value::Double(real(section, salt)?),
        "int" => Value::Int(integers(section, 0, i32::MIN.into(), i32::MAX.into())?),
        "long" => Value::Long(integers(section, 0, i64::MIN, i64::MAX)?),
        "decimal" => {
            let (whole, decimals) = scaled(section, salt, 2)?;
            Value::Decimal { whole, decimals }
        }
        "date" => Value::Date(dates(section)?),
        "timestamp" => Value::Timestamp(seconds(section)?),
        "bool" => {
            let often = section.get("probability");
            Value::Bool(Chance::of(often.map_or(Ok(0.5), |entry| entry.probability())?))
        }
        "string" => Value::Text { kind: kind::STRING, text: string(section)? },
        "javascript" => Value::Text { kind: kind::JAVASCRIPT, text: string(section)? },
        "symbol" => Value::Text { kind: kind::SYMBOL, text: string(section)? },
        "binary" => {
            let subtype = section.get("subtype").map_or(Ok(0), |entry| entry.within(0, 255))?;
            let subtype = u8::try_from(subtype).unwrap_or(0);
            Value::Binary { subtype, length: length(&section.needed("length")?, LENGTH_MAX)? }
        }
        "uuid" => Value::Uuid,
        "objectId" => Value::ObjectId(ids(section)?),
        "document" => {
            let fields = fields(&section.needed("fields")?.section()?, around)?;
            Value::Document(fields.into())
        }
        "array" => {
            let length = length(&section.needed("length")?, LENGTH_MAX)?;
            let around = Around { depth: around.depth + 1, ..around };
            let item = whole_value(&section.needed("items")?, around)?;
            Value::Array { length, item: Box::new(item) }
        }
        "null" => Value::Fixed(fixed(section, &Bson::Null)?),
        "minKey" => Value::Fixed(fixed(section, &Bson::MinKey)?),
        "maxKey" => Value::Fixed(fixed(section, &Bson::MaxKey)?),
        "regex" => return Err(section.error("a regex needs a `value`, such as \"^a\"")),
        other => {
            return Err(section.error(&format!("`{other}` is no type; types are {TYPES}")));
        }
    })
}

/// Whole numbers of a type, from `default` on where nothing is said.
fn integers(section: &Section<'_>, default: i64, min: i64, max: i64) -> Result<Whole, Error> {
    let value = |entry: &Entry<'_>| entry.within(min, max);
    let salt = salt_of(&section.path);
    let (min, max) = if section.has("mean") { (min, max) } else { (default, max) };
    let (min, max) = (Some(min), Some(max));
    let unit = Unit { value: &value, distance: &float, min, max, step: 1, salt };
    whole(section, &unit)
}

fn dates(section: &Section<'_>) -> Result<Whole, Error> {
    let distance = |entry: &Entry<'_>| Ok(entry.float()? * 1000.0);
    let begins = i64::from(EPOCH_SECONDS) * 1000;
    let unit = Unit {
        value: &date,
        distance: &distance,
        min: (!section.has("mean")).then_some(begins),
        max: (!section.has("mean")).then_some(begins + YEAR_MILLISECONDS),
        step: 1000,
        salt: salt_of(&section.path),
    };
    whole(section, &unit)
}

/// Dates in seconds, as far as 32 bits reach.
fn seconds(section: &Section<'_>) -> Result<Whole, Error> {
    let begins = i64::from(EPOCH_SECONDS);
    let is_normal = section.has("mean");
    let unit = Unit {
        value: &second,
        distance: &float,
        min: Some(if is_normal { 0 } else { begins }),
        max: Some(if is_normal { u32::MAX.into() } else { begins + YEAR_MILLISECONDS / 1000 }),
        step: 1,
        salt: salt_of(&section.path),
    };
    whole(section, &unit)
}

fn ids(section: &Section<'_>) -> Result<Ids, Error> {
    use numbers::Distribution::{Scattered, Sequence, Uniform};
    let is_said = section.has("distribution");
    let distribution = if is_said { numbers::distribution(section)? } else { Sequence };
    match distribution {
        Sequence => {
            // It is known here even where it is not given.
            section.get("distribution");
            let start = match section.get("start") {
                Some(entry) => u32::try_from(entry.second()?).unwrap_or(EPOCH_SECONDS),
                None => EPOCH_SECONDS,
            };
            let per_second = match section.get("per_second") {
                Some(entry) => u32::try_from(entry.within(1, COUNTER_MAX)?).unwrap_or(PER_SECOND),
                None => PER_SECOND,
            };
            Ok(Ids::Sequence { start, per_second })
        }
        Scattered => Ok(Ids::Scattered(Permutation::up_to(u64::MAX, salt_of(&section.path)))),
        Uniform => Ok(Ids::Uniform(seconds(section)?)),
        _ => Err(section.error("an objectId is a sequence, scattered or uniform")),
    }
}

fn string(section: &Section<'_>) -> Result<Text, Error> {
    if let Some(entry) = section.get("pattern") {
        return Ok(Text::Pattern(text::pieces(entry.text()?)));
    }
    let long = || length(&section.needed("length")?, LENGTH_MAX);
    if let Some(entry) = section.get("characters") {
        let alphabet = entry.text()?;
        if alphabet.is_empty() || !alphabet.is_ascii() {
            return Err(entry.error("one or more characters of ASCII are needed"));
        }
        return Ok(Text::Characters { alphabet: alphabet.as_bytes().into(), length: long()? });
    }
    let content = section.get("content");
    let named = content.as_ref().map_or(Ok("alphanumeric"), Entry::text)?;
    let alphabet = match named {
        "alphanumeric" => text::ALPHANUMERIC,
        "letters" => text::LETTERS,
        "digits" => text::DIGITS,
        "hex" => text::HEX,
        "text" => return Ok(Text::Running { length: long()? }),
        "words" => {
            return Ok(Text::Words { count: length(&section.needed("words")?, LENGTH_MAX)? });
        }
        "number" => return number(section),
        named => {
            let found = text::LISTS.iter().find(|(name, _)| *name == named);
            return found.map(|(_, list)| Text::Listed(list)).ok_or_else(|| {
                let lists: Vec<_> = text::LISTS.iter().map(|(name, _)| *name).collect();
                section.error(&format!(
                    "`{named}` is no content; there are alphanumeric, letters, digits, hex, text, \
                     words, number, {}",
                    lists.join(", ")
                ))
            });
        }
    };
    Ok(Text::Characters { alphabet: alphabet.into(), length: long()? })
}

fn number(section: &Section<'_>) -> Result<Text, Error> {
    let prefix = section.get("prefix").as_ref().map_or(Ok(""), Entry::text)?.into();
    let width = section.get("width").map_or(Ok(0), |entry| entry.within(0, 100))?;
    let number = integers(section, 0, i64::MIN, i64::MAX)?;
    Ok(Text::Number { prefix, width: usize::try_from(width).unwrap_or(0), number })
}

/// Which of so many things: by `weights`, by rank, or all as likely.
fn pick(section: &Section<'_>, list: &Entry<'_>, count: usize) -> Result<Pick, Error> {
    if count == 0 {
        return Err(list.error("at least one is needed"));
    }
    if let Some(entry) = section.get("weights") {
        let weights: Result<Vec<_>, _> = entry.elements()?.iter().map(Entry::float).collect();
        let weights = weights?;
        if weights.len() != count {
            let message = format!("{} weights for {count}", weights.len());
            return Err(entry.error(&message));
        }
        if weights.iter().any(|weight| *weight < 0.0) || weights.iter().sum::<f64>() <= 0.0 {
            return Err(entry.error("weights are not below 0, and not all of them are 0"));
        }
        return Ok(Pick::weighted(&weights));
    }
    match numbers::distribution(section)? {
        numbers::Distribution::Uniform => Ok(Pick::Even(u32::try_from(count).unwrap_or(u32::MAX))),
        numbers::Distribution::Zipf => Ok(Pick::Ranked(ranks(section, count as u64)?)),
        _ => Err(section.error("a choice is uniform or zipf, or has `weights`")),
    }
}

fn reference(section: &Section<'_>, entry: &Entry<'_>, around: Around<'_>) -> Result<Value, Error> {
    let name = entry.text()?;
    let (database, _) = around.full.split_once('.').unwrap_or_default();
    let in_same = format!("{database}.{name}");
    let place = |name: &str| around.known.iter().position(|known| known.full == name);
    let Some(to) = place(&in_same).or_else(|| place(name)) else {
        let others: Vec<_> = around.known.iter().map(|known| known.full.as_str()).collect();
        let message =
            format!("no collection of this spec is {name}; there are {}", others.join(", "));
        return Err(entry.error(&message));
    };
    let Some(last) = around.known[to].documents.checked_sub(1) else {
        return Err(entry.error("the collection has no documents that could be referred to"));
    };
    let max = i64::try_from(last).unwrap_or(i64::MAX);
    let numbers::Distribution::Sequence = numbers::distribution(section)? else {
        let value = |entry: &Entry<'_>| entry.within(0, max);
        let (salt, step) = (salt_of(&section.path), 1);
        let (min, max) = (Some(0), Some(max));
        let unit = Unit { value: &value, distance: &float, min, max, step, salt };
        return Ok(Value::Reference { to, number: whole(section, &unit)? });
    };
    let number = Whole::Cycle { length: last.saturating_add(1) };
    Ok(Value::Reference { to, number })
}

fn fixed(section: &Section<'_>, value: &Bson) -> Result<Fixed, Error> {
    Fixed::of(value).map_err(|error| section.error(&error))
}

/// A value that is given, as the type that is named.
fn constant(section: &Section<'_>, entry: &Entry<'_>, named: Option<&str>) -> Result<Fixed, Error> {
    let value = entry.bson()?;
    let options = match named {
        Some("regex") => section.get("options").as_ref().map_or(Ok(""), Entry::text)?,
        _ => "",
    };
    let value = match named {
        Some(named) => converted(value, named, options).ok_or_else(|| {
            entry.error(&format!("it cannot be a value of the type {named}; types are {TYPES}"))
        })?,
        None => value,
    };
    Fixed::of(&value).map_err(|error| entry.error(&error))
}

/// The value as this type, where it can be.
#[expect(clippy::cast_precision_loss, reason = "a double is wanted")]
fn converted(value: Bson, named: &str, options: &str) -> Option<Bson> {
    Some(match (named, value) {
        ("double", Bson::Int32(number)) => Bson::Double(number.into()),
        ("double", Bson::Int64(number)) => Bson::Double(number as f64),
        ("long", Bson::Int32(number)) => Bson::Int64(number.into()),
        ("decimal", Bson::Int32(number)) => decimal(&number.to_string())?,
        ("decimal", Bson::Int64(number)) => decimal(&number.to_string())?,
        ("decimal", Bson::Double(number)) => decimal(&number.to_string())?,
        ("decimal", Bson::String(text)) => decimal(&text)?,
        ("objectId", Bson::String(text)) => Bson::ObjectId(ObjectId::parse_str(text).ok()?),
        ("uuid", Bson::String(text)) => {
            Bson::Binary(Binary::from_uuid(bson::Uuid::parse_str(text).ok()?))
        }
        ("regex", Bson::String(pattern)) => {
            let mut options: Vec<_> = options.chars().collect();
            options.sort_unstable();
            let options = options.into_iter().collect::<String>().try_into().ok()?;
            Bson::RegularExpression(Regex { pattern: pattern.try_into().ok()?, options })
        }
        ("javascript", Bson::String(code)) => Bson::JavaScriptCode(code),
        ("symbol", Bson::String(text)) => Bson::Symbol(text),
        (named, value) if type_of(&value) == named => value,
        _ => return None,
    })
}

fn decimal(text: &str) -> Option<Bson> {
    Decimal128::from_str(text).ok().map(Bson::Decimal128)
}

/// The name of a value's type.
fn type_of(value: &Bson) -> &'static str {
    match value {
        Bson::Double(_) => "double",
        Bson::String(_) => "string",
        Bson::Document(_) => "document",
        Bson::Array(_) => "array",
        Bson::Binary(binary) if binary.subtype == bson::spec::BinarySubtype::Uuid => "uuid",
        Bson::Binary(_) => "binary",
        Bson::ObjectId(_) => "objectId",
        Bson::Boolean(_) => "bool",
        Bson::DateTime(_) => "date",
        Bson::Null => "null",
        Bson::RegularExpression(_) => "regex",
        Bson::JavaScriptCode(_) | Bson::JavaScriptCodeWithScope(_) => "javascript",
        Bson::Symbol(_) => "symbol",
        Bson::Int32(_) => "int",
        Bson::Timestamp(_) => "timestamp",
        Bson::Int64(_) => "long",
        Bson::Decimal128(_) => "decimal",
        Bson::MinKey => "minKey",
        Bson::MaxKey => "maxKey",
        Bson::Undefined => "undefined",
        Bson::DbPointer(_) => "dbPointer",
    }
}
