//! One entry of an oplog as bytes, and how it is written down to be applied.
//!
//! Only the entry's own fields are looked at and chosen among; what it does to documents, its `o`
//! and `o2`, is copied as it is.

use bson::raw::{RawDocument, cstr};
use bson::{RawBsonRef, RawDocumentBuf, Timestamp};

use crate::error::{Error, ErrorKind};
use crate::namespace::Namespace;
use crate::plan::oplog::Uuids;

/// The fields of an entry that are sent; others say how the source came by it.
const SENT: [&str; 11] =
    ["ts", "t", "v", "op", "ns", "o", "o2", "lsid", "txnNumber", "prevOpTime", "multiOpType"];

/// The fields that say what is done. A server of 4.2 takes the lock that a change of its views
/// needs only where an entry has no other field, even of those that newer ones expect (seen on
/// 4.2.6, with `ts`, `t`, `h`, `v` and `wall`).
const ESSENTIAL: [&str; 4] = ["op", "ns", "o", "o2"];

/// The field that names the collection by its identity at the source.
const UUID: &str = "ui";

/// The time of an entry that has none, before all others.
pub const BEGINNING: Timestamp = Timestamp { time: 0, increment: 0 };

/// An entry whose own fields are as they should be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry<'a> {
    raw: &'a RawDocument,
    /// What it does: `i`, `u`, `d`, `c` and others.
    pub(super) operation: &'a str,
    /// The namespace as it stands there.
    pub(super) namespace: &'a str,
    /// What is done.
    pub(super) object: &'a RawDocument,
}

/// When and in which term a transaction was committed, for the operations inside it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stamp<'a> {
    time: Timestamp,
    term: Option<RawBsonRef<'a>>,
}

/// An error of kind [`ErrorKind::Oplog`].
pub(super) fn error(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Oplog, message)
}

pub(super) fn damaged(error: &bson::error::Error) -> Error {
    self::error(format!("the entry is damaged: {error}"))
}

/// When an entry happened; [`BEGINNING`] where it does not say.
pub fn time_of(entry: &RawDocument) -> Timestamp {
    entry.get_timestamp("ts").unwrap_or(BEGINNING)
}

impl<'a> Entry<'a> {
    pub(super) fn read(raw: &'a RawDocument) -> Result<Self, Error> {
        let missing = |field| move |_| error(format!("the entry has no usable field `{field}`"));
        let operation = raw.get_str("op").map_err(missing("op"))?;
        Ok(Self {
            raw,
            operation,
            namespace: raw.get_str("ns").unwrap_or_default(),
            object: match raw.get_document("o") {
                Ok(object) => object,
                // An entry that says nothing need not have one.
                Err(_) if operation == "n" => {
                    RawDocument::from_bytes(b"\x05\0\0\0\0").map_err(|e| damaged(&e))?
                }
                Err(_) => return Err(error("the entry has no usable field `o`")),
            },
        })
    }

    /// The database of its namespace.
    pub(super) fn database(&self) -> &'a str {
        self.namespace.split_once('.').map_or(self.namespace, |(database, _)| database)
    }

    /// The collection of its namespace.
    pub(super) fn collection(&self) -> &'a str {
        self.namespace.split_once('.').map_or("", |(_, collection)| collection)
    }

    /// The namespace of the collection that a command names in its first field.
    pub(super) fn named(&self, value: RawBsonRef<'a>) -> Result<Namespace, Error> {
        let name = value
            .as_str()
            .ok_or_else(|| error("the command of the entry does not name its collection"))?;
        Ok(Namespace::new(self.database(), name))
    }

    /// The field of the entry, where it is there and readable.
    pub(super) fn field(&self, name: &str) -> Option<RawBsonRef<'a>> {
        self.raw.get(name).ok().flatten()
    }

    /// The name and value of the first field of what is done: the command and what it is about.
    pub(super) fn command(&self) -> Result<(&'a str, RawBsonRef<'a>), Error> {
        let first = self
            .object
            .iter_elements()
            .next()
            .ok_or_else(|| error("the command of the entry is empty"))?
            .map_err(|error| damaged(&error))?;
        let value = first.value().map_err(|error| damaged(&error))?;
        Ok((first.key().as_str(), value))
    }

    /// What operations inside it take over from it.
    pub(super) fn stamp(&self) -> Stamp<'a> {
        Stamp { time: time_of(self.raw), term: self.field("t") }
    }

    /// The entry as it is sent, with another object where one is given.
    pub(super) fn sent(
        &self,
        object: Option<&RawDocument>,
        uuids: Uuids,
    ) -> Result<RawDocumentBuf, Error> {
        let mut sent = RawDocumentBuf::new();
        for element in self.raw.iter_elements() {
            let element = element.map_err(|error| damaged(&error))?;
            let key = element.key();
            let is_sent =
                SENT.contains(&key.as_str()) || (key.as_str() == UUID && uuids == Uuids::Kept);
            if !is_sent {
                continue;
            }
            match object.filter(|_| key.as_str() == "o") {
                Some(object) => sent.append(key, object),
                None => sent.append(key, element.value().map_err(|error| damaged(&error))?),
            }
        }
        Ok(sent)
    }

    /// What it does and nothing else, as a server needs it that is to change a view.
    pub(super) fn essence(&self) -> Result<RawDocumentBuf, Error> {
        without(self.raw, |field| !ESSENTIAL.contains(&field))
    }
}

/// An operation inside a transaction, as an entry of its own that happened when it was committed.
pub(super) fn stamped(operation: &RawDocument, stamp: Stamp<'_>) -> Result<RawDocumentBuf, Error> {
    let mut entry = without(operation, |field| matches!(field, "ts" | "t"))?;
    entry.append(cstr!("ts"), stamp.time);
    if let Some(term) = stamp.term {
        entry.append(cstr!("t"), term);
    }
    Ok(entry)
}

/// The document without some of its fields.
pub(super) fn without(
    document: &RawDocument,
    is_left_out: impl Fn(&str) -> bool,
) -> Result<RawDocumentBuf, Error> {
    let mut kept = RawDocumentBuf::new();
    for element in document.iter_elements() {
        let element = element.map_err(|error| damaged(&error))?;
        if !is_left_out(element.key().as_str()) {
            kept.append(element.key(), element.value().map_err(|error| damaged(&error))?);
        }
    }
    Ok(kept)
}
