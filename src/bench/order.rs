//! Orders that look random and depend on their seed alone.

use crate::seed::random::SplitMix64;

/// The generator of everything that is made up, under the name of what it is for here.
#[derive(Clone, Debug)]
pub struct Random(SplitMix64);

impl Random {
    /// The numbers of this seed.
    pub fn new(seed: u64) -> Self {
        Self(SplitMix64::new(seed))
    }

    /// The next 64 random bits.
    pub fn draw(&mut self) -> u64 {
        self.0.draw()
    }

    /// A number below a bound, which is at least one.
    pub fn below(&mut self, bound: usize) -> usize {
        let product = u128::from(self.draw()) * bound as u128;
        usize::try_from(product >> 64).unwrap_or(0)
    }

    /// Puts things into a random order.
    pub fn shuffle<T>(&mut self, things: &mut [T]) {
        for place in (1..things.len()).rev() {
            things.swap(place, self.below(place + 1));
        }
    }
}

/// The order of a round, which depends on the seed and the round alone, so that it is the same
/// however the rounds before it went.
pub fn of_round(seed: u64, round: u32, cells: &[usize]) -> Vec<usize> {
    let mut random = Random::new(seed ^ (u64::from(round) << 32));
    random.draw();
    let mut order = cells.to_vec();
    random.shuffle(&mut order);
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_sequence_is_the_published_one() {
        let mut random = Random::new(1_234_567);
        assert_eq!(random.draw(), 6_457_827_717_110_365_317);
        assert_eq!(random.draw(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn a_round_has_every_cell_once_in_an_order_of_its_own() {
        let cells: Vec<usize> = (0..6).collect();
        let orders: BTreeSet<_> = (1..=20).map(|round| of_round(7, round, &cells)).collect();
        assert!(orders.len() > 15, "{} orders", orders.len());
        for order in &orders {
            assert_eq!(order.iter().copied().collect::<BTreeSet<_>>().len(), 6);
        }
        assert_eq!(of_round(7, 3, &cells), of_round(7, 3, &cells));
        assert_ne!(of_round(7, 3, &cells), of_round(8, 3, &cells));
    }

    #[test]
    fn every_place_is_reached() {
        let firsts: BTreeSet<_> = (0..40).map(|round| of_round(1, round, &[0, 1, 2])[0]).collect();
        assert_eq!(firsts.len(), 3);
    }
}
