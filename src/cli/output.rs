//! Where text goes: data to standard output, everything else to standard error.

use std::io::{IsTerminal, Write};

/// A line for people. A closed standard error is no reason to fail.
pub(super) fn say(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

/// Data. A reader that has gone away, as in `| head`, is no reason to fail.
pub(super) fn data(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// A stream of this process.
#[derive(Clone, Copy)]
pub(super) enum Stream {
    /// Standard output.
    Out,
    /// Standard error.
    Error,
}

/// The columns of the terminal that a stream goes to, if it goes to one.
pub(super) fn columns(stream: Stream) -> Option<usize> {
    let size = match stream {
        Stream::Out => terminal_size::terminal_size_of(std::io::stdout()),
        Stream::Error => terminal_size::terminal_size_of(std::io::stderr()),
    };
    size.map(|(width, _)| usize::from(width.0))
}

/// Whether text for people may be coloured: on a terminal, unless `NO_COLOR` is set
/// (<https://no-color.org>).
pub(super) fn is_coloured() -> bool {
    let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    std::io::stderr().is_terminal() && !unwanted
}
