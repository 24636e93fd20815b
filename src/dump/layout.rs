//! Tells what kind of dump lies at a path, once and for all that follows.

use std::fs;
use std::path::{Path, PathBuf};

use crate::dump::archive::{self, ArchivePlace};
use crate::dump::filename::{self, Role};
use crate::dump::made::MadeDump;
use crate::dump::stream::{INPUT_NAME, Stream};
use crate::dump::{metadata::CollectionMetadata, small_file};
use crate::error::{Error, ErrorKind};
use crate::namespace::{BUCKETS_PREFIX, Namespace, logical};

/// The database of a file whose folder has no name, as in the peer.
const DATABASE_DEFAULT: &str = "test";

/// The collection name under which a dump keeps its slice of the oplog, beside the databases.
const OPLOG: &str = "oplog";

/// Names listed in an error; more do not help.
const NAMES_SHOWN: usize = 8;

/// The kinds of dump.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Layout {
    /// A folder with one folder for each database.
    Root {
        /// The folder.
        folder: PathBuf,
    },
    /// The folder of one database.
    Database {
        /// The folder.
        folder: PathBuf,
        /// The name to restore it under.
        database: String,
    },
    /// The data file of one collection.
    File {
        /// The file.
        path: PathBuf,
        /// The collection to restore it as; of a time-series collection its own name.
        namespace: Namespace,
        /// Whether the file holds the buckets of a time-series collection.
        is_buckets: bool,
        /// How the name of the metadata file beside it begins.
        metadata_stem: String,
    },
    /// An archive.
    Archive {
        /// Where it is.
        place: ArchivePlace,
    },
    /// Standard input, which holds the documents of one collection.
    Input {
        /// The collection to restore them as; of a time-series collection its own name.
        namespace: Namespace,
    },
    /// Nowhere.
    Made {
        /// What is made.
        dump: MadeDump,
    },
}

/// The names that an archive has in a folder that is given in its place, as in the peer.
const ARCHIVES_IN_FOLDER: [&str; 3] = ["archive", "archive.gz", "archive.zst"];

impl Layout {
    /// The path the dump was found at.
    pub fn path(&self) -> &Path {
        match self {
            Self::Root { folder } | Self::Database { folder, .. } => folder,
            Self::File { path, .. } => path,
            Self::Archive { place } => place.path(),
            Self::Input { .. } => Path::new(INPUT_NAME),
            Self::Made { dump } => dump.name(),
        }
    }
}

/// What of a dump is asked for; all of it where nothing is said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// The only database.
    pub database: Option<String>,
    /// The only collection, in each database; of a time-series collection its own name.
    pub collection: Option<String>,
}

/// Tells the kind of dump at a path, and what is left to select in it.
pub(crate) fn recognise(
    path: &Path,
    database: Option<&str>,
    collection: Option<&str>,
) -> Result<(Layout, Selection), Error> {
    judge_name(database)?;
    let metadata = fs::metadata(path).map_err(|error| not_there(path, &error))?;
    if metadata.is_file() && holds_archive(path) {
        return archive(ArchivePlace::File(path.to_path_buf()), database, collection);
    }
    if !metadata.is_dir() {
        return Ok((file(path, database, collection)?, Selection::default()));
    }
    let collection = collection.map(|name| logical(name).to_owned());
    if holds_data(path)? {
        let database = match database {
            Some(name) => name.to_owned(),
            None => database_of_folder(path)?,
        };
        let layout = Layout::Database { folder: path.to_path_buf(), database };
        return Ok((layout, Selection { database: None, collection }));
    }
    if let Some(name) = database {
        database_is_there(path, name)?;
    }
    let layout = Layout::Root { folder: path.to_path_buf() };
    Ok((layout, Selection { database: database.map(str::to_owned), collection }))
}

/// An archive, and what is selected in it.
pub(crate) fn archive(
    place: ArchivePlace,
    database: Option<&str>,
    collection: Option<&str>,
) -> Result<(Layout, Selection), Error> {
    judge_name(database)?;
    let place = match place {
        ArchivePlace::File(folder) if folder.is_dir() => {
            let mut inside = ARCHIVES_IN_FOLDER.iter().map(|name| folder.join(name));
            let Some(path) = inside.find(|path| path.is_file()) else {
                return Err(Error::new(ErrorKind::Dump, "the folder holds no file `archive`")
                    .in_file(&folder)
                    .hint("to restore the dump in a folder, give it without --archive"));
            };
            ArchivePlace::File(path)
        }
        place => place,
    };
    let selection = Selection {
        database: database.map(str::to_owned),
        collection: collection.map(|name| logical(name).to_owned()),
    };
    Ok((Layout::Archive { place }, selection))
}

/// Standard input as the documents of one collection.
pub(crate) fn input(
    database: Option<&str>,
    collection: Option<&str>,
) -> Result<(Layout, Selection), Error> {
    judge_name(database)?;
    let (Some(database), Some(collection)) = (database, collection) else {
        let message = "the documents on standard input need the name of their collection";
        return Err(Error::new(ErrorKind::Usage, message)
            .hint("name it with --db and --collection; for an archive use --archive"));
    };
    let namespace = Namespace::new(database, collection);
    Ok((Layout::Input { namespace }, Selection::default()))
}

fn judge_name(database: Option<&str>) -> Result<(), Error> {
    match database.filter(|name| !filename::is_database(name)) {
        Some(name) => {
            Err(Error::new(ErrorKind::Dump, format!("{name:?} is no name of a database")))
        }
        None => Ok(()),
    }
}

/// Whether a file is an archive by its first bytes, compressed or not.
fn holds_archive(path: &Path) -> bool {
    // A file that cannot be read is told of later, by what its name says it is.
    Stream::of_path(path, None).is_ok_and(|mut stream| {
        stream.fill(archive::MAGIC.len()).is_ok() && archive::is_archive(stream.ahead())
    })
}

/// Whether files of collections lie directly in a folder. The oplog that a dump keeps beside its
/// databases does not count.
pub(crate) fn holds_data(folder: &Path) -> Result<bool, Error> {
    let unreadable = |error: std::io::Error| {
        Error::new(ErrorKind::Dump, format!("the folder cannot be read ({error})")).in_file(folder)
    };
    for item in fs::read_dir(folder).map_err(unreadable)? {
        let item = item.map_err(unreadable)?;
        let name = item.file_name();
        let is_data = match filename::role(&name.to_string_lossy()) {
            Role::Data { stem, .. } => stem != OPLOG,
            Role::Metadata { .. } => true,
            Role::Prelude | Role::Stray => false,
        };
        if is_data && !item.path().is_dir() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether a folder is a database's or a dump's own: files of collections lie in it or in one of
/// its folders. What cannot be read is not looked into.
pub(crate) fn is_dump(folder: &Path) -> bool {
    let holds_data = |folder: &Path| holds_data(folder).unwrap_or(false);
    let folders = fs::read_dir(folder).into_iter().flatten().flatten().map(|item| item.path());
    holds_data(folder) || folders.filter(|path| path.is_dir()).any(|path| holds_data(&path))
}

/// Whether a file in a folder of databases is the dump's slice of the oplog.
pub(crate) fn is_oplog(role: Role<'_>) -> bool {
    matches!(role, Role::Data { stem: OPLOG, .. })
}

/// The first few of some names, for an error.
pub(crate) fn shown(names: &[String]) -> String {
    let mut text: Vec<_> =
        names.iter().take(NAMES_SHOWN).map(|name| format!("`{}`", name.escape_debug())).collect();
    if names.len() > NAMES_SHOWN {
        text.push(format!("and {} more", names.len() - NAMES_SHOWN));
    }
    text.join(", ")
}

fn not_there(path: &Path, error: &std::io::Error) -> Error {
    if error.kind() != std::io::ErrorKind::NotFound {
        let message = format!("the dump cannot be opened ({error})");
        return Error::new(ErrorKind::Dump, message).in_file(path);
    }
    Error::new(ErrorKind::Dump, format!("there is no dump at `{}`", path.display())).hint(
        "give the path of a dump folder, of a database's folder in it or of a .bson file; \
         without one, the folder `dump` in the current folder is meant",
    )
}

fn database_of_folder(folder: &Path) -> Result<String, Error> {
    // A folder given as `.` has its name only in full.
    let full = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_path_buf());
    let named = folder.file_name().or(full.file_name());
    let name = named.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    judged_database(name, folder)
}

fn judged_database(name: String, path: &Path) -> Result<String, Error> {
    if filename::is_database(&name) {
        return Ok(name);
    }
    let message = format!("the folder's name {name:?} is no name of a database");
    Err(Error::new(ErrorKind::Dump, message).in_file(path).hint("name the database with --db"))
}

fn database_is_there(root: &Path, database: &str) -> Result<(), Error> {
    if root.join(database).is_dir() {
        return Ok(());
    }
    let folders: Vec<_> = walkdir::WalkDir::new(root)
        .min_depth(1)
        .max_depth(1)
        .follow_links(true)
        .sort_by_file_name()
        .into_iter()
        .filter_map(Result::ok)
        .filter(|item| item.file_type().is_dir())
        .map(|item| item.file_name().to_string_lossy().into_owned())
        .collect();
    let error = Error::new(ErrorKind::Dump, format!("the dump holds no database `{database}`"))
        .in_file(root);
    Err(match folders.as_slice() {
        [] => error.hint("it holds neither .bson files nor folders"),
        folders => error.hint(format!(
            "it holds the folders {}; to restore one of them under another name, give its own path",
            shown(folders)
        )),
    })
}

/// The file of one collection, and the names it is restored under.
fn file(path: &Path, database: Option<&str>, collection: Option<&str>) -> Result<Layout, Error> {
    let file_name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let Role::Data { stem, .. } = filename::role(file_name) else {
        return Err(no_data_file(path));
    };
    let database = match (database, path.parent().and_then(Path::file_name)) {
        (Some(name), _) => name.to_owned(),
        (None, Some(folder)) => judged_database(folder.to_string_lossy().into_owned(), path)?,
        (None, None) => DATABASE_DEFAULT.to_owned(),
    };
    let own_name = name_of_stem(path, stem);
    let buckets_of = own_name
        .as_deref()
        .ok()
        .and_then(|name| Some(logical(name)).filter(|logical| *logical != name));
    let metadata_stem = buckets_of.map_or_else(|| stem.to_owned(), filename::encode);
    let is_buckets =
        buckets_of.is_some() || collection.is_some_and(|name| name.starts_with(BUCKETS_PREFIX));
    let collection = match collection {
        Some(name) => name.to_owned(),
        None => own_name?,
    };
    let namespace = Namespace::new(database, logical(&collection));
    Ok(Layout::File { path: path.to_path_buf(), namespace, is_buckets, metadata_stem })
}

/// The collection's name by the file's, or by the metadata beside it where that was cut.
fn name_of_stem(path: &Path, stem: &str) -> Result<String, Error> {
    if filename::is_cut(stem) {
        let told = filename::METADATA_SUFFIXES
            .iter()
            .map(|suffix| path.with_file_name(format!("{stem}{suffix}")))
            .filter_map(|path| small_file::read(&path).ok())
            .find_map(|json| CollectionMetadata::parse(&json).ok()?.collection_name);
        return told.ok_or_else(|| {
            Error::new(ErrorKind::Dump, "the file's name was cut and no metadata tells the whole")
                .in_file(path)
                .hint("name the collection with --collection")
        });
    }
    filename::decode(stem).map_err(|error| {
        Error::new(ErrorKind::Dump, format!("the file is named after no collection: {error}"))
            .in_file(path)
            .hint("name the collection with --collection")
    })
}

fn no_data_file(path: &Path) -> Error {
    Error::new(ErrorKind::Dump, "the file is not named like the data of a collection")
        .in_file(path)
        .hint(
            "names of data files end in .bson, .bson.gz, .bson.zst or .bin; an archive is known \
             by its content",
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder_with(files: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        for file in files {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().expect("a parent")).expect("creates");
            fs::write(path, b"").expect("writes");
        }
        folder
    }

    fn layout(path: &Path, database: Option<&str>, collection: Option<&str>) -> Layout {
        recognise(path, database, collection).expect("a dump").0
    }

    #[test]
    fn folders_are_told_by_what_lies_in_them() {
        let dump = folder_with(&["shop/a.bson", "oplog.bson", "prelude.json", "zip/b.bson.gz"]);
        let root = dump.path().to_path_buf();
        assert_eq!(layout(&root, None, None), Layout::Root { folder: root.clone() });
        let folder = root.join("shop");
        let database =
            |name: &str| Layout::Database { folder: folder.clone(), database: name.into() };
        assert_eq!(layout(&folder, None, None), database("shop"));
        assert_eq!(layout(&folder, Some("other"), None), database("other"));
        assert!(matches!(layout(&root.join("zip"), None, None), Layout::Database { .. }));
    }

    #[test]
    fn a_database_is_selected_in_a_root() {
        let dump = folder_with(&["shop/a.bson", "blog/a.bson"]);
        let (layout, selection) = recognise(dump.path(), Some("shop"), None).expect("a dump");
        assert!(matches!(layout, Layout::Root { .. }));
        assert_eq!(selection.database.as_deref(), Some("shop"));
        let error = recognise(dump.path(), Some("shoe"), None).expect_err("not there");
        assert!(error.to_string().starts_with("the dump holds no database `shoe`"), "{error}");
        assert!(error.hint_text().expect("a hint").contains("`blog`, `shop`"));
    }

    fn names_of(path: &Path, database: Option<&str>, collection: Option<&str>) -> (String, bool) {
        match layout(path, database, collection) {
            Layout::File { namespace, is_buckets, .. } => (namespace.to_string(), is_buckets),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_file_is_named_by_itself_and_its_folder_unless_told() {
        let dump = folder_with(&["shop/with+space.bson", "shop/system.buckets.w.bson.gz"]);
        let file = dump.path().join("shop/with+space.bson");
        assert_eq!(names_of(&file, None, None), ("shop.with space".into(), false));
        assert_eq!(names_of(&file, Some("d"), None), ("d.with space".into(), false));
        assert_eq!(names_of(&file, None, Some("c")), ("shop.c".into(), false));
        let buckets = dump.path().join("shop/system.buckets.w.bson.gz");
        assert_eq!(names_of(&buckets, None, None), ("shop.w".into(), true));
        assert_eq!(names_of(&buckets, None, Some("system.buckets.v")), ("shop.v".into(), true));
    }

    #[test]
    fn a_file_in_a_nameless_folder_goes_to_test() {
        for path in ["orders.bson", "./orders.bson", "../orders.bson", "/orders.bson"] {
            match file(Path::new(path), None, None).expect("a file") {
                Layout::File { namespace, .. } => {
                    assert_eq!(namespace, Namespace::new("test", "orders"), "{path}");
                }
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn names_that_cannot_be_are_refused() {
        let dump = folder_with(&["my backup/a.bson", "shop/a%.bson", "shop/a.json"]);
        let refused = |path: &str| recognise(&dump.path().join(path), None, None).expect_err(path);
        assert_eq!(refused("my backup").hint_text(), Some("name the database with --db"));
        assert_eq!(refused("my backup/a.bson").hint_text(), Some("name the database with --db"));
        assert!(refused("shop/a%.bson").hint_text().expect("a hint").contains("--collection"));
        assert!(refused("shop/a.json").hint_text().expect("a hint").contains(".bson"));
        assert!(recognise(dump.path(), Some("a b"), None).is_err());
    }

    #[test]
    fn what_is_not_there_is_told_and_an_archive_is_known_by_its_content() {
        let error = recognise(Path::new("no/such/dump"), None, None).expect_err("not there");
        assert_eq!(error.kind(), ErrorKind::Dump);
        assert_eq!(error.to_string(), "there is no dump at `no/such/dump`");
        let dump = folder_with(&["all.archive"]);
        let path = dump.path().join("all.archive");
        fs::write(&path, [0x6D, 0xE2, 0x99, 0x81, 0, 0]).expect("writes");
        let (layout, _) = recognise(&path, None, None).expect("an archive");
        assert_eq!(layout, Layout::Archive { place: ArchivePlace::File(path) });
        fs::write(dump.path().join("notes.txt"), "notes").expect("writes");
        let error = recognise(&dump.path().join("notes.txt"), None, None).expect_err("no data");
        assert!(error.to_string().contains("is not named like the data"), "{error}");
    }
}
