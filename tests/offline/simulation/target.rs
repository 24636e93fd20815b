//! A server in memory that fails in every way that a seed draws.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use bson::{Bson, Document, RawBson, RawDocumentBuf};
use restorm::batch::Batch;
use restorm::load::Stop;
use restorm::namespace::Namespace;
use restorm::target::{
    Documents, Fault, Insert, MergeUsers, OnRefusal, Target, TargetError, Validators, WriteFailure,
    WriteOutcome,
};

use crate::chance::Chance;
use crate::simulation::dump::{self, Collection, REFUSED_INDEX};

/// Passing failures that one batch meets at most; their pauses stay well below the time for which
/// a batch is tried again.
const FAULTS_PER_BATCH: u32 = 8;

/// How the target behaves.
#[derive(Clone, Debug)]
pub(super) struct Temper {
    /// Of a hundred commands, so many fail in a way that passes.
    pub(super) faults: usize,
    /// Whether the user may bypass validators.
    pub(super) may_bypass: bool,
    /// More documents in one command are refused as too large.
    pub(super) documents_max: usize,
    /// The collection that refuses its inserts from this one on.
    pub(super) refuses: Option<(String, usize)>,
    /// More bytes of documents than this are never let pass: the connection is lost.
    pub(super) bytes_max: usize,
    /// The server is gone from this insert on.
    pub(super) dies_at: Option<usize>,
    /// Someone asks the run to stop at this insert.
    pub(super) stops_at: Option<usize>,
}

/// A server in memory.
pub(super) struct FaultyTarget {
    seed: u64,
    temper: Temper,
    stop: Stop,
    state: Mutex<State>,
}

/// What the server holds and has seen.
#[derive(Default)]
pub(super) struct State {
    pub(super) collections: BTreeMap<String, Stored>,
    /// What the loader must never do, but did.
    pub(super) violations: Vec<String>,
    pub(super) inserts: usize,
    attempts: BTreeMap<(u64, u64), u32>,
    faults: BTreeMap<(u64, u64), u32>,
}

/// What the server holds of one collection.
#[derive(Default)]
pub(super) struct Stored {
    pub(super) is_created: bool,
    /// The documents by their `_id`.
    pub(super) documents: BTreeMap<Vec<u8>, Vec<u8>>,
    /// The `_id`s in the order in which their documents came.
    pub(super) order: Vec<Vec<u8>>,
    pub(super) indexes: BTreeSet<String>,
    pub(super) inserts: usize,
}

impl Stored {
    /// Takes documents in their order, as a server does.
    fn take(&mut self, documents: &[(u32, Vec<u8>)], insert: &Insert) -> WriteOutcome {
        let mut outcome = WriteOutcome::default();
        for (number, (index, bytes)) in documents.iter().enumerate() {
            let id = dump::id_of(bytes);
            let invalid = insert.validators == Validators::Applied && dump::has(bytes, "invalid");
            let refusal = match (self.documents.contains_key(&id), invalid) {
                (_, true) => Some((121, "Document failed validation")),
                (true, false) => Some((11000, "E11000 duplicate key error")),
                (false, false) => None,
            };
            let Some((code, message)) = refusal else {
                self.order.push(id.clone());
                self.documents.insert(id, bytes.clone());
                outcome.inserted += 1;
                continue;
            };
            outcome.failures.push(WriteFailure { index: *index, code, message: message.into() });
            if insert.on_refusal == OnRefusal::Stop {
                outcome.not_tried =
                    u32::try_from(documents.len() - number - 1).expect("few documents");
                break;
            }
        }
        outcome
    }
}

impl Stored {
    /// Takes so many of the documents and turns the others away for now, as Cosmos DB does.
    fn take_some(
        &mut self,
        documents: &[(u32, Vec<u8>)],
        taken: usize,
        insert: &Insert,
    ) -> WriteOutcome {
        let (first, others) = documents.split_at(taken);
        let mut outcome = self.take(first, insert);
        let others_count = u32::try_from(others.len()).expect("few documents");
        if insert.on_refusal == OnRefusal::Stop && !outcome.failures.is_empty() {
            outcome.not_tried += others_count;
            return outcome;
        }
        let is_ordered = insert.on_refusal == OnRefusal::Stop;
        let refused = if is_ordered { others.len().min(1) } else { others.len() };
        outcome.failures.extend(others[..refused].iter().map(|(index, _)| WriteFailure {
            index: *index,
            code: 16500,
            message: "Request rate is large (RetryAfterMs=25)".to_owned(),
        }));
        outcome.not_tried = others_count - u32::try_from(refused).expect("few documents");
        outcome
    }
}

/// A command that is answered after a while, if at all.
enum Answer {
    /// As it should be.
    Proper,
    /// By this failure, after so many of the documents were taken.
    Failure { taken: usize, error: TargetError },
    /// By too much at once: so many of the documents were taken, the others were turned away.
    Throttled { taken: usize },
}

fn failure(fault: Fault, code: Option<i32>, labels: &[&str]) -> TargetError {
    let labels = labels.iter().map(|&label| label.to_owned()).collect();
    TargetError { fault, code, labels, message: format!("drawn: {fault:?} {code:?}") }
}

fn lost() -> TargetError {
    failure(Fault::ConnectionLost, None, &[])
}

impl FaultyTarget {
    pub(super) fn new(seed: u64, temper: Temper, stop: Stop, held: &[Collection]) -> Self {
        let mut state = State::default();
        for collection in held {
            let stored = state.collections.entry(collection.name.clone()).or_default();
            for bytes in &collection.held {
                stored.documents.insert(dump::id_of(bytes), bytes.clone());
                stored.is_created = true;
            }
        }
        Self { seed, temper, stop, state: Mutex::new(state) }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no test panics with the state in its hands")
    }

    fn is_dead(&self) -> bool {
        let inserts = self.state().inserts;
        self.temper.dies_at.is_some_and(|dies_at| inserts >= dies_at)
    }

    /// The numbers for this attempt at this command, whenever it comes.
    fn chance(&self, command: &str, about: u64) -> (Chance, (u64, u64)) {
        let name = number_of(command);
        let attempt = {
            let mut state = self.state();
            let attempts = state.attempts.entry((name, about)).or_default();
            *attempts += 1;
            u64::from(*attempts)
        };
        (Chance::at(self.seed, &[name, about, attempt]), (name, about))
    }

    /// Whether this attempt fails in a way that passes; each command does so a few times at most.
    fn draws_fault(&self, chance: &mut Chance, command: (u64, u64)) -> bool {
        let is_drawn = chance.percent(self.temper.faults);
        let mut state = self.state();
        let faults = state.faults.entry(command).or_default();
        let fails = is_drawn && *faults < FAULTS_PER_BATCH;
        *faults += u32::from(fails);
        fails
    }

    /// A command other than an insert: fails before or after it is carried out, or does not.
    async fn command(
        &self,
        name: &str,
        about: u64,
        carry_out: impl FnOnce(&mut State) -> Result<(), TargetError>,
    ) -> Result<(), TargetError> {
        let (mut chance, command) = self.chance(name, about);
        wait(&mut chance).await;
        if self.is_dead() {
            return Err(failure(Fault::Unreachable, None, &[]));
        }
        if !self.draws_fault(&mut chance, command) {
            return carry_out(&mut self.state());
        }
        let before = chance.percent(50);
        if !before {
            carry_out(&mut self.state())?;
        }
        Err(match chance.below(3) {
            0 => lost(),
            1 => failure(Fault::Refused, Some(11602), &[]),
            _ => failure(Fault::Refused, Some(1), &["RetryableWriteError"]),
        })
    }

    /// How an insert of these documents is answered.
    fn answer(
        &self,
        chance: &mut Chance,
        batch: (u64, u64),
        insert: &Insert,
        documents: &[(u32, Vec<u8>)],
    ) -> Answer {
        if self.is_dead() {
            let gone =
                if chance.percent(50) { lost() } else { failure(Fault::Unreachable, None, &[]) };
            return Answer::Failure { taken: 0, error: gone };
        }
        let bytes: usize = documents.iter().map(|(_, bytes)| bytes.len()).sum();
        if documents.len() > 1 && bytes > self.temper.bytes_max {
            return Answer::Failure { taken: 0, error: lost() };
        }
        let refusal = self.refusal(insert, documents);
        if self.draws_fault(chance, batch) {
            let some = chance.between(0, documents.len());
            if refusal.is_none() && chance.percent(20) {
                return Answer::Throttled { taken: some };
            }
            let (taken, error) = match chance.below(7) {
                0 => (0, lost()),
                1 => (some, lost()),
                2 => (documents.len(), lost()),
                3 => (0, failure(Fault::Unreachable, None, &[])),
                4 => (0, failure(Fault::Refused, Some(10107), &[])),
                5 => (some, failure(Fault::Refused, Some(11600), &["RetryableWriteError"])),
                _ if refusal.is_some() => (0, lost()),
                _ => (documents.len(), failure(Fault::Unconfirmed, Some(64), &[])),
            };
            // What the server refuses as a whole it does not begin.
            return Answer::Failure { taken: if refusal.is_some() { 0 } else { taken }, error };
        }
        match refusal {
            Some(code) => {
                Answer::Failure { taken: 0, error: failure(Fault::Refused, Some(code), &[]) }
            }
            None => Answer::Proper,
        }
    }

    /// The code by which the whole command is refused, if it is.
    fn refusal(&self, insert: &Insert, documents: &[(u32, Vec<u8>)]) -> Option<i32> {
        if insert.validators == Validators::Bypassed && !self.temper.may_bypass {
            return Some(13);
        }
        if documents.len() > self.temper.documents_max {
            return Some(10334);
        }
        if documents.iter().any(|(_, bytes)| dump::has(bytes, "spoilt")) {
            return Some(22);
        }
        let (collection, from) = self.temper.refuses.as_ref()?;
        let is_meant = collection == insert.namespace.collection();
        (is_meant && self.state().collections[collection].inserts > *from).then_some(73)
    }
}

async fn wait(chance: &mut Chance) {
    let milliseconds = u64::try_from(chance.below(40)).expect("few");
    tokio::time::sleep(Duration::from_millis(milliseconds)).await;
}

impl Target for FaultyTarget {
    async fn drop_collection(&self, namespace: &Namespace) -> Result<(), TargetError> {
        self.command("drop", about(namespace), |state| {
            state.collections.remove(namespace.collection());
            Ok(())
        })
        .await
    }

    async fn empty(&self, namespace: &Namespace) -> Result<(), TargetError> {
        self.command("empty", about(namespace), |state| {
            let stored = state.collections.entry(namespace.collection().to_owned()).or_default();
            stored.documents.clear();
            stored.order.clear();
            Ok(())
        })
        .await
    }

    async fn create(
        &self,
        namespace: &Namespace,
        _: &Document,
        _: Option<bson::Uuid>,
    ) -> Result<(), TargetError> {
        self.command("create", about(namespace), |state| {
            let stored = state.collections.entry(namespace.collection().to_owned()).or_default();
            if std::mem::replace(&mut stored.is_created, true) {
                return Err(failure(Fault::Refused, Some(48), &[]));
            }
            Ok(())
        })
        .await
    }

    async fn insert(
        &self,
        insert: &Insert,
        batch: &Batch,
        documents: &Documents,
    ) -> Result<WriteOutcome, TargetError> {
        let frames: Vec<_> = batch.frames().collect();
        let documents: Vec<(u32, Vec<u8>)> = documents
            .indexes(batch.documents)
            .into_iter()
            .map(|index| (index, frames[index as usize].bytes().to_vec()))
            .collect();
        let name = insert.namespace.collection();
        let (mut chance, command) = self.chance(name, batch.first.offset);
        {
            let mut state = self.state();
            state.inserts += 1;
            if self.temper.stops_at == Some(state.inserts) {
                self.stop.request();
            }
            let stored = state.collections.entry(name.to_owned()).or_default();
            stored.inserts += 1;
            let (is_created, has_indexes) = (stored.is_created, !stored.indexes.is_empty());
            if !is_created {
                state.violations.push(format!("{name} got documents before it was created"));
            }
            if has_indexes {
                state.violations.push(format!("{name} got documents after its indexes"));
            }
        }
        wait(&mut chance).await;
        let answer = self.answer(&mut chance, command, insert, &documents);
        let outcome = {
            let mut state = self.state();
            let stored = state.collections.get_mut(name).expect("it was entered above");
            match answer {
                Answer::Proper => Ok(stored.take(&documents, insert)),
                Answer::Throttled { taken } => Ok(stored.take_some(&documents, taken, insert)),
                Answer::Failure { taken, error } => {
                    stored.take(&documents[..taken], insert);
                    Err(error)
                }
            }
        };
        wait(&mut chance).await;
        outcome
    }

    async fn stored(
        &self,
        namespace: &Namespace,
        ids: Vec<RawBson>,
        take: &mut (dyn FnMut(RawDocumentBuf) + Send),
    ) -> Result<(), TargetError> {
        let inserts = self.state().inserts as u64;
        self.command("find", about(namespace) ^ inserts, |_| Ok(())).await?;
        let state = self.state();
        let stored = &state.collections[namespace.collection()].documents;
        let found = ids.into_iter().filter_map(|id| {
            let id = Bson::try_from(id).expect("a value");
            let asked = bson::doc! { "_id": id }.to_vec().expect("encodes");
            let bytes = stored.get(&dump::id_of(&asked))?;
            Some(RawDocumentBuf::from_bytes(bytes.clone()).expect("a document"))
        });
        found.for_each(take);
        Ok(())
    }

    async fn create_indexes(
        &self,
        namespace: &Namespace,
        specs: &[Document],
    ) -> Result<(), TargetError> {
        self.command("createIndexes", about(namespace).wrapping_add(specs.len() as u64), |state| {
            let name = |spec: &Document| spec.get_str("name").expect("a name").to_owned();
            if specs.iter().any(|spec| name(spec).starts_with(REFUSED_INDEX)) {
                return Err(failure(Fault::Refused, Some(67), &[]));
            }
            let stored = state.collections.entry(namespace.collection().to_owned()).or_default();
            stored.indexes.extend(specs.iter().map(name));
            Ok(())
        })
        .await
    }

    async fn allow_mixed_schema(&self, namespace: &Namespace) -> Result<(), TargetError> {
        self.command("collMod", about(namespace), |_| Ok(())).await
    }

    async fn expire_after(&self, namespace: &Namespace, _: &Bson) -> Result<(), TargetError> {
        self.command("collMod", about(namespace), |_| Ok(())).await
    }

    async fn apply_ops(
        &self,
        operations: &[RawDocumentBuf],
        _: Validators,
    ) -> Result<(), TargetError> {
        self.command("applyOps", operations.len() as u64, |_| Ok(())).await
    }

    async fn users_schema(&self) -> Result<i64, TargetError> {
        Ok(5)
    }

    async fn merge_users(&self, _: &MergeUsers) -> Result<(), TargetError> {
        self.command("merge", 0, |_| Ok(())).await
    }
}

/// A number for a collection's name.
fn about(namespace: &Namespace) -> u64 {
    number_of(namespace.collection())
}

fn number_of(name: &str) -> u64 {
    name.bytes().fold(7, |sum: u64, byte| sum.wrapping_mul(131).wrapping_add(byte.into()))
}
