//! The lines that mongorestore writes, made from events: scripts that look for them go on.
//!
//! Every line is a time, a tabulator and a sentence. Errors are written even where nothing else is
//! wanted; what mongorestore repeats for each refused document is written for the first few.

use std::fmt::Write as _;
use std::io::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::exit::ExitStatus;
use crate::limits::{FAILURE_SAMPLES, PROGRESS_LINE_INTERVAL};
use crate::namespace::Namespace;
use crate::report::event::{Event, Observer, Rejection};
use crate::report::tally::Tally;
use crate::report::tally::collection::CollectionTally;
use crate::report::value::{Outcome, Report};

/// The characters between the brackets of a bar.
const BAR_CELLS: u64 = 24;

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

/// An observer that writes a run down in mongorestore's words.
pub struct Log {
    level: Level,
    state: Mutex<State>,
}

struct State {
    out: Box<dyn Write + Send>,
    tally: Tally,
    /// Refused documents written so far, for each collection.
    rejections: Vec<usize>,
    progress_at: Duration,
}

impl Log {
    /// Writes to `out`; what cannot be written is lost, because a closed log must not end a run.
    pub fn new(out: Box<dyn Write + Send>, level: Level) -> Self {
        let state = State {
            out,
            tally: Tally::default(),
            rejections: Vec::new(),
            progress_at: Duration::ZERO,
        };
        Self { level, state: Mutex::new(state) }
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
            let restored = balance.inserted + balance.already_there;
            state.line(&total(restored, balance.rejected + balance.unsent));
        }
    }

    /// Writes the counts of a run that did not begin.
    pub fn end_without_documents(&self) {
        self.say(&total(0, 0));
    }

    /// A log stays usable after a panic elsewhere: every line leaves it whole.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The last line of every run.
fn total(restored: u64, failed: u64) -> String {
    format!("{restored} document(s) restored successfully. {failed} document(s) failed to restore.")
}

impl Observer for Log {
    fn observe(&self, at: Duration, event: &Event) {
        let mut state = self.state();
        state.tally.apply(at, event);
        if let Event::Planned { collections } = event {
            state.rejections = vec![0; collections.len()];
        }
        for line in state.lines_of(event, self.level) {
            state.line(&line);
        }
        let is_due = at.saturating_sub(state.progress_at) >= PROGRESS_LINE_INTERVAL;
        if self.level > Level::Quiet && is_due && matches!(event, Event::Written { .. }) {
            state.progress_at = at;
            for line in progress(&state.tally) {
                state.line(&line);
            }
        }
    }
}

impl State {
    fn line(&mut self, text: &str) {
        let stamp = stamp(SystemTime::now());
        for text in text.lines() {
            let line = writeln!(self.out, "{stamp}\t{text}");
            let _ = line.and_then(|()| self.out.flush());
        }
    }

    /// What is said of an event.
    fn lines_of(&mut self, event: &Event, level: Level) -> Vec<String> {
        match event {
            Event::CollectionFailed { collection, error } => {
                vec![format!("Failed: {}: error restoring: {error}", self.name(*collection))]
            }
            Event::IndexFailed { collection, index, reason } => {
                let name = self.name(*collection);
                vec![format!("Failed: {name}: error creating index {}: {reason}", quoted(index))]
            }
            _ if level == Level::Quiet => Vec::new(),
            Event::Planned { .. } => vec!["preparing collections to restore from".to_owned()],
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
        vec![format!("finished restoring {name} ({documents}, {failures})"), indexes]
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

/// How far the collections are that are being read, one line each, and an empty one after several.
fn progress(tally: &Tally) -> Vec<String> {
    let rows: Vec<[String; 4]> = tally.active().map(|(_, tally)| row(tally)).collect();
    let width = |cell: usize| rows.iter().map(|row| row[cell].chars().count()).max().unwrap_or(0);
    let widths = [width(0), width(1), width(2), width(3)];
    let mut lines: Vec<String> = rows
        .iter()
        .map(|row| {
            let mut line = String::new();
            for (place, (cell, width)) in row.iter().zip(widths).enumerate() {
                let gap = if place == 0 { "" } else { "  " };
                // Writing to a string cannot fail.
                let _ = write!(line, "{gap}{cell:>width$}");
            }
            line
        })
        .collect();
    if lines.len() > 1 {
        lines.push(" ".to_owned());
    }
    lines
}

/// A bar, the name, the bytes and the share.
fn row(tally: &CollectionTally) -> [String; 4] {
    let (done, all) = (tally.counts.origin_bytes_acknowledged, tally.planned.origin_bytes);
    let parts = |of: u64| done.saturating_mul(of).checked_div(all).unwrap_or_default();
    let filled = usize::try_from(parts(BAR_CELLS).min(BAR_CELLS)).unwrap_or_default();
    let cells = usize::try_from(BAR_CELLS).unwrap_or_default();
    let thousandths = parts(1000);
    [
        format!("[{}{}]", "#".repeat(filled), ".".repeat(cells - filled)),
        data_namespace(tally).to_string(),
        format!("{}/{}", size(done), size(all)),
        format!("({}.{}%)", thousandths / 10, thousandths % 10),
    ]
}

/// Bytes in three digits, with units of 1024.
#[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
fn size(bytes: u64) -> String {
    const UNITS: [&str; 3] = ["KB", "MB", "GB"];
    if bytes < 1024 {
        return format!("{bytes}B");
    }
    let mut scaled = bytes as f64 / 1024.0;
    let mut unit = 0;
    while scaled >= 1024.0 && unit + 1 < UNITS.len() {
        scaled /= 1024.0;
        unit += 1;
    }
    let digits = match scaled {
        number if number >= 100.0 => 0,
        number if number >= 10.0 => 1,
        _ => 2,
    };
    format!("{scaled:.digits$}{}", UNITS[unit])
}

/// A moment as `YYYY-MM-DDTHH:MM:SS.mmm+0000`. The time is that of UTC, since the standard library
/// knows no other.
fn stamp(moment: SystemTime) -> String {
    let since = moment.duration_since(UNIX_EPOCH).unwrap_or_default();
    let seconds = since.as_secs();
    let (year, month, day) = civil(seconds / 86_400);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    let millis = since.subsec_millis();
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}+0000")
}

/// Year, month and day of a count of days since 1970, in the Gregorian calendar. Years begin in
/// March here, so that the day that some of them have more is their last one.
fn civil(days: u64) -> (u64, u64, u64) {
    const DAYS_TO_MARCH_OF_YEAR_0: u64 = 719_468;
    const DAYS_IN_400_YEARS: u64 = 146_097;
    let days = days + DAYS_TO_MARCH_OF_YEAR_0;
    let (era, day) = (days / DAYS_IN_400_YEARS, days % DAYS_IN_400_YEARS);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * month + 2) / 5 + 1;
    let (month, later) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (era * 400 + year + later, month, day_of_month)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::value::samples;
    use proptest::prelude::*;
    use std::sync::Arc;

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
        let log = Log::new(Box::new(paper.clone()), level);
        for event in events {
            log.observe(Duration::from_secs(1), event);
        }
        finish(&log);
        let text = String::from_utf8(paper.0.lock().expect("no panic").clone()).expect("text");
        text.lines().map(|line| line.split_once('\t').expect("a time").1.to_owned()).collect()
    }

    fn rejected(count: usize) -> Event {
        let rejection =
            Rejection { code: 11000, message: "E11000 duplicate".into(), id: "1".into() };
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
    fn progress_is_a_grid() {
        let mut tally = Tally::default();
        for event in samples::clean_events().into_iter().take(6) {
            tally.apply(Duration::ZERO, &event);
        }
        tally.apply(Duration::ZERO, &Event::ReadBegan { collection: 1 });
        tally.apply(Duration::ZERO, &samples::written(1, [5, 0, 0], 33, 33));
        assert_eq!(
            progress(&tally),
            [
                "[########################]  shop.orders  900B/900B  (100.0%)",
                "[#######.................]   shop.items   33B/100B   (33.0%)",
                " ",
            ]
        );
    }

    #[test]
    fn sizes_have_three_digits() {
        for (bytes, expected) in [
            (0, "0B"),
            (1023, "1023B"),
            (3300, "3.22KB"),
            (84_173, "82.2KB"),
            (279_552, "273KB"),
            (1_034_240, "1010KB"),
            (5 << 20, "5.00MB"),
            (3 << 40, "3072GB"),
        ] {
            assert_eq!(size(bytes), expected);
        }
    }

    #[test]
    fn names_are_quoted_so_that_each_is_one_word() {
        assert_eq!(quoted("a.b"), "`a.b`");
        assert_eq!(quoted("g\nh"), "\"g\\nh\"");
        assert_eq!(quoted("a`b"), "\"a`b\"");
    }

    #[test]
    fn moments_are_written_with_their_date() {
        for (seconds, expected) in [
            (0, "1970-01-01T00:00:00.250+0000"),
            (951_782_400, "2000-02-29T00:00:00.250+0000"),
            (1_709_251_199, "2024-02-29T23:59:59.250+0000"),
            (4_107_542_400, "2100-03-01T00:00:00.250+0000"),
        ] {
            let moment = UNIX_EPOCH + Duration::from_millis(seconds * 1000 + 250);
            assert_eq!(stamp(moment), expected);
        }
    }

    proptest! {
        #[test]
        fn the_day_after_is_one_later(days in 0_u64..200_000) {
            let (one, other) = (civil(days), civil(days + 1));
            let follows = (other.0 == one.0 && other.1 == one.1 && other.2 == one.2 + 1)
                || (other.2 == 1 && other.1 == one.1 % 12 + 1 && one.2 >= 28);
            prop_assert!(follows, "{one:?} {other:?}");
        }
    }
}
