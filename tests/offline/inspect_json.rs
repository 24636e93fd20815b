//! What `inspect --json` writes follows `docs/inspect.schema.json`.

use crate::program::Program;
use serde_json::Value;
use std::path::{Path, PathBuf};

fn of_clone(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn schema() -> Value {
    let text = std::fs::read_to_string(of_clone("docs/inspect.schema.json")).expect("a schema");
    serde_json::from_str(&text).expect("the schema is JSON")
}

fn validator() -> jsonschema::Validator {
    let schema = schema();
    jsonschema::draft202012::meta::validate(&schema).expect("the schema is a schema");
    jsonschema::validator_for(&schema).expect("the schema compiles")
}

/// The dumps of a folder of test data.
fn dumps(folder: &str) -> Vec<PathBuf> {
    let items = std::fs::read_dir(of_clone(folder)).expect("the test data are there");
    let paths = items.map(|item| item.expect("an item").path());
    let mut dumps: Vec<_> = paths.filter(|path| !path.ends_with("expected")).collect();
    dumps.sort();
    dumps
}

fn inspected(dump: &Path) -> (Option<i32>, String) {
    let words = [Path::new("inspect"), dump, Path::new("--json")];
    let finished = Program::restorm(&words).run();
    (finished.status, finished.stdout)
}

#[test]
fn every_inspection_follows_the_schema() {
    let validator = validator();
    let (mut followed, mut damaged) = (0, 0);
    for dump in dumps("testdata/dumps").iter().chain(&dumps("testdata/broken")) {
        let (status, text) = inspected(dump);
        if text.is_empty() {
            assert_eq!(status, Some(1), "{}: no JSON and no error", dump.display());
            continue;
        }
        let value: Value = serde_json::from_str(&text).expect("one line of JSON");
        let errors: Vec<_> = validator.iter_errors(&value).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{}: {errors:?}", dump.display());
        let problems = value["totals"]["problems"].as_u64().expect("a number");
        assert_eq!(status, Some(i32::from(problems > 0)), "{}", dump.display());
        followed += 1;
        damaged += u64::from(problems > 0);
    }
    assert!(followed >= 20 && damaged >= 10, "{followed} inspections, {damaged} of damaged dumps");
}

#[test]
fn the_schema_refuses_what_is_no_inspection() {
    let validator = validator();
    let (_, text) = inspected(&of_clone("testdata/broken/truncated_document"));
    let good: Value = serde_json::from_str(&text).expect("one line of JSON");
    assert!(validator.is_valid(&good));
    for (pointer, wrong) in [
        ("/schema", Value::from("restorm.inspect/2")),
        ("/collections/0/kind", Value::from("table")),
        ("/collections/0/data/documents", Value::from(-1)),
        ("/collections/0/data/compression", Value::Null),
        ("/collections/0/problems/0/offset", Value::from("168")),
        ("/skipped/0/is_problem", Value::from(0)),
        ("/totals", Value::Null),
    ] {
        let mut value = good.clone();
        *value.pointer_mut(pointer).expect(pointer) = wrong;
        assert!(!validator.is_valid(&value), "{pointer}");
    }
}

#[test]
fn the_schema_lists_every_field_of_every_object() {
    fn check(name: &str, object: &Value) {
        let keys: Vec<_> = object["properties"].as_object().expect("properties").keys().collect();
        let required = object["required"].as_array().expect("a list");
        let required: Vec<_> = required.iter().filter_map(Value::as_str).collect();
        assert_eq!(keys, required, "{name}");
        assert_eq!(object["additionalProperties"], false, "{name}");
        for (key, property) in object["properties"].as_object().expect("properties") {
            assert!(property["description"].is_string(), "{name}.{key} is not described");
        }
    }
    let schema = schema();
    check("the inspection", &schema);
    for (name, object) in schema["$defs"].as_object().expect("definitions") {
        check(name, object);
    }
}
