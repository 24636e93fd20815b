//! What a server holds, in the form of the expected states in `testdata/dumps/expected`.

use super::runtime;
use md5::{Digest, Md5};
use mongodb::bson::{Bson, Document, doc};
use mongodb::error::Error;
use mongodb::{Client, Database};
use serde_json::{Map, Value, json};

/// Collections the server makes for itself, which no dump brings.
const OF_THE_SERVER: [&str; 5] =
    ["system.views", "system.profile", "system.version", "system.keys", "system.indexes"];

/// The state of the databases: for each namespace its `type`, `options`, sorted `indexes`, `count`,
/// and `md5_sum`, the sum modulo 2^128 of the MD5 of each stored document's bytes.
///
/// Views have no indexes and no sum; a time-series collection has its sum under its buckets.
/// Values are canonical Extended JSON.
pub(crate) fn state_of(client: &Client, databases: &[&str]) -> Value {
    let mut state = Map::new();
    runtime()
        .block_on(async {
            for name in databases {
                read_database(&client.database(name), &mut state).await?;
            }
            Ok::<(), Error>(())
        })
        .expect("the state can be read");
    state.sort_keys();
    Value::Object(state)
}

/// How two states differ, a line for each namespace and field.
pub(crate) fn differences(expected: &Value, found: &Value) -> Vec<String> {
    let (Value::Object(expected), Value::Object(found)) = (expected, found) else {
        return if expected == found { vec![] } else { vec![format!("{expected} != {found}")] };
    };
    let mut lines = Vec::new();
    for (namespace, wanted) in expected {
        let Some(there) = found.get(namespace) else {
            lines.push(format!("{namespace}: missing"));
            continue;
        };
        for field in ["type", "options", "indexes", "count", "md5_sum"] {
            let (wanted, there) = (of_users(&wanted[field]), of_users(&there[field]));
            if wanted != there {
                lines.push(format!("{namespace}: {field}: expected {wanted}, found {there}"));
            }
        }
    }
    for namespace in found.keys().filter(|namespace| !expected.contains_key(*namespace)) {
        lines.push(format!("{namespace}: not expected"));
    }
    lines
}

/// A value without the validator that a server gives to the buckets of a time series, in which it
/// writes more with each version.
fn of_users(value: &Value) -> Value {
    let mut value = value.clone();
    if let Some(options) =
        value.as_object_mut().filter(|options| options.contains_key("timeseries"))
    {
        options.remove("validator");
    }
    value
}

async fn read_database(database: &Database, state: &mut Map<String, Value>) -> Result<(), Error> {
    for info in rows(database, doc! { "listCollections": 1 }).await? {
        let name = info.get_str("name").expect("a collection has a name").to_string();
        if OF_THE_SERVER.contains(&name.as_str()) {
            continue;
        }
        let kind = info.get_str("type").expect("a collection has a type").to_string();
        let options = info.get_document("options").cloned().unwrap_or_default();
        let (count, md5_sum) = read_documents(database, &name).await?;
        let mut entry = Map::new();
        entry.insert("count".into(), count.into());
        if kind != "view" {
            entry.insert("indexes".into(), read_indexes(database, &name).await?);
        }
        if kind == "collection" {
            entry.insert("md5_sum".into(), format!("{md5_sum:032x}").into());
        }
        entry.insert("options".into(), canonical(Bson::Document(options)));
        entry.insert("type".into(), kind.into());
        state.insert(format!("{}.{name}", database.name()), Value::Object(entry));
    }
    Ok(())
}

async fn read_indexes(database: &Database, collection: &str) -> Result<Value, Error> {
    let mut indexes = rows(database, doc! { "listIndexes": collection }).await?;
    for index in &mut indexes {
        // Servers before 4.4 repeat the namespace in each index.
        index.remove("ns");
    }
    indexes.sort_by(|one, other| one.get_str("name").ok().cmp(&other.get_str("name").ok()));
    Ok(indexes.into_iter().map(|index| canonical(Bson::Document(index))).collect())
}

async fn read_documents(database: &Database, collection: &str) -> Result<(u64, u128), Error> {
    let (mut count, mut sum) = (0, 0_u128);
    let mut cursor = database.collection::<Document>(collection).find(doc! {}).await?;
    while cursor.advance().await? {
        sum = sum.wrapping_add(digest(cursor.current().as_bytes()));
        count += 1;
    }
    Ok((count, sum))
}

fn digest(document: &[u8]) -> u128 {
    u128::from_be_bytes(Md5::digest(document).into())
}

/// The `md5_sum` of a collection that holds these documents.
pub(crate) fn md5_sum(documents: &[Vec<u8>]) -> String {
    let sum = documents.iter().fold(0_u128, |sum, bytes| sum.wrapping_add(digest(bytes)));
    format!("{sum:032x}")
}

/// The documents of a collection, byte for byte, in the order in which they are stored.
pub(crate) fn stored(client: &Client, database: &str, collection: &str) -> Vec<Vec<u8>> {
    let collection = client.database(database).collection::<Document>(collection);
    let read = async {
        let mut documents = Vec::new();
        let mut cursor = collection.find(doc! {}).sort(doc! { "$natural": 1 }).await?;
        while cursor.advance().await? {
            documents.push(cursor.current().as_bytes().to_vec());
        }
        Ok::<_, Error>(documents)
    };
    runtime().block_on(read).expect("the documents can be read")
}

async fn rows(database: &Database, command: Document) -> Result<Vec<Document>, Error> {
    let mut cursor = database.run_cursor_command(command).await?;
    let mut rows = Vec::new();
    while cursor.advance().await? {
        rows.push(cursor.deserialize_current()?);
    }
    Ok(rows)
}

/// Canonical Extended JSON of what occurs in options and indexes: `serde_json` alone would write
/// numbers without their type.
fn canonical(value: Bson) -> Value {
    match value {
        Bson::Int32(number) => json!({ "$numberInt": number.to_string() }),
        Bson::Int64(number) => json!({ "$numberLong": number.to_string() }),
        Bson::Double(number) => json!({ "$numberDouble": format!("{number:?}") }),
        Bson::Array(values) => values.into_iter().map(canonical).collect(),
        Bson::Document(document) => {
            let mut fields: Map<String, Value> =
                document.into_iter().map(|(name, value)| (name, canonical(value))).collect();
            fields.sort_keys();
            Value::Object(fields)
        }
        other => serde_json::to_value(other).expect("BSON is JSON"),
    }
}
