//! Starts the runtime, runs the command line, returns its exit status.

use std::process::ExitCode;

fn main() -> ExitCode {
    // One thread drives all connections: at 0.3 µs a document it keeps any one server busy, and
    // waking others would cost more than it saves. Reading happens on threads of its own.
    match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime.block_on(restorm::cli::run()).into(),
        Err(_) => restorm::exit::ExitStatus::Stopped.into(),
    }
}
