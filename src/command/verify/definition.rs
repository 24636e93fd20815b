//! Compares options and indexes with those that a restore would make, apart from what servers add
//! of themselves.

use bson::{Bson, Document};

use crate::dump::inventory::CollectionKind;
use crate::facts::{Product, ServerFacts};
use crate::plan::CollectionPlan;
use crate::plan::indexes::IndexPlan;
use crate::report::verification::Deviation;
use crate::target::contents::DescribedCollection;

/// A server before 4.4 raises the size of a capped collection to a multiple of this, and to one
/// page at least (`CollectionOptions::parse`).
const CAPPED_SIZE_STEP: f64 = 256.0;
const CAPPED_SIZE_LEAST: f64 = 4096.0;

/// Options of a collection that a server adds with a value of its own, or that say nothing about
/// its content.
const ADDED_OPTIONS: [(&str, Option<&str>); 5] = [
    ("validationLevel", Some("strict")),
    ("validationAction", Some("error")),
    ("timeseriesBucketsMayHaveMixedSchemaData", None),
    ("recordIdsReplicated", None),
    ("autoIndexId", None),
];

/// Fields of an index that a server adds, removes or changes of itself.
const ADDED_TO_INDEXES: [&str; 10] = [
    "v",
    "ns",
    "background",
    "dropDups",
    "originalSpec",
    "textIndexVersion",
    "2dsphereIndexVersion",
    "default_language",
    "language_override",
    "weights",
];

/// Fields of an index that mean the same where they are false as where they are absent.
const FALSE_BY_DEFAULT: [&str; 5] = ["unique", "sparse", "hidden", "background", "prepareUnique"];

/// Where the order of fields means something.
const ORDERED: [&str; 4] = ["key", "pipeline", "validator", "partialFilterExpression"];

/// Options that only MongoDB's own storage engine knows; others are not sent them.
const STORAGE_ENGINE: &str = "storageEngine";

/// What differs of a collection's kind and options.
pub(super) fn options(
    plan: &CollectionPlan,
    found: Option<&DescribedCollection>,
    facts: &ServerFacts,
) -> Vec<Deviation> {
    let deviates = |name: &str, expected: Option<String>, found: Option<String>| Deviation {
        name: name.to_owned(),
        expected,
        found,
    };
    let kind = plan.kind.name();
    let Some(found) = found else {
        return vec![deviates("type", Some(kind.to_owned()), None)];
    };
    if found.kind != kind {
        return vec![deviates("type", Some(kind.to_owned()), Some(found.kind.clone()))];
    }
    let mut expected = plan.options.clone();
    if let Some(seconds) = plan.expire_after_seconds.as_deref() {
        expected.insert("expireAfterSeconds", seconds.clone());
    }
    let mut names: Vec<&str> = expected.keys().map(String::as_str).collect();
    names.extend(found.options.keys().map(String::as_str));
    let mut seen = std::collections::BTreeSet::new();
    names.retain(|name| seen.insert(*name));
    let is_of_interest = |name: &&str| *name != STORAGE_ENGINE || facts.product == Product::MongoDb;
    names
        .into_iter()
        .filter(is_of_interest)
        .filter(|name| !option_fits(name, expected.get(name), found.options.get(name)))
        .map(|name| deviates(name, expected.get(name).map(text), found.options.get(name).map(text)))
        .collect()
}

fn option_fits(name: &str, expected: Option<&Bson>, found: Option<&Bson>) -> bool {
    match (expected, found) {
        (Some(expected), Some(found)) => match name {
            // A server spells out what was left to it.
            "collation" | "timeseries" | "clusteredIndex" => covers(expected, found),
            "size" => size_fits(expected, found),
            "expireAfterSeconds" => seconds_fit(expected, found),
            _ => same(expected, found, ORDERED.contains(&name)),
        },
        (None, Some(found)) => ADDED_OPTIONS.iter().any(|(added, value)| {
            *added == name && value.is_none_or(|value| found.as_str() == Some(value))
        }),
        // No limit, and not capped, are what a collection is without saying so.
        (Some(expected), None) => match name {
            "max" => number(expected).is_some_and(|max| max <= 0.0),
            "collation" => is_simple(expected),
            _ => *expected == Bson::Boolean(false),
        },
        (None, None) => true,
    }
}

/// What differs of a collection's indexes; of those of the target that the dump does not have only
/// where they count.
pub(super) fn indexes(
    plan: &CollectionPlan,
    found: &[Document],
    others: Others,
    facts: &ServerFacts,
) -> Vec<Deviation> {
    let found: Vec<&Document> = found.iter().filter(|index| !is_own(plan, index)).collect();
    let called =
        |name: &str| found.iter().find(|index| index.get_str("name").ok() == Some(name)).copied();
    let mut deviations: Vec<Deviation> = plan
        .indexes
        .iter()
        .filter_map(|index| {
            let there = called(&index.name);
            if there.is_some_and(|there| index_fits(index, there, facts)) {
                return None;
            }
            let expected = Some(text(&Bson::Document(index.spec.clone())));
            let found = there.map(|there| text(&Bson::Document(there.clone())));
            Some(Deviation { name: index.name.clone(), expected, found })
        })
        .collect();
    if others == Others::Count {
        let is_planned = |name: &str| plan.indexes.iter().any(|index| index.name == name);
        deviations.extend(found.iter().filter_map(|index| {
            let name = index.get_str("name").unwrap_or("(without a name)");
            let found = Some(text(&Bson::Document((*index).clone())));
            let deviation = Deviation { name: name.to_owned(), expected: None, found };
            (!is_planned(name)).then_some(deviation)
        }));
    }
    deviations
}

/// What is thought of indexes that the dump does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Others {
    /// They are a difference.
    Count,
    /// They may have been there before.
    Pass,
}

/// Whether a server makes this index of itself: that on `_id`, the order of a clustered collection,
/// and from 6.3 on that on what a time-series collection is ordered by.
fn is_own(plan: &CollectionPlan, index: &Document) -> bool {
    let key = index.get_document("key").cloned().unwrap_or_default();
    let is_id = key.len() == 1
        && key.get("_id").and_then(number).is_some_and(|direction| direction > 0.0)
        && !index.contains_key("partialFilterExpression");
    let is_clustered = index.get("clustered") == Some(&Bson::Boolean(true));
    is_id || is_clustered || (plan.kind == CollectionKind::TimeSeries && is_of_series(plan, &key))
}

fn is_of_series(plan: &CollectionPlan, key: &Document) -> bool {
    let series = plan.options.get_document("timeseries");
    let fields = series.map(|series| (series.get_str("metaField"), series.get_str("timeField")));
    let Ok((Ok(meta), Ok(time))) = fields else {
        return false;
    };
    let is_ascending = |value: &Bson| number(value) == Some(1.0);
    let is_planned = plan.indexes.iter().any(|index| {
        index.spec.get_document("key").is_ok_and(|planned| planned.keys().eq(key.keys()))
    });
    !is_planned && key.keys().eq([meta, time]) && key.values().all(is_ascending)
}

fn index_fits(plan: &IndexPlan, found: &Document, facts: &ServerFacts) -> bool {
    let names = plan.spec.keys().chain(found.keys()).map(String::as_str);
    names.into_iter().all(|name| {
        if name == STORAGE_ENGINE && facts.product != Product::MongoDb {
            return true;
        }
        match (plan.spec.get(name), found.get(name)) {
            _ if name == "background" || name == "dropDups" => true,
            (Some(expected), Some(found)) => match name {
                "collation" => covers(expected, found),
                "expireAfterSeconds" => seconds_fit(expected, found),
                _ => same(expected, found, ORDERED.contains(&name)),
            },
            (None, Some(found)) => {
                ADDED_TO_INDEXES.contains(&name)
                    || (FALSE_BY_DEFAULT.contains(&name) && *found == Bson::Boolean(false))
            }
            (Some(expected), None) => match name {
                "collation" => is_simple(expected),
                _ => FALSE_BY_DEFAULT.contains(&name) && *expected == Bson::Boolean(false),
            },
            (None, None) => true,
        }
    })
}

/// Whether what was found has all that is expected, and perhaps more that a server spells out. The
/// version of a collation's rules is that of the server.
fn covers(expected: &Bson, found: &Bson) -> bool {
    match (expected, found) {
        (Bson::Document(expected), Bson::Document(found)) => {
            expected.iter().all(|(name, value)| {
                let is_version = name == "version";
                is_version || found.get(name).is_some_and(|found| same(value, found, name == "key"))
            })
        }
        // `true` is a way to ask for the usual one.
        (Bson::Boolean(true), Bson::Document(_)) => true,
        (expected, found) => same(expected, found, false),
    }
}

/// Whether two values mean the same: numbers by their value, fields in any order unless it counts.
fn same(one: &Bson, other: &Bson, is_ordered: bool) -> bool {
    match (one, other) {
        (Bson::Document(one), Bson::Document(other)) if one.len() == other.len() => {
            if is_ordered {
                let mut pairs = one.iter().zip(other);
                return pairs.all(|((name, value), (other_name, other))| {
                    name == other_name && same(value, other, true)
                });
            }
            one.iter()
                .all(|(name, value)| other.get(name).is_some_and(|other| same(value, other, false)))
        }
        (Bson::Array(one), Bson::Array(other)) => {
            one.len() == other.len()
                && one.iter().zip(other).all(|(one, other)| same(one, other, is_ordered))
        }
        _ => match (whole(one), whole(other)) {
            (Some(one), Some(other)) => one == other,
            _ => match (number(one), number(other)) {
                (Some(one), Some(other)) => one.total_cmp(&other).is_eq() || equal(one, other),
                _ => one == other,
            },
        },
    }
}

fn size_fits(expected: &Bson, found: &Bson) -> bool {
    let raised =
        |size: f64| ((size / CAPPED_SIZE_STEP).ceil() * CAPPED_SIZE_STEP).max(CAPPED_SIZE_LEAST);
    match (number(expected), number(found)) {
        (Some(expected), Some(found)) => equal(expected, found) || equal(raised(expected), found),
        _ => expected == found,
    }
}

/// Servers from 5.0 on keep whole seconds, and in place of no number the longest time.
fn seconds_fit(expected: &Bson, found: &Bson) -> bool {
    match (number(expected), number(found)) {
        (Some(expected), Some(found)) => {
            let longest = f64::from(i32::MAX);
            equal(expected.trunc(), found.trunc())
                || (expected.is_nan()
                    && (found.is_nan() || equal(found, longest) || equal(found, 0.0)))
                || (expected > longest && equal(found, longest))
        }
        _ => same(expected, found, false),
    }
}

/// Whether two numbers are equal to the last digit, as whole ones that a server gives back are.
fn equal(one: f64, other: f64) -> bool {
    one.partial_cmp(&other).is_some_and(std::cmp::Ordering::is_eq)
}

fn is_simple(collation: &Bson) -> bool {
    collation
        .as_document()
        .is_some_and(|collation| collation.get_str("locale").ok() == Some("simple"))
}

fn whole(value: &Bson) -> Option<i64> {
    match value {
        Bson::Int32(value) => Some((*value).into()),
        Bson::Int64(value) => Some(*value),
        _ => None,
    }
}

#[expect(clippy::cast_precision_loss, reason = "whole numbers were compared exactly before")]
fn number(value: &Bson) -> Option<f64> {
    match value {
        Bson::Int32(value) => Some(f64::from(*value)),
        Bson::Int64(value) => Some(*value as f64),
        Bson::Double(value) => Some(*value),
        _ => None,
    }
}

fn text(value: &Bson) -> String {
    value.clone().into_relaxed_extjson().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dump::inventory::{DumpEntry, Inventory};
    use crate::dump::metadata::{CollectionMetadata, IndexSpec};
    use crate::namespace::Namespace;
    use crate::plan::{Selection, plan};
    use bson::doc;

    fn planned(kind: CollectionKind, options: Document, indexes: &[Document]) -> CollectionPlan {
        let metadata = CollectionMetadata {
            options,
            indexes: indexes.iter().cloned().map(IndexSpec::from).collect(),
            ..CollectionMetadata::default()
        };
        let entry = DumpEntry {
            namespace: Namespace::new("shop", "orders"),
            kind,
            data: None,
            metadata: Some(metadata),
            metadata_path: None,
            problem: None,
        };
        let inventory = Inventory { entries: vec![entry], ..Inventory::default() };
        let plan = plan(&inventory, Selection::default(), &ServerFacts::null());
        plan.collections.into_iter().next().expect("planned")
    }

    fn named(deviations: &[Deviation]) -> Vec<&str> {
        deviations.iter().map(|one| one.name.as_str()).collect()
    }

    fn differing_options(expected: Document, found: Document) -> Vec<String> {
        let plan = planned(CollectionKind::Collection, expected, &[]);
        let found = DescribedCollection {
            name: "orders".to_owned(),
            kind: "collection".to_owned(),
            options: found,
        };
        let deviations = options(&plan, Some(&found), &ServerFacts::null());
        named(&deviations).into_iter().map(str::to_owned).collect()
    }

    #[test]
    fn what_servers_add_to_options_is_no_difference() {
        let collation = doc! { "locale": "fr", "strength": 2, "version": "57.1" };
        let spelled = doc! { "strength": 2, "locale": "fr", "backwards": false, "version": "9" };
        let validator = doc! { "a": { "$gt": 1, "$lt": 5 } };
        let checked = doc! {
            "validator": validator.clone(), "validationLevel": "strict",
            "validationAction": "error",
        };
        for (expected, found) in [
            (doc! { "capped": true, "size": 100 }, doc! { "capped": true, "size": 4096_i64 }),
            (doc! { "capped": true, "size": 5000.0 }, doc! { "size": 5120, "capped": true }),
            (doc! { "collation": collation }, doc! { "collation": spelled }),
            (doc! { "validator": validator }, checked),
            (doc! { "autoIndexId": true, "temp": true, "flags": 1 }, doc! {}),
        ] {
            assert_eq!(differing_options(expected.clone(), found), [""; 0], "{expected}");
        }
    }

    #[test]
    fn options_that_differ_are_named() {
        let ordered = |one: &str, other: &str| doc! { "validator": { "a": { one: 1, other: 5 } } };
        for (expected, found, name) in [
            (doc! { "capped": true, "size": 4096 }, doc! { "capped": true, "size": 8192 }, "size"),
            (doc! { "capped": true }, doc! {}, "capped"),
            (doc! {}, doc! { "validationLevel": "moderate" }, "validationLevel"),
            (doc! { "collation": { "locale": "fr" } }, doc! {}, "collation"),
            (
                doc! { "collation": { "locale": "fr" } },
                doc! { "collation": { "locale": "de" } },
                "collation",
            ),
            (ordered("$gt", "$lt"), ordered("$lt", "$gt"), "validator"),
        ] {
            assert_eq!(differing_options(expected, found), [name]);
        }
        let plan = planned(CollectionKind::Collection, doc! {}, &[]);
        let facts = ServerFacts::null();
        assert_eq!(named(&options(&plan, None, &facts)), ["type"]);
        let view = DescribedCollection {
            name: "orders".to_owned(),
            kind: "view".to_owned(),
            options: doc! {},
        };
        assert_eq!(named(&options(&plan, Some(&view), &facts)), ["type"]);
    }

    fn differing_indexes(expected: &Document, found: &Document, others: Others) -> usize {
        let plan = planned(CollectionKind::Collection, doc! {}, std::slice::from_ref(expected));
        indexes(&plan, std::slice::from_ref(found), others, &ServerFacts::null()).len()
    }

    #[test]
    fn what_servers_add_to_indexes_is_no_difference() {
        for (expected, found) in [
            (doc! { "key": { "a": 1 } }, doc! { "v": 2, "key": { "a": 1.0 }, "ns": "x" }),
            (doc! { "key": { "a": 1 }, "unique": false }, doc! { "v": 2, "key": { "a": 1 } }),
            (
                doc! { "key": { "a": 1 }, "background": true, "expireAfterSeconds": 5.7 },
                doc! { "key": { "a": 1 }, "expireAfterSeconds": 5 },
            ),
            (
                doc! { "key": { "a": 1 }, "collation": { "locale": "simple" } },
                doc! { "key": { "a": 1 } },
            ),
        ] {
            let name = |mut index: Document| {
                index.insert("name", "i");
                index
            };
            let (expected, found) = (name(expected), name(found));
            assert_eq!(differing_indexes(&expected, &found, Others::Count), 0, "{expected}");
        }
    }

    #[test]
    fn indexes_that_differ_are_found() {
        let index = |key: Document| doc! { "key": key, "name": "i" };
        let expected = index(doc! { "a": 1, "b": 1 });
        for found in [
            index(doc! { "b": 1, "a": 1 }),
            index(doc! { "a": 1, "b": -1 }),
            doc! { "key": { "a": 1, "b": 1 }, "name": "i", "unique": true },
            doc! { "key": { "a": 1, "b": 1 }, "name": "i", "sparse": true },
            doc! { "key": { "a": 1, "b": 1 }, "name": "i", "collation": { "locale": "fr" } },
        ] {
            assert_eq!(differing_indexes(&expected, &found, Others::Count), 1, "{found}");
        }
        let other = doc! { "key": { "c": 1 }, "name": "c_1" };
        assert_eq!(differing_indexes(&expected, &other, Others::Count), 2);
        assert_eq!(differing_indexes(&expected, &other, Others::Pass), 1);
    }

    #[test]
    fn indexes_of_the_servers_own_do_not_count() {
        let series = doc! { "timeseries": { "timeField": "t", "metaField": "m" } };
        let plan = planned(CollectionKind::TimeSeries, series, &[]);
        let own = doc! { "key": { "m": 1, "t": 1 }, "name": "m_1_t_1" };
        let other = doc! { "key": { "m": 1, "t": -1 }, "name": "m_1_t_-1" };
        let found = indexes(&plan, &[own, other], Others::Count, &ServerFacts::null());
        assert_eq!(named(&found), ["m_1_t_-1"]);
    }
}
