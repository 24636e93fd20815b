//! Parallel bulk restore and import for MongoDB.
//!
//! The rooms below stand in the order in which data passes through them: a dump is listed, a plan
//! is made of it, readers yield documents, batches group them, the loader sends batches to a
//! target, and a report says what happened. `docs/architecture.md` tells which room may use which.
//!
//! # From a program
//!
//! A program that restores dumps itself makes [`RestoreOptions`] and runs a [`Restore`]. What
//! happens is told to an [`Observer`], what came of it is a [`Report`]. Nothing is printed.
//!
//! ```no_run
//! use std::sync::Arc;
//! use std::time::Duration;
//! use restorm::{Destination, Event, ExitStatus, Observer, Restore, RestoreOptions, Workers};
//!
//! struct Dots;
//!
//! impl Observer for Dots {
//!     fn observe(&self, _at: Duration, event: &Event) {
//!         if let Event::DataEnded { .. } = event {
//!             eprint!(".");
//!         }
//!     }
//! }
//!
//! # async fn migrate() -> Result<(), restorm::Error> {
//! let mut options = RestoreOptions::new("dump", Destination::server("mongodb://localhost"));
//! options.database = Some("shop".into());
//! options.settings.workers = Workers::Fixed(16);
//! let restore = Restore::new(options).observed_by(Arc::new(Dots));
//! // Another thread may call `stop.request()`.
//! let stop = restore.stop_handle();
//! let report = restore.run().await?;
//! if report.exit_status != ExitStatus::Restored {
//!     eprintln!("{} documents were refused", report.balance.rejected);
//! }
//! # drop(stop);
//! # Ok(())
//! # }
//! ```
//!
//! `docs/library.md` says more, and `examples/migrate.rs` is a whole program.

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

pub mod exporter;

// Commands with rooms of their own.
pub mod bench;
pub mod probe;
pub mod seed;

// What programs use that restore dumps themselves.
pub use command::restore::{
    BatchLimits, Connection, Destination, ExistingPolicy, IndexPolicy, Insertion, Journal,
    LoadSettings, OccupiedPolicy, OnRejection, RateLimit, Restore, RestoreOptions, Selection, Stop,
    SurveyDetail, Validation, Workers, WriteConcern,
};
pub use error::{Error, ErrorKind};
pub use exit::ExitStatus;
pub use report::{Event, Observer, Report, Silent};

// The vocabulary every room speaks.
pub mod changes;
pub mod clock;
pub mod error;
pub mod exit;
pub mod facts;
pub mod frame;
pub mod limits;
pub mod memory;
pub mod namespace;
pub mod sample;
pub mod sum;
