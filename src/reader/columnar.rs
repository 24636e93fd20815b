//! Apache Parquet and Arrow files, whose rows become documents.
//!
//! Both hold columns in groups of rows. A file is opened once for what it says of itself; its
//! groups are read and decoded apart from each other, each with a handle of its own.
//! Formats: <https://parquet.apache.org/docs/file-format/>,
//! <https://arrow.apache.org/docs/format/Columnar.html>.

mod cells;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::fs::File;
use std::io::BufReader;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use arrow_array::RecordBatch;
use arrow_ipc::reader::FileReader;
use arrow_schema::{ArrowError, DataType, Schema, SchemaRef, TimeUnit};
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder,
};

use crate::dump::texts::columnar::ColumnarFormat;
use crate::dump::texts::table::Blanks;
use crate::error::{Error, ErrorKind};
use crate::limits::COLUMNAR_ROWS;
use crate::reader::draft::Draft;
use cells::Cells;

/// A file of columns.
#[derive(Debug)]
pub struct ColumnFile {
    path: PathBuf,
    schema: SchemaRef,
    /// What a Parquet file says of itself; an Arrow file says it again to each reader.
    metadata: Option<ArrowReaderMetadata>,
    groups: Vec<Group>,
}

/// Rows that are read together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// Which one it is, from 0.
    pub number: usize,
    /// The number of its first row in the file, from 0, where the file says how many come before.
    pub first_row: Option<u64>,
    /// The bytes of the file that are told as used up by it.
    pub bytes: u64,
}

impl ColumnFile {
    /// Opens a file.
    ///
    /// # Errors
    ///
    /// Of kind [`ErrorKind::Dump`], where it is not such a file, is damaged, or has columns that no
    /// document can have.
    pub fn open(path: &Path, format: ColumnarFormat) -> Result<Self, Error> {
        let wrong = |error: String| Error::new(ErrorKind::Dump, error).in_file(path);
        let file = open(path)?;
        let opened = match format {
            ColumnarFormat::Parquet => {
                let load = || ArrowReaderMetadata::load(&file, ArrowReaderOptions::new());
                let metadata = guarded(load)
                    .map_err(|error| wrong(format!("not a whole Parquet file: {error}")))?;
                Self::of_parquet(path, metadata)
            }
            ColumnarFormat::Arrow => {
                let size = file.metadata().map_or(0, |found| found.len());
                let reader = guarded(|| FileReader::try_new_buffered(file, None))
                    .map_err(|error| wrong(format!("not a whole Arrow file: {error}")))?;
                Self::of_arrow(path, size, &reader)
            }
        };
        check_names(&opened.schema).map_err(wrong)?;
        Ok(opened)
    }

    /// An Arrow file does not say where its groups are; each is told as an equal part of it.
    fn of_arrow(path: &Path, size: u64, reader: &FileReader<BufReader<File>>) -> Self {
        let count = reader.num_batches() as u64;
        let bytes = |number| size * (number + 1) / count - size * number / count;
        let group = |number| Group { number, first_row: None, bytes: bytes(number as u64) };
        let groups = (0..reader.num_batches()).map(group).collect();
        Self { path: path.to_path_buf(), schema: reader.schema(), metadata: None, groups }
    }

    fn of_parquet(path: &Path, metadata: ArrowReaderMetadata) -> Self {
        let mut before = 0;
        let group = |(number, group): (usize, &parquet::file::metadata::RowGroupMetaData)| {
            let first_row = Some(before);
            before += u64::try_from(group.num_rows()).unwrap_or(0);
            let bytes = u64::try_from(group.compressed_size()).unwrap_or(0);
            Group { number, first_row, bytes }
        };
        let groups = metadata.metadata().row_groups().iter().enumerate().map(group).collect();
        let schema = metadata.schema().clone();
        Self { path: path.to_path_buf(), schema, metadata: Some(metadata), groups }
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its rows, in groups.
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// The columns whose times are finer than a millisecond, which is all that BSON keeps.
    pub fn finer_times(&self) -> Vec<&str> {
        let is_finer = |kind: &DataType| {
            matches!(kind, DataType::Timestamp(TimeUnit::Microsecond | TimeUnit::Nanosecond, _))
        };
        let fields = self.schema.fields().iter();
        fields
            .filter(|field| is_finer(field.data_type()))
            .map(|field| field.name().as_str())
            .collect()
    }

    /// Reads a group, a few thousand rows at a time.
    ///
    /// # Errors
    ///
    /// Of kind [`ErrorKind::Read`], where the file cannot be opened again. What comes after a
    /// damaged place is an error in its turn.
    pub fn read(&self, group: &Group) -> Result<Batches, Error> {
        let decoded = guarded(|| self.batches(group.number))
            .map_err(|error| damaged(&self.path, group.number, &error))?;
        let (path, number) = (self.path.clone(), group.number);
        Ok(Batches { path, number, next_row: group.first_row.unwrap_or(0), decoded })
    }

    fn batches(&self, group: usize) -> Result<ArrowBatches, ArrowError> {
        let file = File::open(&self.path)?;
        let Some(metadata) = &self.metadata else {
            let mut reader = FileReader::try_new_buffered(file, None)?;
            reader.set_index(group)?;
            return Ok(Box::new(reader.take(1)));
        };
        let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(file, metadata.clone());
        Ok(Box::new(builder.with_row_groups(vec![group]).with_batch_size(COLUMNAR_ROWS).build()?))
    }
}

type ArrowBatches = Box<dyn Iterator<Item = Result<RecordBatch, ArrowError>>>;

/// The rows of a group, a few thousand at a time.
pub struct Batches {
    path: PathBuf,
    number: usize,
    next_row: u64,
    decoded: ArrowBatches,
}

impl Iterator for Batches {
    type Item = Result<Rows, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let first = self.next_row;
        let rows = guarded(|| {
            let batch = self.decoded.next().transpose().map_err(|error| error.to_string())?;
            batch.map(|batch| Rows::of(&batch, first)).transpose()
        });
        match rows {
            Ok(rows) => {
                let rows = rows?;
                self.next_row += rows.count as u64;
                Some(Ok(rows))
            }
            Err(error) => Some(Err(damaged(&self.path, self.number, &error))),
        }
    }
}

/// Rows whose columns are ready to be written.
#[derive(Debug)]
pub struct Rows {
    columns: Vec<(String, Cells)>,
    count: usize,
    first: u64,
}

impl Rows {
    fn of(batch: &RecordBatch, first: u64) -> Result<Self, String> {
        let columns = cells::columns(batch.schema_ref().fields(), batch.columns())?;
        Ok(Self { columns, count: batch.num_rows(), first })
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The number of the first one, from 0: in the file, or where that does not say it, in its
    /// group.
    pub fn first(&self) -> u64 {
        self.first
    }

    /// Makes a document of a row.
    ///
    /// # Errors
    ///
    /// A sentence, where BSON cannot hold a value.
    pub fn write(&self, row: usize, blanks: Blanks, draft: &mut Draft) -> Result<(), String> {
        cells::write_row(&self.columns, row, Some(blanks), draft)
    }
}

/// Calls into the libraries of the formats, which panic at some damaged files.
fn guarded<T, E: ToString>(call: impl FnOnce() -> Result<T, E>) -> Result<T, String> {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(outcome) => outcome.map_err(|error| error.to_string()),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
            Err(text.unwrap_or("it holds what makes no sense").to_owned())
        }
    }
}

fn damaged(path: &Path, group: usize, error: &str) -> Error {
    let message = format!("group {} of rows is damaged: {error}", group + 1);
    Error::new(ErrorKind::Read, message).in_file(path)
}

fn open(path: &Path) -> Result<File, Error> {
    File::open(path).map_err(|error| {
        Error::new(ErrorKind::Read, format!("cannot be opened: {error}")).in_file(path)
    })
}

/// Two columns of one name would be a field that is there twice.
fn check_names(schema: &Schema) -> Result<(), String> {
    let mut names = HashSet::new();
    match schema.fields().iter().find(|field| !names.insert(field.name())) {
        Some(field) => Err(format!("two columns are called {:?}", field.name())),
        None => Ok(()),
    }
}
