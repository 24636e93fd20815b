//! What the samples say, worked out of them alone.

use std::collections::BTreeMap;

use serde::Serialize;

use super::figures::{FIGURES, RATE, Run, data_rate};
use super::machine::noise;
use super::matrix::{Cell, Kind};
use super::sample::{Sample, Samples, Setup};
use super::search::{self, Tried};
use super::statistics::{Interval, interval, outliers, ratio_of_medians, ratio_of_pairs};

/// The name and version of the JSON form; a change that breaks readers raises the number.
pub const SCHEMA: &str = "restorm.bench/1";

/// Rounds that two settings must have in common for their pairs to say something.
const PAIRS_MIN: usize = 2;

/// A benchmark with all that follows from it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// The form.
    pub schema: &'static str,
    /// What all runs have in common.
    pub setup: Setup,
    /// What speaks against trusting the rest.
    pub noise: Vec<String>,
    /// The settings and tools, in their order; ratios are to the first.
    pub cells: Vec<CellResult>,
    /// How near restores come to what the server takes.
    pub ceilings: Vec<CeilingResult>,
    /// What the search for the best number of workers found.
    pub search: Option<SearchResult>,
    /// All settings, those of ceilings included, in the order by which the runs name them.
    pub settings: Vec<Cell>,
    /// The runs, warm-ups included.
    pub samples: Vec<Sample>,
}

/// What is known of a setting.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CellResult {
    /// The setting.
    #[serde(flatten)]
    pub cell: Cell,
    /// Runs that count.
    pub runs: u64,
    /// Runs that failed or lost documents.
    pub failed_runs: u64,
    /// The most documents that the server lacked after a run.
    pub documents_missing: u64,
    /// What the last failed run said.
    pub error: Option<String>,
    /// Its place by documents a second, from 1; nothing where runs failed.
    pub rank: Option<u64>,
    /// The medians of its figures.
    pub figures: BTreeMap<&'static str, Interval>,
    /// Documents a second as a multiple of the first setting's, pair by pair.
    pub ratio: Option<Interval>,
    /// Rounds whose time does not belong to the rest.
    pub outliers: Vec<Outlier>,
}

/// A run that does not belong to the rest.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Outlier {
    /// Its round.
    pub round: u32,
    /// Its time.
    pub wall_seconds: f64,
    /// Its modified z-score.
    pub score: f64,
}

/// How near a restore comes to what the server takes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CeilingResult {
    /// The setting.
    pub label: String,
    /// Documents a second of the restore, in the time of its documents.
    pub restore: Interval,
    /// Documents a second of the sending alone.
    pub ceiling: Interval,
    /// The first as a share of the second, pair by pair.
    pub share: Interval,
}

/// What the search for the best number of workers found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SearchResult {
    /// The numbers that were tried, in ascending order.
    pub curve: Vec<CurvePoint>,
    /// The number with the highest median.
    pub best: u32,
    /// The smallest number that is not known to be slower.
    pub enough: u32,
    /// The rate where restore finds the number out, as a multiple of the best.
    pub adaptive: Option<Interval>,
}

/// A number of workers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CurvePoint {
    /// The number.
    pub workers: u32,
    /// Documents a second.
    pub rate: Interval,
    /// Whether it is known to be slower than the best.
    pub is_slower: bool,
}

impl Samples {
    fn runs_of(&self, cell: usize) -> impl Iterator<Item = Run<'_>> {
        let run = move |sample| Run { sample, cell: &self.cells[cell], dump: &self.setup.dump };
        self.samples.iter().filter(move |sample| sample.cell == cell && sample.counts()).map(run)
    }

    fn values(&self, cell: usize, value: fn(&Run<'_>) -> Option<f64>) -> Vec<f64> {
        self.runs_of(cell).filter_map(|run| value(&run)).collect()
    }

    fn interval(&self, cell: usize, value: fn(&Run<'_>) -> Option<f64>) -> Option<Interval> {
        interval(&self.values(cell, value), self.setup.seed)
    }

    /// The ratio of two settings: by the rounds that they have in common, or else of their medians.
    fn ratio(&self, of: usize, to: usize, value: fn(&Run<'_>) -> Option<f64>) -> Option<Interval> {
        let by_round = |cell| -> BTreeMap<u32, f64> {
            let runs = self.runs_of(cell);
            runs.filter_map(|run| Some((run.sample.round, value(&run)?))).collect()
        };
        let (ofs, tos) = (by_round(of), by_round(to));
        let pairs: Vec<_> =
            ofs.iter().filter_map(|(round, of)| Some((*of, *tos.get(round)?))).collect();
        let rounds = ofs.len().min(tos.len());
        if pairs.len() >= PAIRS_MIN.min(rounds.max(1)) {
            return ratio_of_pairs(&pairs, self.setup.seed);
        }
        let (ofs, tos): (Vec<f64>, Vec<f64>) =
            (ofs.into_values().collect(), tos.into_values().collect());
        ratio_of_medians(&ofs, &tos, self.setup.seed)
    }

    /// The widest interval of any setting's documents a second, as a share of its median; nothing
    /// before there are two runs of each that works.
    pub fn widest(&self) -> Option<f64> {
        let mut widest: f64 = 0.0;
        for cell in 0..self.cells.len() {
            let values = self.values(cell, FIGURES[RATE].value);
            let is_tried = self.samples.iter().any(|run| run.cell == cell && run.round > 0);
            match values.len() {
                0 if is_tried => {}
                0 | 1 => return None,
                _ => widest = interval(&values, self.setup.seed)?.spread().max(widest),
            }
        }
        Some(widest)
    }

    /// What is known of the numbers of workers.
    pub fn tried(&self) -> Vec<Tried> {
        let numbers = (0..self.cells.len()).filter_map(|place| {
            let cell = &self.cells[place];
            let workers = cell.workers().filter(|_| cell.kind == Kind::Restore)?;
            let rate = self.interval(place, FIGURES[RATE].value)?.median;
            Some((place, Tried { workers, rate, is_slower: false }))
        });
        let mut numbers: Vec<_> = numbers.collect();
        numbers.sort_by_key(|(_, one)| one.workers);
        let tried: Vec<_> = numbers.iter().map(|(_, one)| *one).collect();
        let Some(best) = search::best(&tried) else {
            return Vec::new();
        };
        let Some(&(best_place, _)) = numbers.iter().find(|(_, one)| one.workers == best.workers)
        else {
            return tried;
        };
        let judged = numbers.into_iter().map(|(place, one)| {
            let ratio = self.ratio(place, best_place, FIGURES[RATE].value);
            let is_slower = place != best_place && ratio.is_some_and(|ratio| ratio.high < 1.0);
            Tried { is_slower, ..one }
        });
        judged.collect()
    }

    /// The place of the setting with this number of workers.
    pub fn place_of(&self, workers: u32) -> Option<usize> {
        self.cells.iter().position(|cell| cell.workers() == Some(workers))
    }
}

/// Compares what was measured.
pub fn compare(all: Samples) -> Comparison {
    let shown = (0..all.cells.len()).filter(|place| all.cells[*place].kind != Kind::Ceiling);
    let mut cells: Vec<CellResult> = shown.map(|place| cell_result(&all, place)).collect();
    rank(&mut cells);
    let surroundings: Vec<_> = all.samples.iter().map(|sample| sample.surroundings).collect();
    let ceilings = (0..all.cells.len()).filter_map(|place| ceiling_result(&all, place)).collect();
    let search = all.setup.searches.then(|| search_result(&all)).flatten();
    Comparison {
        schema: SCHEMA,
        noise: noise(&all.setup.machine, &surroundings),
        cells,
        ceilings,
        search,
        setup: all.setup,
        settings: all.cells,
        samples: all.samples,
    }
}

fn cell_result(all: &Samples, place: usize) -> CellResult {
    let runs: Vec<_> = all.runs_of(place).collect();
    let failed: Vec<_> =
        all.samples.iter().filter(|run| run.cell == place && !run.is_complete()).collect();
    let figures =
        FIGURES.iter().filter_map(|figure| Some((figure.name, all.interval(place, figure.value)?)));
    let walls: Vec<f64> = runs.iter().map(|run| run.sample.wall_seconds).collect();
    let far = outliers(&walls).into_iter().map(|(run, score)| {
        let Sample { round, wall_seconds, .. } = *runs[run].sample;
        Outlier { round, wall_seconds, score }
    });
    CellResult {
        cell: all.cells[place].clone(),
        runs: runs.len() as u64,
        failed_runs: failed.len() as u64,
        documents_missing: failed.iter().map(|run| run.documents_missing).max().unwrap_or(0),
        error: failed.iter().rev().find_map(|run| run.error.clone()),
        rank: None,
        figures: figures.collect(),
        ratio: if place == 0 { None } else { all.ratio(place, 0, FIGURES[RATE].value) },
        outliers: far.collect(),
    }
}

impl CellResult {
    /// Documents a second.
    pub fn rate(&self) -> Option<Interval> {
        self.figures.get(FIGURES[RATE].name).copied()
    }

    /// Why it has no rank, where runs went wrong.
    pub fn complaint(&self) -> Option<String> {
        match (self.failed_runs, self.documents_missing) {
            (0, _) => None,
            (runs, 0) => Some(format!("failed {runs} times")),
            (_, missing) => Some(format!("lost {missing} documents")),
        }
    }
}

/// Ranks those that did what they were for: who loses documents is not fast.
fn rank(cells: &mut [CellResult]) {
    let rates: Vec<_> = cells
        .iter()
        .enumerate()
        .filter(|(_, cell)| cell.failed_runs == 0)
        .filter_map(|(place, cell)| Some((place, cell.rate()?.median)))
        .collect();
    for &(place, rate) in &rates {
        let faster = rates.iter().filter(|(_, other)| *other > rate).count() as u64;
        cells[place].rank = Some(faster + 1);
    }
}

fn ceiling_result(all: &Samples, place: usize) -> Option<CeilingResult> {
    let of = all.cells[place].ceiling_of?;
    Some(CeilingResult {
        label: all.cells.get(of)?.label.clone(),
        restore: all.interval(of, data_rate)?,
        ceiling: all.interval(place, data_rate)?,
        share: all.ratio(of, place, data_rate)?,
    })
}

fn search_result(all: &Samples) -> Option<SearchResult> {
    let tried = all.tried();
    let best = search::best(&tried)?.workers;
    let best_place = all.place_of(best)?;
    let curve = tried.iter().filter_map(|one| {
        let rate = all.interval(all.place_of(one.workers)?, FIGURES[RATE].value)?;
        Some(CurvePoint { workers: one.workers, rate, is_slower: one.is_slower })
    });
    let is_adaptive = |cell: &Cell| cell.kind == Kind::Restore && cell.workers().is_none();
    let adaptive = all.cells.iter().position(is_adaptive);
    Some(SearchResult {
        curve: curve.collect(),
        best,
        enough: search::enough(&tried)?,
        adaptive: adaptive
            .and_then(|adaptive| all.ratio(adaptive, best_place, FIGURES[RATE].value)),
    })
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "the figures are exact")]
mod tests {
    use super::super::sample::made;
    use super::*;

    #[test]
    fn the_faster_setting_is_ranked_first_and_compared_by_pairs() {
        // The second setting takes half as long in each round, however fast the machine is.
        let all = made::samples(&[[2.0, 1.0], [4.0, 2.0], [3.0, 1.5], [2.0, 1.0]]);
        let compared = compare(all);
        let [first, second] = &compared.cells[..] else { panic!("two settings") };
        assert_eq!((first.rank, second.rank), (Some(2), Some(1)));
        assert_eq!(first.ratio, None);
        let ratio = second.ratio.expect("a ratio");
        assert_eq!((ratio.median, ratio.low, ratio.high), (2.0, 2.0, 2.0));
        assert_eq!(first.figures["wall_seconds"].median, 2.5);
        assert_eq!(first.figures["compression_ratio"].median, 4.0);
        assert_eq!(first.figures["disk_bytes"].median, 550_000.0);
        let megabytes = first.figures["megabytes_per_second"].median;
        assert!((megabytes - 5.0 / 6.0).abs() < 1e-9, "{megabytes}");
        assert!(compared.ceilings.is_empty() && compared.search.is_none());
    }

    #[test]
    fn who_loses_documents_is_marked_and_not_ranked() {
        let mut all = made::samples(&[[2.0, 1.0], [2.0, 1.0]]);
        all.samples[3].documents_missing = 7;
        let compared = compare(all);
        let second = &compared.cells[1];
        assert_eq!((second.rank, second.runs, second.failed_runs), (None, 1, 1));
        assert_eq!(second.complaint().as_deref(), Some("lost 7 documents"));
        assert_eq!(compared.cells[0].rank, Some(1));
    }

    #[test]
    fn warm_ups_do_not_count() {
        let mut all = made::samples(&[[2.0, 1.0], [2.0, 1.0]]);
        all.samples.insert(0, made::sample(0, 0, 99.0));
        let compared = compare(all);
        assert_eq!(compared.cells[0].figures["wall_seconds"].high, 2.0);
        assert_eq!(compared.samples.len(), 5);
    }

    #[test]
    fn an_outlier_is_named_by_its_round() {
        let walls = [[1.0, 1.0], [1.1, 1.0], [9.0, 1.0], [1.05, 1.0], [0.95, 1.0]];
        let compared = compare(made::samples(&walls));
        let [far] = compared.cells[0].outliers[..] else { panic!("one") };
        assert_eq!((far.round, far.wall_seconds), (3, 9.0));
        assert!(compared.cells[1].outliers.is_empty());
    }

    #[test]
    fn a_ceiling_compares_the_sending() {
        let mut all = made::samples(&[[2.0, 1.0], [2.0, 1.0]]);
        let ceiling = all.cells[0].ceiling(0);
        all.cells[1] = ceiling;
        // Of the made samples, half of the time is for the documents.
        all.samples.iter_mut().filter(|run| run.cell == 1).for_each(|run| {
            run.data_seconds = Some(0.95);
        });
        let compared = compare(all);
        assert_eq!(compared.cells.len(), 1);
        let [ceiling] = &compared.ceilings[..] else { panic!("one") };
        assert!((ceiling.share.median - 0.95).abs() < 1e-9, "{ceiling:?}");
    }

    #[test]
    fn intervals_get_narrower() {
        assert_eq!(made::samples(&[[1.0, 1.0]]).widest(), None);
        let wide = made::samples(&[[1.0, 1.0], [2.0, 1.0]]).widest().expect("two rounds");
        assert!(wide > 0.2, "{wide}");
        assert_eq!(made::samples(&[[1.0, 2.0], [1.0, 2.0]]).widest(), Some(0.0));
    }

    #[test]
    fn a_search_tells_best_and_enough() {
        let mut all = made::samples(&[[2.0, 1.0], [2.0, 1.0], [2.1, 1.0]]);
        all.setup.searches = true;
        let search = compare(all).search.expect("a search");
        assert_eq!((search.best, search.enough), (2, 2));
        assert_eq!(search.curve.len(), 2);
        assert!(search.curve[0].is_slower && !search.curve[1].is_slower);
        assert_eq!(search.adaptive, None);
    }
}
