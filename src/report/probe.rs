//! What a probe found, as a value.

use serde::Serialize;

use crate::exit::ExitStatus;
use crate::report::latency::Quantiles;
use crate::report::value::{OptionValue, TargetFacts};

/// The name and version of the JSON form; a change that breaks readers raises the number.
pub const SCHEMA: &str = "restorm.probe/1";

/// A step that achieves less than this share of what was asked has fallen behind.
const KEPT_UP: f64 = 0.95;

/// The report of a probe.
#[derive(Clone, Debug, Serialize)]
pub struct ProbeReport {
    /// The name and version of the JSON form.
    pub schema: &'static str,
    /// The version of this program.
    pub tool_version: String,
    /// The server that was asked.
    pub target: TargetFacts,
    /// The collection whose documents were asked for.
    pub namespace: String,
    /// What was asked for, as far as it differs from the defaults.
    pub options: Vec<OptionValue>,
    /// What the connections did.
    pub load: ProbeLoad,
    /// Whether it went on to its end.
    pub outcome: ProbeOutcome,
    /// The exit status that it led to.
    pub exit_status: ExitStatus,
    /// From the first connection to the end, in seconds.
    pub seconds: f64,
    /// The steps in their order.
    pub steps: Vec<ProbeStep>,
    /// Where more connections brought nothing more, where that is known.
    pub knee: Option<Knee>,
    /// The curve through the steps' throughput, where there are enough of them.
    pub fit: Option<Fit>,
    /// What else a person should know.
    pub notes: Vec<String>,
}

/// What the connections did.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProbeLoad {
    /// When they asked.
    pub pace: PaceKind,
    /// How often each was to ask, in a second; nothing where they asked as fast as they could.
    pub rate_per_connection: Option<f64>,
    /// The share of the time between two requests within which each was moved.
    pub jitter: Option<f64>,
    /// The share of reads among the requests.
    pub read_share: f64,
    /// The share of inserts.
    pub insert_share: f64,
    /// The share of updates.
    pub update_share: f64,
    /// Where the `_id`s came from.
    pub ids: IdsKind,
    /// From how many `_id`s they were drawn.
    pub ids_known: u64,
}

/// When connections asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PaceKind {
    /// As soon as they had an answer.
    FlatOut,
    /// By a schedule.
    Paced,
}

/// Where `_id`s came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum IdsKind {
    /// They were all whole numbers of a range.
    Range,
    /// They were read from the collection.
    Sample,
}

/// How a probe ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ProbeOutcome {
    /// All steps were held as long as asked for.
    Finished,
    /// Somebody asked for an earlier end.
    Interrupted,
}

/// Requests that were answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Operations {
    /// Reads.
    pub reads: u64,
    /// Inserts.
    pub inserts: u64,
    /// Updates.
    pub updates: u64,
}

impl Operations {
    /// All of them.
    pub fn all(self) -> u64 {
        self.reads + self.inserts + self.updates
    }
}

/// A number of connections, held for a time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProbeStep {
    /// Connections that there were to be.
    pub connections: u32,
    /// Connections that were open when the step began.
    pub connected: u32,
    /// The connections that the server counted then, those of others included, where it tells.
    pub server_connections: Option<u64>,
    /// How long the connections took that are new in this step, in seconds.
    pub setup_seconds: f64,
    /// How long the step was held, in seconds.
    pub held_seconds: f64,
    /// Requests a second that were due; nothing where connections asked as fast as they could.
    pub asked_per_second: Option<f64>,
    /// Requests a second that were answered within the step.
    pub achieved_per_second: f64,
    /// Requests that were due: those that were answered in it or after it, that failed, that had no
    /// answer, and that were not sent.
    pub asked: u64,
    /// Requests that were answered within the step.
    pub done: Operations,
    /// Requests that were answered after its end, in the time that it waits for them.
    pub answered_after_end: u64,
    /// Requests that failed for good; they have no latency.
    pub failed: u64,
    /// Requests that were sent and had no answer in that time; they count in the latencies with the
    /// time that they had waited.
    pub unanswered: u64,
    /// Requests that were due and never sent, because the ones before had no answer.
    pub unsent: u64,
    /// Reads that were sent once more, because their connection broke.
    pub asked_again: u64,
    /// Reads and updates whose document was not there.
    pub misses: u64,
    /// Connections that were lost.
    pub lost_connections: u64,
    /// Connections that were opened again.
    pub reopened_connections: u64,
    /// What failed, the most frequent first.
    pub errors: Vec<ProbeError>,
    /// From the moment a request was first due to its answer, corrected for coordinated omission.
    pub latency: Quantiles,
    /// From sending a request, the last time, to its answer.
    pub service: Quantiles,
}

impl ProbeStep {
    /// Whether it was asked for more than it achieved, by more than chance.
    pub fn has_fallen_behind(&self) -> bool {
        self.asked_per_second.is_some_and(|asked| self.achieved_per_second < asked * KEPT_UP)
    }

    /// How many requests and attempts to connect failed.
    pub fn failures(&self) -> u64 {
        self.errors.iter().map(|error| error.count).sum()
    }
}

/// Failures of one kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProbeError {
    /// The kind: what became of the connection, or the server's name for it.
    pub kind: String,
    /// How many there were.
    pub count: u64,
    /// The first of them in words.
    pub sample: String,
}

/// Where more connections brought nothing more.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Knee {
    /// The last number of connections that got what was asked, or the first that came near the most
    /// that was reached.
    pub connections: u32,
    /// What was achieved there, in requests a second.
    pub achieved_per_second: f64,
    /// The first number of connections that fell behind what was asked, where there is one.
    pub fell_behind_at: Option<u32>,
}

/// A curve of throughput against connections.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "model", rename_all = "snake_case")]
pub enum Fit {
    /// Gunther's universal scalability law: λN / (1 + σ(N − 1) + κN(N − 1)).
    UniversalScalability {
        /// Requests a second of one connection alone.
        lambda: f64,
        /// The share of the work in which connections wait for one another.
        sigma: f64,
        /// What each pair of connections costs.
        kappa: f64,
        /// The number of connections at which it is highest, where it falls again.
        peak_connections: Option<f64>,
        /// The share of the steps' differences that it explains.
        r_squared: f64,
    },
    /// A straight line through the origin up to a ceiling: min(aN, C).
    LineAndCeiling {
        /// Requests a second of each connection.
        per_connection: f64,
        /// The most requests a second, where some step met it.
        ceiling: Option<f64>,
        /// The share of the steps' differences that it explains.
        r_squared: f64,
    },
}

impl Fit {
    /// The throughput that it gives for so many connections.
    pub fn at(&self, connections: f64) -> f64 {
        match *self {
            Self::UniversalScalability { lambda, sigma, kappa, .. } => {
                let others = connections - 1.0;
                lambda * connections / (1.0 + sigma * others + kappa * connections * others)
            }
            Self::LineAndCeiling { per_connection, ceiling, .. } => {
                let line = per_connection * connections;
                ceiling.map_or(line, |ceiling| line.min(ceiling))
            }
        }
    }

    /// How much of the differences between steps it explains.
    pub fn r_squared(&self) -> f64 {
        match *self {
            Self::UniversalScalability { r_squared, .. }
            | Self::LineAndCeiling { r_squared, .. } => r_squared,
        }
    }
}

#[cfg(test)]
pub(crate) mod samples;
