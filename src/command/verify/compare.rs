//! Compares a plan with what the target holds: first sums of whole collections, then, where they
//! differ, sums of stretches of them, then the documents of the stretches that differ.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use futures_util::future::join;
use futures_util::stream;

use crate::command::verify::contained::{self, Contained};
use crate::command::verify::definition::{self, Others};
use crate::command::verify::documents::Identity;
use crate::command::verify::gathered::{Held, Partitions, Stretches, Total};
use crate::command::verify::source::Source;
use crate::command::verify::stored::Stored;
use crate::dump::inventory::CollectionKind;
use crate::error::Error;
use crate::facts::ServerFacts;
use crate::limits::VERIFY_ARCHIVE_COLLECTIONS;
use crate::load::{Stop, Sums};
use crate::plan::{CollectionPlan, Creation, IndexPolicy, OptionPolicy, RestorePlan};
use crate::report::format::counted;
use crate::report::verification::{Agreement, Extent, Side, Verification, VerifiedCollection};
use crate::sum::DocumentSum;
use crate::target::contents::{Contents, DescribedCollection};

/// What makes a collection or a view what it is, so that it counts whatever becomes of options.
const MAKES_IT: [&str; 3] = ["type", "viewOn", "pipeline"];

/// How thoroughly it is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Depth {
    /// Collections read side by side, on each side.
    pub(super) at_once: usize,
    /// Differing documents listed of a collection.
    pub(super) differences: usize,
    /// How long it is tried again while the server is away.
    pub(super) retry_for: Duration,
    /// Whether options are compared.
    pub(super) options: OptionPolicy,
    /// Whether indexes are compared.
    pub(super) indexes: IndexPolicy,
}

/// What is known of a restore that has just ended.
pub(super) struct Ended<'a> {
    /// What it has brought.
    pub(super) sums: &'a Sums,
    /// Collections that are not compared, with the reason.
    pub(super) left_out: HashMap<usize, String>,
    /// Documents that were rejected, by collection.
    pub(super) rejected: HashMap<usize, u64>,
}

/// Two sides, and what is compared of them.
pub(super) struct Sides<'a, C> {
    pub(super) plan: &'a RestorePlan,
    pub(super) facts: &'a ServerFacts,
    pub(super) contents: &'a C,
    pub(super) ended: Option<Ended<'a>>,
    pub(super) depth: Depth,
    pub(super) stop: &'a Stop,
}

/// A comparison that goes on.
struct Comparison<'a, C> {
    sides: &'a Sides<'a, C>,
    source: Source<'a>,
    stored: Stored<'a, C>,
    found: Vec<VerifiedCollection>,
    /// Collections of which documents are compared.
    with_documents: Vec<usize>,
    notes: Vec<String>,
}

/// Compares everything; an error is returned only where nothing could be compared.
pub(super) async fn compare<C: Contents>(sides: &Sides<'_, C>) -> Result<Verification, Error> {
    let began = Instant::now();
    let (plan, stop, at_once) = (sides.plan, sides.stop, sides.depth.at_once);
    let run = sides.ended.as_ref().and_then(|ended| ended.sums.run());
    let mut comparison = Comparison {
        sides,
        source: Source { plan, run, at_once, stop },
        stored: Stored {
            plan,
            contents: sides.contents,
            at_once,
            retry_for: sides.depth.retry_for,
            stop,
        },
        found: plan.collections.iter().map(untouched).collect(),
        with_documents: Vec::new(),
        notes: Vec::new(),
    };
    comparison.definitions().await;
    let differing = comparison.totals().await;
    comparison.look_into(differing).await;
    if stop.is_requested() {
        return Err(super::source::interrupted());
    }
    comparison.found.iter_mut().for_each(VerifiedCollection::judge);
    Ok(Verification::new(comparison.found, comparison.notes, began.elapsed()))
}

fn untouched(plan: &CollectionPlan) -> VerifiedCollection {
    VerifiedCollection {
        namespace: plan.namespace.clone(),
        source: plan.source.clone(),
        kind: plan.kind.name(),
        state: Agreement::NotCompared,
        error: None,
        extent: if plan.kind == CollectionKind::View { Extent::Nothing } else { Extent::All },
        dump: None,
        target: None,
        documents: None,
        options: Vec::new(),
        indexes: Vec::new(),
        notes: Vec::new(),
    }
}

fn side(sum: &DocumentSum) -> Side {
    Side { documents: sum.documents, bytes: sum.bytes, hash: format!("{:032x}", sum.hash) }
}

/// A collection that differs, and by what its documents are told apart.
type Differing = (usize, Identity);

impl<C: Contents> Comparison<'_, C> {
    /// Whether the target may rightly hold documents, options and indexes that the dump does not
    /// have, because the restore that has just ended found the collection there.
    fn was_there(&self, collection: usize) -> bool {
        let plan = &self.sides.plan.collections[collection];
        self.sides.ended.is_some() && plan.creation == Creation::Use
    }

    fn fail(&mut self, collection: usize, error: &Error) {
        let text = match error.hint_text() {
            Some(hint) => format!("{error}; {hint}"),
            None => error.to_string(),
        };
        self.found[collection].error.get_or_insert(text);
    }

    fn note(&mut self, collection: usize, text: &str) {
        self.found[collection].notes.push(text.to_owned());
    }

    /// Compares options and indexes, and settles of which collections documents are compared.
    async fn definitions(&mut self) {
        let described = self.described().await;
        let left_out = self.sides.ended.as_ref().map(|ended| &ended.left_out);
        let left_out = left_out.cloned().unwrap_or_default();
        let mut with_indexes = Vec::new();
        for (collection, plan) in self.sides.plan.collections.iter().enumerate() {
            if let Some(reason) = left_out.get(&collection) {
                self.found[collection].error = Some(reason.clone());
                continue;
            }
            match &described[plan.namespace.database()] {
                Err(error) => self.fail(collection, error),
                Ok(listed) => {
                    let listed = listed.get(plan.namespace.collection());
                    self.options(collection, listed);
                    if listed.is_some() && plan.kind != CollectionKind::View {
                        with_indexes.push(collection);
                    }
                }
            }
            if plan.kind != CollectionKind::View {
                self.with_documents.push(collection);
            }
        }
        if self.sides.depth.indexes == IndexPolicy::Build {
            self.indexes(with_indexes).await;
        }
    }

    /// The collections of each database, by name.
    async fn described(
        &self,
    ) -> BTreeMap<String, Result<BTreeMap<String, DescribedCollection>, Error>> {
        let plan = &self.sides.plan.collections;
        let databases: BTreeSet<&str> =
            plan.iter().map(|collection| collection.namespace.database()).collect();
        let mut described = BTreeMap::new();
        for database in databases {
            let question = || self.sides.contents.collections(database);
            let what = format!("the collections of `{database}` cannot be listed");
            let listed = self.stored.ask(&what, question).await;
            let named = |one: DescribedCollection| (one.name.clone(), one);
            let listed = listed.map(|listed| listed.into_iter().map(named).collect());
            described.insert(database.to_owned(), listed);
        }
        described
    }

    fn options(&mut self, collection: usize, found: Option<&DescribedCollection>) {
        let plan = &self.sides.plan.collections[collection];
        // A restore leaves the options of a collection that is there as they are.
        let stay = self.was_there(collection) && plan.carried.is_none();
        let mut deviations = definition::options(plan, found, self.sides.facts);
        if stay || self.sides.depth.options == OptionPolicy::Skip {
            deviations.retain(|deviation| MAKES_IT.contains(&deviation.name.as_str()));
        }
        if stay {
            self.note(collection, "it was there before, so that its options are not compared");
        }
        self.found[collection].options = deviations;
    }

    async fn indexes(&mut self, wanted: Vec<usize>) {
        let this = &*self;
        let asked = stream::iter(wanted).map(|collection| async move {
            let namespace = &this.sides.plan.collections[collection].namespace;
            let question = || this.sides.contents.indexes(namespace);
            (collection, this.stored.ask("its indexes cannot be listed", question).await)
        });
        let asked: Vec<_> = asked.buffer_unordered(self.sides.depth.at_once).collect().await;
        for (collection, found) in asked {
            let others = if self.was_there(collection) { Others::Pass } else { Others::Count };
            match found {
                Err(error) => self.fail(collection, &error),
                Ok(found) => {
                    let plan = &self.sides.plan.collections[collection];
                    self.found[collection].indexes =
                        definition::indexes(plan, &found, others, self.sides.facts);
                }
            }
        }
    }

    /// Takes the sums of both sides; returns the collections that are to be looked into.
    async fn totals(&mut self) -> Vec<Differing> {
        let known = |collection: &usize| self.known(*collection);
        let read = self.with_documents.iter().copied().filter(|one| known(one).is_none());
        let read: Vec<_> = read.map(|collection| (collection, Total::default())).collect();
        let all = self.with_documents.iter().map(|&collection| (collection, Total::default));
        let (dump, target) =
            join(self.source.gather(read), self.stored.gather::<Total, _>(all.collect())).await;
        let mut dump: HashMap<usize, Result<Total, Error>> = dump.into_iter().collect();
        let mut differing = Vec::new();
        for (collection, target) in target {
            let dump = match self.known(collection) {
                Some(sum) => Ok(Total { sum, without_id: 0 }),
                None => dump.remove(&collection).unwrap_or_else(|| Ok(Total::default())),
            };
            match (dump, target) {
                (Err(error), _) | (_, Err(error)) => self.fail(collection, &error),
                (Ok(dump), Ok(target)) => {
                    self.found[collection].dump = Some(side(&dump.sum));
                    self.found[collection].target = Some(side(&target.sum));
                    let knows_ids = self.source.run.is_some();
                    if dump.without_id > 0 && !knows_ids {
                        self.without_ids(collection, dump.without_id);
                        differing.push((collection, Identity::Content));
                    } else if dump.sum != target.sum {
                        differing.push((collection, Identity::Id));
                    }
                }
            }
        }
        differing.sort_unstable_by_key(|(collection, _)| *collection);
        differing
    }

    /// What a restore has taken of a collection as it passed.
    fn known(&self, collection: usize) -> Option<DocumentSum> {
        let ended = self.sides.ended.as_ref()?;
        let plan = &self.sides.plan.collections[collection];
        plan.carried.is_none().then(|| ended.sums.of(collection))
    }

    fn without_ids(&mut self, collection: usize, documents: u64) {
        self.found[collection].extent = Extent::WithoutId;
        let documents = counted(documents, "document has", "documents have");
        let text =
            format!("{documents} no _id in the dump, so that all are compared without theirs");
        self.note(collection, &text);
    }

    /// Finds out what differs of collections whose sums do.
    async fn look_into(&mut self, differing: Vec<Differing>) {
        let mut stretches = Vec::new();
        for (collection, identity) in differing {
            if self.sides.stop.is_requested() {
                return;
            }
            let again = self.source.can_be_read_again(collection);
            if self.was_there(collection) {
                self.look_up(collection, again).await;
            } else if again {
                stretches.push((collection, identity));
            } else {
                self.piped(collection, identity);
            }
        }
        if self.sides.plan.archive().is_some() && stretches.len() > VERIFY_ARCHIVE_COLLECTIONS {
            for (collection, _) in stretches.split_off(VERIFY_ARCHIVE_COLLECTIONS) {
                let text = "so many collections differ that its documents are not looked for; \
                            compare it alone with --ns-include";
                self.note(collection, text);
            }
        }
        // Together where an archive is read from its beginning, else one by one, for less memory.
        let together = if self.sides.plan.archive().is_some() { stretches.len() } else { 1 };
        for group in stretches.chunks(together.max(1)) {
            if self.sides.stop.is_requested() {
                return;
            }
            self.narrow_down(group).await;
        }
    }

    fn piped(&mut self, collection: usize, identity: Identity) {
        let piped = "it came through a pipe, which cannot be read again";
        if identity == Identity::Content {
            let error = Error::new(crate::error::ErrorKind::Read, piped);
            self.fail(collection, &error.hint("save it in a file first, then compare the file"));
        } else {
            self.note(collection, &format!("{piped}, so that differing documents are not named"));
        }
    }

    /// Looks each document of the dump up, where the target may hold others.
    async fn look_up(&mut self, collection: usize, again: bool) {
        self.found[collection].extent = Extent::Contained;
        if !again {
            let error = Error::new(
                crate::error::ErrorKind::Read,
                "the target held documents before, and those of the dump came through a pipe, \
                 which cannot be read again",
            );
            self.fail(collection, &error);
            return;
        }
        let samples = self.sides.depth.differences;
        match contained::look_up(&self.source, &self.stored, collection, samples).await {
            Err(error) => self.fail(collection, &error),
            Ok(Contained { dump, differing }) => {
                self.found[collection].dump = Some(side(&dump));
                if differing.missing + differing.changed > 0 {
                    self.found[collection].documents = Some(differing);
                }
                let text = "it was there before or was begun by an earlier run, so that each \
                            document of the dump was looked up; the target may hold others";
                self.note(collection, text);
            }
        }
    }

    /// Finds the documents that differ of some collections.
    async fn narrow_down(&mut self, group: &[Differing]) {
        let new = |identity: Identity| move || Partitions::new(identity);
        let dump = group.iter().map(|&(collection, identity)| (collection, new(identity)()));
        let target = group.iter().map(|&(collection, identity)| (collection, new(identity)));
        let (dump, target) = join(
            self.source.gather(dump.collect()),
            self.stored.gather::<Partitions, _>(target.collect()),
        )
        .await;
        let mut held = Vec::new();
        for (collection, dump, target) in paired(dump, target) {
            match (dump, target) {
                (Err(error), _) | (_, Err(error)) => self.fail(collection, &error),
                (Ok(dump), Ok(target)) => {
                    let stretches = dump.differing(&target);
                    self.narrowed(collection, &dump, &target, &stretches);
                    if !stretches.is_empty() {
                        let same = group.iter().find(|(one, _)| *one == collection);
                        let identity = same.map(|(_, identity)| *identity).unwrap_or_default();
                        held.push((collection, identity, stretches));
                    }
                }
            }
        }
        self.hold(held).await;
    }

    /// Notes what the sums of stretches say of the whole.
    fn narrowed(
        &mut self,
        collection: usize,
        dump: &Partitions,
        target: &Partitions,
        stretches: &Stretches,
    ) {
        let found = &mut self.found[collection];
        let ended = self.sides.ended.as_ref();
        let rejected = ended.and_then(|ended| ended.rejected.get(&collection));
        let was_same = found.dump == found.target;
        if found.extent == Extent::WithoutId {
            found.dump = Some(side(&dump.total()));
            found.target = Some(side(&target.total()));
            if stretches.is_empty() {
                // The bytes of documents count with their `_id`s, which differ.
                found.target.clone_from(&found.dump);
            }
        } else if stretches.is_empty() && !was_same {
            found.dump = Some(side(&dump.total()));
            found.target = Some(side(&target.total()));
            let text = "the sums were different at first and the same when both sides were read \
                        again: somebody wrote to it meanwhile";
            self.note(collection, text);
        } else if let Some(&rejected) = rejected {
            let documents = counted(rejected, "document", "documents");
            let text = format!("{documents} that the server rejected count as missing as well");
            self.note(collection, &text);
        }
    }

    /// Holds what falls into the stretches that differ, and compares it document by document.
    async fn hold(&mut self, wanted: Vec<(usize, Identity, Stretches)>) {
        let new = |identity: Identity, stretches: &Stretches| {
            let stretches = stretches.clone();
            move || Held::new(identity, stretches.clone())
        };
        let dump = wanted.iter().map(|(collection, identity, stretches)| {
            (*collection, Held::new(*identity, stretches.clone()))
        });
        let target = wanted
            .iter()
            .map(|(collection, identity, stretches)| (*collection, new(*identity, stretches)));
        let (dump, target) = join(
            self.source.gather(dump.collect()),
            self.stored.gather::<Held, _>(target.collect()),
        )
        .await;
        for (collection, dump, target) in paired(dump, target) {
            match (dump, target) {
                (Err(error), _) | (_, Err(error)) => self.fail(collection, &error),
                (Ok(dump), Ok(target)) => {
                    let differing = dump.compare(&target, self.sides.depth.differences);
                    self.found[collection].documents = Some(differing);
                }
            }
        }
    }
}

/// What was gathered of a collection of the dump and of the target.
type Paired<G> = (usize, Result<G, Error>, Result<G, Error>);

/// What was gathered of both sides, by collection.
fn paired<G>(
    dump: super::source::Gathered<G>,
    target: super::source::Gathered<G>,
) -> Vec<Paired<G>> {
    let mut target: HashMap<usize, Result<G, Error>> = target.into_iter().collect();
    let pair = |(collection, dump)| Some((collection, dump, target.remove(&collection)?));
    dump.into_iter().filter_map(pair).collect()
}
