//! Describes a collection of a server as a spec: target → likeness → text.

use std::ops::ControlFlow;

use bson::{Document, RawDocumentBuf};

use crate::command::restore::Connection;
use crate::error::{Error, ErrorKind};
use crate::limits::SAMPLE_BYTES;
use crate::namespace::Namespace;
use crate::seed::like::{Likeness, Surroundings, Values};
use crate::target::contents::Contents;
use crate::target::mongo::MongoTarget;

/// What is described.
#[derive(Clone, Debug)]
pub struct LikeOptions {
    /// The server.
    pub connection: Connection,
    /// The collection.
    pub namespace: Namespace,
    /// How many of its documents are looked at.
    pub documents: u32,
    /// Whether texts may be copied.
    pub values: Values,
}

/// Looks at a collection; returns the text of a spec that makes similar documents.
///
/// # Errors
///
/// Where the server cannot be reached, or the collection is not there or cannot be read.
pub async fn like(options: &LikeOptions) -> Result<String, Error> {
    let namespace = &options.namespace;
    let (target, _) = MongoTarget::connect(&options.connection).await?;
    let unread = |error: crate::target::TargetError| {
        Error::new(ErrorKind::Read, format!("the collection cannot be read: {error}"))
            .of(namespace)
            .hint("the user needs a role such as read")
    };
    let described = target.collections(namespace.database()).await.map_err(unread)?;
    let described = described.into_iter().find(|one| one.name == namespace.collection());
    let Some(described) = described else {
        return Err(Error::new(ErrorKind::Usage, "there is no such collection")
            .of(namespace)
            .hint("`restorm survey` shows what a server holds"));
    };
    let is_view = described.kind == "view";
    let sizes = target.sizes(namespace).await.ok().filter(|_| !is_view);
    let indexes =
        if is_view { Vec::new() } else { target.indexes(namespace).await.map_err(unread)? };
    let mut likeness = Likeness::default();
    let mut bytes = 0;
    let mut look = |document: RawDocumentBuf| {
        bytes += document.as_bytes().len();
        likeness.add(&document);
        if bytes >= SAMPLE_BYTES { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    target.sample(namespace, options.documents, &mut look).await.map_err(unread)?;
    let of = Surroundings {
        namespace: namespace.clone(),
        documents: sizes.and_then(|sizes| sizes.documents).unwrap_or(0),
        options: if is_view { Document::new() } else { described.options },
        indexes,
    };
    Ok(likeness.spec(&of, options.values))
}
