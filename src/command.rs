//! Joins rooms into commands; knows no command-line syntax.

pub mod bench;
pub mod import;
pub mod inspect;
pub mod probe;
pub mod restore;
pub mod seed;
pub mod survey;
pub mod verify;
