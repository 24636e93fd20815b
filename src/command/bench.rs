//! Compares restores: matrix → runner → samples → comparison.

use std::path::Path;

pub use crate::bench::compare::{Comparison, compare};
pub use crate::bench::csv::table;
pub use crate::bench::matrix::{Cell, Choice, DEFAULT, Kind, Variation, check, product};
use crate::bench::order;
pub use crate::bench::page::page;
pub use crate::bench::process::{HOLD, hold};
pub use crate::bench::runner::{Existing, Place, RunOptions, Sent};
use crate::bench::runner::{Runner, Turn};
use crate::bench::sample::{self, Sample, Samples};
use crate::bench::search;
pub use crate::bench::text::summary;
pub use crate::bench::tool::Tool;
use crate::error::{Error, ErrorKind};
use crate::load::Stop;
use crate::report::format::whole;

/// What is measured, and how often.
#[derive(Clone, Debug, PartialEq)]
pub struct BenchOptions {
    /// How a single run is made.
    pub run: RunOptions,
    /// The settings; all others are compared with the first.
    pub cells: Vec<Cell>,
    /// The other programs among them.
    pub tools: Vec<Tool>,
    /// How often each of them is measured.
    pub rounds: Rounds,
    /// Whether the sending alone is measured beside each restore.
    pub ceiling: Ceiling,
    /// Whether numbers of workers are measured until the best one is found.
    pub search: Search,
}

/// How often each setting is measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rounds {
    /// Runs of each before those that count.
    pub warm_ups: u32,
    /// Runs of each that count, at least.
    pub least: u32,
    /// Until no interval reaches farther than this share of its median.
    pub until: Option<f64>,
    /// Runs of each that count, at most.
    pub most: u32,
}

/// Whether the sending alone is measured beside each restore.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ceiling {
    /// It is.
    Measured,
    /// It is not.
    LeftOut,
}

/// Whether numbers of workers are measured until the best one is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Search {
    /// They are.
    Workers,
    /// They are not.
    Nothing,
}

/// What a benchmark results in, however far it came.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// What was measured.
    pub samples: Samples,
    /// Whether somebody asked for its end.
    pub is_interrupted: bool,
}

/// Measures, and tells of each run as it is made.
///
/// # Errors
///
/// What keeps it from beginning, or from going on. Samples up to there are in their file.
pub async fn bench(
    options: &BenchOptions,
    stop: &Stop,
    tell: &dyn Fn(&str),
) -> Result<Measured, Error> {
    check(&options.cells)?;
    options.tools.iter().try_for_each(Tool::check)?;
    let searches = options.search == Search::Workers;
    let runner = Box::pin(Runner::begin(options.run.clone(), searches, stop.clone())).await?;
    if let Some(note) = runner.note() {
        tell(&format!("note: {note}"));
    }
    tell(&format!("samples: {}", runner.samples_file().display()));
    let mut bench = Bench { runner, options, stop, tell, rounds_made: 0 };
    for cell in &options.cells {
        bench.runner.add(cell.clone())?;
    }
    if options.ceiling == Ceiling::Measured {
        for (place, cell) in options.cells.iter().enumerate() {
            if cell.kind == Kind::Restore {
                bench.runner.add(cell.ceiling(place))?;
            }
        }
    }
    match options.search {
        Search::Workers => Box::pin(bench.search()).await?,
        Search::Nothing => Box::pin(bench.all_rounds()).await?,
    }
    let is_interrupted = stop.is_requested();
    let samples = bench.runner.end().await?;
    Ok(Measured { samples, is_interrupted })
}

/// Reads what was measured before.
///
/// # Errors
///
/// Of kind [`ErrorKind::Usage`]: the file does not hold samples.
pub fn measured_before(file: &Path) -> Result<Measured, Error> {
    Ok(Measured { samples: sample::read(file)?, is_interrupted: false })
}

/// A benchmark on its way.
struct Bench<'a> {
    runner: Runner,
    options: &'a BenchOptions,
    stop: &'a Stop,
    tell: &'a dyn Fn(&str),
    rounds_made: u32,
}

impl Bench<'_> {
    /// Measures all settings, round by round.
    async fn all_rounds(&mut self) -> Result<(), Error> {
        let Rounds { warm_ups, least, until, most } = self.options.rounds;
        let cells: Vec<usize> = (0..self.runner.all.cells.len()).collect();
        self.warm_up(warm_ups, &cells).await?;
        while !self.stop.is_requested() {
            let made = self.rounds_made;
            let is_enough = made >= least
                && until.is_none_or(|until| {
                    made >= most || self.runner.all.widest().is_some_and(|widest| widest <= until)
                });
            if is_enough {
                break;
            }
            self.round(&cells).await?;
        }
        Ok(())
    }

    /// Measures numbers of workers until the search has no more questions. What restore finds out
    /// by itself, and the best number so far, are measured beside them each time.
    async fn search(&mut self) -> Result<(), Error> {
        let base = self.options.cells[0].clone();
        loop {
            let tried = self.runner.all.tried();
            let numbers = search::next(&tried);
            if numbers.is_empty() || self.stop.is_requested() {
                return Ok(());
            }
            let mut cells = vec![0];
            cells.extend(
                search::best(&tried).and_then(|best| self.runner.all.place_of(best.workers)),
            );
            let mut added = Vec::new();
            for workers in numbers {
                added.push(self.runner.add(with_workers(&base, workers))?);
            }
            let new =
                if tried.is_empty() { [vec![0], added.clone()].concat() } else { added.clone() };
            self.warm_up(self.options.rounds.warm_ups, &new).await?;
            cells.extend(added);
            for _ in 0..self.options.rounds.least {
                if !self.stop.is_requested() {
                    self.round(&cells).await?;
                }
            }
        }
    }

    async fn warm_up(&mut self, times: u32, cells: &[usize]) -> Result<(), Error> {
        for _ in 0..times {
            for (place, &cell) in cells.iter().enumerate() {
                let Some(sample) = self.turn(Turn { cell, round: 0, place }).await? else {
                    return Ok(());
                };
                // What cannot be done once need not be tried many times.
                let cell = &self.runner.all.cells[cell];
                if sample.status != Some(0) && cell.kind != Kind::Tool {
                    let said = sample.error.unwrap_or_default();
                    let message = format!("`{}` does not work: {said}", cell.label);
                    return Err(Error::new(ErrorKind::Plan, message));
                }
            }
        }
        Ok(())
    }

    async fn round(&mut self, cells: &[usize]) -> Result<(), Error> {
        self.rounds_made += 1;
        let round = self.rounds_made;
        let order = order::of_round(self.options.run.seed, round, cells);
        for (place, cell) in order.into_iter().enumerate() {
            if self.turn(Turn { cell, round, place }).await?.is_none() {
                break;
            }
        }
        Ok(())
    }

    async fn turn(&mut self, turn: Turn) -> Result<Option<Sample>, Error> {
        if self.stop.is_requested() {
            return Ok(None);
        }
        let sample = Box::pin(self.runner.run(turn)).await?;
        if let Some(sample) = &sample {
            (self.tell)(&self.line(sample));
        }
        Ok(sample)
    }

    /// A run in a line.
    fn line(&self, sample: &Sample) -> String {
        let all = &self.runner.all;
        let label = &all.cells[sample.cell].label;
        let round = match sample.round {
            0 => "warm-up".to_owned(),
            round => format!("round {round}"),
        };
        let wall = sample.wall_seconds;
        let outcome = match (sample.status, sample.documents_missing) {
            (Some(0), 0) => {
                let seconds = match all.cells[sample.cell].kind {
                    Kind::Ceiling => sample.data_seconds.unwrap_or(wall),
                    Kind::Restore | Kind::Tool => wall,
                };
                let documents =
                    f64::from(u32::try_from(all.setup.dump.documents).unwrap_or(u32::MAX));
                format!("{} documents/s", whole(documents / seconds.max(1e-9)))
            }
            (Some(0), missing) => format!("lost {missing} documents"),
            (Some(status), _) => format!("failed with status {status}"),
            (None, _) => "was killed".to_owned(),
        };
        format!("{round:>8}  {label}: {wall:.2} s, {outcome}")
    }
}

/// The same setting with this number of workers.
fn with_workers(base: &Cell, workers: u32) -> Cell {
    let choice = Choice { name: "workers".to_owned(), value: workers.to_string() };
    let mut words = base.words.clone();
    words.push(format!("--workers={workers}"));
    Cell::new("restorm", Kind::Restore, vec![choice], base.server.clone(), words)
}
