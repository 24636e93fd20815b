//! How a target tells which of its acknowledged writes can no longer be lost.

/// What an acknowledgement is worth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Acknowledgement {
    /// What is acknowledged stays, as far as the target can promise it at all.
    #[default]
    Durable,
    /// What is acknowledged may be lost until a barrier behind it was passed.
    Volatile,
}

/// A point in the history of a replica set: an opTime.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark {
    /// The term of the primary that wrote it.
    pub term: i64,
    /// The timestamp: seconds in the upper 32 bits, the increment in the lower ones.
    pub time: u64,
}

impl Mark {
    /// The mark of two writes together: as easily lost as the earlier, as late as the later one.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self { term: self.term.min(other.term), time: self.time.max(other.time) }
    }

    /// The mark of two writes of which either may have none.
    pub fn of_both(one: Option<Self>, other: Option<Self>) -> Option<Self> {
        match (one, other) {
            (Some(one), Some(other)) => Some(one.and(other)),
            (one, other) => one.or(other),
        }
    }
}

/// What a barrier found out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Horizon {
    /// The incarnation of the server that answered: another one may have lost what the one before
    /// had acknowledged.
    pub server: String,
    /// Up to where the history of a replica set can no longer change; none where everything that
    /// this incarnation acknowledged before the barrier is safe.
    pub durable: Option<Mark>,
}

/// What has become of an acknowledged write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It can no longer be lost.
    Durable,
    /// It is not known yet.
    Open,
    /// It may be lost: another server took over before it was safe.
    Doubtful,
}

impl Horizon {
    /// The fate of a write that this incarnation acknowledged at this point of its history.
    pub fn fate(&self, server: &str, mark: Option<Mark>) -> Fate {
        match (self.durable, mark) {
            (Some(durable), Some(mark)) if durable.term == mark.term => {
                if mark.time <= durable.time { Fate::Durable } else { Fate::Open }
            }
            (Some(durable), Some(mark)) if durable.term < mark.term => Fate::Open,
            (Some(_), Some(_)) => Fate::Doubtful,
            _ if self.server == server => Fate::Durable,
            _ => Fate::Doubtful,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_is_safe_behind_the_horizon_of_its_own_term() {
        let horizon =
            |term, time| Horizon { server: "a".to_owned(), durable: Some(Mark { term, time }) };
        let mark = Some(Mark { term: 2, time: 50 });
        for (horizon, expected) in [
            (horizon(2, 50), Fate::Durable),
            (horizon(2, 49), Fate::Open),
            (horizon(1, 90), Fate::Open),
            (horizon(3, 90), Fate::Doubtful),
        ] {
            assert_eq!(horizon.fate("a", mark), expected, "{horizon:?}");
        }
    }

    #[test]
    fn without_a_history_a_write_is_as_safe_as_its_server() {
        let horizon = Horizon { server: "a".to_owned(), durable: None };
        assert_eq!(horizon.fate("a", None), Fate::Durable);
        assert_eq!(horizon.fate("b", None), Fate::Doubtful);
    }

    #[test]
    fn writes_together_are_as_easily_lost_as_the_earliest() {
        let (one, other) = (Mark { term: 1, time: 9 }, Mark { term: 2, time: 3 });
        assert_eq!(one.and(other), Mark { term: 1, time: 9 });
        assert_eq!(Mark::of_both(Some(one), Some(other)), Some(one.and(other)));
        assert_eq!(Mark::of_both(None, Some(other)), Some(other));
        assert_eq!(Mark::of_both(Some(one), None), Some(one));
        assert_eq!(Mark::of_both(None, None), None);
    }
}
