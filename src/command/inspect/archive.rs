//! Reads an archive from its first to its last block.

use std::path::Path;

use super::deep::{self, Sort};
use super::ids::Ids;
use super::scan::{look_at, nothing_of, problem, unread};
use super::{Depth, InspectedCollection, Problem};
use crate::batch::Position;
use crate::dump::archive::Archive;
use crate::dump::{CollectionKind, DumpEntry, Origin, SkippedPath};
use crate::error::Error;
use crate::frame::Frame;
use crate::reader::demux::salvage::Salvaged;
use crate::reader::demux::{Demux, Item};
use crate::reader::salvage::Stretch;

/// What is read of an archive's collections.
struct Scan<'a> {
    path: &'a Path,
    collections: Vec<InspectedCollection>,
    /// The collection for each place in the archive's list.
    places: Vec<Option<usize>>,
    /// Checksums that are wrong of collections that were not asked for.
    strays: Vec<SkippedPath>,
}

/// Inspects all entries, which are those of this archive, and returns them in their order; what is
/// wrong with the archive as a whole stands among the second part.
pub(super) fn scan_all(
    archive: &Archive,
    entries: &[DumpEntry],
    depth: Depth,
) -> (Vec<InspectedCollection>, Vec<SkippedPath>) {
    let mut places = vec![None; archive.collections().len()];
    for (collection, entry) in entries.iter().enumerate() {
        if let Some(segments) = entry.data.as_ref().and_then(Origin::segments) {
            places[segments.place] = Some(collection);
        }
    }
    let collections = entries.iter().map(|entry| begun(archive, entry)).collect();
    let mut scan = Scan { path: archive.path(), collections, places, strays: Vec::new() };
    let read = Demux::open(archive).and_then(|demux| match depth {
        Depth::Plain => scan.read(demux),
        Depth::Deep => scan.read_deeply(demux, entries),
    });
    if let Err(error) = read {
        let place = error.offset().map(|byte| format!(", at byte {byte}")).unwrap_or_default();
        scan.strays.push(SkippedPath {
            path: scan.path.to_path_buf(),
            reason: format!("is not read to its end: {}{place}", error.message()),
            is_problem: true,
        });
    }
    (scan.collections, scan.strays)
}

/// A collection before its documents come.
fn begun(archive: &Archive, entry: &DumpEntry) -> InspectedCollection {
    let has_data = entry.kind != CollectionKind::View;
    let data = has_data.then(|| nothing_of(archive.path(), archive.compression(), None));
    InspectedCollection { data, ..unread(entry) }
}

impl Scan<'_> {
    fn read(&mut self, mut demux: Demux) -> Result<(), Error> {
        while let Some(item) = demux.next_item()? {
            match item {
                Item::Begin { .. } => {}
                Item::Document { place, frame, position } => self.document(place, frame, position),
                Item::End { place, checked, .. } => {
                    if let Err(error) = checked {
                        self.mismatch(place, &error);
                    }
                }
            }
        }
        Ok(())
    }

    /// Reads all that can be read.
    fn read_deeply(&mut self, mut demux: Demux, entries: &[DumpEntry]) -> Result<(), Error> {
        for (collection, entry) in self.collections.iter_mut().zip(entries) {
            collection.problems.extend(deep::judge_indexes(entry));
        }
        demux.read_carefully();
        let (mut ids, mut lost) = (Ids::new(), 0);
        let read = loop {
            let salvaged = match demux.next_salvaged() {
                Ok(Some(salvaged)) => salvaged,
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            };
            match salvaged {
                Salvaged::Item(Item::Begin { .. }) => {}
                Salvaged::Item(Item::Document { place, frame, position }) => {
                    match self.places[place].map(|place| (place, &mut self.collections[place])) {
                        Some((place, collection)) if collection.data.is_some() => {
                            deep::look_at(frame, position, collection, place, &mut ids);
                        }
                        _ => self.document(place, frame, position),
                    }
                }
                Salvaged::Item(Item::End { place, checked, .. }) => {
                    if let Err(error) = checked {
                        self.mismatch(place, &error);
                    }
                }
                Salvaged::Lost { bytes, .. } => lost += bytes.len() as u64,
                Salvaged::Stretch { place, stretch, .. } => {
                    self.lose(place, &stretch, std::mem::take(&mut lost));
                }
            }
        };
        deep::find_duplicates(ids, |place, duplicate, what| match duplicate {
            Some(duplicate) => {
                let collection = &mut self.collections[place];
                deep::find(collection, Sort::Duplicate, Some(duplicate.offset), || what);
            }
            None => self.strays.push(self.stray(what)),
        });
        read
    }

    fn lose(&mut self, place: Option<usize>, stretch: &Stretch, bytes: u64) {
        if let Some(collection) = place.and_then(|place| self.places[place]) {
            return deep::lose(&mut self.collections[collection], stretch, bytes);
        }
        let Stretch { from, reason, .. } = stretch;
        let reason = format!("{reason}, at byte {from}; {bytes} bytes are lost");
        self.strays.push(self.stray(reason));
    }

    fn stray(&self, reason: String) -> SkippedPath {
        SkippedPath { path: self.path.to_path_buf(), reason, is_problem: true }
    }

    fn document(&mut self, place: usize, frame: Frame<'_>, position: Position) {
        let Some(collection) = self.places[place] else { return };
        let InspectedCollection { data, problems, .. } = &mut self.collections[collection];
        match data {
            Some(data) => look_at(frame, position, data, problems),
            None if problems.is_empty() => problems.push(Problem {
                file: self.path.to_path_buf(),
                offset: Some(position.offset),
                what: "the archive holds documents of this view".to_owned(),
            }),
            None => {}
        }
    }

    fn mismatch(&mut self, place: usize, error: &Error) {
        match self.places[place] {
            Some(collection) => {
                self.collections[collection].problems.push(problem(self.path, error));
            }
            None => self.strays.push(SkippedPath {
                path: self.path.to_path_buf(),
                reason: error.to_string(),
                is_problem: true,
            }),
        }
    }
}

/// The archive that all entries are in, where they are in one.
pub(super) fn archive_of(entries: &[DumpEntry]) -> Option<&Archive> {
    let data = entries.iter().find_map(|entry| entry.data.as_ref())?;
    data.segments().map(|segments| &segments.archive)
}
