//! Made-up documents: the same ones for the same arguments, whatever the machine and its threads.
//!
//! A document depends on the seed, the number of its collection and its own number, and on nothing
//! else, so that every part of a collection can be made anywhere. Documents are written as bytes
//! where they will lie; no tree of values is built.

pub mod archive;
mod distribution;
mod fields;
pub mod like;
pub mod making;
mod parallel;
pub(crate) mod random;
mod shape;
pub mod spec;
mod text;
mod value;

pub use parallel::{Produced, produce};
pub use shape::{BlobBytes, Shape};
pub use spec::{Amount, Spec, SpecRun, Wanted, scaled};

use std::ops::Range;
use std::sync::Arc;

use bson::{Document, doc};

use crate::dump::{CollectionMetadata, IndexSpec};
use crate::namespace::Namespace;
use random::{SplitMix64, mix};

/// The collections that are made, counted from 1.
pub trait Collections: Sync {
    /// How many.
    fn count(&self) -> u32;

    /// What the documents are called.
    fn name(&self) -> String;

    /// The databases of the collections, each once.
    fn databases(&self) -> Vec<&str>;

    /// The full name of a collection.
    fn namespace(&self, number: u32) -> Namespace;

    /// The numbers of the documents that are made of a collection.
    fn numbers(&self, number: u32) -> Range<u64>;

    /// What makes the documents of a collection.
    fn generator(&self, number: u32) -> Generator;

    /// A collection whose documents are as large on average.
    fn sized_like(&self, number: u32) -> u32;

    /// The options and indexes of a collection.
    fn metadata(&self, number: u32) -> CollectionMetadata;
}

/// About how many bytes a document of each collection has, in their order.
fn mean_bytes(collections: &dyn Collections) -> Vec<u64> {
    let mut means: Vec<u64> = Vec::new();
    for number in 1..=collections.count() {
        let like = collections.sized_like(number) as usize;
        let known = means.get(like - 1).copied();
        means.push(known.unwrap_or_else(|| collections.generator(number).mean_bytes()));
    }
    means
}

/// What is to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeedSpec {
    /// The database that holds the collections.
    pub database: String,
    /// How many collections.
    pub collections: u32,
    /// The number of the first document of each collection that is made; the ones before it are
    /// left to others.
    pub first: u64,
    /// How many documents in each collection.
    pub documents: u64,
    /// What the documents look like.
    pub shape: Shape,
    /// Secondary indexes of each collection: so many of [`Shape::indexes`], from the first.
    pub indexes: usize,
    /// Chooses one of many sets of documents.
    pub seed: u64,
}

impl SeedSpec {
    /// The name of a collection, counted from 1: names sort in the order of their numbers.
    pub fn collection_name(&self, number: u32) -> String {
        let width = self.collections.to_string().len().max(5);
        format!("c{number:0width$}")
    }

    /// The full name of a collection, counted from 1.
    pub fn namespace(&self, number: u32) -> Namespace {
        Namespace::new(&self.database, self.collection_name(number))
    }

    /// The numbers of the documents that are made of each collection.
    pub fn numbers(&self) -> Range<u64> {
        self.first..self.first.saturating_add(self.documents)
    }

    /// What makes the documents of a collection, counted from 1.
    pub fn generator(&self, number: u32) -> Generator {
        Generator::new(self.shape, self.seed, number)
    }

    /// How many documents of each collection are needed for so many bytes over all of them: as many
    /// as bring at least that many if documents are as large as the first [`SAMPLED_DOCUMENTS`] of
    /// the first collection are on average, or in the middle of the sizes of a blob.
    pub fn documents_for(&self, bytes: u64) -> u64 {
        let (sampled, sampled_bytes) = self.generator(1).sample();
        let wanted = u128::from(bytes) * u128::from(sampled);
        let each = u128::from(self.collections.max(1)) * u128::from(sampled_bytes.max(1));
        u64::try_from(wanted.div_ceil(each)).unwrap_or(u64::MAX)
    }

    /// The options and indexes of a collection.
    pub fn metadata(&self, number: u32) -> CollectionMetadata {
        let secondary = self.shape.indexes().iter().copied().take(self.indexes);
        let indexes = std::iter::once(ID_INDEX).chain(secondary).map(index).collect();
        CollectionMetadata {
            options: Document::new(),
            indexes,
            uuid: Some(metadata_uuid(self.seed, number.into())),
            collection_name: Some(self.collection_name(number)),
            kind: Some("collection".to_owned()),
        }
    }
}

impl Collections for SeedSpec {
    fn count(&self) -> u32 {
        self.collections
    }

    fn name(&self) -> String {
        self.shape.name().to_owned()
    }

    fn databases(&self) -> Vec<&str> {
        vec![&self.database]
    }

    fn namespace(&self, number: u32) -> Namespace {
        SeedSpec::namespace(self, number)
    }

    fn numbers(&self, _number: u32) -> Range<u64> {
        SeedSpec::numbers(self)
    }

    fn generator(&self, number: u32) -> Generator {
        SeedSpec::generator(self, number)
    }

    fn sized_like(&self, _number: u32) -> u32 {
        1
    }

    fn metadata(&self, number: u32) -> CollectionMetadata {
        SeedSpec::metadata(self, number)
    }
}

/// What is made.
#[derive(Clone, Debug, PartialEq)]
pub enum Recipe {
    /// Collections of documents of one shape.
    Shape(SeedSpec),
    /// Those that a file describes.
    Spec(SpecRun),
}

impl Recipe {
    /// The collections that are made.
    pub fn collections(&self) -> &dyn Collections {
        match self {
            Self::Shape(spec) => spec,
            Self::Spec(run) => run,
        }
    }
}

/// The fields of an index, each with its direction.
type IndexKeys = &'static [(&'static str, i32)];

const ID_INDEX: IndexKeys = &[("_id", 1)];

/// The definition of an index as a server reports it; `_id_` is the server's name for the first.
fn index(keys: IndexKeys) -> IndexSpec {
    let key: Document = keys.iter().map(|&(field, way)| (field.to_owned(), way.into())).collect();
    let parts: Vec<_> = keys.iter().map(|(field, way)| format!("{field}_{way}")).collect();
    let name = if keys == ID_INDEX { "_id_".to_owned() } else { parts.join("_") };
    doc! { "v": 2, "key": key, "name": name }.into()
}

/// The UUID of a collection.
fn metadata_uuid(seed: u64, collection: u64) -> String {
    uuid(SplitMix64::new(!stream(seed, collection)))
}

/// A random UUID (RFC 9562 section 5.4) without its dashes, as dumps write it.
fn uuid(mut random: SplitMix64) -> String {
    let high = random.draw() & 0xFFFF_FFFF_FFFF_0FFF | 0x4000;
    let low = random.draw() & 0x3FFF_FFFF_FFFF_FFFF | 0x8000_0000_0000_0000;
    format!("{high:016x}{low:016x}")
}

/// What all random choices within one collection start from.
fn stream(seed: u64, collection: u64) -> u64 {
    mix(mix(seed) ^ collection)
}

/// A length as BSON writes it; what is made here is far below its bound.
fn length(bytes: usize) -> [u8; 4] {
    u32::try_from(bytes).unwrap_or(u32::MAX).to_le_bytes()
}

/// Documents by whose average size others are reckoned.
pub const SAMPLED_DOCUMENTS: u64 = 10_000;

/// Bytes after which no more documents are made only for their size.
const SAMPLED_BYTES: usize = 64 << 20;

/// Makes the documents of one collection.
#[derive(Clone, Debug)]
pub struct Generator {
    look: Look,
    seed: u64,
    stream: u64,
}

/// What the documents of a collection look like.
#[derive(Clone, Debug)]
enum Look {
    Shape(Shape),
    Fields(Arc<spec::Fields>),
}

impl Generator {
    /// A generator for the collection of this number, counted from 1.
    pub fn new(shape: Shape, seed: u64, collection: u32) -> Self {
        Self { look: Look::Shape(shape), seed, stream: stream(seed, collection.into()) }
    }

    /// A generator of documents of these fields.
    fn of_fields(fields: Arc<spec::Fields>, seed: u64, collection: u64) -> Self {
        Self { look: Look::Fields(fields), seed, stream: stream(seed, collection) }
    }

    /// Appends the document of this number, counted from 0.
    pub fn append(&self, number: u64, out: &mut Vec<u8>) {
        match &self.look {
            Look::Shape(shape) => shape.append(self.stream, number, out),
            Look::Fields(fields) => fields.append(self.seed, self.stream, number, out),
        }
    }

    /// The first documents, up to so many: how many, fewer where they are large, and their bytes.
    fn sample_of(&self, most: u64) -> (u64, u64) {
        if let Look::Shape(Shape::Blob(sizes)) = self.look {
            return (2, sizes.of_two());
        }
        let (mut documents, mut bytes, mut out) = (0, 0, Vec::new());
        while documents < most && bytes < SAMPLED_BYTES {
            out.clear();
            self.append(documents, &mut out);
            documents += 1;
            bytes += out.len();
        }
        (documents, bytes as u64)
    }

    /// The first documents by whose average size others are reckoned, and their bytes.
    fn sample(&self) -> (u64, u64) {
        self.sample_of(SAMPLED_DOCUMENTS)
    }

    /// About how many bytes a document has.
    fn mean_bytes(&self) -> u64 {
        let (documents, bytes) = match self.look {
            Look::Shape(_) => self.sample(),
            // A spec may have thousands of collections, each with a mean of its own.
            Look::Fields(_) => self.sample_of(SAMPLED_DOCUMENTS / 20),
        };
        bytes.div_ceil(documents).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Frame;
    use md5::{Digest, Md5};

    fn spec(shape: Shape) -> SeedSpec {
        let database = "seed".to_owned();
        SeedSpec { database, collections: 3, first: 0, documents: 10, shape, indexes: 0, seed: 1 }
    }

    fn made(shape: Shape, seed: u64, collection: u32, documents: u64) -> Vec<u8> {
        let generator = Generator::new(shape, seed, collection);
        let mut out = Vec::new();
        (0..documents).for_each(|number| generator.append(number, &mut out));
        out
    }

    /// The frames of a run of documents.
    fn frames(mut bytes: &[u8]) -> Vec<&[u8]> {
        let mut frames = Vec::new();
        while let Some(prefix) = bytes.first_chunk::<4>() {
            let (frame, rest) = bytes.split_at(crate::frame::length(*prefix).expect("a length"));
            frames.push(frame);
            bytes = rest;
        }
        frames
    }

    #[test]
    fn every_document_is_sound_and_of_its_shapes_size() {
        for (shape, sizes) in [
            (Shape::Wide, 170..=190),
            (Shape::Sink, 71..=71),
            (Shape::Empty, 22..=22),
            (Shape::Points, 53..=53),
            (Shape::Orders, 300..=2000),
        ] {
            let bytes = made(shape, 7, 1, 20_000);
            let frames = frames(&bytes);
            assert_eq!(frames.len(), 20_000);
            for frame in frames {
                assert!(sizes.contains(&frame.len()), "{shape:?}: {} bytes", frame.len());
                let frame = Frame::new(frame).expect("a frame");
                frame.validate().expect("sound");
                assert!(frame.starts_with_id());
                assert!(!frame.has_zero_timestamp());
                let tree = Document::from_reader(frame.bytes()).expect("decodes");
                assert_eq!(tree.to_vec().expect("encodes"), frame.bytes(), "{tree}");
            }
        }
    }

    #[test]
    fn wide_documents_are_about_180_bytes() {
        let average = made(Shape::Wide, 1, 1, 10_000).len() / 10_000;
        assert!((178..=182).contains(&average), "{average}");
    }

    #[test]
    fn ids_are_unique_within_a_run_of_collections() {
        let mut ids = std::collections::HashSet::new();
        for collection in 1..=3 {
            let bytes = made(Shape::Empty, 1, collection, 5000);
            ids.extend(frames(&bytes).into_iter().map(<[u8]>::to_vec));
        }
        assert_eq!(ids.len(), 15_000);
    }

    #[test]
    fn seed_and_collection_choose_the_documents() {
        for shape in [Shape::Wide, Shape::Sink, Shape::Empty, Shape::Orders] {
            let first = made(shape, 1, 1, 10);
            assert_eq!(first, made(shape, 1, 1, 10));
            assert_ne!(first, made(shape, 2, 1, 10));
            assert_ne!(first, made(shape, 1, 2, 10));
        }
    }

    /// Measurements made with different versions compare only while the documents stay the same.
    #[test]
    fn documents_stay_the_same_across_versions() {
        for (shape, sum) in [
            (Shape::Wide, "45b19b569391300f257000dbbd7e083f"),
            (Shape::Sink, "0ea9f39282de82e93637778f08302348"),
            (Shape::Empty, "853ccc4f2ebf2d0056b25516e8d6435a"),
        ] {
            let digest: [u8; 16] = Md5::digest(made(shape, 1, 1, 1000)).into();
            assert_eq!(format!("{:032x}", u128::from_be_bytes(digest)), sum, "{shape:?}");
        }
    }

    #[test]
    fn names_sort_in_the_order_of_their_numbers() {
        let mut spec = spec(Shape::Empty);
        assert_eq!(spec.collection_name(1), "c00001");
        spec.collections = 1_000_000;
        assert_eq!(spec.collection_name(99_999), "c0099999");
    }

    #[test]
    fn metadata_holds_the_wanted_indexes_and_a_version_4_uuid() {
        let metadata = SeedSpec { indexes: 3, ..spec(Shape::Wide) }.metadata(2);
        let definitions: Vec<_> = metadata.indexes.iter().map(IndexSpec::definition).collect();
        let names: Vec<_> =
            definitions.iter().map(|index| index.get_str("name").expect("a name")).collect();
        assert_eq!(names, ["_id_", "user_1", "at_-1", "status_1_at_-1"]);
        let key = definitions[3].get("key");
        assert_eq!(key, Some(&doc! { "status": 1, "at": -1 }.into()));
        let uuid = metadata.uuid.expect("a uuid");
        assert_eq!(uuid.len(), 32);
        assert_eq!(&uuid[12..13], "4");
        assert!(["8", "9", "a", "b"].contains(&&uuid[16..17]));
    }
}
