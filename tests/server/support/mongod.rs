//! A mongod of our own; `scripts/mongod.py serve` holds it while its standard input is open.

use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// A running mongod with its own port and data; it ends when this is dropped, or when the test
/// process dies in whatever way, because the script then reads the end of its input.
pub(crate) struct Mongod {
    child: Child,
    commands: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    facts: Value,
}

impl Mongod {
    /// Starts a server with fresh data and waits until it answers; the arguments are mongod's.
    pub(crate) fn start(arguments: &[&str]) -> Self {
        Self::start_with(arguments, &[])
    }

    /// The same with these variables of its environment.
    pub(crate) fn start_with(arguments: &[&str], environment: &[(&str, &Path)]) -> Self {
        let mut python = Command::new("python3");
        python.envs(environment.iter().copied());
        Self::start_by(python, arguments)
    }

    /// The same, where this command leads to Python, the arguments of which follow.
    pub(crate) fn start_by(mut python: Command, arguments: &[&str]) -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/mongod.py");
        // A process group of its own: Ctrl-C on `cargo test` reaches it as the end of its input.
        let mut child = python
            .arg(script)
            .args(["serve", "--"])
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .expect("python3 is needed to start a mongod");
        let commands = child.stdin.take();
        let answers = BufReader::new(child.stdout.take().expect("standard output is piped"));
        let mut mongod = Self { child, commands, answers, facts: Value::Null };
        mongod.facts = mongod.answer();
        mongod
    }

    /// The connection string of this one server.
    pub(crate) fn uri(&self) -> &str {
        self.facts["uri"].as_str().expect("the script names the URI")
    }

    /// The address as a replica set member spells it.
    pub(crate) fn address(&self) -> &str {
        self.uri().trim_start_matches("mongodb://")
    }

    /// The process id of the server that runs now, or ran last.
    pub(crate) fn pid(&self) -> u32 {
        let pid = self.facts["pid"].as_u64().expect("the script names the process");
        u32::try_from(pid).expect("process ids are small")
    }

    /// The process id of the script that holds the server.
    pub(crate) fn holder(&self) -> u32 {
        self.child.id()
    }

    /// The folder with the server's data and log.
    pub(crate) fn data(&self) -> &Path {
        Path::new(self.facts["data"].as_str().expect("the script names the data folder"))
    }

    /// Kills the server as a power cut would.
    pub(crate) fn kill(&mut self) {
        assert_eq!(self.command("kill")["killed"], Value::Bool(true));
    }

    /// Shuts the server down cleanly.
    pub(crate) fn terminate(&mut self) {
        assert_eq!(self.command("term")["terminated"], Value::Bool(true));
    }

    /// Starts the server again on the same port and data, shutting it down first if need be.
    pub(crate) fn restart(&mut self) {
        self.restart_with(&[]);
    }

    /// The same, this time with these arguments of mongod as well.
    pub(crate) fn restart_with(&mut self, arguments: &[&str]) {
        self.facts = self.command(&format!("start {}", arguments.join(" ")));
    }

    fn command(&mut self, command: &str) -> Value {
        let commands = self.commands.as_mut().expect("open until this is dropped");
        writeln!(commands, "{command}").expect("the script listens");
        self.answer()
    }

    fn answer(&mut self) -> Value {
        let mut line = String::new();
        self.answers.read_line(&mut line).expect("the script answers in UTF-8");
        assert!(!line.is_empty(), "scripts/mongod.py has ended; its standard error says why");
        serde_json::from_str(&line).expect("the script answers in JSON")
    }
}

impl Drop for Mongod {
    fn drop(&mut self) {
        drop(self.commands.take());
        // A failure to wait leaves a zombie until the test process ends, and nothing worse.
        let _status = self.child.wait();
    }
}
