//! Where the documents that are refused are kept, and what is written beside them.

use std::collections::HashMap;
use std::sync::Arc;

use bson::oid::ObjectId;

use crate::command::restore::{Found, Start};
use crate::dump::inventory::{CollectionKind, DumpEntry, Origin};
use crate::error::Error;
use crate::load::Ledger;
use crate::load::rejects::{self, Earlier, Place, Rejects};
use crate::namespace::Namespace;
use crate::plan::{CollectionPlan, RestorePlan};

/// Opens the folder for refused documents, where one was named.
pub(super) fn open(
    found: Found<'_>,
    plan: &RestorePlan,
    ledger: Option<&Ledger>,
) -> Result<Option<Arc<Rejects>>, Error> {
    let Some(folder) = &found.options.rejects else {
        return Ok(None);
    };
    let entries: HashMap<&Namespace, &DumpEntry> =
        found.inventory.entries.iter().map(|entry| (&entry.namespace, entry)).collect();
    let places = plan.collections.iter().map(|collection| {
        let length = collection.carried.as_ref().map(|carried| carried.rejects);
        let entry = entries.get(&collection.source).copied();
        (place(collection, entry), length.unwrap_or_default())
    });
    let earlier = match found.options.ledger.start {
        Start::Anew => Earlier::Refused,
        Start::Resumed => Earlier::Resumed,
    };
    let run = ledger.map_or_else(ObjectId::new, Ledger::run);
    Rejects::open(folder, run, earlier, places.collect()).map(|rejects| Some(rejects.into()))
}

/// Refuses a folder that cannot be taken, before anything is begun.
pub(super) fn check(found: Found<'_>) -> Result<(), Error> {
    match (&found.options.rejects, found.options.ledger.start) {
        (Some(folder), Start::Anew) => rejects::check_empty(folder),
        _ => Ok(()),
    }
}

/// Where the refused documents of a collection are kept.
pub(in crate::command) fn place(collection: &CollectionPlan, entry: Option<&DumpEntry>) -> Place {
    let mut metadata = entry.and_then(|entry| entry.metadata.clone()).unwrap_or_default();
    metadata.collection_name = Some(collection.namespace.collection().to_owned());
    if collection.kind == CollectionKind::TimeSeries || metadata.kind.is_none() {
        metadata.kind = Some(collection.kind.name().to_owned());
    }
    let origin = collection.data.as_ref().map(Origin::path);
    Place {
        namespace: collection.namespace.clone(),
        data_namespace: collection.data_namespace.clone(),
        metadata: metadata.to_json(),
        origin: origin.map_or_else(String::new, |path| path.display().to_string()),
    }
}
