//! Replays an oplog, strictly in order, after the documents, users and roles.
//!
//! A thread reads entries ahead in groups; one task takes them and has the server apply what they
//! mean. Consecutive writes of documents travel together, everything else alone. A group that is
//! refused is sent again one by one, so that the entry to blame is known: entries may be applied
//! twice.

use std::path::Path;

use bson::raw::RawDocument;
use bson::{RawDocumentBuf, Timestamp};

use crate::batch::Position;
use crate::dump::inventory::{DataFile, Origin};
use crate::error::{Error, ErrorKind};
use crate::frame::Frame;
use crate::limits::{OPLOG_GROUP_BYTES, OPLOG_GROUP_OPERATIONS, QUEUE_BATCHES};
use crate::load::prepare::with_retries;
use crate::load::retry::{self, Verdict};
use crate::load::run::Run;
use crate::plan::Validation;
use crate::plan::oplog::{Catalogue, Operation, OplogPlan, Replay, time_of};
use crate::reader;
use crate::report::format::counted;
use crate::report::{Event, OplogTime, Phase};
use crate::target::{Target, TargetError, Validators};

/// `Unauthorized`.
const UNAUTHORIZED: i32 = 13;

/// `IllegalOperation`.
const ILLEGAL_OPERATION: i32 = 20;

/// What servers before 5.0 answer to updates of the form `$v: 2`.
const UNKNOWN_FORM_OF_UPDATE: i32 = 40682;

/// An entry and the byte at which it begins.
pub type OplogFrame = (Vec<u8>, Position);

/// Where entries come from: a file, or the part of an archive.
pub type OplogFrames = Box<dyn Iterator<Item = Result<OplogFrame, Error>> + Send>;

/// The entries to replay; none where they were to come with an archive and did not, which is told
/// of the archive.
fn open<T: Target>(run: &Run<T>, plan: &OplogPlan) -> Result<Option<OplogFrames>, Error> {
    match &plan.origin {
        Origin::File(file) => of_file(file).map(Some),
        Origin::Input | Origin::Segments(_) | Origin::Made(_) | Origin::Text(_) => {
            match run.gathered.take_oplog() {
                Some(Ok(spool)) => spool.frames().map(Some),
                Some(Err(error)) => {
                    run.note_damage(error);
                    Ok(None)
                }
                None => Ok(None),
            }
        }
    }
}

fn of_file(file: &DataFile) -> Result<OplogFrames, Error> {
    let mut reader = reader::open(file)?;
    let mut has_ended = false;
    Ok(Box::new(std::iter::from_fn(move || {
        if has_ended {
            return None;
        }
        let next = reader.next_frame();
        has_ended = !matches!(next, Ok(Some(_)));
        next.map(|next| next.map(|(frame, at)| (frame.bytes().to_vec(), at))).transpose()
    })))
}

/// Entries that were read ahead, and how reading ended if it did.
struct Chunk {
    entries: Vec<OplogFrame>,
    ended: Option<Error>,
}

/// Replays the oplog; returns the indexes as they stand at its end.
pub(super) async fn replay<T: Target>(run: &Run<T>, plan: &OplogPlan) -> Catalogue {
    let mut replay = Replaying::new(run, plan);
    if run.goes_on() {
        run.observe(&Event::PhaseBegan(Phase::Oplog));
        let replayed = match open(run, plan) {
            Ok(Some(frames)) => replay.all(frames).await,
            Ok(None) => Ok(()),
            Err(error) => Err(error),
        };
        if let Err(error) = replayed {
            run.fail(error);
        }
    }
    replay.end()
}

/// Reads ahead on a thread of its own.
fn read_ahead(mut frames: OplogFrames) -> async_channel::Receiver<Chunk> {
    let (sender, chunks) = async_channel::bounded(QUEUE_BATCHES);
    tokio::task::spawn_blocking(move || {
        loop {
            let mut chunk = Chunk { entries: Vec::new(), ended: None };
            let mut bytes = 0;
            let mut is_over = false;
            while bytes < OPLOG_GROUP_BYTES && !is_over {
                match frames.next() {
                    Some(Ok(entry)) => {
                        bytes += entry.0.len();
                        chunk.entries.push(entry);
                    }
                    Some(Err(error)) => {
                        chunk.ended = Some(error);
                        is_over = true;
                    }
                    None => is_over = true,
                }
            }
            if sender.send_blocking(chunk).is_err() || is_over {
                return;
            }
        }
    });
    chunks
}

/// An operation that waits to be sent, and the entry it comes from.
struct Waiting {
    document: RawDocumentBuf,
    time: Timestamp,
    at: u64,
}

/// A replay on its way.
struct Replaying<'a, T> {
    run: &'a Run<T>,
    plan: &'a OplogPlan,
    replay: Replay,
    waiting: Vec<Waiting>,
    waiting_bytes: usize,
    /// Whether a stop was asked for while the server did not answer: nothing more is sent then,
    /// since what was given up must not be overtaken.
    is_given_up: bool,
    /// What was taken since it was last told.
    untold: Untold,
    /// Deletions that are left out because the server makes them itself.
    truncations: u64,
}

/// Entries whose operations are not applied yet, as they will be told.
#[derive(Default)]
struct Untold {
    entries: u64,
    operations: u64,
    left_out: u64,
    first: Option<Timestamp>,
    last: Option<Timestamp>,
}

impl<'a, T: Target> Replaying<'a, T> {
    fn new(run: &'a Run<T>, plan: &'a OplogPlan) -> Self {
        Self {
            run,
            plan,
            replay: Replay::new(plan, &run.plan),
            waiting: Vec::new(),
            waiting_bytes: 0,
            is_given_up: false,
            untold: Untold::default(),
            truncations: 0,
        }
    }

    async fn all(&mut self, frames: OplogFrames) -> Result<(), Error> {
        let chunks = read_ahead(frames);
        while let Ok(chunk) = chunks.recv().await {
            for (bytes, position) in chunk.entries {
                if !self.run.goes_on() {
                    return Ok(());
                }
                if !self.take(&bytes, position.offset).await? {
                    return self.finish(Reached::Limit).await;
                }
            }
            if let Some(error) = chunk.ended {
                self.send().await?;
                return Err(error);
            }
        }
        self.finish(Reached::End).await
    }

    /// Takes an entry; false where the replay ends before it.
    async fn take(&mut self, bytes: &[u8], at: u64) -> Result<bool, Error> {
        let place = |error: Error, time| self::place(error, self.plan.origin.path(), at, time);
        let entry = checked(bytes).map_err(|error| place(error, None))?;
        let time = time_of(entry);
        if self.replay.ends_before(entry) {
            return Ok(false);
        }
        let taken = match self.replay.take(entry) {
            Ok(taken) => taken,
            Err(error) => {
                let error = place(error, Some(time));
                self.send().await?;
                return Err(error);
            }
        };
        for operation in taken.operations {
            self.add(operation, time, at).await?;
        }
        self.untold.entries += 1;
        self.untold.operations += taken.counted;
        self.untold.left_out += taken.left_out;
        self.untold.first.get_or_insert(time);
        self.untold.last = Some(time);
        Ok(true)
    }

    async fn add(&mut self, operation: Operation, time: Timestamp, at: u64) -> Result<(), Error> {
        let bytes = operation.document.as_bytes().len();
        let is_full = self.waiting.len() >= OPLOG_GROUP_OPERATIONS
            || self.waiting_bytes + bytes > OPLOG_GROUP_BYTES;
        if !self.waiting.is_empty() && (is_full || !operation.is_write) {
            self.send().await?;
        }
        self.waiting_bytes += bytes;
        self.waiting.push(Waiting { document: operation.document, time, at });
        if !operation.is_write {
            self.send().await?;
        }
        Ok(())
    }

    /// Has the server apply what waits, and tells of it.
    async fn send(&mut self) -> Result<(), Error> {
        let waiting = std::mem::take(&mut self.waiting);
        self.waiting_bytes = 0;
        if self.is_given_up {
            return Ok(());
        }
        let documents: Vec<_> = waiting.iter().map(|one| one.document.clone()).collect();
        if let Err(error) = self.apply(&documents).await {
            if retry::verdict(&error, false) == Verdict::Retry && !self.run.goes_on() {
                self.is_given_up = true;
                return Ok(());
            }
            match waiting.as_slice() {
                [only] => self.pass_over(&error, only)?,
                several => self.apply_each(several).await?,
            }
        }
        self.tell();
        Ok(())
    }

    /// Has the server apply one after the other, so that the one to blame is known.
    async fn apply_each(&mut self, several: &[Waiting]) -> Result<(), Error> {
        for one in several {
            if let Err(error) = self.apply(std::slice::from_ref(&one.document)).await {
                self.pass_over(&error, one)?;
            }
        }
        Ok(())
    }

    /// Leaves out what the server refuses because it does it unasked; all else ends the replay.
    fn pass_over(&mut self, error: &TargetError, one: &Waiting) -> Result<(), Error> {
        if !is_truncation(error, &one.document) {
            return Err(self.refused(error, one));
        }
        self.untold.operations -= 1;
        self.untold.left_out += 1;
        self.truncations += 1;
        Ok(())
    }

    async fn apply(&self, documents: &[RawDocumentBuf]) -> Result<(), TargetError> {
        if documents.is_empty() {
            return Ok(());
        }
        let validators = match self.plan.validation {
            Validation::Kept => Validators::Applied,
            Validation::Bypassed => Validators::Bypassed,
        };
        with_retries(self.run, None, || self.run.target.apply_ops(documents, validators)).await
    }

    fn tell(&mut self) {
        let untold = std::mem::take(&mut self.untold);
        let (Some(first), Some(last)) = (untold.first, untold.last) else {
            return;
        };
        self.run.observe(&Event::OplogApplied {
            entries: untold.entries,
            operations: untold.operations,
            left_out: untold.left_out,
            first: oplog_time(first),
            last: oplog_time(last),
        });
    }

    async fn finish(&mut self, reached: Reached) -> Result<(), Error> {
        self.send().await?;
        if self.is_given_up {
            return Ok(());
        }
        let open = self.replay.open_transactions() as u64;
        if open > 0 {
            let text = format!(
                "{} at the end of the oplog and left out",
                counted(open, "transaction was open", "transactions were open")
            );
            self.run.observe(&Event::Note { collection: None, text });
        }
        if self.truncations > 0 {
            let text = format!(
                "{} left out, because the server makes room there by itself",
                counted(
                    self.truncations,
                    "deletion from a capped collection is",
                    "deletions from capped collections are"
                )
            );
            self.run.observe(&Event::Note { collection: None, text });
        }
        self.run.observe(&Event::OplogEnded { reached_limit: reached == Reached::Limit });
        Ok(())
    }

    fn refused(&self, error: &TargetError, one: &Waiting) -> Error {
        let mut message =
            format!("the server does not apply {}: {}", described(&one.document), error.message);
        if error.code == Some(UNKNOWN_FORM_OF_UPDATE) {
            message += "; the source writes updates in a form that servers know from 5.0 on";
        }
        let mut failed = Error::new(ErrorKind::Oplog, message);
        if let Some(code) = error.code {
            failed = failed.with_code(code);
        }
        let failed = place(failed, self.plan.origin.path(), one.at, Some(one.time));
        if error.code == Some(UNAUTHORIZED) {
            return failed.hint(GRANT);
        }
        failed
    }

    fn end(self) -> Catalogue {
        self.replay.into_catalogue()
    }
}

/// How a replay came to its end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reached {
    End,
    Limit,
}

/// What a user needs who replays an oplog.
pub const GRANT: &str = "replaying an oplog takes a role with every right: \
     db.getSiblingDB(\"admin\").createRole({role: \"replayOplog\", privileges: [{resource: \
     {anyResource: true}, actions: [\"anyAction\"]}], roles: []}), then grant it to the user";

fn checked(bytes: &[u8]) -> Result<&RawDocument, Error> {
    let damaged = |error: &dyn std::fmt::Display| {
        Error::new(ErrorKind::Oplog, format!("the entry is damaged: {error}"))
    };
    let frame = Frame::new(bytes).map_err(|error| damaged(&error))?;
    frame.validate().map_err(|error| damaged(&error))?;
    RawDocument::from_bytes(bytes).map_err(|error| damaged(&error))
}

/// Says where the entry is and how to go on without it.
fn place(error: Error, path: &Path, at: u64, time: Option<Timestamp>) -> Error {
    let error = error.in_file(path).at_byte(at);
    match (time, error.hint_text()) {
        (Some(time), None) => error.hint(format!(
            "what came before is applied, indexes are not built; with --oplog-limit {}:{} the \
             replay ends just before this entry",
            time.time, time.increment
        )),
        _ => error,
    }
}

/// Whether this is a deletion that keeps a capped collection at its size, and a server that makes
/// room there by itself refuses it. Oplogs have them from 5.0 on, servers apply them from 6.0 on,
/// and only from then on may a user delete there as well.
fn is_truncation(error: &TargetError, operation: &RawDocument) -> bool {
    error.code == Some(ILLEGAL_OPERATION)
        && error.message.contains("capped collection")
        && operation.get_str("op").is_ok_and(|kind| kind == "d")
}

/// What an operation does, in a few words and without its values.
fn described(operation: &RawDocument) -> String {
    let namespace = operation.get_str("ns").unwrap_or("an unknown namespace");
    let what = match operation.get_str("op") {
        Ok("i") => "an insert into",
        Ok("u") => "an update in",
        Ok("d") => "a deletion from",
        _ => {
            let command = operation.get_document("o").ok().and_then(|object| {
                Some(object.iter_elements().next()?.ok()?.key().as_str().to_owned())
            });
            let database = namespace.strip_suffix(".$cmd").unwrap_or(namespace);
            return format!("`{}` in `{database}`", command.unwrap_or_default());
        }
    };
    format!("{what} `{namespace}`")
}

fn oplog_time(time: Timestamp) -> OplogTime {
    OplogTime { seconds: time.time, increment: time.increment }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::rawdoc;

    #[test]
    fn operations_are_described_without_their_values() {
        for (operation, expected) in [
            (
                rawdoc! { "op": "i", "ns": "shop.a", "o": { "secret": 1 } },
                "an insert into `shop.a`",
            ),
            (rawdoc! { "op": "c", "ns": "shop.$cmd", "o": { "drop": "a" } }, "`drop` in `shop`"),
        ] {
            assert_eq!(described(&operation), expected);
        }
    }

    #[test]
    fn only_a_refused_deletion_from_a_capped_collection_is_passed_over() {
        let refused = |code, message: &str| TargetError {
            fault: crate::target::Fault::Refused,
            code: Some(code),
            labels: Vec::new(),
            message: message.to_owned(),
        };
        let capped = "cannot remove from a capped collection: shop.log";
        let deletion = rawdoc! { "op": "d", "ns": "shop.log", "o": { "_id": 1 } };
        let update = rawdoc! { "op": "u", "ns": "shop.log", "o": {} };
        assert!(is_truncation(&refused(ILLEGAL_OPERATION, capped), &deletion));
        assert!(!is_truncation(&refused(ILLEGAL_OPERATION, capped), &update));
        assert!(!is_truncation(&refused(ILLEGAL_OPERATION, "not allowed"), &deletion));
        assert!(!is_truncation(&refused(UNAUTHORIZED, capped), &deletion));
    }

    #[test]
    fn damaged_entries_are_told() {
        assert!(checked(&[]).is_err());
        assert!(checked(b"\x07\0\0\0\x02x\0").is_err());
        assert!(checked(rawdoc! { "op": "n" }.as_bytes()).is_ok());
    }
}
