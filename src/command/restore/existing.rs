//! What is done about collections that the target has already, before anything is touched.

use std::collections::BTreeSet;

use crate::command::restore::{Destination, Found, RestoreOptions, WriteMode, keeping};
use crate::dump::inventory::CollectionKind;
use crate::error::{Error, ErrorKind};
use crate::plan::{ExistingPolicy, RestorePlan, existing};
use crate::target::mongo::MongoTarget;

/// Whether collections of the plan may hold documents before it is carried out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OccupiedPolicy {
    /// They may.
    #[default]
    Allowed,
    /// The restore is refused then, whatever would become of them.
    Refused,
}

/// Refuses what excludes each other, and what a target that keeps nothing cannot have.
pub(super) fn check(options: &RestoreOptions) -> Result<(), Error> {
    let usage = |message: &str| Err(Error::new(ErrorKind::Usage, message));
    let is_guarded = options.occupied == OccupiedPolicy::Refused;
    if is_guarded && options.selection.existing == ExistingPolicy::Skip {
        return usage(
            "--if-empty cannot be used with --on-existing skip: one refuses what the other leaves \
             alone",
        );
    }
    match options.destination {
        Destination::Null if options.survey.is_some() => {
            usage("--survey needs a server: with --null nothing is sent")
        }
        Destination::Null if is_guarded => {
            usage("--if-empty needs a server: with --null nothing is sent")
        }
        _ => Ok(()),
    }
}

/// Refuses to update what a server only lets be inserted.
pub(super) fn refuse_updates(plan: &RestorePlan, mode: WriteMode) -> Result<(), Error> {
    let is_buckets = |kind| kind == CollectionKind::TimeSeries;
    let buckets = plan.collections.iter().find(|one| is_buckets(one.kind) && one.data.is_some());
    match buckets.filter(|_| mode.updates()) {
        None => Ok(()),
        Some(collection) => Err(Error::new(
            ErrorKind::Plan,
            "documents of a time-series collection can neither be replaced nor merged",
        )
        .of(&collection.namespace)
        .hint("nothing was touched; restore it by itself with --mode insert or skip")),
    }
}

/// Refuses a target that is not as it should be, and takes out of the plan what is left alone;
/// returns how many collections those are.
pub(super) async fn settle(
    target: &MongoTarget,
    found: Found<'_>,
    plan: &mut RestorePlan,
) -> Result<usize, Error> {
    let policy = found.options.selection.existing;
    let is_occupied_refused = found.options.occupied == OccupiedPolicy::Refused;
    let asks = matches!(policy, ExistingPolicy::Refuse | ExistingPolicy::Skip);
    let begun = if asks || is_occupied_refused { keeping::begun(found)? } else { BTreeSet::new() };
    if is_occupied_refused {
        let may_hold = existing::may_hold(plan, found.facts, &begun);
        let holding = target.holding(&may_hold).await.map_err(|(namespace, error)| {
            let message = format!("it cannot be told whether the collection is empty: {error}");
            let failed = Error::new(ErrorKind::Plan, message).of(&namespace);
            failed.hint("nothing was touched; --if-empty takes the right to read it")
        })?;
        existing::refuse_holding(&holding)?;
    }
    existing::settle(plan, policy, &begun)
}
