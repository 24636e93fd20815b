//! Fuzzes patterns over names.
#![no_main]

#[path = "../subjects.rs"]
#[expect(dead_code, reason = "each target has its own subject")]
mod subjects;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| subjects::pattern(bytes));
