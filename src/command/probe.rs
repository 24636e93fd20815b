//! Reads documents by their `_id` from many connections: seed → probe → report.

use std::sync::Arc;
use std::time::Instant;

use crate::command::restore::{
    BatchLimits, Connection, Destination, Names, Rename, Restored, restore,
};
use crate::command::seed;
use crate::error::{Error, ErrorKind};
use crate::exit::ExitStatus;
use crate::limits::{BATCH_BYTES_DEFAULT, PROBE_SEED_BATCH};
use crate::load::Stop;
use crate::namespace::Namespace;
use crate::namespace::pattern::NamespacePattern;
use crate::probe::{self, Glance, ProbeOptions, Server};
use crate::report::format::{counted, duration};
use crate::report::{ProbeReport, Silent};
use crate::seed::{Recipe, SeedSpec, Shape};

/// What is told while it goes on.
#[derive(Clone, Debug)]
pub enum News {
    /// Something a person should know.
    Note(String),
    /// How it stands.
    Glance(Glance),
}

/// Fills the collection where that is asked for and it holds nothing, and asks.
///
/// # Errors
///
/// Where the server cannot be used, the collection holds nothing, or filling it fails.
pub async fn run(
    uri: &str,
    options: &ProbeOptions,
    seed_documents: Option<u64>,
    tell: &(dyn Fn(&News) + Sync),
    stop: &Stop,
) -> Result<ProbeReport, Error> {
    let server = Server::find(uri).await?;
    if let Some(documents) = seed_documents {
        let there = probe::documents(&server, &options.namespace, stop).await?;
        if there > 0 {
            let there = counted(there, "document", "documents");
            let note = format!("{} holds {there} and is not filled", options.namespace);
            tell(&News::Note(note));
        } else {
            let note = fill(uri, &options.namespace, documents, options.seed, stop).await?;
            tell(&News::Note(note));
        }
    }
    probe::run(server, options, &|glance| tell(&News::Glance(*glance)), stop).await
}

/// Fills a collection with points, whose `_id`s are the numbers from 0 on.
async fn fill(
    uri: &str,
    namespace: &Namespace,
    documents: u64,
    seed: u64,
    stop: &Stop,
) -> Result<String, Error> {
    let began = Instant::now();
    let spec = SeedSpec {
        database: namespace.database().to_owned(),
        collections: 1,
        first: 0,
        documents,
        shape: Shape::Points,
        indexes: 0,
        seed,
    };
    let made = Namespace::new(namespace.database(), spec.collection_name(1));
    let mut options = seed::filling(&Recipe::Shape(spec), None)?;
    options.destination = Destination::Server(Connection::new(uri));
    options.settings.batch = BatchLimits::new(PROBE_SEED_BATCH, BATCH_BYTES_DEFAULT);
    options.selection.names = renamed(&made, namespace)?;
    match Box::pin(restore(&options, Arc::new(Silent), stop.clone(), began)).await? {
        Restored::Ran(report) if report.exit_status == ExitStatus::Restored => {
            let inserted = counted(report.balance.inserted, "point", "points");
            let took = duration(began.elapsed());
            Ok(format!("{namespace} was filled with {inserted} in {took}"))
        }
        Restored::Ran(report) if report.exit_status == ExitStatus::Interrupted => {
            let message = "the end was asked for while the collection was filled";
            Err(Error::new(ErrorKind::Interrupted, message).of(namespace))
        }
        _ => Err(Error::new(ErrorKind::Write, "the collection could not be filled").of(namespace)),
    }
}

/// The made-up collection under the name that is asked for.
fn renamed(made: &Namespace, wanted: &Namespace) -> Result<Names, Error> {
    if made == wanted {
        return Ok(Names::default());
    }
    let escaped = |name: &Namespace| NamespacePattern::escape(name.full());
    let rename = Rename::new(&escaped(made), &escaped(wanted))?;
    Ok(Names { renames: vec![rename], ..Names::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_made_up_collection_gets_the_name_that_is_asked_for() {
        let made = Namespace::new("shop", "c00001");
        assert!(renamed(&made, &made).expect("no rule").renames.is_empty());
        let names = renamed(&made, &Namespace::new("shop", "a.b")).expect("a rule");
        assert_eq!(names.renames[0].apply("shop.c00001").as_deref(), Some("shop.a.b"));
    }
}
