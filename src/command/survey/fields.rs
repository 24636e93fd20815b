//! What fields documents have: names, types, and how many documents have them.

use bson::spec::ElementType;
use bson::{RawBsonRef, RawDocument};

use crate::limits::{SURVEY_ELEMENTS_MAX, SURVEY_FIELDS_MAX, SURVEY_LEVELS_MAX};
use crate::report::survey::{FieldInventory, FieldType, SurveyedField};

/// The fields of the documents that were looked at.
pub(super) struct Inventory {
    documents_max: u64,
    documents: u64,
    fields: usize,
    is_complete: bool,
    roots: Vec<Field>,
}

struct Field {
    name: String,
    seen: Seen,
    types: Vec<(&'static str, Seen)>,
    inner: Vec<Field>,
}

/// How many documents were seen, and the number of the last one of them, since a field occurs in a
/// document as often as arrays repeat it.
#[derive(Clone, Copy, Default)]
struct Seen {
    documents: u64,
    last: u64,
}

impl Seen {
    fn note(&mut self, document: u64) {
        if self.last != document {
            *self = Self { documents: self.documents + 1, last: document };
        }
    }
}

impl Inventory {
    /// An inventory of at most so many documents.
    pub(super) fn new(documents_max: u32) -> Self {
        Self {
            documents_max: documents_max.into(),
            documents: 0,
            fields: 0,
            is_complete: true,
            roots: Vec::new(),
        }
    }

    /// Looks at a document, if it may look at more.
    pub(super) fn add(&mut self, document: &RawDocument) {
        if self.documents == self.documents_max {
            return;
        }
        self.documents += 1;
        let mut walk = Walk {
            number: self.documents,
            fields: &mut self.fields,
            is_complete: &mut self.is_complete,
        };
        walk.level(&mut self.roots, document, 1);
    }

    /// The inventory of a collection of so many documents; nothing where none was to be made, or
    /// where nothing could be read of documents that are there.
    pub(super) fn finish(self, of: Option<u64>) -> Option<FieldInventory> {
        if self.documents_max == 0 || (self.documents == 0 && of != Some(0)) {
            return None;
        }
        let mut fields = Vec::new();
        list(&self.roots, "", self.documents, &mut fields);
        Some(FieldInventory {
            documents: self.documents,
            is_complete: self.is_complete && of == Some(self.documents),
            fields,
        })
    }
}

/// One document on its way through an inventory.
struct Walk<'a> {
    number: u64,
    fields: &'a mut usize,
    is_complete: &'a mut bool,
}

impl Walk<'_> {
    fn level(&mut self, fields: &mut Vec<Field>, document: &RawDocument, level: usize) {
        for element in document.iter_elements() {
            let Ok(element) = element else {
                *self.is_complete = false;
                return;
            };
            let name = element.key().as_str();
            let Some(field) = self.field(fields, name) else {
                continue;
            };
            field.seen.note(self.number);
            let kind = type_name(element.element_type());
            match field.types.iter_mut().find(|(name, _)| *name == kind) {
                Some((_, seen)) => seen.note(self.number),
                None => field.types.push((kind, Seen { documents: 1, last: self.number })),
            }
            if let Ok(value) = element.value() {
                self.inside(&mut field.inner, value, level);
            }
        }
    }

    /// Looks into documents and into arrays of them.
    fn inside(&mut self, fields: &mut Vec<Field>, value: RawBsonRef<'_>, level: usize) {
        match value {
            RawBsonRef::Document(document) if level < SURVEY_LEVELS_MAX => {
                self.level(fields, document, level + 1);
            }
            RawBsonRef::Document(_) => *self.is_complete = false,
            RawBsonRef::Array(array) => {
                let mut elements = array.into_iter();
                for element in elements.by_ref().take(SURVEY_ELEMENTS_MAX) {
                    // An array of arrays has no fields to name.
                    if let Ok(document @ RawBsonRef::Document(_)) = element {
                        self.inside(fields, document, level);
                    }
                }
                *self.is_complete &= elements.next().is_none();
            }
            _ => {}
        }
    }

    /// The field of this name; nothing where it is a new one and there are too many.
    fn field<'f>(&mut self, fields: &'f mut Vec<Field>, name: &str) -> Option<&'f mut Field> {
        let place = fields.iter().position(|field| field.name == name);
        let place = place.or_else(|| {
            if *self.fields == SURVEY_FIELDS_MAX {
                *self.is_complete = false;
                return None;
            }
            *self.fields += 1;
            let (name, seen) = (name.to_owned(), Seen::default());
            fields.push(Field { name, seen, types: Vec::new(), inner: Vec::new() });
            Some(fields.len() - 1)
        })?;
        fields.get_mut(place)
    }
}

/// Lists fields, each before those inside of it.
fn list(fields: &[Field], prefix: &str, documents: u64, listed: &mut Vec<SurveyedField>) {
    for field in fields {
        let name = format!("{prefix}{}", field.name);
        let inner = format!("{name}.");
        let mut types: Vec<_> = field
            .types
            .iter()
            .map(|(name, seen)| FieldType { name, documents: seen.documents })
            .collect();
        types.sort_by_key(|one| std::cmp::Reverse(one.documents));
        listed.push(SurveyedField {
            name,
            documents: field.seen.documents,
            share: share(field.seen.documents, documents),
            types,
        });
        list(&field.inner, &inner, documents, listed);
    }
}

#[expect(clippy::cast_precision_loss, reason = "a few thousand documents are looked at")]
fn share(documents: u64, of: u64) -> f64 {
    documents as f64 / of as f64
}

/// The name that `$type` has for a type (manual, "BSON Types").
fn type_name(kind: ElementType) -> &'static str {
    match kind {
        ElementType::Double => "double",
        ElementType::String => "string",
        ElementType::EmbeddedDocument => "object",
        ElementType::Array => "array",
        ElementType::Binary => "binData",
        ElementType::Undefined => "undefined",
        ElementType::ObjectId => "objectId",
        ElementType::Boolean => "bool",
        ElementType::DateTime => "date",
        ElementType::Null => "null",
        ElementType::RegularExpression => "regex",
        ElementType::DbPointer => "dbPointer",
        ElementType::JavaScriptCode => "javascript",
        ElementType::Symbol => "symbol",
        ElementType::JavaScriptCodeWithScope => "javascriptWithScope",
        ElementType::Int32 => "int",
        ElementType::Timestamp => "timestamp",
        ElementType::Int64 => "long",
        ElementType::Decimal128 => "decimal",
        ElementType::MinKey => "minKey",
        ElementType::MaxKey => "maxKey",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::{Bson, Document, RawDocumentBuf, doc};

    fn inventory(documents: &[Document], max: u32, of: Option<u64>) -> Option<FieldInventory> {
        let mut inventory = Inventory::new(max);
        for document in documents {
            inventory.add(&RawDocumentBuf::try_from(document).expect("it has no odd names"));
        }
        inventory.finish(of)
    }

    fn listed(inventory: &FieldInventory) -> Vec<String> {
        let of = |field: &SurveyedField| {
            let types = field.types.iter().map(|one| format!("{} {}", one.name, one.documents));
            format!("{} {}: {}", field.name, field.documents, types.collect::<Vec<_>>().join(", "))
        };
        inventory.fields.iter().map(of).collect()
    }

    #[test]
    fn fields_are_listed_inside_of_others_and_counted_once_a_document() {
        let documents = [
            doc! { "_id": 1, "customer": { "name": "a" }, "items": [{ "n": 1 }, { "n": 2.5 }, 7] },
            doc! { "_id": 2_i64, "items": [], "customer": { "name": Bson::Null, "zip": "1" } },
            doc! { "_id": 3, "note": true },
        ];
        let inventory = inventory(&documents, 10, Some(3)).expect("there is one");
        assert_eq!(
            listed(&inventory),
            [
                "_id 3: int 2, long 1",
                "customer 2: object 2",
                "customer.name 2: string 1, null 1",
                "customer.zip 1: string 1",
                "items 2: array 2",
                "items.n 1: int 1, double 1",
                "note 1: bool 1",
            ]
        );
        assert_eq!((inventory.documents, inventory.is_complete), (3, true));
        assert!((inventory.fields[1].share - 2.0 / 3.0).abs() < 1e-9);
    }

    #[test]
    fn a_part_of_the_documents_is_no_complete_inventory() {
        let documents = [doc! { "a": 1 }, doc! { "b": 1 }];
        let part = inventory(&documents, 1, Some(2)).expect("there is one");
        assert_eq!((listed(&part), part.is_complete), (vec!["a 1: int 1".to_owned()], false));
        assert!(!inventory(&documents, 10, None).expect("there is one").is_complete);
        assert_eq!(inventory(&documents, 0, Some(2)), None);
        assert_eq!(inventory(&[], 10, Some(2)), None);
        assert!(inventory(&[], 10, Some(0)).expect("of nothing").is_complete);
    }

    #[test]
    fn names_that_are_data_and_deep_documents_have_an_end() {
        let many: Document = (0..1000).map(|n| (format!("n{n}"), Bson::Int32(n))).collect();
        let many = inventory(&[many], 10, Some(1)).expect("there is one");
        assert_eq!((many.fields.len(), many.is_complete), (SURVEY_FIELDS_MAX, false));
        let mut deep = doc! { "x": 1 };
        for _ in 0..20 {
            deep = doc! { "x": deep };
        }
        let deep = inventory(&[deep], 10, Some(1)).expect("there is one");
        assert_eq!((deep.fields.len(), deep.is_complete), (SURVEY_LEVELS_MAX, false));
        let long: Vec<Bson> =
            (0..100).map(|n| Bson::Document(doc! { format!("n{n}"): 1 })).collect();
        let long = inventory(&[doc! { "a": long }], 10, Some(1)).expect("there is one");
        assert_eq!((long.fields.len(), long.is_complete), (1 + SURVEY_ELEMENTS_MAX, false));
    }
}
