//! Compares restores with each other: matrix → runner → samples → comparison → report.
//!
//! Every run is a process of its own, so that its processor time and memory are its alone. Each
//! sample is written down before the next run begins. What is said of them is worked out of the
//! samples alone, and can be worked out again.

pub mod compare;
pub mod csv;
pub mod expected;
mod figures;
pub mod machine;
pub mod matrix;
pub mod mongod;
pub mod order;
pub mod page;
pub mod process;
pub mod runner;
pub mod sample;
pub mod search;
pub mod server;
pub mod statistics;
pub mod text;
pub mod tool;
mod work;
