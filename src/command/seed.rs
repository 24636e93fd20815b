//! Fills a dump directory with made-up documents.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::dump::writer::{DumpWriter, Existing};
use crate::dump::{Compression, filename};
use crate::error::{Error, ErrorKind};
use crate::report::format;
use crate::seed::{self, Produced, SeedSpec};

/// What is made and where it goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeedOptions {
    /// The dump directory.
    pub out: PathBuf,
    /// The documents.
    pub spec: SeedSpec,
    /// How the files are compressed.
    pub compression: Compression,
    /// What to do about what is already in the directory.
    pub existing: Existing,
}

/// What was made, and how long it took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeedSummary {
    /// The dump directory.
    pub out: PathBuf,
    /// How many collections.
    pub collections: u32,
    /// The documents of all collections.
    pub produced: Produced,
    /// The time from the start to the last file's end.
    pub took: Duration,
}

impl SeedSummary {
    /// The summary as one line for a person.
    pub fn line(&self) -> String {
        let seconds = self.took.as_secs_f64();
        format!(
            "{} in {}, {}, in {seconds:.1} s ({} documents/s)",
            format::counted(self.produced.documents, "document", "documents"),
            format::counted(self.collections.into(), "collection", "collections"),
            format::bytes(self.produced.bytes),
            format::count(per_second(self.produced.documents, self.took)),
        )
    }
}

/// Makes the documents on all threads of the current rayon pool.
pub fn run(options: &SeedOptions) -> Result<SeedSummary, Error> {
    check(&options.spec)?;
    let began = Instant::now();
    let dump = DumpWriter::create(&options.out, options.compression, options.existing)?;
    dump.begin_database(&options.spec.database)?;
    let produced = seed::produce(&options.spec, &dump)?;
    dump.finish()?;
    Ok(SeedSummary {
        out: options.out.clone(),
        collections: options.spec.collections,
        produced,
        took: began.elapsed(),
    })
}

fn check(spec: &SeedSpec) -> Result<(), Error> {
    let name = &spec.database;
    if !filename::is_database(name) {
        return Err(usage(format!("\"{}\" cannot be a database's name", name.escape_debug()))
            .hint("use 1 to 63 bytes of letters, digits, - and _"));
    }
    let possible = spec.shape.indexes().len();
    if spec.indexes > possible {
        let shape = spec.shape.name();
        return Err(usage(format!("{} indexes on {shape} documents", spec.indexes))
            .hint(format!("{shape} documents have fields for at most {possible}")));
    }
    Ok(())
}

fn usage(message: String) -> Error {
    Error::new(ErrorKind::Usage, message)
}

fn per_second(documents: u64, took: Duration) -> u64 {
    let nanoseconds = took.as_nanos().max(1);
    u64::try_from(u128::from(documents) * 1_000_000_000 / nanoseconds).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seed::Shape;

    fn options(out: PathBuf) -> SeedOptions {
        let spec = SeedSpec {
            database: "seed".to_owned(),
            collections: 2,
            documents: 1000,
            shape: Shape::Sink,
            indexes: 1,
            seed: 1,
        };
        SeedOptions { out, spec, compression: Compression::None, existing: Existing::Refuse }
    }

    #[test]
    fn a_run_leaves_a_whole_dump() {
        let folder = tempfile::tempdir().expect("a folder");
        let out = folder.path().join("a/b");
        let summary = run(&options(out.clone())).expect("made");
        assert_eq!(summary.produced, Produced { documents: 2000, bytes: 142_000 });
        assert!(out.join("prelude.json").exists());
        let data = out.join("seed/c00002.bson").metadata().expect("there");
        assert_eq!(data.len(), 71_000);
        let again = run(&options(out)).expect_err("refused");
        assert!(again.hint_text().is_some_and(|hint| hint.contains("--overwrite")));
    }

    #[test]
    fn the_summary_is_one_line() {
        let summary = SeedSummary {
            out: PathBuf::from("dump"),
            collections: 10,
            produced: Produced { documents: 3_000_000, bytes: 213_000_000 },
            took: Duration::from_millis(1500),
        };
        assert_eq!(
            summary.line(),
            "3,000,000 documents in 10 collections, 213 MB, in 1.5 s (2,000,000 documents/s)"
        );
    }

    #[test]
    fn names_that_are_no_database_are_refused_before_anything_is_made() {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["", "..", "a/b", "a b", "a\0", &"x".repeat(64)] {
            let mut options = options(folder.path().join("out"));
            options.spec.database = name.to_owned();
            let error = run(&options).expect_err("refused");
            assert_eq!(error.kind(), ErrorKind::Usage, "{name}");
        }
        assert!(!folder.path().join("out").exists());
    }

    #[test]
    fn more_indexes_than_fields_are_refused() {
        let mut options = options(PathBuf::from("never"));
        options.spec.indexes = 3;
        let error = run(&options).expect_err("refused");
        assert!(error.to_string().contains("3 indexes on sink documents"), "{error}");
    }
}
