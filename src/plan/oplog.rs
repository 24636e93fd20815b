//! What each entry of an oplog means for a restore.
//!
//! A [`Replay`] takes entries one by one and says what is to be applied for each, in order. It
//! leaves out what a server does by itself, keeps the operations of transactions until they are
//! committed, and turns what is done to indexes into a [`Catalogue`] that is built in the end.

mod catalogue;
mod entry;
mod transactions;

use bson::raw::RawDocument;
use bson::{RawBsonRef, RawDocumentBuf, Timestamp, rawdoc};

use crate::dump::inventory::Origin;
use crate::error::Error;
use crate::facts::ServerFacts;
use crate::limits::TRANSACTIONS_BYTES_MAX;
use crate::namespace::Namespace;
use crate::plan::{IndexFixes, IndexPolicy, RestorePlan, Validation};
use entry::{Entry, damaged, error, without};
use transactions::Transactions;

pub use catalogue::{Catalogue, Indexed};
pub use entry::{BEGINNING, time_of};

/// The oplog to replay.
#[derive(Clone, Debug)]
pub struct OplogPlan {
    /// Where its entries come from.
    pub origin: Origin,
    /// The time at which it ends, itself not replayed.
    pub limit: Option<Timestamp>,
    /// Whether entries name collections by their identity too.
    pub uuids: Uuids,
    /// Whether there will be indexes.
    pub indexes: IndexPolicy,
    /// How their definitions are made fit.
    pub index_fixes: IndexFixes,
    /// What the server is.
    pub facts: ServerFacts,
    /// Whether validators may refuse what is applied.
    pub validation: Validation,
}

/// Whether entries name collections by their identity at the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Uuids {
    /// By their names alone: the collections have new identities.
    Removed,
    /// By both: the collections were restored with their identities.
    Kept,
}

/// Something to be applied.
#[derive(Clone, Debug, PartialEq)]
pub struct Operation {
    /// The entry as it is sent.
    pub document: RawDocumentBuf,
    /// Whether it writes a document, so that it may travel with others.
    pub is_write: bool,
}

/// What became of an entry.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Taken {
    /// What is to be applied now.
    pub operations: Vec<Operation>,
    /// Operations that count as applied; those on indexes are done with the catalogue.
    pub counted: u64,
    /// Entries and operations that are left out.
    pub left_out: u64,
}

impl Taken {
    fn left_out() -> Self {
        Self { left_out: 1, ..Self::default() }
    }

    fn write(document: RawDocumentBuf) -> Self {
        let operation = Operation { document, is_write: true };
        Self { operations: vec![operation], counted: 1, left_out: 0 }
    }

    fn command(document: Option<RawDocumentBuf>) -> Self {
        let operations = document.map(|document| Operation { document, is_write: false });
        Self { operations: operations.into_iter().collect(), counted: 1, left_out: 0 }
    }

    fn append(&mut self, mut other: Self) {
        self.operations.append(&mut other.operations);
        self.counted += other.counted;
        self.left_out += other.left_out;
    }
}

/// Commands that only concern how the source built its indexes, or checked itself.
const OF_THE_SOURCE: [&str; 5] =
    ["startIndexBuild", "abortIndexBuild", "setMultikeyMetadata", "dropIdent", "dbCheck"];

/// Operations that change nothing, or what belongs to the source's storage alone.
const WITHOUT_EFFECT: [&str; 5] = ["n", "cd", "ci", "cu", "km"];

/// How deep `applyOps` may hold `applyOps`; a server refuses more than one level, and lower is
/// certainly damaged.
const NESTED_MAX: usize = 10;

/// Goes through an oplog.
#[derive(Debug)]
pub struct Replay {
    limit: Option<Timestamp>,
    uuids: Uuids,
    catalogue: Catalogue,
    transactions: Transactions,
}

impl Replay {
    /// A replay of this oplog after the collections of this plan.
    pub fn new(oplog: &OplogPlan, plan: &RestorePlan) -> Self {
        Self {
            limit: oplog.limit,
            uuids: oplog.uuids,
            catalogue: Catalogue::of(plan, oplog),
            transactions: Transactions::within(TRANSACTIONS_BYTES_MAX),
        }
    }

    /// Whether the replay ends before this entry.
    pub fn ends_before(&self, entry: &RawDocument) -> bool {
        self.limit.is_some_and(|limit| time_of(entry) >= limit)
    }

    /// Takes the next entry.
    ///
    /// # Errors
    ///
    /// Of kind [`Oplog`](crate::error::ErrorKind::Oplog), without the place of the entry: it is
    /// damaged, or does something that cannot be replayed.
    pub fn take(&mut self, entry: &RawDocument) -> Result<Taken, Error> {
        self.take_nested(entry, 0)
    }

    /// Transactions that are neither committed nor aborted.
    pub fn open_transactions(&self) -> usize {
        self.transactions.open()
    }

    /// The indexes at the end.
    pub fn into_catalogue(self) -> Catalogue {
        self.catalogue
    }

    fn take_nested(&mut self, raw: &RawDocument, depth: usize) -> Result<Taken, Error> {
        let entry = Entry::read(raw)?;
        if is_of_the_server(&entry) || WITHOUT_EFFECT.contains(&entry.operation) {
            return Ok(Taken::left_out());
        }
        match entry.operation {
            "i" if entry.collection() == "system.indexes" => self.legacy_index(&entry),
            "i" | "u" | "d" if entry.collection() == "system.views" => {
                Ok(Taken::command(Some(entry.essence()?)))
            }
            "i" | "u" | "d" => Ok(Taken::write(entry.sent(None, self.uuids)?)),
            "c" => self.command(&entry, depth),
            other => Err(error(format!("the operation `{other}` is not known"))),
        }
    }

    fn command(&mut self, entry: &Entry<'_>, depth: usize) -> Result<Taken, Error> {
        let (name, value) = entry.command()?;
        if OF_THE_SOURCE.contains(&name) {
            return Ok(Taken::left_out());
        }
        if transactions::concerns(entry, name) {
            let mut taken = Taken::default();
            for operation in self.transactions.take(entry, name, value)? {
                taken.append(self.take_nested(&operation, depth + 1)?);
            }
            return Ok(taken);
        }
        match name {
            "applyOps" => self.apply_ops(value, depth),
            "create" => self.create(entry, value),
            "drop" => {
                self.catalogue.drop_collection(&entry.named(value)?);
                self.forward(entry)
            }
            "dropDatabase" => {
                self.catalogue.drop_database(entry.database());
                self.forward(entry)
            }
            "renameCollection" => self.rename(entry, value),
            "createIndexes" => {
                let spec = without(entry.object, |field| field == "createIndexes")?;
                self.catalogue.create_index(&entry.named(value)?, &spec)?;
                Ok(Taken::command(None))
            }
            "commitIndexBuild" => self.commit_index_build(entry, value),
            "dropIndexes" | "deleteIndexes" | "dropIndex" | "deleteIndex" => {
                let index = entry.object.get("index").map_err(|error| damaged(&error))?;
                let index = index.unwrap_or(RawBsonRef::Null);
                self.catalogue.drop_index(&entry.named(value)?, index)?;
                Ok(Taken::command(None))
            }
            "collMod" => {
                let rest = self.catalogue.modify(&entry.named(value)?, entry.object)?;
                let sent = rest.map(|rest| entry.sent(Some(&rest), self.uuids)).transpose()?;
                Ok(Taken::command(sent))
            }
            "convertToCapped" | "emptycapped" => self.forward(entry),
            other => Err(unknown(other)),
        }
    }

    fn forward(&self, entry: &Entry<'_>) -> Result<Taken, Error> {
        Ok(Taken::command(Some(entry.sent(None, self.uuids)?)))
    }

    /// Operations that were done together are applied one after the other, as the peer does.
    fn apply_ops(&mut self, value: RawBsonRef<'_>, depth: usize) -> Result<Taken, Error> {
        if depth >= NESTED_MAX {
            return Err(error("applyOps is nested too deep"));
        }
        let mut taken = Taken { counted: 1, ..Taken::default() };
        for operation in transactions::inside(value)? {
            taken.append(self.take_nested(operation?, depth + 1)?);
        }
        Ok(taken)
    }

    /// Creates a collection; that it deletes documents is set at the end, as for those of the dump.
    fn create(&mut self, entry: &Entry<'_>, value: RawBsonRef<'_>) -> Result<Taken, Error> {
        let options = without(entry.object, |field| field == "create")?;
        self.catalogue.create(entry.named(value)?, &options)?;
        let object = without(entry.object, |field| {
            matches!(field, "recordIdsReplicated" | "expireAfterSeconds")
        })?;
        Ok(Taken::command(Some(entry.sent(Some(&object), self.uuids)?)))
    }

    fn rename(&mut self, entry: &Entry<'_>, value: RawBsonRef<'_>) -> Result<Taken, Error> {
        let to = entry.object.get("to").map_err(|error| damaged(&error))?;
        let (Some(from), Some(to)) = (namespace(Some(value)), namespace(to)) else {
            return Err(error("the entry does not say what is renamed to what"));
        };
        let mut taken = self.make_way(entry, &to)?;
        self.catalogue.rename(&from, to);
        taken.operations.append(&mut self.forward(entry)?.operations);
        Ok(taken)
    }

    /// Drops the collection that is to be replaced. The entry names it by its identity at the
    /// source; a server that finds another one there would put it aside under a name of its own.
    fn make_way(&self, entry: &Entry<'_>, replaced: &Namespace) -> Result<Taken, Error> {
        let target = entry.object.get("dropTarget").map_err(|error| damaged(&error))?;
        let is_replaced = matches!(target, Some(RawBsonRef::Binary(_) | RawBsonRef::Boolean(true)));
        let is_beside = replaced.database() == entry.database();
        if !is_replaced || !is_beside || self.uuids == Uuids::Kept {
            return Ok(Taken { counted: 1, ..Taken::default() });
        }
        let object = rawdoc! { "drop": replaced.collection() };
        Ok(Taken::command(Some(entry.sent(Some(&object), self.uuids)?)))
    }

    fn commit_index_build(
        &mut self,
        entry: &Entry<'_>,
        value: RawBsonRef<'_>,
    ) -> Result<Taken, Error> {
        let specs = entry.object.get_array("indexes");
        let specs = specs.map_err(|_| error("commitIndexBuild does not say which indexes"))?;
        for spec in specs {
            let spec = spec.map_err(|error| damaged(&error))?;
            let spec = spec.as_document().ok_or_else(|| error("an index is no document"))?;
            self.catalogue.create_index(&entry.named(value)?, spec)?;
        }
        Ok(Taken::command(None))
    }

    /// An index as servers before 4.2 wrote it down: a document of `system.indexes`.
    fn legacy_index(&mut self, entry: &Entry<'_>) -> Result<Taken, Error> {
        let of = entry.object.get("ns").map_err(|error| damaged(&error))?;
        let of = namespace(of).ok_or_else(|| error("the index does not say of what it is"))?;
        self.catalogue.create_index(&of, entry.object)?;
        Ok(Taken::command(None))
    }
}

fn namespace(value: Option<RawBsonRef<'_>>) -> Option<Namespace> {
    let (database, collection) = value?.as_str()?.split_once('.')?;
    Some(Namespace::new(database, collection))
}

/// Whether the entry concerns what a server or cluster keeps for itself. Users and roles are the
/// exception: what was changed of them during the dump belongs to it.
fn is_of_the_server(entry: &Entry<'_>) -> bool {
    let collection = entry.collection();
    entry.namespace.starts_with("__mdb_internal")
        || matches!(entry.database(), "config" | "local")
        || (entry.database() == "admin"
            && collection.starts_with("system.")
            && !matches!(collection, "system.users" | "system.roles"))
}

fn unknown(command: &str) -> Error {
    let error = error(format!("the command `{command}` is not known"));
    match command {
        "importCollection" => error.hint(
            "it takes files of another server over, which no oplog holds; restore that collection \
             from a dump of its own",
        ),
        "upgradeDowngradeViewlessTimeseries" => error.hint(
            "the source changed how it keeps time-series collections during the dump; take a dump \
             while its version stays",
        ),
        _ => error,
    }
}

#[cfg(test)]
mod tests;
