//! Users, roles and the oplog: what of them is restored, read and checked before any document.

use std::path::PathBuf;

use bson::Timestamp;

use crate::command::restore::RestoreOptions;
use crate::dump::special::{OplogDump, OplogPlace, UsersDump, oplog_file};
use crate::dump::{Inventory, Layout, Location, Origin, SkippedPath};
use crate::error::{Error, ErrorKind};
use crate::facts::ServerFacts;
use crate::namespace::Namespace;
use crate::plan::oplog::{OplogPlan, Uuids};
use crate::plan::users::{Awaited, Content, Dumped, Request, Secrets, Terms, UsersPlan};
use crate::plan::{RestorePlan, Skipped, UuidPolicy};
use crate::reader;
use crate::report::OplogTime;
use crate::target::{Fault, MergeUsers, Target, TargetError, Validators};

/// The database that keeps users and roles.
const ADMIN: &str = "admin";

/// `Unauthorized`.
const UNAUTHORIZED: i32 = 13;

/// What is asked of users, roles and the oplog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecialOptions {
    /// Whether a database is restored with its users and roles.
    pub database_users: DatabaseUsers,
    /// The collection of `admin` that holds users until they are merged.
    pub temporary_users: String,
    /// The collection of `admin` that holds roles until they are merged.
    pub temporary_roles: String,
    /// The replay of an oplog, where it was asked for.
    pub oplog: Option<OplogOptions>,
}

/// Whether a database is restored with its users and roles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DatabaseUsers {
    /// It is restored without.
    LeftOut,
    /// With them.
    Restored,
}

/// How an oplog is replayed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OplogOptions {
    /// When the replay ends; entries of this time are not applied.
    pub limit: Option<OplogTime>,
    /// The file of the oplog, where it is not that of the dump.
    pub file: Option<PathBuf>,
}

impl Default for SpecialOptions {
    fn default() -> Self {
        Self {
            database_users: DatabaseUsers::LeftOut,
            temporary_users: "tempusers".to_owned(),
            temporary_roles: "temproles".to_owned(),
            oplog: None,
        }
    }
}

/// Refuses what would leave the target in a state that never was, or would do nothing.
pub(super) fn check(options: &RestoreOptions) -> Result<(), Error> {
    let usage = |message: String| Error::new(ErrorKind::Usage, message);
    let database = options.database.as_deref();
    if options.special.database_users == DatabaseUsers::Restored {
        if database.is_none() {
            let message = "--restore-db-users-and-roles needs the database whose users and roles \
                           are restored";
            return Err(usage(message.to_owned()).hint(
                "name it with --db or in the connection string; a whole dump brings all its users \
                 and roles without the option",
            ));
        }
        if database == Some(ADMIN) {
            let message = "--restore-db-users-and-roles is not for the database admin";
            return Err(usage(message.to_owned())
                .hint("--db admin restores all users and roles of the dump without it"));
        }
    }
    let Some(oplog) = &options.special.oplog else {
        return Ok(());
    };
    let names = &options.selection.names;
    let part = match database {
        Some(database) => Some(format!("the database `{database}` alone")),
        None if !names.filter.includes.is_empty() => Some("a part of the collections".to_owned()),
        None if !names.filter.excludes.is_empty() => Some("all but some collections".to_owned()),
        None => None,
    };
    if let Some(part) = part {
        let message = format!(
            "an oplog is not replayed for {part}: its entries and transactions concern all of them"
        );
        return Err(usage(message).hint(
            "restore everything with --oplog-replay and drop what is not wanted, or leave the \
             option out; a database in the connection string counts as well",
        ));
    }
    if !names.renames.is_empty() {
        let message = "an oplog is not replayed for collections that get other names: its entries \
                       name them as they were called";
        return Err(usage(message.to_owned()).hint(
            "restore under the old names with --oplog-replay and rename collections after it",
        ));
    }
    if oplog.file.is_some() && matches!(options.dump, Location::Archive(_)) {
        return Err(beside_archive());
    }
    Ok(())
}

fn beside_archive() -> Error {
    let message = "--oplog-file is not for an archive, which brings its own oplog";
    Error::new(ErrorKind::Usage, message)
        .hint("leave --oplog-file out, or restore a dump in a folder with it")
}

/// What the plan of them is made from.
#[derive(Clone, Copy)]
pub(super) struct Found<'a> {
    /// What was asked for.
    pub(super) options: &'a RestoreOptions,
    /// The kind of dump.
    pub(super) layout: &'a Layout,
    /// What the dump holds.
    pub(super) inventory: &'a Inventory,
    /// What the server is.
    pub(super) facts: &'a ServerFacts,
}

/// Adds users, roles and the oplog to a plan, and tells what of them is left out.
pub(super) async fn plan<T: Target>(
    found: Found<'_>,
    target: &T,
    plan: &mut RestorePlan,
) -> Result<(), Error> {
    plan_oplog(found, target, plan).await?;
    let Found { options, layout, inventory, .. } = found;
    let chosen = chosen_users(options, layout, inventory)?;
    for dump in &inventory.users {
        if chosen.as_ref().is_none_or(|(chosen, _)| *chosen != dump) {
            plan.skipped.extend(dump.set_aside().map(skipped));
        }
    }
    if let Some((dump, request)) = chosen {
        let users = Users { options, dump, request, inventory };
        users.plan(target, plan).await?;
    }
    Ok(())
}

fn skipped(path: SkippedPath) -> Skipped {
    let what = path.path.display().to_string();
    Skipped { what, reason: path.reason, is_problem: path.is_problem }
}

/// The users and roles that are restored: those of the server with everything or with `admin`,
/// those of one database where that was asked for.
fn chosen_users<'a>(
    options: &RestoreOptions,
    layout: &Layout,
    inventory: &'a Inventory,
) -> Result<Option<(&'a UsersDump, Request)>, Error> {
    let find = |is_of_database: bool| {
        let mut all = inventory.users.iter();
        all.find(|dump| {
            dump.database.is_some() == is_of_database && dump.origins().next().is_some()
        })
    };
    if options.special.database_users == DatabaseUsers::Restored {
        let dump = find(true).ok_or_else(|| no_users(options))?;
        return Ok(Some((dump, Request::Explicit)));
    }
    let request = match (layout, options.database.as_deref()) {
        (Layout::Root { .. } | Layout::Archive { .. }, None) => Request::Whole,
        (_, Some(ADMIN)) => Request::Explicit,
        (Layout::Database { database, .. }, None) if database == ADMIN => Request::Explicit,
        _ => return Ok(None),
    };
    Ok(find(false).map(|dump| (dump, request)))
}

fn no_users(options: &RestoreOptions) -> Error {
    let database = options.database.as_deref().unwrap_or_default();
    let message = format!("the dump holds no users or roles of the database `{database}`");
    let error = Error::new(ErrorKind::Dump, message).hint(
        "leave --restore-db-users-and-roles out, or dump the database with \
         --dumpDbUsersAndRoles; those of a whole dump are restored with --db admin",
    );
    error.in_file(options.dump.to_string())
}

/// The users and roles that were chosen.
struct Users<'a> {
    options: &'a RestoreOptions,
    dump: &'a UsersDump,
    request: Request,
    inventory: &'a Inventory,
}

impl Users<'_> {
    /// Reads them and asks whether the server takes them.
    async fn plan<T: Target>(&self, target: &T, plan: &mut RestorePlan) -> Result<(), Error> {
        match target.merge_users(&MergeUsers::default()).await {
            Err(error) if error.fault == Fault::Refused => {
                self.leave_out(&error, plan);
                return Ok(());
            }
            other => other.map_err(|error| no_answer(&error))?,
        }
        let schema = target.users_schema().await.map_err(|error| no_answer(&error))?;
        let terms = self.terms(schema);
        let content = if let Some(awaited) = self.awaited() {
            Content::Awaited(awaited)
        } else {
            let (accounts, note) = terms.judge(self.dumped()?)?;
            plan.notes.extend(note);
            Content::Read(accounts)
        };
        plan.users = Some(UsersPlan { content, terms });
        Ok(())
    }

    fn terms(&self, schema: i64) -> Terms {
        let special = &self.options.special;
        let is_of_database = self.dump.database.is_some();
        Terms {
            temporary_users: Namespace::new(ADMIN, &special.temporary_users),
            temporary_roles: Namespace::new(ADMIN, &special.temporary_roles),
            database: is_of_database.then(|| self.options.database.clone()).flatten(),
            existing: self.options.selection.existing,
            request: self.request,
            schema,
            dumped_from: self.inventory.server_version,
        }
    }

    /// Where they are in an archive, if they are in one: it is read once, and later.
    fn awaited(&self) -> Option<Awaited> {
        let archive = self.dump.origins().find_map(Origin::segments)?.archive.clone();
        let place = |origin: &Option<Origin>| Some(origin.as_ref()?.segments()?.place);
        Some(Awaited {
            archive,
            users: place(&self.dump.users),
            roles: place(&self.dump.roles),
            version: place(&self.dump.version),
        })
    }

    fn dumped(&self) -> Result<Dumped, Error> {
        let read = |origin: &Option<Origin>| origin.as_ref().map(documents).transpose();
        Ok(Dumped {
            users: read(&self.dump.users)?,
            roles: read(&self.dump.roles)?,
            version: read(&self.dump.version)?,
        })
    }

    /// Leaves them out where the server has no such command or the user no such right; that is a
    /// problem where they were asked for, and where it can be helped.
    fn leave_out(&self, error: &TargetError, plan: &mut RestorePlan) {
        let is_forbidden = error.code == Some(UNAUTHORIZED);
        let is_problem = is_forbidden || self.request == Request::Explicit;
        let reason = if is_forbidden {
            "users and roles are not restored, because the user may not: grant it the role \
             restore on the database admin"
                .to_owned()
        } else {
            format!("users and roles are not restored, because the server cannot: {error}")
        };
        if !is_problem {
            plan.notes.push(reason.clone());
        }
        plan.skipped.extend(self.dump.origins().map(|origin| Skipped {
            what: origin.shown().display().to_string(),
            reason: reason.clone(),
            is_problem,
        }));
    }
}

/// All documents of a file, which is small.
fn documents(origin: &Origin) -> Result<Secrets, Error> {
    let mut documents = Secrets::of(origin.path());
    let Some(file) = origin.file() else {
        return Ok(documents);
    };
    let mut reader = reader::open(file)?;
    while let Some((frame, position)) = reader.next_frame()? {
        frame.validate().map_err(|error| {
            Error::new(ErrorKind::Read, error.to_string())
                .in_file(&file.path)
                .at_byte(position.offset)
        })?;
        documents.push(frame.bytes())?;
    }
    Ok(documents)
}

fn no_answer(error: &TargetError) -> Error {
    let message = format!("the server does not tell how it keeps users: {}", error.message);
    let failed = Error::new(ErrorKind::Connect, message);
    match error.code {
        Some(code) => failed.with_code(code),
        None => failed,
    }
}

/// Finds the oplog to replay, and whether it can be.
async fn plan_oplog<T: Target>(
    found: Found<'_>,
    target: &T,
    plan: &mut RestorePlan,
) -> Result<(), Error> {
    let Found { options, inventory, .. } = found;
    let Some(wanted) = &options.special.oplog else {
        plan.skipped.extend(inventory.oplogs.iter().map(|oplog| skipped(oplog.set_aside())));
        return Ok(());
    };
    if wanted.file.is_some() && matches!(found.layout, Layout::Archive { .. }) {
        return Err(beside_archive());
    }
    let named = wanted.file.as_deref().map(oplog_file).transpose()?;
    let candidates: Vec<_> = named.iter().chain(&inventory.oplogs).collect();
    let chosen =
        chosen_oplog(&candidates).map_err(|error| error.in_file(options.dump.to_string()))?;
    let others = inventory.oplogs.iter().filter(|oplog| *oplog != chosen);
    plan.skipped.extend(others.map(|oplog| Skipped {
        what: oplog.origin.shown().display().to_string(),
        reason: format!("`{}` is replayed instead", chosen.origin.shown().display()),
        is_problem: false,
    }));
    target
        .apply_ops(&[], Validators::Bypassed)
        .await
        .or_else(|error| if is_about_nothing(&error) { Ok(()) } else { Err(error) })
        .map_err(|error| cannot_replay(&error))?;
    plan.oplog = Some(OplogPlan {
        origin: chosen.origin.clone(),
        limit: wanted
            .limit
            .map(|limit| Timestamp { time: limit.seconds, increment: limit.increment }),
        uuids: match options.selection.uuids {
            UuidPolicy::New => Uuids::Removed,
            UuidPolicy::Preserve => Uuids::Kept,
        },
        indexes: options.selection.indexes,
        index_fixes: options.selection.index_fixes,
        facts: found.facts.clone(),
        validation: options.selection.validation,
    });
    Ok(())
}

/// Whether a server that was asked to apply nothing only says so.
fn is_about_nothing(error: &TargetError) -> bool {
    /// `CommandNotFound`, `CommandNotSupported`, `NotImplemented`, and Unauthorized.
    const NOT_POSSIBLE: [i32; 4] = [59, 115, 238, UNAUTHORIZED];
    error.fault == Fault::Refused && error.code.is_some_and(|code| !NOT_POSSIBLE.contains(&code))
}

/// The oplog beside the databases or named for it; else the one of the database `local`.
fn chosen_oplog<'a>(candidates: &[&'a OplogDump]) -> Result<&'a OplogDump, Error> {
    for place in [OplogPlace::Beside, OplogPlace::Local] {
        let mut found = candidates.iter().filter(|oplog| oplog.place == place);
        match (found.next(), found.next()) {
            (Some(only), None) => return Ok(only),
            (Some(one), Some(other)) => {
                let message = format!(
                    "there are two oplogs to replay, `{}` and `{}`",
                    one.origin.shown().display(),
                    other.origin.shown().display()
                );
                return Err(Error::new(ErrorKind::Dump, message)
                    .hint("leave --oplog-file out, or move the other one away"));
            }
            (None, _) => {}
        }
    }
    Err(Error::new(ErrorKind::Dump, "there is no oplog to replay")
        .hint("a dump has one when it is taken with --oplog; name another with --oplog-file"))
}

fn cannot_replay(error: &TargetError) -> Error {
    let message = format!("the oplog cannot be replayed here: {}", error.message);
    let failed = Error::new(ErrorKind::Oplog, message);
    let failed = match error.code {
        Some(code) => failed.with_code(code),
        None => failed,
    };
    if error.code == Some(UNAUTHORIZED) {
        return failed.hint(crate::load::oplog::GRANT);
    }
    failed.hint(
        "nothing was restored; an oplog is applied by a member of a replica set or a \
                 standalone server, not by a router",
    )
}
