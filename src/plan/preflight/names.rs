//! Databases whose names differ in nothing but the case of letters, of which a server has one.

use std::collections::BTreeMap;

use crate::plan::preflight::leave_out;
use crate::plan::{CollectionPlan, RestorePlan};

/// Leaves out the collections whose database cannot be beside another one, which the server refuses
/// as `DatabaseDifferCase` (13297). Of several in the plan alone, the first in byte order is kept.
pub(super) fn part(plan: &mut RestorePlan, existing: &[String]) {
    let mut taken: BTreeMap<String, String> = BTreeMap::new();
    for database in existing {
        taken.insert(database.to_lowercase(), database.clone());
    }
    let on_server = taken.clone();
    let mut planned: Vec<&str> =
        plan.collections.iter().map(|collection| collection.namespace.database()).collect();
    planned.sort_unstable();
    planned.dedup();
    for database in planned {
        // A server that has the name itself has no other one like it.
        taken.entry(database.to_lowercase()).or_insert_with(|| database.to_owned());
    }
    let clashes = |collection: &CollectionPlan| {
        let database = collection.namespace.database();
        taken.get(&database.to_lowercase()).filter(|holder| *holder != database).cloned()
    };
    let collections = std::mem::take(&mut plan.collections);
    for collection in collections {
        let Some(holder) = clashes(&collection) else {
            plan.collections.push(collection);
            continue;
        };
        let database = collection.namespace.database();
        let place = if on_server.contains_key(&database.to_lowercase()) {
            "the server has"
        } else {
            "the dump brings"
        };
        let reason = format!(
            "{place} a database `{holder}`, and a server has no two whose names differ in case \
             alone; --ns-from '{database}.*' --ns-to 'another.*' restores it under another name"
        );
        leave_out(plan, collection.namespace.to_string(), reason);
    }
}
