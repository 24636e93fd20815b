//! Turns what was typed into checked options, runs the command, and shows what came of it.
//!
//! The only user of clap and the only place that prints.

mod collections;
mod configuration;
pub mod connection;
mod indexes;
pub mod inspect;
mod namespaces;
mod output;
mod password;
pub mod restore;
pub mod seed;
mod signals;
mod source;
mod special;

use clap::{Parser, Subcommand};

use crate::error::{Error, ErrorKind};
use crate::exit::ExitStatus;

/// Parallel bulk restore for MongoDB.
#[derive(Debug, Parser)]
#[command(name = "restorm", version, max_term_width = 100)]
#[command(after_help = exit_table())]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// The commands; what they say of themselves stands at their arguments.
#[derive(Debug, Subcommand)]
enum Command {
    Restore(Box<restore::RestoreArgs>),
    Inspect(inspect::InspectArgs),
    Seed(seed::SeedArgs),
}

fn exit_table() -> String {
    format!("Exit status:\n{}", ExitStatus::table())
}

/// Parses the command line and runs it.
pub async fn run() -> ExitStatus {
    let outcome = match Cli::parse().command {
        Command::Restore(args) => restore::run(*args).await,
        Command::Inspect(args) => inspect::run(args),
        Command::Seed(args) => seed::run(args),
    };
    outcome.unwrap_or_else(|error| refuse(&error))
}

/// Shows an error with its hint.
fn refuse(error: &Error) -> ExitStatus {
    output::say(&format!("error: {error}"));
    if let Some(hint) = error.hint_text() {
        output::say(&format!(" hint: {hint}"));
    }
    match error.kind() {
        ErrorKind::Usage => ExitStatus::Usage,
        ErrorKind::Interrupted => ExitStatus::Interrupted,
        _ => ExitStatus::Stopped,
    }
}
