//! Runs `restorm restore` and reads what it reports.

use crate::program::{Finished, Program, Running};
use serde_json::Value;
use std::path::Path;
use tempfile::TempDir;

/// A restore to be run.
pub(crate) struct Restore {
    program: Program,
    folder: TempDir,
}

/// A restore that runs.
pub(crate) struct RestoreRunning {
    running: Running,
    folder: TempDir,
}

/// A restore that has ended.
#[derive(Debug)]
pub(crate) struct Restored {
    /// Its exit status.
    pub(crate) status: Option<i32>,
    /// What it wrote to standard output.
    pub(crate) stdout: String,
    /// What it wrote to standard error.
    pub(crate) stderr: String,
    /// Its report; null where it wrote none.
    pub(crate) report: Value,
}

impl Restore {
    /// A restore of this dump into the server at this connection string.
    pub(crate) fn new(uri: &str, dump: &Path) -> Self {
        let mut restore = Self::without_dump(uri);
        restore.program = restore.program.arg(dump);
        // Nothing is left beside what belongs to the sources.
        let is_ours = dump.starts_with(env!("CARGO_MANIFEST_DIR"));
        if is_ours { restore.args(&["--ledger", "none"]) } else { restore }
    }

    /// A restore into the server at this connection string, whose dump is named by arguments.
    pub(crate) fn without_dump(uri: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder for the report");
        let program = Program::restorm(&["restore", "--uri", uri, "--report"])
            .arg(folder.path().join("report.json"));
        Self { program, folder }
    }

    /// Gives it this on its standard input.
    pub(crate) fn input(mut self, input: Vec<u8>) -> Self {
        self.program = self.program.input(input);
        self
    }

    /// Adds arguments.
    pub(crate) fn args(mut self, arguments: &[&str]) -> Self {
        self.program = self.program.args(arguments);
        self
    }

    /// Starts it.
    pub(crate) fn start(self) -> RestoreRunning {
        RestoreRunning { running: self.program.start(), folder: self.folder }
    }

    /// Runs it to its end.
    pub(crate) fn run(self) -> Restored {
        self.start().finish()
    }
}

impl RestoreRunning {
    /// Sends it a signal by name, such as `INT`.
    pub(crate) fn signal(&self, name: &str) {
        self.running.signal(name);
    }

    /// Waits for its end.
    pub(crate) fn finish(self) -> Restored {
        let Finished { status, stdout, stderr } = self.running.finish();
        let report = std::fs::read(self.folder.path().join("report.json"))
            .map_or(Value::Null, |text| serde_json::from_slice(&text).expect("the report is JSON"));
        Restored { status, stdout, stderr, report }
    }
}

impl Restored {
    /// Checks the exit status, and that every document read is accounted for.
    #[track_caller]
    pub(crate) fn ended(self, status: i32) -> Self {
        assert_eq!(self.status, Some(status), "{}\n{}", self.stdout, self.stderr);
        if !self.report.is_null() {
            assert_eq!(self.report["exit_status"], status);
            assert_eq!(self.report["is_balanced"], true, "{}", self.stderr);
            let [read, inserted, already_there, rejected, unsent] = self.balance();
            assert_eq!(read, inserted + already_there + rejected + unsent, "{}", self.stderr);
        }
        self
    }

    /// Documents read, inserted, already there, rejected, unsent.
    pub(crate) fn balance(&self) -> [u64; 5] {
        balance(&self.report["balance"])
    }

    /// The same of one collection.
    #[track_caller]
    pub(crate) fn balance_of(&self, namespace: &str) -> [u64; 5] {
        balance(&self.collection(namespace)["balance"])
    }

    /// What the report says of one collection.
    #[track_caller]
    pub(crate) fn collection(&self, namespace: &str) -> &Value {
        let collections = self.report["collections"].as_array().expect("there is a report");
        collections
            .iter()
            .find(|collection| collection["namespace"] == namespace)
            .unwrap_or_else(|| panic!("nothing is reported of {namespace}:\n{}", self.stderr))
    }

    /// The texts of its notes.
    pub(crate) fn notes(&self) -> Vec<&str> {
        let notes = self.report["notes"].as_array().expect("there is a report");
        notes.iter().filter_map(|note| note["text"].as_str()).collect()
    }

    /// How often something was sent again.
    pub(crate) fn retries(&self) -> u64 {
        self.report["totals"]["retries"].as_u64().expect("there is a report")
    }
}

fn balance(value: &Value) -> [u64; 5] {
    ["read", "inserted", "already_there", "rejected", "unsent"]
        .map(|field| value[field].as_u64().expect("a balance has numbers"))
}
