//! Tests of the tally.

use proptest::prelude::*;

use super::*;
use crate::report::event::Rejection;
use crate::report::rate::{UNFINISHED_SHARE_MAX, share};
use crate::report::value::samples::{failed, planned, written};

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn tally_of(collections: Vec<PlannedCollection>) -> Tally {
    let mut tally = Tally::default();
    let collections = collections.into_iter().map(Arc::new).collect();
    tally.apply(Duration::ZERO, &Event::Planned { collections });
    tally.apply(Duration::ZERO, &Event::PhaseBegan(Phase::Data));
    tally
}

fn is_near(value: f64, expected: f64) -> bool {
    (value - expected).abs() < 1e-9
}

#[test]
fn the_share_counts_bytes_of_files_and_ends_at_one() {
    let mut tally = tally_of(vec![planned("a", 750, 0), planned("b", 250, 0)]);
    assert!(is_near(tally.fraction(), 0.0));
    tally.apply(seconds(1), &written(0, [5, 0, 0], 9000, 500));
    assert!(is_near(tally.fraction(), 0.5));
    assert!(is_near(tally.collections()[0].fraction(), 500.0 / 750.0));
    tally.apply(seconds(1), &Event::DataEnded { collection: 0 });
    assert!(is_near(tally.fraction(), 0.75), "the end of a file belongs to no batch");
    tally.apply(seconds(2), &written(1, [5, 0, 0], 1, 300));
    assert!(is_near(tally.fraction(), UNFINISHED_SHARE_MAX), "more than a file has is not counted");
    for collection in [0, 1] {
        tally.apply(seconds(3), &Event::DataEnded { collection });
        tally.apply(seconds(3), &Event::CollectionEnded { collection });
    }
    assert!(tally.fraction() < 1.0);
    tally.apply(seconds(4), &Event::PhaseBegan(Phase::Ended));
    assert!(is_near(tally.fraction(), 1.0));
}

#[test]
fn in_one_stream_only_the_whole_has_a_size() {
    let mut tally = tally_of(vec![planned("a", 0, 0), planned("b", 0, 0)]);
    tally.apply(Duration::ZERO, &Event::OneStream { bytes: Some(1000), compressed: true });
    tally.apply(seconds(1), &written(0, [5, 0, 0], 2000, 250));
    assert_eq!(tally.fraction_known(), Some(0.25));
    assert_eq!(tally.bytes_expected(), Some(8000));
    assert_eq!(tally.origin_bytes(), 1000);
    tally.apply(seconds(2), &written(1, [5, 0, 0], 2000, 2000));
    assert!(is_near(tally.fraction(), UNFINISHED_SHARE_MAX), "more than there is is not counted");
}

#[test]
fn through_a_pipe_nothing_has_a_size() {
    let mut tally = tally_of(vec![planned("a", 0, 0)]);
    tally.apply(Duration::ZERO, &Event::OneStream { bytes: None, compressed: false });
    tally.apply(seconds(1), &written(0, [5, 0, 0], 2000, 250));
    assert_eq!((tally.fraction_known(), tally.bytes_expected()), (None, None));
    assert_eq!(tally.time_left(seconds(1)), None);
    assert_eq!(tally.origin_bytes(), 250, "what was read counts as its size");
    for event in [
        Event::DataEnded { collection: 0 },
        Event::CollectionEnded { collection: 0 },
        Event::PhaseBegan(Phase::Ended),
    ] {
        tally.apply(seconds(2), &event);
    }
    assert!(is_near(tally.fraction(), 1.0));
}

#[test]
fn documents_that_are_made_until_a_time_is_over_have_no_size() {
    let mut tally = tally_of(vec![planned("a", 0, 0), planned("b", 1000, 0)]);
    tally.apply(seconds(1), &written(0, [5, 0, 0], 2000, 2000));
    assert_eq!((tally.fraction_known(), tally.bytes_expected()), (None, None));
    assert_eq!(tally.time_left(seconds(1)), None);
    tally.apply(seconds(2), &Event::DataEnded { collection: 0 });
    assert_eq!(tally.bytes_expected(), Some(3000), "what is done is exact");
}

#[test]
fn a_run_that_ends_early_is_not_done() {
    let mut tally = tally_of(vec![planned("a", 1000, 0)]);
    tally.apply(seconds(1), &written(0, [5, 0, 0], 400, 400));
    tally.apply(seconds(2), &Event::PhaseBegan(Phase::Ended));
    assert!(is_near(tally.fraction(), 0.4));
    assert!(tally.has_ended());
}

#[test]
fn the_ratio_of_compressed_files_is_learned() {
    let compressed =
        |name, bytes| PlannedCollection { compressed: true, ..planned(name, bytes, 0) };
    let mut tally =
        tally_of(vec![planned("a", 1000, 0), compressed("b", 100), compressed("c", 50)]);
    assert_eq!(tally.bytes_expected(), Some(1150), "nothing is known yet");
    tally.apply(seconds(1), &written(1, [5, 0, 0], 400, 40));
    assert_eq!(tally.bytes_expected(), Some(1000 + 1000 + 500));
    tally.apply(seconds(2), &written(1, [5, 0, 0], 560, 56));
    tally.apply(seconds(2), &Event::DataEnded { collection: 1 });
    assert_eq!(tally.bytes_expected(), Some(1000 + 960 + 500), "what is done is exact");
}

#[test]
fn the_time_left_follows_the_pace() {
    let mut tally = tally_of(vec![planned("a", 10_000, 0)]);
    tally.apply(Duration::ZERO, &Event::ReadBegan { collection: 0 });
    assert_eq!(tally.time_left(seconds(1)), None);
    for second in 1..=20 {
        tally.apply(seconds(second), &written(0, [1, 0, 0], 100, 100));
    }
    let left = tally.time_left(seconds(20)).expect("an estimate").as_secs_f64();
    assert!((left - 80.0).abs() < 1.0, "{left}");
    let left = tally.collections()[0].time_left(seconds(20)).expect("an estimate").as_secs_f64();
    assert!((left - 80.0).abs() < 1.0, "{left}");
    assert_eq!(tally.time_left(seconds(600)), None, "a stalled run has no end in sight");
    assert_eq!(tally.silence(seconds(600)), Some(seconds(580)));
    tally.apply(seconds(20), &failed(0));
    assert_eq!(tally.time_left(seconds(20)), Some(seconds(0)), "nobody waits for what is given up");
    assert_eq!(tally.silence(seconds(600)), None, "nor for an answer about it");
}

#[test]
fn rates_are_those_of_the_data_phase() {
    let mut tally = tally_of(vec![planned("a", 1000, 0)]);
    for (second, inserted) in [(1, 100), (2, 700), (3, 200)] {
        tally.apply(seconds(second), &written(0, [inserted, 0, 0], 1000, 100));
    }
    tally.apply(seconds(4), &Event::PhaseBegan(Phase::Indexes));
    tally.apply(seconds(9), &Event::PhaseBegan(Phase::TimeToLive));
    tally.apply(seconds(10), &Event::PhaseBegan(Phase::Views));
    tally.apply(seconds(12), &Event::PhaseBegan(Phase::Ended));
    assert!(is_near(tally.rate_average().documents, 250.0));
    assert!(is_near(tally.rate_peak().documents, 700.0));
    assert_eq!(
        tally.times(),
        PhaseTimes {
            users: Duration::ZERO,
            oplog: Duration::ZERO,
            total: seconds(12),
            data: seconds(4),
            indexes: seconds(5),
            time_to_live: seconds(1),
            views: seconds(2),
        }
    );
}

#[test]
fn a_short_run_is_not_slower_at_its_peak_than_on_average() {
    let mut tally = tally_of(vec![planned("a", 1000, 0)]);
    let at = Duration::from_millis(100);
    tally.apply(at, &written(0, [50, 0, 0], 1000, 100));
    tally.apply(at, &Event::PhaseBegan(Phase::Ended));
    assert!(is_near(tally.rate_average().documents, 500.0));
    assert!(is_near(tally.rate_peak().documents, 500.0));
}

#[test]
fn refused_documents_are_counted_and_a_few_kept() {
    let mut tally = tally_of(vec![planned("a", 1000, 0)]);
    let rejection = |code, id: u64| Rejection {
        code,
        message: "no".into(),
        id: id.to_string(),
        is_conflict: false,
    };
    let mut rejections: Vec<_> = (0..12).map(|id| rejection(11000, id)).collect();
    rejections.push(rejection(121, 99));
    tally.apply(seconds(1), &Event::Rejected { collection: 0, rejections });
    let failures = &tally.collections()[0].failures;
    assert_eq!((failures[&11000].count, failures[&121].count), (12, 1));
    let ids: Vec<_> = failures[&11000].samples.iter().map(|one| one.id.as_str()).collect();
    assert_eq!(ids, ["0", "1", "2", "3", "4"]);
}

#[test]
fn a_collection_passes_through_its_states() {
    let mut tally = tally_of(vec![planned("a", 1000, 2)]);
    let index = || "a_1".to_owned();
    let took = seconds(1);
    for (event, state, active) in [
        (Event::Prepared { collection: 0 }, State::Waiting, 0),
        (Event::ReadBegan { collection: 0 }, State::Loading, 1),
        (Event::DataEnded { collection: 0 }, State::Indexing, 0),
        (Event::IndexBegan { collection: 0, index: index() }, State::Indexing, 1),
        (Event::IndexBuilt { collection: 0, index: index(), took }, State::Indexing, 0),
        (Event::CollectionEnded { collection: 0 }, State::Done, 0),
        (
            Event::CollectionFailed { collection: 0, error: "late".into() },
            State::Failed("late".into()),
            0,
        ),
        (Event::CollectionEnded { collection: 0 }, State::Failed("late".into()), 0),
        (Event::DataEnded { collection: 0 }, State::Failed("late".into()), 0),
    ] {
        tally.apply(seconds(1), &event);
        assert_eq!(tally.collections()[0].state, state, "{event:?}");
        assert_eq!(tally.active().len(), active, "{event:?}");
    }
    assert_eq!(tally.collections()[0].indexes_built(), 1);
}

#[test]
fn events_of_unknown_collections_do_no_harm() {
    let mut tally = tally_of(Vec::new());
    tally.apply(seconds(1), &Event::Read { collection: 7, documents: 1, bytes: 9 });
    tally.apply(seconds(1), &failed(7));
    assert_eq!(tally.balance().read, 1);
    assert!(!tally.balance().is_balanced());
}

proptest! {
    #[test]
    fn totals_are_the_sums_and_the_share_only_grows(
        batches in prop::collection::vec(
            (0_usize..4, [0_u64..50, 0_u64..50, 0_u64..50], 0_u64..900),
            0..60,
        ),
    ) {
        let plan = (0..4).map(|number| planned(&format!("c{number}"), 5000, 0)).collect();
        let mut tally = tally_of(plan);
        let mut last = 0.0;
        for (place, &(collection, counts, bytes)) in batches.iter().enumerate() {
            let [inserted, rejected, unsent] = counts;
            let at = Duration::from_millis(place as u64 * 70);
            let documents = inserted + rejected + unsent;
            tally.apply(at, &Event::Read { collection, documents, bytes });
            prop_assert_eq!(tally.balance().is_balanced(), documents == 0);
            tally.apply(at, &written(collection, [inserted, 0, rejected], bytes, bytes));
            tally.apply(at, &Event::Unsent { collection, documents: unsent });
            prop_assert!(tally.balance().is_balanced());
            prop_assert!((last..1.0).contains(&tally.fraction()));
            last = tally.fraction();
        }
        let collections = tally.collections();
        let sum = |of: fn(&Counts) -> u64| -> u64 {
            collections.iter().map(|one| of(&one.counts)).sum()
        };
        prop_assert_eq!(tally.counts().read, sum(|counts| counts.read));
        prop_assert_eq!(tally.counts().inserted, sum(|counts| counts.inserted));
        prop_assert_eq!(tally.counts().batches, batches.len() as u64);
        let done: u64 = collections.iter().map(CollectionTally::origin_bytes_done).sum();
        prop_assert!(is_near(tally.fraction(), share(done, 20_000).min(UNFINISHED_SHARE_MAX)));
    }
}
