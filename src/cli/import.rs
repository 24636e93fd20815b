//! The arguments of `restorm import`.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Instant;

use clap::{Args, ValueEnum};

use crate::cli::connection::{ConnectionArgs, Server, StandardInput, Surroundings};
use crate::cli::metrics::MetricsArgs;
use crate::cli::output;
use crate::cli::pace::LimitArgs;
use crate::cli::progress::ProgressArgs;
use crate::cli::refusals::RefusalArgs;
use crate::cli::reports::ReportArgs;
use crate::cli::restore::{Said, at_most, batch_bytes, size, style, write_concern};
use crate::cli::signals::{self, Voice};
use crate::cli::tables::TableArgs;
use crate::command::import::{ImportOptions, TextInput, import};
use crate::command::restore::{
    BatchLimits, Connection, Destination, ExistingPolicy, FieldNames, Insertion, KeyFields,
    LoadSettings, Stop, Validation, Workers, WriteConcern, WriteMode, is_uri,
};
use crate::error::{Error, ErrorKind};
use crate::exit::ExitStatus;
use crate::limits::{
    ANSWER_WITHIN, BATCH_BYTES_DEFAULT, BATCH_DOCUMENTS_DEFAULT, BATCH_DOCUMENTS_MAX,
    CREATES_AHEAD, TEXT_PARSERS_MAX, WORKERS_MAX,
};
use crate::namespace::Namespace;
use crate::report::mongorestore::Level;
use crate::report::{Observer, OptionValue, Progress, Report, Verbosity, text};

/// The database that mongoimport imports into where none is named.
const DATABASE: &str = "test";

/// Import JSON, CSV or TSV into a collection
///
/// Takes JSON lines, documents one after the other, or an array of documents, as mongoexport
/// writes them: Extended JSON of both versions, relaxed or canonical; or tables with commas or
/// tabulators; plain, gzip and zstd are told apart by their content. Texts are cut at the ends of
/// documents and parsed on all cores. A line that is no document is counted, told with its place,
/// and ends nothing.
#[derive(Args, Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "flags as typed; options have enums")]
#[command(after_help = after_help(), disable_help_flag = true)]
#[command(override_usage = "restorm import [OPTIONS] [FILE]... [URI]")]
pub struct ImportArgs {
    /// The texts; `-` or nothing is standard input
    #[arg(value_name = "FILE")]
    positionals: Vec<PathBuf>,

    /// Print help; `-h` is the host, as in mongoimport
    #[arg(long, action = clap::ArgAction::Help)]
    help: Option<bool>,

    #[command(flatten)]
    connection: ConnectionArgs,

    /// Who acknowledges a write: majority, a number, a tag, or {w:…, j:…, wtimeout:…}
    #[arg(long, alias = "writeConcern", value_name = "CONCERN", help_heading = "Connection")]
    #[arg(value_parser = write_concern)]
    write_concern: Option<WriteConcern>,

    /// Read everything and send nothing: measures the tool without a server
    #[arg(long, help_heading = "Connection")]
    null: bool,

    /// Import into this database [default: that of the connection string, else test]
    #[arg(long, short, value_name = "NAME", help_heading = "Where it goes")]
    db: Option<String>,

    /// Import into this collection [default: the name of the file without its endings]
    #[arg(long, short, value_name = "NAME", help_heading = "Where it goes")]
    collection: Option<String>,

    /// Drop the collection first
    #[arg(long, help_heading = "Where it goes")]
    drop: bool,

    /// Take documents that the collection's validator would refuse
    #[arg(long, alias = "bypassDocumentValidation", help_heading = "Where it goes")]
    bypass_document_validation: bool,

    /// A text; may be given several times, and without `--file` as well
    #[arg(long, value_name = "FILE", help_heading = "What is read")]
    file: Vec<PathBuf>,

    #[command(flatten)]
    table: TableArgs,

    /// What becomes of a document whose _id is there; `upsert`, `merge` and `delete` go in the
    /// order of the text [default: insert]
    #[arg(long, value_name = "MODE", value_enum, help_heading = "Where it goes")]
    mode: Option<ImportMode>,

    /// The fields that tell which stored document is meant, such as `sku,shop.id` [default: _id]
    #[arg(long, alias = "upsertFields", value_name = "NAMES", help_heading = "Where it goes")]
    upsert_fields: Option<String>,

    /// The same as `--mode upsert`
    #[arg(long, hide = true)]
    upsert: bool,

    /// Insert documents in the order of the text, which one thread then parses
    #[arg(long, alias = "maintainInsertionOrder", help_heading = "How it is done")]
    maintain_insertion_order: bool,

    /// Threads that turn text into documents [default: one for each core]
    #[arg(long, alias = "numDecodingWorkers", value_name = "N", help_heading = "How it is done")]
    #[arg(value_parser = at_most(TEXT_PARSERS_MAX))]
    parsers: Option<usize>,

    /// Batches in flight [default: as many as the server takes well]
    #[arg(long, short = 'j', alias = "numInsertionWorkers", value_name = "N")]
    #[arg(value_parser = at_most(WORKERS_MAX), help_heading = "How it is done")]
    workers: Option<usize>,

    /// Documents in a batch, at most
    #[arg(long, alias = "batchSize", value_name = "N", default_value_t = BATCH_DOCUMENTS_DEFAULT)]
    #[arg(value_parser = at_most(BATCH_DOCUMENTS_MAX), help_heading = "How it is done")]
    batch_documents: usize,

    /// Bytes in a batch, at most; K, M for KiB, MiB
    #[arg(long, value_name = "SIZE", default_value = "1M", value_parser = batch_bytes)]
    #[arg(help_heading = "How it is done")]
    batch_bytes: usize,

    /// Memory that buffers may take; K, M, G for KiB, MiB, GiB
    #[arg(long, value_name = "SIZE", value_parser = size, help_heading = "How it is done")]
    memory: Option<usize>,

    #[command(flatten)]
    limits: LimitArgs,

    #[command(flatten)]
    refusals: RefusalArgs,

    #[command(flatten)]
    reports: ReportArgs,

    #[command(flatten)]
    progress: ProgressArgs,

    #[command(flatten)]
    metrics: MetricsArgs,

    /// Show nothing but errors
    #[arg(long, short, conflicts_with = "verbose", help_heading = "What is shown")]
    quiet: bool,

    /// Show more
    #[arg(long, short, action = clap::ArgAction::Count, help_heading = "What is shown")]
    verbose: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ImportMode {
    /// Insert all; one whose _id is there counts as rejected
    Insert,
    /// Leave the stored document alone and count this one as already there
    Skip,
    /// Put it in the place of the stored document
    Upsert,
    /// Set its fields in the stored document and keep the others
    Merge,
    /// Delete the stored document, and insert nothing
    Delete,
}

fn after_help() -> String {
    format!(
        "Examples:\n  \
         restorm import orders.json --db shop                 into shop.orders\n  \
         restorm import part-*.json.gz --db shop -c orders    many files, compressed\n  \
         restorm import orders.csv --type csv --headerline --db shop\n  \
         mongoexport -d shop -c orders | restorm import -d shop -c orders\n\n\
         Exit status:\n{}",
        ExitStatus::table()
    )
}

fn usage(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Usage, message)
}

impl ImportArgs {
    /// The arguments as options of the command; `warn` shows what is unsafe or without effect.
    fn to_options(&self, warn: &dyn Fn(&str)) -> Result<ImportOptions, Error> {
        let is_server = |word: &&PathBuf| word.to_str().is_some_and(is_uri);
        let (servers, files): (Vec<_>, Vec<_>) = self.positionals.iter().partition(is_server);
        if servers.len() > 1 {
            return Err(usage("more than one connection string is given as an argument"));
        }
        let inputs = inputs(files.into_iter().chain(&self.file))?;
        let takes_input = inputs.contains(&TextInput::Input);
        let input = if takes_input { StandardInput::Dump } else { StandardInput::Free };
        let positional = servers.first().and_then(|server| server.to_str());
        let server = self.server(positional, input, warn)?;
        let of_server = server.as_ref().and_then(|server| server.database.clone());
        let database = self.db.clone().or(of_server).unwrap_or_else(|| DATABASE.to_owned());
        let collection = match &self.collection {
            Some(collection) => collection.clone(),
            None => collection_of(&inputs)?,
        };
        let write_mode = self.write_mode()?;
        let parsers = self.parsers.unwrap_or_else(|| available_parallelism().map_or(1, Into::into));
        Ok(ImportOptions {
            inputs,
            form: self.table.form()?,
            namespace: Namespace::new(database, collection),
            destination: self.destination(server.as_ref()),
            existing: if self.drop { ExistingPolicy::Drop } else { ExistingPolicy::Add },
            validation: if self.bypass_document_validation {
                Validation::Bypassed
            } else {
                Validation::Kept
            },
            insertion: if self.maintain_insertion_order || write_mode.needs_order() {
                Insertion::InOrder
            } else {
                Insertion::AnyOrder
            },
            rejects: self.refusals.rejects.clone(),
            settings: LoadSettings {
                readers: parsers.min(TEXT_PARSERS_MAX),
                workers: self.workers(),
                rate_limit: self.limits.rate_limit(),
                lag_max: self.limits.lag_max(),
                batch: BatchLimits::new(self.batch_documents, self.batch_bytes),
                on_rejection: self.refusals.on_rejection(),
                write_mode,
                keys: self.keys()?,
                names: FieldNames::Paths,
                failure_limit: self.refusals.max_failures,
                ..LoadSettings::default()
            }
            .within(self.memory)?,
            told: self.told(),
        })
    }

    /// What becomes of documents that are there; as in mongoimport, fields to look them up by ask
    /// for an upsert.
    fn write_mode(&self) -> Result<WriteMode, Error> {
        let mode = if self.upsert { Some(ImportMode::Upsert) } else { self.mode };
        match (mode, &self.upsert_fields) {
            (Some(ImportMode::Insert | ImportMode::Skip), Some(_)) => {
                Err(usage("--upsertFields is for --mode upsert, merge and delete"))
            }
            (Some(ImportMode::Insert) | None, None) => Ok(WriteMode::Insert),
            (Some(ImportMode::Skip), None) => Ok(WriteMode::Skip),
            (Some(ImportMode::Upsert), _) | (None, Some(_)) => Ok(WriteMode::Replace),
            (Some(ImportMode::Merge), _) => Ok(WriteMode::Merge),
            (Some(ImportMode::Delete), _) => Ok(WriteMode::Delete),
        }
    }

    /// The fields that tell which stored document is meant.
    fn keys(&self) -> Result<KeyFields, Error> {
        let keys = self.upsert_fields.as_deref().map(KeyFields::parse).transpose();
        let keys = keys.map_err(|error| usage(format!("--upsertFields: {error}")))?;
        Ok(keys.unwrap_or_default())
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
                return Err(usage("--null sends nothing; it cannot be used with a server"));
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
        Destination::Server(Connection {
            uri: server.uri.to_text(),
            write_concern: self.write_concern.clone(),
            journal: None,
            answer_within: ANSWER_WITHIN,
            connections_max: u32::try_from(self.workers().most() + CREATES_AHEAD)
                .unwrap_or(u32::MAX),
        })
    }

    /// What differs from the defaults, as the report tells it.
    fn told(&self) -> Vec<OptionValue> {
        let flags = [
            ("drop", self.drop),
            ("bypass-document-validation", self.bypass_document_validation),
            ("maintain-insertion-order", self.maintain_insertion_order),
            ("null", self.null),
            ("upsert", self.upsert),
        ];
        let flags = flags.into_iter().filter(|(_, is_set)| *is_set);
        let flags = flags.map(|(name, _)| (name, Some("true".to_owned())));
        let number = |value: usize, default| (value != default).then(|| value.to_string());
        let values = [
            ("db", self.db.clone()),
            ("collection", self.collection.clone()),
            ("mode", self.mode.and_then(|mode| Some(mode.to_possible_value()?.get_name().into()))),
            ("upsert-fields", self.upsert_fields.clone()),
            ("parsers", self.parsers.map(|number| number.to_string())),
            ("workers", self.workers.map(|number| number.to_string())),
            ("batch-documents", number(self.batch_documents, BATCH_DOCUMENTS_DEFAULT)),
            ("batch-bytes", number(self.batch_bytes, BATCH_BYTES_DEFAULT)),
            ("memory", self.memory.map(|bytes| bytes.to_string())),
            ("write-concern", self.write_concern.as_ref().map(ToString::to_string)),
        ];
        let told = flags.chain(values).filter_map(|(name, value)| {
            value.map(|value| OptionValue { name: name.to_owned(), value })
        });
        let told = told.chain(self.table.told()).chain(self.limits.told());
        told.chain(self.refusals.told()).chain(self.metrics.told()).collect()
    }

    fn workers(&self) -> Workers {
        self.workers.map_or(LoadSettings::default().workers, Workers::Fixed)
    }

    /// How much the log under another name shows.
    pub(super) fn level(&self) -> Level {
        match (self.quiet, self.verbose) {
            (true, _) => Level::Quiet,
            (false, 0) => Level::Normal,
            (false, _) => Level::Verbose,
        }
    }

    /// Writes the report where that was asked for.
    pub(super) fn write_report(&self, report: &Report) -> Result<(), Error> {
        self.reports.write(report)
    }

    fn verbosity(&self) -> Verbosity {
        if self.verbose > 0 { Verbosity::Verbose } else { Verbosity::Normal }
    }

    fn progress(&self, began: Instant) -> Progress {
        if self.quiet { Progress::quiet() } else { self.progress.progress(began, self.verbosity()) }
    }
}

/// The texts that are named; standard input where none is.
fn inputs<'a>(files: impl Iterator<Item = &'a PathBuf>) -> Result<Vec<TextInput>, Error> {
    let inputs: Vec<_> = files
        .filter(|file| !file.as_os_str().is_empty())
        .map(|file| match file.as_path() {
            file if file == Path::new("-") => TextInput::Input,
            file => TextInput::File(file.to_path_buf()),
        })
        .collect();
    if inputs.iter().filter(|input| **input == TextInput::Input).count() > 1 {
        return Err(usage("standard input is named twice"));
    }
    Ok(if inputs.is_empty() { vec![TextInput::Input] } else { inputs })
}

/// The name of the only file, without what tells how it is compressed and written.
fn collection_of(inputs: &[TextInput]) -> Result<String, Error> {
    let [TextInput::File(file)] = inputs else {
        return Err(usage("the collection is not named").hint("name it with --collection"));
    };
    let name = file.file_name().map(|name| name.to_string_lossy().into_owned());
    let name = name.unwrap_or_default();
    let name = name.strip_suffix(".gz").or_else(|| name.strip_suffix(".zst")).unwrap_or(&name);
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    Ok(stem.to_owned())
}

/// Runs the command and shows what came of it.
pub(super) async fn run(args: ImportArgs) -> Result<ExitStatus, Error> {
    let began = Instant::now();
    let is_quiet = args.quiet;
    let warn = move |text: &str| {
        if !is_quiet {
            output::say(&format!("warning: {text}"));
        }
    };
    let progress = Arc::new(args.progress(began));
    let (screen, observer) = (Arc::clone(&progress), Arc::clone(&progress));
    let tell = move |line: &str| screen.tell(line);
    let said = Said { voice: Voice::Restorm, warn: &warn, tell };
    let imported = import_with(&args, observer, said, began).await;
    progress.finish();
    show(&args, &imported?)
}

/// Runs the command and tells an observer.
pub(super) async fn import_with<F: Fn(&str) + Send + 'static>(
    args: &ImportArgs,
    observer: Arc<dyn Observer>,
    Said { voice, warn, tell }: Said<'_, F>,
    began: Instant,
) -> Result<Report, Error> {
    let options = args.to_options(warn)?;
    args.reports.check()?;
    let serving = args.metrics.serve().await?;
    serving.place().iter().for_each(|place| tell(place));
    let stop = Stop::new();
    signals::listen(stop.clone(), voice, tell);
    let imported = import(&options, serving.beside(observer), stop.clone(), began).await;
    serving.end(imported.is_ok(), &stop).await;
    imported
}

fn show(args: &ImportArgs, report: &Report) -> Result<ExitStatus, Error> {
    if !(args.quiet && report.exit_status == ExitStatus::Restored) {
        output::say(text::summary(report, &style(args.verbosity())).trim_end());
    }
    args.reports.write(report)?;
    Ok(report.exit_status)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::import::{JsonLayout, Names, TextForm};
    use crate::command::restore::OnRejection;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        import: ImportArgs,
    }

    fn options(line: &str) -> Result<ImportOptions, String> {
        let words = std::iter::once("import").chain(line.split_whitespace());
        let line = Line::try_parse_from(words).map_err(|error| error.to_string())?;
        line.import.to_options(&|_| {}).map_err(|error| error.to_string())
    }

    #[test]
    fn the_collection_is_that_of_the_file_unless_it_is_named() {
        for (line, expected) in [
            ("orders.json", "test.orders"),
            ("a/b.c.json.gz -d shop", "shop.b.c"),
            ("orders.zst", "test.orders"),
            ("--uri mongodb://x/shop --file orders.json", "shop.orders"),
            ("-c c - mongodb://x/shop", "shop.c"),
            ("-d shop -c c", "shop.c"),
        ] {
            assert_eq!(options(line).expect(line).namespace.to_string(), expected, "{line}");
        }
        for line in ["", "a.json b.json", "-", "- - -c c", "mongodb://x mongodb://y a.json"] {
            assert!(options(line).is_err(), "{line}");
        }
    }

    #[test]
    fn each_flag_reaches_its_option() {
        let plain = options("a.json").expect("parsed");
        assert_eq!(plain.validation, Validation::Kept);
        assert_eq!((plain.existing, plain.insertion), (ExistingPolicy::Add, Insertion::AnyOrder));
        assert_eq!(plain.form, TextForm::Json(JsonLayout::Told));
        assert!(plain.told.is_empty(), "{:?}", plain.told);
        let options = options(
            "a.json b.json.gz -c c --type json --legacy --drop --jsonArray --stopOnError \
             --maintainInsertionOrder --bypassDocumentValidation --numInsertionWorkers 3 \
             --numDecodingWorkers 2 --batchSize 10 --writeConcern 1 --rejects aside \
             --rate-limit 500docs --max-lag 30s",
        )
        .expect("parsed");
        assert_eq!(options.inputs.len(), 2);
        assert_eq!(options.form, TextForm::LegacyJson(JsonLayout::Array));
        assert_eq!(options.existing, ExistingPolicy::Drop);
        assert_eq!(options.validation, Validation::Bypassed);
        assert_eq!(options.insertion, Insertion::InOrder);
        assert_eq!((options.settings.readers, options.settings.workers), (2, Workers::Fixed(3)));
        assert_eq!(options.settings.batch.documents(), 10);
        assert_eq!(options.settings.lag_max, Some(std::time::Duration::from_secs(30)));
        assert_eq!(options.settings.on_rejection, OnRejection::StopRun);
        assert_eq!(options.rejects, Some("aside".into()));
        assert_eq!(options.told.len(), 13);
    }

    #[test]
    fn each_mode_is_its_word_and_updates_keep_the_order() {
        for (line, mode, insertion) in [
            ("", WriteMode::Insert, Insertion::AnyOrder),
            ("--mode insert", WriteMode::Insert, Insertion::AnyOrder),
            ("--mode skip", WriteMode::Skip, Insertion::AnyOrder),
            ("--mode upsert", WriteMode::Replace, Insertion::InOrder),
            ("--mode merge --upsertFields _id", WriteMode::Merge, Insertion::InOrder),
            ("--upsertFields _id", WriteMode::Replace, Insertion::InOrder),
            ("--upsertFields a.b,c", WriteMode::Replace, Insertion::InOrder),
            ("--upsert", WriteMode::Replace, Insertion::InOrder),
            ("--mode delete --upsertFields a", WriteMode::Delete, Insertion::InOrder),
        ] {
            let options = options(&format!("a.json {line}")).expect(line);
            assert_eq!(
                (options.settings.write_mode, options.insertion),
                (mode, insertion),
                "{line}"
            );
        }
    }

    #[test]
    fn a_table_is_told_with_its_options() {
        let options = options("a.csv --type csv --fields x --ignoreBlanks").expect("parsed");
        let TextForm::Table(table) = &options.form else { panic!("no table") };
        assert_eq!(table.names, Names::Given(vec!["x".to_owned()]));
        let told: Vec<_> = options.told.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(told, ["ignore-blanks", "type", "fields"]);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for (line, words) in [
            ("a.json --mode some", "invalid value"),
            ("a.json --upsertFields a,a.b", "cannot both be fields"),
            ("a.json --mode insert --upsertFields _id", "is for --mode upsert, merge and delete"),
            ("a.csv --type csv", "nothing names the columns"),
            ("a.json --null --host x", "sends nothing"),
            ("a.json --workers 0", "whole number"),
            ("a.json --max-lag 0s", "a time from 1s on"),
            ("a.json --parsers 0", "whole number"),
        ] {
            let error = options(line).expect_err(line);
            assert!(error.contains(words), "{line}: {error}");
        }
    }
}
