//! Lines of JSON for programs: what happens, and once a second how far the run is.

use std::io::Write;
use std::time::Duration;

use super::glance::Glance;
use super::news::RETRY_LINE_INTERVAL;
use super::{Hear, Show};
use crate::limits::JSON_LINE_INTERVAL;
use crate::report::event::{Event, Phase};
use crate::report::live::{Live, Progress, line, name, word};
use crate::report::tally::Tally;

/// Lines of events that have not been shown yet.
#[derive(Debug, Default)]
pub(super) struct Feed {
    lines: Vec<String>,
    retry_said: Option<Duration>,
    retries_unsaid: u64,
}

impl Hear for Feed {
    fn take_note(&mut self, at: Duration, event: &Event, tally: &Tally) {
        if let Event::Retried { collection, reason, delay } = event {
            let collection = collection.and_then(|place| tally.collections().get(place));
            self.retry(at, collection.map(name), reason, *delay);
        } else if let Some(live) = Live::of(event, tally) {
            self.lines.push(line(at, &live));
        }
    }

    fn tell(&mut self, at: Duration, text: &str) {
        self.lines.push(line(at, &Live::Note { collection: None, message: text }));
    }

    fn drain(&mut self) -> Vec<String> {
        std::mem::take(&mut self.lines)
    }
}

impl Feed {
    fn retry(&mut self, at: Duration, collection: Option<String>, message: &str, delay: Duration) {
        let said = self.retry_said;
        if said.is_some_and(|said| at.saturating_sub(said) < RETRY_LINE_INTERVAL) {
            self.retries_unsaid += 1;
            return;
        }
        let (untold, delay_seconds) =
            (std::mem::take(&mut self.retries_unsaid), delay.as_secs_f64());
        let live = Live::Retried { collection, message, delay_seconds, untold };
        self.lines.push(line(at, &live));
        self.retry_said = Some(at);
    }
}

/// Writes lines of JSON.
pub(super) struct JsonLines {
    out: Box<dyn Write + Send>,
    said: Option<Duration>,
    has_ended: bool,
}

impl JsonLines {
    /// Writes to `out`; what cannot be written is lost, because a reader that has gone away must
    /// not end a run.
    pub(super) fn new(out: Box<dyn Write + Send>) -> Self {
        Self { out, said: None, has_ended: false }
    }
}

impl Show for JsonLines {
    fn show(&mut self, at: Duration, glance: &Glance, news: &[String]) {
        let mut text = news.concat();
        let ends = glance.phase == Some(Phase::Ended) && !self.has_ended;
        let since = at.saturating_sub(self.said.unwrap_or_default());
        if ends || (since >= JSON_LINE_INTERVAL && !self.has_ended) {
            self.said = Some(at);
            self.has_ended = ends;
            text.push_str(&line(at, &Live::Progress(Box::new(progress(glance)))));
        }
        if !text.is_empty() {
            let _ = self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush());
        }
    }

    fn end(&mut self) {}
}

fn progress(glance: &Glance) -> Progress {
    let (balance, gauges) = (glance.balance, glance.gauges);
    Progress {
        phase: glance.phase.map(word),
        fraction: glance.fraction,
        seconds_left: glance.time_left.map(|time| time.as_secs_f64()),
        documents_read: balance.read,
        documents_inserted: balance.inserted,
        documents_changed: balance.changes,
        documents_already_there: balance.already_there,
        documents_rejected: balance.rejected,
        bytes: glance.bytes.0,
        bytes_expected: glance.bytes.1,
        documents_per_second: glance.rate.documents,
        bytes_per_second: glance.rate.bytes,
        in_flight: gauges.in_flight,
        queued: gauges.queued,
        workers: gauges.workers,
        retries: glance.retries,
        collections_ended: glance.collections.0,
        collections: glance.collections.1,
        indexes_ended: glance.indexes.0,
        indexes: glance.indexes.1,
        oplog_entries: glance.oplog.0,
        silent_seconds: glance.silence.map(|silence| silence.as_secs_f64()),
        bound_by: glance.bound.as_ref().map(|(by, _)| *by),
        bound_evidence: glance.bound.as_ref().map(|(_, evidence)| evidence.clone()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::report::progress::tests::Paper;
    use crate::report::value::samples;
    use crate::sample::{Gauges, Sample};

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// The lines of a run that is looked at ten times a second until `end`.
    fn shown(events: &[(u64, Event)], end: u64) -> Vec<Value> {
        let paper = Paper::default();
        let mut display = JsonLines::new(Box::new(paper.clone()));
        let (mut feed, mut tally) = (Feed::default(), Tally::default());
        let mut events = events.iter().peekable();
        for tenth in 0..=end / 100 {
            let at = Duration::from_millis(tenth * 100);
            while let Some((millis, event)) =
                events.next_if(|(millis, _)| Duration::from_millis(*millis) <= at)
            {
                let at = Duration::from_millis(*millis);
                tally.apply(at, event);
                feed.take_note(at, event, &tally);
            }
            display.show(at, &Glance::of(&tally, at), &feed.drain());
        }
        let text = paper.text();
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }

    fn of_kind<'a>(lines: &'a [Value], kind: &str) -> Vec<&'a Value> {
        lines.iter().filter(|line| line["event"] == kind).collect()
    }

    fn loading(batches: u64) -> Vec<(u64, Event)> {
        let gauges = Gauges { in_flight: 3, queued: 2, workers: 8, ..Gauges::default() };
        let sample = Sample { gauges, ..Sample::default() };
        let mut events = vec![
            (
                0,
                Event::Planned {
                    collections: vec![samples::planned("orders", 1_000_000, 1).into()],
                },
            ),
            (0, Event::PhaseBegan(Phase::Data)),
            (0, Event::ReadBegan { collection: 0 }),
            (10, Event::Sampled(Box::new(sample))),
        ];
        for batch in 0..batches {
            let at = 20 + batch * 10;
            events.push((at, Event::Read { collection: 0, documents: 10, bytes: 1000 }));
            events.push((at, samples::written(0, [9, 0, 1], 1000, 1000)));
        }
        events
    }

    #[test]
    fn there_is_one_line_of_progress_a_second_and_none_for_a_batch() {
        let lines = shown(&loading(500), 5_500);
        let progress = of_kind(&lines, "progress");
        assert_eq!(progress.len(), 5);
        assert_eq!(lines.len(), 5 + 3, "the plan, a stage and a collection: {lines:#?}");
        let second = progress[1];
        assert_eq!(second["at_seconds"], 2.0);
        assert_eq!(second["documents_read"], 199 * 10);
        assert_eq!(second["documents_inserted"], 199 * 9);
        assert_eq!(second["documents_rejected"], 199);
        assert_eq!(second["bytes"], 199_000);
        assert_eq!(second["in_flight"], 3);
        assert_eq!(second["workers"], 8);
        assert_eq!(second["phase"], "data");
    }

    #[test]
    fn a_short_run_has_a_line_of_progress_at_its_end() {
        let events: Vec<_> = samples::clean_events().into_iter().map(|event| (5, event)).collect();
        let lines = shown(&events, 3000);
        let progress = of_kind(&lines, "progress");
        assert_eq!(progress.len(), 1, "{lines:#?}");
        assert_eq!(progress[0]["fraction"], 1.0);
        assert_eq!(progress[0]["documents_inserted"], 20);
        assert_eq!(progress[0]["phase"], "ended");
    }

    #[test]
    fn retries_are_told_once_a_second() {
        let event = |at| {
            let delay = Duration::from_millis(200);
            (at, Event::Retried { collection: Some(0), reason: "no \"primary\"".into(), delay })
        };
        let mut events = loading(0);
        events.extend([100, 200, 300, 1200, 1300].map(event));
        let lines = shown(&events, 2000);
        let retries = of_kind(&lines, "retried");
        assert_eq!(retries.len(), 2);
        assert_eq!(retries[0]["message"], "no \"primary\"");
        assert_eq!(retries[0]["collection"], "shop.orders");
        assert_eq!((&retries[0]["untold"], &retries[1]["untold"]), (&0.into(), &2.into()));
    }

    #[test]
    fn what_no_event_makes_is_a_note() {
        let mut feed = Feed::default();
        feed.tell(seconds(3), "stopping\nnow");
        let [text] = &feed.drain()[..] else { panic!("one line") };
        assert_eq!(text.matches('\n').count(), 1);
        let value: Value = serde_json::from_str(text).expect("JSON");
        assert_eq!((&value["event"], &value["message"]), (&"note".into(), &"stopping\nnow".into()));
    }
}
