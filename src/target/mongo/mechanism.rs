//! The mechanism of a login, where the driver takes one that the user does not have.

use mongodb::options::{AuthMechanism, ClientOptions};

/// `AuthenticationFailed`.
pub(super) const AUTHENTICATION_FAILED: i32 = 18;

/// The options to try where a login has failed that names no mechanism and a user outside `admin`.
///
/// The driver asks the server for the mechanisms of the user of that name in `admin`, whatever the
/// database of the user is (3.8.2). Servers from 4.4 on let it try SHA-256 along with the question;
/// with an older one it is left with SHA-1, which the user need not have.
pub(super) fn by_sha_256(options: &ClientOptions) -> Option<ClientOptions> {
    let credential = options.credential.as_ref()?;
    let is_outside = credential.source.as_ref().is_some_and(|source| source != "admin");
    if credential.username.is_none() || credential.mechanism.is_some() || !is_outside {
        return None;
    }
    let mut options = options.clone();
    options.credential.as_mut()?.mechanism = Some(AuthMechanism::ScramSha256);
    Some(options)
}

#[cfg(test)]
mod tests {
    use super::*;
    use mongodb::options::Credential;

    fn tried(credential: Credential) -> Option<AuthMechanism> {
        let options = ClientOptions::builder().credential(credential).build();
        by_sha_256(&options)?.credential?.mechanism
    }

    #[test]
    fn only_a_user_outside_admin_without_a_mechanism_is_tried_again() {
        let ann = Credential::builder().username("ann".to_owned()).password("x".to_owned());
        let outside = ann.clone().source("shop".to_owned());
        assert_eq!(tried(outside.clone().build()), Some(AuthMechanism::ScramSha256));
        assert_eq!(tried(outside.mechanism(AuthMechanism::ScramSha1).build()), None);
        assert_eq!(tried(ann.clone().source("admin".to_owned()).build()), None);
        assert_eq!(tried(ann.build()), None);
        assert!(by_sha_256(&ClientOptions::default()).is_none());
    }
}
