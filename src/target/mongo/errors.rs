//! The driver's errors in the words of this program.

use mongodb::error::{Error, ErrorKind};

use crate::target::{Fault, TargetError};

/// What a failed command means.
pub(super) fn of(error: &Error) -> TargetError {
    let mut labels: Vec<String> = error.labels().iter().cloned().collect();
    labels.sort();
    let (fault, code, message) = match &*error.kind {
        ErrorKind::Command(command) => {
            (Fault::Refused, Some(command.code), command.message.clone())
        }
        ErrorKind::ServerSelection { message, .. } => {
            (Fault::Unreachable, None, without_driver_words(message))
        }
        ErrorKind::ConnectionPoolCleared { message, .. } => {
            (Fault::Unreachable, None, message.clone())
        }
        ErrorKind::DnsResolve { message, .. } => (Fault::Unreachable, None, message.clone()),
        ErrorKind::Io(io) => (Fault::ConnectionLost, None, format!("the connection broke: {io}")),
        ErrorKind::Authentication { message, .. } => (Fault::Refused, Some(18), message.clone()),
        other => (Fault::Driver, None, other.to_string()),
    };
    TargetError { fault, code, labels, message }
}

/// The part of a server selection error that says what is wrong with each server.
fn without_driver_words(message: &str) -> String {
    let start = message.find("Topology").unwrap_or(0);
    let text = message[start..].trim_end_matches(" }").trim();
    format!("no server could be selected: {text}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_connection_may_have_carried_the_command() {
        let io = std::io::Error::new(std::io::ErrorKind::ConnectionReset, "reset by peer");
        let error = of(&Error::from(io));
        assert_eq!(error.fault, Fault::ConnectionLost);
        assert!(error.message.contains("reset by peer"));
    }
}
