//! Turns Extended JSON into BSON, byte by byte as it is parsed.
//!
//! The parser calls a visitor that writes each value where it belongs in the document; no tree is
//! built. An object whose first key begins with `$` may be a typed value: only such objects, which
//! are small, become values of their own first. Both versions of Extended JSON are read, as
//! [`extended_json`](crate::dump::extended_json) reads them in metadata.

pub(super) mod date;
#[cfg(test)]
mod tests;

use std::fmt;

use bson::{Bson, Document};
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};

use crate::dump::extended_json::{self, Regexes, Value};
use crate::frame::ElementKey;
use crate::limits::NESTING_MAX;
use crate::reader::draft::{Draft, LevelAt, TypeAt, kind};

/// Levels of a typed value inside the deepest document that a server accepts.
const LEVELS_INSIDE: usize = 2;

/// Keys of typed values: an object that begins with one is such a value or a mistake.
const TYPED: [&str; 17] = [
    "$binary",
    "$code",
    "$date",
    "$dbPointer",
    "$maxKey",
    "$minKey",
    "$numberDecimal",
    "$numberDouble",
    "$numberInt",
    "$numberLong",
    "$oid",
    "$regularExpression",
    "$scope",
    "$symbol",
    "$timestamp",
    "$undefined",
    "$uuid",
];

/// Why a text is no document, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonFault {
    /// What is wrong.
    pub message: String,
    /// Lines before the one that it is on.
    pub lines_before: u64,
    /// The column in bytes, from 1.
    pub column: u64,
    /// Whether a whole document was read, and the fault is what follows it.
    pub follows_document: bool,
}

impl JsonFault {
    fn of(error: &serde_json::Error, follows_document: bool) -> Self {
        let text = error.to_string();
        let place = format!(" at line {} column {}", error.line(), error.column());
        Self {
            message: text.strip_suffix(&place).unwrap_or(&text).to_owned(),
            lines_before: (error.line() as u64).saturating_sub(1),
            column: error.column() as u64,
            follows_document,
        }
    }
}

/// Makes the document that a text holds.
///
/// # Errors
///
/// Where the text is no JSON object, or one that is no document.
pub fn convert(text: &[u8], regexes: Regexes, draft: &mut Draft) -> Result<(), JsonFault> {
    let mut parser = serde_json::Deserializer::from_slice(text);
    // Levels are counted here, to the bound of a server rather than of the library.
    parser.disable_recursion_limit();
    let top = parser.deserialize_map(TopVisitor { draft, regexes });
    top.map_err(|error| JsonFault::of(&error, false))?;
    parser.end().map_err(|error| JsonFault::of(&error, true))
}

/// Writes a whole document.
struct TopVisitor<'a> {
    draft: &'a mut Draft,
    regexes: Regexes,
}

impl<'de> Visitor<'de> for TopVisitor<'_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a document")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        let Self { draft, regexes } = self;
        let level = draft.begin();
        while let Some(at) = fields.next_key_seed(Name { draft })? {
            if draft.name_since(at) == b"_id" {
                draft.note_id();
            }
            fields.next_value_seed(Field { draft, at, levels_left: NESTING_MAX, regexes })?;
        }
        draft.end(level);
        Ok(())
    }
}

/// Writes the name of a field.
struct Name<'a> {
    draft: &'a mut Draft,
}

impl<'de> DeserializeSeed<'de> for Name<'_> {
    type Value = TypeAt;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<TypeAt, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Name<'_> {
    type Value = TypeAt;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a name")
    }

    fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<TypeAt, E> {
        if name.as_bytes().contains(&0) {
            return Err(E::custom(format_args!("the key {name:?} holds a zero character")));
        }
        Ok(self.draft.name(name.as_bytes()))
    }
}

/// Writes the value of a field.
struct Field<'a> {
    draft: &'a mut Draft,
    at: TypeAt,
    levels_left: usize,
    regexes: Regexes,
}

impl Field<'_> {
    fn levels_inside<E: serde::de::Error>(&self) -> Result<usize, E> {
        self.levels_left
            .checked_sub(1)
            .ok_or_else(|| E::custom("nested deeper than a server accepts"))
    }

    /// Writes an object that begins with such a key as a typed value has.
    fn typed<'de, A: MapAccess<'de>>(
        self,
        key: String,
        level: LevelAt,
        mut fields: A,
    ) -> Result<(), A::Error> {
        let value = || Value::of_levels(self.levels_left + LEVELS_INSIDE, self.regexes);
        self.draft.rewind(level);
        let first = fields.next_value_seed(value())?;
        let Some(second) = fields.next_key::<String>()? else {
            let typed = match (key.as_str(), &first) {
                ("$date", Bson::String(text)) => date::of_utc(text).map(Bson::DateTime),
                _ => None,
            };
            let typed = match typed {
                Some(date) => Some(date),
                None => extended_json::of_one_key(&key, &first).map_err(A::Error::custom)?,
            };
            let typed = match typed {
                Some(typed) => typed,
                None => untyped(Document::from_iter([(key, first)]))?,
            };
            return self.draft.any(self.at, typed).map_err(A::Error::custom);
        };
        let mut document = Document::from_iter([(key, first)]);
        let mut next = Some(second);
        while let Some(key) = next {
            let is_new = document.insert(key.clone(), fields.next_value_seed(value())?).is_none();
            if !is_new {
                return Err(A::Error::custom(format_args!("the key {key:?} appears twice")));
            }
            next = fields.next_key()?;
        }
        let typed = extended_json::typed(document, self.regexes).map_err(A::Error::custom)?;
        let typed = match typed {
            Bson::Document(document) => untyped(document)?,
            typed => typed,
        };
        self.draft.any(self.at, typed).map_err(A::Error::custom)
    }
}

/// An object that stands for no typed value, as a document, unless it was meant as one.
fn untyped<E: serde::de::Error>(document: Document) -> Result<Bson, E> {
    let key = document.keys().next().map_or("", String::as_str);
    if TYPED.contains(&key) {
        let value = Bson::Document(document.clone()).into_relaxed_extjson();
        return Err(E::custom(format_args!("this is no value of `{key}`: {value}")));
    }
    Ok(Bson::Document(document))
}

impl<'de> DeserializeSeed<'de> for Field<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Field<'_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        self.draft.set(self.at, kind::NULL);
        Ok(())
    }

    fn visit_bool<E>(self, value: bool) -> Result<(), E> {
        self.draft.value(self.at, kind::BOOLEAN, &[value.into()]);
        Ok(())
    }

    fn visit_i64<E>(self, value: i64) -> Result<(), E> {
        self.draft.integer(self.at, value);
        Ok(())
    }

    fn visit_u64<E>(self, value: u64) -> Result<(), E> {
        #[expect(clippy::cast_precision_loss, reason = "only what no integer type holds")]
        match i64::try_from(value) {
            Ok(value) => self.draft.integer(self.at, value),
            Err(_) => self.draft.value(self.at, kind::DOUBLE, &(value as f64).to_le_bytes()),
        }
        Ok(())
    }

    fn visit_f64<E>(self, value: f64) -> Result<(), E> {
        self.draft.value(self.at, kind::DOUBLE, &value.to_le_bytes());
        Ok(())
    }

    fn visit_str<E>(self, value: &str) -> Result<(), E> {
        self.draft.text(self.at, value.as_bytes());
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let levels_left = self.levels_inside()?;
        let (draft, regexes) = (self.draft, self.regexes);
        draft.set(self.at, kind::ARRAY);
        let level = draft.level();
        let mut key = ElementKey::default();
        loop {
            let at = draft.name(key.text());
            if items.next_element_seed(Field { draft, at, levels_left, regexes })?.is_none() {
                draft.take_back(at);
                break;
            }
            key.increment();
        }
        draft.end(level);
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        let (levels_left, regexes) = (self.levels_inside()?, self.regexes);
        let draft = &mut *self.draft;
        draft.set(self.at, kind::DOCUMENT);
        let level = draft.level();
        let mut is_first = true;
        while let Some(at) = fields.next_key_seed(Name { draft })? {
            if is_first && draft.name_since(at).first() == Some(&b'$') {
                let key = String::from_utf8_lossy(draft.name_since(at)).into_owned();
                return self.typed(key, level, fields);
            }
            is_first = false;
            fields.next_value_seed(Field { draft, at, levels_left, regexes })?;
        }
        draft.end(level);
        Ok(())
    }
}
