//! A Prometheus of our own; `scripts/prometheus.py serve` holds it while its standard input is open.

use serde_json::Value;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Seconds between two scrapes: a test lasts for a few of them.
const INTERVAL: &str = "0.5";

/// How long it may take to begin.
const BEGIN_MAX: Duration = Duration::from_secs(60);

/// A running Prometheus with its own port and data; it ends when this is dropped, or when the test
/// process dies in whatever way.
pub(crate) struct Prometheus {
    child: Child,
    facts: Value,
}

impl Prometheus {
    /// Starts one that scrapes this address; nothing where none can be had and nobody has promised
    /// one with `$PROMETHEUS`.
    pub(crate) fn start(target: &str) -> Option<Self> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/prometheus.py");
        let mut child = Command::new("python3")
            .arg(script)
            .args(["serve", "--scrape", target, "--interval", INTERVAL])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .expect("python3 is needed to start a Prometheus");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("standard output is piped");
        BufReader::new(stdout).read_line(&mut line).expect("the script answers in UTF-8");
        if line.is_empty() {
            child.wait().expect("the script ends");
            let promised = std::env::var_os("PROMETHEUS");
            assert!(promised.is_none(), "{promised:?} does not run; standard error says why");
            return None;
        }
        let facts = serde_json::from_str(&line).expect("the script answers in JSON");
        let prometheus = Self { child, facts };
        // It begins to scrape only some seconds after it answers.
        let deadline = Instant::now() + BEGIN_MAX;
        while prometheus.query("up", None).is_empty() {
            assert!(Instant::now() < deadline, "nothing is scraped");
            std::thread::sleep(Duration::from_millis(50));
        }
        Some(prometheus)
    }

    /// The path of its promtool.
    pub(crate) fn promtool(&self) -> &str {
        self.facts["promtool"].as_str().expect("the script names promtool")
    }

    /// What a query results in, at a time in seconds since 1970 or now.
    pub(crate) fn query(&self, query: &str, at: Option<f64>) -> Vec<Value> {
        let mut path = format!("/api/v1/query?query={}", encoded(query));
        if let Some(at) = at {
            write!(path, "&time={at:.3}").expect("text can be written");
        }
        let url = self.facts["url"].as_str().expect("the script names the URL");
        let (_, body) = get(url.trim_start_matches("http://"), &path, "").expect("it answers");
        let answer: Value = serde_json::from_str(&body).expect("it answers in JSON");
        assert_eq!(answer["status"], "success", "{query}: {answer}");
        answer["data"]["result"].as_array().expect("a list").clone()
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        // A failure to wait leaves a zombie until the test process ends, and nothing worse.
        let _status = self.child.wait();
    }
}

/// The head and the body of what a server at this address answers; nothing where there is none.
pub(crate) fn get(address: &str, path: &str, headers: &str) -> Option<(String, String)> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(10))).expect("a timeout can be set");
    // Version 1.0 is answered without chunks.
    let request = format!("GET {path} HTTP/1.0\r\nHost: {address}\r\n{headers}\r\n");
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    Some((head.to_owned(), body.to_owned()))
}

fn encoded(text: &str) -> String {
    text.bytes().fold(String::new(), |mut encoded, byte| {
        write!(encoded, "%{byte:02X}").expect("text can be written");
        encoded
    })
}
