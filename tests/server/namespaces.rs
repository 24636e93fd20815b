//! Which collections are restored, and under which names.

use crate::golden::{expected, found, only};
use crate::support::dump::{Dump, documents, genuine};
use crate::support::raw::{document, int};
use crate::support::{Held, Restore, Restored, Server, differences, is_before, stored};
use mongodb::bson::{Document, doc};
use serde_json::{Map, Value, json};
use std::fs;

/// A document with this `_id`.
fn numbered(id: i32) -> Vec<u8> {
    document(&[int("_id", id)])
}

/// Two databases with a collection each of the same name.
fn two_databases() -> Dump {
    Dump::new().with("a", "things", &[numbered(1)]).with("b", "things", &[numbered(2), numbered(3)])
}

/// A state with each name changed.
fn renamed(state: Value, rename: impl Fn(&str) -> String) -> Value {
    let Value::Object(state) = state else { panic!("a state is an object") };
    let renamed = state.into_iter().map(|(name, there)| (rename(&name), there));
    Value::Object(renamed.collect::<Map<_, _>>())
}

/// The state of `kitchen`, without the sum and count of what the peer leaves out of it.
fn kitchen() -> Value {
    only(expected("full_6.0"), "kitchen")
}

/// The state of its time-series collection.
fn weather() -> Value {
    let Value::Object(mut state) = kitchen() else { panic!("a state is an object") };
    state.retain(|name, _| name.ends_with("weather"));
    Value::Object(state)
}

fn notes(restored: &Restored) -> Vec<&str> {
    let notes = restored.report["notes"].as_array().expect("there is a report");
    notes.iter().map(|note| note["text"].as_str().unwrap()).collect()
}

fn view_of(server: &Server, database: &str, view: &str) -> Document {
    let command = doc! { "listCollections": 1, "filter": { "name": view } };
    let reply = server.run(database, command);
    let listed = reply.get_document("cursor").unwrap().get_array("firstBatch").unwrap();
    listed[0].as_document().unwrap().get_document("options").unwrap().clone()
}

#[test]
fn what_is_included_and_not_excluded_is_restored() {
    let server = Server::lease();
    let arguments = ["--nsInclude", "shop.*", "--ns-include=odd.*s*", "--nsExclude", "*.docs.*"];
    let restored = Restore::new(server.uri(), &genuine("full_6.0")).args(&arguments).run().ended(0);
    let Value::Object(mut wanted) = expected("full_6.0") else { panic!("a state is an object") };
    wanted.retain(|name, _| {
        let is_odd = name.strip_prefix("odd.").is_some_and(|name| name.contains('s'));
        (name.starts_with("shop.") || is_odd) && !name.contains(".docs.")
    });
    assert_eq!(differences(&Value::Object(wanted), &found(&server)), [""; 0]);
    let skipped = restored.report["skipped"].as_array().unwrap();
    let told = |reason: &str| skipped.iter().any(|one| one["reason"] == reason);
    assert!(told("not included") && told("excluded by `*.docs.*`"), "{skipped:?}");
}

#[test]
fn a_time_series_collection_is_selected_by_its_own_name() {
    let server = Server::lease();
    let dump = genuine("full_6.0");
    let arguments = ["--nsInclude", "kitchen.weather"];
    let restored = Restore::new(server.uri(), &dump).args(&arguments).run();
    Held::of(weather()).is_reached(restored, &found(&server));
    let arguments = ["--nsInclude", "kitchen.system.buckets.weather"];
    let restored = Restore::new(server.uri(), &dump).args(&arguments).run().ended(1);
    assert!(restored.stderr.contains("did you mean `kitchen.weather`?"), "{}", restored.stderr);
}

#[test]
fn collections_are_excluded_by_name_and_by_prefix() {
    let server = Server::lease();
    let dump = two_databases().with("a", "tmp_1", &[]).with("b", "other", &[numbered(4)]);
    let arguments = ["--excludeCollection", "other", "--excludeCollectionsWithPrefix", "tmp"];
    Restore::new(server.uri(), dump.path()).args(&arguments).run().ended(0);
    let state = found(&server);
    assert_eq!(state.as_object().unwrap().keys().collect::<Vec<_>>(), ["a.things", "b.things"]);
}

/// A damaged collection that is left out is no concern of the run.
#[test]
fn what_is_left_out_may_be_damaged() {
    let server = Server::lease();
    let dump = two_databases();
    dump.write("a/broken.metadata.json", b"{");
    dump.write("a/broken.bson", &[1, 2, 3]);
    Restore::new(server.uri(), dump.path()).args(&["--nsExclude", "a.broken"]).run().ended(0);
    Restore::new(server.uri(), dump.path()).args(&["--drop"]).run().ended(1);
}

/// The peer restores nothing and exits 0.
#[test]
fn better_than_the_peer_a_selection_that_matches_nothing_is_an_error() {
    let server = Server::lease();
    let arguments = ["--nsInclude", "shop.ordesr"];
    let restored = Restore::new(server.uri(), &genuine("full_6.0")).args(&arguments).run().ended(1);
    assert!(restored.stderr.contains("none is selected"), "{}", restored.stderr);
    assert!(restored.stderr.contains("did you mean `shop.orders`?"), "{}", restored.stderr);
    assert_eq!(server.databases(), [""; 0]);
}

/// B3: at a wrong level of the dump the peer restores nothing and exits 0.
#[test]
fn better_than_the_peer_b3_a_wrong_level_is_found_or_told() {
    let server = Server::lease();
    let folder = genuine("full_6.0");
    Restore::new(server.uri(), &folder).args(&["--db", "shop"]).run().ended(0);
    assert_eq!(server.databases(), ["shop"]);
    let above = Dump::new();
    fs::create_dir(above.file("backup")).unwrap();
    above.write("backup/dump/shop/a.bson", &numbered(1));
    let restored = Restore::new(server.uri(), &above.file("backup/..")).run().ended(1);
    assert!(restored.stderr.contains("did you mean"), "{}", restored.stderr);
}

#[test]
fn a_database_is_restored_under_another_name_with_all_it_has() {
    let server = Server::lease();
    let arguments = ["--nsFrom", "kitchen.*", "--nsTo", "pantry.*", "--nsInclude", "kitchen.*"];
    let restored = Restore::new(server.uri(), &genuine("full_6.0")).args(&arguments).run();
    let wanted = renamed(kitchen(), |name| name.replacen("kitchen.", "pantry.", 1));
    let restored = Held::of(wanted).is_reached(restored, &found(&server));
    let read = server.run("pantry", doc! { "aggregate": "v_on_v", "pipeline": [], "cursor": {} });
    let rows = read.get_document("cursor").unwrap().get_array("firstBatch").unwrap();
    assert!(!rows.is_empty(), "the views work there");
    assert!(notes(&restored).contains(&"renamed from `kitchen.indexed`"));
}

/// B4b: the peer ignores the rename of a time-series collection by its own name where the data
/// file sorts before the metadata.
#[test]
fn better_than_the_peer_b4b_a_time_series_collection_is_renamed_by_its_own_name() {
    let server = Server::lease();
    let arguments = ["--ns-from", "kitchen.weather", "--ns-to", "garden.climate"];
    let dump = genuine("full_6.0");
    let restored = Restore::new(server.uri(), &dump)
        .args(&arguments)
        .args(&["--ns-include", "kitchen.weather"])
        .run();
    let wanted = renamed(weather(), |name| {
        name.replacen("kitchen.", "garden.", 1).replacen("weather", "climate", 1)
    });
    Held::of(wanted).is_reached(restored, &found(&server));
}

#[test]
fn two_databases_change_places() {
    let server = Server::lease();
    let dump = two_databases();
    let arguments = ["--nsFrom", "a.*", "--nsTo", "b.*", "--nsFrom", "b.*", "--nsTo", "a.*"];
    Restore::new(server.uri(), dump.path()).args(&arguments).run().ended(0);
    let client = server.client();
    assert_eq!(stored(&client, "b", "things"), [numbered(1)]);
    assert_eq!(stored(&client, "a", "things"), [numbered(2), numbered(3)]);
}

#[test]
fn a_conflict_of_names_touches_nothing_and_names_both() {
    let server = Server::lease();
    let dump = two_databases().with("b", "free", &[numbered(9)]);
    for arguments in [
        &["--nsFrom", "a.things", "--nsTo", "b.things"][..],
        &["--nsFrom", "*.things", "--nsTo", "*.free"],
    ] {
        let restored = Restore::new(server.uri(), dump.path())
            .args(arguments)
            .args(&["--drop"])
            .run()
            .ended(1);
        assert!(restored.stderr.contains("would all be restored to"), "{}", restored.stderr);
        let both = ["`a.things`", "`b.things`", "`b.free`"];
        let named = both.iter().filter(|name| restored.stderr.contains(**name)).count();
        assert!(named >= 2, "{}", restored.stderr);
    }
    assert_eq!(server.databases(), [""; 0]);
}

/// B12: the peer leaves `viewOn` and pipelines as they were, so that renamed views are empty.
#[test]
fn better_than_the_peer_b12_views_follow_the_collections_they_read() {
    let server = Server::lease();
    let mut join = vec![json!(
        { "$lookup": { "from": "right", "localField": "_id", "foreignField": "_id", "as": "r" } }
    )];
    // Servers before 4.4 do not have this one.
    let unions = usize::from(!is_before([4, 4]));
    if unions == 1 {
        let of_right = json!({ "coll": "right", "pipeline": [{ "$match": { "_id": 2 } }] });
        join.push(json!({ "$unionWith": of_right }));
    }
    let dump = Dump::new()
        .with("d", "left", &[numbered(1)])
        .with("d", "right", &[numbered(1), numbered(2)])
        .described("d", "v", &json!({ "options": { "viewOn": "left", "pipeline": join } }))
        .described("d", "w", &json!({ "options": { "viewOn": "v", "pipeline": [] } }));
    let arguments = ["--nsFrom", "d.$name$", "--nsTo", "e.new_$name$"];
    let restored = Restore::new(server.uri(), dump.path()).args(&arguments).run().ended(0);
    let view = view_of(&server, "e", "new_v");
    assert_eq!(view.get_str("viewOn").unwrap(), "new_left");
    assert!(!view.to_string().contains("\"right\""), "{view}");
    assert_eq!(view_of(&server, "e", "new_w").get_str("viewOn").unwrap(), "new_v");
    let read = server.run("e", doc! { "aggregate": "new_w", "pipeline": [], "cursor": {} });
    let rows = read.get_document("cursor").unwrap().get_array("firstBatch").unwrap();
    assert_eq!(rows.len(), 1 + unions);
    assert_eq!(rows[0].as_document().unwrap().get_array("r").unwrap().len(), 1);
    assert!(notes(&restored).contains(&"viewOn refers to `left` and now to `new_left`"));
    assert!(notes(&restored).contains(&"$lookup refers to `right` and now to `new_right`"));
}

#[test]
fn a_view_is_not_parted_from_its_source() {
    let server = Server::lease();
    let dump = genuine("full_6.0/kitchen");
    let arguments = ["--nsFrom", "kitchen.v_*", "--nsTo", "elsewhere.v_*"];
    let restored = Restore::new(server.uri(), &dump).args(&arguments).run().ended(1);
    let skipped = restored.report["skipped"].as_array().unwrap();
    let problem = skipped.iter().find(|one| one["what"] == "kitchen.v_small").unwrap();
    assert_eq!(problem["is_problem"], true);
    assert!(problem["reason"].as_str().unwrap().contains("a view reads no other database"));
    assert_eq!(server.databases(), ["elsewhere", "kitchen"], "v_on_v went with what it reads");
}

/// B11: the peer looks legacy definitions up under the new name and finds none.
#[test]
fn better_than_the_peer_b11_legacy_definitions_follow_a_rename() {
    let server = Server::lease();
    let spec = |definition: Document| definition.to_vec().expect("encodes");
    let dump = Dump::new().with("old", "things", &[numbered(1)]).with(
        "old",
        "system.indexes",
        &[
            spec(doc! { "v": 1, "key": { "_id": 1 }, "ns": "old.things", "name": "_id_" }),
            spec(doc! { "v": 1, "key": { "a": true, "b": -1 }, "ns": "old.things", "name": "ab" }),
        ],
    );
    for (arguments, database) in
        [(&["--db", "old"][..], "old"), (&["--nsFrom", "old.*", "--nsTo", "new.*"], "new")]
    {
        let restored = Restore::new(server.uri(), dump.path())
            .args(arguments)
            .args(&["--drop"])
            .run()
            .ended(0);
        let indexes = found(&server)[format!("{database}.things")]["indexes"].clone();
        assert_eq!(indexes[1]["name"], "ab");
        assert_eq!(
            indexes[1]["key"],
            json!({ "a": { "$numberInt": "1" }, "b": { "$numberInt": "-1" } })
        );
        let is_told = |note: &&str| note.starts_with("its indexes are those of");
        assert!(notes(&restored).iter().any(is_told), "{:?}", notes(&restored));
    }
}

/// B15: the peer ignores all of these options for a single file.
#[test]
fn better_than_the_peer_b15_a_single_file_obeys_as_well() {
    let server = Server::lease();
    let file = genuine("full_6.0/shop/orders.bson");
    let arguments = ["--nsFrom", "shop.orders", "--nsTo", "copy.bought"];
    Restore::new(server.uri(), &file).args(&arguments).run().ended(0);
    assert_eq!(found(&server), json!({ "copy.bought": expected("full_6.0")["shop.orders"] }));
    let restored =
        Restore::new(server.uri(), &file).args(&["--nsExclude", "shop.*"]).run().ended(1);
    assert!(restored.stderr.contains("is not selected"), "{}", restored.stderr);
}

/// B16: the peer takes the file that sorts first, without a word of the other.
#[test]
fn better_than_the_peer_b16_an_old_bin_file_does_not_shadow_the_data() {
    let server = Server::lease();
    let dump = two_databases();
    dump.write("a/things.bin", &numbered(77));
    let restored = Restore::new(server.uri(), dump.path()).run().ended(1);
    assert_eq!(stored(&server.client(), "a", "things"), [numbered(1)]);
    let skipped = restored.report["skipped"].as_array().unwrap();
    assert!(skipped.iter().any(|one| one["what"].as_str().unwrap().ends_with("things.bin")));
}

/// B8: the peer decodes names a second time that it has from metadata, and stops at a `%`.
#[test]
fn better_than_the_peer_b8_long_names_are_taken_as_they_are() {
    let server = Server::lease();
    let dump = Dump::new();
    let names = [format!("{}100% sure+x", "n".repeat(235)), format!("{}a+b", "m".repeat(239))];
    for name in &names {
        let stem = restorm::dump::filename::encode(name);
        dump.write(&format!("d/{stem}.bson"), &numbered(1));
        let metadata = json!({ "indexes": [], "collectionName": name });
        dump.write(&format!("d/{stem}.metadata.json"), metadata.to_string().as_bytes());
    }
    let restored = Restore::new(server.uri(), dump.path()).run();
    if is_before([4, 4]) {
        // The server takes no name of this length, and the message has the name as it should be.
        let restored = restored.ended(1);
        for name in &names {
            let told = format!("d.{name}: its name is too long");
            assert!(restored.stderr.contains(&told), "{}", restored.stderr);
        }
        return;
    }
    restored.ended(0);
    for name in &names {
        assert_eq!(stored(&server.client(), "d", name), [numbered(1)]);
    }
}

/// A `--db` beside `--nsInclude` adds to it, as in the peer.
#[test]
fn a_database_and_an_inclusion_are_both_restored() {
    let server = Server::lease();
    let arguments = ["--db", "shop", "--nsInclude", "odd.plus*", "--nsExclude", "*.docs.*"];
    Restore::new(server.uri(), &genuine("full_6.0")).args(&arguments).run().ended(0);
    let state = found(&server);
    let names: Vec<_> = state.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(names, ["odd.plus+and&amp", "shop.customers", "shop.orders"]);
}

#[test]
fn a_dry_run_shows_renames_and_what_is_left_out() {
    let server = Server::lease();
    let dump = genuine("full_6.0");
    let arguments = [
        "--dry-run",
        "--nsFrom",
        "kitchen.indexed",
        "--nsTo",
        "kitchen.found",
        "--nsExclude",
        "shop.*",
        "--nsExclude",
        "odd.*",
        "--nsExclude",
        "nothing.*",
    ];
    let planned = Restore::new(server.uri(), &dump).args(&arguments).run().ended(0);
    for text in [
        "kitchen.found (collection)",
        "note: renamed from `kitchen.indexed`",
        "note: viewOn refers to `indexed` and now to `found`",
        "excluded by `shop.*`",
        "exclude `nothing.*`: matches no collection of the dump",
    ] {
        assert!(planned.stdout.contains(text), "{text} is missing:\n{}", planned.stdout);
    }
    assert_eq!(server.databases(), [""; 0]);
}

#[test]
fn drop_means_the_new_name() {
    let server = Server::lease();
    let client = server.client();
    server.run("a", doc! { "insert": "things", "documents": [{ "_id": 70 }] });
    server.run("c", doc! { "insert": "things", "documents": [{ "_id": 71 }] });
    let arguments = ["--nsFrom", "a.*", "--nsTo", "c.*"];
    let dump = two_databases();
    Restore::new(server.uri(), dump.path()).args(&arguments).args(&["--drop"]).run().ended(0);
    assert_eq!(stored(&client, "c", "things"), [numbered(1)]);
    assert_eq!(stored(&client, "a", "things"), [numbered(70)], "the old name is left alone");
    let copied = documents(&dump.file("b/things.bson"));
    assert_eq!(stored(&client, "b", "things"), copied);
}
