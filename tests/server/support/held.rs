//! What the servers of this run can hold of a state, and how a restore tells of the rest.

use super::{Restored, differences, is_before};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The longest name that a server before 4.4 takes, in bytes.
const NAME_BYTES_MAX_BEFORE_4_4: usize = 120;

/// Indexes of the dumps that follow another one of the same key. They differ in being sparse or
/// partial, and a server before 5.0 builds the first alone.
const SECOND_OF_A_KEY: [&str; 2] = ["a_hidden", "b_bg"];

/// The part of a state that the servers of this run can hold, and what they cannot.
pub(crate) struct Held {
    /// What stands after a restore.
    pub(crate) state: Value,
    /// Collections that cannot be created, and a word of the reason.
    refused: BTreeMap<String, &'static str>,
    /// Indexes that cannot be built, by their collection and name.
    unbuilt: BTreeSet<(String, String)>,
}

impl Held {
    /// What can be held of a state that was recorded on 6.0.5.
    pub(crate) fn of(expected: Value) -> Self {
        let Value::Object(mut state) = expected else { panic!("a state is an object") };
        let (mut refused, mut unbuilt) = (BTreeMap::new(), BTreeSet::new());
        state.retain(|namespace, there| match obstacle(namespace, there) {
            Some(why) => {
                refused.insert(namespace.replace("system.buckets.", ""), why);
                false
            }
            None => true,
        });
        for (namespace, there) in &mut state {
            let Some(indexes) = there["indexes"].as_array_mut() else { continue };
            for name in without_second_of_a_key(indexes) {
                unbuilt.insert((namespace.clone(), name));
            }
            if is_before([4, 4]) {
                let options = indexes.iter_mut().filter_map(Value::as_object_mut);
                options.for_each(|index| drop(index.remove("hidden")));
            }
        }
        Self { state: Value::Object(state), refused, unbuilt }
    }

    /// Whether it is the whole state.
    pub(crate) fn is_whole(&self) -> bool {
        self.refused.is_empty() && self.unbuilt.is_empty()
    }

    /// The exit status of a restore of it.
    pub(crate) fn status(&self) -> i32 {
        i32::from(!self.is_whole())
    }

    /// Checks how a restore ended, what stands there, and that it told of all that does not.
    #[track_caller]
    pub(crate) fn is_reached(&self, restored: Restored, found: &Value) -> Restored {
        let restored = restored.ended(self.status());
        self.stands(found, &restored.stderr);
        if restored.report.is_null() {
            // Nothing could be restored, so that nothing was begun.
            assert_eq!(self.state, json!({}));
            return restored;
        }
        let [read, inserted, ..] = restored.balance();
        assert_eq!(read, inserted);
        assert_eq!(restored.report["outcome"]["kind"], "finished");
        let skipped = restored.report["skipped"].as_array().unwrap();
        let is_told = |what: &str, why: &str| {
            let new_name = format!("(renamed to `{what}`)");
            let is_about = |one: &&Value| {
                one["what"] == what || one["reason"].as_str().unwrap().ends_with(&new_name)
            };
            let told = skipped.iter().find(is_about);
            let told = told.unwrap_or_else(|| panic!("{what}: {}", restored.stderr));
            assert_eq!(told["is_problem"], true, "{what}");
            assert!(told["reason"].as_str().unwrap().contains(why), "{told}");
        };
        for (namespace, why) in &self.refused {
            is_told(namespace, why);
        }
        for (namespace, name) in &self.unbuilt {
            is_told(&format!("index `{name}` of {namespace}"), "has the same key");
        }
        restored
    }

    /// Checks what stands there, and that this is told of all that does not, and of nothing else.
    #[track_caller]
    pub(crate) fn stands(&self, found: &Value, stderr: &str) {
        assert_eq!(differences(&self.state, found), [""; 0]);
        let flat = stderr.split_whitespace().collect::<String>();
        for what in self.refused.keys().chain(self.unbuilt.iter().map(|(_, name)| name)) {
            let what = what.split_whitespace().collect::<String>();
            assert!(flat.contains(&what), "{what} is not told: {stderr}");
        }
        let failures: Vec<_> =
            stderr.lines().filter_map(|line| line.strip_prefix("failed: ")).collect();
        assert_eq!(failures, [""; 0]);
    }
}

/// Why the servers of this run cannot hold a collection, if they cannot.
fn obstacle(namespace: &str, state: &Value) -> Option<&'static str> {
    let has = |option: &str| state["options"].get(option).is_some();
    let is_buckets = namespace.contains("system.buckets.");
    if is_before([5, 0]) && (has("timeseries") || is_buckets) {
        Some("timeseries")
    } else if is_before([5, 3]) && has("clusteredIndex") && !is_buckets {
        Some("clusteredIndex")
    } else if is_before([4, 4]) && namespace.len() > NAME_BYTES_MAX_BEFORE_4_4 {
        Some("too long")
    } else {
        None
    }
}

/// Takes out the indexes that a server before 5.0 does not build, and returns their names.
fn without_second_of_a_key(indexes: &mut Vec<Value>) -> Vec<String> {
    let is_second = |index: &Value| {
        let is_listed = SECOND_OF_A_KEY.iter().any(|name| index["name"] == *name);
        let of_the_key = |other: &&Value| other["key"] == index["key"];
        is_before([5, 0]) && is_listed && indexes.iter().filter(of_the_key).count() > 1
    };
    let names: Vec<_> = indexes
        .iter()
        .filter(|index| is_second(index))
        .map(|index| index["name"].clone())
        .collect();
    indexes.retain(|index| !names.contains(&index["name"]));
    names.iter().map(|name| name.as_str().unwrap().to_owned()).collect()
}
