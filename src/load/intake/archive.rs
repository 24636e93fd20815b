//! Turns an archive into batches: one thread takes it apart, and each collection that is open in it
//! has a batch of its own.
//!
//! Nothing waits for anything else as long as there is room: a batch whose collection is not
//! created yet, or whose worker is busy with the ones before it, is put aside while the others go
//! on. What is put aside and what is open are bounded together; beyond the bound the largest open
//! batches are sent before they are full.

mod salvage;

use std::collections::VecDeque;
use std::sync::Arc;

use crate::batch::{Batch, Position};
use crate::dump::archive::Archive;
use crate::dump::inventory::{CollectionKind, Origin};
use crate::error::{Error, ErrorKind};
use crate::frame::Frame;
use crate::limits::{ARCHIVE_WAITING_BYTES_MAX, LARGE_DOCUMENT_BYTES};
use crate::load::intake::feed::Feed;
use crate::load::intake::gathering::{Begun, Gathering};
use crate::load::intake::wanted::Step;
use crate::load::intake::{Gate, Intake, Reading, beside};
use crate::memory::Share;
use crate::reader::demux::{Demux, Item};
use crate::report::Event;
use crate::target::Target;

/// Documents between two looks at whether to go on, while none of them is sent.
const LOOK_EVERY: u64 = 256;

/// Takes an archive apart.
pub(super) struct ArchiveIntake<T> {
    intake: Intake<T>,
    /// Tells of collections that are prepared or refused.
    prepared: async_channel::Receiver<usize>,
    /// Closed until the first collection is met, because users and roles that come before it may
    /// keep the run from beginning.
    gate: Option<Gate>,
    lanes: Vec<Lane>,
    /// Collections whose worker has no room for their next batch.
    crowded: Vec<usize>,
    /// Bytes in batches that are open or put aside.
    held: usize,
    held_max: usize,
}

/// What an archive's documents are of, and what was taken of it besides collections.
struct Told {
    /// The collection of the plan for each place in the list.
    collections: Vec<Option<usize>>,
    gathering: Gathering,
    documents: u64,
}

/// What there is of one collection.
#[derive(Default)]
struct Lane {
    readiness: Readiness,
    feed: Option<Box<Feed>>,
    /// The worker that takes its batches, where their order matters.
    worker: Option<usize>,
    aside: VecDeque<Batch>,
    /// Where its last document lies.
    position: Position,
    /// Set where no more documents come.
    ended: Option<Result<(), Error>>,
    /// Whether nothing is left to do about it.
    is_closed: bool,
}

impl Lane {
    fn close(&mut self) {
        self.is_closed = true;
        // What held batches is larger than all the rest, and there may be very many lanes.
        self.aside = VecDeque::new();
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Readiness {
    #[default]
    Awaited,
    Prepared,
    Refused,
}

/// What an open batch adds to the bytes that are held, once it is cut.
fn weight(batch: &Batch) -> usize {
    batch.array().len().saturating_sub(1)
}

impl<T: Target> ArchiveIntake<T> {
    pub(super) fn new(
        intake: Intake<T>,
        prepared: async_channel::Receiver<usize>,
        gate: Gate,
    ) -> Self {
        let plans = &intake.run.plan.collections;
        let lane = |(collection, plan): (usize, &crate::plan::CollectionPlan)| Lane {
            worker: intake.own_queue(collection),
            is_closed: plan.data.is_none() || plan.kind == CollectionKind::View,
            ..Lane::default()
        };
        let lanes = plans.iter().enumerate().map(lane).collect();
        let held_max = ARCHIVE_WAITING_BYTES_MAX.max(2 * intake.run.settings.batch.bytes());
        let (gate, crowded) = (Some(gate), Vec::new());
        Self { intake, prepared, gate, lanes, crowded, held: 0, held_max }
    }

    /// Reads the archive to its end, or to where it is damaged.
    pub(super) fn read(mut self, archive: &Archive) {
        let run = Arc::clone(&self.intake.run);
        let reading = run.stages.reading.begin();
        let gathering = match self.intake.reading {
            Reading::First => Gathering::of(&self.intake.run.plan),
            Reading::Again(_) => Ok(Gathering::nothing()),
        };
        let outcome = gathering.map(|gathering| {
            Demux::open(archive).and_then(|mut demux| {
                demux.interrupt_by(self.intake.interrupt());
                demux.within(self.intake.run.memory.clone());
                demux.timed_by(&self.intake.run.stages.read);
                if self.intake.run.salvage.is_some() {
                    demux.read_carefully();
                }
                let goes_aside = self.intake.unpacks_aside;
                let unpacking = if goes_aside { demux.unpack_aside() } else { None };
                beside(unpacking, || self.take_apart(demux, archive, gathering))
            })
        });
        let outcome = outcome.unwrap_or_else(|error| {
            self.intake.run.fail(error);
            Ok(())
        });
        match outcome {
            _ if !self.intake.run.goes_on() => self.abandon(),
            Ok(()) => {}
            Err(error) => self.give_up(error),
        }
        self.gate = None;
        drop(reading);
        self.close();
    }

    fn take_apart(
        &mut self,
        mut demux: Demux,
        archive: &Archive,
        gathering: Gathering,
    ) -> Result<(), Error> {
        let collections = self.places(archive);
        let unplanned = collections.iter().enumerate().filter(|(_, planned)| planned.is_none());
        unplanned.for_each(|(place, _)| demux.pass_over(place));
        let mut told = Told { collections, gathering, documents: 0 };
        if self.intake.run.salvage.is_some() {
            return self.take_apart_around(demux, archive, told);
        }
        while let Some(item) = demux.next_item()? {
            let large = Self::large(&item, &told);
            if !self.take(item, &mut told) {
                break;
            }
            if let (Some(collection), Some(share)) = (large, demux.share()) {
                self.send_large(collection, share);
            }
        }
        Ok(())
    }

    /// The collection that a document belongs to, if it is large.
    fn large(item: &Item<'_>, told: &Told) -> Option<usize> {
        match item {
            Item::Document { place, frame, .. } if frame.bytes().len() > LARGE_DOCUMENT_BYTES => {
                told.collections[*place]
            }
            _ => None,
        }
    }

    /// Takes what comes next; says whether to go on.
    fn take(&mut self, item: Item<'_>, told: &mut Told) -> bool {
        let Told { collections, gathering, documents } = told;
        match item {
            Item::Document { place, frame, position } => {
                match collections[place] {
                    Some(collection) => self.push(collection, frame, position),
                    None => gathering.take(place, frame, position),
                }
                *documents += 1;
                if !documents.is_multiple_of(LOOK_EVERY) {
                    return true;
                }
            }
            Item::Begin { place } => {
                if let Some(collection) = collections[place] {
                    self.gate = None;
                    self.begin(collection);
                }
            }
            Item::End { place, position, checked } => match (collections[place], checked) {
                (Some(collection), checked) => {
                    self.gate = None;
                    self.end(collection, position, checked);
                }
                (None, checked) => {
                    let is_ours = gathering.end(&self.intake.run, place, &checked, self.begun());
                    if let (false, Err(error)) = (is_ours, checked) {
                        self.note(format!("{error}; it is not restored"));
                    }
                }
            },
        }
        self.intake.run.goes_on()
    }

    /// The collection of the plan for each place in the archive's list.
    fn places(&self, archive: &Archive) -> Vec<Option<usize>> {
        let mut places = vec![None; archive.collections().len()];
        for (collection, plan) in self.intake.run.plan.collections.iter().enumerate() {
            if let Some(segments) = plan.data.as_ref().and_then(Origin::segments) {
                let is_wanted = match &self.intake.reading {
                    Reading::First => true,
                    Reading::Again(missing) => missing.contains_key(&collection),
                };
                places[segments.place] = is_wanted.then_some(collection);
            }
        }
        places
    }

    fn begun(&self) -> Begun {
        if self.gate.is_some() { Begun::Nothing } else { Begun::Documents }
    }

    fn begin(&mut self, collection: usize) {
        if !self.lanes[collection].is_closed {
            self.intake.run.want(collection);
            if let Reading::First = self.intake.reading {
                self.intake.run.observe(&Event::ReadBegan { collection });
            }
        }
        self.hear();
    }

    fn push(&mut self, collection: usize, frame: Frame<'_>, position: Position) {
        let lane = &mut self.lanes[collection];
        if lane.is_closed {
            return self.push_closed(collection, position);
        }
        if self.intake.run.is_refused(collection) {
            return;
        }
        lane.position = position;
        let (run, reading) = (&self.intake.run, &self.intake.reading);
        let feed = lane.feed.get_or_insert_with(|| Box::new(Feed::of(run, collection, reading)));
        let before = feed.held_bytes();
        let start = position.end - frame.bytes().len() as u64;
        let full = match feed.step(start) {
            Step::Read => feed.push(run, frame, position),
            Step::Skip(_) | Step::End => feed.pass_over(position, position.end),
        };
        // What was cut is still held, until it is sent.
        let cut = full.as_ref().map_or(0, weight);
        self.held = self.held + feed.held_bytes() + cut - before;
        if let Some(batch) = full {
            self.put_aside(collection, batch);
        }
        if self.held > self.held_max {
            self.relieve();
        }
    }

    /// Sends a large document at once and waits until a worker has it: the next one may need the
    /// memory that it takes, and only this thread sends what was put aside.
    fn send_large(&mut self, collection: usize, share: Arc<Share>) {
        let lane = &mut self.lanes[collection];
        let end = lane.position;
        if let Some(batch) = lane.feed.as_mut().and_then(|feed| feed.cut_large(end, share)) {
            self.put_aside(collection, batch);
        }
        while !self.lanes[collection].aside.is_empty() && self.intake.run.goes_on() {
            if self.wait().is_none() {
                return;
            }
        }
    }

    /// Goes past bytes of a collection that are lost.
    fn pass_over(&mut self, collection: usize, before: Position, end: u64) {
        let lane = &mut self.lanes[collection];
        let Some(feed) = lane.feed.as_mut().filter(|_| !lane.is_closed) else {
            return;
        };
        let held = feed.held_bytes();
        let full = feed.pass_over(before, end);
        let cut = full.as_ref().map_or(0, weight);
        self.held = self.held + feed.held_bytes() + cut - held;
        if let Some(batch) = full {
            self.put_aside(collection, batch);
        }
    }

    /// A document where there should be none: of a view.
    fn push_closed(&self, collection: usize, position: Position) {
        let run = &self.intake.run;
        if run.plan.collections[collection].kind == CollectionKind::View {
            let archive = run.plan.archive().map(|archive| archive.path().to_path_buf());
            let error = Error::new(ErrorKind::Read, "the archive holds documents of this view")
                .in_file(archive.unwrap_or_default())
                .at_byte(position.offset);
            run.fail_collection(collection, &error);
        }
    }

    fn end(&mut self, collection: usize, position: Position, checked: Result<(), Error>) {
        if self.lanes[collection].is_closed {
            return;
        }
        self.lanes[collection].position = position;
        self.cut(collection);
        self.lanes[collection].ended = Some(self.or_doubtful(collection, checked));
        self.intake.run.want(collection);
        self.hear();
        self.flush(collection);
    }

    /// Sends what is open of a collection, or puts it aside.
    fn cut(&mut self, collection: usize) {
        let lane = &mut self.lanes[collection];
        let end = lane.position;
        if let Some(batch) = lane.feed.as_mut().and_then(|feed| feed.cut(end)) {
            self.put_aside(collection, batch);
        }
    }

    fn put_aside(&mut self, collection: usize, batch: Batch) {
        self.lanes[collection].aside.push_back(batch);
        self.hear();
        self.flush(collection);
        for collection in std::mem::take(&mut self.crowded) {
            self.flush(collection);
        }
    }

    /// Takes note of the collections that were prepared since.
    fn hear(&mut self) {
        while let Ok(collection) = self.prepared.try_recv() {
            self.take_note(collection);
        }
    }

    fn take_note(&mut self, collection: usize) {
        // Before any of its batches was sent, only who prepares it can have refused it.
        let is_refused = self.intake.run.is_refused(collection);
        self.lanes[collection].readiness =
            if is_refused { Readiness::Refused } else { Readiness::Prepared };
        self.flush(collection);
    }

    /// Sends what was put aside of a collection as far as there is room, and closes it after the
    /// last batch.
    fn flush(&mut self, collection: usize) {
        if self.lanes[collection].readiness == Readiness::Awaited {
            return;
        }
        while !self.lanes[collection].aside.is_empty() {
            let has_room = self.lanes[collection]
                .worker
                .is_none_or(|worker| !self.intake.own[worker].is_full());
            if !has_room {
                self.crowded.push(collection);
                return;
            }
            self.send_next(collection);
        }
        self.close_lane(collection);
    }

    /// Sends the next batch that was put aside of a collection, and waits until it is taken.
    fn send_next(&mut self, collection: usize) {
        let lane = &mut self.lanes[collection];
        let Some(batch) = lane.aside.pop_front() else {
            return;
        };
        self.held = self.held.saturating_sub(weight(&batch));
        if self.intake.run.is_refused(collection) {
            return;
        }
        let queue = match lane.worker {
            Some(worker) => &self.intake.own[worker],
            None => &self.intake.shared,
        };
        self.intake.send(queue, batch);
    }

    /// Closes a collection of which nothing more comes, if that is so.
    fn close_lane(&mut self, collection: usize) {
        let run = Arc::clone(&self.intake.run);
        let lane = &mut self.lanes[collection];
        let ended = match (lane.is_closed, lane.readiness) {
            (true, _) => return,
            (false, Readiness::Refused) => {
                lane.close();
                let open = lane.feed.take().map_or(0, |feed| feed.held_bytes());
                self.held = self.held.saturating_sub(open);
                return;
            }
            _ => lane.ended.take(),
        };
        let Some(ended) = ended else { return };
        lane.close();
        let feed = lane.feed.take();
        match ended {
            Ok(()) => run.read_to_end(collection),
            Err(error) => run.fail_collection(collection, &error),
        }
        if let Some(feed) = &feed {
            feed.end(&run);
        }
        self.intake.note_missing(collection, feed.map_or(0, |feed| feed.documents()));
        if let Reading::First = self.intake.reading {
            run.tell_loss(collection);
        }
        run.finish(collection);
    }

    /// Makes room: sends the largest open batches of those collections that can take them, and
    /// where that is not enough, waits for collections to be prepared or workers to be free.
    fn relieve(&mut self) {
        self.hear();
        let mut open: Vec<(usize, usize)> = (0..self.lanes.len())
            .filter(|&collection| {
                let lane = &self.lanes[collection];
                lane.readiness == Readiness::Prepared && lane.aside.is_empty()
            })
            .filter_map(|collection| {
                let held = self.lanes[collection].feed.as_ref()?.held_bytes();
                Some((held, collection))
            })
            .collect();
        open.sort_unstable_by(|one, other| other.cmp(one));
        for (_, collection) in open {
            if self.held <= self.held_max / 2 {
                return;
            }
            self.cut(collection);
        }
        while self.held > self.held_max && self.intake.run.goes_on() {
            let Some(collection) = self.wait() else { return };
            if self.held > self.held_max {
                self.cut(collection);
            }
        }
    }

    /// Waits until something that was put aside can go on; nothing where nothing is.
    fn wait(&mut self) -> Option<usize> {
        if let Some(collection) = self.crowded.pop() {
            self.send_next(collection);
            self.flush(collection);
            return Some(collection);
        }
        let held_back = &self.intake.run.stages.held_back;
        let collection = held_back.time(|| self.prepared.recv_blocking()).ok()?;
        self.take_note(collection);
        Some(collection)
    }

    /// Forgets what was not sent, because the run ends.
    fn abandon(&mut self) {
        self.crowded.clear();
        for lane in &mut self.lanes {
            lane.aside.clear();
            lane.feed = None;
            lane.ended = None;
        }
    }

    /// Sends what was read before the damage; what is open there cannot be complete.
    fn give_up(&mut self, error: Error) {
        let run = Arc::clone(&self.intake.run);
        run.prepare_no_more();
        let mut incomplete = Error::new(
            ErrorKind::Read,
            format!("its documents are not complete, because {}", error.message()),
        );
        if let Some(archive) = run.plan.archive() {
            incomplete = incomplete.in_file(archive.path());
        }
        if let Some(offset) = error.offset() {
            incomplete = incomplete.at_byte(offset);
        }
        run.note_damage(error);
        for collection in 0..self.lanes.len() {
            let lane = &self.lanes[collection];
            if !lane.is_closed && lane.ended.is_none() {
                self.cut(collection);
                let is_met = self.lanes[collection].feed.is_some();
                let ended = match Err(incomplete.clone()) {
                    ended if is_met => self.or_doubtful(collection, ended),
                    ended => ended,
                };
                if ended.is_err() {
                    run.fail_collection(collection, &incomplete);
                }
                self.lanes[collection].ended = Some(ended);
                self.flush(collection);
            }
        }
    }

    /// Waits for what was put aside, until nobody prepares collections any more.
    fn close(mut self) {
        while self.wait().is_some() {}
        let run = &self.intake.run;
        for (collection, lane) in self.lanes.iter().enumerate() {
            if !lane.is_closed && lane.readiness == Readiness::Prepared {
                // The run was stopped in the middle of it.
                run.finish(collection);
            }
        }
    }

    fn note(&self, text: String) {
        self.intake.run.observe(&Event::Note { collection: None, text });
    }
}
