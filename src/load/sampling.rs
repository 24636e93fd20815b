//! Tells about once a second how the run stands, and every few seconds how the server does.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval, timeout};

use crate::limits::{
    INDEX_PROGRESS_INTERVAL, SAMPLE_INTERVAL, SERVER_SAMPLE_INTERVAL, SERVER_SAMPLE_PATIENCE,
};
use crate::load::run::Run;
use crate::namespace::Namespace;
use crate::report::Event;
use crate::sample::ServerSample;
use crate::target::{Fault, Target};

/// Tells until it is aborted.
pub(super) async fn keep_sampling<T: Target>(run: Arc<Run<T>>) {
    tokio::join!(keep_telling(&run), keep_asking(&run), keep_watching(&run));
}

/// Tells once more how the run stands, and its server.
pub(super) async fn tell_all<T: Target>(run: &Run<T>) {
    // A server that a run gave up on is not waited for once more.
    let server = if run.goes_on() { ask(run).await.unwrap_or_default() } else { None };
    tell(run, server);
}

/// Tells how the run stands.
pub(super) fn tell<T: Target>(run: &Run<T>, server: Option<Box<ServerSample>>) {
    let mut sample = run.sample();
    sample.server = server;
    run.observe(&Event::Sampled(Box::new(sample)));
}

async fn keep_telling<T: Target>(run: &Run<T>) {
    let mut ticks = ticks(SAMPLE_INTERVAL);
    loop {
        ticks.tick().await;
        tell(run, None);
    }
}

/// Asks the server as long as it answers such questions.
async fn keep_asking<T: Target>(run: &Run<T>) {
    let mut ticks = ticks(SERVER_SAMPLE_INTERVAL);
    loop {
        ticks.tick().await;
        match ask(run).await {
            Ok(None) => return,
            Ok(server) => {
                if let Some(server) = &server {
                    run.pacing.sampled(server);
                }
                tell(run, server);
            }
            Err(Unanswered) => {}
        }
    }
}

/// Tells how far indexes are while some are built, as long as the server answers such questions.
async fn keep_watching<T: Target>(run: &Run<T>) {
    let places: HashMap<String, usize> = run
        .plan
        .collections
        .iter()
        .enumerate()
        .filter(|(_, plan)| !plan.indexes.is_empty())
        .map(|(place, plan)| (unescaped(&plan.data_namespace), place))
        .collect();
    let mut ticks = ticks(INDEX_PROGRESS_INTERVAL);
    loop {
        ticks.tick().await;
        if run.stages.building.running() == 0 {
            continue;
        }
        match timeout(SERVER_SAMPLE_PATIENCE, run.target.index_progress()).await {
            Ok(Ok(None)) => return,
            Ok(Err(error)) if error.fault == Fault::Refused => return,
            Ok(Err(_)) | Err(_) => {}
            Ok(Ok(Some(builds))) => {
                for progress in builds {
                    if let Some(&collection) = places.get(&progress.namespace) {
                        run.observe(&Event::IndexProgressed { collection, progress });
                    }
                }
            }
        }
    }
}

/// The name as the server writes it.
fn unescaped(namespace: &Namespace) -> String {
    format!("{}.{}", namespace.database(), namespace.collection())
}

/// The server did not answer this time.
struct Unanswered;

/// Asks how the server stands; nothing where it does not tell, or does not tell this user.
async fn ask<T: Target>(run: &Run<T>) -> Result<Option<Box<ServerSample>>, Unanswered> {
    match timeout(SERVER_SAMPLE_PATIENCE, run.target.status()).await {
        Ok(Ok(status)) => {
            Ok(status.map(|status| Box::new(ServerSample { at: run.elapsed(), ..status })))
        }
        Ok(Err(error)) if error.fault == Fault::Refused => Ok(None),
        Ok(Err(_)) | Err(_) => Err(Unanswered),
    }
}

fn ticks(every: Duration) -> tokio::time::Interval {
    let mut ticks = interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}
