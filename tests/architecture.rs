//! The rules of the house, checked over its sources: who may use whom, and what a file looks like.

#![expect(clippy::expect_used, reason = "a test that cannot go on says so by panicking")]

#[path = "architecture/form.rs"]
mod form;
#[path = "architecture/rooms.rs"]
mod rooms;
#[path = "architecture/source.rs"]
mod source;

use source::Source;

/// Fails with all that was found, a line each.
fn none(found: &[String]) {
    assert!(found.is_empty(), "\n{}\n", found.join("\n"));
}

#[test]
fn rooms_use_only_the_rooms_they_may() {
    none(&rooms::forbidden_rooms(&Source::all("src")));
}

#[test]
fn crates_are_used_only_where_they_belong() {
    none(&rooms::forbidden_crates(&Source::all("src")));
}

#[test]
fn the_pure_core_has_no_clock_and_touches_nothing() {
    none(&rooms::impurities(&Source::all("src")));
}

#[test]
fn the_library_names_every_room() {
    none(&rooms::unnamed(&Source::all("src")));
}

#[test]
fn files_have_their_form() {
    let mut sources = Source::all("src");
    sources.extend(Source::all("tests"));
    assert!(sources.len() > 20, "the sources are not where they were");
    none(&form::violations(&sources));
}
