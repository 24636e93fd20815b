//! What is seen of documents, and the specs that come of it.

use std::path::Path;
use std::sync::Arc;

use super::*;
use crate::seed::{Collections, Spec, SpecRun, Wanted};
use bson::{Binary, Bson, DateTime, doc, spec::BinarySubtype};

/// A document of an uneven collection: fields that are missing, of several types, nested.
fn sample(number: i64) -> Document {
    let mut document = doc! {
        "_id": bson::oid::ObjectId::from_parts(1_700_000_000 + u32::try_from(number).expect("small"), [1; 5], [0; 3]),
        "status": if number % 4 == 0 { "open" } else { "closed" },
        "code": if number % 3 == 0 { Bson::Int32(200) } else { Bson::Int32(404) },
        "count": number * 3,
        "text": "lorem ipsum ".repeat(usize::try_from(number % 7 + 2).expect("small")),
        "price": f64::from(i32::try_from(number).expect("small")) / 100.0,
        "at": DateTime::from_millis(1_600_000_000_000 + number * 60_000),
        "mixed": if number % 2 == 0 { Bson::String(format!("{number:x}")) } else { Bson::Double(0.5) },
        "tags": (0..number % 4).map(|tag| Bson::Int32(i32::try_from(tag).expect("small"))).collect::<Vec<_>>(),
        "ship": { "city": format!("city{}", number % 60), "we\"ird key": number % 2 == 0, "empty": {} },
        "raw": Binary { subtype: BinarySubtype::Generic, bytes: vec![7; usize::try_from(number % 50).expect("small")] },
        "maybe": if number % 5 == 0 { Bson::Null } else { Bson::Int64(number) },
    };
    if number % 10 < 3 {
        document.insert("rare", Bson::Decimal128("1.25".parse().expect("a decimal")));
    }
    document
}

fn surroundings(documents: u64) -> Surroundings {
    Surroundings {
        namespace: Namespace::new("shop", "orders.old"),
        documents,
        options: doc! { "collation": { "locale": "en" }, "uuid": "x" },
        indexes: vec![
            doc! { "v": 2, "key": { "_id": 1 }, "name": "_id_" },
            doc! { "v": 2, "key": { "count": 1 }, "name": "count_1", "unique": true },
        ],
    }
}

fn likeness(documents: impl Iterator<Item = Document>) -> Likeness {
    let mut likeness = Likeness::default();
    documents.for_each(|document| {
        let bytes = document.to_vec().expect("encodes");
        likeness.add(RawDocument::from_bytes(&bytes).expect("a document"));
    });
    likeness
}

fn run(text: &str) -> SpecRun {
    let spec = Spec::parse(text, Path::new("like.toml"), Wanted::default());
    let spec = spec.unwrap_or_else(|error| panic!("{error}\n{text}"));
    SpecRun { spec: Arc::new(spec), seed: 1, first: 0, count: None, is_open: false }
}

fn made(run: &SpecRun, documents: u64) -> Vec<Document> {
    let generator = run.generator(1);
    let make = |number| {
        let mut out = Vec::new();
        generator.append(number, &mut out);
        Document::from_reader(&out[..]).expect("decodes")
    };
    (0..documents).map(make).collect()
}

#[test]
#[expect(clippy::cast_precision_loss, reason = "shares of few documents")]
fn what_is_made_is_like_what_was_seen() {
    let seen: Vec<_> = (0..4000).map(sample).collect();
    let text = likeness(seen.iter().cloned()).spec(&surroundings(4000), Values::Replaced);
    let run = run(&text);
    assert_eq!(run.numbers(1), 0..4000);
    let metadata = run.metadata(1);
    assert_eq!(metadata.options, doc! { "collation": { "locale": "en" } });
    assert_eq!(metadata.indexes.len(), 2);
    let made = made(&run, 4000);
    let bytes = |documents: &[Document]| {
        let bytes = documents.iter().map(|document| document.to_vec().expect("encodes").len());
        bytes.sum::<usize>() as f64
    };
    let ratio = bytes(&made) / bytes(&seen);
    assert!((0.9..1.1).contains(&ratio), "{ratio}\n{text}");
    for name in seen[0].keys().chain(["rare".to_owned()].iter()) {
        for kind in 0..=0x13_u8 {
            let share = |documents: &[Document]| {
                let is_it = |document: &&Document| {
                    document.get(name).is_some_and(|value| value.element_type() as u8 == kind)
                };
                documents.iter().filter(is_it).count() as f64 / documents.len() as f64
            };
            let (before, after) = (share(&seen), share(&made));
            assert!((before - after).abs() < 0.03, "{name} {kind}: {before} {after}\n{text}");
        }
    }
    let mut counts: Vec<_> = made.iter().map(|one| one.get_i64("count").expect("long")).collect();
    counts.sort_unstable();
    counts.dedup();
    assert_eq!(counts.len(), 4000, "a unique index could be built");
}

#[test]
fn texts_are_copied_only_where_that_is_asked_for() {
    let of = |values| likeness((0..400).map(sample)).spec(&surroundings(400), values);
    let replaced = of(Values::Replaced);
    for secret in ["open", "closed", "lorem", "city1"] {
        assert!(!replaced.contains(secret), "{secret}\n{replaced}");
    }
    assert!(replaced.contains("choose = [404, 200]"), "{replaced}");
    let copied = of(Values::Copied);
    assert!(copied.contains("choose = [\"closed\", \"open\"], weights = [0.75, 0.25]"), "{copied}");
}

#[test]
fn nothing_and_every_type_make_a_spec() {
    let empty = run(&Likeness::default().spec(&surroundings(0), Values::Copied));
    assert_eq!(empty.numbers(1), 0..0);
    let odd = doc! {
        "_id": { "a": 1 }, "regex": Bson::RegularExpression(bson::Regex {
            pattern: "x".to_owned().try_into().expect("no zero"),
            options: "i".to_owned().try_into().expect("no zero"),
        }),
        "min": Bson::MinKey, "max": Bson::MaxKey, "gone": Bson::Undefined,
        "code": Bson::JavaScriptCode("f()".into()), "symbol": Bson::Symbol("s".into()),
        "stamp": bson::Timestamp { time: 1_700_000_000, increment: 1 }, "none": Bson::Null,
        "nan": f64::NAN, "huge": 1e300, "old": DateTime::MIN, "list": [[1], ["a"]],
        "long": i64::MAX, "low": i64::MIN, "": "",
    };
    let text = likeness(std::iter::once(odd.clone())).spec(&surroundings(1), Values::Copied);
    let made = made(&run(&text), 1).remove(0);
    for (name, value) in &odd {
        let found = made.get(name).unwrap_or_else(|| panic!("{name}\n{text}"));
        assert_eq!(found.element_type(), value.element_type(), "{name}\n{text}");
    }
}
