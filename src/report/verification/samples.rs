//! Made-up comparisons, for the tests of everything that shows one.

use std::time::Duration;

use super::*;
use crate::report::value::samples::{context, skipped};

fn side(documents: u64) -> Side {
    Side { documents, bytes: documents * 100, hash: format!("{documents:032x}") }
}

fn collection(name: &str) -> VerifiedCollection {
    VerifiedCollection {
        namespace: Namespace::new("copy", name),
        source: Namespace::new("shop", name),
        kind: "collection",
        state: Agreement::Same,
        error: None,
        extent: Extent::All,
        dump: Some(side(1000)),
        target: Some(side(1000)),
        documents: None,
        options: Vec::new(),
        indexes: Vec::new(),
        notes: Vec::new(),
    }
}

/// A comparison in which much differs.
pub(crate) fn different() -> Verification {
    let sample = |difference, id: &str| DifferingDocument { difference, id: id.to_owned() };
    let mut orders = VerifiedCollection {
        target: Some(side(1001)),
        documents: Some(DifferingDocuments {
            missing: 1,
            extra: 2,
            changed: 1,
            is_complete: true,
            samples: vec![
                sample(Difference::Missing, "7"),
                sample(Difference::Changed, "{\"$oid\":\"00112233445566778899aabb\"}"),
                sample(Difference::Extra, "\"x\""),
            ],
        }),
        options: vec![Deviation {
            name: "capped".to_owned(),
            expected: Some("true".to_owned()),
            found: None,
        }],
        indexes: vec![
            Deviation { name: "a_1".to_owned(), expected: None, found: Some("{}".to_owned()) },
            Deviation {
                name: "b_1".to_owned(),
                expected: Some("{\"b\":1}".to_owned()),
                found: Some("{\"b\":-1}".to_owned()),
            },
        ],
        notes: vec!["3 documents that the server rejected count as missing as well".to_owned()],
        ..collection("orders")
    };
    orders.judge();
    let mut view = VerifiedCollection {
        kind: "view",
        extent: Extent::Nothing,
        dump: None,
        target: None,
        ..collection("recent")
    };
    view.judge();
    let mut secret = VerifiedCollection {
        error: Some("its documents cannot be read on the target: not authorized".to_owned()),
        dump: None,
        target: None,
        ..collection("secret")
    };
    secret.judge();
    let notes = vec!["users and roles are not compared".to_owned()];
    let collections = vec![orders, collection("items"), view, secret];
    Verification::new(collections, notes, Duration::from_millis(1500))
}

/// A comparison in which nothing differs.
pub(crate) fn same() -> Verification {
    Verification::new(vec![collection("items")], Vec::new(), Duration::from_millis(20))
}

/// The report of a comparison.
pub(crate) fn report(verification: Verification) -> VerifyReport {
    let context = context();
    let report = VerifyReport {
        schema: SCHEMA,
        tool_version: context.tool_version,
        exit_status: ExitStatus::Restored,
        target: context.target,
        dump: context.dump,
        options: context.options,
        verification,
        skipped: vec![skipped(false)],
    };
    report.judged()
}
