//! The lines that mongorestore and mongoimport write, made from events: scripts that look for them
//! go on.
//!
//! Every line is a time, a tabulator and a sentence. Errors are written even where nothing else is
//! wanted; what mongorestore repeats for each refused document is written for the first few.

mod grid;
mod import;

use std::io::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::ZonedDateTime;

use crate::exit::ExitStatus;
use crate::limits::{FAILURE_SAMPLES, PROGRESS_LINE_INTERVAL};
use crate::namespace::Namespace;
use crate::report::event::{Event, Observer, Phase, Rejection, Standing};
use crate::report::mongorestore::grid::{Row, grid};
use crate::report::pulse::{Beat, Pulse};
use crate::report::tally::Tally;
use crate::report::tally::collection::CollectionTally;
use crate::report::value::{Outcome, Report};

/// Whose lines are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    /// Those of mongorestore.
    Mongorestore,
    /// Those of mongoimport.
    Mongoimport,
}

impl Tool {
    /// The name of the program.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mongorestore => "mongorestore",
            Self::Mongoimport => "mongoimport",
        }
    }

    /// The last line of every run.
    fn total(self, done: u64, failed: u64) -> String {
        let (past, present) = match self {
            Self::Mongorestore => ("restored", "restore"),
            Self::Mongoimport => ("imported", "import"),
        };
        format!("{done} document(s) {past} successfully. {failed} document(s) failed to {present}.")
    }
}

/// How much is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Errors alone.
    Quiet,
    /// What mongorestore always says.
    Normal,
    /// Notes, repeated commands and single indexes as well.
    Verbose,
}

/// An observer that writes a run down in the words of another tool.
pub struct Log {
    tool: Tool,
    level: Level,
    state: Arc<Mutex<State>>,
    pulse: Mutex<Option<Pulse>>,
}

struct State {
    tool: Tool,
    out: Box<dyn Write + Send>,
    tally: Tally,
    /// Refused documents written so far, for each collection.
    rejections: Vec<usize>,
    /// Which collections stood in a table of progress.
    shown: Vec<bool>,
}

impl Log {
    /// Writes to `out`; what cannot be written is lost, because a closed log must not end a run.
    pub fn new(tool: Tool, out: Box<dyn Write + Send>, level: Level) -> Self {
        let (tally, rejections, shown) = (Tally::default(), Vec::new(), Vec::new());
        let state = State { tool, out, tally, rejections, shown };
        Self { tool, level, state: Arc::new(Mutex::new(state)), pulse: Mutex::new(None) }
    }

    /// Whose lines are written.
    pub fn tool(&self) -> Tool {
        self.tool
    }

    /// Writes how far the run is every few seconds from now on until its end, whether or not
    /// anything happens.
    pub fn keep_showing(&self) {
        self.show_every(PROGRESS_LINE_INTERVAL);
    }

    fn show_every(&self, interval: Duration) {
        if self.level > Level::Quiet {
            let state = Arc::clone(&self.state);
            let pulse = Pulse::start(interval, move |beat| {
                if beat == Beat::Due {
                    lock(&state).progress();
                }
            });
            *lock(&self.pulse) = Some(pulse);
        }
    }

    /// Writes nothing by itself any more.
    pub fn stop_showing(&self) {
        drop(lock(&self.pulse).take());
    }

    /// Writes a line that everyone should see unless nothing is wanted.
    pub fn say(&self, text: &str) {
        if self.level > Level::Quiet {
            self.state().line(text);
        }
    }

    /// Writes an error, whatever is wanted.
    pub fn fail(&self, text: &str) {
        self.state().line(text);
    }

    /// Writes how the run came out, down to the line with the counts.
    pub fn end(&self, report: &Report) {
        let mut state = self.state();
        for skipped in &report.skipped {
            let line = format!("{}: {}", skipped.what, skipped.reason);
            if skipped.is_problem {
                state.line(&format!("Failed: {line}"));
            } else if self.level == Level::Verbose {
                state.line(&format!("skipping {line}"));
            }
        }
        match &report.outcome {
            Outcome::Finished => {}
            Outcome::Stopped { error } => state.line(&format!("Failed: {error}")),
            Outcome::Interrupted => state.line("Failed: received termination signal"),
        }
        if self.level > Level::Quiet || report.exit_status != ExitStatus::Restored {
            let balance = report.balance;
            let done = balance.done() + balance.already_there;
            let failed = balance.rejected + balance.unsent;
            state.line(&match self.tool {
                Tool::Mongorestore => self.tool.total(done, failed),
                // The peer does not count documents that left the stored one as it was.
                Tool::Mongoimport => {
                    import::total(report, done - balance.changes.unchanged, failed)
                }
            });
        }
    }

    /// Writes the counts of a run that did not begin.
    pub fn end_without_documents(&self) {
        self.say(&self.tool.total(0, 0));
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

/// A log stays usable after a panic elsewhere: every line leaves it whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Observer for Log {
    fn observe(&self, at: Duration, event: &Event) {
        let mut state = self.state();
        state.tally.apply(at, event);
        if let Event::Planned { collections } = event {
            state.rejections = vec![0; collections.len()];
            state.shown = vec![false; collections.len()];
        }
        for line in state.lines_of(event, self.level) {
            state.line(&line);
        }
    }
}

impl State {
    fn line(&mut self, text: &str) {
        let stamp = stamp(&ZonedDateTime::now());
        for text in text.lines() {
            let line = writeln!(self.out, "{stamp}\t{text}");
            let _ = line.and_then(|()| self.out.flush());
        }
    }

    /// What is said of an event.
    fn lines_of(&mut self, event: &Event, level: Level) -> Vec<String> {
        if self.tool == Tool::Mongoimport {
            return self.lines_of_import(event, level);
        }
        match event {
            Event::CollectionFailed { collection, error } => {
                vec![format!("Failed: {}: error restoring: {error}", self.name(*collection))]
            }
            Event::IndexFailed { collection, index, reason } => {
                let name = self.name(*collection);
                vec![format!("Failed: {name}: error creating index {}: {reason}", quoted(index))]
            }
            Event::UsersEnded { failure: Some(failure) } => {
                vec![format!("Failed: error restoring users and roles: {failure}")]
            }
            _ if level == Level::Quiet => Vec::new(),
            Event::Planned { .. } => self.planned(),
            Event::PrepareBegan { collection } => self.preparing(*collection),
            Event::PhaseBegan(Phase::Users) => self.users(),
            Event::PhaseBegan(Phase::Oplog) => vec!["replaying oplog".to_owned()],
            Event::OplogEnded { .. } => self.oplog(),
            Event::ReadBegan { collection } => vec![self.reading(*collection)],
            Event::Rejected { collection, rejections } => self.rejected(*collection, rejections),
            Event::DataEnded { collection } => self.finished(*collection),
            _ if level == Level::Normal => Vec::new(),
            Event::IndexBuilt { collection, index, .. } => {
                vec![format!("index {} of {} stands", quoted(index), self.name(*collection))]
            }
            Event::Retried { collection: Some(collection), reason, .. } => {
                vec![format!("{}: tried again: {reason}", self.name(*collection))]
            }
            Event::Retried { collection: None, reason, .. } => {
                vec![format!("tried again: {reason}")]
            }
            Event::Note { collection: Some(collection), text } => {
                vec![format!("{}: {text}", self.name(*collection))]
            }
            Event::Note { collection: None, text } => vec![text.clone()],
            _ => Vec::new(),
        }
    }

    fn collection(&self, collection: usize) -> Option<&CollectionTally> {
        self.tally.collections().get(collection)
    }

    fn name(&self, collection: usize) -> String {
        self.collection(collection).map(|tally| tally.namespace().to_string()).unwrap_or_default()
    }

    /// The first line, and one for each file with options and indexes.
    fn planned(&self) -> Vec<String> {
        let read = self.tally.collections().iter().map(|tally| &tally.planned);
        let read = read.filter(|planned| !planned.metadata.is_empty()).map(|planned| {
            let name = quoted(&planned.namespace.to_string());
            format!("reading metadata for {name} from {}", quoted(&planned.metadata))
        });
        std::iter::once("preparing collections to restore from".to_owned()).chain(read).collect()
    }

    /// What becomes of a collection that stands there.
    fn preparing(&self, collection: usize) -> Vec<String> {
        let name = quoted(&self.name(collection));
        let standing = self.collection(collection).map(|tally| tally.planned.standing);
        match standing {
            None | Some(Standing::Absent) => Vec::new(),
            Some(Standing::Kept) => {
                vec![format!("restoring to existing collection {name} without dropping")]
            }
            Some(Standing::Dropped) => {
                vec![format!("dropping collection {name} before restoring")]
            }
            Some(Standing::Emptied) => {
                vec![format!("cannot drop system collection {name}, emptying it")]
            }
        }
    }

    fn users(&self) -> Vec<String> {
        let Some(tally) = self.tally.users() else {
            return Vec::new();
        };
        let halves = [("users", tally.users.is_empty()), ("roles", tally.roles.is_empty())];
        let halves = halves.iter().filter(|(_, is_empty)| !is_empty);
        halves.map(|(what, _)| format!("restoring {what}")).collect()
    }

    fn oplog(&self) -> Vec<String> {
        let applied = self.tally.oplog().map_or(0, |oplog| oplog.entries);
        vec![format!("applied {applied} oplog entries")]
    }

    /// Writes how far the collections are that are being worked on.
    fn progress(&mut self) {
        let mut rows = Vec::new();
        for (collection, tally) in self.tally.active() {
            rows.push(Row::of(tally));
            if let Some(shown) = self.shown.get_mut(collection) {
                *shown = true;
            }
        }
        if let (Some((Phase::Oplog, _)), Some(oplog)) = (self.tally.phase(), self.tally.oplog()) {
            rows.push(Row::of_oplog(oplog.entries));
        }
        for line in grid(&rows) {
            self.line(&line);
        }
    }

    fn reading(&self, collection: usize) -> String {
        let Some(tally) = self.collection(collection) else {
            return String::new();
        };
        let namespace = data_namespace(tally).to_string();
        format!("restoring {} from {}", quoted(&namespace), quoted(&tally.planned.origin))
    }

    /// The first refused documents of a collection.
    fn rejected(&mut self, collection: usize, rejections: &[Rejection]) -> Vec<String> {
        let Some(said) = self.rejections.get_mut(collection) else {
            return Vec::new();
        };
        let left = FAILURE_SAMPLES - *said;
        let lines: Vec<_> = rejections
            .iter()
            .take(left)
            .map(|rejection| format!("continuing through error: {}", rejection.message))
            .collect();
        *said += lines.len();
        lines
    }

    fn finished(&self, collection: usize) -> Vec<String> {
        let Some(tally) = self.collection(collection) else {
            return Vec::new();
        };
        let counts = tally.counts;
        let name = quoted(&tally.namespace().to_string());
        let restored = counts.inserted + counts.already_there;
        let documents = numbered(restored, "document");
        let failures = numbered(counts.rejected, "failure");
        let indexes = match tally.planned.indexes {
            0 => format!("no indexes to restore for collection {name}"),
            _ => format!("restoring indexes for collection {name} from metadata"),
        };
        let was_shown = self.shown.get(collection) == Some(&true);
        let mut lines = if was_shown { grid(&[Row::of(tally)]) } else { Vec::new() };
        lines.push(format!("finished restoring {name} ({documents}, {failures})"));
        lines.push(indexes);
        lines
    }
}

/// A count of something, of which one is singular alone.
fn numbered(count: u64, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

/// Where the documents of a collection are inserted.
fn data_namespace(tally: &CollectionTally) -> Namespace {
    let namespace = tally.namespace();
    if tally.planned.kind == "timeseries" { namespace.buckets() } else { namespace.clone() }
}

/// A name in backquotes, or in double quotes with escapes where that would be unclear.
fn quoted(name: &str) -> String {
    let is_plain = |character: char| {
        (!character.is_control() || character == '\t')
            && !matches!(character, '`' | '\u{7f}' | '\u{feff}')
    };
    if name.chars().all(is_plain) { format!("`{name}`") } else { format!("{name:?}") }
}

/// A moment as `YYYY-MM-DDTHH:MM:SS.mmm±ZZZZ`, in the time zone of the system or of `TZ`.
fn stamp(moment: &ZonedDateTime) -> String {
    moment.strftime("%Y-%m-%dT%H:%M:%S%.3f%z").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::PlannedCollection;
    use crate::report::value::samples;

    #[derive(Clone, Default)]
    struct Paper(Arc<Mutex<Vec<u8>>>);

    impl Write for Paper {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().expect("no panic").extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    /// What is written of these events, without the times.
    fn written(level: Level, events: &[Event], finish: impl Fn(&Log)) -> Vec<String> {
        let paper = Paper::default();
        let log = Log::new(Tool::Mongorestore, Box::new(paper.clone()), level);
        for event in events {
            log.observe(Duration::from_secs(1), event);
        }
        finish(&log);
        let text = String::from_utf8(paper.0.lock().expect("no panic").clone()).expect("text");
        text.lines().map(|line| line.split_once('\t').expect("a time").1.to_owned()).collect()
    }

    fn rejected(count: usize) -> Event {
        let rejection = Rejection {
            code: 11000,
            message: "E11000 duplicate".into(),
            id: "1".into(),
            is_conflict: false,
        };
        Event::Rejected { collection: 0, rejections: vec![rejection; count] }
    }

    #[test]
    fn a_clean_run_has_the_lines_that_scripts_look_for() {
        let mut tally = Tally::default();
        for event in samples::clean_events() {
            tally.apply(Duration::ZERO, &event);
        }
        let report = Report::new(&tally, samples::context());
        assert_eq!(
            written(Level::Normal, &samples::clean_events(), |log| log.end(&report)),
            [
                "preparing collections to restore from",
                "restoring `shop.orders` from `dump/shop/orders.bson`",
                "finished restoring `shop.orders` (10 documents, 0 failures)",
                "restoring indexes for collection `shop.orders` from metadata",
                "restoring `shop.items` from `dump/shop/items.bson`",
                "finished restoring `shop.items` (10 documents, 0 failures)",
                "no indexes to restore for collection `shop.items`",
                "20 document(s) restored successfully. 0 document(s) failed to restore.",
            ]
        );
        let quiet = written(Level::Quiet, &samples::clean_events(), |log| log.end(&report));
        assert_eq!(quiet, [""; 0]);
    }

    #[test]
    fn errors_are_written_even_where_nothing_else_is_wanted() {
        let mut events = samples::clean_events();
        events.insert(1, rejected(1));
        events.push(samples::failed(1));
        events.push(samples::index_failed(0));
        let lines = written(Level::Quiet, &events, |_| {});
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(lines[0].starts_with("Failed: shop.items: error restoring: "), "{lines:?}");
        assert!(lines[1].starts_with("Failed: shop.orders: error creating index `number_1`"));
    }

    #[test]
    fn refused_documents_are_shown_until_there_are_enough() {
        let planned = samples::clean_events().remove(0);
        let lines = written(Level::Normal, &[planned, rejected(3), rejected(30)], |_| {});
        let shown =
            lines.iter().filter(|line| line.starts_with("continuing through error: E11000"));
        assert_eq!(shown.count(), FAILURE_SAMPLES);
    }

    #[test]
    fn names_are_quoted_so_that_each_is_one_word() {
        assert_eq!(quoted("a.b"), "`a.b`");
        assert_eq!(quoted("g\nh"), "\"g\\nh\"");
        assert_eq!(quoted("a`b"), "\"a`b\"");
    }

    /// What is written of a run that stands still after its first documents, for a while.
    fn written_while_still(events: &[Event], last: &[Event]) -> Vec<String> {
        let paper = Paper::default();
        let log = Log::new(Tool::Mongorestore, Box::new(paper.clone()), Level::Normal);
        for event in events {
            log.observe(Duration::ZERO, event);
        }
        log.show_every(Duration::from_millis(5));
        let text = || String::from_utf8(paper.0.lock().expect("no panic").clone()).expect("text");
        while text().matches("900B/900B").count() < 3 {
            std::thread::yield_now();
        }
        log.stop_showing();
        for event in last {
            log.observe(Duration::ZERO, event);
        }
        text().lines().map(|line| line.split_once('\t').expect("a time").1.to_owned()).collect()
    }

    #[test]
    fn a_run_that_stands_still_goes_on_saying_where() {
        let events = samples::clean_events();
        let ended = events.iter().position(|event| matches!(event, Event::DataEnded { .. }));
        let (before, after) = events.split_at(ended.expect("it ends"));
        let lines = written_while_still(before, &after[..1]);
        let bar = "[########################]  shop.orders  900B/900B  (100.0%)";
        assert!(lines.iter().filter(|line| *line == bar).count() >= 4, "{lines:?}");
        // What was shown is shown once more when it has ended.
        let finished = lines.iter().position(|line| line.starts_with("finished restoring"));
        assert_eq!(lines[finished.expect("it is said") - 1], bar);
    }

    #[test]
    fn what_stands_there_and_what_describes_it_is_said() {
        let collections = [Standing::Dropped, Standing::Kept, Standing::Emptied, Standing::Absent]
            .map(|standing| PlannedCollection {
                standing,
                metadata: "dump/shop/a.metadata.json".into(),
                ..samples::planned("a", 0, 0)
            })
            .map(Arc::new)
            .to_vec();
        let mut events = vec![Event::Planned { collections }];
        events.extend((0..4).map(|collection| Event::PrepareBegan { collection }));
        let lines = written(Level::Normal, &events, |_| {});
        assert_eq!(lines[1], "reading metadata for `shop.a` from `dump/shop/a.metadata.json`");
        assert_eq!(
            lines[5..],
            [
                "dropping collection `shop.a` before restoring",
                "restoring to existing collection `shop.a` without dropping",
                "cannot drop system collection `shop.a`, emptying it",
            ]
        );
    }

    #[test]
    fn users_and_an_oplog_have_their_lines() {
        let time = crate::report::OplogTime { seconds: 1, increment: 1 };
        let events = [
            Event::Planned { collections: Vec::new() },
            Event::UsersPlanned { users: vec!["shop.ann".into()], roles: Vec::new() },
            Event::OplogPlanned { path: "dump/oplog.bson".into() },
            Event::PhaseBegan(Phase::Users),
            Event::UsersEnded { failure: Some("not allowed".into()) },
            Event::PhaseBegan(Phase::Oplog),
            Event::OplogApplied { entries: 7, operations: 9, left_out: 0, first: time, last: time },
            Event::OplogEnded { reached_limit: false },
        ];
        assert_eq!(
            written(Level::Normal, &events, |_| {})[1..],
            [
                "restoring users",
                "Failed: error restoring users and roles: not allowed",
                "replaying oplog",
                "applied 7 oplog entries",
            ]
        );
    }

    #[test]
    fn moments_are_written_in_the_zone_of_the_system() {
        let moment = jiff::Timestamp::from_millisecond(951_782_400_250).expect("a moment");
        for (zone, expected) in [
            (jiff::tz::TimeZone::UTC, "2000-02-29T00:00:00.250+0000"),
            (jiff::tz::TimeZone::fixed(jiff::tz::offset(-3)), "2000-02-28T21:00:00.250-0300"),
        ] {
            assert_eq!(stamp(&moment.to_zoned_datetime(zone)), expected);
        }
    }
}
