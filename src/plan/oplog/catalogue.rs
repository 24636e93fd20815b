//! The indexes that collections have at the end of an oplog.
//!
//! Indexes are built after the oplog is applied, so that documents which break them in between do
//! no harm. What the oplog does to indexes is done to this catalogue instead of to the server: it
//! begins with those of the dump and ends with those to build.

use std::collections::BTreeMap;

use bson::raw::RawDocument;
use bson::{Bson, Document, RawBsonRef, RawDocumentBuf};

use crate::dump::inventory::{CollectionKind, Origin};
use crate::dump::metadata::IndexSpec;
use crate::error::Error;
use crate::facts::ServerFacts;
use crate::namespace::Namespace;
use crate::plan::directions;
use crate::plan::indexes::{self, IndexPlan, Surroundings};
use crate::plan::oplog::OplogPlan;
use crate::plan::oplog::entry::{damaged, error, without};
use crate::plan::{IndexFixes, IndexPolicy, RestorePlan};

/// What is known of the indexes of each collection.
#[derive(Clone, Debug)]
pub struct Catalogue {
    collections: BTreeMap<Namespace, Indexed>,
    policy: IndexPolicy,
    fixes: IndexFixes,
    facts: ServerFacts,
}

/// A collection and the indexes it will have.
#[derive(Clone, Debug, Default)]
pub struct Indexed {
    /// Its place in the plan; none where the oplog made it or gave it its name.
    pub planned: Option<usize>,
    /// Its indexes.
    pub indexes: Vec<IndexPlan>,
    /// The age at which its documents are deleted.
    pub expire_after_seconds: Option<Bson>,
    /// The size of its data file.
    pub bytes: u64,
    /// The options that its indexes depend on.
    options: Document,
}

impl Catalogue {
    /// The catalogue of a plan, before the oplog; without indexes where none are to be built.
    pub fn of(plan: &RestorePlan, oplog: &OplogPlan) -> Self {
        let collections = plan.collections.iter().enumerate();
        let collections = collections
            .filter(|(_, collection)| collection.kind != CollectionKind::View)
            .map(|(place, collection)| {
                let indexed = Indexed {
                    planned: Some(place),
                    indexes: collection.indexes.clone(),
                    expire_after_seconds: collection.expire_after_seconds.as_deref().cloned(),
                    bytes: collection.data.as_ref().and_then(Origin::bytes).unwrap_or(0),
                    options: collection.options.clone(),
                };
                (collection.namespace.clone(), indexed)
            });
        Self {
            collections: collections.collect(),
            policy: oplog.indexes,
            fixes: oplog.index_fixes,
            facts: oplog.facts.clone(),
        }
    }

    /// The collections with their indexes, in the order of their names.
    pub fn into_collections(self) -> impl Iterator<Item = (Namespace, Indexed)> {
        self.collections.into_iter()
    }

    fn tracks(&self) -> bool {
        self.policy != IndexPolicy::Skip
    }

    /// Notes that a collection was made with these options, unless it is there.
    pub(super) fn create(
        &mut self,
        namespace: Namespace,
        options: &RawDocument,
    ) -> Result<(), Error> {
        let options = Document::try_from(options).map_err(|error| damaged(&error))?;
        let indexed = self.collections.entry(namespace).or_default();
        if let Some(seconds) = options.get("expireAfterSeconds") {
            indexed.expire_after_seconds = Some(seconds.clone());
        }
        indexed.options = options;
        Ok(())
    }

    pub(super) fn drop_collection(&mut self, namespace: &Namespace) {
        self.collections.remove(namespace);
        if let Some(logical) = namespace.of_buckets() {
            self.collections.remove(&logical);
        }
    }

    pub(super) fn drop_database(&mut self, database: &str) {
        self.collections.retain(|namespace, _| namespace.database() != database);
    }

    /// Moves what is known of a collection to its new name.
    pub(super) fn rename(&mut self, from: &Namespace, to: Namespace) {
        let moved = self.collections.remove(from).unwrap_or_default();
        self.collections.insert(to, Indexed { planned: None, ..moved });
    }

    /// Adds an index; it takes the place of one with its name.
    pub(super) fn create_index(
        &mut self,
        namespace: &Namespace,
        spec: &RawDocument,
    ) -> Result<(), Error> {
        if !self.tracks() {
            return Ok(());
        }
        let spec = Document::try_from(spec).map_err(|error| damaged(&error))?;
        let indexed = self.collections.entry(namespace.clone()).or_default();
        let of = Surroundings {
            namespace,
            options: &indexed.options,
            fixes: self.fixes,
            facts: &self.facts,
        };
        let fit = indexes::plan(&[IndexSpec::from(spec.clone())], of);
        // What a server cannot have is left to it to refuse, which is told as of any other index.
        let impossible = fit.impossible.into_iter().map(|(name, _)| IndexPlan {
            name,
            spec: spec.clone(),
            expires: false,
            repairs: Vec::new(),
        });
        for index in fit.indexes.into_iter().chain(impossible) {
            indexed.indexes.retain(|known| known.name != index.name);
            indexed.indexes.push(index);
        }
        Ok(())
    }

    /// Removes an index by its name or key, or all; one that is not there is no matter.
    pub(super) fn drop_index(
        &mut self,
        namespace: &Namespace,
        index: RawBsonRef<'_>,
    ) -> Result<(), Error> {
        let Some(indexed) = self.collections.get_mut(namespace) else {
            return Ok(());
        };
        match index {
            RawBsonRef::String("*") => indexed.indexes.retain(is_on_id_alone),
            RawBsonRef::String(name) => indexed.indexes.retain(|known| known.name != name),
            RawBsonRef::Document(key) => {
                let key = Document::try_from(key).map_err(|error| damaged(&error))?;
                indexed.indexes.retain(|known| !has_key(known, &key));
            }
            RawBsonRef::Array(names) => {
                for name in names {
                    let name = name.map_err(|error| damaged(&error))?;
                    let name = name.as_str().unwrap_or_default();
                    indexed.indexes.retain(|known| known.name != name);
                }
            }
            _ => return Err(error("the entry does not say which index is dropped")),
        }
        Ok(())
    }

    /// Takes from a `collMod` what concerns indexes and the deletion of documents; returns the rest
    /// of it, if there is any.
    pub(super) fn modify(
        &mut self,
        namespace: &Namespace,
        command: &RawDocument,
    ) -> Result<Option<RawDocumentBuf>, Error> {
        /// Options of a storage engine that is gone.
        const GONE: [&str; 2] = ["noPadding", "usePowerOf2Sizes"];
        if let Some(change) = command.get("index").map_err(|error| damaged(&error))? {
            let change =
                change.as_document().ok_or_else(|| error("the index of collMod is no document"))?;
            let change = Document::try_from(change).map_err(|error| damaged(&error))?;
            self.modify_index(namespace, &change)?;
        }
        if let Some(seconds) = command.get("expireAfterSeconds").map_err(|error| damaged(&error))? {
            let seconds = Bson::try_from(seconds).map_err(|error| damaged(&error))?;
            let logical = namespace.of_buckets().filter(|name| self.collections.contains_key(name));
            let indexed = self.collections.entry(logical.unwrap_or_else(|| namespace.clone()));
            indexed.or_default().expire_after_seconds = Some(seconds);
        }
        let rest = without(command, |field| {
            field == "index" || field == "expireAfterSeconds" || GONE.contains(&field)
        })?;
        Ok((rest.iter_elements().count() > 1).then_some(rest))
    }

    fn modify_index(&mut self, namespace: &Namespace, change: &Document) -> Result<(), Error> {
        if !self.tracks() {
            return Ok(());
        }
        let indexed = self.collections.get_mut(namespace);
        let mut known = indexed.into_iter().flat_map(|indexed| &mut indexed.indexes);
        let found = known.find(|known| match (change.get("name"), change.get("keyPattern")) {
            (Some(Bson::String(name)), _) => known.name == *name,
            (_, Some(Bson::Document(key))) => has_key(known, key),
            _ => false,
        });
        let index = found.ok_or_else(|| {
            error(format!("collMod changes an index of `{namespace}` that is not known: {change}"))
        })?;
        for (option, value) in change {
            let is_true = *value == Bson::Boolean(true);
            match option.as_str() {
                "expireAfterSeconds" => {
                    index.spec.insert("expireAfterSeconds", value.clone());
                    index.expires = true;
                }
                "unique" | "hidden" | "prepareUnique" if is_true => {
                    index.spec.insert(option, true);
                    if option == "unique" {
                        index.spec.remove("prepareUnique");
                    }
                }
                "unique" | "hidden" | "prepareUnique" => {
                    index.spec.remove(option);
                }
                "forceNonUnique" if is_true => {
                    index.spec.remove("unique");
                }
                "name" | "keyPattern" | "forceNonUnique" => {}
                other => {
                    return Err(error(format!("collMod sets the unknown index option `{other}`")));
                }
            }
        }
        Ok(())
    }
}

fn is_on_id_alone(index: &IndexPlan) -> bool {
    index.spec.get_document("key").is_ok_and(|key| key.len() == 1 && key.contains_key("_id"))
}

/// Whether the index has this key; a direction is the same number in any type.
fn has_key(index: &IndexPlan, key: &Document) -> bool {
    let Ok(known) = index.spec.get_document("key") else {
        return false;
    };
    known.len() == key.len()
        && known.iter().zip(key).all(|((field, direction), (other_field, other))| {
            let is_same = match (directions::number(direction), directions::number(other)) {
                (Some(direction), Some(other)) => direction.total_cmp(&other).is_eq(),
                _ => direction == other,
            };
            field == other_field && is_same
        })
}
