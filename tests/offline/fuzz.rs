//! The subjects of the fuzzers over small seeds and what seeds become when they are cut and flipped.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::chance::Chance;

#[path = "../fuzz/subjects.rs"]
mod subjects;

/// Changed copies of each seed.
const COPIES: u64 = 300;

type Subject = (&'static str, fn(&[u8]));

const SUBJECTS: [Subject; 10] = [
    ("archive", subjects::archive),
    ("extended_json", subjects::extended_json),
    ("filename", subjects::filename),
    ("frames", subjects::frames),
    ("ledger", subjects::ledger),
    ("metadata", subjects::metadata),
    ("pattern", subjects::pattern),
    ("prelude", subjects::prelude),
    ("records", subjects::records),
    ("salvage", subjects::salvage),
];

/// The variable that says for how many seconds each subject gets changed seeds.
const SECONDS: &str = "RESTORM_FUZZ_SECONDS";

/// The seeds of a subject.
fn seeds(name: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/fuzz").join(name);
    let items = std::fs::read_dir(folder).expect("a folder of seeds");
    let mut paths: Vec<_> = items.map(|item| item.expect("it can be listed").path()).collect();
    paths.sort();
    let seeds: Vec<_> = paths.iter().map(|path| std::fs::read(path).expect("a seed")).collect();
    assert!(!seeds.is_empty(), "{name} has no seeds");
    seeds
}

/// Gives a subject a changed seed; a failure names its number.
fn try_changed(name: &str, subject: fn(&[u8]), seed: &[u8], number: u64) {
    let bytes = changed(seed.to_vec(), &mut Chance::new(number));
    let tried = std::panic::catch_unwind(|| subject(&bytes));
    if let Err(failure) = tried {
        let shown = String::from_utf8_lossy(&bytes).escape_debug().to_string();
        let why = failure.downcast_ref::<String>().cloned().unwrap_or_default();
        panic!("{name}, change {number}: {why}: {shown}");
    }
}

#[test]
fn seeds_and_their_changed_copies_keep_every_promise() {
    for (name, subject) in SUBJECTS {
        for seed in seeds(name) {
            subject(&seed);
            (0..COPIES).for_each(|number| try_changed(name, subject, &seed, number));
        }
    }
}

/// Runs for as long as `make fuzz` asks for, and does nothing without it. Changes add up: each is
/// made to what a few before it have left.
#[test]
fn changed_seeds_keep_every_promise_for_as_long_as_asked() {
    let asked = std::env::var(SECONDS).ok().filter(|set| !set.is_empty());
    let Some(seconds) = asked else { return };
    let time = Duration::from_secs(seconds.parse().expect("a number of seconds"));
    let subjects = SUBJECTS.map(|(name, subject)| {
        std::thread::spawn(move || {
            let (began, seeds, mut number) = (Instant::now(), seeds(name), COPIES);
            while began.elapsed() < time {
                for seed in &seeds {
                    let mut bytes = seed.clone();
                    for _ in 0..4 {
                        number += 1;
                        try_changed(name, subject, &bytes, number);
                        bytes = changed(bytes, &mut Chance::new(number));
                    }
                }
            }
            (name, number - COPIES)
        })
    });
    for subject in subjects {
        let (name, tried) = subject.join().expect("no promise is broken");
        assert!(tried > 0, "{name} was tried");
    }
}

#[test]
fn every_subject_has_its_target() {
    let targets = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/fuzz_targets");
    let mut names: Vec<_> = std::fs::read_dir(targets)
        .expect("the folder is there")
        .map(|item| item.expect("it can be listed").file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    assert_eq!(names, SUBJECTS.map(|(name, _)| format!("{name}.rs")));
}

fn changed(mut bytes: Vec<u8>, chance: &mut Chance) -> Vec<u8> {
    for _ in 0..chance.between(1, 3) {
        let length = bytes.len();
        if length == 0 {
            return bytes;
        }
        let at = chance.below(length);
        match chance.below(4) {
            0 => bytes[at] ^= 1 << chance.below(8),
            1 => bytes.truncate(at),
            2 => drop(bytes.remove(at)),
            _ => bytes.insert(at, u8::try_from(chance.below(256)).expect("a byte")),
        }
    }
    bytes
}
