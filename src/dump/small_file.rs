//! Opens the files of a dump: whole small ones, the first bytes of large ones.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;

use crate::dump::inventory::{Compression, DataFile};
use crate::limits::METADATA_BYTES_MAX;

/// As many bytes as tell every compression.
const FIRST_BYTES: u64 = 4;

/// The whole content of a metadata file or prelude, decompressed, whatever its name says of
/// compression. The error says what is wrong, without the file's name.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, String> {
    let (file, compression) = open(path)?;
    let packed = BufReader::new(file);
    let content = match compression {
        Compression::None => bounded(packed),
        Compression::Gzip => bounded(MultiGzDecoder::new(packed)),
        Compression::Zstd => zstd::Decoder::with_buffer(packed).and_then(bounded),
    };
    content.map_err(|error| match compression {
        Compression::None => format!("cannot be read: {error}"),
        packed => format!("cannot be decompressed as {}: {error}", packed.name()),
    })
}

/// A data file as the inventory keeps it; nothing but its first bytes is read. The error says what
/// is wrong, without the file's name.
pub(crate) fn examine(path: &Path) -> Result<DataFile, String> {
    let (file, compression) = open(path)?;
    let bytes = file.metadata().map_err(|error| format!("cannot be read: {error}"))?.len();
    Ok(DataFile { path: path.to_path_buf(), compression, bytes })
}

/// Opens a file at its beginning and tells how it is compressed. What is no regular file is not
/// opened, since opening a pipe waits for its other end.
fn open(path: &Path) -> Result<(File, Compression), String> {
    let unreadable = |error: io::Error| format!("cannot be read: {error}");
    if !path.metadata().map_err(unreadable)?.is_file() {
        return Err("is not a regular file".to_owned());
    }
    let mut first = Vec::new();
    let mut file = File::open(path).map_err(unreadable)?;
    Read::by_ref(&mut file).take(FIRST_BYTES).read_to_end(&mut first).map_err(unreadable)?;
    file.rewind().map_err(unreadable)?;
    Ok((file, Compression::of_first_bytes(&first)))
}

fn bounded(content: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    content.take(METADATA_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > METADATA_BYTES_MAX {
        let mebibytes = METADATA_BYTES_MAX / 1024 / 1024;
        return Err(io::Error::other(format!("more than {mebibytes} MiB of content")));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::{Compression as Level, write::GzEncoder};
    use std::fs;
    use std::io::Write;

    fn gzip(content: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Level::fast());
        encoder.write_all(content).expect("writes");
        encoder.finish().expect("finishes")
    }

    fn read_back(bytes: &[u8]) -> Result<Vec<u8>, String> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("file");
        fs::write(&path, bytes).expect("writes");
        read(&path)
    }

    #[test]
    fn content_is_the_same_however_it_is_compressed() {
        assert_eq!(read_back(b"{}"), Ok(b"{}".to_vec()));
        assert_eq!(read_back(&[gzip(b"{"), gzip(b"}")].concat()), Ok(b"{}".to_vec()));
        let zstd = zstd::encode_all(&b"{}"[..], 1).expect("encodes");
        assert_eq!(read_back(&zstd), Ok(b"{}".to_vec()));
        assert_eq!(read_back(b""), Ok(Vec::new()));
    }

    #[test]
    fn damaged_and_endless_content_is_refused() {
        let cut = &gzip(b"{\"options\":{}}")[..15];
        assert!(read_back(cut).expect_err("cut").starts_with("cannot be decompressed as gzip"));
        let error = bounded(io::repeat(b' ')).expect_err("endless");
        assert!(error.to_string().contains("more than 64 MiB"));
    }

    #[test]
    fn a_folder_is_no_file() {
        let folder = tempfile::tempdir().expect("a folder");
        assert_eq!(read(folder.path()), Err("is not a regular file".into()));
        assert!(
            examine(&folder.path().join("none")).expect_err("missing").contains("cannot be read")
        );
    }
}
