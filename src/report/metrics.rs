//! The values of a run for Prometheus and whoever else reads its format.
//!
//! Values are atomics that an event adds to; with a batch come a handful of them, with a document
//! none. They are put into words only when somebody asks. `docs/metrics.md` lists them.

mod collections;
mod documents;
mod sampled;
mod told;

use std::fmt;
use std::time::Duration;

use prometheus_client::encoding::{prometheus_text, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

use crate::report::event::{Event, Observer, Phase};
use collections::Collections;
use documents::Documents;
use sampled::Sampled;

/// What all names begin with.
const PREFIX: &str = "restorm";

/// The label of what has no series of its own; it cannot be the name of a collection, which has a
/// dot.
const OTHERS: &str = "(others)";

/// The names and values of labels.
type Labels<const N: usize> = [(&'static str, String); N];

/// An observer that keeps the values of a run as metrics.
pub struct Metrics {
    registry: Registry,
    documents: Documents,
    collections: Collections,
    sampled: Sampled,
    phases: [Gauge; PHASES.len()],
    oplog: OplogCounters,
}

/// A form in which metrics are put into words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exposition {
    /// OpenMetrics 1.0.
    OpenMetrics,
    /// The older text format of Prometheus, which `promtool check metrics` and other tools read.
    PrometheusText,
}

impl Exposition {
    /// Its media type.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::PrometheusText => prometheus_text::CONTENT_TYPE,
        }
    }
}

const PHASES: [(Phase, &str); 7] = [
    (Phase::Data, "data"),
    (Phase::Users, "users"),
    (Phase::Oplog, "oplog"),
    (Phase::Indexes, "indexes"),
    (Phase::TimeToLive, "time_to_live"),
    (Phase::Views, "views"),
    (Phase::Ended, "ended"),
];

/// What was replayed of an oplog.
#[derive(Default)]
struct OplogCounters {
    entries: Counter,
    operations: Counter,
    left_out: Counter,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// The metrics of a run that has not begun.
    pub fn new() -> Self {
        let mut registry = Registry::with_prefix(PREFIX);
        let version = [("version", env!("CARGO_PKG_VERSION").to_owned())];
        registry.register("build", "The restorm that runs", Info::new(version));
        let phases = Family::<Labels<1>, Gauge>::default();
        let help = "Whether the run is in this stage (0 or 1): data, users, oplog, indexes, \
                    time_to_live, views or ended";
        registry.register("phase", help, phases.clone());
        let phases =
            PHASES.map(|(_, name)| phases.get_or_create_owned(&[("phase", name.to_owned())]));
        let oplog = OplogCounters::default();
        for (name, help, counter) in [
            ("oplog_entries", "Entries of the oplog that were gone through", &oplog.entries),
            ("oplog_operations", "Operations of the oplog that were applied", &oplog.operations),
            (
                "oplog_left_out",
                "Entries and operations of the oplog that concern the source alone",
                &oplog.left_out,
            ),
        ] {
            registry.register(name, help, counter.clone());
        }
        Self {
            documents: Documents::register(&mut registry),
            collections: Collections::register(&mut registry),
            sampled: Sampled::register(&mut registry),
            phases,
            oplog,
            registry,
        }
    }

    /// All values as they are now, in this form.
    ///
    /// # Errors
    ///
    /// None that is known: a `String` takes all that is written to it.
    pub fn encode(&self, exposition: Exposition) -> Result<String, fmt::Error> {
        self.documents.derive();
        let mut words = String::new();
        match exposition {
            Exposition::OpenMetrics => text::encode(&mut words, &self.registry)?,
            Exposition::PrometheusText => prometheus_text::encode(&mut words, &self.registry)?,
        }
        Ok(words)
    }

    fn begin_phase(&self, began: Phase) {
        for ((phase, _), gauge) in PHASES.iter().zip(&self.phases) {
            gauge.set(i64::from(*phase == began));
        }
    }
}

impl Observer for Metrics {
    fn observe(&self, _at: Duration, event: &Event) {
        match event {
            Event::Planned { collections } => {
                self.documents.plan(collections);
                self.collections.plan(collections);
            }
            Event::PhaseBegan(phase) => self.begin_phase(*phase),
            Event::Sampled(sample) => self.sampled.take(sample),
            Event::WorkersChanged { workers, .. } => self.sampled.set_workers(*workers),
            Event::OplogApplied { entries, operations, left_out, .. } => {
                self.oplog.entries.inc_by(*entries);
                self.oplog.operations.inc_by(*operations);
                self.oplog.left_out.inc_by(*left_out);
            }
            Event::UsersEnded { failure: Some(_) } => self.documents.fail("users"),
            Event::CollectionFailed { .. } => {
                self.documents.fail("collection");
                self.collections.take(event);
            }
            Event::IndexFailed { .. } => {
                self.documents.fail("index");
                self.collections.take(event);
            }
            Event::ReadBegan { .. }
            | Event::DataEnded { .. }
            | Event::CollectionEnded { .. }
            | Event::CollectionAdded(_)
            | Event::IndexesReplanned { .. }
            | Event::IndexBegan { .. }
            | Event::IndexProgressed { .. }
            | Event::IndexBuilt { .. } => self.collections.take(event),
            _ => self.documents.take(event),
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "the format has floating-point numbers")]
fn float(number: u64) -> f64 {
    number as f64
}

/// A share, 0 of nothing.
fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { float(part) / float(whole) }
}

#[cfg(test)]
mod tests;
