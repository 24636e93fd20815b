//! How the run and its server stand, as they tell about once a second.

use std::time::Duration;

use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Metric, Registry, Unit};

use crate::report::metrics::told::{ToldCounter, ToldGauge};
use crate::report::metrics::{Labels, float, ratio};
use crate::sample::{Gauges, Sample, ServerSample, StageTimes};

/// What samples tell.
pub(super) struct Sampled {
    run: RunGauges,
    stages: Stages,
    server: Server,
}

impl Sampled {
    pub(super) fn register(registry: &mut Registry) -> Self {
        Self {
            run: RunGauges::register(registry),
            stages: Stages::register(registry),
            server: Server::register(registry.sub_registry_with_prefix("server")),
        }
    }

    /// Takes a sample into account.
    pub(super) fn take(&self, sample: &Sample) {
        self.run.take(&sample.gauges);
        self.stages.take(&sample.stages);
        if let Some(server) = &sample.server {
            self.server.take(server);
        }
    }

    /// Notes how many batches may be in flight.
    pub(super) fn set_workers(&self, workers: usize) {
        set(&self.run.workers, workers);
    }
}

/// What there is of the run at the moment.
struct RunGauges {
    in_flight: Gauge,
    queued: Gauge,
    queue_room: Gauge,
    workers: Gauge,
    reading: Gauge,
    settling: Gauge,
    cores: Gauge,
}

impl RunGauges {
    fn register(registry: &mut Registry) -> Self {
        let mut gauge = |name, help| registered::<Gauge>(registry, name, help, None);
        Self {
            in_flight: gauge("batches_in_flight", "Batches that were sent and are not answered"),
            queued: gauge("queue_batches", "Batches that wait for a worker"),
            queue_room: gauge("queue_room_batches", "Batches for which the queue has room"),
            workers: gauge("workers", "Batches that may be in flight at the moment"),
            reading: gauge("collections_reading", "Collections that are being read"),
            settling: gauge(
                "batches_settling",
                "Batches that are acknowledged and not yet known to be durable",
            ),
            cores: gauge("processor_cores", "Processor cores that restorm may use"),
        }
    }

    fn take(&self, gauges: &Gauges) {
        let Gauges { in_flight, queued, queue_room, workers, reading, settling, cores } = *gauges;
        set(&self.in_flight, in_flight);
        set(&self.queued, queued);
        set(&self.queue_room, queue_room);
        set(&self.workers, workers);
        set(&self.reading, reading);
        set(&self.settling, settling);
        set(&self.cores, cores);
    }
}

/// What the stages have spent.
struct Stages {
    reading: ToldCounter,
    unpacking: ToldCounter,
    sending: ToldCounter,
    input: ToldCounter,
    unpacked: ToldCounter,
    held_back: ToldCounter,
    starved: ToldCounter,
    limited: ToldCounter,
    settling: ToldCounter,
    processor: ToldCounter,
}

impl Stages {
    fn register(registry: &mut Registry) -> Self {
        let (busy, waiting): (Family<Labels<1>, ToldCounter>, Family<_, ToldCounter>) =
            Default::default();
        let help = "Time in which a stage had work, summed over its threads or tasks: reading, \
                    unpacking (beside a reader) or sending (until the answer)";
        registry.register_with_unit("stage_busy", help, Unit::Seconds, busy.clone());
        let help = "Time in which a stage waited, summed over its threads or tasks: input (bytes \
                    of files and pipes), unpacked (bytes from unpacking), held_back (room in the \
                    queue), starved (a batch), limited (the rate limit) or settling (durability)";
        registry.register_with_unit("stage_waiting", help, Unit::Seconds, waiting.clone());
        let stage = |family: &Family<Labels<1>, ToldCounter>, stage: &str| {
            family.get_or_create_owned(&[("stage", stage.to_owned())])
        };
        Self {
            reading: stage(&busy, "reading"),
            unpacking: stage(&busy, "unpacking"),
            sending: stage(&busy, "sending"),
            input: stage(&waiting, "input"),
            unpacked: stage(&waiting, "unpacked"),
            held_back: stage(&waiting, "held_back"),
            starved: stage(&waiting, "starved"),
            limited: stage(&waiting, "limited"),
            settling: stage(&waiting, "settling"),
            processor: registered(
                registry,
                "cpu",
                "Processor time of restorm",
                Some(Unit::Seconds),
            ),
        }
    }

    fn take(&self, stages: &StageTimes) {
        let StageTimes {
            reading,
            input,
            unpacked,
            unpacking,
            held_back,
            starved,
            limited,
            sending,
            settling,
            processor,
        } = *stages;
        self.reading.set_time(reading);
        self.input.set_time(input);
        self.unpacked.set_time(unpacked);
        self.unpacking.set_time(unpacking);
        self.held_back.set_time(held_back);
        self.starved.set_time(starved);
        self.limited.set_time(limited);
        self.sending.set_time(sending);
        self.settling.set_time(settling);
        self.processor.set_time(processor);
    }
}

/// What the server tells of itself; what it does not tell is not shown.
struct Server {
    processor: ToldCounter,
    write_time: ToldCounter,
    writes: ToldCounter,
    journal_sync_time: ToldCounter,
    journal_syncs: ToldCounter,
    cache_bytes_max: ToldGauge,
    cache_bytes: ToldGauge,
    cache_dirty_bytes: ToldGauge,
    cache_dirty: ToldGauge,
    application_evictions: ToldCounter,
    write_tickets_taken: ToldGauge,
    write_tickets: ToldGauge,
    queued_writers: ToldGauge,
    flow_controlled: ToldGauge,
    flow_control_time: ToldCounter,
    majority_lag: ToldGauge,
}

impl Server {
    fn register(registry: &mut Registry) -> Self {
        let (seconds, bytes) = (|| Some(Unit::Seconds), || Some(Unit::Bytes));
        let mut counter = |name, help, unit| registered::<ToldCounter>(registry, name, help, unit);
        let (processor, write_time, writes, journal_sync_time, journal_syncs) = (
            counter("cpu", "Processor time of the server's process", seconds()),
            counter("write", "Time that write commands took on the server", seconds()),
            counter("writes", "Write commands of all clients", None),
            counter("journal_sync", "Time that bringing the journal to the disk took", seconds()),
            counter("journal_syncs", "How often the journal was brought to the disk", None),
        );
        let application_evictions = counter(
            "application_evictions",
            "Pages that threads with other work had to evict from the cache",
            None,
        );
        let flow_control_time =
            counter("flow_control", "Time that writes waited for flow control", seconds());
        let mut gauge = |name, help, unit| registered::<ToldGauge>(registry, name, help, unit);
        Self {
            processor,
            write_time,
            writes,
            journal_sync_time,
            journal_syncs,
            application_evictions,
            flow_control_time,
            cache_bytes_max: gauge("cache_limit", "Bytes that the cache may hold", bytes()),
            cache_bytes: gauge("cache", "Bytes in the storage engine's cache", bytes()),
            cache_dirty_bytes: gauge(
                "cache_dirty",
                "Bytes in the cache that are not written to the disk yet",
                bytes(),
            ),
            cache_dirty: gauge(
                "cache_dirty",
                "Share of the cache that is not written to the disk yet",
                Some(Unit::Other("ratio".to_owned())),
            ),
            write_tickets_taken: gauge("write_tickets_taken", "Write tickets in use", None),
            write_tickets: gauge("write_tickets", "Write tickets that there are", None),
            queued_writers: gauge(
                "queued_writers",
                "Writes that wait for a lock or a ticket",
                None,
            ),
            flow_controlled: gauge(
                "flow_controlled",
                "Whether flow control holds writes back because secondaries lag (0 or 1)",
                None,
            ),
            majority_lag: gauge(
                "majority_lag",
                "How far the majority is behind the primary",
                seconds(),
            ),
        }
    }

    fn take(&self, server: &ServerSample) {
        let times: [(&ToldCounter, Option<Duration>); 4] = [
            (&self.processor, server.processor),
            (&self.write_time, server.write_time),
            (&self.journal_sync_time, server.journal_sync_time),
            (&self.flow_control_time, server.flow_control_time),
        ];
        for (counter, told) in times {
            if let Some(time) = told {
                counter.set_time(time);
            }
        }
        for (counter, told) in [
            (&self.writes, server.writes),
            (&self.journal_syncs, server.journal_syncs),
            (&self.application_evictions, server.application_evictions),
        ] {
            if let Some(count) = told {
                counter.set(float(count));
            }
        }
        let tickets = server.write_tickets;
        for (gauge, told) in [
            (&self.cache_bytes_max, server.cache_bytes_max),
            (&self.cache_bytes, server.cache_bytes),
            (&self.cache_dirty_bytes, server.cache_dirty_bytes),
            (&self.write_tickets_taken, tickets.map(|tickets| tickets.taken)),
            (&self.write_tickets, tickets.map(|tickets| tickets.total)),
            (&self.queued_writers, server.queued_writers),
            (&self.flow_controlled, server.flow_controlled.map(u64::from)),
        ] {
            if let Some(value) = told {
                gauge.set(float(value));
            }
        }
        if let (Some(dirty), Some(most)) = (server.cache_dirty_bytes, server.cache_bytes_max) {
            self.cache_dirty.set(ratio(dirty, most));
        }
        if let Some(lag) = server.majority_lag {
            self.majority_lag.set(lag.as_secs_f64());
        }
    }
}

/// A metric that is registered.
fn registered<M: Metric + Clone + Default>(
    registry: &mut Registry,
    name: &str,
    help: &str,
    unit: Option<Unit>,
) -> M {
    let metric = M::default();
    match unit {
        Some(unit) => registry.register_with_unit(name, help, unit, metric.clone()),
        None => registry.register(name, help, metric.clone()),
    }
    metric
}

fn set(gauge: &Gauge, value: usize) {
    gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
}
