//! The arguments about what the target holds already.

use clap::{Args, ValueEnum};

use crate::command::restore::{ExistingPolicy, OccupiedPolicy, WriteMode};
use crate::report::OptionValue;

#[derive(Args, Clone, Copy, Debug, Default)]
pub(super) struct ExistingArgs {
    /// Drop each collection of the dump before restoring it
    #[arg(long, help_heading = "What is restored")]
    drop: bool,

    /// What is done with a collection that exists already [default: add]
    #[arg(long, value_name = "WHAT", value_enum, conflicts_with = "drop")]
    #[arg(help_heading = "What is restored")]
    on_existing: Option<OnExisting>,

    /// Refuse a target whose collections hold documents, before anything is touched
    #[arg(long, help_heading = "What is restored")]
    if_empty: bool,

    /// What is done with a document whose _id is there [default: insert]
    #[arg(long, value_name = "MODE", value_enum, help_heading = "What is restored")]
    mode: Option<DocumentMode>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum DocumentMode {
    /// Insert all; one whose _id is there counts as rejected
    Insert,
    /// Leave the stored document alone and count this one as already there
    Skip,
    /// Put it in the place of the stored document
    Replace,
    /// Set its fields in the stored document and keep the others
    Merge,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum OnExisting {
    /// Refuse the restore before anything is touched
    Fail,
    /// Add documents to what is there
    Add,
    /// Drop it first, as with --drop
    Drop,
    /// Leave it alone
    Skip,
}

impl ExistingArgs {
    pub(super) fn policy(self) -> ExistingPolicy {
        match self.on_existing {
            None if self.drop => ExistingPolicy::Drop,
            None | Some(OnExisting::Add) => ExistingPolicy::Add,
            Some(OnExisting::Drop) => ExistingPolicy::Drop,
            Some(OnExisting::Fail) => ExistingPolicy::Refuse,
            Some(OnExisting::Skip) => ExistingPolicy::Skip,
        }
    }

    pub(super) fn occupied(self) -> OccupiedPolicy {
        if self.if_empty { OccupiedPolicy::Refused } else { OccupiedPolicy::Allowed }
    }

    pub(super) fn write_mode(self) -> WriteMode {
        match self.mode {
            None | Some(DocumentMode::Insert) => WriteMode::Insert,
            Some(DocumentMode::Skip) => WriteMode::Skip,
            Some(DocumentMode::Replace) => WriteMode::Replace,
            Some(DocumentMode::Merge) => WriteMode::Merge,
        }
    }

    /// What was asked for, as the report tells it.
    pub(super) fn told(self) -> impl Iterator<Item = OptionValue> {
        let set = |is_set: bool| is_set.then(|| "true".to_owned());
        let mode = self.mode.and_then(|mode| mode.to_possible_value());
        let what = self.on_existing.and_then(|what| what.to_possible_value());
        [
            ("drop", set(self.drop)),
            ("on-existing", what.map(|what| what.get_name().to_owned())),
            ("if-empty", set(self.if_empty)),
            ("mode", mode.map(|mode| mode.get_name().to_owned())),
        ]
        .into_iter()
        .filter_map(|(name, value)| Some(OptionValue { name: name.to_owned(), value: value? }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        existing: ExistingArgs,
    }

    fn parse(line: &str) -> Option<(ExistingPolicy, OccupiedPolicy, String)> {
        let words = std::iter::once("restore").chain(line.split_whitespace());
        let args = Line::try_parse_from(words).ok()?.existing;
        let told: Vec<_> =
            args.told().map(|option| format!("{}={}", option.name, option.value)).collect();
        Some((args.policy(), args.occupied(), told.join(" ")))
    }

    #[test]
    fn each_word_is_a_policy() {
        use ExistingPolicy::{Add, Drop, Refuse, Skip};
        for (line, policy, told) in [
            ("", Add, ""),
            ("--drop", Drop, "drop=true"),
            ("--on-existing fail", Refuse, "on-existing=fail"),
            ("--on-existing add", Add, "on-existing=add"),
            ("--on-existing drop", Drop, "on-existing=drop"),
            ("--on-existing=skip", Skip, "on-existing=skip"),
        ] {
            let expected = Some((policy, OccupiedPolicy::Allowed, told.to_owned()));
            assert_eq!(parse(line), expected, "{line}");
        }
        let guarded = parse("--if-empty --drop").expect("parsed");
        assert_eq!(guarded, (Drop, OccupiedPolicy::Refused, "drop=true if-empty=true".into()));
    }

    #[test]
    fn each_mode_is_its_word_and_insert_the_default() {
        let mode = |line: &str| {
            let words = std::iter::once("restore").chain(line.split_whitespace());
            Line::try_parse_from(words).ok().map(|line| line.existing.write_mode())
        };
        assert_eq!(mode(""), Some(WriteMode::Insert));
        assert_eq!(mode("--mode insert"), Some(WriteMode::Insert));
        assert_eq!(mode("--mode skip"), Some(WriteMode::Skip));
        assert_eq!(mode("--mode replace --drop"), Some(WriteMode::Replace));
        assert_eq!(mode("--mode merge"), Some(WriteMode::Merge));
        assert_eq!(mode("--mode upsert"), None);
        assert_eq!(parse("--mode merge").map(|parsed| parsed.2), Some("mode=merge".to_owned()));
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for line in ["--drop --on-existing drop", "--on-existing", "--on-existing keep"] {
            assert_eq!(parse(line), None, "{line}");
        }
    }
}
