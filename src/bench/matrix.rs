//! The cells of a benchmark: every combination of the values that are varied.

use serde::{Deserialize, Serialize};

use crate::error::{Error, ErrorKind};

/// The value that stands for leaving an option out.
pub const DEFAULT: &str = "default";

/// More cells than this are a mistake rather than a benchmark.
pub const CELLS_MAX: usize = 1000;

/// An option with the value that a cell has for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    /// The option without its dashes.
    pub name: String,
    /// Its value as it was typed; `default` where it is left out.
    pub value: String,
}

/// An option and the values that it takes in turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variation {
    /// The option without its dashes.
    pub name: String,
    /// The values, at least one.
    pub values: Vec<String>,
}

impl Variation {
    /// Reads `name=a,b,c`; a comma within a value is written `\,`.
    ///
    /// # Errors
    ///
    /// Of kind [`ErrorKind::Usage`]: there is no name, no value, an empty one, or one twice.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let wrong = |why: &str| {
            Error::new(ErrorKind::Usage, format!("`{text}` cannot be varied: {why}"))
                .hint("for example workers=1,2,4 or journal=on,off")
        };
        let (name, values) = text.split_once('=').ok_or_else(|| wrong("it has no values"))?;
        let name = name.trim().trim_start_matches('-');
        if name.is_empty() {
            return Err(wrong("it has no name"));
        }
        let values = values_of(values);
        if values.iter().any(String::is_empty) {
            return Err(wrong("a value is empty"));
        }
        for (place, value) in values.iter().enumerate() {
            if values[..place].contains(value) {
                return Err(wrong(&format!("the value {value} is there twice")));
            }
        }
        Ok(Self { name: name.to_owned(), values })
    }
}

fn values_of(text: &str) -> Vec<String> {
    let mut values = vec![String::new()];
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\\' if characters.peek() == Some(&',') => {
                characters.next();
                push(&mut values, ',');
            }
            ',' => values.push(String::new()),
            other => push(&mut values, other),
        }
    }
    values.iter().map(|value| value.trim().to_owned()).collect()
}

fn push(values: &mut [String], character: char) {
    if let Some(last) = values.last_mut() {
        last.push(character);
    }
}

/// Every combination of the values, the first variation turning slowest; a single empty one where
/// nothing is varied.
pub fn product(variations: &[Variation]) -> Vec<Vec<Choice>> {
    let mut combinations = vec![Vec::new()];
    for variation in variations {
        let extended = combinations.iter().flat_map(|chosen: &Vec<Choice>| {
            variation.values.iter().map(|value| {
                let choice = Choice { name: variation.name.clone(), value: value.clone() };
                chosen.iter().cloned().chain([choice]).collect()
            })
        });
        combinations = extended.collect();
    }
    combinations
}

/// What a cell runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// `restorm restore`.
    Restore,
    /// Another program.
    Tool,
    /// The sending alone of what a restore sends, encoded beforehand.
    Ceiling,
}

/// A setting that is measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cell {
    /// Its name, unlike that of any other.
    pub label: String,
    /// What it runs.
    pub kind: Kind,
    /// The options of restore that are varied.
    pub options: Vec<Choice>,
    /// The options of the server that are varied.
    pub server: Vec<Choice>,
    /// The words of the command behind the dump; of another program all words, with placeholders.
    pub words: Vec<String>,
    /// The cell of the restore whose ceiling this is.
    pub ceiling_of: Option<usize>,
}

impl Cell {
    /// A cell that is called by what is varied in it.
    pub fn new(
        name: &str,
        kind: Kind,
        options: Vec<Choice>,
        server: Vec<Choice>,
        words: Vec<String>,
    ) -> Self {
        let mut label = name.to_owned();
        for choice in options.iter().chain(&server) {
            label.push(' ');
            label.push_str(&choice.name);
            label.push('=');
            label.push_str(&choice.value);
        }
        Self { label, kind, options, server, words, ceiling_of: None }
    }

    /// The cell of the ceiling of this one, which has this place.
    #[must_use]
    pub fn ceiling(&self, place: usize) -> Self {
        Self {
            label: format!("ceiling of {}", self.label),
            kind: Kind::Ceiling,
            ceiling_of: Some(place),
            ..self.clone()
        }
    }

    /// The number of workers that is varied, where it is a number.
    pub fn workers(&self) -> Option<u32> {
        let chosen = self.options.iter().find(|choice| choice.name == "workers")?;
        chosen.value.parse().ok()
    }
}

/// Refuses cells that nobody could tell apart, and very many.
///
/// # Errors
///
/// Of kind [`ErrorKind::Usage`].
pub fn check(cells: &[Cell]) -> Result<(), Error> {
    let usage = |message: String| Err(Error::new(ErrorKind::Usage, message));
    if cells.len() > CELLS_MAX {
        return usage(format!("{} settings are more than {CELLS_MAX}", cells.len()));
    }
    for (place, cell) in cells.iter().enumerate() {
        if cells[..place].iter().any(|other| other.label == cell.label) {
            return usage(format!("the setting `{}` is there twice", cell.label));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variation(text: &str) -> Variation {
        Variation::parse(text).expect(text)
    }

    #[test]
    fn names_and_values_are_read() {
        let read = variation("--workers=1, 2,default");
        assert_eq!(read.name, "workers");
        assert_eq!(read.values, ["1", "2", "default"]);
        assert_eq!(variation(r"compressors=zstd\,snappy,none").values, ["zstd,snappy", "none"]);
        assert_eq!(variation("write-concern={w:1}").values, ["{w:1}"]);
        for wrong in ["workers", "=1", "workers=", "workers=1,,2", "workers=1,1", ""] {
            assert!(Variation::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_product_has_every_combination_once() {
        assert_eq!(product(&[]), [Vec::new()]);
        let cells = product(&[variation("a=1,2"), variation("b=x,y,z")]);
        let told: Vec<String> = cells
            .iter()
            .map(|cell| cell.iter().map(|choice| choice.value.as_str()).collect())
            .collect();
        assert_eq!(told, ["1x", "1y", "1z", "2x", "2y", "2z"]);
    }

    #[test]
    fn a_cell_is_called_by_what_is_varied() {
        let options = product(&[variation("workers=4")]).remove(0);
        let server = product(&[variation("wiredTigerCacheSizeGB=1")]).remove(0);
        let cell = Cell::new("restorm", Kind::Restore, options, server, Vec::new());
        assert_eq!(cell.label, "restorm workers=4 wiredTigerCacheSizeGB=1");
        assert_eq!(cell.workers(), Some(4));
        assert_eq!(cell.ceiling(3).ceiling_of, Some(3));
        assert!(check(&[cell.clone(), cell.clone()]).is_err());
        assert!(check(&[cell.clone(), cell.ceiling(0)]).is_ok());
    }
}
