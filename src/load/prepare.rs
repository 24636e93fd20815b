//! Brings collections into being before their documents come.

use std::sync::Arc;

use tokio::time::Instant;

use crate::dump::inventory::CollectionKind;
use crate::error::{Error, ErrorKind};
use crate::load::retry::{self, Verdict};
use crate::load::run::Run;
use crate::plan::{CollectionPlan, Creation};
use crate::report::Event;
use crate::target::{Target, TargetError};

/// `NamespaceExists`.
const EXISTS: i32 = 48;

/// `Unauthorized`.
const UNAUTHORIZED: i32 = 13;

/// Takes collections from the plan and prepares them, until none is left. Tells of those that can
/// be read; where all are read together, of those that the target refuses as well, so that nobody
/// waits for them.
pub(super) async fn prepare<T: Target>(run: Arc<Run<T>>, ready: async_channel::Sender<usize>) {
    let tells_all = run.plan.archive().is_some();
    while run.goes_on() {
        let Some(collection) = run.next_to_prepare() else {
            return;
        };
        let plan = &run.plan.collections[collection];
        if plan.kind == CollectionKind::View {
            continue;
        }
        let refused = bring_about(&run, collection).await.err();
        match &refused {
            Some(error) => run.refuse_collection(collection, error),
            None => run.begin(collection),
        }
        if refused.is_none() && plan.data.is_none() {
            run.read_to_end(collection);
            run.finish(collection);
        } else if refused.is_none() || tells_all {
            // Whoever reads has ended early where nobody listens.
            if ready.send(collection).await.is_err() && refused.is_none() {
                run.finish(collection);
                return;
            }
        }
    }
}

/// Drops and creates a collection or view as the plan says.
pub(super) async fn bring_about<T: Target>(run: &Run<T>, collection: usize) -> Result<(), Error> {
    let plan = &run.plan.collections[collection];
    run.observe(&Event::PrepareBegan { collection });
    if plan.creation == Creation::DropAndCreate {
        let dropped = with_retries(run, collection, || run.target.drop_collection(&plan.namespace));
        dropped.await.map_err(|error| refused("cannot be dropped", plan, &error))?;
    }
    if plan.creation == Creation::Empty {
        let emptied = with_retries(run, collection, || run.target.empty(&plan.namespace));
        emptied.await.map_err(|error| refused("cannot be emptied", plan, &error))?;
    }
    if matches!(plan.creation, Creation::Create | Creation::DropAndCreate) {
        let created = with_retries(run, collection, || {
            run.target.create(&plan.namespace, &plan.options, plan.uuid)
        });
        match created.await {
            // Someone else, or an attempt whose answer was lost, made it in the meantime.
            Err(error) if error.code == Some(EXISTS) => {}
            other => other.map_err(|error| refused("cannot be created", plan, &error))?,
        }
    }
    run.observe(&Event::Prepared { collection });
    Ok(())
}

/// Repeats a command that may be repeated, with pauses, for as long as the settings allow.
pub(super) async fn with_retries<T, C, F>(
    run: &Run<T>,
    collection: impl Into<Option<usize>>,
    command: C,
) -> Result<(), TargetError>
where
    T: Target,
    C: Fn() -> F,
    F: Future<Output = Result<(), TargetError>>,
{
    let collection = collection.into();
    let began = Instant::now();
    let mut repetition = 0;
    loop {
        let error = match command().await {
            Ok(()) => return Ok(()),
            Err(error) => error,
        };
        let may_repeat = retry::verdict(&error, false) == Verdict::Retry
            && began.elapsed() < run.settings.retry_for
            && run.goes_on();
        if !may_repeat {
            return Err(error);
        }
        repetition += 1;
        let delay = retry::delay_after(&error.message, repetition);
        run.observe(&Event::Retried { collection, reason: error.message, delay });
        tokio::time::sleep(delay).await;
    }
}

fn refused(what: &str, plan: &CollectionPlan, error: &TargetError) -> Error {
    let mut refused = Error::new(ErrorKind::Write, format!("{what}: {}", error.message));
    if let Some(code) = error.code {
        refused = refused.with_code(code);
    }
    if error.code == Some(UNAUTHORIZED) {
        let database = plan.namespace.database();
        refused = refused.hint(format!("grant the user the role readWrite on `{database}`"));
    }
    refused
}
