//! Fuzzes the text of a prelude.
#![no_main]

#[path = "../subjects.rs"]
mod subjects;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| subjects::prelude(bytes));
