//! A database and a collection name, and patterns over them.

pub mod pattern;

use std::fmt;

/// The prefix under which a server keeps the data of a time-series collection.
pub const BUCKETS_PREFIX: &str = "system.buckets.";

/// The full name of a collection.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Namespace {
    database: String,
    collection: String,
}

impl Namespace {
    /// A namespace of the two names as they are; the server judges whether they are legal.
    pub fn new(database: impl Into<String>, collection: impl Into<String>) -> Self {
        Self { database: database.into(), collection: collection.into() }
    }

    /// The database's name.
    pub fn database(&self) -> &str {
        &self.database
    }

    /// The collection's name, which may hold dots.
    pub fn collection(&self) -> &str {
        &self.collection
    }

    /// Where a server before 8.3 keeps the data of this time-series collection.
    #[must_use]
    pub fn buckets(&self) -> Self {
        Self::new(&self.database, format!("{BUCKETS_PREFIX}{}", self.collection))
    }

    /// The time-series collection whose buckets this namespace holds, if it holds any.
    pub fn of_buckets(&self) -> Option<Self> {
        let logical = self.collection.strip_prefix(BUCKETS_PREFIX)?;
        Some(Self::new(&self.database, logical))
    }

    /// Whether the collection belongs to the server rather than to a user.
    pub fn is_system(&self) -> bool {
        self.collection.starts_with("system.")
    }
}

impl fmt::Display for Namespace {
    /// Writes `database.collection`, with control characters escaped so that one name is one line.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for character in self.database.chars().chain(['.']).chain(self.collection.chars()) {
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
        assert_eq!(weather.of_buckets(), None);
        assert!(weather.buckets().is_system());
    }

    proptest! {
        #[test]
        fn any_name_is_one_line_and_buckets_lead_back(
            database in "[^\\x00.]{1,20}",
            collection in "\\PC{0,3}[^\\x00]{1,30}",
        ) {
            let namespace = Namespace::new(&database, &collection);
            prop_assert_eq!(namespace.database(), &database);
            prop_assert_eq!(namespace.collection(), &collection);
            prop_assert!(!namespace.to_string().contains(char::is_control));
            prop_assert_eq!(namespace.buckets().of_buckets(), Some(namespace.clone()));
            prop_assert!(namespace.buckets().is_system());
        }
    }
}
