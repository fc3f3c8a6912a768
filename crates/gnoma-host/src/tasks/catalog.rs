//! The task files of a project, and which of them may run.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
};

use gnoma_config::FileTrust;
use gnoma_core::{info::Choice, quantity::describe_count};
use gnoma_extend::{
    ExtendPlaces, ExtensionSource,
    commands::{may_be_prompt_or_folder, parse_invocation},
    tasks::{
        ArgumentKind, PlanError, PlannedAction, PlannedStep, StepAction, StepKind, TaskArgument,
        TaskDefinition, TaskFile, TaskPlan, TaskProblem, TaskProblemKind, check_task, find_tasks,
        is_task_name, plan_task, read_task_file, replan_task, task_file_path,
    },
};
use gnoma_guard::shell::{StartContext, analyse_command};

use crate::{HostError, Project, Result, extensions};

/// Characters of a step that are shown before a run.
const MAX_SHOWN_CHARS: usize = 400;

/// The tasks of a project.
#[derive(Debug)]
pub struct Tasks {
    places: ExtendPlaces,
    /// Those that can be read, sorted by name.
    pub files: Vec<TaskFile>,
    /// Files that cannot be used.
    pub problems: Vec<TaskProblem>,
}

impl Tasks {
    /// Finds the tasks of a project.
    #[must_use]
    pub fn find(project: &Project) -> Self {
        let mut places = extensions::extension_places(project);
        let (files, problems) = find_tasks(&places);
        // Trust is in the content of the files, so it is looked at after they were read.
        places.is_trusted =
            extensions::project_trust(project.original_spec()) == FileTrust::Trusted;
        Self { places, files, problems }
    }

    /// Returns where the tasks come from.
    #[must_use]
    pub fn places(&self) -> &ExtendPlaces {
        &self.places
    }

    /// Returns whether a task belongs to a project that the person has not trusted.
    #[must_use]
    pub fn waits_for_trust(&self, file: &TaskFile) -> bool {
        file.by == ExtensionSource::Project && !self.places.is_trusted
    }

    /// Reports whether there is a task of that name, also one whose file is wrong.
    #[must_use]
    pub fn has_name(&self, name: &str) -> bool {
        self.files.iter().any(|file| file.task.name == name)
            || self.problems.iter().any(|problem| problem.name == name)
    }

    /// Returns a task by its name.
    ///
    /// # Errors
    /// There is none, or its file is wrong.
    pub fn file(&self, name: &str) -> Result<&TaskFile> {
        if let Some(file) = self.files.iter().find(|file| file.task.name == name) {
            return Ok(file);
        }
        if let Some(problem) = self.problems.iter().find(|problem| problem.name == name) {
            return Err(HostError::usage(problem.to_string()));
        }
        let names = self.files.iter().map(|file| file.task.name.as_str());
        let remedy = match gnoma_config::nearest_name(name, names) {
            Some(near) if !name.is_empty() => format!("did you mean `{near}`?"),
            Some(_) | None => {
                "`gnoma task list` lists them, `gnoma task new NAME` makes one".to_owned()
            }
        };
        let error = HostError::usage(if name.is_empty() {
            "no task is named".to_owned()
        } else {
            format!("there is no task `{}`", name.escape_debug())
        });
        Err(HostError { remedy: Some(remedy), ..error })
    }

    /// Returns the file of a task, also if it is wrong: the one that runs, or else that of the project.
    ///
    /// # Errors
    /// There is none.
    pub fn file_path(&self, name: &str) -> Result<PathBuf> {
        let error = match self.file(name) {
            Ok(file) => return Ok(file.path.clone()),
            Err(error) => error,
        };
        let paths = [true, false].map(|in_project| task_file_path(&self.places, name, in_project));
        paths.into_iter().find(|path| is_task_name(name) && path.is_file()).ok_or(error)
    }

    /// Returns whether the project has a task of the same name as one of the person's, which would count once the
    /// project is trusted.
    #[must_use]
    pub fn has_waiting_twin(&self, file: &TaskFile) -> bool {
        file.by == ExtensionSource::User
            && self.places.waits_for_trust(ExtensionSource::Project)
            && task_file_path(&self.places, &file.task.name, true) != file.path
            && task_file_path(&self.places, &file.task.name, true).is_file()
    }

    /// Plans a run of a task.
    ///
    /// # Errors
    /// There is no such task, its project is not trusted, or an argument is wrong.
    pub fn plan(&self, name: &str, arguments: &[String]) -> Result<TaskPlan> {
        let usable = self.usable_with(name)?;
        let plan = plan_task(name, arguments, &usable).map_err(|error| self.plan_error(&error))?;
        self.refuse_unknown_commands(name, &usable)?;
        Ok(group_reading_commands(plan))
    }

    /// Plans the continuation of a run with the values that were recorded of it.
    ///
    /// # Errors
    /// As [`Self::plan`]; also if the values do not fit the arguments that the task has now.
    pub(super) fn replan(&self, name: &str, recorded: &[(String, String)]) -> Result<TaskPlan> {
        let usable = self.usable_with(name)?;
        let plan = replan_task(name, recorded, &usable).map_err(|error| self.plan_error(&error));
        plan.map(group_reading_commands)
    }

    /// Returns the tasks that may run, if `name` is one of them.
    fn usable_with(&self, name: &str) -> Result<HashMap<String, TaskDefinition>> {
        let file = self.file(name)?;
        if self.waits_for_trust(file) {
            return Err(self.untrusted_error(file));
        }
        let usable = self.files.iter().filter(|file| !self.waits_for_trust(file));
        Ok(usable.map(|file| (file.task.name.clone(), file.task.clone())).collect())
    }

    /// Checks that the tasks which a task runs exist, get arguments that fit and form no circle. Values that a person
    /// must give are not checked.
    ///
    /// # Errors
    /// The first error, with its file and line.
    pub fn check_links(&self, task: &TaskDefinition) -> Result<()> {
        let all = self.files.iter().map(|file| &file.task).chain([task]);
        let all = all.map(|task| (task.name.clone(), task.clone())).collect();
        check_task(task, &all).map_err(|error| HostError::usage(error.to_string()))?;
        self.refuse_unknown_commands(&task.name, &all)
    }

    /// Refuses a task with a step such as `/help`, which no session would understand: a model would get these words. The
    /// tasks form no circle.
    fn refuse_unknown_commands(
        &self,
        name: &str,
        all: &HashMap<String, TaskDefinition>,
    ) -> Result<()> {
        let Some(task) = all.get(name) else { return Ok(()) };
        for step in &task.steps {
            match &step.action {
                StepAction::Prompt(text) if !self.is_understood(text) => {
                    let first = text.split_whitespace().next().unwrap_or_default();
                    let cause = format!(
                        "{name}.md:{}: `{first}` is no command that a step can be",
                        step.line
                    );
                    let remedy = "commands of your own, skills and `/task` are; to send the words to a model, begin \
                                  with others";
                    let remedy = Some(remedy.to_owned());
                    return Err(HostError { remedy, ..HostError::usage(cause) });
                }
                StepAction::Task { name, .. } => self.refuse_unknown_commands(name, all)?,
                StepAction::Prompt(_) | StepAction::Command(_) | StepAction::Question { .. } => (),
            }
        }
        Ok(())
    }

    /// Returns whether a prompt names no command, or one that there is.
    fn is_understood(&self, prompt: &str) -> bool {
        let Some((name, _)) = parse_invocation(prompt) else { return true };
        may_be_prompt_or_folder(name)
            || gnoma_extend::slash_names(&self.places).iter().any(|known| known.name == name)
    }

    fn plan_error(&self, error: &PlanError) -> HostError {
        if let PlanError::UnknownTask { named, .. } = error
            && let Some(file) = self.files.iter().find(|file| file.task.name == *named)
        {
            return self.untrusted_error(file);
        }
        HostError::usage(error.to_string())
    }

    fn untrusted_error(&self, file: &TaskFile) -> HostError {
        let (name, path) = (&file.task.name, self.places.display_path(&file.path));
        let error = HostError::usage(format!(
            "the project's task `{name}` ({path}) does not run, because you have not trusted the project yet"
        ));
        let remedy = "`gnoma trust` shows what that would allow, and asks".to_owned();
        HostError { remedy: Some(remedy), ..error }
    }

    /// Returns the tasks as choices, with their arguments.
    pub(super) fn choices(&self) -> Vec<Choice> {
        let choice = |file: &TaskFile| {
            let waits = if self.waits_for_trust(file) { " (needs `gnoma trust`)" } else { "" };
            Choice {
                name: file.task.usage(),
                about: format!("{}{waits}", file.task.description),
                ..Choice::default()
            }
        };
        self.files.iter().map(choice).collect()
    }

    /// Returns the words that can follow the name of a task and the arguments behind it, as far as they are known: names
    /// if there are no words, and then the values of a choice, or the default.
    #[must_use]
    pub fn next_words(&self, words: &[String]) -> Vec<String> {
        let Some((name, given)) = words.split_first() else {
            return self.files.iter().map(|file| file.task.name.clone()).collect();
        };
        let file = self.files.iter().find(|file| file.task.name == *name);
        let argument = file.and_then(|file| file.task.arguments.get(given.len()));
        let values = match argument {
            Some(TaskArgument { kind: ArgumentKind::Choice(values), .. }) => values.clone(),
            Some(argument) => argument.default.iter().cloned().collect(),
            None => Vec::new(),
        };
        // A terminal would obey control characters of a project's file.
        let is_plain = |value: &String| !value.is_empty() && !value.contains(char::is_control);
        values.into_iter().filter(is_plain).collect()
    }

    /// Describes a task: its arguments, and its steps as the file has them. One whose text is wrong is described by
    /// what is wrong.
    ///
    /// # Errors
    /// There is none, or its file cannot be read.
    pub fn describe(&self, name: &str) -> Result<String> {
        let read = |path: &Path| {
            std::fs::read_to_string(path).map_err(|error| HostError::failure(error.to_string()))
        };
        let wrong = self.problems.iter().find(|problem| {
            problem.name == name && matches!(problem.why, TaskProblemKind::Fault(_))
        });
        let file = match (self.file(name), wrong) {
            (Err(_), Some(problem)) => {
                let text = read(&self.file_path(name)?)?;
                return Ok(format!("{problem}\n\n{}\n", text.trim_end()));
            }
            (file, _) => file?,
        };
        let text = read(&file.path)?;
        let waits = if self.waits_for_trust(file) {
            "It does not run until you trust the project: `gnoma trust`.\n"
        } else {
            ""
        };
        Ok(format!(
            "{}: {}\nfrom {}, {}\n{waits}\n{}\n",
            file.task.usage(),
            file.task.description,
            self.places.display_path(&file.path),
            describe_count(file.task.steps.len(), "step"),
            text.trim_end()
        ))
    }
}

/// Lets commands that only read run side by side. Where they run does not matter for that.
fn group_reading_commands(mut plan: TaskPlan) -> TaskPlan {
    let start = StartContext { cwd: "/".into(), home: Some("/".into()) };
    plan.group_reading_commands(|command| analyse_command(command, &start).is_read_only());
    plan
}

/// Checks one file as a task of the person's.
///
/// # Errors
/// The first error, with its line.
pub fn check_file(project: &Project, path: &std::path::Path) -> Result<TaskFile, TaskProblem> {
    read_task_file(&extensions::extension_places(project), ExtensionSource::User, path)
}

/// Returns words as a line from which the same words are read again.
#[must_use]
pub fn quoted_line(words: &[String]) -> String {
    let quoted = |word: &String| format!("'{}'", word.replace('\'', r#"'"'"'"#));
    words.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

/// Describes what a step would do, for a run that only shows it.
#[must_use]
pub fn describe_step(step: &PlannedStep) -> String {
    let text = match step.resolve_action(None) {
        PlannedAction::Prompt(text) | PlannedAction::Command(text) => text,
        PlannedAction::Question { text, choices } if choices.is_empty() => text,
        PlannedAction::Question { text, choices } => format!("{text} ({})", choices.join(", ")),
    };
    gnoma_core::text_truncation::head_chars(&text, MAX_SHOWN_CHARS).to_owned()
}

/// Returns the command of a step that is one.
#[must_use]
pub fn step_command(step: &PlannedStep) -> Option<String> {
    match (step.kind(), step.resolve_action(None)) {
        (StepKind::Command, PlannedAction::Command(command)) => Some(command),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn task_arguments_round_trip_through_quoting() {
        let all = ["release", "a b", "it's \"x\"", "", "$(ls) \\"].map(str::to_owned);
        assert_eq!(gnoma_extend::commands::split_words(&quoted_line(&all)), all);
    }
}
