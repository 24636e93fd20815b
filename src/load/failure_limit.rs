//! How many documents may be refused before a run ends.

use crate::error::{Error, ErrorKind};
use crate::report::format::{count, counted};

/// Parts of a percent that a limit is exact to.
const PARTS_OF_PERCENT: u32 = 10_000;

/// How many documents may be refused before a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureLimit {
    /// So many.
    Documents(u64),
    /// So many millionths of the documents that were read.
    Share {
        /// Millionths, at most a million.
        millionths: u32,
    },
}

impl FailureLimit {
    /// Reads a number, or a percentage such as `0.5%`.
    ///
    /// # Errors
    ///
    /// Says what is expected, where it is neither.
    pub fn parse(text: &str) -> Result<Self, String> {
        let Some(percent) = text.strip_suffix('%') else {
            let number = text.parse().map_err(|_| "a number or a percentage is needed".to_owned());
            return number.map(Self::Documents);
        };
        let (whole, fraction) = percent.split_once('.').unwrap_or((percent, ""));
        let is_number = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
        let parts: Option<u32> = (fraction.len() <= 4 && is_number(whole) && is_number(fraction))
            .then(|| format!("{whole}{fraction:0<4}").parse().ok())
            .flatten();
        match parts {
            Some(millionths) if !whole.is_empty() && millionths <= 100 * PARTS_OF_PERCENT => {
                Ok(Self::Share { millionths })
            }
            _ => {
                Err("a percentage from 0% to 100% is needed, with at most four digits behind the \
                      point"
                    .to_owned())
            }
        }
    }

    /// Whether more were refused; a share is not judged before so many documents were read.
    pub(super) fn is_passed(self, rejected: u64, read: u64, read_min: u64) -> bool {
        match self {
            Self::Documents(most) => rejected > most,
            Self::Share { millionths } => {
                let allowed = u128::from(read) * u128::from(millionths);
                read >= read_min && u128::from(rejected) * 1_000_000 > allowed
            }
        }
    }

    /// What ends the run then.
    pub(super) fn passed(self, rejected: u64, read: u64) -> Error {
        let refused = counted(rejected, "document was", "documents were");
        let message = match self {
            Self::Documents(most) => {
                format!("{refused} rejected, more than the {} that may be", count(most))
            }
            Self::Share { .. } => {
                let read = counted(read, "read document", "read documents");
                format!("{refused} rejected of {read}, more than the {self} that may be")
            }
        };
        Error::new(ErrorKind::Write, message).hint(
            "the reasons are listed under `rejected`, and --rejects DIR keeps the documents; with \
             a larger --max-failures the restore goes on",
        )
    }
}

impl std::fmt::Display for FailureLimit {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Documents(most) => write!(out, "{most}"),
            Self::Share { millionths } => {
                let (whole, parts) = (millionths / PARTS_OF_PERCENT, millionths % PARTS_OF_PERCENT);
                let parts = format!("{parts:04}");
                match parts.trim_end_matches('0') {
                    "" => write!(out, "{whole}%"),
                    parts => write!(out, "{whole}.{parts}%"),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_a_number_or_a_percentage() {
        for (text, expected) in [
            ("0", FailureLimit::Documents(0)),
            ("250", FailureLimit::Documents(250)),
            ("5%", FailureLimit::Share { millionths: 50_000 }),
            ("0.25%", FailureLimit::Share { millionths: 2500 }),
            ("100%", FailureLimit::Share { millionths: 1_000_000 }),
        ] {
            let limit = FailureLimit::parse(text).expect(text);
            assert_eq!((limit, limit.to_string()), (expected, text.to_owned()));
        }
        for text in ["", "-1", "%", "101%", "1.00001%", "1,5%", "+1%", "a"] {
            assert!(FailureLimit::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_limit_is_passed_by_one_more() {
        let share = FailureLimit::Share { millionths: 10_000 };
        for (limit, rejected, read, is_passed) in [
            (FailureLimit::Documents(0), 0, 9, false),
            (FailureLimit::Documents(0), 1, 9, true),
            (FailureLimit::Documents(3), 3, 9, false),
            (share, 10, 1000, false),
            (share, 11, 1000, true),
            (share, 999, 999, false),
            (share, u64::MAX, u64::MAX, true),
        ] {
            assert_eq!(limit.is_passed(rejected, read, 1000), is_passed, "{limit} {rejected}");
        }
        assert!(share.is_passed(1, 9, 1));
    }
}
