//! How far collections and their indexes are.

use std::collections::HashMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};

use crate::report::event::{Event, PlannedCollection};
use crate::report::metrics::Labels;
use crate::sample::IndexProgress;

/// Gauges of collections and of their indexes.
pub(super) struct Collections {
    /// How many there are in each [`State`].
    states: [Gauge; STATES.len()],
    indexes_planned: Gauge,
    indexes_building: Gauge,
    indexes_built: Gauge,
    indexes_failed: Gauge,
    build_time: Counter<f64, AtomicU64>,
    progress: Family<Labels<2>, Gauge<f64, AtomicU64>>,
    known: Mutex<Known>,
}

/// What the gauges are made from.
#[derive(Default)]
struct Known {
    collections: Vec<(State, usize)>,
    /// The indexes that are built now, by collection and name, and the labels under which their
    /// progress is shown.
    building: HashMap<(usize, String), Option<Labels<2>>>,
}

/// How far a collection is; the place of its gauge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Waiting,
    Loading,
    Indexing,
    Done,
    Failed,
}

const STATES: [(State, &str); 5] = [
    (State::Waiting, "waiting"),
    (State::Loading, "loading"),
    (State::Indexing, "indexing"),
    (State::Done, "done"),
    (State::Failed, "failed"),
];

impl Collections {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let by_state = Family::<Labels<1>, Gauge>::default();
        let help = "Collections by how far they are: waiting, loading, indexing, done or failed";
        registry.register("collections", help, by_state.clone());
        let builds = Family::<Labels<1>, Gauge>::default();
        let help = "Indexes by state: planned (all of them), building, built or failed";
        registry.register("index_builds", help, builds.clone());
        let state = |name: &str| [("state", name.to_owned())];
        let collections = Self {
            states: STATES.map(|(_, name)| by_state.get_or_create_owned(&state(name))),
            indexes_planned: builds.get_or_create_owned(&state("planned")),
            indexes_building: builds.get_or_create_owned(&state("building")),
            indexes_built: builds.get_or_create_owned(&state("built")),
            indexes_failed: builds.get_or_create_owned(&state("failed")),
            build_time: Counter::default(),
            progress: Family::default(),
            known: Mutex::default(),
        };
        registry.register_with_unit(
            "index_build",
            "Time that index builds took, summed up",
            Unit::Seconds,
            collections.build_time.clone(),
        );
        registry.register_with_unit(
            "index_build_progress",
            "Share of an index build that is done, while it goes on",
            Unit::Other("ratio".to_owned()),
            collections.progress.clone(),
        );
        collections
    }

    /// Takes the plan into account.
    pub(super) fn plan(&self, collections: &[Arc<PlannedCollection>]) {
        let mut known = self.known();
        known.collections =
            collections.iter().map(|planned| (State::Waiting, planned.indexes)).collect();
        for gauge in &self.states {
            gauge.set(0);
        }
        self.states[State::Waiting as usize].set(number(collections.len()));
        self.indexes_planned.set(number(collections.iter().map(|planned| planned.indexes).sum()));
    }

    /// Takes an event about a collection or an index into account.
    pub(super) fn take(&self, event: &Event) {
        match event {
            Event::ReadBegan { collection } => self.advance(*collection, State::Loading),
            Event::DataEnded { collection } => self.advance(*collection, State::Indexing),
            Event::CollectionEnded { collection } => self.advance(*collection, State::Done),
            Event::CollectionFailed { collection, .. } => self.advance(*collection, State::Failed),
            Event::CollectionAdded(planned) => {
                self.known().collections.push((State::Indexing, planned.indexes));
                self.states[State::Indexing as usize].inc();
                self.indexes_planned.inc_by(number(planned.indexes));
            }
            Event::IndexesReplanned { collection, indexes } => {
                if let Some((_, planned)) = self.known().collections.get_mut(*collection) {
                    let before = std::mem::replace(planned, *indexes);
                    self.indexes_planned.inc_by(number(*indexes) - number(before));
                }
            }
            Event::IndexBegan { collection, index } => self.begin_index(*collection, index),
            Event::IndexProgressed { collection, progress } => {
                self.progress(*collection, progress);
            }
            Event::IndexBuilt { collection, index, took } => {
                self.end_index(*collection, index);
                self.indexes_built.inc();
                self.count_time(*took);
            }
            Event::IndexFailed { collection, index, .. } => {
                self.end_index(*collection, index);
                self.indexes_failed.inc();
            }
            _ => {}
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The first failure stays, whatever comes after it.
    fn advance(&self, collection: usize, next: State) {
        if let Some((state, _)) = self.known().collections.get_mut(collection)
            && *state != State::Failed
        {
            self.states[*state as usize].dec();
            self.states[next as usize].inc();
            *state = next;
        }
    }

    fn progress(&self, collection: usize, progress: &IndexProgress) {
        let mut known = self.known();
        for index in &progress.indexes {
            // What is told of a build after its end would stay for ever.
            if let Some(shown) = known.building.get_mut(&(collection, index.clone())) {
                let namespace = ("namespace", progress.namespace.clone());
                let labels = shown.get_or_insert_with(|| [namespace, ("index", index.clone())]);
                self.progress.get_or_create(labels).set(progress.fraction());
            }
        }
    }

    fn begin_index(&self, collection: usize, index: &str) {
        if self.known().building.insert((collection, index.to_owned()), None).is_none() {
            self.indexes_building.inc();
        }
    }

    fn end_index(&self, collection: usize, index: &str) {
        if let Some(shown) = self.known().building.remove(&(collection, index.to_owned())) {
            self.indexes_building.dec();
            if let Some(labels) = shown {
                self.progress.remove(&labels);
            }
        }
    }

    fn count_time(&self, took: Duration) {
        self.build_time.inc_by(took.as_secs_f64());
    }
}

fn number(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
