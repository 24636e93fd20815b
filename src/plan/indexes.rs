//! The indexes of a collection, made fit for the `createIndexes` command.
//!
//! Definitions pass through as the dump has them; what old servers accepted and new ones refuse is
//! repaired, and each repair is listed.

use bson::{Bson, Document, doc};

use crate::dump::metadata::IndexSpec;

/// An index to build.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexPlan {
    /// Its name.
    pub name: String,
    /// Its definition as it is sent.
    pub spec: Document,
    /// Whether it deletes documents; such indexes are built after everything else.
    pub expires: bool,
    /// What was changed against the dump.
    pub repairs: Vec<String>,
}

/// The options that a server knows (`index_key_validate.cpp`, `allowedFieldNames`). Others are
/// left out, because a server drops or refuses them.
const KNOWN_OPTIONS: [&str; 29] = [
    "2dsphereIndexVersion",
    "background",
    "bits",
    "bucketSize",
    "clustered",
    "coarsestIndexedLevel",
    "collation",
    "columnstoreProjection",
    "default_language",
    "expireAfterSeconds",
    "finestIndexedLevel",
    "hidden",
    "key",
    "language_override",
    "max",
    "min",
    "name",
    "partialFilterExpression",
    "prepareUnique",
    "sparse",
    "storageEngine",
    "textIndexVersion",
    "unique",
    "weights",
    "wildcardProjection",
    "originalSpec",
    "dropDups",
    "ns",
    "v",
];

/// Options that say nothing to a current server and go without a note.
const WITHOUT_A_NOTE: [&str; 4] = ["ns", "v", "dropDups", "originalSpec"];

/// Plans the indexes of one collection, without the one on `_id` that it has by itself.
pub(super) fn plan(specs: &[IndexSpec], options: &Document) -> Vec<IndexPlan> {
    let has_collation = options.get("collation").is_some_and(|collation| !is_simple(collation));
    specs
        .iter()
        .filter(|spec| !is_default_id(&spec.0) && !is_clustered(&spec.0))
        .map(|spec| plan_one(&spec.0, has_collation))
        .collect()
}

/// Whether this is the index on `_id` that every collection has.
fn is_default_id(spec: &Document) -> bool {
    let Ok(key) = spec.get_document("key") else {
        return false;
    };
    let is_ascending = match key.get("_id") {
        Some(Bson::Int32(value)) => *value > 0,
        Some(Bson::Int64(value)) => *value > 0,
        Some(Bson::Double(value)) => *value > 0.0,
        Some(Bson::Boolean(value)) => *value,
        _ => false,
    };
    key.len() == 1 && is_ascending && !spec.contains_key("partialFilterExpression")
}

/// Whether this is how a clustered collection lists its own order; `create` makes it.
fn is_clustered(spec: &Document) -> bool {
    matches!(spec.get("clustered"), Some(Bson::Boolean(true)))
}

fn plan_one(spec: &Document, has_collation: bool) -> IndexPlan {
    let mut repairs = Vec::new();
    let mut fit = Document::new();
    let is_first_version = spec.get("v").is_some_and(|version| number(version) == Some(1.0));
    for (option, value) in spec {
        if !KNOWN_OPTIONS.contains(&option.as_str()) {
            repairs.push(format!("the unknown option `{option}` is left out"));
        } else if option == "key" {
            fit.insert("key", repaired_key(value, &mut repairs));
        } else if option == "collation" && is_first_version && is_simple(value) {
            // Version 1 indexes have the simple collation by nature and refuse to be told.
        } else if !WITHOUT_A_NOTE.contains(&option.as_str()) {
            fit.insert(option, value.clone());
        }
    }
    if has_collation && !fit.contains_key("collation") {
        // Without it the index would take the collection's collation.
        fit.insert("collation", doc! { "locale": "simple" });
    }
    if has_value(&fit, "2dsphere") && !fit.contains_key("2dsphereIndexVersion") {
        fit.insert("2dsphereIndexVersion", 1);
        repairs.push("it has no 2dsphereIndexVersion and is kept at version 1".into());
    }
    let name = named(&mut fit, &mut repairs);
    let expires = fit.contains_key("expireAfterSeconds");
    IndexPlan { name, spec: fit, expires, repairs }
}

fn is_simple(collation: &Bson) -> bool {
    matches!(collation, Bson::Document(collation)
        if collation.get_str("locale").is_ok_and(|locale| locale == "simple"))
}

fn has_value(spec: &Document, kind: &str) -> bool {
    spec.get_document("key")
        .is_ok_and(|key| key.values().any(|value| value == &Bson::String(kind.into())))
}

/// The index's name, made from its key as a server would where the dump has none.
fn named(spec: &mut Document, repairs: &mut Vec<String>) -> String {
    if let Ok(name) = spec.get_str("name") {
        return name.to_owned();
    }
    let parts: Vec<String> = spec
        .get_document("key")
        .map(|key| key.iter().map(|(field, value)| format!("{field}_{}", plain(value))).collect())
        .unwrap_or_default();
    let name = parts.join("_");
    spec.insert("name", name.clone());
    repairs.push(format!("it has no name and is called `{name}`"));
    name
}

fn plain(value: &Bson) -> String {
    match value {
        Bson::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The key with directions that a current server takes: anything that is neither a number other
/// than zero nor the name of a kind of index has always meant ascending.
fn repaired_key(key: &Bson, repairs: &mut Vec<String>) -> Bson {
    let Bson::Document(key) = key else {
        return key.clone();
    };
    let mut repaired = Document::new();
    for (field, direction) in key {
        let is_fit = match direction {
            Bson::String(kind) => !kind.is_empty(),
            other => number(other).is_some_and(|value| value != 0.0 && !value.is_nan()),
        };
        if is_fit {
            repaired.insert(field, direction.clone());
        } else {
            repairs.push(format!("the direction {direction} of `{field}` is taken as 1"));
            repaired.insert(field, 1);
        }
    }
    Bson::Document(repaired)
}

#[expect(clippy::cast_precision_loss, reason = "only the sign and zero are looked at")]
pub(super) fn number(value: &Bson) -> Option<f64> {
    match value {
        Bson::Int32(value) => Some(f64::from(*value)),
        Bson::Int64(value) => Some(*value as f64),
        Bson::Double(value) => Some(*value),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planned(specs: &[Document], options: &Document) -> Vec<IndexPlan> {
        let specs: Vec<_> = specs.iter().cloned().map(IndexSpec).collect();
        plan(&specs, options)
    }

    fn one(spec: Document) -> IndexPlan {
        planned(&[spec], &doc! {}).remove(0)
    }

    #[test]
    fn the_indexes_a_collection_has_by_itself_are_left_out() {
        let specs = [
            doc! { "v": 2, "key": { "_id": 1 }, "name": "_id_" },
            doc! { "v": 2, "key": { "_id": 1.0 }, "name": "old" },
            doc! { "key": { "_id": 1 }, "name": "by id", "unique": true, "clustered": true },
            doc! { "v": 2, "key": { "_id": "hashed" }, "name": "_id_hashed" },
        ];
        let names: Vec<_> = planned(&specs, &doc! {}).into_iter().map(|plan| plan.name).collect();
        assert_eq!(names, ["_id_hashed"]);
    }

    #[test]
    fn a_good_definition_passes_with_its_order() {
        let plan = one(doc! {
            "v": 2, "key": { "b": 1, "a": -1 }, "name": "b_1_a_-1", "ns": "d.c", "unique": true,
            "partialFilterExpression": {},
        });
        assert_eq!(
            plan.spec.keys().collect::<Vec<_>>(),
            ["key", "name", "unique", "partialFilterExpression"]
        );
        assert_eq!(plan.spec.get_document("key").expect("a key").keys().next().unwrap(), "b");
        assert!(plan.repairs.is_empty());
        assert!(!plan.expires);
    }

    #[test]
    fn legacy_faults_are_repaired_and_listed() {
        let plan = one(doc! {
            "v": 1, "key": { "a": true, "b": "", "c": 0, "d": -0.5, "e": "text" },
            "safe": true, "name": "legacy",
        });
        let key = plan.spec.get_document("key").expect("a key");
        assert_eq!(key, &doc! { "a": 1, "b": 1, "c": 1, "d": -0.5, "e": "text" });
        assert!(!plan.spec.contains_key("safe"));
        assert_eq!(plan.repairs.len(), 4, "{:?}", plan.repairs);
    }

    #[test]
    fn an_index_without_a_name_gets_one() {
        let plan = one(doc! { "key": { "a": 1, "b": "hashed" } });
        assert_eq!(plan.name, "a_1_b_hashed");
        assert_eq!(plan.spec.get_str("name").expect("a name"), "a_1_b_hashed");
    }

    #[test]
    fn a_collections_collation_does_not_spread_to_its_indexes() {
        let options = doc! { "collation": { "locale": "fr" } };
        let specs = [
            doc! { "key": { "a": 1 }, "name": "plain" },
            doc! { "key": { "a": 1 }, "name": "own", "collation": { "locale": "de" } },
        ];
        let planned = planned(&specs, &options);
        let locale = |plan: &IndexPlan| {
            let collation = plan.spec.get_document("collation").expect("a collation");
            collation.get_str("locale").expect("a locale").to_owned()
        };
        assert_eq!(locale(&planned[0]), "simple");
        assert_eq!(locale(&planned[1]), "de");
    }

    #[test]
    fn the_simple_collation_of_a_first_version_index_is_not_said() {
        let plan = one(
            doc! { "v": 1, "key": { "a": 1 }, "name": "a", "collation": { "locale": "simple" } },
        );
        assert!(!plan.spec.contains_key("collation"));
    }

    #[test]
    fn a_spherical_index_without_a_version_stays_at_the_first() {
        let plan = one(doc! { "key": { "loc": "2dsphere" }, "name": "loc" });
        assert_eq!(plan.spec.get_i32("2dsphereIndexVersion").expect("a version"), 1);
    }

    #[test]
    fn indexes_that_delete_documents_are_known() {
        assert!(one(doc! { "key": { "at": 1 }, "name": "at", "expireAfterSeconds": 60 }).expires);
    }
}
