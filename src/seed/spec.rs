//! Collections that a file describes: their fields, how many documents, options and indexes.
//!
//! The file is TOML; `docs/seeding.md` is its reference. It is read once into values that know how
//! they are drawn, so that making a document neither looks at the file nor builds a tree.

mod field;
mod numbers;
mod section;

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use bson::{Bson, Document, doc};
use toml::de::DeTable;

use super::distribution::{Chance, Draws};
use super::random::SplitMix64;
use super::shape::{EPOCH_SECONDS, PER_SECOND};
use super::value::{self, Field, Ids, Referred, Value};
use super::{Collections, Generator, ID_INDEX, index, metadata_uuid};
use crate::dump::{CollectionMetadata, IndexSpec};
use crate::error::{Error, ErrorKind};
use crate::namespace::Namespace;
use field::Around;
use section::{Entry, Section, Source};

/// The database of collections that name none.
const DATABASE: &str = "seed";

/// How many documents are made, beside what a spec says.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Amount {
    /// As many as it says.
    #[default]
    AsSaid,
    /// So many in each collection.
    Each(u64),
    /// As many as it says times this.
    Times(f64),
}

/// What is asked of a spec beside what it says.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Wanted<'a> {
    /// Takes the place of the database that it names for all collections.
    pub database: Option<&'a str>,
    /// The database where nothing is said.
    pub otherwise: Option<&'a str>,
    /// How many documents.
    pub amount: Amount,
}

/// A spec that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    name: String,
    collections: Vec<Described>,
}

/// A collection of a spec.
#[derive(Clone, Debug, PartialEq)]
struct Described {
    namespace: Namespace,
    documents: u64,
    salt: u64,
    fields: Arc<Fields>,
    options: Document,
    indexes: Vec<Document>,
}

/// The fields of the documents of a collection.
#[derive(Debug, PartialEq)]
pub(super) struct Fields {
    fields: Vec<Field>,
    referred: Arc<[Referred]>,
}

impl Fields {
    /// Appends the numbered document.
    pub(super) fn append(&self, seed: u64, stream: u64, number: u64, out: &mut Vec<u8>) {
        let random = SplitMix64::nth(stream, number);
        let mut draws = Draws { seed, stream, number, random };
        value::document(&self.fields, &self.referred, &mut draws, out);
    }
}

/// The database of collections that name none.
#[derive(Clone, Copy)]
struct Databases<'a> {
    /// As the file says it.
    said: &'a str,
    /// The one they are made in.
    meant: &'a str,
}

/// What is known of a collection before its fields are.
struct Known {
    /// Its full name as the file says it.
    full: String,
    namespace: Namespace,
    documents: u64,
    salt: u64,
}

impl Spec {
    /// Reads a file.
    ///
    /// # Errors
    ///
    /// Of kind [`ErrorKind::Usage`], with the line and what is possible there.
    pub fn read(file: &Path, wanted: Wanted<'_>) -> Result<Self, Error> {
        let text = std::fs::read_to_string(file).map_err(|error| {
            Error::new(ErrorKind::Usage, format!("the spec cannot be read: {error}")).in_file(file)
        })?;
        Self::parse(&text, file, wanted)
    }

    /// Reads the text of a file.
    ///
    /// # Errors
    ///
    /// As [`Self::read`].
    pub fn parse(text: &str, file: &Path, wanted: Wanted<'_>) -> Result<Self, Error> {
        let source = Source { text, file };
        let table = DeTable::parse(text).map_err(|error| {
            let message = error.message().trim_end().replace('\n', "; ");
            source.error(&error.span().unwrap_or_default(), &message)
        })?;
        let root = Section::root(source, &table);
        let said = root.get("database").as_ref().map(Entry::text).transpose()?;
        let said = said.or(wanted.otherwise).unwrap_or(DATABASE);
        let databases = Databases { said, meant: wanted.database.unwrap_or(said) };
        root.get("collection");
        root.finish()?;
        let elements = root.needed("collection")?.elements()?;
        let sections: Result<Vec<_>, _> = elements.iter().map(Entry::section).collect();
        let mut sections = sections?;
        let known: Result<Vec<_>, _> =
            sections.iter_mut().map(|section| known(section, databases, wanted.amount)).collect();
        let known = known?;
        if known.is_empty() {
            return Err(root.error("at least one `[[collection]]` is needed"));
        }
        let described: Result<Vec<_>, _> = sections
            .iter()
            .zip(&known)
            .map(|(section, of)| described(section, of, &known))
            .collect();
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut spec = Self { name, collections: described? };
        spec.check(&root)?;
        spec.join();
        Ok(spec)
    }

    /// Refuses collections with the same name, and `_id`s that refer to each other in a circle.
    fn check(&self, root: &Section<'_>) -> Result<(), Error> {
        for (place, one) in self.collections.iter().enumerate() {
            if self.collections[..place].iter().any(|other| other.namespace == one.namespace) {
                return Err(root.error(&format!("{} is described twice", one.namespace)));
            }
            let mut at = place;
            for _ in 0..=self.collections.len() {
                match &self.collections[at].fields.fields[0].value {
                    Value::Reference { to, .. } => at = *to,
                    _ => break,
                }
                if at == place {
                    let message = format!("the _id of {} refers to itself", one.namespace);
                    return Err(root.error(&message));
                }
            }
        }
        Ok(())
    }

    /// Lets all collections know the `_id`s of all.
    fn join(&mut self) {
        let referred: Arc<[_]> = self
            .collections
            .iter()
            .map(|one| Referred { salt: one.salt, id: one.fields.fields[0].value.clone() })
            .collect();
        for one in &mut self.collections {
            let fields = one.fields.fields.clone();
            one.fields = Arc::new(Fields { fields, referred: Arc::clone(&referred) });
        }
    }

    /// The databases of the collections, each once.
    pub fn databases(&self) -> Vec<&str> {
        let mut databases: Vec<_> =
            self.collections.iter().map(|one| one.namespace.database()).collect();
        databases.sort_unstable();
        databases.dedup();
        databases
    }

    /// How the documents of all collections have to be multiplied for so many bytes over all of
    /// them, if they are as large as the first ones on average.
    #[expect(clippy::cast_precision_loss, reason = "sizes need not be exact")]
    pub fn times_for(&self, bytes: u64, seed: u64) -> f64 {
        let of_one = |one: &Described| {
            let (sampled, bytes) = one.generator(seed).sample();
            one.documents as f64 * bytes as f64 / sampled as f64
        };
        let all: f64 = self.collections.iter().map(of_one).sum();
        if all > 0.0 { bytes as f64 / all } else { 1.0 }
    }
}

impl Described {
    fn generator(&self, seed: u64) -> Generator {
        Generator::of_fields(Arc::clone(&self.fields), seed, self.salt)
    }
}

/// The name and the number of documents of a collection.
fn known(
    section: &mut Section<'_>,
    databases: Databases<'_>,
    amount: Amount,
) -> Result<Known, Error> {
    let name = section.needed("name")?;
    let collection = name.text()?;
    if collection.is_empty() || collection.contains(['\0', '$']) {
        return Err(name.error("this cannot be a collection's name"));
    }
    let own = section.get("database").as_ref().map(Entry::text).transpose()?;
    let documents = section.get("documents").map_or(Ok(1000), |entry| entry.within(0, i64::MAX))?;
    let documents = documents.cast_unsigned();
    collection.clone_into(&mut section.path);
    let namespace = Namespace::new(own.unwrap_or(databases.meant), collection);
    // Where the database is that of all, another one does not make other documents.
    let salt = salt_of(&format!("{}.{collection}", own.unwrap_or_default()));
    Ok(Known {
        full: Namespace::new(own.unwrap_or(databases.said), collection).full().to_owned(),
        namespace,
        documents: match amount {
            Amount::AsSaid => documents,
            Amount::Each(each) => each,
            Amount::Times(factor) => scaled(documents, factor),
        },
        salt,
    })
}

/// A number times a factor, at least 1 where it is not 0.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a scaled number need not be exact, and one that is too large stays the largest"
)]
pub fn scaled(number: u64, factor: f64) -> u64 {
    let scaled = (number as f64 * factor).round() as u64;
    scaled.max(number.min(1))
}

fn described(section: &Section<'_>, of: &Known, known: &[Known]) -> Result<Described, Error> {
    let around = Around { known, full: &of.full, depth: 0 };
    let options = section.get("options").map_or(Ok(Document::new()), |entry| entry.document())?;
    let indexes = match section.get("index") {
        Some(entry) => {
            let indexes: Result<Vec<_>, _> = entry.elements()?.iter().map(index_of).collect();
            indexes?
        }
        None => Vec::new(),
    };
    for refused in ["timeseries", "viewOn"] {
        if options.contains_key(refused) {
            let message = format!("`options.{refused}`: only ordinary collections are made");
            return Err(section.error(&message));
        }
    }
    let entry = section.needed("fields")?;
    let mut fields = field::fields(&entry.section()?, around)?;
    section.finish()?;
    // The `_id` stands first in what a server stores, and must be drawn first to be referred to.
    match fields.iter().position(|field| *field.name == *b"_id\0") {
        Some(place) => {
            let id = fields.remove(place);
            if id.missing != Chance::NONE {
                return Err(entry.error("the _id cannot be optional"));
            }
            if matches!(id.value, Value::Array { .. }) {
                return Err(entry.error("the _id cannot be an array"));
            }
            fields.insert(0, id);
        }
        None => fields.insert(0, default_id()),
    }
    Ok(Described {
        namespace: of.namespace.clone(),
        documents: of.documents,
        salt: of.salt,
        fields: Arc::new(Fields { fields, referred: Arc::new([]) }),
        options,
        indexes,
    })
}

fn default_id() -> Field {
    let ids = Ids::Sequence { start: EPOCH_SECONDS, per_second: PER_SECOND };
    let name = b"_id\0".as_slice().into();
    Field { name, missing: Chance::NONE, value: Value::ObjectId(ids) }
}

/// The definition of an index; it is named by its key unless it has a name.
fn index_of(entry: &Entry<'_>) -> Result<Document, Error> {
    let mut said = entry.document()?;
    let Some(Bson::Document(key)) = said.remove("key") else {
        return Err(entry.error("`key` is missing, such as { city = 1, at = -1 }"));
    };
    let way = |value: &Bson| match value {
        Bson::String(text) => text.clone(),
        other => other.to_string(),
    };
    let parts: Vec<_> =
        key.iter().map(|(field, value)| format!("{field}_{}", way(value))).collect();
    let name = said.remove("name").unwrap_or_else(|| parts.join("_").into());
    let mut definition = doc! { "v": 2, "key": key, "name": name };
    definition.extend(said);
    Ok(definition)
}

/// A number for a text (FNV-1a, <https://www.rfc-editor.org/rfc/rfc9923>).
fn salt_of(text: &str) -> u64 {
    text.bytes().fold(0xCBF2_9CE4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
    })
}

/// What is made of a spec.
#[derive(Clone, Debug, PartialEq)]
pub struct SpecRun {
    /// The spec.
    pub spec: Arc<Spec>,
    /// Chooses one of many sets of documents.
    pub seed: u64,
    /// The number of the first document of each collection that is made.
    pub first: u64,
    /// How many of each collection are made, at most.
    pub count: Option<u64>,
    /// Whether there are documents beyond those of the spec, as far as time goes.
    pub is_open: bool,
}

impl Collections for SpecRun {
    fn count(&self) -> u32 {
        u32::try_from(self.spec.collections.len()).unwrap_or(u32::MAX)
    }

    fn name(&self) -> String {
        self.spec.name.clone()
    }

    fn databases(&self) -> Vec<&str> {
        self.spec.databases()
    }

    fn namespace(&self, number: u32) -> Namespace {
        self.at(number).namespace.clone()
    }

    fn numbers(&self, number: u32) -> Range<u64> {
        let documents = if self.is_open { u64::MAX } else { self.at(number).documents };
        let end = self.count.map_or(u64::MAX, |count| self.first.saturating_add(count));
        self.first.min(documents)..end.min(documents)
    }

    fn generator(&self, number: u32) -> Generator {
        self.at(number).generator(self.seed)
    }

    fn sized_like(&self, number: u32) -> u32 {
        number
    }

    fn metadata(&self, number: u32) -> CollectionMetadata {
        let one = self.at(number);
        let secondary = one.indexes.iter().cloned().map(IndexSpec::from);
        CollectionMetadata {
            options: one.options.clone(),
            indexes: std::iter::once(index(ID_INDEX)).chain(secondary).collect(),
            uuid: Some(metadata_uuid(self.seed, one.salt)),
            collection_name: Some(one.namespace.collection().to_owned()),
            kind: Some("collection".to_owned()),
        }
    }
}

impl SpecRun {
    fn at(&self, number: u32) -> &Described {
        &self.spec.collections[number as usize - 1]
    }
}

#[cfg(test)]
mod tests;
