//! The parts of a dump that are not collections: users and roles, and slices of the oplog.
//!
//! They are listed with the collections but restored by other means and only where asked for, so
//! they stand apart in the inventory.

use std::path::Path;

use crate::dump::inventory::{Inventory, Origin, SkippedPath};
use crate::dump::small_file;
use crate::error::{Error, ErrorKind};
use crate::namespace::Namespace;

/// How the files begin that hold the users and roles of one database, in its folder.
const OF_DATABASE: &str = "$admin.";

/// The database under which an archive lists the oplog.
const NO_DATABASE: &str = "";

const OF_THE_SERVER: &str =
    "users and roles are restored with the whole dump or with --db admin, and not otherwise";
const OF_ONE_DATABASE: &str = "users and roles of one database are restored with --db and \
                               --restore-db-users-and-roles";
const SCHEMA_VERSION: &str = "belongs to the server it was dumped from";
const OPLOG: &str = "the oplog is replayed with --oplog-replay";

/// The users and roles that a dump holds, of the whole server or of one database.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UsersDump {
    /// The folder's database, where they are those of one database.
    pub database: Option<String>,
    /// The users.
    pub users: Option<Origin>,
    /// The roles.
    pub roles: Option<Origin>,
    /// The version of the schema in which they are kept.
    pub version: Option<Origin>,
}

impl UsersDump {
    /// Where users or roles come from.
    pub fn origins(&self) -> impl Iterator<Item = &Origin> {
        self.users.iter().chain(&self.roles)
    }

    /// The files, or collections of an archive, as left out, each with what it takes to restore it.
    pub fn set_aside(&self) -> impl Iterator<Item = SkippedPath> + '_ {
        let how = match self.database {
            Some(_) => OF_ONE_DATABASE,
            None => OF_THE_SERVER,
        };
        let version = self.version.iter().map(|origin| left_out(origin, SCHEMA_VERSION));
        self.origins().map(move |origin| left_out(origin, how)).chain(version)
    }
}

fn left_out(origin: &Origin, reason: &str) -> SkippedPath {
    SkippedPath { path: origin.shown(), reason: reason.to_owned(), is_problem: false }
}

/// A slice of the oplog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OplogDump {
    /// Its entries.
    pub origin: Origin,
    /// Where it comes from.
    pub place: OplogPlace,
}

impl OplogDump {
    /// It as left out, with what it takes to replay it.
    pub fn set_aside(&self) -> SkippedPath {
        left_out(&self.origin, OPLOG)
    }
}

/// Where a slice of the oplog lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OplogPlace {
    /// Beside the databases, in an archive as a collection of no database, or in a file named for
    /// it: what happened during the dump.
    Beside,
    /// Dumped as the collection of the database `local` that it is; used where there is no other.
    Local,
}

/// What a collection of a dump is, where it is not restored as a collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Special {
    /// Users.
    Users,
    /// Roles.
    Roles,
    /// The version of their schema.
    Version,
    /// The oplog.
    Oplog,
}

/// What a collection is by its name, if it is none to restore as a collection.
pub(crate) fn of(namespace: &Namespace) -> Option<Special> {
    let collection = namespace.collection();
    let is_oplog = match namespace.database() {
        NO_DATABASE => collection == "oplog",
        "local" => matches!(collection, "oplog.rs" | "oplog.$main"),
        _ => false,
    };
    if is_oplog {
        return Some(Special::Oplog);
    }
    let name = match collection.strip_prefix(OF_DATABASE) {
        Some(name) => name,
        None if namespace.database() == "admin" => collection,
        None => return None,
    };
    match name {
        "system.users" => Some(Special::Users),
        "system.roles" => Some(Special::Roles),
        "system.version" => Some(Special::Version),
        _ => None,
    }
}

/// Puts such a collection where it belongs in the inventory.
pub(crate) fn add(special: Special, namespace: &Namespace, origin: Origin, into: &mut Inventory) {
    if special == Special::Oplog {
        let place = match namespace.database() {
            NO_DATABASE => OplogPlace::Beside,
            _ => OplogPlace::Local,
        };
        return into.oplogs.push(OplogDump { origin, place });
    }
    let is_of_database = namespace.collection().starts_with(OF_DATABASE);
    let database = is_of_database.then(|| namespace.database().to_owned());
    let place = into.users.iter().position(|dump| dump.database == database);
    let place = place.unwrap_or_else(|| {
        into.users.push(UsersDump { database, ..UsersDump::default() });
        into.users.len() - 1
    });
    let dump = &mut into.users[place];
    match special {
        Special::Users => dump.users = Some(origin),
        Special::Roles => dump.roles = Some(origin),
        Special::Version | Special::Oplog => dump.version = Some(origin),
    }
}

/// A file with oplog entries that lies anywhere.
///
/// # Errors
///
/// Of kind [`ErrorKind::Dump`]: the file cannot be opened.
pub fn oplog_file(path: &Path) -> Result<OplogDump, Error> {
    let file = small_file::examine(path).map_err(|reason| {
        Error::new(ErrorKind::Dump, format!("the file of the oplog {reason}")).in_file(path)
    })?;
    Ok(OplogDump { origin: Origin::File(file), place: OplogPlace::Beside })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_what_is_no_collection() {
        for (database, collection, expected) in [
            ("admin", "system.users", Some(Special::Users)),
            ("admin", "system.roles", Some(Special::Roles)),
            ("admin", "system.version", Some(Special::Version)),
            ("shop", "$admin.system.users", Some(Special::Users)),
            ("shop", "$admin.system.roles", Some(Special::Roles)),
            ("shop", "$admin.system.version", Some(Special::Version)),
            ("local", "oplog.rs", Some(Special::Oplog)),
            ("local", "oplog.$main", Some(Special::Oplog)),
            ("", "oplog", Some(Special::Oplog)),
            ("", "oplog.rs", None),
            ("shop", "system.users", None),
            ("shop", "oplog.rs", None),
            ("admin", "system.keys", None),
            ("shop", "$admin.system.keys", None),
        ] {
            assert_eq!(of(&Namespace::new(database, collection)), expected, "{collection}");
        }
    }
}
