//! Says how many batches may be in flight, and when the next one may go.
//!
//! A worker that takes from the queue of all waits for a place while it is its turn, so that no
//! other takes a batch that would only wait in its hands as well.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::MutexGuard as Turn;
use tokio::time::{Instant, MissedTickBehavior};

use crate::batch::Batch;
use crate::limits::{PACE_INTERVAL, WORKERS_START};
use crate::load::climb::{Climb, Decision, Window};
use crate::load::places::{Place, Places, Spent};
use crate::load::pressure::{Gauge, Pressure};
use crate::load::rate_limit::Limiter;
use crate::load::run::{Inbox, Run};
use crate::load::{LoadSettings, Workers};
use crate::memory::Share;
use crate::report::Event;
use crate::sample::ServerSample;
use crate::target::Target;

/// The time for which what a server told of itself is taken for true: several times that after
/// which it is asked again.
const SERVER_NEWS_LAST: Duration = Duration::from_secs(15);

/// How many batches may be in flight, and what came of it so far.
#[derive(Debug)]
pub(super) struct Pacing {
    workers: Workers,
    places: Places,
    /// Held by the worker that takes the next batch from the queue of all.
    turn: tokio::sync::Mutex<()>,
    limiter: Option<Limiter>,
    gauge: Mutex<Gauge>,
    /// When the server was last heard of.
    heard: Mutex<Option<Instant>>,
    /// Whether there is a limit on how far the majority may be behind.
    heeds_lag: bool,
    bytes: AtomicU64,
    documents: AtomicU64,
    batches: AtomicU64,
    latency_nanos: AtomicU64,
}

/// The counts at a moment.
#[derive(Clone, Copy, Debug)]
struct Reading {
    at: Instant,
    bytes: u64,
    documents: u64,
    batches: u64,
    latency: Duration,
    in_flight: Duration,
}

impl Reading {
    /// What happened from another moment to this one.
    fn since(&self, before: &Self) -> Window {
        Window {
            elapsed: self.at.saturating_duration_since(before.at),
            bytes: self.bytes - before.bytes,
            documents: self.documents - before.documents,
            batches: self.batches - before.batches,
            latency: self.latency.saturating_sub(before.latency),
            in_flight: self.in_flight.saturating_sub(before.in_flight),
        }
    }
}

impl Pacing {
    pub(super) fn new(settings: &LoadSettings) -> Self {
        let workers = settings.workers;
        let places = workers.fixed().unwrap_or_else(|| WORKERS_START.min(workers.most()));
        Self {
            workers,
            places: Places::new(places),
            turn: tokio::sync::Mutex::new(()),
            limiter: settings.rate_limit.map(Limiter::new),
            gauge: Mutex::new(Gauge::new(settings.lag_max)),
            heard: Mutex::default(),
            heeds_lag: settings.lag_max.is_some(),
            bytes: AtomicU64::new(0),
            documents: AtomicU64::new(0),
            batches: AtomicU64::new(0),
            latency_nanos: AtomicU64::new(0),
        }
    }

    /// Batches that may be in flight.
    pub(super) fn workers(&self) -> usize {
        self.places.all()
    }

    /// What workers that may send have spent their time on, summed up.
    pub(super) fn spent(&self) -> Spent {
        self.places.spent()
    }

    /// Notes that no batch will come any more.
    pub(super) fn end(&self) {
        self.places.end();
    }

    /// Takes in how the server stands.
    pub(super) fn sampled(&self, sample: &ServerSample) {
        self.gauge().read(sample);
        *self.heard() = Some(Instant::now());
    }

    /// The next batch for a worker, with a place: one of its own first, because nobody else may
    /// take it. `goes_on` says whether batches still wait for the limit of the rate.
    pub(super) async fn next(
        &self,
        inbox: &Inbox,
        goes_on: impl Fn() -> bool,
    ) -> Option<(Batch, Place<'_>)> {
        let (batch, turn) = tokio::select! {
            biased;
            Ok(batch) = inbox.own.recv() => (batch, None),
            Some((batch, turn)) = self.take_shared(inbox) => (batch, Some(turn)),
            else => return None,
        };
        if let Some(limiter) = &self.limiter {
            let _limited = self.places.limit();
            limiter.wait(&batch, goes_on).await;
        }
        let place = self.places.take().await;
        drop(turn);
        Some((batch, place))
    }

    async fn take_shared(&self, inbox: &Inbox) -> Option<(Batch, Turn<'_, ()>)> {
        let turn = self.turn.lock().await;
        let batch = inbox.shared.recv().await.ok()?;
        Some((batch, turn))
    }

    /// Counts a batch that was answered for after this time.
    pub(super) fn answered(&self, batch: &Batch, latency: Duration) {
        let nanos = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
        for (count, amount) in [
            (&self.bytes, batch.document_bytes),
            (&self.documents, batch.documents.into()),
            (&self.batches, 1),
            (&self.latency_nanos, nanos),
        ] {
            count.fetch_add(amount, Ordering::Relaxed);
        }
    }

    fn reading(&self) -> Reading {
        Reading {
            at: Instant::now(),
            bytes: self.bytes.load(Ordering::Relaxed),
            documents: self.documents.load(Ordering::Relaxed),
            batches: self.batches.load(Ordering::Relaxed),
            latency: Duration::from_nanos(self.latency_nanos.load(Ordering::Relaxed)),
            in_flight: self.places.spent().taken,
        }
    }

    /// What is known of the server; nothing where it was not heard of for long.
    fn pressure(&self) -> Pressure {
        let is_recent = |heard: Instant| heard.elapsed() <= SERVER_NEWS_LAST;
        match *self.heard() {
            Some(heard) if is_recent(heard) => self.gauge().pressure(),
            _ => Pressure::None,
        }
    }

    fn heard(&self) -> MutexGuard<'_, Option<Instant>> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn gauge(&self) -> MutexGuard<'_, Gauge> {
        self.gauge.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What finds the number, where there is anything to find.
    fn climb(&self) -> Option<Climb> {
        match self.workers {
            Workers::Adaptive { most } => Some(Climb::to(most)),
            Workers::Fixed(workers) => self.heeds_lag.then(|| Climb::fixed(workers)),
        }
    }
}

/// Changes how many batches are in flight, for as long as it is let.
pub(super) async fn pace<T: Target>(run: Arc<Run<T>>) {
    let pacing = &run.pacing;
    let Some(mut climb) = pacing.climb() else {
        return;
    };
    let mut ticks = tokio::time::interval(PACE_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut lent = Vec::new();
    let mut last = pacing.reading();
    tell(&run, climb.workers(), "the beginning".to_owned());
    loop {
        ticks.tick().await;
        let now = pacing.reading();
        let decision = climb.feed(&now.since(&last), pacing.pressure());
        last = now;
        if let Some(Decision { workers, reason }) = decision {
            let lendable = lend(&run, workers, &mut lent);
            if lendable < workers {
                climb.stop_at(lendable);
                tell(&run, lendable, "large documents need the memory".to_owned());
            } else {
                tell(&run, workers, reason.to_string());
            }
            pacing.places.set(lendable);
        }
    }
}

/// Takes memory for workers for which none is set aside from what large documents may take; says
/// for how many workers there is some.
fn lend<T: Target>(run: &Run<T>, workers: usize, lent: &mut Vec<Share>) -> usize {
    let provided = run.settings.workers.provided();
    let wanted = workers.saturating_sub(provided);
    lent.truncate(wanted);
    while lent.len() < wanted {
        let Some(share) = run.memory.take_if_free(run.settings.bytes_per_worker()) else {
            return provided + lent.len();
        };
        lent.push(share);
    }
    workers
}

fn tell<T: Target>(run: &Run<T>, workers: usize, reason: String) {
    run.observe(&Event::WorkersChanged { workers, reason });
}
