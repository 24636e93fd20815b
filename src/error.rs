//! Everything that can go wrong, with where it happened and what to do about it.
//!
//! One [`Error`] is one sentence for a person: what happened, in which file and at which byte, for
//! which namespace, with the server's code where the server said it, and a hint where there is a
//! known way out. Rooms return it; nothing but the command line prints it.

use std::fmt;
use std::path::{Path, PathBuf};

/// The stage at which something went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The command line asks for something that cannot be.
    Usage,
    /// The dump cannot be found or listed.
    Dump,
    /// The dump and the server do not allow what was asked.
    Plan,
    /// A file of the dump cannot be read or holds damaged data.
    Read,
    /// No usable connection to the server.
    Connect,
    /// The server refused to create, drop or write.
    Write,
    /// An index could not be built.
    Index,
    /// The oplog cannot be replayed.
    Oplog,
    /// Somebody asked for the end before the run had begun.
    Interrupted,
    /// A broken invariant of this program.
    Internal,
}

/// What went wrong, where, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    // Boxed so that results carrying it stay small on the hot path.
    parts: Box<Parts>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Parts {
    kind: ErrorKind,
    message: String,
    namespace: Option<String>,
    file: Option<PathBuf>,
    offset: Option<u64>,
    code: Option<i32>,
    hint: Option<String>,
}

impl Error {
    /// An error of the given kind; the message is a sentence without its final period.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        let message = message.into();
        let parts = Parts {
            kind,
            message,
            namespace: None,
            file: None,
            offset: None,
            code: None,
            hint: None,
        };
        Self { parts: Box::new(parts) }
    }

    /// The same error at another stage.
    #[must_use]
    pub fn at_stage(mut self, kind: ErrorKind) -> Self {
        self.parts.kind = kind;
        self
    }

    /// Names the namespace concerned.
    #[must_use]
    pub fn of(mut self, namespace: impl fmt::Display) -> Self {
        self.parts.namespace = Some(namespace.to_string());
        self
    }

    /// Names the file concerned.
    #[must_use]
    pub fn in_file(mut self, file: impl AsRef<Path>) -> Self {
        self.parts.file = Some(file.as_ref().to_path_buf());
        self
    }

    /// Gives the byte offset in the uncompressed content of the file.
    #[must_use]
    pub fn at_byte(mut self, offset: u64) -> Self {
        self.parts.offset = Some(offset);
        self
    }

    /// Gives the server's error code.
    #[must_use]
    pub fn with_code(mut self, code: i32) -> Self {
        self.parts.code = Some(code);
        self
    }

    /// Says what to do about it; a sentence without its final period.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.parts.hint = Some(hint.into());
        self
    }

    /// The stage at which it went wrong.
    pub fn kind(&self) -> ErrorKind {
        self.parts.kind
    }

    /// What happened, without where.
    pub fn message(&self) -> &str {
        &self.parts.message
    }

    /// The server's error code, where the server said it.
    pub fn code(&self) -> Option<i32> {
        self.parts.code
    }

    /// The byte offset in the uncompressed content of the file, where there is one.
    pub fn offset(&self) -> Option<u64> {
        self.parts.offset
    }

    /// What to do about it, where that is known.
    pub fn hint_text(&self) -> Option<&str> {
        self.parts.hint.as_deref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(namespace) = &self.parts.namespace {
            write!(out, "{namespace}: ")?;
        }
        out.write_str(&self.parts.message)?;
        if let Some(file) = &self.parts.file {
            write!(out, ", in {}", file.display())?;
        }
        if let Some(offset) = self.parts.offset {
            write!(out, ", at byte {offset}")?;
        }
        if let Some(code) = self.parts.code {
            write!(out, " (server code {code})")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_sentence_says_what_and_where() {
        let error = Error::new(ErrorKind::Read, "the file ends inside a document")
            .of("shop.orders")
            .in_file("dump/shop/orders.bson")
            .at_byte(1024)
            .hint("dump the collection again");
        assert_eq!(
            error.to_string(),
            "shop.orders: the file ends inside a document, in dump/shop/orders.bson, at byte 1024"
        );
        assert_eq!(error.hint_text(), Some("dump the collection again"));
        assert_eq!(error.offset(), Some(1024));
    }

    #[test]
    fn the_servers_code_comes_last() {
        let error = Error::new(ErrorKind::Index, "index keys must be unique").with_code(11000);
        assert_eq!(error.to_string(), "index keys must be unique (server code 11000)");
        assert_eq!(error.code(), Some(11000));
    }
}
