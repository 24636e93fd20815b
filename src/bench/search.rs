//! Looks for the best number of workers: doubling while that helps, then closer around the best.

/// The numbers with which a search begins.
const FIRST: [u32; 4] = [1, 2, 4, 8];

/// The largest number that is tried.
pub const WORKERS_MAX: u32 = 64;

/// What is known of a number of workers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tried {
    /// The number.
    pub workers: u32,
    /// The median of its documents a second.
    pub rate: f64,
    /// Whether it is known to be slower than the best, rather than only measured to be.
    pub is_slower: bool,
}

/// The numbers to try next; none where the search is at its end.
pub fn next(tried: &[Tried]) -> Vec<u32> {
    let Some(best) = best(tried) else {
        return FIRST.to_vec();
    };
    let most = tried.iter().map(|one| one.workers).max().unwrap_or(0);
    // As long as the end of the curve is as good as its best, more may be better.
    let end_is_good = tried.iter().any(|one| one.workers == most && !one.is_slower);
    if end_is_good && most < WORKERS_MAX {
        return vec![(most * 2).min(WORKERS_MAX)];
    }
    let below = tried.iter().filter(|one| one.workers < best.workers).max_by_key(|one| one.workers);
    let above = tried.iter().filter(|one| one.workers > best.workers).min_by_key(|one| one.workers);
    let between = [below, above].into_iter().flatten().filter_map(|neighbour| {
        let middle = u32::midpoint(neighbour.workers, best.workers);
        let gap = neighbour.workers.abs_diff(best.workers);
        // Steps of less than a quarter cannot be told apart by any affordable number of rounds.
        let is_worth_it = gap > (best.workers / 4).max(1);
        (is_worth_it && tried.iter().all(|one| one.workers != middle)).then_some(middle)
    });
    between.collect()
}

/// The number with the highest rate, the smallest of equals.
pub fn best(tried: &[Tried]) -> Option<Tried> {
    let mut sorted = tried.to_vec();
    sorted.sort_by(|one, other| {
        other.rate.total_cmp(&one.rate).then(one.workers.cmp(&other.workers))
    });
    sorted.first().copied()
}

/// The smallest number that is not known to be slower than the best: more only hold more memory.
pub fn enough(tried: &[Tried]) -> Option<u32> {
    tried.iter().filter(|one| !one.is_slower).map(|one| one.workers).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Searches a curve without noise, in which 2 % can be told apart.
    fn searched(curve: impl Fn(u32) -> f64) -> (Vec<u32>, u32, u32) {
        let mut tried: Vec<Tried> = Vec::new();
        loop {
            let more = next(&tried);
            if more.is_empty() {
                break;
            }
            tried.extend(more.iter().map(|&workers| {
                assert!((1..=WORKERS_MAX).contains(&workers));
                Tried { workers, rate: curve(workers), is_slower: false }
            }));
            let top = best(&tried).expect("tried").rate;
            for one in &mut tried {
                one.is_slower = one.rate < top * 0.98;
            }
        }
        let (best, enough) = (best(&tried).expect("tried").workers, enough(&tried).expect("one"));
        let mut numbers: Vec<u32> = tried.iter().map(|one| one.workers).collect();
        numbers.sort_unstable();
        let count = numbers.len();
        numbers.dedup();
        assert_eq!(numbers.len(), count, "no number twice");
        (numbers, best, enough)
    }

    #[test]
    fn a_peak_is_found_wherever_it_is() {
        for peak in [1_u32, 2, 3, 6, 12, 24, 48, 64] {
            let curve = |workers: u32| {
                let (workers, peak) = (f64::from(workers), f64::from(peak));
                1000.0 - 300.0 * (workers / peak).ln().abs()
            };
            let (numbers, best, _) = searched(curve);
            assert_eq!(best, peak, "{numbers:?}");
            assert!(numbers.len() <= 14, "{numbers:?}");
        }
    }

    #[test]
    fn of_a_plateau_the_beginning_is_enough() {
        let (numbers, _, enough) = searched(|workers| f64::from(workers.min(4)) * 1000.0);
        assert_eq!(enough, 4, "{numbers:?}");
        assert!(numbers.contains(&64), "the end of a plateau has to be looked for: {numbers:?}");
    }
}
