//! The climb against servers that are simulated in steps of time.

use super::*;
use crate::load::pressure::ServerPressure;
use proptest::prelude::*;

const TICK: Duration = Duration::from_millis(20);

/// A server that answers after `way`, and works at several batches at a time, but no more than
/// `capacity` a second.
#[derive(Clone, Copy, Debug)]
struct Server {
    /// Batches that it works at side by side.
    parallel: f64,
    /// Batches a second that each of these brings.
    speed: f64,
    /// Seconds that a batch is on its way.
    way: f64,
}

impl Server {
    /// Batches a second with so many in flight, of the `fed` that readers have for it.
    fn rate(&self, workers: usize, fed: f64) -> f64 {
        let workers = float(workers as u64);
        (workers / (self.way + 1.0 / self.speed)).min(self.parallel * self.speed).min(fed)
    }

    /// The number at which more bring nothing.
    fn best(&self) -> f64 {
        self.parallel * self.speed
    }
}

/// A run of the climb against a server.
struct Simulation {
    climb: Climb,
    server: Server,
    /// Batches a second that readers have.
    fed: f64,
    noise: f64,
    /// How much slower or faster the server is for a tenth of a second.
    gusts: f64,
    gust: f64,
    random: u64,
    pressure: Pressure,
    time: Duration,
    changes: Vec<(Duration, usize)>,
    carried: f64,
}

impl Simulation {
    fn new(server: Server, noise: f64, seed: u64) -> Self {
        Self {
            climb: Climb::to(32),
            server,
            fed: f64::INFINITY,
            noise,
            gusts: 0.0,
            gust: 1.0,
            random: seed | 1,
            pressure: Pressure::None,
            time: Duration::ZERO,
            changes: Vec::new(),
            carried: 0.0,
        }
    }

    /// A number from -1 to 1.
    fn chance(&mut self) -> f64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        float(self.random % 2001) / 1000.0 - 1.0
    }

    /// Goes on for so long; returns the batches of that time.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "few and positive")]
    fn run(&mut self, time: Duration) -> f64 {
        let end = self.time + time;
        let mut batches = 0.0;
        while self.time < end {
            let workers = self.climb.workers();
            if self.time.as_millis().is_multiple_of(100) {
                self.gust = 1.0 + self.gusts * self.chance();
            }
            let noise = self.gust * (1.0 + self.noise * self.chance());
            let rate = self.server.rate(workers, self.fed) * noise;
            let seconds = TICK.as_secs_f64();
            batches += rate * seconds;
            self.carried += rate * seconds;
            let whole = self.carried.floor();
            self.carried -= whole;
            // What readers cannot feed is not in flight.
            let latency = self.server.way + 1.0 / self.server.speed;
            let is_fed = self.server.rate(workers, f64::INFINITY) <= self.fed;
            let in_flight = if is_fed { float(workers as u64) } else { self.fed * latency };
            let latency = in_flight / rate;
            let window = Window {
                elapsed: TICK,
                bytes: whole as u64 * 350_000,
                documents: whole as u64 * 2000,
                batches: whole as u64,
                latency: Duration::from_secs_f64(latency * whole),
                in_flight: TICK.mul_f64(in_flight),
            };
            self.time += TICK;
            if let Some(decision) = self.climb.feed(&window, self.pressure) {
                assert_eq!(decision.workers, self.climb.workers());
                assert!((1..=32).contains(&decision.workers), "{decision:?}");
                assert!(!decision.reason.to_string().is_empty());
                self.changes.push((self.time, decision.workers));
            }
        }
        batches
    }

    /// The share of what the best fixed number would have brought.
    fn share(&mut self, time: Duration) -> f64 {
        let best = self.server.best().min(self.server.rate(32, self.fed)) * time.as_secs_f64();
        self.run(time) / best
    }
}

const LOCAL_SATURATED_AT_2: Server = Server { parallel: 2.0, speed: 100.0, way: 0.0 };
const SATURATED_AT_8: Server = Server { parallel: 8.0, speed: 50.0, way: 0.0 };
const SATURATED_AT_32: Server = Server { parallel: 32.0, speed: 20.0, way: 0.0 };
const FAR: Server = Server { parallel: 2.0, speed: 100.0, way: 0.06 };
const SLOW: Server = Server { parallel: 4.0, speed: 2.0, way: 0.0 };

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn within_a_second_the_number_is_there() {
    for server in [LOCAL_SATURATED_AT_2, SATURATED_AT_8, SATURATED_AT_32, FAR] {
        let mut simulation = Simulation::new(server, 0.0, 1);
        simulation.run(SECOND);
        let share = simulation.share(SECOND);
        assert!(share > 0.95, "{server:?} {share} {:?}", simulation.changes);
    }
}

#[test]
fn a_minute_brings_what_the_best_number_would_have_brought() {
    for server in [LOCAL_SATURATED_AT_2, SATURATED_AT_8, SATURATED_AT_32, FAR, SLOW] {
        for seed in 1..20 {
            let mut simulation = Simulation::new(server, 0.1, seed * 7919);
            simulation.run(SECOND * 2);
            let share = simulation.share(SECOND * 60);
            assert!(share > 0.95, "{server:?} {seed} {share} {:?}", simulation.changes);
        }
    }
}

#[test]
fn more_than_are_needed_are_not_kept() {
    let mut simulation = Simulation::new(LOCAL_SATURATED_AT_2, 0.02, 5);
    simulation.run(SECOND * 60);
    assert!(simulation.climb.workers() <= 4, "{:?}", simulation.changes);
    let most = simulation.changes.iter().map(|(_, workers)| *workers).max();
    assert!(most <= Some(8), "{:?}", simulation.changes);
}

#[test]
fn a_server_of_many_moods_gets_neither_too_few_nor_too_many() {
    let (mut many, mut all) = (0, 0);
    for server in [LOCAL_SATURATED_AT_2, SATURATED_AT_8, FAR] {
        for seed in 1..40 {
            let mut simulation = Simulation::new(server, 0.1, seed * 104_729);
            simulation.gusts = 0.4;
            let share = simulation.share(SECOND * 5);
            assert!(share > 0.8, "{server:?} {seed} {share} {:?}", simulation.changes);
            if server.parallel < 3.0 && server.way == 0.0 {
                all += 1;
                many += usize::from(simulation.changes.iter().any(|(_, workers)| *workers > 16));
            }
        }
    }
    assert!(many * 4 <= all, "{many} of {all}");
}

#[test]
fn trials_become_rare() {
    for server in [LOCAL_SATURATED_AT_2, SATURATED_AT_8, FAR] {
        let mut simulation = Simulation::new(server, 0.1, 3);
        simulation.run(SECOND * 300);
        let before = simulation.changes.len();
        simulation.run(SECOND * 300);
        let changes = simulation.changes.len() - before;
        assert!(changes <= 40, "{server:?} {changes} {:?}", simulation.changes);
    }
}

#[test]
fn a_server_that_changes_is_followed() {
    let mut simulation = Simulation::new(LOCAL_SATURATED_AT_2, 0.05, 11);
    simulation.run(SECOND * 30);
    simulation.server = FAR;
    simulation.run(SECOND * 5);
    let share = simulation.share(SECOND * 10);
    assert!(share > 0.95, "{share} {:?}", simulation.changes);
    simulation.server = SATURATED_AT_32;
    simulation.run(SECOND * 8);
    let share = simulation.share(SECOND * 10);
    assert!(share > 0.95, "{share} {:?}", simulation.changes);
}

#[test]
fn where_readers_are_the_limit_the_number_stays() {
    let mut simulation = Simulation::new(SATURATED_AT_8, 0.05, 3);
    simulation.fed = 60.0;
    simulation.run(SECOND * 20);
    assert_eq!(simulation.climb.workers(), 2, "{:?}", simulation.changes);
    // They have more later.
    simulation.fed = f64::INFINITY;
    simulation.run(SECOND * 3);
    assert!(simulation.climb.workers() >= 6, "{:?}", simulation.changes);
}

#[test]
fn answers_that_take_longer_for_nothing_lower_the_number() {
    let mut simulation = Simulation::new(SATURATED_AT_8, 0.02, 3);
    simulation.run(SECOND * 10);
    let before = simulation.climb.workers();
    simulation.server = Server { parallel: 2.0, ..SATURATED_AT_8 };
    simulation.run(SECOND * 5);
    assert!(simulation.climb.workers() < before, "{:?}", simulation.changes);
}

#[test]
fn a_server_under_pressure_gets_less_where_that_costs_nothing() {
    let dirty = Pressure::Server(ServerPressure::Dirty(0.25));
    let mut simulation = Simulation::new(SATURATED_AT_8, 0.02, 3);
    simulation.run(SECOND * 3);
    simulation.pressure = dirty;
    simulation.server = Server { parallel: 2.0, ..SATURATED_AT_8 };
    simulation.run(SECOND * 20);
    assert!(simulation.climb.workers() <= 4, "{:?}", simulation.changes);
    // Where it does cost, the number stays, and does not climb.
    let mut simulation = Simulation::new(SATURATED_AT_8, 0.02, 3);
    simulation.run(SECOND * 3);
    let before = simulation.climb.workers();
    simulation.pressure = dirty;
    let share = simulation.share(SECOND * 60);
    assert!(share > 0.85, "{share} {:?}", simulation.changes);
    assert!(simulation.climb.workers() <= before, "{:?}", simulation.changes);
}

#[test]
fn lag_lowers_the_number_to_one_until_it_is_made_up_for() {
    for climb in [Climb::to(32), Climb::fixed(16)] {
        let mut simulation = Simulation::new(SATURATED_AT_8, 0.0, 3);
        simulation.climb = climb;
        simulation.run(SECOND * 5);
        let before = simulation.climb.workers();
        assert!(before >= 8);
        simulation.pressure = Pressure::Lag { lag: Duration::from_secs(40) };
        simulation.run(TICK);
        assert_eq!(simulation.climb.workers(), before / 2);
        simulation.run(SECOND * 10);
        assert_eq!(simulation.climb.workers(), 1);
        simulation.pressure = Pressure::None;
        simulation.run(SECOND * 12);
        assert!(simulation.climb.workers() >= 6, "{:?}", simulation.changes);
    }
}

#[test]
fn a_fixed_number_stays_whatever_comes_of_it() {
    let mut simulation = Simulation::new(LOCAL_SATURATED_AT_2, 0.1, 3);
    simulation.climb = Climb::fixed(16);
    simulation.pressure = Pressure::Server(ServerPressure::FlowControl);
    simulation.run(SECOND * 60);
    assert_eq!((simulation.climb.workers(), simulation.changes.len()), (16, 0));
}

#[test]
fn nothing_is_concluded_while_nothing_is_sent() {
    let mut climb = Climb::to(32);
    for _ in 0..10_000 {
        let idle = Window { elapsed: TICK, ..Window::default() };
        assert_eq!(climb.feed(&idle, Pressure::None), None);
    }
    assert_eq!(climb.workers(), WORKERS_START);
}

proptest! {
    #[test]
    fn whatever_comes_the_number_stays_in_its_bounds(
        most in 1_usize..40,
        windows in prop::collection::vec(
            (0_u64..300, 0_u64..1 << 30, 0_u64..100, 0_u64..100_000, 0_u64..100_000, 0_u8..4),
            1..300,
        ),
    ) {
        let mut climb = Climb::to(most);
        for (elapsed, bytes, batches, latency, in_flight, pressure) in windows {
            let window = Window {
                elapsed: Duration::from_millis(elapsed),
                bytes,
                documents: batches * 10,
                batches,
                latency: Duration::from_millis(latency),
                in_flight: Duration::from_millis(in_flight),
            };
            let pressure = match pressure {
                0 => Pressure::Lag { lag: Duration::from_secs(elapsed) },
                1 => Pressure::Server(ServerPressure::FlowControl),
                _ => Pressure::None,
            };
            let before = climb.workers();
            let decision = climb.feed(&window, pressure);
            prop_assert!((1..=most).contains(&climb.workers()));
            prop_assert_eq!(decision.is_some(), before != climb.workers());
        }
    }

    #[test]
    fn any_server_is_used_to_nine_tenths_and_more(
        parallel in 1_u32..32,
        speed in 10_u32..200,
        way in 0_u32..100,
        seed in 1_u64..1_000_000,
    ) {
        let server = Server {
            parallel: f64::from(parallel),
            speed: f64::from(speed),
            way: f64::from(way) / 1000.0,
        };
        // What 32 cannot reach nobody can.
        let reachable = server.rate(32, f64::INFINITY) / server.best();
        let mut simulation = Simulation::new(server, 0.05, seed);
        simulation.run(SECOND * 3);
        let share = simulation.share(SECOND * 30) / reachable;
        prop_assert!(share > 0.93, "{:?} {} {:?}", server, share, simulation.changes);
    }
}
