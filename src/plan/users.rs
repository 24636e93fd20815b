//! Which users and roles are restored, and whether the server can take them.
//!
//! The server merges them out of two temporary collections, by a command of its own. Whether it
//! understands those of the dump is told by the versions of the schema on both sides.

use std::fmt;
use std::path::{Path, PathBuf};

use bson::raw::RawDocument;

use crate::dump::archive::Archive;
use crate::error::{Error, ErrorKind};
use crate::facts::ServerVersion;
use crate::limits::USERS_BYTES_MAX;
use crate::namespace::Namespace;
use crate::plan::ExistingPolicy;

/// The schema version from which the server no longer writes it down.
const VERSION_UNTOLD_FROM: ServerVersion = ServerVersion::new(8, 1, 0);

/// The schema that every server since 3.0 has at the end of its upgrade.
const CURRENT: i64 = 5;

/// What is taken for the schema where a dump of one database does not tell it.
const UNTOLD_OF_DATABASE: i64 = 3;

/// What is taken for the schema where a dump of a whole server does not tell it.
const UNTOLD_OF_SERVER: i64 = 1;

/// The pairs of a dump's and a server's schema between which users can be moved.
const COMPATIBLE: [(i64, i64); 5] = [(3, 5), (5, 5), (3, 3), (1, 1), (1, 3)];

/// How users and roles were asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// They are part of the whole dump.
    Whole,
    /// By the database `admin` or by the option for those of one database.
    Explicit,
}

/// The users and roles to restore.
#[derive(Clone, Debug)]
pub struct UsersPlan {
    /// Which ones they are, as far as that is known.
    pub content: Content,
    /// On which terms they are restored.
    pub terms: Terms,
}

impl UsersPlan {
    /// The archive that they come from, where they come from one.
    pub fn archive(&self) -> Option<&Archive> {
        match &self.content {
            Content::Read(_) => None,
            Content::Awaited(awaited) => Some(&awaited.archive),
        }
    }
}

/// Which users and roles are restored.
#[derive(Clone, Debug)]
pub enum Content {
    /// They are read and judged.
    Read(Accounts),
    /// They come with an archive, and are judged once they have come.
    Awaited(Awaited),
}

/// Users and roles that come with an archive: their places in its list.
#[derive(Clone, Debug)]
pub struct Awaited {
    /// The archive.
    pub archive: Archive,
    /// The users.
    pub users: Option<usize>,
    /// The roles.
    pub roles: Option<usize>,
    /// The version of the schema in which they are kept.
    pub version: Option<usize>,
}

/// On which terms users and roles are restored.
#[derive(Clone, Debug)]
pub struct Terms {
    /// The collection out of which the server takes users.
    pub temporary_users: Namespace,
    /// The collection out of which the server takes roles.
    pub temporary_roles: Namespace,
    /// The database whose users and roles are merged; all where it is none.
    pub database: Option<String>,
    /// Whether users and roles that the dump does not have are removed.
    pub existing: ExistingPolicy,
    /// How they were asked for.
    pub request: Request,
    /// The schema in which the server keeps them.
    pub schema: i64,
    /// The version of the server they were dumped from, where the dump says it.
    pub dumped_from: Option<ServerVersion>,
}

impl Terms {
    /// Judges what was read; what is worth noting comes with it.
    ///
    /// # Errors
    ///
    /// Of kind [`ErrorKind::Plan`]: the server cannot take them, a document is none of a user or
    /// role, or belongs to another database than the one wanted.
    pub fn judge(&self, dumped: Dumped) -> Result<(Accounts, Option<String>), Error> {
        let told = dumped
            .version
            .as_ref()
            .map_or(DumpSchema::NoFile, |version| schema_told(version.documents()));
        let is_of_database = self.database.is_some();
        let note = check_schema(told, self.dumped_from, is_of_database, self.schema)?;
        let part = |kind, secrets: Option<Secrets>, temporary: &Namespace| {
            let part = |secrets: Secrets| {
                let path = secrets.path.clone();
                part(kind, secrets, temporary.clone(), self.database.as_deref())
                    .map_err(|error| error.in_file(path))
            };
            secrets.map(part).transpose()
        };
        let accounts = Accounts {
            users: part(Kind::User, dumped.users, &self.temporary_users)?,
            roles: part(Kind::Role, dumped.roles, &self.temporary_roles)?,
        };
        Ok((accounts, note))
    }
}

/// What a dump holds of users and roles, before it is judged.
#[derive(Clone, Debug, Default)]
pub struct Dumped {
    /// The users, where the dump has any file of them.
    pub users: Option<Secrets>,
    /// The roles, where the dump has any file of them.
    pub roles: Option<Secrets>,
    /// The version of the schema in which they are kept, where the dump has a file of it.
    pub version: Option<Secrets>,
}

/// Users and roles that the server can take.
#[derive(Clone, Debug, Default)]
pub struct Accounts {
    /// The users, where the dump has a file of them.
    pub users: Option<Part>,
    /// The roles, where the dump has a file of them.
    pub roles: Option<Part>,
}

impl Accounts {
    /// The temporary collections.
    pub fn temporary(&self) -> impl Iterator<Item = &Namespace> {
        self.users.iter().chain(&self.roles).map(|part| &part.temporary)
    }
}

/// All users or all roles of a dump.
#[derive(Clone, Debug)]
pub struct Part {
    /// Their names, such as `shop.ann`.
    pub names: Vec<String>,
    /// Their documents.
    pub documents: Secrets,
    /// The collection out of which the server takes them.
    pub temporary: Namespace,
}

/// Documents that hold credentials and are never shown.
#[derive(Clone)]
pub struct Secrets {
    path: PathBuf,
    documents: Vec<Vec<u8>>,
    bytes: usize,
}

impl Secrets {
    /// None yet of those in this file or archive.
    pub fn of(path: &Path) -> Self {
        Self { path: path.to_path_buf(), documents: Vec::new(), bytes: 0 }
    }

    /// Adds a document that is sound.
    ///
    /// # Errors
    ///
    /// Of kind [`ErrorKind::Read`]: they are too many to be held in memory.
    pub fn push(&mut self, document: &[u8]) -> Result<(), Error> {
        self.bytes += document.len();
        if self.bytes > USERS_BYTES_MAX {
            let mebibytes = USERS_BYTES_MAX >> 20;
            let message = format!("users or roles take more than {mebibytes} MiB");
            return Err(Error::new(ErrorKind::Read, message)
                .in_file(&self.path)
                .hint("they are held in memory, and genuine ones take a hundredth of that"));
        }
        self.documents.push(document.to_vec());
        Ok(())
    }

    /// The file or archive that they come from.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The documents.
    pub fn documents(&self) -> impl Iterator<Item = &[u8]> {
        self.documents.iter().map(Vec::as_slice)
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} documents", self.documents.len())
    }
}

/// Which kind of part it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Users.
    User,
    /// Roles.
    Role,
}

impl Kind {
    fn field(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Role => "role",
        }
    }
}

/// A part of its documents. A document that is none of a user or role, or, where those of one
/// database are wanted, belongs to another one, is an error.
fn part(
    kind: Kind,
    documents: Secrets,
    temporary: Namespace,
    wanted: Option<&str>,
) -> Result<Part, Error> {
    let mut names = Vec::with_capacity(documents.documents.len());
    for document in documents.documents() {
        let (database, name) = identity(kind, document)?;
        if let Some(wanted) = wanted.filter(|wanted| *wanted != database) {
            return Err(of_another(kind, &database, wanted));
        }
        names.push(format!("{database}.{name}"));
    }
    Ok(Part { names, documents, temporary })
}

fn identity(kind: Kind, document: &[u8]) -> Result<(String, String), Error> {
    let field = kind.field();
    let read = || {
        let document = RawDocument::from_bytes(document).ok()?;
        let database = document.get_str("db").ok()?;
        let name = document.get_str(field).ok()?;
        Some((database.to_owned(), name.to_owned()))
    };
    read().ok_or_else(|| {
        Error::new(ErrorKind::Plan, format!("a document has no `{field}` or no `db`"))
            .hint("the file does not hold users and roles as servers since 2.6 keep them")
    })
}

fn of_another(kind: Kind, database: &str, wanted: &str) -> Error {
    let field = kind.field();
    let message = format!(
        "the dump's {field}s belong to the database `{database}` and would not be restored for \
         `{wanted}`: the names of {field}s do not change with their database's"
    );
    Error::new(ErrorKind::Plan, message).hint(format!(
        "restore the documents alone with --db {wanted}, and the {field}s with --db {database}"
    ))
}

/// What a dump says of the schema of its users.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DumpSchema {
    /// The version.
    Told(i64),
    /// There is a file for it, which does not tell it.
    NotInFile,
    /// There is no file for it.
    NoFile,
}

/// Reads the schema's version from the documents of `system.version`.
fn schema_told<'a>(mut documents: impl Iterator<Item = &'a [u8]>) -> DumpSchema {
    let version = documents.find_map(|document| {
        let document = RawDocument::from_bytes(document).ok()?;
        let is_schema = document.get_str("_id").is_ok_and(|id| id == "authSchema");
        if !is_schema {
            return None;
        }
        crate::plan::whole_number(document.get("currentVersion").ok()??)
    });
    version.map_or(DumpSchema::NotInFile, DumpSchema::Told)
}

/// Checks that a server with this schema takes the users of the dump; returns what is worth noting.
/// That it does not, or that the dump does not say, is an error.
fn check_schema(
    dump: DumpSchema,
    dumped_from: Option<ServerVersion>,
    is_of_database: bool,
    server: i64,
) -> Result<Option<String>, Error> {
    let is_untold = dumped_from.is_some_and(|version| version >= VERSION_UNTOLD_FROM);
    let version = match dump {
        DumpSchema::Told(version) => version,
        _ if is_untold => CURRENT,
        DumpSchema::NoFile if is_of_database => UNTOLD_OF_DATABASE,
        DumpSchema::NoFile => UNTOLD_OF_SERVER,
        DumpSchema::NotInFile => {
            let message = "the dump's system.version does not tell the schema of its users";
            return Err(Error::new(ErrorKind::Plan, message).hint(
                "the document with the _id authSchema is missing; dump users and roles again",
            ));
        }
    };
    let told = match dump {
        DumpSchema::Told(_) => "",
        _ => ", taken for that because the dump has no system.version",
    };
    if !COMPATIBLE.contains(&(version, server)) {
        let message = format!(
            "the server (schema version {server}) cannot take the dump's users and roles (schema \
             version {version}{told})"
        );
        return Err(Error::new(ErrorKind::Plan, message).hint(
            "dump admin.system.version together with users and roles, or leave these out by \
             restoring the databases one by one",
        ));
    }
    let is_assumed = dump == DumpSchema::NoFile && !is_untold;
    Ok(is_assumed.then(|| {
        format!("the dump does not tell the schema of its users; version {version} was assumed")
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::doc;

    fn bytes(document: &bson::Document) -> Vec<u8> {
        document.to_vec().expect("encodes")
    }

    fn secrets(documents: &[Vec<u8>]) -> Secrets {
        let mut secrets = Secrets::of(Path::new("dump"));
        for document in documents {
            secrets.push(document).expect("few");
        }
        secrets
    }

    fn temporary() -> Namespace {
        Namespace::new("admin", "tempusers")
    }

    #[test]
    fn names_are_told_and_credentials_are_not() {
        let ann = bytes(&doc! {
            "_id": "shop.ann", "user": "ann", "db": "shop",
            "credentials": { "SCRAM-SHA-256": { "storedKey": "sesame" } },
        });
        let part = part(Kind::User, secrets(&[ann]), temporary(), Some("shop")).expect("a part");
        assert_eq!(part.names, ["shop.ann"]);
        assert_eq!(format!("{:?}", part.documents), "1 documents");
        assert!(!format!("{part:?}").contains("sesame"));
    }

    #[test]
    fn what_is_no_user_is_refused() {
        let role = bytes(&doc! { "_id": "shop.clerk", "role": "clerk", "db": "shop" });
        let error = part(Kind::User, secrets(std::slice::from_ref(&role)), temporary(), None)
            .expect_err("no user");
        assert!(error.to_string().contains("no `user`"), "{error}");
        assert!(part(Kind::Role, secrets(&[role]), temporary(), None).is_ok());
        assert!(part(Kind::Role, secrets(&[vec![5, 0, 0, 0, 0]]), temporary(), None).is_err());
    }

    /// The peer merges with the name of the target database, finds nothing, and succeeds.
    #[test]
    fn better_than_the_peer_b7_users_of_another_database_are_refused() {
        let ann = bytes(&doc! { "user": "ann", "db": "shop" });
        let error =
            part(Kind::User, secrets(&[ann]), temporary(), Some("other")).expect_err("refused");
        assert!(error.to_string().contains("`shop`"), "{error}");
        assert!(error.hint_text().expect("a hint").contains("--db shop"));
    }

    #[test]
    fn more_than_memory_should_hold_is_refused() {
        let mut secrets = Secrets::of(Path::new("dump/admin/system.users.bson"));
        let large = vec![0; USERS_BYTES_MAX / 2];
        assert!(secrets.push(&large).is_ok());
        assert!(secrets.push(&large).is_ok());
        let error = secrets.push(&[0; 5]).expect_err("too many");
        assert!(error.to_string().contains("more than 64 MiB, in dump/admin"), "{error}");
    }

    #[test]
    fn the_schema_is_read_from_its_document() {
        let documents = [
            bytes(&doc! { "_id": "featureCompatibilityVersion", "version": "6.0" }),
            bytes(&doc! { "_id": "authSchema", "currentVersion": 5 }),
        ];
        let told = |of: &[Vec<u8>]| schema_told(of.iter().map(Vec::as_slice));
        assert_eq!(told(&documents), DumpSchema::Told(5));
        assert_eq!(told(&documents[..1]), DumpSchema::NotInFile);
        let double = [bytes(&doc! { "_id": "authSchema", "currentVersion": 3.0 })];
        assert_eq!(told(&double), DumpSchema::Told(3));
    }

    #[test]
    fn only_some_pairs_of_schemas_fit() {
        for dump in 0..7 {
            for server in 0..7 {
                let fits = check_schema(DumpSchema::Told(dump), None, false, server).is_ok();
                assert_eq!(fits, COMPATIBLE.contains(&(dump, server)), "{dump} to {server}");
            }
        }
    }

    #[test]
    fn a_schema_that_is_not_told_is_assumed() {
        let check = |dump, from, is_of_database, server| {
            check_schema(dump, from, is_of_database, server).map(|note| note.is_some())
        };
        let new = Some(ServerVersion::new(8, 1, 0));
        assert_eq!(check(DumpSchema::NoFile, new, false, 5), Ok(false));
        assert_eq!(check(DumpSchema::NotInFile, new, false, 5), Ok(false));
        assert_eq!(check(DumpSchema::NoFile, None, true, 5), Ok(true));
        let error = check(DumpSchema::NoFile, None, false, 5).expect_err("1 to 5");
        assert!(error.to_string().contains("schema version 1, taken"), "{error}");
        assert!(check(DumpSchema::NotInFile, None, true, 5).is_err());
    }
}
