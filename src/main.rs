//! Starts the runtime, runs the command line, returns its exit status.

use std::process::ExitCode;

/// Batches of a few hundred kilobytes would go through a fresh mapping, and a page fault every
/// 4 KiB, each time in the system's allocator (docs/performance.md).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    match runtime {
        Ok(runtime) => runtime.block_on(restorm::cli::run()).into(),
        Err(_) => restorm::exit::ExitStatus::Stopped.into(),
    }
}
