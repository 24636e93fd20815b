//! What a clone offers besides the crate: the Makefile and the scripts.

use crate::program::Program;
use std::path::Path;

/// The path of a file of the clone.
fn of_clone(path: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path).to_string_lossy().into_owned()
}

#[test]
fn the_makefile_lists_every_target() {
    let makefile = std::fs::read_to_string(of_clone("Makefile")).expect("there is a Makefile");
    let targets = makefile.lines().find_map(|line| line.strip_prefix(".PHONY: ")).expect("a list");
    let help =
        Program::of("make", &["--no-print-directory", "-C", &of_clone(""), "help"]).run().stdout;
    let listed: Vec<&str> = help.lines().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(listed.join(" "), targets);
}

#[test]
fn every_script_says_what_it_does() {
    for name in ["mongod", "prometheus", "demo", "bench", "adaptive", "reproduce"] {
        let script = &format!("scripts/{name}.py");
        let help = Program::of("python3", &[of_clone(script)]).arg("--help").run();
        assert_eq!(help.status, Some(0), "{script}: {}", help.stderr);
        assert!(help.stdout.starts_with("usage: "), "{script}: {}", help.stdout);
    }
}

#[test]
fn without_a_mongod_the_ways_out_are_named() {
    let finished = Program::of("python3", &[of_clone("scripts/mongod.py")])
        .arg("path")
        .env("MONGOD", "/nowhere/mongod")
        .run();
    assert_eq!(finished.status, Some(1));
    assert_eq!(finished.stdout, "");
    for way in ["/nowhere/mongod", "on the PATH", "MONGOD=", "MONGODB_URI="] {
        assert!(finished.stderr.contains(way), "{way} is not in: {}", finished.stderr);
    }
}

#[test]
fn a_program_that_is_no_mongod_is_refused() {
    let finished = Program::of("python3", &[of_clone("scripts/mongod.py")])
        .arg("path")
        .env("MONGOD", "/bin/true")
        .run();
    assert_eq!(finished.status, Some(1));
    assert!(finished.stderr.contains("/bin/true is not a mongod"), "{}", finished.stderr);
}
