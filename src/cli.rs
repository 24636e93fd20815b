//! Turns what was typed into checked options, runs the command, and shows what came of it.
//!
//! The only user of clap and the only place that prints.

pub mod bench;
mod collections;
mod configuration;
pub mod connection;
mod damage;
mod existing;
pub mod import;
mod indexes;
pub mod inspect;
mod metrics;
pub mod mongoimport;
pub mod mongorestore;
mod namespaces;
mod output;
mod pace;
mod password;
pub mod probe;
mod progress;
mod refusals;
mod reports;
pub mod restore;
mod resumption;
pub mod seed;
mod signals;
mod source;
mod special;
pub mod survey;
mod tables;
pub mod verify;

use std::ffi::OsString;
use std::time::Instant;

use clap::{Parser, Subcommand};

use crate::cli::progress::Speaker;
use crate::error::{Error, ErrorKind};
use crate::exit::ExitStatus;

/// Parallel bulk restore for MongoDB.
#[derive(Debug, Parser)]
#[command(name = "restorm", version, propagate_version = true, max_term_width = 100)]
#[command(after_help = exit_table())]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// The commands; what they say of themselves stands at their arguments.
#[derive(Debug, Subcommand)]
enum Command {
    Restore(Box<restore::RestoreArgs>),
    Import(Box<import::ImportArgs>),
    Verify(Box<verify::VerifyArgs>),
    Survey(Box<survey::SurveyArgs>),
    Inspect(inspect::InspectArgs),
    Probe(Box<probe::ProbeArgs>),
    Seed(Box<seed::SeedArgs>),
    Bench(Box<bench::BenchArgs>),
    #[command(hide = true)]
    Ceiling(Box<bench::CeilingArgs>),
    #[command(hide = true)]
    Hold(bench::HoldArgs),
}

fn exit_table() -> String {
    format!("Exit status:\n{}", ExitStatus::table())
}

/// Parses the command line and runs it.
///
/// Under the names `mongorestore` and `mongoimport` the program is that one.
pub async fn run() -> ExitStatus {
    let mut words: Vec<OsString> = std::env::args_os().collect();
    if mongorestore::is_meant(words.first()) {
        return mongorestore::run(words.split_off(1)).await;
    }
    if mongoimport::is_meant(words.first()) {
        return mongoimport::run(words.split_off(1)).await;
    }
    let speaker = Speaker::of(&words, Instant::now());
    let (words, notes) = match translate(words) {
        Ok(translated) => translated,
        Err(error) => return refuse(speaker, &error),
    };
    let cli = match (Cli::try_parse_from(words), speaker) {
        (Ok(cli), _) => cli,
        (Err(error), Speaker::Json(_)) if error.use_stderr() => {
            return refuse(speaker, &mongorestore::told(&error));
        }
        (Err(error), _) => error.exit(),
    };
    let outcome = match cli.command {
        Command::Restore(args) => Box::pin(restore::run(*args, &notes)).await,
        Command::Import(args) => Box::pin(import::run(*args)).await,
        Command::Verify(args) => verify::run(*args).await,
        Command::Survey(args) => survey::run(*args).await,
        Command::Inspect(args) => inspect::run(args),
        Command::Probe(args) => probe::run(*args).await,
        Command::Seed(args) => seed::run(*args).await,
        Command::Bench(args) => Box::pin(bench::run(*args)).await,
        Command::Ceiling(args) => Box::pin(bench::run_ceiling(*args)).await,
        Command::Hold(args) => Err(bench::hold(&args)),
    };
    outcome.unwrap_or_else(|error| refuse(speaker, &error))
}

/// Takes the words of `restore`, and of what is measured beside it, as mongorestore does; those of
/// other commands stay.
fn translate(mut words: Vec<OsString>) -> Result<(Vec<OsString>, Vec<String>), Error> {
    if words.get(1).is_none_or(|command| command != "restore" && command != "ceiling") {
        return Ok((words, Vec::new()));
    }
    let translated = mongorestore::words::translate(words.split_off(2))?;
    words.extend(translated.words);
    Ok((words, translated.notes))
}

/// Shows an error with its hint.
fn refuse(speaker: Speaker, error: &Error) -> ExitStatus {
    let status = match error.kind() {
        ErrorKind::Usage => ExitStatus::Usage,
        ErrorKind::Interrupted => ExitStatus::Interrupted,
        _ => ExitStatus::Stopped,
    };
    speaker.refuse(error, status);
    status
}
