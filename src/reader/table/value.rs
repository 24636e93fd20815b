//! Reads a cell as a value of the type of its column.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bson::spec::BinarySubtype;
use bson::{Binary, Bson};

use crate::dump::extended_json::decimal;
use crate::reader::draft::{Draft, TypeAt, kind};
use crate::reader::table::float::double;
use crate::reader::table::moment::Layout;

/// Reads the cells of a column.
#[derive(Clone, Debug)]
pub(super) enum Parser {
    /// As numbers where they look like it, else as texts.
    Auto,
    /// As bytes.
    Binary(Encoding),
    Boolean,
    /// As moments that are written this way.
    Date(Layout),
    Decimal,
    Double,
    Int32,
    Int64,
    String,
}

/// How bytes are written.
#[derive(Clone, Copy, Debug)]
pub(super) enum Encoding {
    Base32,
    Base64,
    Hex,
}

impl Parser {
    /// The type of this name, with what stands in its parentheses.
    pub(super) fn new(name: &str, argument: &str) -> Result<Self, String> {
        let argument = unescaped(argument);
        let parser = match name {
            "auto" => Self::Auto,
            "boolean" => Self::Boolean,
            "decimal" => Self::Decimal,
            "double" => Self::Double,
            "int32" => Self::Int32,
            "int64" => Self::Int64,
            "string" => Self::String,
            "binary" => {
                return Ok(Self::Binary(match argument.as_str() {
                    "base32" => Encoding::Base32,
                    "base64" => Encoding::Base64,
                    "hex" => Encoding::Hex,
                    _ => return Err("bytes are base32, base64 or hex".to_owned()),
                }));
            }
            "date" | "date_go" => return Ok(Self::Date(Layout::of_go(&argument))),
            "date_ms" => return Ok(Self::Date(Layout::of_ms(&argument))),
            "date_oracle" => return Ok(Self::Date(Layout::of_oracle(&argument))),
            _ => return Err(format!("there is no type {name:?}")),
        };
        match argument.as_str() {
            "" => Ok(parser),
            _ => Err(format!("the type {name} takes nothing in its parentheses")),
        }
    }

    /// What its values are called.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Auto => "value",
            Self::Binary(Encoding::Base32) => "base32",
            Self::Binary(Encoding::Base64) => "base64",
            Self::Binary(Encoding::Hex) => "hexadecimal",
            Self::Boolean => "boolean",
            Self::Date(_) => "date",
            Self::Decimal => "decimal",
            Self::Double => "double",
            Self::Int32 => "int32",
            Self::Int64 => "int64",
            Self::String => "string",
        }
    }

    /// Writes a cell; whether it is one of this type.
    pub(super) fn write(&self, text: &str, at: TypeAt, draft: &mut Draft) -> bool {
        let written = match self {
            Self::Auto => {
                guess(text, at, draft);
                Some(())
            }
            Self::String => {
                draft.text(at, text.as_bytes());
                Some(())
            }
            Self::Boolean => {
                boolean(text).map(|value| draft.value(at, kind::BOOLEAN, &[value.into()]))
            }
            Self::Double => {
                double(text).map(|value| draft.value(at, kind::DOUBLE, &value.to_le_bytes()))
            }
            Self::Int32 => text
                .parse::<i32>()
                .ok()
                .map(|value| draft.value(at, kind::INT32, &value.to_le_bytes())),
            Self::Int64 => text
                .parse::<i64>()
                .ok()
                .map(|value| draft.value(at, kind::INT64, &value.to_le_bytes())),
            Self::Decimal => {
                decimal(text).map(|value| draft.value(at, kind::DECIMAL, &value.bytes()))
            }
            Self::Date(layout) => {
                layout.millis(text).map(|value| draft.value(at, kind::DATE, &value.to_le_bytes()))
            }
            Self::Binary(encoding) => encoding.bytes(text).and_then(|bytes| {
                let binary = Binary { subtype: BinarySubtype::Generic, bytes };
                draft.any(at, Bson::Binary(binary)).ok()
            }),
        };
        written.is_some()
    }
}

/// Writes what a cell looks like.
pub(super) fn guess(text: &str, at: TypeAt, draft: &mut Draft) {
    let may_be_number = matches!(
        text.as_bytes().first(),
        Some(b'0'..=b'9' | b'+' | b'-' | b'.' | b'i' | b'I' | b'n' | b'N')
    );
    if may_be_number {
        if let Ok(value) = text.parse::<i64>() {
            return draft.integer(at, value);
        }
        if let Some(value) = double(text) {
            return draft.value(at, kind::DOUBLE, &value.to_le_bytes());
        }
    }
    draft.text(at, text.as_bytes());
}

fn boolean(text: &str) -> Option<bool> {
    match text {
        "1" => Some(true),
        "0" => Some(false),
        _ if text.eq_ignore_ascii_case("true") => Some(true),
        _ if text.eq_ignore_ascii_case("false") => Some(false),
        _ => None,
    }
}

impl Encoding {
    fn bytes(self, text: &str) -> Option<Vec<u8>> {
        match self {
            Self::Base64 => STANDARD.decode(text).ok(),
            Self::Hex => hex(text),
            Self::Base32 => base32(text),
        }
    }
}

fn hex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let bytes = pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?));
    if rest.is_empty() { bytes.collect() } else { None }
}

/// Base 32 with its padding (<https://www.rfc-editor.org/rfc/rfc4648#section-6>).
fn base32(text: &str) -> Option<Vec<u8>> {
    let digits = text.trim_end_matches('=');
    let padding = text.len() - digits.len();
    if !text.len().is_multiple_of(8) || !matches!(padding, 0 | 1 | 3 | 4 | 6) {
        return None;
    }
    let (mut bytes, mut bits, mut held) = (Vec::with_capacity(digits.len() * 5 / 8), 0_u32, 0_u32);
    for byte in digits.bytes() {
        let digit = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'2'..=b'7' => byte - b'2' + 26,
            _ => return None,
        };
        held = (held << 5 | u32::from(digit)) & 0xFFF;
        bits += 5;
        if bits >= 8 {
            bits -= 8;
            bytes.push(u8::try_from(held >> bits & 0xFF).ok()?);
        }
    }
    Some(bytes)
}

/// What a backslash stands before is meant as it is; a backslash alone is nothing.
fn unescaped(argument: &str) -> String {
    let mut text = String::with_capacity(argument.len());
    let mut characters = argument.chars().peekable();
    while let Some(character) = characters.next() {
        if character != '\\' {
            text.push(character);
        } else if let Some(next) = characters.next_if(|next| matches!(next, '\\' | '(' | ')')) {
            text.push(next);
        }
    }
    text
}
