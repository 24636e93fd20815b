//! Reads a moment as mongoexport writes it, without the way through a calendar library.

use bson::DateTime;

/// Days from the beginning of March of the year 0 to that of 1970 in January.
const DAYS_BEFORE_1970: i64 = 719_468;

pub(in crate::reader) const MILLIS_OF_DAY: i64 = 86_400_000;

/// The moment of `YYYY-MM-DDThh:mm:ssZ`, with up to three places of a second; nothing for any other
/// form.
pub(super) fn of_utc(text: &str) -> Option<DateTime> {
    let text = text.as_bytes().strip_suffix(b"Z")?;
    let (moment, fraction) = text.split_at_checked(19)?;
    let marks = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')];
    if marks.iter().any(|(at, mark)| moment[*at] != *mark) {
        return None;
    }
    let part = |from: usize, to: usize| number(&moment[from..to]);
    let (year, month, day) = (part(0, 4)?, part(5, 7)?, part(8, 10)?);
    let (hour, minute, second) = (part(11, 13)?, part(14, 16)?, part(17, 19)?);
    let is_day = (1..=12).contains(&month) && (1..=days_of(year, month)).contains(&day);
    if !is_day || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let of_day = ((hour * 60 + minute) * 60 + second) * 1000 + millis(fraction)?;
    Some(DateTime::from_millis(days_since_1970(year, month, day) * MILLIS_OF_DAY + of_day))
}

fn number(digits: &[u8]) -> Option<i64> {
    digits.iter().try_fold(0, |number, digit| {
        digit.is_ascii_digit().then(|| number * 10 + i64::from(digit - b'0'))
    })
}

fn millis(fraction: &[u8]) -> Option<i64> {
    match fraction {
        [] => Some(0),
        [b'.', a] => number(&[*a]).map(|number| number * 100),
        [b'.', a, b] => number(&[*a, *b]).map(|number| number * 10),
        [b'.', a, b, c] => number(&[*a, *b, *c]),
        _ => None,
    }
}

pub(in crate::reader) fn days_of(year: i64, month: i64) -> i64 {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Counts years from March on, so that the leap day is the last one
/// (<https://howardhinnant.github.io/date_algorithms.html#days_from_civil>).
pub(in crate::reader) fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - DAYS_BEFORE_1970
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_agrees_with_the_calendar_of_bson(
            millis in -62_167_219_200_000_i64..253_402_300_800_000,
        ) {
            let date = DateTime::from_millis(millis);
            let text = date.try_to_rfc3339_string().expect("in range");
            prop_assert_eq!(of_utc(&text), Some(date), "{}", text);
        }

        #[test]
        fn what_it_takes_the_calendar_takes_too(
            text in "[0-9]{4}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-6][0-9]:[0-6][0-9](\\.[0-9]{1,3})?Z"
        ) {
            let expected = DateTime::parse_rfc3339_str(&text).ok();
            if let Some(date) = of_utc(&text) {
                prop_assert_eq!(Some(date), expected, "{}", text);
            }
        }
    }

    #[test]
    fn other_forms_are_left_to_others() {
        for text in ["", "Z", "2020-01-01", "2020-01-01T00:00:00+01:00", "2020-02-30T00:00:00Z"] {
            assert_eq!(of_utc(text), None, "{text}");
        }
    }
}
