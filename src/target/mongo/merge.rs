//! Options of the command line put into a connection string.
//!
//! What both of them say must agree; where it does not, the error names both places and no secret.

use std::path::PathBuf;

use crate::error::{Error, ErrorKind};
use crate::target::mongo::{known, uri::ServerUri};

/// What was said of the server apart from the connection string.
#[derive(Clone, Default)]
pub struct ConnectionFlags {
    /// The hosts, `[set/]host[:port][,host…]`.
    pub host: Option<String>,
    /// The port of hosts that do not say one.
    pub port: Option<u16>,
    /// Whether connections are encrypted.
    pub tls: bool,
    /// The certificates that are trusted.
    pub ca_file: Option<PathBuf>,
    /// The client's own certificate and key.
    pub key_file: Option<PathBuf>,
    /// The password of that key.
    pub key_password: Option<String>,
    /// Whether any certificate is taken.
    pub insecure: bool,
    /// The user.
    pub user: Option<String>,
    /// The user's password.
    pub password: Option<String>,
    /// The database that knows the user.
    pub auth_source: Option<String>,
    /// The database that is restored, which knows the user where nothing else is said.
    pub database: Option<String>,
    /// How the user proves who it is.
    pub mechanism: Option<String>,
    /// The session token of AWS.
    pub aws_session_token: Option<String>,
    /// The milliseconds that a connection may take.
    pub connect_timeout_ms: Option<u64>,
    /// The milliseconds that the choice of a server may take.
    pub selection_timeout_ms: Option<u64>,
    /// Compressors in the order of preference, separated by commas.
    pub compressors: Option<String>,
}

/// Mechanisms whose users are known outside of the server.
const EXTERNAL: [&str; 5] = ["GSSAPI", "PLAIN", "MONGODB-X509", "MONGODB-OIDC", "MONGODB-AWS"];

/// Mechanisms for which no password is asked.
const WITHOUT_PASSWORD: [&str; 3] = ["GSSAPI", "MONGODB-X509", "MONGODB-OIDC"];

/// All that the driver can do, or could.
const MECHANISMS: [&str; 7] = [
    "SCRAM-SHA-1",
    "SCRAM-SHA-256",
    "MONGODB-X509",
    "PLAIN",
    "MONGODB-OIDC",
    "MONGODB-AWS",
    "GSSAPI",
];

/// The connection string that says all of it.
pub fn merge(uri: Option<&str>, flags: &ConnectionFlags) -> Result<ServerUri, Error> {
    let mut merged = match uri {
        Some(uri) => ServerUri::parse(uri)?,
        None => ServerUri::of_hosts(vec!["localhost".to_owned()]),
    };
    merge_hosts(&mut merged, uri.is_some(), flags)?;
    merge_tls(&mut merged, flags)?;
    merge_login(&mut merged, flags)?;
    let mut agree = Agree(&mut merged);
    let timeout = flags.connect_timeout_ms.map(|timeout| timeout.to_string());
    agree.option("connection timeout", "connectTimeoutMS", "--dial-timeout", timeout)?;
    let timeout = flags.selection_timeout_ms.map(|timeout| timeout.to_string());
    let flag = "--server-selection-timeout";
    agree.option("server selection timeout", "serverSelectionTimeoutMS", flag, timeout)?;
    let compressors = flags.compressors.clone().filter(|list| list != "none" && !list.is_empty());
    agree.option("compressors", "compressors", "--compressors", compressors)?;
    leave_out(&mut merged)?;
    go_directly(&mut merged);
    known::ignore_others(&mut merged)?;
    refuse_mechanism(&merged)?;
    Ok(merged)
}

/// Whether a password has to be asked for.
pub fn wants_password(uri: &ServerUri) -> bool {
    let mechanism = uri.option("authMechanism").unwrap_or_default();
    uri.user.is_some() && uri.password.is_none() && !WITHOUT_PASSWORD.contains(&mechanism)
}

/// A connection string that is being completed.
struct Agree<'a>(&'a mut ServerUri);

impl Agree<'_> {
    /// Sets an option; one that is there already must have the same value.
    fn option(
        &mut self,
        what: &str,
        name: &str,
        flag: &str,
        value: Option<String>,
    ) -> Result<(), Error> {
        let Some(value) = value else {
            return Ok(());
        };
        match self.0.option(name) {
            Some(there) if there != value => {
                let both = format!("`{there}` is {name} there, `{value}` is given with {flag}");
                Err(differ(what, &both))
            }
            Some(_) => Ok(()),
            None => {
                self.0.add(name, value);
                Ok(())
            }
        }
    }
}

fn differ(what: &str, both: &str) -> Error {
    let message =
        format!("the connection string and the command line name different {what}: {both}");
    Error::new(ErrorKind::Usage, message).hint("say it in one place only")
}

fn usage(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Usage, message)
}

fn merge_hosts(uri: &mut ServerUri, was_given: bool, flags: &ConnectionFlags) -> Result<(), Error> {
    if uri.is_srv() && (flags.host.is_some() || flags.port.is_some()) {
        return Err(usage("--host and --port cannot be used with a mongodb+srv:// string")
            .hint("its hosts and ports come from DNS"));
    }
    if let Some(host) = &flags.host {
        let (set, hosts) = match host.split_once('/') {
            Some((set, hosts)) => (Some(set), hosts),
            None => (None, host.as_str()),
        };
        let hosts: Vec<String> = hosts.split(',').map(str::to_owned).collect();
        if hosts.iter().any(String::is_empty) {
            return Err(
                usage("the host is empty").hint("for example --host db1.example.com --port 27017")
            );
        }
        let mut both = [hosts.clone(), uri.hosts.clone()];
        for list in &mut both {
            list.sort();
        }
        if was_given && both[0] != both[1] {
            let both =
                format!("`{}` there, `{}` with --host", uri.hosts.join(","), hosts.join(","));
            return Err(differ("hosts", &both));
        }
        uri.hosts = hosts;
        let set = set.filter(|set| !set.is_empty()).map(str::to_owned);
        Agree(uri).option("replica sets", "replicaSet", "--host", set)?;
    }
    let Some(port) = flags.port else {
        return Ok(());
    };
    for host in &mut uri.hosts {
        match port_of(host) {
            None => *host = format!("{host}:{port}"),
            // A host with a port of its own keeps it; that of a string must be the same.
            Some(there) if was_given && there != port.to_string() => {
                return Err(differ("ports", &format!("`{there}` there, `{port}` with --port")));
            }
            Some(_) => {}
        }
    }
    Ok(())
}

/// The port of a host; the colons of a bracketed IPv6 address do not begin one.
fn port_of(host: &str) -> Option<&str> {
    let after = host.rsplit_once(']').map_or(host, |(_, after)| after);
    after.split_once(':').map(|(_, port)| port)
}

fn merge_tls(uri: &mut ServerUri, flags: &ConnectionFlags) -> Result<(), Error> {
    let wanted = flags.tls || flags.insecure;
    if flags.tls && uri.tls() == Some(false) {
        return Err(differ("TLS settings", "it is off there, on with --tls"));
    }
    if flags.insecure && uri.option("tlsInsecure") == Some("false") {
        return Err(differ("TLS settings", "tlsInsecure is false there, --tls-insecure is given"));
    }
    let has_files = flags.ca_file.is_some() || flags.key_file.is_some();
    if has_files && !wanted && !uri_has_tls(uri) {
        // The peer takes the files and goes on in plain text; a path that is given is meant.
        return Err(
            usage("certificates are given, but connections are not encrypted").hint("add --tls")
        );
    }
    if wanted && uri.tls().is_none() {
        uri.add("tls", "true");
    }
    let mut agree = Agree(uri);
    let ca_file = flags.ca_file.as_ref().map(|path| path.display().to_string());
    agree.option("CA files", "tlsCAFile", "--tls-ca-file", ca_file)?;
    let key_file = flags.key_file.as_ref().map(|path| path.display().to_string());
    let flag = "--tls-certificate-key-file";
    agree.option("certificate files", "tlsCertificateKeyFile", flag, key_file)?;
    if flags.insecure && uri.option("tlsInsecure").is_none() {
        uri.remove("tlsAllowInvalidCertificates");
        uri.add("tlsInsecure", "true");
    }
    let name = "tlsCertificateKeyFilePassword";
    secret(
        uri.option(name).is_some_and(|there| Some(there) != flags.key_password.as_deref()),
        flags.key_password.as_ref(),
        "key passwords",
    )?;
    if let (None, Some(password)) = (uri.option(name), &flags.key_password) {
        uri.add(name, password);
    }
    Ok(())
}

fn uri_has_tls(uri: &ServerUri) -> bool {
    uri.is_srv() || uri.tls() == Some(true)
}

/// Refuses two different secrets without showing either.
fn secret(differs: bool, flag: Option<&String>, what: &str) -> Result<(), Error> {
    if differs && flag.is_some() {
        return Err(differ(what, "they are not shown"));
    }
    Ok(())
}

fn merge_login(uri: &mut ServerUri, flags: &ConnectionFlags) -> Result<(), Error> {
    if let (Some(there), Some(user)) = (&uri.user, &flags.user)
        && there != user
    {
        return Err(differ("users", &format!("`{there}` there, `{user}` with --username")));
    }
    let password = flags.password.clone().filter(|password| !password.is_empty());
    secret(uri.password.is_some() && uri.password != password, password.as_ref(), "passwords")?;
    let is_new_user = uri.user.is_none() && flags.user.is_some();
    uri.user = uri.user.take().or_else(|| flags.user.clone());
    if uri.user.is_none() && password.is_some() {
        return Err(usage("a password is given without a user").hint("add --username NAME"));
    }
    uri.password = uri.password.take().or(password);
    let mechanism = flags.mechanism.clone().filter(|mechanism| !mechanism.is_empty());
    let flag = "--authentication-mechanism";
    Agree(uri).option("authentication mechanisms", "authMechanism", flag, mechanism)?;
    let flag = "--authentication-database";
    let source = flags.auth_source.clone().filter(|source| !source.is_empty());
    Agree(uri).option("authentication databases", "authSource", flag, source)?;
    let is_external = uri.option("authMechanism").is_some_and(|it| EXTERNAL.contains(&it));
    let has_source = uri.option("authSource").is_some() || uri.database.is_some();
    if let Some(database) = &flags.database
        && is_new_user
        && !is_external
        && !has_source
    {
        uri.add("authSource", database);
    }
    if let Some(token) = &flags.aws_session_token {
        merge_token(uri, token)?;
    }
    Ok(())
}

/// Adds the session token to the properties that are there.
fn merge_token(uri: &mut ServerUri, token: &str) -> Result<(), Error> {
    const NAME: &str = "AWS_SESSION_TOKEN:";
    let properties = uri.remove("authMechanismProperties").unwrap_or_default();
    let mut properties: Vec<&str> = properties.split(',').filter(|it| !it.is_empty()).collect();
    let there = properties.iter().find_map(|property| property.strip_prefix(NAME));
    secret(there.is_some_and(|there| there != token), Some(&token.to_owned()), "session tokens")?;
    let added = format!("{NAME}{token}");
    if there.is_none() {
        properties.push(&added);
    }
    uri.add("authMechanismProperties", properties.join(","));
    Ok(())
}

/// Takes out what the peer takes and does not use, and refuses what would be less safe without.
fn leave_out(uri: &mut ServerUri) -> Result<(), Error> {
    // Neither program has a time-out of single reads; commands have their retries instead.
    uri.remove("socketTimeoutMS");
    // The TLS of this program does not ask revocation servers.
    uri.remove("tlsDisableOCSPEndpointCheck");
    for (name, instead) in [
        ("tlsAllowInvalidHostnames", "tlsInsecure=true takes any certificate and host name"),
        ("tlsCRLFile", "revocation lists cannot be read; take the certificate out of the CA file"),
        ("tlsCertificateFile", "tlsCertificateKeyFile names one file with certificate and key"),
        ("tlsPrivateKeyFile", "tlsCertificateKeyFile names one file with certificate and key"),
    ] {
        if uri.option(name).is_some_and(|value| value != "false") {
            let message = format!("{name} in the connection string is not supported");
            return Err(usage(message).hint(instead));
        }
        uri.remove(name);
    }
    Ok(())
}

/// Talks to a single host that names no set as it is, without following the names that its set has
/// for its members, which need not be known where this program runs. The peer does the same.
fn go_directly(uri: &mut ServerUri) {
    let is_single = !uri.is_srv() && uri.hosts.len() == 1;
    let says = ["replicaSet", "directConnection", "loadBalanced"];
    let is_said = says.iter().any(|name| uri.option(name).is_some());
    match uri.remove("connect").as_deref() {
        Some("direct") if !is_said => uri.add("directConnection", "true"),
        Some("automatic" | "replicaSet") => {}
        _ if is_single && !is_said => uri.add("directConnection", "true"),
        _ => {}
    }
}

fn refuse_mechanism(uri: &ServerUri) -> Result<(), Error> {
    let Some(mechanism) = uri.option("authMechanism") else {
        return Ok(());
    };
    if mechanism == "GSSAPI" {
        return Err(usage("Kerberos (GSSAPI) is not built in")
            .hint("log in with SCRAM, X.509, PLAIN (LDAP) or OIDC, or restore with mongorestore"));
    }
    if mechanism == "MONGODB-AWS" && !cfg!(feature = "aws") {
        return Err(usage("MONGODB-AWS is not built in")
            .hint("build with `cargo build --release --features aws`"));
    }
    if mechanism == "MONGODB-OIDC" {
        return refuse_environment(uri);
    }
    if !MECHANISMS.contains(&mechanism) {
        let message = format!("there is no authentication mechanism `{mechanism}`");
        return Err(usage(message).hint(format!("known are {}", MECHANISMS.join(", "))));
    }
    Ok(())
}

/// A token comes from where the program runs; nobody is asked to log in with a browser.
fn refuse_environment(uri: &ServerUri) -> Result<(), Error> {
    let properties = uri.option("authMechanismProperties").unwrap_or_default();
    let environment = properties.split(',').find_map(|pair| pair.strip_prefix("ENVIRONMENT:"));
    match environment {
        None => Err(usage("MONGODB-OIDC needs to know where the token comes from").hint(
            "add authMechanismProperties=ENVIRONMENT:k8s, or azure or gcp with TOKEN_RESOURCE, \
             to the connection string",
        )),
        Some("azure" | "gcp") if !cfg!(feature = "oidc-cloud") => {
            Err(usage("tokens of Azure and Google Cloud are not built in")
                .hint("build with `cargo build --release --features oidc-cloud`"))
        }
        Some(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags() -> ConnectionFlags {
        ConnectionFlags::default()
    }

    fn merged(uri: &str, flags: &ConnectionFlags) -> String {
        merge(Some(uri), flags).expect(uri).to_text()
    }

    fn refused(uri: &str, flags: &ConnectionFlags) -> String {
        merge(Some(uri), flags).expect_err(uri).to_string()
    }

    #[test]
    fn hosts_and_ports_make_a_connection_string() {
        for (host, port, expected) in [
            (None, None, "mongodb://localhost/?directConnection=true"),
            (Some("db1"), None, "mongodb://db1/?directConnection=true"),
            (None, Some(27018), "mongodb://localhost:27018/?directConnection=true"),
            (Some("a:1,b"), Some(2), "mongodb://a:1,b:2/"),
            (Some("rs0/a,b"), None, "mongodb://a,b/?replicaSet=rs0"),
            (Some("rs0/a"), None, "mongodb://a/?replicaSet=rs0"),
            (Some("[::1]"), Some(5), "mongodb://[::1]:5/?directConnection=true"),
        ] {
            let flags = ConnectionFlags { host: host.map(str::to_owned), port, ..flags() };
            assert_eq!(merge(None, &flags).expect("merged").to_text(), expected);
        }
        for host in ["rs0/", "a,,b", ""] {
            let flags = ConnectionFlags { host: Some(host.to_owned()), ..flags() };
            assert!(merge(None, &flags).is_err(), "{host}");
        }
    }

    #[test]
    fn what_both_say_must_agree() {
        let some = |text: &str| Some(text.to_owned());
        let uri = "mongodb://u:secret@a:1,b:2/?authSource=admin&replicaSet=r&tls=true\
                   &tlsCAFile=ca&connectTimeoutMS=5000&compressors=zstd&authMechanism=PLAIN\
                   &tlsCertificateKeyFilePassword=hidden";
        let agreeing = ConnectionFlags {
            host: some("r/b:2,a:1"),
            tls: true,
            ca_file: Some("ca".into()),
            key_password: some("hidden"),
            user: some("u"),
            password: some("secret"),
            auth_source: some("admin"),
            mechanism: some("PLAIN"),
            connect_timeout_ms: Some(5000),
            compressors: some("zstd"),
            ..flags()
        };
        assert!(merged(uri, &agreeing).starts_with("mongodb://u:secret@b:2,a:1/?"));
        for (what, flags) in [
            ("hosts", ConnectionFlags { host: some("a:1"), ..flags() }),
            ("ports", ConnectionFlags { port: Some(1), ..flags() }),
            ("replica sets", ConnectionFlags { host: some("x/a:1,b:2"), ..flags() }),
            ("CA files", ConnectionFlags { ca_file: Some("x".into()), ..flags() }),
            ("key passwords", ConnectionFlags { key_password: some("x"), ..flags() }),
            ("users", ConnectionFlags { user: some("x"), ..flags() }),
            ("passwords", ConnectionFlags { password: some("x"), ..flags() }),
            ("authentication databases", ConnectionFlags { auth_source: some("x"), ..flags() }),
            ("authentication mechanisms", ConnectionFlags { mechanism: some("x"), ..flags() }),
            ("connection timeout", ConnectionFlags { connect_timeout_ms: Some(1), ..flags() }),
            ("compressors", ConnectionFlags { compressors: some("zlib"), ..flags() }),
        ] {
            let error = refused(uri, &flags);
            assert!(error.contains(&format!("different {what}: ")), "{what}: {error}");
            assert!(!error.contains("secret") && !error.contains("hidden"), "{error}");
        }
        let on = ConnectionFlags { tls: true, ..flags() };
        assert!(refused("mongodb://h/?tls=false", &on).contains("TLS"));
    }

    #[test]
    fn the_restored_database_knows_the_user_of_the_command_line() {
        let user = ConnectionFlags {
            user: Some("u".to_owned()),
            database: Some("shop".to_owned()),
            ..flags()
        };
        let to = |uri: &str, flags: &ConnectionFlags| {
            merge(Some(uri), flags).expect(uri).option("authSource").map(str::to_owned)
        };
        assert_eq!(to("mongodb://h", &user).as_deref(), Some("shop"));
        assert_eq!(to("mongodb://h/?authSource=a", &user).as_deref(), Some("a"));
        assert_eq!(to("mongodb://x:y@h", &ConnectionFlags { user: None, ..user.clone() }), None);
        let plain = ConnectionFlags { mechanism: Some("PLAIN".to_owned()), ..user };
        assert_eq!(to("mongodb://h", &plain), None);
    }

    #[test]
    fn a_password_is_asked_for_where_a_user_has_none() {
        for (uri, expected) in [
            ("mongodb://u@h", true),
            ("mongodb://u:@h", true),
            ("mongodb://u:p@h", false),
            ("mongodb://h", false),
            ("mongodb://u@h/?authMechanism=MONGODB-X509", false),
            ("mongodb://u@h/?authMechanism=PLAIN", true),
        ] {
            let uri = merge(Some(uri), &flags()).expect(uri);
            assert_eq!(wants_password(&uri), expected, "{uri:?}");
        }
    }

    #[test]
    fn what_is_not_built_in_is_refused_with_a_way_out() {
        for (query, expected) in [
            ("authMechanism=GSSAPI", "Kerberos"),
            ("authMechanism=MONGODB-XX", "no authentication mechanism"),
            ("authMechanism=MONGODB-OIDC", "where the token comes from"),
            ("tlsAllowInvalidHostnames=true", "tlsAllowInvalidHostnames"),
            ("tlsCRLFile=x", "tlsCRLFile"),
        ] {
            let uri = format!("mongodb://h/?{query}");
            assert!(refused(&uri, &flags()).contains(expected), "{query}");
        }
        let files = ConnectionFlags { ca_file: Some("ca".into()), ..flags() };
        assert!(refused("mongodb://h", &files).contains("not encrypted"));
    }

    #[test]
    fn a_single_host_is_talked_to_directly() {
        let is_direct = |uri: &str| merged(uri, &flags()).contains("directConnection=true");
        assert!(is_direct("mongodb://h") && is_direct("mongodb://h/?connect=direct"));
        for uri in [
            "mongodb://a,b",
            "mongodb://h/?replicaSet=r",
            "mongodb://h/?directConnection=false",
            "mongodb://h/?connect=replicaSet",
            "mongodb+srv://h",
        ] {
            assert!(!is_direct(uri), "{uri}");
        }
    }

    #[test]
    fn a_session_token_joins_the_other_properties() {
        let flags = ConnectionFlags { aws_session_token: Some("t".to_owned()), ..flags() };
        let mut uri = ServerUri::parse("mongodb://h/?authMechanismProperties=A:b").expect("a URI");
        merge_login(&mut uri, &flags).expect("merged");
        assert_eq!(uri.option("authMechanismProperties"), Some("A:b,AWS_SESSION_TOKEN:t"));
    }
}
