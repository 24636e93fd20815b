//! A collection's options and indexes, as a dump keeps them beside its data.

use bson::{Bson, Document};

use crate::dump::extended_json;

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
///
/// It is kept as bytes, since a tree of values takes ten times as much, and nearly every collection
/// of a dump has one.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexSpec(Form);

#[derive(Clone, Debug, PartialEq)]
enum Form {
    Bytes(Box<[u8]>),
    /// What BSON cannot hold, such as a name with a zero in it; a server will refuse it.
    Tree(Box<Document>),
}

impl IndexSpec {
    /// The definition as a document.
    pub fn definition(&self) -> Document {
        match &self.0 {
            // They were a document before.
            Form::Bytes(bytes) => Document::from_reader(&bytes[..]).unwrap_or_default(),
            Form::Tree(definition) => (**definition).clone(),
        }
    }
}

impl From<Document> for IndexSpec {
    fn from(definition: Document) -> Self {
        Self(match definition.to_vec() {
            Ok(bytes) => Form::Bytes(bytes.into_boxed_slice()),
            Err(_) => Form::Tree(Box::new(definition)),
        })
    }
}

impl CollectionMetadata {
    /// Reads the text of a metadata file, Extended JSON of any age.
    ///
    /// Options and indexes must be what they should be, since a collection restored without them
    /// would be another one; all else is taken where it is understood. Text after the closing brace
    /// is ignored, and `null` says nothing, as in the peer. The error says what is wrong, with line
    /// and column.
    pub fn parse(json: &[u8]) -> Result<Self, String> {
        let mut fields = match extended_json::parse(json).map_err(|error| error.message)? {
            Bson::Document(fields) => fields,
            Bson::Null => Document::new(),
            other => return Err(format!("an object is expected, not {}", name(&other))),
        };
        let text = |value: Option<Bson>| match value {
            Some(Bson::String(text)) => Some(text),
            _ => None,
        };
        Ok(Self {
            options: options(fields.remove("options"))?,
            indexes: indexes(fields.remove("indexes"))?,
            uuid: text(fields.remove("uuid")),
            collection_name: text(fields.remove("collectionName")),
            kind: text(fields.remove("type")),
        })
    }

    /// The text of a metadata file: canonical Extended JSON on one line, the keys in the order in
    /// which the peer writes them.
    pub fn to_json(&self) -> String {
        let mut fields = Document::new();
        if !self.options.is_empty() {
            fields.insert("options", self.options.clone());
        }
        let indexes: Vec<_> = self.indexes.iter().map(IndexSpec::definition).collect();
        fields.insert("indexes", indexes);
        for (key, value) in
            [("uuid", &self.uuid), ("collectionName", &self.collection_name), ("type", &self.kind)]
        {
            if let Some(value) = value {
                fields.insert(key, value.clone());
            }
        }
        Bson::Document(fields).into_canonical_extjson().to_string()
    }

    /// Whether it describes a time-series collection.
    pub fn is_time_series(&self) -> bool {
        self.options.contains_key("timeseries") || self.kind.as_deref() == Some("timeseries")
    }

    /// Whether it describes a view. A view that was dumped as if it were a collection is called a
    /// view by its type but has no `viewOn`; it is a collection.
    pub fn is_view(&self) -> bool {
        self.options.contains_key("viewOn")
    }
}

fn options(value: Option<Bson>) -> Result<Document, String> {
    match value {
        Some(Bson::Document(options)) => Ok(options),
        None | Some(Bson::Null) => Ok(Document::new()),
        Some(other) => Err(format!("`options` is {} instead of an object", name(&other))),
    }
}

fn indexes(value: Option<Bson>) -> Result<Vec<IndexSpec>, String> {
    let list = match value {
        Some(Bson::Array(list)) => list,
        None | Some(Bson::Null) => Vec::new(),
        Some(other) => return Err(format!("`indexes` is {} instead of a list", name(&other))),
    };
    let spec = |(number, value): (usize, Bson)| match value {
        Bson::Document(spec) => Ok(spec.into()),
        other => Err(format!("index {} is {} instead of an object", number + 1, name(&other))),
    };
    list.into_iter().enumerate().map(spec).collect()
}

/// What a value is called in an error.
fn name(value: &Bson) -> &'static str {
    match value {
        Bson::Null => "null",
        Bson::Boolean(_) => "a boolean",
        Bson::Array(_) => "a list",
        Bson::Document(_) => "an object",
        Bson::String(_) => "text",
        Bson::Int32(_) | Bson::Int64(_) | Bson::Double(_) | Bson::Decimal128(_) => "a number",
        _ => "a typed value",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::doc;
    use proptest::prelude::*;

    fn parse(json: &str) -> Result<CollectionMetadata, String> {
        CollectionMetadata::parse(json.as_bytes())
    }

    #[test]
    fn everything_a_file_says_is_taken_in_its_order() {
        let metadata = parse(
            r#"{"options":{"viewOn":"b","pipeline":[{"$match":{"z":1,"a":{"$gt":2}}}]},
                "indexes":[{"v":{"$numberInt":"2"},"key":{"b":1,"a":-1},"name":"i"}],
                "uuid":"00ff","collectionName":"a+b","type":"view","more":[]}"#,
        )
        .expect("metadata");
        let expected = CollectionMetadata {
            options: doc! { "viewOn": "b", "pipeline": [{ "$match": { "z": 1, "a": { "$gt": 2 } } }] },
            indexes: vec![doc! { "v": 2, "key": { "b": 1, "a": -1 }, "name": "i" }.into()],
            uuid: Some("00ff".into()),
            collection_name: Some("a+b".into()),
            kind: Some("view".into()),
        };
        // Documents are equal whatever the order of their keys; their texts are not.
        assert_eq!(format!("{metadata:?}"), format!("{expected:?}"));
        assert!(metadata.is_view());
    }

    #[test]
    fn little_or_nothing_is_enough() {
        for json in ["null", "{}", r#"{"indexes":null}"#, r#"{"options":null,"uuid":7}"#, "{} }"] {
            assert_eq!(parse(json), Ok(CollectionMetadata::default()), "{json}");
        }
    }

    #[test]
    fn what_is_not_metadata_is_refused() {
        for (json, expected) in [
            ("[]", "an object is expected, not a list"),
            (r#"{"options":5}"#, "`options` is a number instead of an object"),
            (r#"{"indexes":{}}"#, "`indexes` is an object instead of a list"),
            (r#"{"indexes":[{},"a"]}"#, "index 2 is text instead of an object"),
            ("  ", "EOF while parsing a value at line 1 column 2"),
        ] {
            assert_eq!(parse(json), Err(expected.into()), "{json}");
        }
    }

    #[test]
    fn kinds_are_told_by_options_first() {
        let kinds = |json| parse(json).map(|found| (found.is_time_series(), found.is_view()));
        assert_eq!(kinds(r#"{"options":{"timeseries":{"timeField":"t"}}}"#), Ok((true, false)));
        assert_eq!(kinds(r#"{"type":"timeseries"}"#), Ok((true, false)));
        assert_eq!(kinds(r#"{"type":"view"}"#), Ok((false, false)));
    }

    proptest! {
        #[test]
        fn the_text_written_is_read_back(
            options in prop::collection::vec(("[a-z]{1,8}", any::<i64>()), 0..4),
            names in prop::collection::vec(any::<String>(), 0..4),
            uuid in proptest::option::of("[0-9a-f]{32}"),
            collection_name in proptest::option::of(any::<String>()),
        ) {
            let metadata = CollectionMetadata {
                options: options.into_iter().map(|(key, value)| (key, Bson::Int64(value))).collect(),
                indexes: names.into_iter().map(|name| doc! { "v": 2, "name": name }.into()).collect(),
                uuid,
                collection_name,
                kind: Some("collection".into()),
            };
            prop_assert_eq!(CollectionMetadata::parse(metadata.to_json().as_bytes()), Ok(metadata));
        }
    }
}
