//! Takes an archive apart: yields the documents of all its collections as they come.
//!
//! A document is neither copied nor decoded. Checksums are taken over whole runs of documents as
//! they lie in the buffer, before it is filled again, rather than document by document.

pub mod salvage;

use std::sync::Arc;

use crate::batch::Position;
use crate::clock::ReadClocks;
use crate::dump::archive::checksum::Checksum;
use crate::dump::archive::piece::{self, Piece, TERMINATOR};
use crate::dump::archive::record::BlockHeader;
use crate::dump::archive::{Archive, ListedCollection};
use crate::dump::inventory::CollectionKind;
use crate::dump::stream::{Interrupt, Stream, Unpacking};
use crate::error::Error;
use crate::frame::Frame;
use crate::memory::{Budget, Share};
use crate::namespace::{BUCKETS_PREFIX, Namespace};
use crate::reader::plausible::Beginning;
use salvage::Search;

/// Collections named in an error; more do not help.
const NAMES_SHOWN: usize = 5;

/// What comes next in an archive. Collections are named by their place in its list.
#[derive(Debug)]
pub enum Item<'a> {
    /// A collection is met for the first time.
    Begin {
        /// The collection.
        place: usize,
    },
    /// A document.
    Document {
        /// The collection.
        place: usize,
        /// The document.
        frame: Frame<'a>,
        /// Where it lies in the archive; its origin counts the bytes of the archive that this
        /// collection has used up.
        position: Position,
    },
    /// No more documents of the collection come.
    End {
        /// The collection.
        place: usize,
        /// The end; its origin counts all bytes that the collection has used up.
        position: Position,
        /// An error where the checksum says that the documents are not those that were dumped.
        checked: Result<(), Error>,
    },
}

/// Reads an archive from its first block to its last.
#[derive(Debug)]
pub struct Demux {
    stream: Stream,
    places: Places,
    states: Vec<State>,
    at: At,
    /// The bytes of documents gone past since the current collection's checksum was updated.
    run: usize,
    /// The bytes of the archive itself that are counted as used up by a collection.
    origin_counted: u64,
    /// Where what comes next is looked for behind damage.
    search: Option<Search>,
}

/// The list of an archive, by the names that a header may use.
#[derive(Debug)]
struct Places {
    archive: Archive,
    /// The places in the list, in the order of the names there.
    by_name: Vec<usize>,
}

impl Places {
    fn of(archive: &Archive) -> Self {
        let listed = archive.collections();
        let mut by_name: Vec<_> = (0..listed.len()).collect();
        by_name.sort_unstable_by_key(|&place| &listed[place].namespace);
        Self { archive: archive.clone(), by_name }
    }

    fn listed(&self) -> &[ListedCollection] {
        self.archive.collections()
    }

    fn name(&self, place: usize) -> &Namespace {
        &self.listed()[place].namespace
    }

    /// The collection that a header names, if it is in the list: that of this name, else the
    /// time-series collection whose buckets have it.
    fn named(&self, header: &BlockHeader<'_>) -> Option<usize> {
        let exact = self.find(header.database, header.collection);
        exact.or_else(|| {
            let logical = header.collection.strip_prefix(BUCKETS_PREFIX)?;
            let place = self.find(header.database, logical)?;
            (self.listed()[place].kind == CollectionKind::TimeSeries).then_some(place)
        })
    }

    fn find(&self, database: &str, collection: &str) -> Option<usize> {
        let order = |&place: &usize| {
            let name = self.name(place);
            (name.database(), name.collection()).cmp(&(database, collection))
        };
        self.by_name.binary_search_by(order).ok().map(|found| self.by_name[found])
    }
}

/// How far a collection is.
#[derive(Debug, Default)]
struct State {
    progress: Progress,
    checksum: Checksum,
    origin: u64,
    /// Bytes of its documents that were gone past.
    bytes: u64,
    is_passed_over: bool,
    /// With what its documents begin; told only where damage is read around.
    beginning: Option<Beginning>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Progress {
    #[default]
    Unmet,
    Open,
    Ended,
}

/// Between which pieces the reader stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    /// Before a header, or the end.
    Outside,
    /// Among the documents of this collection.
    Inside(usize),
    /// Behind the header that ended this collection.
    BehindEnd(usize),
}

impl Demux {
    /// Opens an archive at its first block.
    pub fn open(archive: &Archive) -> Result<Self, Error> {
        let stream = archive.open()?;
        let places = Places::of(archive);
        let states = archive.collections().iter().map(|_| State::default()).collect();
        let origin_counted = stream.origin();
        let (at, search) = (At::Outside, None);
        Ok(Self { stream, places, states, at, run: 0, origin_counted, search })
    }

    /// Leaves the rest of the unpacking to a thread that runs what is returned; nothing where the
    /// archive is not compressed.
    pub fn unpack_aside(&mut self) -> Option<Unpacking> {
        self.stream.unpack_aside()
    }

    /// Gives up waiting for more once the interrupt asks for it. Comes before
    /// [`Self::unpack_aside`].
    pub fn interrupt_by(&mut self, interrupt: Interrupt) {
        self.stream.interrupt_by(interrupt);
    }

    /// Adds the time that reading takes to these clocks; comes before [`Self::unpack_aside`].
    pub fn timed_by(&mut self, clocks: &ReadClocks) {
        self.stream.timed_by(clocks);
    }

    /// Takes the memory for large documents from this budget.
    pub fn within(&mut self, budget: Budget) {
        self.stream.within(budget);
    }

    /// What was taken for the document before, if it is large.
    pub fn share(&self) -> Option<Arc<Share>> {
        self.stream.share()
    }

    /// Counts the bytes of this collection as used up by the one that is met after it, because
    /// nobody will tell of its own.
    pub fn pass_over(&mut self, place: usize) {
        self.states[place].is_passed_over = true;
    }

    /// What comes next; nothing at the end of an archive that is whole.
    ///
    /// An error names the byte of the archive, uncompressed, at which it stops making sense.
    /// Nothing behind it can be trusted.
    pub fn next_item(&mut self) -> Result<Option<Item<'_>>, Error> {
        loop {
            match self.look()? {
                Piece::Document(length) => match self.at {
                    At::Inside(place) => return self.document(place, length).map(Some),
                    At::Outside => {
                        if let Some(item) = self.header(length)? {
                            return Ok(Some(item));
                        }
                    }
                    At::BehindEnd(place) => return Err(self.behind_end(place)),
                },
                Piece::Terminator => self.terminator()?,
                Piece::End => return self.end().map(|()| None),
            }
        }
    }

    /// Looks at the next piece; what lies in the buffer is taken into the checksum before the
    /// buffer is filled again.
    fn look(&mut self) -> Result<Piece, Error> {
        let Self { stream, states, at, run, .. } = self;
        let looked = piece::look(stream, |stream| {
            if let At::Inside(place) = *at {
                states[place].checksum.update(stream.behind(std::mem::take(run)));
            }
        });
        let left = self.stream.available();
        match looked {
            Err(_) if self.at == At::Outside && left < TERMINATOR.len() && left > 0 => {
                let message = format!("{left} bytes behind the last block belong to nothing");
                Err(self.stream.error(message))
            }
            looked => looked,
        }
    }

    fn document(&mut self, place: usize, length: usize) -> Result<Item<'_>, Error> {
        let offset = self.stream.offset();
        self.stream.advance(length);
        self.run += length;
        let state = &mut self.states[place];
        state.bytes += length as u64;
        let position = Position { offset, origin: state.origin, end: state.bytes };
        if !state.is_passed_over {
            let origin = self.stream.origin();
            state.origin += origin - self.origin_counted;
            self.origin_counted = origin;
        }
        match Frame::new(self.stream.behind(length)) {
            Ok(frame) => Ok(Item::Document { place, frame, position }),
            Err(error) => Err(piece::damaged(&self.stream, &error).at_byte(offset)),
        }
    }

    /// Goes past the header of a block; says what it means for its collection.
    fn header(&mut self, length: usize) -> Result<Option<Item<'static>>, Error> {
        let frame = piece::document(&self.stream, length)?;
        let header = BlockHeader::parse(frame).map_err(|what| {
            self.stream
                .error(format!("documents without a header that names their collection: {what}"))
        })?;
        let Some(place) = self.places.named(&header) else {
            return Err(self.unlisted(&header));
        };
        let (is_end, stored) = (header.is_end, header.checksum);
        let was = self.states[place].progress;
        if was == Progress::Ended {
            let message = "the collection begins again after its end";
            return Err(self.stream.error(message).of(self.places.name(place)));
        }
        let checked = if is_end { self.check(place, stored) } else { Ok(()) };
        self.stream.advance(length);
        let state = &mut self.states[place];
        if is_end {
            state.progress = Progress::Ended;
            self.at = At::BehindEnd(place);
            let (offset, origin) = (self.stream.offset(), state.origin);
            let position = Position { offset, origin, end: state.bytes };
            return Ok(Some(Item::End { place, position, checked }));
        }
        state.progress = Progress::Open;
        self.at = At::Inside(place);
        Ok((was == Progress::Unmet).then_some(Item::Begin { place }))
    }

    fn terminator(&mut self) -> Result<(), Error> {
        match self.at {
            At::Inside(place) => {
                let run = std::mem::take(&mut self.run);
                self.states[place].checksum.update(self.stream.behind(run));
            }
            At::BehindEnd(_) => {}
            At::Outside => {
                let message = "two terminators in a row: a block without its header";
                return Err(self.stream.error(message));
            }
        }
        self.at = At::Outside;
        self.stream.advance(TERMINATOR.len());
        Ok(())
    }

    fn check(&self, place: usize, stored: u64) -> Result<(), Error> {
        let computed = self.states[place].checksum.value();
        if computed == stored {
            return Ok(());
        }
        let message = format!(
            "the checksum of its documents is {computed:016x}, but the archive says {stored:016x}"
        );
        Err(self
            .stream
            .error(message)
            .of(self.places.name(place))
            .hint("some of its documents are not what was dumped; take the dump again"))
    }

    /// Judges the end of the archive.
    fn end(&self) -> Result<(), Error> {
        let cut = |message: String| {
            self.stream.error(message).hint("the archive was cut off here; take the dump again")
        };
        if let At::Inside(place) = self.at {
            let namespace = self.places.name(place);
            return Err(cut(format!("the archive ends among the documents of `{namespace}`")));
        }
        let open = |(_, state): &(_, &State)| state.progress != Progress::Ended;
        let mut unended = self.places.listed().iter().zip(&self.states).filter(open);
        let names: Vec<_> = unended
            .by_ref()
            .take(NAMES_SHOWN)
            .map(|(listed, _)| format!("`{}`", listed.namespace))
            .collect();
        let more = match unended.count() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        if !names.is_empty() {
            let names = names.join(", ");
            return Err(cut(format!("the archive ends before the end of {names}{more}")));
        }
        if let At::BehindEnd(place) = self.at {
            let namespace = self.places.name(place);
            return Err(cut(format!("the terminator behind the end of `{namespace}` is missing")));
        }
        Ok(())
    }

    fn behind_end(&self, place: usize) -> Error {
        let message = "documents come directly behind the collection's end";
        self.stream.error(message).of(self.places.name(place))
    }

    fn unlisted(&self, header: &BlockHeader<'_>) -> Error {
        let namespace = Namespace::new(header.database, header.collection);
        self.stream.error(format!("documents of `{namespace}`, which the archive does not list"))
    }
}
