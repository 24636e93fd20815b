//! The binary under the name `mongoimport`: its options, its lines and its exit codes.

use std::os::unix::fs::symlink;
use std::path::Path;

use restorm::cli::mongoimport::options::OPTIONS;
use restorm::cli::mongorestore::options::{Answer, PeerOption, Takes};

use crate::program::{Finished, Program};

/// A file that is not there: it is looked for after the words were taken and before a server is.
const MISSING: &str = "no-such.json";

/// Runs the binary under the other name, in a folder.
fn run(folder: &Path, words: &[&str]) -> Finished {
    let program = folder.join("mongoimport");
    if !program.exists() {
        symlink(env!("CARGO_BIN_EXE_restorm"), &program).expect("a link");
    }
    let program = program.to_str().expect("a plain path");
    Program::of(program, words).in_folder(folder).env("TZ", "UTC").run()
}

/// The lines without their times, of which each must have one.
#[track_caller]
fn sentences(finished: &Finished) -> Vec<&str> {
    let sentence = |line| {
        let split = str::split_once(line, '\t').filter(|(time, _)| time.ends_with("+0000"));
        split.unwrap_or_else(|| panic!("{line}")).1
    };
    finished.stderr.lines().map(sentence).collect()
}

#[test]
fn a_run_ends_with_the_line_that_scripts_look_for() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("orders.json"), "{\"a\":1}\n{\"a\":2}\n").expect("written");
    let line = ["--null", "-d", "shop", "--file", "orders.json"];
    let finished = run(folder.path(), &line);
    assert_eq!(finished.status, Some(0), "{}", finished.stderr);
    let expected = "2 document(s) imported successfully. 0 document(s) failed to import.";
    assert_eq!(sentences(&finished), [expected]);
    assert_eq!(run(folder.path(), &[&line[..], &["--quiet"]].concat()).stderr, "");
}

#[test]
fn a_line_that_is_no_document_is_told_and_ends_with_one() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("a.json"), "{\"a\":1}\nnope\n{\"a\":2}\n").expect("written");
    let finished = run(folder.path(), &["--null", "-d", "shop", "a.json"]);
    assert_eq!(finished.status, Some(1), "{}", finished.stderr);
    let lines = sentences(&finished);
    assert!(lines[0].starts_with("continuing through error: a.json:2:"), "{lines:?}");
    let expected = "2 document(s) imported successfully. 1 document(s) failed to import.";
    assert_eq!(lines.last(), Some(&expected));
}

#[test]
fn a_cell_of_another_type_ends_the_import_unless_it_is_said_otherwise() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("a.csv"), "n.int32()\n1\nx\n2\n").expect("written");
    let line =
        ["--null", "-d", "t", "--type", "csv", "--headerline", "--columnsHaveTypes", "a.csv"];
    let finished = run(folder.path(), &line);
    assert_eq!(finished.status, Some(1), "{}", finished.stderr);
    assert!(finished.stderr.contains("Failed: stopped at"), "{}", finished.stderr);
    let finished = run(folder.path(), &[&line[..], &["--parseGrace", "autoCast"]].concat());
    assert_eq!(finished.status, Some(0), "{}", finished.stderr);
}

#[test]
fn whatever_keeps_the_order_ends_at_the_first_error() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("a.json"), "{\"a\":1}\nnope\n{\"a\":2}\n").expect("written");
    for words in [
        &["--maintainInsertionOrder"][..],
        &["--mode", "upsert"],
        &["--mode=delete", "--upsertFields", "a.b,c"],
        &["--upsertFields=a"],
        &["--upsert"],
        &["--mode", "merge", "--stopOnError"],
    ] {
        let finished = run(folder.path(), &[&["--null", "-d", "t", "a.json"], words].concat());
        assert_eq!(finished.status, Some(1), "{words:?}: {}", finished.stderr);
        assert!(finished.stderr.contains("Failed: stopped at"), "{words:?}: {}", finished.stderr);
    }
    let finished = run(folder.path(), &["--null", "-d", "t", "a.json", "--mode", "insert"]);
    assert!(!finished.stderr.contains("stopped at"), "{}", finished.stderr);
}

#[test]
fn wrong_usage_is_two_lines_and_ends_with_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let finished = run(folder.path(), &["--headrline"]);
    assert_eq!(finished.status, Some(1));
    let expected = [
        "error parsing command line options: unknown option `headrline`; \
         did you mean --headerline?",
        "try 'mongoimport --help' for more information",
    ];
    assert_eq!(sentences(&finished), expected);
    let version = run(folder.path(), &["--version"]);
    assert!(version.stdout.starts_with("mongoimport version: 100."), "{}", version.stdout);
    assert!(run(folder.path(), &["--help"]).stdout.contains("mongoimport [OPTIONS]"));
}

/// A value that an option can have.
fn value(long: &str) -> &'static str {
    match long {
        "host" => "db1.example.com",
        "port" => "27018",
        "uri" => "mongodb://db1.example.com/",
        "file" => MISSING,
        "config" => concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/options/config.yaml"),
        "fieldFile" => "names",
        "compressors" => "snappy",
        "authenticationMechanism" => "SCRAM-SHA-256",
        "writeConcern" => "{w: 2, j: true}",
        "type" => "csv",
        "parseGrace" => "skipField",
        "mode" => "upsert",
        "upsertFields" => "sku.id,b",
        "numThreads"
        | "dialTimeout"
        | "socketTimeout"
        | "TCPKeepAliveSeconds"
        | "serverSelectionTimeout"
        | "numInsertionWorkers"
        | "numDecodingWorkers"
        | "batchSize" => "2",
        _ => "some",
    }
}

/// What an option cannot do without.
fn companions(long: &str) -> &'static [&'static str] {
    match long {
        "type" => &["--headerline"],
        "headerline" | "fields" | "fieldFile" => &["--type=csv"],
        "parseGrace" | "columnsHaveTypes" | "ignoreBlanks" | "useArrayIndexFields" => {
            &["--type=csv", "--headerline"]
        }
        "authenticationMechanism" | "authenticationDatabase" => {
            &["--username=me", "--password=secret"]
        }
        "password" | "config" => &["--username=me"],
        "username" => &["--password=secret"],
        "sslPEMKeyPassword" => &["--ssl"],
        _ => &[],
    }
}

/// The ways in which an option can be written.
fn forms(option: &PeerOption) -> Vec<String> {
    let value = match option.takes {
        Takes::Nothing | Takes::Level => String::new(),
        _ => format!("={}", value(option.long)),
    };
    let long = format!("--{}{value}", option.long);
    let short = option.short.map(|short| format!("-{short}{}", value.trim_start_matches('=')));
    std::iter::once(long).chain(short).collect()
}

#[test]
fn every_option_of_mongoimport_is_taken_or_refused_with_a_reason() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("names"), "a\nb\n").expect("written");
    // A certificate is read before the file is looked for.
    let options = OPTIONS
        .iter()
        .filter(|option| !["help", "version", "sslCAFile", "sslPEMKeyFile"].contains(&option.long));
    for option in options {
        for form in forms(option) {
            let mut line = vec![form.as_str(), MISSING];
            line.extend(companions(option.long));
            if !["db", "collection"].contains(&option.long) {
                line.push("--db=shop");
            }
            if option.long == "file" {
                line.remove(1);
            }
            let finished = run(folder.path(), &line);
            assert_eq!(finished.status, Some(1), "{line:?}: {}", finished.stderr);
            let said = &finished.stderr;
            match option.answer {
                Answer::Same | Answer::Ignored(_) if form.contains("quiet") => {
                    assert!(said.contains(MISSING), "{line:?}: {said}");
                }
                Answer::Same => {
                    let expected = format!(
                        "Failed: cannot be opened: No such file or directory (os error 2), in {MISSING}"
                    );
                    assert!(said.contains(&expected), "{line:?}: {said}");
                }
                Answer::Ignored(why) => assert!(said.contains(why), "{line:?}: {said}"),
                Answer::Refused(why) => {
                    let told = said.contains("error parsing command line options: ");
                    assert!(told && said.contains(why), "{line:?}: {said}");
                }
            }
        }
    }
}
