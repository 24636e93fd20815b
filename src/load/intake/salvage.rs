//! Reads a collection's file around damage.

use crate::load::intake::feed::Feed;
use crate::load::intake::wanted::Step;
use crate::load::intake::{Intake, Reading};
use crate::reader::Reader;
use crate::reader::salvage::{SalvageReader, Salvaged};
use crate::target::Target;

/// Whether there is more to read.
enum Goes {
    On(Option<crate::batch::Batch>),
    ToTheEnd,
}

impl<T: Target> Intake<T> {
    /// Reads one collection's documents into batches, as far as they can be read.
    pub(super) fn read_around(&self, collection: usize, reader: Reader) {
        let mut reader = reader.salvaging();
        let queue = match self.own_queue(collection) {
            Some(worker) => &self.own[worker],
            None => &self.shared,
        };
        let mut feed = Feed::of(&self.run, collection, &self.reading);
        loop {
            let full = match self.next_around(&mut feed, &mut reader) {
                Goes::On(full) => full,
                Goes::ToTheEnd => break,
            };
            if full.is_some_and(|batch| !self.send(queue, batch)) || self.run.has_failed() {
                break;
            }
        }
        if let Some(batch) = feed.cut(reader.position()) {
            self.send(queue, batch);
        }
        feed.end(&self.run);
        self.note_missing(collection, feed.documents());
        if let Reading::First = self.reading {
            self.run.tell_loss(collection);
        }
    }

    fn next_around(&self, feed: &mut Feed, reader: &mut SalvageReader) -> Goes {
        let (run, collection) = (&self.run, feed.collection());
        let is_first = matches!(self.reading, Reading::First);
        let before = reader.position();
        if reader.is_between() {
            match feed.step(before.offset) {
                Step::Read => {}
                Step::Skip(end) => {
                    reader.skip_to(end);
                    return Goes::On(feed.pass_over(before, end));
                }
                Step::End => return Goes::ToTheEnd,
            }
        }
        match reader.read_next() {
            Salvaged::Document(frame, position) => Goes::On(feed.push(run, frame, position)),
            Salvaged::Lost(bytes) => {
                // Nothing came any more, and somebody asked for the end.
                if !run.goes_on() {
                    return Goes::ToTheEnd;
                }
                if is_first {
                    run.keep_lost(Some(collection), bytes);
                }
                Goes::On(None)
            }
            Salvaged::Stretch(stretch) => {
                let end = stretch.to;
                let from = crate::batch::Position { offset: stretch.from, ..before };
                if is_first && run.goes_on() {
                    let origin = run.plan.collections[collection].data.as_ref();
                    let file = origin.map(|origin| origin.path().to_path_buf());
                    run.lose(Some(collection), &file.unwrap_or_default(), stretch);
                }
                Goes::On(end.and_then(|end| feed.pass_over(from, end)))
            }
            Salvaged::End => {
                run.read_to_end(collection);
                Goes::ToTheEnd
            }
        }
    }
}
