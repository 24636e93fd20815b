//! How busy the stages of a run are.

use std::thread;

use crate::clock::{Clock, ReadClocks};
use crate::load::places::Spent;
use crate::load::run::Run;
use crate::sample::{Gauges, Sample, StageTimes};

/// The clocks of a run's stages; what goes on in one of them is seen as well.
#[derive(Debug, Default)]
pub(super) struct Stages {
    /// A collection, or an archive, is being read.
    pub(super) reading: Clock,
    /// What is measured inside of that.
    pub(super) read: ReadClocks,
    /// A reader waits for room in the queue, or for a collection to be created.
    pub(super) held_back: Clock,
    /// A batch was sent and is not answered for.
    pub(super) sending: Clock,
    /// The server builds indexes.
    pub(super) building: Clock,
    /// A worker waits for what was acknowledged to become durable.
    pub(super) settling: Clock,
}

impl Stages {
    fn times(&self, workers: Spent) -> StageTimes {
        let held_back = self.held_back.spent();
        StageTimes {
            reading: self.reading.spent().saturating_sub(held_back),
            input: self.read.input.spent(),
            unpacked: self.read.unpacked.spent(),
            unpacking: self.read.unpacking.spent(),
            held_back,
            starved: workers.starved,
            limited: workers.limited,
            sending: self.sending.spent(),
            settling: self.settling.spent(),
            processor: processor_time(),
        }
    }
}

/// The processor time of this program, all threads together.
fn processor_time() -> std::time::Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    std::time::Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0))
}

impl<T> Run<T> {
    /// How the run stands, without its server.
    pub(super) fn sample(&self) -> Sample {
        let gauges = Gauges {
            in_flight: self.stages.sending.running(),
            queued: self.queued(),
            queue_room: crate::limits::QUEUE_BATCHES,
            workers: self.pacing.workers(),
            reading: self.stages.reading.running(),
            settling: self.settling.waiting(),
            cores: thread::available_parallelism().map_or(1, usize::from),
        };
        Sample { gauges, stages: self.stages.times(self.pacing.spent()), server: None }
    }
}
