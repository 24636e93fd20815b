//! The bytes of a file or of standard input, decompressed, through one buffer.
//!
//! Whoever reads asks for as many bytes as must lie in the buffer together, looks at them where
//! they lie, and goes on. Memory is one buffer of [`READ_BYTES`], for what is compressed at most
//! [`READ_BUFFERS_MAX`](crate::limits::READ_BUFFERS_MAX), more only while something larger passes.

mod source;
mod unpack;

#[cfg(test)]
mod tests;

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::clock::ReadClocks;
use crate::dump::inventory::{Compression, DataFile};
use crate::dump::made::Made;
use crate::error::{Error, ErrorKind};
use crate::limits::{LARGE_DOCUMENT_BYTES, LARGE_DOCUMENT_COPIES, READ_BYTES};
use crate::memory::{Budget, Share};
use source::Raw;
use unpack::{Chunk, Packed, ROOM_BEFORE};

pub use unpack::Unpacking;

/// What standard input is called where a file would be named.
pub const INPUT_NAME: &str = "standard input";

/// Asks whether reading should be given up while nothing comes, as from a pipe.
#[derive(Clone)]
pub struct Interrupt(Arc<dyn Fn() -> bool + Send + Sync>);

impl Interrupt {
    /// Given up once this answers true; it is asked several times a second.
    pub fn when(asked: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(asked))
    }

    fn is_asked_for(&self) -> bool {
        (self.0)()
    }
}

impl fmt::Debug for Interrupt {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Interrupt")
    }
}

/// What the bytes come from.
#[derive(Debug)]
enum Source {
    /// A file, of which so many bytes were read.
    Plain { raw: Raw, read: u64 },
    /// A compressed file.
    Packed(Packed),
}

/// Uncompressed bytes, one after the other.
#[derive(Debug)]
pub struct Stream {
    name: PathBuf,
    compression: Compression,
    source: Source,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    offset: u64,
    /// Where the memory for large documents is taken from.
    budget: Option<Budget>,
    /// What was taken for the one that lies in the buffer; whoever keeps the document shares it.
    share: Option<Arc<Share>>,
    /// Whether the content has come to its end, all of which is in the buffer.
    has_ended: bool,
    /// Why nothing more can be read, once that is so.
    failure: Option<Error>,
}

impl Stream {
    /// Opens a file that was examined before.
    pub fn open(file: &DataFile) -> Result<Self, Error> {
        let opened = File::open(&file.path).map_err(|error| unopened(&file.path, &error))?;
        Self::new(file.path.clone(), Raw::regular(opened), file.compression)
    }

    /// Opens whatever can be read at a path, a pipe included; its first bytes tell how it is
    /// compressed.
    pub fn of_path(path: &Path, interrupt: Option<Interrupt>) -> Result<Self, Error> {
        let opened = File::open(path).map_err(|error| unopened(path, &error))?;
        let is_regular = opened.metadata().is_ok_and(|metadata| metadata.is_file());
        let raw = if is_regular { Raw::regular(opened) } else { Raw::waiting(opened, interrupt) };
        Self::peeked(path.to_path_buf(), raw)
    }

    /// Documents that are made.
    pub fn of_made(made: &Made) -> Result<Self, Error> {
        Self::new(made.name().to_path_buf(), Raw::made(made.begin()), Compression::None)
    }

    /// Standard input; its first bytes tell how it is compressed.
    pub fn of_input(interrupt: Option<Interrupt>) -> Result<Self, Error> {
        let name = PathBuf::from(INPUT_NAME);
        // The standard library's own buffer would hide from a poll that bytes are there.
        let owned = io::stdin().as_fd().try_clone_to_owned();
        let input = File::from(owned.map_err(|error| unopened(&name, &error))?);
        Self::peeked(name, Raw::waiting(input, interrupt))
    }

    fn peeked(name: PathBuf, mut raw: Raw) -> Result<Self, Error> {
        let first = raw.peek().map_err(|error| unopened(&name, &error))?;
        let compression = Compression::of_first_bytes(first);
        Self::new(name, raw, compression)
    }

    fn new(name: PathBuf, raw: Raw, compression: Compression) -> Result<Self, Error> {
        let (source, buffer) = match compression {
            Compression::None => (Source::Plain { raw, read: 0 }, vec![0; READ_BYTES]),
            // Buffers come with the chunks.
            Compression::Gzip => (Source::Packed(Packed::gzip(raw)), Vec::new()),
            Compression::Zstd => {
                let packed = Packed::zstd(raw).map_err(|error| unopened(&name, &error))?;
                (Source::Packed(packed), Vec::new())
            }
        };
        let (start, end, offset, has_ended, failure) = (0, 0, 0, false, None);
        let (budget, share) = (None, None);
        Ok(Self {
            name,
            compression,
            source,
            buffer,
            start,
            end,
            offset,
            budget,
            share,
            has_ended,
            failure,
        })
    }

    /// Gives up waiting for more once the interrupt asks for it; a regular file is never waited
    /// for. Comes before [`Self::unpack_aside`].
    pub fn interrupt_by(&mut self, interrupt: Interrupt) {
        match &mut self.source {
            Source::Plain { raw, .. } => raw.interrupt_by(interrupt),
            Source::Packed(packed) => packed.interrupt_by(interrupt),
        }
    }

    /// Leaves the rest of the unpacking to a thread that runs what is returned, so that it goes on
    /// while the bytes before it are looked at; nothing where there is nothing to unpack.
    pub fn unpack_aside(&mut self) -> Option<Unpacking> {
        match &mut self.source {
            Source::Plain { .. } => None,
            Source::Packed(packed) => packed.unpack_aside(),
        }
    }

    /// Adds the time that reading takes to these clocks; too late where a thread unpacks already.
    pub fn timed_by(&mut self, clocks: &ReadClocks) {
        match &mut self.source {
            Source::Plain { raw, .. } => raw.timed_by(&clocks.input),
            Source::Packed(packed) => packed.timed_by(clocks),
        }
    }

    /// Takes the memory for large documents from this budget, and waits where it is used up.
    pub fn within(&mut self, budget: Budget) {
        self.budget = Some(budget);
    }

    /// What was taken for the large document that was gone past last; nothing for others.
    pub fn share(&self) -> Option<Arc<Share>> {
        self.share.clone()
    }

    /// Reads compressed content in small pieces from here on, so that everything before damage is
    /// there. Comes before [`Self::unpack_aside`].
    pub fn read_carefully(&mut self) {
        if let Source::Packed(packed) = &mut self.source {
            packed.read_carefully();
        }
    }

    /// Why nothing more can be read, where it is not the end.
    pub fn failure(&self) -> Option<&Error> {
        self.failure.as_ref()
    }

    /// Brings at least `needed` bytes into the buffer; false where there are not as many, whether
    /// because the content ends or because it cannot be read, which [`Self::failure`] tells.
    #[inline]
    pub fn reaches(&mut self, needed: usize) -> bool {
        self.fill(needed).unwrap_or(false)
    }

    /// What it is called in errors.
    pub fn name(&self) -> &Path {
        &self.name
    }

    /// How it is compressed.
    pub fn compression(&self) -> Compression {
        self.compression
    }

    /// How many uncompressed bytes were gone past.
    #[inline]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// How many bytes of the file itself were used for what was gone past. For compressed ones what
    /// waits in the buffer counts as well, because its share of the file is not known.
    #[inline]
    pub fn origin(&self) -> u64 {
        match &self.source {
            Source::Plain { read, .. } => *read - self.available() as u64,
            Source::Packed(packed) => packed.consumed(),
        }
    }

    /// How many bytes lie in the buffer and were not gone past.
    #[inline]
    pub fn available(&self) -> usize {
        self.end - self.start
    }

    /// The bytes that lie in the buffer and were not gone past.
    #[inline]
    pub fn ahead(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// The last `count` bytes that were gone past, since the buffer was filled last.
    #[inline]
    pub fn behind(&self, count: usize) -> &[u8] {
        &self.buffer[self.start - count..self.start]
    }

    /// Goes past `count` bytes that are available.
    #[inline]
    pub fn advance(&mut self, count: usize) {
        self.start += count;
        self.offset += count as u64;
    }

    /// Brings at least `needed` bytes into the buffer; false where the content ends before. What
    /// was gone past is gone then.
    pub fn fill(&mut self, needed: usize) -> Result<bool, Error> {
        if self.available() >= needed {
            return Ok(true);
        }
        if let Some(failure) = &self.failure {
            // A decompressor that has failed may say next that its content has ended.
            return Err(failure.clone());
        }
        if self.has_ended {
            return Ok(false);
        }
        self.take_share(needed);
        if let Source::Plain { .. } = self.source {
            self.make_room(needed);
        }
        while self.available() < needed {
            match self.bring_more(needed) {
                Ok(true) => {}
                Ok(false) => {
                    self.has_ended = true;
                    return Ok(false);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    let failure = self.error(unpack::describe(self.compression, &error));
                    self.failure = Some(failure.clone());
                    return Err(failure);
                }
            }
        }
        Ok(true)
    }

    /// Goes past everything before this byte, which is not read where the file can be entered
    /// anywhere.
    pub fn skip_to(&mut self, offset: u64) -> Result<(), Error> {
        while self.offset < offset {
            let left = offset - self.offset;
            let ahead = left.min(self.available() as u64);
            self.advance(usize::try_from(ahead).unwrap_or(usize::MAX));
            let left = left - ahead;
            if left == 0 {
                return Ok(());
            }
            if self.leave_out(left)? {
                self.offset += left;
                (self.start, self.end) = (0, 0);
            } else if !self.fill(1)? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Leaves out the next bytes of a file that can be entered anywhere; false where there is none.
    fn leave_out(&mut self, count: u64) -> Result<bool, Error> {
        let Source::Plain { raw, read } = &mut self.source else {
            return Ok(false);
        };
        match raw.skip(count) {
            Ok(true) => *read += count,
            Ok(false) => return Ok(false),
            Err(error) => return Err(self.error(unpack::describe(self.compression, &error))),
        }
        Ok(true)
    }

    /// An error at the byte that comes next.
    pub fn error(&self, message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Read, message).in_file(&self.name).at_byte(self.offset)
    }

    /// Takes the memory for a large document before it is read. What was taken for the one before
    /// is let go of first: its buffer has been used for others since, or is now let go of as well.
    fn take_share(&mut self, needed: usize) {
        let Some(budget) = &self.budget else {
            return;
        };
        self.share = None;
        if needed > LARGE_DOCUMENT_BYTES {
            if self.buffer.len() > LARGE_DOCUMENT_BYTES {
                self.buffer = self.ahead().to_vec();
                (self.start, self.end) = (0, self.buffer.len());
            }
            self.share = Some(Arc::new(budget.take(needed * LARGE_DOCUMENT_COPIES)));
        }
    }

    /// Brings more bytes into the buffer, of which `needed` are to lie together; false at the end.
    fn bring_more(&mut self, needed: usize) -> io::Result<bool> {
        let packed = match &mut self.source {
            Source::Plain { raw, read } => {
                // A large document is read alone, so that its buffer goes with it.
                let is_large = needed > LARGE_DOCUMENT_BYTES;
                let room = if is_large { self.start + needed } else { self.buffer.len() };
                let count = raw.read(&mut self.buffer[self.end..room])?;
                *read += count as u64;
                self.end += count;
                return Ok(count > 0);
            }
            Source::Packed(packed) => packed,
        };
        let Some(chunk) = packed.next()? else { return Ok(false) };
        let emptied = self.append(chunk, needed);
        if let Source::Packed(packed) = &mut self.source {
            packed.give_back(emptied);
        }
        Ok(true)
    }

    /// Puts a chunk behind what is left. Where that fits into the room before the chunk, only what
    /// is left is copied, and the chunk's buffer takes the place of ours. Returns the buffer that
    /// was emptied.
    fn append(&mut self, mut chunk: Chunk, needed: usize) -> Vec<u8> {
        let left = self.available();
        if left <= ROOM_BEFORE {
            let start = ROOM_BEFORE - left;
            chunk.buffer[start..ROOM_BEFORE].copy_from_slice(self.ahead());
            (self.start, self.end) = (start, chunk.end);
            return std::mem::replace(&mut self.buffer, chunk.buffer);
        }
        let bytes = chunk.bytes();
        if self.buffer.len() - self.end < bytes.len() {
            // The last chunk may go beyond what is needed.
            self.make_room(needed.max(left) + READ_BYTES);
        }
        self.buffer[self.end..][..bytes.len()].copy_from_slice(bytes);
        self.end += bytes.len();
        chunk.buffer
    }

    /// Moves what is left to the front of a buffer that can hold `needed` bytes; lets go of a
    /// buffer that had grown for one large document.
    fn make_room(&mut self, needed: usize) {
        let left = self.available();
        let size = needed.max(READ_BYTES);
        if self.buffer.len() < size || self.buffer.len() > size.max(left).saturating_mul(4) {
            let mut buffer = vec![0; size.max(left)];
            buffer[..left].copy_from_slice(self.ahead());
            self.buffer = buffer;
        } else {
            self.buffer.copy_within(self.start..self.end, 0);
        }
        self.start = 0;
        self.end = left;
    }
}

fn unopened(name: &Path, error: &io::Error) -> Error {
    Error::new(ErrorKind::Read, format!("cannot be opened: {error}")).in_file(name)
}
