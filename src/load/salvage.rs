//! Keeps what is lost of a damaged dump aside, and tells of it.
//!
//! The lost bytes of a collection are in one file, one stretch behind the other; `lost.jsonl` says
//! of each stretch where it was and where it is kept. The files are created with the first loss.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::json;

use crate::dump::filename;
use crate::error::Error;
use crate::limits::LOST_BYTES_KEPT_MAX;
use crate::load::run::Run;
use crate::reader::salvage::Stretch;
use crate::report::format::counted;
use crate::report::lost::LostStretch;
use crate::report::{Event, format};
use crate::target::Target;

/// The list of all stretches.
const LIST: &str = "lost.jsonl";

/// What the bytes outside any collection are kept in.
const ELSEWHERE: &str = "elsewhere";

/// Where lost bytes are kept, and what was lost so far.
#[derive(Debug)]
pub(super) struct Salvage {
    folder: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    list: Option<File>,
    losses: HashMap<Option<usize>, Loss>,
    /// Bytes kept in all files.
    kept: u64,
    /// Why no more bytes are kept, once that is so.
    ended: Option<String>,
}

/// What was lost of one collection.
#[derive(Debug, Default)]
struct Loss {
    stretches: u64,
    bytes: u64,
    /// Bytes of the stretch that is not at its end.
    open: u64,
    /// Bytes in its file.
    kept: u64,
    /// The file from a byte on, where nobody knows how much is lost.
    rest: Option<(PathBuf, u64)>,
    /// What makes the documents doubtful that were read.
    doubt: Option<String>,
}

impl Salvage {
    pub(super) fn into(folder: PathBuf) -> Self {
        Self { folder, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps lost bytes; returns why no more are kept, the first time that is so.
    fn keep(&self, collection: Option<usize>, name: &str, bytes: &[u8]) -> Option<String> {
        let mut state = self.state();
        let State { losses, kept, ended, .. } = &mut *state;
        let loss = losses.entry(collection).or_default();
        let count = bytes.len() as u64;
        loss.open += count;
        if ended.is_some() || bytes.is_empty() {
            return None;
        }
        let written = if *kept + count > LOST_BYTES_KEPT_MAX {
            let most = format::bytes(LOST_BYTES_KEPT_MAX);
            Err(io::Error::other(format!("more than {most} are not kept")))
        } else {
            open(&self.folder, name, loss.kept == 0).and_then(|mut file| file.write_all(bytes))
        };
        match written {
            Ok(()) => {
                loss.kept += count;
                *kept += count;
                None
            }
            Err(error) => {
                let why = format!(
                    "lost bytes are not kept in {} any more: {error}",
                    self.folder.display()
                );
                *ended = Some(why.clone());
                Some(why)
            }
        }
    }

    /// Ends a stretch of a collection, or outside any.
    fn end(
        &self,
        collection: Option<usize>,
        name: &str,
        file: &Path,
        stretch: Stretch,
    ) -> LostStretch {
        let mut state = self.state();
        let State { list, losses, ended, .. } = &mut *state;
        let loss = losses.entry(collection).or_default();
        let bytes = std::mem::take(&mut loss.open);
        loss.stretches += 1;
        loss.bytes += bytes;
        if stretch.to.is_none() {
            loss.rest = Some((file.to_path_buf(), stretch.from));
        }
        let file = file.display().to_string();
        let line = json!({
            "namespace": collection.map(|_| name),
            "file": file,
            "from": stretch.from,
            "to": stretch.to,
            "bytes": bytes,
            "reason": stretch.reason,
            "kept_in": kept_name(name),
            "kept_from": loss.kept.saturating_sub(bytes),
        });
        let written = match list {
            Some(list) => Ok(list),
            None => open(&self.folder, LIST, true).map(|file| list.insert(file)),
        };
        if let Err(error) = written.and_then(|list| writeln!(list, "{line}")) {
            ended.get_or_insert_with(|| error.to_string());
        }
        LostStretch { file, from: stretch.from, to: stretch.to, bytes, reason: stretch.reason }
    }

    /// What is said of a collection of which something is lost.
    fn sentence(&self, collection: usize) -> Option<String> {
        let state = self.state();
        let loss = state.losses.get(&Some(collection))?;
        let mut parts = Vec::new();
        if loss.stretches > 0 {
            let stretches = counted(loss.stretches, "stretch", "stretches");
            let bytes = format::bytes(loss.bytes);
            parts.push(format!("{stretches} of its documents, {bytes}, could not be read"));
        }
        if let Some((file, from)) = &loss.rest {
            parts.push(format!("nothing of {} from byte {from} on", file.display()));
        }
        parts.extend(loss.doubt.clone());
        let what = "what could be read around the damage is restored";
        (!parts.is_empty()).then(|| format!("{}; {what}", parts.join("; ")))
    }
}

/// The file that the lost bytes of something are kept in; no name leads out of the folder.
fn kept_name(name: &str) -> String {
    let name = if name.is_empty() { ELSEWHERE } else { name };
    format!("{}.lost", filename::encode(name))
}

fn open(folder: &Path, name: &str, is_new: bool) -> io::Result<File> {
    std::fs::create_dir_all(folder)?;
    let name = if name == LIST { name.to_owned() } else { kept_name(name) };
    let mut options = OpenOptions::new();
    if is_new {
        options.write(true).create(true).truncate(true);
    } else {
        options.append(true);
    }
    options.open(folder.join(name))
}

impl<T: Target> Run<T> {
    fn name_of(&self, collection: Option<usize>) -> String {
        collection
            .map(|collection| self.plan.collections[collection].source.full().to_owned())
            .unwrap_or_default()
    }

    /// Keeps bytes that are lost.
    pub(super) fn keep_lost(&self, collection: Option<usize>, bytes: &[u8]) {
        let name = self.name_of(collection);
        let ended = self.salvage.as_ref().and_then(|one| one.keep(collection, &name, bytes));
        if let Some(text) = ended {
            self.observe(&Event::Note { collection: None, text });
        }
    }

    /// Tells of a stretch that is lost.
    pub(super) fn lose(&self, collection: Option<usize>, file: &Path, stretch: Stretch) {
        if let Some(salvage) = &self.salvage {
            let stretch = salvage.end(collection, &self.name_of(collection), file, stretch);
            self.observe(&Event::Lost { collection, stretch });
        }
    }

    /// Notes that what was read of a collection may not be what was dumped, without giving it up.
    pub(super) fn doubt_content(&self, collection: usize, error: &Error) {
        if let Some(salvage) = &self.salvage {
            let mut state = salvage.state();
            let loss = state.losses.entry(Some(collection)).or_default();
            loss.doubt.get_or_insert_with(|| error.message().to_owned());
        }
    }

    /// Says of a collection that has been read that it is not complete, if that is so. It gets its
    /// indexes nevertheless.
    pub(super) fn tell_loss(&self, collection: usize) {
        let error = self.salvage.as_ref().and_then(|salvage| salvage.sentence(collection));
        if let Some(error) = error {
            self.observe(&Event::CollectionFailed { collection, error });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stretch(from: u64, to: u64) -> Stretch {
        Stretch { from, to: Some(to), reason: "why".to_owned() }
    }

    #[test]
    fn lost_bytes_are_kept_and_listed() {
        let folder = tempfile::tempdir().expect("a folder");
        let salvage = Salvage::into(folder.path().join("kept"));
        for (from, bytes) in [(10, b"abc"), (90, b"def")] {
            assert_eq!(salvage.keep(Some(0), "shop.orders", bytes), None);
            salvage.end(Some(0), "shop.orders", Path::new("o.bson"), stretch(from, from + 3));
        }
        let read = |name: &str| std::fs::read(folder.path().join("kept").join(name)).expect(name);
        assert_eq!(read("shop.orders.lost"), b"abcdef");
        let list = String::from_utf8(read(LIST)).expect("text");
        let lines: Vec<serde_json::Value> =
            list.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        assert_eq!((&lines[1]["from"], &lines[1]["kept_from"]), (&90.into(), &3.into()));
        let sentence = salvage.sentence(0).expect("something is lost");
        assert!(sentence.starts_with("2 stretches of its documents, 6 B, could"), "{sentence}");
        assert_eq!(salvage.sentence(1), None);
    }

    #[test]
    fn no_name_leads_out_of_the_folder() {
        for name in ["../../etc/passwd", "..", "a/b.c", "\u{0}x"] {
            let kept = kept_name(name);
            assert!(!kept.contains('/') && !kept.contains('\0') && kept != "..", "{kept}");
        }
        assert!(kept_name(&"é".repeat(500)).len() < 255);
    }

    #[test]
    fn what_cannot_be_kept_is_told_once() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("file"), "").expect("written");
        let salvage = Salvage::into(folder.path().join("file/kept"));
        assert!(salvage.keep(None, "", b"abc").is_some());
        assert_eq!(salvage.keep(None, "", b"abc"), None);
        assert_eq!(salvage.end(None, "", Path::new("a"), stretch(0, 6)).bytes, 6);
    }
}
