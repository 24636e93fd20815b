//! The arguments of `restorm inspect`.

use std::path::PathBuf;

use clap::Args;

use crate::cli::output::{self, Stream};
use crate::cli::source::SourceArgs;
use crate::command::inspect::{self, Depth, InspectForm, InspectOptions};
use crate::error::Error;
use crate::exit::ExitStatus;

/// Show what a dump holds and whether it is sound
///
/// Every data file or the archive is read to its end. The structure of every document and all
/// checksums are checked: those of an archive, of gzip and of zstd. Damaged and cut files are named
/// with the byte at which the damage begins, and the exit status is 1.
///
/// With --deep names and strings must be UTF-8 as well, documents no larger than a server stores,
/// each _id one that a server takes and the only one of its value, whatever its number type, and
/// the definitions of indexes sane. What lies behind damage is looked for and checked, too, and
/// lost bytes are counted.
#[derive(Args, Clone, Debug)]
#[command(after_help = after_help())]
pub struct InspectArgs {
    /// The dump directory, an archive, or `-` for one collection on standard input
    #[arg(value_name = "DUMP")]
    dump: Option<PathBuf>,

    #[command(flatten)]
    source: SourceArgs,

    /// Only this database
    #[arg(long, short, visible_alias = "database", value_name = "NAME")]
    db: Option<String>,

    /// Only this collection
    #[arg(long, short, value_name = "NAME", requires = "db")]
    collection: Option<String>,

    /// Check text, nesting, sizes, _ids and the definitions of indexes as well, and read on behind
    /// damage
    #[arg(long)]
    deep: bool,

    /// Print JSON of the schema restorm.inspect/1 instead of a table
    #[arg(long)]
    json: bool,
}

fn after_help() -> String {
    format!(
        "Examples:\n  \
         restorm inspect dump\n  \
         restorm inspect dump --deep\n  \
         restorm inspect dump --db shop --collection orders\n  \
         restorm inspect backup.archive\n  \
         ssh db1 mongodump --archive | restorm inspect --archive\n  \
         restorm inspect dump --json | jq .totals\n\n\
         Exit status:\n{}",
        ExitStatus::table()
    )
}

impl InspectArgs {
    /// The arguments as options of the command.
    pub fn into_options(self) -> Result<InspectOptions, Error> {
        let form = if self.json { InspectForm::Json } else { InspectForm::Table };
        let depth = if self.deep { Depth::Deep } else { Depth::Plain };
        let dump = self.source.source(self.dump.as_deref())?.location;
        Ok(InspectOptions { dump, database: self.db, collection: self.collection, depth, form })
    }
}

/// Reads the dump and prints what it holds.
pub(super) fn run(args: InspectArgs) -> Result<ExitStatus, Error> {
    let options = args.into_options()?;
    let inspection = inspect::run(&options)?;
    output::data(&inspection.shown(options.form, output::columns(Stream::Out)));
    let is_whole = !inspection.has_problems();
    Ok(if is_whole { ExitStatus::Restored } else { ExitStatus::Stopped })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dump::Location;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        inspect: InspectArgs,
    }

    fn options(line: &str) -> Result<InspectOptions, clap::Error> {
        let words = std::iter::once("inspect").chain(line.split_whitespace());
        Line::try_parse_from(words).map(|line| line.inspect.into_options().expect("consistent"))
    }

    #[test]
    fn the_usual_directory_is_inspected_as_a_table() {
        let expected = InspectOptions {
            dump: Location::Path("dump".into()),
            database: None,
            collection: None,
            depth: Depth::Plain,
            form: InspectForm::Table,
        };
        assert_eq!(options("").expect("parsed"), expected);
    }

    #[test]
    fn every_flag_reaches_the_options() {
        let expected = InspectOptions {
            dump: Location::Path("backup".into()),
            database: Some("shop".to_owned()),
            collection: Some("orders".to_owned()),
            depth: Depth::Deep,
            form: InspectForm::Json,
        };
        assert_eq!(options("backup -d shop -c orders --json --deep").expect("parsed"), expected);
    }

    #[test]
    fn a_collection_needs_its_database() {
        assert!(options("dump --collection orders").is_err());
    }
}
