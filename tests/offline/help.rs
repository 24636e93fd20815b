//! The help texts in `docs/help` are those of the binary.

use crate::program::Program;
use std::path::Path;

/// Set, the files are written again rather than compared.
const BLESS: &str = "RESTORM_BLESS";

/// Each page of the manual and the words that show it.
const PAGES: [(&str, &[&str]); 9] = [
    ("restorm.txt", &["--help"]),
    ("restore.txt", &["restore", "--help"]),
    ("import.txt", &["import", "--help"]),
    ("verify.txt", &["verify", "--help"]),
    ("survey.txt", &["survey", "--help"]),
    ("inspect.txt", &["inspect", "--help"]),
    ("probe.txt", &["probe", "--help"]),
    ("seed.txt", &["seed", "--help"]),
    ("bench.txt", &["bench", "--help"]),
];

fn page(words: &[&str]) -> String {
    let help = Program::restorm(words).env("COLUMNS", "100").run();
    assert_eq!(help.status, Some(0), "{words:?}: {}", help.stderr);
    // The wrapped text of options ends some lines in spaces.
    let lines = help.stdout.lines().map(|line| format!("{}\n", line.trim_end()));
    lines.collect()
}

#[test]
fn help_in_the_manual_is_current() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/help");
    for (name, words) in PAGES {
        let (path, current) = (folder.join(name), page(words));
        if std::env::var_os(BLESS).is_some() {
            std::fs::write(&path, &current).expect("the page can be written");
        }
        let kept = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(kept == current, "docs/help/{name} is not current; {BLESS}=1 writes it again");
    }
}

#[test]
fn every_command_has_its_page() {
    let help = page(&["--help"]);
    let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let named: Vec<_> = commands
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.split_whitespace().next())
        .filter(|command| *command != "help")
        .collect();
    let pages: Vec<_> = PAGES[1..].iter().map(|(_, words)| words[0]).collect();
    assert_eq!(named, pages);
}

#[test]
fn the_variable_names_a_server_only_where_nothing_else_does() {
    let wrong = "none://";
    for (words, expected) in [
        (&["restore", "testdata/dumps/orders_stdout.bson"][..], Some(2)),
        (&["restore", "testdata/dumps/orders_stdout.bson", "--null"], Some(0)),
        (&["restore", "testdata/dumps/orders_stdout.bson", "--host", "127.0.0.1:1"], Some(1)),
    ] {
        let finished = Program::restorm(words).env("RESTORM_URI", wrong).run();
        assert_eq!(finished.status, expected, "{words:?}: {}", finished.stderr);
    }
}
