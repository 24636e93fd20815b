//! What is compared of the runs.

use super::matrix::{Cell, Kind};
use super::sample::{DumpFacts, Sample};
use crate::report::format::{bytes, whole};

/// A figure of a run.
pub(super) struct Figure {
    /// Its name for machines, with its unit last.
    pub(super) name: &'static str,
    /// Its name for people.
    pub(super) title: &'static str,
    /// Its value, where there is one.
    pub(super) value: fn(&Run<'_>) -> Option<f64>,
    /// Its value in words.
    pub(super) show: fn(f64) -> String,
}

/// A run with what belongs to it.
#[derive(Clone, Copy)]
pub(super) struct Run<'a> {
    pub(super) sample: &'a Sample,
    pub(super) cell: &'a Cell,
    pub(super) dump: &'a DumpFacts,
}

impl Run<'_> {
    /// The time that its rate counts for: of a ceiling the sending alone.
    fn seconds(&self) -> Option<f64> {
        let seconds = match self.cell.kind {
            Kind::Ceiling => self.sample.data_seconds?,
            Kind::Restore | Kind::Tool => self.sample.wall_seconds,
        };
        (seconds > 0.0).then_some(seconds)
    }
}

/// Documents a second.
fn rate(run: &Run<'_>) -> Option<f64> {
    Some(float(run.dump.documents) / run.seconds()?)
}

/// Documents a second in the time of the documents alone.
pub(super) fn data_rate(run: &Run<'_>) -> Option<f64> {
    let seconds = run.sample.data_seconds.filter(|seconds| *seconds > 0.0)?;
    Some(float(run.dump.documents) / seconds)
}

#[expect(clippy::cast_precision_loss, reason = "no figure needs more than fifteen digits")]
pub(super) fn float(number: u64) -> f64 {
    number as f64
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "sizes in words")]
fn size(number: f64) -> String {
    bytes(number.max(0.0) as u64)
}

/// Seconds in three digits.
pub(super) fn seconds(number: f64) -> String {
    if number < 1.0 { format!("{:.0} ms", number * 1000.0) } else { format!("{number:.2} s") }
}

/// The place of documents a second among the figures.
pub(super) const RATE: usize = 0;

/// All figures, the one that ranks first.
pub(super) const FIGURES: [Figure; 11] = [
    Figure { name: "documents_per_second", title: "documents/s", value: rate, show: whole },
    Figure {
        name: "megabytes_per_second",
        title: "MB/s",
        value: |run| Some(float(run.dump.bytes) / 1e6 / run.seconds()?),
        show: |number| format!("{number:.1}"),
    },
    Figure {
        name: "wall_seconds",
        title: "wall",
        value: |run| Some(run.sample.wall_seconds),
        show: seconds,
    },
    Figure {
        name: "index_seconds",
        title: "indexes",
        value: |run| run.sample.index_seconds,
        show: seconds,
    },
    Figure {
        name: "client_cpu_seconds",
        title: "client CPU",
        value: |run| Some(run.sample.client_user_seconds + run.sample.client_system_seconds),
        show: seconds,
    },
    Figure {
        name: "server_cpu_seconds",
        title: "server CPU",
        value: |run| run.sample.server_cpu_seconds,
        show: seconds,
    },
    Figure {
        name: "client_peak_bytes",
        title: "client peak",
        value: |run| run.sample.client_peak_bytes.map(float),
        show: size,
    },
    Figure {
        name: "server_peak_bytes",
        title: "server peak",
        value: |run| run.sample.server_peak_bytes.map(float),
        show: size,
    },
    Figure {
        name: "disk_bytes",
        title: "on disk",
        value: |run| Some(float(run.sample.storage_bytes + run.sample.index_bytes)),
        show: size,
    },
    Figure {
        name: "folder_bytes",
        title: "data folder",
        value: |run| run.sample.folder_bytes.map(float),
        show: size,
    },
    Figure {
        name: "compression_ratio",
        title: "compression",
        value: |run| {
            let stored = float(run.sample.storage_bytes);
            (stored > 0.0).then(|| float(run.sample.data_bytes) / stored)
        },
        show: |number| format!("{number:.2}"),
    },
];
