//! Turns the files of one database's folder into entries.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::dump::filename::{self, Role};
use crate::dump::inventory::{CollectionKind, DumpEntry, Inventory, Origin, SkippedPath};
use crate::dump::legacy_indexes::{self, LegacyIndexes};
use crate::dump::metadata::CollectionMetadata;
use crate::dump::special::{self, Special};
use crate::dump::{ownership, small_file};
use crate::namespace::filter::NamespaceFilter;
use crate::namespace::{BUCKETS_PREFIX, Namespace, logical};

/// The files of one collection.
#[derive(Debug, Default)]
pub(crate) struct Files {
    data: Vec<Candidate>,
    metadata: Vec<Candidate>,
    problem: Option<String>,
}

/// A file that may be the one to restore; of several, that of the lowest rank is.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    rank: usize,
    path: PathBuf,
}

impl Files {
    /// Adds a file by what its name says it is; says nothing of other files.
    pub(crate) fn add(&mut self, role: Role<'_>, path: &Path) {
        let path = path.to_path_buf();
        match role {
            Role::Data { rank, .. } => self.data.push(Candidate { rank, path }),
            Role::Metadata { rank, .. } => self.metadata.push(Candidate { rank, path }),
            Role::Prelude | Role::Stray => {}
        }
    }

    /// Notes why the collection must not be restored; the first reason stands.
    pub(crate) fn note_problem(&mut self, problem: String) {
        self.problem.get_or_insert(problem);
    }

    fn append(&mut self, mut other: Self) {
        self.data.append(&mut other.data);
        self.metadata.append(&mut other.metadata);
        if let Some(problem) = other.problem {
            self.note_problem(problem);
        }
    }

    fn is_empty(&self) -> bool {
        self.data.is_empty() && self.metadata.is_empty() && self.problem.is_none()
    }

    /// The file to name where the collection as a whole is meant.
    fn first_path(&self) -> Option<&Path> {
        self.data.iter().min().or(self.metadata.iter().min()).map(|file| file.path.as_path())
    }
}

/// The collections of one database, by their names; buckets by the names of the buckets.
#[derive(Debug)]
pub(crate) struct Database {
    /// The database's name.
    pub(crate) name: String,
    /// The files of each collection.
    pub(crate) collections: BTreeMap<String, Files>,
}

/// The folder of one database, by the beginnings of its files' names.
#[derive(Debug)]
pub(crate) struct DatabaseFolder {
    name: String,
    stems: BTreeMap<String, Files>,
}

/// The files of a time-series collection or of any other one.
#[derive(Default)]
struct Group {
    own: Files,
    buckets: Files,
}

impl DatabaseFolder {
    /// An empty folder of a database.
    pub(crate) fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), stems: BTreeMap::new() }
    }

    /// The database's name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The files whose names begin so, none yet where there are none.
    pub(crate) fn files(&mut self, stem: &str) -> &mut Files {
        self.stems.entry(stem.to_owned()).or_default()
    }

    /// Tells the collections' names; what has none is skipped.
    pub(crate) fn into_database(self, skipped: &mut Vec<SkippedPath>) -> Database {
        let mut collections: BTreeMap<String, Files> = BTreeMap::new();
        let mut nameless = Vec::new();
        for (stem, files) in self.stems {
            match name_of(&stem, &files) {
                Ok(name) => collections.entry(name).or_default().append(files),
                Err(reason) => nameless.push((stem, files, reason)),
            }
        }
        for (stem, files, reason) in nameless {
            // The metadata that would tell the name of cut buckets is that of their collection.
            let buckets = collections
                .keys()
                .map(|name| format!("{BUCKETS_PREFIX}{name}"))
                .find(|name| filename::is_cut(&stem) && filename::encode(name) == stem);
            match buckets {
                Some(name) => collections.entry(name).or_default().append(files),
                None => skip_all(skipped, files.data.into_iter().chain(files.metadata), &reason),
            }
        }
        Database { name: self.name, collections }
    }
}

impl Database {
    /// The full names of its collections, buckets among them.
    pub(crate) fn names(&self) -> Vec<String> {
        self.collections.keys().map(|name| Namespace::new(&self.name, name).to_string()).collect()
    }

    /// Leaves out the collections that are not wanted, but for the definitions of indexes, which
    /// belong to others.
    pub(crate) fn wanted(
        mut self,
        filter: &NamespaceFilter,
        left_out: &mut Vec<Namespace>,
    ) -> Self {
        let database = &self.name;
        let mut unwanted = std::collections::BTreeSet::new();
        self.collections.retain(|name, _| {
            let namespace = Namespace::new(database, logical(name));
            let is_wanted = name == legacy_indexes::COLLECTION || filter.takes(&namespace);
            if !is_wanted && ownership::reason_to_skip(&namespace).is_none() {
                unwanted.insert(namespace);
            }
            is_wanted
        });
        left_out.extend(unwanted);
        self
    }

    /// Makes entries of the collections, all or the selected one, and says whether there was any
    /// to make one of.
    pub(crate) fn list(self, selected: Option<&str>, inventory: &mut Inventory) -> bool {
        let mut groups: BTreeMap<String, Group> = BTreeMap::new();
        for (name, files) in self.collections {
            match logical(&name) {
                logical if logical != name => {
                    groups.entry(logical.to_owned()).or_default().buckets.append(files);
                }
                _ => groups.entry(name).or_default().own.append(files),
            }
        }
        let mut legacy = Legacy::of(groups.remove(legacy_indexes::COLLECTION));
        groups.retain(|name, _| selected.is_none_or(|selected| selected == name));
        let has_any = !groups.is_empty();
        for (collection, group) in groups {
            let namespace = Namespace::new(&self.name, collection);
            if let Some(special) = special::of(&namespace) {
                list_special(special, &namespace, group, inventory);
            } else if let Some(reason) = ownership::reason_to_skip(&namespace) {
                let path = group.own.first_path().or(group.buckets.first_path());
                inventory.skipped.extend(path.map(|path| SkippedPath {
                    path: path.to_path_buf(),
                    reason: reason.to_owned(),
                    is_problem: false,
                }));
            } else if let Some(mut entry) = entry(namespace, group, &mut inventory.skipped) {
                legacy.give(&mut entry);
                inventory.entries.push(entry);
            }
        }
        legacy.tell(&mut inventory.skipped);
        has_any
    }
}

/// The definitions of indexes for collections that have no metadata of their own.
struct Legacy {
    paths: Vec<PathBuf>,
    indexes: Option<LegacyIndexes>,
    used: usize,
}

impl Legacy {
    fn of(group: Option<Group>) -> Self {
        let mut files = group.map(|group| group.own.data).unwrap_or_default();
        files.sort_unstable();
        let paths = files.into_iter().map(|file| file.path).collect();
        Self { paths, indexes: None, used: 0 }
    }

    /// Gives a collection without metadata its indexes; the file is read once one is in need.
    fn give(&mut self, entry: &mut DumpEntry) {
        let Some(path) = self.paths.first() else { return };
        if entry.metadata.is_some() || entry.problem.is_some() {
            return;
        }
        let legacy = self.indexes.get_or_insert_with(|| legacy_indexes::read(path));
        if let Some(indexes) = legacy.by_collection.remove(entry.namespace.collection()) {
            entry.metadata = Some(CollectionMetadata { indexes, ..CollectionMetadata::default() });
            entry.metadata_path = Some(path.clone());
            self.used += 1;
        }
    }

    /// Says what became of the files.
    fn tell(self, skipped: &mut Vec<SkippedPath>) {
        let damage = self.indexes.and_then(|indexes| indexes.damage);
        let is_problem = damage.is_some();
        let reason = match (damage, self.used) {
            (Some(damage), _) => {
                format!("{damage}; collections without metadata may lack indexes")
            }
            (None, 0) => "indexes are restored from metadata files".to_owned(),
            (None, 1) => "its indexes are used for 1 collection without metadata".to_owned(),
            (None, used) => format!("its indexes are used for {used} collections without metadata"),
        };
        let mut paths = self.paths.into_iter();
        let told = |path, reason, is_problem| SkippedPath { path, reason, is_problem };
        if let Some(first) = paths.next() {
            let other = instead(&first);
            skipped.push(told(first, reason, is_problem));
            skipped.extend(paths.map(|path| told(path, other.clone(), false)));
        }
    }
}

/// Lists what is restored by other means than a collection; it needs no metadata.
fn list_special(special: Special, namespace: &Namespace, group: Group, inventory: &mut Inventory) {
    let problem = group.own.problem;
    if let Some(path) = prefer(group.own.data, &mut inventory.skipped) {
        match small_file::examine(&path) {
            Ok(file) => special::add(special, namespace, Origin::File(file), inventory),
            Err(reason) => {
                inventory.skipped.push(SkippedPath { path, reason, is_problem: true });
            }
        }
    } else if let (Some(reason), Some(path)) = (problem, group.own.metadata.first()) {
        let path = path.path.clone();
        inventory.skipped.push(SkippedPath { path, reason, is_problem: true });
    }
}

/// The collection's name that the beginning of a file's name stands for.
fn name_of(stem: &str, files: &Files) -> Result<String, String> {
    if !filename::is_cut(stem) {
        return filename::decode(stem).map_err(|error| error.to_string());
    }
    let mut reason = "the name was cut and no metadata tells the whole".to_owned();
    for file in &files.metadata {
        match read_metadata(&file.path) {
            // The name is taken as it is: it was never encoded.
            Ok(Some(CollectionMetadata { collection_name: Some(name), .. }))
                if !name.is_empty() =>
            {
                return Ok(name);
            }
            Ok(_) => {}
            Err(problem) => reason = format!("the name was cut and {problem}"),
        }
    }
    Err(reason)
}

/// The entry of one collection; none where all its files are orphans.
fn entry(
    namespace: Namespace,
    mut group: Group,
    skipped: &mut Vec<SkippedPath>,
) -> Option<DumpEntry> {
    let has_own = !group.own.is_empty();
    let metadata_path = prefer(std::mem::take(&mut group.own.metadata), skipped);
    let mut problem = group.own.problem.take().or(group.buckets.problem.take());
    let metadata = match metadata_path.as_deref().map_or(Ok(None), read_metadata) {
        Ok(metadata) => metadata,
        Err(reason) => {
            note(metadata_path.as_deref()?, &reason, &mut problem, skipped);
            None
        }
    };
    let kind = kind(metadata.as_ref(), !group.buckets.data.is_empty() && problem.is_some());
    let bucket_metadata = std::mem::take(&mut group.buckets.metadata);
    skipped.extend(bucket_metadata.into_iter().map(|file| SkippedPath {
        path: file.path,
        reason: "options and indexes of a time-series collection stand under its own name".into(),
        is_problem: false,
    }));
    let data_path = data_path(kind, group, metadata.is_some(), &namespace, skipped);
    let data = data_path.and_then(|path| match small_file::examine(&path) {
        Ok(file) => Some(Origin::File(file)),
        Err(reason) => {
            note(&path, &format!("the data file {reason}"), &mut problem, skipped);
            None
        }
    });
    if !has_own && data.is_none() && problem.is_none() {
        return None;
    }
    let metadata_path = metadata_path.filter(|_| metadata.is_some());
    Some(DumpEntry { namespace, kind, data, metadata, metadata_path, problem })
}

/// The kind that metadata describes. Buckets whose metadata is there but broken can only be those
/// of a time-series collection.
fn kind(metadata: Option<&CollectionMetadata>, has_broken_buckets: bool) -> CollectionKind {
    match metadata {
        Some(metadata) if metadata.is_time_series() => CollectionKind::TimeSeries,
        Some(metadata) if metadata.is_view() => CollectionKind::View,
        None if has_broken_buckets => CollectionKind::TimeSeries,
        _ => CollectionKind::Collection,
    }
}

/// The data file to restore into a collection of this kind; all others are skipped.
fn data_path(
    kind: CollectionKind,
    group: Group,
    has_metadata: bool,
    namespace: &Namespace,
    skipped: &mut Vec<SkippedPath>,
) -> Option<PathBuf> {
    let (mut own, buckets) = (group.own.data, group.buckets.data);
    if kind == CollectionKind::TimeSeries {
        let buckets = prefer(buckets, skipped);
        if let Some(path) = &buckets {
            skip_all(skipped, own, &instead(path));
            return buckets;
        }
        return prefer(own, skipped);
    }
    let reason = if has_metadata {
        format!(
            "holds buckets, but the metadata of `{namespace}` describes no time-series collection"
        )
    } else {
        format!("holds buckets, but the metadata file of `{namespace}` is missing")
    };
    skip_all(skipped, buckets, &reason);
    if kind == CollectionKind::View {
        own.retain(|file| file.path.metadata().is_ok_and(|metadata| metadata.len() > 0));
        skip_all(skipped, own, &format!("holds documents, but `{namespace}` is a view"));
        return None;
    }
    prefer(own, skipped)
}

/// The file of the lowest rank; the others are skipped.
fn prefer(mut files: Vec<Candidate>, skipped: &mut Vec<SkippedPath>) -> Option<PathBuf> {
    files.sort_unstable();
    let mut files = files.into_iter();
    let first = files.next()?.path;
    skip_all(skipped, files, &instead(&first));
    Some(first)
}

fn instead(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str());
    format!("`{}` of the same collection is taken instead", name.to_string_lossy())
}

fn skip_all(
    skipped: &mut Vec<SkippedPath>,
    files: impl IntoIterator<Item = Candidate>,
    reason: &str,
) {
    skipped.extend(files.into_iter().map(|file| SkippedPath {
        path: file.path,
        reason: reason.to_owned(),
        is_problem: true,
    }));
}

/// Skips a file that the collection cannot do without.
fn note(path: &Path, reason: &str, problem: &mut Option<String>, skipped: &mut Vec<SkippedPath>) {
    problem.get_or_insert(format!("{reason}, in {}", path.display()));
    let path = path.to_path_buf();
    skipped.push(SkippedPath { path, reason: reason.to_owned(), is_problem: true });
}

/// What a metadata file says; nothing where it is empty.
fn read_metadata(path: &Path) -> Result<Option<CollectionMetadata>, String> {
    let json = small_file::read(path).map_err(|reason| format!("the metadata file {reason}"))?;
    if json.is_empty() {
        return Ok(None);
    }
    let metadata = CollectionMetadata::parse(&json)
        .map_err(|reason| format!("the metadata is not valid: {reason}"))?;
    Ok(Some(metadata))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const TIME_SERIES: &[u8] = br#"{"options":{"timeseries":{"timeField":"t"}}}"#;
    const VIEW: &[u8] = br#"{"options":{"viewOn":"a","pipeline":[]},"type":"view"}"#;
    const PLAIN: &[u8] = br#"{"indexes":[]}"#;

    struct Listed {
        _folder: tempfile::TempDir,
        entries: Vec<DumpEntry>,
        skipped: Vec<SkippedPath>,
    }

    impl Listed {
        /// Lists a database of the given files.
        fn of(database: &str, files: &[(&str, &[u8])]) -> Self {
            let folder = tempfile::tempdir().expect("a folder");
            let mut found = DatabaseFolder::new(database);
            for (name, content) in files {
                let path = folder.path().join(name);
                fs::write(&path, content).expect("writes");
                match filename::role(name) {
                    role @ (Role::Data { stem, .. } | Role::Metadata { stem, .. }) => {
                        found.files(stem).add(role, &path);
                    }
                    other => panic!("{name} is {other:?}"),
                }
            }
            let mut inventory = Inventory::default();
            let database = found.into_database(&mut inventory.skipped);
            database.list(None, &mut inventory);
            inventory.skipped.extend(inventory.set_aside());
            Self { _folder: folder, entries: inventory.entries, skipped: inventory.skipped }
        }

        /// The only entry, of which there must be one.
        fn only(&self) -> &DumpEntry {
            assert_eq!(self.entries.len(), 1, "{:?}", self.entries);
            &self.entries[0]
        }

        fn data_name(&self) -> Option<String> {
            let path = &self.only().data.as_ref()?.file()?.path;
            Some(path.file_name()?.to_str()?.to_owned())
        }

        /// The names of the skipped files with a problem and of those without.
        fn skipped(&self) -> (Vec<String>, Vec<String>) {
            let name = |path: &SkippedPath| {
                path.path.file_name().expect("a name").to_string_lossy().into_owned()
            };
            let (problems, notes): (Vec<_>, Vec<_>) =
                self.skipped.iter().partition(|skipped| skipped.is_problem);
            let names = |paths: Vec<&SkippedPath>| {
                let mut names: Vec<_> = paths.into_iter().map(name).collect();
                names.sort_unstable();
                names
            };
            (names(problems), names(notes))
        }
    }

    #[test]
    fn either_half_of_a_collection_is_enough() {
        let data = Listed::of("shop", &[("a.bson", b"")]);
        assert_eq!(data.data_name().as_deref(), Some("a.bson"));
        assert_eq!(data.only().metadata, None);
        let metadata = Listed::of("shop", &[("a.metadata.json", PLAIN)]);
        assert!(metadata.only().data.is_none());
        assert!(metadata.only().metadata.is_some());
        assert!(metadata.only().metadata_path.is_some());
        let empty = Listed::of("shop", &[("a.bson", b""), ("a.metadata.json", b"")]);
        assert_eq!((empty.only().metadata.clone(), empty.only().problem.clone()), (None, None));
        assert_eq!(empty.only().metadata_path, None);
    }

    #[test]
    fn of_several_data_files_the_plain_one_is_taken() {
        let listed = Listed::of(
            "shop",
            &[("a.bin", b""), ("a.bson.gz", b""), ("a.bson", b""), ("a.bson.zst", b"")],
        );
        assert_eq!(listed.data_name().as_deref(), Some("a.bson"));
        assert_eq!(listed.skipped().0, ["a.bin", "a.bson.gz", "a.bson.zst"]);
        let encoded_twice = Listed::of("shop", &[("a+b.bson", b""), ("a%20b.bson", b"")]);
        assert_eq!(encoded_twice.only().namespace, Namespace::new("shop", "a b"));
        assert_eq!(encoded_twice.skipped().0.len(), 1);
    }

    #[test]
    fn buckets_belong_to_their_time_series_collection() {
        for data in ["system.buckets.w.bson", "w.bson.gz"] {
            let listed = Listed::of("shop", &[(data, b""), ("w.metadata.json", TIME_SERIES)]);
            assert_eq!(listed.only().namespace, Namespace::new("shop", "w"));
            assert_eq!(listed.only().kind, CollectionKind::TimeSeries);
            assert_eq!(listed.data_name().as_deref(), Some(data));
            assert!(listed.skipped.is_empty());
        }
    }

    #[test]
    fn buckets_without_their_metadata_are_orphans() {
        let listed = Listed::of("shop", &[("system.buckets.w.bson", b"")]);
        assert!(listed.entries.is_empty());
        assert_eq!(listed.skipped().0, ["system.buckets.w.bson"]);
        assert!(listed.skipped[0].reason.contains("metadata file of `shop.w` is missing"));
        let ordinary =
            Listed::of("shop", &[("system.buckets.w.bson", b""), ("w.metadata.json", PLAIN)]);
        assert_eq!(ordinary.only().kind, CollectionKind::Collection);
        assert!(ordinary.only().data.is_none());
        assert!(ordinary.skipped[0].reason.contains("describes no time-series"));
    }

    #[test]
    fn a_view_has_no_documents() {
        let view = Listed::of("shop", &[("v.metadata.json", VIEW), ("v.bson", b"")]);
        assert_eq!(view.only().kind, CollectionKind::View);
        assert_eq!((view.data_name(), view.skipped.len()), (None, 0));
        let full = Listed::of("shop", &[("v.metadata.json", VIEW), ("v.bson", b"12345")]);
        assert_eq!(full.data_name(), None);
        assert_eq!(full.skipped().0, ["v.bson"]);
    }

    #[test]
    fn broken_metadata_keeps_its_collection_from_being_restored() {
        let listed =
            Listed::of("shop", &[("a.bson", b""), ("a.metadata.json", b"{\n\"indexes\":}")]);
        let problem = listed.only().problem.as_deref().expect("a problem");
        assert!(problem.starts_with("the metadata is not valid: expected value at line 2 column"));
        assert!(problem.ends_with("a.metadata.json"), "{problem}");
        assert_eq!(listed.data_name().as_deref(), Some("a.bson"));
        assert_eq!(listed.skipped().0, ["a.metadata.json"]);
        let buckets =
            Listed::of("shop", &[("system.buckets.w.bson", b""), ("w.metadata.json", b"{")]);
        assert_eq!(buckets.only().kind, CollectionKind::TimeSeries);
        assert!(buckets.only().problem.is_some());
    }

    #[test]
    fn what_a_server_owns_is_noted_once() {
        let listed = Listed::of(
            "admin",
            &[("system.users.bson", b""), ("system.users.metadata.json", b"{"), ("a.bson", b"")],
        );
        assert_eq!(listed.only().namespace.collection(), "a");
        assert_eq!(listed.skipped(), (vec![], vec!["system.users.bson".to_owned()]));
    }

    /// A name whose end is lost in its file's name, and holds what decoding would change.
    fn long_name() -> String {
        format!("{}+100%", "long name ".repeat(30))
    }

    #[test]
    fn a_cut_name_is_taken_from_the_metadata_as_it_is() {
        let name = long_name();
        let stem = filename::encode(&name);
        let json = CollectionMetadata { collection_name: Some(name.clone()), ..Default::default() };
        let (data, metadata) = (format!("{stem}.bson"), format!("{stem}.metadata.json"));
        let listed = Listed::of("shop", &[(&data, b""), (&metadata, json.to_json().as_bytes())]);
        assert_eq!(listed.only().namespace.collection(), name);
        let nameless = Listed::of("shop", &[(&data, b""), (&metadata, PLAIN)]);
        assert!(nameless.entries.is_empty());
        assert_eq!(nameless.skipped().0, [data, metadata]);
    }

    #[test]
    fn cut_buckets_are_found_by_their_collection() {
        let name = long_name();
        let data = format!("{}.bson", filename::encode(&format!("{BUCKETS_PREFIX}{name}")));
        let metadata = format!("{}.metadata.json", filename::encode(&name));
        let mut json = CollectionMetadata::parse(TIME_SERIES).expect("metadata");
        json.collection_name = Some(name.clone());
        let listed = Listed::of("shop", &[(&data, b""), (&metadata, json.to_json().as_bytes())]);
        assert_eq!(listed.only().namespace.collection(), name);
        assert_eq!(listed.data_name(), Some(data));
    }
}
