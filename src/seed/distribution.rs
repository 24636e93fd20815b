//! Numbers that are drawn: evenly, around a mean, by rank, one after the other, or scattered.
//!
//! Logarithms and the like come from `libm` rather than from the system, so that every machine
//! draws the same numbers.

use super::random::{SplitMix64, mix};

/// What the values of one document are drawn from.
#[derive(Debug)]
pub(super) struct Draws {
    /// Chooses one of many sets of documents.
    pub(super) seed: u64,
    /// What the choices of the collection start from.
    pub(super) stream: u64,
    /// The number of the document.
    pub(super) number: u64,
    /// What the document's choices are made by.
    pub(super) random: SplitMix64,
}

/// How whole numbers are drawn.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Whole {
    /// Always the same one.
    Fixed(i64),
    /// All from `min` to `min + span` are as likely.
    Uniform { min: i64, span: u64 },
    /// Around a mean; those beyond the bounds become the bounds.
    Normal { mean: f64, deviation: f64, min: i64, max: i64 },
    /// The first number is the most frequent one.
    Zipf { min: i64, ranks: Zipf },
    /// Between each of these numbers, which ascend, and the next one as often as between any other
    /// two.
    Quantiles(Box<[i64]>),
    /// By the number of the document.
    Sequence { start: i64, step: i64 },
    /// By the number of the document; after so many it begins again at 0.
    Cycle { length: u64 },
    /// By the number of the document, in an order that looks random: no two documents have the
    /// same, until all numbers are used.
    Scattered { min: i64, places: Permutation },
}

impl Whole {
    /// All from `min` to `max`.
    pub(super) fn between(min: i64, max: i64) -> Self {
        if min == max { Self::Fixed(min) } else { Self::Uniform { min, span: max.abs_diff(min) } }
    }

    #[expect(clippy::cast_possible_truncation, reason = "a float becomes the nearest number")]
    pub(super) fn draw(&self, draws: &mut Draws) -> i64 {
        match self {
            Self::Fixed(value) => *value,
            Self::Uniform { min, span } => min.wrapping_add_unsigned(draws.random.up_to(*span)),
            Self::Normal { mean, deviation, min, max } => {
                let value = mean + deviation * normal(&mut draws.random);
                (value.round() as i64).clamp(*min, *max)
            }
            Self::Zipf { min, ranks } => {
                min.wrapping_add_unsigned(ranks.draw(&mut draws.random) - 1)
            }
            Self::Quantiles(bounds) => quantiles(bounds, &mut draws.random),
            Self::Sequence { start, step } => {
                start.wrapping_add(step.wrapping_mul(draws.number.cast_signed()))
            }
            Self::Cycle { length } => (draws.number % length).cast_signed(),
            Self::Scattered { min, places } => {
                min.wrapping_add_unsigned(places.place(draws.stream, draws.number))
            }
        }
    }
}

/// How doubles are drawn.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Real {
    /// All from `min` to below `max` are as likely.
    Uniform { min: f64, width: f64 },
    /// Around a mean; those beyond the bounds become the bounds.
    Normal { mean: f64, deviation: f64, min: f64, max: f64 },
    /// Whole numbers, divided by a power of ten.
    Divided { whole: Whole, by: f64 },
}

impl Real {
    #[expect(clippy::cast_precision_loss, reason = "a double is wanted")]
    pub(super) fn draw(&self, draws: &mut Draws) -> f64 {
        match self {
            Self::Uniform { min, width } => min + width * draws.random.unit(),
            Self::Normal { mean, deviation, min, max } => {
                (mean + deviation * normal(&mut draws.random)).clamp(*min, *max)
            }
            Self::Divided { whole, by } => whole.draw(draws) as f64 / by,
        }
    }
}

/// A number between two that are next to each other; there are two at least.
fn quantiles(bounds: &[i64], random: &mut SplitMix64) -> i64 {
    let last = u32::try_from(bounds.len() - 1).unwrap_or(u32::MAX);
    let place = random.below(last) as usize;
    let (low, high) = (bounds[place], bounds[place + 1]);
    low.wrapping_add_unsigned(random.up_to(high.abs_diff(low)))
}

/// A normally distributed number around 0 with a deviation of 1 (Box and Muller 1958).
fn normal(random: &mut SplitMix64) -> f64 {
    // The logarithm is of a number above 0.
    let radius = (-2.0 * libm::log(1.0 - random.unit())).sqrt();
    radius * libm::cos(std::f64::consts::TAU * random.unit())
}

/// Ranks from 1 on, each by its power less frequent than the first, drawn in constant time: the
/// rejection-inversion of Hörmann and Derflinger, "Rejection-inversion to generate variates from
/// monotone discrete distributions" (ACM TOMACS 1996).
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Zipf {
    last: u64,
    exponent: f64,
    area_first: f64,
    area_last: f64,
    squeeze: f64,
}

impl Zipf {
    /// Ranks up to `last`; the exponent is above 0.
    #[expect(clippy::cast_precision_loss, reason = "of so many ranks the last are never drawn")]
    pub(super) fn up_to(last: u64, exponent: f64) -> Self {
        let mut made = Self { last, exponent, area_first: 0.0, area_last: 0.0, squeeze: 0.0 };
        made.area_first = made.area(1.5) - 1.0;
        made.area_last = made.area(last as f64 + 0.5);
        made.squeeze = 2.0 - made.inverse(made.area(2.5) - made.height(2.0));
        made
    }

    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "ranks are positive, and rounded on purpose"
    )]
    fn draw(&self, random: &mut SplitMix64) -> u64 {
        loop {
            let area = self.area_last + random.unit() * (self.area_first - self.area_last);
            let at = self.inverse(area);
            let rank = ((at + 0.5) as u64).clamp(1, self.last);
            let exact = rank as f64;
            let is_hit =
                exact - at <= self.squeeze || area >= self.area(exact + 0.5) - self.height(exact);
            if is_hit {
                return rank;
            }
        }
    }

    /// A place from 0 to below the last rank, the first one the most frequent.
    pub(super) fn place(&self, random: &mut SplitMix64) -> u64 {
        self.draw(random) - 1
    }

    fn height(&self, at: f64) -> f64 {
        libm::exp(-self.exponent * libm::log(at))
    }

    /// The area under the heights up to here.
    fn area(&self, at: f64) -> f64 {
        let log = libm::log(at);
        let power = (1.0 - self.exponent) * log;
        // (e^x - 1) / x, by its series where that loses its digits.
        let factor = if power.abs() > 1e-8 {
            libm::expm1(power) / power
        } else {
            1.0 + power * 0.5 * (1.0 + power / 3.0 * (1.0 + 0.25 * power))
        };
        factor * log
    }

    /// Up to where the area is this large.
    fn inverse(&self, area: f64) -> f64 {
        let power = (area * (1.0 - self.exponent)).max(-1.0);
        // ln(1 + x) / x, by its series where that loses its digits.
        let factor = if power.abs() > 1e-8 {
            libm::log1p(power) / power
        } else {
            1.0 - power * (0.5 - power * (1.0 / 3.0 - 0.25 * power))
        };
        libm::exp(factor * area)
    }
}

/// An order of the numbers from 0 to `last` that looks random.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Permutation {
    last: u64,
    salt: u64,
}

impl Permutation {
    /// An order of the numbers up to `last`; each salt chooses another one.
    pub(super) fn up_to(last: u64, salt: u64) -> Self {
        Self { last, salt }
    }

    /// What stands in the numbered place; after the last one it begins again.
    pub(super) fn place(self, stream: u64, number: u64) -> u64 {
        let bits = 64 - self.last.leading_zeros();
        if bits == 0 {
            return 0;
        }
        let mask = u64::MAX >> (64 - bits);
        let mut placed = if number > self.last { number % (self.last + 1) } else { number };
        let key = mix(stream ^ self.salt);
        // Every step takes different numbers to different ones. What is beyond the last one is
        // taken on until it is not, which ends where it began at the latest.
        loop {
            for round in 1..=4 {
                placed = (placed ^ mix(key.wrapping_add(round))) & mask;
                placed = placed.wrapping_mul(0x9E37_79B9_7F4A_7C15) & mask;
                placed ^= placed >> (bits / 2).max(1);
            }
            if placed <= self.last {
                return placed;
            }
        }
    }
}

/// Whether something is so, with a probability.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chance(u64);

impl Chance {
    /// Never.
    pub(super) const NONE: Self = Self(0);

    /// So often, from 0 to 1.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is between 0 and 2^64, where it stays"
    )]
    pub(super) fn of(probability: f64) -> Self {
        Self((probability.clamp(0.0, 1.0) * 2.0_f64.powi(64)) as u64)
    }

    /// Draws, unless it is never or always so.
    pub(super) fn happens(self, random: &mut SplitMix64) -> bool {
        match self.0 {
            0 => false,
            u64::MAX => true,
            below => random.draw() < below,
        }
    }
}

/// Which of several things.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Pick {
    /// All of so many are as likely.
    Even(u32),
    /// Each is so likely that a draw is below its bound and not below the one before.
    Weighted(Box<[u64]>),
    /// The first is the most frequent.
    Ranked(Zipf),
}

impl Pick {
    /// By weights; one of them at least is above 0.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is between 0 and 2^64, where it stays"
    )]
    pub(super) fn weighted(weights: &[f64]) -> Self {
        let total: f64 = weights.iter().sum();
        let mut sum = 0.0;
        let bounds = weights.iter().map(|weight| {
            sum += weight;
            (sum / total * 2.0_f64.powi(64)) as u64
        });
        Self::Weighted(bounds.collect())
    }

    /// A place among the things.
    pub(super) fn draw(&self, random: &mut SplitMix64) -> usize {
        match self {
            Self::Even(count) => random.below(*count) as usize,
            Self::Weighted(bounds) => {
                let drawn = random.draw();
                bounds.partition_point(|bound| *bound <= drawn).min(bounds.len() - 1)
            }
            Self::Ranked(ranks) => usize::try_from(ranks.place(random)).unwrap_or(usize::MAX),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn draws(number: u64) -> Draws {
        Draws { seed: 1, stream: 9, number, random: SplitMix64::nth(9, number) }
    }

    fn drawn(whole: &Whole, count: u64) -> Vec<i64> {
        (0..count).map(|number| whole.draw(&mut draws(number))).collect()
    }

    #[expect(clippy::cast_precision_loss, reason = "means of few small numbers")]
    fn mean_and_deviation(values: &[i64]) -> (f64, f64) {
        let count = values.len() as f64;
        let mean = values.iter().map(|value| *value as f64).sum::<f64>() / count;
        let squares = values.iter().map(|value| (*value as f64 - mean).powi(2)).sum::<f64>();
        (mean, (squares / count).sqrt())
    }

    #[test]
    fn uniform_numbers_reach_both_bounds_and_have_their_mean() {
        let values = drawn(&Whole::between(-5, 5), 20_000);
        assert_eq!((values.iter().min(), values.iter().max()), (Some(&-5), Some(&5)));
        let (mean, deviation) = mean_and_deviation(&values);
        assert!(mean.abs() < 0.1 && (deviation - 10.0_f64.sqrt()).abs() < 0.05, "{mean}");
        let all = drawn(&Whole::between(i64::MIN, i64::MAX), 100);
        assert!(all.iter().any(|value| *value < 0) && all.iter().any(|value| *value > 0));
    }

    #[test]
    fn normal_numbers_have_their_mean_and_deviation_and_stay_within_bounds() {
        let whole = Whole::Normal { mean: 1000.0, deviation: 50.0, min: 0, max: 2000 };
        let (mean, deviation) = mean_and_deviation(&drawn(&whole, 50_000));
        assert!((mean - 1000.0).abs() < 1.0, "{mean}");
        assert!((deviation - 50.0).abs() < 1.0, "{deviation}");
        let narrow = Whole::Normal { mean: 0.0, deviation: 50.0, min: -1, max: 1 };
        assert!(drawn(&narrow, 1000).iter().all(|value| (-1..=1).contains(value)));
    }

    /// The share of rank k is k^-s over the sum of all.
    #[test]
    #[expect(clippy::cast_precision_loss, reason = "shares of few numbers")]
    fn ranks_are_as_frequent_as_their_powers_say() {
        for exponent in [0.5, 1.0, 1.7] {
            let whole = Whole::Zipf { min: 1, ranks: Zipf::up_to(100, exponent) };
            let values = drawn(&whole, 100_000);
            let all: f64 = (1..=100).map(|rank| f64::from(rank).powf(-exponent)).sum();
            for rank in [1_i32, 2, 5, 50] {
                let expected = f64::from(rank).powf(-exponent) / all;
                let hits = values.iter().filter(|value| **value == i64::from(rank)).count();
                let share = hits as f64 / 100_000.0;
                assert!((share - expected).abs() < 0.005, "{exponent}: {rank} {share} {expected}");
            }
            assert!(values.iter().all(|value| (1..=100).contains(value)));
        }
    }

    #[test]
    fn a_permutation_uses_every_number_once_and_looks_unordered() {
        for last in [0_u64, 1, 2, 6, 7, 8, 99, 1000, 4095, 4096] {
            let order = Permutation::up_to(last, 3);
            let placed: Vec<_> = (0..=last).map(|number| order.place(5, number)).collect();
            let unique: HashSet<_> = placed.iter().collect();
            assert_eq!(unique.len() as u64, last + 1, "{last}");
            assert!(placed.iter().all(|place| *place <= last));
            assert_eq!(order.place(5, last + 1), placed[0], "it begins again");
        }
        let order = Permutation::up_to(u64::MAX, 3);
        let placed: Vec<_> = (0..1000).map(|number| order.place(5, number)).collect();
        let rises = placed.windows(2).filter(|pair| pair[0] < pair[1]).count();
        assert!((400..600).contains(&rises), "{rises}");
    }

    #[test]
    fn quantiles_are_met() {
        let mut values = drawn(&Whole::Quantiles([0, 10, 20, 1000].into()), 30_000);
        values.sort_unstable();
        assert!((9..=11).contains(&values[10_000]) && (19..=25).contains(&values[20_000]));
        assert!(values[0] == 0 && values[29_999] > 990 && values[29_999] <= 1000);
    }

    #[test]
    fn sequences_follow_the_number_of_the_document() {
        assert_eq!(drawn(&Whole::Sequence { start: 10, step: -3 }, 4), [10, 7, 4, 1]);
    }

    #[test]
    #[expect(clippy::cast_precision_loss, reason = "shares of few numbers")]
    fn weights_and_chances_are_kept() {
        let pick = Pick::weighted(&[7.0, 0.0, 2.0, 1.0]);
        let mut counts = [0; 4];
        let mut random = SplitMix64::new(1);
        (0..100_000).for_each(|_| counts[pick.draw(&mut random)] += 1);
        for (count, share) in counts.into_iter().zip([0.7, 0.0, 0.2, 0.1]) {
            assert!((f64::from(count) / 100_000.0 - share).abs() < 0.01, "{counts:?}");
        }
        let chance = Chance::of(0.3);
        let hits = (0..100_000).filter(|_| chance.happens(&mut random)).count();
        assert!((hits as f64 / 100_000.0 - 0.3).abs() < 0.01, "{hits}");
        assert!(Chance::of(1.0).happens(&mut random) && !Chance::NONE.happens(&mut random));
    }
}
