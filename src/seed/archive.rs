//! Writes the documents of all collections into an archive, a few collections interleaved.
//!
//! Chunks are made on all threads, a window of them at a time, and written one after the other, so
//! that the bytes do not depend on the number of threads and memory is one window.

use std::io::{self, Write};
use std::ops::Range;

use rayon::prelude::*;

use super::parallel::{Produced, chunk_documents};
use super::{Collections, mean_bytes};
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
pub fn listed(spec: &dyn Collections) -> Vec<ArchivedCollection> {
    (1..=spec.count())
        .map(|number| ArchivedCollection {
            namespace: spec.namespace(number),
            metadata: spec.metadata(number),
        })
        .collect()
}

/// Appends all documents to an archive that has begun with [`listed`].
pub fn append<W: Write>(
    spec: &dyn Collections,
    archive: &mut ArchiveWriter<W>,
) -> io::Result<Produced> {
    let mut produced = Produced::default();
    let window = rayon::current_num_threads() * CHUNKS_PER_THREAD;
    let mut chunks = chunks(spec).peekable();
    while chunks.peek().is_some() {
        let next: Vec<Chunk> = chunks.by_ref().take(window).collect();
        let made: Vec<Vec<u8>> = next.par_iter().map(|chunk| make(spec, *chunk)).collect();
        for (chunk, documents) in next.iter().zip(made) {
            let place = chunk.collection as usize - 1;
            archive.append(place, &documents)?;
            if chunk.end == spec.numbers(chunk.collection).end {
                archive.end(place)?;
            }
            produced.documents += chunk.end - chunk.first;
            produced.bytes += documents.len() as u64;
        }
    }
    Ok(produced)
}

/// The chunks in the order of the archive: a few collections take turns, then the next few.
fn chunks(spec: &dyn Collections) -> impl Iterator<Item = Chunk> {
    let collections = spec.count();
    let at_once: Vec<_> = mean_bytes(spec).into_iter().map(chunk_documents).collect();
    (0..collections.div_ceil(INTERLEAVED)).flat_map(move |group| {
        let first = group * INTERLEAVED + 1;
        let last = collections.min(first + INTERLEAVED - 1);
        let group: Vec<_> = (first..=last)
            .map(|number| (number, spec.numbers(number), at_once[number as usize - 1]))
            .collect();
        // A collection without documents has one chunk, which ends it.
        let turns = |numbers: &Range<u64>, at_once: u64| {
            (numbers.end - numbers.start).div_ceil(at_once).max(1)
        };
        let most = group.iter().map(|(_, numbers, at_once)| turns(numbers, *at_once)).max();
        (0..most.unwrap_or(0)).flat_map(move |turn| {
            let chunks = group.iter().filter_map(|(collection, numbers, at_once)| {
                let first = numbers.start + turn * at_once;
                let end = numbers.end.min(first + at_once);
                let chunk = Chunk { collection: *collection, first, end };
                (turn < turns(numbers, *at_once)).then_some(chunk)
            });
            chunks.collect::<Vec<_>>()
        })
    })
}

fn make(spec: &dyn Collections, chunk: Chunk) -> Vec<u8> {
    let generator = spec.generator(chunk.collection);
    let mut documents = Vec::new();
    (chunk.first..chunk.end).for_each(|number| generator.append(number, &mut documents));
    documents
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dump::Compression;
    use crate::seed::parallel::CHUNK_DOCUMENTS;
    use crate::seed::{SeedSpec, Shape};

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
