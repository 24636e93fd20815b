//! Every option of mongorestore, through the real binary and in each of its forms, and in the
//! document that lists them.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use restorm::cli::mongorestore::options::{Answer, GONE_FLAGS, OPTIONS, PeerOption, Takes};

use crate::program::{Finished, Program};

/// A dump that is not there: it is looked for after the words were taken and before a server is.
const MISSING: &str = "no-such-dump";

/// A certificate with its key, in a file of a folder that lasts as long as the tests.
static CERTIFICATE: LazyLock<(tempfile::TempDir, String)> = LazyLock::new(|| {
    let folder = tempfile::tempdir().expect("a folder");
    let made = rcgen::generate_simple_self_signed(vec!["localhost".into()]).expect("it is made");
    let path = folder.path().join("client.pem").to_str().expect("a plain path").to_owned();
    std::fs::write(&path, made.cert.pem() + &made.signing_key.serialize_pem()).expect("written");
    (folder, path)
});

/// A value that an option can have.
fn value(long: &str) -> &'static str {
    match long {
        "host" => "db1.example.com",
        "port" => "27018",
        "uri" => "mongodb://db1.example.com/",
        "dir" | "archive" => MISSING,
        "config" => concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/options/config.yaml"),
        "sslCAFile" | "sslPEMKeyFile" => &CERTIFICATE.1,
        "compressors" => "snappy",
        "authenticationMechanism" => "SCRAM-SHA-256",
        "writeConcern" => "{w: 2, j: true}",
        "nsInclude" | "nsExclude" | "nsFrom" | "nsTo" => "shop.*",
        "oplogLimit" => "1700000000:1",
        "numThreads"
        | "dialTimeout"
        | "socketTimeout"
        | "TCPKeepAliveSeconds"
        | "serverSelectionTimeout"
        | "numParallelCollections"
        | "numInsertionWorkersPerCollection"
        | "batchSize" => "2",
        _ => "some",
    }
}

/// What an option cannot do without.
fn companions(long: &str) -> &'static [&'static str] {
    match long {
        "collection" | "restoreDbUsersAndRoles" => &["--db=shop"],
        "sslCAFile" | "sslPEMKeyFile" | "sslPEMKeyPassword" => &["--ssl"],
        "preserveUUID" => &["--drop"],
        "nsFrom" => &["--nsTo=other.*"],
        "nsTo" => &["--nsFrom=other.*"],
        "oplogLimit" | "oplogFile" => &["--oplogReplay"],
        "authenticationMechanism" | "authenticationDatabase" => {
            &["--username=me", "--password=secret"]
        }
        "username" => &["--password=secret"],
        "config" | "password" => &["--username=me"],
        _ => &[],
    }
}

/// The words in which an option can be typed.
fn forms(option: &PeerOption) -> Vec<Vec<String>> {
    let (long, text) = (option.long, value(option.long));
    let mut forms = match option.takes {
        Takes::Nothing => vec![vec![format!("--{long}")]],
        Takes::Text | Takes::Number | Takes::List => {
            vec![vec![format!("--{long}"), text.into()], vec![format!("--{long}={text}")]]
        }
        Takes::Optional => vec![vec![format!("--{long}")], vec![format!("--{long}={text}")]],
        Takes::Level => vec![vec![format!("--{long}")], vec![format!("--{long}=2")]],
    };
    match (option.short, option.takes) {
        (Some(short), Takes::Level) => {
            for word in ["", "v", "vv", "=2"] {
                forms.push(vec![format!("-{short}{word}")]);
            }
        }
        (Some(short), _) => {
            forms.push(vec![format!("-{short}"), text.into()]);
            forms.push(vec![format!("-{short}{text}")]);
            forms.push(vec![format!("-{short}={text}")]);
        }
        (None, _) => {}
    }
    if option.takes == Takes::List {
        forms.push(vec![format!("--{long}={text}"), format!("--{long}=shop.orders")]);
    }
    if option.takes == Takes::Text && option.short.is_some() {
        forms.push(vec![format!("--{long}=other"), format!("--{long}={text}")]);
    }
    forms
}

/// The binary under two names: our own with the command, and that of the peer.
struct Names {
    _folder: tempfile::TempDir,
    link: PathBuf,
}

impl Names {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let link = folder.path().join("mongorestore");
        symlink(env!("CARGO_BIN_EXE_restorm"), &link).expect("a link");
        Self { _folder: folder, link }
    }

    /// Runs a line under both names.
    fn run(&self, words: &[String]) -> [Finished; 2] {
        let link = self.link.to_str().expect("a plain path");
        [Program::restorm(&["restore"]).args(words).run(), Program::of(link, words).run()]
    }
}

/// The line of a form, with a dump that is missing.
fn line(option: &PeerOption, form: &[String]) -> Vec<String> {
    let mut companions: Vec<_> = companions(option.long).iter().map(ToString::to_string).collect();
    if ["nsFrom", "nsTo"].contains(&option.long) && form[1..].iter().any(|w| w.starts_with("--")) {
        // They come in pairs.
        companions.push(companions[0].replace('*', "orders"));
    }
    let names_dump = form.iter().any(|word| word.contains(MISSING) || word == "--archive");
    let dump = (!names_dump).then(|| MISSING.to_owned());
    dump.into_iter().chain(form.iter().cloned()).chain(companions).collect()
}

fn is_taken(names: &Names, line: &[String]) {
    let [own, peer] = names.run(line);
    // An archive on standard input is looked for there, and nothing comes.
    let is_input = line.iter().any(|word| word == "--archive");
    let expected = if is_input { "standard input" } else { MISSING };
    for finished in [&own, &peer] {
        assert_eq!(finished.status, Some(1), "{line:?}: {}", finished.stderr);
        assert!(finished.stderr.contains(expected), "{line:?}: {}", finished.stderr);
    }
    assert!(peer.stderr.contains("\tFailed: "), "{line:?}: {}", peer.stderr);
}

fn is_refused(names: &Names, line: &[String], expected: &str) {
    let [own, peer] = names.run(line);
    assert_eq!(own.status, Some(2), "{line:?}: {}", own.stderr);
    assert!(own.stderr.contains(expected), "{line:?}: {}", own.stderr);
    assert_eq!(peer.status, Some(1), "{line:?}: {}", peer.stderr);
    assert!(peer.stderr.contains(expected), "{line:?}: {}", peer.stderr);
    let told = "\terror parsing command line options: ";
    assert!(peer.stderr.contains(told), "{line:?}: {}", peer.stderr);
}

#[test]
fn every_option_of_mongorestore_is_taken_or_refused_with_a_reason() {
    let names = Names::new();
    for option in OPTIONS.iter().chain(&GONE_FLAGS) {
        for form in forms(option) {
            let line = line(option, &form);
            match option.answer {
                Answer::Same | Answer::Ignored(_) if ["help", "version"].contains(&option.long) => {
                    for finished in names.run(&line) {
                        assert_eq!(finished.status, Some(0), "{line:?}: {}", finished.stderr);
                        assert!(finished.stdout.contains("restor"), "{line:?}");
                        assert_eq!(finished.stderr, "", "{line:?}");
                    }
                }
                Answer::Same | Answer::Ignored(_) => is_taken(&names, &line),
                Answer::Refused(why) => is_refused(&names, &line, why),
            }
        }
    }
}

#[test]
fn a_flag_with_a_value_and_an_option_without_one_are_refused() {
    let names = Names::new();
    for option in OPTIONS.iter().chain(&GONE_FLAGS) {
        let long = option.long;
        match option.takes {
            Takes::Nothing => {
                if long != "journal" {
                    let expected = format!("bool flag `--{long}' cannot have an argument");
                    is_refused(&names, &[format!("--{long}=true")], &expected);
                }
            }
            Takes::Text if long == "password" => {}
            Takes::Text | Takes::Number | Takes::List => {
                let expected = format!("expected argument for flag `--{long}'");
                is_refused(&names, &[format!("--{long}")], &expected);
                let expected = format!("{expected}, but got option `-1'");
                is_refused(&names, &[format!("--{long}"), "-1".into()], &expected);
            }
            Takes::Optional | Takes::Level => {}
        }
    }
}

/// The row of an option in the document: its first cell names it, its second says what becomes
/// of it.
fn row<'a>(document: &'a str, long: &str) -> &'a str {
    let names = [format!("`--{long}`"), format!("`--{long}="), format!("`--{long}[=")];
    let rows: Vec<_> = document
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.split_once(" | "))
        .filter(|(cell, _)| names.iter().any(|name| cell.contains(name.as_str())))
        .collect();
    assert_eq!(rows.len(), 1, "docs/compatibility.md has one row for --{long}");
    rows[0].1
}

#[test]
fn the_document_says_of_every_option_what_the_program_does() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/compatibility.md");
    let document = std::fs::read_to_string(path).expect("there is a document");
    let (_, document) = document.split_once("\n## Options\n").expect("there is a list");
    let (document, _) = document.split_once("\n## ").expect("something follows");
    for option in OPTIONS.iter().chain(&GONE_FLAGS) {
        let row = row(document, option.long);
        let expected: &[&str] = match option.answer {
            Answer::Same => &["same", "better"],
            Answer::Ignored(_) => &["ignored"],
            Answer::Refused(_) => &["refused"],
        };
        assert!(expected.iter().any(|word| row.starts_with(word)), "--{}: {row}", option.long);
        if let Some(short) = option.short {
            assert!(document.contains(&format!("`-{short}`")), "-{short} is not in the document");
        }
    }
}

#[test]
fn the_small_rules_of_the_command_line_are_kept() {
    let names = Names::new();
    let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
    for line in [
        "no-such-dump -vvv --quiet",
        "-d a -d b --db=c no-such-dump --drop --drop",
        "-j 0 no-such-dump",
        "-j4 --numInsertionWorkersPerCollection=0 no-such-dump --batchSize=0",
        "no-such-dump mongodb://db1/",
        // An empty word is what an unset variable of a script leaves behind.
        "--db=  no-such-dump",
    ] {
        is_taken(&names, &words(line));
    }
    for (line, expected) in [
        ("-v=much x", "Invalid verbosity value given"),
        ("mongodb://a mongodb://b", "more than one connection string"),
        ("--numInsertionWorkersPerCollection=-1 x", "cannot specify a negative number"),
        ("--batchSize=-1 x", "a negative number of documents"),
        ("-c orders x", "--db <NAME>"),
    ] {
        is_refused(&names, &words(line), expected);
    }
}

/// What the peer refuses because two places say different things of the server, and we do as well.
const DISAGREEMENTS: [(&str, &str); 21] = [
    ("mongodb://a mongodb://b x", "more than one connection string"),
    ("--uri=mongodb://a mongodb://b x", "a connection string is given twice"),
    ("--uri=mongodb://a:1 --port=2 x", "different ports"),
    ("--uri=mongodb://a --host=b x", "different hosts"),
    ("--uri=mongodb://a,b --host=b x", "different hosts"),
    ("--uri=mongodb://a/?replicaSet=r --host=s/a x", "different replica sets"),
    (
        "--uri=mongodb://a/?serverSelectionTimeoutMS=1 --serverSelectionTimeout=2 x",
        "different server selection timeout",
    ),
    ("--uri=mongodb://a/?connectTimeoutMS=1 --dialTimeout=2 x", "different connection timeout"),
    ("--uri=mongodb://a/?compressors=zlib --compressors=zstd x", "different compressors"),
    ("--uri=mongodb://u:p@a --username=v x", "different users"),
    ("--uri=mongodb://u:p@a --password=q x", "different passwords"),
    (
        "--uri=mongodb://u:p@a/?authSource=b --authenticationDatabase=c x",
        "different authentication databases",
    ),
    (
        "--uri=mongodb://u:p@a/?authMechanism=PLAIN --authenticationMechanism=SCRAM-SHA-1 x",
        "different authentication mechanisms",
    ),
    ("--uri=mongodb://a/b --db=c x", "different databases"),
    ("--uri=mongodb://a/?tls=false --ssl x", "different TLS settings"),
    ("--uri=mongodb://a/?tls=true&tlsInsecure=false --tlsInsecure x", "different TLS settings"),
    ("--uri=mongodb://a/?tls=true&tlsCAFile=b --sslCAFile=c x", "different CA files"),
    (
        "--uri=mongodb://a/?tls=true&tlsCertificateKeyFile=b --sslPEMKeyFile=c x",
        "different certificate files",
    ),
    (
        "--uri=mongodb://a/?tls=true&tlsCertificateKeyFilePassword=b --sslPEMKeyPassword=c x",
        "different key passwords",
    ),
    (
        "--uri=mongodb://a/?authMechanismProperties=AWS_SESSION_TOKEN:b --awsSessionToken=c x",
        "different session tokens",
    ),
    ("--gssapiServiceName=a x", "Kerberos"),
];

/// What else the peer refuses before it looks at a dump, and we do as well.
const REFUSED: [(&str, &str); 24] = [
    ("x y", "unexpected argument 'y'"),
    ("x --dir=y", "the dump is named twice"),
    ("x --config=no-such-file", "the configuration cannot be read"),
    ("x --authenticationMechanism=X", "no authentication mechanism `X`"),
    ("x --writeConcern={w:-1}", "invalid write concern"),
    ("x --writeConcern=-1", "invalid write concern"),
    ("x --writeConcern -1", "but got option `-1'"),
    ("x --collection=c", "--db <NAME>"),
    ("x --restoreDbUsersAndRoles", "needs the database whose users and roles are restored"),
    ("x --restoreDbUsersAndRoles --db=admin", "not for the database admin"),
    ("x --oplogLimit=1", "--oplog-replay"),
    ("x --oplogReplay --oplogLimit=a", "whole numbers below 2^32"),
    ("x --oplogReplay --oplogLimit=4294967296", "whole numbers below 2^32"),
    ("x --oplogFile=y", "--oplog-replay"),
    ("x --oplogReplay --db=a", "is not replayed for the database `a` alone"),
    ("x --oplogReplay mongodb://h/a", "is not replayed for the database `a` alone"),
    ("x --db=a --collection=b --excludeCollection=c", "cannot be used with '--exclude-collection"),
    ("x --db=a --collection=b --excludeCollectionsWithPrefix=c", "cannot be used with"),
    ("x --nsFrom=a", "they come in pairs"),
    ("x --nsFrom=a.* --nsTo=b", "different numbers of stars"),
    ("x --nsFrom=$a.b --nsTo=c", "without its partner"),
    ("x --preserveUUID", "--drop"),
    ("-", "need the name of their collection"),
    ("- --db=a", "need the name of their collection"),
];

#[test]
fn each_conflict_that_the_peer_refuses_is_refused() {
    let names = Names::new();
    for (line, expected) in DISAGREEMENTS.iter().chain(&REFUSED) {
        let words: Vec<_> = line.split(' ').map(str::to_owned).collect();
        is_refused(&names, &words, expected);
    }
}

/// Names of databases are judged when the dump is looked for, which is no matter of usage there
/// either.
#[test]
fn names_that_no_database_can_have_end_the_run() {
    let names = Names::new();
    for name in ["a/b", "a.b", "a$b", &"long".repeat(16)] {
        for finished in names.run(&[MISSING.into(), format!("--db={name}")]) {
            assert_eq!(finished.status, Some(1), "{name}: {}", finished.stderr);
            let expected = "is no name of a database";
            assert!(finished.stderr.contains(expected), "{name}: {}", finished.stderr);
        }
    }
}

/// What the peer refuses and we take, as `docs/compatibility.md` tells among the differences.
#[test]
fn what_only_the_peer_refuses_is_taken() {
    let names = Names::new();
    for line in [
        // A collection can have a dollar in its name, and could not be selected.
        "no-such-dump --db=shop --collection=$x",
        "no-such-dump --nsInclude=shop.$x",
        // Neither of them has any effect.
        "no-such-dump --uri=mongodb://a/?socketTimeoutMS=1 --socketTimeout=2",
        "no-such-dump --tls",
    ] {
        is_taken(&names, &line.split(' ').map(str::to_owned).collect::<Vec<_>>());
    }
}

/// Options of mongodump and of other tools, which neither takes.
#[test]
fn what_is_no_option_there_is_none_here() {
    let names = Names::new();
    for word in [
        "--forceTableScan",
        "--noobjcheck",
        "--ipv6",
        "--file",
        "--filter",
        "--readPreference",
        "--viewsAsCollections",
    ] {
        for (finished, status) in names.run(&[word.to_owned()]).iter().zip([2, 1]) {
            assert_eq!(finished.status, Some(status), "{word}: {}", finished.stderr);
            assert!(finished.stderr.contains(&word[2..]), "{word}: {}", finished.stderr);
        }
    }
}
