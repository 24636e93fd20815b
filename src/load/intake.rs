//! Turns files, or an archive, into batches, on threads of their own.

mod archive;
mod feed;
mod gathering;
pub(super) mod id;
mod salvage;
mod texts;
mod wanted;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::batch::Batch;
use crate::dump::inventory::Origin;
use crate::dump::stream::{Interrupt, Unpacking};
use crate::error::{Error, ErrorKind};
use crate::limits::{CREATES_AHEAD, UNPACK_ASIDE_BYTES_MIN};
use crate::load::run::{Queues, Run, internal};
use crate::plan::Insertion;
use crate::plan::carried::RangeSet;
use crate::reader::{self, Reader};
use crate::report::Event;
use crate::target::Target;
use archive::ArchiveIntake;
use feed::Feed;
use wanted::Step;

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
    reading: Reading,
}

/// Which time it is that the dump is read.
#[derive(Clone, Debug)]
pub(super) enum Reading {
    /// The first: everything that no earlier run has brought.
    First,
    /// Once more, for what another server may have lost; by the collection's place in the plan.
    Again(Arc<HashMap<usize, Missing>>),
}

/// What is read again of a collection.
#[derive(Clone, Debug, Default)]
pub(super) struct Missing {
    /// The stretches of its bytes.
    pub(super) ranges: RangeSet,
    /// The documents in them.
    pub(super) documents: u64,
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
    reading: &Reading,
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
        reading: reading.clone(),
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
                if let Reading::First = self.reading {
                    self.run.observe(&Event::ReadBegan { collection });
                }
                if let Err(error) = self.read(collection) {
                    self.run.fail_collection(collection, &error);
                }
            }
            self.run.finish(collection);
        }
    }

    /// Reads one collection's documents into batches. What was read before an error is sent.
    fn read(&self, collection: usize) -> Result<(), Error> {
        let _reading = self.run.stages.reading.begin();
        if let Some(Origin::Text(texts)) = &self.run.plan.collections[collection].data {
            return self.read_texts(collection, texts);
        }
        let Some(mut reader) = self.open(collection)? else {
            return Ok(());
        };
        reader.within(self.run.memory.clone());
        reader.timed_by(&self.run.stages.read);
        if self.run.salvage.is_some() {
            self.read_around(collection, reader);
            return Ok(());
        }
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
        let mut feed = Feed::of(&self.run, collection, &self.reading);
        let outcome = self.feed(&mut feed, &mut reader, queue);
        if let Some(batch) = feed.cut(reader.position()) {
            self.send(queue, batch);
        }
        feed.end(&self.run);
        self.note_missing(collection, feed.documents());
        outcome
    }

    /// Reads on to the end of what is wanted, of the file, or of the run.
    fn feed(
        &self,
        feed: &mut Feed,
        reader: &mut Reader,
        queue: &async_channel::Sender<Batch>,
    ) -> Result<(), Error> {
        let collection = feed.collection();
        loop {
            let before = reader.position();
            let full = match feed.step(before.offset) {
                Step::Read => match reader.next_frame() {
                    Ok(Some((frame, position))) => feed.push(&self.run, frame, position),
                    Ok(None) => {
                        self.run.read_to_end(collection);
                        return Ok(());
                    }
                    // Nothing came any more, and somebody asked for the end.
                    Err(_) if !self.run.goes_on() => return Ok(()),
                    Err(error) => return Err(error),
                },
                Step::Skip(end) => {
                    reader.skip_to(end)?;
                    feed.pass_over(before, end)
                }
                Step::End => return Ok(()),
            };
            if let Some(batch) = full
                && !self.send(queue, batch)
            {
                return Ok(());
            }
            if let Some(share) = reader.share()
                && let Some(batch) = feed.cut_large(reader.position(), share)
                && !self.send(queue, batch)
            {
                return Ok(());
            }
            if self.run.has_failed() {
                return Ok(());
            }
        }
    }

    /// Opens what a collection's documents come from.
    fn open(&self, collection: usize) -> Result<Option<Reader>, Error> {
        match &self.run.plan.collections[collection].data {
            Some(Origin::File(file)) => reader::open(file).map(Some),
            Some(Origin::Input) => {
                let opened = reader::open_input(Some(self.interrupt()));
                if opened.is_err() && !self.run.goes_on() { Ok(None) } else { opened.map(Some) }
            }
            Some(Origin::Made(made)) => reader::open_made(made).map(Some),
            Some(Origin::Segments(_) | Origin::Text(_)) | None => Ok(None),
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

    /// Hands a batch to the workers; false where reading should end.
    fn send(&self, queue: &async_channel::Sender<Batch>, batch: Batch) -> bool {
        let collection = batch.collection;
        let documents = u64::from(batch.documents);
        if let Reading::First = self.reading {
            self.run.observe(&Event::Read { collection, documents, bytes: batch.document_bytes });
        }
        self.run.begin(collection);
        let is_taken = self.run.stages.held_back.time(|| queue.send_blocking(batch).is_ok());
        if !is_taken {
            self.run.observe(&Event::Unsent { collection, documents });
            self.run.finish(collection);
            return false;
        }
        self.run.goes_on() && !self.run.is_refused(collection)
    }

    /// Counts documents as unsent that were acknowledged, doubted, and could not be read again.
    fn note_missing(&self, collection: usize, read: u64) {
        if let Reading::Again(missing) = &self.reading
            && let Some(missing) = missing.get(&collection)
            && missing.documents > read
        {
            let documents = missing.documents - read;
            self.run.observe(&Event::Unsent { collection, documents });
        }
    }
}
