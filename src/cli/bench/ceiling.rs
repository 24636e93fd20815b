//! Commands that a benchmark runs as processes of their own; people have no use for them.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Instant;

use clap::Args;

use crate::cli::restore::RestoreArgs;
use crate::cli::signals::{self, Voice};
use crate::command::bench::Sent;
use crate::command::restore::{Stop, ceiling};
use crate::error::{Error, ErrorKind};
use crate::exit::ExitStatus;
use crate::report::json;

/// Send what a restore would send, encoded beforehand
#[derive(Args, Clone, Debug)]
#[command(disable_help_flag = true)]
pub struct CeilingArgs {
    /// Bytes of documents that may be held in memory
    #[arg(long, value_name = "BYTES")]
    held_bytes: u64,

    #[command(flatten)]
    restore: RestoreArgs,
}

/// Run a program that ends with the one that started it
#[derive(Args, Clone, Debug)]
pub struct HoldArgs {
    /// The process that starts it
    parent: u32,

    /// The program and its arguments
    #[arg(last = true, required = true)]
    words: Vec<OsString>,
}

/// Becomes another program.
pub(in crate::cli) fn hold(args: &HoldArgs) -> Error {
    crate::command::bench::hold(args.parent, &args.words)
}

/// Measures a ceiling and writes what it was to the file of the report.
pub(in crate::cli) async fn run_ceiling(args: CeilingArgs) -> Result<ExitStatus, Error> {
    let options = args.restore.to_options(&|_| {})?;
    let stop = Stop::new();
    signals::listen(stop.clone(), Voice::RestormJson(Instant::now()), |_| {});
    let reached = Box::pin(ceiling(&options, args.held_bytes, &stop)).await?;
    let sent = Sent {
        seconds: reached.time.as_secs_f64(),
        in_flight: reached.in_flight as u64,
        batches: reached.batches as u64,
        documents: reached.documents,
    };
    let file: &PathBuf = args
        .restore
        .report_file()
        .ok_or_else(|| Error::new(ErrorKind::Usage, "--report is missing"))?;
    std::fs::write(file, json::render(&sent)?).map_err(|error| {
        Error::new(ErrorKind::Internal, format!("cannot be written: {error}")).in_file(file)
    })?;
    Ok(ExitStatus::Restored)
}
