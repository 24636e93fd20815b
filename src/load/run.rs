//! What the threads and tasks of one run share.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use tokio::task::JoinSet;

use crate::batch::{Batch, BufferPool};
use crate::error::{Error, ErrorKind};
use crate::limits::QUEUE_BATCHES;
use crate::load::{Ending, LoadSettings, Stop};
use crate::plan::{Creation, Insertion, RestorePlan, Validation};
use crate::report::format::counted;
use crate::report::{Event, Observer, Phase, PlannedCollection, Tally};
use crate::target::{Insert, OnRefusal, Target, Validators};

/// One run.
pub(super) struct Run<T> {
    pub(super) plan: RestorePlan,
    pub(super) target: Arc<T>,
    pub(super) settings: LoadSettings,
    pub(super) pool: BufferPool,
    /// The next collection to prepare.
    pub(super) next: AtomicUsize,
    /// Where collections go whose documents are all answered for.
    pub(super) loaded: async_channel::Sender<usize>,
    pub(super) to_index: async_channel::Receiver<usize>,
    collections: Vec<Progress>,
    observer: Arc<dyn Observer>,
    tally: Mutex<Tally>,
    began: Instant,
    stop: Stop,
    failure: Mutex<Option<Error>>,
    has_failed: AtomicBool,
    validators_kept: AtomicBool,
    is_abandoned: AtomicBool,
}

/// How far a collection is.
#[derive(Debug, Default)]
struct Progress {
    /// Batches on their way, plus one while the file is being read.
    outstanding: AtomicUsize,
    /// Whether its file was read to the end.
    is_read: AtomicBool,
    /// Whether it cannot be restored completely.
    has_failed: AtomicBool,
    /// Whether the target takes no more of it.
    is_refused: AtomicBool,
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
    fn new(workers: usize) -> Self {
        let (shared, to_all) = async_channel::bounded(QUEUE_BATCHES);
        let (own, inboxes) = (0..workers)
            .map(|_| {
                let (sender, receiver) = async_channel::bounded(1);
                (sender, Inbox { shared: to_all.clone(), own: receiver })
            })
            .unzip();
        Self { shared, own, inboxes }
    }

    /// The workers' ends; the readers' ends are given up, so that the queues close with the last
    /// reader.
    pub(super) fn into_inboxes(self) -> Vec<Inbox> {
        self.inboxes
    }
}

impl<T: Target> Run<T> {
    pub(super) fn new(
        plan: RestorePlan,
        target: Arc<T>,
        settings: LoadSettings,
        observer: Arc<dyn Observer>,
        stop: Stop,
        began: Instant,
    ) -> (Self, Queues) {
        let (loaded, to_index) = async_channel::unbounded();
        let buffers = settings.workers + settings.readers + QUEUE_BATCHES;
        let run = Self {
            collections: plan.collections.iter().map(|_| Progress::default()).collect(),
            pool: BufferPool::new(buffers, 2 * settings.batch.bytes()),
            next: AtomicUsize::new(0),
            loaded,
            to_index,
            plan,
            target,
            settings,
            observer,
            tally: Mutex::default(),
            began,
            stop,
            failure: Mutex::default(),
            has_failed: AtomicBool::new(false),
            validators_kept: AtomicBool::new(false),
            is_abandoned: AtomicBool::new(false),
        };
        (run, Queues::new(settings.workers))
    }

    /// Tells the tally and the observer.
    pub(super) fn observe(&self, event: &Event) {
        let at = self.began.elapsed();
        self.observer.observe(at, event);
        self.tally.lock().unwrap_or_else(PoisonError::into_inner).apply(at, event);
    }

    /// Tells what the plan holds, and what making it changed.
    pub(super) fn announce(&self) {
        let collections = self.plan.collections.iter().map(|plan| PlannedCollection {
            namespace: plan.namespace.clone(),
            kind: plan.kind.name(),
            origin: plan
                .data
                .as_ref()
                .map_or_else(String::new, |data| data.path.display().to_string()),
            origin_bytes: plan.data.as_ref().map_or(0, |data| data.bytes),
            compressed: plan
                .data
                .as_ref()
                .is_some_and(|data| data.compression != crate::dump::inventory::Compression::None),
            indexes: plan.indexes.len(),
        });
        self.observe(&Event::Planned { collections: collections.collect() });
        let existing = self.plan.collections.iter().filter(|plan| plan.creation == Creation::Use);
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
            // The channel has no bound and lives as long as the run.
            let _ = self.loaded.try_send(collection);
        }
    }

    /// No collection will be handed to the index builders any more.
    pub(super) fn data_ended(&self) {
        self.loaded.close();
    }

    /// How the documents of a collection are inserted.
    pub(super) fn insert(&self, collection: usize) -> Insert {
        let plan = &self.plan.collections[collection];
        // A server never bypasses the check of time-series buckets.
        let bypasses = plan.validation == Validation::Bypassed
            && plan.namespace == plan.data_namespace
            && !self.validators_kept.load(Ordering::Relaxed);
        Insert {
            namespace: plan.data_namespace.clone(),
            on_refusal: match plan.insertion {
                Insertion::InOrder => OnRefusal::Stop,
                Insertion::AnyOrder => OnRefusal::GoOn,
            },
            validators: if bypasses { Validators::Bypassed } else { Validators::Applied },
        }
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
        let tally = self.tally.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner).take();
        let ending = match failure {
            Some(error) => Ending::Stopped(error),
            None if self.stop.is_requested() => Ending::Interrupted,
            None => Ending::Finished,
        };
        (tally, ending)
    }
}

/// A broken invariant of this program.
pub(super) fn internal(message: &str) -> Error {
    Error::new(ErrorKind::Internal, message)
        .hint("this is a defect of restorm; please report it with the output above")
}
