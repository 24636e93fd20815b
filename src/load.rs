//! Runs a plan: the only room that spawns threads and tasks for it.
//!
//! Collections are created ahead and side by side; readers on threads of their own turn files into
//! batches; one bounded queue carries the batches of all collections to the workers, so that a
//! single large collection is written by all of them; when the last batch of a collection is
//! answered for, its indexes are built while others still load.
//!
//! ```text
//! preparers ──▶ readers ──▶ queue ──▶ workers ──▶ index builders
//! (tasks)       (threads)             (tasks)     (tasks)
//! ```

mod again;
mod climb;
mod failure_limit;
mod finish;
mod gathered;
mod indexed;
mod intake;
pub mod ledger;
pub mod oplog;
mod pacing;
pub mod patience;
mod places;
mod prepare;
mod pressure;
mod rate_limit;
pub mod rejects;
pub mod replay;
pub mod retry;
mod run;
mod salvage;
mod sampling;
mod settle;
mod spool;
mod stages;
pub mod stop;
mod sums;
mod users;
mod worker;
mod workers;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::task::{JoinHandle, JoinSet};

use crate::batch::{BatchLimits, ZeroTimestamps};
use crate::error::{Error, ErrorKind};
use crate::limits::{
    ARCHIVE_WAITING_BYTES_MAX, BATCH_BYTES_DEFAULT, BATCH_DOCUMENTS_DEFAULT, CREATES_AHEAD,
    DOCUMENT_BYTES_MAX, LARGE_DOCUMENT_COPIES, MEMORY_DEFAULT, PARALLEL_COLLECTIONS_DEFAULT,
    PARALLEL_INDEX_BUILDS_DEFAULT, QUEUE_BATCHES, READ_BUFFERS_MAX, READ_BYTES, RETRY_FOR,
    WORKERS_DEFAULT,
};
use crate::load::run::Run;
use crate::plan::RestorePlan;
use crate::plan::oplog::OplogPlan;
use crate::report::{Event, Observer, Phase, Tally};
use crate::target::keys::KeyFields;
use crate::target::{FieldNames, Target, WriteMode};

pub use failure_limit::FailureLimit;
use intake::Reading;
pub use intake::id::{IdChange, NewIds, stored_form};
pub use ledger::Ledger;
pub use rate_limit::RateLimit;
pub use rejects::Rejects;
pub use stop::Stop;
pub use sums::Sums;
pub use workers::Workers;

/// How a plan is run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadSettings {
    /// Collections read side by side.
    pub readers: usize,
    /// Batches in flight.
    pub workers: Workers,
    /// The most that is sent in a second; any rate where nothing is said.
    pub rate_limit: Option<RateLimit>,
    /// How far the majority of a replica set may be behind before fewer batches are in flight.
    pub lag_max: Option<Duration>,
    /// How large a batch grows.
    pub batch: BatchLimits,
    /// Index builds at once.
    pub index_builds: usize,
    /// Whether documents with zero timestamps need a detour.
    pub zero_timestamps: ZeroTimestamps,
    /// What happens after a document that the server refuses.
    pub on_rejection: OnRejection,
    /// What becomes of documents whose `_id` is there.
    pub write_mode: WriteMode,
    /// The fields by which those modes that look for a stored document do so.
    pub keys: KeyFields,
    /// What the names of fields are that are merged into stored documents.
    pub names: FieldNames,
    /// How many documents may be refused before the run ends; any number where nothing is said.
    pub failure_limit: Option<FailureLimit>,
    /// Whether documents are checked before they are sent.
    pub document_check: DocumentCheck,
    /// The bytes that buffers may take, those of large documents included.
    pub memory: usize,
    /// How long a command is tried again before the run gives up.
    pub retry_for: Duration,
}

/// Whether documents are checked before they are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DocumentCheck {
    /// Only their extent; the server looks at the rest.
    #[default]
    Extent,
    /// Their whole structure; a damaged one is counted as rejected and not sent.
    Structure,
}

impl Default for LoadSettings {
    fn default() -> Self {
        Self {
            readers: PARALLEL_COLLECTIONS_DEFAULT,
            workers: Workers::default(),
            rate_limit: None,
            lag_max: None,
            batch: BatchLimits::new(BATCH_DOCUMENTS_DEFAULT, BATCH_BYTES_DEFAULT),
            index_builds: PARALLEL_INDEX_BUILDS_DEFAULT,
            zero_timestamps: ZeroTimestamps::Detoured,
            on_rejection: OnRejection::GoOn,
            write_mode: WriteMode::default(),
            keys: KeyFields::default(),
            names: FieldNames::default(),
            failure_limit: None,
            document_check: DocumentCheck::default(),
            memory: MEMORY_DEFAULT,
            retry_for: RETRY_FOR,
        }
    }
}

/// What happens after a document that the server refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnRejection {
    /// It is counted and the run goes on.
    GoOn,
    /// The run stops.
    StopRun,
}

/// How a run ended.
#[derive(Clone, Debug)]
pub enum Ending {
    /// Everything in the plan was tried.
    Finished,
    /// An error ended it.
    Stopped(Error),
    /// It was asked to stop.
    Interrupted,
}

/// A plan with everything that is needed to run it.
pub struct Assignment<T> {
    /// What is restored.
    pub plan: RestorePlan,
    /// Where to.
    pub target: Arc<T>,
    /// How.
    pub settings: LoadSettings,
    /// Who is told what happens.
    pub observer: Arc<dyn Observer>,
    /// What ends the run early.
    pub stop: Stop,
    /// Where it is kept what is done, so that the run can be resumed.
    pub ledger: Option<Arc<Ledger>>,
    /// Where what cannot be read is kept, if damage in the dump is read around.
    pub salvage: Option<PathBuf>,
    /// Where refused documents are kept.
    pub rejects: Option<Arc<Rejects>>,
    /// Where the sums of what is brought are kept, where they are wanted.
    pub sums: Option<Arc<Sums>>,
    /// The moment from which the times of events count.
    pub began: Instant,
}

/// Runs a plan against its target; returns the counts and how it ended.
pub async fn load<T: Target>(assignment: Assignment<T>) -> (Tally, Ending) {
    let (run, queues) = Run::new(assignment);
    let run = Arc::new(run);
    run.announce();
    if let Err(error) = settle::begin(&run).await {
        run.fail(settle::not_confirmed(&error));
    }
    let settler = tokio::spawn(settle::keep_settling(Arc::clone(&run)));
    let pacer = tokio::spawn(pacing::pace(Arc::clone(&run)));
    let sampler = tokio::spawn(sampling::keep_sampling(Arc::clone(&run)));
    let mut workers = JoinSet::new();
    let mut preparers = JoinSet::new();
    let (prepared, to_read) = intake::channel(&run);
    let (gate, opened) = async_channel::bounded(1);
    let readers = intake::spawn(&run, &to_read, &queues, gate, &Reading::First);
    drop(to_read);
    // It is opened by letting go of its other end.
    let _ = opened.recv().await;
    for _ in 0..CREATES_AHEAD.min(run.plan.collections.len()) {
        preparers.spawn(prepare::prepare(Arc::clone(&run), prepared.clone()));
    }
    drop(prepared);
    for inbox in queues.into_inboxes() {
        workers.spawn(worker::work(Arc::clone(&run), inbox));
    }
    // An oplog may change which indexes there are, so that none is built before it is applied.
    let indexes = match &run.plan.oplog {
        Some(_) => None,
        None => Some(tokio::spawn(finish::build_indexes(Arc::clone(&run)))),
    };
    run.join(preparers).await;
    if let Err(error) = readers.await {
        run.fail(error);
    }
    run.join(workers).await;
    settle::end(&run, settler).await;
    again::send_doubtful(&run).await;
    sampling::tell_all(&run).await;
    pacer.abort();
    run.pacing.end();
    run.judge_all_failures();
    run.close_rejects().await;
    run.data_ended();
    match (indexes, &run.plan.oplog) {
        (Some(indexes), _) => {
            after_data(&run, indexes).await;
            // Last of all: with --drop the user as whom the run works may be removed.
            users::restore(&run).await;
        }
        (None, Some(oplog)) => {
            // Entries of the oplog may change users.
            users::restore(&run).await;
            after_oplog(&run, oplog).await;
        }
        (None, None) => {}
    }
    for text in run.target.notes() {
        run.observe(&Event::Note { collection: None, text });
    }
    sampler.abort();
    // Until it has ended it holds the run, of which the plan may be large.
    let _ = sampler.await;
    sampling::tell(&run, None);
    run.observe(&Event::PhaseBegan(Phase::Ended));
    run.end()
}

/// Waits for the indexes that are built beside the documents, and does what comes last.
async fn after_data<T: Target>(run: &Arc<Run<T>>, indexes: JoinHandle<()>) {
    run.observe(&Event::PhaseBegan(Phase::Indexes));
    if indexes.await.is_err() {
        run.fail(run::internal("an index builder ended early"));
    }
    finish::create_views(run).await;
    finish::expire(run, indexed::planned(run)).await;
}

/// Replays the oplog and builds the indexes that stand at its end. Views come before it, because it
/// may change them.
async fn after_oplog<T: Target>(run: &Arc<Run<T>>, plan: &OplogPlan) {
    finish::create_views(run).await;
    if let Some(ledger) = &run.ledger {
        ledger.oplog();
        run.sync_ledger().await;
    }
    let catalogue = oplog::replay(run, plan).await;
    run.observe(&Event::PhaseBegan(Phase::Indexes));
    let indexed = indexed::of_catalogue(run, catalogue);
    finish::build(run, indexed.clone()).await;
    finish::expire(run, indexed).await;
}

/// Does work that may wait on a thread of its own, so that signals are heard meanwhile.
pub async fn aside<R: Send + 'static>(
    work: impl FnOnce() -> Result<R, Error> + Send + 'static,
) -> Result<R, Error> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|_| Err(run::internal("work on a thread of its own ended early")))
}

impl LoadSettings {
    /// The settings with this much memory, and as many workers as it has room for beside one
    /// document of the largest size; without a number, with as much memory as they need, for which
    /// workers that need not be are left out first.
    ///
    /// Errors: there is no room for a single worker; says what would be enough.
    pub fn within(mut self, memory: Option<usize>) -> Result<Self, Error> {
        let Some(memory) = memory else {
            while self.memory_min() > MEMORY_DEFAULT
                && self.workers.fixed().is_none()
                && self.workers.most() > WORKERS_DEFAULT
            {
                self.workers = self.workers.lowered();
            }
            self.memory = MEMORY_DEFAULT.max(self.memory_min());
            return Ok(self);
        };
        self.memory = memory;
        while self.memory_min() > memory && self.workers.most() > 1 {
            self.workers = self.workers.lowered();
        }
        if self.memory_min() > memory {
            let message = format!("{} MiB of memory are too few", memory >> 20);
            return Err(Error::new(ErrorKind::Usage, message).hint(format!(
                "these settings need {} MiB; smaller batches (--batch-bytes) and fewer collections \
                 side by side (-j) need less",
                (self.memory_min() >> 20) + 1
            )));
        }
        Ok(self)
    }

    /// What is needed for all buffers and one document of the largest size.
    fn memory_min(&self) -> usize {
        self.memory_for_others(self.workers.most()) + DOCUMENT_BYTES_MAX * LARGE_DOCUMENT_COPIES
    }

    /// What is kept for ordinary documents, whether they come from files or from an archive, whose
    /// open batches may take more than those of all readers.
    fn memory_for_others(&self, workers: usize) -> usize {
        let of_readers = self.readers * self.batch.bytes();
        let of_workers = workers * self.bytes_per_worker();
        self.bytes_before_workers()
            + of_workers
            + ARCHIVE_WAITING_BYTES_MAX.saturating_sub(of_readers)
    }

    /// What is left for large documents: at least one of the largest size passes, even if workers
    /// beyond those that memory is set aside for have taken theirs from it.
    fn memory_for_large(&self) -> usize {
        let largest = DOCUMENT_BYTES_MAX * LARGE_DOCUMENT_COPIES;
        self.memory.saturating_sub(self.memory_for_others(self.workers.provided())).max(largest)
    }

    /// What batches take that are not in a worker's hands, and what they are made of.
    fn bytes_before_workers(&self) -> usize {
        let batch = self.batch.bytes();
        self.readers * (READ_BUFFERS_MAX * READ_BYTES + batch) + QUEUE_BATCHES * batch
    }

    /// What a worker takes: its batch, which exists four times more in the driver while it is
    /// sent (its command, the driver's copy of it, the encoded message and its sections).
    fn bytes_per_worker(&self) -> usize {
        const COPIES_IN_DRIVER: usize = 4;
        self.batch.bytes() * (1 + COPIES_IN_DRIVER)
    }

    /// The settings with batches so small that a limit on the rate shows no bursts.
    fn for_rate(mut self) -> Self {
        if let Some(limit) = self.rate_limit {
            self.batch = limit.narrowed(self.batch);
        }
        self
    }
}

/// The memory that a run's buffers for ordinary documents take at most, in bytes: read buffers per
/// reader, and per batch in the queue, in a reader's or in a worker's hands its own bytes; a batch
/// being sent exists four times more in the driver (its command, the driver's copy, the message,
/// the wire). Workers count as far as there may be any.
pub fn memory_bytes_max(settings: &LoadSettings) -> usize {
    settings.bytes_before_workers() + settings.workers.most() * settings.bytes_per_worker()
}
