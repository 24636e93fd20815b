//! Where more connections bring nothing more.

use crate::report::probe::{Knee, ProbeStep};

/// A step that achieves this share of the most has come as far as it goes.
const NEAR_MOST: f64 = 0.9;

/// The knee of these steps.
///
/// With a pace it is the last step, in order of connections, before the first that falls behind.
/// Flat out, where nothing is asked, it is the fewest connections that come near the most that any
/// step achieved. There is none where the first step falls behind already, where none does, and
/// where there is one step only.
pub(super) fn knee(steps: &[ProbeStep]) -> Option<Knee> {
    let mut steps: Vec<&ProbeStep> = steps.iter().collect();
    steps.sort_by_key(|step| step.connections);
    if steps.len() < 2 {
        return None;
    }
    if steps.iter().any(|step| step.asked_per_second.is_some()) {
        let behind = steps.iter().position(|step| step.has_fallen_behind())?;
        let kept = steps.get(behind.checked_sub(1)?)?;
        return Some(Knee {
            connections: kept.connections,
            achieved_per_second: kept.achieved_per_second,
            fell_behind_at: Some(steps[behind].connections),
        });
    }
    let most = steps.iter().map(|step| step.achieved_per_second).fold(0.0, f64::max);
    let near = steps.iter().find(|step| step.achieved_per_second >= most * NEAR_MOST)?;
    Some(Knee {
        connections: near.connections,
        achieved_per_second: near.achieved_per_second,
        fell_behind_at: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::probe::samples;

    fn steps(asked: Option<f64>, achieved: &[(u32, f64)]) -> Vec<ProbeStep> {
        let step = samples::paced().steps.remove(0);
        let of = |&(connections, achieved_per_second): &(u32, f64)| ProbeStep {
            connections,
            asked_per_second: asked.map(|rate| rate * f64::from(connections)),
            achieved_per_second,
            ..step.clone()
        };
        achieved.iter().map(of).collect()
    }

    fn at(asked: Option<f64>, achieved: &[(u32, f64)]) -> Option<(u32, Option<u32>)> {
        knee(&steps(asked, achieved)).map(|knee| (knee.connections, knee.fell_behind_at))
    }

    #[test]
    fn a_pace_has_its_knee_where_achieved_leaves_asked() {
        let found = at(Some(10.0), &[(100, 999.0), (200, 1960.0), (400, 3000.0), (800, 3100.0)]);
        assert_eq!(found, Some((200, Some(400))));
        assert_eq!(at(Some(10.0), &[(400, 3000.0), (100, 999.0)]), Some((100, Some(400))));
    }

    #[test]
    fn there_may_be_no_knee() {
        assert_eq!(at(Some(10.0), &[(100, 999.0), (200, 1990.0)]), None, "all keep up");
        assert_eq!(at(Some(10.0), &[(100, 500.0), (200, 500.0)]), None, "none keeps up");
        assert_eq!(at(Some(10.0), &[(100, 500.0)]), None, "one step");
        assert_eq!(at(None, &[]), None);
    }

    #[test]
    fn flat_out_it_is_where_the_most_is_near() {
        let found = at(None, &[(1, 2000.0), (4, 7000.0), (16, 9100.0), (64, 10_000.0)]);
        assert_eq!(found, Some((16, None)));
    }
}
