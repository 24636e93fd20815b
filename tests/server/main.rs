//! Tests against a real server: one file per subject, each test with a server to itself.
//!
//! Tests are plain functions: the harness brings the runtime, and blocks on it when a server is
//! cleaned, which must not happen on one of its own threads.

#![expect(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test that cannot go on says so by panicking"
)]

#[path = "../support/program.rs"]
mod program;
mod support;

mod better;
mod bytes;
mod failures;
mod faults;
mod golden;
mod harness;
mod interruption;
mod library;
mod mongorestore;
mod options;
mod recompression;
mod versions;
mod write_concern;
