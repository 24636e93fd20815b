//! The one loop of a probe: wait for the moment, ask, account for the answer.
//!
//! How many connections there are, when they ask and what they ask are values that the loop is
//! given; it knows no modes.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use crate::limits::{PROBE_ANSWER_WITHIN, PROBE_BACKOFF};
use crate::probe::account::{Account, Moments};
use crate::probe::door::Door;
use crate::probe::lookup::Lookup;
use crate::probe::mix::Mix;
use crate::probe::pace::{Pace, Schedule};
use crate::probe::server::Server;
use crate::probe::wire::{Failure, Link};
use crate::seed::random::SplitMix64;

/// What all connections of a run share.
pub(super) struct Shared {
    pub(super) server: Server,
    pub(super) door: Door,
    pub(super) pace: Pace,
    pub(super) mix: Mix,
    pub(super) lookup: Lookup,
}

/// A number of connections that is held for a time.
pub(super) struct Step {
    began: Instant,
    /// When it ends, in nanoseconds since it began; somebody may bring that forward.
    end: AtomicU64,
    is_over: watch::Sender<bool>,
    account: Mutex<Account>,
}

impl Step {
    /// A step that begins now.
    pub(super) fn begin(hold: Duration) -> Self {
        Self {
            began: Instant::now(),
            end: AtomicU64::new(nanoseconds(hold)),
            is_over: watch::Sender::new(false),
            account: Mutex::default(),
        }
    }

    /// How long it has lasted.
    pub(super) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// How long it lasts.
    pub(super) fn end(&self) -> Duration {
        Duration::from_nanos(self.end.load(Ordering::Relaxed))
    }

    /// Ends it: those that wait for their moment wait no more. A step that is cut lasted until now.
    pub(super) fn finish(&self) {
        self.end.fetch_min(nanoseconds(self.elapsed()), Ordering::Relaxed);
        self.is_over.send_replace(true);
    }

    /// What came of it so far.
    pub(super) fn account(&self) -> MutexGuard<'_, Account> {
        self.account.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// One connection with what makes its choices.
pub(super) struct Reader {
    /// Nothing while it is lost.
    pub(super) link: Option<Link>,
    random: SplitMix64,
}

impl Reader {
    /// The numbered reader of a run; its number and the run's seed decide what it asks for.
    pub(super) fn new(link: Option<Link>, seed: u64, number: u64) -> Self {
        Self { link, random: SplitMix64::nth(seed, number) }
    }

    /// Asks until the step ends.
    pub(super) async fn run(&mut self, shared: &Shared, step: &Step) {
        let mut schedule = shared.pace.schedule(&mut self.random);
        let mut is_over = step.is_over.subscribe();
        loop {
            let intended = schedule.next(step.elapsed(), &mut self.random);
            if intended >= step.end() {
                return;
            }
            if !arrives(step, intended, &mut is_over).await
                || !self.connected(shared, step, &mut is_over).await
            {
                return self.give_up(&mut schedule, intended, step);
            }
            self.ask(shared, step, intended, schedule.is_fixed()).await;
        }
    }

    /// Sends one request and accounts for what came of it.
    async fn ask(&mut self, shared: &Shared, step: &Step, intended: Duration, is_fixed: bool) {
        let Some(link) = &mut self.link else { return };
        let operation = shared.mix.at(self.random.unit());
        let request = shared.lookup.request(operation, &mut self.random);
        let sent = step.elapsed();
        // Without a schedule a request is due when it is sent.
        let intended = if is_fixed { intended } else { sent };
        let answer = link.ask(&request.command, PROBE_ANSWER_WITHIN).await;
        let answered = step.elapsed();
        let end = step.end();
        let mut account = step.account();
        account.due += 1;
        match answer {
            Ok(answer) => {
                account.misses += u64::from(!request.is_met_by(answer));
                account.answered(operation, Moments { intended, sent, answered }, end);
            }
            Err(failure) => {
                account.failed(&failure);
                if failure.ends_connection() {
                    account.lost += 1;
                    self.link = None;
                }
            }
        }
    }

    /// Opens a connection that was lost, again and again until the step ends; says whether there
    /// is one.
    async fn connected(
        &mut self,
        shared: &Shared,
        step: &Step,
        is_over: &mut watch::Receiver<bool>,
    ) -> bool {
        let (mut wait, longest) = PROBE_BACKOFF;
        while self.link.is_none() {
            let opened = tokio::select! {
                opened = open(shared) => opened,
                _ = is_over.wait_for(|over| *over) => return false,
            };
            match opened {
                Ok(link) => {
                    self.link = Some(link);
                    step.account().reopened += 1;
                }
                Err(failure) => {
                    step.account().failed(&failure);
                    let moved = wait.mul_f64(0.5 + self.random.unit());
                    if !arrives(step, step.elapsed() + moved, is_over).await {
                        return false;
                    }
                    wait = (wait * 2).min(longest);
                }
            }
        }
        true
    }

    /// Accounts for what was due before the end and was never sent.
    fn give_up(&mut self, schedule: &mut Schedule, first: Duration, step: &Step) {
        if !schedule.is_fixed() {
            return;
        }
        let end = step.end();
        let mut intended = first;
        let mut account = step.account();
        while intended < end {
            account.unsent(intended, end);
            intended = schedule.next(end, &mut self.random);
        }
    }
}

/// A new connection, when it is its turn.
pub(super) async fn open(shared: &Shared) -> Result<Link, Failure> {
    shared.door.pass().await;
    shared.server.connect().await
}

/// Waits for a moment of the step; says whether it came before the step's end.
async fn arrives(step: &Step, moment: Duration, is_over: &mut watch::Receiver<bool>) -> bool {
    let now = step.elapsed();
    if moment > now {
        let at = step.began + moment;
        tokio::select! {
            () = tokio::time::sleep_until(at) => {}
            _ = is_over.wait_for(|over| *over) => return false,
        }
    }
    step.elapsed() < step.end()
}
