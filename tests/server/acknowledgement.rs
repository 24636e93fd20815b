//! Every command that changes something asks for the acknowledgement that was asked for, or a surer
//! one.

use crate::support::dump::genuine;
use crate::support::{Restore, Server, is_before};
use mongodb::bson::{Document, doc};

/// Restores the orders twice, so that they are dropped as well, and returns what the server was
/// told to do.
fn commands(uri_options: &str, arguments: &[&str]) -> Vec<Document> {
    let server = Server::lease();
    server.run("shop", doc! { "profile": 2 });
    let dump = genuine("full_6.0/shop/orders.bson");
    let uri = format!("{}/{uri_options}", server.uri());
    for _ in 0..2 {
        Restore::new(&uri, &dump).args(&["--drop"]).args(arguments).run().ended(0);
    }
    server.profiled("shop")
}

/// Checks what each changing command asks for, and that none has a time limit.
#[track_caller]
fn all_ask_for(commands: &[Document], expected: &Document) {
    ask_for(commands, &["drop", "create", "insert", "createIndexes"], expected);
}

/// Checks what the commands of these names ask for, and that none has a time limit.
#[track_caller]
fn ask_for(commands: &[Document], names: &[&str], expected: &Document) {
    for name in names {
        // The profiler keeps only the beginning of a large command, as text.
        let beginning = format!("{{ {name}: ");
        let of_name: Vec<_> = commands
            .iter()
            .filter(|command| {
                let text = command.get_str("$truncated").unwrap_or_default();
                command.contains_key(*name) || text.starts_with(&beginning)
            })
            .collect();
        assert!(!of_name.is_empty(), "no {name} was sent");
        for command in of_name {
            assert!(!command.to_string().contains("maxTimeMS"), "{name}: {command}");
            if command.contains_key(*name) {
                let asked = command.get_document("writeConcern").unwrap();
                assert_eq!(asked, expected, "{name}");
            }
        }
    }
}

#[test]
fn better_than_the_peer_b6_wtimeout_bounds_the_wait_for_members_alone() {
    // The peer sends it as maxTimeMS, which ends index builds and long batches.
    let concern = "{w: 1, wtimeout: 60000}";
    let arguments = ["--writeConcern", concern, "--batch-documents", "100"];
    let of_uri = commands("?w=1&wtimeoutMS=60000", &["--batch-documents", "100"]);
    for commands in [commands("", &arguments), of_uri] {
        // A collection whose creation is lost would come back without its options.
        let certain = doc! { "w": "majority", "j": true, "wtimeout": 60_000_i64 };
        // A standalone server before 4.4 cannot tell whether it has lost what it acknowledged.
        let asked = doc! { "w": 1_i64, "wtimeout": 60_000_i64 };
        ask_for(&commands, &["insert"], if is_before([4, 4]) { &certain } else { &asked });
        ask_for(&commands, &["drop", "create", "createIndexes"], &certain);
    }
}

#[test]
fn better_than_the_peer_b23_the_option_wins_over_the_connection_string_for_all_commands() {
    // The peer writes with the concern of the string and counts with that of the option.
    let arguments = ["--writeConcern", "majority", "--batch-documents", "100"];
    let commands = commands("?w=1&journal=true", &arguments);
    // Before 5.0 a server alone confirms a majority before it is in the journal, unless asked.
    let journal = if is_before([5, 0]) {
        doc! { "j": true }
    } else {
        doc! {}
    };
    all_ask_for(&commands, &doc! { "w": "majority" }.into_iter().chain(journal).collect());
}

#[test]
fn better_than_the_peer_b23_an_unacknowledged_string_does_not_stop_an_option_from_counting() {
    let server = Server::lease();
    let uri = format!("{}/?w=0", server.uri());
    let dump = genuine("full_6.0/shop/orders.bson");
    let restored = Restore::new(&uri, &dump).args(&["--writeConcern", "1"]).run().ended(0);
    assert_eq!(restored.balance(), [3000, 3000, 0, 0, 0]);
}
