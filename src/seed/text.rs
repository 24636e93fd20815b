//! Texts that are drawn: characters, running text, names and places, patterns, numbers.

use std::io::Write;

use fake::locales::{Data, EN};

use super::distribution::{Draws, Whole};
use super::shape::CITIES;

/// Words of a sentence.
const SENTENCE_WORDS: (u32, u32) = (4, 16);

/// How a text is drawn.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Text {
    /// So many bytes, each one of these.
    Characters { alphabet: Box<[u8]>, length: Whole },
    /// Sentences of words, so many bytes of them.
    Running { length: Whole },
    /// So many words.
    Words { count: Whole },
    /// One of a list.
    Listed(&'static [&'static str]),
    /// Piece by piece.
    Pattern(Box<[Piece]>),
    /// A number with a text before it and zeros up to its width.
    Number { prefix: Box<str>, width: usize, number: Whole },
}

/// A part of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// What is always the same.
    Literal(Box<str>),
    /// One of these bytes.
    Any(&'static [u8]),
}

pub(super) const DIGITS: &[u8] = b"0123456789";
pub(super) const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
pub(super) const ALPHANUMERIC: &[u8] =
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
pub(super) const HEX: &[u8] = b"0123456789abcdef";
const LOWER: &[u8] = b"abcdefghijklmnopqrstuvwxyz";
const UPPER: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ";

/// The lists that a text may be one of.
pub(super) const LISTS: [(&str, &[&str]); 13] = [
    ("first_name", EN::NAME_FIRST_NAME),
    ("last_name", EN::NAME_LAST_NAME),
    ("city", &CITIES),
    ("state", EN::ADDRESS_STATE),
    ("country", EN::ADDRESS_COUNTRY),
    ("country_code", EN::ADDRESS_COUNTRY_CODE),
    ("time_zone", EN::ADDRESS_TIME_ZONE),
    ("industry", EN::COMPANY_INDUSTRY),
    ("profession", EN::COMPANY_PROFESSION),
    ("currency", EN::CURRENCY_CODE),
    ("domain", EN::INTERNET_DOMAIN_SUFFIX),
    ("user_agent", EN::INTERNET_USER_AGENT),
    ("word", EN::LOREM_WORD),
];

/// The pieces of a pattern: `#` is a digit, `@` a small letter, `^` a capital, `*` a letter or a
/// digit, `~` a hexadecimal digit; what follows a backslash is itself.
pub(super) fn pieces(pattern: &str) -> Box<[Piece]> {
    let mut pieces = Vec::new();
    let mut literal = String::new();
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        let any = match character {
            '#' => DIGITS,
            '@' => LOWER,
            '^' => UPPER,
            '*' => ALPHANUMERIC,
            '~' => HEX,
            '\\' => {
                literal.extend(characters.next());
                continue;
            }
            other => {
                literal.push(other);
                continue;
            }
        };
        if !literal.is_empty() {
            pieces.push(Piece::Literal(std::mem::take(&mut literal).into()));
        }
        pieces.push(Piece::Any(any));
    }
    if !literal.is_empty() {
        pieces.push(Piece::Literal(literal.into()));
    }
    pieces.into()
}

impl Text {
    pub(super) fn append(&self, draws: &mut Draws, out: &mut Vec<u8>) {
        match self {
            Self::Characters { alphabet, length } => {
                let length = count(length, draws);
                characters(alphabet, length, draws, out);
            }
            Self::Running { length } => {
                let length = count(length, draws);
                running(length, draws, out);
            }
            Self::Words { count: words } => {
                for place in 0..count(words, draws) {
                    if place > 0 {
                        out.push(b' ');
                    }
                    out.extend_from_slice(listed(EN::LOREM_WORD, draws).as_bytes());
                }
            }
            Self::Listed(list) => out.extend_from_slice(listed(list, draws).as_bytes()),
            Self::Pattern(pieces) => {
                for piece in pieces {
                    match piece {
                        Piece::Literal(text) => out.extend_from_slice(text.as_bytes()),
                        Piece::Any(alphabet) => characters(alphabet, 1, draws, out),
                    }
                }
            }
            Self::Number { prefix, width, number } => {
                let number = number.draw(draws);
                // Writing to a vector cannot fail.
                let _ = write!(out, "{prefix}{number:0width$}");
            }
        }
    }
}

/// How many, where a number says so.
pub(super) fn count(whole: &Whole, draws: &mut Draws) -> usize {
    usize::try_from(whole.draw(draws)).unwrap_or(0)
}

fn listed(list: &[&'static str], draws: &mut Draws) -> &'static str {
    let bound = u32::try_from(list.len()).unwrap_or(u32::MAX);
    list[draws.random.below(bound) as usize]
}

/// Four characters come from one draw.
fn characters(alphabet: &[u8], length: usize, draws: &mut Draws, out: &mut Vec<u8>) {
    let mut left = length;
    while left > 0 {
        let mut bits = draws.random.draw();
        for _ in 0..left.min(4) {
            let place = ((bits & 0xFFFF) * alphabet.len() as u64) >> 16;
            out.push(alphabet[usize::try_from(place).unwrap_or(0)]);
            bits >>= 16;
        }
        left = left.saturating_sub(4);
    }
}

/// Sentences that are cut where there are enough of them; the words are of ASCII.
fn running(length: usize, draws: &mut Draws, out: &mut Vec<u8>) {
    let end = out.len() + length;
    while out.len() < end {
        let words = SENTENCE_WORDS.0 + draws.random.below(SENTENCE_WORDS.1 - SENTENCE_WORDS.0);
        let begins = out.len();
        for place in 0..words {
            if place > 0 {
                out.push(b' ');
            }
            out.extend_from_slice(listed(EN::LOREM_WORD, draws).as_bytes());
            if out.len() >= end {
                break;
            }
        }
        out[begins].make_ascii_uppercase();
        out.extend_from_slice(b". ");
    }
    out.truncate(end);
    if let Some(last) = out.last_mut().filter(|_| length > 0) {
        *last = b'.';
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seed::random::SplitMix64;

    fn text(text: &Text, number: u64) -> String {
        let mut draws = Draws { seed: 1, stream: 2, number, random: SplitMix64::nth(2, number) };
        let mut out = Vec::new();
        text.append(&mut draws, &mut out);
        String::from_utf8(out).expect("UTF-8")
    }

    #[test]
    fn running_text_has_its_length_and_reads_like_sentences() {
        for length in [0, 1, 2, 17, 400] {
            let made = text(&Text::Running { length: Whole::Fixed(length) }, 3);
            assert_eq!(made.len(), usize::try_from(length).expect("small"));
            assert!(made.is_empty() || made.ends_with('.'), "{made}");
        }
        let made = text(&Text::Running { length: Whole::Fixed(400) }, 3);
        assert!(made.contains(". ") && made.starts_with(char::is_uppercase), "{made}");
        assert!(EN::LOREM_WORD.iter().all(|word| word.is_ascii()));
    }

    #[test]
    fn a_pattern_keeps_its_letters_and_draws_the_others() {
        let pattern = Text::Pattern(pieces(r"AB-##-@^\#é~"));
        let (one, other) = (text(&pattern, 1), text(&pattern, 2));
        assert_ne!(one, other);
        for made in [one, other] {
            let rest = made.strip_prefix("AB-").expect("it is kept");
            assert!(rest[..2].bytes().all(|byte| byte.is_ascii_digit()), "{made}");
            let [lower, upper] = rest.as_bytes()[3..5] else { panic!("{made}") };
            assert!(lower.is_ascii_lowercase() && upper.is_ascii_uppercase(), "{made}");
            assert!(rest[5..].starts_with("#é"), "{made}");
        }
    }

    #[test]
    fn characters_are_as_frequent_as_each_other() {
        let made = text(
            &Text::Characters { alphabet: ALPHANUMERIC.into(), length: Whole::Fixed(62_000) },
            1,
        );
        for letter in ALPHANUMERIC {
            let count = made.bytes().filter(|byte| byte == letter).count();
            assert!((800..1200).contains(&count), "{letter}: {count}");
        }
    }

    #[test]
    fn a_number_has_its_width_and_words_are_counted() {
        let number = Whole::Sequence { start: 7, step: 1 };
        let text_of = Text::Number { prefix: "user-".into(), width: 5, number };
        assert_eq!(text(&text_of, 3), "user-00010");
        assert_eq!(text(&Text::Words { count: Whole::Fixed(4) }, 3).split(' ').count(), 4);
        for (name, list) in LISTS {
            assert!(list.contains(&&*text(&Text::Listed(list), 3)), "{name}");
        }
    }
}
