//! Keeps what is durably done in a file, so that an interrupted restore can go on from there.
//!
//! The file is only ever appended to, and a line is written only once what it says is true on the
//! target: a line that is lost costs sending its documents again, never a document. Lines are
//! [`record::Record`]s; the first one says which dump and which target they are about.

pub mod record;

use std::collections::HashMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, BufRead, BufReader, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bson::oid::ObjectId;

use crate::error::{Error, ErrorKind};
use crate::namespace::Namespace;
use crate::plan::carried::Carried;
use crate::target::WriteMode;
use record::{About, Done, Record, Stands};

/// The most bytes of a line; names are the only part without a fixed length.
const LINE_BYTES_MAX: u64 = 64 * 1024;

/// A ledger that is being written.
#[derive(Debug)]
pub struct Ledger {
    path: PathBuf,
    run: ObjectId,
    open: Mutex<Open>,
}

#[derive(Debug)]
struct Open {
    file: File,
    /// The number of each collection, by its place in the plan.
    numbers: HashMap<usize, u32>,
    /// The number of the next collection.
    next: u32,
    /// Whether lines were written that may not be on the disk yet.
    is_unsynced: bool,
    /// Why nothing more is written, once something could not be; taken by who tells it.
    failure: Option<io::Error>,
    is_broken: bool,
}

/// What was done before, by a ledger.
#[derive(Debug)]
pub struct History {
    /// What the ledger is about.
    pub about: About,
    /// The collections that stand.
    pub collections: Vec<Past>,
    /// Whether the replay of an oplog was begun.
    pub oplog_begun: bool,
    /// Whether nothing is left to do.
    pub ended: bool,
}

/// What was done of one collection.
#[derive(Debug)]
pub struct Past {
    /// Its names and its UUID.
    pub stands: Stands,
    /// What of it is on the target.
    pub carried: Carried,
}

impl Ledger {
    /// Begins a ledger, in place of one that may be there.
    pub fn begin(
        path: &Path,
        dump: String,
        target: String,
        mode: WriteMode,
    ) -> Result<Self, Error> {
        let run = ObjectId::new();
        if let Some(folder) = path.parent() {
            // Where that fails, so does what follows, and says why.
            let _ = std::fs::create_dir_all(folder);
        }
        let about = About { version: record::VERSION, run: run.to_hex(), dump, target, mode };
        let opened =
            OpenOptions::new().create(true).truncate(false).read(true).write(true).open(path);
        let file = opened.map_err(|error| unusable(path, "cannot be opened", &error))?;
        lock(&file, path)?;
        file.set_len(0).map_err(|error| unusable(path, "cannot be written", &error))?;
        let ledger = Self::of(path, run, file, 0);
        ledger.write(&Record::Ledger(about));
        ledger.flush().map_err(|error| unusable(path, "cannot be written", &error))?;
        Ok(ledger)
    }

    /// Goes on with a ledger that is there.
    pub fn resume(path: &Path) -> Result<(Self, History), Error> {
        let opened = OpenOptions::new().read(true).write(true).open(path);
        let mut file = opened.map_err(|error| unusable(path, "cannot be opened", &error))?;
        lock(&file, path)?;
        let (history, whole) = read(&file, path)?;
        let run = ObjectId::parse_str(&history.about.run)
            .map_err(|error| damaged(path, 0, &format!("the name of its run: {error}")))?;
        // What follows the last whole line was being written when its run was killed.
        let cut = file.set_len(whole).and_then(|()| file.seek(SeekFrom::Start(whole)));
        cut.map_err(|error| unusable(path, "cannot be written", &error))?;
        let next = history.collections.iter().map(|past| past.stands.number + 1).max();
        Ok((Self::of(path, run, file, next.unwrap_or(0)), history))
    }

    fn of(path: &Path, run: ObjectId, file: File, next: u32) -> Self {
        let numbers = HashMap::new();
        let open =
            Open { file, numbers, next, is_unsynced: false, failure: None, is_broken: false };
        Self { path: path.to_path_buf(), run, open: Mutex::new(open) }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The run that began it.
    pub fn run(&self) -> ObjectId {
        self.run
    }

    /// Takes up a collection of an earlier run, by its place in the plan of this one.
    pub fn goes_on(&self, collection: usize, past: &Past) {
        self.open().numbers.insert(collection, past.stands.number);
    }

    /// Notes that a collection stands on the target; anything else of it comes after.
    pub fn stands(
        &self,
        collection: usize,
        source: &Namespace,
        target: &Namespace,
        uuid: Option<String>,
    ) {
        let number = {
            let mut open = self.open();
            if open.numbers.contains_key(&collection) {
                return;
            }
            let number = open.next;
            open.next += 1;
            open.numbers.insert(collection, number);
            number
        };
        let (source, target) = (source.full().to_owned(), target.full().to_owned());
        self.write(&Record::Collection(Stands { number, source, target, uuid }));
    }

    /// Notes what is done of a collection; a collection that was not noted to stand is not kept.
    pub fn done(&self, collection: usize, done: Done) {
        let number = self.open().numbers.get(&collection).copied();
        if let Some(collection) = number {
            self.write(&Record::Range(Done { collection, ..done }));
        }
    }

    /// Notes that the replay of an oplog begins.
    pub fn oplog(&self) {
        self.write(&Record::Oplog);
    }

    /// Notes that nothing is left to do.
    pub fn ended(&self) {
        self.write(&Record::Ended);
    }

    /// Brings what was noted to the disk, so that it outlives the machine as well; tells once what
    /// keeps it from being written. After that nothing more is, and every line that is there stays
    /// true.
    pub fn flush(&self) -> Result<(), io::Error> {
        let mut open = self.open();
        if open.is_unsynced && !open.is_broken {
            open.is_unsynced = false;
            let synced = open.file.sync_data();
            open.note(synced);
        }
        open.failure.take().map_or(Ok(()), Err)
    }

    /// Whether nothing was noted but what it is about.
    pub fn is_empty(&self) -> bool {
        self.open().next == 0
    }

    /// Removes the file, because there is nothing to go on with.
    pub fn remove(&self) -> Result<(), io::Error> {
        std::fs::remove_file(&self.path)
    }

    /// Writes a line at once, so that it outlives this process.
    fn write(&self, record: &Record) {
        // Only a map with keys that are no texts cannot be written as JSON.
        let Ok(line) = record::line(record) else {
            return;
        };
        let mut open = self.open();
        if !open.is_broken {
            open.is_unsynced = true;
            let written = open.file.write_all(line.as_bytes());
            open.note(written);
        }
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Open {
    /// Keeps a failure to be told, after which nothing more is written.
    fn note(&mut self, outcome: io::Result<()>) {
        if let Err(error) = outcome {
            self.is_broken = true;
            self.failure = Some(error);
        }
    }
}

/// Reads a ledger that nobody goes on with.
pub fn history(path: &Path) -> Result<History, Error> {
    let file = File::open(path).map_err(|error| unusable(path, "cannot be opened", &error))?;
    read(&file, path).map(|(history, _)| history)
}

/// Reads all whole lines; returns how many bytes they are.
fn read(file: &File, path: &Path) -> Result<(History, u64), Error> {
    let mut reader = BufReader::new(file);
    let mut history: Option<History> = None;
    let (mut at, mut line) = (0_u64, Vec::new());
    loop {
        line.clear();
        let count = io::Read::take(&mut reader, LINE_BYTES_MAX).read_until(b'\n', &mut line);
        let count = count.map_err(|error| unusable(path, "cannot be read", &error))? as u64;
        if count == 0 {
            break;
        }
        let record = line.strip_suffix(b"\n").and_then(record::parse);
        let Some(record) = record else {
            let is_last = reader.fill_buf().is_ok_and(<[u8]>::is_empty);
            if is_last && history.is_some() {
                break;
            }
            return Err(damaged(path, at, "a line that is cut or altered"));
        };
        match (&mut history, record) {
            (None, Record::Ledger(about)) if about.version == record::VERSION => {
                history = Some(History::of(about));
            }
            (None, Record::Ledger(about)) => {
                let what = format!("it has the form {}, which is not known here", about.version);
                return Err(damaged(path, at, &what));
            }
            (Some(history), record) => {
                let added = history.add(record);
                added.map_err(|what| damaged(path, at, what))?;
            }
            (None, _) => return Err(damaged(path, at, "it does not begin with what it is about")),
        }
        at += count;
    }
    history.map(|history| (history, at)).ok_or_else(|| damaged(path, 0, "it is empty"))
}

impl History {
    fn of(about: About) -> Self {
        Self { about, collections: Vec::new(), oplog_begun: false, ended: false }
    }

    fn add(&mut self, record: Record) -> Result<(), &'static str> {
        match record {
            Record::Ledger(_) => return Err("a second beginning"),
            Record::Collection(stands) => {
                if stands.number as usize != self.collections.len() {
                    return Err("a collection out of turn");
                }
                self.collections.push(Past { stands, carried: Carried::default() });
            }
            Record::Range(done) => {
                let past = self.collections.get_mut(done.collection as usize);
                let past = past.ok_or("documents of a collection that it does not know")?;
                if done.from > done.to {
                    return Err("documents that end before they begin");
                }
                let carried = &mut past.carried;
                carried.ranges.insert(done.from..done.to);
                carried.inserted = carried.inserted.saturating_add(done.inserted);
                carried.changes += done.changes;
                carried.already_there = carried.already_there.saturating_add(done.there);
                carried.rejected = carried.rejected.saturating_add(done.rejected);
                carried.conflicts = carried.conflicts.saturating_add(done.conflicts);
                let kept = &mut carried.rejects;
                kept.documents = kept.documents.max(done.kept);
                kept.lines = kept.lines.max(done.lines);
            }
            Record::Oplog => self.oplog_begun = true,
            Record::Ended => self.ended = true,
        }
        Ok(())
    }

    /// What was done of the collection with these names.
    pub fn find(&self, source: &Namespace, target: &Namespace) -> Option<&Past> {
        self.collections
            .iter()
            .find(|past| past.stands.source == source.full() && past.stands.target == target.full())
    }

    /// Documents that are done with.
    pub fn documents(&self) -> u64 {
        self.collections.iter().map(|past| past.carried.documents()).sum()
    }
}

fn lock(file: &File, path: &Path) -> Result<(), Error> {
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => {
            Err(Error::new(ErrorKind::Plan, "another restore is writing this ledger")
                .in_file(path)
                .hint("wait for it to end, or give this one a ledger of its own with --ledger"))
        }
        // Some network file systems know no locks.
        Ok(()) | Err(TryLockError::Error(_)) => Ok(()),
    }
}

fn unusable(path: &Path, what: &str, error: &io::Error) -> Error {
    Error::new(ErrorKind::Plan, format!("the ledger {what}: {error}")).in_file(path).hint(
        "name another place with --ledger FILE; --ledger none goes without, but nothing can be \
             resumed then",
    )
}

fn damaged(path: &Path, at: u64, what: &str) -> Error {
    Error::new(ErrorKind::Plan, format!("the ledger is damaged: {what}"))
        .in_file(path)
        .at_byte(at)
        .hint(
            "begin the restore anew without --resume, with --drop where collections are to be \
             replaced",
        )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::changes::Changes;
    use proptest::prelude::*;

    fn done(from: u64, to: u64) -> Done {
        Done {
            collection: 0,
            from,
            to,
            inserted: 2,
            changes: Changes::default(),
            there: 1,
            rejected: 0,
            conflicts: 0,
            kept: 0,
            lines: 0,
        }
    }

    fn names() -> (Namespace, Namespace) {
        (Namespace::new("shop", "orders"), Namespace::new("copy", "orders"))
    }

    /// A ledger with one collection of which two stretches are done, and its bytes.
    fn written() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("ledger");
        let ledger =
            Ledger::begin(&path, "d".to_owned(), "t".to_owned(), WriteMode::Insert).expect("begun");
        let (source, target) = names();
        ledger.stands(4, &source, &target, Some("u".to_owned()));
        ledger.done(4, done(0, 10));
        ledger.done(7, done(0, 99));
        ledger.done(4, done(20, 30));
        ledger.flush().expect("written");
        (folder, path)
    }

    #[test]
    fn what_was_noted_is_read_again() {
        let (_folder, path) = written();
        let history = history(&path).expect("read");
        assert_eq!((&*history.about.dump, &*history.about.target), ("d", "t"));
        let (source, target) = names();
        let past = history.find(&source, &target).expect("noted");
        assert_eq!(past.carried.ranges.iter().collect::<Vec<_>>(), [0..10, 20..30]);
        assert_eq!((past.carried.inserted, past.carried.already_there), (4, 2));
        assert!(history.find(&target, &source).is_none());
        assert!(!history.ended && !history.oplog_begun);
    }

    #[test]
    fn a_ledger_that_is_resumed_goes_on() {
        let (_folder, path) = written();
        let (ledger, earlier) = Ledger::resume(&path).expect("read");
        assert_eq!(ledger.run().to_hex(), earlier.about.run);
        ledger.goes_on(1, &earlier.collections[0]);
        ledger.done(1, done(10, 20));
        let other = Namespace::new("shop", "other");
        ledger.stands(2, &other, &other, None);
        ledger.ended();
        ledger.flush().expect("written");
        drop(ledger);
        let history = history(&path).expect("read");
        let ranges = &history.collections[0].carried.ranges;
        assert_eq!((ranges.iter().count(), ranges.bytes()), (1, 30));
        assert_eq!(history.collections.len(), 2);
        assert!(history.ended);
    }

    #[test]
    fn a_ledger_is_written_by_one_at_a_time() {
        let (_folder, path) = written();
        let (_held, _) = Ledger::resume(&path).expect("free");
        let error = Ledger::resume(&path).expect_err("held");
        assert!(error.to_string().contains("another restore"), "{error}");
    }

    proptest! {
        #[test]
        fn a_ledger_that_is_cut_anywhere_tells_what_it_still_holds(cut in 0_usize..2000) {
            let (_folder, path) = written();
            let whole = std::fs::read(&path).expect("read");
            let cut = cut % whole.len();
            std::fs::write(&path, &whole[..cut]).expect("written");
            let first = whole.iter().position(|&byte| byte == b'\n').expect("a line") + 1;
            match Ledger::resume(&path) {
                Ok((ledger, history)) => {
                    prop_assert!(cut >= first);
                    let documents = history.documents();
                    prop_assert!(documents <= 6);
                    ledger.ended();
                    ledger.flush().expect("written");
                    drop(ledger);
                    let again = super::history(&path).expect("whole");
                    prop_assert!(again.ended);
                    prop_assert_eq!(again.documents(), documents);
                }
                Err(error) => {
                    prop_assert!(cut < first);
                    prop_assert_eq!(error.offset(), Some(0));
                }
            }
        }

        #[test]
        fn a_ledger_that_is_altered_is_refused_or_says_less(
            place in 0_usize..2000,
            byte in any::<u8>(),
        ) {
            let (_folder, path) = written();
            let mut bytes = std::fs::read(&path).expect("read");
            let place = place % bytes.len();
            prop_assume!(bytes[place] != byte);
            bytes[place] = byte;
            std::fs::write(&path, &bytes).expect("written");
            if let Ok(history) = history(&path) {
                prop_assert!(history.documents() < 6);
            }
        }
    }
}
