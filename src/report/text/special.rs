//! Users, roles and the oplog in the summary.

use crate::report::Verbosity;
use crate::report::format::{count, counted, one_line};
use crate::report::tally::special::Progress;
use crate::report::tally::{OplogTally, UsersTally};
use crate::report::value::{CollectionState, Report};

/// Names in a line before they are only counted.
const NAMES_MAX: usize = 8;

/// What became of users and roles: their numbers, and in a second line their names.
pub(in crate::report) fn users(tally: &UsersTally, verbosity: Verbosity) -> Vec<String> {
    let users = counted(tally.users.len() as u64, "user", "users");
    let roles = counted(tally.roles.len() as u64, "role", "roles");
    let state = match (tally.state, &tally.error) {
        (Progress::Done, _) => "restored".to_owned(),
        (_, Some(error)) => format!("NOT restored: {}", one_line(error)),
        _ => "NOT restored".to_owned(),
    };
    // Of an archive that ends before they come, their number is not known.
    let is_unknown = tally.users.is_empty() && tally.roles.is_empty();
    let mut lines = vec![match tally.state {
        Progress::Waiting | Progress::Failed if is_unknown => state,
        _ => format!("{users} and {roles} {state}"),
    }];
    let shown = match verbosity {
        Verbosity::Normal => NAMES_MAX,
        Verbosity::Verbose => usize::MAX,
    };
    let names: Vec<_> = tally.users.iter().chain(&tally.roles).collect();
    let mut listed: Vec<_> = names.iter().take(shown).map(|name| one_line(name)).collect();
    if names.len() > listed.len() {
        let more = count((names.len() - listed.len()) as u64);
        listed.push(format!("and {more} more (-v lists all)"));
    }
    if !listed.is_empty() {
        lines.push(listed.join(", "));
    }
    lines
}

/// How far the oplog was replayed.
pub(in crate::report) fn oplog(tally: &OplogTally) -> String {
    let (Some(first), Some(last)) = (tally.first, tally.last) else {
        return match tally.state {
            Progress::Done => "no entry to apply".to_owned(),
            Progress::Waiting | Progress::Failed => "NOT replayed".to_owned(),
        };
    };
    let entries = counted(tally.entries, "entry", "entries");
    let operations = counted(tally.operations, "operation", "operations");
    let left_out = match tally.left_out {
        0 => String::new(),
        some => format!(", {} of the source alone left out", count(some)),
    };
    let end = match tally.state {
        Progress::Done if tally.reached_limit => ", the limit that was given",
        Progress::Done => ", its end",
        Progress::Waiting | Progress::Failed => ", NOT its end",
    };
    format!("{entries} with {operations} applied{left_out}, from {first} to {last}{end}")
}

/// What is missing, where all collections are complete.
pub(super) fn missing(report: &Report) -> Option<String> {
    let has_users = report.users.as_ref().is_none_or(|users| users.state == Progress::Done);
    let is_done = report.collections.iter().all(|one| one.state == CollectionState::Done);
    let has_problem = report.skipped.iter().any(|skipped| skipped.is_problem);
    (!has_users && is_done && !has_problem).then(|| "users and roles not restored".to_owned())
}
