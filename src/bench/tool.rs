//! Other programs that restore, as commands with places to fill in.

use std::path::Path;

use crate::error::{Error, ErrorKind};

/// The place of the server's connection string.
const URI: &str = "{uri}";

/// The place of the dump.
const DUMP: &str = "{dump}";

/// The place of the server's first host.
const HOST: &str = "{host}";

/// The place of its port.
const PORT: &str = "{port}";

/// A program with the words of its command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tool {
    /// What it is called.
    pub name: String,
    /// Its words, the program first, with placeholders.
    pub words: Vec<String>,
}

impl Tool {
    /// Reads `mongorestore`, a path to it, `mongorestore:ARGUMENTS`, or any command that has the
    /// placeholders `{uri}`, or `{host}` and `{port}`, and `{dump}`; each may be called by a
    /// `NAME=` before it.
    ///
    /// # Errors
    ///
    /// Of kind [`ErrorKind::Usage`]: there is no command, a quote is open, or a place is missing.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let wrong = |why: &str| {
            Error::new(ErrorKind::Usage, format!("--tool {text}: {why}"))
                .hint("for example mongorestore:--numInsertionWorkersPerCollection=4")
        };
        let (name, command) = named(text);
        if let Some((program, arguments)) = mongorestore(command) {
            let mut words = vec![program.to_owned(), "--quiet".into(), "--uri".into(), URI.into()];
            words.extend(split(arguments).ok_or_else(|| wrong("a quote is not closed"))?);
            words.push(DUMP.to_owned());
            let more = arguments.trim();
            let own = if more.is_empty() { String::new() } else { format!(" {more}") };
            let name = name.map_or(format!("mongorestore{own}"), str::to_owned);
            return Ok(Self { name, words });
        }
        let words = split(command).ok_or_else(|| wrong("a quote is not closed"))?;
        let has = |place: &str| words.iter().any(|word| word.contains(place));
        let Some(program) = words.first() else {
            return Err(wrong("there is no command"));
        };
        if !has(DUMP) {
            return Err(wrong("it does not say where the dump goes, {dump}"));
        }
        let says_server = has(URI) || (has(HOST) && has(PORT));
        if !says_server {
            return Err(wrong("it does not say where the server goes, {uri} or {host} and {port}"));
        }
        let own = Path::new(program).file_name().map(|name| name.to_string_lossy().into_owned());
        let name = name.map(str::to_owned).or(own).unwrap_or_else(|| program.clone());
        Ok(Self { name, words })
    }
}

impl Tool {
    /// Refuses a program that is not there, before anything is measured.
    ///
    /// # Errors
    ///
    /// Of kind [`ErrorKind::Usage`].
    pub fn check(&self) -> Result<(), Error> {
        let program = self.words.first().map_or("", String::as_str);
        let is_there = if program.contains('/') {
            Path::new(program).is_file()
        } else {
            let folders = std::env::var_os("PATH").unwrap_or_default();
            std::env::split_paths(&folders).any(|folder| folder.join(program).is_file())
        };
        if is_there {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Usage, format!("there is no program `{program}`"))
            .hint("give --tool its path, such as /usr/bin/mongorestore"))
    }
}

/// A name before the command, which no path and no placeholder looks like.
fn named(text: &str) -> (Option<&str>, &str) {
    match text.split_once('=') {
        Some((name, command))
            if !name.is_empty()
                && name.chars().all(|c| c.is_alphanumeric() || "._-".contains(c)) =>
        {
            (Some(name), command)
        }
        _ => (None, text),
    }
}

/// The program and its arguments, where the command is that of mongorestore without places.
fn mongorestore(command: &str) -> Option<(&str, &str)> {
    let (program, arguments) = command.split_once(':').unwrap_or((command, ""));
    let is_meant = Path::new(program.trim()).file_name()? == "mongorestore";
    (is_meant && !command.contains(URI)).then_some((program.trim(), arguments))
}

/// The words of a text as a shell would split it, without anything else that a shell does; nothing
/// where a quote is open.
fn split(text: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match (quote, character) {
            (Some(open), _) if character == open => quote = None,
            (Some('"') | None, '\\') => {
                word.get_or_insert_default().push(characters.next()?);
            }
            (None, '\'' | '"') => {
                word.get_or_insert_default();
                quote = Some(character);
            }
            (None, _) if character.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(character),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}

/// What stands in the places of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Places {
    /// The connection string.
    pub uri: String,
    /// The dump.
    pub dump: String,
}

impl Places {
    /// The words with their places filled.
    pub fn fill(&self, words: &[String]) -> Vec<String> {
        let (host, port) = self.host_and_port();
        let filled = words.iter().map(|word| {
            word.replace(URI, &self.uri)
                .replace(DUMP, &self.dump)
                .replace(HOST, &host)
                .replace(PORT, &port)
        });
        filled.collect()
    }

    /// The first host of the connection string and its port.
    fn host_and_port(&self) -> (String, String) {
        let rest = self.uri.split_once("://").map_or(self.uri.as_str(), |(_, rest)| rest);
        let hosts = rest.split(['/', '?']).next().unwrap_or_default();
        let hosts = hosts.rsplit_once('@').map_or(hosts, |(_, hosts)| hosts);
        let first = hosts.split(',').next().unwrap_or_default();
        match first.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => (host.to_owned(), port.to_owned()),
            _ => (first.to_owned(), "27017".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        Tool::parse(text).expect(text).words
    }

    #[test]
    fn the_peer_is_known() {
        assert_eq!(words("mongorestore"), ["mongorestore", "--quiet", "--uri", "{uri}", "{dump}"]);
        let with = Tool::parse("/opt/bin/mongorestore:--gzip -j 8").expect("a tool");
        assert_eq!(with.name, "mongorestore --gzip -j 8");
        let expected =
            ["/opt/bin/mongorestore", "--quiet", "--uri", "{uri}", "--gzip", "-j", "8", "{dump}"];
        assert_eq!(with.words, expected);
        assert_eq!(Tool::parse("old=mongorestore").expect("a tool").name, "old");
    }

    #[test]
    fn any_command_with_places_is_taken() {
        let tool = Tool::parse("sh -c 'load \"$0\" --to {uri}' {dump}").expect("a tool");
        assert_eq!(tool.name, "sh");
        assert_eq!(tool.words, ["sh", "-c", "load \"$0\" --to {uri}", "{dump}"]);
        let tool = Tool::parse("mine=./x --host {host} --port {port} {dump}").expect("a tool");
        assert_eq!(tool.name, "mine");
        for wrong in ["", "x {uri}", "x {dump}", "x {dump} {host}", "x '{uri} {dump}", "a="] {
            assert!(Tool::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn programs_are_looked_for_beforehand() {
        let check = |program: &str| {
            Tool { name: "x".into(), words: vec![program.to_owned()] }.check().is_ok()
        };
        assert!(check("sh") && check("/bin/sh"));
        assert!(!check("no-such-program") && !check("/bin") && !check(""));
    }

    #[test]
    fn words_are_split_as_by_a_shell() {
        let split = |text| split(text).expect(text);
        assert_eq!(split(r#"a 'b c' "d \"e" f\ g '' "#), ["a", "b c", "d \"e", "f g", ""]);
        assert_eq!(split("a'b'\"c\""), ["abc"]);
        assert_eq!(split("  "), [""; 0]);
        assert_eq!(super::split("'a"), None);
    }

    #[test]
    fn places_are_filled() {
        let fill = |uri: &str, word: &str| {
            let places = Places { uri: uri.to_owned(), dump: "/d".to_owned() };
            places.fill(&[word.to_owned()]).remove(0)
        };
        let uri = "mongodb://u:p@db1:27018,db2/?x=1";
        assert_eq!(fill(uri, "{host}|{port}|{dump}"), "db1|27018|/d");
        assert_eq!(fill("mongodb://[::1]/", "{host}|{port}"), "[::1]|27017");
        assert_eq!(fill(uri, "--uri={uri}"), format!("--uri={uri}"));
    }
}
