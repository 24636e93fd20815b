//! Tests of the report and of the exit status that follows from it.

use super::*;
use crate::report::event::{Event, Phase};

fn users(events: &mut Vec<Event>, failure: Option<&str>) {
    events.push(Event::UsersPlanned { users: vec!["shop.ann".into()], roles: vec![] });
    events.push(Event::UsersEnded { failure: failure.map(str::to_owned) });
}

type Change = fn(&mut Vec<Event>, &mut Context);

fn status(change: Change) -> ExitStatus {
    let mut events = samples::clean_events();
    let mut context = samples::context();
    change(&mut events, &mut context);
    let mut tally = Tally::default();
    for event in events {
        tally.apply(Duration::from_secs(1), &event);
    }
    Report::new(&tally, context).exit_status
}

/// What is changed of a clean run, and the status that this must lead to.
const STATUSES: [(&str, Change, ExitStatus); 15] = [
    ("a clean run", |_, _| {}, ExitStatus::Restored),
    ("a document is refused", |events, _| add(events, [0, 0, 1]), ExitStatus::Failures),
    ("an index fails", |events, _| events.push(samples::index_failed(0)), ExitStatus::Failures),
    ("a document is there already", |events, _| add(events, [0, 1, 0]), ExitStatus::Restored),
    ("a collection fails", |events, _| events.push(samples::failed(1)), ExitStatus::Stopped),
    (
        "a collection is left",
        |events, _| {
            events.retain(|event| !matches!(event, Event::CollectionEnded { collection: 1 }));
        },
        ExitStatus::Stopped,
    ),
    (
        "a document is left",
        |events, _| {
            add(events, [0, 0, 0]);
            events.push(Event::Unsent { collection: 0, documents: 1 });
        },
        ExitStatus::Stopped,
    ),
    ("users fail", |events, _| users(events, Some("not authorized")), ExitStatus::Stopped),
    ("users are restored", |events, _| users(events, None), ExitStatus::Restored),
    (
        "an oplog is left",
        |events, _| events.push(Event::OplogPlanned { path: "oplog.bson".into() }),
        ExitStatus::Stopped,
    ),
    (
        "a file is unreadable",
        |_, context| context.skipped.push(samples::skipped(true)),
        ExitStatus::Stopped,
    ),
    (
        "a file is stray",
        |_, context| context.skipped.push(samples::skipped(false)),
        ExitStatus::Restored,
    ),
    (
        "an error stops it",
        |_, context| context.outcome = Outcome::Stopped { error: "no server".into() },
        ExitStatus::Stopped,
    ),
    (
        "an interrupt counts more than a failure",
        |events, context| {
            events.push(samples::index_failed(0));
            context.outcome = Outcome::Interrupted;
        },
        ExitStatus::Interrupted,
    ),
    (
        "a lost document counts more than an interrupt",
        |events, context| {
            add(events, [0, 0, 0]);
            context.outcome = Outcome::Interrupted;
        },
        ExitStatus::Stopped,
    ),
];

/// A document is read, and becomes what the counts say.
fn add(events: &mut Vec<Event>, counts: [u64; 3]) {
    events.push(Event::Read { collection: 0, documents: 1, bytes: 9 });
    events.push(samples::written(0, counts, 9, 9));
}

#[test]
fn the_status_follows_from_what_happened() {
    for (name, change, expected) in STATUSES {
        assert_eq!(status(change), expected, "{name}");
    }
}

#[test]
fn an_empty_run_is_a_clean_one() {
    let mut tally = Tally::default();
    tally.apply(Duration::ZERO, &Event::Planned { collections: Vec::new() });
    tally.apply(Duration::ZERO, &Event::PhaseBegan(Phase::Ended));
    let report = Report::new(&tally, samples::context());
    assert_eq!(report.exit_status, ExitStatus::Restored);
    assert!((report.totals.fraction_done - 1.0).abs() < f64::EPSILON);
}

#[test]
fn codes_are_summed_over_collections_with_a_few_samples() {
    let report = samples::with_failures();
    let failures = report.failures();
    assert_eq!(failures.keys().copied().collect::<Vec<_>>(), [121, 11000]);
    assert_eq!(failures[&11000].count, 7);
    assert_eq!(failures[&11000].samples.len(), FAILURE_SAMPLES);
    let namespaces: Vec<_> =
        failures[&11000].samples.iter().map(|(namespace, _)| namespace.collection()).collect();
    assert_eq!(namespaces, ["orders", "orders", "orders", "orders", "items"]);
}

#[test]
fn lost_stretches_are_summed_and_make_a_run_incomplete() {
    let report = samples::with_damage();
    let salvage = report.salvage.as_ref().expect("it was asked for");
    assert_eq!((salvage.stretches, salvage.bytes, salvage.elsewhere.count), (3, 110, 1));
    assert_eq!(salvage.folder.as_deref(), Some("dump.salvage"));
    assert_eq!(report.exit_status, ExitStatus::Stopped);
    assert!(report.is_salvaged() && report.is_balanced);
    let mut clean = samples::clean();
    assert!(!clean.is_salvaged());
    clean.salvaged(&Tally::default(), Some("dump.salvage".into()));
    assert!(clean.is_salvaged());
    assert_eq!(clean.salvage.expect("it was asked for").folder, None);
}

#[test]
fn a_collection_that_is_lost_in_part_counts_as_done_in_the_end() {
    let mut tally = Tally::default();
    for event in [
        Event::Planned { collections: vec![samples::planned("orders", 1000, 0).into()] },
        Event::ReadBegan { collection: 0 },
        samples::failed(0),
        Event::DataEnded { collection: 0 },
    ] {
        tally.apply(Duration::from_secs(1), &event);
    }
    assert!(matches!(tally.collections()[0].state, State::Failed(_)));
    assert_eq!(tally.collections()[0].origin_bytes_done(), 1000);
}
