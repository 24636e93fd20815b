//! Writes the documents of all collections into an archive, a few collections interleaved.
//!
//! Chunks are made on all threads, a window of them at a time, and written one after the other, so
//! that the bytes do not depend on the number of threads and memory is one window.

use std::io::{self, Write};

use rayon::prelude::*;

use super::SeedSpec;
use super::parallel::{Produced, chunk_documents};
use crate::dump::writer::archive::{ArchiveWriter, ArchivedCollection};

/// Collections that are interleaved, as mongodump does by default.
pub const INTERLEAVED: u32 = 4;

/// Chunks in a window, for each thread.
const CHUNKS_PER_THREAD: usize = 2;

/// A run of documents of one collection; the collections are counted from 1, documents from 0.
#[derive(Clone, Copy, Debug)]
struct Chunk {
    collection: u32,
    first: u64,
    end: u64,
}

/// The list of the archive.
pub fn listed(spec: &SeedSpec) -> Vec<ArchivedCollection> {
    (1..=spec.collections)
        .map(|number| ArchivedCollection {
            namespace: spec.namespace(number),
            metadata: spec.metadata(number),
        })
        .collect()
}

/// Appends all documents to an archive that has begun with [`listed`].
pub fn append<W: Write>(spec: &SeedSpec, archive: &mut ArchiveWriter<W>) -> io::Result<Produced> {
    let mut produced = Produced::default();
    let window = rayon::current_num_threads() * CHUNKS_PER_THREAD;
    let mut chunks = chunks(spec).peekable();
    while chunks.peek().is_some() {
        let next: Vec<Chunk> = chunks.by_ref().take(window).collect();
        let made: Vec<Vec<u8>> = next.par_iter().map(|chunk| make(spec, *chunk)).collect();
        for (chunk, documents) in next.iter().zip(made) {
            let place = chunk.collection as usize - 1;
            archive.append(place, &documents)?;
            if chunk.end == spec.numbers().end {
                archive.end(place)?;
            }
            produced.documents += chunk.end - chunk.first;
            produced.bytes += documents.len() as u64;
        }
    }
    Ok(produced)
}

/// The chunks in the order of the archive: a few collections take turns, then the next few.
fn chunks(spec: &SeedSpec) -> impl Iterator<Item = Chunk> {
    let (collections, numbers) = (spec.collections, spec.numbers());
    let at_once = chunk_documents(spec);
    let turns = spec.documents.div_ceil(at_once).max(1);
    (0..collections.div_ceil(INTERLEAVED)).flat_map(move |group| {
        let first = group * INTERLEAVED + 1;
        let last = collections.min(first + INTERLEAVED - 1);
        let numbers = numbers.clone();
        (0..turns).flat_map(move |turn| {
            let begins = numbers.start + turn * at_once;
            let end = numbers.end.min(begins + at_once);
            (first..=last).map(move |collection| Chunk { collection, first: begins, end })
        })
    })
}

fn make(spec: &SeedSpec, chunk: Chunk) -> Vec<u8> {
    let generator = spec.generator(chunk.collection);
    let mut documents = Vec::new();
    (chunk.first..chunk.end).for_each(|number| generator.append(number, &mut documents));
    documents
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dump::Compression;
    use crate::seed::Shape;
    use crate::seed::parallel::CHUNK_DOCUMENTS;

    #[test]
    fn the_bytes_do_not_depend_on_the_threads() {
        let spec = SeedSpec {
            database: "seed".to_owned(),
            collections: 6,
            first: 0,
            documents: CHUNK_DOCUMENTS + 10,
            shape: Shape::Empty,
            indexes: 0,
            seed: 1,
        };
        let with = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
            pool.expect("a pool").install(|| {
                let list = listed(&spec);
                let begun = ArchiveWriter::begin(Vec::new(), Compression::None, 4, None, &list);
                let mut archive = begun.expect("begun");
                let produced = append(&spec, &mut archive).expect("written");
                assert_eq!(produced.documents, 6 * spec.documents);
                archive.finish().expect("finished")
            })
        };
        assert!(with(1) == with(5));
    }
}
