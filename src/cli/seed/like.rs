//! The arguments of `restorm seed` that describe a collection instead of making one.

use clap::Args;

use crate::cli::connection::{ConnectionArgs, StandardInput, Surroundings};
use crate::cli::output;
use crate::command::restore::{Connection, is_uri};
use crate::command::seed::like::{LikeOptions, like};
use crate::error::{Error, ErrorKind};
use crate::exit::ExitStatus;
use crate::limits::SAMPLE_DOCUMENTS;
use crate::namespace::Namespace;
use crate::seed::like::Values;

#[derive(Args, Clone, Debug)]
pub(super) struct LikeArgs {
    /// Look at a collection and print a spec that makes similar documents: a connection string
    /// with the collection behind the database, as in `mongodb://db1/shop.orders?tls=true`, or
    /// `shop.orders` with --uri or --host. Nothing is made and nothing is changed. Names of
    /// fields, bounds of numbers and dates, and numbers of which there are few are those that were
    /// found; texts are not copied, only their lengths and how many different ones there are
    #[arg(long, value_name = "URI.NS", help_heading = "A spec")]
    #[arg(conflicts_with_all = ["out", "archive", "null", "spec", "shape", "size", "collections"])]
    #[arg(conflicts_with_all = ["documents", "total_bytes", "duration", "scale", "from", "count"])]
    #[arg(conflicts_with_all = ["database", "indexes", "seed", "compress", "overwrite", "drop"])]
    #[arg(conflicts_with_all = ["verify", "report", "resume"])]
    like: Option<String>,

    /// Documents that --like looks at, drawn by the server
    #[arg(long, value_name = "N", default_value_t = SAMPLE_DOCUMENTS, requires = "like")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000_000), help_heading = "A spec")]
    sample: u32,

    /// Copy texts as well, of fields with at most 20 different ones: they are part of the spec then
    #[arg(long, requires = "like", help_heading = "A spec")]
    copy_texts: bool,
}

impl LikeArgs {
    /// Whether a collection is to be described.
    pub(super) fn is_meant(&self) -> bool {
        self.like.is_some()
    }

    fn options(
        &self,
        connection: &ConnectionArgs,
        warn: &dyn Fn(&str),
    ) -> Result<LikeOptions, Error> {
        let like = self.like.as_deref().unwrap_or_default();
        let positional = is_uri(like).then_some(like);
        let around = Surroundings { positional, database: None, input: StandardInput::Free, warn };
        let mut server = connection.server(around)?;
        let named = match positional {
            Some(_) => server.database.clone().unwrap_or_default(),
            None => like.to_owned(),
        };
        let namespace = Namespace::parse(&named)
            .filter(|one| !one.database().is_empty() && !one.collection().is_empty())
            .ok_or_else(|| {
                Error::new(ErrorKind::Usage, "--like does not name a database and a collection")
                    .hint("such as mongodb://db1/shop.orders, or shop.orders with --uri")
            })?;
        if positional.is_some() {
            // The database alone is what a driver expects there.
            server.uri.database = Some(namespace.database().to_owned());
        }
        Ok(LikeOptions {
            connection: Connection::new(server.uri.to_text()),
            namespace,
            documents: self.sample,
            values: if self.copy_texts { Values::Copied } else { Values::Replaced },
        })
    }

    /// Prints the spec.
    pub(super) async fn run(
        &self,
        connection: &ConnectionArgs,
        warn: &dyn Fn(&str),
    ) -> Result<ExitStatus, Error> {
        output::data(&like(&self.options(connection, warn)?).await?);
        Ok(ExitStatus::Restored)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::seed::SeedArgs;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        seed: SeedArgs,
    }

    fn options(line: &str) -> Result<LikeOptions, String> {
        let words = std::iter::once("seed").chain(line.split_whitespace());
        let line = Line::try_parse_from(words).map_err(|error| error.to_string())?;
        line.seed
            .like
            .options(&line.seed.filling.connection, &|_| {})
            .map_err(|error| error.to_string())
    }

    #[test]
    fn a_collection_is_named_in_the_connection_string_or_beside_it() {
        for line in [
            "--like mongodb://u:p@x/shop.orders.old?retryWrites=false --sample 7",
            "--like shop.orders.old --uri mongodb://u:p@x/shop?retryWrites=false --sample 7",
        ] {
            let options = options(line).expect("parsed");
            assert_eq!(options.namespace, Namespace::new("shop", "orders.old"));
            assert!(options.connection.uri.contains("@x/shop?"), "{}", options.connection.uri);
            assert!(options.connection.uri.contains("retryWrites=false"));
            assert_eq!((options.documents, options.values), (7, Values::Replaced));
        }
        let copied = options("--like a.b --uri mongodb://x --copy-texts").expect("parsed");
        assert_eq!(copied.values, Values::Copied);
    }

    #[test]
    fn what_names_no_collection_is_refused() {
        for line in
            ["--like mongodb://x", "--like mongodb://x/shop", "--like shop --uri mongodb://x"]
        {
            assert!(options(line).is_err(), "{line}");
        }
        for line in ["--like a.b --sample 0", "--sample 5", "--like a.b --collections 2"] {
            assert!(options(line).is_err(), "{line}");
        }
    }
}
