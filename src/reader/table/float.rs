//! Reads a cell as a double, with the spellings that Go takes and the standard library does not.

/// Bits of the significand of a double, the one that is not stored among them.
const SIGNIFICAND_BITS: i64 = 53;

/// The exponents of the smallest and of the greatest normal double.
const EXPONENT_MIN: i64 = -1022;
const EXPONENT_MAX: i64 = 1023;

/// A number that a double holds; one that is too large for it is none, as in Go
/// (<https://pkg.go.dev/strconv#ParseFloat>).
pub(super) fn double(text: &str) -> Option<f64> {
    let (sign, number) = match text.as_bytes().first() {
        Some(b'-') => (-1.0, &text[1..]),
        Some(b'+') => (1.0, &text[1..]),
        _ => (1.0, text),
    };
    if let Some(digits) = number.strip_prefix("0x").or_else(|| number.strip_prefix("0X")) {
        return hexadecimal(&without_underscores(digits, true)?).map(|value| sign * value);
    }
    let plain = without_underscores(text, false)?;
    let value = plain.parse::<f64>().ok()?;
    let has_digits = text.bytes().any(|byte| byte.is_ascii_digit());
    let is_signed_nothing = value.is_nan() && text.starts_with(['+', '-']);
    let is_none = is_signed_nothing || (value.is_infinite() && has_digits);
    (!is_none).then_some(value)
}

/// The text without the underscores between its digits; nothing where one stands elsewhere. What
/// stands before the text may count as a digit.
fn without_underscores(text: &str, follows_digit: bool) -> Option<std::borrow::Cow<'_, str>> {
    if !text.contains('_') {
        return Some(text.into());
    }
    let bytes = text.as_bytes();
    let is_digit = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_hexdigit);
    let are_between = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'_').all(|(at, _)| {
        let before = if at == 0 { follows_digit } else { is_digit(bytes.get(at - 1)) };
        before && is_digit(bytes.get(at + 1))
    });
    are_between.then(|| text.replace('_', "").into())
}

/// Hexadecimal digits with a binary exponent, as in `1.8p1`.
fn hexadecimal(text: &str) -> Option<f64> {
    let (digits, exponent) = text.split_once(['p', 'P'])?;
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let is_number = !exponent.is_empty()
        && exponent.trim_start_matches(['+', '-']).bytes().all(|byte| byte.is_ascii_digit());
    let mut exponent = match exponent.parse::<i32>() {
        Ok(exponent) => i64::from(exponent),
        // Beyond every double, or as good as zero.
        Err(_) if is_number && exponent.starts_with('-') => i64::from(i32::MIN),
        Err(_) if is_number => i64::from(i32::MAX),
        Err(_) => return None,
    };
    let (mut significand, mut is_inexact) = (0_u64, false);
    for (digit, is_fraction) in
        whole.chars().map(|digit| (digit, false)).chain(fraction.chars().map(|digit| (digit, true)))
    {
        let digit = u64::from(digit.to_digit(16)?);
        if significand >> 60 == 0 {
            significand = significand << 4 | digit;
            exponent -= if is_fraction { 4 } else { 0 };
        } else {
            is_inexact |= digit != 0;
            exponent += if is_fraction { 0 } else { 4 };
        }
    }
    scaled(significand | u64::from(is_inexact), exponent)
}

/// The double nearest to `significand * 2^exponent`, the even one of two; none if it is too large.
fn scaled(significand: u64, exponent: i64) -> Option<f64> {
    if significand == 0 {
        return Some(0.0);
    }
    let shift = significand.leading_zeros();
    let significand = significand << shift;
    // Of the highest bit.
    let exponent = exponent - i64::from(shift) + 63;
    if exponent > EXPONENT_MAX {
        return None;
    }
    let kept_bits = SIGNIFICAND_BITS - (EXPONENT_MIN - exponent).max(0);
    if kept_bits < 0 {
        return Some(0.0);
    }
    let dropped = u32::try_from(64 - kept_bits).ok()?;
    let kept = significand.checked_shr(dropped).unwrap_or(0);
    let rest = u128::from(significand) - (u128::from(kept) << dropped);
    let half = 1_u128 << (dropped - 1);
    let rounded = kept + u64::from(rest > half || (rest == half && kept & 1 == 1));
    // A carry out of the significand belongs to the exponent, which stands right above it.
    let hidden = 1_u64 << (SIGNIFICAND_BITS - 1);
    let bits = match u64::try_from(exponent - EXPONENT_MIN) {
        Ok(above) => (above << (SIGNIFICAND_BITS - 1)) + rounded,
        Err(_) => rounded,
    };
    debug_assert!(exponent < EXPONENT_MIN || rounded >= hidden);
    let value = f64::from_bits(bits);
    value.is_finite().then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_that_go_reads() {
        for (text, expected) in [
            ("1_000", 1000.0),
            ("10_0.5", 100.5),
            ("0x1p4", 16.0),
            ("-0x1P-2", -0.25),
            ("0X1.8p1", 3.0),
            ("0x_1p0", 1.0),
            ("0x1p-1074", f64::from_bits(1)),
            ("0x1p-1022", f64::MIN_POSITIVE),
            ("0x1.fffffffffffffp1023", f64::MAX),
            ("0x1.00000000000008p0", 1.0),
            ("0x1.000000000000080001p0", 1.0 + f64::EPSILON),
            ("0x1.fffffffffffff8p0", 2.0),
            ("0x1p-1076", 0.0),
            ("0x0p5", 0.0),
            ("0x100000000000000000p-68", 1.0),
            (".5", 0.5),
        ] {
            assert_eq!(double(text), Some(expected), "{text}");
        }
        for text in ["0x10", "0x", "0xp1", "1__0", "_1", "1_", "1_.5", "0x1p1024", "0x1px", "1e400"]
        {
            assert_eq!(double(text), None, "{text}");
        }
    }
}
