//! Restores into a target that holds something already: what is refused, left alone, replaced.

use crate::support::dump::{Dump, genuine};
use crate::support::{Restore, Restored, Server, runtime, stored};
use mongodb::bson::doc;
use restorm::{
    Destination, ExistingPolicy, OccupiedPolicy, Restore as Run, RestoreOptions, SurveyDetail,
};
use serde_json::Value;

/// A dump of two collections of ten documents.
fn dump() -> Dump {
    Dump::seeded(2, 10)
}

/// A server that has one of them already, with another document in it.
fn with_one() -> Server {
    let server = Server::lease();
    server.run("seed", doc! { "insert": "c00001", "documents": [{ "_id": "mine" }] });
    server
}

fn count(server: &Server, collection: &str) -> usize {
    stored(&server.client(), "seed", collection).len()
}

#[track_caller]
fn says(restored: &Restored, words: &str) {
    let flat = restored.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains(words), "`{words}` is not said:\n{}", restored.stderr);
}

#[test]
fn what_exists_is_refused_before_anything_is_touched() {
    let (server, dump) = (with_one(), dump());
    let restore = |arguments: &[&str]| {
        Restore::new(server.uri(), dump.path()).args(&["--on-existing", "fail"]).args(arguments)
    };
    for more in [&[][..], &["--dry-run"]] {
        let refused = restore(more).run().ended(1);
        says(&refused, "1 collection of the plan exists on the target: `seed.c00001`");
        says(&refused, "nothing was touched; --on-existing skip leaves what exists alone");
        assert_eq!(refused.report, Value::Null);
        assert_eq!((count(&server, "c00001"), count(&server, "c00002")), (1, 0));
    }
    restore(&["--ns-include", "seed.c00002"]).run().ended(0);
    assert_eq!(count(&server, "c00002"), 10);
}

#[test]
fn what_exists_is_left_alone() {
    let (server, dump) = (with_one(), dump());
    let restore =
        || Restore::new(server.uri(), dump.path()).args(&["--on-existing", "skip", "-v"]).run();
    let restored = restore().ended(0);
    says(&restored, "1 on purpose");
    says(&restored, "seed.c00001: the target has it already (--on-existing skip)");
    assert_eq!((count(&server, "c00001"), count(&server, "c00002")), (1, 10));
    assert_eq!(restored.report["skipped"][0]["is_problem"], false);
    // The second time there is nothing left to do, which is no failure.
    let again = restore().ended(0);
    assert_eq!(again.balance(), [0; 5]);
    assert_eq!(again.report["skipped"].as_array().unwrap().len(), 2);
    let planned = Restore::new(server.uri(), dump.path())
        .args(&["--on-existing", "skip", "--dry-run"])
        .run()
        .ended(0);
    assert!(
        planned.stdout.contains("seed.c00002: the target has it already"),
        "{}",
        planned.stdout
    );
}

#[test]
fn what_exists_is_added_to_or_replaced() {
    let (server, dump) = (with_one(), dump());
    let restore = |word: &str| {
        Restore::new(server.uri(), dump.path()).args(&["--on-existing", word]).run().ended(0);
        count(&server, "c00001")
    };
    assert_eq!(restore("add"), 11);
    assert_eq!(restore("drop"), 10);
    assert_eq!(count(&server, "c00002"), 10);
}

#[test]
fn a_view_in_the_place_of_a_collection_exists() {
    let server = Server::lease();
    let dump = dump();
    server.run("seed", doc! { "create": "c00001", "viewOn": "x", "pipeline": [] });
    let restore =
        |word: &str| Restore::new(server.uri(), dump.path()).args(&["--on-existing", word]).run();
    says(&restore("fail").ended(1), "`seed.c00001`");
    let skipped = restore("skip").ended(0);
    assert_eq!(skipped.report["skipped"][0]["what"], "seed.c00001");
    assert_eq!(count(&server, "c00002"), 10);
}

#[test]
fn a_target_that_holds_documents_is_refused() {
    let (server, dump) = (with_one(), dump());
    let restore = |arguments: &[&str]| {
        Restore::new(server.uri(), dump.path()).args(&["--if-empty"]).args(arguments).run()
    };
    for more in [&[][..], &["--drop"], &["--dry-run"], &["--on-existing", "add"]] {
        let refused = restore(more).ended(1);
        says(
            &refused,
            "the target is not empty: 1 collection of the plan holds documents: `seed.c00001` (1)",
        );
        assert_eq!(refused.report, Value::Null);
        assert_eq!((count(&server, "c00001"), count(&server, "c00002")), (1, 0));
    }
    server.run("seed", doc! { "delete": "c00001", "deletes": [{ "q": {}, "limit": 0 }] });
    server.run("seed", doc! { "insert": "other", "documents": [{ "_id": "mine" }] });
    restore(&[]).ended(0);
    assert_eq!((count(&server, "c00001"), count(&server, "other")), (10, 1));
    says(&restore(&["--drop"]).ended(1), "2 collections of the plan hold documents");
}

#[test]
fn a_target_that_cannot_be_looked_at_is_not_taken_for_empty() {
    let server = Server::private(&["--auth"]);
    let dump = genuine("full_6.0/shop");
    let restorer = server.user("restorer", &[doc! { "role": "restore", "db": "admin" }]);
    let restore = || Restore::new(&restorer, &dump).args(&["--if-empty"]).run();
    restore().ended(0);
    let refused = restore().ended(1);
    says(&refused, "it cannot be told whether the collection is empty: not authorized");
    says(&refused, "--if-empty takes the right to read it");
}

#[test]
fn what_a_restore_has_begun_itself_does_not_count_when_it_goes_on() {
    for guard in [&["--on-existing", "fail"][..], &["--on-existing", "skip"], &["--if-empty"]] {
        let server = Server::lease();
        let dump = dump();
        let restore = |arguments: &[&str]| {
            Restore::new(server.uri(), dump.path()).args(guard).args(arguments).run()
        };
        // It ends early, because the file of the second collection is cut.
        let file = dump.file("seed/c00002.bson");
        let whole = std::fs::read(&file).unwrap();
        let cut = &whole[..whole.len() - 7];
        std::fs::write(&file, cut).unwrap();
        restore(&[]).ended(1);
        assert_eq!(count(&server, "c00001"), 10);
        let again = restore(&["--resume"]).ended(1);
        let [read, .., unsent] = again.balance();
        assert!(read >= 19 && unsent == 0, "{guard:?}: {:?}", again.balance());
        assert_eq!(again.report["totals"]["documents_carried"], 19, "{guard:?}");
        let states =
            ["seed.c00001", "seed.c00002"].map(|name| again.collection(name)["state"].clone());
        assert_eq!(states, ["done", "failed"], "{guard:?}");
        // What another one has made since exists all the same.
        server.run("seed", doc! { "drop": "c00002" });
        server.run("seed", doc! { "insert": "c00002", "documents": [{ "_id": "mine" }] });
        restore(&["--resume"]).ended(1);
        assert_eq!(count(&server, "c00002"), 1, "{guard:?}");
    }
}

#[test]
fn a_program_asks_for_the_same() {
    let (server, dump) = (with_one(), dump());
    let run = |change: &dyn Fn(&mut RestoreOptions)| {
        let mut options = RestoreOptions::new(dump.path(), Destination::server(server.uri()));
        change(&mut options);
        runtime().block_on(Run::new(options).run())
    };
    let refused = run(&|options| options.occupied = OccupiedPolicy::Refused).unwrap_err();
    assert!(refused.to_string().contains("the target is not empty"), "{refused}");
    let refused = run(&|options| options.selection.existing = ExistingPolicy::Refuse).unwrap_err();
    assert!(refused.to_string().contains("`seed.c00001`"), "{refused}");
    let report = run(&|options| {
        options.selection.existing = ExistingPolicy::Skip;
        options.survey = Some(SurveyDetail { samples: 0, ..SurveyDetail::of_restore() });
    });
    let report = report.unwrap();
    let survey = report.survey.unwrap();
    let difference = survey.difference.unwrap();
    assert_eq!(difference.totals.documents, Some(10));
    assert_eq!(survey.before.unwrap().namespaces, []);
    let after = survey.after.unwrap();
    assert_eq!(after.namespaces.len(), 1);
    assert!(after.namespaces[0].samples.is_empty() && after.namespaces[0].fields.is_some());
}
