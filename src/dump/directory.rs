//! Walks over a dump and lists what it holds.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use walkdir::{DirEntry, WalkDir};

use crate::dump::database::{Database, DatabaseFolder, Files};
use crate::dump::filename::{self, Role};
use crate::dump::inventory::{CollectionKind, DumpEntry, Inventory, Origin, SkippedPath};
use crate::dump::layout::{self, Layout, Selection};
use crate::dump::prelude::Prelude;
use crate::dump::special::{self, OplogDump};
use crate::dump::stream::Interrupt;
use crate::dump::{archive, small_file};
use crate::error::{Error, ErrorKind};
use crate::namespace::Namespace;
use crate::namespace::filter::NamespaceFilter;

/// How far below the path that was given a misplaced dump is looked for, to hint at it.
const HINT_DEPTH: usize = 4;

/// How many files are looked at for that.
const HINT_FILES: usize = 10_000;

/// Lists what a dump holds, or what of it is selected.
///
/// Waiting for what comes through a pipe is given up once the interrupt asks for it.
pub(crate) fn scan(
    layout: &Layout,
    selection: &Selection,
    filter: &NamespaceFilter,
    interrupt: Option<Interrupt>,
) -> Result<Inventory, Error> {
    let mut inventory = Inventory { root: layout.path().to_path_buf(), ..Inventory::default() };
    let databases = match layout {
        Layout::Root { folder } => {
            let mut walk = Walk::new(folder, 2);
            walk.root(selection.database.as_deref());
            walk.finish(&mut inventory)?
        }
        Layout::Database { folder, database } => {
            let mut walk = Walk::new(folder, 1);
            walk.database(database);
            walk.finish(&mut inventory)?
        }
        Layout::File { path, namespace, is_buckets, metadata_stem } => {
            read_prelude(&prelude_beside(path), &mut inventory);
            vec![one_file(path, namespace, *is_buckets, metadata_stem)]
        }
        Layout::Archive { place } => return archive::scan(place, selection, filter, interrupt),
        Layout::Made { dump } => return Ok(dump.inventory().clone()),
        Layout::Input { namespace } => {
            inventory.entries.push(from_input(namespace));
            Vec::new()
        }
    };
    let known: Vec<_> = databases.iter().flat_map(Database::names).collect();
    let mut has_any = false;
    for database in databases {
        let selected = selection.collection.as_deref();
        let database = database.wanted(filter, &mut inventory.left_out);
        has_any |= database.list(selected, &mut inventory);
    }
    if let (Some(collection), false) = (&selection.collection, has_any) {
        return Err(no_such_collection(collection, &known, layout.path()));
    }
    inventory.entries.sort_unstable_by(|a, b| a.namespace.cmp(&b.namespace));
    inventory.skipped.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(inventory)
}

/// What has been found on the way through a folder.
struct Walk<'a> {
    root: &'a Path,
    /// How far below the root the files of collections lie.
    depth: usize,
    databases: Vec<DatabaseFolder>,
    preludes: Vec<PathBuf>,
    oplogs: Vec<OplogDump>,
    skipped: Vec<SkippedPath>,
    has_dump_files: bool,
}

impl<'a> Walk<'a> {
    fn new(root: &'a Path, depth: usize) -> Self {
        let (databases, preludes, skipped) = (Vec::new(), Vec::new(), Vec::new());
        let (oplogs, has_dump_files) = (Vec::new(), false);
        Self { root, depth, databases, preludes, oplogs, skipped, has_dump_files }
    }

    fn items(&self) -> walkdir::IntoIter {
        WalkDir::new(self.root)
            .min_depth(1)
            .max_depth(self.depth)
            .follow_links(true)
            .sort_by_file_name()
            .into_iter()
    }

    /// Goes through the folder of one database.
    fn database(&mut self, name: &str) {
        self.databases.push(DatabaseFolder::new(name));
        for item in self.items() {
            match item {
                Ok(item) => self.in_database(&item),
                Err(error) => self.unreadable(&error),
            }
        }
    }

    /// Goes through a folder of databases, all or the selected one.
    fn root(&mut self, selected: Option<&str>) {
        let mut items = self.items();
        while let Some(item) = items.next() {
            match item {
                Ok(item) if item.depth() == self.depth => self.in_database(&item),
                Ok(item) if item.file_type().is_dir() => {
                    if !self.enters(&item, selected) {
                        items.skip_current_dir();
                    }
                }
                Ok(item) => self.beside_databases(&item),
                Err(error) => self.unreadable(&error),
            }
        }
    }

    /// Judges a folder by its name: whether it is that of a database that is wanted.
    fn enters(&mut self, item: &DirEntry, selected: Option<&str>) -> bool {
        let name = item.file_name().to_str();
        if selected.is_some() && selected != name {
            return false;
        }
        match name {
            Some(name) if filename::is_database(name) => {
                self.databases.push(DatabaseFolder::new(name));
                true
            }
            _ => {
                self.no_database(item);
                false
            }
        }
    }

    /// A folder that cannot be a database's.
    fn no_database(&mut self, item: &DirEntry) {
        let is_hidden = item.file_name().to_string_lossy().starts_with('.');
        let reason = if is_hidden {
            "is a hidden folder"
        } else {
            "the folder's name is no name of a database"
        };
        let is_problem = layout::holds_data(item.path()).unwrap_or(false);
        self.skip(item.path(), reason, is_problem);
    }

    /// A file in the folder of databases.
    fn beside_databases(&mut self, item: &DirEntry) {
        let name = item.file_name().to_string_lossy();
        let role = filename::role(&name);
        if role == Role::Prelude {
            self.preludes.push(item.path().to_path_buf());
        } else if layout::is_oplog(role) {
            self.has_dump_files = true;
            match special::oplog_file(item.path()) {
                Ok(oplog) => self.oplogs.push(oplog),
                Err(error) => self.skip(item.path(), error.message(), true),
            }
        } else {
            self.skip(item.path(), "is not a file of a dump", false);
        }
    }

    /// A file or folder in the folder of the database that came last.
    fn in_database(&mut self, item: &DirEntry) {
        if item.file_type().is_dir() {
            let is_dump = layout::is_dump(item.path());
            let reason = if is_dump {
                "is a dump inside the folder of a database; restore it by itself"
            } else {
                "is a folder inside that of a database"
            };
            return self.skip(item.path(), reason, is_dump);
        }
        let name = item.file_name().to_string_lossy();
        match filename::role(&name) {
            Role::Prelude => self.preludes.push(item.path().to_path_buf()),
            Role::Stray => self.skip(item.path(), "is not a file of a dump", false),
            Role::Data { .. } | Role::Metadata { .. } if item.file_name().to_str().is_none() => {
                self.has_dump_files = true;
                self.skip(item.path(), "the file's name is not UTF-8", true);
            }
            role @ (Role::Data { stem, .. } | Role::Metadata { stem, .. }) => {
                self.has_dump_files = true;
                if let Some(database) = self.databases.last_mut() {
                    database.files(stem).add(role, item.path());
                }
            }
        }
    }

    /// What could not be read. The collection it belongs to, where its name tells, is kept from
    /// being restored without it.
    fn unreadable(&mut self, error: &walkdir::Error) {
        let path = error.path().unwrap_or(self.root);
        let reason = if error.loop_ancestor().is_some() {
            "is a link to a folder that it lies in".to_owned()
        } else if path.is_symlink() && !path.exists() {
            "is a link that leads nowhere".to_owned()
        } else {
            let cause = error.io_error().map_or_else(|| error.to_string(), ToString::to_string);
            format!("cannot be read: {cause}")
        };
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if let Role::Data { stem, .. } | Role::Metadata { stem, .. } = filename::role(&name)
            && error.loop_ancestor().is_none()
            && error.depth() == self.depth
            && let Some(database) = self.databases.last_mut()
        {
            self.has_dump_files = true;
            let problem = format!("one of its files {reason}, in {}", path.display());
            database.files(stem).note_problem(problem);
        }
        self.skip(path, &reason, true);
    }

    fn skip(&mut self, path: &Path, reason: &str, is_problem: bool) {
        let path = path.to_path_buf();
        self.skipped.push(SkippedPath { path, reason: reason.to_owned(), is_problem });
    }

    /// The error for a folder in which no file of a dump is at its place.
    fn nothing_found(&self) -> Error {
        let skipped = self.skipped.iter().filter_map(|skipped| skipped.path.file_name());
        let mut found: Vec<_> = self
            .databases
            .iter()
            .map(|folder| folder.name().to_owned())
            .chain(skipped.map(|name| name.to_string_lossy().into_owned()))
            .collect();
        found.sort_unstable();
        let found = match found.as_slice() {
            [] => "it is empty".to_owned(),
            found => {
                format!("it holds {}, but no .bson files in their place", layout::shown(found))
            }
        };
        let message = format!("the folder holds nothing to restore: {found}");
        let error = Error::new(ErrorKind::Dump, message).in_file(self.root);
        match misplaced(self.root) {
            Some(path) => error.hint(format!("did you mean `{}`?", path.display())),
            None => error.hint(
                "a dump is a folder that holds a folder with .bson files for each database, \
                 or one of these folders",
            ),
        }
    }

    /// Moves what was found into the inventory; the databases are left to list.
    fn finish(mut self, inventory: &mut Inventory) -> Result<Vec<Database>, Error> {
        if !self.has_dump_files && self.preludes.is_empty() {
            return Err(self.nothing_found());
        }
        // The one beside the databases speaks for all of them.
        self.preludes.sort_by_key(|path| path.components().count());
        read_prelude(&self.preludes, inventory);
        inventory.skipped.append(&mut self.skipped);
        inventory.oplogs.append(&mut self.oplogs);
        let skipped = &mut inventory.skipped;
        Ok(self.databases.into_iter().map(|folder| folder.into_database(skipped)).collect())
    }
}

/// Reads the first prelude; a broken one is skipped.
fn read_prelude(paths: &[PathBuf], inventory: &mut Inventory) {
    let Some(path) = paths.first() else { return };
    let prelude = small_file::read(path).and_then(|json| Prelude::parse(&json));
    match prelude {
        Ok(prelude) => {
            inventory.server_version = prelude.server_version;
            inventory.tool_version = prelude.tool_version;
        }
        Err(reason) => inventory.skipped.push(SkippedPath {
            path: path.clone(),
            reason: format!("the prelude cannot be used: {reason}"),
            is_problem: false,
        }),
    }
}

fn prelude_beside(path: &Path) -> Vec<PathBuf> {
    let beside = filename::PRELUDES.iter().map(|name| path.with_file_name(name));
    beside.filter(|path| path.is_file()).collect()
}

/// A database of the one collection that a file holds, with the metadata beside it.
fn one_file(path: &Path, namespace: &Namespace, is_buckets: bool, metadata_stem: &str) -> Database {
    let mut collections: BTreeMap<String, Files> = BTreeMap::new();
    let data_name = if is_buckets { namespace.buckets() } else { namespace.clone() };
    let file_name = path.file_name().unwrap_or_default().to_string_lossy();
    let data = collections.entry(data_name.collection().to_owned()).or_default();
    data.add(filename::role(&file_name), path);
    for suffix in filename::METADATA_SUFFIXES {
        let name = format!("{metadata_stem}{suffix}");
        let beside = path.with_file_name(&name);
        if beside.symlink_metadata().is_ok() {
            let files = collections.entry(namespace.collection().to_owned()).or_default();
            files.add(filename::role(&name), &beside);
        }
    }
    Database { name: namespace.database().to_owned(), collections }
}

/// The one collection that comes through standard input, without options and indexes.
fn from_input(namespace: &Namespace) -> DumpEntry {
    DumpEntry {
        namespace: namespace.clone(),
        kind: CollectionKind::Collection,
        data: Some(Origin::Input),
        metadata: None,
        metadata_path: None,
        problem: None,
    }
}

fn no_such_collection(collection: &str, known: &[String], path: &Path) -> Error {
    let error = Error::new(ErrorKind::Dump, format!("the dump holds no collection `{collection}`"))
        .in_file(path);
    match known {
        [] => error,
        known => error.hint(format!("it holds {}", layout::shown(known))),
    }
}

/// The folder of databases that lies deeper than was thought.
fn misplaced(root: &Path) -> Option<PathBuf> {
    WalkDir::new(root)
        .min_depth(2)
        .max_depth(HINT_DEPTH)
        .sort_by_file_name()
        .into_iter()
        .take(HINT_FILES)
        .filter_map(Result::ok)
        .filter(|item| item.file_type().is_file())
        .find(|item| {
            let name = item.file_name().to_string_lossy();
            matches!(filename::role(&name), Role::Data { .. } | Role::Metadata { .. })
        })
        .and_then(|item| Some(item.path().parent()?.parent()?.to_path_buf()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dump::{CollectionKind, Compression, Dump, DumpEntry};
    use crate::facts::ServerVersion;
    use std::fs;

    fn testdata(path: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata").join(path)
    }

    fn scan_of(path: &Path, database: Option<&str>, collection: Option<&str>) -> Inventory {
        let dump = Dump::locate(path, database, collection).expect("a dump");
        dump.scan().expect("an inventory")
    }

    fn scan(path: &str) -> Inventory {
        scan_of(&testdata(path), None, None)
    }

    fn names(inventory: &Inventory) -> Vec<String> {
        inventory.entries.iter().map(|entry| entry.namespace.to_string()).collect()
    }

    fn find<'a>(inventory: &'a Inventory, name: &str) -> &'a DumpEntry {
        let found = inventory.entries.iter().find(|entry| entry.namespace.to_string() == name);
        found.unwrap_or_else(|| panic!("{name} is missing"))
    }

    fn problems(inventory: &Inventory) -> Vec<&SkippedPath> {
        inventory.skipped.iter().filter(|skipped| skipped.is_problem).collect()
    }

    /// The type of each namespace in which the peer leaves a server, buckets and users left out.
    fn expected(dump: &str) -> BTreeMap<String, String> {
        let text = fs::read(testdata(&format!("dumps/expected/{dump}.json"))).expect("reads");
        let state: serde_json::Value = serde_json::from_slice(&text).expect("JSON");
        let state = state.as_object().expect("an object").iter();
        state
            .filter(|(name, _)| !name.contains(".system.buckets.") && !name.starts_with("admin."))
            .map(|(name, state)| {
                (name.replace('\n', "\\n"), state["type"].as_str().expect("a type").to_owned())
            })
            .collect()
    }

    #[test]
    fn genuine_dumps_hold_what_the_peer_restores() {
        for (dump, version) in [
            ("full_4.2", Some(ServerVersion::new(4, 2, 6))),
            ("full_4.4", Some(ServerVersion::new(4, 4, 2))),
            ("full_5.0", Some(ServerVersion::new(5, 0, 4))),
            ("full_6.0", Some(ServerVersion::new(6, 0, 5))),
            ("kitchen_6.0_gzip", Some(ServerVersion::new(6, 0, 5))),
            ("shop_users_6.0", Some(ServerVersion::new(6, 0, 5))),
        ] {
            let inventory = scan(&format!("dumps/{dump}"));
            let found: BTreeMap<_, _> = inventory
                .entries
                .iter()
                .map(|entry| (entry.namespace.to_string(), entry.kind.name().to_owned()))
                .collect();
            assert_eq!(found, expected(dump), "{dump}");
            assert_eq!(inventory.server_version, version, "{dump}");
            assert!(problems(&inventory).is_empty(), "{dump}: {:?}", inventory.skipped);
            assert!(inventory.entries.iter().all(|entry| entry.metadata.is_some()), "{dump}");
            assert!(inventory.entries.is_sorted_by_key(|entry| &entry.namespace), "{dump}");
        }
    }

    #[test]
    fn metadata_of_a_genuine_dump_matches_what_the_peer_restores() {
        let text = fs::read(testdata("dumps/expected/full_6.0.json")).expect("reads");
        let state: serde_json::Value = serde_json::from_slice(&text).expect("JSON");
        let inventory = scan("dumps/full_6.0");
        let metadata = |name| find(&inventory, name).metadata.clone().expect("metadata");
        for name in ["kitchen.capped", "kitchen.collated", "kitchen.validated", "kitchen.v_small"] {
            let options = bson::Bson::Document(metadata(name).options).into_canonical_extjson();
            assert_eq!(options, state[name]["options"], "{name}");
        }
        let indexes = metadata("kitchen.indexed").indexes;
        let definitions: Vec<_> = indexes.iter().map(crate::dump::IndexSpec::definition).collect();
        let names: Vec<_> =
            definitions.iter().filter_map(|index| index.get_str("name").ok()).collect();
        let state = state["kitchen.indexed"]["indexes"].as_array().expect("a list");
        let mut expected: Vec<_> =
            state.iter().filter_map(|index| index["name"].as_str()).collect();
        let mut sorted = names.clone();
        sorted.sort_unstable();
        expected.sort_unstable();
        assert_eq!(sorted, expected);
        assert_eq!(names[..2], ["_id_", "a_1_b_-1"], "the file's order");
    }

    #[test]
    fn what_the_server_owns_is_noted() {
        let inventory = scan("dumps/full_6.0");
        assert!(inventory.skipped.is_empty(), "{:?}", inventory.skipped);
        let set_aside = inventory.set_aside();
        let skipped: Vec<_> = set_aside
            .iter()
            .map(|skipped| skipped.path.strip_prefix(&inventory.root).expect("inside"))
            .collect();
        let admin =
            ["admin/system.users.bson", "admin/system.roles.bson", "admin/system.version.bson"];
        assert_eq!(skipped, admin.map(Path::new));
        assert_eq!(inventory.users[0].database, None);
        let users = scan("dumps/shop_users_6.0");
        assert_eq!(users.users.len(), 1);
        assert_eq!(users.users[0].database.as_deref(), Some("shop"));
        let files =
            users.users[0].origins().map(|origin| origin.path().file_name().expect("a name"));
        assert_eq!(
            files.collect::<Vec<_>>(),
            ["$admin.system.users.bson", "$admin.system.roles.bson"]
        );
        let oplog = scan("dumps/oplog_6.0");
        assert!(oplog.oplogs[0].origin.path().ends_with("oplog.bson"));
        assert_eq!(oplog.oplogs.len(), 1);
        assert!(names(&oplog).iter().all(|name| name.starts_with("live.")));
        assert!(scan_of(&testdata("dumps/full_6.0"), Some("admin"), None).entries.is_empty());
    }

    #[test]
    fn compressed_dumps_are_read_alike() {
        let inventory = scan("dumps/kitchen_6.0_gzip");
        let weather = find(&inventory, "kitchen.weather");
        assert_eq!(weather.kind, CollectionKind::TimeSeries);
        let data = weather.data.as_ref().and_then(Origin::file).expect("a data file");
        assert_eq!(data.compression, Compression::Gzip);
        assert!(data.path.ends_with("system.buckets.weather.bson.gz"));
        assert_eq!(data.bytes, fs::metadata(&data.path).expect("a file").len());
    }

    #[test]
    fn a_view_dumped_as_a_collection_is_one() {
        let inventory = scan("dumps/view_as_collection_6.0");
        let view = find(&inventory, "kitchen.v_small");
        assert_eq!(view.kind, CollectionKind::Collection);
        assert!(view.data.is_some());
    }

    #[test]
    fn every_way_to_name_a_database_finds_it() {
        let root = testdata("dumps/full_6.0");
        let shop = ["shop.customers", "shop.docs.chunks", "shop.docs.files", "shop.orders"];
        assert_eq!(names(&scan_of(&root, Some("shop"), None)), shop);
        assert_eq!(names(&scan_of(&root.join("shop"), None, None)), shop);
        let renamed = scan_of(&root.join("shop"), Some("store"), Some("orders"));
        assert_eq!(names(&renamed), ["store.orders"]);
        assert_eq!(names(&scan_of(&root, None, Some("orders"))), ["shop.orders"]);
        let weather = scan_of(&root, Some("kitchen"), Some("system.buckets.weather"));
        assert_eq!(names(&weather), ["kitchen.weather"]);
    }

    #[test]
    fn one_file_brings_its_metadata() {
        let orders = testdata("dumps/full_6.0/shop/orders.bson");
        let inventory = scan_of(&orders, None, None);
        assert_eq!(names(&inventory), ["shop.orders"]);
        assert_eq!(inventory.entries[0].metadata.as_ref().expect("metadata").indexes.len(), {
            find(&scan("dumps/full_6.0"), "shop.orders")
                .metadata
                .as_ref()
                .expect("it")
                .indexes
                .len()
        });
        assert_eq!(inventory.server_version, None, "no prelude is looked for in parents");
        let renamed = scan_of(&orders, Some("d"), Some("c"));
        assert_eq!(names(&renamed), ["d.c"]);
        assert!(renamed.entries[0].metadata.is_some());
        let buckets = testdata("dumps/kitchen_6.0_gzip/kitchen/system.buckets.weather.bson.gz");
        let inventory = scan_of(&buckets, None, Some("wind"));
        assert_eq!(find(&inventory, "kitchen.wind").kind, CollectionKind::TimeSeries);
        assert_eq!(inventory.server_version, Some(ServerVersion::new(6, 0, 5)));
        let lone = scan_of(&testdata("dumps/orders_stdout.bson"), Some("shop"), Some("orders"));
        assert_eq!(lone.entries[0].metadata, None);
    }

    #[test]
    fn a_collection_that_is_not_there_is_told() {
        let dump = Dump::locate(&testdata("dumps/full_6.0/shop"), None, Some("order"));
        let error = dump.expect("a dump").scan().expect_err("no such collection");
        assert!(error.to_string().starts_with("the dump holds no collection `order`"), "{error}");
        assert!(error.hint_text().expect("a hint").contains("`shop.orders`"));
    }

    #[test]
    fn a_folder_without_a_dump_says_what_it_holds() {
        let folder = tempfile::tempdir().expect("a folder");
        let refused = |path: &Path| {
            Dump::locate(path, None, None).expect("a folder").scan().expect_err("nothing")
        };
        assert!(refused(folder.path()).to_string().contains("it is empty"));
        let error = refused(&testdata("broken/wrong_level"));
        assert!(error.to_string().contains("`README.md`, `dump`"), "{error}");
        assert!(error.hint_text().expect("a hint").contains("wrong_level/dump`"), "{error:?}");
    }

    #[test]
    fn a_dump_of_nothing_is_one() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("prelude.json"), r#"{"ServerVersion":"7.0.2"}"#).expect("it");
        let inventory = scan_of(folder.path(), None, None);
        assert!(inventory.entries.is_empty());
        assert_eq!(inventory.server_version, Some(ServerVersion::new(7, 0, 2)));
    }

    #[test]
    fn broken_dumps_are_listed_with_their_problem() {
        for (name, is_refused, problem) in [
            ("bad_metadata", true, "orders.metadata.json: the metadata is not valid: EOF"),
            ("bad_percent_name", false, "a%zz.bson: the name holds a `%`"),
            ("cut_name_without_metadata", false, ".bson: the name was cut and no metadata"),
            ("folder_in_database", false, "old: is a dump inside the folder of a database"),
            ("illegal_database_name", false, "my shop: the folder's name is no name of a database"),
            ("metadata_gzip_truncated", true, "json.gz: the metadata file cannot be decompressed"),
            (
                "metadata_missing_for_buckets",
                false,
                "weather.bson: holds buckets, but the metadata file",
            ),
            ("metadata_nested_too_deep", true, "json: the metadata is not valid: nested deeper"),
            (
                "metadata_options_not_an_object",
                true,
                "json: the metadata is not valid: `options` is a",
            ),
            ("two_files_for_one_collection", false, "orders.bson.gz: `orders.bson` of the same"),
            (
                "view_with_documents",
                false,
                "orders.bson: holds documents, but `shop.orders` is a view",
            ),
        ] {
            let inventory = scan(&format!("broken/{name}"));
            assert_eq!(names(&inventory), ["shop.orders"], "{name}");
            let problems = problems(&inventory);
            assert_eq!(problems.len(), 1, "{name}: {problems:?}");
            let told = format!("{}: {}", problems[0].path.display(), problems[0].reason);
            assert!(told.contains(problem), "{name}: {told}");
            assert_eq!(inventory.entries[0].problem.is_some(), is_refused, "{name}");
        }
    }

    #[test]
    fn a_broken_prelude_costs_nothing_but_itself() {
        let inventory = scan("broken/prelude_broken");
        assert_eq!(inventory.server_version, None);
        assert_eq!(names(&inventory), ["shop.orders"]);
        let prelude = inventory.skipped.iter().find(|it| it.path.ends_with("prelude.json"));
        assert!(prelude.expect("it").reason.contains("is no version of a server"));
        assert!(problems(&inventory).is_empty());
    }

    #[test]
    fn damage_inside_data_is_left_to_the_reader() {
        for name in ["truncated_document", "lying_length", "not_bson", "gzip_corrupt"] {
            let inventory = scan(&format!("broken/{name}"));
            assert_eq!(names(&inventory), ["shop.orders"], "{name}");
            assert!(problems(&inventory).is_empty(), "{name}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed_but_not_in_circles() {
        use std::os::unix::fs::symlink;

        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().join("dump");
        let shop = root.join("shop");
        fs::create_dir_all(&shop).expect("creates");
        fs::write(folder.path().join("orders"), b"").expect("writes");
        symlink(folder.path().join("orders"), shop.join("orders.bson")).expect("links");
        symlink(testdata("dumps/full_6.0/shop"), root.join("linked")).expect("links");
        symlink(&root, root.join("circle")).expect("links");
        symlink(&shop, shop.join("circle")).expect("links");
        symlink("nowhere", shop.join("gone.bson")).expect("links");
        fs::write(shop.join("gone.metadata.json"), b"{}").expect("writes");
        let inventory = scan_of(&root, None, None);
        assert_eq!(names(&inventory)[..2], ["linked.customers", "linked.docs.chunks"]);
        assert_eq!(names(&inventory)[4..], ["shop.gone", "shop.orders"]);
        let gone = find(&inventory, "shop.gone");
        assert!(gone.problem.as_deref().expect("a problem").contains("leads nowhere"));
        let told: Vec<_> = problems(&inventory).iter().map(|it| it.reason.as_str()).collect();
        let circle = "is a link to a folder that it lies in";
        assert_eq!(told, [circle, circle, "is a link that leads nowhere"]);
    }

    #[test]
    fn hidden_and_stray_things_are_no_problem() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path();
        for path in [".git/config", "shop/a.bson", "shop/._a.bson", "shop/notes.txt", "README"] {
            let path = root.join(path);
            fs::create_dir_all(path.parent().expect("a parent")).expect("creates");
            fs::write(path, b"").expect("writes");
        }
        fs::create_dir(root.join("shop/b.bson")).expect("creates");
        let inventory = scan_of(root, None, None);
        assert_eq!(names(&inventory), ["shop.a"]);
        let skipped: Vec<_> = inventory
            .skipped
            .iter()
            .map(|skipped| {
                skipped.path.strip_prefix(root).expect("inside").to_str().expect("UTF-8")
            })
            .collect();
        assert_eq!(skipped, [".git", "README", "shop/._a.bson", "shop/b.bson", "shop/notes.txt"]);
        assert!(problems(&inventory).is_empty());
    }
}
