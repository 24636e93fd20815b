//! What is said about servers on the command line, without a server.

use crate::program::{Finished, Program};

/// Runs a restore that cannot reach anything, without a terminal.
fn restore(arguments: &[&str]) -> Finished {
    Program::of("setsid", &["-w", env!("CARGO_BIN_EXE_restorm"), "restore"])
        .args(&["testdata/dumps/full_6.0"])
        .args(arguments)
        .in_folder(env!("CARGO_MANIFEST_DIR"))
        .run()
}

#[test]
fn what_cannot_be_is_refused_with_a_reason_and_a_way_out() {
    for (arguments, expected) in [
        (&["--sslCRLFile", "x"][..], "revocation"),
        (&["--ssl", "--sslFIPSMode"], "FIPS"),
        (&["--authenticationMechanism", "GSSAPI", "-u", "u"], "Kerberos"),
        (&["--gssapiServiceName", "x"], "Kerberos"),
        (&["--gssapiHostName", "x"], "Kerberos"),
        (&["--config", "nowhere.yaml"], "the configuration cannot be read"),
        (&["--compressors", "lzma", "-h", "127.0.0.1:1"], "lzma"),
        (&["mongodb://a", "mongodb://b"], "more than one connection string"),
        (&["mongodb://a", "--uri", "mongodb://b"], "given twice"),
        (&["--uri", "mongodb://a/x", "--db", "y"], "name different databases"),
        (&["--uri", "mongodb://a:1", "--port", "2"], "name different ports"),
        (&["mongodb://a/?tlsMode=x"], "tlsMode in the connection string is not known"),
    ] {
        let finished = restore(arguments);
        assert_eq!(finished.status, Some(2), "{arguments:?}: {}", finished.stderr);
        assert!(finished.stderr.contains(expected), "{arguments:?}: {}", finished.stderr);
    }
}

#[test]
fn better_than_the_peer_b3_a_database_that_the_dump_lacks_is_an_error() {
    // The peer takes the path for `--db`, finds nothing at this level, and ends with 0.
    let finished = restore(&["--uri", "mongodb://127.0.0.1:1/shopp"]);
    assert_eq!(finished.status, Some(1), "{}", finished.stderr);
    assert!(finished.stderr.contains("no database `shopp`"), "{}", finished.stderr);
    assert!(finished.stderr.contains("shop"), "{}", finished.stderr);
}

#[test]
fn options_without_effect_are_said_to_have_none() {
    let arguments = ["--socketTimeout", "5", "--TCPKeepAliveSeconds", "5"];
    let nowhere = ["-h", "127.0.0.1:1", "--serverSelectionTimeout", "1"];
    let finished = restore(&[&arguments[..], &nowhere].concat());
    assert_eq!(finished.status, Some(1), "{}", finished.stderr);
    for name in ["--socketTimeout", "--TCPKeepAliveSeconds"] {
        let warning = format!("warning: {name} has no effect");
        assert_eq!(finished.stderr.matches(&warning).count(), 1, "{}", finished.stderr);
    }
    let quiet = restore(&[&arguments[..], &nowhere, &["--quiet"]].concat());
    assert!(!quiet.stderr.contains("warning"), "{}", quiet.stderr);
}

#[test]
fn an_option_that_nobody_knows_is_named_and_left_out() {
    let uri = "mongodb://127.0.0.1:1/?serverSelectionTimeoutMS=100&fooBar=hidden";
    let finished = restore(&["--uri", uri]);
    assert_eq!(finished.status, Some(1), "{}", finished.stderr);
    let warning = "warning: ignoring unsupported URI parameter `fooBar`\n";
    assert!(finished.stderr.starts_with(warning), "{}", finished.stderr);
    assert!(finished.stderr.contains("cannot use the server at 127.0.0.1:1"));
    assert!(!finished.stderr.contains("hidden"), "{}", finished.stderr);
}
