//! By what a dump is known again: its collections, the sizes of its files, and their beginnings and
//! ends.
//!
//! Neither paths nor times count, so that a dump may be moved or copied. What lies in the middle of
//! a file is not read: a dump is not changed by accident, and a file that was taken anew differs
//! at its end or in its size.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use twox_hash::XxHash3_128;

use crate::dump::inventory::{Inventory, Origin};
use crate::error::{Error, ErrorKind};

/// Bytes that count at each end of a collection's file, of which a dump may have very many.
const FILE_END_BYTES: u64 = 4 * 1024;

/// Bytes that count at each end of an archive.
const ARCHIVE_END_BYTES: u64 = 64 * 1024;

/// The fingerprint of a dump as 32 hexadecimal digits; nothing where it comes through a pipe.
///
/// Errors: a file that cannot be read.
pub fn fingerprint(inventory: &Inventory) -> Result<Option<String>, Error> {
    let mut hash = XxHash3_128::new();
    let mut archive: Option<&Path> = None;
    for entry in &inventory.entries {
        hash.write(entry.namespace.full().as_bytes());
        hash.write(&[0]);
        hash.write(entry.kind.name().as_bytes());
        match &entry.data {
            None => hash.write(&[0]),
            Some(Origin::File(file)) => add(&mut hash, &file.path, FILE_END_BYTES)?,
            Some(Origin::Segments(segments)) if !segments.archive.is_piped() => {
                archive = Some(segments.archive.path());
            }
            Some(Origin::Made(made)) => {
                let Some(mark) = made.mark() else { return Ok(None) };
                hash.write(&mark);
            }
            Some(Origin::Input | Origin::Segments(_) | Origin::Text(_)) => return Ok(None),
        }
    }
    if let Some(path) = archive {
        add(&mut hash, path, ARCHIVE_END_BYTES)?;
    }
    Ok(Some(format!("{:032x}", hash.finish_128())))
}

fn add(hash: &mut XxHash3_128, path: &Path, bytes: u64) -> Result<(), Error> {
    let unread = |error: std::io::Error| {
        Error::new(ErrorKind::Read, format!("cannot be read: {error}")).in_file(path)
    };
    let mut file = File::open(path).map_err(unread)?;
    let size = file.metadata().map_err(unread)?.len();
    hash.write(&size.to_le_bytes());
    let mut ends = Vec::new();
    (&mut file).take(bytes).read_to_end(&mut ends).map_err(unread)?;
    if size > bytes {
        file.seek(SeekFrom::Start(size.saturating_sub(bytes).max(bytes))).map_err(unread)?;
        file.take(bytes).read_to_end(&mut ends).map_err(unread)?;
    }
    hash.write(&ends);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dump::Dump;
    use crate::dump::Location;

    fn dump(contents: &[(&str, Vec<u8>)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        let database = folder.path().join("shop");
        std::fs::create_dir(&database).expect("made");
        for (name, bytes) in contents {
            std::fs::write(database.join(name), bytes).expect("written");
        }
        folder
    }

    fn of(dump: &tempfile::TempDir) -> String {
        let place = Location::Path(dump.path().into());
        let inventory = Dump::at(&place, None, None).expect("a dump").scan().expect("listed");
        fingerprint(&inventory).expect("read").expect("no pipe")
    }

    #[test]
    fn a_dump_that_is_copied_is_the_same_and_one_that_is_changed_is_another() {
        let long = vec![7_u8; 20_000];
        let changed = |place: usize| {
            let mut changed = long.clone();
            changed[place] = 8;
            changed
        };
        let one = of(&dump(&[("a.bson", long.clone()), ("b.bson", Vec::new())]));
        assert_eq!(one.len(), 32);
        assert_eq!(one, of(&dump(&[("b.bson", Vec::new()), ("a.bson", long.clone())])));
        for other in [
            dump(&[("a.bson", long.clone())]),
            dump(&[("a.bson", long.clone()), ("c.bson", Vec::new())]),
            dump(&[("a.bson", changed(0)), ("b.bson", Vec::new())]),
            dump(&[("a.bson", changed(19_999)), ("b.bson", Vec::new())]),
            dump(&[("a.bson", [&long[..], &[7]].concat()), ("b.bson", Vec::new())]),
        ] {
            assert_ne!(one, of(&other));
        }
    }
}
