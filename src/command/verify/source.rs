//! Reads the documents of a dump, in the form in which a restore stores them.

use std::collections::HashMap;

use bson::oid::ObjectId;
use futures_util::StreamExt;
use futures_util::stream;

use crate::batch::Position;
use crate::command::verify::documents::{Gather, Seen};
use crate::dump::archive::Archive;
use crate::dump::inventory::Origin;
use crate::dump::stream::Interrupt;
use crate::error::{Error, ErrorKind};
use crate::frame::Frame;
use crate::load::{self, NewIds, Stop, stored_form};
use crate::plan::{CollectionPlan, RestorePlan};
use crate::reader::demux::{Demux, Item};
use crate::reader::{self, Reader};

/// How often it is looked whether somebody asked for the end, in documents.
const LOOK_EVERY: u64 = 1024;

/// What was gathered of collections, by their places in the plan.
pub(super) type Gathered<G> = Vec<(usize, Result<G, Error>)>;

/// The dump's side.
pub(super) struct Source<'a> {
    /// What of it is meant.
    pub(super) plan: &'a RestorePlan,
    /// The restore that made new `_id`s, where documents came without.
    pub(super) run: Option<ObjectId>,
    /// Files read side by side.
    pub(super) at_once: usize,
    /// What ends it early.
    pub(super) stop: &'a Stop,
}

impl Source<'_> {
    /// Reads collections to their end. Where they are in an archive, it is read once for them.
    pub(super) async fn gather<G: Gather>(&self, wanted: Vec<(usize, G)>) -> Gathered<G> {
        if wanted.is_empty() {
            return Vec::new();
        }
        if let Some(archive) = self.plan.archive() {
            return self.gather_archive(archive.clone(), wanted).await;
        }
        let gathered = stream::iter(wanted).map(|(collection, gather)| async move {
            (collection, self.gather_file(collection, gather).await)
        });
        gathered.buffer_unordered(self.at_once).collect().await
    }

    /// Whether a collection can be read again.
    pub(super) fn can_be_read_again(&self, collection: usize) -> bool {
        match &self.plan.collections[collection].data {
            Some(Origin::Input | Origin::Text(_)) => false,
            Some(Origin::Segments(segments)) => !segments.archive.is_piped(),
            Some(Origin::File(_) | Origin::Made(_)) | None => true,
        }
    }

    async fn gather_file<G: Gather>(&self, collection: usize, mut gather: G) -> Result<G, Error> {
        let plan = &self.plan.collections[collection];
        let (data, form, stop) = (plan.data.clone(), self.form(plan), self.stop.clone());
        load::aside(move || {
            let Some(mut reader) = open(data.as_ref(), &stop)? else {
                return Ok(gather);
            };
            let mut documents = 0_u64;
            while let Some((frame, position)) = reader.next_frame()? {
                form.show(frame, position, |seen| gather.take(seen));
                documents += 1;
                if documents.is_multiple_of(LOOK_EVERY) && stop.is_requested() {
                    return Err(interrupted());
                }
            }
            Ok(gather)
        })
        .await
    }

    async fn gather_archive<G: Gather>(
        &self,
        archive: Archive,
        wanted: Vec<(usize, G)>,
    ) -> Gathered<G> {
        let collections: Vec<usize> = wanted.iter().map(|(collection, _)| *collection).collect();
        let lanes = wanted.into_iter().map(|(collection, gather)| {
            let plan = &self.plan.collections[collection];
            let place = plan.data.as_ref().and_then(Origin::segments).map(|one| one.place);
            let lane = Lane { collection, gather, form: self.form(plan), ended: None };
            (place, lane)
        });
        let lanes: Vec<_> = lanes.collect();
        let stop = self.stop.clone();
        let read = load::aside(move || Ok(read_archive(&archive, lanes, &stop))).await;
        read.unwrap_or_else(|error| {
            let failed = collections.into_iter().map(|collection| (collection, Err(error.clone())));
            failed.collect()
        })
    }

    /// How the documents of a collection are stored.
    pub(super) fn form(&self, plan: &CollectionPlan) -> Form {
        Form { ids: self.run.map(|run| NewIds::of(run, &plan.source)) }
    }
}

/// How documents of a collection are stored.
#[derive(Clone, Copy, Debug)]
pub(super) struct Form {
    /// The `_id`s of documents that have none, where they are known.
    ids: Option<NewIds>,
}

impl Form {
    /// Shows a document of the dump as it is stored; where nobody knows its `_id`, without one.
    pub(super) fn show<R>(
        self,
        frame: Frame<'_>,
        position: Position,
        look: impl FnOnce(&Seen<'_>) -> R,
    ) -> R {
        let offset = Some(position.offset);
        if frame.starts_with_id() {
            return look(&Seen { frame, offset });
        }
        let (stored, _) = stored_form(frame, self.ids.as_ref(), position);
        let frame = stored.as_deref().and_then(|bytes| Frame::new(bytes).ok()).unwrap_or(frame);
        look(&Seen { frame, offset })
    }
}

/// Opens what a collection's documents come from, if it has any.
pub(super) fn open(data: Option<&Origin>, stop: &Stop) -> Result<Option<Reader>, Error> {
    match data {
        Some(Origin::File(file)) => reader::open(file).map(Some),
        Some(Origin::Input) => reader::open_input(Some(interrupt(stop))).map(Some),
        Some(Origin::Made(made)) => reader::open_made(made).map(Some),
        Some(Origin::Segments(_) | Origin::Text(_)) | None => Ok(None),
    }
}

/// What is gathered of one collection of an archive.
struct Lane<G> {
    collection: usize,
    gather: G,
    form: Form,
    /// Set where its end has come: whether its checksum fits.
    ended: Option<Result<(), Error>>,
}

fn read_archive<G: Gather>(
    archive: &Archive,
    lanes: Vec<(Option<usize>, Lane<G>)>,
    stop: &Stop,
) -> Gathered<G> {
    let (mut places, mut done) = (HashMap::new(), Vec::new());
    for (place, mut lane) in lanes {
        if let Some(place) = place {
            places.insert(place, lane);
        } else {
            lane.ended = Some(Ok(()));
            done.push(lane);
        }
    }
    let read = Demux::open(archive).and_then(|demux| take_apart(demux, &mut places, stop));
    done.extend(places.into_values());
    let gathered = done.into_iter().map(|lane| {
        let outcome = match (lane.ended, &read) {
            (Some(Err(error)), _) => Err(error),
            (None, Err(error)) => Err(error.clone()),
            (Some(Ok(())), _) | (None, Ok(())) => Ok(lane.gather),
        };
        (lane.collection, outcome)
    });
    gathered.collect()
}

fn take_apart<G: Gather>(
    mut demux: Demux,
    places: &mut HashMap<usize, Lane<G>>,
    stop: &Stop,
) -> Result<(), Error> {
    demux.interrupt_by(interrupt(stop));
    let mut documents = 0_u64;
    while let Some(item) = demux.next_item()? {
        match item {
            Item::Begin { .. } => {}
            Item::Document { place, frame, position } => {
                if let Some(lane) = places.get_mut(&place) {
                    let Lane { gather, form, .. } = lane;
                    form.show(frame, position, |seen| gather.take(seen));
                }
                documents += 1;
                if documents.is_multiple_of(LOOK_EVERY) && stop.is_requested() {
                    return Err(interrupted());
                }
            }
            Item::End { place, checked, .. } => {
                if let Some(lane) = places.get_mut(&place) {
                    lane.ended = Some(checked);
                }
            }
        }
    }
    Ok(())
}

fn interrupt(stop: &Stop) -> Interrupt {
    let stop = stop.clone();
    Interrupt::when(move || stop.is_requested())
}

/// What is said of a comparison that somebody ended.
pub(super) fn interrupted() -> Error {
    Error::new(ErrorKind::Interrupted, "stopped before it was compared to the end")
}
