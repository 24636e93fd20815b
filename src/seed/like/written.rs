//! Writes what a spec says in TOML, Extended JSON for what TOML does not know.

use bson::{Bson, Document};

/// A text in quotation marks: JSON escapes what TOML wants escaped, but for one character.
pub(super) fn text(text: &str) -> String {
    serde_json::Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}

/// A key, in quotation marks where it needs them.
pub(super) fn key(name: &str) -> String {
    let is_bare = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if !name.is_empty() && name.bytes().all(is_bare) { name.to_owned() } else { text(name) }
}

/// A double, which is not taken for a whole number.
pub(super) fn float(number: f64) -> String {
    if number.is_nan() { "nan".to_owned() } else { format!("{number:?}") }
}

/// A table on one line.
pub(super) fn document(document: &Document) -> String {
    if document.is_empty() {
        return "{}".to_owned();
    }
    let pairs = document.iter().map(|(name, of)| format!("{} = {}", key(name), value(of)));
    format!("{{ {} }}", pairs.collect::<Vec<_>>().join(", "))
}

/// Any value.
pub(super) fn value(of: &Bson) -> String {
    match of {
        Bson::String(of) => text(of),
        Bson::Int32(number) => number.to_string(),
        Bson::Int64(number) if i32::try_from(*number).is_err() => number.to_string(),
        Bson::Double(number) => float(*number),
        Bson::Boolean(of) => of.to_string(),
        Bson::Document(of) => document(of),
        Bson::Array(of) => {
            format!("[{}]", of.iter().map(value).collect::<Vec<_>>().join(", "))
        }
        Bson::Null => "{ \"$null\" = true }".to_owned(),
        other => json(&other.clone().into_canonical_extjson()),
    }
}

fn json(of: &serde_json::Value) -> String {
    match of {
        serde_json::Value::Object(fields) => {
            let pairs = fields.iter().map(|(name, of)| format!("{} = {}", key(name), json(of)));
            format!("{{ {} }}", pairs.collect::<Vec<_>>().join(", "))
        }
        serde_json::Value::Array(of) => {
            format!("[{}]", of.iter().map(json).collect::<Vec<_>>().join(", "))
        }
        serde_json::Value::String(of) => text(of),
        other => other.to_string(),
    }
}

/// A moment in milliseconds since 1970; at the ends of what a date can be, the nearest.
pub(super) fn date(milliseconds: i64) -> String {
    let moment = jiff::Timestamp::from_millisecond(milliseconds).ok();
    let moment = moment.filter(|moment| (0..=9999).contains(&year(*moment)));
    moment.unwrap_or(jiff::Timestamp::UNIX_EPOCH).to_string()
}

fn year(moment: jiff::Timestamp) -> i16 {
    jiff::tz::TimeZone::UTC.to_datetime(moment).year()
}
