//! The arguments of `restorm inspect`.

use std::path::PathBuf;

use clap::Args;

use crate::cli::output::{self, Stream};
use crate::command::inspect::{self, InspectForm, InspectOptions};
use crate::error::Error;
use crate::exit::ExitStatus;

/// Show what a dump holds and whether it is sound
///
/// Every data file is read to its end and the structure of every document is checked. Damaged and
/// cut files are named with the byte at which the damage begins, and the exit status is 1.
#[derive(Args, Clone, Debug)]
#[command(after_help = after_help())]
pub struct InspectArgs {
    /// The dump directory
    #[arg(default_value = "dump")]
    dir: PathBuf,

    /// Only this database
    #[arg(long, short, visible_alias = "database", value_name = "NAME")]
    db: Option<String>,

    /// Only this collection
    #[arg(long, short, value_name = "NAME", requires = "db")]
    collection: Option<String>,

    /// Print JSON of the schema restorm.inspect/1 instead of a table
    #[arg(long)]
    json: bool,
}

fn after_help() -> String {
    format!(
        "Examples:\n  \
         restorm inspect dump\n  \
         restorm inspect dump --db shop --collection orders\n  \
         restorm inspect dump --json | jq .totals\n\n\
         Exit status:\n{}",
        ExitStatus::table()
    )
}

impl InspectArgs {
    /// The arguments as options of the command.
    pub fn into_options(self) -> InspectOptions {
        let form = if self.json { InspectForm::Json } else { InspectForm::Table };
        InspectOptions { path: self.dir, database: self.db, collection: self.collection, form }
    }
}

/// Reads the dump and prints what it holds.
pub(super) fn run(args: InspectArgs) -> Result<ExitStatus, Error> {
    let options = args.into_options();
    let inspection = inspect::run(&options)?;
    output::data(&inspection.shown(options.form, output::columns(Stream::Out)));
    let is_whole = !inspection.has_problems();
    Ok(if is_whole { ExitStatus::Restored } else { ExitStatus::Stopped })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        inspect: InspectArgs,
    }

    fn options(line: &str) -> Result<InspectOptions, clap::Error> {
        let words = std::iter::once("inspect").chain(line.split_whitespace());
        Line::try_parse_from(words).map(|line| line.inspect.into_options())
    }

    #[test]
    fn the_usual_directory_is_inspected_as_a_table() {
        let expected = InspectOptions {
            path: "dump".into(),
            database: None,
            collection: None,
            form: InspectForm::Table,
        };
        assert_eq!(options("").expect("parsed"), expected);
    }

    #[test]
    fn every_flag_reaches_the_options() {
        let expected = InspectOptions {
            path: "backup".into(),
            database: Some("shop".to_owned()),
            collection: Some("orders".to_owned()),
            form: InspectForm::Json,
        };
        assert_eq!(options("backup -d shop -c orders --json").expect("parsed"), expected);
    }

    #[test]
    fn a_collection_needs_its_database() {
        assert!(options("dump --collection orders").is_err());
    }
}
