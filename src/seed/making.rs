//! Makes documents as they are read, for a loader that takes them from a file else.
//!
//! A few chunks are made at a time, on all threads, and handed on in the order of their numbers.
//! The buffers stay, so that nothing is allocated per document, and memory is the chunks of one
//! window.

use std::io::{self, Read};
use std::ops::Range;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use rayon::prelude::*;

use super::{Collections, Generator, mean_bytes};
use crate::dump::{CollectionKind, DumpEntry, Inventory, Made, Maker, Origin};

/// Bytes of a chunk, about: large enough that handing it to a thread does not show, and small
/// enough to stay in the cache of the thread that reads it.
const CHUNK_BYTES: u64 = 256 << 10;

/// Chunks of a window, at most: more threads than this make documents faster than they are read.
const CHUNKS_MAX: u64 = 16;

/// Bytes of a window, about, unless one document alone is more.
const WINDOW_BYTES: u64 = CHUNK_BYTES * CHUNKS_MAX;

/// Documents by which others are known again, beside the last one.
const MARK_DOCUMENTS: usize = 16;

/// What is made of these collections as the list of a dump that lies nowhere. With a duration,
/// documents are made until it is over, counted from the first one.
pub fn inventory(spec: &dyn Collections, duration: Option<Duration>) -> Inventory {
    let means = mean_bytes(spec);
    let until = duration.map(|duration| Arc::new(Until::over(duration)));
    let entries = (1..=spec.count()).zip(means).map(|(number, mean_bytes)| {
        let collection = Collection {
            generator: spec.generator(number),
            numbers: spec.numbers(number),
            mean_bytes,
            until: until.clone(),
            ended: OnceLock::new(),
        };
        let made =
            Made::by(Arc::new(Shared(Arc::new(collection))), format!("{} documents", spec.name()));
        DumpEntry {
            namespace: spec.namespace(number),
            kind: CollectionKind::Collection,
            data: Some(Origin::Made(made)),
            metadata: Some(spec.metadata(number)),
            metadata_path: None,
            problem: None,
        }
    });
    Inventory { entries: entries.collect(), ..Inventory::default() }
}

/// The moment at which no more documents are made.
#[derive(Debug)]
struct Until {
    duration: Duration,
    began: OnceLock<Instant>,
}

impl Until {
    fn over(duration: Duration) -> Self {
        Self { duration, began: OnceLock::new() }
    }

    fn has_come(&self) -> bool {
        self.began.get_or_init(Instant::now).elapsed() >= self.duration
    }
}

/// The documents of one collection.
#[derive(Debug)]
struct Collection {
    generator: Generator,
    numbers: Range<u64>,
    mean_bytes: u64,
    until: Option<Arc<Until>>,
    /// The number after the last document, once time was over: the same for whoever makes the
    /// documents again.
    ended: OnceLock<u64>,
}

/// A collection that several may make at once.
#[derive(Debug)]
struct Shared(Arc<Collection>);

impl Maker for Shared {
    fn bytes(&self) -> u64 {
        let Collection { until, numbers, mean_bytes, .. } = &*self.0;
        match until {
            // How many there will be is not known.
            Some(_) => 0,
            None => (numbers.end - numbers.start).saturating_mul(*mean_bytes),
        }
    }

    fn mark(&self) -> Option<Vec<u8>> {
        let Collection { generator, numbers, until, .. } = &*self.0;
        if until.is_some() {
            return None;
        }
        let mut mark = [numbers.start, numbers.end].map(u64::to_le_bytes).concat();
        let first = numbers.clone().take(MARK_DOCUMENTS);
        let last = (!numbers.is_empty()).then(|| numbers.end - 1);
        first.chain(last).for_each(|number| generator.append(number, &mut mark));
        Some(mark)
    }

    fn open(&self) -> Box<dyn Read + Send> {
        let (of, next) = (Arc::clone(&self.0), self.0.numbers.start);
        Box::new(Documents { of, next, chunks: Vec::new(), chunk: 0, at: 0 })
    }
}

impl Collection {
    /// The number after the last document, as far as is known when `next` is to be made.
    fn end(&self, next: u64) -> u64 {
        match &self.until {
            Some(until) if self.ended.get().is_some() || until.has_come() => {
                *self.ended.get_or_init(|| next)
            }
            _ => self.numbers.end,
        }
    }

    /// How many documents a chunk holds, and a window how many chunks.
    fn window(&self) -> (u64, u64) {
        let documents = (CHUNK_BYTES / self.mean_bytes).max(1);
        let chunks = WINDOW_BYTES / documents.saturating_mul(self.mean_bytes).max(1);
        let threads = rayon::current_num_threads() as u64;
        (documents, chunks.min(threads).clamp(1, CHUNKS_MAX))
    }
}

/// Documents of a collection, in the order of their numbers.
struct Documents {
    of: Arc<Collection>,
    next: u64,
    chunks: Vec<Vec<u8>>,
    /// The chunk that is read, and how much of it was.
    chunk: usize,
    at: usize,
}

impl Documents {
    /// Makes the next window; false where there are no more documents.
    fn make(&mut self) -> bool {
        let (first, end) = (self.next, self.of.end(self.next));
        if first >= end {
            return false;
        }
        let (documents, chunks) = self.of.window();
        let chunks = (end - first).div_ceil(documents).min(chunks);
        self.next = end.min(first + documents * chunks);
        self.chunks.resize_with(usize::try_from(chunks).unwrap_or(1), Vec::new);
        let (generator, end) = (&self.of.generator, self.next);
        let fill = |(place, chunk): (u64, &mut Vec<u8>)| {
            let begins = first + place * documents;
            chunk.clear();
            (begins..end.min(begins + documents))
                .for_each(|number| generator.append(number, chunk));
        };
        match &mut self.chunks[..] {
            [chunk] => fill((0, chunk)),
            chunks => chunks
                .par_iter_mut()
                .enumerate()
                .for_each(|(place, chunk)| fill((place as u64, chunk))),
        }
        (self.chunk, self.at) = (0, 0);
        true
    }
}

impl Read for Documents {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let Some(chunk) = self.chunks.get(self.chunk) else {
                if self.make() {
                    continue;
                }
                return Ok(0);
            };
            let rest = &chunk[self.at..];
            if rest.is_empty() {
                (self.chunk, self.at) = (self.chunk + 1, 0);
                continue;
            }
            let count = rest.len().min(buffer.len());
            buffer[..count].copy_from_slice(&rest[..count]);
            self.at += count;
            return Ok(count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seed::{SeedSpec, Shape};

    fn spec(first: u64, documents: u64) -> SeedSpec {
        let (database, shape) = ("seed".to_owned(), Shape::Wide);
        SeedSpec { database, collections: 2, first, documents, shape, indexes: 0, seed: 3 }
    }

    fn made(inventory: &Inventory, collection: usize) -> Vec<u8> {
        let Some(Origin::Made(made)) = &inventory.entries[collection].data else {
            panic!("it is made");
        };
        let mut bytes = Vec::new();
        made.begin().read_to_end(&mut bytes).expect("nothing to fail");
        bytes
    }

    fn expected(spec: &SeedSpec, collection: u32) -> Vec<u8> {
        let mut bytes = Vec::new();
        let generator = spec.generator(collection);
        spec.numbers().for_each(|number| generator.append(number, &mut bytes));
        bytes
    }

    #[test]
    fn what_is_read_are_the_documents_in_their_order_on_any_number_of_threads() {
        let spec = spec(7, 30_001);
        for threads in [1, 3, 8] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
            let read = || made(&inventory(&spec, None), 1);
            assert!(pool.expect("a pool").install(read) == expected(&spec, 2), "{threads}");
        }
    }

    #[test]
    fn time_that_is_over_ends_a_collection_for_good() {
        let spec = spec(0, u64::MAX);
        let inventory = inventory(&spec, Some(Duration::from_millis(30)));
        let first = made(&inventory, 0);
        assert!(!first.is_empty());
        assert!(first == made(&inventory, 0));
        assert!(first.starts_with(&expected(&SeedSpec { documents: 10, ..spec }, 1)));
    }

    #[test]
    fn nothing_is_made_of_no_documents() {
        assert!(made(&inventory(&spec(5, 0), None), 0).is_empty());
    }
}
