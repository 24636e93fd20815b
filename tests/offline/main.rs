//! Tests of the real binary and of the clone around it; none needs a server.

#![expect(clippy::expect_used, reason = "a test that cannot go on says so by panicking")]

#[path = "../support/program.rs"]
mod program;

mod better;
mod broken;
mod chance;
mod cli;
mod clone;
mod fuzz;
mod golden;
mod help;
mod inspect_json;
mod mangling;
mod mongorestore;
mod options;
mod simulation;
