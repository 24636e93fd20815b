//! Who may use whom, and which crates live in which room.

use crate::source::{Source, word_positions};

/// What a room may use besides itself; a longer path allows only what lies under it.
///
/// The rooms stand in the order in which data passes through them, the vocabulary first.
const MAY_USE: &[(&str, &[&str])] = &[
    ("error", &[]),
    ("limits", &[]),
    ("sum", &[]),
    ("sample", &[]),
    ("changes", &[]),
    ("clock", &[]),
    ("memory", &[]),
    ("namespace", &["error"]),
    ("facts", &["namespace"]),
    ("frame", &["error", "limits"]),
    ("exit", &["error"]),
    ("report", &["error", "limits", "namespace", "exit", "sample", "changes"]),
    ("exporter", &["error", "limits", "report"]),
    ("dump", &["clock", "error", "limits", "memory", "namespace", "frame", "facts"]),
    ("plan", &["error", "limits", "namespace", "facts", "changes", "dump"]),
    // A reader says where a document was, in the batch's word for it.
    ("reader", &[VOCABULARY, "dump", "batch::Position"]),
    ("batch", &["error", "limits", "memory", "namespace", "frame"]),
    (
        "target",
        &[
            "error",
            "limits",
            "namespace",
            "facts",
            "frame",
            "batch",
            "sample",
            "changes",
            METADATA,
            INDEX,
        ],
    ),
    ("load", &[VOCABULARY, FLOW]),
    ("seed", &[VOCABULARY, "dump"]),
    ("bench", &[VOCABULARY, FLOW, "load", "seed::random"]),
    // It speaks to servers itself, over connections that the driver does not give; where they are
    // and how one logs in is the target's to know.
    ("probe", &[VOCABULARY, "report", "load::Stop", "seed::random", "target::mongo"]),
    ("command", &[VOCABULARY, FLOW, "load", "seed", "bench", "probe"]),
    // Options carry values whose types belong to the rooms that act on them.
    ("cli", &[VOCABULARY, OF_OPTIONS, "command", "report", "exporter", "load::Stop"]),
    // The library shows what programs need at its root.
    ("lib", &["command", "report", VOCABULARY]),
    ("main", &["cli"]),
];

const OF_OPTIONS: &str = "dump::Compression | dump::writer::Existing | seed | probe";
const METADATA: &str = "dump::metadata | dump::CollectionMetadata";
const INDEX: &str = "dump::IndexSpec";
const VOCABULARY: &str =
    "error | limits | memory | namespace | facts | frame | exit | sum | sample | changes | clock";
const FLOW: &str = "dump | plan | reader | batch | target | report";

/// Where a crate, or a part of the standard library, may be used; nowhere if no place is named.
const CRATES: &[(&str, &[&str])] = &[
    ("clap", &["cli"]),
    ("toml", &["seed::spec"]),
    // Their lists of words, and mathematics that is the same everywhere.
    ("fake", &["seed::text"]),
    ("libm", &["seed::distribution"]),
    ("mongodb", &["target", "probe"]),
    ("tokio", &["load", "target", "probe", "exporter", "cli::signals", "main"]),
    ("async_channel", &["load"]),
    // A comparison waits for many collections at once, without tasks of its own.
    ("futures_util", &["load", "target", "command::verify", "command::survey"]),
    ("rayon", &["load", "command", "seed"]),
    ("indicatif", &["report::progress"]),
    ("maud", &["report::html", "bench::page"]),
    ("nix", &["bench::process"]),
    ("prometheus_client", &["report::metrics"]),
    ("hyper", &["exporter"]),
    ("hyper_util", &["exporter"]),
    ("strsim", &["plan", "cli::mongorestore", "cli::bench"]),
    ("walkdir", &["dump"]),
    ("percent_encoding", &["dump", "target"]),
    ("rpassword", &["cli::password"]),
    ("saphyr", &["cli::configuration"]),
    ("saphyr_parser", &["cli::configuration"]),
    ("flate2", &["dump"]),
    ("zstd", &["dump"]),
    ("arrow_array", &["reader::columnar"]),
    ("parquet", &["reader::columnar"]),
    ("crc64fast", &["dump::archive"]),
    ("rustix", &["dump::stream", "load::stages", "bench::process", "probe::files"]),
    ("rustls", &["probe::wire"]),
    ("tokio_rustls", &["probe::wire"]),
    ("hmac", &["probe::wire::scram"]),
    ("md5", &["probe::wire::scram"]),
    ("pbkdf2", &["probe::wire::scram"]),
    ("sha2", &["probe::wire::scram"]),
    ("stringprep", &["probe::wire::scram"]),
    (
        "bson",
        &[
            "dump", "reader", "batch", "plan", "target", "load", "seed", "command", "report",
            "facts", "probe",
        ],
    ),
    // Every run of a benchmark is a process of its own.
    ("std::process::Command", &["bench::process", "bench::mongod"]),
    // A library neither prints nor ends the process that uses it.
    ("std::process::exit", &["cli"]),
    // A dump that is made may be written to standard output, which is its data.
    ("std::io::stdout", &["cli", "command::seed"]),
    ("std::io::stderr", &["cli"]),
];

/// Rooms that compute and do nothing else, so that property tests can say all about them.
const PURE: [&str; 9] = [
    "plan",
    "batch",
    "namespace",
    "frame",
    "sum",
    "sample",
    "changes",
    "report::event",
    "report::tally",
];

/// What they must not name.
const IMPURE: [&str; 9] =
    ["fs", "env", "net", "thread", "Instant", "SystemTime", "tokio", "mongodb", "process"];

/// The code that is judged: what only tests use may use anything.
fn judged(sources: &[Source]) -> impl Iterator<Item = &Source> {
    sources.iter().filter(|source| !source.for_tests)
}

/// Uses of rooms that the table does not allow.
pub(crate) fn forbidden_rooms(sources: &[Source]) -> Vec<String> {
    let mut found = Vec::new();
    for source in judged(sources) {
        let room = source.room();
        let Some((_, allowed)) = MAY_USE.iter().find(|(name, _)| *name == room) else {
            found.push(format!("{}: no room of that name is in the table", source.path));
            continue;
        };
        let allowed: Vec<&str> = allowed.iter().flat_map(|group| group.split(" | ")).collect();
        for path in source.crate_paths() {
            let named = path.join("::");
            if path[0] != room && !allowed.iter().any(|allowed| lies_under(&named, allowed)) {
                found.push(format!("{}: {room} must not use {named}", source.path));
            }
        }
    }
    found
}

/// Uses of crates outside the places they belong to.
pub(crate) fn forbidden_crates(sources: &[Source]) -> Vec<String> {
    let mut found = Vec::new();
    for source in judged(sources) {
        let module = source.module().join("::");
        let place = if module.is_empty() { source.room() } else { &module };
        for (name, places) in CRATES {
            if names(source, name) && !places.iter().any(|allowed| lies_under(place, allowed)) {
                found.push(format!("{}: {name} does not belong here", source.path));
            }
        }
    }
    found
}

/// Clocks, files, threads and the like in rooms that should only compute.
pub(crate) fn impurities(sources: &[Source]) -> Vec<String> {
    let mut found = Vec::new();
    for source in judged(sources) {
        let module = source.module().join("::");
        if !PURE.iter().any(|pure| lies_under(&module, pure)) {
            continue;
        }
        for name in IMPURE {
            let used = word_positions(&source.code, name).any(|(end, _)| {
                let behind_path = source.code[..end - name.len()].ends_with("::");
                behind_path || source.code[end..].starts_with("::")
            });
            if used {
                found.push(format!("{}: a room that only computes names {name}", source.path));
            }
        }
    }
    found
}

/// Rooms the library does not name, and names without a room.
pub(crate) fn unnamed(sources: &[Source]) -> Vec<String> {
    let Some(library) = sources.iter().find(|source| source.path == "src/lib.rs") else {
        return vec!["src/lib.rs is missing".to_string()];
    };
    let named: Vec<&str> = library
        .code
        .lines()
        .filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';'))
        .collect();
    let mut rooms: Vec<&str> = sources.iter().map(Source::room).collect();
    rooms.retain(|room| !matches!(*room, "lib" | "main"));
    rooms.dedup();
    let missing = rooms.iter().filter(|room| !named.contains(room));
    let empty = named.iter().filter(|name| !rooms.contains(name));
    missing
        .map(|room| format!("src/lib.rs does not name {room}"))
        .chain(empty.map(|name| format!("src/lib.rs names {name}, which has no file")))
        .collect()
}

/// Whether a path is another one or lies under it.
fn lies_under(path: &str, other: &str) -> bool {
    path.strip_prefix(other).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

/// Whether the code names a crate, or the last part of a path of the standard library.
fn names(source: &Source, path: &str) -> bool {
    let Some((parent, name)) = path.rsplit_once("::") else {
        return word_positions(&source.code, path).any(|(end, _)| {
            let inside = source.code[..end - path.len()].ends_with("::");
            let used = source.code[..end].ends_with(&format!("use {path}"));
            !inside && (used || source.code[end..].starts_with("::"))
        });
    };
    let module = parent.rsplit("::").next().unwrap_or(parent);
    let imported = source.code.contains(&format!("{parent}::{{"));
    word_positions(&source.code, name).any(|(end, _)| {
        let before = &source.code[..end - name.len()];
        before.ends_with(&format!("{module}::")) || imported
    })
}

mod tests {
    use super::*;

    fn found(rule: fn(&[Source]) -> Vec<String>, path: &str, text: &str) -> Vec<String> {
        rule(&[Source::new(path, text)])
    }

    #[test]
    fn a_use_against_the_flow_is_found() {
        assert_eq!(
            found(forbidden_rooms, "src/plan/order.rs", "use crate::{error::Error, load::Stop};"),
            ["src/plan/order.rs: plan must not use load::Stop"]
        );
        assert_eq!(found(forbidden_rooms, "src/load.rs", "use crate::cli;").len(), 1);
        assert_eq!(found(forbidden_rooms, "src/load.rs", "use super::cli::X;").len(), 1);
        assert_eq!(found(forbidden_rooms, "src/load.rs", "use crate::plan::X;"), [""; 0]);
        assert_eq!(found(forbidden_rooms, "src/attic.rs", "").len(), 1);
    }

    #[test]
    fn a_longer_path_allows_only_what_lies_under_it() {
        let metadata = "use crate::dump::{CollectionMetadata, metadata::IndexSpec};";
        assert_eq!(found(forbidden_rooms, "src/target/mongo.rs", metadata), [""; 0]);
        let writer = "use crate::dump::writer::DumpWriter;";
        assert_eq!(found(forbidden_rooms, "src/target/mongo.rs", writer).len(), 1);
        assert_eq!(found(forbidden_rooms, "src/reader.rs", "use crate::batch::Batcher;").len(), 1);
    }

    #[test]
    fn a_crate_out_of_place_is_found() {
        for (path, text) in [
            ("src/plan.rs", "use clap::Parser;"),
            ("src/command/restore.rs", "let client = mongodb::Client::new();"),
            ("src/report/text.rs", "use indicatif::ProgressBar;"),
            ("src/frame.rs", "use bson::Document;"),
            ("src/load.rs", "use std::process::{Command, ExitStatus};"),
            ("src/load.rs", "use std::process;\nfn x() { process::Command::new(y) }"),
            ("src/main.rs", "use clap::Parser;"),
        ] {
            assert_eq!(found(forbidden_crates, path, text).len(), 1, "{path}: {text}");
        }
    }

    #[test]
    fn a_crate_in_its_place_is_no_find() {
        for (path, text) in [
            ("src/cli/restore.rs", "use clap::Args;"),
            ("src/report/progress/bars.rs", "use indicatif::ProgressBar;"),
            ("src/frame.rs", "#[cfg(test)]\nmod tests {\n    use bson::doc;\n}"),
            ("src/main.rs", "use std::process::ExitCode;"),
            ("src/cli.rs", "enum Command { Restore }\nuse std::process::ExitCode;"),
            ("src/plan.rs", "use crate::dump::zstd::Level;"),
        ] {
            assert_eq!(found(forbidden_crates, path, text), [""; 0]);
        }
    }

    #[test]
    fn a_clock_in_the_pure_core_is_found() {
        assert_eq!(found(impurities, "src/plan.rs", "use std::time::Instant;").len(), 1);
        assert_eq!(found(impurities, "src/batch.rs", "let x = fs::read(y);").len(), 1);
        assert_eq!(found(impurities, "src/plan.rs", "use std::time::Duration;"), [""; 0]);
        assert_eq!(found(impurities, "src/load.rs", "use std::time::Instant;"), [""; 0]);
    }

    #[test]
    fn a_room_without_a_name_and_a_name_without_a_room_are_found() {
        let sources = [
            Source::new("src/lib.rs", "//! The crate.\npub mod attic;\npub mod cli;"),
            Source::new("src/cli.rs", ""),
            Source::new("src/plan.rs", ""),
        ];
        assert_eq!(
            unnamed(&sources),
            ["src/lib.rs does not name plan", "src/lib.rs names attic, which has no file"]
        );
    }
}
