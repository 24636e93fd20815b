//! Turns what was typed into checked options; the only user of clap.

pub mod inspect;
pub mod seed;
