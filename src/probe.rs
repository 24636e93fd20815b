//! Point reads under a rising number of connections: ramp × pace × lookup → latency → report.
//!
//! Every connection is a socket of its own with a loop of its own ([`reader`]), all of them on the
//! runtime's threads. Between two steps new connections are set up at a steady rate; that time is
//! no part of a step.

mod account;
mod door;
mod files;
mod fit;
mod knee;
mod lookup;
mod mix;
mod pace;
mod ramp;
mod reader;
mod server;
mod wire;

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use crate::error::{Error, ErrorKind};
use crate::exit::ExitStatus;
use crate::limits::{PROBE_BACKOFF, PROBE_CONNECT_ATTEMPTS, PROBE_DRAIN, PROBE_TELL_INTERVAL};
use crate::load::Stop;
use crate::namespace::Namespace;
use crate::report::probe::{
    IdsKind, PaceKind, ProbeError, ProbeLoad, ProbeOutcome, ProbeReport, ProbeStep, SCHEMA,
};
use crate::report::{OptionValue, TargetFacts};
use account::Account;
use door::Door;
use lookup::{Ids, Lookup};
use reader::{Reader, Shared, Step, open};
use wire::{Failure, Link};

pub use mix::Mix;
pub use pace::{Pace, Rate};
pub use ramp::Ramp;
pub use server::Server;

/// How often it is looked whether somebody asked for the end.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);

/// What is asked, how often, and by how many.
#[derive(Clone, Debug)]
pub struct ProbeOptions {
    /// The collection whose documents are asked for.
    pub namespace: Namespace,
    /// How many connections there are, step by step.
    pub ramp: Ramp,
    /// When each asks.
    pub pace: Pace,
    /// What each asks.
    pub mix: Mix,
    /// How long all steps are held together.
    pub duration: Duration,
    /// New connections in a second.
    pub connect_rate: u32,
    /// Chooses the documents, and the moments of a pace.
    pub seed: u64,
    /// The options as they are told in the report.
    pub told: Vec<OptionValue>,
}

/// How a probe stands.
#[derive(Clone, Copy, Debug)]
pub enum Glance {
    /// Connections are set up.
    Connecting {
        /// Those that are open.
        open: u32,
        /// Those that there are to be.
        of: u32,
    },
    /// A step goes on.
    Holding {
        /// Its number, from 1.
        step: usize,
        /// How many there are.
        of: usize,
        /// Its connections.
        connections: u32,
        /// Requests a second that were answered so far.
        achieved_per_second: f64,
        /// Requests a second that were due so far, with a pace.
        asked_per_second: Option<f64>,
        /// 99 of 100 answers came within this.
        p99: Duration,
        /// Failures so far.
        failures: u64,
    },
}

/// How many documents a collection holds, as its server counts them.
///
/// # Errors
///
/// Where the server cannot be used or does not tell, or somebody asks for the end.
pub async fn documents(server: &Server, namespace: &Namespace, stop: &Stop) -> Result<u64, Error> {
    let counted = async {
        let mut link = server.connect().await.map_err(|failure| server.unusable(&failure))?;
        let counted = lookup::count(&mut link, namespace).await;
        let counted = counted.map_err(|failure| server.unusable(&failure).of(namespace))?;
        Ok(u64::try_from(counted).unwrap_or(0))
    };
    unless_stopped(stop, counted).await
}

/// What comes of this, unless somebody asks for the end before.
async fn unless_stopped<T>(
    stop: &Stop,
    work: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    tokio::select! {
        done = work => done,
        () = requested(stop) => {
            let message = "the end was asked for before anything else was";
            Err(Error::new(ErrorKind::Interrupted, message))
        }
    }
}

/// Waits until somebody asks for the end.
async fn requested(stop: &Stop) {
    while !stop.is_requested() {
        tokio::time::sleep(LOOK_INTERVAL).await;
    }
}

/// Connects, and looks at the server and its collection.
async fn begin(
    server: &Server,
    namespace: &Namespace,
) -> Result<(Link, TargetFacts, Lookup), Error> {
    let mut control = server.connect().await.map_err(|failure| server.unusable(&failure))?;
    let version = server::version(&mut control).await;
    let target = TargetFacts { description: server.description(), server_version: version };
    let concern = server.write_concern().cloned();
    let found = Lookup::find(&mut control, namespace, concern).await;
    let found = found.map_err(|failure| server.unusable(&failure).of(namespace))?;
    let lookup = found.ok_or_else(|| lookup::nothing_there(namespace))?;
    Ok((control, target, lookup))
}

/// Runs all steps, or those before somebody asked for the end.
///
/// # Errors
///
/// Where nothing could be asked: no server, no documents, not one connection, too few open files.
pub async fn run(
    server: Server,
    options: &ProbeOptions,
    tell: &(dyn Fn(&Glance) + Sync),
    stop: &Stop,
) -> Result<ProbeReport, Error> {
    let began = Instant::now();
    files::allow(options.ramp.most())?;
    let looked = begin(&server, &options.namespace);
    let (control, target, lookup) = unless_stopped(stop, looked).await?;
    let load = load_of(options, lookup.ids());
    let (pace, mix) = (options.pace, options.mix);
    let door = Door::new(options.connect_rate);
    let shared = Arc::new(Shared { server, door, pace, mix, lookup });
    let mut run = Run { shared, options, tell, stop, control: Some(control), readers: Vec::new() };
    let mut notes = run.notes().await;
    let steps = run.steps().await?;
    let is_cut = stop.is_requested();
    if steps.is_empty() {
        notes.push("the end was asked for before the first step".to_owned());
    }
    Ok(ProbeReport {
        schema: SCHEMA,
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        target,
        namespace: options.namespace.to_string(),
        options: options.told.clone(),
        load,
        outcome: if is_cut { ProbeOutcome::Interrupted } else { ProbeOutcome::Finished },
        exit_status: status(&steps, is_cut),
        seconds: began.elapsed().as_secs_f64(),
        knee: knee::knee(&steps),
        fit: fit::fit(&steps),
        steps,
        notes,
    })
}

fn status(steps: &[ProbeStep], is_cut: bool) -> ExitStatus {
    let has_failed =
        |step: &ProbeStep| step.failures() > 0 || step.misses > 0 || step.unanswered > 0;
    if is_cut {
        ExitStatus::Interrupted
    } else if steps.iter().any(has_failed) {
        ExitStatus::Failures
    } else {
        ExitStatus::Restored
    }
}

fn load_of(options: &ProbeOptions, ids: &Ids) -> ProbeLoad {
    let rate = match options.pace {
        Pace::FlatOut => None,
        Pace::Rate(rate) => Some(rate),
    };
    let (ids, ids_known) = match ids {
        Ids::Range { first, last } => (IdsKind::Range, first.abs_diff(*last) + 1),
        Ids::Known(ids) => (IdsKind::Sample, ids.len() as u64),
    };
    ProbeLoad {
        pace: if rate.is_some() { PaceKind::Paced } else { PaceKind::FlatOut },
        rate_per_connection: rate.map(|rate| rate.per_second()),
        jitter: rate.map(|rate| rate.jitter()),
        read_share: options.mix.reads(),
        insert_share: options.mix.inserts(),
        update_share: options.mix.updates(),
        ids,
        ids_known,
    }
}

/// A run with the connections that it has by now.
struct Run<'a> {
    shared: Arc<Shared>,
    options: &'a ProbeOptions,
    tell: &'a (dyn Fn(&Glance) + Sync),
    stop: &'a Stop,
    /// A connection that asks the server how it is; nothing once it is lost.
    control: Option<Link>,
    readers: Vec<Reader>,
}

/// What came of setting connections up.
struct SetUp {
    took: Duration,
    connected: u32,
    failures: Account,
}

impl Run<'_> {
    /// What is known to go wrong before it does, and what is left behind.
    async fn notes(&mut self) -> Vec<String> {
        let mut notes = Vec::new();
        let most = u64::from(self.options.ramp.most());
        if let Some(available) = self.connections().await.map(|told| told.available)
            && available < most
        {
            notes.push(format!(
                "the server takes {available} more connections, not {most}; see its \
                 maxIncomingConnections (net.maxIncomingConnections) and its limit of open files"
            ));
        }
        if self.options.mix.writes() {
            notes.push(format!(
                "documents that were inserted or changed have the field `{}`, and stay",
                lookup::FIELD.as_str()
            ));
        }
        notes
    }

    async fn connections(&mut self) -> Option<server::Connections> {
        if self.control.is_none() {
            self.control = self.shared.server.connect().await.ok();
        }
        let told = server::connections(self.control.as_mut()?).await;
        if told.is_none() {
            self.control = None;
        }
        told
    }

    async fn steps(&mut self) -> Result<Vec<ProbeStep>, Error> {
        let numbers = self.options.ramp.steps().to_vec();
        let hold = self.options.duration / u32::try_from(numbers.len()).unwrap_or(1).max(1);
        let mut steps = Vec::new();
        for (place, &connections) in numbers.iter().enumerate() {
            if self.stop.is_requested() {
                break;
            }
            let set_up = self.reach(connections).await?;
            if self.stop.is_requested() {
                break;
            }
            let server_connections = self.connections().await.map(|told| told.current);
            let step = self.hold(hold, place + 1, numbers.len()).await;
            steps.push(self.told(connections, &set_up, server_connections, &step));
        }
        Ok(steps)
    }

    /// Opens or closes connections until there are so many.
    async fn reach(&mut self, connections: u32) -> Result<SetUp, Error> {
        let began = Instant::now();
        let wanted = connections as usize;
        self.readers.truncate(wanted);
        let is_first = self.readers.is_empty();
        let places = self.readers.iter().enumerate();
        let places = places.filter(|(_, reader)| reader.link.is_none());
        let mut vacant: Vec<usize> = places.map(|(place, _)| place).collect();
        let mut opening = JoinSet::new();
        for _ in self.readers.len() - vacant.len()..wanted {
            let shared = Arc::clone(&self.shared);
            let stop = self.stop.clone();
            opening.spawn(async move { set_up(&shared, &stop).await });
        }
        let mut failures = Account::default();
        let mut last = None;
        let mut told_at = Instant::now();
        // Those that are not open when somebody asks for the end are left.
        while let Some(opened) = tokio::select! {
            opened = opening.join_next() => opened,
            () = requested(self.stop) => None,
        } {
            let (link, failed) = opened.unwrap_or((None, Vec::new()));
            for failure in &failed {
                failures.failed(failure);
            }
            last = failed.into_iter().last().or(last);
            let number = self.readers.len() as u64;
            if let Some(reader) = vacant.pop().and_then(|place| self.readers.get_mut(place)) {
                reader.link = link;
            } else {
                self.readers.push(Reader::new(link, self.options.seed, number));
            }
            if told_at.elapsed() >= PROBE_TELL_INTERVAL {
                told_at = Instant::now();
                (self.tell)(&Glance::Connecting { open: self.connected(), of: connections });
            }
        }
        let connected = self.connected();
        match last {
            // Later a server that is gone is one that fails: the steps before are worth telling.
            Some(failure) if is_first && connected == 0 && !self.stop.is_requested() => {
                Err(self.shared.server.unusable(&failure))
            }
            _ => Ok(SetUp { took: began.elapsed(), connected, failures }),
        }
    }

    fn connected(&self) -> u32 {
        let open = self.readers.iter().filter(|reader| reader.link.is_some()).count();
        u32::try_from(open).unwrap_or(u32::MAX)
    }

    /// Lets all connections ask for so long.
    async fn hold(&mut self, hold: Duration, number: usize, of: usize) -> Arc<Step> {
        let connections = u32::try_from(self.readers.len()).unwrap_or(u32::MAX);
        let step = Arc::new(Step::begin(hold));
        let mut running = JoinSet::new();
        for mut reader in self.readers.drain(..) {
            let (shared, step) = (Arc::clone(&self.shared), Arc::clone(&step));
            running.spawn(async move {
                reader.run(&shared, &step).await;
                reader
            });
        }
        let mut told_at = Duration::ZERO;
        while step.elapsed() < hold && !self.stop.is_requested() {
            tokio::time::sleep(LOOK_INTERVAL.min(hold.saturating_sub(step.elapsed()))).await;
            if step.elapsed() >= told_at + PROBE_TELL_INTERVAL {
                told_at = step.elapsed();
                (self.tell)(&glance(&step, number, of, connections, self.options.pace));
            }
        }
        step.finish();
        let drained = async {
            while let Some(reader) = running.join_next().await {
                self.readers.extend(reader);
            }
        };
        if tokio::time::timeout(PROBE_DRAIN, drained).await.is_err() {
            step.close();
            while let Some(reader) = running.join_next().await {
                self.readers.extend(reader);
            }
        }
        step
    }

    /// A step as the report tells it.
    fn told(
        &self,
        connections: u32,
        set_up: &SetUp,
        server_connections: Option<u64>,
        step: &Step,
    ) -> ProbeStep {
        let is_paced = self.options.pace != Pace::FlatOut;
        let account = step.account();
        let seconds = step.end().as_secs_f64();
        ProbeStep {
            connections,
            connected: set_up.connected,
            server_connections,
            setup_seconds: set_up.took.as_secs_f64(),
            held_seconds: seconds,
            asked_per_second: is_paced.then(|| per_second(account.due, seconds)),
            achieved_per_second: per_second(account.done.all(), seconds),
            asked: account.due,
            done: account.done,
            answered_after_end: account.after_end,
            failed: account.given_up,
            unanswered: account.unanswered,
            unsent: account.unsent,
            asked_again: account.asked_again,
            misses: account.misses,
            lost_connections: account.lost,
            reopened_connections: account.reopened,
            errors: both(set_up.failures.errors(), account.errors()),
            latency: account.latency.quantiles(),
            service: account.service.quantiles(),
        }
    }
}

/// Opens a connection, with a few attempts; tells what failed.
async fn set_up(shared: &Shared, stop: &Stop) -> (Option<Link>, Vec<Failure>) {
    let (mut wait, _) = PROBE_BACKOFF;
    let mut failures = Vec::new();
    for _ in 0..PROBE_CONNECT_ATTEMPTS {
        if stop.is_requested() {
            break;
        }
        match open(shared).await {
            Ok(link) => return (Some(link), failures),
            Err(failure) => {
                let is_final = matches!(failure, Failure::Login(_));
                failures.push(failure);
                if is_final {
                    break;
                }
            }
        }
        tokio::time::sleep(wait).await;
        wait *= 2;
    }
    (None, failures)
}

fn glance(step: &Step, number: usize, of: usize, connections: u32, pace: Pace) -> Glance {
    let seconds = step.elapsed().as_secs_f64();
    let account = step.account();
    let asked = match pace {
        Pace::FlatOut => None,
        Pace::Rate(rate) => Some(rate.per_second() * f64::from(connections)),
    };
    Glance::Holding {
        step: number,
        of,
        connections,
        achieved_per_second: per_second(account.done.all(), seconds),
        asked_per_second: asked,
        p99: account.latency.quantile(0.99),
        failures: account.failures(),
    }
}

#[expect(clippy::cast_precision_loss, reason = "a rate")]
fn per_second(number: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { number as f64 / seconds } else { 0.0 }
}

/// Failures of the set-up and of the step, those of one kind together.
fn both(mut errors: Vec<ProbeError>, more: Vec<ProbeError>) -> Vec<ProbeError> {
    for error in more {
        match errors.iter_mut().find(|known| known.kind == error.kind) {
            Some(known) => known.count += error.count,
            None => errors.push(error),
        }
    }
    errors.sort_by_key(|error| std::cmp::Reverse(error.count));
    errors
}
