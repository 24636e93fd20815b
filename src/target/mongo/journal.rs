//! What has to be said to servers that confirm a majority before it is in their journal.

use bson::raw::cstr;
use bson::{RawBsonRef, RawDocumentBuf};

use crate::facts::{ServerFacts, ServerVersion, Topology};

/// From this version on a standalone server that confirms a majority has it on disk.
pub(super) const WAITED_FOR: ServerVersion = ServerVersion::new(5, 0, 0);

/// The write concern with the journal asked for where a server would not wait for it by itself.
///
/// A replica set waits for the journal when a majority is asked for, and a standalone server does
/// from 5.0 on. An older one loses what it has confirmed when its power is cut (seen on 4.2.6 and
/// 4.4.2). Whoever says anything about the journal is not overruled.
pub(super) fn asked_for(concern: RawDocumentBuf, facts: &ServerFacts) -> RawDocumentBuf {
    let waits = facts.topology != Topology::Standalone
        || facts.version >= WAITED_FOR
        || facts.version == ServerVersion::new(0, 0, 0);
    let is_majority = matches!(concern.get("w"), Ok(Some(RawBsonRef::String("majority"))));
    let is_said = !matches!(concern.get("j"), Ok(None));
    if waits || !is_majority || is_said {
        return concern;
    }
    let mut concern = concern;
    concern.append(cstr!("j"), true);
    concern
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::rawdoc;

    fn facts(topology: Topology, version: ServerVersion) -> ServerFacts {
        ServerFacts { version, topology, ..ServerFacts::null() }
    }

    #[test]
    fn the_journal_is_asked_for_where_nobody_else_does() {
        let old = facts(Topology::Standalone, ServerVersion::new(4, 4, 2));
        let asked = asked_for(rawdoc! { "w": "majority" }, &old);
        assert_eq!(asked, rawdoc! { "w": "majority", "j": true });
        for said in [rawdoc! { "w": "majority", "j": false }, rawdoc! { "w": 1_i64 }] {
            assert_eq!(asked_for(said.clone(), &old), said);
        }
        for facts in [
            facts(Topology::Standalone, ServerVersion::new(5, 0, 4)),
            facts(Topology::Standalone, ServerVersion::new(0, 0, 0)),
            facts(Topology::ReplicaSet, ServerVersion::new(4, 2, 6)),
        ] {
            let plain = rawdoc! { "w": "majority" };
            assert_eq!(asked_for(plain.clone(), &facts), plain);
        }
    }
}
