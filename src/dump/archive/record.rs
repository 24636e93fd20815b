//! The documents of which an archive is built around those of its collections.
//!
//! Parsing works on whole frames and allocates nothing but what it returns.

use crate::frame::{Field, Frame};

/// BSON types of the fields below.
const STRING: u8 = 0x02;
const BOOLEAN: u8 = 0x08;
const INT: u8 = 0x10;
const LONG: u8 = 0x12;

/// The first document: where the archive comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// Collections that may be interleaved, as the tool meant it; nothing depends on it.
    pub concurrent_collections: i32,
    /// The version of the format.
    pub version: String,
    /// The version of the server, or `unknown`.
    pub server_version: String,
    /// The version of the tool.
    pub tool_version: String,
}

impl Header {
    /// Reads the document; unknown fields are ignored, missing ones are empty.
    pub fn parse(frame: Frame<'_>) -> Result<Self, String> {
        let mut header = Self::default();
        for field in frame.fields() {
            let field = field.map_err(|error| error.to_string())?;
            match field.name {
                b"concurrent_collections" => header.concurrent_collections = int(&field)?,
                b"version" => text(&field)?.clone_into(&mut header.version),
                b"server_version" => text(&field)?.clone_into(&mut header.server_version),
                b"tool_version" => text(&field)?.clone_into(&mut header.tool_version),
                _ => {}
            }
        }
        Ok(header)
    }
}

/// A further document of the list: one collection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Listed<'a> {
    /// Its database; empty for the oplog.
    pub database: &'a str,
    /// Its name.
    pub collection: &'a str,
    /// The text of its metadata; empty where there is none.
    pub metadata: &'a str,
    /// `collection`, `view`, `timeseries`, or nothing in old archives.
    pub kind: &'a str,
}

impl<'a> Listed<'a> {
    /// Reads the document; unknown fields are ignored, missing ones are empty.
    pub fn parse(frame: Frame<'a>) -> Result<Self, String> {
        let mut listed = Self::default();
        for field in frame.fields() {
            let field = field.map_err(|error| error.to_string())?;
            match field.name {
                b"db" => listed.database = text(&field)?,
                b"collection" => listed.collection = text(&field)?,
                b"metadata" => listed.metadata = text(&field)?,
                b"type" => listed.kind = text(&field)?,
                _ => {}
            }
        }
        if listed.collection.is_empty() { Err(nameless()) } else { Ok(listed) }
    }
}

/// What stands before the documents of a collection, or at its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockHeader<'a> {
    /// The database; empty for the oplog.
    pub database: &'a str,
    /// The collection, of a time-series collection its buckets.
    pub collection: &'a str,
    /// Whether no more documents of the collection come.
    pub is_end: bool,
    /// The checksum over all documents of the collection, at its end.
    pub checksum: u64,
}

impl<'a> BlockHeader<'a> {
    /// Reads the document. A field that does not belong into a header is an error, because a
    /// document that stands where a header should must not be taken for one.
    pub fn parse(frame: Frame<'a>) -> Result<Self, String> {
        let mut header = Self::default();
        for field in frame.fields() {
            let field = field.map_err(|error| error.to_string())?;
            match field.name {
                b"db" => header.database = text(&field)?,
                b"collection" => header.collection = text(&field)?,
                b"EOF" => header.is_end = boolean(&field)?,
                b"CRC" => header.checksum = long(&field)?,
                other => {
                    let name = String::from_utf8_lossy(other);
                    return Err(format!("it has a field `{}`", name.escape_debug()));
                }
            }
        }
        if header.collection.is_empty() { Err(nameless()) } else { Ok(header) }
    }
}

fn nameless() -> String {
    "it names no collection".to_owned()
}

fn wrong(field: &Field<'_>) -> String {
    format!("its field `{}` is of the wrong type", String::from_utf8_lossy(field.name))
}

/// A string without its length and terminator.
fn text<'a>(field: &Field<'a>) -> Result<&'a str, String> {
    let text = field.value.get(4..field.value.len().saturating_sub(1));
    match (field.kind, text) {
        (STRING, Some(text)) => std::str::from_utf8(text).map_err(|_| {
            format!("its field `{}` is not UTF-8", String::from_utf8_lossy(field.name))
        }),
        _ => Err(wrong(field)),
    }
}

fn boolean(field: &Field<'_>) -> Result<bool, String> {
    match (field.kind, field.value) {
        (BOOLEAN, [0]) => Ok(false),
        (BOOLEAN, [1]) => Ok(true),
        _ => Err(wrong(field)),
    }
}

fn int(field: &Field<'_>) -> Result<i32, String> {
    match (field.kind, field.value.try_into()) {
        (INT, Ok(bytes)) => Ok(i32::from_le_bytes(bytes)),
        _ => Err(wrong(field)),
    }
}

/// A long as the bits of an unsigned number, which a checksum is.
fn long(field: &Field<'_>) -> Result<u64, String> {
    match (field.kind, field.value.try_into()) {
        (LONG, Ok(bytes)) => Ok(u64::from_le_bytes(bytes)),
        _ => Err(wrong(field)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::doc;

    fn bytes(document: &bson::Document) -> Vec<u8> {
        document.to_vec().expect("encodes")
    }

    #[test]
    fn the_header_tells_where_an_archive_comes_from() {
        let document = doc! {
            "tool_version": "100.18", "server_version": "unknown", "version": "0.1",
            "concurrent_collections": 4, "more": 1,
        };
        let bytes = bytes(&document);
        let header = Header::parse(Frame::new(&bytes).expect("a frame")).expect("a header");
        assert_eq!(header.concurrent_collections, 4);
        assert_eq!((&*header.server_version, &*header.tool_version), ("unknown", "100.18"));
        let bytes = self::bytes(&doc! { "version": 1 });
        let error = Header::parse(Frame::new(&bytes).expect("a frame")).expect_err("a wrong type");
        assert_eq!(error, "its field `version` is of the wrong type");
    }

    #[test]
    fn a_header_of_a_block_has_no_other_fields() {
        let good = doc! { "CRC": -1_i64, "EOF": true, "collection": "a.b", "db": "shop" };
        let good = bytes(&good);
        let header = BlockHeader::parse(Frame::new(&good).expect("a frame")).expect("a header");
        let expected =
            BlockHeader { database: "shop", collection: "a.b", is_end: true, checksum: u64::MAX };
        assert_eq!(header, expected);
        for (bad, expected) in [
            (doc! { "_id": 1 }, "it has a field `_id`"),
            (doc! { "db": "shop" }, "it names no collection"),
            (doc! { "db": 1, "collection": "a" }, "its field `db` is of the wrong type"),
            (doc! { "collection": "a", "EOF": 1 }, "its field `EOF` is of the wrong type"),
        ] {
            let bad = bytes(&bad);
            let parsed = BlockHeader::parse(Frame::new(&bad).expect("a frame"));
            assert_eq!(parsed, Err(expected.to_owned()));
        }
    }

    #[test]
    fn a_listed_collection_has_a_name() {
        let good = bytes(&doc! { "db": "", "collection": "oplog", "metadata": "", "size": 0 });
        let listed = Listed::parse(Frame::new(&good).expect("a frame")).expect("a collection");
        assert_eq!((listed.database, listed.collection, listed.kind), ("", "oplog", ""));
        let bad = bytes(&doc! { "db": "shop", "collection": "" });
        assert!(Listed::parse(Frame::new(&bad).expect("a frame")).is_err());
    }
}
