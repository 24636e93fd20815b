//! The verdict, the balance and the numbers of a run, and what it was given.

use std::time::Duration;

use maud::{Markup, html};

use super::chart::{Part, bar};
use super::{lasting, latency, section, swatch, words};
use crate::report::format::{byte_rate, bytes, count, counted, percent, rate};
use crate::report::tally::Balance;
use crate::report::text::{Paint, special, verdicts};
use crate::report::value::{OptionValue, Report};

/// What the run came to, from where to where.
pub(super) fn header(report: &Report) -> Markup {
    html! {
        header {
            p.brand { "restorm" }
            @for verdict in verdicts(report) {
                h1 class=(tone(verdict.paint)) {
                    strong { (verdict.loud) }
                    span { (words(verdict.rest.trim_start_matches([':', ' ']))) }
                }
            }
            p.route {
                code { (words(&report.dump.path)) }
                span.arrow aria-label="to" { "→" }
                code { (words(&report.target.description)) }
            }
        }
    }
}

pub(super) fn tone(paint: Paint) -> &'static str {
    match paint {
        Paint::Good => "good",
        Paint::Doubtful => "doubtful",
        Paint::Bad => "wrong",
    }
}

/// What became of the documents, as an equation and as a bar.
pub(super) fn balance(report: &Report) -> Markup {
    let balance = &report.balance;
    let sides = parts(balance);
    let content = html! {
        dl.equation {
            (term(None, "read", "read", balance.read))
            @for (place, &(class, name, amount)) in sides.iter().enumerate() {
                @let sign = if place > 0 { "+" } else if report.is_balanced { "=" } else { "≠" };
                (term(Some(sign), class, name, amount))
            }
        }
        (bar("What became of the documents", &sides.iter().map(|&(class, name, amount)| Part {
            class,
            amount: float(amount),
            tip: format!("{} {name}", counted(amount, "document", "documents")),
        }).collect::<Vec<_>>()))
        @if !report.is_balanced {
            p.wrong { "The counts do not add up, which is a defect of this program." }
        }
        @if balance.conflicts > 0 {
            p.quiet {
                (count(balance.conflicts)) " of the rejected are conflicts: "
                "another document has their _id."
            }
        }
        @if report.totals.documents_carried > 0 {
            p.quiet {
                (counted(report.totals.documents_carried, "document", "documents"))
                " of these by an earlier run."
            }
        }
    };
    section("balance", "Balance", &content)
}

fn parts(balance: &Balance) -> Vec<(&'static str, &'static str, u64)> {
    let changes = balance.changes.parts().into_iter().filter(|(_, documents)| *documents > 0);
    let mut parts = vec![("inserted", "inserted", balance.inserted)];
    parts.extend(changes.map(|(what, documents)| ("there", what, documents)));
    parts.extend([
        ("there", "already there", balance.already_there),
        ("rejected", "rejected", balance.rejected),
        ("unsent", "unsent", balance.unsent),
    ]);
    parts
}

fn term(sign: Option<&str>, class: &str, name: &str, amount: u64) -> Markup {
    let style = if amount == 0 { format!("{class} none") } else { class.to_owned() };
    html! {
        div.term {
            @if let Some(sign) = sign { span.sign aria-hidden="true" { (sign) } }
            dt { @if sign.is_some() { (swatch(class)) } (name) }
            dd class=(style) { (count(amount)) }
        }
    }
}

/// A number with what it is and what belongs to it.
struct Figure {
    name: &'static str,
    value: String,
    more: String,
}

/// The numbers of a run.
pub(super) fn figures(report: &Report) -> Markup {
    let content = html! {
        dl.figures {
            @for figure in speeds(report).into_iter().chain(amounts(report)) {
                div {
                    dt { (figure.name) }
                    dd.value { (figure.value) }
                    dd.more { (figure.more) }
                }
            }
        }
    };
    section("figures", "Figures", &content)
}

fn speeds(report: &Report) -> [Figure; 4] {
    let (rates, quantiles) = (&report.rates, &report.latency);
    let pace = |name, documents: Option<f64>, bytes: Option<f64>| Figure {
        name,
        value: documents.map_or_else(|| "–".to_owned(), rate),
        more: bytes.map_or_else(|| "the run was shorter".to_owned(), byte_rate),
    };
    [
        pace(
            "On average",
            Some(rates.average_documents_per_second),
            Some(rates.average_bytes_per_second),
        ),
        pace(
            "Best second",
            Some(rates.peak_documents_per_second),
            Some(rates.peak_bytes_per_second),
        ),
        pace(
            "Best 30 seconds",
            rates.peak_window_documents_per_second,
            rates.peak_window_bytes_per_second,
        ),
        Figure {
            name: "Latency, p50 and p99",
            value: format!(
                "{} · {}",
                latency(quantiles.p50_seconds),
                latency(quantiles.p99_seconds)
            ),
            more: format!(
                "p90 {}, p95 {}, p99.9 {}, longest {}",
                latency(quantiles.p90_seconds),
                latency(quantiles.p95_seconds),
                latency(quantiles.p999_seconds),
                latency(quantiles.max_seconds)
            ),
        },
    ]
}

fn amounts(report: &Report) -> [Figure; 4] {
    let (totals, times) = (&report.totals, &report.times);
    let whole_time = whole_or_done(totals.collections_done, totals.collections);
    let indexes = whole_or_done(totals.indexes_built, totals.indexes);
    [
        Figure {
            name: "Bytes of documents",
            value: bytes(totals.bytes_acknowledged),
            more: format!(
                "{} read, {} of {} on disk",
                bytes(totals.bytes_read),
                bytes(totals.origin_bytes_acknowledged),
                bytes(totals.origin_bytes)
            ),
        },
        Figure {
            name: "Batches",
            value: count(totals.batches),
            more: format!("{} sent again", count(totals.retries)),
        },
        Figure {
            name: "Collections",
            value: whole_time,
            more: match totals.collections_failed as u64 {
                0 => format!("{} done", percent(totals.fraction_done)),
                failed => format!("{} failed", count(failed)),
            },
        },
        Figure {
            name: "Indexes",
            value: indexes,
            more: match totals.indexes_failed as u64 {
                0 => format!("{} of build time", lasting(times.index_builds)),
                failed => format!("{} not built", count(failed)),
            },
        },
    ]
}

/// `7` where all are done, `5 of 7` else.
fn whole_or_done(done: usize, all: usize) -> String {
    let (done, all) = (done as u64, all as u64);
    if done == all { count(all) } else { format!("{} of {}", count(done), count(all)) }
}

/// How long each stage took.
pub(super) fn phases(report: &Report) -> Markup {
    let times = &report.times;
    let phases = [
        ("data", "documents", times.data),
        ("users", "users and roles", times.users),
        ("oplog", "oplog", times.oplog),
        ("indexes", "only indexes", times.indexes),
        ("ttl", "indexes that delete", times.time_to_live),
        ("views", "views", times.views),
    ];
    let known: Duration = phases.iter().map(|(_, _, time)| *time).sum();
    let before = ("before", "preparation", times.total.saturating_sub(known));
    let stages: Vec<_> =
        [before].into_iter().chain(phases).filter(|(_, _, time)| !time.is_zero()).collect();
    let parts: Vec<_> = stages
        .iter()
        .map(|(class, name, time)| Part {
            class,
            amount: time.as_secs_f64(),
            tip: format!("{name}: {}", lasting(*time)),
        })
        .collect();
    let content = html! {
        (bar("Where the time went", &parts))
        ul.stages {
            @for (class, name, time) in &stages {
                li {
                    (swatch(class))
                    (name) " " b { (lasting(*time)) }
                }
            }
        }
    };
    section("times", &format!("Time: {}", lasting(times.total)), &content)
}

/// What was given, and the two sides.
pub(super) fn settings(report: &Report) -> Markup {
    let (dump, target) = (&report.dump, &report.target);
    let known = |version: &Option<String>| version.as_deref().map_or("unknown".to_owned(), words);
    let sides = [
        ("Dump", words(&dump.path)),
        ("Taken from server", known(&dump.server_version)),
        ("Taken by tool", known(&dump.tool_version)),
        ("Target", words(&target.description)),
        ("Target's server", known(&target.server_version)),
        ("restorm", words(&report.tool_version)),
    ];
    let content = html! {
        div.columns {
            div {
                h3 { "Two sides" }
                dl.facts {
                    @for (name, value) in sides { dt { (name) } dd { code { (value) } } }
                    @for (name, value) in special_facts(report) { dt { (name) } dd { (value) } }
                }
            }
            div {
                h3 { "Settings" }
                @if report.options.is_empty() {
                    p.quiet { "All settings were the defaults." }
                } @else {
                    dl.facts {
                        @for option in &report.options { (setting(option)) }
                    }
                    p.quiet { "All others were the defaults." }
                }
            }
        }
    };
    section("settings", "Settings and sides", &content)
}

pub(super) fn setting(option: &OptionValue) -> Markup {
    html! {
        dt { code { "--" (words(&option.name)) } }
        dd { code { (words(&option.value)) } }
    }
}

/// Workers; users, roles, the oplog and the ledger, where there are some.
fn special_facts(report: &Report) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    facts.push(("Batches in flight", report.workers.words()));
    if let Some(users) = &report.users {
        let lines = special::users(users, crate::report::Verbosity::Normal);
        facts.push(("Users and roles", words(&lines.join("; "))));
    }
    if let Some(oplog) = &report.oplog {
        facts.push(("Oplog", words(&special::oplog(oplog))));
        facts.push(("Oplog's file", words(&oplog.path)));
    }
    if let Some(ledger) = &report.ledger {
        facts.push(("Ledger for --resume", words(ledger)));
    }
    facts
}

/// What the page is.
pub(super) fn footer(report: &Report) -> Markup {
    let status = report.exit_status;
    html! {
        footer {
            p { "Exit status " b { (status.code()) } ": " (status.meaning()) "." }
            p { "restorm " (words(&report.tool_version)) ", " (report.schema) }
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "shares are drawn")]
fn float(number: u64) -> f64 {
    number as f64
}
