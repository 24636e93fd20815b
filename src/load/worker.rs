//! Sends batches and accounts for every document of them.

use std::sync::Arc;
use std::time::Duration;

use bson::raw::RawDocument;
use bson::{Bson, RawBson, RawDocumentBuf};
use tokio::time::Instant;

use crate::batch::{Batch, Sent};
use crate::error::{Error, ErrorKind};
use crate::frame::Frame;
use crate::limits::STOP_GRACE;
use crate::load::OnRejection;
use crate::load::ledger::record::Done;
use crate::load::retry::{self, Verdict};
use crate::load::run::{Inbox, Run};
use crate::load::settle::{self, Answer};
use crate::report::{Event, Rejection};
use crate::sum::DocumentSum;
use crate::target::durable::Mark;
use crate::target::{Documents, Fault, Insert, Target, TargetError, Validators, WriteFailure};

/// `DuplicateKey`.
const DUPLICATE_KEY: i32 = 11000;

/// `CannotInsertTimeseriesBucketsWithMixedSchema`.
const MIXED_SCHEMA: i32 = 408;

/// `Unauthorized`.
const UNAUTHORIZED: i32 = 13;

/// Takes batches until the queues close.
pub(super) async fn work<T: Target>(run: Arc<Run<T>>, inbox: Inbox) {
    while let Some(batch) = next(&inbox).await {
        let collection = batch.collection;
        if run.sends(collection) {
            let answer = Delivery::new(&run, &batch).deliver().await;
            drop(batch);
            settle::take_in(&run, answer).await;
        } else {
            run.observe(&Event::Unsent { collection, documents: batch.documents.into() });
            drop(batch);
            run.finish(collection);
        }
    }
}

/// The next batch: one of the worker's own first, because nobody else may take it.
async fn next(inbox: &Inbox) -> Option<Batch> {
    tokio::select! {
        biased;
        Ok(batch) = inbox.own.recv() => Some(batch),
        Ok(batch) = inbox.shared.recv() => Some(batch),
        else => None,
    }
}

/// One batch on its way.
struct Delivery<'a, T> {
    run: &'a Run<T>,
    batch: &'a Batch,
    began: Instant,
    /// Documents that are still to be sent, the next group last.
    groups: Vec<Documents>,
    inserted: u64,
    already_there: u64,
    failures: Vec<WriteFailure>,
    outage: Outage,
    /// Whether an attempt may have been carried out without an answer, so that a duplicate may be
    /// the document itself.
    is_resent: bool,
    /// Whether the collection was told to take buckets of mixed schema.
    asked_for_mixed_schema: bool,
    /// The incarnation of the server before anything was sent.
    server: String,
    /// The point in the target's history of what it took.
    mark: Option<Mark>,
}

/// The failures since the last answer; a batch that is answered for bit by bit may take its time.
struct Outage {
    /// When the first attempt that failed was begun.
    began: Instant,
    repetition: u32,
}

impl Outage {
    fn new() -> Self {
        Self { began: Instant::now(), repetition: 0 }
    }

    /// Notes that an attempt begins; it begins an outage if it is the first to fail.
    fn attempt(&mut self) {
        if self.repetition == 0 {
            self.began = Instant::now();
        }
    }

    /// Whether there have been attempts for this long.
    fn lasts(&self, time: Duration) -> bool {
        self.began.elapsed() >= time
    }

    /// The pause before the next attempt.
    fn next(&mut self, message: &str) -> Duration {
        self.repetition += 1;
        retry::delay_after(message, self.repetition)
    }
}

/// Whether anything of a batch is to be sent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    GoOn,
    GiveUp,
}

impl<'a, T: Target> Delivery<'a, T> {
    fn new(run: &'a Run<T>, batch: &'a Batch) -> Self {
        Self {
            run,
            batch,
            began: Instant::now(),
            groups: vec![Documents::All],
            inserted: 0,
            already_there: 0,
            failures: Vec::new(),
            outage: Outage::new(),
            is_resent: batch.sent == Sent::Maybe,
            asked_for_mixed_schema: false,
            server: run.settling.server(),
            mark: None,
        }
    }

    /// Sends the batch until each of its documents is answered for or given up.
    async fn deliver(mut self) -> Answer {
        while let Some(group) = self.groups.pop() {
            if self.send(group).await == Step::GiveUp {
                break;
            }
        }
        self.answer()
    }

    async fn send(&mut self, group: Documents) -> Step {
        let insert = self.run.insert(self.batch.collection);
        self.outage.attempt();
        let mut outcome = match self.run.target.insert(&insert, self.batch, &group).await {
            Ok(outcome) => outcome,
            Err(error) if self.is_mixed(error.code) && self.takes_mixed_schema().await => {
                self.groups.push(group);
                return Step::GoOn;
            }
            Err(error) => return self.after(&insert, group, error).await,
        };
        let throttled = take_throttled(&mut outcome.failures);
        if throttled.is_empty() || outcome.inserted > 0 {
            self.outage = Outage::new();
        }
        self.inserted += u64::from(outcome.inserted);
        self.mark = match (self.mark, outcome.mark) {
            (Some(earlier), Some(mark)) => Some(earlier.and(mark)),
            (earlier, mark) => earlier.or(mark),
        };
        if outcome.not_tried > 0 {
            let indexes = group.indexes(self.batch.documents);
            let tried = indexes.len().saturating_sub(outcome.not_tried as usize);
            self.groups.push(Documents::Only(indexes[tried..].to_vec()));
        }
        // They are sent before what follows them, so that the order stays.
        let turned_away = throttled.last().cloned().map(TargetError::from);
        if !throttled.is_empty() {
            let indexes = throttled.iter().map(|failure| failure.index).collect();
            self.groups.push(Documents::Only(indexes));
        }
        let failures = self.without_mixed(outcome.failures).await;
        if !failures.is_empty() && self.judge(&insert, failures).await == Step::GiveUp {
            return Step::GiveUp;
        }
        match turned_away {
            Some(error) => self.pause(error).await,
            None => Step::GoOn,
        }
    }

    /// Whether a refusal is for buckets of mixed schema, about which something can be done once.
    fn is_mixed(&self, code: Option<i32>) -> bool {
        code == Some(MIXED_SCHEMA) && !self.asked_for_mixed_schema
    }

    async fn takes_mixed_schema(&mut self) -> bool {
        self.asked_for_mixed_schema = true;
        self.run.takes_mixed_schema(self.batch.collection).await
    }

    /// The refusals that stand; buckets of mixed schema are sent again once they may come.
    async fn without_mixed(&mut self, failures: Vec<WriteFailure>) -> Vec<WriteFailure> {
        let mixed: Vec<u32> = failures
            .iter()
            .filter(|failure| self.is_mixed(Some(failure.code)))
            .map(|failure| failure.index)
            .collect();
        if mixed.is_empty() || !self.takes_mixed_schema().await {
            return failures;
        }
        self.groups.push(Documents::Only(mixed));
        failures.into_iter().filter(|failure| failure.code != MIXED_SCHEMA).collect()
    }

    /// Tells refused documents from those that an unanswered attempt had stored already.
    async fn judge(&mut self, insert: &Insert, failures: Vec<WriteFailure>) -> Step {
        let stored = match self.stored(insert, &failures).await {
            Ok(stored) => stored,
            Err(error) => {
                // Whether a duplicate is the document itself stays unknown, so that it counts as
                // never answered for.
                let is_known = |failure: &WriteFailure| failure.code != DUPLICATE_KEY;
                self.failures.extend(failures.into_iter().filter(is_known));
                return self.give_up(&error);
            }
        };
        let frames: Vec<_> = self.batch.frames().collect();
        for failure in failures {
            let document = frames[failure.index as usize].bytes();
            let is_there = failure.code == DUPLICATE_KEY
                && stored.iter().any(|stored| stored.as_bytes() == document);
            if is_there {
                self.already_there += 1;
            } else {
                self.failures.push(failure);
            }
        }
        self.after_rejections()
    }

    /// Ends the run at a refused document, where that was asked for.
    fn after_rejections(&self) -> Step {
        let stops = self.run.settings.on_rejection == OnRejection::StopRun;
        match self.failures.first() {
            Some(failure) if stops => {
                let namespace = &self.run.plan.collections[self.batch.collection].namespace;
                self.run.fail(stopped_at(failure).of(namespace));
                Step::GiveUp
            }
            _ => Step::GoOn,
        }
    }

    /// What is stored under the `_id`s of refused duplicates, where that can be this batch's own
    /// doing.
    async fn stored(
        &self,
        insert: &Insert,
        failures: &[WriteFailure],
    ) -> Result<Vec<RawDocumentBuf>, TargetError> {
        let frames: Vec<_> = self.batch.frames().collect();
        let duplicates: Vec<RawBson> = failures
            .iter()
            .filter(|failure| self.is_resent && failure.code == DUPLICATE_KEY)
            .filter_map(|failure| raw_id(frames[failure.index as usize]))
            .collect();
        if duplicates.is_empty() {
            return Ok(Vec::new());
        }
        let mut outage = Outage::new();
        loop {
            let error = match self.run.target.stored(&insert.namespace, duplicates.clone()).await {
                Ok(found) => return Ok(found),
                Err(error) => error,
            };
            let passes = retry::verdict(&error, false) == Verdict::Retry && !self.run.has_failed();
            if !passes || outage.lasts(self.run.settings.retry_for) {
                return Err(error);
            }
            tokio::time::sleep(outage.next(&error.message)).await;
        }
    }

    /// Decides what follows a command that failed as a whole.
    async fn after(&mut self, insert: &Insert, group: Documents, error: TargetError) -> Step {
        let bypasses = insert.validators == Validators::Bypassed;
        match retry::verdict(&error, bypasses) {
            Verdict::Retry => {
                self.groups.push(group);
                self.pause(error).await
            }
            Verdict::KeepValidators => {
                self.run.keep_validators();
                self.groups.push(group);
                Step::GoOn
            }
            Verdict::Split => {
                self.split(&group, &error);
                self.after_rejections()
            }
            Verdict::FailCollection => self.give_up(&error),
        }
    }

    /// Waits before another attempt, unless there have been attempts for long enough.
    async fn pause(&mut self, error: TargetError) -> Step {
        if !self.run.goes_on() && self.outage.lasts(STOP_GRACE) {
            // Who asked for a stop does not want to wait for a server to come back.
            self.run.abandon();
            return Step::GiveUp;
        }
        if self.outage.lasts(self.run.settings.retry_for) {
            return self.give_up(&error);
        }
        let delay = self.outage.next(&error.message);
        self.is_resent |= error.fault != Fault::Unreachable;
        let collection = Some(self.batch.collection);
        self.run.observe(&Event::Retried { collection, reason: error.message, delay });
        tokio::time::sleep(delay).await;
        if self.run.has_failed() { Step::GiveUp } else { Step::GoOn }
    }

    /// Halves a group that the server refused as a whole, to find the document that spoils it.
    fn split(&mut self, group: &Documents, error: &TargetError) {
        let indexes = group.indexes(self.batch.documents);
        if let [index] = indexes[..] {
            let code = error.code.unwrap_or_default();
            self.failures.push(WriteFailure { index, code, message: error.message.clone() });
            return;
        }
        let (first, second) = indexes.split_at(indexes.len() / 2);
        self.groups.push(Documents::Only(second.to_vec()));
        self.groups.push(Documents::Only(first.to_vec()));
    }

    /// Ends the run where the server is away for too long, else only the collection.
    fn give_up(&self, error: &TargetError) -> Step {
        if retry::verdict(error, false) == Verdict::Retry {
            self.run.fail(gave_up(error, self.run.settings.retry_for.as_secs()));
            return Step::GiveUp;
        }
        let mut failed = Error::new(ErrorKind::Write, error.message.clone());
        if let Some(code) = error.code {
            failed = failed.with_code(code);
        }
        if error.code == Some(UNAUTHORIZED) {
            failed = failed.hint(self.missing_role());
        }
        self.run.refuse_collection(self.batch.collection, &failed);
        Step::GiveUp
    }

    /// Who may insert what this user may not.
    fn missing_role(&self) -> String {
        let plan = &self.run.plan.collections[self.batch.collection];
        if plan.namespace == plan.data_namespace {
            format!(
                "the role readWrite on `{}` may, and the role restore",
                plan.namespace.database()
            )
        } else {
            "buckets of time-series collections need the role restore".to_owned()
        }
    }

    /// What became of every document of the batch.
    fn answer(mut self) -> Answer {
        let collection = self.batch.collection;
        let documents = u64::from(self.batch.documents);
        let rejected = self.failures.len() as u64;
        let answered = self.inserted + self.already_there + rejected;
        let mut events = Vec::new();
        if rejected > 0 {
            self.failures.sort_by_key(|failure| failure.index);
            let rejections = self.rejections();
            events.push(Event::Rejected { collection, rejections });
        }
        if answered > 0 {
            let share = |bytes: u64| if answered == documents { bytes } else { 0 };
            events.push(Event::Written {
                collection,
                inserted: self.inserted,
                already_there: self.already_there,
                rejected,
                bytes: share(self.batch.document_bytes),
                origin_bytes: share(self.batch.origin_bytes),
                latency: self.began.elapsed(),
            });
        }
        if answered < documents {
            events.push(Event::Unsent { collection, documents: documents - answered });
        }
        let done = (answered == documents).then(|| Done {
            collection: 0,
            from: self.batch.range.start,
            to: self.batch.range.end,
            inserted: self.inserted,
            there: self.already_there,
            rejected: rejected + u64::from(self.batch.damaged),
        });
        let refused = self.refused();
        Answer {
            collection,
            documents,
            events,
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
            .map(|failure| Rejection {
                code: failure.code,
                message: failure.message.clone(),
                id: id_text(frames[failure.index as usize]),
            })
            .collect()
    }
}

/// Takes out the documents that were refused only because too much came at once; they are sent
/// again after a pause.
fn take_throttled(failures: &mut Vec<WriteFailure>) -> Vec<WriteFailure> {
    let (throttled, others) =
        std::mem::take(failures).into_iter().partition(|failure| retry::is_throttled(failure.code));
    *failures = others;
    throttled
}

fn raw_id(frame: Frame<'_>) -> Option<RawBson> {
    let document = RawDocument::from_bytes(frame.bytes()).ok()?;
    document.get("_id").ok()?.map(Into::into)
}

/// The document's `_id` as Extended JSON.
pub(super) fn id_text(frame: Frame<'_>) -> String {
    match raw_id(frame).map(Bson::try_from) {
        Some(Ok(id)) => id.into_relaxed_extjson().to_string(),
        _ => "(none that can be read)".to_owned(),
    }
}

pub(super) fn stopped_at(failure: &WriteFailure) -> Error {
    Error::new(ErrorKind::Write, format!("stopped at a refused document: {}", failure.message))
        .with_code(failure.code)
        .hint("without --stop-on-error refused documents are counted and the rest goes on")
}

fn gave_up(error: &TargetError, seconds: u64) -> Error {
    let message = format!("gave up after {seconds} s of attempts: {}", error.message);
    let mut failed = Error::new(ErrorKind::Write, message);
    if let Some(code) = error.code {
        failed = failed.with_code(code);
    }
    failed.hint("see whether the server is up and has a primary, then run the restore again")
}
