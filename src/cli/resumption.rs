//! The arguments about outages and going on after one, and the command that goes on.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::command::restore::{LedgerOptions, LedgerPlace, ServerUri, Start, is_uri};
use crate::limits::{ANSWER_WITHIN, RETRY_FOR};
use crate::report::OptionValue;

/// The value of `--ledger` for none.
const NONE: &str = "none";

/// Outages
#[derive(Args, Clone, Debug)]
pub(super) struct ResumptionArgs {
    /// Go on where an earlier run of the same command into this target was interrupted
    #[arg(long, help_heading = "Outages")]
    resume: bool,

    /// Where it is kept what is done, for --resume; `none` for nowhere [default: beside the dump,
    /// else in the user's state folder]
    #[arg(long, value_name = "FILE", help_heading = "Outages")]
    ledger: Option<PathBuf>,

    /// How long batches and commands are tried again while the server is away, such as 90s, 10m or
    /// 2h [default: 10m]
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = "Outages")]
    retry_for: Option<Duration>,

    /// How long a batch may go unanswered before it is sent again over another connection
    /// [default: 5m]
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = "Outages")]
    answer_within: Option<Duration>,
}

pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<u32>().ok().map(|seconds| Duration::from_secs(seconds.into()));
    let spelled = || text.parse::<jiff::SignedDuration>().ok()?.try_into().ok();
    seconds.or_else(spelled).ok_or_else(|| "a time such as 90s, 10m or 2h is needed".to_owned())
}

impl ResumptionArgs {
    /// Whether an earlier restore is gone on with.
    pub(super) fn resumes(&self) -> bool {
        self.resume
    }

    pub(super) fn ledger(&self) -> LedgerOptions {
        let place = match &self.ledger {
            Some(file) if file.as_os_str() == NONE => LedgerPlace::Nowhere,
            Some(file) => LedgerPlace::File(file.clone()),
            None => LedgerPlace::BesideDump { otherwise: state_folder() },
        };
        LedgerOptions { place, start: if self.resume { Start::Resumed } else { Start::Anew } }
    }

    /// Whether a ledger is asked for.
    pub(super) fn names_ledger(&self) -> bool {
        self.resume || self.ledger.as_ref().is_some_and(|file| file.as_os_str() != NONE)
    }

    pub(super) fn retry_for(&self) -> Duration {
        self.retry_for.unwrap_or(RETRY_FOR)
    }

    pub(super) fn answer_within(&self) -> Duration {
        self.answer_within.unwrap_or(ANSWER_WITHIN)
    }

    /// What differs from the defaults, as the report tells it.
    pub(super) fn told(&self) -> Vec<OptionValue> {
        let value = |name: &str, value: String| OptionValue { name: name.to_owned(), value };
        let resume = self.resume.then(|| value("resume", "true".to_owned()));
        let ledger = self.ledger.as_ref().map(|file| value("ledger", file.display().to_string()));
        let time = |name: &str, time: Option<Duration>| {
            time.map(|time| value(name, format!("{}s", time.as_secs())))
        };
        let retry = time("retry-for", self.retry_for);
        let answer = time("answer-within", self.answer_within);
        resume.into_iter().chain(ledger).chain(retry).chain(answer).collect()
    }
}

/// The folder in which programs keep their state for a user (XDG Base Directory Specification).
fn state_folder() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let state = set("XDG_STATE_HOME").map(PathBuf::from);
    let state = state.or_else(|| set("HOME").map(|home| PathBuf::from(home).join(".local/state")));
    state.map(|state| state.join("restorm"))
}

/// The command that goes on with the restore that was typed with these words, program included;
/// without passwords, which are asked for again.
pub(super) fn command(words: impl Iterator<Item = String>) -> String {
    let mut command: Vec<String> = Vec::new();
    let mut words = words.peekable();
    while let Some(word) = words.next() {
        if is_password(&word) {
            let holds_value = word.contains('=') || (word.starts_with("-p") && word.len() > 2);
            if !holds_value {
                words.next();
            }
            continue;
        }
        command.push(quoted(&without_password(&word)));
    }
    if !command.iter().any(|word| word == "--resume") {
        command.push("--resume".to_owned());
    }
    command.join(" ")
}

fn is_password(word: &str) -> bool {
    let name = word.split('=').next().unwrap_or(word);
    let long = ["--password", "--sslPEMKeyPassword", "--tls-certificate-key-file-password"];
    long.contains(&name) || (word.starts_with("-p") && !word.starts_with("--"))
}

/// A connection string without its password, whatever it is part of.
fn without_password(word: &str) -> String {
    let (before, uri) = match word.split_once('=') {
        Some(("--uri", uri)) => ("--uri=", uri),
        _ => ("", word),
    };
    if !is_uri(uri) {
        return word.to_owned();
    }
    let secrets = ServerUri::parse(uri).map(|uri| uri.secrets()).unwrap_or_default();
    let bare = secrets.iter().fold(uri.to_owned(), |uri, secret| {
        uri.replace(&format!(":{secret}@"), "@")
            .replace(&format!("tlsCertificateKeyFilePassword={secret}"), "")
    });
    format!("{before}{bare}")
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_that_goes_on_holds_no_password() {
        for (words, expected) in [
            (&["restorm", "restore", "a b"][..], "restorm restore 'a b' --resume"),
            (&["restorm", "restore", "--resume", "d"], "restorm restore --resume d"),
            (
                &["restorm", "restore", "--uri", "mongodb://me:se%25cret@db1/?tls=true"],
                "restorm restore --uri 'mongodb://me@db1/?tls=true' --resume",
            ),
            (
                &["r", "restore", "--uri=mongodb://me:pw@db1", "-u", "me", "-p", "pw", "-j", "4"],
                "r restore --uri=mongodb://me@db1 -u me -j 4 --resume",
            ),
            (&["r", "restore", "-psecret", "--password=x", "d"], "r restore d --resume"),
            (&["r", "it's", ""], r"r 'it'\''s' '' --resume"),
        ] {
            let words = words.iter().map(ToString::to_string);
            assert_eq!(command(words), expected);
        }
    }

    #[test]
    fn times_are_typed_in_the_usual_ways() {
        for (text, seconds) in [("90", 90), ("90s", 90), ("10m", 600), ("1h30m", 5400)] {
            assert_eq!(duration(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for text in ["", "-1s", "ten"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }
}
