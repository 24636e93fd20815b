//! Specs of made-up documents: the example of the documentation, into files, in parts.

use crate::program::Program;
use std::collections::BTreeMap;
use std::path::Path;

const SHOP: &str = "testdata/specs/shop.toml";

/// Runs `restorm seed` with these words; returns what it said.
fn seed(words: &str, status: i32) -> String {
    let root = env!("CARGO_MANIFEST_DIR");
    let words: Vec<_> = words.split_whitespace().collect();
    let made = Program::restorm(&["seed"]).args(&words).in_folder(root).run();
    assert_eq!(made.status, Some(status), "{}", made.stderr);
    made.stderr
}

/// The files below a folder, by their path.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).expect("listed") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        if path.is_dir() {
            let below = files(&path).into_iter();
            found.extend(below.map(|(file, bytes)| (format!("{name}/{file}"), bytes)));
        } else {
            found.insert(name, std::fs::read(&path).expect("read"));
        }
    }
    found
}

#[test]
fn the_documentation_shows_the_example() {
    let read = |name: &str| {
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).expect(name)
    };
    let shown = format!("```toml\n{}```", read(SHOP));
    assert!(read("docs/seeding.md").contains(&shown), "docs/seeding.md shows another {SHOP}");
}

#[test]
fn a_spec_becomes_a_dump_that_inspects_clean() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("dump").display().to_string();
    let said = seed(&format!("--spec {SHOP} --scale 0.1 --out {out}"), 0);
    assert!(said.starts_with("2,800 documents in 3 collections"), "{said}");
    let inspected = Program::restorm(&["inspect", "--deep", "--json"]).arg(&out).run();
    assert_eq!(inspected.status, Some(0), "{}", inspected.stderr);
    let told: serde_json::Value = serde_json::from_str(&inspected.stdout).expect("JSON");
    assert_eq!(told["totals"]["documents"], 2800, "{told}");
    let names: Vec<_> = files(Path::new(&out)).into_keys().collect();
    assert!(names.contains(&"web/sessions.bson".to_owned()), "{names:?}");
    assert!(names.contains(&"shop/orders.metadata.json".to_owned()), "{names:?}");
}

#[test]
fn parts_of_a_spec_joined_are_the_whole_and_threads_do_not_matter() {
    let folder = tempfile::tempdir().expect("a folder");
    let made = |name: &str, words: &str| {
        let out = folder.path().join(name);
        seed(&format!("--spec {SHOP} --out {} {words}", out.display()), 0);
        files(&out)
    };
    let whole = made("whole", "");
    let (first, second) = (made("first", "--count 3500"), made("second", "--from 3500"));
    for name in ["shop/customers.bson", "shop/orders.bson", "web/sessions.bson"] {
        let joined = [&first[name][..], &second[name][..]].concat();
        assert!(whole[name] == joined, "{name}");
    }
    let one_thread = Program::restorm(&["seed", "--spec", SHOP, "--out"])
        .arg(folder.path().join("one"))
        .env("RAYON_NUM_THREADS", "1")
        .in_folder(env!("CARGO_MANIFEST_DIR"))
        .run();
    assert_eq!(one_thread.status, Some(0), "{}", one_thread.stderr);
    assert!(files(&folder.path().join("one")) == whole);
    let archive = folder.path().join("a.archive").display().to_string();
    seed(&format!("--spec {SHOP} --archive {archive}"), 0);
    let inspected = Program::restorm(&["inspect", "--json"]).arg(&archive).run();
    let told: serde_json::Value = serde_json::from_str(&inspected.stdout).expect("JSON");
    assert_eq!(told["totals"]["documents"], 28_000, "{told}");
}

#[test]
fn amounts_are_those_of_the_command_line_where_it_names_them() {
    let null = |words: &str| seed(&format!("--spec {SHOP} --null {words}"), 0);
    assert!(
        null("--documents 50").contains("150 documents inserted"),
        "{}",
        null("--documents 50")
    );
    let said = null("--total-bytes 1MB --seed 4");
    assert!(said.contains("MB") || said.contains("kB"), "{said}");
}

#[test]
fn a_spec_that_is_wrong_is_refused_before_anything_is_made() {
    let folder = tempfile::tempdir().expect("a folder");
    let spec = folder.path().join("wrong.toml");
    std::fs::write(
        &spec,
        "[[collection]]\nname = \"a\"\n[collection.fields]\nb = { type = \"it\" }\n",
    )
    .expect("written");
    let out = folder.path().join("out");
    let said = seed(&format!("--spec {} --out {}", spec.display(), out.display()), 2);
    assert!(said.contains("line 4: a.fields.b: `it` is no type; types are double"), "{said}");
    assert!(said.contains("wrong.toml") && !out.exists(), "{said}");
}

#[test]
fn what_shows_nothing_for_files_is_refused_and_quiet_is_quiet() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("out").display().to_string();
    for words in ["--report r.json", "--progress json", "-v", "--resume"] {
        let said = seed(&format!("--out {out} {words}"), 2);
        assert!(said.contains("is for a server"), "{said}");
    }
    assert_eq!(seed(&format!("--out {out} -q"), 0), "");
}
