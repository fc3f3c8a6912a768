//! Records of runs of tasks, described for people.

use std::{
    fs,
    time::{Duration, UNIX_EPOCH},
};

use gnoma_core::{
    ModelRef, duration,
    price::format_usd,
    protocol::{TaskRunState, TaskStepState},
    quantity::describe_count,
};
use gnoma_extend::tasks::{
    RunRecord, RunStore, StepAction, StepKind, StepRecord, TaskFile, TaskPlan, TaskStep, has_parts,
};

use super::catalog::Tasks;
use crate::{Folders as _, Project, clock, routing};

/// The folder within the state folder for records of runs.
const RUNS: &str = "tasks";
/// Runs that fail at the same step before that is said.
pub(super) const REPEATED_FAILURES: usize = 3;
/// Runs that are listed.
const MAX_LISTED_RUNS: usize = 10;
/// Days without a run after which the list of tasks says that one is not used.
const UNUSED_DAYS: i64 = 90;
/// Milliseconds of a day.
const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

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
    if name.is_empty() {
        return text;
    }
    let tasks = Tasks::find(project);
    let steps = tasks.file(name).map(|file| file.task.steps.as_slice()).unwrap_or_default();
    let repeated = describe_repeated_failure(&runs, steps);
    text + &repeated.map_or_else(String::new, |line| format!("{line}\n"))
}

/// The likely cost of a run of a plan, from recorded runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExpectedCost {
    /// In millionths of a dollar; `None` if a model's price is not known.
    pub micro_usd: Option<u64>,
    /// The likely duration, in milliseconds.
    pub took_ms: u64,
    /// The number of runs of the task that were looked at.
    pub runs: usize,
}

/// Returns what a run of a plan is likely to take: for each step the mean of its recorded ends. `None` if a step has none.
#[must_use]
pub fn expected_cost(project: &Project, plan: &TaskPlan) -> Option<ExpectedCost> {
    let runs = run_store(project)?.runs(Some(&plan.task));
    expected_cost_from(&runs, plan, |arm| routing::price_of(project, arm).is_some())
}

fn expected_cost_from(
    runs: &[RunRecord],
    plan: &TaskPlan,
    has_price: impl Fn(&ModelRef) -> bool,
) -> Option<ExpectedCost> {
    let mut expected = ExpectedCost { micro_usd: Some(0), took_ms: 0, runs: runs.len() };
    let (mut group, mut slowest_ms) = (None, 0);
    for planned in &plan.steps {
        let is_it = |step: &&StepRecord| {
            step.state == TaskStepState::Done
                && step.title == planned.title
                && step.kind == planned.kind()
        };
        let done = runs.iter().flat_map(|run| &run.steps).filter(is_it);
        let (mut count, mut micro_usd, mut took_ms, mut is_known) = (0, 0, 0, true);
        for step in done {
            count += 1;
            micro_usd += step.micro_usd;
            is_known &= step.micro_usd > 0 || step.models.iter().all(&has_price);
            took_ms += u64::try_from(step.took_ms).unwrap_or_default();
        }
        let mean = micro_usd.checked_div(count)?;
        expected.micro_usd = expected.micro_usd.filter(|_| is_known).map(|all| all + mean);
        let took_ms = took_ms.checked_div(count)?;
        // Of steps side by side, only the slowest counts.
        let is_beside = planned.group.is_some() && planned.group == group;
        let counted_ms = if is_beside { slowest_ms } else { 0 };
        expected.took_ms += took_ms.saturating_sub(counted_ms);
        (group, slowest_ms) = (planned.group, took_ms.max(counted_ms));
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
/// `steps`: those of its file.
fn describe_repeated_failure(runs: &[RunRecord], steps: &[TaskStep]) -> Option<String> {
    let (number, title, kind) = repeated_failure(runs)?;
    let task = &runs.first()?.task;
    let is_split = steps.iter().any(|step| step.title == title && has_parts(step));
    let told =
        format!("The last {REPEATED_FAILURES} runs of {task} failed at step {number} ({title}).");
    let proposal = match kind {
        StepKind::Command if !is_split => {
            // There is nothing to split yet.
            return Some(format!(
                "{told} `gnoma task edit {task}` opens it. What you run by hand instead, in the session of a run that \
                 failed, `gnoma task repair {task}` proposes in its place"
            ));
        }
        StepKind::Command => {
            "give each of its lines a step of its own, so that `/task resume` goes on at the one that failed"
        }
        StepKind::Prompt => {
            "split it into smaller steps, or name a stronger model: `## Title {model=NAME}`"
        }
        StepKind::Question => "leave the question out if its answer is always the same",
    };
    Some(format!(
        "{told} `gnoma task repair {task}` proposes a change, `gnoma task edit {task}` opens it: {proposal}"
    ))
}

/// Names the tasks that have neither run nor changed for 90 days; `None` if there are none, or nothing is recorded. A task
/// that another one runs counts as used.
#[must_use]
pub fn describe_unused(project: &Project, tasks: &Tasks) -> Option<String> {
    let since_ms = project.now_ms() - UNUSED_DAYS * DAY_MS;
    let is_old = |file: &&TaskFile| {
        let changed = file.path.metadata().and_then(|facts| facts.modified()).ok();
        let changed = changed.and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        changed.is_some_and(|at| i64::try_from(at.as_millis()).is_ok_and(|at| at < since_ms))
    };
    let old: Vec<&TaskFile> = tasks.files.iter().filter(is_old).collect();
    if old.is_empty() || project.is_incognito() {
        return None;
    }
    // A person's task may be used in any project.
    let folders = fs::read_dir(project.environment().state_dir().join(RUNS));
    let folders = folders.into_iter().flatten().flatten().map(|entry| entry.path());
    let mut used: Vec<String> =
        folders.flat_map(|folder| RunStore::new(folder).tasks_since(since_ms)).collect();
    used.extend(tasks.files.iter().flat_map(|file| &file.task.steps).filter_map(|step| {
        match &step.action {
            StepAction::Task { name, .. } => Some(name.clone()),
            StepAction::Prompt(_) | StepAction::Command(_) | StepAction::Question { .. } => None,
        }
    }));
    let names = old.iter().map(|file| &file.task.name).filter(|name| !used.contains(name));
    let names: Vec<&str> = names.map(String::as_str).collect();
    (!names.is_empty()).then(|| {
        format!(
            "not used for {UNUSED_DAYS} days: {} (`gnoma task delete NAME` deletes one)",
            names.join(", ")
        )
    })
}

/// Describes a run in a line, and why it did not go on in another.
fn describe_run(run: &RunRecord, now_ms: i64) -> String {
    let when = clock::describe_age(run.began_ms, now_ms);
    let state = state_word(run);
    let (took, cost) = (describe_time(run.took_ms()), describe_cost(run.micro_usd()));
    let steps = describe_count(run.steps.len(), "step");
    let steps = format!("{} of {steps}{}", run.finished_steps(), describe_gaps(run));
    let mut text = format!("{when}  {}: {state}, {steps}, {took}{cost}", run_title(run));
    text.extend((1..).zip(&run.steps).filter_map(|(number, step)| describe_arms(number, step)));
    for (number, step) in run.begun_steps() {
        let why = step.why.lines().next().unwrap_or_default();
        let why = if why.is_empty() { String::new() } else { format!(": {why}") };
        text.push_str(&format!("\n    step {number} ({}){why}", step.title));
    }
    text + "\n"
}

/// Describes which models answered in a step, for how long and for how much; `None` if none did.
fn describe_arms(number: usize, step: &StepRecord) -> Option<String> {
    let models: Vec<String> = step.models.iter().map(ToString::to_string).collect();
    let (took, cost) = (describe_time(step.took_ms), describe_cost(step.micro_usd));
    let (title, models) = (&step.title, models.join(", "));
    (!models.is_empty()).then(|| format!("\n    step {number} ({title}): {models}, {took}{cost}"))
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

/// Describes a time in milliseconds.
pub(super) fn describe_time(ms: i64) -> String {
    duration::format_duration(Duration::from_millis(u64::try_from(ms).unwrap_or_default()))
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
            let (answer, message, took_ms) = (None, None, None);
            let result = StepResult { state, why, micro_usd, answer, message, models, took_ms };
            run.end_step(at, result, 1_000);
        }
        run
    }

    #[test]
    fn expected_task_cost_is_estimated_from_past_runs_per_step() {
        use TaskStepState::{Done, Failed};
        let plan = plan("## A\na\n## B\nb");
        let expected_cost_from =
            |runs: &[RunRecord], plan| expected_cost_from(runs, plan, |_| true);
        assert_eq!(expected_cost_from(&[], &plan), None);
        let runs = [run(&plan, &[Done, Failed]), run(&plan, &[Done, Done])];
        assert_eq!(expected_cost_from(&runs[..1], &plan), None, "B never ended well");
        let expected = ExpectedCost { micro_usd: Some(30), took_ms: 2_000, runs: 2 };
        assert_eq!(expected_cost_from(&runs, &plan), Some(expected));
    }

    #[test]
    fn cost_of_a_model_without_a_price_is_unknown() {
        let plan = plan("## A\na");
        let mut free = run(&plan, &[TaskStepState::Done]);
        for step in &mut free.steps {
            step.micro_usd = 0;
            step.models = vec![ModelRef { provider: "p".into(), model: "m".into() }];
        }
        let cost = |has_price: bool| expected_cost_from(&[free.clone()], &plan, |_| has_price);
        assert_eq!(cost(false).unwrap().micro_usd, None);
        assert_eq!(cost(true).unwrap().micro_usd, Some(0));
    }

    #[test]
    fn expected_time_of_parallel_task_steps_is_that_of_the_slowest() {
        let plan = plan("## A {parallel}\na\n## B {parallel}\nb\n## C\nc");
        let mut run = run(&plan, &[TaskStepState::Done; 3]);
        run.steps[1].took_ms = 5_000;
        let expected = expected_cost_from(&[run], &plan, |_| true).unwrap();
        assert_eq!(expected.took_ms, 6_000);
    }

    #[test]
    fn history_names_the_model_the_time_and_the_cost_of_each_prompt() {
        let mut run = run(&plan("## A\na\n## B\n```sh\nb\n```"), &[TaskStepState::Done; 2]);
        run.steps[0].models = vec![ModelRef { provider: "p".into(), model: "m".into() }];
        let text = describe_run(&run, 1_000);
        assert!(text.contains("\n    step 1 (A): p/m, 1s, $0.0000"), "{text}");
        assert!(!text.contains("step 2"), "{text}");
    }

    #[test]
    fn three_failures_at_one_task_step_suggest_task_repair() {
        use TaskStepState::{Done, Failed};
        let plan = plan("## A\na\n## B\n```sh\nb\nc\n```");
        let failed = || run(&plan, &[Done, Failed]);
        let steps = parse_task("t", "## A\na\n## B\n```sh\nb\nc\n```").unwrap().steps;
        let told = describe_repeated_failure(&[failed(), failed(), failed()], &steps).unwrap();
        assert!(
            told.contains("failed at step 2 (B). `gnoma task repair t` proposes a change, ")
                && told.contains("`gnoma task edit t` opens it: give each"),
            "{told}"
        );
        let other = run(&plan, &[Failed]);
        let one_line = parse_task("t", "## A\na\n## B\n```sh\nb\n```").unwrap().steps;
        let told = describe_repeated_failure(&[failed(), failed(), failed()], &one_line).unwrap();
        assert!(told.contains("What you run by hand instead") && !told.contains("lines"), "{told}");
        let done = run(&plan, &[Done, Done]);
        for last in [&[failed(), failed(), other][..], &[failed(), failed(), done], &[failed()]] {
            assert_eq!(describe_repeated_failure(last, &steps), None);
        }
    }
}
