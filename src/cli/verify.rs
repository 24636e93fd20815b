//! The arguments of `restorm verify`.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::cli::connection::{ConnectionArgs, StandardInput, Surroundings, split_positionals};
use crate::cli::namespaces::NamespaceArgs;
use crate::cli::output;
use crate::cli::reports::check_json;
use crate::cli::restore::{at_most, differences, style};
use crate::cli::signals::{self, Voice};
use crate::cli::source::SourceArgs;
use crate::command::restore::{Connection, IndexPolicy, OptionPolicy, Selection, Stop};
use crate::command::verify::{VerifyOptions, verify};
use crate::error::{Error, ErrorKind};
use crate::exit::ExitStatus;
use crate::limits::{DIFFERENCES_DEFAULT, PARALLEL_COLLECTIONS_DEFAULT, PARALLEL_COLLECTIONS_MAX};
use crate::report::{OptionValue, Verbosity, VerifyReport, json, text};

/// Compare a dump with what a server holds
///
/// Of each collection of the dump, count and hash of all documents are compared, whatever their
/// order, and options and indexes, as a restore with the same arguments would make them. Where
/// documents differ, they are named by their `_id`. Both sides are read, nothing is changed; what
/// the server holds besides is not looked at.
#[derive(Args, Clone, Debug)]
#[command(after_help = after_help(), disable_help_flag = true)]
#[command(override_usage = "restorm verify [OPTIONS] [DUMP] [URI]")]
pub struct VerifyArgs {
    /// The dump: its root, the folder of one database, one .bson file, an archive, or `-` for the
    /// documents of one collection on standard input [default: dump]
    #[arg(value_name = "DUMP")]
    positionals: Vec<PathBuf>,

    /// Print help; `-h` is the host, as in restore
    #[arg(long, action = clap::ArgAction::Help)]
    help: Option<bool>,

    #[command(flatten)]
    connection: ConnectionArgs,

    #[command(flatten, next_help_heading = "What is compared")]
    source: SourceArgs,

    /// Compare only this database; for a database folder or a file, the one it was restored to
    #[arg(long, short, value_name = "NAME", help_heading = "What is compared")]
    db: Option<String>,

    /// Compare only this collection; for a file, the one it was restored to
    #[arg(long, short, value_name = "NAME", requires = "db", help_heading = "What is compared")]
    collection: Option<String>,

    #[command(flatten)]
    namespaces: NamespaceArgs,

    /// Compare no indexes
    #[arg(long, help_heading = "What is compared")]
    no_indexes: bool,

    /// Compare no options but those that make a view
    #[arg(long, help_heading = "What is compared")]
    no_options: bool,

    /// Differing documents listed of a collection
    #[arg(long, value_name = "N", default_value_t = DIFFERENCES_DEFAULT)]
    #[arg(value_parser = differences, help_heading = "How it is done")]
    differences: usize,

    /// Collections read side by side, on each side
    #[arg(long, short = 'j', value_name = "N", default_value_t = PARALLEL_COLLECTIONS_DEFAULT)]
    #[arg(value_parser = at_most(PARALLEL_COLLECTIONS_MAX), help_heading = "How it is done")]
    parallel_collections: usize,

    /// Write the report as JSON of the schema restorm.verify/1 to this file as well
    #[arg(long, value_name = "FILE", help_heading = "What is shown")]
    report: Option<PathBuf>,

    /// Show nothing where nothing differs
    #[arg(long, short, conflicts_with = "verbose", help_heading = "What is shown")]
    quiet: bool,

    /// Show every collection
    #[arg(long, short, action = clap::ArgAction::Count, help_heading = "What is shown")]
    verbose: u8,
}

fn after_help() -> String {
    format!(
        "Examples:\n  \
         restorm verify dump --uri mongodb://db1\n  \
         restorm verify backup.archive --ns-from 'shop.*' --ns-to 'copy.*'\n  \
         restorm verify dump --db shop --differences 100 --report differences.json\n\n\
         Exit status:\n{}",
        ExitStatus::table()
    )
}

impl VerifyArgs {
    /// The arguments as options of the command; `warn` shows what is unsafe or without effect.
    fn to_options(&self, warn: &dyn Fn(&str)) -> Result<VerifyOptions, Error> {
        let (positional, dump) = split_positionals(&self.positionals)?;
        let source = self.source.source(dump)?;
        let input = if source.is_input() { StandardInput::Dump } else { StandardInput::Free };
        let around = Surroundings { positional, database: self.db.as_deref(), input, warn };
        let server = self.connection.server(around)?;
        let database = self.db.clone().or(server.database);
        let connections = 2 * self.parallel_collections;
        Ok(VerifyOptions {
            dump: source.location,
            database,
            collection: self.collection.clone(),
            connection: Connection {
                connections_max: u32::try_from(connections).unwrap_or(u32::MAX),
                ..Connection::new(server.uri.to_text())
            },
            selection: Selection {
                names: self.namespaces.names(self.db.as_deref(), self.collection.as_deref())?,
                indexes: if self.no_indexes { IndexPolicy::Skip } else { IndexPolicy::Build },
                ..Selection::default()
            },
            options: if self.no_options { OptionPolicy::Skip } else { OptionPolicy::Restore },
            differences: self.differences,
            parallel_collections: self.parallel_collections,
            told: self.told(),
            ..VerifyOptions::new("", Connection::new(""))
        })
    }

    /// What differs from the defaults, as the report tells it.
    fn told(&self) -> Vec<OptionValue> {
        let named = [
            ("archive", self.source.told()),
            ("db", self.db.clone()),
            ("collection", self.collection.clone()),
            ("no-indexes", self.no_indexes.then(|| "true".to_owned())),
            ("no-options", self.no_options.then(|| "true".to_owned())),
            (
                "differences",
                (self.differences != DIFFERENCES_DEFAULT).then(|| self.differences.to_string()),
            ),
        ];
        let named = named
            .into_iter()
            .filter_map(|(name, value)| Some(OptionValue { name: name.to_owned(), value: value? }));
        named.chain(self.namespaces.told()).collect()
    }
}

/// Compares and shows what was found.
pub(super) async fn run(args: VerifyArgs) -> Result<ExitStatus, Error> {
    let warn = |text: &str| {
        if !args.quiet {
            output::say(&format!("warning: {text}"));
        }
    };
    let options = args.to_options(&warn)?;
    if let Some(file) = &args.report {
        check_json(file)?;
    }
    let stop = Stop::new();
    signals::listen(stop.clone(), Voice::Restorm, output::say);
    let report = verify(&options, &stop).await?;
    let is_clean = report.exit_status == ExitStatus::Restored;
    if !(args.quiet && is_clean) {
        let verbosity = if args.verbose > 0 { Verbosity::Verbose } else { Verbosity::Normal };
        output::say(text::verified(&report, &style(verbosity)).trim_end());
    }
    if let Some(file) = &args.report {
        write_report(file, &report)?;
    }
    Ok(report.exit_status)
}

fn write_report(file: &Path, report: &VerifyReport) -> Result<(), Error> {
    std::fs::write(file, json::render(report)?).map_err(|error| {
        Error::new(ErrorKind::Internal, format!("the report cannot be written: {error}"))
            .in_file(file)
            .hint("the comparison itself has ended as shown above")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        verify: VerifyArgs,
    }

    fn options(line: &str) -> Result<VerifyOptions, String> {
        let words = std::iter::once("verify").chain(line.split_whitespace());
        let line = Line::try_parse_from(words).map_err(|error| error.to_string())?;
        line.verify.to_options(&|_| {}).map_err(|error| error.to_string())
    }

    #[test]
    fn without_arguments_dump_is_compared_with_localhost() {
        let options = options("").expect("parsed");
        assert_eq!(options.dump, crate::dump::Location::Path("dump".into()));
        assert_eq!(options.connection.uri, "mongodb://localhost/?directConnection=true");
        assert_eq!(options.selection, Selection::default());
        assert_eq!(options.options, OptionPolicy::Restore);
        assert!(options.told.is_empty());
    }

    #[test]
    fn each_flag_reaches_its_option() {
        let options = options(
            "d mongodb://x/ -d shop -c orders --ns-exclude a.b --no-indexes --no-options \
             --differences 0 -j 7",
        )
        .expect("parsed");
        assert_eq!(options.connection.uri, "mongodb://x/?directConnection=true");
        assert_eq!(options.database.as_deref(), Some("shop"));
        assert_eq!(options.collection.as_deref(), Some("orders"));
        assert_eq!(options.selection.indexes, IndexPolicy::Skip);
        assert_eq!(options.options, OptionPolicy::Skip);
        assert_eq!((options.differences, options.parallel_collections), (0, 7));
        assert_eq!(options.told.len(), 6);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for line in ["-j 0", "--differences x", "-c orders", "--quiet --verbose", "--ns-from a.*"] {
            assert!(options(line).is_err(), "{line}");
        }
    }
}
