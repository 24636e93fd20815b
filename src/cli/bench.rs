//! The arguments of `restorm bench`.

mod ceiling;
mod cells;

use std::path::{Path, PathBuf};

use clap::Args;

use crate::cli::connection::{ConnectionArgs, StandardInput, Surroundings, split_positionals};
use crate::cli::output;
use crate::cli::reports::check_writable;
use crate::cli::restore::size;
use crate::cli::signals::{self, Voice};
use crate::command::bench::{
    BenchOptions, Ceiling, Comparison, Existing, Measured, Place, Rounds, RunOptions, Search,
    bench, compare, measured_before, page, summary, table,
};
use crate::command::restore::Stop;
use crate::error::{Error, ErrorKind};
use crate::exit::ExitStatus;
use crate::report::json;

pub use ceiling::{CeilingArgs, HoldArgs};
pub(super) use ceiling::{hold, run_ceiling};

/// Set, a debug build measures: for tests of the command, which are about no figure.
const DEBUG_VARIABLE: &str = "RESTORM_BENCH_DEBUG";

/// What the folder of samples is called where no file is named.
const RESULTS: &str = "bench-results";

/// Compare restores of a dump under different settings, and with other tools
///
/// Each setting is restored again and again, in rounds of random order, each run a process of its
/// own, with the collections dropped or the server replaced in between. Medians come with the
/// interval that holds them with a probability of 95 %, ratios are taken pair by pair, outliers are
/// named, and a noisy machine is told of. After each run the server counts the documents: who loses
/// some has no rank.
///
/// Options of restore that all runs have stand behind `--`.
#[derive(Args, Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "flags as typed; options have enums")]
#[command(after_help = after_help(), disable_help_flag = true)]
#[command(override_usage = "restorm bench [OPTIONS] [DUMP] [URI] [-- OPTIONS OF RESTORE]")]
pub struct BenchArgs {
    /// The dump, as restore takes it [default: dump]
    #[arg(value_name = "DUMP")]
    positionals: Vec<PathBuf>,

    /// Print help; `-h` is the host, as in restore
    #[arg(long, action = clap::ArgAction::Help)]
    help: Option<bool>,

    /// Options of restore that all of its runs have
    #[arg(last = true, value_name = "OPTIONS OF RESTORE")]
    fixed: Vec<String>,

    #[command(flatten)]
    connection: ConnectionArgs,

    /// An option of restore with the values to compare, such as workers=1,2,4, journal=on,off or
    /// workers=8,default; may be given several times, for every combination. A comma within a value
    /// is `\,`
    #[arg(long, value_name = "NAME=VALUES", help_heading = "What is compared")]
    vary: Vec<String>,

    /// Another program to compare with: mongorestore, mongorestore:ARGUMENTS, or any command with
    /// the placeholders {dump} and {uri}, or {host} and {port}; a `NAME=` before it names it
    #[arg(long, value_name = "COMMAND", help_heading = "What is compared")]
    tool: Vec<String>,

    /// An option of the private mongods with the values to compare, such as
    /// wiredTigerCacheSizeGB=1,4; journal=on,off where the server still can
    #[arg(long, value_name = "NAME=VALUES", requires = "fresh", help_heading = "What is compared")]
    vary_server: Vec<String>,

    /// Send the same batches, encoded beforehand, beside each restore, and tell what share of that
    /// rate it reaches
    #[arg(long, help_heading = "What is compared", conflicts_with = "search")]
    ceiling: bool,

    /// Bytes of documents that --ceiling may hold in memory [default: half of what is free]
    #[arg(long, value_name = "SIZE", value_parser = size, help_heading = "What is compared")]
    ceiling_bytes: Option<usize>,

    /// Look for the best number of workers: double it while that helps, then closer
    #[arg(long, help_heading = "What is compared")]
    #[arg(conflicts_with_all = ["vary", "tool", "vary_server"])]
    search: bool,

    /// The mongod to start for the benchmark on 127.0.0.1, in place of a server that runs
    #[arg(long, value_name = "PATH", help_heading = "Private servers")]
    mongod: Option<PathBuf>,

    /// Start a new mongod with new data for each run
    #[arg(long, requires = "mongod", help_heading = "Private servers")]
    fresh: bool,

    /// Folder for the data of private servers [default: the system's temporary folder]
    #[arg(long, value_name = "DIR", help_heading = "Private servers")]
    work: Option<PathBuf>,

    /// Drop the dump's collections even if they are there before the first run
    #[arg(long, help_heading = "How it is measured")]
    drop: bool,

    /// Runs of each setting that count
    #[arg(long, value_name = "N", default_value_t = 5, help_heading = "How it is measured")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=10_000))]
    rounds: u32,

    /// Go on until no interval of documents a second reaches farther than this share of its median,
    /// such as 5%
    #[arg(long, value_name = "SHARE", value_parser = share, help_heading = "How it is measured")]
    until_interval: Option<f64>,

    /// Runs of each setting after which --until-interval gives up
    #[arg(long, value_name = "N", default_value_t = 50, help_heading = "How it is measured")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=10_000))]
    rounds_max: u32,

    /// Runs of each setting beforehand, which do not count
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "How it is measured")]
    #[arg(value_parser = clap::value_parser!(u32).range(..=1000))]
    warm_up: u32,

    /// What the orders of the rounds and the resampling depend on
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "How it is measured")]
    seed: u64,

    /// Keep the samples in this file, each as soon as it is taken [default: a new one in
    /// bench-results]
    #[arg(long, value_name = "FILE", help_heading = "What is shown")]
    samples: Option<PathBuf>,

    /// Measure nothing, and tell again what samples say that were kept before
    #[arg(long, value_name = "FILE", help_heading = "What is shown")]
    #[arg(conflicts_with_all = ["samples", "vary", "tool", "mongod", "positionals"])]
    from_samples: Option<PathBuf>,

    /// Write the comparison to this file as JSON of the schema restorm.bench/1
    #[arg(long, value_name = "FILE", help_heading = "What is shown")]
    json: Option<PathBuf>,

    /// Write all runs to this file as comma-separated values
    #[arg(long, value_name = "FILE", help_heading = "What is shown")]
    csv: Option<PathBuf>,

    /// Write the comparison to this file as a page for a browser, with plots
    #[arg(long, value_name = "FILE", help_heading = "What is shown")]
    html: Option<PathBuf>,

    /// Show no line for each run
    #[arg(long, short, help_heading = "What is shown")]
    quiet: bool,
}

fn after_help() -> String {
    format!(
        "Examples:\n  \
         restorm bench dump --mongod /usr/bin/mongod --fresh --vary workers=1,2,4,8,default\n  \
         restorm bench dump mongodb://db1 --vary journal=on,off --tool mongorestore\n  \
         restorm bench dump --mongod mongod --fresh --vary-server wiredTigerCacheSizeGB=1,4\n  \
         restorm bench dump --mongod mongod --fresh --ceiling -- --workers 4\n  \
         restorm bench dump --mongod mongod --fresh --search\n  \
         restorm bench --from-samples bench-results/run.jsonl --html b.html\n\n\
         Exit status:\n{}",
        ExitStatus::table()
    )
}

/// A share such as `5%` or `0.05`.
fn share(text: &str) -> Result<f64, String> {
    let (number, unit) = match text.strip_suffix('%') {
        Some(number) => (number, 100.0),
        None => (text, 1.0),
    };
    match number.trim().parse::<f64>() {
        Ok(number) if number > 0.0 && number < unit => Ok(number / unit),
        _ => Err("a share such as 5% is needed".to_owned()),
    }
}

fn usage(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Usage, message)
}

impl BenchArgs {
    fn to_options(&self) -> Result<BenchOptions, Error> {
        let (positional, dump) = split_positionals(&self.positionals)?;
        let dump = dump.unwrap_or(Path::new("dump"));
        let what = cells::Wanted {
            dump,
            fixed: &self.fixed,
            vary: &self.vary,
            vary_server: &self.vary_server,
            tools: &self.tool,
        };
        let cells = if self.search { what.search()? } else { what.cells()? };
        Ok(BenchOptions {
            run: RunOptions {
                dump: dump.to_path_buf(),
                fixed: self.fixed.clone(),
                place: self.place(positional)?,
                work: self.work.clone().unwrap_or_else(std::env::temp_dir),
                samples: self.samples.clone().unwrap_or_else(new_file),
                seed: self.seed,
                existing: if self.drop { Existing::Dropped } else { Existing::Refused },
                ceiling_bytes: self.ceiling_bytes.map(|bytes| bytes as u64),
            },
            cells,
            tools: what.tools()?,
            rounds: Rounds {
                warm_ups: self.warm_up,
                least: self.rounds,
                until: self.until_interval,
                most: self.rounds_max,
            },
            ceiling: if self.ceiling { Ceiling::Measured } else { Ceiling::LeftOut },
            search: if self.search { Search::Workers } else { Search::Nothing },
        })
    }

    /// Finds out before a benchmark that nothing could be written after it.
    fn check_files(&self) -> Result<(), Error> {
        let files = [&self.json, &self.csv, &self.html];
        files
            .into_iter()
            .flatten()
            .try_for_each(|file| check_writable(file, "--json, --csv, --html"))
    }

    fn place(&self, positional: Option<&str>) -> Result<Place, Error> {
        if let Some(mongod) = &self.mongod {
            if self.connection.names_server() || positional.is_some() {
                return Err(usage("--mongod starts a server; it cannot be used with another"));
            }
            return Ok(Place::Private { mongod: mongod.clone(), is_fresh: self.fresh });
        }
        let warn = |text: &str| output::say(&format!("warning: {text}"));
        let around =
            Surroundings { positional, database: None, input: StandardInput::Free, warn: &warn };
        let server = self.connection.server(around)?;
        Ok(Place::Running(server.uri.to_text()))
    }

    fn show(&self, measured: Measured) -> Result<ExitStatus, Error> {
        let comparison = compare(measured.samples);
        output::data(&summary(&comparison));
        if let Some(file) = &self.json {
            write(file, &json::render(&comparison)?)?;
        }
        if let Some(file) = &self.csv {
            write(file, &table(&comparison))?;
        }
        if let Some(file) = &self.html {
            write(file, &page(&comparison))?;
        }
        Ok(status(&comparison, measured.is_interrupted))
    }
}

/// Wherever a run failed or lost documents, the comparison is not whole.
fn status(comparison: &Comparison, is_interrupted: bool) -> ExitStatus {
    if is_interrupted {
        ExitStatus::Interrupted
    } else if comparison.cells.iter().any(|cell| cell.failed_runs > 0) {
        ExitStatus::Failures
    } else {
        ExitStatus::Restored
    }
}

fn write(file: &Path, text: &str) -> Result<(), Error> {
    std::fs::write(file, text).map_err(|error| {
        Error::new(ErrorKind::Internal, format!("the comparison cannot be written: {error}"))
            .in_file(file)
            .hint("--from-samples tells it again from the samples that were kept")
    })
}

/// A new file for samples.
fn new_file() -> PathBuf {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let seconds = now.map_or(0, |since| since.as_secs());
    Path::new(RESULTS).join(format!("{seconds}-{}.jsonl", std::process::id()))
}

/// What was not optimised says nothing about what is.
fn refuse_debug_build() -> Result<(), Error> {
    if cfg!(debug_assertions) && std::env::var_os(DEBUG_VARIABLE).is_none() {
        return Err(usage("this is a debug build, whose times say nothing")
            .hint("build with `cargo build --release`"));
    }
    Ok(())
}

/// Measures, and shows what was found.
pub(super) async fn run(args: BenchArgs) -> Result<ExitStatus, Error> {
    args.check_files()?;
    if let Some(file) = &args.from_samples {
        return args.show(measured_before(file)?);
    }
    refuse_debug_build()?;
    let options = args.to_options()?;
    let stop = Stop::new();
    signals::listen(stop.clone(), Voice::Bench, output::say);
    let tell = |line: &str| {
        if !args.quiet {
            output::say(line);
        }
    };
    let measured = Box::pin(bench(&options, &stop, &tell)).await?;
    args.show(measured)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        bench: BenchArgs,
    }

    fn options(line: &str) -> Result<BenchOptions, String> {
        let words = std::iter::once("bench").chain(line.split_whitespace());
        let line = Line::try_parse_from(words).map_err(|error| error.to_string())?;
        line.bench.to_options().map_err(|error| error.to_string())
    }

    fn labels(line: &str) -> Vec<String> {
        options(line).expect(line).cells.into_iter().map(|cell| cell.label).collect()
    }

    #[test]
    fn without_a_variation_restore_is_measured() {
        let options = options("d --mongod m").expect("parsed");
        assert_eq!(options.cells.len(), 1);
        assert_eq!(options.cells[0].label, "restorm");
        assert_eq!(options.run.place, Place::Private { mongod: "m".into(), is_fresh: false });
        assert_eq!((options.rounds.least, options.rounds.until), (5, None));
        assert!(options.run.samples.starts_with(RESULTS));
    }

    #[test]
    fn variations_and_tools_are_cells() {
        let line = "d --mongod m --fresh --vary workers=1,default --vary journal=on,off \
                    --tool mongorestore:-j=2 --vary-server x=1,2";
        assert_eq!(labels(line).len(), 10);
        assert_eq!(labels(line)[0], "restorm workers=1 journal=on x=1");
        assert_eq!(labels(line)[9], "mongorestore -j=2 x=2");
        let cells = options(line).expect("parsed").cells;
        assert_eq!(cells[0].words, ["--workers=1", "--journal=on"]);
        assert_eq!(cells[3].words, ["--journal=off"]);
    }

    #[test]
    fn flags_are_on_or_off_and_the_peers_spelling_is_taken() {
        let cells = |line: &str| options(line).expect(line).cells;
        let on_off = cells("d --mongod m --vary no-indexes=on,off");
        assert_eq!(
            (&on_off[0].words[..], &on_off[1].words[..]),
            (&["--no-indexes".to_owned()][..], &[][..])
        );
        let peer = cells("d --mongod m --vary numInsertionWorkersPerCollection=1,2");
        assert_eq!(peer[1].words, ["--numInsertionWorkersPerCollection=2"]);
        let lists = cells(r"d --mongod m --vary compressors=zstd\,snappy,none");
        assert_eq!(lists[0].words, ["--compressors=zstd,snappy"]);
        let fixed = options("d --mongod m -- --workers 4 --no-indexes").expect("parsed");
        assert_eq!(fixed.run.fixed, ["--workers", "4", "--no-indexes"]);
    }

    #[test]
    fn what_cannot_be_measured_is_refused_before_any_run() {
        for (line, words) in [
            ("d --vary wrokers=1,2", "no option `wrokers`"),
            ("d --vary workers=1,x", "workers=x"),
            ("d --vary workers=0", "workers=0"),
            ("d --vary no-indexes=maybe", "on or off"),
            ("d --vary uri=mongodb://x", "server"),
            ("d --vary report=x", "cannot be varied"),
            ("d --tool x", "{dump}"),
            ("d --vary-server x=1", "--fresh"),
            ("d --fresh", "--mongod"),
            ("d --mongod m --uri mongodb://x", "cannot be used with another"),
            ("d --search --vary workers=1,2", "cannot be used with"),
            ("d --until-interval 500%", "a share such as 5%"),
            ("d -- --wrokers 3", "wrokers"),
            ("d -- --dry-run", "cannot be measured"),
        ] {
            let error = options(line).expect_err(line);
            assert!(error.contains(words), "{line}: {error}");
        }
    }

    #[test]
    fn a_search_has_what_restore_finds_out_beside_it() {
        assert_eq!(labels("d --mongod m --search"), ["restorm workers=default"]);
        assert!(options("d --mongod m --search -- --workers 3").is_err());
    }

    #[test]
    fn shares_are_percents_or_parts() {
        assert_eq!((share("5%"), share("0.05")), (Ok(0.05), Ok(0.05)));
        assert!(share("0").is_err() && share("100%").is_err() && share("x").is_err());
    }
}
