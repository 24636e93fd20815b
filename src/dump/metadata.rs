//! A collection's options and indexes, as a dump keeps them beside its data.

use bson::Document;

/// What a `.metadata.json` file says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CollectionMetadata {
    /// The options of the `create` command, in the file's order.
    pub options: Document,
    /// The indexes, in the file's order, the one on `_id` included.
    pub indexes: Vec<IndexSpec>,
    /// The collection's UUID, 32 hexadecimal digits.
    pub uuid: Option<String>,
    /// The collection's real name; newer dumps have it.
    pub collection_name: Option<String>,
    /// `collection`, `view` or `timeseries`; newer dumps have it.
    pub kind: Option<String>,
}

/// The definition of one index, in the form of the `createIndexes` command.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexSpec(pub Document);
