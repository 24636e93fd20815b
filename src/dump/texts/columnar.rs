//! Files of columns, which their first bytes tell from text.

use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Which of the formats a file has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnarFormat {
    /// Apache Parquet.
    Parquet,
    /// The file format of Arrow, also known as Feather 2.
    Arrow,
}

impl ColumnarFormat {
    /// What the first bytes of a file say: `PAR1`
    /// (<https://parquet.apache.org/docs/file-format/>) or `ARROW1`
    /// (<https://arrow.apache.org/docs/format/Columnar.html#ipc-file-format>).
    pub fn of_first_bytes(bytes: &[u8]) -> Option<Self> {
        if bytes.starts_with(b"PAR1") {
            Some(Self::Parquet)
        } else if bytes.starts_with(b"ARROW1") {
            Some(Self::Arrow)
        } else {
            None
        }
    }

    /// What a file's first bytes say; nothing where it cannot be read, or is a pipe, of which what
    /// is read is gone.
    pub fn of_file(path: &Path) -> Option<Self> {
        if !path.metadata().ok()?.is_file() {
            return None;
        }
        let mut first = [0; 6];
        File::open(path).ok()?.read_exact(&mut first).ok()?;
        Self::of_first_bytes(&first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bytes_tell_the_format() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a");
        for (bytes, expected) in [
            (&b"PAR1\x15\x04\x15"[..], Some(ColumnarFormat::Parquet)),
            (b"ARROW1\0\0", Some(ColumnarFormat::Arrow)),
            (b"{\"a\": 1}", None),
            (b"PAR", None),
            (b"", None),
        ] {
            std::fs::write(&path, bytes).expect("written");
            assert_eq!(ColumnarFormat::of_file(&path), expected, "{bytes:?}");
        }
        assert_eq!(ColumnarFormat::of_file(folder.path()), None);
    }
}
