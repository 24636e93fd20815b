//! The exit status of every outcome.

use std::fmt::Write as _;

/// How the program ended, as the shell sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ExitStatus {
    /// Everything planned was restored.
    Restored,
    /// An error stopped the run, or a collection is not complete.
    Stopped,
    /// The command line asks for something that cannot be.
    Usage,
    /// The run finished, but the server refused documents or indexes.
    Failures,
    /// Source and target hold different data.
    Difference,
    /// Someone asked the run to stop.
    Interrupted,
}

impl ExitStatus {
    /// Every status, in the order of the codes.
    pub const ALL: [Self; 6] = [
        Self::Restored,
        Self::Stopped,
        Self::Usage,
        Self::Failures,
        Self::Difference,
        Self::Interrupted,
    ];

    /// The number that the process ends with; 130 is what a shell gives for an interrupt (128 + 2).
    pub fn code(self) -> u8 {
        match self {
            Self::Restored => 0,
            Self::Stopped => 1,
            Self::Usage => 2,
            Self::Failures => 3,
            Self::Difference => 4,
            Self::Interrupted => 130,
        }
    }

    /// What it means; a sentence without its final period.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Restored => "everything planned was restored",
            Self::Stopped => {
                "stopped by an error, or a collection could not be restored completely"
            }
            Self::Usage => "wrong usage",
            Self::Failures => "finished, but some documents or indexes failed",
            Self::Difference => "verification found a difference",
            Self::Interrupted => "interrupted; batches in flight were finished and reported",
        }
    }

    /// All statuses for a help text, one a line.
    pub fn table() -> String {
        Self::ALL.iter().fold(String::new(), |mut lines, status| {
            // Writing to a string cannot fail.
            let _ = writeln!(lines, "{:>5}  {}", status.code(), status.meaning());
            lines
        })
    }
}

impl From<ExitStatus> for std::process::ExitCode {
    fn from(status: ExitStatus) -> Self {
        Self::from(status.code())
    }
}

impl serde::Serialize for ExitStatus {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u8(self.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_codes_are_a_promise() {
        for (status, code) in [
            (ExitStatus::Restored, 0),
            (ExitStatus::Stopped, 1),
            (ExitStatus::Usage, 2),
            (ExitStatus::Failures, 3),
            (ExitStatus::Difference, 4),
            (ExitStatus::Interrupted, 130),
        ] {
            assert_eq!(status.code(), code, "{status:?}");
            assert!(ExitStatus::ALL.contains(&status), "{status:?} is missing from the table");
        }
    }

    #[test]
    fn the_table_has_a_line_for_each() {
        let table = ExitStatus::table();
        assert_eq!(table.lines().count(), ExitStatus::ALL.len());
        assert!(table.starts_with("    0  everything planned was restored\n"), "{table}");
        assert!(table.contains("  130  interrupted;"), "{table}");
    }
}
