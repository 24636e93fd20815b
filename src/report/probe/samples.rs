//! Reports of probes for tests.

use super::{
    Fit, IdsKind, Knee, Operations, PaceKind, ProbeError, ProbeLoad, ProbeOutcome, ProbeReport,
    ProbeStep, SCHEMA,
};
use crate::exit::ExitStatus;
use crate::report::latency::Quantiles;
use crate::report::value::{OptionValue, TargetFacts};

fn quantiles(count: u64, factor: f64) -> Quantiles {
    Quantiles {
        count,
        mean_seconds: 0.0012 * factor,
        p50_seconds: 0.001 * factor,
        p90_seconds: 0.002 * factor,
        p95_seconds: 0.003 * factor,
        p99_seconds: 0.008 * factor,
        p999_seconds: 0.02 * factor,
        max_seconds: 0.05 * factor,
    }
}

fn step(connections: u32, asked: f64, achieved: f64) -> ProbeStep {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "samples")]
    let reads = (achieved * 10.0) as u64;
    ProbeStep {
        connections,
        connected: connections,
        server_connections: Some(u64::from(connections) + 4),
        setup_seconds: 0.3,
        held_seconds: 10.0,
        asked_per_second: Some(asked),
        achieved_per_second: achieved,
        asked: reads,
        done: Operations { reads, inserts: 0, updates: 0 },
        answered_after_end: 0,
        failed: 0,
        unanswered: 0,
        unsent: 0,
        asked_again: 0,
        misses: 0,
        lost_connections: 0,
        reopened_connections: 0,
        errors: Vec::new(),
        latency: quantiles(reads, 2.0),
        service: quantiles(reads, 1.0),
    }
}

/// A paced ramp whose last step falls behind and loses connections.
pub(crate) fn paced() -> ProbeReport {
    let mut last = step(4000, 40_000.0, 24_500.0);
    last.unsent = 155_000;
    (last.failed, last.unanswered, last.asked_again) = (1, 4, 2);
    last.asked += 155_005;
    last.misses = 2;
    (last.lost_connections, last.reopened_connections) = (3, 2);
    last.errors = vec![ProbeError {
        kind: "connection lost".to_owned(),
        count: 3,
        sample: "the connection broke: connection reset by peer <b>".to_owned(),
    }];
    ProbeReport {
        schema: SCHEMA,
        tool_version: "0.1.0".to_owned(),
        target: TargetFacts {
            description: "db1:27017".to_owned(),
            server_version: Some("8.0.4".to_owned()),
        },
        namespace: "seed.points".to_owned(),
        options: vec![OptionValue { name: "ramp".to_owned(), value: "1000..4000".to_owned() }],
        load: ProbeLoad {
            pace: PaceKind::Paced,
            rate_per_connection: Some(10.0),
            jitter: Some(0.2),
            read_share: 1.0,
            insert_share: 0.0,
            update_share: 0.0,
            ids: IdsKind::Range,
            ids_known: 100_000,
        },
        outcome: ProbeOutcome::Finished,
        exit_status: ExitStatus::Failures,
        seconds: 33.1,
        steps: vec![step(1000, 10_000.0, 9990.0), step(2000, 20_000.0, 19_950.0), last],
        knee: Some(Knee {
            connections: 2000,
            achieved_per_second: 19_950.0,
            fell_behind_at: Some(4000),
        }),
        fit: Some(Fit::LineAndCeiling {
            per_connection: 9.98,
            ceiling: Some(24_500.0),
            r_squared: 0.999,
        }),
        notes: vec!["the server takes 12 more connections".to_owned()],
    }
}

/// Connections that asked as fast as they could, and somebody who did not wait for the end.
pub(crate) fn flat_out() -> ProbeReport {
    let mut report = paced();
    report.load.pace = PaceKind::FlatOut;
    (report.load.rate_per_connection, report.load.jitter) = (None, None);
    report.load.ids = IdsKind::Sample;
    (report.outcome, report.exit_status) = (ProbeOutcome::Interrupted, ExitStatus::Interrupted);
    for step in &mut report.steps {
        step.asked -= step.unsent;
        (step.asked_per_second, step.unsent) = (None, 0);
    }
    report.fit = Some(Fit::UniversalScalability {
        lambda: 12.0,
        sigma: 0.0002,
        kappa: 1e-8,
        peak_connections: Some(9998.0),
        r_squared: 0.97,
    });
    report.knee =
        Some(Knee { connections: 2000, achieved_per_second: 19_950.0, fell_behind_at: None });
    report
}
