//! Arguments about tasks.

use std::path::PathBuf;

use clap::Subcommand;

use super::error::ArgumentError;

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
    /// Arguments follow the name in order, or as name=value. --permission, --model and --output-format are options of
    /// prompts, which `gnoma --help` lists. Exits as a prompt does: 0 if all steps are done, 4 if a step needed approval
    /// and nobody was there to ask, and 1 if a step failed for another reason.
    Run(TaskRunArgs),
    /// Continue the last run of a task, after its last complete step.
    ///
    /// Looks only at the newest run: of the task if one is named, and otherwise of this project. Exits as `run` does.
    Resume(TaskResumeArgs),
    /// Run a task by itself at set times: in `gnoma serve`, each run in a session of its own.
    ///
    /// A time that passes while the machine sleeps or no server runs is made up for once. No run begins twice. Runs have
    /// the permission mode plan unless --permission (see `gnoma --help`) sets another one. What needs approval waits as a
    /// question: `gnoma ps` shows that a session asks, and `gnoma attach` answers.
    Schedule(TaskScheduleArgs),
    /// List, pause, resume or delete the schedules of all projects.
    ///
    /// --output-format json prints the list as JSON.
    #[group(skip)]
    Schedules {
        /// What to do [default: list].
        #[arg(requires = "id")]
        action: Option<ScheduleAction>,
        /// The number of the schedule.
        id: Option<u32>,
    },
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
        /// The files, or the names of tasks [default: the files of all tasks].
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
    /// Make tasks of the commands of Claude Code, Codex and opencode, each of one step.
    ///
    /// Without --write it only shows which, and what is lost. Commands of a project count once you trust it.
    #[group(skip)]
    Import {
        /// The commands [default: all].
        names: Vec<String>,
        /// Only those of this program.
        #[arg(long, value_name = "PROGRAM")]
        from: Option<TaskImportFrom>,
        /// Write them among your own tasks.
        #[arg(long)]
        write: bool,
    },
    /// Propose a change of a task whose last three runs failed at the same step, and save it after a yes.
    ///
    /// The step becomes what you ran instead in the session of a failed run, or its lines become steps of their own.
    #[group(skip)]
    Repair {
        /// The task.
        name: String,
        /// Save it without a question.
        #[arg(long, short)]
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
    /// List the last runs of a task, or of all.
    #[group(skip)]
    History {
        /// The task.
        name: Option<String>,
    },
}

impl TaskSub {
    /// Returns the name of a command that takes no options of prompts, because it runs nothing and prints text.
    pub(crate) fn report_name(&self) -> Option<&'static str> {
        Some(match self {
            Self::List => "task list",
            Self::Show { .. } => "task show",
            Self::History { .. } => "task history",
            Self::Check { .. } => "task check",
            Self::Edit { .. } => "task edit",
            Self::New { .. } => "task new",
            Self::Import { .. } => "task import",
            Self::Repair { .. } => "task repair",
            Self::Delete { .. } => "task delete",
            Self::Run(_)
            | Self::Resume(_)
            | Self::Schedule(_)
            | Self::Schedules { .. }
            | Self::Suggestions { .. } => return None,
        })
    }
}

/// The program whose commands are imported as tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum TaskImportFrom {
    /// Claude Code.
    Claude,
    /// Codex.
    Codex,
    /// opencode.
    Opencode,
}

/// What can be done with a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ScheduleAction {
    /// Run nothing until it is resumed.
    Pause,
    /// Run it again from now on; what passed meanwhile is left out.
    Resume,
    /// Delete it. A run that goes on continues.
    Delete,
}

/// What a schedule is made of.
#[derive(Clone, Debug, clap::Args)]
#[group(skip)]
pub(crate) struct TaskScheduleArgs {
    /// The task and its arguments.
    #[arg(value_name = "NAME|ARGUMENT", required = true, allow_negative_numbers = true)]
    pub words: Vec<String>,

    /// Run it again and again: "weekdays 9:00", "mon, fri 18:30", "day 7:00", 30m, 2h.
    #[arg(long, value_name = "WHEN", conflicts_with_all = ["at", "when_limits_reset"],
        required_unless_present_any = ["at", "when_limits_reset"])]
    pub every: Option<String>,

    /// Run it once: the next time that the clock shows 18:30, or "2026-12-01 09:00".
    #[arg(long, value_name = "TIME", conflicts_with = "when_limits_reset")]
    pub at: Option<String>,

    /// Run it once, as soon as a model that is at its limit now can be called again.
    #[arg(long)]
    pub when_limits_reset: bool,

    /// What a run may cost, in dollars. Calls of models whose price is not known do not count.
    #[arg(long, value_name = "USD", value_parser = parse_budget)]
    pub budget: u64,

    /// Time zone of --every and --at, such as Europe/Vienna [default: the one of this machine].
    #[arg(long, value_name = "ZONE")]
    pub zone: Option<String>,
}

/// Parses dollars as millionths of a dollar.
fn parse_budget(text: &str) -> Result<u64, ArgumentError> {
    const MAX_USD: u32 = 100_000;
    let dollars = text.trim().trim_start_matches('$').parse::<f64>();
    let dollars = dollars.ok().filter(|usd| *usd > 0.0 && *usd <= f64::from(MAX_USD));
    let dollars = dollars.ok_or(ArgumentError::NotABudget { most_usd: MAX_USD })?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is positive and at most 100,000"
    )]
    let micro_usd = (dollars * 1e6).ceil() as u64;
    Ok(micro_usd)
}

/// The run that continues, and the choice for a step that has begun before.
#[derive(Clone, Debug, clap::Args)]
#[group(skip)]
pub(crate) struct TaskResumeArgs {
    /// The task, or the id of a run [default: the newest run of this project].
    pub name: Option<String>,

    /// Run the step that failed or was interrupted again.
    #[arg(long, conflicts_with = "skip")]
    pub again: bool,

    /// Run the failed step again, with a stronger model than those that have answered in it.
    #[arg(long, conflicts_with_all = ["again", "skip"])]
    pub stronger: bool,

    /// Skip the step that failed or was interrupted.
    #[arg(long)]
    pub skip: bool,
}

/// What a task is run with.
#[derive(Clone, Debug, Default, clap::Args)]
#[group(skip)]
pub(crate) struct TaskRunArgs {
    /// The task and its arguments; with --resume a run or the name of a task.
    #[arg(value_name = "NAME|ARGUMENT", allow_negative_numbers = true)]
    pub words: Vec<String>,

    /// Show the steps and what the guard says of each command. Runs nothing and calls no model.
    #[arg(long, conflicts_with = "resume")]
    pub dry_run: bool,

    /// Run it in the server (`gnoma serve`) and return at once. `gnoma ps` lists the run, `gnoma attach` shows it.
    #[arg(long, conflicts_with_all = ["resume", "dry_run"])]
    pub detach: bool,

    /// Continue the last run, as `gnoma task resume` does.
    #[arg(long)]
    pub resume: bool,

    /// Run the step that failed or was interrupted again.
    #[arg(long, conflicts_with = "skip")]
    pub again: bool,

    /// Run the failed step again, with a stronger model than those that have answered in it.
    #[arg(long, conflicts_with_all = ["again", "skip"])]
    pub stronger: bool,

    /// Skip the step that failed or was interrupted.
    #[arg(long)]
    pub skip: bool,
}
