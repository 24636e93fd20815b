//! Where a document may begin, in bytes of which nothing is known.
//!
//! Four bytes of length, a type and a name are soon found by chance, so that a place counts only if
//! a whole document of sound structure begins there and what follows it looks like the beginning of
//! another one, or is the end. What counts depends on nothing but the bytes from that place on and
//! on how the documents of the collection begin, so that a search finds the same place every time.

use crate::dump::stream::Stream;
use crate::frame::{self, Frame};
use crate::limits::DOCUMENT_BYTES_MIN;

/// The bytes of a length prefix.
const PREFIX: usize = 4;

/// The bytes of a length prefix, a type and the name `_id`.
const HEAD_WITH_ID: usize = 9;

/// Lost bytes that are handed on at once.
const PIECE_BYTES: usize = 64 * 1024;

/// With what the documents of a collection begin, by its first one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Beginning {
    /// With any field.
    #[default]
    AnyField,
    /// With the `_id`, as all that were stored by a server; documents inside others seldom do.
    Id,
}

impl Beginning {
    /// That of a first document with these bytes.
    pub(super) fn of(first: &[u8]) -> Self {
        if first.get(PREFIX + 1..HEAD_WITH_ID) == Some(b"_id\0") {
            Self::Id
        } else {
            Self::AnyField
        }
    }
}

/// Why a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// Something was found.
    Found,
    /// Enough was passed for once; it goes on.
    Enough,
    /// Nothing more comes.
    AtEnd,
}

/// Looks for a place that the test takes, from `start` bytes ahead on; returns how many bytes lie
/// before it, or before where the search ended.
pub(super) fn search(
    stream: &mut Stream,
    start: usize,
    mut test: impl FnMut(&mut Stream, usize) -> bool,
) -> (usize, Ended) {
    let mut at = start;
    while stream.reaches(at + 1) {
        if at >= PIECE_BYTES + start {
            return (at, Ended::Enough);
        }
        if test(stream, at) {
            return (at, Ended::Found);
        }
        at += 1;
    }
    (stream.available(), Ended::AtEnd)
}

/// The length that a document `at` bytes ahead claims, where its head looks like one.
pub(super) fn head_at(stream: &mut Stream, at: usize, beginning: Beginning) -> Option<usize> {
    let wanted = match beginning {
        Beginning::AnyField => DOCUMENT_BYTES_MIN,
        Beginning::Id => HEAD_WITH_ID,
    };
    if !stream.reaches(at + wanted) {
        return None;
    }
    let head = &stream.ahead()[at..at + wanted];
    let length = frame::length(*head.first_chunk::<PREFIX>()?).ok()?;
    let is_field = frame::is_kind(head[PREFIX]);
    let fits = beginning == Beginning::AnyField || Beginning::of(head) == Beginning::Id;
    (is_field && fits).then_some(length)
}

/// The length of a document of sound structure that begins `at` bytes ahead; one without any field
/// does not count.
pub(super) fn document_at(stream: &mut Stream, at: usize, beginning: Beginning) -> Option<usize> {
    let length = head_at(stream, at, beginning)?;
    is_sound(stream, at, length).then_some(length)
}

/// Whether what lies `at` bytes ahead may follow a document: another one, of which the head alone
/// is judged where it begins with the `_id`, or the end.
pub(super) fn may_follow(stream: &mut Stream, at: usize, beginning: Beginning) -> bool {
    if !stream.reaches(at + 1) {
        return true;
    }
    if !stream.reaches(at + PREFIX) {
        // The end of a file that was cut inside a length, rather than of a document around this.
        return stream.ahead()[at] != 0;
    }
    if head_at(stream, at, Beginning::Id).is_some() {
        return true;
    }
    let Some(length) = head_at(stream, at, Beginning::AnyField) else {
        return false;
    };
    let is_whole = stream.reaches(at + length);
    beginning == Beginning::AnyField && !is_whole || is_whole && is_sound(stream, at, length)
}

fn is_sound(stream: &mut Stream, at: usize, length: usize) -> bool {
    stream.reaches(at + length)
        && Frame::new(&stream.ahead()[at..at + length]).is_ok_and(|frame| frame.validate().is_ok())
}
