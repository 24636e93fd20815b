//! Bars on a terminal: one for each collection that is worked on, above one for the whole run.

use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::Show;
use super::glance::{ActiveCollection, Glance, Work, time_left};
use crate::report::event::Phase;
use crate::report::format::{self, count, duration, percent, rate, right};

/// The steps of a bar.
const STEPS: u16 = 1000;

/// The widths of the texts around a bar, which leave 15 columns for it on a terminal of 80.
const NAME_COLUMNS: usize = 22;
const PERCENT_COLUMNS: usize = 5;
const DOCUMENTS_COLUMNS: usize = 11;
const RATE_COLUMNS: usize = 8;
const TIME_COLUMNS: usize = 12;

/// Shows a run as bars.
pub(super) struct Bars {
    screen: MultiProgress,
    total: ProgressBar,
    collections: Vec<CollectionBar>,
}

struct CollectionBar {
    collection: usize,
    bar: ProgressBar,
    builds_indexes: bool,
}

impl Bars {
    /// Draws on `target`.
    pub(super) fn new(target: ProgressDrawTarget) -> Self {
        let screen = MultiProgress::with_draw_target(target);
        let total = screen.add(ProgressBar::new(u64::from(STEPS)).with_style(style(BAR)));
        Self { screen, total, collections: Vec::new() }
    }

    /// Takes away the bars of collections that are no longer worked on.
    fn remove_ended(&mut self, glance: &Glance) {
        let Self { screen, collections, .. } = self;
        collections.retain(|shown| {
            let stays = glance.active.iter().any(|one| one.collection == shown.collection);
            if !stays {
                shown.bar.finish_and_clear();
                screen.remove(&shown.bar);
            }
            stays
        });
    }

    fn show_collection(&mut self, active: &ActiveCollection) {
        let known = self.collections.iter().position(|one| one.collection == active.collection);
        let place = known.unwrap_or_else(|| self.add(active));
        let shown = &mut self.collections[place];
        let builds_indexes = matches!(active.work, Work::Indexes { .. });
        if shown.builds_indexes != builds_indexes {
            shown.bar.set_style(style(if builds_indexes { TEXT } else { BAR }));
            shown.builds_indexes = builds_indexes;
        }
        match &active.work {
            Work::Documents { fraction, inserted, rate, time_left } => {
                shown.bar.set_position(steps(*fraction));
                shown.bar.set_message(numbers(*fraction, *inserted, rate.documents, *time_left));
            }
            Work::Indexes { names, since } => {
                let text = format!("building {} ({})", names.join(", "), duration(*since));
                shown.bar.set_message(text);
            }
        }
    }

    fn add(&mut self, active: &ActiveCollection) -> usize {
        let bar = ProgressBar::new(u64::from(STEPS)).with_style(style(BAR));
        let bar = self.screen.insert_before(&self.total, bar);
        bar.set_prefix(format::left(&active.name, NAME_COLUMNS));
        let collection = active.collection;
        self.collections.push(CollectionBar { collection, bar, builds_indexes: false });
        self.collections.len() - 1
    }

    fn show_total(&self, glance: &Glance) {
        let (done, all) = glance.collections;
        let name = format!("total {}/{}", count(done as u64), count(all as u64));
        self.total.set_prefix(format::left(&name, NAME_COLUMNS));
        self.total.set_position(steps(glance.fraction));
        self.total.set_message(match (glance.phase, glance.stall()) {
            (Some(Phase::Indexes | Phase::TimeToLive), _) => {
                let (done, all) = glance.indexes;
                format!("indexes {} of {}", count(done as u64), count(all as u64))
            }
            (Some(Phase::Views), _) => "creating views".to_owned(),
            (_, Some(stall)) => format!("{}  {stall}", percent(glance.fraction)),
            _ => {
                let rate = glance.rate.documents;
                numbers(glance.fraction, glance.inserted, rate, glance.time_left)
            }
        });
    }
}

impl Show for Bars {
    fn show(&mut self, _at: Duration, glance: &Glance, news: &[String]) {
        for line in news {
            // A terminal that is gone shows nothing; the work goes on.
            let _ = self.screen.println(line);
        }
        self.remove_ended(glance);
        for active in &glance.active {
            self.show_collection(active);
        }
        self.show_total(glance);
    }

    fn end(&mut self) {
        for shown in self.collections.drain(..) {
            shown.bar.finish_and_clear();
        }
        self.total.finish_and_clear();
    }
}

const BAR: &str = "{prefix} [{wide_bar}] {msg}";
const TEXT: &str = "{prefix} {wide_msg}";

fn style(template: &str) -> ProgressStyle {
    // A template that is no template would show as the plain bar; a test draws both.
    ProgressStyle::with_template(template)
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .progress_chars("=> ")
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to STEPS")]
fn steps(fraction: f64) -> u64 {
    (fraction.clamp(0.0, 1.0) * f64::from(STEPS)) as u64
}

/// The numbers beside a bar, in columns that stay in their places.
fn numbers(fraction: f64, inserted: u64, documents: f64, remaining: Option<Duration>) -> String {
    format!(
        "{}  {}  {}  {}",
        right(&percent(fraction), PERCENT_COLUMNS),
        right(&count(inserted), DOCUMENTS_COLUMNS),
        right(&rate(documents), RATE_COLUMNS),
        format::left(&time_left(remaining), TIME_COLUMNS),
    )
}
