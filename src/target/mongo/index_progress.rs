//! How far the server is with builds of indexes.
//!
//! `$currentOp` shows them for all users to whom the privilege `inprog` is granted, which the role
//! `clusterMonitor` has.

use bson::{Bson, Document, doc};
use futures_util::TryStreamExt;

use crate::sample::{IndexProgress, IndexStage};
use crate::target::TargetError;
use crate::target::mongo::status::number;
use crate::target::mongo::{MongoTarget, errors};

/// How each message of a build begins.
const BUILD: &str = "Index Build";

impl MongoTarget {
    /// All builds that go on.
    pub(super) async fn ask_index_progress(&self) -> Result<Vec<IndexProgress>, TargetError> {
        let operations = vec![
            doc! { "$currentOp": { "allUsers": true, "idleConnections": false } },
            doc! { "$match": { "msg": { "$regex": format!("^{BUILD}") } } },
        ];
        let admin = self.client.database("admin");
        let cursor = admin.aggregate(operations).await.map_err(|error| errors::of(&error))?;
        let operations: Vec<Document> =
            cursor.try_collect().await.map_err(|error| errors::of(&error))?;
        Ok(operations.iter().filter_map(progress).collect())
    }
}

fn progress(operation: &Document) -> Option<IndexProgress> {
    let command = operation.get_document("command").ok();
    let specs = command.and_then(|command| command.get_array("indexes").ok());
    let names = specs.into_iter().flatten().filter_map(Bson::as_document);
    let progress = operation.get_document("progress").ok();
    let message = operation.get_str("msg").ok()?;
    let stage = if message.contains("inserting keys") {
        IndexStage::Inserting
    } else if message.contains("draining") {
        IndexStage::Committing
    } else if message.contains("scanning") && progress.is_some() {
        IndexStage::Scanning
    } else {
        IndexStage::Sorting
    };
    Some(IndexProgress {
        namespace: operation.get_str("ns").ok()?.to_owned(),
        indexes: names.filter_map(|spec| Some(spec.get_str("name").ok()?.to_owned())).collect(),
        stage,
        done: progress.map_or(0, |progress| number(progress, &["done"]).unwrap_or(0)),
        total: progress.map_or(0, |progress| number(progress, &["total"]).unwrap_or(0)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As mongod 6.0.5 told it of a build over two million documents.
    fn operation(message: &str, progress: Option<Document>) -> Document {
        let specs = vec![doc! { "v": 2, "key": { "user": 1 }, "name": "user_1" }];
        let mut operation = doc! {
            "desc": "IndexBuildsCoordinatorMongod-0",
            "ns": "seed.c00001",
            "op": "command",
            "command": { "createIndexes": "c00001", "indexes": specs, "$db": "seed" },
            "msg": message,
        };
        if let Some(progress) = progress {
            operation.insert("progress", progress);
        }
        operation
    }

    /// Shares that are exact, so that they can be compared.
    fn thousandths(share: f64) -> String {
        format!("{:.0}", share * 1000.0)
    }

    #[test]
    fn each_stage_is_known() {
        let counted = |done: i32| Some(doc! { "done": done, "total": 2_000_000 });
        let scanning = "Index Build: scanning collection Index Build: scanning collection: 8%";
        let found = progress(&operation(scanning, counted(500_000))).expect("a build");
        assert_eq!(
            (found.stage, found.done, found.total),
            (IndexStage::Scanning, 500_000, 2_000_000)
        );
        assert_eq!(
            (found.namespace.as_str(), found.indexes),
            ("seed.c00001", vec!["user_1".to_owned()])
        );
        let fraction = |message, progressed| {
            let found = progress(&operation(message, progressed)).expect("a build");
            thousandths(found.fraction())
        };
        assert_eq!(fraction(scanning, counted(1_000_000)), "250");
        assert_eq!(fraction("Index Build: scanning collection", None), "500");
        let inserting = "Index Build: inserting keys from external sorter into index";
        assert_eq!(fraction(inserting, counted(1_000_000)), "875");
        assert_eq!(fraction("Index Build: draining writes received during build", None), "1000");
    }

    #[test]
    fn another_operation_is_none() {
        assert_eq!(progress(&doc! { "op": "command", "ns": "a.b" }), None);
    }
}
