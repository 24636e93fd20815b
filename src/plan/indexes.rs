//! The indexes of a collection, made fit for the `createIndexes` command.
//!
//! Definitions pass through as the dump has them; what old servers accepted and new ones refuse is
//! repaired, and each repair is listed. What no repair helps is left out with its reason.

mod acceptable;
pub(super) mod together;

use bson::{Bson, Document, doc};

use crate::dump::metadata::IndexSpec;
use crate::facts::{ServerFacts, ServerVersion, Topology};
use crate::namespace::Namespace;
use crate::plan::directions::{self, is_simple, is_version_one};

/// How index definitions are made fit beyond what is always done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IndexFixes {
    /// What is done about the directions of old servers.
    pub directions: Directions,
    /// What becomes of hashed fields with a dot in their name.
    pub dotted_hashed: DottedHashed,
    /// Which version indexes are built in.
    pub version: IndexVersion,
}

/// What is done about directions that old servers accepted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Directions {
    /// Those that a current server refuses are taken as 1.
    #[default]
    Repaired,
    /// So are they, and numbers next to zero become 1 or -1; of definitions that become equal by
    /// it the first one is built.
    Converted,
}

/// What becomes of a hashed field with a dot in its name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DottedHashed {
    /// It stays hashed.
    #[default]
    Kept,
    /// It becomes ascending.
    Ascending,
}

/// Which version indexes are built in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IndexVersion {
    /// The one that the server prefers.
    #[default]
    Current,
    /// That of the dump.
    Kept,
}

/// What an index definition is judged by besides itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct Surroundings<'a> {
    /// The collection on the target.
    pub(super) namespace: &'a Namespace,
    /// The options the collection is created with.
    pub(super) options: &'a Document,
    /// What was asked for.
    pub(super) fixes: IndexFixes,
    /// What the server is.
    pub(super) facts: &'a ServerFacts,
}

/// The indexes of one collection, and what cannot be built.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Fit {
    /// The indexes to build.
    pub(super) indexes: Vec<IndexPlan>,
    /// Definitions that need no index of their own, with the reason.
    pub(super) merged: Vec<String>,
    /// The names of indexes that the server cannot have, each with the reason.
    pub(super) impossible: Vec<(String, String)>,
}

/// An index to build.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexPlan {
    /// Its name.
    pub name: String,
    /// Its definition as it is sent.
    pub spec: Document,
    /// Whether it deletes documents; such indexes are built after everything else.
    pub expires: bool,
    /// What was changed against the dump.
    pub repairs: Vec<String>,
}

/// The options that a server knows (`index_key_validate.cpp`, `allowedFieldNames`). Others are
/// left out, because a server drops or refuses them.
const KNOWN_OPTIONS: [&str; 29] = [
    "2dsphereIndexVersion",
    "background",
    "bits",
    "bucketSize",
    "clustered",
    "coarsestIndexedLevel",
    "collation",
    "columnstoreProjection",
    "default_language",
    "expireAfterSeconds",
    "finestIndexedLevel",
    "hidden",
    "key",
    "language_override",
    "max",
    "min",
    "name",
    "partialFilterExpression",
    "prepareUnique",
    "sparse",
    "storageEngine",
    "textIndexVersion",
    "unique",
    "weights",
    "wildcardProjection",
    "originalSpec",
    "dropDups",
    "ns",
    "v",
];

/// Options that say nothing to a current server and go without a note.
const WITHOUT_A_NOTE: [&str; 4] = ["ns", "v", "dropDups", "originalSpec"];

/// From this version on there are no geoHaystack indexes (SERVER-47506).
const WITHOUT_HAYSTACKS: ServerVersion = ServerVersion::new(4, 9, 0);

/// Until this version the full name of an index had a limit (SERVER-32959).
const WITHOUT_NAME_LIMIT: ServerVersion = ServerVersion::new(4, 2, 0);

/// The longest `database.collection.$index` of servers with that limit, in bytes.
const FULL_NAME_BYTES_MAX: usize = 127;

/// Plans the indexes of one collection, without the one on `_id` that it has by itself.
pub(super) fn plan(specs: &[IndexSpec], of: Surroundings<'_>) -> Fit {
    let mut fit = Fit::default();
    // The keys after conversion, with the names of their indexes and whether it changed them.
    let mut keys: Vec<(Document, String, bool)> = Vec::new();
    for spec in specs {
        let spec = &spec.definition();
        if is_default_id(spec) || is_clustered(spec) {
            continue;
        }
        let mut repairs = Vec::new();
        let mut made = make_fit(spec, of, &mut repairs);
        let name = named(&mut made, &mut repairs);
        if of.fixes.directions == Directions::Converted {
            let key = made.get_document("key").cloned().unwrap_or_default();
            let is_changed = spec.get_document("key").ok() != Some(&key);
            let same = keys.iter().find(|(other, _, was_changed)| {
                (is_changed || *was_changed) && directions::are_equal(other, &key)
            });
            if let Some((_, first, _)) = same {
                fit.merged.push(format!(
                    "index `{name}` is left out: once converted, it is the same as `{first}`"
                ));
                continue;
            }
            keys.push((key, name.clone(), is_changed));
        }
        if of.fixes.dotted_hashed == DottedHashed::Ascending
            && let Ok(key) = made.get_document_mut("key")
        {
            directions::unhash_dotted(key, &mut repairs);
        }
        if let Some(reason) = impossible(&made, &name, of) {
            fit.impossible.push((name, reason));
            continue;
        }
        let expires = made.contains_key("expireAfterSeconds");
        fit.indexes.push(IndexPlan { name, spec: made, expires, repairs });
    }
    tell_names_apart(&mut fit.indexes);
    let together = together::judge(&[], std::mem::take(&mut fit.indexes), of.facts);
    fit.indexes = together.kept;
    fit.merged.extend(together.merged);
    fit.impossible.extend(together.impossible);
    fit
}

/// Whether this is the index on `_id` that every collection has.
fn is_default_id(spec: &Document) -> bool {
    let Ok(key) = spec.get_document("key") else {
        return false;
    };
    let is_ascending =
        key.get("_id").is_some_and(|direction| match directions::repaired(direction) {
            Some(_) => true,
            None => directions::number(direction).is_some_and(|value| value > 0.0),
        });
    key.len() == 1 && is_ascending && !spec.contains_key("partialFilterExpression")
}

/// Whether this is how a clustered collection lists its own order; `create` makes it.
fn is_clustered(spec: &Document) -> bool {
    matches!(spec.get("clustered"), Some(Bson::Boolean(true)))
}

/// The definition as it is sent, but for its name.
fn make_fit(spec: &Document, of: Surroundings<'_>, repairs: &mut Vec<String>) -> Document {
    let mut fit = Document::new();
    let keeps_version = of.fixes.version == IndexVersion::Kept;
    for (option, value) in spec {
        if !KNOWN_OPTIONS.contains(&option.as_str()) {
            repairs.push(format!("the unknown option `{option}` is left out"));
        } else if option == "key" {
            let key = match value {
                Bson::Document(key) => {
                    Bson::Document(directions::fit(key, of.fixes.directions, repairs))
                }
                other => other.clone(),
            };
            fit.insert("key", key);
        } else if option == "collation" && is_version_one(spec) && is_simple(value) {
            // Version 1 indexes have the simple collation by nature and refuse to be told.
        } else if !WITHOUT_A_NOTE.contains(&option.as_str()) || (option == "v" && keeps_version) {
            fit.insert(option, value.clone());
        }
    }
    let has_collation = of.options.get("collation").is_some_and(|collation| !is_simple(collation));
    let refuses_collation = keeps_version && is_version_one(spec);
    if has_collation && !refuses_collation && !fit.contains_key("collation") {
        // Without it the index would take the collection's collation.
        fit.insert("collation", doc! { "locale": "simple" });
    }
    if has_value(&fit, "2dsphere") && !fit.contains_key("2dsphereIndexVersion") {
        fit.insert("2dsphereIndexVersion", 1);
        repairs.push("it has no 2dsphereIndexVersion and is kept at version 1".into());
    }
    fit
}

fn has_value(spec: &Document, kind: &str) -> bool {
    spec.get_document("key")
        .is_ok_and(|key| key.values().any(|value| value == &Bson::String(kind.into())))
}

/// Why this server cannot have the index, if it cannot.
fn impossible(spec: &Document, name: &str, of: Surroundings<'_>) -> Option<String> {
    if of.facts.topology == Topology::Null {
        return None;
    }
    let version = of.facts.version;
    if has_value(spec, "geoHaystack") && version >= WITHOUT_HAYSTACKS {
        return Some(format!(
            "servers from 4.9 on have no geoHaystack indexes, and this one is {version}; a \
             2dsphere index can take its place"
        ));
    }
    let full_name = of.namespace.full().len() + ".$".len() + name.len();
    if version < WITHOUT_NAME_LIMIT && full_name > FULL_NAME_BYTES_MAX {
        return Some(format!(
            "with the collection's name it has {full_name} bytes, and servers before 4.2 allow \
             {FULL_NAME_BYTES_MAX}"
        ));
    }
    acceptable::refusal(spec, of.options, of.facts)
}

/// The index's name, made from its key as a server would where the dump has none.
fn named(spec: &mut Document, repairs: &mut Vec<String>) -> String {
    let given = spec.get_str("name").ok().map(str::to_owned);
    if let Some(name) = given.as_ref().filter(|name| may_be_called(name)) {
        return name.clone();
    }
    let parts: Vec<String> = spec
        .get_document("key")
        .map(|key| key.iter().map(|(field, value)| format!("{field}_{}", plain(value))).collect())
        .unwrap_or_default();
    let name = parts.join("_");
    spec.insert("name", name.clone());
    repairs.push(match given {
        Some(given) => format!("`{given}` is no name for it, and it is called `{name}`"),
        None => format!("it has no name and is called `{name}`"),
    });
    name
}

/// Whether a server lets an index that is not the one on `_id` have this name.
fn may_be_called(name: &str) -> bool {
    !matches!(name, "" | "*" | "_id_") && !name.contains('\0')
}

fn plain(value: &Bson) -> String {
    match value {
        Bson::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Gives an index whose name an earlier one has a name of its own, so that both are built.
fn tell_names_apart(indexes: &mut [IndexPlan]) {
    for later in 1..indexes.len() {
        let (earlier, rest) = indexes.split_at_mut(later);
        let index = &mut rest[0];
        let is_taken = |name: &str| earlier.iter().any(|index| index.name == name);
        if !is_taken(&index.name) {
            continue;
        }
        let free = (2..).map(|number| format!("{}_{number}", index.name));
        let Some(name) = free.take(earlier.len() + 1).find(|name| !is_taken(name)) else {
            continue;
        };
        index
            .repairs
            .push(format!("another index is called `{}`; it becomes `{name}`", index.name));
        index.spec.insert("name", name.clone());
        index.name = name;
    }
}

#[cfg(test)]
mod tests;
