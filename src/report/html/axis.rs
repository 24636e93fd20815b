//! Where the lines of a grid stand, and what is written at them.

/// The most steps between the lines of a grid from bottom to top.
const STEPS_MAX: f64 = 4.0;

/// The most marks along the time.
const MARKS_MAX: f64 = 6.0;

/// Seconds between two marks, up to a day; longer ones are whole days.
const MARK_SECONDS: [f64; 16] = [
    1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1800.0, 3600.0, 7200.0,
    14_400.0, 43_200.0,
];

const SECONDS_PER_DAY: f64 = 86_400.0;

/// An axis from zero upwards in equal steps of a round number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Axis {
    /// What lies between two lines.
    pub(super) step: f64,
    /// How many steps there are.
    pub(super) steps: u32,
}

impl Axis {
    /// An axis that reaches as high, in steps of 1, 2, 2.5 or 5 times a power of ten.
    pub(super) fn reaching(highest: f64) -> Self {
        Self::in_steps(highest, &[1.0, 2.0, 2.5, 5.0, 10.0])
    }

    /// An axis for what is counted: its steps are whole.
    pub(super) fn counting(highest: f64) -> Self {
        if highest <= STEPS_MAX {
            return Self { step: 1.0, steps: steps(highest.max(1.0), 1.0) };
        }
        Self::in_steps(highest, &[1.0, 2.0, 5.0, 10.0])
    }

    fn in_steps(highest: f64, round: &[f64]) -> Self {
        if !highest.is_finite() || highest <= 0.0 {
            return Self { step: 1.0, steps: 1 };
        }
        let least = highest / STEPS_MAX;
        let power = 10f64.powf(least.log10().floor());
        // A rounding error must not make one step too many of a round number.
        let fits = |step: &f64| step * power >= least * (1.0 - 1e-9);
        let step = round.iter().copied().find(fits).unwrap_or(10.0) * power;
        Self { step, steps: steps(highest, step) }
    }

    /// The value at the top.
    pub(super) fn top(self) -> f64 {
        self.step * f64::from(self.steps)
    }

    /// The values that have a line, from the bottom to the top.
    pub(super) fn values(self) -> impl Iterator<Item = f64> {
        (0..=self.steps).map(move |line| self.step * f64::from(line))
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few")]
fn steps(highest: f64, step: f64) -> u32 {
    ((highest / step - 1e-9).ceil().max(1.0)) as u32
}

/// The times that have a mark, in seconds, up to and without the end.
pub(super) fn marks(end: f64) -> Vec<f64> {
    let fits = |step: &f64| end / step <= MARKS_MAX;
    let step = MARK_SECONDS.iter().copied().find(fits);
    let days = || (end / SECONDS_PER_DAY / MARKS_MAX).ceil().max(1.0) * SECONDS_PER_DAY;
    let step = step.unwrap_or_else(days);
    let marks = std::iter::successors(Some(0.0), |at| Some(at + step));
    marks.take_while(|at| *at < end).collect()
}

/// A time since the beginning, short: `0`, `45 s`, `1:30 min`, `12 min`, `2 h`, `2:30 h`.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "times of a run")]
pub(super) fn moment(seconds: f64) -> String {
    let seconds = seconds.max(0.0) as u64;
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match seconds {
        0 => "0".to_owned(),
        1..60 => format!("{seconds} s"),
        60..3600 if seconds.is_multiple_of(60) => format!("{minutes} min"),
        60..3600 => format!("{minutes}:{:02} min", seconds % 60),
        3600..86_400 if seconds.is_multiple_of(3600) => format!("{hours} h"),
        3600..86_400 if seconds.is_multiple_of(60) => format!("{hours}:{:02} h", minutes % 60),
        3600..86_400 => format!("{hours}:{:02}:{:02} h", minutes % 60, seconds % 60),
        _ if seconds.is_multiple_of(86_400) => format!("{days} d"),
        _ => format!("{days} d {}:{:02} h", hours % 24, minutes % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_round_and_reach_the_highest() {
        for (highest, step, steps) in [
            (0.0, 1.0, 1),
            (f64::NAN, 1.0, 1),
            (0.007, 0.002, 4),
            (1.0, 0.25, 4),
            (4.0, 1.0, 4),
            (9.3, 2.5, 4),
            (10.1, 5.0, 3),
            (27_500.0, 10_000.0, 3),
            (1e18, 2.5e17, 4),
        ] {
            let axis = Axis::reaching(highest);
            assert!((axis.step / step - 1.0).abs() < 1e-9, "{highest}: {axis:?}");
            assert_eq!(axis.steps, steps, "{highest}");
            assert!(highest.is_nan() || axis.top() >= highest * (1.0 - 1e-9), "{highest}");
        }
    }

    #[test]
    fn what_is_counted_has_whole_steps() {
        for (highest, values) in [
            (0.0, vec![0.0, 1.0]),
            (3.0, vec![0.0, 1.0, 2.0, 3.0]),
            (8.0, vec![0.0, 2.0, 4.0, 6.0, 8.0]),
            (9.0, vec![0.0, 5.0, 10.0]),
        ] {
            assert_eq!(Axis::counting(highest).values().collect::<Vec<_>>(), values, "{highest}");
        }
    }

    #[test]
    fn marks_are_few_at_any_length() {
        assert_eq!(marks(1.0), [0.0]);
        assert_eq!(marks(48.0), [0.0, 10.0, 20.0, 30.0, 40.0]);
        assert_eq!(marks(3600.0), [0.0, 600.0, 1200.0, 1800.0, 2400.0, 3000.0]);
        for end in [1.0, 7.0, 59.0, 61.0, 3599.0, 90_000.0, 1e7] {
            assert!((1..=7).contains(&marks(end).len()), "{end}: {:?}", marks(end));
        }
    }

    #[test]
    fn moments_are_short() {
        for (seconds, text) in [
            (0.0, "0"),
            (45.0, "45 s"),
            (90.0, "1:30 min"),
            (720.0, "12 min"),
            (7200.0, "2 h"),
            (9000.0, "2:30 h"),
            (9001.0, "2:30:01 h"),
            (172_800.0, "2 d"),
            (180_000.0, "2 d 2:00 h"),
        ] {
            assert_eq!(moment(seconds), text, "{seconds}");
        }
    }
}
