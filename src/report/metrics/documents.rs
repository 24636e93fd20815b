//! What became of documents, by collection; the part that is touched with every batch.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use crate::changes::Changes;
use crate::limits::{METRICS_CODES_MAX, METRICS_NAMESPACES_MAX};
use crate::report::event::{Event, PlannedCollection, Rejection};
use crate::report::metrics::{Labels, OTHERS, float, ratio};

/// The bounds of the buckets for latencies, in seconds: from a server beside the client to one
/// that stalls for as long as an attempt may take.
const LATENCY_BUCKETS: [f64; 15] =
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0];

/// Counters of documents, and of the batches that carry them.
pub(super) struct Documents {
    families: Families,
    /// The series of each collection of the plan; several share those of the others.
    series: RwLock<Vec<Arc<Series>>>,
    read: AtomicU64,
    answered: AtomicU64,
    integrity: Gauge<f64, AtomicU64>,
    latency: Histogram,
    carried: Counter,
    conflicts: Counter,
    retries: Counter,
    lost_stretches: Counter,
    lost_bytes: Counter,
    failures: Failures,
}

/// The series of one collection, taken out of their families once.
#[derive(Default)]
struct Series {
    read: Counter,
    read_bytes: Counter,
    inserted: Counter,
    /// In the order of [`Changes::parts`].
    changes: [Counter; 5],
    already_there: Counter,
    rejected: Counter,
    unsent: Counter,
    bytes: Counter,
    origin_bytes: Counter,
    batches: Counter,
}

/// All series that are told apart by their collection.
#[derive(Default)]
struct Families {
    read: Family<Labels<1>, Counter>,
    read_bytes: Family<Labels<1>, Counter>,
    documents: Family<Labels<2>, Counter>,
    bytes: Family<Labels<1>, Counter>,
    origin_bytes: Family<Labels<1>, Counter>,
    origin_size: Family<Labels<1>, Gauge<f64, AtomicU64>>,
    batches: Family<Labels<1>, Counter>,
}

impl Families {
    fn register(registry: &mut Registry) -> Self {
        let families = Self::default();
        registry.register("documents_read", "Documents read from the dump", families.read.clone());
        registry.register_with_unit(
            "document_read",
            "Bytes of the documents read, uncompressed",
            Unit::Bytes,
            families.read_bytes.clone(),
        );
        registry.register(
            "documents",
            "Documents by what became of them: inserted, replaced, merged, unchanged, deleted, \
             not_found, already_there, rejected, unsent",
            families.documents.clone(),
        );
        registry.register_with_unit(
            "document",
            "Bytes of the documents that the server answered for, uncompressed",
            Unit::Bytes,
            families.bytes.clone(),
        );
        registry.register_with_unit(
            "origin",
            "Bytes of the data files whose documents the server answered for",
            Unit::Bytes,
            families.origin_bytes.clone(),
        );
        registry.register_with_unit(
            "origin_size",
            "Size of the data files; zero where a collection has none of its own",
            Unit::Bytes,
            families.origin_size.clone(),
        );
        let help = "Batches that the server answered for";
        registry.register("batches", help, families.batches.clone());
        families
    }

    fn series(&self, namespace: &str) -> Series {
        let labels = [("namespace", namespace.to_owned())];
        let documents = |outcome: &str| {
            let [namespace] = labels.clone();
            self.documents.get_or_create_owned(&[namespace, ("outcome", outcome.to_owned())])
        };
        Series {
            read: self.read.get_or_create_owned(&labels),
            read_bytes: self.read_bytes.get_or_create_owned(&labels),
            inserted: documents("inserted"),
            changes: Changes::default().parts().map(|(what, _)| documents(&what.replace(' ', "_"))),
            already_there: documents("already_there"),
            rejected: documents("rejected"),
            unsent: documents("unsent"),
            bytes: self.bytes.get_or_create_owned(&labels),
            origin_bytes: self.origin_bytes.get_or_create_owned(&labels),
            batches: self.batches.get_or_create_owned(&labels),
        }
    }

    fn add_origin(&self, namespace: &str, bytes: u64) {
        let labels = [("namespace", namespace.to_owned())];
        self.origin_size.get_or_create(&labels).inc_by(float(bytes));
    }
}

impl Documents {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let documents = Self {
            families: Families::register(registry),
            series: RwLock::default(),
            read: AtomicU64::new(0),
            answered: AtomicU64::new(0),
            integrity: Gauge::default(),
            latency: Histogram::new(LATENCY_BUCKETS),
            carried: Counter::default(),
            conflicts: Counter::default(),
            retries: Counter::default(),
            lost_stretches: Counter::default(),
            lost_bytes: Counter::default(),
            failures: Failures::register(registry),
        };
        registry.register_with_unit(
            "integrity",
            "Share of the documents read that the server answered for; 1 while none are read",
            Unit::Other("ratio".to_owned()),
            documents.integrity.clone(),
        );
        registry.register_with_unit(
            "batch_latency",
            "Time from sending a batch to the answer that counted, retries included",
            Unit::Seconds,
            documents.latency.clone(),
        );
        for (name, help, counter) in [
            ("documents_carried", "Documents that an earlier run had brought", &documents.carried),
            (
                "conflicts",
                "Rejected documents whose _id another document was found to have",
                &documents.conflicts,
            ),
            ("retries", "Batches and commands that were sent again", &documents.retries),
            (
                "lost_stretches",
                "Stretches of the dump that were read around",
                &documents.lost_stretches,
            ),
        ] {
            registry.register(name, help, counter.clone());
        }
        registry.register_with_unit(
            "lost",
            "Bytes of the dump that were read around",
            Unit::Bytes,
            documents.lost_bytes.clone(),
        );
        documents
    }

    /// Gives the largest collections series of their own; the plan has them first.
    pub(super) fn plan(&self, collections: &[Arc<PlannedCollection>]) {
        let mut others = None;
        let mut named = 0;
        let series = collections.iter().map(|planned| {
            if planned.kind == "view" {
                return Arc::default();
            }
            named += 1;
            if named <= METRICS_NAMESPACES_MAX {
                let namespace = planned.namespace.to_string();
                self.families.add_origin(&namespace, planned.origin_bytes);
                return Arc::new(self.families.series(&namespace));
            }
            self.families.add_origin(OTHERS, planned.origin_bytes);
            Arc::clone(others.get_or_insert_with(|| Arc::new(self.families.series(OTHERS))))
        });
        let series = series.collect();
        *self.series.write().unwrap_or_else(PoisonError::into_inner) = series;
    }

    /// Takes an event about documents into account.
    pub(super) fn take(&self, event: &Event) {
        match *event {
            Event::Read { collection, documents, bytes } => {
                self.count_read(collection, documents, bytes);
            }
            Event::Damaged { collection, bytes, ref rejection } => {
                self.count_read(collection, 1, bytes);
                self.count(collection, [0, 0, 1], Changes::default());
                self.failures.add("damaged", rejection.code, 1);
            }
            Event::Carried {
                collection,
                inserted,
                changes,
                already_there,
                rejected,
                conflicts,
                bytes,
            } => {
                let documents = inserted + changes.documents() + already_there + rejected;
                self.count_read(collection, documents, bytes);
                self.count(collection, [inserted, already_there, rejected], changes);
                self.conflicts.inc_by(conflicts);
                self.carried.inc_by(documents);
            }
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
                self.count(collection, [inserted, already_there, rejected], changes);
                self.count_batch(collection, bytes, origin_bytes, latency);
                if conflicts > 0 {
                    self.conflicts.inc_by(conflicts);
                }
            }
            Event::Rejected { ref rejections, .. } => self.failures.add_rejections(rejections),
            Event::Unsent { collection, documents } => {
                self.with(collection, |series| {
                    series.unsent.inc_by(documents);
                });
            }
            Event::Retried { .. } => {
                self.retries.inc();
            }
            Event::Lost { ref stretch, .. } => {
                self.lost_stretches.inc();
                self.lost_bytes.inc_by(stretch.bytes);
            }
            _ => {}
        }
    }

    /// Counts something other than documents that failed.
    pub(super) fn fail(&self, kind: &str) {
        self.failures.add_uncoded(kind);
    }

    /// Brings what is derived from other values up to date.
    pub(super) fn derive(&self) {
        // In this order, so that a batch in between does not make the share greater than one.
        let answered = self.answered.load(Ordering::Acquire);
        let read = self.read.load(Ordering::Acquire);
        self.integrity.set(if read == 0 { 1.0 } else { ratio(answered, read) });
    }

    fn with(&self, collection: usize, count: impl FnOnce(&Series)) {
        let series = self.series.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(series) = series.get(collection) {
            count(series);
        }
    }

    fn count_read(&self, collection: usize, documents: u64, bytes: u64) {
        self.read.fetch_add(documents, Ordering::Release);
        self.with(collection, |series| {
            series.read.inc_by(documents);
            series.read_bytes.inc_by(bytes);
        });
    }

    /// Counts documents by what became of them: inserted, already there, rejected, and changes.
    fn count(&self, collection: usize, counts: [u64; 3], changes: Changes) {
        let [inserted, already_there, rejected] = counts;
        let answered = counts.iter().sum::<u64>() + changes.documents();
        self.answered.fetch_add(answered, Ordering::Release);
        self.with(collection, |series| {
            series.inserted.inc_by(inserted);
            if answered > inserted {
                for (counter, (_, documents)) in series.changes.iter().zip(changes.parts()) {
                    counter.inc_by(documents);
                }
                series.already_there.inc_by(already_there);
                series.rejected.inc_by(rejected);
            }
        });
    }

    fn count_batch(&self, collection: usize, bytes: u64, origin_bytes: u64, latency: Duration) {
        self.latency.observe(latency.as_secs_f64());
        self.with(collection, |series| {
            series.bytes.inc_by(bytes);
            series.origin_bytes.inc_by(origin_bytes);
            series.batches.inc();
        });
    }
}

/// What failed, by kind and the server's code.
struct Failures {
    family: Family<Labels<2>, Counter>,
    /// The codes that have series of their own.
    codes: Mutex<BTreeMap<(&'static str, i32), Counter>>,
}

impl Failures {
    fn register(registry: &mut Registry) -> Self {
        let family = Family::default();
        let help = "What failed, by kind (document, damaged, index, collection or users) and, for \
                    documents, the server's error code";
        registry.register("failures", help, Family::clone(&family));
        let failures = Self { family, codes: Mutex::default() };
        // A rate is only known from the second value on, and the first failure is news.
        for kind in ["document", "damaged", "index", "collection", "users"] {
            failures.series(kind, String::new());
        }
        failures
    }

    fn series(&self, kind: &str, code: String) -> Counter {
        self.family.get_or_create_owned(&[("kind", kind.to_owned()), ("code", code)])
    }

    fn add(&self, kind: &'static str, code: i32, count: u64) {
        let mut codes = self.codes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(counter) = codes.get(&(kind, code)) {
            counter.inc_by(count);
            return;
        }
        if codes.len() >= METRICS_CODES_MAX {
            self.series(kind, OTHERS.to_owned()).inc_by(count);
            return;
        }
        let counter = self.series(kind, code.to_string());
        counter.inc_by(count);
        codes.insert((kind, code), counter);
    }

    /// Adds refused documents; those of a batch mostly have one code.
    fn add_rejections(&self, rejections: &[Rejection]) {
        for same in rejections.chunk_by(|one, next| one.code == next.code) {
            self.add("document", same[0].code, same.len() as u64);
        }
    }

    fn add_uncoded(&self, kind: &str) {
        self.series(kind, String::new()).inc();
    }
}
