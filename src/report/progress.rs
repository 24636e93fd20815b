//! What a person sees while work goes on.
//!
//! Work only adds to a tally, under a lock that is held for a moment. A thread of its own looks at
//! the tally at a steady pace and shows it, so neither a slow terminal holds work up nor does a
//! stalled run look like a finished one.

mod bars;
mod glance;
mod json;
mod lines;
mod news;

use std::io::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::limits::BARS_INTERVAL;
use crate::report::Verbosity;
use crate::report::event::{Event, Observer};
use crate::report::pulse::{Beat, Pulse};
use crate::report::tally::Tally;
use bars::Bars;
pub use bars::Columns;
use glance::Glance;
use json::{Feed, JsonLines};
use lines::{Lines, Pace};
use news::News;

/// An observer that keeps the tally of a run and shows it.
pub struct Progress {
    began: Instant,
    shared: Arc<Mutex<Shared>>,
    display: Mutex<Option<Pulse>>,
}

struct Shared {
    tally: Tally,
    news: Option<Box<dyn Hear>>,
}

/// Makes lines of single events.
trait Hear: Send {
    /// Makes a line of the event if it is worth one; `tally` has it counted already.
    fn take_note(&mut self, at: Duration, event: &Event, tally: &Tally);

    /// Adds a line that no event makes.
    fn tell(&mut self, at: Duration, text: &str);

    /// The lines that have not been shown; they are not kept.
    fn drain(&mut self) -> Vec<String>;
}

/// One way of showing a run.
trait Show: Send {
    /// Shows what is new, and how far the run is if it is time for that.
    fn show(&mut self, at: Duration, glance: &Glance, news: &[String]);

    /// Takes away what should not stay.
    fn end(&mut self);
}

impl Progress {
    /// Keeps the tally and shows nothing.
    pub fn quiet() -> Self {
        let shared = Shared { tally: Tally::default(), news: None };
        let shared = Arc::new(Mutex::new(shared));
        Self { began: Instant::now(), shared, display: Mutex::new(None) }
    }

    /// A line every few seconds to `out`, and one for everything out of the ordinary. `began` is
    /// the moment from which the times of the events count.
    pub fn lines(began: Instant, out: Box<dyn Write + Send>, verbosity: Verbosity) -> Self {
        let display = Box::new(Lines::new(out, Pace::Steady));
        Self::shown(began, display, Box::new(News::new(verbosity)))
    }

    /// Only a line to `out` for everything out of the ordinary. `began` is the moment from which
    /// the times of the events count.
    pub fn news(began: Instant, out: Box<dyn Write + Send>, verbosity: Verbosity) -> Self {
        let display = Box::new(Lines::new(out, Pace::NewsAlone));
        Self::shown(began, display, Box::new(News::new(verbosity)))
    }

    /// JSON lines to `out`, as [`crate::report::live`] describes them. `began` is the moment from
    /// which the times of the events count.
    pub fn json(began: Instant, out: Box<dyn Write + Send>) -> Self {
        Self::shown(began, Box::new(JsonLines::new(out)), Box::new(Feed::default()))
    }

    /// Bars on the terminal at standard error, and a line above them for everything out of the
    /// ordinary. `began` is the moment from which the times of the events count.
    /// `columns` tells how wide that terminal is.
    pub fn bars(began: Instant, columns: Columns, verbosity: Verbosity) -> Self {
        let target = indicatif::ProgressDrawTarget::stderr();
        let display = Box::new(Bars::new(target, columns));
        Self::shown(began, display, Box::new(News::new(verbosity)))
    }

    fn shown(began: Instant, mut display: Box<dyn Show>, news: Box<dyn Hear>) -> Self {
        let shared = Shared { tally: Tally::default(), news: Some(news) };
        let shared = Arc::new(Mutex::new(shared));
        let seen = Arc::clone(&shared);
        let pulse = Pulse::start(BARS_INTERVAL, move |beat| {
            show(began.elapsed(), &seen, &mut *display);
            if beat == Beat::Last {
                display.end();
            }
        });
        Self { began, shared, display: Mutex::new(Some(pulse)) }
    }

    /// Shows a line that no event makes, above the bars where there are any.
    pub fn tell(&self, text: &str) {
        if let Some(news) = &mut lock(&self.shared).news {
            news.tell(self.began.elapsed(), text);
        }
    }

    /// Shows what is still to be shown and takes bars away. Later events are counted but not shown.
    pub fn finish(&self) {
        drop(lock(&self.display).take());
        lock(&self.shared).news = None;
    }

    /// The tally so far.
    pub fn tally(&self) -> Tally {
        lock(&self.shared).tally.clone()
    }
}

impl Observer for Progress {
    fn observe(&self, at: Duration, event: &Event) {
        let mut shared = lock(&self.shared);
        let Shared { tally, news } = &mut *shared;
        tally.apply(at, event);
        if let Some(news) = news {
            news.take_note(at, event, tally);
        }
    }
}

/// A tally stays usable after a panic elsewhere: every event leaves it whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn show(at: Duration, shared: &Mutex<Shared>, display: &mut dyn Show) {
    let (glance, news) = {
        let mut shared = lock(shared);
        let news = shared.news.as_mut().map(|news| news.drain()).unwrap_or_default();
        (Glance::of(&shared.tally, at), news)
    };
    display.show(at, &glance, &news);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tally::State;
    use crate::report::value::samples;

    /// A writer that keeps what it was given.
    #[derive(Clone, Default)]
    pub(super) struct Paper(Arc<Mutex<Vec<u8>>>);

    impl Paper {
        pub(super) fn text(&self) -> String {
            String::from_utf8(lock(&self.0).clone()).expect("text")
        }
    }

    impl Write for Paper {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            lock(&self.0).extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn the_last_news_is_shown_before_the_end() {
        let paper = Paper::default();
        let progress = Progress::lines(Instant::now(), Box::new(paper.clone()), Verbosity::Normal);
        for event in samples::clean_events() {
            progress.observe(Duration::ZERO, &event);
        }
        progress.observe(Duration::ZERO, &samples::failed(1));
        progress.finish();
        let tally = progress.tally();
        assert_eq!(tally.balance().inserted, 20);
        assert!(paper.text().contains("failed: shop.items: the file ends"), "{}", paper.text());
        let length = paper.text().len();
        progress.observe(Duration::ZERO, &samples::failed(0));
        progress.finish();
        let tally = progress.tally();
        assert!(matches!(tally.collections()[0].state, State::Failed(_)), "all is counted");
        assert_eq!(paper.text().len(), length, "nothing is shown after the end");
    }

    #[test]
    fn quiet_counts_and_says_nothing() {
        let progress = Progress::quiet();
        for event in samples::clean_events() {
            progress.observe(Duration::ZERO, &event);
        }
        assert!(progress.tally().balance().is_balanced());
    }
}
