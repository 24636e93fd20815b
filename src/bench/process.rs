//! Runs a program and measures what it took.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

use super::machine::{field, kibibytes};
use crate::error::{Error, ErrorKind};
use crate::load::{self, Stop};

/// The hidden command that runs another program which ends with this one.
pub const HOLD: &str = "hold";

/// How often the memory of a program is looked at. Its highest size is kept by the kernel, so that
/// only what is taken in its very last moments is missed.
const LOOK_INTERVAL: Duration = Duration::from_millis(5);

/// How long a program may go on after it was asked to stop.
const STOP_GRACE: Duration = Duration::from_secs(10);

/// What a program said last, as far as it is shown.
const SAID_BYTES_MAX: usize = 600;

/// A program to be run.
#[derive(Clone, Debug)]
pub struct Program {
    /// Its words, the program first.
    pub words: Vec<OsString>,
    /// The connection string, where it is told through the environment.
    pub uri: Option<String>,
    /// Where its output is kept.
    pub output: PathBuf,
}

/// What a run took.
#[derive(Clone, Debug, PartialEq)]
pub struct Ran {
    /// From its start to its exit.
    pub wall: Duration,
    /// Processor time outside of the kernel.
    pub user: Duration,
    /// Processor time in the kernel.
    pub system: Duration,
    /// The largest resident size, where the system tells.
    pub peak_bytes: Option<u64>,
    /// The exit status; nothing if a signal ended it.
    pub status: Option<i32>,
    /// What it said last.
    pub said: String,
}

/// Becomes the program of these words, which the kernel ends when its parent, the process of this
/// number, is gone, however that came about; returns why it cannot.
pub fn hold(parent: u32, words: &[OsString]) -> Error {
    let Some((program, arguments)) = words.split_first() else {
        return Error::new(ErrorKind::Usage, "there is no program to hold");
    };
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
    // It may have gone before the kernel knew what it is to do then.
    if std::os::unix::process::parent_id() != parent {
        return Error::new(ErrorKind::Internal, "the program that started this one is gone");
    }
    let error = Command::new(program).args(arguments).exec();
    cannot_run(program, &error)
}

fn cannot_run(program: &OsStr, error: &std::io::Error) -> Error {
    let program = program.to_string_lossy();
    Error::new(ErrorKind::Usage, format!("`{program}` cannot be run: {error}"))
}

/// Starts a program that ends with this one. It has a process group of its own: Ctrl-C on the
/// terminal is for the benchmark.
///
/// The thread that calls this must last as long as the program: the kernel takes its end for that
/// of the parent.
pub(super) fn start(program: &Program) -> Result<Child, Error> {
    let cannot = |error: &std::io::Error| cannot_run(&program.words[0], error);
    let output = File::create(&program.output).map_err(|error| cannot(&error))?;
    let same = output.try_clone().map_err(|error| cannot(&error))?;
    let own = std::env::current_exe().map_err(|error| cannot(&error))?;
    let mut command = Command::new(own);
    command.args([HOLD, &std::process::id().to_string(), "--"]).args(&program.words);
    command.stdin(Stdio::null()).stdout(output).stderr(same).process_group(0);
    if let Some(uri) = &program.uri {
        command.env("RESTORM_URI", uri);
    }
    command.spawn().map_err(|error| cannot(&error))
}

/// Runs a program to its end; asks it to stop, and ends it, where the benchmark is asked to.
pub(super) async fn run(program: Program, stop: &Stop) -> Result<Ran, Error> {
    let began = Instant::now();
    let mut child = start(&program)?;
    let stop = stop.clone();
    load::aside(move || {
        let lost = |error: &dyn std::fmt::Display| {
            let message = format!("a run cannot be waited for: {error}");
            Error::new(ErrorKind::Internal, message)
        };
        let (peak, has_ended) = (AtomicU64::new(0), AtomicBool::new(false));
        let pid = Pid::from_child(&child);
        let exited = thread::scope(|scope| {
            scope.spawn(|| watch(pid, &peak, &has_ended, &stop));
            // It stays known under its number until it is really waited for.
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            let exited = rustix::io::retry_on_intr(|| waitid(WaitId::Pid(pid), options));
            let wall = began.elapsed();
            has_ended.store(true, Ordering::Relaxed);
            exited.map(|_| wall)
        });
        let wall = exited.map_err(|error| lost(&error))?;
        let before = cpu_of_children();
        let status = child.wait().map_err(|error| lost(&error))?;
        let after = cpu_of_children();
        let peak = peak.into_inner();
        Ok(Ran {
            wall,
            user: after.0.saturating_sub(before.0),
            system: after.1.saturating_sub(before.1),
            peak_bytes: (peak > 0).then_some(peak),
            status: status.code(),
            said: last_words(&program.output),
        })
    })
    .await
}

/// Looks at the memory of a process until it ends, and hands on that it should.
fn watch(pid: Pid, peak: &AtomicU64, has_ended: &AtomicBool, stop: &Stop) {
    let mut asked: Option<Instant> = None;
    while !has_ended.load(Ordering::Relaxed) {
        if let Some(bytes) = peak_of(pid.as_raw_nonzero().get().unsigned_abs()) {
            peak.fetch_max(bytes, Ordering::Relaxed);
        }
        match asked {
            None if stop.is_requested() => {
                asked = Some(Instant::now());
                let _ = kill_process(pid, Signal::INT);
            }
            Some(at) if at.elapsed() > STOP_GRACE => {
                let _ = kill_process(pid, Signal::KILL);
            }
            _ => {}
        }
        thread::sleep(LOOK_INTERVAL);
    }
}

/// The processor time of all programs that were run and waited for.
fn cpu_of_children() -> (Duration, Duration) {
    let Ok(usage) = getrusage(UsageWho::RUSAGE_CHILDREN) else {
        return (Duration::ZERO, Duration::ZERO);
    };
    let time = |time: nix::sys::time::TimeVal| {
        let micros = time.tv_sec() * 1_000_000 + time.tv_usec();
        Duration::from_micros(micros.unsigned_abs())
    };
    (time(usage.user_time()), time(usage.system_time()))
}

/// The largest resident size of a process so far, where the system tells.
pub(super) fn peak_of(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    kibibytes(field(&status, "VmHWM")?)
}

/// The processor time that a process has taken so far, where the system tells.
pub(super) fn cpu_of(pid: u32) -> Option<Duration> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name of the program stands in brackets and may hold anything.
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?;
    let per_second = rustix::param::clock_ticks_per_second().max(1);
    Some(Duration::from_millis(ticks.saturating_mul(1000) / per_second))
}

/// The end of what a program said.
fn last_words(output: &Path) -> String {
    let said = std::fs::read(output).unwrap_or_default();
    let end = &said[said.len().saturating_sub(SAID_BYTES_MAX)..];
    String::from_utf8_lossy(end).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_tells_of_this_process() {
        let pid = std::process::id();
        assert!(peak_of(pid).is_some_and(|bytes| bytes > 1 << 20));
        assert!(cpu_of(pid).is_some());
        assert_eq!(cpu_of(0), None);
    }

    #[test]
    fn nothing_cannot_be_held() {
        let parent = std::os::unix::process::parent_id();
        assert_eq!(hold(parent, &[]).kind(), ErrorKind::Usage);
        let error = hold(parent, &["/no/such/program".into()]);
        assert!(error.to_string().contains("/no/such/program"), "{error}");
        let error = hold(parent + 1, &["true".into()]);
        assert!(error.to_string().contains("is gone"), "{error}");
    }
}
