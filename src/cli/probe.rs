//! The arguments of `restorm probe`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::cli::connection::{ConnectionArgs, StandardInput, Surroundings, split_positionals};
use crate::cli::output::{self, Stream};
use crate::cli::reports::ReportArgs;
use crate::cli::restore::style;
use crate::cli::resumption::duration;
use crate::cli::signals::{self, Voice};
use crate::command::probe::{self, News};
use crate::command::restore::{ServerUri, Stop};
use crate::error::{Error, ErrorKind};
use crate::exit::ExitStatus;
use crate::limits::{
    PROBE_CONNECT_RATE, PROBE_CONNECTIONS, PROBE_CONNECTIONS_MAX, PROBE_DURATION, PROBE_JITTER,
    PROBE_STEPS, PROBE_STEPS_MAX, REPORT_COLUMNS,
};
use crate::namespace::Namespace;
use crate::probe::{Glance, Mix, Pace, ProbeOptions, Ramp, Rate};
use crate::report::format::{count, counted, latency, whole};
use crate::report::text::{Style, probe_meaning, probed};
use crate::report::{OptionValue, Verbosity, json};

/// Where documents are asked for unless it is said: where `seed` puts them.
const COLLECTION: &str = "c00001";
const DATABASE: &str = "seed";

/// What a connection string may ask of the driver and not of a probe, whose connections are no pool
/// and send each request as it is, to the primary.
const WITHOUT_EFFECT: [&str; 12] = [
    "compressors",
    "zlibCompressionLevel",
    "readPreference",
    "readPreferenceTags",
    "maxStalenessSeconds",
    "readConcernLevel",
    "maxPoolSize",
    "minPoolSize",
    "maxIdleTimeMS",
    "waitQueueTimeoutMS",
    "serverSelectionTimeoutMS",
    "socketTimeoutMS",
];

/// Read documents by their `_id` from thousands of connections
///
/// Each connection is a socket of its own that asks for a random document, again and again: flat
/// out, or so often a second by a schedule that does not wait for the server. Latencies of a
/// schedule count from the moment a request was due, so that a server that stalls is seen to stall
/// (no coordinated omission). With a ramp the number of connections rises step by step, and the
/// report says where more connections bring nothing more. Every answer is checked to be about the
/// document that was asked for.
#[derive(Args, Clone, Debug)]
#[command(after_help = after_help(), disable_help_flag = true)]
#[command(override_usage = "restorm probe [OPTIONS] [URI]")]
pub struct ProbeArgs {
    #[arg(value_name = "URI", hide = true)]
    positionals: Vec<PathBuf>,

    /// The collection whose documents are asked for, such as `shop.orders` [default: c00001 of the
    /// connection string's database, else of seed]
    #[arg(long, value_name = "NAMESPACE")]
    collection: Option<String>,

    /// Fill the collection with so many points first, if it holds nothing; their _ids are the
    /// whole numbers from 0
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    seed_documents: Option<u64>,

    /// How many connections [default: 150]
    #[arg(long, value_name = "N", conflicts_with = "ramp", value_parser = connections)]
    #[arg(help_heading = "Load")]
    connections: Option<u32>,

    /// From how many connections to how many, such as 150..10000
    #[arg(long, value_name = "FIRST..LAST", value_parser = ramp, help_heading = "Load")]
    ramp: Option<(u32, u32)>,

    /// In how many steps the ramp rises, each the same factor above the one before
    #[arg(long, value_name = "N", default_value_t = PROBE_STEPS, help_heading = "Load")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=i64::from(PROBE_STEPS_MAX)))]
    #[arg(requires = "ramp", conflicts_with = "connections")]
    steps: u32,

    /// How long all steps are held together, such as 60s or 10m; setting up connections comes on
    /// top [default: 60s]
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = "Load")]
    duration: Option<Duration>,

    /// So many requests a second of each connection [default: as many as it can]
    #[arg(long, value_name = "RATE", help_heading = "Load")]
    #[arg(value_parser = number, allow_negative_numbers = true)]
    rate_per_connection: Option<f64>,

    /// Move each request within this share of the time between two
    #[arg(long, value_name = "SHARE", default_value_t = PROBE_JITTER, help_heading = "Load")]
    #[arg(requires = "rate_per_connection", value_parser = number, allow_negative_numbers = true)]
    jitter: f64,

    /// The share of requests that insert a new document, from 0 to 1
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, help_heading = "Load")]
    #[arg(value_parser = number, allow_negative_numbers = true)]
    insert: f64,

    /// The share of requests that change a document, from 0 to 1
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, help_heading = "Load")]
    #[arg(value_parser = number, allow_negative_numbers = true)]
    update: f64,

    /// How many new connections are set up in a second
    #[arg(long, value_name = "N", default_value_t = PROBE_CONNECT_RATE, help_heading = "Load")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=100_000))]
    connect_rate: u32,

    /// Chooses the documents that are asked for, and the moments of a schedule
    #[arg(long, value_name = "NUMBER", default_value_t = 1, help_heading = "Load")]
    seed: u64,

    /// Print JSON of the schema restorm.probe/1 instead of a table
    #[arg(long, help_heading = "What is shown")]
    json: bool,

    #[command(flatten)]
    reports: ReportArgs,

    /// Say nothing while it goes on
    #[arg(long, short, help_heading = "What is shown")]
    quiet: bool,

    /// Print help; `-h` is the host, as in restore
    #[arg(long, action = clap::ArgAction::Help)]
    help: Option<bool>,

    #[command(flatten)]
    connection: ConnectionArgs,
}

fn after_help() -> String {
    let statuses = [
        ExitStatus::Restored,
        ExitStatus::Stopped,
        ExitStatus::Usage,
        ExitStatus::Failures,
        ExitStatus::Interrupted,
    ];
    let table = statuses.map(|status| format!("{:>5}  {}\n", status.code(), probe_meaning(status)));
    format!(
        "Examples:\n  \
         restorm probe --uri mongodb://db1 --seed-documents 100000\n  \
         restorm probe --uri mongodb://db1 --collection shop.orders --connections 500\n  \
         restorm probe --uri mongodb://db1 --ramp 150..10000 --rate-per-connection 10 \\\n      \
         --duration 10m --report probe.html --report probe.json\n  \
         restorm probe --uri mongodb://db1 --insert 0.1 --update 0.2\n\n\
         Exit status:\n{}",
        table.concat()
    )
}

fn connections(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(number) if (1..=PROBE_CONNECTIONS_MAX).contains(&number) => Ok(number),
        _ => Err(format!("a whole number from 1 to {PROBE_CONNECTIONS_MAX} is needed")),
    }
}

fn number(text: &str) -> Result<f64, String> {
    text.parse().map_err(|_| "a number such as 10 or 0.2 is needed".to_owned())
}

fn ramp(text: &str) -> Result<(u32, u32), String> {
    let (first, last) = text
        .split_once("..")
        .ok_or_else(|| "two numbers such as 150..10000 are needed".to_owned())?;
    Ok((connections(first)?, connections(last)?))
}

impl ProbeArgs {
    /// The connection string, and the arguments as options of the command; `warn` shows what is
    /// unsafe or without effect.
    fn to_options(&self, warn: &dyn Fn(&str)) -> Result<(String, ProbeOptions), Error> {
        let (positional, other) = split_positionals(&self.positionals)?;
        if let Some(other) = other {
            let message = format!("unexpected argument '{}'", other.display());
            return Err(Error::new(ErrorKind::Usage, message)
                .hint("a collection is named with --collection"));
        }
        let around = Surroundings { positional, database: None, input: StandardInput::Free, warn };
        let server = self.connection.server(around)?;
        for text in without_effect(&server.uri) {
            warn(&text);
        }
        let ramp = match self.ramp {
            Some((first, last)) => Ramp::between(first, last, self.steps)?,
            None => Ramp::flat(self.connections.unwrap_or(PROBE_CONNECTIONS)),
        };
        let pace = match self.rate_per_connection {
            Some(rate) => Pace::Rate(Rate::new(rate, self.jitter)?),
            None => Pace::FlatOut,
        };
        let duration = self.duration.unwrap_or(PROBE_DURATION);
        if duration.is_zero() {
            return Err(Error::new(ErrorKind::Usage, "a probe without a duration asks nothing"));
        }
        let options = ProbeOptions {
            namespace: self.namespace(server.database.as_deref())?,
            ramp,
            pace,
            mix: Mix::new(self.insert, self.update)?,
            duration,
            connect_rate: self.connect_rate,
            seed: self.seed,
            told: self.told(),
        };
        Ok((server.uri.to_text(), options))
    }

    fn namespace(&self, of_uri: Option<&str>) -> Result<Namespace, Error> {
        let Some(name) = &self.collection else {
            return Ok(Namespace::new(of_uri.unwrap_or(DATABASE), COLLECTION));
        };
        Namespace::parse(name).ok_or_else(|| {
            Error::new(ErrorKind::Usage, format!("`{name}` is no full name of a collection"))
                .hint("such as --collection shop.orders")
        })
    }

    /// What differs from the defaults, as the report tells it.
    fn told(&self) -> Vec<OptionValue> {
        let mut told = Vec::new();
        let mut tell = |name: &str, value: Option<String>| {
            let value = value.map(|value| OptionValue { name: name.to_owned(), value });
            told.extend(value);
        };
        let share = |share: f64| (share > 0.0).then(|| share.to_string());
        let is_ramp = self.ramp.is_some();
        let is_paced = self.rate_per_connection.is_some();
        let seconds = |time: Duration| format!("{}s", time.as_secs_f64());
        tell("collection", self.collection.clone());
        tell("seed-documents", self.seed_documents.map(|number| number.to_string()));
        tell("connections", self.connections.map(|number| number.to_string()));
        tell("ramp", self.ramp.map(|(first, last)| format!("{first}..{last}")));
        tell("steps", (is_ramp && self.steps != PROBE_STEPS).then(|| self.steps.to_string()));
        tell("duration", self.duration.map(seconds));
        tell("rate-per-connection", self.rate_per_connection.map(|rate| rate.to_string()));
        let is_other = (self.jitter - PROBE_JITTER).abs() > f64::EPSILON;
        tell("jitter", (is_paced && is_other).then(|| self.jitter.to_string()));
        tell("insert", share(self.insert));
        tell("update", share(self.update));
        let is_other = self.connect_rate != PROBE_CONNECT_RATE;
        tell("connect-rate", is_other.then(|| self.connect_rate.to_string()));
        tell("seed", (self.seed != 1).then(|| self.seed.to_string()));
        told
    }
}

/// A warning for each option of a connection string that is given in vain.
fn without_effect(uri: &ServerUri) -> Vec<String> {
    let is_idle = |name: &&str| WITHOUT_EFFECT.iter().any(|idle| idle.eq_ignore_ascii_case(name));
    let asks = |name: &&str| uri.option(name) != Some("none");
    let told = |name: &str| {
        let why = match name.to_ascii_lowercase().as_str() {
            "compressors" | "zlibcompressionlevel" => "requests are sent as they are",
            "readpreference" | "readpreferencetags" | "maxstalenessseconds" => {
                "the primary is asked, or with directConnection=true the host that is named"
            }
            _ => "it speaks to the server without the driver's pool",
        };
        format!("`{name}` has no effect on a probe: {why}")
    };
    uri.names().filter(is_idle).filter(asks).map(told).collect()
}

/// Asks and shows what was found.
pub(super) async fn run(args: ProbeArgs) -> Result<ExitStatus, Error> {
    let (uri, options) = args.to_options(&|text| output::say(&format!("warning: {text}")))?;
    let checked = args.reports.check();
    checked.map_err(|error| error.hint("give --report a file in a folder that exists"))?;
    let stop = Stop::new();
    signals::listen(stop.clone(), Voice::Probe, output::say);
    let tell = |news: &News| {
        if !args.quiet {
            output::say(&line(news));
        }
    };
    let asked = probe::run(&uri, &options, args.seed_documents, &tell, &stop);
    let report = Box::pin(asked).await?;
    if args.json {
        output::data(&json::render(&report)?);
    } else {
        let width = output::columns(Stream::Out).unwrap_or(REPORT_COLUMNS);
        let style = Style { width, ..style(Verbosity::Normal) };
        output::data(&probed(&report, &style));
    }
    args.reports.write_probe(&report)?;
    Ok(report.exit_status)
}

/// What is told while it goes on, in one line.
fn line(news: &News) -> String {
    match news {
        News::Note(text) => text.clone(),
        News::Glance(Glance::Connecting { open, of }) => {
            format!("{} of {} connections are open", count((*open).into()), count((*of).into()))
        }
        News::Glance(Glance::Holding {
            step,
            of,
            connections,
            achieved_per_second,
            asked_per_second,
            p99,
            failures,
        }) => {
            let asked = asked_per_second
                .map_or_else(String::new, |asked| format!(" of {} asked", whole(asked)));
            let failed = match failures {
                0 => String::new(),
                failures => format!(", {}", counted(*failures, "failure", "failures")),
            };
            format!(
                "step {step} of {of}, {}: {}{asked} a second, p99 {}{failed}",
                counted((*connections).into(), "connection", "connections"),
                whole(*achieved_per_second),
                latency(p99.as_secs_f64()),
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        probe: ProbeArgs,
    }

    fn options(line: &str) -> Result<(String, ProbeOptions), String> {
        let words = std::iter::once("probe").chain(line.split_whitespace());
        let line = Line::try_parse_from(words).map_err(|error| error.to_string())?;
        line.probe.to_options(&|_| {}).map_err(|error| error.to_string())
    }

    #[test]
    fn without_arguments_150_connections_ask_as_they_can() {
        let (uri, options) = options("").expect("parsed");
        assert_eq!(uri, "mongodb://localhost/?directConnection=true");
        assert_eq!(options.namespace.to_string(), "seed.c00001");
        assert_eq!((options.ramp.steps(), options.pace), (&[150][..], Pace::FlatOut));
        assert_eq!(options.duration, Duration::from_secs(60));
        assert!(options.told.is_empty());
    }

    #[test]
    fn every_flag_reaches_the_options() {
        let (uri, options) = options(
            "mongodb://x/shop --ramp 100..800 --steps 4 --duration 2m --rate-per-connection 10 \
             --jitter 0.5 --insert 0.1 --update 0.2 --connect-rate 50 --seed 7",
        )
        .expect("parsed");
        assert_eq!(uri, "mongodb://x/shop?directConnection=true");
        assert_eq!(options.namespace.to_string(), "shop.c00001");
        assert_eq!(options.ramp.steps(), [100, 200, 400, 800]);
        assert_eq!(options.pace, Pace::Rate(Rate::new(10.0, 0.5).expect("a rate")));
        assert_eq!(options.mix, Mix::new(0.1, 0.2).expect("shares"));
        assert_eq!((options.duration.as_secs(), options.connect_rate, options.seed), (120, 50, 7));
        assert_eq!(options.told.len(), 9);
    }

    #[test]
    fn what_is_given_in_vain_is_told() {
        let told = |text| without_effect(&ServerUri::parse(text).expect("parsed"));
        let idle = told("mongodb://a/?Compressors=zstd&w=1&maxPoolSize=5&readPreference=secondary");
        assert_eq!(idle.len(), 3, "{idle:?}");
        assert_eq!(
            idle[0],
            "`Compressors` has no effect on a probe: requests are sent as they are"
        );
        assert!(told("mongodb://a/?compressors=none&connectTimeoutMS=5").is_empty());
        let warnings = std::cell::RefCell::new(Vec::new());
        let line = Line::parse_from(["probe", "--compressors", "snappy"]);
        let warn = |text: &str| warnings.borrow_mut().push(text.to_owned());
        line.probe.to_options(&warn).expect("it goes on");
        assert!(warnings.into_inner()[0].starts_with("`compressors` has no effect"));
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for line in [
            "--connections 0",
            "--connections 65001",
            "--connections 5 --ramp 1..2",
            "--ramp 5",
            "--ramp 0..5",
            "--jitter 0.1",
            "--rate-per-connection 0",
            "--steps 3",
            "--steps 3 --connections 5",
            "--insert 0.6 --update 0.6",
            "--duration 0",
            "--collection orders",
            "--seed-documents 0",
            "dump",
            "mongodb://x mongodb://y",
        ] {
            assert!(options(line).is_err(), "{line}");
        }
    }

    #[test]
    fn numbers_that_are_none_are_told_as_such() {
        for (line, says) in [
            ("--rate-per-connection fast", "a number such as 10 or 0.2 is needed"),
            ("--rate-per-connection -5", "-5 requests a second cannot be paced"),
            ("--insert -0.5", "from 0 to 1"),
        ] {
            let error = options(line).expect_err(line);
            assert!(error.contains(says), "{error}");
        }
    }

    #[test]
    fn progress_is_a_line() {
        let glance = Glance::Holding {
            step: 2,
            of: 8,
            connections: 1200,
            achieved_per_second: 11_950.4,
            asked_per_second: Some(12_000.0),
            p99: Duration::from_micros(2300),
            failures: 1,
        };
        assert_eq!(
            line(&News::Glance(glance)),
            "step 2 of 8, 1,200 connections: 11,950 of 12,000 asked a second, p99 2.30 ms, 1 failure"
        );
    }
}
