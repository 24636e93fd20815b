//! The arguments that say which collections are restored, and under which names.

use clap::Args;

use crate::command::restore::{Names, NamespaceFilter, NamespacePattern, Rename};
use crate::error::{Error, ErrorKind};
use crate::report::OptionValue;

#[derive(Args, Clone, Debug, Default)]
pub(super) struct NamespaceArgs {
    /// Restore only collections whose full name, `database.collection`, matches; `*` stands for
    /// any characters, `\*` for a star. May be given several times; together with --db, either
    /// is enough
    #[arg(long, alias = "nsInclude", value_name = "PATTERN", help_heading = "What is restored")]
    ns_include: Vec<String>,

    /// Leave out collections whose full name matches, whatever else says that they are restored
    #[arg(long, alias = "nsExclude", value_name = "PATTERN", help_heading = "What is restored")]
    ns_exclude: Vec<String>,

    /// Leave out the collection of this name in every database
    #[arg(long, alias = "excludeCollection", value_name = "NAME")]
    #[arg(conflicts_with = "collection", help_heading = "What is restored")]
    exclude_collection: Vec<String>,

    /// Leave out collections whose names begin so, in every database
    #[arg(long, alias = "excludeCollectionsWithPrefix", value_name = "PREFIX")]
    #[arg(conflicts_with = "collection", help_heading = "What is restored")]
    exclude_collections_with_prefix: Vec<String>,

    /// Restore collections whose full name matches under another one, which --ns-to says; stars
    /// are carried over by their order, or `$variables$` by their names. Of several pairs the last
    /// one that matches counts
    #[arg(long, alias = "nsFrom", value_name = "PATTERN", help_heading = "What is restored")]
    ns_from: Vec<String>,

    /// The new name for the --ns-from before it
    #[arg(long, alias = "nsTo", value_name = "PATTERN", help_heading = "What is restored")]
    ns_to: Vec<String>,
}

impl NamespaceArgs {
    /// The names that are meant, together with those of `--db` and `--collection`.
    pub(super) fn names(
        &self,
        database: Option<&str>,
        collection: Option<&str>,
    ) -> Result<Names, Error> {
        let mut includes: Vec<_> = patterns(&self.ns_include);
        if let (Some(database), false) = (database, includes.is_empty()) {
            let database = NamespacePattern::escape(database);
            let collection = collection.map_or_else(|| "*".to_owned(), NamespacePattern::escape);
            includes.push(NamespacePattern::wildcards(&format!("{database}.{collection}")));
        }
        let mut excludes = patterns(&self.ns_exclude);
        for (names, end) in
            [(&self.exclude_collection, ""), (&self.exclude_collections_with_prefix, "*")]
        {
            let pattern = |name: &String| format!("*.{}{end}", NamespacePattern::escape(name));
            excludes.extend(names.iter().map(|name| NamespacePattern::wildcards(&pattern(name))));
        }
        let filter = NamespaceFilter { includes, excludes };
        Ok(Names { filter, renames: self.renames()? })
    }

    fn renames(&self) -> Result<Vec<Rename>, Error> {
        if self.ns_from.len() != self.ns_to.len() {
            return Err(Error::new(
                ErrorKind::Usage,
                format!(
                    "--ns-from is given {} and --ns-to {} times; they come in pairs",
                    self.ns_from.len(),
                    self.ns_to.len()
                ),
            )
            .hint("for example --ns-from 'shop.*' --ns-to 'shop_copy.*'"));
        }
        self.ns_from.iter().zip(&self.ns_to).map(|(from, to)| Rename::new(from, to)).collect()
    }

    /// What was asked for, as the report tells it.
    pub(super) fn told(&self) -> impl Iterator<Item = OptionValue> {
        [
            ("ns-include", &self.ns_include),
            ("ns-exclude", &self.ns_exclude),
            ("exclude-collection", &self.exclude_collection),
            ("exclude-collections-with-prefix", &self.exclude_collections_with_prefix),
            ("ns-from", &self.ns_from),
            ("ns-to", &self.ns_to),
        ]
        .into_iter()
        .flat_map(|(name, values)| {
            values.iter().map(move |value| OptionValue { name: name.into(), value: value.clone() })
        })
    }
}

fn patterns(texts: &[String]) -> Vec<NamespacePattern> {
    texts.iter().map(|text| NamespacePattern::wildcards(text)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        namespaces: NamespaceArgs,
        #[arg(long)]
        collection: Option<String>,
    }

    fn names(line: &str, database: Option<&str>) -> Result<Names, String> {
        let words = std::iter::once("restore").chain(line.split_whitespace());
        let line = Line::try_parse_from(words).map_err(|error| error.to_string())?;
        let names = line.namespaces.names(database, line.collection.as_deref());
        names.map_err(|error| error.to_string())
    }

    fn texts(patterns: &[NamespacePattern]) -> Vec<&str> {
        patterns.iter().map(NamespacePattern::text).collect()
    }

    #[test]
    fn both_spellings_are_taken() {
        for line in [
            "--ns-include a.* --ns-exclude a.x --exclude-collection y --ns-from a.* --ns-to b.* \
             --exclude-collections-with-prefix z",
            "--nsInclude=a.* --nsExclude=a.x --excludeCollection=y --nsFrom=a.* --nsTo=b.* \
             --excludeCollectionsWithPrefix=z",
        ] {
            let names = names(line, None).expect("parsed");
            assert_eq!(texts(&names.filter.includes), ["a.*"]);
            assert_eq!(texts(&names.filter.excludes), ["a.x", "*.y", "*.z*"]);
            assert_eq!(names.renames[0].apply("a.c").as_deref(), Some("b.c"));
        }
        assert_eq!(names("", Some("shop")), Ok(Names::default()));
    }

    #[test]
    fn a_database_adds_to_what_is_included() {
        let included = |line, database| {
            texts(&names(line, database).expect("parsed").filter.includes).join(" ")
        };
        assert_eq!(included("--ns-include a.x", Some("s*p")), "a.x s\\*p.*");
        assert_eq!(included("--ns-include a.x --collection c", Some("shop")), "a.x shop.c");
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for line in [
            "--ns-from a.*",
            "--ns-from a.* --ns-to b.c",
            "--ns-from $a$.x --ns-to $b$.x",
            "--exclude-collection x --collection y",
            "--excludeCollectionsWithPrefix x --collection y",
        ] {
            assert!(names(line, None).is_err(), "{line}");
        }
    }
}
