//! Schedules of tasks: made and listed here, begun by the [`Scheduler`] of a server.

mod listing;
mod scheduler;

use gnoma_core::{
    protocol::{Environment, Overrides, SessionSpec},
    session::PermissionMode,
};
use gnoma_extend::tasks::schedule::{
    NextRun, ScheduleProgress, ScheduleRecord, ScheduleRule, ScheduleStoreError, zone_named,
};

pub use self::{
    listing::{describe_schedules, schedules_as_json, time_in_zone},
    scheduler::Scheduler,
};
pub use crate::continuation::{limits_reset_ms, schedule_store};
use crate::{
    HostError, Project, Result,
    tasks::{Tasks, redact_argument},
};

/// A schedule that a person wants to make.
#[derive(Clone, Debug)]
pub struct NewSchedule {
    /// The task and its arguments.
    pub words: Vec<String>,
    /// The rule that says when the schedule runs.
    pub rule: ScheduleRule,
    /// The time zone of its days and times; empty for that of the machine.
    pub zone: String,
    /// The most that a run may cost, in millionths of a dollar.
    pub budget_micro_usd: u64,
}

/// Returns whether a schedule waits for its time, so that a server is needed. Reads files.
#[must_use]
pub fn has_waiting_schedules(environment: &Environment, now_ms: i64) -> bool {
    let all = schedule_store(environment).list_schedules();
    all.iter().any(|record| {
        matches!(record.peek_next_run(now_ms), Some(NextRun::At(_) | NextRun::Due { .. }))
    })
}

/// Saves a schedule of a task of the project, with the folders, profile, model and permission mode of its spec.
///
/// # Errors
/// The task cannot run, nothing is saved in incognito, a secret would be saved, or the disk refuses.
pub fn create_schedule(project: &Project, new: NewSchedule) -> Result<ScheduleRecord> {
    if project.is_incognito() {
        let cause = "nothing is saved in incognito, so there can be no schedule";
        return Err(HostError::usage(cause));
    }
    let NewSchedule { words, rule, zone, budget_micro_usd } = new;
    let (name, arguments) =
        words.split_first().ok_or_else(|| HostError::usage("no task is named"))?;
    let plan = Tasks::find(project).plan(name, arguments)?;
    let time_zone = zone_named(&zone).ok_or_else(|| unknown_zone(&zone))?;
    let firewall = &project.firewall;
    let mut arguments = plan.arguments.iter();
    if words.iter().any(|word| firewall.redact_text(word) != *word)
        || arguments.any(|(name, value)| redact_argument(firewall, name, value) != *value)
    {
        let cause = "an argument contains a secret, which is not saved in a schedule";
        let remedy = Some("let the task read it where it runs".to_owned());
        return Err(HostError { remedy, ..HostError::usage(cause) });
    }
    refuse_unsaved_options(&project.spec)?;
    let SessionSpec { folder, more_folders, profile, overrides, .. } = project.spec.clone();
    let Overrides { provider, model, mode, .. } = overrides;
    let now_ms = project.now_ms();
    let record = ScheduleRecord {
        version: ScheduleRecord::current_version(),
        id: 0,
        words,
        session: None,
        rule,
        progress: ScheduleProgress::with_past_seen(rule, &time_zone, now_ms, now_ms),
        zone,
        made_ms: now_ms,
        budget_micro_usd,
        mode,
        folder,
        more_folders,
        profile,
        provider,
        model,
        is_paused: false,
        last: None,
    };
    let saved = schedule_store(project.environment()).insert(record, now_ms);
    saved.map_err(|error| store_error(&error))
}

/// Refuses options that a schedule does not keep, and the mode that none may have.
fn refuse_unsaved_options(spec: &SessionSpec) -> Result<()> {
    let Overrides { mode, max_rounds, thinking, .. } = &spec.overrides;
    let is_unsaved = spec.agent.is_some() || spec.system.is_some();
    let (cause, remedy) = if is_unsaved || max_rounds.is_some() || thinking.is_some() {
        (
            "a schedule does not keep --agent, --system, --max-turns or --thinking, so none was made",
            "leave them out, or name them in the task",
        )
    } else if *mode == Some(PermissionMode::Bypass) {
        (
            "a schedule cannot have the mode bypass, because nobody sees what it does",
            "set another mode, and rules that allow what the task needs",
        )
    } else {
        return Ok(());
    };
    Err(HostError { remedy: Some(remedy.to_owned()), ..HostError::usage(cause) })
}

/// Pauses a schedule, or lets it run again from now on.
///
/// # Errors
/// There is no such schedule, or the disk refuses.
pub fn pause_schedule(project: &Project, id: u32, is_paused: bool) -> Result<ScheduleRecord> {
    let now_ms = project.now_ms();
    let change = |record: &mut ScheduleRecord| {
        if is_paused {
            record.is_paused = true;
        } else if record.is_paused {
            record.resume(now_ms);
        }
        true
    };
    schedule_store(project.environment()).edit(id, change).map_err(|error| store_error(&error))
}

/// Deletes a schedule. A run that goes on continues.
///
/// # Errors
/// There is no such schedule, or the disk refuses.
pub fn delete_schedule(project: &Project, id: u32) -> Result<()> {
    let now_ms = project.now_ms();
    schedule_store(project.environment()).delete(id, now_ms).map_err(|error| store_error(&error))
}

fn store_error(error: &ScheduleStoreError) -> HostError {
    match error {
        ScheduleStoreError::Io(..) => HostError::failure(error.to_string()),
        ScheduleStoreError::Missing(_) => HostError {
            remedy: Some("`gnoma task schedules` lists them".to_owned()),
            ..HostError::usage(error.to_string())
        },
        ScheduleStoreError::Full => HostError {
            remedy: Some("`gnoma task schedules delete ID` makes room".to_owned()),
            ..HostError::usage(error.to_string())
        },
    }
}

/// Returns the error for a time zone that is not known here.
#[must_use]
pub fn unknown_zone(name: &str) -> HostError {
    let cause = format!("this machine knows no time zone `{}`", name.escape_debug());
    let remedy = Some("write one such as `Europe/Vienna` or `UTC`".to_owned());
    HostError { remedy, ..HostError::usage(cause) }
}
