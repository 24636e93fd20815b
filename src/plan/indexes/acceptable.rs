//! Which index definitions a server refuses whatever the documents, and why.
//!
//! The rules are those of `catalog/index_key_validate.cpp` and of the access methods, as servers
//! from 4.2 to 6.0 apply them. Only what is certain is judged here; the rest is left to the server.

use bson::{Bson, Document};

use crate::facts::{Product, ServerFacts, ServerVersion};
use crate::plan::directions::{is_simple, number};

/// Fields in one key (`kMaxCompoundIndexFields`).
const FIELDS_MAX: usize = 32;

/// Kinds of index that servers know by a word, those of later versions included.
const KINDS: [&str; 8] = [
    "2d",
    "2dsphere",
    "2dsphere_bucket",
    "columnstore",
    "geoHaystack",
    "hashed",
    "queryable_encrypted_range",
    "text",
];

/// Parts of a field's name that begin with a dollar and are allowed after the first: those of a
/// `DBRef`.
const REFERENCE_PARTS: [&str; 3] = ["$ref", "$id", "$db"];

/// From this version on a hashed field may stand beside others.
const WITH_COMPOUND_HASHED: ServerVersion = ServerVersion::new(4, 4, 0);

/// From this version on a wildcard may stand beside other fields.
const WITH_COMPOUND_WILDCARDS: ServerVersion = ServerVersion::new(7, 0, 0);

/// Why the server refuses the definition, if it certainly does. `options` are those of the
/// collection.
pub(super) fn refusal(spec: &Document, options: &Document, facts: &ServerFacts) -> Option<String> {
    if !matches!(facts.product, Product::MongoDb | Product::AtlasProxy) {
        return None;
    }
    let Ok(key) = spec.get_document("key") else {
        return Some("it has no key".to_owned());
    };
    of_fields(key)
        .or_else(|| of_kinds(key, spec, facts.version))
        .or_else(|| of_wildcard(key, spec, facts.version))
        .or_else(|| of_expiry(key, spec, options, facts.version))
        .or_else(|| of_options(key, spec))
}

fn of_fields(key: &Document) -> Option<String> {
    if key.is_empty() {
        return Some("its key has no fields".to_owned());
    }
    if key.len() > FIELDS_MAX {
        let fields = key.len();
        return Some(format!("its key has {fields} fields, and a server allows {FIELDS_MAX}"));
    }
    key.iter().find_map(|(field, direction)| of_field(field, direction))
}

fn of_field(field: &str, direction: &Bson) -> Option<String> {
    let parts: Vec<&str> = field.split('.').collect();
    if parts.iter().any(|part| part.is_empty()) {
        return Some(format!("a part of the field's name `{field}` is empty"));
    }
    let may_have_dollar = |place: usize, part: &str| {
        let is_wildcard = part == "$**" && place + 1 == parts.len();
        is_wildcard || (place > 0 && REFERENCE_PARTS.contains(&part))
    };
    let mut parts_in_place = parts.iter().enumerate();
    if parts_in_place.any(|(place, part)| part.starts_with('$') && !may_have_dollar(place, part)) {
        return Some(format!("a part of the field's name `{field}` begins with a dollar"));
    }
    match direction {
        Bson::String(kind) if !KINDS.contains(&kind.as_str()) => {
            Some(format!("`{kind}` is no kind of index that a server knows"))
        }
        _ => None,
    }
}

/// What follows from kinds such as `text` or `hashed`.
fn of_kinds(key: &Document, spec: &Document, version: ServerVersion) -> Option<String> {
    let kinds: Vec<(usize, &str)> =
        key.values().enumerate().filter_map(|(at, kind)| Some((at, kind.as_str()?))).collect();
    let (first, kind) = *kinds.first()?;
    if let Some((_, other)) = kinds.iter().find(|(_, other)| *other != kind) {
        return Some(format!("one index cannot be `{kind}` and `{other}`"));
    }
    let last = kinds.last().map_or(first, |(at, _)| *at);
    match kind {
        "hashed" if is_true(spec, "unique") => {
            Some("a hashed index cannot be unique, since different values share a hash".to_owned())
        }
        "hashed" if kinds.len() > 1 => Some("only one field can be hashed".to_owned()),
        "hashed" if key.len() > 1 && version < WITH_COMPOUND_HASHED => Some(format!(
            "servers have hashed indexes of several fields from 4.4 on, and this one is {version}"
        )),
        "2d" if kinds.len() > 1 || first > 0 => {
            Some("a 2d field stands first in its index, and alone of its kind".to_owned())
        }
        "2d" if !number_in(spec, "bits", 1.0, 32.0) => {
            Some("its `bits` are not from 1 to 32".to_owned())
        }
        "text" if last - first + 1 != kinds.len() => {
            Some("its text fields are parted by another field".to_owned())
        }
        "text" | "2d" if has_collation(spec) => {
            Some(format!("a {kind} index has no collation of its own"))
        }
        _ => None,
    }
}

fn of_wildcard(key: &Document, spec: &Document, version: ServerVersion) -> Option<String> {
    let is_wildcard = |field: &str| field == "$**" || field.ends_with(".$**");
    let found =
        key.iter().find(|(field, direction)| is_wildcard(field) && direction.as_str().is_none());
    let Some((_, direction)) = found else {
        let is_special = key.keys().any(|field| is_wildcard(field));
        let is_idle = spec.contains_key("wildcardProjection") && !is_special;
        return is_idle.then(|| "only a wildcard index has a wildcardProjection".to_owned());
    };
    if number(direction).is_some_and(|direction| direction < 0.0)
        && version < WITH_COMPOUND_WILDCARDS
    {
        return Some("a wildcard index is ascending".to_owned());
    }
    if key.len() > 1 && version < WITH_COMPOUND_WILDCARDS {
        return Some(format!(
            "servers have wildcard indexes of several fields from 7.0 on, and this one is {version}"
        ));
    }
    if let Some(option) = ["unique", "sparse"].iter().find(|option| is_true(spec, option)) {
        return Some(format!("a wildcard index cannot be {option}"));
    }
    spec.contains_key("expireAfterSeconds")
        .then(|| "a wildcard index cannot delete old documents".to_owned())
}

/// What follows from `expireAfterSeconds`.
fn of_expiry(
    key: &Document,
    spec: &Document,
    options: &Document,
    version: ServerVersion,
) -> Option<String> {
    let value = spec.get("expireAfterSeconds")?;
    let Some(seconds) = number(value) else {
        return Some(format!("its expireAfterSeconds is {value} and no number"));
    };
    if seconds < 0.0 || seconds > f64::from(i32::MAX) {
        return Some(format!(
            "its expireAfterSeconds is {value}, which is not from 0 to 2147483647"
        ));
    }
    if key.len() > 1 {
        return Some("an index that deletes old documents (TTL) has a single field".to_owned());
    }
    if key.contains_key("_id") {
        return Some("an index on _id cannot delete old documents (TTL)".to_owned());
    }
    // Seen on 6.0.5 and not on 5.0.4; 7.1 lets capped collections delete again.
    let refuses_capped = version >= ServerVersion::new(6, 0, 0) && version < WITH_CAPPED_EXPIRY;
    (refuses_capped && is_true(options, "capped"))
        .then(|| format!("servers of {version} delete no old documents of capped collections"))
}

/// From this version on a capped collection may have TTL indexes.
const WITH_CAPPED_EXPIRY: ServerVersion = ServerVersion::new(7, 1, 0);

fn of_options(key: &Document, spec: &Document) -> Option<String> {
    match spec.get("partialFilterExpression") {
        None | Some(Bson::Document(_)) => {}
        Some(_) => return Some("its partialFilterExpression is no object".to_owned()),
    }
    if spec.contains_key("partialFilterExpression") && is_true(spec, "sparse") {
        return Some("an index cannot be sparse and partial".to_owned());
    }
    let is_id = key.len() == 1
        && key
            .get("_id")
            .and_then(number)
            .is_some_and(|direction| direction.abs().total_cmp(&1.0).is_eq());
    is_id.then(|| "an index on _id alone is ascending, has no options and is there".to_owned())
}

/// Whether an option is on, in the forms that servers take.
pub(super) fn is_true(options: &Document, name: &str) -> bool {
    match options.get(name) {
        Some(Bson::Boolean(value)) => *value,
        Some(value) => number(value).is_some_and(|value| value != 0.0),
        None => false,
    }
}

fn has_collation(spec: &Document) -> bool {
    spec.get("collation").is_some_and(|collation| !is_simple(collation))
}

/// Whether an option is a number of a range, or absent.
fn number_in(spec: &Document, name: &str, min: f64, max: f64) -> bool {
    spec.get(name).and_then(number).is_none_or(|value| (min..=max).contains(&value))
}
