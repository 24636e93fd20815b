//! What follows the documents: indexes, views, and the deletion of old documents.

use std::sync::Arc;
use std::time::Instant;

use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::dump::inventory::CollectionKind;
use crate::limits::INDEXES_TOGETHER_BYTES;
use crate::load::indexed::Indexed;
use crate::load::prepare::{bring_about, with_retries};
use crate::load::run::Run;
use crate::plan::indexes::IndexPlan;
use crate::report::{Event, Phase};
use crate::target::{Target, TargetError};

/// Builds the indexes of each collection whose documents are in, until no more come.
pub(super) async fn build_indexes<T: Target>(run: Arc<Run<T>>) {
    let slots = Arc::new(Semaphore::new(run.settings.index_builds));
    let mut builds = JoinSet::new();
    while let Ok(collection) = run.to_index.recv().await {
        let indexed = Arc::new(Indexed::planned(&run, collection));
        builds.spawn(build_collection(Arc::clone(&run), indexed, Arc::clone(&slots)));
        // Finished builds are taken out, so that thousands of collections do not pile up.
        while builds.try_join_next().is_some() {}
    }
    run.join(builds).await;
}

/// Builds the indexes of these collections.
pub(super) async fn build<T: Target>(run: &Arc<Run<T>>, collections: Vec<Arc<Indexed>>) {
    let slots = Arc::new(Semaphore::new(run.settings.index_builds));
    let mut builds = JoinSet::new();
    for indexed in collections {
        builds.spawn(build_collection(Arc::clone(run), indexed, Arc::clone(&slots)));
    }
    run.join(builds).await;
}

async fn build_collection<T: Target>(
    run: Arc<Run<T>>,
    indexed: Arc<Indexed>,
    slots: Arc<Semaphore>,
) {
    if !indexed.is_loaded(&run) && !indexed.has_failed(&run) {
        // The run stopped in the middle of it, which its counts say.
        return;
    }
    let mut builds = JoinSet::new();
    for group in groups(&indexed) {
        let (run, indexed, slots) = (Arc::clone(&run), Arc::clone(&indexed), Arc::clone(&slots));
        builds.spawn(async move { build_group(&run, &indexed, group, &slots).await });
    }
    run.join(builds).await;
    if indexed.is_loaded(&run) {
        run.observe(&Event::CollectionEnded { collection: indexed.collection });
    }
}

/// The collection's indexes by the command that builds them, those that delete documents left out.
///
/// On a small collection one command for all saves round trips. On a large one each index gets its
/// own, because a server sorts the keys of several commands at once, each with the full memory.
fn groups(collection: &Indexed) -> Vec<Vec<usize>> {
    let all = 0..collection.indexes.len();
    let indexes: Vec<_> = all.filter(|&index| !collection.indexes[index].expires).collect();
    if indexes.is_empty() {
        Vec::new()
    } else if collection.bytes < INDEXES_TOGETHER_BYTES {
        vec![indexes]
    } else {
        indexes.into_iter().map(|index| vec![index]).collect()
    }
}

/// Builds indexes with one command; where that fails, one by one, to find the culprit.
async fn build_group<T: Target>(
    run: &Run<T>,
    indexed: &Indexed,
    group: Vec<usize>,
    slots: &Semaphore,
) {
    let Ok(_slot) = slots.acquire().await else {
        return;
    };
    announce(run, indexed, &group);
    if group.len() > 1 && build_some(run, indexed, &group).await.is_ok() {
        return;
    }
    for index in group {
        if let Err(error) = build_some(run, indexed, &[index]).await {
            report_failure(run, indexed, index, &error);
        }
    }
}

/// Tells that the indexes are begun; once for each, however many commands it takes.
fn announce<T: Target>(run: &Run<T>, indexed: &Indexed, group: &[usize]) {
    for &index in group {
        let (collection, index) = (indexed.collection, indexed.indexes[index].name.clone());
        run.observe(&Event::IndexBegan { collection, index });
    }
}

async fn build_some<T: Target>(
    run: &Run<T>,
    indexed: &Indexed,
    group: &[usize],
) -> Result<(), TargetError> {
    let collection = indexed.collection;
    let plans: Vec<&IndexPlan> = group.iter().map(|&index| &indexed.indexes[index]).collect();
    if !run.goes_on() {
        return Err(not_begun());
    }
    let specs: Vec<_> = plans.iter().map(|index| index.spec.clone()).collect();
    let began = Instant::now();
    let _building = run.stages.building.begin();
    let command = || run.target.create_indexes(&indexed.namespace, &specs);
    with_retries(run, collection, command).await?;
    let took = began.elapsed() / u32::try_from(plans.len()).unwrap_or(u32::MAX);
    for index in plans {
        run.observe(&Event::IndexBuilt { collection, index: index.name.clone(), took });
    }
    Ok(())
}

fn not_begun() -> TargetError {
    TargetError {
        fault: crate::target::Fault::Driver,
        code: None,
        labels: Vec::new(),
        message: "not built, because the run stopped before".to_owned(),
    }
}

fn report_failure<T: Target>(run: &Run<T>, indexed: &Indexed, index: usize, error: &TargetError) {
    let name = indexed.indexes[index].name.clone();
    let reason = match error.code {
        Some(code) => format!("{} (server code {code})", error.message),
        None => error.message.clone(),
    };
    run.observe(&Event::IndexFailed { collection: indexed.collection, index: name, reason });
}

/// Creates the views, each after the one it is on.
pub(super) async fn create_views<T: Target>(run: &Run<T>) {
    let is_view =
        |collection: &usize| run.plan.collections[*collection].kind == CollectionKind::View;
    let views: Vec<usize> = (0..run.plan.collections.len()).filter(is_view).collect();
    if views.is_empty() || !run.goes_on() {
        return;
    }
    run.observe(&Event::PhaseBegan(Phase::Views));
    for collection in views {
        if !run.goes_on() {
            return;
        }
        match bring_about(run, collection).await {
            Ok(()) => run.observe(&Event::CollectionEnded { collection }),
            Err(error) => run.fail_collection(collection, &error),
        }
    }
}

/// Lets the server delete old documents again, after everything else: it begins within a minute.
pub(super) async fn expire<T: Target>(run: &Run<T>, collections: Vec<Arc<Indexed>>) {
    let expires = |indexed: &Arc<Indexed>| indexed.expires() && !indexed.is_refused(run);
    let expiring: Vec<_> = collections.into_iter().filter(expires).collect();
    if expiring.is_empty() {
        return;
    }
    run.observe(&Event::PhaseBegan(Phase::TimeToLive));
    for indexed in expiring {
        for index in (0..indexed.indexes.len()).filter(|&index| indexed.indexes[index].expires) {
            announce(run, &indexed, &[index]);
            if let Err(error) = build_some(run, &indexed, &[index]).await {
                report_failure(run, &indexed, index, &error);
            }
        }
        if let Some(seconds) = &indexed.expire_after_seconds {
            set_expiry(run, &indexed, seconds).await;
        }
    }
}

async fn set_expiry<T: Target>(run: &Run<T>, indexed: &Indexed, seconds: &bson::Bson) {
    let collection = indexed.collection;
    if !run.goes_on() || indexed.has_failed(run) {
        return;
    }
    // The server knows the age of a time-series collection by its own name.
    let logical = indexed.namespace.of_buckets();
    let namespace = logical.as_ref().unwrap_or(&indexed.namespace);
    let command = || run.target.expire_after(namespace, seconds);
    if let Err(error) = with_retries(run, collection, command).await {
        let reason = error.message;
        let index = "expireAfterSeconds".to_owned();
        run.observe(&Event::IndexFailed { collection, index, reason });
    }
}
