//! How long batches took from sending to their answer.

use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;

/// Latencies that are kept as they are before a histogram is worth its memory: most collections of
/// a dump with very many have a batch or two.
const FEW: usize = 32;

/// Digits that a latency is kept with; the histogram's error is below a hundredth.
const DIGITS: u8 = 2;

/// Latencies of batches, in little memory for few of them and in about 15 KB for any number.
#[derive(Clone, Debug, Default)]
pub struct Latencies {
    kept: Kept,
    total: Duration,
    max: Duration,
}

#[derive(Clone, Debug, Default)]
enum Kept {
    #[default]
    None,
    /// It is the longest as well.
    One,
    /// In microseconds, in the order in which they came.
    Few(Vec<u64>),
    Many(Box<Histogram<u32>>),
}

/// The distribution of latencies, in seconds; all zero where there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Quantiles {
    /// Batches.
    pub count: u64,
    /// The mean.
    pub mean_seconds: f64,
    /// Half of the batches took at most this.
    pub p50_seconds: f64,
    /// Nine tenths.
    pub p90_seconds: f64,
    /// 19 of 20.
    pub p95_seconds: f64,
    /// 99 of 100.
    pub p99_seconds: f64,
    /// 999 of 1000.
    pub p999_seconds: f64,
    /// The longest.
    pub max_seconds: f64,
}

impl Latencies {
    /// Takes a latency into account.
    pub fn add(&mut self, latency: Duration) {
        let before = self.max;
        self.total += latency;
        self.max = self.max.max(latency);
        let micros = micros(latency);
        match &mut self.kept {
            Kept::None => self.kept = Kept::One,
            Kept::One => self.kept = Kept::Few(vec![self::micros(before), micros]),
            Kept::Few(few) if few.len() < FEW => few.push(micros),
            Kept::Few(few) => {
                if let Ok(mut histogram) = Histogram::new(DIGITS) {
                    few.iter().chain([&micros]).for_each(|&one| record(&mut histogram, one));
                    self.kept = Kept::Many(Box::new(histogram));
                }
            }
            Kept::Many(histogram) => record(histogram, micros),
        }
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        match &self.kept {
            Kept::None => 0,
            Kept::One => 1,
            Kept::Few(few) => few.len() as u64,
            Kept::Many(histogram) => histogram.len(),
        }
    }

    /// The time that this share of the batches took at most; zero where there are none.
    pub fn quantile(&self, share: f64) -> Duration {
        let micros = match &self.kept {
            Kept::None => 0,
            Kept::One => micros(self.max),
            Kept::Few(few) => {
                let mut sorted = few.clone();
                sorted.sort_unstable();
                sorted.get(rank(share, sorted.len())).copied().unwrap_or(0)
            }
            Kept::Many(histogram) => histogram.value_at_quantile(share),
        };
        Duration::from_micros(micros).min(self.max)
    }

    /// The mean; zero where there are none.
    pub fn mean(&self) -> Duration {
        let nanos = self.total.as_nanos() / u128::from(self.count().max(1));
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// The longest; zero where there are none.
    pub fn max(&self) -> Duration {
        self.max
    }

    /// The whole distribution in a few numbers.
    pub fn quantiles(&self) -> Quantiles {
        let at = |share| self.quantile(share).as_secs_f64();
        Quantiles {
            count: self.count(),
            mean_seconds: self.mean().as_secs_f64(),
            p50_seconds: at(0.5),
            p90_seconds: at(0.9),
            p95_seconds: at(0.95),
            p99_seconds: at(0.99),
            p999_seconds: at(0.999),
            max_seconds: self.max.as_secs_f64(),
        }
    }

    /// Forgets all of them and keeps the memory.
    pub(super) fn clear(&mut self) {
        (self.total, self.max) = (Duration::ZERO, Duration::ZERO);
        match &mut self.kept {
            Kept::None => {}
            Kept::One | Kept::Few(_) => self.kept = Kept::None,
            Kept::Many(histogram) => histogram.reset(),
        }
    }
}

fn micros(latency: Duration) -> u64 {
    u64::try_from(latency.as_micros()).unwrap_or(u64::MAX).max(1)
}

/// Takes a value in; the histogram grows to hold it.
fn record(histogram: &mut Histogram<u32>, micros: u64) {
    if histogram.record(micros).is_err() {
        histogram.saturating_record(micros);
    }
}

/// The place, in ascending order, of the value that this share of all is not above.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "of a few values, and a share between 0 and 1"
)]
fn rank(share: f64, of: usize) -> usize {
    ((share * of as f64).ceil() as usize).clamp(1, of.max(1)) - 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(millis: impl IntoIterator<Item = u64>) -> Latencies {
        let mut latencies = Latencies::default();
        millis.into_iter().for_each(|one| latencies.add(Duration::from_millis(one)));
        latencies
    }

    fn is_near(value: f64, expected: f64) -> bool {
        (value - expected).abs() < 1e-9
    }

    #[test]
    fn there_may_be_none() {
        assert_eq!(of([]).quantiles(), Quantiles::default());
    }

    #[test]
    fn a_few_are_exact() {
        let quantiles = of([30, 10, 20]).quantiles();
        assert_eq!(quantiles.count, 3);
        assert!(is_near(quantiles.p50_seconds, 0.02) && is_near(quantiles.mean_seconds, 0.02));
        assert!(is_near(quantiles.p999_seconds, 0.03) && is_near(quantiles.max_seconds, 0.03));
    }

    #[test]
    fn many_are_within_a_hundredth() {
        let latencies = of(1..=1000);
        assert!(matches!(latencies.kept, Kept::Many(_)));
        for (share, expected) in [(0.5, 500.0), (0.9, 900.0), (0.99, 990.0), (0.999, 999.0)] {
            let found = latencies.quantile(share).as_secs_f64() * 1000.0;
            assert!((found / expected - 1.0).abs() < 0.01, "{share}: {found}");
        }
        assert_eq!(latencies.max(), Duration::from_secs(1));
        assert_eq!(latencies.quantile(1.0), Duration::from_secs(1));
    }

    #[test]
    fn an_hour_is_not_too_long() {
        let latencies = of((0..50).map(|_| 3_600_000));
        let found = latencies.quantile(0.5).as_secs_f64();
        assert!((found / 3600.0 - 1.0).abs() < 0.01, "{found}");
    }

    #[test]
    fn what_was_cleared_counts_no_more() {
        for count in [3, 100] {
            let mut latencies = of(1..=count);
            latencies.clear();
            assert_eq!(latencies.quantiles(), Quantiles::default());
            latencies.add(Duration::from_millis(7));
            assert!(is_near(latencies.quantiles().max_seconds, 0.007));
        }
    }

    proptest! {
        #[test]
        fn quantiles_rise_and_lie_between_the_extremes(millis in prop::collection::vec(1_u64..100_000, 1..200)) {
            let latencies = of(millis.iter().copied());
            let shares = [0.5, 0.9, 0.95, 0.99, 0.999, 1.0];
            let found: Vec<_> = shares.iter().map(|&share| latencies.quantile(share)).collect();
            prop_assert!(found.is_sorted());
            let largest = Duration::from_millis(*millis.iter().max().expect("one"));
            prop_assert!(found.iter().all(|&one| one <= largest));
            prop_assert_eq!(latencies.count(), millis.len() as u64);
        }
    }
}
