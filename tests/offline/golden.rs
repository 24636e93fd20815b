//! Plans and inspections of the genuine dumps, word for word.
//!
//! The expected texts lie in `testdata/golden`. `UPDATE_GOLDEN=1 cargo test --test offline golden`
//! writes them anew; what changed is then seen in the difference to the last commit.

use std::path::PathBuf;

use crate::program::Program;

/// The variable that has the expected texts written anew.
const UPDATE: &str = "UPDATE_GOLDEN";

/// The folder that dumps are named from, so that no path depends on the machine.
fn testdata() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("testdata")
}

/// Compares what a command prints with the expected text of this name.
fn check(name: &str, arguments: &[&str], status: i32) {
    let finished = Program::restorm(arguments).in_folder(testdata()).run();
    assert_eq!(finished.status, Some(status), "{name}: {}", finished.stderr);
    assert_eq!(finished.stderr, "", "{name}");
    let path = testdata().join("golden").join(name);
    if std::env::var_os(UPDATE).is_some() {
        std::fs::create_dir_all(testdata().join("golden")).expect("a folder");
        std::fs::write(&path, &finished.stdout).expect("written");
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    let differs = finished
        .stdout
        .lines()
        .zip(expected.lines().chain(std::iter::repeat("(nothing)")))
        .zip(1..)
        .find(|((line, expected), _)| line != expected);
    if let Some(((line, expected), number)) = differs {
        panic!(
            "{name}:{number} differs; {UPDATE}=1 accepts it\n     is: {line}\n golden: {expected}"
        );
    }
    assert_eq!(finished.stdout, expected, "{name}: lines are missing");
}

/// The dumps that are planned and inspected.
const DUMPS: [&str; 10] = [
    "full_4.2",
    "full_4.4",
    "full_5.0",
    "full_6.0",
    "kitchen_6.0_gzip",
    "shop_users_6.0",
    "view_as_collection_6.0",
    "full_6.0.archive",
    "kitchen_4.2.archive",
    "shop_6.0.archive.gz",
];

#[test]
fn plans_read_as_before() {
    for dump in DUMPS {
        let path = format!("dumps/{dump}");
        check(&format!("plan_{dump}.txt"), &["restore", "--dry-run", "--null", &path], 0);
    }
}

#[test]
fn plans_of_a_part_read_as_before() {
    let plan = ["restore", "--dry-run", "--null"];
    let with = |more: &[&'static str]| [&plan[..], more].concat();
    let database = with(&["dumps/full_6.0/shop", "--db", "copy", "--no-indexes"]);
    check("plan_database_as_another.txt", &database, 0);
    let in_order = with(&["dumps/full_6.0", "-d", "shop", "-c", "orders"]);
    check("plan_one_collection.txt", &[&in_order[..], &["--maintain-insertion-order"]].concat(), 0);
    let file = with(&["dumps/kitchen_6.0_gzip/kitchen/system.buckets.weather.bson.gz"]);
    check("plan_one_file.txt", &file, 0);
}

#[test]
fn inspections_read_as_before() {
    for dump in DUMPS {
        let path = format!("dumps/{dump}");
        check(&format!("inspect_{dump}.txt"), &["inspect", &path], 0);
        check(&format!("inspect_{dump}.json"), &["inspect", "--json", &path], 0);
    }
    check("inspect_truncated.txt", &["inspect", "broken/truncated_document"], 1);
    check("inspect_truncated.json", &["inspect", "--json", "broken/truncated_document"], 1);
}
