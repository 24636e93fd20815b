//! Sends batches that are encoded already, as fast as the target takes them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use crate::batch::Batch;
use crate::dump::inventory::CollectionKind;
use crate::error::{Error, ErrorKind};
use crate::load::run::internal;
use crate::plan::{CollectionPlan, Insertion, Validation};
use crate::target::keys::KeyFields;
use crate::target::{Documents, FieldNames, Insert, OnRefusal, Target, Validators, WriteMode};

/// How the documents of a collection are inserted.
pub fn insert_of(plan: &CollectionPlan, may_bypass: bool) -> Insert {
    // A server never bypasses the check of time-series buckets.
    let bypasses = may_bypass
        && plan.validation == Validation::Bypassed
        && plan.kind != CollectionKind::TimeSeries;
    Insert {
        mode: WriteMode::Insert,
        keys: KeyFields::default(),
        names: FieldNames::default(),
        namespace: plan.data_namespace.clone(),
        on_refusal: match plan.insertion {
            Insertion::InOrder => OnRefusal::Stop,
            Insertion::AnyOrder => OnRefusal::GoOn,
        },
        validators: if bypasses { Validators::Bypassed } else { Validators::Applied },
    }
}

/// What is sent, and where to.
pub struct Replay<T> {
    /// The target.
    pub target: Arc<T>,
    /// How the documents of each collection are inserted, by its place in the plan.
    pub inserts: Vec<Insert>,
    /// The batches in the order in which they are sent.
    pub batches: Vec<Batch>,
    /// How many are in flight.
    pub in_flight: usize,
}

/// Sends all batches; returns how long that took.
///
/// # Errors
///
/// Of kind [`ErrorKind::Write`]: a batch could not be sent, or a document of it was refused.
pub async fn replay<T: Target>(replay: Replay<T>) -> Result<Duration, Error> {
    let in_flight = replay.in_flight;
    let shared = Arc::new((replay, AtomicUsize::new(0)));
    let began = Instant::now();
    let mut senders = JoinSet::new();
    for _ in 0..in_flight {
        senders.spawn(send(Arc::clone(&shared)));
    }
    while let Some(sent) = senders.join_next().await {
        sent.map_err(|_| internal("a sender ended early"))??;
    }
    Ok(began.elapsed())
}

async fn send<T: Target>(shared: Arc<(Replay<T>, AtomicUsize)>) -> Result<(), Error> {
    let (replay, next) = &*shared;
    // Batches stay in memory to the end: to free them is no part of the sending.
    while let Some(batch) = replay.batches.get(next.fetch_add(1, Ordering::Relaxed)) {
        let insert = &replay.inserts[batch.collection];
        let outcome = replay.target.insert(insert, batch, &Documents::All).await;
        let failed = |message: String| Error::new(ErrorKind::Write, message).of(&insert.namespace);
        let outcome = outcome.map_err(|error| failed(error.message))?;
        if let Some(failure) = outcome.failures.into_iter().next() {
            return Err(failed(failure.message).with_code(failure.code));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::{BatchLimits, Batcher, BufferPool, Position, ZeroTimestamps};
    use crate::frame::Frame;
    use crate::namespace::Namespace;
    use crate::target::null::NullTarget;

    #[tokio::test]
    async fn all_batches_are_sent() {
        let mut batcher =
            Batcher::new(0, BatchLimits::new(1, 1000), ZeroTimestamps::Kept, BufferPool::new(0, 0));
        let document = [5, 0, 0, 0, 0];
        let mut cut = Vec::new();
        for _ in 0..5 {
            let frame = Frame::new(&document).expect("a document");
            cut.extend(batcher.push(frame, Position::default()));
        }
        cut.extend(batcher.finish(Position::default()));
        assert_eq!(cut.len(), 5);
        let insert = Insert {
            mode: WriteMode::Insert,
            keys: KeyFields::default(),
            names: FieldNames::default(),
            namespace: Namespace::new("a", "b"),
            on_refusal: OnRefusal::GoOn,
            validators: Validators::Bypassed,
        };
        let sent = Replay {
            target: Arc::new(NullTarget),
            inserts: vec![insert],
            batches: cut,
            in_flight: 3,
        };
        assert!(replay(sent).await.expect("sent") < Duration::from_secs(60));
    }
}
