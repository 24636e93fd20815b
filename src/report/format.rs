//! Numbers and names as people read them; a kilobyte is 1000 bytes, as for disks and networks.

use std::time::Duration;

const SECONDS_PER_MINUTE: u64 = 60;
const SECONDS_PER_HOUR: u64 = 60 * SECONDS_PER_MINUTE;
const SECONDS_PER_DAY: u64 = 24 * SECONDS_PER_HOUR;

/// A number in full: `1,234,567`.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number with its noun: `1 document`, `1,234 documents`.
pub fn counted(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(number), if number == 1 { one } else { many })
}

/// A rate in full: `25,718`.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "rates are positive")]
pub fn whole(rate: f64) -> String {
    count(rate.round() as u64)
}

/// A number of bytes in three digits: `12.3 MB`.
#[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
pub fn bytes(number: u64) -> String {
    if number < 1000 {
        return format!("{number} B");
    }
    let (digits, unit) = scaled(number as f64);
    format!("{digits} {unit}B")
}

/// A rate in three digits, without its noun: `412 k/s`.
pub fn rate(rate: f64) -> String {
    let (digits, unit) = scaled(rate);
    if unit.is_empty() { format!("{}/s", whole(rate)) } else { format!("{digits} {unit}/s") }
}

/// A rate of bytes in three digits: `41.2 MB/s`.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "rates are positive")]
pub fn byte_rate(rate: f64) -> String {
    format!("{}/s", bytes(rate.round() as u64))
}

/// Three digits and the unit's prefix.
fn scaled(mut number: f64) -> (String, &'static str) {
    let mut prefixes = ["", "k", "M", "G", "T", "P", "E"].iter();
    let mut prefix = prefixes.next().copied().unwrap_or_default();
    // What would be rounded to 1000 belongs to the next unit.
    while number >= 999.5 {
        let Some(next) = prefixes.next() else { break };
        prefix = next;
        number /= 1000.0;
    }
    let decimals = match number {
        number if number < 9.995 => 2,
        number if number < 99.95 => 1,
        _ => 0,
    };
    (format!("{number:.decimals$}"), prefix)
}

/// A stretch of time in its two largest units: `340 ms`, `4.2 s`, `1 m 02 s`, `2 h 03 m`.
pub fn duration(time: Duration) -> String {
    let millis = time.as_millis();
    if millis == 0 {
        return "0 s".to_owned();
    }
    if millis < 1000 {
        return format!("{millis} ms");
    }
    if millis < 9950 {
        return format!("{:.1} s", time.as_secs_f64());
    }
    let seconds = time.saturating_add(Duration::from_millis(500)).as_secs();
    let pair = |large: u64, small: u64| (seconds / large, seconds % large / small);
    match seconds {
        seconds if seconds < SECONDS_PER_MINUTE => format!("{seconds} s"),
        seconds if seconds < SECONDS_PER_HOUR => {
            let (minutes, seconds) = pair(SECONDS_PER_MINUTE, 1);
            format!("{minutes} m {seconds:02} s")
        }
        seconds if seconds < SECONDS_PER_DAY => {
            let (hours, minutes) = pair(SECONDS_PER_HOUR, SECONDS_PER_MINUTE);
            format!("{hours} h {minutes:02} m")
        }
        _ => {
            let (days, hours) = pair(SECONDS_PER_DAY, SECONDS_PER_HOUR);
            format!("{days} d {hours:02} h")
        }
    }
}

/// A latency in three digits: `420 µs`, `12.3 ms`, `1.20 s`.
pub fn latency(seconds: f64) -> String {
    // What would be rounded to 1000 belongs to the next unit.
    let (value, unit) = match seconds {
        0.0 => return "0 ms".to_owned(),
        seconds if seconds < 0.000_999_5 => return format!("{:.0} µs", seconds * 1e6),
        seconds if seconds < 0.999_5 => (seconds * 1000.0, "ms"),
        seconds => (seconds, "s"),
    };
    let decimals = match value {
        value if value < 9.995 => 2,
        value if value < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.decimals$} {unit}")
}

/// A stretch of time that is awaited, in whole seconds.
pub fn remaining(time: Duration) -> String {
    if time < Duration::from_millis(9950) {
        return format!("{} s", time.as_millis().div_ceil(1000));
    }
    duration(time)
}

/// A share in whole percent, rounded down so that 100 % is never said too early.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 100")]
pub fn percent(share: f64) -> String {
    // A share such as 0.29 is stored a little below what it means.
    format!("{} %", (share.clamp(0.0, 1.0) * 100.0 + 1e-9).floor() as u64)
}

/// Text of any origin on one line, so that it cannot steer a terminal.
pub fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_control() {
            line.extend(character.escape_default());
        } else {
            line.push(character);
        }
    }
    line
}

/// The columns that a text takes on a terminal.
pub fn columns(text: &str) -> usize {
    text.chars().map(columns_of).sum()
}

/// The columns of one character: two for East Asian wide ones and pictographs, none for those that
/// combine with the one before (Unicode annex 11, in coarse ranges).
fn columns_of(character: char) -> usize {
    match u32::from(character) {
        0x0300..=0x036F | 0x200B..=0x200D | 0xFE00..=0xFE0F => 0,
        0x1100..=0x115F
        | 0x2E80..=0xA4CF
        | 0xAC00..=0xD7A3
        | 0xF900..=0xFAFF
        | 0xFE30..=0xFE6F
        | 0xFF00..=0xFF60
        | 0xFFE0..=0xFFE6
        | 0x1F300..=0x1FAFF
        | 0x20000..=0x3FFFD => 2,
        _ => 1,
    }
}

/// A text cut to that many columns, with an ellipsis where its end was.
pub fn cut(text: &str, width: usize) -> String {
    if columns(text) <= width {
        return text.to_owned();
    }
    let mut line = String::new();
    let mut left = width.saturating_sub(1);
    for character in text.chars() {
        let Some(rest) = left.checked_sub(columns_of(character)) else { break };
        left = rest;
        line.push(character);
    }
    line.push('…');
    line
}

/// A text in exactly that many columns, to the left.
pub fn left(text: &str, width: usize) -> String {
    let text = cut(text, width);
    let padding = width.saturating_sub(columns(&text));
    format!("{text}{:padding$}", "")
}

/// A text in at least that many columns, to the right.
pub fn right(text: &str, width: usize) -> String {
    let padding = width.saturating_sub(columns(text));
    format!("{:padding$}{text}", "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_by_thousands() {
        for (number, text) in [
            (0, "0"),
            (999, "999"),
            (1000, "1,000"),
            (1_234_567, "1,234,567"),
            (u64::MAX, "18,446,744,073,709,551,615"),
        ] {
            assert_eq!(count(number), text);
        }
        assert_eq!(counted(1, "index", "indexes"), "1 index");
        assert_eq!(counted(0, "index", "indexes"), "0 indexes");
        assert_eq!(whole(25_717.6), "25,718");
    }

    #[test]
    fn bytes_have_three_digits() {
        for (number, text) in [
            (0, "0 B"),
            (999, "999 B"),
            (1000, "1.00 kB"),
            (9_994, "9.99 kB"),
            (9_996, "10.0 kB"),
            (99_960, "100 kB"),
            (999_499, "999 kB"),
            (999_500, "1.00 MB"),
            (12_345_678, "12.3 MB"),
            (1_230_000_000, "1.23 GB"),
            (5_000_000_000_000, "5.00 TB"),
            (u64::MAX, "18.4 EB"),
        ] {
            assert_eq!(bytes(number), text, "{number}");
        }
    }

    #[test]
    fn rates_are_short() {
        for (number, text) in [
            (0.0, "0/s"),
            (0.6, "1/s"),
            (950.4, "950/s"),
            (999.6, "1.00 k/s"),
            (41_234.0, "41.2 k/s"),
            (412_345.0, "412 k/s"),
            (1_234_567.0, "1.23 M/s"),
        ] {
            assert_eq!(rate(number), text, "{number}");
        }
        assert_eq!(byte_rate(41_234_567.0), "41.2 MB/s");
        assert_eq!(byte_rate(0.0), "0 B/s");
    }

    #[test]
    fn times_show_two_units() {
        for (millis, text) in [
            (0, "0 s"),
            (340, "340 ms"),
            (4_240, "4.2 s"),
            (9_949, "9.9 s"),
            (9_950, "10 s"),
            (59_400, "59 s"),
            (59_600, "1 m 00 s"),
            (62_000, "1 m 02 s"),
            (3_599_600, "1 h 00 m"),
            (7_380_000, "2 h 03 m"),
            (86_400_000, "1 d 00 h"),
            (273_600_000, "3 d 04 h"),
        ] {
            assert_eq!(duration(Duration::from_millis(millis)), text, "{millis}");
        }
        assert_eq!(remaining(Duration::from_millis(4_200)), "5 s");
        assert_eq!(remaining(Duration::from_millis(0)), "0 s");
        assert_eq!(remaining(Duration::from_secs(62)), "1 m 02 s");
        assert_eq!(duration(Duration::MAX), "213503982334601 d 07 h");
    }

    #[test]
    fn percents_are_rounded_down() {
        for (share, text) in
            [(0.0, "0 %"), (0.29, "29 %"), (0.999, "99 %"), (1.0, "100 %"), (1.5, "100 %")]
        {
            assert_eq!(percent(share), text, "{share}");
        }
    }

    #[test]
    fn texts_fit_their_columns() {
        assert_eq!(cut("shop.orders", 11), "shop.orders");
        assert_eq!(cut("shop.orders", 8), "shop.or…");
        assert_eq!(columns("odd.日本"), 8);
        assert_eq!(cut("odd.日本", 7), "odd.日…");
        assert_eq!(cut("odd.日本", 6), "odd.…");
        assert_eq!(left("odd.日本", 10), "odd.日本  ");
        assert_eq!(right("7", 3), "  7");
        assert_eq!(one_line("a\x1b[31m\nb"), "a\\u{1b}[31m\\nb");
    }
}
