//! The files that keep the refused documents of one collection.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use crate::dump::filename;
use crate::error::{Error, ErrorKind};
use crate::namespace::Namespace;
use crate::plan::carried::RejectsLength;

/// Where the refused documents of a collection are kept, and what is said of them.
#[derive(Clone, Debug)]
pub struct Place {
    /// The collection on the target.
    pub namespace: Namespace,
    /// Where its documents are inserted; differs for time-series collections.
    pub data_namespace: Namespace,
    /// The text of its metadata file.
    pub metadata: String,
    /// Where its documents come from, such as the path of a file.
    pub origin: String,
}

/// How long the files of a collection are.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Files {
    pub(super) length: RejectsLength,
    pub(super) damaged_bytes: u64,
    /// The offset of the last damaged document that was kept.
    pub(super) damaged_up_to: Option<u64>,
}

impl Place {
    /// The documents that were refused.
    pub(super) fn documents(&self, root: &Path) -> PathBuf {
        path(root, &self.data_namespace, ".bson")
    }

    fn metadata(&self, root: &Path) -> PathBuf {
        path(root, &self.namespace, ".metadata.json")
    }

    /// A line for each of them.
    pub(super) fn lines(&self, root: &Path) -> PathBuf {
        path(root, &self.data_namespace, ".rejects.jsonl")
    }

    /// Documents that are damaged.
    pub(super) fn damaged(&self, root: &Path) -> PathBuf {
        path(root, &self.data_namespace, ".damaged")
    }

    /// A line for each of them.
    pub(super) fn damaged_lines(&self, root: &Path) -> PathBuf {
        path(root, &self.data_namespace, ".damaged.jsonl")
    }

    /// Makes the folder and the metadata; returns what is new.
    pub(super) fn begin(&self, root: &Path) -> Result<[PathBuf; 2], Error> {
        let database = self.namespace.database();
        if !filename::is_database(database) {
            let message = format!("no folder for rejects can have the name `{database}`");
            return Err(Error::new(ErrorKind::Write, message).of(&self.namespace));
        }
        let folder = root.join(database);
        fs::create_dir_all(&folder).map_err(|error| unwritten(&folder, &error))?;
        let metadata = self.metadata(root);
        fs::write(&metadata, &self.metadata).map_err(|error| unwritten(&metadata, &error))?;
        // A dump is loaded by its files of documents, even where there are none.
        append(&self.documents(root), &[])?;
        Ok([folder, metadata])
    }
}

fn path(root: &Path, name: &Namespace, ending: &str) -> PathBuf {
    let stem = filename::encode(name.collection());
    root.join(name.database()).join(format!("{stem}{ending}"))
}

impl Files {
    /// The files that an earlier run has left, cut to what is done; nothing where there are none.
    pub(super) fn resume(
        root: &Path,
        place: &Place,
        length: RejectsLength,
    ) -> Result<Option<Self>, Error> {
        if !filename::is_database(place.namespace.database()) {
            return Ok(None);
        }
        let is_begun = place.metadata(root).exists();
        if !is_begun && length == RejectsLength::default() {
            return Ok(None);
        }
        cut(&place.documents(root), length.documents)?;
        cut(&place.lines(root), length.lines)?;
        let mut files = Self { length, ..Self::default() };
        files.resume_damaged(root, place)?;
        Ok(Some(files))
    }

    /// Finds the last damaged document that was kept whole, and cuts off what follows it.
    fn resume_damaged(&mut self, root: &Path, place: &Place) -> Result<(), Error> {
        let (documents, lines) = (place.damaged(root), place.damaged_lines(root));
        let Ok(file) = File::open(&lines) else {
            return cut(&documents, 0);
        };
        let there = fs::metadata(&documents).map_or(0, |found| found.len());
        let (mut reader, mut line, mut whole) = (BufReader::new(file), Vec::new(), 0);
        loop {
            line.clear();
            let read = reader.read_until(b'\n', &mut line);
            read.map_err(|error| unwritten(&lines, &error))?;
            let Some((offset, end)) = damaged(&line).filter(|(_, end)| *end <= there) else {
                break;
            };
            whole += line.len() as u64;
            (self.damaged_up_to, self.damaged_bytes) = (Some(offset), end);
        }
        cut(&documents, self.damaged_bytes)?;
        cut(&lines, whole)
    }
}

/// Of a damaged document by its line: its offset in the dump, and where it ends in its file.
fn damaged(line: &[u8]) -> Option<(u64, u64)> {
    let line: serde_json::Value = serde_json::from_slice(line.strip_suffix(b"\n")?).ok()?;
    let number = |name: &str| line.get(name)?.as_u64();
    Some((number("offset")?, number("kept_at")?.checked_add(number("bytes")?)?))
}

/// Cuts a file to its first bytes; fewer mean that it is not the one that the ledger tells of.
fn cut(path: &Path, bytes: u64) -> Result<(), Error> {
    let there = fs::metadata(path).map_or(0, |found| found.len());
    if there < bytes {
        let message = format!(
            "the file of rejects holds {there} bytes, fewer than the {bytes} that the ledger tells \
             of"
        );
        return Err(Error::new(ErrorKind::Plan, message).in_file(path).hint(
            "name the folder that the interrupted restore was given with --rejects, or go on \
             without it",
        ));
    }
    if there == bytes {
        return Ok(());
    }
    let file = OpenOptions::new().write(true).open(path);
    file.and_then(|file| file.set_len(bytes)).map_err(|error| unwritten(path, &error))
}

/// Puts bytes at the end of a file, which is made where it is not there. No file is held open:
/// there may be very many.
pub(super) fn append(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let opened = OpenOptions::new().create(true).append(true).open(path);
    opened.and_then(|mut file| file.write_all(bytes)).map_err(|error| unwritten(path, &error))
}

/// Brings a file or folder to the disk.
pub(super) fn sync(path: &Path) -> Result<(), Error> {
    let synced = File::open(path).and_then(|file| file.sync_all());
    // Not every file system knows how to sync a folder.
    if path.is_dir() { Ok(()) } else { synced.map_err(|error| unwritten(path, &error)) }
}

fn unwritten(path: &Path, error: &io::Error) -> Error {
    Error::new(ErrorKind::Write, format!("rejected documents cannot be kept: {error}"))
        .in_file(path)
        .hint(
            "make room there; what could not be kept is not called done, so that a restore with \
             --resume sends it again",
        )
}
