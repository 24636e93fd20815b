//! The timeline of a run as charts.

use std::time::Duration;

use maud::{Markup, html};

use super::axis::{Axis, moment};
use super::chart::{Chart, Look, Series};
use super::latency;
use crate::report::format::{byte_rate, count, duration, rate};
use crate::report::timeline::Point;
use crate::report::value::Report;

/// The most steps of a chart: on a wide screen each is a few pixels.
const STEPS_MAX: usize = 240;

/// The points of a timeline, joined where there are more than can be told apart.
struct Steps<'a> {
    /// Seconds that a point stands for.
    seconds: f64,
    /// Points in a step.
    joined: usize,
    points: Vec<&'a [Point]>,
    intervals: Vec<(f64, f64)>,
    end: f64,
}

impl<'a> Steps<'a> {
    fn of(report: &'a Report) -> Self {
        let seconds = float(report.timeline.interval_seconds);
        let points = &report.timeline.points;
        let joined = points.len().div_ceil(STEPS_MAX).max(1);
        let steps: Vec<_> = points.chunks(joined).collect();
        let from = |point: &Point| float(point.at_seconds);
        let interval = |step: &&[Point]| {
            let (first, last) = (step.first()?, step.last()?);
            Some((from(first), from(last) + seconds))
        };
        let intervals: Vec<_> = steps.iter().filter_map(interval).collect();
        let end = intervals.last().map_or(0.0, |(_, to)| *to);
        Self { seconds, joined, points: steps, intervals, end }
    }

    /// A value of each step.
    fn each(&self, of: impl Fn(&[Point]) -> Option<f64>) -> Vec<Option<f64>> {
        self.points.iter().map(|step| of(step)).collect()
    }

    /// An amount a second, on average over each step.
    fn average(&self, of: fn(&Point) -> u64) -> Vec<Option<f64>> {
        self.each(|step| {
            let sum: u64 = step.iter().map(of).sum();
            Some(float(sum) / self.seconds / float(step.len() as u64))
        })
    }

    /// The same in the best point of each step.
    fn best(&self, of: fn(&Point) -> u64) -> Vec<Option<f64>> {
        self.each(|step| step.iter().map(of).max().map(|most| float(most) / self.seconds))
    }

    /// What is told of each step, behind its time.
    fn tips(&self, of: impl Fn(usize) -> String) -> Vec<String> {
        let times = self.intervals.iter().enumerate();
        times
            .map(|(place, (from, to))| {
                format!("{} to {}: {}", moment(*from), moment(*to), of(place))
            })
            .collect()
    }

    fn chart(&self, title: &'static str, series: Vec<Series>, scale: Scale) -> Chart<'_> {
        let values = || series.iter().flat_map(|one| one.values.iter().flatten());
        let highest = values().copied().fold(0.0, f64::max);
        let axis = if scale.is_counted { Axis::counting(highest) } else { Axis::reaching(highest) };
        let label = scale.label;
        let time = duration(Duration::from_secs_f64(self.end.max(0.0)));
        let summary = format!("{title} over {time}, at most {}", label(highest));
        let (end, intervals) = (self.end, self.intervals.as_slice());
        Chart { title, summary, end, intervals, axis, label, series, tips: Vec::new() }
    }

    /// An amount a second: its average, and its best points where a step joins several.
    fn rates(
        &self,
        title: &'static str,
        of: fn(&Point) -> u64,
        label: fn(f64) -> String,
    ) -> Markup {
        let (average, best) = (self.average(of), self.best(of));
        let value = |values: &[Option<f64>], place: usize| {
            label(values.get(place).copied().flatten().unwrap_or_default())
        };
        let tips = self.tips(|place| match self.joined {
            1 => value(&average, place),
            _ => format!("{}, at most {}", value(&average, place), value(&best, place)),
        });
        let mut series = Vec::new();
        if self.joined > 1 {
            series.push(Series { name: "best second", look: Look::Quiet, values: best });
        }
        let name = if self.joined > 1 { "average" } else { "each second" };
        let name = if self.seconds > 1.0 { "average" } else { name };
        series.push(Series { name, look: Look::Area, values: average });
        Chart { tips, ..self.chart(title, series, Scale { label, is_counted: false }) }.draw()
    }
}

/// How values are measured.
#[derive(Clone, Copy)]
struct Scale {
    label: fn(f64) -> String,
    is_counted: bool,
}

/// The charts, and what a step of them is.
pub(super) fn charts(report: &Report) -> Markup {
    let steps = Steps::of(report);
    if steps.points.is_empty() {
        return html! { p.quiet { "The run ended before anything happened." } };
    }
    let joined = float(steps.joined as u64) * steps.seconds;
    html! {
        @if joined > 1.0 {
            p.quiet {
                "Each step stands for " (moment(joined)) ": the average of its rates, "
                "the mean of its p50, the highest p99, the most in flight."
            }
        }
        div.charts {
            (steps.rates("Documents a second", |point| point.documents, rate))
            (steps.rates("Bytes a second", |point| point.bytes, byte_rate))
            (latencies(&steps))
            (workers(&steps))
            @if report.timeline.points.iter().any(|point| point.rejected + point.retries > 0) {
                (troubles(&steps))
            }
        }
    }
}

fn latencies(steps: &Steps<'_>) -> Markup {
    let answered = |step: &[Point]| step.iter().map(|point| point.batches).sum::<u64>();
    let p50 = steps.each(|step| {
        let batches = answered(step);
        let weighed = step.iter().map(|point| point.latency_p50_seconds * float(point.batches));
        (batches > 0).then(|| weighed.sum::<f64>() / float(batches))
    });
    let p99 = steps.each(|step| {
        let highest = step.iter().map(|point| point.latency_p99_seconds).fold(0.0, f64::max);
        (answered(step) > 0).then_some(highest)
    });
    let tips = steps.tips(|place| match (p50[place], p99[place]) {
        (Some(p50), Some(p99)) => format!("p50 {}, p99 {}", latency(p50), latency(p99)),
        _ => "no answer".to_owned(),
    });
    let series = vec![
        Series { name: "p99", look: Look::Quiet, values: p99 },
        Series { name: "p50", look: Look::Line, values: p50 },
    ];
    let scale = Scale { label: latency, is_counted: false };
    Chart { tips, ..steps.chart("Latency of batches", series, scale) }.draw()
}

fn workers(steps: &Steps<'_>) -> Markup {
    let most = |of: fn(&Point) -> usize| {
        steps.each(|step| step.iter().map(of).max().map(|most| float(most as u64)))
    };
    let (flight, queued) = (most(|point| point.in_flight), most(|point| point.queued));
    let workers = most(|point| point.workers);
    let whole = |values: &[Option<f64>], place: usize| {
        counts(values.get(place).copied().flatten().unwrap_or_default())
    };
    let tips = steps.tips(|place| {
        let (flight, queued) = (whole(&flight, place), whole(&queued, place));
        format!("{flight} in flight, {queued} queued, {} workers", whole(&workers, place))
    });
    let series = vec![
        Series { name: "workers", look: Look::Broken, values: workers },
        Series { name: "queued", look: Look::Quiet, values: queued },
        Series { name: "in flight", look: Look::Line, values: flight },
    ];
    let scale = Scale { label: counts, is_counted: true };
    Chart { tips, ..steps.chart("Batches in flight", series, scale) }.draw()
}

fn troubles(steps: &Steps<'_>) -> Markup {
    let sum = |of: fn(&Point) -> u64| steps.each(|step| Some(float(step.iter().map(of).sum())));
    let (rejected, retries) = (sum(|point| point.rejected), sum(|point| point.retries));
    let tips = steps.tips(|place| {
        let (rejected, retries) = (rejected[place], retries[place]);
        let text = |value: Option<f64>| counts(value.unwrap_or_default());
        format!("{} rejected, {} sent again", text(rejected), text(retries))
    });
    let series = vec![
        Series { name: "documents rejected", look: Look::Bad, values: rejected },
        Series { name: "sent again", look: Look::Broken, values: retries },
    ];
    let scale = Scale { label: counts, is_counted: true };
    Chart { tips, ..steps.chart("Rejections and retries", series, scale) }.draw()
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "counts")]
fn counts(value: f64) -> String {
    count(value.round() as u64)
}

#[expect(clippy::cast_precision_loss, reason = "charts show a few digits")]
fn float(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::value::samples;

    fn with_points(points: Vec<Point>, interval: u64) -> Report {
        let mut report = samples::clean();
        report.timeline.points = points;
        report.timeline.interval_seconds = interval;
        report
    }

    fn points(number: u64) -> Vec<Point> {
        let point = |second| Point {
            at_seconds: second,
            documents: 1000 + second,
            batches: 1,
            latency_p50_seconds: 0.01,
            latency_p99_seconds: if second == 17 { 0.9 } else { 0.02 },
            ..Point::default()
        };
        (0..number).map(point).collect()
    }

    #[test]
    fn an_hour_has_few_steps_and_keeps_its_peaks() {
        let report = with_points(points(3600), 1);
        let text = charts(&report).into_string();
        assert_eq!(text.matches("class=\"step\"").count(), 4 * STEPS_MAX);
        assert!(text.contains("Each step stands for 15 s"));
        assert!(text.contains("15 s to 30 s: p50 10.0 ms, p99 900 ms"), "the peak is told");
        assert!(text.contains("59:45 min to 1 h: 4.59 k/s, at most 4.60 k/s"));
        assert!(text.len() < 400_000, "{} bytes", text.len());
    }

    #[test]
    fn one_second_is_one_step() {
        let text = charts(&with_points(points(1), 1)).into_string();
        assert_eq!(text.matches("class=\"step\"").count(), 4);
        assert!(text.contains("0 to 1 s: 1.00 k/s<"), "{text}");
        assert!(!text.contains("Each step"));
    }

    #[test]
    fn a_point_of_several_seconds_shows_rates_of_one() {
        let mut points = points(2);
        points[1].at_seconds = 4;
        let text = charts(&with_points(points, 4)).into_string();
        assert!(text.contains("0 to 4 s: 250/s<"), "{text}");
        assert!(text.contains("Each step stands for 4 s"));
    }

    #[test]
    fn a_run_without_a_second_says_so() {
        let text = charts(&with_points(Vec::new(), 1)).into_string();
        assert!(text.contains("before anything happened"));
    }

    #[test]
    fn refusals_and_retries_are_drawn_where_there_are_some() {
        let quiet = charts(&with_points(points(3), 1)).into_string();
        assert!(!quiet.contains("Rejections"));
        let mut points = points(3);
        points[1].rejected = 7;
        let text = charts(&with_points(points, 1)).into_string();
        assert!(text.contains("1 s to 2 s: 7 rejected, 0 sent again"), "{text}");
    }
}
