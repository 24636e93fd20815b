//! The pieces of an archive after its magic number: documents and terminators.

use crate::dump::stream::Stream;
use crate::error::Error;
use crate::frame::{self, Frame, FrameError};

/// What ends the list of collections and each block of documents.
pub const TERMINATOR: [u8; 4] = [0xFF; 4];

/// What comes next in an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece {
    /// A document of that many bytes, all of which are available.
    Document(usize),
    /// A terminator.
    Terminator,
    /// Nothing: the archive ends here.
    End,
}

/// Looks at the next piece, without going past it. Calls `before_fill` before bytes that were gone
/// past are gone for good.
#[inline]
pub fn look(stream: &mut Stream, mut before_fill: impl FnMut(&Stream)) -> Result<Piece, Error> {
    if stream.available() < TERMINATOR.len() {
        before_fill(stream);
        if !stream.fill(TERMINATOR.len())? {
            return match stream.available() {
                0 => Ok(Piece::End),
                _ => Err(cut(stream, TERMINATOR.len())),
            };
        }
    }
    let mut prefix = TERMINATOR;
    prefix.copy_from_slice(&stream.ahead()[..TERMINATOR.len()]);
    if prefix == TERMINATOR {
        return Ok(Piece::Terminator);
    }
    let length = frame::length(prefix).map_err(|error| damaged(stream, &error))?;
    if stream.available() < length {
        before_fill(stream);
        if !stream.fill(length)? {
            return Err(cut(stream, length));
        }
    }
    Ok(Piece::Document(length))
}

/// The document of that many bytes that comes next.
#[inline]
pub fn document(stream: &Stream, length: usize) -> Result<Frame<'_>, Error> {
    Frame::new(&stream.ahead()[..length]).map_err(|error| damaged(stream, &error))
}

fn cut(stream: &Stream, needed: usize) -> Error {
    let there = stream.available();
    let what = if needed == TERMINATOR.len() { "a length" } else { "a document" };
    stream
        .error(format!("the archive ends inside {what}: {there} of its {needed} bytes are there"))
        .hint("the archive was cut off here; take the dump again")
}

/// An error about the document that comes next.
pub fn damaged(stream: &Stream, error: &FrameError) -> Error {
    stream
        .error(format!("the archive is damaged: {error}"))
        .hint("what came before this byte was read")
}
