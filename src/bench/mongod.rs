//! Servers of the benchmark's own, which end with it.

use std::ffi::OsString;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};

use super::matrix::Choice;
use super::process::{Program, cpu_of, peak_of, start};
use super::work::bytes_of;
use crate::error::{Error, ErrorKind};
use crate::load;

/// How long a server may take to start.
const START_WITHIN: Duration = Duration::from_secs(60);

/// How often its log is looked at meanwhile.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// Somebody else may take a free port first.
const PORTS_TRIED: u32 = 5;

/// The end of a log, as far as it is shown.
const LOG_BYTES_SHOWN: usize = 1500;

/// A running server with a data folder of its own, which goes with it.
#[derive(Debug)]
pub struct Mongod {
    child: Child,
    folder: PathBuf,
    port: u16,
}

/// How a start went.
enum Started {
    Listens(Child),
    PortTaken,
    Failed(String),
}

impl Mongod {
    /// Starts a server on a free port of 127.0.0.1 and waits until it listens.
    pub(super) async fn start(
        program: &Path,
        arguments: &[String],
        folder: &Path,
    ) -> Result<Self, Error> {
        for attempt in 0..PORTS_TRIED {
            let port = free_port()?;
            let folder = folder.join(format!("data-{attempt}"));
            match attempt_at(program, arguments, &folder, port).await? {
                Started::Listens(child) => return Ok(Self { child, folder, port }),
                Started::PortTaken => {}
                Started::Failed(said) => {
                    let message = format!("mongod did not start: {said}");
                    return Err(Error::new(ErrorKind::Connect, message).in_file(program));
                }
            }
        }
        let message = format!("no free port was found in {PORTS_TRIED} attempts");
        Err(Error::new(ErrorKind::Connect, message))
    }

    /// Its connection string.
    pub fn uri(&self) -> String {
        format!("mongodb://127.0.0.1:{}/?directConnection=true", self.port)
    }

    /// Its processor time so far.
    pub(super) fn cpu(&self) -> Option<Duration> {
        cpu_of(self.child.id())
    }

    /// Its largest resident size so far.
    pub(super) fn peak_bytes(&self) -> Option<u64> {
        peak_of(self.child.id())
    }

    /// The bytes of its data folder, without its log.
    pub(super) fn folder_bytes(&self) -> u64 {
        bytes_of(&self.folder)
    }
}

impl Drop for Mongod {
    /// Kills it: nobody will read its data again.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

async fn attempt_at(
    program: &Path,
    arguments: &[String],
    folder: &Path,
    port: u16,
) -> Result<Started, Error> {
    std::fs::create_dir(folder).map_err(|error| {
        let message = format!("a data folder cannot be made: {error}");
        Error::new(ErrorKind::Internal, message).in_file(folder)
    })?;
    let (log, output) = (folder.with_extension("log"), folder.with_extension("out"));
    let port = port.to_string();
    let mut words: Vec<OsString> = vec![program.into(), "--dbpath".into(), folder.into()];
    words.extend(["--logpath".into(), log.clone().into_os_string()]);
    words.extend(["--bind_ip", "127.0.0.1", "--port", &port, "--nounixsocket"].map(Into::into));
    words.extend(arguments.iter().map(Into::into));
    let child = start(&Program { words, uri: None, output: output.clone() })?;
    load::aside(move || Ok(await_listening(child, &log, &output))).await
}

fn await_listening(mut child: Child, log: &Path, output: &Path) -> Started {
    let deadline = Instant::now() + START_WITHIN;
    let read = |file: &Path| {
        String::from_utf8_lossy(&std::fs::read(file).unwrap_or_default()).into_owned()
    };
    while Instant::now() < deadline {
        let said = read(log).to_ascii_lowercase();
        if child.try_wait().is_ok_and(|status| status.is_some()) {
            if said.contains("address already in use") {
                return Started::PortTaken;
            }
            break;
        }
        // The log tells our own server from another that holds the port.
        if said.contains("waiting for connections") {
            return Started::Listens(child);
        }
        thread::sleep(LOOK_INTERVAL);
    }
    let _ = child.kill();
    let _ = child.wait();
    let said = format!("{}{}", read(output), read(log));
    let from = said.char_indices().rev().nth(LOG_BYTES_SHOWN).map_or(0, |(at, _)| at);
    Started::Failed(said[from..].trim().to_owned())
}

/// A port nobody listens on now.
fn free_port() -> Result<u16, Error> {
    let bound = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|probe| probe.local_addr());
    bound
        .map(|address| address.port())
        .map_err(|error| Error::new(ErrorKind::Connect, format!("there is no free port: {error}")))
}

/// What a mongod says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// Its help.
    help: String,
}

impl Told {
    /// Asks a program for its help.
    ///
    /// # Errors
    ///
    /// Of kind [`ErrorKind::Usage`]: it cannot be run, or is no mongod.
    pub fn by(program: &Path) -> Result<Self, Error> {
        let wrong = |why: String| Error::new(ErrorKind::Usage, why).in_file(program);
        let answer = Command::new(program).arg("--help").output();
        let answer = answer.map_err(|error| wrong(format!("mongod cannot be run: {error}")))?;
        let help = String::from_utf8_lossy(&answer.stdout).into_owned();
        if !help.contains("--dbpath") {
            return Err(wrong("this is no mongod: its --help names no --dbpath".to_owned()));
        }
        Ok(Self { help })
    }

    /// The arguments of the server for what is chosen of it.
    ///
    /// # Errors
    ///
    /// Of kind [`ErrorKind::Usage`]: this server has no such option.
    pub fn arguments(&self, choices: &[Choice]) -> Result<Vec<String>, Error> {
        let mut arguments = Vec::new();
        for choice in choices.iter().filter(|choice| choice.value != super::matrix::DEFAULT) {
            match (choice.name.as_str(), choice.value.as_str()) {
                // A journal is there unless it is declined, which servers from 6.1 on do not let.
                ("journal", "on") => {}
                ("journal", "off") => arguments.push(self.known("nojournal")?),
                (name, "on") => arguments.push(self.known(name)?),
                (name, "off") => drop(self.known(name)?),
                (name, value) => arguments.extend([self.known(name)?, value.to_owned()]),
            }
        }
        Ok(arguments)
    }

    fn known(&self, name: &str) -> Result<String, Error> {
        let option = format!("--{name}");
        // Servers that take no --nojournal any more may still explain it.
        let is_there = self.help.lines().any(|line| {
            let word = line.split_whitespace().next();
            word == Some(option.as_str()) || line.contains(&format!("[ {option} ]"))
        });
        if is_there {
            return Ok(option);
        }
        let message = format!("this mongod has no option {option}");
        Err(Error::new(ErrorKind::Usage, message).hint(match name {
            "nojournal" => "servers from 6.1 on always keep a journal",
            _ => "`mongod --help` lists its options",
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_become_arguments_of_this_server() {
        let told = Told {
            help: "  --dbpath arg\n  --nojournal    Disable\n  --wiredTigerCacheSizeGB arg  x\n"
                .to_owned(),
        };
        let choose = |name: &str, value: &str| {
            let choice = Choice { name: name.into(), value: value.into() };
            told.arguments(&[choice]).map_err(|error| error.to_string())
        };
        assert_eq!(choose("journal", "off"), Ok(vec!["--nojournal".to_owned()]));
        assert_eq!(choose("journal", "on"), Ok(Vec::new()));
        let cache = vec!["--wiredTigerCacheSizeGB".to_owned(), "1".to_owned()];
        assert_eq!(choose("wiredTigerCacheSizeGB", "1"), Ok(cache));
        assert_eq!(choose("wiredTigerCacheSizeGB", "default"), Ok(Vec::new()));
        assert!(choose("wiredTigerCacheSize", "1").is_err());
        assert!(choose("cacheSize", "off").is_err());
    }

    #[test]
    fn ports_are_free() {
        let port = free_port().expect("a port");
        assert!(TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok());
    }
}
