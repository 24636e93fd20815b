//! Keeps a run from sending more than so much in a second.

use std::fmt;
use std::num::NonZeroU64;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::batch::{Batch, BatchLimits};
use crate::limits::{INTERRUPT_INTERVAL, LIMITED_BATCHES_PER_SECOND};

/// What may be caught up with after nothing was there to be sent.
const CAUGHT_UP_MAX: Duration = Duration::from_millis(250);

/// The most that is sent in a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateLimit {
    /// So many documents.
    Documents(NonZeroU64),
    /// So many bytes of documents.
    Bytes(NonZeroU64),
}

impl RateLimit {
    /// Reads `5000docs`, or a size such as `10M` or `10MB`, in which K, M and G are KiB, MiB and
    /// GiB; `/s` may follow.
    ///
    /// # Errors
    ///
    /// Says what is expected, where it is neither.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.strip_suffix("/s").unwrap_or(text);
        let unit_at = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (digits, unit) = text.split_at(unit_at);
        let number = digits.parse::<NonZeroU64>().map_err(|_| {
            "a rate such as 5000docs or 10M is needed, in documents or bytes a second".to_owned()
        })?;
        let factor = match unit.to_ascii_lowercase().as_str() {
            "docs" | "documents" => return Ok(Self::Documents(number)),
            "" => {
                return Err(format!(
                    "{number} of what? {number}docs are documents a second, {number}B, {number}K \
                     and {number}M are bytes, KiB and MiB a second"
                ));
            }
            "b" => 1,
            "k" | "kb" | "kib" => 1 << 10,
            "m" | "mb" | "mib" => 1 << 20,
            "g" | "gb" | "gib" => 1 << 30,
            _ => return Err(format!("the unit {unit} is not known; use docs, B, K, M or G")),
        };
        let factor = NonZeroU64::MIN.saturating_add(factor - 1);
        number.checked_mul(factor).map(Self::Bytes).ok_or_else(|| "that is too much".to_owned())
    }

    fn per_second(self) -> u64 {
        match self {
            Self::Documents(number) | Self::Bytes(number) => number.get(),
        }
    }

    /// How much of what is limited a batch holds.
    fn amount(self, batch: &Batch) -> u64 {
        match self {
            Self::Documents(_) => batch.documents.into(),
            Self::Bytes(_) => batch.document_bytes,
        }
    }

    /// Batches so small that several fit into a second.
    pub(super) fn narrowed(self, batch: BatchLimits) -> BatchLimits {
        let most = (self.per_second() / LIMITED_BATCHES_PER_SECOND).max(1);
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        match self {
            Self::Documents(_) => BatchLimits::new(batch.documents().min(most), batch.bytes()),
            Self::Bytes(_) => BatchLimits::new(batch.documents(), batch.bytes().min(most)),
        }
    }
}

impl fmt::Display for RateLimit {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Documents(number) => write!(out, "{number}docs"),
            Self::Bytes(number) => write!(out, "{number}B"),
        }
    }
}

/// When the next batch may go.
#[derive(Debug)]
struct Schedule {
    per_second: u64,
    /// When all that was sent has used up its time.
    next: Duration,
}

impl Schedule {
    /// How long to wait, at this time, before so much is sent.
    fn delay(&mut self, now: Duration, amount: u64) -> Duration {
        let begin = self.next.max(now.saturating_sub(CAUGHT_UP_MAX));
        let nanos = u128::from(amount) * 1_000_000_000 / u128::from(self.per_second);
        let takes = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        self.next = begin.saturating_add(takes);
        begin.saturating_sub(now)
    }
}

/// Has batches wait so that the limit is kept.
#[derive(Debug)]
pub(super) struct Limiter {
    limit: RateLimit,
    schedule: Mutex<Schedule>,
    began: Instant,
}

impl Limiter {
    pub(super) fn new(limit: RateLimit) -> Self {
        let schedule = Schedule { per_second: limit.per_second(), next: Duration::ZERO };
        Self { limit, schedule: Mutex::new(schedule), began: Instant::now() }
    }

    /// Waits until a batch may go, or until nobody wants to wait any more.
    pub(super) async fn wait(&self, batch: &Batch, goes_on: impl Fn() -> bool) {
        let now = Instant::now();
        let delay = {
            let mut schedule = self.schedule.lock().unwrap_or_else(PoisonError::into_inner);
            schedule.delay(now.duration_since(self.began), self.limit.amount(batch))
        };
        let until = now + delay;
        while Instant::now() < until && goes_on() {
            tokio::time::sleep_until(until.min(Instant::now() + INTERRUPT_INTERVAL)).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn documents(number: u64) -> RateLimit {
        RateLimit::Documents(NonZeroU64::new(number).expect("not zero"))
    }

    fn bytes(number: u64) -> RateLimit {
        RateLimit::Bytes(NonZeroU64::new(number).expect("not zero"))
    }

    #[test]
    fn a_rate_is_of_documents_or_of_bytes() {
        for (text, expected) in [
            ("5000docs", documents(5000)),
            ("1documents/s", documents(1)),
            ("10M", bytes(10 << 20)),
            ("10MB/s", bytes(10 << 20)),
            ("512KiB", bytes(512 << 10)),
            ("7b", bytes(7)),
            ("1g", bytes(1 << 30)),
        ] {
            assert_eq!(RateLimit::parse(text), Ok(expected), "{text}");
            assert_eq!(RateLimit::parse(&expected.to_string()), Ok(expected));
        }
        for (text, words) in [
            ("5000", "5000docs are documents"),
            ("5000/s", "5000 of what?"),
            ("0docs", "a rate such as"),
            ("-5M", "a rate such as"),
            ("fast", "a rate such as"),
            ("", "a rate such as"),
            ("10MB/m", "the unit MB/m is not known"),
            ("10Mdocs", "the unit Mdocs is not known"),
            ("18446744073709551615G", "too much"),
        ] {
            let error = RateLimit::parse(text).expect_err(text);
            assert!(error.contains(words), "{text}: {error}");
        }
    }

    #[test]
    fn batches_fit_into_a_second_several_times() {
        let limits = BatchLimits::new(2000, 1 << 20);
        assert_eq!(documents(5000).narrowed(limits), BatchLimits::new(500, 1 << 20));
        assert_eq!(documents(3).narrowed(limits), BatchLimits::new(1, 1 << 20));
        assert_eq!(documents(1_000_000).narrowed(limits), limits);
        assert_eq!(bytes(1000).narrowed(limits), BatchLimits::new(2000, 100));
        assert_eq!(bytes(1 << 30).narrowed(limits), limits);
    }

    /// The times at which batches go that are there one after the other without a pause.
    fn times(per_second: u64, amounts: &[u64]) -> Vec<u128> {
        let mut schedule = Schedule { per_second, next: Duration::ZERO };
        let mut now = Duration::ZERO;
        let mut go = |&amount| {
            now += schedule.delay(now, amount);
            now.as_millis()
        };
        amounts.iter().map(&mut go).collect()
    }

    #[test]
    fn a_batch_waits_for_the_time_of_those_before_it() {
        assert_eq!(times(1000, &[100, 100, 500, 1]), [0, 100, 200, 700]);
        // One that holds more than a second's worth goes at once and is paid for afterwards.
        assert_eq!(times(1000, &[5000, 1, 1]), [0, 5000, 5001]);
    }

    #[test]
    fn what_was_not_used_is_lost_but_for_a_moment() {
        let mut schedule = Schedule { per_second: 1000, next: Duration::ZERO };
        let at = Duration::from_millis;
        assert_eq!(schedule.delay(at(0), 100), at(0));
        // It came 50 ms late, so that the next one may come 50 ms early.
        assert_eq!(schedule.delay(at(150), 100), at(0));
        assert_eq!(schedule.delay(at(150), 100), at(50));
        // After a long pause no more than a quarter of a second is caught up with.
        assert_eq!(schedule.delay(at(60_000), 100), at(0));
        assert_eq!(schedule.delay(at(60_000), 100), at(0));
        assert_eq!(schedule.delay(at(60_000), 100), at(0));
        assert_eq!(schedule.delay(at(60_000), 100), at(50));
    }

    #[test]
    fn the_largest_amounts_overflow_nothing() {
        let mut schedule = Schedule { per_second: 1, next: Duration::ZERO };
        assert_eq!(schedule.delay(Duration::ZERO, u64::MAX), Duration::ZERO);
        assert!(schedule.delay(Duration::ZERO, u64::MAX) > Duration::from_secs(1_000_000));
    }
}
