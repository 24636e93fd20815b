//! What of a server's state says that it should get less to do.

use std::fmt;
use std::time::Duration;

use crate::report::format::percent;
use crate::sample::ServerSample;

/// The share of the cache that may be dirty. Beyond it a server has the threads that should write
/// documents empty the cache (`eviction_dirty_trigger`, 20 % unless it is told otherwise).
const DIRTY_SHARE_MAX: f64 = 0.2;

/// Pages a second that such threads may evict; at 32 KB each, about what one disk writes meanwhile.
const EVICTIONS_MAX: f64 = 1000.0;

/// Whether a server should get less to do.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) enum Pressure {
    /// It need not.
    #[default]
    None,
    /// It has more to do than it can.
    Server(ServerPressure),
    /// The majority of a replica set is farther behind than it may be.
    Lag {
        /// How far.
        lag: Duration,
    },
}

/// How a server shows that it has more to do than it can.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum ServerPressure {
    /// This share of its cache is not written yet.
    Dirty(f64),
    /// Its threads evict so many pages a second in place of writing documents.
    Evictions(f64),
    /// It holds writes back itself.
    FlowControl,
}

impl fmt::Display for ServerPressure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Dirty(share) => {
                write!(out, "{} of the server's cache was dirty", percent(share))
            }
            Self::Evictions(pages) => {
                write!(out, "the server's writers evicted {pages:.0} pages a second")
            }
            Self::FlowControl => out.write_str("the server's flow control held writes back"),
        }
    }
}

/// Looks at one sample after the other.
#[derive(Debug)]
pub(super) struct Gauge {
    lag_max: Option<Duration>,
    evictions: Option<(Duration, u64)>,
    pressure: Pressure,
}

impl Gauge {
    /// With a majority that may be so far behind.
    pub(super) fn new(lag_max: Option<Duration>) -> Self {
        Self { lag_max, evictions: None, pressure: Pressure::None }
    }

    /// What the samples so far say.
    pub(super) fn pressure(&self) -> Pressure {
        self.pressure
    }

    /// Takes a sample in.
    pub(super) fn read(&mut self, sample: &ServerSample) {
        let evictions = self.evictions(sample);
        let was_lagging = matches!(self.pressure, Pressure::Lag { .. });
        self.pressure = match (self.lag_max, sample.majority_lag) {
            // It has to get well below, so that the number does not go up and down.
            (Some(max), Some(lag)) if lag > max || (was_lagging && lag > max / 2) => {
                Pressure::Lag { lag }
            }
            _ => of_server(sample, evictions).map_or(Pressure::None, Pressure::Server),
        };
    }

    /// Pages a second that were evicted since the last sample.
    fn evictions(&mut self, sample: &ServerSample) -> Option<f64> {
        let now = (sample.at, sample.application_evictions?);
        let (at, evicted) = self.evictions.replace(now)?;
        let seconds = now.0.saturating_sub(at).as_secs_f64();
        // A server that was started again counts from nothing.
        (seconds > 0.0).then(|| float(now.1.saturating_sub(evicted)) / seconds)
    }
}

fn of_server(sample: &ServerSample, evictions: Option<f64>) -> Option<ServerPressure> {
    if sample.flow_controlled == Some(true) {
        return Some(ServerPressure::FlowControl);
    }
    if let (Some(dirty), Some(max)) = (sample.cache_dirty_bytes, sample.cache_bytes_max)
        && float(dirty) > float(max) * DIRTY_SHARE_MAX
    {
        return Some(ServerPressure::Dirty(float(dirty) / float(max)));
    }
    evictions.filter(|pages| *pages > EVICTIONS_MAX).map(ServerPressure::Evictions)
}

#[expect(clippy::cast_precision_loss, reason = "shares are compared to a part in a hundred")]
fn float(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> ServerSample {
        ServerSample { at: Duration::from_secs(seconds), ..ServerSample::default() }
    }

    fn shown(gauge: &Gauge) -> String {
        match gauge.pressure() {
            Pressure::None => String::new(),
            Pressure::Server(pressure) => pressure.to_string(),
            Pressure::Lag { lag } => format!("lag {}", lag.as_secs()),
        }
    }

    #[test]
    fn a_full_cache_is_a_pressure() {
        let mut gauge = Gauge::new(None);
        for (dirty, expected) in [(199, ""), (260, "26 % of the server's cache was dirty")] {
            gauge.read(&ServerSample {
                cache_bytes_max: Some(1000),
                cache_dirty_bytes: Some(dirty),
                ..at(1)
            });
            assert_eq!(shown(&gauge), expected);
        }
    }

    #[test]
    fn evictions_count_by_their_growth() {
        let mut gauge = Gauge::new(None);
        let evicted =
            |pages, seconds| ServerSample { application_evictions: Some(pages), ..at(seconds) };
        gauge.read(&evicted(1_000_000, 1));
        assert_eq!(shown(&gauge), "");
        gauge.read(&evicted(1_001_000, 3));
        assert_eq!(shown(&gauge), "");
        gauge.read(&evicted(1_007_000, 5));
        assert_eq!(shown(&gauge), "the server's writers evicted 3000 pages a second");
        gauge.read(&evicted(5, 7));
        assert_eq!(shown(&gauge), "");
    }

    #[test]
    fn lag_counts_beyond_its_limit_and_until_it_is_well_below() {
        let lagging = |seconds| ServerSample {
            majority_lag: Some(Duration::from_secs(seconds)),
            flow_controlled: Some(true),
            ..at(1)
        };
        let mut gauge = Gauge::new(Some(Duration::from_secs(10)));
        let flow = "the server's flow control held writes back";
        for (lag, expected) in [(8, flow), (11, "lag 11"), (8, "lag 8"), (5, flow), (8, flow)] {
            gauge.read(&lagging(lag));
            assert_eq!(shown(&gauge), expected, "{lag}");
        }
        let mut unlimited = Gauge::new(None);
        unlimited.read(&lagging(1000));
        assert_eq!(shown(&unlimited), flow);
    }
}
