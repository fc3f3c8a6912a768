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
use crate::commands::{parse_invocation, split_words};

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
/// The command that waits.
const WAIT: &str = "sleep";
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
    Cycle {
        /// The task whose step closes the circle.
        task: String,
        /// The line of the step.
        line: usize,
        /// The tasks of the circle, in order; the first is the last as well.
        names: Vec<String>,
    },
    /// Tasks run each other deeper than allowed.
    TooDeep {
        /// The task whose step is too deep.
        task: String,
        /// The line of the step.
        line: usize,
    },
    /// The run has too many steps.
    TooManySteps {
        /// The task whose step is one too many.
        task: String,
        /// The line of the step; 1 if it is a check.
        line: usize,
    },
    /// An argument is wrong; with the task and the line of the step that gives it, if a step does.
    Argument(Option<(String, usize)>, ArgumentError),
    /// A prompt is blank with the values of its arguments.
    BlankPrompt {
        /// The task whose step it is.
        task: String,
        /// The line of the step.
        line: usize,
    },
    /// A command uses the answer to a question, and no question stands before it.
    NoQuestion {
        /// The task whose step it is.
        task: String,
        /// The line of the step; 1 if it is a check.
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
            Self::Cycle { task, line, names } => write!(
                f,
                "{task}.md:{line}: the tasks run each other in a circle: {}",
                names.join(" → ")
            ),
            Self::TooDeep { task, line } => {
                write!(f, "{task}.md:{line}: tasks run each other more than {MAX_DEPTH} deep")
            }
            Self::TooManySteps { task, line } => {
                write!(f, "{task}.md:{line}: the run has more than {MAX_PLANNED_STEPS} steps")
            }
            Self::Argument(None, error) => error.fmt(f),
            Self::Argument(Some((task, line)), error) => write!(f, "{task}.md:{line}: {error}"),
            Self::BlankPrompt { task, line } => {
                write!(f, "{task}.md:{line}: the step has no text, because its values are empty")
            }
            Self::NoQuestion { task, line } => write!(
                f,
                "{task}.md:{line}: `$answer` has no value in this command, because no question stands before it"
            ),
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

impl TaskPlan {
    /// Lets neighbours that are commands without effects run side by side, as if they were marked so. `only_reads` says
    /// whether a command has none. One that waits keeps its place: the next may read what comes in that time.
    pub fn group_reading_commands(&mut self, only_reads: impl Fn(&str) -> bool) {
        let is_reading = |step: &PlannedStep| match step.resolve_action(None) {
            PlannedAction::Command(command) => {
                let mut words = command.split(|c: char| !c.is_alphanumeric());
                step.group.is_none() && !words.any(|word| word == WAIT) && only_reads(&command)
            }
            PlannedAction::Prompt(_) | PlannedAction::Question { .. } => false,
        };
        let reading: Vec<bool> = self.steps.iter().map(is_reading).collect();
        let mut first = 0;
        for neighbours in reading.chunk_by(|one, next| one == next) {
            let count = neighbours.len();
            if count > 1 && neighbours.first() == Some(&true) {
                for (place, step) in self.steps.iter_mut().skip(first).take(count).enumerate() {
                    step.group = Some(first + place - place % MAX_SIDE_STEPS);
                }
            }
            first += count;
        }
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
    /// A question is among the steps.
    has_question: bool,
    /// Values that are not known fit everywhere.
    is_check: bool,
}

impl<'t> Planner<'t> {
    fn new(tasks: &'t HashMap<String, TaskDefinition>) -> Self {
        let (path, modes, steps) = (Vec::new(), Vec::new(), Vec::new());
        Self { tasks, path, modes, steps, has_question: false, is_check: false }
    }

    fn add_task(
        &mut self,
        task: &TaskDefinition,
        values: &[NamedValue],
        above: &str,
    ) -> Result<(), PlanError> {
        self.path.push(task.name.clone());
        self.modes.extend(task.mode);
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
                StepAction::Prompt(text) if parse_invocation(text).is_some() => step.action.clone(),
                StepAction::Prompt(text) => StepAction::Prompt(match intro.take() {
                    Some(intro) => format!("{intro}\n\n{text}"),
                    None => text.clone(),
                }),
                action @ (StepAction::Command(_) | StepAction::Question { .. }) => action.clone(),
            };
            let timeout_s = options.timeout_s.or(task.timeout_s).unwrap_or(STEP_TIMEOUT_S);
            let (StepOptions { model, role, .. }, values) = (options, values.to_vec());
            let planned = PlannedStep { title, model, role, timeout_s, group, action, values };
            self.add_step((task, step.line), planned)?;
        }
        self.add_checks(task, values, above)?;
        self.path.pop();
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
            let step = PlannedStep { title, model, role, timeout_s, group, action, values };
            self.add_step((task, 1), step)?;
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
        let (task, line) = place();
        if let Some(at) = self.path.iter().position(|name| *name == nested.name) {
            let names = self.path.iter().skip(at).chain([&nested.name]).cloned().collect();
            return Err(PlanError::Cycle { task, line, names });
        }
        if self.path.len() == MAX_DEPTH {
            return Err(PlanError::TooDeep { task, line });
        }
        self.add_task(nested, &bound, &format!("{title} › "))
    }

    /// Adds a step of `task`, which stands in this line of its file.
    fn add_step(
        &mut self,
        (task, line): (&TaskDefinition, usize),
        step: PlannedStep,
    ) -> Result<(), PlanError> {
        if self.steps.len() == MAX_PLANNED_STEPS {
            return Err(PlanError::TooManySteps { task: task.name.clone(), line });
        }
        self.has_question |= step.kind() == StepKind::Question;
        // A task that is only checked may be run by another one behind its question.
        if let StepAction::Command(command) = &step.action
            && !(self.has_question || self.is_check)
            && needs_answer(command)
        {
            return Err(PlanError::NoQuestion { task: task.name.clone(), line });
        }
        self.steps.push(step);
        Ok(())
    }
}

/// Returns whether a command uses the answer to a question, and neither sets a variable of that name itself nor has a
/// default for it.
fn needs_answer(command: &str) -> bool {
    let is_used = |(at, _): (usize, &str)| {
        let (before, rest) = command.split_at(at);
        // A default stands in for a value that is missing: `${answer:-none}`.
        let has_default = rest.trim_start_matches(ANSWER).starts_with([':', '-', '+', '=']);
        before.ends_with('$') || (before.ends_with("${") && !has_default)
    };
    mentions_variable(command, ANSWER) && command.match_indices(ANSWER).all(is_used)
}

#[cfg(test)]
mod tests;
