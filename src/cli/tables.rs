//! The arguments about what is imported: JSON, or a table and its columns.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, ValueEnum};

use crate::command::import::{
    Blanks, JsonLayout, Names, NumbersInNames, ParseGrace, Separator, Table, TextForm, Typing,
};
use crate::error::{Error, ErrorKind};
use crate::report::OptionValue;

#[derive(Args, Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "flags as typed; options have enums")]
#[command(next_help_heading = "What is read")]
pub(super) struct TableArgs {
    /// How the text is written
    #[arg(long = "type", value_name = "TYPE", value_enum, ignore_case = true)]
    #[arg(default_value = "json")]
    kind: Kind,

    /// The text is one array of JSON; it is told by its first byte as well
    #[arg(long, alias = "jsonArray")]
    json_array: bool,

    /// Changes nothing: both versions of Extended JSON are always read
    #[arg(long)]
    legacy: bool,

    /// The first row of each table names its columns
    #[arg(long, conflicts_with_all = ["fields", "field_file"])]
    headerline: bool,

    /// The names of a table's columns, with commas between them
    #[arg(long, short, value_name = "NAMES", conflicts_with = "field_file")]
    fields: Option<String>,

    /// A file with the names of a table's columns, one on each line
    #[arg(long, alias = "fieldFile", value_name = "FILE")]
    field_file: Option<PathBuf>,

    /// Names of columns end in their type, as in `price.decimal()`: auto, boolean, decimal, double,
    /// int32, int64, string, binary with base32, base64 or hex in the parentheses, date with a
    /// layout of Go, or `date_ms` and `date_oracle` with one of theirs
    #[arg(long, alias = "columnsHaveTypes")]
    columns_have_types: bool,

    /// Leave out the fields of empty cells
    #[arg(long, alias = "ignoreBlanks")]
    ignore_blanks: bool,

    /// What becomes of a cell that is not of its column's type: its type is guessed, its field is
    /// left out, its row is rejected, or the import ends [default: skipRow]
    #[arg(long, alias = "parseGrace", value_name = "GRACE", value_enum)]
    parse_grace: Option<Grace>,

    /// Numbers in names of columns are places in an array: tags.0,tags.1
    #[arg(long, alias = "useArrayIndexFields")]
    use_array_index_fields: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Kind {
    Json,
    Csv,
    Tsv,
    /// Apache Parquet, or Arrow's file format; each file tells which, and both are also told
    /// without this option
    #[value(alias = "arrow")]
    Parquet,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Grace {
    #[value(name = "autoCast")]
    AutoCast,
    #[value(name = "skipField")]
    SkipField,
    #[value(name = "skipRow")]
    SkipRow,
    #[value(name = "stop")]
    Stop,
}

fn usage(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Usage, message)
}

impl TableArgs {
    /// How documents are written down.
    pub(super) fn form(&self) -> Result<TextForm, Error> {
        let separator = match self.kind {
            Kind::Json => return self.json(),
            Kind::Parquet => return self.columnar(),
            Kind::Csv => Separator::Comma,
            Kind::Tsv => Separator::Tab,
        };
        for (name, is_given) in [("--jsonArray", self.json_array), ("--legacy", self.legacy)] {
            if is_given {
                return Err(usage(format!("{name} is for JSON, not for tables")));
            }
        }
        let table = Table {
            separator,
            names: self.names()?,
            typing: if self.columns_have_types { Typing::Named } else { Typing::Guessed },
            blanks: if self.ignore_blanks { Blanks::Ignored } else { Blanks::Kept },
            grace: match self.parse_grace {
                Some(Grace::AutoCast) => ParseGrace::AutoCast,
                Some(Grace::SkipField) => ParseGrace::SkipField,
                Some(Grace::SkipRow) | None => ParseGrace::SkipRow,
                Some(Grace::Stop) => ParseGrace::Stop,
            },
            numbers: if self.use_array_index_fields {
                NumbersInNames::Indexes
            } else {
                NumbersInNames::Fields
            },
        };
        Ok(TextForm::Table(Arc::new(table)))
    }

    fn json(&self) -> Result<TextForm, Error> {
        let for_tables =
            self.for_tables().into_iter().chain([("--ignoreBlanks", self.ignore_blanks)]);
        if let Some(name) = first_given(for_tables) {
            return Err(usage(format!("{name} is for tables, not for JSON"))
                .hint("say which with --type csv or --type tsv"));
        }
        let layout = if self.json_array { JsonLayout::Array } else { JsonLayout::Told };
        let form = if self.legacy { TextForm::LegacyJson } else { TextForm::Json };
        Ok(form(layout))
    }

    /// Files of columns bring names and types along.
    fn columnar(&self) -> Result<TextForm, Error> {
        let further = [
            ("--jsonArray", self.json_array),
            ("--legacy", self.legacy),
            ("--parseGrace", self.parse_grace.is_some()),
            ("--useArrayIndexFields", self.use_array_index_fields),
        ];
        if let Some(name) = first_given(self.for_tables().into_iter().chain(further)) {
            return Err(usage(format!("{name} is for text, not for files of columns"))
                .hint("Parquet and Arrow bring the names and types of their columns along"));
        }
        let blanks = if self.ignore_blanks { Blanks::Ignored } else { Blanks::Kept };
        Ok(TextForm::Columnar(blanks))
    }

    /// What says how a table of text is to be read, and whether it is given.
    fn for_tables(&self) -> [(&'static str, bool); 4] {
        [
            ("--headerline", self.headerline),
            ("--fields", self.fields.is_some()),
            ("--fieldFile", self.field_file.is_some()),
            ("--columnsHaveTypes", self.columns_have_types),
        ]
    }

    fn names(&self) -> Result<Names, Error> {
        if let Some(fields) = &self.fields {
            return Ok(Names::Given(split(fields)));
        }
        let Some(file) = &self.field_file else {
            if self.headerline {
                return Ok(Names::Header);
            }
            return Err(usage("nothing names the columns of the table")
                .hint("name them with --headerline, --fields or --fieldFile"));
        };
        let text = fs::read_to_string(file)
            .map_err(|error| usage(format!("cannot be read: {error}")).in_file(file))?;
        Ok(Names::Given(text.lines().map(str::to_owned).collect()))
    }

    /// What differs from the defaults, as the report tells it.
    pub(super) fn told(&self) -> Vec<OptionValue> {
        let flags = [
            ("json-array", self.json_array),
            ("headerline", self.headerline),
            ("columns-have-types", self.columns_have_types),
            ("ignore-blanks", self.ignore_blanks),
            ("use-array-index-fields", self.use_array_index_fields),
        ];
        let flags = flags.into_iter().filter(|(_, is_set)| *is_set);
        let flags = flags.map(|(name, _)| (name, Some("true".to_owned())));
        let named = |value: &dyn Fn() -> Option<clap::builder::PossibleValue>| {
            value().map(|value| value.get_name().to_owned())
        };
        let values = [
            ("type", named(&|| self.kind.to_possible_value()).filter(|kind| kind != "json")),
            ("fields", self.fields.clone()),
            ("field-file", self.field_file.as_ref().map(|file| file.display().to_string())),
            ("parse-grace", named(&|| self.parse_grace?.to_possible_value())),
        ];
        let told = flags.chain(values);
        told.filter_map(|(name, value)| Some(OptionValue { name: name.to_owned(), value: value? }))
            .collect()
    }
}

/// The first option that is given.
fn first_given(options: impl IntoIterator<Item = (&'static str, bool)>) -> Option<&'static str> {
    options.into_iter().find(|(_, is_given)| *is_given).map(|(name, _)| name)
}

/// Names between commas; a comma in the parentheses of a type ends none.
fn split(fields: &str) -> Vec<String> {
    let (mut names, mut depth) = (vec![String::new()], 0_usize);
    for character in fields.chars() {
        match character {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                names.push(String::new());
                continue;
            }
            _ => {}
        }
        if let Some(name) = names.last_mut() {
            name.push(character);
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        table: TableArgs,
    }

    fn form(line: &str) -> Result<TextForm, String> {
        let words = std::iter::once("x").chain(line.split_whitespace());
        let line = Line::try_parse_from(words).map_err(|error| error.to_string())?;
        line.table.form().map_err(|error| error.to_string())
    }

    #[test]
    fn each_flag_reaches_its_option() {
        assert_eq!(form(""), Ok(TextForm::Json(JsonLayout::Told)));
        assert_eq!(form("--jsonArray"), Ok(TextForm::Json(JsonLayout::Array)));
        assert_eq!(form("--jsonArray --legacy"), Ok(TextForm::LegacyJson(JsonLayout::Array)));
        let plain = Table {
            separator: Separator::Comma,
            names: Names::Header,
            typing: Typing::Guessed,
            blanks: Blanks::Kept,
            grace: ParseGrace::SkipRow,
            numbers: NumbersInNames::Fields,
        };
        let table = |table| Ok(TextForm::Table(Arc::new(table)));
        assert_eq!(form("--type CSV --headerline"), table(plain.clone()));
        let names = ["a.date(Jan 2, 2006)", "b"].map(str::to_owned).to_vec();
        assert_eq!(split("a.date(Jan 2, 2006),b"), names);
        for (written, grace) in [
            ("autoCast", ParseGrace::AutoCast),
            ("skipField", ParseGrace::SkipField),
            ("skipRow", ParseGrace::SkipRow),
            ("stop", ParseGrace::Stop),
        ] {
            let line = format!(
                "--type tsv -f a,b --columnsHaveTypes --ignoreBlanks --parseGrace {written} \
                 --useArrayIndexFields"
            );
            let expected = Table {
                separator: Separator::Tab,
                names: Names::Given(vec!["a".into(), "b".into()]),
                typing: Typing::Named,
                blanks: Blanks::Ignored,
                grace,
                numbers: NumbersInNames::Indexes,
            };
            assert_eq!(form(&line), table(expected), "{line}");
        }
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("names");
        fs::write(&file, "a\r\nb\n").expect("written");
        let names = Names::Given(vec!["a".into(), "b".into()]);
        let line = format!("--type csv --fieldFile {}", file.display());
        assert_eq!(form(&line), table(Table { names, ..plain }));
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for (line, words) in [
            ("--type xml", "invalid value"),
            ("--type csv", "nothing names the columns"),
            ("--type csv --headerline --fields a", "cannot be used with"),
            ("--type csv --fields a --fieldFile b", "cannot be used with"),
            ("--type csv --fieldFile /nowhere/at/all", "cannot be read"),
            ("--type csv --headerline --jsonArray", "--jsonArray is for JSON"),
            ("--type tsv --headerline --legacy", "--legacy is for JSON"),
            ("--headerline", "--headerline is for tables"),
            ("--ignoreBlanks", "--ignoreBlanks is for tables"),
            ("--type csv --headerline --parseGrace some", "invalid value"),
        ] {
            let error = form(line).expect_err(line);
            assert!(error.contains(words), "{line}: {error}");
        }
    }
}
