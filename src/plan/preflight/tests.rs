//! What is refused, left out and noted.

use bson::{Bson, Document, doc};

use super::*;
use crate::dump::inventory::{CollectionKind, DumpEntry, Inventory};
use crate::dump::metadata::{CollectionMetadata, IndexSpec};
use crate::facts::conditions::Writing;
use crate::facts::privileges::{Login, Privileges};
use crate::facts::{ExistingCollection, ServerVersion, Topology};
use crate::plan::tests::entry;
use crate::plan::{ExistingPolicy, Selection, Validation, plan};

fn facts() -> ServerFacts {
    let version = ServerVersion::new(6, 0, 5);
    ServerFacts { version, topology: Topology::Standalone, ..ServerFacts::null() }
}

fn described(name: &str, options: Document, indexes: Vec<Document>) -> DumpEntry {
    let kind = if options.contains_key("timeseries") {
        CollectionKind::TimeSeries
    } else if options.contains_key("viewOn") {
        CollectionKind::View
    } else {
        CollectionKind::Collection
    };
    let indexes = indexes.into_iter().map(IndexSpec::from).collect();
    let metadata = CollectionMetadata { options, indexes, ..CollectionMetadata::default() };
    let data = entry(name, kind, 1000);
    let data = if kind == CollectionKind::View { DumpEntry { data: None, ..data } } else { data };
    DumpEntry { metadata: Some(metadata), ..data }
}

fn plan_of(entries: Vec<DumpEntry>, selection: Selection, facts: &ServerFacts) -> RestorePlan {
    plan(&Inventory { entries, ..Inventory::default() }, selection, facts)
}

fn fresh(entries: Vec<DumpEntry>) -> RestorePlan {
    plan_of(entries, Selection::default(), &facts())
}

fn login(privileges: Vec<Document>) -> Conditions {
    let list: Vec<Bson> = privileges.into_iter().map(Bson::Document).collect();
    let privileges = Privileges::read(&list);
    let login = Login { user: "app".into(), database: "admin".into(), privileges };
    Conditions { login: Some(login), ..Conditions::default() }
}

fn on(collection: &str, actions: &[&str]) -> Document {
    doc! { "resource": { "db": "shop", "collection": collection }, "actions": actions.to_vec() }
}

/// The rights that the refusal names, or nothing where it is not refused.
fn lacking(mut plan: RestorePlan, privileges: Vec<Document>) -> String {
    match check(&mut plan, &facts(), &login(privileges)) {
        Ok(()) => String::new(),
        Err(error) => error.to_string().split(" takes: ").last().unwrap_or_default().to_owned(),
    }
}

#[test]
fn replacing_takes_the_right_to_update_and_deleting_that_to_remove() {
    let inserts = vec![on("orders", &["insert", "bypassDocumentValidation"])];
    for (writing, lacks) in [
        (Writing::Inserts, None),
        (Writing::Updates, Some("update")),
        (Writing::Removes, Some("remove")),
    ] {
        let conditions = Conditions { writing, ..login(inserts.clone()) };
        let mut plan = fresh(vec![described("orders", doc! {}, vec![])]);
        let judged = check(&mut plan, &facts(), &conditions);
        let said = judged.err().map(|error| error.to_string());
        assert_eq!(said.is_some(), lacks.is_some(), "{said:?}");
        if let (Some(said), Some(right)) = (said, lacks) {
            assert!(said.contains(&format!("{right} on `shop.orders`")), "{said}");
        }
    }
}

#[test]
fn each_right_is_asked_for_where_the_plan_takes_it() {
    let orders = || vec![described("orders", doc! {}, vec![])];
    let indexed =
        || vec![described("orders", doc! {}, vec![doc! { "key": { "a": 1 }, "name": "a" }])];
    let series = || {
        let options = doc! { "timeseries": { "timeField": "t" }, "expireAfterSeconds": 60 };
        vec![described("weather", options, vec![])]
    };
    let view = || vec![described("v", doc! { "viewOn": "orders", "pipeline": [] }, vec![])];
    let all = &["insert", "createIndex", "collMod", "createCollection"];
    for (entries, privileges, expected) in [
        (orders(), vec![], "createCollection, insert on `shop.orders`"),
        (orders(), vec![on("", &["insert"])], ""),
        (orders(), vec![on("orders", &["insert"])], ""),
        (orders(), vec![on("", &["createCollection"])], "insert on `shop.orders`"),
        (indexed(), vec![on("", &["insert"])], "createIndex on `shop.orders`"),
        (indexed(), vec![on("", &["insert", "createIndex"])], ""),
        (view(), vec![on("", &["insert"])], "createCollection on `shop.v`"),
        (view(), vec![on("", &["createCollection"])], ""),
        (series(), vec![on("", all)], "insert on `shop.system.buckets.weather`"),
        (series(), vec![on("", all), on("system.buckets.weather", all)], ""),
        (
            series(),
            vec![on("", &["insert"]), on("system.buckets.weather", all)],
            "collMod on `shop.weather`",
        ),
    ] {
        assert_eq!(lacking(fresh(entries), privileges.clone()), expected, "{privileges:?}");
    }
}

#[test]
fn what_is_dropped_or_emptied_takes_the_right_to_it() {
    let drop = || Selection { existing: ExistingPolicy::Drop, ..Selection::default() };
    for (name, expected) in
        [("orders", "dropCollection on `shop.orders`"), ("system.js", "remove on `shop.system.js`")]
    {
        let namespace = Namespace::new("shop", name);
        let there = ExistingCollection { namespace, kind: "collection".into(), uuid: None };
        let facts = ServerFacts { existing: vec![there], ..facts() };
        let plan = plan_of(vec![described(name, doc! {}, vec![])], drop(), &facts);
        assert_eq!(lacking(plan, vec![on("", &["insert"]), on(name, &["insert"])]), expected);
    }
}

#[test]
fn a_refusal_names_the_grant_that_helps() {
    let orders = described("orders", doc! {}, vec![]);
    let options = doc! { "timeseries": { "timeField": "t" } };
    let mut plan = fresh(vec![orders.clone()]);
    let hint = |plan: &mut RestorePlan| {
        let error = check(plan, &facts(), &login(vec![])).expect_err("refused");
        error.hint_text().expect("a hint").to_owned()
    };
    let read_write = "db.getSiblingDB(\"admin\").grantRolesToUser(\"app\", [{role: \"readWrite\", \
                      db: \"shop\"}])";
    assert!(hint(&mut plan).contains(read_write));
    let mut plan = fresh(vec![orders, described("weather", options, vec![])]);
    assert!(hint(&mut plan).contains("[{role: \"restore\", db: \"admin\"}]"));
}

#[test]
fn validators_that_may_not_be_bypassed_judge_with_a_note() {
    let validator = doc! { "validator": { "a": 1 } };
    let entries = vec![described("plain", doc! {}, vec![]), described("judged", validator, vec![])];
    let mut plan = fresh(entries.clone());
    let conditions = login(vec![on("", &["insert"])]);
    check(&mut plan, &facts(), &conditions).expect("no refusal");
    assert!(plan.collections.iter().all(|one| one.validation == Validation::Kept));
    assert_eq!(plan.notes.len(), 1);
    assert!(plan.notes[0].contains("{role: \"dbAdmin\", db: \"shop\"}"), "{:?}", plan.notes);
    let mut plan = fresh(entries);
    let conditions = login(vec![on("", &["insert", "bypassDocumentValidation"])]);
    check(&mut plan, &facts(), &conditions).expect("no refusal");
    assert!(plan.collections.iter().all(|one| one.validation == Validation::Bypassed));
    assert!(plan.notes.is_empty());
}

#[test]
fn databases_that_differ_in_case_alone_are_told_apart() {
    let of = |database: &str| {
        let orders = described("orders", doc! {}, vec![]);
        DumpEntry { namespace: Namespace::new(database, "orders"), ..orders }
    };
    let left = |entries: Vec<DumpEntry>, existing: &[&str]| {
        let databases = existing.iter().map(ToString::to_string).collect();
        let conditions = Conditions { databases, ..Conditions::default() };
        let mut plan = fresh(entries);
        check(&mut plan, &facts(), &conditions).expect("no refusal");
        assert!(plan.skipped.iter().all(|skipped| skipped.is_problem));
        let kept: Vec<_> =
            plan.collections.iter().map(|one| one.namespace.database().to_owned()).collect();
        (kept, plan.skipped.into_iter().map(|skipped| skipped.reason).collect::<Vec<_>>())
    };
    let (kept, reasons) = left(vec![of("Shop"), of("shop")], &["other"]);
    assert_eq!(kept, ["Shop"]);
    assert!(reasons[0].starts_with("the dump brings a database `Shop`"), "{reasons:?}");
    let (kept, reasons) = left(vec![of("Shop"), of("shop")], &["shop"]);
    assert_eq!(kept, ["shop"]);
    assert!(reasons[0].starts_with("the server has a database `shop`"), "{reasons:?}");
    let (kept, reasons) = left(vec![of("shop")], &["SHOP"]);
    assert!(kept.is_empty() && reasons[0].contains("`SHOP`"), "{reasons:?}");
    assert_eq!(left(vec![of("shop"), of("shop2")], &["shop"]).0.len(), 2);
}

#[test]
fn what_the_server_would_delete_is_told_in_one_line() {
    let ttl = |seconds: i32| {
        vec![doc! { "key": { "at": 1 }, "name": "at_1", "expireAfterSeconds": seconds }]
    };
    let series = doc! { "timeseries": { "timeField": "t" }, "expireAfterSeconds": 90_000 };
    let mut plan = fresh(vec![
        described("a", doc! {}, ttl(7200)),
        described("b", doc! {}, ttl(0)),
        described("c", doc! {}, ttl(86_400)),
        described("d", doc! {}, ttl(61)),
        described("e", series, vec![]),
        described("f", doc! {}, ttl(60)),
        described("g", doc! {}, vec![]),
    ]);
    check(&mut plan, &facts(), &Conditions::default()).expect("no refusal");
    let [note] = &plan.notes[..] else { panic!("{:?}", plan.notes) };
    for part in [
        "shop.a after 2 h (index `at_1`)",
        "shop.b at the time in the field",
        "shop.c after 1 d",
        "shop.d after 61 s",
        "shop.e after 25 h",
        " and 1 more",
    ] {
        assert!(note.contains(part), "{part}: {note}");
    }
}

#[test]
fn a_disk_that_is_likely_too_small_is_told() {
    let notes = |free_bytes: Option<u64>| {
        let mut plan = fresh(vec![entry("orders", CollectionKind::Collection, 5_000_000)]);
        let conditions = Conditions { free_bytes, ..Conditions::default() };
        check(&mut plan, &facts(), &conditions).expect("no refusal");
        plan.notes
    };
    assert!(notes(None).is_empty() && notes(Some(2_500_000)).is_empty());
    let told = notes(Some(2_400_000));
    assert!(told[0].contains("2.4 MB are free") && told[0].contains("5.0 MB"), "{told:?}");
}

#[test]
fn a_server_that_cannot_write_or_has_no_journal_is_told() {
    let judge = |conditions: Conditions| {
        let mut plan = fresh(vec![entry("orders", CollectionKind::Collection, 1)]);
        check(&mut plan, &facts(), &conditions).map(|()| plan.notes)
    };
    let read_only = Conditions { is_read_only: true, ..Conditions::default() };
    assert!(judge(read_only).expect_err("refused").to_string().contains("read-only"));
    let journal = |journal| judge(Conditions { journal, ..Conditions::default() });
    assert!(journal(JournalUse::Fits).expect("fine").is_empty());
    let told = journal(JournalUse::Checkpoints).expect("a note");
    assert!(told[0].contains("--nojournal") && told[0].contains("--journal off"), "{told:?}");
    let refused = journal(JournalUse::Refused).expect_err("refused");
    assert!(refused.hint_text().expect("a hint").contains("--journal off"));
}

#[test]
fn indexes_of_the_target_are_looked_at_where_more_are_added() {
    let namespace = Namespace::new("shop", "orders");
    let there =
        ExistingCollection { namespace: namespace.clone(), kind: "collection".into(), uuid: None };
    let facts = ServerFacts { existing: vec![there], ..facts() };
    let specs =
        vec![doc! { "key": { "a": 1 }, "name": "x" }, doc! { "key": { "b": 1 }, "name": "b" }];
    let entries = vec![described("orders", doc! {}, specs)];
    let mut plan = plan_of(entries, Selection::default(), &facts);
    assert_eq!(indexed(&plan), std::slice::from_ref(&namespace));
    let existing =
        vec![doc! { "key": { "_id": 1 }, "name": "_id_" }, doc! { "key": { "z": 1 }, "name": "x" }];
    let conditions = Conditions { indexes: vec![(namespace, existing)], ..Conditions::default() };
    check(&mut plan, &facts, &conditions).expect("no refusal");
    assert_eq!(plan.collections[0].indexes.len(), 2, "it is tried all the same");
    let note = "index `x` will fail beside those of the target: the collection has another index \
                of this name";
    assert_eq!(plan.collections[0].notes, [note]);
    assert_eq!(fresh(vec![described("orders", doc! {}, vec![])]).collections.len(), 1);
}
