//! What a server says it is.

use bson::{Bson, Document, Uuid, doc};
use futures_util::TryStreamExt;

use crate::error::{Error, ErrorKind};
use crate::facts::{ExistingCollection, ExistingDetail, ServerFacts, ServerVersion, Topology};
use crate::namespace::Namespace;
use crate::target::TargetError;
use crate::target::mongo::{MongoTarget, errors, product};

impl MongoTarget {
    /// Asks for version, topology and product; also proves that the connection works. Returns what
    /// the server said of itself as well.
    pub(super) async fn ask_facts(&self) -> Result<(ServerFacts, Document), TargetError> {
        let hello = self.hello().await?;
        let build = self.run("admin", doc! { "buildInfo": 1 }).await?;
        let version = build.get_str("version").ok().and_then(ServerVersion::parse);
        // Only the proxy before Atlas' shared clusters knows this command; the peer asks the same.
        let has_proxy = self.run("admin", doc! { "atlasVersion": 1 }).await.is_ok();
        let facts = ServerFacts {
            version: version.unwrap_or(ServerVersion::new(0, 0, 0)),
            topology: topology(&hello),
            product: product::recognise(&self.description, &hello, &build, has_proxy),
            identity: match hello.get_str("setName") {
                Ok(set) => format!("replica set {set}"),
                Err(_) => self.description.clone(),
            },
            existing: Vec::new(),
        };
        Ok((facts, hello))
    }

    /// The UUID of one collection.
    pub(super) async fn ask_uuid(
        &self,
        namespace: &Namespace,
    ) -> Result<Option<Uuid>, TargetError> {
        let command = doc! { "listCollections": 1, "filter": { "name": namespace.collection() } };
        let database = self.client().database(namespace.database());
        let cursor =
            database.run_cursor_command(command).await.map_err(|error| errors::of(&error))?;
        let listed: Vec<Document> =
            cursor.try_collect().await.map_err(|error| errors::of(&error))?;
        let info = listed.first().and_then(|collection| collection.get_document("info").ok());
        Ok(info.and_then(|info| uuid(info.get("uuid")?)))
    }

    /// The collections that these databases hold.
    pub async fn existing<'a>(
        &self,
        databases: impl Iterator<Item = &'a str>,
        detail: ExistingDetail,
    ) -> Result<Vec<ExistingCollection>, Error> {
        let mut existing = Vec::new();
        for database in databases {
            let listed = self.list(database, detail).await.map_err(|error| {
                let message = format!("the collections of `{database}` cannot be listed: {error}");
                let mut failed = Error::new(ErrorKind::Connect, message);
                if let Some(code) = error.code {
                    failed = failed.with_code(code);
                }
                // The server's code is the same whether nobody logged in or the user lacks a right.
                if error.message.contains("requires authentication") {
                    return failed.hint("give a user and password in the connection string");
                }
                failed.hint(format!("the user needs a role such as readWrite on `{database}`"))
            })?;
            existing.extend(listed);
        }
        Ok(existing)
    }

    async fn list(
        &self,
        database: &str,
        detail: ExistingDetail,
    ) -> Result<Vec<ExistingCollection>, TargetError> {
        // Names alone are told to users who may list nothing else.
        let command = match detail {
            ExistingDetail::Names => {
                doc! { "listCollections": 1, "nameOnly": true, "authorizedCollections": true }
            }
            ExistingDetail::Uuids => doc! { "listCollections": 1 },
        };
        let cursor = self
            .client()
            .database(database)
            .run_cursor_command(command)
            .await
            .map_err(|error| errors::of(&error))?;
        let listed: Vec<Document> =
            cursor.try_collect().await.map_err(|error| errors::of(&error))?;
        Ok(listed
            .into_iter()
            .filter_map(|collection| {
                let info = collection.get_document("info").ok();
                Some(ExistingCollection {
                    namespace: Namespace::new(database, collection.get_str("name").ok()?),
                    kind: collection.get_str("type").unwrap_or("collection").to_owned(),
                    uuid: info.and_then(|info| uuid(info.get("uuid")?)),
                })
            })
            .collect())
    }
}

fn uuid(value: &Bson) -> Option<Uuid> {
    match value {
        Bson::Binary(binary) => binary.to_uuid().ok(),
        _ => None,
    }
}

/// A router says `isdbgrid`; a member of a replica set names its set.
fn topology(hello: &Document) -> Topology {
    if hello.get_str("msg").is_ok_and(|msg| msg == "isdbgrid") {
        Topology::Sharded
    } else if hello.contains_key("setName") {
        Topology::ReplicaSet
    } else {
        Topology::Standalone
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_topology_is_read_from_hello() {
        assert_eq!(topology(&doc! { "msg": "isdbgrid" }), Topology::Sharded);
        assert_eq!(topology(&doc! { "setName": "rs0" }), Topology::ReplicaSet);
        assert_eq!(topology(&doc! { "isWritablePrimary": true }), Topology::Standalone);
    }
}
