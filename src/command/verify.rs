//! Compares a dump with what a target holds: dump → plan → reader and target → comparison → report.
//!
//! The plan is the one that a restore would make, so that collections, names, options and indexes
//! are expected as a restore makes them.

mod compare;
mod contained;
mod definition;
mod documents;
mod gathered;
mod source;
mod stored;

use std::collections::HashMap;
use std::time::Duration;

use crate::command::restore::Connection;
use crate::dump::stream::Interrupt;
use crate::dump::{Dump, Inventory, Location};
use crate::error::{Error, ErrorKind};
use crate::exit::ExitStatus;
use crate::facts::ServerFacts;
use crate::limits::{DIFFERENCES_DEFAULT, PARALLEL_COLLECTIONS_DEFAULT, RETRY_FOR};
use crate::load::{self, Stop, Sums};
use crate::plan::{self, IndexPolicy, OptionPolicy, RestorePlan, Selection};
use crate::report::value::CollectionState;
use crate::report::verification::SCHEMA;
use crate::report::{
    DumpFacts, OptionValue, Report, Skipped, TargetFacts, Verification, VerifyReport,
};
use crate::target::contents::Contents;
use crate::target::mongo::MongoTarget;
use compare::{Depth, Ended, Sides};

/// What is compared, and how thoroughly.
#[derive(Clone, Debug)]
pub struct VerifyOptions {
    /// The dump.
    pub dump: Location,
    /// Only this database, or the database that a folder or file was restored to.
    pub database: Option<String>,
    /// Only this collection, or the collection that a file was restored to.
    pub collection: Option<String>,
    /// The server.
    pub connection: Connection,
    /// What was asked of the plan of the restore.
    pub selection: Selection,
    /// Whether options are compared.
    pub options: OptionPolicy,
    /// Differing documents that are listed of a collection.
    pub differences: usize,
    /// Collections read side by side, on each side.
    pub parallel_collections: usize,
    /// How long it is tried again while the server is away.
    pub retry_for: Duration,
    /// The options as they are told in the report.
    pub told: Vec<OptionValue>,
}

impl VerifyOptions {
    /// A comparison of the whole dump with this server, with the defaults of the command line.
    pub fn new(dump: impl Into<std::path::PathBuf>, connection: Connection) -> Self {
        Self {
            dump: Location::Path(dump.into()),
            database: None,
            collection: None,
            connection,
            selection: Selection::default(),
            options: OptionPolicy::default(),
            differences: DIFFERENCES_DEFAULT,
            parallel_collections: PARALLEL_COLLECTIONS_DEFAULT,
            retry_for: RETRY_FOR,
            told: Vec::new(),
        }
    }
}

/// Compares a dump with what a server holds; nothing is changed on either side.
///
/// # Errors
///
/// Only for what keeps the comparison from beginning, and where somebody asked for its end; all
/// else is in the report.
pub async fn verify(options: &VerifyOptions, stop: &Stop) -> Result<VerifyReport, Error> {
    let inventory = list(options, stop).await?;
    options.selection.names.check(&inventory)?;
    let (target, facts) = MongoTarget::connect(&options.connection).await?;
    let plan = plan::plan(&inventory, options.selection.clone(), &facts);
    refuse_empty(options, &plan)?;
    let depth = Depth {
        at_once: options.parallel_collections,
        differences: options.differences,
        retry_for: options.retry_for,
        options: options.options,
        indexes: options.selection.indexes,
    };
    let (plan, facts) = (&plan, &facts);
    let sides = Sides { plan, facts, contents: &target, ended: None, depth, stop };
    let mut verification = compare::compare(&sides).await?;
    verification.notes.extend(not_compared(&inventory));
    Ok(report(options, &inventory, &target, facts, plan, verification))
}

fn report(
    options: &VerifyOptions,
    inventory: &Inventory,
    target: &MongoTarget,
    facts: &ServerFacts,
    plan: &RestorePlan,
    verification: Verification,
) -> VerifyReport {
    let report = VerifyReport {
        schema: SCHEMA,
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        exit_status: ExitStatus::Restored,
        target: TargetFacts {
            description: target.description().to_owned(),
            server_version: Some(facts.version.to_string()),
        },
        dump: DumpFacts {
            path: options.dump.to_string(),
            server_version: inventory.server_version.map(|version| version.to_string()),
            tool_version: inventory.tool_version.clone(),
            is_made: false,
        },
        options: options.told.clone(),
        verification,
        skipped: skipped(plan),
    };
    report.judged()
}

/// Compares what a restore has just brought with what it was to bring; nothing where the restore
/// did not come to its end.
pub(super) async fn after_restore<C: Contents>(
    restored: &Restored<'_>,
    contents: &C,
    stop: &Stop,
) -> Result<Option<Verification>, Error> {
    let Restored { plan, facts, report, sums, differences, at_once, retry_for } = *restored;
    if report.outcome != crate::report::Outcome::Finished {
        return Ok(None);
    }
    let (mut left_out, mut rejected) = (HashMap::new(), HashMap::new());
    for (collection, one) in report.collections.iter().enumerate() {
        if one.state != CollectionState::Done || one.balance.unsent > 0 {
            left_out.insert(collection, "it was not restored completely".to_owned());
        }
        if one.balance.rejected > 0 {
            rejected.insert(collection, one.balance.rejected);
        }
    }
    let depth = Depth {
        at_once,
        differences,
        retry_for,
        options: OptionPolicy::Restore,
        indexes: IndexPolicy::Build,
    };
    let ended = Some(Ended { sums, left_out, rejected });
    let sides = Sides { plan, facts, contents, ended, depth, stop };
    match compare::compare(&sides).await {
        Ok(verification) => Ok(Some(verification)),
        Err(error) if error.kind() == ErrorKind::Interrupted => Ok(None),
        Err(error) => Err(error),
    }
}

/// A restore that has just ended.
#[derive(Clone, Copy)]
pub(super) struct Restored<'a> {
    /// What it was to bring.
    pub(super) plan: &'a RestorePlan,
    /// What the server is.
    pub(super) facts: &'a ServerFacts,
    /// What came of it.
    pub(super) report: &'a Report,
    /// What it has brought.
    pub(super) sums: &'a Sums,
    /// Differing documents that are listed of a collection.
    pub(super) differences: usize,
    /// Collections read side by side, on each side.
    pub(super) at_once: usize,
    /// How long it is tried again while the server is away.
    pub(super) retry_for: Duration,
}

async fn list(options: &VerifyOptions, stop: &Stop) -> Result<Inventory, Error> {
    let (options, stop) = (options.clone(), stop.clone());
    load::aside(move || {
        let (database, collection) = (options.database.as_deref(), options.collection.as_deref());
        let dump = Dump::at(&options.dump, database, collection)?;
        let dump = dump.filtered(options.selection.names.filter.clone());
        dump.scan_unless(Interrupt::when(move || stop.is_requested()))
    })
    .await
}

/// What a dump holds besides collections.
fn not_compared(inventory: &Inventory) -> Vec<String> {
    let users = (!inventory.users.is_empty())
        .then(|| "users and roles are not compared: a restore merges them with others".to_owned());
    let oplog = (!inventory.oplogs.is_empty()).then(|| {
        "the dump has an oplog; where it was replayed, documents rightly differ from the dump"
            .to_owned()
    });
    users.into_iter().chain(oplog).collect()
}

fn skipped(plan: &RestorePlan) -> Vec<Skipped> {
    let skipped = plan.skipped.iter().map(|skipped| Skipped {
        what: skipped.what.clone(),
        reason: skipped.reason.clone(),
        is_problem: skipped.is_problem,
    });
    skipped.collect()
}

/// A dump of which nothing can be compared is an error: agreement would be a lie.
fn refuse_empty(options: &VerifyOptions, plan: &RestorePlan) -> Result<(), Error> {
    if !plan.collections.is_empty() {
        return Ok(());
    }
    let reason = plan.skipped.iter().find(|skipped| skipped.is_problem);
    let why = reason.map_or_else(
        || "it holds no collection".to_owned(),
        |skipped| format!("{}: {}", skipped.what, skipped.reason),
    );
    Err(Error::new(ErrorKind::Plan, format!("nothing in the dump can be compared: {why}"))
        .in_file(options.dump.to_string())
        .hint("`restorm inspect` shows what a dump holds"))
}
