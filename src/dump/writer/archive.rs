//! Writes an archive as mongodump does.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use bson::{Document, doc};

use super::{GZIP_LEVEL, WholeFile, ZSTD_LEVEL, failed};
use crate::dump::archive::MAGIC;
use crate::dump::archive::checksum::Checksum;
use crate::dump::archive::piece::TERMINATOR;
use crate::dump::{CollectionMetadata, Compression};
use crate::error::Error;
use crate::namespace::Namespace;

/// The version of the format.
const VERSION: &str = "0.1";

/// A collection as the list of an archive names it.
#[derive(Clone, Debug)]
pub struct ArchivedCollection {
    /// Its name; of a time-series collection its own.
    pub namespace: Namespace,
    /// Its options and indexes.
    pub metadata: CollectionMetadata,
}

impl ArchivedCollection {
    fn listed(&self) -> Document {
        let kind = match self.metadata.kind.as_deref() {
            Some(kind) => kind,
            None if self.metadata.is_time_series() => "timeseries",
            None if self.metadata.is_view() => "view",
            None => "collection",
        };
        doc! {
            "db": self.namespace.database(), "collection": self.namespace.collection(),
            "metadata": self.metadata.to_json(), "size": 0, "type": kind,
        }
    }

    /// The collection that holds its documents.
    fn of_data(&self) -> Namespace {
        if self.metadata.is_time_series() {
            self.namespace.buckets()
        } else {
            self.namespace.clone()
        }
    }
}

/// An archive that is being written. Collections are named by their place in the list.
pub struct ArchiveWriter<W: Write> {
    out: Packed<W>,
    collections: Vec<(Namespace, Checksum)>,
    /// The collection whose segment is open.
    open: Option<usize>,
}

impl<W: Write> ArchiveWriter<W> {
    /// Writes everything before the first segment.
    ///
    /// Some readers need as many workers as `concurrent_collections` says are interleaved; this
    /// project's own does not. Where there is no server's version, it is given as `unknown`; the
    /// peer does not read that.
    pub fn begin(
        out: W,
        compression: Compression,
        concurrent_collections: i32,
        server_version: Option<&str>,
        collections: &[ArchivedCollection],
    ) -> io::Result<Self> {
        let mut out = Packed::new(out, compression)?;
        out.write_all(&MAGIC)?;
        let header = doc! {
            "concurrent_collections": concurrent_collections, "version": VERSION,
            "server_version": server_version.unwrap_or("unknown"),
            "tool_version": format!("restorm {}", env!("CARGO_PKG_VERSION")),
        };
        put(&mut out, &header)?;
        for collection in collections {
            put(&mut out, &collection.listed())?;
        }
        out.write_all(&TERMINATOR)?;
        let collections = collections.iter().map(|one| (one.of_data(), Checksum::new())).collect();
        Ok(Self { out, collections, open: None })
    }

    /// Appends whole documents of a collection; begins a segment where another one's is open.
    pub fn append(&mut self, place: usize, documents: &[u8]) -> io::Result<()> {
        if self.open != Some(place) {
            self.close_segment()?;
            self.header(place, false, 0)?;
            self.open = Some(place);
        }
        self.collections[place].1.update(documents);
        self.out.write_all(documents)
    }

    /// Ends a collection, of which nothing may be appended any more.
    pub fn end(&mut self, place: usize) -> io::Result<()> {
        self.close_segment()?;
        self.header(place, true, self.collections[place].1.value())?;
        self.out.write_all(&TERMINATOR)
    }

    /// Writes what is left in buffers and returns what was written to.
    pub fn finish(mut self) -> io::Result<W> {
        self.close_segment()?;
        self.out.finish()
    }

    fn close_segment(&mut self) -> io::Result<()> {
        match self.open.take() {
            Some(_) => self.out.write_all(&TERMINATOR),
            None => Ok(()),
        }
    }

    fn header(&mut self, place: usize, is_end: bool, checksum: u64) -> io::Result<()> {
        let namespace = &self.collections[place].0;
        let header = doc! {
            "db": namespace.database(), "collection": namespace.collection(),
            "EOF": is_end, "CRC": checksum.cast_signed(),
        };
        put(&mut self.out, &header)
    }
}

fn put(out: &mut impl Write, document: &Document) -> io::Result<()> {
    let bytes = document.to_vec().map_err(io::Error::other)?;
    out.write_all(&bytes)
}

/// One stream of compressed bytes.
enum Packed<W: Write> {
    None(W),
    Gzip(flate2::write::GzEncoder<W>),
    Zstd(zstd::Encoder<'static, W>),
}

impl<W: Write> Packed<W> {
    fn new(out: W, compression: Compression) -> io::Result<Self> {
        Ok(match compression {
            Compression::None => Self::None(out),
            Compression::Gzip => {
                let level = flate2::Compression::new(GZIP_LEVEL);
                Self::Gzip(flate2::write::GzEncoder::new(out, level))
            }
            Compression::Zstd => Self::Zstd(zstd::Encoder::new(out, ZSTD_LEVEL)?),
        })
    }

    fn finish(self) -> io::Result<W> {
        let mut out = match self {
            Self::None(out) => out,
            Self::Gzip(encoder) => encoder.finish()?,
            Self::Zstd(encoder) => encoder.finish()?,
        };
        out.flush()?;
        Ok(out)
    }
}

impl<W: Write> Write for Packed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::None(out) => out.write(bytes),
            Self::Gzip(encoder) => encoder.write(bytes),
            Self::Zstd(encoder) => encoder.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::None(out) => out.flush(),
            Self::Gzip(encoder) => encoder.flush(),
            Self::Zstd(encoder) => encoder.flush(),
        }
    }
}

/// A file that an archive is written to; it has its name only once it is whole.
pub struct ArchiveFile {
    file: WholeFile,
}

impl ArchiveFile {
    /// Creates the file under a partial name.
    pub fn create(path: &Path) -> Result<Self, Error> {
        Ok(Self { file: WholeFile::create(path.to_path_buf())? })
    }

    /// Where the archive goes.
    pub fn out(&self) -> Result<impl Write + use<>, Error> {
        let out = self.file.file.try_clone();
        Ok(BufWriter::new(out.map_err(failed("cannot be written", &self.file.partial))?))
    }

    /// Gives the file its name.
    pub fn finish(self) -> Result<(), Error> {
        self.file.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dump::archive::{ArchivePlace, scan};
    use crate::dump::{Inventory, Origin, Selection};
    use crate::namespace::filter::NamespaceFilter;
    use crate::reader::demux::{Demux, Item};
    use proptest::prelude::*;

    fn document(number: usize) -> Vec<u8> {
        let text = "x".repeat(3 * number % 97);
        let number = i64::try_from(number).expect("small");
        doc! { "_id": number, "p": text }.to_vec().expect("encodes")
    }

    fn collections(count: usize) -> Vec<ArchivedCollection> {
        let one = |number: usize| ArchivedCollection {
            namespace: Namespace::new("shop", format!("c{number:02}")),
            metadata: CollectionMetadata::default(),
        };
        (0..count).map(one).collect()
    }

    /// Writes segments of these collections, each of so many documents, and ends all collections.
    fn written(
        count: usize,
        segments: &[(usize, usize)],
        compression: Compression,
    ) -> (Vec<u8>, Vec<Vec<Vec<u8>>>) {
        let mut documents = vec![Vec::new(); count];
        let listed = collections(count);
        let mut writer =
            ArchiveWriter::begin(Vec::new(), compression, 1, None, &listed).expect("begun");
        let mut number = 0;
        for &(place, length) in segments {
            for _ in 0..length {
                number += 1;
                writer.append(place, &document(number)).expect("written");
                documents[place].push(document(number));
            }
        }
        (0..count).for_each(|place| writer.end(place).expect("ended"));
        (writer.finish().expect("finished"), documents)
    }

    fn listed(folder: &Path, bytes: &[u8]) -> Result<Inventory, Error> {
        let path = folder.join("a.archive");
        std::fs::write(&path, bytes).expect("written");
        scan(&ArchivePlace::File(path), &Selection::default(), &NamespaceFilter::default(), None)
    }

    fn read(inventory: &Inventory) -> Result<Vec<Vec<Vec<u8>>>, Error> {
        let data = inventory.entries[0].data.as_ref().and_then(Origin::segments);
        let mut demux = Demux::open(&data.expect("segments").archive)?;
        let mut documents = vec![Vec::new(); inventory.entries.len()];
        let mut origin = vec![0; inventory.entries.len()];
        while let Some(item) = demux.next_item()? {
            match item {
                Item::Begin { place } => assert!(documents[place].is_empty()),
                Item::Document { place, frame, position } => {
                    documents[place].push(frame.bytes().to_vec());
                    assert!(position.origin >= origin[place]);
                    origin[place] = position.origin;
                }
                Item::End { checked, .. } => checked?,
            }
        }
        Ok(documents)
    }

    proptest! {
        #[test]
        fn what_was_interleaved_is_taken_apart(
            count in 1_usize..8,
            segments in prop::collection::vec((0_usize..8, 0_usize..30), 0..40),
            compression in 0_usize..3,
        ) {
            let compression =
                [Compression::None, Compression::Gzip, Compression::Zstd][compression];
            let segments: Vec<_> =
                segments.into_iter().map(|(place, length)| (place % count, length)).collect();
            let (bytes, documents) = written(count, &segments, compression);
            let folder = tempfile::tempdir().expect("a folder");
            let inventory = listed(folder.path(), &bytes).expect("an archive");
            prop_assert_eq!(inventory.entries.len(), count);
            prop_assert_eq!(inventory.server_version, None);
            prop_assert_eq!(&read(&inventory).expect("sound"), &documents);
            // What is a file may be read again.
            prop_assert_eq!(&read(&inventory).expect("sound"), &documents);
        }

        #[test]
        fn no_flipped_bit_in_a_document_goes_unnoticed(
            number in 1_usize..=65,
            at in any::<usize>(),
            bit in 0_usize..8,
        ) {
            let segments = [(0, 20), (1, 10), (0, 5), (2, 30)];
            let (mut bytes, _) = written(3, &segments, Compression::None);
            let good = document(number);
            let place = bytes.windows(good.len()).position(|window| window == good);
            bytes[place.expect("it is there") + at % good.len()] ^= 1 << bit;
            let folder = tempfile::tempdir().expect("a folder");
            let noticed = listed(folder.path(), &bytes).and_then(|inventory| read(&inventory));
            prop_assert!(noticed.is_err());
        }
    }

    #[test]
    fn an_archive_that_ends_at_any_byte_is_incomplete() {
        let (bytes, _) = written(2, &[(0, 3), (1, 2), (0, 1)], Compression::None);
        let folder = tempfile::tempdir().expect("a folder");
        for end in 0..bytes.len() {
            let cut = listed(folder.path(), &bytes[..end]).and_then(|inventory| read(&inventory));
            let error = cut.expect_err("it is cut");
            assert!(error.offset().is_some_and(|offset| offset <= end as u64), "{end}: {error}");
        }
        assert!(listed(folder.path(), &bytes).and_then(|inventory| read(&inventory)).is_ok());
    }
}
