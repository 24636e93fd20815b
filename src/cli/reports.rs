//! The files that a report is written to; the ending of each picks its form.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::error::{Error, ErrorKind};
use crate::report::{ProbeReport, Report, html, json};

#[derive(Args, Clone, Debug, Default)]
pub(super) struct ReportArgs {
    /// Write the report to this file as well: as a page for a browser where its name ends in
    /// .html, else as JSON; may be given several times
    #[arg(long, value_name = "FILE", help_heading = "What is shown")]
    report: Vec<PathBuf>,
}

impl ReportArgs {
    /// Whether a report is wanted.
    pub(super) fn is_given(&self) -> bool {
        !self.report.is_empty()
    }

    /// Finds out before a restore that its report could not be written after it.
    pub(super) fn check(&self) -> Result<(), Error> {
        self.report.iter().try_for_each(|file| check_writable(file, "--report"))
    }

    /// The first of the files.
    pub(super) fn first(&self) -> Option<&PathBuf> {
        self.report.first()
    }

    /// Writes the report of a probe to each of the files.
    pub(super) fn write_probe(&self, report: &ProbeReport) -> Result<(), Error> {
        let write = |file: &PathBuf| {
            let is_page = is_page(file);
            let text = if is_page { html::probe_page(report) } else { json::render(report)? };
            written(file, &text).map_err(|error| error.hint("the probe itself has ended"))
        };
        let written: Vec<_> = self.report.iter().map(write).collect();
        written.into_iter().collect()
    }

    /// Writes the report to each of the files; one that cannot be written does not keep the others
    /// from being written.
    pub(super) fn write(&self, report: &Report) -> Result<(), Error> {
        let written: Vec<_> = self.report.iter().map(|file| write(file, report)).collect();
        written.into_iter().collect()
    }
}

fn write(file: &Path, report: &Report) -> Result<(), Error> {
    let text = if is_page(file) { html::page(report) } else { json::render(report)? };
    written(file, &text).map_err(|error| error.hint("the restore itself has ended as shown above"))
}

fn written(file: &Path, text: &str) -> Result<(), Error> {
    std::fs::write(file, text).map_err(|error| {
        Error::new(ErrorKind::Internal, format!("the report cannot be written: {error}"))
            .in_file(file)
    })
}

/// The same for a report that is JSON and never a page.
pub(super) fn check_json(file: &Path) -> Result<(), Error> {
    if is_page(file) {
        let refused = "only the report of a restore or a probe can be a page; this one is JSON";
        return Err(Error::new(ErrorKind::Usage, refused)
            .in_file(file)
            .hint("give --report a name that ends in .json"));
    }
    check_writable(file, "--report")
}

/// Whether the ending of a name asks for a page.
fn is_page(file: &Path) -> bool {
    let ending = file.extension().map(|ending| ending.to_string_lossy().to_ascii_lowercase());
    matches!(ending.as_deref(), Some("html" | "htm"))
}

/// Finds out before a run that its report could not be written after it, to a file that one of
/// these options names.
pub(super) fn check_writable(file: &Path, options: &str) -> Result<(), Error> {
    let is_new = !file.exists();
    let opened = std::fs::OpenOptions::new().append(true).create(true).open(file);
    let checked = opened.and_then(|_| if is_new { std::fs::remove_file(file) } else { Ok(()) });
    checked.map_err(|error| {
        Error::new(ErrorKind::Usage, format!("the report could not be written: {error}"))
            .in_file(file)
            .hint(format!("nothing was restored; give {options} a file in a folder that exists"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ending_picks_the_form() {
        for (name, expected) in [
            ("run.html", true),
            ("run.HTM", true),
            ("a.html/run", false),
            ("run.json", false),
            ("html", false),
            ("run.html.json", false),
        ] {
            assert_eq!(is_page(Path::new(name)), expected, "{name}");
        }
    }
}
