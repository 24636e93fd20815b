//! Texts that are imported nowhere: what is read, counted and told, and the status at the end.

use crate::program::{Finished, Program};
use serde_json::Value;
use std::path::Path;

/// Imports nowhere, in this folder; the report is there after it.
fn import(folder: &Path, arguments: &[&str], input: &str) -> (Finished, Value) {
    let finished = Program::restorm(&["import", "--null", "--report", "report.json"])
        .args(arguments)
        .in_folder(folder)
        .input(input)
        .run();
    let report = std::fs::read(folder.join("report.json")).unwrap_or_default();
    let report = serde_json::from_slice(&report).unwrap_or(Value::Null);
    (finished, report)
}

/// Documents read, inserted and rejected.
fn balance(report: &Value) -> [Option<u64>; 3] {
    ["read", "inserted", "rejected"].map(|name| report["balance"][name].as_u64())
}

fn lines(count: usize) -> String {
    (0..count)
        .map(|number| format!("{{\"n\":{number},\"text\":\"some text\"}}\n"))
        .collect::<Vec<_>>()
        .concat()
}

#[test]
fn many_files_and_standard_input_are_read_whatever_their_form() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, bytes: &[u8]| {
        std::fs::write(folder.path().join(name), bytes).expect("written");
    };
    write("lines.json", lines(30_000).as_bytes());
    let array = format!("[{}]", lines(2000).trim_end().replace('\n', ",\n"));
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut gzip, array.as_bytes()).expect("packed");
    write("array.json.gz", &gzip.finish().expect("packed"));
    let spread = lines(100).replace(',', ",\n  ");
    write("spread.zst", &zstd::encode_all(spread.as_bytes(), 1).expect("packed"));
    let files = ["lines.json", "array.json.gz", "spread.zst", "-", "-d", "shop", "-c", "orders"];
    for more in [&[][..], &["--parsers", "1"], &["--maintainInsertionOrder"]] {
        let (finished, report) =
            import(folder.path(), &[&files[..], more].concat(), "{\"a\":1} {\"a\":2}\n{}");
        assert_eq!(finished.status, Some(0), "{}", finished.stderr);
        assert_eq!(balance(&report), [Some(32_103), Some(32_103), Some(0)], "{more:?}");
        assert_eq!(report["collections"][0]["namespace"], "shop.orders");
    }
}

#[test]
fn a_line_that_is_no_document_is_told_with_its_place_and_ends_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = format!("{}nope\n\n{{\"a\":{{\"$oid\":\"zz\"}}}}\n{}[1]\n", lines(5000), lines(10));
    std::fs::write(folder.path().join("orders.json"), &text).expect("written");
    let arguments = ["orders.json", "--rejects", "aside"];
    let (finished, report) = import(folder.path(), &arguments, "");
    assert_eq!(finished.status, Some(3), "{}", finished.stderr);
    assert_eq!(balance(&report), [Some(5013), Some(5010), Some(3)]);
    for place in ["orders.json:5001:2: ", "orders.json:5003:18: `$oid` cannot hold \"zz\""] {
        assert!(finished.stderr.contains(place), "{place}: {}", finished.stderr);
    }
    let kept = folder.path().join("aside/test");
    let damaged = std::fs::read_to_string(kept.join("orders.damaged")).expect("kept");
    let mut damaged: Vec<_> = damaged.lines().collect();
    damaged.sort_unstable();
    assert_eq!(damaged, ["[1]", "nope", "{\"a\":{\"$oid\":\"zz\"}}"]);
    let told = std::fs::read_to_string(kept.join("orders.damaged.jsonl")).expect("kept");
    assert_eq!(told.lines().count(), 3);
    for line in told.lines() {
        let line: Value = serde_json::from_str(line).expect("JSON");
        let offset = usize::try_from(line["offset"].as_u64().expect("a number")).expect("small");
        let message = line["message"].as_str().expect("a text");
        let number = message.split(':').nth(1).and_then(|line| line.parse().ok());
        assert_eq!(number, Some(text[..offset].matches('\n').count() + 1), "{message}");
    }
}

#[test]
fn the_first_such_line_ends_the_run_where_that_is_asked_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = format!("nope\n{}", lines(200_000));
    let arguments = ["-c", "orders", "--stopOnError"];
    let (finished, report) = import(folder.path(), &arguments, &text);
    assert_eq!(finished.status, Some(1), "{}", finished.stderr);
    assert!(finished.stderr.contains("standard input:1:2: "), "{}", finished.stderr);
    assert!(report["balance"]["read"].as_u64() < Some(200_000));
    assert_eq!(report["is_balanced"], true);
}

#[test]
fn a_text_that_cannot_be_read_to_its_end_is_no_success() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("cut.json"), "[{\"a\":1},\n").expect("written");
    std::fs::write(folder.path().join("sound.json"), "{\"a\":1}\n").expect("written");
    let arguments = ["cut.json", "sound.json", "-c", "orders"];
    let (finished, report) = import(folder.path(), &arguments, "");
    assert_eq!(finished.status, Some(1), "{}", finished.stderr);
    assert!(finished.stderr.contains("the text ends inside its array"), "{}", finished.stderr);
    assert_eq!(balance(&report), [Some(2), Some(2), Some(0)]);
}

#[test]
fn what_cannot_begin_is_told_before_anything_is_sent() {
    let folder = tempfile::tempdir().expect("a folder");
    for (arguments, status, words) in [
        (&["missing.json"][..], 1, "cannot be opened: No such file"),
        (&["-"], 2, "the collection is not named"),
        (&[".", "-c", "c"], 1, "is a folder"),
        (&["a.json", "b.json"], 2, "--collection"),
        (&["--type", "csv", "a.csv"], 2, "nothing names the columns"),
    ] {
        let (finished, report) = import(folder.path(), arguments, "");
        assert_eq!(finished.status, Some(status), "{arguments:?}: {}", finished.stderr);
        assert!(finished.stderr.contains(words), "{arguments:?}: {}", finished.stderr);
        assert_eq!(report, Value::Null);
    }
}

#[test]
fn rows_of_many_tables_become_documents_whatever_separates_their_cells() {
    let folder = tempfile::tempdir().expect("a folder");
    let rows: Vec<_> =
        (0..30_000).map(|number| format!("{number},\"a, \"\"b\"\"\nand {number}\"\r\n")).collect();
    let text = format!("\u{FEFF}n,text\r\n{}", rows.concat());
    std::fs::write(folder.path().join("a.csv"), &text).expect("written");
    let packed = zstd::encode_all(text.as_bytes(), 1).expect("packed");
    std::fs::write(folder.path().join("b.csv"), packed).expect("written");
    let arguments = ["a.csv", "b.csv", "-c", "c", "--type", "csv", "--headerline"];
    for more in [&[][..], &["--parsers", "3"], &["--maintainInsertionOrder"]] {
        let (finished, report) = import(folder.path(), &[&arguments[..], more].concat(), "");
        assert_eq!(finished.status, Some(0), "{}", finished.stderr);
        assert_eq!(balance(&report), [Some(60_000), Some(60_000), Some(0)], "{more:?}");
    }
    let tabs = ["-", "-c", "c", "--type", "tsv", "--fields", "a,b"];
    let (finished, report) = import(folder.path(), &tabs, "1\t2\n\n3\t\"4\n5");
    assert_eq!(finished.status, Some(0), "{}", finished.stderr);
    assert_eq!(balance(&report), [Some(3), Some(3), Some(0)]);
}

#[test]
fn a_row_that_is_no_document_is_told_with_its_place_and_can_be_imported_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let text =
        "n.int32(),text.string()\n1,x\nnope,y\n2,\"two\nlines\"\n3,\"a\" b\n4,x\n5,\"open\n6,x\n";
    std::fs::write(folder.path().join("rows.csv"), text).expect("written");
    let table = ["rows.csv", "--type", "csv", "--headerline", "--columnsHaveTypes"];
    let arguments = [&table[..], &["--rejects", "aside"]].concat();
    let (finished, report) = import(folder.path(), &arguments, "");
    assert_eq!(finished.status, Some(3), "{}", finished.stderr);
    assert_eq!(balance(&report), [Some(7), Some(4), Some(3)]);
    for place in ["rows.csv:3:1: ", "rows.csv:6:7: ", "rows.csv:8:3: "] {
        let reasons = std::fs::read_to_string(folder.path().join("aside/test/rows.damaged.jsonl"));
        let reasons = reasons.expect("reasons");
        assert!(reasons.contains(place), "{place}: {reasons}");
    }
    let damaged = std::fs::read_to_string(folder.path().join("aside/test/rows.damaged"));
    let mended = damaged.expect("rows").replace("nope", "7").replace("\"a\" b", "a b");
    // Rows that stand far apart may be parsed in any order.
    let mut rows: Vec<_> = mended.lines().collect();
    rows.sort_unstable();
    assert_eq!(rows, ["3,a b", "5,\"open", "7,y"]);
    let again = ["-c", "rows", "--type", "csv", "--fields", "n,text"];
    let (finished, report) = import(folder.path(), &again, &mended.replace("\"open", "open"));
    assert_eq!(finished.status, Some(0), "{}", finished.stderr);
    assert_eq!(balance(&report), [Some(3), Some(3), Some(0)]);
    let stops = [&table[..], &["--parseGrace", "stop"]].concat();
    let (finished, _) = import(folder.path(), &stops, "");
    assert_eq!(finished.status, Some(1), "{}", finished.stderr);
    assert!(finished.stderr.contains("\"nope\" is no int32"), "{}", finished.stderr);
}

#[cfg(feature = "columnar")]
fn columnar(name: &str) -> String {
    format!("{}/testdata/tables/{name}", env!("CARGO_MANIFEST_DIR"))
}

#[cfg(feature = "columnar")]
#[test]
fn files_of_columns_are_told_by_their_first_bytes() {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["groups.parquet", "groups.arrow"] {
        for more in [&[][..], &["--type", "parquet"], &["--maintainInsertionOrder"]] {
            let file = columnar(name);
            let (finished, report) =
                import(folder.path(), &[&[file.as_str(), "-d", "shop"][..], more].concat(), "");
            assert_eq!(finished.status, Some(0), "{}", finished.stderr);
            assert_eq!(balance(&report), [Some(1000), Some(1000), Some(0)], "{name} {more:?}");
            assert_eq!(report["collections"][0]["namespace"], "shop.groups");
        }
    }
    std::fs::write(folder.path().join("more.json"), lines(10)).expect("written");
    let (both, third) = (columnar("groups.parquet"), columnar("groups.arrow"));
    let (finished, report) = import(folder.path(), &[&both, "more.json", &third, "-c", "c"], "");
    assert_eq!(finished.status, Some(0), "{}", finished.stderr);
    assert_eq!(balance(&report), [Some(2010), Some(2010), Some(0)]);
}

#[cfg(feature = "columnar")]
#[test]
fn a_row_that_no_document_can_hold_is_told_with_its_number() {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, place) = (columnar("kinds.parquet"), "kinds.parquet: row 2");
    let (finished, report) = import(folder.path(), &[&file, "--rejects", "aside"], "");
    assert_eq!(finished.status, Some(3), "{}", finished.stderr);
    assert_eq!(balance(&report), [Some(3), Some(2), Some(1)]);
    let told = report.to_string();
    assert!(told.contains(&format!("{place}: column \\\"long\\\": the decimal 1000")), "{told}");
    assert!(told.contains("finer than the millisecond"), "{told}");
    let kept = std::fs::read_to_string(folder.path().join("aside/test/kinds.damaged"));
    assert!(kept.expect("is kept").ends_with("kinds.parquet: row 2\n"));
    let (finished, report) = import(folder.path(), &[&file, "--stopOnError"], "");
    assert_eq!(finished.status, Some(1), "{}", finished.stderr);
    assert!(finished.stderr.contains(place), "{}", finished.stderr);
    assert_eq!(report["is_balanced"], true);
}

#[cfg(feature = "columnar")]
#[test]
fn what_is_no_whole_file_of_columns_says_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let whole = std::fs::read(columnar("groups.parquet")).expect("is there");
    std::fs::write(folder.path().join("half.parquet"), &whole[..6000]).expect("written");
    std::fs::write(folder.path().join("text.parquet"), "a,b\n").expect("written");
    for (arguments, words) in [
        (&["half.parquet"][..], "not a whole Parquet file"),
        (&["text.parquet", "--type", "parquet"], "neither a Parquet nor an Arrow file"),
        (&["-", "-c", "c", "--type", "arrow"], "not compressed as a whole, nor through a pipe"),
        (&["half.parquet", "--type", "parquet", "--headerline"], "for text, not for files of"),
    ] {
        let (finished, _) = import(folder.path(), arguments, "");
        assert_ne!(finished.status, Some(0), "{arguments:?}");
        assert!(finished.stderr.contains(words), "{arguments:?}: {}", finished.stderr);
    }
}
