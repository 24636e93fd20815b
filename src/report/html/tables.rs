//! The collections and the indexes, in tables that sort.

use std::cmp::Reverse;

use maud::{Markup, html};

use super::problems::further;
use super::{ROWS_MAX, lasting, latency, section, words};
use crate::report::format::{bytes, count, rate};
use crate::report::rate::per_second;
use crate::report::value::{CollectionReport, CollectionState, IndexReport, Report};

/// A cell, and what it is sorted by where that is not its text.
pub(super) struct Cell {
    text: String,
    sort: Option<f64>,
    is_wrong: bool,
}

impl Cell {
    pub(super) fn number(text: String, sort: f64) -> Self {
        Self { text, sort: Some(sort), is_wrong: false }
    }

    pub(super) fn none() -> Self {
        Self { text: "–".to_owned(), sort: Some(-1.0), is_wrong: false }
    }

    pub(super) fn draw(&self) -> Markup {
        html! {
            td.number[self.sort.is_some()].wrong[self.is_wrong] data-sort=[self.sort] {
                (self.text)
            }
        }
    }
}

const COLUMNS: [&str; 10] = [
    "Documents",
    "Rejected",
    "Bytes",
    "Documents/s",
    "Time",
    "p50",
    "p99",
    "Retries",
    "Indexes",
    "State",
];

/// The collections: first what went wrong, then the largest.
pub(super) fn collections(report: &Report) -> Markup {
    let mut sorted: Vec<_> = report.collections.iter().collect();
    sorted.sort_by_key(|one| {
        let is_well = one.state == CollectionState::Done && one.balance.rejected == 0;
        (is_well, Reverse(one.balance.read), Reverse(one.bytes_acknowledged))
    });
    let more = sorted.len().saturating_sub(ROWS_MAX) as u64;
    let content = html! {
        @if sorted.is_empty() {
            p.quiet { "There were none." }
        } @else {
            div.scroll tabindex="0" role="region" aria-label="Collections" {
                table.sorts {
                    thead { tr {
                        th scope="col" { "Collection" }
                        @for name in COLUMNS {
                            th.number[name != "State"] scope="col" { (name) }
                        }
                    } }
                    tbody { @for one in sorted.iter().take(ROWS_MAX) { (collection(one)) } }
                }
            }
            (further(more))
        }
    };
    section("collections", "Collections", &content)
}

fn collection(one: &CollectionReport) -> Markup {
    html! {
        tr {
            th.name scope="row" { code { (words(&one.namespace.to_string())) } }
            @for cell in cells(one) { (cell.draw()) }
        }
    }
}

fn cells(one: &CollectionReport) -> Vec<Cell> {
    let balance = &one.balance;
    let pace = one.data_time.map_or_else(Cell::none, |time| {
        let pace = per_second(balance.done() - one.done_before, time);
        Cell::number(rate(pace), pace)
    });
    let time = one
        .data_time
        .map_or_else(Cell::none, |time| Cell::number(lasting(time), time.as_secs_f64()));
    let quantile = |seconds: f64| match one.latency.count {
        0 => Cell::none(),
        _ => Cell::number(latency(seconds), seconds),
    };
    let whole = |number: u64| Cell::number(count(number), float(number));
    let (built, planned) = (one.indexes_built() as u64, one.indexes_planned as u64);
    let indexes = if built == planned {
        count(built)
    } else {
        format!("{} of {}", count(built), count(planned))
    };
    vec![
        whole(balance.done() + balance.already_there),
        Cell { is_wrong: balance.rejected > 0, ..whole(balance.rejected) },
        Cell::number(bytes(one.bytes_acknowledged), float(one.bytes_acknowledged)),
        pace,
        time,
        quantile(one.latency.p50_seconds),
        quantile(one.latency.p99_seconds),
        whole(one.retries),
        Cell::number(indexes, float(planned)),
        state(one),
    ]
}

fn state(one: &CollectionReport) -> Cell {
    let word = match one.state {
        CollectionState::Done => "done",
        CollectionState::Waiting => "not begun",
        CollectionState::Loading => "incomplete",
        CollectionState::Indexing => "indexes left",
        CollectionState::Failed => "failed",
    };
    let kind = if one.kind == "collection" { String::new() } else { format!(", {}", one.kind) };
    let is_wrong = one.state == CollectionState::Failed;
    Cell { text: format!("{word}{kind}"), sort: None, is_wrong }
}

/// The indexes: first those that do not stand, then those that took longest.
pub(super) fn indexes(report: &Report) -> Markup {
    let all = report.collections.iter();
    let mut sorted: Vec<_> =
        all.flat_map(|one| one.indexes.iter().map(move |index| (one, index))).collect();
    if sorted.is_empty() {
        return html! {};
    }
    sorted.sort_by_key(|(_, index)| (index.is_built, Reverse(index.build_time)));
    let more = sorted.len().saturating_sub(ROWS_MAX) as u64;
    let content = html! {
        div.scroll tabindex="0" role="region" aria-label="Indexes" {
            table.sorts {
                thead { tr {
                    th scope="col" { "Collection" }
                    th scope="col" { "Index" }
                    th.number scope="col" { "Build time" }
                    th scope="col" { "State" }
                } }
                tbody { @for (one, built) in sorted.iter().take(ROWS_MAX) { (index(one, built)) } }
            }
        }
        (further(more))
    };
    section("indexes", "Indexes", &content)
}

fn index(collection: &CollectionReport, index: &IndexReport) -> Markup {
    let time = index
        .build_time
        .map_or_else(Cell::none, |time| Cell::number(lasting(time), time.as_secs_f64()));
    let state = match (&index.error, index.is_built) {
        (Some(_), _) => "not built",
        (None, true) => "built",
        (None, false) => "not finished",
    };
    html! {
        tr {
            th.name scope="row" { code { (words(&collection.namespace.to_string())) } }
            td { code { (words(&index.name)) } }
            (time.draw())
            td.wrong[index.error.is_some()] { (state) }
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "what is sorted need not be exact")]
fn float(number: u64) -> f64 {
    number as f64
}
