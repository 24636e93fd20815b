//! The arguments of `restorm restore`.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use clap::{Args, ValueEnum};

use crate::cli::collections::CollectionArgs;
use crate::cli::connection::{
    ConnectionArgs, Server, StandardInput, Surroundings, split_positionals,
};
use crate::cli::damage::DamageArgs;
use crate::cli::existing::ExistingArgs;
use crate::cli::indexes::IndexArgs;
use crate::cli::metrics::MetricsArgs;
use crate::cli::mongorestore::DropInArgs;
use crate::cli::namespaces::NamespaceArgs;
use crate::cli::output::{self, Stream};
use crate::cli::pace::PaceArgs;
use crate::cli::progress::{ProgressArgs, Speaker};
use crate::cli::refusals::RefusalArgs;
use crate::cli::reports::ReportArgs;
use crate::cli::resumption::{self, ResumptionArgs};
use crate::cli::signals::{self, Voice};
use crate::cli::source::SourceArgs;
use crate::cli::special::SpecialArgs;
use crate::command::restore::{
    BatchLimits, Connection, Destination, IndexPolicy, Insertion, Journal, LoadSettings, Mode,
    Order, RestoreOptions, Restored, Selection, Stop, SurveyDetail, Workers, WriteConcern,
    memory_bytes_max, restore,
};
use crate::error::{Error, ErrorKind};
use crate::exit::ExitStatus;
use crate::limits::{
    BATCH_BYTES_DEFAULT, BATCH_BYTES_MAX, BATCH_DOCUMENTS_DEFAULT, DIFFERENCES_DEFAULT,
    DIFFERENCES_MAX, PARALLEL_COLLECTIONS_DEFAULT, PARALLEL_COLLECTIONS_MAX,
    PARALLEL_INDEX_BUILDS_DEFAULT, REPORT_COLUMNS, WORKERS_ADAPTIVE_MAX, WORKERS_DEFAULT,
};
use crate::report::live::Live;
use crate::report::text::{Colour, Style};
use crate::report::{Observer, OptionValue, Progress, Report, Verbosity, text};

/// Restore a dump into MongoDB
///
/// Takes a dump directory as mongodump writes it, the folder of one database, one .bson file, or an
/// archive from a file or a pipe; plain, gzip and zstd are told apart by their content. Documents
/// arrive byte for byte as they were dumped, and every one of them is accounted for at the end.
#[derive(Args, Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "flags as typed; options have enums")]
#[command(after_help = after_help(), disable_help_flag = true)]
#[command(override_usage = "restorm restore [OPTIONS] [DUMP] [URI]")]
pub struct RestoreArgs {
    /// The dump: its root, the folder of one database, one .bson file, an archive, or `-` for the
    /// documents of one collection on standard input [default: dump]
    #[arg(value_name = "DUMP")]
    positionals: Vec<PathBuf>,

    /// Print help; `-h` is the host, as in mongorestore
    #[arg(long, action = clap::ArgAction::Help)]
    help: Option<bool>,

    #[command(flatten)]
    connection: ConnectionArgs,

    /// Who acknowledges a write: majority, a number, a tag, or {w:…, j:…, wtimeout:…}
    #[arg(long, alias = "writeConcern", value_name = "CONCERN", help_heading = "Connection")]
    #[arg(value_parser = write_concern)]
    write_concern: Option<WriteConcern>,

    /// Whether acknowledgements wait for the journal; off is faster only with few batches in
    /// flight, and a crash of the server may lose what it acknowledged last
    #[arg(long, value_name = "WHEN", value_enum, help_heading = "Connection")]
    journal: Option<OnOff>,

    /// Read everything and send nothing: measures the tool without a server
    #[arg(long, help_heading = "Connection")]
    null: bool,

    #[command(flatten, next_help_heading = "What is restored")]
    source: SourceArgs,

    /// Restore only this database; for a database folder or a file, restore into it
    #[arg(long, short, value_name = "NAME", help_heading = "What is restored")]
    db: Option<String>,

    /// Restore only this collection; for a file, restore into it
    #[arg(long, short, value_name = "NAME", requires = "db", help_heading = "What is restored")]
    collection: Option<String>,

    #[command(flatten)]
    namespaces: NamespaceArgs,

    #[command(flatten)]
    existing: ExistingArgs,

    /// Build no indexes but the ones on _id
    #[arg(long, alias = "noIndexRestore", help_heading = "What is restored")]
    no_indexes: bool,

    #[command(flatten)]
    collections: CollectionArgs,

    #[command(flatten)]
    special: SpecialArgs,

    /// Print what would be done, and do nothing
    #[arg(long, alias = "dryRun", help_heading = "What is restored")]
    dry_run: bool,

    /// Insert the documents of each collection in the order of its file; capped collections
    /// always are
    #[arg(long, alias = "maintainInsertionOrder", help_heading = "How it is done")]
    maintain_insertion_order: bool,

    /// Collections read side by side
    #[arg(long, short = 'j', alias = "numParallelCollections", value_name = "N")]
    #[arg(default_value_t = PARALLEL_COLLECTIONS_DEFAULT, help_heading = "How it is done")]
    #[arg(value_parser = at_most(PARALLEL_COLLECTIONS_MAX))]
    parallel_collections: usize,

    #[command(flatten)]
    pace: PaceArgs,

    /// Documents in a batch, at most
    #[arg(long, alias = "batchSize", value_name = "N", default_value_t = BATCH_DOCUMENTS_DEFAULT)]
    #[arg(value_parser = at_most(crate::limits::BATCH_DOCUMENTS_MAX))]
    #[arg(help_heading = "How it is done")]
    batch_documents: usize,

    /// Bytes in a batch, at most; K, M for KiB, MiB. A larger document travels alone
    #[arg(long, value_name = "SIZE", default_value = "1M", value_parser = batch_bytes)]
    #[arg(help_heading = "How it is done")]
    batch_bytes: usize,

    /// Memory that buffers may take; K, M, G for KiB, MiB, GiB. Where it is small, fewer batches
    /// are in flight, and large documents wait for each other [default: 384M, or what the other
    /// settings need]
    #[arg(long, value_name = "SIZE", value_parser = size, help_heading = "How it is done")]
    memory: Option<usize>,

    /// Index builds at once
    #[arg(long, value_name = "N", default_value_t = PARALLEL_INDEX_BUILDS_DEFAULT)]
    #[arg(value_parser = at_most(64), help_heading = "How it is done")]
    parallel_index_builds: usize,

    #[command(flatten)]
    refusals: RefusalArgs,

    #[command(flatten)]
    resumption: ResumptionArgs,

    #[command(flatten)]
    damage: DamageArgs,

    #[command(flatten)]
    indexes: IndexArgs,

    /// Compare what was brought with the dump afterwards: count and hash of all documents, options
    /// and indexes; a difference is exit status 4. Hashes are taken as documents pass
    #[arg(long, help_heading = "Verification")]
    verify: bool,

    /// Differing documents listed of a collection
    #[arg(long, value_name = "N", default_value_t = DIFFERENCES_DEFAULT)]
    #[arg(value_parser = differences, help_heading = "Verification")]
    differences: usize,

    /// Take stock of the collections before and after, and tell the difference: sizes, indexes,
    /// fields, and documents as examples, all of it in the JSON report
    #[arg(long, help_heading = "Verification")]
    survey: bool,

    #[command(flatten)]
    reports: ReportArgs,

    #[command(flatten)]
    progress: ProgressArgs,

    #[command(flatten)]
    metrics: MetricsArgs,

    /// Show nothing but errors
    #[arg(long, short, conflicts_with = "verbose", help_heading = "What is shown")]
    quiet: bool,

    /// Show every collection, index and skipped file
    #[arg(long, short, action = clap::ArgAction::Count, help_heading = "What is shown")]
    verbose: u8,

    #[command(flatten)]
    drop_in: DropInArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum OnOff {
    On,
    Off,
}

impl OnOff {
    pub(super) fn journal(self) -> Journal {
        match self {
            Self::On => Journal::On,
            Self::Off => Journal::Off,
        }
    }
}

/// How much is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shown {
    /// Errors alone.
    Quiet,
    /// What a person needs to know.
    Normal,
    /// Everything.
    Verbose,
}

fn after_help() -> String {
    let megabytes = |workers| {
        let settings = LoadSettings { workers: Workers::Fixed(workers), ..LoadSettings::default() };
        memory_bytes_max(&settings) >> 20
    };
    let (few, most) = (megabytes(WORKERS_DEFAULT), megabytes(WORKERS_ADAPTIVE_MAX));
    format!(
        "Memory: buffers take at most \
         parallel-collections × (1M + batch-bytes) + (2 + 5 × workers) × batch-bytes, \
         {few} MiB with {WORKERS_DEFAULT} workers and {most} MiB with {WORKERS_ADAPTIVE_MAX}; what \
         is left of --memory is for documents above 1M, which take nine times their size while \
         they pass. \
         For an archive, 1M and at most 32M of open batches stand for the first term. \
         The program itself takes about 24 MiB on top, and what is known of each collection \
         about 2.5 KB.\n\n\
         Examples:\n  \
         restorm restore                                   dump/ into localhost\n  \
         restorm restore backup --uri mongodb://db1 --drop\n  \
         restorm restore backup/shop --db shop_copy        one database under another name\n  \
         restorm restore backup/shop/orders.bson.gz        one collection\n  \
         restorm restore backup.archive                    an archive, recognised by itself\n  \
         mongodump --archive | restorm restore --archive   an archive through a pipe\n  \
         restorm restore backup --dry-run                  what would be done\n\n\
         Exit status:\n{}",
        ExitStatus::table()
    )
}

/// A whole number from 1 to `most`.
pub(super) fn at_most(
    most: usize,
) -> impl Fn(&str) -> Result<usize, String> + Clone + Send + Sync + 'static {
    move |text| match text.parse::<usize>() {
        Ok(number) if (1..=most).contains(&number) => Ok(number),
        _ => Err(format!("a whole number from 1 to {most} is needed")),
    }
}

/// A size in bytes, with an optional K, M or G for KiB, MiB or GiB.
pub(super) fn size(text: &str) -> Result<usize, String> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let unit = match text[digits.len()..].to_ascii_uppercase().as_str() {
        "" | "B" => 1,
        "K" | "KB" | "KIB" => 1 << 10,
        "M" | "MB" | "MIB" => 1 << 20,
        "G" | "GB" | "GIB" => 1 << 30,
        other => return Err(format!("the unit {other} is not known; use K, M or G")),
    };
    let bytes = digits.parse::<usize>().ok().and_then(|number| number.checked_mul(unit));
    bytes.ok_or_else(|| "a size such as 256M is needed".to_owned())
}

/// The size of a batch.
pub(super) fn batch_bytes(text: &str) -> Result<usize, String> {
    match size(text).map(Some)? {
        Some(bytes) if (1..=BATCH_BYTES_MAX).contains(&bytes) => Ok(bytes),
        _ => Err(format!("a size from 1 to {BATCH_BYTES_MAX} bytes is needed")),
    }
}

/// How many differing documents are listed.
pub(super) fn differences(text: &str) -> Result<usize, String> {
    match text.parse::<usize>() {
        Ok(number) if number <= DIFFERENCES_MAX => Ok(number),
        _ => Err(format!("a whole number up to {DIFFERENCES_MAX} is needed")),
    }
}

pub(super) fn write_concern(text: &str) -> Result<WriteConcern, String> {
    WriteConcern::parse(text).map_err(|error| match error.hint_text() {
        Some(hint) => format!("{error}; {hint}"),
        None => error.to_string(),
    })
}

impl RestoreArgs {
    /// The arguments as options of the command; `warn` shows what is unsafe or without effect.
    pub(super) fn to_options(&self, warn: &dyn Fn(&str)) -> Result<RestoreOptions, Error> {
        let (positional, dump) = split_positionals(&self.positionals)?;
        let source = self.source.source(dump)?;
        let input = if source.is_input() { StandardInput::Dump } else { StandardInput::Free };
        let server = self.server(positional, input, warn)?;
        let of_server = server.as_ref().and_then(|server| server.database.clone());
        let database = self.db.clone().or(of_server);
        Ok(RestoreOptions {
            dump: source.location,
            database: database.clone(),
            collection: self.collection.clone(),
            destination: self.destination(server.as_ref()),
            selection: self.selection()?,
            occupied: self.existing.occupied(),
            commit_quorum: self.indexes.commit_quorum(),
            special: self.special.to_options()?,
            ledger: self.resumption.ledger(),
            damage: self.damage.damage(),
            rejects: self.refusals.rejects.clone(),
            verify: self.verify.then_some(self.differences),
            survey: self.survey.then(SurveyDetail::of_restore),
            settings: LoadSettings {
                readers: self.parallel_collections,
                workers: self.workers(),
                rate_limit: self.pace.rate_limit(),
                lag_max: self.pace.lag_max(),
                batch: BatchLimits::new(self.batch_documents, self.batch_bytes),
                index_builds: self.parallel_index_builds,
                write_mode: self.existing.write_mode(),
                on_rejection: self.refusals.on_rejection(),
                failure_limit: self.refusals.max_failures,
                document_check: self.collections.check(),
                retry_for: self.resumption.retry_for(),
                ..LoadSettings::default()
            }
            .within(self.memory)?,
            mode: if self.dry_run { Mode::DryRun } else { Mode::Restore },
            told: self.told(),
        })
    }

    /// Refuses what would be an error after the command line, and what restores nothing.
    pub(super) fn check_measurable(&self) -> Result<(), Error> {
        let options = self.to_options(&|_| {})?;
        options.check()?;
        if options.mode == Mode::DryRun || self.resumption.resumes() {
            let refused = "a restore that does nothing or goes on cannot be measured";
            return Err(Error::new(ErrorKind::Usage, refused));
        }
        Ok(())
    }

    /// The first file that the report is written to.
    pub(super) fn report_file(&self) -> Option<&PathBuf> {
        self.reports.first()
    }

    fn selection(&self) -> Result<Selection, Error> {
        Ok(Selection {
            names: self.namespaces.names(self.db.as_deref(), self.collection.as_deref())?,
            existing: self.existing.policy(),
            indexes: if self.no_indexes { IndexPolicy::Skip } else { IndexPolicy::Build },
            uuids: self.collections.uuids(),
            options: self.collections.options(),
            index_fixes: self.indexes.fixes(),
            validation: self.collections.validation(),
            insertion: if self.maintain_insertion_order {
                Insertion::InOrder
            } else {
                Insertion::AnyOrder
            },
            order: Order::LargestFirst,
        })
    }

    /// The server, which nothing names where nothing is sent.
    fn server(
        &self,
        positional: Option<&str>,
        input: StandardInput,
        warn: &dyn Fn(&str),
    ) -> Result<Option<Server>, Error> {
        if self.null {
            if self.connection.names_server() || positional.is_some() {
                return Err(Error::new(
                    ErrorKind::Usage,
                    "--null sends nothing; it cannot be used with a server",
                ));
            }
            return Ok(None);
        }
        let around = Surroundings { positional, database: self.db.as_deref(), input, warn };
        self.connection.server(around).map(Some)
    }

    fn destination(&self, server: Option<&Server>) -> Destination {
        let Some(server) = server else {
            return Destination::Null;
        };
        let connections =
            self.workers().most() + self.parallel_index_builds + crate::limits::CREATES_AHEAD;
        Destination::Server(Connection {
            uri: server.uri.to_text(),
            write_concern: self.write_concern.clone(),
            journal: self.journal.map(OnOff::journal),
            answer_within: self.resumption.answer_within(),
            connections_max: u32::try_from(connections).unwrap_or(u32::MAX),
        })
    }

    /// What differs from the defaults, as the report tells it.
    fn told(&self) -> Vec<OptionValue> {
        let mut told: Vec<_> = self.existing.told().collect();
        let mut tell = |name: &str, value: String| {
            told.push(OptionValue { name: name.to_owned(), value });
        };
        for (name, is_set) in [
            ("no-indexes", self.no_indexes),
            ("maintain-insertion-order", self.maintain_insertion_order),
            ("null", self.null),
            ("verify", self.verify),
            ("survey", self.survey),
        ] {
            if is_set {
                tell(name, "true".to_owned());
            }
        }
        told.extend(self.special.told());
        let mut tell = |name: &str, value: String| {
            told.push(OptionValue { name: name.to_owned(), value });
        };
        let archive = self.source.told();
        for (name, value) in
            [("archive", &archive), ("db", &self.db), ("collection", &self.collection)]
        {
            if let Some(value) = value {
                tell(name, value.clone());
            }
        }
        told.extend(self.namespaces.told());
        told.extend(self.collections.told());
        told.extend(self.indexes.told());
        told.extend(self.refusals.told());
        told.extend(self.resumption.told());
        told.extend(self.pace.told(self.workers()));
        told.extend(self.damage.told());
        told.extend(self.metrics.told());
        let mut tell = |name: &str, value: String| {
            told.push(OptionValue { name: name.to_owned(), value });
        };
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
        told
    }

    fn workers(&self) -> Workers {
        self.pace.workers(&self.drop_in, self.parallel_collections)
    }

    /// How the arguments about the dump were understood, where that may surprise.
    pub(super) fn how_understood(&self) -> Result<Vec<String>, Error> {
        let (_, dump) = split_positionals(&self.positionals)?;
        let note = self.source.source(dump)?.note.filter(|_| !self.quiet);
        let needless = self.source.needless().filter(|_| self.shown() == Shown::Verbose);
        Ok(note.into_iter().chain(needless.map(str::to_owned)).collect())
    }

    /// How much is shown.
    pub(super) fn shown(&self) -> Shown {
        match (self.quiet, self.verbose) {
            (true, _) => Shown::Quiet,
            (false, 0) => Shown::Normal,
            (false, _) => Shown::Verbose,
        }
    }

    fn verbosity(&self) -> Verbosity {
        if self.verbose > 0 { Verbosity::Verbose } else { Verbosity::Normal }
    }

    fn progress(&self, began: Instant) -> Progress {
        if self.quiet { Progress::quiet() } else { self.progress.progress(began, self.verbosity()) }
    }

    /// The lines under the name of mongorestore have one form, which scripts know.
    pub(super) fn refuse_progress(&self) -> Result<(), Error> {
        if self.progress.is_given() {
            let refused = "--progress is an option of `restorm restore`, not of mongorestore";
            return Err(Error::new(ErrorKind::Usage, refused));
        }
        Ok(())
    }

    /// Writes the report to the files that were asked for.
    pub(super) fn write_report(&self, report: &Report) -> Result<(), Error> {
        self.reports.write(report)
    }
}

/// Runs the command and shows what came of it.
pub(super) async fn run(args: RestoreArgs, notes: &[String]) -> Result<ExitStatus, Error> {
    let began = Instant::now();
    let speaker = args.progress.speaker(began);
    for note in notes.iter().filter(|_| !args.quiet) {
        speaker.note(note);
    }
    for note in args.how_understood()? {
        speaker.note(&note);
    }
    let is_quiet = args.quiet;
    let warn = move |text: &str| {
        if !is_quiet {
            speaker.warn(text);
        }
    };
    let progress = Arc::new(args.progress(began));
    let screen = Arc::clone(&progress);
    let tell = move |line: &str| screen.tell(line);
    let observer = Arc::clone(&progress);
    let said = Said { voice: speaker.voice(), warn: &warn, tell };
    let restored = restore_with(&args, observer, said, began).await;
    progress.finish();
    match restored? {
        Restored::Planned(plan) => {
            output::data(&plan);
            Ok(ExitStatus::Restored)
        }
        Restored::Ran(report) => show(&args, speaker, &report),
    }
}

/// How a run speaks of what no event tells.
pub(super) struct Said<'a, F> {
    /// In whose words.
    pub(super) voice: Voice,
    /// Shows a warning before the run.
    pub(super) warn: &'a dyn Fn(&str),
    /// Shows a line while the run goes on.
    pub(super) tell: F,
}

/// Runs the command and tells an observer.
pub(super) async fn restore_with<F: Fn(&str) + Send + 'static>(
    args: &RestoreArgs,
    observer: Arc<dyn Observer>,
    said: Said<'_, F>,
    began: Instant,
) -> Result<Restored, Error> {
    let options = args.to_options(said.warn)?;
    args.reports.check()?;
    let serving = args.metrics.serve().await?;
    serving.place().iter().for_each(|place| (said.tell)(place));
    let stop = Stop::new();
    signals::listen(stop.clone(), said.voice, said.tell);
    let restored = restore(&options, serving.beside(observer), stop.clone(), began).await;
    serving.end(matches!(restored, Ok(Restored::Ran(_))), &stop).await;
    restored
}

fn show(args: &RestoreArgs, speaker: Speaker, report: &Report) -> Result<ExitStatus, Error> {
    let goes_on = report.ledger.is_some().then(|| resumption::command(std::env::args()));
    if speaker != Speaker::Text {
        speaker.tell(&Live::ended(report, goes_on.as_deref()));
        args.write_report(report)?;
        return Ok(report.exit_status);
    }
    let is_clean = report.exit_status == ExitStatus::Restored;
    if !(args.quiet && is_clean) {
        output::say(text::summary(report, &style(args.verbosity())).trim_end());
    }
    args.write_report(report)?;
    if let Some(command) = goes_on {
        output::say(&format!("go on with:\n  {command}"));
    }
    Ok(report.exit_status)
}

pub(super) fn style(verbosity: Verbosity) -> Style {
    let colour = if output::is_coloured() { Colour::Always } else { Colour::Never };
    let width = output::columns(Stream::Error).unwrap_or(REPORT_COLUMNS);
    Style { colour, width, verbosity }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::restore::{Damage, ExistingPolicy, OnRejection, Validation};
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        restore: RestoreArgs,
    }

    fn options(line: &str) -> Result<RestoreOptions, String> {
        let words = std::iter::once("restore").chain(line.split_whitespace());
        let line = Line::try_parse_from(words).map_err(|error| error.to_string())?;
        let options = line.restore.to_options(&|_| {}).map_err(|error| error.to_string())?;
        options.check().map(|()| options).map_err(|error| error.to_string())
    }

    fn uri(line: &str) -> String {
        match options(line).expect("parsed").destination {
            Destination::Server(connection) => connection.uri,
            Destination::Null => "null".to_owned(),
        }
    }

    #[test]
    fn without_arguments_dump_goes_to_localhost() {
        let options = options("").expect("parsed");
        assert_eq!(options.dump, crate::dump::Location::Path("dump".into()));
        assert_eq!(options.selection, Selection::default());
        assert_eq!(options.settings, LoadSettings::default());
        assert_eq!(options.mode, Mode::Restore);
        assert!(options.told.is_empty());
        assert_eq!(uri(""), "mongodb://localhost/?directConnection=true");
    }

    #[test]
    fn the_server_is_named_in_many_ways() {
        for (line, expected) in [
            ("--host db1", "mongodb://db1/?directConnection=true"),
            ("-h rs0/a,b --port 5", "mongodb://a:5,b:5/?replicaSet=rs0"),
            ("--uri mongodb://x,y", "mongodb://x,y/"),
            ("mongodb://x,y dump", "mongodb://x,y/"),
            ("--null", "null"),
        ] {
            assert_eq!(uri(line), expected, "{line}");
        }
        assert!(options("--host rs0/").is_err());
        assert!(options("--uri mongodb://x --host y").is_err());
        assert!(options("--null --host y").is_err());
        assert!(options("--uri mongodb://x mongodb://x").is_err());
    }

    #[test]
    fn better_than_the_peer_b3_a_database_in_the_connection_string_selects_or_is_an_error() {
        let options = options("--uri mongodb://x/shop").expect("parsed");
        assert_eq!(options.database.as_deref(), Some("shop"));
    }

    #[test]
    fn each_flag_reaches_its_option() {
        let options = options(
            "d --drop --no-indexes --validate-documents --maintain-insertion-order \
             --stop-on-error --dry-run -j 2 --workers 3 --batch-documents 4 --batch-bytes 5K \
             --parallel-index-builds 6 --journal off --write-concern 1 -d shop -c orders",
        )
        .expect("parsed");
        assert_eq!(options.selection.existing, ExistingPolicy::Drop);
        assert_eq!(options.selection.indexes, IndexPolicy::Skip);
        assert_eq!(options.selection.validation, Validation::Kept);
        assert_eq!(options.selection.insertion, Insertion::InOrder);
        assert_eq!(options.settings.on_rejection, OnRejection::StopRun);
        assert_eq!(options.settings.readers, 2);
        assert_eq!(options.settings.workers, Workers::Fixed(3));
        assert_eq!(options.settings.batch, BatchLimits::new(4, 5 * 1024));
        assert_eq!(options.settings.index_builds, 6);
        assert_eq!(options.mode, Mode::DryRun);
        assert_eq!(options.database.as_deref(), Some("shop"));
        assert_eq!(options.collection.as_deref(), Some("orders"));
        let Destination::Server(connection) = options.destination else {
            panic!("a server was named");
        };
        assert_eq!(connection.journal, Some(Journal::Off));
        assert_eq!(connection.write_concern, WriteConcern::parse("1").ok());
        assert_eq!(options.told.len(), 14);
    }

    #[test]
    fn the_pace_is_found_out_or_said() {
        let settings = |line| options(line).map(|options| options.settings);
        let found_out = settings("").expect("parsed");
        assert_eq!(found_out.workers, Workers::Adaptive { most: 32 });
        assert_eq!((found_out.rate_limit, found_out.lag_max), (None, None));
        let said = settings("--workers 4 --rate-limit 5000docs --max-lag 30s").expect("parsed");
        assert_eq!(said.workers, Workers::Fixed(4));
        assert_eq!(said.rate_limit.map(|limit| limit.to_string()).as_deref(), Some("5000docs"));
        assert_eq!(said.lag_max, Some(std::time::Duration::from_secs(30)));
        let per_collection = settings("--numInsertionWorkersPerCollection 4").expect("parsed");
        assert_eq!(per_collection.workers, Workers::Fixed(16));
        assert!(settings("--numInsertionWorkersPerCollection 4 --workers 4").is_err());
        let error = settings("--rate-limit 5000").expect_err("no unit");
        assert!(error.contains("5000 of what?"), "{error}");
        // Large batches leave room for fewer, and take no more memory than they have to.
        let large = settings("--batch-bytes 16000000").expect("parsed");
        assert_eq!(large.workers, Workers::Adaptive { most: 8 });
    }

    #[test]
    fn damage_is_read_around_where_that_is_asked_for() {
        let damage = |line| options(line).map(|options| options.damage);
        assert_eq!(damage(""), Ok(Damage::EndsCollection));
        assert_eq!(damage("--salvage"), Ok(Damage::ReadAround { folder: None }));
        let folder = Some("kept".into());
        assert_eq!(damage("--salvage --salvage-dir kept"), Ok(Damage::ReadAround { folder }));
        assert!(damage("--salvage-dir kept").is_err());
        assert_eq!(options("--salvage --salvage-dir kept").expect("parsed").told.len(), 2);
    }

    #[test]
    fn the_peers_spelling_is_taken() {
        let options = options(
            "--noIndexRestore --maintainInsertionOrder --stopOnError --dryRun \
             --numParallelCollections 7 --writeConcern majority --batchSize 9",
        )
        .expect("parsed");
        assert_eq!(options.settings.readers, 7);
        assert_eq!(options.settings.batch.documents(), 9);
        assert_eq!(options.mode, Mode::DryRun);
    }

    #[test]
    fn users_of_a_database_need_one_wherever_it_is_named() {
        for line in [
            "--restoreDbUsersAndRoles --db shop",
            "--restoreDbUsersAndRoles --uri mongodb://x/shop",
        ] {
            assert!(options(line).is_ok(), "{line}");
        }
        for (line, words) in [
            ("--restoreDbUsersAndRoles", "needs the database"),
            ("--restoreDbUsersAndRoles --nsInclude shop.*", "needs the database"),
            ("--restoreDbUsersAndRoles --db admin", "not for the database admin"),
            ("--restoreDbUsersAndRoles --uri mongodb://x/admin", "not for the database admin"),
        ] {
            let error = options(line).expect_err(line);
            assert!(error.contains(words), "{line}: {error}");
        }
    }

    #[test]
    fn an_oplog_is_replayed_for_everything_under_its_own_name_or_not_at_all() {
        for (more, words) in [
            ("--db shop", "not replayed for the database `shop` alone"),
            ("--db shop --collection orders", "not replayed for the database `shop` alone"),
            ("--uri mongodb://x/shop", "not replayed for the database `shop` alone"),
            ("--nsInclude shop.*", "not replayed for a part of the collections"),
            ("--nsExclude shop.*", "not replayed for all but some collections"),
            ("--excludeCollection orders", "not replayed for all but some collections"),
            ("--excludeCollectionsWithPrefix o", "not replayed for all but some collections"),
            ("--nsFrom shop.* --nsTo till.*", "collections that get other names"),
            ("--oplogFile o.bson --archive=a", "not for an archive"),
            ("--oplogFile o.bson --archive", "not for an archive"),
        ] {
            let error = options(&format!("--oplogReplay {more}")).expect_err(more);
            assert!(error.contains(words), "{more}: {error}");
        }
        for line in [
            "--oplogReplay",
            "--oplogReplay --uri mongodb://x",
            "--oplogReplay --oplogFile o.bson --oplogLimit 5:1",
            "--oplogReplay --archive=a --oplogLimit 5",
        ] {
            assert!(options(line).is_ok(), "{line}");
        }
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for line in [
            "--workers 0",
            "-j 0",
            "-j x",
            "--batch-documents 100001",
            "--batch-bytes 17M",
            "--batch-bytes 1G",
            "--write-concern 0",
            "--write-concern {x:1}",
            "--collection orders",
            "--quiet --verbose",
        ] {
            assert!(options(line).is_err(), "{line}");
        }
    }
}
