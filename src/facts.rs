//! What a server is and can do, as far as a plan depends on it.

pub mod conditions;
pub mod privileges;

/// A server's version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ServerVersion {
    /// The major version.
    pub major: u32,
    /// The minor version.
    pub minor: u32,
    /// The patch level.
    pub patch: u32,
}

impl ServerVersion {
    /// A version of its three numbers.
    pub const fn new(major: u32, minor: u32, patch: u32) -> Self {
        Self { major, minor, patch }
    }

    /// Reads `6.0.5`, also with a suffix such as `-rc1`; nothing where it is not a version.
    pub fn parse(text: &str) -> Option<Self> {
        let end = text.find(['-', '+']).unwrap_or(text.len());
        let mut numbers = text[..end].split('.').map(str::parse);
        let version =
            Self::new(numbers.next()?.ok()?, numbers.next()?.ok()?, numbers.next()?.ok()?);
        numbers.next().is_none().then_some(version)
    }
}

impl std::fmt::Display for ServerVersion {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

/// What runs at the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topology {
    /// One server without replication.
    Standalone,
    /// A replica set.
    ReplicaSet,
    /// A router of a sharded cluster.
    Sharded,
    /// Nothing: documents are counted and thrown away.
    Null,
}

/// What a server is, apart from what it says its version is: several speak MongoDB's protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Product {
    /// MongoDB itself.
    MongoDb,
    /// MongoDB behind the proxy of Atlas' shared clusters.
    AtlasProxy,
    /// Amazon `DocumentDB`.
    DocumentDb,
    /// Azure Cosmos DB with request units.
    CosmosDb,
    /// The `DocumentDB` engine on `PostgreSQL`: Azure's vCore clusters and others.
    DocumentDbEngine,
    /// `FerretDB`.
    FerretDb,
}

impl Product {
    /// Its name for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::MongoDb => "MongoDB",
            Self::AtlasProxy => "MongoDB Atlas, shared",
            Self::DocumentDb => "Amazon DocumentDB",
            Self::CosmosDb => "Azure Cosmos DB",
            Self::DocumentDbEngine => "DocumentDB on PostgreSQL",
            Self::FerretDb => "FerretDB",
        }
    }

    /// Whether the server is MongoDB's own, so that its version says what it can do.
    pub fn is_mongodb(self) -> bool {
        matches!(self, Self::MongoDb | Self::AtlasProxy)
    }
}

/// What is asked of a server before a plan is made.
#[derive(Clone, Debug)]
pub struct ServerFacts {
    /// Its version.
    pub version: ServerVersion,
    /// How it is deployed.
    pub topology: Topology,
    /// What it is.
    pub product: Product,
    /// By what it is known again: the name of its replica set, else its addresses.
    pub identity: String,
    /// The collections it holds already, per database of the dump.
    pub existing: Vec<ExistingCollection>,
}

/// What is asked of the collections that are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExistingDetail {
    /// Names and kinds.
    Names,
    /// Their UUIDs as well, for which the user needs the right to list a whole database.
    Uuids,
}

/// A collection that is there before the restore.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExistingCollection {
    /// Its full name.
    pub namespace: crate::namespace::Namespace,
    /// The server's word for its kind: `collection`, `view` or `timeseries`.
    pub kind: String,
    /// Its UUID, where it was asked for.
    pub uuid: Option<bson::Uuid>,
}

impl ServerFacts {
    /// The facts of the target that throws everything away.
    pub fn null() -> Self {
        Self {
            version: ServerVersion::new(99, 0, 0),
            topology: Topology::Null,
            product: Product::MongoDb,
            identity: "nowhere".to_owned(),
            existing: Vec::new(),
        }
    }

    /// Whether an insert can keep a top-level `Timestamp(0, 0)` as it is
    /// (`bypassEmptyTsReplacement`: 8.0, and from 7.0.13, 6.0.17 and 5.0.29).
    pub fn keeps_zero_timestamps(&self) -> bool {
        if !self.product.is_mongodb() {
            return false;
        }
        let version = self.version;
        match (version.major, version.minor) {
            (5, 0) => version.patch >= 29,
            (6, 0) => version.patch >= 17,
            (7, 0) => version.patch >= 13,
            (major, _) => major >= 8,
        }
    }

    /// Whether `createIndexes` takes `commitQuorum` (4.3.4, on members of replica sets).
    pub fn takes_commit_quorum(&self) -> bool {
        matches!(self.topology, Topology::ReplicaSet | Topology::Sharded)
            && self.version >= ServerVersion::new(4, 4, 0)
    }

    /// Whether `createIndexes` takes `ignoreUnknownIndexOptions` (4.1.9).
    pub fn ignores_unknown_index_options(&self) -> bool {
        self.product.is_mongodb() && self.version >= ServerVersion::new(4, 1, 9)
    }
}

impl ServerFacts {
    /// Whether a collection can be created with a UUID that is given (`applyOps` with `ui`).
    pub fn takes_uuids(&self) -> bool {
        self.product == Product::MongoDb && self.topology != Topology::Sharded
    }

    /// Whether users and roles can be merged (`_mergeAuthzCollections`).
    pub fn merges_users(&self) -> bool {
        self.product == Product::MongoDb
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_alike_is_not_judged_by_the_version_it_claims() {
        let real = ServerFacts::null();
        let claimed = ServerFacts { product: Product::FerretDb, ..ServerFacts::null() };
        assert!(real.keeps_zero_timestamps() && real.ignores_unknown_index_options());
        assert!(!claimed.keeps_zero_timestamps() && !claimed.ignores_unknown_index_options());
        assert!(real.merges_users() && !claimed.merges_users());
        assert!(real.takes_uuids() && !claimed.takes_uuids());
    }

    fn keeps(text: &str) -> bool {
        let version = ServerVersion::parse(text).expect("a version");
        ServerFacts { version, ..ServerFacts::null() }.keeps_zero_timestamps()
    }

    #[test]
    fn versions_are_read_with_their_suffixes() {
        assert_eq!(ServerVersion::parse("6.0.5"), Some(ServerVersion::new(6, 0, 5)));
        assert_eq!(ServerVersion::parse("8.0.0-rc1"), Some(ServerVersion::new(8, 0, 0)));
        assert_eq!(ServerVersion::parse("6.0"), None);
        assert_eq!(ServerVersion::parse("6.0.5.1"), None);
        assert_eq!(ServerVersion::parse("unknown"), None);
    }

    #[test]
    fn zero_timestamps_are_kept_from_the_first_patch_that_can() {
        for (text, expected) in [
            ("4.4.29", false),
            ("5.0.28", false),
            ("5.0.29", true),
            ("6.0.5", false),
            ("6.0.17", true),
            ("6.3.2", false),
            ("7.0.12", false),
            ("7.0.13", true),
            ("8.0.0", true),
        ] {
            assert_eq!(keeps(text), expected, "{text}");
        }
    }
}
