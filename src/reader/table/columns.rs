//! The columns of a table, and the tree of fields that their names make.

use std::sync::Arc;

use crate::dump::texts::table::{Names, NumbersInNames, Table, Typing};
use crate::reader::table::cells::{Cells, without_line_end};
use crate::reader::table::value::Parser;

/// The columns of a table.
#[derive(Debug)]
pub struct Columns {
    table: Arc<Table>,
    parsers: Vec<(String, Parser)>,
    root: Level,
}

/// The fields of a document, or the items of an array.
#[derive(Debug, Default)]
pub(super) struct Level {
    pub(super) is_array: bool,
    pub(super) fields: Vec<(String, Node)>,
}

/// What a field holds.
#[derive(Debug)]
pub(super) enum Node {
    /// The cell of this column.
    Value(usize),
    /// More fields.
    Level(Level),
}

impl Columns {
    /// The columns that are named in a header, or that were named before.
    ///
    /// # Errors
    ///
    /// A sentence, where the names cannot all be fields of one document, or a type is not known.
    pub fn new(table: &Arc<Table>, header: &[u8]) -> Result<Self, String> {
        let names = match &table.names {
            Names::Given(names) => names.clone(),
            Names::Header => of_header(header, table)?,
        };
        let mut columns =
            Self { table: Arc::clone(table), parsers: Vec::new(), root: Level::default() };
        for (number, name) in names.iter().enumerate() {
            let (name, parser) = match table.typing {
                Typing::Guessed => (name.as_str(), Parser::Auto),
                Typing::Named => typed(name)?,
            };
            check(name)?;
            let parts: Vec<_> = name.split('.').collect();
            columns
                .root
                .add(&parts, number, table.numbers)
                .map_err(|why| format!("the column {name:?} cannot be beside the others: {why}"))?;
            columns.parsers.push((name.to_owned(), parser));
        }
        Ok(columns)
    }

    pub(super) fn root(&self) -> &Level {
        &self.root
    }

    /// The table.
    pub fn table(&self) -> &Table {
        &self.table
    }

    pub(super) fn len(&self) -> usize {
        self.parsers.len()
    }

    pub(super) fn column(&self, number: usize) -> (&str, &Parser) {
        let (name, parser) = &self.parsers[number];
        (name, parser)
    }

    /// Whether a document has this field already.
    pub(super) fn has_top(&self, name: &str) -> bool {
        self.root.fields.iter().any(|(field, _)| field == name)
    }
}

fn of_header(header: &[u8], table: &Table) -> Result<Vec<String>, String> {
    let header = without_line_end(header);
    if header.is_empty() {
        return Err("no line names the columns".to_owned());
    }
    let header = std::str::from_utf8(header).map_err(|_| "the header is not UTF-8".to_owned())?;
    let mut cells = Cells::default();
    cells
        .split(header, table.separator)
        .map_err(|fault| format!("the header: {}", fault.message))?;
    let names = (0..cells.len()).filter_map(|number| cells.get(header, number));
    Ok(names.map(|(name, _)| name.to_owned()).collect())
}

/// A name and its type, as in `price.decimal()`.
fn typed(column: &str) -> Result<(&str, Parser), String> {
    let untyped = || format!("the column {column:?} has no type, such as {column}.string()");
    let inside = column.strip_suffix(')').ok_or_else(untyped)?;
    for (dot, _) in inside.rmatch_indices('.') {
        let Some((word, argument)) = inside[dot + 1..].split_once('(') else { continue };
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        if !word.is_empty() && word.bytes().all(is_word) {
            let parser = Parser::new(word, argument)
                .map_err(|why| format!("the column {column:?}: {why}"))?;
            return Ok((&column[..dot], parser));
        }
    }
    Err(untyped())
}

fn check(name: &str) -> Result<(), String> {
    let why = if name.starts_with('.') || name.ends_with('.') || name.contains("..") {
        "has an empty part between its dots"
    } else if name.starts_with('$') {
        "begins with `$`"
    } else if name.contains('\0') {
        "holds a zero character"
    } else {
        return Ok(());
    };
    Err(format!("the column {name:?} {why}"))
}

/// Whether a part of a name is a place in an array.
fn is_index(part: &str) -> bool {
    let is_number = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    is_number && (part.len() == 1 || !part.starts_with('0'))
}

impl Level {
    fn add(
        &mut self,
        parts: &[&str],
        column: usize,
        numbers: NumbersInNames,
    ) -> Result<(), String> {
        let [head, tail @ ..] = parts else { return Ok(()) };
        let is_array =
            numbers == NumbersInNames::Indexes && tail.first().is_some_and(|part| is_index(part));
        let found = self.fields.iter().position(|(name, _)| name == head);
        let Some(found) = found else {
            if self.is_array && *head != self.fields.len().to_string() {
                return Err("indexes of an array begin at 0 and increase by 1".to_owned());
            }
            let node = if tail.is_empty() {
                Node::Value(column)
            } else {
                let mut level = Self { is_array, fields: Vec::new() };
                level.add(tail, column, numbers)?;
                Node::Level(level)
            };
            self.fields.push(((*head).to_owned(), node));
            return Ok(());
        };
        match &mut self.fields[found].1 {
            Node::Level(level) if !tail.is_empty() && level.is_array == is_array => {
                level.add(tail, column, numbers)
            }
            Node::Value(_) if tail.is_empty() => Err("it is there twice".to_owned()),
            _ => Err(format!("{head:?} cannot be of two types at once")),
        }
    }
}
