//! The options of a collection, made fit for the `create` command.

use bson::{Bson, Document};

use crate::dump::inventory::CollectionKind;

/// Whether collections are created with the options they had.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OptionPolicy {
    /// With all of them.
    #[default]
    Restore,
    /// With none; a view keeps what makes it one.
    Skip,
}

/// What makes a view one.
const OF_A_VIEW: [&str; 2] = ["viewOn", "pipeline"];

/// What is left of a collection's options where none are wanted; nothing of a time-series
/// collection could be inserted then, which the error says.
pub(super) fn skipped(
    kind: CollectionKind,
    options: Document,
    notes: &mut Vec<String>,
) -> Result<Document, String> {
    let (kept, dropped): (Document, Document) = match kind {
        CollectionKind::TimeSeries => {
            return Err("a time-series collection cannot be restored without its options; leave \
                        --no-options out, or exclude it"
                .to_owned());
        }
        CollectionKind::Collection => (Document::new(), options),
        CollectionKind::View => {
            options.into_iter().partition(|(name, _)| OF_A_VIEW.contains(&name.as_str()))
        }
    };
    if !dropped.is_empty() {
        let names: Vec<_> = dropped.keys().map(|name| format!("`{name}`")).collect();
        notes.push(format!("created without its options {}", names.join(", ")));
    }
    Ok(kept)
}

/// Options that a dump may carry and that no current server takes, with what is said about it.
const LEFT_OUT: [(&str, &str); 5] = [
    ("create", "the option `create` repeats the command's own field and is left out"),
    ("autoIndexId", "the option `autoIndexId` is left out: every collection has an index on _id"),
    ("temp", "the option `temp` is left out: it would make the server drop the collection"),
    ("flags", "the option `flags` is left out: it belonged to a storage engine that is gone"),
    ("recordIdsReplicated", "the option `recordIdsReplicated` is left out: the target decides it"),
];

/// The options that `create` is sent, in their order; what is left out is noted.
///
/// A true `autoIndexId` is what every server does anyway and goes without a note.
pub(super) fn creatable(options: Document, notes: &mut Vec<String>) -> Document {
    let mut kept = Document::new();
    for (name, value) in options {
        match LEFT_OUT.iter().find(|(left_out, _)| *left_out == name) {
            None => {
                kept.insert(name, value);
            }
            Some(("autoIndexId", _)) if value != Bson::Boolean(false) => {}
            Some((_, note)) => notes.push((*note).to_owned()),
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::doc;

    #[test]
    fn order_is_kept_and_what_no_server_takes_is_noted() {
        let mut notes = Vec::new();
        let options = doc! {
            "size": 10, "temp": true, "capped": true, "autoIndexId": true, "flags": 1,
            "validator": { "b": 1, "a": 1 },
        };
        let kept = creatable(options, &mut notes);
        assert_eq!(kept, doc! { "size": 10, "capped": true, "validator": { "b": 1, "a": 1 } });
        assert_eq!(kept.keys().collect::<Vec<_>>(), ["size", "capped", "validator"]);
        assert_eq!(notes.len(), 2);
    }

    #[test]
    fn without_options_a_view_is_still_a_view() {
        let mut notes = Vec::new();
        let view = doc! { "viewOn": "a", "pipeline": [], "collation": { "locale": "fr" } };
        let kept = skipped(CollectionKind::View, view, &mut notes).expect("kept");
        assert_eq!(kept.keys().collect::<Vec<_>>(), ["viewOn", "pipeline"]);
        assert_eq!(notes, ["created without its options `collation`"]);
        let capped = doc! { "capped": true, "size": 4096 };
        assert_eq!(skipped(CollectionKind::Collection, capped, &mut notes), Ok(doc! {}));
        assert!(skipped(CollectionKind::TimeSeries, doc! {}, &mut notes).is_err());
    }

    #[test]
    fn a_missing_index_on_the_id_is_noted() {
        let mut notes = Vec::new();
        assert_eq!(creatable(doc! { "autoIndexId": false }, &mut notes), doc! {});
        assert!(notes[0].contains("autoIndexId"));
    }
}
