//! What a deep inspection looks for beyond the structure of documents.

use std::io;
use std::path::Path;

use bson::{Bson, Document};

use crate::batch::Position;
use crate::command::inspect::ids::{Duplicate, Ids};
use crate::command::inspect::scan::{LISTED_MAX, count};
use crate::command::inspect::{DeepFindings, InspectedCollection, Problem};
use crate::dump::{CollectionMetadata, DumpEntry, Origin};
use crate::frame::{Field, Frame};
use crate::limits::{DOCUMENT_BYTES_MAX, DOCUMENT_BYTES_USER_MAX};
use crate::reader::salvage::Stretch;

/// Fields that an index has at most.
const INDEX_FIELDS_MAX: usize = 32;

/// The kinds of index that a field's value can name.
const INDEX_KINDS: [&str; 7] =
    ["2d", "2dsphere", "columnstore", "geoHaystack", "hashed", "text", "wildcard"];

/// The sorts of finding; of each the first few are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sort {
    /// Bytes that are no document.
    Lost,
    /// Names and strings that are not UTF-8.
    NotUtf8,
    /// What a server does not take as an `_id`.
    BadId,
    /// Documents that are larger than a server stores.
    TooLarge,
    /// Documents whose `_id` another one has.
    Duplicate,
}

impl DeepFindings {
    fn count(&mut self, sort: Sort) -> &mut u64 {
        match sort {
            Sort::Lost => &mut self.lost_stretches,
            Sort::NotUtf8 => &mut self.not_utf8,
            Sort::BadId => &mut self.bad_ids,
            Sort::TooLarge => &mut self.too_large,
            Sort::Duplicate => &mut self.duplicate_ids,
        }
    }

    /// Findings beyond those that are listed.
    pub(super) fn unlisted(&self) -> u64 {
        [self.lost_stretches, self.not_utf8, self.bad_ids, self.too_large, self.duplicate_ids]
            .into_iter()
            .map(|count| count.saturating_sub(LISTED_MAX))
            .sum()
    }
}

/// Adds a finding to a collection.
pub(super) fn find(
    collection: &mut InspectedCollection,
    sort: Sort,
    offset: Option<u64>,
    what: impl FnOnce() -> String,
) {
    let Some(data) = &mut collection.data else { return };
    let findings = data.deep.get_or_insert_default();
    let count = findings.count(sort);
    *count += 1;
    if *count <= LISTED_MAX {
        collection.problems.push(Problem { file: data.path.clone(), offset, what: what() });
    }
}

/// Looks at a document of sound structure.
pub(super) fn look_at(
    frame: Frame<'_>,
    position: Position,
    collection: &mut InspectedCollection,
    place: usize,
    ids: &mut Ids,
) {
    let Some(data) = &mut collection.data else { return };
    count(frame, data);
    ids.add(place, frame, position.offset);
    let walked = walk(frame, 1);
    let findings = data.deep.get_or_insert_default();
    findings.deepest = findings.deepest.max(walked.deepest);
    let at = Some(position.offset);
    if let Some(name) = walked.not_utf8 {
        find(collection, Sort::NotUtf8, at, || {
            format!("a document holds text that is not UTF-8, in its field `{name}`")
        });
    }
    if let Some(kind) = frame.id().and_then(|id| bad_id(&id)) {
        find(collection, Sort::BadId, at, || {
            format!("a document has {kind} as its _id, which no server takes")
        });
    }
    let bytes = frame.bytes().len();
    if bytes > DOCUMENT_BYTES_USER_MAX {
        find(collection, Sort::TooLarge, at, || {
            format!("a document has {bytes} bytes, more than the 16 MiB a server stores")
        });
    }
}

/// Notes a stretch that is lost.
pub(super) fn lose(collection: &mut InspectedCollection, stretch: &Stretch, bytes: u64) {
    if let Some(data) = &mut collection.data {
        data.deep.get_or_insert_default().lost_bytes += bytes;
    }
    find(collection, Sort::Lost, Some(stretch.from), || match stretch.to {
        Some(to) => format!("{}; {bytes} bytes are lost, up to byte {to}", stretch.reason),
        None => format!("{}; nothing behind it can be read", stretch.reason),
    });
}

/// Notes the documents with an `_id` of another one.
pub(super) fn find_duplicates(ids: Ids, mut tell: impl FnMut(usize, Option<Duplicate>, String)) {
    let told = ids.duplicates(|duplicate| {
        let what = format!("a document has the _id of the one at byte {}", duplicate.first);
        tell(duplicate.place, Some(duplicate), what);
    });
    if let Err(error) = told {
        tell(0, None, unfinished(&error));
    }
}

fn unfinished(error: &io::Error) -> String {
    let folder = std::env::temp_dir();
    let folder = folder.display();
    format!("equal _ids were not looked for, because {folder} takes no temporary file: {error}")
}

/// What was seen of a document.
struct Walked {
    /// Levels, the document's own included.
    deepest: usize,
    /// The field with text that is not UTF-8.
    not_utf8: Option<String>,
}

/// Walks through a document of sound structure, whose levels are bounded by that.
fn walk(frame: Frame<'_>, level: usize) -> Walked {
    let mut walked = Walked { deepest: level, not_utf8: None };
    for field in frame.fields().map_while(Result::ok) {
        let is_text = std::str::from_utf8(field.name).is_ok() && texts_are_utf8(&field);
        let inside = nested(&field).map(|inside| walk(inside, level + 1));
        let deeper = inside.as_ref().map_or(level, |inside| inside.deepest);
        walked.deepest = walked.deepest.max(deeper);
        let name = || String::from_utf8_lossy(field.name).escape_debug().to_string();
        let found = match inside.and_then(|inside| inside.not_utf8) {
            _ if !is_text => Some(name()),
            Some(inner) => Some(format!("{}.{inner}", name())),
            None => None,
        };
        walked.not_utf8 = walked.not_utf8.or(found);
    }
    walked
}

fn texts_are_utf8(field: &Field<'_>) -> bool {
    let text = match field.kind {
        // string, code, symbol: a length of four bytes and a terminator around the text
        0x02 | 0x0D | 0x0E => field.value.get(4..),
        // regular expression: two texts with their terminators
        0x0B => Some(field.value),
        _ => None,
    };
    text.is_none_or(|text| std::str::from_utf8(text).is_ok())
}

/// The document inside a field.
fn nested<'a>(field: &Field<'a>) -> Option<Frame<'a>> {
    match field.kind {
        0x03 | 0x04 => Frame::new(field.value).ok(),
        _ => None,
    }
}

fn bad_id(id: &Field<'_>) -> Option<&'static str> {
    match id.kind {
        0x04 => Some("a list"),
        0x06 => Some("an undefined value"),
        0x0B => Some("a regular expression"),
        _ => None,
    }
}

/// What is wrong with the definitions of indexes that no restore can repair.
pub(super) fn judge_indexes(entry: &DumpEntry) -> Vec<Problem> {
    let indexes = entry.metadata.as_ref().map(|CollectionMetadata { indexes, .. }| indexes);
    let file = entry.metadata_path.as_deref();
    let file = file.or_else(|| entry.data.as_ref().map(Origin::path)).unwrap_or(Path::new(""));
    let problems = indexes.into_iter().flatten().enumerate().filter_map(|(number, index)| {
        let index = index.definition();
        let name = index.get_str("name").map_or_else(
            |_| format!("index {}", number + 1),
            |name| format!("index `{}`", name.escape_debug()),
        );
        let what = format!("{name}: {}", judge_index(&index)?);
        Some(Problem { file: file.to_path_buf(), offset: None, what })
    });
    problems.collect()
}

fn judge_index(index: &Document) -> Option<String> {
    let key = match index.get("key") {
        Some(Bson::Document(key)) if !key.is_empty() => key,
        Some(Bson::Document(_)) => return Some("its key has no field".to_owned()),
        Some(_) => return Some("its key is no object".to_owned()),
        None => return Some("it has no key".to_owned()),
    };
    if key.len() > INDEX_FIELDS_MAX {
        return Some(format!("its key has {} fields, more than {INDEX_FIELDS_MAX}", key.len()));
    }
    key.iter().find_map(|(field, value)| judge_field(field, value)).or_else(|| judge_rest(index))
}

fn judge_field(field: &str, value: &Bson) -> Option<String> {
    let shown = field.escape_debug();
    let is_wildcard = field == "$**" || field.ends_with(".$**");
    let parts = field.strip_suffix("$**").map_or(field, |before| before.trim_end_matches('.'));
    if !is_wildcard || !parts.is_empty() {
        if parts.split('.').any(str::is_empty) {
            return Some(format!("its field `{shown}` has an empty part"));
        }
        if parts.split('.').any(|part| part.starts_with('$') && !is_reference(part)) {
            return Some(format!("its field `{shown}` begins with a `$`"));
        }
    }
    match value {
        Bson::String(kind) if !kind.is_empty() && !INDEX_KINDS.contains(&kind.as_str()) => {
            Some(format!("its field `{shown}` is of the unknown kind `{}`", kind.escape_debug()))
        }
        Bson::Double(number) if number.is_nan() => {
            Some(format!("its field `{shown}` is no number"))
        }
        _ => None,
    }
}

/// The fields of a `DBRef` may be indexed.
fn is_reference(part: &str) -> bool {
    ["$id", "$ref", "$db"].contains(&part)
}

fn judge_rest(index: &Document) -> Option<String> {
    ["partialFilterExpression", "collation", "weights", "wildcardProjection"].iter().find_map(
        |option| match index.get(option) {
            None | Some(Bson::Document(_)) => None,
            // Old servers kept one text index option as a single name.
            Some(Bson::String(_)) if *option == "weights" => None,
            Some(_) => Some(format!("its option `{option}` is no object")),
        },
    )
}

const _: () = assert!(DOCUMENT_BYTES_USER_MAX < DOCUMENT_BYTES_MAX);

#[cfg(test)]
mod tests {
    use super::*;
    use bson::doc;

    #[test]
    fn index_definitions_are_judged() {
        for (index, expected) in [
            (doc! { "key": { "a": 1, "b.c": -1 }, "name": "x" }, None),
            (doc! { "key": { "$**": 1 } }, None),
            (doc! { "key": { "a.$**": 1 } }, None),
            (doc! { "key": { "_fts": "text", "_ftsx": 1 }, "weights": { "a": 1 } }, None),
            (doc! { "key": { "owner.$id": 1 } }, None),
            (doc! { "name": "x" }, Some("it has no key")),
            (doc! { "key": 1 }, Some("its key is no object")),
            (doc! { "key": {} }, Some("its key has no field")),
            (doc! { "key": { "": 1 } }, Some("its field `` has an empty part")),
            (doc! { "key": { "a..b": 1 } }, Some("its field `a..b` has an empty part")),
            (doc! { "key": { "$a": 1 } }, Some("its field `$a` begins with a `$`")),
            (doc! { "key": { "a": "3d" } }, Some("its field `a` is of the unknown kind `3d`")),
            (doc! { "key": { "a": f64::NAN } }, Some("its field `a` is no number")),
            (
                doc! { "key": { "a": 1 }, "collation": 1 },
                Some("its option `collation` is no object"),
            ),
        ] {
            let judged = judge_index(&index);
            assert_eq!(judged.as_deref(), expected, "{index}");
        }
        let many: Document = (0..33).map(|n| (format!("f{n}"), Bson::Int32(1))).collect();
        assert!(judge_index(&doc! { "key": many }).is_some());
    }

    #[test]
    fn text_and_levels_are_looked_at_wherever_they_are() {
        let good = doc! { "_id": 1, "a": [{ "b": "xyz" }] }.to_vec().expect("encodes");
        let walked = walk(Frame::new(&good).expect("a frame"), 1);
        assert_eq!((walked.deepest, walked.not_utf8), (3, None));
        let mut bad = good.clone();
        let at = bad.windows(3).position(|three| three == b"xyz").expect("it is there");
        bad[at] = 0xFF;
        let walked = walk(Frame::new(&bad).expect("a frame"), 1);
        assert_eq!(walked.not_utf8.as_deref(), Some("a.0.b"));
        let mut bad = good;
        let at = bad.windows(2).position(|two| two == b"b\0").expect("it is there");
        bad[at] = 0xC0;
        assert!(walk(Frame::new(&bad).expect("a frame"), 1).not_utf8.is_some());
    }
}
