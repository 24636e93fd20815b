//! Finds where rows end and what their cells are.

use memchr::{memchr, memchr2};

use crate::dump::texts::table::Separator;
use crate::reader::table::RowFault;

/// Where a row ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowEnd {
    /// After so many bytes, the end of its line among them.
    At(usize),
    /// Not in what there is of it.
    Beyond,
    /// Not in what there is of it, which ends inside quotes.
    InQuotes,
}

/// Where the row ends that begins here.
pub fn row_end(text: &[u8], separator: Separator) -> RowEnd {
    if separator == Separator::Tab {
        return memchr(b'\n', text).map_or(RowEnd::Beyond, |end| RowEnd::At(end + 1));
    }
    let (mut at, mut free) = (0, 0);
    while let Some(found) = memchr2(b'\n', b'"', &text[at..]) {
        let found = at + found;
        if text[found] == b'\n' {
            return RowEnd::At(found + 1);
        }
        at = found + 1;
        // A quote inside a cell without quotes opens nothing, so that such a row ends on its line.
        let before = text[free..found].trim_ascii_end();
        if before.is_empty() && free > 0 || !before.is_empty() && before.last() != Some(&b',') {
            continue;
        }
        match quotes_end(text, at) {
            Some(end) => (at, free) = (end, end),
            None => return RowEnd::InQuotes,
        }
    }
    RowEnd::Beyond
}

/// Where the quotes end that were opened before here: after the one that closes them.
fn quotes_end(text: &[u8], mut at: usize) -> Option<usize> {
    loop {
        let quote = at + memchr(b'"', &text[at..])?;
        if text.get(quote + 1) != Some(&b'"') {
            return Some(quote + 1);
        }
        at = quote + 2;
    }
}

/// A row without the end of its line.
pub(super) fn without_line_end(row: &[u8]) -> &[u8] {
    let row = row.strip_suffix(b"\n").unwrap_or(row);
    row.strip_suffix(b"\r").unwrap_or(row)
}

/// The cells of a row; its memory is used again.
#[derive(Debug, Default)]
pub struct Cells {
    cells: Vec<Cell>,
    /// What stands in quotes and does not read as it is written.
    unquoted: String,
}

#[derive(Clone, Copy, Debug)]
struct Cell {
    start: usize,
    end: usize,
    is_unquoted: bool,
    /// Where it begins in the row.
    at: usize,
}

impl Cells {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.cells.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// A cell and where it begins.
    pub fn get<'a>(&'a self, row: &'a str, number: usize) -> Option<(&'a str, usize)> {
        let cell = self.cells.get(number)?;
        let text = if cell.is_unquoted { &self.unquoted } else { row };
        Some((&text[cell.start..cell.end], cell.at))
    }

    /// Splits a row.
    ///
    /// # Errors
    ///
    /// Where quotes stand where none can.
    pub fn split(&mut self, row: &str, separator: Separator) -> Result<(), RowFault> {
        self.cells.clear();
        self.unquoted.clear();
        let mut at = 0;
        loop {
            at = match separator {
                Separator::Tab => {
                    let end =
                        memchr(b'\t', &row.as_bytes()[at..]).map_or(row.len(), |end| at + end);
                    self.plain(at, end);
                    end
                }
                Separator::Comma => self.split_at_comma(row, at)?,
            };
            if at >= row.len() {
                return Ok(());
            }
            at += 1;
        }
    }

    fn plain(&mut self, start: usize, end: usize) {
        self.cells.push(Cell { start, end, is_unquoted: false, at: start });
    }

    /// Takes the cell that begins here; returns where it ends.
    fn split_at_comma(&mut self, row: &str, at: usize) -> Result<usize, RowFault> {
        let start = at + blanks(&row[at..]);
        if row[start..].starts_with('"') {
            return self.quoted(row, start);
        }
        let end = match memchr2(b',', b'"', &row.as_bytes()[start..]) {
            Some(found) if row.as_bytes()[start + found] == b'"' => {
                let message = "a quote stands in a cell that does not begin with one";
                return Err(RowFault::new(start + found, message));
            }
            Some(found) => start + found,
            None => row.len(),
        };
        self.plain(start, start + row[start..end].trim_end().len());
        Ok(end)
    }

    fn quoted(&mut self, row: &str, start: usize) -> Result<usize, RowFault> {
        let Some(end) = quotes_end(row.as_bytes(), start + 1) else {
            return Err(RowFault::new(start, "no quote ends the cell that begins here"));
        };
        let inside = &row[start + 1..end - 1];
        if inside.contains('"') || inside.contains("\r\n") {
            let from = self.unquoted.len();
            self.unquoted.push_str(&inside.replace("\"\"", "\"").replace("\r\n", "\n"));
            let end = self.unquoted.len();
            self.cells.push(Cell { start: from, end, is_unquoted: true, at: start });
        } else {
            self.cells.push(Cell { start: start + 1, end: end - 1, is_unquoted: false, at: start });
        }
        let next = end + blanks(&row[end..]);
        if next < row.len() && !row[next..].starts_with(',') {
            return Err(RowFault::new(next, "text follows the quote that ends a cell"));
        }
        Ok(next)
    }
}

fn blanks(text: &str) -> usize {
    text.len() - text.trim_start().len()
}
