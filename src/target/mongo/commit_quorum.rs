//! How many members must be ready before an index is committed.

use bson::Bson;

use crate::error::{Error, ErrorKind};
use crate::facts::ServerFacts;

/// The most members of a replica set that vote.
const VOTING_MEMBERS_MAX: i32 = 7;

/// How many voting members must have built an index before the primary commits it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommitQuorum {
    /// So many; 0 lets each member build for itself.
    Members(i32),
    /// More than half of them.
    Majority,
    /// All of them, as where nothing is said.
    VotingMembers,
}

impl CommitQuorum {
    /// Reads a number, `majority` or `votingMembers`.
    pub fn parse(text: &str) -> Result<Self, Error> {
        match text {
            "majority" => Ok(Self::Majority),
            "votingMembers" | "voting-members" => Ok(Self::VotingMembers),
            other => other
                .parse()
                .ok()
                .filter(|members| (0..=VOTING_MEMBERS_MAX).contains(members))
                .map(Self::Members)
                .ok_or_else(|| {
                    let message = format!("`{other}` is no commit quorum");
                    Error::new(ErrorKind::Usage, message)
                        .hint("majority, votingMembers, or a number from 0 to 7")
                }),
        }
    }

    /// Refuses a quorum on a server that has none.
    pub(super) fn check(self, facts: &ServerFacts) -> Result<Self, Error> {
        if facts.takes_commit_quorum() {
            return Ok(self);
        }
        let message = "the server has no commit quorum for index builds; --commit-quorum needs a \
                       replica set or cluster of version 4.4 or newer";
        Err(Error::new(ErrorKind::Plan, message).hint("restore without --commit-quorum"))
    }
}

impl std::fmt::Display for CommitQuorum {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Members(members) => write!(out, "{members}"),
            Self::Majority => out.write_str("majority"),
            Self::VotingMembers => out.write_str("votingMembers"),
        }
    }
}

impl From<CommitQuorum> for Bson {
    fn from(quorum: CommitQuorum) -> Self {
        match quorum {
            CommitQuorum::Members(members) => members.into(),
            CommitQuorum::Majority => "majority".into(),
            CommitQuorum::VotingMembers => "votingMembers".into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::{ServerVersion, Topology};

    #[test]
    fn numbers_and_the_two_words_are_taken() {
        for (text, expected) in [
            ("0", Bson::Int32(0)),
            ("3", Bson::Int32(3)),
            ("majority", "majority".into()),
            ("votingMembers", "votingMembers".into()),
        ] {
            assert_eq!(Bson::from(CommitQuorum::parse(text).expect(text)), expected);
        }
        for text in ["", "-1", "8", "most", "1.5"] {
            assert!(CommitQuorum::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn only_sets_and_clusters_of_today_have_one() {
        for (topology, version, expected) in [
            (Topology::ReplicaSet, "4.4.2", true),
            (Topology::Sharded, "6.0.5", true),
            (Topology::ReplicaSet, "4.2.6", false),
            (Topology::Standalone, "6.0.5", false),
        ] {
            let version = ServerVersion::parse(version).expect("a version");
            let facts = ServerFacts { version, topology, ..ServerFacts::null() };
            assert_eq!(CommitQuorum::Majority.check(&facts).is_ok(), expected, "{facts:?}");
        }
    }
}
