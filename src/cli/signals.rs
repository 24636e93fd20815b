//! The two-step stop: the first signal finishes what is in flight, the second ends at once.

use tokio::signal::unix::{SignalKind, signal};

use crate::cli::output;
use crate::exit::ExitStatus;
use crate::load::Stop;

/// Listens for SIGINT and SIGTERM as long as the program runs; `tell` shows a line to the user
/// without disturbing what else is on the screen.
pub(super) fn listen(stop: Stop, tell: impl Fn(&str) + Send + 'static) {
    tokio::spawn(async move {
        let (Ok(mut interrupt), Ok(mut terminate)) =
            (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
        else {
            tell("signals cannot be caught; Ctrl-C ends the run at once");
            return;
        };
        loop {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            if stop.is_requested() {
                output::say("aborted; batches in flight are not accounted for");
                abort();
            }
            tell("stopping: finishing what is in flight; once more aborts");
            stop.request();
        }
    });
}

#[expect(clippy::exit, reason = "the second signal asks for an end without any clean-up")]
fn abort() -> ! {
    std::process::exit(i32::from(ExitStatus::Interrupted.code()))
}
