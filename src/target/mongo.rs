//! A MongoDB server, through the official driver.
//!
//! The data path is one raw `insert` command a batch. The driver's own `insert_many` would encode
//! every document several times; a raw command is copied as it is, and everything else the driver
//! gives (discovery, authentication, TLS, pooling) stays.

mod command;
mod connect;
mod errors;
mod facts;
mod journal;
mod outcome;

use bson::{Bson, Document, RawBson, RawDocumentBuf, doc};
use futures_util::TryStreamExt;
use mongodb::Client;

use crate::batch::Batch;
use crate::namespace::Namespace;
use crate::target::{Documents, Insert, OnRefusal, Target, TargetError, WriteOutcome};

pub use connect::{Connection, Journal, WriteConcern};

/// A server or cluster.
#[derive(Clone, Debug)]
pub struct MongoTarget {
    client: Client,
    /// The write concern as the bytes of a document, ready to be put into a command.
    write_concern: RawDocumentBuf,
    /// Whether inserts are asked to keep zero timestamps (`bypassEmptyTsReplacement`).
    keeps_zero_timestamps: bool,
    /// Whether `createIndexes` is asked to ignore options it does not know.
    ignores_unknown_index_options: bool,
    /// What the server is called in messages, without any password.
    description: String,
}

impl MongoTarget {
    /// The servers' addresses, without user or password.
    pub fn description(&self) -> &str {
        &self.description
    }

    fn write_concern_document(&self) -> Result<Document, TargetError> {
        Document::try_from(self.write_concern.as_ref()).map_err(|error| errors::of(&error.into()))
    }

    async fn run(&self, database: &str, command: Document) -> Result<Document, TargetError> {
        let reply = self.client.database(database).run_command(command).await;
        let reply = reply.map_err(|error| errors::of(&error))?;
        outcome::confirmed(&reply)?;
        Ok(reply)
    }

    /// Sends a raw write command and reads what the server says of each document.
    async fn write(
        &self,
        database: &str,
        command: RawDocumentBuf,
        sent: u32,
        on_refusal: OnRefusal,
    ) -> Result<outcome::Reply, TargetError> {
        let reply = self
            .client
            .database(database)
            .run_raw_command(command)
            .await
            .map_err(|error| errors::of(&error))?;
        outcome::read(&reply, sent, on_refusal)
    }

    /// Sends a run of documents that take the same way, and adds the answer to the outcome.
    /// Says whether the server got to the end.
    async fn send(
        &self,
        insert: &Insert,
        segment: &command::Segment,
        outcome: &mut WriteOutcome,
    ) -> Result<bool, TargetError> {
        let sent = u32::try_from(segment.indexes.len()).unwrap_or(u32::MAX);
        let command = segment.command.clone();
        let reply =
            self.write(insert.namespace.database(), command, sent, insert.on_refusal).await?;
        let went_through = reply.failures.is_empty() || insert.on_refusal == OnRefusal::GoOn;
        outcome.inserted += reply.written;
        for mut failure in reply.failures {
            failure.index = segment.indexes[failure.index as usize];
            outcome.failures.push(failure);
        }
        Ok(went_through)
    }
}

impl Target for MongoTarget {
    async fn drop_collection(&self, namespace: &Namespace) -> Result<(), TargetError> {
        /// `NamespaceNotFound`, with which servers before 7.0 answer where there is nothing.
        const NOTHING_THERE: i32 = 26;
        let mut command = doc! { "drop": namespace.collection() };
        command.insert("writeConcern", self.write_concern_document()?);
        match self.run(namespace.database(), command).await {
            Err(error) if error.code == Some(NOTHING_THERE) => Ok(()),
            other => other.map(drop),
        }
    }

    async fn empty(&self, namespace: &Namespace) -> Result<(), TargetError> {
        let command = doc! {
            "delete": namespace.collection(),
            "deletes": [ { "q": {}, "limit": 0 } ],
            "writeConcern": self.write_concern_document()?,
        };
        let reply = self.run(namespace.database(), command).await?;
        outcome::deleted(&reply)
    }

    async fn create(&self, namespace: &Namespace, options: &Document) -> Result<(), TargetError> {
        let mut command = doc! { "create": namespace.collection() };
        command.extend(options.clone());
        command.insert("writeConcern", self.write_concern_document()?);
        self.run(namespace.database(), command).await.map(drop)
    }

    async fn insert(
        &self,
        insert: &Insert,
        batch: &Batch,
        documents: &Documents,
    ) -> Result<WriteOutcome, TargetError> {
        let envelope = command::Envelope {
            insert,
            write_concern: &self.write_concern,
            keeps_zero_timestamps: self.keeps_zero_timestamps,
        };
        if *documents == Documents::All && batch.detours.is_empty() {
            let command = command::whole(&envelope, batch)?;
            let database = insert.namespace.database();
            let reply = self.write(database, command, batch.documents, insert.on_refusal).await?;
            return Ok(reply.into_outcome(batch.documents, insert.on_refusal));
        }
        let mut outcome = WriteOutcome::default();
        for segment in command::segments(&envelope, batch, documents)? {
            if !self.send(insert, &segment, &mut outcome).await? {
                break;
            }
        }
        outcome.failures.sort_by_key(|failure| failure.index);
        let answered = outcome.inserted + u32::try_from(outcome.failures.len()).unwrap_or(0);
        outcome.not_tried = documents.count(batch.documents).saturating_sub(answered);
        Ok(outcome)
    }

    async fn stored(
        &self,
        namespace: &Namespace,
        ids: Vec<RawBson>,
    ) -> Result<Vec<RawDocumentBuf>, TargetError> {
        let ids: Vec<Bson> = ids.into_iter().filter_map(|id| Bson::try_from(id).ok()).collect();
        let database = self.client.database(namespace.database());
        let collection = database.collection::<RawDocumentBuf>(namespace.collection());
        let cursor = collection
            .find(doc! { "_id": { "$in": ids } })
            .await
            .map_err(|error| errors::of(&error))?;
        cursor.try_collect().await.map_err(|error| errors::of(&error))
    }

    async fn create_indexes(
        &self,
        namespace: &Namespace,
        specs: &[Document],
    ) -> Result<(), TargetError> {
        let mut command = doc! { "createIndexes": namespace.collection(), "indexes": specs };
        if self.ignores_unknown_index_options {
            command.insert("ignoreUnknownIndexOptions", true);
        }
        command.insert("writeConcern", self.write_concern_document()?);
        self.run(namespace.database(), command).await.map(drop)
    }

    async fn expire_after(&self, namespace: &Namespace, seconds: &Bson) -> Result<(), TargetError> {
        let command = doc! {
            "collMod": namespace.collection(),
            "expireAfterSeconds": seconds.clone(),
            "writeConcern": self.write_concern_document()?,
        };
        self.run(namespace.database(), command).await.map(drop)
    }
}
