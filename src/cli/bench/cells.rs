//! From options that are varied to the command lines that are compared.

use std::ffi::OsString;
use std::path::Path;

use clap::{Arg, Args, FromArgMatches};

use crate::cli::mongorestore::words::translate;
use crate::cli::restore::RestoreArgs;
use crate::command::bench::{Cell, Choice, DEFAULT, Kind, Tool, Variation, product};
use crate::error::{Error, ErrorKind};

/// What the restores are called.
const NAME: &str = "restorm";

/// Options that belong to the benchmark itself.
const OF_BENCH: [&str; 8] =
    ["report", "ledger", "resume", "help", "quiet", "progress", "dir", "archive"];

/// Options that name another server.
const OF_SERVER: [&str; 3] = ["uri", "host", "port"];

/// A similarity from which on a name is taken for a slip of the other.
const SIMILAR: f64 = 0.75;

/// What is asked for.
pub(super) struct Wanted<'a> {
    pub(super) dump: &'a Path,
    /// Options of all restores.
    pub(super) fixed: &'a [String],
    /// Options of restore that are varied.
    pub(super) vary: &'a [String],
    /// Options of the server that are varied.
    pub(super) vary_server: &'a [String],
    /// Other programs.
    pub(super) tools: &'a [String],
}

fn usage(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Usage, message)
}

impl Wanted<'_> {
    /// The settings: for each of the server's, first the restores, then the other programs.
    pub(super) fn cells(&self) -> Result<Vec<Cell>, Error> {
        let read = |texts: &[String]| -> Result<Vec<Variation>, Error> {
            texts.iter().map(|text| Variation::parse(text)).collect()
        };
        let (vary, servers) = (read(self.vary)?, product(&read(self.vary_server)?));
        let mut restores = Vec::new();
        for choices in product(&vary) {
            let words = self.words(&choices)?;
            restores.push((choices, words));
        }
        let tools = self.tools()?;
        let mut cells = Vec::new();
        for server in servers {
            cells.extend(restores.iter().map(|(choices, words)| {
                let (choices, words) = (choices.clone(), words.clone());
                Cell::new(NAME, Kind::Restore, choices, server.clone(), words)
            }));
            cells.extend(tools.iter().map(|tool| {
                let words = tool.words.clone();
                Cell::new(&tool.name, Kind::Tool, Vec::new(), server.clone(), words)
            }));
        }
        Ok(cells)
    }

    /// The other programs.
    pub(super) fn tools(&self) -> Result<Vec<Tool>, Error> {
        self.tools.iter().map(|text| Tool::parse(text)).collect()
    }

    /// The setting beside which numbers of workers are searched: restore finds the number out.
    pub(super) fn search(&self) -> Result<Vec<Cell>, Error> {
        if self.fixed.iter().any(|word| word.starts_with("--workers")) {
            return Err(usage("--search looks for the number of workers; leave --workers out"));
        }
        let choice = Choice { name: "workers".to_owned(), value: DEFAULT.to_owned() };
        let words = self.words(std::slice::from_ref(&choice))?;
        Ok(vec![Cell::new(NAME, Kind::Restore, vec![choice], Vec::new(), words)])
    }

    /// The words of these choices, if restore takes them.
    fn words(&self, choices: &[Choice]) -> Result<Vec<String>, Error> {
        let restore = RestoreArgs::augment_args(clap::Command::new("restore"));
        let words = choices.iter().map(|choice| word(&restore, choice));
        let words: Vec<Vec<String>> = words.collect::<Result<_, _>>()?;
        let words = words.concat();
        self.check(&words).map_err(|error| {
            let told: Vec<_> =
                choices.iter().map(|one| format!("{}={}", one.name, one.value)).collect();
            match (told.is_empty(), error.hint_text()) {
                (true, _) => error,
                (false, hint) => {
                    let message = format!("{}: {}", told.join(" "), error.message());
                    hint.map_or_else(|| usage(&message), |hint| usage(&message).hint(hint))
                }
            }
        })?;
        Ok(words)
    }

    /// Parses the whole command line of a restore, so that nothing goes wrong after an hour.
    fn check(&self, words: &[String]) -> Result<(), Error> {
        let typed = self.fixed.iter().chain(words).map(OsString::from);
        let line = [self.dump.as_os_str().to_owned()].into_iter().chain(typed).collect();
        let translated = translate(line)?.words;
        let named = [OsString::from("restore"), "--uri".into(), "mongodb://localhost".into()];
        let command = RestoreArgs::augment_args(clap::Command::new("restore"));
        let parsed = command.try_get_matches_from(named.into_iter().chain(translated));
        let parsed = parsed.and_then(|matches| RestoreArgs::from_arg_matches(&matches));
        let args = parsed.map_err(|error| {
            let text = error.to_string();
            let first = text.lines().next().unwrap_or_default();
            usage(first.trim_start_matches("error: "))
        })?;
        args.check_measurable()
    }
}

/// A choice as it is typed.
fn word(restore: &clap::Command, choice: &Choice) -> Result<Vec<String>, Error> {
    let Choice { name, value } = choice;
    if OF_SERVER.contains(&name.as_str()) {
        return Err(usage(format!("`{name}` names the server, which is the same for all runs"))
            .hint("start a benchmark for each server"));
    }
    if OF_BENCH.contains(&name.as_str()) {
        return Err(usage(format!("`{name}` cannot be varied: the benchmark sets it itself")));
    }
    let arg = find(restore, name)?;
    if value == DEFAULT {
        return Ok(Vec::new());
    }
    if arg.get_action().takes_values() {
        return Ok(vec![format!("--{name}={value}")]);
    }
    match value.as_str() {
        "on" | "true" => Ok(vec![format!("--{name}")]),
        "off" | "false" => Ok(Vec::new()),
        _ => Err(usage(format!("`{name}` is on or off, not {value}"))),
    }
}

/// The option of this name, in our spelling or in that of mongorestore.
fn find<'a>(restore: &'a clap::Command, name: &str) -> Result<&'a Arg, Error> {
    let names = |arg: &'a Arg| {
        let aliases = arg.get_all_aliases().unwrap_or_default();
        arg.get_long().into_iter().chain(aliases)
    };
    let mut all = restore.get_arguments();
    if let Some(arg) = all.find(|arg| names(arg).any(|known| known == name)) {
        return Ok(arg);
    }
    let error = usage(format!("restore has no option `{name}`"));
    let mut near: Vec<(f64, &str)> = restore
        .get_arguments()
        .filter_map(Arg::get_long)
        .map(|known| (strsim::jaro_winkler(known, name), known))
        .filter(|(similarity, _)| *similarity > SIMILAR)
        .collect();
    near.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    let near: Vec<_> = near.into_iter().take(3).map(|(_, known)| known).collect();
    Err(if near.is_empty() {
        error.hint("`restorm restore --help` lists them")
    } else {
        error.hint(format!("did you mean {}?", near.join(" or ")))
    })
}
