//! Turns files into batches, on threads of their own.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bson::oid::ObjectId;

use crate::batch::{Batch, Batcher, Position};
use crate::error::Error;
use crate::frame::{Field, Frame, FrameError};
use crate::load::run::{Queues, Run, internal};
use crate::load::worker::{id_text, stopped_at};
use crate::load::{DocumentCheck, OnRejection};
use crate::plan::Insertion;
use crate::reader;
use crate::report::format::counted;
use crate::report::{Event, Rejection};
use crate::target::{Target, WriteFailure};

/// `InvalidBSON`, as a server would say of a document that is damaged.
const INVALID_BSON: i32 = 22;

/// Where readers put batches.
struct Intake<T> {
    run: Arc<Run<T>>,
    shared: async_channel::Sender<Batch>,
    own: Vec<async_channel::Sender<Batch>>,
    /// The worker that takes the next collection whose order matters.
    next_worker: Arc<AtomicUsize>,
}

/// Starts the readers; the result is there when the last one has ended.
pub(super) fn spawn<T: Target>(
    run: &Arc<Run<T>>,
    to_read: &async_channel::Receiver<usize>,
    queues: &Queues,
) -> impl Future<Output = Result<(), Error>> + Send + 'static {
    let next_worker = Arc::new(AtomicUsize::new(0));
    let readers: Vec<_> = (0..run.settings.readers)
        .map(|_| {
            let intake = Intake {
                run: Arc::clone(run),
                shared: queues.shared.clone(),
                own: queues.own.clone(),
                next_worker: Arc::clone(&next_worker),
            };
            let to_read = to_read.clone();
            tokio::task::spawn_blocking(move || intake.read_all(&to_read))
        })
        .collect();
    async {
        for reader in readers {
            reader.await.map_err(|_| internal("a reader ended early"))?;
        }
        Ok(())
    }
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

    /// Reads one collection's file into batches. What was read before an error is sent.
    fn read(&self, collection: usize) -> Result<(), Error> {
        let plan = &self.run.plan.collections[collection];
        let Some(data) = &plan.data else {
            return Ok(());
        };
        let queue = match plan.insertion {
            Insertion::AnyOrder => &self.shared,
            Insertion::InOrder => {
                let worker = self.next_worker.fetch_add(1, Ordering::Relaxed);
                &self.own[worker % self.own.len()]
            }
        };
        let settings = &self.run.settings;
        let mut batcher = Batcher::new(
            collection,
            settings.batch,
            settings.zero_timestamps,
            self.run.pool.clone(),
        );
        let mut reader = reader::open(data)?;
        let mut without_id = 0_u64;
        let outcome = loop {
            let (frame, position) = match reader.next_frame() {
                Ok(Some(next)) => next,
                Ok(None) => {
                    self.run.read_to_end(collection);
                    break Ok(());
                }
                Err(error) => break Err(error),
            };
            if settings.document_check == DocumentCheck::Structure
                && let Err(damage) = frame.validate()
            {
                if !self.reject(collection, frame, position, &damage) {
                    break Ok(());
                }
                continue;
            }
            let stored = if frame.starts_with_id() {
                None
            } else if frame.id().is_some() {
                with_id_in_front(frame)
            } else {
                without_id += 1;
                Some(with_new_id(frame))
            };
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

/// The document with its `_id` moved to the front, as a server stores it; moved here, so that what
/// is stored can be recognised as this document. Nothing where its fields cannot be told apart.
fn with_id_in_front(frame: Frame<'_>) -> Option<Vec<u8>> {
    let mut fields: Vec<Field<'_>> = frame.fields().collect::<Result<_, _>>().ok()?;
    let place = fields.iter().position(|field| field.name == b"_id")?;
    fields[..=place].rotate_right(1);
    let document = frame.bytes();
    let mut bytes = Vec::with_capacity(document.len());
    bytes.extend_from_slice(&document[..4]);
    for field in fields {
        bytes.push(field.kind);
        bytes.extend_from_slice(field.name);
        bytes.push(0);
        bytes.extend_from_slice(field.value);
    }
    bytes.push(0);
    Some(bytes)
}

/// The document with a new `_id` in front, as a server would add it; added here, so that a batch
/// sent twice cannot leave the document there twice.
fn with_new_id(frame: Frame<'_>) -> Vec<u8> {
    const FIELD: &[u8] = b"\x07_id\0";
    let id = ObjectId::new().bytes();
    let document = frame.bytes();
    let length = document.len() + FIELD.len() + id.len();
    let mut bytes = Vec::with_capacity(length);
    bytes.extend_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes());
    bytes.extend_from_slice(FIELD);
    bytes.extend_from_slice(&id);
    bytes.extend_from_slice(&document[4..]);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::doc;

    #[test]
    fn an_id_is_put_in_front() {
        let bytes = doc! { "a": 1, "b": "two" }.to_vec().expect("encodes");
        let with = with_new_id(Frame::new(&bytes).expect("a frame"));
        let frame = Frame::new(&with).expect("a frame");
        assert!(frame.starts_with_id());
        frame.validate().expect("valid");
        assert_eq!(frame.fields().count(), 3);
    }

    #[test]
    fn an_id_further_back_is_moved_to_the_front() {
        let bytes = doc! { "a": 1, "b": [ { "_id": 9 } ], "_id": "x", "c": 2 }.to_vec();
        let moved = with_id_in_front(Frame::new(&bytes.expect("encodes")).expect("a frame"));
        let expected = doc! { "_id": "x", "a": 1, "b": [ { "_id": 9 } ], "c": 2 }.to_vec();
        assert_eq!(moved, Some(expected.expect("encodes")));
        let without = doc! { "a": 1 }.to_vec().expect("encodes");
        assert_eq!(with_id_in_front(Frame::new(&without).expect("a frame")), None);
    }
}
