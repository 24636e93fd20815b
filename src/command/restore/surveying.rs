//! What the target holds before a restore and after it, where that was asked for.

use crate::command::restore::special::Found;
use crate::command::restore::{Mode, Restored, Stop, SurveyDetail};
use crate::command::survey;
use crate::error::Error;
use crate::facts::ServerFacts;
use crate::namespace::Namespace;
use crate::plan::RestorePlan;
use crate::report::value::NoteReport;
use crate::report::{BeforeAndAfter, Outcome, Report, Survey};
use crate::target::mongo::MongoTarget;

/// A survey whose first half is taken, or none.
pub(super) struct Surveying(Option<Begun>);

struct Begun {
    target: MongoTarget,
    facts: ServerFacts,
    namespaces: Vec<Namespace>,
    detail: SurveyDetail,
    before: Result<Survey, Error>,
}

impl Surveying {
    /// Surveys the collections of the plan before it is carried out.
    pub(super) async fn begin(
        found: Found<'_>,
        target: &MongoTarget,
        plan: &RestorePlan,
        stop: &Stop,
    ) -> Self {
        let Some(detail) = found.options.survey.filter(|_| found.options.mode == Mode::Restore)
        else {
            return Self(None);
        };
        let namespaces: Vec<_> = plan.collections.iter().map(|one| one.namespace.clone()).collect();
        let before = survey::of(target, found.facts, &namespaces, &detail, stop).await;
        // Of what is there, the survey has all that it needs.
        let facts = ServerFacts { existing: Vec::new(), ..found.facts.clone() };
        Self(Some(Begun { target: target.clone(), facts, namespaces, detail, before }))
    }

    /// Surveys them again and tells of both in the report.
    pub(super) async fn end(self, restored: Restored) -> Restored {
        match (self.0, restored) {
            (Some(begun), Restored::Ran(mut report)) => {
                begun.end(&mut report).await;
                Restored::Ran(report)
            }
            (_, restored) => restored,
        }
    }
}

impl Begun {
    async fn end(self, report: &mut Report) {
        let Self { target, facts, namespaces, detail, before } = self;
        let mut note = |text: String| report.notes.push(NoteReport { namespace: None, text });
        // A server that may be gone is not waited for twice.
        let may_answer = !matches!(report.outcome, Outcome::Stopped { .. });
        let is_written = may_answer && target.checkpoint().await.is_ok();
        // An interrupted restore is surveyed all the same: then somebody asks what is there.
        let after = survey::of(&target, &facts, &namespaces, &detail, &Stop::new()).await;
        let mut known = |survey: Result<Survey, Error>, when: &str| {
            survey
                .map_err(|error| note(format!("the target could not be surveyed {when}: {error}")))
                .ok()
        };
        let (before, mut after) =
            (known(before, "before the restore"), known(after, "after the restore"));
        if let Some(after) = after.as_mut().filter(|_| !is_written) {
            after.notes.push(
                "sizes of files are those of the server's last checkpoint, up to a minute ago: \
                 it wrote none after the restore (fsync)"
                    .to_owned(),
            );
        }
        report.survey = Some(BeforeAndAfter::new(before, after));
    }
}
