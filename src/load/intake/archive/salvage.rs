//! Takes an archive apart around damage.

use std::sync::Arc;

use crate::dump::archive::Archive;
use crate::error::{Error, ErrorKind};
use crate::load::intake::Reading;
use crate::load::intake::archive::{ArchiveIntake, Told};
use crate::reader::demux::Demux;
use crate::reader::demux::salvage::Salvaged;
use crate::target::Target;

impl<T: Target> ArchiveIntake<T> {
    /// Reads on to the end, or to where nothing more can be read.
    pub(super) fn take_apart_around(
        &mut self,
        mut demux: Demux,
        archive: &Archive,
        mut told: Told,
    ) -> Result<(), Error> {
        while let Some(salvaged) = demux.next_salvaged()? {
            let goes_on = match salvaged {
                Salvaged::Item(item) => self.take(item, &mut told),
                salvaged => self.lose(salvaged, archive, &told),
            };
            if !goes_on {
                break;
            }
        }
        Ok(())
    }

    /// Passes over what is lost; says whether to go on.
    fn lose(&mut self, salvaged: Salvaged<'_>, archive: &Archive, told: &Told) -> bool {
        let is_first = matches!(self.intake.reading, Reading::First);
        let run = Arc::clone(&self.intake.run);
        if !run.goes_on() {
            return false;
        }
        let planned = |place: Option<usize>| place.and_then(|place| told.collections[place]);
        match salvaged {
            Salvaged::Lost { place, bytes } if is_first => run.keep_lost(planned(place), bytes),
            Salvaged::Stretch { place, stretch, before, end } => {
                let collection = planned(place);
                if is_first {
                    let reason = &stretch.reason;
                    if place.is_none() {
                        let what = format!("the archive is damaged outside its blocks: {reason}");
                        let error = Error::new(ErrorKind::Read, what);
                        run.note_damage(error.in_file(archive.path()).at_byte(stretch.from));
                    }
                    run.lose(collection, archive.path(), stretch);
                }
                if let Some(collection) = collection {
                    self.pass_over(collection, before, end);
                }
            }
            Salvaged::Lost { .. } | Salvaged::Item(_) => {}
        }
        run.goes_on()
    }

    /// What a collection ends with: damage that is read around gives no collection up.
    pub(super) fn or_doubtful(
        &self,
        collection: usize,
        ended: Result<(), Error>,
    ) -> Result<(), Error> {
        let run = &self.intake.run;
        match ended {
            Err(error) if run.salvage.is_some() => {
                run.doubt_content(collection, &error);
                Ok(())
            }
            ended => ended,
        }
    }
}
