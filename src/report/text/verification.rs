//! What a comparison of a dump with a target found, for people.

use crate::limits::SUMMARY_ROWS;
use crate::report::Verbosity;
use crate::report::format::{bytes, columns, count, counted, duration, left, one_line, right};
use crate::report::text::{Paint, Summary, about};
use crate::report::value::Report;
use crate::report::verification::{
    Agreement, Deviation, DifferingDocuments, Extent, Verification, VerifiedCollection,
    VerifyReport,
};

/// The least that a name keeps on a narrow terminal.
const NAME_COLUMNS_MIN: usize = 12;

const HEADER: [&str; 5] = ["collection", "in the dump", "on the target", "bytes", "verdict"];

/// What differs, in a few words.
fn difference(verification: &Verification) -> String {
    let totals = &verification.totals;
    let all = counted(totals.collections, "collection", "collections");
    format!("{} of {all} not the same as in the dump", count(totals.collections_different))
}

/// What a restore brought that differs from the dump, in a few words.
pub(super) fn differing(report: &Report) -> String {
    report.verification.as_ref().map_or_else(String::new, difference)
}

/// What could not be compared after a restore, in a few words.
pub(super) fn missing(report: &Report) -> Option<String> {
    let verification = report.verification.as_ref()?;
    let is_all = report.totals.collections_done == report.totals.collections;
    (is_all && verification.state == Agreement::NotCompared).then(|| not_compared(verification))
}

fn not_compared(verification: &Verification) -> String {
    let totals = &verification.totals;
    let all = counted(totals.collections, "collection", "collections");
    format!("{} of {all} could not be compared", count(totals.collections_not_compared))
}

impl Summary {
    /// The verdict of a comparison.
    pub(super) fn agreement(&mut self, report: &VerifyReport) {
        let verification = &report.verification;
        let totals = &verification.totals;
        let time = duration(verification.time);
        let is_whole = !report.skipped.iter().any(|skipped| skipped.is_problem);
        match verification.state {
            Agreement::Different => {
                let rest = format!(": {}, found in {time}", difference(verification));
                self.painted(Paint::Bad, "DIFFERENT", &rest);
            }
            Agreement::NotCompared => {
                let rest = format!(": {}, after {time}", not_compared(verification));
                self.painted(Paint::Bad, "NOT COMPARED", &rest);
            }
            Agreement::Same if !is_whole => {
                let rest = format!(": a part of the dump could not be used, after {time}");
                self.painted(Paint::Bad, "NOT COMPARED", &rest);
            }
            Agreement::Same => {
                let collections = counted(totals.collections, "collection is", "collections are");
                let documents = counted(totals.documents_dump, "document", "documents");
                let rest = format!(": {collections} as in the dump, {documents} in {time}");
                self.painted(Paint::Good, "OK", &rest);
            }
        }
    }

    /// What is compared with what.
    pub(super) fn sides(&mut self, report: &VerifyReport) {
        let of_server = |version: &Option<String>| match version {
            Some(version) => format!(", server {}", one_line(version)),
            None => String::new(),
        };
        let taken = of_server(&report.dump.server_version).replace(", ", ", taken from ");
        self.fact("dump", &format!("{}{taken}", one_line(&report.dump.path)));
        let server = of_server(&report.target.server_version);
        self.fact("target", &format!("{}{server}", one_line(&report.target.description)));
    }

    /// The collections, those that differ first, and all about them.
    pub(super) fn verified(&mut self, verification: &Verification) {
        for line in self.table(verification) {
            self.line(&line);
        }
        for one in &verification.collections {
            let lines = findings(one);
            if !lines.is_empty() {
                self.line("");
                self.wrapped(4, &format!("  {}", one.namespace));
                // All that was asked for is listed: --differences bounds it.
                for line in lines {
                    self.wrapped(6, &format!("    {line}"));
                }
            }
        }
        let of_one = |one: &VerifiedCollection| {
            let notes = one.notes.iter();
            notes.map(|note| about(&one.namespace, note)).collect::<Vec<_>>()
        };
        let notes = verification.collections.iter().flat_map(of_one);
        let notes: Vec<_> = verification.notes.iter().cloned().chain(notes).collect();
        if !notes.is_empty() {
            self.heading("compared", &counted(notes.len() as u64, "note", "notes"));
            self.list(notes.into_iter(), 4);
        }
    }

    fn table(&self, verification: &Verification) -> Vec<String> {
        let shown = match self.style.verbosity {
            Verbosity::Normal => SUMMARY_ROWS,
            Verbosity::Verbose => usize::MAX,
        };
        let mut collections: Vec<_> = verification.collections.iter().collect();
        // What differs must not hide among what does not.
        collections.sort_by_key(|one| {
            let size = one.dump.as_ref().map_or(0, |side| side.bytes);
            (one.state == Agreement::Same, std::cmp::Reverse(size))
        });
        let more = collections.len().saturating_sub(shown);
        collections.truncate(shown);
        let header = HEADER.map(str::to_owned);
        let rows: Vec<_> =
            std::iter::once(header).chain(collections.into_iter().map(row)).collect();
        let mut lines = aligned(&rows, self.style.width);
        if more > 0 {
            let more = counted(more as u64, "collection", "collections");
            lines.push(format!("  and {more} more"));
        }
        lines
    }
}

fn row(one: &VerifiedCollection) -> [String; 5] {
    let name = one.namespace.to_string();
    let verdict = match (one.state, one.extent) {
        (Agreement::Different, _) => "different",
        (Agreement::NotCompared, _) => "not compared",
        (Agreement::Same, Extent::Contained) => "contained",
        (Agreement::Same, Extent::WithoutId) => "same without _id",
        (Agreement::Same, _) => "same",
    };
    if one.extent == Extent::Nothing {
        return [name, one.kind.to_owned(), String::new(), String::new(), verdict.to_owned()];
    }
    let documents = |side: &Option<crate::report::verification::Side>| {
        side.as_ref().map_or_else(|| "-".to_owned(), |side| count(side.documents))
    };
    let size = one.dump.as_ref().map_or_else(|| "-".to_owned(), |side| bytes(side.bytes));
    [name, documents(&one.dump), documents(&one.target), size, verdict.to_owned()]
}

/// The cells in columns: the name to the left, the numbers to the right, the verdict to the left.
fn aligned(rows: &[[String; 5]], width: usize) -> Vec<String> {
    let widest = |column: usize| rows.iter().map(|row| columns(&row[column])).max().unwrap_or(0);
    let numbers: Vec<_> = (1..4).map(widest).collect();
    let taken: usize = numbers.iter().map(|width| width + 2).sum::<usize>() + widest(4) + 4;
    let name = widest(0).min(width.saturating_sub(taken).max(NAME_COLUMNS_MIN));
    let lines = rows.iter().map(|row| {
        let mut line = format!("  {}", left(&one_line(&row[0]), name));
        for (cell, width) in row[1..4].iter().zip(&numbers) {
            line.push_str("  ");
            line.push_str(&right(cell, *width));
        }
        line.push_str("  ");
        line.push_str(&row[4]);
        line.trim_end().to_owned()
    });
    lines.collect()
}

/// What was found of one collection, a line each.
fn findings(one: &VerifiedCollection) -> Vec<String> {
    let mut lines: Vec<String> =
        one.error.iter().map(|error| format!("not compared: {}", one_line(error))).collect();
    if let Some(documents) = &one.documents {
        lines.extend(documents_of(documents));
    }
    for (what, deviations) in [("option", &one.options), ("index", &one.indexes)] {
        lines.extend(deviations.iter().map(|deviation| deviation_of(what, deviation)));
    }
    lines
}

fn documents_of(documents: &DifferingDocuments) -> Vec<String> {
    let counts = format!(
        "documents{}: {} missing, {} changed, {} extra",
        if documents.is_complete { "" } else { " (of those that were looked for, a part)" },
        count(documents.missing),
        count(documents.changed),
        count(documents.extra)
    );
    let samples = documents
        .samples
        .iter()
        .map(|sample| format!("  {:<7} _id {}", sample.difference.name(), one_line(&sample.id)));
    let differing = documents.missing + documents.changed + documents.extra;
    let more = differing.saturating_sub(documents.samples.len() as u64);
    let more = (more > 0).then(|| format!("  and {} more (--differences N)", count(more)));
    std::iter::once(counts).chain(samples).chain(more).collect()
}

fn deviation_of(what: &str, deviation: &Deviation) -> String {
    let name = one_line(&deviation.name);
    match (&deviation.expected, &deviation.found) {
        (Some(expected), Some(found)) => {
            format!("{what} {name} is {} instead of {}", one_line(found), one_line(expected))
        }
        (Some(expected), None) => format!("{what} {name} is missing: {}", one_line(expected)),
        (None, Some(found)) => format!("{what} {name} is not in the dump: {}", one_line(found)),
        (None, None) => format!("{what} {name} differs"),
    }
}

#[cfg(test)]
mod tests {
    use crate::report::Verbosity;
    use crate::report::text::{Colour, Style, summary, verified};
    use crate::report::value::samples;
    use crate::report::verification::samples as verifications;

    fn style() -> Style {
        Style { colour: Colour::Never, width: 100, verbosity: Verbosity::Normal }
    }

    #[test]
    fn what_differs_comes_first_and_is_named() {
        let text = verified(&verifications::report(verifications::different()), &style());
        let expected = "\
DIFFERENT: 1 of 4 collections not the same as in the dump, found in 1.5 s

  dump       dump, taken from server 7.0.2
  target     mongodb://127.0.0.1:27017, server 8.0.4

  collection   in the dump  on the target   bytes  verdict
  copy.orders        1,000          1,001  100 kB  different
  copy.secret            -              -       -  not compared
  copy.items         1,000          1,000  100 kB  same
  copy.recent         view                         same

  copy.orders
    documents: 1 missing, 1 changed, 2 extra
      missing _id 7
      changed _id {\"$oid\":\"00112233445566778899aabb\"}
      extra   _id \"x\"
      and 1 more (--differences N)
    option capped is missing: true
    index a_1 is not in the dump: {}
    index b_1 is {\"b\":-1} instead of {\"b\":1}

  copy.secret
    not compared: its documents cannot be read on the target: not authorized

  compared   2 notes
    users and roles are not compared
    copy.orders: 3 documents that the server rejected count as missing as well

  skipped    1 on purpose (-v lists them)

  exit       4: verification found a difference
";
        assert_eq!(text, expected, "{text}");
    }

    #[test]
    fn agreement_is_said_in_few_words() {
        let text = verified(&verifications::report(verifications::same()), &style());
        assert!(text.starts_with("OK: 1 collection is as in the dump, 1,000 documents in 20 ms\n"));
        assert!(text.ends_with("exit       0: nothing differs\n"), "{text}");
    }

    #[test]
    fn a_restore_that_differs_says_so_first() {
        let mut report = samples::clean();
        report.verified(Some(verifications::different()));
        let text = summary(&report, &style());
        let verdict = "DIFFERENT: 1 of 4 collections not the same as in the dump; ";
        assert!(text.starts_with(verdict), "{text}");
        assert!(text.contains("missing _id 7"), "{text}");
        report.verified(Some(verifications::same()));
        assert!(summary(&report, &style()).starts_with("OK: "));
    }
}
