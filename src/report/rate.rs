//! How fast it goes: now, and at its fastest.

use std::time::Duration;

use crate::limits::{ETA_WINDOW, RATE_WINDOW};

/// Slots that a window's span is cut into; the oldest falls out as a new one begins, so a rate is
/// off by at most a twelfth of its span.
const SLOTS: usize = 12;

/// The most that an unfinished run shows as its share, so that 100 % always means done.
pub const UNFINISHED_SHARE_MAX: f64 = 0.999;

/// What the server acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amounts {
    /// Documents inserted.
    pub documents: u64,
    /// Bytes of documents, uncompressed.
    pub bytes: u64,
    /// Bytes of the files that they came from.
    pub origin_bytes: u64,
}

impl Amounts {
    pub(super) fn add(&mut self, other: Self) {
        self.documents += other.documents;
        self.bytes += other.bytes;
        self.origin_bytes += other.origin_bytes;
    }

    /// Takes away what was added before.
    pub(super) fn subtract(&mut self, other: Self) {
        self.documents -= other.documents;
        self.bytes -= other.bytes;
        self.origin_bytes -= other.origin_bytes;
    }

    /// The larger of each amount.
    pub(super) fn highest_of(self, other: Self) -> Self {
        Self {
            documents: self.documents.max(other.documents),
            bytes: self.bytes.max(other.bytes),
            origin_bytes: self.origin_bytes.max(other.origin_bytes),
        }
    }

    /// These amounts spread over a stretch of time.
    pub fn per(self, time: Duration) -> Rate {
        Rate {
            documents: per_second(self.documents, time),
            bytes: per_second(self.bytes, time),
            origin_bytes: per_second(self.origin_bytes, time),
        }
    }
}

/// Amounts per second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rate {
    /// Documents inserted per second.
    pub documents: f64,
    /// Bytes of documents per second, uncompressed.
    pub bytes: f64,
    /// Bytes of files per second.
    pub origin_bytes: f64,
}

/// One number divided by another; zero where there is nothing to divide by.
#[expect(clippy::cast_precision_loss, reason = "shares are shown with a few digits")]
pub fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// An amount per second; zero where no time passed.
#[expect(clippy::cast_precision_loss, reason = "rates are shown with a few digits")]
pub fn per_second(amount: u64, time: Duration) -> f64 {
    if time.is_zero() { 0.0 } else { amount as f64 / time.as_secs_f64() }
}

/// The rate over the last stretch of time, in fixed memory.
#[derive(Clone, Debug)]
pub struct Window {
    began: Duration,
    slot: Duration,
    newest: u64,
    slots: [Amounts; SLOTS],
}

impl Window {
    /// A window of that span which opens at `at`.
    pub fn new(at: Duration, span: Duration) -> Self {
        let slot = span / u32::try_from(SLOTS).unwrap_or(1);
        Self { began: at, slot, newest: number(at, slot), slots: [Amounts::default(); SLOTS] }
    }

    /// Counts amounts at `at`; times a little out of order count as the newest.
    pub fn add(&mut self, at: Duration, amounts: Amounts) {
        let now = number(at, self.slot).max(self.newest);
        for stale in (self.newest + 1..=now).rev().take(SLOTS) {
            self.slots[place(stale)] = Amounts::default();
        }
        self.newest = now;
        self.slots[place(now)].add(amounts);
    }

    /// The rate at `at`, taken over the span or since the window opened, if that is less.
    pub fn rate(&self, at: Duration) -> Rate {
        let now = number(at, self.slot).max(self.newest);
        let oldest = (now + 1).saturating_sub(SLOTS as u64);
        let mut sum = Amounts::default();
        for slot in oldest..=self.newest {
            sum.add(self.slots[place(slot)]);
        }
        let oldest_began = self.slot.saturating_mul(u32::try_from(oldest).unwrap_or(u32::MAX));
        // A window that has hardly opened would turn one batch into a record.
        sum.per(at.saturating_sub(oldest_began.max(self.began)).max(self.slot))
    }
}

fn number(at: Duration, slot: Duration) -> u64 {
    u64::try_from(at.as_nanos() / slot.as_nanos().max(1)).unwrap_or(u64::MAX)
}

#[expect(clippy::cast_possible_truncation, reason = "a remainder below SLOTS")]
fn place(slot: u64) -> usize {
    (slot % SLOTS as u64) as usize
}

/// The rate now, and the steadier one that an estimate is made of.
#[derive(Clone, Debug)]
pub struct Pace {
    now: Window,
    steady: Window,
}

impl Pace {
    /// A pace that is taken from `at` on.
    pub fn new(at: Duration) -> Self {
        Self { now: Window::new(at, RATE_WINDOW), steady: Window::new(at, ETA_WINDOW) }
    }

    /// Counts amounts at `at`.
    pub fn add(&mut self, at: Duration, amounts: Amounts) {
        self.now.add(at, amounts);
        self.steady.add(at, amounts);
    }

    /// The rate at `at`.
    pub fn rate(&self, at: Duration) -> Rate {
        self.now.rate(at)
    }

    /// How long that much will take from `at` on; nothing while there is no telling.
    #[expect(clippy::cast_precision_loss, reason = "an estimate is shown in whole seconds")]
    pub fn time_left(&self, at: Duration, origin_bytes_left: u64) -> Option<Duration> {
        let seconds = origin_bytes_left as f64 / self.steady.rate(at).origin_bytes;
        Duration::try_from_secs_f64(seconds).ok()
    }
}

/// The most within one whole second of the run, in fixed memory.
#[derive(Clone, Debug, Default)]
pub struct Peak {
    second: u64,
    current: Amounts,
    highest: Amounts,
}

impl Peak {
    /// Counts amounts at `at`; times a little out of order count for the newest second.
    pub fn add(&mut self, at: Duration, amounts: Amounts) {
        if at.as_secs() > self.second {
            self.highest = self.highest();
            self.second = at.as_secs();
            self.current = Amounts::default();
        }
        self.current.add(amounts);
    }

    /// The most of each amount that came within one second.
    pub fn highest(&self) -> Amounts {
        self.highest.highest_of(self.current)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn documents(documents: u64) -> Amounts {
        Amounts { documents, bytes: documents * 100, origin_bytes: documents * 10 }
    }

    fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn a_steady_pace_is_measured_as_it_is() {
        let mut window = Window::new(Duration::ZERO, Duration::from_secs(3));
        for tenth in 1..=100 {
            window.add(millis(tenth * 100), documents(50));
        }
        let rate = window.rate(millis(10_000));
        assert!((rate.documents - 500.0).abs() < 50.0, "{rate:?}");
        assert!((rate.bytes - 50_000.0).abs() < 5_000.0, "{rate:?}");
    }

    #[test]
    fn what_is_older_than_the_span_is_forgotten() {
        let mut window = Window::new(Duration::ZERO, Duration::from_secs(3));
        window.add(millis(500), documents(1000));
        assert!(window.rate(millis(2000)).documents > 0.0);
        assert_eq!(window.rate(millis(4000)), Rate::default());
        window.add(millis(60_000), documents(3));
        assert!((window.rate(millis(60_000)).documents - 1.0).abs() < 0.2);
    }

    #[test]
    fn the_first_moments_are_divided_by_the_time_there_was() {
        let mut window = Window::new(millis(10_100), Duration::from_secs(3));
        window.add(millis(10_900), documents(1000));
        assert!((window.rate(millis(11_100)).documents - 1000.0).abs() < 1.0);
        assert!(window.rate(millis(10_900)).documents <= 4000.0);
    }

    #[test]
    fn the_peak_is_that_of_one_second() {
        let mut peak = Peak::default();
        for (at, amount) in [(100, 5), (900, 6), (1500, 20), (1400, 1), (8000, 9)] {
            peak.add(millis(at), documents(amount));
        }
        assert_eq!(peak.highest(), documents(21));
        peak.add(millis(8500), documents(13));
        assert_eq!(peak.highest(), documents(22), "the second that is not over counts as well");
    }
}
