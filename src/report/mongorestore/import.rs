//! What mongoimport says of an import.

use crate::report::Report;
use crate::report::event::{Event, Standing, TYPE_MISMATCH};
use crate::report::mongorestore::{Level, State, Tool};

/// The last line of an import. Rows that are passed over because that was asked for failed nothing.
pub(super) fn total(report: &Report, done: u64, failed: u64) -> String {
    let failures = report.collections.iter().flat_map(|collection| &collection.failures);
    let passed_over = failures.filter(|failure| failure.code == TYPE_MISMATCH);
    let failed = failed.saturating_sub(passed_over.map(|failure| failure.count).sum());
    let deletes = report.options.iter().any(|one| one.name == "mode" && one.value == "delete");
    if deletes {
        format!("{done} document(s) deleted successfully. {failed} document(s) failed to delete.")
    } else {
        Tool::Mongoimport.total(done, failed)
    }
}

impl State {
    pub(super) fn lines_of_import(&mut self, event: &Event, level: Level) -> Vec<String> {
        match event {
            Event::CollectionFailed { error, .. } => vec![format!("Failed: {error}")],
            _ if level == Level::Quiet => Vec::new(),
            Event::PrepareBegan { collection } if self.is_dropped(*collection) => {
                vec![format!("dropping: {}", self.name(*collection))]
            }
            Event::Rejected { collection, rejections } => self.rejected(*collection, rejections),
            Event::Damaged { collection, rejection, .. } => {
                self.rejected(*collection, std::slice::from_ref(rejection))
            }
            _ if level == Level::Normal => Vec::new(),
            Event::Retried { reason, .. } => vec![format!("tried again: {reason}")],
            Event::Note { text, .. } => vec![text.clone()],
            _ => Vec::new(),
        }
    }

    fn is_dropped(&self, collection: usize) -> bool {
        let standing = self.collection(collection).map(|tally| tally.planned.standing);
        standing == Some(Standing::Dropped)
    }
}
