//! Takes an archive apart around damage.
//!
//! A document whose inside alone is damaged is passed over. Behind any other damage the next header
//! is looked for that names a collection of the list, and documents before it are not taken: the
//! header of another block may be lost, so that they may be of another collection. For the same
//! reason what looks like a header is never taken for a document.

use crate::batch::Position;
use crate::dump::archive::piece::{Piece, TERMINATOR};
use crate::dump::archive::record::BlockHeader;
use crate::dump::stream::Stream;
use crate::error::Error;
use crate::frame::{self, Frame};
use crate::reader::demux::{At, Demux, Item, Places, Progress, State};
use crate::reader::plausible::{self, Beginning};
use crate::reader::salvage::{Open, Rest, Stretch};

/// The most bytes of a header: names of a few hundred bytes and two fields of fixed length.
const HEADER_BYTES_MAX: usize = 4096;

/// What comes next in an archive that is read around damage.
#[derive(Debug)]
pub enum Salvaged<'a> {
    /// Something sound.
    Item(Item<'a>),
    /// Bytes that are lost; those of one stretch come in pieces.
    Lost {
        /// The collection in whose block they lie, where they lie in one.
        place: Option<usize>,
        /// The bytes.
        bytes: &'a [u8],
    },
    /// The stretch of the pieces before is at its end.
    Stretch {
        /// The collection in whose block it began, where it began in one.
        place: Option<usize>,
        /// The stretch, in bytes of the archive.
        stretch: Stretch,
        /// Where it begins; `end` counts the bytes of the collection before it.
        before: Position,
        /// The bytes of the collection up to its end.
        end: u64,
    },
}

/// A search that goes on.
#[derive(Debug)]
pub(super) struct Search {
    open: Open,
    place: Option<usize>,
    before: Position,
    found: Anchor,
}

/// What a search has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Anchor {
    /// Nothing: it goes on where it was.
    Inside,
    /// A terminator, behind which a header or the end comes.
    Terminator,
    /// A header.
    Header,
}

impl Demux {
    /// Has compressed archives read so that everything before damage is there.
    pub fn read_carefully(&mut self) {
        self.stream.read_carefully();
    }

    /// What comes next, damage included; nothing at the end of an archive that is whole there.
    ///
    /// An error where nothing more can be read, or where collections have no end.
    pub fn next_salvaged(&mut self) -> Result<Option<Salvaged<'_>>, Error> {
        loop {
            if self.search.is_some() {
                match self.search_on() {
                    Passed::Bytes(place, count) => {
                        let bytes = self.stream.behind(count);
                        return Ok(Some(Salvaged::Lost { place, bytes }));
                    }
                    Passed::Stretch(stretch) => return Ok(Some(stretch)),
                    Passed::Nothing => continue,
                }
            }
            if self.stream.available() == 0
                && let Some(failure) = self.stream.failure()
            {
                return Err(failure.clone());
            }
            let trouble = match (self.look(), self.at) {
                (Ok(Piece::Document(length)), At::Inside(place)) => {
                    match self.damage(place, length) {
                        None => {
                            let item = self.document(place, length)?;
                            return Ok(Some(Salvaged::Item(item)));
                        }
                        Some((reason, rest)) => {
                            self.begin_search(reason, rest);
                            continue;
                        }
                    }
                }
                (Ok(Piece::Document(length)), At::Outside) => match self.header(length) {
                    Ok(Some(item)) => return Ok(Some(Salvaged::Item(item))),
                    Ok(None) => continue,
                    Err(error) => error,
                },
                (Ok(Piece::Document(_)), At::BehindEnd(place)) => self.behind_end(place),
                (Ok(Piece::Terminator), _) => match self.terminator() {
                    Ok(()) => continue,
                    Err(error) => error,
                },
                (Ok(Piece::End), _) => return self.end().map(|()| None),
                (Err(error), _) => error,
            };
            self.begin_search(trouble.message().to_owned(), Rest::Searched(1));
        }
    }

    /// What is wrong with the document of a block that comes next, and how much is lost with it.
    fn damage(&mut self, place: usize, length: usize) -> Option<(String, Rest)> {
        let frame = Frame::new(&self.stream.ahead()[..length]);
        let sound = frame.and_then(|frame| frame.validate().map(|()| frame));
        let first = sound.as_ref().map_or(Beginning::AnyField, begins);
        let first = *self.states[place].beginning.get_or_insert(first);
        let error = match sound {
            Ok(frame) if begins(&frame) == Beginning::Id => return None,
            Ok(frame) => {
                let header = BlockHeader::parse(frame).ok();
                header.and_then(|header| self.places.named(&header))?;
                let reason = "the terminator before the header of a block is missing".to_owned();
                return Some((reason, Rest::Searched(0)));
            }
            Err(error) => error,
        };
        self.end_run(place);
        let Self { stream, places, states, .. } = self;
        let listing = Listing { places, states };
        let has_follower = listing.anchor_at(stream, length).is_some()
            || plausible::head_at(stream, length, first).is_some();
        // A length that reaches just over the header of the next block looks right as well.
        let is_alone =
            has_follower && !(1..length).any(|at| listing.anchor_at(stream, at).is_some());
        let rest = if is_alone { Rest::Bytes(length) } else { Rest::Searched(1) };
        Some((error.to_string(), rest))
    }

    /// Takes the documents that were gone past into the checksum, before the buffer changes.
    fn end_run(&mut self, place: usize) {
        let run = std::mem::take(&mut self.run);
        self.states[place].checksum.update(self.stream.behind(run));
    }

    fn begin_search(&mut self, reason: String, rest: Rest) {
        let from = self.stream.offset();
        let place = match self.at {
            At::Inside(place) => Some(place),
            At::Outside | At::BehindEnd(_) => None,
        };
        let mut before = Position { offset: from, ..Position::default() };
        if let Some(place) = place {
            self.end_run(place);
            let state = &self.states[place];
            before.origin = state.origin;
            before.end = state.bytes;
        }
        let open = Open { from, reason, rest };
        self.search = Some(Search { open, place, before, found: Anchor::Inside });
    }

    fn search_on(&mut self) -> Passed {
        let Some(mut search) = self.search.take() else {
            return Passed::Nothing;
        };
        if let Some(stretch) = search.open.closed() {
            return Passed::Stretch(self.end_search(&search, stretch));
        }
        let Self { stream, places, states, .. } = self;
        let listing = Listing { places, states };
        let mut found = Anchor::Inside;
        let count = search.open.pass(stream, |stream, at| {
            let anchor = listing.anchor_at(stream, at);
            found = anchor.unwrap_or(Anchor::Inside);
            anchor.is_some()
        });
        search.found = found;
        let place = search.place;
        if let Some(place) = place {
            self.states[place].bytes += count as u64;
        }
        self.search = Some(search);
        if count > 0 { Passed::Bytes(place, count) } else { Passed::Nothing }
    }

    /// Stands where the search has led.
    fn end_search(&mut self, search: &Search, stretch: Stretch) -> Salvaged<'static> {
        match search.found {
            Anchor::Inside => {}
            Anchor::Terminator => {
                self.stream.advance(TERMINATOR.len());
                self.at = At::Outside;
            }
            Anchor::Header => self.at = At::Outside,
        }
        let end = search.place.map_or(0, |place| self.states[place].bytes);
        Salvaged::Stretch { place: search.place, stretch, before: search.before, end }
    }
}

/// What an archive may go on with.
struct Listing<'a> {
    places: &'a Places,
    states: &'a [State],
}

impl Listing<'_> {
    /// What begins `at` bytes ahead, if it is something to go on with.
    fn anchor_at(&self, stream: &mut Stream, at: usize) -> Option<Anchor> {
        if is_terminator(stream, at) {
            let behind = at + TERMINATOR.len();
            let goes_on = self.is_header(stream, behind) || !stream.reaches(behind + 1);
            return goes_on.then_some(Anchor::Terminator);
        }
        self.is_header(stream, at).then_some(Anchor::Header)
    }

    /// Whether it is the header of a collection in the list that is not at its end.
    fn is_header(&self, stream: &mut Stream, at: usize) -> bool {
        if !stream.reaches(at + TERMINATOR.len()) {
            return false;
        }
        let prefix = stream.ahead()[at..].first_chunk().copied().unwrap_or_default();
        let Ok(length) = frame::length(prefix) else {
            return false;
        };
        if length > HEADER_BYTES_MAX || !stream.reaches(at + length) {
            return false;
        }
        let frame = Frame::new(&stream.ahead()[at..at + length]).ok();
        let header = frame.and_then(|frame| BlockHeader::parse(frame).ok());
        header
            .and_then(|header| self.places.named(&header))
            .is_some_and(|place| self.states[place].progress != Progress::Ended)
    }
}

fn is_terminator(stream: &mut Stream, at: usize) -> bool {
    stream.reaches(at + TERMINATOR.len()) && stream.ahead()[at..].starts_with(&TERMINATOR)
}

/// What one step of a search has led to.
enum Passed {
    Bytes(Option<usize>, usize),
    Stretch(Salvaged<'static>),
    Nothing,
}

fn begins(frame: &Frame<'_>) -> Beginning {
    Beginning::of(frame.bytes())
}
