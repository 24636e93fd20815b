//! Lets new connections in at a steady rate, so that setting them up is no attack.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;

use tokio::time::Instant;

/// A door that opens so many times a second.
#[derive(Debug)]
pub(super) struct Door {
    interval: Duration,
    /// When it opens next.
    next: Mutex<Instant>,
}

impl Door {
    /// A door that opens this often, at least once a second.
    pub(super) fn new(per_second: u32) -> Self {
        let interval = Duration::from_secs(1) / per_second.max(1);
        Self { interval, next: Mutex::new(Instant::now()) }
    }

    /// Waits for its turn.
    pub(super) async fn pass(&self) {
        let at = {
            let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
            // What was not used is not saved up.
            let at = (*next).max(Instant::now());
            *next = at + self.interval;
            at
        };
        tokio::time::sleep_until(at).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn connections_are_let_in_at_the_rate() {
        let door = Door::new(100);
        let began = Instant::now();
        for _ in 0..101 {
            door.pass().await;
        }
        let took = began.elapsed().as_secs_f64();
        assert!((took - 1.0).abs() < 0.01, "{took}");
    }

    #[tokio::test(start_paused = true)]
    async fn time_without_connections_is_not_saved_up() {
        let door = Door::new(10);
        tokio::time::sleep(Duration::from_secs(5)).await;
        let began = Instant::now();
        for _ in 0..11 {
            door.pass().await;
        }
        assert!(began.elapsed() >= Duration::from_millis(990));
    }
}
