//! The commands for what is no document of a collection: oplog entries, users and roles.

use bson::raw::cstr;
use bson::{Bson, Document, RawArrayBuf, RawDocumentBuf, doc};

use crate::namespace::Namespace;
use crate::target::{Fault, MergeUsers, Others, TargetError, Validators};

/// The command that applies oplog entries.
///
/// Entries that only write documents are applied in one storage transaction, all or none of them,
/// by servers that have `allowAtomic`, which is on by default.
pub(super) fn apply_ops(operations: &[RawDocumentBuf], validators: Validators) -> RawDocumentBuf {
    let mut array = RawArrayBuf::new();
    for operation in operations {
        array.push(operation);
    }
    let mut command = RawDocumentBuf::new();
    command.append(cstr!("applyOps"), array);
    command.append(cstr!("bypassDocumentValidation"), validators == Validators::Bypassed);
    command
}

/// What the answer to it says; an operation that fails need not fail the command.
pub(super) fn applied(reply: &Document) -> Result<(), TargetError> {
    let Ok(results) = reply.get_array("results") else {
        return Ok(());
    };
    if results.contains(&Bson::Boolean(false)) {
        return Err(refused("the server could not apply an operation and does not say why"));
    }
    Ok(())
}

/// The command that merges users and roles.
pub(super) fn merge_users(merge: &MergeUsers, write_concern: Document) -> Document {
    let mut command = doc! { "_mergeAuthzCollections": 1 };
    let name =
        |namespace: &Namespace| format!("{}.{}", namespace.database(), namespace.collection());
    if let Some(users) = &merge.users {
        command.insert("tempUsersCollection", name(users));
    }
    if let Some(roles) = &merge.roles {
        command.insert("tempRolesCollection", name(roles));
    }
    command.insert("drop", merge.others == Others::Removed);
    command.insert("db", merge.database.as_deref().unwrap_or_default());
    command.insert("writeConcern", write_concern);
    command
}

/// What the answer to a merge of nothing tells: a server that knows the command and lets the user
/// give it asks for a collection.
pub(super) fn could_merge(merged: Result<(), TargetError>) -> Result<(), TargetError> {
    /// `BadValue`.
    const BAD_VALUE: i32 = 2;
    match merged {
        Err(error) if error.code == Some(BAD_VALUE) => Ok(()),
        other => other,
    }
}

/// The version out of the answer to `getParameter`. Servers from 8.1 have none, and keep users as
/// those before them did.
pub(super) fn users_schema(reply: Result<Document, TargetError>) -> Result<i64, TargetError> {
    /// `InvalidOptions`, with which a server answers where it has no such parameter.
    const NO_SUCH_PARAMETER: i32 = 72;
    /// The version that servers had since 3.0.
    const CURRENT: i64 = 5;
    let reply = match reply {
        Err(error) if error.code == Some(NO_SUCH_PARAMETER) => return Ok(CURRENT),
        other => other?,
    };
    let version = reply.get_i32("authSchemaVersion").map(i64::from);
    let version = version.or_else(|_| reply.get_i64("authSchemaVersion"));
    version.map_err(|error| refused(&format!("the server does not tell its schema: {error}")))
}

fn refused(message: &str) -> TargetError {
    TargetError {
        fault: Fault::Refused,
        code: None,
        labels: Vec::new(),
        message: message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::rawdoc;

    fn failed(code: i32) -> TargetError {
        TargetError { code: Some(code), ..refused("drawn") }
    }

    #[test]
    fn entries_travel_in_their_order() {
        let operations = [rawdoc! { "op": "i" }, rawdoc! { "op": "d" }];
        let command = apply_ops(&operations, Validators::Bypassed);
        let command = Document::try_from(command).expect("well formed");
        let expected = doc! {
            "applyOps": [ { "op": "i" }, { "op": "d" } ], "bypassDocumentValidation": true,
        };
        assert_eq!(command, expected);
    }

    #[test]
    fn an_operation_that_failed_fails_the_command() {
        assert!(applied(&doc! { "ok": 1, "results": [true, true] }).is_ok());
        assert!(applied(&doc! { "ok": 1 }).is_ok());
        assert!(applied(&doc! { "ok": 1, "results": [true, false] }).is_err());
    }

    #[test]
    fn only_the_halves_that_are_there_are_merged() {
        let users = Some(Namespace::new("admin", "tempusers"));
        let database = Some("shop".to_owned());
        let merge = MergeUsers { users, database, ..MergeUsers::default() };
        let expected = doc! {
            "_mergeAuthzCollections": 1, "tempUsersCollection": "admin.tempusers", "drop": false,
            "db": "shop", "writeConcern": { "w": 1 },
        };
        assert_eq!(merge_users(&merge, doc! { "w": 1 }), expected);
        let all = MergeUsers { others: Others::Removed, ..MergeUsers::default() };
        let expected = doc! {
            "_mergeAuthzCollections": 1, "drop": true, "db": "", "writeConcern": {},
        };
        assert_eq!(merge_users(&all, doc! {}), expected);
    }

    #[test]
    fn a_merge_of_nothing_tells_whether_there_is_the_command() {
        assert!(could_merge(Err(failed(2))).is_ok());
        assert_eq!(could_merge(Err(failed(59))).expect_err("unknown").code, Some(59));
        assert_eq!(could_merge(Err(failed(13))).expect_err("not allowed").code, Some(13));
    }

    #[test]
    fn the_schema_of_new_servers_is_the_last_one() {
        assert_eq!(users_schema(Ok(doc! { "authSchemaVersion": 3 })), Ok(3));
        assert_eq!(users_schema(Err(failed(72))), Ok(5));
        assert_eq!(users_schema(Err(failed(13))).expect_err("not allowed").code, Some(13));
        assert!(users_schema(Ok(doc! {})).is_err());
    }
}
