//! Describes documents that are there as a spec that makes similar ones.

mod profile;
mod render;
mod written;

use bson::{Document, RawDocument};

use crate::namespace::Namespace;
use profile::Object;
use render::Rendering;

/// Whether texts of the documents may be part of the spec.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Values {
    /// Only how long they are and how many different ones there are.
    Replaced,
    /// Those of which there are few are copied.
    Copied,
}

/// What is known of a collection beside its documents.
#[derive(Clone, Debug)]
pub struct Surroundings {
    /// Its name.
    pub namespace: Namespace,
    /// How many documents it has.
    pub documents: u64,
    /// Its options.
    pub options: Document,
    /// Its indexes.
    pub indexes: Vec<Document>,
}

/// What some documents of a collection look like.
#[derive(Debug, Default)]
pub struct Likeness {
    documents: u64,
    bytes: u64,
    object: Object,
}

impl Likeness {
    /// Takes a document into account; what is damaged in it is left out.
    pub fn add(&mut self, document: &RawDocument) {
        self.documents += 1;
        self.bytes += document.as_bytes().len() as u64;
        self.object.add(document, 0);
    }

    /// The text of the spec.
    pub fn spec(&self, of: &Surroundings, values: Values) -> String {
        let unique: Vec<&str> = of.indexes.iter().filter_map(unique_field).collect();
        let rendering = Rendering { documents: of.documents.max(self.documents), values, unique };
        let mean = self.bytes.checked_div(self.documents).unwrap_or(0);
        let (namespace, sampled) = (&of.namespace, self.documents);
        let mut text = format!(
            "# Like {namespace}, by {sampled} of its documents, which have {mean} bytes on \
             average.\n"
        );
        text += match values {
            Values::Replaced => {
                "# Texts were not copied: those of which there are few are others of the same \
                 length.\n# Names of fields, numbers and dates are those that were found.\n\n"
            }
            Values::Copied => "# Texts of which there are few were copied.\n\n",
        };
        let mut line = |parts: &[&str]| {
            text.extend(parts.iter().copied());
            text.push('\n');
        };
        line(&["[[collection]]"]);
        line(&["name = ", &written::text(namespace.collection())]);
        line(&["database = ", &written::text(namespace.database())]);
        line(&["documents = ", &rendering.documents.to_string()]);
        let options = options(&of.options);
        if !options.is_empty() {
            line(&["options = ", &written::document(&options)]);
        }
        line(&["\n[collection.fields]"]);
        for (name, slot) in self.object.fields() {
            let is_unique = name == "_id" || rendering.unique.contains(&name);
            let field = rendering.field(slot, self.object.seen(), is_unique, 0);
            line(&[&written::key(name), " = ", &field]);
        }
        let secondary = |index: &&Document| index.get_str("name").is_ok_and(|name| name != "_id_");
        for index in of.indexes.iter().filter(secondary) {
            line(&["\n[[collection.index]]"]);
            for (key, value) in index.iter().filter(|(key, _)| *key != "v" && *key != "ns") {
                line(&[&written::key(key), " = ", &written::value(value)]);
            }
        }
        text
    }
}

/// The options that a collection is made with; those of time series and views make other things.
fn options(options: &Document) -> Document {
    let is_kept = |key: &str| !["uuid", "timeseries", "viewOn", "pipeline"].contains(&key);
    let kept = options.iter().filter(|(key, _)| is_kept(key));
    kept.map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// The field that an index on nothing else keeps unique.
fn unique_field(index: &Document) -> Option<&str> {
    let key = index.get_document("key").ok().filter(|key| key.len() == 1)?;
    index.get_bool("unique").ok().filter(|is_unique| *is_unique)?;
    key.keys().next().map(String::as_str)
}

#[cfg(test)]
mod tests;
