//! When each connection asks: at once, or by a schedule that does not wait for the server.
//!
//! A schedule is fixed before the first answer. Where answers are late, requests are sent late, and
//! the time that they waited belongs to their latency: a client that came at that moment would have
//! waited as well. Leaving it out is known as coordinated omission.

use std::time::Duration;

use crate::error::{Error, ErrorKind};
use crate::seed::random::SplitMix64;

/// The least and the most that a connection may be asked to do in a second: one request in a little
/// over a quarter of an hour, and more than any connection can.
const RATE_MIN: f64 = 0.001;
const RATE_MAX: f64 = 1_000_000.0;

/// How often a connection asks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// As soon as it has its answer.
    FlatOut,
    /// So often a second, whatever the answers do.
    Rate(Rate),
}

/// Requests at a rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    per_second: f64,
    jitter: f64,
}

impl Rate {
    /// So many requests a second of each connection, each moved by up to half of this share of the
    /// time between two, to either side.
    ///
    /// # Errors
    ///
    /// Where the rate is not from 0.001 to 1,000,000, or the share is not from 0 to 1.
    pub fn new(per_second: f64, jitter: f64) -> Result<Self, Error> {
        let refused = |message: String| Err(Error::new(ErrorKind::Usage, message));
        if !(RATE_MIN..=RATE_MAX).contains(&per_second) {
            return refused(format!("{per_second} requests a second cannot be paced"));
        }
        if !(0.0..=1.0).contains(&jitter) {
            return refused(format!("a jitter is a share from 0 to 1, and {jitter} is none"));
        }
        Ok(Self { per_second, jitter })
    }

    /// Requests a second of each connection.
    pub fn per_second(&self) -> f64 {
        self.per_second
    }

    /// The share of the time between two requests within which each is moved.
    pub fn jitter(&self) -> f64 {
        self.jitter
    }
}

/// The moments at which one connection asks, since the beginning of a step.
#[derive(Clone, Debug)]
pub(super) enum Schedule {
    /// Whenever it can.
    Whenever,
    /// At these moments.
    Fixed {
        /// Requests a second.
        per_second: f64,
        /// How far each is moved at most, to both sides together, in seconds.
        spread: f64,
        /// Where in the first interval the first request lies, in seconds.
        phase: f64,
        /// How many moments have been given.
        given: u64,
    },
}

impl Pace {
    /// A schedule that begins anywhere in its first interval, so that connections do not ask all
    /// at once.
    pub(super) fn schedule(self, random: &mut SplitMix64) -> Schedule {
        let Self::Rate(rate) = self else { return Schedule::Whenever };
        let interval = 1.0 / rate.per_second;
        let phase = random.unit() * interval;
        let spread = rate.jitter * interval;
        Schedule::Fixed { per_second: rate.per_second, spread, phase, given: 0 }
    }
}

impl Schedule {
    /// The next moment; `now` where nothing is scheduled.
    pub(super) fn next(&mut self, now: Duration, random: &mut SplitMix64) -> Duration {
        let Self::Fixed { per_second, spread, phase, given } = self else { return now };
        let moved = (random.unit() - 0.5) * *spread;
        // Each moment is reckoned from the beginning, so that errors do not add up.
        #[expect(clippy::cast_precision_loss, reason = "2^53 requests take centuries at any rate")]
        let at = *phase + *given as f64 / *per_second + moved;
        *given = given.saturating_add(1);
        Duration::from_secs_f64(at.max(0.0))
    }

    /// Whether moments are given ahead.
    pub(super) fn is_fixed(&self) -> bool {
        matches!(self, Self::Fixed { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moments(rate: Rate, seed: u64, number: usize) -> Vec<f64> {
        let mut random = SplitMix64::new(seed);
        let mut schedule = Pace::Rate(rate).schedule(&mut random);
        let next = || schedule.next(Duration::ZERO, &mut random).as_secs_f64();
        std::iter::repeat_with(next).take(number).collect()
    }

    #[test]
    fn a_schedule_keeps_its_rate_whatever_the_time_is() {
        let rate = Rate::new(10.0, 0.0).expect("a rate");
        let found = moments(rate, 1, 1001);
        assert!(found[0] < 0.1, "the first lies in the first interval");
        for pair in found.windows(2) {
            assert!((pair[1] - pair[0] - 0.1).abs() < 1e-6, "{pair:?}");
        }
        // By now all of them are late, which changes nothing.
        let mut random = SplitMix64::new(1);
        let mut late = Pace::Rate(rate).schedule(&mut random);
        let first = late.next(Duration::from_secs(60), &mut random);
        assert!((first.as_secs_f64() - found[0]).abs() < 1e-9);
    }

    #[test]
    fn a_schedule_stays_exact_after_days() {
        let rate = Rate::new(20_000.0, 0.0).expect("a rate");
        let mut random = SplitMix64::new(1);
        let mut schedule = Pace::Rate(rate).schedule(&mut random);
        let first = schedule.next(Duration::ZERO, &mut random);
        let Schedule::Fixed { given, .. } = &mut schedule else { panic!("it has a rate") };
        // More than 32 bits hold: three days and a half.
        *given = 6_000_000_000;
        for number in 0..4_u32 {
            let expected =
                first + Duration::from_secs(300_000) + Duration::from_micros(50) * number;
            let found = schedule.next(Duration::ZERO, &mut random);
            assert!(found.abs_diff(expected) <= Duration::from_nanos(1), "{found:?} {expected:?}");
        }
    }

    #[test]
    fn jitter_moves_requests_within_its_share_and_keeps_the_rate() {
        let found = moments(Rate::new(10.0, 0.5).expect("a rate"), 7, 10_000);
        let gaps: Vec<f64> = found.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(gaps.iter().all(|gap| (0.05 - 1e-6..=0.15 + 1e-6).contains(gap)));
        assert!(gaps.iter().any(|gap| *gap < 0.08) && gaps.iter().any(|gap| *gap > 0.12));
        let last = found.last().copied().unwrap_or_default();
        assert!((last / 1000.0 - 1.0).abs() < 0.001, "{last}");
    }

    #[test]
    fn connections_begin_apart() {
        let rate = Rate::new(10.0, 0.0).expect("a rate");
        let first = |seed| moments(rate, seed, 1)[0];
        let early = (0..1000).filter(|&seed| first(seed) < 0.05).count();
        assert!((400..600).contains(&early), "{early} of 1000 begin in the first half");
    }

    #[test]
    fn flat_out_is_now() {
        let mut random = SplitMix64::new(1);
        let mut schedule = Pace::FlatOut.schedule(&mut random);
        let now = Duration::from_millis(1234);
        assert_eq!(schedule.next(now, &mut random), now);
        assert!(!schedule.is_fixed());
    }

    #[test]
    fn what_cannot_be_paced_is_refused() {
        for (rate, jitter) in [(0.0, 0.0), (-1.0, 0.0), (f64::NAN, 0.0), (1e7, 0.0), (1.0, 1.1)] {
            assert!(Rate::new(rate, jitter).is_err(), "{rate} {jitter}");
        }
    }
}
