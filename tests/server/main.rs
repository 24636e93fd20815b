//! Tests against a real server: one file per subject, each test with a server to itself.

#[path = "../support/program.rs"]
mod program;
mod support;

mod harness;
