//! Fills a dump directory, an archive or a server with made-up documents.

pub mod like;

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::command::restore::{Destination, RestoreOptions};
use crate::dump::writer::archive::{ArchiveFile, ArchiveWriter};
use crate::dump::writer::{DumpWriter, Existing};
use crate::dump::{Compression, Location, MadeDump, filename};
use crate::error::{Error, ErrorKind};
use crate::report::format;
use crate::seed::archive::{self, INTERLEAVED};
use crate::seed::{self, Collections, Produced, Recipe, making};

/// The server's version in a made-up archive, because the peer reads no archive that names none;
/// of this one it does nothing out of the ordinary.
const SERVER_VERSION: &str = "6.0.0";

/// What is made and where it goes.
#[derive(Clone, Debug, PartialEq)]
pub struct SeedOptions {
    /// Where it goes.
    pub out: SeedOutput,
    /// The documents.
    pub recipe: Recipe,
    /// How the files are compressed.
    pub compression: Compression,
    /// What to do about what is already in the directory.
    pub existing: Existing,
}

/// Where made-up documents go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SeedOutput {
    /// Into a dump directory.
    Folder(PathBuf),
    /// Into an archive.
    Archive(PathBuf),
    /// Into an archive on standard output.
    ArchiveOutput,
}

/// What was made, and how long it took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeedSummary {
    /// How many collections.
    pub collections: u32,
    /// The documents of all collections.
    pub produced: Produced,
    /// The time from the start to the last file's end.
    pub took: Duration,
}

impl SeedSummary {
    /// The summary as one line for a person.
    pub fn line(&self) -> String {
        let seconds = self.took.as_secs_f64();
        format!(
            "{} in {}, {}, in {seconds:.1} s ({} documents/s)",
            format::counted(self.produced.documents, "document", "documents"),
            format::counted(self.collections.into(), "collection", "collections"),
            format::bytes(self.produced.bytes),
            format::count(per_second(self.produced.documents, self.took)),
        )
    }
}

/// What fills a server with the documents: a restore of a dump that lies nowhere. Its destination
/// is still to be named. With a duration, documents are made until it is over.
pub fn filling(recipe: &Recipe, duration: Option<Duration>) -> Result<RestoreOptions, Error> {
    check(recipe)?;
    let collections = recipe.collections();
    let name = format!("made-up {} documents", collections.name());
    let dump = MadeDump::new(name, making::inventory(collections, duration));
    let dump = Location::Made(dump);
    Ok(RestoreOptions { dump, ..RestoreOptions::new("", Destination::Null) })
}

/// Makes the documents on all threads of the current rayon pool.
pub fn run(options: &SeedOptions) -> Result<SeedSummary, Error> {
    check(&options.recipe)?;
    let began = Instant::now();
    let produced = match &options.out {
        SeedOutput::Folder(folder) => to_folder(options, folder)?,
        SeedOutput::Archive(file) => to_file(options, file)?,
        SeedOutput::ArchiveOutput => {
            let out = BufWriter::new(std::io::stdout().lock());
            to_archive(options, out, Path::new("standard output"))?
        }
    };
    let collections = options.recipe.collections().count();
    Ok(SeedSummary { collections, produced, took: began.elapsed() })
}

fn to_folder(options: &SeedOptions, folder: &Path) -> Result<Produced, Error> {
    let dump = DumpWriter::create(folder, options.compression, options.existing)?;
    let collections = options.recipe.collections();
    collections.databases().into_iter().try_for_each(|name| dump.begin_database(name))?;
    let produced = seed::produce(collections, &dump)?;
    dump.finish()?;
    Ok(produced)
}

fn to_file(options: &SeedOptions, path: &Path) -> Result<Produced, Error> {
    if options.existing == Existing::Refuse && path.exists() {
        return Err(Error::new(ErrorKind::Dump, "the file is there already")
            .in_file(path)
            .hint("name another file, or use --overwrite to replace it"));
    }
    let file = ArchiveFile::create(path)?;
    let produced = to_archive(options, file.out()?, path)?;
    file.finish()?;
    Ok(produced)
}

fn to_archive(options: &SeedOptions, out: impl Write, name: &Path) -> Result<Produced, Error> {
    let interleaved = i32::try_from(INTERLEAVED).unwrap_or(i32::MAX);
    let listed = archive::listed(options.recipe.collections());
    ArchiveWriter::begin(out, options.compression, interleaved, Some(SERVER_VERSION), &listed)
        .and_then(|mut archive| {
            let produced = archive::append(options.recipe.collections(), &mut archive)?;
            archive.finish()?;
            Ok(produced)
        })
        .map_err(|error| {
            let message = format!("the archive cannot be written: {error}");
            Error::new(ErrorKind::Dump, message).in_file(name)
        })
}

fn check(recipe: &Recipe) -> Result<(), Error> {
    let collections: &dyn Collections = recipe.collections();
    if let Some(name) = collections.databases().iter().find(|name| !filename::is_database(name)) {
        return Err(usage(format!("\"{}\" cannot be a database's name", name.escape_debug()))
            .hint("use 1 to 63 bytes of letters, digits, - and _"));
    }
    let Recipe::Shape(spec) = recipe else { return Ok(()) };
    let possible = spec.shape.indexes().len();
    if spec.indexes > possible {
        let shape = spec.shape.name();
        return Err(usage(format!("{} indexes on {shape} documents", spec.indexes))
            .hint(format!("{shape} documents have fields for at most {possible}")));
    }
    Ok(())
}

fn usage(message: String) -> Error {
    Error::new(ErrorKind::Usage, message)
}

fn per_second(documents: u64, took: Duration) -> u64 {
    let nanoseconds = took.as_nanos().max(1);
    u64::try_from(u128::from(documents) * 1_000_000_000 / nanoseconds).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seed::{SeedSpec, Shape};

    fn options(out: PathBuf) -> SeedOptions {
        with(out, |_| {})
    }

    fn with(out: PathBuf, change: impl FnOnce(&mut SeedSpec)) -> SeedOptions {
        let mut spec = SeedSpec {
            database: "seed".to_owned(),
            collections: 2,
            first: 0,
            documents: 1000,
            shape: Shape::Sink,
            indexes: 1,
            seed: 1,
        };
        change(&mut spec);
        let (compression, existing) = (Compression::None, Existing::Refuse);
        let (out, recipe) = (SeedOutput::Folder(out), Recipe::Shape(spec));
        SeedOptions { out, recipe, compression, existing }
    }

    #[test]
    fn a_run_leaves_a_whole_dump() {
        let folder = tempfile::tempdir().expect("a folder");
        let out = folder.path().join("a/b");
        let summary = run(&options(out.clone())).expect("made");
        assert_eq!(summary.produced, Produced { documents: 2000, bytes: 142_000 });
        assert!(out.join("prelude.json").exists());
        let data = out.join("seed/c00002.bson").metadata().expect("there");
        assert_eq!(data.len(), 71_000);
        let again = run(&options(out)).expect_err("refused");
        assert!(again.hint_text().is_some_and(|hint| hint.contains("--overwrite")));
    }

    #[test]
    fn an_archive_is_whole_or_not_there() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("a.archive");
        let archive = SeedOptions {
            out: SeedOutput::Archive(file.clone()),
            ..options(PathBuf::from("never"))
        };
        run(&archive).expect("made");
        let inventory = crate::dump::Dump::locate(&file, None, None).and_then(|dump| dump.scan());
        let inspection = crate::command::inspect::inspect(
            &inventory.expect("an archive"),
            crate::command::inspect::Depth::Plain,
        );
        assert!(!inspection.has_problems());
        assert_eq!(inspection.totals().documents, 2000);
        assert_eq!(folder.path().read_dir().expect("listed").count(), 1);
        let again = run(&archive).expect_err("refused");
        assert!(again.hint_text().is_some_and(|hint| hint.contains("--overwrite")));
    }

    #[test]
    fn the_summary_is_one_line() {
        let summary = SeedSummary {
            collections: 10,
            produced: Produced { documents: 3_000_000, bytes: 213_000_000 },
            took: Duration::from_millis(1500),
        };
        assert_eq!(
            summary.line(),
            "3,000,000 documents in 10 collections, 213 MB, in 1.5 s (2,000,000 documents/s)"
        );
    }

    #[test]
    fn names_that_are_no_database_are_refused_before_anything_is_made() {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["", "..", "a/b", "a b", "a\0", &"x".repeat(64)] {
            let change = |spec: &mut SeedSpec| spec.database = name.to_owned();
            let options = with(folder.path().join("out"), change);
            let error = run(&options).expect_err("refused");
            assert_eq!(error.kind(), ErrorKind::Usage, "{name}");
        }
        assert!(!folder.path().join("out").exists());
    }

    #[test]
    fn more_indexes_than_fields_are_refused() {
        let options = with(PathBuf::from("never"), |spec| spec.indexes = 3);
        let error = run(&options).expect_err("refused");
        assert!(error.to_string().contains("3 indexes on sink documents"), "{error}");
    }
}
