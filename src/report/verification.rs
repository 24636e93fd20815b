//! What a comparison of a dump with a target found, as a value.

use std::time::Duration;

use serde::{Serialize, Serializer};

use crate::exit::ExitStatus;
use crate::namespace::Namespace;
use crate::report::value::{DumpFacts, OptionValue, Skipped, TargetFacts};

/// The name and version of the JSON form; a change that breaks readers raises the number.
pub const SCHEMA: &str = "restorm.verify/1";

/// The report of a comparison that is a run of its own.
#[derive(Clone, Debug, Serialize)]
pub struct VerifyReport {
    /// The name and version of the JSON form.
    pub schema: &'static str,
    /// The version of this program.
    pub tool_version: String,
    /// The exit status that follows from all of this.
    pub exit_status: ExitStatus,
    /// Where documents should be.
    pub target: TargetFacts,
    /// Where documents come from.
    pub dump: DumpFacts,
    /// What was asked for.
    pub options: Vec<OptionValue>,
    /// What was found.
    pub verification: Verification,
    /// What of the dump was not compared, and why.
    pub skipped: Vec<Skipped>,
}

/// What was found.
#[derive(Clone, Debug, Serialize)]
pub struct Verification {
    /// What it comes to.
    pub state: Agreement,
    /// Sums over the collections.
    pub totals: VerifiedTotals,
    /// How long it took.
    #[serde(rename = "seconds", serialize_with = "seconds")]
    pub time: Duration,
    /// The collections in the order of the plan.
    pub collections: Vec<VerifiedCollection>,
    /// What a person should know.
    pub notes: Vec<String>,
}

/// Whether two sides agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Agreement {
    /// They do.
    Same,
    /// They do not.
    Different,
    /// That could not be found out.
    NotCompared,
}

/// Sums over the collections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct VerifiedTotals {
    /// Collections, views included.
    pub collections: u64,
    /// Collections that are the same on both sides.
    pub collections_same: u64,
    /// Collections that differ.
    pub collections_different: u64,
    /// Collections that could not be compared.
    pub collections_not_compared: u64,
    /// Documents of the dump.
    pub documents_dump: u64,
    /// Documents of the target.
    pub documents_target: u64,
}

/// How the documents of a collection were compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Extent {
    /// All of both sides, by count and hash.
    All,
    /// All of both sides, but without their `_id`, since some have none in the dump.
    WithoutId,
    /// Each of the dump was looked up; the target may hold others.
    Contained,
    /// There are none to compare.
    Nothing,
}

/// What was found of one collection.
#[derive(Clone, Debug, Serialize)]
pub struct VerifiedCollection {
    /// Its full name on the target.
    #[serde(serialize_with = "full_name")]
    pub namespace: Namespace,
    /// Its full name in the dump.
    #[serde(serialize_with = "full_name")]
    pub source: Namespace,
    /// The server's word for its kind.
    pub kind: &'static str,
    /// What it comes to.
    pub state: Agreement,
    /// Why it could not be compared.
    pub error: Option<String>,
    /// How its documents were compared.
    pub extent: Extent,
    /// The documents of the dump.
    pub dump: Option<Side>,
    /// The documents of the target.
    pub target: Option<Side>,
    /// The documents that differ.
    pub documents: Option<DifferingDocuments>,
    /// What differs of its kind and its options.
    pub options: Vec<Deviation>,
    /// What differs of its indexes.
    pub indexes: Vec<Deviation>,
    /// What a person should know.
    pub notes: Vec<String>,
}

/// The documents of one side.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Side {
    /// How many there are.
    pub documents: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The sum modulo 2^128 of the XXH3-128 of each, 32 hexadecimal digits.
    pub hash: String,
}

/// The documents that differ.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DifferingDocuments {
    /// Documents of the dump that the target lacks.
    pub missing: u64,
    /// Documents of the target that the dump lacks.
    pub extra: u64,
    /// Documents that both sides have under one `_id` and with other bytes.
    pub changed: u64,
    /// Whether these are all; where very many differ, only a part is looked for.
    pub is_complete: bool,
    /// The first few.
    pub samples: Vec<DifferingDocument>,
}

/// A document that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DifferingDocument {
    /// How it differs.
    pub difference: Difference,
    /// Its `_id` as Extended JSON, or where it lies where it has none.
    pub id: String,
}

/// How a document differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Difference {
    /// The target lacks it.
    Missing,
    /// The dump lacks it.
    Extra,
    /// The target has another one under its `_id`.
    Changed,
}

impl Difference {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Extra => "extra",
            Self::Changed => "changed",
        }
    }
}

/// An option or an index that differs; one of both sides may lack it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Deviation {
    /// Its name.
    pub name: String,
    /// What it should be, as Extended JSON.
    pub expected: Option<String>,
    /// What it is, as Extended JSON.
    pub found: Option<String>,
}

impl VerifiedCollection {
    /// Decides what it comes to from what was found.
    pub fn judge(&mut self) {
        let differs = self.documents.is_some() || self.dump != self.target_as_dump();
        self.state = if differs || !self.options.is_empty() || !self.indexes.is_empty() {
            Agreement::Different
        } else if self.error.is_some() {
            Agreement::NotCompared
        } else {
            Agreement::Same
        };
    }

    /// The target's documents where they are to be those of the dump.
    fn target_as_dump(&self) -> Option<Side> {
        match self.extent {
            Extent::All | Extent::WithoutId if self.error.is_none() => self.target.clone(),
            _ => self.dump.clone(),
        }
    }
}

impl Verification {
    /// Sums up what was found of single collections.
    pub fn new(collections: Vec<VerifiedCollection>, notes: Vec<String>, time: Duration) -> Self {
        let mut totals = VerifiedTotals::default();
        for one in &collections {
            totals.collections += 1;
            match one.state {
                Agreement::Same => totals.collections_same += 1,
                Agreement::Different => totals.collections_different += 1,
                Agreement::NotCompared => totals.collections_not_compared += 1,
            }
            totals.documents_dump += one.dump.as_ref().map_or(0, |side| side.documents);
            totals.documents_target += one.target.as_ref().map_or(0, |side| side.documents);
        }
        let state = if totals.collections_different > 0 {
            Agreement::Different
        } else if totals.collections_not_compared > 0 {
            Agreement::NotCompared
        } else {
            Agreement::Same
        };
        Self { state, totals, time, collections, notes }
    }

    /// The exit status of a comparison alone.
    pub fn exit_status(&self) -> ExitStatus {
        match self.state {
            Agreement::Same => ExitStatus::Restored,
            Agreement::Different => ExitStatus::Difference,
            Agreement::NotCompared => ExitStatus::Stopped,
        }
    }
}

impl VerifyReport {
    /// Decides the exit status: what of the dump cannot be compared is no agreement.
    #[must_use]
    pub fn judged(mut self) -> Self {
        let is_whole = !self.skipped.iter().any(|skipped| skipped.is_problem);
        self.exit_status = match self.verification.exit_status() {
            ExitStatus::Restored if !is_whole => ExitStatus::Stopped,
            status => status,
        };
        self
    }
}

fn seconds<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(time.as_secs_f64())
}

fn full_name<S: Serializer>(name: &Namespace, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(name)
}

#[cfg(test)]
pub(crate) mod samples;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_counts_more_than_what_could_not_be_compared() {
        let verification = samples::different();
        assert_eq!(verification.state, Agreement::Different);
        let states: Vec<_> = verification.collections.iter().map(|one| one.state).collect();
        let expected =
            [Agreement::Different, Agreement::Same, Agreement::Same, Agreement::NotCompared];
        assert_eq!(states, expected);
        assert_eq!(verification.exit_status(), ExitStatus::Difference);
        assert_eq!(samples::same().exit_status(), ExitStatus::Restored);
        let rest = verification.collections.into_iter().skip(1).collect();
        let rest = Verification::new(rest, Vec::new(), Duration::ZERO);
        assert_eq!(rest.exit_status(), ExitStatus::Stopped);
    }

    #[test]
    fn what_could_not_be_used_of_the_dump_is_no_agreement() {
        let mut report = samples::report(samples::same());
        assert_eq!(report.exit_status, ExitStatus::Restored);
        report.skipped[0].is_problem = true;
        assert_eq!(report.judged().exit_status, ExitStatus::Stopped);
    }

    #[test]
    fn counts_that_differ_are_enough() {
        let mut one = samples::same().collections.remove(0);
        one.target = Some(Side { documents: 1, bytes: 5, hash: String::new() });
        one.judge();
        assert_eq!(one.state, Agreement::Different);
        one.extent = Extent::Contained;
        one.judge();
        assert_eq!(one.state, Agreement::Same);
    }
}
