//! A connection string taken apart, so that options of the command line can be put into it.
//!
//! The driver judges what the options mean; this module knows only where they stand. What it says
//! of a string that is wrong never repeats any of it, because it may hold a password.
//! Layout: <https://www.mongodb.com/docs/manual/reference/connection-string/>.

use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use crate::error::{Error, ErrorKind};

/// The two schemes.
const SCHEMES: [&str; 2] = ["mongodb", "mongodb+srv"];

/// A connection string in its parts; names and values are decoded.
#[derive(Clone, PartialEq, Eq)]
pub struct ServerUri {
    is_srv: bool,
    /// The user, where one logs in with a name.
    pub user: Option<String>,
    /// The password.
    pub password: Option<String>,
    /// The hosts, with their ports where they say one.
    pub hosts: Vec<String>,
    /// The database in the path.
    pub database: Option<String>,
    options: Vec<(String, String)>,
    /// Names of options that nobody knows, which were taken out.
    pub ignored: Vec<String>,
}

impl std::fmt::Debug for ServerUri {
    /// Names hosts only.
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("ServerUri").field("hosts", &self.hosts).finish_non_exhaustive()
    }
}

/// Whether a word is meant as a connection string.
pub fn is_uri(word: &str) -> bool {
    SCHEMES
        .iter()
        .any(|scheme| word.strip_prefix(scheme).is_some_and(|rest| rest.starts_with("://")))
}

impl ServerUri {
    /// A connection string of these hosts and nothing else.
    pub fn of_hosts(hosts: Vec<String>) -> Self {
        Self {
            is_srv: false,
            user: None,
            password: None,
            hosts,
            database: None,
            options: Vec::new(),
            ignored: Vec::new(),
        }
    }

    /// Takes a connection string apart.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let (scheme, rest) = text.split_once("://").ok_or_else(|| wrong("it has no scheme"))?;
        if !SCHEMES.contains(&scheme) {
            return Err(wrong("it begins with neither mongodb:// nor mongodb+srv://"));
        }
        let authority_ends = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, tail) = rest.split_at(authority_ends);
        let (login, hosts) = match authority.rsplit_once('@') {
            Some((login, hosts)) => (Some(login), hosts),
            None => (None, authority),
        };
        let (path, query) = match tail.split_once('?') {
            Some((path, query)) => (path, query),
            None => (tail, ""),
        };
        let (user, password) = login.map(parse_login).transpose()?.unwrap_or_default();
        let database = decoded(path.trim_start_matches('/'))?;
        let options = query.split('&').filter(|pair| !pair.is_empty());
        Ok(Self {
            is_srv: scheme == "mongodb+srv",
            user,
            password,
            hosts: hosts.split(',').map(parse_host).collect::<Result<_, _>>()?,
            database: Some(database).filter(|name| !name.is_empty()),
            options: options.map(parse_option).collect::<Result<_, _>>()?,
            ignored: Vec::new(),
        })
    }

    /// Whether the hosts are those of a DNS record.
    pub fn is_srv(&self) -> bool {
        self.is_srv
    }

    /// The value of an option, whose name may be written in any case.
    pub fn option(&self, name: &str) -> Option<&str> {
        let found = self.options.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// Adds an option.
    pub fn add(&mut self, name: &str, value: impl Into<String>) {
        self.options.push((name.to_owned(), value.into()));
    }

    /// Takes an option out.
    pub fn remove(&mut self, name: &str) -> Option<String> {
        let at = self.options.iter().position(|(known, _)| known.eq_ignore_ascii_case(name))?;
        Some(self.options.remove(at).1)
    }

    /// The names of its options.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.options.iter().map(|(name, _)| name.as_str())
    }

    /// Whether connections are encrypted, where that is said.
    pub fn tls(&self) -> Option<bool> {
        self.option("tls").or_else(|| self.option("ssl")).map(|value| value == "true")
    }

    /// What must not be shown: passwords and tokens, as they are and as they stand in the string.
    pub fn secrets(&self) -> Vec<String> {
        let of_options = ["tlsCertificateKeyFilePassword", "proxyPassword"];
        let values = of_options.iter().filter_map(|name| self.option(name));
        let token = self.option("authMechanismProperties").into_iter().flat_map(|properties| {
            properties.split(',').filter_map(|pair| pair.strip_prefix("AWS_SESSION_TOKEN:"))
        });
        let plain: Vec<&str> = self
            .password
            .as_deref()
            .into_iter()
            .chain(values)
            .chain(token)
            .filter(|secret| !secret.is_empty())
            .collect();
        let both = plain.iter().flat_map(|secret| [encoded(secret), (*secret).to_owned()]);
        both.collect()
    }

    /// The connection string as the driver takes it; it holds the password.
    pub fn to_text(&self) -> String {
        let mut text = if self.is_srv { "mongodb+srv://" } else { "mongodb://" }.to_owned();
        if let Some(user) = &self.user {
            text += &encoded(user);
            if let Some(password) = &self.password {
                text += ":";
                text += &encoded(password);
            }
            text += "@";
        }
        text += &self.hosts.join(",");
        text += "/";
        text += &self.database.as_deref().map(encoded).unwrap_or_default();
        for (index, (name, value)) in self.options.iter().enumerate() {
            text += if index == 0 { "?" } else { "&" };
            text += name;
            text += "=";
            text += &encoded(value);
        }
        text
    }
}

/// Replaces every secret in a text.
pub fn without(secrets: &[String], text: &str) -> String {
    let hide = |text: String, secret: &String| text.replace(secret.as_str(), "***");
    secrets.iter().fold(text.to_owned(), hide)
}

fn encoded(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

fn decoded(text: &str) -> Result<String, Error> {
    let has_bad_escape = text.split('%').skip(1).any(|rest| {
        !rest.get(..2).is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
    });
    if has_bad_escape {
        return Err(wrong("a % in it is not followed by two hexadecimal digits"));
    }
    let text = percent_decode_str(text).decode_utf8();
    text.map(Into::into).map_err(|_| wrong("its percent-encoding is not UTF-8"))
}

fn parse_login(login: &str) -> Result<(Option<String>, Option<String>), Error> {
    let (user, password) = match login.split_once(':') {
        Some((user, password)) => (user, Some(password)),
        None => (login, None),
    };
    let is_raw = |text: &str| text.contains(['@', ':', '[', ']', '#']);
    if is_raw(user) || password.is_some_and(is_raw) {
        return Err(wrong(
            "its user or password holds a character that must be percent-encoded, such as %40 for \
             @ and %3A for :",
        ));
    }
    let user = decoded(user)?;
    let password = password.map(decoded).transpose()?;
    // An empty password is none, as with the peer, so that one is asked for.
    let given = |text: &String| !text.is_empty();
    Ok((Some(user).filter(given), password.filter(given)))
}

fn parse_host(host: &str) -> Result<String, Error> {
    let after_address = host.rsplit_once(']').map_or(host, |(_, after)| after);
    let port = after_address.split_once(':').map(|(_, port)| port);
    let is_port = |port: &str| port.parse::<u16>().is_ok_and(|port| port > 0);
    if host.is_empty() || host.starts_with(':') {
        return Err(wrong("a host in it is empty"));
    }
    if port.is_some_and(|port| !is_port(port)) {
        return Err(wrong(
            "what follows the colon of a host is no port; if it is a password, a character in it \
             must be percent-encoded, such as %2F for / and %3F for ?",
        ));
    }
    Ok(host.to_owned())
}

fn parse_option(pair: &str) -> Result<(String, String), Error> {
    let (name, value) = pair
        .split_once('=')
        .ok_or_else(|| wrong("what follows the ? must be name=value, joined by &"))?;
    Ok((name.to_owned(), decoded(value)?))
}

/// A connection string that is wrong; none of it is repeated.
fn wrong(why: &str) -> Error {
    Error::new(ErrorKind::Usage, format!("the connection string cannot be used: {why}"))
        .hint("it looks like mongodb://user:password@host:27017/?replicaSet=name")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> ServerUri {
        ServerUri::parse(text).expect(text)
    }

    #[test]
    fn a_string_is_taken_apart_and_put_together() {
        let uri = parse("mongodb://us%40er:p%3Aw%2f@a:1,[::1]:2/shop?replicaSet=rs0&w=1");
        assert_eq!(uri.user.as_deref(), Some("us@er"));
        assert_eq!(uri.password.as_deref(), Some("p:w/"));
        assert_eq!(uri.hosts, ["a:1", "[::1]:2"]);
        assert_eq!(uri.database.as_deref(), Some("shop"));
        assert_eq!(uri.option("REPLICASET"), Some("rs0"));
        let text = "mongodb://us%40er:p%3Aw%2F@a:1,[::1]:2/shop?replicaSet=rs0&w=1";
        assert_eq!(uri.to_text(), text);
        assert_eq!(parse(&uri.to_text()), uri);
        assert_eq!(parse("mongodb+srv://h").to_text(), "mongodb+srv://h/");
        assert_eq!(parse("mongodb://h?tls=true").tls(), Some(true));
    }

    #[test]
    fn a_wrong_string_is_refused_without_repeating_it() {
        for text in [
            "secret://h",
            "secret",
            "mongodb://u:secret@@h",
            "mongodb://u:sec:ret@h",
            "mongodb://u:secret/x@h",
            "mongodb://u:secret?x@h",
            "mongodb://u:secret%zz@h",
            "mongodb://u:secret@h:port",
            "mongodb://u:secret@h:0",
            "mongodb://u:secret@",
            "mongodb://u:secret@h/?secret",
            "mongodb://u:secret@h/?a=%f",
        ] {
            let error = ServerUri::parse(text).expect_err(text);
            assert!(!error.to_string().contains("sec"), "{text}: {error}");
            assert!(error.hint_text().is_some());
        }
    }

    #[test]
    fn secrets_are_known_in_both_forms() {
        let uri = parse("mongodb://u:p%2Fw@h/?tlsCertificateKeyFilePassword=k%20y");
        assert_eq!(uri.secrets(), ["p%2Fw", "p/w", "k%20y", "k y"]);
        assert_eq!(without(&uri.secrets(), "a p/w b p%2Fw"), "a *** b ***");
        assert!(!format!("{uri:?}").contains("p/w"));
    }

    #[test]
    fn words_are_told_from_connection_strings() {
        assert!(is_uri("mongodb://h") && is_uri("mongodb+srv://h"));
        assert!(!is_uri("dump") && !is_uri("http://h") && !is_uri("mongodb"));
    }
}
