//! Finds where JSON documents end, by their brackets, without parsing them.

use std::ops::Range;

/// Finds the documents of a text that is handed over bit by bit.
#[derive(Debug)]
pub(super) struct Scanner {
    is_array: bool,
}

/// What was found in a piece of text.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Whole documents, in stretches of the piece.
    pub(super) stretches: Vec<Range<usize>>,
    /// Where what was not looked at begins.
    pub(super) end: usize,
    /// Whether the array is over.
    pub(super) is_over: bool,
}

impl Scanner {
    pub(super) fn new(is_array: bool) -> Self {
        Self { is_array }
    }

    /// Finds the whole documents at the beginning of a piece.
    pub(super) fn scan(&mut self, text: &[u8]) -> Found {
        let mut found = Found::default();
        let mut at = 0;
        while let Some(start) = self.start(text, at) {
            if self.is_array && text[start] == b']' {
                found.is_over = true;
                return found;
            }
            let Some(end) = end_of_value(text, start) else {
                return found;
            };
            found.stretches.push(start..end);
            found.end = end;
            at = end;
        }
        found
    }

    /// What is left at the end of the text and is no whole document.
    pub(super) fn rest(&self, text: &[u8]) -> Option<Range<usize>> {
        self.start(text, 0).map(|start| start..text.len())
    }

    /// Whether a document begins here and ends in this piece.
    pub(super) fn ends_in(&self, text: &[u8]) -> bool {
        self.start(text, 0).is_none_or(|start| end_of_value(text, start).is_some())
    }

    /// Where the next document begins: after blanks, and in an array after commas.
    fn start(&self, text: &[u8], at: usize) -> Option<usize> {
        let is_between = |byte: &u8| byte.is_ascii_whitespace() || (self.is_array && *byte == b',');
        text[at..].iter().position(|byte| !is_between(byte)).map(|position| at + position)
    }
}

/// Where a value ends: an object or array at its last bracket, anything else before the next blank,
/// comma or bracket.
fn end_of_value(text: &[u8], start: usize) -> Option<usize> {
    if !matches!(text[start], b'{' | b'[') {
        let is_end = |byte: &u8| {
            byte.is_ascii_whitespace() || matches!(byte, b',' | b'{' | b'}' | b'[' | b']')
        };
        // At least one byte, so that a stray bracket is gone past.
        let after = text.get(start + 1..)?;
        return after.iter().position(is_end).map(|length| start + 1 + length);
    }
    let (mut depth, mut at) = (0_usize, start);
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => at = end_of_string(text, at)?,
            b'{' | b'[' => {
                depth += 1;
                at += 1;
            }
            b'}' | b']' => {
                depth -= 1;
                at += 1;
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => at += 1,
        }
    }
    None
}

/// Where a text in quotes ends that begins here.
fn end_of_string(text: &[u8], start: usize) -> Option<usize> {
    let mut at = start + 1;
    loop {
        at += memchr::memchr2(b'"', b'\\', text.get(at..)?)?;
        if text[at] == b'"' {
            return Some(at + 1);
        }
        at += 2;
    }
}
