//! What is measured in a run, and the file that keeps it from the moment at which it is known.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::machine::{Machine, Surroundings};
use super::matrix::Cell;
use crate::error::{Error, ErrorKind};

/// The name and version of the form of the lines.
pub const SCHEMA: &str = "restorm.bench.samples/1";

/// A line of the file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Line {
    /// What all samples have in common; the first line.
    Setup(Setup),
    /// A setting; samples name it by its place among these lines.
    Cell(Cell),
    /// A run.
    Sample(Sample),
}

/// What all samples have in common.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Setup {
    /// The form of the lines.
    pub schema: String,
    /// The version of this program.
    pub tool_version: String,
    /// The server's version.
    pub server_version: String,
    /// Which server it is.
    pub server: Standing,
    /// What is restored.
    pub dump: DumpFacts,
    /// The machine.
    pub machine: Machine,
    /// What the orders of the rounds depend on.
    pub seed: u64,
    /// Whether the best number of workers is looked for.
    pub searches: bool,
}

/// Which server documents are restored to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Standing {
    /// One that runs anyway.
    Running,
    /// One that the benchmark started for all runs.
    Private,
    /// A new one for each run.
    Fresh,
}

impl Standing {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Running => "a running server",
            Self::Private => "one private mongod for all runs",
            Self::Fresh => "a fresh private mongod for each run",
        }
    }
}

/// What is restored, as a restore into nothing counts it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DumpFacts {
    /// Its path as it was given.
    pub path: String,
    /// Its collections.
    pub collections: u64,
    /// Its documents.
    pub documents: u64,
    /// Their bytes, uncompressed.
    pub bytes: u64,
}

/// A run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// The place of its setting.
    pub cell: usize,
    /// The number of its round; 0 for a warm-up, which does not count.
    pub round: u32,
    /// Its place in the round.
    pub place: usize,
    /// The exit status; nothing if a signal ended it.
    pub status: Option<i32>,
    /// What it said last, where it failed.
    pub error: Option<String>,
    /// From its start to its exit.
    pub wall_seconds: f64,
    /// The time of the documents alone, where the program tells.
    pub data_seconds: Option<f64>,
    /// The time of its index builds, one after the other, where the program tells.
    pub index_seconds: Option<f64>,
    /// Its processor time outside of the kernel.
    pub client_user_seconds: f64,
    /// Its processor time in the kernel.
    pub client_system_seconds: f64,
    /// Its largest resident size.
    pub client_peak_bytes: Option<u64>,
    /// The processor time of a private server meanwhile.
    pub server_cpu_seconds: Option<f64>,
    /// The largest resident size of a fresh server.
    pub server_peak_bytes: Option<u64>,
    /// Documents that the server counts afterwards.
    pub documents_found: u64,
    /// Documents of the dump that it lacks then.
    pub documents_missing: u64,
    /// Bytes of the documents on the server, uncompressed.
    pub data_bytes: u64,
    /// Bytes of the files of collections.
    pub storage_bytes: u64,
    /// Bytes of the files of indexes.
    pub index_bytes: u64,
    /// Bytes of the data folder of a fresh server.
    pub folder_bytes: Option<u64>,
    /// The most batches that were in flight, and the number at the end, where the program tells.
    pub workers: Option<WorkersSeen>,
    /// What the machine was doing.
    pub surroundings: Surroundings,
}

/// How many batches were in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkersSeen {
    /// The most.
    pub most: u64,
    /// The number at the end.
    pub last: u64,
}

impl Sample {
    /// Whether the run did what it was for.
    pub fn is_complete(&self) -> bool {
        self.status == Some(0) && self.documents_missing == 0
    }

    /// Whether it is one of the runs that count.
    pub fn counts(&self) -> bool {
        self.round > 0 && self.is_complete()
    }
}

/// All that is known of a benchmark.
#[derive(Clone, Debug, PartialEq)]
pub struct Samples {
    /// What they have in common.
    pub setup: Setup,
    /// The settings.
    pub cells: Vec<Cell>,
    /// The runs in their order.
    pub samples: Vec<Sample>,
}

/// The file that samples are appended to.
#[derive(Debug)]
pub struct Keeper {
    file: File,
    path: PathBuf,
}

impl Keeper {
    /// Creates the file, with the folders that it lies in.
    ///
    /// # Errors
    ///
    /// Of kind [`ErrorKind::Usage`]: it exists already or cannot be created.
    pub fn create(path: &Path) -> Result<Self, Error> {
        let failed = |error: &std::io::Error| {
            let message = format!("the samples cannot be kept: {error}");
            Error::new(ErrorKind::Usage, message).in_file(path)
        };
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(|error| failed(&error))?;
        }
        let created = OpenOptions::new().append(true).create_new(true).open(path);
        let file = created.map_err(|error| {
            failed(&error).hint("give --samples the name of a file that does not exist")
        })?;
        Ok(Self { file, path: path.to_path_buf() })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends a line; it is in the file when this returns, whatever becomes of the program.
    ///
    /// # Errors
    ///
    /// Of kind [`ErrorKind::Internal`].
    pub fn keep(&mut self, line: &Line) -> Result<(), Error> {
        let failed = |error: &dyn std::fmt::Display| {
            let message = format!("a sample cannot be kept: {error}");
            Error::new(ErrorKind::Internal, message).in_file(&self.path)
        };
        let mut text = serde_json::to_string(line).map_err(|error| failed(&error))?;
        text.push('\n');
        self.file.write_all(text.as_bytes()).map_err(|error| failed(&error))
    }
}

/// Reads what was kept; a last line that was cut off is passed over.
///
/// # Errors
///
/// Of kind [`ErrorKind::Usage`]: there is no such file, or its lines are not samples.
pub fn read(path: &Path) -> Result<Samples, Error> {
    let usage = |message: String| Error::new(ErrorKind::Usage, message).in_file(path);
    let text = std::fs::read_to_string(path)
        .map_err(|error| usage(format!("the samples cannot be read: {error}")))?;
    let (mut setup, mut cells, mut samples) = (None, Vec::new(), Vec::new());
    for (number, line) in (1..).zip(text.split_inclusive('\n')) {
        match serde_json::from_str(line) {
            Ok(Line::Setup(read)) => setup = Some(read),
            Ok(Line::Cell(cell)) => cells.push(cell),
            Ok(Line::Sample(sample)) => samples.push(sample),
            // The program was killed while it wrote.
            Err(_) if !line.ends_with('\n') => {}
            Err(error) => {
                return Err(usage(format!("line {number} is not one of {SCHEMA}: {error}")));
            }
        }
    }
    let setup: Setup = setup.ok_or_else(|| usage(format!("no line of {SCHEMA} is in it")))?;
    if setup.schema != SCHEMA {
        return Err(usage(format!("its lines are {}, not {SCHEMA}", setup.schema)));
    }
    if let Some(lost) = samples.iter().find(|sample| sample.cell >= cells.len()) {
        return Err(usage(format!("a sample is of the setting {}, which is not there", lost.cell)));
    }
    Ok(Samples { setup, cells, samples })
}

#[cfg(test)]
pub(super) mod made {
    //! Samples for tests.

    use super::*;
    use crate::bench::matrix::{Choice, Kind};

    /// Two settings and these wall times of each, in rounds.
    pub(crate) fn samples(walls: &[[f64; 2]]) -> Samples {
        let cell = |workers: &str| {
            let options = vec![Choice { name: "workers".into(), value: workers.into() }];
            Cell::new("restorm", Kind::Restore, options, Vec::new(), Vec::new())
        };
        let samples = (1..).zip(walls).flat_map(|(round, walls)| {
            walls.iter().enumerate().map(move |(cell, wall)| sample(cell, round, *wall))
        });
        Samples {
            setup: Setup {
                schema: SCHEMA.into(),
                tool_version: "0.1.0".into(),
                server_version: "6.0.5".into(),
                server: Standing::Fresh,
                dump: DumpFacts {
                    path: "dump".into(),
                    collections: 2,
                    documents: 1000,
                    bytes: 2_000_000,
                },
                machine: Machine {
                    processor: "one <fast>".into(),
                    cores: 2,
                    memory_bytes: 8 << 30,
                    kernel: "6.1".into(),
                    load: 0.1,
                },
                seed: 1,
                searches: false,
            },
            cells: vec![cell("1"), cell("2")],
            samples: samples.collect(),
        }
    }

    /// A run.
    pub(crate) fn sample(cell: usize, round: u32, wall_seconds: f64) -> Sample {
        Sample {
            cell,
            round,
            place: cell,
            status: Some(0),
            error: None,
            wall_seconds,
            data_seconds: Some(wall_seconds / 2.0),
            index_seconds: Some(0.1),
            client_user_seconds: 0.2,
            client_system_seconds: 0.1,
            client_peak_bytes: Some(30 << 20),
            server_cpu_seconds: Some(0.5),
            server_peak_bytes: Some(200 << 20),
            documents_found: 1000,
            documents_missing: 0,
            data_bytes: 2_000_000,
            storage_bytes: 500_000,
            index_bytes: 50_000,
            folder_bytes: Some(1_000_000),
            workers: None,
            surroundings: Surroundings { load: 0.5, stolen: Some(0.0), loop_seconds: 0.02 },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_read_again_even_if_it_was_cut_off() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("results/run.jsonl");
        let all = made::samples(&[[1.0, 2.0], [1.1, 2.2]]);
        let mut keeper = Keeper::create(&path).expect("created");
        keeper.keep(&Line::Setup(all.setup.clone())).expect("kept");
        for cell in &all.cells {
            keeper.keep(&Line::Cell(cell.clone())).expect("kept");
        }
        for sample in &all.samples {
            keeper.keep(&Line::Sample(sample.clone())).expect("kept");
        }
        assert_eq!(read(&path).as_ref(), Ok(&all));
        assert!(Keeper::create(&path).is_err(), "it exists");
        let text = std::fs::read_to_string(&path).expect("read");
        std::fs::write(&path, &text[..text.len() - 9]).expect("written");
        let cut = read(&path).expect("the rest is there");
        assert_eq!(cut.samples, all.samples[..3]);
        std::fs::write(&path, text.replace("restorm.bench.samples/1", "x/2")).expect("written");
        assert!(read(&path).expect_err("another form").to_string().contains("x/2"));
        std::fs::write(&path, text.replacen("{\"setup\"", "{\"set\"", 1)).expect("written");
        assert!(read(&path).expect_err("damaged").to_string().contains("line 1"));
    }
}
