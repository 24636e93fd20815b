//! Reads and sends once more what another server may have lost.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::task::JoinSet;

use crate::load::intake::{self, Missing, Reading};
use crate::load::run::{Queues, Run};
use crate::load::settle::{self, Answer};
use crate::load::worker;
use crate::target::Target;

/// Sends doubtful documents again, until none is doubtful or the run ends.
pub(super) async fn send_doubtful<T: Target>(run: &Arc<Run<T>>) {
    loop {
        let doubtful = run.settling.take_doubtful();
        if doubtful.is_empty() {
            return;
        }
        // What was not answered for to its end belongs to a run that ends.
        let may_be_sent = |answer: &Answer| run.goes_on() && answer.done.is_some();
        let (again, given_up): (Vec<_>, Vec<_>) = doubtful.into_iter().partition(may_be_sent);
        for answer in &given_up {
            settle::abandon(run, answer);
        }
        settle::go_on(run);
        let settler = tokio::spawn(settle::keep_settling(Arc::clone(run)));
        send(run, &again).await;
        settle::end(run, settler).await;
    }
}

async fn send<T: Target>(run: &Arc<Run<T>>, doubtful: &[Answer]) {
    let missing = Arc::new(missing(doubtful));
    let (to_send, to_read) = async_channel::unbounded();
    for &collection in missing.keys() {
        run.begin(collection);
        // The channel has no bound, and its other end is here.
        let _ = to_send.try_send(collection);
    }
    drop(to_send);
    let queues = Queues::new(run.settings.workers);
    let (gate, _opened) = async_channel::bounded(1);
    let reading = Reading::Again(Arc::clone(&missing));
    let readers = intake::spawn(run, &to_read, &queues, gate, &reading);
    let mut workers = JoinSet::new();
    for inbox in queues.into_inboxes() {
        workers.spawn(worker::work(Arc::clone(run), inbox));
    }
    if let Err(error) = readers.await {
        run.fail(error);
    }
    run.join(workers).await;
    // Until now they kept their collections from being called complete.
    for answer in doubtful {
        run.finish(answer.collection);
    }
}

/// What is to be read again, by collection.
fn missing(doubtful: &[Answer]) -> HashMap<usize, Missing> {
    let mut all: HashMap<usize, Missing> = HashMap::new();
    for answer in doubtful {
        let missing = all.entry(answer.collection).or_default();
        missing.documents += answer.documents;
        if let Some(done) = answer.done {
            missing.ranges.insert(done.from..done.to);
        }
    }
    all
}
