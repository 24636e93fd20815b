//! Options of a connection string that the driver knows, and what becomes of others.
//!
//! The peer warns of an option that it does not know and goes on, so that a string which other
//! programs use as well does not end a restore. What bears on encryption or on the login is refused
//! all the same: without it a connection might be less safe than was asked for.

use crate::error::{Error, ErrorKind};
use crate::target::mongo::uri::ServerUri;

/// The options that the driver takes, in lower case, as names count in any case.
const KNOWN: [&str; 38] = [
    "appname",
    "authmechanism",
    "authmechanismproperties",
    "authsource",
    "compressors",
    "connecttimeoutms",
    "directconnection",
    "heartbeatfrequencyms",
    "journal",
    "loadbalanced",
    "localthresholdms",
    "maxconnecting",
    "maxidletimems",
    "maxpoolsize",
    "maxstalenessseconds",
    "minpoolsize",
    "readconcernlevel",
    "readpreference",
    "readpreferencetags",
    "replicaset",
    "retryreads",
    "retrywrites",
    "servermonitoringmode",
    "serverselectiontimeoutms",
    "srvmaxhosts",
    "srvservicename",
    "ssl",
    "tls",
    "tlsallowinvalidcertificates",
    "tlscafile",
    "tlscertificatekeyfile",
    "tlscertificatekeyfilepassword",
    "tlsinsecure",
    "uuidrepresentation",
    "w",
    "waitqueuetimeoutms",
    "wtimeoutms",
    "zlibcompressionlevel",
];

/// How names begin that bear on encryption, on the login or on the way to the server.
const PROTECTING: [&str; 5] = ["tls", "ssl", "auth", "gssapi", "proxy"];

/// Takes out what nobody knows, and keeps the names for a warning; refuses what protects.
pub(super) fn ignore_others(uri: &mut ServerUri) -> Result<(), Error> {
    let is_known = |name: &str| KNOWN.contains(&name.to_ascii_lowercase().as_str());
    let others: Vec<String> =
        uri.names().filter(|name| !is_known(name)).map(str::to_owned).collect();
    for name in others {
        let lower = name.to_ascii_lowercase();
        if !name.chars().all(|character| character.is_ascii_alphanumeric()) {
            // It may be a part of a password in which a character was not encoded.
            let message = "the connection string cannot be used: the name of an option is none";
            return Err(Error::new(ErrorKind::Usage, message)
                .hint("characters such as ?, & and @ in a password must be percent-encoded"));
        }
        if PROTECTING.iter().any(|prefix| lower.starts_with(prefix)) {
            let message = format!("{name} in the connection string is not known");
            return Err(Error::new(ErrorKind::Usage, message)
                .hint("it bears on the safety of the connection, so it is not left out silently"));
        }
        uri.remove(&name);
        uri.ignored.push(name);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use mongodb::options::ClientOptions;

    fn ignored(query: &str) -> Result<(String, Vec<String>), String> {
        let mut uri = ServerUri::parse(&format!("mongodb://h/?{query}")).expect(query);
        ignore_others(&mut uri).map_err(|error| error.to_string())?;
        Ok((uri.to_text(), uri.ignored))
    }

    #[test]
    fn what_nobody_knows_is_taken_out_and_named() {
        let (text, names) =
            ignored("w=1&fooBar=secret&zstdCompressionLevel=3&APPNAME=x").expect("taken");
        assert_eq!(text, "mongodb://h/?w=1&APPNAME=x");
        assert_eq!(names, ["fooBar", "zstdCompressionLevel"]);
    }

    #[test]
    fn what_protects_is_refused_without_its_value() {
        for query in [
            "tlsMode=secret",
            "sslX=secret",
            "authFoo=secret",
            "proxyPassword=secret",
            "p@w=secret",
        ] {
            let error = ignored(query).expect_err(query);
            assert!(!error.contains("secret"), "{error}");
        }
    }

    /// What the driver has against an option of this name, if that is the name.
    fn is_unknown_to_the_driver(name: &str) -> bool {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let uri = format!("mongodb://h/?{name}=1");
        let parsed =
            runtime.expect("a runtime").block_on(async { ClientOptions::parse(uri).await });
        parsed.is_err_and(|error| error.to_string().contains("invalid option"))
    }

    #[test]
    fn the_driver_knows_what_is_called_known() {
        for name in KNOWN {
            assert!(!is_unknown_to_the_driver(name), "{name}");
        }
        for name in ["fooBar", "zstdCompressionLevel", "safe"] {
            assert!(is_unknown_to_the_driver(name), "{name}");
        }
    }
}
