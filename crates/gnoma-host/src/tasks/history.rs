//! Records of runs of tasks, described for people.

use std::time::Duration;

use gnoma_core::{
    duration,
    price::format_usd,
    protocol::{TaskRunState, TaskStepState},
    quantity::describe_count,
};
use gnoma_extend::tasks::{RunRecord, RunStore, StepKind, StepRecord, TaskPlan};

use crate::{Folders as _, Project, clock};

/// The folder within the state folder for records of runs.
const RUNS: &str = "tasks";
/// Runs that fail at the same step before that is said.
pub(super) const REPEATED_FAILURES: usize = 3;
/// Runs that are listed.
const MAX_LISTED_RUNS: usize = 10;

/// Returns where the runs of a project are recorded; `None` in incognito.
#[must_use]
pub fn run_store(project: &Project) -> Option<RunStore> {
    if project.is_incognito() {
        return None;
    }
    let key = gnoma_store::project_key(&project.places.project.display().to_string());
    Some(RunStore::new(project.environment().state_dir().join(RUNS).join(key)))
}

/// Describes the last runs of a task, or of all with an empty name, the newest first.
#[must_use]
pub fn describe_history(project: &Project, name: &str) -> String {
    let Some(store) = run_store(project) else {
        return "nothing is recorded in incognito\n".to_owned();
    };
    let now_ms = project.now_ms();
    let runs = store.runs(Some(name).filter(|name| !name.is_empty()));
    let text: String =
        runs.iter().take(MAX_LISTED_RUNS).map(|run| describe_run(run, now_ms)).collect();
    if text.is_empty() {
        return "no runs yet\n".to_owned();
    }
    let repeated = describe_repeated_failure(&runs).filter(|_| !name.is_empty());
    text + &repeated.map_or_else(String::new, |line| format!("{line}\n"))
}

/// The likely cost of a run of a plan, from recorded runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExpectedCost {
    /// In millionths of a dollar.
    pub micro_usd: u64,
    /// The likely duration, in milliseconds.
    pub took_ms: u64,
    /// The number of runs of the task that were looked at.
    pub runs: usize,
}

/// Returns what a run of a plan is likely to take: for each step the mean of its recorded ends. `None` if a step has none.
#[must_use]
pub fn expected_cost(project: &Project, plan: &TaskPlan) -> Option<ExpectedCost> {
    let runs = run_store(project)?.runs(Some(&plan.task));
    expected_cost_from(&runs, plan)
}

fn expected_cost_from(runs: &[RunRecord], plan: &TaskPlan) -> Option<ExpectedCost> {
    let mut expected = ExpectedCost { micro_usd: 0, took_ms: 0, runs: runs.len() };
    for planned in &plan.steps {
        let is_it = |step: &&StepRecord| {
            step.state == TaskStepState::Done
                && step.title == planned.title
                && step.kind == planned.kind()
        };
        let done = runs.iter().flat_map(|run| &run.steps).filter(is_it);
        let (mut count, mut micro_usd, mut took_ms) = (0, 0, 0);
        for step in done {
            count += 1;
            micro_usd += step.micro_usd;
            took_ms += u64::try_from(step.took_ms).unwrap_or_default();
        }
        expected.micro_usd += micro_usd.checked_div(count)?;
        expected.took_ms += took_ms.checked_div(count)?;
    }
    Some(expected)
}

/// Returns the step at which the last runs of a task failed: its number, title and kind; `None` if they did not fail at
/// the same one. `runs`: those of the task, the newest first.
pub(super) fn repeated_failure(runs: &[RunRecord]) -> Option<(usize, String, StepKind)> {
    let last = runs.get(..REPEATED_FAILURES)?;
    let failed = |run: &RunRecord| {
        let (number, step) = run.open_step().filter(|_| run.state == TaskRunState::Failed)?;
        Some((number, step.title.clone(), step.kind))
    };
    let first = failed(last.first()?)?;
    if last.iter().any(|run| failed(run).as_ref() != Some(&first)) {
        return None;
    }
    Some(first)
}

/// Says that the last runs of a task failed at the same step, and what can be done; `None` if they did not.
fn describe_repeated_failure(runs: &[RunRecord]) -> Option<String> {
    let (number, title, kind) = repeated_failure(runs)?;
    let task = &runs.first()?.task;
    let proposal = match kind {
        StepKind::Command => {
            "give each of its lines a step of its own, so that `/task resume` goes on at the one that failed"
        }
        StepKind::Prompt => {
            "split it into smaller steps, or name a stronger model: `## Title {model=NAME}`"
        }
        StepKind::Question => "leave the question out if its answer is always the same",
    };
    Some(format!(
        "The last {REPEATED_FAILURES} runs of {task} failed at step {number} ({title}). `gnoma task repair {task}` \
         proposes a change, `gnoma task edit {task}` opens it: {proposal}"
    ))
}

/// Describes a run in a line, and why it did not go on in another.
fn describe_run(run: &RunRecord, now_ms: i64) -> String {
    let when = clock::describe_age(run.began_ms, now_ms);
    let state = state_word(run);
    let took: i64 = run.steps.iter().map(|step| step.took_ms).sum();
    let took =
        duration::format_duration(Duration::from_millis(u64::try_from(took).unwrap_or_default()));
    let cost = describe_cost(run.micro_usd());
    let steps = describe_count(run.steps.len(), "step");
    let steps = format!("{} of {steps}{}", run.finished_steps(), describe_gaps(run));
    let mut text = format!("{when}  {}: {state}, {steps}, {took}{cost}", run_title(run));
    if let Some((number, step)) = run.open_step()
        && step.state != TaskStepState::Waiting
    {
        let why = step.why.lines().next().unwrap_or_default();
        let why = if why.is_empty() { String::new() } else { format!(": {why}") };
        text.push_str(&format!("\n    step {number} ({}){why}", step.title));
    }
    text + "\n"
}

fn state_word(run: &RunRecord) -> &'static str {
    match run.state {
        TaskRunState::Running => "not finished",
        TaskRunState::Done => "done",
        TaskRunState::Failed => "failed",
        TaskRunState::Stopped => "stopped",
    }
}

/// Returns the task of a run with its arguments: `release version=v1.2.0`.
pub(super) fn run_title(run: &RunRecord) -> String {
    let arguments = run.arguments.iter().map(|(name, value)| format!(" {name}={value}"));
    std::iter::once(run.task.clone()).chain(arguments).collect()
}

/// Describes what the finished steps of a run did not do, behind other words: those that a person left out, and changes
/// that were discarded. Empty if there is nothing.
pub(super) fn describe_gaps(run: &RunRecord) -> String {
    let count = |state, has_note: bool| {
        let is_it = |it: &&StepRecord| it.state == state && (!has_note || !it.why.is_empty());
        run.steps.iter().filter(is_it).count()
    };
    let (skipped, discarded) =
        (count(TaskStepState::Skipped, false), count(TaskStepState::Done, true));
    let mut text = String::new();
    if skipped > 0 {
        text.push_str(&format!(", {skipped} skipped"));
    }
    if discarded > 0 {
        let steps = describe_count(discarded, "step");
        text.push_str(&format!(", changes of {steps} discarded (on trial only)"));
    }
    text
}

/// Describes the cost of a run behind other words; empty if nothing is known of it.
pub(super) fn describe_cost(micro_usd: u64) -> String {
    if micro_usd == 0 { String::new() } else { format!(", {}", format_usd(micro_usd)) }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use gnoma_extend::tasks::{StepResult, parse_task, plan_task};

    use super::*;

    fn plan(text: &str) -> TaskPlan {
        let tasks = HashMap::from([("t".to_owned(), parse_task("t", text).unwrap())]);
        plan_task("t", &[], &tasks).unwrap()
    }

    /// A run of steps that end like this, each after a second, for a millionth of a dollar times its number.
    fn run(plan: &TaskPlan, ends: &[TaskStepState]) -> RunRecord {
        let mut run = RunRecord::new("r".to_owned(), plan, "s".to_owned(), 0);
        for (at, state) in ends.iter().enumerate() {
            run.begin_step(at, 0);
            let (why, micro_usd) = (String::new(), 10 * (at as u64 + 1));
            let (state, models) = (*state, Vec::new());
            let result = StepResult { state, why, micro_usd, answer: None, message: None, models };
            run.end_step(at, result, 1_000);
        }
        run
    }

    #[test]
    fn cost_is_expected_from_what_each_step_took_before() {
        use TaskStepState::{Done, Failed};
        let plan = plan("## A\na\n## B\nb");
        assert_eq!(expected_cost_from(&[], &plan), None);
        let runs = [run(&plan, &[Done, Failed]), run(&plan, &[Done, Done])];
        assert_eq!(expected_cost_from(&runs[..1], &plan), None, "B never ended well");
        let expected = ExpectedCost { micro_usd: 30, took_ms: 2_000, runs: 2 };
        assert_eq!(expected_cost_from(&runs, &plan), Some(expected));
    }

    #[test]
    fn three_failures_at_the_same_step_are_told_with_a_proposal() {
        use TaskStepState::{Done, Failed};
        let plan = plan("## A\na\n## B\n```sh\nb\nc\n```");
        let failed = || run(&plan, &[Done, Failed]);
        let told = describe_repeated_failure(&[failed(), failed(), failed()]).unwrap();
        assert!(
            told.contains("failed at step 2 (B). `gnoma task repair t` proposes a change, ")
                && told.contains("`gnoma task edit t` opens it: give each"),
            "{told}"
        );
        let other = run(&plan, &[Failed]);
        assert_eq!(describe_repeated_failure(&[failed(), failed(), other]), None);
        assert_eq!(
            describe_repeated_failure(&[failed(), failed(), run(&plan, &[Done, Done])]),
            None
        );
        assert_eq!(describe_repeated_failure(&[failed(), failed()]), None);
    }
}
