//! What is read of a target to compare it with a dump.

use std::future::Future;
use std::ops::ControlFlow;

use bson::{Document, RawBson, RawDocumentBuf};

use crate::namespace::Namespace;
use crate::target::TargetError;

/// What a target holds.
pub trait Contents: Send + Sync + 'static {
    /// Shows all documents of a collection, as they are stored and in any order, until told to
    /// break off. A collection that is not there has none.
    fn documents(
        &self,
        namespace: &Namespace,
        look: &mut (dyn FnMut(&[u8]) -> ControlFlow<()> + Send),
    ) -> impl Future<Output = Result<(), TargetError>> + Send;

    /// The stored documents that have one of these `_id`s.
    fn with_ids(
        &self,
        namespace: &Namespace,
        ids: Vec<RawBson>,
    ) -> impl Future<Output = Result<Vec<RawDocumentBuf>, TargetError>> + Send;

    /// The collections and views of a database with their options.
    fn collections(
        &self,
        database: &str,
    ) -> impl Future<Output = Result<Vec<DescribedCollection>, TargetError>> + Send;

    /// The indexes of a collection, that on `_id` included.
    fn indexes(
        &self,
        namespace: &Namespace,
    ) -> impl Future<Output = Result<Vec<Document>, TargetError>> + Send;
}

/// A collection as the server describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct DescribedCollection {
    /// Its name within its database.
    pub name: String,
    /// The server's word for its kind: `collection`, `view` or `timeseries`.
    pub kind: String,
    /// Its options.
    pub options: Document,
}
