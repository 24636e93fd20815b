//! Tests of the real binary and of the clone around it; none needs a server.

#![expect(clippy::expect_used, reason = "a test that cannot go on says so by panicking")]

#[path = "../support/program.rs"]
mod program;

mod archive;
mod bench;
mod better;
mod bound;
mod broken;
mod broken_archives;
mod chance;
mod cli;
mod clone;
mod connection;
mod damaged_documents;
mod fuzz;
mod golden;
mod help;
mod import;
mod inspect_json;
mod killed;
mod mangling;
mod mixed_schema;
mod mongoimport;
mod mongorestore;
mod options;
mod salvage;
mod seed;
mod shown;
mod simulation;
