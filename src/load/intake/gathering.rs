//! Gathers what an archive holds besides collections: users and roles in memory, the oplog in a
//! temporary file. None of them can be restored before the documents, wherever they stand.

use crate::batch::Position;
use crate::error::{Error, ErrorKind};
use crate::frame::Frame;
use crate::load::run::Run;
use crate::load::spool::Spool;
use crate::plan::RestorePlan;
use crate::plan::users::{Content, Dumped, Secrets, Terms, UsersPlan};
use crate::report::Event;
use crate::target::Target;

/// What was gathered so far.
pub(super) struct Gathering {
    users: Option<Users>,
    oplog: Option<Oplog>,
}

/// Users and roles that have not all come yet.
struct Users {
    terms: Terms,
    /// The places in the archive's list of users, roles and the version of their schema.
    places: [Option<usize>; 3],
    /// What of them has come, in the same order.
    found: [Option<Secrets>; 3],
    failure: Option<Error>,
}

struct Oplog {
    place: usize,
    spool: Result<Spool, Error>,
}

/// Whether something of the run was done already that cannot be undone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Begun {
    Nothing,
    Documents,
}

impl Gathering {
    /// What the plan needs; an error where there is no room for it.
    pub(super) fn of(plan: &RestorePlan) -> Result<Self, Error> {
        let oplog = plan.oplog.as_ref().and_then(|oplog| oplog.origin.segments());
        let oplog = oplog.map(|segments| {
            let spool = Ok(Spool::create()?);
            Ok(Oplog { place: segments.place, spool })
        });
        Ok(Self { users: plan.users.as_ref().and_then(Users::of), oplog: oplog.transpose()? })
    }

    /// Takes a document, if it is of something that is gathered.
    pub(super) fn take(&mut self, place: usize, frame: Frame<'_>, position: Position) {
        if let Some(oplog) = self.oplog.as_mut().filter(|oplog| oplog.place == place) {
            if let Ok(spool) = &mut oplog.spool
                && let Err(error) = spool.push(frame, position.offset)
            {
                oplog.spool = Err(error);
            }
        } else if let Some(users) = &mut self.users {
            users.take(place, frame, position);
        }
    }

    /// Hands over what is complete now; false where nothing of it was wanted. What does not fit
    /// ends the run where nothing has begun, as it would with a dump in a folder.
    pub(super) fn end<T: Target>(
        &mut self,
        run: &Run<T>,
        place: usize,
        checked: &Result<(), Error>,
        begun: Begun,
    ) -> bool {
        if let Some(oplog) = self.oplog.take_if(|oplog| oplog.place == place) {
            run.gathered.keep_oplog(checked.clone().and(oplog.spool));
            return true;
        }
        let Some(users) = &mut self.users else {
            return false;
        };
        let Some(index) = users.index(place) else {
            return false;
        };
        users.places[index] = None;
        if let Err(error) = checked {
            users.failure.get_or_insert(error.clone());
        }
        if users.places.iter().all(Option::is_none)
            && let Some(users) = self.users.take()
        {
            users.hand_over(run, begun);
        }
        true
    }
}

impl Users {
    fn of(plan: &UsersPlan) -> Option<Self> {
        let Content::Awaited(awaited) = &plan.content else {
            return None;
        };
        let places = [awaited.users, awaited.roles, awaited.version];
        let found = places.map(|place| place.map(|_| Secrets::of(awaited.archive.path())));
        Some(Self { terms: plan.terms.clone(), places, found, failure: None })
    }

    fn index(&self, place: usize) -> Option<usize> {
        self.places.iter().position(|known| *known == Some(place))
    }

    fn take(&mut self, place: usize, frame: Frame<'_>, position: Position) {
        let found = self.index(place).and_then(|index| self.found[index].as_mut());
        let Some(found) = found.filter(|_| self.failure.is_none()) else {
            return;
        };
        let sound = frame
            .validate()
            .map_err(|error| Error::new(ErrorKind::Read, error.to_string()).in_file(found.path()));
        let pushed = sound.and_then(|()| found.push(frame.bytes()));
        self.failure = pushed.err().map(|error| error.at_byte(position.offset));
    }

    fn hand_over<T: Target>(self, run: &Run<T>, begun: Begun) {
        if let Some(failure) = self.failure {
            return run.gathered.keep_accounts(Err(failure));
        }
        let [users, roles, version] = self.found;
        match self.terms.judge(Dumped { users, roles, version }) {
            Ok((accounts, note)) => {
                let [users, roles] = [&accounts.users, &accounts.roles]
                    .map(|part| part.as_ref().map(|part| part.names.clone()).unwrap_or_default());
                run.observe(&Event::UsersPlanned { users, roles });
                if let Some(text) = note {
                    run.observe(&Event::Note { collection: None, text });
                }
                run.gathered.keep_accounts(Ok(accounts));
            }
            Err(error) if begun == Begun::Nothing => run.fail(error),
            Err(error) => run.gathered.keep_accounts(Err(error)),
        }
    }
}
