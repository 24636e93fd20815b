//! A migration program: restores a dump with a progress of its own and reads the report.
//!
//! ```text
//! cargo run --example migrate -- dump mongodb://localhost [database]
//! ```

#![expect(clippy::print_stdout, reason = "a program says what it does")]

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use restorm::{Destination, Error, Event, ExitStatus, Observer, Report, Restore, RestoreOptions};

/// Counts documents as the server takes them, and says so after each hundred thousand.
#[derive(Default)]
pub struct Meter {
    documents: AtomicU64,
}

impl Meter {
    /// Documents that the server has taken so far.
    pub fn documents(&self) -> u64 {
        self.documents.load(Ordering::Relaxed)
    }
}

impl Observer for Meter {
    fn observe(&self, at: Duration, event: &Event) {
        const STEP: u64 = 100_000;
        if let Event::Written { inserted, .. } = event {
            let before = self.documents.fetch_add(*inserted, Ordering::Relaxed);
            if (before + inserted) / STEP > before / STEP {
                println!("{} documents after {:.1} s", before + inserted, at.as_secs_f64());
            }
        }
    }
}

/// Restores a dump, or one database of it, over whatever is there.
///
/// # Errors
///
/// Whatever keeps the restore from beginning; the rest is in the report.
pub async fn migrate(
    dump: &str,
    uri: &str,
    database: Option<String>,
    meter: Arc<Meter>,
) -> Result<Report, Error> {
    let mut options = RestoreOptions::new(dump, Destination::server(uri));
    options.database = database;
    options.selection.existing = restorm::ExistingPolicy::Drop;
    Restore::new(options).observed_by(meter).run().await
}

/// What is said of a report, a line each.
pub fn summary(report: &Report) -> Vec<String> {
    let mut lines = vec![format!(
        "{} of {} documents in {:.1} s",
        report.balance.inserted,
        report.balance.read,
        report.times.total.as_secs_f64()
    )];
    for collection in &report.collections {
        if let Some(error) = &collection.error {
            lines.push(format!("{}: {error}", collection.namespace));
        }
        for failure in &collection.failures {
            lines.push(format!(
                "{}: {} documents refused with code {}",
                collection.namespace, failure.count, failure.code
            ));
        }
    }
    lines
}

#[tokio::main]
async fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let (Some(dump), Some(uri)) = (arguments.next(), arguments.next()) else {
        println!("usage: migrate DUMP URI [DATABASE]");
        return ExitCode::from(2);
    };
    match migrate(&dump, &uri, arguments.next(), Arc::default()).await {
        Ok(report) => {
            for line in summary(&report) {
                println!("{line}");
            }
            ExitCode::from(u8::from(report.exit_status != ExitStatus::Restored))
        }
        Err(error) => {
            println!("not restored: {error}");
            ExitCode::FAILURE
        }
    }
}
