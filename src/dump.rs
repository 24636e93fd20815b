//! Finds a dump, lists what it holds, reads and writes its formats.
//!
//! A dump is a directory per database with a `.bson` file per collection and a `.metadata.json`
//! beside it, or an archive of all of that in one file or pipe (docs/formats.md). Listing it opens
//! nothing but metadata and the first bytes of the data files; a file that is not understood is
//! named in the inventory rather than being an error.

pub mod archive;
pub mod directory;
pub mod extended_json;
pub mod filename;
pub mod fingerprint;
pub mod inventory;
pub mod layout;
pub mod made;
pub mod metadata;
pub mod prelude;
pub mod special;
pub mod stream;
pub mod temporary;
pub mod texts;
pub mod writer;

mod database;
mod legacy_indexes;
mod ownership;
mod small_file;

use std::fmt;
use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::namespace::filter::NamespaceFilter;

pub use archive::ArchivePlace;
pub use inventory::{
    CollectionKind, Compression, DataFile, DumpEntry, Inventory, Origin, SkippedPath,
};
pub use layout::{Layout, Selection};
pub use made::{Made, MadeDump, Maker};
pub use metadata::{CollectionMetadata, IndexSpec};
pub use special::{OplogDump, OplogPlace, UsersDump};

/// Where a dump is said to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// At a path, where its kind is to be recognised.
    Path(PathBuf),
    /// In an archive.
    Archive(ArchivePlace),
    /// On standard input, as the documents of one collection.
    Input,
    /// Nowhere: its documents are made.
    Made(MadeDump),
}

impl Location {
    /// The path of a dump that is read from a file or folder.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::Path(path) | Self::Archive(ArchivePlace::File(path)) => Some(path),
            Self::Archive(ArchivePlace::Input) | Self::Input | Self::Made(_) => None,
        }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = match self {
            Self::Path(path) => path,
            Self::Archive(place) => place.path(),
            Self::Input => Path::new(stream::INPUT_NAME),
            Self::Made(dump) => dump.name(),
        };
        path.display().fmt(out)
    }
}

/// A dump that was found, and what of it was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dump {
    layout: Layout,
    selection: Selection,
    filter: NamespaceFilter,
}

impl Dump {
    /// Recognises the dump at a path: a folder of databases, the folder of one database or the file
    /// of one collection.
    ///
    /// In a folder of databases, `database` and `collection` select. The folder of one database is
    /// taken for `database` whatever its name, the file of one collection for both; without them
    /// the names are those of folder and file.
    ///
    /// # Errors
    ///
    /// Of kind [`Dump`](crate::error::ErrorKind::Dump): nothing is at the path, it is no kind of
    /// dump, the database asked for is not in it, or a name cannot be told.
    pub fn locate(
        path: &Path,
        database: Option<&str>,
        collection: Option<&str>,
    ) -> Result<Self, Error> {
        let (layout, selection) = layout::recognise(path, database, collection)?;
        Ok(Self { layout, selection, filter: NamespaceFilter::default() })
    }

    /// Lists only what the filter takes, so that nothing else can be in the way. What a filter
    /// includes counts as well as the database and collection that were asked for, as in the peer;
    /// so these have to be among its patterns.
    #[must_use]
    pub fn filtered(mut self, filter: NamespaceFilter) -> Self {
        if !filter.includes.is_empty() {
            self.selection = Selection::default();
        }
        self.filter = filter;
        self
    }

    /// Finds the dump at a location; database and collection select in an archive, and name the
    /// collection on standard input.
    ///
    /// # Errors
    ///
    /// As [`Dump::locate`]; of kind [`Usage`](crate::error::ErrorKind::Usage) where the collection
    /// on standard input has no name.
    pub fn at(
        location: &Location,
        database: Option<&str>,
        collection: Option<&str>,
    ) -> Result<Self, Error> {
        let (layout, selection) = match location {
            Location::Path(path) => layout::recognise(path, database, collection)?,
            Location::Archive(place) => layout::archive(place.clone(), database, collection)?,
            Location::Input => layout::input(database, collection)?,
            Location::Made(dump) => (Layout::Made { dump: dump.clone() }, Selection::default()),
        };
        Ok(Self { layout, selection, filter: NamespaceFilter::default() })
    }

    /// The kind of dump it is.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Lists what the dump holds.
    ///
    /// What cannot be read or understood is in the inventory with the reason; so is what belongs
    /// to the server the dump came from. A dump of nothing else has no entries.
    ///
    /// # Errors
    ///
    /// Of kind [`Dump`](crate::error::ErrorKind::Dump): the folder holds no file of a dump at the
    /// level where it is expected, or not the collection asked for.
    pub fn scan(&self) -> Result<Inventory, Error> {
        directory::scan(&self.layout, &self.selection, &self.filter, None)
    }

    /// Lists what the dump holds, unless the interrupt asks to give up while nothing comes through
    /// a pipe, which is an error then.
    ///
    /// # Errors
    ///
    /// As [`Dump::scan`].
    pub fn scan_unless(&self, interrupt: stream::Interrupt) -> Result<Inventory, Error> {
        directory::scan(&self.layout, &self.selection, &self.filter, Some(interrupt))
    }
}
