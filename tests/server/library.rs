//! The library as a program uses it: the example, run against a server.

use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use restorm::{
    Destination, Event, ExitStatus, Observer, Report, Restore as Run, RestoreOptions, WriteConcern,
};

use crate::golden::{expected, found, only};
use crate::support::dump::{Dump, genuine};
use crate::support::{Server, differences, runtime};
use mongodb::bson::doc;

#[expect(dead_code, unreachable_pub, reason = "a program of its own, whose main is not run")]
#[path = "../../examples/migrate.rs"]
mod migrate;

fn path(name: &str) -> String {
    genuine(name).to_str().unwrap().to_owned()
}

#[test]
fn the_example_restores_a_dump_and_reads_the_report() {
    let server = Server::lease();
    server.run("shop", doc! { "insert": "orders", "documents": [{ "_id": "of before" }] });
    let meter = Arc::<migrate::Meter>::default();
    let (dump, database) = (path("full_6.0"), Some("shop".to_owned()));
    let run = migrate::migrate(&dump, server.uri(), database, Arc::clone(&meter));
    let report = runtime().block_on(run).unwrap();
    assert_eq!(report.exit_status, ExitStatus::Restored);
    assert_eq!(meter.documents(), report.balance.inserted);
    assert_eq!(differences(&only(expected("full_6.0"), "shop"), &found(&server)), [""; 0]);
    let summary = migrate::summary(&report);
    assert_eq!(summary.len(), 1, "{summary:?}");
    let count = report.balance.read;
    assert!(summary[0].starts_with(&format!("{count} of {count} documents in ")), "{summary:?}");
}

#[test]
fn refused_documents_and_missing_dumps_come_back_as_values() {
    let server = Server::lease();
    let options = RestoreOptions::new(path("full_6.0/shop"), Destination::server(server.uri()));
    let run = |options: RestoreOptions| runtime().block_on(Run::new(options).run());
    run(options.clone()).unwrap();
    let again: Report = run(options).unwrap();
    assert_eq!(again.exit_status, ExitStatus::Failures);
    assert_eq!(again.balance.rejected, again.balance.read);
    assert!(migrate::summary(&again).iter().any(|line| line.ends_with("refused with code 11000")));
    let missing = RestoreOptions::new("no-such-dump", Destination::server(server.uri()));
    assert!(run(missing).unwrap_err().to_string().contains("no-such-dump"));
}

struct AfterBatches(Sender<()>);

impl Observer for AfterBatches {
    fn observe(&self, _at: Duration, event: &Event) {
        if let Event::Written { .. } = event {
            // Nobody listens any more after the first one.
            let _ = self.0.send(());
        }
    }
}

#[test]
fn a_stop_handle_ends_the_run_and_the_report_adds_up() {
    let server = Server::lease();
    let dump = Dump::seeded(2, 40_000);
    let Destination::Server(mut connection) = Destination::server(server.uri()) else {
        panic!("it is a server");
    };
    connection.write_concern = Some(WriteConcern::parse("1").unwrap());
    let mut options = RestoreOptions::new(dump.path(), Destination::Server(connection));
    options.settings.workers = restorm::Workers::Fixed(1);
    options.settings.batch = restorm::BatchLimits::new(50, 1 << 20);
    let (sender, written) = channel();
    let restore = Run::new(options).observed_by(Arc::new(AfterBatches(sender)));
    let stop = restore.stop_handle();
    let watcher = std::thread::spawn(move || {
        written.recv().unwrap();
        stop.request();
    });
    let report = runtime().block_on(restore.run()).unwrap();
    watcher.join().unwrap();
    assert_eq!(report.exit_status, ExitStatus::Interrupted);
    assert!(report.is_balanced);
    assert!(report.balance.inserted > 0 && report.balance.read < 80_000, "{:?}", report.balance);
}
