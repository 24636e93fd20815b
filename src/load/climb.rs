//! Finds how many batches should be in flight, by what came of the numbers that it tried.
//!
//! It has no clock and touches nothing: it is fed with what happened in short stretches of time and
//! says when the number changes, and why. It begins with few and doubles while that brings more;
//! afterwards it tries a few more or a few less now and then, at growing intervals, and keeps the
//! smallest number that does not cost throughput.

mod reason;

use std::time::Duration;

pub(super) use reason::Reason;

use crate::limits::{WORKERS_DEFAULT, WORKERS_START};
use crate::load::pressure::Pressure;

/// What a server does for a document apart from its bytes, in bytes whose writing costs as much: an
/// estimate between the rates of documents of 175 bytes and of a megabyte, not a fit. It only has
/// to keep rates comparable where documents grow or shrink in the course of a dump.
const DOCUMENT_BYTES: u64 = 800;

/// A number that brings this much more is worth it.
const GAIN: f64 = 1.05;

/// The same as long as few are in flight, where one too many costs less than one too few.
const GAIN_OF_FEW: f64 = 1.02;

/// A smaller number is enough if it brings no less than this share.
const ENOUGH: f64 = 0.98;

/// The same where the server is under pressure.
const ENOUGH_UNDER_PRESSURE: f64 = 0.95;

/// What all smaller numbers one after the other may cost.
const ENOUGH_OF_BEST: f64 = 0.96;

/// A number that brings this share of what it is larger by is far from the last that does.
const PROPORTIONAL: f64 = 0.85;

/// Differences that show at a glance.
const FAR_LESS: f64 = 0.75;
const FAR_MORE: f64 = 1.3;

/// So much more that it is worth going on even where the number is not small.
const TWICE: f64 = 2.0;

/// Differences that show at a look.
const LESS: f64 = 0.88;
const MORE: f64 = 1.15;

/// What remains of the best rate with each trial, because documents and servers change.
const FORGOTTEN: f64 = 0.95;

/// Workers that have a batch for less than this share of the time starve: the readers are what
/// limits the run.
const BUSY: f64 = 0.8;

/// A rate that differs by this share is another one, not noise.
const OTHER: f64 = 0.2;

/// Answers that take this much longer have become slower.
const SLOWER: f64 = 1.5;

/// The time that a clear difference shows in, and an ordinary one while the number is looked for.
const GLANCE: Duration = Duration::from_millis(40);
const LOOK: Duration = Duration::from_millis(200);

/// The time that a difference has to show in once the number is found.
const STUDY: Duration = Duration::from_millis(500);

/// The time from one trial to the next, at first and at most.
const INTERVAL_MIN: Duration = Duration::from_millis(500);
const INTERVAL_MAX: Duration = Duration::from_secs(60);

/// The time after which a number is lowered further while a pressure lasts; longer each time that
/// nothing came of it.
const PRESSURE_INTERVAL: Duration = Duration::from_secs(2);

/// The longest time for which answers are taken to stem from the number before; after an outage
/// they have taken far longer than those that come next.
const UNSETTLED_MAX: Duration = Duration::from_secs(2);

/// What happened in a stretch of time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Window {
    /// How long it was.
    pub(super) elapsed: Duration,
    /// Bytes of documents that were acknowledged.
    pub(super) bytes: u64,
    /// Documents that were acknowledged.
    pub(super) documents: u64,
    /// Batches that were acknowledged.
    pub(super) batches: u64,
    /// The time that these batches took, summed up.
    pub(super) latency: Duration,
    /// The time that batches were in flight within the stretch, summed up.
    pub(super) in_flight: Duration,
}

impl Window {
    fn add(&mut self, other: &Self) {
        self.elapsed += other.elapsed;
        self.bytes += other.bytes;
        self.documents += other.documents;
        self.batches += other.batches;
        self.latency += other.latency;
        self.in_flight += other.in_flight;
    }

    /// Whether it is long enough to be judged.
    fn lasts(&self, time: Duration, batches_each: u64, workers: usize) -> bool {
        self.elapsed >= time && self.batches >= (batches_each * workers as u64).max(4)
    }

    /// Work a second. What was acknowledged is scaled by the time in flight over the time that it
    /// took, so that it does not matter how many answers fall just inside or just outside.
    fn rate(&self) -> f64 {
        let work = float(self.bytes + DOCUMENT_BYTES * self.documents);
        let scale = self.in_flight.as_secs_f64() / self.latency.as_secs_f64().max(1e-9);
        work * scale / self.elapsed.as_secs_f64().max(1e-9)
    }

    fn latency_mean(&self) -> Duration {
        self.latency / u32::try_from(self.batches.max(1)).unwrap_or(u32::MAX)
    }

    /// The share of time in which so many workers had a batch.
    fn busy(&self, workers: usize) -> f64 {
        self.in_flight.as_secs_f64()
            / (self.elapsed.as_secs_f64() * float(workers as u64)).max(1e-9)
    }
}

/// Whether a number brings nearly as much more as it is larger.
fn is_proportional(from: usize, tried: usize, ratio: f64) -> bool {
    ratio >= float(tried as u64) / float(from as u64) * PROPORTIONAL
}

#[expect(clippy::cast_precision_loss, reason = "rates are compared to a part in a hundred")]
fn float(number: u64) -> f64 {
    number as f64
}

/// A number of workers, and why it is that.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Decision {
    pub(super) workers: usize,
    pub(super) reason: Reason,
}

/// The number of workers that may send, and how it is found.
#[derive(Debug)]
pub(super) struct Climb {
    workers: usize,
    most: usize,
    /// Whether only lag changes the number.
    is_fixed: bool,
    phase: Phase,
    /// What has happened since the number was changed, or since it was last judged.
    seen: Window,
    /// How much of what comes next still stems from the number before.
    unsettled: Duration,
    latency: Duration,
    interval: Duration,
    next: Direction,
    /// Whether the number is still looked for, in large steps.
    is_searching: bool,
    /// How many times as many are tried next while it is.
    step: usize,
    /// Trials of more that come before one of fewer.
    doubts: u32,
    /// The best rate since the number was last raised.
    best: f64,
    normal: Option<Normal>,
    pressure: Pressure,
    /// The time until the number may be lowered because of a pressure.
    spared: Duration,
    pressure_interval: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Up,
    Down,
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    /// The number stays, for so long.
    Holding { left: Duration },
    /// The rate is taken for a trial.
    Measuring,
    /// Another number is tried.
    Trying { from: usize, before: f64, enough: f64 },
}

/// What is usual at a number that is held.
#[derive(Clone, Copy, Debug)]
struct Normal {
    rate: f64,
    latency: Duration,
    /// Whether it was already otherwise when it was last looked at.
    is_doubted: bool,
}

impl Climb {
    /// Begins small, and goes up to so many.
    pub(super) fn to(most: usize) -> Self {
        Self::new(WORKERS_START.min(most), most, false)
    }

    /// So many, unless secondaries lag.
    pub(super) fn fixed(workers: usize) -> Self {
        Self::new(workers, workers, true)
    }

    fn new(workers: usize, most: usize, is_fixed: bool) -> Self {
        Self {
            workers,
            most,
            is_fixed,
            phase: Phase::Measuring,
            seen: Window::default(),
            unsettled: Duration::ZERO,
            latency: Duration::ZERO,
            interval: INTERVAL_MIN,
            next: Direction::Up,
            is_searching: true,
            step: 2,
            doubts: 0,
            best: 0.0,
            normal: None,
            pressure: Pressure::None,
            spared: Duration::ZERO,
            pressure_interval: PRESSURE_INTERVAL,
        }
    }

    /// How many may send.
    pub(super) fn workers(&self) -> usize {
        self.workers
    }

    /// Goes no higher than this from here on.
    pub(super) fn stop_at(&mut self, most: usize) {
        self.most = most;
        self.workers = self.workers.min(most);
        self.wait();
    }

    /// Takes in what a stretch of time brought, and how the server stands.
    pub(super) fn feed(&mut self, window: &Window, pressure: Pressure) -> Option<Decision> {
        self.pressure = pressure;
        self.spared = self.spared.saturating_sub(window.elapsed);
        if pressure == Pressure::None {
            self.pressure_interval = PRESSURE_INTERVAL;
        }
        if let Some(decision) = self.yield_to_lag() {
            return Some(decision);
        }
        if self.is_fixed || matches!(self.pressure, Pressure::Lag { .. }) {
            return None;
        }
        // Nothing is known of a number at which nothing is sent.
        if window.in_flight.is_zero() && window.batches == 0 {
            return None;
        }
        if !self.unsettled.is_zero() {
            self.unsettled = self.unsettled.saturating_sub(window.elapsed);
            return None;
        }
        self.seen.add(window);
        match self.phase {
            Phase::Holding { left } => self.hold(left.saturating_sub(window.elapsed)),
            Phase::Measuring => self.measure(),
            Phase::Trying { from, before, enough } => self.judge(from, before, enough),
        }
    }

    /// Halves the number while secondaries lag; a fixed one is doubled again afterwards.
    fn yield_to_lag(&mut self) -> Option<Decision> {
        let is_spared = !self.spared.is_zero();
        if let Pressure::Lag { lag } = self.pressure {
            if is_spared || self.workers == 1 {
                return None;
            }
            self.spared = PRESSURE_INTERVAL;
            self.next = Direction::Up;
            self.is_searching = true;
            self.hold_for(INTERVAL_MIN);
            return Some(self.set((self.workers / 2).max(1), Reason::Lag { lag }));
        }
        if self.is_fixed && self.workers < self.most && !is_spared {
            self.spared = PRESSURE_INTERVAL;
            return Some(self.set((self.workers * 2).min(self.most), Reason::CaughtUp));
        }
        None
    }

    fn hold(&mut self, left: Duration) -> Option<Decision> {
        self.phase = Phase::Holding { left };
        if self.seen.lasts(STUDY, 2, self.workers) {
            let seen = std::mem::take(&mut self.seen);
            if let Some(decision) = self.compare(&seen) {
                return Some(decision);
            }
        }
        if let Some(decision) = self.yield_to_server() {
            return Some(decision);
        }
        if matches!(self.phase, Phase::Holding { left } if left.is_zero()) {
            self.phase = Phase::Measuring;
            self.seen = Window::default();
        }
        None
    }

    /// Compares a stretch with what is usual, and acts where it was otherwise twice.
    fn compare(&mut self, seen: &Window) -> Option<Decision> {
        let (rate, latency) = (seen.rate(), seen.latency_mean());
        self.latency = latency;
        let Some(normal) = &mut self.normal else {
            self.normal = Some(Normal { rate, latency, is_doubted: false });
            return None;
        };
        let is_busy = seen.busy(self.workers) >= BUSY;
        let is_slower = latency > normal.latency.mul_f64(SLOWER) && rate < normal.rate * GAIN;
        let is_other = (rate / normal.rate.max(1e-9) - 1.0).abs() > OTHER;
        if !is_busy || !(is_slower || is_other) {
            // It follows slow changes.
            normal.rate = normal.rate.mul_add(0.8, rate * 0.2);
            normal.is_doubted = false;
            return None;
        }
        if !std::mem::replace(&mut normal.is_doubted, true) {
            return None;
        }
        let before = normal.latency;
        self.normal = Some(Normal { rate, latency, is_doubted: false });
        self.interval = INTERVAL_MIN;
        self.best = rate;
        self.is_searching = true;
        self.next = Direction::Up;
        if is_slower && self.workers > 1 {
            let reason = Reason::Slower { latency, before };
            return Some(self.try_fewer(rate, ENOUGH, reason));
        }
        self.phase = Phase::Measuring;
        None
    }

    /// Tries with half as many while the server is under pressure.
    fn yield_to_server(&mut self) -> Option<Decision> {
        let Pressure::Server(pressure) = self.pressure else {
            return None;
        };
        let normal = self.normal?;
        if !self.spared.is_zero() || self.workers <= WORKERS_START {
            return None;
        }
        self.spared = self.pressure_interval;
        let fewer = (self.workers / 2).max(WORKERS_START);
        let reason = Reason::Pressure(pressure);
        Some(self.try_number(fewer, normal.rate, ENOUGH_UNDER_PRESSURE, reason))
    }

    /// Takes the rate of now, and tries another number.
    fn measure(&mut self) -> Option<Decision> {
        let time = if self.is_searching { GLANCE } else { STUDY };
        if !self.seen.lasts(time, 1, self.workers) {
            return None;
        }
        let seen = std::mem::take(&mut self.seen);
        let rate = seen.rate();
        self.latency = seen.latency_mean();
        self.best = rate.max(self.best * FORGOTTEN);
        let is_starved = seen.busy(self.workers) < BUSY;
        match self.next {
            Direction::Up if self.may_climb() && !is_starved => {
                Some(self.try_more(rate, Reason::Probe))
            }
            // Readers that cannot keep up now may do so soon.
            Direction::Up if self.is_searching && self.may_climb() => None,
            Direction::Down if self.workers > 1 => {
                Some(self.try_fewer(rate, ENOUGH, Reason::ProbeFewer))
            }
            Direction::Up | Direction::Down => {
                self.wait();
                None
            }
        }
    }

    fn may_climb(&self) -> bool {
        self.workers < self.most && !matches!(self.pressure, Pressure::Server(_))
    }

    /// Whether enough was seen of a number that is tried. More workers hardly ever bring less, and
    /// fewer never more: what looks like it is the server's or the machine's moment.
    fn is_judged(&self, from: usize, ratio: f64) -> bool {
        let lasts = |time, batches_each| self.seen.lasts(time, batches_each, self.workers);
        let is_few = self.workers <= WORKERS_DEFAULT;
        if self.workers < from {
            let all = if self.is_searching { LOOK } else { STUDY };
            return lasts(all, 4)
                || (ratio < FAR_LESS && lasts(GLANCE, 1))
                || (ratio < LESS && lasts(LOOK, 4));
        }
        let is_clear = is_proportional(from, self.workers, ratio)
            || ratio >= TWICE
            || (ratio > FAR_MORE && is_few);
        let is_hopeless = self.is_searching && !is_few;
        lasts(STUDY, 4)
            || (is_clear && lasts(GLANCE, 1))
            || ((ratio > MORE || is_hopeless) && lasts(LOOK, 4))
    }

    /// Judges a number that is tried by the rate that it brings.
    fn judge(&mut self, from: usize, before: f64, enough: f64) -> Option<Decision> {
        // Many have to bring more than fewer ever did, not only than in a bad moment.
        let is_many = self.workers > from.max(WORKERS_DEFAULT);
        let before = if is_many { before.max(self.best) } else { before };
        let ratio = self.seen.rate() / before.max(1e-9);
        if !self.is_judged(from, ratio) {
            return None;
        }
        let seen = std::mem::take(&mut self.seen);
        let rate = seen.rate();
        self.latency = seen.latency_mean();
        let reason = Reason::Brought { tried: self.workers, before: from, ratio };
        if self.workers > from {
            return self.judge_more((from, before), &seen, ratio, reason);
        }
        let is_enough = ratio >= enough && rate >= self.best * ENOUGH_OF_BEST.min(enough);
        if !is_enough {
            if enough < ENOUGH {
                self.pressure_interval = (self.pressure_interval * 2).min(INTERVAL_MAX);
                self.spared = self.pressure_interval;
            }
            if self.is_searching {
                self.phase = Phase::Measuring;
            } else {
                self.wait();
            }
            return Some(self.set(from, reason));
        }
        self.normal = None;
        if self.workers > 1 && enough >= ENOUGH {
            return Some(self.try_fewer(rate, enough, Reason::Enough { tried: self.workers }));
        }
        self.wait();
        None
    }

    fn judge_more(
        &mut self,
        (from, before): (usize, f64),
        seen: &Window,
        ratio: f64,
        reason: Reason,
    ) -> Option<Decision> {
        let gain = if self.workers <= WORKERS_DEFAULT { GAIN_OF_FEW } else { GAIN };
        if ratio < gain && self.is_searching && self.workers > from * 2 {
            // It was a large step, which may have led too far.
            self.phase = Phase::Trying { from, before, enough: 0.0 };
            return Some(self.set(from * 2, reason));
        }
        if ratio < gain {
            if std::mem::take(&mut self.is_searching) {
                // It may have been bad luck, which costs more than a trial.
                self.doubts = 2;
            }
            self.wait();
            return Some(self.set(from, reason));
        }
        self.normal = None;
        self.best = seen.rate();
        self.is_searching = true;
        self.step = if is_proportional(from, self.workers, ratio) { 4 } else { 2 };
        if self.may_climb() && seen.busy(self.workers) >= BUSY {
            return Some(self.try_more(self.best, reason));
        }
        self.phase = Phase::Measuring;
        None
    }

    fn try_more(&mut self, before: f64, reason: Reason) -> Decision {
        let more = if self.is_searching {
            self.workers * self.step
        } else {
            self.workers + (self.workers / 2).max(1)
        };
        self.step = 2;
        self.try_number(more.min(self.most), before, 0.0, reason)
    }

    fn try_fewer(&mut self, before: f64, enough: f64, reason: Reason) -> Decision {
        let step = (self.workers / 4).max(1);
        self.try_number(self.workers - step, before, enough, reason)
    }

    fn try_number(&mut self, workers: usize, before: f64, enough: f64, reason: Reason) -> Decision {
        self.phase = Phase::Trying { from: self.workers, before, enough };
        self.set(workers, reason)
    }

    /// Holds the number, and tries the other direction next, later each time.
    fn wait(&mut self) {
        self.next = match self.next {
            Direction::Up if self.doubts == 0 => Direction::Down,
            Direction::Up | Direction::Down => Direction::Up,
        };
        self.doubts = self.doubts.saturating_sub(1);
        let interval = self.interval;
        self.interval = (interval * 2).min(INTERVAL_MAX);
        self.is_searching = false;
        self.hold_for(interval);
    }

    fn hold_for(&mut self, left: Duration) {
        self.phase = Phase::Holding { left };
        self.seen = Window::default();
    }

    fn set(&mut self, workers: usize, reason: Reason) -> Decision {
        self.seen = Window::default();
        self.unsettled = self.latency.min(UNSETTLED_MAX);
        self.workers = workers;
        Decision { workers, reason }
    }
}

#[cfg(test)]
mod tests;
