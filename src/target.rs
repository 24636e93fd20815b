//! What a destination can do, and the destinations there are.
//!
//! A target speaks in primitives: drop, create, insert, look up, index. It holds no decision about
//! order, retries or counts; those are the loader's. [`mongo`] is the only module of the program
//! that speaks to a server.

pub mod contents;
pub mod durable;
pub mod keys;
pub mod mongo;
pub mod null;

use std::future::Future;

use bson::{Bson, Document, RawBson, RawDocumentBuf, Uuid};
use serde::{Deserialize, Serialize};

use crate::batch::Batch;
use crate::changes::Changes;
use crate::namespace::Namespace;
use crate::sample::{IndexProgress, ServerSample};
use crate::target::durable::{Acknowledgement, Horizon, Mark};
use crate::target::keys::KeyFields;

/// Where documents are restored to.
pub trait Target: Send + Sync + 'static {
    /// Drops a collection or view; succeeds where there is none.
    fn drop_collection(
        &self,
        namespace: &Namespace,
    ) -> impl Future<Output = Result<(), TargetError>> + Send;

    /// Deletes all documents of a collection.
    fn empty(&self, namespace: &Namespace) -> impl Future<Output = Result<(), TargetError>> + Send;

    /// Creates a collection or view with these options, a collection with this UUID where one is
    /// given. Whoever gives one knows that no other collection has it: that one would be renamed.
    fn create(
        &self,
        namespace: &Namespace,
        options: &Document,
        uuid: Option<Uuid>,
    ) -> impl Future<Output = Result<(), TargetError>> + Send;

    /// Inserts these documents of a batch.
    fn insert(
        &self,
        insert: &Insert,
        batch: &Batch,
        documents: &Documents,
    ) -> impl Future<Output = Result<WriteOutcome, TargetError>> + Send;

    /// Hands over the stored documents that have one of these `_id`s, one by one, since all of
    /// them may be more than memory holds. After an error some may have been handed over.
    fn stored(
        &self,
        namespace: &Namespace,
        ids: Vec<RawBson>,
        take: &mut (dyn FnMut(RawDocumentBuf) + Send),
    ) -> impl Future<Output = Result<(), TargetError>> + Send;

    /// What its acknowledgements are worth.
    fn acknowledgement(&self) -> Acknowledgement {
        Acknowledgement::Durable
    }

    /// Finds out which acknowledged writes are safe; `among` is a collection that exists.
    fn horizon(
        &self,
        _among: &Namespace,
    ) -> impl Future<Output = Result<Horizon, TargetError>> + Send {
        async { Ok(Horizon { server: String::new(), durable: None }) }
    }

    /// The incarnation of the server that is written to at the moment.
    fn incarnation(&self) -> impl Future<Output = Result<String, TargetError>> + Send {
        async { Ok(String::new()) }
    }

    /// The UUID of a collection, where the target tells it.
    fn uuid(
        &self,
        _namespace: &Namespace,
    ) -> impl Future<Output = Result<Option<Uuid>, TargetError>> + Send {
        async { Ok(None) }
    }

    /// How the server stands; nothing where it does not tell such things.
    fn status(&self) -> impl Future<Output = Result<Option<ServerSample>, TargetError>> + Send {
        async { Ok(None) }
    }

    /// How far builds of indexes are; nothing where the target does not tell such things.
    fn index_progress(
        &self,
    ) -> impl Future<Output = Result<Option<Vec<IndexProgress>>, TargetError>> + Send {
        async { Ok(None) }
    }

    /// Builds indexes with one command; on success all of them stand.
    fn create_indexes(
        &self,
        namespace: &Namespace,
        specs: &[Document],
    ) -> impl Future<Output = Result<(), TargetError>> + Send;

    /// What had to be left out of commands since this was last asked, as sentences without their
    /// final period.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    /// Lets buckets of a time-series collection hold values of several types under one name, which
    /// newer servers refuse unless told that the collection is an old one.
    fn allow_mixed_schema(
        &self,
        namespace: &Namespace,
    ) -> impl Future<Output = Result<(), TargetError>> + Send;

    /// Sets the age at which the server deletes the collection's documents.
    fn expire_after(
        &self,
        namespace: &Namespace,
        seconds: &Bson,
    ) -> impl Future<Output = Result<(), TargetError>> + Send;

    /// Applies oplog entries in their order; where one is refused, some before it may be applied.
    fn apply_ops(
        &self,
        operations: &[RawDocumentBuf],
        validators: Validators,
    ) -> impl Future<Output = Result<(), TargetError>> + Send;

    /// The version of the schema in which the server keeps users and roles.
    fn users_schema(&self) -> impl Future<Output = Result<i64, TargetError>> + Send;

    /// Merges users and roles out of temporary collections into those of the server; with neither,
    /// nothing is merged, and the answer tells whether something could be.
    fn merge_users(
        &self,
        merge: &MergeUsers,
    ) -> impl Future<Output = Result<(), TargetError>> + Send;
}

/// Out of which collections users and roles are merged, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MergeUsers {
    /// The collection that holds the users.
    pub users: Option<Namespace>,
    /// The collection that holds the roles.
    pub roles: Option<Namespace>,
    /// The database whose users and roles are merged; all of them where it is none.
    pub database: Option<String>,
    /// What happens to users and roles that are not in these collections.
    pub others: Others,
}

/// What happens to users and roles that are not merged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Others {
    /// They stay.
    #[default]
    Kept,
    /// They are removed.
    Removed,
}

/// Which documents of a batch are meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Documents {
    /// All of them: the fast way, for which the batch is sent as it is.
    All,
    /// Those with these indexes, in ascending order.
    Only(Vec<u32>),
}

impl Documents {
    /// How many they are of a batch of so many.
    pub fn count(&self, of: u32) -> u32 {
        match self {
            Self::All => of,
            Self::Only(indexes) => u32::try_from(indexes.len()).unwrap_or(u32::MAX),
        }
    }

    /// Their indexes in a batch of so many.
    pub fn indexes(&self, of: u32) -> Vec<u32> {
        match self {
            Self::All => (0..of).collect(),
            Self::Only(indexes) => indexes.clone(),
        }
    }
}

/// Where and how a batch is inserted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Insert {
    /// The collection that takes the documents.
    pub namespace: Namespace,
    /// Whether the server goes on after a document it refuses.
    pub on_refusal: OnRefusal,
    /// Whether the collection's validator judges the documents.
    pub validators: Validators,
    /// What becomes of a document whose `_id` is there.
    pub mode: WriteMode,
    /// The fields that tell which stored document is meant, where the mode looks for one.
    pub keys: KeyFields,
    /// What the names of the fields are that a mode merges.
    pub names: FieldNames,
}

/// What the names of fields are that are set in a stored document.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FieldNames {
    /// Names, whatever is in them: a dump holds documents as they were stored.
    #[default]
    Literal,
    /// Paths into the stored document, whose parts are between dots (`$set`).
    Paths,
}

/// What becomes of a document whose `_id` the collection has already, or the values of other key
/// fields; one that it has not is inserted in every mode but that which deletes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WriteMode {
    /// It is refused as a duplicate.
    #[default]
    Insert,
    /// The stored document stays, and this one counts as already there.
    Skip,
    /// It takes the stored document's place.
    Replace,
    /// Its fields are set in the stored document, whose other fields stay.
    Merge,
    /// The stored document is deleted, one for each document.
    Delete,
}

impl WriteMode {
    /// Its name, as it is typed.
    pub fn name(self) -> &'static str {
        match self {
            Self::Insert => "insert",
            Self::Skip => "skip",
            Self::Replace => "replace",
            Self::Merge => "merge",
            Self::Delete => "delete",
        }
    }

    /// Whether stored documents are changed, by `update` commands.
    pub fn updates(self) -> bool {
        matches!(self, Self::Replace | Self::Merge)
    }

    /// Whether the order of documents decides what is stored in the end.
    pub fn needs_order(self) -> bool {
        self.updates() || self == Self::Delete
    }
}

/// What the server does after a document it refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnRefusal {
    /// It goes on with the next one (`ordered: false`).
    GoOn,
    /// It stops there, so that nothing overtakes (`ordered: true`).
    Stop,
}

/// Whether a collection's validator judges the documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Validators {
    /// They are bypassed (`bypassDocumentValidation: true`).
    Bypassed,
    /// They judge.
    Applied,
}

/// What the server answered to an insert.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WriteOutcome {
    /// Documents it took as new ones.
    pub inserted: u32,
    /// Documents for which it looked for a stored one to change.
    pub changes: Changes,
    /// Documents it refused, in ascending order of their index.
    pub failures: Vec<WriteFailure>,
    /// Documents at the end that it did not look at, because it stopped at a refusal.
    pub not_tried: u32,
    /// The point in the target's history of what it took, where it has one.
    pub mark: Option<Mark>,
}

impl WriteOutcome {
    /// Documents that did what they came for, or found nothing to do it to.
    pub fn taken(&self) -> u64 {
        u64::from(self.inserted) + self.changes.documents()
    }

    /// Counts those of `sent` documents that nothing else counts.
    fn count_not_tried(&mut self, sent: u32) {
        let answered = self.taken() + self.failures.len() as u64;
        let not_tried = u64::from(sent).saturating_sub(answered);
        self.not_tried = u32::try_from(not_tried).unwrap_or(sent);
    }
}

/// A document that the server refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteFailure {
    /// The document's index in its batch.
    pub index: u32,
    /// The server's error code.
    pub code: i32,
    /// The server's message.
    pub message: String,
}

/// A command that failed as a whole.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct TargetError {
    /// What kind of failure it is.
    pub fault: Fault,
    /// The server's error code, where the server answered.
    pub code: Option<i32>,
    /// Error labels, from the server or the driver.
    pub labels: Vec<String>,
    /// What happened, in the server's or the driver's words.
    pub message: String,
}

impl From<WriteFailure> for TargetError {
    /// What became of one document, as if it were that of the whole command.
    fn from(failure: WriteFailure) -> Self {
        Self {
            fault: Fault::Refused,
            code: Some(failure.code),
            labels: Vec::new(),
            message: failure.message,
        }
    }
}

/// The kinds of failure of a whole command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// No server could be reached; the command was not sent.
    Unreachable,
    /// The connection broke; the command may or may not have been carried out.
    ConnectionLost,
    /// The server refused the command.
    Refused,
    /// The server carried the command out but did not confirm it as durable as was asked for.
    Unconfirmed,
    /// The driver could not make sense of the command or the answer.
    Driver,
}
