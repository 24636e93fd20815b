//! What the fields of some documents have been seen to hold.

use std::collections::{BTreeMap, HashMap};

use bson::spec::{BinarySubtype, ElementType};
use bson::{Bson, RawArray, RawBsonRef, RawDocument};

/// Different values of a field that are told apart.
pub(super) const DISTINCT_MAX: usize = 2000;

/// The longest value that is told apart from others.
const VALUE_BYTES_MAX: usize = 200;

/// Fields of one document that are told apart; documents with more use names as values.
const FIELDS_MAX: usize = 500;

/// Levels that are looked into.
const LEVELS_MAX: usize = 20;

/// Elements of one array that are looked at.
const ELEMENTS_MAX: usize = 100;

/// Documents in the same place.
#[derive(Debug, Default)]
pub(super) struct Object {
    seen: u64,
    order: Vec<String>,
    fields: HashMap<String, Slot>,
}

/// Values in the same place.
#[derive(Debug, Default)]
pub(super) struct Slot {
    pub(super) present: u64,
    pub(super) kinds: BTreeMap<u8, Kind>,
}

/// What texts consist of, the narrowest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Characters {
    /// Decimal digits.
    #[default]
    Digits,
    /// Hexadecimal digits.
    Hex,
    /// Anything but spaces.
    Solid,
    /// Words.
    Spaced,
}

/// Values of one type in the same place.
#[derive(Debug, Default)]
pub(super) struct Kind {
    pub(super) count: u64,
    /// Numbers, moments, or lengths.
    pub(super) numbers: Vec<f64>,
    /// Different values and how often they were seen, until there are too many.
    pub(super) distinct: HashMap<String, (Bson, u64)>,
    pub(super) is_distinct: bool,
    /// What all texts consist of.
    pub(super) characters: Characters,
    /// True values.
    pub(super) trues: u64,
    /// Digits behind the point that are needed.
    pub(super) decimals: usize,
    pub(super) subtype: u8,
    pub(super) object: Object,
    pub(super) items: Box<Option<Slot>>,
}

impl Object {
    pub(super) fn add(&mut self, document: &RawDocument, level: usize) {
        self.seen += 1;
        let mut before: Option<&str> = None;
        for (name, value) in document.iter().map_while(Result::ok) {
            let name: &str = name.as_ref();
            if !self.fields.contains_key(name) {
                if self.fields.len() >= FIELDS_MAX {
                    continue;
                }
                // It stands behind the one that it follows here, also where others came first.
                let is_before = |known: &String| Some(known.as_str()) == before;
                let place = self.order.iter().position(is_before).map_or(0, |place| place + 1);
                self.order.insert(place, name.to_owned());
            }
            before = Some(name);
            self.fields.entry(name.to_owned()).or_default().add(value, level);
        }
    }

    /// How many there were.
    pub(super) fn seen(&self) -> u64 {
        self.seen
    }

    /// The fields in the order of the documents.
    pub(super) fn fields(&self) -> impl Iterator<Item = (&str, &Slot)> {
        self.order.iter().filter_map(|name| Some((name.as_str(), self.fields.get(name)?)))
    }
}

impl Slot {
    fn add(&mut self, value: RawBsonRef<'_>, level: usize) {
        self.present += 1;
        self.kinds.entry(value.element_type() as u8).or_default().add(value, level);
    }

    /// How many of the values are of a type.
    pub(super) fn of(&self, kind: ElementType) -> u64 {
        self.kinds.get(&(kind as u8)).map_or(0, |kind| kind.count)
    }
}

impl Kind {
    #[expect(clippy::cast_precision_loss, reason = "numbers are told apart by `distinct`")]
    fn add(&mut self, value: RawBsonRef<'_>, level: usize) {
        if self.count == 0 {
            self.is_distinct = true;
        }
        self.count += 1;
        match value {
            RawBsonRef::Double(number) => self.add_double(number),
            RawBsonRef::Int32(number) => self.numbers.push(number.into()),
            RawBsonRef::Int64(number) => self.numbers.push(number as f64),
            RawBsonRef::DateTime(moment) => self.numbers.push(moment.timestamp_millis() as f64),
            RawBsonRef::Timestamp(moment) => self.numbers.push(moment.time.into()),
            RawBsonRef::ObjectId(id) => {
                self.numbers.push((id.timestamp().timestamp_millis() / 1000) as f64);
            }
            RawBsonRef::Decimal128(number) => {
                if let Ok(number) = number.to_string().parse() {
                    self.add_double(number);
                }
            }
            RawBsonRef::String(text)
            | RawBsonRef::Symbol(text)
            | RawBsonRef::JavaScriptCode(text) => self.add_text(text),
            RawBsonRef::Boolean(is_true) => self.trues += u64::from(is_true),
            RawBsonRef::Binary(binary) => {
                self.numbers.push(binary.bytes.len() as f64);
                self.subtype = binary.subtype.into();
                if binary.subtype == BinarySubtype::BinaryOld {
                    self.subtype = 2;
                }
            }
            RawBsonRef::Document(document) if level < LEVELS_MAX => {
                self.object.add(document, level + 1);
            }
            RawBsonRef::Array(array) if level < LEVELS_MAX => self.add_array(array, level),
            _ => {}
        }
        self.tell_apart(value);
    }

    #[expect(clippy::cast_precision_loss, reason = "lengths are small")]
    fn add_array(&mut self, array: &RawArray, level: usize) {
        let mut length = 0_u64;
        for value in array.into_iter().map_while(Result::ok) {
            length += 1;
            if length <= ELEMENTS_MAX as u64 {
                self.items.get_or_insert_default().add(value, level + 1);
            }
        }
        self.numbers.push(length as f64);
    }

    fn add_double(&mut self, number: f64) {
        if !number.is_finite() {
            return;
        }
        self.numbers.push(number);
        let text = number.abs().to_string();
        let decimals = text.split_once('.').map_or(0, |(_, decimals)| decimals.len());
        self.decimals = self.decimals.max(decimals);
    }

    #[expect(clippy::cast_precision_loss, reason = "lengths are small")]
    fn add_text(&mut self, text: &str) {
        self.numbers.push(text.len() as f64);
        let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        let found = if text.bytes().all(|byte| byte.is_ascii_digit()) {
            Characters::Digits
        } else if text.bytes().all(is_hex) {
            Characters::Hex
        } else if text.contains(' ') {
            Characters::Spaced
        } else {
            Characters::Solid
        };
        self.characters = self.characters.max(found);
    }

    fn tell_apart(&mut self, value: RawBsonRef<'_>) {
        let is_told = matches!(
            value,
            RawBsonRef::String(_)
                | RawBsonRef::Int32(_)
                | RawBsonRef::Int64(_)
                | RawBsonRef::Double(_)
                | RawBsonRef::Symbol(_)
                | RawBsonRef::RegularExpression(_)
        );
        let short = match value {
            RawBsonRef::String(text) | RawBsonRef::Symbol(text) => text.len() <= VALUE_BYTES_MAX,
            _ => is_told,
        };
        if !self.is_distinct || !short {
            self.is_distinct = false;
            self.distinct = HashMap::new();
            return;
        }
        let Ok(value) = Bson::try_from(value) else { return };
        let key = value.to_string();
        self.distinct.entry(key).or_insert((value, 0)).1 += 1;
        if self.distinct.len() > DISTINCT_MAX {
            self.is_distinct = false;
            self.distinct = HashMap::new();
        }
    }
}
