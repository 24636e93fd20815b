//! What documents did to stored ones, counted.

use std::ops::{Add, AddAssign};

use serde::{Deserialize, Serialize};

/// Documents that were not inserted but found a stored one to change, or found none to delete.
///
/// A document that is sent again after its answer was lost counts as what the answer that came says
/// of it: what it had replaced the first time is unchanged then, what it had deleted not found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Changes {
    /// Documents that took the place of a stored one that was another.
    pub replaced: u64,
    /// Documents that were merged into a stored one, which is another now.
    pub merged: u64,
    /// Documents that replaced a stored one or were merged into it and left it as it was.
    pub unchanged: u64,
    /// Documents for which a stored one was deleted.
    pub deleted: u64,
    /// Documents for which none was found to delete.
    pub not_found: u64,
}

impl Changes {
    /// What each count is called, and how many it is.
    pub fn parts(&self) -> [(&'static str, u64); 5] {
        let Self { replaced, merged, unchanged, deleted, not_found } = *self;
        [
            ("replaced", replaced),
            ("merged", merged),
            ("unchanged", unchanged),
            ("deleted", deleted),
            ("not found", not_found),
        ]
    }

    /// All of them.
    pub fn documents(&self) -> u64 {
        self.parts().iter().map(|(_, documents)| documents).sum()
    }

    /// Those for which there was a stored document.
    pub fn found(&self) -> u64 {
        self.documents() - self.not_found
    }

    /// Whether there are none.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

impl Add for Changes {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            replaced: self.replaced.saturating_add(other.replaced),
            merged: self.merged.saturating_add(other.merged),
            unchanged: self.unchanged.saturating_add(other.unchanged),
            deleted: self.deleted.saturating_add(other.deleted),
            not_found: self.not_found.saturating_add(other.not_found),
        }
    }
}

impl AddAssign for Changes {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_added_each_to_its_own() {
        let one = Changes { replaced: 1, merged: 2, unchanged: 3, deleted: 4, not_found: 5 };
        let mut two = one;
        two += one;
        let doubled = one.parts().map(|(what, documents)| (what, 2 * documents));
        assert_eq!(two.parts(), doubled);
        assert_eq!((two.documents(), two.found()), (30, 20));
        assert!(!two.is_none() && Changes::default().is_none());
    }
}
