//! The bytes of a file, through a decompressor where it is compressed.

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};

use crate::dump::inventory::Compression;
use crate::limits::COMPRESSED_READ_BYTES;

/// A file's uncompressed content, and how much of the file has been used for it.
pub(super) struct Source {
    content: Content,
}

enum Content {
    Plain { file: File, read: u64 },
    Gzip(Box<flate2::bufread::MultiGzDecoder<Counted>>),
    Zstd(zstd::stream::read::Decoder<'static, Counted>),
}

impl fmt::Debug for Source {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Source").field("consumed", &self.consumed(0)).finish()
    }
}

impl Source {
    pub(super) fn new(file: File, compression: Compression) -> io::Result<Self> {
        let content = match compression {
            Compression::None => Content::Plain { file, read: 0 },
            Compression::Gzip => {
                Content::Gzip(Box::new(flate2::bufread::MultiGzDecoder::new(Counted::new(file))))
            }
            Compression::Zstd => {
                Content::Zstd(zstd::stream::read::Decoder::with_buffer(Counted::new(file))?)
            }
        };
        Ok(Self { content })
    }

    /// The bytes of the file used up, where `unused` bytes of the content still wait to be taken.
    /// For compressed files those count as used, because their share of the file is not known.
    pub(super) fn consumed(&self, unused: usize) -> u64 {
        match &self.content {
            Content::Plain { read, .. } => *read - unused as u64,
            Content::Gzip(decoder) => decoder.get_ref().consumed,
            Content::Zstd(decoder) => decoder.get_ref().consumed,
        }
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
            Content::Plain { file, read } => {
                let count = file.read(buffer)?;
                *read += count as u64;
                Ok(count)
            }
            Content::Gzip(decoder) => decoder.read(buffer),
            Content::Zstd(decoder) => decoder.read(buffer),
        }
    }
}

/// A buffered file that knows how many of its bytes have been taken.
struct Counted {
    file: BufReader<File>,
    consumed: u64,
}

impl Counted {
    fn new(file: File) -> Self {
        Self { file: BufReader::with_capacity(COMPRESSED_READ_BYTES, file), consumed: 0 }
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
