//! The arguments that say which server is filled with made-up documents, and how.

use std::sync::Arc;
use std::time::Instant;

use clap::Args;

use crate::cli::connection::{ConnectionArgs, Server, StandardInput, Surroundings};
use crate::cli::metrics::MetricsArgs;
use crate::cli::mongorestore::DropInArgs;
use crate::cli::output;
use crate::cli::pace::PaceArgs;
use crate::cli::progress::{ProgressArgs, Speaker};
use crate::cli::reports::ReportArgs;
use crate::cli::restore::{OnOff, at_most, batch_bytes, size, style, write_concern};
use crate::cli::resumption::{self, ResumptionArgs};
use crate::cli::signals;
use crate::command::restore::{
    BatchLimits, Connection, Destination, ExistingPolicy, IndexPolicy, LedgerOptions, LoadSettings,
    RestoreOptions, Restored, Selection, Stop, Workers, WriteConcern, restore,
};
use crate::error::{Error, ErrorKind};
use crate::exit::ExitStatus;
use crate::limits::{
    BATCH_BYTES_DEFAULT, BATCH_DOCUMENTS_DEFAULT, BATCH_DOCUMENTS_MAX, CREATES_AHEAD,
    DIFFERENCES_DEFAULT, PARALLEL_COLLECTIONS_DEFAULT, PARALLEL_COLLECTIONS_MAX,
    PARALLEL_INDEX_BUILDS_DEFAULT,
};
use crate::report::live::Live;
use crate::report::{Observer, OptionValue, Progress, Report, Verbosity, text};

#[derive(Args, Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "flags as typed; options have enums")]
pub(super) struct FillingArgs {
    #[command(flatten)]
    pub(super) connection: ConnectionArgs,

    /// Who acknowledges a write: majority, a number, a tag, or {w:…, j:…, wtimeout:…}
    #[arg(long, value_name = "CONCERN", help_heading = "Into a server")]
    #[arg(value_parser = write_concern)]
    write_concern: Option<WriteConcern>,

    /// Whether acknowledgements wait for the journal
    #[arg(long, value_name = "WHEN", value_enum, help_heading = "Into a server")]
    journal: Option<OnOff>,

    /// Make everything and send nothing: measures the tool without a server
    #[arg(long, conflicts_with_all = ["out", "archive"], help_heading = "Into a server")]
    null: bool,

    /// Drop each collection before it is filled
    #[arg(long, help_heading = "Into a server")]
    drop: bool,

    /// Compare what was brought with what was made afterwards, by count and hash of all documents;
    /// a difference is exit status 4. With --duration that is always done
    #[arg(long, help_heading = "Into a server")]
    verify: bool,

    /// Collections filled side by side; with --duration all of them
    #[arg(long, short = 'j', value_name = "N", default_value_t = PARALLEL_COLLECTIONS_DEFAULT)]
    #[arg(value_parser = at_most(PARALLEL_COLLECTIONS_MAX), help_heading = "Into a server")]
    parallel_collections: usize,

    #[command(flatten)]
    pace: PaceArgs,

    /// Documents in a batch, at most
    #[arg(long, value_name = "N", default_value_t = BATCH_DOCUMENTS_DEFAULT)]
    #[arg(value_parser = at_most(BATCH_DOCUMENTS_MAX), help_heading = "Into a server")]
    batch_documents: usize,

    /// Bytes in a batch, at most; K, M for KiB, MiB. A larger document travels alone
    #[arg(long, value_name = "SIZE", default_value = "1M", value_parser = batch_bytes)]
    #[arg(help_heading = "Into a server")]
    batch_bytes: usize,

    /// Memory that buffers may take; K, M, G for KiB, MiB, GiB [default: 384M, or what the other
    /// settings need]
    #[arg(long, value_name = "SIZE", value_parser = size, help_heading = "Into a server")]
    memory: Option<usize>,

    /// Index builds at once
    #[arg(long, value_name = "N", default_value_t = PARALLEL_INDEX_BUILDS_DEFAULT)]
    #[arg(value_parser = at_most(64), help_heading = "Into a server")]
    parallel_index_builds: usize,

    #[command(flatten)]
    resumption: ResumptionArgs,

    #[command(flatten)]
    reports: ReportArgs,

    #[command(flatten)]
    metrics: MetricsArgs,

    #[command(flatten)]
    progress: ProgressArgs,

    /// Show nothing but errors
    #[arg(long, short, conflicts_with = "verbose", help_heading = "What is shown")]
    quiet: bool,

    /// Show every collection and index
    #[arg(long, short, action = clap::ArgAction::Count, help_heading = "What is shown")]
    verbose: u8,
}

impl FillingArgs {
    /// Whether documents go to a server, or to nobody, instead of into files.
    pub(super) fn is_meant(&self) -> bool {
        self.null || self.connection.names_server()
    }

    /// An option that says how a server is filled, if one is given.
    pub(super) fn needless_for_files(&self) -> Option<String> {
        let workers = self.pace.workers(&DropInArgs::default(), self.parallel_collections);
        let told = self.told(workers).into_iter().next().map(|told| told.name);
        let shown = [
            ("report", self.reports.is_given()),
            ("progress", self.progress.is_given()),
            ("verbose", self.verbose > 0),
        ];
        let shown = shown.into_iter().find_map(|(name, is_given)| is_given.then_some(name));
        told.or_else(|| shown.map(str::to_owned))
    }

    /// The server that is meant; none where nothing is sent.
    pub(super) fn server(&self, warn: &dyn Fn(&str)) -> Result<Option<Server>, Error> {
        match (self.null, self.connection.names_server()) {
            (true, false) => Ok(None),
            (true, true) => Err(Error::new(
                ErrorKind::Usage,
                "--null sends nothing; it cannot be used with a server",
            )),
            (false, _) => {
                let input = StandardInput::Free;
                let around = Surroundings { positional: None, database: None, input, warn };
                self.connection.server(around).map(Some)
            }
        }
    }

    /// How a server is filled with what the template names; `all_at_once` is how many collections
    /// have to be filled side by side, if that matters.
    pub(super) fn onto(
        &self,
        server: Option<&Server>,
        all_at_once: Option<usize>,
        template: RestoreOptions,
    ) -> Result<RestoreOptions, Error> {
        if all_at_once.is_some() && self.resumption.names_ledger() {
            let message = "--duration makes as many documents as there is time for, which cannot \
                           be resumed";
            return Err(Error::new(ErrorKind::Usage, message)
                .hint("--from makes the next run go on with new numbers"));
        }
        let readers = all_at_once.unwrap_or(self.parallel_collections);
        let workers = self.pace.workers(&DropInArgs::default(), readers);
        let verifies = self.verify || (all_at_once.is_some() && server.is_some());
        let existing = if self.drop { ExistingPolicy::Drop } else { ExistingPolicy::Add };
        Ok(RestoreOptions {
            destination: server
                .map_or(Destination::Null, |server| self.destination(server, workers)),
            selection: Selection { existing, indexes: IndexPolicy::Build, ..template.selection },
            ledger: match all_at_once {
                // Where time is all that ends it, nobody could say what is left to do.
                Some(_) => LedgerOptions::default(),
                None => self.resumption.ledger(),
            },
            verify: verifies.then_some(DIFFERENCES_DEFAULT),
            settings: LoadSettings {
                readers,
                workers,
                rate_limit: self.pace.rate_limit(),
                lag_max: self.pace.lag_max(),
                batch: BatchLimits::new(self.batch_documents, self.batch_bytes),
                index_builds: self.parallel_index_builds,
                retry_for: self.resumption.retry_for(),
                ..LoadSettings::default()
            }
            .within(self.memory)?,
            told: self.told(workers),
            ..template
        })
    }

    fn destination(&self, server: &Server, workers: Workers) -> Destination {
        let connections = workers.most() + self.parallel_index_builds + CREATES_AHEAD;
        Destination::Server(Connection {
            uri: server.uri.to_text(),
            write_concern: self.write_concern.clone(),
            journal: self.journal.map(OnOff::journal),
            answer_within: self.resumption.answer_within(),
            connections_max: u32::try_from(connections).unwrap_or(u32::MAX),
        })
    }

    /// What differs from the defaults, as the report tells it.
    fn told(&self, workers: Workers) -> Vec<OptionValue> {
        let mut told = Vec::new();
        let mut tell = |name: &str, value: String| {
            told.push(OptionValue { name: name.to_owned(), value });
        };
        for (name, is_set) in [("null", self.null), ("drop", self.drop), ("verify", self.verify)] {
            if is_set {
                tell(name, "true".to_owned());
            }
        }
        for (name, value, default) in [
            ("parallel-collections", self.parallel_collections, PARALLEL_COLLECTIONS_DEFAULT),
            ("batch-documents", self.batch_documents, BATCH_DOCUMENTS_DEFAULT),
            ("batch-bytes", self.batch_bytes, BATCH_BYTES_DEFAULT),
            ("parallel-index-builds", self.parallel_index_builds, PARALLEL_INDEX_BUILDS_DEFAULT),
        ] {
            if value != default {
                tell(name, value.to_string());
            }
        }
        if let Some(memory) = self.memory {
            tell("memory", memory.to_string());
        }
        if let Some(concern) = &self.write_concern {
            tell("write-concern", concern.to_string());
        }
        if let Some(journal) = self.journal {
            tell("journal", if journal == OnOff::On { "on" } else { "off" }.to_owned());
        }
        told.extend(self.pace.told(workers));
        told.extend(self.resumption.told());
        told.extend(self.metrics.told());
        told
    }

    /// Whether nothing but errors is shown.
    pub(super) fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// Who speaks, since `began`.
    pub(super) fn speaker(&self, began: Instant) -> Speaker {
        self.progress.speaker(began)
    }

    fn verbosity(&self) -> Verbosity {
        if self.verbose > 0 { Verbosity::Verbose } else { Verbosity::Normal }
    }

    fn progress(&self, began: Instant) -> Progress {
        if self.quiet { Progress::quiet() } else { self.progress.progress(began, self.verbosity()) }
    }

    /// Fills a server as a restore does, and shows what came of it.
    pub(super) async fn fill(
        &self,
        options: &RestoreOptions,
        began: Instant,
    ) -> Result<ExitStatus, Error> {
        self.reports.check()?;
        let serving = self.metrics.serve().await?;
        let progress = Arc::new(self.progress(began));
        serving.place().iter().for_each(|place| progress.tell(place));
        let stop = Stop::new();
        let screen = Arc::clone(&progress);
        let voice = self.speaker(began).voice();
        signals::listen(stop.clone(), voice, move |line| screen.tell(line));
        let observer: Arc<dyn Observer> = Arc::clone(&progress) as _;
        let restored = restore(options, serving.beside(observer), stop.clone(), began).await;
        serving.end(matches!(restored, Ok(Restored::Ran(_))), &stop).await;
        progress.finish();
        match restored? {
            Restored::Planned(_) => {
                Err(Error::new(ErrorKind::Internal, "what was to be filled was only planned"))
            }
            Restored::Ran(report) => self.show(&report, began),
        }
    }

    fn show(&self, report: &Report, began: Instant) -> Result<ExitStatus, Error> {
        let goes_on = report.ledger.is_some().then(|| resumption::command(std::env::args()));
        let speaker = self.speaker(began);
        if speaker != Speaker::Text {
            speaker.tell(&Live::ended(report, goes_on.as_deref()));
        } else if !self.quiet || report.exit_status != ExitStatus::Restored {
            output::say(text::summary(report, &style(self.verbosity())).trim_end());
        }
        self.reports.write(report)?;
        if let Some(command) = goes_on.filter(|_| speaker == Speaker::Text) {
            output::say(&format!("go on with:\n  {command}"));
        }
        Ok(report.exit_status)
    }
}
