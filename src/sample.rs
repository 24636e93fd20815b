//! How a run and its server stand at a moment, as they tell about once a second.
//!
//! Counters and times only grow, so that the difference of two samples says what happened between
//! them. Nothing here is measured: the loader fills in its own part, the target that of the server.

use std::time::Duration;

/// How a run stands at a moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample {
    /// What is there now.
    pub gauges: Gauges,
    /// What the stages have spent since the run began.
    pub stages: StageTimes,
    /// How the server stands, in those samples for which it was asked and answered.
    pub server: Option<Box<ServerSample>>,
}

/// What there is of a run at a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gauges {
    /// Batches that were sent and are not answered.
    pub in_flight: usize,
    /// Batches that wait for a worker.
    pub queued: usize,
    /// Batches for which there is room in the queue.
    pub queue_room: usize,
    /// Workers that may send at the moment.
    pub workers: usize,
    /// Collections that are being read.
    pub reading: usize,
    /// Batches that are acknowledged and not yet known to be durable.
    pub settling: usize,
    /// Processor cores that this program may use.
    pub cores: usize,
}

/// The time that each stage has spent since the run began, added up over its threads or tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StageTimes {
    /// Readers that had work to do: all but the time in which they waited for room in the queue.
    pub reading: Duration,
    /// Of that, or of unpacking: waiting for bytes of files and pipes.
    pub input: Duration,
    /// Of reading: waiting for bytes to be unpacked, by the reader itself or beside it.
    pub unpacked: Duration,
    /// Threads that unpack beside a reader, while they had work to do.
    pub unpacking: Duration,
    /// Readers that waited for room in the queue.
    pub held_back: Duration,
    /// Workers that waited for a batch.
    pub starved: Duration,
    /// Workers that were kept back by a limit on the rate.
    pub limited: Duration,
    /// Workers that waited for the target's answer, pauses before further attempts included.
    pub sending: Duration,
    /// Workers that waited for acknowledged batches to become durable.
    pub settling: Duration,
    /// Processor time of this program.
    pub processor: Duration,
}

/// How a server stands at a moment, as far as it tells.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServerSample {
    /// The time at which it was asked, since the run began.
    pub at: Duration,
    /// Processor time of the server's process since it started (`extra_info`).
    pub processor: Option<Duration>,
    /// Time that write commands took on the server, summed up (`opLatencies.writes.latency`).
    pub write_time: Option<Duration>,
    /// Write commands (`opLatencies.writes.ops`).
    pub writes: Option<u64>,
    /// Time that bringing the journal to the disk took, summed up (`wiredTiger.log`).
    pub journal_sync_time: Option<Duration>,
    /// How often the journal was brought to the disk.
    pub journal_syncs: Option<u64>,
    /// Bytes that the storage engine's cache may hold.
    pub cache_bytes_max: Option<u64>,
    /// Bytes in the cache.
    pub cache_bytes: Option<u64>,
    /// Bytes in the cache that are not written to the disk yet.
    pub cache_dirty_bytes: Option<u64>,
    /// Pages that threads with other work had to evict from the cache.
    pub application_evictions: Option<u64>,
    /// Write tickets that are taken, and all there are.
    pub write_tickets: Option<Tickets>,
    /// Writes that wait for a lock or a ticket (`globalLock.currentQueue.writers`).
    pub queued_writers: Option<u64>,
    /// Whether flow control holds writes back, because secondaries lag (`flowControl.isLagged`).
    pub flow_controlled: Option<bool>,
    /// Time that writes waited for flow control, summed up.
    pub flow_control_time: Option<Duration>,
    /// How far the majority is behind the primary (`hello.lastWrite`).
    pub majority_lag: Option<Duration>,
}

/// Places for operations inside a storage engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tickets {
    /// Those in use.
    pub taken: u64,
    /// All of them.
    pub total: u64,
}

/// How far the build of an index is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexProgress {
    /// The collection, such as `shop.orders`.
    pub namespace: String,
    /// The names of the indexes that one command builds.
    pub indexes: Vec<String>,
    /// What the server does.
    pub stage: IndexStage,
    /// Documents or keys that are done with in this stage.
    pub done: u64,
    /// All of them; zero where that is not told.
    pub total: u64,
}

/// What a server does to build indexes, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexStage {
    /// It reads all documents and collects their keys.
    Scanning,
    /// It sorts the keys.
    Sorting,
    /// It writes the keys into the index; one index after the other, where there are several.
    Inserting,
    /// It catches up with writes that came meanwhile, and commits.
    Committing,
}

impl IndexProgress {
    /// The share of the whole build that is done, 0 to 1. Of builds over 2 M documents, scanning
    /// took 28 to 54 %, sorting 25 to 47 % and inserting 20 to 24 % of the time.
    #[expect(clippy::cast_precision_loss, reason = "a share is shown in whole percents")]
    pub fn fraction(&self) -> f64 {
        let share = if self.total == 0 { 0.0 } else { self.done as f64 / self.total as f64 };
        match self.stage {
            IndexStage::Scanning => 0.5 * share.min(1.0),
            IndexStage::Sorting => 0.5,
            IndexStage::Inserting => 0.75 + 0.25 * share.min(1.0),
            IndexStage::Committing => 1.0,
        }
    }
}

impl StageTimes {
    /// What was spent since an earlier moment.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        self.with(before, Duration::saturating_sub)
    }

    /// Adds what was spent elsewhere.
    pub fn add(&mut self, other: &Self) {
        *self = self.with(other, |one, other| one + other);
    }

    fn with(&self, other: &Self, join: impl Fn(Duration, Duration) -> Duration) -> Self {
        Self {
            reading: join(self.reading, other.reading),
            input: join(self.input, other.input),
            unpacked: join(self.unpacked, other.unpacked),
            unpacking: join(self.unpacking, other.unpacking),
            held_back: join(self.held_back, other.held_back),
            starved: join(self.starved, other.starved),
            limited: join(self.limited, other.limited),
            sending: join(self.sending, other.sending),
            settling: join(self.settling, other.settling),
            processor: join(self.processor, other.processor),
        }
    }
}
