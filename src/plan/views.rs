//! What views refer to, carried over to the new names of collections.

use bson::{Bson, Document};

use crate::namespace::Namespace;
use crate::plan::rename::Destinations;

/// A view on its way to a new name.
struct Move<'a> {
    source: &'a Namespace,
    destination: &'a Namespace,
    destinations: &'a Destinations,
    notes: &'a mut Vec<String>,
}

/// Gives a view's source and the collections that its pipeline reads their new names, and notes
/// each change. A view reads its own database alone, so the error says what would be parted.
pub(super) fn carry_over(
    options: &mut Document,
    source: &Namespace,
    destinations: &Destinations,
    notes: &mut Vec<String>,
) -> Result<(), String> {
    let destination = destinations.get(source).unwrap_or(source);
    let mut carried = Move { source, destination, destinations, notes };
    if let Some(Bson::String(on)) = options.get_mut("viewOn") {
        carried.name(on, "viewOn")?;
    }
    match options.get_mut("pipeline") {
        Some(Bson::Array(stages)) => carried.pipeline(stages),
        _ => Ok(()),
    }
}

impl Move<'_> {
    fn pipeline(&mut self, stages: &mut [Bson]) -> Result<(), String> {
        for stage in stages {
            let Bson::Document(stage) = stage else { continue };
            for (operator, argument) in stage.iter_mut() {
                self.stage(operator, argument)?;
            }
        }
        Ok(())
    }

    /// Only what names a collection is looked into: the same words elsewhere are fields or values.
    fn stage(&mut self, operator: &str, argument: &mut Bson) -> Result<(), String> {
        match (operator, argument) {
            ("$unionWith" | "$out", Bson::String(name)) => self.name(name, operator),
            ("$lookup" | "$graphLookup", Bson::Document(fields)) => {
                self.field(fields, "from", operator)?;
                self.nested(fields)
            }
            ("$unionWith" | "$out", Bson::Document(fields)) => {
                self.field(fields, "coll", operator)?;
                self.nested(fields)
            }
            ("$merge", Bson::Document(fields)) => self.field(fields, "into", operator),
            ("$facet", Bson::Document(facets)) => {
                for (_, stages) in facets.iter_mut() {
                    if let Bson::Array(stages) = stages {
                        self.pipeline(stages)?;
                    }
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// A collection named by itself, or with its database, which is another one then.
    fn field(&mut self, fields: &mut Document, name: &str, of: &str) -> Result<(), String> {
        let names_database = fields.contains_key("db");
        match fields.get_mut(name) {
            Some(Bson::String(collection)) if !names_database => self.name(collection, of),
            _ => Ok(()),
        }
    }

    fn nested(&mut self, fields: &mut Document) -> Result<(), String> {
        match fields.get_mut("pipeline") {
            Some(Bson::Array(stages)) => self.pipeline(stages),
            _ => Ok(()),
        }
    }

    fn name(&mut self, collection: &mut String, place: &str) -> Result<(), String> {
        let named = Namespace::new(self.source.database(), collection.as_str());
        let Some(renamed) = self.destinations.get(&named) else {
            // Not restored, so that the name means whatever the target has under it.
            return Ok(());
        };
        if renamed.database() != self.destination.database() {
            return Err(format!(
                "as `{}` it would refer to `{renamed}` ({place}), and a view reads no other \
                 database than its own; rename both to the same one",
                self.destination
            ));
        }
        if renamed.collection() != collection {
            self.notes.push(format!(
                "{place} refers to `{collection}` and now to `{}`",
                renamed.collection()
            ));
            renamed.collection().clone_into(collection);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::doc;

    fn carried(
        options: Document,
        moves: &[(&str, &str)],
    ) -> (Result<Document, String>, Vec<String>) {
        let name = |text: &str| Namespace::parse(text).expect("a name");
        let destinations = moves.iter().map(|(from, to)| (name(from), name(to))).collect();
        let (mut options, mut notes) = (options, Vec::new());
        let outcome = carry_over(&mut options, &name("a.v"), &destinations, &mut notes);
        (outcome.map(|()| options), notes)
    }

    #[test]
    fn whatever_names_a_collection_is_renamed() {
        let options = doc! {
            "viewOn": "x",
            "pipeline": [
                { "$match": { "from": "y", "$lookup": { "from": "y" } } },
                { "$lookup": {
                    "from": "y", "as": "y", "pipeline": [{ "$unionWith": "z" }, { "$unionWith": "x" }],
                } },
                { "$graphLookup": { "from": "y", "startWith": "$y", "as": "y" } },
                { "$unionWith": { "coll": "y", "pipeline": [{ "$lookup": { "from": "x" } }] } },
                { "$facet": { "y": [{ "$lookup": { "from": "y" } }] } },
                { "$lookup": { "from": { "db": "config", "coll": "y" } } },
            ],
        };
        let moves = [("a.v", "b.w"), ("a.x", "b.x2"), ("a.y", "b.y2")];
        let (options, notes) = carried(options, &moves);
        let expected = doc! {
            "viewOn": "x2",
            "pipeline": [
                { "$match": { "from": "y", "$lookup": { "from": "y" } } },
                { "$lookup": {
                    "from": "y2", "as": "y",
                    "pipeline": [{ "$unionWith": "z" }, { "$unionWith": "x2" }],
                } },
                { "$graphLookup": { "from": "y2", "startWith": "$y", "as": "y" } },
                { "$unionWith": { "coll": "y2", "pipeline": [{ "$lookup": { "from": "x2" } }] } },
                { "$facet": { "y": [{ "$lookup": { "from": "y2" } }] } },
                { "$lookup": { "from": { "db": "config", "coll": "y" } } },
            ],
        };
        assert_eq!(options, Ok(expected));
        assert_eq!(notes.len(), 7);
        assert_eq!(notes[0], "viewOn refers to `x` and now to `x2`");
    }

    #[test]
    fn names_that_stay_go_without_a_note() {
        let options = doc! { "viewOn": "x", "pipeline": [{ "$unionWith": "y" }] };
        let moves = [("a.v", "b.v"), ("a.x", "b.x"), ("a.y", "b.y")];
        assert_eq!(carried(options.clone(), &moves), (Ok(options.clone()), vec![]));
        assert_eq!(carried(options.clone(), &[]), (Ok(options), vec![]));
    }

    #[test]
    fn a_view_is_not_parted_from_what_it_reads() {
        let options = || doc! { "viewOn": "x", "pipeline": [{ "$lookup": { "from": "y" } }] };
        for moves in [
            [("a.v", "b.v"), ("a.x", "a.x"), ("a.y", "b.y")],
            [("a.v", "a.v"), ("a.x", "a.x"), ("a.y", "b.y")],
        ] {
            let (outcome, _) = carried(options(), &moves);
            let problem = outcome.expect_err("parted");
            assert!(problem.contains("a view reads no other database"), "{problem}");
        }
    }
}
