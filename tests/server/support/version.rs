//! The version of the servers that the tests run on, and what it cannot do.

use super::{connect, runtime};
use mongodb::bson::doc;
use restorm::facts::{ServerFacts, ServerVersion};
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

/// The version as three numbers.
pub(crate) type Version = [u32; 3];

/// The version of every server of this run: that of `$MONGODB_URI`, else of the mongod that
/// `scripts/mongod.py` finds.
pub(crate) fn version() -> Version {
    static VERSION: OnceLock<Version> = OnceLock::new();
    *VERSION.get_or_init(|| {
        let text = super::pool::foreign_uri().map_or_else(of_binary, |uri| of_server(&uri));
        parse(&text).unwrap_or_else(|| panic!("`{text}` is no version"))
    })
}

/// The version as mongod writes it.
pub(crate) fn version_text() -> String {
    version().map(|number| number.to_string()).join(".")
}

/// Whether the servers keep zero timestamps of inserts that ask for it, so that no document takes a
/// detour.
pub(crate) fn keeps_zero_timestamps() -> bool {
    let [major, minor, patch] = version();
    let version = ServerVersion::new(major, minor, patch);
    ServerFacts { version, ..ServerFacts::null() }.keeps_zero_timestamps()
}

/// Whether the servers are older than this series.
pub(crate) fn is_before(since: [u32; 2]) -> bool {
    let [major, minor, _] = version();
    [major, minor] < since
}

/// Whether the servers are too old for something, so that a test has nothing to look at.
#[expect(clippy::print_stdout, reason = "the test says why it looks at nothing")]
pub(crate) fn lacks(what: &str, since: [u32; 2]) -> bool {
    let is_older = is_before(since);
    if is_older {
        println!("nothing is tested: mongod {} has no {what}", version_text());
    }
    is_older
}

fn of_server(uri: &str) -> String {
    let database = connect(uri).database("admin");
    let reply = runtime()
        .block_on(async { database.run_command(doc! { "buildInfo": 1 }).await })
        .expect("a server says its version");
    reply.get_str("version").expect("a version is a text").to_owned()
}

fn of_binary() -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/mongod.py");
    let found = Command::new("python3").arg(script).arg("path").output().expect("python3 runs");
    let binary = String::from_utf8(found.stdout).expect("a path is text");
    let said = Command::new(binary.trim()).arg("--version").output().expect("mongod runs");
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    let version = said.lines().find_map(|line| line.strip_prefix("db version v"));
    version.expect("mongod says its version").to_owned()
}

fn parse(text: &str) -> Option<Version> {
    let text = text.split(['-', '+']).next()?;
    let mut numbers = text.split('.').map(str::parse);
    Some([numbers.next()?.ok()?, numbers.next()?.ok()?, numbers.next()?.ok()?])
}
