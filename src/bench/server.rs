//! What is asked of a server between the runs.

use super::expected::Expected;
use crate::error::{Error, ErrorKind};
use crate::facts::ExistingDetail;
use crate::target::mongo::weight::Weight;
use crate::target::mongo::{Connection, MongoTarget};
use crate::target::{Target, TargetError};

/// Names that are listed in an error.
const NAMES_LISTED: usize = 5;

/// A server that is restored to.
#[derive(Clone, Debug)]
pub struct Server {
    target: MongoTarget,
    /// Its version.
    pub version: String,
}

/// What was found after a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Documents in the collections of the dump.
    pub documents: u64,
    /// Documents that one of them lacks.
    pub missing: u64,
    /// How large the databases of the dump are.
    pub weight: Weight,
}

fn failed(what: &str, error: &TargetError) -> Error {
    let failed = Error::new(ErrorKind::Connect, format!("{what}: {error}"));
    error.code.map_or(failed.clone(), |code| failed.with_code(code))
}

impl Server {
    /// Connects to the server at this connection string.
    pub(super) async fn connect(uri: &str) -> Result<Self, Error> {
        let (target, facts) = MongoTarget::connect(&Connection::new(uri)).await?;
        Ok(Self { target, version: facts.version.to_string() })
    }

    /// Refuses a server that holds collections of the dump, which would be dropped.
    pub(super) async fn refuse_occupied(&self, expected: &Expected) -> Result<(), Error> {
        let databases = expected.databases();
        let existing = self.target.existing(databases.into_iter(), ExistingDetail::Names).await?;
        let taken: Vec<String> = expected
            .collections
            .iter()
            .filter(|one| existing.iter().any(|there| there.namespace == one.namespace))
            .map(|one| one.namespace.to_string())
            .collect();
        if taken.is_empty() {
            return Ok(());
        }
        let more = taken.len().saturating_sub(NAMES_LISTED);
        let names = taken[..taken.len() - more].join(", ");
        let names = if more > 0 { format!("{names} and {more} more") } else { names };
        let message = format!("the server holds collections of the dump already: {names}");
        Err(Error::new(ErrorKind::Plan, message).hint(
            "nothing was touched; --drop lets the benchmark drop them before each run and at the \
             end, and --mongod PATH --fresh measures on servers of its own",
        ))
    }

    /// Drops the collections of the dump.
    pub(super) async fn clear(&self, expected: &Expected) -> Result<(), Error> {
        for one in &expected.collections {
            // A server keeps its own system.js.
            let is_system = one.namespace.collection().starts_with("system.");
            let cleared = if is_system {
                self.target.empty(&one.namespace).await
            } else {
                self.target.drop_collection(&one.namespace).await
            };
            cleared.map_err(|error| failed("cannot be dropped", &error).of(&one.namespace))?;
        }
        Ok(())
    }

    /// Counts what is there, and weighs it.
    pub(super) async fn look(&self, expected: &Expected) -> Result<Found, Error> {
        let mut found = Found::default();
        for one in expected.collections.iter().filter(|one| !one.is_view) {
            let counted = self.target.count(&one.counted_in).await;
            let counted =
                counted.map_err(|error| failed("cannot be counted", &error).of(&one.counted_in))?;
            found.documents += counted;
            found.missing += one.documents.saturating_sub(counted);
        }
        self.target.flush().await;
        for database in expected.databases() {
            let weight = self.target.weigh(database).await;
            let weight = weight
                .map_err(|error| failed(&format!("`{database}` cannot be weighed"), &error))?;
            found.weight.data_bytes += weight.data_bytes;
            found.weight.storage_bytes += weight.storage_bytes;
            found.weight.index_bytes += weight.index_bytes;
        }
        Ok(found)
    }
}
