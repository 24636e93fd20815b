//! Reads the beginning of an archive: where it comes from and which collections it holds.
//!
//! An archive is a magic number, a list of collections, and blocks of documents, each behind a
//! header that names its collection (docs/formats.md). The blocks of several collections may
//! alternate; only who reads all of them finds all documents of one. So an archive is read once,
//! by one reader, and the entries of its inventory all point to it.

pub mod checksum;
pub mod piece;
pub mod record;

mod list;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::dump::inventory::{CollectionKind, Compression};
use crate::dump::stream::{INPUT_NAME, Interrupt, Stream};
use crate::error::{Error, ErrorKind};
use crate::namespace::Namespace;

pub(crate) use list::scan;

/// How an archive begins: the number 0x8199e26d in little-endian order.
pub const MAGIC: [u8; 4] = [0x6D, 0xE2, 0x99, 0x81];

/// Whether bytes are the beginning of an archive.
pub fn is_archive(first: &[u8]) -> bool {
    first.starts_with(&MAGIC)
}

/// Where an archive is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArchivePlace {
    /// A file, or a pipe that has a path.
    File(PathBuf),
    /// Standard input.
    Input,
}

impl ArchivePlace {
    /// Its path, or what is named where there is none.
    pub fn path(&self) -> &Path {
        match self {
            Self::File(path) => path,
            Self::Input => Path::new(INPUT_NAME),
        }
    }

    fn open(&self, interrupt: Option<Interrupt>) -> Result<Stream, Error> {
        match self {
            Self::File(path) => Stream::of_path(path, interrupt),
            Self::Input => Stream::of_input(interrupt),
        }
    }
}

/// An archive whose list was read.
///
/// Clones speak of the same archive.
#[derive(Clone, Debug)]
pub struct Archive {
    content: Arc<Content>,
}

#[derive(Debug)]
struct Content {
    place: ArchivePlace,
    compression: Compression,
    bytes: Option<u64>,
    collections: Vec<ListedCollection>,
    /// Where the first block begins.
    blocks_at: u64,
    /// The stream that the list was read from, behind the list.
    unread: Mutex<Option<Stream>>,
}

/// A collection in an archive's list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedCollection {
    /// Its name; of a time-series collection its own. The oplog is of the database without a name.
    pub namespace: Namespace,
    /// What kind of collection it is.
    pub kind: CollectionKind,
}

/// Where the documents of one collection are: in those segments of an archive that name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segments {
    /// The archive.
    pub archive: Archive,
    /// The collection's place in the archive's list.
    pub place: usize,
}

/// Archives are the same where they were opened as one.
impl PartialEq for Archive {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.content, &other.content)
    }
}

impl Eq for Archive {}

impl Archive {
    /// Its path, or what is named where it has none.
    pub fn path(&self) -> &Path {
        self.content.place.path()
    }

    /// How it is compressed.
    pub fn compression(&self) -> Compression {
        self.content.compression
    }

    /// Its size in bytes, compressed or not, where it is a file.
    pub fn bytes(&self) -> Option<u64> {
        self.content.bytes
    }

    /// The collections of its list.
    pub fn collections(&self) -> &[ListedCollection] {
        &self.content.collections
    }

    /// The bytes from the first block on.
    ///
    /// # Errors
    ///
    /// A file that cannot be opened again; standard input can be read only once.
    pub fn open(&self) -> Result<Stream, Error> {
        let unread = self.content.unread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(stream) = unread {
            return Ok(stream);
        }
        let is_regular = self.path().metadata().is_ok_and(|metadata| metadata.is_file());
        if self.content.place == ArchivePlace::Input || !is_regular {
            return Err(Error::new(ErrorKind::Read, "the archive was read already")
                .in_file(self.path())
                .hint("what comes through a pipe can be read only once"));
        }
        let mut stream = self.content.place.open(None)?;
        while stream.offset() < self.content.blocks_at {
            let left = self.content.blocks_at - stream.offset();
            if !stream.fill(1)? {
                return Err(stream.error("the archive has changed since its list was read"));
            }
            stream.advance(stream.available().min(usize::try_from(left).unwrap_or(usize::MAX)));
        }
        Ok(stream)
    }
}
