//! One connection of its own: a command goes out, its answer comes back.
//!
//! The driver hands connections out of a pool, and the next request may go through any of them. A
//! probe needs to know which connection asks, so it speaks `OP_MSG` itself; what else the driver
//! knows (hosts, logins, TLS) is taken from its options. Layout:
//! <https://www.mongodb.com/docs/manual/reference/mongodb-wire-protocol/>.

pub(super) mod login;
mod scram;
pub(super) mod tls;

use std::fmt;
use std::io;
use std::time::Duration;

use bson::{RawDocument, RawDocumentBuf};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

/// `OP_MSG`, in which servers from 3.6 on speak.
const OP_MSG: i32 = 2013;

/// The length, the number of the request, the number it answers and the operation, of 4 bytes each.
const HEADER: usize = 16;

/// The flags, and the kind of the only section: a document.
const BEFORE_DOCUMENT: usize = HEADER + 4 + 1;

/// `maxMessageSizeBytes`; the server sends nothing larger.
const MESSAGE_BYTES_MAX: usize = 48_000_000;

/// What a connection keeps for its messages, enough for small documents: there are thousands.
const BUFFER_BYTES: usize = 1024;

/// Why a connection broke that the server ended in good order.
pub(super) const CLOSED: &str = "the server closed it";

/// Codes with which a server says that it, or its role, is about to go or is gone: shutdown and
/// step-down.
const LEAVING: [i64; 8] = [91, 189, 10_058, 10_107, 11_600, 11_602, 13_435, 13_436];

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// No connection came about.
    Connect(String),
    /// The server does not let this user in.
    Login(String),
    /// The connection broke.
    Lost(String),
    /// No answer came in this time.
    Unanswered(Duration),
    /// The server answered that it could not.
    Server {
        /// Its code.
        code: i64,
        /// The code's name, where it has one.
        name: String,
        /// What it says.
        message: String,
    },
    /// The answer cannot be understood.
    Malformed(String),
}

impl Failure {
    /// Failures of one kind have one name.
    pub(super) fn kind(&self) -> String {
        match self {
            Self::Connect(_) => "no connection".to_owned(),
            Self::Login(_) => "login refused".to_owned(),
            Self::Lost(_) => "connection lost".to_owned(),
            Self::Unanswered(_) => "no answer".to_owned(),
            Self::Server { code, name, .. } if name.is_empty() => format!("server code {code}"),
            Self::Server { name, .. } => name.clone(),
            Self::Malformed(_) => "malformed answer".to_owned(),
        }
    }

    /// Whether the connection is of no more use.
    pub(super) fn ends_connection(&self) -> bool {
        match self {
            Self::Server { code, .. } => LEAVING.contains(code),
            _ => true,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connect(why) => write!(out, "no connection came about: {why}"),
            Self::Login(why) => write!(out, "the login failed: {why}"),
            Self::Lost(why) => write!(out, "the connection broke: {why}"),
            Self::Unanswered(within) => write!(out, "no answer within {} s", within.as_secs()),
            Self::Server { code, message, .. } => write!(out, "{message} (server code {code})"),
            Self::Malformed(what) => write!(out, "the answer cannot be understood: {what}"),
        }
    }
}

/// A connection.
pub(super) struct Link {
    stream: Stream,
    buffer: Vec<u8>,
    request: i32,
}

enum Stream {
    Plain(TcpStream),
    Encrypted(Box<TlsStream<TcpStream>>),
}

impl Link {
    /// Speaks through a socket.
    pub(super) fn plain(socket: TcpStream) -> Self {
        Self::of(Stream::Plain(socket))
    }

    /// Speaks through an encrypted one.
    pub(super) fn encrypted(socket: TlsStream<TcpStream>) -> Self {
        Self::of(Stream::Encrypted(Box::new(socket)))
    }

    fn of(stream: Stream) -> Self {
        Self { stream, buffer: Vec::with_capacity(BUFFER_BYTES), request: 0 }
    }

    /// Sends a command and waits for its answer, which says `ok`.
    pub(super) async fn ask(
        &mut self,
        command: &RawDocument,
        within: Duration,
    ) -> Result<&RawDocument, Failure> {
        let answered = tokio::time::timeout(within, self.exchange(command)).await;
        answered.map_err(|_| Failure::Unanswered(within))??;
        let document = document_of(&self.buffer, self.request)?;
        refused(document).map_or(Ok(document), Err)
    }

    /// The same with an answer that outlives the next question.
    pub(super) async fn ask_owned(
        &mut self,
        command: &RawDocument,
        within: Duration,
    ) -> Result<RawDocumentBuf, Failure> {
        self.ask(command, within).await.map(ToOwned::to_owned)
    }

    async fn exchange(&mut self, command: &RawDocument) -> Result<(), Failure> {
        let lost = |error: io::Error| Failure::Lost(reason(&error));
        self.request = self.request.wrapping_add(1);
        frame(&mut self.buffer, self.request, command)?;
        match &mut self.stream {
            Stream::Plain(socket) => socket.write_all(&self.buffer).await.map_err(lost)?,
            Stream::Encrypted(socket) => {
                socket.write_all(&self.buffer).await.map_err(lost)?;
                socket.flush().await.map_err(lost)?;
            }
        }
        self.buffer.clear();
        loop {
            let read = match &mut self.stream {
                Stream::Plain(socket) => socket.read_buf(&mut self.buffer).await,
                Stream::Encrypted(socket) => socket.read_buf(&mut self.buffer).await,
            };
            if read.map_err(lost)? == 0 {
                return Err(Failure::Lost(CLOSED.to_owned()));
            }
            match length(&self.buffer)? {
                Some(length) if self.buffer.len() >= length => return Ok(()),
                Some(length) => self.buffer.reserve(length - self.buffer.len()),
                None => {}
            }
        }
    }
}

/// What the system says, without its number, to stand within a sentence.
pub(super) fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    let mut rest = text.split(" (os error").next().unwrap_or_default().chars();
    rest.next().into_iter().flat_map(char::to_lowercase).chain(rest.as_str().chars()).collect()
}

/// Writes a command as a message.
fn frame(buffer: &mut Vec<u8>, request: i32, command: &RawDocument) -> Result<(), Failure> {
    let length = BEFORE_DOCUMENT + command.as_bytes().len();
    let length = i32::try_from(length)
        .map_err(|_| Failure::Malformed("the command is larger than a message".to_owned()))?;
    buffer.clear();
    for number in [length, request, 0, OP_MSG, 0] {
        buffer.extend(number.to_le_bytes());
    }
    buffer.push(0);
    buffer.extend(command.as_bytes());
    Ok(())
}

/// The length of the message that begins here, if that much of it is there.
fn length(buffer: &[u8]) -> Result<Option<usize>, Failure> {
    let Some(bytes) = buffer.first_chunk::<4>() else { return Ok(None) };
    match usize::try_from(i32::from_le_bytes(*bytes)) {
        Ok(length) if (BEFORE_DOCUMENT..=MESSAGE_BYTES_MAX).contains(&length) => Ok(Some(length)),
        _ => Err(Failure::Malformed("its length is impossible".to_owned())),
    }
}

/// The document of a message that answers this request.
fn document_of(message: &[u8], request: i32) -> Result<&RawDocument, Failure> {
    let number = |at: usize| message.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
    let number = |at: usize| number(at).map_or(0, i32::from_le_bytes);
    if (number(8), number(12)) != (request, OP_MSG) {
        return Err(Failure::Malformed("it answers another request".to_owned()));
    }
    let bytes = message.get(BEFORE_DOCUMENT..).unwrap_or_default();
    let size = bytes.first_chunk::<4>().map_or(0, |size| i32::from_le_bytes(*size));
    // A checksum may follow, which nobody asked for.
    let bytes = usize::try_from(size).ok().and_then(|size| bytes.get(..size)).unwrap_or_default();
    RawDocument::from_bytes(bytes).map_err(|error| Failure::Malformed(error.to_string()))
}

/// Why the server did not do it, if it did not: its own words, or those of the first write error.
fn refused(answer: &RawDocument) -> Option<Failure> {
    let is_ok = answer.get("ok").ok().flatten().is_some_and(|ok| {
        ok.as_f64() == Some(1.0) || ok.as_i32() == Some(1) || ok.as_i64() == Some(1)
    });
    let first = |field: &str| answer.get_array(field).ok()?.get_document(0).ok();
    let concern = || answer.get_document("writeConcernError").ok();
    let told = if is_ok { first("writeErrors").or_else(concern)? } else { answer };
    let text = |field: &str| told.get_str(field).unwrap_or_default().to_owned();
    Some(Failure::Server {
        code: whole(told, "code").unwrap_or(0),
        name: match text("codeName") {
            name if name.is_empty() && whole(told, "code") == Some(11_000) => {
                "DuplicateKey".to_owned()
            }
            name => name,
        },
        message: text("errmsg"),
    })
}

/// A whole number, of whatever type the server sends it as.
pub(super) fn whole(document: &RawDocument, field: &str) -> Option<i64> {
    let value = document.get(field).ok()??;
    #[expect(clippy::cast_possible_truncation, reason = "counts and codes")]
    let float = || value.as_f64().map(|number| number as i64);
    value.as_i64().or_else(|| value.as_i32().map(i64::from)).or_else(float)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::rawdoc;

    fn answer(to: i32, document: &RawDocument) -> Vec<u8> {
        let mut message = Vec::new();
        frame(&mut message, 77, document).expect("small");
        message[8..12].copy_from_slice(&to.to_le_bytes());
        message
    }

    #[test]
    fn a_message_is_its_header_and_a_document() {
        let document = rawdoc! { "ping": 1 };
        let message = answer(5, &document);
        assert_eq!(length(&message).expect("possible"), Some(message.len()));
        assert_eq!(length(&message[..3]).expect("too early"), None);
        assert_eq!(document_of(&message, 5).expect("its answer"), &*document);
        assert!(document_of(&message, 6).is_err(), "it answers another");
        assert!(document_of(&message[..30], 5).is_err(), "it is cut");
        for bad in [0, -1, 20, 48_000_001_i32] {
            assert!(length(&bad.to_le_bytes()).is_err(), "{bad}");
        }
    }

    #[test]
    fn refusals_are_told_by_their_names() {
        assert_eq!(refused(&rawdoc! { "ok": 1.0 }), None);
        let failure = refused(
            &rawdoc! { "ok": 0.0, "code": 13, "codeName": "Unauthorized", "errmsg": "not allowed" },
        );
        let failure = failure.expect("refused");
        assert_eq!(failure.kind(), "Unauthorized");
        assert_eq!(failure.to_string(), "not allowed (server code 13)");
        assert!(!failure.ends_connection());
        let of_write = rawdoc! { "ok": 1, "writeErrors": [{ "index": 0, "code": 11_000 }] };
        assert_eq!(refused(&of_write).map(|one| one.kind()).as_deref(), Some("DuplicateKey"));
        let leaving = rawdoc! { "ok": 0.0, "code": 91, "codeName": "ShutdownInProgress" };
        assert!(refused(&leaving).is_some_and(|one| one.ends_connection()));
    }
}
