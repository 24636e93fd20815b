//! Restores a dump: dump → plan → reader → batch → load → target → report.

mod ceiling;
mod existing;
mod keeping;
mod library;
pub(in crate::command) mod preflight;
pub(in crate::command) mod rejecting;
mod special;
mod surveying;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

pub use crate::batch::{BatchLimits, ZeroTimestamps};
pub use crate::command::survey::SurveyDetail;
use crate::command::verify;
use crate::dump::stream::Interrupt;
pub use crate::dump::{ArchivePlace, Location};
use crate::dump::{Dump, Inventory, Layout};
use crate::error::{Error, ErrorKind};
use crate::facts::{ExistingDetail, ServerFacts, Topology};
use crate::load::{self, Assignment, Ending, Sums};
pub use crate::load::{
    DocumentCheck, FailureLimit, LoadSettings, OnRejection, RateLimit, Stop, Workers,
    memory_bytes_max,
};
pub use crate::namespace::filter::NamespaceFilter;
pub use crate::namespace::pattern::{NamespacePattern, Rename};
use crate::plan::{self, RestorePlan};
pub use crate::plan::{
    Directions, DottedHashed, ExistingPolicy, IndexFixes, IndexPolicy, IndexVersion, Insertion,
    Names, OptionPolicy, Order, Selection, UuidPolicy, Validation,
};
use crate::report::{
    Context, DumpFacts, Observer, OptionValue, Outcome, Report, Skipped, TargetFacts,
};
pub use crate::target::FieldNames;
use crate::target::Target;
pub use crate::target::WriteMode;
use crate::target::contents::Contents;
pub use crate::target::keys::KeyFields;
use crate::target::mongo::MongoTarget;
pub use crate::target::mongo::merge::{ConnectionFlags, merge, wants_password};
pub use crate::target::mongo::uri::{ServerUri, is_uri};
pub use crate::target::mongo::{CommitQuorum, Connection, Journal, WriteConcern, key_is_encrypted};
use crate::target::null::NullTarget;
pub use ceiling::{CeilingReached, ceiling};
pub use existing::OccupiedPolicy;
pub use keeping::{LedgerOptions, LedgerPlace, Start};
pub use library::Restore;
use special::Found;
pub use special::{DatabaseUsers, OplogOptions, SpecialOptions};
use surveying::Surveying;

/// What to restore, where to, and how; [`RestoreOptions::new`] has the defaults.
#[derive(Clone, Debug)]
pub struct RestoreOptions {
    /// The dump: its root, the folder of one database, one `.bson` file, an archive, or standard
    /// input.
    pub dump: Location,
    /// Only this database, or the database to restore a folder or file to.
    pub database: Option<String>,
    /// Only this collection, or the collection to restore a file to.
    pub collection: Option<String>,
    /// Where it goes.
    pub destination: Destination,
    /// What is asked of the plan.
    pub selection: Selection,
    /// Whether the collections to restore may hold documents.
    pub occupied: OccupiedPolicy,
    /// How many members must be ready before an index is committed.
    pub commit_quorum: Option<CommitQuorum>,
    /// What is asked of users, roles and the oplog.
    pub special: SpecialOptions,
    /// What is kept for a restore that goes on with this one.
    pub ledger: LedgerOptions,
    /// What is done about damage in the dump.
    pub damage: Damage,
    /// The folder that keeps the documents which are refused.
    pub rejects: Option<PathBuf>,
    /// Whether what was brought is compared with the dump afterwards, and how many differing
    /// documents of a collection are listed then.
    pub verify: Option<usize>,
    /// Whether the target is surveyed before and after, and how closely.
    pub survey: Option<SurveyDetail>,
    /// How the plan is run.
    pub settings: LoadSettings,
    /// Whether it is run at all.
    pub mode: Mode,
    /// The options as they are told in the report.
    pub told: Vec<OptionValue>,
}

impl RestoreOptions {
    /// A restore of the whole dump into this destination, with the defaults of the command line.
    pub fn new(dump: impl Into<PathBuf>, destination: Destination) -> Self {
        Self {
            dump: Location::Path(dump.into()),
            database: None,
            collection: None,
            destination,
            selection: Selection::default(),
            occupied: OccupiedPolicy::default(),
            commit_quorum: None,
            special: SpecialOptions::default(),
            ledger: LedgerOptions::default(),
            damage: Damage::default(),
            rejects: None,
            verify: None,
            survey: None,
            settings: LoadSettings::default(),
            mode: Mode::Restore,
            told: Vec::new(),
        }
    }

    /// Looks for options that exclude each other, without touching anything; [`restore`] does so
    /// first.
    ///
    /// # Errors
    ///
    /// Of kind [`ErrorKind::Usage`].
    pub fn check(&self) -> Result<(), Error> {
        special::check(self)?;
        let usage = |message: &str| Error::new(ErrorKind::Usage, message);
        match (self.verify, &self.destination) {
            (Some(_), _) if self.special.oplog.is_some() => Err(usage(
                "--verify cannot be used with --oplog-replay: an oplog changes documents, so that \
                 they rightly differ from the dump",
            )
            .hint("leave one of them out")),
            (Some(_), Destination::Null) => {
                Err(usage("--verify needs a server: with --null nothing is sent"))
            }
            (Some(_), _)
                if matches!(self.settings.write_mode, WriteMode::Skip | WriteMode::Merge) =>
            {
                Err(usage(
                    "--verify cannot be used with --mode skip or merge: documents that were there \
                     rightly differ from the dump",
                )
                .hint("leave one of them out"))
            }
            _ => existing::check(self),
        }
    }
}

/// What is done about damage in a dump.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Damage {
    /// It ends the reading of its collection, or of its archive.
    #[default]
    EndsCollection,
    /// It is read around, and what is lost is kept aside.
    ReadAround {
        /// Where; beside the dump unless it is said.
        folder: Option<PathBuf>,
    },
}

impl Damage {
    /// Where lost bytes of this dump are kept, if damage is read around.
    fn folder(&self, dump: &Location) -> Option<PathBuf> {
        let Self::ReadAround { folder } = self else {
            return None;
        };
        let beside = || {
            let path = std::path::absolute(dump.file()?).ok()?;
            let name = path.file_name()?.to_string_lossy().into_owned();
            Some(path.with_file_name(format!("{name}.salvage")))
        };
        // What comes through a pipe has no place of its own.
        Some(folder.clone().or_else(beside).unwrap_or_else(|| PathBuf::from("dump.salvage")))
    }
}

/// Where documents go.
#[derive(Clone, Debug)]
pub enum Destination {
    /// To a server.
    Server(Connection),
    /// Nowhere: they are read, put into batches, and dropped.
    Null,
}

impl Destination {
    /// The server at this connection string.
    pub fn server(uri: impl Into<String>) -> Self {
        Self::Server(Connection::new(uri))
    }
}

/// Whether a plan is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// It is.
    Restore,
    /// It is only made.
    DryRun,
}

/// What a restore results in.
#[derive(Debug)]
pub enum Restored {
    /// The plan as text; nothing was touched.
    Planned(String),
    /// What happened.
    Ran(Box<Report>),
}

/// Restores a dump, or only plans it.
///
/// `began` is the moment from which the times of events and of the report count.
///
/// An error is returned only for what keeps the run from beginning; from then on everything is in
/// the report.
pub async fn restore(
    options: &RestoreOptions,
    observer: Arc<dyn Observer>,
    stop: Stop,
    began: Instant,
) -> Result<Restored, Error> {
    options.check()?;
    let (layout, inventory) = list(options, &stop).await?;
    options.selection.names.check(&inventory)?;
    let names = &options.selection.names;
    match &options.destination {
        Destination::Null => {
            let facts = ServerFacts::null();
            let run = Prepared { options, layout, inventory, facts, began, left_alone: 0 };
            let plan = run.plan(&NullTarget).await?;
            run.carry_out(plan, Arc::new(NullTarget), "nowhere (null target)", observer, stop).await
        }
        Destination::Server(connection) => {
            let (target, mut facts) = MongoTarget::connect(connection).await?;
            let target = target.with_commit_quorum(options.commit_quorum, &facts)?;
            options.selection.uuids.check(&facts)?;
            let databases = names.databases(&inventory);
            let detail = match (options.selection.uuids, options.ledger.start) {
                (UuidPolicy::New, Start::Anew) => ExistingDetail::Names,
                (UuidPolicy::Preserve, _) | (_, Start::Resumed) => ExistingDetail::Uuids,
            };
            let databases = databases.iter().map(String::as_str);
            facts.existing = target.existing(databases.clone(), detail).await?;
            let target = target.with_journal_of(&facts, databases).await;
            let description = target.description().to_owned();
            let mut run = Prepared { options, layout, inventory, facts, began, left_alone: 0 };
            let mut plan = run.plan(&target).await?;
            run.left_alone = existing::settle(&target, run.found(), &mut plan).await?;
            let mode = run.options.settings.write_mode;
            existing::refuse_updates(&plan, mode)?;
            preflight::check(&target, &run.facts, &mut plan, mode).await?;
            // Futures of these sizes are not copied about.
            let first = Box::pin(Surveying::begin(run.found(), &target, &plan, &stop));
            let surveying = first.await;
            let restored = run.carry_out(plan, Arc::new(target), &description, observer, stop);
            let restored = Box::pin(restored).await?;
            Ok(Box::pin(surveying.end(restored)).await)
        }
    }
}

/// Lists the dump, away from the thread that listens for signals: the list of an archive may come
/// through a pipe, at its own time.
async fn list(options: &RestoreOptions, stop: &Stop) -> Result<(Layout, Inventory), Error> {
    let (options, stop_heard) = (options.clone(), stop.clone());
    let interrupt = Interrupt::when(move || stop_heard.is_requested());
    let listed = load::aside(move || {
        let (database, collection) = (options.database.as_deref(), options.collection.as_deref());
        let dump = Dump::at(&options.dump, database, collection)?;
        let dump = dump.filtered(options.selection.names.filter.clone());
        Ok((dump.layout().clone(), dump.scan_unless(interrupt)?))
    });
    let listed = listed.await;
    if listed.is_err() && stop.is_requested() {
        return Err(Error::new(ErrorKind::Interrupted, "stopped before anything was restored"));
    }
    listed
}

/// A restore whose dump is listed and whose target is known.
struct Prepared<'a> {
    options: &'a RestoreOptions,
    layout: Layout,
    inventory: Inventory,
    facts: ServerFacts,
    began: Instant,
    /// Collections that exist and are left alone, as was asked for.
    left_alone: usize,
}

impl Prepared<'_> {
    fn found(&self) -> Found<'_> {
        let Self { options, layout, inventory, facts, .. } = self;
        Found { options, layout, inventory, facts }
    }

    async fn plan<T: Target>(&self, target: &T) -> Result<RestorePlan, Error> {
        let mut plan = plan::plan(&self.inventory, self.options.selection.clone(), &self.facts);
        special::plan(self.found(), target, &mut plan).await?;
        Ok(plan)
    }

    async fn carry_out<T: Target + Contents>(
        mut self,
        mut plan: RestorePlan,
        target: Arc<T>,
        description: &str,
        observer: Arc<dyn Observer>,
        stop: Stop,
    ) -> Result<Restored, Error> {
        self.refuse_empty(&plan)?;
        rejecting::check(self.found())?;
        let kept = keeping::keep(self.found(), &mut plan)?;
        if self.options.mode == Mode::DryRun {
            return Ok(Restored::Planned(plan::text::describe(&plan)));
        }
        let settings = LoadSettings {
            zero_timestamps: ZeroTimestamps::on(self.facts.keeps_zero_timestamps()),
            document_check: match self.options.damage {
                // Who reads around damage checks every document.
                Damage::ReadAround { .. } => DocumentCheck::Extent,
                Damage::EndsCollection => self.options.settings.document_check,
            },
            ..self.options.settings.clone()
        };
        let workers = settings.workers;
        let mut context = self.context(&plan, description);
        let began = self.began;
        let ledger = kept.as_ref().map(|kept| Arc::clone(&kept.ledger));
        let salvage = self.options.damage.folder(&self.options.dump);
        let kept_in = salvage.as_ref().map(|folder| folder.display().to_string());
        let rejects = rejecting::open(self.found(), &plan, ledger.as_deref())?;
        // The plan knows all that is needed from here on; of very many collections both are large.
        self.inventory = Inventory::default();
        let sums = self.options.verify.map(|_| Arc::new(Sums::new(plan.collections.len())));
        let verified = sums.as_ref().map(|sums| (plan.clone(), Arc::clone(sums)));
        let (contents, stopped) = (Arc::clone(&target), stop.clone());
        let assignment = Assignment {
            plan,
            target,
            settings,
            observer,
            stop,
            ledger,
            salvage,
            rejects,
            sums,
            began,
        };
        let (tally, ending) = load::load(assignment).await;
        context.outcome = outcome(&ending);
        let mut report = Report::new(&tally, context);
        report.paced(workers.fixed(), workers.most());
        if kept_in.is_some() {
            report.salvaged(&tally, kept_in);
        }
        let ledger = kept.and_then(|kept| kept.close(&report));
        report.ledger = ledger.map(|path| path.display().to_string());
        if let Some((plan, sums)) = verified {
            self.verify(&mut report, &plan, &sums, contents.as_ref(), &stopped).await?;
        }
        Ok(Restored::Ran(Box::new(report)))
    }

    /// Compares what was brought with the dump, where that was asked for.
    async fn verify<T: Contents>(
        &self,
        report: &mut Report,
        plan: &RestorePlan,
        sums: &Sums,
        contents: &T,
        stop: &Stop,
    ) -> Result<(), Error> {
        let Some(differences) = self.options.verify else {
            return Ok(());
        };
        let LoadSettings { readers, retry_for, .. } = self.options.settings;
        let restored = verify::Restored {
            plan,
            facts: &self.facts,
            report,
            sums,
            differences,
            at_once: readers,
            retry_for,
        };
        let verification = verify::after_restore(&restored, contents, stop).await?;
        report.verified(verification);
        Ok(())
    }

    fn context(&self, plan: &RestorePlan, description: &str) -> Context {
        let skipped = plan.skipped.iter().map(|skipped| Skipped {
            what: skipped.what.clone(),
            reason: skipped.reason.clone(),
            is_problem: skipped.is_problem,
        });
        let has_version = self.facts.topology != Topology::Null;
        Context {
            tool_version: env!("CARGO_PKG_VERSION").to_owned(),
            target: TargetFacts {
                description: description.to_owned(),
                server_version: has_version.then(|| self.facts.version.to_string()),
            },
            dump: DumpFacts {
                path: self.options.dump.to_string(),
                server_version: self.inventory.server_version.map(|version| version.to_string()),
                tool_version: self.inventory.tool_version.clone(),
                is_made: matches!(self.options.dump, Location::Made(_)),
            },
            skipped: skipped.collect(),
            outcome: Outcome::Finished,
            options: self.options.told.clone(),
        }
    }

    /// A dump of which nothing can be restored is an error: success would be a lie.
    fn refuse_empty(&self, plan: &RestorePlan) -> Result<(), Error> {
        let is_something = self.left_alone > 0 || !plan.collections.is_empty();
        if is_something || plan.users.is_some() || plan.oplog.is_some() {
            return Ok(());
        }
        let mut reasons: Vec<String> = plan
            .skipped
            .iter()
            .take(5)
            .map(|skipped| format!("{}: {}", skipped.what, skipped.reason))
            .collect();
        if plan.skipped.len() > reasons.len() {
            reasons.push(format!("and {} more", plan.skipped.len() - reasons.len()));
        }
        let why = if reasons.is_empty() { "it is empty".to_owned() } else { reasons.join("; ") };
        Err(Error::new(ErrorKind::Plan, format!("nothing in the dump can be restored: {why}"))
            .in_file(self.options.dump.to_string())
            .hint("`restorm inspect` shows what a dump holds"))
    }
}

/// How a run ended, as a report tells it.
pub(in crate::command) fn outcome(ending: &Ending) -> Outcome {
    match ending {
        Ending::Finished => Outcome::Finished,
        Ending::Interrupted => Outcome::Interrupted,
        Ending::Stopped(error) => Outcome::Stopped {
            error: match error.hint_text() {
                Some(hint) => format!("{error}; {hint}"),
                None => error.to_string(),
            },
        },
    }
}
