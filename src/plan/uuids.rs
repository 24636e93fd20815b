//! Which collections keep the UUID they had when they were dumped.

use std::collections::BTreeMap;

use bson::Uuid;

use crate::dump::inventory::{CollectionKind, DumpEntry};
use crate::error::{Error, ErrorKind};
use crate::facts::{ServerFacts, Topology};
use crate::namespace::Namespace;

/// Whether collections keep their UUIDs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UuidPolicy {
    /// The server gives them new ones.
    #[default]
    New,
    /// They are created with the UUIDs that the dump has.
    Preserve,
}

impl UuidPolicy {
    /// Refuses to keep UUIDs where no server lets anyone choose them.
    pub fn check(self, facts: &ServerFacts) -> Result<(), Error> {
        if self == Self::New || facts.topology != Topology::Sharded {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::Plan,
            "a sharded cluster gives collections their UUIDs itself; --preserve-uuid needs a \
             replica set or a single server",
        )
        .hint("restore without --preserve-uuid, or into each shard on its own"))
    }
}

/// The UUIDs that are taken, each by the collection that has it or will have it.
pub(super) struct Taken {
    owners: BTreeMap<[u8; 16], Namespace>,
}

impl Taken {
    /// Those of the collections that are there.
    pub(super) fn by_existing(facts: &ServerFacts) -> Self {
        let owned = |there: &crate::facts::ExistingCollection| {
            Some((there.uuid?.bytes(), there.namespace.clone()))
        };
        Self { owners: facts.existing.iter().filter_map(owned).collect() }
    }

    /// The UUID that a collection is created with, none where it gets a new one, which is noted.
    ///
    /// A server that is told to create a collection with a UUID that another one has renames that
    /// other collection, data and all. So this is refused, also where the other one is to be
    /// dropped, since nothing says which comes first.
    pub(super) fn choose(
        &mut self,
        entry: &DumpEntry,
        destination: &Namespace,
        notes: &mut Vec<String>,
    ) -> Result<Option<Uuid>, String> {
        let dumped = entry.metadata.as_ref().and_then(|metadata| metadata.uuid.as_deref());
        let reason = match (entry.kind, dumped) {
            (CollectionKind::View, _) => return Ok(None),
            (CollectionKind::TimeSeries, _) => "a time-series collection cannot keep its UUID",
            (CollectionKind::Collection, None) => "the dump does not tell its UUID",
            (CollectionKind::Collection, Some(text)) => match Uuid::parse_str(text) {
                Ok(uuid) => return self.take(uuid, destination).map(Some),
                Err(_) => "what the dump has for its UUID is none",
            },
        };
        notes.push(format!("{reason}; it gets a new one"));
        Ok(None)
    }

    fn take(&mut self, uuid: Uuid, destination: &Namespace) -> Result<Uuid, String> {
        let owner = self.owners.entry(uuid.bytes()).or_insert_with(|| destination.clone());
        if owner == destination {
            return Ok(uuid);
        }
        Err(format!(
            "its UUID {uuid} belongs to `{owner}`, which the server would rename to this name; \
             drop that collection first, or restore without --preserve-uuid"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dump::metadata::CollectionMetadata;
    use crate::facts::ExistingCollection;
    use crate::plan::tests::entry;

    const UUID: &str = "00112233445566778899aabbccddeeff";

    fn with_uuid(name: &str, kind: CollectionKind, uuid: Option<&str>) -> DumpEntry {
        let uuid = uuid.map(str::to_owned);
        let metadata = Some(CollectionMetadata { uuid, ..CollectionMetadata::default() });
        DumpEntry { metadata, ..entry(name, kind, 1) }
    }

    fn choose(taken: &mut Taken, entry: &DumpEntry) -> (Result<Option<Uuid>, String>, Vec<String>) {
        let mut notes = Vec::new();
        (taken.choose(entry, &entry.namespace, &mut notes), notes)
    }

    #[test]
    fn a_uuid_is_kept_where_there_is_one_and_it_can_be() {
        let mut taken = Taken::by_existing(&ServerFacts::null());
        let expected = Uuid::parse_str(UUID).expect("a UUID");
        let orders = with_uuid("orders", CollectionKind::Collection, Some(UUID));
        assert_eq!(choose(&mut taken, &orders), (Ok(Some(expected)), vec![]));
        for (kind, uuid, notes) in [
            (CollectionKind::Collection, None, 1),
            (CollectionKind::Collection, Some("no hex"), 1),
            (CollectionKind::TimeSeries, Some(UUID), 1),
            (CollectionKind::View, None, 0),
        ] {
            let (chosen, noted) = choose(&mut taken, &with_uuid("other", kind, uuid));
            assert_eq!((chosen, noted.len()), (Ok(None), notes), "{kind:?} {uuid:?}");
        }
    }

    #[test]
    fn a_uuid_that_another_collection_has_is_refused() {
        let existing = vec![ExistingCollection {
            namespace: Namespace::new("shop", "live"),
            kind: "collection".into(),
            uuid: Uuid::parse_str(UUID).ok(),
        }];
        let mut taken = Taken::by_existing(&ServerFacts { existing, ..ServerFacts::null() });
        let orders = with_uuid("orders", CollectionKind::Collection, Some(UUID));
        let (chosen, _) = choose(&mut taken, &orders);
        assert!(chosen.expect_err("taken").contains("belongs to `shop.live`"));
        let live = with_uuid("live", CollectionKind::Collection, Some(UUID));
        assert!(choose(&mut taken, &live).0.is_ok(), "its own");
    }

    #[test]
    fn two_collections_of_a_dump_cannot_have_one_uuid() {
        let mut taken = Taken::by_existing(&ServerFacts::null());
        let kind = CollectionKind::Collection;
        assert!(choose(&mut taken, &with_uuid("a", kind, Some(UUID))).0.is_ok());
        assert!(choose(&mut taken, &with_uuid("b", kind, Some(UUID))).0.is_err());
    }

    #[test]
    fn a_router_is_refused() {
        let facts = ServerFacts { topology: Topology::Sharded, ..ServerFacts::null() };
        assert!(UuidPolicy::Preserve.check(&facts).is_err());
        assert!(UuidPolicy::New.check(&facts).is_ok());
        assert!(UuidPolicy::Preserve.check(&ServerFacts::null()).is_ok());
    }
}
