//! How a connection says who it is.

use std::time::Duration;

use bson::spec::BinarySubtype;
use bson::{Binary, RawBson, RawDocument, RawDocumentBuf, rawdoc};
use mongodb::options::{AuthMechanism, Credential};
use rustls::crypto::ring::default_provider;

use crate::error::{Error, ErrorKind};
use crate::probe::wire::scram::{Mechanism, Secret};
use crate::probe::wire::{Failure, Link};

/// Random bytes in the client's part of the nonce, as many as the driver takes.
const NONCE_BYTES: usize = 32;

/// Who logs in, and how.
pub(in crate::probe) enum Login {
    /// Nobody.
    None,
    /// A user with a password, known in this database.
    Scram {
        /// The database.
        source: String,
        /// One for each mechanism, the best first.
        secrets: Vec<Secret>,
        /// What to ask the server for, so that it tells the user's mechanisms.
        user: String,
    },
    /// The owner of the client's certificate.
    Certificate,
}

impl Login {
    /// The login that the driver would do.
    ///
    /// # Errors
    ///
    /// Where it is of a kind that a probe does not know.
    pub(in crate::probe) fn of(credential: Option<&Credential>) -> Result<Self, Error> {
        let Some(credential) = credential else { return Ok(Self::None) };
        let mechanisms = match &credential.mechanism {
            None => &[Mechanism::Sha256, Mechanism::Sha1][..],
            Some(AuthMechanism::ScramSha256) => &[Mechanism::Sha256],
            Some(AuthMechanism::ScramSha1) => &[Mechanism::Sha1],
            Some(AuthMechanism::MongoDbX509) => return Ok(Self::Certificate),
            Some(_) => {
                let message =
                    "a probe logs in with SCRAM or with a certificate (MONGODB-X509) only";
                return Err(Error::new(ErrorKind::Usage, message)
                    .hint("make a user with a password for it, with the role readWrite"));
            }
        };
        let (user, password) = (credential.username.as_deref(), credential.password.as_deref());
        let (user, password) = (user.unwrap_or_default(), password.unwrap_or_default());
        let secrets = mechanisms.iter().map(|&one| Secret::new(one, user, password));
        Ok(Self::Scram {
            source: credential.source.clone().unwrap_or_else(|| "admin".to_owned()),
            secrets: secrets
                .collect::<Result<_, _>>()
                .map_err(|message| Error::new(ErrorKind::Usage, message))?,
            user: user.to_owned(),
        })
    }

    /// What the greeting asks for besides: the mechanisms of the user.
    pub(in crate::probe) fn asks_mechanisms_of(&self) -> Option<String> {
        match self {
            Self::Scram { source, user, .. } => Some(format!("{source}.{user}")),
            Self::None | Self::Certificate => None,
        }
    }

    /// Logs in through a connection whose greeting was answered like this.
    pub(in crate::probe) async fn through(
        &self,
        link: &mut Link,
        greeting: &RawDocument,
        within: Duration,
    ) -> Result<(), Failure> {
        let done = match self {
            Self::None => Ok(()),
            Self::Certificate => {
                let command = rawdoc! {
                    "authenticate": 1, "mechanism": "MONGODB-X509", "$db": "$external",
                };
                link.ask(&command, within).await.map(drop)
            }
            Self::Scram { source, secrets, .. } => {
                let known = greeting.get_array("saslSupportedMechs").ok();
                let offers = |name: &str| {
                    let mut names = known.into_iter().flatten().flatten();
                    known.is_none() || names.any(|one| one.as_str() == Some(name))
                };
                let usable = secrets.iter().find(|secret| offers(secret.mechanism().name()));
                let secret = usable.or(secrets.first());
                let secret = secret.ok_or_else(|| Failure::Login("no mechanism".to_owned()))?;
                scram(link, source, secret, within).await
            }
        };
        done.map_err(|failure| match failure {
            Failure::Server { message, .. } => Failure::Login(message),
            other => other,
        })
    }
}

async fn scram(
    link: &mut Link,
    source: &str,
    secret: &Secret,
    within: Duration,
) -> Result<(), Failure> {
    let nonce = nonce()?;
    let first = format!("n,,{}", secret.first(&nonce));
    let command = rawdoc! {
        "saslStart": 1,
        "mechanism": secret.mechanism().name(),
        "payload": payload(&first),
        "options": { "skipEmptyExchange": true },
        "$db": source,
    };
    let answer = link.ask_owned(&command, within).await?;
    let (message, expected) = secret.last(&nonce, &payload_of(&answer)?).map_err(Failure::Login)?;
    // Servers want it back in the type in which they gave it.
    let id = match answer.get("conversationId") {
        Ok(Some(id)) => RawBson::from(id),
        Ok(None) | Err(_) => RawBson::Int32(1),
    };
    let go_on = |text: &str| -> RawDocumentBuf {
        rawdoc! {
            "saslContinue": 1, "conversationId": id.clone(),
            "payload": payload(text), "$db": source,
        }
    };
    let answer = link.ask_owned(&go_on(&message), within).await?;
    if !payload_of(&answer)?.split(',').any(|part| part == expected) {
        return Err(Failure::Login("the server does not know the password itself".to_owned()));
    }
    if answer.get_bool("done").unwrap_or(false) {
        return Ok(());
    }
    // Servers before 4.4 want one more message, which is empty.
    link.ask(&go_on(""), within).await.map(drop)
}

fn payload(text: &str) -> Binary {
    Binary { subtype: BinarySubtype::Generic, bytes: text.as_bytes().to_vec() }
}

fn payload_of(answer: &RawDocument) -> Result<String, Failure> {
    let bytes = answer.get_binary("payload").map(|binary| binary.bytes).unwrap_or_default();
    String::from_utf8(bytes.to_vec())
        .map_err(|_| Failure::Login("the server's challenge is no text".to_owned()))
}

fn nonce() -> Result<String, Failure> {
    use base64::Engine;
    let mut bytes = [0; NONCE_BYTES];
    let filled = default_provider().secure_random.fill(&mut bytes);
    filled.map_err(|_| Failure::Login("the system has no random numbers".to_owned()))?;
    Ok(base64::engine::general_purpose::STANDARD.encode(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_some_mechanisms_are_spoken() {
        assert!(matches!(Login::of(None), Ok(Login::None)));
        let of = |mechanism| {
            let credential = Credential::builder().username("ann".to_owned());
            let credential = credential.password("x".to_owned()).mechanism(mechanism).build();
            Login::of(Some(&credential))
        };
        assert!(matches!(of(AuthMechanism::MongoDbX509), Ok(Login::Certificate)));
        let Ok(Login::Scram { source, secrets, .. }) = of(AuthMechanism::ScramSha1) else {
            panic!("a password")
        };
        assert_eq!((source.as_str(), secrets.len()), ("admin", 1));
        let error = of(AuthMechanism::Plain).err().expect("refused");
        assert!(error.to_string().contains("SCRAM"), "{error}");
    }

    #[test]
    fn nonces_differ() {
        assert_ne!(nonce().expect("random"), nonce().expect("random"));
    }
}
