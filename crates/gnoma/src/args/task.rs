//! Arguments about tasks.

use std::path::PathBuf;

use clap::Subcommand;

/// What can be done with tasks.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum TaskSub {
    /// List tasks.
    #[command(alias = "ls")]
    List,
    /// Print a task.
    #[group(skip)]
    Show {
        /// The task.
        name: String,
    },
    /// Run a task: its steps in order, in a session, up to the first one that fails.
    ///
    /// Arguments follow the name in order, or as name=value. Exits as a prompt does: 0 if all steps are done, 4 if
    /// a step needed approval and nobody was there to ask, and 1 if a step failed for another reason.
    Run(TaskRunArgs),
    /// Continue the last run of a task, behind its last whole step.
    ///
    /// Looks only at the newest run: of the task if one is named, and otherwise of this project. Exits as `run` does.
    Resume(TaskResumeArgs),
    /// Open a task in your editor ($VISUAL, $EDITOR), and check it afterwards.
    #[group(skip)]
    Edit {
        /// The task.
        name: String,
    },
    /// Write a new task that works as it is, to edit.
    #[group(skip)]
    New {
        /// The task.
        name: String,
        /// Write it into the project (.gnoma/tasks) instead of your own settings.
        #[arg(long)]
        project: bool,
    },
    /// Check task files. Exits with 1 if one is wrong.
    #[group(skip)]
    Check {
        /// The files [default: those of all tasks].
        files: Vec<PathBuf>,
        /// Print the JSON Schema of the fields instead.
        #[arg(long, conflicts_with = "files")]
        schema: bool,
    },
    /// List chores that you have had done at least three times, with their sessions, arguments and steps.
    ///
    /// They are found in the stored sessions of the project without a model. --output-format json prints them as JSON.
    #[group(skip)]
    Suggestions {
        /// Save a task of this suggestion, after showing its file and a yes.
        #[arg(long, value_name = "NAME")]
        save: Option<String>,
        /// The name of the task [default: the suggestion's].
        #[arg(long = "as", value_name = "NAME", requires = "save")]
        as_name: Option<String>,
        /// Save it without a question.
        #[arg(long, short, requires = "save")]
        yes: bool,
    },
    /// Delete a task after a yes. What is recorded of its runs stays.
    #[command(aliases = ["rm", "remove"])]
    #[group(skip)]
    Delete {
        /// The task.
        name: String,
        /// Delete it without a question.
        #[arg(long, short)]
        yes: bool,
    },
    /// Print what can follow in a command line about tasks, for the completions of shells.
    #[command(hide = true)]
    #[group(skip)]
    Complete {
        /// The command behind `task`, and the words behind it.
        words: Vec<String>,
    },
    /// List the last runs of a task, or of all.
    #[group(skip)]
    History {
        /// The task.
        name: Option<String>,
    },
}

/// The run that continues, and the choice for a step that has begun before.
#[derive(Clone, Debug, clap::Args)]
#[group(skip)]
pub(crate) struct TaskResumeArgs {
    /// The task, or the id of a run [default: the newest run of this project].
    pub name: Option<String>,

    /// Run the step again that failed or was interrupted.
    #[arg(long, conflicts_with = "skip")]
    pub again: bool,

    /// Leave out the step that failed or was interrupted.
    #[arg(long)]
    pub skip: bool,
}

/// What a task is run with.
#[derive(Clone, Debug, clap::Args)]
#[group(skip)]
pub(crate) struct TaskRunArgs {
    /// The task and its arguments; with --resume a run or the name of a task.
    #[arg(value_name = "NAME|ARGUMENT")]
    pub words: Vec<String>,

    /// Show the steps and what the guard says of each command. Runs nothing and calls no model.
    #[arg(long, conflicts_with = "resume")]
    pub dry_run: bool,

    /// Continue the last run, as `gnoma task resume` does.
    #[arg(long)]
    pub resume: bool,

    /// Run the step again that failed or was interrupted.
    #[arg(long, conflicts_with = "skip")]
    pub again: bool,

    /// Leave out the step that failed or was interrupted.
    #[arg(long)]
    pub skip: bool,
}
