//! What an archive brought besides collections, until its turn comes.

use std::sync::{Mutex, OnceLock, PoisonError};

use crate::error::{Error, ErrorKind};
use crate::load::spool::Spool;
use crate::plan::users::{Accounts, Content, UsersPlan};

/// Users, roles and the oplog of an archive, as far as they have come.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    accounts: OnceLock<Result<Accounts, Error>>,
    oplog: Mutex<Option<Result<Spool, Error>>>,
}

impl Gathered {
    /// Keeps users and roles, or why they cannot be restored.
    pub(super) fn keep_accounts(&self, accounts: Result<Accounts, Error>) {
        // They come once.
        let _ = self.accounts.set(accounts);
    }

    /// Keeps the whole oplog, or why it cannot be replayed.
    pub(super) fn keep_oplog(&self, oplog: Result<Spool, Error>) {
        *self.oplog.lock().unwrap_or_else(PoisonError::into_inner) = Some(oplog);
    }

    /// The users and roles of the plan.
    pub(super) fn accounts<'a>(&'a self, plan: &'a UsersPlan) -> Result<&'a Accounts, Error> {
        match (&plan.content, self.accounts.get()) {
            (Content::Read(accounts), _) => Ok(accounts),
            (Content::Awaited(_), Some(accounts)) => accounts.as_ref().map_err(Clone::clone),
            (Content::Awaited(awaited), None) => {
                let message = "the archive could not be read as far as the end of its users and \
                               roles";
                Err(Error::new(ErrorKind::Read, message).in_file(awaited.archive.path()))
            }
        }
    }

    /// The oplog; nothing where the archive could not be read as far as its end, which is told of
    /// the archive.
    pub(super) fn take_oplog(&self) -> Option<Result<Spool, Error>> {
        self.oplog.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
