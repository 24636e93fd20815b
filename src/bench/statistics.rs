//! Medians, how far they can be trusted, and what does not belong to the rest.

use serde::{Deserialize, Serialize};

use super::order::Random;

/// Resamples of a bootstrap: their percentiles of 2.5 and 97.5 then vary by a few thousandths.
const RESAMPLES: usize = 10_000;

/// Beyond this modified z-score a value is an outlier (Iglewicz and Hoaglin, "How to Detect and
/// Handle Outliers", 1993).
pub const OUTLIER_SCORE: f64 = 3.5;

/// Of fewer values one is always far from two that happen to be close.
const OUTLIER_VALUES_MIN: usize = 5;

/// What makes the median of absolute deviations comparable to a standard deviation.
const OF_MEDIAN_DEVIATION: f64 = 0.6745;

/// The same for the mean of absolute deviations, where their median is zero.
const OF_MEAN_DEVIATION: f64 = 1.253_314;

/// A median with the interval in which it lies with a probability of 95 %.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The median of the values.
    pub median: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl Interval {
    /// How far the farther end lies from the median, as a share of it.
    pub fn spread(&self) -> f64 {
        let farthest = (self.high - self.median).max(self.median - self.low);
        if self.median == 0.0 { 0.0 } else { farthest / self.median.abs() }
    }

    /// Whether a value lies in it.
    pub fn holds(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }
}

/// The median of values, at least one of them.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    median_of(&mut sorted)
}

fn median_of(values: &mut [f64]) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    let upper = *values.get(middle)?;
    Some(if values.len() % 2 == 1 { upper } else { f64::midpoint(values[middle - 1], upper) })
}

/// The median with its bootstrap interval (percentile method); nothing without values.
pub fn interval(values: &[f64], seed: u64) -> Option<Interval> {
    let middle = median(values)?;
    let mut random = Random::new(seed);
    let drawn = |resample: &mut Vec<f64>| {
        resample.clear();
        resample.extend((0..values.len()).map(|_| values[random.below(values.len())]));
        median_of(resample)
    };
    Some(between(middle, drawn))
}

/// The median of the ratios of pairs, with its interval.
pub fn ratio_of_pairs(pairs: &[(f64, f64)], seed: u64) -> Option<Interval> {
    let ratios: Vec<f64> =
        pairs.iter().filter(|(_, to)| *to != 0.0).map(|(of, to)| of / to).collect();
    interval(&ratios, seed)
}

/// The ratio of two medians whose values belong to no pairs, with its interval.
pub fn ratio_of_medians(of: &[f64], to: &[f64], seed: u64) -> Option<Interval> {
    let middle = median(of)? / median(to).filter(|median| *median != 0.0)?;
    let mut random = Random::new(seed);
    let mut other = Vec::new();
    let drawn = |resample: &mut Vec<f64>| {
        resample.clear();
        resample.extend((0..of.len()).map(|_| of[random.below(of.len())]));
        other.clear();
        other.extend((0..to.len()).map(|_| to[random.below(to.len())]));
        Some(median_of(resample)? / median_of(&mut other).filter(|median| *median != 0.0)?)
    };
    Some(between(middle, drawn))
}

fn between(median: f64, mut drawn: impl FnMut(&mut Vec<f64>) -> Option<f64>) -> Interval {
    let mut resample = Vec::new();
    let mut medians: Vec<f64> = (0..RESAMPLES).filter_map(|_| drawn(&mut resample)).collect();
    medians.sort_by(f64::total_cmp);
    let last = medians.len().saturating_sub(1);
    // 2.5 of a hundred on either side.
    let (low, high) = (last / 40, last - last / 40);
    Interval {
        median,
        low: medians.get(low).copied().unwrap_or(median),
        high: medians.get(high).copied().unwrap_or(median),
    }
}

/// The places of values that do not belong to the rest, with their modified z-score.
pub fn outliers(values: &[f64]) -> Vec<(usize, f64)> {
    let Some(middle) = median(values).filter(|_| values.len() >= OUTLIER_VALUES_MIN) else {
        return Vec::new();
    };
    let deviations: Vec<f64> = values.iter().map(|value| (value - middle).abs()).collect();
    let of_half = median(&deviations).unwrap_or(0.0);
    let scale = if of_half > 0.0 {
        of_half / OF_MEDIAN_DEVIATION
    } else {
        mean(&deviations) * OF_MEAN_DEVIATION
    };
    if scale <= 0.0 {
        return Vec::new();
    }
    let scored = values.iter().map(|value| (value - middle) / scale).enumerate();
    scored.filter(|(_, score)| score.abs() > OUTLIER_SCORE).collect()
}

#[expect(clippy::cast_precision_loss, reason = "there are few values")]
fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "medians are values or halves of their sums")]
mod tests {
    use super::*;

    #[test]
    fn medians_are_those_of_the_book() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0]), Some(3.0));
        assert_eq!(median(&[9.0, 1.0, 5.0]), Some(5.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
    }

    #[test]
    fn the_interval_of_known_values_is_known() {
        // Of three values, a resample has its median at the lowest with 7/27 and at the highest
        // with 7/27, so that the percentiles are the ends.
        let three = interval(&[1.0, 2.0, 3.0], 1).expect("values");
        assert_eq!(three, Interval { median: 2.0, low: 1.0, high: 3.0 });
        let same = interval(&[5.0; 8], 1).expect("values");
        assert_eq!((same.low, same.high, same.spread()), (5.0, 5.0, 0.0));
        // Of 1..=25 the median of a resample is below 9 or above 17 with about 1.6 % each (that
        // of the binomial distribution of 25 draws), so that the interval is 9 to 17.
        let many: Vec<f64> = (1..=25).map(f64::from).collect();
        let many = interval(&many, 2).expect("values");
        assert_eq!(many.median, 13.0);
        assert!((8.0..=10.0).contains(&many.low), "{many:?}");
        assert!((16.0..=18.0).contains(&many.high), "{many:?}");
    }

    #[test]
    fn the_same_seed_gives_the_same_interval() {
        let values = [1.0, 4.0, 2.0, 8.0, 5.0, 7.0, 3.5];
        assert_eq!(interval(&values, 9), interval(&values, 9));
    }

    #[test]
    fn pairs_take_out_what_is_common_to_them() {
        // The machine gets four times as slow in between, and the ratio stays.
        let pairs = [(10.0, 5.0), (20.0, 10.0), (40.0, 20.0), (38.0, 20.0)];
        let ratio = ratio_of_pairs(&pairs, 1).expect("pairs");
        assert_eq!(ratio.median, 2.0);
        assert!(ratio.spread() < 0.051, "{ratio:?}");
        let (of, to): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
        let apart = ratio_of_medians(&of, &to, 1).expect("values");
        assert!(apart.spread() > 0.3, "{apart:?}");
    }

    #[test]
    fn what_does_not_belong_is_found() {
        assert_eq!(outliers(&[1.0, 1.01, 1.1]), []);
        assert_eq!(outliers(&[2.0; 5]), []);
        let found = outliers(&[10.0, 10.2, 9.9, 10.1, 30.0]);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].0, 4);
        // More than half are equal: the mean of deviations decides.
        let found = outliers(&[1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 9.0]);
        assert_eq!(found.iter().map(|(place, _)| *place).collect::<Vec<_>>(), [8]);
        assert_eq!(outliers(&[10.0, 10.5, 11.0, 11.5, 12.0]), []);
    }
}
