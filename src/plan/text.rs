//! A plan for people to read.

use std::fmt::Write;

use bson::Document;

use crate::dump::inventory::{CollectionKind, Compression, Origin};
use crate::plan::users::{Content, Part};
use crate::plan::{CollectionPlan, Creation, ExistingPolicy, Insertion, RestorePlan};

/// The plan as text, one paragraph a collection in the order of restoring, then what is left out.
pub fn describe(plan: &RestorePlan) -> String {
    let mut text = String::new();
    let size = match origin_bytes(plan) {
        Some(bytes) => format!("{bytes} bytes on disk"),
        None => "an unknown number of bytes".to_owned(),
    };
    let indexes: usize = plan.collections.iter().map(|collection| collection.indexes.len()).sum();
    let _ = writeln!(
        text,
        "{} to restore, {size}, {} to build",
        counted(plan.collections.len(), "collection", "collections"),
        counted(indexes, "index", "indexes"),
    );
    for (number, collection) in plan.collections.iter().enumerate() {
        describe_collection(&mut text, number + 1, collection);
    }
    describe_special(&mut text, plan);
    if !plan.skipped.is_empty() {
        let _ = writeln!(text, "\nleft out:");
    }
    for skipped in &plan.skipped {
        let mark = if skipped.is_problem { " (problem)" } else { "" };
        let _ = writeln!(text, "  {}: {}{mark}", skipped.what, skipped.reason);
    }
    text
}

/// The bytes of all files, or of the archive.
fn origin_bytes(plan: &RestorePlan) -> Option<u64> {
    let mut origins = plan.collections.iter().filter_map(|collection| collection.data.as_ref());
    match plan.archive() {
        Some(archive) => archive.bytes(),
        None => origins.try_fold(0, |sum, origin| Some(sum + origin.bytes()?)),
    }
}

fn describe_special(text: &mut String, plan: &RestorePlan) {
    if let Some(users) = &plan.users {
        let names = |part: &Option<Part>| {
            part.as_ref().map(|part| part.names.join(", ")).filter(|names| !names.is_empty())
        };
        let _ = writeln!(text, "\nusers and roles, after the documents");
        match &users.content {
            Content::Read(accounts) => {
                if let Some(names) = names(&accounts.users) {
                    let _ = writeln!(text, "   users: {names}");
                }
                if let Some(names) = names(&accounts.roles) {
                    let _ = writeln!(text, "   roles: {names}");
                }
            }
            Content::Awaited(awaited) => {
                let _ = writeln!(text, "   those in {}", awaited.archive.path().display());
            }
        }
        if users.terms.existing == ExistingPolicy::Drop {
            let of =
                users.terms.database.as_ref().map_or_else(String::new, |of| format!(" of {of}"));
            let _ = writeln!(text, "   remove all others{of}");
        }
    }
    if let Some(oplog) = &plan.oplog {
        let limit = oplog
            .limit
            .map_or_else(String::new, |limit| format!(" up to {}:{}", limit.time, limit.increment));
        let path = oplog.origin.path().display();
        let _ = writeln!(text, "\nthe oplog, before all indexes\n   replay {path}{limit}");
    }
    for note in &plan.notes {
        let _ = writeln!(text, "\nnote: {note}");
    }
}

fn describe_collection(text: &mut String, number: usize, plan: &CollectionPlan) {
    let _ = writeln!(text, "\n{number}. {} ({})", plan.namespace, plan.kind.name());
    let action = match (plan.creation, plan.kind) {
        (Creation::Create, _) => "create it",
        (Creation::DropAndCreate, _) => "drop it, create it again",
        (Creation::Empty, _) => "empty it, since it cannot be dropped",
        (Creation::Use, CollectionKind::View) => "leave it as it is",
        (Creation::Use, _) => "add to what is there",
    };
    let _ = writeln!(text, "   {action}{}", options(&plan.options));
    if let Some(data) = plan.data.as_ref().filter(|_| plan.kind != CollectionKind::View) {
        let order = match plan.insertion {
            Insertion::AnyOrder => "",
            Insertion::InOrder => ", in the order of the file",
        };
        let _ = writeln!(text, "   insert {}{order}", source(data));
    }
    for index in &plan.indexes {
        let last = if index.expires { ", after everything else" } else { "" };
        let key = index.spec.get_document("key").cloned().unwrap_or_default();
        let _ = writeln!(text, "   build index {} {}{last}", index.name, json(&key));
        for repair in &index.repairs {
            let _ = writeln!(text, "     repaired: {repair}");
        }
    }
    if let Some(seconds) = &plan.expire_after_seconds {
        let _ = writeln!(text, "   set expireAfterSeconds to {seconds}, after everything else");
    }
    for note in &plan.notes {
        let _ = writeln!(text, "   note: {note}");
    }
}

/// What is inserted, and where it comes from.
fn source(data: &Origin) -> String {
    let packed = |compression: Compression| match compression {
        Compression::None => String::new(),
        other => format!(", {}", other.name()),
    };
    match data {
        Origin::File(file) => {
            let (path, packed) = (file.path.display(), packed(file.compression));
            format!("{} bytes from {path}{packed}", file.bytes)
        }
        Origin::Made(made) => format!("about {} bytes of {}", made.bytes(), made.name().display()),
        Origin::Input => "what comes through standard input".to_owned(),
        Origin::Text(texts) => format!("documents made from {}", texts.path().display()),
        Origin::Segments(segments) => {
            let archive = &segments.archive;
            let packed = packed(archive.compression());
            format!("its documents in {}{packed}", archive.path().display())
        }
    }
}

fn options(options: &Document) -> String {
    if options.is_empty() { String::new() } else { format!(" with {}", json(options)) }
}

fn json(document: &Document) -> String {
    bson::Bson::Document(document.clone()).into_relaxed_extjson().to_string()
}

pub(super) fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dump::inventory::{Inventory, SkippedPath};
    use crate::dump::metadata::{CollectionMetadata, IndexSpec};
    use crate::facts::ServerFacts;
    use crate::plan::tests::entry;
    use crate::plan::{Selection, plan};
    use bson::doc;

    #[test]
    fn a_plan_reads_as_what_will_happen() {
        let mut orders = entry("orders", CollectionKind::Collection, 4096);
        orders.metadata = Some(CollectionMetadata {
            options: doc! { "capped": true, "size": 8192 },
            indexes: vec![
                IndexSpec::from(doc! { "key": { "_id": 1 }, "name": "_id_" }),
                IndexSpec::from(
                    doc! { "key": { "at": 1 }, "name": "at_1", "expireAfterSeconds": 60 },
                ),
                IndexSpec::from(doc! { "key": { "a": true }, "name": "a" }),
            ],
            ..CollectionMetadata::default()
        });
        let skipped = vec![SkippedPath {
            path: "dump/README".into(),
            reason: "not part of a dump".into(),
            is_problem: false,
        }];
        let inventory = Inventory { entries: vec![orders], skipped, ..Inventory::default() };
        let plan = plan(&inventory, Selection::default(), &ServerFacts::null());
        let expected = "\
1 collection to restore, 4096 bytes on disk, 2 indexes to build

1. shop.orders (collection)
   create it with {\"capped\":true,\"size\":8192}
   insert 4096 bytes from dump/shop/orders.bson, in the order of the file
   build index at_1 {\"at\":1}, after everything else
   build index a {\"a\":1}
     repaired: the direction true of `a` is taken as 1

left out:
  dump/README: not part of a dump
";
        assert_eq!(describe(&plan), expected);
    }
}
