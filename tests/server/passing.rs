//! Every fault that passes by itself, at the commands of a restore: a table.

use crate::support::dump::Dump;
use crate::support::raw::{document, int};
use crate::support::{Restore, Server, verified};
use mongodb::bson::{Document, doc};
use serde_json::json;

/// The commands that a restore sends.
const COMMANDS: [&str; 4] = ["insert", "create", "createIndexes", "drop"];

/// Codes by which a server says that it is away, changing or busy.
const CODES: [i32; 22] = [
    6, 7, 24, 46, 64, 89, 91, 112, 134, 175, 189, 202, 262, 317, 358, 384, 9001, 10107, 11600,
    11602, 13435, 13436,
];

/// Every fault, each at one of the commands, or at all where that makes a difference.
fn faults() -> Vec<(&'static str, Document)> {
    let mut faults = Vec::new();
    for (turn, code) in CODES.into_iter().enumerate() {
        faults.push((COMMANDS[turn % COMMANDS.len()], doc! { "errorCode": code }));
    }
    for command in COMMANDS {
        faults.push((command, doc! { "closeConnection": true }));
        faults.push((command, doc! { "errorCode": 11600 }));
        let concern = doc! { "code": 91, "errmsg": "not confirmed" };
        faults.push((command, doc! { "writeConcernError": concern }));
    }
    faults
}

#[test]
fn nothing_is_lost_or_doubled_by_any_of_them() {
    let server = Server::private(&["--setParameter", "enableTestCommands=1"]);
    let orders: Vec<_> = (0..400).map(|id| document(&[int("_id", id), int("n", id % 7)])).collect();
    let described = json!({ "indexes": [
        { "v": 2, "key": { "_id": 1 }, "name": "_id_" },
        { "v": 2, "key": { "n": 1 }, "name": "n_1" },
    ]});
    let dump = Dump::new().with("shop", "orders", &orders).described("shop", "orders", &described);
    // A server that really changes tells monitors so; this one is asked again.
    let uri = format!("{}/?serverMonitoringMode=poll", server.uri());
    let restore = || {
        let arguments = ["--drop", "--batch-documents", "100", "--workers", "2"];
        Restore::new(&uri, dump.path()).args(&arguments).run()
    };
    restore().ended(0);
    for (command, fault) in faults() {
        let shown = format!("{command}: {fault}");
        let mut data = doc! { "failCommands": [command], "appName": "restorm" };
        data.extend(fault);
        let fail = doc! { "configureFailPoint": "failCommand", "mode": { "times": 1 } };
        server.run("admin", [fail, doc! { "data": data }].into_iter().flatten().collect());
        let restored = restore().ended(0);
        assert!(restored.retries() >= 1, "{shown}: {}", restored.stderr);
        let [read, inserted, already_there, rejected, unsent] = restored.balance();
        let counted = (read, inserted + already_there, rejected, unsent);
        assert_eq!(counted, (400, 400, 0, 0), "{shown}");
        assert_eq!(restored.report["totals"]["indexes_built"], 1, "{shown}");
        verified(server.uri(), dump.path());
    }
}
