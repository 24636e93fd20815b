//! Writes what was seen as the fields of a spec.

use bson::spec::ElementType;

use super::Values;
use super::profile::{Characters, Kind, Object, Slot};
use super::written::{date, float, key, text, value};

/// So many different values are few.
const FEW: usize = 20;

/// How often values that are few were seen at least, on average.
const SEEN_MIN: u64 = 4;

/// Texts of at least so many random characters are taken to differ from each other.
const RANDOM_CHARACTERS: f64 = 12.0;

/// Digits behind the point that are kept.
const DECIMALS_MAX: usize = 6;

/// Numbers below this are told apart to six digits behind the point by the numbers of a spec.
const WHOLE_MAX: f64 = 9e12;

/// What else counts when fields are written.
pub(super) struct Rendering<'a> {
    pub(super) documents: u64,
    pub(super) values: Values,
    /// Fields that are kept unique.
    pub(super) unique: Vec<&'a str>,
}

impl Rendering<'_> {
    /// A field of documents of which so many were seen.
    pub(super) fn field(&self, slot: &Slot, seen: u64, is_unique: bool, level: usize) -> String {
        let mut parts = self.parts(slot, is_unique, level);
        if slot.present < seen {
            parts.push(format!("optional = {}", share(seen - slot.present, seen)));
        }
        table(&parts)
    }

    fn parts(&self, slot: &Slot, is_unique: bool, level: usize) -> Vec<String> {
        let null = ElementType::Null as u8;
        let kinds: Vec<_> = slot.kinds.iter().filter(|(kind, _)| **kind != null).collect();
        let mut parts = match &kinds[..] {
            [] => return vec![typed("null")],
            [(of, kind)] => self.kind(**of, kind, is_unique, level),
            several => {
                let all: u64 = several.iter().map(|(_, kind)| kind.count).sum();
                let ways = several
                    .iter()
                    .map(|(of, kind)| table(&self.kind(**of, kind, is_unique, level)));
                let weights = several.iter().map(|(_, kind)| share(kind.count, all));
                vec![listed("one_of", ways), listed("weights", weights)]
            }
        };
        let nulls = slot.of(ElementType::Null);
        if nulls > 0 {
            parts.push(format!("null = {}", share(nulls, slot.present)));
        }
        parts
    }

    fn kind(&self, of: u8, kind: &Kind, is_unique: bool, level: usize) -> Vec<String> {
        let Some(of) = ElementType::from(of) else { return vec![typed("null")] };
        match of {
            ElementType::Double => self.number("double", kind, is_unique),
            ElementType::Int32 => self.number("int", kind, is_unique),
            ElementType::Int64 => self.number("long", kind, is_unique),
            ElementType::Decimal128 => self.number("decimal", kind, is_unique),
            ElementType::String => self.text("string", kind, is_unique),
            ElementType::Symbol => self.text("symbol", kind, is_unique),
            ElementType::JavaScriptCode => self.text("javascript", kind, is_unique),
            ElementType::EmbeddedDocument => vec![self.fields(&kind.object, level)],
            ElementType::Array => self.array(kind, level),
            ElementType::Binary if kind.subtype == 4 => vec![typed("uuid")],
            ElementType::Binary => {
                vec![typed("binary"), format!("subtype = {}", kind.subtype), length(&kind.numbers)]
            }
            ElementType::ObjectId => object_id(kind, is_unique),
            ElementType::Boolean => {
                vec![typed("bool"), format!("probability = {}", share(kind.trues, kind.count))]
            }
            ElementType::DateTime if is_unique => {
                let (min, _) = bounds(&kind.numbers);
                let start = date(whole(min));
                vec![typed("date"), drawn("sequence"), format!("start = {start}")]
            }
            ElementType::DateTime => spread("date", &kind.numbers, |number| date(whole(number))),
            ElementType::Timestamp => {
                spread("timestamp", &kind.numbers, |number| date(whole(number) * 1000))
            }
            ElementType::RegularExpression => vec![typed("regex"), "value = \"^a\"".to_owned()],
            ElementType::MinKey => vec![typed("minKey")],
            ElementType::MaxKey => vec![typed("maxKey")],
            ElementType::Undefined => vec!["value = { \"$undefined\" = true }".to_owned()],
            ElementType::JavaScriptCodeWithScope => {
                vec!["value = { \"$code\" = \"f()\", \"$scope\" = {} }".to_owned()]
            }
            ElementType::Null | ElementType::DbPointer => vec![typed("null")],
        }
    }

    /// The fields of a document, each on a line of its own.
    fn fields(&self, object: &Object, level: usize) -> String {
        let indent = "  ".repeat(level + 1);
        let fields = object.fields().map(|(name, slot)| {
            let field = self.field(slot, object.seen(), false, level + 1);
            format!("{indent}{} = {field},\n", key(name))
        });
        let fields: String = fields.collect();
        if fields.is_empty() {
            return "fields = {}".to_owned();
        }
        format!("fields = {{\n{fields}{}}}", "  ".repeat(level))
    }

    fn array(&self, kind: &Kind, level: usize) -> Vec<String> {
        match &*kind.items {
            None => vec!["value = []".to_owned()],
            Some(items) => {
                let items = table(&self.parts(items, false, level));
                vec![typed("array"), length(&kind.numbers), format!("items = {items}")]
            }
        }
    }

    fn number(&self, named: &str, kind: &Kind, is_unique: bool) -> Vec<String> {
        let is_whole = !matches!(named, "double" | "decimal");
        let decimals = if is_whole { 0 } else { kind.decimals.min(DECIMALS_MAX) };
        let (min, max) = bounds(&kind.numbers);
        if named == "double" && min.abs().max(max.abs()) >= WHOLE_MAX {
            // Numbers like these have no digits behind the point that could be kept.
            let bounds = [format!("min = {}", float(min)), format!("max = {}", float(max))];
            return [vec![typed(named)], bounds.to_vec()].concat();
        }
        let write = |number: f64| match decimals {
            0 if is_whole => whole(number).to_string(),
            _ => format!("{:.decimals$}", number.clamp(-WHOLE_MAX, WHOLE_MAX)),
        };
        let mut parts = match Self::chosen(named, kind, true) {
            _ if is_unique => self.unique_number(named, &kind.numbers),
            Some(chosen) => return chosen,
            None => spread(named, &kind.numbers, write),
        };
        if !is_whole {
            parts.push(format!("decimals = {decimals}"));
        }
        parts
    }

    /// Numbers of which no two are the same: one after the other where they lie close together.
    fn unique_number(&self, named: &str, numbers: &[f64]) -> Vec<String> {
        let (min, max) = bounds(numbers);
        let (min, max) = (whole(min), whole(max));
        let needed = self.documents.saturating_sub(1);
        let is_close = max.abs_diff(min) / 2 <= needed;
        if is_close {
            return vec![typed(named), drawn("sequence"), format!("start = {min}")];
        }
        let max = max.max(min.saturating_add_unsigned(needed));
        let max = if named == "int" { max.min(i32::MAX.into()) } else { max };
        vec![typed(named), drawn("scattered"), format!("min = {min}"), format!("max = {max}")]
    }

    fn text(&self, named: &str, kind: &Kind, is_unique: bool) -> Vec<String> {
        let mean = mean(&kind.numbers);
        let content = |content: &str| format!("content = {}", text(content));
        let characters = match kind.characters {
            Characters::Digits => content("digits"),
            Characters::Hex => content("hex"),
            Characters::Solid | Characters::Spaced => content("alphanumeric"),
        };
        let width = whole(mean.round()).clamp(0, 100);
        if is_unique {
            let (shortest, _) = bounds(&kind.numbers);
            if shortest >= RANDOM_CHARACTERS {
                return vec![typed(named), characters, length(&kind.numbers)];
            }
            let most = 10_i64.saturating_pow(u32::try_from(width).unwrap_or(0)) - 1;
            let needed = i64::try_from(self.documents).unwrap_or(i64::MAX);
            let max = format!("max = {}", most.max(needed));
            let width = format!("width = {width}");
            return vec![typed(named), content("number"), drawn("scattered"), max, width];
        }
        if let Some(chosen) = Self::chosen(named, kind, self.values == Values::Copied) {
            return chosen;
        }
        if kind.is_distinct && kind.distinct.len() as u64 * SEEN_MIN <= kind.count {
            let max = format!("max = {}", kind.distinct.len() - 1);
            return vec![typed(named), content("number"), max, format!("width = {width}")];
        }
        if kind.characters == Characters::Spaced {
            return vec![typed(named), content("text"), length(&kind.numbers)];
        }
        vec![typed(named), characters, length(&kind.numbers)]
    }

    /// One of few values, by how often they were seen; others of the same length unless they may
    /// be copied.
    fn chosen(named: &str, kind: &Kind, is_copied: bool) -> Option<Vec<String>> {
        let different = kind.distinct.len();
        let is_few = (1..=FEW).contains(&different) && different as u64 * SEEN_MIN <= kind.count;
        if !kind.is_distinct || !is_few {
            return None;
        }
        let mut values: Vec<_> = kind.distinct.values().collect();
        values.sort_by_key(|(of, count)| (std::cmp::Reverse(*count), of.to_string()));
        let written = values.iter().enumerate().map(|(place, (of, _))| match of.as_str() {
            Some(of) if !is_copied => text(&replaced(of.len(), place)),
            _ => match of {
                bson::Bson::Int64(number) => number.to_string(),
                of => value(of),
            },
        });
        let weights = values.iter().map(|(_, count)| share(*count, kind.count));
        Some(vec![typed(named), listed("choose", written), listed("weights", weights)])
    }
}

/// A text of this length, another one for each place.
fn replaced(length: usize, place: usize) -> String {
    let letter = |place: usize| char::from(b'a' + u8::try_from(place % 26).unwrap_or(0));
    match length {
        0 => String::new(),
        1 => letter(place).to_string(),
        _ => format!("{place:x>length$}"),
    }
}

fn object_id(kind: &Kind, is_unique: bool) -> Vec<String> {
    let (min, max) = bounds(&kind.numbers);
    let (min, max) = (date(whole(min) * 1000), date(whole(max) * 1000));
    if is_unique {
        return vec![typed("objectId"), format!("start = {min}")];
    }
    let bounds = [format!("min = {min}"), format!("max = {max}")];
    [vec![typed("objectId"), drawn("uniform")], bounds.to_vec()].concat()
}

/// Numbers that are spread as those that were seen.
fn spread(named: &str, numbers: &[f64], write: impl Fn(f64) -> String) -> Vec<String> {
    let (min, max) = bounds(numbers);
    let mut parts = vec![typed(named)];
    if min.to_bits() == max.to_bits() {
        parts.extend([format!("min = {}", write(min)), format!("max = {}", write(max))]);
        return parts;
    }
    parts.extend([drawn("quantiles"), listed("values", quantiles(numbers).into_iter().map(write))]);
    parts
}

/// A length that is spread as those that were seen.
fn length(lengths: &[f64]) -> String {
    let (min, max) = bounds(lengths);
    if min.to_bits() == max.to_bits() {
        return format!("length = {}", whole(min));
    }
    let values = quantiles(lengths).into_iter().map(|length| whole(length).max(0).to_string());
    format!("length = {}", table(&[drawn("quantiles"), listed("values", values)]))
}

/// So many numbers that as many of those that were seen lie between two of them as between any
/// others, and that the mean of what is drawn is near theirs.
fn quantiles(numbers: &[f64]) -> Vec<f64> {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    let mean = mean(numbers);
    let mut found = Vec::new();
    for parts in [10, 20, 100] {
        let last = sorted.len() - 1;
        found = (0..=parts).map(|part| sorted[part * last / parts]).collect::<Vec<_>>();
        let drawn = meet(mean, &mut found);
        if (drawn - mean).abs() <= mean.abs() / 50.0 {
            break;
        }
    }
    found
}

/// Moves the last number so that the mean of what is drawn is this, as far as the others allow;
/// returns the mean that comes of it.
#[expect(clippy::cast_precision_loss, reason = "they are few")]
fn meet(mean: f64, bounds: &mut [f64]) -> f64 {
    let parts = (bounds.len() - 1) as f64;
    let [first, middle @ .., last] = bounds else { return mean };
    let inner = *first / 2.0 + middle.iter().sum::<f64>();
    let before = middle.last().unwrap_or(first);
    *last = (2.0 * (mean * parts - inner)).clamp(*before, *last);
    (inner + *last / 2.0) / parts
}

fn bounds(numbers: &[f64]) -> (f64, f64) {
    let min = numbers.iter().copied().fold(f64::INFINITY, f64::min);
    let max = numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if min > max { (0.0, 0.0) } else { (min, max) }
}

#[expect(clippy::cast_precision_loss, reason = "a mean of few numbers")]
fn mean(numbers: &[f64]) -> f64 {
    numbers.iter().sum::<f64>() / numbers.len().max(1) as f64
}

#[expect(clippy::cast_possible_truncation, reason = "a number beyond the bounds becomes a bound")]
fn whole(number: f64) -> i64 {
    number.round() as i64
}

/// A share with four digits, above 0 where the part is.
#[expect(clippy::cast_precision_loss, reason = "a share need not be exact")]
fn share(part: u64, of: u64) -> String {
    let share = part as f64 / of.max(1) as f64;
    let rounded = (share * 10_000.0).round() / 10_000.0;
    float(if part > 0 { rounded.max(0.0001) } else { rounded })
}

fn typed(named: &str) -> String {
    format!("type = {}", text(named))
}

fn drawn(named: &str) -> String {
    format!("distribution = {}", text(named))
}

fn listed(name: &str, values: impl Iterator<Item = String>) -> String {
    format!("{name} = [{}]", values.collect::<Vec<_>>().join(", "))
}

fn table(parts: &[String]) -> String {
    format!("{{ {} }}", parts.join(", "))
}
