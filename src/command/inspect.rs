//! Looks through a dump: counts what it holds and finds what is damaged.

mod archive;
mod deep;
mod id;
mod ids;
mod json;
mod scan;
mod text;

use std::path::PathBuf;

use crate::dump::{CollectionKind, Compression, Dump, Inventory, Location, SkippedPath};
use crate::error::Error;
use crate::facts::ServerVersion;
use crate::namespace::Namespace;

/// Which dump is looked through, and how the outcome is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InspectOptions {
    /// Where the dump is.
    pub dump: Location,
    /// Only this database.
    pub database: Option<String>,
    /// Only this collection.
    pub collection: Option<String>,
    /// How much is checked.
    pub depth: Depth,
    /// How the outcome is shown.
    pub form: InspectForm,
}

/// How much is checked of a dump that is read to its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Depth {
    /// The structure of documents and all checksums.
    #[default]
    Plain,
    /// Text, `_id`s, sizes and the definitions of indexes as well; damage is read around.
    Deep,
}

impl Depth {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Deep => "deep",
        }
    }
}

/// How an inspection is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InspectForm {
    /// For a person.
    Table,
    /// For a program.
    Json,
}

/// What was found in a dump.
#[derive(Clone, Debug, Default)]
pub struct Inspection {
    /// Where the dump is.
    pub root: PathBuf,
    /// The version of the server the dump was taken from, where the dump says it.
    pub server_version: Option<ServerVersion>,
    /// The version of the tool that took the dump, where the dump says it.
    pub tool_version: Option<String>,
    /// The size of the archive in bytes, where the dump is one in a file.
    pub archive_bytes: Option<u64>,
    /// How much was checked.
    pub depth: Depth,
    /// The collections, in byte order of their names.
    pub collections: Vec<InspectedCollection>,
    /// Files and folders that are not restored, each with the reason.
    pub skipped: Vec<SkippedPath>,
}

/// What was found in the files of one collection.
#[derive(Clone, Debug)]
pub struct InspectedCollection {
    /// Its full name.
    pub namespace: Namespace,
    /// What kind of collection it is.
    pub kind: CollectionKind,
    /// What its data file holds; nothing for views and collections without a data file.
    pub data: Option<InspectedData>,
    /// How many indexes its metadata defines, the one on `_id` included.
    pub indexes: usize,
    /// What is wrong: the first few damaged documents, then what ended the reading.
    pub problems: Vec<Problem>,
}

/// What a data file holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InspectedData {
    /// Where it is.
    pub path: PathBuf,
    /// How it is compressed.
    pub compression: Compression,
    /// Its size on disk in bytes; not known of one collection among those of an archive.
    pub file_bytes: Option<u64>,
    /// The documents, damaged ones included, up to where the file could be read.
    pub documents: u64,
    /// Their bytes, uncompressed.
    pub bytes: u64,
    /// The bytes of the largest document.
    pub largest: u64,
    /// Documents without an `_id`; a server gives them a new one each time they are restored.
    pub without_id: u64,
    /// Documents whose inner structure is damaged.
    pub damaged: u64,
    /// What only a deep inspection looks for.
    pub deep: Option<DeepFindings>,
}

/// What a deep inspection found in a data file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeepFindings {
    /// The levels of the most deeply nested document.
    pub deepest: usize,
    /// Stretches that are no documents.
    pub lost_stretches: u64,
    /// Their bytes, uncompressed.
    pub lost_bytes: u64,
    /// Documents with names or strings that are not UTF-8.
    pub not_utf8: u64,
    /// Documents with an `_id` that no server takes.
    pub bad_ids: u64,
    /// Documents larger than a server stores.
    pub too_large: u64,
    /// Documents whose `_id` one before them has.
    pub duplicate_ids: u64,
}

impl InspectedData {
    /// The average size of a document in bytes, rounded down; zero where there is none.
    pub fn average(&self) -> u64 {
        self.bytes.checked_div(self.documents).unwrap_or(0)
    }
}

/// Something wrong with a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file.
    pub file: PathBuf,
    /// Where the document begins that is damaged or cut off, in the uncompressed content.
    pub offset: Option<u64>,
    /// What is wrong; a sentence without its final period.
    pub what: String,
}

/// The sums over all collections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Collections of every kind.
    pub collections: u64,
    /// Documents.
    pub documents: u64,
    /// Their bytes, uncompressed.
    pub bytes: u64,
    /// The bytes of the largest document.
    pub largest: u64,
    /// The data files' size on disk in bytes.
    pub file_bytes: u64,
    /// Indexes.
    pub indexes: u64,
    /// Problems, listed and unlisted, and skipped paths that may hold data.
    pub problems: u64,
}

impl InspectedCollection {
    /// The number of problems, those that are not listed included.
    pub fn problem_count(&self) -> u64 {
        let listed = self.problems.len() as u64;
        listed + self.unlisted()
    }

    /// Findings beyond those that are listed.
    pub fn unlisted(&self) -> u64 {
        let damaged = self.data.as_ref().map_or(0, |data| data.damaged);
        let deep = self.data.as_ref().and_then(|data| data.deep);
        damaged.saturating_sub(scan::LISTED_MAX) + deep.map_or(0, |deep| deep.unlisted())
    }
}

impl Inspection {
    /// Whether anything is damaged, cut off or unreadable; stray files are no problem.
    pub fn has_problems(&self) -> bool {
        self.totals().problems > 0
    }

    /// The sums over all collections.
    pub fn totals(&self) -> Totals {
        let unread = self.skipped.iter().filter(|skipped| skipped.is_problem).count();
        let mut totals = Totals { problems: unread as u64, ..Totals::default() };
        for collection in &self.collections {
            totals.collections += 1;
            totals.indexes += collection.indexes as u64;
            totals.problems += collection.problem_count();
            if let Some(data) = &collection.data {
                totals.documents += data.documents;
                totals.bytes += data.bytes;
                totals.largest = totals.largest.max(data.largest);
                totals.file_bytes += data.file_bytes.unwrap_or(0);
            }
        }
        totals.file_bytes += self.archive_bytes.unwrap_or(0);
        totals
    }

    /// The inspection in the wanted form: a table, the problems and what was skipped, or JSON of
    /// the schema `restorm.inspect/1` on one line; ends in a line's end.
    ///
    /// Where a width in columns is given, long names are shortened in the table to fit into it.
    pub fn shown(&self, form: InspectForm, width: Option<usize>) -> String {
        match form {
            InspectForm::Table => text::text(self, width),
            InspectForm::Json => format!("{}\n", json::json(self)),
        }
    }
}

/// Finds the dump and inspects it.
pub fn run(options: &InspectOptions) -> Result<Inspection, Error> {
    let (database, collection) = (options.database.as_deref(), options.collection.as_deref());
    let inventory = Dump::at(&options.dump, database, collection)?.scan()?;
    Ok(inspect(&inventory, options.depth))
}

/// Reads every data file of the inventory to its end, on all threads of the current rayon pool; an
/// archive on the calling thread.
pub fn inspect(inventory: &Inventory, depth: Depth) -> Inspection {
    let archive = archive::archive_of(&inventory.entries);
    let (collections, strays) = match archive {
        Some(archive) => archive::scan_all(archive, &inventory.entries, depth),
        None => (scan::scan_all(&inventory.entries, depth), Vec::new()),
    };
    let skipped = inventory.skipped.iter().cloned().chain(inventory.set_aside());
    Inspection {
        root: inventory.root.clone(),
        server_version: inventory.server_version,
        tool_version: inventory.tool_version.clone(),
        archive_bytes: archive.and_then(crate::dump::archive::Archive::bytes),
        depth,
        collections,
        skipped: skipped.chain(strays).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An inspection with everything in it that a form can show.
    pub(super) fn sample() -> Inspection {
        let problem = |offset, what: &str| Problem {
            file: PathBuf::from("dump/shop/orders.bson.gz"),
            offset,
            what: what.to_owned(),
        };
        let orders = InspectedCollection {
            namespace: Namespace::new("shop", "orders_of_the_last_twelve_months_by_customer"),
            kind: CollectionKind::Collection,
            data: Some(InspectedData {
                path: PathBuf::from("dump/shop/orders.bson.gz"),
                compression: Compression::Gzip,
                file_bytes: Some(61_000_000),
                documents: 1_234_567,
                bytes: 222_222_222,
                largest: 1024,
                without_id: 1,
                damaged: 100,
                deep: None,
            }),
            indexes: 2,
            problems: vec![
                problem(Some(4096), "a document is damaged 12 bytes in: an unknown type"),
                problem(None, "cannot be opened"),
            ],
        };
        let recent = InspectedCollection {
            namespace: Namespace::new("shop", "recent"),
            kind: CollectionKind::View,
            data: None,
            indexes: 0,
            problems: Vec::new(),
        };
        Inspection {
            archive_bytes: None,
            depth: Depth::Plain,
            root: PathBuf::from("dump"),
            server_version: Some(ServerVersion::new(6, 0, 5)),
            tool_version: Some("100.18.0".to_owned()),
            collections: vec![orders, recent],
            skipped: vec![SkippedPath {
                path: PathBuf::from("dump/notes.txt"),
                reason: "not part of a dump".to_owned(),
                is_problem: false,
            }],
        }
    }

    #[test]
    fn strays_are_no_problem_but_unread_data_is() {
        let mut inspection = Inspection { skipped: sample().skipped, ..Inspection::default() };
        assert!(!inspection.has_problems());
        inspection.skipped[0].is_problem = true;
        assert!(inspection.has_problems());
        assert!(inspection.shown(InspectForm::Table, None).contains("problems:\n  dump/notes.txt"));
    }
}
