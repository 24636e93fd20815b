//! Patterns over full names, and names made from what a pattern caught.
//!
//! A pattern is matched against the whole of `database.collection`, case and all. A star stands
//! for any run of characters, dots included; `\*` is a star and `\\` a backslash. A pattern with a
//! `$` is of the other form: `$name$` stands for any run, and all else for itself. Both forms and
//! their meaning are those of `mongorestore --nsInclude`, `--nsFrom` and `--nsTo`.

use crate::error::{Error, ErrorKind};

/// A pattern over full names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamespacePattern {
    text: String,
    parts: Vec<Part>,
}

/// A piece of a pattern or of a name to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    /// These characters.
    Literal(String),
    /// Any run of characters, by the variable's name or, for a star, by its number.
    Any(String),
}

impl NamespacePattern {
    /// Reads a pattern with stars; a `$` is a character like any other.
    pub fn wildcards(text: &str) -> Self {
        Self { text: text.to_owned(), parts: starred(text) }
    }

    /// Reads a pattern with variables, of which each may occur once.
    fn variables(text: &str) -> Result<Self, Error> {
        let parts = with_variables(text)?;
        let names: Vec<_> = parts.iter().filter_map(Part::name).collect();
        if let Some(twice) =
            names.iter().find(|&name| names.iter().filter(|n| n == &name).count() > 1)
        {
            return Err(usage(format!("the variable ${twice}$ occurs twice in `{text}`")));
        }
        Ok(Self { text: text.to_owned(), parts })
    }

    /// A pattern that only this name matches.
    pub fn exactly(name: &str) -> Self {
        Self { text: name.to_owned(), parts: vec![Part::Literal(name.to_owned())] }
    }

    /// The pattern with stars that only this name matches, as it would be typed.
    pub fn escape(name: &str) -> String {
        name.replace('\\', "\\\\").replace('*', "\\*")
    }

    /// The pattern as it was typed.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether the name matches.
    pub fn matches(&self, name: &str) -> bool {
        self.captures(name).is_some()
    }

    /// What each star or variable stands for in a name that matches, the first ones as short as
    /// can be.
    ///
    /// A star takes any characters, so the earliest place for the literal behind it is always a
    /// right one: no place has to be tried twice.
    fn captures<'n>(&self, name: &'n str) -> Option<Vec<(&str, &'n str)>> {
        let mut caught = Vec::new();
        let mut rest = name;
        let mut open: Option<&str> = None;
        for (number, part) in self.parts.iter().enumerate() {
            match part {
                Part::Any(variable) => {
                    if let Some(empty) = open.replace(variable) {
                        caught.push((empty, ""));
                    }
                }
                Part::Literal(literal) => {
                    let is_last = number + 1 == self.parts.len();
                    let at = match open {
                        None => rest.starts_with(literal.as_str()).then_some(0)?,
                        Some(_) if is_last => {
                            rest.ends_with(literal.as_str()).then(|| rest.len() - literal.len())?
                        }
                        Some(_) => rest.find(literal.as_str())?,
                    };
                    if let Some(variable) = open.take() {
                        caught.push((variable, &rest[..at]));
                    }
                    rest = &rest[at + literal.len()..];
                }
            }
        }
        if let Some(variable) = open {
            caught.push((variable, rest));
            rest = "";
        }
        rest.is_empty().then_some(caught)
    }
}

impl Part {
    fn name(&self) -> Option<&str> {
        match self {
            Self::Literal(_) => None,
            Self::Any(name) => Some(name),
        }
    }
}

/// A rule that gives names that match one pattern the form of another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rename {
    from: NamespacePattern,
    to: Vec<Part>,
}

impl Rename {
    /// Reads both sides. With a `$` in `from`, variables are carried over by their names; else
    /// stars by their order.
    pub fn new(from: &str, to: &str) -> Result<Self, Error> {
        if from.contains('$') {
            let from = NamespacePattern::variables(from)?;
            let to_parts = with_variables(to)?;
            let known: Vec<_> = from.parts.iter().filter_map(Part::name).collect();
            if let Some(unknown) =
                to_parts.iter().filter_map(Part::name).find(|n| !known.contains(n))
            {
                return Err(usage(format!(
                    "the variable ${unknown}$ of `{to}` does not occur in `{}`",
                    from.text
                )));
            }
            return Ok(Self { from, to: to_parts });
        }
        if to.contains('$') {
            return Err(usage(format!("`{to}` has a $, but `{from}` has no variables")));
        }
        let rename = Self { from: NamespacePattern::wildcards(from), to: starred(to) };
        let stars = |parts: &[Part]| parts.iter().filter(|part| part.name().is_some()).count();
        if stars(&rename.from.parts) != stars(&rename.to) {
            return Err(usage(format!("`{from}` and `{to}` have different numbers of stars")));
        }
        Ok(rename)
    }

    /// The names it applies to.
    pub fn from(&self) -> &NamespacePattern {
        &self.from
    }

    /// The new name, where the rule applies.
    pub fn apply(&self, name: &str) -> Option<String> {
        let caught = self.from.captures(name)?;
        Some(
            self.to
                .iter()
                .map(|part| match part {
                    Part::Literal(literal) => literal.as_str(),
                    Part::Any(variable) => caught
                        .iter()
                        .find(|(name, _)| name == variable)
                        .map_or("", |(_, value)| value),
                })
                .collect(),
        )
    }
}

fn starred(text: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut literal = String::new();
    let mut stars = 0_usize;
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            // A backslash at the very end stands for nothing.
            '\\' => literal.extend(characters.next()),
            '*' => {
                push_literal(&mut parts, &mut literal);
                parts.push(Part::Any(stars.to_string()));
                stars += 1;
            }
            other => literal.push(other),
        }
    }
    push_literal(&mut parts, &mut literal);
    parts
}

fn with_variables(text: &str) -> Result<Vec<Part>, Error> {
    let mut parts = Vec::new();
    for (number, piece) in text.split('$').enumerate() {
        if number % 2 == 1 {
            parts.push(Part::Any(piece.to_owned()));
        } else {
            push_literal(&mut parts, &mut piece.to_owned());
        }
    }
    if text.matches('$').count() % 2 == 1 {
        return Err(usage(format!("`{text}` has a $ without its partner"))
            .hint("variables are written $name$"));
    }
    Ok(parts)
}

fn push_literal(parts: &mut Vec<Part>, literal: &mut String) {
    if !literal.is_empty() {
        parts.push(Part::Literal(std::mem::take(literal)));
    }
}

fn usage(message: String) -> Error {
    Error::new(ErrorKind::Usage, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn matches(pattern: &str, name: &str) -> bool {
        NamespacePattern::wildcards(pattern).matches(name)
    }

    #[test]
    fn stars_stand_for_any_run() {
        for (pattern, name, expected) in [
            ("shop.orders", "shop.orders", true),
            ("shop.orders", "shop.orders2", false),
            ("shop.*", "shop.a.b", true),
            ("*.foo", "db.x.foo", true),
            ("*", "anything.at all", true),
            ("**", "a.b", true),
            ("a*b*c", "aXbYbc", true),
            ("a*bc*bc", "abc", false),
            ("a\\*b", "a*b", true),
            ("a\\*b", "aXb", false),
            ("a\\\\*", "a\\x", true),
            ("a?c", "abc", false),
            ("a.$b", "a.$b", true),
            ("Shop.*", "shop.x", false),
            ("a.new*", "a.new\nline", true),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn renames_carry_over_what_was_caught() {
        for (from, to, name, expected) in [
            ("a.*", "b.*", "a.x", Some("b.x")),
            ("a.*", "b.*", "c.x", None),
            ("*.x*", "y*.*z", "a.xb", Some("ya.bz")),
            ("$db$.$c$", "$c$.$db$", "a.b.c", Some("b.c.a")),
            ("$n$.x", "$n$_$n$.x", "a.x", Some("a_a.x")),
            ("a.b*$x$", "c.$x$", "a.b*1", Some("c.1")),
            ("a.b", "c.d", "a.b", Some("c.d")),
        ] {
            let rename = Rename::new(from, to).expect("a rule");
            assert_eq!(rename.apply(name).as_deref(), expected, "{from} {to} {name}");
        }
    }

    #[test]
    fn rules_that_cannot_work_are_refused() {
        for (from, to) in [
            ("a.*", "b.c"),
            ("a.b", "b.*"),
            ("$a$.$a$", "$a$.x"),
            ("$a$.x", "$b$.x"),
            ("$a.x", "b.x"),
            ("$a$.x", "$a.x"),
            ("a.x", "$a$.x"),
        ] {
            assert!(Rename::new(from, to).is_err(), "{from} {to}");
        }
    }

    /// The obvious matcher: every length is tried for every star.
    fn naive(pattern: &[char], name: &[char]) -> bool {
        match pattern.split_first() {
            None => name.is_empty(),
            Some(('*', rest)) => (0..=name.len()).any(|taken| naive(rest, &name[taken..])),
            Some((first, rest)) => name.first() == Some(first) && naive(rest, &name[1..]),
        }
    }

    proptest! {
        #[test]
        fn the_matcher_agrees_with_the_obvious_one(
            pattern in "[ab.*]{0,7}",
            name in "[ab.]{0,9}",
        ) {
            let characters = |text: &str| text.chars().collect::<Vec<_>>();
            let expected = naive(&characters(&pattern), &characters(&name));
            prop_assert_eq!(matches(&pattern, &name), expected);
        }

        #[test]
        fn an_escaped_name_matches_itself_alone(
            name in "[a*.\\\\]{0,7}",
            other in "[a*.\\\\]{0,7}",
        ) {
            let pattern = NamespacePattern::wildcards(&NamespacePattern::escape(&name));
            prop_assert!(pattern.matches(&name));
            prop_assert_eq!(pattern.matches(&other), name == other);
        }

        #[test]
        fn a_rename_to_itself_changes_nothing(pattern in "[ab.*]{0,7}", name in "[ab.]{0,9}") {
            let rename = Rename::new(&pattern, &pattern).expect("a rule");
            if let Some(renamed) = rename.apply(&name) {
                prop_assert_eq!(renamed, name);
            }
        }
    }
}
