//! The arguments of `restorm survey`.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::cli::connection::{ConnectionArgs, StandardInput, Surroundings};
use crate::cli::output::{self, Stream};
use crate::cli::reports::check_json;
use crate::cli::signals::{self, Voice};
use crate::command::restore::{
    Connection, NamespaceFilter, NamespacePattern, Stop, SurveyDetail, is_uri,
};
use crate::command::survey::{SurveyOptions, survey};
use crate::error::{Error, ErrorKind};
use crate::exit::ExitStatus;
use crate::limits::{
    REPORT_COLUMNS, SURVEY_AT_ONCE, SURVEY_DOCUMENTS, SURVEY_SAMPLES, SURVEY_SAMPLES_MAX,
};
use crate::report::text::{Colour, Style};
use crate::report::{OptionValue, SurveyReport, Verbosity, json, text};

/// More documents than this are a search rather than a look.
const DOCUMENTS_MAX: u32 = 100_000;

/// Show what a server holds
///
/// Of each collection: documents, data and file sizes, compression, indexes and their sizes, the
/// fields of its first and last documents with their types, and two documents as examples. Only
/// what a user with the role `read` may see is asked for, nothing is changed, and what is not told
/// to the user is left out with a note.
///
/// `restore --survey` does so before and after a restore, and tells the difference.
#[derive(Args, Clone, Debug)]
#[command(after_help = after_help(), disable_help_flag = true)]
#[command(override_usage = "restorm survey [OPTIONS] [NAMESPACE]… [URI]")]
pub struct SurveyArgs {
    /// Collections, such as `shop.orders` or `shop.*`, or whole databases by their name [default:
    /// all but those of the server itself]
    #[arg(value_name = "NAMESPACE")]
    positionals: Vec<String>,

    /// Print help; `-h` is the host, as in restore
    #[arg(long, action = clap::ArgAction::Help)]
    help: Option<bool>,

    #[command(flatten)]
    connection: ConnectionArgs,

    /// Documents of a collection whose fields are listed, half of them from its beginning and half
    /// from its end; 0 for none
    #[arg(long, value_name = "N", default_value_t = SURVEY_DOCUMENTS)]
    #[arg(value_parser = clap::value_parser!(u32).range(..=i64::from(DOCUMENTS_MAX)))]
    #[arg(help_heading = "What is shown")]
    documents: u32,

    /// Documents of a collection that are shown as examples; 0 for none
    #[arg(long, value_name = "N", default_value_t = SURVEY_SAMPLES, value_parser = samples)]
    #[arg(help_heading = "What is shown")]
    samples: usize,

    /// Print JSON of the schema restorm.survey/1 instead of tables
    #[arg(long, help_heading = "What is shown")]
    json: bool,

    /// Write JSON of the schema restorm.survey/1 to this file as well
    #[arg(long, value_name = "FILE", help_heading = "What is shown")]
    report: Option<PathBuf>,

    /// Show every collection and field
    #[arg(long, short, action = clap::ArgAction::Count, help_heading = "What is shown")]
    verbose: u8,
}

fn after_help() -> String {
    format!(
        "Examples:\n  \
         restorm survey --uri mongodb://db1\n  \
         restorm survey mongodb://db1 shop 'blog.*' --samples 0\n  \
         restorm survey mongodb://db1 --json | jq .survey.totals\n\n\
         Exit status:\n{}",
        ExitStatus::table()
    )
}

fn samples(text: &str) -> Result<usize, String> {
    match text.parse::<usize>() {
        Ok(number) if number <= SURVEY_SAMPLES_MAX => Ok(number),
        _ => Err(format!("a whole number up to {SURVEY_SAMPLES_MAX} is needed")),
    }
}

impl SurveyArgs {
    /// The arguments as options of the command; `warn` shows what is unsafe or without effect.
    fn to_options(&self, warn: &dyn Fn(&str)) -> Result<SurveyOptions, Error> {
        let given = self.positionals.iter().filter(|word| !word.is_empty());
        let (servers, names): (Vec<_>, Vec<_>) = given.partition(|word| is_uri(word));
        if servers.len() > 1 {
            let message = "more than one connection string is given as an argument";
            return Err(Error::new(ErrorKind::Usage, message));
        }
        let positional = servers.first().map(|uri| uri.as_str());
        let around = Surroundings { positional, database: None, input: StandardInput::Free, warn };
        let server = self.connection.server(around)?;
        let mut includes: Vec<_> = names.iter().map(|name| pattern(name)).collect();
        if includes.is_empty() {
            // A database in the connection string selects, as it does for a restore.
            let database = server.database.as_deref().map(NamespacePattern::escape);
            includes.extend(database.as_deref().map(pattern));
        }
        let connections = u32::try_from(SURVEY_AT_ONCE).unwrap_or(u32::MAX);
        Ok(SurveyOptions {
            connection: Connection {
                connections_max: connections,
                ..Connection::new(server.uri.to_text())
            },
            filter: NamespaceFilter { includes, ..NamespaceFilter::default() },
            detail: SurveyDetail {
                documents: self.documents,
                samples: self.samples,
                ..SurveyDetail::default()
            },
            told: self.told(&names),
        })
    }

    /// What differs from the defaults, as the report tells it.
    fn told(&self, names: &[&String]) -> Vec<OptionValue> {
        let option = |name: &str, value: String| OptionValue { name: name.to_owned(), value };
        let names = names.iter().map(|name| option("namespace", (*name).clone()));
        let documents = (self.documents != SURVEY_DOCUMENTS)
            .then(|| option("documents", self.documents.to_string()));
        let samples =
            (self.samples != SURVEY_SAMPLES).then(|| option("samples", self.samples.to_string()));
        names.chain(documents).chain(samples).collect()
    }
}

/// The pattern of a collection, or of all of a database.
fn pattern(name: &str) -> NamespacePattern {
    if name.contains(['.', '*']) {
        NamespacePattern::wildcards(name)
    } else {
        NamespacePattern::wildcards(&format!("{name}.*"))
    }
}

/// Takes stock and shows what was found.
pub(super) async fn run(args: SurveyArgs) -> Result<ExitStatus, Error> {
    let options = args.to_options(&|text| output::say(&format!("warning: {text}")))?;
    if let Some(file) = &args.report {
        check_json(file)?;
    }
    let stop = Stop::new();
    signals::listen(stop.clone(), Voice::Restorm, output::say);
    let report = survey(&options, &stop).await?;
    if args.json {
        output::data(&json::render(&report)?);
    } else {
        let verbosity = if args.verbose > 0 { Verbosity::Verbose } else { Verbosity::Normal };
        let width = output::columns(Stream::Out).unwrap_or(REPORT_COLUMNS);
        output::data(&text::surveyed(&report, &Style { colour: Colour::Never, width, verbosity }));
    }
    if let Some(file) = &args.report {
        write_report(file, &report)?;
    }
    Ok(ExitStatus::Restored)
}

fn write_report(file: &Path, report: &SurveyReport) -> Result<(), Error> {
    std::fs::write(file, json::render(report)?).map_err(|error| {
        Error::new(ErrorKind::Internal, format!("the report cannot be written: {error}"))
            .in_file(file)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::namespace::Namespace;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        survey: SurveyArgs,
    }

    fn options(line: &str) -> Result<SurveyOptions, String> {
        let words = std::iter::once("survey").chain(line.split_whitespace());
        let line = Line::try_parse_from(words).map_err(|error| error.to_string())?;
        line.survey.to_options(&|_| {}).map_err(|error| error.to_string())
    }

    #[test]
    fn without_arguments_all_of_localhost_is_surveyed() {
        let options = options("").expect("parsed");
        assert_eq!(options.connection.uri, "mongodb://localhost/?directConnection=true");
        assert_eq!(options.filter, NamespaceFilter::default());
        assert_eq!(options.detail, SurveyDetail::default());
        assert!(options.told.is_empty());
    }

    #[test]
    fn names_and_the_server_are_told_apart() {
        let given = options("shop blog.p* mongodb://x/ --samples 0 --documents 7").expect("parsed");
        assert_eq!(given.connection.uri, "mongodb://x/?directConnection=true");
        let takes = |options: &SurveyOptions, database: &str, collection: &str| {
            options.filter.takes(&Namespace::new(database, collection))
        };
        assert!(takes(&given, "shop", "orders") && takes(&given, "blog", "posts"));
        assert!(!takes(&given, "blog", "users") && !takes(&given, "shopping", "x"));
        assert_eq!((given.detail.samples, given.detail.documents), (0, 7));
        assert_eq!(given.told.len(), 4);
        let selected = options("mongodb://x/shop").expect("parsed");
        assert!(takes(&selected, "shop", "orders") && !takes(&selected, "blog", "posts"));
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for line in ["--samples 21", "--samples x", "--documents 100001", "mongodb://x mongodb://y"]
        {
            assert!(options(line).is_err(), "{line}");
        }
    }
}
