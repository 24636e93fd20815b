//! Finds a dump, lists what it holds, reads and writes its formats.
//!
//! A dump is a directory per database with a `.bson` file per collection and a `.metadata.json`
//! beside it (docs/formats.md). Listing it opens nothing but metadata and the first bytes of the
//! data files; a file that is not understood is named in the inventory rather than being an error.

pub mod directory;
pub mod extended_json;
pub mod filename;
pub mod inventory;
pub mod metadata;
pub mod prelude;
pub mod writer;

pub use inventory::{CollectionKind, Compression, DataFile, DumpEntry, Inventory, SkippedPath};
pub use metadata::{CollectionMetadata, IndexSpec};
