//! Schedules, described for people and for programs.

use gnoma_core::{json_value::json, price::format_usd};
use gnoma_extend::tasks::schedule::{NextRun, ScheduleRecord, ScheduleStore, zone_named};
use serde_json::Value;

use super::schedule_store;
use crate::{Folders as _, Project, clock};

/// Describes all schedules of the person, the oldest first.
#[must_use]
pub fn describe_schedules(project: &Project) -> String {
    let store = schedule_store(project.environment());
    let now_ms = project.now_ms();
    let lines = store
        .list_schedules()
        .into_iter()
        .map(|record| describe_schedule(project, &store, &record, now_ms));
    let text: String = lines.collect();
    if text.is_empty() {
        return "no schedules. `gnoma task schedule NAME --every \"weekdays 9:00\" --budget 0.50` makes one\n"
            .to_owned();
    }
    text
}

fn describe_schedule(
    project: &Project,
    store: &ScheduleStore,
    record: &ScheduleRecord,
    now_ms: i64,
) -> String {
    let task = record.words.join(" ");
    let budget = format_usd(record.budget_micro_usd);
    let mode = record.mode.map_or_else(|| "plan or stricter".to_owned(), |mode| mode.to_string());
    let folder = project.environment().shorten_home(&record.folder);
    let zone = if record.zone.is_empty() { String::new() } else { format!(" ({})", record.zone) };
    let next = next_words(record, now_ms);
    let budget = match record.session {
        Some(_) => String::new(),
        None => format!(", at most {budget} a run"),
    };
    let mut text = format!(
        "{}  {task}: {}{zone}, {next}\n   in {folder}, mode {mode}{budget}\n",
        record.id, record.rule
    );
    if let Some(last) = &record.last {
        let began = clock::describe_age(last.began_ms, now_ms);
        let end = match (&last.end, is_running(store, record)) {
            (Some(end), _) => end.clone(),
            (None, true) => "it goes on; `gnoma ps` shows whether it asks something".to_owned(),
            (None, false) => "it was interrupted; `gnoma task resume` continues it".to_owned(),
        };
        let session = if last.session.is_empty() {
            String::new()
        } else {
            format!(" (session {})", last.session)
        };
        text.push_str(&format!("   last run {began}{session}: {end}\n"));
    }
    project.firewall.redact_text(&text).into_owned()
}

/// Describes a time in the time zone of a schedule: `18:30`, or with its date on other days.
#[must_use]
pub fn time_in_zone(record: &ScheduleRecord, at_ms: i64, now_ms: i64) -> String {
    let zone = zone_named(&record.zone).unwrap_or_else(clock::local_time_zone);
    clock::time_near_in(&zone, at_ms, now_ms)
}

fn next_words(record: &ScheduleRecord, now_ms: i64) -> String {
    match record.peek_next_run(now_ms) {
        None if record.is_paused => "paused".to_owned(),
        None => "does not run, because this machine does not know its time zone".to_owned(),
        Some(NextRun::At(at_ms)) => format!("next {}", time_in_zone(record, at_ms, now_ms)),
        Some(NextRun::Due { .. }) => "due; `gnoma serve` runs it".to_owned(),
        Some(NextRun::Over) => "over".to_owned(),
    }
}

/// Returns whether a run goes on in a server.
fn is_running(store: &ScheduleStore, record: &ScheduleRecord) -> bool {
    matches!(store.lease_run(record.id), Ok(None))
}

/// Returns all schedules of the person as JSON, without secrets.
#[must_use]
pub fn schedules_as_json(project: &Project) -> Value {
    let now_ms = project.now_ms();
    let one = |record: &ScheduleRecord| {
        let next_ms = match record.peek_next_run(now_ms) {
            Some(NextRun::At(at_ms) | NextRun::Due { for_ms: at_ms }) => Some(at_ms),
            Some(NextRun::Over) | None => None,
        };
        let last = record.last.as_ref();
        let last = last
            .map(|run| json!({"began_ms": run.began_ms, "session": run.session, "end": run.end}));
        json!({"id": record.id, "words": record.words, "session": record.session, "when": record.rule.to_string(), "zone": record.zone,
            "next_ms": next_ms, "paused": record.is_paused, "budget_micro_usd": record.budget_micro_usd,
            "mode": record.mode, "folder": record.folder, "last": last})
    };
    let all = schedule_store(project.environment()).list_schedules();
    json!({"schedules": all.iter().map(one).collect::<Vec<_>>()})
}
