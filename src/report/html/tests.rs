//! Tests of the page.

use std::time::Duration;

use base64::Engine as _;
use sha2::{Digest as _, Sha256};

use super::*;
use crate::namespace::Namespace;
use crate::report::event::{Event, Rejection};
use crate::report::format::{byte_rate, bytes, count, rate};
use crate::report::survey::samples as surveys;
use crate::report::tally::Tally;
use crate::report::value::{Context, OptionValue, Outcome, Skipped, samples};
use crate::report::verification::samples as verifications;

const HOSTILE: &str = "</script><script>alert('1')</script><img src=\"https://evil.example/x\" \
                       onerror=alert(1)>&quot;\u{0}\n\u{1b}[31m";

fn hash(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    format!("'sha256-{}'", base64::engine::general_purpose::STANDARD.encode(digest))
}

#[test]
fn the_policy_allows_what_is_in_the_page_and_nothing_else() {
    assert!(POLICY.starts_with("default-src 'none'; "));
    for (name, text) in [("style-src", STYLE), ("script-src", SCRIPT)] {
        let allowed = format!("{name} {};", hash(text));
        assert!(POLICY.contains(&allowed), "the policy must have {allowed}");
        assert!(!text.contains("</"), "an end tag would end the element early");
    }
    assert!(!POLICY.contains("unsafe") && !POLICY.contains("http"));
}

/// The document in pieces: the inside of each tag, and the text before it.
fn tags(page: &str) -> Vec<&str> {
    let body = page.replace(STYLE, "").replace(SCRIPT, "");
    assert!(body.len() < page.len(), "style and script are in the page");
    let pieces = page.split('<').skip(1);
    pieces.filter_map(|piece| piece.split_once('>')).map(|(tag, _)| tag).collect()
}

#[test]
fn nothing_is_loaded_from_anywhere() {
    for report in samples::all() {
        let page = page(&report);
        for tag in tags(&page) {
            for word in ["src=", "href=", "url(", "srcset=", "style=", "onclick"] {
                assert!(!tag.contains(word), "<{tag}>");
            }
        }
    }
    for text in [STYLE, SCRIPT] {
        for word in ["http:", "https:", "//", "url(", "@import", "fetch", "import("] {
            let lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
            assert!(lines.clone().all(|line| !line.contains(word)), "{word}");
        }
    }
}

/// A run in which every text of others is hostile.
fn hostile() -> crate::report::Report {
    let mut planned = samples::planned("x", 10, 2);
    planned.namespace = Namespace::new("d<b>", HOSTILE);
    let rejection = Rejection {
        code: 121,
        message: HOSTILE.into(),
        id: format!("{{\"x\":\"{HOSTILE}\"}}"),
        is_conflict: true,
    };
    let mut tally = Tally::default();
    let text = || HOSTILE.to_owned();
    for event in [
        Event::Planned { collections: vec![planned.into()] },
        Event::UsersPlanned { users: vec![text()], roles: vec![text()] },
        Event::UsersEnded { failure: Some(text()) },
        Event::OplogPlanned { path: text() },
        Event::ReadBegan { collection: 0 },
        Event::Read { collection: 0, documents: 1, bytes: 10 },
        Event::Rejected { collection: 0, rejections: vec![rejection] },
        samples::written(0, [0, 0, 1], 10, 10),
        Event::DataEnded { collection: 0 },
        Event::IndexBegan { collection: 0, index: text() },
        Event::IndexFailed { collection: 0, index: text(), reason: text() },
        Event::CollectionFailed { collection: 0, error: text() },
        Event::Note { collection: Some(0), text: text() },
    ] {
        tally.apply(Duration::from_millis(300), &event);
    }
    let skipped = |is_problem| Skipped { what: text(), reason: text(), is_problem };
    let mut context = Context {
        outcome: Outcome::Stopped { error: text() },
        skipped: vec![skipped(true), skipped(false)],
        options: vec![OptionValue { name: text(), value: text() }],
        ..samples::context()
    };
    context.dump.path = text();
    context.dump.tool_version = Some(text());
    context.target.description = text();
    context.target.server_version = Some(text());
    let mut report = crate::report::Report::new(&tally, context);
    report.ledger = Some(text());
    report
}

#[test]
fn what_others_say_is_never_markup() {
    let page = page(&hostile());
    assert_eq!(page.matches("<script").count(), 1);
    for tag in tags(&page) {
        assert!(!tag.contains("evil"), "<{tag}>");
    }
    assert!(!page.contains("<img") && !page.contains("d<b>"));
    let shown = "&lt;/script&gt;&lt;script&gt;alert('1')&lt;/script&gt;";
    assert!(page.matches(shown).count() >= 15, "{}", page.matches(shown).count());
    assert!(page.contains("&amp;quot;"), "an entity is text as well");
    assert!(!page.contains(['\0', '\u{1b}']), "nothing steers whatever shows the page");
}

#[test]
fn the_numbers_are_those_of_the_report() {
    let report = samples::clean();
    let page = page(&report);
    let (balance, rates, totals) = (&report.balance, &report.rates, &report.totals);
    let average = rates.average_documents_per_second;
    for text in [
        format!("<dd class=\"read\">{}</dd>", count(balance.read)),
        format!("<dd class=\"inserted\">{}</dd>", count(balance.inserted)),
        "<dd class=\"rejected none\">0</dd>".to_owned(),
        format!("<dd class=\"value\">{}</dd>", rate(average)),
        format!("<dd class=\"more\">{}</dd>", byte_rate(rates.average_bytes_per_second)),
        format!("<dd class=\"value\">{}</dd>", rate(rates.peak_documents_per_second)),
        format!("<dd class=\"value\">{}</dd>", bytes(totals.bytes_acknowledged)),
        format!("<dd class=\"value\">{}</dd>", count(totals.batches)),
        "<strong>OK</strong>".to_owned(),
        "<b>0</b>: everything planned was restored".to_owned(),
    ] {
        assert!(page.contains(&text), "{text}");
    }
    for collection in &report.collections {
        let name = format!("<code>{}</code>", collection.namespace);
        assert!(page.contains(&name), "{name}");
        let amount = format!(
            "data-sort=\"{}\">{}",
            collection.bytes_acknowledged,
            bytes(collection.bytes_acknowledged)
        );
        assert!(page.contains(&amount), "{amount}");
    }
}

#[test]
fn the_verdict_is_that_of_the_summary() {
    let style = crate::report::text::Style {
        colour: crate::report::text::Colour::Never,
        width: 1000,
        verbosity: crate::report::Verbosity::Normal,
    };
    for report in samples::all() {
        let (page, summary) = (page(&report), crate::report::text::summary(&report, &style));
        let said = summary.lines().next().unwrap_or_default();
        let loud: String =
            said.split([':', ' ']).take_while(|word| word.to_uppercase() == **word).collect();
        assert!(!loud.is_empty(), "{said}");
        let headline = page.split_once("<h1").expect("a headline").1;
        let shown: String = headline.split_once("</strong>").expect("a word").0.into();
        let shown = shown.rsplit('>').next().expect("text").replace(' ', "");
        assert!(loud.starts_with(&shown), "{shown} for {said}");
    }
}

/// Each field of a report, and words of the page that show it.
const SHOWN: [(&str, &str); 25] = [
    ("schema", "restorm.report/1"),
    ("tool_version", "<dt>restorm</dt>"),
    ("outcome", "<h1"),
    ("exit_status", "Exit status"),
    ("balance", "id=\"balance\""),
    ("is_balanced", "class=\"sign\""),
    ("totals", "<dt>Batches</dt>"),
    ("rates", "<dt>Best second</dt>"),
    ("times", "id=\"times\""),
    ("latency", "<dt>Latency, p50 and p99</dt>"),
    ("timeline", "id=\"timeline\""),
    ("workers", "<dt>Batches in flight</dt>"),
    ("bound_by", "id=\"bound\""),
    ("target", "<dt>Target</dt>"),
    ("dump", "<dt>Dump</dt>"),
    ("options", "<h3>Settings</h3>"),
    ("collections", "id=\"collections\""),
    ("users", "<dt>Users and roles</dt>"),
    ("oplog", "<dt>Oplog</dt>"),
    ("ledger", "<dt>Ledger for --resume</dt>"),
    ("salvage", "id=\"lost\""),
    ("verification", "id=\"verification\""),
    ("survey", "id=\"survey\""),
    ("skipped", "id=\"skipped\""),
    ("notes", "id=\"notes\""),
];

#[test]
fn every_field_of_a_report_is_on_some_page() {
    let mut reports = samples::all();
    let mut resumable = samples::interrupted();
    resumable.ledger = Some("dump.restorm-ledger".into());
    resumable.verified(Some(verifications::different()));
    resumable.survey = Some(surveys::before_and_after());
    reports.push(resumable);
    let value = serde_json::to_value(&reports[0]).expect("a report is JSON");
    let fields: Vec<_> = value.as_object().expect("an object").keys().cloned().collect();
    let pages: Vec<_> = reports.iter().map(page).collect();
    for field in &fields {
        let (_, words) = SHOWN
            .iter()
            .find(|(name, _)| name == field)
            .unwrap_or_else(|| panic!("the page must show the new field {field}"));
        assert!(pages.iter().any(|page| page.contains(words)), "{field}: {words}");
    }
    assert_eq!(fields.len(), SHOWN.len());
}

#[test]
fn every_coordinate_is_a_number() {
    let mut reports = samples::all();
    reports.push(hostile());
    for report in reports {
        let page = page(&report);
        for tag in tags(&page) {
            for name in [" x=\"", " y=\"", " width=\"", " height=\"", " x1=\"", " y2=\"", " d=\""] {
                let Some((_, rest)) = tag.split_once(name) else { continue };
                let value = rest.split('"').next().unwrap_or_default();
                let letters = ['M', 'H', 'V', 'Z', ' ', '%'];
                let numbers = value.split(letters).filter(|number| !number.is_empty());
                for number in numbers {
                    let number: f64 = number.parse().unwrap_or(f64::NAN);
                    assert!(number.is_finite() && number >= 0.0, "<{tag}>");
                }
            }
        }
    }
}

#[test]
fn the_page_stays_small_with_very_many_collections() {
    let mut report = samples::clean();
    let one = report.collections[0].clone();
    report.collections = (0..100_000)
        .map(|number| {
            let mut one = one.clone();
            one.namespace = Namespace::new("shop", format!("c{number}"));
            one.balance.read = number;
            one
        })
        .collect();
    let page = page(&report);
    assert!(page.len() < 2_000_000, "{} bytes", page.len());
    assert!(page.contains("shop.c99999") && !page.contains("shop.c500<"));
    assert!(page.contains("and 99,000 more"), "collections");
    assert!(page.contains("and 199,000 more"), "indexes");
}

#[test]
fn what_went_wrong_is_not_among_what_is_left_out() {
    let mut report = samples::failed_collection();
    let well = report.collections[0].clone();
    report.collections.extend((0..2000).map(|_| well.clone()));
    let page = page(&report);
    let table = page.split_once("id=\"collections\"").expect("a table").1;
    let first = table.split_once("<tbody>").expect("rows").1.split("</tr>").next();
    assert!(first.is_some_and(|row| row.contains("shop.items") && row.contains("failed")));
}

#[test]
fn every_tag_is_closed_in_order() {
    const VOID: [&str; 2] = ["meta", "!DOCTYPE"];
    for report in samples::all() {
        let page = page(&report);
        let mut open = Vec::new();
        for tag in tags(&page) {
            let name = tag.split(' ').next().unwrap_or_default();
            match name.strip_prefix('/') {
                Some(name) => assert_eq!(open.pop(), Some(name), "</{name}>"),
                None if VOID.contains(&name) => {}
                None => open.push(name),
            }
        }
        assert!(open.is_empty(), "{open:?}");
    }
}

#[test]
fn latencies_have_three_digits() {
    for (seconds, text) in [
        (0.0, "0 ms"),
        (0.000_000_8, "1 µs"),
        (0.000_42, "420 µs"),
        (0.000_999_6, "1.00 ms"),
        (0.012_34, "12.3 ms"),
        (0.9994, "999 ms"),
        (0.9996, "1.00 s"),
        (75.0, "75.0 s"),
    ] {
        assert_eq!(latency(seconds), text, "{seconds}");
    }
}
