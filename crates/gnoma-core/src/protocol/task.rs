//! Tasks: what clients ask about them, and how a run of one ended.

use serde::{Deserialize, Serialize};

/// A request about the tasks of a session's project.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TaskRequest {
    /// List the tasks. Reply: `Choices`, each with its arguments in its name.
    List,
    /// Show a task. Reply: `Text`.
    Show {
        /// The task.
        name: String,
    },
    /// List the words that can follow. Reply: `Choices` of names: those of tasks, or the known values of the next argument.
    Complete {
        /// The task and its arguments so far, as a person writes them; empty for the names of tasks.
        words: String,
    },
    /// List the last runs of a task, or of all. Reply: `Text`.
    History {
        /// The task; empty for all.
        name: String,
    },
    /// List the schedules of tasks. Reply: `Text`.
    Schedules,
    /// Run a task. Only between turns. Reply: `Task`, once the run has ended.
    Run {
        /// The task and its arguments, as a person writes them.
        line: String,
    },
    /// Continue a run that is not done. Only between turns. Reply: `Task`, once the run has ended.
    Resume {
        /// The id of the run, or the task whose newest run it is; empty for the newest run of this session, or else of
        /// the project.
        run: String,
        /// The choice for a step that has begun before.
        choice: Option<TaskResumeChoice>,
    },
    /// Make a task of what the person has said in the session. Reply: `Text`, a diff of the new file.
    Draft {
        /// The name of the task.
        name: String,
    },
    /// Change a task whose last runs failed at the same step. Reply: `Text`, a diff of its file, to be saved like a draft.
    Repair {
        /// The task.
        name: String,
    },
    /// Never offer the task again that was offered last. Reply: `Text`.
    DeclineOffer,
    /// Write the task that was drafted last. Reply: `Text` says where.
    Save {
        /// The name of the task.
        name: String,
    },
}

impl TaskRequest {
    /// Parses the words behind `/task`: `release v1.2.0`, `show release`, `resume release skip`. `None` for what takes
    /// more than one request, or a shell.
    #[must_use]
    pub fn parse(words: &str) -> Option<Self> {
        let words = words.trim();
        let (word, rest) = words.split_once(char::is_whitespace).unwrap_or((words, ""));
        let rest = rest.trim();
        Some(match word {
            "" | "list" => Self::List,
            "show" => Self::Show { name: rest.to_owned() },
            "history" => Self::History { name: rest.to_owned() },
            "resume" => return Self::parse_resume(rest),
            "schedules" if rest.is_empty() => Self::Schedules,
            "never" if rest.is_empty() => Self::DeclineOffer,
            "save" | "repair" | "edit" | "new" | "check" | "delete" | "import" | "schedule"
            | "suggestions" => return None,
            "run" => Self::Run { line: rest.to_owned() },
            _ => Self::Run { line: words.to_owned() },
        })
    }

    /// Parses the words behind `resume`: perhaps a task, and then perhaps a choice.
    fn parse_resume(words: &str) -> Option<Self> {
        let (name, choice) = words.rsplit_once(char::is_whitespace).unwrap_or(("", words));
        let (name, choice) = match choice {
            "again" => (name.trim(), Some(TaskResumeChoice::Again)),
            "stronger" => (name.trim(), Some(TaskResumeChoice::Stronger)),
            "skip" => (name.trim(), Some(TaskResumeChoice::Skip)),
            _ => (words, None),
        };
        let is_name = !name.contains(char::is_whitespace);
        is_name.then(|| Self::Resume { run: name.to_owned(), choice })
    }
}

/// The choice for a step whose effects are not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TaskResumeChoice {
    /// Run the step again.
    Again,
    /// Run the step again, by a model that the router finds stronger than those that failed.
    Stronger,
    /// Leave the step out.
    Skip,
}

/// The state of a run of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TaskRunState {
    /// The run goes on, or its process was killed.
    Running,
    /// All steps are done or left out.
    Done,
    /// A step failed.
    Failed,
    /// The person stopped it.
    Stopped,
}

/// The state of a step of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TaskStepState {
    /// The step has not begun.
    Waiting,
    /// The step has begun, and its end is not known.
    Begun,
    /// The step is done.
    Done,
    /// The step failed.
    Failed,
    /// The person stopped it.
    Stopped,
    /// The person left it out.
    Skipped,
}

/// A step of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TaskStepReport {
    /// The heading of the step.
    pub title: String,
    /// `prompt`, `command` or `question`.
    pub kind: String,
    /// The state at the end of the run.
    pub state: TaskStepState,
    /// The reason of a failure; empty if there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// The duration, in milliseconds.
    pub took_ms: u64,
    /// The cost of model calls, in millionths of a dollar, as far as that is known.
    pub micro_usd: u64,
}

/// A run of a task that has ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TaskReport {
    /// The task.
    pub task: String,
    /// The id of the run; empty if nothing of it is recorded.
    pub run: String,
    /// The state at the end.
    pub state: TaskRunState,
    /// The steps, in order.
    pub steps: Vec<TaskStepReport>,
    /// The end of the run and what to do next, in sentences for people.
    pub summary: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn task_command_arguments_parse_to_a_task_request_or_none() {
        let run = |line: &str| Some(TaskRequest::Run { line: line.to_owned() });
        for (words, wanted) in [
            ("", Some(TaskRequest::List)),
            ("release  v1 ", run("release  v1")),
            ("run release v1", run("release v1")),
            ("show x", Some(TaskRequest::Show { name: "x".to_owned() })),
            ("never", Some(TaskRequest::DeclineOffer)),
            ("save mine", None),
            ("edit mine", None),
            ("resume it maybe", None),
            (
                "resume it skip",
                Some(TaskRequest::Resume {
                    run: "it".to_owned(),
                    choice: Some(TaskResumeChoice::Skip),
                }),
            ),
        ] {
            assert_eq!(TaskRequest::parse(words), wanted, "{words}");
        }
    }
}
