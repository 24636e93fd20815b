//! A verdict's evidence and advice, in words.

use std::time::Duration;

use super::{Bound, Window, part};
use crate::report::format::{counted, duration};

/// A dirty share of the cache from which threads with other work have to evict pages
/// (`WiredTiger`'s `eviction_dirty_trigger`).
const DIRTY_TRIGGER: f64 = 0.2;

/// A majority that is this far behind holds a restore back.
const LAG: Duration = Duration::from_secs(2);

/// What was measured that speaks for a verdict, as phrases.
pub(super) fn evidence(by: Bound, window: &Window) -> Vec<String> {
    let stages = &window.stages;
    let of_workers = |time| percent(part(time, window.worker_time()));
    let waited =
        |what: &str, time| format!("workers waited for {what} {} of the time", of_workers(time));
    let creating = part(stages.starved, window.worker_time()) >= super::MOST;
    let created = || "readers waited for collections to be created".to_owned();
    match by {
        Bound::Server if creating => vec![created()],
        Bound::Server => {
            let mut evidence = vec![waited("its answers", stages.sending), answer(window)];
            evidence.extend(server(window));
            evidence
        }
        Bound::Journal => {
            let confirmed = || waited("confirmation", stages.sending + stages.settling);
            let mut evidence = vec![if creating { created() } else { confirmed() }];
            if window.server.journal_syncs > 0 {
                let syncs = u32::try_from(window.server.journal_syncs).unwrap_or(u32::MAX);
                evidence.push(format!(
                    "the journal was being written {} of the time, {} each time",
                    percent(window.journal_share()),
                    duration(window.server.journal_sync_time / syncs)
                ));
            }
            evidence.extend(cores(window));
            evidence
        }
        Bound::Network => vec![waited("answers", stages.sending), answer(window)],
        Bound::Reading => vec![
            waited("batches", stages.starved),
            format!(
                "bytes of the dump were waited for {} of the reading time",
                percent(part(stages.input, stages.reading))
            ),
        ],
        Bound::Inflating => vec![
            waited("batches", stages.starved),
            format!(
                "readers waited for unpacked bytes {} of their time",
                percent(part(stages.unpacked, stages.reading))
            ),
        ],
        Bound::ClientCpu => vec![format!(
            "restorm itself used {} of {}",
            percent(window.cores_busy()),
            counted(window.cores as u64, "core", "cores")
        )],
        Bound::Indexes => {
            vec![format!("{} went by after the last document", duration(window.elapsed))]
        }
        Bound::RateLimit => vec![waited("the limit", stages.limited)],
    }
}

/// How long an answer took, and where.
fn answer(window: &Window) -> String {
    let whole = format!("an answer took {}", duration(window.latency_mean()));
    match window.server_mean() {
        Some(mean) => {
            let mean = mean.min(window.latency_mean());
            format!("{whole}, {} of it on the server", duration(mean))
        }
        None => format!("{whole}; the server does not tell this user more (role clusterMonitor)"),
    }
}

/// What the server tells of itself that is out of the ordinary, and its processor time.
fn server(window: &Window) -> Vec<String> {
    let server = &window.server;
    let mut evidence: Vec<String> = cores(window).into_iter().collect();
    if let Some(dirty) = server.cache_dirty_share {
        evidence.push(format!("{} of the cache dirty", percent(dirty)));
    }
    if server.application_evictions > 0 {
        let pages = counted(server.application_evictions, "page", "pages");
        evidence.push(format!("{pages} evicted by threads that had other work"));
    }
    if let Some(tickets) =
        server.write_tickets.filter(|tickets| tickets.taken * 4 >= tickets.total * 3)
    {
        evidence.push(format!("{} of {} write tickets taken", tickets.taken, tickets.total));
    }
    if server.queued_writers > 0 {
        evidence.push(format!("{} queued", counted(server.queued_writers, "write", "writes")));
    }
    if server.flow_controlled {
        evidence.push("flow control holds writes back".to_owned());
    }
    if let Some(lag) = server.majority_lag.filter(|lag| *lag >= LAG) {
        evidence.push(format!("the majority is {} behind", duration(lag)));
    }
    evidence
}

fn cores(window: &Window) -> Option<String> {
    window.server.processor?;
    Some(format!("it used {:.1} cores", window.server_cores()))
}

/// What would make it faster; a sentence without its final period.
pub(super) fn advice(by: Bound, window: &Window) -> String {
    let server = &window.server;
    let text = match by {
        Bound::Server if part(window.stages.starved, window.worker_time()) >= super::MOST => {
            "creating collections costs the server as much as a batch each; nothing on this side \
             is waiting"
        }
        Bound::Server
            if server.flow_controlled || server.majority_lag.is_some_and(|lag| lag >= LAG) =>
        {
            "secondaries do not keep up; faster ones would help, or adding them after the restore"
        }
        Bound::Server if server.cache_dirty_share.is_some_and(|dirty| dirty >= DIRTY_TRIGGER) => {
            "its disk does not take changes as fast as they come; a faster disk or a larger cache \
             (storage.wiredTiger.engineConfig.cacheSizeGB) would help"
        }
        Bound::Server => {
            "the server's processors or its disk are the limit; more workers would not help"
        }
        Bound::Journal => {
            "a faster disk for the journal, more batches in flight (--workers), or confirmation \
             without it (--journal off), with the barrier at the end"
        }
        Bound::Network => {
            "run restorm nearer to the server, have more batches in flight (--workers), or \
             compress what is sent (compressors=zstd in the connection string)"
        }
        Bound::Reading => {
            "a faster disk or pipe for the dump; more collections side by side (-j) if the disk \
             takes that"
        }
        Bound::Inflating => {
            "more collections side by side (-j) where cores are free, or a dump that is packed \
             with zstd or not at all"
        }
        Bound::ClientCpu => {
            "more or faster cores for restorm, or fewer checks (--validate-documents)"
        }
        Bound::Indexes => {
            "more memory for index builds on the server (maxIndexBuildMemoryUsageMegabytes), or \
             more of them at once (--parallel-index-builds)"
        }
        Bound::RateLimit => "a higher --rate-limit",
    };
    text.to_owned()
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}
