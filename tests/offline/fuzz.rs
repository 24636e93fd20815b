//! The subjects of the fuzzers over small seeds and what seeds become when they are cut and flipped.

use std::path::Path;

use crate::chance::Chance;

#[path = "../fuzz/subjects.rs"]
mod subjects;

/// Changed copies of each seed.
const COPIES: u64 = 300;

type Subject = (&'static str, fn(&[u8]));

const SUBJECTS: [Subject; 6] = [
    ("extended_json", subjects::extended_json),
    ("filename", subjects::filename),
    ("frames", subjects::frames),
    ("metadata", subjects::metadata),
    ("prelude", subjects::prelude),
    ("records", subjects::records),
];

#[test]
fn seeds_and_their_changed_copies_keep_every_promise() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/fuzz");
    for (name, subject) in SUBJECTS {
        let mut seeds = 0;
        for item in std::fs::read_dir(folder.join(name)).expect("a folder of seeds") {
            let path = item.expect("it can be listed").path();
            let seed = std::fs::read(&path).expect("a seed");
            subject(&seed);
            for number in 0..COPIES {
                subject(&changed(seed.clone(), &mut Chance::new(number)));
            }
            seeds += 1;
        }
        assert!(seeds > 0, "{name} has no seeds");
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
