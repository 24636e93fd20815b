//! The directions in index keys: what old servers accepted, made fit for current ones.

use bson::{Bson, Document};

use crate::plan::indexes::Directions;

/// Numbers nearer to each other than this are one direction to the peer, and numbers nearer to
/// zero have none.
const NEGLIGIBLE: f64 = 1e-9;

/// The key with directions that a current server takes, each change noted.
pub(super) fn fit(key: &Document, directions: Directions, repairs: &mut Vec<String>) -> Document {
    let mut fit = Document::new();
    for (field, direction) in key {
        let changed = match directions {
            Directions::Repaired => repaired(direction),
            Directions::Converted => repaired(direction).or_else(|| converted(direction)),
        };
        if let Some(changed) = changed {
            repairs.push(format!("the direction {direction} of `{field}` is taken as {changed}"));
        }
        fit.insert(field, changed.map_or_else(|| direction.clone(), Bson::Int32));
    }
    fit
}

/// What a direction that a current server refuses stands for: anything that is neither a number
/// other than zero nor the name of a kind of index has always meant ascending.
pub(super) fn repaired(direction: &Bson) -> Option<i32> {
    let is_fit = match direction {
        Bson::String(kind) => !kind.is_empty(),
        other => number(other).is_some_and(|value| value != 0.0 && !value.is_nan()),
    };
    (!is_fit).then_some(1)
}

/// What a number next to zero stands for.
fn converted(direction: &Bson) -> Option<i32> {
    let value = number(direction).filter(|value| value.abs() < NEGLIGIBLE)?;
    Some(if value < 0.0 { -1 } else { 1 })
}

/// Makes hashed fields with a dot in their name ascending ones.
pub(super) fn unhash_dotted(key: &mut Document, repairs: &mut Vec<String>) {
    for (field, direction) in key.iter_mut() {
        if field.contains('.') && *direction == Bson::String("hashed".into()) {
            *direction = Bson::Int32(1);
            repairs.push(format!("the hashed field `{field}` is taken as ascending"));
        }
    }
}

/// Whether two keys are the same, field by field in their order.
pub(super) fn are_equal(one: &Document, other: &Document) -> bool {
    let is_same = |one: &Bson, other: &Bson| match (number(one), number(other)) {
        (Some(one), Some(other)) => (one - other).abs() < NEGLIGIBLE,
        _ => one == other,
    };
    one.len() == other.len()
        && one
            .iter()
            .zip(other)
            .all(|((field, one), (other_field, other))| field == other_field && is_same(one, other))
}

/// Whether a definition is that of a version 1 index.
pub(super) fn is_version_one(spec: &Document) -> bool {
    spec.get("v").and_then(number) == Some(1.0)
}

/// Whether a collation is the one that compares bytes.
pub(super) fn is_simple(collation: &Bson) -> bool {
    matches!(collation, Bson::Document(collation)
        if collation.get_str("locale").is_ok_and(|locale| locale == "simple"))
}

#[expect(clippy::cast_precision_loss, reason = "only the sign and nearness to zero are looked at")]
pub(super) fn number(value: &Bson) -> Option<f64> {
    match value {
        Bson::Int32(value) => Some(f64::from(*value)),
        Bson::Int64(value) => Some(*value as f64),
        Bson::Double(value) => Some(*value),
        Bson::Decimal128(value) => value.to_string().parse().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::doc;

    #[test]
    fn a_decimal_is_a_number_like_any_other() {
        let descending = Bson::Decimal128("-1.0".parse().expect("a decimal"));
        assert_eq!(repaired(&descending), None);
        assert_eq!(repaired(&Bson::Decimal128("0".parse().expect("a decimal"))), Some(1));
    }

    #[test]
    fn keys_are_equal_in_their_order_and_within_a_billionth() {
        assert!(are_equal(&doc! { "a": 1, "b": "text" }, &doc! { "a": 1.0, "b": "text" }));
        assert!(!are_equal(&doc! { "a": 1, "b": 1 }, &doc! { "b": 1, "a": 1 }));
        assert!(!are_equal(&doc! { "a": 1 }, &doc! { "a": -1 }));
        assert!(!are_equal(&doc! { "a": 1 }, &doc! { "a": 1, "b": 1 }));
    }
}
