//! Turns files of columns into batches: their groups of rows are read and decoded apart.

use std::sync::Arc;

use crate::batch::Position;
use crate::dump::texts::columnar::ColumnarFormat;
use crate::dump::texts::table::Blanks;
use crate::dump::texts::{TextForm, Texts};
use crate::error::Error;
use crate::load::intake::texts::{Maker, Piece};
use crate::load::intake::{INVALID_BSON, Intake};
use crate::reader::columnar::{ColumnFile, Group};
use crate::report::Event;
use crate::target::Target;

/// Room for the rows of a group between the numbers that places in a file are told by; a group of
/// Arrow does not say how many come before it.
const GROUP: u64 = 1 << 32;

/// A group of rows.
pub(super) struct Rows {
    file: Arc<ColumnFile>,
    group: Group,
    /// The number of its first row among all places of the run.
    base: u64,
}

impl<T: Target> Intake<T> {
    /// Hands out the groups of a file.
    pub(super) fn cut_rows(
        &self,
        collection: usize,
        texts: &Texts,
        (input, format): (usize, ColumnarFormat),
        to_parse: &async_channel::Sender<Piece>,
        base: &mut u64,
    ) -> Result<(), Error> {
        let file = Arc::new(ColumnFile::open(texts.inputs()[input].path(), format)?);
        let finer = file.finer_times();
        if !finer.is_empty() {
            let text = format!(
                "times in the columns {} of {} are finer than the millisecond that BSON keeps",
                finer.join(", "),
                file.path().display()
            );
            self.run.observe(&Event::Note { collection: Some(collection), text });
        }
        for group in file.groups() {
            let rows = Rows { file: Arc::clone(&file), group: *group, base: *base };
            *base += GROUP;
            if !self.run.goes_on() || to_parse.send_blocking(Piece::Rows(rows)).is_err() {
                break;
            }
        }
        Ok(())
    }
}

impl<T: Target> Maker<'_, T> {
    /// Makes the documents of a group; false where nothing more is wanted. Where it is damaged, the
    /// collection has failed, and other groups are still read.
    pub(super) fn make_rows(&mut self, rows: &Rows) -> bool {
        self.origin += rows.group.bytes;
        match self.make_group(rows) {
            Ok(goes_on) => goes_on,
            Err(error) => {
                self.intake.run.fail_collection(self.collection, &error);
                self.intake.run.goes_on()
            }
        }
    }

    fn make_group(&mut self, Rows { file, group, base }: &Rows) -> Result<bool, Error> {
        let blanks = match self.texts.form() {
            TextForm::Columnar(blanks) => *blanks,
            TextForm::Json(_) | TextForm::LegacyJson(_) | TextForm::Table(_) => Blanks::Kept,
        };
        let mut at = *base;
        for rows in file.read(group)? {
            let rows = rows?;
            for row in 0..rows.count() {
                let position = Position { offset: at, origin: self.origin, end: at + 1 };
                at += 1;
                let made = rows.write(row, blanks, &mut self.draft);
                let goes_on = match made.and_then(|()| self.push_at(position)) {
                    Ok(goes_on) => goes_on,
                    Err(message) => {
                        let place = place(file, group, rows.first() + row as u64);
                        self.refuse(
                            position,
                            (INVALID_BSON, &format!("{place}: {message}")),
                            place.as_bytes(),
                            None,
                        )
                    }
                };
                if !goes_on {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }
}

/// Where a row is, counted from 1.
fn place(file: &ColumnFile, group: &Group, row: u64) -> String {
    let (path, row) = (file.path().display(), row + 1);
    match group.first_row {
        Some(_) => format!("{path}: row {row}"),
        None => format!("{path}: row {row} of group {}", group.number + 1),
    }
}
