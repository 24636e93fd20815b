//! Temporary files without a name: nothing is left behind however the program ends.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Names that are tried before the folder counts as unusable; one is taken only if another program
/// means to be in the way.
const NAMES_TRIED: u32 = 100;

/// A new file of this folder that loses its name at once, and that only its owner can read.
///
/// # Errors
///
/// Those of the file system.
pub fn unnamed(folder: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true).mode(0o600);
    let mut tried = 0;
    loop {
        let path = folder.join(format!("restorm-{}-{tried}", std::process::id()));
        match options.open(&path) {
            Ok(file) => {
                std::fs::remove_file(&path)?;
                return Ok(file);
            }
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            Err(error) if tried >= NAMES_TRIED => return Err(error),
            Err(_) => tried += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn the_file_has_no_name_and_is_for_its_owner_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let in_the_way = folder.path().join(format!("restorm-{}-0", std::process::id()));
        std::fs::write(in_the_way, "").expect("written");
        let file = unnamed(folder.path()).expect("a file");
        let metadata = file.metadata().expect("metadata");
        assert_eq!((metadata.nlink(), metadata.mode() & 0o777), (0, 0o600));
        assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 1);
        assert!(unnamed(&folder.path().join("none")).is_err());
    }
}
