//! What a dump holds, as a value.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::dump::archive::Segments;
use crate::dump::made::Made;
use crate::dump::metadata::CollectionMetadata;
use crate::dump::special::{OplogDump, UsersDump};
use crate::dump::stream::INPUT_NAME;
use crate::dump::texts::Texts;
use crate::facts::ServerVersion;
use crate::namespace::Namespace;

/// Everything found in a dump.
#[derive(Clone, Debug, Default)]
pub struct Inventory {
    /// Where the dump is.
    pub root: PathBuf,
    /// The collections, in byte order of their names.
    pub entries: Vec<DumpEntry>,
    /// Collections that were not listed because they are not wanted.
    pub left_out: Vec<Namespace>,
    /// Users and roles: those of the whole server, those of single databases.
    pub users: Vec<UsersDump>,
    /// Slices of the oplog.
    pub oplogs: Vec<OplogDump>,
    /// Files and folders that are not restored, each with the reason.
    pub skipped: Vec<SkippedPath>,
    /// The version of the server the dump was taken from, where the dump says it.
    pub server_version: Option<ServerVersion>,
    /// The version of the tool that took the dump, where the dump says it.
    pub tool_version: Option<String>,
}

impl Inventory {
    /// The files that a restore of collections leaves out, with what it takes to restore them.
    pub fn set_aside(&self) -> Vec<SkippedPath> {
        let users = self.users.iter().flat_map(UsersDump::set_aside);
        users.chain(self.oplogs.iter().map(OplogDump::set_aside)).collect()
    }
}

/// One collection of a dump.
#[derive(Clone, Debug)]
pub struct DumpEntry {
    /// The collection's name as users know it: that of the time-series collection, not of its
    /// buckets.
    pub namespace: Namespace,
    /// What kind of collection it is.
    pub kind: CollectionKind,
    /// Where its documents come from; views and collections without a data file have none, while
    /// in an archive even a view has its empty segment.
    pub data: Option<Origin>,
    /// Its options and indexes; absent where the dump has no metadata file for it.
    pub metadata: Option<CollectionMetadata>,
    /// Where the metadata was read from.
    pub metadata_path: Option<PathBuf>,
    /// Why it cannot be restored, where that is known already; a sentence without its period.
    pub problem: Option<String>,
}

/// The kinds of collection that are restored in different ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CollectionKind {
    /// Documents that are inserted as they are.
    Collection,
    /// A time-series collection: created by its name, its buckets inserted beneath it.
    TimeSeries,
    /// A view: created, never inserted into.
    View,
}

impl CollectionKind {
    /// The server's word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Collection => "collection",
            Self::TimeSeries => "timeseries",
            Self::View => "view",
        }
    }
}

/// Where the documents of a collection come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A file of their own.
    File(DataFile),
    /// Standard input, which holds nothing else.
    Input,
    /// Segments of an archive, among those of other collections.
    Segments(Segments),
    /// Nowhere: they are made.
    Made(Made),
    /// Text that documents are made from.
    Text(Arc<Texts>),
}

impl Origin {
    /// The file of its own.
    pub fn file(&self) -> Option<&DataFile> {
        match self {
            Self::File(file) => Some(file),
            Self::Input | Self::Segments(_) | Self::Made(_) | Self::Text(_) => None,
        }
    }

    /// The path of what is read, or what is named where it has none.
    pub fn path(&self) -> &Path {
        match self {
            Self::File(file) => &file.path,
            Self::Input => Path::new(INPUT_NAME),
            Self::Segments(segments) => segments.archive.path(),
            Self::Made(made) => made.name(),
            Self::Text(texts) => texts.path(),
        }
    }

    /// What it is called in a list of what is left out: its path, or in an archive the name of
    /// its collection.
    pub fn shown(&self) -> PathBuf {
        match self {
            Self::Segments(segments) => {
                let listed = &segments.archive.collections()[segments.place];
                // The oplog is of no database.
                PathBuf::from(listed.namespace.to_string().trim_start_matches('.'))
            }
            Self::File(_) | Self::Input | Self::Made(_) | Self::Text(_) => {
                self.path().to_path_buf()
            }
        }
    }

    /// The segments of an archive.
    pub fn segments(&self) -> Option<&Segments> {
        match self {
            Self::Segments(segments) => Some(segments),
            Self::File(_) | Self::Input | Self::Made(_) | Self::Text(_) => None,
        }
    }

    /// Its size in bytes, compressed or not, where that is known before it is read.
    pub fn bytes(&self) -> Option<u64> {
        match self {
            Self::File(file) => Some(file.bytes),
            Self::Made(made) => Some(made.bytes()),
            Self::Text(texts) => texts.bytes(),
            Self::Input | Self::Segments(_) => None,
        }
    }

    /// Whether the bytes of its documents cannot be told from its size: it is compressed, or text.
    pub fn hides_document_bytes(&self) -> bool {
        match self {
            Self::Text(_) => true,
            _ => self.file().is_some_and(|file| file.compression != Compression::None),
        }
    }
}

/// A file that holds the documents of one collection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataFile {
    /// Where it is.
    pub path: PathBuf,
    /// How it is compressed, by its first bytes.
    pub compression: Compression,
    /// Its size on disk in bytes, compressed or not.
    pub bytes: u64,
}

/// How a file is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Compression {
    /// Not at all.
    None,
    /// gzip, RFC 1952; one or several members.
    Gzip,
    /// Zstandard, RFC 8878; one or several frames.
    Zstd,
}

impl Compression {
    /// The compression that a file's first bytes tell (RFC 1952 section 2.3.1, RFC 8878 section
    /// 3.1.1). A BSON file cannot begin like either: its first four bytes are a length, and these
    /// would be lengths far above what a server stores.
    pub fn of_first_bytes(bytes: &[u8]) -> Self {
        match bytes {
            [0x1F, 0x8B, ..] => Self::Gzip,
            [0x28, 0xB5, 0x2F, 0xFD, ..] => Self::Zstd,
            _ => Self::None,
        }
    }

    /// The usual name.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
        }
    }
}

/// A file or folder that is not restored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkippedPath {
    /// Where it is.
    pub path: PathBuf,
    /// Why it is not restored; a sentence without its final period.
    pub reason: String,
    /// Whether data may be missing because of it: an unreadable file, but not a stray one.
    pub is_problem: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compression_is_told_by_first_bytes() {
        assert_eq!(Compression::of_first_bytes(&[0x1F, 0x8B, 8]), Compression::Gzip);
        assert_eq!(Compression::of_first_bytes(&[0x28, 0xB5, 0x2F, 0xFD]), Compression::Zstd);
        assert_eq!(Compression::of_first_bytes(&[0x16, 0, 0, 0]), Compression::None);
        assert_eq!(Compression::of_first_bytes(&[]), Compression::None);
    }
}
