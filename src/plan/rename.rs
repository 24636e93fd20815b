//! The names under which collections are restored.

use std::collections::BTreeMap;

use crate::dump::filename;
use crate::error::{Error, ErrorKind};
use crate::namespace::Namespace;
use crate::namespace::pattern::Rename;

/// What each collection of a plan is called in the dump, and what on the target.
pub(super) type Destinations = BTreeMap<Namespace, Namespace>;

/// The name a collection gets: that of the last rule that applies, applied once.
pub(super) fn destination(source: &Namespace, rules: &[Rename]) -> Result<Namespace, Error> {
    let name = source.full();
    let Some(renamed) = rules.iter().rev().find_map(|rename| rename.apply(name)) else {
        return Ok(source.clone());
    };
    Namespace::parse(&renamed)
        .filter(|namespace| filename::is_database(namespace.database()))
        .ok_or_else(|| {
            let message = format!("it would be renamed to `{renamed}`, which is no full name");
            Error::new(ErrorKind::Plan, message)
                .of(source)
                .hint("a full name is that of a database, a dot and that of a collection")
        })
}

/// The names of all these collections, unless two of them would get the same one.
pub(super) fn destinations<'a>(
    sources: impl Iterator<Item = &'a Namespace>,
    renames: &[Rename],
) -> Result<Destinations, Error> {
    let mut taken: BTreeMap<Namespace, Vec<&Namespace>> = BTreeMap::new();
    let mut destinations = Destinations::new();
    for source in sources {
        let destination = destination(source, renames)?;
        taken.entry(destination.clone()).or_default().push(source);
        destinations.insert(source.clone(), destination);
    }
    let conflicts: Vec<String> = taken
        .iter()
        .filter(|(_, sources)| sources.len() > 1)
        .map(|(destination, sources)| {
            let sources: Vec<_> = sources.iter().map(|source| format!("`{source}`")).collect();
            format!("{} would all be restored to `{destination}`", sources.join(" and "))
        })
        .collect();
    if conflicts.is_empty() {
        return Ok(destinations);
    }
    Err(Error::new(ErrorKind::Plan, conflicts.join("; "))
        .hint("choose --ns-from and --ns-to so that each collection gets a name of its own"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rules(pairs: &[(&str, &str)]) -> Vec<Rename> {
        pairs.iter().map(|(from, to)| Rename::new(from, to).expect("a rule")).collect()
    }

    fn renamed(name: &str, pairs: &[(&str, &str)]) -> String {
        let source = Namespace::parse(name).expect("a name");
        destination(&source, &rules(pairs)).expect("a name").full().to_owned()
    }

    #[test]
    fn the_last_rule_that_applies_is_applied_once() {
        for (name, pairs, expected) in [
            ("a.x", &[][..], "a.x"),
            ("a.x", &[("a.*", "b.*")], "b.x"),
            ("a.x", &[("a.*", "b.*"), ("b.*", "c.*")], "b.x"),
            ("a.x", &[("a.*", "b.*"), ("a.x", "c.y")], "c.y"),
            ("a.x", &[("a.x", "c.y"), ("a.*", "b.*")], "b.x"),
            ("b.x", &[("a.*", "b.*"), ("b.*", "a.*")], "a.x"),
            ("a.x.y", &[("$d$.$c$", "$c$.$d$")], "x.y.a"),
        ] {
            assert_eq!(renamed(name, pairs), expected, "{name} {pairs:?}");
        }
    }

    #[test]
    fn a_name_that_cannot_be_is_refused() {
        let source = Namespace::new("a", "x");
        for to in ["nothing", ".x", "b.", "b c.x", "b/c.x"] {
            let error = destination(&source, &rules(&[("a.x", to)])).expect_err(to);
            assert!(error.to_string().starts_with("a.x: it would be renamed to"), "{error}");
        }
    }

    #[test]
    fn two_collections_cannot_get_one_name() {
        let sources =
            [Namespace::new("a", "x"), Namespace::new("a", "y"), Namespace::new("b", "x")];
        let conflict = |pairs: &[(&str, &str)]| {
            destinations(sources.iter(), &rules(pairs)).expect_err("a conflict").to_string()
        };
        assert_eq!(
            conflict(&[("a.x", "a.y")]),
            "`a.x` and `a.y` would all be restored to `a.y`",
            "a name that is kept counts as well"
        );
        assert_eq!(
            conflict(&[("a.*", "c.z*"), ("b.x", "c.zy")]),
            "`a.y` and `b.x` would all be restored to `c.zy`"
        );
        assert!(destinations(sources.iter(), &rules(&[("a.*", "b.*"), ("b.*", "a.*")])).is_ok());
    }

    proptest! {
        #[test]
        fn names_stay_apart_or_nothing_is_restored(
            names in prop::collection::btree_set("[ab]\\.[abc]{1,2}", 0..6),
            from in "[ab*]\\.[abc*]{1,2}",
            to in "[ab*]\\.[abc*]{1,2}",
        ) {
            let Ok(rule) = Rename::new(&from, &to) else { return Ok(()); };
            let sources: Vec<_> = names.iter().filter_map(|name| Namespace::parse(name)).collect();
            if let Ok(found) = destinations(sources.iter(), &[rule]) {
                let distinct: std::collections::BTreeSet<_> = found.values().collect();
                prop_assert_eq!(distinct.len(), sources.len());
            }
        }
    }
}
