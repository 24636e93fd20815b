//! Tells the collections that belong to a server rather than to its users.

use crate::namespace::Namespace;

const SERVERS_OWN: &str = "belongs to the server it was dumped from";

/// Why a collection of a dump is not restored though nothing is wrong with it; nothing for the
/// collections that users own. Time-series collections are named without the prefix of their
/// buckets.
pub(crate) fn reason_to_skip(namespace: &Namespace) -> Option<&'static str> {
    let collection = namespace.collection();
    if collection.starts_with("$admin.system.") {
        return Some(SERVERS_OWN);
    }
    match (namespace.database(), collection) {
        (_, "system.profile") => Some("records of the profiler, which a server keeps itself"),
        (_, "system.indexes") => Some("indexes are restored from metadata files"),
        (_, "system.views") => Some("views are restored from metadata files"),
        ("admin", name) if name.starts_with("system.") => Some(SERVERS_OWN),
        ("config", _) => Some("belongs to the cluster it was dumped from"),
        ("local", name) if is_local_state(name) => Some(SERVERS_OWN),
        _ => None,
    }
}

fn is_local_state(collection: &str) -> bool {
    matches!(collection, "startup_log" | "me" | "clustermanager")
        || ["oplog.", "replset.", "system."].iter().any(|prefix| collection.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_skipped(database: &str, collection: &str) -> bool {
        reason_to_skip(&Namespace::new(database, collection)).is_some()
    }

    #[test]
    fn what_a_server_owns_is_skipped() {
        for (database, collection) in [
            ("shop", "system.profile"),
            ("shop", "system.indexes"),
            ("shop", "system.views"),
            ("admin", "system.version"),
            ("admin", "system.keys"),
            ("config", "chunks"),
            ("local", "oplog.rs.old"),
            ("local", "oplog.$main"),
            ("local", "startup_log"),
            ("local", "replset.minvalid"),
            ("local", "system.replset"),
        ] {
            assert!(is_skipped(database, collection), "{database}.{collection}");
        }
    }

    #[test]
    fn what_users_own_is_not() {
        for (database, collection) in [
            ("shop", "system.js"),
            ("shop", "system_like"),
            ("shop", "startup_log"),
            ("admin", "notes"),
            ("local", "mine"),
            ("local", "oplog"),
            ("shop", "oplog.rs"),
        ] {
            assert!(!is_skipped(database, collection), "{database}.{collection}");
        }
    }
}
