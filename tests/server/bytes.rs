//! Documents arrive byte for byte, whatever they hold.

use crate::support::dump::Dump;
use crate::support::raw::{document, double, field, int, nested, string, text, zero};
use crate::support::{Restore, Server, lacks, md5_sum, stored};
use serde_json::json;

/// The largest document a server stores.
const DOCUMENT_BYTES_MAX: usize = 16 * 1024 * 1024;

/// A quiet and a signalling NaN with payloads, which no two encoders agree on.
const NANS: [u64; 2] = [0x7ff8_dead_0000_0001, 0x7ff0_0000_0000_0001];

#[track_caller]
fn arrive_unchanged(documents: &[Vec<u8>]) {
    let server = Server::lease();
    let dump = Dump::new().with("bytes", "things", documents);
    Restore::new(server.uri(), dump.path()).run().ended(0);
    let mut there = stored(&server.client(), "bytes", "things");
    let mut expected = documents.to_vec();
    there.sort();
    expected.sort();
    assert!(there == expected, "{:?}\n{:?}", shown(&there), shown(&expected));
}

/// The beginnings of documents, in hexadecimal.
fn shown(documents: &[Vec<u8>]) -> Vec<String> {
    let begins = documents.iter().map(|document| &document[..document.len().min(80)]);
    begins.map(|begin| format!("{begin:02x?}")).collect()
}

/// Fields of types and forms that encoders write no more or never did.
fn rare_fields() -> Vec<Vec<u8>> {
    let pointer = [text("shop.orders"), b"123456789012".to_vec()].concat();
    let scope = document(&[int("x", 1)]);
    let code = text("return x");
    let scoped_length = u32::try_from(4 + code.len() + scope.len()).unwrap();
    let scoped = [&scoped_length.to_le_bytes()[..], &code, &scope].concat();
    let old_binary = [&6_u32.to_le_bytes()[..], &[2], &2_u32.to_le_bytes(), b"ab"].concat();
    let mut fields = vec![
        field(0x06, "undefined", &[]),
        field(0x0e, "symbol", &text("sym")),
        field(0x0c, "pointer", &pointer),
        field(0x0f, "scoped", &scoped),
        field(0x0d, "code", &code),
        field(0x05, "old binary", &old_binary),
        field(0x13, "decimal", &[0xff; 16]),
        field(0xff, "least", &[]),
        field(0x7f, "most", &[]),
        double("minus zero", 1 << 63),
        double("quiet", NANS[0]),
        double("signalling", NANS[1]),
        string("not one text", "a\0b"),
        field(0x02, "not UTF-8", &[3, 0, 0, 0, 0xff, 0xfe, 0]),
        string("", "no name"),
        int("dotted.name", 1),
        [int("twice", 1), int("twice", 2)].concat(),
        nested("inside", &document(&[zero("t"), int("twice", 1), int("twice", 2)])),
    ];
    if !lacks("names of its own for the elements of an array", [4, 4]) {
        fields.push(field(0x04, "gaps", &document(&[int("7", 1), int("x", 2)])));
    }
    if !lacks("fields whose names begin with a dollar sign", [5, 0]) {
        fields.push(int("$dollar", 1));
    }
    fields
}

#[test]
fn rare_types_and_forms() {
    let documents: Vec<_> =
        (0..).zip(rare_fields()).map(|(id, field)| document(&[int("_id", id), field])).collect();
    arrive_unchanged(&documents);
}

#[test]
fn rare_types_and_forms_beside_a_zero_timestamp() {
    let documents: Vec<_> = (0..)
        .zip(rare_fields())
        .map(|(id, field)| document(&[int("_id", id), zero("t"), field]))
        .collect();
    arrive_unchanged(&documents);
}

#[test]
fn zero_timestamps_wherever_they_stand() {
    let inside = document(&[zero("t")]);
    // Before 4.4 an upsert numbers the elements of an array, whatever they were called.
    let numbered = document(&[zero("0")]);
    let names = lacks("names of its own for the elements of an array", [4, 4]);
    let of = if names { &numbered } else { &inside };
    arrive_unchanged(&[
        document(&[int("_id", 1), zero("t")]),
        document(&[int("_id", 2), zero("t"), int("a", 1), zero("u"), zero("")]),
        document(&[int("_id", 3), zero("t"), zero("t")]),
        document(&[int("_id", 4), nested("in", &inside)]),
        document(&[int("_id", 5), zero("t"), nested("in", &inside), field(0x04, "of", of)]),
        document(&[int("_id", 6), field(0x11, "almost", &[1, 0, 0, 0, 0, 0, 0, 0])]),
        document(&[zero("_id")]),
    ]);
    // The same `_id` twice would be a duplicate.
    arrive_unchanged(&[document(&[zero("_id"), zero("t")])]);
}

#[test]
fn ids_of_every_type_beside_a_zero_timestamp() {
    let ids = [
        int("_id", 7),
        field(0x12, "_id", &8_i64.to_le_bytes()),
        double("_id", NANS[0]),
        double("_id", 1 << 63),
        string("_id", "text"),
        nested("_id", &document(&[int("a", 1), zero("t")])),
        nested("_id", &document(&[string("$ref", "c"), int("$id", 1)])),
        field(0x05, "_id", &[1, 0, 0, 0, 4, 9]),
        field(0x07, "_id", b"123456789012"),
        field(0x08, "_id", &[1]),
        field(0x09, "_id", &1_i64.to_le_bytes()),
        field(0x0a, "_id", &[]),
        field(0x0e, "_id", &text("symbol")),
        field(0x13, "_id", &[1; 16]),
        field(0xff, "_id", &[]),
        field(0x7f, "_id", &[]),
    ];
    let with = |more: &[Vec<u8>]| -> Vec<_> {
        ids.iter().map(|id| document(&[std::slice::from_ref(id), more].concat())).collect()
    };
    arrive_unchanged(&with(&[]));
    arrive_unchanged(&with(&[zero("t")]));
}

#[test]
fn deep_nesting() {
    let mut inner = document(&[int("bottom", 1)]);
    for _ in 0..100 {
        inner = document(&[nested("d", &inner)]);
    }
    let deep = |id, more: Vec<u8>| document(&[int("_id", id), nested("d", &inner), more]);
    arrive_unchanged(&[deep(1, int("plain", 1)), deep(2, zero("t"))]);
}

#[test]
fn the_largest_document_there_can_be() {
    let around = document(&[int("_id", 1), string("s", "")]).len();
    let largest = document(&[int("_id", 1), string("s", &"x".repeat(DOCUMENT_BYTES_MAX - around))]);
    assert_eq!(largest.len(), DOCUMENT_BYTES_MAX);
    let small = document(&[int("_id", 2), int("a", 1)]);
    arrive_unchanged(&[small, largest]);
}

#[test]
fn the_largest_document_with_a_zero_timestamp() {
    let around = document(&[int("_id", 1), zero("t"), string("s", "")]).len();
    let text = "x".repeat(DOCUMENT_BYTES_MAX - around);
    let largest = document(&[int("_id", 1), zero("t"), string("s", &text)]);
    assert_eq!(largest.len(), DOCUMENT_BYTES_MAX);
    arrive_unchanged(&[largest, document(&[int("_id", 2), zero("t")])]);
}

#[test]
fn an_id_further_back_comes_first_as_a_server_puts_it() {
    let server = Server::lease();
    let dumped = [
        document(&[int("a", 1), int("_id", 1), int("b", 2)]),
        document(&[int("a", 1), zero("t"), int("_id", 2)]),
        document(&[string("a", "x"), zero("_id")]),
    ];
    let dump = Dump::new().with("bytes", "things", &dumped);
    let restored = Restore::new(server.uri(), dump.path()).run().ended(0);
    assert_eq!(restored.balance(), [3, 3, 0, 0, 0]);
    let expected = [
        document(&[int("_id", 1), int("a", 1), int("b", 2)]),
        document(&[int("_id", 2), int("a", 1), zero("t")]),
        document(&[zero("_id"), string("a", "x")]),
    ];
    assert_eq!(md5_sum(&stored(&server.client(), "bytes", "things")), md5_sum(&expected));
}

#[test]
fn a_document_without_an_id_gets_one_and_a_note_says_so() {
    let server = Server::lease();
    let dumped = [document(&[int("a", 1)]), document(&[int("b", 2), zero("t")]), document(&[])];
    let dump = Dump::new().with("bytes", "things", &dumped);
    let restored = Restore::new(server.uri(), dump.path()).run().ended(0);
    assert_eq!(restored.balance(), [3, 3, 0, 0, 0]);
    let notes = restored.notes();
    assert!(notes.iter().any(|note| note.contains("3 documents without an _id")), "{notes:?}");
    let there = stored(&server.client(), "bytes", "things");
    let mut without_ids: Vec<_> = there
        .iter()
        .map(|document| {
            // The id is the first field: its type, its name, and twelve bytes.
            assert_eq!(&document[4..9], b"\x07_id\0");
            [&u32::try_from(document.len() - 17).unwrap().to_le_bytes(), &document[21..]].concat()
        })
        .collect();
    without_ids.sort();
    let mut expected = dumped.to_vec();
    expected.sort();
    assert_eq!(without_ids, expected);
}

#[test]
fn documents_that_no_server_takes_are_counted_and_shown() {
    let server = Server::lease();
    let dumped = [
        document(&[int("_id", 1)]),
        document(&[field(0x06, "_id", &[])]),
        document(&[field(0x04, "_id", &document(&[int("0", 1)])), zero("t")]),
        document(&[int("_id", 2), int("_id", 3)]),
        document(&[int("_id", 4)]),
    ];
    let dump = Dump::new().with("bytes", "things", &dumped);
    let restored = Restore::new(server.uri(), dump.path()).run().ended(3);
    assert_eq!(restored.balance(), [5, 2, 0, 3, 0]);
    let there = stored(&server.client(), "bytes", "things");
    assert_eq!(md5_sum(&there), md5_sum(&[dumped[0].clone(), dumped[4].clone()]));
}

#[test]
fn a_capped_collection_keeps_its_order_among_zero_timestamps() {
    let server = Server::lease();
    let dumped: Vec<_> = (0..500)
        .map(|id| match id % 7 {
            0 | 3 | 4 => document(&[int("_id", id), zero("t")]),
            _ => document(&[int("_id", id), string("s", "plain")]),
        })
        .collect();
    let metadata = json!({
        "options": { "capped": true, "size": { "$numberInt": "1048576" } }, "indexes": [],
    });
    let dump = Dump::new().with("bytes", "ring", &dumped).described("bytes", "ring", &metadata);
    let arguments = ["--batch-documents", "40"];
    Restore::new(server.uri(), dump.path()).args(&arguments).run().ended(0);
    assert_eq!(stored(&server.client(), "bytes", "ring"), dumped);
}
