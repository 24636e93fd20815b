//! Finds a dump, lists what it holds, reads and writes its formats.
//!
//! A dump is a directory per database with a `.bson` file per collection and a `.metadata.json`
//! beside it (docs/formats.md). Listing it opens nothing but metadata and the first bytes of the
//! data files; a file that is not understood is named in the inventory rather than being an error.

pub mod directory;
pub mod extended_json;
pub mod filename;
pub mod inventory;
pub mod layout;
pub mod metadata;
pub mod prelude;
pub mod special;
pub mod writer;

mod database;
mod ownership;
mod small_file;

use std::path::Path;

use crate::error::Error;

pub use inventory::{CollectionKind, Compression, DataFile, DumpEntry, Inventory, SkippedPath};
pub use layout::{Layout, Selection};
pub use metadata::{CollectionMetadata, IndexSpec};
pub use special::{OplogDump, OplogPlace, UsersDump};

/// A dump that was found, and what of it was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dump {
    layout: Layout,
    selection: Selection,
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
        Ok(Self { layout, selection })
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
        directory::scan(&self.layout, &self.selection)
    }
}
