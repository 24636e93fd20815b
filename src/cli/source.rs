//! The arguments that say where the dump is, beside the path given without a flag.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::command::restore::{ArchivePlace, Location};
use crate::error::{Error, ErrorKind};

/// What stands for standard input, as in other tools.
const INPUT: &str = "-";

/// The dump that is meant where none is named.
const DUMP_DEFAULT: &str = "dump";

/// Where the dump is.
#[derive(Args, Clone, Debug, Default)]
pub(super) struct SourceArgs {
    /// Read an archive: FILE, or standard input without it; an archive that is given as the dump is
    /// recognised without this flag
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = INPUT)]
    archive: Option<PathBuf>,

    /// The dump, as without a flag
    #[arg(long, value_name = "PATH")]
    dir: Option<PathBuf>,

    /// Accepted and not needed: what is compressed is known by its content
    #[arg(long)]
    gzip: bool,
}

/// Where the dump is, and what is worth saying about how that was understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Source {
    pub(super) location: Location,
    pub(super) note: Option<String>,
}

impl Source {
    /// Whether the dump comes through standard input, which then nothing else may read.
    pub(super) fn is_input(&self) -> bool {
        matches!(self.location, Location::Input | Location::Archive(ArchivePlace::Input))
    }
}

impl SourceArgs {
    /// Where the dump is; `dump` is what was given without a flag.
    pub(super) fn source(&self, dump: Option<&Path>) -> Result<Source, Error> {
        if self.dir.is_some() && dump.is_some() {
            let message = "the dump is named twice: by --dir and without a flag";
            return Err(Error::new(ErrorKind::Usage, message).hint("leave one of them out"));
        }
        let dump = self.dir.as_deref().or(dump).unwrap_or(Path::new(DUMP_DEFAULT));
        let is_input = |path: &Path| path == Path::new(INPUT);
        let plain = |location| Ok(Source { location, note: None });
        match &self.archive {
            None if is_input(dump) => plain(Location::Input),
            None => plain(Location::Path(dump.to_path_buf())),
            Some(file) if !is_input(file) => {
                plain(Location::Archive(ArchivePlace::File(file.clone())))
            }
            Some(_) if is_input(dump) => plain(Location::Archive(ArchivePlace::Input)),
            Some(_) if dump.exists() && !dump.is_dir() => Ok(beside_flag(dump)),
            Some(_) if dump == Path::new(DUMP_DEFAULT) => {
                plain(Location::Archive(ArchivePlace::Input))
            }
            Some(_) => {
                let message = format!("`{}` is no file with an archive", dump.display());
                Err(Error::new(ErrorKind::Usage, message)
                    .hint("--archive alone reads standard input; a file is named --archive=FILE"))
            }
        }
    }

    /// What is said of flags that are not needed, to those who want to know all.
    pub(super) fn needless(&self) -> Option<&'static str> {
        self.gzip.then_some("--gzip is not needed: compressed files are known by their content")
    }

    /// The archive as the report tells it.
    pub(super) fn told(&self) -> Option<String> {
        self.archive.as_ref().map(|file| file.display().to_string())
    }
}

/// The archive that `--archive FILE`, with a space, means. The peer would read standard input and
/// say nothing of the file.
fn beside_flag(file: &Path) -> Source {
    Source {
        location: Location::Archive(ArchivePlace::File(file.to_path_buf())),
        note: Some(format!(
            "the archive is read from `{}`; for standard input, give --archive alone",
            file.display()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        dump: Option<PathBuf>,
        #[command(flatten)]
        source: SourceArgs,
    }

    fn source(words: &[&str]) -> Result<Source, String> {
        let words = [&["restore"], words].concat();
        let line = Line::try_parse_from(words).map_err(|error| error.to_string())?;
        line.source.source(line.dump.as_deref()).map_err(|error| error.to_string())
    }

    fn archive(file: &str) -> Location {
        Location::Archive(ArchivePlace::File(file.into()))
    }

    #[test]
    fn flags_and_path_tell_where_the_dump_is() {
        for (words, expected) in [
            (&[][..], Location::Path("dump".into())),
            (&["backup"], Location::Path("backup".into())),
            (&["--dir", "backup"], Location::Path("backup".into())),
            (&["--dir=backup"], Location::Path("backup".into())),
            (&["-"], Location::Input),
            (&["--dir", "-"], Location::Input),
            (&["--archive"], Location::Archive(ArchivePlace::Input)),
            (&["--archive", "-"], Location::Archive(ArchivePlace::Input)),
            (&["--archive=-"], Location::Archive(ArchivePlace::Input)),
            (&["--archive=a.archive"], archive("a.archive")),
            (&["--archive=a.archive", "ignored"], archive("a.archive")),
            (&["--gzip", "backup"], Location::Path("backup".into())),
        ] {
            assert_eq!(source(words), Ok(Source { location: expected, note: None }), "{words:?}");
        }
        assert!(source(&["--dir", "a", "b"]).is_err());
    }

    #[test]
    fn better_than_the_peer_b17_a_file_after_the_flag_is_the_archive() {
        // The peer takes a value only with `=`, so that `--archive FILE` waits for standard input.
        let file = tempfile::NamedTempFile::new().expect("a file");
        let path = file.path().to_str().expect("UTF-8");
        let source = source(&["--archive", path]).expect("understood");
        assert_eq!(source.location, archive(path));
        assert!(source.note.expect("a note").contains(path));
        let error = self::source(&["--archive", "not/there"]).expect_err("no such file");
        assert!(error.contains("not/there"), "{error}");
    }
}
