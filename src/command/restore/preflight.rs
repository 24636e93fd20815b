//! Asks a server whether a plan can be carried out there, before anything is touched.

use std::collections::BTreeSet;

use crate::error::{Error, ErrorKind};
use crate::facts::ServerFacts;
use crate::facts::conditions::Writing;
use crate::plan::{RestorePlan, preflight};
use crate::target::mongo::MongoTarget;
use crate::target::{TargetError, WriteMode};

/// Takes out of the plan what cannot be, notes what may surprise, and refuses what would fail.
pub(in crate::command) async fn check(
    target: &MongoTarget,
    facts: &ServerFacts,
    plan: &mut RestorePlan,
    mode: WriteMode,
) -> Result<(), Error> {
    let indexed = preflight::indexed(plan);
    let databases: BTreeSet<String> =
        plan.collections.iter().map(|one| one.namespace.database().to_owned()).collect();
    let databases = databases.iter().map(String::as_str);
    let conditions = target.conditions(facts, databases, &indexed).await;
    let mut conditions = conditions.map_err(|error| no_answer(&error))?;
    conditions.writing = match mode {
        WriteMode::Delete => Writing::Removes,
        WriteMode::Replace | WriteMode::Merge => Writing::Updates,
        WriteMode::Insert | WriteMode::Skip => Writing::Inserts,
    };
    preflight::check(plan, facts, &conditions)
}

fn no_answer(error: &TargetError) -> Error {
    let message = format!("the server does not tell its state: {}", error.message);
    let failed = Error::new(ErrorKind::Connect, message);
    match error.code {
        Some(code) => failed.with_code(code),
        None => failed,
    }
}
