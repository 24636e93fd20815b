//! Which collections of a dump are restored, and under which names.

use std::collections::{BTreeMap, BTreeSet};

use crate::dump::inventory::Inventory;
use crate::error::{Error, ErrorKind};
use crate::namespace::filter::{NamespaceFilter, Standing};
use crate::namespace::pattern::{NamespacePattern, Rename};
use crate::namespace::{BUCKETS_PREFIX, Namespace};
use crate::plan::Skipped;
use crate::plan::rename::{self, Destinations};

/// Names listed where many are meant; more do not help.
const NAMES_SHOWN: usize = 8;

/// The share of a pattern's letters that may differ for a name to be called near.
const NEAR: f64 = 0.5;

/// Which collections are restored, and under which names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// Which are restored, by their names in the dump.
    pub filter: NamespaceFilter,
    /// What they are called on the target; of the rules that apply to a name the last one counts.
    pub renames: Vec<Rename>,
}

impl Names {
    /// Refuses a selection that matches nothing and renames that cannot be, before a server is
    /// asked anything.
    pub fn check(&self, inventory: &Inventory) -> Result<(), Error> {
        let known = known(inventory);
        if !known.is_empty() && !known.iter().any(|namespace| self.filter.takes(namespace)) {
            return Err(self.nothing_selected(&known));
        }
        self.destinations(inventory).map(drop)
    }

    /// The databases that are restored to.
    pub fn databases(&self, inventory: &Inventory) -> BTreeSet<String> {
        let wanted = inventory.entries.iter().filter(|entry| self.filter.takes(&entry.namespace));
        wanted
            .filter_map(|entry| rename::destination(&entry.namespace, &self.renames).ok())
            .map(|destination| destination.database().to_owned())
            .collect()
    }

    /// What each collection that is restored is called on the target.
    pub(super) fn destinations(&self, inventory: &Inventory) -> Result<Destinations, Error> {
        let names = inventory.entries.iter().map(|entry| &entry.namespace);
        rename::destinations(names.filter(|name| self.filter.takes(name)), &self.renames)
    }

    /// What the filter leaves out, by the reason, and patterns that match nothing.
    pub(super) fn left_out(&self, inventory: &Inventory) -> Vec<Skipped> {
        let known = known(inventory);
        let mut reasons: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for namespace in &known {
            let reason = match self.filter.judge(namespace) {
                Standing::Wanted => continue,
                Standing::NotIncluded => "not included".to_owned(),
                Standing::Excluded(pattern) => format!("excluded by `{}`", pattern.text()),
            };
            reasons.entry(reason).or_default().push(namespace.to_string());
        }
        let mut skipped: Vec<_> =
            reasons.into_iter().map(|(reason, names)| note(shown(&names), reason)).collect();
        let excludes = self.filter.excludes.iter().map(|pattern| ("exclude", pattern));
        let includes = self.filter.includes.iter().map(|pattern| ("include", pattern));
        let renames = self.renames.iter().map(|rename| ("rename", rename.from()));
        for (what, pattern) in includes.chain(excludes).chain(renames) {
            if !known.iter().any(|namespace| pattern.matches(namespace.full())) {
                let near = nearest(pattern, &known)
                    .map(|name| format!("; did you mean `{name}`?"))
                    .unwrap_or_default();
                let reason = format!("matches no collection of the dump{near}");
                skipped.push(note(format!("{what} `{}`", pattern.text()), reason));
            }
        }
        skipped
    }

    fn nothing_selected(&self, known: &[&Namespace]) -> Error {
        let is_excluded =
            |namespace: &&&Namespace| matches!(self.filter.judge(namespace), Standing::Excluded(_));
        let excluded = known.iter().filter(is_excluded).count();
        let of = match known.len() {
            1 => "the only collection of the dump is".to_owned(),
            several => format!("of the {several} collections of the dump, none is"),
        };
        let why = match (known.len() - excluded, excluded) {
            (_, 0) => "no --ns-include matches one".to_owned(),
            (0, _) => "--ns-exclude matches all of them".to_owned(),
            _ => "those that --ns-include matches are excluded as well".to_owned(),
        };
        let error = Error::new(
            ErrorKind::Plan,
            if known.len() == 1 {
                format!("{of} not selected")
            } else {
                format!("{of} selected: {why}")
            },
        );
        let mut near: Vec<String> = Vec::new();
        for name in self.filter.includes.iter().filter_map(|pattern| nearest(pattern, known)) {
            let name = format!("`{name}`");
            if !near.contains(&name) {
                near.push(name);
            }
        }
        if near.is_empty() {
            let names: Vec<_> = known.iter().map(ToString::to_string).collect();
            error.hint(format!("the dump holds {}", shown(&names)))
        } else {
            error.hint(format!("did you mean {}?", near.join(" or ")))
        }
    }
}

/// The names of all collections of the dump, those that its listing left out included.
fn known(inventory: &Inventory) -> Vec<&Namespace> {
    let entries = inventory.entries.iter().map(|entry| &entry.namespace);
    let names: BTreeSet<_> = entries.chain(&inventory.left_out).collect();
    names.into_iter().collect()
}

/// The name that is nearest to what a pattern says, where one is near.
fn nearest<'a>(pattern: &NamespacePattern, known: &[&'a Namespace]) -> Option<&'a Namespace> {
    // Whoever names buckets means their collection.
    let wanted = pattern.text().replace(BUCKETS_PREFIX, "").to_lowercase();
    let (distance, name) = known
        .iter()
        .map(|&name| (strsim::levenshtein(&wanted, &name.full().to_lowercase()), name))
        .min_by_key(|(distance, _)| *distance)?;
    #[expect(clippy::cast_precision_loss, reason = "names are short")]
    let is_near = distance as f64 <= wanted.chars().count() as f64 * NEAR;
    is_near.then_some(name)
}

fn note(what: String, reason: String) -> Skipped {
    Skipped { what, reason, is_problem: false }
}

/// The first few of some names.
fn shown(names: &[String]) -> String {
    let more = names.len().saturating_sub(NAMES_SHOWN);
    let first = names.iter().take(NAMES_SHOWN).cloned().collect::<Vec<_>>().join(", ");
    if more > 0 { format!("{first} and {more} more") } else { first }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dump::inventory::CollectionKind;
    use crate::plan::tests::entry;

    fn dump() -> Inventory {
        let entries =
            ["customers", "orders"].map(|name| entry(name, CollectionKind::Collection, 1));
        Inventory { entries: entries.into(), ..Inventory::default() }
    }

    fn names(includes: &[&str], excludes: &[&str]) -> Names {
        let patterns = |texts: &[&str]| {
            texts.iter().map(|text| NamespacePattern::wildcards(text)).collect::<Vec<_>>()
        };
        let filter = NamespaceFilter { includes: patterns(includes), excludes: patterns(excludes) };
        Names { filter, renames: Vec::new() }
    }

    #[test]
    fn a_selection_that_matches_nothing_names_the_nearest() {
        let error = names(&["shop.order"], &[]).check(&dump()).expect_err("nothing");
        assert_eq!(
            error.to_string(),
            "of the 2 collections of the dump, none is selected: no --ns-include matches one"
        );
        assert_eq!(error.hint_text(), Some("did you mean `shop.orders`?"));
        let error = names(&["nowhere.at.all.*"], &[]).check(&dump()).expect_err("nothing");
        assert_eq!(error.hint_text(), Some("the dump holds shop.customers, shop.orders"));
        let error = names(&[], &["*"]).check(&dump()).expect_err("nothing");
        assert!(error.to_string().ends_with("--ns-exclude matches all of them"), "{error}");
        assert!(names(&["shop.orders"], &["*.x"]).check(&dump()).is_ok());
        assert!(names(&["x"], &[]).check(&Inventory::default()).is_ok(), "nothing to select from");
    }

    #[test]
    fn names_left_out_by_the_listing_are_known() {
        let left_out = vec![Namespace::new("shop", "carts")];
        let inventory = Inventory { left_out, ..Inventory::default() };
        let error = names(&["shop.cart"], &[]).check(&inventory).expect_err("nothing");
        assert_eq!(error.hint_text(), Some("did you mean `shop.carts`?"));
    }

    #[test]
    fn what_is_left_out_is_told_by_reason_and_idle_patterns_are_told() {
        let mut names = names(&["shop.*", "shop.ordrs"], &["*.customers"]);
        names.renames = vec![Rename::new("blog.*", "b.*").expect("a rule")];
        let told: Vec<_> = names
            .left_out(&dump())
            .into_iter()
            .map(|skipped| format!("{}: {}", skipped.what, skipped.reason))
            .collect();
        assert_eq!(
            told,
            [
                "shop.customers: excluded by `*.customers`",
                "include `shop.ordrs`: matches no collection of the dump; did you mean \
                 `shop.orders`?",
                "rename `blog.*`: matches no collection of the dump",
            ]
        );
    }
}
