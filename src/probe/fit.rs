//! The curve through the throughput of the steps.

use crate::report::probe::{Fit, ProbeStep};

/// Points that the curve of three numbers needs at least, so that it can miss some of them.
const POINTS_MIN: usize = 3;

/// The curve through these steps, where there are enough different ones.
///
/// With a pace it is a line up to a ceiling, flat out the universal scalability law (N. Gunther,
/// "Guerrilla Capacity Planning", Springer 2007, chapter 4).
pub(super) fn fit(steps: &[ProbeStep]) -> Option<Fit> {
    let is_paced = steps.iter().any(|step| step.asked_per_second.is_some());
    let mut points: Vec<(f64, f64)> = steps
        .iter()
        .map(|step| (f64::from(step.connections), step.achieved_per_second))
        .filter(|point| point.0 > 0.0 && point.1 > 0.0)
        .collect();
    points.sort_by(|one, other| one.0.total_cmp(&other.0));
    points.dedup_by_key(|point| point.0);
    if points.len() < POINTS_MIN {
        return None;
    }
    if is_paced { Some(line_and_ceiling(&points)) } else { universal_scalability(&points) }
}

/// How far below the line a ceiling lies at least; less is noise of a line without one.
const CEILING_MAX: f64 = 0.98;

/// Tries every place for the bend: a line through the points before it, their mean after it.
fn line_and_ceiling(points: &[(f64, f64)]) -> Fit {
    let tried = (1..=points.len()).filter_map(|bend| {
        let (below, above) = points.split_at(bend);
        let products: f64 = below.iter().map(|point| point.0 * point.1).sum();
        let squares: f64 = below.iter().map(|point| point.0 * point.0).sum();
        let sum: f64 = above.iter().map(|point| point.1).sum();
        #[expect(clippy::cast_precision_loss, reason = "a few")]
        let ceiling = (!above.is_empty()).then(|| sum / above.len() as f64);
        let per_connection = products / squares;
        let on_line = points.last().map_or(0.0, |last| last.0 * per_connection);
        ceiling
            .is_none_or(|ceiling| ceiling < on_line * CEILING_MAX)
            .then_some(Fit::LineAndCeiling { per_connection, ceiling, r_squared: 0.0 })
    });
    let best = tried.min_by(|one, other| missed(one, points).total_cmp(&missed(other, points)));
    let best =
        best.unwrap_or(Fit::LineAndCeiling { per_connection: 0.0, ceiling: None, r_squared: 0.0 });
    judged(best, points)
}

/// N / X is linear in 1, N − 1 and N(N − 1), so that least squares has a closed form. A difference
/// in N / X is one in X times N / X², which the weights take back. Neither σ nor κ may be below
/// nothing: where one would be, it is left out, and the best of what is left is taken.
fn universal_scalability(points: &[(f64, f64)]) -> Option<Fit> {
    let terms: [&[usize]; 4] = [&[0, 1, 2], &[0, 1], &[0, 2], &[0]];
    let tried = terms.into_iter().filter_map(|terms| {
        let solved = least_squares(points, terms)?;
        let mut numbers = [0.0; 3];
        for (&term, value) in terms.iter().zip(solved) {
            numbers[term] = value;
        }
        let [one, sigma, kappa] = numbers;
        (one > 0.0 && sigma >= 0.0 && kappa >= 0.0)
            .then(|| of_law(1.0 / one, sigma / one, kappa / one))
    });
    let best = tried.min_by(|one, other| missed(one, points).total_cmp(&missed(other, points)))?;
    Some(judged(best, points))
}

fn of_law(lambda: f64, sigma: f64, kappa: f64) -> Fit {
    let peak = (kappa > 0.0 && sigma < 1.0).then(|| ((1.0 - sigma) / kappa).sqrt());
    Fit::UniversalScalability { lambda, sigma, kappa, peak_connections: peak, r_squared: 0.0 }
}

/// The factors of these terms for which N / X is met best.
fn least_squares(points: &[(f64, f64)], terms: &[usize]) -> Option<Vec<f64>> {
    let size = terms.len();
    let mut rows = vec![vec![0.0; size + 1]; size];
    for &(connections, throughput) in points {
        let others = connections - 1.0;
        let values = [1.0, others, connections * others];
        let weight = (throughput * throughput / connections).powi(2);
        for (row, &left) in rows.iter_mut().zip(terms) {
            for (cell, &right) in row.iter_mut().zip(terms) {
                *cell += weight * values[left] * values[right];
            }
            row[size] += weight * values[left] * connections / throughput;
        }
    }
    solved(rows)
}

/// Solves a few linear equations by Gauss' elimination with pivots, after bringing their terms to
/// one scale: they differ by eight orders of magnitude.
fn solved(mut rows: Vec<Vec<f64>>) -> Option<Vec<f64>> {
    let size = rows.len();
    let scales: Vec<f64> = (0..size).map(|at| rows[at][at].sqrt()).collect();
    if scales.iter().any(|scale| !scale.is_normal()) {
        return None;
    }
    for (row, own) in rows.iter_mut().zip(&scales) {
        for (cell, scale) in row.iter_mut().zip(scales.iter().chain([&1.0])) {
            *cell /= own * scale;
        }
    }
    for at in 0..size {
        let pivot = (at..size).max_by(|&a, &b| rows[a][at].abs().total_cmp(&rows[b][at].abs()))?;
        rows.swap(at, pivot);
        if rows[at][at].abs() < 1e-12 {
            return None;
        }
        let pivot_row = rows[at].clone();
        for row in rows.iter_mut().skip(at + 1) {
            let factor = row[at] / pivot_row[at];
            for (cell, above) in row.iter_mut().zip(&pivot_row) {
                *cell -= factor * above;
            }
        }
    }
    let mut solution = vec![0.0; size];
    for at in (0..size).rev() {
        let known: f64 = (at + 1..size).map(|other| rows[at][other] * solution[other]).sum();
        solution[at] = (rows[at][size] - known) / rows[at][at];
    }
    Some(solution.iter().zip(&scales).map(|(value, scale)| value / scale).collect())
}

/// The sum of the squares of what the curve misses.
fn missed(fit: &Fit, points: &[(f64, f64)]) -> f64 {
    points.iter().map(|point| (point.1 - fit.at(point.0)).powi(2)).sum()
}

/// The same curve with how much it explains.
#[expect(clippy::cast_precision_loss, reason = "a few")]
fn judged(mut fit: Fit, points: &[(f64, f64)]) -> Fit {
    let mean = points.iter().map(|point| point.1).sum::<f64>() / points.len() as f64;
    let all: f64 = points.iter().map(|point| (point.1 - mean).powi(2)).sum();
    let explained = if all > 0.0 { 1.0 - missed(&fit, points) / all } else { 1.0 };
    match &mut fit {
        Fit::UniversalScalability { r_squared, .. } | Fit::LineAndCeiling { r_squared, .. } => {
            *r_squared = explained;
        }
    }
    fit
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::probe::samples;

    fn steps(is_paced: bool, points: &[(u32, f64)]) -> Vec<ProbeStep> {
        let step = samples::paced().steps.remove(0);
        let of = |&(connections, achieved_per_second): &(u32, f64)| ProbeStep {
            connections,
            asked_per_second: is_paced.then_some(1.0),
            achieved_per_second,
            ..step.clone()
        };
        points.iter().map(of).collect()
    }

    fn is_near(found: f64, expected: f64) -> bool {
        (found / expected - 1.0).abs() < 1e-3
    }

    #[test]
    fn the_law_is_found_again() {
        let law = of_law(1000.0, 0.02, 0.00005);
        let points = [1, 10, 50, 150, 600, 2500, 10_000].map(|n| (n, law.at(f64::from(n))));
        let Some(Fit::UniversalScalability { lambda, sigma, kappa, peak_connections, r_squared }) =
            fit(&steps(false, &points))
        else {
            panic!("a curve")
        };
        assert!(is_near(lambda, 1000.0) && is_near(sigma, 0.02) && is_near(kappa, 0.00005));
        assert!(peak_connections.is_some_and(|peak| is_near(peak, 140.0)), "{peak_connections:?}");
        assert!(r_squared > 0.9999);
    }

    #[test]
    fn nothing_below_nothing_is_found() {
        // Throughput that grows faster than connections fits no law; the nearest is a line.
        let found = fit(&steps(false, &[(1, 10.0), (10, 120.0), (100, 1500.0)]));
        let Some(Fit::UniversalScalability { sigma, kappa, peak_connections, .. }) = found else {
            panic!("a curve")
        };
        assert!(sigma.abs() < 1e-12 && kappa.abs() < 1e-12 && peak_connections.is_none());
    }

    #[test]
    fn a_plateau_has_an_end_of_its_line() {
        let points = [(100, 1000.0), (200, 2000.0), (400, 4000.0), (800, 4900.0), (1600, 5100.0)];
        let Some(Fit::LineAndCeiling { per_connection, ceiling, r_squared }) =
            fit(&steps(true, &points))
        else {
            panic!("a line")
        };
        assert!(is_near(per_connection, 10.0) && ceiling.is_some_and(|top| is_near(top, 5000.0)));
        assert!(r_squared > 0.99, "{r_squared}");
    }

    #[test]
    fn what_keeps_up_has_no_ceiling() {
        let points = [(100, 1000.0), (200, 2000.0), (400, 4000.0)];
        let found = fit(&steps(true, &points));
        assert!(matches!(found, Some(Fit::LineAndCeiling { ceiling: None, .. })), "{found:?}");
        assert_eq!(fit(&steps(true, &points[..2])), None, "two points are no curve");
    }
}
