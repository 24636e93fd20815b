//! What is left out of commands, because a server is known to refuse it or has just refused it.
//!
//! Only fields are left out without which the same documents and indexes arrive. Everything else
//! that a server refuses is a failure, which the report tells.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bson::{Bson, Document};

use crate::facts::Product;
use crate::target::{Fault, TargetError};

/// Asks that validators do not judge.
pub(super) const BYPASS: &str = "bypassDocumentValidation";

/// Asks for an acknowledgement.
pub(super) const WRITE_CONCERN: &str = "writeConcern";

/// Asks that index options are ignored that the server does not know.
const IGNORE: &str = "ignoreUnknownIndexOptions";

/// Tells the storage engine how to store.
const STORAGE: &str = "storageEngine";

/// The fields that may be left out, and what follows from it.
const OPTIONAL: [(&str, &str); 7] = [
    (BYPASS, "validators judge every document"),
    (WRITE_CONCERN, "its own write concern holds"),
    (IGNORE, "an index with an option that it does not know fails"),
    (STORAGE, "it stores as it does by default"),
    ("commitQuorum", "indexes are built with its own quorum"),
    ("background", "nothing else changes"),
    ("ns", "nothing else changes"),
];

/// What products are known to refuse, so that it is not sent at all.
const KNOWN: [(Product, &str); 9] = [
    // "parameter storageEngine is disallowed in create command" (mingo-app/mingo#461).
    (Product::AtlasProxy, STORAGE),
    // Engines of their own, for which WiredTiger's settings mean nothing.
    (Product::DocumentDb, STORAGE),
    (Product::CosmosDb, STORAGE),
    (Product::DocumentDbEngine, STORAGE),
    (Product::FerretDb, STORAGE),
    // A switch of MongoDB's own; unknown options are taken out by the plan.
    (Product::DocumentDb, IGNORE),
    (Product::CosmosDb, IGNORE),
    (Product::DocumentDbEngine, IGNORE),
    // `Index option "ns" is unknown` (FerretDB/FerretDB#4638) shows how strict it is.
    (Product::FerretDb, IGNORE),
];

/// Words by which servers refuse a field rather than what it says.
const REFUSALS: [&str; 9] = [
    "unknown",
    "unrecognized",
    "not supported",
    "unsupported",
    "not implemented",
    "disallowed",
    "not allowed",
    "not valid for an index",
    "not permitted",
];

/// The fields that are not sent; clones share them.
#[derive(Clone, Debug, Default)]
pub(super) struct LeftOut(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    fields: BTreeSet<&'static str>,
    notes: Vec<String>,
}

impl LeftOut {
    /// What is left out for a product from the beginning.
    pub(super) fn of(product: Product) -> Self {
        let known = KNOWN.iter().filter(|(known, _)| *known == product);
        let fields: BTreeSet<_> = known.map(|(_, field)| *field).collect();
        let mut notes = Vec::new();
        if !fields.is_empty() {
            let names: Vec<_> = fields.iter().map(|field| format!("`{field}`")).collect();
            let (server, names) = (product.name(), names.join(" and "));
            notes.push(format!("the server is {server}, which is not sent {names}"));
        }
        Self(Arc::new(Mutex::new(State { fields, notes })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a field is left out.
    pub(super) fn holds(&self, field: &str) -> bool {
        self.state().fields.contains(field)
    }

    /// Takes what is left out from a command and from the indexes in it.
    pub(super) fn trim(&self, command: &mut Document) {
        let state = self.state();
        for field in &state.fields {
            command.remove(*field);
        }
        if let Ok(indexes) = command.get_array_mut("indexes") {
            for index in indexes.iter_mut().filter_map(Bson::as_document_mut) {
                for field in &state.fields {
                    index.remove(*field);
                }
            }
        }
    }

    /// Whether the refusal names a field that can be left out and was not yet; it is from now on.
    pub(super) fn learns_from(&self, error: &TargetError) -> bool {
        let Some((field, consequence)) = refused_field(error) else {
            return false;
        };
        let mut state = self.state();
        let is_new = state.fields.insert(field);
        if is_new {
            let reason = &error.message;
            let note = format!("the server refuses `{field}`, so {consequence}: {reason}");
            state.notes.push(note);
        }
        is_new
    }

    /// Tells something with the rest.
    pub(super) fn note(&self, text: &str) {
        self.state().notes.push(text.to_owned());
    }

    /// What was learned since this was last asked.
    pub(super) fn take_notes(&self) -> Vec<String> {
        std::mem::take(&mut self.state().notes)
    }
}

/// The optional field that a refusal names, with what follows from leaving it out.
fn refused_field(error: &TargetError) -> Option<(&'static str, &'static str)> {
    let message = &error.message;
    if error.fault != Fault::Refused || !REFUSALS.iter().any(|word| message.contains(word)) {
        return None;
    }
    // As a name in quotes, or after the word for it: `ns` stands in many other messages.
    let is_named = |field: &str| {
        let quoted = |quote: char| {
            message.contains(&format!("{quote}{field}{quote}"))
                || message.contains(&format!(".{field}{quote}"))
        };
        ['\'', '"', '`'].into_iter().any(quoted)
            || ["field", "parameter", "option"]
                .iter()
                .any(|word| message.contains(&format!("{word} {field}")))
    };
    OPTIONAL.into_iter().find(|(field, _)| is_named(field))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::doc;

    fn refused(message: &str) -> TargetError {
        let message = message.to_owned();
        TargetError { fault: Fault::Refused, code: Some(9), labels: Vec::new(), message }
    }

    #[test]
    fn refused_fields_are_told_from_the_words_of_many_servers() {
        for (message, expected) in [
            ("BSON field 'insert.bypassDocumentValidation' is an unknown field.", Some(BYPASS)),
            ("Field 'bypassDocumentValidation' is currently not supported", Some(BYPASS)),
            ("parameter storageEngine is disallowed in create command", Some(STORAGE)),
            ("Index option \"ns\" is unknown", Some("ns")),
            ("support for field \"commitQuorum\" is not implemented yet", Some("commitQuorum")),
            ("The field 'ns' is not valid for an index specification", Some("ns")),
            ("createIndexes: unknown field ignoreUnknownIndexOptions", Some(IGNORE)),
            ("BSON field 'create.validator' is an unknown field.", None),
            ("unknown columns in table", None),
            ("writeConcern could not be satisfied", None),
            ("collation is not supported, ns: shop.orders", None),
            ("w is not allowed in writeConcern on this host", None),
        ] {
            let found = refused_field(&refused(message)).map(|(field, _)| field);
            assert_eq!(found, expected, "{message}");
        }
        let lost = TargetError { fault: Fault::ConnectionLost, ..refused("ns is unknown") };
        assert_eq!(refused_field(&lost), None);
    }

    #[test]
    fn a_refusal_is_learned_once_and_noted() {
        let left_out = LeftOut::default();
        let error = refused("Index option \"ns\" is unknown");
        assert!(left_out.learns_from(&error));
        assert!(!left_out.learns_from(&error), "so that a command is not sent for ever");
        let mut command =
            doc! { "createIndexes": "c", "indexes": [ { "name": "a", "ns": "d.c" } ] };
        left_out.trim(&mut command);
        assert_eq!(command, doc! { "createIndexes": "c", "indexes": [ { "name": "a" } ] });
        let notes = left_out.clone().take_notes();
        assert_eq!(notes.len(), 1);
        assert!(notes[0].contains("`ns`"), "{notes:?}");
        assert!(left_out.take_notes().is_empty());
    }

    #[test]
    fn what_a_product_refuses_is_not_sent_at_all() {
        let options = doc! { "create": "c", "storageEngine": { "wiredTiger": {} }, "capped": true };
        for (product, is_sent) in [
            (Product::MongoDb, true),
            (Product::AtlasProxy, false),
            (Product::DocumentDb, false),
            (Product::CosmosDb, false),
            (Product::DocumentDbEngine, false),
            (Product::FerretDb, false),
        ] {
            let mut command = options.clone();
            LeftOut::of(product).trim(&mut command);
            assert_eq!(command.contains_key(STORAGE), is_sent, "{product:?}");
            assert!(command.contains_key("capped"));
            let notes = LeftOut::of(product).take_notes();
            assert_eq!(notes.len(), usize::from(!is_sent), "{notes:?}");
        }
    }
}
