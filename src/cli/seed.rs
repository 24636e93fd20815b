//! The arguments of `restorm seed`.

mod amount;
mod filling;
mod like;

use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::{Args, ValueEnum};

use crate::cli::output;
use crate::command::restore::RestoreOptions;
use crate::command::seed::{self, SeedOptions, SeedOutput};
use crate::dump::Compression;
use crate::dump::writer::Existing;
use crate::error::{Error, ErrorKind};
use crate::exit::ExitStatus;
use crate::limits::PARALLEL_COLLECTIONS_MAX;
use crate::seed::{BlobBytes, Recipe, SeedSpec, Shape, Spec, Wanted};
use amount::AmountArgs;
use filling::FillingArgs;
use like::LikeArgs;

/// Fill a server, a dump directory or an archive with made-up documents
///
/// The same arguments give the same documents, byte for byte, on any machine and any number of
/// threads. They are of a built-in shape, in collections named c00001, c00002 and so on, or those
/// of a spec, which `--like` proposes for a collection that is there. A server is filled as
/// `restore` does it: the same batches, progress, balance, ledger, report and exit status.
#[derive(Args, Clone, Debug)]
#[command(after_help = after_help(), disable_help_flag = true)]
pub struct SeedArgs {
    /// The dump directory to write; made where it is not there
    #[arg(long, short, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Write an archive to this file instead, `-` for standard output
    #[arg(long, value_name = "FILE", conflicts_with = "out")]
    archive: Option<PathBuf>,

    /// Make what this file describes: collections with their fields, options and indexes, in TOML
    #[arg(long, value_name = "FILE", help_heading = "A spec")]
    #[arg(conflicts_with_all = ["shape", "size", "collections", "indexes"])]
    spec: Option<PathBuf>,

    #[command(flatten)]
    like: LikeArgs,

    /// How many collections
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    collections: u32,

    #[command(flatten)]
    amount: AmountArgs,

    /// What the documents look like
    #[arg(long, value_enum, default_value_t = ShapeArg::Wide)]
    shape: ShapeArg,

    /// The size of a blob's document, or the smallest and the largest of them as in 1kB..16MiB
    /// [default: 64KiB]
    #[arg(long, value_name = "SIZE", value_parser = amount::blob_bytes)]
    size: Option<BlobBytes>,

    /// The database that holds the collections [default: that of the spec or of the
    /// connection string, else seed]
    #[arg(long, visible_alias = "db", value_name = "NAME")]
    database: Option<String>,

    /// How many secondary indexes of each collection: at most 8 for wide, 6 for orders, 2 for sink
    /// and points, 1 for blob, 0 for empty
    #[arg(long, value_name = "N", default_value_t = 0)]
    indexes: usize,

    /// Chooses one of many sets of documents
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,

    /// How the files are compressed
    #[arg(long, value_enum, value_name = "METHOD", default_value_t = CompressArg::None)]
    compress: CompressArg,

    /// Replace the dump of this database in DIR, where other files stay, or the archive
    #[arg(long)]
    overwrite: bool,

    /// Print help; `-h` is the host, as in restore
    #[arg(long, action = clap::ArgAction::Help)]
    help: Option<bool>,

    #[command(flatten)]
    filling: FillingArgs,
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum ShapeArg {
    /// An order of about 180 bytes: eleven fields, ten types
    Wide,
    /// 71 bytes: _id, key, bytes, headers, ts
    Sink,
    /// An _id alone, 22 bytes
    Empty,
    /// _id as a whole number from 0, x, y, label: 53 bytes
    Points,
    /// Binary data of --size that no compressor makes smaller
    Blob,
    /// An order with items and history, documents in arrays: about 900 bytes
    Orders,
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum CompressArg {
    /// Plain .bson files
    None,
    /// .bson.gz, as mongodump --gzip writes
    Gzip,
    /// .bson.zst, which mongorestore does not read
    Zstd,
}

fn after_help() -> String {
    format!(
        "Examples:\n  \
         restorm seed --out dump --collections 1 --documents 1000000\n  \
         restorm seed --uri mongodb://db1 --collections 20 --total-bytes 38GB --indexes 3\n  \
         restorm seed --uri mongodb://db1 --duration 10m --drop\n  \
         restorm seed --uri mongodb://db1 --spec shop.toml --scale 0.1\n  \
         restorm seed --like mongodb://db1/shop.orders > orders.toml\n  \
         restorm seed --out part2 --documents 1000000 --from 500000\n  \
         restorm seed --archive - --collections 8 | restorm restore --archive\n  \
         restorm seed --null --documents 10000000                 how fast documents are made\n\n\
         Exit status:\n{}",
        ExitStatus::table()
    )
}

/// What is to be done.
enum Task {
    /// Files are written.
    Write(SeedOptions),
    /// A server is filled, or nothing is.
    Fill(Box<RestoreOptions>),
}

impl SeedArgs {
    /// What the arguments ask for; `warn` shows what is unsafe or without effect.
    fn to_task(&self, warn: &dyn Fn(&str)) -> Result<Task, Error> {
        let is_written = self.out.is_some() || self.archive.is_some();
        match (is_written, self.filling.is_meant()) {
            (true, false) => Ok(Task::Write(self.to_options()?)),
            (false, true) => self.to_filling(warn).map(|options| Task::Fill(Box::new(options))),
            (true, true) => {
                Err(usage("documents go into files or into a server, not into both at once"))
            }
            (false, false) => Err(usage("it is not said where the documents go")
                .hint("name a server with --uri, a directory with --out or a file with --archive")),
        }
    }

    fn to_options(&self) -> Result<SeedOptions, Error> {
        if self.amount.duration().is_some() {
            return Err(usage("--duration is for a server; files hold a number of documents"));
        }
        if let Some(name) = self.filling.needless_for_files() {
            return Err(usage(format!("--{name} is for a server; files are written without it")));
        }
        let compression = match self.compress {
            CompressArg::None => Compression::None,
            CompressArg::Gzip => Compression::Gzip,
            CompressArg::Zstd => Compression::Zstd,
        };
        let existing = if self.overwrite { Existing::Replace } else { Existing::Refuse };
        let out = match (&self.archive, &self.out) {
            (Some(file), _) if file == Path::new("-") => SeedOutput::ArchiveOutput,
            (Some(file), _) => SeedOutput::Archive(file.clone()),
            (None, folder) => SeedOutput::Folder(folder.clone().unwrap_or_default()),
        };
        Ok(SeedOptions { out, recipe: self.recipe(None)?, compression, existing })
    }

    fn to_filling(&self, warn: &dyn Fn(&str)) -> Result<RestoreOptions, Error> {
        if self.overwrite || self.compress != CompressArg::None {
            let refused = "--overwrite and --compress are for files";
            return Err(usage(refused).hint("--drop drops the collections of a server first"));
        }
        let server = self.filling.server(warn)?;
        let of_server = server.as_ref().and_then(|server| server.database.clone());
        let recipe = self.recipe(of_server)?;
        let duration = self.amount.duration();
        let all_at_once = duration.map(|_| recipe.collections().count() as usize);
        if all_at_once.is_some_and(|collections| collections > PARALLEL_COLLECTIONS_MAX) {
            let message = format!(
                "--duration fills all collections at once, which is at most \
                 {PARALLEL_COLLECTIONS_MAX}"
            );
            return Err(usage(message));
        }
        self.filling.onto(server.as_ref(), all_at_once, seed::filling(&recipe, duration)?)
    }

    fn shape(&self) -> Result<Shape, Error> {
        if self.size.is_some() && self.shape != ShapeArg::Blob {
            return Err(usage("--size is the size of documents of --shape blob"));
        }
        Ok(match self.shape {
            ShapeArg::Wide => Shape::Wide,
            ShapeArg::Sink => Shape::Sink,
            ShapeArg::Empty => Shape::Empty,
            ShapeArg::Points => Shape::Points,
            ShapeArg::Blob => Shape::Blob(self.size.unwrap_or_default()),
            ShapeArg::Orders => Shape::Orders,
        })
    }

    fn recipe(&self, of_server: Option<String>) -> Result<Recipe, Error> {
        let Some(file) = &self.spec else {
            return Ok(Recipe::Shape(self.shapes(self.database.clone().or(of_server))?));
        };
        let (database, otherwise) = (self.database.as_deref(), of_server.as_deref());
        let read = |amount| Spec::read(file, Wanted { database, otherwise, amount });
        Ok(Recipe::Spec(self.amount.run_of(self.seed, read)?))
    }

    fn shapes(&self, database: Option<String>) -> Result<SeedSpec, Error> {
        let database = database.unwrap_or_else(|| "seed".to_owned());
        let mut spec = SeedSpec {
            database,
            collections: self.collections,
            first: 0,
            documents: 0,
            shape: self.shape()?,
            indexes: self.indexes,
            seed: self.seed,
        };
        let numbers = self.amount.numbers(|bytes| spec.documents_for(bytes))?;
        spec.first = numbers.start;
        spec.documents = numbers.end - numbers.start;
        Ok(spec)
    }
}

fn usage(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Usage, message)
}

/// Makes the documents and says what came of it.
pub(super) async fn run(args: SeedArgs) -> Result<ExitStatus, Error> {
    let began = Instant::now();
    let speaker = args.filling.speaker(began);
    if args.like.is_meant() {
        return args.like.run(&args.filling.connection, &|text| speaker.warn(text)).await;
    }
    match args.to_task(&|text| speaker.warn(text))? {
        Task::Write(options) => {
            let summary = seed::run(&options)?;
            if !args.filling.is_quiet() {
                output::say(&summary.line());
            }
            Ok(ExitStatus::Restored)
        }
        Task::Fill(options) => Box::pin(args.filling.fill(&options, began)).await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::restore::{Destination, ExistingPolicy, Workers};
    use crate::dump::{Location, Origin};
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        seed: SeedArgs,
    }

    fn task(line: &str) -> Result<Task, String> {
        let words = std::iter::once("seed").chain(line.split_whitespace());
        let line = Line::try_parse_from(words).map_err(|error| error.to_string())?;
        line.seed.to_task(&|_| {}).map_err(|error| error.to_string())
    }

    fn options(line: &str) -> SeedOptions {
        match task(line).expect("parsed") {
            Task::Write(options) => options,
            Task::Fill(_) => panic!("{line} writes files"),
        }
    }

    fn filling(line: &str) -> RestoreOptions {
        match task(line).expect("parsed") {
            Task::Fill(options) => *options,
            Task::Write(_) => panic!("{line} fills a server"),
        }
    }

    #[test]
    fn only_the_directory_must_be_given() {
        let spec = SeedSpec {
            database: "seed".to_owned(),
            collections: 1,
            first: 0,
            documents: 1000,
            shape: Shape::Wide,
            indexes: 0,
            seed: 1,
        };
        let (compression, existing) = (Compression::None, Existing::Refuse);
        assert_eq!(
            options("--out dump"),
            SeedOptions {
                out: SeedOutput::Folder("dump".into()),
                recipe: Recipe::Shape(spec),
                compression,
                existing
            }
        );
    }

    #[test]
    fn every_flag_reaches_the_options() {
        let options = options(
            "-o d --collections 7 --documents 9 --from 2 --count 3 --shape sink --db shop \
             --indexes 2 --seed 9 --compress zstd --overwrite",
        );
        let spec = SeedSpec {
            database: "shop".to_owned(),
            collections: 7,
            first: 2,
            documents: 3,
            shape: Shape::Sink,
            indexes: 2,
            seed: 9,
        };
        let (compression, existing) = (Compression::Zstd, Existing::Replace);
        assert_eq!(
            options,
            SeedOptions {
                out: SeedOutput::Folder("d".into()),
                recipe: Recipe::Shape(spec),
                compression,
                existing
            }
        );
    }

    #[test]
    fn a_server_is_filled_with_what_is_made() {
        let options = filling("--uri mongodb://x/shop --drop --workers 3 -j 2 --indexes 1");
        let Location::Made(dump) = &options.dump else { panic!("it is made") };
        let [entry] = &dump.inventory().entries[..] else { panic!("one collection") };
        assert_eq!(entry.namespace.to_string(), "shop.c00001");
        assert!(matches!(&entry.data, Some(Origin::Made(made)) if made.bytes() > 170_000));
        assert_eq!(entry.metadata.as_ref().map(|metadata| metadata.indexes.len()), Some(2));
        assert_eq!(options.selection.existing, ExistingPolicy::Drop);
        assert_eq!((options.settings.workers, options.settings.readers), (Workers::Fixed(3), 2));
        assert_eq!(options.verify, None);
        assert_eq!(options.told.len(), 3);
        assert!(matches!(filling("--null").destination, Destination::Null));
    }

    #[test]
    fn blobs_have_their_size() {
        let made = |line: &str| match options(line).recipe {
            Recipe::Shape(spec) => spec,
            Recipe::Spec(_) => panic!("{line} has no spec"),
        };
        let shape = |line: &str| made(line).shape;
        let sizes = |min, max| Shape::Blob(BlobBytes::between(min, max).expect("possible"));
        assert_eq!(shape("-o d --shape blob"), sizes(65_536, 65_536));
        assert_eq!(shape("-o d --shape blob --size 5kB"), sizes(5000, 5000));
        assert_eq!(shape("-o d --shape blob --size 1KiB..16MiB"), sizes(1024, 16_777_216));
        let spec = made("-o d --shape blob --size 1kB..3kB --total-bytes 1MB");
        assert_eq!(spec.documents, 500);
    }

    #[test]
    fn a_soak_fills_all_collections_at_once_and_compares() {
        let options = filling("--host x --collections 20 --duration 10m");
        assert_eq!(options.settings.readers, 20);
        assert!(options.verify.is_some());
        assert_eq!(filling("--null --duration 1s").verify, None);
    }

    #[test]
    fn wrong_values_are_refused() {
        for line in [
            "",
            "--out d --collections 0",
            "--out d --documents -1",
            "--out d --shape tall",
            "--out d --compress snappy",
            "--out d --archive a",
            "--out d --uri mongodb://x",
            "--out d --null",
            "--out d --drop",
            "--out d --workers 3",
            "--out d --report r.json",
            "--out d --progress lines",
            "--out d -v",
            "--out d --resume",
            "--null --spec s --shape wide",
            "--null --spec s --collections 2",
            "--null --spec missing.toml",
            "--like a.b --out d",
            "--null --overwrite",
            "--null --compress gzip",
            "--out d --duration 1m",
            "--null --uri mongodb://x",
            "--null --duration 1m --collections 257",
            "--null --duration 1m --resume",
            "--null --duration 1m --ledger file",
            "--null --indexes 9",
            "--null --size 5kB",
            "--null --shape blob --size 17MiB",
            "--null --shape blob --size 5kB..4kB",
        ] {
            assert!(task(line).is_err(), "{line}");
        }
    }
}
