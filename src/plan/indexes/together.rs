//! Which indexes one collection can have beside each other.

use bson::{Bson, Document};

use crate::facts::{ServerFacts, ServerVersion, Topology};
use crate::plan::directions::{is_simple, number};
use crate::plan::indexes::IndexPlan;
use crate::plan::indexes::acceptable::is_true;

/// Indexes of one collection, the one on `_id` included (`kMaxNumIndexesAllowed`).
const INDEXES_MAX: usize = 64;

/// From this version on indexes with the same key may differ in other options.
const WITH_SAME_KEYS: ServerVersion = ServerVersion::new(5, 0, 0);

/// The indexes that can stand beside each other, and those that cannot.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::plan) struct Together {
    /// The indexes to build.
    pub(in crate::plan) kept: Vec<IndexPlan>,
    /// Those that are there already under another name, as sentences.
    pub(in crate::plan) merged: Vec<String>,
    /// The names of those that cannot be built, each with the reason.
    pub(in crate::plan) impossible: Vec<(String, String)>,
}

/// What becomes of an index beside others.
enum Standing {
    Kept,
    Merged(String),
    Impossible(String),
}

/// Judges planned indexes by those that stand before them, and by the definitions of those that the
/// collection has already.
pub(in crate::plan) fn judge(
    existing: &[Document],
    planned: Vec<IndexPlan>,
    facts: &ServerFacts,
) -> Together {
    let mut together = Together::default();
    if facts.topology == Topology::Null || !facts.product.is_mongodb() {
        together.kept = planned;
        return together;
    }
    let places = INDEXES_MAX - usize::from(!existing.iter().any(is_on_id));
    let mut there: Vec<Document> = existing.to_vec();
    for index in planned {
        match standing(&there, &index, facts.version, places) {
            Standing::Kept => {
                let is_new = !there.iter().any(|spec| is_called(spec, &index.name));
                there.extend(is_new.then(|| index.spec.clone()));
                together.kept.push(index);
            }
            Standing::Merged(text) => together.merged.push(text),
            Standing::Impossible(reason) => together.impossible.push((index.name, reason)),
        }
    }
    together
}

fn standing(
    there: &[Document],
    index: &IndexPlan,
    version: ServerVersion,
    places: usize,
) -> Standing {
    let (name, spec) = (&index.name, &index.spec);
    if let Some(same) = there.iter().find(|there| is_called(there, name)) {
        // The options of what is there are spelled out, so that only keys can be compared.
        let is_one = has_same_key(same, spec) || (is_text(same) && is_text(spec));
        let taken = || "the collection has another index of this name".to_owned();
        return if is_one { Standing::Kept } else { Standing::Impossible(taken()) };
    }
    if let Some(like) = there.iter().find(|there| are_alike(there, spec, version)) {
        let other = like.get_str("name").unwrap_or_default();
        return if is_same(like, spec) {
            Standing::Merged(format!("index `{name}` is left out: it is the same as `{other}`"))
        } else if is_text(spec) {
            Standing::Impossible(format!("a collection has one text index, and `{other}` is it"))
        } else {
            Standing::Impossible(format!(
                "`{other}` has the same key, and the server does not keep them apart by what \
                 differs"
            ))
        };
    }
    if there.len() >= places {
        return Standing::Impossible(format!("a collection has {INDEXES_MAX} indexes at most"));
    }
    Standing::Kept
}

fn is_called(spec: &Document, name: &str) -> bool {
    spec.get_str("name").is_ok_and(|one| one == name)
}

fn is_on_id(spec: &Document) -> bool {
    let is_clustered = is_true(spec, "clustered");
    is_clustered
        || spec.get_document("key").is_ok_and(|key| key.len() == 1 && key.contains_key("_id"))
}

fn is_text(spec: &Document) -> bool {
    spec.get_document("key").is_ok_and(|key| {
        key.iter().any(|(_, kind)| kind.as_str().is_some_and(|kind| kind == "text"))
    })
}

/// Whether a server takes two definitions for the same index, whatever else they say
/// (`IndexDescriptor::compareIndexOptions`).
fn are_alike(one: &Document, other: &Document, version: ServerVersion) -> bool {
    if is_text(one) && is_text(other) {
        return true;
    }
    let same = |option: &str| one.get(option) == other.get(option);
    let is_alike = has_same_key(one, other) && collation(one) == collation(other);
    is_alike
        && (version < WITH_SAME_KEYS
            || (["unique", "sparse"].iter().all(|name| is_true(one, name) == is_true(other, name))
                && same("partialFilterExpression")
                && same("wildcardProjection")))
}

/// Whether two definitions differ in nothing but their names and versions.
fn is_same(one: &Document, other: &Document) -> bool {
    const WITHOUT_WEIGHT: [&str; 5] = ["name", "key", "v", "ns", "background"];
    let options = |spec: &Document| {
        let kept = spec.iter().filter(|(name, value)| {
            !WITHOUT_WEIGHT.contains(&name.as_str())
                && **value != Bson::Boolean(false)
                && !(name.as_str() == "collation" && is_simple(value))
        });
        let mut options: Vec<_> = kept.map(|(name, value)| (name.clone(), value.clone())).collect();
        options.sort_by(|one, other| one.0.cmp(&other.0));
        options
    };
    has_same_key(one, other) && options(one) == options(other)
}

fn has_same_key(one: &Document, other: &Document) -> bool {
    let (Ok(one), Ok(other)) = (one.get_document("key"), other.get_document("key")) else {
        return false;
    };
    let is_same = |one: &Bson, other: &Bson| match (number(one), number(other)) {
        (Some(one), Some(other)) => one.total_cmp(&other).is_eq(),
        _ => one == other,
    };
    one.len() == other.len()
        && one
            .iter()
            .zip(other)
            .all(|((field, one), (other_field, other))| field == other_field && is_same(one, other))
}

fn collation(spec: &Document) -> Option<&Bson> {
    spec.get("collation").filter(|collation| !is_simple(collation))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::doc;

    fn facts(version: &str) -> ServerFacts {
        let version = ServerVersion::parse(version).expect("a version");
        ServerFacts { version, topology: Topology::Standalone, ..ServerFacts::null() }
    }

    fn index(name: &str, mut spec: Document) -> IndexPlan {
        spec.insert("name", name);
        IndexPlan { name: name.to_owned(), spec, expires: false, repairs: Vec::new() }
    }

    /// `x` and then `y`: whether `y` is built (`+`), the same (`=`), or impossible (`-`).
    fn verdict(one: Document, other: Document, version: &str) -> char {
        let planned = vec![index("x", one), index("y", other)];
        let together = judge(&[], planned, &facts(version));
        match (together.kept.len(), together.merged.len(), together.impossible.len()) {
            (2, 0, 0) => '+',
            (1, 1, 0) => '=',
            (1, 0, 1) => '-',
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_makes_two_indexes_of_one_key_is_what_the_server_says() {
        let key = || doc! { "key": { "a": 1 } };
        let with = |more: Document| {
            let mut spec = key();
            spec.extend(more);
            spec
        };
        for (other, since_5_0, before) in [
            (key(), '=', '='),
            (doc! { "key": { "a": 1.0 } }, '=', '='),
            (doc! { "key": { "a": 2 } }, '+', '+'),
            (doc! { "key": { "a": "hashed" } }, '+', '+'),
            (with(doc! { "unique": false }), '=', '='),
            (with(doc! { "unique": true }), '+', '-'),
            (with(doc! { "sparse": true }), '+', '-'),
            (with(doc! { "partialFilterExpression": { "a": 1 } }), '+', '-'),
            (with(doc! { "collation": { "locale": "fr" } }), '+', '+'),
            (with(doc! { "collation": { "locale": "simple" } }), '=', '='),
            (with(doc! { "expireAfterSeconds": 5 }), '-', '-'),
            (with(doc! { "hidden": true }), '-', '-'),
        ] {
            assert_eq!(verdict(key(), other.clone(), "6.0.5"), since_5_0, "{other}");
            assert_eq!(verdict(key(), other.clone(), "4.4.2"), before, "{other}");
        }
    }

    #[test]
    fn a_collection_has_one_text_index() {
        let text = |field: &str| doc! { "key": { field: "text" } };
        assert_eq!(verdict(text("a"), text("b"), "6.0.5"), '-');
        assert_eq!(verdict(text("a"), text("a"), "6.0.5"), '=');
    }

    #[test]
    fn there_are_64_indexes_at_most_with_those_that_exist() {
        let planned = |count: usize| -> Vec<_> {
            let made =
                |number| index(&format!("f{number}"), doc! { "key": { format!("f{number}"): 1 } });
            (0..count).map(made).collect()
        };
        assert_eq!(judge(&[], planned(63), &facts("6.0.5")).impossible, []);
        let over = judge(&[], planned(65), &facts("6.0.5"));
        let names: Vec<_> = over.impossible.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!((over.kept.len(), names), (63, vec!["f63", "f64"]));
        let existing = [
            doc! { "key": { "_id": 1 }, "name": "_id_" },
            doc! { "key": { "f0": 1 }, "name": "f0" },
            doc! { "key": { "old": 1 }, "name": "old" },
        ];
        let beside = judge(&existing, planned(63), &facts("6.0.5"));
        assert_eq!((beside.kept.len(), beside.impossible.len()), (62, 1));
        let null = judge(&[], planned(100), &ServerFacts::null());
        assert_eq!(null.kept.len(), 100, "nothing refuses there");
    }

    #[test]
    fn a_name_that_is_taken_by_another_index_is_told() {
        let existing = [doc! { "key": { "b": 1 }, "name": "x" }];
        let planned = vec![index("x", doc! { "key": { "a": 1 } })];
        let together = judge(&existing, planned, &facts("6.0.5"));
        assert!(together.impossible[0].1.contains("another index of this name"));
    }
}
