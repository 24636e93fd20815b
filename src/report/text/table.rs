//! The table of the largest collections.

use crate::limits::SUMMARY_ROWS;
use crate::report::Verbosity;
use crate::report::format::{bytes, columns, count, counted, duration, left, right, whole};
use crate::report::rate::per_second;
use crate::report::text::Style;
use crate::report::value::{CollectionReport, CollectionState};

/// The least that a name keeps on a narrow terminal.
const NAME_COLUMNS_MIN: usize = 12;

const HEADER: [&str; 7] =
    ["collection", "documents", "bytes", "inserts/s", "time", "indexes", "state"];

/// The table's lines, the largest collection first.
pub(super) fn collections(collections: &[CollectionReport], style: &Style) -> Vec<String> {
    let shown = match style.verbosity {
        Verbosity::Normal => SUMMARY_ROWS,
        Verbosity::Verbose => usize::MAX,
    };
    let mut largest: Vec<_> = collections.iter().collect();
    // What went wrong must not hide among what went well.
    largest.sort_by_key(|one| {
        let is_done = one.state == CollectionState::Done;
        (is_done, std::cmp::Reverse(one.bytes_acknowledged.max(one.origin_bytes)))
    });
    let more = largest.len().saturating_sub(shown);
    largest.truncate(shown);
    let mut header = HEADER.map(str::to_owned);
    if collections.iter().any(|one| !one.balance.changes.is_none()) {
        header[3].replace_range(.., "writes/s");
    }
    let mut rows: Vec<_> =
        std::iter::once(header).chain(largest.iter().map(|one| row(one))).collect();
    if collections.iter().all(|one| one.state == CollectionState::Done) {
        for row in &mut rows {
            row[6].clear();
        }
    }
    let mut lines = aligned(&rows, style.width);
    if more > 0 {
        let smaller = counted(more as u64, "collection", "collections");
        lines.push(format!("  and {smaller} more"));
    }
    lines
}

fn row(collection: &CollectionReport) -> [String; 7] {
    let name = collection.namespace.to_string();
    let state = match collection.state {
        CollectionState::Done => "",
        CollectionState::Waiting => "not begun",
        CollectionState::Loading => "incomplete",
        CollectionState::Indexing => "indexes left",
        CollectionState::Failed => "failed",
    };
    if collection.kind == "view" {
        let nothing = String::new;
        return [name, "view".into(), nothing(), nothing(), nothing(), nothing(), state.into()];
    }
    let done = collection.balance.done();
    let (rate, time) = match collection.data_time {
        Some(time) => (whole(per_second(done - collection.done_before, time)), duration(time)),
        None => ("-".into(), "-".into()),
    };
    let (built, planned) = (collection.indexes_built(), collection.indexes_planned);
    let indexes =
        if built == planned { built.to_string() } else { format!("{built} of {planned}") };
    let written = bytes(collection.bytes_acknowledged);
    [name, count(done), written, rate, time, indexes, state.into()]
}

/// The cells in columns: the name to the left and cut to what is left of the width, the numbers to
/// the right, the state to the left.
fn aligned(rows: &[[String; 7]], width: usize) -> Vec<String> {
    let widest = |column: usize| rows.iter().map(|row| columns(&row[column])).max().unwrap_or(0);
    let numbers: Vec<_> = (1..6).map(widest).collect();
    let taken: usize = numbers.iter().map(|width| width + 2).sum::<usize>() + widest(6) + 4;
    let name = widest(0).min(width.saturating_sub(taken).max(NAME_COLUMNS_MIN));
    let lines = rows.iter().map(|row| {
        let mut line = format!("  {}", left(&row[0], name));
        for (cell, width) in row[1..6].iter().zip(&numbers) {
            line.push_str("  ");
            line.push_str(&right(cell, *width));
        }
        line.push_str("  ");
        line.push_str(&row[6]);
        line.trim_end().to_owned()
    });
    lines.collect()
}
