//! What has changed between two surveys of the same collections.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::namespace::Namespace;
use crate::report::survey::{Survey, SurveyedNamespace, full_name};

/// What has changed between two surveys.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SurveyDifference {
    /// What has changed of the sums over all collections.
    pub totals: Sums,
    /// The collections and views that changed, came or went, by name.
    pub namespaces: Vec<NamespaceDifference>,
}

/// Changes of numbers: after less before. What is not known on one side is absent, unless the
/// collection is not there, where it is nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Sums {
    /// Documents.
    pub documents: Option<i64>,
    /// Bytes of the documents, uncompressed.
    pub data_bytes: Option<i64>,
    /// Bytes of the files of collections.
    pub storage_bytes: Option<i64>,
    /// Bytes of the files of indexes.
    pub index_bytes: Option<i64>,
}

/// What has changed of one collection or view.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NamespaceDifference {
    /// Its full name.
    #[serde(serialize_with = "full_name")]
    pub namespace: Namespace,
    /// Whether it was there before.
    pub was_there: bool,
    /// Whether it is there after.
    pub is_there: bool,
    /// What has changed of its numbers.
    pub sums: Sums,
    /// Names of indexes that came.
    pub indexes_added: Vec<String>,
    /// Names of indexes that went.
    pub indexes_removed: Vec<String>,
    /// Fields that documents did not have before, of a collection that was there.
    pub fields_added: Vec<String>,
    /// Fields that documents no longer have, of a collection that still is there.
    pub fields_removed: Vec<String>,
}

impl SurveyDifference {
    /// Compares two surveys.
    pub fn between(before: &Survey, after: &Survey) -> Self {
        let names: BTreeSet<&Namespace> =
            before.namespaces.iter().chain(&after.namespaces).map(|one| &one.namespace).collect();
        let differences = names
            .into_iter()
            .map(|name| NamespaceDifference::between(name, before.of(name), after.of(name)));
        let totals = Sums {
            documents: change(Some(before.totals.documents), Some(after.totals.documents)),
            data_bytes: change(Some(before.totals.data_bytes), Some(after.totals.data_bytes)),
            storage_bytes: change(
                Some(before.totals.storage_bytes),
                Some(after.totals.storage_bytes),
            ),
            index_bytes: change(Some(before.totals.index_bytes), Some(after.totals.index_bytes)),
        };
        Self { totals, namespaces: differences.filter(|one| !one.is_none()).collect() }
    }
}

impl NamespaceDifference {
    fn between(
        namespace: &Namespace,
        before: Option<&SurveyedNamespace>,
        after: Option<&SurveyedNamespace>,
    ) -> Self {
        let of = |number: fn(&SurveyedNamespace) -> Option<u64>| {
            let known = |side: Option<&SurveyedNamespace>| side.map_or(Some(0), number);
            let is_view = before.or(after).is_some_and(SurveyedNamespace::is_view);
            change(known(before), known(after)).filter(|_| !is_view)
        };
        let (indexes_added, indexes_removed) = came_and_went(before, after, index_names);
        let (fields_added, fields_removed) = match (before, after) {
            (Some(_), Some(_)) => came_and_went(before, after, field_names),
            _ => (Vec::new(), Vec::new()),
        };
        Self {
            namespace: namespace.clone(),
            was_there: before.is_some(),
            is_there: after.is_some(),
            sums: Sums {
                documents: of(|one| one.documents),
                data_bytes: of(|one| one.data_bytes),
                storage_bytes: of(|one| one.storage_bytes),
                index_bytes: of(|one| one.index_bytes),
            },
            indexes_added,
            indexes_removed,
            fields_added,
            fields_removed,
        }
    }

    /// Whether nothing has changed.
    fn is_none(&self) -> bool {
        let Sums { documents, data_bytes, storage_bytes, index_bytes } = self.sums;
        let is_same = |change: Option<i64>| change.is_none_or(|change| change == 0);
        self.was_there == self.is_there
            && [documents, data_bytes, storage_bytes, index_bytes].into_iter().all(is_same)
            && self.indexes_added.is_empty()
            && self.indexes_removed.is_empty()
            && self.fields_added.is_empty()
            && self.fields_removed.is_empty()
    }
}

fn index_names(one: &SurveyedNamespace) -> Option<Vec<&str>> {
    Some(one.indexes.as_ref()?.iter().map(|index| index.name.as_str()).collect())
}

fn field_names(one: &SurveyedNamespace) -> Option<Vec<&str>> {
    Some(one.fields.as_ref()?.fields.iter().map(|field| field.name.as_str()).collect())
}

/// Names that only the second side has, and those that only the first has; none where one side is
/// not known.
fn came_and_went<'a>(
    before: Option<&'a SurveyedNamespace>,
    after: Option<&'a SurveyedNamespace>,
    names: fn(&'a SurveyedNamespace) -> Option<Vec<&'a str>>,
) -> (Vec<String>, Vec<String>) {
    let of = |side: Option<&'a SurveyedNamespace>| side.map_or(Some(Vec::new()), names);
    let (Some(before), Some(after)) = (of(before), of(after)) else {
        return (Vec::new(), Vec::new());
    };
    let without = |names: &[&str], others: &[&str]| {
        let others: BTreeSet<_> = others.iter().collect();
        names.iter().filter(|name| !others.contains(name)).map(ToString::to_string).collect()
    };
    (without(&after, &before), without(&before, &after))
}

fn change(before: Option<u64>, after: Option<u64>) -> Option<i64> {
    let signed = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    Some(signed(after?) - signed(before?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::survey::samples;

    #[test]
    fn what_came_and_what_changed_is_told_and_the_rest_is_not() {
        let difference = SurveyDifference::between(&samples::before(), &samples::after());
        let names: Vec<_> = difference.namespaces.iter().map(|one| one.namespace.full()).collect();
        assert_eq!(names, ["shop.orders", "shop.recent"]);
        let orders = &difference.namespaces[0];
        assert_eq!((orders.was_there, orders.is_there), (true, true));
        assert_eq!(orders.sums.documents, Some(299_000));
        assert_eq!(orders.sums.storage_bytes, Some(11_900_000));
        assert_eq!(orders.indexes_added, ["at_1"]);
        assert_eq!(orders.fields_added, ["customer", "customer.name"]);
        assert_eq!(orders.fields_removed, ["name"]);
        let recent = &difference.namespaces[1];
        assert_eq!((recent.was_there, recent.is_there), (false, true));
        assert_eq!(recent.sums, Sums::default());
        assert_eq!(difference.totals.documents, Some(299_000));
    }

    #[test]
    fn what_went_is_negative() {
        let difference = SurveyDifference::between(&samples::after(), &samples::before());
        assert_eq!(difference.namespaces[0].sums.documents, Some(-299_000));
        assert_eq!(difference.namespaces[0].indexes_removed, ["at_1"]);
        assert!(!difference.namespaces[1].is_there);
    }

    #[test]
    fn what_is_new_is_told_with_its_indexes_and_not_with_its_fields() {
        let (mut before, after) = (samples::before(), samples::after());
        before.namespaces.retain(|one| one.namespace.collection() != "orders");
        let difference = SurveyDifference::between(&before, &after);
        let orders = &difference.namespaces[0];
        assert_eq!(orders.sums.documents, Some(300_000));
        assert_eq!(orders.indexes_added, ["_id_", "at_1"]);
        assert_eq!(orders.fields_added, [""; 0]);
    }

    #[test]
    fn what_is_not_known_is_no_change() {
        let (mut before, after) = (samples::after(), samples::after());
        for one in &mut before.namespaces {
            (one.documents, one.indexes, one.fields) = (None, None, None);
        }
        let difference = SurveyDifference::between(&before, &after);
        assert_eq!(difference.namespaces, []);
    }
}
