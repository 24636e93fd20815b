//! The indexes of a collection, made fit for the `createIndexes` command.
//!
//! Definitions pass through as the dump has them; what old servers accepted and new ones refuse is
//! repaired, and each repair is listed. What no repair helps is left out with its reason.

use bson::{Bson, Document, doc};

use crate::dump::metadata::IndexSpec;
use crate::facts::{ServerFacts, ServerVersion, Topology};
use crate::namespace::Namespace;
use crate::plan::directions::{self, is_simple, is_version_one};

/// How index definitions are made fit beyond what is always done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IndexFixes {
    /// What is done about the directions of old servers.
    pub directions: Directions,
    /// What becomes of hashed fields with a dot in their name.
    pub dotted_hashed: DottedHashed,
    /// Which version indexes are built in.
    pub version: IndexVersion,
}

/// What is done about directions that old servers accepted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Directions {
    /// Those that a current server refuses are taken as 1.
    #[default]
    Repaired,
    /// So are they, and numbers next to zero become 1 or -1; of definitions that become equal by
    /// it the first one is built.
    Converted,
}

/// What becomes of a hashed field with a dot in its name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DottedHashed {
    /// It stays hashed.
    #[default]
    Kept,
    /// It becomes ascending.
    Ascending,
}

/// Which version indexes are built in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IndexVersion {
    /// The one that the server prefers.
    #[default]
    Current,
    /// That of the dump.
    Kept,
}

/// What an index definition is judged by besides itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct Surroundings<'a> {
    /// The collection on the target.
    pub(super) namespace: &'a Namespace,
    /// The options the collection is created with.
    pub(super) options: &'a Document,
    /// What was asked for.
    pub(super) fixes: IndexFixes,
    /// What the server is.
    pub(super) facts: &'a ServerFacts,
}

/// The indexes of one collection, and what cannot be built.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Fit {
    /// The indexes to build.
    pub(super) indexes: Vec<IndexPlan>,
    /// Definitions that need no index of their own, with the reason.
    pub(super) merged: Vec<String>,
    /// The names of indexes that the server cannot have, each with the reason.
    pub(super) impossible: Vec<(String, String)>,
}

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

/// From this version on there are no geoHaystack indexes (SERVER-47506).
const WITHOUT_HAYSTACKS: ServerVersion = ServerVersion::new(4, 9, 0);

/// Until this version the full name of an index had a limit (SERVER-32959).
const WITHOUT_NAME_LIMIT: ServerVersion = ServerVersion::new(4, 2, 0);

/// The longest `database.collection.$index` of servers with that limit, in bytes.
const FULL_NAME_BYTES_MAX: usize = 127;

/// Plans the indexes of one collection, without the one on `_id` that it has by itself.
pub(super) fn plan(specs: &[IndexSpec], of: Surroundings<'_>) -> Fit {
    let mut fit = Fit::default();
    // The keys after conversion, with the names of those that have them and whether it changed them.
    let mut keys: Vec<(Document, String, bool)> = Vec::new();
    for IndexSpec(spec) in specs {
        if is_default_id(spec) || is_clustered(spec) {
            continue;
        }
        let mut repairs = Vec::new();
        let mut made = make_fit(spec, of, &mut repairs);
        let name = named(&mut made, &mut repairs);
        if of.fixes.directions == Directions::Converted {
            let key = made.get_document("key").cloned().unwrap_or_default();
            let is_changed = spec.get_document("key").ok() != Some(&key);
            let same = keys.iter().find(|(other, _, was_changed)| {
                (is_changed || *was_changed) && directions::are_equal(other, &key)
            });
            if let Some((_, first, _)) = same {
                fit.merged.push(format!(
                    "index `{name}` is left out: once converted, it is the same as `{first}`"
                ));
                continue;
            }
            keys.push((key, name.clone(), is_changed));
        }
        if of.fixes.dotted_hashed == DottedHashed::Ascending
            && let Ok(key) = made.get_document_mut("key")
        {
            directions::unhash_dotted(key, &mut repairs);
        }
        if let Some(reason) = impossible(&made, &name, of) {
            fit.impossible.push((name, reason));
            continue;
        }
        let expires = made.contains_key("expireAfterSeconds");
        fit.indexes.push(IndexPlan { name, spec: made, expires, repairs });
    }
    tell_names_apart(&mut fit.indexes);
    fit
}

/// Whether this is the index on `_id` that every collection has.
fn is_default_id(spec: &Document) -> bool {
    let Ok(key) = spec.get_document("key") else {
        return false;
    };
    let is_ascending =
        key.get("_id").is_some_and(|direction| match directions::repaired(direction) {
            Some(_) => true,
            None => directions::number(direction).is_some_and(|value| value > 0.0),
        });
    key.len() == 1 && is_ascending && !spec.contains_key("partialFilterExpression")
}

/// Whether this is how a clustered collection lists its own order; `create` makes it.
fn is_clustered(spec: &Document) -> bool {
    matches!(spec.get("clustered"), Some(Bson::Boolean(true)))
}

/// The definition as it is sent, but for its name.
fn make_fit(spec: &Document, of: Surroundings<'_>, repairs: &mut Vec<String>) -> Document {
    let mut fit = Document::new();
    let keeps_version = of.fixes.version == IndexVersion::Kept;
    for (option, value) in spec {
        if !KNOWN_OPTIONS.contains(&option.as_str()) {
            repairs.push(format!("the unknown option `{option}` is left out"));
        } else if option == "key" {
            let key = match value {
                Bson::Document(key) => {
                    Bson::Document(directions::fit(key, of.fixes.directions, repairs))
                }
                other => other.clone(),
            };
            fit.insert("key", key);
        } else if option == "collation" && is_version_one(spec) && is_simple(value) {
            // Version 1 indexes have the simple collation by nature and refuse to be told.
        } else if !WITHOUT_A_NOTE.contains(&option.as_str()) || (option == "v" && keeps_version) {
            fit.insert(option, value.clone());
        }
    }
    let has_collation = of.options.get("collation").is_some_and(|collation| !is_simple(collation));
    let refuses_collation = keeps_version && is_version_one(spec);
    if has_collation && !refuses_collation && !fit.contains_key("collation") {
        // Without it the index would take the collection's collation.
        fit.insert("collation", doc! { "locale": "simple" });
    }
    if has_value(&fit, "2dsphere") && !fit.contains_key("2dsphereIndexVersion") {
        fit.insert("2dsphereIndexVersion", 1);
        repairs.push("it has no 2dsphereIndexVersion and is kept at version 1".into());
    }
    fit
}

fn has_value(spec: &Document, kind: &str) -> bool {
    spec.get_document("key")
        .is_ok_and(|key| key.values().any(|value| value == &Bson::String(kind.into())))
}

/// Why this server cannot have the index, if it cannot.
fn impossible(spec: &Document, name: &str, of: Surroundings<'_>) -> Option<String> {
    if of.facts.topology == Topology::Null {
        return None;
    }
    let version = of.facts.version;
    if has_value(spec, "geoHaystack") && version >= WITHOUT_HAYSTACKS {
        return Some(format!(
            "servers from 4.9 on have no geoHaystack indexes, and this one is {version}; a \
             2dsphere index can take its place"
        ));
    }
    let full_name = of.namespace.full().len() + ".$".len() + name.len();
    if version < WITHOUT_NAME_LIMIT && full_name > FULL_NAME_BYTES_MAX {
        return Some(format!(
            "with the collection's name it has {full_name} bytes, and servers before 4.2 allow \
             {FULL_NAME_BYTES_MAX}"
        ));
    }
    None
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

/// Gives an index whose name an earlier one has a name of its own, so that both are built.
fn tell_names_apart(indexes: &mut [IndexPlan]) {
    for later in 1..indexes.len() {
        let (earlier, rest) = indexes.split_at_mut(later);
        let index = &mut rest[0];
        let is_taken = |name: &str| earlier.iter().any(|index| index.name == name);
        if !is_taken(&index.name) {
            continue;
        }
        let free = (2..).map(|number| format!("{}_{number}", index.name));
        let Some(name) = free.take(earlier.len() + 1).find(|name| !is_taken(name)) else {
            continue;
        };
        index
            .repairs
            .push(format!("another index is called `{}`; it becomes `{name}`", index.name));
        index.spec.insert("name", name.clone());
        index.name = name;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fitted(specs: &[Document], options: &Document, fixes: IndexFixes, version: &str) -> Fit {
        let specs: Vec<_> = specs.iter().cloned().map(IndexSpec).collect();
        let facts = ServerFacts {
            version: ServerVersion::parse(version).expect("a version"),
            topology: Topology::Standalone,
            ..ServerFacts::null()
        };
        let namespace = &Namespace::new("shop", "orders");
        plan(&specs, Surroundings { namespace, options, fixes, facts: &facts })
    }

    fn planned(specs: &[Document], options: &Document) -> Vec<IndexPlan> {
        fitted(specs, options, IndexFixes::default(), "6.0.5").indexes
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

    const CONVERTED: IndexFixes = IndexFixes {
        directions: Directions::Converted,
        dotted_hashed: DottedHashed::Kept,
        version: IndexVersion::Current,
    };

    const UNHASHED: IndexFixes = IndexFixes {
        directions: Directions::Repaired,
        dotted_hashed: DottedHashed::Ascending,
        ..CONVERTED
    };

    const VERSIONED: IndexFixes =
        IndexFixes { directions: Directions::Repaired, version: IndexVersion::Kept, ..CONVERTED };

    /// Each fix-up of the peer, as what is sent for a definition.
    #[test]
    fn every_fix_up_of_the_peer() {
        let plain = IndexFixes::default();
        let french = doc! { "collation": { "locale": "fr" } };
        let simple = doc! { "locale": "simple" };
        let spec = |key: Document| doc! { "v": 2, "key": key, "name": "i" };
        for (options, fixes, dumped, sent) in [
            (
                doc! {},
                plain,
                doc! { "v": 1, "key": { "a": 1 }, "name": "i", "ns": "x.y" },
                doc! { "key": { "a": 1 }, "name": "i" },
            ),
            (
                doc! {},
                VERSIONED,
                doc! { "v": 1, "key": { "a": 1 }, "name": "i", "ns": "x.y" },
                doc! { "v": 1, "key": { "a": 1 }, "name": "i" },
            ),
            (
                doc! {},
                plain,
                spec(doc! { "a": "2dsphere" }),
                doc! { "key": { "a": "2dsphere" }, "name": "i", "2dsphereIndexVersion": 1 },
            ),
            (
                doc! {},
                plain,
                doc! { "key": { "a": "2dsphere" }, "name": "i", "2dsphereIndexVersion": 3 },
                doc! { "key": { "a": "2dsphere" }, "name": "i", "2dsphereIndexVersion": 3 },
            ),
            (
                doc! {},
                plain,
                doc! { "key": { "a": "text" }, "name": "i", "textIndexVersion": 3 },
                doc! { "key": { "a": "text" }, "name": "i", "textIndexVersion": 3 },
            ),
            (
                doc! {},
                plain,
                spec(doc! { "a": 1e-13, "b": -2.5, "c": 7_i64 }),
                doc! { "key": { "a": 1e-13, "b": -2.5, "c": 7_i64 }, "name": "i" },
            ),
            (
                doc! {},
                CONVERTED,
                spec(doc! { "a": 1e-13, "b": -1e-13, "c": 7_i64, "d": -2.5 }),
                doc! { "key": { "a": 1, "b": -1, "c": 7_i64, "d": -2.5 }, "name": "i" },
            ),
            (
                doc! {},
                CONVERTED,
                spec(doc! { "a": 0, "b": "", "c": true, "d": "hashed", "e": [] }),
                doc! { "key": { "a": 1, "b": 1, "c": 1, "d": "hashed", "e": 1 }, "name": "i" },
            ),
            (
                doc! {},
                plain,
                spec(doc! { "a.b": "hashed" }),
                doc! { "key": { "a.b": "hashed" }, "name": "i" },
            ),
            (
                doc! {},
                UNHASHED,
                spec(doc! { "a.b": "hashed", "c": "hashed", "d.e": "text" }),
                doc! { "key": { "a.b": 1, "c": "hashed", "d.e": "text" }, "name": "i" },
            ),
            (
                french.clone(),
                plain,
                spec(doc! { "a": 1 }),
                doc! { "key": { "a": 1 }, "name": "i", "collation": simple.clone() },
            ),
            (
                french.clone(),
                VERSIONED,
                doc! { "v": 1, "key": { "a": 1 }, "name": "i", "collation": simple },
                doc! { "v": 1, "key": { "a": 1 }, "name": "i" },
            ),
            (
                doc! {},
                plain,
                doc! { "key": { "a": 1 }, "name": "i", "partialFilterExpression": {} },
                doc! { "key": { "a": 1 }, "name": "i", "partialFilterExpression": {} },
            ),
            (
                doc! {},
                plain,
                doc! { "key": { "a": 1 }, "name": "i", "background": true, "dropDups": true },
                doc! { "key": { "a": 1 }, "name": "i", "background": true },
            ),
        ] {
            let fit = fitted(std::slice::from_ref(&dumped), &options, fixes, "6.0.5");
            assert_eq!(fit.indexes[0].spec.to_string(), sent.to_string(), "{dumped}");
        }
    }

    #[test]
    fn of_definitions_that_conversion_makes_equal_the_first_is_built() {
        let specs = [
            doc! { "key": { "a": true }, "name": "first" },
            doc! { "key": { "a": 1 }, "name": "second" },
            doc! { "key": { "a": 1.0 }, "name": "third", "collation": { "locale": "fr" } },
            doc! { "key": { "b": 1 }, "name": "plain" },
            doc! { "key": { "b": 1 }, "name": "partial", "partialFilterExpression": { "b": 1 } },
            doc! { "key": { "b": 1, "a": 1 }, "name": "other order" },
        ];
        let names = |fit: &Fit| fit.indexes.iter().map(|i| i.name.clone()).collect::<Vec<_>>();
        let fit = fitted(&specs, &doc! {}, CONVERTED, "6.0.5");
        // Those that were equal in the dump already differ in something else.
        assert_eq!(names(&fit), ["first", "plain", "partial", "other order"]);
        assert_eq!(fit.merged.len(), 2);
        assert!(fit.merged[0].contains("`second`") && fit.merged[0].contains("`first`"));
        let without = fitted(&specs, &doc! {}, IndexFixes::default(), "6.0.5");
        assert_eq!(without.indexes.len(), 6);
    }

    #[test]
    fn two_indexes_of_one_name_are_both_built() {
        let specs = [
            doc! { "key": { "a": 1 }, "name": "i" },
            doc! { "key": { "b": 1 }, "name": "i" },
            doc! { "key": { "c": 1 }, "name": "i_2" },
            doc! { "key": { "d": 1 }, "name": "i" },
        ];
        let planned = planned(&specs, &doc! {});
        let names: Vec<_> = planned.iter().map(|index| index.name.as_str()).collect();
        assert_eq!(names, ["i", "i_2", "i_2_2", "i_3"]);
        assert!(planned.iter().all(|index| index.spec.get_str("name").ok() == Some(&index.name)));
        assert!(planned[0].repairs.is_empty() && planned[1].repairs[0].contains("another index"));
    }

    #[test]
    fn what_a_server_cannot_have_is_told_before() {
        let haystack = doc! { "key": { "a": "geoHaystack", "b": 1 }, "name": "h", "bucketSize": 1 };
        let long = doc! { "key": { "a": 1 }, "name": "n".repeat(120) };
        let specs = [haystack, long, doc! { "key": { "b": 1 }, "name": "b" }];
        for (version, impossible) in [
            ("4.0.28", vec![1]),
            ("4.2.6", vec![]),
            ("4.4.2", vec![]),
            ("4.9.0", vec![0]),
            ("6.0.5", vec![0]),
        ] {
            let fit = fitted(&specs, &doc! {}, IndexFixes::default(), version);
            let expected: Vec<_> = impossible
                .iter()
                .map(|&i: &usize| specs[i].get_str("name").expect("a name"))
                .collect();
            let found: Vec<_> = fit.impossible.iter().map(|(name, _)| name.as_str()).collect();
            assert_eq!(found, expected, "{version}");
            assert_eq!(fit.indexes.len(), 3 - expected.len(), "{version}");
        }
    }

    #[test]
    fn the_index_on_the_id_is_known_in_its_old_forms() {
        for key in
            [doc! { "_id": true }, doc! { "_id": "" }, doc! { "_id": 0 }, doc! { "_id": 1_i64 }]
        {
            assert!(
                planned(&[doc! { "key": key.clone(), "name": "x" }], &doc! {}).is_empty(),
                "{key}"
            );
        }
        for key in [doc! { "_id": "hashed" }, doc! { "_id": "2dsphere" }, doc! { "_id": 1, "a": 1 }]
        {
            assert_eq!(
                planned(&[doc! { "key": key.clone(), "name": "x" }], &doc! {}).len(),
                1,
                "{key}"
            );
        }
    }
}
