//! Turns the documents of one collection into batches, wherever they are read from.

use std::sync::Arc;

use crate::batch::{Batch, Batcher, Position, Sent};
use crate::frame::{Frame, FrameError};
use crate::load::intake::id::{self, IdChange, NewIds};
use crate::load::intake::wanted::{Step, Wanted};
use crate::load::intake::{INVALID_BSON, Reading};
use crate::load::rejects::Kept;
use crate::load::run::Run;
use crate::load::worker::{id_text, stopped_at};
use crate::load::{DocumentCheck, OnRejection};
use crate::memory::Share;
use crate::plan::carried::RangeSet;
use crate::report::format::counted;
use crate::report::{Event, Rejection};
use crate::sum::DocumentSum;
use crate::target::{Target, WriteFailure};

/// The documents of one collection on their way into batches.
pub(super) struct Feed {
    collection: usize,
    batcher: Batcher,
    wanted: Wanted,
    ids: NewIds,
    without_id: u64,
    /// Whether what is read is told: what is read again was told before.
    is_first: bool,
    /// Documents put into batches.
    documents: u64,
    /// Their sum, where it is wanted.
    sum: Option<DocumentSum>,
}

impl Feed {
    pub(super) fn of<T: Target>(run: &Run<T>, collection: usize, reading: &Reading) -> Self {
        let (settings, plan) = (&run.settings, &run.plan.collections[collection]);
        let pool = run.pool.clone();
        let batcher = Batcher::new(collection, settings.batch, settings.zero_timestamps, pool);
        let (wanted, sent) = match (reading, &plan.carried) {
            (Reading::Again(missing), _) => {
                let missing = missing.get(&collection).cloned().unwrap_or_default();
                (Wanted::only(missing.ranges), Sent::Maybe)
            }
            (Reading::First, Some(carried)) => {
                (Wanted::all_but(carried.ranges.clone()), Sent::Maybe)
            }
            (Reading::First, None) => (Wanted::all_but(RangeSet::default()), Sent::Never),
        };
        Self {
            collection,
            batcher: batcher.of_sent(sent),
            wanted,
            ids: NewIds::of(run.id, &plan.source),
            without_id: 0,
            is_first: matches!(reading, Reading::First),
            documents: 0,
            sum: sums_up(run, collection, reading).then(DocumentSum::default),
        }
    }

    /// The collection's place in the plan.
    pub(super) fn collection(&self) -> usize {
        self.collection
    }

    /// What is done at the byte of the collection where the next document begins.
    #[inline]
    pub(super) fn step(&mut self, byte: u64) -> Step {
        self.wanted.step(byte)
    }

    /// Goes past what is not wanted, up to this byte; returns the batch of what was before.
    pub(super) fn pass_over(&mut self, before: Position, end: u64) -> Option<Batch> {
        self.batcher.pass_over(before, end)
    }

    /// Takes a document; returns the batch that was full before it.
    #[inline]
    pub(super) fn push<T: Target>(
        &mut self,
        run: &Run<T>,
        frame: Frame<'_>,
        position: Position,
    ) -> Option<Batch> {
        if run.settings.document_check == DocumentCheck::Structure
            && let Err(damage) = frame.validate()
        {
            self.reject(run, frame, position, &damage);
            return None;
        }
        self.documents += 1;
        let (stored, change) = id::stored_form(frame, Some(&self.ids), position);
        self.without_id += u64::from(change == IdChange::New);
        let frame = stored.as_deref().and_then(|bytes| Frame::new(bytes).ok()).unwrap_or(frame);
        if let Some(sum) = &mut self.sum {
            sum.add(frame.bytes());
        }
        self.batcher.push(frame, position)
    }

    /// Counts a damaged document as rejected.
    fn reject<T: Target>(
        &mut self,
        run: &Run<T>,
        frame: Frame<'_>,
        position: Position,
        damage: &FrameError,
    ) {
        self.batcher.pass_damaged(position);
        if !self.is_first {
            return;
        }
        let failure = WriteFailure {
            index: 0,
            code: INVALID_BSON,
            message: format!("not sent: {damage}; it lies at byte {} of the file", position.offset),
        };
        let rejection = Rejection {
            code: failure.code,
            message: failure.message.clone(),
            id: id_text(frame),
            is_conflict: false,
        };
        let (collection, bytes) = (self.collection, frame.bytes().len() as u64);
        if let Some(rejects) = &run.rejects {
            let kept = Kept { offset: position.offset, bytes: frame.bytes().into() };
            if let Err(error) = rejects.keep_damaged(collection, &rejection, &kept) {
                run.fail(error);
            }
        }
        run.observe(&Event::Damaged { collection, bytes, rejection });
        run.judge_failures();
        if run.settings.on_rejection == OnRejection::StopRun {
            let namespace = &run.plan.collections[self.collection].namespace;
            run.fail(stopped_at(&failure).of(namespace));
        }
    }

    /// The batch of what is left, and whatever comes after it.
    pub(super) fn cut(&mut self, end: Position) -> Option<Batch> {
        self.batcher.finish(end)
    }

    /// The batch that ends with a large document, which travels at once: what it takes is given
    /// back with the batch.
    pub(super) fn cut_large(&mut self, end: Position, share: Arc<Share>) -> Option<Batch> {
        let mut batch = self.batcher.finish(end)?;
        batch.share = Some(share);
        Some(batch)
    }

    /// The bytes that the open batch holds.
    pub(super) fn held_bytes(&self) -> usize {
        self.batcher.held_bytes()
    }

    /// Documents put into batches.
    pub(super) fn documents(&self) -> u64 {
        self.documents
    }

    /// Hands over the sum, and tells of documents that had no `_id`.
    pub(super) fn end<T: Target>(&self, run: &Run<T>) {
        if let (Some(sums), Some(sum)) = (&run.sums, &self.sum) {
            sums.add(self.collection, sum);
        }
        if self.without_id > 0 && self.is_first {
            let documents = counted(self.without_id, "document", "documents");
            let text = format!("{documents} without an _id got a new one");
            run.observe(&Event::Note { collection: Some(self.collection), text });
        }
    }
}

/// Whether documents are added to a sum: once, and not where an earlier run has brought some.
fn sums_up<T: Target>(run: &Run<T>, collection: usize, reading: &Reading) -> bool {
    run.sums.is_some()
        && matches!(reading, Reading::First)
        && run.plan.collections[collection].carried.is_none()
}
