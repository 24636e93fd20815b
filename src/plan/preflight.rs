//! Whether a server, as it was found, lets a plan be carried out: before anything is touched.
//!
//! What would fail for certain is refused, or left out where it concerns single collections and
//! indexes. What may surprise is noted. What the server does not tell is not held against it.

mod deletion;
mod names;
mod rights;
mod space;

use crate::error::{Error, ErrorKind};
use crate::facts::ServerFacts;
use crate::facts::conditions::{Conditions, JournalUse};
use crate::namespace::Namespace;
use crate::plan::indexes::together;
use crate::plan::{CollectionPlan, Creation, RestorePlan, Skipped};

/// Names listed where many are meant; more do not help.
const NAMES_SHOWN: usize = 5;

/// Collections whose indexes a server is asked for, at most: each takes a command.
const INDEXES_ASKED_MAX: usize = 64;

/// The collections whose indexes have to be known: those that exist and get more.
pub fn indexed(plan: &RestorePlan) -> Vec<Namespace> {
    let is_concerned = |collection: &&CollectionPlan| {
        collection.creation == Creation::Use && !collection.indexes.is_empty()
    };
    let concerned = plan.collections.iter().filter(is_concerned).take(INDEXES_ASKED_MAX);
    concerned.map(|collection| collection.namespace.clone()).collect()
}

/// Judges a plan by what was found at the server, takes out of it what cannot be, and notes what
/// may surprise.
///
/// # Errors
///
/// Of kind [`ErrorKind::Plan`], where the run as a whole would fail.
pub fn check(
    plan: &mut RestorePlan,
    facts: &ServerFacts,
    conditions: &Conditions,
) -> Result<(), Error> {
    if conditions.is_read_only {
        return Err(Error::new(ErrorKind::Plan, "the server takes no writes: it is read-only")
            .hint("start it without --queryableBackupMode, or restore to another server"));
    }
    names::part(plan, &conditions.databases);
    beside_existing(plan, facts, conditions);
    if let Some(login) = &conditions.login {
        rights::check(plan, login, conditions.writing)?;
    }
    journal(plan, conditions)?;
    plan.notes.extend(space::warning(plan, conditions.free_bytes));
    plan.notes.extend(deletion::warning(plan));
    Ok(())
}

fn leave_out(plan: &mut RestorePlan, what: String, reason: String) {
    plan.skipped.push(Skipped { what, reason, is_problem: true });
}

/// Tells of indexes that cannot stand beside those of the target. They are tried all the same: what
/// is in their way may be gone by then, and a restore that is resumed builds what failed.
fn beside_existing(plan: &mut RestorePlan, facts: &ServerFacts, conditions: &Conditions) {
    for (namespace, existing) in &conditions.indexes {
        let found = plan.collections.iter_mut().find(|one| one.namespace == *namespace);
        let Some(collection) = found else {
            continue;
        };
        let together = together::judge(existing, collection.indexes.clone(), facts);
        let is_tried = |name: &String| together.impossible.iter().any(|(index, _)| index == name);
        let is_kept = |name: &String| together.kept.iter().any(|index| index.name == *name);
        collection.indexes.retain(|index| is_kept(&index.name) || is_tried(&index.name));
        collection.notes.extend(together.merged);
        collection.notes.extend(together.impossible.into_iter().map(|(index, reason)| {
            format!("index `{index}` will fail beside those of the target: {reason}")
        }));
    }
}

fn journal(plan: &mut RestorePlan, conditions: &Conditions) -> Result<(), Error> {
    match conditions.journal {
        JournalUse::Fits => {}
        JournalUse::Checkpoints => plan.notes.push(
            "the server runs without a journal (--nojournal), so that each batch that waits for a \
             majority makes it write a checkpoint, which costs several times the work; \
             --write-concern 1 --journal off waits for one now and then, and with its journal the \
             server needs none"
                .to_owned(),
        ),
        JournalUse::Refused => {
            let message = "the server runs without a journal (--nojournal) and refuses writes that \
                           wait for one";
            return Err(Error::new(ErrorKind::Plan, message).hint(
                "give --journal off, or start the server with its journal; nothing was restored",
            ));
        }
    }
    Ok(())
}

/// The first few of some names, each in quotes.
pub(super) fn shown<'a>(names: impl ExactSizeIterator<Item = &'a str>) -> String {
    let more = names.len().saturating_sub(NAMES_SHOWN);
    let first: Vec<_> = names.take(NAMES_SHOWN).map(|name| format!("`{name}`")).collect();
    match more {
        0 => first.join(", "),
        _ => format!("{} and {more} more", first.join(", ")),
    }
}

#[cfg(test)]
mod tests;
