//! Proposes a change of a task whose last runs failed at the same step.

use std::{fs, time::Instant};

use gnoma_core::{diff::unified_diff, protocol::TaskStepState};
use gnoma_extend::tasks::{
    PlannedAction, RunRecord, StepAction, StepPart, TaskStep, commands_run_instead, digest_message,
    parts_that_went_well, propose_repair,
    repetition::{PastSession, PastTurn},
};

use super::{
    catalog::Tasks,
    draft::DraftedTask,
    history::{REPEATED_FAILURES, repeated_failure, run_store},
    past_log::read_history,
};
use crate::{HostError, Project, Result};

/// Lines around a change in a diff.
const CONTEXT_LINES: usize = 3;

/// Parts of a step, and the values of the run in which they ran.
type FoundParts = (Vec<StepPart>, Vec<(String, String)>);

/// The recorded runs of a task, the newest first, with the sessions of the project.
struct PastRuns<'r> {
    project: &'r Project,
    runs: &'r [RunRecord],
    history: &'r [PastSession],
}

impl PastRuns<'_> {
    /// Returns the commands by which the person went on after one of the last runs had failed.
    fn find_commands_instead(&self) -> Option<FoundParts> {
        self.runs.iter().take(REPEATED_FAILURES).find_map(|run| {
            let commands =
                commands_run_instead(self.turns_of(run)?, |turn| self.is_of_run(run, turn));
            self.without_secrets(commands, run)
        })
    }

    /// Returns the parts that a prompt had in the last run in which it went well.
    fn find_parts_that_went_well(&self, tasks: &Tasks, step: &TaskStep) -> Option<FoundParts> {
        let StepAction::Prompt(prompt) = &step.action else { return None };
        let is_done = |run: &&RunRecord| {
            run.steps.iter().any(|it| it.title == step.title && it.state == TaskStepState::Done)
        };
        self.runs.iter().filter(is_done).find_map(|run| {
            let plan = tasks.replan(&run.task, &run.arguments).ok()?;
            let planned = plan.steps.iter().find(|it| it.title == step.title)?;
            let PlannedAction::Prompt(sent) = planned.resolve_action(run.answer.as_deref()) else {
                return None;
            };
            let digest = self.digest(&sent);
            let parts = parts_that_went_well(
                self.turns_of(run)?,
                prompt,
                |turn| self.digest(&turn.message) == digest,
                |turn| self.is_of_run(run, turn),
            );
            self.without_secrets(parts, run)
        })
    }

    fn turns_of(&self, run: &RunRecord) -> Option<&[PastTurn]> {
        let session = self.history.iter().find(|session| session.id == run.session)?;
        Some(&session.turns)
    }

    /// Returns whether a turn is a step of a run.
    fn is_of_run(&self, run: &RunRecord, turn: &PastTurn) -> bool {
        let digest = self.digest(&turn.message);
        run.messages.iter().any(|(_, known)| *known == digest)
    }

    fn digest(&self, message: &str) -> String {
        digest_message(&self.project.firewall.redact_text(message))
    }

    /// Returns the parts with the values of their run; `None` if there are none.
    fn without_secrets(&self, parts: Vec<StepPart>, run: &RunRecord) -> Option<FoundParts> {
        let redact = |text: String| self.project.firewall.redact_text(&text).into_owned();
        let part = |part| match part {
            StepPart::Prompt(text) => StepPart::Prompt(redact(text)),
            StepPart::Command(line) => StepPart::Command(redact(line)),
        };
        let parts: Vec<StepPart> = parts.into_iter().map(part).collect();
        (!parts.is_empty()).then(|| (parts, run.arguments.clone()))
    }
}

/// Drafts a change of a task whose last three runs failed at the same step: what the person did instead, or the parts of
/// the step as steps of their own.
///
/// # Errors
/// There is no such task, its runs did not fail at the same step, or nothing can be proposed.
pub async fn draft_repair(project: &Project, name: &str) -> Result<DraftedTask> {
    let tasks = Tasks::find(project);
    let file = tasks.file(name)?;
    let runs = run_store(project).map(|store| store.runs(Some(name))).unwrap_or_default();
    let edit = || Some(format!("`gnoma task edit {name}` opens it in your editor"));
    let (number, title, _) = repeated_failure(&runs).ok_or_else(|| {
        let cause =
            format!("the last {REPEATED_FAILURES} runs of {name} did not fail at the same step");
        HostError { remedy: edit(), ..HostError::usage(cause) }
    })?;
    let before = fs::read_to_string(&file.path)
        .map_err(|error| HostError::failure(format!("cannot read the task {name}: {error}")))?;
    let history = read_history(project).await?;
    let past = PastRuns { project, runs: &runs, history: &history };
    let step = file.task.steps.iter().find(|step| step.title == title);
    let found = past.find_commands_instead();
    let found = found.or_else(|| past.find_parts_that_went_well(&tasks, step?));
    let (parts, values) = found.unwrap_or_default();
    let text = propose_repair(name, &before, &title, &parts, &values).ok_or_else(|| {
        let cause = format!(
            "step {number} ({title}) of {name} has no parts that can be steps of their own, and nothing was run instead"
        );
        HostError { remedy: edit(), ..HostError::usage(cause) }
    })?;
    let shown = tasks.places().display_path(&file.path);
    let hunks = unified_diff(&before, &text, CONTEXT_LINES, None::<Instant>);
    let diff = format!("--- a/{shown}\n+++ b/{shown}\n{hunks}");
    let diff = project.firewall.redact_text(&diff).into_owned();
    let replaces = Some((file.path.clone(), before));
    Ok(DraftedTask { name: name.to_owned(), text, diff, replaces })
}
