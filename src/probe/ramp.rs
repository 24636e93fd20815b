//! How many connections there are, step by step.

use crate::error::{Error, ErrorKind};

/// Numbers of connections, one for each step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ramp {
    steps: Vec<u32>,
}

impl Ramp {
    /// One step.
    pub fn flat(connections: u32) -> Self {
        Self { steps: vec![connections] }
    }

    /// Steps from one number to the other, each the same factor away from the one before; those
    /// that would be the same number are one.
    ///
    /// # Errors
    ///
    /// Where a number is 0.
    pub fn between(first: u32, last: u32, steps: u32) -> Result<Self, Error> {
        if first == 0 || last == 0 || steps == 0 {
            let message = "a ramp leads from at least one connection to another number of them";
            return Err(Error::new(ErrorKind::Usage, message).hint("such as --ramp 150..10000"));
        }
        let intervals = f64::from(steps.saturating_sub(1)).max(1.0);
        let factor = (f64::from(last) / f64::from(first)).powf(1.0 / intervals);
        let number = |step: u32| match step {
            // What is asked for must not be missed by a rounding error.
            0 => first,
            step if step + 1 == steps => last,
            step => rounded(f64::from(first) * factor.powi(i32::try_from(step).unwrap_or(0))),
        };
        let mut numbers: Vec<u32> = (0..steps).map(number).collect();
        if steps == 1 && first != last {
            numbers.push(last);
        }
        numbers.dedup();
        Ok(Self { steps: numbers })
    }

    /// The numbers in their order.
    pub fn steps(&self) -> &[u32] {
        &self.steps
    }

    /// The most connections that are open at once.
    pub fn most(&self) -> u32 {
        self.steps.iter().copied().max().unwrap_or(0)
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between two of u32")]
fn rounded(number: f64) -> u32 {
    number.round().max(1.0) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn steps(first: u32, last: u32, steps: u32) -> Vec<u32> {
        Ramp::between(first, last, steps).expect("a ramp").steps().to_vec()
    }

    #[test]
    fn steps_are_the_same_factor_apart() {
        assert_eq!(steps(100, 800, 4), [100, 200, 400, 800]);
        assert_eq!(steps(800, 100, 4), [800, 400, 200, 100]);
        assert_eq!(steps(150, 10_000, 3), [150, 1225, 10_000]);
        assert_eq!(steps(1, 2, 8), [1, 2]);
        assert_eq!(steps(7, 7, 3), [7]);
        assert_eq!(steps(5, 9, 1), [5, 9]);
        assert_eq!(Ramp::flat(150).steps(), [150]);
        assert_eq!(Ramp::between(800, 100, 4).expect("a ramp").most(), 800);
    }

    #[test]
    fn none_is_no_number_of_connections() {
        assert!(Ramp::between(0, 10, 3).is_err() && Ramp::between(1, 0, 3).is_err());
        assert!(Ramp::between(1, 10, 0).is_err());
    }

    proptest! {
        #[test]
        fn a_ramp_rises_from_the_first_to_the_last(first in 1_u32..5000, more in 0_u32..100_000, number in 2_u32..40) {
            let found = steps(first, first + more, number);
            prop_assert_eq!(found.first(), Some(&first));
            prop_assert_eq!(found.last(), Some(&(first + more)));
            prop_assert!(found.is_sorted_by(|one, next| one < next));
        }
    }
}
