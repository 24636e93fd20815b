//! Rust sources as far as the rules need to understand them.

use std::fs;
use std::path::Path;

/// A file of the clone.
pub(crate) struct Source {
    /// Its path from the clone, with forward slashes.
    pub(crate) path: String,
    /// All of its text.
    pub(crate) text: String,
    /// Its text without comments, the content of strings, and tests; lines keep their numbers.
    pub(crate) code: String,
    /// Whether all of it is compiled for tests only.
    pub(crate) for_tests: bool,
}

impl Source {
    /// A source of this text.
    pub(crate) fn new(path: &str, text: &str) -> Self {
        let code = without_tests(&without_comments_and_strings(text));
        let for_tests = path.starts_with("tests/");
        Self { path: path.to_string(), text: text.to_string(), code, for_tests }
    }

    /// Every Rust source under a folder of the clone, sorted.
    pub(crate) fn all(folder: &str) -> Vec<Self> {
        let clone = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut sources: Vec<Self> = walkdir::WalkDir::new(clone.join(folder))
            .sort_by_file_name()
            .into_iter()
            .map(|entry| entry.expect("the folder can be listed").into_path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
            .map(|path| {
                let text = fs::read_to_string(&path).expect("sources are UTF-8");
                let path = path.strip_prefix(clone).expect("it lies under the clone");
                Self::new(&path.to_string_lossy(), &text)
            })
            .collect();
        mark_test_files(&mut sources);
        sources
    }

    /// The modules from the crate's root to this file: `["dump", "writer"]`.
    pub(crate) fn module(&self) -> Vec<&str> {
        let inner = self.path.trim_start_matches("src/").trim_end_matches(".rs");
        inner.split('/').filter(|name| !matches!(*name, "lib" | "main")).collect()
    }

    /// The room the file belongs to: the first module, or `main` or `lib`.
    pub(crate) fn room(&self) -> &str {
        self.path.trim_start_matches("src/").split(['/', '.']).next().unwrap_or_default()
    }

    /// The paths inside this crate that the code names, from the root: `["limits", "READ_BYTES"]`.
    pub(crate) fn crate_paths(&self) -> Vec<Vec<String>> {
        let mut paths = Vec::new();
        for (at, root) in word_positions(&self.code, "crate").chain(self.supers()) {
            if let Some(rest) = self.code[at..].trim_start().strip_prefix("::") {
                expand(rest, &root, &mut paths);
            }
        }
        paths
    }

    /// Where a chain of `super` ends, and the module it has led to.
    fn supers(&self) -> impl Iterator<Item = (usize, Vec<String>)> {
        let module: Vec<String> = self.module().into_iter().map(String::from).collect();
        word_positions(&self.code, "super").filter_map(move |(mut at, _)| {
            let chained = self.code[..at - "super".len()].trim_end().ends_with("super::");
            let mut levels = 1;
            while let Some(rest) = self.code[at..].strip_prefix("::super") {
                at = self.code.len() - rest.len();
                levels += 1;
            }
            let kept = module.len().checked_sub(levels)?;
            (!chained).then(|| (at, module[..kept].to_vec()))
        })
    }
}

/// Where a word ends that is not part of a longer path or name.
pub(crate) fn word_positions<'a>(
    code: &'a str,
    word: &'a str,
) -> impl Iterator<Item = (usize, Vec<String>)> + 'a {
    code.match_indices(word).filter_map(move |(at, _)| {
        let end = at + word.len();
        let is_name = |character: char| character.is_alphanumeric() || character == '_';
        let starts = !code[..at].ends_with(is_name);
        let ends = !code[end..].starts_with(is_name);
        (starts && ends).then_some((end, Vec::new()))
    })
}

/// Expands what follows `crate::` into whole paths; a group yields one for each of its members.
/// Returns what stands behind it.
fn expand<'a>(code: &'a str, root: &[String], paths: &mut Vec<Vec<String>>) -> &'a str {
    let code = code.trim_start();
    if let Some(mut rest) = code.strip_prefix('{') {
        loop {
            rest = expand(rest, root, paths).trim_start();
            match rest.strip_prefix(',') {
                Some(more) if !more.trim_start().starts_with('}') => rest = more,
                Some(more) => return more.trim_start().trim_start_matches('}'),
                None => return rest.strip_prefix('}').unwrap_or(rest),
            }
        }
    }
    let end = code
        .find(|character: char| !(character.is_alphanumeric() || character == '_'))
        .unwrap_or(code.len());
    let (name, rest) = code.split_at(end);
    let path: Vec<String> =
        root.iter().map(String::as_str).chain([name]).map(String::from).collect();
    if let Some(deeper) = rest.strip_prefix("::") {
        return expand(deeper, &path, paths);
    }
    paths.push(path);
    // A rename: `as name`.
    let renamed = rest.trim_start().strip_prefix("as ");
    renamed.map_or(rest, |rest| rest.trim_start_matches(|c: char| c.is_alphanumeric() || c == '_'))
}

/// Blanks comments and what stands in strings; keeps every line break.
fn without_comments_and_strings(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        let skipped = match character {
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            'r' if raw_string(rest).is_some() && !code.ends_with(char::is_alphanumeric) => {
                raw_string(rest).unwrap_or(1)
            }
            '"' => string(rest),
            '\'' if rest.starts_with("'\"'") => 3,
            '\'' if rest.starts_with("'\\") => rest[2..].find('\'').map_or(1, |end| end + 3),
            _ => 0,
        };
        if skipped == 0 {
            code.push(character);
            rest = &rest[character.len_utf8()..];
        } else {
            code.push(' ');
            code.extend(rest[..skipped].chars().filter(|skipped| *skipped == '\n'));
            rest = &rest[skipped..];
        }
    }
    code
}

/// The length of the string literal at the start.
fn string(text: &str) -> usize {
    let mut escaped = false;
    for (at, character) in text.char_indices().skip(1) {
        match character {
            '"' if !escaped => return at + 1,
            _ => escaped = character == '\\' && !escaped,
        }
    }
    text.len()
}

/// The length of the raw string literal at the start, if there is one.
fn raw_string(text: &str) -> Option<usize> {
    let hashes = text[1..].chars().take_while(|character| *character == '#').count();
    let inner = text[1 + hashes..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    inner.find(&end).map(|at| 1 + hashes + 1 + at + end.len())
}

/// Blanks every item at the margin that is compiled for tests only.
fn without_tests(code: &str) -> String {
    let mut kept = Vec::new();
    let mut lines = code.lines();
    while let Some(line) = lines.next() {
        kept.push(if line == "#[cfg(test)]" { "" } else { line });
        if line != "#[cfg(test)]" {
            continue;
        }
        for line in lines.by_ref() {
            kept.push("");
            if line == "}" || line.ends_with(';') && !line.starts_with(' ') {
                break;
            }
        }
    }
    kept.join("\n")
}

/// Marks the files that hold a module declared for tests only.
fn mark_test_files(sources: &mut [Source]) {
    let mut declared = Vec::new();
    for source in sources.iter() {
        let folder = source.path.trim_end_matches(".rs");
        for pair in source.text.lines().collect::<Vec<_>>().windows(2) {
            let name = pair[1].trim_end_matches(';').rsplit(' ').next().unwrap_or_default();
            if pair[0] == "#[cfg(test)]" && pair[1].contains("mod ") && pair[1].ends_with(';') {
                declared.push(format!("{folder}/{name}"));
            }
        }
    }
    for source in sources {
        let module = source.path.trim_end_matches(".rs");
        source.for_tests |=
            declared.iter().any(|path| module == path || module.starts_with(&format!("{path}/")));
    }
}

mod tests {
    use super::*;

    fn paths(path: &str, text: &str) -> Vec<String> {
        Source::new(path, text).crate_paths().iter().map(|path| path.join("::")).collect()
    }

    #[test]
    fn paths_are_found_in_uses_groups_and_expressions() {
        let text = "use crate::{a::{B, c::D}, e as f, g::*,};\nfn x() { crate::h::i(crate::J) }";
        assert_eq!(
            paths("src/dump.rs", text),
            ["a::B", "a::c::D", "e", "g::", "h::i", "J"].map(String::from)
        );
        assert_eq!(paths("src/dump.rs", "pub(crate) fn x() {}"), [""; 0]);
    }

    #[test]
    fn a_chain_of_supers_is_followed() {
        assert_eq!(paths("src/dump/writer.rs", "use super::metadata::X;"), ["dump::metadata::X"]);
        assert_eq!(paths("src/dump/writer.rs", "use super::super::plan::X;"), ["plan::X"]);
        assert_eq!(paths("src/plan.rs", "use super::{load, target};"), ["load", "target"]);
    }

    #[test]
    fn comments_strings_and_tests_are_not_code() {
        let text = "// crate::a\nlet x = \"crate::b \\\" crate::c\"; r#\"crate::d\"#;\n\
                    let y = ['\"', '\\''];\n\
                    #[cfg(test)]\nmod tests {\n    use crate::e;\n}\nuse crate::f;";
        assert_eq!(paths("src/dump.rs", text), ["f"]);
        assert_eq!(Source::new("src/dump.rs", text).code.lines().count(), text.lines().count());
    }

    #[test]
    fn a_file_of_tests_is_known_by_its_declaration() {
        let mut sources = [
            Source::new("src/a.rs", "//! A.\n#[cfg(test)]\npub(crate) mod samples;\nmod b;"),
            Source::new("src/a/b.rs", ""),
            Source::new("src/a/samples.rs", ""),
            Source::new("src/a/samples/more.rs", ""),
        ];
        mark_test_files(&mut sources);
        assert_eq!(sources.map(|source| source.for_tests), [false, false, true, true]);
    }
}
