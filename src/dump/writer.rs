//! Writes a dump directory as mongodump lays it out.
//!
//! Each file is written under a partial name and renamed once it is whole, and the prelude comes
//! last, so that what an interrupted run leaves behind does not pass for a dump. Compressed files
//! are runs of independent members, which any number of threads may prepare.

pub mod archive;

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::dump::{CollectionMetadata, Compression, filename};
use crate::error::{Error, ErrorKind};
use crate::namespace::Namespace;

/// What a file is called until it is whole.
const PARTIAL: &str = ".partial";

/// The endings of the files that make up the dump of a database.
const ENDINGS: [&str; 7] = [
    ".bson",
    ".bson.gz",
    ".bson.zst",
    ".metadata.json",
    ".metadata.json.gz",
    ".metadata.json.zst",
    PARTIAL,
];

/// The names that a prelude can have.
const PRELUDES: [&str; 3] = ["prelude.json", "prelude.json.gz", "prelude.json.zst"];

/// The level of gzip, its own default, which mongodump takes as well.
const GZIP_LEVEL: u32 = 6;

/// The level of Zstandard, its own default.
const ZSTD_LEVEL: i32 = 3;

/// What to do about what is already in the directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// Refuse a directory that is not empty.
    Refuse,
    /// Remove the dump files of each database that is written, and nothing else.
    Replace,
}

/// A dump directory that is being written. May be used from several threads.
#[derive(Debug)]
pub struct DumpWriter {
    root: PathBuf,
    compression: Compression,
    existing: Existing,
}

impl DumpWriter {
    /// Makes the directory, and those above it, where it is not there.
    pub fn create(
        root: &Path,
        compression: Compression,
        existing: Existing,
    ) -> Result<Self, Error> {
        fs::create_dir_all(root).map_err(failed("cannot create the folder", root))?;
        let mut content = fs::read_dir(root).map_err(failed("cannot list the folder", root))?;
        if existing == Existing::Refuse && content.next().is_some() {
            let message = format!("the folder {} is not empty", root.display());
            return Err(Error::new(ErrorKind::Dump, message)
                .hint("name another folder, or use --overwrite to replace the dump in it"));
        }
        Ok(Self { root: root.to_path_buf(), compression, existing })
    }

    /// Makes the folder of a database, or empties it of dump files.
    pub fn begin_database(&self, database: &str) -> Result<(), Error> {
        let folder = self.root.join(database);
        fs::create_dir_all(&folder).map_err(failed("cannot create the folder", &folder))?;
        if self.existing == Existing::Replace {
            remove_files(&self.root, |name| PRELUDES.contains(&name))?;
            remove_files(&folder, |name| ENDINGS.iter().any(|ending| name.ends_with(ending)))?;
        }
        Ok(())
    }

    /// Begins the data file of a collection; its database must have begun.
    pub fn begin(&self, namespace: &Namespace) -> Result<CollectionWriter, Error> {
        let stem = filename::encode(namespace.collection());
        let folder = self.root.join(namespace.database());
        let ending = ending(self.compression);
        Ok(CollectionWriter {
            data: WholeFile::create(folder.join(format!("{stem}.bson{ending}")))?,
            metadata_path: folder.join(format!("{stem}.metadata.json{ending}")),
            packer: self.packer()?,
        })
    }

    /// A packer for what [`CollectionWriter::append`] takes; one for each thread.
    pub fn packer(&self) -> Result<Packer, Error> {
        Packer::new(self.compression)
    }

    /// Writes the prelude, which marks the dump as complete.
    ///
    /// The server's version is given as `unknown`, since no server was asked: readers take that
    /// for no version, where a made-up one could switch on treatment meant for real dumps.
    pub fn finish(self) -> Result<(), Error> {
        let tool = format!("restorm {}", env!("CARGO_PKG_VERSION"));
        let prelude =
            serde_json::json!({ "ServerVersion": "unknown", "ToolVersion": tool }).to_string();
        let name = format!("prelude.json{}", ending(self.compression));
        let mut file = WholeFile::create(self.root.join(name))?;
        file.write(self.packer()?.pack(prelude.as_bytes())?)?;
        file.finish()
    }
}

/// What the name of a compressed file ends in.
fn ending(compression: Compression) -> &'static str {
    match compression {
        Compression::None => "",
        Compression::Gzip => ".gz",
        Compression::Zstd => ".zst",
    }
}

/// Compresses runs of documents, each for itself.
pub struct Packer {
    method: Method,
    packed: Vec<u8>,
}

enum Method {
    None,
    Gzip,
    Zstd(zstd::bulk::Compressor<'static>),
}

impl Packer {
    fn new(compression: Compression) -> Result<Self, Error> {
        let method = match compression {
            Compression::None => Method::None,
            Compression::Gzip => Method::Gzip,
            Compression::Zstd => Method::Zstd(
                zstd::bulk::Compressor::new(ZSTD_LEVEL).map_err(|error| incompressible(&error))?,
            ),
        };
        Ok(Self { method, packed: Vec::new() })
    }

    /// The bytes as they go into the file. Nothing becomes nothing, so that an empty collection's
    /// file is empty, compressed or not.
    pub fn pack<'a>(&'a mut self, bytes: &'a [u8]) -> Result<&'a [u8], Error> {
        if bytes.is_empty() {
            return Ok(bytes);
        }
        match &mut self.method {
            Method::None => return Ok(bytes),
            Method::Gzip => {
                self.packed.clear();
                let level = flate2::Compression::new(GZIP_LEVEL);
                let mut encoder = flate2::write::GzEncoder::new(&mut self.packed, level);
                encoder
                    .write_all(bytes)
                    .and_then(|()| encoder.finish())
                    .map_err(|error| incompressible(&error))?;
            }
            Method::Zstd(compressor) => {
                self.packed = compressor.compress(bytes).map_err(|error| incompressible(&error))?;
            }
        }
        Ok(&self.packed)
    }
}

/// The data file of a collection that is being written.
pub struct CollectionWriter {
    data: WholeFile,
    metadata_path: PathBuf,
    packer: Packer,
}

impl CollectionWriter {
    /// Appends whole documents that [`Packer::pack`] has prepared.
    pub fn append(&mut self, packed: &[u8]) -> Result<(), Error> {
        self.data.write(packed)
    }

    /// Writes the metadata and gives both files their names.
    pub fn finish(mut self, metadata: &CollectionMetadata) -> Result<(), Error> {
        let text = metadata.to_json();
        let mut file = WholeFile::create(self.metadata_path)?;
        file.write(self.packer.pack(text.as_bytes())?)?;
        self.data.finish()?;
        file.finish()
    }
}

/// A file that has its name only once it is whole.
struct WholeFile {
    file: File,
    partial: PathBuf,
    path: PathBuf,
}

impl WholeFile {
    fn create(path: PathBuf) -> Result<Self, Error> {
        let mut partial = path.clone().into_os_string();
        partial.push(PARTIAL);
        let partial = PathBuf::from(partial);
        let file = File::create(&partial).map_err(failed("cannot be created", &partial))?;
        Ok(Self { file, partial, path })
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.file.write_all(bytes).map_err(failed("cannot be written", &self.partial))
    }

    fn finish(self) -> Result<(), Error> {
        drop(self.file);
        fs::rename(&self.partial, &self.path).map_err(failed("cannot be renamed", &self.partial))
    }
}

/// Removes the files of a folder whose names are matched; folders in it stay.
fn remove_files(folder: &Path, is_matched: impl Fn(&str) -> bool) -> Result<(), Error> {
    for file in fs::read_dir(folder).map_err(failed("cannot list the folder", folder))? {
        let file = file.map_err(failed("cannot list the folder", folder))?;
        let is_folder = file.file_type().is_ok_and(|kind| kind.is_dir());
        if !is_folder && is_matched(&file.file_name().to_string_lossy()) {
            fs::remove_file(file.path()).map_err(failed("cannot be removed", &file.path()))?;
        }
    }
    Ok(())
}

fn incompressible(error: &io::Error) -> Error {
    Error::new(ErrorKind::Internal, format!("documents cannot be compressed: {error}"))
}

/// Puts a failure of the file system into words.
fn failed<'a>(what: &'a str, path: &'a Path) -> impl FnOnce(io::Error) -> Error + 'a {
    move |error| Error::new(ErrorKind::Dump, format!("{what}: {error}")).in_file(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dump::IndexSpec;
    use bson::doc;

    fn names(folder: &Path) -> Vec<String> {
        let files = fs::read_dir(folder).expect("listed").map(|file| file.expect("a file"));
        let mut names: Vec<_> =
            files.map(|file| file.file_name().into_string().expect("UTF-8")).collect();
        names.sort();
        names
    }

    fn orders() -> CollectionMetadata {
        CollectionMetadata {
            options: doc! { "capped": true, "size": 4096_i64, "factor": 1.0 },
            indexes: vec![IndexSpec::from(doc! { "v": 2, "key": { "_id": 1 }, "name": "_id_" })],
            uuid: Some("e0f2fce9fbbe4668ae063f2fe692acca".to_owned()),
            collection_name: Some("orders".to_owned()),
            kind: Some("collection".to_owned()),
        }
    }

    fn write_orders(
        root: &Path,
        compression: Compression,
        existing: Existing,
    ) -> Result<(), Error> {
        let dump = DumpWriter::create(root, compression, existing)?;
        dump.begin_database("shop")?;
        let mut orders_file = dump.begin(&Namespace::new("shop", "orders"))?;
        orders_file.append(dump.packer()?.pack(b"documents")?)?;
        orders_file.finish(&orders())?;
        dump.finish()
    }

    #[test]
    fn a_dump_is_laid_out_like_mongodumps() {
        let folder = tempfile::tempdir().expect("a folder");
        write_orders(folder.path(), Compression::None, Existing::Refuse).expect("written");
        assert_eq!(names(folder.path()), ["prelude.json", "shop"]);
        let shop = folder.path().join("shop");
        assert_eq!(names(&shop), ["orders.bson", "orders.metadata.json"]);
        assert_eq!(fs::read(shop.join("orders.bson")).expect("read"), b"documents");
        assert_eq!(
            fs::read_to_string(shop.join("orders.metadata.json")).expect("read"),
            r#"{"options":{"capped":true,"size":{"$numberLong":"4096"},"factor":{"$numberDouble":"1.0"}},"#
                .to_owned()
                + r#""indexes":[{"v":{"$numberInt":"2"},"key":{"_id":{"$numberInt":"1"}},"name":"_id_"}],"#
                + r#""uuid":"e0f2fce9fbbe4668ae063f2fe692acca","collectionName":"orders","type":"collection"}"#
        );
    }

    #[test]
    fn every_file_is_compressed_and_named_for_it() {
        for (compression, data, metadata, prelude) in [
            (Compression::Gzip, "orders.bson.gz", "orders.metadata.json.gz", "prelude.json.gz"),
            (Compression::Zstd, "orders.bson.zst", "orders.metadata.json.zst", "prelude.json.zst"),
        ] {
            let folder = tempfile::tempdir().expect("a folder");
            write_orders(folder.path(), compression, Existing::Refuse).expect("written");
            assert_eq!(names(&folder.path().join("shop")), [data, metadata]);
            assert_eq!(names(folder.path()), [prelude, "shop"]);
            let content = fs::read(folder.path().join("shop").join(data)).expect("read");
            assert_eq!(Compression::of_first_bytes(&content), compression);
        }
    }

    #[test]
    fn a_folder_with_content_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("thesis.txt"), "years").expect("written");
        let error =
            write_orders(folder.path(), Compression::None, Existing::Refuse).expect_err("refused");
        assert!(error.to_string().contains("is not empty"), "{error}");
        assert_eq!(names(folder.path()), ["thesis.txt"]);
    }

    #[test]
    fn replacing_removes_the_databases_dump_and_nothing_else() {
        let folder = tempfile::tempdir().expect("a folder");
        let shop = folder.path().join("shop");
        let other = folder.path().join("other");
        fs::create_dir_all(&shop).expect("made");
        fs::create_dir_all(&other).expect("made");
        for name in ["old.bson", "old.metadata.json.gz", "cut.bson.partial", "thesis.txt"] {
            fs::write(shop.join(name), "x").expect("written");
        }
        fs::write(other.join("kept.bson"), "x").expect("written");
        fs::write(folder.path().join("prelude.json.gz"), "x").expect("written");
        write_orders(folder.path(), Compression::None, Existing::Replace).expect("written");
        assert_eq!(names(&shop), ["orders.bson", "orders.metadata.json", "thesis.txt"]);
        assert_eq!(names(&other), ["kept.bson"]);
        assert_eq!(names(folder.path()), ["other", "prelude.json", "shop"]);
    }

    #[test]
    fn an_unfinished_collection_keeps_its_partial_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let dump = DumpWriter::create(folder.path(), Compression::None, Existing::Refuse)
            .expect("created");
        dump.begin_database("shop").expect("begun");
        let mut writer = dump.begin(&Namespace::new("shop", "orders")).expect("begun");
        writer.append(b"documents").expect("written");
        drop(writer);
        assert_eq!(names(&folder.path().join("shop")), ["orders.bson.partial"]);
    }
}
