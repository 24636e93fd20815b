//! Opens the data file of a collection and yields whole documents with their position.
//!
//! A reader hops from length prefix to length prefix in one buffer that it fills again from the
//! file, through a decompressor where the file is compressed. It copies no document: a frame
//! borrows the buffer until the next one is asked for. Memory is that of its
//! [`Stream`](crate::dump::stream).

#[cfg(feature = "columnar")]
pub mod columnar;
pub mod demux;
pub mod draft;
pub mod json;
mod plausible;
pub mod salvage;
pub mod table;
pub mod text;

use std::sync::Arc;

use crate::batch::Position;
use crate::clock::ReadClocks;
use crate::dump::archive;
use crate::dump::inventory::{Compression, DataFile};
use crate::dump::made::Made;
use crate::dump::stream::{Interrupt, Stream, Unpacking};
use crate::error::Error;
use crate::frame::{self, Frame, FrameError};
use crate::memory::{Budget, Share};

/// The bytes of a document's length prefix.
const PREFIX: usize = 4;

/// Reads the documents of one collection in their order.
#[derive(Debug)]
pub struct Reader {
    stream: Stream,
}

/// Opens a data file; its first document is the next one.
pub fn open(file: &DataFile) -> Result<Reader, Error> {
    Ok(Reader { stream: Stream::open(file)? })
}

/// Opens standard input, which holds the documents of one collection.
pub fn open_input(interrupt: Option<Interrupt>) -> Result<Reader, Error> {
    Ok(Reader { stream: Stream::of_input(interrupt)? })
}

/// Begins to make documents that are nowhere.
pub fn open_made(made: &Made) -> Result<Reader, Error> {
    Ok(Reader { stream: Stream::of_made(made)? })
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
        if !self.stream.fill(length)? {
            return Err(self.ends_inside(length));
        }
        let mut position = self.position();
        position.end += length as u64;
        self.stream.advance(length);
        match Frame::new(self.stream.behind(length)) {
            Ok(frame) => Ok(Some((frame, position))),
            Err(error) => Err(self.damaged(&error).at_byte(position.offset)),
        }
    }

    /// Leaves the rest of the unpacking to a thread that runs what is returned; nothing where what
    /// is read is not compressed.
    pub fn unpack_aside(&mut self) -> Option<Unpacking> {
        self.stream.unpack_aside()
    }

    /// How what is read is compressed.
    pub fn compression(&self) -> Compression {
        self.stream.compression()
    }

    /// Where the next document begins.
    pub fn position(&self) -> Position {
        let offset = self.stream.offset();
        Position { offset, origin: self.stream.origin(), end: offset }
    }

    /// Adds the time that reading takes to these clocks; comes before [`Self::unpack_aside`].
    pub fn timed_by(&mut self, clocks: &ReadClocks) {
        self.stream.timed_by(clocks);
    }

    /// Takes the memory for large documents from this budget.
    pub fn within(&mut self, budget: Budget) {
        self.stream.within(budget);
    }

    /// What was taken for the document before, if it is large.
    pub fn share(&self) -> Option<Arc<Share>> {
        self.stream.share()
    }

    /// Goes on with the document that begins at this byte of the uncompressed content; in a plain
    /// file the bytes before are not read.
    pub fn skip_to(&mut self, offset: u64) -> Result<(), Error> {
        self.stream.skip_to(offset)
    }

    fn next_length(&mut self) -> Result<Option<usize>, Error> {
        if !self.stream.fill(PREFIX)? {
            let is_end = self.stream.available() == 0;
            return if is_end { Ok(None) } else { Err(self.ends_inside(PREFIX)) };
        }
        let mut prefix = [0; PREFIX];
        prefix.copy_from_slice(&self.stream.ahead()[..PREFIX]);
        match frame::length(prefix) {
            Ok(length) => Ok(Some(length)),
            Err(error) => Err(self.damaged(&error)),
        }
    }

    fn ends_inside(&self, needed: usize) -> Error {
        let message = format!(
            "the file ends inside a document: {} of its {}{needed} bytes are there",
            self.stream.available(),
            if needed == PREFIX { "first " } else { "" },
        );
        self.stream
            .error(message)
            .hint("the dump was cut off here; take the dump of this collection again")
    }

    fn damaged(&self, error: &FrameError) -> Error {
        if self.stream.offset() == 0 && archive::is_archive(self.stream.ahead()) {
            return self
                .stream
                .error("this is an archive instead of the documents of one collection")
                .hint("give it with --archive");
        }
        self.stream
            .error(error.to_string())
            .hint("the file is damaged here; what came before this byte was read")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::READ_BYTES;
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
            let offset = bytes.len() as u64;
            assert_eq!(end, Position { offset, origin: file.bytes, end: offset });
        }
    }

    #[test]
    fn reading_goes_on_wherever_it_is_told_to() {
        let documents: Vec<_> = (0..400).map(|size| document(size * 20)).collect();
        let bytes = documents.concat();
        let starts: Vec<u64> = documents
            .iter()
            .scan(0, |start, bytes| Some(std::mem::replace(start, *start + bytes.len() as u64)))
            .collect();
        for compression in [Compression::None, Compression::Gzip, Compression::Zstd] {
            let (_folder, file) = written(&bytes, compression);
            let mut reader = open(&file).expect("opened");
            for place in [0, 1, 5, 20, 21, 399] {
                reader.skip_to(starts[place]).expect("there");
                let (frame, position) = reader.next_frame().expect("read").expect("a document");
                assert!(frame.bytes() == documents[place], "{compression:?} {place}");
                assert_eq!(position.offset, starts[place]);
                assert_eq!(position.end, starts[place] + documents[place].len() as u64);
            }
            assert!(reader.next_frame().expect("read").is_none());
            let end = bytes.len() as u64;
            assert_eq!(reader.position(), Position { offset: end, origin: file.bytes, end });
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
