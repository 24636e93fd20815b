//! Files of text, or standard input, that documents are made from.

pub mod columnar;
pub mod table;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::dump::stream::{INPUT_NAME, Interrupt, Stream};
use crate::dump::texts::columnar::ColumnarFormat;
use crate::dump::texts::table::{Blanks, Table};
use crate::error::{Error, ErrorKind};

/// Texts that become the documents of one collection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Texts {
    inputs: Vec<TextInput>,
    form: TextForm,
    /// Which of the inputs are files of columns.
    columnar: Vec<Option<ColumnarFormat>>,
    shown: PathBuf,
    bytes: Option<u64>,
}

/// One text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TextInput {
    /// A file, plain or compressed, or a pipe with a name.
    File(PathBuf),
    /// Standard input.
    Input,
}

/// How documents are written down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TextForm {
    /// As Extended JSON.
    Json(JsonLayout),
    /// As Extended JSON, in which also those are values of version 1 that mean something else in
    /// version 2.
    LegacyJson(JsonLayout),
    /// As rows of a table.
    Table(Arc<Table>),
    /// As columns of Parquet or Arrow, of which each file tells which; with what becomes of cells
    /// without a value.
    Columnar(Blanks),
}

/// How JSON documents stand beside each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonLayout {
    /// One after the other, each on a line of its own or over several; or, where the text begins
    /// with a bracket, in an array.
    Told,
    /// In one array.
    Array,
}

impl Texts {
    /// Looks whether all texts are there.
    ///
    /// # Errors
    ///
    /// Of kind [`ErrorKind::Dump`], where one is not a file that can be read.
    pub fn locate(inputs: Vec<TextInput>, form: TextForm) -> Result<Self, Error> {
        let mut bytes = Some(0_u64);
        for input in &inputs {
            bytes = bytes.zip(input.bytes()?).map(|(sum, bytes)| sum + bytes);
        }
        let first = inputs.first().map_or(Path::new(INPUT_NAME), TextInput::path);
        let shown = match inputs.len() {
            0 | 1 => first.to_path_buf(),
            many => PathBuf::from(format!("{} and {} more", first.display(), many - 1)),
        };
        let columnar = columnar(&inputs, &form)?;
        Ok(Self { inputs, form, columnar, shown, bytes })
    }

    /// The texts, in the order in which they were named.
    pub fn inputs(&self) -> &[TextInput] {
        &self.inputs
    }

    /// How documents are written down in them.
    pub fn form(&self) -> &TextForm {
        &self.form
    }

    /// The format of an input that is a file of columns.
    pub fn columnar(&self, input: usize) -> Option<ColumnarFormat> {
        self.columnar.get(input).copied().flatten()
    }

    /// What they are called together.
    pub fn path(&self) -> &Path {
        &self.shown
    }

    /// Their size together, compressed or not, where it is known.
    pub fn bytes(&self) -> Option<u64> {
        self.bytes
    }
}

/// Which inputs are files of columns: those that have to be, and those that nobody said to be text.
fn columnar(inputs: &[TextInput], form: &TextForm) -> Result<Vec<Option<ColumnarFormat>>, Error> {
    let (is_wanted, is_possible) = match form {
        TextForm::Columnar(_) => (true, true),
        TextForm::Json(JsonLayout::Told) => (false, true),
        TextForm::Json(JsonLayout::Array) | TextForm::LegacyJson(_) | TextForm::Table(_) => {
            (false, false)
        }
    };
    let format = |input: &TextInput| {
        let format = match input {
            TextInput::File(path) if is_possible => ColumnarFormat::of_file(path),
            TextInput::File(_) | TextInput::Input => None,
        };
        let error = |message| Error::new(ErrorKind::Dump, message).in_file(input.path());
        if is_wanted && format.is_none() {
            return Err(error("is neither a Parquet nor an Arrow file").hint(
                "both are read from where they lie, not compressed as a whole, nor through a pipe",
            ));
        }
        if format.is_some() && !cfg!(feature = "columnar") {
            return Err(error("this restorm was built without Parquet and Arrow")
                .hint("build it with the feature columnar"));
        }
        Ok(format)
    };
    inputs.iter().map(format).collect()
}

impl TextInput {
    /// Its path, or what it is called.
    pub fn path(&self) -> &Path {
        match self {
            Self::File(path) => path,
            Self::Input => Path::new(INPUT_NAME),
        }
    }

    /// Opens it; its first bytes tell how it is compressed.
    ///
    /// # Errors
    ///
    /// Of kind [`ErrorKind::Read`], where it cannot be opened.
    pub fn open(&self, interrupt: Interrupt) -> Result<Stream, Error> {
        match self {
            Self::File(path) => Stream::of_path(path, Some(interrupt)),
            Self::Input => Stream::of_input(Some(interrupt)),
        }
    }

    fn bytes(&self) -> Result<Option<u64>, Error> {
        let Self::File(path) = self else {
            return Ok(None);
        };
        let found = fs::metadata(path).map_err(|error| {
            Error::new(ErrorKind::Dump, format!("cannot be opened: {error}")).in_file(path)
        })?;
        if found.is_dir() {
            return Err(Error::new(ErrorKind::Dump, "is a folder instead of a file of text")
                .in_file(path)
                .hint("name its files, such as folder/*.json"));
        }
        Ok(found.is_file().then_some(found.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_texts_have_one_name_and_one_size() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::write(&path, text).expect("written");
            TextInput::File(path)
        };
        let inputs = vec![file("a.json", "{}"), file("b.json", "{}\n")];
        let told = TextForm::Json(JsonLayout::Told);
        let texts = Texts::locate(inputs.clone(), told.clone()).expect("there");
        assert_eq!(texts.bytes(), Some(5));
        assert!(texts.path().to_string_lossy().ends_with("a.json and 1 more"));
        let with_input = [inputs, vec![TextInput::Input]].concat();
        assert_eq!(Texts::locate(with_input, told.clone()).expect("there").bytes(), None);
        let missing = vec![TextInput::File(folder.path().join("c.json"))];
        assert!(Texts::locate(missing, told.clone()).is_err());
        let not_text = vec![TextInput::File(folder.path().to_path_buf())];
        let error = Texts::locate(not_text, told).expect_err("a folder");
        assert!(error.to_string().contains("is a folder"), "{error}");
    }
}
