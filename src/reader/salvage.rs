//! Reads the documents of one collection around damage.
//!
//! Every document is checked before it is handed on. Behind one whose length or structure is
//! damaged the next plausible one is looked for; what lies between is handed on as lost. Memory is
//! that of two of the largest documents while something is looked for.

use crate::batch::Position;
use crate::dump::inventory::Compression;
use crate::dump::stream::Stream;
use crate::frame::{self, Frame};
use crate::reader::plausible::{self, Beginning, Ended};
use crate::reader::{PREFIX, Reader};

/// Reads what can be read.
#[derive(Debug)]
pub struct SalvageReader {
    stream: Stream,
    beginning: Beginning,
    open: Option<Open>,
    /// Whether a stretch without a known end was told: nothing comes after it.
    has_ended: bool,
}

/// What comes next.
#[derive(Debug)]
pub enum Salvaged<'a> {
    /// A document of sound structure.
    Document(Frame<'a>, Position),
    /// Bytes that are lost; those of one stretch come in pieces.
    Lost(&'a [u8]),
    /// The stretch of the pieces before is at its end.
    Stretch(Stretch),
    /// Nothing more.
    End,
}

/// A stretch of bytes that is lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// Its first byte, in the uncompressed content.
    pub from: u64,
    /// The byte behind its last one; nothing where no more can be read, so that nobody knows.
    pub to: Option<u64>,
    /// What is wrong with it; a sentence without its final period.
    pub reason: String,
}

/// A stretch that is not at its end.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) from: u64,
    pub(super) reason: String,
    pub(super) rest: Rest,
}

/// What is left of a stretch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rest {
    /// So many bytes.
    Bytes(usize),
    /// What lies before a plausible place; the first bytes are none.
    Searched(usize),
    /// Nothing; it ends here, if that is known.
    Closed(Option<u64>),
}

impl Open {
    /// Goes past what is lost next; returns how many bytes that is.
    pub(super) fn pass(
        &mut self,
        stream: &mut Stream,
        test: impl FnMut(&mut Stream, usize) -> bool,
    ) -> usize {
        let (count, ended) = match self.rest {
            Rest::Bytes(count) => (count, Ended::Found),
            Rest::Searched(start) => plausible::search(stream, start, test),
            Rest::Closed(_) => return 0,
        };
        stream.advance(count);
        self.rest = match ended {
            Ended::Enough => Rest::Searched(0),
            Ended::AtEnd if stream.failure().is_some() => Rest::Closed(None),
            Ended::Found | Ended::AtEnd => Rest::Closed(Some(stream.offset())),
        };
        count
    }

    /// The stretch, once nothing is left of it.
    pub(super) fn closed(&self) -> Option<Stretch> {
        match self.rest {
            Rest::Closed(to) => Some(Stretch { from: self.from, to, reason: self.reason.clone() }),
            Rest::Bytes(_) | Rest::Searched(_) => None,
        }
    }
}

impl Reader {
    /// Reads around damage from here on.
    pub fn salvaging(mut self) -> SalvageReader {
        self.stream.read_carefully();
        // Where there are fewer bytes, there is no document to learn from.
        let _ = self.stream.reaches(2 * PREFIX + 1);
        let beginning = Beginning::of(self.stream.ahead());
        SalvageReader { stream: self.stream, beginning, open: None, has_ended: false }
    }
}

impl SalvageReader {
    /// What comes next.
    pub fn read_next(&mut self) -> Salvaged<'_> {
        loop {
            if let Some(open) = &mut self.open {
                if let Some(stretch) = open.closed() {
                    self.open = None;
                    self.has_ended = stretch.to.is_none();
                    return Salvaged::Stretch(stretch);
                }
                let beginning = self.beginning;
                let count = open.pass(&mut self.stream, |stream, at| {
                    plausible::document_at(stream, at, beginning)
                        .is_some_and(|length| plausible::may_follow(stream, at + length, beginning))
                });
                if count > 0 {
                    return Salvaged::Lost(self.stream.behind(count));
                }
                continue;
            }
            match self.judge() {
                _ if self.has_ended => return Salvaged::End,
                Judged::End => return Salvaged::End,
                Judged::Sound(length) => return self.document(length),
                Judged::Damaged(reason, rest) => {
                    self.open = Some(Open { from: self.stream.offset(), reason, rest });
                }
            }
        }
    }

    /// Where what comes next begins.
    pub fn position(&self) -> Position {
        let offset = self.stream.offset();
        Position { offset, origin: self.stream.origin(), end: offset }
    }

    /// Whether a document or the end comes next, rather than more of a stretch that is lost.
    pub fn is_between(&self) -> bool {
        self.open.is_none()
    }

    /// How what is read is compressed.
    pub fn compression(&self) -> Compression {
        self.stream.compression()
    }

    /// Goes on with the document that begins at this byte of the uncompressed content.
    pub fn skip_to(&mut self, offset: u64) {
        // What cannot be read is told when it is asked for.
        let _ = self.stream.skip_to(offset);
    }

    fn document(&mut self, length: usize) -> Salvaged<'_> {
        let mut position = self.position();
        position.end += length as u64;
        self.stream.advance(length);
        match Frame::new(self.stream.behind(length)) {
            Ok(frame) => Salvaged::Document(frame, position),
            // It was judged before.
            Err(_) => Salvaged::Lost(self.stream.behind(length)),
        }
    }

    fn judge(&mut self) -> Judged {
        let stream = &mut self.stream;
        let searched = Rest::Searched(1);
        if !stream.reaches(PREFIX) {
            return match (stream.available(), stream.failure()) {
                (0, None) => Judged::End,
                _ => Judged::Damaged(ends_inside(stream, PREFIX), searched),
            };
        }
        let mut prefix = [0; PREFIX];
        prefix.copy_from_slice(&stream.ahead()[..PREFIX]);
        let length = match frame::length(prefix) {
            Ok(length) => length,
            Err(error) => return Judged::Damaged(error.to_string(), searched),
        };
        if !stream.reaches(length) {
            return Judged::Damaged(ends_inside(stream, length), searched);
        }
        let frame = Frame::new(&stream.ahead()[..length]);
        let Err(error) = frame.and_then(|frame| frame.validate()) else {
            return Judged::Sound(length);
        };
        // Where another document follows, its length is right and no more is lost.
        let is_alone = plausible::may_follow(stream, length, self.beginning);
        let rest = if is_alone { Rest::Bytes(length) } else { searched };
        Judged::Damaged(error.to_string(), rest)
    }
}

enum Judged {
    Sound(usize),
    Damaged(String, Rest),
    End,
}

/// Why there is less than a document.
fn ends_inside(stream: &Stream, needed: usize) -> String {
    match stream.failure() {
        Some(failure) => failure.message().to_owned(),
        None => format!(
            "the file ends inside a document: {} of its {}{needed} bytes are there",
            stream.available(),
            if needed == PREFIX { "first " } else { "" },
        ),
    }
}

#[cfg(test)]
mod tests;
