//! The machine, and how much else went on in it while it was measured.

use std::hint::black_box;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::order::Random;
use super::statistics::median;

/// Numbers that the loop draws: some 20 ms, long enough for the clock and for a neighbour to show.
const LOOP_DRAWS: u32 = 20_000_000;

/// A load before the first run, per core, above which something else must be running.
const LOAD_MAX: f64 = 0.5;

/// The share of processor time that a hypervisor may take.
const STOLEN_MAX: f64 = 0.01;

/// How far the slowest tenth of the loops may lie above the fastest.
const LOOP_SPREAD_MAX: f64 = 0.15;

/// The machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// Its processor.
    pub processor: String,
    /// The cores that this program may use.
    pub cores: u64,
    /// Its memory.
    pub memory_bytes: u64,
    /// Its kernel.
    pub kernel: String,
    /// The load of a minute before the first run.
    pub load: f64,
}

impl Machine {
    /// This one, as far as it tells.
    pub fn this() -> Self {
        let value = |file: &str, name: &str| {
            let text = std::fs::read_to_string(file).unwrap_or_default();
            field(&text, name).unwrap_or_default().to_owned()
        };
        let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        Self {
            processor: value("/proc/cpuinfo", "model name"),
            cores: std::thread::available_parallelism().map_or(1, |cores| cores.get() as u64),
            memory_bytes: kibibytes(&value("/proc/meminfo", "MemTotal")).unwrap_or(0),
            kernel: kernel.trim().to_owned(),
            load: load(),
        }
    }
}

/// The memory that could be taken without swapping, where the system tells.
pub fn memory_available() -> Option<u64> {
    kibibytes(field(&std::fs::read_to_string("/proc/meminfo").ok()?, "MemAvailable")?)
}

/// The value of a `name: value` line.
pub(super) fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = text.lines().filter_map(|line| line.split_once(':'));
    lines.find(|(key, _)| key.trim() == name).map(|(_, value)| value.trim())
}

/// A size such as `1024 kB` in bytes.
pub(super) fn kibibytes(text: &str) -> Option<u64> {
    text.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

fn load() -> f64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().next().and_then(|load| load.parse().ok()).unwrap_or(0.0)
}

/// What the machine was doing around a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Surroundings {
    /// The load of a minute before it.
    pub load: f64,
    /// The share of processor time that a hypervisor took during it.
    pub stolen: Option<f64>,
    /// How long a loop took before it that always does the same.
    pub loop_seconds: f64,
}

/// Looks at the machine before and after a run.
#[derive(Clone, Copy, Debug)]
pub struct Watch {
    load: f64,
    loop_seconds: f64,
    ticks: Option<Ticks>,
}

impl Watch {
    /// Before the run.
    pub fn begin() -> Self {
        let load = load();
        let began = Instant::now();
        let mut random = Random::new(1);
        for _ in 0..LOOP_DRAWS {
            black_box(random.draw());
        }
        Self { load, loop_seconds: began.elapsed().as_secs_f64(), ticks: Ticks::now() }
    }

    /// After it.
    pub fn end(self) -> Surroundings {
        let stolen = self.ticks.zip(Ticks::now()).map(|(before, after)| before.stolen_until(after));
        Surroundings { load: self.load, stolen, loop_seconds: self.loop_seconds }
    }
}

/// The processor time of all cores since the start of the machine.
#[derive(Clone, Copy, Debug)]
struct Ticks {
    all: u64,
    stolen: u64,
}

impl Ticks {
    fn now() -> Option<Self> {
        Self::of(&std::fs::read_to_string("/proc/stat").ok()?)
    }

    /// From the line `cpu  user nice system idle iowait irq softirq steal …` (proc(5)); what comes
    /// after it is in the first two already.
    fn of(text: &str) -> Option<Self> {
        let line = text.lines().next()?.strip_prefix("cpu ")?;
        let fields: Option<Vec<u64>> =
            line.split_whitespace().take(8).map(|field| field.parse().ok()).collect();
        let fields = fields?;
        Some(Self { all: fields.iter().sum(), stolen: *fields.get(7)? })
    }

    #[expect(clippy::cast_precision_loss, reason = "a share needs no more than three digits")]
    fn stolen_until(self, after: Self) -> f64 {
        let all = after.all.saturating_sub(self.all).max(1);
        after.stolen.saturating_sub(self.stolen) as f64 / all as f64
    }
}

/// What speaks against trusting what was measured; a sentence each, without its final period.
pub fn noise(machine: &Machine, runs: &[Surroundings]) -> Vec<String> {
    let mut found = Vec::new();
    let cores = f64::from(u32::try_from(machine.cores).unwrap_or(u32::MAX));
    if machine.load > LOAD_MAX * cores {
        let load = machine.load;
        found.push(format!("the load before the first run was {load:.1}: something else ran"));
    }
    let stolen: Vec<f64> = runs.iter().filter_map(|run| run.stolen).collect();
    let highest = stolen.iter().copied().fold(0.0, f64::max);
    if median(&stolen).is_some_and(|share| share > STOLEN_MAX) || highest > 5.0 * STOLEN_MAX {
        let most = highest * 100.0;
        found.push(format!("other virtual machines took up to {most:.1} % of the processor"));
    }
    let mut loops: Vec<f64> = runs.iter().map(|run| run.loop_seconds).collect();
    loops.sort_by(f64::total_cmp);
    if let (Some(fastest), Some(slow)) = (loops.first(), loops.get(loops.len() * 9 / 10)) {
        let spread = slow / fastest - 1.0;
        if spread > LOOP_SPREAD_MAX {
            let percent = spread * 100.0;
            found.push(format!(
                "a loop that always does the same took up to {percent:.0} % longer at times"
            ));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(load: f64) -> Machine {
        Machine { processor: String::new(), cores: 4, memory_bytes: 0, kernel: String::new(), load }
    }

    fn run(stolen: f64, loop_seconds: f64) -> Surroundings {
        Surroundings { load: 1.0, stolen: Some(stolen), loop_seconds }
    }

    #[test]
    fn a_quiet_machine_is_quiet() {
        let runs = [run(0.0, 0.020), run(0.001, 0.021), run(0.0, 0.0205)];
        assert_eq!(noise(&machine(0.4), &runs), [""; 0]);
    }

    #[test]
    fn each_kind_of_noise_is_named() {
        let quiet = [run(0.0, 0.02); 4];
        let told = |load, runs: &[Surroundings]| noise(&machine(load), runs).join("; ");
        assert!(told(2.1, &quiet).contains("load"));
        assert!(told(0.0, &[run(0.02, 0.02), run(0.02, 0.02)]).contains("virtual machines"));
        assert!(told(0.0, &[run(0.0, 0.02), run(0.06, 0.02)]).contains("6.0 %"));
        assert!(told(0.0, &[run(0.0, 0.02), run(0.0, 0.03)]).contains("50 % longer"));
    }

    #[test]
    fn ticks_are_read_as_the_kernel_writes_them() {
        let before = Ticks::of("cpu  10 0 10 70 0 0 0 10 5 5\ncpu0 1\n").expect("ticks");
        let after = Ticks::of("cpu  20 0 20 140 0 0 0 20 9 9\n").expect("ticks");
        assert!((before.stolen_until(after) - 0.1).abs() < 1e-9);
        assert!(Ticks::of("intr 1 2\n").is_none());
    }

    #[test]
    fn fields_are_found_by_their_whole_name() {
        let text = "VmHWM:\t    2048 kB\nVmHW:\t1 kB\n";
        assert_eq!(field(text, "VmHWM").and_then(kibibytes), Some(2 << 20));
        assert_eq!(field(text, "Vm"), None);
    }
}
