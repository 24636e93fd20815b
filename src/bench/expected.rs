//! What a dump holds, as a restore into nothing reports it.

use std::collections::BTreeSet;

use serde::Deserialize;

use super::sample::{DumpFacts, WorkersSeen};
use crate::error::{Error, ErrorKind};
use crate::namespace::Namespace;

/// What is expected of a server after each run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expected {
    /// The collections.
    pub collections: Vec<Counted>,
    /// Bytes of all documents, uncompressed.
    pub bytes: u64,
    /// Whether users or roles come with it.
    pub has_users: bool,
}

/// A collection with its documents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counted {
    /// Its name.
    pub namespace: Namespace,
    /// Where its documents lie: the buckets of a time-series collection, else the collection.
    pub counted_in: Namespace,
    /// How many there are.
    pub documents: u64,
    /// Whether it is a view.
    pub is_view: bool,
}

impl Expected {
    /// Reads what a restore into nothing reports.
    ///
    /// # Errors
    ///
    /// Of kind [`ErrorKind::Internal`]: the report is not as it should be.
    pub fn of_report(text: &str) -> Result<Self, Error> {
        let report = Told::read(text)?;
        let collections = report.collections.iter().filter_map(|one| {
            let (database, name) = one.namespace.split_once('.')?;
            let namespace = Namespace::new(database, name);
            let counted_in = match one.kind.as_str() {
                "timeseries" => Namespace::new(database, format!("system.buckets.{name}")),
                _ => namespace.clone(),
            };
            let is_view = one.kind == "view";
            Some(Counted { namespace, counted_in, documents: one.balance.inserted, is_view })
        });
        Ok(Self {
            collections: collections.collect(),
            bytes: report.totals.bytes_acknowledged,
            has_users: report.users.is_some(),
        })
    }

    /// The databases.
    pub fn databases(&self) -> BTreeSet<&str> {
        self.collections.iter().map(|one| one.namespace.database()).collect()
    }

    /// All documents.
    pub fn documents(&self) -> u64 {
        self.collections.iter().map(|one| one.documents).sum()
    }

    /// As facts about the dump at this path.
    pub fn facts(&self, path: String) -> DumpFacts {
        DumpFacts {
            path,
            collections: self.collections.len() as u64,
            documents: self.documents(),
            bytes: self.bytes,
        }
    }
}

/// What is read of the report of a restore.
#[derive(Debug, Deserialize)]
pub(super) struct Told {
    collections: Vec<CollectionTold>,
    totals: Totals,
    users: Option<serde_json::Value>,
    pub(super) times: Times,
    pub(super) workers: WorkersSeen,
}

#[derive(Debug, Deserialize)]
struct CollectionTold {
    namespace: String,
    kind: String,
    balance: Balance,
}

#[derive(Debug, Deserialize)]
struct Balance {
    inserted: u64,
}

#[derive(Debug, Deserialize)]
struct Totals {
    bytes_acknowledged: u64,
}

/// The times that a restore tells.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(super) struct Times {
    pub(super) data_seconds: f64,
    pub(super) index_builds_seconds: f64,
}

impl Told {
    pub(super) fn read(text: &str) -> Result<Self, Error> {
        serde_json::from_str(text).map_err(|error| {
            let message = format!("the report of a restore cannot be read: {error}");
            Error::new(ErrorKind::Internal, message)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_tells_what_to_expect() {
        let collection = |name: &str, kind: &str, documents: u64| {
            serde_json::json!({
                "namespace": name, "kind": kind, "balance": { "inserted": documents }
            })
        };
        let report = serde_json::json!({
            "collections": [
                collection("shop.a.b", "collection", 5),
                collection("shop.v", "view", 0),
                collection("iot.t", "timeseries", 2),
            ],
            "totals": { "bytes_acknowledged": 99 },
            "users": null,
            "times": { "data_seconds": 1.5, "index_builds_seconds": 0.5 },
            "workers": { "most": 4, "last": 2, "fixed": null },
        });
        let expected = Expected::of_report(&report.to_string()).expect("read");
        assert_eq!(expected.documents(), 7);
        assert_eq!(expected.databases().into_iter().collect::<Vec<_>>(), ["iot", "shop"]);
        assert_eq!(expected.collections[0].counted_in.to_string(), "shop.a.b");
        assert!(expected.collections[1].is_view);
        assert_eq!(expected.collections[2].counted_in.to_string(), "iot.system.buckets.t");
        assert!(!expected.has_users);
        assert!(Expected::of_report("{}").is_err());
    }
}
