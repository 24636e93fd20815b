//! Index definitions as servers before 3.0 kept them: a collection `system.indexes` in each
//! database, dumped as a data file.

use std::collections::BTreeMap;
use std::path::Path;

use bson::Document;

use crate::dump::metadata::IndexSpec;
use crate::dump::small_file;
use crate::frame::{self, Frame};

/// The name of that collection.
pub(crate) const COLLECTION: &str = "system.indexes";

/// What such a file says.
#[derive(Debug, Default)]
pub(crate) struct LegacyIndexes {
    /// The definitions by the collection they belong to, in the file's order.
    pub(crate) by_collection: BTreeMap<String, Vec<IndexSpec>>,
    /// What keeps the rest of the file from being read.
    pub(crate) damage: Option<String>,
}

/// Reads a file of definitions; those before any damage count.
pub(crate) fn read(path: &Path) -> LegacyIndexes {
    match small_file::read(path) {
        Ok(content) => parse(&content),
        Err(reason) => LegacyIndexes { damage: Some(reason), ..LegacyIndexes::default() },
    }
}

fn parse(content: &[u8]) -> LegacyIndexes {
    let mut found = LegacyIndexes::default();
    let mut rest = content;
    while !rest.is_empty() {
        let at = content.len() - rest.len();
        match next(rest) {
            Ok((definition, after)) => {
                rest = after;
                // The database's name may be another one by now; the collection's is the same.
                let collection = definition
                    .get_str("ns")
                    .ok()
                    .and_then(|full| full.split_once('.'))
                    .map(|(_, collection)| collection.to_owned());
                if let Some(collection) = collection {
                    let specs = found.by_collection.entry(collection).or_default();
                    specs.push(definition.into());
                }
            }
            Err(reason) => {
                found.damage = Some(format!("is damaged at byte {at}: {reason}"));
                break;
            }
        }
    }
    found
}

fn next(bytes: &[u8]) -> Result<(Document, &[u8]), String> {
    let prefix = bytes.first_chunk::<4>().ok_or("it ends inside a document")?;
    let length = frame::length(*prefix).map_err(|error| error.to_string())?;
    if length > bytes.len() {
        return Err("it ends inside a document".to_owned());
    }
    let (document, after) = bytes.split_at(length);
    let frame = Frame::new(document).map_err(|error| error.to_string())?;
    frame.validate().map_err(|error| error.to_string())?;
    let definition = Document::from_reader(frame.bytes()).map_err(|error| error.to_string())?;
    Ok((definition, after))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::doc;

    fn bytes(definitions: &[Document]) -> Vec<u8> {
        definitions.iter().flat_map(|spec| spec.to_vec().expect("encodes")).collect()
    }

    #[test]
    fn definitions_go_by_the_collection_they_name() {
        let content = bytes(&[
            doc! { "v": 1, "key": { "_id": 1 }, "ns": "old.a.b", "name": "_id_" },
            doc! { "v": 1, "key": { "z": 1, "a": true }, "ns": "old.a.b", "name": "z" },
            doc! { "v": 1, "key": { "x": 1 }, "ns": "old.c", "name": "x" },
            doc! { "v": 1, "key": { "x": 1 }, "name": "homeless" },
        ]);
        let found = parse(&content);
        assert_eq!(found.damage, None);
        let names: Vec<_> = found.by_collection.keys().map(String::as_str).collect();
        assert_eq!(names, ["a.b", "c"]);
        let specs = &found.by_collection["a.b"];
        assert_eq!(specs[1].definition().get_str("name").ok(), Some("z"));
        assert_eq!(specs.len(), 2);
    }

    #[test]
    fn what_stands_before_damage_counts() {
        let mut content = bytes(&[doc! { "key": { "x": 1 }, "ns": "old.c", "name": "x" }]);
        let whole = content.len();
        content.extend_from_slice(&[40, 0, 0, 0, 2]);
        let found = parse(&content);
        assert_eq!(found.by_collection.len(), 1);
        let expected = format!("is damaged at byte {whole}: it ends inside a document");
        assert_eq!(found.damage, Some(expected));
        assert!(parse(&[1, 2]).damage.is_some());
        assert!(parse(&[0xFF; 64]).damage.is_some());
    }
}
