//! Reads moments that are written as a layout says, in the notation of Go, of Microsoft or of
//! Oracle; the latter two are put into the first one, as mongoimport does.
//!
//! Layouts of Go: <https://pkg.go.dev/time#pkg-constants>.

use crate::reader::json::date::{MILLIS_OF_DAY, days_of, days_since_1970};

/// How Microsoft writes what Go writes otherwise, the longest first.
const MICROSOFT: [(&str, &str); 22] = [
    ("dddd", "Monday"),
    ("ddd", "Mon"),
    ("dd", "02"),
    ("d", "2"),
    ("MMMM", "January"),
    ("MMM", "Jan"),
    ("MM", "01"),
    ("M", "1"),
    ("hh", "03"),
    ("h", "3"),
    ("HH", "15"),
    ("H", "15"),
    ("mm", "04"),
    ("m", "4"),
    ("ss", "05"),
    ("s", "5"),
    ("tt", "PM"),
    ("yyyy", "2006"),
    ("yyy", "2006"),
    ("yy", "06"),
    ("zzz", "-07:00"),
    ("zz", "-07"),
];

/// The same for Oracle.
const ORACLE: [(&str, &str); 17] = [
    ("AM", "PM"),
    ("DAY", "Monday"),
    ("DY", "Mon"),
    ("DD", "02"),
    ("HH12", "03"),
    ("HH24", "15"),
    ("HH", "03"),
    ("MI", "04"),
    ("MONTH", "January"),
    ("MON", "Jan"),
    ("MM", "01"),
    ("SS", "05"),
    ("TZD", "MST"),
    ("TZH:TZM", "-07:00"),
    ("TZH", "-07"),
    ("YYYY", "2006"),
    ("YY", "06"),
];

/// What stands in a layout of Go for a part of a moment, each before what it begins with.
const PARTS: [(&str, Part); 30] = [
    ("January", Part::MonthName),
    ("Jan", Part::MonthShort),
    ("Monday", Part::DayName),
    ("Mon", Part::DayShort),
    ("MST", Part::ZoneName),
    ("2006", Part::Year),
    ("__2", Part::DayOfYearPadded),
    ("_2", Part::Day),
    ("002", Part::DayOfYear),
    ("01", Part::Month2),
    ("02", Part::Day2),
    ("03", Part::HalfDayHour2),
    ("04", Part::Minute2),
    ("05", Part::Second2),
    ("06", Part::YearOfCentury),
    ("15", Part::Hour),
    ("1", Part::Month),
    ("2", Part::Day),
    ("3", Part::HalfDayHour),
    ("4", Part::Minute),
    ("5", Part::Second),
    ("PM", Part::Half),
    ("pm", Part::LowerHalf),
    ("Z07:00", Part::ZoneOrZ),
    ("Z0700", Part::ZoneOrZ),
    ("Z07", Part::ZoneOrZ),
    ("-07:00", Part::Zone),
    ("-0700", Part::Zone),
    ("-07", Part::Zone),
    (".", Part::Fraction(0)),
];

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

const DAYS: [&str; 7] =
    ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];

/// The letters of a short name of a month or a day.
const SHORT: usize = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    MonthName,
    MonthShort,
    DayName,
    DayShort,
    ZoneName,
    Year,
    YearOfCentury,
    Month,
    Month2,
    Day,
    Day2,
    Hour,
    HalfDayHour,
    HalfDayHour2,
    Minute,
    Minute2,
    Second,
    Second2,
    DayOfYear,
    DayOfYearPadded,
    Half,
    LowerHalf,
    ZoneOrZ,
    Zone,
    /// Of a second, with so many digits; with any number of them, or none at all, where that is 0.
    Fraction(usize),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Part(Part),
    Text(char),
}

/// How moments are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    pieces: Vec<Piece>,
}

impl Layout {
    /// A layout in the notation of Go.
    pub(super) fn of_go(layout: &str) -> Self {
        let (mut pieces, mut rest) = (Vec::new(), layout);
        while let Some(character) = rest.chars().next() {
            let found = PARTS.iter().find(|(written, part)| {
                let is_point = matches!(part, Part::Fraction(_));
                rest.starts_with(written) && (!is_point || is_fraction(rest))
            });
            let Some((written, part)) = found else {
                pieces.push(Piece::Text(character));
                rest = &rest[character.len_utf8()..];
                continue;
            };
            rest = &rest[written.len()..];
            let Part::Fraction(_) = part else {
                pieces.push(Piece::Part(*part));
                continue;
            };
            let digits = rest.len() - rest.trim_start_matches('0').len();
            pieces.push(Piece::Part(Part::Fraction(digits)));
            rest = rest.trim_start_matches(['0', '9']);
        }
        Self { pieces }
    }

    /// A layout of Microsoft's `FORMAT`.
    pub(super) fn of_ms(layout: &str) -> Self {
        Self::of_go(&replaced(layout, &MICROSOFT))
    }

    /// A layout of Oracle's `TO_DATE`.
    pub(super) fn of_oracle(layout: &str) -> Self {
        Self::of_go(&replaced(&layout.to_uppercase(), &ORACLE))
    }

    /// The moment that is written, in milliseconds since 1970.
    pub(super) fn millis(&self, text: &str) -> Option<i64> {
        let mut moment = Moment { month: 1, day: 1, ..Moment::default() };
        let mut rest = text;
        for (number, piece) in self.pieces.iter().enumerate() {
            rest = match piece {
                // Any number of blanks stands for one, and none at the end.
                Piece::Text(' ') if rest.is_empty() || rest.starts_with(' ') => {
                    rest.trim_start_matches(' ')
                }
                Piece::Text(character) => rest.strip_prefix(*character)?,
                Piece::Part(part) => moment.read(*part, rest)?,
            };
            let is_second = matches!(piece, Piece::Part(Part::Second | Part::Second2));
            let next = self.pieces.get(number + 1);
            if is_second && !matches!(next, Some(Piece::Part(Part::Fraction(_)))) {
                // A fraction is read after the seconds even where the layout has none.
                rest = moment.read(Part::Fraction(0), rest)?;
            }
        }
        if rest.is_empty() { moment.millis() } else { None }
    }
}

/// Whether a point and as many zeros or nines as one likes begin here.
fn is_fraction(layout: &str) -> bool {
    let digits = layout.trim_start_matches('.');
    let after = digits.trim_start_matches('0');
    let after = if after.len() == digits.len() { digits.trim_start_matches('9') } else { after };
    after.len() < digits.len() && !after.starts_with(|next: char| next.is_ascii_digit())
}

fn replaced(layout: &str, pairs: &[(&str, &str)]) -> String {
    let (mut text, mut rest) = (String::new(), layout);
    while let Some(character) = rest.chars().next() {
        if let Some((from, to)) = pairs.iter().find(|(from, _)| rest.starts_with(from)) {
            text.push_str(to);
            rest = &rest[from.len()..];
        } else {
            text.push(character);
            rest = &rest[character.len_utf8()..];
        }
    }
    text
}

#[derive(Clone, Copy, Debug, Default)]
struct Moment {
    year: i64,
    month: i64,
    day: i64,
    hour: i64,
    minute: i64,
    second: i64,
    milli: i64,
    day_of_year: Option<i64>,
    is_afternoon: Option<bool>,
    zone_minutes: i64,
}

impl Moment {
    /// Reads a part; returns what follows it.
    fn read<'a>(&mut self, part: Part, text: &'a str) -> Option<&'a str> {
        let (field, (value, rest)) = match part {
            Part::MonthName => (&mut self.month, name(&MONTHS, text, usize::MAX)?),
            Part::MonthShort => (&mut self.month, name(&MONTHS, text, SHORT)?),
            Part::DayName => return Some(name(&DAYS, text, usize::MAX)?.1),
            Part::DayShort => return Some(name(&DAYS, text, SHORT)?.1),
            Part::Year => (&mut self.year, number(text, 4, 4)?),
            Part::YearOfCentury => {
                let (value, rest) = number(text, 2, 2)?;
                // Unix began in 1970, and in some zones in 1969.
                (&mut self.year, (if value >= 69 { 1900 + value } else { 2000 + value }, rest))
            }
            Part::Month => (&mut self.month, number(text, 1, 2)?),
            Part::Month2 => (&mut self.month, number(text, 2, 2)?),
            Part::Day => (&mut self.day, number(text.strip_prefix(' ').unwrap_or(text), 1, 2)?),
            Part::Day2 => (&mut self.day, number(text, 2, 2)?),
            Part::Hour | Part::HalfDayHour => (&mut self.hour, number(text, 1, 2)?),
            Part::HalfDayHour2 => (&mut self.hour, number(text, 2, 2)?),
            Part::Minute => (&mut self.minute, number(text, 1, 2)?),
            Part::Minute2 => (&mut self.minute, number(text, 2, 2)?),
            Part::Second => (&mut self.second, number(text, 1, 2)?),
            Part::Second2 => (&mut self.second, number(text, 2, 2)?),
            Part::Fraction(0) => match fraction(text, usize::MAX) {
                Some(read) => (&mut self.milli, read),
                None => return Some(text),
            },
            Part::Fraction(digits) => (&mut self.milli, fraction(text, digits)?),
            Part::DayOfYear | Part::DayOfYearPadded => {
                let blanks = if part == Part::DayOfYear { 0 } else { leading_blanks(text).min(2) };
                let (day, rest) = number(&text[blanks..], 3 - blanks, 3 - blanks)?;
                self.day_of_year = Some(day);
                return Some(rest);
            }
            Part::Half => return self.half(text, ["AM", "PM"]),
            Part::LowerHalf => return self.half(text, ["am", "pm"]),
            Part::ZoneName => {
                let rest = text.trim_start_matches(|letter: char| letter.is_ascii_uppercase());
                return (3..=5).contains(&(text.len() - rest.len())).then_some(rest);
            }
            Part::ZoneOrZ if text.starts_with('Z') => return text.get(1..),
            Part::Zone | Part::ZoneOrZ => (&mut self.zone_minutes, zone(text)?),
        };
        *field = value;
        Some(rest)
    }

    fn half<'a>(&mut self, text: &'a str, names: [&str; 2]) -> Option<&'a str> {
        let (half, rest) = text.split_at_checked(2)?;
        self.is_afternoon = Some(names.iter().position(|name| *name == half)? == 1);
        Some(rest)
    }

    fn millis(mut self) -> Option<i64> {
        match self.is_afternoon {
            Some(true) if self.hour < 12 => self.hour += 12,
            Some(false) if self.hour == 12 => self.hour = 0,
            _ => {}
        }
        if let Some(day) = self.day_of_year {
            (self.month, self.day) = of_year(self.year, day)?;
        }
        let is_day = (1..=12).contains(&self.month)
            && (1..=days_of(self.year, self.month)).contains(&self.day);
        if !is_day || self.hour > 23 || self.minute > 59 || self.second > 59 {
            return None;
        }
        let minutes = self.hour * 60 + self.minute - self.zone_minutes;
        let of_day = (minutes * 60 + self.second) * 1000 + self.milli;
        Some(days_since_1970(self.year, self.month, self.day) * MILLIS_OF_DAY + of_day)
    }
}

/// A number of so many digits, and what follows it.
fn number(text: &str, least: usize, most: usize) -> Option<(i64, &str)> {
    let digits = text.bytes().take(most).take_while(u8::is_ascii_digit).count();
    if digits < least {
        return None;
    }
    let (digits, rest) = text.split_at(digits);
    Some((digits.parse().ok()?, rest))
}

/// Month and day of a day of a year, from 1.
fn of_year(year: i64, mut day: i64) -> Option<(i64, i64)> {
    for month in 1..=12 {
        let days = days_of(year, month);
        if day <= days {
            return Some((month, day));
        }
        day -= days;
    }
    None
}

fn leading_blanks(text: &str) -> usize {
    text.len() - text.trim_start_matches(' ').len()
}

/// A point or a comma and so many digits, or as many as there are, as milliseconds.
fn fraction(text: &str, wanted: usize) -> Option<(i64, &str)> {
    let digits = text.strip_prefix(['.', ','])?;
    let there = digits.bytes().take(wanted).take_while(u8::is_ascii_digit).count();
    if wanted != usize::MAX && there < wanted {
        return None;
    }
    let (digits, rest) = digits.split_at(there);
    let millis = digits
        .bytes()
        .chain(*b"00")
        .take(3)
        .fold(0, |millis, digit| millis * 10 + i64::from(digit - b'0'));
    (!digits.is_empty()).then_some((millis, rest))
}

/// An offset from UTC in minutes: `+hh`, `+hhmm` or `+hh:mm`.
fn zone(text: &str) -> Option<(i64, &str)> {
    let sign = match text.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let (hours, rest) = number(&text[1..], 2, 2)?;
    let minutes = number(rest.strip_prefix(':').unwrap_or(rest), 2, 2);
    let (minutes, rest) = minutes.unwrap_or((0, rest));
    (hours <= 24 && minutes < 60).then_some((sign * (hours * 60 + minutes), rest))
}

/// The number of a name, from 1, and what follows it.
fn name<'a>(names: &[&str], text: &'a str, letters: usize) -> Option<(i64, &'a str)> {
    let found = names.iter().position(|name| {
        let name = &name[..name.len().min(letters)];
        text.get(..name.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(name))
    })?;
    let rest = &text[names[found].len().min(letters)..];
    Some((i64::try_from(found).ok()? + 1, rest))
}
