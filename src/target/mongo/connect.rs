//! From what was typed to a connected client.

use bson::{RawDocumentBuf, rawdoc};
use mongodb::options::{Acknowledgment, ClientOptions, ServerAddress};
use mongodb::{Client, error::ErrorKind as DriverErrorKind};

use crate::error::{Error, ErrorKind};
use crate::limits::{
    CONNECT_TIMEOUT, CREATES_AHEAD, PARALLEL_INDEX_BUILDS_DEFAULT, WORKERS_DEFAULT,
};
use crate::target::mongo::{MongoTarget, journal};
use crate::target::{Fault, TargetError};

/// Which server to connect to, and how writes are acknowledged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connection {
    /// A connection string, with whatever it carries of users, TLS and options.
    pub uri: String,
    /// The write concern, where one was asked for apart from the connection string.
    pub write_concern: Option<WriteConcern>,
    /// Whether writes wait for the journal, where that was asked for.
    pub journal: Option<Journal>,
    /// How many connections may be open at once.
    pub connections_max: u32,
}

impl Connection {
    /// The server at this connection string, with the defaults of the command line.
    pub fn new(uri: impl Into<String>) -> Self {
        let connections = WORKERS_DEFAULT + PARALLEL_INDEX_BUILDS_DEFAULT + CREATES_AHEAD;
        Self {
            uri: uri.into(),
            write_concern: None,
            journal: None,
            connections_max: u32::try_from(connections).unwrap_or(u32::MAX),
        }
    }
}

/// Whether an acknowledgement waits until the journal is on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Journal {
    /// It waits (`j: true`).
    On,
    /// It does not (`j: false`).
    Off,
}

/// How many members acknowledge a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteConcern {
    /// The members.
    pub w: Members,
    /// Whether the journal is waited for, where it was said.
    pub journal: Option<Journal>,
    /// How long to wait for the members, in milliseconds.
    pub wtimeout_ms: Option<u32>,
}

/// Which members acknowledge a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Members {
    /// A majority of the voting members.
    Majority,
    /// This many members.
    Count(u32),
    /// The members that a tag set of the replica set's configuration names.
    Tag(String),
}

impl Default for WriteConcern {
    /// A majority, which waits for the journal: what the peer does unless told otherwise.
    fn default() -> Self {
        Self { w: Members::Majority, journal: None, wtimeout_ms: None }
    }
}

impl std::fmt::Display for WriteConcern {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.w {
            Members::Majority => out.write_str("majority")?,
            Members::Count(count) => write!(out, "{count}")?,
            Members::Tag(tag) => out.write_str(tag)?,
        }
        if let Some(journal) = self.journal {
            write!(out, ", j: {}", journal == Journal::On)?;
        }
        if let Some(wtimeout) = self.wtimeout_ms {
            write!(out, ", wtimeout: {wtimeout}")?;
        }
        Ok(())
    }
}

impl WriteConcern {
    /// Reads the forms that `mongorestore` takes: a number, `majority`, a tag, or a JSON object
    /// with `w`, `j` and `wtimeout`.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let text = text.trim();
        let concern = if text.starts_with('{') { parse_object(text)? } else { parse_word(text)? };
        if concern.w == Members::Count(0) {
            return Err(usage("writes that are not acknowledged cannot be counted")
                .hint("use --write-concern 1, with --journal off where speed matters most"));
        }
        Ok(concern)
    }

    fn to_document(&self, journal: Option<Journal>) -> RawDocumentBuf {
        let mut document = match &self.w {
            Members::Majority => rawdoc! { "w": "majority" },
            Members::Count(count) => rawdoc! { "w": i64::from(*count) },
            Members::Tag(tag) => rawdoc! { "w": tag.as_str() },
        };
        if let Some(journal) = journal.or(self.journal) {
            document.append(bson::raw::cstr!("j"), journal == Journal::On);
        }
        if let Some(wtimeout) = self.wtimeout_ms {
            document.append(bson::raw::cstr!("wtimeout"), i64::from(wtimeout));
        }
        document
    }
}

fn usage(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Usage, message)
}

fn parse_word(text: &str) -> Result<WriteConcern, Error> {
    let w = match text.parse::<i64>() {
        Ok(count) => Members::Count(
            u32::try_from(count).map_err(|_| usage(format!("invalid write concern: {text}")))?,
        ),
        Err(_) if text.is_empty() || text == "majority" => Members::Majority,
        Err(_) => Members::Tag(text.to_owned()),
    };
    Ok(WriteConcern { w, ..WriteConcern::default() })
}

/// Reads a flat object; like the peer, it takes keys without quotes and single quotes, which
/// shells make likely.
fn parse_object(text: &str) -> Result<WriteConcern, Error> {
    let invalid = |part: &str| {
        usage(format!("the write concern is not understood: `{part}`"))
            .hint("for example '{\"w\": \"majority\", \"wtimeout\": 5000}'")
    };
    let inside = text
        .strip_prefix('{')
        .and_then(|rest| rest.strip_suffix('}'))
        .ok_or_else(|| invalid(text))?;
    let mut concern = WriteConcern::default();
    for part in inside.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let (name, value) = part.split_once(':').ok_or_else(|| invalid(part))?;
        let bare = |text: &str| text.trim().trim_matches(['"', '\'']).to_owned();
        let value = bare(value);
        match (bare(name).as_str(), value.as_str()) {
            ("w", word) => concern.w = parse_word(word)?.w,
            ("j", "true") => concern.journal = Some(Journal::On),
            ("j", "false") => concern.journal = Some(Journal::Off),
            ("wtimeout", wait) => {
                concern.wtimeout_ms = Some(wait.parse().map_err(|_| invalid(part))?);
            }
            ("fsync", _) => {}
            _ => return Err(invalid(part)),
        }
    }
    Ok(concern)
}

impl MongoTarget {
    /// Connects, asks the server what it is, and says clearly when that fails.
    pub async fn connect(
        connection: &Connection,
    ) -> Result<(Self, crate::facts::ServerFacts), Error> {
        let mut options =
            ClientOptions::parse(&connection.uri).await.map_err(|error| not_parsed(&error))?;
        options.app_name = Some("restorm".to_owned());
        options.max_pool_size = Some(connection.connections_max);
        options.server_selection_timeout.get_or_insert(CONNECT_TIMEOUT);
        let description = describe(&options.hosts);
        let write_concern = write_concern_of(connection, &options)?;
        let client = Client::with_options(options).map_err(|error| not_parsed(&error))?;
        let mut target = Self {
            client,
            write_concern,
            keeps_zero_timestamps: false,
            ignores_unknown_index_options: false,
            description,
        };
        let facts = target.ask_facts().await.map_err(|error| target.unreachable(&error))?;
        target.write_concern = journal::asked_for(target.write_concern, &facts);
        target.keeps_zero_timestamps = facts.keeps_zero_timestamps();
        target.ignores_unknown_index_options = facts.ignores_unknown_index_options();
        Ok((target, facts))
    }

    fn unreachable(&self, error: &TargetError) -> Error {
        let mut failed = Error::new(
            ErrorKind::Connect,
            format!("cannot use the server at {}: {}", self.description, error.message),
        );
        if let Some(code) = error.code {
            failed = failed.with_code(code);
        }
        match (error.fault, error.code) {
            (Fault::Unreachable | Fault::ConnectionLost, _) => failed
                .hint("is the server running, and is this its address? give another with --uri"),
            (_, Some(13)) => failed.hint("give a user and password in the connection string"),
            (_, Some(18)) => {
                failed.hint("check user, password and authSource in the connection string")
            }
            _ => failed,
        }
    }

    pub(super) fn client(&self) -> &Client {
        &self.client
    }
}

/// The write concern of all writes: what was asked for, else what the connection string says, else
/// a majority.
fn write_concern_of(
    connection: &Connection,
    options: &ClientOptions,
) -> Result<RawDocumentBuf, Error> {
    let of_uri = options.write_concern.as_ref().map(|concern| WriteConcern {
        w: match &concern.w {
            Some(Acknowledgment::Nodes(count)) => Members::Count(*count),
            Some(Acknowledgment::Custom(tag)) => Members::Tag(tag.clone()),
            _ => Members::Majority,
        },
        journal: concern.journal.map(|on| if on { Journal::On } else { Journal::Off }),
        wtimeout_ms: concern.w_timeout.and_then(|wait| u32::try_from(wait.as_millis()).ok()),
    });
    let concern = connection.write_concern.clone().or(of_uri).unwrap_or_default();
    if concern.w == Members::Count(0) {
        return Err(usage("writes that are not acknowledged cannot be counted")
            .hint("leave w=0 out of the connection string"));
    }
    Ok(concern.to_document(connection.journal))
}

fn describe(hosts: &[ServerAddress]) -> String {
    hosts.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

/// A connection string that is wrong; its text is left out, because it may hold a password.
fn not_parsed(error: &mongodb::error::Error) -> Error {
    let kind = match &*error.kind {
        DriverErrorKind::DnsResolve { .. } => ErrorKind::Connect,
        _ => ErrorKind::Usage,
    };
    Error::new(kind, format!("the connection string cannot be used: {error}"))
        .hint("it looks like mongodb://user:password@host:27017/?replicaSet=name")
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::Document;

    fn document(text: &str, journal: Option<Journal>) -> Document {
        let concern = WriteConcern::parse(text).expect("parsed");
        Document::try_from(concern.to_document(journal)).expect("a document")
    }

    #[test]
    fn the_forms_of_the_peer_are_taken() {
        use bson::doc;
        for (text, expected) in [
            ("majority", doc! { "w": "majority" }),
            ("1", doc! { "w": 1_i64 }),
            ("dc", doc! { "w": "dc" }),
            ("{w: 1}", doc! { "w": 1_i64 }),
            (
                "{\"w\": 2, \"j\": true, \"wtimeout\": 500}",
                doc! { "w": 2_i64, "j": true, "wtimeout": 500_i64 },
            ),
            ("{'w': 'majority', 'fsync': false}", doc! { "w": "majority" }),
            ("{\"j\": false}", doc! { "w": "majority", "j": false }),
        ] {
            assert_eq!(document(text, None), expected, "{text}");
        }
        assert_eq!(document("1", Some(Journal::Off)), doc! { "w": 1_i64, "j": false });
    }

    #[test]
    fn what_cannot_be_counted_is_refused() {
        for text in ["0", "-1", "{\"w\": 0}", "{\"w\": -1}", "{\"x\": 1}", "{w}", "{w: 1"] {
            assert!(WriteConcern::parse(text).is_err(), "{text}");
        }
    }
}
