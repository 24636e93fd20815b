//! The arguments that say whether metrics are served, and their serving.

use std::sync::Arc;
use std::time::Duration;

use clap::Args;

use crate::cli::restore::at_most;
use crate::error::Error;
use crate::exporter::{Exporter, ListenAddress};
use crate::limits::METRICS_LINGER_SECONDS_MAX;
use crate::load::Stop;
use crate::report::{Metrics, Observer, Observers, OptionValue};

#[derive(Args, Clone, Debug, Default)]
pub(super) struct MetricsArgs {
    /// Serve metrics for Prometheus at `http://ADDRESS/metrics` while the run lasts: a port on
    /// 127.0.0.1, or an address and a port; port 0 is any that is free, and is told
    #[arg(long, value_name = "ADDRESS", help_heading = "What is shown")]
    metrics_listen: Option<ListenAddress>,

    /// Wait at the end until the last values were fetched once, at most so long
    #[arg(long, value_name = "SECONDS", requires = "metrics_listen")]
    #[arg(value_parser = at_most(METRICS_LINGER_SECONDS_MAX), help_heading = "What is shown")]
    metrics_linger: Option<usize>,
}

impl MetricsArgs {
    /// What was asked for, as the report tells it.
    pub(super) fn told(&self) -> impl Iterator<Item = OptionValue> {
        let listen = self.metrics_listen.as_ref().map(ToString::to_string);
        let linger = self.metrics_linger.map(|seconds| seconds.to_string());
        let told = [("metrics-listen", listen), ("metrics-linger", linger)].into_iter();
        told.filter_map(|(name, value)| Some(OptionValue { name: name.into(), value: value? }))
    }

    /// Begins to serve metrics, where that was asked for.
    pub(super) async fn serve(&self) -> Result<Serving, Error> {
        let Some(address) = &self.metrics_listen else {
            return Ok(Serving { served: None, linger: Duration::ZERO });
        };
        let metrics = Arc::new(Metrics::new());
        let exporter = Exporter::start(address, Arc::clone(&metrics)).await?;
        let linger = Duration::from_secs(self.metrics_linger.unwrap_or(0) as u64);
        Ok(Serving { served: Some((metrics, exporter)), linger })
    }
}

/// Metrics that are served, or none.
pub(super) struct Serving {
    served: Option<(Arc<Metrics>, Exporter)>,
    linger: Duration,
}

impl Serving {
    /// Where, in words.
    pub(super) fn place(&self) -> Option<String> {
        self.served.as_ref().map(|(_, exporter)| format!("metrics on {}", exporter.url()))
    }

    /// This observer, and the metrics beside it.
    pub(super) fn beside(&self, observer: Arc<dyn Observer>) -> Arc<dyn Observer> {
        match &self.served {
            Some((metrics, _)) => Arc::new(Observers(vec![observer, Arc::clone(metrics) as _])),
            None => observer,
        }
    }

    /// Ends the serving. What has `run` may be waited for until it was fetched; nobody waits who
    /// has asked for the end.
    pub(super) async fn end(self, has_run: bool, stop: &Stop) {
        let Some((_, exporter)) = self.served else {
            return;
        };
        if has_run {
            exporter.last_scrape(self.linger, || stop.is_requested()).await;
        }
        exporter.close().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        metrics: MetricsArgs,
    }

    fn parse(line: &str) -> Result<MetricsArgs, String> {
        let words = std::iter::once("restore").chain(line.split_whitespace());
        Line::try_parse_from(words).map(|line| line.metrics).map_err(|error| error.to_string())
    }

    fn told(line: &str) -> Vec<(String, String)> {
        let args = parse(line).expect(line);
        args.told().map(|told| (told.name, told.value)).collect()
    }

    #[test]
    fn a_port_alone_is_on_this_machine() {
        assert_eq!(told(""), []);
        let listen = ("metrics-listen".to_owned(), "127.0.0.1:9216".to_owned());
        assert_eq!(told("--metrics-listen 9216"), std::slice::from_ref(&listen));
        let linger = ("metrics-linger".to_owned(), "20".to_owned());
        assert_eq!(told("--metrics-listen :9216 --metrics-linger 20"), [listen, linger]);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for line in [
            "--metrics-listen host",
            "--metrics-listen 99999",
            "--metrics-linger 5",
            "--metrics-listen 1 --metrics-linger 0",
            "--metrics-listen 1 --metrics-linger 86401",
        ] {
            assert!(parse(line).is_err(), "{line}");
        }
    }

    #[tokio::test]
    async fn without_the_option_nothing_is_served() {
        let serving = parse("").expect("parsed").serve().await.expect("nothing to fail");
        assert_eq!(serving.place(), None);
        serving.end(true, &Stop::new()).await;
    }

    #[tokio::test]
    async fn whoever_asked_for_the_end_does_not_wait_for_a_scrape() {
        let args = parse("--metrics-listen 0 --metrics-linger 3600").expect("parsed");
        let serving = args.serve().await.expect("a port is free");
        assert!(serving.place().is_some_and(|place| place.starts_with("metrics on http://127.")));
        let stop = Stop::new();
        stop.request();
        serving.end(true, &stop).await;
    }
}
