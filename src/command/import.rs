//! Imports texts: text → reader → batch → load → target → report, the same loader with a plan of
//! one collection.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use bson::oid::ObjectId;

use crate::batch::ZeroTimestamps;
use crate::command::restore::{Destination, outcome, preflight, rejecting};
use crate::dump::inventory::{CollectionKind, DumpEntry, Inventory, Origin};
use crate::dump::texts::Texts;
pub use crate::dump::texts::table::{
    Blanks, Names, NumbersInNames, ParseGrace, Separator, Table, Typing,
};
pub use crate::dump::texts::{JsonLayout, TextForm, TextInput};
use crate::error::{Error, ErrorKind};
use crate::facts::{ExistingDetail, ServerFacts, Topology};
use crate::load::rejects::{self, Earlier, Rejects};
use crate::load::{self, Assignment, LoadSettings, Stop};
use crate::namespace::Namespace;
use crate::plan::carried::RejectsLength;
use crate::plan::{self, ExistingPolicy, Insertion, RestorePlan, Selection, Validation};
use crate::report::{Context, DumpFacts, Observer, OptionValue, Outcome, Report, TargetFacts};
use crate::target::Target;
use crate::target::mongo::MongoTarget;
use crate::target::null::NullTarget;

/// What to import, where to, and how.
#[derive(Clone, Debug)]
pub struct ImportOptions {
    /// The texts.
    pub inputs: Vec<TextInput>,
    /// How documents are written down in them.
    pub form: TextForm,
    /// The collection that takes the documents.
    pub namespace: Namespace,
    /// The server, or nowhere.
    pub destination: Destination,
    /// What happens to the collection where it exists.
    pub existing: ExistingPolicy,
    /// Whether its validator judges the documents.
    pub validation: Validation,
    /// Whether the order of the texts is kept.
    pub insertion: Insertion,
    /// The folder that keeps what is refused.
    pub rejects: Option<PathBuf>,
    /// How the plan is run; its readers are the threads that turn text into documents.
    pub settings: LoadSettings,
    /// The options as they are told in the report.
    pub told: Vec<OptionValue>,
}

/// Imports texts.
///
/// # Errors
///
/// Only for what keeps the run from beginning; from then on everything is in the report.
pub async fn import(
    options: &ImportOptions,
    observer: Arc<dyn Observer>,
    stop: Stop,
    began: Instant,
) -> Result<Report, Error> {
    let texts = Arc::new(Texts::locate(options.inputs.clone(), options.form.clone())?);
    let run = Prepared { options, texts, began };
    match &options.destination {
        Destination::Null => {
            let facts = ServerFacts::null();
            let plan = run.plan(&facts)?;
            let target = (Arc::new(NullTarget), "nowhere (null target)".to_owned());
            run.carry_out(plan, &facts, target, observer, stop).await
        }
        Destination::Server(connection) => {
            let (target, mut facts) = MongoTarget::connect(connection).await?;
            let databases = || std::iter::once(options.namespace.database());
            facts.existing = target.existing(databases(), ExistingDetail::Names).await?;
            let target = target.with_journal_of(&facts, databases()).await;
            let mut plan = run.plan(&facts)?;
            preflight::check(&target, &facts, &mut plan, options.settings.write_mode).await?;
            let description = target.description().to_owned();
            let target = (Arc::new(target), description);
            Box::pin(run.carry_out(plan, &facts, target, observer, stop)).await
        }
    }
}

/// An import whose texts are there.
struct Prepared<'a> {
    options: &'a ImportOptions,
    texts: Arc<Texts>,
    began: Instant,
}

impl Prepared<'_> {
    /// The plan of one collection.
    fn plan(&self, facts: &ServerFacts) -> Result<RestorePlan, Error> {
        let options = self.options;
        let entry = DumpEntry {
            namespace: options.namespace.clone(),
            kind: CollectionKind::Collection,
            data: Some(Origin::Text(Arc::clone(&self.texts))),
            metadata: None,
            metadata_path: None,
            problem: None,
        };
        let inventory = Inventory { entries: vec![entry], ..Inventory::default() };
        let selection = Selection {
            existing: options.existing,
            validation: options.validation,
            insertion: options.insertion,
            ..Selection::default()
        };
        let plan = plan::plan(&inventory, selection, facts);
        match plan.skipped.first() {
            None => Ok(plan),
            Some(skipped) => {
                Err(Error::new(ErrorKind::Plan, skipped.reason.clone()).of(&options.namespace))
            }
        }
    }

    async fn carry_out<T: Target>(
        &self,
        plan: RestorePlan,
        facts: &ServerFacts,
        (target, description): (Arc<T>, String),
        observer: Arc<dyn Observer>,
        stop: Stop,
    ) -> Result<Report, Error> {
        let zero_timestamps = ZeroTimestamps::on(facts.keeps_zero_timestamps());
        let settings = LoadSettings { zero_timestamps, ..self.options.settings.clone() };
        let rejects = self.rejects(&plan)?;
        let has_version = facts.topology != Topology::Null;
        let mut context = Context {
            tool_version: env!("CARGO_PKG_VERSION").to_owned(),
            target: TargetFacts {
                description,
                server_version: has_version.then(|| facts.version.to_string()),
            },
            dump: DumpFacts {
                is_made: false,
                path: self.texts.path().display().to_string(),
                server_version: None,
                tool_version: None,
            },
            skipped: Vec::new(),
            outcome: Outcome::Finished,
            options: self.options.told.clone(),
        };
        let assignment = Assignment {
            plan,
            target,
            settings,
            observer,
            stop,
            ledger: None,
            salvage: None,
            rejects,
            sums: None,
            began: self.began,
        };
        let (tally, ending) = load::load(assignment).await;
        context.outcome = outcome(&ending);
        Ok(Report::new(&tally, context))
    }

    /// Opens the folder for what is refused, where one was named.
    fn rejects(&self, plan: &RestorePlan) -> Result<Option<Arc<Rejects>>, Error> {
        let Some(folder) = &self.options.rejects else {
            return Ok(None);
        };
        rejects::check_empty(folder)?;
        let places = plan.collections.iter();
        let places = places.map(|one| (rejecting::place(one, None), RejectsLength::default()));
        let run = ObjectId::new();
        let opened = Rejects::open(folder, run, Earlier::Refused, places.collect())?;
        Ok(Some(Arc::new(opened)))
    }
}
