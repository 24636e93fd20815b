//! The arguments about documents that are refused.

use std::path::PathBuf;

use clap::Args;

use crate::command::restore::{FailureLimit, OnRejection};
use crate::report::OptionValue;

#[derive(Args, Clone, Debug, Default)]
pub(super) struct RefusalArgs {
    /// Keep the documents that are refused in this folder, as a dump that can be restored, with a
    /// line of JSON for each that says why; the folder must be empty
    #[arg(long, value_name = "DIR", help_heading = "Refused documents")]
    pub(super) rejects: Option<PathBuf>,

    /// End the run once more documents than this are refused: a number, or a share of those read
    /// such as 0.5%, judged from 1000 documents on
    #[arg(long, value_name = "N|P%", value_parser = FailureLimit::parse)]
    #[arg(help_heading = "Refused documents")]
    pub(super) max_failures: Option<FailureLimit>,

    /// End the run at the first document that the server refuses
    #[arg(long, alias = "stopOnError", help_heading = "Refused documents")]
    stop_on_error: bool,
}

impl RefusalArgs {
    pub(super) fn on_rejection(&self) -> OnRejection {
        if self.stop_on_error { OnRejection::StopRun } else { OnRejection::GoOn }
    }

    /// What was asked for, as the report tells it.
    pub(super) fn told(&self) -> Vec<OptionValue> {
        let value = |name: &str, value: String| OptionValue { name: name.to_owned(), value };
        let rejects = self.rejects.as_ref().map(|folder| folder.display().to_string());
        let rejects = rejects.map(|folder| value("rejects", folder));
        let limit = self.max_failures.map(|limit| value("max-failures", limit.to_string()));
        let stops = self.stop_on_error.then(|| value("stop-on-error", "true".to_owned()));
        rejects.into_iter().chain(limit).chain(stops).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        refusals: RefusalArgs,
    }

    #[test]
    fn each_flag_has_its_effect() {
        let args = |words: &[&str]| Line::parse_from(std::iter::once(&"x").chain(words)).refusals;
        let none = args(&[]);
        assert_eq!((none.on_rejection(), none.max_failures), (OnRejection::GoOn, None));
        assert_eq!(none.told(), []);
        let all = args(&["--rejects", "aside", "--max-failures", "0.5%", "--stopOnError"]);
        assert_eq!(all.on_rejection(), OnRejection::StopRun);
        let told: Vec<_> =
            all.told().iter().map(|one| format!("{}={}", one.name, one.value)).collect();
        assert_eq!(told, ["rejects=aside", "max-failures=0.5%", "stop-on-error=true"]);
        assert!(Line::try_parse_from(["x", "--max-failures", "some"]).is_err());
    }
}
