//! What happens in a run, for programs that watch it: one JSON object a line.
//!
//! `docs/event.schema.json` describes the lines.

use std::time::Duration;

use serde::Serialize;

use crate::changes::Changes;
use crate::error::Error;
use crate::exit::ExitStatus;
use crate::report::bound::Bound;
use crate::report::event::{Event, Phase};
use crate::report::tally::{Balance, CollectionTally, Tally};
use crate::report::value::{Outcome, Report};
use crate::sample::IndexStage;

/// The name and version of the lines; a change that breaks readers raises the number.
pub const SCHEMA: &str = "restorm.event/1";

/// A line: what happened, and when.
#[derive(Serialize)]
struct Line<'a> {
    schema: &'static str,
    at_seconds: f64,
    #[serde(flatten)]
    live: &'a Live<'a>,
}

/// What is told.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Live<'a> {
    /// The plan stands.
    Planned {
        /// Collections, views included.
        collections: usize,
        /// Indexes that are to be built.
        indexes: usize,
        /// Bytes of all data files; zero where all documents come from one stream.
        origin_bytes: u64,
    },
    /// All documents come from one stream, so that the size of each collection is not known.
    OneStream {
        /// The size of the stream in bytes; null where it is not known.
        bytes: Option<u64>,
        /// Whether it is compressed.
        is_compressed: bool,
    },
    /// A stage of the run began.
    PhaseBegan {
        /// Which one.
        phase: &'static str,
    },
    /// How far the run is; once a second, and once more when its work is done.
    Progress(Box<Progress>),
    /// Documents of a collection are read.
    CollectionBegan {
        /// Its full name.
        collection: String,
        /// The server's word for its kind.
        kind: &'static str,
        /// The size of its data file; zero where it has none of its own.
        origin_bytes: u64,
    },
    /// All documents of a collection are answered for.
    DataEnded {
        /// Its full name.
        collection: String,
        /// What became of them.
        balance: Balance,
        /// Their bytes, uncompressed.
        bytes: u64,
        /// From the beginning of reading to the last answer.
        seconds: f64,
    },
    /// Building an index began.
    IndexBegan {
        /// The collection's full name.
        collection: String,
        /// The index.
        index: &'a str,
    },
    /// The server told how far the build of indexes is.
    IndexProgressed {
        /// The collection's full name.
        collection: String,
        /// The indexes that one command builds.
        indexes: &'a [String],
        /// What the server does: `scanning`, `sorting`, `inserting` or `committing`.
        stage: &'static str,
        /// Documents or keys that are done with in this stage.
        done: u64,
        /// All of them; zero where that is not told.
        total: u64,
        /// The share of the whole build that is done, 0 to 1.
        fraction: f64,
    },
    /// An index stands.
    IndexBuilt {
        /// The collection's full name.
        collection: String,
        /// The index.
        index: &'a str,
        /// How long its command took, or its share of that.
        seconds: f64,
    },
    /// An index could not be built.
    IndexFailed {
        /// The collection's full name.
        collection: String,
        /// The index.
        index: &'a str,
        /// The server's reason.
        message: &'a str,
    },
    /// A collection, its documents and its indexes are done with.
    CollectionEnded {
        /// Its full name.
        collection: String,
    },
    /// A collection could not be restored completely.
    CollectionFailed {
        /// Its full name.
        collection: String,
        /// What went wrong.
        message: &'a str,
    },
    /// Users and roles are done with.
    UsersEnded {
        /// What went wrong, if something did.
        message: Option<&'a str>,
    },
    /// The oplog is replayed.
    OplogEnded {
        /// Entries that were applied.
        entries: u64,
    },
    /// Batches or commands are sent again; at most once a second.
    Retried {
        /// The full name of the collection, where it concerns one.
        collection: Option<String>,
        /// What went wrong.
        message: &'a str,
        /// The pause before.
        delay_seconds: f64,
        /// Others since the line before, which have none of their own.
        untold: u64,
    },
    /// More or fewer batches may be in flight from here on.
    WorkersChanged {
        /// How many.
        workers: usize,
        /// Why.
        message: &'a str,
    },
    /// Something a person should know.
    Note {
        /// The full name of the collection, where it concerns one.
        collection: Option<String>,
        /// A sentence without its final period.
        message: &'a str,
    },
    /// Something that is unsafe or has no effect.
    Warning {
        /// A sentence without its final period.
        message: &'a str,
    },
    /// An error ended the program; the last line.
    Error {
        /// What went wrong.
        message: String,
        /// What can be done about it.
        hint: Option<&'a str>,
        /// The exit status of the program.
        exit_status: ExitStatus,
    },
    /// The run is over; the last line.
    Ended(Box<Ended<'a>>),
}

/// How far a run is.
#[derive(Clone, Debug, Serialize)]
pub struct Progress {
    /// The stage; null before the first one.
    pub phase: Option<&'static str>,
    /// The share that is done, 0 to 1; null where there is no telling.
    pub fraction: Option<f64>,
    /// How long the documents will still take; null where there is no telling.
    pub seconds_left: Option<f64>,
    /// What became of the documents so far; batches on their way are read and nothing else yet.
    pub documents_read: u64,
    /// Documents the server took.
    pub documents_inserted: u64,
    /// What became of documents that looked for a stored one.
    pub documents_changed: Changes,
    /// Documents that were stored already.
    pub documents_already_there: u64,
    /// Documents the server refused.
    pub documents_rejected: u64,
    /// Bytes of the documents the server answered for, uncompressed.
    pub bytes: u64,
    /// How many they will have been; null where there is no telling.
    pub bytes_expected: Option<u64>,
    /// Documents inserted per second over the last few seconds.
    pub documents_per_second: f64,
    /// Bytes per second over the last few seconds.
    pub bytes_per_second: f64,
    /// Batches that were sent and are not answered.
    pub in_flight: usize,
    /// Batches that wait for a worker.
    pub queued: usize,
    /// Workers that may send.
    pub workers: usize,
    /// Batches and commands that were sent again.
    pub retries: u64,
    /// Collections that are done or given up.
    pub collections_ended: usize,
    /// All of them.
    pub collections: usize,
    /// Indexes that are built or given up.
    pub indexes_ended: usize,
    /// All of them.
    pub indexes: usize,
    /// Entries of the oplog that are applied.
    pub oplog_entries: u64,
    /// How long nothing has been answered, while documents are written.
    pub silent_seconds: Option<f64>,
    /// What the run waits for; null where there is no telling.
    pub bound_by: Option<Bound>,
    /// Why that is believed.
    pub bound_evidence: Option<String>,
}

/// What a run came to.
#[derive(Clone, Debug, Serialize)]
pub struct Ended<'a> {
    outcome: &'a Outcome,
    exit_status: ExitStatus,
    balance: Balance,
    is_balanced: bool,
    bytes: u64,
    total_seconds: f64,
    documents_per_second: f64,
    bytes_per_second: f64,
    retries: u64,
    collections: usize,
    collections_done: usize,
    collections_failed: usize,
    indexes: usize,
    indexes_built: usize,
    indexes_failed: usize,
    bound_by: Option<BoundBy<'a>>,
    ledger: Option<&'a str>,
    resume_command: Option<&'a str>,
}

/// What a run waited for most.
#[derive(Clone, Debug, Serialize)]
struct BoundBy<'a> {
    by: Bound,
    evidence: &'a [String],
    advice: &'a str,
}

impl<'a> Live<'a> {
    /// What a run came to, and the command that goes on with it where there is one.
    pub fn ended(report: &'a Report, resume_command: Option<&'a str>) -> Self {
        let totals = &report.totals;
        Self::Ended(Box::new(Ended {
            outcome: &report.outcome,
            exit_status: report.exit_status,
            balance: report.balance,
            is_balanced: report.is_balanced,
            bytes: totals.bytes_acknowledged,
            total_seconds: report.times.total.as_secs_f64(),
            documents_per_second: report.rates.average_documents_per_second,
            bytes_per_second: report.rates.average_bytes_per_second,
            retries: totals.retries,
            collections: totals.collections,
            collections_done: totals.collections_done,
            collections_failed: totals.collections_failed,
            indexes: totals.indexes,
            indexes_built: totals.indexes_built,
            indexes_failed: totals.indexes_failed,
            bound_by: report.bound_by.as_ref().map(|bound| BoundBy {
                by: bound.by,
                evidence: &bound.evidence,
                advice: &bound.advice,
            }),
            ledger: report.ledger.as_deref(),
            resume_command,
        }))
    }

    /// An error that ends the program with this status.
    pub fn error(error: &'a Error, exit_status: ExitStatus) -> Self {
        Self::Error { message: error.to_string(), hint: error.hint_text(), exit_status }
    }

    /// What an event tells, where it tells something; `tally` has it counted already.
    pub(super) fn of(event: &'a Event, tally: &Tally) -> Option<Self> {
        let name = |collection: usize| tally.collections().get(collection).map(name);
        let live = match event {
            Event::Planned { collections } => Self::Planned {
                collections: collections.len(),
                indexes: collections.iter().map(|one| one.indexes).sum(),
                origin_bytes: collections.iter().map(|one| one.origin_bytes).sum(),
            },
            Event::OneStream { bytes, compressed } => {
                Self::OneStream { bytes: *bytes, is_compressed: *compressed }
            }
            Event::PhaseBegan(phase) => Self::PhaseBegan { phase: word(*phase) },
            Event::WorkersChanged { workers, reason } => {
                Self::WorkersChanged { workers: *workers, message: reason }
            }
            Event::Note { collection, text } => {
                Self::Note { collection: collection.and_then(name), message: text }
            }
            Event::UsersEnded { failure } => Self::UsersEnded { message: failure.as_deref() },
            Event::OplogEnded { .. } => {
                Self::OplogEnded { entries: tally.oplog().map_or(0, |oplog| oplog.entries) }
            }
            Event::ReadBegan { .. }
            | Event::DataEnded { .. }
            | Event::CollectionEnded { .. }
            | Event::CollectionFailed { .. } => return Self::of_collection(event, tally),
            Event::IndexBegan { collection, index } => {
                Self::IndexBegan { collection: name(*collection)?, index }
            }
            Event::IndexProgressed { collection, progress } => Self::IndexProgressed {
                collection: name(*collection)?,
                indexes: &progress.indexes,
                stage: stage(progress.stage),
                done: progress.done,
                total: progress.total,
                fraction: progress.fraction(),
            },
            Event::IndexBuilt { collection, index, took } => Self::IndexBuilt {
                collection: name(*collection)?,
                index,
                seconds: took.as_secs_f64(),
            },
            Event::IndexFailed { collection, index, reason } => {
                Self::IndexFailed { collection: name(*collection)?, index, message: reason }
            }
            _ => return None,
        };
        Some(live)
    }

    fn of_collection(event: &'a Event, tally: &Tally) -> Option<Self> {
        let (Event::ReadBegan { collection: place }
        | Event::DataEnded { collection: place }
        | Event::CollectionEnded { collection: place }
        | Event::CollectionFailed { collection: place, .. }) = event
        else {
            return None;
        };
        let one = tally.collections().get(*place)?;
        let collection = name(one);
        Some(match event {
            Event::ReadBegan { .. } => Self::CollectionBegan {
                collection,
                kind: one.planned.kind,
                origin_bytes: one.planned.origin_bytes,
            },
            Event::DataEnded { .. } => Self::DataEnded {
                collection,
                balance: one.counts.balance(),
                bytes: one.counts.bytes_acknowledged,
                seconds: one.data_time().unwrap_or_default().as_secs_f64(),
            },
            Event::CollectionFailed { error, .. } => {
                Self::CollectionFailed { collection, message: error }
            }
            _ => Self::CollectionEnded { collection },
        })
    }
}

/// A line with its end, of something that happened at `at` since the run began.
pub fn line(at: Duration, live: &Live<'_>) -> String {
    let told = Line { schema: SCHEMA, at_seconds: at.as_secs_f64(), live };
    // Strings and numbers can always be written as JSON.
    serde_json::to_string(&told).unwrap_or_default() + "\n"
}

/// The full name of a collection as it is; JSON has escapes of its own.
pub(super) fn name(collection: &CollectionTally) -> String {
    let namespace = collection.namespace();
    format!("{}.{}", namespace.database(), namespace.collection())
}

/// The word for a stage.
pub(super) fn word(phase: Phase) -> &'static str {
    match phase {
        Phase::Data => "data",
        Phase::Users => "users",
        Phase::Oplog => "oplog",
        Phase::Indexes => "indexes",
        Phase::TimeToLive => "time_to_live",
        Phase::Views => "views",
        Phase::Ended => "ended",
    }
}

/// The word for what a server does to build indexes.
fn stage(stage: IndexStage) -> &'static str {
    match stage {
        IndexStage::Scanning => "scanning",
        IndexStage::Sorting => "sorting",
        IndexStage::Inserting => "inserting",
        IndexStage::Committing => "committing",
    }
}

#[cfg(test)]
mod tests;
