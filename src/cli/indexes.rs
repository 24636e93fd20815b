//! The arguments that say how indexes are built.

use clap::Args;

use crate::command::restore::{CommitQuorum, Directions, DottedHashed, IndexFixes, IndexVersion};
use crate::report::OptionValue;

#[derive(Args, Clone, Debug, Default)]
pub(super) struct IndexArgs {
    /// Convert the directions of old index definitions as mongorestore does: numbers next to zero
    /// become 1 or -1, and of definitions that become the same by it the first is built. What a
    /// server would refuse is repaired without this
    #[arg(long, alias = "convertLegacyIndexes", help_heading = "How it is done")]
    convert_legacy_indexes: bool,

    /// Make hashed fields with a dot in their name ascending
    #[arg(long, alias = "fixDottedHashIndex", help_heading = "How it is done")]
    fix_dotted_hash_index: bool,

    /// Build indexes in the version they have in the dump, not in the server's own
    #[arg(long, alias = "keepIndexVersion", help_heading = "How it is done")]
    keep_index_version: bool,

    /// Members of a replica set that must have built an index before it counts: majority,
    /// votingMembers, or a number
    #[arg(long, alias = "commitQuorum", value_name = "QUORUM", value_parser = commit_quorum)]
    #[arg(help_heading = "How it is done")]
    commit_quorum: Option<CommitQuorum>,
}

impl IndexArgs {
    /// How definitions are made fit.
    pub(super) fn fixes(&self) -> IndexFixes {
        IndexFixes {
            directions: if self.convert_legacy_indexes {
                Directions::Converted
            } else {
                Directions::Repaired
            },
            dotted_hashed: if self.fix_dotted_hash_index {
                DottedHashed::Ascending
            } else {
                DottedHashed::Kept
            },
            version: if self.keep_index_version {
                IndexVersion::Kept
            } else {
                IndexVersion::Current
            },
        }
    }

    /// How many members must be ready.
    pub(super) fn commit_quorum(&self) -> Option<CommitQuorum> {
        self.commit_quorum
    }

    /// What was asked for, as the report tells it.
    pub(super) fn told(&self) -> impl Iterator<Item = OptionValue> {
        let flags = [
            ("convert-legacy-indexes", self.convert_legacy_indexes),
            ("fix-dotted-hash-index", self.fix_dotted_hash_index),
            ("keep-index-version", self.keep_index_version),
        ];
        let flags = flags.into_iter().filter(|(_, is_set)| *is_set);
        let quorum = self.commit_quorum.map(|quorum| ("commit-quorum", quorum.to_string()));
        flags
            .map(|(name, _)| (name, "true".to_owned()))
            .chain(quorum)
            .map(|(name, value)| OptionValue { name: name.into(), value })
    }
}

fn commit_quorum(text: &str) -> Result<CommitQuorum, String> {
    CommitQuorum::parse(text).map_err(|error| match error.hint_text() {
        Some(hint) => format!("{error}; {hint}"),
        None => error.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        indexes: IndexArgs,
    }

    fn parse(line: &str) -> IndexArgs {
        let words = std::iter::once("restore").chain(line.split_whitespace());
        Line::try_parse_from(words).expect("parsed").indexes
    }

    #[test]
    fn both_spellings_are_taken() {
        for line in [
            "--convert-legacy-indexes --fix-dotted-hash-index --keep-index-version \
             --commit-quorum 2",
            "--convertLegacyIndexes --fixDottedHashIndex --keepIndexVersion --commitQuorum=2",
        ] {
            let args = parse(line);
            let expected = IndexFixes {
                directions: Directions::Converted,
                dotted_hashed: DottedHashed::Ascending,
                version: IndexVersion::Kept,
            };
            assert_eq!(args.fixes(), expected);
            assert_eq!(args.commit_quorum(), Some(CommitQuorum::Members(2)));
            assert_eq!(args.told().count(), 4);
        }
        assert_eq!(parse("").fixes(), IndexFixes::default());
        assert!(Line::try_parse_from(["restore", "--commit-quorum", "most"]).is_err());
    }
}
