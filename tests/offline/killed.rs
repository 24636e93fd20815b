//! Loads that are killed again and again, into a target that loses what it has acknowledged.
//!
//! Whatever a seed draws, the run that comes to its end has every document of the dump in the
//! target once, or among the rejects once where the target refuses it, and counts every document
//! once.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use bson::oid::ObjectId;
use bson::{Bson, Document, RawBson, RawDocumentBuf, Uuid, doc};
use restorm::batch::{Batch, BatchLimits, ZeroTimestamps};
use restorm::dump::Dump;
use restorm::dump::writer::archive::{ArchiveWriter, ArchivedCollection};
use restorm::dump::{CollectionMetadata, Compression};
use restorm::facts::ServerFacts;
use restorm::frame::Frame;
use restorm::load::rejects::{Earlier, Place, Rejects};
use restorm::load::{self, Assignment, Ending, Ledger, LoadSettings, Stop, Workers};
use restorm::namespace::Namespace;
use restorm::plan::{self, Creation, RestorePlan, Selection};
use restorm::report::{Silent, Tally};
use restorm::target::durable::{Acknowledgement, Horizon};
use restorm::target::{
    Documents, Fault, Insert, MergeUsers, Target, TargetError, Validators, WriteFailure, WriteMode,
    WriteOutcome,
};

use crate::chance::{Chance, each_seed};

/// How far the paused clock goes each time that nothing else is to be done.
const TICK: Duration = Duration::from_millis(20);

/// A load that takes longer than this hangs.
const REAL_TIME_MAX: Duration = Duration::from_secs(60);

/// The folder of what is refused.
const REJECTS: &str = "rejects";

/// The seeds of an ordinary test run.
const SEEDS: u64 = 100;

/// A server in memory that has a journal.
struct Forgetful {
    acknowledgement: Acknowledgement,
    state: Mutex<State>,
}

struct State {
    chance: Chance,
    /// Of a hundred inserts, so many end with the server.
    crashes: usize,
    collections: BTreeMap<String, BTreeMap<Vec<u8>, Held>>,
    uuids: BTreeMap<String, Uuid>,
    incarnation: u64,
    written: u64,
    durable: u64,
    violations: Vec<String>,
}

struct Held {
    bytes: Vec<u8>,
    number: u64,
}

impl State {
    /// Ends the server and starts it again: what was not in the journal is lost, or some of it.
    fn crash(&mut self) {
        let kept = self.durable + self.chance.draw() % (1 + self.written - self.durable);
        for documents in self.collections.values_mut() {
            documents.retain(|_, held| held.number <= kept);
        }
        self.written = kept;
        self.durable = kept;
        self.incarnation += 1;
    }

    fn take(&mut self, name: &str, documents: &[(u32, Vec<u8>)]) -> WriteOutcome {
        let mut outcome = WriteOutcome::default();
        for (index, bytes) in documents {
            if is_refused(bytes) {
                let (index, message) = (*index, "Document failed validation".to_owned());
                outcome.failures.push(WriteFailure { index, code: 121, message });
                continue;
            }
            let held = self.collections.get_mut(name).expect("it was created");
            let id = id_of(bytes);
            match held.entry(id) {
                Entry::Occupied(_) => {
                    let (index, message) = (*index, "E11000 duplicate key error".to_owned());
                    outcome.failures.push(WriteFailure { index, code: 11000, message });
                }
                Entry::Vacant(place) => {
                    self.written += 1;
                    place.insert(Held { bytes: bytes.clone(), number: self.written });
                    outcome.inserted += 1;
                }
            }
        }
        outcome
    }
}

/// Whether the target takes a document never.
fn is_refused(bytes: &[u8]) -> bool {
    place_of(bytes) % 9 == 4
}

fn id_of(bytes: &[u8]) -> Vec<u8> {
    let id = Frame::new(bytes).expect("a frame").id().expect("an id");
    [&[id.kind], id.value].concat()
}

fn lost() -> TargetError {
    let message = "the connection broke".to_owned();
    TargetError { fault: Fault::ConnectionLost, code: None, labels: Vec::new(), message }
}

impl Forgetful {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no test panics with the state in its hands")
    }

    async fn pause(&self) {
        let milliseconds = self.state().chance.below(40) as u64;
        tokio::time::sleep(Duration::from_millis(milliseconds)).await;
    }
}

impl Target for Forgetful {
    async fn drop_collection(&self, _: &Namespace) -> Result<(), TargetError> {
        self.state().violations.push("something was dropped".to_owned());
        Ok(())
    }

    async fn empty(&self, _: &Namespace) -> Result<(), TargetError> {
        self.state().violations.push("something was emptied".to_owned());
        Ok(())
    }

    async fn create(
        &self,
        namespace: &Namespace,
        _: &Document,
        _: Option<Uuid>,
    ) -> Result<(), TargetError> {
        self.pause().await;
        let mut state = self.state();
        let name = namespace.collection().to_owned();
        if state.collections.contains_key(&name) {
            let message = "it exists".to_owned();
            let labels = Vec::new();
            return Err(TargetError { fault: Fault::Refused, code: Some(48), labels, message });
        }
        state.uuids.insert(name.clone(), Uuid::new());
        state.collections.insert(name, BTreeMap::new());
        Ok(())
    }

    async fn insert(
        &self,
        insert: &Insert,
        batch: &Batch,
        documents: &Documents,
    ) -> Result<WriteOutcome, TargetError> {
        let frames: Vec<_> = batch.frames().collect();
        let documents: Vec<(u32, Vec<u8>)> = documents
            .indexes(batch.documents)
            .into_iter()
            .map(|index| (index, frames[index as usize].bytes().to_vec()))
            .collect();
        self.pause().await;
        let outcome = {
            let mut state = self.state();
            let crashes = state.crashes;
            let name = insert.namespace.collection();
            match (state.chance.percent(crashes), state.chance.below(3)) {
                (true, 0) => {
                    state.crash();
                    Err(lost())
                }
                (true, 1) => {
                    state.take(name, &documents);
                    state.crash();
                    Err(lost())
                }
                (true, _) => {
                    // It is acknowledged, and the server ends right after.
                    let outcome = state.take(name, &documents);
                    if self.acknowledgement == Acknowledgement::Durable {
                        state.durable = state.written;
                    }
                    state.crash();
                    Ok(outcome)
                }
                (false, _) => {
                    let outcome = state.take(name, &documents);
                    if self.acknowledgement == Acknowledgement::Durable {
                        state.durable = state.written;
                    }
                    Ok(outcome)
                }
            }
        };
        self.pause().await;
        outcome
    }

    async fn stored(
        &self,
        namespace: &Namespace,
        ids: Vec<RawBson>,
        take: &mut (dyn FnMut(RawDocumentBuf) + Send),
    ) -> Result<(), TargetError> {
        self.pause().await;
        let state = self.state();
        let held = &state.collections[namespace.collection()];
        let found = ids.into_iter().filter_map(|id| {
            let id = Bson::try_from(id).expect("a value");
            let asked = doc! { "_id": id }.to_vec().expect("encodes");
            let bytes = held.get(&id_of(&asked))?.bytes.clone();
            Some(RawDocumentBuf::from_bytes(bytes).expect("a document"))
        });
        found.for_each(take);
        Ok(())
    }

    fn acknowledgement(&self) -> Acknowledgement {
        self.acknowledgement
    }

    async fn horizon(&self, _: &Namespace) -> Result<Horizon, TargetError> {
        self.pause().await;
        {
            let mut state = self.state();
            state.durable = state.written;
            if state.chance.percent(3) {
                state.crash();
                return Err(lost());
            }
        }
        self.pause().await;
        Ok(Horizon { server: self.state().incarnation.to_string(), durable: None })
    }

    async fn incarnation(&self) -> Result<String, TargetError> {
        Ok(self.state().incarnation.to_string())
    }

    async fn uuid(&self, namespace: &Namespace) -> Result<Option<Uuid>, TargetError> {
        Ok(self.state().uuids.get(namespace.collection()).copied())
    }

    async fn create_indexes(&self, _: &Namespace, _: &[Document]) -> Result<(), TargetError> {
        Ok(())
    }

    async fn allow_mixed_schema(&self, _: &Namespace) -> Result<(), TargetError> {
        Ok(())
    }

    async fn expire_after(&self, _: &Namespace, _: &Bson) -> Result<(), TargetError> {
        Ok(())
    }

    async fn apply_ops(&self, _: &[RawDocumentBuf], _: Validators) -> Result<(), TargetError> {
        Ok(())
    }

    async fn users_schema(&self) -> Result<i64, TargetError> {
        Ok(5)
    }

    async fn merge_users(&self, _: &MergeUsers) -> Result<(), TargetError> {
        Ok(())
    }
}

/// The documents of a collection; some have no `_id`.
fn documents(chance: &mut Chance) -> Vec<Vec<u8>> {
    let count = chance.between(0, 120);
    (0..count)
        .map(|place| {
            let place = i32::try_from(place).expect("few");
            let text = "x".repeat(chance.below(50));
            let document = match chance.below(10) {
                0 => doc! { "place": place, "text": text },
                1 => doc! { "place": place, "_id": place, "text": text },
                _ => doc! { "_id": place, "place": place, "text": text },
            };
            document.to_vec().expect("encodes")
        })
        .collect()
}

fn write(
    root: &Path,
    collections: &[(String, Vec<Vec<u8>>)],
    chance: &mut Chance,
) -> std::path::PathBuf {
    let compression = *chance.one_of(&[Compression::None, Compression::Gzip, Compression::Zstd]);
    if chance.percent(50) {
        let listed: Vec<_> = collections
            .iter()
            .map(|(name, _)| ArchivedCollection {
                namespace: Namespace::new("sim", name),
                metadata: CollectionMetadata::default(),
            })
            .collect();
        let mut archive =
            ArchiveWriter::begin(Vec::new(), compression, 1, None, &listed).expect("begun");
        let most = collections.iter().map(|(_, all)| all.len()).max().unwrap_or(0);
        for place in 0..most {
            for (number, (_, all)) in collections.iter().enumerate() {
                if let Some(document) = all.get(place) {
                    archive.append(number, document).expect("written");
                }
            }
        }
        for number in 0..collections.len() {
            archive.end(number).expect("ended");
        }
        let path = root.join("sim.archive");
        std::fs::write(&path, archive.finish().expect("finished")).expect("written");
        return path;
    }
    let folder = root.join("sim");
    std::fs::create_dir(&folder).expect("a folder");
    for (name, all) in collections {
        std::fs::write(folder.join(format!("{name}.bson")), all.concat()).expect("written");
    }
    folder
}

/// What the command does about a ledger that is there: it goes on with its collections.
fn resumed(plan: &mut RestorePlan, path: &Path) -> Ledger {
    // The readers of the run before may not have heard yet that it was ended.
    let began = Instant::now();
    let (ledger, history) = loop {
        match Ledger::resume(path) {
            Ok(resumed) => break resumed,
            Err(error) => assert!(
                error.to_string().contains("another restore") && began.elapsed() < REAL_TIME_MAX,
                "{error}"
            ),
        }
        std::thread::yield_now();
    };
    for (place, planned) in plan.collections.iter_mut().enumerate() {
        if let Some(past) = history.find(&planned.source, &planned.namespace) {
            planned.creation = Creation::Use;
            planned.carried = Some(Box::new(past.carried.clone()));
            ledger.goes_on(place, past);
        } else {
            planned.carried = Some(Box::default());
        }
    }
    ledger
}

/// The folder of what is refused, gone on with.
fn rejects(plan: &RestorePlan, folder: &Path, run: ObjectId) -> Rejects {
    let places = plan.collections.iter().map(|planned| {
        let place = Place {
            namespace: planned.namespace.clone(),
            data_namespace: planned.data_namespace.clone(),
            metadata: "{}".to_owned(),
            origin: String::new(),
        };
        let length = planned.carried.as_ref().map(|carried| carried.rejects);
        (place, length.unwrap_or_default())
    });
    Rejects::open(folder, run, Earlier::Resumed, places.collect()).expect("it is gone on with")
}

/// Each document that the target refuses is kept once.
fn check_rejects(collections: &[(String, Vec<Vec<u8>>)], folder: &Path) {
    for (name, documents) in collections {
        let read = |ending: &str| {
            let files =
                walk(folder).into_iter().find(|path| path.ends_with(format!("{name}{ending}")));
            files.map(|path| std::fs::read(path).expect("read")).unwrap_or_default()
        };
        let (kept, lines) = (read(".bson"), read(".rejects.jsonl"));
        let (mut rest, mut places) = (&kept[..], Vec::new());
        while let Some(length) = rest.first_chunk::<4>() {
            let length = usize::try_from(u32::from_le_bytes(*length)).expect("small");
            places.push(place_of(&rest[..length]));
            rest = &rest[length..];
        }
        places.sort_unstable();
        let refused = documents.iter().filter(|bytes| is_refused(bytes));
        let expected: Vec<_> = refused.map(|bytes| place_of(bytes)).collect();
        assert_eq!(places, expected, "{name}");
        let lines = String::from_utf8(lines).expect("text").lines().count();
        assert_eq!(lines, expected.len(), "{name}");
    }
}

fn walk(folder: &Path) -> Vec<std::path::PathBuf> {
    let listed = std::fs::read_dir(folder).into_iter().flatten();
    let paths = listed.map(|entry| entry.expect("read").path());
    paths.flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect()
}

/// Runs a load until it ends, or for so many turns of the clock.
fn run(
    plan: RestorePlan,
    target: &Arc<Forgetful>,
    settings: LoadSettings,
    ledger: Ledger,
    rejects: Rejects,
    turns: usize,
) -> Option<(Tally, Ending)> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime");
    let load = load::load(Assignment {
        plan,
        target: Arc::clone(target),
        settings,
        observer: Arc::new(Silent),
        stop: Stop::new(),
        ledger: Some(Arc::new(ledger)),
        salvage: None,
        rejects: Some(Arc::new(rejects)),
        sums: None,
        began: Instant::now(),
    });
    let ended = runtime.block_on(async {
        let began = Instant::now();
        let mut load = std::pin::pin!(load);
        let mut left = turns;
        loop {
            tokio::select! {
                biased;
                ended = &mut load => return Some(ended),
                () = tokio::task::yield_now() => {
                    assert!(began.elapsed() < REAL_TIME_MAX, "the load hangs");
                    if left == 0 {
                        return None;
                    }
                    left -= 1;
                    std::thread::yield_now();
                    tokio::time::advance(TICK).await;
                }
            }
        }
    });
    runtime.shutdown_background();
    ended
}

#[test]
fn nothing_is_lost_or_doubled_however_often_tool_and_server_end() {
    each_seed(SEEDS, |seed| {
        let mut chance = Chance::new(seed);
        let folder = tempfile::tempdir().expect("a folder");
        let collections: Vec<_> = (0..chance.between(1, 4))
            .map(|number| (format!("c{number}"), documents(&mut chance)))
            .collect();
        let path = write(folder.path(), &collections, &mut chance);
        let worth = [Acknowledgement::Durable, Acknowledgement::Volatile];
        let target = Arc::new(Forgetful {
            acknowledgement: *chance.one_of(&worth),
            state: Mutex::new(State {
                chance: Chance::new(seed ^ 0x5EED),
                crashes: *chance.one_of(&[0, 2, 10]),
                collections: BTreeMap::new(),
                uuids: BTreeMap::new(),
                incarnation: 0,
                written: 0,
                durable: 0,
                violations: Vec::new(),
            }),
        });
        let settings = LoadSettings {
            readers: chance.between(1, 3),
            workers: Workers::Fixed(chance.between(1, 5)),
            batch: BatchLimits::new(chance.between(1, 20), chance.between(300, 3000)),
            zero_timestamps: ZeroTimestamps::Kept,
            ..LoadSettings::default()
        };
        let ledger = folder.path().join("ledger");
        let kills = chance.below(5);
        let (tally, ending) = (0..=kills)
            .find_map(|kill| {
                let turns = if kill == kills { usize::MAX } else { chance.between(1, 60) };
                let inventory = Dump::locate(&path, None, None)
                    .and_then(|dump| dump.scan())
                    .expect("a sound dump");
                let mut plan = plan::plan(&inventory, Selection::default(), &ServerFacts::null());
                let kept = if ledger.exists() {
                    if chance.percent(30) {
                        // A lock that can be had says that nobody writes any more.
                        drop(resumed(&mut plan.clone(), &ledger));
                        cut(&ledger, &mut chance);
                    }
                    resumed(&mut plan, &ledger)
                } else {
                    Ledger::begin(&ledger, "d".to_owned(), "t".to_owned(), WriteMode::Insert)
                        .expect("begun")
                };
                let rejects = rejects(&plan, &folder.path().join(REJECTS), kept.run());
                run(plan, &target, settings.clone(), kept, rejects, turns)
            })
            .expect("the last run is not killed");
        assert!(matches!(ending, Ending::Finished), "{ending:?}");
        check(&collections, &target, &tally);
        check_rejects(&collections, &folder.path().join(REJECTS));
    });
}

/// Takes some bytes off the end of a ledger, as when the machine ends with the tool; its first line
/// was synced.
fn cut(ledger: &Path, chance: &mut Chance) {
    let bytes = std::fs::read(ledger).expect("read");
    let first = bytes.iter().position(|&byte| byte == b'\n').expect("a line") + 1;
    let kept = bytes.len() - chance.below(300).min(bytes.len() - first);
    std::fs::write(ledger, &bytes[..kept]).expect("written");
}

fn check(collections: &[(String, Vec<Vec<u8>>)], target: &Forgetful, tally: &Tally) {
    let state = target.state();
    assert_eq!(state.violations, [""; 0]);
    let balance = tally.balance();
    assert!(balance.is_balanced(), "{balance:?}");
    let all: usize = collections.iter().map(|(_, documents)| documents.len()).sum();
    let refused = collections.iter().flat_map(|(_, documents)| documents);
    let refused = refused.filter(|bytes| is_refused(bytes)).count() as u64;
    assert_eq!((balance.read, balance.rejected, balance.unsent), (all as u64, refused, 0));
    for (name, documents) in collections {
        let held = &state.collections[name];
        let places: BTreeSet<i32> = held.values().map(|held| place_of(&held.bytes)).collect();
        assert_eq!(places.len(), held.len(), "{name}: a document is there twice");
        let taken = documents.iter().filter(|bytes| !is_refused(bytes)).count();
        assert_eq!(held.len(), taken, "{name}: documents are missing");
    }
}

fn place_of(bytes: &[u8]) -> i32 {
    let document = Document::from_reader(bytes).expect("a document");
    document.get_i32("place").expect("a place")
}
