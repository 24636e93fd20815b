//! What a server holds, as a value, and the difference between two looks at it.

mod difference;

use serde::{Serialize, Serializer};
use std::time::Duration;

use crate::namespace::Namespace;
use crate::report::value::{OptionValue, TargetFacts};

pub use difference::{NamespaceDifference, Sums, SurveyDifference};

/// The name and version of the JSON form; a change that breaks readers raises the number.
pub const SCHEMA: &str = "restorm.survey/1";

/// The report of a survey that is a run of its own.
#[derive(Clone, Debug, Serialize)]
pub struct SurveyReport {
    /// The name and version of the JSON form.
    pub schema: &'static str,
    /// The version of this program.
    pub tool_version: String,
    /// What was looked at.
    pub target: TargetFacts,
    /// What was asked for, as far as it differs from the defaults.
    pub options: Vec<OptionValue>,
    /// What was found.
    pub survey: Survey,
}

/// A restore's target before it and after it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BeforeAndAfter {
    /// What there was before anything was done; nothing where that could not be found out.
    pub before: Option<Survey>,
    /// What there is after the last index; nothing where that could not be found out.
    pub after: Option<Survey>,
    /// What has changed, where both are known.
    pub difference: Option<SurveyDifference>,
}

impl BeforeAndAfter {
    /// Compares two surveys.
    pub fn new(before: Option<Survey>, after: Option<Survey>) -> Self {
        let difference = match (&before, &after) {
            (Some(before), Some(after)) => Some(SurveyDifference::between(before, after)),
            _ => None,
        };
        Self { before, after, difference }
    }
}

/// What a server holds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Survey {
    /// The server.
    pub server: SurveyedServer,
    /// Sums over the collections, as far as they are known.
    pub totals: SurveyTotals,
    /// How long the survey took.
    #[serde(rename = "seconds", serialize_with = "seconds")]
    pub time: Duration,
    /// The collections and views, by name.
    pub namespaces: Vec<SurveyedNamespace>,
    /// What could not be found out, and what else a person should know.
    pub notes: Vec<String>,
}

/// The server that was surveyed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SurveyedServer {
    /// Its version.
    pub version: String,
    /// What it is: several products speak MongoDB's protocol.
    pub product: &'static str,
    /// Its storage engine, where it is told.
    pub storage_engine: Option<String>,
    /// How it is deployed.
    pub topology: Deployment,
    /// The name of its replica set, where it is in one.
    pub replica_set: Option<String>,
    /// The members of its replica set, where it is in one.
    pub members: Option<u64>,
    /// The shards of its cluster, where they are told.
    pub shards: Option<u64>,
}

/// How a server is deployed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Deployment {
    /// One server without replication.
    Standalone,
    /// A replica set.
    ReplicaSet,
    /// A sharded cluster.
    Sharded,
}

/// Sums over the collections, as far as they are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct SurveyTotals {
    /// Collections, views apart.
    pub collections: u64,
    /// Views.
    pub views: u64,
    /// Documents.
    pub documents: u64,
    /// Bytes of the documents, uncompressed.
    pub data_bytes: u64,
    /// Bytes of the collections' files.
    pub storage_bytes: u64,
    /// Bytes of documents for each byte of files.
    pub compression_ratio: Option<f64>,
    /// Bytes of a document, uncompressed.
    pub average_document_bytes: Option<f64>,
    /// Indexes, those on `_id` included.
    pub indexes: u64,
    /// Bytes of the indexes' files.
    pub index_bytes: u64,
}

/// A collection or view; what is not told is absent.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SurveyedNamespace {
    /// Its full name.
    #[serde(serialize_with = "full_name")]
    pub namespace: Namespace,
    /// The server's word for its kind: `collection`, `view` or `timeseries`.
    pub kind: String,
    /// Whether it is distributed over shards.
    pub is_sharded: bool,
    /// Its documents.
    pub documents: Option<u64>,
    /// Bytes of its documents, uncompressed.
    pub data_bytes: Option<u64>,
    /// Bytes of its file.
    pub storage_bytes: Option<u64>,
    /// Bytes of documents for each byte of its file.
    pub compression_ratio: Option<f64>,
    /// Bytes of a document, uncompressed.
    pub average_document_bytes: Option<f64>,
    /// Bytes of its indexes' files.
    pub index_bytes: Option<u64>,
    /// Its indexes.
    pub indexes: Option<Vec<SurveyedIndex>>,
    /// What fields its documents have.
    pub fields: Option<FieldInventory>,
    /// A few of its documents.
    pub samples: Vec<SampleDocument>,
    /// What could not be found out.
    pub notes: Vec<String>,
}

/// An index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SurveyedIndex {
    /// Its name.
    pub name: String,
    /// Its key as Extended JSON.
    pub key: String,
    /// Bytes of its file, where they are told.
    pub bytes: Option<u64>,
}

/// What fields documents have.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FieldInventory {
    /// The documents that were looked at.
    pub documents: u64,
    /// Whether all of the collection were, and every field is listed.
    pub is_complete: bool,
    /// The fields, each behind the one that it lies in.
    pub fields: Vec<SurveyedField>,
}

/// A field of the documents of a collection.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SurveyedField {
    /// Its name, with dots before the names of fields inside of others, be it in arrays.
    pub name: String,
    /// Documents of those looked at that have it.
    pub documents: u64,
    /// Their share, from 0 to 1.
    pub share: f64,
    /// The types of its values.
    pub types: Vec<FieldType>,
}

/// A type that values of a field have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FieldType {
    /// The server's word for it, as `$type` takes it.
    #[serde(rename = "type")]
    pub name: &'static str,
    /// Documents in which the field has a value of this type.
    pub documents: u64,
}

/// A document as an example.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SampleDocument {
    /// Its bytes, as BSON.
    pub bytes: u64,
    /// The document as relaxed Extended JSON.
    pub json: String,
    /// Whether a part of it is left out.
    pub is_cut: bool,
}

impl SurveyedNamespace {
    /// A collection or view of which nothing else is known.
    pub fn new(namespace: Namespace, kind: impl Into<String>) -> Self {
        Self {
            namespace,
            kind: kind.into(),
            is_sharded: false,
            documents: None,
            data_bytes: None,
            storage_bytes: None,
            compression_ratio: None,
            average_document_bytes: None,
            index_bytes: None,
            indexes: None,
            fields: None,
            samples: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Whether it is a view, which stores nothing.
    pub fn is_view(&self) -> bool {
        self.kind == "view"
    }

    /// Works out what follows from the sizes.
    #[must_use]
    pub fn measured(mut self) -> Self {
        self.compression_ratio = self.data_bytes.and_then(|data| ratio(data, self.storage_bytes?));
        self.average_document_bytes = self.data_bytes.and_then(|data| ratio(data, self.documents?));
        self
    }
}

impl Survey {
    /// Sums up what was found of single collections, and puts them in the order of their names.
    pub fn new(
        server: SurveyedServer,
        mut namespaces: Vec<SurveyedNamespace>,
        notes: Vec<String>,
        time: Duration,
    ) -> Self {
        namespaces.sort_by(|one, other| one.namespace.cmp(&other.namespace));
        let totals = SurveyTotals::of(&namespaces);
        Self { server, totals, time, namespaces, notes }
    }

    /// What was found of one collection.
    pub fn of(&self, namespace: &Namespace) -> Option<&SurveyedNamespace> {
        let place = self.namespaces.binary_search_by(|one| one.namespace.cmp(namespace)).ok()?;
        self.namespaces.get(place)
    }
}

impl SurveyTotals {
    fn of(namespaces: &[SurveyedNamespace]) -> Self {
        let sum =
            |of: fn(&SurveyedNamespace) -> Option<u64>| namespaces.iter().filter_map(of).sum();
        let views = namespaces.iter().filter(|one| one.is_view()).count() as u64;
        let totals = Self {
            collections: namespaces.len() as u64 - views,
            views,
            documents: sum(|one| one.documents),
            data_bytes: sum(|one| one.data_bytes),
            storage_bytes: sum(|one| one.storage_bytes),
            indexes: sum(|one| Some(one.indexes.as_ref()?.len() as u64)),
            index_bytes: sum(|one| one.index_bytes),
            ..Self::default()
        };
        Self {
            compression_ratio: ratio(totals.data_bytes, totals.storage_bytes),
            average_document_bytes: ratio(totals.data_bytes, totals.documents),
            ..totals
        }
    }
}

/// How often one number goes into another; nothing for none.
#[expect(clippy::cast_precision_loss, reason = "a few digits are shown")]
fn ratio(number: u64, of: u64) -> Option<f64> {
    (number > 0 && of > 0).then(|| number as f64 / of as f64)
}

fn seconds<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(time.as_secs_f64())
}

fn full_name<S: Serializer>(name: &Namespace, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(name.full())
}

#[cfg(test)]
pub(crate) mod samples;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_and_ratios_are_of_what_is_known() {
        let survey = samples::after();
        let totals = survey.totals;
        assert_eq!((totals.collections, totals.views), (2, 1));
        assert_eq!((totals.documents, totals.data_bytes), (300_010, 48_002_000));
        assert_eq!((totals.indexes, totals.index_bytes), (3, 6_204_096));
        assert_eq!(totals.storage_bytes, 12_004_096);
        let ratio = totals.compression_ratio.expect("there is a size");
        assert!((3.99..4.0).contains(&ratio), "{ratio}");
        let orders = survey.of(&Namespace::new("shop", "orders")).expect("it is there");
        assert_eq!(orders.compression_ratio, Some(4.0));
        assert_eq!(orders.average_document_bytes, Some(160.0));
        assert_eq!(survey.of(&Namespace::new("shop", "other")), None);
    }

    #[test]
    fn nothing_has_no_ratio() {
        assert_eq!(SurveyTotals::of(&[]), SurveyTotals::default());
        let mut empty = SurveyedNamespace::new(Namespace::new("shop", "empty"), "collection");
        (empty.documents, empty.data_bytes, empty.storage_bytes) = (Some(0), Some(0), Some(4096));
        let empty = empty.measured();
        assert_eq!((empty.compression_ratio, empty.average_document_bytes), (None, None));
    }
}
