//! A target that takes everything and keeps nothing: it measures the tool alone.

use std::ops::ControlFlow;

use bson::{Bson, Document, RawBson, RawDocumentBuf, Uuid};

use crate::batch::Batch;
use crate::namespace::Namespace;
use crate::target::contents::{Contents, DescribedCollection};
use crate::target::{Documents, Insert, MergeUsers, Target, TargetError, Validators, WriteOutcome};

/// Takes everything and keeps nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NullTarget;

impl Target for NullTarget {
    async fn drop_collection(&self, _namespace: &Namespace) -> Result<(), TargetError> {
        Ok(())
    }

    async fn empty(&self, _namespace: &Namespace) -> Result<(), TargetError> {
        Ok(())
    }

    async fn create(
        &self,
        _namespace: &Namespace,
        _options: &Document,
        _uuid: Option<Uuid>,
    ) -> Result<(), TargetError> {
        Ok(())
    }

    async fn insert(
        &self,
        _insert: &Insert,
        batch: &Batch,
        documents: &Documents,
    ) -> Result<WriteOutcome, TargetError> {
        Ok(WriteOutcome { inserted: documents.count(batch.documents), ..WriteOutcome::default() })
    }

    async fn stored(
        &self,
        _namespace: &Namespace,
        _ids: Vec<RawBson>,
        _take: &mut (dyn FnMut(RawDocumentBuf) + Send),
    ) -> Result<(), TargetError> {
        Ok(())
    }

    async fn create_indexes(
        &self,
        _namespace: &Namespace,
        _specs: &[Document],
    ) -> Result<(), TargetError> {
        Ok(())
    }

    async fn allow_mixed_schema(&self, _namespace: &Namespace) -> Result<(), TargetError> {
        Ok(())
    }

    async fn expire_after(
        &self,
        _namespace: &Namespace,
        _seconds: &Bson,
    ) -> Result<(), TargetError> {
        Ok(())
    }

    async fn apply_ops(
        &self,
        _operations: &[RawDocumentBuf],
        _validators: Validators,
    ) -> Result<(), TargetError> {
        Ok(())
    }

    async fn users_schema(&self) -> Result<i64, TargetError> {
        Ok(5)
    }

    async fn merge_users(&self, _merge: &MergeUsers) -> Result<(), TargetError> {
        Ok(())
    }
}

impl Contents for NullTarget {
    async fn documents(
        &self,
        _namespace: &Namespace,
        _look: &mut (dyn FnMut(&[u8]) -> ControlFlow<()> + Send),
    ) -> Result<(), TargetError> {
        Ok(())
    }

    async fn with_ids(
        &self,
        _namespace: &Namespace,
        _ids: Vec<RawBson>,
    ) -> Result<Vec<RawDocumentBuf>, TargetError> {
        Ok(Vec::new())
    }

    async fn collections(&self, _database: &str) -> Result<Vec<DescribedCollection>, TargetError> {
        Ok(Vec::new())
    }

    async fn indexes(&self, _namespace: &Namespace) -> Result<Vec<Document>, TargetError> {
        Ok(Vec::new())
    }
}
