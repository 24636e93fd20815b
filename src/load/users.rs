//! Restores users and roles, after the documents.
//!
//! The server merges them out of two temporary collections. These hold credentials, so they are
//! dropped whatever happens: before, in case a run that was killed left some, and after.

use bson::raw::RawDocument;
use bson::{RawBson, RawDocumentBuf};

use crate::batch::{Batch, BatchLimits, Batcher, BufferPool, Position, ZeroTimestamps};
use crate::error::{Error, ErrorKind};
use crate::frame::Frame;
use crate::limits::{BATCH_BYTES_DEFAULT, BATCH_DOCUMENTS_DEFAULT};
use crate::load::prepare::with_retries;
use crate::load::run::Run;
use crate::namespace::Namespace;
use crate::plan::ExistingPolicy;
use crate::plan::users::{Accounts, Part, Terms};
use crate::report::format::counted;
use crate::report::{Event, Phase};
use crate::target::WriteMode;
use crate::target::keys::KeyFields;
use crate::target::{
    Documents, FieldNames, Insert, MergeUsers, OnRefusal, Others, Target, TargetError, Validators,
};

/// `DuplicateKey`.
const DUPLICATE_KEY: i32 = 11000;

/// `Unauthorized`.
const UNAUTHORIZED: i32 = 13;

/// Restores the users and roles of the plan, if it has any.
pub(super) async fn restore<T: Target>(run: &Run<T>) {
    let Some(plan) = run.plan.users.as_ref().filter(|_| run.goes_on()) else {
        return;
    };
    run.observe(&Event::PhaseBegan(Phase::Users));
    let restored = match run.gathered.accounts(plan) {
        Ok(accounts) => restore_all(run, accounts, &plan.terms).await,
        Err(error) => Err(error),
    };
    let failure = restored.err().map(|error| match error.hint_text() {
        Some(hint) => format!("{error}; {hint}"),
        None => error.to_string(),
    });
    run.observe(&Event::UsersEnded { failure });
}

async fn restore_all<T: Target>(
    run: &Run<T>,
    accounts: &Accounts,
    terms: &Terms,
) -> Result<(), Error> {
    let mut restored = drop_temporary(run, accounts).await;
    if restored.is_ok() {
        restored = bring_in(run, accounts, terms).await;
    }
    let dropped = drop_temporary(run, accounts).await;
    if let Err(error) = &dropped {
        let names: Vec<_> = accounts.temporary().map(|name| format!("`{name}`")).collect();
        let text = format!(
            "{} could not be dropped ({error}) and may hold credentials: drop it by hand",
            names.join(" and ")
        );
        run.observe(&Event::Note { collection: None, text });
    }
    restored.and(dropped)
}

async fn drop_temporary<T: Target>(run: &Run<T>, accounts: &Accounts) -> Result<(), Error> {
    for namespace in accounts.temporary() {
        let dropped = with_retries(run, None, || run.target.drop_collection(namespace));
        dropped.await.map_err(|error| failed("cannot be dropped", &error).of(namespace))?;
    }
    Ok(())
}

/// Inserts both halves and has the server merge them.
async fn bring_in<T: Target>(
    run: &Run<T>,
    accounts: &Accounts,
    terms: &Terms,
) -> Result<(), Error> {
    for part in accounts.users.iter().chain(&accounts.roles) {
        for batch in batches(part) {
            if !run.goes_on() {
                return Err(interrupted());
            }
            insert(run, part, &batch).await?;
        }
    }
    if terms.existing != ExistingPolicy::Drop {
        note_existing(run, accounts.users.as_ref(), "system.users", "user", "users").await;
        note_existing(run, accounts.roles.as_ref(), "system.roles", "role", "roles").await;
    }
    let temporary = |part: &Option<Part>| part.as_ref().map(|part| part.temporary.clone());
    let merge = MergeUsers {
        users: temporary(&accounts.users),
        roles: temporary(&accounts.roles),
        database: terms.database.clone(),
        others: match terms.existing {
            ExistingPolicy::Drop => Others::Removed,
            ExistingPolicy::Add | ExistingPolicy::Refuse | ExistingPolicy::Skip => Others::Kept,
        },
    };
    if !run.goes_on() {
        return Err(interrupted());
    }
    let merged = with_retries(run, None, || run.target.merge_users(&merge));
    merged.await.map_err(|error| failed("cannot be merged into those of the server", &error))
}

/// Says which are there already, because the server keeps them and says nothing. Whoever may not
/// see them is spared the note.
async fn note_existing<T: Target>(
    run: &Run<T>,
    part: Option<&Part>,
    collection: &str,
    one: &str,
    many: &str,
) {
    let Some(part) = part else {
        return;
    };
    let id_of = |document: &RawDocument| document.get("_id").ok().flatten().map(RawBson::from);
    let documents =
        part.documents.documents().filter_map(|bytes| RawDocument::from_bytes(bytes).ok());
    let ids = documents.filter_map(id_of).collect();
    let mut names = Vec::new();
    let mut take = |document: RawDocumentBuf| {
        names.extend(document.get_str("_id").ok().map(str::to_owned));
    };
    let found = run.target.stored(&Namespace::new("admin", collection), ids, &mut take).await;
    if found.is_ok() && !names.is_empty() {
        names.sort();
        let text = format!(
            "{} already there and kept as they are; --drop replaces them: {}",
            counted(names.len() as u64, &format!("{one} is"), &format!("{many} are")),
            names.join(", ")
        );
        run.observe(&Event::Note { collection: None, text });
    }
}

fn batches(part: &Part) -> Vec<Batch> {
    let limits = BatchLimits::new(BATCH_DOCUMENTS_DEFAULT, BATCH_BYTES_DEFAULT);
    let pool = BufferPool::new(0, 0);
    let mut batcher = Batcher::new(0, limits, ZeroTimestamps::Kept, pool);
    let frames = part.documents.documents().filter_map(|bytes| Frame::new(bytes).ok());
    let mut full: Vec<_> =
        frames.filter_map(|frame| batcher.push(frame, Position::default())).collect();
    full.extend(batcher.finish(Position::default()));
    full
}

/// Inserts a batch; a duplicate is one that an attempt without an answer has stored.
async fn insert<T: Target>(run: &Run<T>, part: &Part, batch: &Batch) -> Result<(), Error> {
    let insert = Insert {
        mode: WriteMode::Insert,
        keys: KeyFields::default(),
        names: FieldNames::default(),
        namespace: part.temporary.clone(),
        on_refusal: OnRefusal::GoOn,
        validators: Validators::Applied,
    };
    let send = || async {
        let outcome = run.target.insert(&insert, batch, &Documents::All).await?;
        let refused = outcome.failures.into_iter().find(|one| one.code != DUPLICATE_KEY);
        match refused {
            None => Ok(()),
            Some(failure) => Err(TargetError::from(failure)),
        }
    };
    let inserted = with_retries(run, None, send).await;
    inserted.map_err(|error| failed("takes no documents", &error).of(&part.temporary))
}

fn interrupted() -> Error {
    Error::new(ErrorKind::Write, "not restored, because the run stopped before")
}

fn failed(what: &str, error: &TargetError) -> Error {
    let mut failed = Error::new(ErrorKind::Write, format!("{what}: {}", error.message));
    if let Some(code) = error.code {
        failed = failed.with_code(code);
    }
    if error.code == Some(UNAUTHORIZED) {
        failed = failed.hint("grant the user the role restore on the database admin");
    }
    failed
}
