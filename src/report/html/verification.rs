//! What a comparison with the dump found.

use maud::{Markup, html};

use super::problems::{further, list};
use super::{LINES_MAX, lasting, section, words};
use crate::report::format::{count, counted};
use crate::report::verification::{Agreement, Deviation, Verification, VerifiedCollection};

/// The comparison, and what differs.
pub(super) fn section_of(verification: &Verification) -> Markup {
    let totals = &verification.totals;
    let differing: Vec<_> =
        verification.collections.iter().filter(|one| one.state != Agreement::Same).collect();
    let more = differing.len().saturating_sub(LINES_MAX) as u64;
    let content = html! {
        p class=(if verification.state == Agreement::Same { "good" } else { "wrong" }) {
            (agreement(verification.state)) ": "
            (counted(totals.collections_same, "collection is", "collections are"))
            " as in the dump, " (count(totals.collections_different)) " different, "
            (count(totals.collections_not_compared)) " not compared"
        }
        p.quiet {
            (counted(totals.documents_dump, "document", "documents")) " of the dump and "
            (count(totals.documents_target)) " of the target compared in "
            (lasting(verification.time)) "."
        }
        @for one in differing.into_iter().take(LINES_MAX) { (collection(one)) }
        (further(more))
        @if !verification.notes.is_empty() {
            (list(verification.notes.iter().map(|note| html! { (words(note)) })))
        }
    };
    section("verification", "Comparison with the dump", &content)
}

fn agreement(state: Agreement) -> &'static str {
    match state {
        Agreement::Same => "Same",
        Agreement::Different => "Different",
        Agreement::NotCompared => "Not compared",
    }
}

fn collection(one: &VerifiedCollection) -> Markup {
    let documents = one.documents.iter();
    let counted = documents.clone().map(|differing| {
        let [missing, extra, changed] =
            [differing.missing, differing.extra, differing.changed].map(count);
        let part = if differing.is_complete { "" } else { " (at least)" };
        html! { (missing) " missing, " (extra) " extra, " (changed) " changed" (part) }
    });
    let samples = documents.flat_map(|differing| &differing.samples).map(|sample| {
        html! { (sample.difference.name()) " " code { "_id " (words(&sample.id)) } }
    });
    let error = one.error.iter().map(|error| html! { (words(error)) });
    let options = one.options.iter().map(|option| deviation("option", option));
    let indexes = one.indexes.iter().map(|index| deviation("index", index));
    let notes = one.notes.iter().map(|note| html! { (words(note)) });
    let lines: Vec<_> =
        error.chain(counted).chain(samples).chain(options).chain(indexes).chain(notes).collect();
    html! {
        h3.wrong { code { (words(&one.namespace.to_string())) } ": " (agreement(one.state)) }
        (list(lines.into_iter()))
    }
}

fn deviation(what: &str, deviation: &Deviation) -> Markup {
    let side = |side: &Option<String>| side.as_deref().map_or("nothing".to_owned(), words);
    html! {
        (what) " " code { (words(&deviation.name)) } ": "
        code { (side(&deviation.found)) } " in place of " code { (side(&deviation.expected)) }
    }
}
