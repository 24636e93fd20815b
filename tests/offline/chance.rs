//! Numbers that look random and depend on a seed alone, and the seeds that tests run through.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// The odd number nearest to 2^64 divided by the golden ratio.
const GAMMA: u64 = 0x9E37_79B9_7F4A_7C15;

/// The variable that names the only seed to run.
const ONE: &str = "RESTORM_SEED";

/// How often the only seed is run: threads take turns in ways that no seed decides.
const REPETITIONS: usize = 20;

/// The variable that says how many seeds to run.
const MANY: &str = "RESTORM_SEEDS";

/// The generator splitmix64 (Steele, Lea and Flood, OOPSLA 2014).
#[derive(Clone, Debug)]
pub(crate) struct Chance {
    state: u64,
}

impl Chance {
    /// The numbers of this seed.
    pub(crate) fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The numbers of a seed for one occasion, whenever it comes.
    pub(crate) fn at(seed: u64, occasion: &[u64]) -> Self {
        let mut chance = Self::new(seed);
        for part in occasion {
            chance.state = chance.draw() ^ part;
        }
        chance
    }

    /// The next 64 bits.
    pub(crate) fn draw(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GAMMA);
        let mut bits = self.state;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^ (bits >> 31)
    }

    /// A number below the bound, which is above zero.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        let number = self.draw() % u64::try_from(bound).expect("a bound fits");
        usize::try_from(number).expect("it is below the bound")
    }

    /// A number from the first to the last.
    pub(crate) fn between(&mut self, first: usize, last: usize) -> usize {
        first + self.below(last - first + 1)
    }

    /// Whether something happens that happens in so many of a hundred cases.
    pub(crate) fn percent(&mut self, cases: usize) -> bool {
        self.below(100) < cases
    }

    /// One of the choices.
    pub(crate) fn one_of<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len())]
    }
}

/// Runs a test for every seed below `count`, or for what the environment asks for: the one seed
/// `RESTORM_SEED`, or `RESTORM_SEEDS` of them. A failure names its seed.
#[expect(clippy::print_stderr, reason = "whoever reads the failure needs its seed")]
pub(crate) fn each_seed(count: u64, test: impl Fn(u64)) {
    let number = |name: &str| {
        let value = std::env::var(name).ok().filter(|set| !set.is_empty())?;
        Some(value.parse::<u64>().expect("a seed is a number"))
    };
    let only = std::iter::repeat_n(number(ONE), REPETITIONS).flatten();
    let many = 0..number(MANY).unwrap_or(count);
    let many = many.take_while(|_| number(ONE).is_none());
    for seed in only.chain(many) {
        if let Err(failure) = catch_unwind(AssertUnwindSafe(|| test(seed))) {
            eprintln!("seed {seed} failed; {ONE}={seed} runs it alone");
            std::panic::resume_unwind(failure);
        }
    }
}

mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_numbers_every_time() {
        let numbers = |seed| {
            let mut chance = Chance::new(seed);
            (0..100).map(|_| chance.between(3, 9)).collect::<Vec<_>>()
        };
        assert_eq!(numbers(7), numbers(7));
        assert_ne!(numbers(7), numbers(8));
        assert_eq!(numbers(7).iter().min(), Some(&3));
        assert_eq!(numbers(7).iter().max(), Some(&9));
        assert_ne!(Chance::at(1, &[2, 3]).draw(), Chance::at(1, &[3, 2]).draw());
    }

    #[test]
    fn every_seed_is_run_until_one_fails() {
        let last = std::cell::Cell::new(None);
        let failed = catch_unwind(AssertUnwindSafe(|| {
            each_seed(u64::MAX, |seed| {
                last.set(Some(seed));
                panic!("this one");
            });
        }));
        assert!(failed.is_err() && last.get().is_some());
    }
}
