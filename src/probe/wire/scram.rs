//! The client's side of SCRAM (RFC 5802 and 7677), as MongoDB uses it.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::digest::block_api::EagerHash;
use hmac::{Hmac, KeyInit, Mac};
use md5::Md5;
use sha1::Sha1;
use sha2::{Digest, Sha256};

/// Fewer rounds than this would give the password away (RFC 5802, section 5.1).
const ROUNDS_MIN: u32 = 4096;

/// The hash that both sides use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::probe) enum Mechanism {
    /// With the MD5 sum of user and password in place of the password.
    Sha1,
    /// With the password itself.
    Sha256,
}

impl Mechanism {
    /// Its name on the wire.
    pub(in crate::probe) fn name(self) -> &'static str {
        match self {
            Self::Sha1 => "SCRAM-SHA-1",
            Self::Sha256 => "SCRAM-SHA-256",
        }
    }

    fn hash(self, text: &[u8]) -> Vec<u8> {
        match self {
            Self::Sha1 => Sha1::digest(text).to_vec(),
            Self::Sha256 => Sha256::digest(text).to_vec(),
        }
    }

    fn mac(self, key: &[u8], text: &[u8]) -> Vec<u8> {
        match self {
            Self::Sha1 => mac::<Sha1>(key, text),
            Self::Sha256 => mac::<Sha256>(key, text),
        }
    }

    fn salted(self, password: &str, salt: &[u8], rounds: u32) -> Vec<u8> {
        let password = password.as_bytes();
        match self {
            Self::Sha1 => pbkdf2::pbkdf2_hmac_array::<Sha1, 20>(password, salt, rounds).to_vec(),
            Self::Sha256 => {
                pbkdf2::pbkdf2_hmac_array::<Sha256, 32>(password, salt, rounds).to_vec()
            }
        }
    }
}

fn mac<D: EagerHash>(key: &[u8], text: &[u8]) -> Vec<u8>
where
    Hmac<D>: Mac + KeyInit,
{
    // A key of any length is taken.
    let Ok(mut mac) = <Hmac<D> as KeyInit>::new_from_slice(key) else { return Vec::new() };
    mac.update(text);
    mac.finalize().into_bytes().to_vec()
}

/// Salted passwords by salt and rounds.
type Salted = HashMap<(Vec<u8>, u32), Vec<u8>>;

/// A user who logs in many times: the salted password is reckoned once for each salt.
pub(in crate::probe) struct Secret {
    user: String,
    /// As the mechanism takes it.
    password: String,
    mechanism: Mechanism,
    salted: Mutex<Salted>,
}

impl Secret {
    /// The user and password, in the form that the mechanism takes.
    pub(in crate::probe) fn new(
        mechanism: Mechanism,
        user: &str,
        password: &str,
    ) -> Result<Self, String> {
        let password = match mechanism {
            Mechanism::Sha1 => {
                let sum: [u8; 16] = Md5::digest(format!("{user}:mongo:{password}")).into();
                format!("{:032x}", u128::from_be_bytes(sum))
            }
            Mechanism::Sha256 => stringprep::saslprep(password)
                .map_err(|_| "the password holds a character that SASLprep forbids".to_owned())?
                .into_owned(),
        };
        let user = user.replace('=', "=3D").replace(',', "=2C");
        Ok(Self { user, password, mechanism, salted: Mutex::default() })
    }

    /// The mechanism it is for.
    pub(in crate::probe) fn mechanism(&self) -> Mechanism {
        self.mechanism
    }

    /// The first message, without its header `n,,`.
    pub(in crate::probe) fn first(&self, nonce: &str) -> String {
        format!("n={},r={nonce}", self.user)
    }

    /// The answer to the server's first message, and what the server must say then.
    pub(in crate::probe) fn last(
        &self,
        nonce: &str,
        server_first: &str,
    ) -> Result<(String, String), String> {
        let field = |name: &str| {
            let found = server_first.split(',').find_map(|part| part.strip_prefix(name));
            found.ok_or_else(|| "the server's challenge is incomplete".to_owned())
        };
        let (both, salt, rounds) = (field("r=")?, field("s=")?, field("i=")?);
        let salt =
            STANDARD.decode(salt).map_err(|_| "the server's salt is no base64".to_owned())?;
        let rounds = rounds.parse().ok().filter(|&rounds: &u32| rounds >= ROUNDS_MIN);
        let rounds = rounds.ok_or_else(|| "the server asks for too few rounds".to_owned())?;
        if !both.starts_with(nonce) {
            return Err("the server answers another login".to_owned());
        }
        let salted = self.salted(&salt, rounds);
        let without_proof = format!("c=biws,r={both}");
        let signed = format!("{},{server_first},{without_proof}", self.first(nonce));
        let client_key = self.mechanism.mac(&salted, b"Client Key");
        let stored_key = self.mechanism.hash(&client_key);
        let signature = self.mechanism.mac(&stored_key, signed.as_bytes());
        let proof: Vec<u8> = client_key.iter().zip(&signature).map(|(a, b)| a ^ b).collect();
        let server_key = self.mechanism.mac(&salted, b"Server Key");
        let expected = self.mechanism.mac(&server_key, signed.as_bytes());
        let message = format!("{without_proof},p={}", STANDARD.encode(proof));
        Ok((message, format!("v={}", STANDARD.encode(expected))))
    }

    fn salted(&self, salt: &[u8], rounds: u32) -> Vec<u8> {
        let mut known = self.salted.lock().unwrap_or_else(PoisonError::into_inner);
        let reckon = || self.mechanism.salted(&self.password, salt, rounds);
        known.entry((salt.to_vec(), rounds)).or_insert_with(reckon).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of RFC 7677, section 3.
    #[test]
    fn the_published_exchange_is_met() {
        let secret = Secret::new(Mechanism::Sha256, "user", "pencil").expect("a password");
        let nonce = "rOprNGfwEbeRWgbNEkqO";
        assert_eq!(secret.first(nonce), "n=user,r=rOprNGfwEbeRWgbNEkqO");
        let server = "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,\
                      i=4096";
        let (message, expected) = secret.last(nonce, server).expect("an answer");
        assert_eq!(
            message,
            "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
             p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
        );
        assert_eq!(expected, "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=");
    }

    #[test]
    fn a_server_that_asks_for_less_is_refused() {
        let secret = Secret::new(Mechanism::Sha1, "a=b,c", "x").expect("a password");
        assert_eq!(secret.first("N"), "n=a=3Db=2Cc,r=N");
        for server in ["r=N1,s=AAAA,i=1", "r=M1,s=AAAA,i=4096", "r=N1,i=4096", "r=N1,s=!,i=4096"] {
            assert!(secret.last("N", server).is_err(), "{server}");
        }
    }
}
