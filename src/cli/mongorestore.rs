//! The program under the name `mongorestore`: its words, its lines and its exit codes.
//!
//! A script that calls mongorestore finds what it is used to. The work is that of `restorm
//! restore`; [`options`] lists what becomes of each option.

mod args;
pub mod options;
pub(super) mod words;

pub use args::DropInArgs;

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use clap::error::{ContextKind, ContextValue, ErrorKind as ClapErrorKind};
use clap::{CommandFactory, FromArgMatches, Parser};

use crate::cli::mongorestore::options::{OPTIONS, PeerOption};
use crate::cli::mongorestore::words::{Translated, translate};
use crate::cli::output;
use crate::cli::restore::{self, RestoreArgs, Said, Shown};
use crate::cli::resumption;
use crate::cli::signals::Voice;
use crate::command::restore::Restored;
use crate::error::{Error, ErrorKind};
use crate::exit::ExitStatus;
use crate::report::Report;
use crate::report::mongorestore::{Level, Log, Tool};

/// The version of mongorestore whose behaviour this is.
const PEER_VERSION: &str = "100.18.0";

/// Names that are farther apart than this are not taken for each other.
const DISTANCE_MAX: usize = 4;

/// Restore a dump into MongoDB, as mongorestore does
#[derive(Debug, Parser)]
#[command(name = "mongorestore", version, max_term_width = 100)]
struct Line {
    #[command(flatten)]
    restore: RestoreArgs,
}

/// The command, whose usage is not that of `restorm restore`.
fn command() -> clap::Command {
    Line::command().override_usage("mongorestore [OPTIONS] [DUMP] [URI]")
}

/// Whether the program was called by this name.
pub(super) fn is_meant(program: Option<&OsString>) -> bool {
    is_called(program, "mongorestore")
}

/// Whether the program was called by a name.
pub(in crate::cli) fn is_called(program: Option<&OsString>, wanted: &str) -> bool {
    let name = program.and_then(|program| Path::new(program).file_stem());
    name == Some(OsStr::new(wanted))
}

/// Runs a command line, without the name of the program, and shows what came of it.
pub(super) async fn run(words: Vec<OsString>) -> ExitStatus {
    let began = Instant::now();
    let (line, notes) = match parse(words) {
        Ok(Parsed::Run(line, notes)) => (line, notes),
        Ok(Parsed::Told(text)) => {
            output::data(&text);
            return ExitStatus::Restored;
        }
        Err(error) => return refuse(&log(Level::Normal), &error),
    };
    let args = line.restore;
    let log = Arc::new(log(level(args.shown())));
    if let Err(error) = args.refuse_progress() {
        return refuse(&log, &error);
    }
    for note in &notes {
        log.say(note);
    }
    match args.how_understood() {
        Ok(notes) => notes.iter().for_each(|note| log.say(note)),
        Err(error) => return refuse(&log, &error),
    }
    let (observer, teller) = (Arc::clone(&log), Arc::clone(&log));
    let tell = move |line: &str| teller.say(line);
    let warn = |text: &str| log.say(&format!("WARNING: {text}"));
    let said = Said { voice: Voice::Mongorestore, warn: &warn, tell };
    log.keep_showing();
    let restored = restore::restore_with(&args, observer, said, began).await;
    log.stop_showing();
    match restored {
        Ok(Restored::Planned(plan)) => {
            output::data(&plan);
            log.say("dry run completed");
            log.end_without_documents();
            ExitStatus::Restored
        }
        Ok(Restored::Ran(report)) => {
            if report.ledger.is_some() {
                // Scripts read the last line, which is that of mongorestore.
                log.say(&format!("go on with: {}", resumption::command(std::env::args())));
            }
            log.end(&report);
            match args.write_report(&report) {
                Ok(()) => status(&report),
                Err(error) => refuse(&log, &error),
            }
        }
        Err(error) => refuse(&log, &error),
    }
}

/// What a command line asks for.
pub(in crate::cli) enum Parsed<L> {
    /// A run, and what should be said before it.
    Run(Box<L>, Vec<String>),
    /// A text on standard output.
    Told(String),
}

fn parse(words: Vec<OsString>) -> Result<Parsed<Line>, Error> {
    parse_of(Tool::Mongorestore, command(), &OPTIONS, translate(words)?)
}

/// Parses translated words of a tool with this command and these options.
pub(in crate::cli) fn parse_of<L: CommandFactory + FromArgMatches>(
    tool: Tool,
    command: clap::Command,
    options: &[PeerOption],
    translated: Translated,
) -> Result<Parsed<L>, Error> {
    let words = std::iter::once(OsString::from(tool.name())).chain(translated.words);
    let parsed =
        command.try_get_matches_from(words).and_then(|matches| L::from_arg_matches(&matches));
    match parsed {
        Ok(line) => Ok(Parsed::Run(Box::new(line), translated.notes)),
        Err(error) => match error.kind() {
            ClapErrorKind::DisplayHelp => Ok(Parsed::Told(error.to_string())),
            ClapErrorKind::DisplayVersion => Ok(Parsed::Told(version(tool))),
            _ => Err(told_by(&error, &L::command(), options)),
        },
    }
}

/// The version as a tool of MongoDB tells it, with our own beside it.
fn version(tool: Tool) -> String {
    let (own, os, arch) = (env!("CARGO_PKG_VERSION"), std::env::consts::OS, std::env::consts::ARCH);
    let name = tool.name();
    format!("{name} version: {PEER_VERSION} (restorm {own})\n   os: {os}\n   arch: {arch}\n")
}

/// What clap has against a line, in mongorestore's words where it has some.
pub(super) fn told(error: &clap::Error) -> Error {
    told_by(error, &Line::command(), &OPTIONS)
}

/// What clap has against a line of a tool with this command and these options, in the tool's words.
fn told_by(error: &clap::Error, command: &clap::Command, options: &[PeerOption]) -> Error {
    if error.kind() == ClapErrorKind::UnknownArgument
        && let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidArg)
        && let Some(name) = word.strip_prefix("--")
    {
        let name = name.split('=').next().unwrap_or(name);
        let unknown = Error::new(ErrorKind::Usage, format!("unknown option `{name}`"));
        return match nearest(name, command, options) {
            Some(near) => unknown.hint(format!("did you mean --{near}?")),
            None => unknown,
        };
    }
    let text = error.to_string();
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    let sentence = text.split("\n\n").next().unwrap_or(text);
    let words: Vec<&str> = sentence.split_whitespace().collect();
    Error::new(ErrorKind::Usage, words.join(" "))
}

/// The option whose name is nearest, if any is near.
fn nearest(name: &str, command: &clap::Command, options: &[PeerOption]) -> Option<String> {
    let wanted = name.to_ascii_lowercase();
    let ours = command.get_arguments().filter_map(clap::Arg::get_long).map(str::to_owned);
    let theirs = options.iter().map(|option| option.long.to_owned());
    theirs
        .chain(ours)
        .map(|known| (strsim::levenshtein(&wanted, &known.to_ascii_lowercase()), known))
        .filter(|(distance, _)| *distance <= DISTANCE_MAX.min(name.len() / 2))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, known)| known)
}

fn level(shown: Shown) -> Level {
    match shown {
        Shown::Quiet => Level::Quiet,
        Shown::Normal => Level::Normal,
        Shown::Verbose => Level::Verbose,
    }
}

fn log(level: Level) -> Log {
    Log::new(Tool::Mongorestore, Box::new(std::io::stderr()), level)
}

/// Shows an error before a run, or instead of one.
pub(in crate::cli) fn refuse(log: &Log, error: &Error) -> ExitStatus {
    let text = match error.hint_text() {
        Some(hint) => format!("{error}; {hint}"),
        None => error.to_string(),
    };
    match error.kind() {
        ErrorKind::Usage => {
            log.fail(&format!("error parsing command line options: {text}"));
            log.fail(&format!("try '{} --help' for more information", log.tool().name()));
        }
        ErrorKind::Connect => log.fail(&format!("error connecting to host: {text}")),
        _ => {
            log.fail(&format!("Failed: {text}"));
            log.end_without_documents();
        }
    }
    ExitStatus::Stopped
}

/// Codes of refused documents that mongorestore and mongoimport go on after: `DuplicateKey` and
/// `DocumentValidationFailure`.
const PASSED_OVER: [i32; 2] = [11_000, 121];

/// mongorestore ends with 0 although documents were refused as duplicates or by a validator, and
/// with 1 after everything else.
fn status(report: &Report) -> ExitStatus {
    match report.exit_status {
        ExitStatus::Restored => ExitStatus::Restored,
        ExitStatus::Failures
            if report.totals.indexes_failed == 0 && all_failures(report, is_passed_over) =>
        {
            ExitStatus::Restored
        }
        _ => ExitStatus::Stopped,
    }
}

/// Whether both programs go on after a document that is refused with this code.
pub(in crate::cli) fn is_passed_over(code: i32) -> bool {
    PASSED_OVER.contains(&code)
}

/// Whether all that was refused is of such a kind.
pub(in crate::cli) fn all_failures(report: &Report, is_so: impl Fn(i32) -> bool) -> bool {
    let mut failures = report.collections.iter().flat_map(|collection| &collection.failures);
    failures.all(|failure| is_so(failure.code))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(line: &str) -> String {
        let words = line.split_whitespace().map(OsString::from).collect();
        match parse(words) {
            Err(error) => match error.hint_text() {
                Some(hint) => format!("{error}; {hint}"),
                None => error.to_string(),
            },
            Ok(_) => panic!("`{line}` is taken"),
        }
    }

    #[test]
    fn the_program_is_known_by_its_name() {
        for (name, expected) in [
            ("mongorestore", true),
            ("/usr/bin/mongorestore", true),
            ("mongorestore.exe", true),
            ("restorm", false),
            ("/opt/mongorestore/restorm", false),
        ] {
            assert_eq!(is_meant(Some(&name.into())), expected, "{name}");
        }
        assert!(!is_meant(None));
    }

    #[test]
    fn an_unknown_option_is_told_with_the_nearest_one() {
        for (line, expected) in [
            ("--nsIncl x", "unknown option `nsIncl`; did you mean --nsInclude?"),
            ("--noIndexesRestore", "did you mean --noIndexRestore?"),
            ("--DROP", "did you mean --drop?"),
            ("--parallel-collection=3", "did you mean --parallel-collections?"),
            ("--forceTableScan", "unknown option `forceTableScan`"),
        ] {
            assert!(error(line).contains(expected), "{line}: {}", error(line));
        }
        assert!(!error("--forceTableScan").contains("did you mean"));
    }

    #[test]
    fn other_errors_are_one_sentence() {
        assert_eq!(
            error("-j x"),
            "invalid value 'x' for '--parallel-collections <N>': \
             a whole number from 1 to 256 is needed"
        );
        assert!(error("--collection x").contains("--db <NAME>"));
    }
}
