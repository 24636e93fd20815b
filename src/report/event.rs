//! What work says while it goes on.

use std::sync::Arc;
use std::time::Duration;

use crate::changes::Changes;
use crate::namespace::Namespace;
use crate::report::lost::LostStretch;
use crate::sample::{IndexProgress, Sample};

/// Something that happened during a run.
///
/// Collections are named by their place in the plan that [`Event::Planned`] announced.
#[derive(Clone, Debug)]
pub enum Event {
    /// The plan stands; always the first event.
    Planned {
        /// The collections in the order of the plan, views at the end.
        collections: Vec<Arc<PlannedCollection>>,
    },
    /// The documents of all collections come from one stream, so that the size of each of them is
    /// not known; follows the plan.
    OneStream {
        /// The size of the stream in bytes, compressed or not, where it is known.
        bytes: Option<u64>,
        /// Whether it is compressed.
        compressed: bool,
    },
    /// A stage of the whole run began.
    PhaseBegan(Phase),
    /// The collection is about to be created, or what stands in its place to be dropped.
    PrepareBegan {
        /// The collection.
        collection: usize,
    },
    /// The collection was created, or found to exist; its documents may come.
    Prepared {
        /// The collection.
        collection: usize,
    },
    /// An earlier run has brought these documents: they count as read and as it counted them.
    Carried {
        /// The collection.
        collection: usize,
        /// Documents the server took.
        inserted: u64,
        /// What became of those that found a stored one.
        changes: Changes,
        /// Documents that were stored already.
        already_there: u64,
        /// Documents that were refused.
        rejected: u64,
        /// Documents of these whose `_id` another document has.
        conflicts: u64,
        /// The bytes of the collection's documents that are done with, uncompressed.
        bytes: u64,
    },
    /// Reading the collection's file began.
    ReadBegan {
        /// The collection.
        collection: usize,
    },
    /// A batch was cut from the file: these documents count as read.
    Read {
        /// The collection.
        collection: usize,
        /// Documents read.
        documents: u64,
        /// Their bytes, uncompressed.
        bytes: u64,
    },
    /// A damaged document was read and is not sent: it counts as read and as rejected.
    Damaged {
        /// The collection.
        collection: usize,
        /// The bytes it claims.
        bytes: u64,
        /// What is wrong with it.
        rejection: Rejection,
    },
    /// A stretch of the dump is damaged and was read around: what was in it is lost.
    Lost {
        /// The collection, where it lies among the documents of one.
        collection: Option<usize>,
        /// The stretch.
        stretch: LostStretch,
    },
    /// The server answered for a batch; the first four counts add up to the batch's documents.
    Written {
        /// The collection.
        collection: usize,
        /// Documents the server took.
        inserted: u64,
        /// What became of those that looked for a stored one.
        changes: Changes,
        /// Documents that were found stored already, byte for byte the same unless they are skipped
        /// for their `_id`.
        already_there: u64,
        /// Documents the server refused.
        rejected: u64,
        /// Documents of these whose `_id` another document was found to have.
        conflicts: u64,
        /// The bytes of the batch's documents, uncompressed.
        bytes: u64,
        /// The bytes of the file that the batch used up; equals `bytes` where the file is plain.
        origin_bytes: u64,
        /// The time from sending to the answer that counted, retries included.
        latency: Duration,
    },
    /// The server refused documents; comes before the [`Event::Written`] that counts them.
    Rejected {
        /// The collection.
        collection: usize,
        /// One for each refused document.
        rejections: Vec<Rejection>,
    },
    /// A batch was read but never answered for, because the run stopped.
    Unsent {
        /// The collection.
        collection: usize,
        /// Documents that were not written.
        documents: u64,
    },
    /// A batch or command will be sent again after a pause.
    Retried {
        /// The collection, where it concerns one.
        collection: Option<usize>,
        /// What went wrong.
        reason: String,
        /// The pause.
        delay: Duration,
    },
    /// All documents of the collection are answered for.
    DataEnded {
        /// The collection.
        collection: usize,
    },
    /// Building an index began.
    IndexBegan {
        /// The collection.
        collection: usize,
        /// The index.
        index: String,
    },
    /// The server told how far the build of indexes is.
    IndexProgressed {
        /// The collection.
        collection: usize,
        /// How far it is.
        progress: IndexProgress,
    },
    /// An index stands.
    IndexBuilt {
        /// The collection.
        collection: usize,
        /// The index.
        index: String,
        /// How long its command took, or its share of that where one command built several.
        took: Duration,
    },
    /// An index could not be built; the others go on.
    IndexFailed {
        /// The collection.
        collection: usize,
        /// The index.
        index: String,
        /// The server's reason.
        reason: String,
    },
    /// The collection, its documents and its indexes are done with.
    CollectionEnded {
        /// The collection.
        collection: usize,
    },
    /// The collection could not be restored completely; the others go on.
    CollectionFailed {
        /// The collection.
        collection: usize,
        /// What went wrong, with file and byte offset where it was the file.
        error: String,
    },
    /// Users and roles will be restored; comes soon after [`Event::Planned`], and for those of an
    /// archive, whose names are not known then, once more when they have been read.
    UsersPlanned {
        /// The names of the users, such as `shop.ann`.
        users: Vec<String>,
        /// The names of the roles.
        roles: Vec<String>,
    },
    /// Users and roles are done with.
    UsersEnded {
        /// What went wrong, if something did: none of them are restored then.
        failure: Option<String>,
    },
    /// An oplog will be replayed; comes soon after [`Event::Planned`].
    OplogPlanned {
        /// Its file.
        path: String,
    },
    /// These entries of the oplog are applied.
    OplogApplied {
        /// Entries.
        entries: u64,
        /// Operations, those inside transactions and those on indexes among them.
        operations: u64,
        /// Entries and operations that concern the source alone and were left out.
        left_out: u64,
        /// When the first of these entries happened.
        first: OplogTime,
        /// When the last of them happened.
        last: OplogTime,
    },
    /// The oplog is replayed to its end, or to the limit that was given.
    OplogEnded {
        /// Whether it was the limit.
        reached_limit: bool,
    },
    /// The oplog made a collection or gave it a new name; it stands behind those of the plan.
    CollectionAdded(PlannedCollection),
    /// The oplog changed which indexes a collection will have.
    IndexesReplanned {
        /// The collection.
        collection: usize,
        /// How many it will have.
        indexes: usize,
    },
    /// How the run stands; about once a second, and once more at its end.
    Sampled(Box<Sample>),
    /// More or fewer batches may be in flight from here on.
    WorkersChanged {
        /// How many.
        workers: usize,
        /// Why; a sentence without its final period.
        reason: String,
    },
    /// Something a person should know, such as a repair or a right that is missing.
    Note {
        /// The collection, where it concerns one.
        collection: Option<usize>,
        /// A sentence without its final period.
        text: String,
    },
}

/// A collection as the plan announces it.
#[derive(Clone, Debug)]
pub struct PlannedCollection {
    /// Where it is restored to.
    pub namespace: Namespace,
    /// The server's word for its kind: `collection`, `timeseries` or `view`.
    pub kind: &'static str,
    /// What becomes of a collection of its name that stands on the target.
    pub standing: Standing,
    /// Where its options and indexes were read from; empty where they have no file of their own.
    pub metadata: Arc<str>,
    /// Where its documents are read from, such as the path of its data file; empty for none.
    pub origin: Arc<str>,
    /// The size of its data file in bytes, compressed or not; zero where it has none of its own.
    pub origin_bytes: u64,
    /// Whether the data file is compressed, so that its documents' bytes are not known ahead.
    pub compressed: bool,
    /// How many indexes are to be built.
    pub indexes: usize,
}

/// What becomes of a collection that stands on the target under the name of a planned one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// There is none.
    Absent,
    /// It is kept, and documents are added.
    Kept,
    /// It is dropped.
    Dropped,
    /// It cannot be dropped, and is emptied.
    Emptied,
}

/// When an entry of an oplog happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
pub struct OplogTime {
    /// Seconds since 1970.
    pub seconds: u32,
    /// The number within the second.
    pub increment: u32,
}

impl std::fmt::Display for OplogTime {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}:{}", self.seconds, self.increment)
    }
}

/// A stage of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Documents are read and written, indexes of finished collections are built.
    Data,
    /// Users and roles are restored.
    Users,
    /// The oplog is replayed.
    Oplog,
    /// Only index builds are left.
    Indexes,
    /// Indexes that delete documents are built, after everything else.
    TimeToLive,
    /// Views are created, after their sources.
    Views,
    /// Everything is done or given up.
    Ended,
}

/// The code of rejected rows that have a cell which is not of its column's type: the server's
/// `TypeMismatch`.
pub const TYPE_MISMATCH: i32 = 14;

/// A document that the server refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// The server's error code.
    pub code: i32,
    /// The server's message.
    pub message: String,
    /// The document's `_id` as Extended JSON.
    pub id: String,
    /// Whether another document was found to have its `_id`.
    pub is_conflict: bool,
}

/// Whoever wants to know what happens.
///
/// Called from several threads; an implementation keeps it short, because work waits for it.
pub trait Observer: Send + Sync {
    /// Takes note of an event; `at` is the time since the run began.
    fn observe(&self, at: Duration, event: &Event);
}

/// Wants to know nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Observer for Silent {
    fn observe(&self, _at: Duration, _event: &Event) {}
}
