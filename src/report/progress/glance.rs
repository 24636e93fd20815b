//! What is shown of a tally at one moment, so that the tally is not held while it is drawn.

use std::time::Duration;

use crate::limits::{BARS_MAX, PROGRESS_LINE_INTERVAL};
use crate::report::bound::Bound;
use crate::report::event::{OplogTime, Phase};
use crate::report::format::{duration, one_line, percent, remaining};
use crate::report::rate::Rate;
use crate::report::tally::{Balance, CollectionTally, IndexTally, State, Tally};
use crate::sample::Gauges;

/// How far a run is.
#[derive(Clone, Debug)]
pub(super) struct Glance {
    /// The stage of the run; nothing before it began.
    pub(super) phase: Option<Phase>,
    /// The share that is done, 0 to 1, if there is any telling.
    pub(super) fraction: Option<f64>,
    /// Bytes of documents the server answered for, and how many they will have been, if there is
    /// any telling.
    pub(super) bytes: (u64, Option<u64>),
    /// Documents that were inserted or for which a stored one was found to change.
    pub(super) documents: u64,
    /// What became of the documents that were read.
    pub(super) balance: Balance,
    /// Batches and commands that were sent again.
    pub(super) retries: u64,
    /// What there is of the run, as it last told.
    pub(super) gauges: Gauges,
    /// What the run waits for, and why that is believed, if there is any telling.
    pub(super) bound: Option<(Bound, String)>,
    /// The rate now.
    pub(super) rate: Rate,
    /// How long the documents will still take, if there is any telling.
    pub(super) time_left: Option<Duration>,
    /// How long nothing has been answered, while documents are written.
    pub(super) silence: Option<Duration>,
    /// Collections that are done or given up, and all of them.
    pub(super) collections: (usize, usize),
    /// Indexes that are built or given up, and all of them.
    pub(super) indexes: (usize, usize),
    /// Entries of the oplog that are applied, and when the last of them happened.
    pub(super) oplog: (u64, Option<OplogTime>),
    /// The first few of the collections that are worked on.
    pub(super) active: Vec<ActiveCollection>,
    /// How many more are worked on.
    pub(super) active_more: usize,
}

/// How far a collection is that is worked on.
#[derive(Clone, Debug)]
pub(super) struct ActiveCollection {
    /// Its place in the plan.
    pub(super) collection: usize,
    /// Its full name.
    pub(super) name: String,
    /// What is done about it.
    pub(super) work: Work,
}

/// What is done about a collection.
#[derive(Clone, Debug)]
pub(super) enum Work {
    /// Its documents are written.
    Documents {
        /// The share that is done, 0 to 1, if there is any telling.
        fraction: Option<f64>,
        /// Documents that were inserted or for which a stored one was found to change.
        documents: u64,
        /// The rate now.
        rate: Rate,
        /// How long it will still take, if there is any telling.
        time_left: Option<Duration>,
    },
    /// Its indexes are built.
    Indexes {
        /// The names of those that are built now.
        names: Vec<String>,
        /// How long the oldest of them has been built.
        since: Duration,
        /// The share that is done of the one that is behind, if the server tells.
        fraction: Option<f64>,
        /// How long that one will still take.
        time_left: Option<Duration>,
    },
}

impl Glance {
    /// How far the run is at `at`.
    pub(super) fn of(tally: &Tally, at: Duration) -> Self {
        let active = tally.active();
        let active_more = active.len().saturating_sub(BARS_MAX);
        let collections = tally.collections();
        let is_over = |one: &&CollectionTally| matches!(one.state, State::Done | State::Failed(_));
        let indexes_over = |one: &CollectionTally| one.indexes.len() - one.building().count();
        Self {
            phase: tally.phase().map(|(phase, _)| phase),
            fraction: tally.fraction_known(),
            bytes: (tally.counts().bytes_acknowledged, tally.bytes_expected()),
            documents: tally.counts().done(),
            balance: tally.balance(),
            retries: tally.counts().retries,
            gauges: tally.sample().map(|sample| sample.gauges).unwrap_or_default(),
            bound: tally.bounds().now(),
            rate: tally.rate(at),
            time_left: tally.time_left(at),
            silence: tally.silence(at),
            collections: (collections.iter().filter(is_over).count(), collections.len()),
            indexes: (
                collections.iter().map(indexes_over).sum(),
                collections.iter().map(|one| one.planned.indexes).sum(),
            ),
            oplog: tally.oplog().map_or((0, None), |oplog| (oplog.entries, oplog.last)),
            active: active
                .take(BARS_MAX)
                .map(|(collection, one)| ActiveCollection::of(tally, (collection, one), at))
                .collect(),
            active_more,
        }
    }
}

impl Glance {
    /// Says that nothing moves, where that has lasted longer than a batch should take.
    pub(super) fn stall(&self) -> Option<String> {
        let silence = self.silence.filter(|silence| *silence > PROGRESS_LINE_INTERVAL)?;
        Some(format!("nothing acknowledged for {}", duration(silence)))
    }
}

/// How long an index has been built, how far that is, and how long it will still take.
pub(super) fn building(
    since: Duration,
    fraction: Option<f64>,
    time_left: Option<Duration>,
) -> String {
    let mut parts = vec![duration(since)];
    parts.extend(fraction.map(percent));
    parts.extend(time_left.map(|left| format!("ETA {}", remaining(left))));
    parts.join(", ")
}

/// What the run waits for, in one line; nothing where that is not known.
pub(super) fn bound(glance: &Glance) -> Option<String> {
    let (by, evidence) = glance.bound.as_ref()?;
    Some(format!("bound by {}: {}", by.name(), one_line(evidence)))
}

/// The time that is left, in words.
pub(super) fn time_left(time: Option<Duration>) -> String {
    time.map_or_else(|| "ETA -".to_owned(), |time| format!("ETA {}", remaining(time)))
}

/// A share in words.
pub(super) fn percent_known(fraction: Option<f64>) -> String {
    fraction.map_or_else(|| "-".to_owned(), percent)
}

impl ActiveCollection {
    fn of(whole: &Tally, (collection, tally): (usize, &CollectionTally), at: Duration) -> Self {
        let has_size = whole.stream().is_none();
        let work = if tally.state == State::Loading {
            Work::Documents {
                fraction: has_size.then(|| tally.fraction()),
                documents: tally.counts.done(),
                rate: tally.rate(at),
                time_left: tally.time_left(at).filter(|_| has_size),
            }
        } else {
            let began = tally.building().map(|index| index.began).min().unwrap_or(at);
            let behind = |one: &&IndexTally, other: &&IndexTally| {
                let fraction = |index: &IndexTally| index.fraction.unwrap_or(0.0);
                fraction(one).total_cmp(&fraction(other))
            };
            let last = tally.building().min_by(behind);
            Work::Indexes {
                fraction: last.and_then(|index| index.fraction),
                time_left: last.and_then(|index| index.time_left(at)),
                names: tally.building().map(|index| one_line(&index.name)).collect(),
                since: at.saturating_sub(began),
            }
        };
        Self { collection, name: tally.namespace().to_string(), work }
    }
}
