//! What happened, as a value, and the forms in which it is shown.
//!
//! Work emits an [`Event`] per batch, collection, index or phase, never per document. A [`Tally`]
//! folds events into counts, a [`Report`] is the tally at the end, and everything a person or a
//! program sees is made from one of the three.

pub mod event;
pub mod tally;

pub use event::{Event, Observer, Phase, PlannedCollection, Rejection, Silent};
pub use tally::Tally;
