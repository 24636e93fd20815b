//! Values that somebody else counts: they are set to what was told last.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use prometheus_client::encoding::{EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::{MetricType, TypedMetric};

/// A number, or nothing while none was told.
#[derive(Clone)]
struct Told(Arc<AtomicU64>);

impl Told {
    fn nothing() -> Self {
        Self(Arc::new(AtomicU64::new(f64::NAN.to_bits())))
    }

    fn get(&self) -> Option<f64> {
        Some(f64::from_bits(self.0.load(Ordering::Relaxed))).filter(|value| !value.is_nan())
    }

    fn set(&self, value: f64) {
        self.0.store(value.to_bits(), Ordering::Relaxed);
    }
}

impl fmt::Debug for Told {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(out)
    }
}

/// A sum that is told as a whole, such as the time that a stage has spent so far.
///
/// The counters of `prometheus_client` can only be added to, and cannot follow a server that counts
/// anew after a restart.
#[derive(Clone, Debug)]
pub(super) struct ToldCounter(Told);

impl ToldCounter {
    pub(super) fn set(&self, value: f64) {
        self.0.set(value);
    }

    pub(super) fn set_time(&self, time: Duration) {
        self.0.set(time.as_secs_f64());
    }
}

impl Default for ToldCounter {
    fn default() -> Self {
        Self(Told::nothing())
    }
}

impl TypedMetric for ToldCounter {
    const TYPE: MetricType = MetricType::Counter;
}

impl EncodeMetric for ToldCounter {
    fn encode(&self, mut encoder: MetricEncoder) -> fmt::Result {
        match self.0.get() {
            Some(value) => encoder.encode_counter::<NoLabelSet, _, f64>(&value, None),
            None => Ok(()),
        }
    }

    fn metric_type(&self) -> MetricType {
        Self::TYPE
    }

    fn is_empty(&self) -> bool {
        self.0.get().is_none()
    }
}

/// A measurement that is not there before it was told, because not every server tells it.
#[derive(Clone, Debug)]
pub(super) struct ToldGauge(Told);

impl ToldGauge {
    pub(super) fn set(&self, value: f64) {
        self.0.set(value);
    }
}

impl Default for ToldGauge {
    fn default() -> Self {
        Self(Told::nothing())
    }
}

impl TypedMetric for ToldGauge {
    const TYPE: MetricType = MetricType::Gauge;
}

impl EncodeMetric for ToldGauge {
    fn encode(&self, mut encoder: MetricEncoder) -> fmt::Result {
        match self.0.get() {
            Some(value) => encoder.encode_gauge(&value),
            None => Ok(()),
        }
    }

    fn metric_type(&self) -> MetricType {
        Self::TYPE
    }

    fn is_empty(&self) -> bool {
        self.0.get().is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prometheus_client::encoding::text;
    use prometheus_client::registry::Registry;

    fn shown(registry: &Registry) -> String {
        let mut shown = String::new();
        text::encode(&mut shown, registry).expect("text can be written");
        shown
    }

    #[test]
    fn what_was_not_told_is_not_shown() {
        let (counter, gauge) = (ToldCounter::default(), ToldGauge::default());
        let mut registry = Registry::default();
        registry.register("counted", "Counted", counter.clone());
        registry.register("measured", "Measured", gauge.clone());
        assert_eq!(shown(&registry), "# EOF\n");
        counter.set(7.0);
        gauge.set(0.5);
        let text = shown(&registry);
        assert!(text.contains("\ncounted_total 7.0\n"), "{text}");
        assert!(text.contains("\nmeasured 0.5\n"), "{text}");
        counter.set_time(Duration::from_millis(1500));
        assert!(shown(&registry).contains("counted_total 1.5\n"));
        counter.set(1.0);
        assert!(shown(&registry).contains("counted_total 1.0\n"), "a server counts anew");
    }
}
