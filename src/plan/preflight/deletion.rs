//! Documents that the server deletes soon after it got them, because of their age.

use bson::Bson;

use crate::plan::directions::number;
use crate::plan::preflight::NAMES_SHOWN;
use crate::plan::{CollectionPlan, RestorePlan};

/// What to say where the plan has documents deleted by age.
pub(super) fn warning(plan: &RestorePlan) -> Option<String> {
    let with_data = plan.collections.iter().filter(|collection| collection.data.is_some());
    let deleting: Vec<String> = with_data.flat_map(deleting).collect();
    if deleting.is_empty() {
        return None;
    }
    let more = deleting.len().saturating_sub(NAMES_SHOWN);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let first = deleting.iter().take(NAMES_SHOWN).cloned().collect::<Vec<_>>().join(", ");
    Some(format!(
        "the server deletes documents by their age, beginning within a minute after the restore, \
         those of the dump as well: {first}{more}"
    ))
}

/// What deletes documents of a collection.
fn deleting(collection: &CollectionPlan) -> impl Iterator<Item = String> {
    let namespace = &collection.namespace;
    let of_index = collection.indexes.iter().filter(|index| index.expires).map(move |index| {
        let age = age(index.spec.get("expireAfterSeconds"));
        format!("{namespace} {age} (index `{}`)", index.name)
    });
    let of_collection = collection.expire_after_seconds.as_deref().filter(|value| is_on(value));
    let of_collection = of_collection.map(move |value| format!("{namespace} {}", age(Some(value))));
    of_index.chain(of_collection)
}

/// Whether it is an age; `off` is none.
fn is_on(value: &Bson) -> bool {
    number(value).is_some()
}

/// An age in the largest unit that it is a whole number of.
#[expect(clippy::cast_possible_truncation, reason = "ages are checked to be small")]
fn age(seconds: Option<&Bson>) -> String {
    let seconds = seconds.and_then(number).unwrap_or(0.0) as i64;
    if seconds == 0 {
        return "at the time in the field".to_owned();
    }
    let units = [(86_400, "d"), (3600, "h"), (60, "min")];
    let whole = units.iter().find(|(length, _)| seconds % length == 0);
    match whole {
        Some((length, unit)) => format!("after {} {unit}", seconds / length),
        None => format!("after {seconds} s"),
    }
}
