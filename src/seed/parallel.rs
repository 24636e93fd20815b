//! Makes the documents of all collections on every thread and writes each file in its order.
//!
//! The work is one list of chunks, collection after collection. A thread takes the next chunk,
//! makes it in its own buffer, and waits for its turn to write it. The chunks before it are all
//! with threads that run, so the wait ends, and memory is one buffer per thread however fast the
//! documents come and however slow the disk is.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

use super::{Collections, mean_bytes};
use crate::dump::writer::{CollectionWriter, DumpWriter};
use crate::error::Error;

/// Documents in a chunk: about two megabytes of the widest shape, so that neither taking turns
/// nor the call that writes shows.
pub(super) const CHUNK_DOCUMENTS: u64 = 10_000;

/// Bytes of a chunk, about, unless one document alone is more: large documents come in fewer.
const CHUNK_BYTES: u64 = 4 << 20;

/// Documents in a chunk where they have about so many bytes.
pub(super) fn chunk_documents(mean_bytes: u64) -> u64 {
    CHUNK_DOCUMENTS.min(CHUNK_BYTES / mean_bytes.max(1)).max(1)
}

/// What was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Produced {
    /// Documents.
    pub documents: u64,
    /// Their bytes, uncompressed.
    pub bytes: u64,
}

/// Writes the collections into a dump, on all threads of the current rayon pool.
///
/// The bytes do not depend on the number of threads. Fails with the first thing that could not be
/// written; what is not complete then is left under a partial name.
pub fn produce(spec: &dyn Collections, dump: &DumpWriter) -> Result<Produced, Error> {
    let work = Work::new(spec, dump);
    let results = rayon::broadcast(|_| work.run());
    let mut total = Produced::default();
    for result in results {
        let part = result?;
        total.documents += part.documents;
        total.bytes += part.bytes;
    }
    Ok(total)
}

struct Work<'a> {
    spec: &'a dyn Collections,
    dump: &'a DumpWriter,
    lanes: Vec<Lane>,
    /// Documents in a chunk of each collection.
    chunk_documents: Vec<u64>,
    /// The number of the first chunk behind each collection.
    chunks_until: Vec<u64>,
    next_chunk: AtomicU64,
    failed: AtomicBool,
}

/// A chunk: the documents of one collection from `first` up to but not including `end`.
struct Chunk {
    collection: u32,
    turn: u64,
    first: u64,
    end: u64,
}

impl<'a> Work<'a> {
    fn new(spec: &'a dyn Collections, dump: &'a DumpWriter) -> Self {
        let chunk_documents: Vec<_> = mean_bytes(spec).into_iter().map(chunk_documents).collect();
        let mut chunks = 0;
        let chunks_until = (1..=spec.count()).zip(&chunk_documents).map(|(number, at_once)| {
            let numbers = spec.numbers(number);
            // A collection without documents has one chunk, which makes its files.
            chunks += (numbers.end - numbers.start).div_ceil(*at_once).max(1);
            chunks
        });
        Self {
            spec,
            dump,
            lanes: (0..spec.count()).map(|_| Lane::default()).collect(),
            chunks_until: chunks_until.collect(),
            chunk_documents,
            next_chunk: AtomicU64::new(0),
            failed: AtomicBool::new(false),
        }
    }

    /// Takes chunks until there are none left or something failed.
    fn run(&self) -> Result<Produced, Error> {
        let result = self.take_chunks();
        if result.is_err() {
            self.failed.store(true, Ordering::Relaxed);
        }
        result
    }

    fn take_chunks(&self) -> Result<Produced, Error> {
        let mut produced = Produced::default();
        let mut documents = Vec::new();
        let mut packer = self.dump.packer()?;
        while let Some(chunk) = self.next() {
            documents.clear();
            let generator = self.spec.generator(chunk.collection);
            (chunk.first..chunk.end).for_each(|number| generator.append(number, &mut documents));
            let content = packer.pack(&documents);
            self.lanes[chunk.collection as usize - 1]
                .take_turn(chunk.turn, |writer| self.write(&chunk, content?, writer))?;
            produced.documents += chunk.end - chunk.first;
            produced.bytes += documents.len() as u64;
        }
        Ok(produced)
    }

    fn next(&self) -> Option<Chunk> {
        if self.failed.load(Ordering::Relaxed) {
            return None;
        }
        let number = self.next_chunk.fetch_add(1, Ordering::Relaxed);
        let place = self.chunks_until.partition_point(|until| *until <= number);
        let at_once = *self.chunk_documents.get(place)?;
        let before = place.checked_sub(1).map_or(0, |before| self.chunks_until[before]);
        let turn = number - before;
        let collection = u32::try_from(place).ok()? + 1;
        let numbers = self.spec.numbers(collection);
        let first = numbers.start + turn * at_once;
        let end = numbers.end.min(first + at_once);
        Some(Chunk { collection, turn, first, end })
    }

    fn write(
        &self,
        chunk: &Chunk,
        packed: &[u8],
        writer: Option<CollectionWriter>,
    ) -> Result<Option<CollectionWriter>, Error> {
        let mut writer = match writer {
            Some(writer) => writer,
            None => self.dump.begin(&self.spec.namespace(chunk.collection))?,
        };
        writer.append(packed)?;
        if chunk.end < self.spec.numbers(chunk.collection).end {
            return Ok(Some(writer));
        }
        writer.finish(&self.spec.metadata(chunk.collection))?;
        Ok(None)
    }
}

/// Lets the chunks of one file be written in their order.
#[derive(Default)]
struct Lane {
    state: Mutex<LaneState>,
    moved: Condvar,
}

#[derive(Default)]
struct LaneState {
    turn: u64,
    writer: Option<CollectionWriter>,
    failed: bool,
}

impl Lane {
    /// Waits for the turn and writes; does nothing where a chunk before could not be written.
    fn take_turn(
        &self,
        turn: u64,
        write: impl FnOnce(Option<CollectionWriter>) -> Result<Option<CollectionWriter>, Error>,
    ) -> Result<(), Error> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let mut state = self
            .moved
            .wait_while(state, |state| state.turn != turn && !state.failed)
            .unwrap_or_else(PoisonError::into_inner);
        if state.failed {
            return Ok(());
        }
        let result = write(state.writer.take()).map(|writer| state.writer = writer);
        state.turn += 1;
        state.failed = result.is_err();
        self.moved.notify_all();
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dump::Compression;
    use crate::dump::inventory::DataFile;
    use crate::dump::writer::Existing;
    use crate::reader;
    use crate::seed::{SeedSpec, Shape};
    use std::collections::BTreeMap;
    use std::path::Path;

    fn spec(collections: u32, documents: u64) -> SeedSpec {
        let database = "seed".to_owned();
        let shape = Shape::Wide;
        SeedSpec { database, collections, first: 0, documents, shape, indexes: 2, seed: 3 }
    }

    fn produced_by(
        threads: usize,
        spec: &SeedSpec,
        compression: Compression,
        root: &Path,
    ) -> Result<Produced, Error> {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool");
        let dump = DumpWriter::create(root, compression, Existing::Refuse)?;
        dump.begin_database(&spec.database)?;
        pool.install(|| produce(spec, &dump))
    }

    fn contents(folder: &Path) -> BTreeMap<String, Vec<u8>> {
        let files = std::fs::read_dir(folder).expect("listed").map(|file| file.expect("a file"));
        files
            .map(|file| {
                let name = file.file_name().into_string().expect("UTF-8");
                (name, std::fs::read(file.path()).expect("read"))
            })
            .collect()
    }

    #[test]
    fn any_number_of_threads_writes_the_same_files() {
        let spec = spec(2, CHUNK_DOCUMENTS + 17);
        for compression in [Compression::None, Compression::Gzip, Compression::Zstd] {
            let folder = tempfile::tempdir().expect("a folder");
            let made = [1, 4].map(|threads| {
                let root = folder.path().join(threads.to_string());
                let produced = produced_by(threads, &spec, compression, &root).expect("made");
                (produced, contents(&root.join("seed")))
            });
            assert_eq!(made[0].0.documents, 2 * spec.documents);
            assert_eq!(made[0].1.len(), 4, "{:?}", made[0].1.keys());
            assert!(made[0] == made[1], "{compression:?}");
        }
    }

    #[test]
    fn the_files_hold_the_documents_in_their_order() {
        let spec = spec(2, CHUNK_DOCUMENTS + 1);
        for (compression, ending) in
            [(Compression::None, ""), (Compression::Gzip, ".gz"), (Compression::Zstd, ".zst")]
        {
            let folder = tempfile::tempdir().expect("a folder");
            produced_by(2, &spec, compression, folder.path()).expect("made");
            let path = folder.path().join(format!("seed/c00002.bson{ending}"));
            let bytes = path.metadata().expect("there").len();
            let mut reader = reader::open(&DataFile { path, compression, bytes }).expect("opened");
            let generator = spec.generator(2);
            let mut expected = Vec::new();
            for number in 0..spec.documents {
                expected.clear();
                generator.append(number, &mut expected);
                let (frame, _) = reader.next_frame().expect("read").expect("a document");
                assert_eq!(frame.bytes(), expected);
            }
            assert!(reader.next_frame().expect("read").is_none());
        }
    }

    #[test]
    fn parts_that_are_made_apart_are_the_whole() {
        let folder = tempfile::tempdir().expect("a folder");
        let made = |first, documents| {
            let root = folder.path().join(format!("{first}"));
            let spec = SeedSpec { first, ..spec(2, documents) };
            produced_by(2, &spec, Compression::None, &root).expect("made");
            contents(&root.join("seed"))
        };
        let all = CHUNK_DOCUMENTS + 500;
        let parts = [made(1, 9), made(10, CHUNK_DOCUMENTS), made(CHUNK_DOCUMENTS + 10, 490)];
        let whole = made(0, all);
        for name in ["c00001.bson", "c00002.bson"] {
            let first = crate::frame::length(*whole[name].first_chunk().expect("a document"));
            let joined = parts.iter().flat_map(|part| part[name].clone()).collect::<Vec<_>>();
            assert!(whole[name][first.expect("a length")..] == joined, "{name}");
        }
    }

    #[test]
    fn collections_without_documents_are_made() {
        let folder = tempfile::tempdir().expect("a folder");
        let produced =
            produced_by(2, &spec(50, 0), Compression::None, folder.path()).expect("made");
        assert_eq!(produced, Produced::default());
        let contents = contents(&folder.path().join("seed"));
        assert_eq!(contents.len(), 100);
        assert!(contents["c00050.bson"].is_empty());
    }

    #[test]
    fn a_file_that_cannot_be_written_ends_all_threads() {
        let spec = spec(4, 3 * CHUNK_DOCUMENTS);
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir_all(folder.path().join("d/seed/c00002.bson.partial")).expect("made");
        let dump =
            DumpWriter::create(&folder.path().join("d"), Compression::None, Existing::Replace)
                .expect("created");
        let pool = rayon::ThreadPoolBuilder::new().num_threads(4).build().expect("a pool");
        let error = pool.install(|| produce(&spec, &dump)).expect_err("refused");
        assert!(error.to_string().contains("c00002.bson"), "{error}");
    }
}
