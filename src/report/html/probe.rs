//! What a probe found, as one page.

use maud::{Markup, html};

use super::axis::Axis;
use super::facts::{setting, tone};
use super::plot::{Curve, Plot};
use super::problems::list;
use super::tables::Cell;
use super::{document, latency, section, words};
use crate::report::format::{count, counted, rate, whole};
use crate::report::probe::{Fit, PaceKind, ProbeReport, ProbeStep};
use crate::report::text::probe as text;

/// Points of a fitted curve, close enough to look round.
const CURVE_POINTS: u32 = 120;

const COLUMNS: [&str; 14] = [
    "Open",
    "Seen by the server",
    "Asked/s",
    "Achieved/s",
    "p50",
    "p90",
    "p99",
    "p99.9",
    "Longest",
    "Service p50",
    "Service p99",
    "Failed",
    "Misses",
    "Errors",
];

/// The report of a probe as an HTML document.
pub fn page(report: &ProbeReport) -> String {
    let (paint, loud, rest) = text::verdict(report);
    let body = html! {
        header {
            p.brand { "restorm probe" }
            h1 class=(tone(paint)) {
                strong { (loud) }
                span { (rest) }
            }
            p.route {
                code { (words(&report.namespace)) }
                span.arrow { "on" }
                code { (words(&report.target.description)) }
            }
        }
        main {
            (section("plots", "Against connections", &plots(report)))
            (section("findings", "Findings", &findings(report)))
            (section("steps", "Steps", &steps(report)))
            (troubles(report))
            (settings(report))
        }
        footer {
            p {
                "Exit status " b { (report.exit_status.code()) } ": "
                (text::meaning(report.exit_status)) "."
            }
            p { "restorm " (words(&report.tool_version)) ", " (report.schema) }
        }
    };
    document(loud, &body)
}

fn plots(report: &ProbeReport) -> Markup {
    if report.steps.is_empty() {
        return html! { p.quiet { "No step was held." } };
    }
    html! { div.charts { (throughput(report).draw()) (latencies(report).draw()) } }
}

/// The steps from few connections to many.
fn sorted(report: &ProbeReport) -> Vec<&ProbeStep> {
    let mut steps: Vec<_> = report.steps.iter().collect();
    steps.sort_by_key(|step| step.connections);
    steps
}

fn points(steps: &[&ProbeStep], value: impl Fn(&ProbeStep) -> Option<f64>) -> Vec<(f64, f64)> {
    let of = |step: &&ProbeStep| Some((f64::from(step.connections), value(step)?));
    steps.iter().filter_map(of).collect()
}

fn most_connections(steps: &[&ProbeStep]) -> f64 {
    steps.iter().map(|step| f64::from(step.connections)).fold(1.0, f64::max)
}

fn throughput(report: &ProbeReport) -> Plot {
    let steps = sorted(report);
    let most = most_connections(&steps);
    let achieved = points(&steps, |step| Some(step.achieved_per_second));
    let asked = points(&steps, |step| step.asked_per_second);
    let highest = achieved.iter().chain(&asked).map(|point| point.1).fold(0.0, f64::max);
    let what = text::noun(report);
    let tip = |step: &&ProbeStep| {
        let of_asked = step
            .asked_per_second
            .map_or_else(String::new, |asked| format!(" of {} asked", whole(asked)));
        let connections = counted(step.connections.into(), "connection", "connections");
        format!("{connections}: {}{of_asked} {what}/s", whole(step.achieved_per_second))
    };
    let tips = steps.iter().map(tip).collect();
    let mut curves = Vec::new();
    if !asked.is_empty() {
        curves.push(Curve { name: "asked", class: "broken", points: asked, tips: Vec::new() });
    }
    if let Some(fit) = &report.fit {
        let points = fitted(fit, most);
        curves.push(Curve { name: "fitted curve", class: "quiet", points, tips: Vec::new() });
    }
    curves.push(Curve { name: "achieved", class: "line", points: achieved, tips });
    Plot {
        title: "Throughput",
        summary: format!("Requests a second against up to {} connections", whole(most)),
        across: Axis::counting(most),
        up: Axis::reaching(highest),
        label: rate,
        curves,
    }
}

fn fitted(fit: &Fit, most: f64) -> Vec<(f64, f64)> {
    let at = |place: u32| 1.0 + (most - 1.0) * f64::from(place) / f64::from(CURVE_POINTS);
    (0..=CURVE_POINTS).map(at).map(|connections| (connections, fit.at(connections))).collect()
}

fn latencies(report: &ProbeReport) -> Plot {
    let steps = sorted(report);
    let most = most_connections(&steps);
    let known = |step: &ProbeStep| (step.latency.count > 0).then_some(step.latency);
    let half = points(&steps, |step| Some(known(step)?.p50_seconds));
    let late = points(&steps, |step| Some(known(step)?.p99_seconds));
    let highest = late.iter().map(|point| point.1).fold(0.0, f64::max);
    let tips = |points: &[(f64, f64)]| {
        let tip = |point: &(f64, f64)| format!("{}: {}", whole(point.0), latency(point.1));
        points.iter().map(tip).collect()
    };
    let curve = |name, class, points: Vec<(f64, f64)>| {
        let tips = tips(&points);
        Curve { name, class, points, tips }
    };
    Plot {
        title: match report.load.pace {
            PaceKind::Paced => "Latency from the moment a request was due",
            PaceKind::FlatOut => "Latency",
        },
        summary: format!("Latency against up to {} connections", whole(most)),
        across: Axis::counting(most),
        up: Axis::reaching(highest),
        label: latency,
        curves: vec![curve("p50", "quiet", half), curve("p99", "line", late)],
    }
}

fn findings(report: &ProbeReport) -> Markup {
    let knee = report
        .knee
        .as_ref()
        .map_or_else(|| text::no_knee(report).to_owned(), |knee| text::knee(report, knee));
    let curve = report
        .fit
        .as_ref()
        .map_or_else(|| "three different steps are needed for one".to_owned(), text::fit);
    html! {
        dl.facts {
            dt { "Knee" } dd { (knee) }
            dt { "Fitted curve" } dd { (curve) }
            dt { "Load" } dd { (text::load(report)) }
        }
    }
}

fn steps(report: &ProbeReport) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label="The steps" {
            table.sorts {
                thead { tr {
                    th scope="col" { "Connections" }
                    @for name in COLUMNS { th.number scope="col" { (name) } }
                } }
                tbody {
                    @for step in &report.steps {
                        tr {
                            th.name scope="row" data-sort=(step.connections) {
                                (count(step.connections.into()))
                            }
                            @for cell in cells(step) { (cell.draw()) }
                        }
                    }
                }
            }
        }
        p.quiet {
            "A service time counts from sending a request, a latency from the moment it was due, "
            "so that requests that had to wait for others count as late. Those that had no answer "
            "count with the time they had waited" (text::left_out(report)) "."
        }
    }
}

fn cells(step: &ProbeStep) -> Vec<Cell> {
    let number = |number: u64| Cell::number(count(number), float(number));
    let (corrected, service) = (&step.latency, &step.service);
    let of = |count: u64, seconds: f64| match count {
        0 => Cell::none(),
        _ => Cell::number(latency(seconds), seconds),
    };
    let time = |seconds: f64| of(corrected.count, seconds);
    let service_time = |seconds: f64| of(service.count, seconds);
    vec![
        number(step.connected.into()),
        step.server_connections.map_or_else(Cell::none, number),
        step.asked_per_second.map_or_else(Cell::none, |asked| Cell::number(whole(asked), asked)),
        Cell::number(whole(step.achieved_per_second), step.achieved_per_second),
        time(corrected.p50_seconds),
        time(corrected.p90_seconds),
        time(corrected.p99_seconds),
        time(corrected.p999_seconds),
        time(corrected.max_seconds),
        service_time(service.p50_seconds),
        service_time(service.p99_seconds),
        number(step.failed),
        number(step.misses),
        number(step.failures()),
    ]
}

fn troubles(report: &ProbeReport) -> Markup {
    let of_step = |step: &ProbeStep| {
        let connections = counted(step.connections.into(), "connection", "connections");
        let lines = text::troubles(step).into_iter();
        lines.map(|line| format!("{connections}: {line}")).collect::<Vec<_>>()
    };
    let lines: Vec<_> = report.steps.iter().flat_map(of_step).collect();
    let all = lines.iter().chain(&report.notes);
    let all: Vec<_> = all.map(|line| html! { (words(line)) }).collect();
    html! {
        @if !all.is_empty() {
            (section("troubles", "Trouble and notes", &list(all.into_iter())))
        }
    }
}

fn settings(report: &ProbeReport) -> Markup {
    let version = report.target.server_version.as_deref().map_or("unknown".to_owned(), words);
    let content = html! {
        dl.facts {
            dt { "Server" } dd { code { (words(&report.target.description)) } }
            dt { "Its version" } dd { code { (version) } }
            dt { "Collection" } dd { code { (words(&report.namespace)) } }
            @for option in &report.options { (setting(option)) }
        }
        p.quiet { "All other settings were the defaults." }
    };
    section("settings", "Settings", &content)
}

#[expect(clippy::cast_precision_loss, reason = "cells are sorted by it")]
fn float(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::probe::samples;

    #[test]
    fn the_page_has_the_plot_the_curve_and_every_step() {
        let drawn = page(&samples::paced());
        assert!(drawn.contains("fitted curve") && drawn.contains(">asked<"), "{drawn}");
        assert_eq!(drawn.matches("<circle").count(), 9, "three steps in three curves");
        assert!(drawn.contains("min(aN, C)") && drawn.contains("4,000 fell behind"));
        assert!(drawn.contains("connection reset by peer &lt;b&gt;"), "text is no markup");
        assert!(drawn.contains("12 more connections") && drawn.contains("restorm.probe/1"));
        assert!(drawn.contains("--<!-- -->ramp") || drawn.contains("--ramp"));
    }

    #[test]
    fn nothing_is_asked_flat_out() {
        let drawn = page(&samples::flat_out());
        assert!(!drawn.contains(">asked<") && drawn.contains("fitted curve"));
        let mut none = samples::flat_out();
        (none.knee, none.fit) = (None, None);
        none.steps.clear();
        assert!(page(&none).contains("No step was held."));
    }
}
