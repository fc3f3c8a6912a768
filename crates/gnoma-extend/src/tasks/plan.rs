//! The steps of one run: those of a task and of the tasks that it runs, in one list, with their values.

use std::{collections::HashMap, fmt};

use gnoma_core::session::PermissionMode;
use sha2::{Digest as _, Sha256};

use super::{
    arguments::{ArgumentError, TaskArgument, bind_arguments, bind_words, rebind_arguments},
    definition::TaskDefinition,
    steps::{STEP_TIMEOUT_S, StepAction, StepKind, StepOptions},
    substitute::{NamedValue, fill_command, fill_text, mentions_variable},
};
use crate::commands::split_words;

/// Most steps of a run, those of the tasks that it runs included.
const MAX_PLANNED_STEPS: usize = 200;
/// Most steps that run side by side, as many as elfs of one call.
const MAX_SIDE_STEPS: usize = 10;
/// Most tasks that run each other, one within the other.
const MAX_DEPTH: usize = 5;
/// The name that stands for the last answer to a question.
const ANSWER: &str = "answer";
/// Bytes of a step's digest that are recorded, as hexadecimal digits.
const DIGEST_BYTES: usize = 8;
/// Stands for a value that is not known while a task is only checked. No value contains it.
const UNKNOWN: char = '\0';

/// The reason why a task cannot run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlanError {
    /// A step runs a task that does not exist.
    UnknownTask {
        /// The task whose step it is.
        task: String,
        /// The line of the step.
        line: usize,
        /// The task that it names.
        named: String,
    },
    /// Tasks run each other in a circle.
    Cycle(Vec<String>),
    /// Tasks run each other deeper than allowed.
    TooDeep,
    /// The run has too many steps.
    TooManySteps,
    /// An argument is wrong; with the task and the line of the step that gives it, if a step does.
    Argument(Option<(String, usize)>, ArgumentError),
    /// A prompt is blank with the values of its arguments.
    BlankPrompt {
        /// The task whose step it is.
        task: String,
        /// The line of the step.
        line: usize,
    },
    /// The answer to a question cannot be an argument of a task: it is not known before the run.
    AnswerAsArgument {
        /// The task whose step it is.
        task: String,
        /// The line of the step.
        line: usize,
    },
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownTask { task, line, named } => {
                write!(f, "{task}.md:{line}: there is no task `{named}`")
            }
            Self::Cycle(names) => {
                write!(f, "the tasks run each other in a circle: {}", names.join(" → "))
            }
            Self::TooDeep => write!(f, "tasks run each other more than {MAX_DEPTH} deep"),
            Self::TooManySteps => write!(f, "the run has more than {MAX_PLANNED_STEPS} steps"),
            Self::Argument(None, error) => error.fmt(f),
            Self::Argument(Some((task, line)), error) => write!(f, "{task}.md:{line}: {error}"),
            Self::BlankPrompt { task, line } => {
                write!(f, "{task}.md:{line}: the step has no text, because its values are empty")
            }
            Self::AnswerAsArgument { task, line } => write!(
                f,
                "{task}.md:{line}: `$answer` cannot be an argument of a task, because it is not known before the run"
            ),
        }
    }
}

/// The work of a planned step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlannedAction {
    /// Sends this to the model.
    Prompt(String),
    /// Runs this in a shell.
    Command(String),
    /// Asks the person a question.
    Question {
        /// The text of the question.
        text: String,
        /// The answers to choose from; may be empty.
        choices: Vec<String>,
    },
}

/// A step of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedStep {
    /// The heading, behind those of the steps that run its task.
    pub title: String,
    /// The model that it wants.
    pub model: Option<String>,
    /// The role whose model it wants, if it names no model.
    pub role: Option<String>,
    /// The time limit of its command, in seconds.
    pub timeout_s: u64,
    /// The place of the first of the steps that run side by side with it; `None` if it runs alone.
    pub group: Option<usize>,
    action: StepAction,
    values: Vec<NamedValue>,
}

/// The steps of one run, with their values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskPlan {
    /// The name of the task.
    pub task: String,
    /// The arguments with their values.
    pub arguments: Vec<NamedValue>,
    /// The permission modes of all tasks in the run: the strictest holds.
    pub modes: Vec<PermissionMode>,
    /// The steps, in order.
    pub steps: Vec<PlannedStep>,
}

impl PlannedStep {
    /// Returns what the step does after the person's last answer.
    #[must_use]
    pub fn resolve_action(&self, answer: Option<&str>) -> PlannedAction {
        let mut values = self.values.clone();
        values.extend(answer.map(|answer| (ANSWER.to_owned(), answer.to_owned())));
        match &self.action {
            StepAction::Prompt(text) => PlannedAction::Prompt(fill_text(text, &values)),
            StepAction::Command(command) => PlannedAction::Command(fill_command(command, &values)),
            StepAction::Question { text, choices } => PlannedAction::Question {
                text: fill_text(text, &values),
                choices: choices.iter().map(|choice| fill_text(choice, &values)).collect(),
            },
            // Planning replaces these by the steps of their task.
            StepAction::Task { name, .. } => PlannedAction::Prompt(name.clone()),
        }
    }

    /// Returns the kind of the step.
    #[must_use]
    pub fn kind(&self) -> StepKind {
        match self.action {
            StepAction::Prompt(_) | StepAction::Task { .. } => StepKind::Prompt,
            StepAction::Command(_) => StepKind::Command,
            StepAction::Question { .. } => StepKind::Question,
        }
    }

    /// Returns a digest of what the step does, to tell whether it is the same in a later plan.
    #[must_use]
    pub fn digest(&self) -> String {
        let mut hash = Sha256::new();
        hash.update(format!("{:?}{:?}", self.action, self.values));
        let bytes = hash.finalize();
        bytes.iter().take(DIGEST_BYTES).map(|byte| format!("{byte:02x}")).collect()
    }
}

/// Plans a run of the task `name` with the words behind its name. `tasks`: all tasks by name.
///
/// # Errors
/// There is no such task, an argument is wrong, or the tasks cannot run each other like this.
pub fn plan_task(
    name: &str,
    arguments: &[String],
    tasks: &HashMap<String, TaskDefinition>,
) -> Result<TaskPlan, PlanError> {
    let task = find_task(name, tasks)?;
    let values = bind_arguments(name, &task.arguments, arguments);
    plan_with(task, values.map_err(|error| PlanError::Argument(None, error))?, tasks)
}

/// Plans the continuation of a run of the task `name` with the values that were recorded of it.
///
/// # Errors
/// As [`plan_task`]; also if a value is of an argument that the task does not have any more.
pub fn replan_task(
    name: &str,
    recorded: &[NamedValue],
    tasks: &HashMap<String, TaskDefinition>,
) -> Result<TaskPlan, PlanError> {
    let task = find_task(name, tasks)?;
    let values = rebind_arguments(name, &task.arguments, recorded);
    plan_with(task, values.map_err(|error| PlanError::Argument(None, error))?, tasks)
}

/// Checks a task as far as that is possible without its values: the tasks that it runs exist, get arguments that fit,
/// and form no circle.
///
/// # Errors
/// The first reason why no run of it can be planned.
pub fn check_task(
    task: &TaskDefinition,
    tasks: &HashMap<String, TaskDefinition>,
) -> Result<(), PlanError> {
    let unknown = |argument: &TaskArgument| (argument.name.clone(), UNKNOWN.to_string());
    let values: Vec<NamedValue> = task.arguments.iter().map(unknown).collect();
    Planner { is_check: true, ..Planner::new(tasks) }.add_task(task, &values, "")
}

fn find_task<'t>(
    name: &str,
    tasks: &'t HashMap<String, TaskDefinition>,
) -> Result<&'t TaskDefinition, PlanError> {
    let unknown =
        || PlanError::UnknownTask { task: name.to_owned(), line: 1, named: name.to_owned() };
    tasks.get(name).ok_or_else(unknown)
}

fn plan_with(
    task: &TaskDefinition,
    values: Vec<NamedValue>,
    tasks: &HashMap<String, TaskDefinition>,
) -> Result<TaskPlan, PlanError> {
    let mut planner = Planner::new(tasks);
    planner.add_task(task, &values, "")?;
    let Planner { modes, steps, .. } = planner;
    Ok(TaskPlan { task: task.name.clone(), arguments: values, modes, steps })
}

struct Planner<'t> {
    tasks: &'t HashMap<String, TaskDefinition>,
    /// The tasks that are being planned, the outermost first.
    path: Vec<String>,
    modes: Vec<PermissionMode>,
    steps: Vec<PlannedStep>,
    /// Values that are not known fit everywhere.
    is_check: bool,
}

impl<'t> Planner<'t> {
    fn new(tasks: &'t HashMap<String, TaskDefinition>) -> Self {
        let (path, modes, steps) = (Vec::new(), Vec::new(), Vec::new());
        Self { tasks, path, modes, steps, is_check: false }
    }

    fn add_task(
        &mut self,
        task: &TaskDefinition,
        values: &[NamedValue],
        above: &str,
    ) -> Result<(), PlanError> {
        self.enter_task(task)?;
        let mut intro = Some(&task.intro).filter(|intro| !intro.is_empty());
        let mut group: Option<usize> = None;
        for step in &task.steps {
            let title = format!("{above}{}", step.title);
            let options = step.options.clone();
            let at = self.steps.len();
            // The steps of another task are a group of their own.
            let goes_on = group.filter(|first| at - first < MAX_SIDE_STEPS);
            group = options.is_parallel.then(|| goes_on.unwrap_or(at));
            let action = match &step.action {
                StepAction::Task { name, arguments } => {
                    self.add_nested(task, step.line, (name, arguments), values, &title)?;
                    continue;
                }
                StepAction::Prompt(text) if fill_text(text, values).trim().is_empty() => {
                    let (task, line) = (task.name.clone(), step.line);
                    return Err(PlanError::BlankPrompt { task, line });
                }
                // A command of the conversation is one only at the beginning.
                StepAction::Prompt(text) if text.starts_with('/') => step.action.clone(),
                StepAction::Prompt(text) => StepAction::Prompt(match intro.take() {
                    Some(intro) => format!("{intro}\n\n{text}"),
                    None => text.clone(),
                }),
                action @ (StepAction::Command(_) | StepAction::Question { .. }) => action.clone(),
            };
            let timeout_s = options.timeout_s.or(task.timeout_s).unwrap_or(STEP_TIMEOUT_S);
            let (StepOptions { model, role, .. }, values) = (options, values.to_vec());
            self.add_step(PlannedStep { title, model, role, timeout_s, group, action, values })?;
        }
        self.add_checks(task, values, above)?;
        self.path.pop();
        Ok(())
    }

    /// Notes that the steps of a task follow.
    fn enter_task(&mut self, task: &TaskDefinition) -> Result<(), PlanError> {
        if let Some(at) = self.path.iter().position(|name| *name == task.name) {
            let circle = self.path.iter().skip(at).chain([&task.name]).cloned().collect();
            return Err(PlanError::Cycle(circle));
        }
        if self.path.len() == MAX_DEPTH {
            return Err(PlanError::TooDeep);
        }
        self.path.push(task.name.clone());
        self.modes.extend(task.mode);
        Ok(())
    }

    /// Adds the checks of a task as steps.
    fn add_checks(
        &mut self,
        task: &TaskDefinition,
        values: &[NamedValue],
        above: &str,
    ) -> Result<(), PlanError> {
        for check in &task.checks {
            let title = format!("{above}Check: {}", check.lines().next().unwrap_or_default());
            let timeout_s = task.timeout_s.unwrap_or(STEP_TIMEOUT_S);
            let (action, values) = (StepAction::Command(check.clone()), values.to_vec());
            let (model, role, group) = (None, None, None);
            self.add_step(PlannedStep { title, model, role, timeout_s, group, action, values })?;
        }
        Ok(())
    }

    fn add_nested(
        &mut self,
        task: &TaskDefinition,
        line: usize,
        (name, arguments): (&str, &str),
        values: &[NamedValue],
        title: &str,
    ) -> Result<(), PlanError> {
        let place = || (task.name.clone(), line);
        let Some(nested) = self.tasks.get(name) else {
            let (task, line) = place();
            return Err(PlanError::UnknownTask { task, line, named: name.to_owned() });
        };
        if mentions_variable(arguments, ANSWER) {
            let (task, line) = place();
            return Err(PlanError::AnswerAsArgument { task, line });
        }
        // Words first: a value with blanks is one word.
        let words: Vec<String> =
            split_words(arguments).iter().map(|word| fill_text(word, values)).collect();
        let is_checked = |value: &str| !(self.is_check && value.contains(UNKNOWN));
        let bound = bind_words(name, &nested.arguments, &words, is_checked);
        let bound = bound.map_err(|error| PlanError::Argument(Some(place()), error))?;
        self.add_task(nested, &bound, &format!("{title} › "))
    }

    fn add_step(&mut self, step: PlannedStep) -> Result<(), PlanError> {
        if self.steps.len() == MAX_PLANNED_STEPS {
            return Err(PlanError::TooManySteps);
        }
        self.steps.push(step);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{super::parse_task, *};

    fn tasks(all: &[(&str, &str)]) -> HashMap<String, TaskDefinition> {
        let task =
            |(name, text): &(&str, &str)| ((*name).to_owned(), parse_task(name, text).unwrap());
        all.iter().map(task).collect()
    }

    fn plan(name: &str, arguments: &[&str], all: &[(&str, &str)]) -> Result<TaskPlan, String> {
        let arguments: Vec<String> = arguments.iter().map(|word| (*word).to_owned()).collect();
        plan_task(name, &arguments, &tasks(all)).map_err(|error| error.to_string())
    }

    #[test]
    fn steps_of_nested_tasks_and_checks_are_in_one_list() {
        let release = "---\narguments:\n  version: version\nchecks: test $version\npermission: plan\n---\nIntro.\n\
            ## Run\n```sh\nls \"$version\"\n```\n## Write\nWrite $version.\n## Push\n/task push \"$version x\"\n";
        let push = "---\narguments: what\npermission: auto\n---\n## Sure\n? Push $what?\n- yes\n## Go\nGo: $answer.";
        let plan = plan("release", &["v2"], &[("release", release), ("push", push)]).unwrap();
        let titles: Vec<_> = plan.steps.iter().map(|step| step.title.as_str()).collect();
        assert_eq!(titles, ["Run", "Write", "Push › Sure", "Push › Go", "Check: test $version"]);
        let action = |at: usize| plan.steps[at].resolve_action(Some("yes"));
        assert_eq!(action(0), PlannedAction::Command("version='v2'\nls \"$version\"".to_owned()));
        assert_eq!(action(1), PlannedAction::Prompt("Intro.\n\nWrite v2.".to_owned()));
        assert!(matches!(action(2), PlannedAction::Question { text, .. } if text == "Push v2 x?"));
        assert_eq!(action(3), PlannedAction::Prompt("Go: yes.".to_owned()));
        assert_eq!(plan.modes, [PermissionMode::Plan, PermissionMode::Auto]);
        assert_ne!(plan.steps[0].digest(), plan.steps[1].digest());
    }

    #[test]
    fn command_has_the_nearest_time_limit() {
        let task = "---\ntimeout: 20m\nchecks: ls\n---\n## A {timeout=90s}\n```sh\na\n```\n## B\n```sh\nb\n```\n\
            ## C\n/task c\n";
        let plan = plan("t", &[], &[("t", task), ("c", "```sh\nc\n```")]).unwrap();
        let limits: Vec<u64> = plan.steps.iter().map(|step| step.timeout_s).collect();
        assert_eq!(limits, [90, 1_200, STEP_TIMEOUT_S, 1_200]);
    }

    #[test]
    fn neighbours_that_are_marked_so_are_a_group() {
        let groups = |text: &str, other: &str| -> Vec<Option<usize>> {
            let plan = plan("t", &[], &[("t", text), ("other", other)]).unwrap();
            plan.steps.iter().map(|step| step.group).collect()
        };
        let side = |title: &str| format!("## {title} {{parallel}}\nx\n");
        let task = format!("{}{}## C\nx\n{}", side("A"), side("B"), side("D"));
        assert_eq!(groups(&task, "x"), [Some(0), Some(0), None, Some(3)]);
        // Steps of another task are neighbours only of each other.
        let task = format!("{}## B\n/task other\n{}", side("A"), side("C"));
        let other = format!("{}{}", side("E"), side("F"));
        assert_eq!(groups(&task, &other), [Some(0), Some(1), Some(1), Some(3)]);
        let many: String = (0..=MAX_SIDE_STEPS).map(|at| side(&at.to_string())).collect();
        assert_eq!(groups(&many, "x").last(), Some(&Some(MAX_SIDE_STEPS)));
    }

    #[test]
    fn recorded_values_are_checked_against_the_task_as_it_is_now() {
        let replan = |text: &str, recorded: &[(&str, &str)]| {
            let recorded: Vec<NamedValue> = recorded
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect();
            let plan = replan_task("t", &recorded, &tasks(&[("t", text)]));
            plan.map(|plan| plan.arguments).map_err(|error| error.to_string())
        };
        let task = "---\narguments:\n  v: version\n  note: text = \"\"\n---\nx";
        let values = replan(task, &[("v", "v1"), ("note", "a=b")]).unwrap();
        assert_eq!(values, [("v".into(), "v1".into()), ("note".into(), "a=b".into())]);
        // A default was never checked, so it is not checked now.
        let empty = "---\narguments:\n  v: version = \"\"\n---\nx";
        assert!(replan(empty, &[("v", "")]).is_ok());
        for (recorded, part) in [
            (&[("v", "latest")][..], "`latest` is not a version"),
            (&[("version", "v1"), ("note", "")], "no argument `version` any more"),
            (&[("note", "x")], "the argument `v` is missing"),
        ] {
            let error = replan(task, recorded).unwrap_err();
            assert!(error.contains(part), "{recorded:?}: {error}");
        }
    }

    #[test]
    fn runs_that_cannot_be_planned_are_refused_with_a_sentence() {
        let a = ("a", "## B\n/task b\n");
        let cycle = plan("a", &[], &[a, ("b", "## A\n/task a\n")]).unwrap_err();
        assert_eq!(cycle, "the tasks run each other in a circle: a → b → a");
        assert_eq!(plan("a", &[], &[a]).unwrap_err(), "a.md:1: there is no task `b`");
        let needs = ("b", "---\narguments:\n  n: number\n---\nx");
        assert!(plan("a", &[], &[a, needs]).unwrap_err().starts_with("a.md:1: the argument `n`"));
        let answer = ("a", "## Q\n? x\n## B\n/task b $answer\n");
        assert!(plan("a", &[], &[answer, needs]).unwrap_err().contains("a.md:3: `$answer`"));
        let blank = ("a", "---\narguments:\n  t: text = \"\"\n---\n## A\n$t\n");
        assert!(plan("a", &[], &[blank]).unwrap_err().starts_with("a.md:5: the step has no text"));
        assert!(plan("a", &["x"], &[blank]).is_ok());
        let chain: Vec<(String, String)> =
            (0..7).map(|at| (format!("t{at}"), format!("## N\n/task t{}\n", at + 1))).collect();
        let chain: Vec<_> = chain.iter().map(|(name, text)| (&**name, &**text)).collect();
        assert!(plan("t0", &[], &chain).unwrap_err().contains("more than 5 deep"));
        let many = "## A\n/task many\n".repeat(50);
        let of = "## S\nx\n".repeat(50);
        let error = plan("all", &[], &[("all", &many), ("many", &of)]).unwrap_err();
        assert!(error.contains("more than 200 steps"), "{error}");
    }

    #[test]
    fn task_is_checked_behind_arguments_that_a_person_must_give() {
        let needs = |step: &str| {
            format!("---\narguments:\n  v: version\n  w: text = x\n---\n## A\n/task {step}\n")
        };
        let (a, b) = (needs("b $v"), needs("a $v"));
        let (fine, text, many) =
            (needs("one ${v} \"$w x\""), needs("one $v no.number"), needs("one $v 1 2 3"));
        let all = tasks(&[
            ("a", &a),
            ("b", &b),
            ("fine", &fine),
            ("text", &text),
            ("many", &many),
            ("one", "---\narguments:\n  v: version\n  n: number\n---\nx"),
        ]);
        let check = |name: &str| check_task(&all[name], &all).map_err(|error| error.to_string());
        assert_eq!(check("fine"), Ok(()));
        assert_eq!(check("a").unwrap_err(), "the tasks run each other in a circle: a → b → a");
        assert!(check("text").unwrap_err().starts_with("text.md:6: `no.number` is not a number"));
        assert!(check("many").unwrap_err().contains("`2` is one argument too many"));
        let missing = parse_task("m", &needs("nosuch $v")).unwrap();
        let error = check_task(&missing, &all).unwrap_err().to_string();
        assert_eq!(error, "m.md:6: there is no task `nosuch`");
    }
}
