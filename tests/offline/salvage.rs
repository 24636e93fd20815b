//! What is restored around damage, what is lost, and how it is told.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::program::Program;

fn testdata(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata").join(path)
}

/// What a salvage came to.
struct Salvaged {
    status: Option<i32>,
    stderr: String,
    report: Value,
    folder: tempfile::TempDir,
}

impl Salvaged {
    /// Restores nowhere what can be read of this dump.
    fn of(dump: &Path, arguments: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let report = folder.path().join("report.json");
        let finished = Program::restorm(&["restore", "--null", "--salvage"])
            .arg("--report")
            .arg(&report)
            .arg("--salvage-dir")
            .arg(folder.path().join("kept"))
            .args(arguments)
            .arg(dump)
            .run();
        let report = std::fs::read(report).expect("a report");
        let report = serde_json::from_slice(&report).expect("JSON");
        Self { status: finished.status, stderr: finished.stderr, report, folder }
    }

    fn number(&self, pointer: &str) -> u64 {
        let value = self.report.pointer(pointer).and_then(Value::as_u64);
        value.unwrap_or_else(|| panic!("{pointer} is no number: {:#}", self.report))
    }

    /// A file of what is kept.
    fn kept(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.folder.path().join("kept").join(name)).expect("it is kept")
    }
}

/// Documents inserted, stretches and bytes lost of each broken dump with one damaged file.
const BROKEN: [(&str, u64, u64, u64); 11] = [
    ("length_huge", 4, 1, 42),
    ("length_negative", 4, 1, 42),
    ("length_too_small", 4, 1, 42),
    ("lying_length", 4, 1, 42),
    ("nested_too_deep", 2, 1, 2412),
    ("not_terminated", 4, 1, 42),
    ("truncated_document", 4, 1, 32),
    ("unknown_type", 2, 1, 42),
    ("gzip_corrupt", 5, 1, 0),
    ("gzip_truncated", 3, 1, 10),
    ("zstd_truncated", 0, 1, 0),
];

#[test]
fn all_that_can_be_read_is_restored_and_the_rest_is_told() {
    for (name, inserted, stretches, bytes) in BROKEN {
        let salvaged = Salvaged::of(&testdata("broken").join(name), &[]);
        let stderr = &salvaged.stderr;
        assert_eq!(salvaged.status, Some(1), "{name}: {stderr}");
        let found = [
            salvaged.number("/balance/inserted"),
            salvaged.number("/salvage/stretches"),
            salvaged.number("/salvage/bytes"),
        ];
        assert_eq!(found, [inserted, stretches, bytes], "{name}: {stderr}");
        assert_eq!(salvaged.report["is_balanced"], true, "{name}");
        let collection = &salvaged.report["collections"][0];
        assert_eq!(collection["state"], "failed", "{name}");
        assert_eq!(collection["lost"]["count"], stretches, "{name}");
        assert!(stderr.contains("NOT COMPLETE"), "{name}: {stderr}");
    }
}

/// Documents inserted of each broken archive, and stretches lost; all hold two of `shop.items` and
/// three of `shop.orders`.
const ARCHIVES: [(&str, u64, u64); 16] = [
    ("checksum_wrong", 5, 0),
    ("cut_before_last_terminator", 5, 0),
    ("cut_between_blocks", 5, 0),
    ("cut_between_documents", 3, 0),
    ("cut_in_document", 3, 1),
    ("document_changed", 5, 0),
    ("documents_after_end", 5, 1),
    ("header_damaged", 2, 1),
    ("length_huge", 4, 1),
    ("length_negative", 4, 1),
    ("not_terminated", 4, 1),
    ("reopened", 5, 1),
    ("trailing_bytes", 5, 1),
    ("trailing_document", 5, 1),
    ("two_terminators", 5, 1),
    ("unlisted", 5, 1),
];

#[test]
fn archives_go_on_behind_damage() {
    for (name, inserted, stretches) in ARCHIVES {
        let salvaged = Salvaged::of(&testdata("broken_archives").join(name), &[]);
        let stderr = &salvaged.stderr;
        assert_eq!(salvaged.status, Some(1), "{name}: {stderr}");
        let found = [salvaged.number("/balance/inserted"), salvaged.number("/salvage/stretches")];
        assert_eq!(found, [inserted, stretches], "{name}: {stderr}");
        assert_eq!(salvaged.report["is_balanced"], true, "{name}");
    }
}
