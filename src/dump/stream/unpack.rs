//! The content of a compressed file in chunks, unpacked by who reads it or by a thread of its own.
//!
//! Both ways ask the decompressor for the same chunks, so that damage is met at the same byte.

use std::fmt;
use std::io::{self, BufRead, BufReader, Read};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};

use super::Interrupt;
use super::source::Raw;
use crate::clock::{Clock, ReadClocks};
use crate::dump::inventory::Compression;
use crate::limits::{COMPRESSED_READ_BYTES, READ_BYTES, UNPACKED_CHUNKS};

/// The room before a chunk for the part of a document that the chunk before it ended with; only
/// larger parts cost a copy of the chunk.
pub(super) const ROOM_BEFORE: usize = READ_BYTES / 4;

/// What is asked of a decompressor at once where damage is expected: what it had made of the piece
/// in which it meets the damage is lost.
const CAREFUL_BYTES: usize = 512;

/// Uncompressed bytes, in a buffer of [`READ_BYTES`] that has [`ROOM_BEFORE`] them.
pub(super) struct Chunk {
    pub(super) buffer: Vec<u8>,
    /// Where they end in the buffer.
    pub(super) end: usize,
    /// How many bytes of the file were used up to the end of them.
    consumed: u64,
}

impl Chunk {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.buffer[ROOM_BEFORE..self.end]
    }
}

/// A compressed file that is read in chunks.
pub(super) struct Packed {
    chunks: Chunks,
    /// How many bytes of the file were used for the chunks so far.
    consumed: u64,
    is_at_end: bool,
    clocks: ReadClocks,
}

enum Chunks {
    /// Each is unpacked when it is asked for.
    Here { unpacker: Box<Unpacker>, spare: Vec<u8> },
    /// A thread of its own unpacks them ahead.
    Aside { filled: Receiver<io::Result<Chunk>>, emptied: Sender<Vec<u8>>, _reading: Arc<()> },
}

impl fmt::Debug for Packed {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Packed").field("consumed", &self.consumed).finish_non_exhaustive()
    }
}

impl Packed {
    /// The content of a file that is compressed by gzip.
    pub(super) fn gzip(raw: Raw) -> Self {
        let decoder = flate2::bufread::MultiGzDecoder::new(Counted::new(raw));
        Self::new(Decoder::Gzip(Box::new(decoder)))
    }

    /// The content of a file that is compressed by Zstandard.
    pub(super) fn zstd(raw: Raw) -> io::Result<Self> {
        let decoder = zstd::stream::read::Decoder::with_buffer(Counted::new(raw))?;
        Ok(Self::new(Decoder::Zstd(decoder)))
    }

    fn new(decoder: Decoder) -> Self {
        let unpacker = Box::new(Unpacker { decoder, piece: usize::MAX, failed: None });
        let chunks = Chunks::Here { unpacker, spare: Vec::new() };
        Self { chunks, consumed: 0, is_at_end: false, clocks: ReadClocks::default() }
    }

    /// Gives up waiting once the interrupt asks for it; too late where a thread unpacks already.
    pub(super) fn interrupt_by(&mut self, interrupt: Interrupt) {
        if let Chunks::Here { unpacker, .. } = &mut self.chunks {
            unpacker.decoder.input().raw().interrupt_by(interrupt);
        }
    }

    /// Asks the decompressor for little at once; too late where a thread unpacks already.
    pub(super) fn read_carefully(&mut self) {
        if let Chunks::Here { unpacker, .. } = &mut self.chunks {
            unpacker.piece = CAREFUL_BYTES;
        }
    }

    /// Adds the time of reading and unpacking to these clocks; too late where a thread unpacks
    /// already.
    pub(super) fn timed_by(&mut self, clocks: &ReadClocks) {
        if let Chunks::Here { unpacker, .. } = &mut self.chunks {
            unpacker.decoder.input().raw().timed_by(&clocks.input);
        }
        self.clocks = clocks.clone();
    }

    /// How many bytes of the file were used for the chunks so far.
    #[inline]
    pub(super) fn consumed(&self) -> u64 {
        self.consumed
    }

    /// The next chunk; nothing at the end.
    pub(super) fn next(&mut self) -> io::Result<Option<Chunk>> {
        if self.is_at_end {
            return Ok(None);
        }
        let _waiting = self.clocks.unpacked.begin();
        let chunk = match &mut self.chunks {
            Chunks::Here { unpacker, spare } => unpacker.next(std::mem::take(spare))?,
            Chunks::Aside { filled, .. } => {
                let ended = |_| Err(io::Error::other("its unpacking ended before it"));
                filled.recv().unwrap_or_else(ended)?
            }
        };
        self.consumed = chunk.consumed;
        self.is_at_end = chunk.bytes().is_empty();
        Ok((!self.is_at_end).then_some(chunk))
    }

    /// Takes a buffer whose bytes are not needed any more. One that had grown is let go of.
    pub(super) fn give_back(&mut self, buffer: Vec<u8>) {
        if buffer.len() != READ_BYTES {
            return;
        }
        match &mut self.chunks {
            Chunks::Here { spare, .. } => *spare = buffer,
            // It has no use after the last chunk.
            Chunks::Aside { emptied, .. } => drop(emptied.send(buffer)),
        }
    }

    /// Leaves the rest of the unpacking to whoever runs what is returned; nothing where that was
    /// done before.
    pub(super) fn unpack_aside(&mut self) -> Option<Unpacking> {
        if matches!(self.chunks, Chunks::Aside { .. }) {
            return None;
        }
        let reading = Arc::new(());
        let reader = Arc::downgrade(&reading);
        let (to_filled, filled) = sync_channel(UNPACKED_CHUNKS);
        let (to_emptied, emptied) = channel();
        let aside = Chunks::Aside { filled, emptied: to_emptied, _reading: reading };
        let Chunks::Here { mut unpacker, .. } = std::mem::replace(&mut self.chunks, aside) else {
            return None;
        };
        unpacker.decoder.input().raw().interrupt_too(move || reader.strong_count() == 0);
        let clock = self.clocks.unpacking.clone();
        Some(Unpacking { unpacker, filled: to_filled, emptied, clock })
    }
}

/// The unpacking of a stream, to be run by a thread of its own.
///
/// It ends with the content, and soon after the stream is dropped, even while it waits for a pipe.
/// With its reader it has at most [`READ_BUFFERS_MAX`](crate::limits::READ_BUFFERS_MAX) buffers.
pub struct Unpacking {
    unpacker: Box<Unpacker>,
    filled: SyncSender<io::Result<Chunk>>,
    emptied: Receiver<Vec<u8>>,
    clock: Clock,
}

impl fmt::Debug for Unpacking {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Unpacking")
    }
}

impl Unpacking {
    /// Unpacks until the content ends, is damaged, or is not wanted any more.
    pub fn run(mut self) {
        loop {
            let spare = self.emptied.try_recv().unwrap_or_default();
            let next = self.clock.time(|| self.unpacker.next(spare));
            let goes_on = next.as_ref().is_ok_and(|chunk| !chunk.bytes().is_empty());
            if self.filled.send(next).is_err() || !goes_on {
                return;
            }
        }
    }
}

/// Unpacks one chunk after the other.
struct Unpacker {
    decoder: Decoder,
    /// The most bytes asked of the decompressor at once.
    piece: usize,
    /// What went wrong behind the last chunk.
    failed: Option<io::Error>,
}

enum Decoder {
    Gzip(Box<flate2::bufread::MultiGzDecoder<Counted>>),
    Zstd(zstd::stream::read::Decoder<'static, Counted>),
}

impl Decoder {
    fn input(&mut self) -> &mut Counted {
        match self {
            Self::Gzip(decoder) => decoder.get_mut(),
            Self::Zstd(decoder) => decoder.get_mut(),
        }
    }

    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Gzip(decoder) => decoder.read(buffer),
            Self::Zstd(decoder) => decoder.read(buffer),
        }
    }
}

impl Unpacker {
    /// The next chunk, in this buffer unless it is an empty one; an empty chunk at the end.
    ///
    /// A chunk is full, unless the content ends or more of it would have to be waited for.
    fn next(&mut self, mut buffer: Vec<u8>) -> io::Result<Chunk> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        if buffer.len() != READ_BYTES {
            buffer = vec![0; READ_BYTES];
        }
        let mut end = ROOM_BEFORE;
        while end < buffer.len() {
            let room = buffer.len().min(end.saturating_add(self.piece));
            match self.decoder.read(&mut buffer[end..room]) {
                Ok(0) => break,
                Ok(count) => end += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if end == ROOM_BEFORE => return Err(error),
                Err(error) => {
                    self.failed = Some(error);
                    break;
                }
            }
            if self.decoder.input().raw().may_wait() {
                break;
            }
        }
        Ok(Chunk { buffer, end, consumed: self.decoder.input().consumed })
    }
}

/// A buffered file that knows how many of its bytes have been taken.
struct Counted {
    file: BufReader<Raw>,
    consumed: u64,
}

impl Counted {
    fn new(raw: Raw) -> Self {
        Self { file: BufReader::with_capacity(COMPRESSED_READ_BYTES, raw), consumed: 0 }
    }

    fn raw(&mut self) -> &mut Raw {
        self.file.get_mut()
    }
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(buffer)?;
        self.consumed += count as u64;
        Ok(count)
    }
}

impl BufRead for Counted {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.file.fill_buf()
    }

    fn consume(&mut self, count: usize) {
        self.consumed += count as u64;
        self.file.consume(count);
    }
}

/// A failed read of a file that is compressed in this way, in words.
pub(super) fn describe(compression: Compression, error: &io::Error) -> String {
    let name = match compression {
        Compression::None => return format!("the file cannot be read: {error}"),
        Compression::Gzip => "gzip",
        Compression::Zstd => "zstd",
    };
    if error.kind() == io::ErrorKind::UnexpectedEof {
        format!("the {name} data ends before its end mark; the file was cut off")
    } else {
        format!("the {name} data is damaged: {error}")
    }
}
