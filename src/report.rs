//! What happened, as a value, and the forms in which it is shown.
//!
//! Work emits an [`Event`] per batch, collection, index or phase, never per document. A [`Tally`]
//! folds events into counts, a [`Report`] is the tally at the end, and everything a person or a
//! program sees is made from one of the three: [`Progress`] and [`live`] while it goes on,
//! [`text`], [`json`] and [`html`] when it is over.

pub mod bound;
pub mod event;
pub mod format;
pub mod html;
pub mod json;
pub mod latency;
pub mod live;
pub mod lost;
pub mod metrics;
pub mod mongorestore;
pub mod observers;
pub mod probe;
pub mod progress;
mod pulse;
pub mod rate;
pub mod survey;
pub mod tally;
pub mod text;
pub mod timeline;
pub mod value;
pub mod verification;
pub mod workers;

pub use bound::{Bound, BoundBy};
pub use event::{
    Event, Observer, OplogTime, Phase, PlannedCollection, Rejection, Silent, Standing,
};
pub use metrics::Metrics;
pub use observers::Observers;
pub use probe::ProbeReport;
pub use progress::Progress;
pub use survey::{BeforeAndAfter, Survey, SurveyReport};
pub use tally::Tally;
pub use value::{Context, DumpFacts, OptionValue, Outcome, Report, Skipped, TargetFacts};
pub use verification::{Verification, VerifyReport};

/// How much is said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verbosity {
    /// What a person needs to know.
    #[default]
    Normal,
    /// Every collection, index and stray file as well.
    Verbose,
}
