//! The choices that a person has when a step has failed. Pure.

use gnoma_core::protocol::{TaskResumeChoice, TaskRunState};
use gnoma_extend::tasks::{RunRecord, StepKind};

use super::step_end::describe_other;

/// The choice of a stronger model.
pub(crate) const STRONGER: &str = "retry with a stronger model";
const RETRY: &str = "retry";
const SKIP: &str = "skip this step";
const EDIT: &str = "edit the task";
const STOP: &str = "stop";

/// The answer of a person to the failure of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FailureAnswer {
    /// Continue the run like this.
    Resume(TaskResumeChoice),
    /// Stop the run, and say how to change the task.
    Edit,
}

/// Returns the question about a step that has failed, and its choices; `None` if there is nothing to choose.
pub(super) fn failure_question(run: &RunRecord) -> Option<(String, Vec<String>)> {
    let (number, step) = run.open_step().filter(|_| run.state == TaskRunState::Failed)?;
    if step.kind == StepKind::Question {
        return None;
    }
    let begun = run.begun_steps();
    let (task, count, why) = (&run.task, run.steps.len(), step.why.trim());
    let others: String = begun.iter().skip(1).map(describe_other).collect();
    let question =
        format!("Task {task}, step {number} of {count} ({}) failed: {why}{others}", step.title);
    let stronger = begun.iter().any(|(_, step)| !step.models.is_empty()).then_some(STRONGER);
    let choices = stronger.into_iter().chain([RETRY, SKIP, EDIT, STOP]).map(str::to_owned);
    Some((question, choices.collect()))
}

/// Parses the answer to it, which may be one of the words of `/task resume` as well; `None` leaves the run as it ended.
pub(super) fn parse_failure_answer(answer: &str) -> Option<FailureAnswer> {
    let answer = answer.trim().to_lowercase();
    Some(match answer.as_str() {
        STRONGER | "stronger" => FailureAnswer::Resume(TaskResumeChoice::Stronger),
        RETRY | "again" => FailureAnswer::Resume(TaskResumeChoice::Again),
        SKIP | "skip" => FailureAnswer::Resume(TaskResumeChoice::Skip),
        EDIT | "edit" => FailureAnswer::Edit,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn task_failure_answer_parses_every_choice() {
        use TaskResumeChoice::{Again, Skip, Stronger};
        for (words, choice) in [(STRONGER, Stronger), (RETRY, Again), (SKIP, Skip)] {
            assert_eq!(parse_failure_answer(words), Some(FailureAnswer::Resume(choice)));
        }
        assert_eq!(parse_failure_answer(EDIT), Some(FailureAnswer::Edit));
        assert_eq!(parse_failure_answer(STOP), None);
        assert_eq!(parse_failure_answer("why?"), None);
    }
}
