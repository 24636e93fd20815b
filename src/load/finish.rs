//! What follows the documents: indexes, views, and the deletion of old documents.

use std::sync::Arc;
use std::time::Instant;

use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::dump::inventory::{CollectionKind, Origin};
use crate::limits::INDEXES_TOGETHER_BYTES;
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
        builds.spawn(build_collection(Arc::clone(&run), collection, Arc::clone(&slots)));
        // Finished builds are taken out, so that thousands of collections do not pile up.
        while builds.try_join_next().is_some() {}
    }
    run.join(builds).await;
}

async fn build_collection<T: Target>(run: Arc<Run<T>>, collection: usize, slots: Arc<Semaphore>) {
    if !run.is_loaded(collection) && !run.collection_has_failed(collection) {
        // The run stopped in the middle of it, which its counts say.
        return;
    }
    let mut builds = JoinSet::new();
    for group in groups(&run, collection) {
        builds.spawn(build_group(Arc::clone(&run), collection, group, Arc::clone(&slots)));
    }
    run.join(builds).await;
    if run.is_loaded(collection) {
        run.observe(&Event::CollectionEnded { collection });
    }
}

/// The collection's indexes by the command that builds them, those that delete documents left out.
///
/// On a small collection one command for all saves round trips. On a large one each index gets its
/// own, because a server sorts the keys of several commands at once, each with the full memory.
fn groups<T: Target>(run: &Run<T>, collection: usize) -> Vec<Vec<usize>> {
    let plan = &run.plan.collections[collection];
    let indexes: Vec<_> = (0..plan.indexes.len()).filter(|&i| !plan.indexes[i].expires).collect();
    let bytes = plan.data.as_ref().map_or(Some(0), Origin::bytes);
    let is_small = bytes.unwrap_or_else(|| run.bytes_read(collection)) < INDEXES_TOGETHER_BYTES;
    if indexes.is_empty() {
        Vec::new()
    } else if is_small {
        vec![indexes]
    } else {
        indexes.into_iter().map(|index| vec![index]).collect()
    }
}

/// Builds indexes with one command; where that fails, one by one, to find the culprit.
async fn build_group<T: Target>(
    run: Arc<Run<T>>,
    collection: usize,
    group: Vec<usize>,
    slots: Arc<Semaphore>,
) {
    let Ok(_slot) = slots.acquire().await else {
        return;
    };
    announce(&run, collection, &group);
    if group.len() > 1 && build(&run, collection, &group).await.is_ok() {
        return;
    }
    for index in group {
        if let Err(error) = build(&run, collection, &[index]).await {
            report_failure(&run, collection, index, &error);
        }
    }
}

/// Tells that the indexes are begun; once for each, however many commands it takes.
fn announce<T: Target>(run: &Run<T>, collection: usize, group: &[usize]) {
    for &index in group {
        let index = run.plan.collections[collection].indexes[index].name.clone();
        run.observe(&Event::IndexBegan { collection, index });
    }
}

async fn build<T: Target>(
    run: &Run<T>,
    collection: usize,
    group: &[usize],
) -> Result<(), TargetError> {
    let plan = &run.plan.collections[collection];
    let indexes: Vec<&IndexPlan> = group.iter().map(|&index| &plan.indexes[index]).collect();
    if !run.goes_on() {
        return Err(not_begun());
    }
    let specs: Vec<_> = indexes.iter().map(|index| index.spec.clone()).collect();
    let began = Instant::now();
    with_retries(run, collection, || run.target.create_indexes(&plan.namespace, &specs)).await?;
    let took = began.elapsed() / u32::try_from(indexes.len()).unwrap_or(u32::MAX);
    for index in indexes {
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

fn report_failure<T: Target>(run: &Run<T>, collection: usize, index: usize, error: &TargetError) {
    let name = run.plan.collections[collection].indexes[index].name.clone();
    let reason = match error.code {
        Some(code) => format!("{} (server code {code})", error.message),
        None => error.message.clone(),
    };
    run.observe(&Event::IndexFailed { collection, index: name, reason });
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
pub(super) async fn expire<T: Target>(run: &Run<T>) {
    let expires = |collection: &usize| {
        let plan = &run.plan.collections[*collection];
        let expires =
            plan.expire_after_seconds.is_some() || plan.indexes.iter().any(|index| index.expires);
        expires && !run.is_refused(*collection)
    };
    let collections: Vec<usize> = (0..run.plan.collections.len()).filter(expires).collect();
    if collections.is_empty() {
        return;
    }
    run.observe(&Event::PhaseBegan(Phase::TimeToLive));
    for collection in collections {
        let plan = &run.plan.collections[collection];
        for index in (0..plan.indexes.len()).filter(|&index| plan.indexes[index].expires) {
            announce(run, collection, &[index]);
            if let Err(error) = build(run, collection, &[index]).await {
                report_failure(run, collection, index, &error);
            }
        }
        if let Some(seconds) = &plan.expire_after_seconds {
            set_expiry(run, collection, seconds).await;
        }
    }
}

async fn set_expiry<T: Target>(run: &Run<T>, collection: usize, seconds: &bson::Bson) {
    let plan = &run.plan.collections[collection];
    if !run.goes_on() || run.collection_has_failed(collection) {
        return;
    }
    let set = with_retries(run, collection, || run.target.expire_after(&plan.namespace, seconds));
    if let Err(error) = set.await {
        let reason = error.message;
        let index = "expireAfterSeconds".to_owned();
        run.observe(&Event::IndexFailed { collection, index, reason });
    }
}
