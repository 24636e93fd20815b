//! What a server holds, in the form of the expected states in `testdata/dumps/expected`.

use super::{is_before, runtime};
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
            let (wanted, there) = (comparable(&wanted[field]), comparable(&there[field]));
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

/// A value as it is compared: without what each version of a server writes in its own way.
fn comparable(value: &Value) -> Value {
    let mut value = value.clone();
    // A server writes more with each version into the validator of the buckets of a time series.
    if let Some(options) =
        value.as_object_mut().filter(|options| options.contains_key("timeseries"))
    {
        options.remove("validator");
    }
    if is_before([6, 0]) {
        for index in value.as_array_mut().into_iter().flatten() {
            plain_projection(index);
        }
    }
    // Before 5.0 it keeps the numbers of an index as they are, and makes doubles of them later.
    if is_before([5, 0]) { without_kinds(value) } else { value }
}

/// Writes what a wildcard index leaves out as 6.0 does; 5.0 also names the `_id`, and takes truth
/// values.
fn plain_projection(index: &mut Value) {
    let Some(fields) = index.get_mut("wildcardProjection").and_then(Value::as_object_mut) else {
        return;
    };
    fields.retain(|name, value| name != "_id" || value != false);
    for value in fields.values_mut().filter(|value| value.is_boolean()) {
        *value = json!({ "$numberInt": i32::from(value == true).to_string() });
    }
}

/// A value whose numbers do not say of which kind they are.
fn without_kinds(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let kinds = ["$numberInt", "$numberLong", "$numberDouble"];
            let number = kinds.iter().find_map(|kind| fields.get(*kind)?.as_str()?.parse().ok());
            let fields = fields.into_iter().map(|(name, value)| (name, without_kinds(value)));
            number.map_or_else(|| fields.collect(), |number: f64| number.into())
        }
        Value::Array(values) => values.into_iter().map(without_kinds).collect(),
        other => other,
    }
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
