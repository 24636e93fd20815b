//! The whole load against a target that fails in every way that a seed draws.
//!
//! Whatever happens, every document read is counted once, what counts as stored is stored byte for
//! byte, nothing else is, and the run ends. Time is tokio's paused clock: the test moves it on, so
//! that a minute of attempts takes a moment.

mod dump;
mod target;

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bson::oid::ObjectId;
use restorm::batch::{BatchLimits, ZeroTimestamps};
use restorm::dump::Dump;
use restorm::exit::ExitStatus;
use restorm::facts::{ExistingCollection, ServerFacts};
use restorm::limits::RETRY_FOR;
use restorm::load::rejects::{Earlier, Place, Rejects};
use restorm::load::{
    self, Assignment, DocumentCheck, Ending, FailureLimit, LoadSettings, OnRejection, RateLimit,
    Stop, Workers,
};
use restorm::namespace::Namespace;
use restorm::plan::carried::RejectsLength;
use restorm::plan::{self, ExistingPolicy, Insertion, Selection};
use restorm::report::tally::{CollectionTally, IndexState, State};
use restorm::report::{Context, DumpFacts, Event, Observer, Outcome, Report, Tally, TargetFacts};

use crate::chance::{Chance, each_seed};
use dump::{Collection, DATABASE};
use target::{FaultyTarget, Stored, Temper};

/// How far the paused clock goes each time that nothing else is to be done.
const TICK: Duration = Duration::from_millis(20);

/// A load that takes longer than this hangs.
const REAL_TIME_MAX: Duration = Duration::from_secs(60);

/// The folder of what is refused.
const REJECTS: &str = "rejects";

/// The seeds of an ordinary test run.
const SEEDS: u64 = 400;

/// One restore, drawn from a seed.
struct Scenario {
    /// Whether the dump is read as an archive.
    is_archive: bool,
    collections: Vec<Collection>,
    selection: Selection,
    settings: LoadSettings,
    keeps_rejects: bool,
    temper: Temper,
}

/// How a restore ended.
struct Ended {
    tally: Tally,
    ending: Ending,
    target: Arc<FaultyTarget>,
    stop: Stop,
    events: Vec<Event>,
}

/// Keeps every event.
#[derive(Default)]
struct Listener(Mutex<Vec<Event>>);

impl Observer for Listener {
    fn observe(&self, _: Duration, event: &Event) {
        self.0.lock().expect("nobody panics with it").push(event.clone());
    }
}

#[test]
fn every_document_is_written_once_or_reported_once() {
    each_seed(SEEDS, |seed| {
        let folder = tempfile::tempdir().expect("a folder");
        let scenario = draw(folder.path(), &mut Chance::new(seed));
        let ended = run(seed, folder.path(), &scenario);
        check(&scenario, &ended, folder.path());
    });
}

fn draw(root: &std::path::Path, chance: &mut Chance) -> Scenario {
    let collections = dump::make(root, chance);
    let selection = Selection {
        existing: if chance.percent(15) { ExistingPolicy::Drop } else { ExistingPolicy::Add },
        insertion: if chance.percent(25) { Insertion::InOrder } else { Insertion::AnyOrder },
        ..Selection::default()
    };
    let settings = LoadSettings {
        readers: chance.between(1, 3),
        workers: if chance.percent(50) {
            Workers::Adaptive { most: chance.between(1, 8) }
        } else {
            Workers::Fixed(chance.between(1, 5))
        },
        rate_limit: chance.percent(10).then(|| {
            let number = u64::try_from(chance.between(20, 2000)).expect("few");
            let number = NonZeroU64::new(number).expect("some");
            if chance.percent(50) {
                RateLimit::Documents(number)
            } else {
                RateLimit::Bytes(number.saturating_mul(number))
            }
        }),
        lag_max: None,
        batch: BatchLimits::new(chance.between(1, 40), chance.between(300, 4000)),
        index_builds: chance.between(1, 3),
        write_mode: restorm::target::WriteMode::Insert,
        keys: restorm::target::keys::KeyFields::default(),
        names: restorm::target::FieldNames::default(),
        zero_timestamps: ZeroTimestamps::Kept,
        on_rejection: if chance.percent(10) { OnRejection::StopRun } else { OnRejection::GoOn },
        failure_limit: chance.percent(10).then(|| draw_limit(chance)),
        document_check: DocumentCheck::Extent,
        retry_for: RETRY_FOR,
        memory: restorm::limits::MEMORY_DEFAULT,
    };
    let mut temper = Temper {
        faults: *chance.one_of(&[0, 10, 25, 50]),
        may_bypass: chance.percent(80),
        documents_max: if chance.percent(10) { 7 } else { usize::MAX },
        bytes_max: if chance.percent(10) { 700 } else { usize::MAX },
        refuses: None,
        dies_at: None,
        stops_at: None,
    };
    match chance.below(8) {
        0 => temper.dies_at = Some(chance.below(20)),
        1 => temper.stops_at = Some(chance.between(1, 20)),
        2 => {
            let name = chance.one_of(&collections).name.clone();
            temper.refuses = Some((name, chance.below(4)));
        }
        _ => {}
    }
    let is_archive = chance.percent(50);
    if is_archive {
        dump::archive(root, &collections, chance);
    }
    let keeps_rejects = chance.percent(50);
    Scenario { is_archive, collections, selection, settings, keeps_rejects, temper }
}

fn draw_limit(chance: &mut Chance) -> FailureLimit {
    if chance.percent(50) {
        return FailureLimit::Documents(u64::try_from(chance.below(10)).expect("few"));
    }
    FailureLimit::Share { millionths: *chance.one_of(&[0, 1000, 50_000, 200_000]) }
}

fn run(seed: u64, root: &std::path::Path, scenario: &Scenario) -> Ended {
    let path = if scenario.is_archive { root.join(dump::ARCHIVE) } else { root.join(DATABASE) };
    let inventory =
        Dump::locate(&path, None, None).and_then(|dump| dump.scan()).expect("a sound dump");
    let held = scenario.collections.iter().filter(|collection| !collection.held.is_empty());
    let existing = held.map(|collection| ExistingCollection {
        namespace: Namespace::new(DATABASE, &collection.name),
        kind: "collection".to_owned(),
        uuid: None,
    });
    let facts = ServerFacts { existing: existing.collect(), ..ServerFacts::null() };
    let plan = plan::plan(&inventory, scenario.selection.clone(), &facts);
    let places = plan.collections.iter().map(|planned| {
        let place = Place {
            namespace: planned.namespace.clone(),
            data_namespace: planned.data_namespace.clone(),
            metadata: "{}".to_owned(),
            origin: planned.source.to_string(),
        };
        (place, RejectsLength::default())
    });
    let folder = root.join(REJECTS);
    let rejects = scenario.keeps_rejects.then(|| {
        let rejects = Rejects::open(&folder, ObjectId::new(), Earlier::Refused, places.collect());
        Arc::new(rejects.expect("an empty folder"))
    });
    let stop = Stop::new();
    let target = Arc::new(FaultyTarget::new(
        seed,
        scenario.temper.clone(),
        stop.clone(),
        &scenario.collections,
    ));
    let listener = Arc::new(Listener::default());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime");
    let observer: Arc<dyn Observer> = Arc::<Listener>::clone(&listener);
    let load = load::load(Assignment {
        plan,
        target: Arc::clone(&target),
        settings: scenario.settings.clone(),
        observer,
        ledger: None,
        salvage: None,
        rejects,
        sums: None,
        stop: stop.clone(),
        began: Instant::now(),
    });
    let (tally, ending) = runtime.block_on(in_paused_time(load));
    let events = listener.0.lock().expect("nobody panics with it").clone();
    Ended { tally, ending, target, stop, events }
}

/// Runs to the end while the paused clock goes on. It would not go on by itself, because readers
/// are threads that tokio waits for.
async fn in_paused_time<T>(load: impl Future<Output = T>) -> T {
    let began = Instant::now();
    let mut load = std::pin::pin!(load);
    loop {
        tokio::select! {
            biased;
            ended = &mut load => return ended,
            () = tokio::task::yield_now() => {
                assert!(began.elapsed() < REAL_TIME_MAX, "the load hangs");
                std::thread::yield_now();
                tokio::time::advance(TICK).await;
            }
        }
    }
}

fn check(scenario: &Scenario, ended: &Ended, root: &std::path::Path) {
    assert_eq!(ended.target.state().violations, [""; 0]);
    assert!(ended.tally.balance().is_balanced(), "{:?}", ended.tally.balance());
    check_ending(scenario, ended);
    check_status(ended);
    let names: Vec<_> = ended.tally.collections().iter().map(CollectionTally::namespace).collect();
    for collection in &scenario.collections {
        let place = names
            .iter()
            .position(|name| name.collection() == collection.name)
            .expect("every collection is planned");
        check_collection(scenario, ended, collection, place);
        if scenario.keeps_rejects {
            check_rejects(ended, collection, place, &root.join(REJECTS));
        }
    }
}

/// The run ended the way it was drawn to.
fn check_ending(scenario: &Scenario, ended: &Ended) {
    let inserts = ended.target.state().inserts;
    let was_dead = scenario.temper.dies_at.is_some_and(|dies_at| inserts >= dies_at);
    let balance = ended.tally.balance();
    let stops = scenario.settings.on_rejection == OnRejection::StopRun && balance.rejected > 0;
    match &ended.ending {
        Ending::Finished => {
            assert!(!ended.stop.is_requested(), "a stop was asked for");
            assert!(!stops, "a rejection ends the run");
            assert!(!passes_limit(scenario, ended), "too many rejections end the run");
            let is_given_up = |tally: &CollectionTally| matches!(tally.state, State::Failed(_));
            assert!(
                balance.unsent == 0 || ended.tally.collections().iter().any(is_given_up),
                "documents were left behind"
            );
        }
        Ending::Interrupted => {
            assert!(ended.stop.is_requested(), "nobody asked for a stop");
            // After a stop, a batch that fails again and again is given up after a while.
            let may_fail = was_dead || scenario.temper.faults > 0;
            assert!(balance.unsent == 0 || may_fail, "what was read is finished");
        }
        Ending::Stopped(error) => {
            let text = error.to_string();
            let limited = text.contains("more than the") && text.contains("that may be");
            let expected = (was_dead && text.contains("gave up after"))
                || (limited && passes_limit(scenario, ended))
                || (stops && text.contains("stopped at a refused document"));
            assert!(expected, "{text}");
        }
    }
}

/// Whether more documents were refused than may be.
fn passes_limit(scenario: &Scenario, ended: &Ended) -> bool {
    let balance = ended.tally.balance();
    match scenario.settings.failure_limit {
        None => false,
        Some(FailureLimit::Documents(most)) => balance.rejected > most,
        Some(FailureLimit::Share { millionths }) => {
            balance.rejected * 1_000_000 > balance.read * u64::from(millionths)
        }
    }
}

/// The exit status follows from the counts.
fn check_status(ended: &Ended) {
    let context = Context {
        tool_version: String::new(),
        target: TargetFacts { description: String::new(), server_version: None },
        dump: DumpFacts {
            path: String::new(),
            server_version: None,
            tool_version: None,
            is_made: false,
        },
        skipped: Vec::new(),
        outcome: match &ended.ending {
            Ending::Finished => Outcome::Finished,
            Ending::Interrupted => Outcome::Interrupted,
            Ending::Stopped(error) => Outcome::Stopped { error: error.to_string() },
        },
        options: Vec::new(),
    };
    let failed = |tally: &CollectionTally| matches!(tally.state, State::Failed(_));
    let index_failed = |tally: &CollectionTally| {
        tally.indexes.iter().any(|index| matches!(index.state, IndexState::Failed(_)))
    };
    let collections = ended.tally.collections();
    let expected = match ended.ending {
        Ending::Interrupted => ExitStatus::Interrupted,
        Ending::Stopped(_) => ExitStatus::Stopped,
        Ending::Finished if collections.iter().any(failed) => ExitStatus::Stopped,
        Ending::Finished
            if ended.tally.balance().rejected > 0 || collections.iter().any(index_failed) =>
        {
            ExitStatus::Failures
        }
        Ending::Finished => ExitStatus::Restored,
    };
    assert_eq!(Report::new(&ended.tally, context).exit_status, expected);
}

fn check_collection(scenario: &Scenario, ended: &Ended, collection: &Collection, place: usize) {
    let tally = &ended.tally.collections()[place];
    let name = &collection.name;
    let counts = tally.counts;
    assert!(counts.balance().is_balanced(), "{name}: {:?}", counts.balance());
    let all = collection.documents.len() as u64;
    assert!(counts.read <= all, "{name}: {} of {all} documents were read", counts.read);
    let state = ended.target.state();
    let nothing = Stored::default();
    let stored = state.collections.get(name).unwrap_or(&nothing);
    let is_complete = counts.read == all && counts.unsent == 0;
    if matches!(ended.ending, Ending::Finished) && !matches!(tally.state, State::Failed(_)) {
        assert!(is_complete, "{name}: {:?}", counts.balance());
        check_indexes(tally, stored);
    }
    check_documents(ended, collection, place, stored, is_complete);
    let keeps_order = scenario.selection.insertion == Insertion::InOrder
        || collection.metadata.options.contains_key("capped");
    if keeps_order {
        let places: Vec<_> =
            stored.order.iter().map(|id| dump::place_of(&stored.documents[id])).collect();
        assert!(places.is_sorted(), "{name} is out of order: {places:?}");
    }
}

/// Every planned index stands or is reported.
fn check_indexes(tally: &CollectionTally, stored: &Stored) {
    assert_eq!(tally.indexes.len(), tally.planned.indexes, "{:?}", tally.indexes);
    for index in &tally.indexes {
        match &index.state {
            IndexState::Built(_) => assert!(stored.indexes.contains(&index.name)),
            IndexState::Failed(reason) => {
                assert!(index.name.starts_with(dump::REFUSED_INDEX), "{}: {reason}", index.name);
            }
            IndexState::Building => panic!("{} is still being built", index.name),
        }
    }
}

/// What the server holds is what the counts say.
fn check_documents(
    ended: &Ended,
    collection: &Collection,
    place: usize,
    stored: &Stored,
    is_complete: bool,
) {
    let counts = ended.tally.collections()[place].counts;
    let rejections = rejections_of(ended, place);
    assert_eq!(rejections.values().sum::<u64>(), counts.rejected);
    let mut documents: BTreeMap<Vec<u8>, Vec<Vec<u8>>> = BTreeMap::new();
    for made in &collection.documents {
        let stored = dump::stored_form(&made.bytes);
        documents.entry(dump::id_of(&made.bytes)).or_default().push(stored);
    }
    let arrived = stored.order.len() as u64;
    assert!(counts.inserted <= arrived, "{}: more is counted than came", collection.name);
    assert!(
        arrived <= counts.inserted + counts.already_there + counts.unsent,
        "{}: {arrived} documents came, {:?}",
        collection.name,
        counts.balance()
    );
    for id in &stored.order {
        let bytes = stored.documents[id].as_slice();
        assert!(
            documents[id].iter().any(|copy| copy == bytes),
            "a document is not as it was dumped"
        );
    }
    if !is_complete {
        return;
    }
    for (id, copies) in documents {
        let rejected = rejections.get(&text_of(&copies[0])).copied().unwrap_or(0);
        let accepted = (copies.len() as u64).checked_sub(rejected).expect("rejected once each");
        let came = stored.order.contains(&id);
        let there = stored.documents.get(&id).map(Vec::as_slice);
        let same = copies.iter().filter(|copy| Some(copy.as_slice()) == there).count() as u64;
        assert!(accepted <= same, "{accepted} documents count as stored, {same} are");
        assert!(
            !came || accepted > 0,
            "{} of {} is stored, but each of its {} copies counts as rejected",
            text_of(&copies[0]),
            collection.name,
            copies.len()
        );
    }
}

/// Each refused document is kept as it was sent, with its reason and the place where it lies.
fn check_rejects(ended: &Ended, collection: &Collection, place: usize, folder: &std::path::Path) {
    let counts = ended.tally.collections()[place].counts;
    let read = |ending: &str| {
        let path = folder.join(DATABASE).join(format!("{}{ending}", collection.name));
        std::fs::read(path).unwrap_or_default()
    };
    let (documents, lines) = (read(".bson"), read(".rejects.jsonl"));
    let state = ended.target.state();
    let (mut at, mut kept, mut conflicts) = (0, 0, 0);
    for line in String::from_utf8(lines).expect("text").lines() {
        let line: serde_json::Value = serde_json::from_str(line).expect("JSON");
        let number = |name: &str| usize::try_from(line[name].as_u64().expect(name)).expect("small");
        assert_eq!(number("kept_at"), at, "documents follow each other");
        let document = &documents[at..at + number("bytes")];
        at += document.len();
        kept += 1;
        let sent = collection.documents.iter().map(|made| dump::stored_form(&made.bytes));
        assert!(sent.clone().any(|sent| sent == document), "a document that was never sent");
        let mut before =
            collection.documents.iter().map(|made| made.bytes.len()).scan(0, |at, length| {
                *at += length;
                Some(*at - length)
            });
        let index = before.position(|before| before == number("offset"));
        let is_file = !folder.with_file_name(dump::ARCHIVE).exists();
        assert!(
            !is_file
                || index
                    .and_then(|index| sent.clone().nth(index))
                    .is_some_and(|sent| sent == document)
        );
        if line["conflict"] == true {
            conflicts += 1;
            let there = &state.collections[&collection.name].documents[&dump::id_of(document)];
            assert_ne!(there, document, "a conflict is with another document");
        }
    }
    assert_eq!((kept, conflicts), (counts.rejected, counts.conflicts), "{}", collection.name);
    assert_eq!(at, documents.len());
}

/// How many documents of each `_id` were refused.
fn rejections_of(ended: &Ended, place: usize) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for event in &ended.events {
        if let Event::Rejected { collection, rejections } = event
            && *collection == place
        {
            for rejection in rejections {
                *counts.entry(rejection.id.clone()).or_default() += 1;
            }
        }
    }
    counts
}

/// A document's `_id` as reports show it.
fn text_of(bytes: &[u8]) -> String {
    let document = bson::Document::from_reader(bytes).expect("a document");
    document.get("_id").expect("an id").clone().into_relaxed_extjson().to_string()
}
