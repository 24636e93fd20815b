//! The file of `--config`, which keeps secrets off the command line.

use std::path::Path;

use saphyr::{Scalar, Yaml, YamlLoader};
use saphyr_parser::Parser;

use crate::error::{Error, ErrorKind};

/// The keys that the file may have; the last one belongs to another of MongoDB's tools and is read
/// over, as the peer does.
const KEYS: [&str; 4] = ["password", "uri", "sslPEMKeyPassword", "destinationPassword"];

/// What the file says.
#[derive(Clone, Default, PartialEq, Eq)]
pub(super) struct Configuration {
    pub(super) password: Option<String>,
    pub(super) uri: Option<String>,
    pub(super) key_password: Option<String>,
}

impl Configuration {
    /// Reads the file.
    pub(super) fn read(file: &Path) -> Result<Self, Error> {
        let text = std::fs::read_to_string(file).map_err(|error| {
            Error::new(ErrorKind::Usage, format!("the configuration cannot be read: {error}"))
                .in_file(file)
        })?;
        Self::parse(&text).map_err(|error| error.in_file(file))
    }

    /// Reads its text; no error repeats any value.
    fn parse(text: &str) -> Result<Self, Error> {
        let mut loader = YamlLoader::<Yaml>::default();
        // A password of digits stays as it is written.
        loader.early_parse(false);
        let parsed = Parser::new_from_str(text).load(&mut loader, true);
        if let Some(error) = parsed.as_ref().err().or(loader.error()) {
            return Err(wrong(&format!("line {} is not YAML", error.marker().line())));
        }
        let documents = loader.into_documents();
        let mut read = Self::default();
        let Some(document) = documents.first().filter(|document| !is_nothing(document)) else {
            return Ok(read);
        };
        let entries =
            document.as_mapping().ok_or_else(|| wrong("it must be a list of `key: value`"))?;
        for (key, value) in entries {
            let key = text_of(key).ok_or_else(|| wrong("a key in it is no text"))?;
            if !KEYS.contains(&key) {
                return Err(wrong(&format!("the key `{key}` is not known")));
            }
            let Some(value) = text_of(value).filter(|value| !value.is_empty()) else {
                return Err(wrong(&format!("the value of `{key}` is no text")));
            };
            match key {
                "password" => read.password = Some(value.to_owned()),
                "uri" => read.uri = Some(value.to_owned()),
                "sslPEMKeyPassword" => read.key_password = Some(value.to_owned()),
                _ => {}
            }
        }
        Ok(read)
    }
}

/// A scalar as it is written, without its quotes.
fn text_of<'a>(node: &'a Yaml<'_>) -> Option<&'a str> {
    match node {
        Yaml::Representation(text, ..) | Yaml::Value(Scalar::String(text)) => Some(text),
        _ => None,
    }
}

/// Whether a document says nothing.
fn is_nothing(document: &Yaml<'_>) -> bool {
    document.is_null() || text_of(document).is_some_and(|text| matches!(text, "" | "~" | "null"))
}

fn wrong(why: &str) -> Error {
    Error::new(ErrorKind::Usage, format!("the configuration cannot be used: {why}"))
        .hint("it may have the keys password, uri and sslPEMKeyPassword")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_keys_are_read() {
        let text = "# ours\npassword: 'se: cret'\nuri: mongodb://h\nsslPEMKeyPassword: \"1234\"\n";
        let read = Configuration::parse(text).unwrap_or_default();
        assert_eq!(read.password.as_deref(), Some("se: cret"));
        assert_eq!(read.uri.as_deref(), Some("mongodb://h"));
        assert_eq!(read.key_password.as_deref(), Some("1234"));
        let read = Configuration::parse("password: 007").unwrap_or_default();
        assert_eq!(read.password.as_deref(), Some("007"));
        for text in ["", "---\n", "destinationPassword: x"] {
            assert!(Configuration::parse(text).is_ok_and(|it| it == Configuration::default()));
        }
    }

    #[test]
    fn anything_else_is_refused_without_showing_values() {
        for (text, expected) in [
            ("passwort: secret", "`passwort` is not known"),
            ("password: [secret]", "`password` is no text"),
            ("password:", "is no text"),
            ("- secret", "list of `key: value`"),
            ("secret", "list of `key: value`"),
            ("password: 'secret", "is not YAML"),
            ("password: secret\npassword: secret", "is not YAML"),
        ] {
            let error = Configuration::parse(text).err().map(|error| error.to_string());
            let error = error.unwrap_or_default();
            assert!(error.contains(expected), "{text}: {error}");
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
