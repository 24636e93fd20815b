//! Transactions whose operations wait for their commit.

use std::collections::BTreeMap;

use bson::raw::RawDocument;
use bson::{RawBsonRef, RawDocumentBuf};

use crate::error::Error;
use crate::plan::oplog::entry::{self, Entry, damaged, error};

/// The session and the number of a transaction.
type Key = (Vec<u8>, i64);

/// The operations of transactions that are neither committed nor aborted.
#[derive(Debug)]
pub(super) struct Transactions {
    open: BTreeMap<Key, Waiting>,
    /// The bytes of all of them, and how many they may be.
    bytes: usize,
    bytes_max: usize,
}

/// The operations of one transaction.
#[derive(Debug, Default)]
struct Waiting {
    operations: Vec<RawDocumentBuf>,
    bytes: usize,
}

/// Whether the entry belongs to a transaction; inserts of many documents at once look alike, but
/// say that they are retryable writes (`multiOpType: 1`).
pub(super) fn concerns(entry: &Entry<'_>, command: &str) -> bool {
    const RETRYABLE: i64 = 1;
    matches!(command, "applyOps" | "commitTransaction" | "abortTransaction")
        && entry.field("multiOpType").and_then(crate::plan::whole_number) != Some(RETRYABLE)
        && key(entry).is_some()
}

fn key(entry: &Entry<'_>) -> Option<Key> {
    let session = entry.field("lsid")?.as_document()?.as_bytes().to_vec();
    let number = entry.field("txnNumber").and_then(crate::plan::whole_number)?;
    Some((session, number))
}

impl Transactions {
    /// None yet; those that wait may take so many bytes.
    pub(super) fn within(bytes_max: usize) -> Self {
        Self { open: BTreeMap::new(), bytes: 0, bytes_max }
    }

    /// Takes an entry of a transaction; returns the operations of one that it commits.
    pub(super) fn take(
        &mut self,
        entry: &Entry<'_>,
        command: &str,
        value: RawBsonRef<'_>,
    ) -> Result<Vec<RawDocumentBuf>, Error> {
        let Some(key) = key(entry) else {
            return Ok(Vec::new());
        };
        match command {
            "commitTransaction" => return Ok(self.close(&key)),
            "abortTransaction" => {
                self.close(&key);
                return Ok(Vec::new());
            }
            _ => {}
        }
        let kept = self.open.entry(key.clone()).or_default();
        for operation in inside(value)? {
            let operation = entry::stamped(operation?, entry.stamp())?;
            let bytes = operation.as_bytes().len();
            kept.bytes += bytes;
            self.bytes += bytes;
            kept.operations.push(operation);
        }
        if self.bytes > self.bytes_max {
            let mebibytes = self.bytes_max >> 20;
            return Err(error(format!(
                "transactions that wait for their commit take more than {mebibytes} MiB of memory"
            )));
        }
        let is_set = |field| matches!(entry.object.get(field), Ok(Some(RawBsonRef::Boolean(true))));
        if is_set("partialTxn") || is_set("prepare") {
            return Ok(Vec::new());
        }
        Ok(self.close(&key))
    }

    /// The operations of a transaction that waits no longer.
    fn close(&mut self, key: &Key) -> Vec<RawDocumentBuf> {
        let closed = self.open.remove(key).unwrap_or_default();
        self.bytes -= closed.bytes;
        closed.operations
    }

    /// How many transactions wait.
    pub(super) fn open(&self) -> usize {
        self.open.len()
    }
}

/// The operations of an `applyOps` command.
pub(super) fn inside(
    value: RawBsonRef<'_>,
) -> Result<impl Iterator<Item = Result<&RawDocument, Error>>, Error> {
    let operations =
        value.as_array().ok_or_else(|| error("the operations of applyOps are no array"))?;
    Ok(operations.into_iter().map(|operation| {
        let operation = operation.map_err(|error| damaged(&error))?;
        operation.as_document().ok_or_else(|| error("an operation of applyOps is no document"))
    }))
}
