//! A table of a spec, with the places of its values and of what is wrong with them.

use std::cell::RefCell;
use std::ops::Range;
use std::path::Path;

use bson::{Bson, Document};
use serde_json::{Map, Value as Json, json};
use toml::Spanned;
use toml::de::{DeInteger, DeTable, DeValue};

use crate::dump::extended_json;
use crate::error::{Error, ErrorKind};

/// The text of a spec.
#[derive(Clone, Copy)]
pub(super) struct Source<'a> {
    pub(super) text: &'a str,
    pub(super) file: &'a Path,
}

impl Source<'_> {
    pub(super) fn error(self, span: &Range<usize>, message: &str) -> Error {
        let before = self.text.get(..span.start).unwrap_or(self.text);
        let line = 1 + before.matches('\n').count();
        Error::new(ErrorKind::Usage, format!("line {line}: {message}")).in_file(self.file)
    }
}

/// A table whose keys are asked for one by one; those that nobody asked for are refused.
pub(super) struct Section<'a> {
    pub(super) source: Source<'a>,
    /// Its place in the spec, as a person would say it.
    pub(super) path: String,
    span: Range<usize>,
    table: &'a DeTable<'a>,
    asked: RefCell<Vec<&'static str>>,
}

/// A value in a table.
#[derive(Clone)]
pub(super) struct Entry<'a> {
    source: Source<'a>,
    pub(super) path: String,
    pub(super) value: &'a Spanned<DeValue<'a>>,
}

impl<'a> Section<'a> {
    pub(super) fn root(source: Source<'a>, table: &'a Spanned<DeTable<'a>>) -> Self {
        let (span, table) = (table.span(), table.get_ref());
        Self { source, path: String::new(), span, table, asked: RefCell::default() }
    }

    pub(super) fn error(&self, message: &str) -> Error {
        let path = if self.path.is_empty() { String::new() } else { format!("{}: ", self.path) };
        self.source.error(&self.span, &format!("{path}{message}"))
    }

    /// The value of a key, if there is one.
    pub(super) fn get(&self, key: &'static str) -> Option<Entry<'a>> {
        self.asked.borrow_mut().push(key);
        let value = self.table.get(key)?;
        Some(Entry { source: self.source, path: self.below(key), value })
    }

    pub(super) fn needed(&self, key: &'static str) -> Result<Entry<'a>, Error> {
        self.get(key).ok_or_else(|| self.error(&format!("`{key}` is missing")))
    }

    /// Whether a key is there; it need not be known where it is not.
    pub(super) fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    /// All of its values, whatever their keys.
    pub(super) fn entries(&self) -> impl Iterator<Item = (&'a str, Entry<'a>)> {
        self.table.iter().map(|(key, value)| {
            let key: &str = key.get_ref();
            (key, Entry { source: self.source, path: self.below(key), value })
        })
    }

    /// Refuses keys that nobody asked for.
    pub(super) fn finish(&self) -> Result<(), Error> {
        let asked = self.asked.borrow();
        for (key, _) in self.table {
            let name: &str = key.get_ref();
            if !asked.contains(&name) {
                let mut known: Vec<_> = asked.iter().map(|key| format!("`{key}`")).collect();
                known.sort_unstable();
                known.dedup();
                let message = format!(
                    "{}: it has no effect here; possible are {}",
                    self.below(name),
                    known.join(", ")
                );
                return Err(self.source.error(&key.span(), &message));
            }
        }
        Ok(())
    }

    fn below(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }
}

impl<'a> Entry<'a> {
    pub(super) fn error(&self, message: &str) -> Error {
        self.source.error(&self.value.span(), &format!("{}: {message}", self.path))
    }

    pub(super) fn section(&self) -> Result<Section<'a>, Error> {
        let DeValue::Table(table) = self.value.get_ref() else {
            let found = self.value.get_ref().type_str();
            let hint = "a table is needed, such as { type = \"int\" }";
            return Err(self.error(&format!("{hint}; this is of TOML's type {found}")));
        };
        let (source, path, span) = (self.source, self.path.clone(), self.value.span());
        Ok(Section { source, path, span, table, asked: RefCell::default() })
    }

    /// Its elements, each by its place from 0.
    pub(super) fn elements(&self) -> Result<Vec<Entry<'a>>, Error> {
        let DeValue::Array(elements) = self.value.get_ref() else {
            return Err(self.error("a list is needed"));
        };
        let element = |(place, value): (usize, &'a Spanned<DeValue<'a>>)| Entry {
            source: self.source,
            path: format!("{}[{place}]", self.path),
            value,
        };
        Ok(elements.iter().enumerate().map(element).collect())
    }

    pub(super) fn text(&self) -> Result<&'a str, Error> {
        match self.value.get_ref() {
            DeValue::String(text) => Ok(text),
            _ => Err(self.error("a text is needed")),
        }
    }

    pub(super) fn integer(&self) -> Result<i64, Error> {
        match self.value.get_ref() {
            DeValue::Integer(number) => {
                integer(number).ok_or_else(|| self.error("the number is too large"))
            }
            _ => Err(self.error("a whole number is needed")),
        }
    }

    /// A whole number within bounds.
    pub(super) fn within(&self, min: i64, max: i64) -> Result<i64, Error> {
        let number = self.integer()?;
        if (min..=max).contains(&number) {
            return Ok(number);
        }
        Err(self.error(&format!("a whole number from {min} to {max} is needed")))
    }

    #[expect(clippy::cast_precision_loss, reason = "a float is wanted")]
    pub(super) fn float(&self) -> Result<f64, Error> {
        let number = match self.value.get_ref() {
            DeValue::Integer(number) => integer(number).map(|number| number as f64),
            DeValue::Float(number) => number.as_str().replace('_', "").parse().ok(),
            _ => None,
        };
        number
            .filter(|number: &f64| number.is_finite())
            .ok_or_else(|| self.error("a number is needed"))
    }

    pub(super) fn probability(&self) -> Result<f64, Error> {
        match self.float()? {
            number if (0.0..=1.0).contains(&number) => Ok(number),
            _ => Err(self.error("a probability from 0 to 1 is needed")),
        }
    }

    /// A moment in milliseconds since 1970; without a time it is midnight, without a zone UTC.
    pub(super) fn date(&self) -> Result<i64, Error> {
        let wrong = || self.error("a date is needed, such as 2024-01-31 or 2024-01-31T12:00:00Z");
        match self.value.get_ref() {
            DeValue::Datetime(date) => milliseconds(&date.to_string()).ok_or_else(wrong),
            _ => Err(wrong()),
        }
    }

    /// A moment in seconds since 1970, as object ids and timestamps hold it.
    pub(super) fn second(&self) -> Result<i64, Error> {
        let second = self.date()?.div_euclid(1000);
        match u32::try_from(second) {
            Ok(_) => Ok(second),
            Err(_) => Err(self.error("a date from 1970 to 2106 is needed")),
        }
    }

    /// The value as it is stored; Extended JSON stands for what TOML does not know.
    pub(super) fn bson(&self) -> Result<Bson, Error> {
        let json = json(self.value.get_ref())
            .ok_or_else(|| self.error("a number is too large, or a date has no day"))?;
        extended_json::parse(json.to_string().as_bytes())
            .map_err(|error| self.error(&error.message))
    }

    /// The same for a table.
    pub(super) fn document(&self) -> Result<Document, Error> {
        match self.bson()? {
            Bson::Document(document) => Ok(document),
            _ => Err(self.error("a table is needed")),
        }
    }
}

/// [`Entry::float`] for whoever is not tied to one spec.
pub(super) fn float(entry: &Entry<'_>) -> Result<f64, Error> {
    entry.float()
}

/// [`Entry::date`] for whoever is not tied to one spec.
pub(super) fn date(entry: &Entry<'_>) -> Result<i64, Error> {
    entry.date()
}

/// [`Entry::second`] for whoever is not tied to one spec.
pub(super) fn second(entry: &Entry<'_>) -> Result<i64, Error> {
    entry.second()
}

fn integer(number: &DeInteger<'_>) -> Option<i64> {
    i64::from_str_radix(&number.as_str().replace('_', ""), number.radix()).ok()
}

fn milliseconds(date: &str) -> Option<i64> {
    if let Ok(moment) = date.parse::<jiff::Timestamp>() {
        return Some(moment.as_millisecond());
    }
    let local = date.parse::<jiff::civil::DateTime>().ok()?;
    Some(jiff::tz::TimeZone::UTC.to_timestamp(local).ok()?.as_millisecond())
}

/// The same value as Extended JSON.
fn json(value: &DeValue<'_>) -> Option<Json> {
    Some(match value {
        DeValue::String(text) => Json::from(text.as_ref()),
        DeValue::Integer(number) => Json::from(integer(number)?),
        DeValue::Float(number) => {
            let number: f64 = number.as_str().replace('_', "").parse().ok()?;
            let text = match number {
                number if number.is_nan() => "NaN".to_owned(),
                number if number == f64::INFINITY => "Infinity".to_owned(),
                number if number == f64::NEG_INFINITY => "-Infinity".to_owned(),
                number => format!("{number:?}"),
            };
            json!({ "$numberDouble": text })
        }
        DeValue::Boolean(value) => Json::from(*value),
        DeValue::Datetime(date) => {
            let milliseconds = milliseconds(&date.to_string())?.to_string();
            json!({ "$date": { "$numberLong": milliseconds } })
        }
        DeValue::Array(values) => {
            values.iter().map(|value| json(value.get_ref())).collect::<Option<Vec<_>>>()?.into()
        }
        // TOML has no word for it.
        DeValue::Table(table) if table.len() == 1 && table.contains_key("$null") => Json::Null,
        DeValue::Table(table) => table
            .iter()
            .map(|(key, value)| Some((key.get_ref().to_string(), json(value.get_ref())?)))
            .collect::<Option<Map<_, _>>>()?
            .into(),
    })
}
