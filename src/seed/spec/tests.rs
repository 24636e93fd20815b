//! Specs that are read, what is made of them, and those that are refused.

use std::collections::HashSet;

use super::*;
use crate::frame::Frame;
use bson::Bson;

const SHOP: &str = include_str!("../../../testdata/specs/shop.toml");

fn parsed(text: &str) -> Result<Spec, Error> {
    Spec::parse(text, Path::new("spec.toml"), Wanted::default())
}

fn run(text: &str) -> SpecRun {
    let spec = Arc::new(parsed(text).expect("a spec"));
    SpecRun { spec, seed: 1, first: 0, count: None, is_open: false }
}

/// A spec of one collection with these fields.
fn with(fields: &str) -> String {
    format!("[[collection]]\nname = \"c\"\n[collection.fields]\n{fields}\n")
}

fn bytes(run: &SpecRun, collection: u32, number: u64) -> Vec<u8> {
    let mut out = Vec::new();
    run.generator(collection).append(number, &mut out);
    out
}

fn made(run: &SpecRun, collection: u32, number: u64) -> Document {
    let bytes = bytes(run, collection, number);
    let frame = Frame::new(&bytes).expect("a frame");
    frame.validate().expect("sound");
    assert!(frame.starts_with_id());
    Document::from_reader(frame.bytes()).expect("decodes")
}

/// The values of a field over so many documents.
fn values(field: &str, documents: u64) -> Vec<Option<Bson>> {
    let run = run(&with(&format!("f = {field}")));
    (0..documents).map(|number| made(&run, 1, number).remove("f")).collect()
}

#[test]
fn the_example_has_its_collections_options_and_indexes() {
    let run = run(SHOP);
    let names: Vec<_> = (1..=run.count()).map(|one| run.namespace(one).to_string()).collect();
    assert_eq!(names, ["shop.customers", "shop.orders", "web.sessions"]);
    assert_eq!(run.databases(), ["shop", "web"]);
    assert_eq!(run.numbers(2), 0..20_000);
    let metadata = run.metadata(2);
    assert_eq!(metadata.options.get_document("collation").ok(), Some(&doc! { "locale": "en" }));
    assert_eq!(
        metadata.options.get_document("validator").ok(),
        Some(&doc! { "total": { "$gte": 0 } })
    );
    let indexes: Vec<_> = metadata.indexes.iter().map(IndexSpec::definition).collect();
    assert_eq!(
        indexes[1],
        doc! { "v": 2, "key": { "customer": 1, "at": -1 }, "name": "customer_1_at_-1" }
    );
    assert_eq!(indexes[2].get_i32("expireAfterSeconds").ok(), Some(315_360_000));
}

#[test]
fn documents_have_the_fields_in_their_order_and_their_types() {
    let run = run(SHOP);
    let types = |document: &Document| {
        let types = document
            .iter()
            .map(|(name, value)| format!("{name}:{:02x}", value.element_type() as u8));
        types.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(
        types(&made(&run, 3, 5)),
        "_id:07 token:02 customer:12 seen:11 agent:02 data:05 filter:0b hook:0d lowest:ff \
         highest:7f nothing:0a old:0e"
    );
    let customer = made(&run, 1, 7);
    assert_eq!(customer.get_str("email").ok(), Some("customer-000000007"));
    assert!(customer.get_document("address").is_ok_and(|address| address.len() == 2));
    let order = made(&run, 2, 4);
    assert_eq!(
        order.get_datetime("at").map(|at| at.timestamp_millis()).ok(),
        Some(1_767_254_401_000)
    );
    let items = order.get_array("items").expect("items");
    assert!((1..=6).contains(&items.len()));
}

#[test]
fn a_document_depends_on_seed_collection_and_number_alone() {
    let run_one = run(SHOP);
    let forward: Vec<_> = (0..500).map(|number| bytes(&run_one, 2, number)).collect();
    let backward: Vec<_> = (0..500).rev().map(|number| bytes(&run(SHOP), 2, number)).collect();
    assert!(forward.iter().eq(backward.iter().rev()));
    // Another collection in front, or another database for all, makes no other documents.
    let moved = SHOP.replacen(
        "[[collection]]",
        "[[collection]]\nname = \"x\"\n[collection.fields]\n[[collection]]",
        1,
    );
    assert_eq!(bytes(&run(&moved), 3, 9), forward[9]);
    let seeded = SpecRun { seed: 2, ..run(SHOP) };
    assert_ne!(bytes(&seeded, 2, 9), forward[9]);
    assert_ne!(bytes(&run_one, 1, 9)[..], forward[9][..]);
}

/// Measurements made with different versions compare only while the documents stay the same.
#[test]
fn documents_stay_the_same_across_versions() {
    use md5::{Digest, Md5};
    let run = run(SHOP);
    let mut sums = Vec::new();
    for collection in 1..=3 {
        let mut all = Vec::new();
        (0..1000).for_each(|number| run.generator(collection).append(number, &mut all));
        let digest: [u8; 16] = Md5::digest(all).into();
        sums.push(format!("{:032x}", u128::from_be_bytes(digest)));
    }
    let expected = [
        "3e787a83ffae3a4fe6513a18a965953d",
        "cc11f99cac8da6671b87277694e7d947",
        "b55dff299ee1e67aadd0df089aa49e25",
    ];
    assert_eq!(sums, expected);
}

#[test]
fn references_are_ids_of_documents_that_are_made() {
    let run = run(SHOP);
    let ids: HashSet<_> =
        (0..5000).map(|number| made(&run, 1, number).get_i64("_id").ok()).collect();
    assert_eq!(ids.len(), 5000, "they are unique");
    let mut counts = std::collections::HashMap::new();
    for number in 0..3000 {
        let customer = made(&run, 2, number).get_i64("customer").expect("an id");
        assert!(ids.contains(&Some(customer)), "{customer}");
        *counts.entry(customer).or_insert(0) += 1;
    }
    let first = made(&run, 1, 0).get_i64("_id").expect("an id");
    assert_eq!(counts.iter().max_by_key(|(_, count)| **count).map(|(id, _)| *id), Some(first));
    let scaled = Spec::parse(
        SHOP,
        Path::new("s"),
        Wanted { amount: Amount::Times(0.001), ..Wanted::default() },
    )
    .expect("a spec");
    let scaled = SpecRun { spec: Arc::new(scaled), ..run.clone() };
    let few: HashSet<_> =
        (0..5).map(|number| made(&scaled, 1, number).get_i64("_id").ok()).collect();
    assert!((0..20).all(|number| few.contains(&made(&scaled, 2, number).get_i64("customer").ok())));
}

#[test]
fn parts_and_amounts_are_of_each_collection() {
    let part = SpecRun { first: 4000, count: Some(2000), ..run(SHOP) };
    assert_eq!(part.numbers(1), 4000..5000);
    assert_eq!(part.numbers(2), 4000..6000);
    assert_eq!(part.numbers(3), 3000..3000);
    let each = Spec::parse(
        SHOP,
        Path::new("s"),
        Wanted { database: Some("till"), amount: Amount::Each(7), ..Wanted::default() },
    )
    .expect("a spec");
    assert_eq!(each.databases(), ["till", "web"]);
    let each = SpecRun { spec: Arc::new(each), ..part };
    assert_eq!(SpecRun { first: 0, count: None, ..each.clone() }.numbers(2), 0..7);
    assert_eq!(SpecRun { first: 3, is_open: true, count: None, ..each }.numbers(2), 3..u64::MAX);
    let spec = parsed(SHOP).expect("a spec");
    let factor = spec.times_for(1_000_000, 1);
    assert!((0.01..1.0).contains(&factor), "{factor}");
}

#[test]
fn the_database_is_that_of_the_command_line_the_file_or_the_server() {
    let databases = |text: &str, database, otherwise| {
        let wanted = Wanted { database, otherwise, ..Wanted::default() };
        let spec = Spec::parse(text, Path::new("s"), wanted).expect("a spec");
        spec.databases().join(" ")
    };
    let silent = with("");
    let said = format!("database = \"said\"\n{silent}");
    assert_eq!(databases(&silent, None, None), "seed");
    assert_eq!(databases(&silent, None, Some("server")), "server");
    assert_eq!(databases(&said, None, Some("server")), "said");
    assert_eq!(databases(&said, Some("line"), Some("server")), "line");
}

#[test]
fn probabilities_and_weights_are_met() {
    let found = values("{ type = \"int\", optional = 0.3, null = 0.25 }", 8000);
    let missing = found.iter().filter(|value| value.is_none()).count();
    let null = found.iter().filter(|value| **value == Some(Bson::Null)).count();
    assert!((2200..2600).contains(&missing), "{missing}");
    assert!((1250..1550).contains(&null), "{null}");
    let found = values("{ choose = [1, \"x\", 2.5], weights = [1, 3, 0] }", 4000);
    let ones = found.iter().filter(|value| **value == Some(Bson::Int32(1))).count();
    assert!((850..1150).contains(&ones), "{ones}");
    assert!(!found.contains(&Some(Bson::Double(2.5))));
    let found = values("{ one_of = [{ type = \"bool\" }, { type = \"uuid\" }] }", 1000);
    let bools = found.iter().filter(|value| matches!(value, Some(Bson::Boolean(_)))).count();
    assert!((400..600).contains(&bools), "{bools}");
}

#[test]
fn values_are_of_their_type_and_within_their_bounds() {
    let all = |field: &str, is_right: &dyn Fn(&Bson) -> bool| {
        for value in values(field, 500) {
            let value = value.expect("it is there");
            assert!(is_right(&value), "{field}: {value}");
        }
    };
    all("{ type = \"int\", min = -2, max = 2 }", &|v| v.as_i32().is_some_and(|v| v.abs() <= 2));
    all("{ type = \"long\", value = 5 }", &|v| *v == Bson::Int64(5));
    all("{ type = \"double\", min = 5, max = 6 }", &|v| {
        v.as_f64().is_some_and(|v| (5.0..6.0).contains(&v))
    });
    all(
        "{ type = \"decimal\", min = 0, max = 1, decimals = 1 }",
        &|v| matches!(v, Bson::Decimal128(v) if v.to_string().len() == 3),
    );
    all("{ type = \"date\", min = 2020-01-01, max = 2020-01-02 }", &|v| {
        v.as_datetime().is_some_and(|v| {
            (1_577_836_800_000..=1_577_923_200_000).contains(&v.timestamp_millis())
        })
    });
    all(
        "{ type = \"objectId\", distribution = \"uniform\", min = 2020-01-01, max = 2020-01-02 }",
        &|v| v.as_object_id().is_some_and(|v| v.to_hex().starts_with("5e0")),
    );
    all("{ type = \"string\", characters = \"ab\", length = { min = 2, max = 3 } }", &|v| {
        v.as_str().is_some_and(|v| (2..=3).contains(&v.len()) && v.bytes().all(|b| b < b'c'))
    });
    all(
        "{ type = \"binary\", subtype = 2, length = 7 }",
        &|v| matches!(v, Bson::Binary(v) if v.bytes.len() == 7),
    );
    all("{ value = { \"$numberDouble\" = \"NaN\" } }", &|v| v.as_f64().is_some_and(f64::is_nan));
    all(
        "{ type = \"uuid\", value = \"00112233-4455-6677-8899-aabbccddeeff\" }",
        &|v| matches!(v, Bson::Binary(v) if v.to_uuid().is_ok()),
    );
    all("{ type = \"symbol\", content = \"word\" }", &|v| matches!(v, Bson::Symbol(_)));
    all(
        "{ value = { \"$dbPointer\" = { \"$ref\" = \"a.b\", \"$id\" = { \"$oid\" = \"0123456789abcdef01234567\" } } } }",
        &|v| matches!(v, Bson::DbPointer(_)),
    );
    all("{ value = { \"$null\" = true } }", &|v| *v == Bson::Null);
}

#[test]
fn what_is_wrong_is_said_with_its_line_and_what_is_possible() {
    let field = |field: &str| with(&format!("f = {field}"));
    for (text, expected) in [
        ("x = 1", "line 1: x: it has no effect here; possible are `collection`, `database`"),
        ("[[collection", "line 1: "),
        ("", "`collection` is missing"),
        ("[[collection]]\nname = \"a\"", "line 1: a: `fields` is missing"),
        ("[[collection]]\nname = \"a$\"\nfields = {}", "line 2: collection[0].name: this cannot"),
        (
            &with("\nf = 5"),
            "line 5: c.fields.f: a table is needed, such as { type = \"int\" }; this is of TOML's type integer",
        ),
        (
            &field("{ type = \"integer\" }"),
            "line 4: c.fields.f: `integer` is no type; types are double,",
        ),
        (&field("{}"), "`type` is missing, or one of `value`, `choose`"),
        (
            &field("{ type = \"int\", mean = 3 }"),
            "c.fields.f.mean: it has no effect here; possible are `choose`, `distribution`, `max`, `min`",
        ),
        (
            &field("{ type = \"int\", max = 3_000_000_000 }"),
            "c.fields.f.max: a whole number from -2147483648 to 2147483647 is needed",
        ),
        (&field("{ type = \"int\", min = 3, max = 2 }"), "`min` is above `max`"),
        (&field("{ type = \"int\", distribution = \"even\" }"), "`even` is no distribution"),
        (&field("{ type = \"int\", distribution = \"normal\" }"), "`mean` is missing"),
        (&field("{ type = \"int\", optional = 3 }"), "a probability from 0 to 1 is needed"),
        (&field("{ type = \"string\" }"), "`length` is missing"),
        (&field("{ type = \"string\", content = \"names\" }"), "`names` is no content; there are"),
        (&field("{ choose = [] }"), "at least one is needed"),
        (&field("{ choose = [1, 2], weights = [1] }"), "1 weights for 2"),
        (
            &field("{ choose = [1], type = \"string\" }"),
            "f.choose[0]: it cannot be a value of the type string",
        ),
        (&field("{ ref = \"d\" }"), "no collection of this spec is d; there are seed.c"),
        (
            &field("{ type = \"array\", length = 1, items = { type = \"x\" } }"),
            "c.fields.f.items: `x` is no type",
        ),
        (&with("_id = { type = \"int\", optional = 0.1 }"), "the _id cannot be optional"),
        (&with("_id = { ref = \"c\" }"), "the _id of seed.c refers to itself"),
        (&format!("{}{}", with(""), with("")), "seed.c is described twice"),
        (
            "[[collection]]\nname = \"t\"\noptions = { timeseries = {} }\nfields = {}",
            "only ordinary",
        ),
    ] {
        let error = parsed(text).expect_err(text);
        assert!(error.to_string().contains(expected), "{text}\n{error}\n{expected}");
        assert!(error.to_string().ends_with("in spec.toml"), "{error}");
        assert_eq!(error.kind(), ErrorKind::Usage);
    }
}

proptest::proptest! {
    /// What is left of a spec is refused with a line, or makes sound documents.
    #[test]
    fn specs_with_a_part_cut_out_never_panic(start in 0..SHOP.len(), cut in 1_usize..60) {
        let end = (start + cut).min(SHOP.len());
        let text = [&SHOP[..start], &SHOP[end..]].concat();
        match parsed(&text) {
            Ok(spec) => {
                let run = SpecRun { spec: Arc::new(spec), ..run(SHOP) };
                for collection in 1..=run.count() {
                    made(&run, collection, 1);
                }
            }
            Err(error) => proptest::prop_assert!(error.to_string().starts_with("line "), "{error}"),
        }
    }
}
