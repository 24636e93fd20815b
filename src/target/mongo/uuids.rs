//! Collections with UUIDs that were chosen elsewhere.

use bson::{Document, Uuid, doc};

use crate::namespace::Namespace;

/// The command that creates a collection with this UUID: an oplog entry, since `create` itself lets
/// nobody choose.
///
/// An entry says which index on `_id` belongs to the collection; without it there would be none.
pub(super) fn create(namespace: &Namespace, mut create: Document, uuid: Uuid) -> Document {
    if !create.contains_key("clusteredIndex") {
        let mut index = doc! { "v": 2, "key": { "_id": 1 }, "name": "_id_" };
        if let Some(collation) = create.get("collation") {
            index.insert("collation", collation.clone());
        }
        create.insert("idIndex", index);
    }
    let entry = doc! {
        "op": "c",
        "ns": format!("{}.$cmd", namespace.database()),
        "ui": uuid,
        "o": create,
    };
    doc! { "applyOps": [entry] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_entry_has_the_index_that_the_collection_has() {
        let namespace = Namespace::new("shop", "orders");
        let entry = |options: Document| {
            let mut command = doc! { "create": "orders" };
            command.extend(options);
            let uuid = Uuid::from_bytes([7; 16]);
            let made = create(&namespace, command, uuid);
            made.get_array("applyOps").expect("entries")[0].as_document().expect("one").clone()
        };
        let french = doc! { "collation": { "locale": "fr" } };
        let made = entry(french.clone());
        assert_eq!(made.get_str("ns").ok(), Some("shop.$cmd"));
        assert_eq!(made.get("ui"), Some(&Uuid::from_bytes([7; 16]).into()));
        let create = made.get_document("o").expect("a command");
        let index = create.get_document("idIndex").expect("an index");
        assert_eq!(index.get("collation"), french.get("collation"));
        let clustered = entry(doc! { "clusteredIndex": { "key": { "_id": 1 }, "unique": true } });
        assert!(!clustered.get_document("o").expect("a command").contains_key("idIndex"));
    }
}
