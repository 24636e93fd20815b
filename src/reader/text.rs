//! Cuts texts into chunks of whole documents, which can be turned into BSON apart from each other.
//!
//! A text is read once, by one reader, through its decompressor; its byte ranges are cut at the
//! ends of lines, or where documents go over several lines or stand in an array, at the ends of
//! documents. Finding them is far cheaper than parsing what is between them, which is left to as
//! many threads as there are.

mod scan;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::Arc;

use memchr::{memchr, memchr_iter, memrchr};

use crate::dump::stream::Stream;
use crate::dump::texts::table::{Names, Table};
use crate::dump::texts::{JsonLayout, TextForm};
use crate::error::Error;
use crate::limits::{TEXT_CHUNK_BYTES, TEXT_DOCUMENT_BYTES_MAX};
use crate::reader::table::{Columns, RowEnd, row_end};
use scan::{Found, Scanner};

/// The mark that some programs put before UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// A stretch of a text that holds whole documents.
#[derive(Debug)]
pub struct Chunk {
    /// The bytes, uncompressed.
    pub bytes: Vec<u8>,
    /// How its documents stand in it.
    pub shape: Shape,
    /// Which text it is of.
    pub text: usize,
    /// The offset of its first byte in the text, uncompressed.
    pub offset: u64,
    /// Lines before it in the text.
    pub lines_before: u64,
    /// The bytes of the file itself that it used up.
    pub origin_bytes: u64,
}

/// How documents stand in a chunk.
#[derive(Clone, Debug)]
pub enum Shape {
    /// One on each line; empty lines count for nothing.
    Lines,
    /// In these stretches of its bytes.
    Stretches(Vec<std::ops::Range<usize>>),
    /// Rows of a table with these columns; empty lines count for nothing.
    Rows(Arc<Columns>),
}

/// How documents stand in a text.
#[derive(Clone, Debug)]
enum Layout {
    Lines,
    Values,
    Array,
    Rows(Arc<Columns>),
}

/// Cuts one text.
#[derive(Debug)]
pub struct Cutter {
    stream: Stream,
    text: usize,
    layout: Layout,
    lines: u64,
    origin: u64,
    scanner: Scanner,
}

impl Cutter {
    /// Begins with a text.
    ///
    /// # Errors
    ///
    /// Where it cannot be read, or is not of the form that was asked for.
    pub fn new(mut stream: Stream, text: usize, form: &TextForm) -> Result<Self, Error> {
        skip_mark(&mut stream)?;
        match form {
            TextForm::Json(layout) | TextForm::LegacyJson(layout) => {
                Self::of_json(stream, text, *layout)
            }
            TextForm::Table(table) => Self::of_table(stream, text, table),
            // Whoever opens it has seen to it that it is no text.
            TextForm::Columnar(_) => Err(stream.error("columns are not read as text")),
        }
    }

    /// Takes the names of the columns from the first row, where they stand there.
    fn of_table(mut stream: Stream, text: usize, table: &Arc<Table>) -> Result<Self, Error> {
        let mut lines = 0;
        let mut header = Vec::new();
        if table.names == Names::Header {
            lines = skip_line_ends(&mut stream)?;
            let end = rows(&mut stream, table, Rows::First)?;
            header.extend_from_slice(&stream.ahead()[..end]);
        }
        let columns = Columns::new(table, &header).map_err(|why| stream.error(why))?;
        lines += memchr_iter(b'\n', &header).count() as u64;
        stream.advance(header.len());
        let origin = stream.origin();
        let layout = Layout::Rows(Arc::new(columns));
        Ok(Self { stream, text, layout, lines, origin, scanner: Scanner::new(false) })
    }

    /// The first document tells how the others stand.
    fn of_json(mut stream: Stream, text: usize, layout: JsonLayout) -> Result<Self, Error> {
        let lines = skip_space(&mut stream)?;
        let begins_array = stream.ahead().first() == Some(&b'[');
        let layout = match layout {
            _ if begins_array => {
                stream.advance(1);
                Layout::Array
            }
            // A text without anything in it holds no documents, and no array that ends too early.
            JsonLayout::Array if stream.ahead().is_empty() => Layout::Values,
            JsonLayout::Array => {
                return Err(stream
                    .error("the text does not begin with the bracket of an array")
                    .hint("documents one after the other are read without --jsonArray"));
            }
            JsonLayout::Told => of_first_document(&mut stream)?,
        };
        let origin = stream.origin();
        let scanner = Scanner::new(matches!(layout, Layout::Array));
        Ok(Self { stream, text, layout, lines, origin, scanner })
    }

    /// What the text is called.
    pub fn name(&self) -> &Path {
        self.stream.name()
    }

    /// The next chunk, or nothing at the end.
    ///
    /// # Errors
    ///
    /// Where the text cannot be read any further, or a document does not end.
    pub fn next_chunk(&mut self) -> Result<Option<Chunk>, Error> {
        match &self.layout {
            Layout::Lines => self.next_lines(),
            Layout::Values | Layout::Array => self.next_stretches(),
            Layout::Rows(columns) => {
                let columns = Arc::clone(columns);
                let end = rows(&mut self.stream, columns.table(), Rows::All)?;
                Ok(if end == 0 { None } else { Some(self.cut(end, Shape::Rows(columns))) })
            }
        }
    }

    fn next_lines(&mut self) -> Result<Option<Chunk>, Error> {
        let mut wanted = TEXT_CHUNK_BYTES;
        loop {
            let has_more = self.stream.fill(wanted)?;
            let ahead = self.stream.ahead();
            let end = match memrchr(b'\n', ahead) {
                Some(last) => last + 1,
                None if !has_more => ahead.len(),
                None => {
                    wanted = self.grown(wanted)?;
                    continue;
                }
            };
            // What follows the last line end is the last line.
            let end = if has_more { end } else { self.stream.ahead().len() };
            return Ok(if end == 0 { None } else { Some(self.cut(end, Shape::Lines)) });
        }
    }

    fn next_stretches(&mut self) -> Result<Option<Chunk>, Error> {
        let mut wanted = TEXT_CHUNK_BYTES;
        loop {
            let has_more = self.stream.fill(wanted)?;
            let Found { stretches, end, is_over } = self.scanner.scan(self.stream.ahead());
            if !stretches.is_empty() {
                return Ok(Some(self.cut(end, Shape::Stretches(stretches))));
            }
            if is_over {
                // What follows an array is none of its documents.
                return Ok(None);
            }
            if !has_more {
                let end = self.stream.ahead().len();
                return match self.scanner.rest(self.stream.ahead()) {
                    Some(rest) => Ok(Some(self.cut(end, Shape::Stretches(vec![rest])))),
                    None if matches!(self.layout, Layout::Array) => {
                        self.stream.advance(end);
                        Err(self.stream.error("the text ends inside its array").hint(
                            "it was cut off here; the documents before this byte were imported",
                        ))
                    }
                    None => Ok(None),
                };
            }
            wanted = self.grown(wanted)?;
        }
    }

    /// Asks for twice as much, because no document ends in what is there.
    fn grown(&self, wanted: usize) -> Result<usize, Error> {
        if wanted >= TEXT_DOCUMENT_BYTES_MAX {
            let megabytes = TEXT_DOCUMENT_BYTES_MAX >> 20;
            return Err(self
                .stream
                .error(format!("no document ends within {megabytes} MiB of here"))
                .hint("the text is damaged, or is no JSON"));
        }
        Ok(wanted.saturating_mul(2).min(TEXT_DOCUMENT_BYTES_MAX))
    }

    fn cut(&mut self, end: usize, shape: Shape) -> Chunk {
        let bytes = self.stream.ahead()[..end].to_vec();
        let (offset, lines_before) = (self.stream.offset(), self.lines);
        self.lines += memchr_iter(b'\n', &bytes).count() as u64;
        self.stream.advance(end);
        let origin = self.stream.origin();
        let origin_bytes = origin.saturating_sub(std::mem::replace(&mut self.origin, origin));
        Chunk { bytes, shape, text: self.text, offset, lines_before, origin_bytes }
    }
}

fn skip_mark(stream: &mut Stream) -> Result<(), Error> {
    stream.fill(BYTE_ORDER_MARK.len())?;
    if stream.ahead().starts_with(BYTE_ORDER_MARK) {
        stream.advance(BYTE_ORDER_MARK.len());
    }
    Ok(())
}

/// How many rows are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rows {
    First,
    All,
}

/// Where the whole rows end that are there; a row whose quotes nothing closes ends with its line.
fn rows(stream: &mut Stream, table: &Table, wanted_rows: Rows) -> Result<usize, Error> {
    let mut wanted = TEXT_CHUNK_BYTES;
    loop {
        let has_more = stream.fill(wanted)?;
        let ahead = stream.ahead();
        let mut end = 0;
        let open = loop {
            match row_end(&ahead[end..], table.separator) {
                RowEnd::At(length) => end += length,
                open => break open,
            }
            if wanted_rows == Rows::First {
                return Ok(end);
            }
        };
        if end > 0 {
            return Ok(end);
        }
        if !has_more || wanted >= TEXT_DOCUMENT_BYTES_MAX {
            let line_end = match open {
                RowEnd::InQuotes => memchr(b'\n', ahead),
                RowEnd::Beyond | RowEnd::At(_) => None,
            };
            return Ok(line_end.map_or(ahead.len(), |end| end + 1));
        }
        wanted = wanted.saturating_mul(2).min(TEXT_DOCUMENT_BYTES_MAX);
    }
}

/// Goes past empty lines; returns how many they were.
fn skip_line_ends(stream: &mut Stream) -> Result<u64, Error> {
    let mut lines = 0;
    while stream.fill(1)? && matches!(stream.ahead()[0], b'\n' | b'\r') {
        lines += u64::from(stream.ahead()[0] == b'\n');
        stream.advance(1);
    }
    Ok(lines)
}

/// Goes past blanks and line ends; returns how many lines they were.
fn skip_space(stream: &mut Stream) -> Result<u64, Error> {
    let mut lines = 0;
    while stream.fill(1)? {
        let ahead = stream.ahead();
        let blank = ahead.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        lines += memchr_iter(b'\n', &ahead[..blank]).count() as u64;
        let is_all = blank == ahead.len();
        stream.advance(blank);
        if !is_all {
            break;
        }
    }
    Ok(lines)
}

/// Whether documents stand on a line each: where the first one ends on its line.
fn of_first_document(stream: &mut Stream) -> Result<Layout, Error> {
    let mut wanted = TEXT_CHUNK_BYTES;
    loop {
        let has_more = stream.fill(wanted)?;
        let ahead = stream.ahead();
        let line_end = memchr::memchr(b'\n', ahead);
        if line_end.is_some() || !has_more || wanted >= TEXT_DOCUMENT_BYTES_MAX {
            let line = &ahead[..line_end.unwrap_or(ahead.len())];
            let is_whole = line_end.is_none() || Scanner::new(false).ends_in(line);
            return Ok(if is_whole { Layout::Lines } else { Layout::Values });
        }
        wanted *= 2;
    }
}

/// The values that stand in a text one after the other, as stretches of it, and where what is left
/// begins.
pub fn values(text: &[u8]) -> (Vec<std::ops::Range<usize>>, usize) {
    let mut scanner = Scanner::new(false);
    let Found { stretches, end, .. } = scanner.scan(text);
    (stretches, end)
}
