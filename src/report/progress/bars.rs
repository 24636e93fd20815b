//! Bars on a terminal: one for each collection that is worked on, above one for the whole run.

use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::Show;
use super::glance::{ActiveCollection, Glance, Work, bound, building, percent_known, time_left};
use crate::report::event::Phase;
use crate::report::format::{self, count, rate, right};

/// The steps of a bar.
const STEPS: u16 = 1000;

/// The narrowest terminal on which nothing is cut but names.
const TERMINAL_COLUMNS_MIN: usize = 80;

/// The widths of the texts around a bar, which leave 12 columns for it on that terminal; names get
/// more where there is more.
const NAME_COLUMNS_MIN: usize = 21;
const PERCENT_COLUMNS: usize = 5;
const DOCUMENTS_COLUMNS: usize = 11;
const RATE_COLUMNS: usize = 8;
const TIME_COLUMNS: usize = 13;

/// Shows a run as bars.
pub(super) struct Bars {
    screen: MultiProgress,
    total: ProgressBar,
    /// What the run waits for, below all bars once that is known.
    bound: Option<ProgressBar>,
    collections: Vec<CollectionBar>,
    columns: Columns,
    /// How wide names are: as wide as the longest so far, if there is the room.
    name_columns: usize,
}

/// Tells the width of the terminal, which may change.
pub type Columns = fn() -> Option<usize>;

struct CollectionBar {
    collection: usize,
    bar: ProgressBar,
    builds_indexes: bool,
}

impl Bars {
    /// Draws on `target`, which is as wide as `columns` says.
    pub(super) fn new(target: ProgressDrawTarget, columns: Columns) -> Self {
        let screen = MultiProgress::with_draw_target(target);
        let total = screen.add(hidden_bar().with_message(numbers(Some(0.0), 0, 0.0, None)));
        let name_columns = NAME_COLUMNS_MIN;
        Self { screen, total, bound: None, collections: Vec::new(), columns, name_columns }
    }

    /// Widens the names to the longest, as far as the terminal allows.
    fn fit_names(&mut self, glance: &Glance) {
        let terminal = (self.columns)().unwrap_or(TERMINAL_COLUMNS_MIN);
        let most = NAME_COLUMNS_MIN + terminal.saturating_sub(TERMINAL_COLUMNS_MIN);
        let longest = glance.active.iter().map(|active| format::columns(&active.name)).max();
        self.name_columns = self.name_columns.max(longest.unwrap_or_default()).min(most);
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
        let Some(place) = known else { return self.add(active) };
        self.collections[place].update(active, self.name_columns);
    }

    /// A bar that is complete before it is drawn for the first time.
    fn add(&mut self, active: &ActiveCollection) {
        let bar = hidden_bar();
        let collection = active.collection;
        let mut added = CollectionBar { collection, bar, builds_indexes: false };
        added.update(active, self.name_columns);
        added.bar = self.screen.insert_before(&self.total, added.bar);
        added.bar.tick();
        self.collections.push(added);
    }

    fn show_bound(&mut self, glance: &Glance) {
        let Some(text) = bound(glance) else { return };
        let screen = &self.screen;
        let bar = self.bound.get_or_insert_with(|| {
            let bar = hidden_bar().with_style(style("{wide_msg}"));
            screen.insert_after(&self.total, bar)
        });
        bar.set_message(text);
        bar.tick();
    }

    fn show_total(&self, glance: &Glance) {
        let (done, all) = glance.collections;
        let name = format!("total {}/{}", count(done as u64), count(all as u64));
        self.total.set_prefix(format::left(&name, self.name_columns));
        let share = glance.fraction;
        self.total.set_message(match (glance.phase, glance.stall()) {
            (Some(Phase::Indexes | Phase::TimeToLive), _) => {
                let (done, all) = glance.indexes;
                let indexes = format!("indexes {} of {}", count(done as u64), count(all as u64));
                words(share, &indexes)
            }
            (Some(Phase::Users), _) => words(share, "restoring users and roles"),
            (Some(Phase::Oplog), _) => words(share, &super::lines::oplog(glance)),
            (Some(Phase::Views), _) => words(share, "creating views"),
            (_, Some(stall)) => words(share, &stall),
            _ => numbers(share, glance.documents, glance.rate.documents, glance.time_left),
        });
        self.total.set_position(steps(glance.fraction));
    }
}

impl CollectionBar {
    fn update(&mut self, active: &ActiveCollection, name_columns: usize) {
        self.bar.set_prefix(format::left(&active.name, name_columns));
        let builds_indexes = matches!(active.work, Work::Indexes { .. });
        if self.builds_indexes != builds_indexes {
            self.bar.set_style(style(if builds_indexes { TEXT } else { BAR }));
            self.builds_indexes = builds_indexes;
        }
        match &active.work {
            Work::Documents { fraction, documents, rate, time_left } => {
                self.bar.set_message(numbers(*fraction, *documents, rate.documents, *time_left));
                self.bar.set_position(steps(*fraction));
            }
            Work::Indexes { names, since, fraction, time_left } => {
                let how_far = building(*since, *fraction, *time_left);
                self.bar.set_message(format!("building {} ({how_far})", names.join(", ")));
            }
        }
    }
}

impl Show for Bars {
    fn show(&mut self, _at: Duration, glance: &Glance, news: &[String]) {
        for line in news {
            // A terminal that is gone shows nothing; the work goes on.
            let _ = self.screen.println(line);
        }
        self.remove_ended(glance);
        self.fit_names(glance);
        for active in &glance.active {
            self.show_collection(active);
        }
        self.show_total(glance);
        self.show_bound(glance);
    }

    fn end(&mut self) {
        for shown in self.collections.drain(..) {
            shown.bar.finish_and_clear();
        }
        self.total.finish_and_clear();
        if let Some(bound) = &self.bound {
            bound.finish_and_clear();
        }
    }
}

const BAR: &str = "{prefix} [{wide_bar}] {msg}";
const TEXT: &str = "{prefix} {wide_msg}";

fn hidden_bar() -> ProgressBar {
    ProgressBar::with_draw_target(Some(u64::from(STEPS)), ProgressDrawTarget::hidden())
        .with_style(style(BAR))
}

fn style(template: &str) -> ProgressStyle {
    // A template that is no template would show as the plain bar; a test draws both.
    ProgressStyle::with_template(template)
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .progress_chars("=> ")
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to STEPS")]
fn steps(fraction: Option<f64>) -> u64 {
    (fraction.unwrap_or(0.0).clamp(0.0, 1.0) * f64::from(STEPS)) as u64
}

/// Words in place of the numbers beside a bar, as wide as those.
fn words(fraction: Option<f64>, text: &str) -> String {
    let width = DOCUMENTS_COLUMNS + RATE_COLUMNS + TIME_COLUMNS + 4;
    format!("{}  {}", right(&percent_known(fraction), PERCENT_COLUMNS), format::left(text, width))
}

/// The numbers beside a bar, in columns that stay in their places.
fn numbers(
    fraction: Option<f64>,
    documents: u64,
    per_second: f64,
    remaining: Option<Duration>,
) -> String {
    format!(
        "{}  {}  {}  {}",
        right(&percent_known(fraction), PERCENT_COLUMNS),
        right(&count(documents), DOCUMENTS_COLUMNS),
        right(&rate(per_second), RATE_COLUMNS),
        format::left(&time_left(remaining), TIME_COLUMNS),
    )
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::report::event::Event;
    use crate::report::tally::Tally;
    use crate::report::value::samples;
    use crate::sample::{IndexProgress, IndexStage};

    /// A terminal that keeps every line it was ever given.
    #[derive(Clone, Debug, Default)]
    struct Paper {
        text: Arc<Mutex<String>>,
        columns: u16,
    }

    impl Paper {
        fn push(&self, text: &str) {
            self.text.lock().expect("no panic").push_str(text);
        }

        fn take(&self) -> String {
            std::mem::take(&mut *self.text.lock().expect("no panic"))
        }
    }

    impl indicatif::TermLike for Paper {
        fn width(&self) -> u16 {
            self.columns
        }

        fn move_cursor_up(&self, _lines: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_down(&self, _lines: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_right(&self, _columns: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_left(&self, _columns: usize) -> io::Result<()> {
            Ok(())
        }

        fn write_line(&self, line: &str) -> io::Result<()> {
            self.push(line);
            self.push("\n");
            Ok(())
        }

        fn write_str(&self, text: &str) -> io::Result<()> {
            self.push(text);
            Ok(())
        }

        fn clear_line(&self) -> io::Result<()> {
            self.push("\n");
            Ok(())
        }

        fn flush(&self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn bars_come_and_go_with_their_collections() {
        let paper = Paper { columns: 80, ..Paper::default() };
        let target = ProgressDrawTarget::term_like_with_hz(Box::new(paper.clone()), 250);
        let mut bars = Bars::new(target, || Some(80));
        let mut tally = Tally::default();
        let mut show = |events: Vec<Event>, at: u64| {
            let at = Duration::from_secs(at);
            for event in &events {
                tally.apply(at, event);
            }
            // The drawing is rationed; the pause earns the next one.
            std::thread::sleep(Duration::from_millis(100));
            paper.take();
            bars.show(at, &Glance::of(&tally, at), &[]);
            paper.take()
        };
        let collections = vec![samples::planned("orders", 1_000_000, 1).into()];
        let text = show(
            vec![
                Event::Planned { collections },
                Event::PhaseBegan(Phase::Data),
                Event::ReadBegan { collection: 0 },
                Event::Read { collection: 0, documents: 1000, bytes: 500_000 },
                samples::written(0, [1000, 0, 0], 500_000, 500_000),
            ],
            1,
        );
        let bar = "shop.orders           [======>     ]  50 %        1,000  4.00 k/s  ETA 3 s";
        assert!(text.contains(bar), "{text}");
        assert!(text.contains("total 0/1             [===>        ]  33 %"), "{text}");
        let text = show(Vec::new(), 9);
        assert!(text.contains("  33 %  nothing acknowledged for 8.0 s"), "{text}");
        let index = || "a_1".to_owned();
        let begun = Event::IndexBegan { collection: 0, index: index() };
        let text = show(vec![Event::DataEnded { collection: 0 }, begun], 10);
        assert!(text.contains("shop.orders           building a_1 (0 s)"), "{text}");
        let progress = IndexProgress {
            namespace: "shop.orders".to_owned(),
            indexes: vec![index()],
            stage: IndexStage::Scanning,
            done: 50,
            total: 100,
        };
        let text = show(vec![Event::IndexProgressed { collection: 0, progress }], 15);
        assert!(text.contains("building a_1 (5.0 s, 25 %, ETA 15 s)"), "{text}");
        assert!(text.contains("total 0/1             [=========>  ]  75 %"), "{text}");
        let took = Duration::from_secs(1);
        let built = Event::IndexBuilt { collection: 0, index: index(), took };
        let ended = Event::CollectionEnded { collection: 0 };
        let text = show(vec![built, ended, Event::PhaseBegan(Phase::Ended)], 11);
        assert!(!text.contains("building a_1 (1"), "{text}");
        assert!(text.contains("total 1/1"), "{text}");
        assert!(text.contains("100 %"), "{text}");
    }

    #[test]
    fn names_take_the_width_there_is() {
        const NAME: &str = "shop.orders_of_all_years_and_countries";
        for (columns, width, expected) in [
            (80, (|| Some(80)) as Columns, "shop.orders_of_all_y… ["),
            (90, || Some(90), "shop.orders_of_all_years_and_c… ["),
            (120, || Some(120), "shop.orders_of_all_years_and_countries ["),
        ] {
            let paper = Paper { columns, ..Paper::default() };
            let target = ProgressDrawTarget::term_like_with_hz(Box::new(paper.clone()), 250);
            let mut bars = Bars::new(target, width);
            let mut tally = Tally::default();
            let collections = vec![samples::planned(&NAME[5..], 100, 0).into()];
            for event in [Event::Planned { collections }, Event::ReadBegan { collection: 0 }] {
                tally.apply(Duration::ZERO, &event);
            }
            bars.show(Duration::ZERO, &Glance::of(&tally, Duration::ZERO), &[]);
            let text = paper.take();
            assert!(text.contains(expected), "{columns}: {text}");
        }
    }
}
