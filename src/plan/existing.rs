//! What is done about collections of a plan that the target has already.

use std::collections::{BTreeSet, HashMap};

use crate::error::{Error, ErrorKind};
use crate::facts::ServerFacts;
use crate::namespace::Namespace;
use crate::plan::preflight::shown;
use crate::plan::text::counted;
use crate::plan::{CollectionPlan, Creation, ExistingPolicy, RestorePlan, Skipped};

/// Refuses collections that exist, or takes them out of the plan, where that was asked for; returns
/// how many were taken out. Those that were `begun` by an earlier run of the same restore stay.
///
/// # Errors
///
/// Of kind [`ErrorKind::Plan`], where some exist and none may.
pub fn settle(
    plan: &mut RestorePlan,
    policy: ExistingPolicy,
    begun: &BTreeSet<Namespace>,
) -> Result<usize, Error> {
    let exists = |one: &CollectionPlan| exists(one, begun);
    match policy {
        ExistingPolicy::Add | ExistingPolicy::Drop => Ok(0),
        ExistingPolicy::Refuse => {
            let found: Vec<_> = plan.collections.iter().filter(|one| exists(one)).collect();
            if found.is_empty() { Ok(0) } else { Err(refused(&found)) }
        }
        ExistingPolicy::Skip => {
            let collections = std::mem::take(&mut plan.collections);
            let (left, kept): (Vec<_>, Vec<_>) = collections.into_iter().partition(exists);
            plan.collections = kept;
            let skipped = left.iter().map(|one| Skipped {
                what: one.namespace.to_string(),
                reason: "the target has it already (--on-existing skip)".to_owned(),
                is_problem: false,
            });
            plan.skipped.extend(skipped);
            Ok(left.len())
        }
    }
}

fn exists(one: &CollectionPlan, begun: &BTreeSet<Namespace>) -> bool {
    one.creation != Creation::Create && !begun.contains(&one.namespace)
}

fn refused(found: &[&CollectionPlan]) -> Error {
    let names: Vec<String> = found.iter().map(|one| one.namespace.to_string()).collect();
    let number =
        counted(names.len(), "collection of the plan exists", "collections of the plan exist");
    let shown = shown(names.iter().map(String::as_str));
    Error::new(ErrorKind::Plan, format!("{number} on the target: {shown}")).hint(
        "nothing was touched; --on-existing skip leaves what exists alone, add adds to it, drop \
         replaces it",
    )
}

/// The collections of the plan that the target has and that may hold documents.
pub fn may_hold(
    plan: &RestorePlan,
    facts: &ServerFacts,
    begun: &BTreeSet<Namespace>,
) -> Vec<Namespace> {
    let kinds: HashMap<&Namespace, &str> =
        facts.existing.iter().map(|there| (&there.namespace, there.kind.as_str())).collect();
    let holds = |one: &&CollectionPlan| {
        exists(one, begun) && kinds.get(&one.namespace).is_some_and(|kind| *kind != "view")
    };
    plan.collections.iter().filter(holds).map(|one| one.namespace.clone()).collect()
}

/// Refuses a target whose collections hold documents; each comes with their number, where it is
/// known.
///
/// # Errors
///
/// Of kind [`ErrorKind::Plan`], where there is one.
pub fn refuse_holding(holding: &[(Namespace, Option<u64>)]) -> Result<(), Error> {
    if holding.is_empty() {
        return Ok(());
    }
    let number = counted(
        holding.len(),
        "collection of the plan holds documents",
        "collections of the plan hold documents",
    );
    let with_count = |(namespace, documents): &(Namespace, Option<u64>)| match documents {
        Some(documents) => format!("`{namespace}` ({documents})"),
        None => format!("`{namespace}`"),
    };
    let mut names: Vec<String> = holding.iter().take(NAMED).map(with_count).collect();
    if holding.len() > NAMED {
        let more = holding.len() - NAMED;
        names.push(format!("and {more} more"));
    }
    let message = format!("the target is not empty: {number}: {}", names.join(", "));
    Err(Error::new(ErrorKind::Plan, message)
        .hint("nothing was touched; without --if-empty the restore goes on all the same"))
}

/// Collections named where many hold documents; more do not help.
const NAMED: usize = 5;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dump::inventory::{CollectionKind, Inventory};
    use crate::facts::ExistingCollection;
    use crate::plan::tests::entry;
    use crate::plan::{Selection, plan};

    fn facts(existing: &[(&str, &str)]) -> ServerFacts {
        let there = |&(name, kind): &(&str, &str)| ExistingCollection {
            namespace: Namespace::new("shop", name),
            kind: kind.into(),
            uuid: None,
        };
        ServerFacts { existing: existing.iter().map(there).collect(), ..ServerFacts::null() }
    }

    fn planned(policy: ExistingPolicy, names: &[&str], facts: &ServerFacts) -> RestorePlan {
        let entries = names.iter().map(|name| entry(name, CollectionKind::Collection, 1)).collect();
        let inventory = Inventory { entries, ..Inventory::default() };
        plan(&inventory, Selection { existing: policy, ..Selection::default() }, facts)
    }

    fn begun(names: &[&str]) -> BTreeSet<Namespace> {
        names.iter().map(|name| Namespace::new("shop", *name)).collect()
    }

    #[test]
    fn what_exists_is_refused_by_name() {
        let facts = facts(&[("a", "collection"), ("b", "view"), ("z", "collection")]);
        let mut plan = planned(ExistingPolicy::Refuse, &["a", "b", "c"], &facts);
        let error = settle(&mut plan, ExistingPolicy::Refuse, &begun(&[])).expect_err("refused");
        assert_eq!(
            error.to_string(),
            "2 collections of the plan exist on the target: `shop.a`, `shop.b`"
        );
        assert_eq!(settle(&mut plan, ExistingPolicy::Refuse, &begun(&["a", "b"])), Ok(0));
        let mut plan = planned(ExistingPolicy::Refuse, &["c"], &facts);
        assert_eq!(settle(&mut plan, ExistingPolicy::Refuse, &begun(&[])), Ok(0));
    }

    #[test]
    fn what_exists_is_left_alone_whatever_it_is() {
        let facts = facts(&[("a", "collection"), ("b", "view"), ("d", "collection")]);
        let mut plan = planned(ExistingPolicy::Skip, &["a", "b", "c", "d"], &facts);
        assert_eq!(settle(&mut plan, ExistingPolicy::Skip, &begun(&["d"])), Ok(2));
        let left: Vec<_> = plan.collections.iter().map(|one| one.namespace.full()).collect();
        assert_eq!(left, ["shop.c", "shop.d"]);
        let skipped: Vec<_> = plan.skipped.iter().map(|one| one.what.as_str()).collect();
        assert_eq!(skipped, ["shop.a", "shop.b"]);
        assert!(!plan.skipped.iter().any(|skipped| skipped.is_problem));
    }

    #[test]
    fn what_is_added_to_or_dropped_stays_in_the_plan() {
        let facts = facts(&[("a", "collection")]);
        for policy in [ExistingPolicy::Add, ExistingPolicy::Drop] {
            let mut plan = planned(policy, &["a"], &facts);
            assert_eq!(settle(&mut plan, policy, &begun(&[])), Ok(0));
            assert_eq!(plan.collections.len(), 1);
        }
    }

    #[test]
    fn views_and_what_is_gone_on_with_hold_nothing() {
        let facts = facts(&[("a", "collection"), ("b", "view"), ("t", "timeseries")]);
        let mut plan = planned(ExistingPolicy::Drop, &["a", "b", "c", "t"], &facts);
        let hold = |plan: &RestorePlan, begun: &BTreeSet<Namespace>| {
            let mut names: Vec<_> =
                may_hold(plan, &facts, begun).iter().map(ToString::to_string).collect();
            names.sort();
            names
        };
        assert_eq!(hold(&plan, &begun(&[])), ["shop.a", "shop.t"]);
        assert_eq!(hold(&plan, &begun(&["a"])), ["shop.t"]);
        plan.collections.clear();
        assert_eq!(hold(&plan, &begun(&[])), [""; 0]);
    }

    #[test]
    fn what_holds_documents_is_named_with_their_number() {
        assert_eq!(refuse_holding(&[]), Ok(()));
        let hold = |count: usize| -> Vec<_> {
            let documents = |n: usize| (n != 1).then_some(n as u64 + 3000);
            (0..count).map(|n| (Namespace::new("shop", format!("c{n}")), documents(n))).collect()
        };
        let text = |count| refuse_holding(&hold(count)).expect_err("refused").to_string();
        assert_eq!(
            text(1),
            "the target is not empty: 1 collection of the plan holds documents: `shop.c0` (3000)"
        );
        assert!(text(7).ends_with(
            "`shop.c1`, `shop.c2` (3002), `shop.c3` (3003), `shop.c4` (3004), and 2 more"
        ));
    }
}
