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

mod acknowledgement;
mod archive;
mod archive_special;
mod auth;
mod bench;
mod better;
mod bound;
mod bytes;
mod compressors;
mod durability;
mod existing;
mod failures;
mod faults;
mod full_disk;
mod golden;
mod harness;
mod import;
mod index_fixups;
mod interruption;
mod library;
mod memory;
mod metrics;
mod modes;
mod mongoimport;
mod mongorestore;
mod namespaces;
mod oplog;
mod options;
mod pacing;
mod passing;
mod preflight;
mod preserve_uuid;
mod probe;
mod probe_tls;
mod probe_trouble;
mod recompression;
mod rejects;
mod replica_set;
mod resume;
mod salvage;
mod seed;
mod shown;
mod splitting;
mod survey;
mod time_series;
mod tls;
mod users;
mod verify;
mod write_concern;
