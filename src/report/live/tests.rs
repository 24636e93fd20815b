//! Tests of the lines.

use std::time::Duration;

use serde_json::Value;

use super::*;
use crate::error::ErrorKind;
use crate::report::event::OplogTime;
use crate::report::value::samples;
use crate::sample::IndexProgress;

fn validator() -> jsonschema::Validator {
    let schema = include_str!("../../../docs/event.schema.json");
    let schema: Value = serde_json::from_str(schema).expect("the schema is JSON");
    jsonschema::draft202012::meta::validate(&schema).expect("the schema is a schema");
    jsonschema::validator_for(&schema).expect("the schema compiles")
}

fn value(live: &Live<'_>) -> Value {
    let text = line(Duration::from_millis(1500), live);
    assert_eq!(text.matches('\n').count(), 1, "one line: {text}");
    assert!(text.ends_with("}\n"));
    serde_json::from_str(&text).expect("JSON")
}

/// Every event that tells something.
fn events() -> Vec<Event> {
    let text = || "a\nb".to_owned();
    let mut events = samples::clean_events();
    let time = OplogTime { seconds: 1, increment: 1 };
    let progress = IndexProgress {
        namespace: "shop.orders".into(),
        indexes: vec![text()],
        stage: IndexStage::Inserting,
        done: 3,
        total: 10,
    };
    events.extend([
        Event::OneStream { bytes: None, compressed: true },
        Event::IndexBegan { collection: 0, index: text() },
        Event::IndexProgressed { collection: 0, progress },
        Event::IndexBuilt { collection: 0, index: text(), took: Duration::from_millis(70) },
        samples::index_failed(0),
        samples::failed(1),
        Event::UsersEnded { failure: Some(text()) },
        Event::OplogPlanned { path: text() },
        Event::OplogApplied { entries: 7, operations: 7, left_out: 0, first: time, last: time },
        Event::OplogEnded { reached_limit: false },
        Event::WorkersChanged { workers: 4, reason: text() },
        Event::Note { collection: Some(0), text: text() },
        Event::Note { collection: None, text: text() },
    ]);
    events
}

#[test]
fn every_line_follows_the_schema_and_every_kind_of_line_is_tried() {
    let validator = validator();
    let mut tally = Tally::default();
    let mut values = Vec::new();
    for event in events() {
        tally.apply(Duration::ZERO, &event);
        values.extend(Live::of(&event, &tally).map(|live| value(&live)));
    }
    for report in samples::all() {
        values.push(value(&Live::ended(&report, Some("restorm restore --resume"))));
    }
    let error = Error::new(ErrorKind::Connect, "no server").hint("start it");
    values.push(value(&Live::error(&error, ExitStatus::Stopped)));
    values.push(value(&Live::Warning { message: "unsafe" }));
    let retried = Live::Retried { collection: None, message: "x", delay_seconds: 0.1, untold: 2 };
    values.push(value(&retried));
    for value in &values {
        let errors: Vec<_> = validator.iter_errors(value).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{errors:#?}\n{value:#}");
    }
    let mut tried: Vec<_> = values.iter().filter_map(|value| value["event"].as_str()).collect();
    tried.push("progress");
    tried.sort_unstable();
    tried.dedup();
    assert_eq!(tried, kinds(), "the kinds of the schema");
}

/// The kinds of lines that the schema knows.
fn kinds() -> Vec<String> {
    let schema = include_str!("../../../docs/event.schema.json");
    let schema: Value = serde_json::from_str(schema).expect("the schema is JSON");
    let kinds = schema["oneOf"].as_array().expect("a list").iter().map(|one| {
        let name = one["$ref"].as_str().and_then(|name| name.strip_prefix("#/$defs/"));
        let name = name.expect("a definition").to_owned();
        let kind = &schema["$defs"][&name]["properties"]["event"]["const"];
        assert_eq!(kind.as_str(), Some(name.as_str()));
        name
    });
    let mut kinds: Vec<_> = kinds.collect();
    kinds.sort();
    kinds
}

#[test]
fn the_schema_refuses_what_is_no_line() {
    let validator = validator();
    let report = samples::clean();
    let good = value(&Live::ended(&report, None));
    assert!(validator.is_valid(&good));
    for (name, broken) in [
        ("schema", Value::from("restorm.event/2")),
        ("event", Value::from("finished")),
        ("at_seconds", Value::from(-1)),
        ("exit_status", Value::from(7)),
        ("more", Value::from(1)),
    ] {
        let mut value = good.clone();
        value[name] = broken;
        assert!(!validator.is_valid(&value), "{name}");
    }
    let mut value = good.clone();
    value.as_object_mut().expect("an object").remove("balance");
    assert!(!validator.is_valid(&value));
}

#[test]
fn what_comes_with_every_batch_makes_no_line() {
    let tally = Tally::default();
    for event in [
        Event::Read { collection: 0, documents: 1, bytes: 10 },
        samples::written(0, [1, 0, 0], 10, 10),
        Event::Rejected { collection: 0, rejections: Vec::new() },
        Event::Unsent { collection: 0, documents: 1 },
    ] {
        assert!(Live::of(&event, &tally).is_none(), "{event:?}");
    }
}

#[test]
fn the_last_line_is_the_report_in_short() {
    let report = samples::with_failures();
    let value = value(&Live::ended(&report, None));
    assert_eq!(value["exit_status"], report.exit_status.code());
    assert_eq!(value["balance"]["rejected"], report.balance.rejected);
    assert_eq!(value["indexes_failed"], 1);
    assert_eq!(value["outcome"]["kind"], "finished");
    assert_eq!(value["at_seconds"], 1.5);
}
