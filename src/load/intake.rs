//! Turns files, or an archive, into batches, on threads of their own.

mod archive;
mod gathering;
mod id;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::batch::{Batch, Batcher, Position};
use crate::dump::inventory::Origin;
use crate::dump::stream::{Interrupt, Unpacking};
use crate::error::{Error, ErrorKind};
use crate::frame::{Frame, FrameError};
use crate::limits::{CREATES_AHEAD, UNPACK_ASIDE_BYTES_MIN};
use crate::load::run::{Queues, Run, internal};
use crate::load::worker::{id_text, stopped_at};
use crate::load::{DocumentCheck, OnRejection};
use crate::plan::Insertion;
use crate::reader::{self, Reader};
use crate::report::format::counted;
use crate::report::{Event, Rejection};
use crate::target::{Target, WriteFailure};
use archive::ArchiveIntake;
use id::IdChange;

/// `InvalidBSON`, as a server would say of a document that is damaged.
const INVALID_BSON: i32 = 22;

/// The way from those who prepare collections to those who read them. Collections with files of
/// their own are prepared a little ahead; in an archive any of them may come next, so nobody waits.
pub(super) fn channel<T: Target>(
    run: &Run<T>,
) -> (async_channel::Sender<usize>, async_channel::Receiver<usize>) {
    match run.plan.archive() {
        Some(_) => async_channel::unbounded(),
        None => async_channel::bounded(CREATES_AHEAD),
    }
}

/// Where readers put batches.
struct Intake<T> {
    run: Arc<Run<T>>,
    shared: async_channel::Sender<Batch>,
    own: Vec<async_channel::Sender<Batch>>,
    /// The worker that takes the next collection whose order matters.
    next_worker: Arc<AtomicUsize>,
    /// Whether there are cores for threads that unpack.
    unpacks_aside: bool,
}

/// Keeps collections from being dropped and created while it is there.
pub(super) type Gate = async_channel::Sender<()>;

/// Starts the readers; the result is there when the last one has ended. They open the gate once
/// nothing is in the way of a beginning.
pub(super) fn spawn<T: Target>(
    run: &Arc<Run<T>>,
    to_read: &async_channel::Receiver<usize>,
    queues: &Queues,
    gate: Gate,
) -> impl Future<Output = Result<(), Error>> + Send + 'static {
    let next_worker = Arc::new(AtomicUsize::new(0));
    let readers = match run.plan.archive() {
        Some(_) => 1,
        None => run.settings.readers.min(run.plan.collections.len()),
    };
    // Where readers alone keep all cores busy, more threads only cost.
    let unpacks_aside = thread::available_parallelism().is_ok_and(|cores| readers < cores.get());
    let intake = || Intake {
        run: Arc::clone(run),
        shared: queues.shared.clone(),
        own: queues.own.clone(),
        next_worker: Arc::clone(&next_worker),
        unpacks_aside,
    };
    let readers: Vec<_> = match run.plan.archive().cloned() {
        Some(archive) => {
            let reader = ArchiveIntake::new(intake(), to_read.clone(), gate);
            vec![tokio::task::spawn_blocking(move || reader.read(&archive))]
        }
        None => (0..run.settings.readers)
            .map(|_| (intake(), to_read.clone()))
            .map(|(intake, to_read)| tokio::task::spawn_blocking(move || intake.read_all(&to_read)))
            .collect(),
    };
    async {
        for reader in readers {
            reader.await.map_err(|_| internal("a reader ended early"))?;
        }
        Ok(())
    }
}

/// Reads while a thread of its own unpacks what is read, if there is anything to unpack. The thread
/// ends before this returns, so `read` has to drop what it reads from.
fn beside(
    unpacking: Option<Unpacking>,
    read: impl FnOnce() -> Result<(), Error>,
) -> Result<(), Error> {
    let Some(unpacking) = unpacking else { return read() };
    // Not one of the runtime's threads: of these there may be no more than readers.
    thread::scope(|scope| {
        let named = thread::Builder::new().name("unpacking".to_owned());
        match named.spawn_scoped(scope, || unpacking.run()) {
            Ok(_) => read(),
            Err(error) => {
                let message = format!("no thread can be started to unpack: {error}");
                Err(Error::new(ErrorKind::Read, message))
            }
        }
    })
}

impl<T: Target> Intake<T> {
    fn read_all(&self, to_read: &async_channel::Receiver<usize>) {
        while let Ok(collection) = to_read.recv_blocking() {
            if self.run.goes_on() {
                self.run.observe(&Event::ReadBegan { collection });
                if let Err(error) = self.read(collection) {
                    self.run.fail_collection(collection, &error);
                }
            }
            self.run.finish(collection);
        }
    }

    /// Reads one collection's documents into batches. What was read before an error is sent.
    fn read(&self, collection: usize) -> Result<(), Error> {
        let Some(mut reader) = self.open(collection)? else {
            return Ok(());
        };
        let data = self.run.plan.collections[collection].data.as_ref();
        let is_small =
            data.and_then(Origin::file).is_some_and(|file| file.bytes < UNPACK_ASIDE_BYTES_MIN);
        let goes_aside = self.unpacks_aside && !is_small;
        let unpacking = if goes_aside { reader.unpack_aside() } else { None };
        beside(unpacking, move || self.read_from(reader, collection))
    }

    /// Reads documents into batches until they end or are not wanted any more.
    fn read_from(&self, mut reader: Reader, collection: usize) -> Result<(), Error> {
        let queue = match self.own_queue(collection) {
            Some(worker) => &self.own[worker],
            None => &self.shared,
        };
        let mut batcher = self.batcher(collection);
        let mut without_id = 0_u64;
        let outcome = loop {
            let (frame, position) = match reader.next_frame() {
                Ok(Some(next)) => next,
                Ok(None) => {
                    self.run.read_to_end(collection);
                    break Ok(());
                }
                // Nothing came any more, and somebody asked for the end.
                Err(_) if !self.run.goes_on() => break Ok(()),
                Err(error) => break Err(error),
            };
            if self.run.settings.document_check == DocumentCheck::Structure
                && let Err(damage) = frame.validate()
            {
                if !self.reject(collection, frame, position, &damage) {
                    break Ok(());
                }
                continue;
            }
            let (stored, change) = id::stored_form(frame);
            without_id += u64::from(change == IdChange::New);
            let frame = stored.as_deref().and_then(|bytes| Frame::new(bytes).ok()).unwrap_or(frame);
            let full = batcher.push(frame, position);
            if let Some(batch) = full
                && !self.send(queue, batch)
            {
                break Ok(());
            }
        };
        if let Some(batch) = batcher.finish(reader.position()) {
            self.send(queue, batch);
        }
        self.note_missing_ids(collection, without_id);
        outcome
    }

    /// Counts a damaged document as rejected; false where reading should end.
    fn reject(
        &self,
        collection: usize,
        frame: Frame<'_>,
        position: Position,
        damage: &FrameError,
    ) -> bool {
        let failure = WriteFailure {
            index: 0,
            code: INVALID_BSON,
            message: format!("not sent: {damage}; it lies at byte {} of the file", position.offset),
        };
        let rejection =
            Rejection { code: failure.code, message: failure.message.clone(), id: id_text(frame) };
        let bytes = frame.bytes().len() as u64;
        self.run.observe(&Event::Damaged { collection, bytes, rejection });
        if self.run.settings.on_rejection == OnRejection::StopRun {
            let namespace = &self.run.plan.collections[collection].namespace;
            self.run.fail(stopped_at(&failure).of(namespace));
        }
        self.run.goes_on()
    }

    /// Opens what a collection's documents come from.
    fn open(&self, collection: usize) -> Result<Option<Reader>, Error> {
        match &self.run.plan.collections[collection].data {
            Some(Origin::File(file)) => reader::open(file).map(Some),
            Some(Origin::Input) => {
                let opened = reader::open_input(Some(self.interrupt()));
                if opened.is_err() && !self.run.goes_on() { Ok(None) } else { opened.map(Some) }
            }
            Some(Origin::Segments(_)) | None => Ok(None),
        }
    }

    /// Ends the waiting for a pipe together with the run.
    fn interrupt(&self) -> Interrupt {
        let run = Arc::clone(&self.run);
        Interrupt::when(move || !run.goes_on())
    }

    /// The worker that a collection whose order matters belongs to; each call names the next one.
    fn own_queue(&self, collection: usize) -> Option<usize> {
        match self.run.plan.collections[collection].insertion {
            Insertion::AnyOrder => None,
            Insertion::InOrder => {
                let worker = self.next_worker.fetch_add(1, Ordering::Relaxed);
                Some(worker % self.own.len())
            }
        }
    }

    fn batcher(&self, collection: usize) -> Batcher {
        let settings = &self.run.settings;
        let pool = self.run.pool.clone();
        Batcher::new(collection, settings.batch, settings.zero_timestamps, pool)
    }

    /// Hands a batch to the workers; false where reading should end.
    fn send(&self, queue: &async_channel::Sender<Batch>, batch: Batch) -> bool {
        let collection = batch.collection;
        let documents = u64::from(batch.documents);
        self.run.observe(&Event::Read { collection, documents, bytes: batch.document_bytes });
        self.run.begin(collection);
        if queue.send_blocking(batch).is_err() {
            self.run.observe(&Event::Unsent { collection, documents });
            self.run.finish(collection);
            return false;
        }
        self.run.goes_on() && !self.run.is_refused(collection)
    }

    fn note_missing_ids(&self, collection: usize, documents: u64) {
        if documents > 0 {
            let documents = counted(documents, "document", "documents");
            let text = format!("{documents} without an _id got a new one");
            self.run.observe(&Event::Note { collection: Some(collection), text });
        }
    }
}
