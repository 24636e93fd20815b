//! A line every few seconds, for logs and pipes.

use std::io::Write;
use std::time::Duration;

use super::Show;
use super::glance::{Glance, Work, bound, building, percent_known, time_left};
use crate::limits::{BOUND_LINE_INTERVAL, PROGRESS_LINE_INTERVAL};
use crate::report::bound::Bound;
use crate::report::event::Phase;
use crate::report::format::{byte_rate, bytes, count, counted, whole};

/// Collections that a line names before it only counts them.
const NAMES_MAX: usize = 2;

/// Shows a run line by line.
pub(super) struct Lines {
    out: Box<dyn Write + Send>,
    pace: Pace,
    said: Duration,
    /// What the run was last said to be bound by, and when.
    bound: Option<(Bound, Duration)>,
}

/// Whether lines come at a steady pace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pace {
    /// Every few seconds.
    Steady,
    /// Only when there is news.
    NewsAlone,
}

impl Lines {
    /// Writes to `out`; what cannot be written is lost, because a closed log must not end a run.
    pub(super) fn new(out: Box<dyn Write + Send>, pace: Pace) -> Self {
        Self { out, pace, said: Duration::ZERO, bound: None }
    }

    /// What the run waits for, whenever that has changed and every now and then.
    fn bound(&mut self, at: Duration, glance: &Glance) -> Option<String> {
        let by = glance.bound.as_ref().map(|(by, _)| *by)?;
        let is_known = self.bound.is_some_and(|(said, since)| {
            said == by && at.saturating_sub(since) < BOUND_LINE_INTERVAL
        });
        if glance.phase == Some(Phase::Ended) || is_known {
            return None;
        }
        self.bound = Some((by, at));
        bound(glance)
    }
}

impl Show for Lines {
    fn show(&mut self, at: Duration, glance: &Glance, news: &[String]) {
        let mut text = String::new();
        for line in news {
            text.push_str(line);
            text.push('\n');
        }
        let is_due = at.saturating_sub(self.said) >= PROGRESS_LINE_INTERVAL;
        if is_due && self.pace == Pace::Steady {
            self.said = at;
            for line in line(glance).into_iter().chain(self.bound(at, glance)) {
                text.push_str(&line);
                text.push('\n');
            }
        }
        if !text.is_empty() {
            let _ = self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush());
        }
    }

    fn end(&mut self) {}
}

/// How far the run is, in one line; nothing before it began and after its end.
fn line(glance: &Glance) -> Option<String> {
    let line = match glance.phase? {
        Phase::Data => {
            let documents = counted(glance.documents, "document", "documents");
            let pace = glance.stall().unwrap_or_else(|| pace(glance));
            let (written, expected) = glance.bytes;
            let bytes = match expected {
                Some(expected) => format!("{} of {}", bytes(written), bytes(expected)),
                None => bytes(written),
            };
            format!("{:>5}  {bytes}  {documents}  {pace}", percent_known(glance.fraction))
        }
        Phase::Indexes | Phase::TimeToLive => {
            let (done, all) = glance.indexes;
            let percent = percent_known(glance.fraction);
            format!("{percent:>5}  indexes: {} of {} done", count(done as u64), count(all as u64))
        }
        Phase::Users => "users and roles are restored".to_owned(),
        Phase::Oplog => oplog(glance),
        Phase::Views => "views are created".to_owned(),
        Phase::Ended => return None,
    };
    Some(format!("{line}{}", active(glance)))
}

/// How far the oplog is, which does not tell its length.
pub(super) fn oplog(glance: &Glance) -> String {
    let (entries, last) = glance.oplog;
    let entries = counted(entries, "entry", "entries");
    let until = last.map_or_else(String::new, |last| format!(", to {last}"));
    format!("oplog: {entries} applied{until}")
}

fn pace(glance: &Glance) -> String {
    let (rate, left) = (glance.rate, time_left(glance.time_left));
    format!("{} inserts/s  {}  {left}", whole(rate.documents), byte_rate(rate.bytes))
}

/// What is worked on, in a few words.
fn active(glance: &Glance) -> String {
    let mut names: Vec<_> = glance
        .active
        .iter()
        .take(NAMES_MAX)
        .map(|one| match &one.work {
            Work::Documents { .. } => one.name.clone(),
            Work::Indexes { names, since, fraction, time_left } => {
                let how_far = building(*since, *fraction, *time_left);
                format!("{} builds {} ({how_far})", one.name, names.join(", "))
            }
        })
        .collect();
    let more = glance.active.len() + glance.active_more - names.len();
    if more > 0 {
        names.push(format!("{} more", count(more as u64)));
    }
    if names.is_empty() { String::new() } else { format!("  {}", names.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::event::Event;
    use crate::report::progress::tests::Paper;
    use crate::report::tally::Tally;
    use crate::report::value::samples;
    use crate::sample::Sample;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// The lines of a run that is looked at every half second until `end`.
    fn shown(events: &[(u64, Event)], end: u64) -> String {
        let paper = Paper::default();
        let mut lines = Lines::new(Box::new(paper.clone()), Pace::Steady);
        let mut tally = Tally::default();
        let mut events = events.iter().peekable();
        for half in 0..=end * 2 {
            let at = Duration::from_millis(half * 500);
            while let Some((_, event)) = events.next_if(|(second, _)| seconds(*second) <= at) {
                tally.apply(at, event);
            }
            lines.show(at, &Glance::of(&tally, at), &[]);
        }
        paper.text()
    }

    fn loading() -> Vec<(u64, Event)> {
        let collections = vec![samples::planned("orders", 1_000_000, 1).into()];
        let mut events = vec![
            (0, Event::Planned { collections }),
            (0, Event::PhaseBegan(Phase::Data)),
            (0, Event::ReadBegan { collection: 0 }),
        ];
        for second in 1..=5 {
            events.push((second, Event::Read { collection: 0, documents: 1000, bytes: 100_000 }));
            events.push((second, samples::written(0, [1000, 0, 0], 100_000, 100_000)));
        }
        events
    }

    #[test]
    fn a_stalled_run_still_says_so() {
        let text = shown(&loading(), 12);
        assert_eq!(
            text.lines().collect::<Vec<_>>(),
            [
                " 20 %  300 kB of 1.00 MB  3,000 documents  \
                 1,091 inserts/s  109 kB/s  ETA 7 s  shop.orders",
                " 33 %  500 kB of 1.00 MB  5,000 documents  \
                 727 inserts/s  72.7 kB/s  ETA 6 s  shop.orders",
                " 33 %  500 kB of 1.00 MB  5,000 documents  \
                 nothing acknowledged for 4.0 s  shop.orders",
                " 33 %  500 kB of 1.00 MB  5,000 documents  \
                 nothing acknowledged for 7.0 s  shop.orders",
            ]
        );
    }

    #[test]
    fn without_a_pace_only_news_is_shown() {
        let paper = Paper::default();
        let mut lines = Lines::new(Box::new(paper.clone()), Pace::NewsAlone);
        let mut tally = Tally::default();
        for (second, event) in loading() {
            tally.apply(seconds(second), &event);
        }
        lines.show(seconds(9), &Glance::of(&tally, seconds(9)), &["failed: x".to_owned()]);
        lines.show(seconds(19), &Glance::of(&tally, seconds(19)), &[]);
        assert_eq!(paper.text(), "failed: x\n");
    }

    #[test]
    fn what_the_run_waits_for_is_told_whenever_it_changes() {
        let sample = |sending: u64, starved: u64| {
            let mut sample = Sample::default();
            sample.gauges.cores = 2;
            (sample.stages.sending, sample.stages.starved) = (seconds(sending), seconds(starved));
            sample.stages.reading = seconds(starved);
            sample.stages.input = seconds(starved);
            Event::Sampled(Box::new(sample))
        };
        let mut events = loading();
        for second in 0..20 {
            let starved = if second < 10 { 0 } else { (second - 10) * 2 };
            events.push((second, sample(second, starved)));
        }
        events.sort_by_key(|(second, _)| *second);
        let text = shown(&events, 20);
        let bound: Vec<_> = text.lines().filter(|line| line.starts_with("bound by")).collect();
        assert_eq!(bound.len(), 2, "{text}");
        assert!(bound[0].starts_with("bound by server: workers waited for its answers 100 %"));
        assert!(bound[1].starts_with("bound by reading: workers waited for batches"), "{text}");
    }

    #[test]
    fn indexes_are_named_while_they_are_built() {
        let mut events = loading();
        let index = "a_1_b_-1".to_owned();
        events.extend([
            (5, Event::DataEnded { collection: 0 }),
            (5, Event::PhaseBegan(Phase::Indexes)),
            (5, Event::IndexBegan { collection: 0, index: index.clone() }),
            (10, Event::IndexBuilt { collection: 0, index, took: seconds(5) }),
            (10, Event::CollectionEnded { collection: 0 }),
            (10, Event::PhaseBegan(Phase::Ended)),
        ]);
        let text = shown(&events, 15);
        let lines: Vec<_> = text.lines().skip(1).collect();
        assert_eq!(
            lines,
            [
                " 66 %  indexes: 0 of 1 done  shop.orders builds a_1_b_-1 (1.0 s)",
                " 66 %  indexes: 0 of 1 done  shop.orders builds a_1_b_-1 (4.0 s)",
            ]
        );
    }
}
