//! Which users and roles are restored, and whether the server can take them.
//!
//! The server merges them out of two temporary collections, by a command of its own. Whether it
//! understands those of the dump is told by the versions of the schema on both sides.

use std::fmt;

use bson::raw::RawDocument;

use crate::error::{Error, ErrorKind};
use crate::facts::ServerVersion;
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
    /// The users, where the dump has a file of them.
    pub users: Option<Part>,
    /// The roles, where the dump has a file of them.
    pub roles: Option<Part>,
    /// The database whose users and roles are merged; all where it is none.
    pub database: Option<String>,
    /// Whether users and roles that the dump does not have are removed.
    pub existing: ExistingPolicy,
    /// How they were asked for.
    pub request: Request,
}

impl UsersPlan {
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
pub struct Secrets(pub Vec<Vec<u8>>);

impl fmt::Debug for Secrets {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} documents", self.0.len())
    }
}

/// Which kind of part it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
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

/// A part of its documents.
///
/// # Errors
///
/// Of kind [`ErrorKind::Plan`]: a document is none of a user or role, or, where those of one
/// database are wanted, belongs to another one.
pub fn part(
    kind: Kind,
    documents: Vec<Vec<u8>>,
    temporary: Namespace,
    wanted: Option<&str>,
) -> Result<Part, Error> {
    let mut names = Vec::with_capacity(documents.len());
    for document in &documents {
        let (database, name) = identity(kind, document)?;
        if let Some(wanted) = wanted.filter(|wanted| *wanted != database) {
            return Err(of_another(kind, &database, wanted));
        }
        names.push(format!("{database}.{name}"));
    }
    Ok(Part { names, documents: Secrets(documents), temporary })
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
pub enum DumpSchema {
    /// The version.
    Told(i64),
    /// There is a file for it, which does not tell it.
    NotInFile,
    /// There is no file for it.
    NoFile,
}

/// Reads the schema's version from the documents of `system.version`.
pub fn schema_told<'a>(mut documents: impl Iterator<Item = &'a [u8]>) -> DumpSchema {
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
///
/// # Errors
///
/// Of kind [`ErrorKind::Plan`]: it does not, or the dump does not say.
pub fn check_schema(
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
        _ => ", taken for that because the dump has no system.version.bson",
    };
    if !COMPATIBLE.contains(&(version, server)) {
        let message = format!(
            "the server (schema version {server}) cannot take the dump's users and roles (schema \
             version {version}{told})"
        );
        return Err(Error::new(ErrorKind::Plan, message).hint(
            "nothing was restored; put the missing file beside system.users.bson, or leave users \
             and roles out by restoring the databases one by one",
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

    fn temporary() -> Namespace {
        Namespace::new("admin", "tempusers")
    }

    #[test]
    fn names_are_told_and_credentials_are_not() {
        let ann = bytes(&doc! {
            "_id": "shop.ann", "user": "ann", "db": "shop",
            "credentials": { "SCRAM-SHA-256": { "storedKey": "sesame" } },
        });
        let part = part(Kind::User, vec![ann], temporary(), Some("shop")).expect("a part");
        assert_eq!(part.names, ["shop.ann"]);
        assert_eq!(format!("{:?}", part.documents), "1 documents");
        assert!(!format!("{part:?}").contains("sesame"));
    }

    #[test]
    fn what_is_no_user_is_refused() {
        let role = bytes(&doc! { "_id": "shop.clerk", "role": "clerk", "db": "shop" });
        let error = part(Kind::User, vec![role.clone()], temporary(), None).expect_err("no user");
        assert!(error.to_string().contains("no `user`"), "{error}");
        assert!(part(Kind::Role, vec![role], temporary(), None).is_ok());
        assert!(part(Kind::Role, vec![vec![5, 0, 0, 0, 0]], temporary(), None).is_err());
    }

    /// The peer merges with the name of the target database, finds nothing, and succeeds.
    #[test]
    fn better_than_the_peer_b7_users_of_another_database_are_refused() {
        let ann = bytes(&doc! { "user": "ann", "db": "shop" });
        let error = part(Kind::User, vec![ann], temporary(), Some("other")).expect_err("refused");
        assert!(error.to_string().contains("`shop`"), "{error}");
        assert!(error.hint_text().expect("a hint").contains("--db shop"));
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
