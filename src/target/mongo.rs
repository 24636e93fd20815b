//! A MongoDB server, through the official driver.
//!
//! The data path is one raw `insert` command a batch. The driver's own `insert_many` would encode
//! every document several times; a raw command is copied as it is, and everything else the driver
//! gives (discovery, authentication, TLS, pooling) stays.

mod command;
mod commit_quorum;
mod conditions;
mod connect;
mod contents;
mod durability;
mod errors;
mod facts;
mod index_progress;
mod journal;
mod known;
mod left_out;
mod mechanism;
pub mod merge;
mod outcome;
mod product;
mod special;
mod status;
pub mod survey;
pub mod uri;
mod uuids;
pub mod weight;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use bson::{Bson, Document, RawBson, RawDocumentBuf, Uuid, doc};
use futures_util::TryStreamExt;
use mongodb::Client;

use crate::batch::Batch;
use crate::error::Error;
use crate::facts::{ServerFacts, Topology};
use crate::namespace::Namespace;
use crate::sample::{IndexProgress, ServerSample};
use crate::target::durable::{Acknowledgement, Horizon, Mark};
use crate::target::mongo::left_out::LeftOut;
use crate::target::{
    Documents, Insert, MergeUsers, OnRefusal, Target, TargetError, Validators, WriteMode,
    WriteOutcome,
};

pub use commit_quorum::CommitQuorum;
pub use connect::{Connection, Journal, WriteConcern, key_is_encrypted};
pub(crate) use connect::{driver_options, hint_of_outage};

/// A server or cluster.
#[derive(Clone, Debug)]
pub struct MongoTarget {
    client: Client,
    /// The write concern as the bytes of a document, ready to be put into a command.
    write_concern: RawDocumentBuf,
    /// The write concern of what is done once for a collection, whatever that of its documents: a
    /// collection that is lost comes back without its options with its next document.
    certain_concern: RawDocumentBuf,
    /// How the server is deployed.
    topology: Topology,
    /// Whether the server keeps a journal.
    has_journal: bool,
    /// What an acknowledged insert is worth.
    acknowledgement: Acknowledgement,
    /// How long an insert may go unanswered.
    answer_within: Duration,
    /// Whether inserts are asked to keep zero timestamps (`bypassEmptyTsReplacement`).
    keeps_zero_timestamps: bool,
    /// Whether `createIndexes` is asked to ignore options it does not know.
    ignores_unknown_index_options: bool,
    /// Whether this user may not ask how the server stands.
    status_refused: Arc<AtomicBool>,
    /// What is not sent, because the server is known to refuse it.
    left_out: LeftOut,
    /// The members that must be ready before an index is committed, where that was asked for.
    commit_quorum: Option<CommitQuorum>,
    /// Names of options in the connection string that nobody knows.
    ignored: Vec<String>,
    /// What the server is called in messages, without any password.
    description: String,
}

impl MongoTarget {
    /// The servers' addresses, without user or password.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// Asks for this commit quorum with every index build, if the server has one.
    pub fn with_commit_quorum(
        mut self,
        quorum: Option<CommitQuorum>,
        facts: &ServerFacts,
    ) -> Result<Self, Error> {
        self.commit_quorum = quorum.map(|quorum| quorum.check(facts)).transpose()?;
        Ok(self)
    }

    fn write_concern_document(&self) -> Result<Document, TargetError> {
        Document::try_from(self.certain_concern.as_ref()).map_err(|error| errors::of(&error.into()))
    }

    /// Sends a command; what the server does not know of it is left out from then on.
    async fn run(&self, database: &str, command: Document) -> Result<Document, TargetError> {
        loop {
            let mut command = command.clone();
            self.left_out.trim(&mut command);
            let reply = self.client.database(database).run_command(command).await;
            match reply.map_err(|error| errors::of(&error)) {
                Err(error) if self.left_out.learns_from(&error) => {}
                Err(error) => return Err(error),
                Ok(reply) => {
                    outcome::confirmed(&reply)?;
                    return Ok(reply);
                }
            }
        }
    }

    /// Sends a raw write command and hands over what the server says.
    async fn write(
        &self,
        database: &str,
        command: RawDocumentBuf,
    ) -> Result<Document, TargetError> {
        let database = self.client.database(database);
        let command = async { database.run_raw_command(command).await };
        // A host that is gone without a word leaves a connection that nobody ever closes.
        let answered = tokio::time::timeout(self.answer_within, command).await;
        let reply = answered.map_err(|_| errors::unanswered(self.answer_within))?;
        reply.map_err(|error| errors::of(&error))
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
        let reply = self.write(insert.namespace.database(), command).await?;
        let read =
            if insert.mode == WriteMode::Delete { outcome::read_deletes } else { outcome::read };
        let reply = read(&reply, sent, insert.on_refusal)?;
        let went_through = reply.failures.is_empty() || insert.on_refusal == OnRefusal::GoOn;
        let (inserted, changes) = reply.told_apart(insert.mode);
        outcome.inserted += inserted;
        outcome.changes += changes;
        outcome.mark = Mark::of_both(outcome.mark, reply.mark);
        for mut failure in reply.failures {
            failure.index = segment.indexes[failure.index as usize];
            outcome.failures.push(failure);
        }
        Ok(went_through)
    }

    /// One attempt to insert documents, without what the server is known to refuse.
    async fn insert_once(
        &self,
        insert: &Insert,
        batch: &Batch,
        documents: &Documents,
    ) -> Result<WriteOutcome, TargetError> {
        let mut insert = insert.clone();
        if self.left_out.holds(left_out::BYPASS) {
            insert.validators = Validators::Applied;
        }
        let insert = &insert;
        let sends_concern = !self.left_out.holds(left_out::WRITE_CONCERN);
        let envelope = command::Envelope {
            insert,
            write_concern: sends_concern.then_some(&self.write_concern),
            keeps_zero_timestamps: self.keeps_zero_timestamps,
        };
        if insert.mode == WriteMode::Delete {
            return self.delete(insert, &envelope, (batch, documents)).await;
        }
        let updates = insert.mode.updates();
        if !updates && *documents == Documents::All && batch.detours.is_empty() {
            let command = command::whole(&envelope, batch)?;
            let database = insert.namespace.database();
            let reply = self.write(database, command).await?;
            let reply = outcome::read(&reply, batch.documents, insert.on_refusal)?;
            return Ok(reply.into_outcome(batch.documents, insert.on_refusal));
        }
        let mut outcome = WriteOutcome::default();
        let segments = if updates {
            command::updates(&envelope, batch, documents)?
        } else {
            command::segments(&envelope, batch, documents)?
        };
        for segment in segments {
            if !self.send(insert, &segment, &mut outcome).await? {
                break;
            }
        }
        outcome.failures.sort_by_key(|failure| failure.index);
        outcome.count_not_tried(documents.count(batch.documents));
        Ok(outcome)
    }

    /// Deletes a stored document for each of these; one that has none of the key fields finds none.
    async fn delete(
        &self,
        insert: &Insert,
        envelope: &command::Envelope<'_>,
        (batch, documents): (&Batch, &Documents),
    ) -> Result<WriteOutcome, TargetError> {
        let mut outcome = WriteOutcome::default();
        let command::Deletes { segments, keyless } = command::deletes(envelope, batch, documents)?;
        let mut end = batch.documents;
        for segment in segments {
            if !self.send(insert, &segment, &mut outcome).await? {
                end = outcome.failures.last().map_or(end, |failure| failure.index);
                break;
            }
        }
        // What comes after the one that the server stopped at is sent again with the rest.
        let passed = keyless.iter().filter(|&&index| index < end).count();
        outcome.changes.not_found += passed as u64;
        outcome.failures.sort_by_key(|failure| failure.index);
        outcome.count_not_tried(documents.count(batch.documents));
        Ok(outcome)
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

    async fn create(
        &self,
        namespace: &Namespace,
        options: &Document,
        uuid: Option<Uuid>,
    ) -> Result<(), TargetError> {
        let mut command = doc! { "create": namespace.collection() };
        command.extend(options.clone());
        let Some(uuid) = uuid else {
            command.insert("writeConcern", self.write_concern_document()?);
            return self.run(namespace.database(), command).await.map(drop);
        };
        let mut command = uuids::create(namespace, command, uuid);
        command.insert("writeConcern", self.write_concern_document()?);
        self.run("admin", command).await.map(drop)
    }

    async fn insert(
        &self,
        insert: &Insert,
        batch: &Batch,
        documents: &Documents,
    ) -> Result<WriteOutcome, TargetError> {
        loop {
            match self.insert_once(insert, batch, documents).await {
                Err(error) if self.left_out.learns_from(&error) => {}
                other => return other,
            }
        }
    }

    async fn stored(
        &self,
        namespace: &Namespace,
        ids: Vec<RawBson>,
        take: &mut (dyn FnMut(RawDocumentBuf) + Send),
    ) -> Result<(), TargetError> {
        let ids: Vec<Bson> = ids.into_iter().filter_map(|id| Bson::try_from(id).ok()).collect();
        let database = self.client.database(namespace.database());
        let collection = database.collection::<RawDocumentBuf>(namespace.collection());
        let mut cursor = collection
            .find(doc! { "_id": { "$in": ids } })
            .await
            .map_err(|error| errors::of(&error))?;
        while let Some(document) = cursor.try_next().await.map_err(|error| errors::of(&error))? {
            take(document);
        }
        Ok(())
    }

    fn acknowledgement(&self) -> Acknowledgement {
        self.acknowledgement
    }

    async fn horizon(&self, among: &Namespace) -> Result<Horizon, TargetError> {
        self.ask_horizon(among).await
    }

    async fn incarnation(&self) -> Result<String, TargetError> {
        self.hello().await.map(|hello| durability::incarnation(&hello))
    }

    async fn status(&self) -> Result<Option<ServerSample>, TargetError> {
        self.ask_status().await.map(Some)
    }

    async fn index_progress(&self) -> Result<Option<Vec<IndexProgress>>, TargetError> {
        self.ask_index_progress().await.map(Some)
    }

    async fn uuid(&self, namespace: &Namespace) -> Result<Option<Uuid>, TargetError> {
        self.ask_uuid(namespace).await
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
        if let Some(quorum) = self.commit_quorum {
            command.insert("commitQuorum", quorum);
        }
        command.insert("writeConcern", self.write_concern_document()?);
        self.run(namespace.database(), command).await.map(drop)
    }

    fn notes(&self) -> Vec<String> {
        let ignored = self
            .ignored
            .iter()
            .map(|name| format!("`{name}` in the connection string is not known and was left out"));
        ignored.chain(self.left_out.take_notes()).collect()
    }

    async fn allow_mixed_schema(&self, namespace: &Namespace) -> Result<(), TargetError> {
        let command = doc! {
            "collMod": namespace.collection(),
            "timeseriesBucketsMayHaveMixedSchemaData": true,
            "writeConcern": self.write_concern_document()?,
        };
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

    async fn apply_ops(
        &self,
        operations: &[RawDocumentBuf],
        validators: Validators,
    ) -> Result<(), TargetError> {
        let command = special::apply_ops(operations, validators);
        let reply = self.client.database("admin").run_raw_command(command).await;
        let reply = reply.map_err(|error| errors::of(&error))?;
        special::applied(&reply)
    }

    async fn users_schema(&self) -> Result<i64, TargetError> {
        let command = doc! { "getParameter": 1, "authSchemaVersion": 1 };
        special::users_schema(self.run("admin", command).await)
    }

    async fn merge_users(&self, merge: &MergeUsers) -> Result<(), TargetError> {
        let command = special::merge_users(merge, self.write_concern_document()?);
        let merged = self.run("admin", command).await.map(drop);
        if merge.users.is_none() && merge.roles.is_none() {
            return special::could_merge(merged);
        }
        merged
    }
}
