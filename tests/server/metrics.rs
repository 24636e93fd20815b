//! Metrics of a restore while it runs, read as a client does and by a real Prometheus.

#![expect(clippy::float_cmp, clippy::cast_precision_loss, reason = "they are whole numbers")]

use crate::program::Program;
use crate::resume::slow;
use crate::support::dump::Dump;
use crate::support::prometheus::{Prometheus, get};
use crate::support::{Restore, Restored, Server, lacks};
use serde_json::Value;
use std::collections::BTreeMap;
use std::net::TcpListener;
use std::time::{Duration, Instant, SystemTime};

/// Small batches, so that there are many moments to look at.
const ARGUMENTS: [&str; 4] = ["--batch-documents", "50", "--workers", "4"];

/// The values by name and labels.
type Values = BTreeMap<String, f64>;

/// An address that nobody listens on.
fn free_address() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    listener.local_addr().expect("an address").to_string()
}

fn scrape(address: &str) -> Option<Values> {
    let (head, body) = get(address, "/metrics", "")?;
    assert!(head.starts_with("HTTP/1.0 200") || head.starts_with("HTTP/1.1 200"), "{head}");
    let lines = body.lines().filter(|line| !line.starts_with('#'));
    let values = lines.map(|line| {
        let (series, value) = line.rsplit_once(' ').expect("a value");
        (series.to_owned(), value.parse().expect("a number"))
    });
    Some(values.collect())
}

/// All scrapes from the first that is answered to the last.
fn scrapes(address: &str) -> Vec<Values> {
    let deadline = Instant::now() + Duration::from_secs(60);
    let mut scrapes = Vec::new();
    while Instant::now() < deadline {
        match scrape(address) {
            Some(values) => scrapes.push(values),
            None if scrapes.is_empty() => {}
            None => return scrapes,
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("{} scrapes, and no end", scrapes.len());
}

/// The sum over the series of a metric that have this label, such as `outcome="inserted"`.
fn sum(values: &Values, metric: &str, label: &str) -> f64 {
    let is_meant = |series: &str| {
        let name = series.split('{').next();
        name == Some(metric) && series.contains(label)
    };
    values.iter().filter(|(series, _)| is_meant(series)).map(|(_, value)| value).sum()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// Checks the last values of a run against its report.
#[track_caller]
fn are_those_of_the_report(values: &Values, restored: &Restored) {
    for collection in restored.report["collections"].as_array().expect("a report") {
        let name = collection["namespace"].as_str().expect("a name");
        let label = format!("namespace=\"{name}\"");
        let balance = &collection["balance"];
        let read = sum(values, "restorm_documents_read_total", &label);
        assert_eq!(read, number(&balance["read"]), "{name}");
        for outcome in ["inserted", "already_there", "rejected", "unsent"] {
            let label = format!("{label},outcome=\"{outcome}\"");
            let documents = sum(values, "restorm_documents_total", &label);
            assert_eq!(documents, number(&balance[outcome]), "{name} {outcome}");
        }
        for (metric, field) in [
            ("restorm_document_read_bytes_total", "bytes_read"),
            ("restorm_document_bytes_total", "bytes_acknowledged"),
            ("restorm_origin_size_bytes", "origin_bytes"),
        ] {
            assert_eq!(sum(values, metric, &label), number(&collection[field]), "{name} {metric}");
        }
    }
    let totals = &restored.report["totals"];
    for (metric, label, field) in [
        ("restorm_batches_total", "", "batches"),
        ("restorm_batch_latency_seconds_count", "", "batches"),
        ("restorm_retries_total", "", "retries"),
        ("restorm_origin_bytes_total", "", "origin_bytes_acknowledged"),
        ("restorm_index_builds", "state=\"planned\"", "indexes"),
        ("restorm_index_builds", "state=\"built\"", "indexes_built"),
        ("restorm_index_builds", "state=\"failed\"", "indexes_failed"),
        ("restorm_collections", "state=\"done\"", "collections_done"),
        ("restorm_collections", "state=\"failed\"", "collections_failed"),
    ] {
        assert_eq!(sum(values, metric, label), number(&totals[field]), "{metric} {label}");
    }
    let of_batches = number(&totals["batches"])
        * number(&restored.report["times"]["batch_latency_mean_seconds"]);
    let latency = sum(values, "restorm_batch_latency_seconds_sum", "");
    assert!((latency - of_batches).abs() <= 0.01 * of_batches, "{latency} s, not {of_batches} s");
    assert_eq!(values["restorm_phase{phase=\"ended\"}"], 1.0);
}

#[test]
fn values_grow_with_the_run_and_end_as_its_report() {
    if lacks("fail point that blocks", [4, 4]) {
        return;
    }
    let server = slow(40);
    let dump = Dump::seeded(2, 3000);
    let address = free_address();
    let running = Restore::new(server.uri(), dump.path())
        .args(&ARGUMENTS)
        .args(&["--metrics-listen", &address, "--metrics-linger", "30"])
        .start();
    let scrapes = scrapes(&address);
    let restored = running.finish().ended(0);
    assert!(restored.stderr.contains(&format!("metrics on http://{address}/metrics")));

    let inserted = |values| sum(values, "restorm_documents_total", "outcome=\"inserted\"");
    let grown: Vec<f64> = scrapes.iter().map(inserted).collect();
    assert!(grown.is_sorted(), "{grown:?}");
    let steps = grown.windows(2).filter(|two| two[1] > two[0]).count();
    assert!(steps > 5, "seen in {steps} steps only: {grown:?}");
    for values in &scrapes {
        let integrity = values["restorm_integrity_ratio"];
        assert!((0.0..=1.0).contains(&integrity), "{integrity}");
        let phases: f64 = sum(values, "restorm_phase", "");
        assert!(phases <= 1.0, "{phases} stages at once");
    }
    let is_under_way = |values: &&Values| values["restorm_integrity_ratio"] < 1.0;
    assert!(scrapes.iter().any(|values| is_under_way(&values)), "nothing was on its way");
    let most = |name: &str| scrapes.iter().map(|values| values[name]).fold(0.0, f64::max);
    assert!((1.0..=4.0).contains(&most("restorm_batches_in_flight")), "there are 4 workers");
    let last = scrapes.last().expect("there is one");
    are_those_of_the_report(last, &restored);
    assert_eq!(last["restorm_integrity_ratio"], 1.0);
    assert_eq!(last["restorm_batches_in_flight"], 0.0);
    // Every batch waited for 40 ms.
    let sending = last["restorm_stage_busy_seconds_total{stage=\"sending\"}"];
    let latency = last["restorm_batch_latency_seconds_sum"];
    assert!(sending >= 0.9 * latency && latency >= 120.0 * 0.04, "{sending} s, {latency} s");
    assert!(last["restorm_server_writes_total"] >= 120.0, "the server counts its writes");
    assert!(last["restorm_batch_latency_seconds_bucket{le=\"0.025\"}"] < 1.0, "40 ms at least");
}

#[test]
fn refused_documents_are_counted_by_code() {
    let server = Server::lease();
    let dump = Dump::seeded(1, 300);
    Restore::new(server.uri(), dump.path()).run().ended(0);
    let address = free_address();
    let running = Restore::new(server.uri(), dump.path())
        .args(&["--metrics-listen", &address, "--metrics-linger", "30"])
        .start();
    let scrapes = scrapes(&address);
    let restored = running.finish().ended(3);
    let last = scrapes.last().expect("there is one");
    are_those_of_the_report(last, &restored);
    assert_eq!(last["restorm_failures_total{kind=\"document\",code=\"11000\"}"], 300.0);
    assert_eq!(last["restorm_integrity_ratio"], 1.0, "refused is answered for");
}

#[test]
fn a_port_that_is_taken_ends_the_run_before_it_begins() {
    let server = Server::lease();
    let dump = Dump::seeded(1, 10);
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let port = taken.local_addr().expect("an address").port().to_string();
    let restored = Restore::new(server.uri(), dump.path()).args(&["--metrics-listen", &port]).run();
    assert_eq!(restored.status, Some(2), "{}", restored.stderr);
    let expected = format!("metrics cannot be served on 127.0.0.1:{port}: ");
    assert!(restored.stderr.contains(&expected), "{}", restored.stderr);
    assert!(restored.stderr.contains("hint: nothing was restored"), "{}", restored.stderr);
    assert_eq!(server.databases(), [""; 0]);
}

#[test]
fn a_drop_in_run_serves_metrics_as_well_and_ends_without_a_scrape() {
    let server = Server::lease();
    let dump = Dump::seeded(1, 10);
    let folder = tempfile::tempdir().expect("a folder");
    let link = folder.path().join("mongorestore");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_restorm"), &link).expect("a link");
    let finished = Program::of(link.to_str().expect("a plain path"), &["--metrics-listen", "0"])
        .args(&["--uri", server.uri()])
        .arg(dump.path())
        .run();
    assert_eq!(finished.status, Some(0), "{}", finished.stderr);
    assert!(finished.stderr.contains("\tmetrics on http://127.0.0.1:"), "{}", finished.stderr);
}

/// The queries of the dashboard, with their panels' titles.
fn dashboard() -> Vec<(String, String)> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/grafana/restorm.json");
    let text = std::fs::read(path).expect("the dashboard is there");
    let dashboard: Value = serde_json::from_slice(&text).expect("it is JSON");
    let panels = dashboard["panels"].as_array().expect("panels");
    let queries = panels.iter().filter(|panel| panel["type"] != "row").flat_map(|panel| {
        let title = panel["title"].as_str().expect("a title");
        panel["targets"].as_array().expect("targets").iter().map(move |target| {
            let query = target["expr"].as_str().expect("a query");
            let query = query.replace("$__rate_interval", "2s");
            let query = ["$job", "$instance", "$namespace"]
                .iter()
                .fold(query, |query, variable| query.replace(variable, ".*"));
            (title.to_owned(), query)
        })
    });
    queries.collect()
}

/// Panels that show something in the middle of any run against a server that tells of itself.
const SHOWN: [&str; 14] = [
    "Integrity",
    "Inserted",
    "Of the files",
    "Stage",
    "Documents a second",
    "Bytes a second",
    "Latency of a batch",
    "In flight",
    "Busy",
    "Waiting",
    "Inserts a second by collection",
    "Balance by collection",
    "Index builds",
    "Cache",
];

/// The only value of a result.
#[track_caller]
fn only(result: &[Value]) -> f64 {
    assert_eq!(result.len(), 1, "{result:?}");
    let value = result[0]["value"][1].as_str().expect("a value");
    value.parse().expect("a number")
}

#[test]
fn a_real_prometheus_sees_what_is_reported() {
    if lacks("fail point that blocks", [4, 4]) {
        return;
    }
    let address = free_address();
    let Some(prometheus) = Prometheus::start(&address) else {
        eprintln!("left out: no Prometheus can be had");
        return;
    };
    let server = slow(60);
    let dump = Dump::seeded(2, 5000);
    let running = Restore::new(server.uri(), dump.path())
        .args(&ARGUMENTS)
        .args(&["--metrics-listen", &address, "--metrics-linger", "30"])
        .start();
    std::thread::sleep(Duration::from_secs(2));
    let (_, text) = get(&address, "/metrics", "").expect("it runs");
    assert!(text.contains("\nrestorm_server_writes_total "), "all metrics are there: {text}");
    let checked = Program::of(prometheus.promtool(), &["check", "metrics"]).input(text).run();
    assert_eq!((checked.status, checked.stdout.as_str()), (Some(0), ""), "{}", checked.stderr);
    assert_eq!(checked.stderr, "");
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970");
    let restored = running.finish().ended(0);

    // The target is gone, so that its series have ended.
    let last = |series: &str| format!("sum(last_over_time({series}[5m]))");
    let [read, inserted, ..] = restored.balance();
    let counted = |query: &str| only(&prometheus.query(query, None));
    assert_eq!(counted(&last("restorm_documents_total{outcome=\"inserted\"}")), inserted as f64);
    assert_eq!(counted(&last("restorm_documents_read_total")), read as f64);
    assert_eq!(counted(&last("restorm_integrity_ratio")), 1.0);
    let batches = number(&restored.report["totals"]["batches"]);
    assert_eq!(counted(&last("restorm_batch_latency_seconds_count")), batches);

    let during = Some(now.as_secs_f64());
    let panels = dashboard();
    assert!(SHOWN.iter().all(|title| panels.iter().any(|(other, _)| other == title)));
    for (title, query) in panels {
        let result = prometheus.query(&query, during);
        if SHOWN.contains(&title.as_str()) {
            assert!(!result.is_empty(), "{title}: {query} shows nothing");
        }
    }
    let rate = "sum(rate(restorm_documents_total{outcome=\"inserted\"}[2s]))";
    assert!(only(&prometheus.query(rate, during)) > 100.0);
    let median =
        "histogram_quantile(0.5, sum by (le) (rate(restorm_batch_latency_seconds_bucket[2s])))";
    let median = only(&prometheus.query(median, during));
    assert!((0.05..0.25).contains(&median), "{median} s, where inserts take 60 ms");
}
