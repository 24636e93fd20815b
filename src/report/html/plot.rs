//! Draws values against numbers of connections as SVG: a dot for each step, and curves.
//!
//! As in the charts over time, curves lie in a part of the drawing that is stretched to its place,
//! and dots and texts at percentages of it, so that they keep their size.

use std::fmt::Write as _;

use maud::{Markup, html};

use super::axis::Axis;
use super::chart::{Frame, PLOT_WIDTH, SCALE_WIDTH, figure, number};

/// The height of a drawing in pixels, and where its plot begins and ends.
const HEIGHT: f64 = 300.0;
const PLOT_TOP: f64 = 16.0;
const PLOT_HEIGHT: f64 = 260.0;

/// Values against numbers of connections.
pub(super) struct Plot {
    /// What the plot is about.
    pub(super) title: &'static str,
    /// What it shows, for those who cannot see it.
    pub(super) summary: String,
    /// The axis of connections.
    pub(super) across: Axis,
    /// The axis from bottom to top.
    pub(super) up: Axis,
    /// A value of that axis with its unit.
    pub(super) label: fn(f64) -> String,
    /// What is drawn, the last on top.
    pub(super) curves: Vec<Curve>,
}

/// A curve through points.
pub(super) struct Curve {
    /// Its name in the legend.
    pub(super) name: &'static str,
    /// How it looks: a class of the style sheet.
    pub(super) class: &'static str,
    /// Connections and values.
    pub(super) points: Vec<(f64, f64)>,
    /// What is told of each point, where points have dots.
    pub(super) tips: Vec<String>,
}

impl Plot {
    /// The plot with its title and legend.
    pub(super) fn draw(&self) -> Markup {
        let (width, height) = (number(PLOT_WIDTH), number(PLOT_HEIGHT));
        let frame = Frame {
            title: self.title,
            legend: self.curves.iter().map(|curve| (curve.class, curve.name)).collect(),
            summary: &self.summary,
            height: HEIGHT,
        };
        let drawing = html! {
            (self.grid())
            svg x="0" y=(number(PLOT_TOP)) width="100%" height=(height)
                viewBox={ "0 0 " (width) " " (height) } preserveAspectRatio="none" {
                @for curve in &self.curves {
                    path class=(curve.class) d=(self.line(curve)) {}
                }
            }
            @for curve in &self.curves { (self.dots(curve)) }
        };
        figure(&frame, &self.scale(), &drawing)
    }

    fn grid(&self) -> Markup {
        let bottom = PLOT_TOP + PLOT_HEIGHT;
        html! {
            @for value in self.up.values() {
                @let y = number(PLOT_TOP + self.height_of(value));
                line.grid x1="0" x2="100%" y1=(y) y2=(y) {}
            }
            @for value in self.across.values() {
                @let x = percent(self.share_of(value));
                @let is_last = value >= self.across.top();
                @let anchor = if is_last { "end" } else { "start" };
                line.mark x1=(x) x2=(x) y1=(number(bottom)) y2=(number(bottom + 5.0)) {}
                text.tick x=(x) y=(number(bottom + 18.0)) text-anchor=(anchor) {
                    (crate::report::format::whole(value))
                    @if is_last { " connections" }
                }
            }
        }
    }

    /// What is written beside the grid.
    fn scale(&self) -> Markup {
        html! {
            @for value in self.up.values() {
                @let y = number(PLOT_TOP + self.height_of(value) + 4.0);
                text.tick x=(number(SCALE_WIDTH - 8.0)) y=(y) text-anchor="end" {
                    @if value > 0.0 { ((self.label)(value)) } @else { "0" }
                }
            }
        }
    }

    fn line(&self, curve: &Curve) -> String {
        let mut path = String::new();
        for (place, &(connections, value)) in curve.points.iter().enumerate() {
            let command = if place == 0 { 'M' } else { 'L' };
            let x = number(self.share_of(connections) * PLOT_WIDTH);
            // Writing to a string cannot fail.
            let _ = write!(path, "{command}{x} {}", number(self.height_of(value)));
        }
        path
    }

    fn dots(&self, curve: &Curve) -> Markup {
        html! {
            @for (&(connections, value), tip) in curve.points.iter().zip(&curve.tips) {
                @let x = percent(self.share_of(connections));
                @let y = number(PLOT_TOP + self.height_of(value));
                circle class=(curve.class) cx=(x) cy=(y) r="4" {
                    title { (tip) }
                }
            }
        }
    }

    fn share_of(&self, connections: f64) -> f64 {
        (connections / self.across.top()).clamp(0.0, 1.0)
    }

    /// How far below the top of the plot a value lies.
    fn height_of(&self, value: f64) -> f64 {
        let share = if value.is_finite() { value / self.up.top() } else { 0.0 };
        PLOT_HEIGHT * (1.0 - share.clamp(0.0, 1.0))
    }
}

/// A share as a coordinate, fine enough for a dot on a line.
fn percent(share: f64) -> String {
    format!("{:.2}%", share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dots_lie_on_their_curve() {
        let plot = Plot {
            title: "Throughput",
            summary: "It rises.".to_owned(),
            across: Axis::counting(1000.0),
            up: Axis::reaching(4000.0),
            label: |value| format!("{value}/s"),
            curves: vec![Curve {
                name: "achieved",
                class: "line",
                points: vec![(0.0, 0.0), (500.0, 2000.0), (1000.0, 4000.0)],
                tips: vec!["<none>".to_owned(), "half".to_owned(), "all".to_owned()],
            }],
        };
        let drawn = plot.draw().into_string();
        assert!(drawn.contains(r#"d="M0 260L500 130L1000 0""#), "{drawn}");
        assert!(drawn.contains(r#"cx="50.00%" cy="146""#), "{drawn}");
        assert!(drawn.contains("&lt;none&gt;") && drawn.contains("1,000 connections"), "{drawn}");
    }
}
