//! The indexes of a collection as they are to be built, by the plan or at the end of an oplog.

use std::sync::Arc;

use bson::Bson;

use crate::dump::inventory::Origin;
use crate::load::run::Run;
use crate::namespace::Namespace;
use crate::plan::indexes::IndexPlan;
use crate::plan::oplog::Catalogue;
use crate::report::{Event, PlannedCollection, Standing};
use crate::target::Target;

/// A collection and its indexes.
#[derive(Debug)]
pub(super) struct Indexed {
    /// Its place among the collections that events tell of.
    pub(super) collection: usize,
    /// Its name.
    pub(super) namespace: Namespace,
    /// The indexes.
    pub(super) indexes: Vec<IndexPlan>,
    /// The age at which its documents are deleted.
    pub(super) expire_after_seconds: Option<Bson>,
    /// The size of its data file.
    pub(super) bytes: u64,
    /// Whether it is one of the plan rather than of the oplog alone.
    is_planned: bool,
}

impl Indexed {
    /// A collection as the plan has it.
    pub(super) fn planned<T: Target>(run: &Run<T>, collection: usize) -> Self {
        let plan = &run.plan.collections[collection];
        Self {
            collection,
            namespace: plan.namespace.clone(),
            indexes: plan.indexes.clone(),
            expire_after_seconds: plan.expire_after_seconds.as_deref().cloned(),
            bytes: bytes(run, collection),
            is_planned: true,
        }
    }

    /// Whether all its documents are there.
    pub(super) fn is_loaded<T: Target>(&self, run: &Run<T>) -> bool {
        if self.is_planned { run.is_loaded(self.collection) } else { run.goes_on() }
    }

    /// Whether it could not be restored completely.
    pub(super) fn has_failed<T: Target>(&self, run: &Run<T>) -> bool {
        self.is_planned && run.collection_has_failed(self.collection)
    }

    /// Whether the target takes no more of it.
    pub(super) fn is_refused<T: Target>(&self, run: &Run<T>) -> bool {
        self.is_planned && run.is_refused(self.collection)
    }

    /// Whether documents of it are to be deleted by the server.
    pub(super) fn expires(&self) -> bool {
        self.expire_after_seconds.is_some() || self.indexes.iter().any(|index| index.expires)
    }
}

/// The size of what its documents were read from, or theirs where that is not known.
fn bytes<T: Target>(run: &Run<T>, collection: usize) -> u64 {
    let origin = run.plan.collections[collection].data.as_ref();
    origin.map_or(Some(0), Origin::bytes).unwrap_or_else(|| run.bytes_read(collection))
}

/// Every collection of the plan.
pub(super) fn planned<T: Target>(run: &Run<T>) -> Vec<Arc<Indexed>> {
    let all = 0..run.plan.collections.len();
    all.map(|collection| Arc::new(Indexed::planned(run, collection))).collect()
}

/// The collections that are there at the end of an oplog; tells of those that it made, and ends
/// those of the plan that it took away.
pub(super) fn of_catalogue<T: Target>(run: &Run<T>, catalogue: Catalogue) -> Vec<Arc<Indexed>> {
    let mut is_there = vec![false; run.plan.collections.len()];
    let mut next = run.plan.collections.len();
    let mut all = Vec::new();
    for (namespace, found) in catalogue.into_collections() {
        let collection = found.planned.unwrap_or(next);
        match found.planned {
            Some(planned) => is_there[planned] = true,
            None => next += 1,
        }
        tell(run, &namespace, &found, collection);
        all.push(Arc::new(Indexed {
            collection,
            namespace,
            indexes: found.indexes,
            expire_after_seconds: found.expire_after_seconds,
            bytes: found.planned.map_or(found.bytes, |planned| bytes(run, planned)),
            is_planned: found.planned.is_some(),
        }));
    }
    for collection in (0..is_there.len()).filter(|&collection| !is_there[collection]) {
        let is_view =
            run.plan.collections[collection].kind == crate::dump::inventory::CollectionKind::View;
        if !is_view && run.is_loaded(collection) {
            run.observe(&Event::IndexesReplanned { collection, indexes: 0 });
            let text = "the oplog dropped it or gave it another name".to_owned();
            run.observe(&Event::Note { collection: Some(collection), text });
            run.observe(&Event::CollectionEnded { collection });
        }
    }
    all
}

/// Tells of a collection that the oplog made, or of a changed number of indexes.
fn tell<T: Target>(
    run: &Run<T>,
    namespace: &Namespace,
    found: &crate::plan::oplog::Indexed,
    collection: usize,
) {
    let indexes = found.indexes.len();
    match found.planned {
        Some(planned) if run.plan.collections[planned].indexes.len() != indexes => {
            run.observe(&Event::IndexesReplanned { collection, indexes });
        }
        Some(_) => {}
        None => run.observe(&Event::CollectionAdded(PlannedCollection {
            namespace: namespace.clone(),
            kind: "collection",
            standing: Standing::Absent,
            metadata: "".into(),
            origin: "".into(),
            origin_bytes: 0,
            compressed: false,
            indexes,
        })),
    }
}
