//! The `_id` of a document in a form that is the same for all that are equal to a server.
//!
//! A server compares numbers by their value, whatever their type, also inside documents and lists;
//! strings and symbols by their bytes. Collations are not looked at.

use crate::frame::{Field, Frame};

/// Types of values (<https://bsonspec.org/spec.html>).
const DOUBLE: u8 = 0x01;
const STRING: u8 = 0x02;
const DOCUMENT: u8 = 0x03;
const ARRAY: u8 = 0x04;
const SYMBOL: u8 = 0x0E;
const CODE_WITH_SCOPE: u8 = 0x0F;
const INT: u8 = 0x10;
const LONG: u8 = 0x12;
const DECIMAL: u8 = 0x13;

/// What a zero of a decimal's exponent stands for (IEEE 754-2008, decimal128).
const DECIMAL_BIAS: i32 = 6176;

/// The largest coefficient of a decimal, 34 digits.
const DECIMAL_MAX: u128 = 10_u128.pow(34) - 1;

/// Adds the form of a value of sound structure.
pub(super) fn add(field: &Field<'_>, out: &mut Vec<u8>) {
    let value = field.value;
    match field.kind {
        DOUBLE | INT | LONG | DECIMAL => number(field.kind, value).add(out),
        DOCUMENT | ARRAY => {
            out.push(field.kind);
            add_fields(value, out);
            out.push(0);
        }
        CODE_WITH_SCOPE => add_scoped(value, out),
        STRING | SYMBOL => add_bytes(STRING, value, out),
        kind => add_bytes(kind, value, out),
    }
}

fn add_bytes(kind: u8, value: &[u8], out: &mut Vec<u8>) {
    out.push(kind);
    out.extend_from_slice(&(value.len() as u64).to_le_bytes());
    out.extend_from_slice(value);
}

fn add_fields(document: &[u8], out: &mut Vec<u8>) {
    let Ok(frame) = Frame::new(document) else {
        return out.extend_from_slice(document);
    };
    for field in frame.fields().map_while(Result::ok) {
        out.push(1);
        out.extend_from_slice(field.name);
        out.push(0);
        add(&field, out);
    }
}

/// Code with scope is its own length, a string and a document.
fn add_scoped(value: &[u8], out: &mut Vec<u8>) {
    let inside = value.get(4..).unwrap_or_default();
    let code = inside.first_chunk::<4>().map_or(0, |length| u32::from_le_bytes(*length));
    let code = usize::try_from(code).unwrap_or(usize::MAX).saturating_add(4).min(inside.len());
    add_bytes(CODE_WITH_SCOPE, &inside[..code], out);
    add_fields(&inside[code..], out);
}

/// A number by its value alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Number {
    Nan,
    Infinite {
        is_negative: bool,
    },
    Zero,
    /// An odd number times a power of two.
    Dyadic {
        is_negative: bool,
        odd: u64,
        power: i32,
    },
    /// A number without a last zero, times a power of ten, that is no dyadic one of 64 bits.
    Decimal {
        is_negative: bool,
        digits: u128,
        power: i32,
    },
}

impl Number {
    fn add(self, out: &mut Vec<u8>) {
        out.push(DOUBLE);
        match self {
            Self::Nan => out.push(0),
            Self::Infinite { is_negative } => out.extend([1, u8::from(is_negative)]),
            Self::Zero => out.push(2),
            Self::Dyadic { is_negative, odd, power } => {
                out.extend([3, u8::from(is_negative)]);
                out.extend(odd.to_le_bytes());
                out.extend(power.to_le_bytes());
            }
            Self::Decimal { is_negative, digits, power } => {
                out.extend([4, u8::from(is_negative)]);
                out.extend(digits.to_le_bytes());
                out.extend(power.to_le_bytes());
            }
        }
    }

    fn dyadic(is_negative: bool, magnitude: u64, power: i32) -> Self {
        if magnitude == 0 {
            return Self::Zero;
        }
        let twos = magnitude.trailing_zeros();
        Self::Dyadic { is_negative, odd: magnitude >> twos, power: power + twos.cast_signed() }
    }

    fn whole(value: i64) -> Self {
        Self::dyadic(value < 0, value.unsigned_abs(), 0)
    }

    fn double(value: f64) -> Self {
        let bits = value.to_bits();
        let is_negative = bits >> 63 == 1;
        let exponent = i32::try_from(bits >> 52 & 0x7FF).unwrap_or_default();
        let fraction = bits & ((1 << 52) - 1);
        match exponent {
            0x7FF if fraction != 0 => Self::Nan,
            0x7FF => Self::Infinite { is_negative },
            0 => Self::dyadic(is_negative, fraction, -1074),
            _ => Self::dyadic(is_negative, fraction | 1 << 52, exponent - 1075),
        }
    }

    /// The value of a decimal in its binary encoding.
    fn decimal(bits: u128) -> Self {
        let is_negative = bits >> 127 == 1;
        match bits >> 122 & 0x1F {
            0x1F => return Self::Nan,
            0x1E => return Self::Infinite { is_negative },
            _ => {}
        }
        let is_large = bits >> 125 & 0x3 == 0x3;
        let exponent = i32::try_from(bits >> 113 & 0x3FFF).unwrap_or_default() - DECIMAL_BIAS;
        let digits = bits & ((1 << 113) - 1);
        if is_large || digits > DECIMAL_MAX || digits == 0 {
            // Encodings beyond 34 digits stand for zero.
            return Self::Zero;
        }
        let (mut digits, mut power) = (digits, exponent);
        while digits.is_multiple_of(10) {
            digits /= 10;
            power += 1;
        }
        match binary(digits, power) {
            Some((odd, twos)) => Self::dyadic(is_negative, odd, twos),
            None => Self::Decimal { is_negative, digits, power },
        }
    }
}

/// A number of digits times a power of ten as an odd number of 64 bits times a power of two, where
/// it is one.
fn binary(digits: u128, power: i32) -> Option<(u64, i32)> {
    let twos = digits.trailing_zeros().cast_signed();
    let mut odd = digits >> digits.trailing_zeros();
    for _ in 0..power.unsigned_abs() {
        if power > 0 {
            odd = odd.checked_mul(5).filter(|odd| *odd <= u128::from(u64::MAX))?;
        } else if odd.is_multiple_of(5) {
            odd /= 5;
        } else {
            return None;
        }
    }
    Some((u64::try_from(odd).ok()?, twos + power))
}

fn number(kind: u8, value: &[u8]) -> Number {
    match (kind, value.len()) {
        (INT, 4) => {
            let value = value.first_chunk().copied().unwrap_or_default();
            Number::whole(i32::from_le_bytes(value).into())
        }
        (LONG, 8) => {
            Number::whole(i64::from_le_bytes(value.first_chunk().copied().unwrap_or_default()))
        }
        (DOUBLE, 8) => {
            Number::double(f64::from_le_bytes(value.first_chunk().copied().unwrap_or_default()))
        }
        _ => Number::decimal(u128::from_le_bytes(value.first_chunk().copied().unwrap_or_default())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::{Bson, Decimal128, doc};

    fn form(value: impl Into<Bson>) -> Vec<u8> {
        let bytes = doc! { "_id": value.into() }.to_vec().expect("encodes");
        let mut out = Vec::new();
        add(&Frame::new(&bytes).expect("a frame").id().expect("an _id"), &mut out);
        out
    }

    fn decimal(text: &str) -> Bson {
        Bson::Decimal128(text.parse::<Decimal128>().expect("a decimal"))
    }

    #[test]
    fn numbers_are_equal_by_their_value() {
        for equal in [
            vec![Bson::Int32(1), Bson::Int64(1), Bson::Double(1.0), decimal("1.000"), decimal("1")],
            vec![Bson::Int32(0), Bson::Double(-0.0), decimal("0E+3"), decimal("-0")],
            vec![Bson::Double(0.5), decimal("0.5"), decimal("0.50")],
            vec![Bson::Int64(i64::MIN), Bson::Double(-9_223_372_036_854_775_808.0)],
            vec![Bson::Int32(-1200), decimal("-12E2"), Bson::Double(-1200.0)],
            vec![Bson::Double(1e22), decimal("1E22")],
            vec![Bson::Double(f64::NAN), decimal("NaN")],
            vec![Bson::Double(f64::NEG_INFINITY), decimal("-Infinity")],
        ] {
            assert!(equal.windows(2).all(|two| form(two[0].clone()) == form(two[1].clone())));
        }
        for (one, other) in [
            (Bson::Double(0.1), decimal("0.1")),
            (Bson::Int32(1), Bson::Int32(-1)),
            (Bson::Int64(9_007_199_254_740_993), Bson::Double(9_007_199_254_740_992.0)),
            (decimal("1E40"), decimal("1E41")),
            (decimal("0.1"), decimal("-0.1")),
            (Bson::Int32(1), Bson::Boolean(true)),
            (Bson::String("1".into()), Bson::Int32(1)),
            (Bson::Null, Bson::Undefined),
        ] {
            assert_ne!(form(one.clone()), form(other.clone()), "{one} {other}");
        }
    }

    #[test]
    fn what_is_nested_is_compared_by_value() {
        assert_eq!(
            form(doc! { "a": [1_i32, { "b": 2.0 }] }),
            form(doc! { "a": [1_i64, { "b": 2 }] })
        );
        assert_ne!(form(doc! { "a": 1, "b": 2 }), form(doc! { "b": 2, "a": 1 }));
        assert_ne!(form(doc! { "a": { "b": 1 } }), form(doc! { "a": { }, "b": 1 }));
        assert_eq!(form("x"), form(Bson::Symbol("x".into())));
        assert_ne!(form("x"), form(Bson::JavaScriptCode("x".into())));
    }
}
