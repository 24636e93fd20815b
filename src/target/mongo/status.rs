//! How the server stands: the numbers that tell what a restore waits for.
//!
//! They come from `serverStatus`, which needs the role `clusterMonitor` or a wider one, and from
//! `hello`, which anybody may ask.

use std::sync::atomic::Ordering;
use std::time::Duration;

use bson::{Bson, Document, doc};

use crate::sample::{ServerSample, Tickets};
use crate::target::TargetError;
use crate::target::mongo::MongoTarget;

/// Parts of `serverStatus` that are large or slow and say nothing about a restore.
const LEFT_OUT: [&str; 10] = [
    "metrics",
    "tcmalloc",
    "locks",
    "asserts",
    "network",
    "transactions",
    "repl",
    "sharding",
    "shardingStatistics",
    "indexBulkBuilder",
];

impl MongoTarget {
    /// How the server stands.
    pub(super) async fn ask_status(&self) -> Result<ServerSample, TargetError> {
        let status = self.server_status().await?;
        let hello = self.hello().await?;
        Ok(sample(&status, &hello))
    }

    /// What `serverStatus` says; nothing where this user may not ask, which is found out once,
    /// because a server logs each attempt.
    async fn server_status(&self) -> Result<Document, TargetError> {
        /// `Unauthorized`.
        const UNAUTHORIZED: i32 = 13;
        if self.status_refused.load(Ordering::Relaxed) {
            return Ok(Document::new());
        }
        let mut command = doc! { "serverStatus": 1 };
        command.extend(LEFT_OUT.map(|part| (part.to_owned(), Bson::from(0))));
        match self.run("admin", command).await {
            Err(error) if error.code == Some(UNAUTHORIZED) => {
                self.status_refused.store(true, Ordering::Relaxed);
                Ok(Document::new())
            }
            other => other,
        }
    }
}

/// A number inside of documents, whatever its type.
pub(super) fn number(document: &Document, path: &[&str]) -> Option<u64> {
    let (last, parents) = path.split_last()?;
    let mut place = document;
    for parent in parents {
        place = place.get_document(parent).ok()?;
    }
    match place.get(last)? {
        Bson::Int32(value) => u64::try_from(*value).ok(),
        Bson::Int64(value) => u64::try_from(*value).ok(),
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a counter")]
        Bson::Double(value) if *value >= 0.0 => Some(*value as u64),
        _ => None,
    }
}

fn sample(status: &Document, hello: &Document) -> ServerSample {
    let number = |path: &[&str]| number(status, path);
    let micros = |path: &[&str]| number(path).map(Duration::from_micros);
    let cache = |name: &str| number(&["wiredTiger", "cache", name]);
    let processor = |kind: &str| micros(&["extra_info", kind]);
    ServerSample {
        at: Duration::ZERO,
        processor: processor("user_time_us")
            .zip(processor("system_time_us"))
            .map(|(user, system)| user + system),
        write_time: micros(&["opLatencies", "writes", "latency"]),
        writes: number(&["opLatencies", "writes", "ops"]),
        journal_sync_time: micros(&["wiredTiger", "log", "log sync time duration (usecs)"]),
        journal_syncs: number(&["wiredTiger", "log", "log sync operations"]),
        cache_bytes_max: cache("maximum bytes configured"),
        cache_bytes: cache("bytes currently in the cache"),
        cache_dirty_bytes: cache("tracked dirty bytes in the cache"),
        application_evictions: cache("pages evicted by application threads"),
        write_tickets: tickets(status),
        queued_writers: number(&["globalLock", "currentQueue", "writers"]),
        flow_controlled: status
            .get_document("flowControl")
            .ok()
            .and_then(|control| control.get_bool("isLagged").ok()),
        flow_control_time: micros(&["flowControl", "timeAcquiringMicros"]),
        majority_lag: majority_lag(hello),
    }
}

/// Write tickets, under their name since 7.0 or the one before.
fn tickets(status: &Document) -> Option<Tickets> {
    let number = |name: &str| {
        number(status, &["queues", "execution", "write", name])
            .or_else(|| number(status, &["wiredTiger", "concurrentTransactions", "write", name]))
    };
    Some(Tickets { taken: number("out")?, total: number("totalTickets")? })
}

/// How far the last write that a majority has is behind the last one.
fn majority_lag(hello: &Document) -> Option<Duration> {
    let last = hello.get_document("lastWrite").ok()?;
    let newest = last.get_datetime("lastWriteDate").ok()?;
    let majority = last.get_datetime("majorityWriteDate").ok()?;
    let behind = newest.timestamp_millis().saturating_sub(majority.timestamp_millis());
    Some(Duration::from_millis(u64::try_from(behind).unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::DateTime;

    #[test]
    fn a_status_is_read_whatever_the_types_of_its_numbers() {
        let status = doc! {
            "extra_info": { "user_time_us": 1_500_000_i64, "system_time_us": 500_000_i64 },
            "opLatencies": { "writes": { "latency": 2_000_000_i64, "ops": 40_i64 } },
            "globalLock": { "currentQueue": { "writers": 3 } },
            "wiredTiger": {
                "log": { "log sync time duration (usecs)": 250_000, "log sync operations": 12 },
                "cache": {
                    "maximum bytes configured": 1_073_741_824.0,
                    "bytes currently in the cache": 500_000_000_i64,
                    "tracked dirty bytes in the cache": 100_000_000,
                    "pages evicted by application threads": 7,
                },
                "concurrentTransactions": { "write": { "out": 8, "available": 120, "totalTickets": 128 } },
            },
            "flowControl": { "isLagged": true, "timeAcquiringMicros": 9_i64 },
        };
        let last = doc! {
            "lastWriteDate": DateTime::from_millis(10_500),
            "majorityWriteDate": DateTime::from_millis(8_000),
        };
        let sample = sample(&status, &doc! { "lastWrite": last });
        let expected = ServerSample {
            at: Duration::ZERO,
            processor: Some(Duration::from_secs(2)),
            write_time: Some(Duration::from_secs(2)),
            writes: Some(40),
            journal_sync_time: Some(Duration::from_millis(250)),
            journal_syncs: Some(12),
            cache_bytes_max: Some(1 << 30),
            cache_bytes: Some(500_000_000),
            cache_dirty_bytes: Some(100_000_000),
            application_evictions: Some(7),
            write_tickets: Some(Tickets { taken: 8, total: 128 }),
            queued_writers: Some(3),
            flow_controlled: Some(true),
            flow_control_time: Some(Duration::from_micros(9)),
            majority_lag: Some(Duration::from_millis(2500)),
        };
        assert_eq!(sample, expected);
    }

    #[test]
    fn newer_servers_keep_tickets_elsewhere() {
        let write = doc! { "out": 1, "available": 9, "totalTickets": 10 };
        let status = doc! { "queues": { "execution": { "write": write } } };
        assert_eq!(tickets(&status), Some(Tickets { taken: 1, total: 10 }));
    }

    #[test]
    fn a_router_tells_little() {
        assert_eq!(sample(&doc! { "ok": 1 }, &doc! {}), ServerSample::default());
    }
}
