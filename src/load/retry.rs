//! Classifies a failed command, once and for all callers.

use std::time::Duration;

use crate::limits::{RETRY_DELAY_ASKED_MAX, RETRY_DELAY_INITIAL, RETRY_DELAY_MAX};
use crate::target::{Fault, TargetError};

/// What is done about a failed command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is sent again after a pause: the server is away, changing or overloaded.
    Retry,
    /// It is sent again without asking to bypass validators, which this user may not.
    KeepValidators,
    /// Its documents are checked and sent one by one: one of them spoils the others.
    Split,
    /// The collection cannot take it; the other collections go on.
    FailCollection,
}

/// Server codes that pass by themselves: the server is shutting down, stepping down, starting,
/// unreachable or busy (`error_codes.yml`, categories `RetriableError` and `NotPrimaryError`).
const PASSING: [i32; 24] = [
    6,     // HostUnreachable
    7,     // HostNotFound
    24,    // LockTimeout
    46,    // LockBusy
    64,    // WriteConcernFailed: not confirmed in time
    89,    // NetworkTimeout
    91,    // ShutdownInProgress
    112,   // WriteConflict
    134,   // ReadConcernMajorityNotAvailableYet
    175,   // QueryPlanKilled
    189,   // PrimarySteppedDown
    202,   // NetworkInterfaceExceededTimeLimit
    262,   // ExceededTimeLimit
    317,   // ConnectionPoolExpired
    358,   // InternalTransactionNotSupported during a topology change
    384,   // ConnectionError
    9001,  // SocketException
    10058, // NotPrimary of old servers
    10107, // NotWritablePrimary
    11600, // InterruptedAtShutdown
    11602, // InterruptedDueToReplStateChange
    13435, // NotPrimaryNoSecondaryOk
    13436, // NotPrimaryOrSecondary
    16500, // too many requests, of a look-alike server that throttles
];

/// Labels by which a server or the driver says that the same command may succeed later.
const PASSING_LABELS: [&str; 3] =
    ["RetryableWriteError", "TransientTransactionError", "RetryableError"];

/// `Unauthorized`.
const UNAUTHORIZED: i32 = 13;

/// Codes of documents that the server cannot read or that make the command or its answer too large.
const SPOILT: [i32; 10] = [
    9,     // FailedToParse
    15,    // Overflow, of nesting
    16,    // InvalidLength: more documents than a command may have
    22,    // InvalidBSON
    408,   // CannotInsertTimeseriesBucketsWithMixedSchema
    10334, // BSONObjectTooLarge
    16501, // more memory than Cosmos DB gives a request
    17280, // KeyTooLong of old servers
    17419, // the document that an update makes is too large
    17420, // the document that an upsert makes is too large
];

/// Whether the message of a refusal says that too much came at once, for look-alike servers and
/// proxies with limits and codes of their own.
fn is_too_large(message: &str) -> bool {
    let message = message.to_ascii_lowercase();
    message.contains("too large") || message.contains("too big")
}

/// What is done about a failed insert; `bypasses` says whether it asked to bypass validators.
pub fn verdict(error: &TargetError, bypasses: bool) -> Verdict {
    let passes = error.code.is_some_and(|code| PASSING.contains(&code))
        || error.labels.iter().any(|label| PASSING_LABELS.contains(&label.as_str()));
    match (error.fault, error.code) {
        (Fault::Unreachable | Fault::ConnectionLost, _) => Verdict::Retry,
        (Fault::Refused | Fault::Unconfirmed, _) if passes => Verdict::Retry,
        (Fault::Refused, Some(UNAUTHORIZED)) if bypasses => Verdict::KeepValidators,
        (Fault::Refused, Some(code)) if SPOILT.contains(&code) => Verdict::Split,
        (Fault::Refused, _) if is_too_large(&error.message) => Verdict::Split,
        (Fault::Refused | Fault::Unconfirmed | Fault::Driver, _) => Verdict::FailCollection,
    }
}

/// The pause before the attempt with this number, the first repetition being 1: doubling from
/// [`RETRY_DELAY_INITIAL`] to [`RETRY_DELAY_MAX`].
pub fn delay(repetition: u32) -> Duration {
    let doubled = RETRY_DELAY_INITIAL.saturating_mul(1 << repetition.saturating_sub(1).min(16));
    doubled.min(RETRY_DELAY_MAX)
}

/// `TooManyRequests` of Cosmos DB, which throttles.
const THROTTLED: i32 = 16500;

/// Whether a document or command was refused only because too much came at once.
pub fn is_throttled(code: i32) -> bool {
    code == THROTTLED
}

/// The pause after a failure with this message: the one that the server asks for, as Cosmos DB
/// does with `RetryAfterMs=34`, else that of the repetition.
pub fn delay_after(message: &str, repetition: u32) -> Duration {
    asked_for(message).unwrap_or_else(|| delay(repetition)).min(RETRY_DELAY_ASKED_MAX)
}

/// What the message of a server says of how long to wait.
fn asked_for(message: &str) -> Option<Duration> {
    let (_, rest) = message.split_once("RetryAfterMs")?;
    let number = rest.trim_start_matches(['=', ':', ' ']);
    let digits = number.find(|c: char| !c.is_ascii_digit()).unwrap_or(number.len());
    number[..digits].parse().ok().map(Duration::from_millis)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pause_is_the_one_that_the_server_asks_for() {
        for (message, expected) in [
            ("Request rate is large. (RetryAfterMs=34, Details='')", 34),
            ("Error=16500, RetryAfterMs=5481, Details='x", 5481),
            ("RetryAfterMs: 7", 7),
            ("RetryAfterMs=99999999", 60_000),
            ("RetryAfterMs=", 200),
            ("RetryAfterMs=-5", 200),
            ("not primary", 200),
        ] {
            assert_eq!(delay_after(message, 2).as_millis(), expected, "{message}");
        }
        assert!(is_throttled(16500) && !is_throttled(11000));
    }

    fn error(fault: Fault, code: Option<i32>, labels: &[&str]) -> TargetError {
        let labels = labels.iter().map(|&label| label.to_owned()).collect();
        TargetError { fault, code, labels, message: String::new() }
    }

    #[test]
    fn every_kind_of_failure_has_its_verdict() {
        for (failure, expected) in [
            (error(Fault::Unreachable, None, &[]), Verdict::Retry),
            (error(Fault::ConnectionLost, None, &[]), Verdict::Retry),
            (error(Fault::Refused, Some(10107), &[]), Verdict::Retry),
            (error(Fault::Refused, Some(189), &[]), Verdict::Retry),
            (error(Fault::Refused, Some(91), &[]), Verdict::Retry),
            (error(Fault::Refused, Some(11600), &[]), Verdict::Retry),
            (error(Fault::Unconfirmed, Some(64), &[]), Verdict::Retry),
            (error(Fault::Unconfirmed, Some(79), &[]), Verdict::FailCollection),
            (error(Fault::Refused, Some(4242), &["RetryableWriteError"]), Verdict::Retry),
            (error(Fault::Refused, Some(13), &[]), Verdict::KeepValidators),
            (error(Fault::Refused, Some(22), &[]), Verdict::Split),
            (error(Fault::Refused, Some(10334), &[]), Verdict::Split),
            (error(Fault::Refused, Some(73), &[]), Verdict::FailCollection),
            (error(Fault::Driver, None, &[]), Verdict::FailCollection),
        ] {
            assert_eq!(verdict(&failure, true), expected, "{failure:?}");
        }
        let refused = error(Fault::Refused, Some(13), &[]);
        assert_eq!(verdict(&refused, false), Verdict::FailCollection);
    }

    #[test]
    fn pauses_double_up_to_their_limit() {
        let delays: Vec<_> = (1..9).map(|number| delay(number).as_millis()).collect();
        assert_eq!(delays, [100, 200, 400, 800, 1600, 3200, 5000, 5000]);
        assert_eq!(delay(u32::MAX), RETRY_DELAY_MAX);
    }
}
