//! Holds what the target has acknowledged until it can no longer be lost.
//!
//! Where an acknowledgement is durable by itself, an answer is settled at once. Elsewhere it waits
//! until the target says that it is safe; only then is it told, counted and noted in the ledger.
//! An answer of which that can no longer be said, because another server took over, is doubtful:
//! its documents are read and sent once more.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::dump::inventory::Origin;
use crate::error::{Error, ErrorKind};
use crate::limits::{
    ANSWERS_WAITING_MAX, LEDGER_SYNC_INTERVAL, REFUSED_BYTES_PER_PLACE, SETTLE_INTERVAL, STOP_GRACE,
};
use crate::load::ledger::record::Done;
use crate::load::rejects::{Kept, Refused};
use crate::load::retry::{self, Verdict};
use crate::load::run::{Run, internal};
use crate::report::format::counted;
use crate::report::{Event, Rejection};
use crate::sum::DocumentSum;
use crate::target::durable::{Acknowledgement, Fate, Horizon, Mark};
use crate::target::{Target, TargetError};

/// What became of one batch.
#[derive(Debug)]
pub(super) struct Answer {
    /// The collection's place in the plan.
    pub(super) collection: usize,
    /// Documents of the batch.
    pub(super) documents: u64,
    /// What is told of it once it is settled.
    pub(super) events: Vec<Event>,
    /// The documents of it that were refused, where they are kept.
    pub(super) kept: Vec<Kept>,
    /// What is done with it; nothing where documents of it were not answered for.
    pub(super) done: Option<Done>,
    /// The documents that the target refused, where sums are wanted.
    pub(super) refused: Option<DocumentSum>,
    /// The point in the target's history.
    pub(super) mark: Option<Mark>,
    /// The incarnation of the server when the batch was sent first.
    pub(super) server: String,
}

impl Answer {
    /// How many places it takes while it waits: one, and more where it tells of refused documents
    /// and holds them.
    fn places(&self) -> u32 {
        /// Refusals that take about as much memory as an answer without any.
        const REFUSALS: usize = 4;
        let bytes: usize = self.kept.iter().map(|kept| kept.bytes.len()).sum();
        let places = 1 + self.rejections().len() / REFUSALS + bytes / REFUSED_BYTES_PER_PLACE;
        u32::try_from(places.min(ANSWERS_WAITING_MAX)).unwrap_or(u32::MAX)
    }

    fn rejections(&self) -> &[Rejection] {
        let rejections = self.events.iter().find_map(|event| match event {
            Event::Rejected { rejections, .. } => Some(rejections.as_slice()),
            _ => None,
        });
        rejections.unwrap_or_default()
    }
}

/// Answers on their way from acknowledged to durable.
#[derive(Debug)]
pub(super) struct Settling {
    worth: Acknowledgement,
    state: Mutex<State>,
    /// Places for answers that wait, so that their number is bounded.
    places: Semaphore,
    /// Wakes who settles, before its time.
    hurry: Notify,
    /// Tells that refused documents were written that are to be brought to the disk.
    refused: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// The incarnation of the server as last seen.
    server: String,
    waiting: VecDeque<Answer>,
    doubtful: Vec<Answer>,
    has_ended: bool,
}

impl Settling {
    pub(super) fn new(worth: Acknowledgement) -> Self {
        Self {
            worth,
            state: Mutex::default(),
            places: Semaphore::new(ANSWERS_WAITING_MAX),
            hurry: Notify::new(),
            refused: Notify::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The incarnation of the server as last seen.
    pub(super) fn server(&self) -> String {
        match self.worth {
            Acknowledgement::Durable => String::new(),
            Acknowledgement::Volatile => self.state().server.clone(),
        }
    }

    /// Answers that wait to become durable.
    pub(super) fn waiting(&self) -> usize {
        self.state().waiting.len()
    }

    /// Answers that are doubtful, each once.
    pub(super) fn take_doubtful(&self) -> Vec<Answer> {
        std::mem::take(&mut self.state().doubtful)
    }
}

/// Takes an answer in: settles it, or has it wait.
pub(super) async fn take_in<T: Target>(run: &Run<T>, answer: Answer) {
    let settling = &run.settling;
    if settling.worth == Acknowledgement::Durable {
        settle(run, &answer);
        return;
    }
    let places = answer.places();
    if settling.places.available_permits() < places as usize {
        settling.hurry.notify_one();
    }
    let _waiting = run.stages.settling.begin();
    if let Ok(taken) = settling.places.acquire_many(places).await {
        taken.forget();
    }
    settling.state().waiting.push_back(answer);
}

/// Tells and notes an answer, and lets its collection go on.
fn settle<T: Target>(run: &Run<T>, answer: &Answer) {
    let collection = answer.collection;
    for event in &answer.events {
        run.observe(event);
    }
    if let (Some(sums), Some(refused)) = (&run.sums, &answer.refused) {
        sums.take_out(collection, refused);
    }
    run.judge_failures();
    if let (Some(done), Some(ledger)) = (keep_refused(run, answer), &run.ledger) {
        ledger.done(collection, done);
    }
    run.finish(collection);
}

/// Keeps the refused documents of an answer, where that was asked for; returns what may enter the
/// ledger at once.
fn keep_refused<T: Target>(run: &Run<T>, answer: &Answer) -> Option<Done> {
    let Some(rejects) = &run.rejects else {
        return answer.done;
    };
    let (collection, rejections) = (answer.collection, answer.rejections());
    let refused = Refused { collection, rejections, kept: &answer.kept };
    match rejects.keep(refused, answer.done) {
        Ok(done) => {
            if !answer.kept.is_empty() {
                run.settling.refused.notify_one();
            }
            done
        }
        Err(error) => {
            run.fail(error);
            None
        }
    }
}

/// Looks at first which server is written to; without that, nothing acknowledged can be settled.
pub(super) async fn begin<T: Target>(run: &Run<T>) -> Result<(), TargetError> {
    if run.settling.worth == Acknowledgement::Volatile {
        let server = run.target.incarnation().await?;
        run.settling.state().server = server;
    }
    Ok(())
}

/// Settles answers and brings the ledger to the disk, again and again, until told that no more
/// answers come and none waits.
pub(super) async fn keep_settling<T: Target>(run: Arc<Run<T>>) {
    if run.settling.worth == Acknowledgement::Durable
        && run.ledger.is_none()
        && run.rejects.is_none()
    {
        return;
    }
    let mut failing_since: Option<Instant> = None;
    let mut synced = Instant::now();
    loop {
        let has_ended = run.settling.state().has_ended;
        if run.settling.worth == Acknowledgement::Volatile {
            match pass_barrier(&run).await {
                Ok(()) => failing_since = None,
                Err(error) => {
                    let since = *failing_since.get_or_insert_with(Instant::now);
                    if !waits_on(&run, &error, since, has_ended) {
                        run.fail(not_confirmed(&error));
                        give_up(&run);
                    }
                }
            }
        }
        if has_ended && run.settling.state().waiting.is_empty() {
            break;
        }
        if synced.elapsed() >= LEDGER_SYNC_INTERVAL {
            run.sync_ledger().await;
            synced = Instant::now();
        }
        wait(&run).await;
    }
    run.sync_ledger().await;
}

/// Waits until it is time to settle again. What was refused is brought to the disk meanwhile, all
/// that has come together, because the ranges that it belongs to wait for that.
async fn wait<T: Target>(run: &Run<T>) {
    let pause = tokio::time::sleep(SETTLE_INTERVAL);
    tokio::pin!(pause);
    loop {
        tokio::select! {
            biased;
            () = &mut pause => return,
            () = run.settling.hurry.notified() => return,
            () = run.settling.refused.notified() => run.sync_rejects().await,
        }
    }
}

/// Says that no more answers come for now, and waits until all that came are settled or doubtful.
pub(super) async fn end<T: Target>(run: &Run<T>, settler: JoinHandle<()>) {
    run.settling.state().has_ended = true;
    run.settling.hurry.notify_one();
    if settler.await.is_err() {
        run.fail(internal("what settles answers ended early"));
    }
}

/// Says that answers may come again.
pub(super) fn go_on<T>(run: &Run<T>) {
    run.settling.state().has_ended = false;
}

/// Asks once what is durable, and settles it.
async fn pass_barrier<T: Target>(run: &Run<T>) -> Result<(), TargetError> {
    let settling = &run.settling;
    let (asked, among) = {
        let state = settling.state();
        let Some(first) = state.waiting.front() else {
            return Ok(());
        };
        (state.waiting.len(), run.plan.collections[first.collection].data_namespace.clone())
    };
    let horizon = run.target.horizon(&among).await?;
    let (durable, doubtful) = sort(&mut settling.state(), asked, &horizon);
    let settled = durable.iter().chain(&doubtful);
    settling.places.add_permits(settled.map(|answer| answer.places() as usize).sum());
    for answer in &durable {
        settle(run, answer);
    }
    if !doubtful.is_empty() {
        doubt(run, doubtful);
    }
    Ok(())
}

/// Takes out what the horizon decides about the answers that came before it was asked for.
fn sort(state: &mut State, asked: usize, horizon: &Horizon) -> (Vec<Answer>, Vec<Answer>) {
    let (mut durable, mut doubtful) = (Vec::new(), Vec::new());
    let asked = asked.min(state.waiting.len());
    let mut open: Vec<Answer> = Vec::new();
    for answer in state.waiting.drain(..asked) {
        match horizon.fate(&answer.server, answer.mark) {
            Fate::Durable => durable.push(answer),
            Fate::Open => open.push(answer),
            Fate::Doubtful => doubtful.push(answer),
        }
    }
    for answer in open.into_iter().rev() {
        state.waiting.push_front(answer);
    }
    state.server.clone_from(&horizon.server);
    (durable, doubtful)
}

/// Keeps answers for another sending; where they came through a pipe, nothing can be read again.
fn doubt<T: Target>(run: &Run<T>, mut doubtful: Vec<Answer>) {
    for answer in &mut doubtful {
        answer.kept = Vec::new();
    }
    let documents: u64 = doubtful.iter().map(|answer| answer.documents).sum();
    let documents = counted(documents, "document", "documents");
    let is_piped = doubtful.iter().any(|answer| run.reads_once(answer.collection));
    if is_piped {
        let message = format!(
            "another server took over before {documents} that were acknowledged were durable, and \
             they came through a pipe, which cannot be read again"
        );
        run.fail(
            Error::new(ErrorKind::Write, message)
                .hint("restore from a file, or wait for every batch with --write-concern majority"),
        );
    } else {
        let text = format!(
            "another server took over before {documents} that were acknowledged were durable; they \
             are sent again"
        );
        run.observe(&Event::Note { collection: None, text });
    }
    run.settling.state().doubtful.extend(doubtful);
}

/// Whether there is hope that the target will answer yet.
fn waits_on<T: Target>(run: &Run<T>, error: &TargetError, since: Instant, has_ended: bool) -> bool {
    let patience = if run.goes_on() || !has_ended { run.settings.retry_for } else { STOP_GRACE };
    retry::verdict(error, false) == Verdict::Retry && since.elapsed() < patience
}

/// Counts what waits as not sent: whether it stays, nobody can say.
fn give_up<T: Target>(run: &Run<T>) {
    let waiting = std::mem::take(&mut run.settling.state().waiting);
    run.settling.places.add_permits(waiting.iter().map(|answer| answer.places() as usize).sum());
    for answer in waiting {
        abandon(run, &answer);
    }
}

/// Counts the documents of an answer that is not settled as not sent.
pub(super) fn abandon<T: Target>(run: &Run<T>, answer: &Answer) {
    let (collection, documents) = (answer.collection, answer.documents);
    run.observe(&Event::Unsent { collection, documents });
    run.finish(collection);
}

pub(super) fn not_confirmed(error: &TargetError) -> Error {
    let message = format!("what was acknowledged could not be confirmed as durable: {error}");
    let failed = Error::new(ErrorKind::Write, message)
        .hint("documents that were not confirmed count as unsent; the restore can be resumed");
    match error.code {
        Some(code) => failed.with_code(code),
        None => failed,
    }
}

impl<T> Run<T> {
    /// Whether the documents of a collection can be read only once.
    pub(super) fn reads_once(&self, collection: usize) -> bool {
        match &self.plan.collections[collection].data {
            // Nothing tells which line a document was made from once it was sent.
            Some(Origin::Input | Origin::Text(_)) => true,
            Some(Origin::Segments(segments)) => segments.archive.is_piped(),
            Some(Origin::File(_) | Origin::Made(_)) | None => false,
        }
    }
}
