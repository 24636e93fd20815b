//! Users, roles and the oplog: what of them is restored, read and checked before any document.

use std::path::PathBuf;

use bson::Timestamp;

use crate::command::restore::RestoreOptions;
use crate::dump::inventory::DataFile;
use crate::dump::special::{OplogDump, OplogPlace, UsersDump, oplog_file};
use crate::dump::{Inventory, Layout, Location, SkippedPath};
use crate::error::{Error, ErrorKind};
use crate::facts::ServerFacts;
use crate::namespace::Namespace;
use crate::plan::oplog::{OplogPlan, Uuids};
use crate::plan::users::{self, DumpSchema, Kind, Part, Request, UsersPlan};
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
        all.find(|dump| dump.database.is_some() == is_of_database && dump.files().next().is_some())
    };
    if options.special.database_users == DatabaseUsers::Restored {
        let dump = find(true).ok_or_else(|| no_users(options))?;
        return Ok(Some((dump, Request::Explicit)));
    }
    let request = match (layout, options.database.as_deref()) {
        (Layout::Root { .. }, None) => Request::Whole,
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
    of_dump(error, options)
}

/// Names the dump; for an archive, whose users, roles and oplog are not read, says so.
fn of_dump(error: Error, options: &RestoreOptions) -> Error {
    let error = error.in_file(options.dump.to_string());
    match options.dump {
        Location::Archive(_) => error.hint(
            "users, roles and the oplog of an archive are not restored by this version; restore \
             a dump in a folder, or name the file of an oplog with --oplog-file",
        ),
        Location::Path(_) | Location::Input => error,
    }
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
        let is_of_database = self.dump.database.is_some();
        let dumped_from = self.inventory.server_version;
        let told = self.schema()?;
        plan.notes.extend(users::check_schema(told, dumped_from, is_of_database, schema)?);
        plan.users = Some(UsersPlan {
            users: self.part(Kind::User, self.dump.users.as_ref())?,
            roles: self.part(Kind::Role, self.dump.roles.as_ref())?,
            database: is_of_database.then(|| self.options.database.clone()).flatten(),
            existing: self.options.selection.existing,
            request: self.request,
        });
        Ok(())
    }

    fn part(&self, kind: Kind, file: Option<&DataFile>) -> Result<Option<Part>, Error> {
        let Some(file) = file else {
            return Ok(None);
        };
        let special = &self.options.special;
        let temporary = match kind {
            Kind::User => &special.temporary_users,
            Kind::Role => &special.temporary_roles,
        };
        let wanted = self.dump.database.as_ref().and(self.options.database.as_deref());
        let temporary = Namespace::new(ADMIN, temporary);
        let part = users::part(kind, documents(file)?, temporary, wanted);
        part.map(Some).map_err(|error| error.in_file(&file.path))
    }

    fn schema(&self) -> Result<DumpSchema, Error> {
        let Some(file) = &self.dump.version else {
            return Ok(DumpSchema::NoFile);
        };
        Ok(users::schema_told(documents(file)?.iter().map(Vec::as_slice)))
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
        plan.skipped.extend(self.dump.files().map(|file| Skipped {
            what: file.path.display().to_string(),
            reason: reason.clone(),
            is_problem,
        }));
    }
}

/// All documents of a file, which is small.
fn documents(file: &DataFile) -> Result<Vec<Vec<u8>>, Error> {
    let mut reader = reader::open(file)?;
    let mut documents = Vec::new();
    while let Some((frame, position)) = reader.next_frame()? {
        frame.validate().map_err(|error| {
            Error::new(ErrorKind::Read, error.to_string())
                .in_file(&file.path)
                .at_byte(position.offset)
        })?;
        documents.push(frame.bytes().to_vec());
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
    let named = wanted.file.as_deref().map(oplog_file).transpose()?;
    let candidates: Vec<_> = named.iter().chain(&inventory.oplogs).collect();
    let chosen = chosen_oplog(&candidates).map_err(|error| of_dump(error, options))?;
    let others = inventory.oplogs.iter().filter(|oplog| *oplog != chosen);
    plan.skipped.extend(others.map(|oplog| Skipped {
        what: oplog.file.path.display().to_string(),
        reason: format!("`{}` is replayed instead", chosen.file.path.display()),
        is_problem: false,
    }));
    target
        .apply_ops(&[], Validators::Bypassed)
        .await
        .or_else(|error| if is_about_nothing(&error) { Ok(()) } else { Err(error) })
        .map_err(|error| cannot_replay(&error))?;
    plan.oplog = Some(OplogPlan {
        file: chosen.file.clone(),
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
                    one.file.path.display(),
                    other.file.path.display()
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
