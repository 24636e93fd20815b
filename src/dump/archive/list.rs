//! Makes an inventory of an archive's list of collections.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use super::piece::{self, Piece};
use super::record::{Header, Listed};
use super::{Archive, ArchivePlace, Content, ListedCollection, MAGIC, Segments, is_archive};
use crate::dump::inventory::{
    CollectionKind, Compression, DumpEntry, Inventory, Origin, SkippedPath,
};
use crate::dump::layout::{Selection, shown};
use crate::dump::metadata::CollectionMetadata;
use crate::dump::special::{self, Special};
use crate::dump::stream::{Interrupt, Stream};
use crate::dump::{filename, ownership};
use crate::error::{Error, ErrorKind};
use crate::facts::ServerVersion;
use crate::limits::ARCHIVE_LIST_BYTES_MAX;
use crate::namespace::filter::NamespaceFilter;
use crate::namespace::{BUCKETS_PREFIX, Namespace};

/// What an archive's list says of one collection.
struct Described {
    namespace: Namespace,
    kind: CollectionKind,
    metadata: Option<CollectionMetadata>,
    problem: Option<String>,
}

/// Reads the list of an archive and makes an inventory of what is selected of it. Collections that
/// the filter does not take are listed all the same, users and roles are not.
pub(crate) fn scan(
    place: &ArchivePlace,
    selection: &Selection,
    filter: &NamespaceFilter,
    interrupt: Option<Interrupt>,
) -> Result<Inventory, Error> {
    let mut stream = place.open(interrupt).map_err(in_dump)?;
    begin(&mut stream)?;
    let header = read_header(&mut stream).map_err(in_dump)?;
    let described = without_buckets(read_list(&mut stream).map_err(in_dump)?);
    let regular = place.path().metadata().ok().filter(std::fs::Metadata::is_file);
    let archive = Archive {
        content: Arc::new(Content {
            place: place.clone(),
            compression: stream.compression(),
            bytes: regular.filter(|_| *place != ArchivePlace::Input).map(|file| file.len()),
            collections: described
                .iter()
                .map(|one| ListedCollection { namespace: one.namespace.clone(), kind: one.kind })
                .collect(),
            blocks_at: stream.offset(),
            unread: Mutex::new(Some(stream)),
        }),
    };
    let mut inventory = Inventory { root: place.path().to_path_buf(), ..Inventory::default() };
    name_versions(&header, &mut inventory);
    select(&archive, described, Wanted { selection, filter }, &mut inventory)?;
    inventory.entries.sort_unstable_by(|a, b| a.namespace.cmp(&b.namespace));
    inventory.skipped.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(inventory)
}

/// What is wrong with the list is wrong with the dump as a whole.
fn in_dump(error: Error) -> Error {
    error.at_stage(ErrorKind::Dump)
}

/// Goes past the magic number.
fn begin(stream: &mut Stream) -> Result<(), Error> {
    stream.fill(MAGIC.len()).map_err(in_dump)?;
    if is_archive(stream.ahead()) {
        stream.advance(MAGIC.len());
        return Ok(());
    }
    // A little more tells what it is instead; that there is less is told as well.
    let _ = stream.fill(16);
    let (what, hint) = likeness(stream.ahead());
    let packed = match stream.compression() {
        Compression::None => String::new(),
        other => format!(" once it is unpacked as {}", other.name()),
    };
    let message = format!("this is not an archive: it {what}{packed}");
    Err(in_dump(stream.error(message).hint(hint)))
}

/// What bytes that are no archive look like, and what to do about it.
fn likeness(first: &[u8]) -> (&'static str, &'static str) {
    const BEGINS: &str =
        "an archive begins with the bytes 6d e2 99 81; mongodump --archive writes it";
    let is_cut = !first.is_empty() && MAGIC.starts_with(first);
    let length = first.first_chunk::<4>().map(|prefix| u32::from_le_bytes(*prefix));
    // The first field of a dumped document is `_id`, of one of a few types.
    let is_bson = length == Some(5)
        || first.get(5..9) == Some(b"_id\0") && length.is_some_and(|length| length < 1 << 25);
    match first {
        [] => ("is empty", "whatever should write it may have failed"),
        _ if is_cut => ("ends inside its first four bytes", "it was cut off; take the dump again"),
        _ if is_bson => (
            "looks like the documents of one collection",
            "give a .bson file without --archive, or `-` with --db and --collection for standard \
             input",
        ),
        [b'{', ..] => ("looks like JSON", "a metadata file is no dump; give the folder it lies in"),
        [0x1F, 0x8B, ..] | [0x28, 0xB5, 0x2F, 0xFD, ..] => {
            ("is compressed", "it was compressed twice; unpack it once")
        }
        _ => ("is of no kind that is known", BEGINS),
    }
}

fn read_header(stream: &mut Stream) -> Result<Header, Error> {
    let Piece::Document(length) = piece::look(stream, |_| {})? else {
        return Err(stream.error("the archive ends before its header"));
    };
    let header = Header::parse(piece::document(stream, length)?)
        .map_err(|what| stream.error(format!("the archive's header is damaged: {what}")))?;
    stream.advance(length);
    Ok(header)
}

/// Reads the list up to its terminator and goes past it.
fn read_list(stream: &mut Stream) -> Result<Vec<Described>, Error> {
    let mut described = Vec::new();
    let mut known = HashSet::new();
    loop {
        let length = match piece::look(stream, |_| {})? {
            Piece::Document(length) => length,
            Piece::Terminator => break,
            Piece::End => {
                return Err(stream
                    .error("the archive ends inside its list of collections")
                    .hint("it was cut off here; take the dump again"));
            }
        };
        if stream.offset() + length as u64 > ARCHIVE_LIST_BYTES_MAX {
            let mebibytes = ARCHIVE_LIST_BYTES_MAX >> 20;
            return Err(stream.error(format!("the list of collections is above {mebibytes} MiB")));
        }
        let frame = piece::document(stream, length)?;
        let listed = Listed::parse(frame)
            .map_err(|what| stream.error(format!("the list of collections is damaged: {what}")))?;
        let one = describe(&listed);
        if !known.insert(one.namespace.clone()) {
            let message = format!("the list of collections names `{}` twice", one.namespace);
            return Err(stream.error(message));
        }
        described.push(one);
        stream.advance(length);
    }
    stream.advance(piece::TERMINATOR.len());
    Ok(described)
}

fn describe(listed: &Listed<'_>) -> Described {
    let mut problem = None;
    let metadata = match listed.metadata {
        "" => None,
        text => CollectionMetadata::parse(text.as_bytes())
            .map_err(|reason| {
                problem = Some(format!("its metadata in the archive is not valid: {reason}"));
            })
            .ok(),
    };
    let says = |what: fn(&CollectionMetadata) -> bool| metadata.as_ref().is_some_and(what);
    let kind = if says(CollectionMetadata::is_view) {
        CollectionKind::View
    } else if says(CollectionMetadata::is_time_series) || listed.kind == "timeseries" {
        CollectionKind::TimeSeries
    } else {
        CollectionKind::Collection
    };
    let namespace = Namespace::new(listed.database, listed.collection);
    if problem.is_none() && !listed.database.is_empty() && !filename::is_database(listed.database) {
        problem = Some(format!("{:?} is no name of a database", listed.database));
    }
    Described { namespace, kind, metadata, problem }
}

/// Leaves out buckets whose time-series collection is listed as well: they are its documents.
fn without_buckets(mut described: Vec<Described>) -> Vec<Described> {
    let series: HashSet<_> = described
        .iter()
        .filter(|one| one.kind == CollectionKind::TimeSeries)
        .map(|one| one.namespace.clone())
        .collect();
    described.retain(|one| one.namespace.of_buckets().is_none_or(|name| !series.contains(&name)));
    described
}

fn name_versions(header: &Header, inventory: &mut Inventory) {
    let version = ServerVersion::parse(&header.server_version);
    if version.is_none() && !matches!(header.server_version.as_str(), "" | "unknown") {
        inventory.skipped.push(SkippedPath {
            path: inventory.root.clone(),
            reason: format!("its {:?} is no version of a server", header.server_version),
            is_problem: false,
        });
    }
    inventory.server_version = version;
    inventory.tool_version = Some(header.tool_version.clone()).filter(|tool| !tool.is_empty());
}

/// What of an archive is wanted.
#[derive(Clone, Copy)]
struct Wanted<'a> {
    selection: &'a Selection,
    filter: &'a NamespaceFilter,
}

/// Makes entries of the collections that are selected and belong to users; users, roles and the
/// oplog go where they belong.
fn select(
    archive: &Archive,
    described: Vec<Described>,
    Wanted { selection, filter }: Wanted<'_>,
    inventory: &mut Inventory,
) -> Result<(), Error> {
    let names: Vec<_> = described.iter().map(|one| one.namespace.to_string()).collect();
    let mut has_any = false;
    for (place, one) in described.into_iter().enumerate() {
        if !is_selected(selection, &one.namespace) {
            continue;
        }
        has_any = true;
        let origin = Origin::Segments(Segments { archive: archive.clone(), place });
        if let Some(special) = special::of(&one.namespace) {
            if special == Special::Oplog || filter.takes(&one.namespace) {
                special::add(special, &one.namespace, origin, inventory);
            }
            continue;
        }
        if let Some((reason, is_problem)) = reason_to_skip(&one) {
            let path = PathBuf::from(one.namespace.to_string());
            inventory.skipped.push(SkippedPath { path, reason, is_problem });
            continue;
        }
        inventory.entries.push(DumpEntry {
            data: Some(origin),
            namespace: one.namespace,
            kind: one.kind,
            metadata: one.metadata,
            metadata_path: None,
            problem: one.problem,
        });
    }
    if has_any || selection == &Selection::default() {
        return Ok(());
    }
    let wanted = match (&selection.database, &selection.collection) {
        (Some(database), Some(collection)) => format!("no collection `{database}.{collection}`"),
        (Some(database), None) => format!("no database `{database}`"),
        (None, collection) => {
            format!("no collection `{}`", collection.as_deref().unwrap_or_default())
        }
    };
    let error = Error::new(ErrorKind::Dump, format!("the archive holds {wanted}"));
    Err(error.in_file(archive.path()).hint(match names.as_slice() {
        [] => "it lists no collection".to_owned(),
        names => format!("it holds {}", shown(names)),
    }))
}

fn is_selected(selection: &Selection, namespace: &Namespace) -> bool {
    let is = |wanted: &Option<String>, name: &str| wanted.as_ref().is_none_or(|one| one == name);
    let collection = namespace.collection();
    let logical = collection.strip_prefix(BUCKETS_PREFIX).unwrap_or(collection);
    is(&selection.database, namespace.database()) && is(&selection.collection, logical)
}

fn reason_to_skip(one: &Described) -> Option<(String, bool)> {
    let namespace = &one.namespace;
    if let Some(logical) = namespace.of_buckets() {
        let reason = format!("holds buckets, but the metadata of `{logical}` is not in the list");
        return Some((reason, true));
    }
    ownership::reason_to_skip(namespace).map(|reason| (reason.to_owned(), false))
}
