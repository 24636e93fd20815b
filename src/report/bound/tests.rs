//! Tests of the verdicts.

use super::*;
use crate::sample::{Gauges, ServerSample, StageTimes, Tickets};

fn seconds(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

/// A sample of a machine with two cores after so many seconds.
fn sample(stages: StageTimes, server: Option<ServerSample>) -> Sample {
    let gauges = Gauges { cores: 2, workers: 4, ..Gauges::default() };
    Sample { gauges, stages, server: server.map(Box::new) }
}

/// The verdict over five seconds of four workers that spent their time like this.
fn verdict(stages: StageTimes, latency: f64, server: Option<ServerSample>) -> Option<BoundBy> {
    let mut bounds = Bounds::default();
    bounds.begin_phase(Duration::ZERO, Phase::Data);
    bounds.sampled(
        Duration::ZERO,
        &sample(StageTimes::default(), server.as_ref().map(|_| ServerSample::default().started())),
    );
    for _ in 0..100 {
        bounds.answered(seconds(latency));
    }
    let server = server.map(|server| ServerSample { at: seconds(5.0), ..server });
    bounds.sampled(seconds(5.0), &sample(stages, server));
    bounds.verdict()
}

impl ServerSample {
    /// A server that counts from zero.
    fn started(self) -> Self {
        Self {
            processor: Some(Duration::ZERO),
            write_time: Some(Duration::ZERO),
            writes: Some(0),
            journal_sync_time: Some(Duration::ZERO),
            journal_syncs: Some(0),
            application_evictions: Some(0),
            ..self
        }
    }
}

/// A server that took so long for each of 100 writes and used this much processor time.
fn server(each: f64, processor: f64) -> ServerSample {
    ServerSample {
        write_time: Some(seconds(each * 100.0)),
        writes: Some(100),
        processor: Some(seconds(processor)),
        cache_bytes_max: Some(1000),
        cache_dirty_bytes: Some(50),
        ..ServerSample::default().started()
    }
}

fn waiting() -> StageTimes {
    StageTimes {
        sending: seconds(18.0),
        starved: seconds(2.0),
        processor: seconds(1.0),
        ..StageTimes::default()
    }
}

fn starving() -> StageTimes {
    StageTimes {
        sending: seconds(2.0),
        starved: seconds(18.0),
        reading: seconds(5.0),
        processor: seconds(4.0),
        ..StageTimes::default()
    }
}

#[test]
fn a_server_that_works_is_the_limit() {
    let found = verdict(waiting(), 0.18, Some(server(0.17, 9.0))).expect("a verdict");
    assert_eq!(found.by, Bound::Server);
    let expected = [
        "workers waited for its answers 90 % of the time",
        "an answer took 180 ms, 170 ms of it on the server",
        "it used 1.8 cores",
        "5 % of the cache dirty",
    ];
    assert_eq!(found.evidence, expected);
    assert_eq!(
        found.stretches,
        [Stretch { from_seconds: 0.0, to_seconds: 5.0, by: Bound::Server }]
    );
}

#[test]
fn what_is_out_of_the_ordinary_is_told_and_changes_the_advice() {
    let pressed = ServerSample {
        cache_dirty_bytes: Some(220),
        application_evictions: Some(31),
        write_tickets: Some(Tickets { taken: 128, total: 128 }),
        queued_writers: Some(4),
        ..server(0.17, 3.0)
    };
    let found = verdict(waiting(), 0.18, Some(pressed.clone())).expect("a verdict");
    let text = found.evidence.join(", ");
    for part in ["22 % of the cache", "31 pages", "128 of 128 write tickets", "4 writes queued"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(found.advice.contains("larger cache"), "{}", found.advice);
    let lagging =
        ServerSample { flow_controlled: Some(true), majority_lag: Some(seconds(12.0)), ..pressed };
    let found = verdict(waiting(), 0.18, Some(lagging)).expect("a verdict");
    assert!(found.evidence.join(", ").contains("the majority is 12 s behind"));
    assert!(found.advice.contains("secondaries"), "{}", found.advice);
}

#[test]
fn a_server_that_answers_at_once_leaves_the_network() {
    let found = verdict(waiting(), 0.18, Some(server(0.004, 0.5))).expect("a verdict");
    assert_eq!(found.by, Bound::Network);
    assert!(found.evidence[1].ends_with("4 ms of it on the server"), "{:?}", found.evidence);
}

#[test]
fn a_server_that_mostly_writes_its_journal_waits_for_it() {
    let journal = ServerSample {
        journal_sync_time: Some(seconds(4.0)),
        journal_syncs: Some(40),
        ..server(0.17, 0.5)
    };
    let found = verdict(waiting(), 0.18, Some(journal.clone())).expect("a verdict");
    assert_eq!(found.by, Bound::Journal);
    assert!(
        found.evidence[1].contains("80 % of the time, 100 ms each time"),
        "{:?}",
        found.evidence
    );
    let busy = ServerSample { processor: Some(seconds(8.0)), ..journal };
    assert_eq!(verdict(waiting(), 0.18, Some(busy)).expect("a verdict").by, Bound::Server);
    let settling =
        StageTimes { settling: seconds(15.0), sending: seconds(5.0), ..StageTimes::default() };
    assert_eq!(verdict(settling, 0.05, None).expect("a verdict").by, Bound::Journal);
}

#[test]
fn collections_whose_creation_waits_for_the_journal_wait_for_it_too() {
    let creating = StageTimes { reading: seconds(0.2), ..starving() };
    let journal = ServerSample {
        journal_sync_time: Some(seconds(4.0)),
        journal_syncs: Some(40),
        ..server(0.01, 0.5)
    };
    let found = verdict(creating, 0.02, Some(journal)).expect("a verdict");
    assert_eq!(found.by, Bound::Journal);
    assert_eq!(found.evidence[0], "readers waited for collections to be created");
    assert!(found.evidence[1].contains("80 % of the time"), "{:?}", found.evidence);
}

#[test]
fn a_silent_server_is_blamed_with_a_word_of_caution() {
    let found = verdict(waiting(), 0.18, None).expect("a verdict");
    assert_eq!(found.by, Bound::Server);
    assert!(found.evidence[1].contains("clusterMonitor"), "{:?}", found.evidence);
}

#[test]
fn what_starving_workers_wait_for_is_told_by_the_readers() {
    let by = |stages| verdict(stages, 0.02, Some(server(0.01, 1.0))).expect("a verdict").by;
    let input = StageTimes { input: seconds(4.0), ..starving() };
    assert_eq!(by(input), Bound::Reading);
    let unpacked = StageTimes { unpacked: seconds(4.5), ..starving() };
    assert_eq!(by(unpacked), Bound::Inflating);
    let aside = StageTimes {
        unpacked: seconds(4.5),
        unpacking: seconds(5.0),
        input: seconds(0.3),
        ..starving()
    };
    assert_eq!(by(aside), Bound::Inflating);
    let slow_pipe = StageTimes {
        unpacked: seconds(4.5),
        unpacking: seconds(5.0),
        input: seconds(4.8),
        ..starving()
    };
    assert_eq!(by(slow_pipe), Bound::Reading);
    assert_eq!(by(StageTimes { input: seconds(0.5), ..starving() }), Bound::ClientCpu);
    assert_eq!(by(StageTimes { reading: seconds(0.2), ..starving() }), Bound::Server);
}

#[test]
fn a_program_that_uses_all_cores_is_the_limit() {
    let busy = StageTimes { processor: seconds(9.5), ..waiting() };
    let found = verdict(busy, 0.18, Some(server(0.01, 0.1))).expect("a verdict");
    assert_eq!(found.by, Bound::ClientCpu);
    assert_eq!(found.evidence, ["restorm itself used 95 % of 2 cores"]);
}

#[test]
fn a_limit_on_the_rate_is_named() {
    let limited =
        StageTimes { limited: seconds(15.0), sending: seconds(5.0), ..StageTimes::default() };
    assert_eq!(verdict(limited, 0.02, None).expect("a verdict").by, Bound::RateLimit);
}

#[test]
fn the_longest_stretch_decides_and_all_are_told() {
    let mut bounds = Bounds::default();
    bounds.begin_phase(Duration::ZERO, Phase::Data);
    bounds.sampled(seconds(4.0), &sample(waiting(), None));
    bounds.begin_phase(seconds(4.0), Phase::Indexes);
    bounds.begin_phase(seconds(30.0), Phase::TimeToLive);
    bounds.begin_phase(seconds(31.0), Phase::Views);
    bounds.begin_phase(seconds(60.0), Phase::Ended);
    assert_eq!(bounds.now().map(|(by, _)| by), Some(Bound::Indexes));
    let found = bounds.verdict().expect("a verdict");
    assert_eq!(found.by, Bound::Indexes);
    let stretches: Vec<_> = found.stretches.iter().map(|one| (one.by, one.to_seconds)).collect();
    assert_eq!(stretches, [(Bound::Server, 4.0), (Bound::Indexes, 31.0)]);
}

#[test]
fn nothing_is_said_of_a_run_that_did_nothing() {
    let mut bounds = Bounds::default();
    bounds.begin_phase(Duration::ZERO, Phase::Data);
    bounds.begin_phase(seconds(0.1), Phase::Ended);
    assert_eq!(bounds.verdict(), None);
}

#[test]
fn a_server_that_was_started_again_counts_from_zero() {
    let mut window = Window::default();
    let before = server(0.1, 9.0);
    let after = ServerSample { at: seconds(3.0), writes: Some(1), ..server(0.0, 0.5) };
    window.add_server(&before, &after);
    assert_eq!((window.server.writes, window.server.processor), (0, Some(Duration::ZERO)));
}
