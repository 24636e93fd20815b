//! The binary under the name `mongorestore`: its lines, where they go, and its exit codes.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::program::{Finished, Program};

fn testdata() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata")
}

/// Runs the binary under the other name, in `testdata`.
fn run(line: &str) -> Finished {
    run_in_zone("UTC", line)
}

/// Does so where clocks are those of a zone, as `TZ` names it.
fn run_in_zone(zone: &str, line: &str) -> Finished {
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("mongorestore");
    symlink(env!("CARGO_BIN_EXE_restorm"), &program).expect("a link");
    let words: Vec<_> = line.split_whitespace().collect();
    Program::of(program.to_str().expect("a plain path"), &words)
        .in_folder(testdata())
        .env("TZ", zone)
        .run()
}

/// The lines without their times, of which each must have one.
#[track_caller]
fn sentences(text: &str) -> Vec<&str> {
    text.lines()
        .map(|line| {
            let (time, sentence) = line.split_once('\t').unwrap_or_else(|| panic!("{line}"));
            let shape: String = time
                .chars()
                .map(|character| if character.is_ascii_digit() { '0' } else { character })
                .collect();
            assert_eq!(shape, "0000-00-00T00:00:00.000+0000", "{line}");
            sentence
        })
        .collect()
}

#[test]
fn a_run_is_told_in_the_lines_that_scripts_look_for() {
    let finished = run("--null dumps/full_6.0 --db shop");
    assert_eq!((finished.status, finished.stdout.as_str()), (Some(0), ""));
    let lines = sentences(&finished.stderr);
    for expected in [
        "preparing collections to restore from",
        "reading metadata for `shop.orders` from `dumps/full_6.0/shop/orders.metadata.json`",
        "restoring `shop.orders` from `dumps/full_6.0/shop/orders.bson`",
        "finished restoring `shop.orders` (3000 documents, 0 failures)",
        "restoring indexes for collection `shop.orders` from metadata",
    ] {
        assert!(lines.contains(&expected), "{expected} is not in\n{}", finished.stderr);
    }
    let last = lines.last().expect("there are lines");
    let (restored, rest) = last.split_once(' ').expect("a count");
    assert!(restored.parse::<u64>().expect("a number") > 3000, "{last}");
    assert_eq!(rest, "document(s) restored successfully. 0 document(s) failed to restore.");
}

#[test]
fn quiet_shows_errors_and_nothing_else() {
    let finished = run("--null dumps/full_6.0 --quiet");
    assert_eq!((finished.status, finished.stderr.as_str()), (Some(0), ""));
}

/// mongorestore says nothing at all with `--quiet`, so that a failed run looks like an empty log.
#[test]
fn better_than_the_peer_quiet_does_not_hide_what_failed() {
    let finished = run("--null broken/truncated_document --quiet");
    assert_eq!(finished.status, Some(1));
    let lines = sentences(&finished.stderr);
    assert!(lines[0].starts_with("Failed: "), "{lines:?}");
    assert!(lines[0].contains("the file ends inside a document"), "{lines:?}");
    assert!(lines.last().expect("lines").contains("document(s) restored successfully."));
}

#[test]
fn wrong_usage_is_two_lines_and_ends_with_one() {
    let finished = run("--nsIncl shop.*");
    assert_eq!((finished.status, finished.stdout.as_str()), (Some(1), ""));
    assert_eq!(
        sentences(&finished.stderr),
        [
            "error parsing command line options: unknown option `nsIncl`; \
             did you mean --nsInclude?",
            "try 'mongorestore --help' for more information",
        ]
    );
}

/// What an oplog, users and roles cannot be combined with is told, under either name.
#[test]
fn what_would_restore_a_state_that_never_was_is_refused() {
    for (options, reason) in [
        ("--oplogReplay --nsInclude shop.*", "not replayed for a part of the collections"),
        ("--oplogReplay --db shop", "not replayed for the database `shop` alone"),
        ("--oplogReplay --db shop --collection orders", "the database `shop` alone"),
        ("--oplogReplay --nsExclude shop.*", "not replayed for all but some collections"),
        ("--oplogReplay --excludeCollection=x", "not replayed for all but some collections"),
        ("--oplogReplay --excludeCollectionsWithPrefix=x", "for all but some collections"),
        ("--oplogReplay --nsFrom a.* --nsTo b.*", "collections that get other names"),
        ("--oplogReplay --oplogFile=o.bson --archive=a", "--oplog-file is not for an archive"),
        ("--oplogLimit 5", "--oplog-replay"),
        ("--oplogFile o.bson", "--oplog-replay"),
        ("--restoreDbUsersAndRoles", "needs the database"),
        ("--restoreDbUsersAndRoles --db admin", "not for the database admin"),
    ] {
        let line = format!("--null {options} dumps/full_6.0");
        let finished = run(&line);
        assert_eq!(finished.status, Some(1), "{options}: {}", finished.stderr);
        let lines = sentences(&finished.stderr);
        assert!(lines[0].starts_with("error parsing command line options: "), "{lines:?}");
        assert!(lines[0].contains(reason), "{options}: {lines:?}");
        let words: Vec<_> = std::iter::once("restore").chain(line.split_whitespace()).collect();
        let restorm = Program::restorm(&words).in_folder(testdata()).run();
        assert_eq!(restorm.status, Some(2), "{options}: {}", restorm.stderr);
        assert!(restorm.stderr.contains(reason), "{options}: {}", restorm.stderr);
    }
}

#[test]
fn a_missing_dump_fails_with_the_counts_of_nothing() {
    let finished = run("--null nowhere");
    assert_eq!(finished.status, Some(1));
    let lines = sentences(&finished.stderr);
    assert!(lines[0].starts_with("Failed: there is no dump at `nowhere`"), "{lines:?}");
    assert_eq!(lines[1], "0 document(s) restored successfully. 0 document(s) failed to restore.");
}

#[test]
fn a_server_that_is_away_is_one_line() {
    let uri = "mongodb://127.0.0.1:1/?serverSelectionTimeoutMS=300&connectTimeoutMS=300";
    let finished = run(&format!("dumps/full_6.0 --uri={uri}"));
    assert_eq!(finished.status, Some(1));
    let lines = sentences(&finished.stderr);
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].starts_with("error connecting to host: "), "{lines:?}");
}

#[test]
fn help_and_version_go_to_standard_output() {
    let help = run("--help");
    assert_eq!((help.status, help.stderr.as_str()), (Some(0), ""));
    assert!(help.stdout.contains("Usage: mongorestore [OPTIONS] [DUMP]"), "{}", help.stdout);
    let version = run("--version");
    assert_eq!((version.status, version.stderr.as_str()), (Some(0), ""));
    let first = version.stdout.lines().next().expect("a line");
    assert!(first.starts_with("mongorestore version: 100."), "{first}");
    assert!(first.ends_with(concat!("(restorm ", env!("CARGO_PKG_VERSION"), ")")), "{first}");
}

#[test]
fn a_dry_run_ends_with_its_words() {
    let finished = run("--null dumps/full_6.0 --dryRun");
    assert_eq!(finished.status, Some(0));
    assert!(finished.stdout.contains("shop.orders"), "{}", finished.stdout);
    assert_eq!(
        sentences(&finished.stderr),
        [
            "dry run completed",
            "0 document(s) restored successfully. 0 document(s) failed to restore."
        ]
    );
}

#[test]
fn what_changes_nothing_is_said() {
    let finished = run("--null dumps/full_6.0 --numThreads 2 --trace");
    assert_eq!(finished.status, Some(0));
    let lines = sentences(&finished.stderr);
    assert!(lines[0].starts_with("--numThreads changes nothing: "), "{lines:?}");
    assert!(lines[1].starts_with("--trace changes nothing: "), "{lines:?}");
}

#[test]
fn times_are_those_of_the_place() {
    let finished = run_in_zone("IST-5:30", "--null dumps/full_6.0/shop");
    assert_eq!(finished.status, Some(0), "{}", finished.stderr);
    for line in finished.stderr.lines() {
        assert_eq!(line.split('\t').next().map(|time| &time[23..]), Some("+0530"), "{line}");
    }
}

#[test]
fn how_a_line_was_understood_is_said_as_under_our_own_name() {
    let finished = run("--null --archive dumps/full_6.0.archive -v --gzip");
    assert_eq!(finished.status, Some(0), "{}", finished.stderr);
    let lines = sentences(&finished.stderr);
    assert_eq!(
        lines[..2],
        [
            "the archive is read from `dumps/full_6.0.archive`; \
             for standard input, give --archive alone",
            "--gzip is not needed: compressed files are known by their content",
        ]
    );
}

#[test]
fn warnings_are_lines_of_the_log() {
    let uri = "mongodb://u:p@127.0.0.1:1/?serverSelectionTimeoutMS=100&fooBar=hidden";
    let finished = run(&format!("dumps/full_6.0 --uri={uri} --socketTimeout=3"));
    assert_eq!(finished.status, Some(1));
    let lines = sentences(&finished.stderr);
    assert!(lines[0].starts_with("WARNING: a password on the command line can be seen"));
    assert_eq!(
        lines[1..3],
        [
            "WARNING: --socketTimeout has no effect, as in mongorestore",
            "WARNING: ignoring unsupported URI parameter `fooBar`",
        ]
    );
    assert!(lines[3].starts_with("error connecting to host: "), "{lines:?}");
    assert!(!finished.stderr.contains("hidden"), "{lines:?}");
    let quiet = run(&format!("dumps/full_6.0 --uri={uri} --quiet"));
    assert_eq!(sentences(&quiet.stderr).len(), 1, "{}", quiet.stderr);
}
