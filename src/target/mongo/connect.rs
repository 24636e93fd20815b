//! From a connection string to a connected client.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bson::{RawDocumentBuf, rawdoc};
use mongodb::options::{Acknowledgment, ClientOptions, ServerAddress, Tls};
use mongodb::{Client, error::ErrorKind as DriverErrorKind};

use crate::error::{Error, ErrorKind};
use crate::facts::{ServerFacts, Topology};
use crate::limits::{
    ANSWER_WITHIN, CONNECT_TIMEOUT, CREATES_AHEAD, PARALLEL_INDEX_BUILDS_DEFAULT, WORKERS_DEFAULT,
};
use crate::target::durable::Acknowledgement;
use crate::target::mongo::left_out::LeftOut;
use crate::target::mongo::mechanism::{AUTHENTICATION_FAILED, by_sha_256};
use crate::target::mongo::merge::{ConnectionFlags, merge};
use crate::target::mongo::uri::{ServerUri, without};
use crate::target::mongo::{MongoTarget, durability, journal};
use crate::target::{Fault, TargetError};

/// Files in which systems keep the certificates they trust: Debian, Red Hat, SUSE, Alpine.
const SYSTEM_CERTIFICATES: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// Which server to connect to, and how writes are acknowledged.
#[derive(Clone, PartialEq, Eq)]
pub struct Connection {
    /// A connection string, with whatever it carries of users, TLS and options.
    pub uri: String,
    /// The write concern, where one was asked for apart from the connection string.
    pub write_concern: Option<WriteConcern>,
    /// Whether writes wait for the journal, where that was asked for.
    pub journal: Option<Journal>,
    /// How long an insert may go unanswered before its connection counts as broken.
    pub answer_within: Duration,
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
            answer_within: ANSWER_WITHIN,
            connections_max: u32::try_from(connections).unwrap_or(u32::MAX),
        }
    }
}

impl std::fmt::Debug for Connection {
    /// Leaves the connection string out, which may hold a password.
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Connection")
            .field("write_concern", &self.write_concern)
            .field("journal", &self.journal)
            .field("connections_max", &self.connections_max)
            .finish_non_exhaustive()
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
    pub async fn connect(connection: &Connection) -> Result<(Self, ServerFacts), Error> {
        let (uri, mut options) = driver_options(&connection.uri).await?;
        let secrets = uri.secrets();
        let not_usable = |error: &mongodb::error::Error| not_usable(error, &secrets);
        options.max_pool_size = Some(connection.connections_max);
        let description = describe(&options.hosts);
        let write_concern = write_concern_of(connection, &options)?;
        let otherwise = by_sha_256(&options);
        let client = Client::with_options(options).map_err(|error| not_usable(&error))?;
        let mut target = Self {
            client,
            certain_concern: write_concern.clone(),
            write_concern,
            topology: Topology::Standalone,
            has_journal: true,
            status_refused: Arc::default(),
            acknowledgement: Acknowledgement::Durable,
            answer_within: connection.answer_within,
            keeps_zero_timestamps: false,
            ignores_unknown_index_options: false,
            left_out: LeftOut::default(),
            commit_quorum: None,
            ignored: uri.ignored.clone(),
            description,
        };
        let mut asked = target.ask_facts().await;
        if let (Err(error), Some(options)) = (&asked, otherwise)
            && error.code == Some(AUTHENTICATION_FAILED)
        {
            target.client = Client::with_options(options).map_err(|error| not_usable(&error))?;
            asked = target.ask_facts().await.or(asked);
        }
        let (facts, hello) = asked.map_err(|error| target.unreachable(&error, &uri))?;
        target.refuse_secondary(&hello)?;
        target.left_out = LeftOut::of(facts.product);
        target.keeps_zero_timestamps = facts.keeps_zero_timestamps();
        target.ignores_unknown_index_options = facts.ignores_unknown_index_options();
        Ok((target, facts))
    }

    /// Settles how writes are acknowledged, and what that is worth.
    pub(super) fn acknowledge(&mut self, facts: &ServerFacts) {
        self.topology = facts.topology;
        if !self.has_journal {
            self.acknowledge_without_journal(facts);
            return;
        }
        let concern = journal::asked_for(self.write_concern.clone(), facts);
        let (concern, is_raised) = durability::raised(concern, facts);
        if is_raised {
            self.left_out.note(
                "this server cannot tell which acknowledged documents it may have lost, so that \
                 every batch waits for a majority and its journal",
            );
        }
        self.acknowledgement = durability::of(&concern, facts);
        self.certain_concern = match self.acknowledgement {
            Acknowledgement::Durable => concern.clone(),
            Acknowledgement::Volatile => durability::certain(&concern),
        };
        self.write_concern = concern;
    }

    /// The same where nothing can wait for a journal: a majority is in a checkpoint then, but for
    /// standalone servers before 5.0, which confirm it at once.
    fn acknowledge_without_journal(&mut self, facts: &ServerFacts) {
        if facts.topology == Topology::Standalone && facts.version < journal::WAITED_FOR {
            self.left_out.note(
                "the server runs without a journal (--nojournal) and confirms documents that it \
                 loses if it ends badly before its next checkpoint",
            );
            return;
        }
        self.acknowledgement = durability::of(&self.write_concern, facts);
        if self.acknowledgement == Acknowledgement::Volatile {
            self.certain_concern = durability::certain_without_journal(&self.write_concern);
        }
    }

    fn unreachable(&self, error: &TargetError, uri: &ServerUri) -> Error {
        let message = without(&uri.secrets(), &error.message);
        let mut failed = Error::new(
            ErrorKind::Connect,
            format!("cannot use the server at {}: {message}", self.description),
        );
        if let Some(code) = error.code {
            failed = failed.with_code(code);
        }
        match (error.fault, error.code) {
            (_, Some(13)) => {
                failed.hint("give a user and password, with --username or in the connection string")
            }
            (_, Some(AUTHENTICATION_FAILED)) => failed.hint(
                "check user, password and authSource (--authentication-database); the user is \
                 looked for in that database alone",
            ),
            (Fault::Unreachable | Fault::ConnectionLost, _) => {
                failed.hint(hint_of_outage(&message, uri))
            }
            _ => failed,
        }
    }

    /// A member that is asked directly takes writes only where it is the primary.
    fn refuse_secondary(&self, hello: &bson::Document) -> Result<(), Error> {
        let writes = ["isWritablePrimary", "ismaster"]
            .iter()
            .any(|field| hello.get_bool(field).unwrap_or(false));
        // Without a primary there is an election, which the first command waits for.
        let (Ok(set), Ok(primary), false) =
            (hello.get_str("setName"), hello.get_str("primary"), writes)
        else {
            return Ok(());
        };
        let message = format!(
            "the server at {} is no primary of the replica set {set} and takes no writes",
            self.description
        );
        Err(Error::new(ErrorKind::Connect, message).hint(format!(
            "its primary is {primary}; name the set, so that the primary is found: \
             --host {set}/{}",
            self.description
        )))
    }

    pub(super) fn client(&self) -> &Client {
        &self.client
    }
}

/// A connection string in its parts, and what the driver makes of it: hosts that were looked up,
/// login, TLS and timeouts.
///
/// # Errors
///
/// Where the string or a file that it names cannot be used, or its hosts are not found.
pub(crate) async fn driver_options(uri: &str) -> Result<(ServerUri, ClientOptions), Error> {
    let uri = merge(Some(uri), &ConnectionFlags::default())?;
    check_files(&uri)?;
    let parsed = ClientOptions::parse(uri.to_text()).await;
    let mut options = parsed.map_err(|error| not_usable(&error, &uri.secrets()))?;
    options.app_name = Some("restorm".to_owned());
    options.server_selection_timeout.get_or_insert(CONNECT_TIMEOUT);
    trust_what_the_system_trusts(&mut options);
    Ok((uri, options))
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

/// What the driver cannot make a client of; secrets in its words are replaced.
fn not_usable(error: &mongodb::error::Error, secrets: &[String]) -> Error {
    let told = |kind: ErrorKind, what: &str, why: &str| {
        Error::new(kind, format!("{what}: {}", without(secrets, why)))
    };
    match &*error.kind {
        DriverErrorKind::DnsResolve { message, .. } => {
            told(ErrorKind::Connect, "the host cannot be looked up", message)
        }
        DriverErrorKind::InvalidTlsConfig { message, .. } => {
            let is_key = message.contains("decrypt");
            let failed = told(ErrorKind::Usage, "TLS cannot be set up", message);
            if is_key { failed.hint("is this the password of the key?") } else { failed }
        }
        DriverErrorKind::InvalidArgument { message, .. } => {
            told(ErrorKind::Usage, "the connection string cannot be used", message)
                .hint("it looks like mongodb://user:password@host:27017/?replicaSet=name")
        }
        _ => told(ErrorKind::Usage, "the connection cannot be set up", &error.to_string()),
    }
}

/// Looks at the files before the driver does, which would take some that hold nothing.
fn check_files(uri: &ServerUri) -> Result<(), Error> {
    for (name, what, marker) in [
        ("tlsCAFile", "CA file", "-----BEGIN CERTIFICATE-----"),
        ("tlsCertificateKeyFile", "certificate file", "-----BEGIN CERTIFICATE-----"),
        ("tlsCertificateKeyFile", "certificate file", "PRIVATE KEY-----"),
    ] {
        let Some(path) = uri.option(name) else {
            continue;
        };
        let text = std::fs::read(path)
            .map_err(|error| usage(format!("the {what} cannot be read: {error}")).in_file(path))?;
        let text = String::from_utf8_lossy(&text);
        if !text.contains(marker) {
            let marker = marker.trim_matches('-');
            return Err(usage(format!("the {what} has no part `{marker}`"))
                .in_file(path)
                .hint("certificates and keys are expected in the PEM form"));
        }
    }
    let password = uri.option("tlsCertificateKeyFilePassword");
    if key_is_encrypted(uri)? && password.is_none() {
        return Err(usage(
            "the key of the client's certificate is encrypted, and no password is \
                          given",
        )
        .hint("give --tls-certificate-key-file-password, or sslPEMKeyPassword in --config"));
    }
    Ok(())
}

/// Whether the client's key needs a password. One in the old form of OpenSSL is refused.
pub fn key_is_encrypted(uri: &ServerUri) -> Result<bool, Error> {
    let Some(path) = uri.option("tlsCertificateKeyFile") else {
        return Ok(false);
    };
    let text = std::fs::read(path).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    if text.contains("Proc-Type: 4,ENCRYPTED") {
        return Err(usage("the key is encrypted in an old form that cannot be read")
            .in_file(path)
            .hint("`openssl pkcs8 -topk8 -v2 aes256` writes it in the current one"));
    }
    Ok(text.contains("ENCRYPTED PRIVATE KEY-----"))
}

/// The driver trusts the certificates that Mozilla trusts; a system may trust its own in addition.
fn trust_what_the_system_trusts(options: &mut ClientOptions) {
    let Some(Tls::Enabled(tls)) = &mut options.tls else {
        return;
    };
    if tls.ca_file_path.is_none() {
        let of_environment = std::env::var_os("SSL_CERT_FILE").filter(|path| !path.is_empty());
        let of_system = || SYSTEM_CERTIFICATES.iter().find(|path| Path::new(path).exists());
        tls.ca_file_path = of_environment.map(Into::into).or_else(|| of_system().map(Into::into));
    }
}

/// What may be wrong where no server could be used.
pub(crate) fn hint_of_outage(message: &str, uri: &ServerUri) -> &'static str {
    let has_tls = uri.is_srv() || uri.tls() == Some(true);
    if message.contains("UnknownIssuer") || message.contains("CaUsedAsEndEntity") {
        return "the server's certificate is not signed by a CA that is trusted; name its CA with \
                --tls-ca-file";
    }
    if message.contains("NotValidForName") || message.contains("not valid for name") {
        return "the certificate is for another name; connect by the name that it is for";
    }
    if message.contains("certificate") || message.contains("HandshakeFailure") {
        return "the server refused or failed to prove an identity; see --tls-ca-file and \
                --tls-certificate-key-file";
    }
    let speaks_otherwise = ["corrupt message", "InvalidContentType", "handshake eof"];
    if has_tls && speaks_otherwise.iter().any(|words| message.contains(words)) {
        return "the server does not speak TLS; leave --tls out";
    }
    if !has_tls && message.contains("end of file") {
        return "the server closed the connection; does it require TLS? then add --tls";
    }
    "is the server running, and is this its address? give another with --host or --uri"
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
