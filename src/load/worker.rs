//! Sends batches and accounts for every document of them.

mod answer;
mod duplicates;
mod outage;
mod parts;

use std::collections::HashMap;
use std::sync::Arc;

use tokio::time::Instant;

use crate::batch::{Batch, Sent};
use crate::changes::Changes;
use crate::error::{Error, ErrorKind};
use crate::limits::{LOST_BEFORE_HALVING, STOP_GRACE};
use crate::load::OnRejection;
use crate::load::retry::{self, Verdict};
use crate::load::run::{Inbox, Run};
use crate::load::settle::{self, Answer};
use crate::report::Event;
use crate::target::durable::Mark;
use crate::target::{
    Documents, Fault, Insert, Target, TargetError, Validators, WriteFailure, WriteMode,
};
use answer::gave_up;
pub(super) use answer::{id_text, stopped_at};
pub(super) use duplicates::raw_id;
use duplicates::{Found, Known};
use outage::Outage;
use parts::Losses;

/// `DuplicateKey`.
const DUPLICATE_KEY: i32 = 11000;

/// `CannotInsertTimeseriesBucketsWithMixedSchema`.
const MIXED_SCHEMA: i32 = 408;

/// `Unauthorized`.
const UNAUTHORIZED: i32 = 13;

/// Takes batches until the queues close.
pub(super) async fn work<T: Target>(run: Arc<Run<T>>, inbox: Inbox) {
    while let Some((batch, place)) = run.pacing.next(&inbox, || run.goes_on()).await {
        let collection = batch.collection;
        if run.sends(collection) {
            let began = Instant::now();
            let answer = {
                let _sending = run.stages.sending.begin();
                Delivery::new(&run, &batch).deliver().await
            };
            run.pacing.answered(&batch, began.elapsed());
            drop((batch, place));
            settle::take_in(&run, answer).await;
        } else {
            run.observe(&Event::Unsent { collection, documents: batch.documents.into() });
            drop((batch, place));
            run.finish(collection);
        }
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
    changes: Changes,
    already_there: u64,
    failures: Vec<WriteFailure>,
    known: Known,
    losses: Losses,
    /// Whether it is tried without bypassing validators, because the user may not or lacks another
    /// right.
    tries_validators: bool,
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
            changes: Changes::default(),
            already_there: 0,
            failures: Vec::new(),
            known: Known::default(),
            losses: Losses::default(),
            tries_validators: false,
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
            let group = self.passing_part(group);
            if self.send(group).await == Step::GiveUp {
                break;
            }
        }
        self.answer()
    }

    /// The part of a group that is let pass; the rest is sent after it.
    fn passing_part(&mut self, group: Documents) -> Documents {
        let passing_bytes = self.run.passing_bytes();
        if passing_bytes == usize::MAX {
            return group;
        }
        let mut parts = parts::of(self.batch, group, passing_bytes);
        let first = parts.pop().unwrap_or(Documents::All);
        self.groups.extend(parts);
        first
    }

    async fn send(&mut self, group: Documents) -> Step {
        let mut insert = self.run.insert(self.batch.collection);
        if self.tries_validators {
            insert.validators = Validators::Applied;
        }
        self.outage.attempt();
        let mut outcome = match self.run.target.insert(&insert, self.batch, &group).await {
            Ok(outcome) => outcome,
            Err(error) if self.is_mixed(error.code) && self.takes_mixed_schema().await => {
                self.groups.push(group);
                return Step::GoOn;
            }
            Err(error) => return self.after(&insert, group, error).await,
        };
        self.got_through(&group);
        let throttled = take_throttled(&mut outcome.failures);
        if throttled.is_empty() || outcome.taken() > 0 {
            self.outage = Outage::new();
        }
        self.inserted += u64::from(outcome.inserted);
        self.changes += outcome.changes;
        self.mark = Mark::of_both(self.mark, outcome.mark);
        let has_rest = outcome.not_tried > 0;
        if has_rest {
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
        let failures = self.without_skipped(failures);
        if !failures.is_empty() && self.judge(failures, has_rest).await == Step::GiveUp {
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

    /// The refusals that stand; where that was asked for, documents whose `_id` is there are none.
    fn without_skipped(&mut self, mut failures: Vec<WriteFailure>) -> Vec<WriteFailure> {
        if self.run.settings.write_mode == WriteMode::Skip {
            // Of a clustered collection the server names no index.
            let is_there = |one: &WriteFailure| {
                one.code == DUPLICATE_KEY
                    && (duplicates::is_of_id(one) || !one.message.contains("index: "))
            };
            let before = failures.len();
            failures.retain(|one| !is_there(one));
            self.already_there += (before - failures.len()) as u64;
        }
        failures
    }

    /// Tells refused documents from those that an unanswered attempt had stored already. Where
    /// the order matters, `has_rest` says that the group that came last holds what follows.
    async fn judge(&mut self, failures: Vec<WriteFailure>, has_rest: bool) -> Step {
        let rest = if has_rest { self.groups.pop() } else { None };
        let mut rest = rest.map(|rest| rest.indexes(self.batch.documents)).unwrap_or_default();
        let outcome = self.look_up(&failures, &rest).await;
        let found = match outcome {
            Ok(found) => found,
            Err(error) => {
                // Whether a duplicate is the document itself stays unknown, so that it counts as
                // never answered for.
                let is_known = |failure: &WriteFailure| failure.code != DUPLICATE_KEY;
                self.failures.extend(failures.into_iter().filter(is_known));
                return self.give_up(&error);
            }
        };
        for failure in failures {
            let is_duplicate = failure.code == DUPLICATE_KEY;
            match found.get(&failure.index) {
                Some(Found::Same) if is_duplicate => self.already_there += 1,
                found => {
                    let is_other = found == Some(&Found::Other)
                        || (found == Some(&Found::Nothing) && duplicates::is_of_id(&failure));
                    if is_duplicate && is_other {
                        self.known.conflicts.insert(failure.index);
                    }
                    self.failures.push(failure);
                }
            }
        }
        let before = rest.len();
        rest.retain(|index| found.get(index) != Some(&Found::Same));
        self.already_there += (before - rest.len()) as u64;
        if !rest.is_empty() {
            self.groups.push(Documents::Only(rest));
        }
        self.after_rejections()
    }

    /// Looks up what stands under the `_id`s of refused duplicates, where that can be this batch's
    /// own doing. Where the order matters, what follows is looked up as well, because the server
    /// would stop at each document that it has.
    async fn look_up(
        &mut self,
        failures: &[WriteFailure],
        rest: &[u32],
    ) -> Result<HashMap<u32, Found>, TargetError> {
        let is_asked = |failure: &&WriteFailure| {
            failure.code == DUPLICATE_KEY && !self.known.conflicts.contains(&failure.index)
        };
        let mut asked: Vec<u32> = failures.iter().filter(is_asked).map(|one| one.index).collect();
        if !self.is_resent || asked.is_empty() {
            return Ok(HashMap::new());
        }
        if !self.known.looked_ahead {
            asked.extend(rest);
            self.known.looked_ahead = true;
        }
        let found = duplicates::look_up(self.run, self.batch, &asked).await?;
        let others = found.iter().filter(|(_, found)| **found == Found::Other);
        self.known.conflicts.extend(others.map(|(index, _)| *index));
        Ok(found)
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

    /// Decides what follows a command that failed as a whole.
    async fn after(&mut self, insert: &Insert, group: Documents, error: TargetError) -> Step {
        // What takes the detour travels in a command of its own, before or after which another may
        // have gone through.
        self.is_resent |= !self.batch.detours.is_empty();
        let bypasses = insert.validators == Validators::Bypassed;
        match retry::verdict(&error, bypasses) {
            Verdict::Retry if self.may_delete_more(&error) => self.leave_unsent(&error),
            Verdict::Retry => {
                self.count_lost(group, &error);
                self.pause(error).await
            }
            Verdict::KeepValidators => {
                // Whether it is this right that is missing shows when it is not asked for.
                self.tries_validators = true;
                self.groups.push(group);
                Step::GoOn
            }
            Verdict::Split => {
                // It may be the answer that was too large, to a command that was carried out.
                self.is_resent = true;
                self.split(&group, &error);
                self.after_rejections()
            }
            Verdict::FailCollection => self.give_up(&error),
        }
    }

    /// Whether to send it again could delete other documents than it should: those that have the
    /// same values in fields that need not be unique.
    fn may_delete_more(&self, error: &TargetError) -> bool {
        let settings = &self.run.settings;
        let deletes_by_others = settings.write_mode == WriteMode::Delete && !settings.keys.is_id();
        deletes_by_others && error.fault != Fault::Unreachable
    }

    /// Ends the run at an answer that did not come.
    fn leave_unsent(&self, error: &TargetError) -> Step {
        let message = format!("it is not known which documents were deleted: {}", error.message);
        self.run.fail(Error::new(ErrorKind::Write, message).hint(
            "deletes by fields other than `_id` are not sent again, because they could delete \
             other documents with the same values; look at what is stored, then import the rest",
        ));
        Step::GiveUp
    }

    /// Puts a group back that a lost connection or a server that is away has kept from being
    /// answered for. Where connections are lost again and again, while servers can be reached, it
    /// may be its size that something on the way does not let pass: it is halved.
    fn count_lost(&mut self, group: Documents, error: &TargetError) {
        let is_lost = error.fault == Fault::ConnectionLost;
        self.losses.times = if is_lost { self.losses.times + 1 } else { 0 };
        if self.losses.times < LOST_BEFORE_HALVING || group.count(self.batch.documents) < 2 {
            self.groups.push(group);
            return;
        }
        self.halve(&group.indexes(self.batch.documents));
        self.losses.is_halved = true;
        self.outage.begin_again();
    }

    /// Notes that a group was answered for.
    fn got_through(&mut self, group: &Documents) {
        self.losses.times = 0;
        if std::mem::take(&mut self.losses.is_halved) {
            self.run.narrow(self.batch.array().len(), parts::bytes(self.batch, group));
        }
        if std::mem::take(&mut self.tries_validators) {
            self.run.keep_validators();
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
        if error.fault != Fault::Unreachable {
            self.is_resent = true;
            self.known.looked_ahead = false;
        }
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
        self.halve(&indexes);
    }

    fn halve(&mut self, indexes: &[u32]) {
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
            failed = failed.hint(self.missing_privilege(error));
        }
        self.run.refuse_collection(self.batch.collection, &failed);
        Step::GiveUp
    }

    /// The privilege that is missing, and who has it.
    fn missing_privilege(&self, error: &TargetError) -> String {
        let plan = &self.run.plan.collections[self.batch.collection];
        if plan.namespace != plan.data_namespace {
            return "buckets of time-series collections need the role restore".to_owned();
        }
        let (namespace, database) = (&plan.namespace, plan.namespace.database());
        if self.run.settings.write_mode == WriteMode::Delete {
            return format!(
                "this mode needs the privilege remove on `{namespace}`; the role readWrite on \
                 `{database}` has it"
            );
        }
        if self.run.settings.write_mode.updates() {
            return format!(
                "this mode needs the privileges insert and update on `{namespace}`; the role \
                 readWrite on `{database}` has them"
            );
        }
        if error.message.contains("command `update`") {
            return format!(
                "documents with zero timestamps are written by an upsert, which needs the \
                 privilege update on `{namespace}`; the role readWrite on `{database}` has it"
            );
        }
        format!(
            "the privilege insert on `{namespace}` is needed; the role readWrite on `{database}` \
             has it, and the role restore"
        )
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
