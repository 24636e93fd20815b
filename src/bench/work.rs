//! The folder that a benchmark works in, which goes with it.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::error::{Error, ErrorKind};

/// A folder of its own.
#[derive(Debug)]
pub(super) struct WorkFolder {
    path: PathBuf,
    next: AtomicU32,
}

impl WorkFolder {
    /// Makes one in this folder.
    pub(super) fn create(within: &Path) -> Result<Self, Error> {
        let path = within.join(format!("restorm-bench-{}", std::process::id()));
        std::fs::create_dir_all(within).and_then(|()| std::fs::create_dir(&path)).map_err(
            |error| {
                let message = format!("there is no place to work: {error}");
                Error::new(ErrorKind::Usage, message).in_file(&path).hint("say another --work")
            },
        )?;
        Ok(Self { path, next: AtomicU32::new(1) })
    }

    /// A new folder in it.
    pub(super) fn inner(&self) -> Result<PathBuf, Error> {
        let path = self.path.join(self.next.fetch_add(1, Ordering::Relaxed).to_string());
        std::fs::create_dir(&path).map_err(|error| {
            let message = format!("a folder cannot be made: {error}");
            Error::new(ErrorKind::Internal, message).in_file(&path)
        })?;
        Ok(path)
    }
}

impl Drop for WorkFolder {
    fn drop(&mut self) {
        // What is left lies where systems clean up.
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

/// The bytes of all files in a folder.
pub(super) fn bytes_of(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let sizes = entries.map(|entry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => bytes_of(&entry.path()),
        Ok(kind) if kind.is_file() => entry.metadata().map_or(0, |file| file.len()),
        _ => 0,
    });
    sizes.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_goes_with_all_that_is_in_it() {
        let within = tempfile::tempdir().expect("a folder");
        let folder = WorkFolder::create(within.path()).expect("made");
        assert!(WorkFolder::create(within.path()).is_err(), "it is there already");
        let (one, other) = (folder.inner().expect("one"), folder.inner().expect("other"));
        assert_ne!(one, other);
        std::fs::write(one.join("a"), [0; 10]).expect("written");
        std::fs::create_dir(one.join("deep")).expect("made");
        std::fs::write(one.join("deep/b"), [0; 5]).expect("written");
        assert_eq!(bytes_of(&one), 15);
        drop(folder);
        assert_eq!(std::fs::read_dir(within.path()).expect("listed").count(), 0);
    }
}
