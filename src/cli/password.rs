//! Asks for a password where none was given.

use std::io::{BufRead, IsTerminal};

use crate::cli::connection::StandardInput;
use crate::error::{Error, ErrorKind};

/// Asks for the password of something, on the terminal and without showing it.
///
/// Where standard input is no terminal, its first line is taken, as the peer does, unless it
/// carries the dump.
pub(super) fn ask(whose: &str, input: StandardInput) -> Result<String, Error> {
    let stdin = std::io::stdin();
    if input == StandardInput::Free && !stdin.is_terminal() {
        let mut line = String::new();
        let read = stdin.lock().read_line(&mut line);
        let line = line.trim_end_matches(['\r', '\n']);
        if read.is_ok() && !line.is_empty() {
            return Ok(line.to_owned());
        }
    }
    // The prompt is opened as the terminal itself, wherever the standard streams lead.
    let asked = rpassword::prompt_password(format!("password of {whose}: "));
    let password = asked.map_err(|_| missing(whose, "there is no terminal to ask for it"))?;
    if password.is_empty() {
        return Err(missing(whose, "none was entered"));
    }
    Ok(password)
}

fn missing(whose: &str, why: &str) -> Error {
    Error::new(ErrorKind::Usage, format!("the password of {whose} is missing, and {why}"))
        .hint("put it into a file that only you can read, and give that with --config FILE")
}
