//! The arguments of `restorm restore` about users, roles and the oplog.

use std::path::PathBuf;

use clap::Args;

use crate::command::restore::{DatabaseUsers, OplogOptions, SpecialOptions};
use crate::error::{Error, ErrorKind};
use crate::report::{OplogTime, OptionValue};

/// Users, roles and the oplog
#[derive(Args, Clone, Debug)]
pub(super) struct SpecialArgs {
    /// Restore the users and roles of the database too, from a dump taken with
    /// --dumpDbUsersAndRoles; a whole dump and --db admin bring theirs without it
    #[arg(long, alias = "restoreDbUsersAndRoles")]
    #[arg(conflicts_with = "collection", help_heading = "What is restored")]
    restore_db_users_and_roles: bool,

    /// Replay the oplog that was dumped with --oplog, after everything else; indexes are built
    /// after it. It concerns everything, so no part can be chosen and nothing be renamed
    #[arg(long, alias = "oplogReplay")]
    #[arg(help_heading = "What is restored")]
    oplog_replay: bool,

    /// End the replay before this time, in seconds since 1970 and a number within the second
    #[arg(long, alias = "oplogLimit", value_name = "SECONDS[:N]", requires = "oplog_replay")]
    #[arg(value_parser = timestamp, help_heading = "What is restored")]
    oplog_limit: Option<OplogTime>,

    /// Replay this file in place of the dump's oplog.bson; not for archives
    #[arg(long, alias = "oplogFile", value_name = "FILE", requires = "oplog_replay")]
    #[arg(help_heading = "What is restored")]
    oplog_file: Option<PathBuf>,

    /// Collection of admin that holds users until they are merged
    #[arg(long, alias = "tempUsersColl", value_name = "NAME", hide = true)]
    #[arg(default_value = "tempusers")]
    temp_users_coll: String,

    /// Collection of admin that holds roles until they are merged
    #[arg(long, alias = "tempRolesColl", value_name = "NAME", hide = true)]
    #[arg(default_value = "temproles")]
    temp_roles_coll: String,
}

/// Reads `SECONDS`, `SECONDS:` or `SECONDS:N`.
fn timestamp(text: &str) -> Result<OplogTime, String> {
    let (seconds, increment) = text.split_once(':').unwrap_or((text, ""));
    let number = |text: &str| {
        text.parse::<u32>()
            .map_err(|_| "whole numbers below 2^32 are needed, such as 1700000000:1".to_owned())
    };
    let increment = if increment.is_empty() { 0 } else { number(increment)? };
    Ok(OplogTime { seconds: number(seconds)?, increment })
}

impl SpecialArgs {
    /// The arguments as options of the command.
    pub(super) fn to_options(&self) -> Result<SpecialOptions, Error> {
        /// With which the peer means no limit.
        const UNLIMITED: OplogTime = OplogTime { seconds: 0, increment: 0 };
        if self.temp_users_coll == self.temp_roles_coll {
            let message = "users and roles cannot share a temporary collection";
            return Err(Error::new(ErrorKind::Usage, message));
        }
        Ok(SpecialOptions {
            database_users: if self.restore_db_users_and_roles {
                DatabaseUsers::Restored
            } else {
                DatabaseUsers::LeftOut
            },
            temporary_users: self.temp_users_coll.clone(),
            temporary_roles: self.temp_roles_coll.clone(),
            oplog: self.oplog_replay.then(|| OplogOptions {
                limit: self.oplog_limit.filter(|limit| *limit != UNLIMITED),
                file: self.oplog_file.clone(),
            }),
        })
    }

    /// What differs from the defaults, as the report tells it.
    pub(super) fn told(&self) -> Vec<OptionValue> {
        let flags = [
            ("restore-db-users-and-roles", self.restore_db_users_and_roles),
            ("oplog-replay", self.oplog_replay),
        ];
        let flags = flags.into_iter().filter(|(_, is_set)| *is_set);
        let limit = self.oplog_limit.map(|limit| limit.to_string());
        let file = self.oplog_file.as_ref().map(|file| file.display().to_string());
        flags
            .map(|(name, _)| (name, "true".to_owned()))
            .chain(limit.map(|limit| ("oplog-limit", limit)))
            .chain(file.map(|file| ("oplog-file", file)))
            .map(|(name, value)| OptionValue { name: name.to_owned(), value })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Args, Parser};

    #[derive(Args)]
    struct Database {
        #[arg(long)]
        db: Option<String>,
        #[arg(long)]
        collection: Option<String>,
    }

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        database: Database,
        #[command(flatten)]
        special: SpecialArgs,
    }

    fn options(line: &str) -> Result<SpecialOptions, String> {
        let words = std::iter::once("restore").chain(line.split_whitespace());
        let line = Line::try_parse_from(words).map_err(|error| error.to_string())?;
        assert!(line.database.collection.is_none());
        line.special.to_options().map_err(|error| error.to_string())
    }

    #[test]
    fn nothing_is_asked_for_by_default() {
        assert_eq!(options(""), Ok(SpecialOptions::default()));
    }

    #[test]
    fn both_spellings_are_taken() {
        for line in [
            "--db shop --restore-db-users-and-roles --temp-users-coll u --temp-roles-coll r",
            "--db shop --restoreDbUsersAndRoles --tempUsersColl u --tempRolesColl r",
        ] {
            let options = options(line).expect("parsed");
            assert_eq!(options.database_users, DatabaseUsers::Restored);
            assert_eq!((&*options.temporary_users, &*options.temporary_roles), ("u", "r"));
        }
        for line in [
            "--oplog-replay --oplog-limit 7:2 --oplog-file o.bson",
            "--oplogReplay --oplogLimit 7:2 --oplogFile o.bson",
        ] {
            let oplog = options(line).expect("parsed").oplog.expect("a replay");
            assert_eq!(oplog.limit, Some(OplogTime { seconds: 7, increment: 2 }));
            assert_eq!(oplog.file, Some(PathBuf::from("o.bson")));
        }
    }

    #[test]
    fn limits_have_the_forms_of_the_peer() {
        let limit = |text: &str| {
            let line = format!("--oplog-replay --oplog-limit {text}");
            options(&line).map(|options| options.oplog.expect("a replay").limit)
        };
        let time = |time, increment| Ok(Some(OplogTime { seconds: time, increment }));
        assert_eq!(limit("5"), time(5, 0));
        assert_eq!(limit("5:"), time(5, 0));
        assert_eq!(limit("0:3"), time(0, 3));
        assert_eq!(limit("0"), Ok(None));
        assert_eq!(limit("0:0"), Ok(None));
        for wrong in ["x", ":", "1:y", "4294967296", "1:2:3", "-1"] {
            assert!(limit(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for line in [
            "--restore-db-users-and-roles --db shop --collection orders",
            "--oplog-limit 5",
            "--oplog-file o.bson",
            "--temp-users-coll same --temp-roles-coll same",
        ] {
            assert!(options(line).is_err(), "{line}");
        }
    }
}
