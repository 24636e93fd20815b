//! What happened in each second of a run.
//!
//! Every second has a point of its own as long as a run takes no more than
//! [`TIMELINE_POINTS_MAX`] of them; in longer runs each point stands for two, four, … seconds.

use std::collections::VecDeque;
use std::time::Duration;

use serde::Serialize;

use crate::limits::{PEAK_WINDOW_SECONDS, TIMELINE_POINTS_MAX};
use crate::report::latency::Latencies;
use crate::report::rate::{Amounts, Rate};
use crate::sample::Gauges;

/// What happened within one interval, and how things stood at its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Point {
    /// The beginning of the interval, in seconds since the run began.
    pub at_seconds: u64,
    /// Documents the server took.
    pub documents: u64,
    /// Bytes of the documents the server answered for, uncompressed.
    pub bytes: u64,
    /// Batches the server answered for.
    pub batches: u64,
    /// Documents the server refused.
    pub rejected: u64,
    /// Batches and commands that were sent again.
    pub retries: u64,
    /// Batches that were sent and not answered, when that was last looked at.
    pub in_flight: usize,
    /// Batches that waited for a worker.
    pub queued: usize,
    /// Workers that might send.
    pub workers: usize,
    /// Half of the interval's batches took at most so many seconds; zero where there was none.
    pub latency_p50_seconds: f64,
    /// 99 of 100.
    pub latency_p99_seconds: f64,
    /// The longest.
    pub latency_max_seconds: f64,
}

/// What one batch added.
#[derive(Clone, Copy, Debug, Default)]
pub struct Answered {
    /// What the server took.
    pub amounts: Amounts,
    /// Documents it refused.
    pub rejected: u64,
    /// The time to its answer.
    pub latency: Duration,
}

/// The points of a run so far.
#[derive(Clone, Debug)]
pub struct Timeline {
    /// Seconds that each point stands for.
    interval: u64,
    points: Vec<Point>,
    /// The latencies of the last point.
    latencies: Latencies,
    gauges: Gauges,
    /// The last whole seconds, for the peak over several of them.
    window: VecDeque<(u64, Amounts)>,
    window_sum: Amounts,
    window_highest: Amounts,
}

impl Default for Timeline {
    fn default() -> Self {
        Self {
            interval: 1,
            points: Vec::new(),
            latencies: Latencies::default(),
            gauges: Gauges::default(),
            window: VecDeque::new(),
            window_sum: Amounts::default(),
            window_highest: Amounts::default(),
        }
    }
}

impl Timeline {
    /// Counts a batch that was answered at `at`.
    pub fn answered(&mut self, at: Duration, answered: Answered) {
        self.count_window(at, answered.amounts);
        let Some(point) = self.reach(at) else { return };
        point.documents += answered.amounts.documents;
        point.bytes += answered.amounts.bytes;
        point.batches += 1;
        point.rejected += answered.rejected;
        self.latencies.add(answered.latency);
    }

    /// Counts documents that were refused without being sent.
    pub fn rejected(&mut self, at: Duration, documents: u64) {
        if let Some(point) = self.reach(at) {
            point.rejected += documents;
        }
    }

    /// Counts something that was sent again.
    pub fn retried(&mut self, at: Duration) {
        if let Some(point) = self.reach(at) {
            point.retries += 1;
        }
    }

    /// Notes how things stand at `at`.
    pub fn sampled(&mut self, at: Duration, gauges: Gauges) {
        self.gauges = gauges;
        if let Some(point) = self.reach(at) {
            (point.in_flight, point.queued) = (gauges.in_flight, gauges.queued);
            point.workers = gauges.workers;
        }
    }

    /// The point for `at`, the newest one for times a little out of order.
    fn reach(&mut self, at: Duration) -> Option<&mut Point> {
        while at.as_secs() / self.interval >= TIMELINE_POINTS_MAX as u64 {
            self.coarsen();
        }
        let place = at.as_secs() / self.interval;
        if self.points.len() as u64 <= place {
            self.close_last();
            let Gauges { in_flight, queued, workers, .. } = self.gauges;
            for number in self.points.len() as u64..=place {
                let at_seconds = number * self.interval;
                let point = Point { at_seconds, in_flight, queued, workers, ..Point::default() };
                self.points.push(point);
            }
        }
        self.points.last_mut()
    }

    /// Fills in the latencies of the last point.
    fn close_last(&mut self) {
        if let Some(point) = self.points.last_mut() {
            fill(point, &self.latencies);
            self.latencies.clear();
        }
    }

    /// Joins each two points into one.
    fn coarsen(&mut self) {
        self.close_last();
        self.interval *= 2;
        self.points = self.points.chunks(2).map(join).collect();
    }

    fn count_window(&mut self, at: Duration, amounts: Amounts) {
        let newest = self.window.back().map_or(0, |(second, _)| *second);
        let second = at.as_secs().max(newest);
        while let Some(&(oldest, gone)) = self.window.front()
            && oldest + PEAK_WINDOW_SECONDS <= second
        {
            self.window.pop_front();
            self.window_sum.subtract(gone);
        }
        match self.window.back_mut() {
            Some((last, sum)) if *last == second => sum.add(amounts),
            _ => self.window.push_back((second, amounts)),
        }
        self.window_sum.add(amounts);
        self.window_highest = self.window_highest.highest_of(self.window_sum);
    }

    /// Seconds that each point stands for.
    pub fn interval_seconds(&self) -> u64 {
        self.interval
    }

    /// The points, those of idle seconds included.
    pub fn points(&self) -> Vec<Point> {
        let mut points = self.points.clone();
        if let Some(point) = points.last_mut().filter(|_| self.latencies.count() > 0) {
            fill(point, &self.latencies);
        }
        points
    }

    /// The rate over the fastest [`PEAK_WINDOW_SECONDS`]; nothing in a run that was shorter.
    pub fn rate_of_peak_window(&self) -> Option<Rate> {
        let last = self.points.last()?;
        let is_long = last.at_seconds + self.interval >= PEAK_WINDOW_SECONDS;
        is_long.then(|| self.window_highest.per(Duration::from_secs(PEAK_WINDOW_SECONDS)))
    }
}

fn fill(point: &mut Point, latencies: &Latencies) {
    point.latency_p50_seconds = latencies.quantile(0.5).as_secs_f64();
    point.latency_p99_seconds = latencies.quantile(0.99).as_secs_f64();
    point.latency_max_seconds = latencies.max().as_secs_f64();
}

/// Two neighbours as one point; of latencies, which cannot be added, the one with more batches is
/// kept, and the longest.
fn join(pair: &[Point]) -> Point {
    let [first, second] = pair else { return pair[0] };
    let typical = if first.batches > second.batches { first } else { second };
    Point {
        at_seconds: first.at_seconds,
        documents: first.documents + second.documents,
        bytes: first.bytes + second.bytes,
        batches: first.batches + second.batches,
        rejected: first.rejected + second.rejected,
        retries: first.retries + second.retries,
        in_flight: second.in_flight,
        queued: second.queued,
        workers: second.workers,
        latency_p50_seconds: typical.latency_p50_seconds,
        latency_p99_seconds: first.latency_p99_seconds.max(second.latency_p99_seconds),
        latency_max_seconds: first.latency_max_seconds.max(second.latency_max_seconds),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn batch(documents: u64, millis: u64) -> Answered {
        Answered {
            amounts: Amounts { documents, bytes: documents * 100, origin_bytes: documents },
            rejected: 1,
            latency: Duration::from_millis(millis),
        }
    }

    fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn is_near(value: f64, expected: f64) -> bool {
        (value - expected).abs() < 1e-9
    }

    #[test]
    fn each_second_has_its_point() {
        let mut timeline = Timeline::default();
        timeline.answered(millis(100), batch(10, 5));
        timeline.answered(millis(900), batch(20, 15));
        timeline.sampled(millis(950), Gauges { in_flight: 3, workers: 8, ..Gauges::default() });
        timeline.retried(millis(2100));
        timeline.answered(millis(3000), batch(1, 7));
        let points = timeline.points();
        assert_eq!(points.iter().map(|one| one.at_seconds).collect::<Vec<_>>(), [0, 1, 2, 3]);
        assert_eq!(points.iter().map(|one| one.documents).collect::<Vec<_>>(), [30, 0, 0, 1]);
        assert_eq!(points.iter().map(|one| one.retries).sum::<u64>(), 1);
        assert_eq!((points[0].batches, points[0].rejected, points[0].in_flight), (2, 2, 3));
        assert!(is_near(points[0].latency_p50_seconds, 0.005));
        assert!(is_near(points[0].latency_max_seconds, 0.015));
        assert!(is_near(points[1].latency_max_seconds, 0.0) && points[1].workers == 8);
        assert!(is_near(points[3].latency_p99_seconds, 0.007));
    }

    #[test]
    fn the_peak_window_is_half_a_minute() {
        let mut timeline = Timeline::default();
        for second in 0..100 {
            let documents = if (40..70).contains(&second) { 50 } else { 10 };
            timeline.answered(Duration::from_secs(second), batch(documents, 1));
            let peak = timeline.rate_of_peak_window();
            assert_eq!(peak.is_some(), second >= 29, "{second}");
        }
        let peak = timeline.rate_of_peak_window().expect("one");
        assert!(is_near(peak.documents, 50.0) && is_near(peak.bytes, 5000.0));
    }

    proptest! {
        #[test]
        fn nothing_is_lost_in_long_runs(
            steps in prop::collection::vec((0_u64..2_000_000, 1_u64..50), 1..300),
        ) {
            let mut timeline = Timeline::default();
            let mut at = 0;
            for &(step, documents) in &steps {
                at += step;
                timeline.answered(millis(at), batch(documents, 1));
            }
            let points = timeline.points();
            prop_assert!(points.len() <= TIMELINE_POINTS_MAX);
            let documents: u64 = points.iter().map(|point| point.documents).sum();
            prop_assert_eq!(documents, steps.iter().map(|(_, documents)| documents).sum::<u64>());
            let interval = timeline.interval_seconds();
            let in_place = |(place, point): (usize, &Point)| point.at_seconds == place as u64 * interval;
            prop_assert!(points.iter().enumerate().all(in_place));
            prop_assert_eq!(points.last().map(|one| one.at_seconds), Some(at / 1000 / interval * interval));
        }
    }
}
