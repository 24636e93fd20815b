//! The bytes of a file, through a decompressor where it is compressed.

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::Interrupt;
use crate::dump::inventory::Compression;
use crate::limits::{COMPRESSED_READ_BYTES, INTERRUPT_INTERVAL};

/// As many bytes as tell every compression.
const HEAD: usize = 4;

/// A file's uncompressed content, and how much of the file has been used for it.
pub(super) struct Source {
    content: Content,
}

enum Content {
    Plain { raw: Raw, read: u64 },
    Gzip(Box<flate2::bufread::MultiGzDecoder<Counted>>),
    Zstd(zstd::stream::read::Decoder<'static, Counted>),
}

impl fmt::Debug for Source {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Source").field("consumed", &self.consumed(0)).finish()
    }
}

impl Source {
    pub(super) fn new(raw: Raw, compression: Compression) -> io::Result<Self> {
        let content = match compression {
            Compression::None => Content::Plain { raw, read: 0 },
            Compression::Gzip => {
                Content::Gzip(Box::new(flate2::bufread::MultiGzDecoder::new(Counted::new(raw))))
            }
            Compression::Zstd => {
                Content::Zstd(zstd::stream::read::Decoder::with_buffer(Counted::new(raw))?)
            }
        };
        Ok(Self { content })
    }

    pub(super) fn interrupt_by(&mut self, interrupt: Interrupt) {
        let raw = match &mut self.content {
            Content::Plain { raw, .. } => raw,
            Content::Gzip(decoder) => decoder.get_mut().raw.get_mut(),
            Content::Zstd(decoder) => decoder.get_mut().raw.get_mut(),
        };
        raw.interrupt = Some(interrupt);
    }

    /// The bytes of the file used up, where `unused` bytes of the content still wait to be taken.
    /// For compressed files those count as used, because their share of the file is not known.
    #[inline]
    pub(super) fn consumed(&self, unused: usize) -> u64 {
        match &self.content {
            Content::Plain { read, .. } => *read - unused as u64,
            Content::Gzip(decoder) => decoder.get_ref().consumed,
            Content::Zstd(decoder) => decoder.get_ref().consumed,
        }
    }

    /// Leaves out the next bytes of the content; false where they have to be read for that.
    pub(super) fn skip(&mut self, count: u64) -> io::Result<bool> {
        let Content::Plain { raw, read } = &mut self.content else {
            return Ok(false);
        };
        if raw.may_wait || raw.head_start < raw.head_end {
            return Ok(false);
        }
        let Ok(distance) = i64::try_from(count) else {
            return Ok(false);
        };
        raw.file.seek_relative(distance)?;
        *read += count;
        Ok(true)
    }

    /// A failed read in words.
    pub(super) fn describe(&self, error: &io::Error) -> String {
        let name = match &self.content {
            Content::Plain { .. } => return format!("the file cannot be read: {error}"),
            Content::Gzip(_) => "gzip",
            Content::Zstd(_) => "zstd",
        };
        if error.kind() == io::ErrorKind::UnexpectedEof {
            format!("the {name} data ends before its end mark; the file was cut off")
        } else {
            format!("the {name} data is damaged: {error}")
        }
    }
}

impl Read for Source {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.content {
            Content::Plain { raw, read } => {
                let count = raw.read(buffer)?;
                *read += count as u64;
                Ok(count)
            }
            Content::Gzip(decoder) => decoder.read(buffer),
            Content::Zstd(decoder) => decoder.read(buffer),
        }
    }
}

/// A file, or what is read like one, whose first bytes can be looked at ahead.
pub(super) struct Raw {
    file: File,
    /// Whether reading may wait for somebody else, as from a pipe.
    may_wait: bool,
    interrupt: Option<Interrupt>,
    head: [u8; HEAD],
    head_start: usize,
    head_end: usize,
}

impl Raw {
    /// A file that is there as a whole.
    pub(super) fn regular(file: File) -> Self {
        let (head, interrupt) = ([0; HEAD], None);
        Self { file, may_wait: false, interrupt, head, head_start: 0, head_end: 0 }
    }

    /// A pipe, a terminal, a socket.
    pub(super) fn waiting(file: File, interrupt: Option<Interrupt>) -> Self {
        Self { may_wait: true, interrupt, ..Self::regular(file) }
    }

    /// The first bytes, fewer where there are no more; they will be read again.
    pub(super) fn peek(&mut self) -> io::Result<&[u8]> {
        while self.head_end < HEAD {
            self.wait()?;
            match self.file.read(&mut self.head[self.head_end..]) {
                Ok(0) => break,
                Ok(count) => self.head_end += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(&self.head[..self.head_end])
    }

    /// Waits until there is something to read, or until it should be given up.
    fn wait(&self) -> io::Result<()> {
        let Some(interrupt) = self.interrupt.as_ref().filter(|_| self.may_wait) else {
            return Ok(());
        };
        let interval =
            Timespec { tv_sec: 0, tv_nsec: i64::from(INTERRUPT_INTERVAL.subsec_nanos()) };
        loop {
            let asked = &mut [PollFd::new(&self.file, PollFlags::IN)];
            match poll(asked, Some(&interval)) {
                Ok(1..) => return Ok(()),
                Ok(0) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            if interrupt.is_asked_for() {
                return Err(io::Error::other("it was given up while nothing came"));
            }
        }
    }
}

impl Read for Raw {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.head_start < self.head_end {
            let count = buffer.len().min(self.head_end - self.head_start);
            buffer[..count].copy_from_slice(&self.head[self.head_start..][..count]);
            self.head_start += count;
            return Ok(count);
        }
        self.wait()?;
        self.file.read(buffer)
    }
}

/// A buffered file that knows how many of its bytes have been taken.
struct Counted {
    raw: BufReader<Raw>,
    consumed: u64,
}

impl Counted {
    fn new(raw: Raw) -> Self {
        Self { raw: BufReader::with_capacity(COMPRESSED_READ_BYTES, raw), consumed: 0 }
    }
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.raw.read(buffer)?;
        self.consumed += count as u64;
        Ok(count)
    }
}

impl BufRead for Counted {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.raw.fill_buf()
    }

    fn consume(&mut self, count: usize) {
        self.consumed += count as u64;
        self.raw.consume(count);
    }
}
