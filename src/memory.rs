//! The bytes that large documents may take together, over all that read and send them.
//!
//! Buffers of ordinary documents are bounded by their number. A document that does not fit into
//! them takes its share of a budget before it is read, and gives it back once it is answered for.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Bytes that are shared; clones speak of the same ones.
#[derive(Clone, Debug)]
pub struct Budget(Arc<Account>);

#[derive(Debug)]
struct Account {
    bytes: usize,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    free: usize,
    /// Who waits, the first in front: a large share is not overtaken by small ones for ever.
    waiting: VecDeque<u64>,
    next: u64,
}

/// A part of a budget, given back when it is dropped.
#[derive(Debug)]
pub struct Share {
    account: Arc<Account>,
    bytes: usize,
}

impl Budget {
    /// A budget of so many bytes.
    pub fn new(bytes: usize) -> Self {
        let state = State { free: bytes, waiting: VecDeque::new(), next: 0 };
        Self(Arc::new(Account { bytes, state: Mutex::new(state), changed: Condvar::new() }))
    }

    /// Waits until so many bytes are free, and takes them; more than there are at all count as all
    /// of them.
    pub fn take(&self, bytes: usize) -> Share {
        let account = &self.0;
        let bytes = bytes.min(account.bytes);
        let mut state = account.state();
        let ticket = state.next;
        state.next += 1;
        state.waiting.push_back(ticket);
        while state.waiting.front() != Some(&ticket) || state.free < bytes {
            state = account.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.waiting.pop_front();
        state.free -= bytes;
        drop(state);
        // The next one may find enough as well.
        account.changed.notify_all();
        Share { account: Arc::clone(account), bytes }
    }
}

impl Budget {
    /// Takes so many bytes if they are free and nobody waits for some.
    pub fn take_if_free(&self, bytes: usize) -> Option<Share> {
        let account = &self.0;
        let mut state = account.state();
        if !state.waiting.is_empty() || state.free < bytes {
            return None;
        }
        state.free -= bytes;
        drop(state);
        Some(Share { account: Arc::clone(account), bytes })
    }
}

impl Account {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.account.state().free += self.bytes;
        self.account.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn shares_never_exceed_the_budget_and_everyone_gets_one() {
        let budget = Budget::new(100);
        let (taken, most, served) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for number in 0..8_usize {
                let (budget, taken, most, served) = (budget.clone(), &taken, &most, &served);
                scope.spawn(move || {
                    for round in 0..50_usize {
                        let bytes = 1 + (number * 37 + round * 13) % 120;
                        let share = budget.take(bytes);
                        let bytes = bytes.min(100);
                        let now = taken.fetch_add(bytes, Ordering::SeqCst) + bytes;
                        most.fetch_max(now, Ordering::SeqCst);
                        std::thread::yield_now();
                        taken.fetch_sub(bytes, Ordering::SeqCst);
                        drop(share);
                        served.fetch_add(1, Ordering::SeqCst);
                    }
                });
            }
        });
        assert_eq!(served.into_inner(), 400);
        assert!(most.into_inner() <= 100);
    }
}
