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
use crate::probe::mix::{Mix, Operation};
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

/// How far a step is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    /// Requests are sent.
    Held,
    /// No more of them are sent, and answers are waited for.
    Over,
    /// Nobody waits for an answer any more.
    Closed,
}

/// Sees how far a step is.
type Sight = watch::Receiver<Phase>;

/// A number of connections that is held for a time.
pub(super) struct Step {
    began: Instant,
    /// When it ends, in nanoseconds since it began; somebody may bring that forward.
    end: AtomicU64,
    phase: watch::Sender<Phase>,
    account: Mutex<Account>,
}

impl Step {
    /// A step that begins now.
    pub(super) fn begin(hold: Duration) -> Self {
        Self {
            began: Instant::now(),
            end: AtomicU64::new(nanoseconds(hold)),
            phase: watch::Sender::new(Phase::Held),
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
        self.phase.send_replace(Phase::Over);
    }

    /// Ends waiting for answers: requests that are on their way stay without one.
    pub(super) fn close(&self) {
        self.phase.send_replace(Phase::Closed);
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
    /// How long it waits before it connects again; nothing after an answer.
    pause: Duration,
}

impl Reader {
    /// The numbered reader of a run; its number and the run's seed decide what it asks for.
    pub(super) fn new(link: Option<Link>, seed: u64, number: u64) -> Self {
        Self { link, random: SplitMix64::nth(seed, number), pause: Duration::ZERO }
    }

    /// Asks until the step ends.
    pub(super) async fn run(&mut self, shared: &Shared, step: &Step) {
        let mut schedule = shared.pace.schedule(&mut self.random);
        let mut sight = step.phase.subscribe();
        loop {
            let intended = schedule.next(step.elapsed(), &mut self.random);
            if intended >= step.end() {
                return;
            }
            if !arrives(step, intended, &mut sight).await
                || !self.connected(shared, step, &mut sight).await
            {
                return self.give_up(&mut schedule, intended, step);
            }
            // Without a schedule a request is due when it is first sent.
            let intended = if schedule.is_fixed() { intended } else { step.elapsed() };
            self.ask(shared, step, intended, &mut sight).await;
        }
    }

    /// Sends one request and accounts for what came of it. A read whose connection breaks is sent
    /// once more, as drivers do, and is due since its first moment; a write may have been carried
    /// out.
    async fn ask(&mut self, shared: &Shared, step: &Step, intended: Duration, sight: &mut Sight) {
        let operation = shared.mix.at(self.random.unit());
        let request = shared.lookup.request(operation, &mut self.random);
        let mut is_again = false;
        step.account().due += 1;
        while self.connected(shared, step, sight).await
            && let Some(link) = &mut self.link
        {
            let sent = step.elapsed();
            step.account().asked_again += u64::from(is_again);
            let answer = tokio::select! {
                answer = link.ask(&request.command, PROBE_ANSWER_WITHIN) => answer,
                () = reached(sight, Phase::Closed) => break,
            };
            let at = Moments { intended, sent, answered: step.elapsed() };
            let mut account = step.account();
            match answer {
                Ok(answer) => {
                    account.misses += u64::from(!request.is_met_by(answer));
                    account.answered(operation, at, step.end());
                    self.pause = Duration::ZERO;
                    return;
                }
                Err(failure) => {
                    account.failed(&failure);
                    let is_lost = failure.ends_connection();
                    if is_lost {
                        account.lost += 1;
                        self.link = None;
                    }
                    let may_repeat = operation == Operation::Read && is_lost && !is_again;
                    if !may_repeat {
                        account.given_up += 1;
                        return;
                    }
                }
            }
            is_again = true;
        }
        // An answer that still comes would be taken for that of the next request.
        self.link = None;
        step.account().unanswered(intended, step.elapsed());
    }

    /// Opens a connection that was lost, again and again until the step ends; says whether there
    /// is one.
    async fn connected(&mut self, shared: &Shared, step: &Step, sight: &mut Sight) -> bool {
        let (shortest, longest) = PROBE_BACKOFF;
        while self.link.is_none() {
            let pause = self.pause.mul_f64(0.5 + self.random.unit());
            if !arrives(step, step.elapsed() + pause, sight).await {
                return false;
            }
            self.pause = (self.pause * 2).clamp(shortest, longest);
            let opened = tokio::select! {
                opened = open(shared) => opened,
                () = reached(sight, Phase::Over) => return false,
            };
            match opened {
                Ok(link) => {
                    self.link = Some(link);
                    step.account().reopened += 1;
                }
                Err(failure) => step.account().failed(&failure),
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
async fn arrives(step: &Step, moment: Duration, sight: &mut Sight) -> bool {
    if moment > step.elapsed() {
        tokio::select! {
            () = tokio::time::sleep_until(step.began + moment) => {}
            () = reached(sight, Phase::Over) => return false,
        }
    }
    step.elapsed() < step.end()
}

/// Waits until a step is so far.
async fn reached(sight: &mut Sight, phase: Phase) {
    drop(sight.wait_for(|now| *now >= phase).await);
}
