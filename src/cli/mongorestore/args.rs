//! Options of mongorestore that need no room of their own.

use clap::Args;

use crate::cli::restore::at_most;
use crate::limits::{WORKERS_DEFAULT, WORKERS_MAX};

/// Options of mongorestore whose meaning restorm covers by others.
#[derive(Args, Clone, Debug, Default)]
pub struct DropInArgs {
    /// Batches in flight for each collection that is read: --workers with -j times as many
    #[arg(long, alias = "numInsertionWorkersPerCollection", value_name = "N")]
    #[arg(value_parser = at_most(WORKERS_MAX), conflicts_with = "workers")]
    #[arg(help_heading = "How it is done")]
    insertion_workers_per_collection: Option<usize>,
}

impl DropInArgs {
    /// Batches in flight, where a number was asked for: all workers write any collection, so what
    /// was asked for each of them adds up, and to no less than any server has room for.
    pub(in crate::cli) fn workers(&self, parallel_collections: usize) -> Option<usize> {
        let each = self.insertion_workers_per_collection?;
        Some(each.saturating_mul(parallel_collections).clamp(WORKERS_DEFAULT, WORKERS_MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_add_up_to_no_less_than_there_is_room_for() {
        for (each, parallel, expected) in [
            (None, 4, None),
            (Some(1), 4, Some(WORKERS_DEFAULT)),
            (Some(4), 4, Some(16)),
            (Some(1024), 256, Some(WORKERS_MAX)),
        ] {
            let args = DropInArgs { insertion_workers_per_collection: each };
            assert_eq!(args.workers(parallel), expected, "{each:?} {parallel}");
        }
    }
}
