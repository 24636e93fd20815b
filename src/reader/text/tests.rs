//! Where texts are cut.

use super::*;
use crate::dump::stream::Interrupt;
use crate::dump::texts::TextInput;
use proptest::prelude::*;

fn cutter(text: &str, layout: JsonLayout) -> Result<Cutter, Error> {
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), text).expect("written");
    let stream = TextInput::File(file.path().to_path_buf()).open(Interrupt::when(|| false));
    Cutter::new(stream.expect("opened"), 0, &TextForm::Json(layout))
}

/// The documents, each with its line and its offset.
fn cut(text: &str, layout: JsonLayout) -> Result<Vec<(String, u64)>, Error> {
    let mut cutter = cutter(text, layout)?;
    let mut documents = Vec::new();
    while let Some(chunk) = cutter.next_chunk()? {
        let ranges: Vec<_> = match &chunk.shape {
            Shape::Stretches(ranges) => ranges.clone(),
            Shape::Rows(_) => panic!("JSON has no rows"),
            Shape::Lines => {
                let mut at = 0;
                let lines = chunk.bytes.split_inclusive(|byte| *byte == b'\n');
                lines
                    .map(|line| {
                        at += line.len();
                        at - line.len()..at
                    })
                    .collect()
            }
        };
        for range in ranges {
            let offset = usize::try_from(chunk.offset).expect("small") + range.start;
            let document = String::from_utf8(chunk.bytes[range].to_vec()).expect("UTF-8");
            assert_eq!(&text[offset..offset + document.len()], document);
            let before = chunk.lines_before
                + text[usize::try_from(chunk.offset).expect("small")..offset].matches('\n').count()
                    as u64;
            assert_eq!(before, text[..offset].matches('\n').count() as u64);
            if !document.trim().is_empty() {
                documents.push((document.trim().to_owned(), offset as u64));
            }
        }
    }
    Ok(documents)
}

fn texts(text: &str) -> Vec<String> {
    let cut = cut(text, JsonLayout::Told).expect("cut");
    cut.into_iter().map(|(document, _)| document).collect()
}

#[test]
fn documents_are_found_however_they_stand() {
    let three = ["{\"a\":1}", "{\"b\":\"}{\\\"\"}", "{\"c\":[[],{}]}"];
    for text in [
        three.join("\n"),
        three.join("\r\n") + "\r\n",
        format!("\u{feff}\n\n{}\n\n", three.join("\n\n")),
        format!("[{}]", three.join(",")),
        format!(" [\n  {}\n]\nand so on", three.join(" ,\n\n")),
    ] {
        assert_eq!(texts(&text), three, "{text}");
    }
    let spread = "{\n \"a\": 1\n}\n{\n \"b\": {\n}\n}{\"c\":\n2}";
    assert_eq!(texts(spread), ["{\n \"a\": 1\n}", "{\n \"b\": {\n}\n}", "{\"c\":\n2}"]);
    for nothing in ["", "\n \n", "[]", " [ ]"] {
        assert_eq!(texts(nothing), [""; 0], "{nothing}");
    }
}

#[test]
fn what_is_no_document_is_handed_over_as_well() {
    assert_eq!(texts("{\"a\":1}\nnope\n{\"b\":1"), ["{\"a\":1}", "nope", "{\"b\":1"]);
    assert_eq!(texts("[{\"a\":1}, nope, 5, {}]"), ["{\"a\":1}", "nope", "5", "{}"]);
    assert_eq!(texts("[{\"a\":1}, }, {}]"), ["{\"a\":1}", "}", "{}"]);
    assert_eq!(texts("{\n}\n{\"a"), ["{\n}", "{\"a"]);
    // The piece is handed over, and then it is told that the array does not end.
    let mut cutter = cutter("[{}, {\"a", JsonLayout::Told).expect("begun");
    for expected in ["{}", ", {\"a"] {
        let chunk = cutter.next_chunk().expect("cut").expect("a chunk");
        assert_eq!(chunk.bytes, expected.as_bytes());
    }
    assert!(cutter.next_chunk().is_err());
}

#[test]
fn an_array_is_asked_for_and_ends() {
    let error = cut("{}", JsonLayout::Array).expect_err("no array");
    assert!(error.to_string().contains("bracket"), "{error}");
    let error = cut("[{}", JsonLayout::Array).expect_err("cut off");
    assert!(error.to_string().contains("ends inside its array"), "{error}");
    assert_eq!(cut("", JsonLayout::Array).expect("nothing").len(), 0);
}

#[test]
fn several_values_on_a_line_are_told_apart() {
    assert_eq!(values(b"{} {\"a\":1}{\"b\""), (vec![0..2, 3..10], 10));
    assert_eq!(values(b"nope {}"), (vec![0..4, 5..7], 7));
}

proptest! {
    #[test]
    fn no_document_is_lost_where_chunks_meet(
        sizes in prop::collection::vec(0_usize..200_000, 1..12),
        form in 0..3,
    ) {
        let documents: Vec<_> =
            sizes.iter().map(|size| format!("{{\"p\":\"{}\"}}", "x]\\\"".repeat(size / 4))).collect();
        let text = match form {
            0 => documents.join("\n"),
            1 => format!("[{}]", documents.join(",")),
            _ => documents.iter().map(|one| one.replace(':', ":\n")).collect::<Vec<_>>().join(" "),
        };
        let found: Vec<_> = texts(&text).iter().map(|one| one.replace(":\n", ":")).collect();
        prop_assert_eq!(found.len(), documents.len());
        prop_assert!(found == documents);
    }
}
