//! A restore as a value, for programs that restore dumps themselves.

use std::sync::Arc;
use std::time::Instant;

use crate::command::restore::{Mode, RestoreOptions, Restored, Stop, restore};
use crate::error::{Error, ErrorKind};
use crate::report::{Observer, Report, Silent};

/// A restore, ready to be run.
///
/// It prints nothing, ends no process and sets no signal handler: what happens is told to an
/// observer, what came of it is returned, and whoever holds the stop handle may end it early.
/// It must be run on a tokio runtime whose time and input/output are enabled.
///
/// ```no_run
/// use restorm::{Destination, Restore, RestoreOptions};
///
/// # async fn restore() -> Result<(), restorm::Error> {
/// let options = RestoreOptions::new("dump", Destination::server("mongodb://localhost"));
/// let report = Restore::new(options).run().await?;
/// println!("{} documents", report.balance.inserted);
/// # Ok(())
/// # }
/// ```
pub struct Restore {
    options: RestoreOptions,
    observer: Arc<dyn Observer>,
    stop: Stop,
}

impl Restore {
    /// A restore that tells nobody what happens.
    pub fn new(options: RestoreOptions) -> Self {
        Self { options, observer: Arc::new(Silent), stop: Stop::new() }
    }

    /// Tells this observer what happens. It is called from several threads, and work waits for it.
    #[must_use]
    pub fn observed_by(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observer = observer;
        self
    }

    /// A handle that ends the run early: nothing more is read, what is in flight is finished, and
    /// the report says how far it got.
    pub fn stop_handle(&self) -> Stop {
        self.stop.clone()
    }

    /// Makes the plan and returns it as text; nothing is touched.
    ///
    /// Errors: the dump cannot be read, the server cannot be reached, or nothing can be restored.
    pub async fn plan(mut self) -> Result<String, Error> {
        self.options.mode = Mode::DryRun;
        match self.carry_out().await? {
            Restored::Planned(plan) => Ok(plan),
            Restored::Ran(_) => Err(unexpected("a dry run restored something")),
        }
    }

    /// Restores, whatever the mode of the options, and returns the report.
    ///
    /// Errors: only what keeps the run from beginning, as for [`Restore::plan`]. From then on
    /// everything is in the report: refused documents, damaged files, failed indexes, an early end.
    pub async fn run(mut self) -> Result<Report, Error> {
        self.options.mode = Mode::Restore;
        match self.carry_out().await? {
            Restored::Ran(report) => Ok(*report),
            Restored::Planned(_) => Err(unexpected("a restore was only planned")),
        }
    }

    async fn carry_out(self) -> Result<Restored, Error> {
        restore(&self.options, self.observer, self.stop, Instant::now()).await
    }
}

fn unexpected(what: &str) -> Error {
    Error::new(ErrorKind::Internal, what)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::restore::Destination;
    use crate::exit::ExitStatus;
    use crate::report::{Event, Outcome};
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

    #[derive(Default)]
    struct Counter(AtomicU64);

    impl Observer for Counter {
        fn observe(&self, _at: Duration, event: &Event) {
            if let Event::Read { documents, .. } = event {
                self.0.fetch_add(*documents, Ordering::Relaxed);
            }
        }
    }

    fn of_testdata(name: &str) -> Restore {
        let dump = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata").join(name);
        Restore::new(RestoreOptions::new(dump, Destination::Null))
    }

    #[tokio::test]
    async fn a_run_tells_its_observer_and_returns_its_report() {
        let counter = Arc::new(Counter::default());
        let observer: Arc<dyn Observer> = Arc::clone(&counter) as _;
        let report = of_testdata("dumps/full_6.0").observed_by(observer).run().await;
        let report = report.expect("it runs");
        assert_eq!(report.balance.read, counter.0.load(Ordering::Relaxed));
        assert_eq!((report.balance.inserted, report.exit_status), (4061, ExitStatus::Restored));
    }

    #[tokio::test]
    async fn a_damaged_file_is_in_the_report_and_a_missing_dump_is_an_error() {
        let report = of_testdata("broken/truncated_document").run().await.expect("it runs");
        assert_eq!(report.exit_status, ExitStatus::Stopped);
        assert_eq!(report.outcome, Outcome::Finished);
        assert!(of_testdata("nowhere").run().await.is_err());
    }

    #[tokio::test]
    async fn a_plan_is_a_text() {
        let plan = of_testdata("dumps/full_6.0").plan().await.expect("it is made");
        assert!(plan.contains("shop.orders"), "{plan}");
    }

    #[tokio::test]
    async fn a_stop_ends_the_run_early() {
        let restore = of_testdata("dumps/full_6.0");
        restore.stop_handle().request();
        let report = restore.run().await.expect("it runs");
        assert_eq!((report.outcome, report.balance.read), (Outcome::Interrupted, 0));
    }
}
