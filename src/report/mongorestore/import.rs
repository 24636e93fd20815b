//! What mongoimport says of an import.

use crate::report::event::{Event, Standing};
use crate::report::mongorestore::{Level, State};

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
