//! How a run is shown while it goes on, and what is told to programs that watch it.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::time::Instant;

use clap::{Args, ValueEnum};

use crate::cli::output::{self, Stream};
use crate::cli::signals::Voice;
use crate::error::Error;
use crate::exit::ExitStatus;
use crate::report::live::{Live, line};
use crate::report::{Progress, Verbosity};

#[derive(Args, Clone, Debug, Default)]
pub(super) struct ProgressArgs {
    /// How the run is shown while it goes on: as bars, which need a terminal; a line every few
    /// seconds; JSON for programs, then all of standard error is lines of JSON; or not at all but
    /// for what is out of the ordinary [default: bars on a terminal, else lines]
    #[arg(long, value_name = "FORM", value_enum, conflicts_with = "quiet")]
    #[arg(help_heading = "What is shown", hide_possible_values = false)]
    progress: Option<Form>,
}

/// How a run is shown while it goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Form {
    Bars,
    Lines,
    Json,
    None,
}

impl ProgressArgs {
    /// Whether a form was asked for.
    pub(super) fn is_given(&self) -> bool {
        self.progress.is_some()
    }

    /// Who speaks, since `began`.
    pub(super) fn speaker(&self, began: Instant) -> Speaker {
        match self.progress {
            Some(Form::Json) => Speaker::Json(began),
            _ => Speaker::Text,
        }
    }

    /// What shows the run.
    pub(super) fn progress(&self, began: Instant, verbosity: Verbosity) -> Progress {
        let out = || Box::new(std::io::stderr());
        let is_terminal = std::io::stderr().is_terminal();
        match self.progress {
            Some(Form::Json) => Progress::json(began, out()),
            Some(Form::None) => Progress::news(began, out(), verbosity),
            Some(Form::Bars) | None if is_terminal => {
                Progress::bars(began, || output::columns(Stream::Error), verbosity)
            }
            Some(Form::Bars | Form::Lines) | None => Progress::lines(began, out(), verbosity),
        }
    }
}

/// In which form things are said on standard error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Speaker {
    /// Lines for people.
    Text,
    /// Lines of JSON, with the time since this moment.
    Json(Instant),
}

impl Speaker {
    /// Who speaks on a command line that was not taken yet.
    pub(super) fn of(words: &[OsString], began: Instant) -> Self {
        let is_value = |word: Option<&OsString>| word.is_some_and(|word| word == "json");
        let asks = words.iter().enumerate().any(|(place, word)| {
            word == "--progress=json" || (word == "--progress" && is_value(words.get(place + 1)))
        });
        if asks { Self::Json(began) } else { Self::Text }
    }

    /// In whose words an interrupt is answered.
    pub(super) fn voice(self) -> Voice {
        match self {
            Self::Text => Voice::Restorm,
            Self::Json(began) => Voice::RestormJson(began),
        }
    }

    /// Says what a person should know.
    pub(super) fn note(self, message: &str) {
        match self {
            Self::Text => output::say(&format!("note: {message}")),
            Self::Json(_) => self.tell(&Live::Note { collection: None, message }),
        }
    }

    /// Says what is unsafe or without effect.
    pub(super) fn warn(self, message: &str) {
        match self {
            Self::Text => output::say(&format!("warning: {message}")),
            Self::Json(_) => self.tell(&Live::Warning { message }),
        }
    }

    /// Says what ended the program.
    pub(super) fn refuse(self, error: &Error, status: ExitStatus) {
        match self {
            Self::Text => {
                output::say(&format!("error: {error}"));
                if let Some(hint) = error.hint_text() {
                    output::say(&format!(" hint: {hint}"));
                }
            }
            Self::Json(_) => self.tell(&Live::error(error, status)),
        }
    }

    /// Says something to programs; people hear nothing of it.
    pub(super) fn tell(self, live: &Live<'_>) {
        if let Self::Json(began) = self {
            output::say(line(began.elapsed(), live).trim_end());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn speaks_json(line: &str) -> bool {
        let words: Vec<_> = line.split(' ').map(OsString::from).collect();
        matches!(Speaker::of(&words, Instant::now()), Speaker::Json(_))
    }

    #[test]
    fn a_line_that_cannot_be_taken_is_refused_in_the_form_it_asks_for() {
        for (line, expected) in [
            ("restore --progress json --wrong", true),
            ("restore --progress=json", true),
            ("restore --progress", false),
            ("restore --progress lines json", false),
            ("restore json", false),
        ] {
            assert_eq!(speaks_json(line), expected, "{line}");
        }
    }
}
