//! A database and a collection name, and patterns over them.

pub mod filter;
pub mod pattern;

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// The prefix under which a server keeps the data of a time-series collection.
pub const BUCKETS_PREFIX: &str = "system.buckets.";

/// The name of a time-series collection where that of its buckets is given, else the same name.
///
/// Tools that took buckets for a collection of their own have put the prefix twice; it says no more
/// than once.
pub fn logical(collection: &str) -> &str {
    let mut name = collection;
    while let Some(rest) = name.strip_prefix(BUCKETS_PREFIX).filter(|rest| !rest.is_empty()) {
        name = rest;
    }
    name
}

/// The full name of a collection.
///
/// Clones share one text: a restore of very many collections knows each name in many places.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Namespace {
    full: Arc<str>,
    /// The bytes of the database's name, behind which comes the dot.
    database_bytes: usize,
}

impl Namespace {
    /// A namespace of the two names as they are; the server judges whether they are legal.
    pub fn new(database: impl AsRef<str>, collection: impl AsRef<str>) -> Self {
        let (database, collection) = (database.as_ref(), collection.as_ref());
        let full = format!("{database}.{collection}").into();
        Self { full, database_bytes: database.len() }
    }

    /// The database's name.
    pub fn database(&self) -> &str {
        &self.full[..self.database_bytes]
    }

    /// The collection's name, which may hold dots.
    pub fn collection(&self) -> &str {
        &self.full[self.database_bytes + 1..]
    }

    /// Where a server before 8.3 keeps the data of this time-series collection.
    #[must_use]
    pub fn buckets(&self) -> Self {
        Self::new(self.database(), format!("{BUCKETS_PREFIX}{}", self.collection()))
    }

    /// The time-series collection whose buckets this namespace holds, if it holds any.
    pub fn of_buckets(&self) -> Option<Self> {
        let logical = logical(self.collection());
        (logical != self.collection()).then(|| Self::new(self.database(), logical))
    }

    /// The full name as patterns see it: the two names with a dot between, nothing escaped.
    pub fn full(&self) -> &str {
        &self.full
    }

    /// Takes a full name apart at its first dot; nothing where one of the two names is missing.
    pub fn parse(full: &str) -> Option<Self> {
        let (database, collection) = full.split_once('.')?;
        let is_whole = !database.is_empty() && !collection.is_empty();
        is_whole.then(|| Self::new(database, collection))
    }

    /// Whether the collection belongs to the server rather than to a user.
    pub fn is_system(&self) -> bool {
        self.collection().starts_with("system.")
    }
}

impl Ord for Namespace {
    /// By the database first.
    fn cmp(&self, other: &Self) -> Ordering {
        (self.database(), self.collection()).cmp(&(other.database(), other.collection()))
    }
}

impl PartialOrd for Namespace {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Namespace {
    /// Writes `database.collection`, with control characters escaped so that one name is one line.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for character in self.full.chars() {
            if character.is_control() {
                write!(out, "{}", character.escape_default())?;
            } else {
                write!(out, "{character}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_name_is_shown_on_one_line() {
        assert_eq!(Namespace::new("odd", "new\nline").to_string(), "odd.new\\nline");
        assert_eq!(Namespace::new("odd", "日本").to_string(), "odd.日本");
    }

    #[test]
    fn buckets_and_their_collection_lead_to_each_other() {
        let weather = Namespace::new("kitchen", "weather");
        assert_eq!(weather.buckets().collection(), "system.buckets.weather");
        assert_eq!(weather.buckets().of_buckets(), Some(weather.clone()));
        assert_eq!(weather.buckets().buckets().of_buckets(), Some(weather.clone()));
        assert_eq!(weather.of_buckets(), None);
        assert!(weather.buckets().is_system());
    }

    #[test]
    fn names_are_in_the_order_of_their_databases_first() {
        let [a, a_b] = [Namespace::new("a", "x"), Namespace::new("a-b", "x")];
        assert!(a < a_b && a.full() > a_b.full());
        assert_ne!(Namespace::new("a.b", "c"), Namespace::new("a", "b.c"));
    }

    #[test]
    fn a_full_name_is_taken_apart_at_its_first_dot() {
        let namespace = Namespace::parse("shop.orders.old").expect("a name");
        assert_eq!((namespace.database(), namespace.collection()), ("shop", "orders.old"));
        assert_eq!(namespace.full(), "shop.orders.old");
        for name in ["shop", ".orders", "shop.", ""] {
            assert_eq!(Namespace::parse(name), None, "{name}");
        }
    }

    proptest! {
        #[test]
        fn any_name_is_one_line_and_buckets_lead_back(
            database in "[^\\x00.]{1,20}",
            collection in "\\PC{0,3}[^\\x00]{1,30}",
        ) {
            prop_assume!(logical(&collection) == collection);
            let namespace = Namespace::new(&database, &collection);
            prop_assert_eq!(namespace.database(), &database);
            prop_assert_eq!(namespace.collection(), &collection);
            prop_assert!(!namespace.to_string().contains(char::is_control));
            prop_assert_eq!(namespace.buckets().of_buckets(), Some(namespace.clone()));
            prop_assert!(namespace.buckets().is_system());
        }
    }
}
