//! The fields by which a document finds the stored one that it replaces, changes or deletes.
//!
//! Values are ranges of the document's bytes, so that a query is made of them without decoding one.

use std::sync::Arc;

use crate::frame::{Field, Frame};

/// The type byte of a document.
const DOCUMENT: u8 = 0x03;

/// The type byte of null, which counts as no value, as in mongoimport.
const NULL: u8 = 0x0A;

/// Names of fields; a name with dots is a path through documents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyFields {
    /// The names; none stands for `_id` alone.
    names: Option<Arc<[String]>>,
}

/// The name of a field and the value that a document has there, if any.
pub type KeyValue<'a> = (&'a str, Option<Field<'a>>);

impl KeyFields {
    /// Reads names with commas between them; an error is a sentence.
    pub fn parse(text: &str) -> Result<Self, String> {
        let names: Vec<String> = text.split(',').map(str::to_owned).collect();
        for (place, name) in names.iter().enumerate() {
            if name.split('.').any(str::is_empty) {
                return Err(format!("`{name}` is no field: a name or a part of it is empty"));
            }
            if name.starts_with('$') {
                return Err(format!("`{name}` is no field: it begins with `$`"));
            }
            for other in &names[..place] {
                if is_within(name, other) || is_within(other, name) {
                    return Err(format!("`{other}` and `{name}` cannot both be fields"));
                }
            }
        }
        let is_id = names.len() == 1 && names[0] == "_id";
        Ok(Self { names: (!is_id).then(|| names.into()) })
    }

    /// Whether it is by `_id` alone, of which the collection has each once.
    pub fn is_id(&self) -> bool {
        self.names.is_none()
    }

    /// What a document has in these fields; nothing where it has a value in none of them.
    pub fn values<'a>(&'a self, frame: Frame<'a>) -> Option<Vec<KeyValue<'a>>> {
        let values: Vec<KeyValue<'a>> = match &self.names {
            None => vec![("_id", at(frame, "_id"))],
            Some(names) => names.iter().map(|name| (name.as_str(), at(frame, name))).collect(),
        };
        values.iter().any(|(_, value)| value.is_some()).then_some(values)
    }
}

/// Whether a path is another one or leads through it.
fn is_within(path: &str, other: &str) -> bool {
    path.strip_prefix(other).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// The value at the end of a path; the elements of arrays are not on it.
fn at<'a>(frame: Frame<'a>, path: &str) -> Option<Field<'a>> {
    let (name, rest) = path.split_once('.').map_or((path, None), |(name, rest)| (name, Some(rest)));
    let mut fields = frame.fields().map_while(Result::ok);
    let field = fields.find(|field| field.name == name.as_bytes())?;
    match rest {
        None => (field.kind != NULL).then_some(field),
        Some(rest) if field.kind == DOCUMENT => at(Frame::new(field.value).ok()?, rest),
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::{Document, doc};

    fn found(keys: &str, document: &Document) -> Option<Vec<(String, Option<u8>)>> {
        let keys = KeyFields::parse(keys).expect("fields");
        let bytes = document.to_vec().expect("encodes");
        let values = keys.values(Frame::new(&bytes).expect("a frame"))?;
        let value = |(name, field): &KeyValue<'_>| {
            ((*name).to_owned(), field.as_ref().map(|field| field.kind))
        };
        Some(values.iter().map(value).collect())
    }

    #[test]
    fn values_are_found_along_documents_and_null_is_none() {
        let document = doc! { "a": { "b": { "c": 1 } }, "n": null, "s": "x", "l": [ { "b": 1 } ] };
        for (keys, kinds) in [
            ("a.b.c", Some(vec![Some(0x10)])),
            ("a.b", Some(vec![Some(0x03)])),
            ("l", Some(vec![Some(0x04)])),
            ("s,n,x.y", Some(vec![Some(0x02), None, None])),
            ("n", None),
            ("l.b", None),
            ("l.0.b", None),
            ("s.b", None),
            ("a.b.d,_id", None),
        ] {
            let found = found(keys, &document);
            let found = found.map(|found| found.into_iter().map(|(_, kind)| kind).collect());
            assert_eq!(found, kinds, "{keys}");
        }
    }

    #[test]
    fn only_paths_that_can_stand_beside_each_other_are_fields() {
        for text in ["", "a,", ".a", "a.", "a..b", "$a", "a,a", "a,a.b", "a.b.c,a.b"] {
            assert!(KeyFields::parse(text).is_err(), "{text}");
        }
        for text in ["a", "a.b,a.c", "a,ab", "_id,a", "a.$b"] {
            assert!(KeyFields::parse(text).is_ok_and(|keys| !keys.is_id()), "{text}");
        }
        assert_eq!(KeyFields::parse("_id"), Ok(KeyFields::default()));
    }
}
