//! Numbers that look random and depend on their start alone.

/// The odd number nearest to 2^64 divided by the golden ratio.
const GAMMA: u64 = 0x9E37_79B9_7F4A_7C15;

/// The generator of Steele, Lea and Flood, "Fast splittable pseudorandom number generators"
/// (OOPSLA 2014), with the constants of Vigna's public-domain `splitmix64.c`. A state is one
/// number, so starting anew for each document costs nothing.
#[derive(Clone, Debug)]
pub(crate) struct SplitMix64 {
    state: u64,
}

impl SplitMix64 {
    pub(crate) fn new(state: u64) -> Self {
        Self { state }
    }

    /// The start of the numbered one of many sequences.
    pub(crate) fn nth(stream: u64, number: u64) -> Self {
        Self::new(mix(stream.wrapping_add(number.wrapping_mul(GAMMA))))
    }

    /// The next 64 random bits.
    pub(crate) fn draw(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GAMMA);
        mix(self.state)
    }

    /// A number below the bound, by multiplication rather than division; the bias of at most
    /// bound / 2^32 does not matter here.
    pub(crate) fn below(&mut self, bound: u32) -> u32 {
        let product = (self.draw() >> 32) * u64::from(bound);
        (product >> 32) as u32
    }

    /// A number from 0 to this one; the bias of at most 1 in 2^64 / `last` does not matter.
    pub(super) fn up_to(&mut self, last: u64) -> u64 {
        let product = u128::from(self.draw()) * (u128::from(last) + 1);
        (product >> 64) as u64
    }

    /// A number from 0 to below 1, of 53 random bits.
    #[expect(clippy::cast_precision_loss, reason = "a double holds 53 bits")]
    pub(crate) fn unit(&mut self) -> f64 {
        (self.draw() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
    }

    /// Fills bytes, so that no compressor makes them smaller.
    pub(super) fn fill(&mut self, bytes: &mut [u8]) {
        let (words, rest) = bytes.as_chunks_mut::<8>();
        for word in words {
            *word = self.draw().to_le_bytes();
        }
        let last = self.draw().to_le_bytes();
        rest.copy_from_slice(&last[..rest.len()]);
    }

    /// One of the choices; their number is a power of two, so that the remainder is a mask.
    #[expect(clippy::cast_possible_truncation, reason = "the low bits decide")]
    pub(super) fn one_of<const N: usize>(&mut self, choices: &[&'static str; N]) -> &'static str {
        const { assert!(N.is_power_of_two()) };
        choices[self.draw() as usize % N]
    }
}

/// Spreads every bit over all others; no two numbers become the same.
pub(super) fn mix(number: u64) -> u64 {
    let mut mixed = number;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_is_the_published_one() {
        // The first three outputs of splitmix64.c for the state 1234567.
        let mut random = SplitMix64::new(1_234_567);
        assert_eq!(random.draw(), 6_457_827_717_110_365_317);
        assert_eq!(random.draw(), 3_203_168_211_198_807_973);
        assert_eq!(random.draw(), 9_817_491_932_198_370_423);
    }

    #[test]
    fn numbers_stay_below_their_bound_and_reach_all_of_it() {
        let mut random = SplitMix64::new(1);
        let mut seen = [false; 7];
        for _ in 0..1000 {
            seen[random.below(7) as usize] = true;
        }
        assert_eq!(seen, [true; 7]);
    }
}
