//! The arguments of `restorm seed`.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use crate::cli::output;
use crate::command::seed::{self, SeedOptions, SeedOutput};
use crate::dump::Compression;
use crate::dump::writer::Existing;
use crate::error::Error;
use crate::exit::ExitStatus;
use crate::seed::{SeedSpec, Shape};

/// Fill a dump directory or an archive with made-up documents
///
/// The same arguments give the same documents, byte for byte, on any machine and any number of
/// threads. Collections are named c00001, c00002 and so on.
#[derive(Args, Clone, Debug)]
#[command(after_help = after_help())]
pub struct SeedArgs {
    /// The dump directory to write; made where it is not there
    #[arg(long, short, value_name = "DIR", required_unless_present = "archive")]
    out: Option<PathBuf>,

    /// Write an archive to this file instead, `-` for standard output
    #[arg(long, value_name = "FILE", conflicts_with = "out")]
    archive: Option<PathBuf>,

    /// How many collections
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    collections: u32,

    /// How many documents in each collection
    #[arg(long, value_name = "N", default_value_t = 1000)]
    documents: u64,

    /// What the documents look like
    #[arg(long, value_enum, default_value_t = ShapeArg::Wide)]
    shape: ShapeArg,

    /// The database that holds the collections
    #[arg(long, visible_alias = "db", value_name = "NAME", default_value = "seed")]
    database: String,

    /// How many secondary indexes in each collection's metadata: at most 8 for wide, 2 for sink, 0
    /// for empty
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
}

#[derive(ValueEnum, Clone, Copy, Debug)]
enum ShapeArg {
    /// An order of about 180 bytes: eleven fields, ten types
    Wide,
    /// 71 bytes: _id, key, bytes, headers, ts
    Sink,
    /// An _id alone, 22 bytes
    Empty,
}

#[derive(ValueEnum, Clone, Copy, Debug)]
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
         restorm seed --out dump --collections 10000 --documents 100 --shape sink\n  \
         restorm seed --out dump --documents 500000 --indexes 3 --compress zstd\n  \
         restorm seed --archive - --collections 8 | restorm restore --archive\n\n\
         Exit status:\n{}",
        ExitStatus::table()
    )
}

impl SeedArgs {
    /// The arguments as options of the command.
    pub fn into_options(self) -> SeedOptions {
        let spec = SeedSpec {
            database: self.database,
            collections: self.collections,
            documents: self.documents,
            shape: match self.shape {
                ShapeArg::Wide => Shape::Wide,
                ShapeArg::Sink => Shape::Sink,
                ShapeArg::Empty => Shape::Empty,
            },
            indexes: self.indexes,
            seed: self.seed,
        };
        let compression = match self.compress {
            CompressArg::None => Compression::None,
            CompressArg::Gzip => Compression::Gzip,
            CompressArg::Zstd => Compression::Zstd,
        };
        let existing = if self.overwrite { Existing::Replace } else { Existing::Refuse };
        let out = match (self.archive, self.out) {
            (Some(file), _) if file == Path::new("-") => SeedOutput::ArchiveOutput,
            (Some(file), _) => SeedOutput::Archive(file),
            (None, folder) => SeedOutput::Folder(folder.unwrap_or_default()),
        };
        SeedOptions { out, spec, compression, existing }
    }
}

/// Writes the dump and says what was written.
pub(super) fn run(args: SeedArgs) -> Result<ExitStatus, Error> {
    let summary = seed::run(&args.into_options())?;
    output::say(&summary.line());
    Ok(ExitStatus::Restored)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        seed: SeedArgs,
    }

    fn options(line: &str) -> Result<SeedOptions, clap::Error> {
        let words = std::iter::once("seed").chain(line.split_whitespace());
        Line::try_parse_from(words).map(|line| line.seed.into_options())
    }

    #[test]
    fn only_the_directory_must_be_given() {
        let options = options("--out dump").expect("parsed");
        let spec = SeedSpec {
            database: "seed".to_owned(),
            collections: 1,
            documents: 1000,
            shape: Shape::Wide,
            indexes: 0,
            seed: 1,
        };
        let (compression, existing) = (Compression::None, Existing::Refuse);
        assert_eq!(
            options,
            SeedOptions { out: SeedOutput::Folder("dump".into()), spec, compression, existing }
        );
    }

    #[test]
    fn every_flag_reaches_the_options() {
        let options = options(
            "-o d --collections 7 --documents 0 --shape sink --db shop --indexes 2 --seed 9 \
             --compress zstd --overwrite",
        )
        .expect("parsed");
        let spec = SeedSpec {
            database: "shop".to_owned(),
            collections: 7,
            documents: 0,
            shape: Shape::Sink,
            indexes: 2,
            seed: 9,
        };
        let (compression, existing) = (Compression::Zstd, Existing::Replace);
        assert_eq!(
            options,
            SeedOptions { out: SeedOutput::Folder("d".into()), spec, compression, existing }
        );
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
        ] {
            assert!(options(line).is_err(), "{line}");
        }
    }
}
