//! Keeps the documents that were refused, as a dump of their own with a line of reasons each.
//!
//! Files are only appended to. The ledger says with each range how long they were when its
//! documents had been written, so that a run that is resumed cuts off what belongs to no range and
//! writes it once more: nothing is kept twice. A range enters the ledger when its refused documents
//! are on the disk, not before.

mod files;
mod line;

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bson::oid::ObjectId;

use crate::error::{Error, ErrorKind};
use crate::limits::REJECTS_LATE_BYTES_MAX;
use crate::load::ledger::record::Done;
use crate::plan::carried::RejectsLength;
use crate::report::Rejection;
pub use files::Place;
use files::{Files, append};
use line::Line;

/// The file that says by which run the folder was made.
const MARKER: &str = "restorm-rejects.json";

/// A refused document.
#[derive(Debug)]
pub struct Kept {
    /// Where it lies in its source, in bytes of the uncompressed content.
    pub offset: u64,
    /// The document as it was sent.
    pub bytes: Box<[u8]>,
}

/// Refused documents of one batch.
#[derive(Clone, Copy, Debug)]
pub struct Refused<'a> {
    /// The collection's place in the plan.
    pub collection: usize,
    /// The reasons.
    pub rejections: &'a [Rejection],
    /// The documents, one for each reason.
    pub kept: &'a [Kept],
}

/// A folder of refused documents that is being written.
#[derive(Debug)]
pub struct Rejects {
    root: PathBuf,
    places: Vec<Place>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    files: HashMap<usize, Files>,
    /// Ranges whose refused documents are not on the disk yet.
    pending: Vec<(usize, Done)>,
    /// Files and folders that are not.
    unsynced: BTreeSet<PathBuf>,
    /// Documents of batches that were not answered for to their end; they come last, because a
    /// run that is resumed sends these batches again.
    late: Vec<(usize, Vec<Rejection>, Vec<Kept>)>,
    late_bytes: usize,
    is_broken: bool,
}

/// Whether the folder may hold what an earlier run has kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Earlier {
    /// It must be empty.
    Refused,
    /// It is gone on with.
    Resumed,
}

impl Rejects {
    /// Opens a folder for the refused documents of this run; what belongs to none of the ranges
    /// that are done is cut off.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Plan`] where the folder cannot be made or holds something else.
    pub fn open(
        root: &Path,
        run: ObjectId,
        earlier: Earlier,
        places: Vec<(Place, RejectsLength)>,
    ) -> Result<Self, Error> {
        fs::create_dir_all(root).map_err(|error| unusable(root, "cannot be made", &error))?;
        if earlier == Earlier::Refused {
            check_empty(root)?;
        }
        let is_empty = is_empty(root)?;
        let marker = root.join(MARKER);
        let text = serde_json::json!({ "run": run.to_hex() }).to_string();
        if is_empty {
            fs::write(&marker, &text)
                .map_err(|error| unusable(root, "cannot be written", &error))?;
        } else if fs::read_to_string(&marker).ok() != Some(text) {
            return Err(Error::new(
                ErrorKind::Plan,
                "the folder for rejects holds something else than the rejects of this restore",
            )
            .in_file(root)
            .hint("name the folder that the interrupted restore was given, or an empty one"));
        }
        let mut files = HashMap::new();
        if earlier == Earlier::Resumed {
            for (collection, (place, length)) in places.iter().enumerate() {
                if let Some(found) = Files::resume(root, place, *length)? {
                    files.insert(collection, found);
                }
            }
        }
        let state = Mutex::new(State { files, ..State::default() });
        let places = places.into_iter().map(|(place, _)| place).collect();
        Ok(Self { root: root.to_path_buf(), places, state })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes the refused documents of a batch; returns what is done with it, if that may enter
    /// the ledger at once.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Write`] where they cannot be written; nothing more is, then.
    pub fn keep(&self, refused: Refused<'_>, done: Option<Done>) -> Result<Option<Done>, Error> {
        let mut state = self.state();
        let is_late = done.is_none() && state.late_bytes < REJECTS_LATE_BYTES_MAX;
        if is_late {
            state.add_late(refused);
            return Ok(None);
        }
        self.write(&mut state, refused)?;
        let Some(done) = done.filter(|done| done.rejected > 0) else {
            return Ok(done);
        };
        if state.is_broken {
            return Ok(None);
        }
        let length = state.files.get(&refused.collection).copied().unwrap_or_default().length;
        let done = Done { kept: length.documents, lines: length.lines, ..done };
        state.pending.push((refused.collection, done));
        Ok(None)
    }

    fn write(&self, state: &mut State, refused: Refused<'_>) -> Result<(), Error> {
        if refused.kept.is_empty() || state.is_broken {
            return Ok(());
        }
        let place = &self.places[refused.collection];
        let mut files = self.begun(state, refused.collection)?;
        let (mut documents, mut lines) = (Vec::new(), Vec::new());
        for (rejection, kept) in refused.rejections.iter().zip(refused.kept) {
            let at = files.length.documents + documents.len() as u64;
            Line::of(place, rejection, kept, at).write_to(&mut lines);
            documents.extend_from_slice(&kept.bytes);
        }
        let written = append(&place.documents(&self.root), &documents)
            .and_then(|()| append(&place.lines(&self.root), &lines));
        state.is_broken = written.is_err();
        written?;
        files.length.documents += documents.len() as u64;
        files.length.lines += lines.len() as u64;
        state.files.insert(refused.collection, files);
        state.unsynced.extend([place.documents(&self.root), place.lines(&self.root)]);
        Ok(())
    }

    /// Writes a damaged document, which no file of documents can hold.
    ///
    /// # Errors
    ///
    /// As for [`Rejects::keep`].
    pub fn keep_damaged(
        &self,
        collection: usize,
        rejection: &Rejection,
        kept: &Kept,
    ) -> Result<(), Error> {
        let mut state = self.state();
        if state.is_broken {
            return Ok(());
        }
        let place = &self.places[collection];
        let mut files = self.begun(&mut state, collection)?;
        if files.damaged_up_to.is_some_and(|earlier| kept.offset <= earlier) {
            // A collection is read in its order, so that an earlier run has come past this one.
            return Ok(());
        }
        let mut line = Vec::new();
        Line::of(place, rejection, kept, files.damaged_bytes).write_to(&mut line);
        let written = append(&place.damaged(&self.root), &kept.bytes)
            .and_then(|()| append(&place.damaged_lines(&self.root), &line));
        state.is_broken = written.is_err();
        written?;
        files.damaged_bytes += kept.bytes.len() as u64;
        state.files.insert(collection, files);
        state.unsynced.extend([place.damaged(&self.root), place.damaged_lines(&self.root)]);
        Ok(())
    }

    /// The files of a collection; the first time its folder and its metadata are written.
    fn begun(&self, state: &mut State, collection: usize) -> Result<Files, Error> {
        if let Some(files) = state.files.get(&collection) {
            return Ok(*files);
        }
        let begun = self.places[collection].begin(&self.root);
        state.is_broken = begun.is_err();
        state.unsynced.extend(begun?);
        state.unsynced.insert(self.root.clone());
        state.files.insert(collection, Files::default());
        Ok(Files::default())
    }

    /// Brings everything to the disk; returns the ranges that may enter the ledger now, in their
    /// order.
    ///
    /// # Errors
    ///
    /// As for [`Rejects::keep`].
    pub fn sync(&self) -> Result<Vec<(usize, Done)>, Error> {
        let (pending, unsynced) = {
            let mut state = self.state();
            (std::mem::take(&mut state.pending), std::mem::take(&mut state.unsynced))
        };
        for path in unsynced {
            let synced = files::sync(&path);
            if synced.is_err() {
                self.state().is_broken = true;
            }
            synced?;
        }
        Ok(pending)
    }

    /// Writes what comes last; a folder that nothing was written to is removed.
    ///
    /// # Errors
    ///
    /// As for [`Rejects::keep`].
    pub fn close(&self) -> Result<(), Error> {
        let mut state = self.state();
        for (collection, rejections, kept) in std::mem::take(&mut state.late) {
            let refused = Refused { collection, rejections: &rejections, kept: &kept };
            self.write(&mut state, refused)?;
        }
        if state.files.is_empty() {
            // Whoever put something beside it keeps the folder.
            let _ = fs::remove_file(self.root.join(MARKER));
            let _ = fs::remove_dir(&self.root);
        }
        drop(state);
        self.sync().map(drop)
    }
}

impl State {
    fn add_late(&mut self, refused: Refused<'_>) {
        if refused.kept.is_empty() {
            return;
        }
        self.late_bytes += refused.kept.iter().map(|kept| kept.bytes.len()).sum::<usize>();
        let copies =
            refused.kept.iter().map(|kept| Kept { offset: kept.offset, bytes: kept.bytes.clone() });
        self.late.push((refused.collection, refused.rejections.to_vec(), copies.collect()));
    }
}

/// Refuses a folder that holds anything.
///
/// # Errors
///
/// [`ErrorKind::Plan`]
pub fn check_empty(root: &Path) -> Result<(), Error> {
    if !root.exists() || is_empty(root)? {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Plan, "the folder for rejects is not empty")
        .in_file(root)
        .hint("name another one with --rejects DIR"))
}

fn is_empty(root: &Path) -> Result<bool, Error> {
    let mut listed =
        fs::read_dir(root).map_err(|error| unusable(root, "cannot be listed", &error))?;
    Ok(listed.next().is_none())
}

fn unusable(path: &Path, what: &str, error: &io::Error) -> Error {
    Error::new(ErrorKind::Plan, format!("the folder for rejects {what}: {error}"))
        .in_file(path)
        .hint("name another one with --rejects DIR")
}

#[cfg(test)]
mod tests;
