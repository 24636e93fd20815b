//! Documents that are made instead of read, and the list of a dump that holds nothing else.

use std::fmt;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::dump::inventory::Inventory;

/// Makes the documents of one collection, each time the same ones in the same order.
pub trait Maker: fmt::Debug + Send + Sync {
    /// About how many bytes they are.
    fn bytes(&self) -> u64;

    /// By what they are known again: how many they are, the first and the last, as with files.
    /// Nothing where it is not known how many there will be.
    fn mark(&self) -> Option<Vec<u8>>;

    /// The documents from the first on, one behind the other.
    fn open(&self) -> Box<dyn Read + Send>;
}

/// The documents of one collection that are made.
#[derive(Clone, Debug)]
pub struct Made {
    name: PathBuf,
    maker: Arc<dyn Maker>,
}

impl Made {
    /// What this maker makes, under the name by which it is told.
    pub fn by(maker: Arc<dyn Maker>, name: impl Into<PathBuf>) -> Self {
        Self { name: name.into(), maker }
    }

    /// What they are called where a file would be named.
    pub fn name(&self) -> &Path {
        &self.name
    }

    /// About how many bytes they are.
    pub fn bytes(&self) -> u64 {
        self.maker.bytes()
    }

    /// By what they are known again, if they are.
    pub fn mark(&self) -> Option<Vec<u8>> {
        self.maker.mark()
    }

    /// Begins to make them.
    pub fn begin(&self) -> Making {
        Making(self.maker.open())
    }
}

impl PartialEq for Made {
    /// Whether it is the same maker.
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.maker, &other.maker)
    }
}

impl Eq for Made {}

/// Documents while they are made.
pub struct Making(Box<dyn Read + Send>);

impl Read for Making {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl fmt::Debug for Making {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Making")
    }
}

/// A dump that is nowhere: what it holds is known, and its documents are made.
#[derive(Clone, Debug)]
pub struct MadeDump {
    name: PathBuf,
    inventory: Arc<Inventory>,
}

impl MadeDump {
    /// A dump of what this inventory lists, under the name by which it is told.
    pub fn new(name: impl Into<PathBuf>, inventory: Inventory) -> Self {
        Self { name: name.into(), inventory: Arc::new(inventory) }
    }

    /// What it is called where a path would be named.
    pub fn name(&self) -> &Path {
        &self.name
    }

    /// What it holds.
    pub fn inventory(&self) -> &Inventory {
        &self.inventory
    }
}

impl PartialEq for MadeDump {
    /// Whether it is the same dump.
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inventory, &other.inventory)
    }
}

impl Eq for MadeDump {}
