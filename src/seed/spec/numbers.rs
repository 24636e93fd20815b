//! How a spec says that numbers are drawn.

use super::section::{Entry, Section, float};
use crate::error::Error;
use crate::seed::distribution::{Permutation, Real, Whole, Zipf};

/// With a larger exponent, only the first number would ever be drawn.
const EXPONENT_MAX: f64 = 50.0;

/// What numbers are in a table of a spec: numbers, dates, lengths.
pub(super) struct Unit<'a> {
    /// Reads one of them.
    pub(super) value: &'a dyn Fn(&Entry<'_>) -> Result<i64, Error>,
    /// Reads a distance between two of them.
    pub(super) distance: &'a dyn Fn(&Entry<'_>) -> Result<f64, Error>,
    /// The bounds where none are said; where there is none, it has to be said.
    pub(super) min: Option<i64>,
    pub(super) max: Option<i64>,
    /// The distance from one to the next where none is said.
    pub(super) step: i64,
    /// Makes the scattered orders of two fields differ.
    pub(super) salt: u64,
}

/// How numbers are distributed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Distribution {
    Uniform,
    Normal,
    Zipf,
    Quantiles,
    Sequence,
    Scattered,
}

/// The distribution that a table names; `uniform` where it names none.
pub(super) fn distribution(section: &Section<'_>) -> Result<Distribution, Error> {
    let Some(entry) = section.get("distribution") else { return Ok(Distribution::Uniform) };
    Ok(match entry.text()? {
        "uniform" => Distribution::Uniform,
        "normal" => Distribution::Normal,
        "zipf" => Distribution::Zipf,
        "quantiles" => Distribution::Quantiles,
        "sequence" => Distribution::Sequence,
        "scattered" => Distribution::Scattered,
        other => {
            return Err(entry.error(&format!(
                "`{other}` is no distribution; there are uniform, normal, zipf, quantiles, \
                 sequence, scattered"
            )));
        }
    })
}

/// The numbers that a table describes.
pub(super) fn whole(section: &Section<'_>, unit: &Unit<'_>) -> Result<Whole, Error> {
    let distribution = distribution(section)?;
    if distribution == Distribution::Sequence {
        return sequence(section, unit);
    }
    if distribution == Distribution::Normal {
        return normal(section, unit);
    }
    if distribution == Distribution::Quantiles {
        return quantiles(section, unit);
    }
    let (min, max) = bounds(section, unit)?;
    let last = max.abs_diff(min);
    Ok(match distribution {
        Distribution::Zipf => Whole::Zipf { min, ranks: ranks(section, last.saturating_add(1))? },
        Distribution::Scattered => {
            Whole::Scattered { min, places: Permutation::up_to(last, unit.salt) }
        }
        _ => Whole::between(min, max),
    })
}

fn quantiles(section: &Section<'_>, unit: &Unit<'_>) -> Result<Whole, Error> {
    let entry = section.needed("values")?;
    let values: Result<Box<[_]>, _> = entry.elements()?.iter().map(unit.value).collect();
    let values = values?;
    if values.len() < 2 || !values.is_sorted() {
        return Err(entry.error("two numbers or more are needed, each not below the one before"));
    }
    Ok(Whole::Quantiles(values))
}

/// Ranks up to the last one, by `exponent`.
pub(super) fn ranks(section: &Section<'_>, last: u64) -> Result<Zipf, Error> {
    let exponent = match section.get("exponent") {
        Some(entry) => entry.float().ok().filter(|number| *number > 0.0 && *number <= EXPONENT_MAX),
        None => Some(1.0),
    };
    let Some(exponent) = exponent else {
        let message = format!("`exponent` is a number above 0 and up to {EXPONENT_MAX}");
        return Err(section.error(&message));
    };
    Ok(Zipf::up_to(last, exponent))
}

fn bounds(section: &Section<'_>, unit: &Unit<'_>) -> Result<(i64, i64), Error> {
    let bound = |key: &'static str, default: Option<i64>| match (section.get(key), default) {
        (Some(entry), _) => (unit.value)(&entry),
        (None, Some(default)) => Ok(default),
        (None, None) => Err(section.error(&format!("`{key}` is missing"))),
    };
    let (min, max) = (bound("min", unit.min)?, bound("max", unit.max)?);
    if min > max {
        return Err(section.error("`min` is above `max`"));
    }
    Ok((min, max))
}

#[expect(clippy::cast_precision_loss, reason = "a mean need not be exact")]
fn normal(section: &Section<'_>, unit: &Unit<'_>) -> Result<Whole, Error> {
    let mean = (unit.value)(&section.needed("mean")?)? as f64;
    let deviation = (unit.distance)(&section.needed("deviation")?)?;
    let widest = Unit {
        min: unit.min.or(Some(i64::MIN)),
        max: unit.max.or(Some(i64::MAX)),
        value: unit.value,
        distance: unit.distance,
        step: unit.step,
        salt: unit.salt,
    };
    let (min, max) = bounds(section, &widest)?;
    Ok(Whole::Normal { mean, deviation, min, max })
}

#[expect(clippy::cast_possible_truncation, reason = "a step is whole in its unit")]
fn sequence(section: &Section<'_>, unit: &Unit<'_>) -> Result<Whole, Error> {
    let start = match section.get("start") {
        Some(entry) => (unit.value)(&entry)?,
        None => unit.min.unwrap_or(0).max(0),
    };
    let step = match section.get("step") {
        Some(entry) => (unit.distance)(&entry)?.round() as i64,
        None => unit.step,
    };
    Ok(Whole::Sequence { start, step })
}

/// A length: a number, or a table that says how it is drawn.
pub(super) fn length(entry: &Entry<'_>, max: i64) -> Result<Whole, Error> {
    if entry.integer().is_ok() {
        return Ok(Whole::Fixed(entry.within(0, max)?));
    }
    let section = entry.section()?;
    let value = |entry: &Entry<'_>| entry.within(0, max);
    let max = section.has("mean").then_some(max);
    let unit = Unit { value: &value, distance: &float, min: Some(0), max, step: 1, salt: 1 };
    let drawn = whole(&section, &unit)?;
    section.finish()?;
    match drawn {
        Whole::Sequence { .. } => Err(section.error("a length cannot be a sequence")),
        drawn => Ok(drawn),
    }
}

/// Doubles: of any digits, or of so many behind the point.
pub(super) fn real(section: &Section<'_>, salt: u64) -> Result<Real, Error> {
    if section.has("decimals") || !is_continuous(section)? {
        let (whole, decimals) = scaled(section, salt, 0)?;
        return Ok(Real::Divided { whole, by: 10.0_f64.powi(decimals.into()) });
    }
    let bound = |key: &'static str| section.get(key).map(|entry| entry.float()).transpose();
    let (min, max) = (bound("min")?, bound("max")?);
    if distribution(section)? == Distribution::Normal {
        let mean = section.needed("mean")?.float()?;
        let deviation = section.needed("deviation")?.float()?;
        let (min, max) = (min.unwrap_or(f64::MIN), max.unwrap_or(f64::MAX));
        if min > max {
            return Err(section.error("`min` is above `max`"));
        }
        return Ok(Real::Normal { mean, deviation, min, max });
    }
    let (min, max) = (min.unwrap_or(0.0), max.unwrap_or(1.0));
    if min > max {
        return Err(section.error("`min` is above `max`"));
    }
    if !(max - min).is_finite() {
        return Err(section.error("`min` and `max` are too far apart"));
    }
    Ok(Real::Uniform { min, width: max - min })
}

fn is_continuous(section: &Section<'_>) -> Result<bool, Error> {
    Ok(matches!(distribution(section)?, Distribution::Uniform | Distribution::Normal))
}

/// Numbers of so many digits behind the point, as whole numbers, and how many digits.
#[expect(clippy::cast_possible_truncation, reason = "digits beyond those that are kept")]
pub(super) fn scaled(section: &Section<'_>, salt: u64, default: u8) -> Result<(Whole, u8), Error> {
    let decimals = match section.get("decimals") {
        Some(entry) => u8::try_from(entry.within(0, 18)?).unwrap_or(0),
        None => default,
    };
    let by = 10.0_f64.powi(decimals.into());
    let value = move |entry: &Entry<'_>| {
        let scaled = entry.float()? * by;
        if scaled.abs() < 9.2e18 {
            return Ok(scaled.round() as i64);
        }
        Err(entry.error("the number has too many digits"))
    };
    let distance = move |entry: &Entry<'_>| Ok(entry.float()? * by);
    let step = by as i64;
    let unit = Unit { value: &value, distance: &distance, min: Some(0), max: None, step, salt };
    Ok((whole(section, &unit)?, decimals))
}
