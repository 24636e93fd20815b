//! Reads what a server holds.

use std::ops::ControlFlow;

use bson::{Document, RawBson, RawDocumentBuf, doc};
use futures_util::TryStreamExt;
use mongodb::options::{ReadPreference, SelectionCriteria};

use crate::limits::SCAN_BATCH_DOCUMENTS;
use crate::namespace::Namespace;
use crate::target::contents::{Contents, DescribedCollection};
use crate::target::mongo::{MongoTarget, errors};
use crate::target::{Target, TargetError};

/// `NamespaceNotFound`.
const NOTHING_THERE: i32 = 26;

/// What was written is asked for where it was written, whatever the connection string prefers.
pub(super) fn primary() -> SelectionCriteria {
    SelectionCriteria::ReadPreference(ReadPreference::Primary)
}

impl Contents for MongoTarget {
    async fn documents(
        &self,
        namespace: &Namespace,
        look: &mut (dyn FnMut(&[u8]) -> ControlFlow<()> + Send),
    ) -> Result<(), TargetError> {
        let database = self.client().database(namespace.database());
        let collection = database.collection::<RawDocumentBuf>(namespace.collection());
        let found = collection
            .find(doc! {})
            .selection_criteria(primary())
            .batch_size(SCAN_BATCH_DOCUMENTS)
            .await;
        let mut cursor = found.map_err(|error| errors::of(&error))?;
        while cursor.advance().await.map_err(|error| errors::of(&error))? {
            if look(cursor.current().as_bytes()).is_break() {
                break;
            }
        }
        Ok(())
    }

    async fn with_ids(
        &self,
        namespace: &Namespace,
        ids: Vec<RawBson>,
    ) -> Result<Vec<RawDocumentBuf>, TargetError> {
        let mut found = Vec::new();
        self.stored(namespace, ids, &mut |document| found.push(document)).await?;
        Ok(found)
    }

    async fn collections(&self, database: &str) -> Result<Vec<DescribedCollection>, TargetError> {
        let listed = self.rows(database, doc! { "listCollections": 1 }).await?;
        let described = listed.into_iter().filter_map(|collection| {
            Some(DescribedCollection {
                name: collection.get_str("name").ok()?.to_owned(),
                kind: collection.get_str("type").unwrap_or("collection").to_owned(),
                options: collection.get_document("options").cloned().unwrap_or_default(),
            })
        });
        Ok(described.collect())
    }

    async fn indexes(&self, namespace: &Namespace) -> Result<Vec<Document>, TargetError> {
        let command = doc! { "listIndexes": namespace.collection() };
        match self.rows(namespace.database(), command).await {
            Err(error) if error.code == Some(NOTHING_THERE) => Ok(Vec::new()),
            listed => listed,
        }
    }
}

impl MongoTarget {
    /// All rows of a cursor that a command opens.
    pub(super) async fn rows(
        &self,
        database: &str,
        command: Document,
    ) -> Result<Vec<Document>, TargetError> {
        let database = self.client().database(database);
        let cursor = database.run_cursor_command(command).selection_criteria(primary()).await;
        let cursor = cursor.map_err(|error| errors::of(&error))?;
        cursor.try_collect().await.map_err(|error| errors::of(&error))
    }
}
