//! Which full names are wanted: those that are included and not excluded.

use crate::namespace::Namespace;
use crate::namespace::pattern::NamespacePattern;

/// Which collections are wanted, by their names in the dump; all where nothing is said.
///
/// Time-series collections are judged by their own name, never by that of their buckets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamespaceFilter {
    /// A wanted name matches one of these; any name is wanted where there are none.
    pub includes: Vec<NamespacePattern>,
    /// A wanted name matches none of these.
    pub excludes: Vec<NamespacePattern>,
}

/// How a filter judges a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing<'a> {
    /// It is wanted.
    Wanted,
    /// No pattern includes it.
    NotIncluded,
    /// This pattern excludes it.
    Excluded(&'a NamespacePattern),
}

impl NamespaceFilter {
    /// Whether the collection is wanted.
    pub fn takes(&self, namespace: &Namespace) -> bool {
        self.judge(namespace) == Standing::Wanted
    }

    /// Whether and why not the collection is wanted; exclusion counts more than inclusion.
    pub fn judge(&self, namespace: &Namespace) -> Standing<'_> {
        let of_buckets = namespace.of_buckets();
        let name = of_buckets.as_ref().unwrap_or(namespace).full();
        if let Some(pattern) = self.excludes.iter().find(|pattern| pattern.matches(name)) {
            return Standing::Excluded(pattern);
        }
        let is_included =
            self.includes.is_empty() || self.includes.iter().any(|pattern| pattern.matches(name));
        if is_included { Standing::Wanted } else { Standing::NotIncluded }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(includes: &[&str], excludes: &[&str]) -> NamespaceFilter {
        let patterns = |texts: &[&str]| {
            texts.iter().map(|text| NamespacePattern::wildcards(text)).collect::<Vec<_>>()
        };
        NamespaceFilter { includes: patterns(includes), excludes: patterns(excludes) }
    }

    #[test]
    fn exclusion_counts_more_than_inclusion() {
        let orders = Namespace::new("shop", "orders");
        for (includes, excludes, expected) in [
            (&[][..], &[][..], true),
            (&["shop.*"], &[], true),
            (&["blog.*"], &[], false),
            (&["blog.*", "*.orders"], &[], true),
            (&["shop.*"], &["*.orders"], false),
            (&[], &["shop.customers"], true),
        ] {
            assert_eq!(filter(includes, excludes).takes(&orders), expected, "{includes:?}");
        }
    }

    #[test]
    fn buckets_are_judged_by_the_name_of_their_collection() {
        let buckets = Namespace::new("kitchen", "weather").buckets();
        assert!(filter(&["kitchen.weather"], &[]).takes(&buckets));
        assert!(!filter(&["kitchen.system.buckets.weather"], &[]).takes(&buckets));
        assert!(!filter(&[], &["*.weather"]).takes(&buckets));
    }
}
