//! Opens the data file of a collection and yields whole documents with their position.
//!
//! A reader hops from length prefix to length prefix in one buffer that it fills again from the
//! file, through a decompressor where the file is compressed. It copies no document: a frame
//! borrows the buffer until the next one is asked for. Memory is one buffer of
//! [`READ_BYTES`](crate::limits::READ_BYTES), more only while a larger document passes.

mod decompress;

use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;

use crate::batch::Position;
use crate::dump::inventory::DataFile;
use crate::error::{Error, ErrorKind};
use crate::frame::{self, Frame, FrameError};
use crate::limits::READ_BYTES;
use crate::reader::decompress::Source;

/// The bytes of a document's length prefix.
const PREFIX: usize = 4;

/// Reads the documents of one file in their order.
#[derive(Debug)]
pub struct Reader {
    path: PathBuf,
    source: Source,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    offset: u64,
}

/// Opens a data file; its first document is the next one.
pub fn open(file: &DataFile) -> Result<Reader, Error> {
    let opened = File::open(&file.path)
        .and_then(|opened| Source::new(opened, file.compression))
        .map_err(|error| {
            Error::new(ErrorKind::Read, format!("cannot be opened: {error}")).in_file(&file.path)
        })?;
    Ok(Reader {
        path: file.path.clone(),
        source: opened,
        buffer: vec![0; READ_BYTES],
        start: 0,
        end: 0,
        offset: 0,
    })
}

impl Reader {
    /// The next document and where it lies, or nothing at the end of the file.
    ///
    /// An error names the file and the offset of the document that could not be read; nothing
    /// after it can be found, since a document is only found through the one before it.
    pub fn next_frame(&mut self) -> Result<Option<(Frame<'_>, Position)>, Error> {
        let Some(length) = self.next_length()? else {
            return Ok(None);
        };
        if !self.fill(length)? {
            return Err(self.ends_inside(length));
        }
        let position = self.position();
        let start = self.start;
        self.start += length;
        self.offset += length as u64;
        match Frame::new(&self.buffer[start..start + length]) {
            Ok(frame) => Ok(Some((frame, position))),
            Err(error) => Err(damaged(&error, &self.path, position.offset)),
        }
    }

    /// Where the next document begins.
    pub fn position(&self) -> Position {
        Position { offset: self.offset, origin: self.source.consumed(self.end - self.start) }
    }

    fn next_length(&mut self) -> Result<Option<usize>, Error> {
        if !self.fill(PREFIX)? {
            return if self.end == self.start { Ok(None) } else { Err(self.ends_inside(PREFIX)) };
        }
        let mut prefix = [0; PREFIX];
        prefix.copy_from_slice(&self.buffer[self.start..self.start + PREFIX]);
        match frame::length(prefix) {
            Ok(length) => Ok(Some(length)),
            Err(error) => Err(damaged(&error, &self.path, self.offset)),
        }
    }

    /// Brings at least `needed` bytes into the buffer; false where the file ends before.
    fn fill(&mut self, needed: usize) -> Result<bool, Error> {
        if self.end - self.start >= needed {
            return Ok(true);
        }
        self.make_room(needed);
        while self.end - self.start < needed {
            match self.source.read(&mut self.buffer[self.end..]) {
                Ok(0) => return Ok(false),
                Ok(count) => self.end += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.unreadable(&error)),
            }
        }
        Ok(true)
    }

    /// Moves what is left to the front of a buffer that can hold `needed` bytes; lets go of a
    /// buffer that had grown for one large document.
    fn make_room(&mut self, needed: usize) {
        let left = self.end - self.start;
        let size = needed.max(READ_BYTES);
        if self.buffer.len() < size || self.buffer.len() > size.max(left).saturating_mul(4) {
            let mut buffer = vec![0; size.max(left)];
            buffer[..left].copy_from_slice(&self.buffer[self.start..self.end]);
            self.buffer = buffer;
        } else {
            self.buffer.copy_within(self.start..self.end, 0);
        }
        self.start = 0;
        self.end = left;
    }

    fn ends_inside(&self, needed: usize) -> Error {
        let message = format!(
            "the file ends inside a document: {} of its {}{needed} bytes are there",
            self.end - self.start,
            if needed == PREFIX { "first " } else { "" },
        );
        self.error(message)
            .hint("the dump was cut off here; take the dump of this collection again")
    }

    fn unreadable(&self, error: &io::Error) -> Error {
        self.error(self.source.describe(error))
    }

    fn error(&self, message: String) -> Error {
        Error::new(ErrorKind::Read, message).in_file(&self.path).at_byte(self.offset)
    }
}

fn damaged(error: &FrameError, path: &std::path::Path, offset: u64) -> Error {
    Error::new(ErrorKind::Read, error.to_string())
        .in_file(path)
        .at_byte(offset)
        .hint("the file is damaged here; what came before this byte was read")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dump::inventory::Compression;
    use bson::doc;
    use proptest::prelude::*;
    use std::io::Write;

    fn written(bytes: &[u8], compression: Compression) -> (tempfile::TempDir, DataFile) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("c.bson");
        let content = match compression {
            Compression::None => bytes.to_vec(),
            Compression::Gzip => {
                let mut encoder =
                    flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
                encoder.write_all(bytes).expect("written");
                encoder.finish().expect("finished")
            }
            Compression::Zstd => zstd::encode_all(bytes, 1).expect("encoded"),
        };
        std::fs::write(&path, &content).expect("written");
        let file = DataFile { path, compression, bytes: content.len() as u64 };
        (folder, file)
    }

    fn read_all(file: &DataFile) -> (Vec<Vec<u8>>, Option<Error>, Position) {
        let mut reader = open(file).expect("opened");
        let mut documents = Vec::new();
        loop {
            match reader.next_frame() {
                Ok(Some((frame, _))) => documents.push(frame.bytes().to_vec()),
                Ok(None) => return (documents, None, reader.position()),
                Err(error) => return (documents, Some(error), reader.position()),
            }
        }
    }

    fn document(size: usize) -> Vec<u8> {
        doc! { "_id": 1, "p": "x".repeat(size) }.to_vec().expect("encodes")
    }

    #[test]
    fn documents_larger_than_the_buffer_pass_whole() {
        let documents =
            vec![document(10), document(3 * READ_BYTES), document(20), document(READ_BYTES)];
        let bytes = documents.concat();
        for compression in [Compression::None, Compression::Gzip, Compression::Zstd] {
            let (_folder, file) = written(&bytes, compression);
            let (read, error, end) = read_all(&file);
            assert_eq!(error, None);
            assert!(read == documents, "{compression:?}");
            assert_eq!(end, Position { offset: bytes.len() as u64, origin: file.bytes });
        }
    }

    #[test]
    fn several_gzip_members_are_one_file() {
        let documents = [document(10), document(20)];
        let mut content = Vec::new();
        for bytes in &documents {
            let mut encoder =
                flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(bytes).expect("written");
            content.extend(encoder.finish().expect("finished"));
        }
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("c.bson.gz");
        std::fs::write(&path, &content).expect("written");
        let bytes = content.len() as u64;
        let file = DataFile { path, compression: Compression::Gzip, bytes };
        assert_eq!(read_all(&file).0, documents);
    }

    #[test]
    fn a_cut_file_is_told_with_the_offset_of_its_last_document() {
        let whole = document(10);
        let bytes = [&whole[..], &whole[..whole.len() - 3]].concat();
        let (_folder, file) = written(&bytes, Compression::None);
        let (read, error, _) = read_all(&file);
        assert_eq!(read, std::slice::from_ref(&whole));
        let error = error.expect("an error");
        assert_eq!(error.offset(), Some(whole.len() as u64));
        assert!(error.to_string().contains("ends inside a document"), "{error}");
    }

    #[test]
    fn a_cut_length_prefix_is_told() {
        let (_folder, file) = written(&[22, 0], Compression::None);
        let error = read_all(&file).1.expect("an error");
        assert!(error.to_string().contains("2 of its first 4 bytes"), "{error}");
    }

    #[test]
    fn a_lying_length_is_told_and_allocates_no_more_than_a_document() {
        for length in [3_i32, -5, i32::MAX] {
            let (_folder, file) = written(&length.to_le_bytes().repeat(4), Compression::None);
            let error = read_all(&file).1.expect("an error");
            assert_eq!(error.offset(), Some(0));
        }
    }

    #[test]
    fn a_cut_gzip_file_says_so() {
        let (_folder, file) = written(&document(100_000), Compression::Gzip);
        let content = std::fs::read(&file.path).expect("read");
        std::fs::write(&file.path, &content[..content.len() - 9]).expect("written");
        let error = read_all(&file).1.expect("an error");
        assert!(error.to_string().contains("gzip"), "{error}");
    }

    proptest! {
        #[test]
        fn what_was_written_is_read(
            sizes in prop::collection::vec(0_usize..9000, 0..60),
            gzip in any::<bool>(),
        ) {
            let documents: Vec<_> = sizes.into_iter().map(document).collect();
            let compression = if gzip { Compression::Gzip } else { Compression::None };
            let (_folder, file) = written(&documents.concat(), compression);
            let (read, error, _) = read_all(&file);
            prop_assert_eq!(error, None);
            prop_assert_eq!(read, documents);
        }
    }
}
