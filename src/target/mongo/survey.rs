//! What a server tells of itself and of its collections, for whoever takes stock of it.
//!
//! Every question is one that a user with the role `read` may ask, unless it says otherwise, and
//! every one is bounded in time.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::time::Duration;

use bson::{Bson, Document, RawDocumentBuf, doc};
use futures_util::{StreamExt, TryStreamExt, stream};
use mongodb::Cursor;

use crate::limits::{
    SAMPLE_WITHIN, SURVEY_AT_ONCE, SURVEY_CHECKPOINT_WITHIN, SURVEY_QUESTION_WITHIN,
};
use crate::namespace::Namespace;
use crate::target::TargetError;
use crate::target::mongo::contents::primary;
use crate::target::mongo::{MongoTarget, errors};

/// Documents in one answer: few enough that whoever has seen enough stops soon.
const ANSWER_DOCUMENTS: u32 = 100;

/// What a server tells of itself; what it does not tell this user is absent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerTold {
    /// The name of its replica set.
    pub replica_set: Option<String>,
    /// The members of its replica set.
    pub members: Option<u64>,
    /// The shards of its cluster; takes the right to list them.
    pub shards: Option<u64>,
    /// Its storage engine; takes the right to see its status.
    pub storage_engine: Option<String>,
}

/// How large a collection is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// Whether it is distributed over shards.
    pub is_sharded: bool,
    /// Its documents; nothing for time series, of which buckets alone are counted.
    pub documents: Option<u64>,
    /// Bytes of its documents, uncompressed.
    pub data_bytes: Option<u64>,
    /// Bytes of its file.
    pub storage_bytes: Option<u64>,
    /// Bytes of its indexes' files.
    pub index_bytes: Option<u64>,
    /// Bytes of each index' file.
    pub indexes: Vec<(String, u64)>,
    /// The storage engine, where it shows.
    pub storage_engine: Option<String>,
}

/// From which end of a collection documents are read, in the order in which they are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    /// From the first on.
    Beginning,
    /// From the last backwards.
    End,
}

impl MongoTarget {
    /// What the server tells of itself.
    pub async fn told(&self) -> Result<ServerTold, TargetError> {
        let hello = self.hello().await?;
        // What is not asked for is not worked out by the server.
        let status = doc! {
            "serverStatus": 1, "repl": 0, "metrics": 0, "locks": 0, "wiredTiger": 0, "tcmalloc": 0,
            "transactions": 0, "opLatencies": 0, "flowControl": 0, "mirroredReads": 0,
        };
        let status = within(self.run("admin", status)).await.unwrap_or_default();
        let engine = status.get_document("storageEngine").and_then(|engine| engine.get_str("name"));
        let is_router = hello.get_str("msg").is_ok_and(|msg| msg == "isdbgrid");
        let shards = if is_router {
            let listed = within(self.run("admin", doc! { "listShards": 1 })).await.ok();
            listed.and_then(|listed| Some(listed.get_array("shards").ok()?.len() as u64))
        } else {
            None
        };
        let members = ["hosts", "passives", "arbiters"]
            .iter()
            .filter_map(|kind| hello.get_array(kind).ok())
            .map(|members| members.len() as u64);
        let replica_set = hello.get_str("setName").ok().map(str::to_owned);
        Ok(ServerTold {
            members: replica_set.as_ref().map(|_| members.sum()),
            replica_set,
            shards,
            storage_engine: engine.ok().map(str::to_owned),
        })
    }

    /// The names of the databases that this user may see.
    pub async fn databases(&self) -> Result<Vec<String>, TargetError> {
        let command = doc! { "listDatabases": 1, "nameOnly": true };
        let listed = within(self.run("admin", command)).await?;
        let listed = listed.get_array("databases").map(Vec::as_slice).unwrap_or_default();
        let names = listed.iter().filter_map(|one| one.as_document()?.get_str("name").ok());
        Ok(names.map(str::to_owned).collect())
    }

    /// How large a collection is.
    pub async fn sizes(&self, namespace: &Namespace) -> Result<Sizes, TargetError> {
        let command = doc! { "collStats": namespace.collection() };
        Ok(sizes(&within(self.run(namespace.database(), command)).await?))
    }

    /// Counts the documents of a time-series collection, which takes reading all of its buckets.
    pub async fn count_unpacked(&self, namespace: &Namespace) -> Result<u64, TargetError> {
        let command = doc! {
            "aggregate": namespace.collection(),
            "pipeline": [ { "$count": "documents" } ],
            "cursor": {},
            "maxTimeMS": milliseconds(SURVEY_QUESTION_WITHIN),
        };
        let counted = within(self.rows(namespace.database(), command)).await?;
        // What is empty has no row.
        Ok(counted.first().and_then(|row| number(row, "documents")).unwrap_or(0))
    }

    /// Shows at most so many documents of a collection, as they are stored, until told to break
    /// off.
    pub async fn glance(
        &self,
        namespace: &Namespace,
        from: From,
        documents: u32,
        look: &mut (dyn FnMut(RawDocumentBuf) -> ControlFlow<()> + Send),
    ) -> Result<(), TargetError> {
        let database = self.client().database(namespace.database());
        let collection = database.collection::<RawDocumentBuf>(namespace.collection());
        let found = collection
            .find(doc! {})
            .selection_criteria(primary())
            .limit(documents.into())
            .batch_size(documents.min(ANSWER_DOCUMENTS))
            .max_time(SURVEY_QUESTION_WITHIN);
        let found = match from {
            From::Beginning => found,
            From::End => found.sort(doc! { "$natural": -1 }),
        };
        within(async {
            let cursor = found.await.map_err(|error| errors::of(&error))?;
            show(cursor, look).await
        })
        .await
    }

    /// Shows so many documents of a collection, drawn by the server, until told to break off.
    pub async fn sample(
        &self,
        namespace: &Namespace,
        documents: u32,
        look: &mut (dyn FnMut(RawDocumentBuf) -> ControlFlow<()> + Send),
    ) -> Result<(), TargetError> {
        let database = self.client().database(namespace.database());
        let collection = database.collection::<RawDocumentBuf>(namespace.collection());
        let drawn = collection
            .aggregate([doc! { "$sample": { "size": documents } }])
            .selection_criteria(primary())
            .batch_size(documents.min(ANSWER_DOCUMENTS))
            .max_time(SAMPLE_WITHIN)
            .with_type::<RawDocumentBuf>();
        bounded(SAMPLE_WITHIN, async {
            let cursor = drawn.await.map_err(|error| errors::of(&error))?;
            show(cursor, look).await
        })
        .await
    }

    /// Makes the server write what is not in its files yet, so that sizes are those of what it
    /// holds; takes the right to `fsync`.
    pub async fn checkpoint(&self) -> Result<(), TargetError> {
        let written = self.run("admin", doc! { "fsync": 1 });
        bounded(SURVEY_CHECKPOINT_WITHIN, written).await.map(drop)
    }

    /// Those of these collections that hold documents, with their number where it is known.
    ///
    /// Errors: the first collection that cannot be read.
    pub async fn holding(
        &self,
        namespaces: &[Namespace],
    ) -> Result<Vec<(Namespace, Option<u64>)>, (Namespace, TargetError)> {
        let looked = namespaces.iter().map(async |namespace| {
            let held = self.held(namespace).await;
            held.map(|held| Some((namespace.clone(), held?))).map_err(|e| (namespace.clone(), e))
        });
        let found: Vec<_> = stream::iter(looked).buffered(SURVEY_AT_ONCE).try_collect().await?;
        Ok(found.into_iter().flatten().collect())
    }

    /// Whether a collection holds documents, and how many where that is known at once.
    async fn held(&self, namespace: &Namespace) -> Result<Option<Option<u64>>, TargetError> {
        let mut is_empty = true;
        self.glance(namespace, From::Beginning, 1, &mut |_| {
            is_empty = false;
            ControlFlow::Break(())
        })
        .await?;
        if is_empty {
            return Ok(None);
        }
        let sizes = self.sizes(namespace).await.ok();
        Ok(Some(sizes.and_then(|sizes| sizes.documents).filter(|documents| *documents > 0)))
    }
}

/// Waits for an answer as long as a question is worth.
async fn within<T>(answer: impl Future<Output = Result<T, TargetError>>) -> Result<T, TargetError> {
    bounded(SURVEY_QUESTION_WITHIN, answer).await
}

async fn bounded<T>(
    time: Duration,
    answer: impl Future<Output = Result<T, TargetError>>,
) -> Result<T, TargetError> {
    tokio::time::timeout(time, answer).await.unwrap_or_else(|_| Err(errors::unanswered(time)))
}

fn milliseconds(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

/// What `collStats` says; of time series it tells no documents, and of a sharded collection the
/// sums over its shards.
fn sizes(reply: &Document) -> Sizes {
    let is_time_series = reply.contains_key("timeseries");
    let sizes = reply.get_document("indexSizes").cloned().unwrap_or_default();
    let indexes: BTreeSet<_> =
        sizes.keys().filter_map(|name| Some((name.clone(), number(&sizes, name)?))).collect();
    Sizes {
        is_sharded: reply.get_bool("sharded").unwrap_or(false),
        documents: number(reply, "count").filter(|_| !is_time_series),
        data_bytes: number(reply, "size"),
        storage_bytes: number(reply, "storageSize"),
        index_bytes: number(reply, "totalIndexSize"),
        indexes: indexes.into_iter().collect(),
        storage_engine: storage_engine(reply),
    }
}

/// An engine shows by a section of its name, in the answer or in that of each shard.
fn storage_engine(reply: &Document) -> Option<String> {
    let engine = |reply: &Document| {
        ["wiredTiger", "inMemory"].into_iter().find(|engine| reply.contains_key(engine))
    };
    let of_shard =
        |shards: &Document| shards.values().filter_map(Bson::as_document).find_map(engine);
    let found = engine(reply).or_else(|| of_shard(reply.get_document("shards").ok()?));
    found.map(str::to_owned)
}

/// A number that servers send as a whole number or as a double.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "counts and sizes are positive and far below the limit"
)]
fn number(reply: &Document, field: &str) -> Option<u64> {
    match reply.get(field)? {
        Bson::Int32(number) => u64::try_from(*number).ok(),
        Bson::Int64(number) => u64::try_from(*number).ok(),
        Bson::Double(number) => Some(*number as u64),
        _ => None,
    }
}

/// Shows the documents of a cursor until told to break off.
async fn show(
    mut cursor: Cursor<RawDocumentBuf>,
    look: &mut (dyn FnMut(RawDocumentBuf) -> ControlFlow<()> + Send),
) -> Result<(), TargetError> {
    while let Some(document) = cursor.try_next().await.map_err(|error| errors::of(&error))? {
        if look(document).is_break() {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_whatever_type_they_have() {
        let reply = doc! {
            "ns": "shop.orders", "count": 3, "size": 480_i64, "storageSize": 4096.0,
            "totalIndexSize": 8192, "indexSizes": { "at_1": 4096, "_id_": 4096_i64 },
            "wiredTiger": {},
        };
        let sizes = sizes(&reply);
        assert_eq!((sizes.documents, sizes.data_bytes), (Some(3), Some(480)));
        assert_eq!((sizes.storage_bytes, sizes.index_bytes), (Some(4096), Some(8192)));
        assert_eq!(sizes.indexes, [("_id_".to_owned(), 4096), ("at_1".to_owned(), 4096)]);
        assert_eq!(sizes.storage_engine.as_deref(), Some("wiredTiger"));
        assert!(!sizes.is_sharded);
    }

    #[test]
    fn buckets_are_no_documents() {
        let reply = doc! { "count": 3, "size": 480, "timeseries": { "bucketCount": 3 } };
        assert_eq!(sizes(&reply).documents, None);
    }

    #[test]
    fn a_sharded_collection_shows_its_engine_on_its_shards() {
        let reply = doc! { "sharded": true, "shards": { "s0": { "wiredTiger": {} } } };
        let sizes = sizes(&reply);
        assert_eq!((sizes.is_sharded, sizes.documents), (true, None));
        assert_eq!(sizes.storage_engine.as_deref(), Some("wiredTiger"));
    }
}
