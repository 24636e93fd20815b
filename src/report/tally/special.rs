//! What became of users, roles and the oplog.

use serde::Serialize;

use crate::report::event::{Event, OplogTime};

/// How far users and roles, or the oplog, came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Progress {
    /// Not begun, or not finished.
    #[default]
    Waiting,
    /// Done with.
    Done,
    /// It failed.
    Failed,
}

/// Users and roles that are restored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UsersTally {
    /// How far they are.
    pub state: Progress,
    /// What went wrong, where it failed.
    pub error: Option<String>,
    /// The names of the users, such as `shop.ann`.
    pub users: Vec<String>,
    /// The names of the roles.
    pub roles: Vec<String>,
}

/// An oplog that is replayed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct OplogTally {
    /// How far it is.
    pub state: Progress,
    /// The file, or the archive that holds it.
    pub path: String,
    /// Entries that were gone through.
    pub entries: u64,
    /// Operations that were applied, those inside transactions and those on indexes among them.
    pub operations: u64,
    /// Entries and operations that concern the source alone and were left out.
    pub left_out: u64,
    /// When the first entry happened.
    pub first: Option<OplogTime>,
    /// When the last entry happened that was gone through.
    pub last: Option<OplogTime>,
    /// Whether the replay ended at the limit that was given.
    pub reached_limit: bool,
}

/// Both.
#[derive(Clone, Debug, Default)]
pub(super) struct Special {
    pub(super) users: Option<UsersTally>,
    pub(super) oplog: Option<OplogTally>,
}

impl Special {
    /// Takes an event about one of them into account.
    pub(super) fn apply(&mut self, event: &Event) {
        match event {
            Event::UsersPlanned { users, roles } => {
                let (users, roles) = (users.clone(), roles.clone());
                let state = Progress::Waiting;
                self.users = Some(UsersTally { state, error: None, users, roles });
            }
            Event::UsersEnded { failure } => {
                if let Some(users) = &mut self.users {
                    users.state = if failure.is_some() { Progress::Failed } else { Progress::Done };
                    users.error.clone_from(failure);
                }
            }
            Event::OplogPlanned { path } => {
                self.oplog = Some(OplogTally { path: path.clone(), ..OplogTally::default() });
            }
            Event::OplogApplied { .. } | Event::OplogEnded { .. } => {
                if let Some(oplog) = &mut self.oplog {
                    oplog.apply(event);
                }
            }
            _ => {}
        }
    }
}

impl OplogTally {
    fn apply(&mut self, event: &Event) {
        match *event {
            Event::OplogApplied { entries, operations, left_out, first, last } => {
                self.entries += entries;
                self.operations += operations;
                self.left_out += left_out;
                self.first.get_or_insert(first);
                self.last = Some(last);
            }
            Event::OplogEnded { reached_limit } => {
                self.state = Progress::Done;
                self.reached_limit = reached_limit;
            }
            _ => {}
        }
    }
}
