//! A comparison as a table for a terminal.

use super::compare::{CeilingResult, CellResult, Comparison, SearchResult};
use super::figures::FIGURES;
use super::statistics::Interval;
use crate::report::format::{bytes, columns, count, counted, left, right, whole};

/// The columns behind the name; those without any value are left out.
const COLUMNS: [&str; 9] = [
    "wall_seconds",
    "megabytes_per_second",
    "index_seconds",
    "client_cpu_seconds",
    "server_cpu_seconds",
    "client_peak_bytes",
    "server_peak_bytes",
    "disk_bytes",
    "compression_ratio",
];

/// The comparison as lines.
pub fn summary(comparison: &Comparison) -> String {
    let mut lines = facts(comparison);
    lines.push(String::new());
    lines.extend(table(&comparison.cells));
    lines.extend(comparison.cells.iter().flat_map(remarks));
    if !comparison.ceilings.is_empty() {
        lines.push(String::new());
        lines.extend(comparison.ceilings.iter().map(ceiling));
    }
    if let Some(search) = &comparison.search {
        lines.push(String::new());
        lines.extend(searched(search));
    }
    lines.extend(comparison.noise.iter().map(|noise| format!("warning: {noise}")));
    lines.join("\n") + "\n"
}

fn facts(comparison: &Comparison) -> Vec<String> {
    let setup = &comparison.setup;
    let dump = &setup.dump;
    vec![
        format!(
            "{}: {}, {}, {}",
            dump.path,
            counted(dump.collections, "collection", "collections"),
            counted(dump.documents, "document", "documents"),
            bytes(dump.bytes)
        ),
        format!(
            "into {}, MongoDB {}; {}, {}",
            setup.server.words(),
            setup.server_version,
            setup.machine.processor,
            counted(setup.machine.cores, "core", "cores")
        ),
        "medians, with the interval that holds them with a probability of 95 %; ratios to the \
         first line, pair by pair"
            .to_owned(),
    ]
}

fn table(cells: &[CellResult]) -> Vec<String> {
    let figures: Vec<_> = COLUMNS
        .iter()
        .filter_map(|name| FIGURES.iter().find(|figure| figure.name == *name))
        .filter(|figure| cells.iter().any(|cell| cell.figures.contains_key(figure.name)))
        .collect();
    let mut header: Vec<String> =
        ["", "runs", "rank", "documents/s", "ratio"].map(str::to_owned).to_vec();
    header.extend(figures.iter().map(|figure| figure.title.to_owned()));
    let mut rows = vec![header];
    for cell in cells {
        let none = || "–".to_owned();
        let mut row = vec![
            cell.cell.label.clone(),
            cell.runs.to_string(),
            cell.rank.map_or_else(none, |rank| rank.to_string()),
            cell.rate().map_or_else(none, |rate| between(rate, whole)),
            cell.ratio.map_or_else(none, |ratio| between(ratio, |ratio| format!("{ratio:.2}"))),
        ];
        row.extend(figures.iter().map(|figure| {
            cell.figures.get(figure.name).map_or_else(none, |value| (figure.show)(value.median))
        }));
        rows.push(row);
    }
    aligned(&rows)
}

/// A median and the ends of its interval.
fn between(interval: Interval, show: fn(f64) -> String) -> String {
    format!("{} [{}–{}]", show(interval.median), show(interval.low), show(interval.high))
}

/// The first cell of each row to the left, the others to the right.
fn aligned(rows: &[Vec<String>]) -> Vec<String> {
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| columns(cell)).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..rows[0].len()).map(width).collect();
    let lines = rows.iter().map(|row| {
        let mut line = left(&row[0], widths[0]);
        for (cell, width) in row[1..].iter().zip(&widths[1..]) {
            line.push_str("  ");
            line.push_str(&right(cell, *width));
        }
        line.trim_end().to_owned()
    });
    lines.collect()
}

/// What is worth knowing of a setting besides its figures.
fn remarks(cell: &CellResult) -> Vec<String> {
    let label = &cell.cell.label;
    let mut remarks: Vec<_> = cell
        .outliers
        .iter()
        .map(|far| {
            let (round, seconds, score) = (far.round, far.wall_seconds, far.score);
            format!("{label}: round {round} is an outlier, {seconds:.2} s (score {score:+.1})")
        })
        .collect();
    if let Some(complaint) = cell.complaint() {
        let said = cell.error.as_deref().map(|said| format!(": {said}")).unwrap_or_default();
        remarks.push(format!("{label}: {complaint}; it has no rank{said}"));
    }
    remarks
}

fn ceiling(ceiling: &CeilingResult) -> String {
    let share = between(ceiling.share, |share| format!("{:.1} %", share * 100.0));
    let (restore, most) = (whole(ceiling.restore.median), whole(ceiling.ceiling.median));
    format!(
        "{}: {share} of the ceiling, {restore} of {most} documents/s while documents are sent",
        ceiling.label
    )
}

fn searched(search: &SearchResult) -> Vec<String> {
    let mut rows = vec![["workers", "documents/s"].map(str::to_owned).to_vec()];
    rows.extend(
        search
            .curve
            .iter()
            .map(|point| vec![point.workers.to_string(), between(point.rate, whole)]),
    );
    let mut lines = aligned(&rows);
    for (line, point) in lines[1..].iter_mut().zip(&search.curve) {
        let what = match (point.workers == search.best, point.is_slower) {
            (true, _) => "best",
            (_, true) => "slower",
            (_, false) => "not told apart from the best",
        };
        line.push_str("  ");
        line.push_str(what);
    }
    let (best, enough) = (count(search.best.into()), count(search.enough.into()));
    lines.push(if best == enough {
        format!("best: {best} workers")
    } else {
        format!("best: {best} workers; as few as {enough} are not known to be slower")
    });
    if let Some(adaptive) = search.adaptive {
        let ratio = between(adaptive, |ratio| format!("{ratio:.2}"));
        lines.push(format!("found out by restore itself: {ratio} times the best"));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::super::compare::compare;
    use super::super::sample::made;
    use super::*;

    #[test]
    fn the_table_says_what_was_found() {
        let walls = [[1.0, 0.5], [1.1, 0.5], [9.0, 0.5], [1.05, 0.5], [0.95, 0.5]];
        let mut all = made::samples(&walls);
        all.samples[9].documents_missing = 3;
        all.samples[9].error = Some("it gave up".into());
        let text = summary(&compare(all));
        let expected = "\
dump: 2 collections, 1,000 documents, 2.00 MB
into a fresh private mongod for each run, MongoDB 6.0.5; one <fast>, 2 cores
medians, with the interval that holds them with a probability of 95 %; ratios to the first line, pair by pair

                   runs  rank          documents/s              ratio    wall  MB/s  indexes  client CPU  server CPU  client peak  server peak  on disk  compression
restorm workers=1     5     1      952 [111–1,053]                  –  1.05 s   1.9   100 ms      300 ms      500 ms      31.5 MB       210 MB   550 kB         4.00
restorm workers=2     4     –  2,000 [2,000–2,000]  2.15 [2.00–18.00]  500 ms   4.0   100 ms      300 ms      500 ms      31.5 MB       210 MB   550 kB         4.00
restorm workers=1: round 3 is an outlier, 9.00 s (score +107.2)
restorm workers=2: lost 3 documents; it has no rank: it gave up
";
        assert_eq!(text, expected, "\n{text}");
    }

    #[test]
    fn a_search_and_noise_are_told() {
        let mut all = made::samples(&[[2.0, 1.0], [2.0, 1.0], [2.1, 1.0]]);
        all.setup.searches = true;
        all.setup.machine.load = 7.0;
        let text = summary(&compare(all));
        assert!(text.contains("\n1              500 [476–500]  slower\n"), "{text}");
        assert!(text.contains("\n2        1,000 [1,000–1,000]  best\n"), "{text}");
        assert!(text.contains("best: 2 workers\n"), "{text}");
        assert!(text.contains("warning: the load before the first run was 7.0"), "{text}");
    }
}
