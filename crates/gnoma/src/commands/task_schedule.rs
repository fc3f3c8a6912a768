//! `gnoma task schedule` and `gnoma task schedules`: makes schedules, lists, pauses, resumes and deletes them.

use anyhow::Result;
use gnoma_core::price::format_usd;
use gnoma_extend::tasks::schedule::{
    NextRun, ScheduleRecord, ScheduleRule, parse_every, parse_moment, zone_named,
};
use gnoma_host::{
    HostError, Project, clock,
    schedules::{
        NewSchedule, create_schedule, delete_schedule, describe_schedules, limits_reset_ms,
        pause_schedule, schedules_as_json, time_in_zone, unknown_zone,
    },
};

use super::common::{open_project, print_json, print_safe_text};
use crate::{
    args::{OutputFormat, ScheduleAction, TaskScheduleArgs, TurnArgs},
    environment::ProcessEnvironment,
    report::{self, Exit},
    server,
};

/// Creates a schedule for a task.
pub(super) async fn create(
    wanted: &TaskScheduleArgs,
    args: &TurnArgs,
    around: &ProcessEnvironment,
) -> Result<Exit> {
    let project = open_project(args, around)?;
    let (rule, zone) = rule_from_args(wanted, &project).await?;
    let TaskScheduleArgs { words, budget, .. } = wanted;
    let new = NewSchedule { words: words.clone(), rule, zone, budget_micro_usd: *budget };
    let record = create_schedule(&project, new)?;
    print_safe_text(&describe_new(&record, project.now_ms()))?;
    if !matches!(server::try_find(around).await, Ok(Some(_))) {
        report::print_line("note: schedules run in `gnoma serve`, and none runs now");
    }
    Ok(Exit::Done)
}

/// The rule that the options name, and its time zone.
async fn rule_from_args(
    wanted: &TaskScheduleArgs,
    project: &Project,
) -> Result<(ScheduleRule, String)> {
    let zone = wanted.zone.clone().unwrap_or_else(clock::zone_name);
    let wrong =
        |error: gnoma_extend::tasks::schedule::ScheduleError| HostError::usage(error.to_string());
    let rule = match (&wanted.every, &wanted.at) {
        (Some(every), _) => parse_every(every).map_err(wrong)?,
        (None, Some(at)) => {
            let known = zone_named(&zone).ok_or_else(|| unknown_zone(&zone))?;
            let at_ms = parse_moment(at, project.now_ms(), &known).map_err(wrong)?;
            ScheduleRule::Once { at_ms, at_limits: false }
        }
        (None, None) => {
            ScheduleRule::Once { at_ms: limits_reset_ms(project).await?, at_limits: true }
        }
    };
    Ok((rule, zone))
}

fn describe_new(record: &ScheduleRecord, now_ms: i64) -> String {
    let ScheduleRecord { id, words, rule, .. } = record;
    let when = match record.peek_next_run(now_ms) {
        Some(NextRun::At(at_ms)) => time_in_zone(record, at_ms, now_ms),
        Some(NextRun::Due { .. } | NextRun::Over) | None => "now".to_owned(),
    };
    let budget = format_usd(record.budget_micro_usd);
    let mode = record.mode.map_or("plan", |mode| mode.name());
    let is_elsewhere = record.zone != clock::zone_name();
    let zone = if is_elsewhere { format!(" ({})", record.zone) } else { String::new() };
    format!(
        "schedule {id}: {} {rule}, the first time {when}{zone}, in mode {mode}, for at most {budget} a run\n",
        words.join(" ")
    )
}

/// Lists schedules, or changes one.
pub(super) fn manage_schedules(
    action: Option<ScheduleAction>,
    id: Option<u32>,
    project: &Project,
    args: &TurnArgs,
) -> Result<Exit> {
    match (action, id) {
        (Some(ScheduleAction::Delete), Some(id)) => {
            delete_schedule(project, id)?;
            print_safe_text(&format!("deleted schedule {id}\n"))
        }
        (Some(action), Some(id)) => {
            let is_paused = action == ScheduleAction::Pause;
            let record = pause_schedule(project, id, is_paused)?;
            let what = if is_paused { "is paused" } else { "runs" };
            print_safe_text(&format!("schedule {id} ({}) {what}\n", record.words.join(" ")))
        }
        (_, _) if args.output_format == OutputFormat::Text => {
            print_safe_text(&describe_schedules(project))
        }
        (_, _) => print_json(&schedules_as_json(project)),
    }
}
