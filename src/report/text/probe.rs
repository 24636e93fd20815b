//! What a probe found, for people.

use crate::exit::ExitStatus;
use crate::report::format::{count, counted, duration, latency, one_line, whole};
use crate::report::probe::{Fit, IdsKind, Knee, PaceKind, ProbeOutcome, ProbeReport, ProbeStep};
use crate::report::text::survey::aligned;
use crate::report::text::{Paint, Summary};

const HEADER: [&str; 10] = [
    "connections",
    "asked/s",
    "achieved/s",
    "p50",
    "p90",
    "p99",
    "p99.9",
    "max",
    "misses",
    "errors",
];

/// What a probe comes to, in a word and a sentence, and how good that is.
pub(in crate::report) fn verdict(report: &ProbeReport) -> (Paint, &'static str, String) {
    let best = report
        .steps
        .iter()
        .max_by(|one, other| one.achieved_per_second.total_cmp(&other.achieved_per_second));
    let what = noun(report);
    let rest = best.map_or_else(
        || "no step was held".to_owned(),
        |step| {
            let connections = counted(step.connections.into(), "connection", "connections");
            format!("at most {} {what}/s, with {connections}", whole(step.achieved_per_second))
        },
    );
    let (paint, loud) = match (report.outcome, report.exit_status) {
        (ProbeOutcome::Interrupted, _) => (Paint::Doubtful, "Interrupted"),
        (_, ExitStatus::Restored) => (Paint::Good, "Probed"),
        _ => (Paint::Doubtful, "Probed with failures"),
    };
    (paint, loud, rest)
}

/// What was asked for: reads, where nothing else was.
pub(in crate::report) fn noun(report: &ProbeReport) -> &'static str {
    let writes = report.load.insert_share + report.load.update_share > 0.0;
    if writes { "requests" } else { "reads" }
}

/// What the connections did, in one line.
pub(in crate::report) fn load(report: &ProbeReport) -> String {
    let load = &report.load;
    let pace = match (load.pace, load.rate_per_connection) {
        (PaceKind::Paced, Some(rate)) => format!("{rate} a second from each connection"),
        _ => "flat out".to_owned(),
    };
    let shares = [
        (load.read_share, "reads"),
        (load.insert_share, "inserts"),
        (load.update_share, "updates"),
    ];
    let shares = shares.into_iter().filter(|(share, _)| *share > 1e-9);
    let shares: Vec<_> =
        shares.map(|(share, name)| format!("{:.0} % {name}", share * 100.0)).collect();
    let ids = match load.ids {
        IdsKind::Range => "all of a range",
        IdsKind::Sample => "a sample",
    };
    format!("{pace}; {}; {} _ids, {ids}", shares.join(", "), count(load.ids_known))
}

/// Where more connections brought nothing more, in one line.
pub(in crate::report) fn knee(report: &ProbeReport, knee: &Knee) -> String {
    let connections = counted(knee.connections.into(), "connection", "connections");
    let (rate, what) = (whole(knee.achieved_per_second), noun(report));
    match knee.fell_behind_at {
        Some(behind) => format!(
            "{connections} got what they asked for, {rate} {what}/s; {} fell behind",
            count(behind.into())
        ),
        None => format!("{connections} with {rate} {what}/s came within a tenth of the most"),
    }
}

/// The curve with its numbers, in one line.
pub(in crate::report) fn fit(fit: &Fit) -> String {
    let r_squared = fit.r_squared();
    match *fit {
        Fit::UniversalScalability { lambda, sigma, kappa, peak_connections, .. } => {
            let peak = peak_connections
                .filter(|peak| *peak >= 1.0)
                .map_or_else(String::new, |peak| format!(", highest at {}", whole(peak)));
            format!(
                "λN / (1 + σ(N − 1) + κN(N − 1)) with λ = {lambda:.1}/s, σ = {sigma:.3e}, \
                 κ = {kappa:.3e}{peak}; R² = {r_squared:.3}"
            )
        }
        Fit::LineAndCeiling { per_connection, ceiling: Some(ceiling), .. } => format!(
            "min(aN, C) with a = {per_connection:.2}/s, C = {}/s; R² = {r_squared:.3}",
            whole(ceiling)
        ),
        Fit::LineAndCeiling { per_connection, ceiling: None, .. } => {
            format!("aN with a = {per_connection:.2}/s, no ceiling met; R² = {r_squared:.3}")
        }
    }
}

/// What became of connections and requests in one step, where that is out of the ordinary.
pub(in crate::report) fn troubles(step: &ProbeStep) -> Vec<String> {
    let mut lines = Vec::new();
    if step.connected < step.connections {
        lines.push(format!("only {} were open at its beginning", count(step.connected.into())));
    }
    if step.failed > 0 {
        let asked = counted(step.asked, "request", "requests");
        lines.push(format!("{} of {asked} failed for good", count(step.failed)));
    }
    if step.unanswered > 0 {
        let requests = counted(step.unanswered, "request", "requests");
        lines.push(format!("{requests} had no answer when the step and its last wait were over"));
    }
    if step.asked_again > 0 {
        let reads = counted(step.asked_again, "read was", "reads were");
        lines.push(format!("{reads} sent once more, because a connection broke"));
    }
    if step.unsent > 0 {
        lines.push(format!(
            "{} were due and never sent, because earlier ones had no answer",
            counted(step.unsent, "request", "requests")
        ));
    }
    if step.lost_connections > 0 {
        lines.push(format!(
            "{} lost, {} opened again",
            counted(step.lost_connections, "connection", "connections"),
            count(step.reopened_connections)
        ));
    }
    let errors = step.errors.iter();
    lines.extend(errors.map(|error| {
        format!("{} × {}: {}", count(error.count), error.kind, one_line(&error.sample))
    }));
    lines
}

/// How many requests have no latency, to stand after what is said of latencies.
pub(in crate::report) fn left_out(report: &ProbeReport) -> String {
    match report.steps.iter().map(|step| step.failed).sum::<u64>() {
        0 => String::new(),
        1 => "; 1 request failed and is not among them".to_owned(),
        failed => format!("; {} requests failed and are not among them", count(failed)),
    }
}

/// What an exit status means for a probe.
pub fn meaning(status: ExitStatus) -> &'static str {
    match status {
        ExitStatus::Restored => {
            "all steps were held, and every request that was sent found its document"
        }
        ExitStatus::Failures => {
            "all steps were held, and some requests or connections failed or had no answer"
        }
        ExitStatus::Stopped => "stopped by an error",
        ExitStatus::Interrupted => "interrupted; the steps so far are reported",
        other => other.meaning(),
    }
}

impl Summary {
    /// The report of a probe.
    pub(super) fn probe(&mut self, report: &ProbeReport) {
        let (paint, loud, rest) = verdict(report);
        self.painted(paint, loud, &format!(": {rest}"));
        self.line("");
        let version = report
            .target
            .server_version
            .as_deref()
            .map_or_else(String::new, |version| format!(", server {}", one_line(version)));
        self.fact("server", &format!("{}{version}", one_line(&report.target.description)));
        self.fact("collection", &one_line(&report.namespace));
        self.fact("load", &load(report));
        let time = std::time::Duration::try_from_secs_f64(report.seconds).unwrap_or_default();
        self.fact("time", &duration(time));
        self.line("");
        let mut rows = vec![HEADER.map(str::to_owned)];
        rows.extend(report.steps.iter().map(row));
        for line in aligned(&rows, self.style.width, "  ") {
            self.line(&line);
        }
        self.line("");
        let corrected = match report.load.pace {
            PaceKind::Paced => {
                "from the moment a request was due to its answer, which corrects for coordinated \
                 omission"
            }
            PaceKind::FlatOut => {
                "from sending a request to its answer; without a pace none is late"
            }
        };
        self.fact("latencies", &format!("{corrected}{}", left_out(report)));
        if report.load.pace == PaceKind::Paced {
            self.service(report);
        }
        match &report.knee {
            Some(found) => self.fact("knee", &knee(report, found)),
            None => self.fact("knee", no_knee(report)),
        }
        if let Some(curve) = &report.fit {
            self.fact("curve", &fit(curve));
        }
        self.troubles(report);
        for (place, note) in report.notes.iter().enumerate() {
            self.fact(if place == 0 { "notes" } else { "" }, &one_line(note));
        }
        let status = report.exit_status;
        self.line("");
        self.fact("exit", &format!("{}: {}", status.code(), meaning(status)));
    }

    /// The latencies of the last step as a client without a schedule would have seen them.
    fn service(&mut self, report: &ProbeReport) {
        if let Some(step) = report.steps.last().filter(|step| step.service.count > 0) {
            let text = format!(
                "p50 {}, p99 {}, longest {} in the last step, from sending to the answer",
                latency(step.service.p50_seconds),
                latency(step.service.p99_seconds),
                latency(step.service.max_seconds)
            );
            self.fact("service", &text);
        }
    }

    fn troubles(&mut self, report: &ProbeReport) {
        for step in &report.steps {
            let lines = troubles(step);
            if !lines.is_empty() {
                let connections = counted(step.connections.into(), "connection", "connections");
                self.heading("trouble", &format!("with {connections}"));
                self.list(lines.into_iter(), 4);
            }
        }
    }
}

/// Why there is no knee.
pub(in crate::report) fn no_knee(report: &ProbeReport) -> &'static str {
    match (report.steps.len(), report.load.pace) {
        (0 | 1, _) => "one number of connections has none; --ramp looks for it",
        (_, PaceKind::FlatOut) => "not found",
        (_, PaceKind::Paced) => {
            if report.steps.iter().any(ProbeStep::has_fallen_behind) {
                "below the first step, which fell behind already"
            } else {
                "beyond the last step, which got what it asked for"
            }
        }
    }
}

fn row(step: &ProbeStep) -> [String; 10] {
    let latencies = &step.latency;
    // Where nothing has a latency, none of zero is claimed.
    let is_any = latencies.count > 0;
    let time = |seconds: f64| if is_any { latency(seconds) } else { "-".to_owned() };
    [
        count(step.connections.into()),
        step.asked_per_second.map_or_else(|| "-".to_owned(), whole),
        whole(step.achieved_per_second),
        time(latencies.p50_seconds),
        time(latencies.p90_seconds),
        time(latencies.p99_seconds),
        time(latencies.p999_seconds),
        time(latencies.max_seconds),
        count(step.misses),
        count(step.failures()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Verbosity;
    use crate::report::probe::samples;
    use crate::report::text::{Colour, Style, probed};

    const STYLE: Style = Style { colour: Colour::Never, width: 100, verbosity: Verbosity::Normal };

    #[test]
    fn a_ramp_is_a_table_with_its_knee() {
        let text = probed(&samples::paced(), &STYLE);
        let expected = concat!(
            "Probed with failures: at most 24,500 reads/s, with 4,000 connections\n",
            "\n",
            "  server     db1:27017, server 8.0.4\n",
            "  collection seed.points\n",
            "  load       10 a second from each connection; 100 % reads; 100,000 _ids, all of a range\n",
            "  time       33 s\n",
            "\n",
            "  connections  asked/s  achieved/s      p50      p90      p99    p99.9     max  misses  errors\n",
            "  1,000         10,000       9,990  2.00 ms  4.00 ms  16.0 ms  40.0 ms  100 ms       0       0\n",
            "  2,000         20,000      19,950  2.00 ms  4.00 ms  16.0 ms  40.0 ms  100 ms       0       0\n",
            "  4,000         40,000      24,500  2.00 ms  4.00 ms  16.0 ms  40.0 ms  100 ms       2       3\n",
            "\n",
            "  latencies  from the moment a request was due to its answer, which corrects for coordinated\n",
            "             omission; 1 request failed and is not among them\n",
            "  service    p50 1.00 ms, p99 8.00 ms, longest 50.0 ms in the last step, from sending to the answer\n",
            "  knee       2,000 connections got what they asked for, 19,950 reads/s; 4,000 fell behind\n",
            "  curve      min(aN, C) with a = 9.98/s, C = 24,500/s; R² = 0.999\n",
            "\n",
            "  trouble    with 4,000 connections\n",
            "    1 of 400,005 requests failed for good\n",
            "    4 requests had no answer when the step and its last wait were over\n",
            "    2 reads were sent once more, because a connection broke\n",
            "    155,000 requests were due and never sent, because earlier ones had no answer\n",
            "    3 connections lost, 2 opened again\n",
            "    3 × connection lost: the connection broke: connection reset by peer <b>\n",
            "  notes      the server takes 12 more connections\n",
            "\n",
            "  exit       3: all steps were held, and some requests or connections failed or had no answer\n",
        );
        assert_eq!(text, expected, "{text}");
    }

    #[test]
    fn connections_that_ask_as_they_can_are_asked_nothing() {
        let text = probed(&samples::flat_out(), &STYLE);
        assert!(text.starts_with("Interrupted: at most 24,500 reads/s, with 4,000 connections\n"));
        assert!(text.contains("flat out; 100 % reads; 100,000 _ids, a sample"), "{text}");
        assert!(text.contains("\n  4,000              -      24,500"), "{text}");
        assert!(
            text.contains("σ = 2.000e-4") && text.contains("highest at\n             9,998"),
            "{text}"
        );
        assert!(text.contains("2,000 connections with 19,950 reads/s came within"), "{text}");
        assert!(text.ends_with("130: interrupted; the steps so far are reported\n"), "{text}");
    }

    #[test]
    fn requests_that_all_failed_took_no_time_of_zero() {
        let mut report = samples::paced();
        let last = report.steps.last_mut().expect("a step");
        (last.latency, last.service) = Default::default();
        let text = probed(&report, &STYLE);
        let row = text.lines().find(|line| line.starts_with("  4,000 ")).expect("a row");
        assert_eq!(row.matches(" -").count(), 5, "{row}");
        assert!(!text.contains("service"), "{text}");
    }

    #[test]
    fn a_single_number_has_no_knee() {
        let mut report = samples::paced();
        report.knee = None;
        report.steps.truncate(2);
        assert!(no_knee(&report).starts_with("beyond"));
        report.steps.truncate(1);
        assert!(no_knee(&report).contains("--ramp"));
    }
}
