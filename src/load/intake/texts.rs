//! Turns texts into batches: one thread cuts them, others make documents of what is cut.

#[cfg(feature = "columnar")]
mod columnar;

use std::ops::Range;
use std::sync::OnceLock;
use std::thread;

use crate::batch::{Batch, Batcher, Position};
use crate::dump::extended_json::Regexes;
use crate::dump::texts::{TextForm, Texts};
use crate::error::{Error, ErrorKind};
use crate::load::OnRejection;
use crate::load::intake::id::{self, NewIds};
use crate::load::intake::{INVALID_BSON, Intake, beside};
use crate::load::rejects::Kept;
use crate::plan::Insertion;
use crate::reader::draft::Draft;
use crate::reader::json::{self, JsonFault};
use crate::reader::table::{self, Cells, Columns, RowEnd, RowFault};
use crate::reader::text::{self, Chunk, Cutter, Shape};
use crate::report::event::TYPE_MISMATCH;
use crate::report::{Event, Rejection};
use crate::target::Target;

/// Chunks that wait for a thread: one for each that is about to be done with its own.
const CHUNKS_PER_PARSER: usize = 1;

/// What one thread makes documents of at a time.
enum Piece {
    /// A piece of text.
    Text(Chunk),
    /// A group of rows of a file of columns.
    #[cfg(feature = "columnar")]
    Rows(columnar::Rows),
}

/// What is wrong with a piece of text, and where.
struct Fault {
    message: String,
    /// The line, from 1.
    line: u64,
    /// The column in bytes, from 1.
    column: u64,
    /// Whether nothing after it is wanted.
    ends_run: bool,
    /// The server's code for what is wrong.
    code: i32,
}

impl<T: Target> Intake<T> {
    /// Makes the documents of a collection from texts. What was made before an error is sent.
    pub(super) fn read_texts(&self, collection: usize, texts: &Texts) -> Result<(), Error> {
        let parsers = match self.run.plan.collections[collection].insertion {
            Insertion::InOrder => 1,
            Insertion::AnyOrder => self.run.settings.readers,
        };
        let queue = match self.own_queue(collection) {
            Some(worker) => &self.own[worker],
            None => &self.shared,
        };
        let (cut, to_parse) = async_channel::bounded(parsers * CHUNKS_PER_PARSER);
        let ending = OnceLock::new();
        thread::scope(|scope| {
            for number in 0..parsers {
                let pieces = to_parse.clone();
                let maker = Maker::new(self, collection, texts, queue);
                let named = thread::Builder::new().name(format!("parsing {number}"));
                let ending = &ending;
                let make = move || {
                    if let Some(error) = maker.make_all(&pieces) {
                        let _ = ending.set(error);
                    }
                };
                named.spawn_scoped(scope, make).map_err(|error| {
                    let message = format!("no thread can be started to parse: {error}");
                    Error::new(ErrorKind::Read, message)
                })?;
            }
            drop(to_parse);
            // It goes with its end, so that the parsers end with the texts.
            let cut = cut;
            self.cut_all(collection, texts, &cut)
        })?;
        ending.into_inner().map_or(Ok(()), Err)
    }

    /// Cuts one text after the other; where one cannot be read, the others still are.
    fn cut_all(
        &self,
        collection: usize,
        texts: &Texts,
        to_parse: &async_channel::Sender<Piece>,
    ) -> Result<(), Error> {
        let (mut failure, mut base) = (None, 0);
        for (text, input) in texts.inputs().iter().enumerate() {
            if !self.run.goes_on() || to_parse.is_closed() {
                break;
            }
            #[cfg(feature = "columnar")]
            if let Some(format) = texts.columnar(text) {
                if let Err(error) =
                    self.cut_rows(collection, texts, (text, format), to_parse, &mut base)
                {
                    self.run.fail_collection(collection, &error);
                    failure.get_or_insert(error);
                }
                continue;
            }
            let cut = input.open(self.interrupt()).and_then(|mut stream| {
                stream.timed_by(&self.run.stages.read);
                let unpacking = if self.unpacks_aside { stream.unpack_aside() } else { None };
                let base = &mut base;
                beside(unpacking, move || {
                    self.cut_one(Cutter::new(stream, text, texts.form())?, base, to_parse)
                })
            });
            if let Err(error) = cut
                && self.run.goes_on()
            {
                self.run.fail_collection(collection, &error);
                failure.get_or_insert(error);
            }
        }
        match failure {
            Some(error) => Err(error),
            None if self.run.goes_on() && !to_parse.is_closed() => {
                self.run.read_to_end(collection);
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn cut_one(
        &self,
        mut cutter: Cutter,
        base: &mut u64,
        to_parse: &async_channel::Sender<Piece>,
    ) -> Result<(), Error> {
        let mut end = *base;
        let mut cut = || {
            while let Some(mut chunk) = cutter.next_chunk()? {
                chunk.offset += *base;
                end = chunk.offset + chunk.bytes.len() as u64;
                if !self.run.goes_on() || to_parse.send_blocking(Piece::Text(chunk)).is_err() {
                    break;
                }
            }
            Ok(())
        };
        let outcome = cut();
        *base = end;
        outcome
    }
}

/// Makes documents of chunks.
struct Maker<'a, T> {
    intake: &'a Intake<T>,
    collection: usize,
    texts: &'a Texts,
    queue: &'a async_channel::Sender<Batch>,
    batcher: Batcher,
    draft: Draft,
    regexes: Regexes,
    cells: Cells,
    ids: NewIds,
    /// Bytes of files that were used up by the chunks of this one.
    origin: u64,
    /// Where the last document ends.
    end: u64,
    /// Why nothing more is wanted.
    ending: Option<Error>,
}

impl<'a, T: Target> Maker<'a, T> {
    fn new(
        intake: &'a Intake<T>,
        collection: usize,
        texts: &'a Texts,
        queue: &'a async_channel::Sender<Batch>,
    ) -> Self {
        let (run, settings) = (&intake.run, &intake.run.settings);
        let batcher =
            Batcher::new(collection, settings.batch, settings.zero_timestamps, run.pool.clone());
        let ids = NewIds::of(run.id, &run.plan.collections[collection].source);
        Self {
            intake,
            collection,
            texts,
            queue,
            batcher,
            draft: Draft::default(),
            regexes: match texts.form() {
                TextForm::LegacyJson(_) => Regexes::Values,
                _ => Regexes::Operators,
            },
            cells: Cells::default(),
            ids,
            origin: 0,
            end: 0,
            ending: None,
        }
    }

    /// Takes pieces until there are no more, or one after which nothing is wanted, and says why.
    /// What was made before is sent.
    fn make_all(mut self, pieces: &async_channel::Receiver<Piece>) -> Option<Error> {
        while let Ok(piece) = pieces.recv_blocking() {
            let goes_on = match &piece {
                Piece::Text(chunk) => self.make(chunk),
                #[cfg(feature = "columnar")]
                Piece::Rows(rows) => self.make_rows(rows),
            };
            if !goes_on {
                // Whoever cuts notices that nobody listens.
                pieces.close();
                break;
            }
        }
        let end = Position { offset: self.end, origin: self.origin, end: self.end };
        if let Some(batch) = self.batcher.finish(end) {
            self.intake.send(self.queue, batch);
        }
        self.ending
    }

    /// Makes the documents of a chunk; false where nothing more is wanted.
    fn make(&mut self, chunk: &Chunk) -> bool {
        self.origin += chunk.origin_bytes;
        match &chunk.shape {
            Shape::Lines => {
                let (mut at, mut line) = (0, chunk.lines_before);
                while at < chunk.bytes.len() {
                    let rest = &chunk.bytes[at..];
                    let end = at + memchr::memchr(b'\n', rest).map_or(rest.len(), |end| end + 1);
                    if !self.one(chunk, at..end, line) {
                        return false;
                    }
                    (at, line) = (end, line + 1);
                }
            }
            Shape::Stretches(stretches) => {
                let (mut at, mut line) = (0, chunk.lines_before);
                for stretch in stretches {
                    line += lines(&chunk.bytes[at..stretch.start]);
                    if !self.one(chunk, stretch.clone(), line) {
                        return false;
                    }
                    line += lines(&chunk.bytes[stretch.clone()]);
                    at = stretch.end;
                }
            }
            Shape::Rows(columns) => return self.rows(chunk, columns),
        }
        true
    }

    /// Makes the documents of a chunk of rows.
    fn rows(&mut self, chunk: &Chunk, columns: &Columns) -> bool {
        let (mut at, mut line) = (0, chunk.lines_before);
        while at < chunk.bytes.len() {
            let rest = &chunk.bytes[at..];
            let length = match table::row_end(rest, columns.table().separator) {
                RowEnd::At(length) => length,
                RowEnd::Beyond | RowEnd::InQuotes => rest.len(),
            };
            let row = &rest[..length];
            let stretch = at..at + length;
            let goes_on = if matches!(row, b"\n" | b"\r\n") {
                true
            } else {
                match table::convert(row, columns, &mut self.cells, &mut self.draft) {
                    Ok(()) => self.push(chunk, stretch, line),
                    Err(fault) => self.reject(chunk, stretch, &in_row(fault, row, line)),
                }
            };
            if !goes_on {
                return false;
            }
            (at, line) = (at + length, line + lines(row));
        }
        true
    }

    /// Makes the document in this stretch of a chunk, or several where it is a line with several.
    fn one(&mut self, chunk: &Chunk, stretch: Range<usize>, lines_before: u64) -> bool {
        let bytes = &chunk.bytes[stretch.clone()];
        let fault = match json::convert(bytes, self.regexes, &mut self.draft) {
            Ok(()) => return self.push(chunk, stretch, lines_before),
            Err(_) if bytes.iter().all(u8::is_ascii_whitespace) => return true,
            Err(fault) => fault,
        };
        if !fault.follows_document {
            return self.reject(chunk, stretch, &placed(fault, lines_before));
        }
        let (mut values, end) = text::values(bytes);
        if !bytes[end..].iter().all(u8::is_ascii_whitespace) {
            values.push(end..bytes.len());
        }
        values.into_iter().all(|value| {
            let within = stretch.start + value.start..stretch.start + value.end;
            match json::convert(&bytes[value.clone()], self.regexes, &mut self.draft) {
                Ok(()) => self.push(chunk, within, lines_before),
                Err(mut fault) => {
                    fault.column += value.start as u64;
                    self.reject(chunk, within, &placed(fault, lines_before))
                }
            }
        })
    }

    /// Puts the document that was made of a piece of text into a batch.
    fn push(&mut self, chunk: &Chunk, stretch: Range<usize>, lines_before: u64) -> bool {
        match self.push_at(position(chunk, &stretch, self.origin)) {
            Ok(goes_on) => goes_on,
            Err(message) => {
                let line = lines_before + 1;
                let fault = Fault { message, line, column: 1, ends_run: false, code: INVALID_BSON };
                self.reject(chunk, stretch, &fault)
            }
        }
    }

    /// Puts the document that was made into a batch; an error is a sentence, where it is too large.
    fn push_at(&mut self, position: Position) -> Result<bool, String> {
        self.end = position.end;
        let is_fresh = !self.draft.has_id() && !self.is_told_by_keys();
        let made = if is_fresh {
            self.draft.with_id(self.ids.at(position).bytes())
        } else {
            self.draft.frame()
        };
        let frame = made.map_err(|error| error.to_string())?;
        let (stored, _) = id::stored_form(frame, None, position);
        let moved = stored.as_deref().and_then(|bytes| crate::frame::Frame::new(bytes).ok());
        let full = self.batcher.push(moved.unwrap_or(frame), position);
        // Only updates look a stored document up.
        if is_fresh && self.intake.run.settings.write_mode.updates() {
            self.batcher.note_fresh();
        }
        Ok(match full {
            Some(batch) => self.intake.send(self.queue, batch),
            None => !self.intake.run.has_failed(),
        })
    }

    /// Whether the document finds a stored one by other fields than `_id`, so that it must not get
    /// an `_id` that the stored one has not.
    fn is_told_by_keys(&mut self) -> bool {
        let keys = &self.intake.run.settings.keys;
        !keys.is_id() && self.draft.frame().is_ok_and(|frame| keys.values(frame).is_some())
    }

    /// Counts a piece of text as rejected from which no document can be made.
    fn reject(&mut self, chunk: &Chunk, stretch: Range<usize>, fault: &Fault) -> bool {
        let position = position(chunk, &stretch, self.origin);
        let file = self.texts.inputs()[chunk.text].path().display();
        let Fault { message, line, column, ends_run, code } = fault;
        let message = format!("{file}:{line}:{column}: {message}");
        let ends_run = ends_run
            .then_some("with --parseGrace skipRow such rows are counted and the rest goes on");
        self.refuse(position, (*code, &message), &chunk.bytes[stretch], ends_run)
    }

    /// Counts as rejected what is no document; what would keep it from ending the run is said where
    /// it does so whatever is wanted of rejections.
    fn refuse(
        &mut self,
        position: Position,
        (code, message): (i32, &str),
        bytes: &[u8],
        ends_run: Option<&str>,
    ) -> bool {
        let run = &self.intake.run;
        self.batcher.pass_damaged(position);
        let rejection = Rejection {
            code,
            message: message.to_owned(),
            id: "(none that can be read)".to_owned(),
            is_conflict: false,
        };
        let collection = self.collection;
        if let Some(rejects) = &run.rejects {
            let mut line = bytes.to_vec();
            if line.last() != Some(&b'\n') {
                line.push(b'\n');
            }
            let kept = Kept { offset: position.offset, bytes: line.into() };
            if let Err(error) = rejects.keep_damaged(collection, &rejection, &kept) {
                run.fail(error);
            }
        }
        run.observe(&Event::Damaged { collection, bytes: bytes.len() as u64, rejection });
        run.judge_failures();
        if ends_run.is_some() || run.settings.on_rejection == OnRejection::StopRun {
            let message = format!("stopped at what is no document: {message}");
            let hint = ends_run
                .unwrap_or("without --stopOnError such lines are counted and the rest goes on");
            self.ending = Some(Error::new(ErrorKind::Read, message).hint(hint));
            return false;
        }
        !run.has_failed()
    }
}

fn lines(bytes: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', bytes).count() as u64
}

fn position(chunk: &Chunk, stretch: &Range<usize>, origin: u64) -> Position {
    let (start, end) = (stretch.start as u64, stretch.end as u64);
    Position { offset: chunk.offset + start, origin, end: chunk.offset + end }
}

/// A fault of JSON with its place in the text.
fn placed(fault: JsonFault, lines_before: u64) -> Fault {
    let line = lines_before + fault.lines_before + 1;
    Fault {
        message: fault.message,
        line,
        column: fault.column,
        ends_run: false,
        code: INVALID_BSON,
    }
}

/// A fault of a row with its place in the text.
fn in_row(fault: RowFault, row: &[u8], lines_before: u64) -> Fault {
    let before = &row[..fault.at];
    let line = lines_before + lines(before) + 1;
    let in_line = before.len() - memchr::memrchr(b'\n', before).map_or(0, |end| end + 1);
    let code = if fault.is_mistyped { TYPE_MISMATCH } else { INVALID_BSON };
    let RowFault { message, ends_run, .. } = fault;
    Fault { message, line, column: in_line as u64 + 1, ends_run, code }
}
