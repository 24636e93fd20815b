//! The counts of one collection.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::limits::FAILURE_SAMPLES;
use crate::namespace::Namespace;
use crate::report::event::{Event, PlannedCollection, Rejection};
use crate::report::latency::Latencies;
use crate::report::lost::Lost;
use crate::report::rate::{Amounts, Pace, Rate, UNFINISHED_SHARE_MAX, share};
use crate::report::tally::counts::Counts;
use crate::sample::IndexProgress;

/// The counts of one collection.
#[derive(Clone, Debug)]
pub struct CollectionTally {
    /// What the plan says of it.
    pub planned: Arc<PlannedCollection>,
    /// How far it is.
    pub state: State,
    /// What it has come to.
    pub counts: Counts,
    /// Its indexes, in the order in which they were begun.
    pub indexes: Vec<IndexTally>,
    /// The documents the server refused, by the server's code.
    pub failures: BTreeMap<i32, Failures>,
    /// What is lost of its documents.
    pub lost: Lost,
    /// When reading began.
    pub began: Option<Duration>,
    /// When its last document was answered for.
    pub data_ended: Option<Duration>,
    /// When everything of it was done or given up.
    pub ended: Option<Duration>,
    /// How long its batches took from sending to their answer.
    pub latencies: Latencies,
    pace: Option<Box<Pace>>,
}

/// How far a collection is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// Its documents have not been touched.
    Waiting,
    /// Documents are read and written.
    Loading,
    /// All documents are answered for, indexes are built or wait to be.
    Indexing,
    /// It is done with.
    Done,
    /// It could not be restored completely; with what went wrong.
    Failed(String),
}

/// One index of a collection.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexTally {
    /// Its name.
    pub name: String,
    /// When building it began.
    pub began: Duration,
    /// How far it is.
    pub state: IndexState,
    /// The share of its build that the server says is done, 0 to 1; nothing before it says so.
    pub fraction: Option<f64>,
}

impl IndexTally {
    fn new(name: &str, began: Duration, state: IndexState) -> Self {
        Self { name: name.to_owned(), began, state, fraction: None }
    }

    /// How long its build will still take from `at` on; nothing while there is no telling.
    pub fn time_left(&self, at: Duration) -> Option<Duration> {
        let fraction = self.fraction.filter(|fraction| *fraction > 0.0)?;
        let spent = at.saturating_sub(self.began).as_secs_f64();
        Duration::try_from_secs_f64(spent * (1.0 - fraction) / fraction).ok()
    }
}

/// How far an index is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IndexState {
    /// The server builds it.
    Building,
    /// It stands; with how long its command took.
    Built(Duration),
    /// It could not be built; with the server's reason.
    Failed(String),
}

/// The documents that the server refused with one code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failures {
    /// How many.
    pub count: u64,
    /// The first few.
    pub samples: Vec<Rejection>,
}

impl CollectionTally {
    pub(super) fn new(planned: Arc<PlannedCollection>) -> Self {
        Self {
            planned,
            state: State::Waiting,
            counts: Counts::default(),
            indexes: Vec::new(),
            failures: BTreeMap::new(),
            lost: Lost::default(),
            began: None,
            data_ended: None,
            ended: None,
            latencies: Latencies::default(),
            pace: None,
        }
    }

    /// One that the oplog made: it has no file, and its documents came with the oplog.
    pub(super) fn added(planned: PlannedCollection) -> Self {
        Self { state: State::Indexing, ..Self::new(Arc::new(planned)) }
    }

    /// Takes an event about this collection into account that takes it from one state to the next.
    pub(super) fn apply(&mut self, at: Duration, event: &Event) {
        match event {
            Event::ReadBegan { .. } => {
                self.pace = Some(Box::new(Pace::new(at)));
                self.began = Some(at);
                self.state = State::Loading;
            }
            Event::DataEnded { .. } => {
                self.data_ended = Some(at);
                self.pace = None;
                self.advance(State::Indexing);
            }
            Event::IndexBegan { index, .. } => {
                self.indexes.push(IndexTally::new(index, at, IndexState::Building));
            }
            Event::IndexProgressed { progress, .. } => self.progress(progress),
            Event::IndexBuilt { index, took, .. } => {
                self.end_index(at, index, IndexState::Built(*took));
            }
            Event::IndexFailed { index, reason, .. } => {
                self.end_index(at, index, IndexState::Failed(reason.clone()));
            }
            Event::CollectionEnded { .. } => {
                self.ended = Some(at);
                self.pace = None;
                self.advance(State::Done);
            }
            Event::CollectionFailed { error, .. } => {
                self.ended = Some(at);
                self.pace = None;
                self.advance(State::Failed(error.clone()));
            }
            _ => {}
        }
    }

    /// The first failure stays, whatever comes after it.
    fn advance(&mut self, state: State) {
        if !matches!(self.state, State::Failed(_)) {
            self.state = state;
        }
    }

    /// Takes amounts into account that the server acknowledged at `at`, so long after sending.
    pub(super) fn answered(&mut self, at: Duration, amounts: Amounts, latency: Duration) {
        self.latencies.add(latency);
        if let Some(pace) = &mut self.pace {
            pace.add(at, amounts);
        }
    }

    /// Its name.
    pub fn namespace(&self) -> &Namespace {
        &self.planned.namespace
    }

    /// The bytes of its file that are done with; never more than the file has.
    pub fn origin_bytes_done(&self) -> u64 {
        let whole = self.planned.origin_bytes;
        // The end of a compressed file belongs to no batch.
        if self.data_ended.is_some() {
            whole
        } else {
            self.counts.origin_bytes_acknowledged.min(whole)
        }
    }

    /// The bytes of its file that were given up.
    pub(super) fn origin_bytes_lost(&self) -> u64 {
        match self.state {
            State::Failed(_) => self.planned.origin_bytes - self.origin_bytes_done(),
            _ => 0,
        }
    }

    /// The share of its documents that the server has answered for, by the bytes of its file.
    pub fn fraction(&self) -> f64 {
        if self.data_ended.is_some() {
            return 1.0;
        }
        share(self.origin_bytes_done(), self.planned.origin_bytes).min(UNFINISHED_SHARE_MAX)
    }

    /// How fast it goes at `at`.
    pub fn rate(&self, at: Duration) -> Rate {
        self.pace.as_ref().map_or_else(Rate::default, |pace| pace.rate(at))
    }

    /// How long its documents will take from `at` on; nothing while there is no telling.
    pub fn time_left(&self, at: Duration) -> Option<Duration> {
        let left = self.planned.origin_bytes - self.origin_bytes_done();
        self.pace.as_ref()?.time_left(at, left)
    }

    /// How long its documents took; nothing before the last is answered for.
    pub fn data_time(&self) -> Option<Duration> {
        Some(self.data_ended?.saturating_sub(self.began?))
    }

    /// Takes in how far the server is; what it said before is never taken back.
    fn progress(&mut self, progress: &IndexProgress) {
        let is_meant = |index: &&mut IndexTally| {
            index.state == IndexState::Building && progress.indexes.contains(&index.name)
        };
        for index in self.indexes.iter_mut().filter(is_meant) {
            index.fraction = Some(progress.fraction().max(index.fraction.unwrap_or(0.0)));
        }
    }

    /// The work of its indexes that is done, as a number of indexes.
    pub(super) fn indexes_done(&self) -> f64 {
        let done = |index: &IndexTally| match index.state {
            IndexState::Building => index.fraction.unwrap_or(0.0),
            IndexState::Built(_) | IndexState::Failed(_) => 1.0,
        };
        self.indexes.iter().map(done).sum()
    }

    /// The indexes that the server builds now.
    pub fn building(&self) -> impl Iterator<Item = &IndexTally> {
        self.indexes.iter().filter(|index| index.state == IndexState::Building)
    }

    /// How many indexes stand.
    pub fn indexes_built(&self) -> usize {
        self.indexes.iter().filter(|index| matches!(index.state, IndexState::Built(_))).count()
    }

    pub(super) fn is_active(&self) -> bool {
        self.state == State::Loading || self.building().next().is_some()
    }

    pub(super) fn count_rejections(&mut self, rejections: &[Rejection]) {
        for rejection in rejections {
            let failures = self.failures.entry(rejection.code).or_default();
            failures.count += 1;
            if failures.samples.len() < FAILURE_SAMPLES {
                failures.samples.push(rejection.clone());
            }
        }
    }

    fn end_index(&mut self, at: Duration, name: &str, state: IndexState) {
        let begun = self
            .indexes
            .iter_mut()
            .find(|index| index.state == IndexState::Building && index.name == name);
        match begun {
            Some(index) => index.state = state,
            None => self.indexes.push(IndexTally::new(name, at, state)),
        }
    }
}
