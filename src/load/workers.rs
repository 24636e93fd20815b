//! How many batches are in flight.

use crate::limits::{WORKERS_ADAPTIVE_MAX, WORKERS_DEFAULT};

/// How many batches are in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workers {
    /// So many.
    Fixed(usize),
    /// As many as bring the most, found out while the run goes on.
    Adaptive {
        /// No more than this.
        most: usize,
    },
}

impl Default for Workers {
    fn default() -> Self {
        Self::Adaptive { most: WORKERS_ADAPTIVE_MAX }
    }
}

impl Workers {
    /// How many there may be.
    pub fn most(self) -> usize {
        match self {
            Self::Fixed(workers) | Self::Adaptive { most: workers } => workers,
        }
    }

    /// The number, where it is fixed.
    pub fn fixed(self) -> Option<usize> {
        match self {
            Self::Fixed(workers) => Some(workers),
            Self::Adaptive { .. } => None,
        }
    }

    /// Those for which memory is set aside; further ones get it from what large documents may
    /// take, as long as none of them needs it.
    pub(super) fn provided(self) -> usize {
        match self {
            Self::Fixed(workers) => workers,
            Self::Adaptive { most } => most.min(WORKERS_DEFAULT),
        }
    }

    /// One fewer.
    pub(super) fn lowered(self) -> Self {
        match self {
            Self::Fixed(workers) => Self::Fixed(workers - 1),
            Self::Adaptive { most } => Self::Adaptive { most: most - 1 },
        }
    }
}
