//! The report as one page for a browser.
//!
//! The page is complete in itself: styles, drawings and the script that sorts its tables are part
//! of it, and its policy keeps a browser from loading anything else. Names and messages of servers
//! and dumps become text and never markup.

mod axis;
mod bound;
mod chart;
mod facts;
mod plot;
mod probe;
mod problems;
mod survey;
mod tables;
mod timeline;
mod verification;

use std::time::Duration;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::report::format::{cut, duration, latency, one_line};
use crate::report::text::verdicts;
use crate::report::value::Report;

pub use probe::page as probe_page;

const STYLE: &str = include_str!("html/style.css");
const SCRIPT: &str = include_str!("html/script.js");

/// What a browser may use of the page: this style and this script, by their SHA-256, and nothing
/// from anywhere else.
const POLICY: &str = "default-src 'none'; \
    style-src 'sha256-vDHK8XI5OUZLobdbfcuwgjlmDQdhjvYzZHY3prEuG/w='; \
    script-src 'sha256-cOjPLbbw873c8dhiiCEend5I4dkeKs8eSND667OT4vo='; \
    base-uri 'none'; form-action 'none'";

/// Rows of a table; whoever needs all of very many has the report as JSON.
const ROWS_MAX: usize = 1000;

/// Lines of a list.
const LINES_MAX: usize = 200;

/// Characters of a name or message: an `_id` may be as large as a document.
const TEXT_MAX: usize = 400;

/// The report as an HTML document, of a size that does not grow with the number of collections.
pub fn page(report: &Report) -> String {
    let title: Vec<_> = verdicts(report).iter().map(|verdict| verdict.loud).collect();
    let body = html! {
        (facts::header(report))
        main {
            (facts::balance(report))
            (facts::phases(report))
            (bound::bound(report))
            (facts::figures(report))
            (problems::sections(report))
            @if let Some(verification) = &report.verification {
                (verification::section_of(verification))
            }
            @if let Some(survey) = &report.survey {
                (survey::before_and_after(survey))
            }
            (section("timeline", "Over time", &timeline::charts(report)))
            (tables::collections(report))
            (tables::indexes(report))
            (problems::remarks(report))
            (facts::settings(report))
        }
        (facts::footer(report))
    };
    document(&title.join(", "), &body)
}

/// A page that is complete in itself: the style, the script that sorts tables, and this body.
pub fn document(title: &str, body: &Markup) -> String {
    let document = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) " · restorm" }
                style { (PreEscaped(STYLE)) }
            }
            body {
                (body)
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    document.into_string()
}

/// A part of the page with its title.
pub fn section(id: &str, title: &str, content: &Markup) -> Markup {
    html! {
        section id=(id) {
            h2 { (title) }
            (content)
        }
    }
}

/// The colour of a part of a bar.
fn swatch(class: &str) -> Markup {
    html! {
        svg.swatch width="9" height="9" aria-hidden="true" {
            rect class=(class) width="9" height="9" rx="2" {}
        }
    }
}

/// A name or message of any origin, in one line of bearable length.
fn words(text: &str) -> String {
    cut(&one_line(text), TEXT_MAX)
}

/// A stretch of time: in three digits where it is short, else in its two largest units.
fn lasting(time: Duration) -> String {
    if time < Duration::from_secs(1) { latency(time.as_secs_f64()) } else { duration(time) }
}

#[cfg(test)]
mod tests;
