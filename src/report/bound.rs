//! What a run waited for: the answer to "why is it not faster?".
//!
//! Every few seconds the time that the stages spent is put side by side. Workers that mostly wait
//! for batches say that something before the queue is the limit; workers that mostly wait for
//! answers say that something behind it is. Which of them it is follows from the clocks inside a
//! reader, and from what the server tells of itself. Nothing here has a clock of its own.

mod window;
mod words;

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use crate::limits::{BOUND_INTERVAL, BOUND_TIME_MIN};
use crate::report::event::Phase;
use crate::report::rate::share;
use crate::sample::Sample;

pub use window::Window;

/// What a run can wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// The server works on what it was sent.
    Server,
    /// The server waits for its journal, or for a majority, before it confirms.
    Journal,
    /// The way to the server and back.
    Network,
    /// Files or a pipe.
    Reading,
    /// Decompression.
    Inflating,
    /// This program's own processor time.
    ClientCpu,
    /// Index builds, after all documents.
    Indexes,
    /// A limit on the rate that was asked for.
    RateLimit,
}

impl Bound {
    /// Its name, as people read it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Journal => "journal",
            Self::Network => "network",
            Self::Reading => "reading",
            Self::Inflating => "inflating",
            Self::ClientCpu => "client CPU",
            Self::Indexes => "indexes",
            Self::RateLimit => "rate limit",
        }
    }
}

/// What a run waited for most, why that is believed, and what would help.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BoundBy {
    /// What it is.
    pub by: Bound,
    /// What was measured, as phrases.
    pub evidence: Vec<String>,
    /// What would make it faster; a sentence without its final period.
    pub advice: String,
    /// What it was in the course of the run.
    pub stretches: Vec<Stretch>,
}

/// A time in which a run waited for the same.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Stretch {
    /// Its beginning, in seconds since the run began.
    pub from_seconds: f64,
    /// Its end.
    pub to_seconds: f64,
    /// What it was.
    pub by: Bound,
}

/// The windows of a run so far.
#[derive(Clone, Debug, Default)]
pub struct Bounds {
    /// What came since the last verdict.
    open: Window,
    /// When that began.
    began: Duration,
    last: Option<Sample>,
    server: Option<crate::sample::ServerSample>,
    phase: Option<Phase>,
    /// What was measured while each was the limit.
    sums: BTreeMap<Bound, Window>,
    stretches: Vec<Stretch>,
    /// The window that was judged last.
    judged: Option<(Bound, Window)>,
}

impl Bounds {
    /// Counts a batch that was answered for.
    pub fn answered(&mut self, latency: Duration) {
        self.open.batches += 1;
        self.open.latency += latency;
    }

    /// Notes that a phase begins at `at`, and judges what came before it.
    pub fn begin_phase(&mut self, at: Duration, phase: Phase) {
        self.open.elapsed = at.saturating_sub(self.began);
        self.close(at);
        self.phase = Some(phase);
    }

    /// Takes a sample in; after a few seconds, what they show together is judged.
    pub fn sampled(&mut self, at: Duration, sample: &Sample) {
        let before = self.last.replace(sample.clone()).unwrap_or_default();
        self.open.add_run(&before, sample);
        if let Some(server) = &sample.server {
            if let Some(before) = &self.server {
                self.open.add_server(before, server);
            }
            self.server = Some((**server).clone());
        }
        self.open.elapsed = at.saturating_sub(self.began);
        if self.open.elapsed >= BOUND_INTERVAL {
            self.close(at);
        }
    }

    /// Judges the open window and begins the next one.
    fn close(&mut self, at: Duration) {
        let window = std::mem::take(&mut self.open);
        let began = std::mem::replace(&mut self.began, at);
        let Some(by) = judge(&window, self.phase) else { return };
        self.sums.entry(by).or_default().join(&window);
        self.judged = Some((by, window));
        let (from_seconds, to_seconds) = (began.as_secs_f64(), at.as_secs_f64());
        match self.stretches.last_mut() {
            Some(last) if last.by == by => last.to_seconds = to_seconds,
            _ => self.stretches.push(Stretch { from_seconds, to_seconds, by }),
        }
    }

    /// What the run waited for when that was judged last, and what speaks for it.
    pub fn now(&self) -> Option<(Bound, String)> {
        let (by, window) = self.judged.as_ref()?;
        Some((*by, words::evidence(*by, window).join(", ")))
    }

    /// What the run waited for the longest; nothing where it was too short to tell.
    pub fn verdict(&self) -> Option<BoundBy> {
        let (&by, window) = self.sums.iter().max_by_key(|(_, window)| window.elapsed)?;
        Some(BoundBy {
            by,
            evidence: words::evidence(by, window),
            advice: words::advice(by, window),
            stretches: self.stretches.clone(),
        })
    }
}

/// From here on a share is most of something.
const MOST: f64 = 0.5;

/// A program that uses this share of all cores has no processor time left.
const CORES_BUSY: f64 = 0.85;

/// What was waited for in a window; nothing where there was nothing to wait for.
fn judge(window: &Window, phase: Option<Phase>) -> Option<Bound> {
    if window.elapsed < BOUND_TIME_MIN {
        return None;
    }
    match phase? {
        Phase::Indexes | Phase::TimeToLive => return Some(Bound::Indexes),
        // An oplog is applied by the server, one entry after the other.
        Phase::Oplog => return Some(Bound::Server),
        Phase::Users | Phase::Views | Phase::Ended => return None,
        Phase::Data => {}
    }
    let workers = window.worker_time();
    if workers.is_zero() {
        return None;
    }
    let of_workers = |time: Duration| part(time, workers);
    if of_workers(window.stages.limited) >= MOST {
        return Some(Bound::RateLimit);
    }
    Some(if of_workers(window.stages.starved) >= MOST { before(window) } else { behind(window) })
}

/// What the workers waited for, if it was batches.
fn before(window: &Window) -> Bound {
    let stages = &window.stages;
    // Readers that had nothing to read waited for collections to be created.
    if part(stages.reading, window.elapsed) < MOST {
        return if flushes(window) { Bound::Journal } else { Bound::Server };
    }
    let unpacks = part(stages.unpacked, stages.reading) >= MOST;
    let whole = if unpacks { stages.unpacking.max(stages.unpacked) } else { stages.reading };
    match (part(stages.input, whole) >= MOST, unpacks) {
        (true, _) => Bound::Reading,
        (false, true) => Bound::Inflating,
        (false, false) => Bound::ClientCpu,
    }
}

/// What the workers waited for, if it was answers.
fn behind(window: &Window) -> Bound {
    let stages = &window.stages;
    if part(stages.settling, window.worker_time()) >= MOST {
        return Bound::Journal;
    }
    if window.cores_busy() >= CORES_BUSY {
        return Bound::ClientCpu;
    }
    match window.share_on_server() {
        Some(on_server) if on_server < MOST => Bound::Network,
        Some(_) if flushes(window) => Bound::Journal,
        Some(_) | None => Bound::Server,
    }
}

/// Whether the server mostly wrote its journal; one that computes is not waiting for its disk.
fn flushes(window: &Window) -> bool {
    window.journal_share() >= MOST && window.server_cores() < MOST
}

/// A part of a time; zero where there is no whole.
fn part(part: Duration, whole: Duration) -> f64 {
    let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    share(nanos(part), nanos(whole))
}

#[cfg(test)]
mod tests;
