//! What stands on the target under the `_id`s of duplicates: the document itself or another one.

use std::collections::{HashMap, HashSet};

use bson::raw::RawDocument;
use bson::{RawBson, RawDocumentBuf};

use crate::batch::Batch;
use crate::frame::Frame;
use crate::load::retry::{self, Verdict};
use crate::load::run::Run;
use crate::load::worker::outage::Outage;
use crate::target::{Target, TargetError, WriteFailure};

/// What stands under the `_id` of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// Nothing whose `_id` has the same bytes.
    Nothing,
    /// The document itself, byte for byte.
    Same,
    /// Another document.
    Other,
}

/// What is known of the documents of a batch from earlier questions.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// Documents whose `_id` another document was found to have.
    pub(super) conflicts: HashSet<u32>,
    /// Whether everything that is still to be sent in order was looked up since the last answer
    /// that did not come.
    pub(super) looked_ahead: bool,
}

/// An `_id` as its type and its bytes.
type Id<'a> = (u8, &'a [u8]);

/// Looks up what stands under the `_id`s of these documents of a batch, with one command; tries
/// again for as long as the settings say.
pub(super) async fn look_up<T: Target>(
    run: &Run<T>,
    batch: &Batch,
    asked: &[u32],
) -> Result<HashMap<u32, Found>, TargetError> {
    let namespace = &run.plan.collections[batch.collection].data_namespace;
    let frames: Vec<_> = batch.frames().collect();
    let ids: Vec<RawBson> =
        asked.iter().filter_map(|&index| raw_id(frames[index as usize])).collect();
    let mut comparison = Comparison::of(&frames, asked);
    let mut outage = Outage::new();
    loop {
        let mut take = |stored: RawDocumentBuf| comparison.take(&stored);
        let error = match run.target.stored(namespace, ids.clone(), &mut take).await {
            Ok(()) => return Ok(comparison.found),
            Err(error) => error,
        };
        let passes = retry::verdict(&error, false) == Verdict::Retry && !run.has_failed();
        if !passes || outage.lasts(run.settings.retry_for) {
            return Err(error);
        }
        tokio::time::sleep(outage.next(&error.message)).await;
    }
}

/// Documents that are compared with what is stored.
struct Comparison<'a> {
    documents: HashMap<Id<'a>, Vec<(u32, &'a [u8])>>,
    found: HashMap<u32, Found>,
}

impl<'a> Comparison<'a> {
    fn of(frames: &[Frame<'a>], asked: &[u32]) -> Self {
        let mut documents: HashMap<Id<'a>, Vec<_>> = HashMap::new();
        for &index in asked {
            let frame = frames[index as usize];
            if let Some(id) = frame.id() {
                documents.entry((id.kind, id.value)).or_default().push((index, frame.bytes()));
            }
        }
        let found = asked.iter().map(|&index| (index, Found::Nothing)).collect();
        Self { documents, found }
    }

    fn take(&mut self, stored: &RawDocumentBuf) {
        let id = Frame::new(stored.as_bytes()).ok().and_then(|stored| stored.id());
        let alike = id.and_then(|id| self.documents.get(&(id.kind, id.value)));
        for (index, bytes) in alike.into_iter().flatten() {
            let is_same = *bytes == stored.as_bytes();
            self.found.insert(*index, if is_same { Found::Same } else { Found::Other });
        }
    }
}

/// Whether the server says that it is the `_id` which another document has, as it may in another
/// numeric type.
pub(super) fn is_of_id(failure: &WriteFailure) -> bool {
    failure.message.contains("index: _id_")
}

pub(in crate::load) fn raw_id(frame: Frame<'_>) -> Option<RawBson> {
    let document = RawDocument::from_bytes(frame.bytes()).ok()?;
    document.get("_id").ok()?.map(Into::into)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::{Document, doc};

    fn bytes(document: &Document) -> Vec<u8> {
        document.to_vec().expect("encodes")
    }

    #[test]
    fn the_document_itself_is_told_from_another_one_and_from_none() {
        let documents = [
            doc! { "_id": 1, "a": 1 },
            doc! { "_id": 2, "a": 1 },
            doc! { "_id": 1, "a": 2 },
            doc! { "_id": 3 },
        ];
        let encoded: Vec<_> = documents.iter().map(bytes).collect();
        let frames: Vec<_> = encoded.iter().map(|one| Frame::new(one).expect("a frame")).collect();
        let mut comparison = Comparison::of(&frames, &[0, 1, 2, 3]);
        for stored in [doc! { "_id": 1, "a": 1 }, doc! { "_id": 2, "a": 2 }, doc! { "_id": 3.0 }] {
            comparison.take(&RawDocumentBuf::from_bytes(bytes(&stored)).expect("a document"));
        }
        let found = [0, 1, 2, 3].map(|index| comparison.found[&index]);
        assert_eq!(found, [Found::Same, Found::Other, Found::Other, Found::Nothing]);
    }
}
