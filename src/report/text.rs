//! The report for people: a verdict, what it rests on, and the exit status.

pub(super) mod probe;
pub(super) mod special;
pub(super) mod survey;
mod table;
mod verification;

use std::time::Duration;

use crate::changes::Changes;
use crate::exit::ExitStatus;
use crate::limits::SUMMARY_ROWS;
use crate::namespace::Namespace;
use crate::report::Verbosity;
use crate::report::format::{
    byte_rate, bytes, columns, count, counted, cut, duration, one_line, percent, whole,
};
use crate::report::latency::Quantiles;
use crate::report::lost::Lost;
use crate::report::probe::ProbeReport;
use crate::report::survey::SurveyReport;
use crate::report::value::{CollectionState, Outcome, Report, Skipped};
use crate::report::verification::VerifyReport;
use crate::report::workers::WorkersReport;

pub use probe::meaning as probe_meaning;

/// The width of the labels on the left.
const LABEL_COLUMNS: usize = 11;

/// How a summary looks.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    /// Whether colours are used; whoever calls knows the terminal and its user's wishes.
    pub colour: Colour,
    /// The columns that lines are fitted to.
    pub width: usize,
    /// How much is listed.
    pub verbosity: Verbosity,
}

/// Whether colours are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    /// Plain text.
    Never,
    /// ANSI escapes (ECMA-48, select graphic rendition).
    Always,
}

/// How good something is; the numbers are those of the colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Paint {
    /// As it should be.
    Good = 32,
    /// Not all of it.
    Doubtful = 33,
    /// Something is missing.
    Bad = 31,
}

/// The report over several lines, the last with its line end.
pub fn summary(report: &Report, style: &Style) -> String {
    let mut summary = Summary { text: String::new(), style: *style };
    summary.verdict(report);
    summary.line("");
    summary.facts(report);
    summary.collections(report);
    summary.failed_collections(report);
    summary.lost(report);
    summary.rejections(report);
    summary.failed_indexes(report);
    if let Some(verification) = &report.verification {
        summary.line("");
        summary.verified(verification);
    }
    if let Some(survey) = &report.survey {
        summary.before_and_after(survey);
    }
    summary.skipped(&report.skipped);
    summary.notes(report);
    summary.line("");
    summary.ending(report);
    summary.text
}

/// The report of a survey over several lines, the last with its line end.
pub fn surveyed(report: &SurveyReport, style: &Style) -> String {
    let mut summary = Summary { text: String::new(), style: *style };
    summary.stock(report);
    summary.text
}

/// The report of a probe over several lines, the last with its line end.
pub fn probed(report: &ProbeReport, style: &Style) -> String {
    let mut summary = Summary { text: String::new(), style: *style };
    summary.probe(report);
    summary.text
}

/// The report of a comparison over several lines, the last with its line end.
pub fn verified(report: &VerifyReport, style: &Style) -> String {
    let mut summary = Summary { text: String::new(), style: *style };
    summary.agreement(report);
    summary.line("");
    summary.sides(report);
    summary.line("");
    summary.verified(&report.verification);
    summary.skipped(&report.skipped);
    summary.line("");
    let status = report.exit_status;
    let meaning = match status {
        ExitStatus::Restored => "nothing differs",
        ExitStatus::Stopped => "stopped by an error, or not everything could be compared",
        other => other.meaning(),
    };
    summary.fact("exit", &format!("{}: {meaning}", status.code()));
    summary.text
}

/// The text of one line about a collection, which is not named twice.
pub(super) fn about(namespace: &Namespace, text: &str) -> String {
    let name = format!("{namespace}: ");
    if text.starts_with(&name) { one_line(text) } else { format!("{name}{}", one_line(text)) }
}

struct Summary {
    text: String,
    style: Style,
}

impl Summary {
    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// A line over as many as it needs, the further ones below its text.
    fn wrapped(&mut self, indent: usize, line: &str) {
        let line = wrap(line, self.style.width, indent);
        self.line(&line);
    }

    fn fact(&mut self, label: &str, text: &str) {
        self.wrapped(LABEL_COLUMNS + 2, &format!("  {label:<LABEL_COLUMNS$}{text}"));
    }

    fn heading(&mut self, label: &str, text: &str) {
        self.line("");
        self.fact(label, text);
    }

    /// At most as many lines as a screen has room for; all of them where that was asked for.
    fn list(&mut self, lines: impl ExactSizeIterator<Item = String>, indent: usize) {
        let shown = match self.style.verbosity {
            Verbosity::Normal => SUMMARY_ROWS,
            Verbosity::Verbose => usize::MAX,
        };
        let more = lines.len().saturating_sub(shown);
        for line in lines.take(shown) {
            self.wrapped(indent + 2, &format!("{:indent$}{line}", ""));
        }
        if more > 0 {
            self.line(&format!("{:indent$}and {} more (-v lists all)", "", count(more as u64)));
        }
    }

    fn painted(&mut self, paint: Paint, loud: &str, rest: &str) {
        let line = wrap(&format!("{loud}{rest}"), self.style.width, 2);
        let line = match self.style.colour {
            Colour::Never => line,
            Colour::Always => {
                let painted = format!("\x1b[1;{}m{loud}\x1b[0m", paint as u8);
                line.replacen(loud, &painted, 1)
            }
        };
        self.line(&line);
    }

    fn verdict(&mut self, report: &Report) {
        for Verdict { paint, loud, rest } in verdicts(report) {
            self.painted(paint, loud, &rest);
        }
    }

    fn facts(&mut self, report: &Report) {
        let (totals, times, rates) = (&report.totals, &report.times, &report.rates);
        let of_server = |version: &Option<String>, words: &str| match version {
            Some(version) => format!(", {words}server {}", one_line(version)),
            None => String::new(),
        };
        let taken = of_server(&report.dump.server_version, "taken from ");
        let on_disk = if report.dump.is_made || totals.origin_bytes == 0 {
            String::new()
        } else {
            format!(", {} on disk", bytes(totals.origin_bytes))
        };
        self.fact("from", &format!("{}{on_disk}{taken}", one_line(&report.dump.path)));
        let server = of_server(&report.target.server_version, "");
        self.fact("to", &format!("{}{server}", one_line(&report.target.description)));
        let (average, peak) = (rates.average_documents_per_second, rates.peak_documents_per_second);
        let balance = &report.balance;
        let (label, what) =
            if balance.changes.is_none() { ("inserted", "inserts") } else { ("written", "writes") };
        let writes = format!(
            "{}, {} {what}/s on average, {} at peak",
            counted(balance.done(), "document", "documents"),
            whole(average),
            whole(peak)
        );
        self.fact(label, &writes);
        let sent = format!(
            "{}, {} on average, {} at peak",
            bytes(totals.bytes_acknowledged),
            byte_rate(rates.average_bytes_per_second),
            byte_rate(rates.peak_bytes_per_second)
        );
        self.fact("sent", &sent);
        let after = times.indexes + times.time_to_live;
        let time = format!(
            "{}: {} in data, {} more in indexes",
            duration(times.total),
            duration(times.data),
            duration(after)
        );
        self.fact("time", &time);
        if totals.indexes > 0 {
            let builds = format!(
                "{} of {} built, {} of build time in all",
                totals.indexes_built,
                totals.indexes,
                duration(times.index_builds)
            );
            self.fact("indexes", &builds);
        }
        self.workers(&report.workers);
        self.latency(&report.latency);
        self.bound(report);
        self.special(report);
        if totals.retries > 0 {
            self.fact("retries", &count(totals.retries));
        }
    }

    /// How many batches were in flight, where that was found out.
    fn workers(&mut self, workers: &WorkersReport) {
        if workers.decisions.is_empty() {
            return;
        }
        self.fact("workers", &workers.words());
    }

    fn latency(&mut self, latency: &Quantiles) {
        if latency.count == 0 {
            return;
        }
        let shown = |seconds| duration(Duration::from_secs_f64(seconds));
        let text = format!(
            "p50 {}, p99 {}, max {} from sending a batch to its answer",
            shown(latency.p50_seconds),
            shown(latency.p99_seconds),
            shown(latency.max_seconds)
        );
        self.fact("latency", &text);
    }

    fn bound(&mut self, report: &Report) {
        if let Some(bound) = &report.bound_by {
            let (by, evidence) = (bound.by.name(), bound.evidence.join(", "));
            self.fact("bound by", &format!("{by}: {}", one_line(&evidence)));
            self.fact("", &bound.advice);
        }
    }

    fn special(&mut self, report: &Report) {
        if let Some(users) = &report.users {
            let lines = special::users(users, self.style.verbosity);
            for (label, line) in std::iter::once("users").chain(std::iter::repeat("")).zip(lines) {
                self.fact(label, &line);
            }
        }
        if let Some(oplog) = &report.oplog {
            self.fact("oplog", &special::oplog(oplog));
        }
    }

    fn collections(&mut self, report: &Report) {
        if report.collections.is_empty() {
            return;
        }
        self.line("");
        for line in table::collections(&report.collections, &self.style) {
            self.line(&line);
        }
    }

    fn failed_collections(&mut self, report: &Report) {
        let failed: Vec<_> = report
            .collections
            .iter()
            .filter_map(|one| Some(about(&one.namespace, one.error.as_deref()?)))
            .collect();
        if !failed.is_empty() {
            let number = counted(failed.len() as u64, "collection", "collections");
            self.heading("failed", &format!("{number} could not be restored completely"));
            self.list(failed.into_iter(), 4);
        }
    }

    fn lost(&mut self, report: &Report) {
        let Some(salvage) = &report.salvage else {
            return;
        };
        let stretches = counted(salvage.stretches, "stretch", "stretches");
        let of = |name: String, lost: &Lost| -> Vec<String> {
            let listed = lost.stretches.iter().map(|stretch| {
                let to = stretch.to.map_or_else(|| "its end".to_owned(), |to| format!("byte {to}"));
                let (from, file) = (stretch.from, one_line(&stretch.file));
                let reason = one_line(&stretch.reason);
                format!("{name}{file} from byte {from} to {to}, {}: {reason}", bytes(stretch.bytes))
            });
            let more =
                (lost.unlisted() > 0).then(|| format!("{name}{} more", count(lost.unlisted())));
            listed.chain(more).collect()
        };
        let collections = report.collections.iter();
        let mut lines: Vec<_> =
            collections.flat_map(|one| of(format!("{}: ", one.namespace), &one.lost)).collect();
        lines.extend(of(String::new(), &salvage.elsewhere));
        if lines.is_empty() {
            self.heading("lost", "nothing");
            return;
        }
        let kept = salvage
            .folder
            .as_deref()
            .map_or_else(String::new, |folder| format!(", kept in {}", one_line(folder)));
        self.heading("lost", &format!("{stretches}, {}{kept}", bytes(salvage.bytes)));
        self.list(lines.into_iter(), 4);
    }

    fn rejections(&mut self, report: &Report) {
        if report.balance.rejected == 0 {
            return;
        }
        let number = counted(report.balance.rejected, "document", "documents");
        let conflicts = match report.balance.conflicts {
            0 => String::new(),
            conflicts => format!(", {} of them conflicts", count(conflicts)),
        };
        self.heading("rejected", &format!("{number}{conflicts}, by the server's code"));
        for (code, failure) in report.failures() {
            let name = code_name(code).map_or(String::new(), |name| format!(" {name}"));
            let number = counted(failure.count, "document", "documents");
            self.line(&format!("    {code}{name}: {number}"));
            for (namespace, sample) in &failure.samples {
                let (id, message) = (one_line(&sample.id), one_line(&sample.message));
                let line = format!("      {namespace} _id {id}: {message}");
                self.line(&cut(&line, self.style.width));
            }
            let more = failure.count.saturating_sub(failure.samples.len() as u64);
            if more > 0 {
                self.line(&format!("      and {} more", count(more)));
            }
        }
    }

    fn failed_indexes(&mut self, report: &Report) {
        let mut failed = Vec::new();
        for collection in &report.collections {
            for (index, error) in collection.indexes_failed() {
                let index = one_line(index);
                failed.push(format!("{} {index}: {}", collection.namespace, one_line(error)));
            }
        }
        if !failed.is_empty() {
            let number = counted(failed.len() as u64, "index", "indexes");
            self.heading("not built", &number);
            self.list(failed.into_iter(), 4);
        }
    }

    fn skipped(&mut self, skipped: &[Skipped]) {
        if skipped.is_empty() {
            return;
        }
        let (problems, others): (Vec<_>, Vec<_>) =
            skipped.iter().partition(|skipped| skipped.is_problem);
        let mut numbers = Vec::new();
        if !problems.is_empty() {
            numbers.push(format!("{} could not be used", count(problems.len() as u64)));
        }
        let is_verbose = self.style.verbosity == Verbosity::Verbose;
        if !others.is_empty() {
            let hint = if is_verbose { "" } else { " (-v lists them)" };
            numbers.push(format!("{} on purpose{hint}", count(others.len() as u64)));
        }
        self.heading("skipped", &numbers.join(", "));
        let listed = problems.into_iter().chain(others.into_iter().filter(|_| is_verbose));
        for skipped in listed {
            let (what, reason) = (one_line(&skipped.what), one_line(&skipped.reason));
            self.wrapped(6, &format!("    {what}: {reason}"));
        }
    }

    fn notes(&mut self, report: &Report) {
        if report.notes.is_empty() {
            return;
        }
        self.heading("notes", &count(report.notes.len() as u64));
        let lines = report.notes.iter().map(|note| match &note.namespace {
            Some(namespace) => about(namespace, &note.text),
            None => one_line(&note.text),
        });
        self.list(lines, 4);
    }

    fn ending(&mut self, report: &Report) {
        let balance = &report.balance;
        let changed = changed(&balance.changes, " +");
        let line = format!(
            "{} read {} {} inserted{changed} + {} already there + {} rejected + {} unsent",
            count(balance.read),
            if report.is_balanced { "=" } else { "is NOT" },
            count(balance.inserted),
            count(balance.already_there),
            count(balance.rejected),
            count(balance.unsent)
        );
        self.fact("balance", &line);
        let carried = report.totals.documents_carried;
        if carried > 0 {
            let documents = counted(carried, "document", "documents");
            self.fact("of these", &format!("{documents} by an earlier run"));
        }
        let status = report.exit_status;
        self.fact("exit", &format!("{}: {}", status.code(), status.meaning()));
    }
}

/// The text with line ends in place of spaces where a line would be too wide; a word that is wider
/// than a line stays whole.
fn wrap(text: &str, width: usize, indent: usize) -> String {
    let mut lines = String::new();
    let mut line = String::new();
    for (place, word) in text.split(' ').enumerate() {
        let is_full = columns(&line) + 1 + columns(word) > width;
        if is_full && !line.trim().is_empty() {
            lines.push_str(line.trim_end());
            lines.push('\n');
            line = format!("{:indent$}", "");
        } else if place > 0 {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines.push_str(&line);
    lines
}

/// What a run came to, in a line.
pub(super) struct Verdict {
    /// How good that is.
    pub(super) paint: Paint,
    /// The word for it.
    pub(super) loud: &'static str,
    /// What follows the word, with its punctuation.
    pub(super) rest: String,
}

/// What a run came to, and before that whether this program counted wrong.
pub(super) fn verdicts(report: &Report) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    if !report.is_balanced {
        let rest = ": the counts do not add up, which is a defect of this program; please report \
                    it together with the JSON report";
        verdicts.push(Verdict { paint: Paint::Bad, loud: "INTERNAL ERROR", rest: rest.to_owned() });
    }
    let totals = &report.totals;
    let documents = documents(report);
    let time = duration(report.times.total);
    let (paint, loud, rest) = match (&report.outcome, report.exit_status) {
        (Outcome::Stopped { error }, _) => {
            (Paint::Bad, "STOPPED", format!(" after {time}: {}", one_line(error)))
        }
        (Outcome::Interrupted, _) => {
            let done = percent(totals.fraction_done);
            let rest =
                format!(" after {time} at {done}: {documents}, batches in flight were finished");
            (Paint::Doubtful, "INTERRUPTED", rest)
        }
        (Outcome::Finished, ExitStatus::Restored) => {
            let collections = counted(totals.collections as u64, "collection", "collections");
            (Paint::Good, "OK", format!(": {collections} restored, {documents} in {time}"))
        }
        (Outcome::Finished, ExitStatus::Difference) => {
            let rest = format!(": {}; {documents} in {time}", verification::differing(report));
            (Paint::Bad, "DIFFERENT", rest)
        }
        (Outcome::Finished, ExitStatus::Failures) => {
            let rest = format!(": {}; {documents} in {time}", failures(report));
            (Paint::Doubtful, "FINISHED WITH FAILURES", rest)
        }
        (Outcome::Finished, _) => {
            let rest = format!(": {}; {documents} in {time}", missing(report));
            (Paint::Bad, "NOT COMPLETE", rest)
        }
    };
    verdicts.push(Verdict { paint, loud, rest });
    verdicts
}

/// What documents did to stored ones, each after this sign; nothing of what none did.
pub(super) fn changed(changes: &Changes, sign: &str) -> String {
    let parts = changes.parts().into_iter().filter(|(_, documents)| *documents > 0);
    parts.map(|(what, documents)| [sign, " ", &count(documents), " ", what].concat()).collect()
}

/// The documents that arrived, in a few words.
fn documents(report: &Report) -> String {
    let inserted = counted(report.balance.inserted, "document", "documents");
    let told = format!("{inserted} inserted{}", changed(&report.balance.changes, ","));
    match report.balance.already_there {
        0 => told,
        already_there => format!("{told} and {} already there", count(already_there)),
    }
}

/// What the server refused, in a few words.
fn failures(report: &Report) -> String {
    let (rejected, indexes) = (report.balance.rejected, report.totals.indexes_failed as u64);
    let documents = format!("{} rejected", counted(rejected, "document", "documents"));
    let indexes_text = format!("{} not built", counted(indexes, "index", "indexes"));
    match (rejected, indexes) {
        (0, _) => indexes_text,
        (_, 0) => documents,
        _ => format!("{documents}, {indexes_text}"),
    }
}

/// What is not complete, in a few words.
fn missing(report: &Report) -> String {
    if let Some(what) = special::missing(report).or_else(|| verification::missing(report)) {
        return what;
    }
    let is_done = |state| state == CollectionState::Done;
    let left = report.collections.iter().filter(|one| !is_done(one.state)).count();
    let problems = report.skipped.iter().filter(|skipped| skipped.is_problem).count();
    let all = counted(report.collections.len() as u64, "collection", "collections");
    let collections = format!("{} of {all} not restored completely", count(left as u64));
    let files = format!("{} could not be used", counted(problems as u64, "file", "files"));
    match (left, problems) {
        (0, 0) => "documents are not accounted for".to_owned(),
        (0, _) => files,
        (_, 0) => collections,
        _ => format!("{collections}, {files}"),
    }
}

/// The server's name for a code that inserts are refused with (`error_codes.yml` of the server).
pub(super) fn code_name(code: i32) -> Option<&'static str> {
    match code {
        2 => Some("BadValue"),
        9 => Some("FailedToParse"),
        13 => Some("Unauthorized"),
        14 => Some("TypeMismatch"),
        121 => Some("DocumentValidationFailure"),
        10334 => Some("BSONObjectTooLarge"),
        11000 => Some("DuplicateKey"),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
