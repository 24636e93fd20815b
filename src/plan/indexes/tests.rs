//! What index definitions become.

use super::*;

fn fitted(specs: &[Document], options: &Document, fixes: IndexFixes, version: &str) -> Fit {
    let specs: Vec<_> = specs.iter().cloned().map(IndexSpec::from).collect();
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
    let plan =
        one(doc! { "v": 1, "key": { "a": 1 }, "name": "a", "collation": { "locale": "simple" } });
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

/// What is asked for, a definition in a dump, and what is sent for it.
type FixUp = (IndexFixes, Document, Document);

/// The definition with this key and nothing else to it.
fn keyed(key: Document) -> Document {
    doc! { "v": 2, "key": key, "name": "i" }
}

fn sent(key: Document) -> Document {
    doc! { "key": key, "name": "i" }
}

#[track_caller]
fn check(options: &Document, fix_ups: impl IntoIterator<Item = FixUp>) {
    for (fixes, dumped, expected) in fix_ups {
        let fit = fitted(std::slice::from_ref(&dumped), options, fixes, "6.0.5");
        assert_eq!(fit.indexes[0].spec.to_string(), expected.to_string(), "{dumped}");
    }
}

#[test]
fn options_that_say_too_little_or_too_much() {
    let plain = IndexFixes::default();
    let first = doc! { "v": 1, "key": { "a": 1 }, "name": "i", "ns": "x.y" };
    check(
        &doc! {},
        [
            (plain, first.clone(), sent(doc! { "a": 1 })),
            (VERSIONED, first, doc! { "v": 1, "key": { "a": 1 }, "name": "i" }),
            (
                plain,
                keyed(doc! { "a": "2dsphere" }),
                doc! { "key": { "a": "2dsphere" }, "name": "i", "2dsphereIndexVersion": 1 },
            ),
            (
                plain,
                doc! { "key": { "a": "2dsphere" }, "name": "i", "2dsphereIndexVersion": 3 },
                doc! { "key": { "a": "2dsphere" }, "name": "i", "2dsphereIndexVersion": 3 },
            ),
            (
                plain,
                doc! { "key": { "a": "text" }, "name": "i", "textIndexVersion": 3 },
                doc! { "key": { "a": "text" }, "name": "i", "textIndexVersion": 3 },
            ),
            (
                plain,
                doc! { "key": { "a": 1 }, "name": "i", "partialFilterExpression": {} },
                doc! { "key": { "a": 1 }, "name": "i", "partialFilterExpression": {} },
            ),
            (
                plain,
                doc! { "key": { "a": 1 }, "name": "i", "background": true, "dropDups": true },
                doc! { "key": { "a": 1 }, "name": "i", "background": true },
            ),
        ],
    );
}

#[test]
fn directions_of_old_servers() {
    let plain = IndexFixes::default();
    check(
        &doc! {},
        [
            (
                plain,
                keyed(doc! { "a": 1e-13, "b": -2.5, "c": 7_i64, "d": 0.0, "e": f64::NAN }),
                sent(doc! { "a": 1e-13, "b": -2.5, "c": 7_i64, "d": 1, "e": 1 }),
            ),
            (
                CONVERTED,
                keyed(doc! { "a": 1e-13, "b": -1e-13, "c": 7_i64, "d": -2.5 }),
                sent(doc! { "a": 1, "b": -1, "c": 7_i64, "d": -2.5 }),
            ),
            (
                CONVERTED,
                keyed(doc! { "a": 0, "b": "", "c": true, "d": "hashed", "e": [] }),
                sent(doc! { "a": 1, "b": 1, "c": 1, "d": "hashed", "e": 1 }),
            ),
            (plain, keyed(doc! { "a.b": "hashed" }), sent(doc! { "a.b": "hashed" })),
            (
                UNHASHED,
                keyed(doc! { "a.b": "hashed", "c": "hashed" }),
                sent(doc! { "a.b": 1, "c": "hashed" }),
            ),
            (
                UNHASHED,
                keyed(doc! { "a.b": "hashed", "d.e": "text" }),
                sent(doc! { "a.b": 1, "d.e": "text" }),
            ),
        ],
    );
}

#[test]
fn collations_of_indexes_in_a_collection_with_one() {
    let simple = doc! { "locale": "simple" };
    let simple_index = doc! { "key": { "a": 1 }, "name": "i", "collation": simple.clone() };
    let old = doc! { "v": 1, "key": { "a": 1 }, "name": "i", "collation": simple };
    check(
        &doc! { "collation": { "locale": "fr" } },
        [
            (IndexFixes::default(), keyed(doc! { "a": 1 }), simple_index.clone()),
            (IndexFixes::default(), old.clone(), simple_index),
            // The peer's way: the server is left to say that this cannot be.
            (VERSIONED, old, doc! { "v": 1, "key": { "a": 1 }, "name": "i" }),
        ],
    );
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
    assert_eq!(names(&without), ["first", "third", "plain", "partial", "other order"]);
    assert_eq!(without.merged, ["index `second` is left out: it is the same as `first`"]);
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
        let expected: Vec<_> =
            impossible.iter().map(|&i: &usize| specs[i].get_str("name").expect("a name")).collect();
        let found: Vec<_> = fit.impossible.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(found, expected, "{version}");
        assert_eq!(fit.indexes.len(), 3 - expected.len(), "{version}");
    }
}

#[test]
fn the_index_on_the_id_is_known_in_its_old_forms() {
    for key in [doc! { "_id": true }, doc! { "_id": "" }, doc! { "_id": 0 }, doc! { "_id": 1_i64 }]
    {
        assert!(planned(&[doc! { "key": key.clone(), "name": "x" }], &doc! {}).is_empty(), "{key}");
    }
    for key in [doc! { "_id": "hashed" }, doc! { "_id": "2dsphere" }, doc! { "_id": 1, "a": 1 }] {
        assert_eq!(
            planned(&[doc! { "key": key.clone(), "name": "x" }], &doc! {}).len(),
            1,
            "{key}"
        );
    }
}

/// What servers of these versions said of each definition when they were asked.
#[test]
fn what_a_server_refuses_is_known_before() {
    let fits = "4.2.6 4.4.2 6.0.5";
    for (spec, accepted_by) in [
        (doc! { "key": {} }, ""),
        (doc! { "key": { "": 1 } }, ""),
        (doc! { "key": { "a..b": 1 } }, ""),
        (doc! { "key": { ".a": 1 } }, ""),
        (doc! { "key": { "a.": 1 } }, ""),
        (doc! { "key": { "$a": 1 } }, ""),
        (doc! { "key": { "a.$b": 1 } }, ""),
        (doc! { "key": { "$id": 1 } }, ""),
        (doc! { "key": { "a.$id": 1 } }, fits),
        (doc! { "key": { "a": "nonsense" } }, ""),
        (doc! { "key": { "a": "btree" } }, ""),
        (doc! { "key": { "_id": -1 } }, ""),
        (doc! { "key": { "_id": "hashed" } }, fits),
        (doc! { "key": { "_id": 1 }, "partialFilterExpression": { "a": 1 } }, ""),
        (doc! { "key": { "a": "hashed" }, "unique": true }, ""),
        (doc! { "key": { "a": "hashed", "b": "hashed" } }, ""),
        (doc! { "key": { "a": "hashed", "b": 1 } }, "4.4.2 6.0.5"),
        (doc! { "key": { "a": "text" }, "unique": true }, fits),
        (doc! { "key": { "a": "text", "b": 1, "c": "text" } }, ""),
        (doc! { "key": { "b": 1, "a": "text", "c": "text" } }, fits),
        (doc! { "key": { "a": "text" }, "collation": { "locale": "fr" } }, ""),
        (doc! { "key": { "$**": 1 } }, fits),
        (doc! { "key": { "a.$**": 1 } }, fits),
        (doc! { "key": { "$**": "text" } }, fits),
        (doc! { "key": { "$**.a": 1 } }, ""),
        (doc! { "key": { "$**": -1 } }, ""),
        (doc! { "key": { "$**": 1 }, "unique": true }, ""),
        (doc! { "key": { "$**": 1 }, "sparse": true }, ""),
        (doc! { "key": { "$**": 1 }, "unique": false }, fits),
        (doc! { "key": { "$**": 1 }, "expireAfterSeconds": 5 }, ""),
        (doc! { "key": { "$**": 1, "b": 1 } }, ""),
        (doc! { "key": { "a": 1 }, "wildcardProjection": { "b": 1 } }, ""),
        (doc! { "key": { "a": 1, "b": 1 }, "expireAfterSeconds": 5 }, ""),
        (doc! { "key": { "a": 1 }, "expireAfterSeconds": -1 }, ""),
        (doc! { "key": { "a": 1 }, "expireAfterSeconds": 2_147_483_648_i64 }, ""),
        (doc! { "key": { "a": 1 }, "expireAfterSeconds": 1.5 }, fits),
        (doc! { "key": { "a": 1 }, "expireAfterSeconds": "5" }, ""),
        (doc! { "key": { "a": 1 }, "expireAfterSeconds": true }, ""),
        (doc! { "key": { "a": "hashed" }, "expireAfterSeconds": 5 }, fits),
        (doc! { "key": { "_id": -1 }, "expireAfterSeconds": 5 }, ""),
        (doc! { "key": { "a": 1 }, "sparse": true, "partialFilterExpression": {} }, ""),
        (doc! { "key": { "a": 1 }, "partialFilterExpression": "x" }, ""),
        (doc! { "key": { "a": "2d" }, "bits": 40 }, ""),
        (doc! { "key": { "b": 1, "a": "2d" } }, ""),
        (doc! { "key": { "a": "2d", "b": "2dsphere" } }, ""),
        (doc! { "key": { "a": "2d" }, "unique": true }, fits),
        (doc! { "key": { "a": "2d" }, "collation": { "locale": "fr" } }, ""),
        (doc! { "key": { "a": "2dsphere" }, "collation": { "locale": "fr" } }, fits),
        (doc! { "key": { "a": "geoHaystack", "b": 1 }, "bucketSize": 1 }, "4.2.6 4.4.2"),
    ] {
        for version in fits.split(' ') {
            let mut spec = spec.clone();
            spec.insert("name", "named");
            let fit = fitted(&[spec.clone()], &doc! {}, IndexFixes::default(), version);
            let is_accepted = accepted_by.contains(version);
            assert_eq!(fit.indexes.len(), usize::from(is_accepted), "{version} {spec}: {fit:?}");
            assert_eq!(fit.impossible.len(), usize::from(!is_accepted), "{version} {spec}");
        }
    }
}

#[test]
fn a_name_that_no_index_can_have_is_replaced() {
    for name in ["", "*", "_id_"] {
        let plan = one(doc! { "key": { "a": 1 }, "name": name });
        assert_eq!(plan.name, "a_1");
        assert_eq!(plan.repairs, [format!("`{name}` is no name for it, and it is called `a_1`")]);
    }
}

#[test]
fn a_capped_collection_of_6_0_deletes_by_its_size_alone() {
    let spec = [doc! { "key": { "a": 1 }, "name": "a", "expireAfterSeconds": 5 }];
    let capped = doc! { "capped": true, "size": 4096 };
    for (version, expected) in [("5.0.4", 1), ("6.0.5", 0), ("7.0.2", 0), ("7.1.0", 1)] {
        let fit = fitted(&spec, &capped, IndexFixes::default(), version);
        assert_eq!(fit.indexes.len(), expected, "{version}");
    }
}
