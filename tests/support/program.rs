//! Runs the real binary, or another program, and keeps what it said.

use std::ffi::OsStr;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A program that takes longer than this has hung.
const SECONDS_MAX: u64 = 120;

/// A program to be run.
pub(crate) struct Program {
    command: Command,
    input: Vec<u8>,
    time_max: Duration,
}

/// What a program did.
#[derive(Debug)]
pub(crate) struct Finished {
    /// Its exit status; nothing if a signal ended it.
    pub(crate) status: Option<i32>,
    /// Its standard output.
    pub(crate) stdout: String,
    /// Its standard error.
    pub(crate) stderr: String,
}

/// A program that runs.
pub(crate) struct Running {
    child: Child,
    stdout: JoinHandle<String>,
    stderr: JoinHandle<String>,
    deadline: Instant,
}

impl Program {
    /// The binary of this crate with these arguments.
    pub(crate) fn restorm<S: AsRef<OsStr>>(arguments: &[S]) -> Self {
        // What it would keep for its user is kept with what is built.
        Self::of(env!("CARGO_BIN_EXE_restorm"), arguments)
            .env("XDG_STATE_HOME", concat!(env!("CARGO_TARGET_TMPDIR"), "/state"))
    }

    /// Another program with these arguments.
    pub(crate) fn of<S: AsRef<OsStr>>(program: &str, arguments: &[S]) -> Self {
        let mut command = Command::new(program);
        command.args(arguments);
        Self { command, input: Vec::new(), time_max: Duration::from_secs(SECONDS_MAX) }
    }

    /// Adds an argument.
    pub(crate) fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.command.arg(argument);
        self
    }

    /// Adds arguments.
    pub(crate) fn args<S: AsRef<OsStr>>(mut self, arguments: &[S]) -> Self {
        self.command.args(arguments);
        self
    }

    /// Sets a variable of its environment.
    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    /// Runs it in this folder.
    pub(crate) fn in_folder(mut self, folder: impl AsRef<Path>) -> Self {
        self.command.current_dir(folder);
        self
    }

    /// Gives it this on its standard input.
    pub(crate) fn input(mut self, input: impl Into<Vec<u8>>) -> Self {
        self.input = input.into();
        self
    }

    /// Calls it hung after this time.
    pub(crate) fn time_max(mut self, time_max: Duration) -> Self {
        self.time_max = time_max;
        self
    }

    /// Runs it to its end.
    pub(crate) fn run(self) -> Finished {
        self.start().finish()
    }

    /// Starts it.
    pub(crate) fn start(mut self) -> Running {
        let mut child = self
            .command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program exists");
        let mut stdin = child.stdin.take().expect("standard input is piped");
        // A program may end without having read its input, which is its own business.
        std::thread::spawn(move || drop(stdin.write_all(&self.input)));
        Running {
            stdout: collect(child.stdout.take().expect("standard output is piped")),
            stderr: collect(child.stderr.take().expect("standard error is piped")),
            child,
            deadline: Instant::now() + self.time_max,
        }
    }
}

impl Running {
    /// The number of its process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends it a signal by name, such as `INT`.
    pub(crate) fn signal(&self, name: &str) {
        let kill = format!("kill -{name} {}", self.pid());
        let status = Command::new("sh").args(["-c", &kill]).status().expect("sh runs");
        assert!(status.success(), "{kill} failed");
    }

    /// Waits for its end; kills it and panics if it takes too long.
    pub(crate) fn finish(mut self) -> Finished {
        let status = self.wait();
        let stdout = self.stdout.join().expect("the reader of standard output ends");
        let stderr = self.stderr.join().expect("the reader of standard error ends");
        match status {
            Some(status) => Finished { status: status.code(), stdout, stderr },
            None => panic!("the program hung; it said:\n{stdout}\n{stderr}"),
        }
    }

    fn wait(&mut self) -> Option<ExitStatus> {
        loop {
            if let Some(status) = self.child.try_wait().expect("the program can be waited for") {
                return Some(status);
            }
            if Instant::now() > self.deadline {
                self.child.kill().expect("the program can be killed");
                self.child.wait().expect("the program can be waited for");
                return None;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

fn collect(mut stream: impl Read + Send + 'static) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).expect("the stream can be read");
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

mod tests {
    use super::*;

    #[test]
    fn a_program_is_heard_on_both_streams() {
        let script = "cat; echo $WORD >&2; exit $0";
        let finished = Program::of("sh", &["-c"])
            .args(&[script])
            .arg("3")
            .env("WORD", "over")
            .input("in")
            .run();
        assert_eq!(finished.status, Some(3));
        assert_eq!((finished.stdout.as_str(), finished.stderr.as_str()), ("in", "over\n"));
    }

    #[test]
    fn a_program_runs_where_it_should() {
        let finished = Program::of("sh", &["-c", "pwd"]).in_folder("/").run();
        assert_eq!(finished.stdout, "/\n");
    }

    #[test]
    fn a_signal_reaches_the_program() {
        let running = Program::of("sleep", &["60"]).start();
        // Not INT: what a shell runs in the background ignores it, and so does what that runs.
        running.signal("TERM");
        assert_eq!(running.finish().status, None);
    }

    #[test]
    #[should_panic(expected = "the program hung")]
    fn a_program_that_hangs_is_ended() {
        Program::of("sleep", &["60"]).time_max(Duration::from_millis(50)).run();
    }

    #[test]
    fn the_binary_of_this_crate_runs() {
        assert_eq!(Program::restorm(&["--help"]).run().status, Some(0));
    }
}
