//! `gnoma sessions list`: one line for each session, the newest first.

use anyhow::Result;
use gnoma_core::{json_value::json, store::SessionFacts};
use gnoma_host::{Project, clock, sessions};

use crate::{
    commands::common::{print_json, print_stored_text},
    report::{self, Exit},
    table,
};

pub(super) async fn run(project: &Project, max: usize, json: bool) -> Result<Exit> {
    let mut all = sessions::list_sessions(project).await?;
    let count = all.len();
    if max > 0 {
        all.truncate(max);
    }
    if json {
        return print_json(&json!(all));
    }
    if all.is_empty() {
        let project = project.places.project.display();
        report::print_line(format_args!("no saved sessions in {project}"));
    }
    let exit = print_stored_text(&session_rows(&all, clock::now_ms()))?;
    if count > all.len() {
        report::print_line(format_args!("{} more: gnoma sessions list -n 0", count - all.len()));
    }
    Ok(exit)
}

/// The lines of a list of sessions.
pub(in crate::commands) fn session_rows(sessions: &[SessionFacts], now_ms: i64) -> String {
    let row = |facts: &SessionFacts| {
        let open = if facts.held_by.is_some() { "(open) " } else { "" };
        let fork = if facts.forked_from.is_some() { "(fork) " } else { "" };
        let count = facts.messages.to_string();
        let when = clock::describe_age(facts.changed_ms, now_ms);
        [facts.id.to_string(), when, count, format!("{open}{fork}{}", facts.title)]
    };
    table::render_table(["session", "changed", "messages", "title"], sessions.iter().map(row))
}
