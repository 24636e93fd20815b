//! Looks the documents of a dump up on a target that may hold others as well.

use std::collections::HashMap;

use bson::raw::RawDocument;
use bson::{RawBson, RawDocumentBuf};

use crate::command::verify::documents::{Identity, Seen};
use crate::command::verify::source::{Form, Source, interrupted, open};
use crate::command::verify::stored::Stored;
use crate::dump::inventory::Origin;
use crate::error::Error;
use crate::frame::Frame;
use crate::limits::{VERIFY_LOOKUP_BYTES, VERIFY_LOOKUP_DOCUMENTS};
use crate::load::{self, Stop};
use crate::reader::Reader;
use crate::reader::demux::{Demux, Item};
use crate::report::verification::{Difference, DifferingDocument, DifferingDocuments};
use crate::sum::DocumentSum;
use crate::target::contents::Contents;

/// What became of the documents of a collection.
#[derive(Debug)]
pub(super) struct Contained {
    /// Those of the dump.
    pub(super) dump: DocumentSum,
    /// Those that are not on the target as they are in the dump.
    pub(super) differing: DifferingDocuments,
}

/// Documents of one collection, as they are stored, one after the other.
#[derive(Debug, Default)]
struct Chunk {
    bytes: Vec<u8>,
    /// Where each one begins in the dump.
    offsets: Vec<u64>,
}

/// A collection on its way through its documents.
struct Way {
    documents: Documents,
    form: Form,
    stop: Stop,
}

enum Documents {
    File(Reader),
    Archive(Box<Demux>, usize),
    Nothing,
}

/// Looks all documents of a collection up.
pub(super) async fn look_up<C: Contents>(
    source: &Source<'_>,
    stored: &Stored<'_, C>,
    collection: usize,
    samples_max: usize,
) -> Result<Contained, Error> {
    let plan = &source.plan.collections[collection];
    let (data, form, stop) = (plan.data.clone(), source.form(plan), source.stop.clone());
    let mut way = load::aside(move || Way::begin(data.as_ref(), form, stop)).await?;
    let differing = DifferingDocuments { is_complete: true, ..DifferingDocuments::default() };
    let mut contained = Contained { dump: DocumentSum::default(), differing };
    loop {
        let (back, chunk) = load::aside(move || way.next()).await?;
        way = back;
        if chunk.offsets.is_empty() {
            return Ok(contained);
        }
        let ids = chunk.ids();
        let question = || stored.contents.with_ids(&plan.data_namespace, ids.clone());
        let there = stored.ask("its documents cannot be looked up", question).await?;
        contained.judge(&chunk, &there, samples_max);
    }
}

impl Way {
    fn begin(data: Option<&Origin>, form: Form, stop: Stop) -> Result<Self, Error> {
        let documents = match data {
            Some(Origin::Segments(segments)) => {
                Documents::Archive(Box::new(Demux::open(&segments.archive)?), segments.place)
            }
            data => open(data, &stop)?.map_or(Documents::Nothing, Documents::File),
        };
        Ok(Self { documents, form, stop })
    }

    /// The next documents; none at the end.
    fn next(mut self) -> Result<(Self, Chunk), Error> {
        let mut chunk = Chunk::default();
        let Self { documents, form, stop } = &mut self;
        while !chunk.is_full() {
            if stop.is_requested() {
                return Err(interrupted());
            }
            match documents {
                Documents::Nothing => break,
                Documents::File(reader) => match reader.next_frame()? {
                    Some((frame, position)) => {
                        form.show(frame, position, |seen| chunk.push(seen));
                    }
                    None => break,
                },
                Documents::Archive(demux, wanted) => match demux.next_item()? {
                    Some(Item::Document { place, frame, position }) if place == *wanted => {
                        form.show(frame, position, |seen| chunk.push(seen));
                    }
                    Some(Item::End { place, checked, .. }) if place == *wanted => {
                        checked?;
                        *documents = Documents::Nothing;
                    }
                    Some(_) => {}
                    None => break,
                },
            }
        }
        Ok((self, chunk))
    }
}

impl Chunk {
    fn is_full(&self) -> bool {
        self.offsets.len() >= VERIFY_LOOKUP_DOCUMENTS || self.bytes.len() >= VERIFY_LOOKUP_BYTES
    }

    fn push(&mut self, seen: &Seen<'_>) {
        self.bytes.extend_from_slice(seen.frame.bytes());
        self.offsets.push(seen.offset.unwrap_or_default());
    }

    fn documents(&self) -> impl Iterator<Item = Seen<'_>> {
        let mut rest = &self.bytes[..];
        self.offsets.iter().filter_map(move |offset| {
            let length = u32::from_le_bytes(*rest.first_chunk::<4>()?);
            let (document, after) = rest.split_at_checked(usize::try_from(length).ok()?)?;
            rest = after;
            Some(Seen { frame: Frame::new(document).ok()?, offset: Some(*offset) })
        })
    }

    fn ids(&self) -> Vec<RawBson> {
        let id = |seen: Seen<'_>| {
            let document = RawDocument::from_bytes(seen.frame.bytes()).ok()?;
            document.get("_id").ok()?.map(Into::into)
        };
        self.documents().filter_map(id).collect()
    }
}

impl Contained {
    /// Compares documents of the dump with what the target has under their `_id`s.
    fn judge(&mut self, chunk: &Chunk, there: &[RawDocumentBuf], samples_max: usize) {
        let stored: HashMap<u128, u128> = there
            .iter()
            .filter_map(|document| Frame::new(document.as_bytes()).ok())
            .map(|frame| Seen { frame, offset: None }.key_and_hash(Identity::Id))
            .collect();
        for seen in chunk.documents() {
            self.dump.add(seen.frame.bytes());
            let (key, hash) = seen.key_and_hash(Identity::Id);
            let difference = match stored.get(&key) {
                Some(other) if *other == hash => continue,
                Some(_) => Difference::Changed,
                None => Difference::Missing,
            };
            match difference {
                Difference::Changed => self.differing.changed += 1,
                Difference::Missing | Difference::Extra => self.differing.missing += 1,
            }
            if self.differing.samples.len() < samples_max {
                let id = seen.label().text();
                self.differing.samples.push(DifferingDocument { difference, id });
            }
        }
    }
}
