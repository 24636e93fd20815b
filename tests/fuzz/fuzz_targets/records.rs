//! Fuzzes the documents that an archive is built of, around those of its collections.
#![no_main]

#[path = "../subjects.rs"]
#[expect(dead_code, reason = "each target has its own subject")]
mod subjects;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| subjects::records(bytes));
