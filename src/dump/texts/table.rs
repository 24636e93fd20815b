//! What a table of text is like: how its cells are separated, and what its columns hold.

/// A table whose rows become documents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// What stands between cells.
    pub separator: Separator,
    /// Where the names of the columns are.
    pub names: Names,
    /// Where the types of the columns are from.
    pub typing: Typing,
    /// What becomes of empty cells.
    pub blanks: Blanks,
    /// What becomes of cells that are not of the type of their column.
    pub grace: ParseGrace,
    /// What numbers in the names of columns are.
    pub numbers: NumbersInNames,
}

/// What stands between cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Separator {
    /// A comma; cells may stand in quotes (RFC 4180).
    Comma,
    /// A tabulator; quotes mean nothing.
    Tab,
}

/// Where the names of the columns are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Names {
    /// In the first row of each text.
    Header,
    /// Here.
    Given(Vec<String>),
}

/// Where the types of the columns are from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Typing {
    /// What looks like a number is one, everything else is a text.
    Guessed,
    /// Each name ends in its type: `price.decimal()`.
    Named,
}

/// What becomes of empty cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blanks {
    /// They are empty texts.
    Kept,
    /// Their fields are left out.
    Ignored,
}

/// What becomes of a cell that is not of the type of its column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParseGrace {
    /// Its type is guessed.
    AutoCast,
    /// Its field is left out.
    SkipField,
    /// Its row is rejected.
    SkipRow,
    /// Its row is rejected, and the run ends.
    Stop,
}

/// What numbers in the names of columns are, as in `tags.0`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumbersInNames {
    /// Names of fields.
    Fields,
    /// Places in an array.
    Indexes,
}
