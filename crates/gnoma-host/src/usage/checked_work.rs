//! Counts how the work of models was checked, from the records of sessions. Pure.

use std::collections::BTreeMap;

use gnoma_core::{ModelRef, Role, store::Record};

/// The limit of models that are counted; checks of further ones are left out.
const MAX_MODELS: usize = 500;

/// The checks of one model's work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CheckedWork {
    /// Checks of its work, by commands and by models.
    pub checked: u64,
    /// Checks that the work passed.
    pub passed: u64,
    /// Turns that another model went on with because the work did not pass.
    pub escalated: u64,
}

/// The checks so far, by model.
#[derive(Debug, Default)]
pub(super) struct CheckedWorkFold {
    pub(super) models: BTreeMap<String, CheckedWork>,
    /// The model whose work has just failed a check.
    failed: Option<ModelRef>,
}

impl CheckedWorkFold {
    /// Adds the next record of a session.
    pub(super) fn add(&mut self, record: &Record) {
        match record {
            Record::Checked { arm, passed, .. } => {
                if let Some(work) = self.work_of(arm) {
                    work.checked += 1;
                    work.passed += u64::from(*passed);
                }
                self.failed = (!passed).then(|| arm.clone());
            }
            Record::Routed { arm, .. } => {
                if let Some(failed) = self.failed.take()
                    && failed != *arm
                    && let Some(work) = self.work_of(&failed)
                {
                    work.escalated += 1;
                }
            }
            // The next turn is routed anew.
            Record::Message(message) if message.role() == Role::User => self.failed = None,
            Record::Message(_)
            | Record::Asked { .. }
            | Record::Judged { .. }
            | Record::ToolEnded(_)
            | Record::Used(_)
            | Record::Paid { .. }
            | Record::Summary { .. }
            | Record::Checkpoint { .. }
            | Record::Title { .. }
            | Record::Interrupted { .. }
            | Record::Rewound { .. }
            | Record::Tombstone { .. } => (),
        }
    }

    /// Forgets what the next session does not go on with.
    pub(super) fn end_session(&mut self) {
        self.failed = None;
    }

    fn work_of(&mut self, arm: &ModelRef) -> Option<&mut CheckedWork> {
        let name = arm.to_string();
        if self.models.len() >= MAX_MODELS && !self.models.contains_key(&name) {
            return None;
        }
        Some(self.models.entry(name).or_default())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use gnoma_core::Message;

    use super::*;

    #[test]
    fn failed_check_is_an_escalation_if_another_model_goes_on_with_the_turn() {
        let arm = |model: &str| ModelRef { provider: "p".into(), model: model.into() };
        let checked = |model: &str, passed| {
            let (by, evidence) = ("make".to_owned(), String::new());
            Record::Checked { arm: arm(model), by, passed, evidence }
        };
        let routed = |model: &str| Record::Routed { arm: arm(model), why: String::new() };
        let user = || Record::Message(Arc::new(Message::user_text("go on")));
        let mut fold = CheckedWorkFold::default();
        for record in [
            checked("a", true),
            routed("b"),
            checked("a", false),
            routed("b"),
            checked("a", false),
            user(),
            routed("b"),
            checked("b", false),
            routed("b"),
        ] {
            fold.add(&record);
        }
        let of = |model: &str| fold.models[&arm(model).to_string()];
        assert_eq!(of("a"), CheckedWork { checked: 3, passed: 1, escalated: 1 });
        assert_eq!(of("b"), CheckedWork { checked: 1, passed: 0, escalated: 0 });
    }
}
