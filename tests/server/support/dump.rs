//! Dumps to restore: the genuine ones, changed copies of them, and made ones.

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A genuine dump.
pub(crate) fn genuine(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/dumps").join(name)
}

/// The documents of a data file, plain.
pub(crate) fn documents(file: &Path) -> Vec<Vec<u8>> {
    let bytes = fs::read(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let mut rest = &bytes[..];
    let mut documents = Vec::new();
    while let Some(length) = rest.first_chunk::<4>() {
        let length = usize::try_from(u32::from_le_bytes(*length)).expect("lengths are small");
        let (document, after) = rest.split_at(length);
        documents.push(document.to_vec());
        rest = after;
    }
    documents
}

/// A dump in a folder that goes with it.
pub(crate) struct Dump {
    folder: TempDir,
}

impl Dump {
    /// An empty one.
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("a folder for a dump") }
    }

    /// A copy of a genuine one, to be changed.
    pub(crate) fn copy_of(name: &str) -> Self {
        let dump = Self::new();
        copy(&genuine(name), dump.path());
        dump
    }

    /// One that `restorm seed` writes.
    pub(crate) fn seeded(collections: u32, documents: u32) -> Self {
        let dump = Self::new();
        let (collections, documents) = (collections.to_string(), documents.to_string());
        let out = dump.path().join("dump");
        let finished = crate::program::Program::restorm(&["seed", "--out"])
            .arg(&out)
            .args(&["--collections", &collections, "--documents", &documents])
            .run();
        assert_eq!(finished.status, Some(0), "{}", finished.stderr);
        for entry in fs::read_dir(&out).expect("a dump") {
            let entry = entry.expect("an entry");
            fs::rename(entry.path(), dump.path().join(entry.file_name())).expect("it moves");
        }
        fs::remove_dir(out).expect("it is empty");
        dump
    }

    /// Its folder.
    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// A file in it, such as `shop/orders.bson`.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    /// Adds a collection with these documents.
    pub(crate) fn with(self, database: &str, collection: &str, documents: &[Vec<u8>]) -> Self {
        self.write(&format!("{database}/{collection}.bson"), &documents.concat());
        self
    }

    /// Adds the metadata of a collection.
    pub(crate) fn described(self, database: &str, collection: &str, metadata: &Value) -> Self {
        let name = format!("{database}/{collection}.metadata.json");
        self.write(&name, metadata.to_string().as_bytes());
        self
    }

    /// Writes a file.
    pub(crate) fn write(&self, name: &str, content: &[u8]) {
        let path = self.file(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("the folder is made");
        fs::write(path, content).expect("the file is written");
    }

    /// Changes the metadata of a collection.
    pub(crate) fn edit(&self, metadata: &str, change: impl FnOnce(&mut Value)) {
        let text = fs::read(self.file(metadata)).expect("there is metadata");
        let mut value = serde_json::from_slice(&text).expect("metadata is JSON");
        change(&mut value);
        self.write(metadata, value.to_string().as_bytes());
    }

    /// Every file in it.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        let mut files = Vec::new();
        list(self.path(), &mut files);
        files
    }
}

fn list(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            list(&path, files);
        } else {
            files.push(path);
        }
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("the folder is made");
    for entry in fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("an entry");
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if from.is_dir() {
            copy(&from, &to);
        } else {
            fs::copy(from, to).expect("the file is copied");
        }
    }
}
