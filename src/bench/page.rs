//! A comparison as a page for a browser: the table, and a plot of every run.

use maud::{Markup, html};

use super::compare::{CellResult, Comparison, SearchResult};
use super::figures::{FIGURES, Figure, Run, seconds};
use super::statistics::Interval;
use crate::report::format::{bytes, counted, whole};
use crate::report::html::{document, section};

/// The height of a setting in a plot, in pixels.
const ROW_HEIGHT: f64 = 26.0;

/// The most runs of a setting that are drawn.
const DOTS_MAX: usize = 500;

/// The page.
pub fn page(comparison: &Comparison) -> String {
    let plots = FIGURES.iter().filter(|figure| {
        // Where all is zero there is nothing to see.
        let found = comparison.cells.iter().filter_map(|cell| cell.figures.get(figure.name));
        found.into_iter().any(|interval| interval.high > 0.0)
    });
    let plots = html! {
        @for figure in plots { (plot(figure, comparison)) }
        p.quiet {
            "A dot is a run, the stroke the median, the bar the interval that holds it with a "
            "probability of 95 %."
        }
    };
    let body = html! {
        (header(comparison))
        main {
            @if !comparison.noise.is_empty() {
                (section("noise", "Noise", &html! {
                    ul.lines { @for noise in &comparison.noise { li.wrong { (noise) } } }
                }))
            }
            (section("settings", "Settings", &table(comparison)))
            @if !comparison.ceilings.is_empty() {
                (section("ceiling", "Share of the ceiling", &ceilings(comparison)))
            }
            @if let Some(search) = &comparison.search {
                (section("search", "Workers", &searched(search)))
            }
            (section("runs", "Runs", &plots))
        }
        footer {
            span { "restorm " (comparison.setup.tool_version) }
            span { "seed " (comparison.setup.seed) }
        }
    };
    document("benchmark", &body)
}

fn header(comparison: &Comparison) -> Markup {
    let setup = &comparison.setup;
    let fastest = comparison.cells.iter().find(|cell| cell.rank == Some(1));
    html! {
        header {
            p.brand { "restorm bench" }
            h1 {
                strong { "BENCHMARK" }
                @if let (Some(cell), Some(rate)) = (fastest, fastest.and_then(CellResult::rate)) {
                    span { (cell.cell.label) ": " (whole(rate.median)) " documents/s" }
                }
            }
            p.route {
                code { (setup.dump.path) }
                span.arrow aria-label="to" { "→" }
                span { (setup.server.words()) ", MongoDB " (setup.server_version) }
            }
            p.quiet {
                (counted(setup.dump.collections, "collection", "collections")) ", "
                (counted(setup.dump.documents, "document", "documents")) ", "
                (bytes(setup.dump.bytes)) "; " (setup.machine.processor) ", "
                (counted(setup.machine.cores, "core", "cores")) ", "
                (bytes(setup.machine.memory_bytes)) ", Linux " (setup.machine.kernel)
            }
        }
    }
}

fn table(comparison: &Comparison) -> Markup {
    let cells = &comparison.cells;
    let is_known =
        |figure: &&Figure| cells.iter().any(|cell| cell.figures.contains_key(figure.name));
    let figures: Vec<_> = FIGURES.iter().filter(is_known).collect();
    html! {
        div.scroll tabindex="0" role="region" aria-label="Settings" {
            table.sorts {
                thead { tr {
                    th scope="col" { "Setting" }
                    th.number scope="col" { "Runs" }
                    th.number scope="col" { "Rank" }
                    th.number scope="col" { "Ratio" }
                    @for figure in &figures { th.number scope="col" { (figure.title) } }
                    th scope="col" { "Remarks" }
                } }
                tbody { @for cell in cells { (row(cell, &figures)) } }
            }
        }
    }
}

fn row(cell: &CellResult, figures: &[&Figure]) -> Markup {
    let far: Vec<_> = cell.outliers.iter().map(|far| far.round.to_string()).collect();
    let rank = cell.rank.map(|rank| rank.to_string());
    let ratio = cell.ratio.map(|ratio| within(ratio, |ratio| format!("{ratio:.2}")));
    html! {
        tr {
            th.name scope="row" { (cell.cell.label) }
            td.number data-sort=(cell.runs) { (cell.runs) }
            (value(rank.as_deref(), cell.rank.map(|rank| -float(rank))))
            (value(ratio.as_deref(), cell.ratio.map(|ratio| ratio.median)))
            @for figure in figures {
                @let median = cell.figures.get(figure.name).map(|found| found.median);
                (value(median.map(figure.show).as_deref(), median))
            }
            td.wrong[cell.failed_runs > 0] {
                @if let Some(complaint) = cell.complaint() { (complaint) " " }
                @if !far.is_empty() { "outliers in rounds " (far.join(", ")) }
            }
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "ranks are small")]
fn float(number: u64) -> f64 {
    number as f64
}

fn value(text: Option<&str>, sort: Option<f64>) -> Markup {
    html! { td.number data-sort=(sort.unwrap_or(f64::MIN)) { (text.unwrap_or("–")) } }
}

fn within(interval: Interval, show: fn(f64) -> String) -> String {
    format!("{} [{}–{}]", show(interval.median), show(interval.low), show(interval.high))
}

fn ceilings(comparison: &Comparison) -> Markup {
    html! {
        ul.lines {
            @for one in &comparison.ceilings {
                li {
                    b { (one.label) } ": "
                    (within(one.share, |share| format!("{:.1} %", share * 100.0))) ", "
                    (whole(one.restore.median)) " of " (whole(one.ceiling.median))
                    " documents/s while documents are sent"
                }
            }
        }
    }
}

fn searched(search: &SearchResult) -> Markup {
    let highest = search.curve.iter().map(|point| point.rate.high).fold(0.0, f64::max);
    let rows = search.curve.iter().map(|point| Row {
        name: format!("{} workers", point.workers),
        interval: point.rate,
        dots: Vec::new(),
    });
    html! {
        p {
            b { (search.best) " workers" } " are the fastest"
            @if search.enough != search.best {
                ", and as few as " (search.enough) " are not known to be slower"
            }
            @if let Some(adaptive) = search.adaptive {
                "; restore itself finds " (within(adaptive, |ratio| format!("{ratio:.2}")))
                " times that"
            }
            "."
        }
        (drawn("documents/s", &rows.collect::<Vec<_>>(), highest, whole))
    }
}

/// A setting in a plot.
struct Row {
    name: String,
    interval: Interval,
    dots: Vec<Dot>,
}

/// A run in a plot.
struct Dot {
    value: f64,
    tip: String,
    is_far: bool,
}

fn plot(figure: &Figure, comparison: &Comparison) -> Markup {
    let rows: Vec<_> = comparison
        .cells
        .iter()
        .filter_map(|cell| {
            let interval = *cell.figures.get(figure.name)?;
            Some(Row {
                name: cell.cell.label.clone(),
                interval,
                dots: dots(figure, cell, comparison),
            })
        })
        .collect();
    let values = rows.iter().flat_map(|row| row.dots.iter().map(|dot| dot.value));
    let highest = values.chain(rows.iter().map(|row| row.interval.high)).fold(0.0, f64::max);
    drawn(figure.title, &rows, highest, figure.show)
}

fn dots(figure: &Figure, of: &CellResult, all: &Comparison) -> Vec<Dot> {
    let Some(place) = all.settings.iter().position(|cell| *cell == of.cell) else {
        return Vec::new();
    };
    let runs = all.samples.iter().filter(|sample| sample.cell == place && sample.counts());
    let dots = runs.filter_map(|sample| {
        let value = (figure.value)(&Run { sample, cell: &of.cell, dump: &all.setup.dump })?;
        let tip = format!(
            "round {}: {}, wall {}",
            sample.round,
            (figure.show)(value),
            seconds(sample.wall_seconds)
        );
        let is_far = of.outliers.iter().any(|far| far.round == sample.round);
        Some(Dot { value, tip, is_far })
    });
    dots.take(DOTS_MAX).collect()
}

/// Rows with a common scale from zero to the highest value.
fn drawn(title: &str, rows: &[Row], highest: f64, show: fn(f64) -> String) -> Markup {
    let across = |value: f64| {
        let share = if highest > 0.0 { (value / highest).clamp(0.0, 1.0) } else { 0.0 };
        format!("{:.2}%", share * 100.0)
    };
    let middle = format!("{:.0}", ROW_HEIGHT / 2.0);
    html! {
        figure.chart.plot {
            figcaption { h3 { (title) } }
            @for row in rows {
                div.row {
                    span.quiet { (row.name) ": " (show(row.interval.median)) }
                    @let median = across(row.interval.median);
                    svg width="100%" height=(ROW_HEIGHT) role="img"
                        aria-label={ (row.name) ": " (within(row.interval, show)) } {
                        line.grid x1="0" x2="100%" y1=(middle) y2=(middle) {}
                        line.interval x1=(across(row.interval.low)) x2=(across(row.interval.high))
                            y1=(middle) y2=(middle) {}
                        @for dot in &row.dots {
                            circle.dot.far[dot.is_far] cx=(across(dot.value)) cy=(middle) r="3.5" {
                                title { (dot.tip) }
                            }
                        }
                        line.median x1=(median) x2=(median)
                            y1="4" y2=(format!("{:.0}", ROW_HEIGHT - 4.0)) {}
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::compare::compare;
    use super::super::sample::made;
    use super::*;

    #[test]
    fn the_page_draws_every_run_and_takes_names_for_text() {
        let mut all =
            made::samples(&[[1.0, 2.0], [1.1, 2.0], [9.0, 2.0], [1.05, 2.0], [0.95, 2.0]]);
        all.cells[1].label = "<script>x</script>".into();
        all.setup.searches = true;
        let ceiling = all.cells[0].ceiling(0);
        all.cells.push(ceiling);
        all.samples.push(made::sample(2, 1, 0.9));
        let compared = compare(all);
        let page = page(&compared);
        let shown = FIGURES.len();
        assert_eq!(page.matches("<circle").count(), shown * 10, "five runs of two settings");
        assert_eq!(page.matches("dot far").count(), shown);
        assert!(!page.contains("<script>x") && page.contains("&lt;script&gt;x"));
        assert!(page.contains("Content-Security-Policy"));
        assert!(page.contains("Share of the ceiling") && page.contains("are the fastest"));
        assert!(page.contains("outliers in rounds 3"));
    }
}
