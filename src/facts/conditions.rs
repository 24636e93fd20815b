//! What is found at a server that bears on whether a plan can be carried out there.

use bson::Document;

use crate::facts::privileges::Login;
use crate::namespace::Namespace;

/// What documents do to a collection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Writing {
    /// They are inserted.
    #[default]
    Inserts,
    /// They are inserted, or replace stored ones or are merged into them.
    Updates,
    /// They delete stored ones.
    Removes,
}

/// What a server says before anything is done; what it does not tell is not held against it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Conditions {
    /// What documents do to the collection, which takes rights of its own.
    pub writing: Writing,
    /// Whether it takes no writes at all.
    pub is_read_only: bool,
    /// The user whose rights it enforces; nobody where it enforces none or does not tell them.
    pub login: Option<Login>,
    /// The names of its databases, as far as the user may see them.
    pub databases: Vec<String>,
    /// Bytes free in the file system of its data.
    pub free_bytes: Option<u64>,
    /// How it keeps acknowledged writes.
    pub journal: JournalUse,
    /// The indexes of collections that were asked about.
    pub indexes: Vec<(Namespace, Vec<Document>)>,
}

/// What the write concern of a run means for a server with or without a journal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum JournalUse {
    /// There is a journal, or nothing that is asked for needs one.
    #[default]
    Fits,
    /// There is none, and each confirmation of a majority writes a checkpoint instead.
    Checkpoints,
    /// There is none, and the server refuses writes that ask for it.
    Refused,
}
