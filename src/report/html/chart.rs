//! Draws amounts over time as SVG: a grid, steps, and a text for each step.
//!
//! Positions along the time are percentages or lie in a stretched part of the drawing, so that a
//! chart is as wide as its place and its texts keep their size. Everything is drawn in steps,
//! because every value belongs to an interval; a single one is as wide as it lasted.

use std::fmt::Write as _;

use maud::{Markup, html};

use super::axis::{Axis, marks, moment};

/// The height of a drawing in pixels, and where its plot begins and ends.
const HEIGHT: f64 = 190.0;
const PLOT_TOP: f64 = 16.0;
const PLOT_HEIGHT: f64 = 150.0;

/// The width of the scale beside it.
pub(super) const SCALE_WIDTH: f64 = 62.0;

/// A mark farther to the right has its text to its left, where there is room.
const MARK_SHARE_MAX: f64 = 0.92;

/// The width of the stretched part in units of its own.
pub(super) const PLOT_WIDTH: f64 = 1000.0;

/// Amounts over time.
pub(super) struct Chart<'a> {
    /// What the chart is about.
    pub(super) title: &'static str,
    /// What it shows, for those who cannot see it.
    pub(super) summary: String,
    /// The end of the time in seconds.
    pub(super) end: f64,
    /// The intervals that the values belong to, in seconds.
    pub(super) intervals: &'a [(f64, f64)],
    /// The axis from bottom to top.
    pub(super) axis: Axis,
    /// A value of the axis with its unit.
    pub(super) label: fn(f64) -> String,
    /// What is drawn, the last on top.
    pub(super) series: Vec<Series>,
    /// What is told of each interval.
    pub(super) tips: Vec<String>,
}

/// What stands around a drawing.
pub(super) struct Frame<'a> {
    /// What it is about.
    pub(super) title: &'a str,
    /// Classes of the style sheet and the names of what looks like them.
    pub(super) legend: Vec<(&'static str, &'static str)>,
    /// What it shows, for those who cannot see it.
    pub(super) summary: &'a str,
    /// Its height in pixels.
    pub(super) height: f64,
}

/// A drawing with what stands around it, and the scale beside it.
pub(super) fn figure(frame: &Frame<'_>, scale: &Markup, drawing: &Markup) -> Markup {
    let height = number(frame.height);
    html! {
        figure.chart {
            figcaption {
                h3 { (frame.title) }
                ul.legend {
                    @for (class, name) in &frame.legend {
                        li {
                            svg.key width="18" height="10" aria-hidden="true" {
                                line class=(class) x1="0" y1="5" x2="18" y2="5" {}
                            }
                            (name)
                        }
                    }
                }
            }
            div.drawing {
                svg.scale width=(number(SCALE_WIDTH)) height=(height)
                    aria-hidden="true" {
                    (scale)
                }
                svg width="100%" height=(height) role="img" aria-label=(frame.summary) {
                    (drawing)
                }
            }
        }
    }
}

/// Values of the intervals, one each; nothing where there is no value.
pub(super) struct Series {
    /// Its name in the legend.
    pub(super) name: &'static str,
    /// How it looks.
    pub(super) look: Look,
    /// The values.
    pub(super) values: Vec<Option<f64>>,
}

/// How a series looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// A line with its area.
    Area,
    /// A line.
    Line,
    /// A line that stands back.
    Quiet,
    /// A broken line.
    Broken,
    /// An area that is a failure.
    Bad,
}

impl Look {
    fn class(self) -> &'static str {
        match self {
            Self::Area => "area",
            Self::Line => "line",
            Self::Quiet => "quiet",
            Self::Broken => "broken",
            Self::Bad => "bad",
        }
    }

    fn is_filled(self) -> bool {
        matches!(self, Self::Area | Self::Bad)
    }
}

impl Chart<'_> {
    /// The chart with its title and legend.
    pub(super) fn draw(&self) -> Markup {
        let frame = Frame {
            title: self.title,
            legend: self.series.iter().map(|one| (one.look.class(), one.name)).collect(),
            summary: &self.summary,
            height: HEIGHT,
        };
        let drawing = html! {
            (self.grid())
            (self.plot())
        };
        figure(&frame, &self.scale(), &drawing)
    }

    fn grid(&self) -> Markup {
        let bottom = PLOT_TOP + PLOT_HEIGHT;
        html! {
            @for value in self.axis.values() {
                @let y = number(PLOT_TOP + self.height_of(value));
                line.grid x1="0" x2="100%" y1=(y) y2=(y) {}
            }
            @for at in marks(self.end) {
                @let share = at / self.end;
                @let x = percent(share);
                @let anchor = if share > MARK_SHARE_MAX { "end" } else { "start" };
                line.mark x1=(x) x2=(x) y1=(number(bottom)) y2=(number(bottom + 5.0)) {}
                text.tick x=(x) y=(number(bottom + 18.0)) text-anchor=(anchor) { (moment(at)) }
            }
        }
    }

    /// What is written beside the grid.
    fn scale(&self) -> Markup {
        html! {
            @for value in self.axis.values() {
                @let y = number(PLOT_TOP + self.height_of(value) + 4.0);
                text.tick x=(number(SCALE_WIDTH - 8.0)) y=(y) text-anchor="end" {
                    @if value > 0.0 { (short(&(self.label)(value))) } @else { "0" }
                }
            }
        }
    }

    fn plot(&self) -> Markup {
        let (width, height) = (number(PLOT_WIDTH), number(PLOT_HEIGHT));
        html! {
            svg x="0" y=(number(PLOT_TOP)) width="100%" height=(height)
                viewBox={ "0 0 " (width) " " (height) } preserveAspectRatio="none" {
                @for series in &self.series {
                    @if series.look.is_filled() {
                        path class={ (series.look.class()) " fill" } d=(self.area(series)) {}
                    }
                    path class=(series.look.class()) d=(self.line(series)) {}
                }
                @for (&(from, to), tip) in self.intervals.iter().zip(&self.tips) {
                    @let (left, right) = (self.across(from), self.across(to));
                    rect.step x=(number(left)) width=(number(right - left)) height=(height) {
                        title { (tip) }
                    }
                }
            }
        }
    }

    /// The outline of a series, in a piece for each stretch without a gap.
    fn line(&self, series: &Series) -> String {
        let mut path = String::new();
        let mut is_open = false;
        for (&(from, to), value) in self.intervals.iter().zip(&series.values) {
            let Some(value) = value else {
                is_open = false;
                continue;
            };
            let (x, y) = (number(self.across(from)), number(self.height_of(*value)));
            let end = number(self.across(to));
            // Writing to a string cannot fail.
            let _ =
                if is_open { write!(path, "V{y}H{end}") } else { write!(path, "M{x} {y}H{end}") };
            is_open = true;
        }
        path
    }

    /// The area below a series.
    fn area(&self, series: &Series) -> String {
        let mut path = String::new();
        let bottom = number(PLOT_HEIGHT);
        for (&(from, to), value) in self.intervals.iter().zip(&series.values) {
            let Some(value) = value.filter(|value| *value > 0.0) else { continue };
            let (from, to) = (number(self.across(from)), number(self.across(to)));
            // Writing to a string cannot fail.
            let _ =
                write!(path, "M{from} {bottom}V{}H{to}V{bottom}Z", number(self.height_of(value)));
        }
        path
    }

    fn across(&self, seconds: f64) -> f64 {
        let end = if self.end > 0.0 { self.end } else { 1.0 };
        (seconds / end).clamp(0.0, 1.0) * PLOT_WIDTH
    }

    /// How far below the top of the plot a value lies.
    fn height_of(&self, value: f64) -> f64 {
        let share = if value.is_finite() { value / self.axis.top() } else { 0.0 };
        PLOT_HEIGHT * (1.0 - share.clamp(0.0, 1.0))
    }
}

/// A bar of parts beside each other, as wide as their shares of their sum.
pub(super) fn bar(label: &str, parts: &[Part]) -> Markup {
    let sum: f64 = parts.iter().map(|part| part.amount).sum();
    let mut from = 0.0;
    let placed = parts.iter().filter(|part| part.amount > 0.0).map(|part| {
        let share = part.amount / sum;
        let placed = (percent(from), percent(share), part);
        from += share;
        placed
    });
    html! {
        svg.bar width="100%" height="14" role="img" aria-label=(label) {
            rect.empty width="100%" height="100%" {}
            @for (x, width, part) in placed {
                rect class=(part.class) x=(x) width=(width) height="100%" {
                    title { (part.tip) }
                }
            }
        }
    }
}

/// A part of a bar.
pub(super) struct Part {
    /// How it looks.
    pub(super) class: &'static str,
    /// How much it is.
    pub(super) amount: f64,
    /// What is told of it.
    pub(super) tip: String,
}

/// A coordinate with a digit behind its point, without one for whole numbers.
pub(super) fn number(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

/// A value with its unit, without digits that say nothing: `5 MB/s` for `5.00 MB/s`.
fn short(text: &str) -> String {
    match text.split_once(' ') {
        Some((value, unit)) if value.contains('.') => {
            format!("{} {unit}", value.trim_end_matches('0').trim_end_matches('.'))
        }
        _ => text.to_owned(),
    }
}

/// A share as a coordinate.
fn percent(share: f64) -> String {
    format!("{}%", number((share.clamp(0.0, 1.0) * 1000.0).round() / 10.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(end: f64, intervals: &[(f64, f64)], values: &[Option<f64>]) -> String {
        let highest = values.iter().flatten().copied().fold(0.0, f64::max);
        let chart = Chart {
            title: "t",
            summary: "s".into(),
            end,
            intervals,
            axis: Axis::reaching(highest),
            label: |value| format!("{value} u"),
            series: vec![Series { name: "n", look: Look::Area, values: values.to_vec() }],
            tips: intervals.iter().map(|(from, _)| format!("at {from}")).collect(),
        };
        chart.draw().into_string()
    }

    #[test]
    fn one_value_is_a_step_over_the_whole_width() {
        let chart = drawn(1.0, &[(0.0, 1.0)], &[Some(5.0)]);
        assert!(chart.contains("d=\"M0 25H1000\""), "5 of 6 steps: {chart}");
        assert!(chart.contains("<title>at 0</title>"));
        assert!(chart.contains(">2 u<") && chart.contains(">6 u<"), "{chart}");
    }

    #[test]
    fn a_scale_has_no_needless_digits() {
        for (text, expected) in
            [("5.00 MB/s", "5 MB/s"), ("2.50 k/s", "2.5 k/s"), ("1,000", "1,000"), ("0 ms", "0 ms")]
        {
            assert_eq!(short(text), expected);
        }
    }

    #[test]
    fn a_gap_is_a_gap() {
        let intervals = [(0.0, 1.0), (1.0, 2.0), (2.0, 3.0), (3.0, 4.0)];
        let chart = drawn(4.0, &intervals, &[Some(4.0), None, Some(2.0), Some(4.0)]);
        assert!(chart.contains("d=\"M0 0H250M500 75H750V0H1000\""), "{chart}");
        assert_eq!(chart.matches("class=\"step\"").count(), 4, "a gap has its text as well");
    }

    #[test]
    fn nothing_at_all_is_an_empty_chart() {
        for (end, value) in [(0.0, None), (0.0, Some(0.0)), (1.0, Some(f64::NAN))] {
            let chart = drawn(end, &[(0.0, end)], &[value]);
            assert!(!chart.contains("NaN") && !chart.contains("inf"), "{chart}");
        }
    }

    #[test]
    fn the_parts_of_a_bar_fill_it() {
        let part = |amount| Part { class: "c", amount, tip: format!("<{amount}>") };
        let bar = bar("all", &[part(1.0), part(0.0), part(3.0)]).into_string();
        assert!(bar.contains("x=\"0%\" width=\"25%\""), "{bar}");
        assert!(bar.contains("x=\"25%\" width=\"75%\""), "{bar}");
        assert_eq!(bar.matches("<title>").count(), 2, "nothing is no part");
        assert!(bar.contains("&lt;3&gt;"));
    }
}
