//! What is said of a batch once nothing of it is left to send.

use bson::Bson;

use crate::error::{Error, ErrorKind};
use crate::frame::Frame;
use crate::load::ledger::record::Done;
use crate::load::rejects::Kept;
use crate::load::settle::Answer;
use crate::load::worker::{Delivery, duplicates};
use crate::report::{Event, Rejection};
use crate::sum::DocumentSum;
use crate::target::{Target, TargetError, WriteFailure};

impl<T: Target> Delivery<'_, T> {
    /// What became of every document of the batch.
    pub(super) fn answer(mut self) -> Answer {
        let collection = self.batch.collection;
        let documents = u64::from(self.batch.documents);
        let rejected = self.failures.len() as u64;
        let conflicts =
            self.failures.iter().filter(|one| self.known.conflicts.contains(&one.index));
        let conflicts = conflicts.count() as u64;
        let done = self.inserted + self.changes.documents();
        let answered = done + self.already_there + rejected;
        let mut events = Vec::new();
        let mut kept = Vec::new();
        if rejected > 0 {
            self.failures.sort_by_key(|failure| failure.index);
            let rejections = self.rejections();
            events.push(Event::Rejected { collection, rejections });
            kept = self.kept();
        }
        if answered > 0 {
            let share = |bytes: u64| if answered == documents { bytes } else { 0 };
            events.push(Event::Written {
                collection,
                inserted: self.inserted,
                changes: self.changes,
                already_there: self.already_there,
                rejected,
                conflicts,
                bytes: share(self.batch.document_bytes),
                origin_bytes: share(self.batch.origin_bytes),
                latency: self.began.elapsed(),
            });
        }
        if answered < documents {
            events.push(Event::Unsent { collection, documents: documents - answered });
        }
        let done = (answered == documents).then(|| Done {
            from: self.batch.range.start,
            to: self.batch.range.end,
            inserted: self.inserted,
            changes: self.changes,
            there: self.already_there,
            rejected: rejected + u64::from(self.batch.damaged),
            conflicts,
            ..Done::default()
        });
        let refused = self.refused();
        Answer {
            collection,
            documents,
            events,
            kept,
            done,
            refused,
            mark: self.mark,
            server: self.server,
        }
    }

    /// The sum of the documents that were refused, where it is wanted: of a collection whose
    /// documents are summed up.
    fn refused(&self) -> Option<DocumentSum> {
        let plan = &self.run.plan.collections[self.batch.collection];
        if self.run.sums.is_none() || plan.carried.is_some() || self.failures.is_empty() {
            return None;
        }
        let frames: Vec<_> = self.batch.frames().collect();
        let mut sum = DocumentSum::default();
        self.failures.iter().for_each(|failure| sum.add(frames[failure.index as usize].bytes()));
        Some(sum)
    }

    fn rejections(&self) -> Vec<Rejection> {
        let frames: Vec<_> = self.batch.frames().collect();
        self.failures
            .iter()
            .map(|failure| {
                let is_conflict = self.known.conflicts.contains(&failure.index);
                let message = if is_conflict {
                    format!("{}; another document has this _id", failure.message)
                } else {
                    failure.message.clone()
                };
                let id = id_text(frames[failure.index as usize]);
                Rejection { code: failure.code, message, id, is_conflict }
            })
            .collect()
    }

    /// The refused documents themselves, where they are kept.
    fn kept(&self) -> Vec<Kept> {
        if self.run.rejects.is_none() {
            return Vec::new();
        }
        let located: Vec<_> = self.batch.located().collect();
        self.failures
            .iter()
            .map(|failure| {
                let (offset, frame) = located[failure.index as usize];
                Kept { offset, bytes: frame.bytes().into() }
            })
            .collect()
    }
}

/// The document's `_id` as Extended JSON.
pub(in crate::load) fn id_text(frame: Frame<'_>) -> String {
    match duplicates::raw_id(frame).map(Bson::try_from) {
        Some(Ok(id)) => id.into_relaxed_extjson().to_string(),
        _ => "(none that can be read)".to_owned(),
    }
}

pub(in crate::load) fn stopped_at(failure: &WriteFailure) -> Error {
    Error::new(ErrorKind::Write, format!("stopped at a refused document: {}", failure.message))
        .with_code(failure.code)
        .hint("without --stop-on-error refused documents are counted and the rest goes on")
}

pub(super) fn gave_up(error: &TargetError, seconds: u64) -> Error {
    let message = format!("gave up after {seconds} s of attempts: {}", error.message);
    let mut failed = Error::new(ErrorKind::Write, message);
    if let Some(code) = error.code {
        failed = failed.with_code(code);
    }
    failed.hint("see whether the server is up and has a primary, then run the restore again")
}
