//! Lines about what is out of the ordinary, shown as soon as it happens.

use std::time::Duration;

use super::Hear;
use crate::report::Verbosity;
use crate::report::event::Event;
use crate::report::format::{bytes, counted, duration, one_line};
use crate::report::tally::{CollectionTally, Tally};
use crate::report::text::{about, changed};

/// The least time between two lines about retries; a server in trouble makes many.
pub(super) const RETRY_LINE_INTERVAL: Duration = Duration::from_secs(1);

/// Lines that have not been shown yet.
#[derive(Debug)]
pub(super) struct News {
    verbosity: Verbosity,
    lines: Vec<String>,
    retry_said: Option<Duration>,
    retries_unsaid: u64,
}

impl News {
    /// Nothing yet.
    pub(super) fn new(verbosity: Verbosity) -> Self {
        Self { verbosity, lines: Vec::new(), retry_said: None, retries_unsaid: 0 }
    }
}

impl Hear for News {
    fn drain(&mut self) -> Vec<String> {
        std::mem::take(&mut self.lines)
    }

    fn tell(&mut self, _at: Duration, text: &str) {
        self.lines.push(one_line(text));
    }

    fn take_note(&mut self, at: Duration, event: &Event, tally: &Tally) {
        let about = |collection: usize, text: &str| match tally.collections().get(collection) {
            Some(tally) => about(tally.namespace(), text),
            None => one_line(text),
        };
        match event {
            Event::Retried { collection, reason, delay } => {
                let line = match collection {
                    Some(collection) => about(*collection, reason),
                    None => one_line(reason),
                };
                self.retry(at, &format!("retry: {line}; again in {}", duration(*delay)));
            }
            Event::Note { collection, text } => {
                let text = match collection {
                    Some(collection) => about(*collection, text),
                    None => one_line(text),
                };
                self.lines.push(format!("note: {text}"));
            }
            Event::CollectionFailed { collection, error } => {
                self.lines.push(format!("failed: {}", about(*collection, error)));
            }
            Event::IndexFailed { collection, index, reason } => {
                let text = format!("index {index} not built: {reason}");
                self.lines.push(format!("failed: {}", about(*collection, &text)));
            }
            Event::UsersEnded { failure: Some(failure) } => {
                self.lines.push(format!("failed: users and roles: {}", one_line(failure)));
            }
            Event::IndexBuilt { collection, index, took } if self.is_verbose() => {
                let text = format!("index {index} built in {}", duration(*took));
                self.lines.push(about(*collection, &text));
            }
            Event::CollectionEnded { collection } if self.is_verbose() => {
                if let Some(collection) = tally.collections().get(*collection) {
                    self.lines.push(ended(collection));
                }
            }
            _ => {}
        }
    }
}

impl News {
    fn is_verbose(&self) -> bool {
        self.verbosity == Verbosity::Verbose
    }

    fn retry(&mut self, at: Duration, line: &str) {
        let said = self.retry_said;
        if said.is_some_and(|said| at.saturating_sub(said) < RETRY_LINE_INTERVAL) {
            self.retries_unsaid += 1;
            return;
        }
        let more = match std::mem::take(&mut self.retries_unsaid) {
            0 => String::new(),
            more => format!(" ({})", counted(more, "more retry before", "more retries before")),
        };
        self.lines.push(format!("{line}{more}"));
        self.retry_said = Some(at);
    }
}

/// A finished collection in one line.
fn ended(collection: &CollectionTally) -> String {
    let namespace = collection.namespace();
    if collection.planned.kind == "view" {
        return format!("{namespace}: view created");
    }
    let documents = counted(collection.counts.inserted, "document", "documents");
    let bytes = bytes(collection.counts.bytes_acknowledged);
    let time = duration(collection.data_time().unwrap_or_default());
    let changed = changed(&collection.counts.changes, ",");
    format!("{namespace}: done, {documents} inserted{changed}, {bytes} in {time}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::value::samples;

    fn told(verbosity: Verbosity, events: &[(u64, Event)]) -> Vec<String> {
        let (mut news, mut tally) = (News::new(verbosity), Tally::default());
        for (millis, event) in events {
            let at = Duration::from_millis(*millis);
            tally.apply(at, event);
            news.take_note(at, event, &tally);
        }
        news.drain()
    }

    fn clean(millis: u64) -> Vec<(u64, Event)> {
        samples::clean_events().into_iter().map(|event| (millis, event)).collect()
    }

    #[test]
    fn a_clean_run_is_no_news() {
        assert!(told(Verbosity::Normal, &clean(0)).is_empty());
        let mut events = clean(0);
        let took = Duration::from_millis(3200);
        events.push((1, Event::IndexBuilt { collection: 0, index: "a_1".into(), took }));
        let lines = told(Verbosity::Verbose, &events);
        assert_eq!(
            lines,
            [
                "shop.orders: done, 10 documents inserted, 900 B in 0 s",
                "shop.items: done, 10 documents inserted, 100 B in 0 s",
                "shop.orders: index a_1 built in 3.2 s",
            ]
        );
    }

    #[test]
    fn failures_and_notes_are_told_at_once() {
        let mut events = clean(0);
        let note = |collection| Event::Note { collection, text: "an option\nwas left out".into() };
        events.extend([
            (1, samples::failed(1)),
            (1, samples::index_failed(0)),
            (1, note(Some(0))),
            (1, note(None)),
        ]);
        assert_eq!(
            told(Verbosity::Normal, &events),
            [
                "failed: shop.items: the file ends inside a document, \
                 in dump/shop/items.bson, at byte 1024",
                "failed: shop.orders: index number_1 not built: \
                 two documents have the same key (server code 11000)",
                "note: shop.orders: an option\\nwas left out",
                "note: an option\\nwas left out",
            ]
        );
    }

    #[test]
    fn retries_are_told_once_a_second() {
        let retried = |at| {
            let delay = Duration::from_millis(200);
            (at, Event::Retried { collection: Some(0), reason: "no primary".into(), delay })
        };
        let mut events = clean(0);
        events.extend([100, 200, 300, 1200, 1300].map(retried));
        assert_eq!(
            told(Verbosity::Normal, &events),
            [
                "retry: shop.orders: no primary; again in 200 ms",
                "retry: shop.orders: no primary; again in 200 ms (2 more retries before)",
            ]
        );
    }
}
