//! What a server says of each document of a write command.

use bson::{Bson, Document};

use crate::changes::Changes;
use crate::target::durable::Mark;
use crate::target::mongo::durability;
use crate::target::{Fault, OnRefusal, TargetError, WriteFailure, WriteMode, WriteOutcome};

/// The answer to one write command.
#[derive(Debug)]
pub(super) struct Reply {
    written: u32,
    /// Documents of the written for which an upsert found none stored.
    upserted: u32,
    /// Documents of the written for which one was found that is another now.
    modified: u32,
    /// Documents for which a delete found none stored.
    not_found: u32,
    pub(super) failures: Vec<WriteFailure>,
    pub(super) mark: Option<Mark>,
}

impl Reply {
    /// The documents that were inserted, and what became of the others that were taken.
    pub(super) fn told_apart(&self, mode: WriteMode) -> (u32, Changes) {
        let (upserted, modified) = (self.upserted, u64::from(self.modified));
        let unchanged = u64::from(self.written - self.upserted) - modified;
        let none = Changes::default();
        match mode {
            WriteMode::Insert | WriteMode::Skip => (self.written, none),
            WriteMode::Replace => (upserted, Changes { replaced: modified, unchanged, ..none }),
            WriteMode::Merge => (upserted, Changes { merged: modified, unchanged, ..none }),
            WriteMode::Delete => {
                let (deleted, not_found) = (u64::from(self.written), u64::from(self.not_found));
                (0, Changes { deleted, not_found, ..none })
            }
        }
    }

    /// The answer as the outcome of a whole batch.
    pub(super) fn into_outcome(self, sent: u32, on_refusal: OnRefusal) -> WriteOutcome {
        let refused = u32::try_from(self.failures.len()).unwrap_or(u32::MAX);
        let not_tried = match on_refusal {
            OnRefusal::GoOn => 0,
            OnRefusal::Stop => sent.saturating_sub(self.written + refused),
        };
        let Self { written, failures, mark, .. } = self;
        WriteOutcome { inserted: written, failures, not_tried, mark, ..WriteOutcome::default() }
    }
}

/// Reads the reply to an `insert` or `update` of `sent` documents.
///
/// A write concern error means that the documents were taken but not confirmed as asked, so the
/// command counts as failed. An answer whose counts do not add up is never taken for success.
pub(super) fn read(
    reply: &Document,
    sent: u32,
    on_refusal: OnRefusal,
) -> Result<Reply, TargetError> {
    confirmed(reply)?;
    let failures = failures(reply);
    let written = integer(reply.get("n"));
    let answered = written as usize + failures.len();
    let stopped_early = on_refusal == OnRefusal::Stop && !failures.is_empty();
    if answered > sent as usize || (answered < sent as usize && !stopped_early) {
        return Err(unclear(format!(
            "the server answered for {answered} of {sent} documents; what it did with the others \
             is unknown"
        )));
    }
    let upserted = reply.get_array("upserted").map_or(0, Vec::len);
    let upserted = u32::try_from(upserted).unwrap_or(u32::MAX).min(written);
    // The server counts what it changed apart from what it found.
    let modified = integer(reply.get("nModified")).min(written - upserted);
    let mark = durability::mark(reply);
    Ok(Reply { written, upserted, modified, not_found: 0, failures, mark })
}

/// Reads the reply to a `delete` of at most one document for each of `sent`.
///
/// The server tells how many it deleted and which of them it refused; those that it looked at and
/// that are neither found none. In order it looks at nothing after the first one that it refuses.
pub(super) fn read_deletes(
    reply: &Document,
    sent: u32,
    on_refusal: OnRefusal,
) -> Result<Reply, TargetError> {
    confirmed(reply)?;
    let failures = failures(reply);
    let written = integer(reply.get("n"));
    let refused = u32::try_from(failures.len()).unwrap_or(u32::MAX);
    let looked_at = match (on_refusal, failures.first()) {
        (OnRefusal::Stop, Some(first)) => first.index.saturating_add(1),
        _ => sent,
    };
    match looked_at.checked_sub(written.saturating_add(refused)) {
        Some(not_found) if looked_at <= sent => {
            let mark = durability::mark(reply);
            Ok(Reply { written, upserted: 0, modified: 0, not_found, failures, mark })
        }
        _ => Err(unclear(format!(
            "the server says that it deleted {written} documents and refused {refused} of {sent}; \
             what it did is unknown"
        ))),
    }
}

/// An answer that says too little is worth no more than none.
fn unclear(message: String) -> TargetError {
    TargetError { fault: Fault::ConnectionLost, code: None, labels: Vec::new(), message }
}

fn failures(reply: &Document) -> Vec<WriteFailure> {
    let errors = reply.get_array("writeErrors").map_or(&[][..], Vec::as_slice);
    errors.iter().filter_map(Bson::as_document).map(failure).collect()
}

/// Whether what a command did is as durable as its write concern asks.
pub(super) fn confirmed(reply: &Document) -> Result<(), TargetError> {
    match reply.get_document("writeConcernError") {
        Ok(error) => Err(unconfirmed(error, reply)),
        Err(_) => Ok(()),
    }
}

/// Reads the reply to a `delete` of everything: any refusal is a failure of the whole.
pub(super) fn deleted(reply: &Document) -> Result<(), TargetError> {
    let refusal = reply.get_array("writeErrors").ok().and_then(|errors| errors.first());
    match refusal.and_then(Bson::as_document).map(failure) {
        None => Ok(()),
        Some(failure) => Err(TargetError::from(failure)),
    }
}

fn failure(error: &Document) -> WriteFailure {
    WriteFailure {
        index: integer(error.get("index")),
        code: error.get_i32("code").unwrap_or_default(),
        message: error.get_str("errmsg").unwrap_or_default().to_owned(),
    }
}

fn unconfirmed(error: &Document, reply: &Document) -> TargetError {
    let labels = match reply.get_array("errorLabels") {
        Ok(labels) => labels.iter().filter_map(Bson::as_str).map(str::to_owned).collect(),
        Err(_) => Vec::new(),
    };
    let message = error.get_str("errmsg").unwrap_or("no reason given");
    TargetError {
        fault: Fault::Unconfirmed,
        code: error.get_i32("code").ok(),
        labels,
        message: format!("written but not confirmed as the write concern asks: {message}"),
    }
}

fn integer(value: Option<&Bson>) -> u32 {
    match value {
        Some(Bson::Int32(value)) => u32::try_from(*value).unwrap_or(0),
        Some(Bson::Int64(value)) => u32::try_from(*value).unwrap_or(0),
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count")]
        Some(Bson::Double(value)) => *value as u32,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::doc;

    #[test]
    fn refusals_are_read_one_by_one() {
        let reply = doc! {
            "n": 2,
            "writeErrors": [ { "index": 1, "code": 11000, "errmsg": "E11000 duplicate key" } ],
            "ok": 1.0,
        };
        let read = read(&reply, 3, OnRefusal::GoOn).expect("read");
        assert_eq!(read.written, 2);
        assert_eq!(read.failures[0].index, 1);
        let outcome = read.into_outcome(3, OnRefusal::GoOn);
        assert_eq!((outcome.inserted, outcome.not_tried), (2, 0));
    }

    #[test]
    fn an_ordered_insert_leaves_the_rest_untried() {
        let reply = doc! {
            "n": 1, "writeErrors": [ { "index": 1, "code": 11000, "errmsg": "" } ],
        };
        let outcome =
            read(&reply, 5, OnRefusal::Stop).expect("read").into_outcome(5, OnRefusal::Stop);
        assert_eq!(outcome.not_tried, 3);
    }

    #[test]
    fn deletes_that_find_nothing_are_told_from_those_after_a_refusal() {
        let errors = [doc! { "index": 3, "code": 2, "errmsg": "" }];
        let reply = doc! { "n": 2, "writeErrors": errors, "ok": 1.0 };
        let not_found = |on_refusal| read_deletes(&reply, 6, on_refusal).expect("read").not_found;
        assert_eq!(not_found(OnRefusal::GoOn), 3);
        assert_eq!(not_found(OnRefusal::Stop), 1);
        assert!(read_deletes(&doc! { "n": 7 }, 6, OnRefusal::GoOn).is_err());
    }

    #[test]
    fn an_unconfirmed_write_is_no_success() {
        let reply = doc! { "n": 1, "writeConcernError": { "code": 64, "errmsg": "timed out" } };
        let error = read(&reply, 1, OnRefusal::GoOn).expect_err("an error");
        assert_eq!((error.fault, error.code), (Fault::Unconfirmed, Some(64)));
    }

    #[test]
    fn an_answer_that_does_not_add_up_is_no_success() {
        assert!(read(&doc! { "n": 1, "ok": 1.0 }, 2, OnRefusal::GoOn).is_err());
        assert!(read(&doc! { "n": 3, "ok": 1.0 }, 2, OnRefusal::GoOn).is_err());
    }
}
