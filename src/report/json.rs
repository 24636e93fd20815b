//! Reports for programs; `docs/report.schema.json`, `docs/verify.schema.json` and
//! `docs/survey.schema.json` describe them.

use serde::Serialize;

use crate::error::{Error, ErrorKind};

/// A report as JSON over several lines, the last with its line end.
///
/// # Errors
///
/// [`ErrorKind::Internal`] where the value cannot be written as JSON.
pub fn render(report: &impl Serialize) -> Result<String, Error> {
    let mut text = serde_json::to_string_pretty(report).map_err(|error| {
        Error::new(ErrorKind::Internal, format!("the report cannot be written as JSON: {error}"))
    })?;
    text.push('\n');
    Ok(text)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::report::survey::samples as surveys;
    use crate::report::value::samples;
    use crate::report::verification::samples as verifications;
    use crate::report::{BeforeAndAfter, Report};

    fn validator() -> jsonschema::Validator {
        validator_of(include_str!("../../docs/report.schema.json"))
    }

    fn verify_validator() -> jsonschema::Validator {
        validator_of(include_str!("../../docs/verify.schema.json"))
    }

    fn validator_of(schema: &str) -> jsonschema::Validator {
        let schema: Value = serde_json::from_str(schema).expect("the schema is JSON");
        jsonschema::draft202012::meta::validate(&schema).expect("the schema is a schema");
        jsonschema::validator_for(&schema).expect("the schema compiles")
    }

    fn rendered(report: &impl Serialize) -> Value {
        let text = render(report).expect("renders");
        assert!(text.ends_with("}\n"));
        serde_json::from_str(&text).expect("parses")
    }

    #[test]
    fn every_kind_of_report_follows_the_schema() {
        let validator = validator();
        for report in samples::all() {
            let value = rendered(&report);
            let errors: Vec<_> =
                validator.iter_errors(&value).map(|error| error.to_string()).collect();
            assert!(errors.is_empty(), "{errors:#?}\n{value:#}");
        }
    }

    #[test]
    fn the_schema_refuses_what_is_not_a_report() {
        let validator = validator();
        let good = rendered(&samples::with_failures());
        assert!(validator.is_valid(&good));
        for (pointer, broken) in [
            ("/schema", Value::from("restorm.report/2")),
            ("/balance/read", Value::from(-1)),
            ("/outcome/kind", Value::from("given up")),
            ("/times/data_seconds", Value::from("4 s")),
            ("/collections/0/state", Value::from("lost")),
            ("/collections/0/failures/0/samples/0", Value::from("a")),
        ] {
            let mut report = good.clone();
            *report.pointer_mut(pointer).expect(pointer) = broken;
            assert!(!validator.is_valid(&report), "{pointer} may be anything");
        }
    }

    #[test]
    fn the_schema_knows_every_field_of_every_object() {
        every_field_is_known(&samples::with_failures());
        every_field_is_known(&samples::with_users_and_oplog());
        every_field_is_known(&samples::with_damage());
    }

    #[test]
    fn the_schema_of_probes_knows_every_field() {
        let validator = validator_of(include_str!("../../docs/probe.schema.json"));
        for report in
            [crate::report::probe::samples::paced(), crate::report::probe::samples::flat_out()]
        {
            every_field_is_known_by(&validator, &rendered(&report));
        }
    }

    #[test]
    fn the_schema_of_comparisons_knows_every_field() {
        let different = verifications::report(verifications::different());
        every_field_is_known_by(&verify_validator(), &different);
        let same = rendered(&verifications::report(verifications::same()));
        assert!(verify_validator().is_valid(&same));
    }

    #[test]
    fn a_restore_tells_of_its_comparison_in_the_same_words() {
        let mut report = samples::clean();
        report.verified(Some(verifications::different()));
        assert_eq!(rendered(&report)["exit_status"], 4);
        every_field_is_known(&report);
    }

    #[test]
    fn the_schema_of_surveys_knows_every_field() {
        let validator = validator_of(include_str!("../../docs/survey.schema.json"));
        every_field_is_known_by(&validator, &surveys::report());
    }

    #[test]
    fn a_restore_tells_of_its_surveys_in_the_same_words() {
        let mut report = samples::clean();
        report.survey = Some(surveys::before_and_after());
        every_field_is_known(&report);
        report.survey = Some(BeforeAndAfter::new(None, None));
        assert!(validator().is_valid(&rendered(&report)));
    }

    fn every_field_is_known(report: &Report) {
        every_field_is_known_by(&validator(), report);
    }

    fn every_field_is_known_by(validator: &jsonschema::Validator, report: &impl Serialize) {
        let good = rendered(report);
        let mut objects = Vec::new();
        find_objects(&good, &mut String::new(), &mut objects);
        assert!(objects.len() > 10, "{objects:?}");
        for pointer in objects {
            let mut more = good.clone();
            let object = more.pointer_mut(&pointer).and_then(Value::as_object_mut).expect("is one");
            object.insert("another".into(), Value::Null);
            assert!(!validator.is_valid(&more), "{pointer} takes more fields");
            let fields: Vec<_> = good
                .pointer(&pointer)
                .and_then(Value::as_object)
                .expect("is one")
                .keys()
                .cloned()
                .collect();
            for field in fields {
                let mut less = good.clone();
                less.pointer_mut(&pointer)
                    .and_then(Value::as_object_mut)
                    .expect("is one")
                    .remove(&field);
                assert!(!validator.is_valid(&less), "{pointer}/{field} may be missing");
            }
        }
    }

    fn find_objects(value: &Value, pointer: &mut String, found: &mut Vec<String>) {
        let children: Vec<(String, &Value)> = match value {
            Value::Object(fields) => {
                found.push(pointer.clone());
                fields.iter().map(|(name, value)| (name.clone(), value)).collect()
            }
            Value::Array(items) => {
                items.iter().enumerate().map(|(place, value)| (place.to_string(), value)).collect()
            }
            _ => return,
        };
        for (name, child) in children {
            let length = pointer.len();
            pointer.push('/');
            pointer.push_str(&name);
            find_objects(child, pointer, found);
            pointer.truncate(length);
        }
    }

    #[test]
    fn names_and_numbers_are_exact() {
        let value = rendered(&samples::with_failures());
        assert_eq!(value["exit_status"], 3);
        assert_eq!(value["balance"]["read"], 10_000);
        assert_eq!(value["collections"][0]["namespace"], "shop.orders");
        assert_eq!(value["collections"][0]["failures"][0]["code"], 11000);
        assert_eq!(value["outcome"], serde_json::json!({ "kind": "finished", "error": null }));
    }
}
