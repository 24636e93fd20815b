//! Decides what will be restored where and in which order, before anything is touched.
//!
//! A plan is a value made from three others: what the dump holds, what was asked for, and what the
//! server is. Making it has no effect; `--dry-run` prints it and stops.

pub mod carried;
mod directions;
pub mod existing;
pub mod indexes;
pub mod oplog;
pub mod options;
pub mod order;
pub mod preflight;
mod rename;
mod requirements;
pub mod selection;
pub mod text;
pub mod users;
pub mod uuids;
mod views;

use std::path::{Path, PathBuf};

use bson::{Bson, Document, RawBsonRef, Uuid};

use crate::dump::archive::Archive;
use crate::dump::inventory::{CollectionKind, DumpEntry, Inventory, Origin};
use crate::facts::ServerFacts;
use crate::namespace::Namespace;
use crate::plan::carried::Carried;
pub use crate::plan::indexes::{Directions, DottedHashed, IndexFixes, IndexVersion};
use crate::plan::indexes::{IndexPlan, Surroundings};
use crate::plan::oplog::OplogPlan;
pub use crate::plan::options::OptionPolicy;
pub use crate::plan::order::Order;
use crate::plan::rename::Destinations;
pub use crate::plan::selection::Names;
use crate::plan::users::UsersPlan;
use crate::plan::uuids::Taken;
pub use crate::plan::uuids::UuidPolicy;

/// What was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    /// Which collections are restored, and under which names.
    pub names: Names,
    /// What happens to collections that exist already.
    pub existing: ExistingPolicy,
    /// Whether collections keep their UUIDs.
    pub uuids: UuidPolicy,
    /// Whether collections are created with their options.
    pub options: OptionPolicy,
    /// Whether indexes are built.
    pub indexes: IndexPolicy,
    /// How index definitions are made fit.
    pub index_fixes: IndexFixes,
    /// Whether validators may refuse documents.
    pub validation: Validation,
    /// Whether documents go in in the order of the dump.
    pub insertion: Insertion,
    /// The order in which collections are read.
    pub order: Order,
}

impl Default for Selection {
    fn default() -> Self {
        Self {
            names: Names::default(),
            existing: ExistingPolicy::Add,
            uuids: UuidPolicy::New,
            options: OptionPolicy::Restore,
            indexes: IndexPolicy::Build,
            index_fixes: IndexFixes::default(),
            validation: Validation::Bypassed,
            insertion: Insertion::AnyOrder,
            order: Order::LargestFirst,
        }
    }
}

/// What happens to a collection of the dump that the target has already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExistingPolicy {
    /// Documents are added to what is there.
    Add,
    /// It is dropped first.
    Drop,
    /// The restore is refused.
    Refuse,
    /// It is left alone.
    Skip,
}

/// Whether indexes are built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexPolicy {
    /// All of the dump's indexes.
    Build,
    /// None but the one on `_id`.
    Skip,
}

/// Whether a collection's validator may refuse documents while they are loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Validation {
    /// The server is asked to take every document, as it once did.
    Bypassed,
    /// The server judges each document.
    Kept,
}

/// The order in which the documents of one collection go in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Insertion {
    /// Whichever is fastest.
    AnyOrder,
    /// That of the file.
    InOrder,
}

/// What will be done, collection by collection.
#[derive(Clone, Debug, Default)]
pub struct RestorePlan {
    /// The collections in the order in which they are read; then the views, each after its source.
    pub collections: Vec<CollectionPlan>,
    /// The users and roles that are restored after the documents.
    pub users: Option<UsersPlan>,
    /// The oplog that is replayed after both.
    pub oplog: Option<OplogPlan>,
    /// What was noticed about the whole.
    pub notes: Vec<String>,
    /// What is left out, with the reason.
    pub skipped: Vec<Skipped>,
}

impl RestorePlan {
    /// The archive that everything comes from, where it comes from one.
    pub fn archive(&self) -> Option<&Archive> {
        let data = self.collections.iter().find_map(|collection| collection.data.as_ref());
        let oplog = self.oplog.as_ref().map(|oplog| &oplog.origin);
        let segments = data.or(oplog).and_then(Origin::segments);
        let users = || self.users.as_ref().and_then(UsersPlan::archive);
        segments.map(|segments| &segments.archive).or_else(users)
    }
}

/// What will be done with one collection.
#[derive(Clone, Debug)]
pub struct CollectionPlan {
    /// The collection's name on the target.
    pub namespace: Namespace,
    /// Its name in the dump.
    pub source: Namespace,
    /// Its kind.
    pub kind: CollectionKind,
    /// Where its documents come from.
    pub data: Option<Origin>,
    /// Where its options and indexes were read from, where that is a file of their own.
    pub metadata: Option<PathBuf>,
    /// Where the documents are inserted: the buckets of a time-series collection, else the
    /// collection itself.
    pub data_namespace: Namespace,
    /// Whether it is dropped, and whether it is created.
    pub creation: Creation,
    /// The options it is created with, in the dump's order.
    pub options: Document,
    /// The UUID it is created with; the server chooses one where there is none.
    pub uuid: Option<Uuid>,
    /// Documents older than this are deleted by the server; set after everything else, because
    /// the deletion begins within a minute.
    pub expire_after_seconds: Option<Box<Bson>>,
    /// The indexes to build, without the one on `_id`.
    pub indexes: Vec<IndexPlan>,
    /// The order of its documents.
    pub insertion: Insertion,
    /// Whether its validator may refuse documents.
    pub validation: Validation,
    /// What an earlier run has brought of it, where this run goes on from there.
    pub carried: Option<Box<Carried>>,
    /// What the plan changed or noticed.
    pub notes: Vec<String>,
}

/// How a collection comes to stand before its documents are inserted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Creation {
    /// It does not exist and is created.
    Create,
    /// It exists, is dropped, and is created.
    DropAndCreate,
    /// It exists, cannot be dropped, and is emptied: a server keeps its own `system.js`.
    Empty,
    /// It exists and is used as it is.
    Use,
}

/// Something of the dump that is not restored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// A path or a namespace.
    pub what: String,
    /// Why; a sentence without its final period.
    pub reason: String,
    /// Whether data may be missing because of it.
    pub is_problem: bool,
}

/// Makes the plan for a dump.
pub fn plan(inventory: &Inventory, selection: Selection, facts: &ServerFacts) -> RestorePlan {
    let mut skipped: Vec<_> = inventory
        .skipped
        .iter()
        .map(|path| Skipped {
            what: path.path.display().to_string(),
            reason: path.reason.clone(),
            is_problem: path.is_problem,
        })
        .collect();
    let names = &selection.names;
    skipped.extend(names.left_out(inventory));
    let destinations = match names.destinations(inventory) {
        Ok(destinations) => destinations,
        Err(error) => {
            let what = inventory.root.display().to_string();
            skipped.push(Skipped { what, reason: error.to_string(), is_problem: true });
            return RestorePlan { skipped, ..RestorePlan::default() };
        }
    };
    let order = selection.order;
    let taken = Taken::by_existing(facts);
    let mut planning = Planning { selection, facts, destinations, taken, skipped };
    let wanted = |entry: &&DumpEntry| planning.destinations.contains_key(&entry.namespace);
    let entries: Vec<_> = inventory.entries.iter().filter(wanted).collect();
    let mut collections = Vec::with_capacity(entries.len());
    for entry in entries {
        match planning.collection(entry) {
            Ok(collection) => collections.push(collection),
            Err(reason) => {
                let reason = planning.with_new_name(entry, reason);
                planning.leave_out(entry.namespace.to_string(), reason);
            }
        }
    }
    order::arrange(&mut collections, order);
    RestorePlan { collections, skipped: planning.skipped, ..RestorePlan::default() }
}

/// What a plan is made from, and what has come of it.
struct Planning<'a> {
    selection: Selection,
    facts: &'a ServerFacts,
    destinations: Destinations,
    taken: Taken,
    skipped: Vec<Skipped>,
}

impl Planning<'_> {
    /// Plans one collection, or says why it cannot be restored.
    fn collection(&mut self, entry: &DumpEntry) -> Result<CollectionPlan, String> {
        if let Some(problem) = &entry.problem {
            return Err(problem.clone());
        }
        let mut notes = Vec::new();
        let namespace = self.destinations.get(&entry.namespace).unwrap_or(&entry.namespace).clone();
        if namespace != entry.namespace {
            notes.push(format!("renamed from `{}`", entry.namespace));
        }
        let data_namespace = data_namespace(&namespace, entry.kind);
        if let Some(fault) = requirements::illegal(&namespace, &data_namespace, self.facts) {
            return Err(fault);
        }
        let creation = self.creation(entry, &namespace)?;
        let mut options = self.options(entry, &mut notes)?;
        if creation != Creation::Use
            && let Some(reason) = requirements::missing(entry.kind, &options, self.facts)
        {
            return Err(reason);
        }
        let uuid = match (self.selection.uuids, creation) {
            (UuidPolicy::Preserve, Creation::Create | Creation::DropAndCreate) => {
                self.taken.choose(entry, &namespace, &mut notes)?
            }
            _ => None,
        };
        let indexes = self.indexes(entry, &namespace, &options, &mut notes);
        let is_capped = matches!(options.get("capped"), Some(Bson::Boolean(true)));
        let expire_after_seconds = options.remove("expireAfterSeconds").map(Box::new);
        let insertion = if is_capped { Insertion::InOrder } else { self.selection.insertion };
        Ok(CollectionPlan {
            data_namespace,
            namespace,
            source: entry.namespace.clone(),
            kind: entry.kind,
            metadata: entry.metadata_path.clone(),
            data: entry.data.clone().filter(|data| may_have_data(entry.kind, data)),
            creation,
            options,
            uuid,
            expire_after_seconds,
            indexes,
            insertion,
            validation: self.selection.validation,
            carried: None,
            notes,
        })
    }

    /// A reason that concerns the name on the target names it where it is another one.
    fn with_new_name(&self, entry: &DumpEntry, reason: String) -> String {
        match self.destinations.get(&entry.namespace) {
            Some(name) if *name != entry.namespace => format!("{reason} (renamed to `{name}`)"),
            _ => reason,
        }
    }

    fn leave_out(&mut self, what: String, reason: String) {
        self.skipped.push(Skipped { what, reason, is_problem: true });
    }

    fn options(&self, entry: &DumpEntry, notes: &mut Vec<String>) -> Result<Document, String> {
        let dumped = entry.metadata.as_ref().map(|metadata| metadata.options.clone());
        let mut options = options::creatable(dumped.unwrap_or_default(), notes);
        if self.selection.options == OptionPolicy::Skip {
            options = options::skipped(entry.kind, options, notes)?;
        }
        if entry.kind == CollectionKind::View {
            views::carry_over(&mut options, &entry.namespace, &self.destinations, notes)?;
        }
        Ok(options)
    }

    fn indexes(
        &mut self,
        entry: &DumpEntry,
        namespace: &Namespace,
        options: &Document,
        notes: &mut Vec<String>,
    ) -> Vec<IndexPlan> {
        let Some(metadata) = &entry.metadata else {
            return Vec::new();
        };
        if self.selection.indexes == IndexPolicy::Skip {
            return Vec::new();
        }
        if let Some(path) = entry.metadata_path.as_ref().filter(|path| is_legacy(path)) {
            notes.push(format!("its indexes are those of {}", path.display()));
        }
        let fixes = self.selection.index_fixes;
        let of = Surroundings { namespace, options, fixes, facts: self.facts };
        let fit = indexes::plan(&metadata.indexes, of);
        notes.extend(fit.merged);
        for (index, reason) in fit.impossible {
            self.leave_out(format!("index `{index}` of {namespace}"), reason);
        }
        fit.indexes
    }

    /// Decides about a collection that may exist already.
    fn creation(&self, entry: &DumpEntry, namespace: &Namespace) -> Result<Creation, String> {
        let existing = self.facts.existing.iter().find(|there| there.namespace == *namespace);
        let Some(existing) = existing else {
            return Ok(Creation::Create);
        };
        match self.selection.existing {
            ExistingPolicy::Drop if namespace.is_system() => return Ok(Creation::Empty),
            ExistingPolicy::Drop => return Ok(Creation::DropAndCreate),
            // It is settled later what becomes of it, whatever it is.
            ExistingPolicy::Refuse | ExistingPolicy::Skip => return Ok(Creation::Use),
            ExistingPolicy::Add => {}
        }
        // A time-series collection takes what was never in buckets as any other does.
        let is_text = matches!(entry.data, Some(Origin::Text(_)));
        if is_text && existing.kind == CollectionKind::TimeSeries.name() {
            return Ok(Creation::Use);
        }
        if existing.kind != entry.kind.name() {
            return Err(format!(
                "the target has a {} of this name, the dump a {}; drop or rename it first",
                existing.kind,
                entry.kind.name()
            ));
        }
        Ok(Creation::Use)
    }
}

/// Whether metadata comes from the collection in which old servers kept all index definitions.
fn is_legacy(metadata: &Path) -> bool {
    let name = metadata.file_name().unwrap_or_default();
    name.to_string_lossy().starts_with("system.indexes.")
}

/// Whether documents are looked for: those of a view never, except that an archive may hold some,
/// which must be noticed.
fn may_have_data(kind: CollectionKind, data: &Origin) -> bool {
    kind != CollectionKind::View || data.segments().is_some()
}

fn data_namespace(namespace: &Namespace, kind: CollectionKind) -> Namespace {
    match kind {
        CollectionKind::TimeSeries => namespace.buckets(),
        CollectionKind::Collection | CollectionKind::View => namespace.clone(),
    }
}

/// A number without a fraction, of whatever type.
#[expect(clippy::cast_possible_truncation, reason = "a double is checked to be whole and small")]
fn whole_number(value: RawBsonRef<'_>) -> Option<i64> {
    /// As far as doubles tell every whole number.
    const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
    match value {
        RawBsonRef::Int32(number) => Some(number.into()),
        RawBsonRef::Int64(number) => Some(number),
        RawBsonRef::Double(number) if number.fract() == 0.0 && number.abs() < EXACT_MAX => {
            Some(number as i64)
        }
        _ => None,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::dump::inventory::Compression;
    use crate::dump::metadata::CollectionMetadata;
    use crate::facts::ExistingCollection;
    use bson::doc;
    use proptest::prelude::*;

    pub(crate) fn entry(name: &str, kind: CollectionKind, bytes: u64) -> DumpEntry {
        DumpEntry {
            namespace: Namespace::new("shop", name),
            kind,
            data: Some(Origin::File(crate::dump::DataFile {
                path: format!("dump/shop/{name}.bson").into(),
                compression: Compression::None,
                bytes,
            })),
            metadata: None,
            metadata_path: None,
            problem: None,
        }
    }

    fn inventory(entries: Vec<DumpEntry>) -> Inventory {
        Inventory { entries, ..Inventory::default() }
    }

    fn facts_with(name: &str, kind: &str) -> ServerFacts {
        let namespace = Namespace::new("shop", name);
        let existing = vec![ExistingCollection { namespace, kind: kind.into(), uuid: None }];
        ServerFacts { existing, ..ServerFacts::null() }
    }

    fn with_options(name: &str, kind: CollectionKind, options: Document) -> DumpEntry {
        let metadata = CollectionMetadata { options, ..CollectionMetadata::default() };
        DumpEntry { metadata: Some(metadata), ..entry(name, kind, 1) }
    }

    #[test]
    fn what_exists_is_added_to_or_dropped() {
        let inventory = inventory(vec![entry("orders", CollectionKind::Collection, 1)]);
        let facts = facts_with("orders", "collection");
        let add = plan(&inventory, Selection::default(), &facts);
        assert_eq!(add.collections[0].creation, Creation::Use);
        let selection = Selection { existing: ExistingPolicy::Drop, ..Selection::default() };
        let drop = plan(&inventory, selection.clone(), &facts);
        assert_eq!(drop.collections[0].creation, Creation::DropAndCreate);
        let fresh = plan(&inventory, selection, &ServerFacts::null());
        assert_eq!(fresh.collections[0].creation, Creation::Create);
    }

    #[test]
    fn a_system_collection_is_emptied_rather_than_dropped() {
        let inventory = inventory(vec![entry("system.js", CollectionKind::Collection, 1)]);
        let selection = Selection { existing: ExistingPolicy::Drop, ..Selection::default() };
        let plan = plan(&inventory, selection, &facts_with("system.js", "collection"));
        assert_eq!(plan.collections[0].creation, Creation::Empty);
    }

    #[test]
    fn another_kind_of_the_same_name_is_a_problem() {
        let inventory = inventory(vec![entry("orders", CollectionKind::Collection, 1)]);
        let plan = plan(&inventory, Selection::default(), &facts_with("orders", "view"));
        assert!(plan.collections.is_empty());
        assert!(plan.skipped[0].is_problem);
        assert_eq!(plan.skipped[0].what, "shop.orders");
    }

    #[test]
    fn a_capped_collection_keeps_its_order() {
        let options = doc! { "capped": true, "size": 4096 };
        let inventory = inventory(vec![with_options("log", CollectionKind::Collection, options)]);
        let plan = plan(&inventory, Selection::default(), &ServerFacts::null());
        assert_eq!(plan.collections[0].insertion, Insertion::InOrder);
    }

    #[test]
    fn buckets_are_where_time_series_go_and_expiry_comes_last() {
        let options = doc! { "timeseries": { "timeField": "t" }, "expireAfterSeconds": 60 };
        let inventory =
            inventory(vec![with_options("weather", CollectionKind::TimeSeries, options)]);
        let plan = plan(&inventory, Selection::default(), &ServerFacts::null());
        let weather = &plan.collections[0];
        assert_eq!(weather.data_namespace.collection(), "system.buckets.weather");
        assert_eq!(weather.expire_after_seconds.as_deref(), Some(&Bson::Int32(60)));
        assert!(!weather.options.contains_key("expireAfterSeconds"));
    }

    #[test]
    fn a_collection_with_a_problem_is_named() {
        let broken = DumpEntry {
            problem: Some("its metadata cannot be read".into()),
            ..entry("orders", CollectionKind::Collection, 1)
        };
        let plan = plan(&inventory(vec![broken]), Selection::default(), &ServerFacts::null());
        assert_eq!(plan.skipped[0].reason, "its metadata cannot be read");
        assert!(plan.skipped[0].is_problem);
    }

    /// A kind by number; every fourth entry has a problem.
    fn numbered(number: usize, kind: usize, bytes: u64) -> DumpEntry {
        let name = format!("c{number:02}");
        let made = match kind % 3 {
            0 => entry(&name, CollectionKind::Collection, bytes),
            1 => with_options(&name, CollectionKind::View, doc! { "viewOn": "c00" }),
            _ => with_options(
                &name,
                CollectionKind::TimeSeries,
                doc! { "timeseries": { "timeField": "t" } },
            ),
        };
        let problem = (kind % 4 == 3).then(|| "it is broken".to_owned());
        DumpEntry { problem, ..made }
    }

    proptest! {
        #[test]
        fn every_entry_is_planned_or_left_out_with_a_reason_once(
            kinds in prop::collection::vec((0_usize..12, 0_u64..100), 0..20),
            drops in any::<bool>(),
        ) {
            let entries: Vec<_> = kinds
                .iter()
                .enumerate()
                .map(|(number, (kind, bytes))| numbered(number, *kind, *bytes))
                .collect();
            let mut expected: Vec<_> =
                entries.iter().map(|entry| entry.namespace.to_string()).collect();
            let existing = if drops { ExistingPolicy::Drop } else { ExistingPolicy::Add };
            let selection = Selection { existing, ..Selection::default() };
            let plan = plan(&inventory(entries), selection, &facts_with("c01", "collection"));
            let mut named: Vec<_> = plan
                .collections
                .iter()
                .map(|collection| collection.namespace.to_string())
                .chain(plan.skipped.iter().map(|skipped| skipped.what.clone()))
                .collect();
            named.sort();
            expected.sort();
            prop_assert_eq!(named, expected);
            prop_assert!(plan.skipped.iter().all(|skipped| !skipped.reason.is_empty()));
            let is_view = |plan: &CollectionPlan| plan.kind == CollectionKind::View;
            prop_assert!(plan.collections.iter().map(is_view).is_sorted(), "views come last");
        }
    }
}
