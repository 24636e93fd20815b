//! What was measured between two moments, as sums that can be joined.

use std::time::Duration;

use super::part;
use crate::report::rate::share;
use crate::sample::{Sample, ServerSample, StageTimes, Tickets};

/// What was measured between two moments.
#[derive(Clone, Debug, Default)]
pub struct Window {
    /// The time between them.
    pub elapsed: Duration,
    /// What the stages spent in it.
    pub stages: StageTimes,
    /// Batches that were answered for.
    pub batches: u64,
    /// The time to their answers, summed up.
    pub latency: Duration,
    /// Processor cores that this program might use.
    pub cores: usize,
    /// What the server did, as far as it told.
    pub server: ServerWindow,
}

/// What a server did between the times at which it was asked.
#[derive(Clone, Debug, Default)]
pub struct ServerWindow {
    /// The time between them; zero where it was not asked twice.
    pub elapsed: Duration,
    /// Processor time.
    pub processor: Option<Duration>,
    /// The time of write commands.
    pub write_time: Duration,
    /// Write commands.
    pub writes: u64,
    /// The time in which the journal was brought to the disk.
    pub journal_sync_time: Duration,
    /// How often.
    pub journal_syncs: u64,
    /// Pages that threads with other work evicted.
    pub application_evictions: u64,
    /// The time in which flow control held writes back, over all of them.
    pub flow_control_time: Duration,
    /// Whether flow control was active.
    pub flow_controlled: bool,
    /// The highest share of the cache that was dirty.
    pub cache_dirty_share: Option<f64>,
    /// The highest share of the cache that was in use.
    pub cache_share: Option<f64>,
    /// The most write tickets that were taken.
    pub write_tickets: Option<Tickets>,
    /// The most writes that waited for one.
    pub queued_writers: u64,
    /// The most that the majority was behind.
    pub majority_lag: Option<Duration>,
}

fn difference<V: Default>(before: Option<V>, after: Option<V>, minus: impl Fn(V, V) -> V) -> V {
    // A server that was started again counts from zero.
    before.zip(after).map_or_else(V::default, |(before, after)| minus(after, before))
}

fn times(before: Option<Duration>, after: Option<Duration>) -> Duration {
    difference(before, after, Duration::saturating_sub)
}

fn counts(before: Option<u64>, after: Option<u64>) -> u64 {
    difference(before, after, u64::saturating_sub)
}

fn higher<V: PartialOrd>(one: Option<V>, other: Option<V>) -> Option<V> {
    match (one, other) {
        (Some(one), Some(other)) if other > one => Some(other),
        (Some(one), _) => Some(one),
        (None, other) => other,
    }
}

impl Window {
    /// Adds what the run did between two samples.
    pub(super) fn add_run(&mut self, before: &Sample, after: &Sample) {
        self.stages.add(&after.stages.since(&before.stages));
        self.cores = self.cores.max(after.gauges.cores);
    }

    /// Adds what the server did between two samples.
    pub(super) fn add_server(&mut self, before: &ServerSample, after: &ServerSample) {
        self.server.join(&ServerWindow::between(before, after));
    }

    /// Adds another window.
    pub(super) fn join(&mut self, other: &Self) {
        self.elapsed += other.elapsed;
        self.stages.add(&other.stages);
        self.batches += other.batches;
        self.latency += other.latency;
        self.cores = self.cores.max(other.cores);
        self.server.join(&other.server);
    }

    /// The time of all workers that might send.
    pub fn worker_time(&self) -> Duration {
        let StageTimes { starved, limited, sending, settling, .. } = self.stages;
        starved + limited + sending + settling
    }

    /// The share of all cores that this program used.
    pub fn cores_busy(&self) -> f64 {
        let cores = u32::try_from(self.cores.max(1)).unwrap_or(u32::MAX);
        part(self.stages.processor, self.elapsed * cores)
    }

    /// The mean time from sending a batch to its answer.
    pub fn latency_mean(&self) -> Duration {
        self.latency / u32::try_from(self.batches.max(1)).unwrap_or(u32::MAX)
    }

    /// The mean time that the server says it spent on a write command; nothing where it does not
    /// tell.
    pub fn server_mean(&self) -> Option<Duration> {
        let writes = u32::try_from(self.server.writes).ok().filter(|writes| *writes > 0)?;
        Some(self.server.write_time / writes)
    }

    /// The share of the time to an answer that the server spent on it; nothing where it does not
    /// tell. With few batches the two do not speak of the same ones.
    pub fn share_on_server(&self) -> Option<f64> {
        let mean = self.server_mean().filter(|_| self.batches > 0)?;
        Some(part(mean, self.latency_mean()).min(1.0))
    }

    /// The share of the time in which the server brought its journal to the disk.
    pub fn journal_share(&self) -> f64 {
        part(self.server.journal_sync_time, self.server.elapsed)
    }

    /// Processor cores that the server kept busy; infinitely many where it does not tell, so that
    /// nothing is concluded from its idleness.
    pub fn server_cores(&self) -> f64 {
        let busy = |processor| part(processor, self.server.elapsed);
        self.server.processor.map_or(f64::INFINITY, busy)
    }
}

impl ServerWindow {
    fn between(before: &ServerSample, after: &ServerSample) -> Self {
        let of_cache = |bytes: Option<u64>| {
            bytes.zip(after.cache_bytes_max).map(|(bytes, whole)| share(bytes, whole))
        };
        Self {
            elapsed: after.at.saturating_sub(before.at),
            processor: before
                .processor
                .and(after.processor)
                .map(|_| times(before.processor, after.processor)),
            write_time: times(before.write_time, after.write_time),
            writes: counts(before.writes, after.writes),
            journal_sync_time: times(before.journal_sync_time, after.journal_sync_time),
            journal_syncs: counts(before.journal_syncs, after.journal_syncs),
            application_evictions: counts(
                before.application_evictions,
                after.application_evictions,
            ),
            flow_control_time: times(before.flow_control_time, after.flow_control_time),
            flow_controlled: after.flow_controlled == Some(true),
            cache_dirty_share: of_cache(after.cache_dirty_bytes),
            cache_share: of_cache(after.cache_bytes),
            write_tickets: after.write_tickets,
            queued_writers: after.queued_writers.unwrap_or(0),
            majority_lag: after.majority_lag,
        }
    }

    fn join(&mut self, other: &Self) {
        self.elapsed += other.elapsed;
        self.processor = match (self.processor, other.processor) {
            (Some(one), Some(other)) => Some(one + other),
            (one, other) => one.or(other),
        };
        self.write_time += other.write_time;
        self.writes += other.writes;
        self.journal_sync_time += other.journal_sync_time;
        self.journal_syncs += other.journal_syncs;
        self.application_evictions += other.application_evictions;
        self.flow_control_time += other.flow_control_time;
        self.flow_controlled |= other.flow_controlled;
        self.cache_dirty_share = higher(self.cache_dirty_share, other.cache_dirty_share);
        self.cache_share = higher(self.cache_share, other.cache_share);
        self.write_tickets = match (self.write_tickets, other.write_tickets) {
            (Some(one), Some(other)) if one.taken > other.taken => Some(one),
            (one, other) => other.or(one),
        };
        self.queued_writers = self.queued_writers.max(other.queued_writers);
        self.majority_lag = higher(self.majority_lag, other.majority_lag);
    }
}
