//! What a run was bound by.

use std::time::Duration;

use maud::{Markup, html};

use super::axis::moment;
use super::chart::{Part, bar};
use super::{lasting, section, swatch, words};
use crate::report::bound::{Bound, BoundBy, Stretch};
use crate::report::value::Report;

/// How the limits look, that of most of the time first; further ones look alike.
const LOOKS: [&str; 3] = ["first", "second", "third"];

/// What it was, why that is believed, what would help, and what it was when.
pub(super) fn bound(report: &Report) -> Markup {
    let Some(bound) = &report.bound_by else { return html! {} };
    let content = html! {
        ul.evidence { @for phrase in &bound.evidence { li { (words(phrase)) } } }
        @if !bound.advice.is_empty() { p { (words(&bound.advice)) "." } }
        @if !bound.stretches.is_empty() { (course(bound, report.times.total)) }
    };
    section("bound", &format!("Bound by: {}", bound.by.name()), &content)
}

fn course(bound: &BoundBy, total: Duration) -> Markup {
    let sums = sums(&bound.stretches);
    let look = |by: Bound| {
        let place = sums.iter().position(|(one, _)| *one == by).unwrap_or_default();
        LOOKS.get(place).copied().unwrap_or("further")
    };
    let mut parts = Vec::new();
    let mut reached = 0.0;
    for stretch in &bound.stretches {
        parts.push(untold(stretch.from_seconds - reached));
        parts.push(Part {
            class: look(stretch.by),
            amount: stretch.to_seconds - stretch.from_seconds,
            tip: format!(
                "{} to {}: {}",
                moment(stretch.from_seconds),
                moment(stretch.to_seconds),
                stretch.by.name()
            ),
        });
        reached = stretch.to_seconds;
    }
    parts.push(untold(total.as_secs_f64() - reached));
    html! {
        (bar("What the run was bound by in its course", &parts))
        ul.stages {
            @for (by, seconds) in &sums {
                li { (swatch(look(*by))) (by.name()) " " b { (lasting(*seconds)) } }
            }
        }
    }
}

/// A time of which it is not known.
fn untold(seconds: f64) -> Part {
    Part { class: "empty", amount: seconds.max(0.0), tip: "not known".to_owned() }
}

/// How long each limit was the limit, the longest first.
fn sums(stretches: &[Stretch]) -> Vec<(Bound, Duration)> {
    let mut sums: Vec<(Bound, Duration)> = Vec::new();
    for stretch in stretches {
        let seconds = (stretch.to_seconds - stretch.from_seconds).max(0.0);
        let time = Duration::try_from_secs_f64(seconds).unwrap_or_default();
        match sums.iter_mut().find(|(by, _)| *by == stretch.by) {
            Some((_, sum)) => *sum += time,
            None => sums.push((stretch.by, time)),
        }
    }
    sums.sort_by_key(|(_, sum)| std::cmp::Reverse(*sum));
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::value::samples;

    #[test]
    fn each_limit_has_its_time_and_the_longest_comes_first() {
        let stretch = |from, to, by| Stretch { from_seconds: from, to_seconds: to, by };
        let mut report = samples::clean();
        report.bound_by = Some(BoundBy {
            by: Bound::Server,
            evidence: vec!["cache 95 % <dirty>".into()],
            advice: "give it more memory".into(),
            stretches: vec![
                stretch(1.0, 4.0, Bound::Reading),
                stretch(4.0, 24.0, Bound::Server),
                stretch(30.0, 33.0, Bound::Reading),
            ],
        });
        let text = bound(&report).into_string();
        assert!(text.contains("<h2>Bound by: server</h2>"), "{text}");
        assert!(text.contains("<li>cache 95 % &lt;dirty&gt;</li>"));
        assert!(text.contains("give it more memory."));
        assert!(text.contains("<title>4 s to 24 s: server</title>"));
        assert_eq!(text.matches("<title>not known</title>").count(), 3, "before, between, after");
        let server = text.find("server <b>20 s</b>").expect("its time");
        assert!(server < text.find("reading <b>6.0 s</b>").expect("their sum"));
    }

    #[test]
    fn a_run_that_was_too_short_to_tell_has_no_section() {
        let mut report = samples::clean();
        report.bound_by = None;
        assert_eq!(bound(&report).into_string(), "");
    }
}
