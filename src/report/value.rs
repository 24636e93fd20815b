//! The report of a run, as a value that holds everything the text and the JSON show.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Serialize, Serializer};

use crate::exit::ExitStatus;
use crate::limits::FAILURE_SAMPLES;
use crate::namespace::Namespace;
use crate::report::bound::BoundBy;
use crate::report::event::Rejection;
use crate::report::latency::Quantiles;
use crate::report::lost::Lost;
use crate::report::rate::Rate;
use crate::report::survey::BeforeAndAfter;
use crate::report::tally::special::Progress;
use crate::report::tally::{
    Balance, CollectionTally, IndexState, OplogTally, State, Tally, UsersTally,
};
use crate::report::timeline::{Point, Timeline};
use crate::report::verification::{Agreement, Verification};
use crate::report::workers::WorkersReport;

/// The name and version of the JSON form; a change that breaks readers raises the number.
pub const SCHEMA: &str = "restorm.report/1";

/// What a tally does not know of its run.
#[derive(Clone, Debug)]
pub struct Context {
    /// The version of this program.
    pub tool_version: String,
    /// Where documents were written to.
    pub target: TargetFacts,
    /// Where documents came from.
    pub dump: DumpFacts,
    /// What of the dump was not restored, and why.
    pub skipped: Vec<Skipped>,
    /// How the run came to its end.
    pub outcome: Outcome,
    /// What was asked for, as far as it differs from the defaults.
    pub options: Vec<OptionValue>,
}

/// Where documents were written to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TargetFacts {
    /// The target in words, such as its address without secrets.
    pub description: String,
    /// The server's version, where there is a server.
    pub server_version: Option<String>,
}

/// Where documents came from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DumpFacts {
    /// The path of the dump as it was given.
    pub path: String,
    /// The version of the server the dump was taken from, where the dump says it.
    pub server_version: Option<String>,
    /// The version of the tool that took the dump, where the dump says it.
    pub tool_version: Option<String>,
    /// Whether its documents were made and lie nowhere.
    #[serde(skip)]
    pub is_made: bool,
}

/// Something that was not restored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Skipped {
    /// The file, folder or collection.
    pub what: String,
    /// Why; a sentence without its final period.
    pub reason: String,
    /// Whether data may be missing because of it.
    pub is_problem: bool,
}

/// An option and its value as it would be typed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OptionValue {
    /// The flag without its dashes.
    pub name: String,
    /// Its value, without secrets.
    pub value: String,
}

/// How a run came to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It went through the whole plan, whatever became of single collections.
    Finished,
    /// An error ended it.
    Stopped {
        /// What went wrong.
        error: String,
    },
    /// Someone asked it to stop; batches in flight were finished.
    Interrupted,
}

impl Serialize for Outcome {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Fields<'a> {
            kind: &'static str,
            error: Option<&'a str>,
        }
        let (kind, error) = match self {
            Self::Finished => ("finished", None),
            Self::Stopped { error } => ("stopped", Some(error.as_str())),
            Self::Interrupted => ("interrupted", None),
        };
        Fields { kind, error }.serialize(serializer)
    }
}

/// What happened in a run.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The name and version of the JSON form.
    pub schema: &'static str,
    /// The version of this program.
    pub tool_version: String,
    /// How the run came to its end.
    pub outcome: Outcome,
    /// The exit status that follows from all of this.
    pub exit_status: ExitStatus,
    /// What became of the documents.
    pub balance: Balance,
    /// Whether every document that was read is accounted for, once.
    pub is_balanced: bool,
    /// Sums over the collections.
    pub totals: Totals,
    /// How fast it went.
    pub rates: Rates,
    /// How long it took.
    pub times: Times,
    /// How long batches took from sending to their answer.
    pub latency: Quantiles,
    /// What happened in each second.
    pub timeline: TimelineReport,
    /// What the run waited for most; nothing where it was too short to tell.
    pub bound_by: Option<BoundBy>,
    /// How many batches were in flight.
    pub workers: WorkersReport,
    /// Where documents were written to.
    pub target: TargetFacts,
    /// Where documents came from.
    pub dump: DumpFacts,
    /// What was asked for.
    pub options: Vec<OptionValue>,
    /// The collections in the order of the plan.
    pub collections: Vec<CollectionReport>,
    /// Users and roles, where some were to be restored; they do not count as documents.
    pub users: Option<UsersTally>,
    /// The oplog, where one was to be replayed.
    pub oplog: Option<OplogTally>,
    /// The ledger that a restore can go on with, where this one did not come to its end.
    pub ledger: Option<String>,
    /// What became of damage, where it was to be read around.
    pub salvage: Option<SalvageReport>,
    /// What a comparison with the dump found afterwards, where one was made.
    pub verification: Option<Verification>,
    /// What the target held before and holds after, where it was surveyed.
    pub survey: Option<BeforeAndAfter>,
    /// What of the dump was not restored, and why.
    pub skipped: Vec<Skipped>,
    /// What a person should know.
    pub notes: Vec<NoteReport>,
}

/// What became of damage that was read around.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SalvageReport {
    /// The folder that the lost bytes are kept in; nothing where nothing is lost.
    pub folder: Option<String>,
    /// Lost stretches, over all collections and outside of them.
    pub stretches: u64,
    /// Their bytes, uncompressed.
    pub bytes: u64,
    /// Those outside any collection.
    pub elsewhere: Lost,
}

/// What happened in each interval of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TimelineReport {
    /// Seconds that each point stands for: 1 in runs of up to an hour.
    pub interval_seconds: u64,
    /// The points, those of idle intervals included.
    pub points: Vec<Point>,
}

impl TimelineReport {
    fn new(timeline: &Timeline) -> Self {
        Self { interval_seconds: timeline.interval_seconds(), points: timeline.points() }
    }
}

/// Sums over the collections.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Totals {
    /// Collections that were planned, views included.
    pub collections: usize,
    /// Collections that are done with.
    pub collections_done: usize,
    /// Collections that could not be restored completely.
    pub collections_failed: usize,
    /// Bytes of the documents read, uncompressed.
    pub bytes_read: u64,
    /// Bytes of the documents the server answered for, uncompressed.
    pub bytes_acknowledged: u64,
    /// Bytes of all data files.
    pub origin_bytes: u64,
    /// Bytes of the data files whose documents the server answered for.
    pub origin_bytes_acknowledged: u64,
    /// The share of the run that is done, 0 to 1, and 1 only when everything is.
    pub fraction_done: f64,
    /// Documents that an earlier run had brought; the balance counts them as well.
    pub documents_carried: u64,
    /// Batches the server answered for.
    pub batches: u64,
    /// Batches and commands that were sent again.
    pub retries: u64,
    /// Indexes that were planned.
    pub indexes: usize,
    /// Indexes that stand.
    pub indexes_built: usize,
    /// Indexes that could not be built.
    pub indexes_failed: usize,
}

/// How fast a run went.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Rates {
    /// Documents inserted per second of the time in data.
    pub average_documents_per_second: f64,
    /// Bytes acknowledged per second of the time in data.
    pub average_bytes_per_second: f64,
    /// Documents inserted in the fastest second.
    pub peak_documents_per_second: f64,
    /// Bytes acknowledged in the fastest second.
    pub peak_bytes_per_second: f64,
    /// Documents inserted per second in the fastest 30 seconds, in runs of that length.
    pub peak_window_documents_per_second: Option<f64>,
    /// Bytes acknowledged per second in the fastest 30 seconds, in runs of that length.
    pub peak_window_bytes_per_second: Option<f64>,
}

impl Rates {
    fn new(average: Rate, peak: Rate, window: Option<Rate>) -> Self {
        Self {
            average_documents_per_second: average.documents,
            average_bytes_per_second: average.bytes,
            peak_documents_per_second: peak.documents,
            peak_bytes_per_second: peak.bytes,
            peak_window_documents_per_second: window.map(|window| window.documents),
            peak_window_bytes_per_second: window.map(|window| window.bytes),
        }
    }
}

/// How long a run took; in JSON as seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Times {
    /// The whole run.
    #[serde(rename = "total_seconds", serialize_with = "seconds")]
    pub total: Duration,
    /// While documents were read and written.
    #[serde(rename = "data_seconds", serialize_with = "seconds")]
    pub data: Duration,
    /// While users and roles were restored.
    #[serde(rename = "users_seconds", serialize_with = "seconds")]
    pub users: Duration,
    /// While the oplog was replayed.
    #[serde(rename = "oplog_seconds", serialize_with = "seconds")]
    pub oplog: Duration,
    /// While only index builds were left.
    #[serde(rename = "indexes_seconds", serialize_with = "seconds")]
    pub indexes: Duration,
    /// While indexes that delete documents were built.
    #[serde(rename = "time_to_live_seconds", serialize_with = "seconds")]
    pub time_to_live: Duration,
    /// While views were created.
    #[serde(rename = "views_seconds", serialize_with = "seconds")]
    pub views: Duration,
    /// The sum over all index builds, which run side by side and beside the documents.
    #[serde(rename = "index_builds_seconds", serialize_with = "seconds")]
    pub index_builds: Duration,
    /// The mean time from sending a batch to its answer.
    #[serde(rename = "batch_latency_mean_seconds", serialize_with = "seconds")]
    pub batch_latency_mean: Duration,
    /// The longest time from sending a batch to its answer.
    #[serde(rename = "batch_latency_max_seconds", serialize_with = "seconds")]
    pub batch_latency_max: Duration,
}

/// What became of one collection.
#[derive(Clone, Debug, Serialize)]
pub struct CollectionReport {
    /// Its full name.
    #[serde(serialize_with = "full_name")]
    pub namespace: Namespace,
    /// The server's word for its kind.
    pub kind: &'static str,
    /// How far it came.
    pub state: CollectionState,
    /// What went wrong, where it failed.
    pub error: Option<String>,
    /// What became of its documents.
    pub balance: Balance,
    /// Documents of [`Balance::done`] that an earlier run brought.
    pub done_before: u64,
    /// Bytes of the documents read, uncompressed.
    pub bytes_read: u64,
    /// Bytes of the documents the server answered for, uncompressed.
    pub bytes_acknowledged: u64,
    /// The size of its data file.
    pub origin_bytes: u64,
    /// Whether the data file is compressed.
    pub is_compressed: bool,
    /// Batches and commands that were sent again.
    pub retries: u64,
    /// From the beginning of reading to the last answer, where there was one.
    #[serde(rename = "data_seconds", serialize_with = "seconds_if_any")]
    pub data_time: Option<Duration>,
    /// How long its batches took from sending to their answer.
    pub latency: Quantiles,
    /// How many indexes were planned.
    pub indexes_planned: usize,
    /// The indexes that were begun.
    pub indexes: Vec<IndexReport>,
    /// The documents the server refused, by code.
    pub failures: Vec<FailureReport>,
    /// What is lost of its documents, where damage was read around.
    pub lost: Lost,
}

/// How far a collection came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CollectionState {
    /// Its documents were not touched.
    Waiting,
    /// Some of its documents may be missing.
    Loading,
    /// All its documents are there, some indexes may be missing.
    Indexing,
    /// It is done with.
    Done,
    /// It could not be restored completely.
    Failed,
}

/// What became of one index.
#[derive(Clone, Debug, Serialize)]
pub struct IndexReport {
    /// Its name.
    pub name: String,
    /// Whether it stands.
    pub is_built: bool,
    /// How long its command took, where it succeeded.
    #[serde(rename = "build_seconds", serialize_with = "seconds_if_any")]
    pub build_time: Option<Duration>,
    /// The server's reason, where it failed.
    pub error: Option<String>,
}

/// The documents that the server refused with one code.
#[derive(Clone, Debug, Serialize)]
pub struct FailureReport {
    /// The server's error code.
    pub code: i32,
    /// How many.
    pub count: u64,
    /// The first few.
    pub samples: Vec<Sample>,
}

/// One document that the server refused.
#[derive(Clone, Debug, Serialize)]
pub struct Sample {
    /// The document's `_id` as Extended JSON.
    pub id: String,
    /// The server's message.
    pub message: String,
}

/// Something a person should know.
#[derive(Clone, Debug, Serialize)]
pub struct NoteReport {
    /// The collection, where it concerns one.
    #[serde(serialize_with = "full_name_if_any")]
    pub namespace: Option<Namespace>,
    /// A sentence without its final period.
    pub text: String,
}

/// A code's documents over all collections.
#[derive(Clone, Debug, Default)]
pub struct FailureSum<'a> {
    /// How many.
    pub count: u64,
    /// The first few, with their collections.
    pub samples: Vec<(&'a Namespace, &'a Sample)>,
}

impl Report {
    /// The report of a run that is over.
    pub fn new(tally: &Tally, context: Context) -> Self {
        let collections: Vec<_> = tally.collections().iter().map(CollectionReport::new).collect();
        let balance = tally.balance();
        let mut report = Self {
            schema: SCHEMA,
            tool_version: context.tool_version,
            outcome: context.outcome,
            exit_status: ExitStatus::Restored,
            balance,
            is_balanced: balance.is_balanced(),
            totals: totals(tally, &collections),
            rates: rates(tally),
            times: times(tally, &collections),
            latency: tally.latencies().quantiles(),
            timeline: TimelineReport::new(tally.timeline()),
            bound_by: tally.bounds().verdict(),
            workers: WorkersReport::new(tally),
            target: context.target,
            dump: context.dump,
            options: context.options,
            notes: notes(tally),
            users: tally.users().cloned(),
            oplog: tally.oplog().cloned(),
            collections,
            ledger: None,
            salvage: None,
            verification: None,
            survey: None,
            skipped: context.skipped,
        };
        report.exit_status = report.judge();
        report
    }

    /// Notes how many batches might have been in flight, and the number where it was fixed.
    pub fn paced(&mut self, fixed: Option<usize>, max: usize) {
        self.workers.limit(fixed, max);
    }

    /// Notes that damage was to be read around, and where what is lost is kept.
    pub fn salvaged(&mut self, tally: &Tally, folder: Option<String>) {
        let elsewhere = tally.lost_elsewhere().clone();
        let all = || self.collections.iter().map(|one| &one.lost).chain([&elsewhere]);
        let (stretches, bytes) =
            (all().map(|one| one.count).sum(), all().map(|one| one.bytes).sum());
        let folder = folder.filter(|_| stretches > 0);
        self.salvage = Some(SalvageReport { folder, stretches, bytes, elsewhere });
    }

    /// Whether all that could be read around damage was read, so that another run brings no more.
    pub fn is_salvaged(&self) -> bool {
        let is_through =
            |one: &CollectionReport| one.state == CollectionState::Done || one.data_time.is_some();
        self.salvage.is_some()
            && self.outcome == Outcome::Finished
            && self.balance.unsent == 0
            && self.totals.indexes_failed == 0
            && self.collections.iter().all(is_through)
    }

    /// The exit status of what happened.
    fn judge(&self) -> ExitStatus {
        match self.outcome {
            // Counts that do not add up are a defect of this program, whatever else happened.
            _ if !self.is_balanced => ExitStatus::Stopped,
            Outcome::Interrupted => ExitStatus::Interrupted,
            Outcome::Stopped { .. } => ExitStatus::Stopped,
            Outcome::Finished if !self.is_complete() => ExitStatus::Stopped,
            Outcome::Finished if self.agreement() == Some(Agreement::Different) => {
                ExitStatus::Difference
            }
            Outcome::Finished if self.agreement() == Some(Agreement::NotCompared) => {
                ExitStatus::Stopped
            }
            Outcome::Finished if self.balance.rejected > 0 || self.totals.indexes_failed > 0 => {
                ExitStatus::Failures
            }
            Outcome::Finished => ExitStatus::Restored,
        }
    }

    /// Takes in what a comparison with the dump found; the exit status follows it.
    pub fn verified(&mut self, verification: Option<Verification>) {
        self.verification = verification;
        self.exit_status = self.judge();
    }

    fn agreement(&self) -> Option<Agreement> {
        self.verification.as_ref().map(|verification| verification.state)
    }

    /// Whether all that was planned was at least tried to its end.
    fn is_complete(&self) -> bool {
        self.totals.collections_done == self.totals.collections
            && self.balance.unsent == 0
            && self.users.as_ref().is_none_or(|users| users.state == Progress::Done)
            && self.oplog.as_ref().is_none_or(|oplog| oplog.state == Progress::Done)
            && !self.skipped.iter().any(|skipped| skipped.is_problem)
    }

    /// The documents that the server refused, by code, over all collections.
    pub fn failures(&self) -> BTreeMap<i32, FailureSum<'_>> {
        let mut sums: BTreeMap<i32, FailureSum<'_>> = BTreeMap::new();
        for collection in &self.collections {
            for failure in &collection.failures {
                let sum = sums.entry(failure.code).or_default();
                sum.count += failure.count;
                let left = FAILURE_SAMPLES - sum.samples.len();
                let samples = failure.samples.iter().take(left);
                sum.samples.extend(samples.map(|sample| (&collection.namespace, sample)));
            }
        }
        sums
    }
}

impl CollectionReport {
    fn new(tally: &CollectionTally) -> Self {
        let (state, error) = match &tally.state {
            State::Waiting => (CollectionState::Waiting, None),
            State::Loading => (CollectionState::Loading, None),
            State::Indexing => (CollectionState::Indexing, None),
            State::Done => (CollectionState::Done, None),
            State::Failed(error) => (CollectionState::Failed, Some(error.clone())),
        };
        Self {
            namespace: tally.namespace().clone(),
            kind: tally.planned.kind,
            state,
            error,
            balance: tally.counts.balance(),
            done_before: tally.counts.done_before,
            bytes_read: tally.counts.bytes_read,
            bytes_acknowledged: tally.counts.bytes_acknowledged,
            origin_bytes: tally.planned.origin_bytes,
            is_compressed: tally.planned.compressed,
            retries: tally.counts.retries,
            data_time: tally.data_time(),
            latency: tally.latencies.quantiles(),
            indexes_planned: tally.planned.indexes,
            indexes: tally.indexes.iter().map(IndexReport::new).collect(),
            lost: tally.lost.clone(),
            failures: tally
                .failures
                .iter()
                .map(|(&code, failures)| FailureReport {
                    code,
                    count: failures.count,
                    samples: failures.samples.iter().map(Sample::new).collect(),
                })
                .collect(),
        }
    }

    /// How many indexes stand.
    pub fn indexes_built(&self) -> usize {
        self.indexes.iter().filter(|index| index.is_built).count()
    }

    /// The indexes that could not be built, with the server's reason.
    pub fn indexes_failed(&self) -> impl Iterator<Item = (&str, &str)> {
        self.indexes.iter().filter_map(|index| Some((index.name.as_str(), index.error.as_deref()?)))
    }
}

impl IndexReport {
    fn new(index: &crate::report::tally::IndexTally) -> Self {
        let (build_time, error) = match &index.state {
            IndexState::Building => (None, None),
            IndexState::Built(took) => (Some(*took), None),
            IndexState::Failed(reason) => (None, Some(reason.clone())),
        };
        Self { name: index.name.clone(), is_built: build_time.is_some(), build_time, error }
    }
}

impl Sample {
    fn new(rejection: &Rejection) -> Self {
        Self { id: rejection.id.clone(), message: rejection.message.clone() }
    }
}

fn totals(tally: &Tally, collections: &[CollectionReport]) -> Totals {
    let in_state = |state| collections.iter().filter(|one| one.state == state).count();
    let counts = tally.counts();
    Totals {
        collections: collections.len(),
        collections_done: in_state(CollectionState::Done),
        collections_failed: in_state(CollectionState::Failed),
        bytes_read: counts.bytes_read,
        bytes_acknowledged: counts.bytes_acknowledged,
        origin_bytes: tally.origin_bytes(),
        origin_bytes_acknowledged: counts.origin_bytes_acknowledged,
        fraction_done: tally.fraction(),
        documents_carried: counts.carried,
        batches: counts.batches,
        retries: counts.retries,
        indexes: collections.iter().map(|one| one.indexes_planned).sum(),
        indexes_built: collections.iter().map(CollectionReport::indexes_built).sum(),
        indexes_failed: collections.iter().map(|one| one.indexes_failed().count()).sum(),
    }
}

fn rates(tally: &Tally) -> Rates {
    let window = tally.timeline().rate_of_peak_window();
    Rates::new(tally.rate_average(), tally.rate_peak(), window)
}

fn times(tally: &Tally, collections: &[CollectionReport]) -> Times {
    let times = tally.times();
    let indexes = collections.iter().flat_map(|collection| &collection.indexes);
    Times {
        total: times.total,
        data: times.data,
        users: times.users,
        oplog: times.oplog,
        indexes: times.indexes,
        time_to_live: times.time_to_live,
        views: times.views,
        index_builds: indexes.filter_map(|index| index.build_time).sum(),
        batch_latency_mean: tally.latencies().mean(),
        batch_latency_max: tally.latencies().max(),
    }
}

fn notes(tally: &Tally) -> Vec<NoteReport> {
    let namespace = |collection: usize| {
        tally.collections().get(collection).map(|collection| collection.namespace().clone())
    };
    let notes = tally.notes().iter();
    notes
        .map(|note| NoteReport {
            namespace: note.collection.and_then(namespace),
            text: note.text.clone(),
        })
        .collect()
}

fn seconds<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(time.as_secs_f64())
}

#[expect(clippy::ref_option, reason = "serde calls it with a reference to the field")]
fn seconds_if_any<S: Serializer>(
    time: &Option<Duration>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    time.map(|time| time.as_secs_f64()).serialize(serializer)
}

/// The name as it is, without the escapes that a person's line needs: JSON has its own.
fn full_name<S: Serializer>(namespace: &Namespace, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{}.{}", namespace.database(), namespace.collection()))
}

#[expect(clippy::ref_option, reason = "serde calls it with a reference to the field")]
fn full_name_if_any<S: Serializer>(
    namespace: &Option<Namespace>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match namespace {
        Some(namespace) => full_name(namespace, serializer),
        None => serializer.serialize_none(),
    }
}

#[cfg(test)]
pub(crate) mod samples;

#[cfg(test)]
mod tests;
