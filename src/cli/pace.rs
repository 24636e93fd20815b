//! Arguments about how much is sent at once.

use std::time::Duration;

use clap::Args;

use crate::cli::mongorestore::DropInArgs;
use crate::cli::restore::at_most;
use crate::command::restore::{RateLimit, Workers};
use crate::limits::{WORKERS_ADAPTIVE_MAX, WORKERS_MAX};
use crate::report::OptionValue;

/// Arguments about how much is sent at once.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "How it is done")]
pub(super) struct PaceArgs {
    /// Batches in flight, over all collections [default: 2 at first, then as many as bring the
    /// most, up to 32]
    #[arg(long, value_name = "N", value_parser = at_most(WORKERS_MAX))]
    workers: Option<usize>,

    #[command(flatten)]
    limits: LimitArgs,
}

/// Arguments that hold a run back.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "How it is done")]
pub(super) struct LimitArgs {
    /// Send no more than this in a second: documents, such as 20000docs, or bytes, such as 10M
    #[arg(long, visible_alias = "rate", value_name = "RATE", value_parser = RateLimit::parse)]
    rate_limit: Option<RateLimit>,

    /// Send less while the majority of the replica set is farther behind than this, such as 30s:
    /// half as many batches in flight every two seconds, down to one
    #[arg(long, value_name = "TIME", value_parser = lag)]
    max_lag: Option<Duration>,
}

/// A time such as `30s` or `2m`; a number alone is seconds.
fn lag(text: &str) -> Result<Duration, String> {
    let (digits, seconds) = match text.strip_suffix('m') {
        Some(digits) => (digits, 60),
        None => (text.strip_suffix('s').unwrap_or(text), 1),
    };
    let number = digits.parse::<u64>().ok().filter(|number| (1..=86_400).contains(number));
    let number = number.ok_or_else(|| "a time from 1s on is needed, such as 30s or 2m".to_owned());
    number.map(|number| Duration::from_secs(number * seconds))
}

impl PaceArgs {
    /// How many batches are in flight; the options of mongorestore count where `--workers` says
    /// nothing, and the more collections are read, the more there may be.
    pub(super) fn workers(&self, drop_in: &DropInArgs, parallel_collections: usize) -> Workers {
        let fixed = self.workers.or_else(|| drop_in.workers(parallel_collections));
        let most = parallel_collections.clamp(WORKERS_ADAPTIVE_MAX, WORKERS_MAX);
        fixed.map_or(Workers::Adaptive { most }, Workers::Fixed)
    }

    pub(super) fn rate_limit(&self) -> Option<RateLimit> {
        self.limits.rate_limit
    }

    pub(super) fn lag_max(&self) -> Option<Duration> {
        self.limits.max_lag
    }

    /// What differs from the defaults, as the report tells it.
    pub(super) fn told(&self, workers: Workers) -> Vec<OptionValue> {
        let workers = workers
            .fixed()
            .map(|workers| OptionValue { name: "workers".to_owned(), value: workers.to_string() });
        workers.into_iter().chain(self.limits.told()).collect()
    }
}

impl LimitArgs {
    pub(super) fn rate_limit(&self) -> Option<RateLimit> {
        self.rate_limit
    }

    pub(super) fn lag_max(&self) -> Option<Duration> {
        self.max_lag
    }

    /// What differs from the defaults, as the report tells it.
    pub(super) fn told(&self) -> Vec<OptionValue> {
        let values = [
            ("rate-limit", self.rate_limit.map(|limit| limit.to_string())),
            ("max-lag", self.max_lag.map(|lag| format!("{}s", lag.as_secs()))),
        ];
        let told = values.into_iter().filter_map(|(name, value)| Some((name, value?)));
        told.map(|(name, value)| OptionValue { name: name.to_owned(), value }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lag_is_in_seconds_or_minutes() {
        for (text, expected) in [("30s", 30), ("30", 30), ("2m", 120)] {
            assert_eq!(lag(text), Ok(Duration::from_secs(expected)), "{text}");
        }
        for text in ["0s", "-1s", "1h", "s", "", "99999999999m"] {
            assert!(lag(text).is_err(), "{text}");
        }
    }

    #[test]
    fn workers_are_found_out_unless_they_are_said() {
        let (args, drop_in) = (PaceArgs::default(), DropInArgs::default());
        assert_eq!(args.workers(&drop_in, 4), Workers::default());
        assert_eq!(args.workers(&drop_in, 100), Workers::Adaptive { most: 100 });
        let args = PaceArgs { workers: Some(3), ..PaceArgs::default() };
        assert_eq!(args.workers(&drop_in, 4), Workers::Fixed(3));
    }
}
