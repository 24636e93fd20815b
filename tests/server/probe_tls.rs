//! Probes of servers that want TLS and certificates.

use crate::probe::judged;
use crate::program::{Finished, Program};
use crate::tls::{Certificates, open_server, owner_of_certificate, server};

/// What is asked of a server in these tests.
const LINE: [&str; 7] =
    ["--json", "--connections", "10", "--duration", "1s", "--seed-documents", "100"];

fn probe(address: &str, arguments: &[&str]) -> Finished {
    Program::restorm(&["probe", "-h", address]).args(&LINE).args(arguments).run()
}

#[track_caller]
fn refused(finished: &Finished, status: i32, says: &str) {
    assert_eq!(finished.status, Some(status), "{}", finished.stderr);
    assert!(finished.stderr.contains(says), "`{says}` is not said:\n{}", finished.stderr);
}

#[track_caller]
fn asked(finished: Finished) {
    let (_, report) = judged(finished, 0);
    assert_eq!(report["steps"][0]["connected"], 10);
    assert!(report["steps"][0]["done"]["reads"].as_u64() > Some(10), "{report:#}");
}

#[test]
fn a_probe_trusts_a_server_by_its_ca_or_blindly() {
    let certificates = Certificates::make();
    let mongod = open_server(&certificates, "server.pem");
    let (ca, other) = (certificates.text("ca.pem"), certificates.text("other-ca.pem"));
    asked(probe(mongod.address(), &["--tls", "--tls-ca-file", &ca]));
    asked(probe(mongod.address(), &["--tls-insecure"]));
    for (arguments, status, says) in [
        (&["--tls", "--tls-ca-file", &other][..], 1, "name its CA with --tls-ca-file"),
        (&["--tls"], 1, "--tls-ca-file"),
        (&["--tls", "--tls-ca-file", &certificates.text("empty.pem")], 2, "BEGIN CERTIFICATE"),
        (&[], 1, "does it require TLS"),
    ] {
        refused(&probe(mongod.address(), arguments), status, says);
    }
}

#[test]
fn a_probe_refuses_a_certificate_for_another_name() {
    let certificates = Certificates::make();
    let mongod = open_server(&certificates, "elsewhere.pem");
    let ca = certificates.text("ca.pem");
    refused(&probe(mongod.address(), &["--tls", "--tls-ca-file", &ca]), 1, "another name");
    asked(probe(mongod.address(), &["--tls-insecure"]));
}

#[test]
fn a_probe_logs_in_with_a_certificate() {
    let certificates = Certificates::make();
    let mongod = server(&certificates, "server.pem", &["--auth"]);
    owner_of_certificate(&certificates, &mongod);
    let (ca, client) = (certificates.text("ca.pem"), certificates.text("client.pem"));
    let trusting = ["--tls", "--tls-ca-file", &ca];
    let with = |arguments: &[&str]| probe(mongod.address(), &[&trusting[..], arguments].concat());
    let login = ["--authentication-mechanism", "MONGODB-X509", "--tls-certificate-key-file"];
    asked(with(&[&login[..], &[&client]].concat()));
    // The server wants to know who it talks to, and then what they may do.
    refused(&with(&[]), 1, "");
    refused(&with(&["--tls-certificate-key-file", &client]), 1, "give a user and password");
    let encrypted = certificates.text("encrypted.pem");
    let password = ["--tls-certificate-key-file-password", "k3y p@ss"];
    let finished = with(&[&login[..], &[&encrypted], &password].concat());
    refused(&finished, 2, "cannot use a client's key that is encrypted");
}
