//! Takes stock of a server: target → report; nothing is changed there.

mod fields;
mod sample;

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use bson::RawDocumentBuf;
use futures_util::{StreamExt, stream};

use crate::command::restore::{Connection, NamespaceFilter};
use crate::error::{Error, ErrorKind};
use crate::facts::{ExistingCollection, ExistingDetail, ServerFacts, Topology};
use crate::limits::{
    SURVEY_AT_ONCE, SURVEY_BYTES, SURVEY_COLLECTIONS_MAX, SURVEY_DETAILED_MAX, SURVEY_DOCUMENTS,
    SURVEY_OF_RESTORE_WITHIN, SURVEY_SAMPLES, SURVEY_WITHIN,
};
use crate::load::Stop;
use crate::namespace::Namespace;
use crate::report::format::counted;
use crate::report::survey::{Deployment, SCHEMA, SurveyedIndex, SurveyedNamespace, SurveyedServer};
use crate::report::{OptionValue, Survey, SurveyReport, TargetFacts};
use crate::target::TargetError;
use crate::target::contents::Contents;
use crate::target::mongo::MongoTarget;
use crate::target::mongo::survey::{From, ServerTold, Sizes};
use fields::Inventory;

/// Databases of the server itself.
const OWN_DATABASES: [&str; 3] = ["admin", "config", "local"];

/// How closely collections are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SurveyDetail {
    /// Documents of each collection whose fields are listed, half of them from each end.
    pub documents: u32,
    /// Documents of each collection that are shown.
    pub samples: usize,
    /// How long all of it may take; what is left then is not surveyed.
    pub time_max: Duration,
}

impl SurveyDetail {
    /// How closely a restore looks at its target.
    pub fn of_restore() -> Self {
        Self { time_max: SURVEY_OF_RESTORE_WITHIN, ..Self::default() }
    }
}

impl Default for SurveyDetail {
    fn default() -> Self {
        Self { documents: SURVEY_DOCUMENTS, samples: SURVEY_SAMPLES, time_max: SURVEY_WITHIN }
    }
}

/// What is surveyed.
#[derive(Clone, Debug)]
pub struct SurveyOptions {
    /// The server.
    pub connection: Connection,
    /// Which collections; those of the server's own databases only where they are named.
    pub filter: NamespaceFilter,
    /// How closely.
    pub detail: SurveyDetail,
    /// The options as they are told in the report.
    pub told: Vec<OptionValue>,
}

/// Takes stock of a server.
///
/// # Errors
///
/// Where the server cannot be reached or does not list what it holds, and where somebody asked for
/// the end; what else cannot be found out is noted.
pub async fn survey(options: &SurveyOptions, stop: &Stop) -> Result<SurveyReport, Error> {
    let (target, facts) = MongoTarget::connect(&options.connection).await?;
    let databases = target.databases().await.map_err(|error| {
        let message = format!("the databases cannot be listed: {error}");
        Error::new(ErrorKind::Connect, message).hint("the user needs a role such as read")
    })?;
    let is_wanted = |namespace: &Namespace| {
        let is_own = OWN_DATABASES.contains(&namespace.database());
        options.filter.takes(namespace) && !(is_own && options.filter.includes.is_empty())
    };
    // The server's own databases are not even looked at where nothing names them.
    let databases = databases.iter().map(String::as_str).filter(|database| {
        !(OWN_DATABASES.contains(database) && options.filter.includes.is_empty())
    });
    let existing = target.existing(databases, ExistingDetail::Names).await?;
    let existing = existing.into_iter().filter(|one| is_wanted(&one.namespace)).collect();
    let taken = take(&target, &facts, existing, &options.detail, stop).await?;
    Ok(SurveyReport {
        schema: SCHEMA,
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        target: TargetFacts {
            description: target.description().to_owned(),
            server_version: Some(facts.version.to_string()),
        },
        options: options.told.clone(),
        survey: taken,
    })
}

/// Surveys those of these collections that are there.
pub(super) async fn of(
    target: &MongoTarget,
    facts: &ServerFacts,
    wanted: &[Namespace],
    detail: &SurveyDetail,
    stop: &Stop,
) -> Result<Survey, Error> {
    let wanted: std::collections::BTreeSet<_> = wanted.iter().collect();
    let mut databases: Vec<_> = wanted.iter().map(|one| one.database()).collect();
    databases.dedup();
    let existing = target.existing(databases.into_iter(), ExistingDetail::Names).await?;
    let existing = existing.into_iter().filter(|one| wanted.contains(&one.namespace)).collect();
    take(target, facts, existing, detail, stop).await
}

async fn take(
    target: &MongoTarget,
    facts: &ServerFacts,
    mut existing: Vec<ExistingCollection>,
    detail: &SurveyDetail,
    stop: &Stop,
) -> Result<Survey, Error> {
    let began = Instant::now();
    let told = target.told().await.map_err(|error| {
        Error::new(ErrorKind::Connect, format!("the server does not tell its state: {error}"))
    })?;
    existing.retain(|one| is_of_users(&one.namespace));
    existing.sort_by(|one, other| one.namespace.cmp(&other.namespace));
    let mut notes = Vec::new();
    let too_many = existing.len().saturating_sub(SURVEY_COLLECTIONS_MAX);
    if too_many > 0 {
        existing.truncate(SURVEY_COLLECTIONS_MAX);
        let number = counted(too_many as u64, "further collection is", "further collections are");
        notes.push(format!("{number} not surveyed"));
    }
    let surveying = Surveying { target, detail, stop, began };
    let mut measured = surveying.measure(&existing, &mut notes).await;
    let engine = measured.iter().find_map(|(_, sizes)| sizes.storage_engine.clone());
    let server = server(facts, told, engine);
    if server.storage_engine.is_none() && server.topology != Deployment::Sharded {
        notes.push("the storage engine is not told to this user".to_owned());
    }
    // Where not all can be looked at, the largest ones matter most.
    measured.sort_by_key(|(one, _)| std::cmp::Reverse(one.data_bytes));
    let measured = measured.into_iter().map(|(one, _)| one).collect();
    let namespaces = surveying.look_into(measured, &mut notes).await;
    if stop.is_requested() {
        return Err(Error::new(ErrorKind::Interrupted, "the survey was stopped"));
    }
    Ok(Survey::new(server, namespaces, notes, began.elapsed()))
}

/// Whether a collection is one that users fill: a server keeps its own beside them.
fn is_of_users(namespace: &Namespace) -> bool {
    !namespace.is_system() || namespace.collection() == "system.js"
}

fn server(facts: &ServerFacts, told: ServerTold, engine: Option<String>) -> SurveyedServer {
    SurveyedServer {
        version: facts.version.to_string(),
        product: facts.product.name(),
        storage_engine: told.storage_engine.or(engine),
        topology: match facts.topology {
            Topology::ReplicaSet => Deployment::ReplicaSet,
            Topology::Sharded => Deployment::Sharded,
            Topology::Standalone | Topology::Null => Deployment::Standalone,
        },
        replica_set: told.replica_set,
        members: told.members,
        shards: told.shards,
    }
}

/// A survey that is being taken.
struct Surveying<'a> {
    target: &'a MongoTarget,
    detail: &'a SurveyDetail,
    stop: &'a Stop,
    began: Instant,
}

impl Surveying<'_> {
    fn is_over(&self) -> bool {
        self.stop.is_requested() || self.began.elapsed() >= self.detail.time_max
    }

    /// Asks for the sizes and indexes of all collections.
    async fn measure(
        &self,
        existing: &[ExistingCollection],
        notes: &mut Vec<String>,
    ) -> Vec<(SurveyedNamespace, Sizes)> {
        let asked = existing
            .iter()
            .map(async |one| if self.is_over() { None } else { Some(self.measured(one).await) });
        let measured: Vec<_> = stream::iter(asked).buffered(SURVEY_AT_ONCE).collect().await;
        let missing = measured.iter().filter(|one| one.is_none()).count();
        if missing > 0 {
            let number = counted(missing as u64, "collection is", "collections are");
            notes.push(format!("{number} not surveyed: the time for it was over"));
        }
        measured.into_iter().flatten().collect()
    }

    async fn measured(&self, one: &ExistingCollection) -> (SurveyedNamespace, Sizes) {
        let mut found = SurveyedNamespace::new(one.namespace.clone(), one.kind.as_str());
        if found.is_view() {
            return (found, Sizes::default());
        }
        let mut sizes = Sizes::default();
        match self.target.sizes(&one.namespace).await {
            Ok(told) => sizes = told,
            Err(error) => found.notes.push(untold("its sizes are", &error)),
        }
        found.is_sharded = sizes.is_sharded;
        found.documents = sizes.documents;
        found.data_bytes = sizes.data_bytes;
        found.storage_bytes = sizes.storage_bytes;
        found.index_bytes = sizes.index_bytes;
        if found.kind == "timeseries" {
            match self.target.count_unpacked(&one.namespace).await {
                Ok(documents) => found.documents = Some(documents),
                Err(error) => found.notes.push(untold("its documents are", &error)),
            }
        }
        match Contents::indexes(self.target, &one.namespace).await {
            Ok(listed) => found.indexes = Some(indexes(&listed, &sizes)),
            Err(error) => found.notes.push(untold("its indexes are", &error)),
        }
        (found.measured(), sizes)
    }

    /// Looks at documents of the first of these collections.
    async fn look_into(
        &self,
        measured: Vec<SurveyedNamespace>,
        notes: &mut Vec<String>,
    ) -> Vec<SurveyedNamespace> {
        let looked = measured.into_iter().enumerate().map(async |(place, one)| {
            if self.detail.samples == 0 && self.detail.documents == 0 || one.is_view() {
                return (one, true);
            }
            if place >= SURVEY_DETAILED_MAX || self.is_over() {
                return (one, false);
            }
            (self.looked_into(one).await, true)
        });
        let looked: Vec<_> = stream::iter(looked).buffered(SURVEY_AT_ONCE).collect().await;
        let left = looked.iter().filter(|(_, is_looked_into)| !is_looked_into).count();
        if left > 0 {
            let number = counted(left as u64, "collection", "collections");
            notes.push(format!("documents of the {number} with the fewest bytes are not shown"));
        }
        looked.into_iter().map(|(one, _)| one).collect()
    }

    /// Looks at the first and the last documents of a collection: what was written long ago and
    /// what is written now. Both are read in the order of the files, so that the same documents
    /// are met again.
    async fn looked_into(&self, mut one: SurveyedNamespace) -> SurveyedNamespace {
        let wanted = self.detail.documents.max(u32::try_from(self.detail.samples).unwrap_or(0));
        let has_ends = one.kind == "collection";
        let is_all = one.documents.is_some_and(|documents| documents <= u64::from(wanted));
        let ends: &[(From, u32)] = if is_all || !has_ends {
            &[(From::Beginning, wanted)]
        } else {
            &[(From::Beginning, wanted.div_ceil(2)), (From::End, wanted / 2)]
        };
        let mut inventory = Inventory::new(self.detail.documents);
        let mut samples = sample::Samples::new(self.detail.samples, ends.len());
        for &(from, documents) in ends {
            let mut bytes = 0;
            samples.begin();
            let mut look = |document: RawDocumentBuf| {
                bytes += document.as_bytes().len();
                inventory.add(&document);
                samples.add(&document);
                let is_enough = bytes >= SURVEY_BYTES || self.is_over();
                if is_enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            };
            let looked = self.target.glance(&one.namespace, from, documents, &mut look);
            if let Err(error) = looked.await {
                one.notes.push(format!("its documents cannot be read: {}", error.message));
                break;
            }
        }
        one.fields = inventory.finish(one.documents);
        one.samples = samples.finish();
        one
    }
}

fn untold(what: &str, error: &TargetError) -> String {
    format!("{what} not told: {}", error.message)
}

fn indexes(listed: &[bson::Document], sizes: &Sizes) -> Vec<SurveyedIndex> {
    let told = listed.iter().filter_map(|index| {
        let name = index.get_str("name").ok()?;
        let key = index.get_document("key").cloned().unwrap_or_default();
        let bytes = sizes.indexes.iter().find(|(of, _)| of == name).map(|(_, bytes)| *bytes);
        let key = bson::Bson::Document(key).into_relaxed_extjson().to_string();
        Some(SurveyedIndex { name: name.to_owned(), key, bytes })
    });
    told.collect()
}
