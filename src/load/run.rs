//! What the threads and tasks of one run share.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bson::oid::ObjectId;
use tokio::sync::OnceCell;
use tokio::task::JoinSet;

use crate::batch::{Batch, BufferPool};
use crate::dump::inventory::{Compression, Origin};
use crate::error::{Error, ErrorKind};
use crate::limits::{FAILURE_SHARE_DOCUMENTS, NARROWED_BYTES_MIN, QUEUE_BATCHES};
use crate::load::gathered::Gathered;
use crate::load::ledger::Ledger;
use crate::load::pacing::Pacing;
use crate::load::prepare::with_retries;
use crate::load::rejects::Rejects;
use crate::load::replay;
use crate::load::salvage::Salvage;
use crate::load::settle::Settling;
use crate::load::stages::Stages;
use crate::load::{Assignment, Ending, FailureLimit, LoadSettings, Stop, Sums, Workers};
use crate::memory::Budget;
use crate::plan::users::Content;
use crate::plan::{CollectionPlan, Creation, RestorePlan};
use crate::report::format::{bytes, counted};
use crate::report::{Event, Observer, Phase, PlannedCollection, Standing, Tally};
use crate::target::{Insert, Target};

/// One run.
pub(super) struct Run<T> {
    pub(super) plan: RestorePlan,
    pub(super) target: Arc<T>,
    pub(super) settings: LoadSettings,
    pub(super) pool: BufferPool,
    /// The memory for large documents.
    pub(super) memory: Budget,
    /// The next collection to prepare, where none is wanted before it.
    next: AtomicUsize,
    /// Collections whose documents wait for them to be prepared.
    wanted: (async_channel::Sender<usize>, async_channel::Receiver<usize>),
    /// Where collections go whose documents are all answered for.
    pub(super) loaded: async_channel::Sender<usize>,
    pub(super) to_index: async_channel::Receiver<usize>,
    /// What an archive brought besides collections.
    pub(super) gathered: Gathered,
    /// What was acknowledged and may still be lost.
    pub(super) settling: Settling,
    /// How many batches may be in flight.
    pub(super) pacing: Pacing,
    /// How busy its stages are.
    pub(super) stages: Stages,
    /// The queue that all workers take from, to see what is in it.
    queue: async_channel::WeakReceiver<Batch>,
    /// Where it is kept what is done.
    pub(super) ledger: Option<Arc<Ledger>>,
    /// What is lost, where damage in the dump is read around.
    pub(super) salvage: Option<Salvage>,
    /// Where refused documents are kept.
    pub(super) rejects: Option<Arc<Rejects>>,
    /// The sums of what is brought, where they are wanted.
    pub(super) sums: Option<Arc<Sums>>,
    /// By what this run is known, however often it is resumed.
    pub(super) id: ObjectId,
    collections: Vec<Progress>,
    observer: Arc<dyn Observer>,
    tally: Mutex<Tally>,
    began: Instant,
    stop: Stop,
    failure: Mutex<Option<Error>>,
    has_failed: AtomicBool,
    /// What is wrong with the dump beyond single collections; ends nothing, but is not forgotten.
    damage: Mutex<Option<Error>>,
    validators_kept: AtomicBool,
    is_abandoned: AtomicBool,
    /// The most bytes of documents that are sent together, because more were not let pass.
    passing_bytes: AtomicUsize,
}

/// How far a collection is.
#[derive(Debug, Default)]
struct Progress {
    /// Whether somebody prepares it, or has.
    is_taken: AtomicBool,
    /// Batches on their way, plus one while the file is being read.
    outstanding: AtomicUsize,
    /// Whether its file was read to the end.
    is_read: AtomicBool,
    /// Whether it cannot be restored completely.
    has_failed: AtomicBool,
    /// Whether the target takes no more of it.
    is_refused: AtomicBool,
    /// Whether a time-series collection takes buckets of mixed schema, once that was asked for.
    takes_mixed_schema: OnceCell<bool>,
}

/// The queues between readers and workers: one that every worker takes from, and one for each
/// worker alone, so that batches whose order matters stay in one pair of hands.
pub(super) struct Queues {
    pub(super) shared: async_channel::Sender<Batch>,
    pub(super) own: Vec<async_channel::Sender<Batch>>,
    inboxes: Vec<Inbox>,
}

/// Where one worker takes its batches from.
pub(super) struct Inbox {
    pub(super) shared: async_channel::Receiver<Batch>,
    pub(super) own: async_channel::Receiver<Batch>,
}

impl Queues {
    /// Queues for all workers that there may be. Only so many of them get batches of their own,
    /// which they hold while they wait for a place, as there is memory set aside for.
    pub(super) fn new(workers: Workers) -> Self {
        let (shared, to_all) = async_channel::bounded(QUEUE_BATCHES);
        let (mut own, inboxes): (Vec<_>, _) = (0..workers.most())
            .map(|_| {
                let (sender, receiver) = async_channel::bounded(1);
                (sender, Inbox { shared: to_all.clone(), own: receiver })
            })
            .unzip();
        own.truncate(workers.provided());
        Self { shared, own, inboxes }
    }

    /// The workers' ends; the readers' ends are given up, so that the queues close with the last
    /// reader.
    pub(super) fn into_inboxes(self) -> Vec<Inbox> {
        self.inboxes
    }
}

/// A planned collection as the observer is told of it; `archive` is the path of the one that all
/// documents come from, if they do.
fn announced(plan: &CollectionPlan, archive: Option<&Arc<str>>) -> PlannedCollection {
    let shown = |path: &Path| path.display().to_string().into();
    let data = plan.data.as_ref();
    let origin = |data: &Origin| match (data, archive) {
        (Origin::Segments(_), Some(archive)) => Arc::clone(archive),
        _ => shown(data.path()),
    };
    PlannedCollection {
        namespace: plan.namespace.clone(),
        kind: plan.kind.name(),
        standing: match plan.creation {
            Creation::Create => Standing::Absent,
            Creation::DropAndCreate => Standing::Dropped,
            Creation::Empty => Standing::Emptied,
            Creation::Use => Standing::Kept,
        },
        metadata: plan.metadata.as_deref().map_or_else(|| "".into(), shown),
        origin: data.map_or_else(|| "".into(), origin),
        origin_bytes: data.and_then(Origin::bytes).unwrap_or(0),
        compressed: data.is_some_and(Origin::hides_document_bytes),
        indexes: plan.indexes.len(),
    }
}

impl<T> Run<T> {
    /// Batches that wait for a worker.
    pub(super) fn queued(&self) -> usize {
        self.queue.upgrade().map_or(0, |queue| queue.len())
    }
}

impl<T: Target> Run<T> {
    pub(super) fn new(assignment: Assignment<T>) -> (Self, Queues) {
        let Assignment {
            plan,
            target,
            settings,
            observer,
            stop,
            ledger,
            salvage,
            rejects,
            sums,
            began,
        } = assignment;
        let settings = settings.for_rate();
        let (loaded, to_index) = async_channel::bounded(plan.collections.len().max(1));
        let buffers = settings.workers.most() + settings.readers + QUEUE_BATCHES;
        let queues = Queues::new(settings.workers);
        let run = Self {
            collections: plan.collections.iter().map(|_| Progress::default()).collect(),
            memory: Budget::new(settings.memory_for_large()),
            pool: BufferPool::new(buffers, 2 * settings.batch.bytes()),
            next: AtomicUsize::new(0),
            wanted: async_channel::unbounded(),
            loaded,
            to_index,
            gathered: Gathered::default(),
            settling: Settling::new(target.acknowledgement()),
            pacing: Pacing::new(&settings),
            id: ledger.as_ref().map_or_else(ObjectId::new, |ledger| ledger.run()),
            stages: Stages::default(),
            queue: queues.inboxes[0].shared.downgrade(),
            ledger,
            salvage: salvage.map(Salvage::into),
            rejects,
            sums,
            plan,
            target,
            settings,
            observer,
            tally: Mutex::default(),
            began,
            stop,
            failure: Mutex::default(),
            has_failed: AtomicBool::new(false),
            damage: Mutex::default(),
            validators_kept: AtomicBool::new(false),
            is_abandoned: AtomicBool::new(false),
            passing_bytes: AtomicUsize::new(usize::MAX),
        };
        if let Some(sums) = &run.sums {
            sums.begin(run.id);
        }
        (run, queues)
    }

    /// The time since the run began.
    pub(super) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// Tells the tally and the observer.
    pub(super) fn observe(&self, event: &Event) {
        let at = self.elapsed();
        self.observer.observe(at, event);
        self.tally.lock().unwrap_or_else(PoisonError::into_inner).apply(at, event);
    }

    /// Tells what the plan holds, and what making it changed.
    pub(super) fn announce(&self) {
        let archive = self.plan.archive().map(|archive| archive.path().display().to_string());
        let archive = archive.map(Arc::from);
        let announced = |plan| Arc::new(announced(plan, archive.as_ref()));
        let collections = self.plan.collections.iter().map(announced);
        self.observe(&Event::Planned { collections: collections.collect() });
        self.announce_stream();
        self.announce_special();
        self.announce_carried();
        let existing = self
            .plan
            .collections
            .iter()
            .filter(|plan| plan.creation == Creation::Use && plan.carried.is_none());
        let existing = existing.count() as u64;
        if existing > 0 {
            let text = format!(
                "{} already there: options stay as they are, documents and indexes are added",
                counted(existing, "collection is", "collections are")
            );
            self.observe(&Event::Note { collection: None, text });
        }
        for (collection, plan) in self.plan.collections.iter().enumerate() {
            let repairs = plan.indexes.iter().flat_map(|index| {
                index.repairs.iter().map(|repair| format!("index `{}`: {repair}", index.name))
            });
            for text in plan.notes.iter().cloned().chain(repairs) {
                self.observe(&Event::Note { collection: Some(collection), text });
            }
        }
        self.observe(&Event::PhaseBegan(Phase::Data));
    }

    /// Tells what an earlier run has brought.
    fn announce_carried(&self) {
        for (collection, plan) in self.plan.collections.iter().enumerate() {
            if let Some(carried) = &plan.carried {
                self.observe(&Event::Carried {
                    collection,
                    inserted: carried.inserted,
                    changes: carried.changes,
                    already_there: carried.already_there,
                    rejected: carried.rejected,
                    conflicts: carried.conflicts,
                    bytes: carried.ranges.bytes(),
                });
            }
        }
    }

    /// Brings what was noted in the ledger to the disk, on a thread of its own, because that may
    /// take its time; where it fails, the restore goes on.
    pub(super) async fn sync_ledger(&self) {
        self.sync_rejects().await;
        let Some(ledger) = self.ledger.clone() else {
            return;
        };
        let path = ledger.path().display().to_string();
        let synced = tokio::task::spawn_blocking(move || ledger.flush()).await;
        if let Ok(Err(error)) = synced {
            let text = format!(
                "the ledger {path} cannot be written any more ({error}); a restore that is resumed \
                 sends again what comes from here on"
            );
            self.observe(&Event::Note { collection: None, text });
        }
    }

    /// Brings refused documents to the disk, and what is done with them into the ledger. Where that
    /// fails, the run ends: they would be lost.
    pub(super) async fn sync_rejects(&self) {
        let Some(rejects) = self.rejects.clone() else {
            return;
        };
        match super::aside(move || rejects.sync()).await {
            Ok(done) => {
                for (collection, done) in done {
                    if let Some(ledger) = &self.ledger {
                        ledger.done(collection, done);
                    }
                }
            }
            Err(error) => self.fail(error),
        }
    }

    /// Writes what comes last of refused documents.
    pub(super) async fn close_rejects(&self) {
        if let Some(rejects) = self.rejects.clone()
            && let Err(error) = super::aside(move || rejects.close()).await
        {
            self.fail(error);
        }
    }

    /// The most bytes of documents that are sent together.
    pub(super) fn passing_bytes(&self) -> usize {
        self.passing_bytes.load(Ordering::Relaxed)
    }

    /// Sends no more than this together from here on, and says so once: `whole` bytes did not get
    /// through, `part` did.
    pub(super) fn narrow(&self, whole: usize, part: usize) {
        let part = part.max(NARROWED_BYTES_MIN);
        let before = self.passing_bytes.fetch_min(part, Ordering::Relaxed);
        if before == usize::MAX {
            let (whole, part) = (bytes(whole as u64), bytes(part as u64));
            let text = format!(
                "connections were lost again and again over batches of {whole}; they are sent in \
                 parts of at most {part} (--batch-bytes)"
            );
            self.observe(&Event::Note { collection: None, text });
        }
    }

    /// Ends the run where more documents were refused than was asked for.
    pub(super) fn judge_failures(&self) {
        if let Some(limit) = self.settings.failure_limit {
            self.judge_failures_by(limit, FAILURE_SHARE_DOCUMENTS);
        }
    }

    /// The same at the end, when all documents are read.
    pub(super) fn judge_all_failures(&self) {
        if let Some(limit) = self.settings.failure_limit
            && self.goes_on()
        {
            self.judge_failures_by(limit, 1);
        }
    }

    fn judge_failures_by(&self, limit: FailureLimit, read_min: u64) {
        let balance = self.tally.lock().unwrap_or_else(PoisonError::into_inner).balance();
        if limit.is_passed(balance.rejected, balance.read, read_min) {
            self.fail(limit.passed(balance.rejected, balance.read));
        }
    }

    /// Tells of the one stream that all documents come from, where that is so.
    fn announce_stream(&self) {
        let mut origins = self.plan.collections.iter().filter_map(|plan| plan.data.as_ref());
        let (bytes, compressed) = match self.plan.archive() {
            Some(archive) => (archive.bytes(), archive.compression() != Compression::None),
            None if origins.any(|origin| matches!(origin, Origin::Input)) => (None, false),
            None => return,
        };
        self.observe(&Event::OneStream { bytes, compressed });
    }

    /// The next collection to prepare: one whose documents wait, or the next of the plan.
    pub(super) fn next_to_prepare(&self) -> Option<usize> {
        self.next_wanted().or_else(|| self.next_of_plan()).or_else(|| self.next_wanted())
    }

    fn next_wanted(&self) -> Option<usize> {
        std::iter::from_fn(|| self.wanted.1.try_recv().ok()).find(|wanted| self.take(*wanted))
    }

    fn next_of_plan(&self) -> Option<usize> {
        let all = self.collections.len();
        let next = || Some(self.next.fetch_add(1, Ordering::AcqRel)).filter(|next| *next < all);
        std::iter::from_fn(next).find(|next| self.take(*next))
    }

    /// Takes a collection to prepare it, unless somebody has.
    fn take(&self, collection: usize) -> bool {
        !self.collections[collection].is_taken.swap(true, Ordering::AcqRel)
    }

    /// Asks for a collection to be prepared before those of which no documents have come yet.
    pub(super) fn want(&self, collection: usize) {
        if !self.collections[collection].is_taken.load(Ordering::Acquire) {
            // The channel has no bound and lives as long as the run.
            let _ = self.wanted.0.try_send(collection);
        }
    }

    /// No further collection is prepared but those that are wanted, because no documents of others
    /// will come.
    pub(super) fn prepare_no_more(&self) {
        // Who sees this sees what was wanted before, and looks at that last.
        self.next.store(self.collections.len(), Ordering::Release);
    }

    /// Notes what is wrong with the dump as a whole; the first one counts.
    pub(super) fn note_damage(&self, error: Error) {
        self.damage.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }

    /// Bytes of documents read of a collection.
    pub(super) fn bytes_read(&self, collection: usize) -> u64 {
        let tally = self.tally.lock().unwrap_or_else(PoisonError::into_inner);
        tally.collections().get(collection).map_or(0, |tally| tally.counts.bytes_read)
    }

    /// Tells of users, roles and the oplog, and what was noticed about the whole.
    fn announce_special(&self) {
        if let Some(plan) = &self.plan.users {
            let names = |part: &Option<crate::plan::users::Part>| {
                part.as_ref().map(|part| part.names.clone()).unwrap_or_default()
            };
            let (users, roles) = match &plan.content {
                Content::Read(accounts) => (names(&accounts.users), names(&accounts.roles)),
                Content::Awaited(_) => (Vec::new(), Vec::new()),
            };
            self.observe(&Event::UsersPlanned { users, roles });
        }
        if let Some(plan) = &self.plan.oplog {
            let path = plan.origin.path().display().to_string();
            self.observe(&Event::OplogPlanned { path });
        }
        for text in &self.plan.notes {
            self.observe(&Event::Note { collection: None, text: text.clone() });
        }
    }

    /// Whether new work may still begin.
    pub(super) fn goes_on(&self) -> bool {
        !self.has_failed() && !self.stop.is_requested()
    }

    /// Whether an error ended the run, so that nothing more is sent.
    pub(super) fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Acquire)
    }

    /// Sends nothing more after a stop that was asked for while the server was away.
    pub(super) fn abandon(&self) {
        self.is_abandoned.store(true, Ordering::Release);
    }

    /// Whether batches that wait are still sent.
    pub(super) fn sends(&self, collection: usize) -> bool {
        !self.has_failed()
            && !self.is_abandoned.load(Ordering::Acquire)
            && !self.is_refused(collection)
    }

    /// Ends the run with this error; the first one counts.
    pub(super) fn fail(&self, error: Error) {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        self.has_failed.store(true, Ordering::Release);
    }

    /// Gives a collection up that the target does not take; what was written of it stays.
    pub(super) fn refuse_collection(&self, collection: usize, error: &Error) {
        self.collections[collection].is_refused.store(true, Ordering::Release);
        self.fail_collection(collection, error);
    }

    /// Notes that a collection cannot be restored completely; what was read of it is still sent.
    pub(super) fn fail_collection(&self, collection: usize, error: &Error) {
        let was_failed = self.collections[collection].has_failed.swap(true, Ordering::AcqRel);
        if !was_failed {
            let error = match error.hint_text() {
                Some(hint) => format!("{error}; {hint}"),
                None => error.to_string(),
            };
            self.observe(&Event::CollectionFailed { collection, error });
        }
    }

    pub(super) fn collection_has_failed(&self, collection: usize) -> bool {
        self.collections[collection].has_failed.load(Ordering::Acquire)
    }

    /// Whether the target takes no more of a collection.
    pub(super) fn is_refused(&self, collection: usize) -> bool {
        self.collections[collection].is_refused.load(Ordering::Acquire)
    }

    /// Counts a batch, or the reading of the file, as on its way.
    pub(super) fn begin(&self, collection: usize) {
        self.collections[collection].outstanding.fetch_add(1, Ordering::AcqRel);
    }

    /// Notes that the collection's file was read to its end.
    pub(super) fn read_to_end(&self, collection: usize) {
        self.collections[collection].is_read.store(true, Ordering::Release);
    }

    /// Whether every document of the collection was read and answered for, once nothing of it is
    /// on its way.
    pub(super) fn is_loaded(&self, collection: usize) -> bool {
        let progress = &self.collections[collection];
        progress.is_read.load(Ordering::Acquire)
            && !progress.has_failed.load(Ordering::Acquire)
            && !self.has_failed()
    }

    /// Counts it as answered for; the last one ends the collection's data.
    pub(super) fn finish(&self, collection: usize) {
        if self.collections[collection].outstanding.fetch_sub(1, Ordering::AcqRel) == 1 {
            if self.is_loaded(collection) {
                self.observe(&Event::DataEnded { collection });
            }
            // The channel has room for every collection and lives as long as the run.
            let _ = self.loaded.try_send(collection);
        }
    }

    /// No collection will be handed to the index builders any more.
    pub(super) fn data_ended(&self) {
        self.loaded.close();
    }

    /// How the documents of a collection are inserted.
    pub(super) fn insert(&self, collection: usize) -> Insert {
        let may_bypass = !self.validators_kept.load(Ordering::Relaxed);
        Insert {
            mode: self.settings.write_mode,
            keys: self.settings.keys.clone(),
            names: self.settings.names,
            ..replay::insert_of(&self.plan.collections[collection], may_bypass)
        }
    }

    /// Lets a time-series collection take buckets of mixed schema, as the one that was dumped did;
    /// asked for once, whoever needs it first. Says whether it takes them now.
    pub(super) async fn takes_mixed_schema(&self, collection: usize) -> bool {
        let namespace = &self.plan.collections[collection].namespace;
        let ask = async {
            let allow = || self.target.allow_mixed_schema(namespace);
            let refusal = with_retries(self, collection, allow).await.err();
            let takes = refusal.is_none();
            let mixed =
                "its buckets hold several types under one name, as those of old servers may";
            let text = match refusal {
                None => format!("{mixed}; it is told so (timeseriesBucketsMayHaveMixedSchemaData)"),
                Some(error) => format!("{mixed}, and the server takes none that do: {error}"),
            };
            self.observe(&Event::Note { collection: Some(collection), text });
            takes
        };
        *self.collections[collection].takes_mixed_schema.get_or_init(|| ask).await
    }

    /// Goes on without bypassing validators, and says so once.
    pub(super) fn keep_validators(&self) {
        if !self.validators_kept.swap(true, Ordering::Relaxed) {
            let text = "the user may not bypass validators (bypassDocumentValidation), so they \
                        judge every document; the role `restore` has that right";
            self.observe(&Event::Note { collection: None, text: text.to_owned() });
        }
    }

    /// Waits for tasks; one that panicked ends the run.
    pub(super) async fn join(&self, mut tasks: JoinSet<()>) {
        while let Some(ended) = tasks.join_next().await {
            if ended.is_err() {
                self.fail(internal("a task of the loader ended early"));
            }
        }
    }

    /// The counts, and how the run ended.
    pub(super) fn end(&self) -> (Tally, Ending) {
        // Taken, not copied: of very many collections it is large.
        let tally = std::mem::take(&mut *self.tally.lock().unwrap_or_else(PoisonError::into_inner));
        let failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner).take();
        let ending = match failure {
            Some(error) => Ending::Stopped(error),
            None if self.stop.is_requested() => Ending::Interrupted,
            None => {
                let damage = self.damage.lock().unwrap_or_else(PoisonError::into_inner).take();
                damage.map_or(Ending::Finished, Ending::Stopped)
            }
        };
        (tally, ending)
    }
}

/// A broken invariant of this program.
pub(super) fn internal(message: &str) -> Error {
    Error::new(ErrorKind::Internal, message)
        .hint("this is a defect of restorm; please report it with the output above")
}
