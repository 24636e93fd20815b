//! Folds events into counts; has no clock of its own.

pub mod collection;
pub mod counts;
mod extent;
pub mod special;
pub mod stream;
pub mod workers;

use std::sync::Arc;
use std::time::Duration;

pub use collection::{CollectionTally, Failures, IndexState, IndexTally, State};
pub use counts::{Balance, Counts, PhaseTimes};
pub use special::{OplogTally, UsersTally};
pub use stream::OneStream;
pub use workers::{WorkersDecision, WorkersTally};

use crate::report::bound::Bounds;
use crate::report::event::{Event, Phase, PlannedCollection};
use crate::report::latency::Latencies;
use crate::report::lost::{Lost, LostStretch};
use crate::report::rate::{Amounts, Pace, Peak, Rate};
use crate::report::timeline::{Answered, Timeline};
use crate::sample::Sample;

/// The counts of a run so far.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    collections: Vec<CollectionTally>,
    /// The collections that documents or indexes are being written for, the longest at it first.
    active: Vec<usize>,
    counts: Counts,
    origin_bytes: u64,
    origin_bytes_done: u64,
    /// Bytes of files that were given up, which nobody waits for.
    origin_bytes_lost: u64,
    pace: Option<Pace>,
    peak: Peak,
    last_answer: Option<Duration>,
    latencies: Latencies,
    timeline: Timeline,
    bounds: Bounds,
    sample: Option<Sample>,
    phase: Option<(Phase, Duration)>,
    times: PhaseTimes,
    notes: Vec<Note>,
    /// What is lost outside any collection.
    lost_elsewhere: Lost,
    /// The one stream that all documents come from, where they do.
    stream: Option<OneStream>,
    special: special::Special,
    workers: WorkersTally,
}

/// Something a person should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The collection, where it concerns one.
    pub collection: Option<usize>,
    /// A sentence without its final period.
    pub text: String,
}

impl Tally {
    /// Takes an event into account; `at` is the time since the run began.
    pub fn apply(&mut self, at: Duration, event: &Event) {
        match event {
            Event::Planned { collections } => self.plan(collections),
            Event::OneStream { bytes, compressed } => {
                self.stream = Some(OneStream { bytes: *bytes, compressed: *compressed });
            }
            Event::PhaseBegan(phase) => self.begin_phase(at, *phase),
            Event::PrepareBegan { .. } | Event::Prepared { .. } => {}
            Event::Sampled(sample) => self.sampled(at, sample),
            Event::WorkersChanged { workers, reason } => {
                self.workers.change(at, *workers, reason);
            }
            Event::Read { .. }
            | Event::Carried { .. }
            | Event::Written { .. }
            | Event::Rejected { .. }
            | Event::Damaged { .. }
            | Event::Unsent { .. }
            | Event::Retried { .. } => self.apply_documents(at, event),
            Event::Lost { collection, stretch } => self.lose(*collection, stretch),
            Event::Note { collection, text } => {
                self.notes.push(Note { collection: *collection, text: text.clone() });
            }
            Event::UsersPlanned { .. }
            | Event::UsersEnded { .. }
            | Event::OplogPlanned { .. }
            | Event::OplogApplied { .. }
            | Event::OplogEnded { .. } => self.special.apply(event),
            Event::CollectionAdded(planned) => {
                self.collections.push(CollectionTally::added(planned.clone()));
            }
            Event::IndexesReplanned { collection, indexes } => {
                if let Some(tally) = self.collections.get_mut(*collection) {
                    Arc::make_mut(&mut tally.planned).indexes = *indexes;
                }
            }
            Event::ReadBegan { collection }
            | Event::DataEnded { collection }
            | Event::IndexBegan { collection, .. }
            | Event::IndexProgressed { collection, .. }
            | Event::IndexBuilt { collection, .. }
            | Event::IndexFailed { collection, .. }
            | Event::CollectionEnded { collection }
            | Event::CollectionFailed { collection, .. } => {
                self.apply_progress(at, *collection, event);
                self.update_active(*collection);
            }
        }
        self.times.total = self.times.total.max(at);
    }

    fn plan(&mut self, collections: &[Arc<PlannedCollection>]) {
        let tally = |planned: &Arc<_>| CollectionTally::new(Arc::clone(planned));
        self.collections = collections.iter().map(tally).collect();
        self.active.clear();
        self.origin_bytes = collections.iter().map(|planned| planned.origin_bytes).sum();
    }

    fn lose(&mut self, collection: Option<usize>, stretch: &LostStretch) {
        let collection = collection.and_then(|collection| self.collections.get_mut(collection));
        collection.map_or(&mut self.lost_elsewhere, |tally| &mut tally.lost).add(stretch);
    }

    fn begin_phase(&mut self, at: Duration, phase: Phase) {
        self.bounds.begin_phase(at, phase);
        if let Some((last, began)) = self.phase.replace((phase, at)) {
            self.times.add(last, at.saturating_sub(began));
        }
    }

    /// Counts what an earlier run brought of a collection.
    fn carry(&mut self, event: &Event) {
        let Event::Carried {
            collection,
            inserted,
            changes,
            already_there,
            rejected,
            conflicts,
            bytes,
        } = *event
        else {
            return;
        };
        let documents = inserted + changes.documents() + already_there + rejected;
        self.count(collection, |counts| {
            counts.read += documents;
            counts.bytes_read += bytes;
            counts.inserted += inserted;
            counts.changes += changes;
            counts.already_there += already_there;
            counts.rejected += rejected;
            counts.conflicts += conflicts;
            counts.carried += documents;
            counts.done_before += inserted + changes.found();
        });
    }

    /// The events that come with every batch.
    fn apply_documents(&mut self, at: Duration, event: &Event) {
        match *event {
            Event::Read { collection, documents, bytes } => self.count(collection, |counts| {
                counts.read += documents;
                counts.bytes_read += bytes;
            }),
            Event::Carried { .. } => self.carry(event),
            Event::Written {
                collection,
                inserted,
                changes,
                already_there,
                rejected,
                conflicts,
                bytes,
                origin_bytes,
                latency,
            } => {
                let before = self.origin_bytes_done_of(collection);
                self.count(collection, |counts| {
                    counts.inserted += inserted;
                    counts.changes += changes;
                    counts.already_there += already_there;
                    counts.rejected += rejected;
                    counts.conflicts += conflicts;
                    counts.bytes_acknowledged += bytes;
                    counts.origin_bytes_acknowledged += origin_bytes;
                    counts.batches += 1;
                });
                self.origin_bytes_done += self.origin_bytes_done_of(collection) - before;
                let documents = inserted + changes.found();
                let amounts = Amounts { documents, bytes, origin_bytes };
                self.answered(at, collection, Answered { amounts, rejected, latency });
            }
            Event::Damaged { collection, bytes, ref rejection } => {
                self.timeline.rejected(at, 1);
                self.count(collection, |counts| {
                    counts.read += 1;
                    counts.bytes_read += bytes;
                    counts.rejected += 1;
                });
                if let Some(tally) = self.collections.get_mut(collection) {
                    tally.count_rejections(std::slice::from_ref(rejection));
                }
            }
            Event::Unsent { collection, documents } => {
                self.count(collection, |counts| counts.unsent += documents);
            }
            Event::Retried { collection, .. } => {
                self.timeline.retried(at);
                match collection {
                    Some(collection) => self.count(collection, |counts| counts.retries += 1),
                    None => self.counts.retries += 1,
                }
            }
            Event::Rejected { collection, ref rejections } => {
                if let Some(tally) = self.collections.get_mut(collection) {
                    tally.count_rejections(rejections);
                }
            }
            _ => {}
        }
    }

    fn count(&mut self, collection: usize, add: impl Fn(&mut Counts)) {
        add(&mut self.counts);
        if let Some(tally) = self.collections.get_mut(collection) {
            add(&mut tally.counts);
        }
    }

    /// Counts a batch that was answered for towards everything that has to do with time.
    fn answered(&mut self, at: Duration, collection: usize, answered: Answered) {
        let Answered { amounts, latency, .. } = answered;
        self.last_answer = self.last_answer.max(Some(at));
        self.peak.add(at, amounts);
        self.pace.get_or_insert_with(|| Pace::new(at)).add(at, amounts);
        self.timeline.answered(at, answered);
        self.latencies.add(latency);
        self.bounds.answered(latency);
        if let Some(tally) = self.collections.get_mut(collection) {
            tally.answered(at, amounts, latency);
        }
    }

    fn origin_bytes_done_of(&self, collection: usize) -> u64 {
        self.collections.get(collection).map_or(0, CollectionTally::origin_bytes_done)
    }

    /// The events that take a collection from one state to the next.
    fn apply_progress(&mut self, at: Duration, collection: usize, event: &Event) {
        let before = self.origin_bytes_done_of(collection);
        if matches!(event, Event::ReadBegan { .. }) {
            self.pace.get_or_insert_with(|| Pace::new(at));
        }
        if let Some(tally) = self.collections.get_mut(collection) {
            let lost = tally.origin_bytes_lost();
            tally.apply(at, event);
            // What is read around damage is lost first and done after all.
            self.origin_bytes_lost = self.origin_bytes_lost - lost + tally.origin_bytes_lost();
        }
        self.origin_bytes_done += self.origin_bytes_done_of(collection) - before;
    }

    fn update_active(&mut self, collection: usize) {
        let is_active = self.collections.get(collection).is_some_and(CollectionTally::is_active);
        let place = self.active.iter().position(|&active| active == collection);
        match (place, is_active) {
            (None, true) => self.active.push(collection),
            (Some(place), false) => {
                self.active.remove(place);
            }
            _ => {}
        }
    }

    /// The collections, in the order of the plan.
    pub fn collections(&self) -> &[CollectionTally] {
        &self.collections
    }

    /// The collections that documents or indexes are being written for, the longest at it first.
    pub fn active(&self) -> impl ExactSizeIterator<Item = (usize, &CollectionTally)> {
        self.active.iter().map(|&collection| (collection, &self.collections[collection]))
    }

    /// What the whole run has come to.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// What became of all documents that were read.
    pub fn balance(&self) -> Balance {
        self.counts.balance()
    }

    /// What became of users and roles, where some are restored.
    pub fn users(&self) -> Option<&UsersTally> {
        self.special.users.as_ref()
    }

    /// What became of the oplog, where one is replayed.
    pub fn oplog(&self) -> Option<&OplogTally> {
        self.special.oplog.as_ref()
    }

    /// How many batches were in flight, and why that changed.
    pub fn workers(&self) -> &WorkersTally {
        &self.workers
    }

    /// What is lost of the dump outside any collection.
    pub fn lost_elsewhere(&self) -> &Lost {
        &self.lost_elsewhere
    }

    /// What a person should know.
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }

    /// The stage the run is in, and since when.
    pub fn phase(&self) -> Option<(Phase, Duration)> {
        self.phase
    }

    /// Whether everything is done or given up.
    pub fn has_ended(&self) -> bool {
        matches!(self.phase, Some((Phase::Ended, _)))
    }

    /// How long each stage has taken until the last event.
    pub fn times(&self) -> PhaseTimes {
        let mut times = self.times;
        if let Some((phase, began)) = self.phase {
            times.add(phase, times.total.saturating_sub(began));
        }
        times
    }

    /// The bytes of all data files, or of the archive; of a pipe those that were read.
    pub fn origin_bytes(&self) -> u64 {
        match self.stream {
            Some(stream) => stream.bytes.unwrap_or(self.counts.origin_bytes_acknowledged),
            None => self.origin_bytes,
        }
    }

    /// The one stream that all documents come from, where they do: the size of each collection is
    /// not known then.
    pub fn stream(&self) -> Option<OneStream> {
        self.stream
    }

    /// How fast it goes at `at`.
    pub fn rate(&self, at: Duration) -> Rate {
        self.pace.as_ref().map_or_else(Rate::default, |pace| pace.rate(at))
    }

    /// The rate over all of the time in which documents were written.
    pub fn rate_average(&self) -> Rate {
        let counts = self.counts;
        let amounts = Amounts {
            documents: counts.done() - counts.done_before,
            bytes: counts.bytes_acknowledged,
            origin_bytes: counts.origin_bytes_acknowledged,
        };
        let times = self.times();
        amounts.per(if times.data.is_zero() { times.total } else { times.data })
    }

    /// The rate of the fastest second, or the average where no second was filled.
    pub fn rate_peak(&self) -> Rate {
        let (peak, average) =
            (self.peak.highest().per(Duration::from_secs(1)), self.rate_average());
        Rate {
            documents: peak.documents.max(average.documents),
            bytes: peak.bytes.max(average.bytes),
            origin_bytes: peak.origin_bytes.max(average.origin_bytes),
        }
    }

    /// How long the remaining documents will take from `at` on; nothing while there is no telling.
    pub fn time_left(&self, at: Duration) -> Option<Duration> {
        let done = self.origin_bytes_done + self.origin_bytes_lost;
        let left = match self.stream {
            Some(stream) => stream.bytes_left(self.counts)?,
            None if self.is_endless() => return None,
            None => self.origin_bytes.saturating_sub(done),
        };
        self.pace.as_ref()?.time_left(at, left)
    }

    /// How long nothing has been answered at `at`; nothing while no documents are written.
    pub fn silence(&self, at: Duration) -> Option<Duration> {
        let loading = self.active().filter(|(_, tally)| tally.state == State::Loading);
        let began = loading.filter_map(|(_, tally)| tally.began).min()?;
        Some(at.saturating_sub(self.last_answer.map_or(began, |answer| answer.max(began))))
    }

    /// How long batches took from sending to their answer.
    pub fn latencies(&self) -> &Latencies {
        &self.latencies
    }

    /// What happened in each second.
    pub fn timeline(&self) -> &Timeline {
        &self.timeline
    }

    /// What the run waits for, and has waited for.
    pub fn bounds(&self) -> &Bounds {
        &self.bounds
    }

    /// How the run stood when it last told.
    pub fn sample(&self) -> Option<&Sample> {
        self.sample.as_ref()
    }

    fn sampled(&mut self, at: Duration, sample: &Sample) {
        self.timeline.sampled(at, sample.gauges);
        self.bounds.sampled(at, sample);
        self.sample = Some(sample.clone());
    }
}

#[cfg(test)]
mod tests;
