//! Turns words as the tools of MongoDB take them into words that clap takes.
//!
//! The two differ in small rules: mongorestore and mongoimport count `-v=2`, read `-h` as the host,
//! let the last of several values count, and take an empty text for none.
//! What is not an option of theirs passes through as it is.

use std::ffi::{OsStr, OsString};
use std::iter::Peekable;

use crate::cli::mongorestore::options::{Answer, GONE_FLAGS, OPTIONS, PeerOption, Takes};
use crate::error::{Error, ErrorKind};
use crate::limits::BATCH_DOCUMENTS_MAX;

/// More repetitions of `-v` than this say nothing new.
const VERBOSITY_MAX: u32 = 3;

/// Words for clap.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Translated {
    /// The words, without the name of the program.
    pub(crate) words: Vec<OsString>,
    /// What was taken and changes nothing, a sentence each.
    pub(crate) notes: Vec<String>,
}

/// Translates words of mongorestore, without the name of the program and of the command.
pub(crate) fn translate(words: Vec<OsString>) -> Result<Translated, Error> {
    translate_of(&[&OPTIONS, &GONE_FLAGS], words)
}

/// Translates words of a tool that has these options.
pub(in crate::cli) fn translate_of(
    options: &'static [&'static [PeerOption]],
    words: Vec<OsString>,
) -> Result<Translated, Error> {
    let mut translator = Translator {
        options,
        rest: words.into_iter().peekable(),
        words: Vec::new(),
        notes: Vec::new(),
        verbosity: 0,
        is_quiet: false,
    };
    while let Some(word) = translator.rest.next() {
        if word == "--" {
            translator.words.push((None, word));
            let rest = translator.rest.by_ref().map(|word| (None, word));
            translator.words.extend(rest);
            break;
        }
        translator.take(word)?;
    }
    Ok(translator.finish())
}

struct Translator {
    options: &'static [&'static [PeerOption]],
    rest: Peekable<std::vec::IntoIter<OsString>>,
    /// The words, each with the option that it is of.
    words: Vec<(Option<&'static str>, OsString)>,
    notes: Vec<String>,
    verbosity: u32,
    is_quiet: bool,
}

impl Translator {
    fn find(&self, is_meant: impl Fn(&PeerOption) -> bool) -> Option<&'static PeerOption> {
        self.options.iter().copied().flatten().find(|option| is_meant(option))
    }

    fn find_short(&self, short: char) -> Option<&'static PeerOption> {
        self.find(|option| option.short == Some(short))
    }

    fn take(&mut self, word: OsString) -> Result<(), Error> {
        let Some(text) = word.to_str() else {
            self.words.push((None, word));
            return Ok(());
        };
        if let Some(long) = text.strip_prefix("--") {
            let (name, value) = match long.split_once('=') {
                Some((name, value)) => (name, Some(OsString::from(value))),
                None => (long, None),
            };
            let option = self.find(|option| option.long == name);
            if let Some(option) = option.filter(|option| self.is_meant(option, value.as_ref())) {
                return self.option(option, &format!("--{name}"), value);
            }
        } else if let Some(cluster) = text.strip_prefix('-').filter(|cluster| !cluster.is_empty()) {
            if cluster.starts_with(|short| self.find_short(short).is_some()) {
                return self.cluster(cluster);
            }
        } else if text.is_empty() {
            return Ok(());
        }
        self.words.push((None, word));
        Ok(())
    }

    /// Whether the option of mongorestore is meant, rather than one of ours with the same name:
    /// `--journal` was once a flag, ours has a value.
    fn is_meant(&mut self, option: &PeerOption, value: Option<&OsString>) -> bool {
        option.long != "journal" || (value.is_none() && !self.next_is_value())
    }

    /// One letter after the other, until one takes the rest as its value.
    fn cluster(&mut self, cluster: &str) -> Result<(), Error> {
        let mut rest = cluster;
        while let Some(short) = rest.chars().next() {
            let Some(option) = self.find_short(short) else {
                return Err(usage(format!("unknown option `{short}' in `-{cluster}'")));
            };
            rest = &rest[short.len_utf8()..];
            if option.takes == Takes::Level {
                let sets = rest.starts_with('=').then(|| cluster.len() - rest.len() > 1);
                match (sets, rest.strip_prefix('=')) {
                    (Some(sets), Some(level)) => {
                        let level = level_of(level)?;
                        self.verbosity = if sets { level } else { self.verbosity + level };
                        return Ok(());
                    }
                    _ => self.verbosity += 1,
                }
                continue;
            }
            let value = rest.strip_prefix('=').unwrap_or(rest);
            let value = (!rest.is_empty()).then(|| OsString::from(value));
            if short == 'h' && value.is_none() && !self.next_is_value() {
                self.words.push((None, "--help".into()));
                return Ok(());
            }
            return self.option(option, &format!("-{short}"), value);
        }
        Ok(())
    }

    fn next_is_value(&mut self) -> bool {
        self.rest.peek().is_some_and(|next| !looks_like_an_option(next))
    }

    fn option(
        &mut self,
        option: &'static PeerOption,
        typed: &str,
        value: Option<OsString>,
    ) -> Result<(), Error> {
        let value = self.value(option, typed, value)?;
        match option.answer {
            Answer::Same => self.same(option, value),
            Answer::Ignored(why) => {
                self.notes.push(format!("{typed} changes nothing: {why}"));
                Ok(())
            }
            Answer::Refused(why) => Err(usage(format!("{typed} is refused: {why}"))),
        }
    }

    /// The value of an option, from the same word or the next one.
    fn value(
        &mut self,
        option: &PeerOption,
        typed: &str,
        value: Option<OsString>,
    ) -> Result<Option<OsString>, Error> {
        match (option.takes, value) {
            (Takes::Nothing, Some(_)) => {
                Err(usage(format!("bool flag `{typed}' cannot have an argument")))
            }
            (Takes::Text, None) if option.long == "password" && !self.next_is_value() => Ok(None),
            (Takes::Text | Takes::Number | Takes::List, None) => match self.rest.peek() {
                None => Err(usage(format!("expected argument for flag `{typed}'"))),
                Some(next) if looks_like_an_option(next) => Err(usage(format!(
                    "expected argument for flag `{typed}', but got option `{}'",
                    next.to_string_lossy()
                ))
                .hint(format!("{typed}=VALUE takes any value"))),
                Some(_) => Ok(self.rest.next()),
            },
            (_, value) => Ok(value),
        }
    }

    /// Passes an option on that is taken in its own spelling.
    fn same(&mut self, option: &'static PeerOption, value: Option<OsString>) -> Result<(), Error> {
        match (option.takes, value) {
            (Takes::Level, None) => self.verbosity += 1,
            (Takes::Level, Some(level)) => self.verbosity += level_of(&level.to_string_lossy())?,
            (Takes::Text, Some(value)) if value.is_empty() => self.forget(option.long),
            // The password is asked for.
            (Takes::Text, None) => self.forget(option.long),
            (Takes::Number, Some(value)) => {
                let value = number(option.long, value)?;
                self.forget(option.long);
                self.emit(option.long, Some(&value));
            }
            _ if option.long == "quiet" => self.is_quiet = true,
            (Takes::List, value) => self.emit(option.long, value.as_deref()),
            (_, value) => {
                self.forget(option.long);
                self.emit(option.long, value.as_deref());
            }
        }
        Ok(())
    }

    /// Takes an option back, because a later one counts.
    fn forget(&mut self, long: &str) {
        self.words.retain(|(option, _)| *option != Some(long));
    }

    fn emit(&mut self, long: &'static str, value: Option<&OsStr>) {
        let mut word = OsString::from(format!("--{long}"));
        if let Some(value) = value {
            word.push("=");
            word.push(value);
        }
        self.words.push((Some(long), word));
    }

    /// The words, with what was counted in front; quiet wins over any verbosity.
    fn finish(self) -> Translated {
        let shown = if self.is_quiet {
            vec!["--quiet".into()]
        } else {
            (0..self.verbosity.min(VERBOSITY_MAX)).map(|_| "--verbose".into()).collect()
        };
        let words = self.words.into_iter().map(|(_, word)| word);
        Translated { words: shown.into_iter().chain(words).collect(), notes: self.notes }
    }
}

fn looks_like_an_option(word: &OsStr) -> bool {
    word.as_encoded_bytes().starts_with(b"-") && word != "-"
}

/// A number in the bounds within which mongorestore means the same by it.
fn number(long: &str, value: OsString) -> Result<OsString, Error> {
    let Some(number) = value.to_str().and_then(|text| text.parse::<i64>().ok()) else {
        // Clap says what is wrong with it.
        return Ok(value);
    };
    let bounded = match long {
        "numInsertionWorkersPerCollection" if number < 0 => {
            return Err(usage(
                "cannot specify a negative number of insertion workers per collection",
            ));
        }
        // No collection in parallel is one after the other; without a worker mongorestore restores
        // nothing and calls it success.
        "numParallelCollections"
        | "numInsertionWorkersPerCollection"
        | "numInsertionWorkers"
        | "numDecodingWorkers" => number.max(1),
        "batchSize" if number < 0 => {
            return Err(usage("a batch cannot have a negative number of documents"));
        }
        "batchSize" => number.clamp(1, i64::try_from(BATCH_DOCUMENTS_MAX).unwrap_or(i64::MAX)),
        _ => return Ok(value),
    };
    Ok(bounded.to_string().into())
}

fn level_of(text: &str) -> Result<u32, Error> {
    text.parse().map_err(|_| {
        usage("Invalid verbosity value given").hint("for example -v, -vvv or --verbose=2")
    })
}

fn usage(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Usage, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &[&str]) -> Result<String, String> {
        let line = line.iter().map(OsString::from).collect();
        let translated = translate(line).map_err(|error| error.to_string())?;
        let words: Vec<_> =
            translated.words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        Ok(words.join(" "))
    }

    #[track_caller]
    fn becomes(line: &[&str], expected: &str) {
        assert_eq!(words(line).as_deref(), Ok(expected), "{line:?}");
    }

    #[track_caller]
    fn refused(line: &[&str], expected: &str) {
        let error = words(line).expect_err("it is refused");
        assert!(error.contains(expected), "{line:?}: {error}");
    }

    #[test]
    fn a_value_stands_in_the_same_word_or_in_the_next_one() {
        for line in [&["--db", "x"][..], &["--db=x"], &["-d", "x"], &["-dx"], &["-d=x"]] {
            becomes(line, "--db=x");
        }
        becomes(&["-d", "-"], "--db=-");
        becomes(&["--db=-x"], "--db=-x");
        refused(&["--db", "-x"], "expected argument for flag `--db', but got option `-x'");
        refused(&["-d"], "expected argument for flag `-d'");
    }

    #[test]
    fn a_flag_takes_no_value() {
        becomes(&["--drop", "dump"], "--drop dump");
        refused(&["--noIndexRestore=true"], "`--noIndexRestore' cannot have an argument");
    }

    #[test]
    fn verbosity_is_counted_and_quiet_wins() {
        for (line, expected) in [
            (&["-v"][..], "--verbose"),
            (&["-vv"], "--verbose --verbose"),
            (&["-v", "-v"], "--verbose --verbose"),
            (&["-v=2"], "--verbose --verbose"),
            (&["-vv=1"], "--verbose"),
            (&["--verbose=3"], "--verbose --verbose --verbose"),
            (&["--verbose", "--verbose=1"], "--verbose --verbose"),
            (&["-vvvvvvv"], "--verbose --verbose --verbose"),
            (&["-v", "--quiet", "-v"], "--quiet"),
            (&["-vd", "x"], "--verbose --db=x"),
            (&["dump", "-v"], "--verbose dump"),
        ] {
            becomes(line, expected);
        }
        refused(&["-v=much"], "Invalid verbosity value given");
        refused(&["--verbose=much"], "Invalid verbosity value given");
    }

    #[test]
    fn the_last_value_counts() {
        becomes(&["--db=x", "dump", "-d", "y"], "dump --db=y");
        becomes(&["--numParallelCollections", "4", "-j8"], "--numParallelCollections=8");
        becomes(&["--drop", "--drop"], "--drop");
        becomes(&["--db=x", "--db="], "");
    }

    #[test]
    fn h_is_the_host_where_a_value_follows_and_help_where_none_does() {
        becomes(&["-h", "db1", "dump"], "--host=db1 dump");
        becomes(&["-hdb1"], "--host=db1");
        becomes(&["dump", "-h"], "dump --help");
        becomes(&["-h", "--drop"], "--help --drop");
    }

    #[test]
    fn numbers_have_the_bounds_of_mongorestore() {
        becomes(&["-j", "0"], "--numParallelCollections=1");
        becomes(&["-j=-3"], "--numParallelCollections=1");
        becomes(&["-j", "many"], "--numParallelCollections=many");
        becomes(&["--numInsertionWorkersPerCollection=0"], "--numInsertionWorkersPerCollection=1");
        refused(&["--numInsertionWorkersPerCollection=-1"], "a negative number of insertion");
        becomes(&["--batchSize", "0"], "--batchSize=1");
        becomes(&["--batchSize", "500000"], "--batchSize=100000");
        refused(&["--batchSize=-1"], "a negative number of documents");
    }

    #[test]
    fn a_connection_string_passes_through_and_empty_words_do_not() {
        becomes(&["mongodb://a/", "dump"], "mongodb://a/ dump");
        becomes(&["", "dump", ""], "dump");
    }

    #[test]
    fn a_password_needs_no_value() {
        becomes(&["-u", "me", "-p"], "--username=me");
        becomes(&["-p", "--drop", "dump"], "--drop dump");
        becomes(&["-psecret"], "--password=secret");
    }

    #[test]
    fn what_is_not_the_peers_passes_through() {
        becomes(
            &["--batch-bytes", "5K", "--journal", "off", "-q", "--", "--db", "x"],
            "--batch-bytes 5K --journal off -q -- --db x",
        );
        becomes(&["--journal=on"], "--journal=on");
        refused(&["dump", "--journal"], "start a mongod");
        refused(&["--journal", "--drop"], "start a mongod");
        refused(&["--dbpath", "x"], "start a mongod");
        refused(&["--directoryperdb"], "start a mongod");
    }

    #[test]
    fn what_changes_nothing_is_told() {
        let line = ["--trace", "--numThreads", "4"].map(OsString::from).to_vec();
        let translated = translate(line).expect("taken");
        assert!(translated.words.is_empty());
        assert_eq!(translated.notes.len(), 2);
    }

    #[test]
    fn every_name_is_there_once() {
        let all: Vec<_> = OPTIONS.iter().chain(&GONE_FLAGS).collect();
        for option in &all {
            let same = |other: &&&PeerOption| other.long == option.long;
            assert_eq!(all.iter().filter(same).count(), 1, "{}", option.long);
        }
        let shorts: Vec<_> = OPTIONS.iter().filter_map(|option| option.short).collect();
        assert_eq!(shorts, ['v', 'h', 'u', 'p', 'd', 'c', 'j']);
    }
}
