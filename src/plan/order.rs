//! The order in which collections are read.

use std::cmp::Reverse;
use std::collections::HashSet;

use crate::dump::inventory::{CollectionKind, Origin};
use crate::plan::CollectionPlan;

/// The order in which collections are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// By the size of the data file, so that the longest is not begun last.
    LargestFirst,
    /// As the dump lists them.
    AsListed,
}

/// Brings collections into the order, and views behind them, each after the one it is on.
pub(super) fn arrange(collections: &mut Vec<CollectionPlan>, order: Order) {
    let is_view = |plan: &mut CollectionPlan| plan.kind == CollectionKind::View;
    let views = collections.extract_if(.., is_view).collect();
    if order == Order::LargestFirst {
        // A stable sort, so that equal sizes stay in the order of their names; it needs no room for
        // plans, which are large.
        collections.sort_by_cached_key(|plan| Reverse(plan.data.as_ref().and_then(Origin::bytes)));
    }
    collections.extend(sources_first(views));
}

/// Views on views come after their sources; a circle is left in the order it was found in, and
/// the server says what is wrong with it.
fn sources_first(mut views: Vec<CollectionPlan>) -> Vec<CollectionPlan> {
    let mut arranged = Vec::with_capacity(views.len());
    while !views.is_empty() {
        let waiting: HashSet<_> = views.iter().map(|view| view.namespace.clone()).collect();
        let (ready, blocked): (Vec<_>, Vec<_>) = views.into_iter().partition(|view| {
            let source = view.options.get_str("viewOn").unwrap_or_default();
            !waiting.contains(&crate::namespace::Namespace::new(view.namespace.database(), source))
        });
        if ready.is_empty() {
            arranged.extend(blocked);
            break;
        }
        arranged.extend(ready);
        views = blocked;
    }
    arranged
}

#[cfg(test)]
mod tests {
    use crate::dump::inventory::{CollectionKind, DumpEntry, Inventory};
    use crate::dump::metadata::CollectionMetadata;
    use crate::facts::ServerFacts;
    use crate::plan::tests::entry;
    use crate::plan::{Order, Selection, plan};
    use bson::doc;
    use proptest::prelude::*;

    fn view(name: &str, on: &str) -> DumpEntry {
        let options = doc! { "viewOn": on, "pipeline": [] };
        let metadata = CollectionMetadata { options, ..CollectionMetadata::default() };
        let metadata = Some(metadata);
        DumpEntry { data: None, metadata, ..entry(name, CollectionKind::View, 0) }
    }

    fn names(entries: Vec<DumpEntry>, order: Order) -> Vec<String> {
        let inventory = Inventory { entries, ..Inventory::default() };
        let selection = Selection { order, ..Selection::default() };
        let plan = plan(&inventory, selection, &ServerFacts::null());
        plan.collections.iter().map(|plan| plan.namespace.collection().to_owned()).collect()
    }

    #[test]
    fn the_largest_comes_first_and_views_after_their_sources() {
        let entries = || {
            vec![
                view("a", "b"),
                view("b", "z"),
                entry("m", CollectionKind::Collection, 5),
                entry("n", CollectionKind::Collection, 50),
                entry("z", CollectionKind::Collection, 5),
            ]
        };
        assert_eq!(names(entries(), Order::LargestFirst), ["n", "m", "z", "b", "a"]);
        assert_eq!(names(entries(), Order::AsListed), ["m", "n", "z", "b", "a"]);
    }

    #[test]
    fn a_circle_of_views_ends() {
        let entries = vec![view("a", "b"), view("b", "a"), view("c", "a")];
        assert_eq!(names(entries, Order::LargestFirst).len(), 3);
    }

    proptest! {
        #[test]
        fn every_order_is_a_permutation(sizes in prop::collection::vec(0_u64..9, 0..30)) {
            let entries: Vec<_> = sizes
                .iter()
                .enumerate()
                .map(|(number, size)| {
                    entry(&format!("c{number:02}"), CollectionKind::Collection, *size)
                })
                .collect();
            let listed = names(entries.clone(), Order::AsListed);
            let mut sorted = names(entries, Order::LargestFirst);
            sorted.sort();
            prop_assert_eq!(sorted, listed);
        }
    }
}
