//! The two-step stop: the first signal finishes what is in flight, the second ends at once.

use std::time::Instant;

use tokio::signal::unix::{SignalKind, signal};

use crate::cli::output;
use crate::cli::progress::Speaker;
use crate::error::{Error, ErrorKind};
use crate::exit::ExitStatus;
use crate::load::Stop;

/// In whose words and with whose status an interrupt is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Voice {
    /// In our own.
    Restorm,
    /// In our own, as lines of JSON with the time since this moment.
    RestormJson(Instant),
    /// In our own, of a benchmark.
    Bench,
    /// In our own, of a probe.
    Probe,
    /// In those of mongorestore.
    Mongorestore,
}

impl Voice {
    fn stopping(self, signal: &str) -> String {
        match self {
            Self::Restorm | Self::RestormJson(_) => {
                "stopping: finishing what is in flight; once more aborts".to_owned()
            }
            Self::Bench => {
                "stopping: ending the run; once more ends the benchmark at once".to_owned()
            }
            Self::Probe => {
                "stopping: the report follows; once more ends the probe without it".to_owned()
            }
            Self::Mongorestore => {
                format!("signal '{signal}' received; attempting to shut down")
            }
        }
    }

    fn aborting(self, signal: &str) -> String {
        match self {
            Self::Restorm | Self::RestormJson(_) => {
                "aborted; batches in flight are not accounted for".to_owned()
            }
            Self::Bench => "aborted; the samples up to here are kept".to_owned(),
            Self::Probe => "aborted; nothing is reported".to_owned(),
            Self::Mongorestore => {
                format!("signal '{signal}' received; forcefully terminating")
            }
        }
    }

    /// Says what is said after all else.
    fn say_last(self, text: &str) {
        match self {
            Self::RestormJson(began) => {
                let error = Error::new(ErrorKind::Interrupted, text);
                Speaker::Json(began).refuse(&error, self.aborted());
            }
            Self::Restorm | Self::Bench | Self::Probe | Self::Mongorestore => output::say(text),
        }
    }

    fn aborted(self) -> ExitStatus {
        match self {
            Self::Restorm | Self::RestormJson(_) | Self::Bench | Self::Probe => {
                ExitStatus::Interrupted
            }
            Self::Mongorestore => ExitStatus::Stopped,
        }
    }
}

/// Listens for SIGINT and SIGTERM as long as the program runs; `tell` shows a line to the user
/// without disturbing what else is on the screen.
pub(super) fn listen(stop: Stop, voice: Voice, tell: impl Fn(&str) + Send + 'static) {
    tokio::spawn(async move {
        let (Ok(mut interrupt), Ok(mut terminate)) =
            (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
        else {
            tell("signals cannot be caught; Ctrl-C ends the run at once");
            return;
        };
        loop {
            let signal = tokio::select! {
                _ = interrupt.recv() => "interrupt",
                _ = terminate.recv() => "terminated",
            };
            if stop.is_requested() {
                voice.say_last(&voice.aborting(signal));
                abort(voice.aborted());
            }
            tell(&voice.stopping(signal));
            stop.request();
        }
    });
}

#[expect(clippy::exit, reason = "the second signal asks for an end without any clean-up")]
fn abort(status: ExitStatus) -> ! {
    std::process::exit(i32::from(status.code()))
}
