//! The sums of what a run brings to its target, taken as the bytes pass.

use std::sync::{Mutex, OnceLock, PoisonError};

use bson::oid::ObjectId;

use crate::sum::DocumentSum;

/// The sums of a run's collections, by their place in the plan.
///
/// They are whole once the run has ended, of collections that were read and sent to their end by
/// this run alone.
#[derive(Debug)]
pub struct Sums {
    collections: Vec<Mutex<DocumentSum>>,
    run: OnceLock<ObjectId>,
}

impl Sums {
    /// Sums for so many collections.
    pub fn new(collections: usize) -> Self {
        let collections = (0..collections).map(|_| Mutex::default()).collect();
        Self { collections, run: OnceLock::new() }
    }

    /// The documents that were brought of a collection.
    pub fn of(&self, collection: usize) -> DocumentSum {
        *self.collections[collection].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// By what the run is known, from which new `_id`s are made; known once it has begun.
    pub fn run(&self) -> Option<ObjectId> {
        self.run.get().copied()
    }

    pub(super) fn begin(&self, run: ObjectId) {
        // A second run would be a defect, and its `_id`s would be found to differ.
        let _ = self.run.set(run);
    }

    pub(super) fn add(&self, collection: usize, sum: &DocumentSum) {
        self.change(collection, |held| held.join(sum));
    }

    pub(super) fn take_out(&self, collection: usize, sum: &DocumentSum) {
        self.change(collection, |held| held.take_out(sum));
    }

    fn change(&self, collection: usize, change: impl FnOnce(&mut DocumentSum)) {
        change(&mut self.collections[collection].lock().unwrap_or_else(PoisonError::into_inner));
    }
}
