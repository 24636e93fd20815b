//! What made-up documents look like.

mod blob;
mod orders;

pub use blob::BlobBytes;

use super::IndexKeys;
use super::fields::Fields;
use super::random::{SplitMix64, mix};

/// The look of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Shape {
    /// An order: 172 to 189 bytes, about 180, of eleven fields and ten types.
    Wide,
    /// What a change stream's sink stores: 71 bytes, always.
    Sink,
    /// An `_id` and nothing else: 22 bytes.
    Empty,
    /// What is read by its `_id`, a whole number that counts from 0: 53 bytes, 57 from 2^31 on.
    Points,
    /// Binary data that no compressor makes smaller, of these sizes.
    Blob(BlobBytes),
    /// An order with its items and what happened to it, documents in arrays: about 900 bytes.
    Orders,
}

/// The largest document of any shape, to make room before it is written.
const BYTES_MAX: usize = 190;

/// The second at which the documents' time begins: 2024-01-01T00:00:00Z.
pub(super) const EPOCH_SECONDS: u32 = 1_704_067_200;

const FIRST_NAMES: [&str; 16] = [
    "Anna", "Juan", "Omar", "Emma", "Inés", "Piotr", "Maria", "Kenji", "Priya", "Oscar", "Fatima",
    "Sergei", "Ingrid", "Nadine", "Thabo", "Yusuf",
];

const LAST_NAMES: [&str; 16] = [
    "Silva", "Olsen", "Rossi", "Novak", "Patel", "Okoro", "García", "Tanaka", "Müller", "Ivanov",
    "Dubois", "Kimura", "Santos", "Johnson", "Kowalik", "Mokoena",
];

pub(super) const CITIES: [&str; 16] = [
    "Oslo", "Lima", "Bonn", "Turin", "Kyoto", "Quito", "Porto", "Delhi", "Lagos", "Cairo", "Dakar",
    "Boston", "Warsaw", "Bergen", "Nairobi", "Kampala",
];

const STATUSES: [&str; 4] = ["placed", "paid", "packed", "shipped"];

/// The digits of a sink document's key, each five bits.
const DIGITS: [&str; 32] = [
    "0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "a", "b", "c", "d", "e", "f", "g", "h", "i",
    "j", "k", "l", "m", "n", "o", "p", "q", "r", "s", "t", "u", "v",
];

impl Shape {
    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Wide => "wide",
            Self::Sink => "sink",
            Self::Empty => "empty",
            Self::Points => "points",
            Self::Blob(_) => "blob",
            Self::Orders => "orders",
        }
    }

    /// The secondary indexes that suit the documents, the most usual first.
    pub fn indexes(self) -> &'static [IndexKeys] {
        match self {
            Self::Wide => &[
                &[("user", 1)],
                &[("at", -1)],
                &[("status", 1), ("at", -1)],
                &[("ship.city", 1)],
                &[("price", 1)],
                &[("name", 1)],
                &[("tags", 1)],
                &[("quantity", 1)],
            ],
            Self::Sink => &[&[("key", 1)], &[("bytes", 1)]],
            Self::Empty => &[],
            Self::Points => &[&[("x", 1)], &[("y", 1)]],
            Self::Blob(_) => &[&[("bytes", 1)]],
            Self::Orders => &[
                &[("customer.email", 1)],
                &[("items.sku", 1)],
                &[("at", -1)],
                &[("status", 1), ("at", -1)],
                &[("ship.city", 1), ("at", -1)],
                &[("history.by", 1)],
            ],
        }
    }

    /// Appends the numbered document of the collection whose choices start from `stream`.
    pub(super) fn append(self, stream: u64, number: u64, out: &mut Vec<u8>) {
        out.reserve(BYTES_MAX);
        let id = object_id(stream, number, EPOCH_SECONDS, PER_SECOND);
        let mut random = SplitMix64::nth(stream, number);
        Fields::document(out, |fields| {
            match self {
                Self::Points => return points(fields, number, &mut random),
                _ => fields.value(b"\x07_id\0", id),
            }
            match self {
                Self::Wide => wide(fields, number, &mut random),
                Self::Sink => sink(fields, &mut random),
                Self::Blob(sizes) => blob::append(fields, sizes, &mut random),
                Self::Orders => orders::append(fields, number, &mut random),
                Self::Empty | Self::Points => {}
            }
        });
    }
}

/// Documents that a collection's one process inserts in a second.
pub(super) const PER_SECOND: u32 = 1024;

/// An id as a driver makes it: seconds, five bytes of the process, a counter of three bytes. A
/// collection is one process that inserts as many documents in each second, fewer than the counter
/// can count, so ids are unique and ascend.
#[inline]
pub(super) fn object_id(stream: u64, number: u64, start: u32, per_second: u32) -> [u8; 12] {
    let seconds = u64::from(start) + number / u64::from(per_second);
    let process = mix(!stream);
    let mut id = [0; 12];
    id[..4].copy_from_slice(&seconds.to_be_bytes()[4..]);
    id[4..9].copy_from_slice(&process.to_be_bytes()[3..]);
    id[9..].copy_from_slice(&number.to_be_bytes()[5..]);
    id
}

fn wide(fields: &mut Fields<'_>, number: u64, random: &mut SplitMix64) {
    let user = i64::from(random.below(10_000_000));
    let (first, last) = (random.one_of(&FIRST_NAMES), random.one_of(&LAST_NAMES));
    let quantity = 1 + random.below(12);
    let price = f64::from(99 + random.below(50_000)) / 100.0;
    let milliseconds = milliseconds(number, random);
    fields.value(b"\x12user\0", user.to_le_bytes());
    fields.string(b"\x02name\0", [first, " ", last]);
    fields.string(b"\x02status\0", [random.one_of(&STATUSES)]);
    fields.value(b"\x10quantity\0", quantity.to_le_bytes());
    fields.value(b"\x01price\0", price.to_le_bytes());
    fields.value(b"\x08gift\0", [u8::from(random.below(8) == 0)]);
    fields.value(b"\x09at\0", milliseconds.to_le_bytes());
    fields.nested(b"\x03ship\0", |ship| {
        ship.string(b"\x02city\0", [random.one_of(&CITIES)]);
    });
    fields.nested(b"\x04tags\0", |tags| {
        tags.value(b"\x100\0", random.below(500).to_le_bytes());
        if random.below(2) == 0 {
            tags.value(b"\x101\0", random.below(500).to_le_bytes());
        }
    });
    fields.value(b"\x0Anote\0", []);
}

fn points(fields: &mut Fields<'_>, number: u64, random: &mut SplitMix64) {
    match i32::try_from(number) {
        Ok(id) => fields.value(b"\x10_id\0", id.to_le_bytes()),
        Err(_) => fields.value(b"\x12_id\0", number.to_le_bytes()),
    }
    let mut coordinate = || f64::from(random.below(2_000_001)) / 1000.0 - 1000.0;
    let (x, y) = (coordinate(), coordinate());
    fields.value(b"\x01x\0", x.to_le_bytes());
    fields.value(b"\x01y\0", y.to_le_bytes());
    let digits: [&str; 5] = std::array::from_fn(|_| random.one_of(&DIGITS));
    fields.string(b"\x02label\0", digits);
}

/// The millisecond at which the numbered document is made, 1024 of them a second, give or take one.
fn milliseconds(number: u64, random: &mut SplitMix64) -> u64 {
    u64::from(EPOCH_SECONDS) * 1000
        + (number.wrapping_mul(1000) >> 10)
        + u64::from(random.below(1000))
}

/// The head, the id and the other fields take 66 bytes, so a key of five letters makes 71.
fn sink(fields: &mut Fields<'_>, random: &mut SplitMix64) {
    let mut bits = random.draw();
    let digits: [&str; 5] = std::array::from_fn(|_| {
        bits >>= 5;
        DIGITS[(bits & 31) as usize]
    });
    fields.string(b"\x02key\0", digits);
    fields.value(b"\x10bytes\0", random.below(1 << 20).to_le_bytes());
    fields.nested(b"\x03headers\0", |_| {});
    fields.nested(b"\x03ts\0", |_| {});
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::Document;

    fn tree(shape: Shape, number: u64) -> Document {
        let mut out = Vec::new();
        shape.append(5, number, &mut out);
        Document::from_reader(&out[..]).expect("decodes")
    }

    #[test]
    fn a_wide_document_holds_ten_types() {
        let document = tree(Shape::Wide, 3);
        let kinds: Vec<_> = document
            .iter()
            .map(|(name, value)| format!("{name}:{:02x}", value.element_type() as u8))
            .collect();
        let expected = "_id:07 user:12 name:02 status:02 quantity:10 price:01 gift:08 at:09 \
                        ship:03 tags:04 note:0a";
        assert_eq!(kinds.join(" "), expected);
    }

    #[test]
    fn a_sink_document_has_the_fields_of_its_source() {
        let document = tree(Shape::Sink, 3);
        assert_eq!(document.keys().collect::<Vec<_>>(), ["_id", "key", "bytes", "headers", "ts"]);
        assert_eq!(document.get_str("key").expect("a string").len(), 5);
        assert!(document.get_i32("bytes").is_ok());
        assert_eq!(document.get("headers"), Some(&Document::new().into()));
        assert_eq!(document.get("ts"), Some(&Document::new().into()));
    }

    #[test]
    fn ids_ascend_beyond_the_range_of_their_counter() {
        let numbers = [0, 1, 1023, 1024, (1 << 24) - 1, 1 << 24, 1 << 30];
        let ids = numbers.map(|number| object_id(9, number, EPOCH_SECONDS, PER_SECOND));
        assert!(ids.is_sorted_by(|one, other| one < other), "{ids:?}");
    }

    #[test]
    fn a_point_is_found_by_its_number() {
        for (number, id) in [(0, bson::Bson::Int32(0)), (1 << 31, bson::Bson::Int64(1 << 31))] {
            let document = tree(Shape::Points, number);
            assert_eq!(document.get("_id"), Some(&id));
            assert!(document.get_f64("x").is_ok_and(|x| (-1000.0..=1000.0).contains(&x)));
            assert_eq!(document.keys().collect::<Vec<_>>(), ["_id", "x", "y", "label"]);
        }
    }

    #[test]
    fn every_index_is_on_a_field_of_the_document() {
        let blob = Shape::Blob(BlobBytes::default());
        for shape in [Shape::Wide, Shape::Sink, Shape::Empty, Shape::Points, Shape::Orders, blob] {
            let document = tree(shape, 1);
            for (field, _) in shape.indexes().iter().copied().flatten() {
                let top = field.split('.').next().expect("a name");
                assert!(document.contains_key(top), "{field}");
            }
        }
    }
}
