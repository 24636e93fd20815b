//! The driver's errors in the words of this program.

use std::time::Duration;

use mongodb::error::{Error, ErrorKind};

use crate::target::{Fault, TargetError};

/// What a failed command means.
pub(super) fn of(error: &Error) -> TargetError {
    let mut labels: Vec<String> = error.labels().iter().cloned().collect();
    labels.sort();
    let (fault, code, message) = match &*error.kind {
        ErrorKind::Command(command) => {
            (Fault::Refused, Some(command.code), without_command(&command.message))
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

/// A command that nobody answered in time.
pub(super) fn unanswered(within: Duration) -> TargetError {
    TargetError {
        fault: Fault::ConnectionLost,
        code: None,
        labels: Vec::new(),
        message: format!("the server did not answer within {} s", within.as_secs()),
    }
}

/// A server that refuses a command for lack of a right repeats the whole of it, session and all;
/// its name is enough.
fn without_command(message: &str) -> String {
    let Some((reason, command)) = message.split_once(" to execute command { ") else {
        return message.to_owned();
    };
    let name = command.split(':').next().unwrap_or_default();
    format!("{reason} to execute the command `{name}`")
}

/// What a server selection error says of each server: the driver writes the topology out in the
/// form for debugging, `{ Address: A, Type: T, Error: Kind: E, labels: … }` for each server.
fn without_driver_words(message: &str) -> String {
    let servers: Vec<String> = message
        .split("Address: ")
        .skip(1)
        .map(|server| {
            let address = server.split([',', ' ']).next().unwrap_or_default();
            match server.split_once("Error: Kind: ") {
                Some((_, error)) => {
                    let reason = error.split(", labels: {").next().unwrap_or(error);
                    format!("{address}: {reason}")
                }
                None => format!("{address}: no answer that fits"),
            }
        })
        .collect();
    if servers.is_empty() {
        return message.to_owned();
    }
    format!("no server could be selected ({})", servers.join("; "))
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

    #[test]
    fn a_refused_command_is_named_and_not_repeated() {
        let message = "not authorized on shop to execute command { create: \"orders\", lsid: { id: \
             UUID(\"x\") }, $db: \"shop\" }";
        let expected = "not authorized on shop to execute the command `create`";
        assert_eq!(without_command(message), expected);
        assert_eq!(without_command("E11000 duplicate key"), "E11000 duplicate key");
    }

    #[test]
    fn each_server_is_named_with_its_reason_alone() {
        let message = "Server selection timeout: No available servers. Topology: { Type: Single, \
             Servers: [ { Address: db1:27017, Type: Unknown, Error: Kind: I/O error: Connection \
             refused (os error 111), labels: {\"RetryableError\"}, source: None, server response: \
             None }, { Address: db2:27017, Type: RsSecondary } ] }";
        assert_eq!(
            without_driver_words(message),
            "no server could be selected (db1:27017: I/O error: Connection refused (os error \
             111); db2:27017: no answer that fits)"
        );
        assert_eq!(without_driver_words("nothing like it"), "nothing like it");
    }
}
