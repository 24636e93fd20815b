//! Makes runs, one after the other, and keeps what was measured.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::expected::{Expected, Told};
use super::machine::{Machine, Surroundings, Watch, memory_available};
use super::matrix::{Cell, Kind};
use super::mongod::{self, Mongod};
use super::process::{Program, Ran, run};
use super::sample::{Keeper, Line, SCHEMA, Sample, Samples, Setup, Standing, WorkersSeen};
use super::server::{Found, Server};
use super::tool::Places;
use super::work::WorkFolder;
use crate::error::{Error, ErrorKind};
use crate::load::{self, Stop};
use crate::report::format::bytes;
use crate::target::mongo::uri::{ServerUri, without};

/// What is measured, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunOptions {
    /// The dump.
    pub dump: PathBuf,
    /// The options that every restore has.
    pub fixed: Vec<String>,
    /// Which server it goes to.
    pub place: Place,
    /// The folder for data of private servers and for reports.
    pub work: PathBuf,
    /// The file for the samples, which must not exist.
    pub samples: PathBuf,
    /// What the orders of the rounds and the intervals depend on.
    pub seed: u64,
    /// Whether collections of the dump that exist may be dropped.
    pub existing: Existing,
    /// Bytes of documents that the measuring of a ceiling may hold in memory; half of what is free
    /// where it is not said.
    pub ceiling_bytes: Option<u64>,
}

/// Which server documents go to.
#[derive(Clone, PartialEq, Eq)]
pub enum Place {
    /// The one at this connection string.
    Running(String),
    /// One of its own of this program, for all runs or a new one for each.
    Private {
        /// The program.
        mongod: PathBuf,
        /// Whether each run has a new one.
        is_fresh: bool,
    },
}

impl std::fmt::Debug for Place {
    /// Leaves the connection string out, which may hold a password.
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Running(_) => out.write_str("Running"),
            Self::Private { mongod, is_fresh } => {
                write!(out, "Private({}, {is_fresh})", mongod.display())
            }
        }
    }
}

/// Whether collections of the dump that exist before the first run may be dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// They are in the way.
    Refused,
    /// They are dropped.
    Dropped,
}

/// Makes runs.
pub struct Runner {
    options: RunOptions,
    expected: Expected,
    /// What the program of private servers says of itself.
    told: Option<mongod::Told>,
    /// The private server of all runs.
    own: Option<Mongod>,
    keeper: Keeper,
    /// What is known so far.
    pub all: Samples,
    work: WorkFolder,
    stop: Stop,
}

/// A run before it is made.
#[derive(Clone, Copy, Debug)]
pub struct Turn {
    /// The place of its setting.
    pub cell: usize,
    /// Its round; 0 for a warm-up.
    pub round: u32,
    /// Its place in the round.
    pub place: usize,
}

fn usage(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Usage, message)
}

impl Runner {
    /// Looks at the dump and the server, and refuses what cannot be measured.
    pub async fn begin(options: RunOptions, searches: bool, stop: Stop) -> Result<Self, Error> {
        let machine = Machine::this();
        let work = WorkFolder::create(&options.work)?;
        let expected = count(&options, &work.inner()?, &stop).await?;
        let mut own = None;
        let (server_version, standing, told) = match &options.place {
            Place::Running(uri) => {
                let server = Server::connect(uri).await?;
                if options.existing == Existing::Refused {
                    server.refuse_occupied(&expected).await?;
                }
                (server.version, Standing::Running, None)
            }
            Place::Private { mongod, is_fresh } => {
                let told = mongod::Told::by(mongod)?;
                let started = Mongod::start(mongod, &[], &work.inner()?).await?;
                let version = Server::connect(&started.uri()).await?.version;
                own = (!is_fresh).then_some(started);
                let standing = if *is_fresh { Standing::Fresh } else { Standing::Private };
                (version, standing, Some(told))
            }
        };
        let setup = Setup {
            schema: SCHEMA.to_owned(),
            tool_version: env!("CARGO_PKG_VERSION").to_owned(),
            server_version,
            server: standing,
            dump: expected.facts(options.dump.display().to_string()),
            machine,
            seed: options.seed,
            searches,
        };
        let mut keeper = Keeper::create(&options.samples)?;
        keeper.keep(&Line::Setup(setup.clone()))?;
        let all = Samples { setup, cells: Vec::new(), samples: Vec::new() };
        Ok(Self { options, expected, told, own, keeper, all, work, stop })
    }

    /// Adds a setting; returns its place.
    ///
    /// # Errors
    ///
    /// The server has no such option, or there is no memory for its ceiling.
    pub fn add(&mut self, cell: Cell) -> Result<usize, Error> {
        self.server_arguments(&cell)?;
        if cell.kind == Kind::Ceiling {
            self.check_ceiling()?;
        }
        self.keeper.keep(&Line::Cell(cell.clone()))?;
        self.all.cells.push(cell);
        Ok(self.all.cells.len() - 1)
    }

    /// The file of the samples.
    pub fn samples_file(&self) -> &Path {
        self.keeper.path()
    }

    /// What is worth knowing before the first run, a sentence.
    pub fn note(&self) -> Option<&'static str> {
        let is_shared = matches!(self.options.place, Place::Running(_));
        (is_shared && self.expected.has_users).then_some(
            "the dump brings users or roles, which stay on the server: only collections are \
             dropped between the runs",
        )
    }

    fn server_arguments(&self, cell: &Cell) -> Result<Vec<String>, Error> {
        match &self.told {
            Some(told) => told.arguments(&cell.server),
            None if cell.server.is_empty() => Ok(Vec::new()),
            None => Err(usage("options of a server that runs cannot be varied")),
        }
    }

    /// All documents are held in memory, and there must be room for them.
    fn check_ceiling(&self) -> Result<(), Error> {
        let most = self.ceiling_bytes();
        if self.expected.bytes <= most {
            return Ok(());
        }
        let (held, most) = (bytes(self.expected.bytes), bytes(most));
        Err(usage(format!(
            "--ceiling holds all documents in memory, and {held} are more than {most}"
        ))
        .hint("measure with a part of the dump, or say --ceiling-bytes"))
    }

    fn ceiling_bytes(&self) -> u64 {
        let half = || memory_available().map_or(u64::MAX, |free| free / 2);
        self.options.ceiling_bytes.unwrap_or_else(half)
    }

    /// Makes a run and keeps what was measured; nothing where the end was asked for meanwhile.
    pub async fn run(&mut self, turn: Turn) -> Result<Option<Sample>, Error> {
        let cell = self.all.cells[turn.cell].clone();
        let folder = self.work.inner()?;
        let fresh = match &self.options.place {
            Place::Private { mongod, is_fresh: true } => {
                let arguments = self.server_arguments(&cell)?;
                Some(Mongod::start(mongod, &arguments, &folder).await?)
            }
            _ => None,
        };
        let mongod = fresh.as_ref().or(self.own.as_ref());
        let uri = match (&self.options.place, mongod) {
            (_, Some(mongod)) => mongod.uri(),
            (Place::Running(uri), None) => uri.clone(),
            (Place::Private { .. }, None) => return Err(usage("there is no server")),
        };
        let server = Server::connect(&uri).await?;
        if fresh.is_none() {
            server.clear(&self.expected).await?;
        }
        let watch = load::aside(|| Ok(Watch::begin())).await?;
        let cpu_before = mongod.and_then(Mongod::cpu);
        let ran = run(self.program(&cell, &uri, &folder)?, &self.stop).await?;
        let cpu = cpu_before.zip(mongod.and_then(Mongod::cpu));
        let surroundings = watch.end();
        if self.stop.is_requested() {
            return Ok(None);
        }
        let found = server.look(&self.expected).await?;
        let mut sample = measured(turn, &ran, found, surroundings);
        // Another program may repeat what it was given.
        let secrets = ServerUri::parse(&uri).map(|uri| uri.secrets()).unwrap_or_default();
        sample.error = sample.error.map(|said| without(&secrets, &said));
        sample.server_cpu_seconds =
            cpu.map(|(before, after)| after.saturating_sub(before).as_secs_f64());
        if let Some(fresh) = &fresh {
            sample.server_peak_bytes = fresh.peak_bytes();
            sample.folder_bytes = Some(fresh.folder_bytes());
        }
        if ran.status == Some(0) {
            told_by_run(&mut sample, cell.kind, &result_of(&folder))?;
        }
        drop((server, fresh));
        // Its outcome is known; whatever is left goes with the work folder.
        let _ = std::fs::remove_dir_all(&folder);
        self.keeper.keep(&Line::Sample(sample.clone()))?;
        self.all.samples.push(sample.clone());
        Ok(Some(sample))
    }

    /// Drops what the last run left on a server that was there before.
    pub async fn end(self) -> Result<Samples, Error> {
        if let Place::Running(uri) = &self.options.place {
            Server::connect(uri).await?.clear(&self.expected).await?;
        }
        Ok(self.all)
    }

    fn program(&self, cell: &Cell, uri: &str, folder: &Path) -> Result<Program, Error> {
        let output = folder.join("output");
        if cell.kind == Kind::Tool {
            let dump = self.options.dump.display().to_string();
            let words = Places { uri: uri.to_owned(), dump }.fill(&cell.words);
            let words = words.into_iter().map(OsString::from).collect();
            return Ok(Program { words, uri: None, output });
        }
        let mut words = match cell.kind {
            Kind::Ceiling => own(&["ceiling"], &self.options.dump)?,
            Kind::Restore | Kind::Tool => own(&["restore", "--quiet"], &self.options.dump)?,
        };
        words.extend(self.options.fixed.iter().chain(&cell.words).map(OsString::from));
        if cell.kind == Kind::Ceiling {
            words.extend(["--held-bytes".into(), self.ceiling_bytes().to_string().into()]);
        } else if !names_ledger(&self.options.fixed) && !names_ledger(&cell.words) {
            // As a restore keeps one, but not beside the dump.
            words.extend(["--ledger".into(), folder.join("ledger").into_os_string()]);
        }
        words.extend(["--report".into(), result_of(folder).into_os_string()]);
        Ok(Program { words, uri: Some(uri.to_owned()), output })
    }
}

/// The file that a run of ours tells its result in.
fn result_of(folder: &Path) -> PathBuf {
    folder.join("result.json")
}

fn names_ledger(words: &[String]) -> bool {
    words.iter().any(|word| word == "--ledger" || word.starts_with("--ledger="))
}

/// The words of a command of this program.
fn own(command: &[&str], dump: &Path) -> Result<Vec<OsString>, Error> {
    let program = std::env::current_exe().map_err(|error| {
        Error::new(ErrorKind::Internal, format!("this program does not find itself: {error}"))
    })?;
    let mut words = vec![program.into_os_string()];
    words.extend(command.iter().map(OsString::from));
    words.push(dump.into());
    Ok(words)
}

/// Restores into nothing, which counts what there is and brings it into the page cache.
async fn count(options: &RunOptions, folder: &Path, stop: &Stop) -> Result<Expected, Error> {
    let mut words = own(&["restore", "--quiet", "--null"], &options.dump)?;
    words.extend(options.fixed.iter().map(OsString::from));
    if !names_ledger(&options.fixed) {
        words.extend(["--ledger".into(), "none".into()]);
    }
    let report = folder.join("report.json");
    words.extend(["--report".into(), report.clone().into_os_string()]);
    let ran = run(Program { words, uri: None, output: folder.join("output") }, stop).await?;
    if stop.is_requested() {
        return Err(Error::new(ErrorKind::Interrupted, "stopped before the first run"));
    }
    if ran.status != Some(0) {
        let message = format!("the dump cannot be restored, not even into nothing: {}", ran.said);
        return Err(Error::new(ErrorKind::Dump, message).in_file(&options.dump));
    }
    let expected = Expected::of_report(&std::fs::read_to_string(&report).unwrap_or_default())?;
    if expected.documents() == 0 {
        return Err(Error::new(ErrorKind::Dump, "there is nothing to measure: no document")
            .in_file(&options.dump));
    }
    Ok(expected)
}

fn measured(turn: Turn, ran: &Ran, found: Found, surroundings: Surroundings) -> Sample {
    Sample {
        cell: turn.cell,
        round: turn.round,
        place: turn.place,
        status: ran.status,
        error: (ran.status != Some(0)).then(|| ran.said.clone()),
        wall_seconds: ran.wall.as_secs_f64(),
        data_seconds: None,
        index_seconds: None,
        client_user_seconds: ran.user.as_secs_f64(),
        client_system_seconds: ran.system.as_secs_f64(),
        client_peak_bytes: ran.peak_bytes,
        server_cpu_seconds: None,
        server_peak_bytes: None,
        documents_found: found.documents,
        documents_missing: found.missing,
        data_bytes: found.weight.data_bytes,
        storage_bytes: found.weight.storage_bytes,
        index_bytes: found.weight.index_bytes,
        folder_bytes: None,
        workers: None,
        surroundings,
    }
}

/// Adds what a run of ours tells of itself.
fn told_by_run(sample: &mut Sample, kind: Kind, file: &Path) -> Result<(), Error> {
    if kind == Kind::Tool {
        return Ok(());
    }
    let text = std::fs::read_to_string(file).unwrap_or_default();
    if kind == Kind::Ceiling {
        let sent = Sent::read(&text)?;
        sample.data_seconds = Some(sent.seconds);
        sample.workers = Some(WorkersSeen { most: sent.in_flight, last: sent.in_flight });
        return Ok(());
    }
    let told = Told::read(&text)?;
    sample.data_seconds = Some(told.times.data_seconds);
    sample.index_seconds = Some(told.times.index_builds_seconds);
    sample.workers = Some(told.workers);
    Ok(())
}

/// What the measuring of a ceiling tells.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Sent {
    /// The time in which everything was sent.
    pub seconds: f64,
    /// The batches that were in flight at once.
    pub in_flight: u64,
    /// The batches that were sent.
    pub batches: u64,
    /// Their documents.
    pub documents: u64,
}

impl Sent {
    fn read(text: &str) -> Result<Self, Error> {
        serde_json::from_str(text).map_err(|error| {
            let message = format!("what a ceiling was cannot be read: {error}");
            Error::new(ErrorKind::Internal, message)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ledger_is_kept_aside_unless_it_is_named() {
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert!(names_ledger(&words("--workers=1 --ledger none")));
        assert!(names_ledger(&words("--ledger=x")));
        assert!(!names_ledger(&words("--workers=1 --db ledger")));
    }

    #[test]
    fn no_password_is_shown() {
        let place = Place::Running("mongodb://u:secret@h".into());
        assert!(!format!("{place:?}").contains("secret"));
    }
}
