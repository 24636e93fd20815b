//! Cells of columns, written into a document row by row.
//!
//! Types of Arrow are many and those of BSON few: a column is cast to the nearest of a few plain
//! ones as a whole, so that a cell is written without looking at its type's finer points. What a
//! type becomes is in the table of `docs/import.md`.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Decimal128Type, Decimal256Type, Float64Type, Int32Type, Int64Type, TimestampMillisecondType,
    UInt64Type,
};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Decimal128Array, Decimal256Array, FixedSizeBinaryArray,
    Float64Array, Int32Array, Int64Array, LargeBinaryArray, LargeStringArray,
    TimestampMillisecondArray, UInt64Array,
};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::{DataType, Field, Fields, TimeUnit};

use crate::dump::texts::table::Blanks;
use crate::frame::ElementKey;
use crate::reader::draft::{Draft, TypeAt, kind};

/// The subtypes of binary data: <https://bsonspec.org/spec.html>.
const GENERIC: u8 = 0;
const UUID: u8 = 4;

/// The exponent of the smallest decimal, which is stored as 0, and how far its bits are shifted.
const DECIMAL_BIAS: i32 = 6176;
const DECIMAL_EXPONENT_SHIFT: u32 = 113;

/// Ten to the number of digits that a decimal holds.
const DECIMAL_END: u128 = 10_u128.pow(34);

/// A column, or what is inside of one.
#[derive(Debug)]
pub(super) struct Cells {
    nulls: Option<NullBuffer>,
    values: Values,
}

#[derive(Debug)]
enum Values {
    Null,
    Boolean(BooleanArray),
    Int32(Int32Array),
    Int64(Int64Array),
    Unsigned(UInt64Array),
    Double(Float64Array),
    Date(TimestampMillisecondArray),
    Text(LargeStringArray),
    Binary(LargeBinaryArray, u8),
    ObjectId(FixedSizeBinaryArray),
    StoredDecimal(FixedSizeBinaryArray),
    Decimal(Decimal128Array),
    LongDecimal(Decimal256Array),
    List(Ranges, Box<Cells>),
    Document(Vec<(String, Cells)>),
    Map(OffsetBuffer<i32>, LargeStringArray, Box<Cells>),
}

/// Which items belong to a row.
#[derive(Debug)]
enum Ranges {
    Small(OffsetBuffer<i32>),
    Large(OffsetBuffer<i64>),
    Fixed(usize),
}

impl Ranges {
    fn of(&self, row: usize) -> std::ops::Range<usize> {
        match self {
            Self::Small(ends) => index(ends[row].into())..index(ends[row + 1].into()),
            Self::Large(ends) => index(ends[row])..index(ends[row + 1]),
            Self::Fixed(length) => row * length..(row + 1) * length,
        }
    }
}

/// An offset that the library has checked not to be negative.
fn index(offset: i64) -> usize {
    usize::try_from(offset).unwrap_or(0)
}

impl Cells {
    /// Makes a column ready to be written.
    ///
    /// # Errors
    ///
    /// A sentence, where its type has no counterpart.
    pub(super) fn of(field: &Field, array: &ArrayRef) -> Result<Self, String> {
        let values = match extension(field) {
            Some("pymongoarrow.objectid") if width(array) == Some(12) => {
                Values::ObjectId(array.as_fixed_size_binary().clone())
            }
            Some("pymongoarrow.decimal128") if width(array) == Some(16) => {
                Values::StoredDecimal(array.as_fixed_size_binary().clone())
            }
            Some("arrow.uuid") if width(array) == Some(16) => {
                Values::Binary(to_plain(array, &DataType::LargeBinary)?.as_binary().clone(), UUID)
            }
            _ => Values::of(array)?,
        };
        Ok(Self { nulls: array.logical_nulls(), values })
    }

    /// Whether there is no value in this row.
    pub(super) fn is_null(&self, row: usize) -> bool {
        matches!(self.values, Values::Null)
            || self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row))
    }

    /// Writes the value of a row, after its name.
    ///
    /// # Errors
    ///
    /// A sentence, where BSON cannot hold it.
    pub(super) fn write(&self, row: usize, at: TypeAt, draft: &mut Draft) -> Result<(), String> {
        if self.is_null(row) {
            draft.set(at, kind::NULL);
            return Ok(());
        }
        self.values.write(row, at, draft)
    }
}

impl Values {
    fn of(array: &ArrayRef) -> Result<Self, String> {
        let plain = |to| to_plain(array, &to);
        Ok(match array.data_type() {
            DataType::Null => Self::Null,
            DataType::Boolean => Self::Boolean(array.as_boolean().clone()),
            DataType::Int8
            | DataType::Int16
            | DataType::Int32
            | DataType::UInt8
            | DataType::UInt16 => {
                Self::Int32(plain(DataType::Int32)?.as_primitive::<Int32Type>().clone())
            }
            DataType::Int64 | DataType::UInt32 => {
                Self::Int64(plain(DataType::Int64)?.as_primitive::<Int64Type>().clone())
            }
            DataType::UInt64 => Self::Unsigned(array.as_primitive::<UInt64Type>().clone()),
            DataType::Float16 | DataType::Float32 | DataType::Float64 => {
                Self::Double(plain(DataType::Float64)?.as_primitive::<Float64Type>().clone())
            }
            DataType::Timestamp(_, zone) => {
                let to = DataType::Timestamp(TimeUnit::Millisecond, zone.clone());
                Self::Date(plain(to)?.as_primitive::<TimestampMillisecondType>().clone())
            }
            DataType::Date32 | DataType::Date64 => {
                let to = DataType::Timestamp(TimeUnit::Millisecond, None);
                Self::Date(plain(to)?.as_primitive::<TimestampMillisecondType>().clone())
            }
            DataType::Binary
            | DataType::LargeBinary
            | DataType::BinaryView
            | DataType::FixedSizeBinary(_) => {
                Self::Binary(plain(DataType::LargeBinary)?.as_binary().clone(), GENERIC)
            }
            DataType::Decimal32(_, scale) | DataType::Decimal64(_, scale) => {
                let to = DataType::Decimal128(38, *scale);
                Self::Decimal(plain(to)?.as_primitive::<Decimal128Type>().clone())
            }
            DataType::Decimal128(..) => {
                Self::Decimal(array.as_primitive::<Decimal128Type>().clone())
            }
            DataType::Decimal256(..) => {
                Self::LongDecimal(array.as_primitive::<Decimal256Type>().clone())
            }
            DataType::Utf8
            | DataType::LargeUtf8
            | DataType::Utf8View
            | DataType::Time32(_)
            | DataType::Time64(_)
            | DataType::Duration(_)
            | DataType::Interval(_) => Self::Text(plain(DataType::LargeUtf8)?.as_string().clone()),
            DataType::Dictionary(_, values) => return Self::of(&plain((**values).clone())?),
            DataType::RunEndEncoded(_, values) => {
                return Self::of(&plain(values.data_type().clone())?);
            }
            _ => return Self::nested(array),
        })
    }

    fn nested(array: &ArrayRef) -> Result<Self, String> {
        Ok(match array.data_type() {
            DataType::List(item) => {
                let list = array.as_list::<i32>();
                let items = Cells::of(item, list.values())?;
                Self::List(Ranges::Small(list.offsets().clone()), Box::new(items))
            }
            DataType::LargeList(item) => {
                let list = array.as_list::<i64>();
                let items = Cells::of(item, list.values())?;
                Self::List(Ranges::Large(list.offsets().clone()), Box::new(items))
            }
            DataType::ListView(item) | DataType::LargeListView(item) => {
                Self::nested(&to_plain(array, &DataType::LargeList(Arc::clone(item)))?)?
            }
            DataType::FixedSizeList(item, length) => {
                let list = array.as_fixed_size_list();
                let items = Cells::of(item, list.values())?;
                Self::List(Ranges::Fixed(index((*length).into())), Box::new(items))
            }
            DataType::Struct(fields) => {
                Self::Document(columns(fields, array.as_struct().columns())?)
            }
            DataType::Map(entries, _) => Self::map(entries, array)?,
            other => return Err(format!("the type {other} has no counterpart in BSON")),
        })
    }

    /// A map whose keys are text is a document.
    fn map(entries: &Field, array: &ArrayRef) -> Result<Self, String> {
        let map = array.as_map();
        let ends = map.offsets().clone();
        let is_text = matches!(
            map.keys().data_type(),
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Dictionary(..)
        );
        if is_text {
            let keys = to_plain(map.keys(), &DataType::LargeUtf8)?.as_string().clone();
            let DataType::Struct(fields) = entries.data_type() else {
                return Err("a map without keys and values".to_owned());
            };
            let values = Cells::of(&fields[1], map.values())?;
            return Ok(Self::Map(ends, keys, Box::new(values)));
        }
        let entries: ArrayRef = Arc::new(map.entries().clone());
        let values = Self::of(&entries)?;
        Ok(Self::List(Ranges::Small(ends), Box::new(Cells { nulls: None, values })))
    }

    fn write(&self, row: usize, at: TypeAt, draft: &mut Draft) -> Result<(), String> {
        match self {
            Self::Null => draft.set(at, kind::NULL),
            Self::Boolean(cells) => draft.value(at, kind::BOOLEAN, &[cells.value(row).into()]),
            Self::Int32(cells) => draft.value(at, kind::INT32, &cells.value(row).to_le_bytes()),
            Self::Int64(cells) => draft.value(at, kind::INT64, &cells.value(row).to_le_bytes()),
            Self::Unsigned(cells) => match i64::try_from(cells.value(row)) {
                Ok(value) => draft.value(at, kind::INT64, &value.to_le_bytes()),
                Err(_) => draft.value(at, kind::DECIMAL, &decimal(cells.value(row).into(), 0)?),
            },
            Self::Double(cells) => draft.value(at, kind::DOUBLE, &cells.value(row).to_le_bytes()),
            Self::Date(cells) => draft.value(at, kind::DATE, &cells.value(row).to_le_bytes()),
            Self::Text(cells) => draft.text(at, cells.value(row).as_bytes()),
            Self::Binary(cells, subtype) => draft.binary(at, *subtype, cells.value(row)),
            Self::ObjectId(cells) => draft.value(at, kind::OBJECT_ID, cells.value(row)),
            Self::StoredDecimal(cells) => draft.value(at, kind::DECIMAL, cells.value(row)),
            Self::Decimal(cells) => {
                draft.value(at, kind::DECIMAL, &decimal(cells.value(row), cells.scale())?);
            }
            Self::LongDecimal(cells) => {
                let digits =
                    cells.value(row).to_i128().ok_or_else(|| too_long(cells.value(row)))?;
                draft.value(at, kind::DECIMAL, &decimal(digits, cells.scale())?);
            }
            Self::List(ranges, items) => return write_list(ranges.of(row), items, at, draft),
            Self::Document(columns) => {
                draft.set(at, kind::DOCUMENT);
                return write_row(columns, row, None, draft);
            }
            Self::Map(ends, keys, values) => {
                draft.set(at, kind::DOCUMENT);
                let level = draft.level();
                for item in index(ends[row].into())..index(ends[row + 1].into()) {
                    let key = keys.value(item);
                    check_name(key)?;
                    let at = draft.name(key.as_bytes());
                    values.write(item, at, draft)?;
                }
                draft.end(level);
            }
        }
        Ok(())
    }
}

/// Makes the columns of a document ready.
///
/// # Errors
///
/// A sentence with the column's name, where one has no counterpart.
pub(super) fn columns(
    fields: &Fields,
    arrays: &[ArrayRef],
) -> Result<Vec<(String, Cells)>, String> {
    let column = |(field, array): (&Arc<Field>, &ArrayRef)| {
        let name = field.name();
        check_name(name)?;
        let cells = Cells::of(field, array).map_err(|error| format!("column {name:?}: {error}"))?;
        Ok((name.clone(), cells))
    };
    fields.iter().zip(arrays).map(column).collect()
}

/// Writes a document of these columns' cells in a row, into `outer` where it was begun already.
///
/// # Errors
///
/// A sentence, where BSON cannot hold a value.
pub(super) fn write_row(
    columns: &[(String, Cells)],
    row: usize,
    blanks: Option<Blanks>,
    draft: &mut Draft,
) -> Result<(), String> {
    let level = if blanks.is_some() { draft.begin() } else { draft.level() };
    for (name, cells) in columns {
        if blanks == Some(Blanks::Ignored) && cells.is_null(row) {
            continue;
        }
        let at = draft.name(name.as_bytes());
        if blanks.is_some() && name == "_id" {
            draft.note_id();
        }
        cells.write(row, at, draft).map_err(|error| format!("column {name:?}: {error}"))?;
    }
    draft.end(level);
    Ok(())
}

fn write_list(
    rows: std::ops::Range<usize>,
    items: &Cells,
    at: TypeAt,
    draft: &mut Draft,
) -> Result<(), String> {
    draft.set(at, kind::ARRAY);
    let level = draft.level();
    let mut key = ElementKey::default();
    for row in rows {
        let at = draft.name(key.text());
        items.write(row, at, draft)?;
        key.increment();
    }
    draft.end(level);
    Ok(())
}

/// The name of an extension type: <https://arrow.apache.org/docs/format/CanonicalExtensions.html>.
fn extension(field: &Field) -> Option<&str> {
    field.metadata().get("ARROW:extension:name").map(String::as_str)
}

fn width(array: &ArrayRef) -> Option<i32> {
    match array.data_type() {
        DataType::FixedSizeBinary(width) => Some(*width),
        _ => None,
    }
}

fn to_plain(array: &ArrayRef, to: &DataType) -> Result<ArrayRef, String> {
    // A value that does not fit is an error, not a null.
    let options = CastOptions { safe: false, ..CastOptions::default() };
    cast_with_options(array, to, &options)
        .map_err(|error| format!("{} cannot be turned into {to}: {error}", array.data_type()))
}

fn check_name(name: &str) -> Result<(), String> {
    if name.contains('\0') {
        return Err(format!("the name {name:?} holds a zero character"));
    }
    Ok(())
}

fn too_long(digits: impl std::fmt::Display) -> String {
    format!("the decimal {digits} has more than the 34 digits that BSON holds")
}

/// A decimal, in the binary form that takes its digits as a whole number:
/// <https://github.com/mongodb/specifications/blob/master/source/bson-decimal128/decimal128.md>.
fn decimal(digits: i128, scale: i8) -> Result<[u8; 16], String> {
    let size = digits.unsigned_abs();
    if size >= DECIMAL_END {
        return Err(too_long(digits));
    }
    let exponent = u128::from((DECIMAL_BIAS - i32::from(scale)).unsigned_abs());
    let sign = u128::from(digits < 0) << 127;
    Ok((sign | (exponent << DECIMAL_EXPONENT_SHIFT) | size).to_le_bytes())
}
