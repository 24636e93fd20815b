//! Every metric, from events that were made up, and the documents that speak of them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::*;
use crate::changes::Changes;
use crate::limits::{METRICS_CODES_MAX, METRICS_NAMESPACES_MAX};
use crate::report::event::{OplogTime, PlannedCollection, Rejection};
use crate::report::lost::LostStretch;
use crate::report::value::samples::{clean_events, failed, index_failed, planned, written};
use crate::sample::{Gauges, IndexProgress, IndexStage, Sample, ServerSample, StageTimes, Tickets};

fn after(events: &[Event]) -> Metrics {
    let metrics = Metrics::new();
    for event in events {
        metrics.observe(Duration::ZERO, event);
    }
    metrics
}

fn text(metrics: &Metrics) -> String {
    metrics.encode(Exposition::PrometheusText).expect("text can be written")
}

/// The values by name and labels.
fn values(metrics: &Metrics) -> BTreeMap<String, f64> {
    let text = text(metrics);
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let values = lines.map(|line| {
        let (series, value) = line.rsplit_once(' ').expect("a value");
        (series.to_owned(), value.parse().expect("a number"))
    });
    values.collect()
}

#[track_caller]
fn has(metrics: &Metrics, series: &str, expected: f64) {
    let values = values(metrics);
    let value = values.get(series).unwrap_or_else(|| panic!("{series} is missing: {values:#?}"));
    assert!((value - expected).abs() < 1e-9, "{series}: {value}, not {expected}");
}

fn rejection(code: i32) -> Rejection {
    Rejection { code, message: "no".into(), id: "1".into(), is_conflict: false }
}

fn sample() -> Event {
    let seconds = Duration::from_secs;
    let server = ServerSample {
        at: seconds(1),
        processor: Some(seconds(21)),
        write_time: Some(seconds(22)),
        writes: Some(23),
        journal_sync_time: Some(seconds(24)),
        journal_syncs: Some(25),
        cache_bytes_max: Some(1000),
        cache_bytes: Some(500),
        cache_dirty_bytes: Some(50),
        application_evictions: Some(26),
        write_tickets: Some(Tickets { taken: 27, total: 128 }),
        queued_writers: Some(28),
        flow_controlled: Some(true),
        flow_control_time: Some(seconds(29)),
        majority_lag: Some(Duration::from_millis(1500)),
    };
    Event::Sampled(Box::new(Sample {
        gauges: Gauges {
            in_flight: 1,
            queued: 2,
            queue_room: 3,
            workers: 4,
            reading: 5,
            settling: 6,
            cores: 7,
        },
        stages: StageTimes {
            reading: seconds(8),
            input: seconds(9),
            unpacked: seconds(10),
            unpacking: seconds(11),
            held_back: seconds(12),
            starved: seconds(13),
            limited: seconds(14),
            sending: seconds(15),
            settling: seconds(16),
            processor: Duration::from_millis(1750),
        },
        server: Some(Box::new(server)),
    }))
}

/// A run in which everything happens once at least, and a build still goes on.
fn everything() -> Vec<Event> {
    let view = PlannedCollection { kind: "view", ..planned("recent", 0, 0) };
    let stretch = LostStretch {
        file: "orders.bson".into(),
        from: 0,
        to: None,
        bytes: 77,
        reason: "garbage".into(),
    };
    let time = OplogTime { seconds: 1, increment: 1 };
    vec![
        Event::Planned {
            collections: [planned("orders", 900, 2), planned("items", 100, 0), view]
                .map(Into::into)
                .to_vec(),
        },
        Event::PhaseBegan(Phase::Data),
        Event::Carried {
            collection: 0,
            inserted: 30,
            changes: Changes::default(),
            already_there: 2,
            rejected: 1,
            conflicts: 1,
            bytes: 330,
        },
        Event::ReadBegan { collection: 0 },
        Event::Read { collection: 0, documents: 10, bytes: 500 },
        Event::Damaged { collection: 0, bytes: 5, rejection: rejection(22) },
        Event::Rejected { collection: 0, rejections: vec![rejection(121), rejection(121)] },
        written(0, [6, 1, 2], 450, 445),
        Event::Unsent { collection: 0, documents: 1 },
        Event::Retried { collection: Some(0), reason: "no".into(), delay: Duration::ZERO },
        Event::Retried { collection: None, reason: "no".into(), delay: Duration::ZERO },
        Event::Lost { collection: Some(0), stretch },
        Event::DataEnded { collection: 0 },
        Event::IndexBegan { collection: 0, index: "a_1".into() },
        Event::IndexBegan { collection: 0, index: "b_1".into() },
        Event::IndexProgressed {
            collection: 0,
            progress: IndexProgress {
                namespace: "shop.orders".into(),
                indexes: vec!["a_1".into(), "b_1".into()],
                stage: IndexStage::Scanning,
                done: 25,
                total: 100,
            },
        },
        Event::IndexBuilt { collection: 0, index: "a_1".into(), took: Duration::from_millis(2500) },
        failed(1),
        index_failed(1),
        Event::UsersEnded { failure: Some("no".into()) },
        Event::OplogApplied { entries: 5, operations: 7, left_out: 1, first: time, last: time },
        sample(),
    ]
}

#[test]
fn documents_are_counted_by_collection_and_outcome() {
    let metrics = after(&everything());
    for (name, labels, expected) in [
        ("documents_read_total", "", 44.0),
        ("documents_total", ",outcome=\"inserted\"", 36.0),
        ("documents_total", ",outcome=\"already_there\"", 3.0),
        ("documents_total", ",outcome=\"rejected\"", 4.0),
        ("documents_total", ",outcome=\"unsent\"", 1.0),
        ("document_read_bytes_total", "", 835.0),
        ("document_bytes_total", "", 450.0),
        ("origin_bytes_total", "", 445.0),
        ("origin_size_bytes", "", 900.0),
        ("batches_total", "", 1.0),
    ] {
        has(&metrics, &format!("restorm_{name}{{namespace=\"shop.orders\"{labels}}}"), expected);
    }
    has(&metrics, "restorm_documents_carried_total", 33.0);
    has(&metrics, "restorm_conflicts_total", 1.0);
    has(&metrics, "restorm_documents_read_total{namespace=\"shop.items\"}", 0.0);
    assert!(!text(&metrics).contains("shop.recent"), "a view has no documents");
}

#[test]
fn failures_are_told_apart() {
    let metrics = after(&everything());
    for (kind, code, expected) in [
        ("document", "121", 2.0),
        ("document", "", 0.0),
        ("damaged", "22", 1.0),
        ("index", "", 1.0),
        ("collection", "", 1.0),
        ("users", "", 1.0),
    ] {
        let series = format!("restorm_failures_total{{kind=\"{kind}\",code=\"{code}\"}}");
        has(&metrics, &series, expected);
    }
    has(&metrics, "restorm_retries_total", 2.0);
    has(&metrics, "restorm_lost_stretches_total", 1.0);
    has(&metrics, "restorm_lost_bytes_total", 77.0);
}

#[test]
fn integrity_is_the_share_that_was_answered_for() {
    has(&Metrics::new(), "restorm_integrity_ratio", 1.0);
    let mut events = clean_events();
    has(&after(&events), "restorm_integrity_ratio", 1.0);
    events.push(Event::Read { collection: 0, documents: 20, bytes: 1 });
    has(&after(&events), "restorm_integrity_ratio", 0.5);
    events.push(written(0, [0, 3, 7], 1, 1));
    has(&after(&events), "restorm_integrity_ratio", 0.75);
}

#[test]
fn latencies_fall_into_their_buckets() {
    let metrics = after(&[clean_events(), vec![written(0, [1, 0, 0], 1, 1)]].concat());
    for (series, expected) in [
        ("bucket{le=\"0.01\"}", 0.0),
        ("bucket{le=\"0.025\"}", 3.0),
        ("bucket{le=\"60\"}", 3.0),
        ("bucket{le=\"+Inf\"}", 3.0),
        ("count", 3.0),
        ("sum", 0.06),
    ] {
        has(&metrics, &format!("restorm_batch_latency_seconds_{series}"), expected);
    }
}

#[test]
fn collections_and_indexes_go_from_state_to_state() {
    let metrics = after(&everything());
    for (state, expected) in
        [("waiting", 1.0), ("loading", 0.0), ("indexing", 1.0), ("done", 0.0), ("failed", 1.0)]
    {
        has(&metrics, &format!("restorm_collections{{state=\"{state}\"}}"), expected);
    }
    for (state, expected) in [("planned", 2.0), ("building", 1.0), ("built", 1.0), ("failed", 1.0)]
    {
        has(&metrics, &format!("restorm_index_builds{{state=\"{state}\"}}"), expected);
    }
    has(&metrics, "restorm_index_build_seconds_total", 2.5);
    let progress = "restorm_index_build_progress_ratio{namespace=\"shop.orders\",index=\"b_1\"}";
    has(&metrics, progress, 0.125);
    assert!(!text(&metrics).contains("index=\"a_1\""), "it is built");
    metrics.observe(Duration::ZERO, &Event::CollectionEnded { collection: 1 });
    has(&metrics, "restorm_collections{state=\"failed\"}", 1.0);
    metrics.observe(Duration::ZERO, &Event::CollectionAdded(planned("made", 0, 3)));
    metrics.observe(Duration::ZERO, &Event::IndexesReplanned { collection: 0, indexes: 1 });
    has(&metrics, "restorm_collections{state=\"indexing\"}", 2.0);
    has(&metrics, "restorm_index_builds{state=\"planned\"}", 4.0);
}

#[test]
fn the_stage_of_the_run_is_one_of_them() {
    let mut events = clean_events();
    for (phase, name) in PHASES {
        events.push(Event::PhaseBegan(phase));
        let metrics = after(&events);
        for (_, other) in PHASES {
            let expected = f64::from(u8::from(name == other));
            has(&metrics, &format!("restorm_phase{{phase=\"{other}\"}}"), expected);
        }
    }
    let version = env!("CARGO_PKG_VERSION");
    has(&Metrics::new(), &format!("restorm_build_info{{version=\"{version}\"}}"), 1.0);
}

#[test]
fn samples_are_shown_as_they_were_told_last() {
    let metrics = after(&everything());
    for (name, expected) in [
        ("batches_in_flight", 1.0),
        ("queue_batches", 2.0),
        ("queue_room_batches", 3.0),
        ("workers", 4.0),
        ("collections_reading", 5.0),
        ("batches_settling", 6.0),
        ("processor_cores", 7.0),
        ("stage_busy_seconds_total{stage=\"reading\"}", 8.0),
        ("stage_busy_seconds_total{stage=\"unpacking\"}", 11.0),
        ("stage_busy_seconds_total{stage=\"sending\"}", 15.0),
        ("stage_waiting_seconds_total{stage=\"input\"}", 9.0),
        ("stage_waiting_seconds_total{stage=\"unpacked\"}", 10.0),
        ("stage_waiting_seconds_total{stage=\"held_back\"}", 12.0),
        ("stage_waiting_seconds_total{stage=\"starved\"}", 13.0),
        ("stage_waiting_seconds_total{stage=\"limited\"}", 14.0),
        ("stage_waiting_seconds_total{stage=\"settling\"}", 16.0),
        ("cpu_seconds_total", 1.75),
        ("server_cpu_seconds_total", 21.0),
        ("server_write_seconds_total", 22.0),
        ("server_writes_total", 23.0),
        ("server_journal_sync_seconds_total", 24.0),
        ("server_journal_syncs_total", 25.0),
        ("server_cache_limit_bytes", 1000.0),
        ("server_cache_bytes", 500.0),
        ("server_cache_dirty_bytes", 50.0),
        ("server_cache_dirty_ratio", 0.05),
        ("server_application_evictions_total", 26.0),
        ("server_write_tickets_taken", 27.0),
        ("server_write_tickets", 128.0),
        ("server_queued_writers", 28.0),
        ("server_flow_controlled", 1.0),
        ("server_flow_control_seconds_total", 29.0),
        ("server_majority_lag_seconds", 1.5),
        ("oplog_entries_total", 5.0),
        ("oplog_operations_total", 7.0),
        ("oplog_left_out_total", 1.0),
    ] {
        has(&metrics, &format!("restorm_{name}"), expected);
    }
    let untold = Event::Sampled(Box::default());
    metrics.observe(Duration::ZERO, &untold);
    has(&metrics, "restorm_batches_in_flight", 0.0);
    has(&metrics, "restorm_server_writes_total", 23.0);
    metrics.observe(Duration::ZERO, &Event::WorkersChanged { workers: 12, reason: "up".into() });
    has(&metrics, "restorm_workers", 12.0);
    let silent = after(&[untold]);
    assert!(!text(&silent).contains("restorm_server_"), "a server may tell nothing");
}

#[test]
fn the_largest_collections_have_series_and_the_others_share_one() {
    let names = (0..METRICS_NAMESPACES_MAX + 3).map(|place| planned(&format!("c{place}"), 10, 0));
    let collections: Vec<_> = names.map(Into::into).collect();
    let read = |collection| Event::Read { collection, documents: 1, bytes: 1 };
    let reads = (0..collections.len()).map(read).collect::<Vec<_>>();
    let metrics = after(&[vec![Event::Planned { collections }], reads].concat());
    let series = |label: &str| format!("restorm_documents_read_total{{namespace=\"{label}\"}}");
    has(&metrics, &series("shop.c0"), 1.0);
    has(&metrics, &series(&format!("shop.c{}", METRICS_NAMESPACES_MAX - 1)), 1.0);
    has(&metrics, &series(OTHERS), 3.0);
    has(&metrics, &format!("restorm_origin_size_bytes{{namespace=\"{OTHERS}\"}}"), 30.0);
    assert!(!values(&metrics).contains_key(&series(&format!("shop.c{METRICS_NAMESPACES_MAX}"))));
}

#[test]
fn codes_without_end_share_a_series() {
    let most = i32::try_from(METRICS_CODES_MAX).expect("a small number");
    let rejections = (0..most + 5).map(rejection).collect();
    let metrics = after(&[Event::Rejected { collection: 0, rejections }]);
    let series =
        |code: &str| format!("restorm_failures_total{{kind=\"document\",code=\"{code}\"}}");
    has(&metrics, &series(&(most - 1).to_string()), 1.0);
    has(&metrics, &series(OTHERS), 5.0);
}

#[test]
fn strange_names_are_escaped() {
    let collections = vec![planned("a\"b\\c\nd", 1, 0).into()];
    let metrics = after(&[Event::Planned { collections }]);
    for exposition in [Exposition::OpenMetrics, Exposition::PrometheusText] {
        let text = metrics.encode(exposition).expect("text can be written");
        assert!(text.contains("namespace=\"shop.a\\\"b\\\\c"), "{text}");
        assert!(text.lines().all(|line| line.starts_with(['#', 'r'])), "{text}");
    }
}

/// The metrics as they are declared: type and help by name.
fn declared(metrics: &Metrics) -> BTreeMap<String, (String, String)> {
    let text = text(metrics);
    let mut helps = BTreeMap::new();
    let mut declared = BTreeMap::new();
    for line in text.lines() {
        if let Some((name, help)) = line.strip_prefix("# HELP ").and_then(|it| it.split_once(' ')) {
            helps.insert(name.to_owned(), help.to_owned());
        }
        if let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|it| it.split_once(' ')) {
            let help = helps.remove(name).expect("help comes first");
            let before = declared.insert(name.to_owned(), (kind.to_owned(), help));
            assert_eq!(before, None, "{name} is declared twice");
        }
    }
    declared
}

/// The names of the labels of each metric, in their order.
fn labels(metrics: &Metrics) -> BTreeMap<String, Vec<String>> {
    let mut labels = BTreeMap::new();
    for series in values(metrics).keys() {
        let (name, inside) = series.split_once('{').unwrap_or((series, "}"));
        let names = inside.trim_end_matches('}').split(',').filter_map(|it| it.split_once('='));
        let name = ["_bucket", "_sum", "_count"]
            .iter()
            .find_map(|end| name.strip_suffix(end).filter(|name| name.ends_with("_seconds")))
            .unwrap_or(name);
        let names = names.map(|(name, _)| name.to_owned()).filter(|name| name != "le").collect();
        labels.insert(name.to_owned(), names);
    }
    labels
}

#[test]
fn names_follow_the_conventions() {
    for (name, (kind, help)) in declared(&after(&everything())) {
        assert!(name.starts_with("restorm_"), "{name}");
        let is_plain = |letter: char| letter.is_ascii_lowercase() || letter == '_';
        assert!(name.chars().all(is_plain) && !name.contains("__"), "{name}");
        assert_eq!(kind == "counter", name.ends_with("_total"), "{name} {kind}");
        assert!(help.ends_with('.') && !help.ends_with(".."), "{name}: {help}");
        // Base units alone, in the plural.
        for unit in ["milliseconds", "_ms", "kilobytes", "megabytes", "percent", "minutes"] {
            assert!(!name.contains(unit), "{name}");
        }
        for kind in ["counter", "gauge", "histogram"] {
            assert!(!name.contains(kind), "{name}");
        }
    }
}

fn of_docs(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs").join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn the_manual_lists_exactly_these_metrics() {
    let manual = of_docs("metrics.md");
    let rows = manual.lines().filter_map(|line| line.strip_prefix("| `restorm_"));
    let listed: BTreeMap<String, (String, Vec<String>)> = rows
        .map(|row| {
            let cells: Vec<_> = row.split(" | ").collect();
            let [name, kind, labels, _] = cells[..] else { panic!("four cells: {row}") };
            let labels = labels.split(", ").filter(|label| *label != "–");
            let labels = labels.map(|label| label.trim_matches('`').to_owned()).collect();
            (format!("restorm_{}", name.trim_matches('`')), (kind.to_owned(), labels))
        })
        .collect();
    let metrics = after(&everything());
    let labels = labels(&metrics);
    let exposed: BTreeMap<String, (String, Vec<String>)> = declared(&metrics)
        .into_iter()
        .map(|(name, (kind, _))| (name.clone(), (kind, labels[&name].clone())))
        .collect();
    assert_eq!(listed, exposed);
}

/// The names in a query that begin with `restorm_`.
fn asked_for(query: &str) -> BTreeSet<String> {
    let words = query.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    words.filter(|word| word.starts_with("restorm_")).map(str::to_owned).collect()
}

#[test]
fn the_dashboard_asks_for_metrics_that_there_are() {
    let dashboard: serde_json::Value =
        serde_json::from_str(&of_docs("grafana/restorm.json")).expect("the dashboard is JSON");
    assert!(dashboard["schemaVersion"].as_u64().is_some_and(|version| version >= 36));
    let metrics = after(&everything());
    let series = values(&metrics);
    let names: BTreeSet<_> = series.keys().filter_map(|key| key.split('{').next()).collect();
    let labels = labels(&metrics);
    let panels = dashboard["panels"].as_array().expect("panels");
    let mut asked = BTreeSet::new();
    for panel in panels.iter().filter(|panel| panel["type"] != "row") {
        let title = panel["title"].as_str().expect("a title");
        assert!(panel["description"].is_string(), "{title} does not say what it shows");
        let targets = panel["targets"].as_array().expect("targets");
        assert!(!targets.is_empty(), "{title} asks for nothing");
        for target in targets {
            assert_eq!(target["datasource"]["uid"], "${datasource}", "{title}");
            let query = target["expr"].as_str().expect("a query");
            let of_query = asked_for(query);
            assert!(!of_query.is_empty(), "{title}: {query}");
            for name in of_query {
                assert!(names.contains(name.as_str()), "{title}: there is no {name}");
                asked.insert(name);
            }
            let legend = target["legendFormat"].as_str().unwrap_or_default();
            for label in legend.split("{{").skip(1).filter_map(|it| it.split("}}").next()) {
                let is_label = labels.values().flatten().any(|name| name == label);
                assert!(is_label, "{title}: no metric has the label {label}");
            }
        }
    }
    for wanted in [
        "restorm_documents_total",
        "restorm_batches_total",
        "restorm_server_journal_syncs_total",
        "restorm_batch_latency_seconds_bucket",
        "restorm_batches_in_flight",
        "restorm_integrity_ratio",
        "restorm_index_build_progress_ratio",
        "restorm_stage_busy_seconds_total",
    ] {
        assert!(asked.contains(wanted), "no panel shows {wanted}");
    }
}
