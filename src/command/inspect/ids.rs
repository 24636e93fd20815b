//! Finds documents with the same `_id` in bounded memory.
//!
//! Of each `_id` 128 bits of hash are kept with the place of its document. What does not fit into
//! memory is sorted and written to a temporary file without a name; in the end the sorted parts are
//! merged, and what is equal lies side by side. Two different `_id`s count as the same once in
//! 10³⁸ pairs.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::FileExt;

use twox_hash::XxHash3_128;

use crate::command::inspect::id;
use crate::dump::temporary::unnamed;
use crate::frame::Frame;
use crate::limits::{IDS_HELD_BYTES, IDS_READ_BYTES};

/// One `_id`: its hash, the place of its collection, the byte at which its document begins.
type Entry = (u128, u32, u64);

/// The bytes of an entry in a file.
const ENTRY_BYTES: usize = 16 + 4 + 8;

/// The `_id`s of one collection, or of those of an archive.
#[derive(Debug)]
pub(super) struct Ids {
    held: Vec<Entry>,
    held_max: usize,
    spilled: Option<Spilled>,
    form: Vec<u8>,
    /// Why no more are taken, once that is so.
    failure: Option<io::Error>,
}

/// Sorted parts in a file.
#[derive(Debug)]
struct Spilled {
    file: File,
    /// Where each part ends.
    ends: Vec<u64>,
}

/// A document whose `_id` another one before it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Duplicate {
    /// The place of the collection.
    pub(super) place: usize,
    /// Where the document begins.
    pub(super) offset: u64,
    /// Where the first document of that `_id` begins.
    pub(super) first: u64,
}

impl Ids {
    pub(super) fn new() -> Self {
        Self::holding(IDS_HELD_BYTES / size_of::<Entry>())
    }

    fn holding(held_max: usize) -> Self {
        Self { held: Vec::new(), held_max, spilled: None, form: Vec::new(), failure: None }
    }

    /// Takes the `_id` of a document of sound structure that begins at this byte.
    pub(super) fn add(&mut self, place: usize, frame: Frame<'_>, offset: u64) {
        let Some(field) = frame.id().filter(|_| self.failure.is_none()) else {
            return;
        };
        self.form.clear();
        id::add(&field, &mut self.form);
        let hash = XxHash3_128::oneshot_with_seed(place as u64, &self.form);
        if self.held.len() >= self.held_max
            && let Err(error) = self.spill()
        {
            self.failure = Some(error);
            self.held = Vec::new();
            return;
        }
        self.held.push((hash, u32::try_from(place).unwrap_or(u32::MAX), offset));
    }

    fn spill(&mut self) -> io::Result<()> {
        self.held.sort_unstable();
        let spilled = match &mut self.spilled {
            Some(spilled) => spilled,
            none => {
                none.insert(Spilled { file: unnamed(&std::env::temp_dir())?, ends: Vec::new() })
            }
        };
        let mut out = BufWriter::new(&spilled.file);
        for (hash, place, offset) in &self.held {
            out.write_all(&hash.to_le_bytes())?;
            out.write_all(&place.to_le_bytes())?;
            out.write_all(&offset.to_le_bytes())?;
        }
        out.flush()?;
        drop(out);
        let before = spilled.ends.last().copied().unwrap_or_default();
        spilled.ends.push(before + (self.held.len() * ENTRY_BYTES) as u64);
        self.held.clear();
        Ok(())
    }

    /// Tells each document whose `_id` another one before it has.
    ///
    /// # Errors
    ///
    /// Where the temporary file cannot be written or read.
    pub(super) fn duplicates(mut self, mut tell: impl FnMut(Duplicate)) -> io::Result<()> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        let mut last: Option<Entry> = None;
        let mut take = |entry: Entry| match last {
            Some((hash, place, first)) if (hash, place) == (entry.0, entry.1) => {
                tell(Duplicate { place: place as usize, offset: entry.2, first });
            }
            _ => last = Some(entry),
        };
        if self.spilled.is_some() {
            self.spill()?;
        }
        self.held.sort_unstable();
        match &self.spilled {
            None => self.held.iter().copied().for_each(take),
            Some(spilled) => spilled.merge(&mut take)?,
        }
        Ok(())
    }
}

impl Spilled {
    fn merge(&self, take: &mut impl FnMut(Entry)) -> io::Result<()> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        let mut parts: Vec<_> = starts
            .zip(&self.ends)
            .map(|(at, &end)| Part { at, end, entries: Vec::new().into_iter() })
            .collect();
        let mut heap = BinaryHeap::new();
        for (number, part) in parts.iter_mut().enumerate() {
            heap.extend(part.next(&self.file)?.map(|entry| Reverse((entry, number))));
        }
        while let Some(Reverse((entry, number))) = heap.pop() {
            take(entry);
            heap.extend(parts[number].next(&self.file)?.map(|next| Reverse((next, number))));
        }
        Ok(())
    }
}

/// What was not taken yet of a sorted part.
struct Part {
    at: u64,
    end: u64,
    entries: std::vec::IntoIter<Entry>,
}

impl Part {
    fn next(&mut self, file: &File) -> io::Result<Option<Entry>> {
        if self.entries.as_slice().is_empty() && self.at < self.end {
            let whole = IDS_READ_BYTES / ENTRY_BYTES * ENTRY_BYTES;
            let left = usize::try_from(self.end - self.at).unwrap_or(usize::MAX);
            let mut bytes = vec![0; whole.min(left)];
            file.read_exact_at(&mut bytes, self.at)?;
            self.at += bytes.len() as u64;
            let entries: Vec<_> = bytes.chunks_exact(ENTRY_BYTES).map(entry).collect();
            self.entries = entries.into_iter();
        }
        Ok(self.entries.next())
    }
}

fn entry(bytes: &[u8]) -> Entry {
    let hash = bytes.first_chunk().copied().unwrap_or_default();
    let place = bytes[16..].first_chunk().copied().unwrap_or_default();
    let offset = bytes[20..].first_chunk().copied().unwrap_or_default();
    (u128::from_le_bytes(hash), u32::from_le_bytes(place), u64::from_le_bytes(offset))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::{Bson, doc};

    fn duplicates(ids: &[(usize, Bson)], held_max: usize) -> Vec<Duplicate> {
        let mut all = Ids::holding(held_max);
        for (offset, (place, id)) in ids.iter().enumerate() {
            let bytes = doc! { "a": 1, "_id": id.clone() }.to_vec().expect("encodes");
            all.add(*place, Frame::new(&bytes).expect("a frame"), offset as u64);
        }
        let mut found = Vec::new();
        all.duplicates(|duplicate| found.push(duplicate)).expect("read");
        found.sort_by_key(|duplicate| duplicate.offset);
        found
    }

    #[test]
    fn equal_ids_of_one_collection_are_found_in_memory_and_on_disk() {
        let mut ids: Vec<_> = (0..5000).map(|n| (0, Bson::Int32(n))).collect();
        ids.push((0, Bson::Double(7.0)));
        ids.push((1, Bson::Int32(7)));
        ids.push((0, Bson::Int64(7)));
        let expected = [5000, 5002].map(|offset| Duplicate { place: 0, offset, first: 7 });
        for held_max in [10_000, 700, 3] {
            assert_eq!(duplicates(&ids, held_max), expected, "{held_max}");
        }
    }

    #[test]
    fn documents_without_id_are_no_duplicates() {
        let mut all = Ids::new();
        let bytes = doc! { "a": 1 }.to_vec().expect("encodes");
        (0..9).for_each(|at| all.add(0, Frame::new(&bytes).expect("a frame"), at));
        all.duplicates(|duplicate| panic!("{duplicate:?}")).expect("read");
    }
}
