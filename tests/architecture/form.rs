//! What a file looks like.

use crate::source::{Source, word_positions};

/// Longer files hold more than one thing; tests, comments and blank lines are not counted.
const CODE_LINES_MAX: usize = 500;

/// As far as `rustfmt.toml` lets code go; it lets strings and comments go farther.
const COLUMNS_MAX: usize = 100;

/// The binary starts the runtime and runs the command line, nothing else.
const MAIN_LINES_MAX: usize = 30;

/// Words that put off what should be done or said, cut so that this file does not hold them.
const REFUSED_WORDS: [&str; 4] =
    [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X"), concat!("HA", "CK")];

/// Module names that say nothing about what is inside.
const REFUSED_NAMES: [&str; 9] =
    ["util", "utils", "common", "helper", "helpers", "misc", "manager", "base", "service"];

/// Everything about the form of these files that is not as it should be.
pub(crate) fn violations(sources: &[Source]) -> Vec<String> {
    sources.iter().flat_map(violations_of).collect()
}

fn violations_of(source: &Source) -> Vec<String> {
    let path = &source.path;
    let mut found = Vec::new();
    if !source.text.starts_with("//! ") {
        found.push(format!("{path}:1: the first line says in `//!` what the file is for"));
    }
    let name = path.rsplit('/').next().unwrap_or_default().trim_end_matches(".rs");
    if REFUSED_NAMES.contains(&name) {
        found.push(format!("{path}: the name says nothing about what is inside"));
    }
    let code_lines = source.code.lines().filter(|line| !line.trim().is_empty()).count();
    if code_lines > CODE_LINES_MAX && !source.for_tests {
        found.push(format!("{path}: {code_lines} lines of code, more than {CODE_LINES_MAX}"));
    }
    let lines = source.text.lines().count();
    if path == "src/main.rs" && lines > MAIN_LINES_MAX {
        found.push(format!("{path}: {lines} lines, more than {MAIN_LINES_MAX}"));
    }
    // Expected output in tests is as wide as the output.
    let tests_at = source.text.find("\nmod tests {").map(|at| source.text[..=at].lines().count());
    for (line, number) in source.text.lines().zip(1..) {
        let columns = line.chars().count();
        let in_tests = source.for_tests || tests_at.is_some_and(|at| number > at);
        if columns > COLUMNS_MAX && !in_tests {
            found.push(format!("{path}:{number}: {columns} columns, more than {COLUMNS_MAX}"));
        }
        for word in REFUSED_WORDS {
            if word_positions(line, word).next().is_some() {
                found.push(format!("{path}:{number}: {word} is refused: do it or leave it"));
            }
        }
    }
    found
}

mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<String> {
        violations(&[Source::new(path, text)])
    }

    #[test]
    fn a_file_without_its_purpose_is_found() {
        assert_eq!(found("src/plan.rs", "use x;\n").len(), 1);
        assert_eq!(found("src/plan.rs", "//! Plans.\nuse x;\n"), [""; 0]);
    }

    #[test]
    fn long_files_and_long_lines_are_found() {
        let long = |lines: usize| format!("//! Long.\n\n// Why.\n{}", "let x = 1;\n".repeat(lines));
        assert_eq!(found("src/plan.rs", &long(500)), [""; 0]);
        assert_eq!(found("src/plan.rs", &long(501)).len(), 1);
        assert_eq!(found("src/main.rs", &long(28)).len(), 1);
        let wide = |columns: usize| format!("//! Wide.\n// {}\n", "ü".repeat(columns - 3));
        assert_eq!(found("src/plan.rs", &wide(100)), [""; 0]);
        let expected = ["src/plan.rs:2: 101 columns, more than 100"];
        assert_eq!(found("src/plan.rs", &wide(101)), expected);
    }

    #[test]
    fn tests_do_not_count_as_code() {
        let tests = "    let x = 1;\n".repeat(600);
        let text = format!("//! Tested.\n#[cfg(test)]\nmod tests {{\n{tests}}}\n");
        assert_eq!(found("src/plan.rs", &text), [""; 0]);
    }

    #[test]
    fn refused_words_and_names_are_found() {
        for word in REFUSED_WORDS {
            assert_eq!(found("src/plan.rs", &format!("//! Plans.\n// {word}: later\n")).len(), 1);
            assert_eq!(found("src/plan.rs", &format!("//! Plans.\n// {word}_LIKE\n")), [""; 0]);
        }
        assert_eq!(found("src/plan/util.rs", "//! Utilities.\n").len(), 1);
    }
}
