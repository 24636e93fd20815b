//! Buckets of mixed schema, which a target takes only once it was told that they may come.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bson::{Bson, Document, RawBson, RawDocumentBuf, Uuid, doc};
use restorm::batch::{Batch, BatchLimits, ZeroTimestamps};
use restorm::dump::Dump;
use restorm::facts::ServerFacts;
use restorm::load::{
    self, Assignment, DocumentCheck, Ending, LoadSettings, OnRejection, Stop, Workers,
};
use restorm::namespace::Namespace;
use restorm::plan::{self, Insertion, Selection};
use restorm::report::{Silent, Tally};
use restorm::target::{
    Documents, Fault, Insert, MergeUsers, OnRefusal, Target, TargetError, Validators, WriteFailure,
    WriteOutcome,
};

/// `CannotInsertTimeseriesBucketsWithMixedSchema`.
const MIXED_SCHEMA: i32 = 408;

/// How the target refuses a bucket of mixed schema.
#[derive(Clone, Copy, PartialEq)]
enum Manner {
    /// It refuses the bucket.
    Bucket,
    /// It refuses the whole command.
    Command,
}

/// Refuses every third bucket until it is told that buckets may be mixed.
struct Strict {
    manner: Manner,
    /// Whether it knows what it is told.
    understands: bool,
    is_allowed: AtomicBool,
    told: AtomicUsize,
    stored: Mutex<Vec<i32>>,
}

impl Strict {
    fn refuses(&self, id: i32) -> bool {
        id % 3 == 0 && !self.is_allowed.load(Ordering::SeqCst)
    }
}

fn refused(code: i32) -> TargetError {
    let message = "mixed schema".to_owned();
    TargetError { fault: Fault::Refused, code: Some(code), labels: Vec::new(), message }
}

impl Target for Strict {
    async fn drop_collection(&self, _: &Namespace) -> Result<(), TargetError> {
        Ok(())
    }

    async fn empty(&self, _: &Namespace) -> Result<(), TargetError> {
        Ok(())
    }

    async fn create(
        &self,
        _: &Namespace,
        _: &Document,
        _: Option<Uuid>,
    ) -> Result<(), TargetError> {
        Ok(())
    }

    async fn insert(
        &self,
        insert: &Insert,
        batch: &Batch,
        documents: &Documents,
    ) -> Result<WriteOutcome, TargetError> {
        assert_eq!(insert.namespace.collection(), "system.buckets.weather");
        tokio::task::yield_now().await;
        let frames: Vec<_> = batch.frames().collect();
        let ids: Vec<(u32, i32)> = documents
            .indexes(batch.documents)
            .into_iter()
            .map(|index| {
                let document = Document::from_reader(frames[index as usize].bytes());
                (index, document.expect("a document").get_i32("_id").expect("a number"))
            })
            .collect();
        if self.manner == Manner::Command && ids.iter().any(|(_, id)| self.refuses(*id)) {
            return Err(refused(MIXED_SCHEMA));
        }
        let mut outcome = WriteOutcome::default();
        for (place, (index, id)) in ids.iter().enumerate() {
            if self.refuses(*id) {
                let message = "mixed schema".to_owned();
                outcome.failures.push(WriteFailure { index: *index, code: MIXED_SCHEMA, message });
                if insert.on_refusal == OnRefusal::Stop {
                    outcome.not_tried = u32::try_from(ids.len() - place - 1).expect("few");
                    break;
                }
            } else {
                outcome.inserted += 1;
                self.stored.lock().expect("whole").push(*id);
            }
        }
        Ok(outcome)
    }

    async fn stored(
        &self,
        _: &Namespace,
        _: Vec<RawBson>,
        _: &mut (dyn FnMut(RawDocumentBuf) + Send),
    ) -> Result<(), TargetError> {
        Ok(())
    }

    async fn create_indexes(&self, _: &Namespace, _: &[Document]) -> Result<(), TargetError> {
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

    async fn allow_mixed_schema(&self, namespace: &Namespace) -> Result<(), TargetError> {
        assert_eq!(namespace.collection(), "weather");
        self.told.fetch_add(1, Ordering::SeqCst);
        if !self.understands {
            return Err(refused(72));
        }
        self.is_allowed.store(true, Ordering::SeqCst);
        Ok(())
    }

    async fn expire_after(&self, _: &Namespace, _: &Bson) -> Result<(), TargetError> {
        Ok(())
    }
}

const BUCKETS: i32 = 40;

fn dump(folder: &Path) {
    let database = folder.join("d");
    std::fs::create_dir(&database).expect("a folder");
    let buckets: Vec<u8> =
        (1..=BUCKETS).flat_map(|id| doc! { "_id": id }.to_vec().expect("encodes")).collect();
    std::fs::write(database.join("system.buckets.weather.bson"), buckets).expect("written");
    let metadata = br#"{"options":{"timeseries":{"timeField":"t"}},"indexes":[]}"#;
    std::fs::write(database.join("weather.metadata.json"), metadata).expect("written");
}

/// Loads the dump into a target; returns it with the counts.
fn load(manner: Manner, understands: bool, insertion: Insertion) -> (Arc<Strict>, Tally) {
    let folder = tempfile::tempdir().expect("a folder");
    dump(folder.path());
    let inventory = Dump::locate(folder.path(), None, None).and_then(|dump| dump.scan());
    let selection = Selection { insertion, ..Selection::default() };
    let plan = plan::plan(&inventory.expect("a dump"), selection, &ServerFacts::null());
    let target = Arc::new(Strict {
        manner,
        understands,
        is_allowed: AtomicBool::new(false),
        told: AtomicUsize::new(0),
        stored: Mutex::default(),
    });
    let settings = LoadSettings {
        memory: restorm::limits::MEMORY_DEFAULT,
        readers: 1,
        workers: Workers::Fixed(4),
        rate_limit: None,
        lag_max: None,
        batch: BatchLimits::new(7, 10_000),
        index_builds: 1,
        write_mode: restorm::target::WriteMode::Insert,
        keys: restorm::target::keys::KeyFields::default(),
        names: restorm::target::FieldNames::default(),
        zero_timestamps: ZeroTimestamps::Kept,
        on_rejection: OnRejection::GoOn,
        failure_limit: None,
        document_check: DocumentCheck::Extent,
        retry_for: Duration::from_secs(1),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let (tally, ending) = runtime.expect("a runtime").block_on(load::load(Assignment {
        plan,
        target: Arc::clone(&target),
        settings,
        observer: Arc::new(Silent),
        ledger: None,
        salvage: None,
        rejects: None,
        sums: None,
        stop: Stop::new(),
        began: Instant::now(),
    }));
    assert!(matches!(ending, Ending::Finished), "{ending:?}");
    (target, tally)
}

/// The peer asks for it after the last batch of a collection only; before, the run ends.
#[test]
fn better_than_the_peer_mixed_buckets_arrive_in_whichever_batch() {
    for manner in [Manner::Bucket, Manner::Command] {
        let (target, tally) = load(manner, true, Insertion::AnyOrder);
        let mut stored = target.stored.lock().expect("whole").clone();
        stored.sort_unstable();
        assert_eq!(stored, (1..=BUCKETS).collect::<Vec<_>>());
        assert_eq!(target.told.load(Ordering::SeqCst), 1, "it is asked for once");
        assert_eq!(tally.counts().rejected, 0);
        let notes: Vec<_> = tally.notes().iter().map(|note| note.text.as_str()).collect();
        assert!(
            notes.iter().any(|note| note.contains("several types under one name")),
            "{notes:?}"
        );
    }
}

#[test]
fn mixed_buckets_keep_their_order() {
    for manner in [Manner::Bucket, Manner::Command] {
        let (target, _) = load(manner, true, Insertion::InOrder);
        assert_eq!(*target.stored.lock().expect("whole"), (1..=BUCKETS).collect::<Vec<_>>());
    }
}

#[test]
fn buckets_that_stay_refused_are_counted_one_by_one() {
    for manner in [Manner::Bucket, Manner::Command] {
        let (target, tally) = load(manner, false, Insertion::AnyOrder);
        let refused = u64::try_from(BUCKETS / 3).expect("positive");
        assert_eq!(tally.counts().rejected, refused);
        assert_eq!(tally.counts().inserted, u64::try_from(BUCKETS).expect("positive") - refused);
        assert_eq!(target.told.load(Ordering::SeqCst), 1);
    }
}
