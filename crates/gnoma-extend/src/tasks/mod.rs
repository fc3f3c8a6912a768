//! Tasks: Markdown files whose steps run one after the other with the person's arguments.
//!
//! This module reads task files, checks arguments, plans the steps of a run, and records runs. It runs nothing and
//! permits nothing: the host drives the steps, and the session judges every command in them like any other.

mod arguments;
mod definition;
mod fault;
mod find;
mod import;
mod plan;
mod record;
mod repair;
pub mod repetition;
pub mod schedule;
mod schema;
mod session;
mod steps;
mod store;
mod substitute;

pub use self::{
    arguments::{ArgumentError, ArgumentKind, TaskArgument, bind_arguments},
    definition::{TaskDefinition, new_task_text, parse_task},
    fault::{TaskError, TaskFault},
    find::{TaskFile, TaskProblem, TaskProblemKind, find_tasks, read_task_file, task_file_path},
    import::{ImportedTask, import_command},
    plan::{PlanError, PlannedAction, PlannedStep, TaskPlan, check_task, plan_task, replan_task},
    record::{
        ResumeChoice, ResumeError, RunRecord, RunState, StepRecord, StepResult, StepState,
        describe_open_state, digest_message,
    },
    repair::{StepPart, commands_run_instead, has_parts, parts_that_went_well, propose_repair},
    schema::task_schema,
    session::{DraftTask, draft_from_messages},
    steps::{StepAction, StepKind, StepOptions, TaskStep},
    store::{RunLock, RunStore, StoreError},
};

/// Returns whether a text can name a task: letters, digits, `-`, `_` and `.`, at most 64 bytes.
#[must_use]
pub fn is_task_name(name: &str) -> bool {
    let fits = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    !name.is_empty()
        && name.len() <= MAX_NAME_BYTES
        && !name.starts_with(['.', '-'])
        && name.chars().all(fits)
        && !is_reserved_name(name)
}

/// Returns whether `/task` and `gnoma task` have a command of that name, so that no task can.
#[must_use]
pub fn is_reserved_name(name: &str) -> bool {
    RESERVED_NAMES.contains(&name)
}

/// Longest name of a task.
const MAX_NAME_BYTES: usize = 64;
const RESERVED_NAMES: [&str; 16] = [
    "list",
    "show",
    "run",
    "edit",
    "new",
    "check",
    "delete",
    "history",
    "resume",
    "save",
    "never",
    "suggestions",
    "schedule",
    "schedules",
    "import",
    "repair",
];
