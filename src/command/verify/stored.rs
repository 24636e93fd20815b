//! Reads the documents that a target holds.

use std::ops::ControlFlow;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream;

use crate::command::verify::documents::{Gather, Seen};
use crate::command::verify::source::{Gathered, interrupted};
use crate::error::{Error, ErrorKind};
use crate::frame::Frame;
use crate::load::Stop;
use crate::load::patience::with_patience;
use crate::namespace::Namespace;
use crate::plan::RestorePlan;
use crate::target::TargetError;
use crate::target::contents::Contents;

/// `Unauthorized`.
const UNAUTHORIZED: i32 = 13;

/// The target's side.
pub(super) struct Stored<'a, C> {
    /// What is meant.
    pub(super) plan: &'a RestorePlan,
    /// What holds it.
    pub(super) contents: &'a C,
    /// Collections read side by side.
    pub(super) at_once: usize,
    /// How long it is tried again while the server is away.
    pub(super) retry_for: Duration,
    /// What ends it early.
    pub(super) stop: &'a Stop,
}

impl<C: Contents> Stored<'_, C> {
    /// Reads collections to their end; one that breaks off is read again from its beginning.
    pub(super) async fn gather<G, N>(&self, wanted: Vec<(usize, N)>) -> Gathered<G>
    where
        G: Gather,
        N: Fn() -> G + Send,
    {
        let gathered = stream::iter(wanted).map(|(collection, new)| async move {
            let namespace = &self.plan.collections[collection].data_namespace;
            (collection, self.gather_one(namespace, &new).await)
        });
        gathered.buffer_unordered(self.at_once).collect().await
    }

    async fn gather_one<G: Gather>(
        &self,
        namespace: &Namespace,
        new: &(impl Fn() -> G + Send),
    ) -> Result<G, Error> {
        let attempt = || async {
            let mut gather = new();
            let mut strange = false;
            let mut look = |bytes: &[u8]| {
                match Frame::new(bytes) {
                    Ok(frame) => gather.take(&Seen { frame, offset: None }),
                    Err(_) => strange = true,
                }
                if strange || self.stop.is_requested() {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            };
            self.contents.documents(namespace, &mut look).await?;
            Ok((gather, strange))
        };
        match with_patience(self.retry_for, self.stop, attempt).await {
            _ if self.stop.is_requested() => Err(interrupted()),
            Ok((gather, false)) => Ok(gather),
            Ok((_, true)) => {
                Err(Error::new(ErrorKind::Read, "the target sent a document that is none"))
            }
            Err(error) => Err(unread("its documents cannot be read on the target", &error)),
        }
    }

    /// Asks something of the target, again while it is away.
    pub(super) async fn ask<R, F>(
        &self,
        what: &str,
        question: impl FnMut() -> F,
    ) -> Result<R, Error>
    where
        F: Future<Output = Result<R, TargetError>>,
    {
        let answer = with_patience(self.retry_for, self.stop, question).await;
        answer.map_err(|error| unread(what, &error))
    }
}

fn unread(what: &str, error: &TargetError) -> Error {
    let mut unread = Error::new(ErrorKind::Read, format!("{what}: {}", error.message));
    if let Some(code) = error.code {
        unread = unread.with_code(code);
    }
    if error.code == Some(UNAUTHORIZED) {
        unread = unread.hint(
            "the role readAnyDatabase may read it; buckets of time-series collections need the \
             role backup",
        );
    }
    unread
}
