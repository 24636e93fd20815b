//! The commands that carry documents, put together byte by byte.
//!
//! An `insert` command is a BSON document whose last field is the array of documents; a batch holds
//! that array already, so the command is a small head, one copy of the array and a terminator.
//! Layout: <https://www.mongodb.com/docs/manual/reference/command/insert/>.

use bson::raw::{RawDocument, cstr};
use bson::{RawArrayBuf, RawBson, RawBsonRef, RawDocumentBuf, rawdoc};

use crate::batch::Batch;
use crate::frame::Frame;
use crate::limits::BATCH_BYTES_MAX;
use crate::target::keys::KeyValue;
use crate::target::{
    Documents, Fault, FieldNames, Insert, OnRefusal, TargetError, Validators, WriteMode,
};

/// The type byte of a string.
const STRING: u8 = 0x02;

/// The type byte of a document.
const DOCUMENT: u8 = 0x03;

/// The type byte of an array.
const ARRAY: u8 = 0x04;

/// The type byte of a boolean.
const BOOLEAN: u8 = 0x08;

/// The type byte of null.
const NULL: u8 = 0x0A;

/// The type byte of a 32-bit integer.
const INT: u8 = 0x10;

/// The bytes of the length of a document, array or string.
const LENGTH_BYTES: usize = 4;

/// What every write command of a run has in common.
pub(super) struct Envelope<'a> {
    pub(super) insert: &'a Insert,
    pub(super) write_concern: Option<&'a RawDocument>,
    pub(super) keeps_zero_timestamps: bool,
}

/// A run of documents that are sent with one command, and where they stand in their batch.
pub(super) struct Segment {
    pub(super) indexes: Vec<u32>,
    pub(super) command: RawDocumentBuf,
}

/// The command that inserts a whole batch.
pub(super) fn whole(envelope: &Envelope<'_>, batch: &Batch) -> Result<RawDocumentBuf, TargetError> {
    const NAME: &[u8] = b"documents\0";
    let head = head(envelope, "insert");
    let head = &head.as_bytes()[..head.as_bytes().len() - 1];
    let length = head.len() + 1 + NAME.len() + batch.array().len() + 1;
    let mut bytes = Vec::with_capacity(length);
    bytes.extend_from_slice(head);
    bytes.push(ARRAY);
    bytes.extend_from_slice(NAME);
    bytes.extend_from_slice(batch.array());
    bytes.push(0);
    let prefix = u32::try_from(length).map_err(|error| malformed(&error))?.to_le_bytes();
    bytes[..4].copy_from_slice(&prefix);
    RawDocumentBuf::from_bytes(bytes).map_err(|error| malformed(&error))
}

/// The commands that replace stored documents by those of a batch or merge them into stored ones,
/// cut where the queries beside the documents make one too large.
pub(super) fn updates(
    envelope: &Envelope<'_>,
    batch: &Batch,
    documents: &Documents,
) -> Result<Vec<Segment>, TargetError> {
    let frames: Vec<_> = batch.frames().collect();
    let mut segments = Vec::new();
    let mut array = ArrayWriter::default();
    let mut indexes: Vec<u32> = Vec::new();
    for index in documents.indexes(batch.documents) {
        let frame = frames[index as usize];
        if !indexes.is_empty() && array.bytes.len() + frame.bytes().len() > BATCH_BYTES_MAX {
            let command = with_array(envelope, "update", &std::mem::take(&mut array).bytes)?;
            segments.push(Segment { indexes: std::mem::take(&mut indexes), command });
        }
        let is_kept = !envelope.keeps_zero_timestamps && batch.detours.contains(&index);
        let is_fresh = batch.fresh.binary_search(&index).is_ok();
        array.push(frame, envelope.insert, is_kept, is_fresh)?;
        indexes.push(index);
    }
    segments.push(Segment { indexes, command: with_array(envelope, "update", &array.bytes)? });
    Ok(segments)
}

/// Commands that delete, and the documents that none of them is for.
pub(super) struct Deletes {
    pub(super) segments: Vec<Segment>,
    /// Documents that have a value in none of the key fields, in ascending order.
    pub(super) keyless: Vec<u32>,
}

/// The commands that delete a stored document for each of those of a batch.
pub(super) fn deletes(
    envelope: &Envelope<'_>,
    batch: &Batch,
    documents: &Documents,
) -> Result<Deletes, TargetError> {
    let frames: Vec<_> = batch.frames().collect();
    let mut found = Deletes { segments: Vec::new(), keyless: Vec::new() };
    let mut array = ArrayWriter::default();
    let mut indexes: Vec<u32> = Vec::new();
    for index in documents.indexes(batch.documents) {
        let frame = frames[index as usize];
        let Some(values) = envelope.insert.keys.values(frame) else {
            found.keyless.push(index);
            continue;
        };
        if !indexes.is_empty() && array.bytes.len() + frame.bytes().len() > BATCH_BYTES_MAX {
            let command = with_array(envelope, "delete", &std::mem::take(&mut array).bytes)?;
            found.segments.push(Segment { indexes: std::mem::take(&mut indexes), command });
        }
        array.push_delete(&values)?;
        indexes.push(index);
    }
    if !indexes.is_empty() {
        let command = with_array(envelope, "delete", &array.bytes)?;
        found.segments.push(Segment { indexes, command });
    }
    Ok(found)
}

/// The `update` or `delete` command with these elements of its array.
fn with_array(
    envelope: &Envelope<'_>,
    command: &'static str,
    elements: &[u8],
) -> Result<RawDocumentBuf, TargetError> {
    let array_name: &[u8] = if command == "delete" { b"deletes\0" } else { b"updates\0" };
    let head = head(envelope, command);
    let head = &head.as_bytes()[..head.as_bytes().len() - 1];
    let array = LENGTH_BYTES + elements.len() + 1;
    let length = head.len() + 1 + array_name.len() + array + 1;
    let mut bytes = Vec::with_capacity(length);
    bytes.extend_from_slice(head);
    bytes.push(ARRAY);
    bytes.extend_from_slice(array_name);
    bytes.extend_from_slice(&prefix(array)?);
    bytes.extend_from_slice(elements);
    bytes.extend_from_slice(&[0, 0]);
    bytes[..LENGTH_BYTES].copy_from_slice(&prefix(length)?);
    RawDocumentBuf::from_bytes(bytes).map_err(|error| malformed(&error))
}

/// The elements of an array of updates or deletes, without the array's length and end.
#[derive(Default)]
struct ArrayWriter {
    bytes: Vec<u8>,
    elements: u32,
}

impl ArrayWriter {
    /// Adds the update of the document that this one's key fields tell; `keeps` asks for the way
    /// that keeps zero timestamps.
    ///
    /// Merging fields that are names takes a pipeline, in which a literal document may have those
    /// that `$set` reads as paths or operators, and keeps its zero timestamps.
    fn push(
        &mut self,
        frame: Frame<'_>,
        insert: &Insert,
        keeps: bool,
        is_fresh: bool,
    ) -> Result<(), TargetError> {
        let update = self.open_element()?;
        let values = match (insert.keys.is_id() || is_fresh, frame.id()) {
            // An `_id` that is null is one like others.
            (true, Some(id)) => Some(vec![("_id", Some(id))]),
            _ => insert.keys.values(frame),
        };
        self.query(values.as_deref())?;
        // What has a value in none of the key fields is inserted as it is.
        let is_new = is_fresh || values.is_none();
        match insert.mode {
            WriteMode::Merge if insert.names == FieldNames::Paths && !is_new => {
                let set = self.open_named(DOCUMENT, "u");
                self.document("$set", frame);
                self.close(set)?;
            }
            WriteMode::Merge if insert.names == FieldNames::Literal => {
                let pipeline = self.open_named(ARRAY, "u");
                let stage = self.open_named(DOCUMENT, "0");
                let root = self.open_named(DOCUMENT, "$replaceWith");
                let merged = self.open_named(ARRAY, "$mergeObjects");
                self.string("0", "$$ROOT")?;
                let literal = self.open_named(DOCUMENT, "1");
                self.document("$literal", frame);
                for open in [literal, merged, root, stage, pipeline] {
                    self.close(open)?;
                }
            }
            _ if keeps => {
                let pipeline = self.open_named(ARRAY, "u");
                let stage = self.open_named(DOCUMENT, "0");
                let root = self.open_named(DOCUMENT, "$replaceWith");
                self.document("$literal", frame);
                for open in [root, stage, pipeline] {
                    self.close(open)?;
                }
            }
            _ => self.document("u", frame),
        }
        self.name(BOOLEAN, "upsert");
        self.bytes.push(1);
        self.close(update)
    }

    /// Adds the delete of one document with these values.
    fn push_delete(&mut self, values: &[KeyValue<'_>]) -> Result<(), TargetError> {
        let delete = self.open_element()?;
        self.query(Some(values))?;
        self.name(INT, "limit");
        self.bytes.extend_from_slice(&1_i32.to_le_bytes());
        self.close(delete)
    }

    /// Begins the next element of the array.
    fn open_element(&mut self) -> Result<usize, TargetError> {
        use std::io::Write;
        self.bytes.push(DOCUMENT);
        write!(self.bytes, "{}\0", self.elements).map_err(|error| malformed(&error))?;
        self.elements += 1;
        Ok(self.open())
    }

    /// The query for these values. `$eq` has a value that looks like an operator or an expression
    /// be a value; a missing one is null, which finds what lacks the field as well.
    fn query(&mut self, values: Option<&[KeyValue<'_>]>) -> Result<(), TargetError> {
        let query = self.open_named(DOCUMENT, "q");
        for (name, value) in values.unwrap_or_default() {
            let equal = self.open_named(DOCUMENT, name);
            match value {
                Some(field) => {
                    self.name(field.kind, "$eq");
                    self.bytes.extend_from_slice(field.value);
                }
                None => self.name(NULL, "$eq"),
            }
            self.close(equal)?;
        }
        if values.is_none() {
            // What matches nothing inserts, and the server gives a document without `_id` one.
            let none = self.open_named(ARRAY, "$nor");
            let anything = self.open_named(DOCUMENT, "0");
            self.close(anything)?;
            self.close(none)?;
        }
        self.close(query)
    }

    fn name(&mut self, kind: u8, name: &str) {
        self.bytes.push(kind);
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.push(0);
    }

    fn document(&mut self, name: &str, frame: Frame<'_>) {
        self.name(DOCUMENT, name);
        self.bytes.extend_from_slice(frame.bytes());
    }

    fn string(&mut self, name: &str, text: &str) -> Result<(), TargetError> {
        self.name(STRING, name);
        self.bytes.extend_from_slice(&prefix(text.len() + 1)?);
        self.bytes.extend_from_slice(text.as_bytes());
        self.bytes.push(0);
        Ok(())
    }

    /// Begins a document or an array; returns where.
    fn open(&mut self) -> usize {
        let begin = self.bytes.len();
        self.bytes.extend_from_slice(&[0; LENGTH_BYTES]);
        begin
    }

    fn open_named(&mut self, kind: u8, name: &str) -> usize {
        self.name(kind, name);
        self.open()
    }

    fn close(&mut self, begin: usize) -> Result<(), TargetError> {
        self.bytes.push(0);
        let length = prefix(self.bytes.len() - begin)?;
        self.bytes[begin..begin + LENGTH_BYTES].copy_from_slice(&length);
        Ok(())
    }
}

/// A length as BSON writes it.
fn prefix(length: usize) -> Result<[u8; LENGTH_BYTES], TargetError> {
    u32::try_from(length).map(u32::to_le_bytes).map_err(|error| malformed(&error))
}

/// The commands that write some documents of a batch, a few of which may take the detour.
/// In order, runs alternate as they come; else all detours travel together.
pub(super) fn segments(
    envelope: &Envelope<'_>,
    batch: &Batch,
    documents: &Documents,
) -> Result<Vec<Segment>, TargetError> {
    let mut runs: Vec<Run<'_>> = Vec::new();
    let frames: Vec<_> = batch.frames().collect();
    for index in documents.indexes(batch.documents) {
        let frame = frames[index as usize];
        let way = if batch.detours.contains(&index) { Way::Detour } else { Way::Insert };
        let open = match envelope.insert.on_refusal {
            OnRefusal::GoOn => runs.iter_mut().find(|run| run.way == way),
            OnRefusal::Stop => runs.last_mut().filter(|run| run.way == way),
        };
        match open {
            Some(run) => run.documents.push((index, frame)),
            None => runs.push(Run { way, documents: vec![(index, frame)] }),
        }
    }
    runs.iter().map(|run| run.segment(envelope)).collect()
}

/// How a document is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// By an `insert` command.
    Insert,
    /// By an upsert that keeps its zero timestamps.
    Detour,
}

struct Run<'a> {
    way: Way,
    documents: Vec<(u32, Frame<'a>)>,
}

impl Run<'_> {
    fn segment(&self, envelope: &Envelope<'_>) -> Result<Segment, TargetError> {
        let mut array = RawArrayBuf::new();
        for (_, frame) in &self.documents {
            let document =
                RawDocument::from_bytes(frame.bytes()).map_err(|error| malformed(&error))?;
            match self.way {
                Way::Insert => array.push(document.to_owned()),
                Way::Detour => array.push(upsert(*frame, document)?),
            }
        }
        let command = match self.way {
            Way::Insert => {
                let mut command = head(envelope, "insert");
                command.append(cstr!("documents"), array);
                command
            }
            Way::Detour => {
                let mut command = head(envelope, "update");
                command.append(cstr!("updates"), array);
                command
            }
        };
        let indexes = self.documents.iter().map(|(index, _)| *index).collect();
        Ok(Segment { indexes, command })
    }
}

/// An update that inserts this document and nothing else, zero timestamps and all.
///
/// A server fills zero timestamps in on inserts and replacements but not in the result of a
/// pipeline. The query names the `_id`, so that the upsert makes a document of it, and can match
/// nothing, so that a document that is there is a duplicate and never overwritten.
fn upsert(frame: Frame<'_>, document: &RawDocument) -> Result<RawDocumentBuf, TargetError> {
    let id: RawBson = match document.get("_id") {
        Ok(Some(id)) => id.into(),
        _ => return Err(malformed(&"a document on the detour has no _id")),
    };
    let literal = RawDocument::from_bytes(frame.bytes()).map_err(|error| malformed(&error))?;
    Ok(rawdoc! {
        "q": { "_id": { "$eq": id }, "$nor": [ {} ] },
        "u": [ { "$replaceRoot": { "newRoot": { "$literal": RawBsonRef::Document(literal) } } } ],
        "upsert": true,
    })
}

/// The fields of a write command before its documents.
fn head(envelope: &Envelope<'_>, name: &'static str) -> RawDocumentBuf {
    let insert = envelope.insert;
    let mut head = RawDocumentBuf::new();
    let collection = insert.namespace.collection();
    match name {
        "update" => head.append(cstr!("update"), collection),
        "delete" => head.append(cstr!("delete"), collection),
        _ => head.append(cstr!("insert"), collection),
    }
    head.append(cstr!("ordered"), insert.on_refusal == OnRefusal::Stop);
    let stores = name != "delete";
    if stores && insert.validators == Validators::Bypassed {
        head.append(cstr!("bypassDocumentValidation"), true);
    }
    if stores && envelope.keeps_zero_timestamps {
        head.append(cstr!("bypassEmptyTsReplacement"), true);
    }
    if let Some(write_concern) = envelope.write_concern {
        head.append(cstr!("writeConcern"), RawBsonRef::Document(write_concern));
    }
    head
}

fn malformed(error: &dyn std::fmt::Display) -> TargetError {
    TargetError {
        fault: Fault::Driver,
        code: None,
        labels: Vec::new(),
        message: format!("the command cannot be put together: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::{BatchLimits, Batcher, BufferPool, Position, ZeroTimestamps};
    use crate::namespace::Namespace;
    use crate::target::keys::KeyFields;
    use bson::{Document, doc};

    fn batch(documents: &[Document]) -> Batch {
        let pool = BufferPool::new(1, 1 << 20);
        let limits = BatchLimits::new(100, 1 << 20);
        let mut batcher = Batcher::new(0, limits, ZeroTimestamps::Detoured, pool);
        for document in documents {
            let bytes = document.to_vec().expect("encodes");
            let cut = batcher.push(Frame::new(&bytes).expect("a frame"), Position::default());
            assert!(cut.is_none(), "all of them fit into one batch");
        }
        batcher.finish(Position::default()).expect("a batch")
    }

    fn insert(on_refusal: OnRefusal) -> Insert {
        let validators = Validators::Bypassed;
        let namespace = Namespace::new("d", "c");
        let (mode, keys) = (WriteMode::Insert, KeyFields::default());
        let names = FieldNames::Literal;
        Insert { namespace, on_refusal, validators, mode, keys, names }
    }

    fn zero(id: i32) -> Document {
        doc! { "_id": id, "t": bson::Timestamp { time: 0, increment: 0 } }
    }

    fn envelope<'a>(insert: &'a Insert, write_concern: &'a RawDocument) -> Envelope<'a> {
        Envelope { insert, write_concern: Some(write_concern), keeps_zero_timestamps: false }
    }

    #[test]
    fn a_whole_batch_is_one_insert_command() {
        let batch = batch(&[doc! { "_id": 1 }, doc! { "_id": 2 }]);
        let insert = insert(OnRefusal::GoOn);
        let majority = rawdoc! { "w": "majority" };
        let command = whole(&envelope(&insert, &majority), &batch).expect("a command");
        let command = Document::try_from(command).expect("well formed");
        let expected = doc! {
            "insert": "c", "ordered": false, "bypassDocumentValidation": true,
            "writeConcern": { "w": "majority" }, "documents": [ { "_id": 1 }, { "_id": 2 } ],
        };
        assert_eq!(command, expected);
    }

    #[test]
    fn unordered_detours_travel_together_and_ordered_ones_in_their_place() {
        let batch = batch(&[zero(0), doc! { "_id": 1 }, zero(2), doc! { "_id": 3 }]);
        let none = RawDocumentBuf::new();
        let together = insert(OnRefusal::GoOn);
        let segments_of = |insert: &Insert, documents: &Documents| -> Vec<Vec<u32>> {
            let segments = segments(&envelope(insert, &none), &batch, documents);
            segments.expect("segments").into_iter().map(|segment| segment.indexes).collect()
        };
        assert_eq!(segments_of(&together, &Documents::All), [vec![0, 2], vec![1, 3]]);
        let in_place = insert(OnRefusal::Stop);
        assert_eq!(segments_of(&in_place, &Documents::All), [[0], [1], [2], [3]]);
        assert_eq!(segments_of(&in_place, &Documents::Only(vec![1, 2])), [[1], [2]]);
    }

    #[test]
    fn an_update_replaces_merges_or_keeps_zero_timestamps() {
        let documents = [doc! { "_id": 7, "a.b": { "$c": 1 } }, zero(8)];
        let batch = batch(&documents);
        let none = RawDocumentBuf::new();
        let commands = |mode, names| -> Document {
            let insert = Insert { mode, names, ..insert(OnRefusal::GoOn) };
            let segments = updates(&envelope(&insert, &none), &batch, &Documents::All);
            let [segment] = &segments.expect("segments")[..] else { panic!("one command") };
            assert_eq!(segment.indexes, [0, 1]);
            Document::try_from(segment.command.clone()).expect("well formed")
        };
        let [one, other] = &documents;
        let replaced = commands(WriteMode::Replace, FieldNames::Literal);
        assert_eq!(replaced.get_str("update").expect("a name"), "c");
        let literal = doc! { "$replaceWith": { "$literal": other } };
        let expected = [
            bson::Bson::from(doc! { "q": { "_id": { "$eq": 7 } }, "u": one, "upsert": true }),
            doc! { "q": { "_id": { "$eq": 8 } }, "u": [literal], "upsert": true }.into(),
        ];
        assert_eq!(replaced.get_array("updates").expect("updates")[..], expected);
        let both = doc! { "$mergeObjects": [ "$$ROOT", { "$literal": one } ] };
        let set = doc! { "$set": one };
        for (names, update) in [
            (FieldNames::Literal, bson::Bson::from(vec![doc! { "$replaceWith": both }])),
            (FieldNames::Paths, set.into()),
        ] {
            let merged = commands(WriteMode::Merge, names);
            let expected = doc! { "q": { "_id": { "$eq": 7 } }, "u": update, "upsert": true };
            let updates = merged.get_array("updates").expect("updates");
            assert_eq!(updates[0].as_document(), Some(&expected), "{names:?}");
        }
    }

    fn by_keys(mode: WriteMode) -> Insert {
        let keys = KeyFields::parse("a.b,c").expect("fields");
        Insert { mode, keys, ..insert(OnRefusal::Stop) }
    }

    #[test]
    fn an_update_by_other_fields_finds_by_their_values() {
        let operator = doc! { "$gt": 1 };
        let documents = [doc! { "a": { "b": 1 } }, doc! { "c": &operator }, doc! { "_id": 3 }];
        let batch = batch(&documents);
        let none = RawDocumentBuf::new();
        let insert = by_keys(WriteMode::Replace);
        let segments = updates(&envelope(&insert, &none), &batch, &Documents::All);
        let command = Document::try_from(segments.expect("segments")[0].command.clone());
        let command = command.expect("well formed");
        let [one, other, third] = &documents;
        let null = bson::Bson::Null;
        let expected: [bson::Bson; 3] = [
            doc! { "q": { "a.b": { "$eq": 1 }, "c": { "$eq": &null } }, "u": one, "upsert": true }
                .into(),
            doc! {
                "q": { "a.b": { "$eq": &null }, "c": { "$eq": operator } },
                "u": other, "upsert": true,
            }
            .into(),
            doc! { "q": { "$nor": [ {} ] }, "u": third, "upsert": true }.into(),
        ];
        assert_eq!(command.get_array("updates").expect("updates")[..], expected);
    }

    #[test]
    fn a_delete_is_for_one_stored_document_each_and_for_none_without_keys() {
        let batch = batch(&[doc! { "x": 1 }, doc! { "a": { "b": "k" }, "c": 2 }, doc! { "c": 5 }]);
        let majority = rawdoc! { "w": "majority" };
        let insert = by_keys(WriteMode::Delete);
        let mut envelope = envelope(&insert, &majority);
        envelope.keeps_zero_timestamps = true;
        let found = deletes(&envelope, &batch, &Documents::All).expect("deletes");
        assert_eq!(found.keyless, [0]);
        let [segment] = &found.segments[..] else { panic!("one command") };
        assert_eq!(segment.indexes, [1, 2]);
        let command = Document::try_from(segment.command.clone()).expect("well formed");
        let expected = doc! {
            "delete": "c", "ordered": true, "writeConcern": { "w": "majority" },
            "deletes": [
                { "q": { "a.b": { "$eq": "k" }, "c": { "$eq": 2 } }, "limit": 1 },
                { "q": { "a.b": { "$eq": bson::Bson::Null }, "c": { "$eq": 5 } }, "limit": 1 },
            ],
        };
        assert_eq!(command, expected);
        let none = deletes(&envelope, &batch, &Documents::Only(vec![0])).expect("deletes");
        assert!(none.segments.is_empty());
    }

    #[test]
    fn updates_that_outgrow_a_message_are_cut() {
        let pool = BufferPool::new(1, 1 << 20);
        let limits = BatchLimits::new(200_000, BATCH_BYTES_MAX);
        let mut batcher = Batcher::new(0, limits, ZeroTimestamps::Kept, pool);
        for id in 0..90_000_i32 {
            let bytes = doc! { "_id": id, "p": "x".repeat(120) }.to_vec().expect("encodes");
            batcher.push(Frame::new(&bytes).expect("a frame"), Position::default());
        }
        let batch = batcher.finish(Position::default()).expect("a batch");
        let insert = Insert { mode: WriteMode::Replace, ..insert(OnRefusal::GoOn) };
        let none = RawDocumentBuf::new();
        let segments =
            updates(&envelope(&insert, &none), &batch, &Documents::All).expect("segments");
        assert!(segments.len() > 1);
        let fit = |one: &Segment| one.command.as_bytes().len() < crate::limits::DOCUMENT_BYTES_MAX;
        assert!(segments.iter().all(fit));
        let all = segments.iter().flat_map(|one| one.indexes.iter().copied());
        assert!(all.eq(0..batch.documents));
    }

    #[test]
    fn the_detour_upserts_the_literal_document() {
        let batch = batch(&[zero(7)]);
        let none = RawDocumentBuf::new();
        let insert = insert(OnRefusal::GoOn);
        let segments =
            segments(&envelope(&insert, &none), &batch, &Documents::All).expect("segments");
        let command = Document::try_from(segments[0].command.clone()).expect("well formed");
        let update = command.get_array("updates").expect("updates")[0].as_document();
        let expected = doc! {
            "q": { "_id": { "$eq": 7 }, "$nor": [ {} ] },
            "u": [ { "$replaceRoot": { "newRoot": { "$literal": zero(7) } } } ],
            "upsert": true,
        };
        assert_eq!(update, Some(&expected));
    }
}
