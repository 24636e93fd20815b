//! Several observers in the place of one.

use std::sync::Arc;
use std::time::Duration;

use crate::report::event::{Event, Observer};

/// Tells each of them, in this order.
pub struct Observers(pub Vec<Arc<dyn Observer>>);

impl Observer for Observers {
    fn observe(&self, at: Duration, event: &Event) {
        for observer in &self.0 {
            observer.observe(at, event);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Progress;
    use crate::report::value::samples;

    #[test]
    fn each_is_told() {
        let (one, other) = (Arc::new(Progress::quiet()), Arc::new(Progress::quiet()));
        let both = Observers(vec![Arc::clone(&one) as _, Arc::clone(&other) as _]);
        for event in samples::clean_events() {
            both.observe(Duration::ZERO, &event);
        }
        assert_eq!(one.tally().balance().inserted, 20);
        assert_eq!(other.tally().balance().inserted, 20);
    }
}
