//! What a server must be to have a collection at all: its version, and the name it allows.

use bson::Document;

use crate::dump::filename;
use crate::dump::inventory::CollectionKind;
use crate::facts::{ServerFacts, ServerVersion, Topology};
use crate::namespace::Namespace;

/// Options and the first version that takes them; an older server refuses the collection.
const SINCE: [(&str, ServerVersion); 4] = [
    ("timeseries", ServerVersion::new(5, 0, 0)),
    ("clusteredIndex", ServerVersion::new(5, 3, 0)),
    ("changeStreamPreAndPostImages", ServerVersion::new(6, 0, 0)),
    ("encryptedFields", ServerVersion::new(6, 0, 0)),
];

/// From this version on a full name has 255 bytes, before it 120 (`MaxNsCollectionLen`).
const WITH_LONG_NAMES: ServerVersion = ServerVersion::new(4, 4, 0);

/// Why a server of this version cannot create a collection with these options, if it cannot.
pub(super) fn missing(
    kind: CollectionKind,
    options: &Document,
    facts: &ServerFacts,
) -> Option<String> {
    if !is_judged(facts) {
        return None;
    }
    let is_asked = |option: &str| {
        options.contains_key(option)
            || (option == "timeseries" && kind == CollectionKind::TimeSeries)
    };
    let (option, since) =
        SINCE.iter().find(|(option, since)| facts.version < *since && is_asked(option))?;
    let (major, minor, version) = (since.major, since.minor, facts.version);
    Some(format!(
        "the option `{option}` is known to servers from {major}.{minor} on, and this one is \
         {version}"
    ))
}

/// Why no server, or not this one, can have a collection of this name, if it cannot. `data` is
/// where its documents are kept.
pub(super) fn illegal(
    namespace: &Namespace,
    data: &Namespace,
    facts: &ServerFacts,
) -> Option<String> {
    if !is_judged(facts) {
        return None;
    }
    let collection = namespace.collection();
    if !filename::is_database(namespace.database()) {
        return Some(
            "no database can have this name: it is empty, longer than 63 bytes, or holds one of \
             / \\ . \" $, a space or a zero"
                .to_owned(),
        );
    }
    let fault = match collection {
        "" => Some("it is empty"),
        name if name.starts_with('.') => Some("it begins with a dot"),
        name if name.contains('$') => Some("it holds a dollar"),
        name if name.contains('\0') => Some("it holds a zero"),
        _ => None,
    };
    if let Some(fault) = fault {
        return Some(format!(
            "no collection can have this name: {fault}; --ns-from and --ns-to give it another one"
        ));
    }
    let (bytes, bytes_max) = (data.full().len(), name_bytes_max(facts.version));
    (bytes > bytes_max).then(|| {
        format!(
            "its name is too long: it has {bytes} bytes with that of its database, and servers {} \
             allow {bytes_max}; --ns-from and --ns-to give it another one",
            if bytes_max < 255 { "before 4.4" } else { "of any version" }
        )
    })
}

fn name_bytes_max(version: ServerVersion) -> usize {
    if version < WITH_LONG_NAMES { 120 } else { 255 }
}

/// Others than MongoDB have rules of their own.
fn is_judged(facts: &ServerFacts) -> bool {
    facts.product.is_mongodb()
        && facts.topology != Topology::Null
        && facts.version > ServerVersion::new(0, 0, 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::Product;
    use bson::doc;

    fn facts(version: &str) -> ServerFacts {
        let version = ServerVersion::parse(version).expect("a version");
        ServerFacts { version, topology: Topology::Standalone, ..ServerFacts::null() }
    }

    fn is_illegal(database: &str, collection: &str, facts: &ServerFacts) -> bool {
        let namespace = Namespace::new(database, collection);
        illegal(&namespace, &namespace, facts).is_some()
    }

    /// As servers of 4.2.6 and 6.0.5 answered to `create`.
    #[test]
    fn names_are_judged_as_the_server_does() {
        let new = facts("6.0.5");
        for (database, collection, expected) in [
            ("t", "a.", false),
            ("t", "a..b", false),
            ("t", " ", false),
            ("t", "a\"b/c", false),
            ("t", "", true),
            ("t", ".a", true),
            ("t", "a$b", true),
            ("t", "oplog.$main", true),
            ("t", "a\0b", true),
            ("a*<|:?", "c", false),
            ("", "c", true),
            ("a.b", "c", true),
            ("a b", "c", true),
            ("a\\b", "c", true),
            ("$external", "c", true),
        ] {
            assert_eq!(is_illegal(database, collection, &new), expected, "{database}.{collection}");
        }
        let long = |bytes: usize| "x".repeat(bytes);
        for (version, bytes, expected) in [
            ("4.2.6", 118, false),
            ("4.2.6", 119, true),
            ("4.4.0", 253, false),
            ("6.0.5", 254, true),
        ] {
            assert_eq!(
                is_illegal("t", &long(bytes), &facts(version)),
                expected,
                "{version} {bytes}"
            );
        }
        assert!(is_illegal(&long(64), "c", &new) && !is_illegal(&long(63), "c", &new));
        assert!(!is_illegal("t", ".a", &ServerFacts::null()));
    }

    #[test]
    fn an_option_that_a_server_does_not_know_is_told_with_the_version_that_does() {
        let options = doc! { "timeseries": { "timeField": "t" } };
        let missing = |kind, version: &str| missing(kind, &options, &facts(version));
        let told = missing(CollectionKind::TimeSeries, "4.4.2").expect("missing");
        assert_eq!(
            told,
            "the option `timeseries` is known to servers from 5.0 on, and this one is 4.4.2"
        );
        assert_eq!(missing(CollectionKind::TimeSeries, "5.0.4"), None);
        let clustered = doc! { "clusteredIndex": {} };
        let kind = CollectionKind::Collection;
        assert!(super::missing(kind, &clustered, &facts("5.0.4")).is_some());
        let other = ServerFacts { product: Product::FerretDb, ..facts("4.4.2") };
        assert!(super::missing(kind, &clustered, &other).is_none());
    }
}
