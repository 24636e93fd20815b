//! What a server holds of a database, and how large it is on its disk.

use bson::doc;

use crate::namespace::Namespace;
use crate::target::TargetError;
use crate::target::mongo::MongoTarget;
use crate::target::mongo::status::number;

/// How large a database is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Weight {
    /// Bytes of its documents, uncompressed.
    pub data_bytes: u64,
    /// Bytes of the files of its collections.
    pub storage_bytes: u64,
    /// Bytes of the files of its indexes.
    pub index_bytes: u64,
}

impl MongoTarget {
    /// How many documents the server counts in a collection.
    ///
    /// # Errors
    ///
    /// The server refuses to tell, or is away.
    pub async fn count(&self, namespace: &Namespace) -> Result<u64, TargetError> {
        let command = doc! { "count": namespace.collection() };
        let reply = self.run(namespace.database(), command).await?;
        Ok(number(&reply, &["n"]).unwrap_or(0))
    }

    /// Has the server write everything to its disk, where it may be asked to.
    pub async fn flush(&self) {
        // Who may not ask for it sees sizes of a moment ago.
        let _ = self.run("admin", doc! { "fsync": 1 }).await;
    }

    /// How large a database is.
    ///
    /// # Errors
    ///
    /// The server refuses to tell, or is away.
    pub async fn weigh(&self, database: &str) -> Result<Weight, TargetError> {
        let reply = self.run(database, doc! { "dbStats": 1 }).await?;
        let bytes = |field: &str| number(&reply, &[field]).unwrap_or(0);
        Ok(Weight {
            data_bytes: bytes("dataSize"),
            storage_bytes: bytes("storageSize"),
            index_bytes: bytes("indexSize"),
        })
    }
}
