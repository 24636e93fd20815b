//! The servers that tests take turns with.

use super::Mongod;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Servers alive at once. Each wants a core while it is used, and `cargo test` runs as many tests
/// at once as there are cores.
const ALIVE_MAX: usize = 2;

/// A server that a test may use alone.
pub(super) enum Place {
    /// One of our own.
    Own(Mongod),
    /// The one `$MONGODB_URI` names.
    Foreign(String),
}

struct Shelf {
    idle: Vec<Place>,
    alive: usize,
    alive_max: usize,
}

static SHELF: Mutex<Shelf> = Mutex::new(Shelf { idle: Vec::new(), alive: 0, alive_max: ALIVE_MAX });
static RETURNED: Condvar = Condvar::new();

/// A test that panics while it holds the lock leaves the shelf whole: it is changed in one step.
fn shelf() -> MutexGuard<'static, Shelf> {
    SHELF.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The connection string of a server that is not ours, where one is given.
pub(super) fn foreign_uri() -> Option<String> {
    std::env::var("MONGODB_URI").ok().filter(|uri| !uri.is_empty())
}

/// Takes an idle server, starts one, or waits for one.
pub(super) fn take() -> Place {
    let mut shelf = shelf();
    loop {
        if let Some(place) = shelf.idle.pop() {
            return place;
        }
        if shelf.alive < shelf.alive_max {
            shelf.alive += 1;
            break;
        }
        shelf = RETURNED.wait(shelf).unwrap_or_else(PoisonError::into_inner);
    }
    if let Some(uri) = foreign_uri() {
        shelf.alive_max = 1;
        return Place::Foreign(uri);
    }
    drop(shelf);
    let started = std::panic::catch_unwind(|| Mongod::start(&[]));
    match started {
        Ok(mongod) => Place::Own(mongod),
        Err(reason) => {
            retire();
            std::panic::resume_unwind(reason)
        }
    }
}

/// Puts a clean server back for the next test.
pub(super) fn put_back(place: Place) {
    shelf().idle.push(place);
    RETURNED.notify_one();
}

/// Frees the place of a server that is gone, so that another may be started.
pub(super) fn retire() {
    shelf().alive -= 1;
    RETURNED.notify_one();
}
