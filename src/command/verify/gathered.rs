//! What is gathered of the documents of a collection: their sum, the sums of stretches of them, and
//! what it takes to find those that differ.

use std::collections::{BTreeMap, HashMap};

use crate::command::verify::documents::{Gather, Identity, Label, Seen};
use crate::limits::{VERIFY_HELD_MAX, VERIFY_PARTITIONS};
use crate::report::verification::{Difference, DifferingDocument, DifferingDocuments};
use crate::sum::DocumentSum;

/// The sum of all documents.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Total {
    pub(super) sum: DocumentSum,
    /// Documents without an `_id`.
    pub(super) without_id: u64,
}

impl Gather for Total {
    #[inline]
    fn take(&mut self, seen: &Seen<'_>) {
        self.sum.add(seen.frame.bytes());
        let has_id = seen.frame.starts_with_id() || seen.frame.id().is_some();
        self.without_id += u64::from(!has_id);
    }
}

/// The sums of stretches, into which documents fall by what they are known by.
#[derive(Clone, Debug)]
pub(super) struct Partitions {
    identity: Identity,
    sums: Vec<DocumentSum>,
}

impl Partitions {
    pub(super) fn new(identity: Identity) -> Self {
        Self { identity, sums: vec![DocumentSum::default(); VERIFY_PARTITIONS] }
    }

    /// The sum of all of them.
    pub(super) fn total(&self) -> DocumentSum {
        let mut total = DocumentSum::default();
        self.sums.iter().for_each(|sum| total.join(sum));
        total
    }

    /// The stretches that differ.
    pub(super) fn differing(&self, other: &Self) -> Stretches {
        let mut stretches = Stretches { wanted: vec![false; self.sums.len()], are_all: true };
        let mut held = 0;
        for (place, (one, other)) in self.sums.iter().zip(&other.sums).enumerate() {
            // Without `_id`s the bytes are not those that are compared.
            if (one.documents, one.hash) == (other.documents, other.hash) {
                continue;
            }
            let documents = one.documents.max(other.documents);
            if held == 0 || held + documents <= VERIFY_HELD_MAX {
                held += documents;
                stretches.wanted[place] = true;
            } else {
                stretches.are_all = false;
            }
        }
        stretches
    }
}

impl Gather for Partitions {
    fn take(&mut self, seen: &Seen<'_>) {
        let (key, hash) = seen.key_and_hash(self.identity);
        self.sums[partition(key)].add_hashed(seen.frame.bytes().len() as u64, hash);
    }
}

/// The stretch that a key falls into.
fn partition(key: u128) -> usize {
    // The remainder is below the number of stretches.
    usize::try_from(key % VERIFY_PARTITIONS as u128).unwrap_or(0)
}

/// Some stretches.
#[derive(Clone, Debug)]
pub(super) struct Stretches {
    wanted: Vec<bool>,
    /// Whether they are all that differ.
    pub(super) are_all: bool,
}

impl Stretches {
    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        !self.wanted.contains(&true)
    }
}

/// The documents of some stretches, without their bytes.
#[derive(Clone, Debug)]
pub(super) struct Held {
    identity: Identity,
    stretches: Stretches,
    entries: HashMap<u128, Entry>,
}

#[derive(Clone, Debug)]
struct Entry {
    /// The hashes of the documents that are known by the same; mostly one.
    hashes: Vec<u128>,
    label: Label,
    /// How many came before it.
    turn: usize,
}

impl Held {
    pub(super) fn new(identity: Identity, stretches: Stretches) -> Self {
        Self { identity, stretches, entries: HashMap::new() }
    }

    /// What differs between the dump and the target, with at most so many documents listed.
    pub(super) fn compare(&self, target: &Self, samples_max: usize) -> DifferingDocuments {
        let mut lists = Lists::default();
        for (key, entry) in &self.entries {
            let there = target.entries.get(key).map_or(&[][..], |entry| &entry.hashes);
            lists.sort_out(entry, &entry.hashes, there);
        }
        for (key, entry) in &target.entries {
            if !self.entries.contains_key(key) {
                lists.sort_out(entry, &[], &entry.hashes);
            }
        }
        lists.into_differences(samples_max, self.stretches.are_all)
    }
}

impl Gather for Held {
    fn take(&mut self, seen: &Seen<'_>) {
        let (key, hash) = seen.key_and_hash(self.identity);
        if !self.stretches.wanted[partition(key)] {
            return;
        }
        let turn = self.entries.len();
        let entry = self.entries.entry(key);
        let entry =
            entry.or_insert_with(|| Entry { hashes: Vec::new(), label: seen.label(), turn });
        entry.hashes.push(hash);
    }
}

/// Documents that differ, by how they do and by the turn in which they came.
#[derive(Default)]
struct Lists<'a> {
    counts: [u64; 3],
    labels: [BTreeMap<usize, &'a Label>; 3],
}

/// How documents differ, in the order of the lists.
const DIFFERENCES: [Difference; 3] = [Difference::Missing, Difference::Changed, Difference::Extra];

impl<'a> Lists<'a> {
    /// Sorts out the documents that are known by the same.
    fn sort_out(&mut self, entry: &'a Entry, dump: &[u128], target: &[u128]) {
        let mut left = target.to_vec();
        let mut missing = 0;
        for hash in dump {
            match left.iter().position(|other| other == hash) {
                Some(place) => drop(left.swap_remove(place)),
                None => missing += 1,
            }
        }
        let changed = left.len().min(missing);
        self.add(0, missing - changed, entry);
        self.add(1, changed, entry);
        self.add(2, left.len() - changed, entry);
    }

    fn add(&mut self, list: usize, documents: usize, entry: &'a Entry) {
        if documents > 0 {
            self.counts[list] += documents as u64;
            self.labels[list].insert(entry.turn, &entry.label);
        }
    }

    /// The counts, and some of each list, so that none hides another.
    fn into_differences(self, samples_max: usize, is_complete: bool) -> DifferingDocuments {
        let mut lists = self.labels.map(BTreeMap::into_values);
        let mut samples = Vec::new();
        loop {
            let before = samples.len();
            for (list, difference) in lists.iter_mut().zip(DIFFERENCES) {
                if samples.len() < samples_max
                    && let Some(label) = list.next()
                {
                    samples.push(DifferingDocument { difference, id: label.text() });
                }
            }
            if samples.len() == before {
                break;
            }
        }
        let [missing, changed, extra] = self.counts;
        DifferingDocuments { missing, extra, changed, is_complete, samples }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::verify::documents::tests::with;
    use bson::{Document, doc};
    use proptest::prelude::*;
    use std::collections::HashSet;

    fn gathered<G: Gather>(mut gather: G, documents: &[Document]) -> G {
        for document in documents {
            with(document, |seen| gather.take(seen));
        }
        gather
    }

    fn compared(dump: &[Document], target: &[Document], identity: Identity) -> DifferingDocuments {
        let sides = [dump, target].map(|side| gathered(Partitions::new(identity), side));
        let stretches = sides[0].differing(&sides[1]);
        let [dump, target] =
            [dump, target].map(|side| gathered(Held::new(identity, stretches.clone()), side));
        dump.compare(&target, 100)
    }

    fn ids(differing: &DifferingDocuments, difference: Difference) -> HashSet<String> {
        let samples = differing.samples.iter().filter(|one| one.difference == difference);
        samples.map(|one| one.id.clone()).collect()
    }

    #[test]
    fn the_same_id_twice_is_told() {
        let dump = [doc! { "_id": 1, "a": 1 }, doc! { "_id": 1, "a": 2 }];
        let differing = compared(&dump, &dump[..1], Identity::Id);
        assert_eq!((differing.missing, differing.changed, differing.extra), (1, 0, 0));
        let differing = compared(&dump, &[doc! { "_id": 1, "a": 3 }], Identity::Id);
        assert_eq!((differing.missing, differing.changed, differing.extra), (1, 1, 0));
    }

    #[test]
    fn no_list_hides_another() {
        let dump: Vec<_> = (0..20).map(|id| doc! { "_id": id, "a": 1 }).collect();
        let target: Vec<_> =
            (10..30).map(|id| doc! { "_id": id, "a": i32::from(id < 15) }).collect();
        let sides = [&dump, &target].map(|side| gathered(Partitions::new(Identity::Id), side));
        let stretches = sides[0].differing(&sides[1]);
        let [dump, target] =
            [&dump, &target].map(|side| gathered(Held::new(Identity::Id, stretches.clone()), side));
        let differing = dump.compare(&target, 6);
        assert_eq!((differing.missing, differing.changed, differing.extra), (10, 5, 10));
        let kinds: Vec<_> = differing.samples.iter().map(|one| one.difference.name()).collect();
        assert_eq!(kinds, ["missing", "changed", "extra", "missing", "changed", "extra"]);
        assert_eq!(differing.samples[0].id, "0");
    }

    #[test]
    fn without_ids_documents_are_found_by_all_else() {
        let dump = [doc! { "a": 1 }, doc! { "a": 2 }, doc! { "a": 2 }];
        let target =
            [doc! { "_id": 7, "a": 2 }, doc! { "_id": 8, "a": 3 }, doc! { "_id": 9, "a": 1 }];
        let differing = compared(&dump, &target, Identity::Content);
        assert_eq!((differing.missing, differing.changed, differing.extra), (1, 0, 1));
        assert_eq!(ids(&differing, Difference::Extra), HashSet::from(["8".to_owned()]));
    }

    #[test]
    fn one_stretch_is_held_however_large_it_is() {
        let mut one = Partitions::new(Identity::Id);
        let other = one.clone();
        for place in [3, 5, 7] {
            one.sums[place] =
                DocumentSum { documents: VERIFY_HELD_MAX + 1, bytes: 1, hash: place as u128 };
        }
        let stretches = one.differing(&other);
        assert!(!stretches.are_all && stretches.wanted[3] && !stretches.wanted[5]);
        assert!(other.differing(&other).is_empty());
    }

    proptest! {
        #[test]
        fn exactly_what_differs_is_found(
            dump in prop::collection::btree_map(0_i32..60, 0_i32..4, 0..40),
            target in prop::collection::btree_map(0_i32..60, 0_i32..4, 0..40),
        ) {
            let documents = |side: &std::collections::BTreeMap<i32, i32>| -> Vec<Document> {
                side.iter().map(|(id, value)| doc! { "_id": *id, "v": *value }).collect()
            };
            let mut shuffled = documents(&target);
            shuffled.reverse();
            let differing = compared(&documents(&dump), &shuffled, Identity::Id);
            let of = |wanted: &dyn Fn(&i32) -> bool| -> HashSet<String> {
                let all = dump.keys().chain(target.keys());
                all.filter(|id| wanted(id)).map(ToString::to_string).collect()
            };
            let missing = of(&|id| !target.contains_key(id));
            let extra = of(&|id| !dump.contains_key(id));
            let changed = of(&|id| {
                dump.get(id).zip(target.get(id)).is_some_and(|(one, other)| one != other)
            });
            prop_assert_eq!(differing.missing, missing.len() as u64);
            prop_assert_eq!(ids(&differing, Difference::Missing), missing);
            prop_assert_eq!(ids(&differing, Difference::Extra), extra);
            prop_assert_eq!(ids(&differing, Difference::Changed), changed);
            prop_assert!(differing.is_complete);
        }
    }
}
