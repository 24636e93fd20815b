//! The real binary: what it says, where it says it, and the status it ends with.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use restorm::exit::ExitStatus;

use crate::program::{Finished, Program};

/// The columns that help may take.
const COLUMNS_MAX: usize = 100;

const COMMANDS: [&str; 4] = ["restore", "import", "inspect", "seed"];

fn testdata() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata")
}

/// Runs the binary in `testdata`.
fn run(arguments: &[&str]) -> Finished {
    Program::restorm(arguments).in_folder(testdata()).run()
}

#[test]
fn help_tells_the_statuses_and_examples_in_a_hundred_columns() {
    for command in COMMANDS {
        // The short form is the host where a server is named, as in mongorestore and mongoimport.
        let names_server = ["restore", "import", "seed"].contains(&command);
        let flags = if names_server { &["--help"][..] } else { &["--help", "-h"] };
        for flag in flags {
            let help = run(&[command, flag]);
            assert_eq!((help.status, help.stderr.as_str()), (Some(0), ""), "{command}");
            let text = help.stdout;
            assert!(text.contains(&format!("Usage: restorm {command} ")), "{text}");
            assert!(text.contains(&format!("Exit status:\n{}", ExitStatus::table())), "{text}");
            assert!(text.contains(&format!("Examples:\n  restorm {command} ")), "{text}");
            let wide = text.lines().find(|line| line.chars().count() > COLUMNS_MAX);
            assert_eq!(wide, None, "{command}");
        }
    }
    let help = run(&["--help"]).stdout;
    for command in COMMANDS {
        assert!(help.contains(&format!("\n  {command} ")), "{command} is not in:\n{help}");
    }
}

#[test]
fn the_help_of_restore_states_its_memory() {
    let help = run(&["restore", "--help"]).stdout;
    let words = help.split_whitespace().collect::<Vec<_>>().join(" ");
    let formula = "parallel-collections × (1M + batch-bytes) + (2 + 5 × workers) × batch-bytes, \
                   50 MiB with 8 workers and 170 MiB with 32;";
    assert!(words.contains(formula), "{help}");
    // The defaults that the formula is worked out with.
    for default in ["[default: 4]", "[default: 1M]"] {
        assert!(words.contains(default), "{default} is not in:\n{help}");
    }
}

#[test]
fn the_version_is_that_of_the_crate() {
    let version = run(&["--version"]);
    assert_eq!(version.status, Some(0));
    assert_eq!(version.stdout, format!("restorm {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn wrong_usage_is_told_and_ends_with_two() {
    for (line, expected) in [
        ("", "Usage: restorm"),
        ("refresh", "unrecognized subcommand 'refresh'"),
        ("restore --colour", "unexpected argument '--colour'"),
        ("restore dump other", "unexpected argument 'other'"),
        ("restore --workers 0", "a whole number from 1 to 1024 is needed"),
        ("restore -j 257", "a whole number from 1 to 256 is needed"),
        ("restore -j many", "a whole number from 1 to 256 is needed"),
        ("restore --batch-documents 100001", "a whole number from 1 to 100000 is needed"),
        ("restore --parallel-index-builds 0", "a whole number from 1 to 64 is needed"),
        ("restore --batch-bytes 17M", "a size from 1 to"),
        ("restore --batch-bytes 5X", "the unit X is not known; use K, M or G"),
        ("restore --write-concern {x:1}", "write-concern"),
        ("restore --journal maybe", "invalid value 'maybe' for '--journal <WHEN>'"),
        ("restore --port 70000", "invalid value '70000' for '--port <PORT>'"),
        ("restore --uri mongodb://a --host b", "name different hosts"),
        ("restore --null --port 1", "cannot be used with"),
        ("restore --host rs0/", "the host is empty"),
        ("restore --collection orders", "--db <NAME>"),
        ("inspect --xml", "unexpected argument '--xml'"),
        ("inspect -c orders", "--db <NAME>"),
        ("seed", "it is not said where the documents go"),
        ("seed --out x --shape round", "invalid value 'round'"),
    ] {
        let words: Vec<_> = line.split_whitespace().collect();
        let finished = run(&words);
        assert_eq!(finished.status, Some(2), "`{line}`: {}", finished.stderr);
        assert!(finished.stderr.contains(expected), "`{line}`: {}", finished.stderr);
        assert_eq!(finished.stdout, "", "`{line}`");
    }
}

#[test]
fn a_wrong_path_is_told_with_a_way_out() {
    for (line, expected, hint) in [
        ("restore --null nowhere", "there is no dump at `nowhere`", "hint: give the path of"),
        ("inspect nowhere", "there is no dump at `nowhere`", "hint: give the path of"),
        ("restore --null README.md", "not named like the data", "hint: names of data files end"),
        ("restore --null broken/wrong_level", "holds nothing to restore", "hint: did you mean"),
        ("restore --null dumps/full_6.0 -d shopp", "no database `shopp`", "hint: it holds"),
        ("restore --null dumps/full_6.0 -d shop -c x", "no collection `x`", "hint: it holds"),
        ("restore --null dumps/full_5.0/admin", "nothing in the dump can be", "hint: `restorm i"),
    ] {
        let finished = run(&line.split_whitespace().collect::<Vec<_>>());
        assert_eq!(finished.status, Some(1), "`{line}`: {}", finished.stderr);
        assert!(finished.stderr.starts_with("error: "), "`{line}`: {}", finished.stderr);
        assert!(finished.stderr.contains(expected), "`{line}`: {}", finished.stderr);
        assert!(finished.stderr.contains(hint), "`{line}`: {}", finished.stderr);
        assert_eq!(finished.stdout, "", "`{line}`");
    }
}

#[test]
fn without_a_server_the_error_says_where_it_was_looked_for() {
    let uri = "mongodb://127.0.0.1:1/?serverSelectionTimeoutMS=300&connectTimeoutMS=300";
    let finished = run(&["restore", "dumps/full_6.0", "--uri", uri]);
    assert_eq!(finished.status, Some(1), "{}", finished.stderr);
    assert!(finished.stderr.contains("127.0.0.1:1"), "{}", finished.stderr);
    assert!(finished.stderr.contains("hint: "), "{}", finished.stderr);
}

#[test]
fn genuine_dumps_are_read_whole() {
    for (dump, documents) in [
        ("full_4.2", "4,005"),
        ("full_6.0", "4,061"),
        ("kitchen_6.0_gzip", "503"),
        ("full_6.0/shop/orders.bson", "3,000"),
    ] {
        let finished = run(&["restore", "--null", &format!("dumps/{dump}")]);
        assert_eq!(finished.status, Some(0), "{dump}: {}", finished.stderr);
        assert_eq!(finished.stdout, "", "{dump}: standard output carries data only");
        let balance = format!("balance    {documents} read = {documents} inserted + 0 already");
        assert!(finished.stderr.contains(&balance), "{dump}: {}", finished.stderr);
        assert!(finished.stderr.contains("exit       0: "), "{dump}: {}", finished.stderr);
    }
}

#[test]
fn quiet_says_nothing_unless_something_fails() {
    let finished = run(&["restore", "--null", "--quiet", "dumps/full_6.0"]);
    assert_eq!(
        (finished.status, finished.stdout.as_str(), finished.stderr.as_str()),
        (Some(0), "", "")
    );
    let finished = run(&["restore", "--null", "-q", "broken/truncated_document"]);
    assert_eq!(finished.status, Some(1));
    assert!(finished.stderr.contains("the file ends inside a document"), "{}", finished.stderr);
}

#[test]
fn verbose_lists_what_is_otherwise_counted() {
    let plain = run(&["restore", "--null", "dumps/full_5.0"]).stderr;
    let verbose = run(&["restore", "--null", "-v", "dumps/full_5.0"]).stderr;
    assert!(plain.contains("collections more"), "{plain}");
    for listed in ["admin/system.version.bson", "odd.sla/sh", "kitchen.empty", "at_1"] {
        assert!(verbose.contains(listed), "{listed} is not in:\n{verbose}");
    }
    assert!(!plain.contains("admin/system.version.bson"), "{plain}");
}

#[test]
fn data_goes_to_standard_output_and_nothing_else_does() {
    for data in [
        &["inspect", "dumps/full_6.0"][..],
        &["inspect", "--json", "dumps/full_6.0"],
        &["restore", "--null", "--dry-run", "dumps/full_6.0"],
    ] {
        let finished = run(data);
        assert_eq!(finished.status, Some(0), "{data:?}: {}", finished.stderr);
        assert!(finished.stdout.contains("sla/sh"), "{data:?}: {}", finished.stdout);
        assert_eq!(finished.stderr, "", "{data:?}");
    }
    let json = run(&["inspect", "--json", "dumps/full_6.0"]).stdout;
    let value: serde_json::Value = serde_json::from_str(&json).expect("JSON alone");
    assert_eq!(value["schema"], "restorm.inspect/1");
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let script = "{ \"$0\" \"$@\"; echo \"status $?\" >&2; } | head -n 1";
    for arguments in [
        &["inspect", "dumps/full_6.0"][..],
        &["restore", "--null", "--dry-run", "dumps/full_6.0"],
        &["restore", "--help"],
    ] {
        let words = [&["-c", script, env!("CARGO_BIN_EXE_restorm")], arguments].concat();
        let finished = Program::of("sh", &words).in_folder(testdata()).run();
        assert_eq!(finished.stderr, "status 0\n", "{arguments:?}");
        assert_eq!(finished.stdout.lines().count(), 1, "{arguments:?}");
    }
    let script = "\"$0\" restore --null dumps/full_6.0 2>&-; echo \"status $?\"";
    let finished = Program::of("sh", &["-c", script, env!("CARGO_BIN_EXE_restorm")])
        .in_folder(testdata())
        .run();
    assert_eq!(finished.stdout, "status 0\n", "a closed standard error");
}

#[test]
fn the_report_is_written_or_its_path_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("report.json");
    let path = file.to_string_lossy();
    let finished = run(&["restore", "--null", "-q", "dumps/full_6.0", "--report", &path]);
    assert_eq!(finished.status, Some(0), "{}", finished.stderr);
    let report: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&file).expect("written")).expect("JSON");
    assert_eq!(report["balance"]["read"], 4061);
    assert_eq!(report["exit_status"], 0);
    let finished = run(&["restore", "--null", "dumps/full_6.0", "--report", "nowhere/r.json"]);
    assert_eq!(finished.status, Some(2), "{}", finished.stderr);
    assert!(finished.stderr.contains("the report could not be written"), "{}", finished.stderr);
    assert!(!finished.stderr.contains("balance"), "nothing is restored: {}", finished.stderr);
    assert!(finished.stderr.contains("nowhere/r.json"), "{}", finished.stderr);
}

/// A file that is small on the disk and takes long to read: one gzip member many times over.
fn long_dump(folder: &Path) {
    const MEMBER_DOCUMENTS: usize = 50_000;
    const MEMBERS: usize = 3_000;
    let document = bson::doc! { "_id": 1, "text": "again and again" }.to_vec().expect("encodes");
    let mut member = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    member.write_all(&document.repeat(MEMBER_DOCUMENTS)).expect("compressed");
    let member = member.finish().expect("compressed");
    let shop = folder.join("shop");
    std::fs::create_dir(&shop).expect("a folder");
    std::fs::write(shop.join("orders.bson.gz"), member.repeat(MEMBERS)).expect("written");
}

#[test]
fn an_interrupted_run_tells_how_far_it_is_and_how_far_it_got() {
    let folder = tempfile::tempdir().expect("a folder");
    long_dump(folder.path());
    let running = Program::restorm(&["restore", "--null", "."]).in_folder(folder.path()).start();
    // Longer than it takes to the first line of progress.
    std::thread::sleep(Duration::from_millis(3_800));
    running.signal("INT");
    let finished = running.finish();
    let said = &finished.stderr;
    assert_eq!(finished.status, Some(130), "{said}");
    let progress = said.lines().find(|line| line.contains('%') && line.contains("shop.orders"));
    assert!(progress.is_some(), "no line of progress: {said}");
    assert!(said.contains("stopping: finishing what is in flight"), "{said}");
    assert!(said.contains("+ 0 unsent"), "{said}");
    assert!(said.contains("exit       130: "), "{said}");
    assert_eq!(finished.stdout, "");
}
