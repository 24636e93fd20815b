//! Tests of the real binary and of the clone around it; none needs a server.

#[path = "../support/program.rs"]
mod program;
