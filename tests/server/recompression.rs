//! A dump that someone packed or unpacked after it was taken is the same dump.

use crate::golden::expected;
use crate::support::dump::Dump;
use crate::support::{Restore, Server, differences, lacks, state_of};
use std::io::Write;
use std::path::Path;

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).expect("memory takes everything");
    encoder.finish().expect("memory takes everything")
}

fn zstandard(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 1).expect("memory takes everything")
}

/// A dump whose files are packed and have this behind their names.
fn packed(pack: impl Fn(&Path, &[u8]) -> Vec<u8>, suffix: &str) -> Dump {
    let dump = Dump::copy_of("full_6.0");
    for file in dump.files() {
        let bytes = std::fs::read(&file).unwrap();
        let mut name = file.clone().into_os_string();
        name.push(suffix);
        std::fs::remove_file(&file).unwrap();
        std::fs::write(name, pack(&file, &bytes)).unwrap();
    }
    dump
}

#[track_caller]
fn restores_to_the_same_state(dump: &Dump) {
    if lacks("what this dump holds", [6, 0]) {
        return;
    }
    let server = Server::private(&[]);
    Restore::new(server.uri(), dump.path()).run().ended(0);
    let found = state_of(&server.client(), &["kitchen", "odd", "shop"]);
    assert_eq!(differences(&expected("full_6.0"), &found), [""; 0]);
}

#[test]
fn packed_with_gzip() {
    restores_to_the_same_state(&packed(|_, bytes| gzip(bytes), ".gz"));
}

#[test]
fn packed_with_zstd() {
    restores_to_the_same_state(&packed(|_, bytes| zstandard(bytes), ".zst"));
}

#[test]
fn packed_in_several_pieces() {
    let pieces = |_: &Path, bytes: &[u8]| {
        let (first, second) = bytes.split_at(bytes.len() / 2);
        [gzip(first), gzip(second)].concat()
    };
    restores_to_the_same_state(&packed(pieces, ".gz"));
}

#[test]
fn gzip_under_the_name_of_a_plain_file() {
    restores_to_the_same_state(&packed(|_, bytes| gzip(bytes), ""));
}

#[test]
fn zstd_under_the_name_of_a_plain_file() {
    restores_to_the_same_state(&packed(|_, bytes| zstandard(bytes), ""));
}

#[test]
fn plain_files_under_the_name_of_packed_ones() {
    restores_to_the_same_state(&packed(|_, bytes| bytes.to_vec(), ".gz"));
}

#[test]
fn data_packed_otherwise_than_metadata() {
    let mixed = |file: &Path, bytes: &[u8]| {
        if file.extension().is_some_and(|extension| extension == "bson") {
            zstandard(bytes)
        } else {
            gzip(bytes)
        }
    };
    restores_to_the_same_state(&packed(mixed, ""));
}
