//! Made-up surveys, for the tests of everything that shows one.

use super::*;
use crate::report::value::samples::context;

fn index(name: &str, key: &str, bytes: u64) -> SurveyedIndex {
    SurveyedIndex { name: name.into(), key: key.into(), bytes: Some(bytes) }
}

fn field(name: &str, documents: u64, types: &[(&'static str, u64)]) -> SurveyedField {
    let types = types.iter().map(|&(name, documents)| FieldType { name, documents });
    #[expect(clippy::cast_precision_loss, reason = "small numbers")]
    let share = documents as f64 / 1000.0;
    SurveyedField { name: name.into(), documents, share, types: types.collect() }
}

fn collection(name: &str, sizes: [u64; 4]) -> SurveyedNamespace {
    let [documents, data, storage, index] = sizes.map(Some);
    let mut one = SurveyedNamespace::new(Namespace::new("shop", name), "collection");
    (one.documents, one.data_bytes, one.storage_bytes, one.index_bytes) =
        (documents, data, storage, index);
    one.measured()
}

fn server() -> SurveyedServer {
    SurveyedServer {
        version: "6.0.5".into(),
        product: "MongoDB",
        storage_engine: Some("wiredTiger".into()),
        topology: Deployment::ReplicaSet,
        replica_set: Some("rs0".into()),
        members: Some(3),
        shards: None,
    }
}

fn items() -> SurveyedNamespace {
    let mut items = collection("items", [10, 2000, 4096, 4096]);
    items.indexes = Some(vec![index("_id_", r#"{"_id":1}"#, 4096)]);
    items.notes = vec!["its documents cannot be read: not authorized on shop".into()];
    items
}

/// A collection of some documents, and another one.
pub(crate) fn before() -> Survey {
    let mut orders = collection("orders", [1000, 160_000, 100_000, 200_000]);
    orders.indexes = Some(vec![index("_id_", r#"{"_id":1}"#, 200_000)]);
    let fields =
        vec![field("_id", 1000, &[("objectId", 1000)]), field("name", 1000, &[("string", 1000)])];
    orders.fields = Some(FieldInventory { documents: 1000, is_complete: true, fields });
    Survey::new(server(), vec![orders, items()], Vec::new(), Duration::from_millis(20))
}

/// The same with more documents, another index, other fields, and a view.
pub(crate) fn after() -> Survey {
    let mut orders = collection("orders", [300_000, 48_000_000, 12_000_000, 6_200_000]);
    orders.indexes = Some(vec![
        index("_id_", r#"{"_id":1}"#, 4_200_000),
        index("at_1", r#"{"at":1}"#, 2_000_000),
    ]);
    let fields = vec![
        field("_id", 1000, &[("objectId", 1000)]),
        field("customer", 1000, &[("object", 1000)]),
        field("customer.name", 340, &[("string", 300), ("null", 40)]),
    ];
    orders.fields = Some(FieldInventory { documents: 1000, is_complete: false, fields });
    orders.samples = vec![
        SampleDocument { bytes: 160, json: r#"{"_id":1}"#.into(), is_cut: false },
        SampleDocument { bytes: 70_000, json: r#"{"_id":2"#.into(), is_cut: true },
    ];
    let recent = SurveyedNamespace::new(Namespace::new("shop", "recent"), "view");
    let notes = vec!["3 collections are not surveyed: the time for it was over".into()];
    Survey::new(server(), vec![recent, orders, items()], notes, Duration::from_millis(1500))
}

/// Both.
pub(crate) fn before_and_after() -> BeforeAndAfter {
    BeforeAndAfter::new(Some(before()), Some(after()))
}

/// A survey that is a run of its own.
pub(crate) fn report() -> SurveyReport {
    SurveyReport {
        schema: SCHEMA,
        tool_version: "0.1.0".into(),
        target: context().target,
        options: vec![OptionValue { name: "samples".into(), value: "5".into() }],
        survey: after(),
    }
}
