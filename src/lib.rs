//! Parallel bulk restore and import for MongoDB.
//!
//! The rooms below stand in the order in which data passes through them: a dump is listed, a plan
//! is made of it, readers yield documents, batches group them, the loader sends batches to a
//! target, and a report says what happened. `docs/architecture.md` tells which room may use which.

// The door: what was typed, and the commands it leads to.
pub mod cli;
pub mod command;

// The flow, from the dump to the report.
pub mod dump;
pub mod plan;
pub mod reader;

pub mod batch;

pub mod load;
pub mod target;

pub mod report;

// Commands with rooms of their own.
pub mod seed;

// The vocabulary every room speaks.
pub mod error;
pub mod exit;
pub mod facts;
pub mod frame;
pub mod limits;
pub mod namespace;
