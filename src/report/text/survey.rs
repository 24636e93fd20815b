//! What a server holds, for people.

use crate::limits::SUMMARY_ROWS;
use crate::namespace::Namespace;
use crate::report::Verbosity;
use crate::report::format::{bytes, columns, count, counted, cut, duration, left, one_line, right};
use crate::report::survey::{
    BeforeAndAfter, Deployment, FieldInventory, NamespaceDifference, Survey, SurveyReport,
    SurveyTotals, SurveyedField, SurveyedNamespace, SurveyedServer,
};
use crate::report::text::{LABEL_COLUMNS, Summary, about};

/// Fields of a collection that are listed, unless all are asked for.
const FIELD_ROWS: usize = 25;

/// The least that a name keeps on a narrow terminal.
const NAME_COLUMNS_MIN: usize = 12;

/// What stands for a number that is not known.
const UNKNOWN: &str = "-";

const HEADER: [&str; 8] =
    ["collection", "documents", "data", "average", "on disk", "ratio", "indexes", "index size"];

impl Summary {
    /// A survey that is a run of its own.
    pub(super) fn stock(&mut self, report: &SurveyReport) {
        let survey = &report.survey;
        self.fact("server", &one_line(&report.target.description));
        self.fact("", &server(&survey.server));
        let totals = &survey.totals;
        let holds = format!(
            "{}, {}, {}; found out in {}",
            counted(totals.collections, "collection", "collections"),
            counted(totals.views, "view", "views"),
            counted(totals.documents, "document", "documents"),
            duration(survey.time)
        );
        self.fact("holds", &holds);
        self.line("");
        let mut largest: Vec<_> = survey.namespaces.iter().collect();
        largest.sort_by_key(|one| (one.is_view(), std::cmp::Reverse(one.data_bytes)));
        for line in self.sizes(survey, &largest) {
            self.line(&line);
        }
        let shown = self.rows(SUMMARY_ROWS);
        let detailed: Vec<_> = largest.into_iter().filter(|one| has_details(one)).collect();
        let more = detailed.len().saturating_sub(shown);
        for one in detailed.into_iter().take(shown) {
            self.details(one);
        }
        if more > 0 {
            let number = counted(more as u64, "further collection", "further collections");
            self.line("");
            self.line(&format!("  {number} with indexes and fields (-v shows all)"));
        }
        self.survey_notes(survey);
    }

    fn rows(&self, normal: usize) -> usize {
        match self.style.verbosity {
            Verbosity::Normal => normal,
            Verbosity::Verbose => usize::MAX,
        }
    }

    /// The table of all collections.
    fn sizes(&self, survey: &Survey, largest: &[&SurveyedNamespace]) -> Vec<String> {
        let mut rows = vec![HEADER.map(str::to_owned)];
        rows.extend(largest.iter().map(|one| size_row(one)));
        if largest.len() > 1 {
            rows.push(total_row(survey));
        }
        aligned(&rows, self.style.width, "  ")
    }

    fn details(&mut self, one: &SurveyedNamespace) {
        self.line("");
        self.line(&cut(&format!("  {}", one.namespace), self.rows(self.style.width)));
        if let Some(indexes) = &one.indexes {
            for (place, index) in indexes.iter().enumerate() {
                let label = if place == 0 { "indexes" } else { "" };
                let size =
                    index.bytes.map_or_else(String::new, |size| format!(", {}", bytes(size)));
                let (name, key) = (one_line(&index.name), one_line(&index.key));
                self.detail(label, &format!("{name} {key}{size}"));
            }
        }
        if let Some(fields) = &one.fields {
            self.fields(fields);
        }
        self.samples(one);
    }

    /// Documents are shown as far as a line goes, or whole where everything is asked for: a program
    /// may want to read them.
    fn samples(&mut self, one: &SurveyedNamespace) {
        if one.samples.is_empty() {
            return;
        }
        let number = counted(one.samples.len() as u64, "document", "documents");
        self.detail("examples", &number);
        for sample in &one.samples {
            let part = if sample.is_cut {
                format!("(a part of {}) ", bytes(sample.bytes))
            } else {
                String::new()
            };
            let line = format!("      {part}{}", one_line(&sample.json));
            self.line(&cut(&line, self.rows(self.style.width)));
        }
    }

    fn detail(&mut self, label: &str, text: &str) {
        self.wrapped(LABEL_COLUMNS + 6, &format!("    {label:<LABEL_COLUMNS$}{text}"));
    }

    fn fields(&mut self, inventory: &FieldInventory) {
        let documents = count(inventory.documents);
        let of = if inventory.is_complete {
            format!("of all {documents} documents")
        } else {
            format!("of the {documents} documents that were looked at")
        };
        self.detail("fields", &of);
        let shown = self.rows(FIELD_ROWS);
        let listed: Vec<_> = inventory.fields.iter().take(shown).collect();
        let name = listed.iter().map(|field| columns(&one_line(&field.name))).max().unwrap_or(0);
        let name = name.min(self.style.width / 2);
        for field in &listed {
            let line = format!(
                "      {}  {}  {}",
                left(&one_line(&field.name), name),
                right(&share(field.share), 5),
                types(field)
            );
            self.line(&cut(&line, self.style.width));
        }
        let more = inventory.fields.len().saturating_sub(shown);
        if more > 0 {
            self.line(&format!("      and {} more (-v lists all)", count(more as u64)));
        }
    }

    fn survey_notes(&mut self, survey: &Survey) {
        let notes = notes(survey);
        if !notes.is_empty() {
            self.heading("notes", &count(notes.len() as u64));
            self.list(notes.into_iter(), 4);
        }
    }

    /// The target of a restore before and after it.
    pub(super) fn before_and_after(&mut self, survey: &BeforeAndAfter) {
        let Some(after) = &survey.after else {
            return;
        };
        self.heading("survey", &server(&after.server));
        if let Some(density) = density(&after.totals) {
            self.fact("", &density);
        }
        self.line("");
        let before = survey.before.as_ref();
        let mut largest: Vec<_> = after.namespaces.iter().collect();
        largest.sort_by_key(|one| (one.is_view(), std::cmp::Reverse(one.data_bytes)));
        let more = largest.len().saturating_sub(self.rows(SUMMARY_ROWS));
        largest.truncate(self.rows(SUMMARY_ROWS));
        let mut rows = vec![change_header()];
        rows.extend(largest.into_iter().map(|one| change_row(before, one)));
        if after.namespaces.len() > 1 {
            rows.push(change_total(before, after));
        }
        let mut lines = changes_aligned(&rows, self.style.width);
        if more > 0 {
            let number = counted(more as u64, "collection", "collections");
            // The sums stand last.
            lines.insert(lines.len() - 1, format!("  and {number} more (-v lists all)"));
        }
        for line in lines {
            self.line(&line);
        }
        let differences = survey.difference.iter().flat_map(|all| &all.namespaces);
        let mut lines: Vec<_> = differences.flat_map(changed).collect();
        lines.extend(notes(after));
        if !lines.is_empty() {
            self.line("");
            self.list(lines.into_iter(), 4);
        }
    }
}

/// What a server is, in one line.
pub(in crate::report) fn server(server: &SurveyedServer) -> String {
    let mut parts = vec![format!("{} {}", server.product, one_line(&server.version))];
    parts.extend(server.storage_engine.as_deref().map(one_line));
    let of = |number: Option<u64>, one: &str, many: &str| {
        number.map_or_else(String::new, |number| format!(" of {}", counted(number, one, many)))
    };
    parts.push(match (server.topology, &server.replica_set) {
        (Deployment::Sharded, _) => {
            format!("sharded cluster{}", of(server.shards, "shard", "shards"))
        }
        (_, Some(name)) => {
            format!("replica set {}{}", one_line(name), of(server.members, "member", "members"))
        }
        (Deployment::ReplicaSet, None) => "replica set".to_owned(),
        (Deployment::Standalone, None) => "standalone".to_owned(),
    });
    parts.join(", ")
}

/// How densely data is stored, where that is known.
fn density(totals: &SurveyTotals) -> Option<String> {
    let of_document = totals.average_document_bytes?;
    let ratio = totals.compression_ratio?;
    let (ratio, of_document) = (times(Some(ratio)), average(Some(of_document)));
    Some(format!("compressed {ratio} to 1, {of_document} a document"))
}

fn has_details(one: &SurveyedNamespace) -> bool {
    one.indexes.is_some() || one.fields.is_some() || !one.samples.is_empty()
}

/// Notes of the whole and of single collections.
fn notes(survey: &Survey) -> Vec<String> {
    let of_one = |one: &SurveyedNamespace| {
        let notes = one.notes.iter();
        notes.map(|note| about(&one.namespace, note)).collect::<Vec<_>>()
    };
    let whole = survey.notes.iter().map(|note| one_line(note));
    whole.chain(survey.namespaces.iter().flat_map(of_one)).collect()
}

/// A share in percent, so that what is rare is not none.
fn share(share: f64) -> String {
    let percent = share * 100.0;
    if percent > 0.0 && percent < 1.0 { "< 1 %".to_owned() } else { format!("{percent:.0} %") }
}

/// The types of a field, with their number where there are several.
fn types(field: &SurveyedField) -> String {
    match &field.types[..] {
        [only] => only.name.to_owned(),
        several => {
            let told = several.iter().map(|one| format!("{} {}", one.name, count(one.documents)));
            told.collect::<Vec<_>>().join(", ")
        }
    }
}

fn or_unknown(text: Option<String>) -> String {
    text.unwrap_or_else(|| UNKNOWN.to_owned())
}

fn times(ratio: Option<f64>) -> String {
    or_unknown(ratio.map(|ratio| format!("{ratio:.1}")))
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "sizes are positive")]
fn average(size: Option<f64>) -> String {
    or_unknown(size.map(|size| bytes(size.round() as u64)))
}

fn size_row(one: &SurveyedNamespace) -> [String; 8] {
    let name = one.namespace.to_string();
    if one.is_view() {
        let nothing = String::new;
        let kind = "view".to_owned();
        return [name, kind, nothing(), nothing(), nothing(), nothing(), nothing(), nothing()];
    }
    [
        name,
        or_unknown(one.documents.map(count)),
        or_unknown(one.data_bytes.map(bytes)),
        average(one.average_document_bytes),
        or_unknown(one.storage_bytes.map(bytes)),
        times(one.compression_ratio),
        or_unknown(one.indexes.as_ref().map(|indexes| count(indexes.len() as u64))),
        or_unknown(one.index_bytes.map(bytes)),
    ]
}

fn total_row(survey: &Survey) -> [String; 8] {
    let totals = &survey.totals;
    [
        "all".to_owned(),
        count(totals.documents),
        bytes(totals.data_bytes),
        average(totals.average_document_bytes),
        bytes(totals.storage_bytes),
        times(totals.compression_ratio),
        count(totals.indexes),
        bytes(totals.index_bytes),
    ]
}

/// The cells in columns: the name to the left and cut to what is left of the width, the rest to
/// the right.
pub(super) fn aligned<const N: usize>(
    rows: &[[String; N]],
    width: usize,
    gap: &str,
) -> Vec<String> {
    let widest = |column: usize| rows.iter().map(|row| columns(&row[column])).max().unwrap_or(0);
    let widths: Vec<_> = (1..N).map(widest).collect();
    let taken: usize = widths.iter().map(|width| width + gap.len()).sum::<usize>() + 2;
    let name = widest(0).min(width.saturating_sub(taken).max(NAME_COLUMNS_MIN));
    let lines = rows.iter().map(|row| {
        let mut line = format!("  {}", left(&row[0], name));
        for (cell, width) in row[1..].iter().zip(&widths) {
            line.push_str(gap);
            line.push_str(&right(cell, *width));
        }
        line.trim_end().to_owned()
    });
    lines.collect()
}

/// A name, and a pair of before and after for documents, data, files, indexes.
type ChangeRow = (String, [(String, String); 4]);

fn change_header() -> ChangeRow {
    let pair = |text: &str| (String::new(), text.to_owned());
    ("collection".to_owned(), ["documents", "data", "on disk", "indexes"].map(pair))
}

fn change_row(before: Option<&Survey>, after: &SurveyedNamespace) -> ChangeRow {
    let name = after.namespace.to_string();
    let old = before.map(|before| before.of(&after.namespace));
    if after.is_view() {
        let was = if matches!(old, Some(None)) { "new view" } else { "view" };
        let nothing = || (String::new(), String::new());
        return (name, [(String::new(), was.to_owned()), nothing(), nothing(), nothing()]);
    }
    let pair = |of: &dyn Fn(&SurveyedNamespace) -> Option<String>| {
        let was = match old {
            None => UNKNOWN.to_owned(),
            Some(None) => "none".to_owned(),
            Some(Some(one)) => or_unknown(of(one)),
        };
        (was, or_unknown(of(after)))
    };
    let sizes = [
        pair(&|one| one.documents.map(count)),
        pair(&|one| one.data_bytes.map(bytes)),
        pair(&|one| one.storage_bytes.map(bytes)),
        pair(&|one| one.index_bytes.map(bytes)),
    ];
    (name, sizes)
}

fn change_total(before: Option<&Survey>, after: &Survey) -> ChangeRow {
    let pair =
        |of: &dyn Fn(&Survey) -> String| (before.map_or_else(|| UNKNOWN.to_owned(), of), of(after));
    let sums = [
        pair(&|survey| count(survey.totals.documents)),
        pair(&|survey| bytes(survey.totals.data_bytes)),
        pair(&|survey| bytes(survey.totals.storage_bytes)),
        pair(&|survey| bytes(survey.totals.index_bytes)),
    ];
    ("all".to_owned(), sums)
}

/// Pairs stand around their arrows; a heading stands at the right of its pair.
fn changes_aligned(rows: &[ChangeRow], width: usize) -> Vec<String> {
    const ARROW: &str = " → ";
    let widest = |column: usize, of: fn(&(String, String)) -> &String| {
        rows.iter().map(|row| columns(of(&row.1[column]))).max().unwrap_or(0)
    };
    let widths: [(usize, usize); 4] = std::array::from_fn(|column| {
        let befores = widest(column, |pair| &pair.0);
        // A heading alone makes no column wider than its pair.
        let paired = rows.iter().filter(|row| !row.1[column].0.is_empty());
        let afters = paired.map(|row| columns(&row.1[column].1)).max().unwrap_or(0);
        let lone = widest(column, |pair| &pair.1);
        (befores, afters.max(lone.saturating_sub(befores + columns(ARROW))))
    });
    let cells = rows.iter().map(|(name, pairs)| {
        let mut row: [String; 5] = std::array::from_fn(|_| String::new());
        row[0].clone_from(name);
        for ((cell, (before, after)), (befores, afters)) in
            row[1..].iter_mut().zip(pairs).zip(&widths)
        {
            *cell = if before.is_empty() {
                after.clone()
            } else {
                format!("{}{ARROW}{}", right(before, *befores), right(after, *afters))
            };
        }
        row
    });
    aligned(&cells.collect::<Vec<_>>(), width, "   ")
}

/// What came and went in a collection, a line each.
fn changed(one: &NamespaceDifference) -> Vec<String> {
    let names = |what: &str, names: &[String]| {
        (!names.is_empty()).then(|| line(&one.namespace, what, names))
    };
    if !one.was_there {
        return Vec::new();
    }
    [
        names("new indexes", &one.indexes_added),
        names("indexes that are gone", &one.indexes_removed),
        names("new fields", &one.fields_added),
        names("fields that are gone", &one.fields_removed),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn line(namespace: &Namespace, what: &str, names: &[String]) -> String {
    let shown: Vec<_> = names.iter().take(SUMMARY_ROWS).map(|name| one_line(name)).collect();
    let more = names.len() - shown.len();
    let more = if more > 0 { format!(" and {} more", count(more as u64)) } else { String::new() };
    format!("{namespace}: {what}: {}{more}", shown.join(", "))
}

#[cfg(test)]
mod tests {
    use crate::report::survey::samples;
    use crate::report::text::{Colour, Style, summary, surveyed};
    use crate::report::value::samples as reports;
    use crate::report::{BeforeAndAfter, Verbosity};

    const STYLE: Style = Style { colour: Colour::Never, width: 100, verbosity: Verbosity::Normal };

    #[test]
    fn a_survey_is_a_table_with_details() {
        let text = surveyed(&samples::report(), &STYLE);
        let expected = r#"  server     mongodb://127.0.0.1:27017
             MongoDB 6.0.5, wiredTiger, replica set rs0 of 3 members
  holds      2 collections, 1 view, 300,010 documents; found out in 1.5 s

  collection   documents     data  average  on disk  ratio  indexes  index size
  shop.orders    300,000  48.0 MB    160 B  12.0 MB    4.0        2     6.20 MB
  shop.items          10  2.00 kB    200 B  4.10 kB    0.5        1     4.10 kB
  shop.recent       view
  all            300,010  48.0 MB    160 B  12.0 MB    4.0        3     6.20 MB

  shop.orders
    indexes    _id_ {"_id":1}, 4.20 MB
               at_1 {"at":1}, 2.00 MB
    fields     of the 1,000 documents that were looked at
      _id            100 %  objectId
      customer       100 %  object
      customer.name   34 %  string 300, null 40
    examples   2 documents
      {"_id":1}
      (a part of 70.0 kB) {"_id":2

  shop.items
    indexes    _id_ {"_id":1}, 4.10 kB

  notes      2
    3 collections are not surveyed: the time for it was over
    shop.items: its documents cannot be read: not authorized on shop
"#;
        assert_eq!(text, expected, "{text}");
    }

    #[test]
    fn a_restore_tells_before_and_after() {
        let mut report = reports::clean();
        report.survey = Some(samples::before_and_after());
        let text = summary(&report, &STYLE);
        let (_, text) = text.split_once("\n\n  survey ").expect("there is one");
        let (text, _) = text.split_once("\n\n  skipped").expect("more follows");
        let expected = "    \
MongoDB 6.0.5, wiredTiger, replica set rs0 of 3 members
             compressed 4.0 to 1, 160 B a document

  collection          documents                data             on disk             indexes
  shop.orders   1,000 → 300,000    160 kB → 48.0 MB    100 kB → 12.0 MB    200 kB → 6.20 MB
  shop.items       10 →      10   2.00 kB → 2.00 kB   4.10 kB → 4.10 kB   4.10 kB → 4.10 kB
  shop.recent          new view
  all           1,010 → 300,010    162 kB → 48.0 MB    104 kB → 12.0 MB    204 kB → 6.20 MB

    shop.orders: new indexes: at_1
    shop.orders: new fields: customer, customer.name
    shop.orders: fields that are gone: name
    3 collections are not surveyed: the time for it was over
    shop.items: its documents cannot be read: not authorized on shop";
        assert_eq!(text, expected, "{text}");
    }

    #[test]
    fn what_was_there_before_may_not_be_known() {
        let mut report = reports::clean();
        report.survey = Some(BeforeAndAfter::new(None, Some(samples::after())));
        let text = summary(&report, &STYLE);
        assert!(text.contains("- → 300,000"), "{text}");
        report.survey = Some(BeforeAndAfter::new(Some(samples::before()), None));
        assert!(!summary(&report, &STYLE).contains("survey"), "the report says why");
    }
}
