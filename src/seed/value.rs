//! Values of every BSON type, drawn and written where they will lie.

use bson::{Bson, Document};

use super::distribution::{Chance, Draws, Permutation, Pick, Real, Whole};
use super::random::SplitMix64;
use super::shape::object_id;
use super::text::{Text, count};
use super::{length, random::mix, stream};

/// Types of the specification (<https://bsonspec.org>).
pub(super) mod kind {
    pub(in crate::seed) const DOUBLE: u8 = 0x01;
    pub(in crate::seed) const STRING: u8 = 0x02;
    pub(in crate::seed) const DOCUMENT: u8 = 0x03;
    pub(in crate::seed) const ARRAY: u8 = 0x04;
    pub(in crate::seed) const BINARY: u8 = 0x05;
    pub(in crate::seed) const OBJECT_ID: u8 = 0x07;
    pub(in crate::seed) const BOOL: u8 = 0x08;
    pub(in crate::seed) const DATE: u8 = 0x09;
    pub(in crate::seed) const JAVASCRIPT: u8 = 0x0D;
    pub(in crate::seed) const SYMBOL: u8 = 0x0E;
    pub(in crate::seed) const INT: u8 = 0x10;
    pub(in crate::seed) const TIMESTAMP: u8 = 0x11;
    pub(in crate::seed) const LONG: u8 = 0x12;
    pub(in crate::seed) const DECIMAL: u8 = 0x13;
}

/// The subtype of UUIDs.
const UUID: u8 = 4;

/// The subtype that holds its length once more.
const OLD_BINARY: u8 = 2;

/// A field of a document.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Field {
    /// Its name with the zero behind it.
    pub(super) name: Box<[u8]>,
    /// How often it is not there.
    pub(super) missing: Chance,
    /// What it holds.
    pub(super) value: Value,
}

/// A value that is always the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fixed {
    kind: u8,
    bytes: Box<[u8]>,
}

/// How a value is drawn.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    /// It is always the same.
    Fixed(Fixed),
    /// One of these.
    Chosen { pick: Pick, among: Box<[Fixed]> },
    /// Drawn in one of these ways.
    OneOf { pick: Pick, among: Box<[Value]> },
    /// A double.
    Double(Real),
    /// A 32-bit number.
    Int(Whole),
    /// A 64-bit number.
    Long(Whole),
    /// A decimal: a whole number and how many of its digits are behind the point.
    Decimal { whole: Whole, decimals: u8 },
    /// Milliseconds since 1970.
    Date(Whole),
    /// Seconds since 1970, and a counter.
    Timestamp(Whole),
    /// True so often.
    Bool(Chance),
    /// A string, or what is written like one.
    Text { kind: u8, text: Text },
    /// Bytes that no compressor makes smaller.
    Binary { subtype: u8, length: Whole },
    /// A random UUID.
    Uuid,
    /// An object id.
    ObjectId(Ids),
    /// A document.
    Document(Box<[Field]>),
    /// An array.
    Array { length: Whole, item: Box<Value> },
    /// The `_id` of a document of another collection, or of the same one.
    Reference { to: usize, number: Whole },
}

/// How object ids are drawn.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Ids {
    /// As a driver makes them that inserts so many a second from this second on: ascending.
    Sequence { start: u32, per_second: u32 },
    /// Unique, in an order that looks random.
    Scattered(Permutation),
    /// Of a second that is drawn, the rest random.
    Uniform(Whole),
}

/// A collection that others refer to.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Referred {
    /// What its choices start from, together with the seed.
    pub(super) salt: u64,
    /// Its `_id`.
    pub(super) id: Value,
}

impl Field {
    pub(super) fn append(&self, of: &[Referred], draws: &mut Draws, out: &mut Vec<u8>) {
        if self.missing.happens(&mut draws.random) {
            return;
        }
        let head = out.len();
        out.push(0);
        out.extend_from_slice(&self.name);
        out[head] = self.value.append(of, draws, out);
    }
}

/// Appends a document of these fields.
pub(super) fn document(fields: &[Field], of: &[Referred], draws: &mut Draws, out: &mut Vec<u8>) {
    let start = begin(out);
    for field in fields {
        field.append(of, draws, out);
    }
    end(start, out);
}

impl Fixed {
    /// Errors: what BSON cannot hold.
    pub(super) fn of(value: &Bson) -> Result<Self, String> {
        let mut document = Document::new();
        document.insert("", value.clone());
        let bytes = document.to_vec().map_err(|error| error.to_string())?;
        // The length, the type, the empty name and the terminators around the value.
        Ok(Self { kind: bytes[4], bytes: bytes[6..bytes.len() - 1].into() })
    }

    fn append(&self, out: &mut Vec<u8>) -> u8 {
        out.extend_from_slice(&self.bytes);
        self.kind
    }
}

impl Value {
    /// Appends the value; returns its type.
    pub(super) fn append(&self, of: &[Referred], draws: &mut Draws, out: &mut Vec<u8>) -> u8 {
        match self {
            Self::Fixed(fixed) => fixed.append(out),
            Self::Chosen { pick, among } => among[pick.draw(&mut draws.random)].append(out),
            Self::OneOf { pick, among } => {
                among[pick.draw(&mut draws.random)].append(of, draws, out)
            }
            Self::Text { kind, text } => {
                let start = begin(out);
                text.append(draws, out);
                out.push(0);
                let bytes = length(out.len() - start - 4);
                out[start..start + 4].copy_from_slice(&bytes);
                *kind
            }
            Self::Document(fields) => {
                document(fields, of, draws, out);
                kind::DOCUMENT
            }
            Self::Array { length, item } => {
                array(length, item, of, draws, out);
                kind::ARRAY
            }
            Self::Reference { to, number } => refer(&of[*to], number, of, draws, out),
            Self::Binary { subtype, length } => {
                let bytes = count(length, draws);
                binary(*subtype, bytes, draws, out)
            }
            Self::Uuid => uuid(draws, out),
            scalar => scalar.append_scalar(draws, out),
        }
    }

    /// Appends a value of a fixed size.
    fn append_scalar(&self, draws: &mut Draws, out: &mut Vec<u8>) -> u8 {
        let mut put = |kind: u8, bytes: &[u8]| {
            out.extend_from_slice(bytes);
            kind
        };
        match self {
            Self::Double(real) => put(kind::DOUBLE, &real.draw(draws).to_le_bytes()),
            Self::Int(whole) => put(kind::INT, &whole.draw(draws).to_le_bytes()[..4]),
            Self::Long(whole) => put(kind::LONG, &whole.draw(draws).to_le_bytes()),
            Self::Date(whole) => put(kind::DATE, &whole.draw(draws).to_le_bytes()),
            Self::Bool(chance) => put(kind::BOOL, &[u8::from(chance.happens(&mut draws.random))]),
            Self::Decimal { whole, decimals } => {
                put(kind::DECIMAL, &decimal(whole.draw(draws), *decimals))
            }
            Self::Timestamp(seconds) => {
                let seconds = seconds.draw(draws);
                let counter = 1 + draws.random.below(1000);
                put(kind::TIMESTAMP, &((seconds << 32) | i64::from(counter)).to_le_bytes())
            }
            Self::ObjectId(ids) => put(kind::OBJECT_ID, &ids.draw(draws)),
            // All others are not of a fixed size and do not come here.
            _ => kind::DOUBLE,
        }
    }
}

impl Ids {
    fn draw(&self, draws: &mut Draws) -> [u8; 12] {
        match self {
            Self::Sequence { start, per_second } => {
                object_id(draws.stream, draws.number, *start, *per_second)
            }
            Self::Scattered(places) => {
                let mut id = [0; 12];
                id[..8].copy_from_slice(&places.place(draws.stream, draws.number).to_be_bytes());
                id[8..].copy_from_slice(&mix(!draws.stream).to_be_bytes()[4..]);
                id
            }
            Self::Uniform(seconds) => {
                let mut id = [0; 12];
                id[..4].copy_from_slice(&seconds.draw(draws).to_be_bytes()[4..]);
                draws.random.fill(&mut id[4..]);
                id
            }
        }
    }
}

/// Makes room for a length that is known later.
fn begin(out: &mut Vec<u8>) -> usize {
    out.extend_from_slice(&[0; 4]);
    out.len() - 4
}

/// Ends a document or an array that began here.
fn end(start: usize, out: &mut Vec<u8>) {
    out.push(0);
    let bytes = length(out.len() - start);
    out[start..start + 4].copy_from_slice(&bytes);
}

fn array(length: &Whole, item: &Value, of: &[Referred], draws: &mut Draws, out: &mut Vec<u8>) {
    let start = begin(out);
    for place in 0..count(length, draws) {
        let head = out.len();
        out.push(0);
        name(place, out);
        out[head] = item.append(of, draws, out);
    }
    end(start, out);
}

/// The name of an element: its place in decimal digits.
fn name(place: usize, out: &mut Vec<u8>) {
    let mut digits = [0; 20];
    let (mut at, mut left) = (digits.len(), place);
    loop {
        at -= 1;
        digits[at] = b'0' + u8::try_from(left % 10).unwrap_or(0);
        left /= 10;
        if left == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
    out.push(0);
}

/// The `_id` of the document of a number that is drawn: made anew, as it is made there.
fn refer(
    to: &Referred,
    number: &Whole,
    of: &[Referred],
    draws: &mut Draws,
    out: &mut Vec<u8>,
) -> u8 {
    let number = number.draw(draws).cast_unsigned();
    let stream = stream(draws.seed, to.salt);
    let random = SplitMix64::nth(stream, number);
    let mut there = Draws { seed: draws.seed, stream, number, random };
    to.id.append(of, &mut there, out)
}

fn binary(subtype: u8, bytes: usize, draws: &mut Draws, out: &mut Vec<u8>) -> u8 {
    if subtype == OLD_BINARY {
        out.extend_from_slice(&length(bytes + 4));
        out.push(subtype);
    }
    out.extend_from_slice(&length(bytes));
    if subtype != OLD_BINARY {
        out.push(subtype);
    }
    let start = out.len();
    out.resize(start + bytes, 0);
    draws.random.fill(&mut out[start..]);
    kind::BINARY
}

/// A random UUID (RFC 9562 section 5.4).
fn uuid(draws: &mut Draws, out: &mut Vec<u8>) -> u8 {
    binary(UUID, 16, draws, out);
    let start = out.len() - 16;
    out[start + 6] = out[start + 6] & 0x0F | 0x40;
    out[start + 8] = out[start + 8] & 0x3F | 0x80;
    kind::BINARY
}

/// A decimal of 128 bits in its binary form: the sign, the exponent over 6176, the digits as a
/// whole number (<https://www.mongodb.com/docs/manual/reference/glossary/#std-term-decimal128> and
/// IEEE 754-2008).
fn decimal(digits: i64, decimals: u8) -> [u8; 16] {
    let sign = u128::from(digits < 0) << 127;
    let exponent = u128::from(6176 - u32::from(decimals)) << 113;
    (sign | exponent | u128::from(digits.unsigned_abs())).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::Decimal128;
    use std::str::FromStr;

    fn drawn(value: Value, number: u64) -> Bson {
        let field = Field { name: b"v\0".as_slice().into(), missing: Chance::NONE, value };
        let mut draws = Draws { seed: 1, stream: 2, number, random: SplitMix64::nth(2, number) };
        let mut out = Vec::new();
        document(&[field], &[], &mut draws, &mut out);
        let frame = crate::frame::Frame::new(&out).expect("a frame");
        frame.validate().expect("sound");
        Document::from_reader(&out[..]).expect("decodes").remove("v").expect("it is there")
    }

    #[test]
    fn decimals_are_those_of_the_bson_library() {
        for (digits, decimals, text) in [
            (0, 0, "0"),
            (1234, 2, "12.34"),
            (-5, 3, "-0.005"),
            (i64::MAX, 2, "92233720368547758.07"),
        ] {
            let value = Value::Decimal { whole: Whole::Fixed(digits), decimals };
            let expected = Decimal128::from_str(text).expect("a decimal");
            assert_eq!(drawn(value, 0), Bson::Decimal128(expected), "{text}");
        }
    }

    #[test]
    fn elements_are_named_by_their_places() {
        let item = Box::new(Value::Int(Whole::Fixed(7)));
        let array = drawn(Value::Array { length: Whole::Fixed(1234), item }, 0);
        assert_eq!(array.as_array().map(Vec::len), Some(1234));
        let mut out = Vec::new();
        for place in [0, 9, 10, 1203] {
            name(place, &mut out);
        }
        assert_eq!(out, b"0\x009\x0010\x001203\0");
    }

    #[test]
    fn binary_values_have_their_subtype_and_length() {
        for subtype in [0, 2, 5, 0x80] {
            let value = Value::Binary { subtype, length: Whole::Fixed(9) };
            let Bson::Binary(binary) = drawn(value, 1) else { panic!("binary") };
            assert_eq!((u8::from(binary.subtype), binary.bytes.len()), (subtype, 9));
        }
        let Bson::Binary(uuid) = drawn(Value::Uuid, 1) else { panic!("binary") };
        let uuid = uuid.to_uuid().expect("a UUID").to_string();
        assert_eq!(uuid.as_bytes()[14], b'4', "{uuid}");
    }

    #[test]
    fn what_is_fixed_is_written_as_the_bson_library_does() {
        let values = [
            Bson::Null,
            Bson::MinKey,
            Bson::Undefined,
            Bson::Symbol("s".to_owned()),
            bson::bson!({ "a": [1, 2.5, "x"] }),
            Bson::JavaScriptCode("f()".to_owned()),
        ];
        for value in values {
            let fixed = Fixed::of(&value).expect("it can be held");
            assert_eq!(drawn(Value::Fixed(fixed), 0), value);
        }
    }
}
