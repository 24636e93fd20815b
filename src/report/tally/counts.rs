//! The numbers of a run: documents, bytes and times.

use std::time::Duration;

use crate::changes::Changes;
use crate::report::event::Phase;

/// What a collection, or the whole run, has come to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Documents read.
    pub read: u64,
    /// Bytes of the documents read, uncompressed.
    pub bytes_read: u64,
    /// Documents the server took.
    pub inserted: u64,
    /// What became of those that looked for a stored one.
    pub changes: Changes,
    /// Documents that were stored already: byte for byte the same, or skipped for their `_id`.
    pub already_there: u64,
    /// Documents the server refused.
    pub rejected: u64,
    /// Documents of these whose `_id` another document was found to have.
    pub conflicts: u64,
    /// Documents that an earlier run had brought, which are counted above as well.
    pub carried: u64,
    /// Documents of those that it inserted, or that changed a stored one.
    pub done_before: u64,
    /// Documents read but never answered for.
    pub unsent: u64,
    /// Bytes of the documents the server answered for, uncompressed.
    pub bytes_acknowledged: u64,
    /// Bytes of the files that these documents came from.
    pub origin_bytes_acknowledged: u64,
    /// Batches the server answered for.
    pub batches: u64,
    /// Batches and commands that were sent again.
    pub retries: u64,
}

impl Counts {
    /// Documents that were inserted or for which a stored one was found to change.
    pub fn done(&self) -> u64 {
        self.inserted + self.changes.found()
    }

    /// What became of the documents that were read.
    pub fn balance(&self) -> Balance {
        Balance {
            read: self.read,
            inserted: self.inserted,
            changes: self.changes,
            already_there: self.already_there,
            rejected: self.rejected,
            conflicts: self.conflicts,
            unsent: self.unsent,
        }
    }
}

/// What became of the documents that were read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Balance {
    /// Documents read.
    pub read: u64,
    /// Documents the server took.
    pub inserted: u64,
    /// What became of those that looked for a stored one.
    #[serde(flatten)]
    pub changes: Changes,
    /// Documents that were stored already: byte for byte the same, or skipped for their `_id`.
    pub already_there: u64,
    /// Documents the server refused.
    pub rejected: u64,
    /// Documents of the rejected whose `_id` another document was found to have.
    pub conflicts: u64,
    /// Documents never answered for.
    pub unsent: u64,
}

impl Balance {
    /// Documents that were inserted or for which a stored one was found to change.
    pub fn done(&self) -> u64 {
        self.inserted + self.changes.found()
    }

    /// Whether every document that was read is accounted for, once.
    pub fn is_balanced(&self) -> bool {
        let done = self.inserted + self.changes.documents();
        let answered = done + self.already_there + self.rejected;
        self.read == answered + self.unsent && self.conflicts <= self.rejected
    }
}

/// How long each stage took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PhaseTimes {
    /// The whole run, until now or its end.
    pub total: Duration,
    /// While documents were read and written.
    pub data: Duration,
    /// While users and roles were restored.
    pub users: Duration,
    /// While the oplog was replayed.
    pub oplog: Duration,
    /// While only index builds were left.
    pub indexes: Duration,
    /// While indexes that delete documents were built.
    pub time_to_live: Duration,
    /// While views were created.
    pub views: Duration,
}

impl PhaseTimes {
    pub(super) fn add(&mut self, phase: Phase, time: Duration) {
        match phase {
            Phase::Data => self.data += time,
            Phase::Users => self.users += time,
            Phase::Oplog => self.oplog += time,
            Phase::Indexes => self.indexes += time,
            Phase::TimeToLive => self.time_to_live += time,
            Phase::Views => self.views += time,
            Phase::Ended => {}
        }
    }
}
