//! The program under the name `mongoimport`: its words, its lines and its exit codes.
//!
//! The work is that of `restorm import`; [`options`] lists what becomes of each option.

pub mod options;

use std::ffi::OsString;
use std::sync::Arc;
use std::time::Instant;

use clap::{CommandFactory, Parser};

use crate::cli::import::{self, ImportArgs};
use crate::cli::mongoimport::options::OPTIONS;
use crate::cli::mongorestore::words::translate_of;
use crate::cli::mongorestore::{Parsed, all_failures, is_called, is_passed_over, parse_of, refuse};
use crate::cli::output;
use crate::cli::restore::Said;
use crate::cli::signals::Voice;
use crate::error::Error;
use crate::exit::ExitStatus;
use crate::report::Report;
use crate::report::event::TYPE_MISMATCH;
use crate::report::mongorestore::{Level, Log, Tool};

/// Import JSON, CSV or TSV into MongoDB, as mongoimport does
#[derive(Debug, Parser)]
#[command(name = "mongoimport", version, max_term_width = 100)]
struct Line {
    #[command(flatten)]
    import: ImportArgs,
}

fn command() -> clap::Command {
    Line::command().override_usage("mongoimport [OPTIONS] [URI] [FILE]...")
}

/// Whether the program was called by this name.
pub(super) fn is_meant(program: Option<&OsString>) -> bool {
    is_called(program, "mongoimport")
}

/// Runs a command line, without the name of the program, and shows what came of it.
pub(super) async fn run(words: Vec<OsString>) -> ExitStatus {
    let began = Instant::now();
    let new_log = |level| Log::new(Tool::Mongoimport, Box::new(std::io::stderr()), level);
    let (line, notes) = match parse(words) {
        Ok(Parsed::Run(line, notes)) => (line, notes),
        Ok(Parsed::Told(text)) => {
            output::data(&text);
            return ExitStatus::Restored;
        }
        Err(error) => return refuse(&new_log(Level::Normal), &error),
    };
    let args = line.import;
    let log = Arc::new(new_log(args.level()));
    for note in &notes {
        log.say(note);
    }
    let (observer, teller, warner) = (Arc::clone(&log), Arc::clone(&log), Arc::clone(&log));
    let said = Said {
        voice: Voice::Mongorestore,
        warn: &|text| warner.say(&format!("WARNING: {text}")),
        tell: move |line: &str| teller.say(line),
    };
    log.keep_showing();
    let imported = import::import_with(&args, observer, said, began).await;
    log.stop_showing();
    match imported {
        Ok(report) => {
            log.end(&report);
            match args.write_report(&report) {
                Ok(()) => status(&report),
                Err(error) => refuse(&log, &error),
            }
        }
        Err(error) => refuse(&log, &error),
    }
}

fn parse(words: Vec<OsString>) -> Result<Parsed<Line>, Error> {
    let mut translated = translate_of(&[&OPTIONS], words)?;
    let defaults = defaults(&translated.words);
    translated.words.splice(..0, defaults);
    parse_of(Tool::Mongoimport, command(), &OPTIONS, translated)
}

/// What mongoimport does unless it is told, where `restorm import` does something else: a cell that
/// is not of its column's type ends the import, and so does any error where the order is kept.
fn defaults(words: &[OsString]) -> Vec<OsString> {
    let has = |wanted: &str| {
        words.iter().any(|word| word.to_str().is_some_and(|word| word.starts_with(wanted)))
    };
    let is_table = has("--type=csv") || has("--type=tsv");
    let stops_at_cells = is_table && !has("--parseGrace") && !has("--parse-grace");
    let is_insert = has("--mode=insert") || !has("--mode=");
    let looks_up = !is_insert || has("--upsert");
    let keeps_order = looks_up || has("--maintainInsertionOrder");
    let stops = keeps_order && !has("--stopOnError") && !has("--stop-on-error");
    let defaults = [(stops_at_cells, "--parseGrace=stop"), (stops, "--stopOnError")];
    let defaults = defaults.iter().filter(|(is_meant, _)| *is_meant);
    defaults.map(|(_, word)| OsString::from(word)).collect()
}

/// mongoimport ends with 0 although the server refused duplicates and what a validator does not let
/// in, and with 1 after everything else, such as a line that could not be read.
fn status(report: &Report) -> ExitStatus {
    match report.exit_status {
        ExitStatus::Restored => ExitStatus::Restored,
        ExitStatus::Failures if all_failures(report, goes_on_after) => ExitStatus::Restored,
        _ => ExitStatus::Stopped,
    }
}

/// Rows with a cell of another type are what `--parseGrace skipRow` passes over.
fn goes_on_after(code: i32) -> bool {
    code == TYPE_MISMATCH || is_passed_over(code)
}
