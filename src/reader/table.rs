//! Turns the rows of a table into BSON, cell by cell.
//!
//! Rules are those of mongoimport: blanks around cells do not count, a quote opens a cell only at
//! its beginning and is doubled inside, what looks like a number is one. No document is built in
//! between: names with dots are sorted into a tree of fields once, and each row walks it.

mod cells;
mod columns;
mod float;
mod moment;
#[cfg(test)]
mod tests;
mod value;

use crate::dump::texts::table::{Blanks, ParseGrace, Table};
use crate::reader::draft::{Draft, TypeAt, kind};
pub use cells::{Cells, RowEnd, row_end};
pub use columns::Columns;
use columns::{Level, Node};

/// Why a row is no document, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowFault {
    /// What is wrong.
    pub message: String,
    /// The offset in the row.
    pub at: usize,
    /// Whether nothing after it is wanted.
    pub ends_run: bool,
    /// Whether it is a row whose cell is not of its column's type.
    pub is_mistyped: bool,
}

impl RowFault {
    fn new(at: usize, message: impl Into<String>) -> Self {
        Self { message: message.into(), at, ends_run: false, is_mistyped: false }
    }
}

/// Makes the document that a row holds, which may end in the end of its line.
///
/// # Errors
///
/// Where it is no row, or a cell is not of the type of its column.
pub fn convert(
    row: &[u8],
    columns: &Columns,
    cells: &mut Cells,
    draft: &mut Draft,
) -> Result<(), RowFault> {
    let row = cells::without_line_end(row);
    let row = std::str::from_utf8(row)
        .map_err(|error| RowFault::new(error.valid_up_to(), "it is not UTF-8"))?;
    cells.split(row, columns.table().separator)?;
    let level = draft.begin();
    let mut writer = Writer { row, cells, columns, draft };
    writer.level(columns.root(), true)?;
    writer.further()?;
    draft.end(level);
    Ok(())
}

/// Writes the document of one row.
struct Writer<'a> {
    row: &'a str,
    cells: &'a Cells,
    columns: &'a Columns,
    draft: &'a mut Draft,
}

impl Writer<'_> {
    /// Writes the fields of a level; whether there are any.
    fn level(&mut self, level: &Level, is_top: bool) -> Result<bool, RowFault> {
        let (mut has_any, mut has_gap) = (false, false);
        for (name, node) in &level.fields {
            let at = self.draft.name(name.as_bytes());
            if !self.node(node, at)? {
                self.draft.take_back(at);
                has_gap = true;
                continue;
            }
            if has_gap && level.is_array {
                let message = format!("the item {name} of an array follows one that is left out");
                return Err(RowFault::new(0, message));
            }
            if is_top && name == "_id" {
                self.draft.note_id();
            }
            has_any = true;
        }
        Ok(has_any)
    }

    fn node(&mut self, node: &Node, at: TypeAt) -> Result<bool, RowFault> {
        match node {
            Node::Value(column) => self.cell(*column, at),
            Node::Level(level) => {
                self.draft.set(at, if level.is_array { kind::ARRAY } else { kind::DOCUMENT });
                let begun = self.draft.level();
                let has_any = self.level(level, false)?;
                if has_any {
                    self.draft.end(begun);
                }
                Ok(has_any)
            }
        }
    }

    /// Writes the cell of a column, if the row has it and it is not left out.
    fn cell(&mut self, column: usize, at: TypeAt) -> Result<bool, RowFault> {
        let Table { blanks, grace, .. } = self.columns.table();
        let Some((text, start)) = self.cells.get(self.row, column) else {
            return Ok(false);
        };
        if text.is_empty() && *blanks == Blanks::Ignored {
            return Ok(false);
        }
        let (name, parser) = self.columns.column(column);
        if parser.write(text, at, self.draft) {
            return Ok(true);
        }
        let fault = |ends_run| {
            let message = format!("{text:?} is no {} of the column {name:?}", parser.name());
            RowFault { ends_run, is_mistyped: true, ..RowFault::new(start, message) }
        };
        match grace {
            ParseGrace::AutoCast => {
                value::guess(text, at, self.draft);
                Ok(true)
            }
            ParseGrace::SkipField => Ok(false),
            ParseGrace::SkipRow => Err(fault(false)),
            ParseGrace::Stop => Err(fault(true)),
        }
    }

    /// Writes the cells after the last column, which have no names.
    fn further(&mut self) -> Result<(), RowFault> {
        for column in self.columns.len()..self.cells.len() {
            let Some((text, start)) = self.cells.get(self.row, column) else { break };
            if text.is_empty() && self.columns.table().blanks == Blanks::Ignored {
                continue;
            }
            let name = format!("field{column}");
            if self.columns.has_top(&name) {
                let message = format!("this cell has no column, and {name:?} is taken");
                return Err(RowFault::new(start, message));
            }
            let at = self.draft.name(name.as_bytes());
            value::guess(text, at, self.draft);
        }
        Ok(())
    }
}
