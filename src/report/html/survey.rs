//! What the target held before and after.

use std::cmp::Reverse;

use maud::{Markup, html};

use super::problems::{further, list};
use super::tables::Cell;
use super::{ROWS_MAX, section, words};
use crate::report::format::{bytes, count};
use crate::report::survey::{BeforeAndAfter, NamespaceDifference, Survey, SurveyedNamespace};
use crate::report::text::survey::server;

const COLUMNS: [&str; 8] = [
    "Documents before",
    "Documents after",
    "Data",
    "A document",
    "On disk",
    "Ratio",
    "Indexes",
    "Index size",
];

/// The target before and after; fields and example documents are left to the JSON report.
pub(super) fn before_and_after(survey: &BeforeAndAfter) -> Markup {
    let Some(last) = survey.after.as_ref().or(survey.before.as_ref()) else {
        let content = html! { p.quiet { "It could not be found out." } };
        return section("survey", "The target before and after", &content);
    };
    let changes: Vec<_> = survey.difference.iter().flat_map(|one| &one.namespaces).collect();
    let changes: Vec<_> = changes.into_iter().filter_map(changed).collect();
    let notes = [&survey.before, &survey.after].into_iter().flatten().flat_map(|one| &one.notes);
    let notes: Vec<_> = notes.map(|note| html! { (words(note)) }).collect();
    let content = html! {
        p { (words(&server(&last.server))) }
        @if survey.after.is_none() { p.wrong { "What it holds after could not be found out." } }
        @if survey.before.is_none() { p.wrong { "What it held before could not be found out." } }
        (table(survey, last))
        @if !changes.is_empty() { h3 { "Indexes and fields" } (list(changes.into_iter())) }
        @if !notes.is_empty() { (list(notes.into_iter())) }
        p.quiet { "The JSON report has the fields of each collection and documents as examples." }
    };
    section("survey", "The target before and after", &content)
}

fn table(survey: &BeforeAndAfter, last: &Survey) -> Markup {
    let mut sorted: Vec<_> = last.namespaces.iter().collect();
    sorted.sort_by_key(|one| Reverse(one.data_bytes));
    let more = sorted.len().saturating_sub(ROWS_MAX) as u64;
    html! {
        div.scroll tabindex="0" role="region" aria-label="The target's collections" {
            table.sorts {
                thead { tr {
                    th scope="col" { "Collection" }
                    @for name in COLUMNS { th.number scope="col" { (name) } }
                } }
                tbody {
                    @for one in sorted.into_iter().take(ROWS_MAX) {
                        tr {
                            th.name scope="row" { code { (words(&one.namespace.to_string())) } }
                            @for cell in cells(survey, one) { (cell.draw()) }
                        }
                    }
                }
            }
        }
        (further(more))
    }
}

fn cells(survey: &BeforeAndAfter, one: &SurveyedNamespace) -> Vec<Cell> {
    let documents = |side: &Option<Survey>| {
        let number = match side.as_ref().map(|side| side.of(&one.namespace)) {
            None => None,
            // What is not there holds nothing.
            Some(None) => Some(0),
            Some(Some(one)) => one.documents,
        };
        number.map_or_else(Cell::none, |number| Cell::number(count(number), float(number)))
    };
    let size = |number: Option<u64>| {
        number.map_or_else(Cell::none, |number| Cell::number(bytes(number), float(number)))
    };
    let decimal = |number: Option<f64>, unit: &str| {
        number.map_or_else(Cell::none, |number| Cell::number(format!("{number:.1}{unit}"), number))
    };
    let indexes = one.indexes.as_ref().map(|indexes| indexes.len() as u64);
    vec![
        documents(&survey.before),
        documents(&survey.after),
        size(one.data_bytes),
        decimal(one.average_document_bytes, " B"),
        size(one.storage_bytes),
        decimal(one.compression_ratio, ""),
        indexes.map_or_else(Cell::none, |number| Cell::number(count(number), float(number))),
        size(one.index_bytes),
    ]
}

/// What came and went of a collection besides its documents.
fn changed(one: &NamespaceDifference) -> Option<Markup> {
    let lists = [
        ("indexes added", &one.indexes_added),
        ("indexes removed", &one.indexes_removed),
        ("fields added", &one.fields_added),
        ("fields removed", &one.fields_removed),
    ];
    let named: Vec<_> = lists
        .into_iter()
        .filter(|(_, names)| !names.is_empty())
        .map(|(what, names)| format!("{what}: {}", names.join(", ")))
        .collect();
    (!named.is_empty()).then(|| {
        html! {
            code { (words(&one.namespace.to_string())) } ": " (words(&named.join("; ")))
        }
    })
}

#[expect(clippy::cast_precision_loss, reason = "what is sorted need not be exact")]
fn float(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::survey::samples;

    #[test]
    fn both_sides_stand_beside_each_other() {
        let survey = samples::before_and_after();
        let text = before_and_after(&survey).into_string();
        let after = survey.after.as_ref().expect("a side");
        for one in &after.namespaces {
            assert!(text.contains(&format!("<code>{}</code>", one.namespace)), "{text}");
            if let Some(documents) = one.documents {
                assert!(text.contains(&format!(">{}</td>", count(documents))), "{text}");
            }
        }
        assert!(text.contains("indexes added"), "{text}");
        assert!(!text.contains("could not be found out"));
    }

    #[test]
    fn a_side_that_is_not_known_is_said_to_be_so() {
        let after_alone = BeforeAndAfter::new(None, Some(samples::after()));
        let text = before_and_after(&after_alone).into_string();
        assert!(text.contains("What it held before could not be found out."), "{text}");
        let nothing = before_and_after(&BeforeAndAfter::new(None, None)).into_string();
        assert!(nothing.contains("It could not be found out."), "{nothing}");
    }
}
