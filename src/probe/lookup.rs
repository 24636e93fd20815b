//! Which documents are asked for: numbers from a range, or `_id`s that the collection has.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use bson::oid::ObjectId;
use bson::raw::{CStr, RawBsonRef, cstr};
use bson::{RawBson, RawDocument, RawDocumentBuf, rawdoc};

use crate::error::{Error, ErrorKind};
use crate::limits::{PROBE_IDS_MAX, PROBE_LOOK_WITHIN};
use crate::namespace::Namespace;
use crate::probe::mix::Operation;
use crate::probe::wire::{Failure, Link, whole};
use crate::seed::random::SplitMix64;

/// The field that inserted documents have and updates change; whoever wants to be rid of them
/// finds them by it.
pub(super) const FIELD: &CStr = cstr!("probed");

/// The `_id`s of a collection.
#[derive(Debug)]
pub(super) struct Lookup {
    namespace: Namespace,
    ids: Ids,
    /// The number of the next document that is inserted beyond a range.
    next: AtomicI64,
    write_concern: Option<RawDocumentBuf>,
}

/// What is known of the `_id`s.
#[derive(Debug)]
pub(super) enum Ids {
    /// All whole numbers from the first to the last.
    Range {
        /// The first.
        first: i64,
        /// The last.
        last: i64,
    },
    /// These.
    Known(Vec<RawBson>),
}

/// What a request asked for, and how its answer is judged.
pub(super) struct Request {
    pub(super) command: RawDocumentBuf,
    operation: Operation,
    id: RawBson,
}

impl Lookup {
    /// Finds out what `_id`s a collection has; nothing where it holds no documents.
    pub(super) async fn find(
        link: &mut Link,
        namespace: &Namespace,
        write_concern: Option<RawDocumentBuf>,
    ) -> Result<Option<Self>, Failure> {
        let Some(first) = extreme(link, namespace, 1).await? else { return Ok(None) };
        let last = extreme(link, namespace, -1).await?.unwrap_or_else(|| first.clone());
        let count = count(link, namespace).await?;
        let ids = match (number(first.as_raw_bson_ref()), number(last.as_raw_bson_ref())) {
            // Numbers without a gap: any of them is there.
            (Some(first), Some(last)) if last.checked_sub(first) == count.checked_sub(1) => {
                Ids::Range { first, last }
            }
            _ => Ids::Known(sample(link, namespace, count).await?),
        };
        Ok(Some(Self::new(namespace.clone(), ids, write_concern)))
    }

    fn new(namespace: Namespace, ids: Ids, write_concern: Option<RawDocumentBuf>) -> Self {
        let beyond = match &ids {
            Ids::Range { last, .. } => last.saturating_add(1),
            Ids::Known(_) => 0,
        };
        Self { namespace, ids, next: AtomicI64::new(beyond), write_concern }
    }

    /// The `_id`s it draws from.
    pub(super) fn ids(&self) -> &Ids {
        &self.ids
    }

    /// A request for a random document, or for a new one.
    pub(super) fn request(&self, operation: Operation, random: &mut SplitMix64) -> Request {
        let collection = self.namespace.collection();
        let database = self.namespace.database();
        let id = match operation {
            Operation::Insert => self.new_id(),
            Operation::Read | Operation::Update => self.any(random),
        };
        let mut command = match operation {
            Operation::Read => rawdoc! {
                "find": collection,
                "filter": { "_id": id.clone() },
                "limit": 1,
                "singleBatch": true,
                // A member that is asked directly may be a secondary.
                "$readPreference": { "mode": "primaryPreferred" },
            },
            Operation::Insert => rawdoc! {
                "insert": collection,
                "documents": [{ "_id": id.clone(), FIELD: 0 }],
            },
            Operation::Update => rawdoc! {
                "update": collection,
                "updates": [{ "q": { "_id": id.clone() }, "u": { "$inc": { FIELD: 1 } } }],
            },
        };
        if let (Some(concern), false) = (&self.write_concern, operation == Operation::Read) {
            command.append(cstr!("writeConcern"), concern.clone());
        }
        command.append(cstr!("$db"), database);
        Request { command, operation, id }
    }

    fn any(&self, random: &mut SplitMix64) -> RawBson {
        match &self.ids {
            Ids::Range { first, last } => {
                let span = u64::try_from(last - first).unwrap_or(0).saturating_add(1);
                typed(first.saturating_add_unsigned(below(random, span)))
            }
            Ids::Known(ids) => {
                let place = below(random, ids.len() as u64);
                let known = usize::try_from(place).ok().and_then(|place| ids.get(place));
                known.cloned().unwrap_or(RawBson::Null)
            }
        }
    }

    fn new_id(&self) -> RawBson {
        match self.ids {
            Ids::Range { .. } => typed(self.next.fetch_add(1, Ordering::Relaxed)),
            Ids::Known(_) => RawBson::ObjectId(ObjectId::new()),
        }
    }
}

impl Request {
    /// Whether the answer is about the document that was asked for.
    pub(super) fn is_met_by(&self, answer: &RawDocument) -> bool {
        match self.operation {
            Operation::Read => {
                let cursor = answer.get_document("cursor").ok();
                let batch = cursor.and_then(|cursor| cursor.get_array("firstBatch").ok());
                let document = batch.and_then(|batch| batch.get_document(0).ok());
                let found = document.and_then(|document| document.get("_id").ok().flatten());
                found.is_some_and(|found| is_same(found, self.id.as_raw_bson_ref()))
            }
            Operation::Insert | Operation::Update => whole(answer, "n") == Some(1),
        }
    }
}

/// Whether two `_id`s are the same to the server, to which numbers are the same in any type.
fn is_same(one: RawBsonRef<'_>, other: RawBsonRef<'_>) -> bool {
    match (number(one), number(other)) {
        (Some(one), Some(other)) => one == other,
        _ => one == other,
    }
}

/// A whole number of an integer type.
fn number(id: RawBsonRef<'_>) -> Option<i64> {
    id.as_i64().or_else(|| id.as_i32().map(i64::from))
}

/// A number in the smallest type, as `seed` makes it.
fn typed(number: i64) -> RawBson {
    i32::try_from(number).map_or(RawBson::Int64(number), RawBson::Int32)
}

/// A number below the bound; the bias of at most bound / 2^64 does not matter here.
fn below(random: &mut SplitMix64, bound: u64) -> u64 {
    let product = u128::from(random.draw()) * u128::from(bound);
    u64::try_from(product >> 64).unwrap_or(0)
}

async fn extreme(
    link: &mut Link,
    namespace: &Namespace,
    direction: i32,
) -> Result<Option<RawBson>, Failure> {
    let command = rawdoc! {
        "find": namespace.collection(),
        "sort": { "_id": direction },
        "projection": { "_id": 1 },
        "limit": 1,
        "singleBatch": true,
        "$readPreference": { "mode": "primaryPreferred" },
        "$db": namespace.database(),
    };
    let ids = ids_of(link.ask(&command, PROBE_LOOK_WITHIN).await?, "firstBatch");
    Ok(ids.into_iter().next())
}

pub(super) async fn count(link: &mut Link, namespace: &Namespace) -> Result<i64, Failure> {
    let command = rawdoc! {
        "count": namespace.collection(),
        "$readPreference": { "mode": "primaryPreferred" },
        "$db": namespace.database(),
    };
    let answer = link.ask(&command, PROBE_LOOK_WITHIN).await?;
    Ok(whole(answer, "n").unwrap_or(0))
}

/// All `_id`s of a small collection, or random ones of a large one.
async fn sample(
    link: &mut Link,
    namespace: &Namespace,
    count: i64,
) -> Result<Vec<RawBson>, Failure> {
    let within: Duration = PROBE_LOOK_WITHIN;
    let (collection, database) = (namespace.collection(), namespace.database());
    let project = rawdoc! { "$project": { "_id": 1 } };
    let mut pipeline = bson::RawArrayBuf::new();
    if count > PROBE_IDS_MAX {
        pipeline.push(rawdoc! { "$sample": { "size": PROBE_IDS_MAX } });
    }
    pipeline.push(project);
    let command = rawdoc! {
        "aggregate": collection,
        "pipeline": pipeline,
        "cursor": { "batchSize": 10_000 },
        "allowDiskUse": true,
        "$readPreference": { "mode": "primaryPreferred" },
        "$db": database,
    };
    let mut answer = link.ask_owned(&command, within).await?;
    let mut ids = ids_of(&answer, "firstBatch");
    while let Some(cursor) = cursor_of(&answer) {
        let more = rawdoc! {
            "getMore": cursor, "collection": collection, "batchSize": 10_000, "$db": database,
        };
        answer = link.ask_owned(&more, within).await?;
        ids.extend(ids_of(&answer, "nextBatch"));
    }
    Ok(ids)
}

/// The cursor that has more, if it does.
fn cursor_of(answer: &RawDocument) -> Option<i64> {
    answer.get_document("cursor").ok().and_then(|cursor| whole(cursor, "id")).filter(|id| *id != 0)
}

fn ids_of(answer: &RawDocument, batch: &str) -> Vec<RawBson> {
    let cursor = answer.get_document("cursor").ok();
    let documents = cursor.and_then(|cursor| cursor.get_array(batch).ok());
    let documents = documents.into_iter().flatten().flatten();
    let ids = documents.filter_map(|document| document.as_document()?.get("_id").ok().flatten());
    ids.map(RawBson::from).collect()
}

/// What to do about a collection that holds nothing.
pub(super) fn nothing_there(namespace: &Namespace) -> Error {
    Error::new(ErrorKind::Plan, "the collection holds no documents")
        .of(namespace)
        .hint("fill it first with --seed-documents 100000, or name another with --collection")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(first: i64, last: i64) -> Lookup {
        Lookup::new(Namespace::new("seed", "points"), Ids::Range { first, last }, None)
    }

    #[test]
    fn all_of_a_range_is_drawn_and_nothing_else() {
        let (lookup, mut random) = (range(3, 9), SplitMix64::new(1));
        let mut seen = [0; 10];
        for _ in 0..7000 {
            let id = lookup.any(&mut random).as_i32().expect("small");
            seen[usize::try_from(id).expect("positive")] += 1;
        }
        assert_eq!(seen[..3], [0; 3]);
        assert!(seen[3..].iter().all(|count| (850..1150).contains(count)), "{seen:?}");
    }

    #[test]
    fn new_documents_lie_beyond_the_range() {
        let (lookup, mut random) = (range(0, 99), SplitMix64::new(1));
        for expected in 100..110 {
            let request = lookup.request(Operation::Insert, &mut random);
            assert_eq!(request.id, RawBson::Int32(expected));
        }
        assert_eq!(range(0, 1 << 40).new_id(), RawBson::Int64((1 << 40) + 1));
    }

    #[test]
    fn an_answer_must_be_about_the_document() {
        let (lookup, mut random) = (range(5, 5), SplitMix64::new(1));
        let request = lookup.request(Operation::Read, &mut random);
        let answer = |batch: bson::RawArrayBuf| rawdoc! { "cursor": { "firstBatch": batch } };
        let of = |document| answer(bson::RawArrayBuf::from_iter([document]));
        assert!(request.is_met_by(&of(rawdoc! { "_id": 5, "x": 1 })));
        assert!(request.is_met_by(&of(rawdoc! { "_id": 5_i64 })));
        assert!(!request.is_met_by(&of(rawdoc! { "_id": 6 })));
        assert!(!request.is_met_by(&answer(bson::RawArrayBuf::new())));
        let update = lookup.request(Operation::Update, &mut random);
        assert!(update.is_met_by(&rawdoc! { "n": 1 }) && !update.is_met_by(&rawdoc! { "n": 0 }));
    }

    #[test]
    fn known_ids_are_asked_for_as_they_are() {
        let ids = vec![RawBson::String("a".to_owned()), RawBson::Double(1.5)];
        let lookup = Lookup::new(Namespace::new("a", "b"), Ids::Known(ids.clone()), None);
        let mut random = SplitMix64::new(2);
        let drawn: Vec<_> = (0..50).map(|_| lookup.any(&mut random)).collect();
        assert!(ids.iter().all(|id| drawn.contains(id)));
        assert!(matches!(lookup.new_id(), RawBson::ObjectId(_)));
    }
}
