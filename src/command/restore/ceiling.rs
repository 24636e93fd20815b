//! Sends what a restore would send, encoded beforehand: the most that a server takes this way.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bson::oid::ObjectId;

use crate::batch::{Batch, Batcher, BufferPool, ZeroTimestamps};
use crate::command::restore::{
    Destination, LoadSettings, Prepared, RestoreOptions, list, preflight,
};
use crate::dump::inventory::{CollectionKind, DataFile, Origin};
use crate::error::{Error, ErrorKind};
use crate::facts::ExistingDetail;
use crate::frame::Frame;
use crate::limits::WORKERS_DEFAULT;
use crate::load::replay::{Replay, insert_of, replay};
use crate::load::{self, NewIds, Stop, stored_form};
use crate::plan::{CollectionPlan, Creation, RestorePlan};
use crate::reader;
use crate::target::mongo::MongoTarget;
use crate::target::{Target, TargetError, WriteMode};

/// What was sent, and how fast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CeilingReached {
    /// The time of the sending alone.
    pub time: Duration,
    /// The batches that were in flight at once.
    pub in_flight: usize,
    /// The batches.
    pub batches: usize,
    /// Their documents.
    pub documents: u64,
}

/// Reads the whole dump into batches, creates its collections, and sends the batches with as many
/// in flight as the options fix, or [`WORKERS_DEFAULT`]. Indexes are not built.
///
/// # Errors
///
/// The documents take more bytes than may be held, come from where they cannot be held (an archive
/// or a pipe), or the server refuses something.
pub async fn ceiling(
    options: &RestoreOptions,
    held_bytes: u64,
    stop: &Stop,
) -> Result<CeilingReached, Error> {
    options.check()?;
    let Destination::Server(connection) = &options.destination else {
        return Err(Error::new(ErrorKind::Usage, "a ceiling is that of a server"));
    };
    let (layout, inventory) = list(options, stop).await?;
    options.selection.names.check(&inventory)?;
    let (target, mut facts) = MongoTarget::connect(connection).await?;
    let databases = options.selection.names.databases(&inventory);
    let databases = databases.iter().map(String::as_str);
    facts.existing = target.existing(databases.clone(), ExistingDetail::Names).await?;
    let target = target.with_journal_of(&facts, databases).await;
    let keeps = facts.keeps_zero_timestamps();
    let run = Prepared { options, layout, inventory, facts, began: Instant::now(), left_alone: 0 };
    let mut plan = run.plan(&target).await?;
    preflight::check(&target, &run.facts, &mut plan, WriteMode::Insert).await?;
    let zero_timestamps = ZeroTimestamps::on(keeps);
    let settings = LoadSettings { zero_timestamps, ..options.settings.clone() };
    let (reading, reads) = (plan.clone(), settings.clone());
    let batches = load::aside(move || read(&reading, &reads, held_bytes)).await?;
    for collection in &plan.collections {
        let created = create(&target, collection).await;
        created.map_err(|error| {
            let message = format!("cannot be created: {error}");
            Error::new(ErrorKind::Write, message).of(&collection.namespace)
        })?;
    }
    send(target, &plan, batches, &settings).await
}

async fn send(
    target: MongoTarget,
    plan: &RestorePlan,
    batches: Vec<Batch>,
    settings: &LoadSettings,
) -> Result<CeilingReached, Error> {
    let in_flight = settings.workers.fixed().unwrap_or(WORKERS_DEFAULT);
    let count = batches.len();
    let documents = batches.iter().map(|batch| u64::from(batch.documents)).sum();
    let inserts = plan.collections.iter().map(|one| insert_of(one, true)).collect();
    let target = Arc::new(target);
    let time = replay(Replay { target, inserts, batches, in_flight }).await?;
    Ok(CeilingReached { time, in_flight, batches: count, documents })
}

async fn create(target: &MongoTarget, plan: &CollectionPlan) -> Result<(), TargetError> {
    match plan.creation {
        // A view has no documents.
        _ if plan.kind == CollectionKind::View => return Ok(()),
        Creation::DropAndCreate => target.drop_collection(&plan.namespace).await?,
        Creation::Empty => return target.empty(&plan.namespace).await,
        Creation::Use => return Ok(()),
        Creation::Create => {}
    }
    target.create(&plan.namespace, &plan.options, plan.uuid).await
}

/// All batches, in an order as if as many collections were read side by side as the settings say.
fn read(plan: &RestorePlan, settings: &LoadSettings, held: u64) -> Result<Vec<Batch>, Error> {
    let run = ObjectId::new();
    let mut room = held;
    let mut of_collections = VecDeque::new();
    for (place, collection) in plan.collections.iter().enumerate() {
        match &collection.data {
            Some(Origin::File(file)) => {
                let ids = NewIds::of(run, &collection.source);
                let batches = read_file(file, place, settings, &ids, &mut room)?;
                of_collections.push_back(VecDeque::from(batches));
            }
            Some(_) => {
                return Err(Error::new(
                    ErrorKind::Usage,
                    "the ceiling of an archive or a pipe cannot be measured",
                )
                .hint("measure it with a dump directory"));
            }
            None => {}
        }
    }
    Ok(interleaved(of_collections, settings.readers))
}

fn read_file(
    file: &DataFile,
    place: usize,
    settings: &LoadSettings,
    ids: &NewIds,
    room: &mut u64,
) -> Result<Vec<Batch>, Error> {
    let pool = BufferPool::new(0, 0);
    let mut batcher = Batcher::new(place, settings.batch, settings.zero_timestamps, pool);
    let mut reader = reader::open(file)?;
    let mut cut = Vec::new();
    while let Some((frame, position)) = reader.next_frame()? {
        *room = room.checked_sub(frame.bytes().len() as u64).ok_or_else(|| {
            Error::new(ErrorKind::Usage, "the documents take more memory than they may")
                .hint("measure the ceiling with a part of the dump, or say --ceiling-bytes")
        })?;
        let (stored, _) = stored_form(frame, Some(ids), position);
        let frame = stored.as_deref().and_then(|bytes| Frame::new(bytes).ok()).unwrap_or(frame);
        cut.extend(batcher.push(frame, position));
    }
    cut.extend(batcher.finish(reader.position()));
    Ok(cut)
}

/// A batch of each of the first lists in turn; the next list takes the place of one that ends.
fn interleaved<T>(mut lists: VecDeque<VecDeque<T>>, side_by_side: usize) -> Vec<T> {
    let mut taken = Vec::new();
    let mut open: VecDeque<VecDeque<T>> = VecDeque::new();
    loop {
        while open.len() < side_by_side.max(1)
            && let Some(list) = lists.pop_front()
        {
            open.push_back(list);
        }
        let Some(mut list) = open.pop_front() else {
            return taken;
        };
        if let Some(next) = list.pop_front() {
            taken.push(next);
            open.push_back(list);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_taken_side_by_side() {
        let lists = |lists: &[&str]| lists.iter().map(|list| list.chars().collect()).collect();
        let taken =
            |of: &[&str], side| interleaved(lists(of), side).into_iter().collect::<String>();
        assert_eq!(taken(&["aaa", "b", "cc"], 2), "abaacc");
        assert_eq!(taken(&["aa", "bb"], 1), "aabb");
        assert_eq!(taken(&["", "bb"], 4), "bb");
        assert_eq!(taken(&[], 4), "");
    }
}
