//! Groups the documents of one collection up to the limits of one message.
//!
//! A batch holds its documents as the bytes of a BSON array, which is the form in which an
//! `insert` command carries them: each document is copied once, behind its type byte and its
//! decimal index, and nothing is decoded. Buffers are returned to a pool and used again, because
//! fresh memory of this size costs a page fault every 4 KiB.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use crate::frame::{ElementKey, Frame};
use crate::limits::{BATCH_BYTES_MAX, BATCH_DOCUMENTS_MAX};
use crate::memory::Share;

/// The type byte of a document inside an array.
const DOCUMENT: u8 = 0x03;

/// The bytes before the first element of an array: its length.
const ARRAY_HEADER: usize = 4;

/// The longest decimal index with its type byte and terminator.
const KEY_BYTES_MAX: usize = 8;

/// Where a document lies in its source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// The byte offset in the uncompressed content.
    pub offset: u64,
    /// The bytes of the file itself that have been consumed up to here; differs from the offset
    /// where the file is compressed.
    pub origin: u64,
    /// How many bytes the documents of its collection have up to its end, uncompressed: by this a
    /// document is found again, in a file of its own as in an archive.
    pub end: u64,
}

/// Whether a document may have been sent before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sent {
    /// It was not.
    #[default]
    Never,
    /// It may have been, by an earlier run or to a server that has lost it since.
    Maybe,
}

/// How large a batch may grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchLimits {
    documents: usize,
    bytes: usize,
}

impl BatchLimits {
    /// Limits brought into what one message can carry: 1 to 100 000 documents, and at most as
    /// many bytes as a command holds.
    pub fn new(documents: usize, bytes: usize) -> Self {
        Self {
            documents: documents.clamp(1, BATCH_DOCUMENTS_MAX),
            bytes: bytes.clamp(1, BATCH_BYTES_MAX),
        }
    }

    /// The most documents in a batch.
    pub fn documents(&self) -> usize {
        self.documents
    }

    /// The most bytes in a batch, unless one document alone is more.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

/// The documents of one collection that are sent together.
#[derive(Debug)]
pub struct Batch {
    /// The collection's place in the plan.
    pub collection: usize,
    /// The number of documents, at least one.
    pub documents: u32,
    /// The bytes of the documents themselves.
    pub document_bytes: u64,
    /// The bytes of the file that this batch used up, for progress.
    pub origin_bytes: u64,
    /// Where the first document lies in its source.
    pub first: Position,
    /// The bytes of the collection's documents that are done with once this batch is: its own
    /// documents and the damaged ones among them.
    pub range: Range<u64>,
    /// Documents of the range that are damaged, so that they are not sent.
    pub damaged: u32,
    /// Whether its documents may have been sent before.
    pub sent: Sent,
    /// The memory that a large document takes; given back with the batch.
    pub share: Option<Arc<Share>>,
    /// The indexes of documents whose zero timestamps an ordinary insert would not keep.
    pub detours: Vec<u32>,
    /// The indexes of documents that got their `_id` here, so that no stored one has it; noted
    /// where stored ones are looked up.
    pub fresh: Box<[u32]>,
    /// The documents that do not lie where the one before them ends, and where they lie.
    jumps: Vec<(u32, u64)>,
    array: Vec<u8>,
    pool: Option<BufferPool>,
}

impl Batch {
    /// The documents as the bytes of a BSON array.
    pub fn array(&self) -> &[u8] {
        &self.array
    }

    /// The documents one by one, in their order.
    pub fn frames(&self) -> impl Iterator<Item = Frame<'_>> {
        let mut rest = &self.array[ARRAY_HEADER..self.array.len() - 1];
        std::iter::from_fn(move || {
            let key_end = rest.iter().position(|&byte| byte == 0)? + 1;
            let document = &rest[key_end..];
            let length = i32::from_le_bytes(*document.first_chunk::<4>()?);
            let (document, after) = document.split_at(usize::try_from(length).ok()?);
            rest = after;
            Frame::new(document).ok()
        })
    }

    /// The documents with the offsets at which they lie in their source.
    pub fn located(&self) -> impl Iterator<Item = (u64, Frame<'_>)> {
        let mut jumps = self.jumps.iter().peekable();
        let mut next = self.first.offset;
        (0_u32..).zip(self.frames()).map(move |(index, frame)| {
            let offset = jumps.next_if(|jump| jump.0 == index).map_or(next, |jump| jump.1);
            next = offset + frame.bytes().len() as u64;
            (offset, frame)
        })
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        if let Some(pool) = &self.pool {
            pool.give_back(std::mem::take(&mut self.array));
        }
    }
}

/// Buffers that wait to be filled again.
#[derive(Clone, Debug)]
pub struct BufferPool {
    buffers: Arc<Mutex<Vec<Vec<u8>>>>,
    kept_max: usize,
    bytes_max: usize,
}

impl BufferPool {
    /// A pool that keeps at most `kept_max` buffers, none of them above `bytes_max`: the rare
    /// buffer that held a huge document is freed rather than kept.
    pub fn new(kept_max: usize, bytes_max: usize) -> Self {
        Self { buffers: Arc::default(), kept_max, bytes_max }
    }

    fn take(&self) -> Vec<u8> {
        let mut buffers = self.buffers.lock().unwrap_or_else(PoisonError::into_inner);
        buffers.pop().unwrap_or_default()
    }

    fn give_back(&self, mut buffer: Vec<u8>) {
        buffer.clear();
        let mut buffers = self.buffers.lock().unwrap_or_else(PoisonError::into_inner);
        if buffers.len() < self.kept_max && buffer.capacity() <= self.bytes_max {
            buffers.push(buffer);
        }
    }
}

/// Whether documents with zero timestamps are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZeroTimestamps {
    /// The server keeps them, so nothing is looked for.
    Kept,
    /// The server replaces them, so documents that hold one are marked for a detour.
    Detoured,
}

impl ZeroTimestamps {
    /// What is done for a server that keeps them, or does not.
    pub fn on(keeps: bool) -> Self {
        if keeps { Self::Kept } else { Self::Detoured }
    }
}

/// Collects the documents of one collection into batches.
#[derive(Debug)]
pub struct Batcher {
    collection: usize,
    limits: BatchLimits,
    zero_timestamps: ZeroTimestamps,
    pool: BufferPool,
    array: Vec<u8>,
    key: ElementKey,
    documents: u32,
    document_bytes: u64,
    first: Position,
    origin_reported: u64,
    detours: Vec<u32>,
    fresh: Vec<u32>,
    jumps: Vec<(u32, u64)>,
    /// Where the next document lies, if it follows the last one.
    next_offset: u64,
    sent: Sent,
    damaged: u32,
    /// Up to where the collection's bytes belong to batches that were cut.
    covered: u64,
    /// Up to where they belong to the open batch.
    end: u64,
}

impl Batcher {
    /// A batcher for the collection at this place in the plan.
    pub fn new(
        collection: usize,
        limits: BatchLimits,
        zero_timestamps: ZeroTimestamps,
        pool: BufferPool,
    ) -> Self {
        Self {
            collection,
            limits,
            zero_timestamps,
            pool,
            array: Vec::new(),
            key: ElementKey::default(),
            documents: 0,
            document_bytes: 0,
            first: Position::default(),
            origin_reported: 0,
            detours: Vec::new(),
            fresh: Vec::new(),
            jumps: Vec::new(),
            next_offset: 0,
            sent: Sent::Never,
            damaged: 0,
            covered: 0,
            end: 0,
        }
    }

    /// The batcher of documents that may have been sent before.
    #[must_use]
    pub fn of_sent(mut self, sent: Sent) -> Self {
        self.sent = sent;
        self
    }

    /// Adds a document that lies at this position; returns the batch that was full before it.
    ///
    /// The first document always fits, so that one above the limits travels alone.
    pub fn push(&mut self, frame: Frame<'_>, position: Position) -> Option<Batch> {
        let full = self.would_overflow(frame.bytes().len());
        let batch = if full { self.cut(position.origin) } else { None };
        self.add(frame, position);
        batch
    }

    /// Passes over a damaged document, which counts as done with together with its neighbours.
    pub fn pass_damaged(&mut self, position: Position) {
        self.damaged += 1;
        self.end = position.end;
    }

    /// Passes over documents that are not wanted, up to this byte of the collection; returns the
    /// batch of those before them.
    pub fn pass_over(&mut self, before: Position, end: u64) -> Option<Batch> {
        let batch = self.cut(before.origin);
        self.covered = end;
        self.end = end;
        batch
    }

    /// Notes that the document which was pushed last got its `_id` here.
    pub fn note_fresh(&mut self) {
        self.fresh.extend(self.documents.checked_sub(1));
    }

    /// The bytes that the open batch holds.
    pub fn held_bytes(&self) -> usize {
        self.array.len()
    }

    /// Returns what is left, and may go on after it; `end` is where the source ends or was left.
    pub fn finish(&mut self, end: Position) -> Option<Batch> {
        self.cut(end.origin)
    }

    fn would_overflow(&self, length: usize) -> bool {
        self.documents as usize >= self.limits.documents
            || (self.documents > 0
                && self.array.len() + KEY_BYTES_MAX + length + 1 > self.limits.bytes)
    }

    fn add(&mut self, frame: Frame<'_>, position: Position) {
        if self.documents == 0 {
            self.first = position;
            if self.array.capacity() == 0 {
                self.array = self.pool.take();
            }
            self.array.clear();
            self.array.extend_from_slice(&[0; ARRAY_HEADER]);
        } else if position.offset != self.next_offset {
            self.jumps.push((self.documents, position.offset));
        }
        self.next_offset = position.offset + frame.bytes().len() as u64;
        if self.zero_timestamps == ZeroTimestamps::Detoured && frame.has_zero_timestamp() {
            self.detours.push(self.documents);
        }
        self.array.push(DOCUMENT);
        self.array.extend_from_slice(self.key.text());
        self.array.push(0);
        self.array.extend_from_slice(frame.bytes());
        self.key.increment();
        self.end = position.end;
        self.documents += 1;
        self.document_bytes += frame.bytes().len() as u64;
    }

    fn cut(&mut self, origin: u64) -> Option<Batch> {
        if self.documents == 0 {
            return None;
        }
        self.array.push(0);
        let length = u32::try_from(self.array.len()).unwrap_or(u32::MAX);
        self.array[..ARRAY_HEADER].copy_from_slice(&length.to_le_bytes());
        self.key = ElementKey::default();
        let origin_bytes = origin.saturating_sub(self.origin_reported);
        self.origin_reported = origin;
        Some(Batch {
            collection: self.collection,
            documents: std::mem::take(&mut self.documents),
            document_bytes: std::mem::take(&mut self.document_bytes),
            origin_bytes,
            first: self.first,
            range: std::mem::replace(&mut self.covered, self.end)..self.end,
            damaged: std::mem::take(&mut self.damaged),
            sent: self.sent,
            share: None,
            detours: std::mem::take(&mut self.detours),
            fresh: std::mem::take(&mut self.fresh).into_boxed_slice(),
            jumps: std::mem::take(&mut self.jumps),
            array: std::mem::take(&mut self.array),
            pool: Some(self.pool.clone()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::{doc, raw::RawDocument};
    use proptest::prelude::*;

    fn document(size: usize) -> Vec<u8> {
        doc! { "_id": 1, "p": "x".repeat(size) }.to_vec().expect("encodes")
    }

    fn batches(documents: &[Vec<u8>], limits: BatchLimits) -> Vec<Batch> {
        let pool = BufferPool::new(2, 1 << 20);
        let mut batcher = Batcher::new(7, limits, ZeroTimestamps::Kept, pool);
        let mut offset = 0;
        let mut cut = Vec::new();
        for bytes in documents {
            let end = offset + bytes.len() as u64;
            let position = Position { offset, origin: offset, end };
            cut.extend(batcher.push(Frame::new(bytes).expect("a frame"), position));
            offset = end;
        }
        cut.extend(batcher.finish(Position { offset, origin: offset, end: offset }));
        cut
    }

    #[test]
    fn a_batch_is_an_array_of_its_documents() {
        let documents: Vec<_> = (0..1234).map(|size| document(size % 50)).collect();
        let cut = batches(&documents, BatchLimits::new(2000, 1 << 20));
        assert_eq!(cut.len(), 1);
        let array = RawDocument::from_bytes(cut[0].array()).expect("an array");
        for (index, element) in array.into_iter().enumerate() {
            let (key, value) = element.expect("an element");
            assert_eq!(key.as_str(), index.to_string());
            assert_eq!(value.as_document().expect("a document").as_bytes(), documents[index]);
        }
        assert_eq!(array.into_iter().count(), documents.len());
    }

    #[test]
    fn a_document_above_the_limit_travels_alone() {
        let documents = vec![document(10), document(5000), document(10)];
        let cut = batches(&documents, BatchLimits::new(100, 1000));
        assert_eq!(cut.iter().map(|batch| batch.documents).collect::<Vec<_>>(), [1, 1, 1]);
    }

    #[test]
    fn only_marked_documents_take_the_detour() {
        let zero = bson::Timestamp { time: 0, increment: 0 };
        let pool = BufferPool::new(2, 1 << 20);
        let limits = BatchLimits::new(10, 1000);
        let mut batcher = Batcher::new(0, limits, ZeroTimestamps::Detoured, pool);
        for value in [doc! { "_id": 1 }, doc! { "_id": 2, "t": zero }] {
            let bytes = value.to_vec().expect("encodes");
            batcher.push(Frame::new(&bytes).expect("a frame"), Position::default());
        }
        let batch = batcher.finish(Position::default()).expect("a batch");
        assert_eq!(batch.detours, [1]);
    }

    #[test]
    fn the_ranges_of_batches_hold_what_is_damaged_and_leave_out_what_is_not_wanted() {
        let pool = BufferPool::new(2, 1 << 20);
        let mut batcher = Batcher::new(0, BatchLimits::new(10, 1000), ZeroTimestamps::Kept, pool);
        let bytes = document(10);
        let at = |offset, end| Position { offset, origin: offset, end };
        batcher.push(Frame::new(&bytes).expect("a frame"), at(0, 40));
        batcher.pass_damaged(at(40, 50));
        let first = batcher.pass_over(at(50, 50), 90).expect("a batch");
        assert_eq!((first.range.clone(), first.damaged), (0..50, 1));
        batcher.pass_damaged(at(90, 95));
        batcher.push(Frame::new(&bytes).expect("a frame"), at(95, 140));
        let second = batcher.finish(at(140, 140)).expect("a batch");
        assert_eq!((second.range.clone(), second.damaged), (90..140, 1));
    }

    #[test]
    fn documents_are_found_where_they_lie() {
        let pool = BufferPool::new(2, 1 << 20);
        let mut batcher = Batcher::new(0, BatchLimits::new(10, 9000), ZeroTimestamps::Kept, pool);
        let bytes = document(10);
        let length = bytes.len() as u64;
        let offsets = [7, 7 + length, 100, 100 + length, 300];
        for offset in offsets {
            let position = Position { offset, origin: offset, end: offset + length };
            batcher.push(Frame::new(&bytes).expect("a frame"), position);
        }
        let batch = batcher.finish(Position::default()).expect("a batch");
        assert_eq!(batch.located().map(|(offset, _)| offset).collect::<Vec<_>>(), offsets);
        assert_eq!(batch.jumps.len(), 2);
    }

    #[test]
    fn a_buffer_comes_back_to_its_pool() {
        let pool = BufferPool::new(1, 1 << 20);
        let limits = BatchLimits::new(10, 1000);
        let mut batcher = Batcher::new(0, limits, ZeroTimestamps::Kept, pool.clone());
        let bytes = document(10);
        batcher.push(Frame::new(&bytes).expect("a frame"), Position::default());
        drop(batcher.finish(Position::default()));
        assert!(pool.take().capacity() > 0);
    }

    proptest! {
        #[test]
        fn batches_concatenate_to_the_input_within_their_limits(
            sizes in prop::collection::vec(0_usize..400, 0..200),
            documents_max in 1_usize..40,
            bytes_max in 1_usize..3000,
        ) {
            let documents: Vec<_> = sizes.into_iter().map(document).collect();
            let cut = batches(&documents, BatchLimits::new(documents_max, bytes_max));
            let out: Vec<Vec<u8>> = cut
                .iter()
                .flat_map(|batch| batch.frames().map(|frame| frame.bytes().to_vec()))
                .collect();
            prop_assert_eq!(&out, &documents);
            let mut offset = 0;
            for batch in &cut {
                prop_assert_eq!(batch.first.offset, offset);
                prop_assert_eq!(&batch.range, &(offset..offset + batch.document_bytes));
                offset += batch.document_bytes;
                prop_assert!(batch.documents as usize <= documents_max);
                prop_assert!(batch.documents == 1 || batch.array().len() <= bytes_max);
            }
            let origin: u64 = cut.iter().map(|batch| batch.origin_bytes).sum();
            prop_assert_eq!(origin, offset);
        }
    }
}
