//! An inspection as JSON.

use serde_json::{Value, json};

use super::{InspectedCollection, Inspection};

/// The name and version of the form; the version grows when a reader of the old form would break.
const SCHEMA: &str = "restorm.inspect/1";

pub(super) fn json(inspection: &Inspection) -> Value {
    let totals = inspection.totals();
    json!({
        "schema": SCHEMA,
        "root": inspection.root.display().to_string(),
        "server_version": inspection.server_version.map(|version| version.to_string()),
        "tool_version": inspection.tool_version,
        "depth": inspection.depth.name(),
        "collections": inspection.collections.iter().map(collection).collect::<Vec<_>>(),
        "totals": {
            "collections": totals.collections,
            "documents": totals.documents,
            "bytes": totals.bytes,
            "largest_document": totals.largest,
            "file_bytes": totals.file_bytes,
            "indexes": totals.indexes,
            "problems": totals.problems,
        },
        "skipped": inspection.skipped.iter().map(|skipped| json!({
            "path": skipped.path.display().to_string(),
            "reason": skipped.reason,
            "is_problem": skipped.is_problem,
        })).collect::<Vec<_>>(),
    })
}

fn collection(collection: &InspectedCollection) -> Value {
    json!({
        "database": collection.namespace.database(),
        "collection": collection.namespace.collection(),
        "kind": collection.kind.name(),
        "indexes": collection.indexes,
        "data": collection.data.as_ref().map(|data| json!({
            "file": data.path.display().to_string(),
            "compression": data.compression.name(),
            "file_bytes": data.file_bytes,
            "documents": data.documents,
            "bytes": data.bytes,
            "average_document": data.average(),
            "largest_document": data.largest,
            "documents_without_id": data.without_id,
            "documents_damaged": data.damaged,
            "deep": data.deep.map(|deep| json!({
                "deepest_level": deep.deepest,
                "stretches_lost": deep.lost_stretches,
                "bytes_lost": deep.lost_bytes,
                "documents_not_utf8": deep.not_utf8,
                "documents_with_bad_id": deep.bad_ids,
                "documents_too_large": deep.too_large,
                "documents_with_duplicate_id": deep.duplicate_ids,
            })),
        })),
        "problems_total": collection.problem_count(),
        "problems": collection.problems.iter().map(|problem| json!({
            "file": problem.file.display().to_string(),
            "offset": problem.offset,
            "what": problem.what,
        })).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::{InspectForm, tests::sample};
    use super::*;

    #[test]
    fn full_names_and_exact_numbers_are_given() {
        let text = sample().shown(InspectForm::Json, None);
        let value: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(value["schema"], "restorm.inspect/1");
        assert_eq!(value["server_version"], "6.0.5");
        let orders = &value["collections"][0];
        assert_eq!(orders["collection"], "orders_of_the_last_twelve_months_by_customer");
        assert_eq!(orders["data"]["documents"], 1_234_567);
        assert_eq!(orders["data"]["average_document"], 180);
        assert_eq!(orders["problems"][0]["offset"], 4096);
        assert_eq!(value["collections"][1]["data"], Value::Null);
        assert_eq!(value["totals"]["problems"], 97);
        assert_eq!(value["skipped"][0]["is_problem"], false);
        assert_eq!(text.lines().count(), 1);
    }
}
