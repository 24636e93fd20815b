//! The server that is asked: where it is, how one gets in, and where its primary is now.

use std::net::Ipv6Addr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bson::{RawDocument, RawDocumentBuf, rawdoc};
use mongodb::options::{Acknowledgment, ClientOptions, ServerAddress, Tls};
use tokio::net::TcpStream;

use crate::error::{Error, ErrorKind};
use crate::limits::{CONNECT_TIMEOUT, PROBE_ANSWER_WITHIN};
use crate::probe::wire::login::Login;
use crate::probe::wire::tls::Encryption;
use crate::probe::wire::{CLOSED, Failure, Link, reason, whole};
use crate::target::mongo::uri::{ServerUri, without};
use crate::target::mongo::{driver_options, hint_of_outage};

/// The port of a server that does not say one.
const PORT: u16 = 27_017;

/// What is said of a set without a primary.
const NO_PRIMARY: &str = "the replica set has no primary";

/// A host and a port.
type Address = (String, u16);

/// A server, and how connections to it are set up.
pub struct Server {
    hosts: Vec<Address>,
    /// The host that took the last connection.
    current: Mutex<Address>,
    /// The replica set that is meant, where the connection string names it.
    set_name: Option<String>,
    /// Whether that host is meant and no other, whatever it is in its replica set.
    is_direct: bool,
    encryption: Option<Encryption>,
    login: Login,
    connect_within: Duration,
    write_concern: Option<RawDocumentBuf>,
    uri: ServerUri,
}

impl std::fmt::Debug for Server {
    /// Names hosts only.
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Server").field("hosts", &self.hosts).finish_non_exhaustive()
    }
}

impl Server {
    /// The server of a connection string; hosts behind a DNS record are looked up.
    ///
    /// # Errors
    ///
    /// Where the string cannot be used, or asks for what a probe cannot do.
    pub async fn find(uri: &str) -> Result<Self, Error> {
        let (uri, options) = driver_options(uri).await?;
        let hosts = options.hosts.iter().map(address).collect::<Result<Vec<_>, _>>()?;
        let first = hosts.first().cloned();
        let encryption = match &options.tls {
            Some(Tls::Enabled(tls)) => Some(Encryption::of(tls)?),
            _ => None,
        };
        Ok(Self {
            current: Mutex::new(first.unwrap_or_else(|| ("localhost".to_owned(), PORT))),
            hosts,
            set_name: options.repl_set_name.clone(),
            is_direct: options.direct_connection.unwrap_or(false),
            encryption,
            login: Login::of(options.credential.as_ref())?,
            connect_within: options.connect_timeout.unwrap_or(CONNECT_TIMEOUT),
            write_concern: write_concern(&options)?,
            uri,
        })
    }

    /// The servers' addresses, without user or password.
    pub fn description(&self) -> String {
        let hosts: Vec<_> = self.hosts.iter().map(shown).collect();
        hosts.join(",")
    }

    /// The write concern of the connection string, where it has one.
    pub(super) fn write_concern(&self) -> Option<&RawDocumentBuf> {
        self.write_concern.as_ref()
    }

    /// A connection to the server that takes writes, logged in.
    pub(super) async fn connect(&self) -> Result<Link, Failure> {
        let mut failure = None;
        let current = self.current.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut left: Vec<Address> = self.hosts.iter().rev().cloned().collect();
        let mut next = Some(current);
        // Each host may name another as the primary once.
        for _ in 0..=self.hosts.len() {
            let Some(address) = next.take().or_else(|| left.pop()) else { break };
            left.retain(|other| *other != address);
            match self.open(&address).await {
                Ok((link, Role::Usable)) => {
                    *self.current.lock().unwrap_or_else(PoisonError::into_inner) = address;
                    return Ok(link);
                }
                Ok((_, Role::Secondary(primary))) => {
                    next = primary;
                    failure = Some(Failure::Connect(NO_PRIMARY.to_owned()));
                }
                Err(error @ Failure::Login(_)) => return Err(error),
                Err(error) => failure = Some(error),
            }
        }
        Err(failure.unwrap_or_else(|| Failure::Connect("no host is left".to_owned())))
    }

    async fn open(&self, address: &Address) -> Result<(Link, Role), Failure> {
        let opened = tokio::time::timeout(self.connect_within, self.socket(address)).await;
        let seconds = self.connect_within.as_secs();
        let late = || Failure::Connect(format!("nobody answers within {seconds} s"));
        let mut link = opened.map_err(|_| late())??;
        let within = PROBE_ANSWER_WITHIN;
        let greeting = link.ask_owned(&self.greeting(), within).await.map_err(of_set_up)?;
        self.check_set(&greeting)?;
        let role = self.role(&greeting);
        if matches!(role, Role::Usable) {
            self.login.through(&mut link, &greeting, within).await.map_err(of_set_up)?;
        }
        Ok((link, role))
    }

    async fn socket(&self, (host, port): &Address) -> Result<Link, Failure> {
        let socket = TcpStream::connect((host.as_str(), *port)).await;
        let socket = socket.map_err(|error| Failure::Connect(explained(&error)))?;
        // A request is one small packet that must not wait for another.
        socket.set_nodelay(true).map_err(|error| Failure::Connect(reason(&error)))?;
        match &self.encryption {
            None => Ok(Link::plain(socket)),
            Some(encryption) => encryption.onto(host, socket).await.map(Link::encrypted),
        }
    }

    fn greeting(&self) -> RawDocumentBuf {
        // The old name of `hello`, which every server knows.
        let mut greeting = rawdoc! {
            "isMaster": 1,
            "helloOk": true,
            "client": {
                "application": { "name": "restorm" },
                "driver": { "name": "restorm probe", "version": env!("CARGO_PKG_VERSION") },
                "os": { "type": std::env::consts::OS },
            },
            "$db": "admin",
        };
        if let Some(user) = self.login.asks_mechanisms_of() {
            greeting.append(bson::raw::cstr!("saslSupportedMechs"), user);
        }
        greeting
    }

    /// Refuses a host of another replica set than the one that is meant, as the driver does.
    fn check_set(&self, greeting: &RawDocument) -> Result<(), Failure> {
        let name = greeting.get_str("setName").ok();
        match &self.set_name {
            Some(wanted) if name != Some(wanted) => Err(Failure::Connect(match name {
                Some(name) => format!("the host is of the replica set `{name}`, not of `{wanted}`"),
                None => format!("the host is not of the replica set `{wanted}`"),
            })),
            _ => Ok(()),
        }
    }

    fn role(&self, greeting: &RawDocument) -> Role {
        let says = |field: &str| greeting.get_bool(field).unwrap_or(false);
        let is_router = greeting.get_str("msg").is_ok_and(|msg| msg == "isdbgrid");
        let writes = says("ismaster") || says("isWritablePrimary");
        if is_router || writes || self.is_direct {
            return Role::Usable;
        }
        Role::Secondary(greeting.get_str("primary").ok().and_then(parsed))
    }

    /// What keeps a probe from beginning.
    pub(super) fn unusable(&self, failure: &Failure) -> Error {
        let message = without(&self.uri.secrets(), &failure.to_string());
        let message = format!("cannot use the server at {}: {message}", self.description());
        let error = Error::new(ErrorKind::Connect, message);
        match failure {
            Failure::Login(_) => error.hint(
                "check user, password and authSource (--authentication-database); the user is \
                 looked for in that database alone",
            ),
            Failure::Connect(why) if why == NO_PRIMARY => error.hint(
                "wait until one is elected, or ask a member alone with directConnection=true",
            ),
            Failure::Connect(why) if why.contains("of the replica set") => {
                error.hint("give the set's name as replicaSet in the connection string, or none")
            }
            Failure::Connect(why) | Failure::Lost(why) => {
                // The driver's word for it, from which the hint is chosen.
                let why = if why == CLOSED { "end of file" } else { why };
                error.hint(hint_of_outage(why, &self.uri))
            }
            Failure::Server { code: 13, .. } => {
                error.hint("give a user and password, with --username or in the connection string")
            }
            _ => error,
        }
    }
}

/// What a host may be used for.
enum Role {
    /// For everything.
    Usable,
    /// It takes no writes; this is the primary, where it knows it.
    Secondary(Option<Address>),
}

/// A connection that breaks before it can be used never came about.
fn of_set_up(failure: Failure) -> Failure {
    match failure {
        Failure::Lost(why) => Failure::Connect(why),
        other => other,
    }
}

/// What the system says of a connection that did not come about, with the limit that it met.
fn explained(error: &std::io::Error) -> String {
    let why = reason(error);
    match error.kind() {
        std::io::ErrorKind::AddrNotAvailable => format!(
            "{why}: all local ports to this address are taken; \
             net.ipv4.ip_local_port_range says how many there are"
        ),
        _ if why.starts_with("too many open files") => format!("{why}: `ulimit -n` says how many"),
        _ => why,
    }
}

fn write_concern(options: &ClientOptions) -> Result<Option<RawDocumentBuf>, Error> {
    let Some(concern) = &options.write_concern else { return Ok(None) };
    if concern.w == Some(Acknowledgment::Nodes(0)) {
        let message = "writes that are not acknowledged cannot be counted";
        return Err(
            Error::new(ErrorKind::Usage, message).hint("leave w=0 out of the connection string")
        );
    }
    let document = bson::serialize_to_raw_document_buf(concern).ok();
    // An empty one is none.
    Ok(document.filter(|document| document.iter().next().is_some()))
}

fn address(address: &ServerAddress) -> Result<Address, Error> {
    match address {
        ServerAddress::Tcp { host, port } => {
            let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
            Ok((host, port.unwrap_or(PORT)))
        }
        _ => Err(Error::new(ErrorKind::Usage, "a probe reaches servers through TCP only")
            .hint("name the host and the port")),
    }
}

/// A host as a server names it.
fn parsed(text: &str) -> Option<Address> {
    let (host, port) = text.rsplit_once(':')?;
    let host = host.trim_start_matches('[').trim_end_matches(']');
    Some((host.to_owned(), port.parse().ok()?))
}

fn shown((host, port): &Address) -> String {
    if host.parse::<Ipv6Addr>().is_ok() {
        format!("[{host}]:{port}")
    } else {
        format!("{host}:{port}")
    }
}

/// What the server tells of its connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Connections {
    /// Open ones, those of others included.
    pub(super) current: u64,
    /// How many more it would take.
    pub(super) available: u64,
}

/// Asks the server how many connections it has; nothing where it does not tell this user.
pub(super) async fn connections(link: &mut Link) -> Option<Connections> {
    let command =
        rawdoc! { "serverStatus": 1, "repl": 0, "metrics": 0, "locks": 0, "$db": "admin" };
    let answer = link.ask(&command, PROBE_ANSWER_WITHIN).await.ok()?;
    let told = answer.get_document("connections").ok()?;
    let number = |field| whole(told, field).and_then(|number| u64::try_from(number).ok());
    Some(Connections { current: number("current")?, available: number("available")? })
}

/// The server's version.
pub(super) async fn version(link: &mut Link) -> Option<String> {
    let command = rawdoc! { "buildInfo": 1, "$db": "admin" };
    let answer = link.ask(&command, PROBE_ANSWER_WITHIN).await.ok()?;
    answer.get_str("version").ok().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn find(uri: &str) -> Result<Server, String> {
        Server::find(uri).await.map_err(|error| error.to_string())
    }

    #[tokio::test]
    async fn hosts_are_told_without_the_login() {
        let server = find("mongodb://ann:secret@a:1,[::1]:2/?replicaSet=r").await.expect("found");
        assert_eq!(server.description(), "a:1,[::1]:2");
        assert!(!format!("{server:?}").contains("secret"));
        assert!(!server.is_direct && server.encryption.is_none());
        assert!(find("mongodb://a/?w=2").await.expect("found").write_concern().is_some());
        assert!(find("mongodb://a/?w=0").await.expect_err("refused").contains("acknowledged"));
        assert!(find("mongodb://a/").await.expect("found").write_concern().is_none());
    }

    #[tokio::test]
    async fn nobody_at_a_port_is_told() {
        let server = find("mongodb://127.0.0.1:1/").await.expect("found");
        let failure = server.connect().await.err().expect("nobody is there");
        assert_eq!(failure.to_string(), "no connection came about: connection refused");
        let error = server.unusable(&failure);
        assert!(error.to_string().contains("127.0.0.1:1"), "{error}");
        assert!(error.hint_text().is_some());
    }

    #[test]
    fn a_primary_is_named_by_host_and_port() {
        assert_eq!(parsed("db1:27018"), Some(("db1".to_owned(), 27_018)));
        assert_eq!(parsed("[::1]:2"), Some(("::1".to_owned(), 2)));
        assert_eq!(parsed("db1"), None);
    }
}
