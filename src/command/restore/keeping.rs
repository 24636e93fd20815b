//! Where the ledger of a restore is, and what a restore that is resumed takes from it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use twox_hash::XxHash3_64;

use crate::command::restore::{Found, Mode};
use crate::dump::Location;
use crate::dump::fingerprint::fingerprint;
use crate::dump::inventory::CollectionKind;
use crate::error::{Error, ErrorKind};
use crate::facts::{ServerFacts, Topology};
use crate::load::ledger::{self, History, Ledger, Past};
use crate::namespace::Namespace;
use crate::plan::{CollectionPlan, Creation, RestorePlan};
use crate::report::format::counted;
use crate::report::{Outcome, Report};

/// What is kept of a restore for one that goes on with it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LedgerOptions {
    /// Where it is kept.
    pub place: LedgerPlace,
    /// Whether this restore goes on with an earlier one.
    pub start: Start,
}

/// Where a ledger is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum LedgerPlace {
    /// Nowhere; the restore cannot be resumed.
    #[default]
    Nowhere,
    /// Beside the dump, or where that cannot be written, in this folder.
    BesideDump {
        /// The folder, where there is one.
        otherwise: Option<PathBuf>,
    },
    /// In this file.
    File(PathBuf),
}

/// Whether a restore goes on with an earlier one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Start {
    /// It begins anew.
    #[default]
    Anew,
    /// It goes on where the ledger says.
    Resumed,
}

/// The ledger of a restore.
pub(super) struct Kept {
    pub(super) ledger: std::sync::Arc<Ledger>,
    is_named: bool,
}

/// Opens the ledger of a restore; one that goes on takes over what was done.
pub(super) fn keep(found: Found<'_>, plan: &mut RestorePlan) -> Result<Option<Kept>, Error> {
    let Found { options, inventory, facts, .. } = found;
    let wanted = &options.ledger;
    let is_resumed = wanted.start == Start::Resumed;
    if wanted.place == LedgerPlace::Nowhere || facts.topology == Topology::Null {
        return if is_resumed { Err(nothing_to_resume()) } else { Ok(None) };
    }
    if options.mode == Mode::DryRun && !is_resumed {
        return Ok(None);
    }
    let Some(dump) = fingerprint(inventory)? else {
        return if is_resumed { Err(piped()) } else { Ok(None) };
    };
    let places = places(&wanted.place, &options.dump, &dump, &facts.identity);
    if is_resumed {
        return resume(found, plan, &places, &dump).map(Some);
    }
    let is_named = matches!(wanted.place, LedgerPlace::File(_));
    let mut failure = None;
    for place in &places {
        note_earlier(place, &dump, &facts.identity, plan);
        match Ledger::begin(
            place,
            dump.clone(),
            facts.identity.clone(),
            options.settings.write_mode,
        ) {
            Ok(ledger) => return Ok(Some(Kept { ledger: ledger.into(), is_named })),
            Err(error) if is_named => return Err(error),
            Err(error) => failure = failure.or(Some(error)),
        }
    }
    let why =
        failure.map_or_else(|| "there is no place for it".to_owned(), |error| error.to_string());
    plan.notes.push(format!("no ledger is kept, so that nothing could be resumed: {why}"));
    Ok(None)
}

/// The collections on the target that an earlier restore began, where this one goes on with it.
pub(super) fn begun(found: Found<'_>) -> Result<BTreeSet<Namespace>, Error> {
    let Found { options, inventory, facts, .. } = found;
    let LedgerOptions { place, start } = &options.ledger;
    if *start == Start::Anew {
        return Ok(BTreeSet::new());
    }
    let Some(dump) = fingerprint(inventory)? else {
        return Ok(BTreeSet::new());
    };
    let places = places(place, &options.dump, &dump, &facts.identity);
    // A ledger that is missing or of something else is refused when it is gone on with.
    let Some(place) = places.iter().find(|place| place.exists()) else {
        return Ok(BTreeSet::new());
    };
    let history = ledger::history(place)?;
    let begun = history.collections.iter();
    Ok(begun.filter_map(|past| Namespace::parse(&past.stands.target)).collect())
}

/// Tells of an earlier restore that this one could have gone on with.
fn note_earlier(place: &Path, dump: &str, target: &str, plan: &mut RestorePlan) {
    let earlier = ledger::history(place).ok();
    let same = |history: &History| history.about.dump == *dump && history.about.target == *target;
    if let Some(earlier) = earlier.filter(|history| same(history) && history.documents() > 0) {
        let documents = counted(earlier.documents(), "document", "documents");
        plan.notes.push(format!(
            "an earlier restore of this dump came to {documents}; this one begins anew, with \
             --resume it would have gone on"
        ));
    }
}

/// The places where the ledger may be, the best one first.
fn places(place: &LedgerPlace, dump: &Location, print: &str, target: &str) -> Vec<PathBuf> {
    match place {
        LedgerPlace::Nowhere => Vec::new(),
        LedgerPlace::File(file) => vec![file.clone()],
        LedgerPlace::BesideDump { otherwise } => {
            // Restores of parts of a dump, or into several targets, may go on side by side.
            let mark = XxHash3_64::oneshot(format!("{print} {target}").as_bytes());
            let beside = dump.file().and_then(|path| {
                let path = std::path::absolute(path).ok()?;
                let name = path.file_name()?.to_string_lossy().into_owned();
                Some(path.parent()?.join(format!(".{name}.{mark:016x}.restorm-ledger")))
            });
            let name = format!("{mark:016x}.restorm-ledger");
            beside.into_iter().chain(otherwise.as_ref().map(|folder| folder.join(name))).collect()
        }
    }
}

fn resume(
    found: Found<'_>,
    plan: &mut RestorePlan,
    places: &[PathBuf],
    dump: &str,
) -> Result<Kept, Error> {
    let Some(place) = places.iter().find(|place| place.exists()) else {
        return Err(no_ledger(places));
    };
    let (ledger, history) = Ledger::resume(place)?;
    check(&history, place, dump, &found)?;
    for collection in 0..plan.collections.len() {
        let planned = &mut plan.collections[collection];
        if let Some(past) = history.find(&planned.source, &planned.namespace) {
            take_over(planned, past, place, found.facts)?;
            ledger.goes_on(collection, past);
        } else if planned.creation != Creation::DropAndCreate {
            // The machine may have failed before it was noted what was sent.
            planned.carried = Some(Box::default());
        }
    }
    plan.notes.push(format!(
        "this restore goes on with an earlier one, which came to {}",
        counted(history.documents(), "document", "documents")
    ));
    let is_named = matches!(found.options.ledger.place, LedgerPlace::File(_));
    Ok(Kept { ledger: ledger.into(), is_named })
}

/// Refuses a ledger that is about something else.
fn check(history: &History, place: &Path, dump: &str, found: &Found<'_>) -> Result<(), Error> {
    let facts = found.facts;
    let refused = |what: String| {
        Error::new(ErrorKind::Plan, what).in_file(place).hint(
            "name the ledger of this restore with --ledger, or begin anew without --resume (with \
             --drop, where collections are to be replaced)",
        )
    };
    if history.about.dump != *dump {
        return Err(refused(
            "the ledger is about another dump, or this one was changed".to_owned(),
        ));
    }
    if history.about.target != facts.identity {
        return Err(refused(format!(
            "the ledger is about the target `{}`, this one is `{}`",
            history.about.target, facts.identity
        )));
    }
    let (mode, begun_in) = (found.options.settings.write_mode, history.about.mode);
    if mode != begun_in {
        let what = format!(
            "the restore was begun with --mode {}, this one has --mode {}",
            begun_in.name(),
            mode.name()
        );
        return Err(Error::new(ErrorKind::Plan, what).in_file(place).hint(format!(
            "go on with --resume --mode {}, or begin anew without --resume",
            begun_in.name()
        )));
    }
    if history.oplog_begun {
        let what = "the oplog was being replayed, which changes collections in ways that a restore \
                    cannot go on from";
        return Err(refused(what.to_owned()));
    }
    Ok(())
}

/// Goes on with a collection, unless another one stands in its place.
fn take_over(
    planned: &mut CollectionPlan,
    past: &Past,
    place: &Path,
    facts: &ServerFacts,
) -> Result<(), Error> {
    let there = facts.existing.iter().find(|there| there.namespace == planned.namespace);
    let uuid = there.and_then(|there| there.uuid).map(|uuid| uuid.to_string());
    let is_same = there.is_some()
        && (past.stands.uuid.is_none() || uuid.is_none() || past.stands.uuid == uuid);
    if !is_same {
        let what = match there {
            None => "is gone from the target",
            Some(_) => "is another one now: it was dropped and created again",
        };
        return Err(Error::new(
            ErrorKind::Plan,
            format!("the collection, of which an earlier run has restored documents, {what}"),
        )
        .of(&planned.namespace)
        .in_file(place)
        .hint("begin the restore anew without --resume, with --drop to replace what is there"));
    }
    planned.creation = Creation::Use;
    planned.uuid = None;
    if planned.kind != CollectionKind::View {
        planned.carried = Some(Box::new(past.carried.clone()));
    }
    Ok(())
}

impl Kept {
    /// Closes the ledger after the run. It is removed where nothing can be resumed, unless it has
    /// a name of its own; returns where it is, if something can.
    pub(super) fn close(self, report: &Report) -> Option<PathBuf> {
        let totals = &report.totals;
        let is_complete = report.outcome == Outcome::Finished
            && report.balance.unsent == 0
            && totals.collections_failed + totals.indexes_failed == 0;
        let is_done = is_complete || report.is_salvaged();
        if is_done {
            self.ledger.ended();
        }
        // What was written stays true, and what was not is only sent again.
        let _ = self.ledger.flush();
        if (is_done && !self.is_named) || self.ledger.is_empty() {
            // It is of no use any more, and harms nobody where it cannot be removed.
            let _ = self.ledger.remove();
            return None;
        }
        (!is_done).then(|| self.ledger.path().to_path_buf())
    }
}

fn nothing_to_resume() -> Error {
    Error::new(ErrorKind::Usage, "--resume needs a ledger and a server")
        .hint("a ledger is kept unless --ledger none or --null is given")
}

fn piped() -> Error {
    Error::new(ErrorKind::Usage, "what comes through a pipe cannot be resumed")
        .hint("save it in a file first, then restore the file")
}

fn no_ledger(places: &[PathBuf]) -> Error {
    let places: Vec<_> = places.iter().map(|place| place.display().to_string()).collect();
    let looked = places.join(" and ");
    Error::new(ErrorKind::Plan, format!("there is no ledger to go on with: not {looked}")).hint(
        "the earlier restore may have ended well, kept its ledger elsewhere (--ledger), or gone to \
         another target; without --resume a restore begins anew",
    )
}
