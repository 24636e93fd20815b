//! An inspection as a table for a person.

use super::{InspectedCollection, Inspection, Totals};
use crate::report::format::{self, bytes, count, counted};

/// The columns of the table: their heads, and whether they hold numbers.
const HEADS: [(&str, bool); 9] = [
    ("namespace", false),
    ("kind", false),
    ("documents", true),
    ("bytes", true),
    ("average", true),
    ("largest", true),
    ("indexes", true),
    ("file", true),
    ("problems", true),
];

/// The space between two columns.
const GAP: &str = "  ";

/// A namespace is not shortened below this many columns; the table then is too wide.
const NAMESPACE_COLUMNS_MIN: usize = 16;

/// What stands for a number that a collection does not have.
const NONE: &str = "-";

type Row = [String; HEADS.len()];

pub(super) fn text(inspection: &Inspection, width: Option<usize>) -> String {
    let mut out = header(inspection);
    out.push_str(&table(inspection, width));
    out.push_str(&notes(inspection));
    out.push_str(&problems(inspection));
    out.push_str(&skipped(inspection));
    out
}

fn header(inspection: &Inspection) -> String {
    let mut parts = vec![inspection.root.display().to_string()];
    if let Some(version) = &inspection.server_version {
        parts.push(format!("from server {version}"));
    }
    if let Some(version) = &inspection.tool_version {
        parts.push(format!("taken by {version}"));
    }
    if inspection.depth == super::Depth::Deep {
        parts.push("checked deeply".to_owned());
    }
    format!("{}\n\n", format::one_line(&parts.join(", ")))
}

fn table(inspection: &Inspection, width: Option<usize>) -> String {
    let mut rows = vec![HEADS.map(|(head, _)| head.to_owned())];
    rows.extend(inspection.collections.iter().map(row));
    rows.push(totals_row(&inspection.totals()));
    let mut widths: [usize; HEADS.len()] = std::array::from_fn(|column| {
        rows.iter().map(|row| format::columns(&row[column])).max().unwrap_or(0)
    });
    if let Some(width) = width {
        let others: usize = widths[1..].iter().map(|column| column + GAP.len()).sum();
        let room = width.saturating_sub(others).max(NAMESPACE_COLUMNS_MIN);
        widths[0] = widths[0].min(room);
    }
    rows.iter().map(|row| line(row, &widths)).collect()
}

fn line(row: &Row, widths: &[usize; HEADS.len()]) -> String {
    let cells: Vec<_> = row
        .iter()
        .zip(HEADS)
        .zip(widths)
        .map(|((cell, (_, is_number)), width)| {
            if is_number {
                format::right(cell, *width)
            } else {
                format::left(&shortened(cell, *width), *width)
            }
        })
        .collect();
    format!("{}\n", cells.join(GAP).trim_end())
}

fn row(collection: &InspectedCollection) -> Row {
    let data = collection.data.as_ref();
    let cell = |text: Option<String>| text.unwrap_or_else(|| NONE.to_owned());
    let file = |data: &super::InspectedData| {
        let size = bytes(data.file_bytes?);
        Some(match data.compression {
            crate::dump::Compression::None => size,
            compression => format!("{} {size}", compression.name()),
        })
    };
    [
        collection.namespace.to_string(),
        collection.kind.name().to_owned(),
        cell(data.map(|data| count(data.documents))),
        cell(data.map(|data| bytes(data.bytes))),
        cell(data.map(|data| bytes(data.average()))),
        cell(data.map(|data| bytes(data.largest))),
        count(collection.indexes as u64),
        cell(data.and_then(file)),
        problem_cell(collection.problem_count()),
    ]
}

fn totals_row(totals: &Totals) -> Row {
    [
        format!("total of {}", count(totals.collections)),
        String::new(),
        count(totals.documents),
        bytes(totals.bytes),
        bytes(totals.bytes.checked_div(totals.documents).unwrap_or(0)),
        bytes(totals.largest),
        count(totals.indexes),
        bytes(totals.file_bytes),
        problem_cell(totals.problems),
    ]
}

/// An empty cell where all is well, so that the others catch the eye.
fn problem_cell(problems: u64) -> String {
    if problems == 0 { String::new() } else { count(problems) }
}

/// A text of at most that many columns, with an ellipsis for its middle: names of one family
/// differ at their ends more often than in between.
fn shortened(text: &str, width: usize) -> String {
    if format::columns(text) <= width {
        return text.to_owned();
    }
    let kept = width.saturating_sub(1);
    let front = fitting(text.chars(), kept.div_ceil(2));
    let back = fitting(text.chars().rev(), kept / 2);
    let back: String = back.chars().rev().collect();
    format!("{front}…{back}")
}

/// As many of the first characters as fit.
fn fitting(characters: impl Iterator<Item = char>, width: usize) -> String {
    let mut text = String::new();
    for character in characters {
        text.push(character);
        if format::columns(&text) > width {
            text.pop();
            break;
        }
    }
    text
}

fn notes(inspection: &Inspection) -> String {
    let of = |collection: &InspectedCollection| {
        let without_id = collection.data.as_ref().map_or(0, |data| data.without_id);
        (without_id > 0).then(|| {
            let documents = counted(without_id, "document has", "documents have");
            format!("  {}: {documents} no _id\n", collection.namespace)
        })
    };
    section("notes", inspection.collections.iter().filter_map(of))
}

fn problems(inspection: &Inspection) -> String {
    let lines = inspection.collections.iter().flat_map(|collection| {
        let listed = collection.problems.iter().map(|problem| {
            let file = problem.file.display();
            let place = problem.offset.map(|offset| format!(", byte {}", count(offset)));
            format!("  {file}{}: {}\n", place.unwrap_or_default(), problem.what)
        });
        let unlisted = match collection.unlisted() {
            0 => None,
            more => {
                let is_deep = inspection.depth == super::Depth::Deep;
                let findings = if is_deep {
                    counted(more, "more finding", "more findings")
                } else {
                    counted(more, "more damaged document", "more damaged documents")
                };
                Some(format!("  {}: {findings}\n", collection.namespace))
            }
        };
        listed.chain(unlisted)
    });
    let unread = inspection.skipped.iter().filter(|skipped| skipped.is_problem);
    section("problems", lines.chain(unread.map(skipped_line)))
}

fn skipped(inspection: &Inspection) -> String {
    let strays = inspection.skipped.iter().filter(|skipped| !skipped.is_problem);
    section("skipped", strays.map(skipped_line))
}

fn skipped_line(skipped: &crate::dump::SkippedPath) -> String {
    format!("  {}: {}\n", skipped.path.display(), skipped.reason)
}

/// The lines under their title, or nothing where there are none.
fn section(title: &str, lines: impl Iterator<Item = String>) -> String {
    let lines: String = lines.collect();
    if lines.is_empty() { lines } else { format!("\n{title}:\n{lines}") }
}

#[cfg(test)]
mod tests {
    use super::super::tests::sample;
    use super::*;

    #[test]
    fn the_table_is_aligned_and_followed_by_problems_and_strays() {
        let expected = "\
dump, from server 6.0.5, taken by 100.18.0

namespace                                          kind        documents   bytes  average  largest  indexes          file  problems
shop.orders_of_the_last_twelve_months_by_customer  collection  1,234,567  222 MB    180 B  1.02 kB        2  gzip 61.0 MB        97
shop.recent                                        view                -       -        -        -        0             -
total of 2                                                     1,234,567  222 MB    180 B  1.02 kB        2       61.0 MB        97

notes:
  shop.orders_of_the_last_twelve_months_by_customer: 1 document has no _id

problems:
  dump/shop/orders.bson.gz, byte 4,096: a document is damaged 12 bytes in: an unknown type
  dump/shop/orders.bson.gz: cannot be opened
  shop.orders_of_the_last_twelve_months_by_customer: 95 more damaged documents

skipped:
  dump/notes.txt: not part of a dump
";
        let shown = text(&sample(), None);
        assert_eq!(shown, expected, "\n{shown}");
    }

    #[test]
    fn long_names_are_shortened_in_the_middle_to_fit() {
        let shown = text(&sample(), Some(110));
        let rows: Vec<_> = shown.lines().skip(2).take(4).collect();
        assert!(rows.iter().all(|row| format::columns(row) <= 110), "{shown}");
        assert!(rows[1].starts_with("shop.orders_of…s_by_customer  "), "{shown}");
    }

    #[test]
    fn shortened_texts_fit_whatever_their_characters_take() {
        assert_eq!(shortened("abcdefghij", 10), "abcdefghij");
        assert_eq!(shortened("abcdefghij", 7), "abc…hij");
        assert_eq!(shortened("日本語日本語", 7), "日…語");
    }
}
