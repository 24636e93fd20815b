//! A server on a file system that is soon full.

use super::{Mongod, Server};
use std::process::{Command, Output};
use tempfile::TempDir;

/// How a file system is mounted that no others see, and how one looks at it from outside: as root,
/// or as a user who is root for himself alone.
const WAYS: [Way; 2] = [
    Way { into_one: &["--mount"], into_that_of: &["--mount"] },
    Way {
        into_one: &["--mount", "--user", "--map-root-user"],
        into_that_of: &["--mount", "--user", "--preserve-credentials"],
    },
];

/// Mounts `$1` MiB at `$0`, has temporary files there, and goes on with the rest.
const MOUNT: &str = "mount -t tmpfs -o size=\"$1\"m tmpfs \"$0\" || exit 1; export TMPDIR=\"$0\"; \
                     shift; exec \"$@\"";

#[derive(Clone, Copy)]
struct Way {
    into_one: &'static [&'static str],
    into_that_of: &'static [&'static str],
}

/// A server whose data is on a small file system in memory. Only the server and what holds it see
/// that file system, so that it goes with them, in whatever way they end.
pub(crate) struct SmallDisk {
    pub(crate) server: Server,
    holder: u32,
    folder: TempDir,
    way: Way,
}

impl SmallDisk {
    /// A server with so much room for its data; nothing where this user may mount no file system,
    /// which is told.
    #[expect(clippy::print_stdout, reason = "the test says why it looks at nothing")]
    pub(crate) fn of(mebibytes: u32, arguments: &[&str]) -> Option<Self> {
        let folder = tempfile::tempdir().expect("a folder");
        let mut reasons = String::new();
        for way in WAYS {
            match mounted(&folder, way, 1).arg("true").output() {
                Ok(Output { status, .. }) if status.success() => {
                    let mut python = mounted(&folder, way, mebibytes);
                    python.arg("python3");
                    let mongod = Mongod::start_by(python, arguments);
                    let holder = mongod.holder();
                    return Some(Self { server: Server::of(mongod), holder, folder, way });
                }
                Ok(tried) => reasons.push_str(&String::from_utf8_lossy(&tried.stderr)),
                Err(error) => reasons.push_str(&error.to_string()),
            }
        }
        println!("left out, because no file system can be mounted here: {}", reasons.trim());
        None
    }

    /// Makes more room, so that so much is there in all.
    pub(crate) fn grow_to(&self, mebibytes: u32) {
        let holder = self.holder.to_string();
        let grown = Command::new("nsenter")
            .args(self.way.into_that_of)
            .args(["--target", &holder, "mount", "-o", &format!("remount,size={mebibytes}m")])
            .arg(self.folder.path())
            .output()
            .expect("nsenter runs");
        assert!(grown.status.success(), "{}", String::from_utf8_lossy(&grown.stderr));
    }
}

/// A command, which follows, that has its temporary files on a file system of its own.
fn mounted(folder: &TempDir, way: Way, mebibytes: u32) -> Command {
    let mut command = Command::new("unshare");
    command.args(way.into_one).args(["sh", "-c", MOUNT]).arg(folder.path());
    command.arg(mebibytes.to_string());
    command
}
