//! How far collections are, as the table that mongorestore writes into its log.

use std::fmt::Write as _;

use crate::report::mongorestore::data_namespace;
use crate::report::tally::collection::CollectionTally;

/// The characters between the brackets of a bar.
const BAR_CELLS: u64 = 24;

/// A bar, the name, the bytes and the share; empty where there is no telling.
pub(super) struct Row([String; 4]);

impl Row {
    /// How far a collection is.
    pub(super) fn of(tally: &CollectionTally) -> Self {
        let (done, all) = (tally.counts.origin_bytes_acknowledged, tally.planned.origin_bytes);
        let name = data_namespace(tally).to_string();
        if all == 0 {
            // In an archive nothing tells how much there is of a collection.
            let done = tally.counts.bytes_acknowledged;
            return Self([String::new(), name, size(done), String::new()]);
        }
        let parts = |of: u64| done.saturating_mul(of).checked_div(all).unwrap_or_default();
        let filled = usize::try_from(parts(BAR_CELLS).min(BAR_CELLS)).unwrap_or_default();
        let cells = usize::try_from(BAR_CELLS).unwrap_or_default();
        let thousandths = parts(1000);
        Self([
            format!("[{}{}]", "#".repeat(filled), ".".repeat(cells - filled)),
            name,
            format!("{}/{}", size(done), size(all)),
            format!("({}.{}%)", thousandths / 10, thousandths % 10),
        ])
    }

    /// How far the oplog is, of which nothing tells how long it is.
    pub(super) fn of_oplog(entries: u64) -> Self {
        Self([String::new(), "oplog".to_owned(), entries.to_string(), String::new()])
    }
}

/// The rows below each other, and an empty one after several.
pub(super) fn grid(rows: &[Row]) -> Vec<String> {
    let width = |cell: usize| rows.iter().map(|row| row.0[cell].chars().count()).max().unwrap_or(0);
    let widths = [width(0), width(1), width(2), width(3)];
    let mut lines: Vec<String> = rows.iter().map(|row| line(row, widths)).collect();
    if lines.len() > 1 {
        lines.push(" ".to_owned());
    }
    lines
}

/// The cells of a row at the right of their columns; one that is empty in every row is not there.
fn line(row: &Row, widths: [usize; 4]) -> String {
    let mut line = String::new();
    for (cell, width) in row.0.iter().zip(widths).filter(|(_, width)| *width > 0) {
        let gap = if line.is_empty() { "" } else { "  " };
        // Writing to a string cannot fail.
        let _ = write!(line, "{gap}{cell:>width$}");
    }
    line
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::event::Event;
    use crate::report::tally::Tally;
    use crate::report::value::samples;
    use std::time::Duration;

    #[test]
    fn progress_is_a_grid() {
        let mut tally = Tally::default();
        for event in samples::clean_events().into_iter().take(6) {
            tally.apply(Duration::ZERO, &event);
        }
        tally.apply(Duration::ZERO, &Event::ReadBegan { collection: 1 });
        tally.apply(Duration::ZERO, &samples::written(1, [5, 0, 0], 33, 33));
        let rows: Vec<_> = tally.active().map(|(_, tally)| Row::of(tally)).collect();
        assert_eq!(
            grid(&rows),
            [
                "[########################]  shop.orders  900B/900B  (100.0%)",
                "[#######.................]   shop.items   33B/100B   (33.0%)",
                " ",
            ]
        );
    }

    #[test]
    fn without_a_size_there_are_name_and_bytes() {
        let mut tally = Tally::default();
        tally.apply(
            Duration::ZERO,
            &Event::Planned { collections: vec![samples::planned("a", 0, 0).into()] },
        );
        tally.apply(Duration::ZERO, &Event::ReadBegan { collection: 0 });
        tally.apply(Duration::ZERO, &samples::written(0, [10, 0, 0], 3300, 0));
        let mut rows: Vec<_> = tally.active().map(|(_, tally)| Row::of(tally)).collect();
        assert_eq!(grid(&rows), ["shop.a  3.22KB"]);
        rows.push(Row::of_oplog(12));
        assert_eq!(grid(&rows), ["shop.a  3.22KB", " oplog      12", " "]);
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
}
