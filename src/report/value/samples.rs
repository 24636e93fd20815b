//! Reports of made-up runs, for the tests of everything that shows one.

use std::sync::Arc;
use std::time::Duration;

use super::{Context, DumpFacts, OptionValue, Outcome, Report, Skipped, TargetFacts};
use crate::changes::Changes;
use crate::namespace::Namespace;
use crate::report::event::{Event, OplogTime, Phase, PlannedCollection, Rejection, Standing};
use crate::report::lost::LostStretch;
use crate::report::tally::Tally;

pub(crate) fn planned(collection: &str, origin_bytes: u64, indexes: usize) -> PlannedCollection {
    PlannedCollection {
        namespace: Namespace::new("shop", collection),
        kind: "collection",
        standing: Standing::Absent,
        metadata: "".into(),
        origin: format!("dump/shop/{collection}.bson").into(),
        origin_bytes,
        compressed: false,
        indexes,
    }
}

fn view(collection: &str) -> PlannedCollection {
    PlannedCollection { kind: "view", ..planned(collection, 0, 0) }
}

pub(crate) fn written(
    collection: usize,
    [inserted, already_there, rejected]: [u64; 3],
    bytes: u64,
    origin_bytes: u64,
) -> Event {
    let latency = Duration::from_millis(20);
    Event::Written {
        collection,
        inserted,
        changes: Changes::default(),
        already_there,
        rejected,
        conflicts: 0,
        bytes,
        origin_bytes,
        latency,
    }
}

pub(crate) fn failed(collection: usize) -> Event {
    let error =
        "shop.items: the file ends inside a document, in dump/shop/items.bson, at byte 1024";
    Event::CollectionFailed { collection, error: error.into() }
}

pub(crate) fn index_failed(collection: usize) -> Event {
    let reason = "two documents have the same key (server code 11000)";
    Event::IndexFailed { collection, index: "number_1".into(), reason: reason.into() }
}

pub(crate) fn skipped(is_problem: bool) -> Skipped {
    let (what, reason) = if is_problem {
        ("dump/shop/secret.bson", "permission denied")
    } else {
        ("dump/README", "not a file of a dump")
    };
    Skipped { what: what.into(), reason: reason.into(), is_problem }
}

pub(crate) fn context() -> Context {
    Context {
        tool_version: "0.1.0".into(),
        target: TargetFacts {
            description: "mongodb://127.0.0.1:27017".into(),
            server_version: Some("8.0.4".into()),
        },
        dump: DumpFacts {
            path: "dump".into(),
            server_version: Some("7.0.2".into()),
            tool_version: None,
            is_made: false,
        },
        skipped: Vec::new(),
        outcome: Outcome::Finished,
        options: vec![OptionValue { name: "drop".into(), value: "true".into() }],
    }
}

/// A run of two collections in which nothing goes wrong, without its times.
pub(crate) fn clean_events() -> Vec<Event> {
    let mut events = vec![
        Event::Planned {
            collections: vec![planned("orders", 900, 1).into(), planned("items", 100, 0).into()],
        },
        Event::PhaseBegan(Phase::Data),
    ];
    for (collection, bytes) in [(0, 900), (1, 100)] {
        events.extend([
            Event::Prepared { collection },
            Event::ReadBegan { collection },
            Event::Read { collection, documents: 10, bytes },
            written(collection, [10, 0, 0], bytes, bytes),
            Event::DataEnded { collection },
            Event::CollectionEnded { collection },
        ]);
    }
    events.push(Event::PhaseBegan(Phase::Ended));
    events
}

fn report(events: &[(u64, Event)], context: Context) -> Report {
    let mut tally = Tally::default();
    for (millis, event) in events {
        tally.apply(Duration::from_millis(*millis), event);
    }
    Report::new(&tally, context)
}

fn load(
    events: &mut Vec<(u64, Event)>,
    collection: usize,
    from: u64,
    seconds: u64,
    sizes: [u64; 2],
) {
    let [documents, bytes] = sizes.map(|size| size / seconds);
    events.push((from, Event::Prepared { collection }));
    events.push((from, Event::ReadBegan { collection }));
    for second in 0..seconds {
        let at = from + second * 1000;
        events.push((at + 100, Event::Read { collection, documents, bytes }));
        events.push((at + 600, written(collection, [documents, 0, 0], bytes, bytes)));
    }
}

fn end(events: &mut Vec<(u64, Event)>, at: u64, collection: usize, indexes: &[&str]) {
    events.push((at, Event::DataEnded { collection }));
    for index in indexes {
        let index = (*index).to_owned();
        events.push((at, Event::IndexBegan { collection, index: index.clone() }));
        let took = Duration::from_secs(7);
        events.push((at + 7000, Event::IndexBuilt { collection, index, took }));
    }
    let last = at + 7000 * u64::from(!indexes.is_empty());
    events.push((last, Event::CollectionEnded { collection }));
}

fn begin(collections: Vec<PlannedCollection>) -> Vec<(u64, Event)> {
    let collections = collections.into_iter().map(Arc::new).collect();
    vec![(0, Event::Planned { collections }), (200, Event::PhaseBegan(Phase::Data))]
}

/// Two collections and a view, restored without a failure.
pub(crate) fn clean() -> Report {
    let mut events = begin(vec![
        planned("orders", 1_100_000_000, 2),
        planned("items", 130_000_000, 0),
        view("recent"),
    ]);
    load(&mut events, 0, 200, 40, [1_000_000, 1_100_000_000]);
    load(&mut events, 1, 200, 10, [234_560, 130_000_000]);
    events.sort_by_key(|(at, _)| *at);
    end(&mut events, 10_200, 1, &[]);
    end(&mut events, 40_200, 0, &["a_1_b_-1", "c_1"]);
    for (at, workers, reason) in [
        (200, 2, "the beginning"),
        (300, 4, "to see whether more are faster"),
        (400, 8, "4 brought 60 % more than 2"),
        (600, 4, "8 brought 1 % more than 4"),
    ] {
        events.push((at, Event::WorkersChanged { workers, reason: reason.into() }));
    }
    events.push((40_200, Event::PhaseBegan(Phase::Indexes)));
    events.push((47_200, Event::PhaseBegan(Phase::Views)));
    events.push((47_300, Event::CollectionEnded { collection: 2 }));
    events.push((47_300, Event::PhaseBegan(Phase::Ended)));
    report(&events, Context { skipped: vec![skipped(false)], ..context() })
}

fn rejection(code: i32, id: u64, message: &str) -> Rejection {
    let id = format!("{{\"$numberLong\":\"{id}\"}}");
    Rejection { code, message: message.into(), id, is_conflict: false }
}

/// Two collections of which the server refused eight documents and an index.
pub(crate) fn with_failures() -> Report {
    let mut events = begin(vec![planned("orders", 900_000, 2), planned("items", 100_000, 0)]);
    let duplicate = "E11000 duplicate key error";
    for (collection, documents, refused) in [(0, 9000, 4), (1, 1000, 3)] {
        let bytes = documents * 100;
        let mut rejections: Vec<_> =
            (0..refused).map(|id| rejection(11000, id, duplicate)).collect();
        if collection == 1 {
            rejections.push(rejection(121, 77, "Document failed\nvalidation"));
        }
        let rejected = rejections.len() as u64;
        events.extend([
            (300, Event::ReadBegan { collection }),
            (400, Event::Read { collection, documents, bytes }),
            (2000, Event::Rejected { collection, rejections }),
            (2000, written(collection, [documents - rejected - 1, 1, rejected], bytes, bytes)),
            (2200, Event::DataEnded { collection }),
        ]);
    }
    let retried = Duration::from_millis(100);
    events.extend([
        (1000, Event::Retried { collection: Some(0), reason: "network".into(), delay: retried }),
        (2200, Event::IndexBegan { collection: 0, index: "number_1".into() }),
        (2300, index_failed(0)),
        (2300, Event::IndexBegan { collection: 0, index: "when_1".into() }),
        (
            2500,
            Event::IndexBuilt {
                collection: 0,
                index: "when_1".into(),
                took: Duration::from_millis(200),
            },
        ),
        (2500, Event::CollectionEnded { collection: 0 }),
        (2500, Event::CollectionEnded { collection: 1 }),
        (
            2500,
            Event::Note {
                collection: Some(0),
                text: "the index when_1 had the unknown option safe, which was left out".into(),
            },
        ),
        (2500, Event::Note { collection: None, text: "the target is a standalone server".into() }),
        (2500, Event::PhaseBegan(Phase::Ended)),
    ]);
    report(&events, context())
}

/// A collection of which two stretches are lost, and an archive with damage outside its blocks.
pub(crate) fn with_damage() -> Report {
    let stretch = |from, to, bytes| LostStretch {
        file: "dump/shop/orders.bson".into(),
        from,
        to,
        bytes,
        reason: "a document claims -40 bytes, fewer than the 5 of an empty one".into(),
    };
    let mut events = begin(vec![planned("orders", 1000, 0)]);
    let lost = |collection, stretch| (400, Event::Lost { collection, stretch });
    events.extend([
        (300, Event::ReadBegan { collection: 0 }),
        (400, Event::Read { collection: 0, documents: 10, bytes: 900 }),
        lost(Some(0), stretch(100, Some(184), 84)),
        lost(Some(0), stretch(900, None, 10)),
        lost(None, stretch(1200, Some(1216), 16)),
        (500, Event::CollectionFailed { collection: 0, error: "2 stretches are lost".into() }),
        (600, written(0, [10, 0, 0], 900, 900)),
        (600, Event::DataEnded { collection: 0 }),
        (700, Event::CollectionEnded { collection: 0 }),
        (700, Event::PhaseBegan(Phase::Ended)),
    ]);
    let mut tally = Tally::default();
    for (millis, event) in &events {
        tally.apply(Duration::from_millis(*millis), event);
    }
    let mut report = Report::new(&tally, context());
    report.salvaged(&tally, Some("dump.salvage".into()));
    report
}

/// A run with users, of which the server refused the merge, and an oplog with a limit.
pub(crate) fn with_users_and_oplog() -> Report {
    let mut events = begin(vec![planned("orders", 1_000_000, 1)]);
    let time = |seconds, increment| OplogTime { seconds, increment };
    let (users, roles) = (vec!["shop.ann".into(), "shop.bob".into()], vec!["shop.clerk".into()]);
    events.push((0, Event::UsersPlanned { users, roles }));
    events.push((0, Event::OplogPlanned { path: "dump/oplog.bson".into() }));
    load(&mut events, 0, 200, 1, [1000, 1_000_000]);
    let failure = Some("cannot be merged: not authorized (server code 13)".into());
    events.extend([
        (1200, Event::DataEnded { collection: 0 }),
        (1200, Event::PhaseBegan(Phase::Users)),
        (1300, Event::UsersEnded { failure }),
        (1300, Event::PhaseBegan(Phase::Oplog)),
        (
            1400,
            Event::OplogApplied {
                entries: 1200,
                operations: 1250,
                left_out: 3,
                first: time(1_700_000_000, 1),
                last: time(1_700_000_060, 7),
            },
        ),
        (1400, Event::OplogEnded { reached_limit: true }),
        (1400, Event::CollectionAdded(planned("made", 0, 0))),
        (1400, Event::CollectionEnded { collection: 0 }),
        (1400, Event::CollectionEnded { collection: 1 }),
        (1500, Event::PhaseBegan(Phase::Ended)),
    ]);
    report(&events, context())
}

/// A run that someone interrupted in the first of two collections.
pub(crate) fn interrupted() -> Report {
    let mut events = begin(vec![planned("orders", 2_000_000, 1), planned("items", 1_000_000, 0)]);
    load(&mut events, 0, 200, 5, [10_000, 1_000_000]);
    events.push((5200, Event::Read { collection: 0, documents: 500, bytes: 50_000 }));
    events.push((5200, Event::Unsent { collection: 0, documents: 500 }));
    events.push((5300, Event::PhaseBegan(Phase::Ended)));
    report(&events, Context { outcome: Outcome::Interrupted, ..context() })
}

/// A run of two collections of which one has a damaged file.
pub(crate) fn failed_collection() -> Report {
    let mut events = begin(vec![planned("orders", 1_000_000, 1), planned("items", 2048, 0)]);
    load(&mut events, 0, 200, 4, [10_000, 1_000_000]);
    load(&mut events, 1, 200, 1, [10, 1000]);
    end(&mut events, 4200, 0, &["a_1"]);
    events.push((1300, failed(1)));
    events.push((11_300, Event::PhaseBegan(Phase::Ended)));
    report(&events, Context { skipped: vec![skipped(true), skipped(false)], ..context() })
}

/// A run that an error stopped before anything was written.
pub(crate) fn stopped() -> Report {
    let events = begin(vec![planned("orders", 1_000_000, 1)]);
    let error = "no answer from the server (server code 11600)".into();
    report(&events, Context { outcome: Outcome::Stopped { error }, ..context() })
}

/// A report whose counts do not add up.
pub(crate) fn unbalanced() -> Report {
    let mut events = begin(vec![planned("orders", 1_000_000, 1)]);
    load(&mut events, 0, 200, 1, [1000, 1_000_000]);
    events.push((1000, Event::Read { collection: 0, documents: 1, bytes: 10 }));
    end(&mut events, 1200, 0, &[]);
    events.push((1300, Event::PhaseBegan(Phase::Ended)));
    report(&events, context())
}

/// One report of each kind.
pub(crate) fn all() -> Vec<Report> {
    vec![
        clean(),
        with_failures(),
        with_users_and_oplog(),
        with_damage(),
        interrupted(),
        failed_collection(),
        stopped(),
        unbalanced(),
    ]
}
