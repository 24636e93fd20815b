//! Keeps the oplog of an archive until everything else is restored: in a temporary file without a
//! name, so that memory stays bounded and nothing is left behind however the run ends.
//!
//! Each entry stands behind the byte at which it lies in the archive.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, Write};

use crate::batch::Position;
use crate::dump::temporary::unnamed;
use crate::error::{Error, ErrorKind};
use crate::frame::{self, Frame};
use crate::load::oplog::{OplogFrame, OplogFrames};

/// Entries that wait.
#[derive(Debug)]
pub(super) struct Spool {
    out: BufWriter<File>,
}

impl Spool {
    /// None yet, in a file of the system's temporary folder that only its owner can read.
    pub(super) fn create() -> Result<Self, Error> {
        let folder = std::env::temp_dir();
        let file = unnamed(&folder).map_err(|error| failed(&error))?;
        Ok(Self { out: BufWriter::new(file) })
    }

    /// Adds an entry, which lies at this byte of the archive.
    pub(super) fn push(&mut self, frame: Frame<'_>, at: u64) -> Result<(), Error> {
        let written = self.out.write_all(&at.to_le_bytes());
        written.and_then(|()| self.out.write_all(frame.bytes())).map_err(|error| failed(&error))
    }

    /// The entries in their order.
    pub(super) fn frames(self) -> Result<OplogFrames, Error> {
        let file = self.out.into_inner().map_err(|error| failed(error.error()));
        let rewound = file.and_then(|mut file| {
            file.rewind().map_err(|error| failed(&error))?;
            Ok(file)
        });
        let mut entries = BufReader::new(rewound?);
        Ok(Box::new(std::iter::from_fn(move || next(&mut entries).transpose())))
    }
}

/// The next entry; nothing at the end.
fn next(entries: &mut BufReader<File>) -> Result<Option<OplogFrame>, Error> {
    let mut read = || -> io::Result<Option<OplogFrame>> {
        let mut at = [0; 8];
        if !begins(entries, &mut at)? {
            return Ok(None);
        }
        let mut prefix = [0; 4];
        entries.read_exact(&mut prefix)?;
        let length = frame::length(prefix).map_err(io::Error::other)?;
        let mut bytes = vec![0; length];
        bytes[..prefix.len()].copy_from_slice(&prefix);
        entries.read_exact(&mut bytes[prefix.len()..])?;
        let position = Position { offset: u64::from_le_bytes(at), ..Position::default() };
        Ok(Some((bytes, position)))
    };
    read().map_err(|error| failed(&error))
}

/// Fills what comes before an entry; false where there is none any more.
fn begins(entries: &mut BufReader<File>, at: &mut [u8]) -> io::Result<bool> {
    let first = loop {
        match entries.read(&mut at[..1]) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => break other?,
        }
    };
    if first == 1 {
        entries.read_exact(&mut at[1..])?;
    }
    Ok(first == 1)
}

fn failed(error: &io::Error) -> Error {
    let folder = std::env::temp_dir();
    let message = format!("the oplog of the archive cannot be kept in a temporary file: {error}");
    Error::new(ErrorKind::Oplog, message).in_file(&folder).hint(
        "it waits there, uncompressed, until the documents are restored; TMPDIR names another \
         folder",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::doc;

    #[test]
    fn entries_come_back_in_their_order_with_their_places() {
        let entries: Vec<_> = (0..500)
            .map(|n| doc! { "n": n, "p": "x".repeat(30) }.to_vec().expect("bson"))
            .collect();
        let mut spool = Spool::create().expect("a file");
        for (at, entry) in (7..).zip(&entries) {
            spool.push(Frame::new(entry).expect("a frame"), at).expect("written");
        }
        let back: Vec<_> = spool.frames().expect("read").map(|one| one.expect("sound")).collect();
        assert_eq!(back.len(), entries.len());
        for ((at, entry), (bytes, position)) in (7..).zip(&entries).zip(&back) {
            assert_eq!((position.offset, bytes), (at, entry));
        }
    }

    #[test]
    fn an_oplog_without_entries_is_one() {
        assert_eq!(Spool::create().expect("a file").frames().expect("read").count(), 0);
    }
}
