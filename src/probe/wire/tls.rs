//! Encryption of connections, from the options that the driver has of it.

use std::sync::Arc;

use mongodb::options::TlsOptions;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::ring::default_provider;
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::error::{Error, ErrorKind};
use crate::probe::wire::{Failure, reason};

/// What encrypts connections.
#[derive(Clone)]
pub(in crate::probe) struct Encryption {
    connector: TlsConnector,
}

impl Encryption {
    /// Reads the files that the options name.
    ///
    /// # Errors
    ///
    /// Where they cannot be used, and where the client's key is encrypted.
    pub(in crate::probe) fn of(options: &TlsOptions) -> Result<Self, Error> {
        if options.tls_certificate_key_file_password.is_some() {
            return Err(usage("a probe cannot use a client's key that is encrypted")
                .hint("give it the key without a password, in a file that nobody else can read"));
        }
        let mut trusted = RootCertStore::empty();
        if let Some(file) = &options.ca_file_path {
            let certificates = CertificateDer::pem_file_iter(file).map_err(|error| {
                usage(format!("the CA file cannot be read: {error}")).in_file(file)
            })?;
            trusted.add_parsable_certificates(certificates.flatten());
        }
        let config = ClientConfig::builder_with_provider(default_provider().into())
            .with_safe_default_protocol_versions()
            .map_err(|error| usage(format!("TLS cannot be set up: {error}")))?
            .with_root_certificates(trusted);
        let mut config = match &options.cert_key_file_path {
            None => config.with_no_client_auth(),
            Some(file) => {
                let unreadable = |error: rustls::pki_types::pem::Error| {
                    usage(format!("the client's certificate cannot be read: {error}")).in_file(file)
                };
                let certificates: Result<Vec<_>, _> =
                    CertificateDer::pem_file_iter(file).map_err(unreadable)?.collect();
                let key = PrivateKeyDer::from_pem_file(file).map_err(unreadable)?;
                config
                    .with_client_auth_cert(certificates.map_err(unreadable)?, key)
                    .map_err(|error| usage(error.to_string()).in_file(file))?
            }
        };
        if options.allow_invalid_certificates == Some(true) {
            config.dangerous().set_certificate_verifier(Arc::new(Unchecked(default_provider())));
        }
        Ok(Self { connector: Arc::new(config).into() })
    }

    /// Encrypts a connection to this host.
    pub(in crate::probe) async fn onto(
        &self,
        host: &str,
        socket: TcpStream,
    ) -> Result<TlsStream<TcpStream>, Failure> {
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| Failure::Connect("the host's name cannot be checked".to_owned()))?;
        let connected = self.connector.connect(name, socket).await;
        connected.map_err(|error| Failure::Connect(reason(&error)))
    }
}

fn usage(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Usage, message)
}

/// Takes any certificate, for `--tls-insecure`.
#[derive(Debug)]
struct Unchecked(CryptoProvider);

impl ServerCertVerifier for Unchecked {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
