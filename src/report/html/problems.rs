//! What went wrong, and what else a person should know.

use maud::{Markup, html};

use super::{LINES_MAX, section, words};
use crate::report::format::{bytes, count, counted};
use crate::report::lost::Lost;
use crate::report::text::code_name;
use crate::report::value::{FailureSum, Report, Skipped};

/// What went wrong, in a section for each kind; nothing where nothing did.
pub(super) fn sections(report: &Report) -> Markup {
    html! {
        (failed_collections(report))
        (rejections(report))
        (failed_indexes(report))
        (lost(report))
        @let problems: Vec<_> = report.skipped.iter().filter(|one| one.is_problem).collect();
        @if !problems.is_empty() {
            (section("unusable", "Could not be used", &skipped(&problems)))
        }
    }
}

/// What was left out on purpose, and notes.
pub(super) fn remarks(report: &Report) -> Markup {
    let others: Vec<_> = report.skipped.iter().filter(|one| !one.is_problem).collect();
    html! {
        @if !report.notes.is_empty() {
            (section("notes", "Notes", &list(report.notes.iter().map(|note| html! {
                @if let Some(namespace) = &note.namespace {
                    code { (words(&namespace.to_string())) } ": "
                }
                (words(&note.text))
            }))))
        }
        @if !others.is_empty() {
            (section("skipped", "Left out on purpose", &skipped(&others)))
        }
    }
}

/// Lines, the first of very many.
pub(super) fn list(lines: impl ExactSizeIterator<Item = Markup>) -> Markup {
    let more = lines.len().saturating_sub(LINES_MAX) as u64;
    html! {
        ul.lines { @for line in lines.take(LINES_MAX) { li { (line) } } }
        (further(more))
    }
}

/// How many are not shown, where some are not.
pub(super) fn further(more: u64) -> Markup {
    html! {
        @if more > 0 { p.quiet { "and " (count(more)) " more, which the JSON report lists" } }
    }
}

fn failed_collections(report: &Report) -> Markup {
    let failed: Vec<_> = report
        .collections
        .iter()
        .filter_map(|one| Some((one.namespace.to_string(), one.error.as_deref()?)))
        .collect();
    html! {
        @if !failed.is_empty() {
            (section("failed", "Collections not restored completely", &list(
                failed.iter().map(|(name, error)| {
                    // An error of a file names its collection itself.
                    let error = error.strip_prefix(&format!("{name}: ")).unwrap_or(error);
                    html! { code { (words(name)) } ": " span.wrong { (words(error)) } }
                })
            )))
        }
    }
}

fn rejections(report: &Report) -> Markup {
    if report.balance.rejected == 0 {
        return html! {};
    }
    let content = html! {
        @for (code, failure) in report.failures() {
            @let name = code_name(code).unwrap_or_default();
            h3.wrong {
                "Code " (code) " " (name) ": " (counted(failure.count, "document", "documents"))
            }
            (refused(&failure))
        }
    };
    section("rejected", "Documents the server rejected", &content)
}

fn refused(failure: &FailureSum<'_>) -> Markup {
    html! {
        (list(failure.samples.iter().map(|(namespace, sample)| html! {
            code { (words(&namespace.to_string())) " _id " (words(&sample.id)) }
            p.quiet { (words(&sample.message)) }
        })))
        @let more = failure.count.saturating_sub(failure.samples.len() as u64);
        @if more > 0 { p.quiet { "and " (count(more)) " more" } }
    }
}

fn failed_indexes(report: &Report) -> Markup {
    let failed: Vec<_> = report
        .collections
        .iter()
        .flat_map(|one| one.indexes_failed().map(move |index| (&one.namespace, index)))
        .collect();
    html! {
        @if !failed.is_empty() {
            (section("unbuilt", "Indexes not built", &list(
                failed.iter().map(|(namespace, (index, error))| html! {
                    code { (words(&namespace.to_string())) " " (words(index)) } ": "
                    span.wrong { (words(error)) }
                })
            )))
        }
    }
}

fn lost(report: &Report) -> Markup {
    let Some(salvage) = &report.salvage else { return html! {} };
    let named = |name: String, lost: &Lost| -> Vec<String> {
        let listed = lost.stretches.iter().map(|stretch| {
            let to = stretch.to.map_or_else(|| "its end".to_owned(), |to| format!("byte {to}"));
            let (file, from) = (&stretch.file, stretch.from);
            let size = bytes(stretch.bytes);
            format!("{name}{file} from byte {from} to {to}, {size}: {}", stretch.reason)
        });
        let unlisted = lost.unlisted();
        listed.chain((unlisted > 0).then(|| format!("{name}{} more", count(unlisted)))).collect()
    };
    let of_collections = report.collections.iter();
    let mut lines: Vec<_> =
        of_collections.flat_map(|one| named(format!("{}: ", one.namespace), &one.lost)).collect();
    lines.extend(named(String::new(), &salvage.elsewhere));
    let content = html! {
        p {
            (counted(salvage.stretches, "stretch", "stretches")) ", " (bytes(salvage.bytes))
            @if let Some(folder) = &salvage.folder { ", kept in " code { (words(folder)) } }
        }
        (list(lines.iter().map(|line| html! { (words(line)) })))
    };
    section("lost", "Lost to damage", &content)
}

fn skipped(skipped: &[&Skipped]) -> Markup {
    list(skipped.iter().map(|one| {
        html! { code { (words(&one.what)) } ": " (words(&one.reason)) }
    }))
}
