//! Encrypted connections: with a CA, with client certificates, and with everything that is wrong.

use crate::program::{Finished, Program};
use crate::support::dump::genuine;
use crate::support::{Mongod, connect, runtime, stored};
use mongodb::bson::doc;
use pkcs8::{LineEnding, PrivateKeyInfoRef};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, IsCa, KeyPair,
};
use std::path::PathBuf;
use tempfile::TempDir;

/// The password of the client's key.
const KEY_PASSWORD: &str = "k3y p@ss";

/// A CA and what it has signed, as PEM files.
pub(crate) struct Certificates {
    folder: TempDir,
}

fn named(organization: &str, name: &str, hosts: &[&str]) -> CertificateParams {
    let hosts: Vec<String> = hosts.iter().map(ToString::to_string).collect();
    let mut params = CertificateParams::new(hosts).expect("names are valid");
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::OrganizationName, organization);
    params.distinguished_name.push(DnType::CommonName, name);
    params
}

impl Certificates {
    pub(crate) fn make() -> Self {
        let made = Self { folder: tempfile::tempdir().expect("a folder") };
        let issuer = issuer("Authority");
        made.write("ca.pem", &issuer.pem());
        made.write("other-ca.pem", &issuer_of_others().pem());
        let sign = |params: CertificateParams| {
            let key = KeyPair::generate().expect("a key");
            let certificate = params.signed_by(&key, &issuer).expect("signed");
            (certificate.pem(), key)
        };
        let (server, key) = sign(named("Servers", "mongod", &["localhost", "127.0.0.1"]));
        made.write("server.pem", &(server + &key.serialize_pem()));
        let (server, key) = sign(named("Servers", "elsewhere", &["elsewhere.example.com"]));
        made.write("elsewhere.pem", &(server + &key.serialize_pem()));
        let (client, key) = sign(named("Clients", "restorm", &["restorm.example.com"]));
        made.write("client.pem", &(client.clone() + &key.serialize_pem()));
        let der = key.serialize_der();
        let encrypted = PrivateKeyInfoRef::try_from(der.as_slice())
            .and_then(|key| key.encrypt(KEY_PASSWORD))
            .expect("encrypted");
        let encrypted = encrypted.to_pem("ENCRYPTED PRIVATE KEY", LineEnding::LF).expect("PEM");
        made.write("encrypted.pem", &(client + &encrypted));
        made.write("empty.pem", "nothing of that kind\n");
        made
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).expect("written");
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn text(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }
}

fn issuer(name: &str) -> CertifiedIssuer<'static, KeyPair> {
    let mut params = named("Authorities", name, &[]);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key")).expect("signed")
}

fn issuer_of_others() -> CertifiedIssuer<'static, KeyPair> {
    issuer("Another")
}

/// A server that requires TLS, with this certificate.
pub(crate) fn server(certificates: &Certificates, certificate: &str, more: &[&str]) -> Mongod {
    let (certificate, ca) = (certificates.text(certificate), certificates.text("ca.pem"));
    let tls = ["--tlsMode", "requireTLS", "--tlsCertificateKeyFile", &certificate, "--tlsCAFile"];
    Mongod::start(&[&tls[..], &[&ca], more].concat())
}

/// A server that takes clients without a certificate.
pub(crate) fn open_server(certificates: &Certificates, certificate: &str) -> Mongod {
    server(certificates, certificate, &["--tlsAllowConnectionsWithoutCertificates"])
}

fn restore(mongod: &Mongod, arguments: &[&str]) -> Finished {
    Program::of("setsid", &["-w", env!("CARGO_BIN_EXE_restorm"), "restore", "-h"])
        .arg(mongod.address())
        .arg(genuine("full_6.0/shop/orders.bson"))
        .args(&["--drop", "--serverSelectionTimeout", "3"])
        .args(arguments)
        .run()
}

#[track_caller]
fn ended(finished: &Finished, status: i32, says: &str) {
    assert_eq!(finished.status, Some(status), "{}\n{}", finished.stdout, finished.stderr);
    assert!(finished.stderr.contains(says), "`{says}` is not said:\n{}", finished.stderr);
    assert!(!finished.stderr.contains(KEY_PASSWORD), "{}", finished.stderr);
}

/// Makes the user who owns the client's certificate, and the server's only one.
pub(crate) fn owner_of_certificate(certificates: &Certificates, mongod: &Mongod) {
    let (ca, client) = (certificates.text("ca.pem"), certificates.text("client.pem"));
    let uri = format!("{}/?tls=true&tlsCAFile={ca}&tlsCertificateKeyFile={client}", mongod.uri());
    let external = connect(&uri).database("$external");
    let user = doc! {
        "createUser": "CN=restorm,O=Clients",
        "roles": [{ "role": "readWriteAnyDatabase", "db": "admin" }, { "role": "root", "db": "admin" }],
    };
    runtime().block_on(async { external.run_command(user).await }).expect("a user is made");
}

#[test]
fn a_server_that_requires_tls_is_trusted_by_its_ca() {
    let certificates = Certificates::make();
    let mongod = open_server(&certificates, "server.pem");
    let (ca, other) = (certificates.text("ca.pem"), certificates.text("other-ca.pem"));
    let (empty, missing) = (certificates.text("empty.pem"), certificates.text("missing.pem"));
    for (arguments, status, says) in [
        (&["--tls", "--tls-ca-file", &ca][..], 0, "exit       0"),
        (&["--ssl", "--sslCAFile", &ca], 0, "exit       0"),
        (&["--tls", "--tls-ca-file", &other], 1, "--tls-ca-file"),
        (&["--tls"], 1, "--tls-ca-file"),
        (&["--tls", "--tls-ca-file", &empty], 2, "no part `BEGIN CERTIFICATE`"),
        (&["--tls", "--tls-ca-file", &missing], 2, "cannot be read"),
        (&["--tls-ca-file", &ca], 2, "add --tls"),
        (&["--tls-insecure"], 0, "exit       0"),
        (&["--ssl", "--sslAllowInvalidCertificates"], 0, "neither certificates nor host names"),
        (&[], 1, "does it require TLS"),
    ] {
        ended(&restore(&mongod, arguments), status, says);
    }
    let client = connect(&format!("{}/?tls=true&tlsCAFile={ca}", mongod.uri()));
    assert_eq!(stored(&client, "shop", "orders").len(), 3000);
}

#[test]
fn a_certificate_for_another_name_is_refused_unless_that_is_allowed() {
    let certificates = Certificates::make();
    let mongod = open_server(&certificates, "elsewhere.pem");
    let ca = certificates.text("ca.pem");
    let trusting = ["--ssl", "--sslCAFile", &ca];
    ended(&restore(&mongod, &trusting), 1, "another name");
    let allowing = [&trusting[..], &["--sslAllowInvalidHostnames"]].concat();
    ended(&restore(&mongod, &allowing), 0, "warning: neither");
}

#[test]
fn a_plain_server_is_told_from_one_with_tls() {
    let mongod = Mongod::start(&[]);
    ended(&restore(&mongod, &["--tls", "--tls-insecure"]), 1, "leave --tls out");
}

#[test]
fn a_client_logs_in_with_its_certificate_also_with_an_encrypted_key() {
    let certificates = Certificates::make();
    let mongod = server(&certificates, "server.pem", &["--auth"]);
    let (ca, plain) = (certificates.text("ca.pem"), certificates.text("client.pem"));
    let (encrypted, lone) = (certificates.text("encrypted.pem"), certificates.text("ca.pem"));
    owner_of_certificate(&certificates, &mongod);
    let login = ["--ssl", "--sslCAFile", &ca, "--authenticationMechanism", "MONGODB-X509"];
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("secrets.yaml");
    std::fs::write(&config, format!("sslPEMKeyPassword: '{KEY_PASSWORD}'\n")).unwrap();
    let config = config.to_str().unwrap();
    for (arguments, status, says) in [
        (&["--sslPEMKeyFile", &plain][..], 0, "exit       0"),
        (&["--sslPEMKeyFile", &plain, "--sslPEMKeyPassword", KEY_PASSWORD], 0, "exit       0"),
        (&["--sslPEMKeyFile", &encrypted, "--sslPEMKeyPassword", KEY_PASSWORD], 0, "exit       0"),
        (&["--sslPEMKeyFile", &encrypted, "--config", config], 0, "exit       0"),
        (
            &["--sslPEMKeyFile", &encrypted, "--sslPEMKeyPassword", "wrong"],
            2,
            "password of the key",
        ),
        (&["--sslPEMKeyFile", &encrypted], 2, "the client's key is missing"),
        (&["--sslPEMKeyFile", &lone], 2, "no part `PRIVATE KEY`"),
    ] {
        ended(&restore(&mongod, &[&login, arguments].concat()), status, says);
    }
    // Without a certificate the server does not even talk.
    assert_eq!(restore(&mongod, &["--ssl", "--sslCAFile", &ca]).status, Some(1));
}
