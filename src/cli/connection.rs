//! The arguments that say which server is meant and how one logs in to it.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::cli::{configuration::Configuration, password};
use crate::command::restore::{
    ConnectionFlags, ServerUri, is_uri, key_is_encrypted, merge, wants_password,
};
use crate::error::{Error, ErrorKind};

/// Names a server where nothing else does.
const VARIABLE: &str = "RESTORM_URI";

/// The server, and how one logs in to it.
#[derive(Args, Clone, Default)]
#[command(next_help_heading = "Connection")]
#[expect(clippy::struct_excessive_bools, reason = "flags as typed; options have enums")]
pub struct ConnectionArgs {
    /// Connection string, such as `mongodb://user:password@host:27017/?replicaSet=rs0`; may be
    /// given without `--uri` as well. Where no server is named, that of the environment variable
    /// `RESTORM_URI`
    #[arg(long, value_name = "URI")]
    uri: Option<String>,

    /// Server to connect to, `[set/]host[:port][,host…]` [default: localhost]
    #[arg(long, short = 'h', value_name = "HOST")]
    host: Option<String>,

    /// Port of the server, where the host does not say it [default: 27017]
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,

    /// User to log in as
    #[arg(long, short, value_name = "NAME", help_heading = "Login")]
    username: Option<String>,

    /// The user's password; without a value, or where it is missing, it is asked for
    #[arg(long, short, value_name = "PASSWORD", num_args = 0..=1, default_missing_value = "")]
    #[arg(help_heading = "Login")]
    password: Option<String>,

    /// Database that knows the user [default: that of --db, else admin]
    #[arg(long, alias = "authenticationDatabase", value_name = "NAME", help_heading = "Login")]
    authentication_database: Option<String>,

    /// SCRAM-SHA-1, SCRAM-SHA-256, MONGODB-X509, PLAIN, MONGODB-OIDC or, where it is built in,
    /// MONGODB-AWS [default: the server's choice of SCRAM]
    #[arg(long, alias = "authenticationMechanism", value_name = "NAME", help_heading = "Login")]
    authentication_mechanism: Option<String>,

    /// Session token of AWS, for MONGODB-AWS
    #[arg(long, alias = "awsSessionToken", value_name = "TOKEN", help_heading = "Login")]
    aws_session_token: Option<String>,

    /// YAML file with `password`, `uri` or `sslPEMKeyPassword`, which need not be on the command
    /// line then
    #[arg(long, value_name = "FILE", help_heading = "Login")]
    config: Option<PathBuf>,

    /// Encrypt connections
    #[arg(long, alias = "ssl", help_heading = "TLS")]
    tls: bool,

    /// Certificates that are trusted, PEM [default: those of the system]
    #[arg(long, aliases = ["sslCAFile", "ssl-ca-file", "tlsCAFile"], value_name = "FILE")]
    #[arg(help_heading = "TLS")]
    tls_ca_file: Option<PathBuf>,

    /// The client's certificate and key, PEM
    #[arg(long, aliases = ["sslPEMKeyFile", "ssl-pem-key-file", "tlsCertificateKeyFile"])]
    #[arg(value_name = "FILE", help_heading = "TLS")]
    tls_certificate_key_file: Option<PathBuf>,

    /// Password of that key; where it is missing and needed, it is asked for
    #[arg(long, value_name = "PASSWORD", help_heading = "TLS")]
    #[arg(aliases = ["sslPEMKeyPassword", "ssl-pem-key-password", "tlsCertificateKeyFilePassword"])]
    tls_certificate_key_file_password: Option<String>,

    /// Take any certificate and any host name: whoever is in between can read everything
    #[arg(long, alias = "tlsInsecure", help_heading = "TLS")]
    tls_insecure: bool,

    #[arg(long, hide = true, aliases = ["sslAllowInvalidCertificates"])]
    #[arg(aliases = ["ssl-allow-invalid-certificates", "tlsAllowInvalidCertificates"])]
    tls_allow_invalid_certificates: bool,

    #[arg(long, hide = true, aliases = ["sslAllowInvalidHostnames"])]
    #[arg(aliases = ["ssl-allow-invalid-hostnames", "tlsAllowInvalidHostnames"])]
    tls_allow_invalid_hostnames: bool,

    #[arg(long, hide = true, aliases = ["sslCRLFile", "ssl-crl-file", "tlsCRLFile"])]
    tls_crl_file: Option<PathBuf>,

    #[arg(long, hide = true, aliases = ["sslFIPSMode", "ssl-fips-mode", "tlsFIPSMode"])]
    tls_fips_mode: bool,

    #[arg(long, hide = true, alias = "gssapiServiceName")]
    gssapi_service_name: Option<String>,

    #[arg(long, hide = true, alias = "gssapiHostName")]
    gssapi_host_name: Option<String>,

    /// Seconds that opening a connection may take [default: 10]
    #[arg(long, alias = "dialTimeout", value_name = "SECONDS")]
    dial_timeout: Option<u32>,

    /// Seconds that finding a usable server may take [default: 10]
    #[arg(long, alias = "serverSelectionTimeout", value_name = "SECONDS")]
    server_selection_timeout: Option<u32>,

    #[arg(long, hide = true, alias = "socketTimeout", value_name = "SECONDS")]
    socket_timeout: Option<u32>,

    #[arg(long = "tcp-keep-alive-seconds", hide = true, alias = "TCPKeepAliveSeconds")]
    tcp_keep_alive_seconds: Option<u32>,

    /// Compressors for the wire in the order of preference: snappy, zlib, zstd, or none
    #[arg(long, value_name = "LIST")]
    compressors: Option<String>,
}

impl std::fmt::Debug for ConnectionArgs {
    /// Leaves everything out that may be a secret.
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("ConnectionArgs").field("host", &self.host).finish_non_exhaustive()
    }
}

/// What else is known on the command line.
#[derive(Clone, Copy)]
pub(super) struct Surroundings<'a> {
    /// A connection string that was given as an argument of its own.
    pub(super) positional: Option<&'a str>,
    /// The database of `--db`.
    pub(super) database: Option<&'a str>,
    /// What standard input is there for.
    pub(super) input: StandardInput,
    /// Shows a warning.
    pub(super) warn: &'a dyn Fn(&str),
}

/// What standard input is there for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StandardInput {
    /// For nothing: a password may come from it.
    Free,
    /// It carries the dump.
    Dump,
}

/// Where to connect to.
#[derive(Clone, Debug)]
pub(super) struct Server {
    /// The connection string with everything in it.
    pub(super) uri: ServerUri,
    /// The database in the path of the connection string, which selects as `--db` does.
    pub(super) database: Option<String>,
}

/// Tells the connection string among the arguments from the dump.
pub(super) fn split_positionals(words: &[PathBuf]) -> Result<(Option<&str>, Option<&Path>), Error> {
    let given = words.iter().filter(|word| !word.as_os_str().is_empty());
    let is_server = |word: &&PathBuf| word.to_str().is_some_and(is_uri);
    let (servers, dumps): (Vec<_>, Vec<_>) = given.partition(is_server);
    if servers.len() > 1 {
        return Err(usage("more than one connection string is given as an argument"));
    }
    if let [_, second, ..] = dumps[..] {
        let message = format!("unexpected argument '{}': one dump at a time", second.display());
        return Err(usage(message));
    }
    let server = servers.first().and_then(|server| server.to_str());
    Ok((server, dumps.first().map(|dump| dump.as_path())))
}

fn usage(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Usage, message)
}

impl ConnectionArgs {
    /// Whether a server is named.
    pub(super) fn names_server(&self) -> bool {
        self.uri.is_some() || self.host.is_some() || self.port.is_some()
    }

    /// The server that is meant; asks for passwords that are missing.
    pub(super) fn server(&self, around: Surroundings<'_>) -> Result<Server, Error> {
        self.refuse()?;
        let configuration = match &self.config {
            Some(file) => Configuration::read(file)?,
            None => Configuration::default(),
        };
        self.warn(&around);
        let uri = self.uri(around.positional, &configuration)?;
        let flags = self.flags(around.database, &configuration);
        let mut uri = merge(uri.as_deref(), &flags)?;
        for name in &uri.ignored {
            (around.warn)(&format!("ignoring unsupported URI parameter `{name}`"));
        }
        if wants_password(&uri) {
            let user = uri.user.as_deref().unwrap_or_default();
            let asked = password::ask(&format!("the user `{user}`"), around.input)?;
            uri.password = Some(asked);
        }
        let key_password = "tlsCertificateKeyFilePassword";
        if key_is_encrypted(&uri)? {
            if uri.option(key_password).is_none() {
                uri.add(key_password, password::ask("the client's key", around.input)?);
            }
        } else {
            // The driver would look for an encrypted key.
            uri.remove(key_password);
        }
        let database = selected_database(&uri, around.database)?;
        Ok(Server { uri, database })
    }

    /// The connection string, from the first place that has one.
    fn uri(
        &self,
        positional: Option<&str>,
        configuration: &Configuration,
    ) -> Result<Option<String>, Error> {
        if positional.is_some() && self.uri.is_some() {
            return Err(usage("a connection string is given twice: with --uri and without"));
        }
        let given = positional.map(str::to_owned).or_else(|| self.uri.clone());
        let of_environment = || {
            let uri = std::env::var(VARIABLE).ok();
            uri.filter(|uri| !uri.is_empty() && self.host.is_none() && self.port.is_none())
        };
        Ok(given.or_else(|| configuration.uri.clone()).or_else(of_environment))
    }

    fn flags(&self, database: Option<&str>, configuration: &Configuration) -> ConnectionFlags {
        let given = |flag: &Option<String>, file: &Option<String>| {
            flag.clone().filter(|secret| !secret.is_empty()).or_else(|| file.clone())
        };
        let milliseconds = |seconds: Option<u32>| {
            seconds.filter(|seconds| *seconds > 0).map(|seconds| u64::from(seconds) * 1000)
        };
        ConnectionFlags {
            host: self.host.clone(),
            port: self.port,
            tls: self.tls,
            ca_file: self.tls_ca_file.clone(),
            key_file: self.tls_certificate_key_file.clone(),
            key_password: given(
                &self.tls_certificate_key_file_password,
                &configuration.key_password,
            ),
            insecure: self.is_insecure(),
            user: self.username.clone().filter(|user| !user.is_empty()),
            password: given(&self.password, &configuration.password),
            auth_source: self.authentication_database.clone(),
            database: database.map(str::to_owned),
            mechanism: self.authentication_mechanism.clone(),
            aws_session_token: self.aws_session_token.clone(),
            connect_timeout_ms: milliseconds(self.dial_timeout),
            selection_timeout_ms: milliseconds(self.server_selection_timeout),
            compressors: self.compressors.clone(),
        }
    }

    fn is_insecure(&self) -> bool {
        self.tls_insecure || self.tls_allow_invalid_certificates || self.tls_allow_invalid_hostnames
    }

    /// Refuses what is not built in.
    fn refuse(&self) -> Result<(), Error> {
        let kerberos = "Kerberos (GSSAPI) is not built in";
        let without_kerberos = "log in with SCRAM, X.509, PLAIN (LDAP) or OIDC";
        for (is_given, what, instead) in [
            (
                self.tls_crl_file.is_some(),
                "certificate revocation lists (--sslCRLFile) cannot be read",
                "mongorestore refuses them as well; take the certificate out of the CA file",
            ),
            (
                self.tls_fips_mode,
                "FIPS mode (--sslFIPSMode) is not built in",
                "mongorestore refuses it as well",
            ),
            (self.gssapi_service_name.is_some(), kerberos, without_kerberos),
            (self.gssapi_host_name.is_some(), kerberos, without_kerberos),
        ] {
            if is_given {
                return Err(usage(what).hint(instead));
            }
        }
        Ok(())
    }

    /// Says once what is unsafe or without effect.
    fn warn(&self, around: &Surroundings<'_>) {
        let warn = around.warn;
        let has_secret = |uri: Option<&str>| {
            uri.and_then(|uri| ServerUri::parse(uri).ok())
                .is_some_and(|uri| !uri.secrets().is_empty())
        };
        let is_given = |flag: &Option<String>| flag.as_ref().is_some_and(|it| !it.is_empty());
        let is_visible = is_given(&self.password)
            || is_given(&self.tls_certificate_key_file_password)
            || has_secret(self.uri.as_deref())
            || has_secret(around.positional);
        if is_visible {
            warn(
                "a password on the command line can be seen in the list of processes; \
                 leave it out to be asked for it, or use --config FILE",
            );
        }
        if self.tls_allow_invalid_certificates || self.tls_allow_invalid_hostnames {
            warn(
                "neither certificates nor host names are checked; both options do the \
                 same as --tls-insecure",
            );
        }
        for (is_given, name) in [
            (self.socket_timeout.is_some(), "--socketTimeout"),
            (self.tcp_keep_alive_seconds.is_some(), "--TCPKeepAliveSeconds"),
        ] {
            if is_given {
                warn(&format!("{name} has no effect, as in mongorestore"));
            }
        }
    }
}

/// The database that is restored, from `--db` or from the path of the connection string.
///
/// The path of a string with a user is where the user is known, by default. `admin` is there for
/// that alone, since nobody restores into it this way; any other name selects, as with the peer,
/// because ignoring it would restore, and perhaps drop, more than was asked for.
fn selected_database(uri: &ServerUri, option: Option<&str>) -> Result<Option<String>, Error> {
    let of_path = uri.database.as_deref().filter(|name| *name != "admin" || uri.user.is_none());
    match (option, of_path) {
        (Some(option), Some(path)) if option != path => {
            let message = format!(
                "the connection string and the command line name different databases: `{path}` \
                 there, `{option}` with --db"
            );
            Err(usage(message).hint(format!(
                "leave `{path}` out of the connection string; if it is where the user is known, \
                 say authSource={path}"
            )))
        }
        (option, path) => Ok(option.or(path).map(str::to_owned)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    #[command(disable_help_flag = true)]
    struct Line {
        #[command(flatten)]
        connection: ConnectionArgs,
    }

    fn server_for(line: &str, database: Option<&str>) -> Result<Server, String> {
        let words = std::iter::once("restore").chain(line.split_whitespace());
        let line = Line::try_parse_from(words).map_err(|error| error.to_string())?;
        let input = StandardInput::Dump;
        let around = Surroundings { positional: None, database, input, warn: &|_| {} };
        line.connection.server(around).map_err(|error| error.to_string())
    }

    fn uri(line: &str) -> String {
        server_for(line, None).expect(line).uri.to_text()
    }

    #[test]
    fn every_spelling_is_taken() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let path = file.path().to_str().expect("UTF-8");
        for (name, others, value) in [
            ("--host", &["-h"][..], "h:1"),
            ("--username", &["-u"], "u -p x"),
            ("--authentication-database", &["--authenticationDatabase"], "a -u u -p x"),
            ("--authentication-mechanism", &["--authenticationMechanism"], "PLAIN -u u -p x"),
            ("--tls", &["--ssl"], ""),
            ("--tls --tls-ca-file", &["--tls --sslCAFile", "--ssl --ssl-ca-file"], path),
            ("--tls --tls-certificate-key-file", &["--ssl --sslPEMKeyFile"], path),
            ("--tls-insecure", &["--tlsInsecure", "--sslAllowInvalidCertificates"], ""),
            ("--tls-insecure", &["--sslAllowInvalidHostnames"], ""),
            ("--dial-timeout", &["--dialTimeout"], "5"),
            ("--server-selection-timeout", &["--serverSelectionTimeout"], "5"),
            ("--socket-timeout", &["--socketTimeout"], "5"),
            ("--tcp-keep-alive-seconds", &["--TCPKeepAliveSeconds"], "5"),
            ("--compressors", &["--compressors"], "zstd,snappy"),
        ] {
            let expected = uri(&format!("{name} {value}"));
            for other in others {
                assert_eq!(uri(&format!("{other} {value}")), expected, "{other}");
            }
        }
        assert!(uri("--dialTimeout 5").contains("connectTimeoutMS=5000"));
        assert!(uri("--compressors zstd,snappy").contains("compressors=zstd%2Csnappy"));
        assert!(!uri("--compressors none").contains("compressors"));
        assert!(uri("-u u --password=x").starts_with("mongodb://u:x@localhost/"));
    }

    #[test]
    fn what_is_not_built_in_is_refused_with_a_reason() {
        for (line, expected) in [
            ("--sslCRLFile x", "revocation"),
            ("--sslFIPSMode", "FIPS"),
            ("--gssapiServiceName x", "Kerberos"),
            ("--gssapiHostName x", "Kerberos"),
            ("--authenticationMechanism GSSAPI", "Kerberos"),
            ("--authenticationMechanism X", "no authentication mechanism"),
            ("--uri mongodb://h --host i", "different hosts"),
            ("--uri mongodb+srv://h --host i", "mongodb+srv"),
            ("--password x", "without a user"),
        ] {
            let error = server_for(line, None).expect_err(line);
            assert!(error.contains(expected), "{line}: {error}");
        }
        if !cfg!(feature = "aws") {
            let error = server_for("--authenticationMechanism MONGODB-AWS", None);
            assert!(error.expect_err("refused").contains("not built in"));
        }
    }

    #[test]
    fn the_path_of_a_connection_string_selects_unless_it_is_for_the_login() {
        for (uri, option, expected) in [
            ("mongodb://h", None, Ok(None)),
            ("mongodb://h", Some("a"), Ok(Some("a"))),
            ("mongodb://h/shop", None, Ok(Some("shop"))),
            ("mongodb://h/shop", Some("shop"), Ok(Some("shop"))),
            ("mongodb://h/shop", Some("other"), Err(())),
            ("mongodb://u:p@h/admin", None, Ok(None)),
            ("mongodb://u:p@h/admin", Some("shop"), Ok(Some("shop"))),
            ("mongodb://h/admin", None, Ok(Some("admin"))),
        ] {
            let server = server_for(&format!("--uri {uri}"), option);
            let found = server.map(|server| server.database).map_err(|_| ());
            assert_eq!(found.as_ref().map(Option::as_deref), expected.as_ref().copied(), "{uri}");
        }
    }

    #[test]
    fn a_connection_string_is_told_from_a_dump() {
        let words = |words: &[&str]| words.iter().map(PathBuf::from).collect::<Vec<_>>();
        let split = |words: &[PathBuf]| {
            let (server, dump) = split_positionals(words)?;
            Ok::<_, Error>((server.map(str::to_owned), dump.map(Path::to_path_buf)))
        };
        let both = split(&words(&["dump", "mongodb://h", ""])).expect("split");
        assert_eq!(both, (Some("mongodb://h".to_owned()), Some(PathBuf::from("dump"))));
        assert_eq!(split(&[]).expect("split"), (None, None));
        assert!(split(&words(&["mongodb://h", "mongodb://i"])).is_err());
        let error = split(&words(&["dump", "other"])).expect_err("two dumps");
        assert!(error.to_string().contains("unexpected argument 'other'"));
    }
}
