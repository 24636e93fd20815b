//! Why more or fewer batches are in flight, in words.

use std::fmt;
use std::time::Duration;

use crate::load::pressure::ServerPressure;
use crate::report::format::duration;

/// Why a number of workers was changed.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::load) enum Reason {
    /// To see whether more are faster.
    Probe,
    /// To see whether fewer are enough.
    ProbeFewer,
    /// This number was as fast as more were.
    Enough {
        tried: usize,
    },
    /// What a number brought, as a multiple of what another one had brought before.
    Brought {
        tried: usize,
        before: usize,
        ratio: f64,
    },
    /// Answers take longer, and no more comes of it.
    Slower {
        latency: Duration,
        before: Duration,
    },
    Pressure(ServerPressure),
    /// The majority of a replica set is this far behind.
    Lag {
        lag: Duration,
    },
    /// It is no longer.
    CaughtUp,
}

impl fmt::Display for Reason {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Probe => out.write_str("to see whether more are faster"),
            Self::ProbeFewer => out.write_str("to see whether fewer are enough"),
            Self::Enough { tried } => write!(out, "{tried} were enough"),
            Self::Brought { tried, before, ratio } => {
                let percent = (ratio - 1.0) * 100.0;
                let word = if percent < 0.0 { "less" } else { "more" };
                write!(out, "{tried} brought {:.0} % {word} than {before}", percent.abs())
            }
            Self::Slower { latency, before } => write!(
                out,
                "answers took {} instead of {}, and no more came of it",
                duration(latency),
                duration(before)
            ),
            Self::Pressure(pressure) => pressure.fmt(out),
            Self::Lag { lag } => {
                write!(out, "secondaries were {} behind", duration(lag))
            }
            Self::CaughtUp => out.write_str("secondaries caught up"),
        }
    }
}
